"""Files of somebody's own that are not what they ought to be: a line that names the file, and no bug of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkaspec.contract import subsystem, traceability
from kafkaspec.contract.machine import ByName
from kafkaspec.contract.subsystem import components, find
from kafkaspec.errors import UserError
from tests.cli.test_new import broken, run

NAMES = b'clause("TXI-1")\n'


def in_tests(content: bytes, root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is found of TXI in a project with that file of tests."""
    (root / "tests").mkdir()
    (root / "tests" / "test_mine.py").write_bytes(content)
    monkeypatch.setattr(traceability, "roots", lambda: [root])
    return traceability.in_tests.__wrapped__("TXI")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (NAMES + b"# \xff\xfe\n", "2: byte 0xff is no text in utf-8"),
        (NAMES + b"def (:\n", "2: invalid syntax"),
        (b"x = 1\n" + NAMES[:-2], "2: '(' was never closed"),
        (NAMES + b"x = \0\n", "2: a NUL byte, which no text of Python has"),
        (b"# coding: latin-9999\n" + NAMES, "1: unknown encoding: latin-9999"),
        (NAMES + b"x = " + b"not " * 60_000 + b"y\n", "2: nested too deeply to be read"),
    ],
    ids=["bytes", "syntax", "open", "nul", "encoding", "deep"],
)
def test_a_file_of_tests_that_is_no_python(
    content: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError) as e:
        in_tests(content, tmp_path, monkeypatch)
    assert str(e.value).startswith(f"tests/test_mine.py:{said}")


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"# coding: latin-1\n# caf\xe9\n"], ids=["", "mark", "latin"])
def test_a_file_of_tests_is_read_as_python_reads_it(
    before: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = b"import pytest\n@pytest.mark.clause('TXI-1')\n@pytest.mark.clause(\"TXI-1\")\ndef test_it(): ...\n"
    assert [u.clause for u in in_tests(before + test, tmp_path, monkeypatch)] == ["TXI-1", "TXI-1"]


def test_a_file_of_tests_that_names_no_clause_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_tests(b"\xff\xfe def (:\n", tmp_path, monkeypatch) == ()


class Bare:
    pass


class Whole:
    def reset(self, arguments: Any) -> None: ...

    def apply(self, name: str, arguments: Any) -> None: ...

    def observe(self) -> None: ...


class Asking(Whole):
    def __init__(self, x: int) -> None: ...


class WithoutMachine(ByName):
    pass


class WithoutReset(ByName):
    machine = find("leader_epochs").spec.machine

    def state(self) -> Any: ...


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        (None, "has no class Driver"),
        (5, "Driver is no class"),
        (Bare, "Driver has no `reset`"),
        (Asking, "Driver() cannot be made: missing a required argument: 'x'"),
        (WithoutMachine, "Driver has no `machine`"),
        (WithoutReset, "Driver has no `reset`"),
        (Whole, ""),
    ],
)
def test_a_class_that_is_no_driver(driver: Any, said: str) -> None:
    assert subsystem._not_a_driver(driver) == said


@pytest.mark.parametrize("name", components())
def test_ours_are_drivers(name: str) -> None:
    assert find(name).pairs()


def test_a_wrong_driver_is_one_line_with_its_file(tmp_path: Path) -> None:
    driver = "impl/toy/fence_driver.py"
    broken(tmp_path, driver, "class Driver", "class Drivers")
    for command in (["verify", "fence"], ["serve", "fence"]):
        assert run(*command, cwd=tmp_path, expect=2) == f"kafkaspec: {driver}: has no class Driver\n"


def test_a_text_that_is_not_utf_8_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_bytes(b"x = 1\n# \xff\n")
    with pytest.raises(UserError, match=r"^mine.py:2: byte 0xff is no text in utf-8$"):
        subsystem.text_of(tmp_path / "mine.py")
