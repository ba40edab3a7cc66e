"""What a subsystem brings to the audit: checks, and what they are given.

`<name>_audit.py` beside the impl defines `AUDIT`, a tuple of classes derived from LogCheck, DirectoryCheck or
ClusterCheck. A LogCheck is made anew for each partition; it sees each segment in order, its batches a chunk at a time.
A check never opens the .log files; index, snapshot and text files it reads itself (`read_small`).

A damaged batch (`problem` not 0) is no evidence: a check uses nothing of such a row but position and size, and draws no
conclusion across it (a gap, a sequence, an epoch beside it may be its doing). One damage is one finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkaspec.audit.files import File, LogDirectory, PartitionFiles, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.errors import UserError

BATCH = np.dtype(
    [
        ("position", "<i8"),  # of the batch's first byte in the file
        ("size", "<i8"),  # bytes, the 12 before the length's count included
        # ---- the header, as it stands
        ("base_offset", "<i8"),
        ("last_offset", "<i8"),  # base offset + last offset delta
        ("leader_epoch", "<i8"),
        ("magic", "<i8"),
        ("crc", "<i8"),  # unsigned
        ("attributes", "<i8"),
        ("base_timestamp", "<i8"),
        ("max_timestamp", "<i8"),
        ("producer_id", "<i8"),
        ("producer_epoch", "<i8"),
        ("base_sequence", "<i8"),
        ("count", "<i8"),
        # ---- what decoding found
        ("problem", "<i8"),  # 0: nothing; else see impl.storage.scan
        ("problem_at", "<i8"),  # byte of the file; inside a compressed batch: its first byte of records
        # ---- the records (of an empty batch, or one not decoded: -1)
        ("first_record", "<i8"),  # offset
        ("last_record", "<i8"),
        ("largest_timestamp", "<i8"),  # of the records, CreateTime; -1 without any
        ("tombstones", "<i8"),
        ("control_type", "<i8"),  # 0 abort, 1 commit, 2.. KRaft's; -1: no control record
        ("coordinator_epoch", "<i8"),  # of an abort or a commit, else -1
    ]
)
"""One row a batch. All numbers are 64 bits wide so that compiled code can fill them as a matrix."""

RECORD = np.dtype(
    [
        ("offset", "<i8"),
        ("timestamp", "<i8"),
        ("batch", "<i8"),  # row in the chunk's batches
        ("key_hash", "<u8", (2,)),  # 128 bits of the key; both 0 without a key
        ("hash", "<u8"),  # of key, value and headers
        ("flags", "<i8"),  # 1 has a key, 2 has a value (no tombstone), 4 control record
    ]
)
"""One row a record; filled for partitions where a check `needs_records`."""

NO_TIMESTAMP = -1


@dataclass(frozen=True)
class Chunk:
    """Consecutive batches of one segment. Rows stand in the order of the file. Batches of formats 0 and 1 have a row
    too, with `magic` below 2 and -1 in what they lack."""

    batches: NDArray[Any]
    """of dtype BATCH"""
    records: NDArray[Any] | None = None
    """of dtype RECORD, or None if nobody asked"""


@dataclass(frozen=True)
class TopicConfig:
    """What the metadata log, where there is one, says of a topic; None means unknown or the broker's default."""

    cleanup_policy: str | None = None
    index_interval_bytes: int | None = None
    delete_retention_ms: int | None = None
    segment_bytes: int | None = None
    timestamp_type: str | None = None

    @property
    def compacted(self) -> bool | None:
        return None if self.cleanup_policy is None else "compact" in self.cleanup_policy


@dataclass(frozen=True)
class Log:
    """A partition under audit: its files, and what its surroundings say of it."""

    files: PartitionFiles
    clean: bool | None = None
    """True: the directory has the clean-shutdown marker. False: it has none (killed, or running). None: not known (a
    partition's directory or a segment alone)"""
    recovery_point: int | None = None
    log_start: int | None = None
    """from log-start-offset-checkpoint; None if there is no entry"""
    start_known: bool = True
    """False if that file is not there to be read: a partition's directory or a segment alone, or a damaged file"""
    high_watermark: int | None = None
    cleaner_point: int | None = None
    """first dirty offset"""
    config: TopicConfig = TopicConfig()
    topic_id: str | None = None
    """what the metadata log says, base64 as Kafka prints it"""
    facts: dict[str, Any] = field(default_factory=dict)
    """what checks add to the log's Summary, by name; set in `end`"""

    @property
    def topic(self) -> str:
        return self.files.topic

    @property
    def partition(self) -> int:
        return self.files.partition

    @property
    def compacted(self) -> bool | None:
        """True if the topic is or was compacted: its policy says so, or the cleaner remembers it. None: not known."""
        if self.cleaner_point is not None:
            return True
        return self.config.compacted

    def is_active(self, segment: Segment) -> bool:
        """The last segment: a writer may still be at it, and a crash may have torn it."""
        return bool(self.files.segments) and segment.base_offset == self.files.segments[-1].base_offset

    def finding(self, severity: Severity, clause: str, file: File | str, message: str, **more: Any) -> Finding:
        """A finding about this partition."""
        path = str(file.path) if isinstance(file, File) else file
        return Finding(severity, clause, path, message, topic=self.topic, partition=self.partition, **more)


@dataclass(frozen=True)
class Ending:
    """How a segment's bytes end. `end` is the first byte that is no whole batch; `size` the file's length when it was
    read. `reason` "" if the file ends there; else what stands there, in words."""

    end: int
    size: int
    reason: str = ""
    end_offset: int | None = None
    """last offset + 1 of the last whole batch; None if there is none"""
    torn: bool = False
    """an append that was cut short leaves just this: the first bytes of a batch, or zeros"""


class LogCheck:
    """A check of one partition's log. Override what is needed; each may yield findings."""

    needs_records = False
    """whether `applies` partitions must be decoded to RECORD rows"""

    @classmethod
    def applies(cls, log: Log) -> bool:
        return True

    def __init__(self, log: Log) -> None:
        self.log = log

    def begin(self, segment: Segment) -> Iterable[Finding]:
        return ()

    def chunk(self, segment: Segment, chunk: Chunk) -> Iterable[Finding]:
        return ()

    def ended(self, segment: Segment, ending: Ending) -> Iterable[Finding]:
        return ()

    def end(self) -> Iterable[Finding]:
        """After the last segment."""
        return ()


@dataclass(frozen=True)
class Summary:
    """What is known of a partition's log once it was read: what directory and cluster checks, and the table, use.
    Offsets: `start` the first readable (checkpointed log start, or the first segment's base), `end` the log end."""

    log: Log
    start: int
    end: int
    segments: int
    batches: int
    records: int
    size: int
    """bytes of the .log files"""
    facts: Mapping[str, Any]
    """committed, aborted, open_transactions, last_stable_offset, ... as the checks set them in Log.facts"""


@dataclass(frozen=True)
class Directory:
    """A log directory that was read. `node` and `cluster` from meta.properties, None if that says nothing."""

    files: LogDirectory
    logs: tuple[Summary, ...]
    clean: bool
    node: int | None = None
    cluster: str | None = None


class DirectoryCheck:
    """A check of one log directory, after all its logs were read."""

    def check(self, directory: Directory) -> Iterable[Finding]:
        return ()


class ClusterCheck:
    """A check over everything that was given, directories of one broker or several, after all were read. `reread`
    gives the chunks of a log once more (with records if asked)."""

    def check(self, directories: tuple[Directory, ...], reread: Any) -> Iterable[Finding]:
        return ()


SMALL = 256 << 20
AHEAD: dict[Path, bytes] = {}
"""What the engine read ahead of a segment that may grow meanwhile, so that no index says more than the log."""


def read_small(file: File, most: int = SMALL) -> bytes:
    """The content of an index, snapshot or text file. Raises UserError if it cannot be read or is larger than `most`
    bytes."""
    if (ahead := AHEAD.get(file.path)) is not None:
        return ahead
    try:
        with file.path.open("rb") as f:
            data = f.read(most + 1)
    except OSError as e:
        raise UserError(f"{file.path}: {e.strerror or e}") from None
    if len(data) > most:
        raise UserError(f"{file.path}: more than {most >> 20} MiB, larger than any such file of Kafka's")
    return data
