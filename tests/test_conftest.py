"""A long run that was stopped goes on where it was: what passed with this code is not run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import conftest

TESTS = """
import pathlib
def test_passes(): pathlib.Path("ran").open("a").write("1")
def test_fails(): pathlib.Path("ran").open("a").write("2"); assert pathlib.Path("mended").exists()
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    pytester.makeconftest("from tests.conftest import *")
    pytester.makepyfile(TESTS)
    return pytester


def run(project: pytest.Pytester) -> tuple[dict[str, int], str]:
    done = project.runpytest_inprocess("--passed", "notes", "-p", "no:cacheprovider")
    ran = project.path / "ran"
    text = ran.read_text() if ran.is_file() else ""
    ran.unlink(missing_ok=True)
    return done.parseoutcomes(), text


def test_what_passed_is_not_run_again(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "code", lambda: "1")
    assert run(project) == ({"passed": 1, "failed": 1}, "12")
    assert run(project) == ({"failed": 1, "deselected": 1}, "2")
    (project.path / "mended").touch()
    assert run(project) == ({"passed": 1, "deselected": 1}, "2")
    monkeypatch.setattr(conftest, "code", lambda: "2")
    assert run(project) == ({"passed": 2}, "12")


def test_the_code_is_what_git_knows_of_it() -> None:
    if not (Path(__file__).parents[1] / ".git").exists():
        pytest.skip("no checkout of git")
    assert conftest.code() == conftest.code()
