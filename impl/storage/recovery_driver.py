"""A log directory on a disk that forgets, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from kafkaspec.contract.codec import encode
from kafkaspec.contract.machine import ByName, Json
from kafkaspec.impl.common.disk import SimulatedDisk, SimulatedFile
from kafkaspec.impl.management.checkpoints import TopicPartition, decode
from kafkaspec.impl.storage import recovery as impl
from kafkaspec.impl.storage.log import AboveHighWatermark, LogConfig
from kafkaspec.impl.storage.log_loader_driver import decode_content, encode_content, encode_log
from kafkaspec.impl.storage.segment import Segment
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.storage import log as log_spec
from kafkaspec.spec.storage import recovery as spec
from kafkaspec.spec.storage.log_loader import EPOCHS, LOG, Batch, LogFile
from kafkaspec.spec.storage.recovery_parts import broker

ROOT = "logs"
PARTITION = TopicPartition("t", 0)
CONFIG = LogConfig(segment_ms=2**62, segment_index_bytes=1024, retention_ms=-1, delete=False, max_message_bytes=1 << 20)


def batch_bytes(b: Batch) -> bytes:
    """A batch without a producer."""
    return encode_log(LogFile((b,)))


@lru_cache(maxsize=1024)
def _offset(checkpoint: bytes) -> int | None:
    """What an offset checkpoint says of the partition."""
    return decode(checkpoint).get(PARTITION)


class Driver(ByName):
    """A log directory on a simulated disk."""

    machine = spec.machine
    refusals = {AboveHighWatermark: log_spec.ABOVE_HIGH_WATERMARK}
    directory_class: type[impl.LogDirectory] = impl.LogDirectory

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
        deleted: int = self.subject.running.delete_old_segments()
        return deleted

    def kill(self) -> None:
        self._open()

    def power_fails(self, files: Mapping[str, Any], keeps_marker: bool) -> None:
        there = {p: f.certain for p, f in self.disk.names.items() if p.rpartition("/")[0] == ROOT}
        if not keeps_marker:
            there.pop(self.subject.marker, None)
        there |= {f"{self.subject.directory}/{n}": encode_content(n, c) for n, c in files.items()}
        names = {path: SimulatedFile(data, data) for path, data in there.items()}
        self.disk = SimulatedDisk(names, dict(names))
        self._open()

    def start(self) -> spec.LoadedLog:
        self._open()
        return spec.LoadedLog(*self.subject.start())

    def start_interrupted(self, segments: int) -> int:
        self._open()
        recovered = 0

        class InterruptedLoader(self.subject.log_class.loader_class):  # type: ignore[name-defined, misc]
            most = segments

            def recover(self, segment: Segment) -> int:
                nonlocal recovered
                cut: int = super().recover(segment)
                recovered = self.recovered
                return cut

        class InterruptedLog(self.subject.log_class):  # type: ignore[name-defined, misc]
            loader_class = InterruptedLoader

        self.subject.log_class = InterruptedLog
        try:
            self.subject.start()
        except impl.Killed:
            self._open()
            return recovered
        raise AssertionError("the load came to its end")

    def observe(self) -> Json:
        d = self.subject
        names = self.disk.files(d.directory)
        shown = {n: decode_content(n, self.disk.read(f"{d.directory}/{n}")) for n in names}
        log = d.log
        points, starts, marks = (_offset(self.disk.read(c.path)) for c in (d.points, d.starts, d.marks))
        return encode(
            broker.Observation(
                Frozen(shown),
                points,
                starts,
                marks,
                self.disk.exists(d.marker),
                None
                if log is None
                else broker.LogOffsets(log.log_start, log.recovery_point, log.high_watermark.offset, log.log_end),
                {n: self._safe_part(n) for n in names if n.endswith((LOG, EPOCHS))},
                self._undoable(),
            )
        )

    def _safe_part(self, name: str) -> int:
        file = self.disk.names[f"{self.subject.directory}/{name}"]
        content = decode_content(name, file.certain)
        return len(content.batches) if isinstance(content, LogFile) else int(file.flushed)

    def _undoable(self) -> list[str]:
        inside = f"{self.subject.directory}/"
        changed = self.disk.names.keys() ^ self.disk.durable_names.keys()
        return sorted(n.removeprefix(inside) for n in changed if n.startswith(inside) and n.endswith(LOG))
