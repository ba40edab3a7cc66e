"""Replicas of a partition, side by side: what must be the same on every broker, and what may differ.

Below the high watermark a record is on every in-sync replica, and there is one leader an epoch, so that an epoch has
one record at an offset. Above it, and on a broker that has not come back since others went on without it, logs may
differ: what such a broker must do about it, when it starts, is cut its log where the epochs part.

Source: Kafka Internals, ch. 03, "Invariants"; KIP-101, KIP-279; ReplicaManager, UnifiedLog and MemoryRecords.filterTo,
Kafka 4.3.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import states
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import without_state
from kafkaspec.contract.numbers import Int8, Int64, LeaderEpoch, LeaderEpochOrNone, NodeId, Offset

PREFIX = "RPL"
TITLE = "Replicas of a partition"

LOGS_AT_REST = {
    "model": "a predicate over logs at rest: what makes it true is the model of replication's affair",
    "proof": "a predicate over logs at rest: that replicas agree below the high watermark is proved of models/storage/"
    "replication.py",
}


class Record(NamedTuple):
    """A record: `content` stands for key, value, headers and timestamp."""

    offset: Offset
    content: Int64


class Batch(NamedTuple):
    """A batch: `frame` stands for its size and CRC."""

    base_offset: Offset
    last_offset: Offset
    epoch: LeaderEpochOrNone
    frame: Int64
    magic: Int8
    records: tuple[Record, ...]


class EpochEntry(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: LeaderEpoch
    start_offset: Offset


@dataclass(frozen=True)
class Replica:
    """A broker's log at rest."""

    batches: tuple[Batch, ...]
    end: Offset
    start: Offset = 0
    high_watermark: Offset | None = None
    """None: not checkpointed"""
    compacted: bool | None = False
    """None: not known"""
    epochs: tuple[EpochEntry, ...] = ()


class Difference(NamedTuple):
    """The first one. `kind`: "diverged", one is damaged; "behind", one has not followed; "missing", one has a batch
    that the other lacks."""

    kind: Annotated[Literal["diverged", "behind", "missing"], governs("RPL-5", "RPL-3")]
    offset: Annotated[int, governs("RPL-3", "RPL-4")]


@states(without=LOGS_AT_REST)
def agreed(a: Replica, b: Replica, metadata: bool) -> tuple[int, int]:
    """The offsets on which two replicas must agree: from, and up to.

    RPL-2: What two replicas must agree on are the offsets from the larger of their starts up to the smallest of their
    checkpointed high watermarks and ends. A replica without a checkpointed high watermark agrees with any other; of the
    metadata log, which has none, everything up to the smaller end counts, but where the epochs differ. [Kafka
    Internals, ch. 03, 'Offsets & high watermark'; ReplicaManager.checkpointHighWatermarks, Kafka 4.3.0]
    """
    tops = [a.end, b.end]
    if not metadata:
        tops += [0 if h is None else h for h in (a.high_watermark, b.high_watermark)]
    return max(a.start, b.start), min(tops)


def never_compacted(a: Replica, b: Replica) -> bool:
    return a.compacted is False and b.compacted is False


def has_epoch(replica: Replica, offset: int, epoch: int) -> bool:
    """Whether the log's own entries have this epoch at the offset."""
    entries = [e for e in replica.epochs if e.start_offset <= offset]
    return bool(entries) and entries[-1].epoch == epoch


@states("RPL-5")
def epochs_part(a: Replica, b: Replica, offset: int, ours: int, theirs: int) -> bool:
    """Whether the epochs that two replicas have at the offset are different, and neither is damaged."""
    return ours != theirs and has_epoch(a, offset, ours) and has_epoch(b, offset, theirs)


@states("RPL-2")
def first_difference(a: Replica, b: Replica, metadata: bool = False) -> Difference | None:
    """The first difference. Of the metadata log none where the epochs differ: as far as one can see that is an
    uncommitted tail."""
    found = lowest_difference(a, b, metadata)
    return None if metadata and found is not None and found.kind == "behind" else found


@states(without=LOGS_AT_REST)
def lowest_difference(a: Replica, b: Replica, metadata: bool) -> Difference | None:
    """At the lowest offset where the two are not the same.

    RPL-3: Of a log that was never compacted, replicas hold the same batches there: base offset, last offset, size and
    CRC. (A leader epoch that alone is another one, and not the one of the log's own entries there, is a matter of each
    log's own.) Batches of formats before 2 are not compared: a leader converts them for an older follower.
    [UnifiedLog.appendAsFollower, Kafka 4.3.0; Kafka Internals, ch. 03]

    RPL-4: Compaction is each replica's own affair: of a log that is or may be compacted, an offset that two replicas
    have there holds the same record in both: key, value, headers and timestamp. An offset that only one has is no
    difference. [Kafka Internals, ch. 04; Cleaner and MemoryRecords.filterTo, Kafka 4.3.0]

    RPL-5: Where replicas differ at an offset that has different leader epochs in them, the one with the lower epoch has
    not followed the leader of the higher one yet: an unclean election made it lose what it holds, and it will cut its
    log there. Where the epochs are the same one of them is damaged. Epochs that alone are different are a difference
    too, if each is the one that the log's own entries have there: a batch that was sent again to the next leader has
    the same bytes, and is another one. [KIP-101, KIP-279; Partition and AbstractFetcherThread, Kafka 4.3.0]
    """
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
            if (x.last_offset, x.frame) != (y.last_offset, y.frame) or epochs_part(a, b, offset, x.epoch, y.epoch):
                return Difference("behind" if x.epoch != y.epoch else "diverged", offset)
        return None
    of_a, of_b = (
        {r.offset: (r.content, x.epoch) for x in replica.batches if x.magic >= 2 for r in x.records}
        for replica in (a, b)
    )
    for offset in sorted(of_a.keys() & of_b.keys()):
        (x_content, x_epoch), (y_content, y_epoch) = of_a[offset], of_b[offset]
        if start <= offset < end and (x_content != y_content or epochs_part(a, b, offset, x_epoch, y_epoch)):
            return Difference("behind" if x_epoch != y_epoch else "diverged", offset)
    return None


@states(without=LOGS_AT_REST)
def epochs_differ(a: Replica, b: Replica, metadata: bool = False) -> int | None:
    """The lowest epoch that begins at different offsets.

    RPL-6: An epoch that two replicas of a log that was never compacted both know begins at the same offset in both, if
    it is the first entry in neither (a first entry moves with the log start) and begins below what they must agree on.
    [Kafka Internals, ch. 03, 'LeaderEpochFileCache'; LeaderEpochFileCache, Kafka 4.3.0; KIP-101]
    """
    _, end = agreed(a, b, metadata)
    if not never_compacted(a, b):
        return None
    ours, theirs = dict(a.epochs[1:]), dict(b.epochs[1:])
    both = sorted(ours.keys() & theirs.keys())
    return next((e for e in both if ours[e] != theirs[e] and min(ours[e], theirs[e]) < end), None)


@states(without=LOGS_AT_REST)
def above_metadata(log: Replica, told: LeaderEpochOrNone) -> LeaderEpochOrNone:
    """The last epoch of a log, where the metadata log has not given the partition that epoch yet; else -1.

    RPL-8: No leader epoch of a log is above the one that its node's metadata log gives the partition of that topic id:
    a broker leads or follows in an epoch only once it has read of it there. Of a broker that did not stop cleanly it is
    not asked: of its metadata log the end may be lost, which an observer does not flush. [Kafka Internals, ch. 03,
    'LeaderEpochFileCache'; Partition.makeLeader, BrokerMetadataPublisher and KafkaRaftClient, Kafka 4.3.0]
    """
    last = log.epochs[-1].epoch if log.epochs else -1
    return last if 0 <= told < last else -1


class Directory(NamedTuple):
    """Where a log lies: None where it is not known."""

    cluster: str | None
    node: NodeId | None
    topic_id: str | None
    kind: str


@states(without=LOGS_AT_REST)
def are_replicas(a: Directory, b: Directory) -> bool:
    """Whether logs of one name are replicas of one partition.

    RPL-1: Logs are replicas of one partition if they lie in directories of one cluster, of different brokers, under the
    same topic name and partition, as the brokers' current logs, and their partition.metadata files do not name
    different topic ids. Where meta.properties has no cluster id, as before 2.1, they are compared only if each broker
    comes once. [PartitionMetadataFile and LogManager, Kafka 4.3.0; KIP-516]

    RPL-7: Directories under one topic name with different topic ids are of different topics: all but one are left of a
    topic that was deleted while their brokers were away, and become strays when these start. [LogManager.isStrayReplica
    and PartitionMetadataFile, Kafka 4.3.0; KIP-516, KIP-858]
    """
    return (
        a.kind == b.kind == ""
        and a.cluster == b.cluster
        and a.node is not None
        and b.node is not None
        and a.node != b.node
        and (a.topic_id is None or b.topic_id is None or a.topic_id == b.topic_id)
    )


# ---- questions -------------------------------------------------------------------------------------------------------
machine = without_state("replicas", __name__)


def well_formed(replica: Replica) -> bool:
    """Whether offsets rise over the batches and within them."""
    at = -1
    for b in replica.batches:
        offsets = [r.offset for r in b.records]
        if not at < b.base_offset <= b.last_offset < replica.end or offsets != sorted(set(offsets)):
            return False
        if any(not b.base_offset <= o <= b.last_offset for o in offsets):
            return False
        at = b.last_offset
    return True


def frames_tell(a: Replica, b: Replica) -> bool:
    """Whether batches of the same size and CRC at an offset have the same records."""
    known = {(x.base_offset, x.last_offset, x.frame): x.records for x in a.batches}
    return all(known.get((x.base_offset, x.last_offset, x.frame), x.records) == x.records for x in b.batches)


@machine.question("compare", "RPL-2", "RPL-3", "RPL-4", "RPL-5")
@require(lambda a, b: well_formed(a) and well_formed(b), "RPL-3 each of them is a log")
@require(frames_tell, "RPL-3 a CRC tells batches apart")
@ensure(
    lambda a, b, metadata, result: result is None or result.offset in range(*agreed(a, b, metadata)),
    "RPL-2 a difference lies where replicas must agree",
)
@ensure(
    lambda a, b, metadata, result: (first_difference(b, a, metadata) is None) == (result is None),
    "RPL-3 it is the same both ways",
)
def compare(a: Replica, b: Replica, metadata: bool) -> Difference | None:
    """The first difference of two replicas."""
    return first_difference(a, b, metadata)


@machine.question("compareEpochs", "RPL-6")
@require(lambda a, b: well_formed(a) and well_formed(b), "RPL-6 each of them is a log")
def compare_epochs(a: Replica, b: Replica) -> int | None:
    """The lowest epoch that begins at different offsets."""
    return epochs_differ(a, b)


@machine.question("aboveMetadata", "RPL-8")
@require(lambda a: well_formed(a), "RPL-8 it is a log")
@ensure(
    lambda a, told, result: result == -1 or (result > told >= 0 and result == a.epochs[-1].epoch),
    "RPL-8 what is above is the last epoch of the log",
)
def epoch_above(a: Replica, told: LeaderEpochOrNone) -> LeaderEpochOrNone:
    """The last epoch of a log that is above the one of the metadata log, `told`, which is -1 if it is not known; else
    -1."""
    return above_metadata(a, told)


@machine.question("areReplicas", "RPL-1", "RPL-7")
@ensure(lambda a, b, result: result == are_replicas(b, a), "RPL-1 it is the same both ways")
def replicas_of_one(a: Directory, b: Directory) -> bool:
    """Whether logs of one name in these directories are to be compared."""
    return are_replicas(a, b)
