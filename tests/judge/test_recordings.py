"""Real recordings: the verdict each must get, what becomes of altered copies, and the histories of the deviations."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from typing import Any

import orjson
import pytest

from kafkaspec.contract.deviation import NEWEST, Deviation, shown
from kafkaspec.contract.history import numbered, outcome
from kafkaspec.contract.machine import Machine
from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import subsystems
from kafkaspec.errors import UserError
from kafkaspec.judge.alter import altered
from kafkaspec.judge.check import Check, check
from kafkaspec.judge.recorded import check_recording, unexpected
from tests.layers import a_row_of_verify
from tests.lockstep import toy

SHARE = 1.0 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 0.03

RECORDED = [(s.spec.machine, r) for s in subsystems().values() for r in s.recordings]
SMALLEST = [min(s.recordings, key=lambda r: r.path.stat().st_size) for s in subsystems().values() if s.recordings]
"""One of each subsystem. A row of verify alters fewer values, of every recording."""
ALTERED = [pytest.param(m, r, marks=[] if r in SMALLEST else [a_row_of_verify]) for m, r in RECORDED]
RELEASES = (NEWEST, "3.9.1", "3.0.0", "2.8.2")
"""Some in which every deviation shows in one."""
DEVIATIONS = [(s.spec.machine, d) for s in subsystems().values() for d in s.spec.machine.deviations]


def name(x: Any) -> str:
    return x.file if isinstance(x, Recording) else x.id if isinstance(x, Deviation) else ""


@pytest.mark.parametrize(("machine", "recording"), RECORDED, ids=name)
def test_the_verdict_is_the_expected_one(machine: Machine[Any], recording: Recording) -> None:
    assert recording.source
    assert unexpected(recording, check_recording(recording, machine)) == ""


def goes_on(machine: Machine[Any], recording: Recording, lines: Iterable[bytes]) -> int | None:
    """The first line behind a deviation after which nothing is compared, in one history."""
    check = Check(machine, recording.file, release=recording.release)
    for number, text in enumerate(lines, 1):
        line = check.validated(orjson.loads(text), number)
        if line.op == "init":
            ended = check.begin(line)
        elif any(lost(possible.ghosts[at]) for possible in check.frontier for _, lost, at in check.losing):
            return number
        else:
            ended = check.settled(line, check.explanations(line, None))
        if ended is not None:
            break
    return None


def lines_of(recording: Recording) -> list[bytes]:
    data = recording.path.read_bytes()
    return (gzip.decompress(data) if recording.path.suffix == ".gz" else data).splitlines()


LOSING = [(m, r) for m, r in RECORDED if any(d.lost is not None for d in m.deviations)]


@pytest.mark.parametrize(("machine", "recording"), LOSING, ids=name)
def test_no_history_goes_on_where_nothing_is_compared(machine: Machine[Any], recording: Recording) -> None:
    """Whatever came behind would be accepted."""
    lines = lines_of(recording)
    assert goes_on(machine, recording, lines) is None


def test_a_history_that_goes_on_is_found() -> None:
    """One of a known deviation, and its last call once more behind it."""
    machine, recording = next((m, r) for m, r in LOSING if m.name == "raft" and "4.3.0" in r.file)
    lines = lines_of(recording)
    ends = next(n for n, line in enumerate(lines) if b"Expected to be Follower" in line)
    again = {**orjson.loads(lines[ends]), "i": ends + 1}
    assert goes_on(machine, recording, [*lines[: ends + 1], orjson.dumps(again)]) == ends + 2


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("machine", "recording"), ALTERED, ids=name)
def test_one_value_altered_is_rejected_there(machine: Machine[Any], recording: Recording) -> None:
    found = altered(machine, recording.path, share=SHARE, seed=1, release=recording.release)
    assert found.tried > (20 if recording.path.stat().st_size > 10_000 else 1)
    assert [f"{a.line}: {a.path}: {a.after}: {a.verdict}" for a in found.accepted] == []
    assert found.later == 0


@pytest.mark.parametrize(("machine", "deviation"), DEVIATIONS, ids=name)
def test_a_deviation_shows_in_its_history_and_is_accepted_there_only(
    machine: Machine[Any], deviation: Deviation
) -> None:
    right, wrong = shown(machine, deviation)
    assert right != wrong
    release = next(r for r in RELEASES if deviation.shows_in(r))
    records = [r for _, r in numbered("\n".join(deviation.history), deviation.id)]
    last = {**records[-1], **outcome(wrong.result), "state": wrong.observation}
    lines = trace(records[:-1], last)
    verdict = check(machine, lines, release=release)
    assert verdict.verdict == "accepted", verdict.text()
    assert list(verdict.deviations) == [deviation.id]
    strict = check(machine, lines, strict=True, release=release)
    assert (strict.verdict, strict.step) == ("rejected", len(records) - 1)
    right_answer = {**records[-1], **outcome(right.result), "state": right.observation}
    assert not check(machine, trace(records[:-1], right_answer), release=release).deviations


def trace(before: list[dict[str, Any]], last: dict[str, Any]) -> list[bytes]:
    """Calls without their answers, and a last one with what was seen."""
    return [orjson.dumps({"i": i, **r}) for i, r in enumerate([*before, last])]


def test_what_is_wrong_with_a_verdict_is_said() -> None:
    good = check(toy.machine, [b'{"op":"save"}'])
    bad = check(toy.machine, [b'{"op":"pop","result":1}'])
    assert unexpected(Recording("f", "accepted"), good) == ""
    assert unexpected(Recording("f", "rejected", at=0), bad) == ""
    assert unexpected(Recording("f", "accepted"), bad) == "f: rejected at step 0, expected accepted"
    assert unexpected(Recording("f", "rejected", at=3), bad) == "f: rejected at step 0, expected rejected at step 3"
    assert unexpected(Recording("f", "accepted", deviations=("X",)), good) == "f: met deviations none, expected ['X']"
    with pytest.raises(UserError, match=r"recording none\.ndjson is not there"):
        check_recording(Recording("none.ndjson", "accepted"), toy.machine)
