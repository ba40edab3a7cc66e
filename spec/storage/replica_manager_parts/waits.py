"""Requests that wait: when they are looked at, what is looked for, and what they are answered.

The clauses are those of the replica manager, `spec.storage.replica_manager`, whose operations use them.

Source: ReplicaManager, DelayedProduce, DelayedFetch, DelayedDeleteRecords and DelayedOperationPurgatory, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafkaspec.contract.clauses import ONE_CALL, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.machine import Refused
from kafkaspec.spec.storage import high_watermark as hwm
from kafkaspec.spec.storage.high_watermark_parts import fetches
from kafkaspec.spec.storage.high_watermark_parts.replicas import Partition, low_watermark_of, rule
from kafkaspec.spec.storage.replica_manager_parts import state as known
from kafkaspec.spec.storage.replica_manager_parts.state import (
    NO_TOPIC_ID,
    OFFSET_UNKNOWN,
    RECORD_BYTES,
    Answer,
    Delete,
    DeleteAnswer,
    Deleted,
    Fetch,
    FetchAnswer,
    Fetched,
    Kind,
    Manager,
    Pending,
    Produce,
    ProduceAnswer,
    Produced,
    ToFetch,
    Waiting,
    error_of,
    found,
)

MANAGER, PURGATORY = known.MANAGER, known.PURGATORY
EVERY: tuple[Kind, ...] = ("fetch", "produce", "delete")
NOT_WHERE_ONE_WAITS = {
    "model": "the model has one partition, and requests that wait for its high watermark",
    "proof": "see the model",
}
NOT_PROVED = {"proof": "the interleavings of one request's threads: explored"}


class Given(NamedTuple):
    """The state after, and who was answered."""

    state: Manager
    answers: tuple[Answer, ...] = ()

    def and_then(self, other: Given) -> Given:
        """What `other` did after this."""
        return Given(other.state, (*self.answers, *other.answers))


# ---- reading ---------------------------------------------------------------------------------------------------------
def failed(topic: str, error: str) -> Fetched:
    return Fetched(topic, error, None, None, OFFSET_UNKNOWN, OFFSET_UNKNOWN)


def of_fetch(topic: str, answer: fetches.Fetch | Refused) -> Fetched:
    if isinstance(answer, Refused):
        return failed(topic, error_of(answer))
    return Fetched(topic, None, answer.diverging, answer.end, answer.high_watermark, answer.log_start)


@states(without=ONE_CALL)
def another_topic(asked: int, topic_id: int) -> bool:
    """RMG-2: A request that names another topic id than the partition's is answered with UNKNOWN_TOPIC_ID if it
    appends, and with INCONSISTENT_TOPIC_ID if it fetches. Without a topic id nothing is compared, nor where records
    are deleted. [KIP-516; {MANAGER}, getPartitionOrException and readFromLog]"""
    return asked not in (NO_TOPIC_ID, topic_id)


def asked_partition(state: Manager, part: ToFetch) -> Partition | Fetched:
    hosted = found(state, part.topic)
    if isinstance(hosted, str):
        return failed(part.topic, hosted)
    if another_topic(part.topic_id, hosted.topic_id):
        return failed(part.topic, "INCONSISTENT_TOPIC_ID")
    return state.replica(hosted)


@states(without=NOT_WHERE_ONE_WAITS)
def reread(state: Manager, fetch: Fetch, part: ToFetch) -> Fetched:
    """RMG-13: The answer to a fetch that has waited is read when it is given: each partition has its records then, or
    an error, or where the logs diverge, as of a new fetch (HWM-9 to HWM-13, HWM-37). A follower's fetch does not count
    a second time. [DelayedFetch, Kafka 4.3.0, onComplete; {MANAGER}, readFromLog]"""
    p = asked_partition(state, part)
    if isinstance(p, Fetched):
        return p
    epochs = (part.current_leader_epoch, part.last_fetched_epoch)
    if not fetch.is_of_follower:
        return of_fetch(part.topic, rule(hwm.fetch_records_of_consumer)(p, *epochs, part.offset, fetch.only_leader))
    refused = fetches.refused_log(p, part.current_leader_epoch, only_leader=True)
    if refused is None and p.follower(fetch.replica) is None:
        unnamed = part.current_leader_epoch is None
        refused = hwm.UNKNOWN_REPLICA_WITHOUT_EPOCH if unnamed else hwm.UNKNOWN_REPLICA
    found_there = refused or fetches.read(p, part.offset, part.last_fetched_epoch, follower=True)
    return of_fetch(part.topic, found_there)


def first_read(state: Manager, fetch: Fetch, part: ToFetch) -> tuple[Given, Fetched]:
    """A read that counts, and what came of it."""
    p = asked_partition(state, part)
    if isinstance(p, Fetched) or not fetch.is_of_follower:
        return Given(state), reread(state, fetch, part)
    step = rule(hwm.fetch_records)(
        p, fetch.replica, fetch.broker_epoch, part.current_leader_epoch, part.last_fetched_epoch, part.offset,
        part.log_start,
    )  # fmt: skip
    after = state.with_replica(part.topic, step.state)
    rose = step.state.log.high_watermark > p.log.high_watermark
    given = checked(after, part.topic, EVERY) if rose or low_watermark_rose(state, p, step.state) else Given(after)
    return given, of_fetch(part.topic, step.result)


@states(without=NOT_WHERE_ONE_WAITS)
def low_watermark_rose(state: Manager, before: Partition, after: Partition) -> bool:
    """RMG-19: While a request to delete records waits, at whatever partition, a leader looks at its low watermark
    (HWM-31) when a follower has fetched. [Partition, Kafka 4.3.0, updateFollowerFetchState; KIP-107]"""
    return state.waits("delete") > 0 and low_watermark_of(after) > low_watermark_of(before)


def size(fetched: Fetched, offset: int) -> int:
    return RECORD_BYTES * (fetched.end - offset) if fetched.end is not None else 0


# ---- looking at who waits --------------------------------------------------------------------------------------------
@states(without=NOT_PROVED)
def produced(state: Manager, waiting: Produce) -> Produce:
    """RMG-7: When a produce request that waits is looked at, each of its partitions that it still waits for is done if
    the high watermark has reached the end of its record there, and has the error NOT_LEADER_OR_FOLLOWER if the broker
    leads it no more, or the error of a partition that it has not (RMG-1). What one look has found stays. The request is
    answered when it waits for no partition. [DelayedProduce, Kafka 4.3.0; {MANAGER}, maybeAddDelayedProduce; HWM-29]
    """
    parts = []
    for part in waiting.partitions:
        if part.waits:
            hosted = found(state, part.answer.topic)
            error: str | None
            if isinstance(hosted, str):
                done, error = True, hosted
            else:
                completion = rule(hwm.check_enough_replicas_reach_offset)(state.replica(hosted), part.required_offset)
                done, error = completion.reached or completion.error is not None, completion.error
            if done:
                part = replace(part, waits=False, answer=part.answer._replace(error=error))
        parts.append(part)
    return replace(waiting, partitions=tuple(parts))


@states(without=NOT_WHERE_ONE_WAITS)
def deleted(state: Manager, waiting: Delete) -> Delete:
    """RMG-17: When a request to delete records that waits is looked at, each of its partitions that it still waits for
    is done if the low watermark has reached the offset, and has that low watermark. A partition that the broker leads
    no more has the error NOT_LEADER_OR_FOLLOWER, one that failed KAFKA_STORAGE_ERROR, and one that it has not
    UNKNOWN_TOPIC_OR_PARTITION, whatever the metadata has; the low watermark is -1 then. The request is answered when
    it waits for no partition. [DelayedDeleteRecords, Kafka 4.3.0; {MANAGER}, deleteRecords]"""
    parts = []
    for part in waiting.partitions:
        if part.waits:
            error, low = None, OFFSET_UNKNOWN
            hosted = state.host(part.answer.topic)
            if hosted is None:
                error = "UNKNOWN_TOPIC_OR_PARTITION"
            elif not hosted.online:
                error = "KAFKA_STORAGE_ERROR"
            elif not hosted.replica.is_leader:
                error = "NOT_LEADER_OR_FOLLOWER"
            else:
                low = low_watermark_of(state.replica(hosted))
            if error is not None or low >= part.required_offset:
                part = replace(part, waits=False, answer=Deleted(part.answer.topic, error, low))
        parts.append(part)
    return replace(waiting, partitions=tuple(parts))


@states(without=NOT_WHERE_ONE_WAITS)
def is_satisfied(state: Manager, fetch: Fetch) -> bool:
    """RMG-12: A fetch that is looked at is answered if the bytes from its offsets up to the high watermarks, of a
    follower up to the log ends, are together at least its minBytes; or if one of its partitions cannot be asked any
    more (RMG-1, HWM-9, HWM-10), or is asked from above that end. So a consumer that fetches from above the high
    watermark does not wait. [DelayedFetch, Kafka 4.3.0, tryComplete]"""
    bytes_there = 0
    for part in fetch.partitions:
        hosted = found(state, part.topic)
        if isinstance(hosted, str):
            return True
        p = state.replica(hosted)
        if fetches.refused_log(p, part.current_leader_epoch, fetch.only_leader) is not None:
            return True
        end = p.log.log_end if fetch.is_of_follower else p.log.high_watermark
        if part.offset > end:
            return True
        bytes_there += RECORD_BYTES * (end - part.offset)
    return bytes_there >= fetch.min_bytes


def answer_of(state: Manager, waiting: Waiting) -> Answer:
    """What it is answered as it is."""
    if isinstance(waiting, Fetch):
        return FetchAnswer(waiting.id, tuple(reread(state, waiting, part) for part in waiting.partitions))
    if isinstance(waiting, Produce):
        return ProduceAnswer(waiting.id, tuple(p.answer for p in waiting.partitions if isinstance(p.answer, Produced)))
    return DeleteAnswer(waiting.id, tuple(p.answer for p in waiting.partitions if isinstance(p.answer, Deleted)))


def looked_at(state: Manager, waiting: Waiting) -> tuple[Waiting, Answer | None]:
    """What it waits for then, and its answer if it is given."""
    if isinstance(waiting, Fetch):
        return waiting, answer_of(state, waiting) if is_satisfied(state, waiting) else None
    now = produced(state, waiting) if isinstance(waiting, Produce) else deleted(state, waiting)
    return now, None if any(p.waits for p in now.partitions) else answer_of(state, now)


@states(without=NOT_PROVED)
def checked(state: Manager, topic: str, kinds: Iterable[Kind]) -> Given:
    """RMG-9: Requests that wait are looked at when something has happened at one of their partitions, each with all its
    partitions: all of them when the high watermark rose, or when the low watermark did (RMG-19); fetches alone when
    records were appended and the high watermark stayed. [{PURGATORY}, checkAndComplete; {MANAGER},
    addCompletePurgatoryAction; Partition, Kafka 4.3.0, tryCompleteDelayedRequests]"""
    looking = tuple(kinds)
    waiting: list[Waiting] = []
    answers = []
    for one in state.waiting:
        answer = None
        if one.kind in looking and topic in one.topics:
            one, answer = looked_at(state, one)
        if answer is None:
            waiting.append(one)
        else:
            answers.append(answer)
    return Given(replace(state, waiting=tuple(waiting)), tuple(answers))


@states(without=NOT_PROVED)
def begun(state: Manager, waiting: Waiting) -> Given:
    """RMG-26: A request that cannot be answered at once is looked at, and waits if it is not answered then; it is
    answered once, by whoever looks first, or when its time has passed. Nobody waits whose time is 0 ms. [{PURGATORY},
    tryCompleteElseWatch; DelayedOperation, Kafka 4.3.0]"""
    now, answer = looked_at(state, waiting)
    if answer is None and now.deadline <= state.now:
        answer = answer_of(state, timed_out(now))
    if answer is not None:
        return Given(state, (answer,))
    return Given(replace(state, waiting=(*state.waiting, now)))


def _late(part: Pending) -> Pending:
    """[RMG-8, RMG-18]"""
    return replace(part, answer=part.answer._replace(error="REQUEST_TIMED_OUT")) if part.waits else part


def timed_out(waiting: Waiting) -> Waiting:
    """The request when its time has passed: it is not looked at again."""
    if isinstance(waiting, Fetch):
        return waiting
    return replace(waiting, partitions=tuple(_late(p) for p in waiting.partitions))
