"""Replica manager: spec against impl, and the rules one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis.stateful import run_state_machine_as_test

from kafkaspec.contract.codec import replace
from kafkaspec.contract.machine import Outside
from kafkaspec.explore.engine import explore
from kafkaspec.impl.storage.replica_manager_driver import Driver
from kafkaspec.language import load
from kafkaspec.lockstep.walk import state_machine
from kafkaspec.models.storage.replica_manager import AS_IN_KAFKA, Waits
from kafkaspec.spec.common.kafka import INT_MAX
from kafkaspec.spec.storage import replica_manager as spec
from kafkaspec.spec.storage.replica_manager_parts.state import INTERNAL, RECORD_BYTES, HostedPartition, Manager
from kafkaspec.spec.storage.replica_manager_parts.waits import Outcome

LAG = 30_000
BOTH = (1, 2)


class Broker:
    """Broker 1, called by name; every call has its contracts, and the impl beside it."""

    def __init__(self, **config: Any) -> None:
        self.state: Manager = spec.machine.initial(**config)
        self.driver = Driver()
        self.driver.reset(config)

    def __call__(self, name: str, **arguments: Any) -> Any:
        step = spec.machine.apply(self.state, name, arguments)
        assert not isinstance(step, Outside), step
        self.state = step.state
        assert self.driver.apply(name, arguments) == step.result
        assert self.driver.state() == step.state
        return step.result

    def told(
        self, topic: str = "a", *, id: int | None = None, leader: int = 1, epoch: int = 0, version: int = 0,
        replicas: Sequence[int] = BOTH, isr: Sequence[int] = BOTH, directory: int = 0,
    ) -> Any:  # fmt: skip
        if id is None:
            image = self.state.image(topic)
            id = self.state.topic_ids + 1 if image is None else image.topic_id
        return self("applyDelta", record=[topic, id, leader, epoch, version, [*replicas], [*isr], directory])

    def append(self, *topics: str, acks: int = -1, timeout: int = 1000, internal: bool = False, id: int = 0) -> Any:
        return self(
            "appendRecords", timeout_ms=timeout, required_acks=acks, internal_topics_allowed=internal,
            entries=[[t, id] for t in topics],
        )  # fmt: skip

    def fetch(
        self, *parts: tuple[str, int], replica: int = 2, wait: int = 500, least: int = 1, nearest: bool = False,
        epoch: int | None = None, last: int | None = None, start: int = 0, id: int = 0, life: int = 12,
    ) -> Any:  # fmt: skip
        return self(
            "fetchMessages", replica=replica, broker_epoch=life, only_leader=not nearest, max_wait_ms=wait,
            min_bytes=least, entries=[[topic, id, epoch, last, offset, start] for topic, offset in parts],
        )  # fmt: skip

    def consume(self, *parts: tuple[str, int], **more: Any) -> Any:
        return self.fetch(*parts, replica=-1, **more)

    def delete(self, *parts: tuple[str, int], timeout: int = 1000, internal: bool = False) -> Any:
        return self(
            "deleteRecords", timeout_ms=timeout, internal_topics_allowed=internal, entries=[[*p] for p in parts]
        )

    def passes(self, ms: int) -> Any:
        return self("advance", ms=ms)

    def host(self, topic: str = "a") -> HostedPartition:
        hosted = self.state.host(topic)
        assert hosted is not None
        return hosted

    @property
    def waiting(self) -> list[int]:
        return [w.id for w in self.state.waiting]

    def log(self, topic: str = "a") -> tuple[int, int, int]:
        log = self.host(topic).replica.log
        return log.log_start, log.high_watermark, log.log_end


def leader(*topics: str, isr: Sequence[int] = BOTH, **config: Any) -> Broker:
    """Broker 1 leads these topics, each in a directory of its own, and broker 2 follows."""
    b = Broker(**config)
    for n, topic in enumerate(topics or ("a",)):
        b.told(topic, isr=isr, directory=n % 2)
    return b


def nothing() -> dict[str, Any]:
    return {"produced": [], "fetched": [], "deleted": []}


def asked(state: Manager, argument: str) -> Sequence[Any]:
    """What engines try of an argument in that state, and in those that are like it after other numbers of requests."""
    candidates = spec.machine.candidates[argument]
    return [value for n in range(60) for value in candidates(replace(state, requests=state.requests + n))]


@pytest.mark.parametrize("operation", ["appendRecords", "deleteRecords"])
def test_every_internal_topic_is_asked_for(operation: str) -> None:
    nothing = spec.initial()
    assert {topic for entries in asked(nothing, f"{operation}:entries") for topic, *_ in entries} >= INTERNAL
    assert {topic for topic, *_ in asked(nothing, "record")} >= INTERNAL
    (internal,) = INTERNAL & {topic for topic, *_ in asked(leader("__share_group_state").state, "record")}
    assert internal == "__share_group_state"


@pytest.mark.parametrize("lag_ms", [LAG, INT_MAX])
def test_more_than_twelve_may_wait(lag_ms: int) -> None:
    b = leader(replica_lag_time_max_ms=lag_ms)
    for _ in range(12):
        b.append("a")
    assert len(b.waiting) == 12
    assert any(ms > 0 for ms in asked(b.state, "timeout_ms"))
    assert any(ms > 0 for ms in asked(b.state, "max_wait_ms"))


@pytest.mark.clause("RMG-19")
def test_a_deletion_elsewhere_is_asked_for() -> None:
    """A fetch that nobody looked at is answered when the low watermark of its partition rises, as a deletion waits at
    another one."""
    b = leader("a", "b")
    b.append("b", acks=1)
    b.fetch(("b", 1), wait=0)
    b.delete(("b", 1), timeout=LAG)
    b.consume(("a", 0), epoch=0, wait=LAG)
    deletion, fetch = b.waiting
    records = asked(b.state, "record")
    mostly = max(records, key=records.count)
    assert mostly == ["a", 1, 1, 1, 1, [1, 2], [1, 2], 0]
    b("applyDelta", record=mostly)
    assert b.waiting == [deletion, fetch]
    assert {*asked(b.state, "replica")} == {2}
    requests = asked(b.state, "fetchMessages:entries")
    mostly = max(requests, key=requests.count)
    assert mostly == [["a", 1, 1, None, 0, 0]]
    told = {"replica": 2, "broker_epoch": 12, "only_leader": True, "max_wait_ms": 0, "min_bytes": 0}
    b("fetchMessages", **told, entries=mostly)
    assert b.waiting == [deletion]


def test_impl_does_what_the_spec_says() -> None:
    run_state_machine_as_test(state_machine(spec.machine, Driver))


# ---- who is asked
@pytest.mark.clause("RMG-1")
def test_a_partition_that_cannot_be_asked() -> None:
    b = leader("a", "b")
    b("handleLogDirFailure", directory=0)
    b.told("c", replicas=(1, 2), directory=1)
    b.told("c", version=1, epoch=1, leader=2, replicas=(2, 3), isr=(2,), directory=1)
    errors = [p[1] for p in b.append("a", "b", "c", "d", acks=1)["produced"][0][1]]
    assert errors == ["KAFKA_STORAGE_ERROR", None, "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"]
    errors = [p[1] for p in b.consume(("a", 0), ("c", 0), ("d", 0))["fetched"][0][1]]
    assert errors == ["KAFKA_STORAGE_ERROR", "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"]


@pytest.mark.clause("RMG-2")
def test_another_topic_id() -> None:
    b = leader()
    assert b.append("a", id=2)["produced"] == [[0, [["a", "UNKNOWN_TOPIC_ID", -1, -1]]]]
    assert b.append("a", id=0, acks=1)["produced"] == [[1, [["a", None, 0, 0]]]]
    assert b.consume(("a", 0), id=2)["fetched"][0][1][0][1] == "INCONSISTENT_TOPIC_ID"
    assert b.consume(("a", 0), id=0, wait=0)["fetched"][0][1][0][1] is None


# ---- producers
@pytest.mark.clause("RMG-3")
@pytest.mark.parametrize("acks", [2, -2, 2**15 - 1, -(2**15)])
def test_other_acks_append_nothing(acks: int) -> None:
    b = leader()
    refused = [["a", "INVALID_REQUIRED_ACKS", -1, -1], ["d", "INVALID_REQUIRED_ACKS", -1, -1]]
    assert b.append("a", "d", acks=acks)["produced"] == [[0, refused]]
    assert b.log() == (0, 0, 0)


@pytest.mark.clause("RMG-4")
def test_internal_topics() -> None:
    b = leader("__consumer_offsets")
    topic = "__consumer_offsets"
    assert b.append(topic, acks=1)["produced"][0][1][0][1] == "INVALID_TOPIC_EXCEPTION"
    assert b.append("__transaction_state", acks=1)["produced"][0][1][0][1] == "INVALID_TOPIC_EXCEPTION"
    assert b.append(topic, acks=1, internal=True)["produced"][0][1][0][1] is None
    assert b.delete((topic, -1))["deleted"][0][1][0][1] == "INVALID_TOPIC_EXCEPTION"
    assert b.delete((topic, 0), internal=True, timeout=0)["deleted"][0][1][0][1] == "REQUEST_TIMED_OUT"


@pytest.mark.clause("RMG-5")
def test_each_partition_is_answered_for_itself() -> None:
    b = leader("a", "b", min_insync_replicas=2)
    b.append("a", acks=1)
    b.told("b", version=1, isr=(1,))
    assert b.append("a", "b", "d", acks=-1, timeout=0)["produced"][0][1] == [
        ["a", "REQUEST_TIMED_OUT", 1, 0],
        ["b", "NOT_ENOUGH_REPLICAS", -1, 0],
        ["d", "UNKNOWN_TOPIC_OR_PARTITION", -1, -1],
    ]
    assert (b.log("a")[2], b.log("b")[2]) == (2, 0)


@pytest.mark.clause("RMG-6")
def test_who_waits() -> None:
    b = leader("a", min_insync_replicas=1)
    for acks in (0, 1):
        assert b.append("a", acks=acks)["produced"] != []
    assert b.append("d")["produced"] != []
    assert b.append()["produced"] == [[3, []]]
    assert b.append("a", "d") == nothing()
    assert b.waiting == [4]
    b.told(version=1, isr=(1,))
    assert b.waiting == []
    assert b.append("a")["produced"] == [[5, [["a", None, 3, 0]]]]


@pytest.mark.clause("RMG-7")
def test_a_producer_waits_for_all_its_partitions() -> None:
    b = leader("a", "b")
    b.append("a", "b", "d")
    assert b.fetch(("a", 1), wait=0)["produced"] == []
    b.told("a", version=1, epoch=1, leader=2)  # what was found stays
    assert b.fetch(("b", 1), wait=0)["produced"] == [
        [0, [["a", None, 0, 0], ["b", None, 0, 0], ["d", "UNKNOWN_TOPIC_OR_PARTITION", -1, -1]]]
    ]
    b.append("b")
    assert b.told("b", version=1, epoch=1, leader=2)["produced"] == [[3, [["b", "NOT_LEADER_OR_FOLLOWER", 1, 0]]]]


@pytest.mark.clause("RMG-8")
def test_a_producer_whose_time_has_passed() -> None:
    b = leader("a", "b")
    b.append("a", "b", timeout=100)
    b.fetch(("a", 1), wait=0)
    assert b.passes(99) == nothing()
    assert b.passes(1)["produced"] == [[0, [["a", None, 0, 0], ["b", "REQUEST_TIMED_OUT", 0, 0]]]]
    assert b.passes(1000) == nothing()


@pytest.mark.clause("RMG-8")
def test_nobody_looks_when_the_time_has_passed() -> None:
    b = leader("a", "b")
    b.append("a")
    b("handleLogDirFailure", directory=0)
    assert b.passes(1000)["produced"] == [[0, [["a", "REQUEST_TIMED_OUT", 0, 0]]]]


# ---- when they are looked at
@pytest.mark.clause("RMG-9")
def test_an_append_wakes_fetches() -> None:
    b = leader("a", "b")
    b.fetch(("a", 0), ("b", 0))
    b.consume(("a", 0))
    assert [a[0] for a in b.append("a")["fetched"]] == [0]
    assert b.waiting == [1, 2]
    given = b.fetch(("a", 1), wait=0)
    assert ([a[0] for a in given["produced"]], [a[0] for a in given["fetched"]]) == ([2], [1, 3])


@pytest.mark.clause("RMG-9")
def test_a_high_watermark_that_rises_with_the_append() -> None:
    b = leader("a", isr=(1,))
    b.consume(("a", 0))
    given = b.append("a")
    assert ([a[0] for a in given["produced"]], [a[0] for a in given["fetched"]]) == ([1], [0])


@pytest.mark.clause("RMG-9")
def test_a_change_of_the_in_sync_replicas_wakes_all() -> None:
    b = leader("a")
    b.fetch(("a", 0), wait=0)
    b.passes(LAG + 1)
    b.append("a", timeout=60_000)
    b("maybeShrinkIsr")
    assert [a[0] for a in b("alterPartitionSucceeded", topic="a")["produced"]] == [1]


@pytest.mark.clause("RMG-9")
def test_a_producer_is_looked_at_with_any_of_its_partitions() -> None:
    b = Broker()
    b.told("a", isr=(1,))
    b.told("b", directory=1)
    b.append("a", "b")
    b("handleLogDirFailure", directory=1)
    assert b.append("a", acks=1)["produced"] == [
        [0, [["a", None, 0, 0], ["b", "KAFKA_STORAGE_ERROR", 0, 0]]],
        [1, [["a", None, 1, 0]]],
    ]


@pytest.mark.clause("RMG-10")
def test_a_follower_of_the_epoch_that_it_knows_wakes_nobody() -> None:
    b = leader("a", "b")
    b.told("a", version=1, epoch=1, leader=2)
    b.consume(("a", 0), ("b", 0), nearest=True)
    b("handleLogDirFailure", directory=1)
    assert b.told("a", version=2, epoch=1, leader=2) == nothing()
    assert b.told("a", version=3, epoch=2, leader=2)["fetched"][0][1][1][1] == "KAFKA_STORAGE_ERROR"


@pytest.mark.clause("RMG-10")
def test_a_follower_wakes_producers_and_readers_and_no_deletions() -> None:
    b = leader("a")
    b.append("a", acks=1)
    b.fetch(("a", 1), wait=0, start=0)
    b.append("a")
    b.consume(("a", 1))
    b.delete(("a", 1))
    given = b.told(version=1, epoch=1, leader=2)
    assert [p[1] for _, parts in given["produced"] for p in parts] == ["NOT_LEADER_OR_FOLLOWER"]
    assert [p[1] for _, parts in given["fetched"] for p in parts] == ["NOT_LEADER_OR_FOLLOWER"]
    assert b.waiting == [4]
    assert b.passes(1000)["deleted"] == [[4, [["a", "REQUEST_TIMED_OUT", 0]]]]


@pytest.mark.clause("RMG-10")
def test_a_leader_of_a_new_epoch_wakes_nobody() -> None:
    b = leader("a")
    b.append("a")
    b.fetch(("a", 0), epoch=0, least=1000)
    assert b.told(version=1, epoch=1) == nothing()
    assert b.waiting == [0, 1]
    given = b.append("a", acks=1)
    assert given["fetched"][0][1][0][1] == "FENCED_LEADER_EPOCH"
    assert b.told(version=2, epoch=2, leader=2)["produced"][0][1][0][1] == "NOT_LEADER_OR_FOLLOWER"


# ---- fetches
@pytest.mark.clause("RMG-11")
def test_who_is_answered_at_once() -> None:
    b = leader("a", "b")
    b.append("a", acks=1)

    def at_once(*parts: tuple[str, int], **more: Any) -> bool:
        return [a[0] for a in b.fetch(*parts, **more)["fetched"]] == [b.state.requests - 1]

    assert at_once(("a", 0), least=RECORD_BYTES)
    assert not at_once(("a", 0), least=RECORD_BYTES + 1)
    assert at_once(("a", 0), least=RECORD_BYTES + 1, wait=0)
    assert at_once(least=1)
    assert at_once(("a", 1), ("d", 0), least=1000)
    assert at_once(("a", 1), least=0)
    assert not at_once(("a", 1), ("b", 0), least=1)


def diverged() -> Broker:
    """A leader in epoch 3 whose record is of epoch 1."""
    b = Broker()
    b.told(epoch=1)
    b.append("a", acks=1)
    b.told(epoch=3, version=1)
    return b


@pytest.mark.clause("RMG-11")
def test_logs_that_diverge_are_told_at_once() -> None:
    b = diverged()
    (answer,) = b.fetch(("a", 1), last=2, least=1000)["fetched"]
    assert answer[1] == [["a", None, [1, 1], None, 0, 0]]


@pytest.mark.clause("RMG-12")
def test_bytes_of_several_partitions_count_together() -> None:
    b = leader("a", "b")
    b.fetch(("a", 0), ("b", 0), least=2 * RECORD_BYTES)
    assert b.append("a", acks=1)["fetched"] == []
    assert b.append("b", acks=1)["fetched"] == [[0, [["a", None, None, 1, 0, 0], ["b", None, None, 1, 0, 0]]]]


@pytest.mark.clause("RMG-12")
def test_a_consumer_above_the_high_watermark_does_not_wait() -> None:
    b = leader("a")
    b.append("a", acks=1)
    assert b.consume(("a", 0)) == nothing()
    assert b.consume(("a", 1))["fetched"] == [[2, [["a", None, None, 1, 0, 0]]]]


@pytest.mark.clause("RMG-12")
def test_a_reader_of_what_fails_is_answered_when_it_is_looked_at() -> None:
    b = leader("a", "b")
    b.fetch(("a", 0), ("b", 0), least=1000)
    b("handleLogDirFailure", directory=0)
    (answer,) = b.append("b", acks=1)["fetched"]
    assert answer == [
        0, [["a", "KAFKA_STORAGE_ERROR", None, None, -1, -1], ["b", None, None, 1, 0, 0]]
    ]  # fmt: skip


@pytest.mark.clause("RMG-13")
def test_the_answer_is_read_when_it_is_given() -> None:
    b = leader("a", "b")
    b.append("a", acks=1)
    b.consume(("b", 0), ("a", 0), least=2 * RECORD_BYTES)
    b.append("b", acks=1)
    b.fetch(("a", 1), wait=0)
    given = b.fetch(("b", 1), wait=0)
    assert given["fetched"][0] == [1, [["b", None, None, 1, 1, 0], ["a", None, None, 1, 1, 0]]]
    b.consume(("b", 0), least=1000, wait=100)
    b.delete(("b", 1), timeout=0)
    assert b.passes(100)["fetched"][0][1][0][1] == "OFFSET_OUT_OF_RANGE"


@pytest.mark.clause("RMG-13")
def test_a_follower_that_waited_does_not_count_twice() -> None:
    b = leader("a", replica_lag_time_max_ms=LAG)
    b.fetch(("a", 0), wait=60_000)
    b.passes(LAG - 1)
    assert [a[0] for a in b.append("a", acks=1)["fetched"]] == [0]
    (known,) = b.host().replica.followers
    assert known.last_fetch_ms == 1_000_000
    b.append("a", acks=1)
    b.fetch(("a", 1), wait=0)  # as far as the log went when it fetched last: it was caught up then
    b.passes(2)
    b("maybeShrinkIsr")
    b("alterPartitionSucceeded", topic="a")
    assert b.host().replica.isr == (1,)


@pytest.mark.clause("RMG-14")
def test_each_read_of_a_follower_counts() -> None:
    b = leader("a", "b")
    b.append("a", "b", timeout=100)
    given = b.fetch(("a", 1), ("b", 9), ("d", 0))
    assert given["fetched"][0][1] == [
        ["a", None, None, 1, 0, 0],  # as before it counted
        ["b", "OFFSET_OUT_OF_RANGE", None, None, -1, -1],
        ["d", "UNKNOWN_TOPIC_OR_PARTITION", None, None, -1, -1],
    ]
    assert (b.log("a"), b.log("b")) == ((0, 1, 1), (0, 0, 1))


@pytest.mark.clause("RMG-15")
def test_a_reader_whose_time_has_passed_has_what_there_is() -> None:
    b = leader("a")
    b.fetch(("a", 0), least=1000, wait=500)
    b.append("a", acks=1)
    assert b.passes(499) == nothing()
    assert b.passes(1)["fetched"] == [[0, [["a", None, None, 1, 0, 0]]]]


# ---- deletions
@pytest.mark.clause("RMG-16")
def test_a_deletion_waits_for_the_followers() -> None:
    b = leader("a", "b")
    b.append("a", acks=1)
    b.fetch(("a", 1), ("b", 0), wait=0)
    assert b.delete(("a", 1), ("b", 0), ("d", 0)) == nothing()
    assert b.log()[0] == 1
    assert b.delete(("a", 2), ("b", -2), ("d", 0))["deleted"] == [
        [
            3,
            [
                ["a", "OFFSET_OUT_OF_RANGE", -1],
                ["b", "OFFSET_OUT_OF_RANGE", -1],
                ["d", "UNKNOWN_TOPIC_OR_PARTITION", -1],
            ],
        ]
    ]
    assert b.delete(("b", 0))["deleted"] == [[4, [["b", None, 0]]]]


@pytest.mark.clause("RMG-17")
def test_a_deletion_is_done_when_the_low_watermark_is_there() -> None:
    b = leader("a", "b")
    b.append("a", acks=1)
    b.fetch(("a", 1), ("b", 0), wait=0)
    b.delete(("a", 1), ("b", 0), ("d", 0), timeout=10_000)
    given = b.fetch(("a", 1), start=1, wait=0)["deleted"]
    assert given == [[2, [["a", None, 1], ["b", None, 0], ["d", "UNKNOWN_TOPIC_OR_PARTITION", -1]]]]
    assert b.waiting == []


@pytest.mark.clause("RMG-17")
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("follow", "NOT_LEADER_OR_FOLLOWER"),
        ("fail", "KAFKA_STORAGE_ERROR"),
        ("reassign", "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_a_deletion_that_cannot_be_done_any_more(change: str, error: str) -> None:
    """It is looked at when something happens at another partition."""
    b = leader("a", "b", isr=(1,))
    b.append("a", "b")
    b.delete(("a", 1), ("b", 1), timeout=10_000)
    if change == "follow":
        b.told("a", version=1, epoch=1, leader=2)
    elif change == "fail":
        b("handleLogDirFailure", directory=0)
    else:
        b.told("a", version=1, epoch=1, leader=2, replicas=(2, 3), isr=(2,))
    assert b.waiting == [1]
    given = b.fetch(("b", 1), start=1, wait=0)
    assert given["deleted"] == [[1, [["a", error, -1], ["b", None, 1]]]]


@pytest.mark.clause("RMG-16")
def test_a_partition_that_was_done_at_once_stays_done() -> None:
    b = leader("a", "b")
    b.append("a", acks=1)
    b.fetch(("a", 1), ("b", 0), wait=0)
    b.delete(("a", 1), ("b", 0), timeout=10_000)
    b.told("b", version=1, epoch=1, leader=2)
    given = b.fetch(("a", 1), start=1, wait=0)["deleted"]
    assert given == [[2, [["a", None, 1], ["b", None, 0]]]]


@pytest.mark.clause("RMG-18")
def test_a_deletion_whose_time_has_passed() -> None:
    b = leader("a", isr=(1,))
    b.append("a")
    b.append("a")
    b.fetch(("a", 2), wait=0)
    b.delete(("a", 2), timeout=100)
    b.fetch(("a", 2), start=1, wait=0)
    assert b.passes(99) == nothing()
    assert b.passes(1)["deleted"] == [[3, [["a", "REQUEST_TIMED_OUT", 0]]]]


@pytest.mark.clause("RMG-19")
def test_the_low_watermark_is_looked_at_while_a_deletion_waits() -> None:
    b = leader("a", "b", isr=(1,))
    b.append("a", acks=1)
    b.consume(("a", 1), least=1000, epoch=0)
    b.told("a", version=1, epoch=1, isr=(1,))
    assert b.fetch(("a", 1), wait=0)["fetched"][0][0] == 2  # the low watermark rises, and nobody looks
    b.append("b", acks=1)
    b.delete(("b", 1), timeout=10_000)
    assert b.waiting == [1, 4]
    given = b.fetch(("a", 1), start=0, wait=0)
    assert [a[0] for a in given["fetched"]] == [5]
    b.delete(("a", 1), timeout=10_000)
    given = b.fetch(("a", 1), start=1, wait=0)
    assert [a[0] for a in given["fetched"]] == [1, 7]
    assert given["fetched"][0][1][0][1] == "FENCED_LEADER_EPOCH"


# ---- the metadata
@pytest.mark.clause("RMG-20")
def test_a_broker_leads_and_follows_as_it_is_told() -> None:
    b = Broker()
    b.told(epoch=3, version=5)
    replica = b.host().replica
    assert (replica.leader, replica.leader_epoch, replica.partition_epoch, replica.isr) == (1, 3, 5, (1, 2))
    b.told(epoch=4, version=6, leader=-1, isr=(2,))
    replica = b.host().replica
    assert (replica.leader, replica.leader_epoch, replica.isr) == (-1, 4, ())


@pytest.mark.clause("RMG-20")
def test_an_older_partition_epoch_is_ignored() -> None:
    """The controller has answered, and its metadata comes later."""
    b = leader("a", isr=(1,))
    b.fetch(("a", 0), wait=0)
    b("alterPartitionSucceeded", topic="a")
    b.passes(LAG + 1)
    b.append("a", acks=1)
    b("maybeShrinkIsr")
    b("alterPartitionSucceeded", topic="a")
    assert (b.host().replica.partition_epoch, b.host().replica.isr) == (2, (1,))
    b.told(version=1)
    assert (b.host().replica.partition_epoch, b.host().replica.isr) == (2, (1,))


@pytest.mark.clause("RMG-20")
def test_a_leader_whose_high_watermark_rises_wakes_all() -> None:
    b = leader("a")
    b.append("a")
    assert b.told(version=1, isr=(1,))["produced"] == [[0, [["a", None, 0, 0]]]]


@pytest.mark.clause("RMG-21")
def test_a_partition_that_is_stopped() -> None:
    b = leader("a", "b")
    b.append("a", "b")
    b.consume(("a", 0))
    given = b.told("a", version=1, epoch=1, leader=2, replicas=(2, 3), isr=(2,))
    assert (b.state.host("a"), b.waiting) == (None, [0])
    assert given["fetched"] == [[1, [["a", "NOT_LEADER_OR_FOLLOWER", None, None, -1, -1]]]]
    given = b("deleteTopic", topic="b")
    assert [p[1] for p in given["produced"][0][1]] == ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert b("deleteTopic", topic="a") == nothing()


@pytest.mark.clause("RMG-21")
def test_one_that_is_offline_stays_so() -> None:
    b = leader("a", "b")
    b.append("a")
    b("handleLogDirFailure", directory=0)
    given = b("deleteTopic", topic="a")
    assert given["produced"][0][1][0][1] == "KAFKA_STORAGE_ERROR"
    assert not b.host("a").online


@pytest.mark.clause("RMG-22")
def test_a_topic_that_is_made_again() -> None:
    b = leader("a")
    b.append("a")
    given = b.told(id=7, epoch=0, version=0, isr=(1,))
    assert given["produced"][0][1][0][1] == "NOT_LEADER_OR_FOLLOWER"
    assert (b.host().topic_id, b.log()) == (7, (0, 0, 0))
    assert b.host().replica.leader_epoch == 0


@pytest.mark.clause("RMG-23")
def test_only_another_topic_brings_an_offline_partition_up() -> None:
    b = leader("a", "b")
    b("handleLogDirFailure", directory=0)
    b.told(version=1, epoch=1, directory=1)
    assert not b.host().online
    b.told(version=2, epoch=2, leader=2, directory=1)
    assert not b.host().online
    b.told(id=7, directory=1)
    assert (b.host().online, b.host().topic_id) == (True, 7)


# ---- directories
@pytest.mark.clause("RMG-24")
def test_a_directory_fails_and_nobody_is_told() -> None:
    b = leader("a", "b")
    b.append("a")
    b.consume(("a", 0))
    b.delete(("b", 0))
    assert b("handleLogDirFailure", directory=0) is None
    assert [h.online for h in b.state.hosted] == [False, True]
    assert b.waiting == [0, 1, 2]
    assert b.passes(500)["fetched"][0][1][0][1] == "KAFKA_STORAGE_ERROR"
    assert b.append("b", acks=1)["produced"][0][1][0][1] is None


@pytest.mark.clause("RMG-25")
def test_each_directory_has_a_file_of_high_watermarks() -> None:
    b = leader("a", "b", isr=(1,))
    b.append("a", "b")
    b.append("a")
    assert b("checkpointHighWatermarks") == [[0, [["a", 2]]], [1, [["b", 1]]]]
    b("deleteTopic", topic="a")
    b.append("b")
    assert b("checkpointHighWatermarks") == [[0, [["a", 2]]], [1, [["b", 2]]]]
    b.told("c", isr=(1,), directory=0)
    assert b("checkpointHighWatermarks") == [[0, [["c", 0]]], [1, [["b", 2]]]]
    b("handleLogDirFailure", directory=0)
    assert b("checkpointHighWatermarks") == [[1, [["b", 2]]]]


# ---- once
@pytest.mark.clause("RMG-26")
def test_each_request_has_one_answer() -> None:
    b = leader("a", "b")
    b.append("a", "b", timeout=100)
    b.fetch(("a", 1), ("b", 1), wait=100)
    assert b.fetch(("a", 1), ("b", 1), replica=-1, wait=0)["fetched"][0][0] == 2
    assert b.waiting == [1]
    assert [a[0] for a in b.passes(100)["fetched"]] == [1]
    assert b.passes(100) == nothing()
    assert b.append("a", timeout=0)["produced"] == [[3, [["a", "REQUEST_TIMED_OUT", 1, 0]]]]


@pytest.mark.clause("RMG-27")
def test_what_a_caller_may_not_do() -> None:
    def outside(b: Broker, name: str, **arguments: Any) -> bool:
        found = spec.machine.apply(b.state, name, arguments)
        return isinstance(found, Outside) and found.clause == "RMG-27"

    def told(b: Broker, *record: Any) -> bool:
        return outside(b, "applyDelta", record=[*record])

    b = leader("a", "b")
    assert told(b, "a", 1, 1, 0, 0, [1, 2], [1, 2], 0)
    assert told(b, "a", 1, 2, 0, 1, [1, 2], [1, 2], 0)
    assert told(b, "a", 1, 1, 0, 1, [1, 2], [2], 0)
    assert told(b, "c", 9, 2, 0, 0, [2, 3], [2], 0)
    assert told(b, "c", 2, 1, 0, 0, [1, 2], [1, 2], 0)
    assert told(b, "a", 0, 1, 0, 1, [1, 2], [1, 2], 0)
    assert outside(b, "deleteTopic", topic="c")
    assert outside(b, "alterPartitionSucceeded", topic="a")
    b.told("c", version=INT_MAX, isr=[1])
    b.fetch(("c", 0), life=12)
    assert outside(b, "alterPartitionSucceeded", topic="c")
    b("deleteTopic", topic="c")
    assert outside(b, "deleteRecords", timeout_ms=0, internal_topics_allowed=False, entries=[["a", 0], ["a", 0]])
    b("handleLogDirFailure", directory=0)
    assert outside(b, "handleLogDirFailure", directory=1)
    assert told(b, "c", 9, 1, 0, 0, [1, 2], [1, 2], 0)
    assert not told(b, "c", 9, 1, 0, 0, [1, 2], [1, 2], 1)


@pytest.mark.clause("RMG-28")
def test_who_lags_is_looked_for_in_every_partition() -> None:
    b = leader("a", "b")
    b.append("a", "b", acks=1)
    b.passes(LAG + 1)
    b("maybeShrinkIsr")
    assert [h.replica.pending is not None for h in b.state.hosted] == [True, True]
    b("alterPartitionSucceeded", topic="b")
    assert b.host("b").replica.isr == (1,)


# ---- threads
def broken(**flags: bool) -> tuple[str, list[str]]:
    """The claim that is false with these flags, and the actions of the shortest way there."""
    trace = explore(load(Waits), {"Request": 1, "L": 1, **AS_IN_KAFKA, **flags}).trace
    assert trace is not None
    return trace.claim, [s.action for s in trace.steps if s.action]


@pytest.mark.clause("RMG-26")
def test_without_a_second_look_a_request_is_forgotten() -> None:
    claim, steps = broken(SECOND_LOOK=False)
    assert claim == "nobody_is_forgotten"
    assert steps == ["append", "look", "rise", "read_the_list", "enter", "look_again"]


@pytest.mark.clause("RMG-26")
def test_who_does_not_look_whether_it_is_completed_answers_twice() -> None:
    assert broken(COMPLETED=False)[0] in ("nobody_is_answered_twice", "an_answer_stays")


@pytest.mark.clause("RMG-26")
def test_a_number_of_requests_is_not_counted_out() -> None:
    """A state that another call could not have left is told from a right one at once, whatever its number is."""
    state = spec.initial()
    assert spec.once(state, spec.answered(Outcome(state)))
    assert not spec.once(state, spec.answered(Outcome(replace(state, requests=2**60))))
