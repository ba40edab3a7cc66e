"""High watermark: spec against impl, and the rules one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis.stateful import run_state_machine_as_test

from kafkaspec.contract.codec import replace
from kafkaspec.contract.machine import Outside, Refused
from kafkaspec.explore.engine import explore
from kafkaspec.impl.storage.high_watermark_driver import Driver
from kafkaspec.language import load
from kafkaspec.lockstep.exhaustive import check_refinement
from kafkaspec.lockstep.walk import state_machine
from kafkaspec.models.storage.high_watermark import AS_SPECIFIED, Changes
from kafkaspec.spec.storage import high_watermark as spec
from kafkaspec.spec.storage import high_watermark_trial as trial
from kafkaspec.spec.storage.high_watermark_parts import answers, fetches, moves
from kafkaspec.spec.storage.high_watermark_parts.contracts import has_risen, is_in_bounds
from kafkaspec.spec.storage.high_watermark_parts.replicas import (
    LOCAL,
    Assignment,
    FutureReplica,
    Log,
    Partition,
    maximal_isr,
)

NOW = 1_000_000
LAG = 30_000
EPOCHS = {2: 12, 3: 13}


class Broker:
    """Broker 1 with its replica, called by name; every call has its contracts, and the impl beside it."""

    def __init__(self, **config: Any) -> None:
        self.state: Partition = spec.machine.initial(**config)
        self.driver = Driver()
        self.driver.reset(config)

    def __call__(self, name: str, **arguments: Any) -> Any:
        step = spec.machine.apply(self.state, name, arguments)
        assert not isinstance(step, Outside), step
        self.state = step.state
        assert self.driver.apply(name, arguments) == step.result
        assert self.driver.state() == step.state
        return step.result

    def broker(self, id: int, epoch: int | None = None, fenced: bool = False, shutting_down: bool = False) -> None:
        epoch = EPOCHS[id] if epoch is None else epoch
        self("updateBroker", id=id, epoch=epoch, fenced=fenced, shutting_down=shutting_down)

    def lead(
        self, isr: list[int], *, epoch: int = 1, version: int = 1, replicas: tuple[int, ...] = (1, 2, 3),
        recovery: str = "RECOVERED",
    ) -> Any:  # fmt: skip
        return self(
            "makeLeader", leader_epoch=epoch, partition_epoch=version, replicas=[*replicas], isr=isr,
            leader_recovery_state=recovery,
        )  # fmt: skip

    def follow(self, leader: int = 2, *, epoch: int = 1, version: int = 1, recovery: str = "RECOVERED") -> Any:
        return self(
            "makeFollower", leader=leader, leader_epoch=epoch, partition_epoch=version, leader_recovery_state=recovery
        )

    def append(self, count: int = 1, acks: int = -1) -> Any:
        return self("appendRecordsToLeader", count=count, required_acks=acks)

    def fetch(
        self, id: int, offset: int, *, epoch: int | None = None, last: int | None = None, broker: int | None = None,
        start: int = 0,
    ) -> Any:  # fmt: skip
        return self(
            "fetchRecords", replica=id, broker_epoch=EPOCHS[id] if broker is None else broker,
            current_leader_epoch=epoch, last_fetched_epoch=last, offset=offset, log_start=start,
        )  # fmt: skip

    def copy(self, batches: list[list[int]], high: int = 0, start: int = 0) -> Any:
        """What the leader sends to this follower."""
        return self("processPartitionData", batches=batches, high_watermark=high, log_start=start)

    def done(self, isr: list[int], version: int, epoch: int = 1) -> Any:
        return self("alterPartitionSucceeded", leader_epoch=epoch, partition_epoch=version, isr=isr)

    def failed(self, error: str) -> Any:
        return self("alterPartitionFailed", error=error)

    def move(self, directory: int) -> Any:
        return self("alterReplicaLogDirs", directory=directory)

    def moves_on(self) -> None:
        """A round of the thread that moves the replica."""
        self("fetchFromCurrentReplica")

    def noted(self) -> None:
        """The controller has noted the directory that it was asked for."""
        self("assignReplicasToDirsSucceeded")

    def truncate(self, epoch: int, end_offset: int) -> Any:
        return self("truncateOnFetchResponse", epoch=epoch, end_offset=end_offset)

    @property
    def future(self) -> FutureReplica:
        assert self.state.future is not None
        return self.state.future

    def shrink(self) -> Any:
        return self("maybeShrinkIsr")

    def passes(self, ms: int) -> Any:
        return self("advance", ms=ms)

    @property
    def asked(self) -> Assignment | None:
        """What the controller is asked to note."""
        return self.state.assignment

    @property
    def high(self) -> int:
        return self.state.log.high_watermark

    @property
    def maximal(self) -> set[int]:
        return {*maximal_isr(self.state)}


def leader(isr: list[int], **config: Any) -> Broker:
    """Broker 1 leads brokers 2 and 3, which are as they registered."""
    b = Broker(**config)
    b.broker(2)
    b.broker(3)
    b.lead(isr)
    return b


def expanding() -> Broker:
    """A leader that waits for the answer whether broker 2 is in sync: it has one record of two."""
    b = leader([1])
    b.append(1, acks=1)
    b.fetch(2, 1)
    b.append(1, acks=1)
    assert (b.high, b.maximal, b.state.isr) == (1, {1, 2}, (1,))
    return b


def shrinking() -> Broker:
    """A leader that waits for the answer that broker 2 is not in sync: it has nothing of one record."""
    b = leader([1, 2], min_insync_replicas=1)
    b.append()
    b.passes(LAG + 1)
    b.shrink()
    assert (b.high, b.maximal, b.state.is_leader) == (0, {1, 2}, True)
    assert b.state.pending is not None
    return b


def test_impl_does_what_the_spec_says() -> None:
    run_state_machine_as_test(state_machine(spec.machine, Driver))


def test_what_there_is_not_is_shown() -> None:
    """A field that is left out is not compared: nothing would be told from something."""
    for state in (spec.machine.initial(), leader([1, 2]).state):
        assert spec.machine.observe(state).keys() >= {"directory", "future", "assignment"}


def asked(state: Partition, argument: str) -> Sequence[Any]:
    """What engines try of an argument in that state, and in those that are like it at other times."""
    candidates = spec.machine.candidates[argument]
    return [value for ms in range(60) for value in candidates(replace(state, now=state.now + ms))]


@pytest.mark.clause("HWM-31")
def test_a_deletion_for_which_an_accepted_future_replica_is_too_low_is_asked_for() -> None:
    b = leader([1, 2])
    b.lead([1, 2], version=2, replicas=(1, 2))
    b.append(3)
    b.fetch(2, 3)
    b.move(2)
    b.moves_on()
    b.noted()
    assert b.future.reassignment == "ACCEPTED"
    assert 1 in asked(b.state, "deleteRecordsOnLeader:offset")
    b("deleteRecordsOnLeader", offset=1)
    assert {*asked(b.state, "fetchRecords:log_start")} == {1}
    b.fetch(2, 3, start=1)
    assert b("lowWatermarkIfLeader") == 0


@pytest.mark.clause("HWM-43")
def test_a_high_watermark_of_a_future_replica_that_falls_is_asked_for() -> None:
    b = Broker()
    b.follow(epoch=3)
    b.copy([[3, 4]], high=3)
    assert {*asked(b.state, "directory")} == {1, 2, 3}
    b.move(2)
    b.moves_on()
    assert b.future.log.high_watermark == 3
    offsets = asked(b.state, "high_watermark")
    assert sum(offset < 3 for offset in offsets) > len(offsets) // 2
    b.copy([], high=2)
    b.moves_on()
    assert b.future.log.high_watermark == 2


@pytest.mark.parametrize("how", trial.REFINEMENTS, ids=lambda how: str(how.sizes["Follower"]))
def test_a_leader_does_what_the_model_says(how: Any) -> None:
    found = check_refinement(spec.machine, how)
    assert found.problem is None
    assert found.states == found.reachable > 400


@pytest.mark.parametrize("how", trial.REFINEMENTS, ids=lambda how: str(how.sizes["Follower"]))
def test_another_leader_stands_for_no_state_of_the_model(how: Any) -> None:
    """The judge asks of whatever state it comes to."""
    first = how.first(spec.machine)
    assert how.to_model(first) is not None

    def after(name: str, **arguments: Any) -> Partition:
        step = spec.machine.apply(first, name, arguments)
        assert not isinstance(step, Outside)
        return step.state

    told = {"leader_epoch": 1, "partition_epoch": 2, "leader_recovery_state": "RECOVERED", "isr": [LOCAL]}
    others = [after("makeLeader", **told, replicas=replicas) for replicas in ([LOCAL], [LOCAL, 3], [LOCAL, 2, 3, 4])]
    others += [spec.machine.initial(followers=3, min_insync_replicas=2), first.with_log(log_end=9)]
    assert [how.to_model(s) for s in others] == [None] * len(others)


# ---- offsets
@pytest.mark.clause("HWM-1")
def test_the_high_watermark_is_between_log_start_and_log_end() -> None:
    b = leader([1, 2])
    b.append(3)
    b.fetch(2, 2)
    b("deleteRecordsOnLeader", offset=1)
    log = b.state.log
    assert (log.log_start, log.high_watermark, log.log_end) == (1, 2, 3)
    assert is_in_bounds(b.state)
    for wrong in (Log(2, 3, 1), Log(0, 1, 2), Log(-1, 1, 0)):
        assert not is_in_bounds(replace(b.state, future=FutureReplica(2, 1, wrong)))
        assert not is_in_bounds(b.state.with_log(**{n: getattr(wrong, n) for n in wrong.__dataclass_fields__}))


@pytest.mark.clause("HWM-2")
def test_the_high_watermark_of_a_leader_does_not_fall() -> None:
    b = leader([1])
    b.append(2)
    before = b.state
    assert b.high == 2
    b.lead([1, 2], version=2)
    b.fetch(2, 1)
    assert b.high == 2
    assert has_risen(before, b.state)
    assert not has_risen(before, b.state.with_log(high_watermark=1))


@pytest.mark.clause("HWM-3")
def test_it_rises_to_the_least_log_end_of_those_that_are_in_sync() -> None:
    b = leader([1, 2, 3])
    b.append(3)
    assert b.high == 0
    b.fetch(2, 3)
    assert b.high == 0
    b.fetch(3, 2)
    assert b.high == 2
    b.fetch(3, 3)
    assert b.high == 3


def waiting() -> Broker:
    """A leader whose broker 3 is none of those in sync, but was caught up not long ago: it holds the high watermark
    back, which is 2 of 3."""
    b = leader([1, 2])
    b.append(1)
    b.fetch(2, 1)
    b.fetch(3, 0)
    b.append(1)
    b.fetch(2, 2)
    assert b.high == 2  # broker 3 was never caught up
    b.fetch(3, 1)  # as far as the log went when it fetched last
    b.append(1)
    b.fetch(2, 3)
    assert (b.high, b.state.pending) == (2, None)
    return b


@pytest.mark.clause("HWM-3")
def test_it_waits_for_whoever_is_caught_up_and_may_join() -> None:
    """KAFKA-15021: but not for one that may not."""
    b = waiting()
    b.broker(3, fenced=True)
    b.append(1)
    assert b.high == 3
    b.fetch(2, 4)
    assert b.high == 4


@pytest.mark.clause("HWM-3")
def test_it_does_not_rise_while_too_few_are_in_sync() -> None:
    """KAFKA-15583."""
    b = leader([1], min_insync_replicas=2)
    b.append(1, acks=1)
    assert b.high == 0
    b.fetch(2, 1)
    assert b.high == 0
    b.done([1, 2], 2)
    assert b.high == 1


@pytest.mark.clause("HWM-3")
def test_it_is_not_looked_at_where_a_follower_fetches_again() -> None:
    b = waiting()
    b.passes(LAG + 1)
    b.fetch(2, 3)
    assert b.high == 2
    b.append(1)
    assert b.high == 3


@pytest.mark.clause("HWM-4")
def test_whoever_may_be_in_sync_counts() -> None:
    b = expanding()
    assert b.high == 1
    b.fetch(2, 2)
    assert b.high == 2
    b = shrinking()
    assert b.maximal == {1, 2}
    b.append()
    assert b.high == 0


@pytest.mark.clause("HWM-5")
def test_a_follower_is_caught_up_for_replica_lag_time_max_ms() -> None:
    b = leader([1, 2])
    b.append()
    b.passes(LAG)
    b.shrink()
    assert b.state.pending is None
    b.passes(1)
    b.shrink()
    assert b.state.pending is not None
    b = leader([1, 2])
    b.append()
    b.fetch(2, 1)
    b.passes(LAG + 1)
    b.shrink()
    assert b.state.pending is None  # it has all there is


@pytest.mark.clause("HWM-6")
@pytest.mark.parametrize(
    ("broker", "may"),
    [
        ({}, True),
        ({"fenced": True}, False),
        ({"shutting_down": True}, False),
        ({"epoch": 11}, False),
        (None, False),
    ],
)
def test_who_may_join(broker: dict[str, Any] | None, may: bool) -> None:
    """KAFKA-13916, KAFKA-14617."""
    b = leader([1])
    if broker is None:
        b("removeBroker", id=2)
    else:
        b.broker(2, **broker)
    b.fetch(2, 0)
    assert (b.state.pending is not None) == may
    b = leader([1])
    b.broker(2, epoch=11)
    b.fetch(2, 0, broker=-1)
    assert b.state.pending is not None


@pytest.mark.clause("HWM-7")
def test_when_a_follower_was_caught_up() -> None:
    """One that is always a fetch behind was, when it last fetched."""
    b = leader([1, 2])
    b.passes(10)
    b.fetch(2, 0, start=0)
    (known, _) = b.state.followers
    assert (known.log_end, known.last_caught_up_ms, known.broker_epoch) == (0, NOW + 10, 12)
    b.append(2)
    b.passes(10)
    b.fetch(2, 0)
    assert b.state.followers[0].last_caught_up_ms == NOW + 10
    b.append(1)
    b.passes(10)
    b.fetch(2, 2)
    assert b.state.followers[0].last_caught_up_ms == NOW + 20
    b.passes(10)
    b.fetch(2, 2)
    assert b.state.followers[0].last_caught_up_ms == NOW + 20
    b.fetch(2, 3)
    assert b.state.followers[0].last_caught_up_ms == NOW + 40


@pytest.mark.clause("HWM-8")
def test_a_fetch_of_an_earlier_life_is_refused() -> None:
    b = leader([1, 2])
    b.append()
    assert b.fetch(2, 1, broker=11) == spec.STALE_BROKER
    assert b.state.followers[0].log_end == -1
    b.broker(2, fenced=True)
    assert not isinstance(b.fetch(2, 1, broker=11), Refused)


@pytest.mark.clause("HWM-9")
def test_another_leader_epoch_is_refused() -> None:
    b = leader([1, 2])

    def asked(epoch: int | None) -> list[Any]:
        of_another = {"leader_epoch": 0, "only_leader": True}
        return [
            b.fetch(2, 0, epoch=epoch),
            b("latestOffset", current_leader_epoch=epoch, client=True),
            b("lastOffsetForLeaderEpoch", current_leader_epoch=epoch, **of_another),
        ]

    assert asked(0) == [fetches.FENCED] * 3
    assert asked(2) == [fetches.UNKNOWN_EPOCH] * 3
    assert not any(isinstance(found, Refused) for e in (1, None) for found in asked(e))


@pytest.mark.clause("HWM-10")
def test_a_follower_refuses_what_only_a_leader_does() -> None:
    b = Broker()
    assert b.append() == fetches.NOT_LEADER
    b.follow()
    assert b.append() == fetches.NOT_LEADER
    assert b.fetch(2, 0) == fetches.NOT_LEADER
    assert b("deleteRecordsOnLeader", offset=0) == fetches.NOT_LEADER
    assert b("lowWatermarkIfLeader") == fetches.NOT_LEADER
    consumer = {"current_leader_epoch": None, "last_fetched_epoch": None, "offset": 0}
    assert b("fetchRecordsOfConsumer", **consumer, only_leader=True) == fetches.NOT_LEADER
    assert not isinstance(b("fetchRecordsOfConsumer", **consumer, only_leader=False), Refused)
    assert b("checkEnoughReplicasReachOffset", required_offset=0)[1] == "NOT_LEADER_OR_FOLLOWER"


@pytest.mark.clause("HWM-11")
def test_a_broker_that_is_no_replica_tries_again() -> None:
    b = leader([1])
    b.lead([1], version=2, replicas=(1, 2))
    assert b.fetch(3, 0, epoch=1) == spec.UNKNOWN_REPLICA
    assert b.fetch(3, 0) == spec.UNKNOWN_REPLICA_WITHOUT_EPOCH


def of_two_epochs() -> Broker:
    """A leader of epoch 3 whose log has two records of epoch 0 and one of epoch 3."""
    b = Broker()
    b.broker(2)
    b.follow(epoch=0)
    b.copy([[0, 2]], high=2)
    b.lead([1, 2], epoch=3)
    b.append()
    return b


@pytest.mark.clause("HWM-12")
def test_a_broker_whose_id_ends_as_that_of_a_follower_is_another_one() -> None:
    """In 16 bits both are 2."""
    far = 2**16 + 2
    b = Broker()
    b.broker(2)
    b.broker(far, 99)
    b.lead([1], replicas=(1, 2))
    b.append()
    b.fetch(far, 1, broker=EPOCHS[2])
    assert b.state.pending is None
    b.fetch(2, 1)
    assert b.state.pending is not None


def test_logs_that_diverge_are_told_where() -> None:
    """KIP-320: and the fetch does not count."""
    b = of_two_epochs()
    assert b.fetch(2, 3, last=2)["diverging"] == [0, 2]
    assert b.fetch(2, 3, last=0)["diverging"] == [0, 2]
    assert b.state.followers[0].log_end == -1
    found = b.fetch(2, 2, last=0)
    assert (found["diverging"], found["end"]) == (None, 3)
    assert b.state.followers[0].log_end == 2


@pytest.mark.clause("HWM-13")
def test_a_fetch_outside_the_log_is_refused() -> None:
    b = of_two_epochs()
    b.fetch(2, 3)
    b("deleteRecordsOnLeader", offset=1)
    assert b.fetch(2, 4) == fetches.NOT_THERE
    assert b.fetch(2, 0) == fetches.NOT_THERE
    assert b.fetch(2, 0, last=0) == fetches.NOT_THERE
    assert b.fetch(2, 3, last=4) == fetches.NOT_THERE
    assert not isinstance(b.fetch(2, 1, last=0), Refused)
    assert not isinstance(b.fetch(2, 3, last=3), Refused)


# ---- who is in sync
@pytest.mark.clause("HWM-14")
def test_whoever_has_what_is_replicated_is_taken_in() -> None:
    """KAFKA-7128: not below the leader's own epoch, where it does not know what is."""
    b = Broker()
    b.broker(2)
    b.broker(3)
    b.follow(3, epoch=0)
    b.copy([[0, 3]], high=1)
    b.lead([1], epoch=1, replicas=(1, 2))
    assert (b.state.epoch_start, b.high) == (3, 3)
    b.lead([1, 3], epoch=2, version=2)
    b.append(2)
    b.fetch(2, 2)
    assert b.state.pending is None
    b.fetch(2, 3)
    assert b.state.pending is not None
    assert [(m.id, m.broker_epoch) for m in b.state.pending.isr] == [(1, 101), (2, 12), (3, -1)]
    b = leader([1])
    b.append(2)
    b.fetch(2, 1)
    assert b.state.pending is None
    b.fetch(2, 2)
    assert b.state.pending is not None


@pytest.mark.clause("HWM-15")
def test_whoever_lags_is_taken_out() -> None:
    b = leader([1, 2, 3])
    b.append()
    b.fetch(3, 1)
    b.passes(LAG + 1)
    b.shrink()
    assert b.state.pending is not None
    assert b.state.pending.ids == (1, 3)
    assert b.state.isr == (1, 2, 3)


@pytest.mark.clause("HWM-15")
def test_whoever_is_no_replica_is_taken_out() -> None:
    """KAFKA-9672: there is nothing known of it."""
    b = leader([1, 2])
    b.lead([1, 3], version=2, replicas=(1, 2))
    b.shrink()
    assert b.state.pending is not None
    assert b.state.pending.ids == (1,)


@pytest.mark.clause("HWM-16")
def test_one_request_at_a_time() -> None:
    b = expanding()
    first = b.state.in_flight
    assert first is not None
    assert (first.leader_epoch, first.partition_epoch, first.leader_recovery_state) == (1, 1, "RECOVERED")
    assert [(m.id, m.broker_epoch) for m in first.isr] == [(1, 101), (2, 12)]
    b.fetch(3, 2)
    assert b.state.in_flight == first
    b.lead([1], version=2)
    b.fetch(2, 2)
    assert (b.state.pending, b.state.in_flight) == (None, first)
    b.failed("INVALID_UPDATE_VERSION")
    b.fetch(2, 2)
    assert b.state.in_flight is not None
    assert b.state.in_flight.partition_epoch == 2


@pytest.mark.clause("HWM-17")
def test_a_change_that_was_done() -> None:
    """KAFKA-13091: the high watermark is looked at."""
    b = shrinking()
    b.done([1], 2)
    assert (b.state.isr, b.state.partition_epoch, b.state.pending, b.state.in_flight) == ((1,), 2, None, None)
    assert b.high == 1


@pytest.mark.clause("HWM-17")
def test_a_change_that_the_controller_had_already() -> None:
    """KAFKA-12751: with the leader's own partition epoch."""
    b = expanding()
    b.done([1, 2], 1)
    assert (b.state.isr, b.state.pending) == ((1, 2), None)


@pytest.mark.clause("HWM-18")
@pytest.mark.parametrize(("version", "epoch"), [(0, 1), (2, 2), (2, 0)])
def test_an_answer_of_another_time_leaves_all_open(version: int, epoch: int) -> None:
    b = expanding()
    pending = b.state.pending
    b.done([1, 2], version, epoch)
    assert (b.state.isr, b.state.pending, b.state.in_flight) == ((1,), pending, None)
    assert b.state.partition_epoch == 1


@pytest.mark.clause("HWM-19")
@pytest.mark.parametrize("error", ["INELIGIBLE_REPLICA", "OPERATION_NOT_ATTEMPTED"])
def test_a_change_that_was_not_done(error: str) -> None:
    b = expanding()
    b.failed(error)
    assert (b.state.isr, b.maximal, b.state.in_flight) == ((1,), {1}, None)


@pytest.mark.clause("HWM-20")
@pytest.mark.parametrize("error", answers.TO_BE_TOLD)
def test_a_change_of_which_nobody_knows_whether_it_was_done(error: str) -> None:
    b = expanding()
    b.failed(error)
    assert (b.maximal, b.state.in_flight) == ({1, 2}, None)
    b.fetch(3, 2)
    assert (b.maximal, b.state.in_flight) == ({1, 2}, None)
    b.append(1)
    assert b.high == 1
    b.lead([1], version=2)
    assert b.maximal == {1}


@pytest.mark.clause("HWM-21")
@pytest.mark.parametrize("error", ["UNKNOWN_SERVER_ERROR", "NOT_CONTROLLER", "REQUEST_TIMED_OUT"])
def test_a_request_that_is_sent_again(error: str) -> None:
    b = expanding()
    before = b.state
    b.failed(error)
    assert b.state == before


@pytest.mark.clause("HWM-22")
def test_an_answer_that_comes_too_late() -> None:
    b = expanding()
    b.lead([1], version=5)
    b.done([1, 2], 6)
    assert (b.state.isr, b.state.partition_epoch, b.state.in_flight) == ((1,), 5, None)
    b = shrinking()
    b.lead([1, 2], version=2)
    b.failed("INELIGIBLE_REPLICA")
    assert (b.state.isr, b.state.in_flight) == ((1, 2), None)


# ---- elections
@pytest.mark.clause("HWM-23")
def test_what_the_controller_said_before_is_skipped() -> None:
    b = expanding()
    b.done([1, 2], 3)
    before = b.state
    assert b.lead([1], version=2) is False
    assert b.follow(epoch=1, version=2) is False
    assert b.state == before
    b.lead([1, 2], version=3)
    assert b.state.partition_epoch == 3


@pytest.mark.clause("HWM-24")
def test_a_leader_begins_its_epoch_at_its_log_end() -> None:
    """KAFKA-7415: also without a record."""
    b = Broker()
    b.follow(epoch=0)
    b.copy([[0, 2]], high=1)
    assert b.lead([1, 2, 3], epoch=4, recovery="RECOVERING") is True
    assert (b.state.epoch_start, b.state.leader_epoch, b.state.recovering) == (2, 4, False)
    assert [(e.epoch, e.start_offset) for e in b.state.log.epochs] == [(0, 0), (4, 2)]
    assert (b.high, [f.id for f in b.state.followers]) == (1, [2, 3])
    assert b.lead([1, 2], epoch=4, version=2, replicas=(1, 2)) is False
    assert (b.state.epoch_start, b.state.isr, [f.id for f in b.state.followers]) == (2, (1, 2), [2])


@pytest.mark.clause("HWM-24")
def test_what_the_controller_says_again_forgets_what_is_pending() -> None:
    """The answer told the partition epoch before: HWM-40 does not hold then, as `Changes` shows."""
    b = leader([1, 2])
    b.append()
    b.passes(LAG + 1)
    b.shrink()
    b.done([1], 2)
    b.fetch(2, 1)
    assert b.maximal == {1, 2}
    b.lead([1], version=2)
    assert b.maximal == {1}
    assert b.state.in_flight is not None
    assert b.state.in_flight.ids == (1, 2)


@pytest.mark.clause("HWM-25")
def test_what_a_leader_knows_of_its_followers_in_a_new_epoch() -> None:
    b = leader([1, 2])
    b.append(2)
    b.fetch(2, 1)
    b.fetch(3, 2)
    b.passes(10)
    b.lead([1, 2], epoch=2, version=2)
    known = [(f.log_end, f.last_caught_up_ms, f.last_fetch_ms, f.broker_epoch) for f in b.state.followers]
    assert known == [(1, NOW + 10, NOW + 10, 12), (2, 0, 0, 13)]
    assert [f.last_fetch_leader_end for f in b.state.followers] == [2, 2]
    b.follow(epoch=3, version=3)
    b.lead([1, 2], epoch=4, version=4)
    known = [(f.log_end, f.last_caught_up_ms, f.last_fetch_ms, f.broker_epoch) for f in b.state.followers]
    assert known == [(-1, NOW + 10, 0, None), (-1, 0, 0, None)]


@pytest.mark.clause("HWM-26")
def test_a_follower_keeps_its_log_and_nothing_else() -> None:
    """KAFKA-7164: it begins to fetch in a new epoch, whoever leads."""
    b = expanding()
    log = b.state.log
    assert b.follow(2, epoch=2, version=2, recovery="RECOVERING") is True
    assert (b.state.leader, b.state.leader_epoch, b.state.recovering) == (2, 2, True)
    assert (b.state.isr, b.state.followers, b.state.pending, b.state.epoch_start) == ((), (), None, None)
    assert b.state.log == log
    assert b.follow(2, epoch=2, version=3) is False
    assert b.follow(2, epoch=3, version=4) is True


# ---- producers
@pytest.mark.clause("HWM-27")
def test_an_append_for_which_too_few_are_in_sync() -> None:
    b = leader([1, 2], min_insync_replicas=3)
    assert b.append(1, acks=-1) == spec.TOO_FEW
    assert not isinstance(b.append(1, acks=1), Refused)
    b.lead([1, 2], version=2, replicas=(1, 2))
    assert not isinstance(b.append(1, acks=-1), Refused)
    b.lead([1], version=3, replicas=(1, 2))
    assert b.append(1, acks=-1) == spec.TOO_FEW


@pytest.mark.clause("HWM-27")
def test_whoever_is_to_be_taken_in_does_not_count_yet() -> None:
    b = leader([1], min_insync_replicas=2)
    b.fetch(2, 0)
    assert b.maximal == {1, 2}
    assert b.append(1, acks=-1) == spec.TOO_FEW


@pytest.mark.clause("HWM-28")
def test_records_go_to_the_end_in_the_leaders_epoch() -> None:
    b = of_two_epochs()
    assert b.append(2) == [3, 4, False]
    assert [(e.epoch, e.start_offset) for e in b.state.log.epochs] == [(0, 0), (3, 2)]
    b = leader([1])
    assert b.append(2) == [0, 1, True]


@pytest.mark.clause("HWM-29")
def test_a_producer_is_answered_when_its_records_are_replicated() -> None:
    b = leader([1, 2], min_insync_replicas=2)
    b.append(1)

    def reached(offset: int = 1) -> list[Any]:
        found: list[Any] = b("checkEnoughReplicasReachOffset", required_offset=offset)
        return found

    assert reached() == [False, None]
    b.fetch(2, 1)
    assert reached() == [True, None]
    assert reached(2) == [False, None]
    b.lead([1], version=2)
    assert reached() == [True, "NOT_ENOUGH_REPLICAS_AFTER_APPEND"]
    b.fetch(2, 1)
    assert reached() == [True, None]  # it is to be taken in


# ---- deletion
@pytest.mark.clause("HWM-30")
def test_records_are_deleted_below_the_high_watermark() -> None:
    b = leader([1, 2])
    b.append(3)
    b.fetch(2, 2)
    assert b("deleteRecordsOnLeader", offset=3) == spec.ABOVE_HIGH_WATERMARK
    assert b("deleteRecordsOnLeader", offset=-2) == spec.ABOVE_HIGH_WATERMARK
    assert b("deleteRecordsOnLeader", offset=1)[0] == 1
    assert b("deleteRecordsOnLeader", offset=0)[0] == 0
    assert b.state.log.log_start == 1
    assert b("deleteRecordsOnLeader", offset=-1)[0] == 2
    assert (b.state.log.log_start, b.state.log.epochs[0]) == (2, (1, 2))


@pytest.mark.clause("HWM-31")
def test_the_low_watermark_is_the_least_log_start_of_those_alive() -> None:
    b = leader([1, 2])
    b.append(2)
    b.fetch(2, 2, start=1)
    assert b("deleteRecordsOnLeader", offset=2) == [2, -1]
    b.fetch(3, 2, start=0)
    assert b("lowWatermarkIfLeader") == 0
    b.broker(3, fenced=True)
    assert b("lowWatermarkIfLeader") == 1
    b.fetch(2, 2, start=2)
    assert b("lowWatermarkIfLeader") == 2


@pytest.mark.clause("HWM-31")
def test_a_deletion_waits_for_the_future_replica() -> None:
    b = leader([1, 2])
    b.lead([1, 2], version=2, replicas=(1, 2))
    b.append(3)
    b.fetch(2, 3)
    assert b("deleteRecordsOnLeader", offset=2) == [2, 0]
    b.fetch(2, 3, start=2)
    assert b("lowWatermarkIfLeader") == 2
    b.move(2)
    assert b("lowWatermarkIfLeader") == 0
    b.moves_on()
    assert b("lowWatermarkIfLeader") == 2
    assert b("deleteRecordsOnLeader", offset=1) == [1, 2]


@pytest.mark.clause("HWM-32", "HWM-38")
def test_a_follower_tells_the_log_start_that_it_took_over() -> None:
    """So that the leader's low watermark rises."""
    b = Broker()
    b.follow(epoch=3)
    b.copy([[3, 4]], high=3)
    assert b("nextFetch")[3] == 0
    b.copy([], high=3, start=2)
    assert b("nextFetch")[3] == 2
    lead = leader([1, 2])
    lead.lead([1, 2], version=2, replicas=(1, 2))
    lead.append(4)
    lead.fetch(2, 4)
    assert lead("deleteRecordsOnLeader", offset=2) == [2, 0]
    lead.fetch(2, 4, start=b("nextFetch")[3])
    assert lead("lowWatermarkIfLeader") == 2


# ---- moves to another log directory
def moving(*batches: list[int], high: int = 0, directory: int = 2) -> Broker:
    """A follower of epoch 3 with these batches, whose replica is to move."""
    b = Broker()
    b.follow(epoch=3)
    b.copy([*batches], high=high)
    b.move(directory)
    return b


@pytest.mark.clause("HWM-41")
def test_where_a_log_and_its_future_replica_are() -> None:
    b = Broker()
    assert b.move(2) == moves.NO_REPLICA
    assert b.move(3) == moves.NO_REPLICA
    b.follow(epoch=3)
    assert b.state.directory == 3
    b = Broker()
    b.follow(epoch=3)
    assert (b.state.directory, b.move(1), b.state.future) == (1, None, None)
    b.copy([[3, 2]], high=1)
    b.move(2)
    assert b.future == FutureReplica(2, 3)
    b.moves_on()
    before = b.state
    b.move(2)
    assert b.state == before
    b.move(3)
    assert b.future == FutureReplica(3, 3)
    b.move(1)
    assert (b.state.future, b.state.log.log_end) == (None, 2)


@pytest.mark.clause("HWM-42")
def test_a_future_replica_truncates_in_a_new_epoch() -> None:
    """By the end of its latest epoch in the current log, KIP-113; not to its high watermark."""
    b = moving([1, 2], [3, 3], high=1)
    b.moves_on()
    b.follow(3, epoch=4, version=2)
    assert (b.future.leader_epoch, b.future.offset, b.future.is_truncating) == (4, 1, True)
    b.moves_on()
    assert (b.future.log.log_end, b.future.offset, b.future.is_truncating) == (5, 5, False)


@pytest.mark.clause("HWM-42")
def test_a_future_replica_truncates_with_the_current_one() -> None:
    b = moving([1, 2], [3, 3], high=1)
    b.moves_on()
    b.truncate(3, 4)
    b.truncate(3, 3)
    assert (b.future.offset, b.future.is_truncating) == (3, True)
    b.copy([[3, 4]])
    assert b.future.log.log_end == 5
    b.moves_on()
    assert (b.future.log.log_end, b.future.is_truncating) == (7, False)
    b("fetchOffsetAndTruncate", leader_start=0, leader_end=4)
    assert (b.future.offset, b.future.is_truncating) == (4, True)


@pytest.mark.clause("HWM-42")
def test_a_future_replica_without_an_epoch_in_common_is_cut_where_it_was_to_fetch() -> None:
    b = moving([1, 3], high=2)
    b.moves_on()
    b("fetchOffsetAndTruncate", leader_start=5, leader_end=9)
    b.follow(3, epoch=5, version=2)
    b.copy([[5, 2]], high=7)
    b.moves_on()
    assert b.future.log == Log(5, 5, 5)  # 2, its high watermark, is out of range
    b.moves_on()
    assert b.future.log == b.state.log


@pytest.mark.clause("HWM-42")
def test_a_future_replica_that_does_not_know_the_epoch_asks_again() -> None:
    b = moving([1, 2], [3, 2], high=1)
    b.moves_on()
    b.truncate(2, 2)  # it has no epoch 2: the future replica is not told
    assert not b.future.is_truncating
    b.follow(3, epoch=4, version=2)
    b.copy([[2, 1], [4, 1]])
    b.moves_on()
    assert (b.future.log.log_end, b.future.is_truncating) == (2, True)
    b.moves_on()
    assert (b.future.log, b.future.is_truncating) == (b.state.log, False)


@pytest.mark.clause("HWM-42")
def test_a_future_replica_that_is_not_told_may_come_to_hold_other_records() -> None:
    """The page tells of it: the current log is cut and grows again before the future replica fetches."""
    b = moving([1, 5], [3, 5], high=5)
    b.moves_on()
    b.follow(3, epoch=4, version=2)
    b.moves_on()
    assert b.truncate(2, 7) == 5
    b.copy([[2, 2], [4, 4]], high=5)
    b.moves_on()
    b.noted()
    assert [(e.epoch, e.start_offset) for e in b.state.log.epochs] == [(1, 0), (2, 5), (4, 7)]
    b.moves_on()
    assert b.state.directory == 2
    assert [(e.epoch, e.start_offset) for e in b.state.log.epochs] == [(1, 0), (3, 5), (4, 10)]


@pytest.mark.clause("HWM-43")
def test_a_future_replica_copies_what_is_not_replicated_too() -> None:
    b = moving([1, 2], [3, 3], high=4)
    b.copy([], high=4, start=2)
    b.moves_on()
    assert b.future.log == Log(2, 2, 2)  # it was to fetch from 0: out of range
    b.moves_on()
    assert b.future.log == b.state.log == Log(2, 5, 4, b.state.log.epochs)
    assert [(e.epoch, e.start_offset) for e in b.future.log.epochs] == [(3, 2)]
    b.copy([[3, 1]], high=3, start=3)
    b.moves_on()
    assert b.future.log == b.state.log


@pytest.mark.clause("HWM-43")
def test_a_future_replica_above_the_current_log_is_cut() -> None:
    b = moving([1, 2], [3, 3], high=1)
    b.moves_on()
    b.truncate(2, 2)
    b.moves_on()
    assert (b.future.log.log_end, b.future.offset, b.future.is_truncating) == (2, 2, False)


@pytest.mark.clause("HWM-44")
def test_a_future_replica_takes_its_place_when_the_controller_knows() -> None:
    b = moving([3, 2], high=1)
    b.moves_on()
    assert (b.future.reassignment, b.state.assignment) == ("QUEUED", Assignment(2, True))
    b.moves_on()
    assert (b.future.reassignment, b.state.directory) == ("QUEUED", 1)
    b.noted()
    assert (b.future.reassignment, b.state.assignment) == ("ACCEPTED", None)
    b.copy([[3, 1]], high=3)
    b.moves_on()
    assert (b.state.directory, b.state.future) == (2, None)
    assert (b.state.log.log_end, b.high) == (3, 3)


@pytest.mark.clause("HWM-45")
def test_an_epoch_without_records_is_lost_with_the_log() -> None:
    """KAFKA-15608, KAFKA-20961."""
    b = leader([1])
    b.append(2)
    b.lead([1], epoch=2, version=2)
    b.move(2)
    b.moves_on()
    b.noted()
    asked = {"current_leader_epoch": None, "leader_epoch": 2, "only_leader": True}
    assert b("lastOffsetForLeaderEpoch", **asked) == [2, 2]
    assert not isinstance(b.fetch(2, 2, last=2), Refused)
    b.moves_on()
    assert (b.state.directory, b.high, b.state.epoch_start) == (2, 2, 2)
    assert b("lastOffsetForLeaderEpoch", **asked) == [-1, -1]
    assert b.fetch(2, 2, last=2) == fetches.NOT_THERE
    b.append(1)
    assert b("lastOffsetForLeaderEpoch", **asked) == [2, 3]


@pytest.mark.clause("HWM-45")
def test_a_follower_names_the_epoch_of_the_log_before() -> None:
    b = leader([1])
    b.append(2)
    b.lead([1], epoch=2, version=2)
    b.follow(epoch=3, version=3)
    b.move(2)
    b.moves_on()
    b.noted()
    b.moves_on()
    assert [e.epoch for e in b.state.log.epochs] == [1]
    assert b("nextFetch") == [3, 2, 2, 0]
    b.copy([[3, 1]], high=2)
    assert b("nextFetch") == [3, 3, 3, 0]


@pytest.mark.clause("HWM-46")
@pytest.mark.parametrize("version", [0, 1, 2])
def test_whatever_the_controller_says_the_future_replica_is_to_ask_again(version: int) -> None:
    b = moving([3, 2], high=1)
    b.moves_on()
    b.noted()
    assert b.future.reassignment == "ACCEPTED"
    before = b.future
    b.follow(epoch=3, version=version)
    assert b.future == replace(before, reassignment="NONE")
    b.moves_on()
    assert (b.state.directory, b.future.reassignment, b.state.assignment) == (1, "QUEUED", Assignment(2, True))


@pytest.mark.clause("HWM-47")
def test_a_directory_that_the_controller_was_asked_for_is_taken_back() -> None:
    """KAFKA-16297: also when the controller has noted it."""
    b = moving([3, 2], high=1)
    b.move(1)
    assert b.state.assignment is None
    for accepted in (False, True):
        b = moving([3, 2], high=1)
        b.moves_on()
        if accepted:
            b.noted()
        b.move(3)
        before = b.asked
        b.noted()
        assert (before, b.asked, b.future.reassignment) == (Assignment(1, False), None, "NONE")


@pytest.mark.clause("HWM-48")
def test_an_answer_is_for_the_future_replica_that_is_there() -> None:
    """Also if it was asked for another directory."""
    b = moving([3, 2], high=1)
    b.moves_on()
    b.follow(epoch=3, version=2)
    b.move(3)
    before = b.asked
    b.noted()
    assert before == Assignment(2, True)
    assert (b.future.directory, b.future.reassignment) == (3, "ACCEPTED")
    b.moves_on()
    assert (b.state.directory, b.asked) == (3, None)
    b = moving([3, 2], high=1)
    b.moves_on()
    b.follow(epoch=3, version=2)
    b.move(1)
    b.noted()
    assert (b.state.future, b.state.assignment) == (None, None)


# ---- followers
@pytest.mark.clause("HWM-32")
def test_a_follower_has_its_leaders_high_watermark_as_far_as_its_log_goes() -> None:
    b = Broker()
    b.follow(epoch=3)
    b.copy([[1, 2], [3, 1]], high=5, start=0)
    assert (b.state.log.log_end, b.high) == (3, 3)
    b.copy([], high=2, start=1)
    assert (b.high, b.state.log.log_start) == (2, 1)
    b.copy([], high=0, start=0)
    assert (b.high, b.state.log.log_start) == (1, 1)


@pytest.mark.clause("HWM-32")
def test_a_follower_appends_nothing_of_a_later_epoch() -> None:
    """KAFKA-18723."""
    b = Broker()
    b.follow(epoch=3)
    b.copy([[3, 1], [4, 2], [4, 1]], high=4)
    assert (b.state.log.log_end, [e.epoch for e in b.state.log.epochs]) == (1, [3])


def diverged() -> Broker:
    """A follower with records 0-1 of epoch 1, 2-4 of epoch 3, and 5 of epoch 5; four are replicated."""
    b = Broker()
    b.follow(epoch=6)
    b.copy([[1, 2], [3, 3], [5, 1]], high=4)
    return b


@pytest.mark.clause("HWM-33")
@pytest.mark.parametrize(
    ("epoch", "end_offset", "log_end", "high"),
    [
        (3, 4, 4, 4),  # the leader has less of the epoch
        (3, 9, 5, 4),  # the follower has
        (4, 3, 5, 4),  # KAFKA-6361: it has no such epoch
        (1, 1, 1, 1),
        (5, 9, 6, 4),
        (0, 1, 1, 1),  # nor a lower one: where an epoch before its first would end
    ],
)
def test_a_follower_truncates_where_the_logs_diverge(epoch: int, end_offset: int, log_end: int, high: int) -> None:
    """KAFKA-14704: the high watermark is not the leader's."""
    b = diverged()
    if epoch == 0:
        assert b("truncateOnFetchResponse", epoch=0, end_offset=1) == 0
        return
    assert b("truncateOnFetchResponse", epoch=epoch, end_offset=end_offset) == log_end
    assert (b.state.log.log_end, b.high) == (log_end, high)
    assert all(e.start_offset < log_end for e in b.state.log.epochs)


@pytest.mark.clause("HWM-33")
def test_a_follower_without_epochs_truncates_where_it_is_told() -> None:
    b = Broker()
    b.follow(epoch=6)
    b("fetchOffsetAndTruncate", leader_start=5, leader_end=9)
    assert b("truncateOnFetchResponse", epoch=2, end_offset=3) == 3
    assert (b.state.log.log_start, b.high) == (3, 3)


@pytest.mark.clause("HWM-34")
def test_a_follower_whose_fetch_is_out_of_range() -> None:
    """KAFKA-9491: the high watermark comes along."""
    b = diverged()
    assert b("fetchOffsetAndTruncate", leader_start=0, leader_end=3) == 3
    assert (b.state.log.log_end, b.high) == (3, 3)
    assert b("fetchOffsetAndTruncate", leader_start=2, leader_end=8) == 3
    assert b("fetchOffsetAndTruncate", leader_start=5, leader_end=8) == 5
    assert b.state.log == Log(5, 5, 5)


@pytest.mark.clause("HWM-35")
def test_where_an_epoch_ends() -> None:
    b = of_two_epochs()

    def end(epoch: int) -> Any:
        return b("lastOffsetForLeaderEpoch", current_leader_epoch=3, leader_epoch=epoch, only_leader=True)

    assert [end(e) for e in (0, 2, 3, 4)] == [[0, 2], [0, 2], [3, 3], [-1, -1]]


@pytest.mark.clause("HWM-36")
def test_a_new_leader_does_not_tell_the_latest_offset_yet() -> None:
    b = Broker()
    b.follow(epoch=0)
    b.copy([[0, 2]], high=1)
    b.broker(2)
    b.lead([1, 2], epoch=1)
    assert b("latestOffset", current_leader_epoch=1, client=True) == spec.NOT_AVAILABLE
    assert b("latestOffset", current_leader_epoch=1, client=False) == 2
    b.append()
    b.fetch(2, 2)
    assert b("latestOffset", current_leader_epoch=1, client=True) == 2
    assert b("latestOffset", current_leader_epoch=1, client=False) == 3


@pytest.mark.clause("HWM-37")
def test_a_consumer_reads_up_to_the_high_watermark() -> None:
    b = leader([1, 2])
    b.append(3)
    b.fetch(2, 1)

    def end(offset: int) -> Any:
        asked = {"current_leader_epoch": 1, "last_fetched_epoch": None, "only_leader": True}
        return b("fetchRecordsOfConsumer", offset=offset, **asked)["end"]

    assert [end(o) for o in (0, 1, 2, 3)] == [1, 1, 2, 3]
    assert b.fetch(2, 1)["end"] == 3


@pytest.mark.clause("HWM-38")
def test_what_a_follower_fetches() -> None:
    """KAFKA-15510: also behind an answer without records."""
    b = Broker()
    b.follow(epoch=3)
    assert b("nextFetch") == [3, None, 0, 0]
    b.copy([[1, 2]], high=1)
    assert b("nextFetch") == [3, 1, 2, 0]
    b.copy([], high=2, start=1)
    assert b("nextFetch") == [3, 1, 2, 1]


@pytest.mark.clause("HWM-39")
def test_what_a_caller_may_not_do() -> None:
    def outside(state: Partition, name: str, **arguments: Any) -> bool:
        found = spec.machine.apply(state, name, arguments)
        return isinstance(found, Outside) and found.clause == "HWM-39"

    b = leader([1, 2])
    told = {"replicas": [1, 2], "isr": [1], "leader_recovery_state": "RECOVERED"}
    assert outside(b.state, "makeLeader", **{**told, "leader_epoch": 0, "partition_epoch": 2})
    assert outside(b.state, "makeLeader", **{**told, "leader_epoch": 1, "partition_epoch": 2, "isr": [2]})
    assert outside(b.state, "makeLeader", **{**told, "leader_epoch": 1, "partition_epoch": 2, "replicas": [2]})
    assert outside(b.state, "alterPartitionFailed", error="INVALID_REQUEST")
    assert outside(b.state, "fetchFromCurrentReplica")
    assert outside(b.state, "assignReplicasToDirsSucceeded")
    assert outside(b.state, "processPartitionData", batches=[], high_watermark=0, log_start=0)
    b.follow(epoch=2, version=2)
    assert outside(b.state, "processPartitionData", batches=[], high_watermark=0, log_start=1)
    assert not outside(b.state, "processPartitionData", batches=[], high_watermark=0, log_start=0)


# ---- the protocol with the controller
def broken(**flags: bool) -> tuple[str, list[str]]:
    """The claim that is false with these flags, and the actions of the shortest way there."""
    sizes = {"Follower": 2, "L": 1, "V": 4, "M": 2, **AS_SPECIFIED, **flags}
    trace = explore(load(Changes), sizes).trace
    assert trace is not None
    return trace.claim, [s.action for s in trace.steps if s.action]


@pytest.mark.clause("HWM-40")
def test_what_the_controller_says_again_may_hide_whom_it_has() -> None:
    """As released: an answer, a new request, and then the metadata of that answer."""
    claim, steps = broken(NEWER=False)
    assert claim == "the_leader_counts_with_all_in_sync"
    assert steps == ["shrink", "judge", "hear_done", "fetch", "expand", "tell", "judge"]


@pytest.mark.clause("HWM-40")
@pytest.mark.parametrize("flag", ["BROKER_EPOCHS", "MAXIMAL"])
def test_without_one_of_the_rules_a_committed_record_may_be_lost(flag: str) -> None:
    assert broken(**{flag: False})[0] in (
        "in_sync_replicas_have_what_is_replicated",
        "the_leader_counts_with_all_in_sync",
    )


def test_more_followers_than_a_configuration_may_have_are_refused() -> None:
    """Before any is made: a recording may ask for 2^31."""
    with pytest.raises(ValueError, match="followers: 6 is not 0 to 5"):
        spec.initial(followers=6)
    with pytest.raises(ValueError, match="followers: -1 "):
        spec.initial(followers=-1)
