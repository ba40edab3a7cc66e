"""What people are told when something is wrong: one line on standard error, and the exit status."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from kafkaspec.cli.main import app, main

MODEL = """
from typing import Annotated
from kafkaspec.language import Flag, Model, Range, Size, Sort, action, invariant, require
class P(Sort): ...
N = Size("N")
FAST = Flag("FAST")
class Small(Model):
    n: dict[P, Annotated[int, Range(0, N)]]
    @action()
    def up(s, p: P) -> None:
        require(s.n[p] < N, FAST)
        s.next.n[p] = s.n[p] + 1
    @action()
    def down(s, p: P) -> None:
        require(s.n[p] > 0)
        s.next.n[p] = s.n[p] - 1
"""
SIZES = ["-s", "P=1", "-s", "N=1", "-s", "FAST=true"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as e:
        main(list(arguments))
    out, err = capsys.readouterr()
    assert isinstance(e.value.code, int)
    return e.value.code, out, err


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.py").write_text(MODEL)
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "broken.py").write_text("x = 1\ndef f(:\n")
    (tmp_path / "failing.py").write_text("x = 1\ny = 1 / 0\n")
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit()\n")
    (tmp_path / "mute.py").write_text("class Mute(Exception):\n    __str__ = None\nraise Mute\n")
    (tmp_path / "wrong.py").write_text("raise ValueError\n")
    (tmp_path / "asked.py").write_text(MODEL + "L = 1 if N > 2 else 0\n")
    (tmp_path / "binary.py").write_bytes(bytes(range(256)))
    (tmp_path / "latin.py").write_bytes(b"x = 1\n\n# caf\xe9\n")
    (tmp_path / "nul.py").write_bytes(b"x = 1\ny = \0\n")
    (tmp_path / "nots.py").write_text(f"x = 1\ny = (\n{'not ' * 9_000}x)\nz = [1, 2, 3]\n")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "large.py").touch()
    os.truncate(tmp_path / "large.py", 1 << 40)
    (tmp_path / "faulty.py").write_text(MODEL.replace("s.next.n[p] = s.n[p] - 1", "s.next.m[p] = s.n[p] - 1"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.ndjson").write_text("")
    (tmp_path / "garbage.ndjson").write_text("this is no trace\n")
    (tmp_path / "binary.ndjson").write_bytes(bytes(range(256)) * 4)


ERRORS: list[tuple[list[str], str]] = [
    # names
    (["exploer"], "no such command 'exploer'. Did you mean 'explore', 'export'? (see kafkaspec --help)"),
    (["explore", "--thrads"], "no such option: --thrads (Possible options: --threads) (see kafkaspec explore --help)"),
    (["explore"], "missing argument 'MODEL' (see kafkaspec explore --help)"),
    (["explore", "leaving.py"], "leaving.py:2: SystemExit"),
    (["explore", "mute.py"], "mute.py:3: Mute"),
    (["explore", "wrong.py"], "wrong.py:1: ValueError"),
    (
        ["explore", "asked.py"],
        "asked.py:17: a size has no value here, so that Python cannot test it",
    ),
    (
        ["explore", "small.py", *SIZES, "--walk", "1", "--resume", "x"],
        "--resume: a random walk has none",
    ),
    (["explore", "small.py", *SIZES, "--max-memory", "9" * 30], "9999 is not in the range 64<=x<="),
    (["explore", "cleanr"], "unknown model 'cleanr'; did you mean 'cleaner'?"),
    (["explore", "small.py:Smal"], "unknown model of small.py 'Smal'; did you mean 'Small'? (known: Small)"),
    (["explore", "no.such.module"], "no module named 'no'"),
    (["explore", "kafkaspec.models.nothing"], "no module named 'kafkaspec.models.nothing'"),
    (["verify", "timelin"], "unknown subsystem 'timelin'; did you mean 'timeline'?"),
    (["explain", "TML-9999"], "unknown clause 'TML-9999': timeline has TML-1 to TML-"),
    (["explain", "tml"], "unknown clause 'TML': timeline has TML-1 to TML-"),
    (
        ["explain", "PSX-9"],
        "unknown clause 'PSX-9': no subsystem has the prefix 'PSX'; did you mean 'PSM-9', of producer_state?",
    ),
    (
        ["explain", "PSX-99"],
        "unknown clause 'PSX-99': no subsystem has the prefix 'PSX'; did you mean PSM, of producer",
    ),
    (["explain", "XYZ-1"], "unknown clause 'XYZ-1': no subsystem has the prefix 'XYZ' (there are BAT, "),
    (
        ["explain", "LEC-D1"],
        "unknown clause 'LEC-D1': it is a known deviation of released Kafka, which kafkaspec explain LEC-17",
    ),
    (["mutants", "timelin"], "unknown subsystem 'timelin'; did you mean 'timeline'?"),
    (["export", "small.py", "--to", "tls", "--out", "o", *SIZES], "unknown format 'tls'; did you mean 'tla'?"),
    # sizes and numbers
    (["explore", "small.py"], "Small needs sizes: --size P=2 --size N=2 --size FAST=true"),
    (["explore", "small.py", "-s", "P=x"], "--size P=x: not a whole number from 1 to 999999999"),
    (["explore", "small.py", "-s", "P=0"], "--size P=0: not a whole number from 1 to 999999999"),
    (["explore", "small.py", "-s", "P=-1"], "--size P=-1: not a whole number from 1 to 999999999"),
    (["explore", "small.py", "-s", "P=99999999999"], "--size P=99999999999: not a whole number from 1 to 999999999"),
    (["explore", "small.py", "-s", "P"], "--size P: not of the form NAME=NUMBER"),
    (["explore", "small.py", "-s", "FAST=2"], "--size FAST=2: FAST is a flag: true or false"),
    (["explore", "small.py", "-s", "Q=2"], "unknown size of Small 'Q' (known: FAST, N, P)"),
    (["campaign", "timeline", "--seeds", "5:5", "--out", "o"], "--seeds 5:5: no seed in it (the end is not included)"),
    (["campaign", "timeline", "--seeds", "a", "--out", "o"], "--seeds a: not of the form FIRST:END, such as 0:1000"),
    (["simulate", "--seeds", "5:5"], "--seeds 5:5: no seed in it (the end is not included)"),
    (["simulate", "--seed", "1", "--seeds", "0:2"], "--seed and --seeds: one of them says which"),
    (["simulate", "--schedule", "swam"], "unknown schedule 'swam'; did you mean 'swarm'?"),
    (["simulate", "replicatio"], "unknown scenario 'replicatio'; did you mean 'replication'?"),
    (["simulate", "empty.py"], "empty.py: no scenario in it (a kafkaspec.simulate.Scenario)"),
    (["simulate", "absent.py"], "absent.py: no such file"),
    (["simulate", "broken.py:X"], "broken.py:2: invalid syntax"),
    (["simulate", "--replay", "absent.json"], "absent.json: no such file"),
    (["simulate", "--replay", "empty.ndjson"], "empty.ndjson: is not JSON"),
    (["simulate", "--replay", "absent.json", "--seed", "1"], "--seed: a replay has none; the file says what happens"),
    (["simulate", "--full"], "--full: is for a replay"),
    (["simulate", "--seed", "0", "--out", "small.py"], "small.py"),
    (["simulate", "--threads", "2", "--spark", "local[2]"], "--threads: with --spark its master says how many cores"),
    (["explore", "small.py", "--threads", "0"], "invalid value for '--threads'"),
    (["audit", "folder", "--threads", "0"], "invalid value for '--threads'"),
    (
        ["audit", "folder", "--threads", "2", "--spark", "local[2]"],
        "--threads: with --spark its master says how many cores there are",
    ),
    (["prove", "small.py", "--timeout", "inf"], "invalid value for '--timeout'"),
    (["audit", "folder", "--watch", "inf"], "invalid value for '--watch': inf is not in the range 0.1<=x<=1000000"),
    (["simulate", "quorum", "--time", "nan"], "invalid value for '--time': nan is not a number"),
    # files
    (["explore", "absent.py"], "absent.py: no such file"),
    (["explore", "folder/"], "folder: is a directory"),
    (["explore", "empty.py"], "empty.py: no model in it"),
    (["explore", "broken.py"], "broken.py:2: invalid syntax"),
    (["explore", "failing.py"], "failing.py:2: ZeroDivisionError: division by zero"),
    (["explore", "binary.py"], "binary.py:"),
    (["explore", "large.py"], "large.py: 1,099,511,627,776 bytes, and a text has at most 16,777,216"),
    (["explore", "pipe.py"], "pipe.py: not a regular file"),
    (["explore", "latin.py"], "latin.py:3: byte 0xe9 is no text in utf-8"),
    (["explore", "nul.py"], "nul.py:2: a NUL byte, which no text of Python has"),
    (["explore", "nots.py"], "nots.py:2: nested too deeply to be read"),
    (["explore", "faulty.py", *SIZES], "faulty.py:16: Small has no variable m"),
    (["check", "absent.ndjson"], "absent.ndjson: no such file"),
    (["check", "folder"], "folder: is a directory"),
    (["check", "empty.ndjson"], "empty.ndjson: is empty"),
    (["check", "garbage.ndjson"], "garbage.ndjson:1: "),
    (["check", "binary.ndjson"], "binary.ndjson:1: "),
    (["check", "garbage.ndjson", "--subsystem", "timelin"], "unknown subsystem 'timelin'; did you mean 'timeline'?"),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS, ids=[" ".join(a) for a, _ in ERRORS])
def test_an_error_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("kafkaspec: ")
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
BEYOND = {"float range": ["nan", "inf", "-inf", "1e300", "-1"], "int range": ["9" * 30, "-1"]}
"""numbers that no clock, counter or file can hold, by the types of options"""
OPTIONS = [(name, o) for name, c in COMMANDS.items() for o in c.params if o.param_type_name == "option"]


def test_an_option_that_takes_a_number_has_a_range() -> None:
    assert {o.type.name for _, o in OPTIONS} & {"float", "int", "integer", *BEYOND} == BEYOND.keys()


@pytest.mark.parametrize(
    ("command", "option", "value"), [(n, o.opts[0], v) for n, o in OPTIONS for v in BEYOND.get(o.type.name, [])]
)
def test_an_option_takes_no_number_beyond_what_can_be_counted(command: str, option: str, value: str) -> None:
    with pytest.raises(typer.BadParameter, match=r" is not "):
        COMMANDS[command].make_context(command, [f"{option}={value}"], resilient_parsing=False)


def test_a_bug_of_ours_is_one_line_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def bad(*_: object, **__: object) -> int:
        raise KeyError("lost")

    monkeypatch.setattr("kafkaspec.cli.explain.run", bad)
    code, _, err = run(capsys, "explain", "TML-1")
    assert code == 2
    assert err.count("\n") == 1
    assert "KeyError: 'lost' at test_errors.py:" in err
    assert "this is a bug of kafkaspec" in err


def test_an_interrupt_says_so_and_is_status_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafkaspec.cli.explain.run", interrupted)
    code, _, err = run(capsys, "explain", "TML-1")
    assert (code, err) == (130, "kafkaspec: interrupted\n")


def test_a_model_may_import_its_neighbours_and_hides_no_library(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "folder" / "neighbour.py").write_text("MOST = 3\n")
    (tmp_path / "folder" / "z3.py").write_text("raise RuntimeError\n")
    (tmp_path / "folder" / "model.py").write_text(
        "import neighbour\n" + MODEL.replace("N)", "neighbour.MOST)").replace("< N", "< neighbour.MOST")
    )
    code, out, err = run(capsys, "prove", "folder/model.py")
    assert (code, err) == (0, ""), out


def test_a_walk_is_seen_again_at_its_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "explore", "small.py", *SIZES, "--walk", "1", "--steps", "50")
    (again,) = re.findall("to see it again: kafkaspec (.*)", out)
    assert "-s FAST=true" in again
    taken = [re.findall(r"^ +(up|down) +([0-9]+)$", text, re.M) for text in (out, run(capsys, *again.split())[1])]
    assert taken[0] == taken[1] != []
