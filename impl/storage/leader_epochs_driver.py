"""The leader epochs' cache and its file, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafkaspec.contract.machine import ByName, Json
from kafkaspec.impl.common.disk import Disk, SimulatedDisk, StorageError
from kafkaspec.impl.storage import leader_epochs as impl
from kafkaspec.impl.storage.leader_epochs import FILE_NAME
from kafkaspec.spec.storage import leader_epochs as spec


class Driver(ByName):
    """The cache over a simulated disk. What is not durable is gone when the process stops."""

    machine = spec.machine
    refusals = {impl.InvalidEntry: spec.NEGATIVE, StorageError: spec.UNREADABLE}
    cache_class = impl.LeaderEpochCache
    checkpoint_class = impl.LeaderEpochCheckpoint
    directory = "logs/topic-0"

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.deferred: bool = arguments.get("deferred", False)
        self._open(SimulatedDisk())

    def _open(self, disk: SimulatedDisk) -> None:
        subject = self.cache_class(self.checkpoint_class(self.directory, disk), self.schedule)
        self.disk, self.subject = disk, subject
        self.waiting: list[Callable[[], None]] = []

    def schedule(self, task: Callable[[], None]) -> None:
        if self.deferred:
            self.waiting.append(task)
        else:
            task()

    def run_scheduled(self) -> None:
        tasks, self.waiting = self.waiting, []
        for task in tasks:
            task()

    def reopen(self) -> None:
        self.disk, self.waiting = self.disk.lose(), []
        self._open(self.disk)

    def load(self, log_start: int, log_end: int) -> None:
        self.reopen()
        self.subject.fit(log_start, log_end)

    def open_text(self, file: str) -> None:
        self._open(self._disk_with(file))

    def _disk_with(self, file: str) -> SimulatedDisk:
        disk, path = SimulatedDisk(), f"{self.directory}/{FILE_NAME}"
        disk.write(path, file.encode())
        disk.flush(path)
        disk.flush_directory(self.directory)
        return disk

    def neighbours(self, epoch: int) -> spec.Neighbours:
        return spec.Neighbours(self.subject.previous_epoch(epoch), self.subject.next_epoch(epoch))

    def checkpoint_write(self, entries: spec.Entries) -> str:
        return impl.encode(impl.EpochEntry(*e) for e in entries).decode()

    def checkpoint_read(self, file: str) -> list[impl.EpochEntry]:
        return self.checkpoint_class(self.directory, self._disk_with(file)).read()

    def state(self) -> spec.Cache:
        """The file is as a crash would leave it."""
        return self._state(self.disk.lose())

    def observe(self) -> Json:
        """The file is as a reader finds it now."""
        return self.machine.observe(self._state(self.disk))

    def _state(self, disk: Disk) -> spec.Cache:
        entries = tuple(spec.Entry(*e) for e in self.subject.entries)
        file = disk.read(self.subject.checkpoint.path).decode()
        return spec.Cache(entries, file, bool(self.waiting), self.deferred)
