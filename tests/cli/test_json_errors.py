"""What `--json` prints when something cannot be judged: a document nevertheless, with the error in the place of its
result. The line on standard error and the exit status are the same as without."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.cli.main import main
from tests.cli import test_errors
from tests.cli.test_commands import COUNTER, UNCLAIMED
from tests.cli.test_errors import ERRORS

RECORDING = Path(__file__).parent.parent / "recordings" / "checkpoints-further.ndjson"
SOUND = shlex.join([sys.executable, str(Path(__file__).parents[2] / "targets/examples/python/leader_epochs.py")])
BROKEN = """
class Broken(Model):
    m: bool
    @action()
    def turn(s) -> None:
        s.next.n = not s.m
"""

_here = test_errors._here
"""the files that the errors are about"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, Any, str]:
    """Exit status, the one document on standard output, and standard error."""
    with pytest.raises(SystemExit) as e:
        main([*map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    assert isinstance(e.value.code, int)
    return e.value.code, json.loads(out), err


def unjudged(source: str, problem: str) -> dict[str, Any]:
    return {"type": "ErrorReport", "source": source, "verdict": "could not judge", "problems": [problem]}


def named(document: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    """Type and source, model or text of each element."""
    return [(d["type"], d.get("source") or d.get("model")) for d in document]


@pytest.mark.parametrize(("arguments", "message"), ERRORS, ids=[" ".join(a) for a, _ in ERRORS])
def test_an_error_is_a_document_too(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    code, (told,), err = run(capsys, *arguments)
    assert code == 2
    assert message in err
    assert err == f"kafkaspec: {told['problems'][0]}\n"
    assert told == unjudged(told["source"], told["problems"][0])


def test_a_bad_recording_stands_in_its_place_in_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    code, document, err = run(capsys, "check", "garbage.ndjson", RECORDING, "absent.ndjson")
    assert code == 2
    assert named(document) == [
        ("ErrorReport", "garbage.ndjson"),
        ("Verdict", str(RECORDING)),
        ("ErrorReport", "absent.ndjson"),
    ]
    assert [f"kafkaspec: {d['problems'][0]}" for d in document[::2]] == err.splitlines()
    assert document[2] == unjudged("absent.ndjson", "absent.ndjson: no such file")


@pytest.mark.parametrize("command", ["explore", "prove", "walk", "export"])
def test_a_bad_model_stands_in_its_place_in_the_list(
    capsys: pytest.CaptureFixture[str], command: str, tmp_path: Path
) -> None:
    (tmp_path / "two.py").write_text(
        COUNTER.replace("class Counter", "class First")
        + BROKEN
        + COUNTER.partition("N = Size")[2].replace("class Counter", "class Last").removeprefix('("N")')
        + "from kafkaspec.explore.checked import Expectation\n"
        + "MODELS = [Expectation(m, dict(N=2) if m is not Broken else {}, 0, 0, 0) for m in (First, Broken, Last)]\n"
    )
    options = {"walk": ["--walk", "1", "--steps", "9"], "export": ["--to", "tla", "--out", "out"]}.get(command, [])
    code, document, err = run(capsys, "explore" if command == "walk" else command, "two.py", *options)
    assert code == 2
    if command == "export":
        assert document[:2] + document[3:] == [f"out/{m}.{x}" for m in ("First", "Last") for x in ("tla", "cfg")]
        broken = document[2]
    else:
        first, broken, last = document
        assert [(d["type"], d["model"]) for d in (first, last)] == [
            ({"explore": "Exploration", "prove": "ProofResult", "walk": "RandomWalk"}[command], m)
            for m in ("First", "Last")
        ]
    assert broken["source"] == "Broken"
    assert f"kafkaspec: {broken['problems'][0]}" in err.splitlines()
    assert "Broken has no variable n" in broken["problems"][0]


def test_what_has_nothing_to_prove_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "unclaimed.py").write_text(UNCLAIMED)
    code, (told,), err = run(capsys, "prove", "unclaimed.py")
    assert (code, err) == (2, f"kafkaspec: {told['problems'][0]}\n")
    assert told["source"] == "Unclaimed"


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (shlex.join([sys.executable, "-c", "raise SystemExit(3)"]), "the target died: exit status 3"),
        ("./absent", "the target does not start: "),
        (f"{SOUND} --json", "leader_epochs.py does not offer timeline"),
    ],
)
def test_a_target_that_does_not_start(capsys: pytest.CaptureFixture[str], target: str, problem: str) -> None:
    code, (told,), err = run(capsys, "judge", "timeline", "--target", target)
    assert code == 2
    assert told == unjudged("", told["problems"][0])
    assert err == f"kafkaspec: {told['problems'][0]}\n"


def test_there_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    """What fails when a document is printed already prints no other."""
    code, document, err = run(capsys, "check", RECORDING, "--html", "folder")
    assert (code, named(document)) == (2, [("Verdict", str(RECORDING))])
    assert err == "kafkaspec: folder: cannot be written: is a directory\n"
    with pytest.raises(SystemExit):
        main(["check", "absent"])
    assert capsys.readouterr().out == ""


def test_an_interrupt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafkaspec.cli.engines._judge", interrupted)
    assert run(capsys, "check", RECORDING) == (130, [unjudged("", "interrupted")], "kafkaspec: interrupted\n")


def test_a_bug_of_ours(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def bad(*_: object, **__: object) -> int:
        raise KeyError("lost")

    monkeypatch.setattr("kafkaspec.cli.explain.run", bad)
    _, (told,), _ = run(capsys, "explain", "TML-1")
    assert "KeyError: 'lost'" in told["problems"][0]


def test_the_name_of_a_file_may_be_any_bytes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    good, bad = (os.fsdecode(n) for n in (b"good\xff.ndjson", b"bad\xff\x1b.ndjson"))
    (tmp_path / good).write_bytes(RECORDING.read_bytes())
    (tmp_path / bad).write_text("x")
    _, document, _ = run(capsys, "check", good, bad, "--subsystem", "checkpoints")
    assert [d["source"] for d in document] == ["good\\xff.ndjson", "bad\\xff\\x1b.ndjson"]
    assert document[1]["problems"][0].startswith("bad\\xff\\x1b.ndjson:1: not JSON: ")


def test_lines_have_a_line_for_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as e:
        main(["dump", "absent.log", "garbage.ndjson", "--json"])
    out, err = capsys.readouterr()
    told = [json.loads(line) for line in out.splitlines()]
    assert (e.value.code, named(told)) == (2, [("ErrorReport", "absent.log"), ("ErrorReport", "garbage.ndjson")])
    assert [f"kafkaspec: {t['problems'][0]}" for t in told] == err.splitlines()
    with pytest.raises(SystemExit):
        main(["audit", "absent", "--watch", "1", "--json"])
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["problems"] == ["absent: no such file or directory"]
