"""The cleaner's manager over logs in memory, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any

from kafkaspec.contract.codec import Json, encode, replace, view
from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.management import cleaner as impl
from kafkaspec.impl.management.checkpoints import ByPartition, TopicPartition, decode, topic_partition
from kafkaspec.impl.management.cleaner import OFFSET_CHECKPOINT_FILE, WEEK_MS, LogCleaningInProgress, LogCleaningPaused
from kafkaspec.spec.common import cleanable_log as log_spec
from kafkaspec.spec.common import cleaner_world as world
from kafkaspec.spec.common import cleaning_state as state_spec
from kafkaspec.spec.common.cleaner_state import Cleaner, LogView
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.kafka import NO_TIMESTAMP, OUT_OF_RANGE
from kafkaspec.spec.common.remembered import remembered_each
from kafkaspec.spec.management import cleaner as spec


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
            raise impl.Refusal("CLN-32", OUT_OF_RANGE, message)
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
    refusals = {impl.CleaningAborted: spec.STOPPED, impl.Refusal: attrgetter("refused")}
    partitions = frozenset({"partition", "chosen", "update", "remove"})
    manager_class = impl.LogCleanerManager

    def reset(self, arguments: Mapping[str, Any]) -> None:
        first = spec.initial(**arguments)
        self.batch_bytes, self.now = first.batch_bytes, first.now
        self.all_logs = {topic_partition(p): MemoryLog(**vars(log.config)) for p, log in first.logs.items()}
        self.directories = list(first.checkpoints)
        self.read: dict[bytes, Frozen[str, int]] = {}
        """the entries of checkpoints that were observed, by the files' bytes"""
        self.known: dict[TopicPartition, impl.CleanableLog] = dict(self.all_logs)
        self._open(SimulatedDisk())

    def _open(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.subject: impl.LogCleanerManager = self.manager_class(self.known, self.directories, disk)

    def grab_filthiest_compacted_log(self, chosen: TopicPartition | None) -> spec.Grab:
        stats = impl.PreCleanStats()
        grabbed = self.subject.grab_filthiest_compacted_log(self.now, stats, chosen)
        log = None if grabbed is None else view(log_spec.LogToClean, grabbed, partition=str(grabbed.partition))
        return view(spec.Grab, stats, log=log)

    def cleanable_offsets_of(self, partition: TopicPartition, last_clean_offset: int | None) -> impl.OffsetsToClean:
        return impl.cleanable_offsets(self.all_logs[partition], last_clean_offset, self.now)

    def log_to_clean(self, partition: TopicPartition, last_clean_offset: int | None) -> log_spec.MeasuredLog | None:
        offsets = self.cleanable_offsets_of(partition, last_clean_offset)
        delay_ms = impl.compaction_delay_ms(self.all_logs[partition], offsets.first_dirty_offset, self.now)
        found = impl.log_to_clean(partition, self.all_logs[partition], offsets, delay_ms > 0)
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


def _cleaning(state: impl.LogCleaningState) -> state_spec.Cleaning:
    if isinstance(state, LogCleaningPaused):
        return state_spec.Paused(state.paused_count)
    return state_spec.InProgress() if state == LogCleaningInProgress() else state_spec.Aborted()
