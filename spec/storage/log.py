"""A partition's log: what an append does in which order, what a reader may see, and which offsets bound it.

One writer at a time changes the log; readers take no lock. So the order of the writer's effects is the rule: what a
reader may see moves last, and whatever fails in between leaves what was done before it and nothing of what comes after.
The log keeps four offsets in order: log start, last stable offset, high watermark, log end. The segments, the producers
and the leader epochs are subsystems of their own; here is what the log does with them.

Source: Kafka Internals, ch. 03, "The append path (leader)", "Segment rolling", "The read / fetch-by-offset path" and
"Offset boundaries: LSO, LEO, HW, recovery point"; UnifiedLog and LocalLog, Kafka 4.3.0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

from icontract import ensure, require

from kafkaspec.contract.clauses import A_FORMAT, A_QUESTION, ONE_CALL, clause, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.governs import reveals
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import (
    CoordinatorEpoch,
    Count,
    Int32,
    LeaderEpoch,
    Offset,
    Position,
    ProducerEpoch,
    ProducerEpochOrNone,
    ProducerId,
    ProducerIdOrNone,
    SequenceNumberOrNone,
    TimeLimit,
    Timeout,
    Within,
)
from kafkaspec.errors import UserError
from kafkaspec.spec.common import producers
from kafkaspec.spec.common.checkpoint_text import ZERO_ID, canonical, is_topic_id
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, KAFKA_EXCEPTION
from kafkaspec.spec.storage import leader_epochs, producer_state
from kafkaspec.spec.storage.leader_epochs import Entry, assigned
from kafkaspec.spec.storage.log_parts import contents, reading
from kafkaspec.spec.storage.log_parts.changes import (
    BELOW_THE_ACTIVE,
    CORRUPT_END,
    ERRORS,
    NOT_FROM_ZERO,
    OTHER_TOPIC,
    OUT_OF_SERVICE,
    RECORD_TOO_LARGE,
    apart,
    epochs_hold,
    failed,
    few,
    flushed,
    has_room,
    high_watermark_set,
    in_one_segment,
    is_batch,
    is_readable,
    may_roll,
    of_producer,
    replicated,
    retained,
    rolled,
    truncated,
    truncated_fully,
    with_log_start,
)
from kafkaspec.spec.storage.log_parts.contents import (
    PRODUCERS,
    BatchToReplicate,
    Config,
    Effect,
    KeyValue,
    Log,
    Mark,
    Timestamp,
    batch_of,
    id_in_file,
    id_is_missing,
    new_segment,
    on_disk,
    placed_high_watermark,
    with_high_watermark,
)
from kafkaspec.spec.storage.log_parts.contracts import (
    appends,
    flushed_alone,
    in_service,
    keeps_order,
    keeps_segments,
    one_behind_another,
    replayable,
    truncates_in_order,
)
from kafkaspec.spec.storage.log_parts.reading import Isolation, given
from kafkaspec.spec.storage.log_parts.shown import (
    FetchDataInfo,
    LogAppendInfo,
    OffsetAndEpoch,
    TimestampAndOffset,
    TopicPartition,
    below,
    observe,
    parsed,
)
from kafkaspec.spec.storage.log_parts.validation import led

APPENDING, BOUNDS, CHAPTER, FAILURES = contents.APPENDING, contents.BOUNDS, contents.CHAPTER, contents.FAILURES
READING, ROLLING, UNIFIED_LOG, LOCAL_LOG = contents.READING, contents.ROLLING, contents.UNIFIED_LOG, contents.LOCAL_LOG

PREFIX = "LOG"
TITLE = "Log"

ABOVE_THE_END = Refused("LOG-16", ILLEGAL_ARGUMENT)
ABOVE_HIGH_WATERMARK = Refused("LOG-32", f"{ERRORS}.OffsetOutOfRangeException")
NO_LOG = Refused("LOG-41", KAFKA_EXCEPTION)

clause(
    """LOG-1: An append works through these effects in this order: the topic id reaches its file; the records are looked
    through (LOG-3, LOG-11, LOG-12, LOG-13), by a leader one by one (LOG-48); offsets are assigned; leader epochs are
    assigned, and in their file (LOG-14); the size is checked (LOG-4); the log rolls if need be (LOG-5, LOG-6); the
    producers are asked (LOG-8, LOG-9); the batches are written; the log end rises; the producer state takes the batches
    in; the transaction index is written; the first unstable offset moves; the log is flushed if flush.messages are
    unflushed (LOG-36). [{APPENDING}; {UNIFIED_LOG}]""",
)

clause(
    """LOG-22: The log start is at most the last stable offset, that at most the high watermark, that at most the log
    end; the recovery point is at most the log end, but where a refused append has left a roll above it (LOG-9). It is
    so as long as the log start and the high watermark stand between batches: within one LOG-18 can take the high
    watermark and the last stable offset below the log start. A truncation that fails (LOG-37) leaves a high watermark
    above the log end. [{BOUNDS}; KAFKA-9491, KAFKA-12153]""",
)


# ---- the state -------------------------------------------------------------------------------------------------------
SegmentSize = Annotated[int, Within(1, 2**20)]
SegmentTime = Annotated[int, Within(1, 2**63 - 1)]
IndexSize = Annotated[int, Within(24, 2**16)]
MessageSize = Annotated[int, Within(1, 2**31 - 1)]
Retention = Annotated[int, Within(-1, 2**53)]
Delay = Annotated[int, Within(0, 10**6)]
Messages = Annotated[int, Within(1, 2**63 - 1)]
Trailing = Annotated[int, Within(0, 60)]
"""bytes, fewer than the header of a batch has"""
DIRECTORY_NAME = re.compile(r"[a-zA-Z0-9._-]{1,200}-[0-9]{1,9}")


def initial(
    topic_partition: str = "t-0",
    segment_bytes: SegmentSize = 600,
    segment_ms: SegmentTime = 100_000_000,
    roll_jitter_ms: Delay = 0,
    segment_index_bytes: IndexSize = 2**16,
    index_interval_bytes: Position = 4096,
    retention_bytes: Retention = -1,
    retention_ms: Retention = -1,
    cleanup_policy: Literal["delete", "compact", "compact,delete"] = "delete",
    file_delete_delay_ms: Delay = 60_000,
    max_message_bytes: MessageSize = 1 << 20,
    flush_messages: Messages = 2**63 - 1,
    producer_id_expiration_ms: Timeout = 86_400_000,
    max_transaction_timeout_ms: Timeout = 300_000,
    message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime",
    message_timestamp_before_max_ms: TimeLimit = 2**63 - 1,
    message_timestamp_after_max_ms: TimeLimit = 2**63 - 1,
) -> Log:
    """An empty log that begins at 0. `roll_jitter_ms` is what a segment has drawn of segment.jitter.ms.

    UserError unless `topic_partition` names a topic and a partition.
    """
    if not DIRECTORY_NAME.fullmatch(topic_partition):
        raise UserError(f"no topic and partition, such as t-0: {topic_partition!r}")
    config = Config(
        segment_bytes, segment_ms, roll_jitter_ms, segment_index_bytes, index_interval_bytes, retention_bytes,
        retention_ms, "delete" in cleanup_policy, "compact" in cleanup_policy, file_delete_delay_ms, max_message_bytes,
        flush_messages, message_timestamp_type == "CreateTime", message_timestamp_before_max_ms,
        message_timestamp_after_max_ms,
    )  # fmt: skip
    state = producer_state.initial(max_transaction_timeout_ms, producer_id_expiration_ms, True)
    return Log(config, (new_segment(config, 0, state.now),), state)


machine: Machine[Log] = Machine("log", initial, observe)


# ---- rolling ---------------------------------------------------------------------------------------------------------
@machine.operation("roll", "LOG-6", "LOG-7", "LOG-37")
@keeps_order
@keeps_segments
@ensure(lambda state, result: result.state.log_end == state.log_end, "LOG-6 the log end stays")
@ensure(
    lambda result: isinstance(result.result, Refused) or result.result == result.state.active.base_offset,
    "LOG-6 the new segment's base offset",
)
def roll(state: Log, fail_at: Literal["roll"] | None = None) -> Step[Log, int]:
    """A new active segment: its base offset."""
    if state.offline:
        return Step(state, OUT_OF_SERVICE)
    if not may_roll(state, 0):
        return Step(state, BELOW_THE_ACTIVE)
    after = rolled(state, 0, fail_at)
    return Step(after, OUT_OF_SERVICE if after.offline else after.active.base_offset)


# ---- appends ---------------------------------------------------------------------------------------------------------
@machine.operation(
    "appendAsLeader",
    "LOG-2",
    "LOG-3",
    "LOG-8",
    "LOG-1",
    "LOG-4",
    "LOG-5",
    "LOG-9",
    "LOG-14",
    "LOG-36",
    "LOG-37",
    "LOG-44",
    "LOG-46",
    "LOG-48",
    "LOG-49",
)
@states(without={"LOG-8": PRODUCERS, "LOG-3": ONE_CALL})
@require(
    lambda producer_id, producer_epoch, base_sequence: of_producer(producer_id, producer_epoch, base_sequence),
    "LOG-9 a producer id has an epoch and a sequence",
)
@require(lambda producer_id, transactional: producer_id >= 0 or not transactional, "LOG-9 transactions have a producer")
@require(few, "LOG-2 a batch of at most a thousand records")
@require(lambda state: state.log_end < 2**62 - 2**32, "LOG-2 the log end stays far from the end of a long")
@appends
def append_as_leader(
    state: Log, leader_epoch: LeaderEpoch, timestamp: Timestamp, records: Sequence[KeyValue],
    producer_id: ProducerIdOrNone = -1, producer_epoch: ProducerEpochOrNone = -1,
    base_sequence: SequenceNumberOrNone = -1, transactional: bool = False, base_offset: Offset = 0,
    trailing_bytes: Trailing = 0, trailing_zeros: bool = False, fail_at: Effect | None = None,
) -> Step[Log, LogAppendInfo]:  # fmt: skip
    """One batch of a client. A transactional one first has its transaction verified (PSM-27). `trailing_bytes` of the
    same batch follow, or of zeros. `fail_at`: the effect that the disk refuses, if it comes to it.

    LOG-2: A leader gives the records of a client's batch the offsets from the log end on, and the batch its own leader
    epoch. A batch whose base offset is not 0 is refused. [{APPENDING}; {UNIFIED_LOG}]

    LOG-3: A leader refuses a batch larger than max.message.bytes before it assigns offsets or epochs. [{UNIFIED_LOG}]

    LOG-8: A client's batch that repeats a retained one (PSM-2) is not appended. The answer has the offsets of the batch
    that is there, and its timestamp as log append time. Leader epochs are assigned by then, and the log may have
    rolled. [{APPENDING}; {UNIFIED_LOG}]
    """
    guard = 0
    if transactional:
        step = contents.start_verification(state.producers, producer_id, base_sequence, producer_epoch, False)
        if isinstance(step.result, Refused):
            return Step(state, step.result)
        state, guard = replace(state, producers=step.state), step.result
    state = id_in_file(state, fail_at)
    if id_is_missing(state):
        return Step(state, OUT_OF_SERVICE)
    size = contents.size_of(records)
    if base_offset != 0:
        return Step(state, NOT_FROM_ZERO)
    if size > state.config.max_message_bytes:
        return Step(state, RECORD_TOO_LARGE)
    if trailing_zeros and trailing_bytes >= contents.LENGTH_END:
        return Step(state, CORRUPT_END)
    if state.offline:
        return Step(state, OUT_OF_SERVICE)
    b = BatchToReplicate(
        state.log_end, timestamp, records, leader_epoch, producer_id, producer_epoch, base_sequence,
        "transactional" if transactional else "data",
    )  # fmt: skip
    return led(state, b, "CLIENT", fail_at, producers.UNKNOWN_VERSION, guard)


@machine.operation("appendEndTxnMarker", "LOG-10", "LOG-9", "LOG-1", "LOG-5", "LOG-14", "LOG-44", "LOG-48", "LOG-49")
@require(lambda state: state.log_end < 2**62 - 2**32, "LOG-2 the log end stays far from the end of a long")
@appends
def append_end_txn_marker(
    state: Log, producer_id: ProducerId, producer_epoch: ProducerEpoch, type: producers.MarkerType,
    coordinator_epoch: CoordinatorEpoch, transaction_version: Annotated[int, Within(0, 2)], timestamp: Timestamp,
    leader_epoch: LeaderEpoch, fail_at: Effect | None = None,
) -> Step[Log, LogAppendInfo]:  # fmt: skip
    """A coordinator ends a transaction."""
    state = id_in_file(state, fail_at)
    if id_is_missing(state):
        return Step(state, OUT_OF_SERVICE)
    size = contents.size_of((), control=True)
    if size > state.config.max_message_bytes:
        return Step(state, RECORD_TOO_LARGE)
    if state.offline:
        return Step(state, OUT_OF_SERVICE)
    b = BatchToReplicate(
        state.log_end, timestamp, (), leader_epoch, producer_id, producer_epoch, -1,
        "abort" if type == "ABORT" else "commit", coordinator_epoch,
    )  # fmt: skip
    return led(state, b, "COORDINATOR", fail_at, transaction_version, 0)


@machine.operation("appendAsFollower", "LOG-11", "LOG-12", "LOG-1", "LOG-5", "LOG-44", "LOG-48", "LOG-49")
@require(few, "LOG-11 a batch of at most a thousand records")
@appends
def append_as_follower(
    state: Log, leader_epoch: LeaderEpoch, base_offset: Offset, batch_leader_epoch: LeaderEpoch, timestamp: Timestamp,
    records: Sequence[KeyValue],
) -> Step[Log, LogAppendInfo]:  # fmt: skip
    """One batch of the leader."""
    return replicated(
        state, leader_epoch, [BatchToReplicate(base_offset, timestamp, records, batch_leader_epoch)], None
    )


@machine.operation(
    "appendBatchesAsFollower", "LOG-11", "LOG-12", "LOG-13", "LOG-10", "LOG-4", "LOG-1", "LOG-5", "LOG-44", "LOG-46",
    "LOG-48", "LOG-49",
)  # fmt: skip
@require(lambda batches: 0 < len(batches) <= 10 and all(map(is_batch, batches)), "LOG-11 one to ten batches")
@require(apart, "LOG-11 batches that a leader can have")
@require(
    lambda state, batches: in_one_segment(state, batches),
    "LOG-9 no append begins below the active segment and ends in it",
)
@require(
    lambda state, leader_epoch, batches: is_readable(state, leader_epoch, batches),
    "LOG-12 no batch that is passed over, or behind one out of order, is damaged where the offsets are refused",
)
@require(
    lambda state, batches: epochs_hold(state, batches), "LOG-11 a producer's epochs do not fall from batch to batch"
)
@require(
    lambda state, batches: has_room(state, [batch_of(b) for b in batches]),
    "LOG-5 the indexes have room for all batches of one append",
)
@appends
def append_batches_as_follower(
    state: Log, leader_epoch: LeaderEpoch, batches: Sequence[BatchToReplicate], missing_bytes: Position = 0,
    fail_at: Effect | None = None,
) -> Step[Log, LogAppendInfo]:  # fmt: skip
    """Batches of the leader, of one fetch, whose last bytes may not have come."""
    return replicated(state, leader_epoch, batches, fail_at, missing_bytes)


# ---- the topic's id --------------------------------------------------------------------------------------------------
an_id = require(
    lambda topic_id: topic_id is None or (is_topic_id(topic_id) and topic_id == canonical(topic_id) != ZERO_ID),
    "CKP-7 an id as Kafka writes it, and not the zero one",
)


@machine.operation("assignTopicId", "LOG-45", "LOG-44")
@states(without={"LOG-45": ONE_CALL})
@an_id
@ensure(
    lambda state, result: isinstance(result, Refused) or result.topic_id_file == state.topic_id_file, "LOG-44 later"
)
def assign_topic_id(state: Log, topic_id: str) -> Log | Refused:
    """The log is told its topic's id.

    LOG-45: A log has the topic id that is in its partition.metadata, or without that file the first one that it is
    told. Another id is refused, when it is told and when a log is opened with it; the log keeps its own.
    [{UNIFIED_LOG}; KIP-516]
    """
    if state.topic_id not in (None, topic_id):
        return OTHER_TOPIC
    return replace(state, topic_id=topic_id)


@machine.operation("flushMetadataFile", "LOG-44", kind="time")
@ensure(lambda result: not id_is_missing(result), "LOG-44 the id is in its file")
def flush_metadata_file(state: Log) -> Log:
    """The scheduler writes the topic's id to its file."""
    return id_in_file(state, None)


# ---- high watermark, log start, epochs -------------------------------------------------------------------------------
@machine.operation("updateHighWatermark", "LOG-15")
@require(
    lambda state: not state.offline or state.producers.first_unstable is None,
    "LOG-20 in service, or with no transaction whose place may have to be read",
)
@keeps_order
@ensure(
    lambda state, offset, result: result.result == min(max(offset, state.log_start), state.log_end),
    "LOG-15 within the log",
)
def update_high_watermark(state: Log, offset: Offset) -> Step[Log, int]:
    """The high watermark that a follower was told, or a leader begins with: what it became.

    LOG-15: The high watermark is set to an offset, but to the log start if that is higher, and to the log end if that
    is lower. It may fall. [{BOUNDS}; {UNIFIED_LOG}]
    """
    after = high_watermark_set(state, offset)
    return Step(after, after.high_watermark.offset)


@machine.operation("maybeIncrementHighWatermark", "LOG-16", "LOG-18")
@in_service
@keeps_order
@ensure(
    lambda state, offset, result: isinstance(result.result, Refused) == (offset > state.log_end),
    "LOG-16 refused above the log end",
)
@ensure(
    lambda state, result: (
        result.result is None
        or isinstance(result.result, Refused)
        or result.state.high_watermark.offset > result.result
    ),
    "LOG-16 it only rises",
)
def maybe_increment_high_watermark(state: Log, offset: Offset) -> Step[Log, int | None]:
    """The high watermark that the followers' offsets allow: what it was, if it changes.

    LOG-16: A leader raises the high watermark and never lowers it; one above the log end is refused. [{BOUNDS};
    {UNIFIED_LOG}]
    """
    if offset > state.log_end:
        return Step(state, ABOVE_THE_END)
    state = placed_high_watermark(state)
    before = state.high_watermark.offset
    return Step(with_high_watermark(state, Mark(offset)), before) if offset > before else Step(state, None)


@machine.operation("maybeIncrementLogStartOffset", "LOG-32", "LOG-22", "LOG-51")
@keeps_order
@flushed_alone
@ensure(
    lambda state, offset, result: (
        isinstance(result.result, Refused) or result.state.log_start == max(state.log_start, offset)
    ),
    "LOG-32 it only rises",
)
@ensure(lambda state, result: result.state.segments == state.segments, "LOG-32 the segments stay")
def maybe_increment_log_start_offset(
    state: Log, offset: Offset, fail_at: Literal["epochs"] | None = None
) -> Step[Log, bool]:
    """The log begins at an offset now: whether that is new.

    LOG-32: The log start rises to what DeleteRecords asks for, to what a follower's leader has, and to the first
    segment that retention leaves, and never falls by this; above the high watermark it is refused. The segments stay:
    what lies below is not read any more, and goes with its whole segment. The leader epochs begin there then (LEC-6),
    the producer state takes note (PSM-22), and a recovery point below rises to it. [{BOUNDS}; {UNIFIED_LOG}; KIP-107;
    KAFKA-16073]
    """
    if state.offline:
        return Step(state, OUT_OF_SERVICE)
    if offset > state.high_watermark.offset:
        return Step(state, ABOVE_HIGH_WATERMARK)
    return Step(with_log_start(state, offset, fail_at), True) if offset > state.log_start else Step(state, False)


@machine.operation("assignEpochStartOffset", "LOG-14")
@require(lambda state, offset: offset == state.log_end, "LOG-14 a leader begins at its log end")
@ensure(lambda result: leader_epochs.rising(result.epochs), "LOG-14 epochs rise")
def assign_epoch_start_offset(state: Log, leader_epoch: LeaderEpoch, offset: Offset) -> Log:
    """The replica becomes the leader of an epoch."""
    return contents.epochs_written(state, assigned(state.epochs, Entry(leader_epoch, offset)))


@machine.question("endOffsetForEpoch")
@states(without=A_QUESTION)
@require(
    lambda state: all(e.start_offset <= state.log_end for e in state.epochs),
    "LEC-11 no entry begins above the log's end",
)
def end_offset_for_epoch(state: Log, leader_epoch: LeaderEpoch) -> OffsetAndEpoch | None:
    """LOG-40: Where an epoch ended is answered by the leader epochs (LEC-10 to LEC-12), with the log end; nothing where
    that is unknown. [{UNIFIED_LOG}; KIP-101]"""
    cache = leader_epochs.Cache(state.epochs)
    end = contents.end_offset_for(cache, leader_epoch, state.log_end)
    return None if end == leader_epochs.UNKNOWN else OffsetAndEpoch(end.end_offset, end.epoch)


# ---- truncation, deletion --------------------------------------------------------------------------------------------
@machine.operation("truncateTo", "LOG-28", "LOG-29", "LOG-17", "LOG-31", "LOG-22", "LOG-37", "LOG-50", "LOG-51")
@states(without={"LOG-29": ONE_CALL})
@replayable
@truncates_in_order
@keeps_segments
@flushed_alone
@ensure(
    lambda state, offset, result: (
        isinstance(result.result, Refused) or result.state.log_end == min(state.log_end, offset)
    ),
    "LOG-28 the log ends there",
)
@ensure(
    lambda result: all(b.last_offset < result.state.log_end for s in result.state.segments for b in s.batches),
    "LOG-28 no batch reaches beyond the log end",
)
def truncate_to(
    state: Log, offset: Offset, fail_at: Literal["snapshot", "rename", "cut", "epochs"] | None = None
) -> Step[Log, bool]:
    """The log is cut where it parts from the leader's: whether there was something to cut.

    LOG-28: A truncation to an offset below the log end deletes the segments that begin above it, and cuts the last one
    that is left (SEG-15), so that a batch around the offset goes whole; the log ends at the offset, recovery point and
    log start fall to it if they are above, the leader epochs are cut (LEC-5), the producer state is rebuilt (LOG-31),
    and a high watermark at or above the log end becomes the log end. If the first segment begins above the offset, the
    log is emptied and begins there (LOG-30). [{LOCAL_LOG}; {UNIFIED_LOG}; KAFKA-6492]

    LOG-29: A truncation to the log end or above it cuts the leader epochs at the log end, and nothing else: a leader
    that wrote nothing left an entry there. [{UNIFIED_LOG}; KIP-101]
    """
    if state.offline:
        return Step(state, OUT_OF_SERVICE)
    if offset >= state.log_end:
        return Step(contents.epochs_cut(state, end=state.log_end, fails=fail_at), False)
    return truncated(state, offset, fail_at)


@machine.operation("truncateFullyAndStartAt", "LOG-30", "LOG-22", "LOG-37", "LOG-50", "LOG-51")
@require(
    lambda offset, log_start_offset: log_start_offset is None or log_start_offset <= offset,
    "LOG-22 the log does not end below its start",
)
@truncates_in_order
@keeps_segments
@ensure(
    lambda offset, result: result.state.offline or result.state.end.offset == offset == result.state.last_stable,
    "LOG-30 it ends there",
)
@ensure(
    lambda result: result.state.offline or not (any(s.batches for s in result.state.segments) or result.state.epochs),
    "LOG-30 nothing is left",
)
def truncate_fully_and_start_at(
    state: Log, offset: Offset, log_start_offset: Offset | None = None,
    fail_at: Literal["snapshot", "rename", "epochs"] | None = None,
) -> Step[Log, None]:  # fmt: skip
    """The follower's log lies outside the leader's.

    LOG-30: A full truncation deletes all segments, leader epochs, producers and snapshots. The log then ends at the
    given offset, which is its high watermark, and begins there, or at the log start that was given. The new segment is
    there before the last old one goes. [{LOCAL_LOG}; {UNIFIED_LOG}; KAFKA-9491]
    """
    if state.offline:
        return Step(state, OUT_OF_SERVICE)
    return truncated_fully(state, offset, log_start_offset, fail_at)


@machine.operation("deleteOldSegments", "LOG-39", "LOG-33", "LOG-34", "LOG-37", "LOG-50")
@in_service
@keeps_order
@keeps_segments
@flushed_alone
@ensure(
    lambda state, result: result.state.log_start <= max(state.log_start, state.high_watermark.offset),
    "LOG-33 nothing above the high watermark goes",
)
@ensure(lambda state, result: result.state.log_end == state.log_end, "LOG-33 the log end stays")
def delete_old_segments(state: Log, fail_at: Literal["roll", "snapshot", "rename"] | None = None) -> Step[Log, Count]:
    """Retention: how many segments were deleted. `fail_at`: what the disk refuses, if it comes to it."""
    log, count = retained(state, fail_at)
    return Step(log, OUT_OF_SERVICE if log.offline else count)


@machine.operation("flush", "LOG-35", "LOG-37")
@ensure(
    lambda state, result: (
        result.state.recovery_point == state.recovery_point
        if isinstance(result.result, Refused)
        else result.state.recovery_point == max(state.recovery_point, state.log_end)
    ),
    "LOG-35 to the log end, if it was flushed",
)
def flush(state: Log, force_flush_active_segment: bool, fail_at: Literal["flush"] | None = None) -> Step[Log, None]:
    """All of the log outlives a crash.

    LOG-35: The recovery point is the offset below which everything was flushed. It rises by a flush alone, after it, to
    the log end or to where a roll began a segment; by a load after a clean stop, to the log end; and with a log start
    above it, for what is below is not needed. It falls to where the log is cut. A stop that is not clean leaves it as
    it was checkpointed. [{BOUNDS}; {LOCAL_LOG}; KAFKA-10101]
    """
    if state.offline:
        return Step(state, OUT_OF_SERVICE)
    there_is_something = state.log_end + force_flush_active_segment > state.recovery_point
    if fail_at == "flush" and there_is_something and state.active.batches:
        return failed(state)
    return Step(flushed(state, state.log_end), None)


@machine.operation("advance", "LOG-34", kind="time")
@in_service
@require(lambda state, ms: state.now + ms < 10**12, "LOG-34 the clock stays below the time of any file")
@ensure(lambda state, ms, result: result.now == state.now + ms, "LOG-34 later")
def advance(state: Log, ms: Delay) -> Log:
    """Time passes, and the scheduler removes what is due."""
    return contents.passed(replace(state, producers=replace(state.producers, now=state.now + ms)))


# ---- reads -----------------------------------------------------------------------------------------------------------
@machine.operation("read", "LOG-21", "LOG-23", "LOG-24", "LOG-18", "LOG-25", "LOG-26", "LOG-37")
@keeps_order
@ensure(
    lambda state, offset, result: isinstance(result.result, Refused) or offset <= state.log_end,
    "LOG-21 nothing is read outside the log",
)
@ensure(
    lambda state, isolation, result: below(
        {"LOG_END": state.end, "HIGH_WATERMARK": state.high_watermark}.get(isolation, Mark(state.last_stable)),
        result.result,
    ),
    "LOG-24 nothing at or above the bound of the isolation",
)
@ensure(
    lambda result: (
        not isinstance(result.result, FetchDataInfo)
        or all(a.last_offset < b.base_offset for a, b in pairwise(result.result.batches))
    ),
    "LOG-23 batches in order",
)
def read(
    state: Log, offset: Offset, max_length: Int32, isolation: Isolation, min_one_message: bool
) -> Step[Log, FetchDataInfo]:
    """Bytes from an offset on."""
    return given(state, offset, max_length, isolation, min_one_message)


Target = Annotated[int, Within(reading.EARLIEST_PENDING_UPLOAD, 10**12)]


@machine.question("fetchOffsetByTimestamp", "LOG-27", "LOG-38")
def fetch_offset_by_timestamp(state: Log, timestamp: Target) -> TimestampAndOffset | Refused | None:
    """The offset for a timestamp, ms, or for what a negative one stands for."""
    return OUT_OF_SERVICE if state.offline else reading.by_timestamp(state, timestamp)


# ---- a stop and a start ----------------------------------------------------------------------------------------------
@machine.operation("closeAndReopen", "LOG-42", "LOG-44", "LOG-45", "LOG-47", "LOG-37", kind="restart")
@replayable
@an_id
@in_service
@require(
    lambda state, log_start_offset: log_start_offset <= state.active.next_offset,
    "LDR-9 the log does not end below its start",
)
@require(lambda last_shutdown_clean: last_shutdown_clean, "LOG-42 a stop with a marker of it")
@require(lambda torn_bytes: torn_bytes == 0, "LOG-42 a clean stop loses nothing")
@keeps_segments
@ensure(
    lambda state, result: result.result == OUT_OF_SERVICE or result.state.log_end == state.active.next_offset,
    "LOG-42 the log ends behind its last batch",
)
def close_and_reopen(
    state: Log, log_start_offset: Offset, recovery_point: Offset, last_shutdown_clean: bool = True,
    torn_bytes: Position = 0, producer_snapshots_deleted: bool = False, topic_id: str | None = None,
    fail_at: Literal["topicId", "snapshot"] | None = None,
) -> Step[Log, None]:  # fmt: skip
    """The log is closed, and loaded again, with a topic id if one is known. If that is refused, without one. If the
    disk refuses an effect of the close, it is not loaded.

    LOG-42: A log that is closed takes a producer snapshot at its end. Loaded again it has the same batches and epochs,
    ends behind its last batch (a log that was cut within a batch ended above), or where an active segment without one
    begins, has its producers from the snapshot, and
    a recovery point at the log end; the high watermark is the log start until somebody says another one. [{CHAPTER},
    'Crash recovery & startup: LogLoader'; {UNIFIED_LOG}]
    """
    state = id_in_file(state, fail_at)
    if id_is_missing(state) or (fail_at == "snapshot" and state.producers.end > state.producers.last_snapshot):
        return failed(state)
    closed = replace(state, producers=contents.take_snapshot(state.producers))
    after = contents.loaded(closed, True, recovery_point, log_start_offset, 0, producer_snapshots_deleted)
    if topic_id is None or topic_id == after.topic_id:
        return Step(after, None)
    if after.topic_id is None:
        return Step(replace(after, topic_id=topic_id), None)
    return Step(contents.loaded(after, True, recovery_point, log_start_offset, 0, False), OTHER_TOPIC)


@machine.operation("crashAndReopen", "LOG-43", kind="crash")
@reveals("LOG-14", "LOG-35", "LOG-50", "LOG-51")
@replayable
@require(
    lambda state, torn_bytes, log_start_offset: (
        contents.torn(on_disk(state).active, torn_bytes).next_offset >= log_start_offset
    ),
    "LDR-9 the log does not end below its start",
)
@require(lambda state: one_behind_another(on_disk(state)), "LOG-50 what was stranded lies apart from what is new")
@require(
    lambda state, recovery_point: contents.shut_or_recovered(state, recovery_point),
    "LOG-50 a segment is recovered if nobody cut the zeros from its index files",
)
@require(lambda last_shutdown_clean: not last_shutdown_clean, "LOG-43 a crash leaves no marker of a clean stop")
@require(
    lambda state, torn_bytes, recovery_point: contents.recoveries_fit(on_disk(state), torn_bytes, recovery_point),
    "LOG-43 the indexes have room for what recovery reads",
)
@keeps_segments
@ensure(lambda state, result: result.log_end <= on_disk(state).active.next_offset, "LOG-43 nothing is made up")
def crash_and_reopen(
    state: Log, log_start_offset: Offset, recovery_point: Offset, last_shutdown_clean: bool = False,
    torn_bytes: Position = 0, producer_snapshots_deleted: bool = False,
) -> Log:  # fmt: skip
    """The process dies, the active segment loses its last bytes, perhaps the snapshots are lost, and the log is loaded.

    LOG-43: A log that was not closed is recovered from the segment on that holds the checkpointed recovery point
    (LDR-7), and then has its batches up to the first that is not whole, with the producers that they make. [{FAILURES};
    {UNIFIED_LOG}; KAFKA-10101]
    """
    return contents.loaded(state, False, recovery_point, log_start_offset, torn_bytes, producer_snapshots_deleted)


# ---- names -----------------------------------------------------------------------------------------------------------
@machine.question("parseTopicPartitionName")
@states(without=A_FORMAT)
@require(
    lambda name: name.isascii() and "/" not in name and "\0" not in name and name, "LOG-41 the name of a directory"
)
def parse_topic_partition_name(name: str) -> TopicPartition | Refused:
    """The partition whose log a directory has.

    LOG-41: A log's directory is named TOPIC-PARTITION, or TOPIC-PARTITION.ID and -delete, -future or -stray, the
    partition a number of 32 bits as Java reads one. A directory with another name is no log, and refused. [{LOCAL_LOG},
    parseTopicPartitionName]
    """
    return parsed(name) or NO_LOG
