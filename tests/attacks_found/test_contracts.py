"""Postconditions that say less than their words: a faulty spec keeps them."""

from __future__ import annotations

from typing import Any

import pytest
from icontract import ViolationError

from kafkaspec.contract.codec import replace
from kafkaspec.contract.machine import Machine, Step
from kafkaspec.mutants.mutant import with_fault
from kafkaspec.spec.storage import high_watermark, replica_manager
from kafkaspec.spec.storage.replica_manager_parts.state import Answers, DeleteAnswer, DeleteResult

FOLLOWER = {"leader": 2, "leader_epoch": 1, "partition_epoch": 1, "leader_recovery_state": "RECOVERED"}


def after(machine: Machine[Any], calls: list[tuple[str, dict[str, Any]]]) -> Any:
    state = machine.initial()
    for name, arguments in calls:
        step = machine.apply(state, name, arguments, contracts=False)
        assert isinstance(step, Step)
        state = step.state
    return state


def test_a_follower_that_is_cut_fetches_from_within_the_leaders_log() -> None:
    """HWM-34: `leader_start <= result <= max(leader_end, result)` is true of every result above the start."""

    def keeps_its_log(state: Any, leader_start: int, leader_end: int) -> Any:
        return Step(state, state.log.log_end)

    sound = high_watermark.machine
    batches = {"batches": [[1, 5]], "high_watermark": 0, "log_start": 0}
    state = after(sound, [("makeFollower", FOLLOWER), ("processPartitionData", batches)])
    faulty = with_fault(sound, "fetchOffsetAndTruncate", keeps_its_log)
    with pytest.raises(ViolationError):
        faulty.apply(state, "fetchOffsetAndTruncate", {"leader_start": 0, "leader_end": 2})


RECORD = ["a", 1, 1, 0, 0, [1, 2], [1, 2], 0]
OTHER = ["b", 2, 1, 0, 0, [1, 2], [1, 2], 1]


def test_a_deletion_that_is_answered_without_an_error_is_done_everywhere() -> None:
    """RMG-16: it is looked only whether the low watermark is one."""

    def answers_at_once(state: Any, timeout_ms: int, internal_topics_allowed: bool, entries: Any) -> Any:
        answer = DeleteAnswer(state.requests, (DeleteResult("a", None, 0),))
        return Step(replace(state, requests=state.requests + 1), Answers.of([answer]))

    sound = replica_manager.machine
    append = {"timeout_ms": 0, "required_acks": 1, "internal_topics_allowed": False, "entries": [["a", 1]]}
    fetch = {
        "replica": 2, "broker_epoch": 12, "only_leader": True, "max_wait_ms": 0, "min_bytes": 0,
        "entries": [["a", 1, 0, None, 1, 0]],
    }  # fmt: skip
    state = after(sound, [("applyDelta", {"record": RECORD}), ("appendRecords", append), ("fetchMessages", fetch)])
    faulty = with_fault(sound, "deleteRecords", answers_at_once)
    arguments = {"timeout_ms": 100, "internal_topics_allowed": False, "entries": [["a", 1]]}
    with pytest.raises(ViolationError):
        faulty.apply(state, "deleteRecords", arguments)


def test_the_partitions_of_the_other_directory_stay_online() -> None:
    """RMG-24: nothing is said of them."""

    def all_go_offline(state: Any, directory: int) -> Any:
        hosted = tuple(replace(h, online=False) for h in state.hosted)
        return replace(state, hosted=hosted, failed=(*state.failed, directory))

    sound = replica_manager.machine
    state = after(sound, [("applyDelta", {"record": RECORD}), ("applyDelta", {"record": OTHER})])
    faulty = with_fault(sound, "handleLogDirFailure", all_go_offline)
    with pytest.raises(ViolationError):
        faulty.apply(state, "handleLogDirFailure", {"directory": 0})
