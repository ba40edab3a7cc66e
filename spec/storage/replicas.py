"""Replicas of a partition, side by side: what must be the same on every broker, and what may differ.

Below the high watermark a record is on every in-sync replica, and there is one leader an epoch, so that an epoch has
one record at an offset. Above it, and on a broker that has not come back since others went on without it, logs may
differ: what such a broker must do about it, when it starts, is cut its log where the epochs part.

Source: Kafka Internals, ch. 03, "Invariants"; KIP-101, KIP-279; ReplicaManager, UnifiedLog and MemoryRecords.filterTo,
Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Required, TypedDict

import icontract

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.machine import Nothing, Step, without_state

PREFIX = "RPL"
TITLE = "Replicas of a partition"

AT_REST = {
    "model": "a predicate over logs at rest: what makes it true is the model of replication's affair",
    "proof": "a predicate over logs at rest: that replicas agree below the high watermark is proved of models/examples/"
    "replication.py",
}

RPL_1 = clause(
    "RPL-1",
    """Logs are replicas of one partition if they lie in directories of one cluster, of different brokers, under the
    same topic name and partition, as the brokers' current logs, and their partition.metadata files do not name
    different topic ids. Where meta.properties has no cluster id, as before 2.1, they are compared only if each broker
    comes once.""",
    source="PartitionMetadataFile and LogManager, Kafka 4.3.0; KIP-516",
    without=AT_REST,
)
RPL_2 = clause(
    "RPL-2",
    """What two replicas must agree on are the offsets from the larger of their starts up to the smallest of their
    checkpointed high watermarks and ends. A replica without a checkpointed high watermark agrees with any other; of the
    metadata log, which has none, everything up to the smaller end counts, but where the epochs differ.""",
    source="Kafka Internals, ch. 03, 'Offsets & high watermark'; ReplicaManager.checkpointHighWatermarks, Kafka 4.3.0",
    without=AT_REST,
)
RPL_3 = clause(
    "RPL-3",
    """Of a log that was never compacted, replicas hold the same batches there: base offset, last offset, size and CRC.
    (A leader epoch that alone is another one is a matter of each log's own: a batch that was sent again to the next
    leader has the same bytes.) Batches of formats before 2 are not compared: a leader converts them for an older
    follower.""",
    source="UnifiedLog.appendAsFollower, Kafka 4.3.0; Kafka Internals, ch. 03",
    without=AT_REST,
)
RPL_4 = clause(
    "RPL-4",
    """Compaction is each replica's own affair: of a log that is or may be compacted, an offset that two replicas have
    there holds the same record in both: key, value, headers and timestamp. An offset that only one has is no
    difference.""",
    source="Kafka Internals, ch. 04; Cleaner and MemoryRecords.filterTo, Kafka 4.3.0",
    without=AT_REST,
)
RPL_5 = clause(
    "RPL-5",
    """Where replicas differ at an offset that has different leader epochs in them, the one with the lower epoch has not
    followed the leader of the higher one yet: an unclean election made it lose what it holds, and it will cut its log
    there. Where the epochs are the same one of them is damaged.""",
    source="KIP-101, KIP-279; Partition and AbstractFetcherThread, Kafka 4.3.0",
    without=AT_REST,
)
RPL_6 = clause(
    "RPL-6",
    """An epoch that two replicas of a log that was never compacted both know begins at the same offset in both, if it
    is the first entry in neither (a first entry moves with the log start) and begins below what they must agree on.""",
    source="Kafka Internals, ch. 03, 'LeaderEpochFileCache'; LeaderEpochFileCache, Kafka 4.3.0; KIP-101",
    without=AT_REST,
)
RPL_7 = clause(
    "RPL-7",
    """Directories under one topic name with different topic ids are of different topics: all but one are left of a
    topic that was deleted while their brokers were away, and become strays when these start.""",
    source="LogManager.isStrayReplica and PartitionMetadataFile, Kafka 4.3.0; KIP-516, KIP-858",
    without=AT_REST,
)


class Record(NamedTuple):
    """A record: `content` stands for key, value, headers and timestamp."""

    offset: int
    content: int


@dataclass(frozen=True)
class Batch:
    """A batch: `frame` stands for its size and CRC."""

    base_offset: int
    last_offset: int
    epoch: int
    frame: int
    records: tuple[Record, ...] = ()
    magic: int = 2


@dataclass(frozen=True)
class Replica:
    """A broker's log at rest. `compacted` None: not known. `high_watermark` None: not checkpointed."""

    batches: tuple[Batch, ...] = ()
    start: int = 0
    end: int = 0
    high_watermark: int | None = None
    compacted: bool | None = False
    epochs: tuple[tuple[int, int], ...] = ()


class Difference(NamedTuple):
    """The first one. `kind`: "diverged", one is damaged; "behind", one has not followed; "missing", one has a batch
    that the other lacks."""

    kind: str
    offset: int


@states("RPL-2")
def agreed(a: Replica, b: Replica, metadata: bool) -> tuple[int, int]:
    """The offsets on which two replicas must agree: from, and up to."""
    tops = [a.end, b.end]
    if not metadata:
        tops += [0 if h is None else h for h in (a.high_watermark, b.high_watermark)]
    return max(a.start, b.start), min(tops)


def never_compacted(a: Replica, b: Replica) -> bool:
    return a.compacted is False and b.compacted is False


@states("RPL-2")
def first_difference(a: Replica, b: Replica, metadata: bool = False) -> Difference | None:
    """The first difference. Of the metadata log none where the epochs differ: as far as one can see that is an
    uncommitted tail."""
    found = lowest_difference(a, b, metadata)
    return None if metadata and found is not None and found.kind == "behind" else found


@states("RPL-3", "RPL-4", "RPL-5")
def lowest_difference(a: Replica, b: Replica, metadata: bool) -> Difference | None:
    """At the lowest offset where the two are not the same."""
    start, end = agreed(a, b, metadata)
    if never_compacted(a, b):
        ours, theirs = ({x.base_offset: x for x in r.batches if start <= x.base_offset < end} for r in (a, b))
        for offset in sorted({*ours, *theirs}):
            x, y = ours.get(offset), theirs.get(offset)
            one = x or y
            if one is None or one.magic < 2 or (y or one).magic < 2:
                continue
            if x is None or y is None:
                return Difference("missing", offset)
            if (x.last_offset, x.frame) != (y.last_offset, y.frame):
                return Difference("behind" if x.epoch != y.epoch else "diverged", offset)
        return None
    of_a, of_b = (
        {r.offset: (r.content, x.epoch) for x in replica.batches if x.magic >= 2 for r in x.records}
        for replica in (a, b)
    )
    for offset in sorted(of_a.keys() & of_b.keys()):
        if start <= offset < end and of_a[offset][0] != of_b[offset][0]:
            return Difference("behind" if of_a[offset][1] != of_b[offset][1] else "diverged", offset)
    return None


@states("RPL-6")
def epochs_differ(a: Replica, b: Replica, metadata: bool = False) -> int | None:
    """The lowest epoch that begins elsewhere."""
    _, end = agreed(a, b, metadata)
    if not never_compacted(a, b):
        return None
    ours, theirs = dict(a.epochs[1:]), dict(b.epochs[1:])
    both = sorted(ours.keys() & theirs.keys())
    return next((e for e in both if ours[e] != theirs[e] and min(ours[e], theirs[e]) < end), None)


class Directory(NamedTuple):
    """Where a log lies: None where it is not known."""

    cluster: str | None
    node: int | None
    topic_id: str | None
    kind: str = ""


@states("RPL-1")
def are_replicas(a: Directory, b: Directory) -> bool:
    """Whether logs of one name are replicas of one partition."""
    return (
        a.kind == b.kind == ""
        and a.cluster == b.cluster
        and a.node is not None
        and b.node is not None
        and a.node != b.node
        and (a.topic_id is None or b.topic_id is None or a.topic_id == b.topic_id)
    )


# ---- the machine: no state, only questions ---------------------------------------------------------------------------
machine = without_state("replicas", __name__)


class ReplicaText(TypedDict, total=False):
    """A replica of a partition."""

    batches: Required[list[list[Any]]]
    """base offset, last offset, epoch, frame, magic, records [offset, content]"""
    end: Required[int]
    start: int
    highWatermark: int | None
    compacted: bool | None
    """null: not known"""
    epochs: list[list[int]]
    """[epoch, start offset]"""


def replica_of(text: Mapping[str, Any]) -> Replica:
    """From JSON: `batches` are [base offset, last offset, epoch, frame, magic, [[offset, content], ...]]."""
    batches = tuple(
        Batch(base, last, epoch, frame, tuple(Record(*r) for r in records), magic)
        for base, last, epoch, frame, magic, records in text["batches"]
    )
    return Replica(
        batches,
        text.get("start", 0),
        text["end"],
        text.get("highWatermark"),
        text.get("compacted", False),
        tuple((e, s) for e, s in text.get("epochs", [])),
    )


def shaped(text: Any) -> bool:
    """The text of a replica."""
    return (
        isinstance(text, dict)
        and isinstance(text.get("end"), int)
        and isinstance(text.get("start", 0), int)
        and isinstance(text.get("batches"), list)
        and all(
            isinstance(b, list)
            and len(b) == 6
            and all(isinstance(n, int) for n in b[:5])
            and isinstance(b[5], list)
            and all(isinstance(r, list) and len(r) == 2 and all(isinstance(n, int) for n in r) for r in b[5])
            for b in text["batches"]
        )
        and isinstance(text.get("highWatermark"), int | None)
        and text.get("compacted", False) in (True, False, None)
        and isinstance(text.get("epochs", []), list)
        and all(
            isinstance(e, list) and len(e) == 2 and all(isinstance(n, int) for n in e) for e in text.get("epochs", [])
        )
    )


def well_formed(text: Mapping[str, Any]) -> bool:
    """Offsets rise over the batches and within them."""
    if not shaped(text):
        return False
    r = replica_of(text)
    at = -1
    for b in r.batches:
        offsets = [x.offset for x in b.records]
        if not at < b.base_offset <= b.last_offset < r.end or offsets != sorted(set(offsets)):
            return False
        if any(not b.base_offset <= o <= b.last_offset for o in offsets):
            return False
        at = b.last_offset
    return True


def frames_tell(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Batches of the same size and CRC at an offset have the same records."""
    if not (shaped(a) and shaped(b)):
        return False
    known = {(x.base_offset, x.last_offset, x.frame): x.records for x in replica_of(a).batches}
    return all(
        known.get((x.base_offset, x.last_offset, x.frame), x.records) == x.records for x in replica_of(b).batches
    )


@machine.operation("compare", "RPL-2", "RPL-3", "RPL-4", "RPL-5")
@icontract.require(lambda a, b: well_formed(a) and well_formed(b), "RPL-3 each of them is a log")
@icontract.require(frames_tell, "RPL-3 a CRC tells batches apart")
@icontract.ensure(
    lambda a, b, metadata, result: (
        result.result is None or result.result[1] in range(*agreed(replica_of(a), replica_of(b), metadata))
    ),
    "RPL-2 a difference lies where replicas must agree",
)
@icontract.ensure(
    lambda a, b, metadata, result: (
        (first_difference(replica_of(b), replica_of(a), metadata) is None) == (result.result is None)
    ),
    "RPL-3 it is the same both ways",
)
def compare(state: Nothing, a: ReplicaText, b: ReplicaText, metadata: bool) -> Step[Nothing, list[str | int] | None]:
    """The first difference of two replicas, its kind and offset."""
    found = first_difference(replica_of(a), replica_of(b), metadata)
    return Step(state, None if found is None else list(found))


@machine.operation("compareEpochs", "RPL-6")
@icontract.require(lambda a, b: well_formed(a) and well_formed(b), "RPL-6 each of them is a log")
def compare_epochs(state: Nothing, a: ReplicaText, b: ReplicaText) -> Step[Nothing, int | None]:
    """The lowest epoch that begins at different offsets."""
    return Step(state, epochs_differ(replica_of(a), replica_of(b)))


@machine.operation("areReplicas", "RPL-1", "RPL-7")
@icontract.require(lambda a, b: len(a) == len(b) == 4, "RPL-1 cluster, node, topic id and kind")
@icontract.ensure(
    lambda a, b, result: result.result == are_replicas(Directory(*b), Directory(*a)), "RPL-1 it is the same both ways"
)
def replicas_of_one(state: Nothing, a: Sequence[Any], b: Sequence[Any]) -> Step[Nothing, bool]:
    """Whether logs of one name in these directories (cluster, node, topic id, kind) are to be compared."""
    return Step(state, are_replicas(Directory(*a), Directory(*b)))
