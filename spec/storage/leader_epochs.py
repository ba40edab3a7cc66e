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
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import A_FORMAT, A_QUESTION, AT_REST, clause, not_modelled, states
from kafkaspec.contract.codec import partial, replace
from kafkaspec.contract.governs import governs, reveals
from kafkaspec.contract.machine import Machine, Refused, without_state
from kafkaspec.contract.numbers import Int8, Int32, Int64, LeaderEpochOrNone, Offset
from kafkaspec.spec.common.checkpoint_text import integer, room_is_known
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, INT_MAX, LONG_MAX, STORAGE_EXCEPTION

PREFIX = "LEC"
TITLE = "Leader epochs"

CHAPTER = "Kafka Internals, ch. 03, 'LeaderEpochFileCache'"
CACHE = "LeaderEpochFileCache, Kafka 4.3.0"
FILE = "LeaderEpochCheckpointFile and CheckpointFile, Kafka 4.3.0"

NEGATIVE = Refused("LEC-3", ILLEGAL_ARGUMENT)
UNREADABLE = Refused("LEC-17", STORAGE_EXCEPTION)

NO_EPOCH = -1
NO_OFFSET = -1

clause(
    """LEC-18: The file is written beside its place, flushed, and renamed over it: a crash at any moment leaves the old
    one or the new one, whole. [{FILE}; Utils.atomicMoveWithFallback, Kafka 4.3.0]""",
    without={
        "spec": "the spec's file changes in one step",
        "model": "replacement of a file is modelled beside the checkpoint files",
        "proof": "replacement of a file is proved beside the checkpoint files",
    },
)


class Entry(NamedTuple):
    """An epoch and the offset of its first record."""

    epoch: Int32
    start_offset: Int64


Entries = tuple[Entry, ...]


@states()
def rising(entries: Entries) -> bool:
    """LEC-1: The entries are pairs of a leader epoch and the offset at which it began. In every state the epochs rise
    strictly from entry to entry, and so do the offsets; none is negative. [{CHAPTER}; {CACHE}]"""
    return all(e.epoch >= 0 and e.start_offset >= 0 for e in entries) and all(
        a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in itertools.pairwise(entries)
    )


@states(without=A_QUESTION)
def epoch_at(entries: Entries, offset: int) -> int | None:
    """LEC-13: The epoch of an offset is that of the last entry that begins at or before it; before the first entry
    none. [{CACHE}]"""
    return next((e.epoch for e in reversed(entries) if e.start_offset <= offset), None)


# ---- the file --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Unreadable:
    """Why a checkpoint file cannot be read. `line` counts from 1; `text` is the piece of it that is to blame."""

    reason: Literal["version", "line", "count", "negative count", "number"]
    line: int
    text: str = ""


@states(without=A_FORMAT)
def text_of(entries: Sequence[Entry]) -> str:
    """The text of a file with these entries.

    LEC-16: The checkpoint file is text: a line with the version 0, a line with the number of entries, and a line
    `epoch offset` for each, from the lowest epoch up, every line ended by a newline. [{CHAPTER}; {FILE}]
    """
    return "".join(f"{line}\n" for line in ("0", len(entries), *(f"{e.epoch} {e.start_offset}" for e in entries)))


@states(without=A_FORMAT)
def entries_of(text: str) -> Entries | Unreadable:
    """The entries of a file with this text, or why it cannot be read.

    LEC-17: Reading the file gives its entries in the order of its lines; nothing if it has no second line. Another
    version, a line that is no number or no entry, or a number of entries that is not the one announced makes it
    unreadable: a storage error, which takes the log's directory out of service. [{FILE}]
    """
    lines = re.split(r"\r\n|\r|\n", text)
    if lines[-1] == "":
        lines.pop()
    numbers = [integer(line, INT_MAX) for line in lines[:2]]
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
        epoch, offset = integer(parts[0], INT_MAX), integer(parts[1], LONG_MAX)
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

    @property
    def on_disk(self) -> Entries:
        """The entries that the file has; of an unreadable file none."""
        entries = entries_of(self.file)
        return () if isinstance(entries, Unreadable) else entries

    def written(self, entries: Entries) -> Cache:
        """The state with these entries, which are in the file."""
        return replace(self, entries=entries, file=text_of(entries))

    @states()
    def truncated(self, entries: Entries) -> Cache:
        """The state after a truncation that left these entries.

        LEC-7: A truncation reaches the file later, if it dropped anything: until then, and after a crash or a stop
        before then, the file has the entries from before it. What is written is the entries of the moment of writing.
        [{CHAPTER}; {CACHE}; KafkaScheduler.shutdown, Kafka 4.3.0; KAFKA-15046, KAFKA-16541]
        """
        return replace(self, entries=entries, scheduled=True) if self.deferred else self.written(entries)


def initial(deferred: bool = False) -> Cache:
    """No entries; the file is there, and empty."""
    return Cache(deferred=deferred)


@partial
@dataclass(frozen=True)
class Observation:
    """The cache, and its file."""

    entries: Annotated[Entries, governs("LEC-2", "LEC-5", "LEC-6", "LEC-8", "LEC-9", "LEC-1")]
    """[epoch, start offset], rising"""
    latest_epoch: Annotated[int | None, governs("LEC-2", "LEC-5", "LEC-8", "LEC-9")]
    file: Annotated[str, governs("LEC-7", "LEC-4", "LEC-18", "LEC-8", "LEC-16")]
    """the text of the checkpoint file"""
    scheduled: Annotated[bool, governs("LEC-7", "LEC-4")]
    """a truncation is still to be written"""


def observe(state: Cache) -> Observation:
    """Entries, latest epoch, file."""
    latest = state.entries[-1].epoch if state.entries else None
    return Observation(state.entries, latest, state.file, state.scheduled)


machine = Machine("leader_epochs", initial, observe)

known_room = require(lambda file: room_is_known(file), "LEC-17 a file announces what may have room, or never has")

rises = ensure(lambda result: isinstance(result, Refused) or rising(result.entries), "LEC-1 epochs and offsets rise")


# ---- the entries change ----------------------------------------------------------------------------------------------
@states()
def assigned(entries: Entries, new: Entry) -> Entries:
    """LEC-2: Assigning an epoch and an offset changes nothing if the epoch is the latest one and began no later.
    Otherwise every entry from the latest one down that has no lower epoch or no lower offset is dropped, and the new
    one is the latest. [{CHAPTER}; {CACHE}]"""
    if entries and entries[-1].epoch == new.epoch and entries[-1].start_offset <= new.start_offset:
        return entries
    kept = entries
    while kept and (kept[-1].epoch >= new.epoch or kept[-1].start_offset >= new.start_offset):
        kept = kept[:-1]
    return (*kept, new)


@machine.operation("assign", "LEC-2", "LEC-3", "LEC-4", "LEC-1")
@states(without={"LEC-3": not_modelled("the model has no negative numbers")})
@rises
@ensure(
    lambda state, epoch, start_offset, result: (
        isinstance(result, Refused)
        or result == state
        or (result.entries[-1] == (epoch, start_offset) and result.on_disk == result.entries)
    ),
    "LEC-4 what was assigned is the latest entry, and in the file",
)
@ensure(
    lambda state, result: isinstance(result, Refused) or set(result.entries[:-1]) <= set(state.entries),
    "LEC-2 no entry is moved or made up",
)
def assign(state: Cache, epoch: Int32, start_offset: Int64) -> Cache | Refused:
    """A leader's first offset, before its first batch is appended, or a batch that a follower is about to append.

    LEC-3: Assigning a negative epoch or a negative offset is refused. [{CACHE}]

    LEC-4: An assignment that changes something is in the file, and outlives a crash, before it returns: no batch is in
    the log whose epoch is not in the file. [{CACHE}; UnifiedLog.append, Kafka 4.3.0]
    """
    if epoch < 0 or start_offset < 0:
        return NEGATIVE
    entries = assigned(state.entries, Entry(epoch, start_offset))
    return state if entries == state.entries else state.written(entries)


@states()
def cut_from_end(entries: Entries, end_offset: int) -> Entries:
    """LEC-5: Truncating from the end drops the entries that begin at the given offset or beyond; a negative offset
    drops none. [{CHAPTER}; {CACHE}]"""
    return tuple(e for e in entries if end_offset < 0 or e.start_offset < end_offset)


@machine.operation("truncateFromEndAsyncFlush", "LEC-5", "LEC-7")
@rises
@ensure(
    lambda end_offset, result: end_offset < 0 or all(e.start_offset < end_offset for e in result.entries),
    "LEC-5 no entry begins at the end or beyond",
)
def truncate_from_end(state: Cache, end_offset: Int64) -> Cache:
    """The log was cut at that offset."""
    entries = cut_from_end(state.entries, end_offset)
    return state if entries == state.entries else state.truncated(entries)


@states()
def cut_from_start(entries: Entries, start_offset: int) -> Entries:
    """LEC-6: Truncating from the start drops the entries that begin at or before the given offset and puts the last of
    them back, as one that begins there. Without any such entry nothing changes. [{CHAPTER}; {CACHE}]"""
    before = [e for e in entries if e.start_offset <= start_offset]
    moved = (Entry(before[-1].epoch, start_offset),) if before else ()
    return moved + entries[len(before) :]


@machine.operation("truncateFromStartAsyncFlush", "LEC-6", "LEC-7")
@rises
@ensure(
    lambda state, start_offset, result: (
        epoch_at(result.entries, start_offset) == epoch_at(state.entries, start_offset)
        and all(e.start_offset >= start_offset for e in result.entries)
    ),
    "LEC-6 nothing begins before the start, and the start keeps its epoch",
)
def truncate_from_start(state: Cache, start_offset: Int64) -> Cache:
    """The log start rose to that offset."""
    dropped = any(e.start_offset <= start_offset for e in state.entries)
    return state.truncated(cut_from_start(state.entries, start_offset)) if dropped else state


@machine.operation("runScheduled", "LEC-7", kind="time")
@ensure(
    lambda state, result: not state.scheduled or result.on_disk == state.entries,
    "LEC-7 what is written is the entries of the moment",
)
def run_scheduled(state: Cache) -> Cache:
    """The broker's scheduler gets to the writing of a truncation, if one is waiting."""
    return replace(state.written(state.entries), scheduled=False) if state.scheduled else state


@machine.operation("clearAndFlush")
@ensure(lambda result: result.entries == () == result.on_disk, "LEC-8 no entry is left, here and in the file")
def clear_and_flush(state: Cache) -> Cache:
    """The log was emptied, or got a batch of a format without epochs.

    LEC-8: Clearing drops all entries, and the file has none when it returns. [{CACHE}]
    """
    return state.written(())


# ---- the log is loaded -----------------------------------------------------------------------------------------------
def loaded(entries: Entries) -> Entries:
    """What a list of entries comes to when they are assigned one after the other."""
    out: Entries = ()
    for e in entries:
        out = assigned(out, e)
    return out


@machine.operation("reopen", "LEC-7", "LEC-9", kind="restart")
@reveals("LEC-4", "LEC-18")
@ensure(
    lambda state, result: (result.entries == state.on_disk or not rising(state.on_disk)) and result.file == state.file,
    "LEC-9 what the file has is what is loaded, and loading writes nothing",
)
def reopen(state: Cache) -> Cache:
    """The process stops, in whatever way, and the file is read again; a waiting write is forgotten."""
    return replace(state, entries=loaded(state.on_disk), scheduled=False)


@machine.operation("load", "LEC-17", kind="restart")
@reveals("LEC-7", "LEC-4", "LEC-18")
@require(lambda log_start, log_end: 0 <= log_start <= log_end, "LEC-9 a log begins before it ends")
@rises
@ensure(
    lambda log_start, log_end, result: all(
        e.start_offset == log_start or log_start < e.start_offset < log_end for e in result.entries
    ),
    "LEC-9 no entry begins before the log start, or at its end",
)
def load(state: Cache, log_start: Int64, log_end: Int64) -> Cache:
    """The process stops and the log is loaded, with these ends.

    LEC-9: Loading a log reads the file, assigns its entries in the order of its lines without writing, drops what
    begins at the log's end or beyond, and moves the first entry to the checkpointed log start. So it comes to the
    entries that there were, whatever truncation had not reached the file, unless batches were appended since to the
    epoch that the truncation had left as the latest: those write nothing, and what was cut away may come back over
    them. [LogLoader.load and UnifiedLog.create, Kafka 4.3.0; KAFKA-15046, KAFKA-16541]
    """
    cache = replace(state, entries=loaded(state.on_disk), scheduled=False)
    return truncate_from_start(truncate_from_end(cache, log_end), log_start)


# ---- questions -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class EndOffset:
    """An epoch and its end; -1 and -1 where that is unknown."""

    epoch: Annotated[int, governs("LEC-10", "LEC-12")]
    end_offset: Annotated[int, governs("LEC-10", "LEC-12", "LEC-11")]


UNKNOWN = EndOffset(NO_EPOCH, NO_OFFSET)


@machine.question("endOffsetFor", "LEC-10", "LEC-12", "LEC-11")
@states(without={"LEC-12": A_QUESTION})
@require(
    lambda state, log_end_offset: log_end_offset >= 0 and all(e.start_offset <= log_end_offset for e in state.entries),
    "LEC-11 no entry begins above the log's end",
)
@ensure(lambda log_end_offset, result: result.end_offset <= log_end_offset, "LEC-11 never above the log's end")
@ensure(
    lambda state, result: (
        result == UNKNOWN or all(e.start_offset >= result.end_offset for e in state.entries if e.epoch > result.epoch)
    ),
    "LEC-11 no higher epoch begins below it",
)
def end_offset_for(state: Cache, requested_epoch: LeaderEpochOrNone, log_end_offset: Offset) -> EndOffset:
    """Where the requested epoch ended in this log.

    LEC-10: The end offset of the latest epoch is the log's end. Of any other epoch it is the offset at which the next
    higher entry begins; the epoch answered is the highest entry's that is not above the requested one, or the
    requested one itself where all are above it. [{CHAPTER}; {CACHE}; KIP-101, KIP-279]

    LEC-11: Where the end offset of a requested epoch is known, it is not above the log's end, and no record of the log
    below it is of a higher epoch. [{CHAPTER}; KIP-101, KIP-279]

    LEC-12: The end offset of epoch -1, of an epoch above the latest one, and of any epoch where there is no entry, is
    unknown: epoch -1, offset -1. [{CACHE}; KIP-101]
    """
    above = [e for e in state.entries if e.epoch > requested_epoch]
    not_above = [e for e in state.entries if e.epoch <= requested_epoch]
    if requested_epoch == NO_EPOCH or not state.entries:
        return UNKNOWN
    if above:
        return EndOffset(not_above[-1].epoch if not_above else requested_epoch, above[0].start_offset)
    return EndOffset(requested_epoch, log_end_offset) if not_above[-1].epoch == requested_epoch else UNKNOWN


@machine.question("epochForOffset", "LEC-13")
def epoch_for_offset(state: Cache, offset: Int64) -> int | None:
    """The epoch of the record at that offset."""
    return epoch_at(state.entries, offset)


@dataclass(frozen=True)
class Neighbours:
    """The nearest epochs below and above."""

    previous: Annotated[int | None, governs("LEC-14")]
    next: Annotated[int | None, governs("LEC-14")]


@machine.question("previousEpoch/nextEpoch")
@states(without=A_QUESTION)
@ensure(
    lambda epoch, result: (
        (result.previous is None or result.previous < epoch) and (result.next is None or result.next > epoch)
    ),
    "LEC-14 below it, and above it",
)
def neighbours(state: Cache, epoch: LeaderEpochOrNone) -> Neighbours:
    """LEC-14: The previous epoch of an epoch is the nearest lower one that has an entry, the next epoch the nearest
    higher. [{CACHE}]"""
    lower = [e.epoch for e in state.entries if e.epoch < epoch]
    higher = [e.epoch for e in state.entries if e.epoch > epoch]
    return Neighbours(max(lower, default=None), min(higher, default=None))


@machine.question("epochEntriesInRange")
@states(without=A_QUESTION)
def entries_in_range(state: Cache, start_offset: Int64, end_offset: Int64) -> Entries:
    """What tiered storage keeps beside a segment.

    LEC-15: The entries in a range are what the two truncations, from the start unless it is negative and then from the
    end, would leave of them; the entries themselves stay. [{CACHE}]
    """
    entries = state.entries if start_offset < 0 else cut_from_start(state.entries, start_offset)
    return cut_from_end(entries, end_offset)


def fit(entries: Entries) -> bool:
    """Whether epochs fit into 32 bits and offsets into 64."""
    return all(-INT_MAX - 1 <= e.epoch <= INT_MAX and -LONG_MAX - 1 <= e.start_offset <= LONG_MAX for e in entries)


@machine.question("leaderEpochCheckpoint.write", "LEC-16")
@require(fit, "LEC-16 an epoch and an offset each")
@ensure(lambda entries, result: entries_of(result) == entries, "LEC-17 what is written is read back")
def checkpoint_write(entries: Entries) -> str:
    """The text of a file with these entries."""
    return text_of(entries)


@machine.question("leaderEpochCheckpoint.read", "LEC-17")
@known_room
@ensure(
    lambda result: isinstance(result, Refused) or entries_of(text_of(result)) == result,
    "LEC-16 what is read can be written",
)
def checkpoint_read(file: str) -> Entries | Refused:
    """The entries of a file with this text."""
    entries = entries_of(file)
    return UNREADABLE if isinstance(entries, Unreadable) else entries


@machine.operation("openText", "LEC-9", "LEC-17", "LEC-3", kind="damage")
@known_room
@rises
def open_text(state: Cache, file: str) -> Cache | Refused:
    """The process stops, and finds a file with this text: somebody else's hand, or a failing disk."""
    entries = entries_of(file)
    if isinstance(entries, Unreadable):
        return UNREADABLE
    if any(e.epoch < 0 or e.start_offset < 0 for e in entries):
        return NEGATIVE
    return replace(state, entries=loaded(entries), file=file, scheduled=False)


# ---- the entries beside the batches ----------------------------------------------------------------------------------
class Batch(NamedTuple):
    """What of a batch matters here. `epoch` is -1 where it has none."""

    base_offset: Offset
    last_offset: Offset
    epoch: LeaderEpochOrNone
    magic: Int8


Batches = tuple[Batch, ...]


@states("LEC-20")
def with_epochs(batches: Batches, log_start: int) -> Batches:
    """The batches whose epochs count: after the last one of a format before 2, and not below the log start."""
    last_old = max((i for i, b in enumerate(batches) if b.magic < 2), default=-1)
    return tuple(b for b in batches[last_old + 1 :] if b.epoch >= 0 and b.last_offset >= log_start)


@states(without=AT_REST)
def epochs_never_fall(batches: Batches) -> bool:
    """LEC-19: The leader epochs in a log's batches after the last one of a format before 2 never fall. A batch without
    one (-1: of a format before 2, and converted by the cleaner) says nothing. [{CHAPTER}; UnifiedLog.append and
    MemoryRecords.filterTo, Kafka 4.3.0; KIP-101]"""
    return all(a.epoch <= b.epoch for a, b in itertools.pairwise(with_epochs(batches, 0)))


@states(without=AT_REST)
def known_to(entries: Entries, b: Batch, log_start: int) -> bool:
    """Whether the entries know a batch whose epoch counts.

    LEC-20: For every batch with an epoch that lies at or above the log start, and after the last batch of a format
    before 2, the last entry that begins at or before it (for one in which the log start lies, at or before the log
    start) is its epoch's, and the next entry begins above its last offset. An entry whose epoch no batch has is legal.
    [{CHAPTER}; UnifiedLog.append, Kafka 4.3.0]
    """
    begun = [e for e in entries if e.start_offset <= max(b.base_offset, log_start)]
    later = entries[len(begun) :]
    return bool(begun) and begun[-1].epoch == b.epoch and all(e.start_offset > b.last_offset for e in later)


@states(without=AT_REST | {"proof": "it says what may be left, not what must"})
def left_over(entries: Entries, log_start: int, log_end: int) -> bool:
    """Whether the entries show a truncation that had not reached the file.

    LEC-21: Entries that begin above the log's end, and a first entry that begins below the log start, are what a
    truncation leaves that had not reached the file. A first entry above the log start of a log that was not stopped
    cleanly is one whose log start had not been checkpointed. [LogLoader.load and
    UnifiedLog.maybeIncrementLogStartOffset, Kafka 4.3.0; KAFKA-15046]
    """
    return any(e.start_offset > log_end for e in entries) or (bool(entries) and entries[0].start_offset < log_start)


def is_log(batches: Batches) -> bool:
    """Whether the batches lie one behind the other."""
    return all(0 <= b.base_offset <= b.last_offset and b.epoch >= NO_EPOCH for b in batches) and all(
        a.last_offset < b.base_offset for a, b in itertools.pairwise(batches)
    )


@dataclass(frozen=True)
class Breaches:
    """Which rules a log breaks."""

    fall: bool
    """the epochs of its batches fall"""
    unknown: bool
    """a batch has an epoch that the entries do not know"""
    left_over: bool
    """entries are left of a truncation"""


audit = without_state("leader_epochs", __name__)
"""What the audit asks of a log at rest."""


@audit.question("breaches", "LEC-19", "LEC-20", "LEC-21")
@require(is_log, "LEC-20 batches one behind the other")
@require(lambda entries: fit(entries) and rising(entries), "LEC-1 entries that rise")
def breaches(batches: Batches, entries: Entries, log_start: Offset, log_end: Offset) -> Breaches:
    """A log at rest that was stopped cleanly: its batches (base offset, last offset, epoch, magic; offsets rising)
    beside the entries of its file (rising)."""
    return Breaches(
        fall=not epochs_never_fall(batches),
        unknown=not all(known_to(entries, b, log_start) for b in with_epochs(batches, log_start)),
        left_over=left_over(entries, log_start, log_end),
    )
