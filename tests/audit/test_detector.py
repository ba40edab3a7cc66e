"""What implementations write, audited: the sound ones are found sound, and damage is seen."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.contract import subsystem
from kafkaspec.contract.subsystem import Subsystem
from kafkaspec.mutants.audit import (
    CLEAN,
    META,
    DirectoryLayout,
    WalkEnd,
    audit_detector,
    audited,
    found,
    log_file,
    one_record,
    walked,
    written_of,
)
from kafkaspec.mutants.matrix import NotApplicable, kill_matrix, written
from tests.lockstep import toy

WRITING = sorted(p.name.removesuffix("_written.py") for p in Path(__file__).parents[1].glob("*/*_written.py"))


@pytest.mark.parametrize("name", WRITING)
def test_what_the_sound_implementation_writes_is_sound(name: str) -> None:
    """And it is something: a walk that writes nothing would find nothing wrong."""
    s = subsystem.find(name)
    driver = s.layer("impl", "driver")
    assert driver is not None
    how = written_of(s)
    bytes_written = 0
    for seed in range(3):
        walk = walked(s.spec.machine, driver.Driver(), how, seed)
        assert walk.failed == ""
        files = how.files(walk)
        assert found(audited(files)) == ""
        bytes_written += sum(map(len, files.values()))
    assert bytes_written > 0


KILLED = {
    "batch": "the last timestamp",
    "checkpoints": "count line wrong",
    "leader_epochs": "contradictions stay",
    "log_loader": "every stop is clean",
    "meta_properties": "written in place",
    "offset_index": "equal offsets",
    "producer_state": "version 2 as version 1",
    "segment": "no last time entry",
    "time_index": "little-endian",
    "transaction_index": "the same marker twice",
}
"""One of each that is looked at; of a subsystem that is not here, all of its implementation."""


@pytest.mark.parametrize("name", WRITING)
def test_a_mutant_of_each_is_seen_in_its_files(name: str) -> None:
    s = subsystem.find(name)
    mutants = [m for m in written(s) if m.layer == "impl" and m.name == KILLED.get(name, m.name)]
    said = [row.detections["audit"].by for row in kill_matrix(s, mutants, [audit_detector()])]
    assert any(re.match(r"[A-Z]{3}-\d+: [\w.-]+: .* \(seed \d+\)", by) for by in said), said


def test_a_subsystem_without_files_is_not_audited() -> None:
    (row,) = kill_matrix(subsystem.find("timeline"), written(subsystem.find("timeline"))[-1:], [audit_detector()])
    assert row.detections["audit"].killed is None
    with pytest.raises(NotApplicable):
        written_of(Subsystem("toy", "lockstep"))


def test_walks_are_replayed_by_their_seed_and_keep_to_what_is_allowed() -> None:
    how = DirectoryLayout(lambda walk: {}, ("push", "push", "pop"), steps=6, last=[("save", {})])
    one, again, other = (walked(toy.machine, toy.Driver(), how, seed) for seed in (4, 4, 5))
    assert (one.state, one.calls) == (again.state, again.calls)
    assert one.state != other.state or one.calls != other.calls
    assert one.calls[-1].operation == "save"
    assert {c.operation for c in one.calls} <= {"push", "pop", "save"}
    assert one.driver.observe()["items"] == list(one.state.items)


def test_an_implementation_that_fails_is_called_no_more() -> None:
    class Fails(toy.Driver):
        def pop(self) -> Any:
            raise RuntimeError("broken")

    walk = walked(toy.machine, Fails(), DirectoryLayout(lambda walk: {}, ("push", "pop"), steps=50), 0)
    assert walk.failed == "RuntimeError: broken"
    assert walk.calls[-1].operation in ("push", "pop")


def test_files_are_audited_in_directories_of_their_own() -> None:
    log = log_file("data/t-0", 5, [one_record(5, leader_epoch=0), one_record(6, leader_epoch=0)])
    log["data/t-0/leader-epoch-checkpoint"] = b"0\n1\n0 5\n"
    assert found(audited({**log, "data/meta.properties": META})) == ""
    assert audited({}) is None
    torn = {**log, "data/t-0/00000000000000000005.log": log["data/t-0/00000000000000000005.log"][:-1]}
    assert found(
        audited({**torn, "data/t-0/00000000000000000009.log": b"", **{f"data/{k}": v for k, v in CLEAN.items()}})
    )
    assert "tests.storage.batch_written" in sys.modules or "batch" in WRITING


def test_the_walk_is_what_the_files_are_made_of() -> None:
    seen: list[WalkEnd] = []

    def files(walk: WalkEnd) -> dict[str, bytes]:
        seen.append(walk)
        return {}

    walk = walked(toy.machine, toy.Driver(), DirectoryLayout(files, ("push",), init={"capacity": 2}, steps=4), 0)
    assert walk.state.capacity == 2
    assert [c.result for c in walk.calls] == [1, 2]
    assert seen == []
