"""What a caller sees of a log: the observation, and the answers of its operations.

The clauses that govern them are those of the log, `spec.storage.log`. Source: UnifiedLog, Kafka 4.3.0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from kafkaspec.contract.codec import Unordered, partial
from kafkaspec.contract.governs import governs
from kafkaspec.spec.common import producers
from kafkaspec.spec.common.aborted_transaction import AbortedTransaction
from kafkaspec.spec.common.checkpoint_text import metadata_text
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.kafka import INT_MAX
from kafkaspec.spec.storage import leader_epochs
from kafkaspec.spec.storage.log_parts.contents import Batch, Log, Mark, files_of, snapshot_files


@dataclass(frozen=True)
class SegmentEntry:
    """A segment."""

    base_offset: Annotated[int, governs("LOG-6", "LOG-28", "LOG-33", "LOG-39", "LOG-9")]
    size: Annotated[int, governs("LOG-1", "LOG-28", "LOG-10")]
    """bytes"""
    largest_timestamp: Annotated[int, governs("LOG-1", "LOG-28", "LOG-49")]
    """ms; -1 without a batch"""


@dataclass(frozen=True)
class ProducerEntry:
    """What is known of a producer."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    last_timestamp: int
    current_txn_first_offset: int | None
    batches: list[producers.BatchNumbers]


@dataclass(frozen=True)
class FileEntry:
    """A file."""

    size: int
    """bytes"""


@partial
@dataclass(frozen=True)
class Observation:
    """Offsets, segments, epochs, producers, and the files but for those of the offset and time indexes."""

    now: Annotated[int, governs("LOG-34")]
    """ms"""
    log_start_offset: Annotated[int, governs("LOG-32", "LOG-33", "LOG-28", "LOG-30")]
    log_end_offset: Annotated[int, governs("LOG-1", "LOG-2", "LOG-28", "LOG-30", "LOG-37")]
    high_watermark: Annotated[
        int, governs("LOG-15", "LOG-16", "LOG-17", "LOG-18", "LOG-30", "LOG-28", "LOG-42", "LOG-43")
    ]
    last_stable_offset: Annotated[int, governs("LOG-19", "LOG-20", "LOG-18", "LOG-30", "LOG-42", "LOG-43")]
    first_unstable_offset: Annotated[int | None, governs("LOG-20", "LOG-18")]
    recovery_point: Annotated[int, governs("LOG-35", "LOG-36", "LOG-6")]
    segments: Annotated[tuple[SegmentEntry, ...], governs("LOG-6", "LOG-5", "LOG-28", "LOG-33", "LOG-39", "LOG-9")]
    leader_epochs: Annotated[leader_epochs.Entries, governs("LOG-14", "LOG-28", "LOG-29", "LOG-32")]
    producers: Annotated[Unordered[ProducerEntry], governs("LOG-9", "LOG-8", "LOG-31")]
    snapshots: Annotated[list[int], governs("LOG-34", "LOG-6", "LOG-31", "LOG-33")]
    """their offsets"""
    aborted_txns: Annotated[tuple[AbortedTransaction, ...], governs("LOG-10", "LOG-28")]
    topic_id: Annotated[str | None, governs("LOG-45")]
    files: Annotated[
        Frozen[str, FileEntry],
        governs(
            "LOG-1",
            keys={
                "*.deleted": ("LOG-34", "LOG-50"),
                "*.snapshot": ("LOG-34", "LOG-6", "LOG-31"),
                "leader*": ("LOG-14", "LOG-51"),
                "part*": ("LOG-44", "LOG-45"),
            },
        ),
    ]


def observe(log: Log) -> Observation:
    """What a caller and a look at the directory show."""
    entries = Unordered(
        ProducerEntry(i, p.epoch, p.coordinator_epoch, p.last_timestamp, p.transaction, [b.numbers for b in p.batches])
        for i, p in sorted(log.producers.producers.items())
    )
    files = {k: v for s in (*log.segments, *log.stranded) for k, v in files_of(s).items()}
    files |= snapshot_files(log.producers) | log.removed
    files["leader-epoch-checkpoint"] = 0 if log.epochs_file is None else len(leader_epochs.text_of(log.epochs_file))
    if log.topic_id_file is not None:
        files["partition.metadata"] = len(metadata_text(log.topic_id_file))
    return Observation(
        log.now,
        log.log_start,
        log.log_end,
        log.high_watermark.offset,
        log.last_stable,
        None if log.first_unstable is None else log.first_unstable.offset,
        log.recovery_point,
        tuple(SegmentEntry(s.base_offset, s.size, s.largest.timestamp) for s in log.segments),
        log.epochs,
        entries,
        list(log.producers.snapshots),
        tuple(e for s in log.segments for e in s.aborted),
        log.topic_id,
        Frozen({k: FileEntry(v) for k, v in sorted(files.items())}),
    )


@dataclass(frozen=True)
class LogAppendInfo:
    """What became of an append. -1 where there is nothing."""

    first_offset: Annotated[int, governs("LOG-2", "LOG-8", "LOG-11", "LOG-12")]
    last_offset: Annotated[int, governs("LOG-2", "LOG-8", "LOG-11", "LOG-12")]
    max_timestamp: Annotated[int, governs("LOG-1", "LOG-12", "LOG-49")]
    log_append_time: Annotated[int, governs("LOG-8", "LOG-49")]
    """ms; of a duplicate the timestamp of the batch that is there"""
    log_start_offset: Annotated[int, governs("LOG-1")]
    last_leader_epoch: Annotated[int | None, governs("LOG-12")]
    """as it came in"""
    num_messages: Annotated[int, governs("LOG-2", "LOG-12")]
    valid_bytes: Annotated[int, governs("LOG-12")]
    leader_hw_change: str = "NONE"


def info(
    log: Log, first: int, last: int, timestamp: int, size: int, epoch: int | None, time: int = -1
) -> LogAppendInfo:
    count = last - first + 1 if first >= 0 and last >= 0 else 0
    return LogAppendInfo(first, last, timestamp, time, log.log_start, epoch, count, size)


@dataclass(frozen=True)
class OffsetAndEpoch:
    """Where an epoch ended."""

    offset: int
    leader_epoch: int


@dataclass(frozen=True)
class BatchRead:
    """A batch that a reader was given."""

    base_offset: int
    last_offset: int
    size: int
    max_timestamp: Annotated[int, governs("LOG-49")]
    leader_epoch: int
    producer_id: int | None
    producer_epoch: int | None
    base_sequence: int | None
    """null, as all three, without a producer"""
    transactional: bool
    control: bool
    log_append_time: Annotated[bool, governs("LOG-49")]


def read_of(b: Batch) -> BatchRead:
    known = b.producer_id >= 0
    return BatchRead(
        b.base_offset, b.last_offset, b.size, b.max_timestamp, b.leader_epoch,
        b.producer_id if known else None, b.producer_epoch if known else None, b.base_sequence if known else None,
        b.kind != "data", b.control, b.log_append_time,
    )  # fmt: skip


@dataclass(frozen=True)
class ProducerIdAndFirstOffset:
    """An aborted transaction that overlaps a read."""

    producer_id: int
    first_offset: int


@dataclass(frozen=True)
class FetchDataInfo:
    """What a read gives: the place of its first batch, bytes, the whole batches in them, and, for a reader of committed
    records, the aborted transactions in their range."""

    fetch_offset: Annotated[int, governs("LOG-23", "LOG-18")]
    segment_base_offset: Annotated[int, governs("LOG-26", "LOG-18")]
    relative_position: Annotated[int, governs("LOG-26", "LOG-18")]
    size_in_bytes: Annotated[int, governs("LOG-23", "LOG-24")]
    first_entry_incomplete: bool
    batches: Annotated[list[BatchRead], governs("LOG-23", "LOG-24", "LOG-49")]
    aborted_transactions: Annotated[list[ProducerIdAndFirstOffset] | None, governs("LOG-25")]


def below(bound: Mark, result: object) -> bool:
    """Whether all that was read is below a bound."""
    return not isinstance(result, FetchDataInfo) or all(b.last_offset < bound.offset for b in result.batches)


def nothing_at(mark: Mark, committed: bool) -> FetchDataInfo:
    return FetchDataInfo(mark.offset, mark.segment, mark.position, 0, False, [], [] if committed else None)


@dataclass(frozen=True)
class TimestampAndOffset:
    """An offset, with the timestamp and the leader epoch of its record where they are known."""

    timestamp: Annotated[int, governs("LOG-27", "LOG-38")]
    offset: Annotated[int, governs("LOG-27", "LOG-38")]
    leader_epoch: Annotated[int | None, governs("LOG-27", "LOG-38")]


@dataclass(frozen=True)
class TopicPartition:
    """A partition."""

    topic: str
    partition: int


ENDING = re.compile(r"(\S+)-(\S+)\.(\S+)(-delete|-future|-stray)", re.ASCII)


def parsed(name: str) -> TopicPartition | None:
    """The partition whose log a directory of this name has; None if it is no log."""
    suffixed = name.endswith(("-delete", "-future", "-stray"))
    if "-" not in name or (suffixed and not ENDING.fullmatch(name)):
        return None
    topic, _, number = (name.rpartition(".")[0] if suffixed else name).rpartition("-")
    if not topic or not re.fullmatch(r"[+-]?[0-9]+", number) or not -INT_MAX - 1 <= int(number) <= INT_MAX:
        return None
    return TopicPartition(topic, int(number))
