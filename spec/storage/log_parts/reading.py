"""What readers of a log are given: bytes below a bound, aborted transactions, and offsets by timestamp.

The clauses are those of the log, `spec.storage.log`, whose operations use them. Source: Kafka Internals, ch. 03, "The
read / fetch-by-offset path"; UnifiedLog and LocalLog, Kafka 4.3.0.
"""

from __future__ import annotations

import inspect
from typing import Literal

from kafkaspec.contract.clauses import A_QUESTION, ONE_CALL, not_modelled, states
from kafkaspec.contract.machine import Refused, Step
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, NO_TIMESTAMP
from kafkaspec.spec.common.segment_contents import place
from kafkaspec.spec.storage import segment, transaction_index
from kafkaspec.spec.storage.log_parts import contents
from kafkaspec.spec.storage.log_parts.changes import ERRORS, OUT_OF_SERVICE
from kafkaspec.spec.storage.log_parts.contents import Batch, Log, Mark, placed_high_watermark, placed_last_stable
from kafkaspec.spec.storage.log_parts.shown import (
    FetchDataInfo,
    ProducerIdAndFirstOffset,
    TimestampAndOffset,
    nothing_at,
    read_of,
)

CHAPTER, READING = contents.CHAPTER, contents.READING
UNIFIED_LOG, LOCAL_LOG = contents.UNIFIED_LOG, contents.LOCAL_LOG

NOT_IN_THE_LOG = Refused("LOG-21", f"{ERRORS}.OffsetOutOfRangeException")
NEGATIVE_SIZE = Refused("LOG-23", ILLEGAL_ARGUMENT)

Isolation = Literal["LOG_END", "HIGH_WATERMARK", "TXN_COMMITTED"]
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


@states(without={"LOG-26": ONE_CALL, "LOG-21": A_QUESTION, "LOG-23": not_modelled("the model's offsets have no holes")})
def given(
    state: Log, offset: int, max_length: int, isolation: Isolation, min_one_message: bool
) -> Step[Log, FetchDataInfo]:
    """Bytes from an offset on.

    LOG-21: A read below the log start or above the log end is refused. So is one for which no segment begins at or
    below the offset. [{READING}; {UNIFIED_LOG}]

    LOG-23: A read begins with the batch that holds the offset, in the last segment that begins at or below it, or with
    the next batch above it, in that segment or a later one: so a hole in the offsets is passed. It gives bytes of one
    segment alone, at most its limit; with minOneMessage at least the first batch whole. Without that a first batch
    larger than the limit is told to be incomplete. A negative limit is refused where there is something to read.
    [{READING}; {LOCAL_LOG}]

    LOG-24: No byte at or above the bound of the isolation is given: of LOG_END that is the log end, of HIGH_WATERMARK
    the high watermark, of TXN_COMMITTED the last stable offset. [{READING}; KIP-98]

    LOG-26: A read at the bound gives nothing, at the bound's place; above it, nothing at the offset's own place. If
    nothing is left in the log from the offset on, it gives nothing at the log end's place. [{READING}; {LOCAL_LOG}]
    """
    if offset < state.log_start:
        return Step(state, NOT_IN_THE_LOG)
    if state.offline:
        return Step(state, OUT_OF_SERVICE)
    bound, committed = state.end, isolation == "TXN_COMMITTED"
    if isolation == "HIGH_WATERMARK":
        state = placed_high_watermark(state)
        bound = state.high_watermark
    elif committed:
        state, bound = placed_last_stable(state)
    first = state.floor(offset)
    if first is None or offset > state.log_end:
        return Step(state, NOT_IN_THE_LOG)
    if offset >= bound.offset:
        return Step(
            state, nothing_at(bound if offset == bound.offset else contents.looked_up(state, offset), committed)
        )
    for n, s in enumerate(state.segments[first:], first):
        at = place(s, offset)
        if max_length < 0:
            return Step(state, NEGATIVE_SIZE)
        if at is None:
            continue
        mark = Mark(state.stands_for(offset, at.batch), s.base_offset, at.position)
        most = max(max_length, at.batch.size) if min_one_message else max_length
        end = s.size if s.base_offset < bound.segment else bound.position if s.base_offset == bound.segment else None
        size, incomplete = 0, False
        if most > 0 and end is not None:
            size, incomplete = min(end - at.position, most), most < at.batch.size
            if size < 0:
                return Step(state, NEGATIVE_SIZE)
        whole = [p.batch for p in s.placed if at.position <= p.position <= at.position + size - p.batch.size]
        said = [read_of(b) for b in whole if isinstance(b, Batch)]
        aborted = aborted_in(state, n, offset, at.position, size) if committed else None
        return Step(state, FetchDataInfo(*mark, size, incomplete, said, aborted))
    return Step(state, nothing_at(state.end, False))


@states(without=A_QUESTION)
def by_timestamp(state: Log, timestamp: int) -> TimestampAndOffset | None:
    """The offset for a timestamp, ms, or for what a negative one stands for.

    LOG-27: For a timestamp the first segment counts whose largest timestamp is at or above it: the answer is the first
    record in it at or above the timestamp and the log start (SEG-13), and none if that segment has none, whatever later
    segments have. A segment without a timestamp, as one without a batch, counts by its file's time of modification.
    [{CHAPTER}, 'LogSegment: a file pair plus indexes'; {UNIFIED_LOG}; KIP-33]

    LOG-38: Target -1 is the log end, with the latest epoch; -2, and without tiered storage -4, the log start, with the
    first epoch if that begins at or below it. -3 is the first record with the largest timestamp of the log, of all its
    segments; none in an empty log. -5 and -6, about tiered storage, are offset -1 of epoch -1 where there is none.
    [{UNIFIED_LOG}; ListOffsetsRequest; KIP-734, KIP-1005, KIP-1023]
    """
    if timestamp == LATEST:
        latest = state.epochs[-1].epoch if state.epochs else None
        return TimestampAndOffset(NO_TIMESTAMP, state.log_end, latest)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        first = state.epochs[0].epoch if state.epochs and state.epochs[0].start_offset <= state.log_start else None
        return TimestampAndOffset(NO_TIMESTAMP, state.log_start, first)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return TimestampAndOffset(NO_TIMESTAMP, -1, -1)
    if timestamp == MAX_TIMESTAMP:
        holder = max(state.segments, key=lambda s: s.largest.timestamp)
        b = next((b for b in holder.batches if b.max_timestamp == holder.largest.timestamp), None)
        return None if b is None else TimestampAndOffset(b.max_timestamp, b.base_offset, b.leader_epoch)
    holding = next((s for s in state.segments if s.largest.timestamp < 0 or s.largest.timestamp >= timestamp), None)
    if holding is None:
        return None
    there = inspect.unwrap(segment.find_offset_by_timestamp)(holding, timestamp, state.log_start)
    return None if there is None else TimestampAndOffset(there.timestamp, there.offset, there.leader_epoch)


@states(without=A_QUESTION)
def aborted_in(log: Log, n: int, offset: int, position: int, size: int) -> list[ProducerIdAndFirstOffset]:
    """The aborted transactions for a read in segment `n`.

    LOG-25: A reader of committed records is told the aborted transactions (producer id and first offset) that overlap
    what it may have been given: from its offset to the offset of the first index entry at or behind the end of the
    bytes, or without one to the next segment, or to the log end. The transaction indexes are asked from the segment on
    that gave the bytes, as TXI-6 says. [{READING}; {LOCAL_LOG}]
    """
    entry = next((e for e in log.segments[n].offsets if e.position >= position + size), None)
    return aborted_up_to(log, n, offset, behind(log, n) if entry is None else entry.offset)


def behind(log: Log, n: int) -> int:
    """Where segment `n` ends: at the next one, or the log end."""
    return log.segments[n + 1].base_offset if n + 1 < len(log.segments) else log.log_end


def aborted_up_to(log: Log, n: int, offset: int, upper: int) -> list[ProducerIdAndFirstOffset]:
    """The aborted transactions that overlap these offsets, by the transaction indexes from segment `n` on."""
    out: list[ProducerIdAndFirstOffset] = []
    for s in log.segments[n:]:
        found = transaction_index.Index(s.base_offset, s.aborted).search(offset, upper)
        out += [ProducerIdAndFirstOffset(e.producer_id, e.first_offset) for e in found.aborted_transactions]
        if found.is_complete:
            break
    return out
