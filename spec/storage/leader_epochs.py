"""A partition's leader epochs: at which offset each leader began to write, and the small file that remembers it.

A follower that returns asks where the leader's copy of its last epoch ended, and cuts its own log there. So the entries
must be right after any crash: an assignment is on the disk before the record that needs it; a truncation reaches the
disk later, and what it leaves behind is cut away when the log is loaded again.

Source: Kafka Internals, ch. 03, "LeaderEpochFileCache"; KIP-101, KIP-279; LeaderEpochFileCache,
LeaderEpochCheckpointFile, CheckpointFile, LogLoader and UnifiedLog, Kafka 4.3.0.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypedDict, cast

import icontract

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.machine import Fields, Machine, Nothing, Refused, Step, without_state
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, INT_MAX, LONG_MAX, STORAGE_EXCEPTION

PREFIX = "LEC"
TITLE = "Leader epochs"

CHAPTER = "Kafka Internals, ch. 03, 'LeaderEpochFileCache'"
CACHE = "LeaderEpochFileCache, Kafka 4.3.0"
FILE = "LeaderEpochCheckpointFile and CheckpointFile, Kafka 4.3.0"

A_QUESTION = {
    "model": "a question about one state, that changes nothing",
    "proof": "a question about one state, that changes nothing",
}
AT_REST = {"impl": "about a log at rest: the audit looks for it"}
OF_THE_FILE = {"model": "a matter of text, not of interleavings", "proof": "a matter of text: tested on every kind"}

LEC_1 = clause(
    "LEC-1",
    """The entries are pairs of a leader epoch and the offset at which it began. In every state the epochs rise
    strictly from entry to entry, and so do the offsets; none is negative.""",
    source=f"{CHAPTER}; {CACHE}",
)
LEC_2 = clause(
    "LEC-2",
    """Assigning an epoch and an offset changes nothing if the epoch is the latest one and began no later. Otherwise
    every entry from the latest one down that has no lower epoch or no lower offset is dropped, and the new one is
    the latest.""",
    source=f"{CHAPTER}; {CACHE}",
)
LEC_3 = clause(
    "LEC-3",
    "Assigning a negative epoch or a negative offset is refused.",
    source=CACHE,
    without={"model": "the model has no negative numbers", "proof": "the model has no negative numbers"},
)
LEC_4 = clause(
    "LEC-4",
    """An assignment that changes something is in the file, and outlives a crash, before it returns: no batch is in
    the log whose epoch is not in the file.""",
    source=f"{CACHE}; UnifiedLog.append, Kafka 4.3.0",
)
LEC_5 = clause(
    "LEC-5",
    """Truncating from the end drops the entries that begin at the given offset or beyond; a negative offset drops
    none.""",
    source=f"{CHAPTER}; {CACHE}",
)
LEC_6 = clause(
    "LEC-6",
    """Truncating from the start drops the entries that begin at or before the given offset and puts the last of them
    back, as one that begins there. Without any such entry nothing changes.""",
    source=f"{CHAPTER}; {CACHE}",
)
LEC_7 = clause(
    "LEC-7",
    """A truncation reaches the file later, if it dropped anything: until then, and after a crash or a stop before
    then, the file has the entries from before it. What is written is the entries of the moment of writing.""",
    source=f"{CHAPTER}; {CACHE}; KafkaScheduler.shutdown, Kafka 4.3.0; KAFKA-15046, KAFKA-16541",
)
LEC_8 = clause("LEC-8", "Clearing drops all entries, and the file has none when it returns.", source=CACHE)
LEC_9 = clause(
    "LEC-9",
    """Loading a log reads the file, assigns its entries in the order of its lines without writing, drops what begins
    at the log's end or beyond, and moves the first entry to the checkpointed log start. So it comes to the entries
    that there were, whatever truncation had not reached the file, unless batches were appended since to the epoch that
    the truncation had left as the latest: those write nothing, and what was cut away may come back over them.""",
    source="LogLoader.load and UnifiedLog.create, Kafka 4.3.0; KAFKA-15046, KAFKA-16541",
)
LEC_10 = clause(
    "LEC-10",
    """The end offset of the latest epoch is the log's end. Of any other epoch it is the offset at which the next
    higher entry begins; the epoch answered is the highest entry's that is not above the requested one, or the
    requested one itself where all are above it.""",
    source=f"{CHAPTER}; {CACHE}; KIP-101, KIP-279",
)
LEC_11 = clause(
    "LEC-11",
    """Where the end offset of a requested epoch is known, it is not above the log's end, and no record of the log
    below it is of a higher epoch.""",
    source=f"{CHAPTER}; KIP-101, KIP-279",
)
LEC_12 = clause(
    "LEC-12",
    """The end offset of epoch -1, of an epoch above the latest one, and of any epoch where there is no entry, is
    unknown: epoch -1, offset -1.""",
    source=f"{CACHE}; KIP-101",
    without=A_QUESTION,
)
LEC_13 = clause(
    "LEC-13",
    "The epoch of an offset is that of the last entry that begins at or before it; before the first entry none.",
    source=CACHE,
    without=A_QUESTION,
)
LEC_14 = clause(
    "LEC-14",
    "The previous epoch of an epoch is the nearest lower one that has an entry, the next epoch the nearest higher.",
    source=CACHE,
    without=A_QUESTION,
)
LEC_15 = clause(
    "LEC-15",
    """The entries in a range are what the two truncations, from the start unless it is negative and then from the
    end, would leave of them; the entries themselves stay.""",
    source=CACHE,
    without=A_QUESTION,
)
LEC_16 = clause(
    "LEC-16",
    """The checkpoint file is text: a line with the version 0, a line with the number of entries, and a line
    `epoch offset` for each, from the lowest epoch up, every line ended by a newline.""",
    source=f"{CHAPTER}; {FILE}",
    without=OF_THE_FILE,
)
LEC_17 = clause(
    "LEC-17",
    """Reading the file gives its entries in the order of its lines; nothing if it has no second line. Another
    version, a line that is no number or no entry, or a number of entries that is not the one announced makes it
    unreadable: a storage error, which takes the log's directory out of service.""",
    source=FILE,
    without=OF_THE_FILE,
)
LEC_18 = clause(
    "LEC-18",
    """The file is written beside its place, flushed, and renamed over it: a crash at any moment leaves the old one or
    the new one, whole.""",
    source=f"{FILE}; Utils.atomicMoveWithFallback, Kafka 4.3.0",
    without={
        "spec": "the spec's file changes in one step",
        "model": "replacement of a file is modelled beside the checkpoint files",
        "proof": "replacement of a file is proved beside the checkpoint files",
    },
)
LEC_19 = clause(
    "LEC-19",
    """The leader epochs in a log's batches after the last one of a format before 2 never fall. A batch without one (-1:
    of a format before 2, and converted by the cleaner) says nothing.""",
    source=f"{CHAPTER}; UnifiedLog.append and MemoryRecords.filterTo, Kafka 4.3.0; KIP-101",
    without=AT_REST,
)
LEC_20 = clause(
    "LEC-20",
    """For every batch with an epoch that lies at or above the log start, and after the last batch of a format before
    2, the last entry that begins at or before it (for one in which the log start lies, at or before the log start) is
    its epoch's, and the next entry begins above its last offset. An entry whose epoch no batch has is legal.""",
    source=f"{CHAPTER}; UnifiedLog.append, Kafka 4.3.0",
    without=AT_REST,
)
LEC_21 = clause(
    "LEC-21",
    """Entries that begin above the log's end, and a first entry that begins below the log start, are what a truncation
    leaves that had not reached the file. A first entry above the log start of a log that was not stopped cleanly is
    one whose log start had not been checkpointed.""",
    source="LogLoader.load and UnifiedLog.maybeIncrementLogStartOffset, Kafka 4.3.0; KAFKA-15046",
    without={**AT_REST, "proof": "it says what may be left, not what must"},
)

NO_EPOCH = -1
NO_OFFSET = -1


class Entry(NamedTuple):
    """An epoch and the offset of its first record."""

    epoch: int
    start_offset: int


Entries = tuple[Entry, ...]


@states("LEC-1")
def rising(entries: Entries) -> bool:
    """Whether epochs and offsets rise from entry to entry, and none is negative."""
    return all(e.epoch >= 0 and e.start_offset >= 0 for e in entries) and all(
        a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in itertools.pairwise(entries)
    )


@states("LEC-2")
def assigned(entries: Entries, new: Entry) -> Entries:
    """The entries after one was assigned."""
    if entries and entries[-1].epoch == new.epoch and entries[-1].start_offset <= new.start_offset:
        return entries
    kept = entries
    while kept and (kept[-1].epoch >= new.epoch or kept[-1].start_offset >= new.start_offset):
        kept = kept[:-1]
    return (*kept, new)


@states("LEC-5")
def cut_from_end(entries: Entries, end_offset: int) -> Entries:
    """The entries that begin below the offset; all of them if it is negative."""
    return tuple(e for e in entries if end_offset < 0 or e.start_offset < end_offset)


@states("LEC-6")
def cut_from_start(entries: Entries, start_offset: int) -> Entries:
    """The entries of a log that begins at the offset."""
    before = [e for e in entries if e.start_offset <= start_offset]
    moved = (Entry(before[-1].epoch, start_offset),) if before else ()
    return moved + entries[len(before) :]


@states("LEC-10", "LEC-12")
def end_offset_for(entries: Entries, requested: int, log_end: int) -> tuple[int, int]:
    """The epoch that is answered and its end offset; -1 and -1 where that is unknown."""
    above = [e for e in entries if e.epoch > requested]
    not_above = [e for e in entries if e.epoch <= requested]
    if requested == NO_EPOCH or not entries:
        return NO_EPOCH, NO_OFFSET
    if entries[-1].epoch == requested:
        return requested, log_end
    if not above:
        return NO_EPOCH, NO_OFFSET
    return (not_above[-1].epoch if not_above else requested), above[0].start_offset


@states("LEC-13")
def epoch_at(entries: Entries, offset: int) -> int | None:
    """The epoch of the record at an offset; None before the first entry."""
    return next((e.epoch for e in reversed(entries) if e.start_offset <= offset), None)


# ---- the file --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Unreadable:
    """Why a checkpoint file cannot be read. `line` counts from 1; `text` is the piece of it that is to blame."""

    reason: Literal["version", "line", "count", "negative count", "number"]
    line: int
    text: str = ""


@states("LEC-16")
def text_of(entries: Sequence[Entry]) -> str:
    """The text of a file with these entries."""
    return "".join(f"{line}\n" for line in ("0", len(entries), *(f"{e.epoch} {e.start_offset}" for e in entries)))


def _integer(text: str, largest: int) -> int | None:
    """A whole number as Java reads it; None if it is none or does not fit."""
    if not re.fullmatch(r"[+-]?\d+", text):
        return None
    value = int(text)
    return value if -largest - 1 <= value <= largest else None


@states("LEC-17")
def entries_of(text: str) -> Entries | Unreadable:
    """The entries of a file with this text, in the order of its lines, or why it cannot be read."""
    lines = re.split(r"\r\n|\r|\n", text)
    if lines[-1] == "":
        lines.pop()
    numbers = [_integer(line, INT_MAX) for line in lines[:2]]
    if not lines:
        return ()
    if numbers[0] != 0:
        return Unreadable("line" if numbers[0] is None else "version", 1, lines[0])
    if len(lines) == 1:
        return ()
    if numbers[1] is None or numbers[1] < 0:
        return Unreadable("line" if numbers[1] is None else "negative count", 2, lines[1])
    entries: list[Entry] = []
    for n, line in enumerate(lines[2:], 3):
        parts = re.split(r"\s+", line, flags=re.ASCII)
        while parts and parts[-1] == "":
            parts.pop()
        if len(parts) != 2:
            return Unreadable("line", n, line)
        epoch, offset = _integer(parts[0], INT_MAX), _integer(parts[1], LONG_MAX)
        if epoch is None or offset is None:
            return Unreadable("number", n, parts[0] if epoch is None else parts[1])
        entries.append(Entry(epoch, offset))
    return tuple(entries) if len(entries) == numbers[1] else Unreadable("count", 2, lines[1])


# ---- the state -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Cache:
    """The entries, and the file as a crash would leave it. `scheduled`: a truncation is to be written. `deferred`: it
    is written when `runScheduled` is called; otherwise (a mock scheduler) at once."""

    entries: Entries = ()
    file: str = ""
    scheduled: bool = False
    deferred: bool = False


def initial(deferred: bool = False) -> Cache:
    """No entries; the file is there, and empty."""
    return Cache(deferred=deferred)


class Observation(TypedDict, total=False):
    """The cache, and its file."""

    entries: list[list[int]]
    """[epoch, start offset], rising"""
    latestEpoch: int | None
    file: str
    """the text of the checkpoint file"""
    scheduled: bool
    """a truncation is still to be written"""


def observe(state: Cache) -> Observation:
    """Entries, latest epoch, file."""
    return cast(
        Observation,
        Fields(
            entries=[list(e) for e in state.entries],
            latestEpoch=state.entries[-1].epoch if state.entries else None,
            file=state.file,
            scheduled=state.scheduled,
        ),
    )


machine = Machine("leader_epochs", initial, observe)


def _written(state: Cache, entries: Entries) -> Cache:
    return replace(state, entries=entries, file=text_of(entries))


@states("LEC-7")
def _truncated(state: Cache, entries: Entries, dropped: bool) -> Cache:
    """The state after a truncation to these entries: the file follows later, if any was dropped."""
    if not dropped:
        return state
    if not state.deferred:
        return _written(state, entries)
    return replace(state, entries=entries, scheduled=True)


def stays(state: Cache, result: Step[Cache]) -> bool:
    """A question changes nothing."""
    return result.state == state


def on_disk(state: Cache) -> Entries:
    """The entries that the file has; of an unreadable file none."""
    entries = entries_of(state.file)
    return () if isinstance(entries, Unreadable) else entries


def loaded(entries: Sequence[Entry]) -> Entries:
    """What a list of entries comes to when they are assigned one after the other."""
    out: Entries = ()
    for e in entries:
        out = assigned(out, e)
    return out


_keeps_order = icontract.ensure(lambda result: rising(result.state.entries), "LEC-1 epochs and offsets rise")


def _changes_nothing(id: str) -> icontract.ensure:
    """What the clause of that id says is a question."""
    return icontract.ensure(stays, f"{id} a question changes nothing")


@machine.operation("assign", "LEC-2", "LEC-3", "LEC-4", "LEC-1")
@_keeps_order
@icontract.ensure(
    lambda state, epoch, start_offset, result: (
        isinstance(result.result, Refused)
        or result.state == state
        or (result.state.entries[-1] == (epoch, start_offset) and on_disk(result.state) == result.state.entries)
    ),
    "LEC-4 what was assigned is the latest entry, and in the file",
)
@icontract.ensure(
    lambda state, result: set(result.state.entries[:-1]) <= set(state.entries), "LEC-2 no entry is moved or made up"
)
def assign(state: Cache, epoch: int, start_offset: int) -> Step[Cache, None]:
    """A leader's first offset, before its first batch is appended, or a batch that a follower is about to append."""
    if epoch < 0 or start_offset < 0:
        return Step(state, Refused("LEC-3", ILLEGAL_ARGUMENT))
    entries = assigned(state.entries, Entry(epoch, start_offset))
    return Step(state if entries == state.entries else _written(state, entries))


@machine.operation("truncateFromEndAsyncFlush", "LEC-5", "LEC-7")
@_keeps_order
@icontract.ensure(
    lambda end_offset, result: end_offset < 0 or all(e.start_offset < end_offset for e in result.state.entries),
    "LEC-5 no entry begins at the end or beyond",
)
def truncate_from_end(state: Cache, end_offset: int) -> Step[Cache, None]:
    """The log was cut at that offset."""
    entries = cut_from_end(state.entries, end_offset)
    return Step(_truncated(state, entries, entries != state.entries))


@machine.operation("truncateFromStartAsyncFlush", "LEC-6", "LEC-7")
@_keeps_order
@icontract.ensure(
    lambda state, start_offset, result: (
        epoch_at(result.state.entries, start_offset) == epoch_at(state.entries, start_offset)
        and all(e.start_offset >= start_offset for e in result.state.entries)
    ),
    "LEC-6 nothing begins before the start, and the start keeps its epoch",
)
def truncate_from_start(state: Cache, start_offset: int) -> Step[Cache, None]:
    """The log start rose to that offset."""
    dropped = any(e.start_offset <= start_offset for e in state.entries)
    return Step(_truncated(state, cut_from_start(state.entries, start_offset), dropped))


@machine.operation("runScheduled", "LEC-7", kind="time")
@icontract.ensure(
    lambda state, result: not state.scheduled or on_disk(result.state) == state.entries,
    "LEC-7 what is written is the entries of the moment",
)
def run_scheduled(state: Cache) -> Step[Cache, None]:
    """The broker's scheduler gets to the writing of a truncation, if one is waiting."""
    return Step(replace(_written(state, state.entries), scheduled=False) if state.scheduled else state)


@machine.operation("clearAndFlush", "LEC-8")
@icontract.ensure(
    lambda result: result.state.entries == () == on_disk(result.state), "LEC-8 no entry is left, here and in the file"
)
def clear_and_flush(state: Cache) -> Step[Cache, None]:
    """The log was emptied, or got a batch of a format without epochs."""
    return Step(_written(state, ()))


@machine.operation("reopen", "LEC-7", "LEC-9", kind="restart")
@icontract.ensure(
    lambda state, result: (
        (result.state.entries == on_disk(state) or not rising(on_disk(state))) and result.state.file == state.file
    ),
    "LEC-9 what the file has is what is loaded, and loading writes nothing",
)
def reopen(state: Cache) -> Step[Cache, None]:
    """The process stops, in whatever way, and the file is read again; a waiting write is forgotten."""
    return Step(replace(state, entries=loaded(on_disk(state)), scheduled=False))


@machine.operation("load", "LEC-9", "LEC-17", kind="restart")
@icontract.require(lambda log_start, log_end: 0 <= log_start <= log_end, "LEC-9 a log begins before it ends")
@_keeps_order
@icontract.ensure(
    lambda log_start, log_end, result: all(
        e.start_offset == log_start or log_start < e.start_offset < log_end for e in result.state.entries
    ),
    "LEC-9 no entry begins before the log start, or at its end",
)
def load(state: Cache, log_start: int, log_end: int) -> Step[Cache, None]:
    """The process stops and the log is loaded, with these ends."""
    cache = replace(state, entries=loaded(on_disk(state)), scheduled=False)
    cache = truncate_from_end(cache, log_end).state
    return Step(truncate_from_start(cache, log_start).state)


class EndOffset(TypedDict):
    """An epoch and its end; -1 and -1 where that is unknown."""

    epoch: int
    endOffset: int


@machine.operation("endOffsetFor", "LEC-10", "LEC-12", "LEC-11")
@_changes_nothing("LEC-10")
@icontract.require(
    lambda state, log_end_offset: log_end_offset >= 0 and all(e.start_offset <= log_end_offset for e in state.entries),
    "LEC-11 no entry begins above the log's end",
)
@icontract.ensure(
    lambda log_end_offset, result: result.result["endOffset"] <= log_end_offset, "LEC-11 never above the log's end"
)
@icontract.ensure(
    lambda state, result: (
        result.result["endOffset"] == NO_OFFSET
        or all(
            e.start_offset >= result.result["endOffset"]
            for e in state.entries
            if e.epoch > max(result.result["epoch"], -1)
        )
    ),
    "LEC-11 no higher epoch begins below it",
)
def end_offset(state: Cache, requested_epoch: int, log_end_offset: int) -> Step[Cache, EndOffset]:
    """Where the requested epoch ended in this log."""
    epoch, offset = end_offset_for(state.entries, requested_epoch, log_end_offset)
    return Step(state, {"epoch": epoch, "endOffset": offset})


@machine.operation("epochForOffset", "LEC-13")
@_changes_nothing("LEC-13")
def epoch_for_offset(state: Cache, offset: int) -> Step[Cache, int | None]:
    """The epoch of the record at that offset."""
    return Step(state, epoch_at(state.entries, offset))


class Neighbours(TypedDict):
    """The nearest epochs below and above."""

    previous: int | None
    next: int | None


@machine.operation("previousEpoch/nextEpoch", "LEC-14")
@_changes_nothing("LEC-14")
@icontract.ensure(
    lambda epoch, result: (
        (result.result["previous"] is None or result.result["previous"] < epoch)
        and (result.result["next"] is None or result.result["next"] > epoch)
    ),
    "LEC-14 below it, and above it",
)
def neighbours(state: Cache, epoch: int) -> Step[Cache, Neighbours]:
    """The nearest epochs that have an entry."""
    lower = [e.epoch for e in state.entries if e.epoch < epoch]
    higher = [e.epoch for e in state.entries if e.epoch > epoch]
    return Step(state, {"previous": max(lower, default=None), "next": min(higher, default=None)})


@machine.operation("epochEntriesInRange", "LEC-15")
@_changes_nothing("LEC-15")
def entries_in_range(state: Cache, start_offset: int, end_offset: int) -> Step[Cache, list[list[int]]]:
    """What tiered storage keeps beside a segment."""
    entries = state.entries if start_offset < 0 else cut_from_start(state.entries, start_offset)
    return Step(state, [list(e) for e in cut_from_end(entries, end_offset)])


def are_entries(entries: Any) -> bool:
    """Pairs of numbers that fit into 32 and 64 bits."""
    return all(len(e) == 2 and -INT_MAX - 1 <= e[0] <= INT_MAX and -LONG_MAX - 1 <= e[1] <= LONG_MAX for e in entries)


@machine.operation("leaderEpochCheckpoint.write", "LEC-16")
@icontract.require(are_entries, "LEC-16 an epoch and an offset each")
@_changes_nothing("LEC-16")
@icontract.ensure(
    lambda entries, result: entries_of(result.result) == tuple(Entry(*e) for e in entries),
    "LEC-17 what is written is read back",
)
def checkpoint_write(state: Cache, entries: Sequence[Sequence[int]]) -> Step[Cache, str]:
    """The text of a file with these entries."""
    return Step(state, text_of([Entry(*e) for e in entries]))


@machine.operation("leaderEpochCheckpoint.read", "LEC-17")
@_changes_nothing("LEC-17")
@icontract.ensure(
    lambda result: (
        isinstance(result.result, Refused)
        or [list(e) for e in entries_of(text_of([Entry(*e) for e in result.result]))] == result.result  # type: ignore[union-attr]
    ),
    "LEC-16 what is read can be written",
)
def checkpoint_read(state: Cache, file: str) -> Step[Cache, list[list[int]]]:
    """The entries of a file with this text."""
    entries = entries_of(file)
    if isinstance(entries, Unreadable):
        return Step(state, Refused("LEC-17", STORAGE_EXCEPTION))
    return Step(state, [list(e) for e in entries])


@machine.operation("openText", "LEC-9", "LEC-17", "LEC-3", kind="damage")
@_keeps_order
def open_text(state: Cache, file: str) -> Step[Cache, None]:
    """The process stops, and finds a file with this text: somebody else's hand, or a failing disk."""
    entries = entries_of(file)
    if isinstance(entries, Unreadable):
        return Step(state, Refused("LEC-17", STORAGE_EXCEPTION))
    if any(e.epoch < 0 or e.start_offset < 0 for e in entries):
        return Step(state, Refused("LEC-3", ILLEGAL_ARGUMENT))
    return Step(replace(state, entries=loaded(entries), file=file, scheduled=False))


# ---- the entries beside the batches ----------------------------------------------------------------------------------
class Batch(NamedTuple):
    """What of a batch matters here. `epoch` is -1 where it has none."""

    base_offset: int
    last_offset: int
    epoch: int
    magic: int = 2


@states("LEC-20")
def judged(batches: Sequence[Batch], log_start: int) -> list[Batch]:
    """The batches that the entries must know."""
    last_old = max((i for i, b in enumerate(batches) if b.magic < 2), default=-1)
    return [b for b in batches[last_old + 1 :] if b.epoch >= 0 and b.last_offset >= log_start]


@states("LEC-19")
def epochs_never_fall(batches: Sequence[Batch]) -> bool:
    """Whether the epochs of the batches never fall."""
    epochs = [b.epoch for b in judged(batches, 0)]
    return all(a <= b for a, b in itertools.pairwise(epochs))


@states("LEC-20")
def known_to(entries: Entries, b: Batch, log_start: int) -> bool:
    """Whether the entries know the batch: its epoch's covers it, and the next begins above it."""
    begun = [e for e in entries if e.start_offset <= max(b.base_offset, log_start)]
    later = entries[len(begun) :]
    return bool(begun) and begun[-1].epoch == b.epoch and all(e.start_offset > b.last_offset for e in later)


@states("LEC-21")
def left_over(entries: Entries, log_start: int, log_end: int) -> bool:
    """Whether the entries show a truncation that had not reached the file."""
    return any(e.start_offset > log_end for e in entries) or (bool(entries) and entries[0].start_offset < log_start)


def is_log(batches: Any) -> bool:
    """Batches of four numbers, one behind the other."""
    if not all(len(b) == 4 for b in batches):
        return False
    log = [Batch(*b) for b in batches]
    return all(0 <= b.base_offset <= b.last_offset and b.epoch >= NO_EPOCH for b in log) and all(
        a.last_offset < b.base_offset for a, b in itertools.pairwise(log)
    )


class Breaches(TypedDict):
    """Which rules a log breaks."""

    fall: bool
    """the epochs of its batches fall"""
    unknown: bool
    """a batch has an epoch that the entries do not know"""
    leftOver: bool
    """entries are left of a truncation"""


audit = without_state("leader_epochs", __name__)
"""What the audit asks of a log at rest."""


@audit.operation("breaches", "LEC-19", "LEC-20", "LEC-21")
@icontract.require(is_log, "LEC-20 batches one behind the other")
@icontract.require(
    lambda entries: are_entries(entries) and rising(tuple(Entry(*e) for e in entries)), "LEC-1 entries that rise"
)
def breaches(
    state: Nothing, batches: Sequence[Sequence[int]], entries: Sequence[Sequence[int]], log_start: int, log_end: int
) -> Step[Nothing, Breaches]:
    """A log at rest that was stopped cleanly: its batches (base offset, last offset, epoch, magic; offsets rising)
    beside the entries of its file (rising)."""
    log = [Batch(*b) for b in batches]
    known = tuple(Entry(*e) for e in entries)
    return Step(
        state,
        {
            "fall": not epochs_never_fall(log),
            "unknown": not all(known_to(known, b, log_start) for b in judged(log, log_start)),
            "leftOver": left_over(known, log_start, log_end),
        },
    )
