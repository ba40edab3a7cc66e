"""One segment of a log: its batches, what its three indexes hold of them, and what is found through them.

A segment is a sequence of batches, each with its place in the file. The offset index has every so many bytes where a
batch begins; the time index has with it the largest timestamp up to there; both only make lookups shorter, and no
answer depends on them. So an index that is lost is made again from the batches, and that is what recovery does.

Source: Kafka Internals, ch. 03, "LogSegment: a file pair plus indexes", "Writing into the segment & the sparse index",
"Segment rolling", "The read / fetch-by-offset path" and "Crash recovery & startup"; LogSegment, FileRecords,
AbstractIndex and LogFileUtils, Kafka 4.3.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Required, TypedDict, cast

import icontract

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.machine import Fields, Machine, Refused, Step
from kafkaspec.errors import UserError
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, INT_MAX, NO_TIMESTAMP
from kafkaspec.spec.storage.transaction_index import AbortedTransaction as Aborted

PREFIX = "SEG"
TITLE = "Log segment"

CHAPTER = "Kafka Internals, ch. 03"
LOG_SEGMENT = "LogSegment, Kafka 4.3.0"

A_QUESTION = {
    "model": "a question about one segment, that changes nothing",
    "proof": "a question about one segment, that changes nothing",
}
OF_ONE_SEGMENT = {
    "model": "arithmetic over one segment; the models have what a crash may do to it",
    "proof": "arithmetic over one segment",
}

SEG_1 = clause(
    "SEG-1",
    """A segment's files are named by its base offset, 20 digits, and .log, .index, .timeindex or .txnindex; a further
    suffix is put after that or taken away from all of them, the .log first, the .txnindex last if it is there.""",
    source=f"{CHAPTER}, 'On-disk directory layout of a partition'; LogFileUtils and {LOG_SEGMENT}",
    without={"model": "a matter of names", "proof": "a matter of names"},
)
SEG_2 = clause(
    "SEG-2",
    "An append writes its batches at the end, in order. A batch's position is where it begins in the file.",
    source=f"{CHAPTER}, 'Writing into the segment & the sparse index'; {LOG_SEGMENT}",
)
SEG_3 = clause(
    "SEG-3",
    """An append is refused, and nothing is written, unless its largest offset is from the base offset to 2^31 - 1 above
    it.""",
    source=f"{CHAPTER}, 'Writing into the segment & the sparse index'; {LOG_SEGMENT}; KAFKA-5413, KAFKA-4451",
    without=OF_ONE_SEGMENT,
)
SEG_4 = clause(
    "SEG-4",
    """The indexes are sparse: a batch gets an entry if more than index.interval.bytes were appended from the batch of
    the last entry on, or from the first batch on where there is none; each batch of an append is asked on its own.
    After a truncation and after the segment was opened, counting begins again.""",
    source=f"{CHAPTER}, 'LogSegment: a file pair plus indexes'; {LOG_SEGMENT}",
    without=OF_ONE_SEGMENT,
)
SEG_5 = clause(
    "SEG-5",
    """A batch's entry in the offset index is its last offset and its position. With it the time index gets the largest
    timestamp so far and the last offset of the first batch that has it, unless its last entry has that timestamp
    already.""",
    source=f"{CHAPTER}, 'TimeIndex, max timestamp → relative offset (KIP-33)'; {LOG_SEGMENT}",
)
SEG_6 = clause(
    "SEG-6",
    "A segment is to be rolled if the messages would not fit: size > segment.bytes - size of the messages.",
    source=f"{CHAPTER}, 'Segment rolling'; {LOG_SEGMENT}",
    without=OF_ONE_SEGMENT,
)
SEG_7 = clause(
    "SEG-7",
    """A segment with records is to be rolled if it has waited longer than segment.ms less its jitter: from the largest
    timestamp of its first batch to that of the messages; from its creation (or from when it was emptied) to now, if
    the first batch has none.""",
    source=f"{CHAPTER}, 'Segment rolling'; {LOG_SEGMENT}",
    without=OF_ONE_SEGMENT,
)
SEG_8 = clause(
    "SEG-8",
    """A segment is to be rolled if one of its indexes is full. The time index is full one entry early, to have room for
    the last one. A file that was trimmed is full until it is given its full size again.""",
    source=f"{CHAPTER}, 'TimeIndex, max timestamp → relative offset (KIP-33)'; AbstractIndex, TimeIndex, Kafka 4.3.0; "
    "KAFKA-6492",
    without=OF_ONE_SEGMENT,
)
SEG_9 = clause(
    "SEG-9",
    "A segment is to be rolled if the largest offset of the messages could not be appended to it (SEG-3).",
    source=f"{CHAPTER}, 'Segment rolling'; {LOG_SEGMENT}; KAFKA-4451, KAFKA-6530",
    without=OF_ONE_SEGMENT,
)
SEG_10 = clause(
    "SEG-10",
    """A segment that is no longer the active one, or is closed, gets its largest timestamp as the last entry of the
    time index, unless it is that already, and its index files are trimmed to their entries.""",
    source=f"{CHAPTER}, 'Segment rolling'; {LOG_SEGMENT}; KAFKA-4734",
    without=OF_ONE_SEGMENT,
)
SEG_11 = clause(
    "SEG-11",
    """The place of an offset is that of the first batch whose last offset is at or above it, at or beyond a given
    position; none if there is no such batch.""",
    source=f"{CHAPTER}, 'The read / fetch-by-offset path'; {LOG_SEGMENT} and FileRecords",
    without=A_QUESTION,
)
SEG_12 = clause(
    "SEG-12",
    """A read from an offset gives the bytes from its place on, at most so many and not beyond the maximum position;
    with minOneMessage the first batch whole, however small the limit. The first batch is incomplete if it is larger
    than the limit. Without a maximum position, or with a limit of 0, no bytes are given; where the offset has no place,
    nothing is. A negative limit is refused, and a maximum position below the place.""",
    source=f"{CHAPTER}, 'The read / fetch-by-offset path'; {LOG_SEGMENT}",
    without=A_QUESTION,
)
SEG_13 = clause(
    "SEG-13",
    """The offset for a timestamp is the first record's, in the order of the file, whose timestamp is at or above it and
    whose offset is at or above the starting offset; nothing if there is none.""",
    source=f"{CHAPTER}, 'TimeIndex, max timestamp → relative offset (KIP-33)'; {LOG_SEGMENT}; KAFKA-16341",
    without=A_QUESTION,
)
SEG_14 = clause(
    "SEG-14",
    "The next offset is that after the last batch's last, the base offset without a batch.",
    source=LOG_SEGMENT,
    without=A_QUESTION,
)
SEG_15 = clause(
    "SEG-15",
    """Truncating to an offset cuts the file at the offset's place, so that a batch around it goes whole; drops the
    entries of all indexes whose offset is at or above it; gives the index files their full size again; and takes the
    largest timestamp again from what is left. Above the last offset only the last two happen.""",
    source=f"{LOG_SEGMENT}; KAFKA-6492",
    without=OF_ONE_SEGMENT,
)
SEG_16 = clause(
    "SEG-16",
    """Recovery reads the batches from the first byte on and makes the indexes again as appending them one by one to an
    empty segment would (SEG-4, SEG-5), with the last time entry and trimmed (SEG-10).""",
    source=f"{CHAPTER}, 'Crash recovery & startup: LogLoader'; {LOG_SEGMENT}",
)
SEG_17 = clause(
    "SEG-17",
    """At the first batch that is not whole or whose CRC is wrong recovery cuts the file: whatever stands behind is
    lost, valid or not. It answers how many bytes it cut.""",
    source=f"{CHAPTER}, 'Failure modes, edge cases & recovery'; {LOG_SEGMENT}",
)
SEG_18 = clause(
    "SEG-18",
    """Recovery makes the transaction index again: an entry for each abort marker that ends an open transaction, those
    that were open where the segment begins included, with the last stable offset as it was.""",
    source=f"{CHAPTER}, 'Failure modes, edge cases & recovery'; {LOG_SEGMENT}",
)
SEG_19 = clause(
    "SEG-19",
    """Recovery assigns to the leader epochs every epoch from 0 up that is above all before it, with the base offset of
    its batch.""",
    source=f"{CHAPTER}, 'Crash recovery & startup: LogLoader'; {LOG_SEGMENT}; KAFKA-10432",
    without={"model": "who uses it is a model of its own: see LEC-9", "proof": "see LEC-9"},
)
SEG_20 = clause(
    "SEG-20",
    "A second recovery finds nothing to cut and changes nothing.",
    source=LOG_SEGMENT,
)
SEG_21 = clause(
    "SEG-21",
    """The sanity check refuses a segment without an offset index file; its recovery follows. A time index file that was
    not there is emptied. Of the entries only the transaction index's are looked at.""",
    source=f"{CHAPTER}, 'Crash recovery & startup: LogLoader'; {LOG_SEGMENT}; KIP-263, KAFKA-19200, KAFKA-13603",
    without=OF_ONE_SEGMENT,
)
SEG_22 = clause(
    "SEG-22",
    """A segment that is opened takes its largest timestamp from the last entry of the time index, and index files as
    full as they are large.""",
    source=LOG_SEGMENT,
    without=OF_ONE_SEGMENT,
)
SEG_23 = clause(
    "SEG-23",
    """A flush has the .log outlive a crash, then the offset index, the time index and the transaction index. Only after
    it may the recovery point pass the segment.""",
    source=f"{CHAPTER}, 'Offset boundaries: LSO, LEO, HW, recovery point'; {LOG_SEGMENT}; KAFKA-10101",
)
SEG_24 = clause(
    "SEG-24",
    """Whatever a crash leaves of an append, recovery comes to a log that is what was appended, from the first batch up
    to some batch: none is torn, none changed, and none missing before another; and no batch below the recovery point is
    lost.""",
    source=f"{CHAPTER}, 'Crash recovery & startup: LogLoader'; KAFKA-10101",
)
SEG_25 = clause(
    "SEG-25",
    """After recovery every entry of the offset index has the last offset and the position of a batch that is there;
    every entry of the time index a timestamp and the last offset of the first batch that has it, no batch before
    having a larger one; the last one is the segment's largest.""",
    source=f"{CHAPTER}, 'Data structures: the index files, field by field'; {LOG_SEGMENT}",
)
SEG_26 = clause(
    "SEG-26",
    """After recovery the transaction index has an entry for every aborted transaction whose marker is in the log, and
    no other.""",
    source=f"{CHAPTER}, 'Failure modes, edge cases & recovery'; UnifiedLog.append, Kafka 4.3.0",
)
SEG_27 = clause(
    "SEG-27",
    """In a segment no batch begins below the base offset in its name, and none ends more than 2^31 - 1 above it.""",
    source=f"{CHAPTER}, 'Core concepts & terminology'; {LOG_SEGMENT}; KAFKA-6264",
    without={
        "impl": "about a segment at rest: the audit looks for it",
        "model": "a predicate over one segment at rest",
        "proof": "a predicate over one segment at rest",
        "mutant": "a predicate over one segment at rest: what breaks it is damage, made in the tests of the audit",
    },
)
SEG_28 = clause(
    "SEG-28",
    "A segment's file has at most 2^31 - 1 bytes: positions are 32 bits wide.",
    source="FileRecords, Kafka 4.3.0",
    without={
        "impl": "about a segment at rest: the audit looks for it",
        "model": "a predicate over one segment at rest",
        "proof": "a predicate over one segment at rest",
        "mutant": "two gigabytes: asked of files without reading them",
    },
)

OVERFLOW = "org.apache.kafka.storage.internals.log.LogSegmentOffsetOverflowException"
NO_SUCH_FILE = "java.nio.file.NoSuchFileException"
OFFSET_ENTRY, TIME_ENTRY = 8, 12
OVERHEAD = 61
"""Bytes of a batch before its records."""
KINDS = ("data", "transactional", "abort", "commit")


# ---- batches ---------------------------------------------------------------------------------------------------------
class Record(NamedTuple):
    """A record, as far as lookups see it; ms."""

    offset: int
    timestamp: int


def varint_size(n: int) -> int:
    """Bytes of a signed number in zig-zag."""
    return max(1, -(-(n * 2 if n >= 0 else -n * 2 - 1).bit_length() // 7))


@dataclass(frozen=True)
class Batch:
    """A batch of records without keys and with values of equal length, or a marker. `damaged`: a byte of it changed."""

    records: tuple[Record, ...]
    value_bytes: int = 10
    leader_epoch: int = -1
    producer_id: int = -1
    kind: str = "data"
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
        first = self.records[0]
        size = OVERHEAD
        for r in self.records:
            key, value = (4, 6) if self.control else (0, self.value_bytes)
            body = 2 + varint_size(r.timestamp - first.timestamp) + varint_size(r.offset - first.offset)
            body += varint_size(key or -1) + key + varint_size(value) + value
            size += varint_size(body) + body
        return size


class BatchToAppend(TypedDict, total=False):
    """A batch as an argument."""

    records: Required[list[list[int]]]
    """offset, timestamp (ms)"""
    valueBytes: int
    """of each record; 10 if not given"""
    leaderEpoch: int
    producerId: int
    kind: str
    """data, transactional, commit or abort; data if not given"""


def batch_of(a: Mapping[str, Any]) -> Batch:
    """The batch of an argument. Raises ValueError for one that is none."""
    records = tuple(Record(*r) for r in a["records"])
    kind = a.get("kind", "data")
    if (
        not records
        or kind not in KINDS
        or any(x.offset >= y.offset for x, y in itertools.pairwise(records))
        or any(r.offset < 0 or r.timestamp < NO_TIMESTAMP for r in records)
    ):
        raise ValueError(f"no batch: {a}")
    return Batch(records, a.get("valueBytes", 10), a.get("leaderEpoch", -1), a.get("producerId", -1), kind)


def given(arguments: Sequence[Mapping[str, Any]]) -> tuple[Batch, ...]:
    """The batches of an argument, as far as they are any."""
    try:
        return batches_of(arguments)
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()


def batches_of(arguments: Sequence[Mapping[str, Any]]) -> tuple[Batch, ...]:
    return tuple(batch_of(a) for a in arguments)


class OffsetEntry(NamedTuple):
    """A batch's last offset, and where it begins."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """No record up to and with this offset has a larger timestamp."""

    timestamp: int
    offset: int


class Placed(NamedTuple):
    """A batch and its position."""

    position: int
    batch: Batch


@states("SEG-2")
def placed(batches: Iterable[Batch]) -> tuple[Placed, ...]:
    """The batches with their positions."""
    out, position = [], 0
    for b in batches:
        out.append(Placed(position, b))
        position += b.size
    return tuple(out)


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
    aborted: tuple[Aborted, ...] = ()
    since: int = 0
    """bytes appended since the last entry"""
    rolling_timestamp: int | None = None
    """that of the first batch, once it was asked for"""
    index_files: bool = True
    suffix: str = ""

    @property
    def placed(self) -> tuple[Placed, ...]:
        return placed(self.batches)

    @property
    def size(self) -> int:
        """Bytes of the .log."""
        return sum(b.size for b in self.batches) + self.rest

    @property
    @states("SEG-14")
    def next_offset(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else self.base_offset

    @property
    def full_slots(self) -> tuple[int, int]:
        return self.max_index_bytes // OFFSET_ENTRY, self.max_index_bytes // TIME_ENTRY

    @states("SEG-3", "SEG-9")
    def fits(self, offset: int) -> bool:
        """Whether an offset can be written relative to the base."""
        return 0 <= offset - self.base_offset <= INT_MAX

    @property
    @states("SEG-8")
    def index_full(self) -> bool:
        return len(self.offsets) >= self.offset_slots or len(self.times) >= self.time_slots - 1

    @property
    def last_time(self) -> TimeEntry:
        """The time index's last entry; what stands for it where there is none."""
        return self.times[-1] if self.times else TimeEntry(NO_TIMESTAMP, self.base_offset)


class Indexed(NamedTuple):
    """What comes of going through batches."""

    offsets: tuple[OffsetEntry, ...]
    times: tuple[TimeEntry, ...]
    largest: TimeEntry
    since: int


@states("SEG-4", "SEG-5")
def indexed(batches: Iterable[Placed], interval: int, before: Indexed) -> Indexed:
    """The entries after appending these batches, one by one."""
    offsets, times, largest, since = list(before.offsets), list(before.times), before.largest, before.since
    for position, b in batches:
        if b.max_timestamp > largest.timestamp:
            largest = TimeEntry(b.max_timestamp, b.last_offset)
        if since > interval:
            offsets.append(OffsetEntry(b.last_offset, position))
            with_last(times, largest)
            since = 0
        since += b.size
    return Indexed(tuple(offsets), tuple(times), largest, since)


@states("SEG-10")
def with_last(times: list[TimeEntry], largest: TimeEntry) -> list[TimeEntry]:
    """The largest timestamp as the last entry, unless it is that already."""
    if largest.timestamp > (times[-1].timestamp if times else NO_TIMESTAMP):
        times.append(largest)
    return times


@states("SEG-11")
def place(state: Segment, offset: int, from_position: int = 0) -> Placed | None:
    """The first batch at or beyond a position whose last offset is at or above this one; None if there is none."""
    return next((p for p in state.placed if p.position >= from_position and p.batch.last_offset >= offset), None)


@states("SEG-18")
def transactions(batches: Iterable[Batch], before: Iterable[tuple[int, int]]) -> tuple[Aborted, ...]:
    """The aborted ones, in the order of their markers, if those before were open."""
    running = dict(before)
    out = []
    for b in batches:
        if b.kind == "transactional":
            running.setdefault(b.producer_id, b.base_offset)
        elif b.control and b.producer_id in running:
            first = running.pop(b.producer_id)
            stable = min(running.values(), default=b.last_offset + 1)
            if b.kind == "abort":
                out.append(Aborted(b.producer_id, first, b.last_offset, stable))
    return tuple(out)


@states("SEG-19")
def epochs(batches: Iterable[Batch]) -> list[tuple[int, int]]:
    """What recovery assigns to leader epochs of which there was none before: each epoch and its first offset."""
    out: list[tuple[int, int]] = []
    for b in batches:
        if b.leader_epoch >= 0 and (not out or b.leader_epoch > out[-1][0]):
            out.append((b.leader_epoch, b.base_offset))
    return out


@states("SEG-17")
def whole(state: Segment) -> tuple[Batch, ...]:
    """The batches before the first that is damaged."""
    return tuple(itertools.takewhile(lambda b: not b.damaged, state.batches))


@states("SEG-25")
def sound(state: Segment) -> bool:
    """Whether the entries of both indexes say the truth about the batches."""
    places = {p.position: p.batch for p in state.placed}
    first: dict[int, int] = {}
    highest = NO_TIMESTAMP
    for b in state.batches:
        if b.max_timestamp > highest:
            highest = b.max_timestamp
            first[highest] = b.last_offset
    return all(e.position in places and places[e.position].last_offset == e.offset for e in state.offsets) and all(
        first.get(t.timestamp) == t.offset for t in state.times
    )


def ascending(batches: Sequence[Batch]) -> bool:
    return all(x.last_offset < y.base_offset for x, y in itertools.pairwise(batches))


def room(state: Segment, batches: Sequence[Batch]) -> bool:
    """Whether the indexes are not full where an append has entries: the segment would have been rolled otherwise. The
    time index is asked even if it gets none."""
    for n in range(len(batches)):
        before = Indexed((), (), state.largest, state.since)
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


@states("SEG-10")
def inactive(state: Segment) -> Segment:
    """With its last time entry, and trimmed."""
    times = tuple(with_last(list(state.times), state.largest))
    return replace(state, times=times, offset_slots=len(state.offsets), time_slots=len(times))


@states("SEG-8")
def resized(state: Segment) -> Segment:
    """With index files of full size."""
    offset_slots, time_slots = state.full_slots
    return replace(state, offset_slots=offset_slots, time_slots=time_slots)


def initial(
    base_offset: int = 0,
    index_interval_bytes: int = 200,
    max_index_bytes: int = 120,
    roll_jitter_ms: int = 0,
    open_transactions: Sequence[Sequence[int]] = (),
    now: int = 1_000_000,
) -> Segment:
    """A new segment. UserError unless its numbers are 0 or more and an index file has room for an entry."""
    if min(base_offset, index_interval_bytes, roll_jitter_ms) < 0 or max_index_bytes < TIME_ENTRY:
        raise UserError(f"a segment's numbers are 0 or more, its index files of {TIME_ENTRY} bytes or more")
    slots = max_index_bytes // OFFSET_ENTRY, max_index_bytes // TIME_ENTRY
    before = tuple((p, o) for p, o in open_transactions)
    largest = TimeEntry(NO_TIMESTAMP, base_offset)
    return Segment(
        base_offset, index_interval_bytes, max_index_bytes, roll_jitter_ms, before, now, now, largest, *slots
    )


class Observation(TypedDict, total=False):
    """A segment and its indexes."""

    size: int
    """bytes"""
    offsetIndex: list[list[int]]
    """[offset, position]"""
    timeIndex: list[list[int]]
    """[timestamp, offset]"""
    offsetSlots: int | None
    timeSlots: int | None
    abortedTxns: list[list[int]]
    """producer id, first offset, last offset, last stable offset"""
    largestRecordTimestamp: int | None
    suffix: str
    """of the names of its files"""


def observe(state: Segment) -> Observation:
    """What the recordings show of a segment."""
    return cast(
        Observation,
        Fields(
            size=state.size,
            offsetIndex=[list(e) for e in state.offsets],
            timeIndex=[list(e) for e in state.times],
            offsetSlots=state.offset_slots if state.index_files else None,
            timeSlots=state.time_slots if state.index_files else None,
            abortedTxns=[list(e) for e in state.aborted],
            largestRecordTimestamp=None if state.largest.timestamp < 0 else state.largest.timestamp,
            suffix=state.suffix,
        ),
    )


machine: Machine[Segment] = Machine("segment", initial, observe)


# ---- conditions that several operations share ------------------------------------------------------------------------
def nothing_changes(state: Segment, result: Step[Segment]) -> bool:
    return result.state == state


def a_refusal_changes_nothing(state: Segment, result: Step[Segment]) -> bool:
    return not isinstance(result.result, Refused) or result.state == state


def indexes_are_true(state: Segment, result: Step[Segment]) -> bool:
    """They stay so; they may have been wrong before, after a crash."""
    return sound(result.state) or not sound(state)


def largest_is_true(state: Segment) -> bool:
    best = max((b.max_timestamp for b in state.batches), default=NO_TIMESTAMP)
    return state.largest.timestamp == max(best, NO_TIMESTAMP)


def trimmed(state: Segment) -> bool:
    return (state.offset_slots, state.time_slots) == (len(state.offsets), len(state.times))


@states("SEG-16")
def as_if_appended(state: Segment) -> Indexed:
    """What appending its batches to an empty segment gives."""
    nothing = Indexed((), (), TimeEntry(NO_TIMESTAMP, state.base_offset), 0)
    return indexed(state.placed, state.index_interval_bytes, nothing)


def on_disk(state: Segment) -> tuple[Any, ...]:
    """What a restart finds."""
    return state.batches, state.rest, state.offsets, state.times, state.aborted


# ---- the operations: writing -----------------------------------------------------------------------------------------
@machine.operation("append", SEG_2, SEG_3, SEG_4, SEG_5)
@icontract.require(lambda batches: len(given(batches)) == len(batches) > 0, "SEG-2 batches are appended")
@icontract.require(
    lambda state, batches: ascending((*state.batches[-1:], *given(batches))),
    "SEG-2 offsets rise from batch to batch",
)
@icontract.require(
    lambda state, batches: (
        not given(batches)
        or given(batches)[0].base_offset >= state.base_offset
        or not state.fits(given(batches)[-1].last_offset)
    ),
    "SEG-27 no batch begins below the base offset",
)
@icontract.require(
    lambda state, batches: state.size + sum(b.size for b in given(batches)) <= INT_MAX,
    "SEG-28 a file has at most 2^31 - 1 bytes",
)
@icontract.require(lambda state: state.rest == 0 and sound(state), "SEG-24 what a crash left was recovered")
@icontract.require(lambda state: state.index_files, "SEG-21 index files are there")
@icontract.require(
    lambda state, batches: room(state, given(batches)), "SEG-8 the segment is rolled before an index is full"
)
@icontract.ensure(lambda state, result: a_refusal_changes_nothing(state, result), "SEG-3 refused: nothing is written")
@icontract.ensure(
    lambda state, batches, result: (
        isinstance(result.result, Refused) == (not state.fits(batches_of(batches)[-1].last_offset))
    ),
    "SEG-3 refused just if the largest offset is out of reach",
)
@icontract.ensure(
    lambda state, batches, result: (
        isinstance(result.result, Refused) or result.state.batches == state.batches + batches_of(batches)
    ),
    "SEG-2 at the end, in order",
)
@icontract.ensure(
    lambda state, result: (
        result.state.offsets[: len(state.offsets)] == state.offsets
        and result.state.times[: len(state.times)] == state.times
    ),
    "SEG-4 entries stay",
)
@icontract.ensure(
    lambda state, result: all(
        later.position - earlier.position > state.index_interval_bytes
        for earlier, later in itertools.pairwise(result.state.offsets[max(0, len(state.offsets) - 1) :])
    ),
    "SEG-4 entries lie more than index.interval.bytes apart",
)
@icontract.ensure(lambda state, result: indexes_are_true(state, result), "SEG-5 entries say the truth")
@icontract.ensure(
    lambda state, result: not largest_is_true(state) or largest_is_true(result.state),
    "SEG-5 the largest timestamp so far",
)
def append(state: Segment, batches: Sequence[BatchToAppend]) -> Step[Segment, None]:
    """Batches, one behind the other."""
    new = batches_of(batches)
    if not state.fits(new[-1].last_offset):
        return Step(state, Refused(SEG_3, OVERFLOW))
    every = replace(state, batches=state.batches + new)
    before = Indexed(state.offsets, state.times, state.largest, state.since)
    after = indexed(every.placed[len(state.batches) :], state.index_interval_bytes, before)
    return Step(replace(every, **after._asdict()))


@machine.operation("updateTxnIndex", SEG_18)
@icontract.require(
    lambda state, last_offset: all(e.last_offset < last_offset for e in state.aborted), "TXI-3 last offsets rise"
)
@icontract.ensure(
    lambda state, aborted, result: len(result.state.aborted) == len(state.aborted) + aborted,
    "SEG-18 aborted transactions alone have entries",
)
def update_txn_index(
    state: Segment, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int, aborted: bool
) -> Step[Segment, None]:
    """A transaction was completed by a marker in this segment."""
    entry = Aborted(producer_id, first_offset, last_offset, last_stable_offset)
    return Step(replace(state, aborted=(*state.aborted, entry)) if aborted else state)


@machine.operation("onBecomeInactiveSegment", SEG_10)
@icontract.require(lambda state: state.index_files, "SEG-21 index files are there")
@icontract.require(lambda state: slot_left(state), "SEG-8 a slot is left for the last entry")
@icontract.ensure(lambda result: trimmed(result.state), "SEG-10 trimmed")
@icontract.ensure(
    lambda state, result: result.state.last_time.timestamp == max(state.largest.timestamp, state.last_time.timestamp),
    "SEG-10 the last entry is the largest timestamp",
)
@icontract.ensure(lambda state, result: indexes_are_true(state, result), "SEG-10 entries say the truth")
def on_become_inactive_segment(state: Segment) -> Step[Segment, None]:
    """The segment is rolled."""
    return Step(inactive(state))


@machine.operation("flush", SEG_23)
@icontract.require(lambda state: state.index_files, "SEG-21 index files are there")
@icontract.ensure(lambda state, result: nothing_changes(state, result), "SEG-23 nothing to be seen")
def flush(state: Segment) -> Step[Segment, None]:
    """Have all files outlive a crash."""
    return Step(state)


@machine.operation("truncateTo", SEG_15)
@icontract.require(lambda state: sound(state) and state.index_files, "SEG-24 what a crash left was recovered")
@icontract.ensure(lambda offset, result: all(b.last_offset < offset for b in result.state.batches), "SEG-15 cut")
@icontract.ensure(
    lambda state, result: result.state.batches == state.batches[: len(result.state.batches)], "SEG-15 a prefix is left"
)
@icontract.ensure(
    lambda state, offset, result: all(b.last_offset >= offset for b in state.batches[len(result.state.batches) :][:1]),
    "SEG-15 no batch goes that ends below",
)
@icontract.ensure(
    lambda state, result: (result.state.offset_slots, result.state.time_slots) == state.full_slots,
    "SEG-15 index files have their full size",
)
@icontract.ensure(lambda state, result: indexes_are_true(state, result), "SEG-15 entries say the truth")
@icontract.ensure(
    lambda state, result: not largest_is_true(state) or largest_is_true(result.state), "SEG-15 the largest timestamp"
)
@icontract.ensure(lambda state, result: result.result == state.size - result.state.size, "SEG-15 answers the bytes cut")
def truncate_to(state: Segment, offset: int) -> Step[Segment, int]:
    """Drop everything from an offset on."""
    at = place(state, offset)
    keep = state.batches if at is None else tuple(p.batch for p in state.placed if p.position < at.position)
    offset_slots, time_slots = state.full_slots
    after = replace(
        state,
        batches=keep,
        rest=state.rest if at is None else 0,
        offsets=tuple(e for e in state.offsets if e.offset < offset),
        times=tuple(e for e in state.times if e.offset < offset),
        aborted=tuple(itertools.takewhile(lambda e: e.last_offset < offset, state.aborted)),
        offset_slots=offset_slots,
        time_slots=time_slots,
        since=0,
    )
    if after.size == 0:
        after = replace(after, created=state.now, rolling_timestamp=None)
    if state.largest.timestamp >= 0:
        after = replace(after, largest=largest_of(after))
    return Step(after, state.size - after.size)


@states("SEG-15")
def largest_of(state: Segment) -> TimeEntry:
    """The largest timestamp, with the last offset of the first batch that has it, as far as the indexes know where to
    begin to look: at the last time entry's batch."""
    known = state.last_time
    begin = max((e.position for e in state.offsets if e.offset <= known.offset), default=0)
    best = known
    for position, b in state.placed:
        if position >= begin and b.max_timestamp > best.timestamp:
            best = TimeEntry(b.max_timestamp, b.last_offset)
    return best


@states("SEG-16", "SEG-17", "SEG-18")
def recovered(state: Segment) -> Segment:
    """The segment after recovery."""
    kept = replace(state, batches=whole(state), rest=0)
    made = as_if_appended(kept)
    times = tuple(with_last(list(made.times), made.largest))
    return replace(
        kept,
        offsets=made.offsets,
        times=times,
        largest=made.largest,
        offset_slots=len(made.offsets),
        time_slots=len(times),
        aborted=transactions(kept.batches, state.open_before),
    )


class Recovered(TypedDict):
    """What a recovery found."""

    truncated: int
    """bytes cut"""
    epochs: list[list[int]]
    """leader epoch, and the offset at which it begins"""


@machine.operation("recover", SEG_16, SEG_17, SEG_18, SEG_19, SEG_20, SEG_24, SEG_25, SEG_26)
@icontract.require(lambda state: state.index_files, "SEG-21 index files are there")
@icontract.require(lambda state: recovery_fits(state), "SEG-8 the indexes have room for what is in the segment")
@icontract.ensure(
    lambda state, result: result.state.batches == whole(state) and result.state.rest == 0,
    "SEG-24 what was appended, up to the first batch that is not whole",
)
@icontract.ensure(lambda result: sound(result.state) and largest_is_true(result.state), "SEG-25 entries say the truth")
@icontract.ensure(
    lambda result: result.state.offsets == as_if_appended(result.state).offsets, "SEG-16 as appending makes them"
)
@icontract.ensure(
    lambda active, result: (
        result.state.last_time.timestamp == result.state.largest.timestamp and (active or trimmed(result.state))
    ),
    "SEG-16 with the last time entry, and trimmed",
)
@icontract.ensure(
    lambda state, result: result.result["truncated"] == state.size - result.state.size, "SEG-17 bytes cut"
)
@icontract.ensure(
    lambda state, result: (
        [e.last_offset for e in result.state.aborted]
        == [b.last_offset for b in whole(state) if b.kind == "abort" and was_open(state, b)]
    ),
    "SEG-26 an entry for every abort marker that ends a transaction",
)
@icontract.ensure(lambda result: on_disk(recovered(result.state)) == on_disk(result.state), "SEG-20 once is enough")
def recover(state: Segment, active: bool = False) -> Step[Segment, Recovered]:
    """Make everything again from the batches; answers the bytes cut, and the leader epochs found. The active segment's
    index files get their full size then."""
    after = recovered(state)
    found = [list(e) for e in epochs(after.batches)]
    answer: Recovered = {"truncated": state.size - after.size, "epochs": found}
    return Step(resized(after) if active else after, answer)


def recovery_fits(state: Segment) -> bool:
    """Whether recovery finds its indexes full nowhere."""
    nothing = resized(replace(state, batches=(), offsets=(), times=(), since=0))
    return room(replace(nothing, largest=TimeEntry(NO_TIMESTAMP, state.base_offset)), whole(state))


def was_open(state: Segment, marker: Batch) -> bool:
    """Whether the marker's producer has a transaction open before it."""
    last = None
    for b in state.batches:
        if b.last_offset < marker.last_offset and b.producer_id == marker.producer_id and b.kind != "data":
            last = b
    return marker.producer_id in dict(state.open_before) if last is None else last.kind == "transactional"


@machine.operation("sanityCheck", SEG_21)
@icontract.require(
    lambda state, time_index_file_newly_created: not (time_index_file_newly_created and state.times),
    "SEG-21 a new file has no entries",
)
@icontract.ensure(lambda state, result: a_refusal_changes_nothing(state, result), "SEG-21 refused: nothing changes")
@icontract.ensure(
    lambda state, result: isinstance(result.result, Refused) == (not state.index_files),
    "SEG-21 an index file is missing",
)
def sanity_check(state: Segment, time_index_file_newly_created: bool) -> Step[Segment, None]:
    """What opening a log asks of each segment."""
    if not state.index_files:
        return Step(state, Refused(SEG_21, NO_SUCH_FILE))
    if time_index_file_newly_created:
        return Step(replace(state, time_slots=0))
    return Step(state)


@machine.operation("resizeIndexes", SEG_8)
@icontract.ensure(
    lambda state, result: (result.state.offset_slots, result.state.time_slots) == state.full_slots, "SEG-8 full size"
)
@icontract.require(lambda state: state.index_files, "SEG-21 index files are there")
def resize_indexes(state: Segment) -> Step[Segment, None]:
    """The last segment of a log that was loaded becomes the active one."""
    return Step(resized(state))


@machine.operation("reopen", SEG_10, SEG_22, SEG_4, kind="restart")
@icontract.require(lambda state: state.index_files, "SEG-21 index files are there")
@icontract.require(lambda state: slot_left(state), "SEG-8 a slot is left for the last entry")
@icontract.ensure(lambda active, result: active or trimmed(result.state), "SEG-10 trimmed")
@icontract.ensure(
    lambda state, result: (
        result.state.largest
        == (state.largest if state.largest.timestamp >= state.last_time.timestamp else state.last_time)
    ),
    "SEG-22 the largest timestamp comes back",
)
def reopen(state: Segment, active: bool = False) -> Step[Segment, None]:
    """Close the segment, and open it again. The active one's index files get their full size then."""
    closed = inactive(state)
    after = replace(closed, largest=closed.last_time, since=0, rolling_timestamp=None, created=state.now)
    return Step(resized(after) if active else after)


@machine.operation("crash", SEG_17, SEG_24, kind="crash")
@icontract.require(lambda state, keep_indexes: state.index_files or not keep_indexes, "SEG-21 index files are there")
@icontract.require(lambda lost_bytes: lost_bytes >= 0, "SEG-24 nothing comes by a crash")
@icontract.ensure(
    lambda state, lost_bytes, result: result.state.size == max(0, state.size - lost_bytes), "SEG-24 bytes lost"
)
@icontract.ensure(
    lambda state, result: result.state.batches == state.batches[: len(result.state.batches)], "SEG-24 from the end"
)
def crash(state: Segment, lost_bytes: int, keep_indexes: bool) -> Step[Segment, None]:
    """The end of the .log is lost; the index files are as they were, or gone. The segment is opened again, and the time
    index's last entry may say more than is there."""
    size = max(0, state.size - lost_bytes)
    kept = tuple(p.batch for p in state.placed if p.position + p.batch.size <= size)
    after = replace(
        state,
        batches=kept,
        rest=size - sum(b.size for b in kept),
        since=0,
        rolling_timestamp=None,
        created=state.now,
        offset_slots=len(state.offsets),
        time_slots=len(state.times),
        largest=state.last_time,
    )
    if not keep_indexes:
        after = replace(
            after, offsets=(), times=(), index_files=False, largest=TimeEntry(NO_TIMESTAMP, state.base_offset)
        )
    return Step(after)


@machine.operation("damage", SEG_17, kind="damage")
@icontract.require(lambda state, batch: 0 <= batch < len(state.batches), "SEG-17 there is such a batch")
@icontract.ensure(lambda state, result: result.state.size == state.size, "SEG-17 as long as before")
def damage(state: Segment, batch: int) -> Step[Segment, None]:
    """The last byte of a batch is changed on the disk."""
    batches = list(state.batches)
    batches[batch] = replace(batches[batch], damaged=not batches[batch].damaged)
    return Step(replace(state, batches=tuple(batches)))


@machine.operation("createIndexes", SEG_21)
@icontract.require(lambda state: not state.index_files, "SEG-21 an index file is missing")
@icontract.ensure(lambda result: result.state.index_files and not result.state.offsets, "SEG-21 files without entries")
def create_indexes(state: Segment) -> Step[Segment, None]:
    """Index files are made, of full size, when an index is first asked for."""
    offset_slots, time_slots = state.full_slots
    return Step(replace(state, index_files=True, offset_slots=offset_slots, time_slots=time_slots))


@machine.operation("changeFileSuffixes", SEG_1)
@icontract.require(lambda state, old: state.suffix.endswith(old), "SEG-1 the files have the old suffix")
@icontract.require(lambda old, new: old != new, "SEG-1 another suffix")
@icontract.require(lambda state: state.index_files, "SEG-21 index files are there")
@icontract.ensure(lambda new, result: result.state.suffix.endswith(new), "SEG-1 the new suffix stands for the old one")
def change_file_suffixes(state: Segment, old: str, new: str) -> Step[Segment, None]:
    """Rename the files."""
    return Step(replace(state, suffix=state.suffix.removesuffix(old) + new))


@machine.operation("advance", SEG_7, kind="time")
@icontract.require(lambda ms: ms >= 0, "SEG-7 not back")
@icontract.ensure(lambda state, ms, result: result.state.now == state.now + ms, "SEG-7 later")
def advance(state: Segment, ms: int) -> Step[Segment, None]:
    """Time passes."""
    return Step(replace(state, now=state.now + ms))


# ---- the operations: questions ---------------------------------------------------------------------------------------
@machine.operation("shouldRoll", SEG_6, SEG_7, SEG_8, SEG_9)
@icontract.require(lambda state: state.index_files, "SEG-21 index files are there")
@icontract.ensure(
    lambda state, result: replace(result.state, rolling_timestamp=None) == replace(state, rolling_timestamp=None),
    "SEG-7 nothing changes but that the first timestamp is remembered",
)
@icontract.ensure(
    lambda state, max_segment_bytes, messages_size, result: (
        state.size + messages_size <= max_segment_bytes or result.result
    ),
    "SEG-6 what does not fit is not appended",
)
@icontract.ensure(
    lambda state, max_offset_in_messages, result: state.fits(max_offset_in_messages) or result.result,
    "SEG-9 what is out of reach is not appended",
)
@icontract.ensure(lambda state, result: not state.index_full or result.result, "SEG-8 a full index")
def should_roll(
    state: Segment,
    max_segment_ms: int,
    max_segment_bytes: int,
    max_timestamp_in_messages: int,
    max_offset_in_messages: int,
    messages_size: int,
) -> Step[Segment, bool]:
    """Whether a new segment is needed for messages of this size, largest timestamp and largest offset."""
    first = state.rolling_timestamp
    if first is None and state.batches:
        first = state.batches[0].max_timestamp
    known = first is not None and first >= 0
    waited = max_timestamp_in_messages - (first or 0) if known else state.now - state.created
    roll = (
        state.size > max_segment_bytes - messages_size
        or (state.size > 0 and waited > max_segment_ms - state.roll_jitter_ms)
        or state.index_full
        or not state.fits(max_offset_in_messages)
    )
    return Step(replace(state, rolling_timestamp=first), roll)


class FoundBatch(TypedDict):
    """A batch: base offset, position and size in bytes."""

    offset: int
    position: int
    size: int


@machine.operation("translateOffset", SEG_11)
@icontract.require(
    lambda state, starting_file_position: (
        starting_file_position in (0, state.size) or any(p.position == starting_file_position for p in state.placed)
    ),
    "SEG-11 the starting position is a batch's, or the end",
)
@icontract.require(lambda state: sound(state) and state.index_files, "SEG-24 what a crash left was recovered")
@icontract.ensure(lambda state, result: nothing_changes(state, result), "SEG-11 a question changes nothing")
@icontract.ensure(
    lambda state, offset, result: (
        result.result is not None or all(b.last_offset < offset for b in state.batches) or result.state is state
    ),
    "SEG-11 none only where all end below",
)
def translate_offset(state: Segment, offset: int, starting_file_position: int = 0) -> Step[Segment, FoundBatch | None]:
    """Where the batch with an offset is: its base offset, position and size. The starting position is a batch's."""
    at = place(state, offset, starting_file_position)
    return Step(state, None if at is None else _shown_place(at))


def _shown_place(at: Placed) -> FoundBatch:
    return {"offset": at.batch.base_offset, "position": at.position, "size": at.batch.size}


class FoundBytes(TypedDict):
    """What a read gives: the base offset and the position of its first batch, and how many bytes."""

    offset: int
    position: int
    bytes: int
    firstEntryIncomplete: bool


@machine.operation("read", SEG_12)
@icontract.require(lambda state: sound(state) and state.index_files, "SEG-24 what a crash left was recovered")
@icontract.ensure(lambda state, result: nothing_changes(state, result), "SEG-12 a question changes nothing")
@icontract.ensure(
    lambda max_size, min_one_message, result: (
        min_one_message or not isinstance(result.result, dict) or result.result["bytes"] <= max_size
    ),
    "SEG-12 at most so many bytes",
)
@icontract.ensure(
    lambda state, result: (
        not isinstance(result.result, dict) or result.result["position"] + result.result["bytes"] <= state.size
    ),
    "SEG-12 not beyond the end",
)
def read(
    state: Segment, start_offset: int, max_size: int, max_position: int | None, min_one_message: bool
) -> Step[Segment, FoundBytes | None]:
    """Bytes from the batch with an offset on; None where there is none."""
    if max_size < 0:
        return Step(state, Refused(SEG_12, ILLEGAL_ARGUMENT))
    at = place(state, start_offset)
    if at is None:
        return Step(state, None)
    most = max(max_size, at.batch.size) if min_one_message else max_size
    answer: FoundBytes = {
        "offset": at.batch.base_offset,
        "position": at.position,
        "bytes": 0,
        "firstEntryIncomplete": False,
    }
    if most == 0 or max_position is None:
        return Step(state, answer)
    if max_position < at.position:
        return Step(state, Refused(SEG_12, ILLEGAL_ARGUMENT))
    size = min(max_position - at.position, most, state.size - at.position)
    return Step(state, {**answer, "bytes": size, "firstEntryIncomplete": most < at.batch.size})


class FoundRecord(TypedDict):
    """A record."""

    timestamp: int
    offset: int
    leaderEpoch: int | None


@machine.operation("findOffsetByTimestamp", SEG_13)
@icontract.require(lambda state: sound(state) and state.index_files, "SEG-24 what a crash left was recovered")
@icontract.require(lambda state: not any(b.damaged for b in state.batches), "SEG-17 no batch is damaged")
@icontract.ensure(lambda state, result: nothing_changes(state, result), "SEG-13 a question changes nothing")
@icontract.ensure(
    lambda state, timestamp_ms, starting_offset, result: all(
        r.timestamp < timestamp_ms or r.offset < starting_offset or r.offset >= result.result["offset"]
        for b in state.batches
        for r in b.records
        if result.result is not None
    ),
    "SEG-13 the first in the file",
)
def find_offset_by_timestamp(
    state: Segment, timestamp_ms: int, starting_offset: int
) -> Step[Segment, FoundRecord | None]:
    """The first record at or after a timestamp: its offset, timestamp and leader epoch."""
    for b in state.batches:
        for r in b.records:
            if r.timestamp >= timestamp_ms and r.offset >= starting_offset:
                epoch = b.leader_epoch if b.leader_epoch >= 0 else None
                return Step(state, {"timestamp": r.timestamp, "offset": r.offset, "leaderEpoch": epoch})
    return Step(state, None)


@machine.operation("readNextOffset", SEG_14)
@icontract.require(lambda state: sound(state) and state.index_files, "SEG-24 what a crash left was recovered")
@icontract.ensure(lambda state, result: nothing_changes(state, result), "SEG-14 a question changes nothing")
@icontract.ensure(
    lambda state, result: (
        all(b.last_offset < result.result for b in state.batches) and result.result >= state.base_offset
    ),
    "SEG-14 above all",
)
def read_next_offset(state: Segment) -> Step[Segment, int]:
    """The offset that the next record gets."""
    return Step(state, state.next_offset)


@machine.operation("names", SEG_1)
@icontract.ensure(lambda result: all(len(n.split(".")[0]) == 20 for n in result.result), "SEG-1 20 digits")
def names(state: Segment) -> Step[Segment, list[str]]:
    """The names of the segment's files."""
    ends = ["log", *(("index", "timeindex") if state.index_files else ()), *(("txnindex",) if state.aborted else ())]
    return Step(state, [f"{state.base_offset:020}.{end}{state.suffix}" for end in ends])


def _open_now(state: Segment) -> dict[int, int]:
    """Producer ids with an open transaction, and its first offset."""
    running = dict(state.open_before)
    for b in state.batches:
        if b.kind == "transactional":
            running.setdefault(b.producer_id, b.base_offset)
        elif b.control:
            running.pop(b.producer_id, None)
    return running
