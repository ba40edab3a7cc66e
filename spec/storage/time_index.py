"""The time index of a segment: from the largest timestamps so far to the offsets that have them.

An entry (T, O) says that T is the largest timestamp in the segment up to offset O. A reader that wants the first
record of a time or later looks up the greatest timestamp that is not above it, and reads the log from that entry's
offset on. The last entry of a closed segment is its largest timestamp: retention by time and the choice of the
segment in which a time is looked for go by it.

Source: Kafka Internals, ch. 03, "Data structures: the index files"; KIP-33; TimeIndex, AbstractIndex, LogSegment and
LogLoader, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from struct import Struct
from typing import Annotated, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import A_FORMAT, A_QUESTION, AT_REST, ONE_CALL, clause, states
from kafkaspec.contract.codec import partial
from kafkaspec.contract.governs import governs, reveals
from kafkaspec.contract.machine import Machine, Refused, Step, without_state
from kafkaspec.contract.numbers import Count, Int64, Offset, Timestamp, Within
from kafkaspec.spec.common import mapped_index as mapped
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, ILLEGAL_STATE, NO_TIMESTAMP
from kafkaspec.spec.common.mapped_index import (
    BUFFER_OVERFLOW,
    CORRUPT,
    INVALID_OFFSET,
    OVERFLOW,
    READ_ONLY,
    Index,
    IndexSize,
    needs_open,
)
from kafkaspec.spec.common.remembered import remembered

PREFIX = "TIX"
TITLE = "Time index"

FILES, WRITING, ABSTRACT = mapped.FILES, mapped.WRITING, mapped.ABSTRACT
TIME_INDEX = "TimeIndex, Kafka 4.3.0"

SEARCHED_ALIKE = {
    "model": "the search is OIX's, and its model is there",
    "proof": "the search is OIX's, and its proof is there",
}

clause(
    "TIX-16",
    """A segment that lacks its time index alone gets an empty one when the log is loaded; its largest timestamp is then
    the time at which the .log file was modified last. Kafka Internals says that a lost index is made again: that is so
    of the offset index, and of the time index in a segment that is recovered. A directory in its place is taken for
    the index (LDR-18).""",
    source="LogLoader.loadSegmentFiles, LogSegment.sanityCheck and largestTimestamp, Kafka 4.3.0",
    without=A_QUESTION
    | {
        "spec": "of the index alone there is nothing left to say",
        "impl": "of the index alone there is nothing left to say: making an empty one is the segment's (SEG-21)",
        "mutant": "a missing file",
    },
)

OFFSET_BELOW = Refused("TIX-2", INVALID_OFFSET)
TIME_BELOW = Refused("TIX-2", ILLEGAL_STATE)
FULL = Refused("TIX-4", ILLEGAL_ARGUMENT)
OVERFULL = Refused("TIX-4", BUFFER_OVERFLOW)
TOO_FAR = Refused("TIX-5", OVERFLOW)
NO_SLOT = Refused("TIX-9", ILLEGAL_ARGUMENT)
TOO_SHORT = Refused("TIX-9", ILLEGAL_ARGUMENT)
NOT_WRITABLE = Refused("TIX-9", READ_ONLY)
NOT_SANE = Refused("TIX-10", CORRUPT)
NO_SUCH_ENTRY = Refused("TIX-11", ILLEGAL_ARGUMENT)

LAYOUT = Struct(">qi")
BASE = mapped.BASE
MAX_SIZE = 65
"""Bytes: five slots, and no whole number of them."""
UsedSize = Annotated[int, Within(LAYOUT.size, 2**15)]
"""Bytes: of at least one slot."""
Filling = Annotated[int, Within(1, 4096)]
"""How many slots: no more than is easily compared."""


# ---- the state -------------------------------------------------------------------------------------------------------
class Entry(NamedTuple):
    """A timestamp, ms, and an offset."""

    timestamp: Annotated[Int64, governs("TIX-1")]
    offset: Annotated[Int64, governs("TIX-1")]


@states(without=A_FORMAT)
def entries(index: Index) -> list[Entry]:
    """Those in use.

    TIX-1: The file is slots of 12 bytes, one after the other: a timestamp, 8 bytes, and an offset less the segment's
    base offset, 4 bytes, both signed and big-endian. Entries fill it from the start; nothing in it says how many there
    are. [{FILES}; {TIME_INDEX}]
    """
    return entries_of(index.used, index.base_offset)


@remembered
def entries_of(used: tuple[mapped.Cell, ...], base_offset: int) -> list[Entry]:
    return entries_that_mean(used, base_offset)


@lru_cache(maxsize=32)
def entries_that_mean(used: tuple[mapped.Cell, ...], base_offset: int) -> list[Entry]:
    """A walk comes to the same long files again and again."""
    return [Entry(timestamp, base_offset + relative) for timestamp, relative in used]


@states("TIX-2")
def rising(state: Index) -> bool:
    """Whether timestamps rise and offsets never fall from entry to entry: what a search relies on."""
    return cells_rise(state.used)


@remembered
def cells_rise(used: tuple[mapped.Cell, ...]) -> bool:
    return all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(used))


def initial(base_offset: Offset = BASE, max_index_size: UsedSize = MAX_SIZE) -> Index:
    """A new index. `max_index_size` bytes, at least a slot."""
    return Index(base_offset, max_index_size, slots=max_index_size // LAYOUT.size, is_open=True)


def last_entry(index: Index) -> Entry:
    """No timestamp at the base offset, without any."""
    return entries(index)[-1] if index.used else Entry(NO_TIMESTAMP, index.base_offset)


@states(without=ONE_CALL)
def is_full(index: Index) -> bool:
    """Whether at most one slot is left.

    TIX-4: The index is full when only one slot is left: to append to it is then refused, even what would change
    nothing. That last slot is for the entry with the largest timestamp that is made when the segment is closed or
    rolled, to which the check does not apply. When that slot is in use too, an entry that is made anyway is refused.
    [{FILES}; {TIME_INDEX}; LogSegment.onBecomeInactiveSegment, Kafka 4.3.0]
    """
    return len(index.used) >= index.slots - 1


@partial
@dataclass(frozen=True)
class Observation:
    """The index; of a closed one the file alone."""

    open: Annotated[bool, governs("TIX-9")]
    file_length: Annotated[int, governs("TIX-9")]
    """bytes"""
    file: Annotated[str | None, governs("TIX-1", "TIX-8", "TIX-9")] = None
    """hexadecimal, of a file of at most 256 bytes; null of a longer one"""
    entries: Annotated[list[Entry] | None, governs("TIX-3", "TIX-8", "TIX-2", "TIX-9")] = None
    max_entries: Annotated[int | None, governs("TIX-9")] = None
    length: Annotated[int | None, governs("TIX-9")] = None
    """bytes"""
    is_full: Annotated[bool | None, governs("TIX-4")] = None
    last_entry: Annotated[Entry | None, governs("TIX-3", "TIX-2", "TIX-8", "TIX-9")] = None


def observe(index: Index) -> Observation:
    length, file = mapped.size(index, LAYOUT), mapped.shown(index, LAYOUT)
    if not index.is_open:
        return Observation(False, length, file)
    return Observation(True, length, file, entries(index), index.slots, length, is_full(index), last_entry(index))


machine = Machine("time_index", initial, observe)


def needs_order(id: str) -> require:
    """What the clause of that id says relies on the order of the entries."""
    return require(rising, f"{id} entries rise")


# ---- appends ---------------------------------------------------------------------------------------------------------
@machine.operation("maybeAppend", "TIX-4")
@states(without=ONE_CALL)
@needs_open("TIX-3")
@require(lambda state: not state.odd, "TIX-9 the file is a whole number of slots")
@ensure(
    lambda state, result: isinstance(result, Refused) or not rising(state) or rising(result),
    "TIX-2 entries that rise still do",
)
@ensure(
    lambda state, timestamp, offset, result: (
        isinstance(result, Refused)
        or (
            result == state
            if timestamp <= last_entry(state).timestamp
            else entries(result) == [*entries(state), Entry(timestamp, offset)]
        )
    ),
    "TIX-3 one entry after the others if the time is later, else nothing",
)
@ensure(
    lambda state, skip_full_check, result: (
        skip_full_check or isinstance(result, Refused) or result.used == state.used or len(result.used) < state.slots
    ),
    "TIX-4 the last slot is kept",
)
def maybe_append(state: Index, timestamp: Int64, offset: Offset, skip_full_check: bool) -> Index | Refused:
    """The largest timestamp so far, and the offset that has it.

    TIX-2: Timestamps rise strictly from entry to entry, and offsets never fall. To append an offset below the last
    entry's, or a timestamp below the last entry's, is refused. [{FILES}; {TIME_INDEX}; KIP-33]

    TIX-3: To append a timestamp that is not above the last entry's (or -1, without entries) changes nothing, and is no
    error where it is the same: a segment that is closed twice offers its last entry twice, and records without
    timestamps leave the index empty. [{TIME_INDEX}]

    TIX-5: An entry whose offset does not fit (OIX-2) is refused, and nothing changes. [{FILES}; {TIME_INDEX};
    {ABSTRACT}]
    """
    last = last_entry(state)
    if is_full(state) and not skip_full_check:
        return FULL
    if state.used and offset < last.offset:
        return OFFSET_BELOW
    if state.used and timestamp < last.timestamp:
        return TIME_BELOW
    if timestamp <= last.timestamp:
        return state
    if not state.writable:
        return NOT_WRITABLE
    if len(state.used) == state.slots:
        return OVERFULL
    if not 0 <= offset - state.base_offset <= mapped.MOST_RELATIVE:
        return TOO_FAR
    return mapped.append(state, (timestamp, offset - state.base_offset))


# ---- lookups ---------------------------------------------------------------------------------------------------------
@machine.question("lookup")
@states(without=SEARCHED_ALIKE)
@needs_open("TIX-6")
@needs_order("TIX-6")
@ensure(
    lambda state, timestamp, result: (
        result
        == max((e for e in entries(state) if e.timestamp <= timestamp), default=(NO_TIMESTAMP, state.base_offset))
    ),
    "TIX-6 the greatest timestamp that is not above the target",
)
def lookup(state: Index, timestamp: Int64) -> Entry:
    """From which offset to read, to find that time.

    TIX-6: A lookup answers the entry of the greatest timestamp that is not above the target. Where there is none, it
    answers no timestamp (-1) and the base offset. [{FILES}; {TIME_INDEX}]
    """
    below = [e for e in entries(state) if e.timestamp <= timestamp]
    return below[-1] if below else Entry(NO_TIMESTAMP, state.base_offset)


@machine.question("pagesTouched")
@states(without=SEARCHED_ALIKE)
@needs_open("TIX-7")
@needs_order("TIX-7")
def pages_touched(state: Index, timestamp: Int64) -> list[int]:
    """The pages of the file that a lookup reads.

    TIX-7: The search is the offset index's (OIX-7 to OIX-9), over timestamps: its warm section is the last 683 entries,
    and a lookup in it touches at most 3 pages. [Kafka Internals, ch. 03, 'AbstractIndex: mmap, the warm-section search,
    and locking'; {ABSTRACT}]
    """
    below = [n for n, e in enumerate(entries(state)) if e.timestamp <= timestamp]
    slots = mapped.probed(len(state.used), LAYOUT, lambda n: state.used[n][0], timestamp)
    return mapped.pages([*slots, *below[-1:]], LAYOUT)


@machine.question("entry")
@states(without=A_QUESTION)
@needs_open("TIX-11")
@require(lambda n: n >= 0, "TIX-11 entries are counted from 0")
def entry(state: Index, n: Count) -> Entry | Refused:
    """The n-th.

    TIX-11: The n-th entry is answered, from 0; to ask for one at or beyond their number is refused. [{TIME_INDEX}]
    """
    return entries(state)[n] if n < len(state.used) else NO_SUCH_ENTRY


# ---- truncation, and the file's length -------------------------------------------------------------------------------
@machine.operation("truncateTo")
@states(without=SEARCHED_ALIKE)
@needs_open("TIX-8")
@needs_order("TIX-8")
@ensure(
    lambda state, offset, result: entries(result) == [e for e in entries(state) if e.offset < offset],
    "TIX-8 what is below the offset stays, and nothing else",
)
@ensure(
    lambda state, result: mapped.content(result, LAYOUT) == mapped.content(state, LAYOUT),
    "TIX-8 the file stays as it is",
)
def truncate_to(state: Index, offset: Offset) -> Index:
    """The log was cut there.

    TIX-8: Truncating to an offset keeps the entries below it, and no other. The slots that are no longer in use keep
    what they hold, and the file its size. Truncating the index leaves no entry. [{TIME_INDEX}]
    """
    return mapped.keep(state, sum(1 for e in entries(state) if e.offset < offset))


@machine.operation("truncate", "TIX-8")
@needs_open("TIX-8")
@ensure(lambda result: result.used == (), "TIX-8 no entry is left")
def truncate(state: Index) -> Index:
    """The log was emptied."""
    return mapped.keep(state, 0)


@states(without=ONE_CALL)
def resized(state: Index, size: int) -> Step[Index, bool]:
    """The index in a file of the whole slots that fit, and whether that changed it; refused if entries do not fit.

    TIX-9: Making a new file, resizing, trimming, closing, resetting and opening are as with the offset index (OIX-13 to
    OIX-19), in slots of 12 bytes. The last entry is read again where the length changed. [{TIME_INDEX}; {ABSTRACT}]
    """
    after = mapped.resized(state, LAYOUT, size)
    return Step(state, TOO_SHORT) if after is None else Step(after, after is not state)


@machine.operation("resize", "TIX-9")
@needs_open("TIX-9")
@require(lambda new_size: new_size >= 0, "TIX-9 a size is not negative")
@ensure(
    lambda state, new_size, result: (
        isinstance(result.result, Refused)
        or (result.state.used == state.used and result.state.slots == new_size // LAYOUT.size)
    ),
    "TIX-9 the entries stay, and the slots are those that fit",
)
def resize(state: Index, new_size: IndexSize) -> Step[Index, bool]:
    """Longer when a segment becomes the last one again, shorter when it no longer is."""
    return resized(state, new_size)


@machine.operation("trimToValidSize", "TIX-9")
@ensure(
    lambda state, result: not state.is_open or (result.slots, result.odd) == (len(state.used), b""),
    "TIX-9 the file is the entries in use",
)
def trim_to_valid_size(state: Index) -> Index:
    """Another segment is the last one now."""
    return resized(state, len(state.used) * LAYOUT.size).state if state.is_open else state


@machine.operation("reset", "TIX-9")
@reveals("TIX-8")
@needs_open("TIX-9")
@ensure(
    lambda state, result: result.used == () and result.slots == state.max_index_size // LAYOUT.size,
    "TIX-9 no entry, and all slots",
)
def reset_index(state: Index) -> Index:
    """The segment is recovered, and its index made again."""
    return resized(mapped.keep(state, 0), state.max_index_size).state


@machine.question("sanityCheck")
@states(without=A_QUESTION)
@needs_open("TIX-10")
def sanity_check(state: Index) -> Refused | None:
    """Whether obvious things are wrong.

    TIX-10: The sanity check fails if there are entries and the last one's timestamp is below the first one's or its
    offset below the base offset, or if the file is no whole number of slots. Opening a log does not call it in 4.3.0.
    [{TIME_INDEX}; LogSegment.sanityCheck, Kafka 4.3.0; KAFKA-19200]
    """
    last = last_entry(state)
    wrong = state.used and (last.timestamp < state.used[0][0] or last.offset < state.base_offset)
    return NOT_SANE if wrong or state.odd else None


@machine.operation("close", "TIX-9")
@ensure(
    lambda state, result: (
        not state.is_open or mapped.content(result, LAYOUT) == b"".join(LAYOUT.pack(*c) for c in state.used)
    ),
    "TIX-1 the file is the entries, one after the other",
)
def close(state: Index) -> Index:
    """The broker stops."""
    return mapped.closed(trim_to_valid_size(state))


@machine.operation("closeHandler", "TIX-9")
def close_handler(state: Index) -> Index:
    """The disk has failed, or the file is to be deleted."""
    return mapped.closed(state)


# ---- opening ---------------------------------------------------------------------------------------------------------
all_entries = ensure(
    lambda result: result.is_open and len(result.used) == result.slots, "TIX-9 every whole slot is an entry"
)


@machine.operation("open", "TIX-9", kind="restart")
@all_entries
def open_(state: Index, max_index_size: IndexSize, writable: bool) -> Index:
    """The process stops, in whatever way, and the next one opens the file."""
    return mapped.opened(state, max_index_size, writable)


@machine.operation("openNew", "TIX-9")
@require(lambda max_index_size: max_index_size >= 0, "TIX-9 a size is not negative")
def open_new(state: Index, max_index_size: IndexSize) -> Step[Index, None]:
    """The file is deleted, and made again."""
    if max_index_size < LAYOUT.size:
        return Step(Index(state.base_offset, state.max_index_size), NO_SLOT)
    return Step(initial(state.base_offset, max_index_size))


@machine.operation("openFile", "TIX-9", "TIX-1", kind="damage")
@require(lambda file: mapped.is_hexadecimal(file), "TIX-1 bytes")
@all_entries
def open_file(state: Index, file: str, max_index_size: IndexSize, writable: bool) -> Index:
    """The next process finds a file of these bytes (hexadecimal)."""
    there = mapped.laid(Index(state.base_offset, max_index_size), LAYOUT, bytes.fromhex(file), 0)
    return mapped.opened(there, max_index_size, writable)


@machine.operation("fill", "TIX-2", "TIX-9")
@require(lambda count: 0 < count <= 4096, "TIX-9 no more than is easily compared")
def fill(state: Index, count: Filling) -> Index:
    """The file is deleted, and made again with exactly `count` slots; then they are filled, 10 ms apart, two of them
    with the same offset each time: an index of more than one page."""
    return Index(state.base_offset, count * LAYOUT.size, filling(count), slots=count, is_open=True)


@lru_cache(maxsize=32)
def filling(count: int) -> tuple[mapped.Cell, ...]:
    return tuple((10 * n, n // 2) for n in range(1, count + 1))


# ---- a file beside its log -------------------------------------------------------------------------------------------
class Batch(NamedTuple):
    """What of a batch matters here: its first and last offset, and the largest timestamp that its header names, ms."""

    base_offset: Offset
    last_offset: Offset
    max_timestamp: Timestamp


@states(without=A_QUESTION | AT_REST)
def verdict(batches: Sequence[Batch], before: Entry | None, e: Entry) -> str:
    """What is wrong with an entry of a segment with these batches, by the clause; "" if nothing. `before`: the entry
    before it.

    TIX-12: In the file of a segment at rest timestamps and offsets rise from entry to entry, and the file is a whole
    number of slots. [{FILES}; {TIME_INDEX}]

    TIX-13: An entry (T, O) is true: O lies in a batch whose largest timestamp is T, and no batch before that has a
    larger one. Else a reader is led past records of the time that it wants. What a batch's largest timestamp is, its
    header says; with LogAppendTime that is the time of the append. [{FILES}; LogSegment.append, findOffsetByTimestamp,
    Kafka 4.3.0; KIP-33]

    TIX-15: After a clean stop, and in every segment but the last, the file has no unwritten slot, and no entry beyond
    the segment's end. A killed broker leaves both in its last segment. An unwritten slot at the end counts as the time
    0: in a segment that is not recovered, retention then takes it for the oldest of all. [{FILES}; {ABSTRACT};
    LogSegment.largestTimestamp, Kafka 4.3.0; KAFKA-4734]
    """
    if not batches or e.offset > batches[-1].last_offset:
        return "TIX-15"
    if before is not None and (e.offset <= before.offset or e.timestamp <= before.timestamp):
        return "TIX-12"
    n = next(n for n, b in enumerate(batches) if b.last_offset >= e.offset)
    true = batches[n].base_offset <= e.offset and batches[n].max_timestamp == e.timestamp
    return "" if true and all(b.max_timestamp <= e.timestamp for b in batches[:n]) else "TIX-13"


@states(without=A_QUESTION | AT_REST)
def is_complete(batches: Sequence[Batch], entries: Sequence[Entry]) -> bool:
    """TIX-14: After a clean stop, and in every segment but the last, the last entry has the largest timestamp of the
    segment's batches; only where no batch has a timestamp is there no entry. Else the segment is deleted too early, or
    passed over when a time is looked for. [{FILES}; LogSegment.onBecomeInactiveSegment, close and recover, Kafka 4.3.0]
    """
    most = max((b.max_timestamp for b in batches), default=NO_TIMESTAMP)
    return (entries[-1].timestamp if entries else NO_TIMESTAMP) == most


@dataclass(frozen=True)
class Breaches:
    """The clause that each entry breaks, or ""; whether the last one is the largest."""

    entries: list[str]
    complete: bool


audit = without_state("time_index", __name__)
"""What the audit asks of a log at rest."""


@audit.question("breaches", "TIX-12", "TIX-13", "TIX-14", "TIX-15")
@require(
    lambda batches: all(a.last_offset < b.base_offset for a, b in pairwise(batches)),
    "TIX-13 a sound log",
)
def breaches(batches: Sequence[Batch], entries: Sequence[Entry]) -> Breaches:
    """A segment that was closed cleanly: its batches beside the entries of its file. For each entry the clause that it
    breaks, or ""; and whether the last one is the largest, which is asked only where all entries are right."""
    verdicts = [verdict(batches, entries[n - 1] if n else None, e) for n, e in enumerate(entries)]
    return Breaches(verdicts, any(verdicts) or is_complete(batches, entries))
