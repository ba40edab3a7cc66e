"""A partition's leader epochs as the broker keeps them: two sorted columns in memory, and a small text file.

An assignment replaces the file before it returns. A truncation only schedules that: the thread that calls it must not
wait for a disk. The disk and the scheduler come in as arguments.

Source: LeaderEpochFileCache, LeaderEpochCheckpointFile, CheckpointFile and LogLoader, Kafka 4.3.0.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.management.checkpoints import decode_epochs, encode_entries, replace_file, storage_errors

FILE_NAME = "leader-epoch-checkpoint"
UNDEFINED = -1


class EpochEntry(NamedTuple):
    """An epoch and the offset of its first record."""

    epoch: int
    start_offset: int


@dataclass(frozen=True)
class EpochEnd:
    """An epoch, and the offset at which it ended; both -1 where that is unknown."""

    epoch: int
    end_offset: int


class InvalidEntry(ValueError):
    """A negative epoch or offset."""


# ---- the file --------------------------------------------------------------------------------------------------------
def encode(entries: Iterable[EpochEntry]) -> bytes:
    """The file's bytes. [LEC-16]"""
    return encode_entries([f"{e.epoch} {e.start_offset}" for e in entries])


def decode(data: bytes) -> list[EpochEntry]:
    """The entries of a file's bytes, in the order of its lines. Raises CheckpointUnreadable. [LEC-17]"""
    return [EpochEntry(*entry) for _, entry in decode_epochs(data)]


class LeaderEpochCheckpoint:
    """The file in a partition's directory."""

    def __init__(self, directory: str, disk: Disk) -> None:
        """Creates the file, empty, if it is not there. Raises StorageError."""
        self.directory, self.disk = directory, disk
        self.path = f"{directory}/{FILE_NAME}"
        with storage_errors(self.directory, "creating", self.path):
            if not disk.exists(self.path):
                disk.write(self.path, b"")
                disk.flush_directory(directory)

    def read(self) -> list[EpochEntry]:
        """The entries. Raises StorageError for what cannot be read. [LEC-17]"""
        with storage_errors(self.directory, "reading", self.path):
            return decode(self.disk.read(self.path))

    def write(self, entries: Iterable[EpochEntry]) -> None:
        """Replace the file; once this returns a crash does not undo it. Raises StorageError. [LEC-18]"""
        with storage_errors(self.directory, "writing", self.path):
            replace_file(self.disk, self.path, encode(entries))


# ---- the cache -------------------------------------------------------------------------------------------------------
class LeaderEpochCache:
    """The entries: two columns, both strictly rising. `schedule` is given what is to be done soon."""

    def __init__(self, checkpoint: LeaderEpochCheckpoint, schedule: Callable[[Callable[[], None]], None]) -> None:
        """Reads the file; raises StorageError if it cannot, InvalidEntry for a negative number in it. [LEC-9]"""
        self.checkpoint = checkpoint
        self.schedule = schedule
        self.epochs: list[int] = []
        self.starts: list[int] = []
        for e in checkpoint.read():
            self._assign(e.epoch, e.start_offset)

    @property
    def entries(self) -> list[EpochEntry]:
        return [EpochEntry(*e) for e in zip(self.epochs, self.starts, strict=True)]

    def _assign(self, epoch: int, start_offset: int) -> bool:
        """Whether that changed anything. Raises InvalidEntry. [LEC-1, LEC-2, LEC-3]"""
        if epoch < 0 or start_offset < 0:
            raise InvalidEntry(f"epoch {epoch} at offset {start_offset}")
        if self.epochs and self.epochs[-1] == epoch and self.starts[-1] <= start_offset:
            return False
        keep = min(bisect_left(self.epochs, epoch), bisect_left(self.starts, start_offset))
        self.epochs[keep:], self.starts[keep:] = [epoch], [start_offset]
        return True

    def assign(self, epoch: int, start_offset: int) -> None:
        """The file has the entry when this returns. Raises InvalidEntry, StorageError. [LEC-4]"""
        if self._assign(epoch, start_offset):
            self.flush()

    def flush(self) -> None:
        """The entries of this moment into the file. [LEC-7]"""
        self.checkpoint.write(self.entries)

    @staticmethod
    def cut_from_end(epochs: list[int], starts: list[int], end_offset: int) -> bool:
        """Whether any entry was dropped. [LEC-5]"""
        keep = len(starts) if end_offset < 0 else bisect_left(starts, end_offset)
        dropped = keep < len(starts)
        del epochs[keep:], starts[keep:]
        return dropped

    @staticmethod
    def cut_from_start(epochs: list[int], starts: list[int], start_offset: int) -> bool:
        """Whether any entry began at or before the offset. [LEC-6]"""
        begun = bisect_right(starts, start_offset)
        if begun:
            starts[begun - 1] = start_offset
            del epochs[: begun - 1], starts[: begun - 1]
        return begun > 0

    def truncate_from_end(self, end_offset: int) -> None:
        """The log was cut there; the file follows when the scheduler gets to it. [LEC-7]"""
        if self.cut_from_end(self.epochs, self.starts, end_offset):
            self.schedule(self.flush)

    def fit(self, log_start: int, log_end: int) -> None:
        """Keep what lies in a log that was loaded with these ends. Raises StorageError. [LEC-9]"""
        self.truncate_from_end(log_end)
        self.truncate_from_start(log_start)

    def truncate_from_start(self, start_offset: int) -> None:
        """The log begins there; the file follows when the scheduler gets to it. [LEC-7]"""
        if self.cut_from_start(self.epochs, self.starts, start_offset):
            self.schedule(self.flush)

    def clear_and_flush(self) -> None:
        """No entry is left, here and in the file. Raises StorageError. [LEC-8]"""
        self.epochs, self.starts = [], []
        self.flush()

    def entries_in_range(self, start_offset: int, end_offset: int) -> list[EpochEntry]:
        """What truncations to the range would leave; the entries stay. [LEC-15]"""
        epochs, starts = list(self.epochs), list(self.starts)
        if start_offset >= 0:
            self.cut_from_start(epochs, starts, start_offset)
        self.cut_from_end(epochs, starts, end_offset)
        return [EpochEntry(*e) for e in zip(epochs, starts, strict=True)]

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> EpochEnd:
        """Where the epoch ended. [LEC-10, LEC-11, LEC-12]"""
        if requested_epoch == UNDEFINED or not self.epochs:
            return EpochEnd(UNDEFINED, UNDEFINED)
        if requested_epoch == self.epochs[-1]:
            return EpochEnd(requested_epoch, log_end_offset)
        above = bisect_right(self.epochs, requested_epoch)
        if above == len(self.epochs):
            return EpochEnd(UNDEFINED, UNDEFINED)
        return EpochEnd(self.epochs[above - 1] if above else requested_epoch, self.starts[above])

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch of an offset; None before the first entry. [LEC-13]"""
        begun = bisect_right(self.starts, offset)
        return self.epochs[begun - 1] if begun else None

    def previous_epoch(self, epoch: int) -> int | None:
        """The nearest lower epoch that has an entry. [LEC-14]"""
        lower = bisect_left(self.epochs, epoch)
        return self.epochs[lower - 1] if lower else None

    def next_epoch(self, epoch: int) -> int | None:
        """The nearest higher epoch that has an entry. [LEC-14]"""
        higher = bisect_right(self.epochs, epoch)
        return self.epochs[higher] if higher < len(self.epochs) else None
