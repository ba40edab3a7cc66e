"""The replica manager of a broker: several partitions, what the metadata makes of them, and the requests of producers,
consumers, followers and administrators, which wait until they can be answered, or until their time has passed.

What one partition does is the high watermark (HWM), and nothing of it is said again here. Here it stands among others:
a request names several partitions, and has one answer; and whoever waits is looked at only when something happens at
one of the partitions that it waits for. What nobody looks at waits until its time has passed.

Source: KIP-107, KIP-516, KIP-595; ReplicaManager, DelayedProduce, DelayedFetch, DelayedDeleteRecords, Partition and
LogManager, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import ONE_CALL, clause, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import BrokerEpoch, Duration, LeaderEpoch, NodeId, Time, Timeout, Within
from kafkaspec.spec.common.kafka import INT_MAX
from kafkaspec.spec.storage import high_watermark as hwm
from kafkaspec.spec.storage.high_watermark_parts.contracts import is_set, is_told_in_order
from kafkaspec.spec.storage.high_watermark_parts.replicas import LOCAL, Broker, Config, Partition, rule
from kafkaspec.spec.storage.replica_manager_parts import state as parts
from kafkaspec.spec.storage.replica_manager_parts.state import (
    DIRECTORIES,
    INTERNAL,
    OFFSET_UNKNOWN,
    Answers,
    Checkpoint,
    Delete,
    DeleteAnswer,
    DeleteResult,
    Directory,
    Fetch,
    FetchAnswer,
    HostedPartition,
    Image,
    Manager,
    PartitionStatus,
    Produce,
    ProduceAnswer,
    ProduceResult,
    ToAppend,
    ToDelete,
    ToFetch,
    TopicId,
    error_of,
    found,
    observe,
)
from kafkaspec.spec.storage.replica_manager_parts.waits import (
    EVERY,
    NOT_PROVED,
    NOT_WHERE_ONE_WAITS,
    Outcome,
    another_topic,
    answer_of,
    begun,
    checked,
    first_read,
    size,
    timed_out,
)

PREFIX = "RMG"
TITLE = "Replica manager"

MANAGER = parts.MANAGER

Acks = Annotated[int, Within(-(2**15), 2**15 - 1)]
TimeoutMs = Annotated[int, Within(0, INT_MAX)]
MinBytes = Annotated[int, Within(0, INT_MAX)]
Reader = Annotated[int, Within(-1, INT_MAX)]
FewReplicas = Annotated[int, Within(1, 100)]

clause(
    """RMG-27: The caller's duty: a request names a topic once. The metadata has a partition in order: with a higher
    partition epoch each time, no lower leader epoch, and one leader of a leader epoch, which is in sync, as HWM-39
    says; a new topic has a higher topic id than any before. Whoever is no replica is not made one again of the same
    topic. A new partition's directory has not failed, and some directory has not. Who answers a change of the in-sync
    replicas has done what was asked. Time stays within 62 bits. [ReplicationControlManager and {MANAGER}]""",
    without={
        "model": "the model's environment keeps it",
        "proof": "see the model",
        "impl": "the caller's duty: the impl relies on it and does not check it",
        "mutant": "beyond it nothing is promised, so that nothing can be broken",
    },
)


class PartitionRecord(NamedTuple):
    """What the metadata has of the partition of a topic; -1 leads where nobody does. A new one is in that directory."""

    topic: str
    topic_id: TopicId
    leader: Annotated[int, Within(-1, INT_MAX)]
    leader_epoch: LeaderEpoch
    partition_epoch: Annotated[int, Within(0, INT_MAX)]
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    directory: Directory


FOLLOWERS = (2, 3)
"""The other brokers."""
FIRST_LIFE = 12
"""Their broker epoch."""


def initial(
    min_insync_replicas: FewReplicas = 1, replica_lag_time_max_ms: Timeout = 30_000, now: Time = 1_000_000
) -> Manager:
    """A broker, 1, without partitions, and two others, 2 and 3; `now` in ms."""
    others = tuple(Broker(id, FIRST_LIFE, False, False) for id in FOLLOWERS)
    return Manager(Config(replica_lag_time_max_ms, min_insync_replicas, 101), now, others)


machine = Machine("replica_manager", initial, observe)


def answered(given: Outcome) -> Step[Manager, Answers]:
    return Step(given.state, Answers.of(given.answers))


def _ids(state: Manager) -> set[int]:
    return {w.id for w in state.waiting}


def once(state: Manager, result: Step[Manager, Answers]) -> bool:
    """Whether each request that waited, and the one that came, either waits or has its one answer."""
    assert not isinstance(result.result, Refused)
    given = [a.id for a in result.result.every]
    came = {state.requests} if result.state.requests == state.requests + 1 else set()
    left = result.state.requests == state.requests + len(came)
    return left and sorted([*given, *_ids(result.state)]) == sorted(_ids(state) | came)


each_once = ensure(lambda state, result: once(state, result), "RMG-26 each request has one answer, or waits")


# ---- the metadata and the clock --------------------------------------------------------------------------------------
@machine.environment("updateBroker")
@require(lambda id: id in FOLLOWERS, "RMG-27 a broker that is registered")
@ensure(lambda state, result: result.hosted == state.hosted, "RMG-27 nothing is done about it")
def update_broker(state: Manager, id: NodeId, fenced: bool) -> Manager:
    """The metadata has a broker as fenced or not."""
    return replace(state, brokers=tuple(b._replace(fenced=fenced) if b.id == id else b for b in state.brokers))


@machine.operation("advance", "RMG-8", "RMG-15", "RMG-18", "RMG-13", "RMG-26", kind="time")
@states(without={"RMG-8": NOT_PROVED, "RMG-15": NOT_WHERE_ONE_WAITS, "RMG-18": NOT_WHERE_ONE_WAITS})
@require(lambda state, ms: state.now + ms <= 2**62, "RMG-27 time stays within 62 bits")
@each_once
@ensure(lambda result: all(w.deadline > result.state.now for w in result.state.waiting), "RMG-8 nobody waits longer")
def advance(state: Manager, ms: Duration) -> Step[Manager, Answers]:
    """Time passes, `ms` of it.

    RMG-8: When the timeout of a produce request that waits has passed, it is answered: with REQUEST_TIMED_OUT for each
    partition that it waits for, also where its high watermark has been reached or its directory has failed, if nobody
    looked. [DelayedProduce, Kafka 4.3.0]

    RMG-15: When maxWaitMs of a fetch that waits has passed, it is answered with what there is, without an error for
    that. [DelayedFetch, Kafka 4.3.0]

    RMG-18: When the timeout of a request to delete records that waits has passed, it is answered: with
    REQUEST_TIMED_OUT for each partition that it waits for, and the low watermark of the time when it came.
    [DelayedDeleteRecords, Kafka 4.3.0]"""
    after = replace(state, now=state.now + ms)
    late = [w for w in state.waiting if w.deadline <= after.now]
    given = tuple(answer_of(after, timed_out(w)) for w in late)
    return answered(Outcome(replace(after, waiting=tuple(w for w in state.waiting if w not in late)), given))


def may_be_told(state: Manager, told: PartitionRecord) -> bool:
    """Whether the metadata may have that next."""
    replicas, isr = told.replicas, told.isr
    if not (is_set(replicas) and {*isr} <= {*replicas} and len({*isr}) == len(isr)):
        return False
    if told.leader != -1 and not (told.leader in isr and told.leader in replicas):
        return False
    image, hosted = state.image(told.topic), state.host(told.topic)
    if image is None or image.topic_id != told.topic_id:
        return told.topic_id > state.topic_ids and LOCAL in replicas
    if LOCAL not in image.replicas or told.partition_epoch <= image.partition_epoch:
        return False
    same = (told.leader_epoch, told.leader) == (image.leader_epoch, image.leader)
    if not same and told.leader_epoch <= image.leader_epoch:
        return False
    if hosted is None or not hosted.online or LOCAL not in replicas:
        return True
    return is_told_in_order(hosted.replica, told.leader, told.leader_epoch, told.partition_epoch)


def stopped(state: Manager, topic: str) -> Outcome:
    """The state without the partition, whose producers and readers are told."""
    hosted = state.host(topic)
    after = state.without_hosted(topic) if hosted is not None and hosted.online else state
    return without_leader(after, topic)


@states(without=NOT_PROVED)
def without_leader(state: Manager, topic: str) -> Outcome:
    """RMG-10: When a broker becomes a follower in a new leader epoch, or stops a partition, it looks at the produce
    requests and fetches that wait there; not at requests to delete records, which wait until their time has passed.
    When it becomes a leader it looks at nobody, unless the high watermark rises. [{MANAGER},
    completeDelayedOperationsWhenNotPartitionLeader]"""
    return checked(state, topic, ("fetch", "produce"))


@machine.operation(
    "applyDelta", "RMG-20", "RMG-21", "RMG-22", "RMG-23", "RMG-10", "RMG-9", "RMG-7", "RMG-12", "RMG-13", "RMG-17",
    "RMG-1", "RMG-26",
)  # fmt: skip
@states(without=ONE_CALL)
@require(lambda state, record: may_be_told(state, record), "RMG-27 the metadata has a partition in order")
@require(lambda state, record: record.directory not in state.failed, "RMG-27 the directory has not failed")
@each_once
@ensure(
    lambda record, result: (
        (host := result.state.host(record.topic)) is None
        or not host.online
        or (host.topic_id == record.topic_id and LOCAL in record.replicas)
    ),
    "RMG-21 what is served is what the metadata has",
)
@ensure(
    lambda state, record, result: (
        (before := state.host(record.topic)) is None
        or (after := result.state.host(record.topic)) is None
        or not (before.online and after.online and before.topic_id == after.topic_id)
        or after.replica.partition_epoch >= before.replica.partition_epoch
    ),
    "RMG-20 a partition epoch does not fall",
)
def apply_delta(state: Manager, record: PartitionRecord) -> Step[Manager, Answers]:
    """The metadata has the partition of a topic so.

    RMG-20: A broker that is a replica makes the partition if it has none, with an empty log in the directory that the
    metadata names, and leads or follows as it is told (HWM-24, HWM-26), unless its own partition epoch is higher
    (HWM-23). [{MANAGER}, applyDelta]

    RMG-21: A partition whose topic is deleted, or of which the broker is a replica no more, is not served from then on,
    and its log is deleted; one whose directory failed stays offline. [{MANAGER}, stopPartitions]

    RMG-22: If the metadata has a topic under the name of another one, with another topic id, the partition of that is
    stopped first, and the new one begins with an empty log. [KIP-516; {MANAGER}, applyDelta]

    RMG-23: A partition that is offline stays so while the metadata has its topic id; under another one a new partition
    is made. [{MANAGER}, getOrCreatePartition]"""
    topic, image, replicas = record.topic, state.image(record.topic), record.replicas
    told = Image(topic, record.topic_id, record.partition_epoch, record.leader, record.leader_epoch, tuple(replicas))
    others = [i for i in state.metadata if i.topic != topic]
    known = max(state.topic_ids, record.topic_id)
    given = Outcome(replace(state, metadata=tuple(sorted([*others, told])), topic_ids=known))
    if image is not None and LOCAL in image.replicas and (image.topic_id != record.topic_id or LOCAL not in replicas):
        given = stopped(given.state, topic)
    if LOCAL not in replicas:
        return answered(given)
    hosted = given.state.host(topic)
    if hosted is not None and not hosted.online and hosted.topic_id == record.topic_id:
        return answered(given)
    if hosted is None or not hosted.online:
        hosted = HostedPartition(topic, record.topic_id, record.directory, True, Partition(state.config, 0))
    change = led if record.leader == LOCAL else followed
    return answered(given.and_then(change(given.state.with_hosted(hosted), hosted, record)))


def led(state: Manager, hosted: HostedPartition, told: PartitionRecord) -> Outcome:
    """The state in which this broker leads."""
    before = state.replica(hosted)
    epochs = (told.leader_epoch, told.partition_epoch)
    step = rule(hwm.make_leader)(before, *epochs, told.replicas, told.isr, "RECOVERED")
    return raised(state, told.topic, before, step.state)


def raised(state: Manager, topic: str, before: Partition, after: Partition) -> Outcome:
    """The state with the partition, and who is answered because its high watermark rose."""
    rose = after.log.high_watermark > before.log.high_watermark
    new = state.with_replica(topic, after)
    return checked(new, topic, EVERY) if rose else Outcome(new)


def followed(state: Manager, hosted: HostedPartition, told: PartitionRecord) -> Outcome:
    """The state in which another broker leads, or nobody."""
    epochs = (told.leader_epoch, told.partition_epoch)
    step = rule(hwm.make_follower)(state.replica(hosted), told.leader, *epochs, "RECOVERED")
    new = state.with_replica(told.topic, step.state)
    return without_leader(new, told.topic) if step.result else Outcome(new)


@machine.operation("deleteTopic", "RMG-21", "RMG-10", "RMG-7", "RMG-12", "RMG-13", "RMG-1", "RMG-26")
@require(lambda state, topic: state.image(topic) is not None, "RMG-27 the metadata has the topic")
@each_once
@ensure(
    lambda topic, result: (host := result.state.host(topic)) is None or not host.online,
    "RMG-21 it is not served any more",
)
def delete_topic(state: Manager, topic: str) -> Step[Manager, Answers]:
    """The metadata has a topic no more."""
    image = state.image(topic)
    after = replace(state, metadata=tuple(i for i in state.metadata if i.topic != topic))
    is_replica = image is not None and LOCAL in image.replicas
    return answered(stopped(after, topic) if is_replica else Outcome(after))


# ---- producers -------------------------------------------------------------------------------------------------------
def named_once(topics: Sequence[str]) -> bool:
    return len(topics) <= 10 and len({*topics}) == len(topics)


def is_valid(acks: int) -> bool:
    return acks in (-1, 0, 1)


def _appended(state: Manager, part: ToAppend, acks: int, internal_allowed: bool) -> tuple[Manager, ProduceResult]:
    """The state with the record, and the partition's answer."""

    def no(error: str, log_start: int = OFFSET_UNKNOWN) -> tuple[Manager, ProduceResult]:
        return state, ProduceResult(part.topic, error, OFFSET_UNKNOWN, log_start)

    if refuses_internal(part.topic, internal_allowed):
        return no("INVALID_TOPIC_EXCEPTION")
    hosted = found(state, part.topic)
    if isinstance(hosted, str):
        return no(hosted)
    if another_topic(part.topic_id, hosted.topic_id):
        return no("UNKNOWN_TOPIC_ID")
    p = state.replica(hosted)
    step = rule(hwm.append_records_to_leader)(p, 1, acks)
    if isinstance(step.result, Refused):
        return no(error_of(step.result), p.log.log_start if step.result == hwm.TOO_FEW else OFFSET_UNKNOWN)
    after = state.with_replica(part.topic, step.state)
    return after, ProduceResult(part.topic, None, step.result.first_offset, p.log.log_start)


@states(without=ONE_CALL)
def refuses_internal(topic: str, allowed: bool) -> bool:
    """RMG-4: Appends to an internal topic, and deletions of its records, are refused with INVALID_TOPIC_EXCEPTION
    unless they are allowed, wherever the partition is. [{MANAGER}, appendToLocalLog and deleteRecordsOnLocalLog]"""
    return topic in INTERNAL and not allowed


@machine.operation(
    "appendRecords", "RMG-3", "RMG-5", "RMG-6", "RMG-7", "RMG-9", "RMG-12", "RMG-13", "RMG-17", "RMG-1", "RMG-2",
    "RMG-4", "RMG-8", "RMG-26",
)  # fmt: skip
@states(without={"RMG-3": ONE_CALL, "RMG-5": ONE_CALL, "RMG-6": NOT_PROVED})
@require(lambda entries: named_once([e.topic for e in entries]), "RMG-27 a request names a topic once")
@each_once
@ensure(
    lambda state, entries, required_acks, result: (
        is_valid(required_acks)
        or (
            result.state == replace(state, requests=state.requests + 1)
            and [p.error for p in result.result.produced[-1].partitions] == ["INVALID_REQUIRED_ACKS"] * len(entries)
        )
    ),
    "RMG-3 nothing is appended with other acks",
)
@ensure(
    lambda state, required_acks, result: required_acks == -1 or result.state.waits("produce") <= state.waits("produce"),
    "RMG-6 only who wants all acks waits",
)
def append_records(
    state: Manager, timeout_ms: TimeoutMs, required_acks: Acks, internal_topics_allowed: bool,
    entries: Sequence[ToAppend],
) -> Step[Manager, Answers]:  # fmt: skip
    """A producer's request, with a record for each of some partitions.

    RMG-3: A request whose acks are none of -1, 0 and 1 appends nothing, and each of its partitions is answered with
    INVALID_REQUIRED_ACKS. [{MANAGER}, appendRecords]

    RMG-5: Each partition of a produce request is answered for itself: its record is appended (HWM-27, HWM-28), and it
    has the record's offset and the log start; or it has an error and the offset -1. Of the errors that there are here
    NOT_ENOUGH_REPLICAS alone tells the log start: it is not among those that a broker expects, nor is one of a record
    that is not valid. [{MANAGER}, appendToLocalLog]

    RMG-6: A produce request waits if and only if its acks are -1 and a record was appended; then the partitions without
    an error wait for their high watermarks. Any other is answered at once. [{MANAGER}, delayedProduceRequestRequired]
    """
    id = state.requests
    state = replace(state, requests=id + 1)
    if not is_valid(required_acks):
        refused = [ProduceResult(e.topic, "INVALID_REQUIRED_ACKS", OFFSET_UNKNOWN, OFFSET_UNKNOWN) for e in entries]
        return answered(Outcome(state, (ProduceAnswer(id, tuple(refused)),)))
    before, results = state, []
    for part in entries:
        state, answer = _appended(state, part, required_acks, internal_topics_allowed)
        results.append(answer)
    if required_acks == -1 and any(r.error is None for r in results):
        pending = tuple(PartitionStatus(r.base_offset + 1, r.error is None, r) for r in results)
        given = begun(state, Produce(id, state.now + timeout_ms, pending))
    else:
        given = Outcome(state, (ProduceAnswer(id, tuple(results)),))
    for r in results:
        if r.error is None:
            given = given.and_then(
                checked(given.state, r.topic, EVERY if _rose(before, state, r.topic) else ("fetch",))
            )
    return answered(given)


def _rose(before: Manager, after: Manager, topic: str) -> bool:
    old, new = before.host(topic), after.host(topic)
    return old is not None and new is not None and new.replica.log.high_watermark > old.replica.log.high_watermark


# ---- fetches ---------------------------------------------------------------------------------------------------------
@machine.operation(
    "fetchMessages", "RMG-11", "RMG-14", "RMG-12", "RMG-13", "RMG-15", "RMG-9", "RMG-7", "RMG-17", "RMG-19", "RMG-1",
    "RMG-2", "RMG-26",
)  # fmt: skip
@states(without=NOT_WHERE_ONE_WAITS)
@require(lambda entries: named_once([e.topic for e in entries]), "RMG-27 a request names a topic once")
@require(lambda replica: replica != LOCAL, "RMG-27 a broker does not follow itself")
@each_once
@ensure(
    lambda state, max_wait_ms, result: max_wait_ms > 0 or result.state.waits("fetch") <= state.waits("fetch"),
    "RMG-11 nobody waits 0 ms",
)
@ensure(
    lambda state, replica, result: replica >= 0 or result.state.hosted == state.hosted,
    "RMG-14 a consumer's fetch tells nothing",
)
def fetch_messages(
    state: Manager, replica: Reader, broker_epoch: BrokerEpoch, only_leader: bool, max_wait_ms: TimeoutMs,
    min_bytes: MinBytes, entries: Sequence[ToFetch],
) -> Step[Manager, Answers]:  # fmt: skip
    """A follower fetches, or a consumer (-1), from the leader or from the nearest replica.

    RMG-11: A fetch is answered at once if maxWaitMs is 0, if it names no partition, if the bytes that were read are at
    least minBytes, if a partition has an error, or if logs diverge: then it has what was read. Any other waits.
    [{MANAGER}, fetchMessages]

    RMG-14: The partitions of a fetch are read one after the other. Of a follower each read counts (HWM-7, HWM-14)
    before the next is made: so its high watermark may rise, and the change of its in-sync replicas be asked for,
    although another partition has an error. What a partition is answered at once is as before that. [{MANAGER},
    readFromLog]"""
    id = state.requests
    leader_alone = only_leader or replica >= 0
    fetch = Fetch(id, state.now + max_wait_ms, replica, broker_epoch, leader_alone, min_bytes, tuple(entries))
    given, read = Outcome(replace(state, requests=id + 1)), []
    for part in entries:
        more, answer = first_read(given.state, fetch, part)
        given = given.and_then(more)
        read.append(answer)
    there = sum(size(answer, part.offset) for answer, part in zip(read, entries, strict=True))
    ends = any(answer.error is not None or answer.diverging is not None for answer in read)
    if max_wait_ms == 0 or not entries or there >= min_bytes or ends:
        return answered(given.and_then(Outcome(given.state, (FetchAnswer(id, tuple(read)),))))
    return answered(given.and_then(begun(given.state, fetch)))


# ---- deletion --------------------------------------------------------------------------------------------------------
def _deleted(state: Manager, part: ToDelete, internal_allowed: bool) -> tuple[Manager, PartitionStatus]:
    """The state with the log start raised, and the partition's answer."""

    def no(error: str) -> tuple[Manager, PartitionStatus]:
        return state, PartitionStatus(OFFSET_UNKNOWN, False, DeleteResult(part.topic, error, OFFSET_UNKNOWN))

    if refuses_internal(part.topic, internal_allowed):
        return no("INVALID_TOPIC_EXCEPTION")
    hosted = found(state, part.topic)
    if isinstance(hosted, str):
        return no(hosted)
    step = rule(hwm.delete_records_on_leader)(state.replica(hosted), part.offset)
    if isinstance(step.result, Refused):
        return no(error_of(step.result))
    answer = DeleteResult(part.topic, None, step.result.low_watermark)
    return state.with_replica(part.topic, step.state), PartitionStatus(step.result.requested_offset, True, answer)


@machine.operation(
    "deleteRecords", "RMG-16", "RMG-17", "RMG-18", "RMG-1", "RMG-4", "RMG-26",
)  # fmt: skip
@states(without=NOT_WHERE_ONE_WAITS)
@require(lambda entries: named_once([e.topic for e in entries]), "RMG-27 a request names a topic once")
@each_once
@ensure(
    lambda state, entries, result: all(
        p.error is not None or p.low_watermark >= max(0, part.offset)
        for a in result.result.deleted
        if a.id == state.requests
        for p, part in zip(a.partitions, entries, strict=True)
    ),
    "RMG-16 without an error it is deleted everywhere",
)
def delete_records(
    state: Manager, timeout_ms: TimeoutMs, internal_topics_allowed: bool, entries: Sequence[ToDelete]
) -> Step[Manager, Answers]:
    """DeleteRecords, of some partitions.

    RMG-16: Each partition of a request to delete records is answered for itself: its log start rises (HWM-30), or it
    has an error and the low watermark -1. The request waits if in one without an error the low watermark is below the
    offset; then it is looked at (RMG-17), and waits for those that are not done. Otherwise it is answered at once
    with the low watermarks. [KIP-107; {MANAGER}, deleteRecords]
    """
    id = state.requests
    state, pending = replace(state, requests=id + 1), []
    for part in entries:
        state, one = _deleted(state, part, internal_topics_allowed)
        pending.append(one)
    if any(
        p.waits and isinstance(p.answer, DeleteResult) and p.answer.low_watermark < p.required_offset for p in pending
    ):
        return answered(begun(state, Delete(id, state.now + timeout_ms, tuple(pending))))
    done = tuple(p.answer for p in pending if isinstance(p.answer, DeleteResult))
    return answered(Outcome(state, (DeleteAnswer(id, done),)))


# ---- the in-sync replicas --------------------------------------------------------------------------------------------
@machine.operation("maybeShrinkIsr", "RMG-28")
@states(without=ONE_CALL)
@ensure(lambda state, result: result.waiting == state.waiting, "RMG-28 nobody is looked at")
def maybe_shrink_isr(state: Manager) -> Manager:
    """RMG-28: Every half of replica.lag.time.max.ms the broker looks at each partition that is online, whether
    followers lag (HWM-15). [{MANAGER}, maybeShrinkIsr]"""
    for hosted in state.hosted:
        if hosted.online:
            state = state.with_replica(hosted.topic, rule(hwm.maybe_shrink_isr)(state.replica(hosted)))
    return state


def asked_in(state: Manager, topic: str) -> int:
    """The partition epoch in which the controller is asked for a change; -1 if it is not asked."""
    hosted = state.host(topic)
    asked = hosted.replica.in_flight if hosted is not None and hosted.online else None
    return -1 if asked is None else asked.partition_epoch


@machine.operation("alterPartitionSucceeded", "RMG-9", "RMG-7", "RMG-12", "RMG-13", "RMG-17", "RMG-26")
@require(lambda state, topic: asked_in(state, topic) >= 0, "RMG-27 an answer is of a request")
@require(
    lambda state, topic: asked_in(state, topic) < INT_MAX,
    "RMG-27 a partition epoch is a number of 32 bits",
)
@each_once
@ensure(
    lambda state, topic, result: (
        _rose(state, result.state, topic) or (result.state.waiting == state.waiting and not result.result.every)
    ),
    "RMG-9 nobody is looked at unless the high watermark rose",
)
def alter_partition_succeeded(state: Manager, topic: str) -> Step[Manager, Answers]:
    """The controller has done the change of the in-sync replicas that it was asked for (HWM-17)."""
    hosted = state.host(topic)
    assert hosted is not None
    p = state.replica(hosted)
    asked = p.in_flight
    assert asked is not None
    after = rule(hwm.alter_partition_succeeded)(p, asked.leader_epoch, asked.partition_epoch + 1, asked.ids)
    return answered(raised(state, topic, p, after))


# ---- directories -----------------------------------------------------------------------------------------------------
@machine.operation("handleLogDirFailure", "RMG-24")
@states(without=ONE_CALL)
@require(
    lambda state, directory: directory not in state.failed and len(state.failed) + 1 < len(DIRECTORIES),
    "RMG-27 some directory has not failed",
)
@ensure(lambda state, result: result.waiting == state.waiting, "RMG-24 nobody is looked at")
@ensure(
    lambda state, directory, result: all(
        not after.online if before.directory == directory else after == before
        for before, after in zip(state.hosted, result.hosted, strict=True)
    ),
    "RMG-24 what is in it is offline, and the others are as they were",
)
def handle_log_dir_failure(state: Manager, directory: Directory) -> Manager:
    """A directory fails.

    RMG-24: When a log directory fails, its partitions go offline, and the others stay as they are. Requests that wait
    there are not looked at. [KIP-112; {MANAGER}, handleLogDirFailure and markPartitionOffline]
    """
    hosted = tuple(
        replace(h, online=False, replica=Partition(state.config, 0)) if h.directory == directory else h
        for h in state.hosted
    )
    return replace(state, hosted=hosted, failed=(*state.failed, directory))


class DirectoryCheckpoint(NamedTuple):
    """What the file of a directory says."""

    directory: int
    high_watermarks: Annotated[tuple[Checkpoint, ...], governs("RMG-25")]


@machine.operation("checkpointHighWatermarks", "RMG-25")
@states(without=ONE_CALL)
@ensure(
    lambda state, result: all(
        c.high_watermark <= h.replica.log.log_end
        for directory in result.result
        for c in directory.high_watermarks
        for h in state.hosted
        if (h.topic, h.directory, h.online) == (c.topic, directory.directory, True)
    ),
    "RMG-25 what is written is replicated",
)
def checkpoint_high_watermarks(state: Manager) -> Step[Manager, tuple[DirectoryCheckpoint, ...]]:
    """RMG-25: Every replica.high.watermark.checkpoint.interval.ms the file of each directory that has a partition
    online is written again, with the high watermarks of those; the file of a directory without one stays, with
    partitions that were deleted. [{MANAGER}, checkpointHighWatermarks]"""
    written = []
    for directory in DIRECTORIES:
        there = tuple(
            Checkpoint(h.topic, h.replica.log.high_watermark)
            for h in state.hosted
            if h.online and h.directory == directory
        )
        written.append(there or state.checkpoints[directory])
    live = tuple(DirectoryCheckpoint(d, written[d]) for d in DIRECTORIES if d not in state.failed)
    return Step(replace(state, checkpoints=tuple(written)), live)
