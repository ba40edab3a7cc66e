"""The offset index of a segment: from some of its offsets to positions in the .log file.

A reader that wants an offset looks up the greatest one in the index that is not above it, and reads the log from that
position on. So an index may leave offsets out, but must never lead a reader past the batch that it wants. The index is
a file of slots, made as long as it may get and mapped into memory; how many slots are in use is not in the file.

Source: Kafka Internals, ch. 03, "Data structures: the index files" and "AbstractIndex"; OffsetIndex, AbstractIndex,
LazyIndex, LogSegment, LogLoader and FileRecords, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from struct import Struct
from typing import Any, NamedTuple, TypedDict, cast

import icontract

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.machine import Fields, Machine, Nothing, Refused, Step, without_state
from kafkaspec.spec.common import mapped_index as mapped
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT
from kafkaspec.spec.common.mapped_index import CORRUPT, INVALID_OFFSET, OVERFLOW, READ_ONLY, SHOWN, Index

PREFIX = "OIX"
TITLE = "Offset index"

FILES = "Kafka Internals, ch. 03, 'Data structures: the index files, field by field'"
SEARCH = "Kafka Internals, ch. 03, 'AbstractIndex: mmap, the warm-section search, and locking'"
WRITING = "Kafka Internals, ch. 03, 'Writing into the segment & the sparse index'"
OFFSET_INDEX = "OffsetIndex, Kafka 4.3.0"
ABSTRACT = "AbstractIndex, Kafka 4.3.0"

OF_ONE_CALL = {
    "model": "a matter of one call and one file, not of interleavings",
    "proof": "a matter of one call and one file: tested beside the implementation",
}
OF_A_LOG_ON_DISK = {
    "model": "a predicate over one log at rest",
    "proof": "a predicate over one log at rest",
    "impl": "about a log at rest: the audit looks for it",
}

OIX_1 = clause(
    "OIX-1",
    """The file is slots of 8 bytes, one after the other: the offset less the segment's base offset, 4 bytes, and a
    position in the .log file, 4 bytes, both signed and big-endian. Entries fill it from the start; nothing in it says
    how many there are.""",
    source=f"{FILES}; {OFFSET_INDEX}",
    without=OF_ONE_CALL,
)
OIX_2 = clause(
    "OIX-2",
    """An offset can be stored if it is not below the base offset, and not more than 2147483647 above it. To append
    any other, or to ask for its relative value, is refused.""",
    source=f"{FILES}; {ABSTRACT}",
    without=OF_ONE_CALL,
)
OIX_3 = clause(
    "OIX-3",
    """Offsets rise strictly from entry to entry: to append one that is not above the last is refused.""",
    source=f"{WRITING}; {OFFSET_INDEX}",
)
OIX_4 = clause(
    "OIX-4",
    "An index whose slots are all in use is full: to append to it is refused.",
    source=f"{SEARCH}; {OFFSET_INDEX}",
)
OIX_5 = clause(
    "OIX-5",
    "An append puts one entry after the others, and changes none of them.",
    source=f"{WRITING}; {OFFSET_INDEX}",
)
OIX_6 = clause(
    "OIX-6",
    """A lookup answers the entry of the greatest offset that is not above the target. Where there is none, because the
    index is empty or begins above the target, it answers the base offset and position 0.""",
    source=f"{FILES}; {OFFSET_INDEX}",
)
OIX_7 = clause(
    "OIX-7",
    """A search looks first at the entry with which the warm section begins: the one 8192 bytes of entries before the
    last, or the first entry where there are not so many. If that is below the target, the search stays within the warm
    section; otherwise it looks at the first entry, and stays before the warm section.""",
    source=f"{SEARCH}; {ABSTRACT}",
)
OIX_8 = clause(
    "OIX-8",
    """Of what is left to be searched, the entry at the upper middle is looked at next, and at least half of it is then
    left out. In a warm section of 1025 entries of 8 bytes that makes at most 11 such looks, whatever the index's
    size.""",
    source=f"{SEARCH}; {ABSTRACT}",
)
OIX_9 = clause(
    "OIX-9",
    """A lookup in the warm section touches at most 3 pages of 4096 bytes. One for the last offset or beyond, as those
    of followers in sync and of consumers at the end are, touches all pages of the warm section, and so keeps them in
    memory. The source says that every lookup in the warm section touches its last entry: one whose target lies further
    down does not.""",
    source=f"{SEARCH}; {ABSTRACT}",
    without={
        "model": "pages need multiplication; counted for every alignment of the warm section instead",
        "proof": "pages need multiplication; counted for every alignment of the warm section instead",
    },
)
OIX_10 = clause(
    "OIX-10",
    """The upper bound of a fetch is the first entry whose position is at or beyond the fetch's first position plus its
    size; none if there is no such entry. Its offset lies outside the fetch, and need not be the first that does.""",
    source=OFFSET_INDEX,
    without=OF_ONE_CALL,
)
OIX_11 = clause(
    "OIX-11",
    """Truncating to an offset keeps the entries below it, and no other. An offset above the last entry's changes
    nothing. The slots that are no longer in use keep what they hold, and the file its size.""",
    source=OFFSET_INDEX,
)
OIX_12 = clause("OIX-12", "Truncating the index leaves no entry.", source=OFFSET_INDEX)
OIX_13 = clause(
    "OIX-13",
    """A file that is not there is made, filled with zeros, as long as the whole slots that fit into the maximum index
    size, without an entry. A maximum of less than one slot is refused, and leaves an empty file.""",
    source=f"{SEARCH}; {ABSTRACT}",
    without=OF_ONE_CALL,
)
OIX_14 = clause(
    "OIX-14",
    """Resizing makes the file as long as the whole slots that fit into the new size, by cutting it or by adding zeros,
    and keeps the entries; it answers whether the length changed.""",
    source=ABSTRACT,
    without=OF_ONE_CALL,
)
OIX_15 = clause(
    "OIX-15",
    "Resizing to less than the entries in use is refused, and nothing changes.",
    source=ABSTRACT,
    without=OF_ONE_CALL,
)
OIX_16 = clause(
    "OIX-16",
    """Trimming cuts the file to the entries in use. Closing trims, and unmaps. Closing the handler alone, as is done
    when the disk has failed or the file is to be deleted, leaves the file as long as it was. Closing twice does
    nothing more.""",
    source=f"{SEARCH}; {ABSTRACT}; KAFKA-4614",
    without=OF_ONE_CALL,
)
OIX_17 = clause(
    "OIX-17",
    "Resetting leaves no entry, and as many slots as fit into the maximum index size.",
    source=ABSTRACT,
    without=OF_ONE_CALL,
)
OIX_18 = clause(
    "OIX-18",
    """A file that is there is opened as it is: every whole slot of it counts as an entry, unwritten ones and those that
    a truncation left behind too. So an index that was not trimmed, because the process was killed, is full when it is
    opened, and its last entries are not to be relied on.""",
    source=f"{ABSTRACT}; {OFFSET_INDEX}",
    without=OF_ONE_CALL,
)
OIX_19 = clause(
    "OIX-19",
    """To append to an index that was opened read-only is refused. Resizing it is not, and leaves it writable.""",
    source=f"{SEARCH}; {ABSTRACT}",
    without=OF_ONE_CALL,
)
OIX_20 = clause(
    "OIX-20",
    """The sanity check fails if there are entries and the last one's offset is below the base offset, or if the file is
    no whole number of slots. Opening a log does not call it in 4.3.0.""",
    source=f"{OFFSET_INDEX}; LogSegment.sanityCheck, Kafka 4.3.0; KAFKA-19200",
    without=OF_ONE_CALL,
)
OIX_21 = clause(
    "OIX-21",
    "The n-th entry is answered, from 0; to ask for one at or beyond their number is refused.",
    source=OFFSET_INDEX,
    without=OF_ONE_CALL,
)
OIX_22 = clause(
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
OIX_23 = clause(
    "OIX-23",
    """In the file of a segment at rest the offsets of entries rise strictly, none is below the base offset, and the
    file is a whole number of slots.""",
    source=f"{WRITING}; {OFFSET_INDEX}",
    without=OF_A_LOG_ON_DISK,
)
OIX_24 = clause(
    "OIX-24",
    """An entry's position is the first byte of a batch of the segment, and all batches before it end below the entry's
    offset: otherwise a reader that looks it up finds no batch, or is led past the one that it wants.""",
    source=f"{FILES}; {OFFSET_INDEX}; FileRecords.searchForOffsetFromPosition, Kafka 4.3.0",
    without=OF_A_LOG_ON_DISK,
)
OIX_25 = clause(
    "OIX-25",
    """An entry's offset is the last one of the batch at its position (since 4.0), the last one of a later batch that
    was appended together with it (2.0 to 3.9), or the first one of the batch at its position (up to 1.1). In a
    segment that the cleaner wrote it is, up to 3.9, that of the last record that was kept of the batch.""",
    source="LogSegment.append, Kafka 0.10.2 to 4.3.0 (seen in recordings of 0.11.0, 1.1.1, 2.8.2, 3.0.2, 3.9.1, 4.3.0)",
    without=OF_A_LOG_ON_DISK,
)
OIX_26 = clause(
    "OIX-26",
    """Positions of neighbouring entries are more than index.interval.bytes apart, and the first entry's is above that:
    an entry is made for the batch before which more than so many bytes were appended since the last one. A segment that
    was written under another value of the configuration keeps its entries.""",
    source=f"{WRITING}; LogSegment.append and recover, Kafka 4.3.0",
    without={
        **OF_A_LOG_ON_DISK,
        "spec": "the index knows nothing of the configuration: it is for the segment to keep to, and the audit to see",
        "mutant": "of the audit alone, and tested there",
    },
)
OIX_27 = clause(
    "OIX-27",
    """After a clean stop, and in every segment but the last, the file has no unwritten slot, and no entry that points
    beyond the segment's end. A killed broker leaves both in its last segment, as does a deletion in the segments of a
    directory that is to be deleted.""",
    source=f"{FILES}; LogSegment.onBecomeInactiveSegment, AbstractIndex.close and trimToValidSize, Kafka 4.3.0",
    without=OF_A_LOG_ON_DISK,
)
OIX_28 = clause(
    "OIX-28",
    """A segment without its offset index is recovered when the log is loaded, after a clean stop too: both indexes are
    made again from the .log file.""",
    source="Kafka Internals, ch. 03, 'Crash recovery & startup: LogLoader'; LogLoader.loadSegmentFiles, Kafka 4.3.0",
    without={
        **OF_A_LOG_ON_DISK,
        "spec": "of the index alone there is nothing left to say",
        "impl": "of the index alone there is nothing left to say: recovering the segment is the log loader's (LDR-6)",
        "mutant": "a missing file",
    },
)

REFUSALS = {
    "overflow": OIX_2,
    "not above": OIX_3,
    "full": OIX_4,
    "no slot": OIX_13,
    "too short": OIX_15,
    "read-only": OIX_19,
    "corrupt": OIX_20,
    "no such entry": OIX_21,
}
"""The clause by which the implementation refuses."""

LAYOUT = Struct(">ii")
BASE = 100
MAX_SIZE = 43
"""Bytes: five slots, and no whole number of them."""


class Entry(NamedTuple):
    """An offset, and a position in the .log file, bytes."""

    offset: int
    position: int


def entries(index: Index) -> list[Entry]:
    """Those in use."""
    return [Entry(index.base_offset + relative, position) for relative, position in index.used]


@states("OIX-3")
def rising(state: Index) -> bool:
    """Whether offsets rise from entry to entry: what a search relies on."""
    return all(a[0] < b[0] for a, b in pairwise(state.used))


def positions_rise(state: Index) -> bool:
    return all(a[1] < b[1] for a, b in pairwise(state.used))


def index_of(data: bytes, base_offset: int, max_index_size: int, used: int, is_open: bool, writable: bool) -> Index:
    """The index over a file of these bytes."""
    index = Index(base_offset, max_index_size, is_open=is_open, writable=writable)
    return mapped.laid(index, LAYOUT, data, used)


def initial(base_offset: int = BASE, max_index_size: int = MAX_SIZE) -> Index:
    """A new index. `max_index_size` bytes, at least a slot."""
    return Index(base_offset, max_index_size, slots=max_index_size // LAYOUT.size, is_open=True)


def last_offset(index: Index) -> int:
    """Of the last entry; the base offset without any."""
    return index.base_offset + index.used[-1][0] if index.used else index.base_offset


@states("OIX-4")
def is_full(index: Index) -> bool:
    """Whether all slots are in use."""
    return len(index.used) >= index.slots


class Observation(TypedDict, total=False):
    """The index; of a closed one the file alone."""

    open: bool
    fileLength: int
    """bytes"""
    file: str
    """hexadecimal, where it is short"""
    entries: list[list[int]]
    """[offset, position]"""
    maxEntries: int
    length: int
    """bytes"""
    isFull: bool
    lastOffset: int


def observe(index: Index) -> Observation:
    length = index.slots * LAYOUT.size + len(index.odd)
    shown: dict[str, Any] = {"open": index.is_open, "fileLength": length}
    if length <= SHOWN:
        shown["file"] = mapped.content(index, LAYOUT).hex()
    if index.is_open:
        shown |= {
            "entries": [[index.base_offset + relative, position] for relative, position in index.used],
            "maxEntries": index.slots,
            "length": length,
            "isFull": is_full(index),
            "lastOffset": last_offset(index),
        }
    return cast(Observation, Fields(shown))


machine = Machine("offset_index", initial, observe)


def _open(id: str) -> icontract.require:
    """What the clause of that id says is asked of an open index."""
    return icontract.require(lambda state: state.is_open, f"{id} a closed index is not used")


def _rising(id: str) -> icontract.require:
    """What the clause of that id says relies on the order of the entries."""
    return icontract.require(rising, f"{id} entries rise")


def _changes_nothing(id: str) -> icontract.ensure:
    """What the clause of that id says is a question."""
    return icontract.ensure(lambda state, result: result.state == state, f"{id} a question changes nothing")


def _rising_still(state: Index, result: Step[Index]) -> bool:
    return not rising(state) or rising(result.state)


_keeps_order = icontract.ensure(_rising_still, "OIX-3 entries that rise still do")


@machine.operation("append", "OIX-5", "OIX-2", "OIX-3", "OIX-4", "OIX-19")
@_open("OIX-5")
@icontract.require(lambda position: 0 <= position < 2**31, "OIX-1 a position fits into four bytes")
@_keeps_order
@icontract.ensure(
    lambda state, offset, position, result: (
        isinstance(result.result, Refused) or entries(result.state) == [*entries(state), Entry(offset, position)]
    ),
    "OIX-5 one entry after the others",
)
def append(state: Index, offset: int, position: int) -> Step[Index, None]:
    """The batch at that position ends with that offset."""
    if is_full(state):
        return Step(state, Refused("OIX-4", ILLEGAL_ARGUMENT))
    if state.used and offset <= last_offset(state):
        return Step(state, Refused("OIX-3", INVALID_OFFSET))
    if not fits(state, offset):
        return Step(state, Refused("OIX-2", OVERFLOW))
    if not state.writable:
        return Step(state, Refused("OIX-19", READ_ONLY))
    return Step(mapped.append(state, (offset - state.base_offset, position)))


@states("OIX-2")
def fits(index: Index, offset: int) -> bool:
    """Whether the offset can be stored."""
    return 0 <= offset - index.base_offset <= mapped.MOST_RELATIVE


@states("OIX-6")
def greatest_lower_bound(index: Index, target: int) -> Entry | None:
    """The last entry not above the target, of an index whose entries rise; None without any."""
    below = [e for e in entries(index) if e.offset <= target]
    return below[-1] if below else None


@machine.operation("lookup", "OIX-6")
@_open("OIX-6")
@_rising("OIX-6")
@_changes_nothing("OIX-6")
@icontract.ensure(
    lambda state, offset, result: (
        result.result == list(max((e for e in entries(state) if e.offset <= offset), default=(state.base_offset, 0)))
    ),
    "OIX-6 the greatest offset that is not above the target",
)
def lookup(state: Index, offset: int) -> Step[Index, list[int]]:
    """From where to read, to find that offset."""
    return Step(state, list(greatest_lower_bound(state, offset) or Entry(state.base_offset, 0)))


class Touched(TypedDict):
    """What a lookup reads."""

    slots: list[int]
    pages: list[int]


@machine.operation("pagesTouched", "OIX-7", "OIX-8", "OIX-9")
@_open("OIX-7")
@_rising("OIX-7")
@_changes_nothing("OIX-7")
@icontract.ensure(
    lambda state, result: (
        len(result.result["pages"]) <= 3 or min(result.result["slots"]) < mapped.first_warm(len(state.used), LAYOUT)
    ),
    "OIX-9 at most three pages in the warm section",
)
def pages_touched(state: Index, offset: int) -> Step[Index, Touched]:
    """The slots that a lookup reads, in order, before it reads the answer, and all pages on which they lie."""
    slots = mapped.probed(len(state.used), LAYOUT, lambda n: state.base_offset + state.used[n][0], offset)
    found = greatest_lower_bound(state, offset)
    answer = [] if found is None else [entries(state).index(found)]
    if found is None:
        slots, read = slots[:-1], slots
    else:
        read = slots + answer
    return Step(state, {"slots": slots, "pages": mapped.pages(read, LAYOUT)})


@machine.operation("entry", "OIX-21")
@_open("OIX-21")
@icontract.require(lambda n: n >= 0, "OIX-21 entries are counted from 0")
@_changes_nothing("OIX-21")
def entry(state: Index, n: int) -> Step[Index, list[int]]:
    """The n-th."""
    if n >= len(state.used):
        return Step(state, Refused("OIX-21", ILLEGAL_ARGUMENT))
    return Step(state, list(entries(state)[n]))


@machine.operation("fetchUpperBoundOffset", "OIX-10")
@_open("OIX-10")
@icontract.require(positions_rise, "OIX-10 positions rise with offsets")
@icontract.require(lambda position, size: position >= 0 and size >= 0, "OIX-10 a fetch begins within the file")
@_changes_nothing("OIX-10")
def fetch_upper_bound_offset(state: Index, position: int, size: int) -> Step[Index, list[int] | None]:
    """An offset beyond a fetch of `size` bytes from `position` on."""
    beyond = [e for e in entries(state) if e.position >= position + size]
    return Step(state, list(beyond[0]) if beyond else None)


@machine.operation("canAppendOffset", "OIX-2")
@_changes_nothing("OIX-2")
def can_append_offset(state: Index, offset: int) -> Step[Index, bool]:
    """Whether the offset can be stored at all."""
    return Step(state, fits(state, offset))


@machine.operation("relativeOffset", "OIX-2")
@_changes_nothing("OIX-2")
def relative_offset(state: Index, offset: int) -> Step[Index, int]:
    """The offset as it is stored."""
    return Step(state, offset - state.base_offset if fits(state, offset) else Refused("OIX-2", OVERFLOW))


@machine.operation("truncateTo", "OIX-11")
@_open("OIX-11")
@_rising("OIX-11")
@_keeps_order
@icontract.ensure(
    lambda state, offset, result: entries(result.state) == [e for e in entries(state) if e.offset < offset],
    "OIX-11 what is below the offset stays, and nothing else",
)
@icontract.ensure(
    lambda state, result: mapped.content(result.state, LAYOUT) == mapped.content(state, LAYOUT),
    "OIX-11 the file stays as it is",
)
def truncate_to(state: Index, offset: int) -> Step[Index, None]:
    """The log was cut there."""
    return Step(mapped.keep(state, sum(1 for e in entries(state) if e.offset < offset)))


@machine.operation("truncate", "OIX-12")
@_open("OIX-12")
@icontract.ensure(lambda result: result.state.used == (), "OIX-12 no entry is left")
def truncate(state: Index) -> Step[Index, None]:
    """The log was emptied."""
    return Step(mapped.keep(state, 0))


@states("OIX-14", "OIX-15")
def resized(state: Index, size: int) -> Step[Index]:
    """The index in a file of the whole slots that fit, and whether that changed it; refused if entries do not fit."""
    length = mapped.rounded(size, LAYOUT)
    after = mapped.with_size(state, LAYOUT, length)
    if after is state:
        return Step(state, False)
    if len(after.used) < len(state.used):
        return Step(state, Refused("OIX-15", ILLEGAL_ARGUMENT))
    return Step(replace(after, writable=True), True)


@machine.operation("resize", "OIX-14", "OIX-15", "OIX-19")
@_open("OIX-14")
@icontract.require(lambda new_size: new_size >= 0, "OIX-14 a size is not negative")
@icontract.ensure(
    lambda state, new_size, result: (
        isinstance(result.result, Refused)
        or (result.state.used == state.used and result.state.slots == new_size // LAYOUT.size)
    ),
    "OIX-14 the entries stay, and the slots are those that fit",
)
def resize(state: Index, new_size: int) -> Step[Index, bool]:
    """Longer when a segment becomes the last one again, shorter when it no longer is."""
    return resized(state, new_size)


@machine.operation("trimToValidSize", "OIX-16")
@icontract.ensure(
    lambda state, result: not state.is_open or (result.state.slots, result.state.odd) == (len(state.used), b""),
    "OIX-16 the file is the entries in use",
)
def trim_to_valid_size(state: Index) -> Step[Index, None]:
    """Another segment is the last one now."""
    return Step(resized(state, len(state.used) * LAYOUT.size).state if state.is_open else state)


@machine.operation("reset", "OIX-17")
@_open("OIX-17")
@icontract.ensure(
    lambda state, result: result.state.used == () and result.state.slots == state.max_index_size // LAYOUT.size,
    "OIX-17 no entry, and all slots",
)
def reset(state: Index) -> Step[Index, None]:
    """The segment is recovered, and its index made again."""
    return Step(resized(mapped.keep(state, 0), state.max_index_size).state)


@machine.operation("sanityCheck", "OIX-20")
@_open("OIX-20")
@_changes_nothing("OIX-20")
def sanity_check(state: Index) -> Step[Index, None]:
    """Whether obvious things are wrong."""
    wrong = (bool(state.used) and last_offset(state) < state.base_offset) or bool(state.odd)
    return Step(state, Refused("OIX-20", CORRUPT) if wrong else None)


@machine.operation("close", "OIX-16")
@icontract.ensure(
    lambda state, result: (
        not state.is_open or mapped.content(result.state, LAYOUT) == b"".join(LAYOUT.pack(*c) for c in state.used)
    ),
    "OIX-1 the file is the entries, one after the other",
)
def close(state: Index) -> Step[Index, None]:
    """The broker stops."""
    return Step(mapped.closed(trim_to_valid_size(state).state))


@machine.operation("closeHandler", "OIX-16")
@icontract.ensure(
    lambda state, result: mapped.content(result.state, LAYOUT) == mapped.content(state, LAYOUT),
    "OIX-16 the file stays as it is",
)
def close_handler(state: Index) -> Step[Index, None]:
    """The disk has failed, or the file is to be deleted."""
    return Step(mapped.closed(state))


_all_entries = icontract.ensure(
    lambda result: result.state.is_open and len(result.state.used) == result.state.slots,
    "OIX-18 every whole slot is an entry",
)


@machine.operation("open", "OIX-18", kind="restart")
@_all_entries
def open_(state: Index, max_index_size: int, writable: bool) -> Step[Index, None]:
    """The process stops, in whatever way, and the next one opens the file."""
    return Step(mapped.opened(state, max_index_size, writable))


@machine.operation("openNew", "OIX-13")
@icontract.require(lambda max_index_size: max_index_size >= 0, "OIX-13 a size is not negative")
def open_new(state: Index, max_index_size: int) -> Step[Index, None]:
    """The file is deleted, and made again."""
    if max_index_size < LAYOUT.size:
        return Step(Index(state.base_offset, state.max_index_size), Refused("OIX-13", ILLEGAL_ARGUMENT))
    return Step(initial(state.base_offset, max_index_size))


@machine.operation("openFile", "OIX-18", "OIX-1", kind="damage")
@icontract.require(lambda file: mapped.is_hexadecimal(file), "OIX-1 bytes")
@_all_entries
def open_file(state: Index, file: str, max_index_size: int, writable: bool) -> Step[Index, None]:
    """The next process finds a file of these bytes (hexadecimal)."""
    there = index_of(bytes.fromhex(file), state.base_offset, max_index_size, 0, False, True)
    return Step(mapped.opened(there, max_index_size, writable))


@machine.operation("fill", "OIX-5", "OIX-13")
@icontract.require(lambda count: 0 < count <= 4096, "OIX-13 no more than is easily compared")
def fill(state: Index, count: int) -> Step[Index, None]:
    """The file is deleted, and made again with just so many slots; then they are filled, with every offset after the
    base offset, 10 bytes apart: an index of more than one page."""
    return Step(Index(state.base_offset, count * LAYOUT.size, _filled(count), slots=count, is_open=True))


@cache
def _filled(count: int) -> tuple[mapped.Cell, ...]:
    return tuple((n, 10 * n) for n in range(1, count + 1))


# ---- a file beside its log -------------------------------------------------------------------------------------------
class Batch(NamedTuple):
    """What of a batch matters here: its first byte and its size, bytes, and its first and last offset."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    last_record: int
    """offset of the last record that is still in it; -1 without any, or where that is not known"""

    def made(self, offset: int) -> bool:
        """Whether an append that ended with this batch has, or had before it was cleaned, this as its last offset."""
        if self.last_record < 0:
            return self.base_offset <= offset <= self.last_offset
        return offset in (self.last_offset, self.last_record)


@states("OIX-23", "OIX-24", "OIX-25", "OIX-27")
def verdict(batches: Sequence[Batch], before: Entry | None, e: Entry) -> str:
    """What is wrong with an entry of a segment with these batches, by the clause; "" if nothing. `before`: the entry
    before it."""
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


@audit.operation("breaches", "OIX-23", "OIX-24", "OIX-25", "OIX-27")
@icontract.require(
    lambda batches, entries: (
        all(len(b) == 5 for b in batches)
        and all(len(e) == 2 for e in entries)
        and all(a[0] + a[1] == b[0] and a[3] < b[2] for a, b in pairwise(batches))
    ),
    "OIX-24 a sound log",
)
def breaches(
    state: Nothing, batches: Sequence[Sequence[int]], entries: Sequence[Sequence[int]]
) -> Step[Nothing, list[str]]:
    """A segment that was closed cleanly: its batches (position, size, first and last offset, last record's) beside the
    entries of its file (offset, position). For each entry the clause that it breaks, or ""."""
    log, file = [Batch(*b) for b in batches], [Entry(*e) for e in entries]
    return Step(state, [verdict(log, b, e) for b, e in zip([None, *file[:-1]], file, strict=True)] if file else [])
