"""The log cleaner's manager: Kafka's maps of states, of uncleanable partitions and of checkpoint files, deterministic.

Threads are whoever calls. To wait is explicit: `abort_and_pause_cleaning` returns a `Caller`, which has returned or
waits; a done cleaning signals all who wait, and `run_signalled` lets those run that were signalled, as a scheduler
would. Logs are seen through `CleanableLog`, checkpoints go through a `Disk`.

Source: LogCleanerManager and LogToClean, Kafka 4.3.0; Kafka Internals, ch. 04, "Cleaning state in LogCleanerManager".
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, Protocol

from kafkaspec.contract.codec import Json, encode, view
from kafkaspec.contract.machine import Refused
from kafkaspec.impl.common.disk import Disk, SimulatedDisk, StorageError
from kafkaspec.impl.management.checkpoints import ByPartition, CheckpointFile, TopicPartition, decode, topic_partition
from kafkaspec.spec.common import cleanable_log as log_spec
from kafkaspec.spec.common import cleaner_world as world
from kafkaspec.spec.common import cleaning_state as state_spec
from kafkaspec.spec.common.cleaner_state import Cleaner, LogView
from kafkaspec.spec.common.cleaner_world import OUT_OF_RANGE
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.kafka import ILLEGAL_STATE, LONG_MAX, NO_TIMESTAMP
from kafkaspec.spec.common.remembered import remembered_each
from kafkaspec.spec.management import cleaner as spec

OFFSET_CHECKPOINT_FILE = "cleaner-offset-checkpoint"
WEEK_MS = 604_800_000


class Refusal(Exception):
    """The manager says no. `refused` names the clause and Kafka's exception."""

    def __init__(self, clause: str, error: str, message: str | None = None) -> None:
        super().__init__(message or error)
        self.refused = Refused(clause, error, message)


class CleaningAborted(Exception):
    """The cleaner thread that works on a partition is to stop (CLN-17)."""


# ---- states ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class LogCleaningInProgress:
    pass


@dataclass(frozen=True)
class LogCleaningAborted:
    pass


@dataclass(frozen=True)
class LogCleaningPaused:
    paused_count: int


LogCleaningState = LogCleaningInProgress | LogCleaningAborted | LogCleaningPaused
"""Kafka's; a partition that has none is not in the map."""


# ---- logs ------------------------------------------------------------------------------------------------------------
class CleanableSegment(Protocol):
    """One segment. Sizes in bytes; timestamps in ms, -1 where there is none."""

    base_offset: int
    size: int
    largest_timestamp: int
    first_batch_timestamp: int


class CleanableLog(Protocol):
    """What the manager reads of a log. The last of its segments is the active one."""

    log_dir: str
    compact: bool
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    min_cleanable_dirty_ratio: float
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int

    @property
    def segments(self) -> Sequence[CleanableSegment]: ...


def segments_between(log: CleanableLog, start: int, end: int) -> Sequence[CleanableSegment]:
    """The segments that hold [start, end); none if that is empty, even in the middle of a segment (KAFKA-9826).
    [CLN-5]"""
    if end <= start:
        return ()
    bases = [s.base_offset for s in log.segments]
    first = max(bisect.bisect_right(bases, start) - 1, 0)
    return log.segments[first : bisect.bisect_left(bases, end)]


def non_active_segments_from(log: CleanableLog, offset: int) -> Sequence[CleanableSegment]:
    """The closed segments, from the one that holds `offset`."""
    return segments_between(log, offset, log.segments[-1].base_offset)


def total_size(segments: Iterable[CleanableSegment]) -> int:
    return sum(s.size for s in segments)


# ---- what may be cleaned of a log ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class OffsetsToClean:
    first_dirty_offset: int
    first_uncleanable_dirty_offset: int
    force_update_checkpoint: bool


def cleanable_offsets(log: CleanableLog, checkpoint: int | None, now: int) -> OffsetsToClean:
    """From the checkpoint, or the log start where that is unusable, to what is undecided, active or too young.
    [CLN-8, CLN-9]"""
    dirty = log.log_start_offset if checkpoint is None else checkpoint
    force = not log.log_start_offset <= dirty <= log.log_end_offset
    if force:
        dirty = log.log_start_offset
    uncleanable = min(log.last_stable_offset, log.segments[-1].base_offset)
    lag_ms = log.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in non_active_segments_from(log, dirty):
            if segment.largest_timestamp > now - lag_ms:
                uncleanable = min(uncleanable, segment.base_offset)
                break
    return OffsetsToClean(dirty, max(dirty, uncleanable), force)


def compaction_delay_ms(log: CleanableLog, first_dirty_offset: int, now: int) -> int:
    """By how much the earliest dirty batch is older than the log's maximum compaction lag allows. [CLN-7]"""
    clean_until = now - max(log.max_compaction_lag_ms, 0)
    earliest = LONG_MAX
    for segment in non_active_segments_from(log, first_dirty_offset):
        if 0 < segment.first_batch_timestamp < earliest:
            earliest = segment.first_batch_timestamp
    return max(clean_until - earliest, 0)


@dataclass(frozen=True)
class LogToClean:
    """A log that may be cleaned, and how dirty it is."""

    partition: TopicPartition
    log: CleanableLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    need_compaction_now: bool

    @property
    def total_bytes(self) -> int:
        return self.clean_bytes + self.cleanable_bytes

    @property
    def cleanable_ratio(self) -> float:
        """The share of the cleanable bytes, as doubles divide. [CLN-5]"""
        return float(self.cleanable_bytes) / float(self.total_bytes)

    @property
    def is_cleanable(self) -> bool:
        """It is dirty enough, or must be compacted now. [CLN-3]"""
        forced = self.need_compaction_now and self.cleanable_bytes > 0
        return forced or self.cleanable_ratio > self.log.min_cleanable_dirty_ratio


def log_to_clean(partition: TopicPartition, log: CleanableLog, offsets: OffsetsToClean, needed: bool) -> LogToClean:
    """What a cleaning would find of a log. [CLN-5]"""
    dirty = offsets.first_dirty_offset
    closed = non_active_segments_from(log, offsets.first_uncleanable_dirty_offset)
    uncleanable = (closed[0] if closed else log.segments[-1]).base_offset
    clean = [s for s in log.segments if s.base_offset < dirty]
    cleanable = segments_between(log, dirty, uncleanable)
    return LogToClean(partition, log, dirty, uncleanable, total_size(clean), total_size(cleanable), needed)


@dataclass
class PreCleanStats:
    """What a grab met on its way."""

    cleanable_partitions: int = 0
    delayed_partitions: int = 0
    max_compaction_delay_ms: int = 0

    def add_delay(self, delay_ms: int) -> None:
        """Count a log that was looked at, by the delay of its compaction. [CLN-6]"""
        self.max_compaction_delay_ms = max(self.max_compaction_delay_ms, delay_ms)
        self.delayed_partitions += delay_ms > 0


# ---- the manager -----------------------------------------------------------------------------------------------------
@dataclass
class Caller:
    """A caller of abort-and-pause or abort: it has returned, or it waits until the partition is paused."""

    operation: str
    partition: TopicPartition
    waits: bool = False


@dataclass
class LogCleanerManager:
    """`logs` is shared with whoever creates and deletes logs."""

    logs: MutableMapping[TopicPartition, CleanableLog]
    directories: Sequence[str]
    disk: Disk
    in_progress: dict[TopicPartition, LogCleaningState] = field(default_factory=dict)
    uncleanable: dict[str, set[TopicPartition]] = field(default_factory=dict)
    checkpoints: dict[str, CheckpointFile] = field(init=False)
    waiting: list[Caller] = field(default_factory=list)
    signalled: list[Caller] = field(default_factory=list)
    failed_directories: list[str] = field(default_factory=list)
    """reported as failed, for whoever takes directories out of service"""

    def __post_init__(self) -> None:
        """The checkpoints are on the disk; all else begins empty. [CLN-31]"""
        self.checkpoints = {d: CheckpointFile(d, OFFSET_CHECKPOINT_FILE, self.disk) for d in self.directories}

    # checkpoints

    def _read(self, directory: str) -> dict[TopicPartition, int] | None:
        """A directory's entries; None if it is out of service, or its file is unreadable, which is reported.
        [CLN-29]"""
        checkpoint = self.checkpoints.get(directory)
        try:
            return None if checkpoint is None else checkpoint.read()
        except StorageError as e:
            self.failed_directories.append(e.directory)
            return None

    def _write(self, directory: str, offsets: Mapping[TopicPartition, int]) -> None:
        try:
            self.checkpoints[directory].write(dict(sorted(offsets.items())))
        except StorageError as e:
            self.failed_directories.append(e.directory)

    def all_cleaner_checkpoints(self) -> dict[TopicPartition, int] | None:
        """The entries of all live directories; None while a partition stands in two of them. [CLN-30]"""
        entries: dict[TopicPartition, int] = {}
        for directory in self.checkpoints:
            for partition, offset in (self._read(directory) or {}).items():
                if partition in entries:
                    return None
                entries[partition] = offset
        return entries

    def update_checkpoints(
        self, directory: str, update: Mapping[TopicPartition, int], remove: TopicPartition | None = None
    ) -> None:
        """Set entries and remove one; those of partitions that are not known go. [CLN-26]"""
        entries = self._read(directory)
        if entries is not None:
            kept = {p: offset for p, offset in entries.items() if p in self.logs and p != remove}
            self._write(directory, {**kept, **update})

    def maybe_truncate_checkpoint(self, directory: str, partition: TopicPartition, offset: int) -> None:
        """The log was truncated to that offset: the entry is not above it. [CLN-27]"""
        log = self.logs.get(partition)
        if log is None or not log.compact:
            return
        entries = self._read(directory)
        if entries is not None and entries.get(partition, 0) > offset:
            self._write(directory, {**entries, partition: offset})

    def alter_checkpoint_dir(self, partition: TopicPartition, source: str, dest: str) -> None:
        """The log has moved, and its entry and mark go with it. [CLN-28]"""
        offset = (self._read(source) or {}).get(partition)
        if offset is not None:
            self.update_checkpoints(source, {}, remove=partition)
            self.update_checkpoints(dest, {partition: offset})
        if partition in self.uncleanable.get(source, ()):
            self.uncleanable[source].remove(partition)
            self.mark_partition_uncleanable(dest, partition)

    def handle_log_dir_failure(self, directory: str) -> None:
        """Its checkpoint is not used any more. [CLN-29]"""
        self.checkpoints.pop(directory, None)

    # choosing

    def _is_free(self, partition: TopicPartition, log: CleanableLog) -> bool:
        """Nobody holds it, and it is not uncleanable where its log lies. [CLN-2, CLN-19, CLN-24]"""
        return partition not in self.in_progress and partition not in self.uncleanable.get(log.log_dir, ())

    def grab_filthiest_compacted_log(
        self, now: int, stats: PreCleanStats, prefer: TopicPartition | None = None
    ) -> LogToClean | None:
        """Mark the filthiest cleanable log as in progress. `prefer` decides between equally filthy ones.
        [CLN-1, CLN-2, CLN-4, CLN-6, CLN-10, CLN-30, CKP-14]"""
        last_clean = self.all_cleaner_checkpoints()
        if last_clean is None:
            return None
        dirty: list[LogToClean] = []
        for partition, log in self.logs.items():
            if not log.compact or not self._is_free(partition, log):
                continue
            offsets = cleanable_offsets(log, last_clean.get(partition), now)
            if offsets.force_update_checkpoint:
                self.update_checkpoints(log.log_dir, {partition: offsets.first_dirty_offset})
            delay_ms = compaction_delay_ms(log, offsets.first_dirty_offset, now)
            stats.add_delay(delay_ms)
            candidate = log_to_clean(partition, log, offsets, delay_ms > 0)
            if candidate.total_bytes > 0:
                dirty.append(candidate)
        cleanable = [c for c in dirty if c.is_cleanable]
        stats.cleanable_partitions = len(cleanable)
        if not cleanable:
            return None
        filthiest = max(cleanable, key=lambda c: (c.cleanable_ratio, c.partition == prefer))
        self.in_progress[filthiest.partition] = LogCleaningInProgress()
        return filthiest

    def pause_cleaning_for_non_compacted_partitions(self) -> list[TopicPartition]:
        """Claim for retention every log that only retention works on and nobody holds. [CLN-1, CLN-18]"""
        taken = [p for p, log in self.logs.items() if not log.compact and p not in self.in_progress]
        self.in_progress |= dict.fromkeys(taken, LogCleaningPaused(1))
        return taken

    def deletable_logs(self) -> list[TopicPartition]:
        """Claim every compacted log that nobody holds, to delete its old segments. [CLN-1, CLN-19]"""
        taken = [p for p, log in self.logs.items() if log.compact and self._is_free(p, log)]
        self.in_progress |= dict.fromkeys(taken, LogCleaningInProgress())
        return taken

    # the state machine

    def abort_and_pause_cleaning(self, partition: TopicPartition, operation: str = "abortAndPauseCleaning") -> Caller:
        """Raises Refusal if another caller waits already. [CLN-1, CLN-11]"""
        match self.in_progress.get(partition):
            case None:
                after: LogCleaningState = LogCleaningPaused(1)
            case LogCleaningPaused(n):
                after = LogCleaningPaused(n + 1)
            case LogCleaningInProgress():
                after = LogCleaningAborted()
            case LogCleaningAborted():
                raise Refusal(
                    "CLN-11",
                    ILLEGAL_STATE,
                    f"Compaction for partition {partition} cannot be aborted and paused since it is in "
                    f"{_java_name(LogCleaningAborted())} state.",
                )
        self.in_progress[partition] = after
        caller = Caller(operation, partition, waits=True)
        self.waiting.append(caller)
        self._go_on(caller)
        return caller

    def abort_cleaning(self, partition: TopicPartition) -> Caller:
        """The same, and the pause is undone as soon as the caller returns. [CLN-13]"""
        return self.abort_and_pause_cleaning(partition, "abortCleaning")

    def _go_on(self, caller: Caller) -> None:
        """A caller looks whether the partition is paused by now, and returns if it is; an abort resumes first.
        [CLN-12, CLN-13]"""
        if isinstance(self.in_progress.get(caller.partition), LogCleaningPaused):
            caller.waits = False
            self.waiting.remove(caller)
            if caller.operation == "abortCleaning":
                self.resume_cleaning([caller.partition])

    def _signal_all(self) -> None:
        self.signalled = list(self.waiting)

    def run_signalled(self) -> list[Caller]:
        """Let the callers run that were signalled; those that returned. [CLN-12]"""
        woken, self.signalled = self.signalled, []
        for caller in woken:
            self._go_on(caller)
        return [c for c in woken if not c.waits]

    def resume_cleaning(self, partitions: Iterable[TopicPartition]) -> None:
        """Undo one pause of each. Raises Refusal at the first that is not paused; those before it are resumed.
        [CLN-1, CLN-14]"""
        for partition in partitions:
            match self.in_progress.get(partition):
                case LogCleaningPaused(1):
                    del self.in_progress[partition]
                    continue
                case LogCleaningPaused(n):
                    self.in_progress[partition] = LogCleaningPaused(n - 1)
                    continue
                case None:
                    why = "it is not paused."
                case other:
                    why = f"it is in {_java_name(other)} state."
            message = f"Compaction for partition {partition} cannot be resumed since {why}"
            raise Refusal("CLN-14", ILLEGAL_STATE, message)

    def check_cleaning_aborted(self, partition: TopicPartition) -> None:
        """Raises CleaningAborted if the cleaner thread that works on the partition is to stop. [CLN-17]"""
        if isinstance(self.in_progress.get(partition), LogCleaningAborted):
            raise CleaningAborted(partition)

    def _done(self, partition: TopicPartition, clause: str, when_undisturbed: Callable[[], None]) -> None:
        """A cleaner thread lets go of a partition. Raises Refusal unless it had it. [CLN-1, CLN-12, CLN-15, CLN-16]"""
        match self.in_progress.get(partition):
            case None:
                raise Refusal(clause, ILLEGAL_STATE, f"State for partition {partition} should exist.")
            case LogCleaningInProgress():
                when_undisturbed()
                del self.in_progress[partition]
            case LogCleaningAborted():
                self.in_progress[partition] = LogCleaningPaused(1)
                self._signal_all()
            case LogCleaningPaused() as paused:
                message = f"In-progress partition {partition} cannot be in {_java_name(paused)} state."
                raise Refusal(clause, ILLEGAL_STATE, message)

    def done_cleaning(self, partition: TopicPartition, directory: str, end_offset: int) -> None:
        """Raises Refusal unless a cleaner thread had the partition. [CLN-15, CKP-14]"""
        self._done(partition, "CLN-15", lambda: self.update_checkpoints(directory, {partition: end_offset}))

    def done_deleting(self, partitions: Iterable[TopicPartition]) -> None:
        """Raises Refusal at the first that no cleaner thread had. [CLN-16]"""
        for partition in partitions:
            self._done(partition, "CLN-16", lambda: None)

    # uncleanable partitions

    def mark_partition_uncleanable(self, directory: str, partition: TopicPartition) -> None:
        """It is not cleaned while its log lies in that directory. [CLN-24]"""
        self.uncleanable.setdefault(directory, set()).add(partition)

    def maintain_uncleanable_partitions(self) -> None:
        """Forget those that are not known. [CLN-25]"""
        known = {d: {p for p in marked if p in self.logs} for d, marked in self.uncleanable.items()}
        self.uncleanable = {d: marked for d, marked in known.items() if marked}

    def uncleanable_bytes(self, directory: str, now: int) -> int:
        """What could be cleaned, were it not for the failures; a gauge. [CLN-34]"""
        checkpoints = self.all_cleaner_checkpoints() or {}
        total = 0
        for partition in self.uncleanable.get(directory, ()):
            log = self.logs.get(partition)
            if log is not None:
                offsets = cleanable_offsets(log, checkpoints.get(partition), now)
                total += log_to_clean(partition, log, offsets, needed=False).cleanable_bytes
        return total


def _java_name(state: LogCleaningState) -> str:
    """As Kafka's messages print a state; identity hashes are masked in recordings."""
    if isinstance(state, LogCleaningPaused):
        return f"LogCleaningPaused{{pausedCount={state.paused_count}}}"
    return f"org.apache.kafka.storage.internals.log.LogCleaningState${type(state).__name__}@HASH"


# ---- a log in memory, and the driver for lockstep --------------------------------------------------------------------
@dataclass
class MemorySegment:
    base_offset: int
    size: int = 0
    largest_timestamp: int = NO_TIMESTAMP
    first_batch_timestamp: int = NO_TIMESTAMP


@dataclass
class MemoryLog:
    """A log without records."""

    log_dir: str
    compact: bool
    delete: bool
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    min_cleanable_dirty_ratio: float
    segment_bytes: int
    log_start_offset: int = 0
    log_end_offset: int = 0
    last_stable_offset: int = 0
    segments: list[MemorySegment] = field(default_factory=lambda: [MemorySegment(0)])

    def append(self, now: int, size: int) -> None:
        """A batch of that size, after a roll where it is due. [CLN-32]"""
        active = self.segments[-1]
        waited_ms = now - active.first_batch_timestamp if active.size else 0
        longest_ms = WEEK_MS if not self.compact else min(WEEK_MS, self.max_compaction_lag_ms or WEEK_MS)
        relative_offset = self.log_end_offset - active.base_offset
        if (
            active.size + size > self.segment_bytes or waited_ms > longest_ms or relative_offset >= 2**31
        ) and relative_offset > 0:
            active = MemorySegment(self.log_end_offset)
            self.segments.append(active)
        if not active.size:
            active.first_batch_timestamp = now
        active.size += size
        active.largest_timestamp = max(active.largest_timestamp, now)
        self.log_end_offset += 1

    def start_at(self, partition: TopicPartition, offset: int) -> bool:
        """Give up the records below `offset`; whether there were any. [CLN-32]"""
        if offset > self.last_stable_offset:
            message = (
                f"Cannot increment the log start offset to {offset} of partition {partition} since it is larger than "
                f"the high watermark {self.last_stable_offset}"
            )
            raise Refusal("CLN-32", OUT_OF_RANGE, message)
        moved = offset > self.log_start_offset
        self.log_start_offset = max(offset, self.log_start_offset)
        return moved

    def become(self, extent: log_spec.LogExtent) -> None:
        """Hold that from now on."""
        self.log_start_offset = extent.log_start_offset
        self.log_end_offset = extent.log_end_offset
        self.last_stable_offset = extent.last_stable_offset
        self.segments = [view(MemorySegment, s) for s in extent.segments]


class Driver(ByPartition):
    """The manager over logs in memory and a simulated disk, for the spec to walk beside."""

    machine = spec.machine
    refusals = {CleaningAborted: spec.STOPPED, Refusal: attrgetter("refused")}
    partitions = frozenset({"partition", "chosen", "update", "remove"})
    manager_class = LogCleanerManager

    def reset(self, arguments: Mapping[str, Any]) -> None:
        first = spec.initial(**arguments)
        self.batch_bytes, self.now = first.batch_bytes, first.now
        self.all_logs = {topic_partition(p): MemoryLog(**vars(log.config)) for p, log in first.logs.items()}
        self.directories = list(first.checkpoints)
        self.read: dict[bytes, Frozen[str, int]] = {}
        """the entries of checkpoints that were observed, by the files' bytes"""
        self.known: dict[TopicPartition, CleanableLog] = dict(self.all_logs)
        self._open(SimulatedDisk())

    def _open(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.subject: LogCleanerManager = self.manager_class(self.known, self.directories, disk)

    def grab_filthiest_compacted_log(self, chosen: TopicPartition | None) -> spec.Grab:
        stats = PreCleanStats()
        grabbed = self.subject.grab_filthiest_compacted_log(self.now, stats, chosen)
        log = None if grabbed is None else view(log_spec.LogToClean, grabbed, partition=str(grabbed.partition))
        return view(spec.Grab, stats, log=log)

    def cleanable_offsets_of(self, partition: TopicPartition, last_clean_offset: int | None) -> OffsetsToClean:
        return cleanable_offsets(self.all_logs[partition], last_clean_offset, self.now)

    def log_to_clean(self, partition: TopicPartition, last_clean_offset: int | None) -> log_spec.MeasuredLog | None:
        offsets = self.cleanable_offsets_of(partition, last_clean_offset)
        delay_ms = compaction_delay_ms(self.all_logs[partition], offsets.first_dirty_offset, self.now)
        found = log_to_clean(partition, self.all_logs[partition], offsets, delay_ms > 0)
        if not found.total_bytes:
            return None
        more = {"cleanable": found.is_cleanable, "compaction_delay_ms": delay_ms}
        return view(log_spec.MeasuredLog, found, partition=str(partition), **more)

    def abort_and_pause_cleaning(self, partition: TopicPartition) -> spec.Wait:
        return spec.Wait(self.subject.abort_and_pause_cleaning(partition).waits)

    def abort_cleaning(self, partition: TopicPartition) -> spec.Wait:
        return spec.Wait(self.subject.abort_cleaning(partition).waits)

    def resume_cleaning(self, partition: TopicPartition) -> None:
        self.subject.resume_cleaning([partition])

    def done_cleaning(self, partition: TopicPartition, end_offset: int) -> spec.Release:
        self.subject.done_cleaning(partition, self.all_logs[partition].log_dir, end_offset)
        return self._released()

    def done_deleting(self, partition: TopicPartition) -> spec.Release:
        self.subject.done_deleting([partition])
        return self._released()

    def _released(self) -> spec.Release:
        returned = self.subject.run_signalled()
        return spec.Release(returned[0].operation if returned else None)

    def pause_cleaning_for_non_compacted_partitions(self) -> list[str]:
        return sorted(map(str, self.subject.pause_cleaning_for_non_compacted_partitions()))

    def deletable_logs(self) -> list[str]:
        return sorted(map(str, self.subject.deletable_logs()))

    def uncleanable_bytes(self, dir: str) -> int:
        return self.subject.uncleanable_bytes(dir, world.WALL_CLOCK_MS)

    def update_checkpoints(
        self, dir: str, update: TopicPartition | None, offset: int | None, remove: TopicPartition | None
    ) -> None:
        new = {update: offset} if update is not None and offset is not None else {}
        self.subject.update_checkpoints(dir, new, remove)

    def restart(self) -> None:
        self._open(self.disk.lose())

    def append(self, partition: TopicPartition, key: str, count: int, then_high_watermark: str | None) -> int:
        log = self.all_logs[partition]
        for _ in range(count):
            log.append(self.now, self.batch_bytes)
        if then_high_watermark is not None:
            log.last_stable_offset = log.log_end_offset
        return log.log_end_offset

    def maybe_increment_log_start_offset(self, partition: TopicPartition, offset: int) -> bool:
        return self.all_logs[partition].start_at(partition, offset)

    def log_changed(self, partition: TopicPartition, log: log_spec.LogExtent) -> None:
        self.all_logs[partition].become(log)

    def update_config(self, partition: TopicPartition, policy: str) -> None:
        log = self.all_logs[partition]
        log.compact, log.delete = "compact" in policy.split(","), "delete" in policy.split(",")

    def forget_log(self, partition: TopicPartition) -> None:
        self.known.pop(partition, None)

    def restore_log(self, partition: TopicPartition) -> None:
        self.known[partition] = self.all_logs[partition]

    def advance(self, ms: int) -> None:
        self.now += ms

    def state(self) -> Cleaner:
        """The checkpoints as they are on its disk."""
        manager = self.subject
        return Cleaner(
            now=self.now,
            logs=Frozen({str(p): _log(log, p in self.known) for p, log in self.all_logs.items()}),
            cleaning=Frozen({str(p): _cleaning(s) for p, s in manager.in_progress.items()}),
            blocked=Frozen({str(c.partition): c.operation for c in manager.waiting}),
            checkpoints=Frozen({d: self._checkpoint(d) for d in self.directories}),
            uncleanable=Frozen({d: frozenset(map(str, manager.uncleanable.get(d, ()))) for d in self.directories}),
            failed=frozenset(d for d in self.directories if d not in manager.checkpoints),
            batch_bytes=self.batch_bytes,
        )

    def observe(self) -> Json:
        """As the spec shows that state. Most logs are as they were at the last look."""
        seen = self.machine.show(self.state())
        shown: dict[str, Json] = encode(replace(seen, logs={}))
        return shown | {"logs": {p: _log_shown(log) for p, log in seen.logs.items()}}

    def _checkpoint(self, directory: str) -> Frozen[str, int]:
        data = self.disk.read(f"{directory}/{OFFSET_CHECKPOINT_FILE}")
        try:
            return self.read[data]
        except KeyError:
            read = self.read[data] = Frozen({str(p): offset for p, offset in decode(data).items()})
            return read


@remembered_each
def _log_shown(log: LogView) -> Json:
    return encode(log)


def _log(log: MemoryLog, known: bool) -> log_spec.Log:
    facts = vars(log).copy()
    facts["segments"] = tuple(tuple(vars(s).values()) for s in log.segments)
    return _as_the_spec_has_it(known, **facts)


@lru_cache(maxsize=4096)
def _as_the_spec_has_it(known: bool, segments: tuple[tuple[int, ...], ...], **facts: Any) -> log_spec.Log:
    """Most logs are as they were at the last look."""
    log = MemoryLog(**facts)
    spec_segments = tuple(log_spec.Segment(*s) for s in segments)
    return view(log_spec.Log, log, segments=spec_segments, config=view(log_spec.Config, log), known=known)


def _cleaning(state: LogCleaningState) -> state_spec.Cleaning:
    if isinstance(state, LogCleaningPaused):
        return state_spec.Paused(state.paused_count)
    return state_spec.InProgress() if state == LogCleaningInProgress() else state_spec.Aborted()
