"""What a broker knows: the metadata, its partitions and their directories, and the requests that wait.

The clauses are those of the replica manager, `spec.storage.replica_manager`, whose operations use them.

Source: ReplicaManager, LogManager and DelayedOperationPurgatory, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from kafkaspec.contract.clauses import ONE_CALL, states
from kafkaspec.contract.codec import partial, replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Refused
from kafkaspec.contract.numbers import LeaderEpoch, NodeId, Offset, Within
from kafkaspec.spec.common.kafka import INT_MAX
from kafkaspec.spec.storage.high_watermark_parts import replicas
from kafkaspec.spec.storage.high_watermark_parts.fetches import ERRORS, EpochEnd
from kafkaspec.spec.storage.high_watermark_parts.replicas import LOCAL, Partition, maximal_isr

MANAGER = "ReplicaManager, Kafka 4.3.0"
PURGATORY = "DelayedOperationPurgatory, Kafka 4.3.0"

RECORD_BYTES = 69
"""What a record and its batch take: each is a batch of its own, with a value of one byte."""
OFFSET_UNKNOWN = -1
NO_TOPIC_ID = 0
"""Stands for the topic id that old clients do not send: nothing is compared."""
INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
DIRECTORIES = (0, 1)

TopicId = Annotated[int, Within(0, INT_MAX)]
Directory = Annotated[int, Within(0, 1)]
Kind = Literal["produce", "fetch", "delete"]


# ---- what requests name ----------------------------------------------------------------------------------------------
class ToAppend(NamedTuple):
    """One record for the partition of a topic."""

    topic: str
    topic_id: TopicId


class ToFetch(NamedTuple):
    """From where a topic's partition is read, and what the reader knows."""

    topic: str
    topic_id: TopicId
    current_leader_epoch: LeaderEpoch | None
    last_fetched_epoch: LeaderEpoch | None
    offset: Offset
    log_start: Offset
    """of a follower"""


class ToDelete(NamedTuple):
    """The offset below which the records of a topic's partition are not wanted, or the high watermark (-1)."""

    topic: str
    offset: Annotated[int, Within(-2, 2**62)]


# ---- what they are answered ------------------------------------------------------------------------------------------
class Produced(NamedTuple):
    """The part of a partition in the answer to a produce request."""

    topic: str
    error: Annotated[str | None, governs("RMG-7", "RMG-5", "RMG-1", "RMG-2", "RMG-3", "RMG-4", "RMG-8")]
    base_offset: Annotated[int, governs("RMG-5")]
    log_start: Annotated[int, governs("RMG-5")]


class Fetched(NamedTuple):
    """The part of a partition in the answer to a fetch: where the logs diverge, or the end of the records in it."""

    topic: str
    error: Annotated[str | None, governs("RMG-13", "RMG-1", "RMG-2", "RMG-11")]
    diverging: Annotated[EpochEnd | None, governs("RMG-13")]
    end: Annotated[int | None, governs("RMG-13")]
    high_watermark: Annotated[int, governs("RMG-13", "RMG-14")]
    log_start: Annotated[int, governs("RMG-13")]


class Deleted(NamedTuple):
    """The part of a partition in the answer to DeleteRecords."""

    topic: str
    error: Annotated[str | None, governs("RMG-17", "RMG-16", "RMG-1", "RMG-4", "RMG-18")]
    low_watermark: Annotated[int, governs("RMG-16", "RMG-17", "RMG-18")]


class ProduceAnswer(NamedTuple):
    """The answer to a request, by its number."""

    id: int
    partitions: tuple[Produced, ...]


class FetchAnswer(NamedTuple):
    """The answer to a request, by its number."""

    id: int
    partitions: tuple[Fetched, ...]


class DeleteAnswer(NamedTuple):
    """The answer to a request, by its number."""

    id: int
    partitions: tuple[Deleted, ...]


Answer = ProduceAnswer | FetchAnswer | DeleteAnswer


@dataclass(frozen=True)
class Answers:
    """Which requests a call has answered, its own among them; by their numbers, whatever the order was."""

    produced: Annotated[tuple[ProduceAnswer, ...], governs("RMG-6", "RMG-7", "RMG-9", "RMG-8", "RMG-26", "RMG-10")] = ()
    fetched: Annotated[tuple[FetchAnswer, ...], governs("RMG-11", "RMG-12", "RMG-9", "RMG-15", "RMG-26", "RMG-10")] = ()
    deleted: Annotated[tuple[DeleteAnswer, ...], governs("RMG-16", "RMG-17", "RMG-19", "RMG-18", "RMG-26")] = ()

    @staticmethod
    def of(given: Iterable[Answer]) -> Answers:
        known = sorted(given, key=lambda a: a.id)
        return Answers(
            tuple(a for a in known if isinstance(a, ProduceAnswer)),
            tuple(a for a in known if isinstance(a, FetchAnswer)),
            tuple(a for a in known if isinstance(a, DeleteAnswer)),
        )

    @property
    def every(self) -> tuple[Answer, ...]:
        return (*self.produced, *self.fetched, *self.deleted)


# ---- requests that wait ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Pending:
    """What a request that writes or deletes waits for at a partition: an offset. `answer` is what it gets then, or what
    it got already if it does not wait there any more."""

    required_offset: int
    waits: bool
    answer: Produced | Deleted


@dataclass(frozen=True)
class Produce:
    """A produce request that waits for the high watermarks of its partitions."""

    id: int
    deadline: int
    partitions: tuple[Pending, ...]
    kind: Kind = "produce"

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(p.answer.topic for p in self.partitions)


@dataclass(frozen=True)
class Delete:
    """A request to delete records that waits for the low watermarks of its partitions."""

    id: int
    deadline: int
    partitions: tuple[Pending, ...]
    kind: Kind = "delete"

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(p.answer.topic for p in self.partitions)


@dataclass(frozen=True)
class Fetch:
    """A fetch that waits for bytes; `replica` is -1 for a consumer."""

    id: int
    deadline: int
    replica: int
    broker_epoch: int
    only_leader: bool
    min_bytes: int
    partitions: tuple[ToFetch, ...]
    kind: Kind = "fetch"

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(p.topic for p in self.partitions)

    @property
    def is_of_follower(self) -> bool:
        return self.replica >= 0


Waiting = Produce | Fetch | Delete


# ---- the broker ------------------------------------------------------------------------------------------------------
class Image(NamedTuple):
    """A topic's partition as the metadata has it."""

    topic: str
    topic_id: TopicId
    partition_epoch: int
    leader: int
    leader_epoch: int
    replicas: tuple[NodeId, ...]


class Checkpoint(NamedTuple):
    """A line of a directory's file of high watermarks."""

    topic: str
    high_watermark: int


@dataclass(frozen=True)
class Hosted:
    """A partition that the broker has, or had in a directory that failed. Of an offline one nothing is known."""

    topic: str
    topic_id: int
    directory: int
    online: bool
    replica: Partition


@dataclass(frozen=True)
class Manager:
    """The state: of each topic there is one partition."""

    config: replicas.Config
    now: int
    brokers: tuple[replicas.Broker, ...]
    metadata: tuple[Image, ...] = ()
    hosted: tuple[Hosted, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    requests: int = 0
    """how many there were"""
    failed: tuple[int, ...] = ()
    """directories"""
    checkpoints: tuple[tuple[Checkpoint, ...], ...] = ((), ())
    """of each directory, what its file says"""
    topic_ids: int = 0
    """the highest one that there was"""

    def image(self, topic: str) -> Image | None:
        return next((i for i in self.metadata if i.topic == topic), None)

    def host(self, topic: str) -> Hosted | None:
        return next((h for h in self.hosted if h.topic == topic), None)

    def waits(self, kind: Kind) -> int:
        return sum(w.kind == kind for w in self.waiting)

    def replica(self, hosted: Hosted) -> Partition:
        """The partition, with the clock and the brokers that it looks at."""
        return replace(hosted.replica, now=self.now, brokers=self.brokers)

    def with_replica(self, topic: str, replica: Partition) -> Manager:
        bare = replace(replica, now=0, brokers=())
        return replace(self, hosted=tuple(replace(h, replica=bare) if h.topic == topic else h for h in self.hosted))

    def with_hosted(self, hosted: Hosted) -> Manager:
        others = [h for h in self.hosted if h.topic != hosted.topic]
        bare = replace(hosted, replica=replace(hosted.replica, now=0, brokers=()))
        return replace(self, hosted=tuple(sorted([*others, bare], key=lambda h: h.topic)))

    def without_hosted(self, topic: str) -> Manager:
        return replace(self, hosted=tuple(h for h in self.hosted if h.topic != topic))


def error_of(refused: Refused) -> str:
    """The error code's name of a refusal of a partition."""
    return NAMES[refused.error]


NAMES = {
    f"{ERRORS}NotLeaderOrFollowerException": "NOT_LEADER_OR_FOLLOWER",
    f"{ERRORS}FencedLeaderEpochException": "FENCED_LEADER_EPOCH",
    f"{ERRORS}UnknownLeaderEpochException": "UNKNOWN_LEADER_EPOCH",
    f"{ERRORS}OffsetOutOfRangeException": "OFFSET_OUT_OF_RANGE",
    f"{ERRORS}NotEnoughReplicasException": "NOT_ENOUGH_REPLICAS",
}


@states(without=ONE_CALL)
def found(state: Manager, topic: str) -> Hosted | str:
    """RMG-1: A partition of a directory that failed is answered with KAFKA_STORAGE_ERROR. One that the broker has not
    is answered with NOT_LEADER_OR_FOLLOWER if the metadata has it, and with UNKNOWN_TOPIC_OR_PARTITION otherwise.
    [{MANAGER}, getPartitionOrError]"""
    hosted = state.host(topic)
    if hosted is not None:
        return hosted if hosted.online else "KAFKA_STORAGE_ERROR"
    return "UNKNOWN_TOPIC_OR_PARTITION" if state.image(topic) is None else "NOT_LEADER_OR_FOLLOWER"


# ---- what is observed ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Online:
    """A partition that is served."""

    topic: Annotated[str, governs("RMG-20", "RMG-21", "RMG-24")]
    topic_id: Annotated[int, governs("RMG-22", "RMG-23")]
    leader: Annotated[int | None, governs("RMG-20")]
    leader_epoch: Annotated[int, governs("RMG-20")]
    partition_epoch: Annotated[int, governs("RMG-20")]
    isr: Annotated[tuple[int, ...], governs("RMG-20", "RMG-14")]
    maximal_isr: Annotated[tuple[int, ...], governs("RMG-20", "RMG-14")]
    log_start: Annotated[int, governs("RMG-16", "RMG-22")]
    log_end: Annotated[int, governs("RMG-5", "RMG-22")]
    high_watermark: Annotated[int, governs("RMG-14", "RMG-5", "RMG-20")]


@partial
@dataclass(frozen=True)
class Observation:
    """What is compared after every call."""

    online: Annotated[tuple[Online, ...], governs("RMG-20", "RMG-21", "RMG-24")]
    offline: Annotated[tuple[str, ...], governs("RMG-24", "RMG-23", "RMG-21")]
    delayed_produce: Annotated[int, governs("RMG-6", "RMG-7", "RMG-26")]
    delayed_fetch: Annotated[int, governs("RMG-11", "RMG-12", "RMG-26")]
    delayed_delete: Annotated[int, governs("RMG-16", "RMG-17", "RMG-26")]


def observe(state: Manager) -> Observation:
    """What Kafka's class shows of itself, and how many requests wait."""
    return Observation(
        tuple(_shown(h) for h in state.hosted if h.online),
        tuple(h.topic for h in state.hosted if not h.online),
        state.waits("produce"),
        state.waits("fetch"),
        state.waits("delete"),
    )


def _shown(hosted: Hosted) -> Online:
    p = hosted.replica
    return Online(
        hosted.topic,
        hosted.topic_id,
        p.leader,
        p.leader_epoch,
        p.partition_epoch,
        p.isr,
        tuple(sorted(maximal_isr(p))),
        p.log.log_start,
        p.log.log_end,
        p.log.high_watermark,
    )


def leads(hosted: Hosted) -> bool:
    return hosted.online and hosted.replica.leader == LOCAL
