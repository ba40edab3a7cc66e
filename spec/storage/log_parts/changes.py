"""What changes a log: appends with their effects in order, rolling, truncation and deletion.

The clauses are those of the log, `spec.storage.log`, whose operations use them. Source: Kafka Internals, ch. 03;
UnifiedLog and LocalLog, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, takewhile
from typing import Any

from kafkaspec.contract.clauses import ONE_CALL, not_modelled, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.machine import Refused, Step
from kafkaspec.spec.common import producers
from kafkaspec.spec.common.aborted_transaction import AbortedTransaction
from kafkaspec.spec.common.kafka import INT_MAX, KAFKA_EXCEPTION, LONG_MAX, NO_TIMESTAMP, STORAGE_EXCEPTION
from kafkaspec.spec.common.producers import EndedTransaction
from kafkaspec.spec.common.segment_contents import (
    MOST_RECORDS,
    IndexState,
    Segment,
    inactive,
    indexed,
    placed,
    room,
)
from kafkaspec.spec.storage import producer_state
from kafkaspec.spec.storage.leader_epochs import Entry, assigned
from kafkaspec.spec.storage.log_parts import contents
from kafkaspec.spec.storage.log_parts.contents import (
    PRODUCERS,
    Batch,
    BatchToReplicate,
    Effect,
    KeyValue,
    Log,
    Mark,
    Refusable,
    batch_of,
    epochs_cut,
    given_up,
    high_watermark_within,
    id_in_file,
    id_is_missing,
    new_segment,
    place_of,
    rebuilt,
    should_roll,
    take_snapshot,
    unstable,
    with_high_watermark,
    without_segments,
    without_snapshots,
)
from kafkaspec.spec.storage.log_parts.shown import LogAppendInfo, info

APPENDING, BOUNDS, CHAPTER, FAILURES = contents.APPENDING, contents.BOUNDS, contents.CHAPTER, contents.FAILURES
READING, ROLLING, UNIFIED_LOG, LOCAL_LOG = contents.READING, contents.ROLLING, contents.UNIFIED_LOG, contents.LOCAL_LOG
ERRORS = "org.apache.kafka.common.errors"

RECORD_TOO_LARGE = Refused("LOG-3", f"{ERRORS}.RecordTooLargeException")
BATCH_TOO_LARGE = Refused("LOG-4", f"{ERRORS}.RecordBatchTooLargeException")
NOT_FROM_ZERO = Refused("LOG-2", "org.apache.kafka.common.InvalidRecordException")
OUT_OF_ORDER = Refused("LOG-11", "org.apache.kafka.storage.internals.log.OffsetsOutOfOrderException")
UNEXPECTED_OFFSET = Refused("LOG-11", "org.apache.kafka.server.storage.log.UnexpectedAppendOffsetException")
CORRUPT = Refused("LOG-13", f"{ERRORS}.CorruptRecordException")
OUT_OF_SERVICE = Refused("LOG-37", STORAGE_EXCEPTION)
OTHER_TOPIC = Refused("LOG-45", f"{ERRORS}.InconsistentTopicIdException")
CORRUPT_END = Refused("LOG-46", f"{ERRORS}.CorruptRecordException")
BELOW_THE_ACTIVE = Refused("LOG-6", KAFKA_EXCEPTION)


@states(without={"LOG-7": ONE_CALL})
def rolled(log: Log, expected: int, fails: Refusable | None = None) -> Log:
    """The log with a new active segment.

    LOG-6: A roll begins a segment at the log end, or at the offset that is to come next if that is higher; the segment
    before it gets its last time entry and trimmed indexes (SEG-10). The log end stays, and its place is in the new
    segment. Then the producers are taken to be up to there, and a snapshot is taken, which is not flushed; then the
    high watermark is looked at (LOG-17). What is before the new segment, snapshot included, is flushed later, by the
    scheduler, and the recovery point rises to the new base offset then. Where a refused append has left a segment that
    begins above that (LOG-9), a roll is refused, and so is each append that needs one, until the log is cut or loaded
    again. [{ROLLING}; {LOCAL_LOG}; {UNIFIED_LOG}; KAFKA-6683]

    LOG-7: An active segment that is empty and begins where the new one would is replaced: its files get the suffix
    .deleted before the new ones are made, and it takes no other segment with it. It comes to that if an index has no
    room for a single entry. [{ROLLING}; {LOCAL_LOG}; KAFKA-6388, KAFKA-6492]
    """
    if fails == "roll":
        return replace(log, offline=True)
    base = max(expected, log.log_end)
    made = new_segment(log.config, base, log.now)
    if log.active.base_offset == base:
        after = given_up(log.with_active(made), [log.active])
    else:
        after = replace(
            log.with_active(inactive(log.active)), segments=(*log.with_active(inactive(log.active)).segments, made)
        )
    after = replace(after, producers=replace(after.producers, end=base))
    if fails == "snapshot" and base > after.producers.last_snapshot:
        return replace(after, offline=True)
    after = high_watermark_within(replace(after, producers=take_snapshot(after.producers)))
    return flushed(after, base)


def may_roll(log: Log, expected: int) -> bool:
    """Whether a new segment would not begin below the active one."""
    return max(expected, log.log_end) >= log.active.base_offset


def flushed(log: Log, offset: int) -> Log:
    """The log after it was flushed up to an offset."""
    return log if offset <= log.recovery_point else replace(log, recovery_point=offset)


@states(without=ONE_CALL)
def rolls(log: Log, new: Sequence[Batch]) -> tuple[Log, bool]:
    """Whether the log has to roll for these batches; the first timestamp of the active segment is remembered.

    LOG-5: Before an append the log rolls if the active segment is to be rolled (SEG-6, SEG-7, SEG-8, SEG-9) for batches
    of that size, largest timestamp and last offset, with segment.bytes, segment.ms and the segment's jitter; the new
    segment then begins at the first offset of the append. [{ROLLING}; {UNIFIED_LOG}; KAFKA-4451, KAFKA-6530]
    """
    c = log.config
    step = should_roll(
        replace(log.active, now=log.now), c.segment_ms, c.segment_bytes, max(b.max_timestamp for b in new),
        new[-1].last_offset, sum(b.size for b in new),
    )  # fmt: skip
    return log.with_active(step.state), step.result


def has_room(log: Log, new: Sequence[Batch]) -> bool:
    """Whether the indexes of the segment that the batches go to, or the first of them alone, have room for their
    entries."""

    def fits(some: Sequence[Batch]) -> bool:
        rolling = rolls(log, some)[1]
        return room(new_segment(log.config, some[0].base_offset, log.now) if rolling else log.active, some)

    return all(fits(new[:n]) for n in range(2, len(new) + 1))


@states()
def failed(log: Log) -> Step[Log, Any]:
    """The log after an effect that the disk refused.

    LOG-37: If the disk refuses an effect, the call ends there with a storage error: what was done before it stays, and
    nothing that comes after it is done. So the log end rises only over batches that were written, and what was written
    when the transaction index could not be is in the log, though the producer state does not count it, and its
    transaction stays undecided. The directory is out of service from then on: appends, reads, look-ups by timestamp,
    rolls, truncations, flushes and a rise of the log start are refused until a process loads the log again; a deletion
    is not asked for. The high watermark still moves, and leader epochs are still assigned. [{FAILURES}; {UNIFIED_LOG}]
    """
    return Step(replace(log, offline=True), OUT_OF_SERVICE)


@states(without={"LOG-9": PRODUCERS, "LOG-10": PRODUCERS, "LOG-4": ONE_CALL})
def appended(
    log: Log, new: Sequence[Batch], said: LogAppendInfo, origin: producers.Origin, fails: Effect | None, version: int,
    guard: int,
) -> Step[Log, LogAppendInfo]:  # fmt: skip
    """The log after batches that have their offsets.

    LOG-4: Batches that are together larger than segment.bytes are refused. Their leader epochs are assigned by then,
    and stay. [{APPENDING}; {UNIFIED_LOG}]

    LOG-9: The producer state is asked for each batch with a producer id, as PSM says for the origin of the append. If
    it refuses one, nothing of the append is written; but the leader epochs stay, and so does a segment that was rolled
    for it, even one above the log end; and the verifications that its transactional batches before that ended are
    ended. [{APPENDING}; {UNIFIED_LOG}]

    LOG-10: A marker that ends an aborted transaction is entered in the transaction index of the segment that it was
    written to, with the first offset of the first transaction of another producer that is open at that marker, or
    without one the offset behind the marker (PSM-16). Open are all that the append has begun by its end, and those that
    a later marker of it ends. [{APPENDING}; {UNIFIED_LOG}]

    LOG-14: Each batch's leader epoch and base offset are assigned to the leader epochs (LEC-2), and in their file
    (LEC-4), before anything of the append is written. [{APPENDING}; {UNIFIED_LOG}; KIP-101]

    LOG-36: After an append the log is flushed if as many offsets as flush.messages lie between the recovery point and
    the log end. [{BOUNDS}; {UNIFIED_LOG}]
    """
    for b in new:
        entries = assigned(log.epochs, Entry(b.leader_epoch, b.base_offset))
        if entries != log.epochs and fails == "epochs":
            return failed(replace(log, epochs=entries))
        log = contents.epochs_written(log, entries)
    size = sum(b.size for b in new)
    if size > log.config.segment_bytes:
        return Step(log, BATCH_TOO_LARGE)
    log, rolling = rolls(log, new)
    if rolling and not may_roll(log, new[0].base_offset):
        return Step(log, BELOW_THE_ACTIVE)
    if rolling:
        log = rolled(log, new[0].base_offset, fails)
        if log.offline:
            return Step(log, OUT_OF_SERVICE)
    state, ended = log.producers, list[EndedTransaction]()
    for b in new:
        state, outcome = contents.append_to_producers(state, b, origin, version, guard)
        if isinstance(outcome, Refused):
            return Step(with_verifications(log, state), outcome)
        if isinstance(outcome, EndedTransaction):
            ended.append(outcome)
        elif outcome is not None:
            _, _, first, last, timestamp = outcome["duplicate"]
            return Step(log, info(log, first, last, said.max_timestamp, said.valid_bytes, None, timestamp))
    if fails == "bytes":
        return failed(with_verifications(log, state))
    log = high_watermark_within(
        replace(log.with_active(with_batches(log.active, new)), log_end=new[-1].last_offset + 1)
    )
    aborted = [e for e in ended if e.is_aborted]
    opened = [(first, i) for first, i in state.opened.items()]
    at = log.producers.end
    for n, e in enumerate(ended):
        others = [
            f for f, i in (*opened, *((x.first_offset, x.producer_id) for x in ended[n + 1 :])) if i != e.producer_id
        ]
        entry = AbortedTransaction(e.producer_id, e.first_offset, e.last_offset, min(others, default=e.last_offset + 1))
        if e.is_aborted and fails == "txnIndex":  # what is not in the index stays undecided
            undecided = {x.first_offset: state.ended[x.first_offset]._replace(last_offset=LONG_MAX) for x in ended[n:]}
            return failed(replace(log, producers=replace(state, end=at, ended={**state.ended, **undecided})))
        if e in aborted:
            log = log.with_active(replace(log.active, aborted=(*log.active.aborted, entry)))
            log = replace(log, indexed=log.indexed | {log.active.base_offset})
    log = unstable(replace(log, producers=replace(state, end=log.log_end)))
    if log.log_end - log.recovery_point >= log.config.flush_messages:
        if fails == "flush":
            return failed(log)
        log = flushed(log, log.log_end)
    return Step(log, said)


def with_verifications(log: Log, state: producers.State) -> Log:
    """With those that are left when nothing is written: they are ended when the batches are looked at."""
    return replace(log, producers=replace(log.producers, verifications=state.verifications))


def with_batches(active: Segment, new: Sequence[Batch]) -> Segment:
    """A segment with batches at its end (SEG-2, SEG-4, SEG-5)."""
    before = active.size
    more = [p._replace(position=p.position + before) for p in placed(new)]
    after: IndexState = indexed(more, active.index_interval_bytes, active.indexes)
    return replace(active, batches=(*active.batches, *new), **after._asdict())


def of_producer(producer_id: int, epoch: int, sequence: int) -> bool:
    """Whether a producer id comes with an epoch and a sequence, and none without."""
    return (min(epoch, sequence) >= 0) if producer_id >= 0 else (epoch == sequence == -1)


def few(records: Sequence[KeyValue]) -> bool:
    return 0 < len(records) <= MOST_RECORDS


def is_batch(b: BatchToReplicate) -> bool:
    """Whether a leader can have such a batch."""
    if b.kind in ("abort", "commit"):
        return not b.records and b.producer_id >= 0 and b.producer_epoch >= 0 and b.base_sequence == -1
    fits = of_producer(b.producer_id, b.producer_epoch, b.base_sequence)
    return few(b.records) and fits and (b.kind == "data" or b.producer_id >= 0)


def apart(batches: Sequence[BatchToReplicate]) -> bool:
    """Whether no batch begins within the one before and ends behind it, and one segment can hold them all."""
    return max(b.last_offset for b in batches) - batches[0].base_offset <= INT_MAX and all(
        x.last_offset < y.base_offset or y.last_offset <= x.last_offset for x, y in pairwise(batches)
    )


def in_one_segment(log: Log, batches: Sequence[BatchToReplicate]) -> bool:
    """Whether the batches do not begin below an active segment that lies above the log end (LOG-9) and end in it."""
    return not batches[0].last_offset < log.active.base_offset <= batches[-1].last_offset


def is_readable(log: Log, leader_epoch: int, batches: Sequence[BatchToReplicate]) -> bool:
    """Whether batches that are refused for their offsets can be named: Kafka's message has offsets of all that came."""
    taken = list(takewhile(lambda b: b.leader_epoch <= leader_epoch, batches))
    last = [b.last_offset for b in taken]
    in_order = next((n for n in range(1, len(last)) if last[n] <= last[n - 1]), len(taken))
    refused = in_order < len(taken) or batches[0].base_offset < log.log_end
    return not refused or not any(b.damaged for b in batches[in_order:])


def epochs_hold(log: Log, batches: Sequence[BatchToReplicate]) -> bool:
    """Whether no producer's epoch falls where it has several batches."""
    ids = [b.producer_id for b in batches if b.producer_id >= 0]
    return all(
        a <= b
        for i in {i for i in ids if ids.count(i) > 1}
        for a, b in pairwise([log.producers.known(i).epoch, *(b.producer_epoch for b in batches if b.producer_id == i)])
    )


@states(
    without={
        "LOG-12": not_modelled("one replica, whose leader's epoch is what it says"),
        "LOG-11": not_modelled("the model's offsets have no holes"),
        "LOG-13": ONE_CALL,
        "LOG-46": ONE_CALL,
    }
)
def replicated(
    log: Log, leader_epoch: int, batches: Sequence[BatchToReplicate], fails: Effect | None, missing_bytes: int = 0
) -> Step[Log, LogAppendInfo]:
    """The log after batches of its leader, the last bytes of which did not come.

    LOG-11: A follower takes the offsets as they are, gaps too. It refuses batches whose last offsets do not rise, and
    batches that begin below its log end; then nothing changes. [{CHAPTER}, 'Follower append'; {UNIFIED_LOG}]

    LOG-12: A follower takes no batch with a leader epoch above that of the leader it fetches from, and none behind one;
    if none is left, it appends nothing. [{UNIFIED_LOG}; KAFKA-18723]

    LOG-13: A batch with a wrong CRC is refused, and with it all of the append. [{APPENDING}; {UNIFIED_LOG}]

    LOG-46: What follows the last whole batch of an append is left out: fewer than 12 bytes, or the begin of a batch
    that did not come whole. Without a whole batch nothing is appended, and that is no error. 12 bytes or more with a
    length that no batch has are refused, and with them all of the append. [{APPENDING}; {UNIFIED_LOG},
    trimInvalidBytes; ByteBufferLogInputStream]
    """
    log = id_in_file(log, fails)
    if id_is_missing(log):
        return Step(log, OUT_OF_SERVICE)
    new: list[Batch] = []
    came = [batch_of(b) for b in batches]
    room = sum(b.size for b in came) - missing_bytes
    for b, made in zip(batches, came, strict=True):
        room -= made.size
        if room < 0 or b.leader_epoch > leader_epoch:
            break
        if b.damaged:
            return Step(log, CORRUPT)
        if new and new[-1].last_offset >= made.last_offset:
            return Step(log, OUT_OF_ORDER)
        new.append(made)
    if not new:
        return Step(log, info(log, -1, -1, NO_TIMESTAMP, 0, None))
    if log.offline:
        return Step(log, OUT_OF_SERVICE)
    first, last = new[0].base_offset, new[-1]
    size = sum(b.size for b in new)
    said = info(log, first, last.last_offset, max(b.max_timestamp for b in new), size, last.leader_epoch)
    if first < log.log_end:
        return Step(log, UNEXPECTED_OFFSET)
    return appended(log, new, said, "REPLICATION", fails, producers.UNKNOWN_VERSION, 0)


def high_watermark_set(log: Log, offset: int) -> Log:
    """The log with its high watermark at an offset, within the log."""
    if offset < log.log_start:
        return with_high_watermark(log, Mark(log.log_start))
    return with_high_watermark(log, log.end if offset >= log.log_end else Mark(offset))


def with_log_start(log: Log, offset: int, fails: Refusable | None = None) -> Log:
    """The log after its log start rose."""
    after = replace(log, log_start=offset, recovery_point=max(log.recovery_point, offset))
    if after.high_watermark.offset < offset:
        after = high_watermark_set(after, offset)
    after = epochs_cut(after, start=offset, fails=fails)
    return unstable(replace(after, producers=producer_state.with_log_start(after.producers, offset)))


def truncated(log: Log, offset: int, fails: Refusable | None) -> Step[Log, bool]:
    """The log after it was cut at an offset below its end (LOG-28)."""
    if log.segments[0].base_offset > offset:
        step = truncated_fully(log, offset, None, fails)
        return Step(step.state, step.result or True)
    gone = [s for s in log.segments if s.base_offset > offset]
    if gone and fails == "rename":
        return Step(contents.stranded(log, gone), OUT_OF_SERVICE)
    after = without_segments(log, gone)
    cut = contents.truncate_segment(replace(after.active, now=log.now), offset).state
    if fails == "cut" and cut.size < after.active.size:
        return failed(after.with_active(replace(after.active, aborted=cut.aborted)))
    after = replace(after.with_active(cut), log_end=offset, recovery_point=min(log.recovery_point, offset))
    after = without_snapshots(after, [s.base_offset for s in gone])
    epochs = epochs_cut(after, end=offset, fails=fails)
    after = rebuilt(replace(epochs, log_start=min(offset, log.log_start), offline=False), offset, fails=fails)
    if after.offline:
        return Step(after, OUT_OF_SERVICE)
    return Step(replace(high_watermark_within(after), offline=epochs.offline), True)


def truncated_fully(log: Log, offset: int, log_start: int | None, fails: Refusable | None) -> Step[Log, None]:
    """The log after it was emptied, to begin at an offset (LOG-30)."""
    made = new_segment(log.config, offset, log.now)
    *others, last = log.segments
    if fails == "rename":
        if others:
            return Step(contents.stranded(log, others), OUT_OF_SERVICE)
        if last.base_offset == offset:
            return failed(log)
        return Step(contents.stranded(replace(log, segments=(*log.segments, made)), [last]), OUT_OF_SERVICE)
    after = replace(without_segments(log, log.segments), segments=(made,), log_end=offset)
    after = replace(after, recovery_point=min(log.recovery_point, offset), epochs=())
    if fails == "epochs":
        return failed(after)
    after = replace(
        after,
        log_start=offset if log_start is None else log_start,
        epochs_file=(),
        producers=producer_state.truncate_fully_and_start_at(log.producers, offset),
    )
    after = rebuilt(after, offset, fails=fails)
    return Step(after, OUT_OF_SERVICE) if after.offline else Step(with_high_watermark(after, after.end), None)


def deletable(log: Log, delete: Callable[[int], bool]) -> list[int]:
    """The segments, from the first on, that a policy has deleted: `delete` is asked of each by its number."""
    found: list[int] = []
    for n, s in enumerate(log.segments):
        last = n == len(log.segments) - 1
        upper = log.log_end if last else log.segments[n + 1].base_offset
        if not (log.high_watermark.offset >= upper and delete(n)) or (last and not s.batches):
            break
        found.append(n)
    return found


@states()
def deleted(log: Log, delete: Callable[[int], bool], fails: Refusable | None) -> tuple[Log, int]:
    """The log without the segments that a policy has deleted, and how many those are; out of service, and with all of
    them, if it has to roll and the disk refuses that, and if the disk refuses to rename them (LOG-50).

    LOG-33: Segments are deleted from the first on, each only if all of it lies below the high watermark; an empty
    active segment is not. If all would go, the log rolls first. The log start rises to the first segment that is left
    before any goes; then their files and snapshots go (LOG-34). [{UNIFIED_LOG}; KAFKA-5634, KAFKA-16073]
    """
    found = deletable(log, delete)
    if not found:
        return log, 0
    gone = log.segments[: len(found)]
    if len(gone) == len(log.segments):
        log = rolled(log, 0, fails)
        if log.offline:
            return log, 0
        gone = log.segments[:-1]
    first = log.segments[len(gone)].base_offset
    if first > log.log_start:
        log = with_log_start(log, first)
    if fails == "rename":
        return contents.stranded(log, gone), 0
    return without_snapshots(without_segments(log, gone), [s.base_offset for s in gone]), len(gone)


@states(without=ONE_CALL)
def retained(log: Log, fails: Refusable | None) -> tuple[Log, int]:
    """The log after retention, and how many segments it deleted.

    LOG-39: Segments that end at or below the log start are deleted. Then, if cleanup.policy has delete and the log has
    at least retention.bytes, as many from the first on as leave at least retention.bytes; then, with that policy, those
    whose largest timestamp is more than retention.ms ago. A limit of -1 deletes nothing. [{CHAPTER}, 'Configuration
    reference'; {UNIFIED_LOG}; KIP-107; KAFKA-7400]
    """
    start = log.log_start
    bases = [s.base_offset for s in log.segments]
    log, count = deleted(log, lambda n: n + 1 < len(bases) and bases[n + 1] <= start, fails)
    if not log.config.delete or log.offline:
        return log, count
    if 0 <= log.config.retention_bytes <= log.size:
        over = log.size - log.config.retention_bytes
        sizes = [s.size for s in log.segments]
        log, more = deleted(log, lambda n: sum(sizes[: n + 1]) <= over, fails)
        count += more
    if log.config.retention_ms >= 0 and not log.offline:
        largest = [s.largest.timestamp for s in log.segments]
        limit = log.now - log.config.retention_ms
        log, more = deleted(log, lambda n: 0 <= largest[n] < limit, fails)
        count += more
    return log, count


# ---- what holds
def is_replayable(log: Log) -> bool:
    """Whether no batch stands within a transaction of its producer that it is not of: producers refuse to read it."""
    opened = set[int]()
    for b in (b for s in log.segments for b in s.batches):
        if b.control:
            opened.discard(b.producer_id)
        elif b.kind == "transactional":
            opened.add(b.producer_id)
        elif b.producer_id in opened:
            return False
    return True


def between_batches(log: Log) -> bool:
    """Whether log start and high watermark stand where a batch begins, or at the log end."""
    for offset in (log.log_start, log.high_watermark.offset):
        at = place_of(log, offset)
        if at is None or at.offset != offset:
            return False
    return True


def in_order(log: Log) -> bool:
    """Whether the offsets are in order (LOG-22)."""
    return log.last_stable <= log.high_watermark.offset <= log.log_end and (
        log.log_start <= log.last_stable or not between_batches(log)
    )
