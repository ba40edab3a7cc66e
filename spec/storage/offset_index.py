"""The offset index of a segment: from some of its offsets to positions in the .log file.

A reader that wants an offset looks up the greatest one in the index that is not above it, and reads the log from that
position on. So an index may leave offsets out, but must never lead a reader past the batch that it wants. The index is
a file of slots, made as long as it may get and mapped into memory; how many slots are in use is not in the file.

Source: Kafka Internals, ch. 03, "Data structures: the index files" and "AbstractIndex"; OffsetIndex, AbstractIndex,
LazyIndex, LogSegment, LogLoader and FileRecords, Kafka 4.3.0.
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
from kafkaspec.contract.numbers import Count, Int32, Int64, Offset, Position, Within
from kafkaspec.spec.common import mapped_index as mapped
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT
from kafkaspec.spec.common.mapped_index import (
    CORRUPT,
    INVALID_OFFSET,
    OVERFLOW,
    READ_ONLY,
    Cell,
    Index,
    IndexSize,
    needs_open,
)
from kafkaspec.spec.common.remembered import remembered

PREFIX = "OIX"
TITLE = "Offset index"

FILES, WRITING, ABSTRACT = mapped.FILES, mapped.WRITING, mapped.ABSTRACT
SEARCH = "Kafka Internals, ch. 03, 'AbstractIndex: mmap, the warm-section search, and locking'"
OFFSET_INDEX = "OffsetIndex, Kafka 4.3.0"
PAGES_COUNTED = "pages need multiplication; counted for every alignment of the warm section instead"

clause(
    "OIX-22",
    """Lookups take no lock against appends and truncations. Beside appends alone, a lookup answers what is right for
    some moment while it ran. Beside a truncation, it may answer an entry that is no longer there; beside a truncation
    and appends after it, one above its target: what it leads to is recognised as wrong by CRC and leader epoch.""",
    source=f"{SEARCH}; {ABSTRACT}",
    without={
        "spec": "a call of the spec is one step; the race is the model's",
        "impl": "one caller at a time calls it; the race is the model's",
    },
)
clause(
    "OIX-26",
    """Positions of neighbouring entries are more than index.interval.bytes apart, and the first entry's is above that:
    an entry is made for the batch before which more than that many bytes were appended since the last one. A segment
    that was written under another value of the configuration keeps its entries.""",
    source=f"{WRITING}; LogSegment.append and recover, Kafka 4.3.0",
    without=A_QUESTION
    | AT_REST
    | {
        "spec": "the index knows nothing of the configuration: it is for the segment to keep to, and the audit to see",
        "mutant": "of the audit alone, and tested there",
    },
)
clause(
    "OIX-28",
    """A segment without its offset index is recovered when the log is loaded, after a clean stop too: both indexes are
    made again from the .log file. A directory in its place is taken for the index (LDR-18).""",
    source="Kafka Internals, ch. 03, 'Crash recovery & startup: LogLoader'; LogLoader.loadSegmentFiles, Kafka 4.3.0",
    without=A_QUESTION
    | {
        "spec": "of the index alone there is nothing left to say",
        "impl": "of the index alone there is nothing left to say: recovering the segment is the log loader's (LDR-6)",
        "mutant": "a missing file",
    },
)

TOO_FAR = Refused("OIX-2", OVERFLOW)
NOT_ABOVE = Refused("OIX-3", INVALID_OFFSET)
FULL = Refused("OIX-4", ILLEGAL_ARGUMENT)
NO_SLOT = Refused("OIX-13", ILLEGAL_ARGUMENT)
TOO_SHORT = Refused("OIX-15", ILLEGAL_ARGUMENT)
NOT_WRITABLE = Refused("OIX-19", READ_ONLY)
NOT_SANE = Refused("OIX-20", CORRUPT)
NO_SUCH_ENTRY = Refused("OIX-21", ILLEGAL_ARGUMENT)

LAYOUT = Struct(">ii")
BASE = mapped.BASE
MAX_SIZE = 43
"""Bytes: five slots, and no whole number of them."""
UsedSize = Annotated[int, Within(LAYOUT.size, 2**15)]
"""Bytes: of at least one slot."""
Filling = Annotated[int, Within(1, 4096)]
"""How many slots: no more than is easily compared."""


# ---- the state -------------------------------------------------------------------------------------------------------
class Entry(NamedTuple):
    """An offset, and a position in the .log file, bytes."""

    offset: Annotated[Int64, governs("OIX-1")]
    position: Annotated[Int32, governs("OIX-1")]


@states(without=A_FORMAT)
def entries(index: Index) -> list[Entry]:
    """Those in use.

    OIX-1: The file is slots of 8 bytes, one after the other: the offset less the segment's base offset, 4 bytes, and a
    position in the .log file, 4 bytes, both signed and big-endian. Entries fill it from the start; nothing in it says
    how many there are. [{FILES}; {OFFSET_INDEX}]
    """
    return entries_of(index.used, index.base_offset)


@remembered
def entries_of(used: tuple[Cell, ...], base_offset: int) -> list[Entry]:
    return entries_that_mean(used, base_offset)


@lru_cache(maxsize=32)
def entries_that_mean(used: tuple[Cell, ...], base_offset: int) -> list[Entry]:
    """A walk comes to the same long files again and again."""
    return [Entry(base_offset + relative, position) for relative, position in used]


@states("OIX-3")
def rising(state: Index) -> bool:
    """Whether offsets rise from entry to entry: what a search relies on."""
    return numbers_rise(state.used, 0)


def positions_rise(state: Index) -> bool:
    """Whether positions rise from entry to entry."""
    return numbers_rise(state.used, 1)


@remembered
def numbers_rise(used: tuple[Cell, ...], n: int) -> bool:
    return all(a[n] < b[n] for a, b in pairwise(used))


def initial(base_offset: Offset = BASE, max_index_size: UsedSize = MAX_SIZE) -> Index:
    """A new index. `max_index_size` bytes, at least a slot."""
    return Index(base_offset, max_index_size, slots=max_index_size // LAYOUT.size, is_open=True)


def last_offset(index: Index) -> int:
    """Of the last entry; the base offset without any."""
    return index.base_offset + index.used[-1][0] if index.used else index.base_offset


@states()
def is_full(index: Index) -> bool:
    """OIX-4: An index whose slots are all in use is full: to append to it is refused. [{SEARCH}; {OFFSET_INDEX}]"""
    return len(index.used) >= index.slots


@partial
@dataclass(frozen=True)
class Observation:
    """The index; of a closed one the file alone."""

    open: Annotated[bool, governs("OIX-16", "OIX-18")]
    file_length: Annotated[int, governs("OIX-14", "OIX-16", "OIX-13", "OIX-17", "OIX-18")]
    """bytes"""
    file: Annotated[str | None, governs("OIX-1", "OIX-5", "OIX-11", "OIX-13")] = None
    """hexadecimal, of a file of at most 256 bytes; null of a longer one"""
    entries: Annotated[list[Entry] | None, governs("OIX-5", "OIX-11", "OIX-12", "OIX-17", "OIX-18", "OIX-3")] = None
    max_entries: Annotated[int | None, governs("OIX-14", "OIX-16", "OIX-13", "OIX-17", "OIX-18")] = None
    length: Annotated[int | None, governs("OIX-14", "OIX-16", "OIX-13", "OIX-17", "OIX-18")] = None
    """bytes"""
    is_full: Annotated[bool | None, governs("OIX-4", "OIX-18")] = None
    last_offset: Annotated[int | None, governs("OIX-5", "OIX-11", "OIX-12", "OIX-17")] = None


def observe(index: Index) -> Observation:
    length, file = mapped.size(index, LAYOUT), mapped.shown(index, LAYOUT)
    if not index.is_open:
        return Observation(False, length, file)
    return Observation(True, length, file, entries(index), index.slots, length, is_full(index), last_offset(index))


machine = Machine("offset_index", initial, observe)


def needs_order(id: str) -> require:
    """What the clause of that id says relies on the order of the entries."""
    return require(rising, f"{id} entries rise")


keeps_order = ensure(
    lambda state, result: isinstance(result, Refused) or not rising(state) or rising(result),
    "OIX-3 entries that rise still do",
)


# ---- appends ---------------------------------------------------------------------------------------------------------
@states(without=ONE_CALL)
def fits(index: Index, offset: int) -> bool:
    """OIX-2: An offset can be stored if it is not below the base offset, and not more than 2147483647 above it. To
    append any other, or to ask for its relative value, is refused. [{FILES}; {ABSTRACT}]
    """
    return 0 <= offset - index.base_offset <= mapped.MOST_RELATIVE


@machine.operation("append", "OIX-2", "OIX-4", "OIX-19")
@needs_open("OIX-5")
@require(lambda position: 0 <= position < 2**31, "OIX-1 a position fits into four bytes")
@keeps_order
@ensure(
    lambda state, offset, position, result: (
        isinstance(result, Refused) or entries(result) == [*entries(state), Entry(offset, position)]
    ),
    "OIX-5 one entry after the others",
)
def append(state: Index, offset: Offset, position: Position) -> Index | Refused:
    """The batch at that position ends with that offset.

    OIX-5: An append puts one entry after the others, and changes none of them. [{WRITING}; {OFFSET_INDEX}]

    OIX-3: Offsets rise strictly from entry to entry: to append one that is not above the last is refused. [{WRITING};
    {OFFSET_INDEX}]
    """
    if is_full(state):
        return FULL
    if state.used and offset <= last_offset(state):
        return NOT_ABOVE
    if not fits(state, offset):
        return TOO_FAR
    if not state.writable:
        return NOT_WRITABLE
    return mapped.append(state, (offset - state.base_offset, position))


# ---- lookups ---------------------------------------------------------------------------------------------------------
@states("OIX-6")
def greatest_lower_bound(index: Index, target: int) -> Entry | None:
    """The last entry not above the target, of an index whose entries rise; None without any."""
    below = [e for e in entries(index) if e.offset <= target]
    return below[-1] if below else None


@machine.question("lookup")
@needs_open("OIX-6")
@needs_order("OIX-6")
@ensure(
    lambda state, offset, result: (
        result == max((e for e in entries(state) if e.offset <= offset), default=(state.base_offset, 0))
    ),
    "OIX-6 the greatest offset that is not above the target",
)
def lookup(state: Index, offset: Offset) -> Entry:
    """From where to read, to find that offset.

    OIX-6: A lookup answers the entry of the greatest offset that is not above the target. Where there is none, because
    the index is empty or begins above the target, it answers the base offset and position 0. [{FILES}; {OFFSET_INDEX}]
    """
    return greatest_lower_bound(state, offset) or Entry(state.base_offset, 0)


@dataclass(frozen=True)
class Reads:
    """What a lookup reads."""

    slots: Annotated[list[int], governs("OIX-7", "OIX-8")]
    pages: Annotated[list[int], governs("OIX-9")]


@machine.question("pagesTouched")
@states(without={"OIX-9": {"model": PAGES_COUNTED, "proof": PAGES_COUNTED}})
@needs_open("OIX-7")
@needs_order("OIX-7")
@ensure(
    lambda state, result: len(result.pages) <= 3 or min(result.slots) < mapped.first_warm(len(state.used), LAYOUT),
    "OIX-9 at most three pages in the warm section",
)
def pages_touched(state: Index, offset: Offset) -> Reads:
    """The slots that a lookup reads, in order, before it reads the answer, and all pages on which they lie.

    OIX-7: A search looks first at the entry with which the warm section begins: the one 8192 bytes of entries before
    the last, or the first entry where there are fewer. If that is below the target, the search stays within the warm
    section; otherwise it looks at the first entry, and stays before the warm section. [{SEARCH}; {ABSTRACT}]

    OIX-8: Of what is left to be searched, the entry at the upper middle is looked at next, and at least half of it is
    then left out. In a warm section of 1025 entries of 8 bytes that makes at most 11 such looks, whatever the index's
    size. [{SEARCH}; {ABSTRACT}]

    OIX-9: A lookup in the warm section touches at most 3 pages of 4096 bytes. One for the last offset or beyond, as
    those of followers in sync and of consumers at the end are, touches all pages of the warm section, and so keeps them
    in memory. The source says that every lookup in the warm section touches its last entry: one whose target lies
    further down does not. [{SEARCH}; {ABSTRACT}]
    """
    slots = mapped.probed(len(state.used), LAYOUT, lambda n: state.base_offset + state.used[n][0], offset)
    found = greatest_lower_bound(state, offset)
    if found is None:
        return Reads(slots[:-1], mapped.pages(slots, LAYOUT))
    return Reads(slots, mapped.pages([*slots, entries(state).index(found)], LAYOUT))


@machine.question("entry")
@states(without=A_QUESTION)
@needs_open("OIX-21")
@require(lambda n: n >= 0, "OIX-21 entries are counted from 0")
def entry(state: Index, n: Count) -> Entry | Refused:
    """The n-th.

    OIX-21: The n-th entry is answered, from 0; to ask for one at or beyond their number is refused. [{OFFSET_INDEX}]
    """
    return entries(state)[n] if n < len(state.used) else NO_SUCH_ENTRY


@machine.question("fetchUpperBoundOffset")
@states(without=A_QUESTION)
@needs_open("OIX-10")
@require(positions_rise, "OIX-10 positions rise with offsets")
@require(lambda position, size: position >= 0 and size >= 0, "OIX-10 a fetch begins within the file")
def fetch_upper_bound_offset(state: Index, position: Position, size: Position) -> Entry | None:
    """An offset beyond a fetch of `size` bytes from `position` on.

    OIX-10: The upper bound of a fetch is the first entry whose position is at or beyond the fetch's first position plus
    its size; none if there is no such entry. Its offset lies outside the fetch, and need not be the first that does.
    [{OFFSET_INDEX}]
    """
    return next((e for e in entries(state) if e.position >= position + size), None)


@machine.question("canAppendOffset", "OIX-2")
def can_append_offset(state: Index, offset: Offset) -> bool:
    """Whether the offset can be stored at all."""
    return fits(state, offset)


@machine.question("relativeOffset", "OIX-2")
def relative_offset(state: Index, offset: Offset) -> int | Refused:
    """The offset as it is stored."""
    return offset - state.base_offset if fits(state, offset) else TOO_FAR


# ---- truncation, and the file's length -------------------------------------------------------------------------------
@machine.operation("truncateTo")
@needs_open("OIX-11")
@needs_order("OIX-11")
@keeps_order
@ensure(
    lambda state, offset, result: entries(result) == [e for e in entries(state) if e.offset < offset],
    "OIX-11 what is below the offset stays, and nothing else",
)
@ensure(
    lambda state, result: mapped.content(result, LAYOUT) == mapped.content(state, LAYOUT),
    "OIX-11 the file stays as it is",
)
def truncate_to(state: Index, offset: Offset) -> Index:
    """The log was cut there.

    OIX-11: Truncating to an offset keeps the entries below it, and no other. An offset above the last entry's changes
    nothing. The slots that are no longer in use keep what they hold, and the file its size. [{OFFSET_INDEX}]
    """
    return mapped.keep(state, sum(1 for e in entries(state) if e.offset < offset))


@machine.operation("truncate")
@needs_open("OIX-12")
@ensure(lambda result: result.used == (), "OIX-12 no entry is left")
def truncate(state: Index) -> Index:
    """The log was emptied.

    OIX-12: Truncating the index leaves no entry. [{OFFSET_INDEX}]
    """
    return mapped.keep(state, 0)


@states(without=ONE_CALL)
def resized(state: Index, size: int) -> Step[Index, bool]:
    """The index in a file of `size` bytes at most.

    OIX-14: Resizing makes the file as long as the whole slots that fit into the new size, by cutting it or by adding
    zeros, and keeps the entries; it answers whether the length changed. [{ABSTRACT}]

    OIX-15: Resizing to less than the entries in use is refused, and nothing changes. [{ABSTRACT}]
    """
    after = mapped.resized(state, LAYOUT, size)
    return Step(state, TOO_SHORT) if after is None else Step(after, after is not state)


@machine.operation("resize", "OIX-14", "OIX-15", "OIX-19")
@needs_open("OIX-14")
@require(lambda new_size: new_size >= 0, "OIX-14 a size is not negative")
@ensure(
    lambda state, new_size, result: (
        isinstance(result.result, Refused)
        or (result.state.used == state.used and result.state.slots == new_size // LAYOUT.size)
    ),
    "OIX-14 the entries stay, and the slots are those that fit",
)
def resize(state: Index, new_size: IndexSize) -> Step[Index, bool]:
    """Longer when a segment becomes the last one again, shorter when it no longer is."""
    return resized(state, new_size)


@machine.operation("trimToValidSize")
@states(without=ONE_CALL)
@ensure(
    lambda state, result: not state.is_open or (result.slots, result.odd) == (len(state.used), b""),
    "OIX-16 the file is the entries in use",
)
def trim_to_valid_size(state: Index) -> Index:
    """Another segment is the last one now.

    OIX-16: Trimming cuts the file to the entries in use. Closing trims, and unmaps. Closing the handler alone, as is
    done when the disk has failed or the file is to be deleted, leaves the file as long as it was. Closing twice does
    nothing more. [{SEARCH}; {ABSTRACT}; KAFKA-4614]
    """
    return resized(state, len(state.used) * LAYOUT.size).state if state.is_open else state


@machine.operation("reset")
@reveals("OIX-12")
@states(without=ONE_CALL)
@needs_open("OIX-17")
@ensure(
    lambda state, result: result.used == () and result.slots == state.max_index_size // LAYOUT.size,
    "OIX-17 no entry, and all slots",
)
def reset_index(state: Index) -> Index:
    """The segment is recovered, and its index made again.

    OIX-17: Resetting leaves no entry, and as many slots as fit into the maximum index size. [{ABSTRACT}]
    """
    return resized(mapped.keep(state, 0), state.max_index_size).state


@machine.question("sanityCheck")
@states(without=A_QUESTION)
@needs_open("OIX-20")
def sanity_check(state: Index) -> Refused | None:
    """Whether obvious things are wrong.

    OIX-20: The sanity check fails if there are entries and the last one's offset is below the base offset, or if the
    file is no whole number of slots. Opening a log does not call it in 4.3.0. [{OFFSET_INDEX}; LogSegment.sanityCheck,
    Kafka 4.3.0; KAFKA-19200]
    """
    return NOT_SANE if (state.used and last_offset(state) < state.base_offset) or state.odd else None


@machine.operation("close", "OIX-16")
@ensure(
    lambda state, result: (
        not state.is_open or mapped.content(result, LAYOUT) == b"".join(LAYOUT.pack(*c) for c in state.used)
    ),
    "OIX-1 the file is the entries, one after the other",
)
def close(state: Index) -> Index:
    """The broker stops."""
    return mapped.closed(trim_to_valid_size(state))


@machine.operation("closeHandler", "OIX-16")
@ensure(
    lambda state, result: mapped.content(result, LAYOUT) == mapped.content(state, LAYOUT),
    "OIX-16 the file stays as it is",
)
def close_handler(state: Index) -> Index:
    """The disk has failed, or the file is to be deleted."""
    return mapped.closed(state)


# ---- opening ---------------------------------------------------------------------------------------------------------
all_entries = ensure(
    lambda result: result.is_open and len(result.used) == result.slots, "OIX-18 every whole slot is an entry"
)


@machine.operation("open", kind="restart")
@states(without=ONE_CALL)
@all_entries
def open_(state: Index, max_index_size: IndexSize, writable: bool) -> Index:
    """The process stops, in whatever way, and the next one opens the file.

    OIX-18: A file that is there is opened as it is: every whole slot of it counts as an entry, unwritten ones and those
    that a truncation left behind too. So an index that was not trimmed, because the process was killed, is full when it
    is opened, and its last entries are not to be relied on. [{ABSTRACT}; {OFFSET_INDEX}]

    OIX-19: To append to an index that was opened read-only is refused. Resizing it is not, and leaves it writable.
    [{SEARCH}; {ABSTRACT}]
    """
    return mapped.opened(state, max_index_size, writable)


@machine.operation("openNew")
@states(without=ONE_CALL)
@require(lambda max_index_size: max_index_size >= 0, "OIX-13 a size is not negative")
def open_new(state: Index, max_index_size: IndexSize) -> Step[Index, None]:
    """The file is deleted, and made again.

    OIX-13: A file that is not there is made, filled with zeros, as long as the whole slots that fit into the maximum
    index size, without an entry. A maximum of less than one slot is refused, and leaves an empty file. [{SEARCH};
    {ABSTRACT}]
    """
    if max_index_size < LAYOUT.size:
        return Step(Index(state.base_offset, state.max_index_size), NO_SLOT)
    return Step(initial(state.base_offset, max_index_size))


@machine.operation("openFile", "OIX-18", "OIX-1", kind="damage")
@require(lambda file: mapped.is_hexadecimal(file), "OIX-1 bytes")
@all_entries
def open_file(state: Index, file: str, max_index_size: IndexSize, writable: bool) -> Index:
    """The next process finds a file of these bytes (hexadecimal)."""
    there = mapped.laid(Index(state.base_offset, max_index_size), LAYOUT, bytes.fromhex(file), 0)
    return mapped.opened(there, max_index_size, writable)


@machine.operation("fill", "OIX-5", "OIX-13")
@require(lambda count: 0 < count <= 4096, "OIX-13 no more than is easily compared")
def fill(state: Index, count: Filling) -> Index:
    """The file is deleted, and made again with exactly `count` slots; then they are filled, with every offset after the
    base offset, at positions 10, 20 and so on: an index of more than one page."""
    return Index(state.base_offset, count * LAYOUT.size, filling(count), slots=count, is_open=True)


@lru_cache(maxsize=32)
def filling(count: int) -> tuple[mapped.Cell, ...]:
    return tuple((n, 10 * n) for n in range(1, count + 1))


# ---- a file beside its log -------------------------------------------------------------------------------------------
class Batch(NamedTuple):
    """What of a batch matters here: its first byte and its size, bytes, and its first and last offset."""

    position: Position
    size: Position
    base_offset: Offset
    last_offset: Offset
    last_record: Annotated[int, Within(-1, 2**62)]
    """offset of the last record that is still in it; -1 without any, or where that is not known"""

    @states(without=A_QUESTION | AT_REST)
    def made(self, offset: int) -> bool:
        """Whether an append that ended with this batch has, or had before it was cleaned, this as its last offset.

        OIX-25: An entry's offset is the last one of the batch at its position (since 4.0), the last one of a later
        batch that was appended together with it (2.0 to 3.9), or the first one of the batch at its position (up to
        1.1). In a segment that the cleaner wrote it is, up to 3.9, that of the last record that was kept of the batch.
        [LogSegment.append, Kafka 0.10.2 to 4.3.0 (seen in recordings of 0.11.0, 1.1.1, 2.8.2, 3.0.2, 3.9.1, 4.3.0)]
        """
        if self.last_record < 0:
            return self.base_offset <= offset <= self.last_offset
        return offset in (self.last_offset, self.last_record)


@states("OIX-23", "OIX-24", "OIX-25", "OIX-27", without=A_QUESTION | AT_REST)
def verdict(batches: Sequence[Batch], before: Entry | None, e: Entry) -> str:
    """What is wrong with an entry of a segment with these batches, by the clause; "" if nothing. `before`: the entry
    before it.

    OIX-23: In the file of a segment at rest the offsets of entries rise strictly, none is below the base offset, and
    the file is a whole number of slots. [{WRITING}; {OFFSET_INDEX}]

    OIX-24: An entry's position is the first byte of a batch of the segment, and all batches before it end below the
    entry's offset: otherwise a reader that looks it up finds no batch, or is led past the one that it wants. [{FILES};
    {OFFSET_INDEX}; FileRecords.searchForOffsetFromPosition, Kafka 4.3.0]

    OIX-27: After a clean stop, and in every segment but the last, the file has no unwritten slot, and no entry that
    points beyond the segment's end. A killed broker leaves both in its last segment, as does a deletion in the segments
    of a directory that is to be deleted. [{FILES}; LogSegment.onBecomeInactiveSegment, AbstractIndex.close and
    trimToValidSize, Kafka 4.3.0]
    """
    end = batches[-1].position + batches[-1].size if batches else 0
    if e.position >= end:
        return "OIX-27"
    if before is not None and e.offset <= before.offset:
        return "OIX-23"
    at = next((b for b in batches if b.position == e.position), None)
    if at is None or any(b.last_offset >= e.offset for b in batches if b.position < e.position):
        return "OIX-24"
    if e.offset == at.base_offset or any(b.made(e.offset) for b in batches if b.position >= e.position):
        return ""
    return "OIX-25"


audit = without_state("offset_index", __name__)
"""What the audit asks of a log at rest."""


@audit.question("breaches", "OIX-23", "OIX-24", "OIX-25", "OIX-27")
@require(
    lambda batches: all(
        a.position + a.size == b.position and a.last_offset < b.base_offset for a, b in pairwise(batches)
    ),
    "OIX-24 a sound log",
)
def breaches(batches: Sequence[Batch], entries: Sequence[Entry]) -> list[str]:
    """A segment that was closed cleanly: its batches beside the entries of its file. For each entry the clause that it
    breaks, or ""."""
    return [verdict(batches, entries[n - 1] if n else None, e) for n, e in enumerate(entries)]
