"""The time index of a segment: from the largest timestamps so far to the offsets that have them.

An entry (T, O) says that T is the largest timestamp in the segment up to offset O. A reader that wants the first
record of a time or later looks up the greatest timestamp that is not above it, and reads the log from that entry's
offset on. The last entry of a closed segment is its largest timestamp: retention by time and the choice of the
segment in which a time is looked for go by it.

Source: Kafka Internals, ch. 03, "Data structures: the index files"; KIP-33; TimeIndex, AbstractIndex, LogSegment and
LogLoader, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from struct import Struct
from typing import Any, NamedTuple, TypedDict, cast

import icontract

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Fields, Json, Machine, Nothing, Refused, Step, without_state
from kafkaspec.contract.recording import Recording
from kafkaspec.spec.common import mapped_index as mapped
from kafkaspec.spec.common.mapped_index import (
    BUFFER_OVERFLOW,
    CORRUPT,
    ILLEGAL_ARGUMENT,
    ILLEGAL_STATE,
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
NO_TIMESTAMP = -1


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


# ---- arguments -------------------------------------------------------------------------------------------------------
def _offsets(state: Index) -> list[int]:
    used = [c[1] for c in state.used]
    known = [state.base_offset + relative for relative in used[:: max(1, len(used) // 50)]]
    last = state.base_offset + max([*used, 0])
    near = [last + 1, last + 2, last + 9, *(o + d for o in dict.fromkeys(known) for d in (0, -1, 1))]
    limit = state.base_offset + mapped.MOST_RELATIVE
    again = [last, last] if known else []
    return [*again, *dict.fromkeys([*near, state.base_offset, state.base_offset - 1, limit, limit + 1, 0])]


def _timestamps(state: Index) -> list[int]:
    used = [c[0] for c in state.used]
    known = used[:: max(1, len(used) // 50)]
    last = max([*used, 0])
    near = [last + 1, last + 5, *(t + d for t in dict.fromkeys(known) for d in (0, -1, 1)), -1, 0, 2**62]
    again = [last, last] if known else []
    return [*again, *(t for t in dict.fromkeys(near) if -(2**63) <= t < 2**63)]


FILES_HEX = [
    "",
    "000000000000000500000004000000000000000900000008",
    "000000000000000500000004000000000000000900000008000000000000000000000000",
    "0000000000000005000000040000000000",
    "0000000000000005fffffffe",
    "000000000000000100000001000000000000000200000005000000000000000300000005000000000000000400000009",
    "00000000000000090000000400000000000000050000000800000000000000070000000900000000000000080000000a",
]
_LOGS: list[list[list[int]]] = [
    [],
    [[100, 104, 10], [105, 105, 12], [109, 112, 11], [113, 113, 15]],
    [[90, 104, 7], [105, 120, 7]],
    [[100, 104, -1]],
]
_ENTRIES: list[list[list[int]]] = [
    [],
    [[10, 104], [15, 113]],
    [[12, 105], [15, 113]],
    [[12, 105]],
    [[11, 112], [15, 113]],
    [[7, 104]],
    [[7, 103]],
    [[12, 107], [15, 113]],
    [[12, 105], [10, 104]],
    [[15, 113], [16, 113]],
    [[15, 113], [0, 100]],
    [[15, 113], [19, 130]],
]

machine.candidates |= {
    "timestamp": _timestamps,
    "offset": _offsets,
    "skip_full_check": lambda state: [False, True],
    "n": lambda state: [max(len(state.used) - 1, 0), len(state.used), 0],
    "new_size": lambda state: [len(state.used) * 12 + d for d in (0, 13, 11, 36)] + [0, 65, 180],
    "max_index_size": lambda state: [MAX_SIZE, 96, 12, 0, 11],
    "open:max_index_size": lambda state: [MAX_SIZE, 96, 12],
    "writable": lambda state: [True, False],
    "count": lambda state: [800, 400],
    "file": lambda state: FILES_HEX,
}
audit.candidates |= {"batches": lambda state: _LOGS, "entries": lambda state: _ENTRIES}


# ---- known deviations of released Kafka ------------------------------------------------------------------------------
def _torn(ghost: Any, before: Index, op: str, arguments: Mapping[str, Any], after: Index) -> Any:
    """The timestamp that a refused append has left in the next slot, if any, until the file is another one."""
    if op in mapped.MADE_ANEW:
        return None
    torn = ghost is None and op == "maybeAppend" and _refused_for_its_offset(before, arguments)
    return arguments["timestamp"] if torn else ghost


def _refused_for_its_offset(state: Index, arguments: Mapping[str, Any]) -> bool:
    if not state.is_open or state.odd:
        return False
    step = machine.operations["maybeAppend"].body(state, **arguments)
    return isinstance(step.result, Refused) and step.result.clause == "TIX-5"


def _leaves_the_timestamp(
    ghost: Any, state: Index, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if ghost is None or not state.is_open or "file" not in observation:
        return result, observation
    data = bytearray(mapped.content(state, LAYOUT))
    at = len(state.used) * LAYOUT.size
    data[at : at + 8] = int(ghost).to_bytes(8, "big", signed=True)
    return result, Fields({**observation, "file": data.hex()})


def _kept(ghost: Any, before: Index, op: str, arguments: Mapping[str, Any], after: Index) -> Any:
    """How many entries a truncation has kept, if that was one too many, until the file is another one. The search stops
    at any entry that has the offset; those before it stay."""
    if op in mapped.MADE_ANEW:
        return None
    if ghost is not None or op != "truncateTo" or not before.is_open or not rising(before):
        return ghost
    keys = [e.offset for e in entries(before)]
    slots = mapped.probed(len(keys), LAYOUT, lambda n: keys[n], arguments["offset"])
    hit = next((n for n in slots[1:] if keys[n] == arguments["offset"] and n > 0), None)
    return None if hit == len(after.used) else hit


def _keeps_one_of_equals(
    ghost: Any, state: Index, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op != "truncateTo" or ghost is None:
        return result, observation
    return result, observe(_longer(state, ghost))


def _longer(state: Index, entries: int) -> Index:
    """The state with so many entries in use."""
    held = (state.used + state.beyond)[:entries]
    return replace(state, used=held, beyond=state.beyond[entries - len(state.used) :])


def _cut(ghost: Any, before: Index, op: str, arguments: Mapping[str, Any], after: Index) -> Any:
    """Whether a refused resizing has cut the file, and it is the same file still."""
    if op in mapped.MADE_ANEW:
        return False
    return ghost or (
        op == "resize" and before.is_open and isinstance(resized(before, arguments["new_size"]).result, Refused)
    )


def _cuts(
    ghost: Any, state: Index, op: str, arguments: Mapping[str, Any], result: Json | Refused, observation: Json
) -> tuple[Json | Refused, Json]:
    if op == "resize" and isinstance(result, Refused):
        length = mapped.rounded(arguments["new_size"], LAYOUT)
        return result, observe(mapped.closed(mapped.with_size(state, LAYOUT, length)))
    return result, observation


machine.deviations += [
    Deviation(
        id="TIX-D1",
        clause="TIX-5",
        title="An append that is refused because its offset does not fit leaves its timestamp behind",
        versions="4.3.0 (seen)",
        condition="""an entry is appended that would be made but for its offset, which is below the base offset or more
        than 2147483647 above it""",
        history=("init", "maybeAppend timestamp=7 offset=99 skipFullCheck=false"),
        cause="""The timestamp is written through the mapping, which moves its position by 8 bytes, before the offset is
        looked at; the position is not set back.""",
        effect="""The next append begins 8 bytes further on, counts an entry that nobody wrote, and throws an
        IllegalStateException, and so does every one after it, until the index is truncated or opened again. A segment
        looks at the offset of an append beforehand, so that this needs another caller.""",
        fix="Work out the relative offset before anything is written, as the offset index does.",
        rewrite=_leaves_the_timestamp,
        advance=_torn,
        lost=lambda ghost: ghost is not None,
    ),
    Deviation(
        id="TIX-D2",
        clause="TIX-8",
        title="Of entries with one offset, truncating to that offset may keep the first",
        versions="4.3.0 (seen)",
        condition="""two entries have the offset that is truncated to, which appending with a later timestamp and the
        same offset makes, and the search meets the later one first""",
        history=(
            "init",
            "maybeAppend timestamp=1 offset=101 skipFullCheck=false",
            "maybeAppend timestamp=2 offset=105 skipFullCheck=false",
            "maybeAppend timestamp=3 offset=105 skipFullCheck=false",
            "maybeAppend timestamp=4 offset=109 skipFullCheck=false",
            "truncateTo offset=105",
        ),
        cause="The search ends at any entry that equals the target, and what lies before that entry is kept.",
        effect="""An entry stays whose offset is no longer in the log. A segment appends an entry for an offset once, so
        that this needs another caller.""",
        fix="Go down to the first of equal offsets.",
        rewrite=_keeps_one_of_equals,
        advance=_kept,
        lost=lambda ghost: ghost is not None,
    ),
    Deviation(
        id="TIX-D3",
        clause="TIX-9",
        title="Resizing a time index to less than its entries cuts the file before it is refused",
        versions="4.3.0 (seen)",
        condition="the new size, in whole slots, is less than the entries in use",
        history=(
            "init",
            "maybeAppend timestamp=1 offset=101 skipFullCheck=false",
            "maybeAppend timestamp=2 offset=105 skipFullCheck=false",
            "resize newSize=12",
        ),
        cause="As with the offset index (OIX-D3): it is the same code.",
        effect="""A broker whose segment.index.bytes was lowered below the size of the last segment's time index fails
        to load the log. When it is started again, the file is cut: the segment's largest timestamp is then the last
        one that is left, and retention by time and lookups by time take the segment for older than it is.""",
        fix="Compare the new size with the entries in use first, and make the index again where it does not fit.",
        rewrite=_cuts,
        initial=bool,
        advance=_cut,
        lost=bool,
    ),
]

RECORDINGS = (
    Recording(
        "time-index.ndjson",
        "accepted",
        deviations=("TIX-D1", "TIX-D2", "TIX-D3"),
        source="TimeIndex of Kafka 4.3.0 over a mapped file, arbitrary calls",
    ),
    Recording(
        "kafka-4.3.0-time_index.ndjson.gz",
        "accepted",
        deviations=(
            "TIX-D1",
            "TIX-D2",
            "TIX-D3",
        ),
        source="TimeIndex of Kafka 4.3.0 as a target of the judge, short of where nothing can be compared",
    ),
)
