"""The commands as they are run: what is printed, as tables and as JSON, and the exit status."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.cli.main import main

COUNTER = """
from typing import Annotated
from kafkaspec.language import Model, Range, Size, action, invariant, require, witness
N = Size("N")
class Counter(Model):
    n: Annotated[int, Range(0, N)]
    @action(who="clock")
    def up(s) -> None:
        require(s.n < N)
        s.next.n = s.n + 1
    @action(who="clock")
    def reset(s) -> None:
        require(s.n == N)
        s.next.n = 0
    @invariant()
    def small(s) -> bool:
        return s.n <= N
    @witness
    def full(s) -> bool:
        return s.n == N
"""
FALSE = COUNTER.replace("return s.n <= N", "return s.n < 3")
WEAK = (
    COUNTER.replace("    n: ", "    armed: bool\n    gone: bool\n    n: ", 1)
    + """
    @action()
    def skip(s) -> None:
        require(s.armed)
        s.next.gone = True
    @action()
    def arm(s) -> None:
        require(s.armed)
        s.next.armed = True
    @invariant()
    def still_here(s) -> bool:
        return not s.gone
"""
)
RESTS = (
    COUNTER
    + """
    @invariant()
    def far(s) -> bool:
        return s.n < 20
    @invariant()
    def other(s) -> bool:
        return s.n < 21
"""
)
VACUOUS = COUNTER.replace("return s.n == N", "return s.n < 0")
IDLE = COUNTER.replace("require(s.n == N)", "require(s.n > N)")
MANY = """
from typing import Annotated
from kafkaspec.language import Model, Range, Size, Sort, action, require
class P(Sort): ...
N = Size("N")
class Many(Model):
    n: dict[P, Annotated[int, Range(0, N)]]
    @action()
    def up(s, p: P) -> None:
        require(s.n[p] < N)
        s.next.n[p] = s.n[p] + 1
"""
UNCLAIMED = """
from kafkaspec.language import Model, action
class Unclaimed(Model):
    on: bool
    @action()
    def turn(s) -> None:
        s.next.on = not s.on
"""
ROOT = Path(__file__).parent.parent.parent
RECORDING = ROOT / "tests" / "recordings" / "timeline-monotonic.ndjson"


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as e:
        main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    assert isinstance(e.value.code, int)
    return e.value.code, out, err


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in [
        ("counter", COUNTER),
        ("false", FALSE),
        ("weak", WEAK),
        ("rests", RESTS),
        ("vacuous", VACUOUS),
        ("idle", IDLE),
    ]:
        (tmp_path / f"{name}.py").write_text(text)


EXPLORED: list[tuple[list[str], int, str]] = [
    (["counter.py", "-s", "N=5"], 0, "6 distinct, 7 generated, depth 6"),
    (["false.py", "-s", "N=5"], 1, "small is broken here"),
    (["vacuous.py", "-s", "N=5"], 1, "full: never reached"),
    (["idle.py", "-s", "N=5", "--deadlock"], 1, "reset: never taken"),
    (["idle.py", "-s", "N=5"], 1, "no action can be taken here"),
    (["counter.py", "-s", "N=500000", "--max-states", "1000"], 2, "a limit was reached first"),
]


@pytest.mark.parametrize(("arguments", "code", "text"), EXPLORED, ids=[" ".join(a) for a, _, _ in EXPLORED])
def test_explore(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, text: str) -> None:
    got, out, err = run(capsys, "explore", *arguments)
    assert (got, err) == (code, "")
    assert text in out
    assert not any(line.endswith(" ") for line in out.splitlines())


def test_explore_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explore", "false.py", "-s", "N=5", "--json")
    (result,) = json.loads(out)
    assert code == 1
    assert (result["type"], result["outcome"], result["trace"]["claim"]) == ("Exploration", "violation", "small")
    assert [s["state"]["n"] for s in result["trace"]["steps"]] == [0, 1, 2, 3]


def test_prove(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "prove", "counter.py")[0] == 0
    code, out, _ = run(capsys, "prove", "false.py")
    assert code == 1
    assert "small is false, as exploring shows" in out
    code, out, _ = run(capsys, "prove", "weak.py")
    assert code == 1
    assert "a state that satisfies every claim" in out
    assert run(capsys, "prove", "counter.py", "--only", "smal")[2].startswith(
        "kafkaspec: unknown claim of Counter 'smal'; did you mean 'small'?"
    )


def test_what_has_nothing_to_prove_costs_no_other_model_its_proof(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "two.py").write_text(UNCLAIMED + FALSE)
    code, out, error = run(capsys, "prove", "two.py")
    assert code == 1
    assert error.splitlines() == [
        "kafkaspec: Unclaimed has nothing to prove: no invariant, lemma, step property or limited type"
    ]
    assert "small is false, as exploring shows" in out
    assert run(capsys, "prove", "two.py:Unclaimed")[0] == 2


def test_prove_only(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "prove", "rests.py", "--only", "small")
    assert code == 0
    assert "proved for every size: small, with what it rests on" in out
    code, out, _ = run(capsys, "prove", "rests.py", "--only", "other")
    assert code == 2
    assert "as far is not proved" in out
    code, out, _ = run(capsys, "prove", "rests.py", "--only", "far", "--json")
    assert code == 2
    assert json.loads(out)[0]["outcome"] == "unknown"
    assert run(capsys, "prove", "false.py", "--only", "small")[0] == 1


def test_check_accepts_rejects_and_cannot_judge(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, "check", RECORDING)[0] == 0
    code, out, _ = run(capsys, "check", RECORDING, "--strict")
    assert code == 1
    again = re.findall("to see it again: kafkaspec (.*)", out)
    assert [run(capsys, *shlex.split(command))[0] for command in again] == [1]
    altered = tmp_path / "altered-timeline.ndjson"
    altered.write_bytes(RECORDING.read_bytes().replace(b'"mapSize":1', b'"mapSize":7', 1))
    code, out, _ = run(capsys, "check", altered)
    assert code == 1
    assert "rejected at step" in out
    garbage = tmp_path / "garbage.ndjson"
    garbage.write_text("{\n")
    code, out, err = run(capsys, "check", RECORDING, garbage)
    assert code == 2
    assert "accepted" in out
    assert err == f"kafkaspec: {garbage.name}:1: not JSON: unexpected end of data at column 2\n" or "not JSON" in err


def test_check_writes_json_and_a_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "check", RECORDING, "--json", "--html", tmp_path / "deep" / "page.html")
    (verdict,) = json.loads(out)
    assert (code, verdict["type"], verdict["verdict"]) == (0, "Verdict", "accepted")
    assert "page.html" in err
    assert "<html" in (tmp_path / "deep" / "page.html").read_text()


def test_check_reads_standard_input() -> None:
    command = [sys.executable, "-m", "kafkaspec", "check", "-"]
    done = subprocess.run(command, input=RECORDING.read_bytes(), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"standard input" in done.stdout


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", "tml-1")
    assert code == 0
    assert out.startswith("TML-1\n")
    assert "@machine.operation" in out
    whole: dict[str, Any] = json.loads(run(capsys, "explain", "TML-1", "--json")[1])
    assert whole["id"] == "TML-1"
    assert {"spec", "model", "proof", "test", "mutant"} <= {f["form"] for f in whole["forms"]} | whole["without"].keys()


def test_export(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for to, files in [("tla", ["Counter.cfg", "Counter.tla"]), ("smtlib", ["Counter.up.small.smt2"])]:
        assert run(capsys, "export", "counter.py", "--to", to, "--out", tmp_path / to, "-s", "N=2")[0] == 0
        assert {f.name for f in (tmp_path / to).iterdir()} >= set(files)
    assert run(capsys, "export", "counter.py", "--to", "smtlib", "--out", tmp_path / "every")[0] == 0  # they are open
    assert {f.name for f in (tmp_path / "every").iterdir()} == {f.name for f in (tmp_path / "smtlib").iterdir()}
    run(capsys, "export", "counter.py", "--to", "itf", "--out", tmp_path / "itf", "-s", "N=2")
    (trace,) = (tmp_path / "itf").iterdir()
    assert trace.name == "Counter-witness-full.itf.json"
    assert json.loads(trace.read_text())["vars"] == ["n"]


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kafkaspec", "explain", "TML-1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait() == 141


def test_without_contracts_nothing_is_checked() -> None:
    command = [sys.executable, "-O", "-m", "kafkaspec", "verify", "leader_epochs"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("kafkaspec: Python leaves out contracts and assertions (-O, PYTHONOPTIMIZE)")


def test_ctrl_c_ends_a_long_run_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(MANY)
    command = [sys.executable, "-m", "kafkaspec", "explore", "many.py", "-s", "P=9", "-s", "N=30", "--resume", "kept"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
    until, threads = time.monotonic() + 60, Path(f"/proc/{process.pid}/task")
    while len([*threads.iterdir()]) == 1 and time.monotonic() < until:  # the search's own are not at work yet
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, b"")
    assert err == b"kafkaspec: interrupted; the same command goes on from kept\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    secret = tmp_path / "secret.ndjson"
    secret.write_text("{}")
    secret.chmod(0)
    assert run(capsys, "check", secret) == (2, "", f"kafkaspec: {secret}: permission denied\n")
