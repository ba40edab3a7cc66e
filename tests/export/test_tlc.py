"""Where TLC cannot be had, a test says what is missing."""

from __future__ import annotations

import shutil

import pytest

from tests.export.tlc import JAR, JAVA, tools


@pytest.mark.parametrize(
    ("jar", "java", "missing"), [("", "java", JAR), ("x.jar", None, JAVA), ("", None, f"{JAR}, and {JAVA}")]
)
def test_a_skip_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, jar: str, java: str | None, missing: str
) -> None:
    monkeypatch.setenv("TLA2TOOLS", jar)
    monkeypatch.setattr(shutil, "which", lambda _: java)
    with pytest.raises(pytest.skip.Exception, match="TLC cannot be had: ") as e:
        tools()
    assert str(e.value).endswith(missing)


def test_a_jar_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLA2TOOLS", "/nowhere/tla2tools.jar")
    monkeypatch.setattr(shutil, "which", lambda _: "java")
    with pytest.raises(AssertionError, match="is no file"):
        tools()
