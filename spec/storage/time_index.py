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
from dataclasses import replace
from functools import cache
from itertools import pairwise
from struct import Struct
from typing import Any, NamedTuple, TypedDict, cast

import icontract

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.machine import Fields, Machine, Nothing, Refused, Step, without_state
from kafkaspec.spec.common import mapped_index as mapped
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, ILLEGAL_STATE, NO_TIMESTAMP
from kafkaspec.spec.common.mapped_index import (
    BUFFER_OVERFLOW,
    CORRUPT,
    INVALID_OFFSET,
    OVERFLOW,
    READ_ONLY,
    SHOWN,
    Index,
)

PREFIX = "TIX"
TITLE = "Time index"

FILES = "Kafka Internals, ch. 03, 'Data structures: the index files, field by field'"
WRITING = "Kafka Internals, ch. 03, 'Writing into the segment & the sparse index'"
TIME_INDEX = "TimeIndex, Kafka 4.3.0"
ABSTRACT = "AbstractIndex, Kafka 4.3.0"

SEARCHED_ALIKE = {
    "model": "the search is OIX's, and its model is there",
    "proof": "the search is OIX's, and its proof is there",
}
OF_ONE_CALL = {
    "model": "a matter of one call and one file, not of interleavings",
    "proof": "a matter of one call and one file: tested beside the implementation",
}
OF_A_LOG_ON_DISK = {
    "model": "a predicate over one log at rest",
    "proof": "a predicate over one log at rest",
    "impl": "about a log at rest: the audit looks for it",
}

TIX_1 = clause(
    "TIX-1",
    """The file is slots of 12 bytes, one after the other: a timestamp, 8 bytes, and an offset less the segment's base
    offset, 4 bytes, both signed and big-endian. Entries fill it from the start; nothing in it says how many there
    are.""",
    source=f"{FILES}; {TIME_INDEX}",
    without=OF_ONE_CALL,
)
TIX_2 = clause(
    "TIX-2",
    """Timestamps rise strictly from entry to entry, and offsets never fall. To append an offset below the last entry's,
    or a timestamp below the last entry's, is refused.""",
    source=f"{FILES}; {TIME_INDEX}; KIP-33",
    without=OF_ONE_CALL,
)
TIX_3 = clause(
    "TIX-3",
    """To append a timestamp that is not above the last entry's (or -1, without entries) changes nothing, and is no
    error where it is the same: a segment that is closed twice offers its last entry twice, and records without
    timestamps leave the index empty.""",
    source=TIME_INDEX,
    without=OF_ONE_CALL,
)
TIX_4 = clause(
    "TIX-4",
    """The index is full when only one slot is left: to append to it is then refused, even what would change nothing.
    That last slot is for the entry with the largest timestamp that is made when the segment is closed or rolled, to
    which the check does not apply. When that slot is in use too, an entry that is made anyway is refused.""",
    source=f"{FILES}; {TIME_INDEX}; LogSegment.onBecomeInactiveSegment, Kafka 4.3.0",
    without=OF_ONE_CALL,
)
TIX_5 = clause(
    "TIX-5",
    "An entry whose offset does not fit (OIX-2) is refused, and nothing changes.",
    source=f"{FILES}; {TIME_INDEX}; {ABSTRACT}",
    without=OF_ONE_CALL,
)
TIX_6 = clause(
    "TIX-6",
    """A lookup answers the entry of the greatest timestamp that is not above the target. Where there is none, it
    answers no timestamp (-1) and the base offset.""",
    source=f"{FILES}; {TIME_INDEX}",
    without=SEARCHED_ALIKE,
)
TIX_7 = clause(
    "TIX-7",
    """The search is the offset index's (OIX-7 to OIX-9), over timestamps: its warm section is the last 683 entries, and
    a lookup in it touches at most 3 pages.""",
    source=f"Kafka Internals, ch. 03, 'AbstractIndex: mmap, the warm-section search, and locking'; {ABSTRACT}",
    without=SEARCHED_ALIKE,
)
TIX_8 = clause(
    "TIX-8",
    """Truncating to an offset keeps the entries below it, and no other. The slots that are no longer in use keep what
    they hold, and the file its size. Truncating the index leaves no entry.""",
    source=TIME_INDEX,
    without=SEARCHED_ALIKE,
)
TIX_9 = clause(
    "TIX-9",
    """Making a new file, resizing, trimming, closing, resetting and opening are as with the offset index (OIX-13 to
    OIX-19), in slots of 12 bytes. The last entry is read again where the length changed.""",
    source=f"{TIME_INDEX}; {ABSTRACT}",
    without=OF_ONE_CALL,
)
TIX_10 = clause(
    "TIX-10",
    """The sanity check fails if there are entries and the last one's timestamp is below the first one's or its offset
    below the base offset, or if the file is no whole number of slots. Opening a log does not call it in 4.3.0.""",
    source=f"{TIME_INDEX}; LogSegment.sanityCheck, Kafka 4.3.0; KAFKA-19200",
    without=OF_ONE_CALL,
)
TIX_11 = clause(
    "TIX-11",
    "The n-th entry is answered, from 0; to ask for one at or beyond their number is refused.",
    source=TIME_INDEX,
    without=OF_ONE_CALL,
)
TIX_12 = clause(
    "TIX-12",
    """In the file of a segment at rest timestamps and offsets rise from entry to entry, and the file is a whole number
    of slots.""",
    source=f"{FILES}; {TIME_INDEX}",
    without=OF_A_LOG_ON_DISK,
)
TIX_13 = clause(
    "TIX-13",
    """An entry (T, O) is true: O lies in a batch whose largest timestamp is T, and no batch before that has a larger
    one. Else a reader is led past records of the time that it wants. What a batch's largest timestamp is, its header
    says; with LogAppendTime that is the time of the append.""",
    source=f"{FILES}; LogSegment.append, findOffsetByTimestamp, Kafka 4.3.0; KIP-33",
    without=OF_A_LOG_ON_DISK,
)
TIX_14 = clause(
    "TIX-14",
    """After a clean stop, and in every segment but the last, the last entry has the largest timestamp of the segment's
    batches; only where no batch has a timestamp is there no entry. Else the segment is deleted too early, or passed
    over when a time is looked for.""",
    source=f"{FILES}; LogSegment.onBecomeInactiveSegment, close and recover, Kafka 4.3.0",
    without=OF_A_LOG_ON_DISK,
)
TIX_15 = clause(
    "TIX-15",
    """After a clean stop, and in every segment but the last, the file has no unwritten slot, and no entry beyond the
    segment's end. A killed broker leaves both in its last segment. An unwritten slot at the end counts as the time 0:
    in a segment that is not recovered, retention then takes it for the oldest of all.""",
    source=f"{FILES}; {ABSTRACT}; LogSegment.largestTimestamp, Kafka 4.3.0; KAFKA-4734",
    without=OF_A_LOG_ON_DISK,
)
TIX_16 = clause(
    "TIX-16",
    """A segment that lacks its time index alone gets an empty one when the log is loaded; its largest timestamp is then
    the time at which the .log file was modified last. Kafka Internals says that a lost index is made again: that is so
    of the offset index, and of the time index in a segment that is recovered.""",
    source="LogLoader.loadSegmentFiles, LogSegment.sanityCheck and largestTimestamp, Kafka 4.3.0",
    without={
        **OF_A_LOG_ON_DISK,
        "spec": "of the index alone there is nothing left to say",
        "impl": "of the index alone there is nothing left to say: making an empty one is the segment's (SEG-21)",
        "mutant": "a missing file",
    },
)

REFUSALS = {
    "offset below": TIX_2,
    "time below": TIX_2,
    "full": TIX_4,
    "overfull": TIX_4,
    "overflow": TIX_5,
    "no slot": TIX_9,
    "too short": TIX_9,
    "read-only": TIX_9,
    "corrupt": TIX_10,
    "no such entry": TIX_11,
}
"""The clause by which the implementation refuses."""

LAYOUT = Struct(">qi")
BASE = 100
MAX_SIZE = 65
"""Bytes: five slots, and no whole number of them."""


class Entry(NamedTuple):
    """A timestamp, ms, and an offset."""

    timestamp: int
    offset: int


def entries(index: Index) -> list[Entry]:
    """Those in use."""
    return [Entry(timestamp, index.base_offset + relative) for timestamp, relative in index.used]


@states("TIX-2")
def rising(state: Index) -> bool:
    """Whether timestamps rise and offsets never fall from entry to entry: what a search relies on."""
    return all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(state.used))


def index_of(data: bytes, base_offset: int, max_index_size: int, used: int, is_open: bool, writable: bool) -> Index:
    """The index over a file of these bytes."""
    index = Index(base_offset, max_index_size, is_open=is_open, writable=writable)
    return mapped.laid(index, LAYOUT, data, used)


def initial(base_offset: int = BASE, max_index_size: int = MAX_SIZE) -> Index:
    """A new index. `max_index_size` bytes, at least a slot."""
    return Index(base_offset, max_index_size, slots=max_index_size // LAYOUT.size, is_open=True)


def last_entry(index: Index) -> Entry:
    if not index.used:
        return Entry(NO_TIMESTAMP, index.base_offset)
    timestamp, relative = index.used[-1]
    return Entry(timestamp, index.base_offset + relative)


@states("TIX-4")
def is_full(index: Index) -> bool:
    """Whether at most one slot is left."""
    return len(index.used) >= index.slots - 1


class Observation(TypedDict, total=False):
    """The index; of a closed one the file alone."""

    open: bool
    fileLength: int
    """bytes"""
    file: str
    """hexadecimal, where it is short"""
    entries: list[list[int]]
    """[timestamp, offset]"""
    maxEntries: int
    length: int
    """bytes"""
    isFull: bool
    lastEntry: list[int]


def observe(index: Index) -> Observation:
    length = index.slots * LAYOUT.size + len(index.odd)
    shown: dict[str, Any] = {"open": index.is_open, "fileLength": length}
    if length <= SHOWN:
        shown["file"] = mapped.content(index, LAYOUT).hex()
    if index.is_open:
        shown |= {
            "entries": [[timestamp, index.base_offset + relative] for timestamp, relative in index.used],
            "maxEntries": index.slots,
            "length": length,
            "isFull": is_full(index),
            "lastEntry": list(last_entry(index)),
        }
    return cast(Observation, Fields(shown))


machine = Machine("time_index", initial, observe)


def _open(id: str) -> icontract.require:
    """What the clause of that id says is asked of an open index."""
    return icontract.require(lambda state: state.is_open, f"{id} a closed index is not used")


def _rising(id: str) -> icontract.require:
    """What the clause of that id says relies on the order of the entries."""
    return icontract.require(lambda state: rising(state), f"{id} entries rise")


def _changes_nothing(id: str) -> icontract.ensure:
    """What the clause of that id says is a question."""
    return icontract.ensure(lambda state, result: result.state == state, f"{id} a question changes nothing")


@machine.operation("maybeAppend", "TIX-2", "TIX-3", "TIX-4", "TIX-5", "TIX-9")
@_open("TIX-3")
@icontract.require(lambda state: not state.odd, "TIX-9 the file is a whole number of slots")
@icontract.ensure(lambda state, result: not rising(state) or rising(result.state), "TIX-2 entries that rise still do")
@icontract.ensure(
    lambda state, timestamp, offset, result: (
        result.state == state
        if isinstance(result.result, Refused) or timestamp <= last_entry(state).timestamp
        else entries(result.state) == [*entries(state), Entry(timestamp, offset)]
    ),
    "TIX-3 one entry after the others if the time is later, else nothing",
)
@icontract.ensure(
    lambda state, skip_full_check, result: (
        skip_full_check or result.state.used == state.used or len(result.state.used) < state.slots
    ),
    "TIX-4 the last slot is kept",
)
def maybe_append(state: Index, timestamp: int, offset: int, skip_full_check: bool) -> Step[Index, None]:
    """The largest timestamp so far, and the offset that has it."""
    last = last_entry(state)
    if is_full(state) and not skip_full_check:
        return Step(state, Refused("TIX-4", ILLEGAL_ARGUMENT))
    if state.used and offset < last.offset:
        return Step(state, Refused("TIX-2", INVALID_OFFSET))
    if state.used and timestamp < last.timestamp:
        return Step(state, Refused("TIX-2", ILLEGAL_STATE))
    if timestamp <= last.timestamp:
        return Step(state)
    if not state.writable:
        return Step(state, Refused("TIX-9", READ_ONLY))
    if len(state.used) == state.slots:
        return Step(state, Refused("TIX-4", BUFFER_OVERFLOW))
    if not 0 <= offset - state.base_offset <= mapped.MOST_RELATIVE:
        return Step(state, Refused("TIX-5", OVERFLOW))
    return Step(mapped.append(state, (timestamp, offset - state.base_offset)))


@machine.operation("lookup", "TIX-6")
@_open("TIX-6")
@_rising("TIX-6")
@_changes_nothing("TIX-6")
@icontract.ensure(
    lambda state, timestamp, result: (
        result.result
        == list(max((e for e in entries(state) if e.timestamp <= timestamp), default=(NO_TIMESTAMP, state.base_offset)))
    ),
    "TIX-6 the greatest timestamp that is not above the target",
)
def lookup(state: Index, timestamp: int) -> Step[Index, list[int]]:
    """From which offset to read, to find that time."""
    below = [e for e in entries(state) if e.timestamp <= timestamp]
    return Step(state, list(below[-1] if below else Entry(NO_TIMESTAMP, state.base_offset)))


@machine.operation("pagesTouched", "TIX-7")
@_open("TIX-7")
@_rising("TIX-7")
@_changes_nothing("TIX-7")
def pages_touched(state: Index, timestamp: int) -> Step[Index, list[int]]:
    """The pages of the file that a lookup reads."""
    below = [n for n, e in enumerate(entries(state)) if e.timestamp <= timestamp]
    slots = mapped.probed(len(state.used), LAYOUT, lambda n: state.used[n][0], timestamp)
    return Step(state, mapped.pages([*slots, *below[-1:]], LAYOUT))


@machine.operation("entry", "TIX-11")
@_open("TIX-11")
@icontract.require(lambda n: n >= 0, "TIX-11 entries are counted from 0")
@_changes_nothing("TIX-11")
def entry(state: Index, n: int) -> Step[Index, list[int]]:
    """The n-th."""
    if n >= len(state.used):
        return Step(state, Refused("TIX-11", ILLEGAL_ARGUMENT))
    return Step(state, list(entries(state)[n]))


@machine.operation("truncateTo", "TIX-8")
@_open("TIX-8")
@_rising("TIX-8")
@icontract.ensure(
    lambda state, offset, result: entries(result.state) == [e for e in entries(state) if e.offset < offset],
    "TIX-8 what is below the offset stays, and nothing else",
)
@icontract.ensure(
    lambda state, result: mapped.content(result.state, LAYOUT) == mapped.content(state, LAYOUT),
    "TIX-8 the file stays as it is",
)
def truncate_to(state: Index, offset: int) -> Step[Index, None]:
    """The log was cut there."""
    return Step(mapped.keep(state, sum(1 for e in entries(state) if e.offset < offset)))


@machine.operation("truncate", "TIX-8")
@_open("TIX-8")
@icontract.ensure(lambda result: result.state.used == (), "TIX-8 no entry is left")
def truncate(state: Index) -> Step[Index, None]:
    """The log was emptied."""
    return Step(mapped.keep(state, 0))


@states("TIX-9")
def resized(state: Index, size: int) -> Step[Index]:
    """The index in a file of the whole slots that fit, and whether that changed it; refused if entries do not fit."""
    after = mapped.with_size(state, LAYOUT, mapped.rounded(size, LAYOUT))
    if after is state:
        return Step(state, False)
    if len(after.used) < len(state.used):
        return Step(state, Refused("TIX-9", ILLEGAL_ARGUMENT))
    return Step(replace(after, writable=True), True)


@machine.operation("resize", "TIX-9")
@_open("TIX-9")
@icontract.require(lambda new_size: new_size >= 0, "TIX-9 a size is not negative")
@icontract.ensure(
    lambda state, new_size, result: (
        isinstance(result.result, Refused)
        or (result.state.used == state.used and result.state.slots == new_size // LAYOUT.size)
    ),
    "TIX-9 the entries stay, and the slots are those that fit",
)
def resize(state: Index, new_size: int) -> Step[Index, bool]:
    """Longer when a segment becomes the last one again, shorter when it no longer is."""
    return resized(state, new_size)


@machine.operation("trimToValidSize", "TIX-9")
@icontract.ensure(
    lambda state, result: not state.is_open or (result.state.slots, result.state.odd) == (len(state.used), b""),
    "TIX-9 the file is the entries in use",
)
def trim_to_valid_size(state: Index) -> Step[Index, None]:
    """Another segment is the last one now."""
    return Step(resized(state, len(state.used) * LAYOUT.size).state if state.is_open else state)


@machine.operation("reset", "TIX-9")
@_open("TIX-9")
@icontract.ensure(
    lambda state, result: result.state.used == () and result.state.slots == state.max_index_size // LAYOUT.size,
    "TIX-9 no entry, and all slots",
)
def reset(state: Index) -> Step[Index, None]:
    """The segment is recovered, and its index made again."""
    return Step(resized(mapped.keep(state, 0), state.max_index_size).state)


@machine.operation("sanityCheck", "TIX-10")
@_open("TIX-10")
@_changes_nothing("TIX-10")
def sanity_check(state: Index) -> Step[Index, None]:
    """Whether obvious things are wrong."""
    last = last_entry(state)
    wrong = bool(state.used) and (last.timestamp < state.used[0][0] or last.offset < state.base_offset)
    return Step(state, Refused("TIX-10", CORRUPT) if wrong or state.odd else None)


@machine.operation("close", "TIX-9")
@icontract.ensure(
    lambda state, result: (
        not state.is_open or mapped.content(result.state, LAYOUT) == b"".join(LAYOUT.pack(*c) for c in state.used)
    ),
    "TIX-1 the file is the entries, one after the other",
)
def close(state: Index) -> Step[Index, None]:
    """The broker stops."""
    return Step(mapped.closed(trim_to_valid_size(state).state))


@machine.operation("closeHandler", "TIX-9")
def close_handler(state: Index) -> Step[Index, None]:
    """The disk has failed, or the file is to be deleted."""
    return Step(mapped.closed(state))


_all_entries = icontract.ensure(
    lambda result: result.state.is_open and len(result.state.used) == result.state.slots,
    "TIX-9 every whole slot is an entry",
)


@machine.operation("open", "TIX-9", kind="restart")
@_all_entries
def open_(state: Index, max_index_size: int, writable: bool) -> Step[Index, None]:
    """The process stops, in whatever way, and the next one opens the file."""
    return Step(mapped.opened(state, max_index_size, writable))


@machine.operation("openNew", "TIX-9")
@icontract.require(lambda max_index_size: max_index_size >= 0, "TIX-9 a size is not negative")
def open_new(state: Index, max_index_size: int) -> Step[Index, None]:
    """The file is deleted, and made again."""
    if max_index_size < LAYOUT.size:
        return Step(Index(state.base_offset, state.max_index_size), Refused("TIX-9", ILLEGAL_ARGUMENT))
    return Step(initial(state.base_offset, max_index_size))


@machine.operation("openFile", "TIX-9", "TIX-1", kind="damage")
@icontract.require(lambda file: mapped.is_hexadecimal(file), "TIX-1 bytes")
@_all_entries
def open_file(state: Index, file: str, max_index_size: int, writable: bool) -> Step[Index, None]:
    """The next process finds a file of these bytes (hexadecimal)."""
    there = index_of(bytes.fromhex(file), state.base_offset, max_index_size, 0, False, True)
    return Step(mapped.opened(there, max_index_size, writable))


@machine.operation("fill", "TIX-2", "TIX-9")
@icontract.require(lambda count: 0 < count <= 4096, "TIX-9 no more than is easily compared")
def fill(state: Index, count: int) -> Step[Index, None]:
    """The file is deleted, and made again with just so many slots; then they are filled, 10 ms apart, two of them with
    the same offset each time: an index of more than one page."""
    return Step(Index(state.base_offset, count * LAYOUT.size, _filled(count), slots=count, is_open=True))


@cache
def _filled(count: int) -> tuple[mapped.Cell, ...]:
    return tuple((10 * n, n // 2) for n in range(1, count + 1))


# ---- a file beside its log -------------------------------------------------------------------------------------------
class Batch(NamedTuple):
    """What of a batch matters here: its first and last offset, and the largest timestamp that its header names, ms."""

    base_offset: int
    last_offset: int
    max_timestamp: int


@states("TIX-12", "TIX-13", "TIX-15")
def verdict(batches: Sequence[Batch], before: Entry | None, e: Entry) -> str:
    """What is wrong with an entry of a segment with these batches, by the clause; "" if nothing. `before`: the entry
    before it."""
    if not batches or e.offset > batches[-1].last_offset:
        return "TIX-15"
    if before is not None and (e.offset <= before.offset or e.timestamp <= before.timestamp):
        return "TIX-12"
    n = next(n for n, b in enumerate(batches) if b.last_offset >= e.offset)
    true = batches[n].base_offset <= e.offset and batches[n].max_timestamp == e.timestamp
    return "" if true and all(b.max_timestamp <= e.timestamp for b in batches[:n]) else "TIX-13"


@states("TIX-14")
def is_complete(batches: Sequence[Batch], file: Sequence[Entry]) -> bool:
    """Whether the last entry has the largest timestamp of the batches."""
    most = max((b.max_timestamp for b in batches), default=NO_TIMESTAMP)
    return (file[-1].timestamp if file else NO_TIMESTAMP) == most


class Breaches(TypedDict):
    """The clause that each entry breaks, or ""; whether the last one is the largest."""

    entries: list[str]
    complete: bool


audit = without_state("time_index", __name__)
"""What the audit asks of a log at rest."""


@audit.operation("breaches", "TIX-12", "TIX-13", "TIX-14", "TIX-15")
@icontract.require(
    lambda batches, entries: (
        all(len(b) == 3 for b in batches)
        and all(len(e) == 2 for e in entries)
        and all(a[1] < b[0] for a, b in pairwise(batches))
    ),
    "TIX-13 a sound log",
)
def breaches(
    state: Nothing, batches: Sequence[Sequence[int]], entries: Sequence[Sequence[int]]
) -> Step[Nothing, Breaches]:
    """A segment that was closed cleanly: its batches (first and last offset, largest timestamp) beside the entries of
    its file (timestamp, offset). For each entry the clause that it breaks, or ""; and whether the last one is the
    largest, which is asked only where all entries are right."""
    log, file = [Batch(*b) for b in batches], [Entry(*e) for e in entries]
    verdicts = [verdict(log, b, e) for b, e in zip([None, *file[:-1]], file, strict=True)] if file else []
    return Step(state, {"entries": verdicts, "complete": any(verdicts) or is_complete(log, file)})
