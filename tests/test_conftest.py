"""A long run that was stopped goes on where it was: what passed with this code is not run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import conftest

ROOT = Path(__file__).parents[1]

TESTS = """
import pathlib
def test_passes(): pathlib.Path("ran").open("a").write("1")
def test_fails(): pathlib.Path("ran").open("a").write("2"); assert pathlib.Path("mended").exists()
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    checks = pytester.mkdir("checks")
    (checks / "conftest.py").write_text("from tests.conftest import *\n")
    (checks / "test_both.py").write_text(TESTS)
    pytester.makeini("[pytest]\ntestpaths = checks\n")
    return pytester


@pytest.fixture
def option() -> str:
    """The option as `make deep` spells it: a file given as a word of its own is taken for a folder of tests."""
    return next(word for word in (ROOT / "Makefile").read_text("utf-8").split() if word.startswith("--passed"))


def run(project: pytest.Pytester, option: str) -> tuple[dict[str, int], str]:
    done = project.runpytest_inprocess(option, "-p", "no:cacheprovider")
    ran = project.path / "ran"
    text = ran.read_text() if ran.is_file() else ""
    ran.unlink(missing_ok=True)
    return done.parseoutcomes(), text


def test_what_passed_is_not_run_again(project: pytest.Pytester, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "code", lambda: "1")
    assert run(project, option) == ({"passed": 1, "failed": 1}, "12")
    assert run(project, option) == ({"failed": 1, "deselected": 1}, "2")
    (project.path / "mended").touch()
    assert run(project, option) == ({"passed": 1, "deselected": 1}, "2")
    monkeypatch.setattr(conftest, "code", lambda: "2")
    assert run(project, option) == ({"passed": 2}, "12")


def test_what_takes_long_is_begun_first(project: pytest.Pytester) -> None:
    (project.path / "checks" / "test_both.py").write_text(
        "import pathlib, pytest\n"
        "def note(n): pathlib.Path('ran').open('a').write(n)\n"
        "def test_a(): note('a')\n"
        "@pytest.mark.first\ndef test_b(): note('b')\n"
        "def test_c(): note('c')\n"
        "@pytest.mark.first\ndef test_d(): note('d')\n"
    )
    project.runpytest_inprocess("-p", "no:cacheprovider")
    assert (project.path / "ran").read_text() == "bdac"


SAMPLED = """
import pathlib, pytest
def note(n): pathlib.Path('ran').open('a').write(n)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("n", "abcdefg")
def test_many(n): note(n)
def test_one(): note("1")
"""


def test_of_many_cases_each_nth_runs_and_under_deep_all(project: pytest.Pytester) -> None:
    (project.path / "checks" / "test_both.py").write_text(SAMPLED)
    for marks, ran in (("not deep", "adg1"), ("deep or not deep", "abcdefg1")):
        project.runpytest_inprocess("-p", "no:cacheprovider", "-m", marks)
        assert (project.path / "ran").read_text() == ran
        (project.path / "ran").unlink()


DIES = """
import os, pathlib
def test_first(): pass
def test_second(): pass
def test_third(): pathlib.Path("there").exists() or (pathlib.Path("there").touch(), os._exit(1))
def test_fourth(): pass
def test_fifth(): pathlib.Path("fifth").touch()
"""


@pytest.mark.deep
def test_a_process_in_place_of_one_that_died_runs_what_is_left(
    project: pytest.Pytester, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What passed since the start is noted by then: were it left out of its list alone, it would run other tests."""
    (project.path / "checks" / "test_both.py").write_text(DIES)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    outcomes = project.runpytest_subprocess(option, "-n", "1", "-p", "no:cacheprovider").parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"]) == (4, 1)
    assert (project.path / "fifth").exists()
    assert len((project.path / option.partition("=")[2]).read_text().splitlines()) == 4
    again = project.runpytest_subprocess(option, "-n", "1", "-p", "no:cacheprovider").parseoutcomes()
    assert again["passed"] == 1


def test_the_code_is_what_git_knows_of_it() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout of git")
    assert conftest.code() == conftest.code()
