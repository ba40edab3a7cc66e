"""The log cleaner's manager: Kafka's maps of states, of uncleanable partitions and of checkpoint files, deterministic.

Threads are whoever calls. To wait is explicit: `abort_and_pause` gives back a `Caller`, which has returned or waits;
a done cleaning signals all who wait, and `run_signalled` lets those run that were signalled, as a scheduler would. Logs
are seen through `CleanableLog`, checkpoints go through a `Disk`.

Source: LogCleanerManager and LogToClean, Kafka 4.3.0; Kafka Internals, ch. 04, "Cleaning state in LogCleanerManager".
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kafkaspec.contract.clauses import states
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.impl.common.disk import Disk, SimulatedDisk, StorageError
from kafkaspec.impl.management.checkpoints import CheckpointFile, TopicPartition, decode, topic_partition
from kafkaspec.spec.common.kafka import ILLEGAL_STATE
from kafkaspec.spec.management import cleaner as spec

OFFSET_CHECKPOINT_FILE = "cleaner-offset-checkpoint"
LONG_MAX = 2**63 - 1
WEEK_MS = 604_800_000


class Refusal(Exception):
    """The manager says no. `refused` names the clause and Kafka's exception."""

    def __init__(self, clause: str, error: str, message: str | None = None) -> None:
        super().__init__(message or error)
        self.refused = Refused(clause, error, message)


# ---- logs ------------------------------------------------------------------------------------------------------------
class CleanableSegment(Protocol):
    """One segment. Sizes in bytes; timestamps in ms, -1 where there is none."""

    @property
    def base_offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def largest_timestamp(self) -> int: ...
    @property
    def first_batch_timestamp(self) -> int: ...


class CleanableLog(Protocol):
    """What the manager reads of a log. The last of its segments is the active one."""

    @property
    def directory(self) -> str: ...
    @property
    def compact(self) -> bool: ...
    @property
    def min_compaction_lag_ms(self) -> int: ...
    @property
    def max_compaction_lag_ms(self) -> int: ...
    @property
    def min_cleanable_ratio(self) -> float: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def last_stable_offset(self) -> int: ...
    @property
    def segments(self) -> Sequence[CleanableSegment]: ...


@states("CLN-5")
def segments_between(log: CleanableLog, start: int, end: int) -> Sequence[CleanableSegment]:
    """The segments that hold [start, end); none if that is empty, even in the middle of a segment (KAFKA-9826)."""
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


@states("CLN-8", "CLN-9")
def cleanable_offsets(log: CleanableLog, checkpoint: int | None, now: int) -> OffsetsToClean:
    """From the checkpoint, or the log start where that is unusable, to what is undecided, active or too young."""
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


@states("CLN-7")
def compaction_delay_ms(log: CleanableLog, first_dirty_offset: int, now: int) -> int:
    """By how much the earliest dirty batch is older than the log's maximum compaction lag allows."""
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
    @states("CLN-5")
    def cleanable_ratio(self) -> float:
        return float(self.cleanable_bytes) / float(self.total_bytes)

    @property
    @states("CLN-3")
    def is_cleanable(self) -> bool:
        forced = self.need_compaction_now and self.cleanable_bytes > 0
        return forced or self.cleanable_ratio > self.log.min_cleanable_ratio


@states("CLN-5")
def log_to_clean(partition: TopicPartition, log: CleanableLog, offsets: OffsetsToClean, needed: bool) -> LogToClean:
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

    @states("CLN-6")
    def add_delay(self, delay_ms: int) -> None:
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
    in_progress: dict[TopicPartition, spec.Cleaning] = field(default_factory=dict)
    uncleanable: dict[str, set[TopicPartition]] = field(default_factory=dict)
    checkpoints: dict[str, CheckpointFile] = field(init=False)
    waiting: list[Caller] = field(default_factory=list)
    signalled: list[Caller] = field(default_factory=list)
    failed_directories: list[str] = field(default_factory=list)
    """reported as failed, for whoever takes directories out of service"""

    @states("CLN-31")
    def __post_init__(self) -> None:
        self.checkpoints = {d: CheckpointFile(d, OFFSET_CHECKPOINT_FILE, self.disk) for d in self.directories}

    # checkpoints

    @states("CLN-29")
    def _read(self, directory: str) -> dict[TopicPartition, int] | None:
        """A directory's entries; None if it is out of service, or its file is unreadable, which is reported."""
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

    @states("CLN-30")
    def all_cleaner_checkpoints(self) -> dict[TopicPartition, int] | None:
        """The entries of all live directories; None while a partition stands in two of them (CLN-30)."""
        entries: dict[TopicPartition, int] = {}
        for directory in self.checkpoints:
            for partition, offset in (self._read(directory) or {}).items():
                if partition in entries:
                    return None
                entries[partition] = offset
        return entries

    @states("CLN-26")
    def update_checkpoints(
        self, directory: str, update: Mapping[TopicPartition, int], remove: TopicPartition | None = None
    ) -> None:
        entries = self._read(directory)
        if entries is not None:
            kept = {p: offset for p, offset in entries.items() if p in self.logs and p != remove}
            self._write(directory, {**kept, **update})

    @states("CLN-27")
    def maybe_truncate_checkpoint(self, directory: str, partition: TopicPartition, offset: int) -> None:
        log = self.logs.get(partition)
        if log is None or not log.compact:
            return
        entries = self._read(directory)
        if entries is not None and entries.get(partition, 0) > offset:
            self._write(directory, {**entries, partition: offset})

    @states("CLN-28")
    def alter_checkpoint_dir(self, partition: TopicPartition, source: str, dest: str) -> None:
        offset = (self._read(source) or {}).get(partition)
        if offset is not None:
            self.update_checkpoints(source, {}, remove=partition)
            self.update_checkpoints(dest, {partition: offset})
        if partition in self.uncleanable.get(source, ()):
            self.uncleanable[source].remove(partition)
            self.mark_uncleanable(dest, partition)

    @states("CLN-29")
    def handle_log_dir_failure(self, directory: str) -> None:
        self.checkpoints.pop(directory, None)

    # choosing

    @states("CLN-2", "CLN-19", "CLN-24")
    def _is_free(self, partition: TopicPartition, log: CleanableLog) -> bool:
        return partition not in self.in_progress and partition not in self.uncleanable.get(log.directory, ())

    @states("CLN-1", "CLN-2", "CLN-4", "CLN-6", "CLN-10", "CLN-30", "CKP-14")
    def grab_filthiest(self, now: int, stats: PreCleanStats, prefer: TopicPartition | None = None) -> LogToClean | None:
        """Mark the filthiest cleanable log as in progress. `prefer` decides between equally filthy ones."""
        last_clean = self.all_cleaner_checkpoints()
        if last_clean is None:
            return None
        dirty: list[LogToClean] = []
        for partition, log in self.logs.items():
            if not log.compact or not self._is_free(partition, log):
                continue
            offsets = cleanable_offsets(log, last_clean.get(partition), now)
            if offsets.force_update_checkpoint:
                self.update_checkpoints(log.directory, {partition: offsets.first_dirty_offset})
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
        self.in_progress[filthiest.partition] = spec.InProgress()
        return filthiest

    @states("CLN-1", "CLN-18")
    def pause_non_compacted(self) -> list[TopicPartition]:
        """Claim for retention every log that only retention works on and nobody holds."""
        taken = [p for p, log in self.logs.items() if not log.compact and p not in self.in_progress]
        self.in_progress |= dict.fromkeys(taken, spec.Paused(1))
        return taken

    @states("CLN-1", "CLN-19")
    def deletable_logs(self) -> list[TopicPartition]:
        """Claim every compacted log that nobody holds, to delete its old segments."""
        taken = [p for p, log in self.logs.items() if log.compact and self._is_free(p, log)]
        self.in_progress |= dict.fromkeys(taken, spec.InProgress())
        return taken

    # the state machine

    @states("CLN-1", "CLN-11")
    def abort_and_pause(self, partition: TopicPartition, operation: str = "abortAndPauseCleaning") -> Caller:
        """Raises Refusal if another caller waits already."""
        match self.in_progress.get(partition):
            case None:
                after: spec.Cleaning = spec.Paused(1)
            case spec.Paused(n):
                after = spec.Paused(n + 1)
            case spec.InProgress():
                after = spec.Aborted()
            case spec.Aborted():
                raise Refusal(
                    "CLN-11",
                    ILLEGAL_STATE,
                    f"Compaction for partition {partition} cannot be aborted and paused since it is in "
                    f"{_java_name('Aborted')} state.",
                )
        self.in_progress[partition] = after
        caller = Caller(operation, partition, waits=True)
        self.waiting.append(caller)
        self._go_on(caller)
        return caller

    @states("CLN-13")
    def abort(self, partition: TopicPartition) -> Caller:
        return self.abort_and_pause(partition, "abortCleaning")

    @states("CLN-12", "CLN-13")
    def _go_on(self, caller: Caller) -> None:
        """A caller looks whether the partition is paused by now, and returns if it is; an abort resumes first."""
        if isinstance(self.in_progress.get(caller.partition), spec.Paused):
            caller.waits = False
            self.waiting.remove(caller)
            if caller.operation == "abortCleaning":
                self.resume([caller.partition])

    def _signal_all(self) -> None:
        self.signalled = list(self.waiting)

    @states("CLN-12")
    def run_signalled(self) -> list[Caller]:
        """Let the callers run that were signalled; those that returned."""
        woken, self.signalled = self.signalled, []
        for caller in woken:
            self._go_on(caller)
        return [c for c in woken if not c.waits]

    @states("CLN-1", "CLN-14")
    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Undo one pause of each. Raises Refusal at the first that is not paused; those before it are resumed."""
        for partition in partitions:
            match self.in_progress.get(partition):
                case spec.Paused(1):
                    del self.in_progress[partition]
                    continue
                case spec.Paused(n):
                    self.in_progress[partition] = spec.Paused(n - 1)
                    continue
                case None:
                    why = "it is not paused."
                case other:
                    why = f"it is in {_java_name(type(other).__name__)} state."
            message = f"Compaction for partition {partition} cannot be resumed since {why}"
            raise Refusal("CLN-14", ILLEGAL_STATE, message)

    @states("CLN-17")
    def check_aborted(self, partition: TopicPartition) -> None:
        """Raises Refusal if the cleaner thread that works on the partition is to stop."""
        if isinstance(self.in_progress.get(partition), spec.Aborted):
            raise Refusal("CLN-17", spec.ABORTED_EXCEPTION)

    @states("CLN-1", "CLN-12", "CLN-15", "CLN-16")
    def _done(self, partition: TopicPartition, clause: str, when_undisturbed: Callable[[], None]) -> None:
        match self.in_progress.get(partition):
            case None:
                raise Refusal(clause, ILLEGAL_STATE, f"State for partition {partition} should exist.")
            case spec.InProgress():
                when_undisturbed()
                del self.in_progress[partition]
            case spec.Aborted():
                self.in_progress[partition] = spec.Paused(1)
                self._signal_all()
            case spec.Paused(n):
                message = f"In-progress partition {partition} cannot be in LogCleaningPaused{{pausedCount={n}}} state."
                raise Refusal(clause, ILLEGAL_STATE, message)

    @states("CLN-15", "CKP-14")
    def done_cleaning(self, partition: TopicPartition, directory: str, end_offset: int) -> None:
        """Raises Refusal unless a cleaner thread had the partition."""
        self._done(partition, "CLN-15", lambda: self.update_checkpoints(directory, {partition: end_offset}))

    @states("CLN-16")
    def done_deleting(self, partitions: Iterable[TopicPartition]) -> None:
        """Raises Refusal at the first that no cleaner thread had."""
        for partition in partitions:
            self._done(partition, "CLN-16", lambda: None)

    # uncleanable partitions

    @states("CLN-24")
    def mark_uncleanable(self, directory: str, partition: TopicPartition) -> None:
        self.uncleanable.setdefault(directory, set()).add(partition)

    @states("CLN-25")
    def maintain_uncleanable(self) -> None:
        known = {d: {p for p in marked if p in self.logs} for d, marked in self.uncleanable.items()}
        self.uncleanable = {d: marked for d, marked in known.items() if marked}

    @states("CLN-34")
    def uncleanable_bytes(self, directory: str, now: int) -> int:
        """What could be cleaned, were it not for the failures; a gauge."""
        checkpoints = self.all_cleaner_checkpoints() or {}
        total = 0
        for partition in self.uncleanable.get(directory, ()):
            log = self.logs.get(partition)
            if log is not None:
                offsets = cleanable_offsets(log, checkpoints.get(partition), now)
                total += log_to_clean(partition, log, offsets, needed=False).cleanable_bytes
        return total


def _java_name(state: str) -> str:
    """As Kafka's messages print a state; identity hashes are masked in recordings."""
    return f"org.apache.kafka.storage.internals.log.LogCleaningState$LogCleaning{state}@HASH"


# ---- a log in memory, and the driver for lockstep --------------------------------------------------------------------
@dataclass
class MemorySegment:
    base_offset: int
    size: int = 0
    largest_timestamp: int = -1
    first_batch_timestamp: int = -1


@dataclass
class MemoryLog:
    """A log without records."""

    directory: str
    compact: bool
    delete: bool
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    min_cleanable_ratio: float
    segment_bytes: int
    log_start_offset: int = 0
    log_end_offset: int = 0
    last_stable_offset: int = 0
    segments: list[MemorySegment] = field(default_factory=lambda: [MemorySegment(0)])

    @states("CLN-32")
    def append(self, now: int, size: int) -> None:
        active = self.segments[-1]
        waited_ms = now - active.first_batch_timestamp if active.size else 0
        longest_ms = WEEK_MS if not self.compact else min(WEEK_MS, self.max_compaction_lag_ms or WEEK_MS)
        if (
            active.size + size > self.segment_bytes or waited_ms > longest_ms
        ) and self.log_end_offset > active.base_offset:
            active = MemorySegment(self.log_end_offset)
            self.segments.append(active)
        if not active.size:
            active.first_batch_timestamp = now
        active.size += size
        active.largest_timestamp = max(active.largest_timestamp, now)
        self.log_end_offset += 1

    @states("CLN-32")
    def start_at(self, partition: TopicPartition, offset: int) -> bool:
        """Give up the records below `offset`; whether there were any."""
        if offset > self.last_stable_offset:
            message = (
                f"Cannot increment the log start offset to {offset} of partition {partition} since it is larger than "
                f"the high watermark {self.last_stable_offset}"
            )
            raise Refusal("CLN-32", spec.OUT_OF_RANGE, message)
        moved = offset > self.log_start_offset
        self.log_start_offset = max(offset, self.log_start_offset)
        return moved

    def become(self, view: Mapping[str, Any]) -> None:
        """Turn into what `view` shows."""
        self.log_start_offset = view["logStartOffset"]
        self.log_end_offset = view["logEndOffset"]
        self.last_stable_offset = view["lastStableOffset"]
        self.segments = [
            MemorySegment(s["baseOffset"], s["size"], s.get("largestTimestamp", -1), s.get("firstBatchTimestamp", -1))
            for s in view["segments"]
        ]


def _report(found: LogToClean) -> dict[str, Json]:
    """As the recordings show it."""
    return {
        "partition": str(found.partition),
        "firstDirtyOffset": found.first_dirty_offset,
        "firstUncleanableOffset": found.first_uncleanable_offset,
        "cleanBytes": found.clean_bytes,
        "cleanableBytes": found.cleanable_bytes,
        "totalBytes": found.total_bytes,
        "cleanableRatio": found.cleanable_ratio,
        "needCompactionNow": found.need_compaction_now,
    }


class Driver:
    """The manager over logs in memory and a simulated disk, for the spec to walk beside."""

    manager_class = LogCleanerManager

    def reset(self, arguments: Mapping[str, Any]) -> None:
        partitions = arguments.get("partitions") or spec.PARTITIONS
        self.batch_bytes: int = arguments.get("batch_bytes", 72)
        self.now = 1_000_000
        self.all_logs: dict[TopicPartition, MemoryLog] = {}
        for settings in partitions:
            policies = settings.get("cleanup.policy", "compact").split(",")
            self.all_logs[topic_partition(settings["partition"])] = MemoryLog(
                settings["logDir"],
                "compact" in policies,
                "delete" in policies,
                settings.get("min.compaction.lag.ms", 0),
                settings.get("max.compaction.lag.ms", LONG_MAX),
                settings.get("min.cleanable.dirty.ratio", 0.5),
                settings.get("segment.bytes", 2**30),
            )
        self.directories = sorted({log.directory for log in self.all_logs.values()})
        self.known: dict[TopicPartition, CleanableLog] = dict(self.all_logs)
        self.disk = SimulatedDisk()
        self.manager = self.manager_class(self.known, self.directories, self.disk)

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        try:
            return getattr(self, "do_" + name.replace(".", "_"))(**arguments)
        except Refusal as e:
            return e.refused

    def do_grabFilthiestCompactedLog(self, chosen: str | None = None) -> Json:
        stats = PreCleanStats()
        found = self.manager.grab_filthiest(self.now, stats, None if chosen is None else topic_partition(chosen))
        return {
            "log": None if found is None else _report(found),
            "cleanablePartitions": stats.cleanable_partitions,
            "delayedPartitions": stats.delayed_partitions,
            "maxCompactionDelayMs": stats.max_compaction_delay_ms,
        }

    def do_cleanableOffsets(self, partition: str, last_clean_offset: int | None) -> Json:
        found = cleanable_offsets(self.all_logs[topic_partition(partition)], last_clean_offset, self.now)
        return {
            "firstDirtyOffset": found.first_dirty_offset,
            "firstUncleanableDirtyOffset": found.first_uncleanable_dirty_offset,
            "forceUpdateCheckpoint": found.force_update_checkpoint,
        }

    def do_logToClean(self, partition: str, last_clean_offset: int | None) -> Json:
        which = topic_partition(partition)
        log = self.all_logs[which]
        offsets = cleanable_offsets(log, last_clean_offset, self.now)
        delay_ms = compaction_delay_ms(log, offsets.first_dirty_offset, self.now)
        found = log_to_clean(which, log, offsets, delay_ms > 0)
        if not found.total_bytes:
            return None
        return {**_report(found), "cleanable": found.is_cleanable, "compactionDelayMs": delay_ms}

    def do_abortAndPauseCleaning(self, partition: str) -> Json:
        return {"blocked": self.manager.abort_and_pause(topic_partition(partition)).waits}

    def do_abortCleaning(self, partition: str) -> Json:
        return {"blocked": self.manager.abort(topic_partition(partition)).waits}

    def do_resumeCleaning(self, partition: str) -> Json:
        self.manager.resume([topic_partition(partition)])

    def _released(self) -> Json:
        returned = self.manager.run_signalled()
        return {"released": returned[0].operation if returned else None}

    def do_doneCleaning(self, partition: str, end_offset: int) -> Json:
        which = topic_partition(partition)
        self.manager.done_cleaning(which, self.all_logs[which].directory, end_offset)
        return self._released()

    def do_doneDeleting(self, partition: str) -> Json:
        self.manager.done_deleting([topic_partition(partition)])
        return self._released()

    def do_checkCleaningAborted(self, partition: str) -> Json:
        self.manager.check_aborted(topic_partition(partition))

    def do_pauseCleaningForNonCompactedPartitions(self) -> Json:
        return sorted(map(str, self.manager.pause_non_compacted()))

    def do_deletableLogs(self) -> Json:
        return sorted(map(str, self.manager.deletable_logs()))

    def do_markPartitionUncleanable(self, dir: str, partition: str) -> Json:
        self.manager.mark_uncleanable(dir, topic_partition(partition))

    def do_maintainUncleanablePartitions(self) -> Json:
        self.manager.maintain_uncleanable()

    def do_uncleanableBytes(self, dir: str) -> Json:
        return self.manager.uncleanable_bytes(dir, spec.WALL_CLOCK_MS)

    def do_updateCheckpoints(
        self, dir: str, update: str | None = None, offset: int | None = None, remove: str | None = None
    ) -> Json:
        new = {topic_partition(update): offset} if update is not None and offset is not None else {}
        self.manager.update_checkpoints(dir, new, None if remove is None else topic_partition(remove))

    def do_maybeTruncateCheckpoint(self, dir: str, partition: str, offset: int) -> Json:
        self.manager.maybe_truncate_checkpoint(dir, topic_partition(partition), offset)

    def do_alterCheckpointDir(self, partition: str, source: str, dest: str) -> Json:
        self.manager.alter_checkpoint_dir(topic_partition(partition), source, dest)

    def do_handleLogDirFailure(self, dir: str) -> Json:
        self.manager.handle_log_dir_failure(dir)

    def do_restart(self) -> Json:
        self.disk = self.disk.lose()
        self.manager = self.manager_class(self.known, self.directories, self.disk)

    def do_append(self, partition: str, key: str, count: int, then_high_watermark: str | None = "logEndOffset") -> Json:
        log = self.all_logs[topic_partition(partition)]
        for _ in range(count):
            log.append(self.now, self.batch_bytes)
        if then_high_watermark is not None:
            log.last_stable_offset = log.log_end_offset
        return log.log_end_offset

    def do_maybeIncrementLogStartOffset(self, partition: str, offset: int) -> Json:
        return self.all_logs[topic_partition(partition)].start_at(topic_partition(partition), offset)

    def do_logChanged(self, partition: str, log: Mapping[str, Any]) -> Json:
        self.all_logs[topic_partition(partition)].become(log)

    def do_updateConfig(self, partition: str, policy: str) -> Json:
        log = self.all_logs[topic_partition(partition)]
        log.compact, log.delete = "compact" in policy.split(","), "delete" in policy.split(",")

    def do_forgetLog(self, partition: str) -> Json:
        self.known.pop(topic_partition(partition), None)

    def do_restoreLog(self, partition: str) -> Json:
        self.known[topic_partition(partition)] = self.all_logs[topic_partition(partition)]

    def do_advance(self, ms: int) -> Json:
        self.now += ms

    def observe(self) -> Json:
        return spec.observe(abstract(self))


def abstract(driver: Driver) -> spec.Cleaner:
    """The spec's state that the driver is in; the checkpoints as they are on its disk."""
    manager = driver.manager
    logs = {}
    for partition, log in driver.all_logs.items():
        config = spec.Config(
            log.directory,
            log.compact,
            log.delete,
            log.min_compaction_lag_ms,
            log.max_compaction_lag_ms,
            log.min_cleanable_ratio,
            log.segment_bytes,
        )
        segments = tuple(
            spec.Segment(s.base_offset, s.size, s.largest_timestamp, s.first_batch_timestamp) for s in log.segments
        )
        logs[str(partition)] = spec.Log(
            config,
            partition in driver.known,
            log.log_start_offset,
            log.log_end_offset,
            log.last_stable_offset,
            segments,
        )
    on_disk = {d: decode(driver.disk.read(f"{d}/{OFFSET_CHECKPOINT_FILE}")) for d in driver.directories}
    return spec.Cleaner(
        now=driver.now,
        logs=spec.Frozen(logs),
        cleaning=spec.Frozen({str(p): s for p, s in manager.in_progress.items()}),
        blocked=spec.Frozen({str(c.partition): c.operation for c in manager.waiting}),
        checkpoints=spec.Frozen({d: spec.Frozen({str(p): o for p, o in e.items()}) for d, e in on_disk.items()}),
        uncleanable=spec.Frozen({d: frozenset(map(str, manager.uncleanable.get(d, ()))) for d in driver.directories}),
        failed=frozenset(d for d in driver.directories if d not in manager.checkpoints),
        batch_bytes=driver.batch_bytes,
    )
