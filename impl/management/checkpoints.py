"""The small files of a log directory in Kafka's bytes, replaced so that a crash at any moment leaves them whole.

A file is written beside its place, flushed, renamed over it, and the rename is flushed: four steps, of which a crash
may undo what was not flushed. `Checkpoints` is what the broker's log manager does with them.

Source: CheckpointFile, OffsetCheckpointFile, PartitionMetadataFile, CleanShutdownFileHandler, LogManager and
Utils.atomicMoveWithFallback, Kafka 4.3.0.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

from kafkaspec.contract.machine import ByName, Json, Refused
from kafkaspec.impl.common.disk import Disk, StorageError
from kafkaspec.impl.common.ids import ID_BYTES, id_bytes, id_text

VERSION = 0
INT_BITS, LONG_BITS = 32, 64
MARKER = ".kafka_cleanshutdown"
PARTITION_METADATA = "partition.metadata"
TEMPORARY = ".tmp"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_POINTS = "cleaner-offset-checkpoint"
CHECKPOINTS = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS)
"""Those that a log manager keeps; the cleaner keeps its own."""

T = TypeVar("T")


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
    """The text is no checkpoint, or one of another version (CKP-3). `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


# ---- the text --------------------------------------------------------------------------------------------------------
_INTEGER = re.compile(r"[+-]?(?:(?![\U00010000-\U0010ffff])\d)+")  # those that take two of Java's chars are no digits
_LINE_END = re.compile(r"\r\n|\n|\r")
_BLANKS = re.compile(r"\s+", re.ASCII)


def encode_entries(entries: Sequence[str]) -> bytes:
    """A checkpoint file's bytes. [CKP-1]"""
    return ("\n".join([str(VERSION), str(len(entries)), *entries]) + "\n").encode()


def parse_integer(text: str, bits: int) -> int | None:
    """A number as Java reads it, of any number of digits, which `int` does not; None if it is none or does not fit."""
    if not _INTEGER.fullmatch(text):
        return None
    value, sign = 0, -1 if text[0] == "-" else 1
    for digit in text.lstrip("+-"):
        value = 10 * value + sign * int(digit)
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            return None
    return value


def integer(text: str, bits: int, at: int, line: str) -> int:
    """The same. Raises CheckpointUnreadable."""
    value = parse_integer(text, bits)
    if value is None:
        raise CheckpointUnreadable(at, f"malformed line: {line!r}")
    return value


def lines(data: bytes) -> list[str]:
    """The lines of a text file. Raises CheckpointUnreadable if it is not UTF-8. [CKP-1, CKP-2]"""
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        raise CheckpointUnreadable(data.count(b"\n", 0, e.start) + 1, f"not UTF-8 at byte {e.start}") from None
    found = _LINE_END.split(text)
    return found if found[-1] else found[:-1]


def entries(data: bytes, parse: Callable[[list[str], int, str], T], fields: int) -> list[tuple[int, T]]:
    """The entries of a checkpoint file, each with its line: `parse` is given an entry's fields, its line's number and
    the line. Raises CheckpointUnreadable. [CKP-2, CKP-3]"""
    found = lines(data)
    if not found:
        return []
    version = integer(found[0], INT_BITS, 1, found[0])
    if version != VERSION:
        raise CheckpointUnreadable(1, f"version {version}, expected {VERSION}")
    if len(found) < 2:
        return []
    announced = integer(found[1], INT_BITS, 2, found[1])
    out = []
    for at, line in enumerate(found[2:], 3):
        words = _BLANKS.split(line.rstrip(" \t\n\v\f\r"))
        if len(words) != fields:
            raise CheckpointUnreadable(at, f"malformed line: {line!r}")
        out.append((at, parse(words, at, line)))
    if len(out) != announced:
        raise CheckpointUnreadable(2, f"{len(out)} entries, {announced} announced")
    return out


def encode(offsets: Mapping[TopicPartition, int]) -> bytes:
    """An offset checkpoint's bytes, entries in the order given. [CKP-5]"""
    return encode_entries([f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items()])


def decode_lines(data: bytes) -> list[tuple[int, tuple[TopicPartition, int]]]:
    """The entries of an offset checkpoint, each with its line. Raises CheckpointUnreadable (CKP-3)."""

    def parse(words: list[str], at: int, line: str) -> tuple[TopicPartition, int]:
        topic, partition, offset = words
        return TopicPartition(topic, integer(partition, INT_BITS, at, line)), integer(offset, LONG_BITS, at, line)

    return entries(data, parse, fields=3)


def decode(data: bytes) -> dict[TopicPartition, int]:
    """The same, the last where a partition stands twice. [CKP-5]"""
    return dict(entry for _, entry in decode_lines(data))


def decode_epochs(data: bytes) -> list[tuple[int, tuple[int, int]]]:
    """The entries (epoch, start offset) of a leader-epoch-checkpoint, each with its line. Raises
    CheckpointUnreadable."""

    def parse(words: list[str], at: int, line: str) -> tuple[int, int]:
        return integer(words[0], INT_BITS, at, line), integer(words[1], LONG_BITS, at, line)

    return entries(data, parse, fields=2)


_COLON = re.compile(r":\s+", re.ASCII)
ZERO_ID = bytes(ID_BYTES)


def encode_metadata(topic_id: str) -> bytes:
    """partition.metadata. [CKP-7]"""
    return f"version: {VERSION}\ntopic_id: {topic_id}".encode()


def decode_metadata(data: bytes) -> str:
    """The topic's id, 22 characters. Raises CheckpointUnreadable. [CKP-7]"""
    found = lines(data)

    def value(at: int) -> str:
        line = found[at - 1] if len(found) >= at else ""
        words = _COLON.split(line)
        while len(words) > 1 and not words[-1]:
            del words[-1]
        if len(words) != 2:
            raise CheckpointUnreadable(at, f"malformed line: {line!r}" if line else "the line is missing")
        return words[1]

    if integer(value(1), INT_BITS, 1, found[0] if found else "") < VERSION:
        raise CheckpointUnreadable(1, f"version {value(1)}, expected {VERSION} or more")
    text = value(2)
    id = id_bytes(text)
    if id is None or id == ZERO_ID:
        raise CheckpointUnreadable(2, f"no topic id: {text!r}")
    return id_text(id)


_MARKER = json.JSONDecoder(parse_constant=int)


def encode_marker(broker_epoch: int) -> bytes:
    """The clean-shutdown marker. [CKP-8]"""
    return f'{{"version":{VERSION},"brokerEpoch":{broker_epoch}}}'.encode()


def decode_marker(data: bytes) -> int | None:
    """The broker epoch; None if the marker tells none. No constant of Python's, such as NaN, is JSON. [CKP-8]"""
    with contextlib.suppress(ValueError, OverflowError):
        match _MARKER.raw_decode(data.decode().lstrip(" \t\r\n")):
            case ({"brokerEpoch": epoch, **other}, _):
                _coerced(other.get("version", 0), INT_BITS)
                return _coerced(epoch, LONG_BITS)
    return None


def _coerced(value: Any, bits: int) -> int:
    """As Kafka's JSON reader makes a whole number of a value. Raises ValueError."""
    if value is None or isinstance(value, bool | list | dict):
        raise ValueError(value)
    number = int(value)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(value)
    return number


# ---- the file --------------------------------------------------------------------------------------------------------
def replace_file(disk: Disk, path: str, data: bytes) -> None:
    """Atomically: once this returns, a crash does not undo it; before that it leaves the old file or the new one.
    Raises OSError. [CKP-6]"""
    beside = path + TEMPORARY
    disk.write(beside, data)
    disk.flush(beside)
    disk.rename(beside, path)
    disk.flush_directory(path.rpartition("/")[0])


@contextlib.contextmanager
def storage_errors(directory: str, doing: str, path: str) -> Iterator[None]:
    """What cannot be read or written is a StorageError of the directory. [CKP-4]"""
    try:
        yield
    except OSError as e:
        raise StorageError(directory, f"error while {doing} {path}: {e}") from e
    except CheckpointUnreadable as e:
        raise StorageError(directory, f"error while {doing} {path}: line {e.line}: {e}") from e


class CheckpointFile:
    """One directory's offset checkpoint of one kind."""

    def __init__(self, directory: str, name: str, disk: Disk) -> None:
        """Creates the file, empty, if it is not there. Raises StorageError."""
        self.directory = directory
        self.path = f"{directory}/{name}"
        self.disk = disk
        with storage_errors(directory, "creating", self.path):
            if not disk.exists(self.path):
                disk.write(self.path, b"")

    def read(self) -> dict[TopicPartition, int]:
        """The entries. Raises StorageError for what cannot be read, or is no checkpoint."""
        with storage_errors(self.directory, "reading", self.path):
            return decode(self.disk.read(self.path))

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the file. Raises StorageError."""
        with storage_errors(self.directory, "writing", self.path):
            replace_file(self.disk, self.path, encode(offsets))


# ---- what the log manager does with them -----------------------------------------------------------------------------
@dataclass
class CheckpointedLog:
    """A log as the checkpoints see it."""

    first_base: int = 0
    start: int = 0
    high_watermark: int = 0
    flushed: int = 0
    recovery_point: int = 0
    end: int = 0

    def flush(self) -> None:
        """Write the log to the disk up to its end, and move the recovery point there. [CKP-11]"""
        self.flushed = self.recovery_point = self.end

    def truncate(self, offset: int) -> bool:
        """Whether there was something to cut."""
        if offset >= self.end:
            return False
        self.end = offset
        self.first_base = min(self.first_base, self.end)
        self.start = min(self.start, self.end)
        self.flushed = min(self.flushed, self.end)
        self.recovery_point = min(self.recovery_point, self.end)
        self.high_watermark = min(self.high_watermark, self.end)
        return True

    def raise_start(self, offset: int, delete_segments: bool) -> None:
        """Give up the records below the offset, and their segments too."""
        self.start = max(self.start, min(offset, self.high_watermark))
        self.recovery_point = max(self.recovery_point, self.start)
        self.flushed = max(self.flushed, self.start)
        if delete_segments:
            self.first_base = self.start

    def load(self, clean: bool, point: int, start: int, mark: int) -> None:
        """As the loader does it, with what three checkpoints say. [CKP-13, CKP-15]"""
        if self.end < start:
            self.first_base = self.end = self.flushed = start
        self.start = max(start, self.first_base)
        self.recovery_point = self.end if clean else max(self.start, min(point, self.end))
        self.flushed = max(self.flushed, self.recovery_point)
        self.high_watermark = max(self.start, min(mark, self.end))


@dataclass
class Checkpoints:
    """The files of one log directory, and the broker that keeps them. Raises StorageError for a disk that fails."""

    directory: str
    disk: Disk
    logs: dict[TopicPartition, CheckpointedLog] = field(default_factory=dict)
    files: dict[str, CheckpointFile] = field(init=False)
    had_clean_shutdown: bool = False
    loaded: bool = True

    def __post_init__(self) -> None:
        self.files = {name: CheckpointFile(self.directory, name, self.disk) for name in CHECKPOINTS}

    @property
    def marker(self) -> str:
        return f"{self.directory}/{MARKER}"

    def checkpoint_recovery_points(self) -> None:
        """Write the recovery point of every known log. [CKP-11]"""
        self.files[RECOVERY_POINTS].write({p: log.recovery_point for p, log in self.known()})

    def checkpoint_log_starts(self) -> None:
        """Only of the logs that begin within a segment: the others' start is seen by the file names. [CKP-12]"""
        starts = {p: log.start for p, log in self.known() if log.start > log.first_base}
        self.files[LOG_STARTS].write(starts)

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermark of every known log. [CKP-13]"""
        self.files[HIGH_WATERMARKS].write({p: log.high_watermark for p, log in self.known()})

    def known(self) -> list[tuple[TopicPartition, CheckpointedLog]]:
        """The logs that were loaded. [CKP-16]"""
        return list(self.logs.items()) if self.loaded else []

    def truncate(self, partition: TopicPartition, offset: int) -> None:
        if self.logs[partition].truncate(offset):
            self.checkpoint_recovery_points()

    def delete_log(self, partition: TopicPartition) -> None:
        """Forget a log, and write the recovery points and log start offsets of the others. [CKP-16]"""
        del self.logs[partition]
        self.checkpoint_recovery_points()
        self.checkpoint_log_starts()

    def shut_down(self, broker_epoch: int) -> None:
        """Flush everything, checkpoint, and mark the directory last of all. [CKP-9, CKP-11]"""
        for _, log in self.known():
            log.flush()
        if self.loaded:
            self.checkpoint_high_watermarks()
        self.checkpoint_recovery_points()
        self.checkpoint_log_starts()
        if self.had_clean_shutdown or self.loaded:
            self.disk.write(self.marker, encode_marker(broker_epoch))
            self.disk.flush(self.marker)

    def begin_loading(self) -> None:
        """Take the marker away and remember it (KAFKA-10471). [CKP-8, CKP-10]"""
        self.loaded = False
        self.had_clean_shutdown = self.disk.exists(self.marker)
        if self.had_clean_shutdown:
            self.disk.remove(self.marker)

    def load(self) -> bool:
        """Load every log with what the checkpoints say; False if one cannot be read: then the directory has failed.
        [CKP-4, CKP-15]"""
        found: list[dict[TopicPartition, int]] = []
        failed = False
        for name in CHECKPOINTS:
            try:
                found.append(self.files[name].read())
            except StorageError:
                failed = failed or bool(self.logs) or name != HIGH_WATERMARKS
                found.append({})
        points, starts, marks = found
        for p, log in self.logs.items():
            log.load(self.had_clean_shutdown, points.get(p, 0), starts.get(p, 0), marks.get(p, 0))
        self.loaded = not failed
        return self.loaded


# ---- what drivers share whose operations name partitions -------------------------------------------------------------
class ByPartition(ByName):
    """A driver by name that knows partitions as `TopicPartition`s; in traces they are names."""

    partitions: ClassVar[frozenset[str]] = frozenset({"partition"})
    """the parameters of the spec that are partitions"""

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        known = self.partitions
        given = {n: topic_partition(v) if n in known and v is not None else v for n, v in arguments.items()}
        return super().apply(name, given)
