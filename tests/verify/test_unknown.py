"""A row that could not be made is red, and the exit status tells it from one that is false: unknown is never green."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kafkaspec.cli import verify as command
from kafkaspec.contract.subsystem import Subsystem, find
from kafkaspec.lockstep import walk
from kafkaspec.verify.engine import established, units
from kafkaspec.verify.row import Row, Unit

HOLDS = Row("toy", "clauses", "complete", "", 0.1)
FALSE = Row("toy", "models", "explored", "", 0.1, "broken")
UNKNOWN = Row("toy", "proofs", "proved", "", 0.1, "the solver gave up", could_judge=False)


@pytest.mark.parametrize(
    ("rows", "status"),
    [([HOLDS], 0), ([HOLDS, UNKNOWN], 2), ([HOLDS, FALSE], 1), ([UNKNOWN, FALSE, HOLDS], 1)],
)
def test_the_exit_status(rows: list[Row], status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "verify", lambda *_, **__: rows)
    assert command.run([], seeds=1, only=None, changed=False, json=True) == status


def test_a_recording_that_is_not_there_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = replace(find("leader_epochs").recordings[0], file="gone.ndjson")
    monkeypatch.setattr("kafkaspec.contract.subsystem.manifest", lambda: (gone,))
    (row,) = established(Unit("leader_epochs", "recordings", 0), 1)[1]
    assert (row.ok, row.could_judge) == (False, False)
    assert row.why.startswith("recording gone.ndjson is not there")


def test_operations_that_nobody_answers_for_are_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Subsystem, "pairs", lambda _: [])
    (unit,) = units(["replicas"], "impl against spec")
    (row,) = established(unit, 1)[1]
    assert (row.ok, row.could_judge, row.why) == (False, False, "there is neither impl nor audit")


def test_a_protocol_has_no_operation_to_walk() -> None:
    assert {u.check for u in units(["replication"])} == {
        "clauses", "models", "proofs", "simulations",
    }  # fmt: skip


def test_an_operation_that_no_walk_calls_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    coverage = walk.Coverage()
    machine = find("replicas").spec.machine
    coverage.operations.update({name: 1 for name in machine.operations if name != "compareEpochs"})
    walked = SimpleNamespace(coverage=coverage, steps=1, failure=None)
    monkeypatch.setattr(walk, "walk", lambda *_, **__: walked)
    (row,) = established(Unit("replicas", "impl against spec", 0), 200)[1]
    assert row.why == "never called in 50 seeds: compareEpochs"
    assert established(Unit("replicas", "impl against spec", 0), 4)[1][0].ok, "too few walks to say so"
