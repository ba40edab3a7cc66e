"""What a log segment holds: batches with their places in the file, and what three indexes hold of them.

The index entries follow from the batches; here are the rules by which they do, for appends as for recovery. The clauses
are those of the log segment, `spec.storage.segment`, whose operations use them.

Source: Kafka Internals, ch. 03, "LogSegment: a file pair plus indexes" and "Writing into the segment & the sparse
index"; LogSegment, FileRecords and AbstractIndex, Kafka 4.3.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, NamedTuple

from kafkaspec.contract.clauses import A_QUESTION, ONE_CALL, states
from kafkaspec.contract.codec import optional, replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.numbers import LeaderEpochOrNone, Offset, ProducerIdOrNone, Room, Timestamp
from kafkaspec.spec.common import mapped_index as mapped
from kafkaspec.spec.common import record_format as fmt
from kafkaspec.spec.common.aborted_transaction import AbortedTransaction
from kafkaspec.spec.common.kafka import INT_MAX, NO_TIMESTAMP

CHAPTER = "Kafka Internals, ch. 03"
LOG_SEGMENT = "LogSegment, Kafka 4.3.0"
TIMES = f"{CHAPTER}, 'TimeIndex, max timestamp → relative offset (KIP-33)'"
WRITING = mapped.WRITING
READING = f"{CHAPTER}, 'The read / fetch-by-offset path'"
RECOVERY = f"{CHAPTER}, 'Crash recovery & startup: LogLoader'"
FAILURES = f"{CHAPTER}, 'Failure modes, edge cases & recovery'"

OFFSET_ENTRY, TIME_ENTRY = 8, 12
"""Bytes of an index entry."""
MOST_RECORDS = 1000
"""Records of a batch that are asked for: whoever makes a file writes each."""
OVERHEAD = fmt.OVERHEAD
"""Bytes of a batch before its records."""
MARKER_KEY, MARKER_VALUE = 4, 6
"""Bytes of a marker's key and value."""
KINDS = ("data", "transactional", "abort", "commit")


# ---- batches ---------------------------------------------------------------------------------------------------------
class Record(NamedTuple):
    """A record, as far as lookups see it; ms."""

    offset: Offset
    timestamp: Timestamp


def varint_size(n: int) -> int:
    """Bytes of a signed number in zig-zag."""
    return max(1, -(-(n * 2 if n >= 0 else -n * 2 - 1).bit_length() // 7))


@lru_cache(maxsize=256)
def size_of(records: tuple[Record, ...], key: int, value: int) -> int:
    """Bytes of a batch of such records, without compression, of keys and values of that many bytes; a key of none is
    null."""
    first = records[0]
    size = OVERHEAD
    for r in records:
        body = 2 + varint_size(r.timestamp - first.timestamp) + varint_size(r.offset - first.offset)
        body += varint_size(key or -1) + key + varint_size(value) + value
        size += varint_size(body) + body
    return size


@dataclass(frozen=True)
class BatchToAppend:
    """A batch of records without keys and with values of equal length, or a marker."""

    records: tuple[Record, ...]
    value_bytes: Room = optional(10)
    """of each record; 10 if not given"""
    leader_epoch: LeaderEpochOrNone = optional(-1)
    producer_id: ProducerIdOrNone = optional(-1)
    kind: str = optional("data")
    """data, transactional, commit or abort; data if not given"""


@dataclass(frozen=True)
class Batch(BatchToAppend):
    """A batch in the file. `damaged`: a byte of it changed."""

    damaged: bool = False

    @property
    def base_offset(self) -> int:
        return self.records[0].offset

    @property
    def last_offset(self) -> int:
        return self.records[-1].offset

    @property
    def max_timestamp(self) -> int:
        return max(r.timestamp for r in self.records)

    @property
    def control(self) -> bool:
        return self.kind in ("abort", "commit")

    @property
    def size(self) -> int:
        """Bytes, as format 2 writes it without compression."""
        return size_of(self.records, *((MARKER_KEY, MARKER_VALUE) if self.control else (0, self.value_bytes)))


def is_batch(b: BatchToAppend) -> bool:
    """Whether it has records, of rising offsets, and each number is one that Kafka writes: an offset in a batch has 32
    bits, and transactions have a producer."""
    return (
        len(b.records) > 0
        and b.kind in KINDS
        and all(x.offset < y.offset for x, y in itertools.pairwise(b.records))
        and b.records[-1].offset - b.records[0].offset <= INT_MAX
        and (b.kind == "data" or b.producer_id >= 0)
        and all(r.offset >= 0 and r.timestamp >= NO_TIMESTAMP for r in b.records)
    )


def batches_of(batches: Iterable[BatchToAppend]) -> tuple[Batch, ...]:
    """The same, in the file."""
    return tuple(Batch(**vars(b)) for b in batches)


def ascending(batches: Sequence[Batch]) -> bool:
    return all(x.last_offset < y.base_offset for x, y in itertools.pairwise(batches))


class PlacedBatch(NamedTuple):
    """A batch and its position."""

    position: int
    batch: Batch


@states()
def placed(batches: Iterable[Batch]) -> tuple[PlacedBatch, ...]:
    """The batches with their positions.

    SEG-2: An append writes its batches at the end, in order. A batch's position is where it begins in the file.
    [{WRITING}; {LOG_SEGMENT}]
    """
    out, position = [], 0
    for b in batches:
        out.append(PlacedBatch(position, b))
        position += b.size
    return tuple(out)


@states()
def transactions(batches: Iterable[Batch], before: Iterable[tuple[int, int]]) -> tuple[AbortedTransaction, ...]:
    """The aborted ones, in the order of their markers, if those before were open.

    SEG-18: Recovery makes the transaction index again: an entry for each abort marker that ends an open transaction,
    those that were open where the segment begins included, with the last stable offset as it was. [{FAILURES};
    {LOG_SEGMENT}]
    """
    running = dict(before)
    out = []
    for b in batches:
        if b.kind == "transactional":
            running.setdefault(b.producer_id, b.base_offset)
        elif b.control and b.producer_id in running:
            first = running.pop(b.producer_id)
            stable = min(running.values(), default=b.last_offset + 1)
            if b.kind == "abort":
                out.append(AbortedTransaction(b.producer_id, first, b.last_offset, stable))
    return tuple(out)


class EpochEntry(NamedTuple):
    """A leader epoch and the offset at which it begins."""

    epoch: int
    start_offset: int


@states(without={"model": "who uses it is a model of its own: see LEC-9", "proof": "see LEC-9"})
def epochs(batches: Iterable[Batch]) -> tuple[EpochEntry, ...]:
    """What recovery assigns to leader epochs of which there was none before.

    SEG-19: Recovery assigns to the leader epochs every epoch from 0 up that is above all before it, with the base
    offset of its batch. [{RECOVERY}; {LOG_SEGMENT}; KAFKA-10432]
    """
    out: list[EpochEntry] = []
    for b in batches:
        if b.leader_epoch >= 0 and (not out or b.leader_epoch > out[-1].epoch):
            out.append(EpochEntry(b.leader_epoch, b.base_offset))
    return tuple(out)


# ---- index entries ---------------------------------------------------------------------------------------------------
class OffsetEntry(NamedTuple):
    """A batch's last offset, and where it begins."""

    offset: Annotated[int, governs("SEG-5")]
    position: Annotated[int, governs("SEG-5", "SEG-2")]


class TimeEntry(NamedTuple):
    """No record up to and with this offset has a larger timestamp."""

    timestamp: Annotated[int, governs("SEG-5")]
    offset: Annotated[int, governs("SEG-5")]


class IndexState(NamedTuple):
    """The entries of both indexes, the largest timestamp, and the bytes since the last entry."""

    offsets: tuple[OffsetEntry, ...]
    times: tuple[TimeEntry, ...]
    largest: TimeEntry
    since: int


@states(without={"SEG-4": ONE_CALL})
def indexed(batches: Iterable[PlacedBatch], interval: int, before: IndexState) -> IndexState:
    """The entries after appending these batches, one by one.

    SEG-4: The indexes are sparse: a batch gets an entry if more than index.interval.bytes were appended from the batch
    of the last entry on, or from the first batch on where there is none; each batch of an append is asked on its own.
    After a truncation and after the segment was opened, counting begins again; a recovery makes the entries again and
    leaves the count as it was. [{CHAPTER}, 'LogSegment: a file pair plus indexes'; {LOG_SEGMENT}]

    SEG-5: A batch's entry in the offset index is its last offset and its position. With it the time index gets the
    largest timestamp so far and the last offset of the first batch that has it, unless its last entry has that
    timestamp already. [{TIMES}; {LOG_SEGMENT}]
    """
    offsets, times, largest, since = list(before.offsets), list(before.times), before.largest, before.since
    for position, b in batches:
        if b.max_timestamp > largest.timestamp:
            largest = TimeEntry(b.max_timestamp, b.last_offset)
        if since > interval:
            offsets.append(OffsetEntry(b.last_offset, position))
            with_last(times, largest)
            since = 0
        since += b.size
    return IndexState(tuple(offsets), tuple(times), largest, since)


@states("SEG-10")
def with_last(times: list[TimeEntry], largest: TimeEntry) -> list[TimeEntry]:
    """The largest timestamp as the last entry, unless it is that already."""
    if largest.timestamp > (times[-1].timestamp if times else NO_TIMESTAMP):
        times.append(largest)
    return times


# ---- the segment -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Segment:
    """A segment in memory and on the disk. `offset_slots` and `time_slots`: how many entries the index files have room
    for; `rest`: bytes at the end of the file that are no whole batch."""

    base_offset: int
    index_interval_bytes: int
    max_index_bytes: int
    roll_jitter_ms: int
    open_before: tuple[tuple[int, int], ...]
    """transactions that were open where the segment begins: producer ids and first offsets"""
    now: int
    created: int
    largest: TimeEntry
    offset_slots: int
    time_slots: int
    batches: tuple[Batch, ...] = ()
    rest: int = 0
    offsets: tuple[OffsetEntry, ...] = ()
    times: tuple[TimeEntry, ...] = ()
    aborted: tuple[AbortedTransaction, ...] = ()
    since: int = 0
    """bytes appended since the last entry"""
    rolling_timestamp: int | None = None
    """that of the first batch, once it was asked for"""
    index_files: bool = True
    suffix: str = ""

    @property
    def placed(self) -> tuple[PlacedBatch, ...]:
        return placed(self.batches)

    @property
    def size(self) -> int:
        """Bytes of the .log."""
        return sum(b.size for b in self.batches) + self.rest

    @property
    @states(without=A_QUESTION)
    def next_offset(self) -> int:
        """SEG-14: The next offset is that after the last batch's last, the base offset without a batch.
        [{LOG_SEGMENT}]"""
        return self.batches[-1].last_offset + 1 if self.batches else self.base_offset

    @property
    def slots(self) -> tuple[int, int]:
        return self.offset_slots, self.time_slots

    @property
    def full_slots(self) -> tuple[int, int]:
        return self.max_index_bytes // OFFSET_ENTRY, self.max_index_bytes // TIME_ENTRY

    @states(without=ONE_CALL)
    def fits(self, offset: int) -> bool:
        """Whether an offset can be written relative to the base.

        SEG-3: An append is refused, and nothing is written, unless its largest offset is from the base offset to
        2^31 - 1 above it. [{WRITING}; {LOG_SEGMENT}; KAFKA-5413, KAFKA-4451]
        """
        return 0 <= offset - self.base_offset <= INT_MAX

    @property
    @states(without=ONE_CALL)
    def index_full(self) -> bool:
        """SEG-8: A segment is to be rolled if one of its indexes is full. The time index is full one entry early, to
        have room for the last one. A file that was trimmed is full until it is given its full size again. [{TIMES};
        AbstractIndex, TimeIndex, Kafka 4.3.0; KAFKA-6492]"""
        return len(self.offsets) >= self.offset_slots or len(self.times) >= self.time_slots - 1

    @property
    def last_time(self) -> TimeEntry:
        """The time index's last entry; what stands for it where there is none."""
        return self.times[-1] if self.times else self.no_time

    @property
    def no_time(self) -> TimeEntry:
        """What stands for the largest timestamp where no record has one."""
        return TimeEntry(NO_TIMESTAMP, self.base_offset)

    @property
    def indexes(self) -> IndexState:
        return IndexState(self.offsets, self.times, self.largest, self.since)


@states(without=A_QUESTION)
def place(state: Segment, offset: int, from_position: int = 0) -> PlacedBatch | None:
    """SEG-11: The place of an offset is that of the first batch whose last offset is at or above it, at or beyond a
    given position; none if there is no such batch. [{CHAPTER}, 'The read / fetch-by-offset path'; {LOG_SEGMENT} and
    FileRecords]"""
    return next((p for p in state.placed if p.position >= from_position and p.batch.last_offset >= offset), None)


@states()
def whole(state: Segment) -> tuple[Batch, ...]:
    """The batches before the first that is damaged.

    SEG-17: At the first batch that is not whole or whose CRC is wrong recovery cuts the file: whatever stands behind is
    lost, valid or not. It answers how many bytes it cut. [{FAILURES}; {LOG_SEGMENT}]
    """
    return tuple(itertools.takewhile(lambda b: not b.damaged, state.batches))


def largest_so_far(state: Segment) -> Iterator[TimeEntry]:
    """Each timestamp larger than those before it, with the last offset of its batch, in the order of the batches."""
    highest = NO_TIMESTAMP
    for b in state.batches:
        if b.max_timestamp > highest:
            highest = b.max_timestamp
            yield TimeEntry(highest, b.last_offset)


@states()
def sound(state: Segment) -> bool:
    """Whether the entries of both indexes say the truth about the batches.

    SEG-25: After recovery every entry of the offset index has the last offset and the position of a batch that is
    there; every entry of the time index a timestamp and the last offset of the first batch that has it, no batch before
    having a larger one; the last one is the segment's largest. [{CHAPTER}, 'Data structures: the index files, field by
    field'; {LOG_SEGMENT}]
    """
    places = {p.position: p.batch for p in state.placed}
    first = dict(largest_so_far(state))
    return all(e.position in places and places[e.position].last_offset == e.offset for e in state.offsets) and all(
        first.get(t.timestamp) == t.offset for t in state.times
    )


def room(state: Segment, batches: Sequence[Batch]) -> bool:
    """Whether the indexes are not full where an append has entries: the segment would have been rolled otherwise. The
    time index is asked even if it gets none."""
    for n in range(len(batches)):
        before = IndexState((), (), state.largest, state.since)
        offsets, times, *_ = indexed(placed(batches[:n]), state.index_interval_bytes, before)
        due = len(indexed(placed(batches[: n + 1]), state.index_interval_bytes, before).offsets) > len(offsets)
        if due and (
            len(state.offsets) + len(offsets) >= state.offset_slots
            or len(state.times) + len(times) >= state.time_slots - 1
        ):
            return False
    return True


def slot_left(state: Segment) -> bool:
    """Whether the largest timestamp can be the time index's last entry."""
    return len(state.times) < state.time_slots or state.largest.timestamp <= state.last_time.timestamp


def trimmed(state: Segment) -> bool:
    return state.slots == (len(state.offsets), len(state.times))


def largest_is_true(state: Segment) -> bool:
    """Whether the largest timestamp is that of the batches, with the offset of the first that has it."""
    return state.largest == [state.no_time, *largest_so_far(state)][-1]


@states(without=ONE_CALL)
def inactive(state: Segment) -> Segment:
    """SEG-10: A segment that is no longer the active one, or is closed, gets its largest timestamp as the last entry of
    the time index, unless it is that already, and its index files are trimmed to their entries. [{CHAPTER}, 'Segment
    rolling'; {LOG_SEGMENT}; KAFKA-4734]"""
    times = tuple(with_last(list(state.times), state.largest))
    return replace(state, times=times, offset_slots=len(state.offsets), time_slots=len(times))


@states("SEG-8")
def resized(state: Segment) -> Segment:
    """With index files of full size."""
    offset_slots, time_slots = state.full_slots
    return replace(state, offset_slots=offset_slots, time_slots=time_slots)


@states("SEG-15")
def largest_of(state: Segment) -> TimeEntry:
    """The largest timestamp, with the last offset of the first batch that has it, as far as the indexes know where to
    begin to look: at the last time entry's batch."""
    best = state.last_time
    begin = max((e.position for e in state.offsets if e.offset <= best.offset), default=0)
    for position, b in state.placed:
        if position >= begin and b.max_timestamp > best.timestamp:
            best = TimeEntry(b.max_timestamp, b.last_offset)
    return best


@states("SEG-16")
def as_if_appended(state: Segment) -> IndexState:
    """What appending its batches to an empty segment gives."""
    return indexed(state.placed, state.index_interval_bytes, IndexState((), (), state.no_time, 0))


@states()
def recovered(state: Segment) -> Segment:
    """The segment after recovery.

    SEG-16: Recovery reads the batches from the first byte on and makes the indexes again as appending them one by one
    to an empty segment would (SEG-4, SEG-5), with the last time entry and trimmed (SEG-10). [{RECOVERY}; {LOG_SEGMENT}]
    """
    kept = replace(state, batches=whole(state), rest=0)
    made = as_if_appended(kept)
    return replace(
        inactive(replace(kept, offsets=made.offsets, times=made.times, largest=made.largest)),
        aborted=transactions(kept.batches, state.open_before),
    )


def recovery_fits(state: Segment) -> bool:
    """Whether recovery finds its indexes full nowhere."""
    nothing = resized(replace(state, batches=(), offsets=(), times=(), since=0, largest=state.no_time))
    return room(nothing, whole(state))


def was_open(state: Segment, marker: Batch) -> bool:
    """Whether the marker's producer has a transaction open before it."""
    last = None
    for b in state.batches:
        if b.last_offset < marker.last_offset and b.producer_id == marker.producer_id and b.kind != "data":
            last = b
    return marker.producer_id in dict(state.open_before) if last is None else last.kind == "transactional"


def keeps_to_transactions(state: Segment, batches: Iterable[Batch]) -> bool:
    """Whether every batch of a producer with an open transaction belongs to it, those before the new ones included."""
    of_open = {producer_id for producer_id, _ in state.open_before}
    for b in (*state.batches, *batches):
        if b.kind == "transactional":
            of_open.add(b.producer_id)
        elif b.control:
            of_open.discard(b.producer_id)
        elif b.producer_id in of_open:
            return False
    return True
