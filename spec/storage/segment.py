"""One segment of a log: its batches, what its three indexes hold of them, and what is found through them.

A segment is a sequence of batches, each with its place in the file. The offset index says, at intervals, where a batch
begins; the time index has with it the largest timestamp up to there; both only make lookups shorter, and no
answer depends on them. So an index that is lost is made again from the batches, and that is what recovery does.
`spec.common.segment_contents` has the batches and the entries that follow from them; here are the operations.

Source: Kafka Internals, ch. 03, "LogSegment: a file pair plus indexes", "Writing into the segment & the sparse index",
"Segment rolling", "The read / fetch-by-offset path" and "Crash recovery & startup"; LogSegment, FileRecords,
AbstractIndex and LogFileUtils, Kafka 4.3.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from icontract import ensure, require

from kafkaspec.contract.clauses import A_QUESTION, AT_REST, ONE_CALL, clause, states
from kafkaspec.contract.codec import partial, replace
from kafkaspec.contract.governs import governs, reveals
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import (
    LATEST,
    Count,
    Duration,
    Int32,
    Offset,
    Position,
    ProducerId,
    Time,
    TimeLimit,
    Timestamp,
    Within,
)
from kafkaspec.errors import UserError
from kafkaspec.spec.common import segment_contents as contents
from kafkaspec.spec.common.aborted_transaction import AbortedTransaction
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, INT_MAX, NO_TIMESTAMP
from kafkaspec.spec.common.segment_contents import (
    CHAPTER,
    LOG_SEGMENT,
    TIME_ENTRY,
    BatchToAppend,
    EpochEntry,
    OffsetEntry,
    Segment,
    TimeEntry,
    as_if_appended,
    ascending,
    batches_of,
    epochs,
    inactive,
    indexed,
    is_batch,
    keeps_to_transactions,
    largest_is_true,
    largest_of,
    place,
    recovered,
    recovery_fits,
    resized,
    room,
    slot_left,
    sound,
    trimmed,
    was_open,
    whole,
)

PREFIX = "SEG"
TITLE = "Log segment"

ROLLING = f"{CHAPTER}, 'Segment rolling'"
TIMES, READING, RECOVERY, FAILURES = contents.TIMES, contents.READING, contents.RECOVERY, contents.FAILURES

OVERFLOW = "org.apache.kafka.storage.internals.log.LogSegmentOffsetOverflowException"
NO_SUCH_FILE = "java.nio.file.NoSuchFileException"
OUT_OF_REACH = Refused("SEG-3", OVERFLOW)
NO_SUCH_READ = Refused("SEG-12", ILLEGAL_ARGUMENT)
NO_INDEX_FILE = Refused("SEG-21", NO_SUCH_FILE)

AT_REST_IN_ONE_SEGMENT = AT_REST | {
    "model": "a predicate over one segment at rest",
    "proof": "a predicate over one segment at rest",
}

clause(
    "SEG-27",
    """In a segment no batch begins below the base offset in its name, and none ends more than 2^31 - 1 above it.""",
    source=f"{CHAPTER}, 'Core concepts & terminology'; {LOG_SEGMENT}; KAFKA-6264",
    without=AT_REST_IN_ONE_SEGMENT
    | {"mutant": "a predicate over one segment at rest: what breaks it is damage, made in the tests of the audit"},
)
clause(
    "SEG-28",
    "A segment's file has at most 2^31 - 1 bytes: positions are 32 bits wide.",
    source="FileRecords, Kafka 4.3.0",
    without=AT_REST_IN_ONE_SEGMENT | {"mutant": "two gigabytes: asked of files without reading them"},
)


# ---- the state -------------------------------------------------------------------------------------------------------
IndexRoom = Annotated[int, Within(TIME_ENTRY, 2**20)]
"""bytes of an index file, which has room for an entry"""


def initial(
    base_offset: Offset = 0,
    index_interval_bytes: Position = 200,
    max_index_bytes: IndexRoom = 120,
    roll_jitter_ms: TimeLimit = 0,
    open_transactions: Sequence[tuple[ProducerId, Offset]] = (),
    now: Time = 1_000_000,
) -> Segment:
    """A new segment. UserError unless its numbers are 0 or more and an index file has room for an entry."""
    if min(base_offset, index_interval_bytes, roll_jitter_ms) < 0 or max_index_bytes < TIME_ENTRY:
        raise UserError(f"a segment's numbers are 0 or more, its index files of {TIME_ENTRY} bytes or more")
    before = tuple((p, o) for p, o in open_transactions)
    nothing = TimeEntry(NO_TIMESTAMP, base_offset)
    return resized(
        Segment(base_offset, index_interval_bytes, max_index_bytes, roll_jitter_ms, before, now, now, nothing, 0, 0)
    )


@partial
@dataclass(frozen=True)
class Observation:
    """A segment and its indexes."""

    size: Annotated[int, governs("SEG-2", "SEG-15", "SEG-17")]
    """bytes"""
    offset_index: Annotated[tuple[OffsetEntry, ...], governs("SEG-5", "SEG-4", "SEG-15", "SEG-16", "SEG-25")]
    time_index: Annotated[tuple[TimeEntry, ...], governs("SEG-5", "SEG-10", "SEG-15", "SEG-16", "SEG-25")]
    offset_slots: Annotated[int | None, governs("SEG-10", "SEG-15", "SEG-22", "SEG-8")]
    time_slots: Annotated[int | None, governs("SEG-10", "SEG-15", "SEG-22", "SEG-8")]
    aborted_txns: Annotated[tuple[AbortedTransaction, ...], governs("SEG-18", "SEG-26", "SEG-15")]
    largest_record_timestamp: Annotated[int | None, governs("SEG-5", "SEG-15", "SEG-22")]
    suffix: Annotated[str, governs("SEG-1")]
    """of the names of its files"""


def observe(state: Segment) -> Observation:
    """What the recordings show of a segment."""
    offset_slots, time_slots = state.slots if state.index_files else (None, None)
    largest = None if state.largest.timestamp < 0 else state.largest.timestamp
    return Observation(
        state.size, state.offsets, state.times, offset_slots, time_slots, state.aborted, largest, state.suffix
    )


LONGEST_SUFFIX = 255 - len("00000000000000000000.timeindex")
"""bytes; file systems have names of up to 255"""

machine: Machine[Segment] = Machine("segment", initial, observe)


# ---- conditions that several operations share ------------------------------------------------------------------------
def stays_sound(before: Segment, after: Segment | Refused) -> bool:
    """Whether the index entries still say the truth. After a crash they may have been wrong before, or the largest
    timestamp, that becomes one."""
    return isinstance(after, Refused) or sound(after) or not (sound(before) and largest_is_true(before))


def keeps_largest(before: Segment, after: Segment | Refused) -> bool:
    """Whether the largest timestamp is still the first such one of the batches."""
    return isinstance(after, Refused) or largest_is_true(after) or not largest_is_true(before)


def is_start_of(after: Segment, before: Segment) -> bool:
    """Whether the batches are the first ones of those before."""
    return after.batches == before.batches[: len(after.batches)]


def on_disk(state: Segment) -> tuple[Any, ...]:
    """What a restart finds."""
    return state.batches, state.rest, state.offsets, state.times, state.aborted


has_index_files = require(lambda state: state.index_files, "SEG-21 index files are there")
is_recovered = require(lambda state: sound(state) and state.index_files, "SEG-24 what a crash left was recovered")
has_a_slot_left = require(lambda state: slot_left(state), "SEG-8 a slot is left for the last entry")


# ---- the operations: writing -----------------------------------------------------------------------------------------
@machine.operation("append", "SEG-2", "SEG-3", "SEG-4", "SEG-5")
@require(
    lambda state, batches: ascending((*state.batches[-1:], *batches_of(batches))),
    "SEG-2 offsets rise from batch to batch",
)
@require(
    lambda state, batches: (
        batches_of(batches)[0].base_offset >= state.base_offset or not state.fits(batches_of(batches)[-1].last_offset)
    ),
    "SEG-27 no batch begins below the base offset",
)
@require(
    lambda state, batches: state.size + sum(b.size for b in batches_of(batches)) <= INT_MAX,
    "SEG-28 a file has at most 2^31 - 1 bytes",
)
@require(lambda state: state.rest == 0 and sound(state), "SEG-24 what a crash left was recovered")
@has_index_files
@require(lambda state, batches: room(state, batches_of(batches)), "SEG-8 the segment is rolled before an index is full")
@require(lambda batches: len(batches) > 0 and all(map(is_batch, batches)), "SEG-2 batches are appended")
@require(
    lambda state, batches: keeps_to_transactions(state, batches_of(batches)),
    "PSM-9 the log refuses what a producer sends outside its open transaction",
)
@ensure(
    lambda state, batches, result: isinstance(result, Refused) == (not state.fits(batches_of(batches)[-1].last_offset)),
    "SEG-3 refused if and only if the largest offset is out of reach",
)
@ensure(
    lambda state, batches, result: isinstance(result, Refused) or result.batches == state.batches + batches_of(batches),
    "SEG-2 at the end, in order",
)
@ensure(
    lambda state, result: (
        isinstance(result, Refused)
        or (result.offsets[: len(state.offsets)] == state.offsets and result.times[: len(state.times)] == state.times)
    ),
    "SEG-4 entries stay",
)
@ensure(
    lambda state, result: (
        isinstance(result, Refused)
        or all(
            later - earlier > state.index_interval_bytes
            for earlier, later in itertools.pairwise(
                [state.size - state.since, *(e.position for e in result.offsets[len(state.offsets) :])]
            )
        )
    ),
    "SEG-4 between entries more than index.interval.bytes were appended",
)
@ensure(lambda state, result: stays_sound(state, result), "SEG-5 entries say the truth")
@ensure(lambda state, result: keeps_largest(state, result), "SEG-5 the largest timestamp so far")
def append(state: Segment, batches: Sequence[BatchToAppend]) -> Segment | Refused:
    """Batches, one behind the other."""
    new = batches_of(batches)
    if not state.fits(new[-1].last_offset):
        return OUT_OF_REACH
    every = replace(state, batches=state.batches + new)
    after = indexed(every.placed[len(state.batches) :], state.index_interval_bytes, state.indexes)
    return replace(every, **after._asdict())


@machine.operation("updateTxnIndex", "SEG-18")
@require(lambda state, last_offset: all(e.last_offset < last_offset for e in state.aborted), "TXI-3 last offsets rise")
@require(lambda state, last_offset: last_offset >= state.base_offset, "TXI-13 the marker is in this segment")
@ensure(
    lambda state, aborted, result: len(result.aborted) == len(state.aborted) + aborted,
    "SEG-18 aborted transactions alone have entries",
)
def update_txn_index(
    state: Segment,
    producer_id: ProducerId,
    first_offset: Offset,
    last_offset: Offset,
    last_stable_offset: Offset,
    aborted: bool,
) -> Segment:
    """A transaction was completed by a marker in this segment."""
    entry = AbortedTransaction(producer_id, first_offset, last_offset, last_stable_offset)
    return replace(state, aborted=(*state.aborted, entry)) if aborted else state


@machine.operation("onBecomeInactiveSegment", "SEG-10")
@has_index_files
@has_a_slot_left
@ensure(lambda result: trimmed(result), "SEG-10 trimmed")
@ensure(
    lambda state, result: result.last_time.timestamp == max(state.largest.timestamp, state.last_time.timestamp),
    "SEG-10 the last entry is the largest timestamp",
)
@ensure(lambda state, result: stays_sound(state, result), "SEG-10 entries say the truth")
def become_inactive(state: Segment) -> Segment:
    """The segment is rolled."""
    return inactive(state)


@machine.operation("flush", "SEG-23")
@has_index_files
@ensure(lambda state, result: result == state, "SEG-23 nothing to be seen")
def flush(state: Segment) -> Segment:
    """Have all files outlive a crash.

    SEG-23: A flush has the .log outlive a crash, then the offset index, the time index and the transaction index. Only
    after it may the recovery point pass the segment. [{CHAPTER}, 'Offset boundaries: LSO, LEO, HW, recovery point';
    {LOG_SEGMENT}; KAFKA-10101]
    """
    return state


@machine.operation("truncateTo")
@reveals("SEG-11")
@states(without=ONE_CALL)
@is_recovered
@ensure(lambda offset, result: all(b.last_offset < offset for b in result.state.batches), "SEG-15 cut")
@ensure(lambda state, result: is_start_of(result.state, state), "SEG-15 a prefix is left")
@ensure(
    lambda state, offset, result: all(b.last_offset >= offset for b in state.batches[len(result.state.batches) :][:1]),
    "SEG-15 no batch goes that ends below",
)
@ensure(lambda state, result: result.state.slots == state.full_slots, "SEG-15 index files have their full size")
@ensure(lambda state, result: stays_sound(state, result.state), "SEG-15 entries say the truth")
@ensure(lambda state, result: keeps_largest(state, result.state), "SEG-15 the largest timestamp")
@ensure(lambda state, result: result.result == state.size - result.state.size, "SEG-15 answers the bytes cut")
def truncate_to(state: Segment, offset: Offset) -> Step[Segment, int]:
    """Drop everything from an offset on.

    SEG-15: Truncating to an offset cuts the file at the offset's place, so that a batch around it goes whole; drops the
    entries of all indexes whose offset is at or above it; gives the index files their full size again; and takes the
    largest timestamp again from what is left. Above the last offset only the last two happen. [{LOG_SEGMENT};
    KAFKA-6492]
    """
    at = place(state, offset)
    after = replace(
        resized(state),
        batches=state.batches if at is None else tuple(p.batch for p in state.placed if p.position < at.position),
        rest=state.rest if at is None else 0,
        offsets=tuple(e for e in state.offsets if e.offset < offset),
        times=tuple(e for e in state.times if e.offset < offset),
        aborted=tuple(itertools.takewhile(lambda e: e.last_offset < offset, state.aborted)),
        since=0,
    )
    if after.size == 0:
        after = replace(after, created=state.now, rolling_timestamp=None)
    if state.largest.timestamp >= 0:
        after = replace(after, largest=largest_of(after))
    return Step(after, state.size - after.size)


@dataclass(frozen=True)
class RecoveryResult:
    """What a recovery did and found."""

    truncated: Annotated[int, governs("SEG-17", "SEG-20")]
    """bytes cut"""
    epochs: Annotated[tuple[EpochEntry, ...], governs("SEG-19")]
    """leader epoch, and the offset at which it begins"""


@machine.operation("recover", "SEG-16", "SEG-17", "SEG-18", "SEG-19", "SEG-20", "SEG-24", "SEG-25", "SEG-26")
@has_index_files
@require(lambda state: recovery_fits(state), "SEG-8 the indexes have room for what is in the segment")
@require(
    lambda state: all(first < state.base_offset for _, first in state.open_before),
    "SEG-18 what is open where the segment begins began before it",
)
@require(
    lambda state: len(dict(state.open_before)) == len({o for _, o in state.open_before}) == len(state.open_before),
    "SEG-18 each of another producer, and from another offset on",
)
@ensure(
    lambda state, result: result.state.batches == whole(state) and result.state.rest == 0,
    "SEG-24 what was appended, up to the first batch that is not whole",
)
@ensure(lambda result: sound(result.state) and largest_is_true(result.state), "SEG-25 entries say the truth")
@ensure(lambda result: result.state.offsets == as_if_appended(result.state).offsets, "SEG-16 as appending makes them")
@ensure(
    lambda active, result: (
        result.state.last_time.timestamp == result.state.largest.timestamp and (active or trimmed(result.state))
    ),
    "SEG-16 with the last time entry, and trimmed",
)
@ensure(lambda state, result: result.result.truncated == state.size - result.state.size, "SEG-17 bytes cut")
@ensure(
    lambda state, result: (
        [e.last_offset for e in result.state.aborted]
        == [b.last_offset for b in whole(state) if b.kind == "abort" and was_open(state, b)]
    ),
    "SEG-26 an entry for every abort marker that ends a transaction",
)
@ensure(lambda result: on_disk(recovered(result.state)) == on_disk(result.state), "SEG-20 once is enough")
def recover(state: Segment, active: bool = False) -> Step[Segment, RecoveryResult]:
    """Make everything again from the batches; answers the bytes cut, and the leader epochs found. The active segment's
    index files get their full size then.

    SEG-20: A second recovery finds nothing to cut and changes nothing. [{LOG_SEGMENT}]

    SEG-24: Whatever a crash leaves of an append, recovery comes to a log that is what was appended, from the first
    batch up to some batch: none is torn, none changed, and none missing before another; and no batch below the recovery
    point is lost. [{RECOVERY}; KAFKA-10101]

    SEG-26: After recovery the transaction index has an entry for every aborted transaction whose marker is in the log,
    and no other. [{FAILURES}; UnifiedLog.append, Kafka 4.3.0]
    """
    after = recovered(state)
    answer = RecoveryResult(state.size - after.size, epochs(after.batches))
    return Step(resized(after) if active else after, answer)


@machine.operation("sanityCheck")
@states(without=ONE_CALL)
@require(
    lambda state, time_index_file_newly_created: not (time_index_file_newly_created and state.times),
    "SEG-21 a new file has no entries",
)
@ensure(lambda state, result: isinstance(result, Refused) == (not state.index_files), "SEG-21 an index file is missing")
def sanity_check(state: Segment, time_index_file_newly_created: bool) -> Segment | Refused:
    """What opening a log asks of each segment.

    SEG-21: The sanity check refuses a segment without an offset index file; its recovery follows. A time index file
    that was not there is emptied. Of the entries only the transaction index's are looked at. [{RECOVERY};
    {LOG_SEGMENT}; KIP-263, KAFKA-19200, KAFKA-13603]
    """
    if not state.index_files:
        return NO_INDEX_FILE
    return replace(state, time_slots=0) if time_index_file_newly_created else state


@machine.operation("resizeIndexes", "SEG-8")
@ensure(lambda state, result: result.slots == state.full_slots, "SEG-8 full size")
@has_index_files
def resize_indexes(state: Segment) -> Segment:
    """The last segment of a log that was loaded becomes the active one."""
    return resized(state)


@machine.operation("reopen", "SEG-10", "SEG-22", "SEG-4", kind="restart")
@states(without=ONE_CALL)
@has_index_files
@has_a_slot_left
@ensure(lambda active, result: active or trimmed(result), "SEG-10 trimmed")
@ensure(
    lambda state, result: (
        result.largest == (state.largest if state.largest.timestamp >= state.last_time.timestamp else state.last_time)
    ),
    "SEG-22 the largest timestamp comes back",
)
def reopen(state: Segment, active: bool = False) -> Segment:
    """Close the segment, and open it again. The active one's index files get their full size then.

    SEG-22: A segment that is opened takes its largest timestamp from the last entry of the time index, and index files
    as full as they are large. [{LOG_SEGMENT}]
    """
    after = opened(inactive(state))
    return resized(after) if active else after


def opened(state: Segment) -> Segment:
    """What is known of a segment that is opened."""
    return replace(state, largest=state.last_time, since=0, rolling_timestamp=None, created=state.now)


@machine.operation("crash", "SEG-22", kind="crash")
@require(lambda state, keep_indexes: state.index_files or not keep_indexes, "SEG-21 index files are there")
@require(lambda lost_bytes: lost_bytes >= 0, "SEG-24 nothing comes by a crash")
@ensure(lambda state, lost_bytes, result: result.size == max(0, state.size - lost_bytes), "SEG-24 bytes lost")
@ensure(lambda state, result: is_start_of(result, state), "SEG-24 from the end")
def crash(state: Segment, lost_bytes: Position, keep_indexes: bool) -> Segment:
    """The end of the .log is lost; the index files are as they were, or gone. The segment is opened again, and the time
    index's last entry may say more than is there."""
    size = max(0, state.size - lost_bytes)
    kept = tuple(p.batch for p in state.placed if p.position + p.batch.size <= size)
    after = replace(
        state,
        batches=kept,
        rest=size - sum(b.size for b in kept),
        offset_slots=len(state.offsets),
        time_slots=len(state.times),
    )
    return opened(after if keep_indexes else replace(after, offsets=(), times=(), index_files=False))


@machine.environment("damage", kind="damage")
@require(lambda state, batch: 0 <= batch < len(state.batches), "SEG-17 there is such a batch")
@ensure(lambda state, result: result.size == state.size, "SEG-17 as long as before")
def damage(state: Segment, batch: Count) -> Segment:
    """The last byte of a batch is changed on the disk."""
    batches = list(state.batches)
    batches[batch] = replace(batches[batch], damaged=not batches[batch].damaged)
    return replace(state, batches=tuple(batches))


@machine.environment("createIndexes")
@require(lambda state: not state.index_files, "SEG-21 an index file is missing")
@ensure(lambda result: result.index_files and not result.offsets, "SEG-21 files without entries")
def create_indexes(state: Segment) -> Segment:
    """Index files are made, of full size, when an index is first asked for."""
    return resized(replace(state, index_files=True))


@machine.operation("changeFileSuffixes", "SEG-1")
@require(lambda state, old: state.suffix.endswith(old), "SEG-1 the files have the old suffix")
@require(lambda old, new: old != new, "SEG-1 another suffix")
@require(
    lambda state, old, new: len(state.suffix.removesuffix(old).encode() + new.encode()) <= LONGEST_SUFFIX,
    "SEG-1 names of at most 255 bytes",
)
@has_index_files
@ensure(lambda new, result: result.suffix.endswith(new), "SEG-1 the new suffix stands for the old one")
def rename(state: Segment, old: str, new: str) -> Segment:
    """Rename the files."""
    return replace(state, suffix=state.suffix.removesuffix(old) + new)


@machine.environment("advance", kind="time")
@require(lambda ms: ms >= 0, "SEG-7 not back")
@require(lambda state, ms: state.now + ms <= LATEST, "SEG-7 the clock stays far from the end of a long")
@ensure(lambda state, ms, result: result.now == state.now + ms, "SEG-7 later")
def advance(state: Segment, ms: Duration) -> Segment:
    """Time passes."""
    return replace(state, now=state.now + ms)


# ---- the operations: questions ---------------------------------------------------------------------------------------
@machine.operation("shouldRoll", "SEG-6", "SEG-7", "SEG-8", "SEG-9")
@states(without=ONE_CALL)
@has_index_files
@ensure(
    lambda state, result: replace(result.state, rolling_timestamp=None) == replace(state, rolling_timestamp=None),
    "SEG-7 nothing changes but that the first timestamp is remembered",
)
@ensure(
    lambda state, max_segment_bytes, messages_size, result: (
        state.size + messages_size <= max_segment_bytes or result.result
    ),
    "SEG-6 what does not fit is not appended",
)
@ensure(
    lambda state, max_offset_in_messages, result: state.fits(max_offset_in_messages) or result.result,
    "SEG-9 what is out of reach is not appended",
)
@ensure(lambda state, result: not state.index_full or result.result, "SEG-8 a full index")
def should_roll(
    state: Segment,
    max_segment_ms: TimeLimit,
    max_segment_bytes: Position,
    max_timestamp_in_messages: Timestamp,
    max_offset_in_messages: Offset,
    messages_size: Position,
) -> Step[Segment, bool]:
    """Whether a new segment is needed for messages of this size, largest timestamp and largest offset.

    SEG-6: A segment is to be rolled if the messages would not fit: size > segment.bytes - size of the messages.
    [{ROLLING}; {LOG_SEGMENT}]

    SEG-7: A segment with records is to be rolled if it has waited longer than segment.ms less its jitter: from the
    largest timestamp of its first batch to that of the messages; from its creation (or from when it was emptied) to
    now, if the first batch has none. [{ROLLING}; {LOG_SEGMENT}]

    SEG-9: A segment is to be rolled if the largest offset of the messages could not be appended to it (SEG-3).
    [{ROLLING}; {LOG_SEGMENT}; KAFKA-4451, KAFKA-6530]
    """
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


@dataclass(frozen=True)
class LogOffsetPosition:
    """A batch: base offset, position and size in bytes."""

    offset: int
    position: int
    size: int


@machine.question("translateOffset", "SEG-11")
@require(
    lambda state, starting_file_position: (
        starting_file_position in (0, state.size) or any(p.position == starting_file_position for p in state.placed)
    ),
    "SEG-11 the starting position is a batch's, or the end",
)
@is_recovered
@ensure(
    lambda state, offset, starting_file_position, result: (
        result is not None
        or all(p.batch.last_offset < offset for p in state.placed if p.position >= starting_file_position)
    ),
    "SEG-11 none only where all end below",
)
def translate_offset(state: Segment, offset: Offset, starting_file_position: Position = 0) -> LogOffsetPosition | None:
    """Where the batch with an offset is: its base offset, position and size. The starting position is a batch's."""
    at = place(state, offset, starting_file_position)
    return None if at is None else LogOffsetPosition(at.batch.base_offset, at.position, at.batch.size)


@dataclass(frozen=True)
class FetchDataInfo:
    """What a read gives: the base offset and the position of its first batch, and how many bytes."""

    offset: int
    position: int
    bytes: int
    first_entry_incomplete: bool


@machine.question("read")
@states(without=A_QUESTION)
@is_recovered
@ensure(
    lambda max_size, min_one_message, result: (
        min_one_message or not isinstance(result, FetchDataInfo) or result.bytes <= max_size
    ),
    "SEG-12 at most max_size bytes",
)
@ensure(
    lambda state, result: not isinstance(result, FetchDataInfo) or result.position + result.bytes <= state.size,
    "SEG-12 not beyond the end",
)
def read(
    state: Segment, start_offset: Offset, max_size: Int32, max_position: Position | None, min_one_message: bool
) -> FetchDataInfo | Refused | None:
    """Bytes from the batch with an offset on; None where there is none.

    SEG-12: A read from an offset gives bytes from its place on, at most its limit and none beyond the maximum position;
    with minOneMessage the first batch whole, however small the limit. The first batch is incomplete if it is larger
    than the limit. Without a maximum position, or with a limit of 0, no bytes are given; where the offset has no place,
    nothing is. A negative limit is refused, and a maximum position below the place. [{READING}; {LOG_SEGMENT}]
    """
    if max_size < 0:
        return NO_SUCH_READ
    at = place(state, start_offset)
    if at is None:
        return None
    most = max(max_size, at.batch.size) if min_one_message else max_size
    if most == 0 or max_position is None:
        return FetchDataInfo(at.batch.base_offset, at.position, 0, False)
    if max_position < at.position:
        return NO_SUCH_READ
    size = min(max_position - at.position, most, state.size - at.position)
    return FetchDataInfo(at.batch.base_offset, at.position, size, most < at.batch.size)


@dataclass(frozen=True)
class TimestampAndOffset:
    """A record."""

    timestamp: int
    offset: int
    leader_epoch: int | None


@machine.question("findOffsetByTimestamp")
@states(without=A_QUESTION)
@is_recovered
@require(lambda state: not any(b.damaged for b in state.batches), "SEG-17 no batch is damaged")
@ensure(
    lambda state, timestamp_ms, starting_offset, result: all(
        r.timestamp < timestamp_ms or r.offset < starting_offset or (result is not None and r.offset >= result.offset)
        for b in state.batches
        for r in b.records
    ),
    "SEG-13 the first in the file, and none only where there is none",
)
def find_offset_by_timestamp(
    state: Segment, timestamp_ms: Timestamp, starting_offset: Offset
) -> TimestampAndOffset | None:
    """The first record at or after a timestamp: its offset, timestamp and leader epoch.

    SEG-13: The offset for a timestamp is the first record's, in the order of the file, whose timestamp is at or above
    it and whose offset is at or above the starting offset; nothing if there is none. [{TIMES}; {LOG_SEGMENT};
    KAFKA-16341]
    """
    for b in state.batches:
        for r in b.records:
            if r.timestamp >= timestamp_ms and r.offset >= starting_offset:
                return TimestampAndOffset(r.timestamp, r.offset, b.leader_epoch if b.leader_epoch >= 0 else None)
    return None


@machine.question("readNextOffset", "SEG-14")
@is_recovered
@ensure(
    lambda state, result: all(b.last_offset < result for b in state.batches) and result >= state.base_offset,
    "SEG-14 above all",
)
def read_next_offset(state: Segment) -> int:
    """The offset that the next record gets."""
    return state.next_offset


@machine.question("names")
@states(without={"model": "a matter of names", "proof": "a matter of names"})
@ensure(lambda result: all(len(n.split(".")[0]) == 20 for n in result), "SEG-1 20 digits")
def names(state: Segment) -> list[str]:
    """The names of the segment's files.

    SEG-1: A segment's files are named by its base offset, 20 digits, and .log, .index, .timeindex or .txnindex; a
    further suffix is put after that or taken away from all of them, the .log first, the .txnindex last if it is there.
    [{CHAPTER}, 'On-disk directory layout of a partition'; LogFileUtils and {LOG_SEGMENT}]
    """
    ends = ["log", *(("index", "timeindex") if state.index_files else ()), *(("txnindex",) if state.aborted else ())]
    return [f"{state.base_offset:020}.{end}{state.suffix}" for end in ends]
