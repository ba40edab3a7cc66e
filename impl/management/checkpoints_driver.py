"""The checkpoint files and the broker that keeps them, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from kafkaspec.contract.codec import encode as to_json
from kafkaspec.contract.codec import replace
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.impl.common.disk import SimulatedDisk, StorageError
from kafkaspec.impl.management import checkpoints as impl
from kafkaspec.spec.common.checkpoint_text import Unreadable, checkpoint_entries
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.management import checkpoints as spec

T = TypeVar("T")


class Driver(impl.ByPartition):
    """The files on a simulated disk, for the spec to walk beside. A kill keeps what was flushed and nothing else."""

    machine = spec.machine
    checkpoints_class = impl.Checkpoints

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.disk = SimulatedDisk()
        self.subject: impl.Checkpoints = self.checkpoints_class("dir", self.disk)
        self.disk.flush_directory("dir")
        self.running = True
        self.seen: dict[bytes, Mapping[str, int] | Literal["unreadable"]] = {}
        """what was read of files, by their bytes"""

    # the texts

    def _read(self, unreadable: Refused, read: Callable[[bytes], T], file: str) -> T | Refused:
        self.disk.write("dir/file", file.encode())
        try:
            with impl.storage_errors("dir", "reading", "dir/file"):
                return read(self.disk.read("dir/file"))
        except StorageError:
            return unreadable
        finally:
            self.disk.remove("dir/file")

    def offset_checkpoint_write(self, offsets: Mapping[str, int]) -> str:
        return impl.encode({impl.topic_partition(p): offset for p, offset in offsets.items()}).decode()

    def offset_checkpoint_read(self, file: str) -> dict[str, int] | Refused:
        return self._read(spec.UNREADABLE, lambda data: {str(p): o for p, o in impl.decode(data).items()}, file)

    def leader_epoch_checkpoint_read(self, file: str) -> list[tuple[int, int]] | Refused:
        return self._read(spec.UNREADABLE, lambda data: [entry for _, entry in impl.decode_epochs(data)], file)

    def partition_metadata_write_read(self, topic_id: str) -> spec.PartitionMetadata:
        data = impl.encode_metadata(topic_id)
        return spec.PartitionMetadata(data.decode(), impl.decode_metadata(data))

    def partition_metadata_read(self, file: str) -> str | Refused:
        return self._read(spec.UNREADABLE_METADATA, impl.decode_metadata, file)

    def clean_shutdown_read(self, file: str) -> int | None:
        return impl.decode_marker(file.encode())

    # the logs

    def create_log(self, partition: impl.TopicPartition) -> str:
        self.subject.logs[partition] = impl.CheckpointedLog()
        return str(partition)

    def append(self, partition: impl.TopicPartition, count: int) -> None:
        self.subject.logs[partition].end += count

    def flush(self, partition: impl.TopicPartition) -> None:
        self.subject.logs[partition].flush()

    def advance_high_watermark(self, partition: impl.TopicPartition, offset: int) -> None:
        log = self.subject.logs[partition]
        log.high_watermark = max(log.high_watermark, min(offset, log.end))

    def raise_start(self, partition: impl.TopicPartition, offset: int, delete_segments: bool) -> None:
        self.subject.logs[partition].raise_start(offset, delete_segments)

    # stop and start

    def shutdown(self, broker_epoch: int) -> None:
        self.subject.shut_down(broker_epoch)
        self.disk.flush_directory("dir")
        self.kill()

    def kill(self) -> None:
        """The broker's memory is gone: of the logs the disk remembers what it holds, of the files what was flushed."""
        self.running = False
        self.disk = self.disk.lose()
        before = self.subject
        self.subject = self.checkpoints_class("dir", self.disk, {p: replace(log) for p, log in before.logs.items()})
        self.subject.had_clean_shutdown, self.subject.loaded = before.had_clean_shutdown, False
        self.disk.flush_directory("dir")

    def damage(self, name: str, file: str) -> None:
        impl.replace_file(self.disk, f"dir/{name}", file.encode())

    def start(self, crash_while_loading: bool) -> spec.LastStop:
        self.subject.begin_loading()
        self.disk.flush_directory("dir")
        self.running = crash_while_loading or self.subject.load()
        return spec.LastStop(self.subject.had_clean_shutdown, halted=not self.running)

    # the state

    def _marker(self) -> int | None:
        return (
            impl.decode_marker(self.disk.read(self.subject.marker)) if self.disk.exists(self.subject.marker) else None
        )

    def state(self) -> spec.Directory:
        """The files as the spec reads their texts."""
        read = {name: _content(self.disk.read(file.path)) for name, file in self.subject.files.items()}
        return self._state(read)

    def _state(self, files: Mapping[str, spec.Content]) -> spec.Directory:
        broker = self.subject
        return spec.Directory(
            logs=Frozen({str(p): spec.LogView(**vars(log)) for p, log in broker.logs.items()}),
            files=Frozen(files),
            marker=self._marker(),
            running=self.running,
            was_clean=broker.had_clean_shutdown,
            loaded=broker.loaded,
        )

    def observe(self) -> Json:
        """The files as the implementation reads them."""
        seen = spec.observe(self._state({}))
        return to_json(replace(seen, files={name: self._seen(file) for name, file in self.subject.files.items()}))

    def _seen(self, file: impl.CheckpointFile) -> Mapping[str, int] | Literal["unreadable"]:
        data = self.disk.read(file.path)
        try:
            return self.seen[data]
        except KeyError:
            seen = self.seen[data] = self._read_again(file)
            return seen

    def _read_again(self, file: impl.CheckpointFile) -> Mapping[str, int] | Literal["unreadable"]:
        try:
            return {str(p): offset for p, offset in file.read().items()}
        except StorageError:
            return "unreadable"


def _content(data: bytes) -> spec.Content:
    entries = checkpoint_entries(data.decode())
    return entries if isinstance(entries, Unreadable) else Frozen(entries)
