"""A log directory with one partition, started and stopped so that a crash at any moment costs nothing that was flushed.

What becomes of the files of a log is its loader's; what is written when is the log's. Here is the order around them:
the marker of a clean stop, the checkpoints, and a flush that comes late.

Source: LogManager, LogLoader and UnifiedLog, Kafka 4.3.0; Kafka Internals, ch. 03 and 04.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kafkaspec.contract.codec import encode
from kafkaspec.contract.machine import ByName, Json
from kafkaspec.impl.common.disk import Disk, SimulatedDisk, SimulatedFile
from kafkaspec.impl.management.checkpoints import (
    MARKER,
    CheckpointFile,
    TopicPartition,
    encode_marker,
)
from kafkaspec.impl.storage import log_loader as loading
from kafkaspec.impl.storage.log import AboveHighWatermark, Loader, LogConfig, UnifiedLog
from kafkaspec.impl.storage.segment import Segment
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.management.checkpoints import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from kafkaspec.spec.storage import log as log_spec
from kafkaspec.spec.storage import recovery as spec
from kafkaspec.spec.storage.log_loader import (
    DELETED,
    INDEX,
    LOG,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    Batch,
    LogFile,
    name_of,
)


class Killed(Exception):
    """The process ended in the middle of a load."""


class Found(NamedTuple):
    """What a start found."""

    clean: bool
    log_start: int
    recovery_point: int
    log_end: int


class RecoveringLoader(Loader):
    """A loader that gives up segments as a log does, by another name first, and that can be killed between two
    recoveries."""

    most: int | None = None
    """it is killed after so many segments were recovered; None: it is not"""
    recovered = 0
    loads = False

    def load(self) -> loading.LoadedOffsets:
        """All passes; what was given up is removed at last."""
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
        """From the segment on that holds the recovery point. [REC-7, REC-8, REC-19]"""
        super().recover_unflushed()
        self._stop()

    def recover(self, segment: Segment) -> int:
        if not self.loads:
            if self.recovered == self.most:
                raise Killed
            self.recovered += 1
        return super().recover(segment)

    def _stop(self) -> None:
        if self.most is not None:
            raise Killed

    def delete(self, gone: Sequence[Segment]) -> None:
        for segment in gone:
            del self.segments[segment.base_offset]
            for end in (LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT):
                path = self.path(name_of(segment.base_offset, end))
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

    def start(self) -> Found:
        """Load the log. [REC-3, REC-4, REC-5, REC-9, REC-11, REC-12]"""
        clean = self.take_marker()
        point, start, mark = (c.read().get(self.partition, 0) for c in (self.points, self.starts, self.marks))
        self.scheduled = []
        log = self.log_class(
            self.directory, self.disk, self.config, self.clock, self._schedule,
            clean=clean, recovery_point=point, log_start=start,
        )  # fmt: skip
        self.log = log
        found = Found(clean, log.log_start, log.recovery_point, log.log_end)
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


# ---- beside the spec -------------------------------------------------------------------------------------------------
ROOT = "logs"
PARTITION = TopicPartition("t", 0)
CONFIG = LogConfig(segment_ms=2**62, segment_index_bytes=1024, retention_ms=-1, delete=False, max_message_bytes=1 << 20)


def batch_bytes(b: Batch) -> bytes:
    """A batch without a producer."""
    return loading.encode_log(LogFile((b,)))


class Driver(ByName):
    """A log directory on a simulated disk."""

    machine = spec.machine
    refusals = {AboveHighWatermark: log_spec.ABOVE_HIGH_WATERMARK}
    directory_class: type[LogDirectory] = LogDirectory

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.disk = SimulatedDisk()
        self._open()
        self.subject.start()
        self._touch()
        for name in list(self.disk.names):
            self.disk.flush(name)
        for folder in (ROOT, self.subject.directory):
            self.disk.flush_directory(folder)

    def _open(self) -> None:
        self.subject = self.directory_class(ROOT, PARTITION, self.disk, CONFIG)

    def _touch(self) -> None:
        """The index files of the active segment are there, whenever they were first needed."""
        if self.subject.log is not None:
            _ = self.subject.log.active.offset_index, self.subject.log.active.time_index

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Any:
        try:
            return super().apply(name, arguments)
        finally:
            self._touch()

    def append(self, records: Sequence[int], leader_epoch: int) -> None:
        for n in records:
            self.subject.append(batch_bytes(Batch(0, n - 1, leader_epoch)), leader_epoch)

    def roll(self) -> None:
        self.subject.running.roll()

    def flush(self) -> None:
        self.subject.running.flush()

    def update_high_watermark(self, offset: int) -> None:
        self.subject.running.update_high_watermark(offset)

    def delete_old_segments(self) -> int:
        return self.subject.running.delete_old_segments()

    def kill(self) -> None:
        self._open()

    def power_fails(self, files: Mapping[str, Any], keeps_marker: bool) -> None:
        there = {p: f.certain for p, f in self.disk.names.items() if p.rpartition("/")[0] == ROOT}
        if not keeps_marker:
            there.pop(self.subject.marker, None)
        there |= {f"{self.subject.directory}/{n}": loading.encode_content(n, c) for n, c in files.items()}
        names = {path: SimulatedFile(data, data) for path, data in there.items()}
        self.disk = SimulatedDisk(names, dict(names))
        self._open()

    def start(self) -> spec.Loaded:
        self._open()
        return spec.Loaded(*self.subject.start())

    def start_interrupted(self, segments: int) -> int:
        self._open()
        loaders: list[RecoveringLoader] = []

        class Interrupted(RecoveringLoader):
            most = segments

            def load(self) -> loading.LoadedOffsets:
                loaders.append(self)
                return super().load()

        class InterruptedLog(self.subject.log_class):  # type: ignore[name-defined, misc]
            loader_class = Interrupted

        self.subject.log_class = InterruptedLog
        try:
            self.subject.start()
        except Killed:
            self._open()
            return loaders[0].recovered
        raise AssertionError("the load came to its end")

    def observe(self) -> Json:
        d = self.subject
        names = self.disk.files(d.directory)
        shown = {n: loading.decode_content(n, self.disk.read(f"{d.directory}/{n}")) for n in names}
        log = d.log
        points, starts, marks = (c.read().get(PARTITION) for c in (d.points, d.starts, d.marks))
        return encode(
            spec.Observation(
                Frozen(shown),
                points,
                starts,
                marks,
                self.disk.exists(d.marker),
                None
                if log is None
                else spec.LogOffsets(log.log_start, log.recovery_point, log.high_watermark.offset, log.log_end),
                {
                    n: len(loading.decode_log(self.disk.names[f"{d.directory}/{n}"].certain).batches)
                    for n in names
                    if n.endswith(LOG)
                },
            )
        )
