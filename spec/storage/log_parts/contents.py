"""What a partition's log holds: segments with their batches, the offsets of the log, and what follows from them.

The segments are those of `segment_contents`, the producers those of `producers`, the leader epochs those of
`spec.storage.leader_epochs`: here is how they stand in one log. The clauses are those of the log, `spec.storage.log`,
whose operations use them. Source: UnifiedLog, LocalLog and LogOffsetMetadata, Kafka 4.3.0.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from kafkaspec.contract.clauses import A_QUESTION, not_modelled, states
from kafkaspec.contract.codec import optional, replace
from kafkaspec.contract.machine import Refused
from kafkaspec.contract.numbers import (
    CoordinatorEpoch,
    LeaderEpoch,
    Offset,
    ProducerEpochOrNone,
    ProducerIdOrNone,
    SequenceNumberOrNone,
    Within,
)
from kafkaspec.spec.common import producers
from kafkaspec.spec.common import segment_contents as contents
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.kafka import NO_TIMESTAMP
from kafkaspec.spec.common.producers import EndedTransaction
from kafkaspec.spec.common.segment_contents import OVERHEAD, Record, Segment, TimeEntry, resized, varint_size
from kafkaspec.spec.storage import leader_epochs, producer_state
from kafkaspec.spec.storage import segment as segments
from kafkaspec.spec.storage.leader_epochs import Entries, cut_from_end, cut_from_start

UNIFIED_LOG = "UnifiedLog, Kafka 4.3.0"
LOCAL_LOG = "LocalLog, Kafka 4.3.0"
CHAPTER = "Kafka Internals, ch. 03"
APPENDING = f"{CHAPTER}, 'The append path (leader)'"
ROLLING, READING = segments.ROLLING, contents.READING
BOUNDS = f"{CHAPTER}, 'Offset boundaries: LSO, LEO, HW, recovery point'"
FAILURES = contents.FAILURES
PRODUCERS = not_modelled("the model has no producers: see PSM")

start_verification = inspect.unwrap(producer_state.start_verification)
data_batch = inspect.unwrap(producer_state.produce)
end_transaction = inspect.unwrap(producer_state.end_transaction)
should_roll = inspect.unwrap(segments.should_roll)
truncate_segment = inspect.unwrap(segments.truncate_to)
take_snapshot = inspect.unwrap(producer_state.take_snapshot)
truncate_and_reload = inspect.unwrap(producer_state.truncate_and_reload)
end_offset_for = inspect.unwrap(leader_epochs.end_offset_for)
"""the operations of other subsystems, without their contracts: those hold where they stand"""

LENGTH_END = 12
"""the length of a batch is in its first 12 bytes"""


# ---- batches ---------------------------------------------------------------------------------------------------------
class KeyValue(NamedTuple):
    """A record: key and value."""

    key: str | None
    value: str | None


Timestamp = Annotated[int, Within(0, 10**12)]
"""ms since 1970, up to 2001: below any time at which a file was written"""
Kind = Literal["data", "transactional", "abort", "commit"]


@dataclass(frozen=True)
class BatchToReplicate:
    """A batch as a leader sent it. `timestamp`, ms, is that of all its records; a marker has one record, that is not
    given. `damaged`: a byte of it changed on the way. `log_append_time`: the timestamp is a leader's."""

    base_offset: Offset
    timestamp: Timestamp
    records: Sequence[KeyValue] = optional(())
    leader_epoch: LeaderEpoch = optional(0)
    producer_id: ProducerIdOrNone = optional(-1)
    producer_epoch: ProducerEpochOrNone = optional(-1)
    base_sequence: SequenceNumberOrNone = optional(-1)
    kind: Kind = optional("data")
    coordinator_epoch: CoordinatorEpoch = optional(0)
    damaged: bool = optional(False)
    log_append_time: bool = optional(False)

    @property
    def last_offset(self) -> Offset:
        return self.base_offset + max(len(self.records), 1) - 1


def size_of(records: Sequence[KeyValue], control: bool = False) -> int:
    """Bytes of a batch of format 2 with these records, all of one timestamp."""
    if control:
        return OVERHEAD + 17
    size = OVERHEAD
    for n, (key, value) in enumerate(records):
        body = 3 + varint_size(n)
        for text in (key, value):
            length = -1 if text is None else len(text.encode())
            body += varint_size(length) + max(length, 0)
        size += varint_size(body) + body
    return size


@dataclass(frozen=True)
class Batch(contents.Batch):
    """A batch in a segment, with what producers say in it."""

    bytes: int = 0
    producer_epoch: int = -1
    base_sequence: int = -1
    coordinator_epoch: int = 0
    log_append_time: bool = False

    @property
    def size(self) -> int:
        return self.bytes


def batch_of(b: BatchToReplicate, leader_epoch: int | None = None) -> Batch:
    """The batch in the file."""
    control = b.kind in ("abort", "commit")
    count = 1 if control else len(b.records)
    return Batch(
        records=tuple(Record(b.base_offset + n, b.timestamp) for n in range(count)),
        leader_epoch=b.leader_epoch if leader_epoch is None else leader_epoch,
        producer_id=b.producer_id,
        kind=b.kind,
        damaged=b.damaged,
        bytes=size_of(b.records, control),
        producer_epoch=b.producer_epoch,
        base_sequence=b.base_sequence,
        coordinator_epoch=b.coordinator_epoch,
        log_append_time=b.log_append_time,
    )


# ---- the log ---------------------------------------------------------------------------------------------------------
class Config(NamedTuple):
    """Sizes in bytes, times in ms; -1 is no limit."""

    segment_bytes: int = 600
    segment_ms: int = 100_000_000
    roll_jitter_ms: int = 0
    segment_index_bytes: int = 2**16
    index_interval_bytes: int = 4096
    retention_bytes: int = -1
    retention_ms: int = -1
    delete: bool = True
    """cleanup.policy has delete"""
    compact: bool = False
    """it has compact"""
    file_delete_delay_ms: int = 60_000
    max_message_bytes: int = 1 << 20
    flush_messages: int = 2**63 - 1
    create_time: bool = True
    """message.timestamp.type is CreateTime"""
    timestamp_before_max_ms: int = 2**63 - 1
    timestamp_after_max_ms: int = 2**63 - 1


NOWHERE = -1


class Mark(NamedTuple):
    """An offset and where its batch begins: the segment's base offset and the position in it, -1 where that has not
    been looked up."""

    offset: int
    segment: int = NOWHERE
    position: int = NOWHERE

    @property
    def known(self) -> bool:
        return self.segment != NOWHERE


START = Mark(0)
NO_FILES: Frozen[str, int] = Frozen()


@dataclass(frozen=True)
class Log:
    """A log in memory and on the disk."""

    config: Config
    segments: tuple[Segment, ...]
    producers: producers.State
    log_start: int = 0
    log_end: int = 0
    high_watermark: Mark = START
    first_unstable: Mark | None = None
    recovery_point: int = 0
    topic_id: str | None = None
    """as the log knows it"""
    topic_id_file: str | None = None
    """what partition.metadata has; None: there is none"""
    epochs: Entries = ()
    epochs_file: Entries | None = None
    """what the leader epoch checkpoint has; None: it was never written"""
    indexed: frozenset[int] = frozenset()
    """base offsets of the segments that have a transaction index file, which a cut may have emptied"""
    removed: Frozen[str, int] = NO_FILES
    """sizes of the files whose names end with .deleted"""
    removals: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """when they go, ms"""
    stranded: tuple[Segment, ...] = ()
    """segments that are not in the log any more, though their files have their names"""
    offline: bool = False
    """an effect failed: the directory is out of service"""

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @property
    def now(self) -> int:
        return self.producers.now

    @property
    def end(self) -> Mark:
        """The log end and its place."""
        return Mark(self.log_end, self.active.base_offset, self.active.size)

    @property
    @states()
    def last_stable(self) -> int:
        """LOG-19: The last stable offset is the first unstable offset, if there is one below the high watermark; else
        the high watermark. [{CHAPTER}, 'Core concepts & terminology'; {UNIFIED_LOG}]"""
        first = self.first_unstable
        hw = self.high_watermark.offset
        return first.offset if first is not None and first.offset < hw else hw

    def stands_for(self, offset: int, batch: contents.Batch) -> int:
        """What the place of an offset in a batch, or below it in a hole, stands for (LOG-18)."""
        return batch.base_offset

    def with_active(self, segment: Segment) -> Log:
        return replace(self, segments=(*self.segments[:-1], segment))

    def floor(self, offset: int) -> int | None:
        """Which segment is the last that begins at or below an offset."""
        return next((n for n in range(len(self.segments) - 1, -1, -1) if self.segments[n].base_offset <= offset), None)

    def between(self, start: int, end: int) -> Iterator[Segment]:
        """The segments from that which holds `start` to the last that begins below `end`; none if both are one."""
        if start != end:
            first = self.floor(start) or 0
            yield from itertools.takewhile(lambda s: s.base_offset < end, self.segments[first:])

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(s.size for s in self.segments)


def new_segment(config: Config, base: int, now: int) -> Segment:
    """An empty one."""
    c = config
    nothing = TimeEntry(NO_TIMESTAMP, base)
    return resized(
        Segment(base, c.index_interval_bytes, c.segment_index_bytes, c.roll_jitter_ms, (), now, now, nothing, 0, 0)
    )


# ---- places and marks ------------------------------------------------------------------------------------------------
@states(without=A_QUESTION)
def place_of(log: Log, offset: int) -> Mark | None:
    """The place of an offset, or None if the log has none for it.

    LOG-18: The place of an offset is looked up when it is first needed: it is the place of the batch that holds it, or
    of the next batch above it, and from then on it stands for that batch's base offset. A high watermark or first
    unstable offset within a batch is so moved back to where the batch begins, even below the log start. In a
    hole it moves up to the next batch, or to the log end if there is none. The place of the log end is the end of the
    active segment; an offset below the first segment or above the log end has none.
    [LogSegment.read and {UNIFIED_LOG}; 3.9.1 keeps the offset]
    """
    first = log.floor(offset)
    if first is None or offset > log.log_end:
        return None
    if offset < log.log_end:
        for segment in log.segments[first:]:
            at = contents.place(segment, offset)
            if at is not None:
                return Mark(log.stands_for(offset, at.batch), segment.base_offset, at.position)
    return log.end


def looked_up(log: Log, offset: int) -> Mark:
    """The place of an offset; the offset alone where it has none."""
    return place_of(log, offset) or Mark(offset)


@states()
def unstable(log: Log) -> Log:
    """The log with the first unstable offset that its producers make.

    LOG-20: The first unstable offset is the producers' (PSM-13), or the log start's place where it is below the log
    start. It is looked at after an append, after a change of the high watermark and of the log start, and when the log
    is loaded; not by a truncation that leaves the high watermark below the log end. [{UNIFIED_LOG}]
    """
    first = log.producers.first_unstable
    if first is None:
        return log if log.first_unstable is None else replace(log, first_unstable=None)
    return replace(log, first_unstable=looked_up(log, max(first, log.log_start)))


def with_high_watermark(log: Log, mark: Mark) -> Log:
    """The log with another high watermark; what ended below it is stable."""
    return unstable(replace(log, high_watermark=mark, producers=producer_state.stable(log.producers, mark.offset)))


@states()
def high_watermark_within(log: Log) -> Log:
    """LOG-17: After an append, a roll or a truncation, a high watermark at or above the log end is the log end, and its
    place the log end's. [{CHAPTER}, 'Offset boundaries: LSO, LEO, HW, recovery point'; {UNIFIED_LOG}; KAFKA-9196]"""
    return with_high_watermark(log, log.end) if log.high_watermark.offset >= log.log_end else log


def placed_high_watermark(log: Log) -> Log:
    """The log after its high watermark's place was needed."""
    hw = log.high_watermark
    return log if hw.known else with_high_watermark(log, looked_up(log, hw.offset))


def placed_last_stable(log: Log) -> tuple[Log, Mark]:
    """The log after the last stable offset's place was needed, and that place."""
    log = placed_high_watermark(log)
    first = log.first_unstable
    if first is None or first.offset >= log.high_watermark.offset:
        return log, log.high_watermark
    if not first.known:
        first = looked_up(log, first.offset)
        log = replace(log, first_unstable=first)
    return log, first


# ---- files -----------------------------------------------------------------------------------------------------------
def files_of(segment: Segment) -> dict[str, int]:
    """Sizes of a segment's files, without its offset and time index."""
    name = f"{segment.base_offset:020}"
    aborted = {f"{name}.txnindex": 34 * len(segment.aborted)} if segment.aborted else {}
    return {f"{name}.log": segment.size, **aborted}


def snapshot_files(state: producers.State, offsets: Sequence[int] | None = None) -> dict[str, int]:
    """Sizes of snapshot files."""
    wanted = state.snapshots if offsets is None else [x for x in offsets if x in state.snapshots]
    return {f"{x:020}.snapshot": 10 + 46 * len(state.snapshots[x] or ()) for x in wanted}


@states(without=not_modelled("which names files have until they go decides nothing that a reader sees"))
def removed(log: Log, files: dict[str, int], names: Iterable[str] = ()) -> Log:
    """The log after these files were given up; of a segment any that has one of these names goes, when they go.

    LOG-34: The files of a segment that is deleted get the suffix .deleted at once, so that no load takes them for the
    log's, and are removed file.delete.delay.ms later, for a reader may still have them; so does the snapshot at its
    base offset. What is removed goes by the names: a later segment with the same base offset that was deleted in
    between loses its files with those of the first. [{LOCAL_LOG}; {UNIFIED_LOG}]
    """
    if not files:
        return log
    renamed = {f"{name}.deleted": size for name, size in files.items()}
    due = log.now + log.config.file_delete_delay_ms
    going = (due, tuple(dict.fromkeys([*renamed, *(f"{name}.deleted" for name in names)])))
    there = {name: size for name, size in {**log.removed, **renamed}.items() if size or ".txnindex" not in name}
    after = replace(log, removed=Frozen(there), removals=(*log.removals, going))
    return passed(after) if due <= log.now else after


def given_up(log: Log, gone: Sequence[Segment]) -> Log:
    """The log after the files of these segments were given up."""
    names = [f"{s.base_offset:020}{end}" for s in gone for end in (".log", ".txnindex")]
    bases = {s.base_offset for s in gone}
    files = {f"{base:020}.txnindex": 0 for base in bases & log.indexed}
    files |= {k: v for s in gone for k, v in files_of(s).items()}
    return removed(replace(log, indexed=log.indexed - bases), files, names)


def passed(log: Log) -> Log:
    """The log after the files went that are due."""
    if not any(due <= log.now for due, _ in log.removals):
        return log
    gone = {name for due, names in log.removals if due <= log.now for name in names}
    return replace(log, removed=log.removed.without(*gone), removals=tuple(r for r in log.removals if r[0] > log.now))


def without_segments(log: Log, gone: Sequence[Segment]) -> Log:
    """The log without these segments."""
    bases = {s.base_offset for s in gone}
    kept = tuple(s for s in log.segments if s.base_offset not in bases)
    return given_up(replace(log, segments=kept), gone)


@states(without=not_modelled("the model's segments have no names that a disk could refuse to change"))
def stranded(log: Log, gone: Sequence[Segment]) -> Log:
    """The log without segments whose files could not be renamed.

    LOG-50: Segments are out of the log before their files are renamed (LOG-34), and behind the rise of the log start
    that makes a deletion safe (LOG-33). If the disk refuses that, the call ends there (LOG-37): a truncation leaves log
    end, high watermark, leader epochs and producers as they were. The files have their names, and a load finds these
    segments again. One that was active, or is active before one that was, has the zeros in its index files that were
    set aside for entries. A load that does not recover it takes them for entries: its largest timestamp is 0, and its
    indexes are full. Histories leave that out. [{LOCAL_LOG}; {UNIFIED_LOG}; seen of 4.3.0]
    """
    bases = {s.base_offset for s in gone}
    kept = tuple(s for s in log.segments if s.base_offset not in bases)
    return replace(log, segments=kept, stranded=(*log.stranded, *gone), offline=True)


def on_disk(log: Log) -> Log:
    """The log with all segments that a load finds."""
    every = sorted((*log.segments, *log.stranded), key=lambda s: s.base_offset)
    return replace(log, segments=tuple(every), stranded=()) if log.stranded else log


def without_snapshots(log: Log, bases: Sequence[int]) -> Log:
    """The log without the snapshots of segments that were deleted."""
    files = snapshot_files(log.producers, bases)
    if not files:
        return log
    kept = {x: s for x, s in log.producers.snapshots.items() if x not in bases}
    return removed(replace(log, producers=log.producers.with_snapshots(kept)), files)


# ---- topic id and epochs ---------------------------------------------------------------------------------------------
@states()
def id_in_file(log: Log, fails: Effect | None) -> Log:
    """The log after its topic's id went to its file, if it was not there.

    LOG-44: The id of a log's topic is in the log's partition.metadata (CKP-7) before a batch is on the disk. The
    scheduler writes the file, or the next append, before anything else, even if that append is refused then, or a
    close: whichever comes first. If the disk refuses the file, nothing is appended (LOG-37), and the next append tries
    again. [{APPENDING}; {UNIFIED_LOG}; KIP-516]
    """
    if log.topic_id == log.topic_id_file:
        return log
    return replace(log, offline=True) if fails == "topicId" else replace(log, topic_id_file=log.topic_id)


def id_is_missing(log: Log) -> bool:
    """Whether the topic's id is not in its file."""
    return log.topic_id != log.topic_id_file


def epochs_written(log: Log, entries: Entries) -> Log:
    """With these epochs, in the file too."""
    return log if entries == log.epochs else replace(log, epochs=entries, epochs_file=entries)


@states(without=not_modelled("the model takes what the scheduler writes for written"))
def epochs_cut(log: Log, *, end: int | None = None, start: int | None = None, fails: Refusable | None = None) -> Log:
    """With the epochs that are left of a truncation.

    LOG-51: What a truncation, and a rise of the log start, leave of the leader epochs is written by the scheduler. If
    the disk refuses it, the call succeeds all the same; the file has the older entries, and the directory is out of
    service (LOG-37). A load cuts them again. A full truncation writes them itself: it ends there, with segments and log
    end moved, and high watermark, log start and producers as they were. [{UNIFIED_LOG}; LeaderEpochFileCache, Kafka
    4.3.0; KAFKA-15046]
    """
    entries, cut = log.epochs, False
    if end is not None:
        entries, cut = cut_from_end(entries, end), any(e.start_offset >= end for e in entries)
    if start is not None and any(e.start_offset <= start for e in entries):
        entries, cut = cut_from_start(entries, start), True
    if cut and fails == "epochs":
        return replace(log, epochs=entries, offline=True)
    return epochs_written(log, entries)


# ---- producers -------------------------------------------------------------------------------------------------------
def append_to_producers(
    state: producers.State, b: Batch, origin: producers.Origin, version: int = producers.UNKNOWN_VERSION, guard: int = 0
) -> tuple[producers.State, Refused | producers.Duplicate | EndedTransaction | None]:
    """The producers after a batch, and what came of it."""
    if b.producer_id < 0:
        return state, None
    timestamp = b.max_timestamp
    if b.control:
        step = end_transaction(
            state, b.producer_id, origin, "ABORT" if b.kind == "abort" else "COMMIT", b.coordinator_epoch,
            b.producer_epoch, b.last_offset, timestamp, version,
        )  # fmt: skip
        return step.state, step.result
    last = (b.base_sequence + len(b.records) - 1) % producers.SEQUENCES
    step = data_batch(
        state, b.producer_id, origin, b.producer_epoch, b.base_sequence, last, b.base_offset, b.last_offset, timestamp,
        b.kind == "transactional", guard,
    )  # fmt: skip
    duplicate = isinstance(step.result, dict) and "duplicate" in step.result
    return step.state, step.result if duplicate or isinstance(step.result, Refused) else None


def read_again(state: producers.State, batches: Iterable[contents.Batch]) -> producers.State:
    """The producers after what was read in one go (LOG-31)."""
    before, moved = state.producers, set[int]()
    for b in batches:
        assert isinstance(b, Batch)
        state, _ = append_to_producers(state, b, "REPLICATION")
        if b.producer_id in before and state.producers[b.producer_id].epoch != before[b.producer_id].epoch:
            moved.add(b.producer_id)
    for id in moved:
        known, now = before[id], state.producers[id]
        if known.epoch == now.epoch:
            state = state.with_producer(id, now._replace(batches=(*known.batches, *now.batches)[-5:]), state.end)
    return state


@states(without=PRODUCERS)
def rebuilt(log: Log, end: int, clean: bool = False, fails: Refusable | None = None) -> Log:
    """The log with its producer state brought to `end`; out of service where the disk refuses a snapshot.

    LOG-31: After a truncation the producer state is taken from the newest snapshot that is left (PSM-19, PSM-20), and
    what stands in the log behind it is read again, up to the new end. A snapshot is taken at the base offsets of the
    last two segments that are passed, and at the end. What is read of a segment counts as one append: a producer whose
    epoch falls back within it to what was known before keeps the batches that were known.
    [UnifiedLog.rebuildProducerState and ProducerAppendInfo, Kafka 4.3.0]

    LOG-47: A log that was closed and has no snapshot, as that of an old release, is not read for producers: none is
    known, and empty snapshots are taken at the base offsets of the last two segments and at the end. [{CHAPTER},
    'ProducerStateManager: idempotency, snapshots & transactions'; UnifiedLog.rebuildProducerState, Kafka 4.3.0]
    """
    state = log.producers
    last_two = [s.base_offset for s in log.segments[-2:]]
    if clean and not state.snapshots:
        for offset in (*last_two, end):
            state = take_snapshot(replace(state, end=offset))
        return replace(log, producers=state)
    nothing_to_read = not state.producers and not state.ended and state.end >= end
    state = truncate_and_reload(state, log.log_start, end, state.now)
    if end > state.end and not nothing_to_read:
        floor = log.floor(end)
        for segment in log.between(state.end, end):
            start = max(segment.base_offset, state.end, log.log_start)
            state = replace(state, end=start)
            if segment.base_offset in (*last_two, end):
                if fails == "snapshot" and state.end > state.last_snapshot:
                    return replace(log, producers=state, offline=True)
                state = take_snapshot(state)
            at = contents.place(segment, start)
            stop = contents.place(segment, end) if floor is not None and log.segments[floor] is segment else None
            first, last = at.position if at is not None else segment.size, stop.position if stop is not None else None
            state = read_again(state, [b for at, b in segment.placed if first <= at and (last is None or at < last)])
            state = replace(state, end=start)
    state = replace(state, end=end)
    if fails == "snapshot" and end > state.last_snapshot:
        return replace(log, producers=state, offline=True)
    return replace(log, producers=take_snapshot(state))


# ---- a log is loaded -------------------------------------------------------------------------------------------------
def opened(segment: Segment, now: int) -> Segment:
    """A segment that was closed, or is no longer the active one, as a new process sees it."""
    shut = contents.inactive(segment)
    return replace(shut, since=0, created=now, now=now, rolling_timestamp=None, largest=shut.last_time)


def torn(segment: Segment, lost_bytes: int) -> Segment:
    """Without its last bytes: of a batch that loses some nothing counts."""
    size = segment.size - lost_bytes
    return replace(segment, batches=tuple(p.batch for p in segment.placed if p.position + p.batch.size <= size))


def shut_or_recovered(log: Log, recovery_point: int) -> bool:
    """Whether recovery reads each segment of whose index files nobody cut the zeros: one that was active when it was
    stranded, and the active one if it is before such a one."""
    found = on_disk(log)
    first = found.segments[found.floor(recovery_point) or 0].base_offset
    return all(s.base_offset >= first or contents.inactive(s) == s for s in found.segments)


def recoveries_fit(log: Log, lost_bytes: int, recovery_point: int) -> bool:
    """Whether recovery finds no index full. It may need more entries than were appended, after a stop in between."""
    first = log.floor(recovery_point) or 0
    last = torn(log.active, lost_bytes)
    return all(map(contents.recovery_fits, [*log.segments[first:-1], last]))


def loaded(log: Log, clean: bool, recovery_point: int, log_start: int, lost_bytes: int, no_snapshots: bool) -> Log:
    """The log after a stop and a start, with the offsets that the checkpoints have and the topic's id in its file. Its
    last segment loses its last bytes, and the snapshots may be lost."""
    now, log = log.now, on_disk(log)
    fresh = producers.State(
        {}, {}, {}, {} if no_snapshots else log.producers.snapshots, 0, 0, now, log.producers.guards, frozenset(),
        log.producers.config,
    )  # fmt: skip
    kept = [*log.segments[:-1], torn(log.active, lost_bytes)]
    after = type(log)(
        log.config, tuple(kept), fresh, epochs=leader_epochs.loaded(log.epochs_file or ()), epochs_file=log.epochs_file,
        topic_id=log.topic_id_file, topic_id_file=log.topic_id_file, indexed=log.indexed,
    )  # fmt: skip
    if not clean:
        for segment in list(after.between(recovery_point, 2**63 - 1)):
            after = _recovered(after, segment, log_start)
    after = replace(
        after, segments=(*(opened(s, now) for s in after.segments[:-1]), resized(opened(after.active, now)))
    )
    end = after.active.next_offset
    first = max(log_start, after.segments[0].base_offset)
    point = max(first, end if clean else min(recovery_point, end))
    after = replace(after, log_start=log_start, log_end=end, high_watermark=Mark(first), recovery_point=point)
    after = epochs_cut(after, end=end, start=log_start)
    bases = [s.base_offset for s in after.segments]
    left = producer_state.without_strays(after.producers.snapshots, bases)
    after = replace(
        after,
        log_start=first,
        producers=after.producers.with_snapshots({x: after.producers.snapshots[x] for x in left}),
    )
    return unstable(rebuilt(after, end, clean))


def _recovered(log: Log, segment: Segment, log_start: int) -> Log:
    """With a segment recovered (LDR-8): its indexes, its epochs, a snapshot at its end."""
    below = rebuilt(replace(log, log_start=log_start), segment.base_offset)
    state = below.producers
    opened_before = tuple((p, first) for first, p in state.opened.items())
    made = contents.recovered(replace(segment, open_before=opened_before))
    entries = log.epochs
    for b in made.batches:
        assert isinstance(b, Batch)
        if b.leader_epoch >= 0 and (not entries or b.leader_epoch > entries[-1].epoch):
            entries = leader_epochs.assigned(entries, leader_epochs.Entry(b.leader_epoch, b.base_offset))
        state, _ = append_to_producers(state, b, "REPLICATION")
        state = replace(state, end=b.last_offset + 1)
    snapshots = take_snapshot(state).snapshots
    made = replace(made, open_before=())
    return epochs_written(
        replace(
            log,
            segments=tuple(made if s.base_offset == made.base_offset else s for s in log.segments),
            indexed=log.indexed | ({made.base_offset} if made.aborted else set()),
            producers=log.producers.with_snapshots(snapshots),
        ),
        entries,
    )


Effect = Literal["topicId", "epochs", "roll", "snapshot", "bytes", "txnIndex", "flush"]
"""of an append, that the disk can refuse: the topic's id, the leader epoch checkpoint, the new segment, its snapshot,
the batches, the transaction index, the flush"""
Refusable = Effect | Literal["rename", "cut"]
"""of any call: also another name for the file of a segment that goes, and the cut of the segment that is left"""
