"""Where TLC cannot be had, a test says what is missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.export.tlc import JAR, JAVA, tlc, tools


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


def test_a_tlc_that_does_not_run_says_nothing_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A jar that lacks something is no "no error"."""
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'Exception in thread main' >&2\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "x.jar").touch()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("TLA2TOOLS", str(tmp_path / "x.jar"))
    with pytest.raises(AssertionError, match="without an answer, exit status 1:\nException in thread main"):
        tlc(tmp_path, "---- MODULE A ----\n====\n", "")
