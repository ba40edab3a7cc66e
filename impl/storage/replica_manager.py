"""A broker's partitions, and purgatories in which requests wait: lists of watched operations by topic, with a timer.

An operation that waits is an object that can be tried, and that is completed once. Whoever changes a partition looks
through the list of that partition. What a partition does is `impl.storage.high_watermark`; here a topic has one.

Source: ReplicaManager, DelayedOperationPurgatory, DelayedProduce, DelayedFetch and DelayedDeleteRecords, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kafkaspec.impl.storage import high_watermark as hwm
from kafkaspec.impl.storage.high_watermark import AlterPartitionQueue, LeaderAndIsr, Metadata, Partition

LOCAL: Final = 1
UNKNOWN: Final = -1
NO_TOPIC_ID: Final = 0
RECORD_BYTES: Final = 69
"""A batch of one record."""
INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
TIMED_OUT: Final = "REQUEST_TIMED_OUT"

CODES: Final[Mapping[type[Exception], str]] = {
    hwm.NotLeaderOrFollower: "NOT_LEADER_OR_FOLLOWER",
    hwm.StaleBrokerEpoch: "NOT_LEADER_OR_FOLLOWER",
    hwm.FencedLeaderEpoch: "FENCED_LEADER_EPOCH",
    hwm.UnknownLeaderEpoch: "UNKNOWN_LEADER_EPOCH",
    hwm.OffsetOutOfRange: "OFFSET_OUT_OF_RANGE",
    hwm.DeletionOutOfRange: "OFFSET_OUT_OF_RANGE",
    hwm.NotEnoughReplicas: "NOT_ENOUGH_REPLICAS",
}


class PartitionError(Exception):
    """A partition's part of a request cannot be done; `code` is the error's name."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def code_of(error: Exception) -> str:
    """The error code of what a partition raised."""
    if isinstance(error, PartitionError):
        return error.code
    if isinstance(error, hwm.UnknownReplica):
        return "UNKNOWN_LEADER_EPOCH" if error.names_epoch else "NOT_LEADER_OR_FOLLOWER"
    return CODES[type(error)]


ERRORS: Final[tuple[type[Exception], ...]] = (PartitionError, hwm.UnknownReplica, *CODES)


# ---- requests and answers
@dataclass(frozen=True)
class FetchPart:
    """Where one partition is read."""

    topic: str
    topic_id: int
    leader_epoch: int | None
    last_epoch: int | None
    offset: int
    log_start: int


@dataclass(frozen=True)
class Produced:
    topic: str
    error: str | None
    base_offset: int = UNKNOWN
    log_start: int = UNKNOWN


@dataclass(frozen=True)
class Fetched:
    topic: str
    error: str | None
    diverging: tuple[int, int] | None = None
    end: int | None = None
    high_watermark: int = UNKNOWN
    log_start: int = UNKNOWN


@dataclass(frozen=True)
class Deleted:
    topic: str
    error: str | None
    low_watermark: int = UNKNOWN


Part = Produced | Fetched | Deleted


@dataclass
class Status:
    """Of a partition in a request that writes or deletes: `pending` until its offset is reached."""

    required: int
    pending: bool
    answer: Produced | Deleted


# ---- operations that wait
class Operation:
    """Something that waits at some topics; `answer` is called once, with all partitions."""

    kind: str

    def __init__(self, id: int, deadline: int, topics: Sequence[str], answer: Callable[[int, Sequence[Part]], None]):
        self.id, self.deadline, self.topics = id, deadline, tuple(topics)
        self.answer = answer
        self.completed = False

    def try_complete(self) -> bool:
        """Look; whether it has been completed by that."""
        raise NotImplementedError

    def parts(self) -> Sequence[Part]:
        raise NotImplementedError

    def complete(self) -> bool:
        """Whether it was not before. [RMG-26]"""
        if self.completed:
            return False
        self.completed = True
        self.answer(self.id, self.parts())
        return True

    def expire(self) -> None:
        """Its time has passed."""
        self.complete()


class Acknowledged(Operation):
    """Waits until each of its partitions has reached an offset."""

    def __init__(
        self, id: int, deadline: int, answer: Callable[[int, Sequence[Part]], None], statuses: Sequence[Status],
        check: Callable[[Status], Produced | Deleted | None],
    ) -> None:  # fmt: skip
        super().__init__(id, deadline, [s.answer.topic for s in statuses], answer)
        self.statuses, self.check = statuses, check

    def try_complete(self) -> bool:
        """[RMG-7, RMG-17]"""
        for status in self.statuses:
            found = self.check(status) if status.pending else None
            if found is not None:
                status.answer, status.pending = found, False
        return not any(s.pending for s in self.statuses) and self.complete()

    def parts(self) -> Sequence[Part]:
        """A partition that is pending has timed out. [RMG-8, RMG-18]"""
        return [replace(s.answer, error=TIMED_OUT) if s.pending else s.answer for s in self.statuses]


class DelayedProduce(Acknowledged):
    kind = "produce"


class DelayedDelete(Acknowledged):
    kind = "delete"


class DelayedFetch(Operation):
    """Waits for bytes."""

    kind = "fetch"

    def __init__(
        self, id: int, deadline: int, answer: Callable[[int, Sequence[Part]], None], reader: Reader,
        parts: Sequence[FetchPart], manager: ReplicaManager,
    ) -> None:  # fmt: skip
        super().__init__(id, deadline, [p.topic for p in parts], answer)
        self.reader, self.asked, self.manager = reader, parts, manager

    def try_complete(self) -> bool:
        """[RMG-12]"""
        there = 0
        for part in self.asked:
            try:
                there += self.bytes_of(part)
            except ERRORS:
                return self.complete()
        return there >= self.reader.min_bytes and self.complete()

    def bytes_of(self, part: FetchPart) -> int:
        """Bytes behind the offset. Raises if the partition cannot be read from there any more. [RMG-12]"""
        partition = self.manager.partition(part.topic)
        log = partition.local_log(part.leader_epoch, self.reader.only_leader)
        end = log.end if self.reader.follows else log.high_watermark
        if part.offset > end:
            raise hwm.OffsetOutOfRange
        return RECORD_BYTES * (end - part.offset)

    def parts(self) -> Sequence[Part]:
        """[RMG-13]"""
        return [self.manager.read(self.reader, part, counts=False) for part in self.asked]


@dataclass(frozen=True)
class Reader:
    """Who fetches: a follower by its id, or -1."""

    replica: int
    broker_epoch: int
    only_leader: bool
    min_bytes: int

    @property
    def follows(self) -> bool:
        return self.replica >= 0


class Purgatory:
    """Operations that wait, by the topics that they wait at. `now` gives ms."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.now = now
        self.watched: dict[str, list[Operation]] = {}

    @property
    def delayed(self) -> list[Operation]:
        """Those that are not completed, by their ids."""
        known = {o.id: o for watchers in self.watched.values() for o in watchers if not o.completed}
        return [known[id] for id in sorted(known)]

    def try_else_watch(self, operation: Operation) -> None:
        """Complete it, or watch it at all its topics, and look again. [RMG-26]"""
        if operation.try_complete():
            return
        for topic in operation.topics:
            self.watched.setdefault(topic, []).append(operation)
        if not operation.try_complete() and operation.deadline <= self.now():
            operation.expire()

    def check(self, topic: str) -> None:
        """Look at who waits there. [RMG-9]"""
        for operation in list(self.watched.get(topic, ())):
            if not operation.completed:
                operation.try_complete()
        self._forget(topic)

    def _forget(self, topic: str) -> None:
        self.watched[topic] = [o for o in self.watched.get(topic, ()) if not o.completed]

    def expire(self) -> None:
        """Those whose time has passed. [RMG-8, RMG-15, RMG-18]"""
        for operation in sorted(self.delayed, key=lambda o: o.deadline):
            if operation.deadline <= self.now():
                operation.expire()


# ---- the broker
@dataclass
class Topic:
    """What the metadata has of a topic."""

    id: int
    replicas: frozenset[int]
    partition_epoch: int
    leader: int
    leader_epoch: int
    order: tuple[int, ...] = ()


@dataclass
class Online:
    """A partition in its directory."""

    id: int
    directory: int
    partition: Partition


@dataclass
class Offline:
    """A partition whose directory failed."""

    id: int
    directory: int


@dataclass
class Answered:
    """What was answered since it was last asked."""

    produced: dict[int, Sequence[Part]] = field(default_factory=dict)
    fetched: dict[int, Sequence[Part]] = field(default_factory=dict)
    deleted: dict[int, Sequence[Part]] = field(default_factory=dict)


class ReplicaManager:
    """The partitions of a broker. `now` gives ms."""

    partition_class: type[Partition] = Partition
    purgatory_class: type[Purgatory] = Purgatory
    produce_class: type[DelayedProduce] = DelayedProduce
    fetch_class: type[DelayedFetch] = DelayedFetch
    delete_class: type[DelayedDelete] = DelayedDelete

    def __init__(
        self, lag_max_ms: int, min_isr: int, broker_epoch: int, metadata: Metadata, directories: Iterable[int],
        now: Callable[[], int],
    ) -> None:  # fmt: skip
        self.lag_max_ms, self.min_isr, self.broker_epoch = lag_max_ms, min_isr, broker_epoch
        self.metadata, self.now = metadata, now
        self.queue = AlterPartitionQueue()
        self.topics: dict[str, Topic] = {}
        self.hosted: dict[str, Online | Offline] = {}
        self.live = list(directories)
        self.checkpoints: dict[int, dict[str, int]] = {d: {} for d in self.live}
        self.requests = 0
        self.answered = Answered()
        self.fetches, self.produces, self.deletes = (self.purgatory_class(now) for _ in range(3))

    @property
    def purgatories(self) -> Sequence[Purgatory]:
        return (self.fetches, self.produces, self.deletes)

    def take_answers(self) -> Answered:
        given, self.answered = self.answered, Answered()
        return given

    def _number(self) -> int:
        self.requests += 1
        return self.requests - 1

    # partitions

    def partition(self, topic: str) -> Partition:
        """Raises PartitionError. [RMG-1]"""
        hosted = self.hosted.get(topic)
        if isinstance(hosted, Online):
            return hosted.partition
        if isinstance(hosted, Offline):
            raise PartitionError("KAFKA_STORAGE_ERROR")
        raise PartitionError("NOT_LEADER_OR_FOLLOWER" if topic in self.topics else "UNKNOWN_TOPIC_OR_PARTITION")

    def same_topic(self, topic: str, id: int, error: str) -> Partition:
        """The partition, of that topic id. Raises PartitionError. [RMG-2]"""
        partition = self.partition(topic)
        if id not in (NO_TOPIC_ID, self.hosted[topic].id):
            raise PartitionError(error)
        return partition

    def check(self, topic: str, *purgatories: Purgatory) -> None:
        """Look at who waits at a topic: in all purgatories, if none is named. [RMG-9]"""
        for purgatory in purgatories or self.purgatories:
            purgatory.check(topic)

    # the metadata

    def apply(self, name: str, topic: Topic, isr: Iterable[int], directory: int) -> None:
        """The metadata has a topic's partition so. [RMG-20, RMG-21, RMG-22, RMG-23]"""
        before = self.topics.get(name)
        self.topics[name] = topic
        replaced = before is not None and before.id != topic.id
        if before is not None and LOCAL in before.replicas and (replaced or LOCAL not in topic.replicas):
            self.stop(name)
        if LOCAL in topic.replicas:
            partition = self.get_or_create(name, topic.id, directory)
            if partition is not None:
                self.change(name, partition, topic, isr)

    def get_or_create(self, name: str, id: int, directory: int) -> Partition | None:
        """None of one whose directory failed. [RMG-20, RMG-23]"""
        hosted = self.hosted.get(name)
        if isinstance(hosted, Online):
            return hosted.partition
        if hosted is not None and hosted.id == id:
            return None
        partition = self.partition_class(
            LOCAL, self.broker_epoch, self.lag_max_ms, self.min_isr, self.metadata, self.queue, self.now
        )
        partition.name = f"{name} {id}"
        self.hosted[name] = Online(id, directory, partition)
        return partition

    def change(self, name: str, partition: Partition, topic: Topic, isr: Iterable[int]) -> None:
        """Lead or follow. [RMG-20, RMG-10]"""
        if topic.leader == LOCAL:
            before = partition.log.high_watermark
            partition.make_leader(topic.leader_epoch, topic.partition_epoch, topic.order, isr)
            self.rose(name, partition, before)
        elif partition.make_follower(topic.leader, topic.leader_epoch, topic.partition_epoch, False):
            self.without_leader(name)

    def rose(self, name: str, partition: Partition, before: int) -> None:
        """Look at who waits if the high watermark was lower. [RMG-9]"""
        if partition.log.high_watermark > before:
            self.check(name)

    def without_leader(self, name: str) -> None:
        """[RMG-10]"""
        self.check(name, self.fetches, self.produces)

    def stop(self, name: str) -> None:
        """[RMG-21]"""
        if isinstance(self.hosted.get(name), Online):
            del self.hosted[name]
        self.without_leader(name)

    def remove(self, name: str) -> None:
        """The metadata has a topic no more. [RMG-21]"""
        if LOCAL in self.topics.pop(name).replicas:
            self.stop(name)

    # producers

    def append_records(self, timeout_ms: int, acks: int, internal: bool, entries: Iterable[tuple[str, int]]) -> None:
        """Entries are topics with topic ids. [RMG-3, RMG-5, RMG-6]"""
        id, asked = self._number(), list(entries)
        if acks not in (-1, 0, 1):
            self.answered.produced[id] = [Produced(name, "INVALID_REQUIRED_ACKS") for name, _ in asked]
            return
        results, raised = [], set()
        for name, topic_id in asked:
            answer, rose = self.append_one(name, topic_id, acks, internal)
            results.append(answer)
            if rose:
                raised.add(name)
        self.acknowledge(id, timeout_ms, acks, results)
        for result in results:
            if result.error is None:
                self.check(result.topic, *(() if result.topic in raised else (self.fetches,)))

    def append_one(self, name: str, topic_id: int, acks: int, internal: bool) -> tuple[Produced, bool]:
        """The partition's answer, and whether its high watermark rose. [RMG-5, RMG-4]"""
        if name in INTERNAL and not internal:
            return Produced(name, "INVALID_TOPIC_EXCEPTION"), False
        try:
            partition = self.same_topic(name, topic_id, "UNKNOWN_TOPIC_ID")
            start = partition.log.start
            first, _, rose = partition.append_as_leader(1, acks)
        except hwm.NotEnoughReplicas as e:
            return Produced(name, code_of(e), log_start=partition.log.start), False
        except ERRORS as e:
            return Produced(name, code_of(e)), False
        return Produced(name, None, first, start), rose

    def acknowledge(self, id: int, timeout_ms: int, acks: int, results: Sequence[Produced]) -> None:
        """[RMG-6]"""
        if acks != -1 or all(r.error is not None for r in results):
            self.answered.produced[id] = results
            return
        statuses = [Status(r.base_offset + 1, r.error is None, r) for r in results]
        answer = self.answered_produce
        self.produces.try_else_watch(
            self.produce_class(id, self.now() + timeout_ms, answer, statuses, self.is_replicated)
        )

    def answered_produce(self, id: int, parts: Sequence[Part]) -> None:
        self.answered.produced[id] = parts

    def is_replicated(self, status: Status) -> Produced | None:
        """The answer if it is done. [RMG-7]"""
        answer = status.answer
        assert isinstance(answer, Produced)
        try:
            reached, error = self.partition(answer.topic).enough_replicas_reach(status.required)
        except PartitionError as e:
            return replace(answer, error=e.code)
        return replace(answer, error=error) if reached or error is not None else None

    # fetches

    def read(self, reader: Reader, part: FetchPart, *, counts: bool) -> Fetched:
        """A partition's answer. [RMG-13, RMG-14]"""
        try:
            partition = self.same_topic(part.topic, part.topic_id, "INCONSISTENT_TOPIC_ID")
            if not reader.follows:
                partition.local_log(part.leader_epoch, reader.only_leader)
                found = partition.read(part.offset, part.last_epoch, up_to_end=False)
            elif counts:
                found = self.fetch_of_follower(partition, reader, part)
            else:
                partition.local_log(part.leader_epoch, only_leader=True)
                if reader.replica not in partition.followers:
                    raise hwm.UnknownReplica(part.leader_epoch is not None)
                found = partition.read(part.offset, part.last_epoch, up_to_end=True)
        except ERRORS as e:
            return Fetched(part.topic, code_of(e))
        return Fetched(part.topic, None, found.diverging, found.end, found.high_watermark, found.log_start)

    def fetch_of_follower(self, partition: Partition, reader: Reader, part: FetchPart) -> hwm.ReadInfo:
        """A read that tells how far the follower is. [RMG-14, RMG-19]"""
        high, low = partition.log.high_watermark, self.low_watermark(partition)
        found = partition.fetch_as_follower(
            reader.replica, reader.broker_epoch, part.leader_epoch, part.last_epoch, part.offset, part.log_start
        )
        if partition.log.high_watermark > high or (self.deletes.delayed and self.low_watermark(partition) > low):
            self.check(part.topic)
        return found

    def low_watermark(self, partition: Partition) -> int:
        return partition.low_watermark() if partition.is_leader else UNKNOWN

    def fetch_messages(self, reader: Reader, max_wait_ms: int, parts: Sequence[FetchPart]) -> None:
        """[RMG-11, RMG-14]"""
        id = self._number()
        read = [self.read(reader, part, counts=True) for part in parts]
        there = sum(
            RECORD_BYTES * (f.end - part.offset) for f, part in zip(read, parts, strict=True) if f.end is not None
        )
        ends = any(f.error is not None or f.diverging is not None for f in read)
        if max_wait_ms <= 0 or not parts or there >= reader.min_bytes or ends:
            self.answered.fetched[id] = read
            return
        deadline = self.now() + max_wait_ms
        self.fetches.try_else_watch(self.fetch_class(id, deadline, self.answered_fetch, reader, parts, self))

    def answered_fetch(self, id: int, parts: Sequence[Part]) -> None:
        self.answered.fetched[id] = parts

    # deletion

    def delete_records(self, timeout_ms: int, internal: bool, entries: Iterable[tuple[str, int]]) -> None:
        """Entries are topics with offsets. [RMG-16]"""
        id = self._number()
        statuses = [self.delete_one(name, offset, internal) for name, offset in entries]
        if not any(
            s.pending and s.answer.low_watermark < s.required for s in statuses if isinstance(s.answer, Deleted)
        ):
            self.answered.deleted[id] = [s.answer for s in statuses]
            return
        deadline = self.now() + timeout_ms
        self.deletes.try_else_watch(self.delete_class(id, deadline, self.answered_delete, statuses, self.is_deleted))

    def delete_one(self, name: str, offset: int, internal: bool) -> Status:
        """[RMG-16, RMG-4]"""
        if name in INTERNAL and not internal:
            return Status(UNKNOWN, False, Deleted(name, "INVALID_TOPIC_EXCEPTION"))
        try:
            wanted, low = self.partition(name).delete_records(offset)
        except ERRORS as e:
            return Status(UNKNOWN, False, Deleted(name, code_of(e)))
        return Status(wanted, True, Deleted(name, None, low))

    def answered_delete(self, id: int, parts: Sequence[Part]) -> None:
        self.answered.deleted[id] = parts

    def is_deleted(self, status: Status) -> Deleted | None:
        """The answer if it is done. [RMG-17]"""
        name = status.answer.topic
        hosted = self.hosted.get(name)
        if hosted is None:
            return Deleted(name, "UNKNOWN_TOPIC_OR_PARTITION")
        if isinstance(hosted, Offline):
            return Deleted(name, "KAFKA_STORAGE_ERROR")
        if not hosted.partition.is_leader:
            return Deleted(name, "NOT_LEADER_OR_FOLLOWER")
        low = hosted.partition.low_watermark()
        return Deleted(name, None, low) if low >= status.required else None

    # the in-sync replicas

    def maybe_shrink_isr(self) -> None:
        """[RMG-28]"""
        for hosted in self.hosted.values():
            if isinstance(hosted, Online):
                hosted.partition.maybe_shrink_isr()

    def on_altered(self, name: str) -> None:
        """The controller has done what it was asked for at a topic. [RMG-9]"""
        partition = self.partition(name)
        before, asked = partition.log.high_watermark, self.queue.unsent[partition.name].sent
        partition.on_success(LeaderAndIsr(asked.leader_epoch, asked.partition_epoch + 1, asked.isr))
        self.rose(name, partition, before)

    # directories and time

    def fail_directory(self, directory: int) -> None:
        """[RMG-24]"""
        self.live.remove(directory)
        for name, hosted in self.hosted.items():
            if hosted.directory == directory:
                self.hosted[name] = Offline(hosted.id, directory)

    def checkpoint_high_watermarks(self) -> None:
        """[RMG-25]"""
        for directory in self.live:
            there = {
                name: hosted.partition.log.high_watermark
                for name, hosted in self.hosted.items()
                if isinstance(hosted, Online) and hosted.directory == directory
            }
            if there:
                self.checkpoints[directory] = there

    def expire(self) -> None:
        """Time has passed. [RMG-8, RMG-15, RMG-18]"""
        for purgatory in self.purgatories:
            purgatory.expire()
