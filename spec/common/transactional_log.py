"""A partition's log as its readers and its transactions see it: batches, aborted transactions, offsets, producers.

The rules are LSO, most of them with the operations. Source: UnifiedLog, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from kafkaspec.contract.clauses import states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Refused
from kafkaspec.contract.numbers import CoordinatorEpoch, Offset, ProducerEpoch, ProducerId, SequenceNumber, Within
from kafkaspec.spec.common import producers as tables
from kafkaspec.spec.common.aborted_transaction import Entries

LOG = "UnifiedLog, Kafka 4.3.0"
NOBODY = -1
"""the producer id, epoch and sequence of records without a producer"""
Kind = Literal["PLAIN", "TRANSACTIONAL", "COMMIT", "ABORT"]
"""what a batch holds: records without a transaction, records of one, or a marker that ends one"""


class LogBatch(NamedTuple):
    """A batch of the log. Records and markers without a producer or a sequence have -1 there."""

    base_offset: Offset
    last_offset: Offset
    producer_id: int
    producer_epoch: int
    kind: Kind
    first_sequence: int
    coordinator_epoch: int
    timestamp: int
    is_indexed: bool = True
    """it has an entry in the offset index"""

    @property
    def is_marker(self) -> bool:
        return self.kind in ("COMMIT", "ABORT")


class ReplicaBatch(NamedTuple):
    """A batch of the leader's log that a follower appends. Sequences of markers, and coordinator epochs of others, are
    not looked at."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    kind: Kind
    first_sequence: SequenceNumber
    coordinator_epoch: CoordinatorEpoch
    records: Annotated[int, Within(1, 5)]


@dataclass(frozen=True)
class PartitionLog:
    """A partition's log. `first_unstable` is what the log has looked up last; `producers` has the clock too."""

    segments: tuple[Offset, ...]
    """their base offsets"""
    batches: tuple[LogBatch, ...]
    aborted: Entries
    """the transaction indexes, of all segments"""
    log_start: Offset
    high_watermark: Offset
    log_end: Offset
    first_unstable: Offset | None
    producers: tables.State
    is_fresh: bool = True
    """nothing was appended to the last segment since it was made, cut or opened"""

    @property
    @states("LSO-1")
    def last_stable(self) -> Offset:
        first = self.first_unstable
        return self.high_watermark if first is None else min(first, self.high_watermark)

    def floor(self, offset: Offset) -> Offset:
        """The base offset of the segment that an offset is in; the first one's below all."""
        return max((s for s in self.segments if s <= offset), default=self.segments[0])

    def next_segment(self, base: Offset) -> Offset | None:
        return min((s for s in self.segments if s > base), default=None)

    def of_segment(self, base: Offset) -> tuple[LogBatch, ...]:
        end = self.next_segment(base)
        return tuple(b for b in self.batches if b.base_offset >= base and (end is None or b.base_offset < end))

    def with_producers(self, producers: tables.State, **more: Any) -> PartitionLog:
        return replace(self, producers=producers, **more)

    def __hash__(self) -> int:
        return hash((self.batches, self.log_start, self.high_watermark, self.log_end, self.segments))


class BatchView(NamedTuple):
    base_offset: int
    last_offset: int
    producer_id: int
    producer_epoch: int
    kind: Kind


class KeptBatch(NamedTuple):
    """A data batch of a producer, with which a repetition is compared."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int


class ProducerView(NamedTuple):
    producer_id: int
    epoch: int
    coordinator_epoch: int
    last_sequence: int
    transaction: int | None
    """first offset of the open one"""
    batches: tuple[KeptBatch, ...]
    """the latest, of the last epoch"""


@dataclass(frozen=True)
class Observation:
    """The offsets, the batches, the aborted transactions and the producers of a partition's log."""

    log_start_offset: Annotated[int, governs("LSO-6", "LSO-7", "LSO-8", "LSO-9")]
    high_watermark: Annotated[int, governs("LSO-5", "LSO-8", "LSO-9")]
    last_stable_offset: Annotated[int, governs("LSO-1", "LSO-2", "LSO-6", "LSO-9", "LSO-8")]
    log_end_offset: Annotated[int, governs("LSO-3", "LSO-8")]
    first_unstable_offset: Annotated[int | None, governs("LSO-2", "LSO-1", "LSO-6", "LSO-9", "LSO-8")]
    segments: Annotated[tuple[int, ...], governs("LSO-7", "LSO-8", "LSO-14")]
    """base offsets"""
    batches: Annotated[tuple[BatchView, ...], governs("LSO-3", "LSO-7", "LSO-8", "LSO-18")]
    """base offset, last offset, producer id, producer epoch, kind"""
    aborted_transactions: Annotated[Entries, governs("LSO-4", "LSO-7", "LSO-8", "LSO-18")]
    """producer id, first offset, last offset, last stable offset; of all segments"""
    producers: Annotated[tuple[ProducerView, ...], governs("LSO-3", "LSO-9", "LSO-8", "LSO-15", "LSO-18")]
    """producer id, epoch, coordinator epoch, last sequence, first offset of the open transaction, and of the batches
    that are kept first and last sequence, first and last offset; by producer id"""


def observe(state: PartitionLog) -> Observation:
    """All that a reader, a coordinator or a replica can ask of the log."""
    return Observation(
        state.log_start,
        state.high_watermark,
        state.last_stable,
        state.log_end,
        state.first_unstable,
        state.segments,
        tuple(BatchView(*b[:5]) for b in state.batches),
        state.aborted,
        tuple(
            ProducerView(
                i,
                p.epoch,
                p.coordinator_epoch,
                p.last_sequence,
                p.transaction,
                tuple(KeptBatch(*b.numbers[:4]) for b in p.batches),
            )
            for i, p in sorted(state.producers.producers.items())
        ),
    )


@states()
def looked_up(state: PartitionLog) -> Offset | None:
    """What a look into the producer state gives.

    LSO-2: The first unstable offset is that of the producer state (PSM-13). If that is below the log start offset, it
    is the first offset from the log start on at which there is a record, or the log's end. Without any there is none. A
    log looks it up with every append, every change of the high watermark, every rise of the log start and when it is
    loaded. A truncation below which the high watermark stays does not look it up: until one of those comes, the log has
    the old one. [{LOG}, maybeIncrementFirstUnstableOffset; KAFKA-5435]
    """
    first = state.producers.first_unstable
    if first is None or first >= state.log_start:
        return first
    batch = next((b for b in state.batches if b.last_offset >= state.log_start), None)
    return state.log_end if batch is None else max(batch.base_offset, state.log_start)


def transactional(state: PartitionLog) -> Iterator[tuple[LogBatch, LogBatch | None]]:
    """The transactional batches, last first, each with the marker that ends its transaction, if one does: the first one
    of its producer behind it."""
    ends: dict[int, LogBatch] = {}
    for b in reversed(state.batches):
        if b.is_marker:
            ends[b.producer_id] = b
        elif b.kind == "TRANSACTIONAL":
            yield b, ends.get(b.producer_id)


def is_whole(state: PartitionLog) -> bool:
    """Whether the log knows of every transaction that its records show: the open ones are open, none begins above its
    records; the aborted ones are in the index; and what was looked up is what there is."""
    for b, end in transactional(state):
        if b.last_offset < state.log_start:
            continue
        first = state.producers.known(b.producer_id).transaction
        if end is None and (first is None or first > b.base_offset):
            return False
        if (
            end is not None
            and end.kind == "ABORT"
            and not any(
                (a.producer_id, a.last_offset) == (b.producer_id, end.base_offset) and a.first_offset <= b.base_offset
                for a in state.aborted
            )
        ):
            return False
    return state.first_unstable == looked_up(state)


def in_bounds(state: PartitionLog) -> bool:
    """The order of the offsets."""
    return state.log_start <= state.last_stable <= state.high_watermark <= state.log_end


# ---- what is answered ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Fetch:
    """What a fetch is answered with."""

    batches: Annotated[tuple[BatchView, ...], governs("LSO-10", "LSO-11")]
    aborted_transactions: Annotated[tuple[tuple[int, int], ...] | None, governs("LSO-12", "LSO-13")]
    """producer id and first offset; null for a fetch that is not read_committed"""


@dataclass(frozen=True)
class Poll:
    """The offsets of the records that a consumer hands out, and where it goes on."""

    records: Annotated[tuple[int, ...], governs("LSO-11", "LSO-12")]
    next_offset: Annotated[int, governs("LSO-16")]


def is_dropped(batch: BatchView, fetched: Fetch) -> bool:
    """Whether an entry of its producer begins at or below the batch, and no abort marker of the producer lies
    between."""
    marks = [m.base_offset for m in fetched.batches if m.kind == "ABORT" and m.producer_id == batch.producer_id]
    return batch.kind == "TRANSACTIONAL" and any(
        i == batch.producer_id and first <= batch.last_offset and not any(first <= m < batch.base_offset for m in marks)
        for i, first in fetched.aborted_transactions or ()
    )


def handed_out(fetched: Fetch, start_offset: Offset) -> Iterator[int]:
    """The offsets of the records, from the start on."""
    for b in fetched.batches:
        if b.kind in ("PLAIN", "TRANSACTIONAL") and not is_dropped(b, fetched):
            yield from range(max(b.base_offset, start_offset), b.last_offset + 1)


# ---- what is promised of it ------------------------------------------------------------------------------------------
def covers_the_aborted(state: PartitionLog, read_committed: bool, result: Fetch | Refused) -> bool:
    """Every aborted record that is given is told by an entry that begins at or below it."""
    if isinstance(result, Refused) or not read_committed or not is_whole(state):
        return True
    told = result.aborted_transactions or ()
    return all(
        any(i == b.producer_id and first <= b.base_offset for i, first in told)
        for b, end in transactional(state)
        if end is not None and end.kind == "ABORT" and b.last_offset >= state.log_start
        if BatchView(*b[:5]) in result.batches
    )


def sees_the_committed(state: PartitionLog, start_offset: Offset, read_committed: bool, result: Poll | Refused) -> bool:
    """Between the offsets exactly the records without a transaction and those of committed ones."""
    if isinstance(result, Refused) or not read_committed or not is_whole(state):
        return True
    committed = {b for b, end in transactional(state) if end is not None and end.kind == "COMMIT"}
    expected = [
        x
        for b in state.batches
        for x in range(max(b.base_offset, start_offset), min(b.last_offset + 1, result.next_offset))
        if b.kind == "PLAIN" or b in committed
    ]
    return list(result.records) == expected


def sees_nothing_undecided(state: PartitionLog, read_committed: bool, result: Poll | Refused) -> bool:
    """Of every record a marker has ended the transaction."""
    if isinstance(result, Refused) or not read_committed or not is_whole(state):
        return True
    return all(
        end is not None
        for b, end in transactional(state)
        if any(b.base_offset <= x <= b.last_offset for x in result.records)
    )
