"""The rows of recordings and of log directories are red where one of these is not what it must be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkaspec.audit import recorded
from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import find
from kafkaspec.judge import alter
from kafkaspec.judge.alter import Alteration, AlterationCounts
from kafkaspec.verify.engine import AUDIT, established
from kafkaspec.verify.row import Row, Unit

(SHORT,) = (r for r in find("leader_epochs").recordings if r.file == "kafka-2.8.2-leader_epochs-truncation.ndjson")
"""Three lines: a truncation that an older release writes at once, rejected at step 2."""


def red(unit: Unit) -> list[Row]:
    return [r for r in established(unit, 1)[1] if not r.ok]


@pytest.mark.parametrize(
    ("recording", "why"),
    [
        (SHORT, ""),
        (replace(SHORT, verdict="accepted", at=None), "rejected at step 2, expected accepted"),
        (replace(SHORT, at=1), "rejected at step 2, expected rejected at step 1"),
        (replace(SHORT, deviations=("LEC-D1",)), "met deviations none, expected ['LEC-D1']"),
    ],
)
def test_a_recording_that_gets_another_verdict_is_red(
    recording: Recording, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkaspec.contract.subsystem.manifest", lambda: (recording,))
    found = [r for r in red(Unit("leader_epochs", "recordings", 0)) if r.what == recording.file]
    assert [why in r.why for r in found] == ([True] if why else [])


def test_an_alteration_that_is_accepted_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    hole = Alteration(2, "result", {"op": "size", "result": 2}, "accepted")
    monkeypatch.setattr(alter, "altered", lambda *_, **__: AlterationCounts(1, 0, 0, (hole,)))
    (row,) = red(Unit("leader_epochs", "recordings", find("leader_epochs").recordings.index(SHORT)))
    assert row.what == f"{SHORT.file}, altered"
    assert row.why == f"{SHORT.file}:2: result altered in {hole.after!r}: accepted"


def test_log_directories_that_are_audited_wrongly_are_red(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [r for r in recorded.recorded() if r.truth is not None]
    small = min(known, key=lambda r: r.archive.stat().st_size)
    monkeypatch.setattr(recorded, "recorded", lambda: (small,))
    monkeypatch.setattr(recorded, "wrongly_audited", lambda *_: ["a finding"])
    monkeypatch.setattr(recorded, "disagreements", lambda *_: ["a record that no client wrote"])
    monkeypatch.setattr(recorded, "miscounted", lambda *_: ["a wrong sum"])
    (row,) = red(Unit(AUDIT, "log directories", 0))
    assert row.why.splitlines() == ["a finding", "a record that no client wrote", "a wrong sum"]


def test_damage_that_is_not_found_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "missed", lambda *_: (3, ["a cut segment: nothing is found"]))
    assert [r.why for r in red(Unit(AUDIT, "log directories, damaged", 0))] == ["a cut segment: nothing is found"]
