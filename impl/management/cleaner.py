"""The log cleaner's manager: Kafka's maps of states, of uncleanable partitions and of checkpoint files, deterministic.

Threads are whoever calls. To wait is explicit: `abort_and_pause_cleaning` returns a `Caller`, which has returned or
waits; a done cleaning signals all who wait, and `run_signalled` lets those run that were signalled, as a scheduler
would. Logs are seen through `CleanableLog`, checkpoints go through a `Disk`.

Source: LogCleanerManager and LogToClean, Kafka 4.3.0; Kafka Internals, ch. 04, "Cleaning state in LogCleanerManager".
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kafkaspec.contract.machine import Refused
from kafkaspec.impl.common.disk import Disk, StorageError
from kafkaspec.impl.management.checkpoints import CheckpointFile, TopicPartition
from kafkaspec.spec.common.kafka import ILLEGAL_STATE, LONG_MAX

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
