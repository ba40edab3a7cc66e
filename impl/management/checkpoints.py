"""The offset checkpoint file: Kafka's text format, replaced so that a crash at any moment leaves it whole.

The file is written beside its place, flushed, renamed over it, and the rename is flushed: four steps, of which a crash
may undo what was not flushed. The disk comes in as an argument: the real one, or a simulated one that forgets what a
real one may forget.

Source: OffsetCheckpointFile, CheckpointFile and Utils.atomicMoveWithFallback, Kafka 4.3.0.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kafkaspec.impl.disk import Disk, StorageError

VERSION = 0
INT_BITS, LONG_BITS = 32, 64


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def topic_partition(name: str) -> TopicPartition:
    """`topic-3`: the partition is what follows the last hyphen."""
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


class CheckpointUnreadable(Exception):
    """The text is no checkpoint, or one of another version (CLN-31)."""


# ---- the text --------------------------------------------------------------------------------------------------------
def encode(offsets: Mapping[TopicPartition, int]) -> bytes:
    """The file's bytes, entries in the order given (CLN-30)."""
    lines = [str(VERSION), str(len(offsets))]
    lines += [f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items()]
    return ("\n".join(lines) + "\n").encode()


_INTEGER = re.compile(r"[+-]?\d+")
_LINE_END = re.compile(r"\r\n|\n|\r")
_BLANKS = re.compile(r"\s+", re.ASCII)


def _integer(text: str, bits: int, line: str) -> int:
    value = int(text) if _INTEGER.fullmatch(text) else None
    if value is None or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise CheckpointUnreadable(f"malformed line: {line!r}")
    return value


def decode(data: bytes) -> dict[TopicPartition, int]:
    """The entries of a file's bytes. Raises CheckpointUnreadable (CLN-31)."""
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        raise CheckpointUnreadable(f"not UTF-8 at byte {e.start}") from None
    lines = _LINE_END.split(text)
    if not lines[-1]:
        del lines[-1]
    if not lines:
        return {}
    version = _integer(lines[0], INT_BITS, lines[0])
    if version != VERSION:
        raise CheckpointUnreadable(f"version {version}, expected {VERSION}")
    if len(lines) < 2:
        return {}
    announced = _integer(lines[1], INT_BITS, lines[1])
    offsets: dict[TopicPartition, int] = {}
    for line in lines[2:]:
        fields = _BLANKS.split(line.rstrip(" \t\n\v\f\r"))
        if len(fields) != 3:
            raise CheckpointUnreadable(f"malformed line: {line!r}")
        topic, partition, offset = fields
        offsets[TopicPartition(topic, _integer(partition, INT_BITS, line))] = _integer(offset, LONG_BITS, line)
    if len(lines) - 2 != announced:
        raise CheckpointUnreadable(f"{len(lines) - 2} entries, {announced} announced")
    return offsets


# ---- the file --------------------------------------------------------------------------------------------------------
class CheckpointFile:
    """One directory's checkpoint of one kind."""

    def __init__(self, directory: str, name: str, disk: Disk) -> None:
        """Creates the file, empty, if it is not there. Raises StorageError."""
        self.directory = directory
        self.path = f"{directory}/{name}"
        self.disk = disk
        with self._storage_errors("creating"):
            if not disk.exists(self.path):
                disk.write(self.path, b"")

    def read(self) -> dict[TopicPartition, int]:
        """The entries. Raises StorageError for what cannot be read, or is no checkpoint."""
        with self._storage_errors("reading"):
            return decode(self.disk.read(self.path))

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the file. Once this returns, a crash does not undo it (CLN-32). Raises StorageError."""
        with self._storage_errors("writing"):
            beside = self.path + ".tmp"
            self.disk.write(beside, encode(offsets))
            self.disk.flush(beside)
            self.disk.rename(beside, self.path)
            self.disk.flush_directory(self.directory)

    @contextlib.contextmanager
    def _storage_errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (OSError, CheckpointUnreadable) as e:
            raise StorageError(self.directory, f"error while {doing} {self.path}: {e}") from e
