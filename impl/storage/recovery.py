"""A log directory with one partition, started and stopped so that a crash at any moment costs nothing that was flushed.

What becomes of the files of a log is its loader's; what is written when is the log's. Here is the order around them:
the marker of a clean stop, the checkpoints, and a flush that comes late.

Source: LogManager, LogLoader and UnifiedLog, Kafka 4.3.0; Kafka Internals, ch. 03 and 04.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.management.checkpoints import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    MARKER,
    RECOVERY_POINTS,
    CheckpointFile,
    TopicPartition,
    encode_marker,
)
from kafkaspec.impl.storage import log_loader as loading
from kafkaspec.impl.storage.log import Loader, LogConfig, UnifiedLog
from kafkaspec.impl.storage.log_loader import DELETED, INDEXES
from kafkaspec.impl.storage.producer_state import SUFFIX as SNAPSHOT
from kafkaspec.impl.storage.segment import LOG, Segment, file_name


class Killed(Exception):
    """The process ended in the middle of a load."""


class StartResult(NamedTuple):
    """What a start found."""

    clean: bool
    log_start: int
    recovery_point: int
    log_end: int


class RecoveringLoader(Loader):
    """A loader that gives up segments as a log does, by another name first, and that can be killed between two
    recoveries."""

    most: int | None = None
    """it is killed when it has recovered that number of segments, with a marker before it opens any; None: it is not"""
    recovered = 0
    loads = False

    def load(self) -> loading.LoadedOffsets:
        """All passes; what was given up is removed at last. Raises Killed."""
        if self.clean and self.most is not None:
            raise Killed
        self.given_up: list[str] = []
        found = super().load()
        for path in self.given_up:
            if self.disk.exists(path):
                self.disk.remove(path)
        return found

    def load_segments(self) -> None:
        """Open the segments. Raises CorruptRecord. [REC-20]"""
        self.loads = True
        super().load_segments()
        self.loads = False

    def recover_unflushed(self) -> None:
        """From the segment on that holds the recovery point. [REC-7, REC-8, REC-19, REC-21]"""
        super().recover_unflushed()
        if self.most is not None:
            raise Killed

    def recover(self, segment: Segment) -> int:
        if not self.loads:
            if self.recovered == self.most:
                raise Killed
            self.recovered += 1
        return super().recover(segment)

    def delete(self, gone: Sequence[Segment]) -> None:
        for segment in gone:
            del self.segments[segment.base_offset]
            for end in (LOG, *INDEXES, SNAPSHOT):
                path = self.path(file_name(segment.base_offset, end))
                if self.disk.exists(path):
                    self.disk.rename(path, path + DELETED)
                    self.given_up.append(path + DELETED)


class RecoverableLog(UnifiedLog):
    """A log of which the recovery point never says more than what was flushed."""

    loader_class: type[Loader] = RecoveringLoader

    def _flush(self, offset: int, including: bool = False) -> None:
        """A flush that a roll scheduled may come when the log is shorter. [REC-10, REC-18]"""
        super()._flush(offset, including)
        self.recovery_point = min(self.recovery_point, max(self.log_end, self.log_start))


class LogDirectory:
    """One log directory, its files and the broker that comes and goes. Raises StorageError."""

    log_class: type[RecoverableLog] = RecoverableLog

    def __init__(
        self, root: str, partition: TopicPartition, disk: Disk, config: LogConfig, clock: Callable[[], int] = lambda: 0
    ) -> None:
        self.root, self.partition, self.disk, self.config, self.clock = root, partition, disk, config, clock
        self.directory = f"{root}/{partition}"
        self.scheduled: list[Callable[[], None]] = []
        self.points, self.starts, self.marks = (
            CheckpointFile(root, name, disk) for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS)
        )
        self.log: RecoverableLog | None = None

    @property
    def marker(self) -> str:
        return f"{self.root}/{MARKER}"

    @property
    def running(self) -> RecoverableLog:
        assert self.log is not None
        return self.log

    # ---- starts

    def take_marker(self) -> bool:
        """Whether the last stop was clean. The marker is gone then, whatever crash comes. [REC-5, REC-6]"""
        there = self.disk.exists(self.marker)
        if there:
            self.disk.remove(self.marker)
            self.disk.flush_directory(self.root)
        return there

    def start(self) -> StartResult:
        """Load the log. [REC-3, REC-4, REC-5, REC-9, REC-11, REC-12]"""
        clean = self.take_marker()
        point, start, mark = (c.read().get(self.partition, 0) for c in (self.points, self.starts, self.marks))
        self.scheduled = []
        log = self.log_class(
            self.directory, self.disk, self.config, self.clock, self._schedule,
            clean=clean, recovery_point=point, log_start=start,
        )  # fmt: skip
        self.log = log
        found = StartResult(clean, log.log_start, log.recovery_point, log.log_end)
        log.update_high_watermark(mark)
        return found

    def _schedule(self, delay_ms: int, task: Callable[[], None]) -> None:
        self.scheduled.append(task)

    # ---- while it runs

    def append(self, batch: bytes, leader_epoch: int) -> None:
        """The epoch is in its file, and flushed, before the batch is written. [REC-14]"""
        self.running.append_as_leader(batch, leader_epoch)

    def background(self) -> None:
        """Do what is scheduled. [REC-13, REC-18]"""
        tasks, self.scheduled = self.scheduled, []
        for task in tasks:
            task()

    def truncate_to(self, offset: int) -> bool:
        """Cut the log; the recovery point is checkpointed before anything is appended. [REC-15]"""
        cut = self.running.truncate_to(offset)
        if cut:
            self.checkpoint_recovery_points()
        return cut

    def delete_records(self, offset: int) -> bool:
        """[REC-17]"""
        return self.running.maybe_increment_log_start_offset(offset)

    def checkpoint_recovery_points(self) -> None:
        """[REC-10]"""
        self.points.write({self.partition: self.running.recovery_point})

    def checkpoint_log_starts(self) -> None:
        """Only if it is not what the first file's name says. [REC-12]"""
        log = self.running
        self.starts.write({self.partition: log.log_start} if log.log_start > log.bases[0] else {})

    def checkpoint_high_watermarks(self) -> None:
        """[REC-11]"""
        self.marks.write({self.partition: self.running.high_watermark.offset})

    # ---- stops

    def stop(self, broker_epoch: int = -1) -> None:
        """Flush, close, checkpoint, and mark, in this order. [REC-16]"""
        log = self.running
        self.checkpoint_high_watermarks()
        log.flush(force_flush_active_segment=True)
        log.close()
        self.checkpoint_recovery_points()
        self.checkpoint_log_starts()
        self.disk.write(self.marker, encode_marker(broker_epoch))
        self.disk.flush(self.marker)
        self.log = None
