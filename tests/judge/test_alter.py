"""Altered traces are rejected, and the helper that says so can itself go red."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaspec.contract.machine import Fields
from kafkaspec.contract.subsystem import find
from kafkaspec.judge.alter import _other, altered
from tests.judge.test_check import LONG, lines, recorded
from tests.lockstep import toy


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "toy.ndjson"
    path.write_bytes(b'{"op":"init","args":{"capacity":3},"result":null}\n' + b"\n".join(lines(recorded(LONG))))
    return path


def test_every_alteration_is_rejected_at_its_line(trace: Path) -> None:
    a = altered(toy.machine, trace)
    assert (a.later, a.accepted) == (0, ())
    assert a.tried > 100
    assert altered(toy.machine, trace, share=0.1).tried < a.tried / 4


def test_what_is_altered_is_another_value() -> None:
    for value in (None, True, False, "", "x", 0, -1, 2**63, 0.0, 1.5, 1e300, -1e300, 2.0**53):
        assert _other(value) != value


class AnyNumber(float):
    """Equal to all."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = float.__hash__


def test_a_spec_that_does_not_look_is_found_out(trace: Path) -> None:
    machine = toy.build()
    machine.observe = lambda s: Fields({**toy.observe(s), "turnedAway": AnyNumber()})
    a = altered(machine, trace)
    assert {x.path for x in a.accepted} == {"state.turnedAway"}


def test_a_rejection_by_no_clause_is_found_out(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkaspec.judge.check.Check.cited", lambda *_: ())
    a = altered(toy.machine, trace)
    assert {x.verdict for x in a.accepted} == {"rejected by no clause"}
    assert len(a.accepted) > a.tried / 2


def test_each_alteration_is_checked_as_a_trace_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lines leave out is tried in so many calls for each, not for all together."""
    for module in ("check", "alter"):
        monkeypatch.setattr(f"kafkaspec.judge.{module}.MAX_CALLS", 100)
    monkeypatch.setattr("kafkaspec.judge.check.MAX_CALLS_A_LINE", 5)
    s = find("timeline")
    (r,) = (r for r in s.recordings if r.file == "timeline-monotonic.ndjson")
    a = altered(s.spec.machine, r.path, share=0.02)
    assert a.accepted == ()
