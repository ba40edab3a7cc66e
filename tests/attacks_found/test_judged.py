"""Faulty components that the judge accepts in a campaign of its default size (1,000 histories: some 62,000 calls), or
that it never asks what would show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kafkaspec.contract.subsystem import find
from kafkaspec.impl.storage import high_watermark as hwm
from kafkaspec.impl.storage.high_watermark import ACCEPTED, FutureReplica, Partition, ReplicaLog
from kafkaspec.impl.storage.replica_manager import (
    FetchPart,
    Operation,
    Purgatory,
    Reader,
    ReplicaManager,
    Status,
)
from kafkaspec.mutants.judge import campaigned
from kafkaspec.mutants.mutant import Mutant, of_impl
from kafkaspec.spec.storage import replica_manager_trial as trial
from kafkaspec.spec.storage.replica_manager_parts.state import INTERNAL
from tests.storage.high_watermark_mutants import _of as of_partition
from tests.storage.replica_manager_mutants import _of as of_manager
from tests.storage.replica_manager_mutants import _with as of_parts

CALLS = 62_000
"""1,000 histories, as `kafkaspec judge` asks by default."""


def test_every_internal_topic_is_asked_for() -> None:
    """RMG-4 is about three, of which the judge names one."""
    assert {*trial.TOPICS} >= INTERNAL


class OneInternal(ReplicaManager):
    """Records of __transaction_state and __share_group_state may be appended and deleted by everybody."""

    def append_one(self, name: str, topic_id: int, acks: int, internal: bool) -> Any:
        return super().append_one(name, topic_id, acks, internal or name != "__consumer_offsets")

    def delete_one(self, name: str, offset: int, internal: bool) -> Status:
        return super().delete_one(name, offset, internal or name != "__consumer_offsets")


class EightAtATopic(Purgatory):
    """At most eight are watched at a topic: the oldest waits for the timer alone."""

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__(now)
        self.left: list[Operation] = []

    def try_else_watch(self, operation: Operation) -> None:
        super().try_else_watch(operation)
        for topic in operation.topics:
            there = [o for o in self.watched.get(topic, []) if not o.completed]
            if len(there) > 8:
                self.left.append(there[0])
                self.watched[topic].remove(there[0])

    @property
    def delayed(self) -> list[Operation]:
        known = {o.id: o for of in [*self.watched.values(), self.left] for o in of if not o.completed}
        return [known[id] for id in sorted(known)]


class DeletionsHere(ReplicaManager):
    """RMG-19: the low watermark is looked at only if a deletion waits at this topic, and not "at whatever partition"."""

    def fetch_of_follower(self, partition: Partition, reader: Reader, part: FetchPart) -> hwm.ReadInfo:
        high, low = partition.log.high_watermark, self.low_watermark(partition)
        found = partition.fetch_as_follower(
            reader.replica, reader.broker_epoch, part.leader_epoch, part.last_epoch, part.offset, part.log_start
        )
        here = any(part.topic in o.topics for o in self.deletes.delayed)
        if partition.log.high_watermark > high or (here and self.low_watermark(partition) > low):
            self.check(part.topic)
        return found


class LowWithoutAccepted(Partition):
    """A future replica that the controller has accepted holds no deletion back."""

    def low_watermark(self) -> int:
        future = self.future
        if future is None or future.reassignment != ACCEPTED:
            return super().low_watermark()
        self.future = None
        try:
            return super().low_watermark()
        finally:
            self.future = future


class AcceptedStays(Partition):
    """A directory that the controller has accepted is not taken back when the move is given up."""

    def cancel_move(self) -> None:
        if self.future is not None and self.future.reassignment == ACCEPTED:
            self.future = None
        super().cancel_move()


class RisingFuture(FutureReplica):
    """The high watermark of a future replica does not fall with the current one's."""

    def fetch(self, current: ReplicaLog) -> bool:
        within, before = current.start <= self.offset <= current.end, self.log.high_watermark
        fetched = super().fetch(current)
        if within:
            self.log.high_watermark = min(max(before, self.log.high_watermark), self.log.end)
        return fetched


FAULTS: Sequence[tuple[str, Mutant]] = [
    ("replica_manager", of_impl("one internal topic", "RMG-4", "of three", of_manager(OneInternal))),
    ("replica_manager", of_impl("eight at a topic", "RMG-9 RMG-26", "", of_parts(purgatory_class=EightAtATopic))),
    ("replica_manager", of_impl("deletions here", "RMG-19", "at this topic alone", of_manager(DeletionsHere))),
    ("high_watermark", of_impl("low without accepted", "HWM-31", "a future replica", of_partition(LowWithoutAccepted))),
    ("high_watermark", of_impl("accepted stays", "HWM-47", "of a move given up", of_partition(AcceptedStays))),
    (
        "high_watermark",
        of_impl("rising future", "HWM-43", "", of_partition(type("P", (Partition,), {"Future": RisingFuture}))),
    ),
]


@pytest.mark.deep
@pytest.mark.parametrize("name", ["replica_manager", "high_watermark"])
def test_it_is_rejected_by_a_campaign_of_the_default_size(name: str) -> None:
    mutants = [m for of, m in FAULTS if of == name]
    found = campaigned(find(name), mutants, "guided", 0, CALLS)
    assert [m for m, kill in found.items() if kill is None] == []


def test_more_than_six_may_wait() -> None:
    """Kafka's own look at a list of watchers is no other for the seventh; the judge never has a seventh, for whoever
    comes then waits 0 ms."""
    from kafkaspec.spec.storage.replica_manager import initial
    from kafkaspec.spec.storage.replica_manager_parts.state import ProduceResult, Produce, PartitionStatus

    state = initial()
    at = [PartitionStatus(1, True, ProduceResult("a", None, 0, 0))]
    full = replace(state, waiting=tuple(Produce(n, state.now + 100, tuple(at)) for n in range(6)))
    asked = [*trial.machine.candidates["timeout_ms"](full), *trial.machine.candidates["max_wait_ms"](full)]
    assert any(ms > 0 for ms in asked)
