"""The offset checkpoint file: Kafka's text format, replaced so that a crash at any moment leaves it whole.

The file is written beside its place, flushed, renamed over it, and the rename is flushed: four steps, of which a crash
may undo what was not flushed. The disk comes in as an argument: the real one, or a simulated one that forgets what a
real one may forget.

Source: OffsetCheckpointFile, CheckpointFile and Utils.atomicMoveWithFallback, Kafka 4.3.0.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

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


class StorageError(Exception):
    """A file of a directory cannot be read or written: the directory is to be taken out of service (CLN-31)."""

    def __init__(self, directory: str, message: str) -> None:
        super().__init__(message)
        self.directory = directory


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


# ---- the disk --------------------------------------------------------------------------------------------------------
class Disk(Protocol):
    """What a checkpoint needs of a disk. Every method may raise OSError."""

    def exists(self, path: str) -> bool: ...
    def read(self, path: str) -> bytes: ...

    def write(self, path: str, data: bytes) -> None:
        """Create the file or empty it, and write; not flushed."""

    def flush(self, path: str) -> None:
        """Have the file's content outlive a crash."""

    def rename(self, source: str, target: str) -> None:
        """Replace `target`, in one step; not flushed."""

    def flush_directory(self, path: str) -> None:
        """Have the directory's names outlive a crash."""


class RealDisk:
    """The machine's own."""

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        Path(path).write_bytes(data)

    def flush(self, path: str) -> None:
        self._flush(path, os.O_RDWR)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def flush_directory(self, path: str) -> None:
        if os.name != "nt":  # Windows flushes no directories
            self._flush(path, os.O_RDONLY)

    @staticmethod
    def _flush(path: str, how: int) -> None:
        descriptor = os.open(path, how)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class Crashed(Exception):
    """The simulated machine stopped before this step."""


@dataclass
class _File:
    content: bytes = b""
    durable: bytes = b""


@dataclass
class SimulatedDisk:
    """A disk in memory that can crash. Content that was not flushed may be lost or torn, names that were not flushed
    may be the old ones or the new ones; what was flushed stays."""

    names: dict[str, _File] = field(default_factory=dict)
    durable_names: dict[str, _File] = field(default_factory=dict)
    steps: int = 0
    """how many writing steps were made"""
    crash_at: int | None = None
    """stop before the step of this number"""
    broken: set[str] = field(default_factory=set)
    """directories on which everything fails"""

    def _step(self, path: str) -> None:
        if self.crash_at is not None and self.steps >= self.crash_at:
            raise Crashed
        self.steps += 1
        self._check(path)

    def _check(self, path: str) -> None:
        if path.rpartition("/")[0] in self.broken or path in self.broken:
            raise OSError(5, "simulated disk error", path)

    def exists(self, path: str) -> bool:
        self._check(path)
        return path in self.names

    def read(self, path: str) -> bytes:
        self._check(path)
        if path not in self.names:
            raise FileNotFoundError(2, "no such file", path)
        return self.names[path].content

    def write(self, path: str, data: bytes) -> None:
        self._step(path)
        self.names.setdefault(path, _File()).content = data

    def flush(self, path: str) -> None:
        self._step(path)
        self.names[path].durable = self.names[path].content

    def rename(self, source: str, target: str) -> None:
        self._step(target)
        self.names[target] = self.names.pop(source)

    def flush_directory(self, path: str) -> None:
        self._step(path)
        inside = path + "/"
        for name in [n for n in self.durable_names if n.startswith(inside) and n not in self.names]:
            del self.durable_names[name]
        self.durable_names |= {n: f for n, f in self.names.items() if n.startswith(inside)}

    def crash(self, keep_names: Callable[[str], bool], keep_content: Callable[[_File], bytes]) -> SimulatedDisk:
        """The disk as the next boot finds it: of each name that was not flushed `keep_names` says whether it is as last
        seen (or as last flushed), of each file that was not flushed `keep_content` says what is in it."""
        names: dict[str, _File] = {}
        for name in {*self.names, *self.durable_names}:
            before, now = self.durable_names.get(name), self.names.get(name)
            file = now if before is now or keep_names(name) else before
            if file is not None:
                content = file.content if file.content == file.durable else keep_content(file)
                names[name] = _File(content, content)
        return SimulatedDisk(names, dict(names), broken=set(self.broken))

    def outcomes(self) -> list[SimulatedDisk]:
        """Every disk that a crash now may leave, with a torn file cut in the middle of what was written."""
        unsure = [n for n in {*self.names, *self.durable_names} if self.names.get(n) is not self.durable_names.get(n)]
        contents: list[Callable[[_File], bytes]] = [
            lambda f: f.durable,
            lambda f: f.content,
            lambda f: b"",
            lambda f: f.content[: len(f.content) // 2],
            lambda f: f.content[:-1],
        ]
        return [
            self.crash(lambda n, kept=kept: bool(kept >> unsure.index(n) & 1), content)  # type: ignore[misc]
            for kept in range(1 << len(unsure))
            for content in contents
        ]

    def lose(self) -> SimulatedDisk:
        """The disk after a crash that keeps only what was flushed."""
        return self.crash(lambda name: False, lambda file: file.durable)


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
