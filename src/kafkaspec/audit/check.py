"""What a subsystem brings to the audit: checks, and what they are given.

`audits/<area>/<name>.py` defines `AUDIT`, a tuple of classes derived from LogCheck, DirectoryCheck or
ClusterCheck. A LogCheck is made again for each partition; it sees each segment in order, its batches a chunk at a time.
A check never opens the .log files; index, snapshot and text files it reads itself (`read_small`). What cannot be read
hides nothing else: see `LogCheck.skip`, and `problems`.

A damaged batch (`problem` not 0) is no evidence: a check uses nothing of such a row but position and size, and draws no
conclusion across it (a gap, a sequence, an epoch beside it may be its doing). One damage is one finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kafkaspec.audit.files import LogDirectory, PartitionFiles, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import Chunk, Ending


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
    unread: tuple[tuple[int, int], ...] = ()
    """once it was read: of each segment whose .log could not be read to its end the base offset, and the next one's"""

    @property
    def alone(self) -> bool:
        """It was given without its log directory, or only some of its files: that a file is not there says nothing."""
        return self.clean is None

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
class Facts:
    """What checks found out about a log, for the checks that come after it and for the table."""

    end_uncertain: bool = False
    """the log does not end with a whole batch"""
    epochs: tuple[tuple[int, int], ...] | None = None
    """epoch and start offset of each entry of the leader epoch checkpoint; None if they cannot be compared"""
    committed: int = 0
    aborted: int = 0
    open_transactions: int = 0
    last_stable_offset: int | None = None
    metadata_records: Mapping[str, int] = field(default_factory=dict)
    """of a metadata log: how many records of data it has of each kind"""
    compared_snapshots: tuple[int, ...] = ()
    """of a metadata log: end offsets of the snapshots that were compared with its state"""
    leader_epochs: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """of a metadata log whose state at its end is known: the leader epoch of each partition, by topic id (base64 as
    Kafka prints it) and number"""


@dataclass(frozen=True)
class Absent:
    """Files that were not given with a log that is alone, and the clauses that are not asked without them."""

    kind: str
    """in the plural: "offset indexes" """
    clauses: tuple[str, ...]
    files: tuple[str, ...] = ()
    """their names, where they are known"""


class LogCheck:
    """A check of one partition's log. Override what is needed; each may yield findings. What raises UserError in
    `begin`, `chunk` or `ended` is told no more of that segment but `skip`; elsewhere it is told nothing more."""

    needs_directory: ClassVar[tuple[str, ...]] = ()
    """the clauses that it does not ask of a log that is alone"""

    needs_records = False
    """whether `applies` partitions must be decoded to RECORD rows"""

    @classmethod
    def applies(cls, log: Log) -> bool:
        return True

    def __init__(self, log: Log) -> None:
        self.log = log
        self.problems: list[str] = []
        """what could not be read, a line each, where the check goes on without it"""

    def begin(self, segment: Segment) -> Iterable[Finding]:
        return ()

    def chunk(self, segment: Segment, chunk: Chunk) -> Iterable[Finding]:
        return ()

    def ended(self, segment: Segment, ending: Ending) -> Iterable[Finding]:
        return ()

    def skip(self, segment: Segment, problem: str) -> Iterable[Finding]:
        """The rest of the segment, its end included, is not told: its .log cannot be read, or a file of it that this
        check needs. It may have held anything, and the next segment comes next. A check that does not override this
        ends here."""
        raise UserError(problem)

    def end(self) -> Iterable[Finding]:
        """After the last segment."""
        return ()

    def absent(self) -> Iterable[Absent]:
        """After `end`, of a log that is alone: which files the check would have read and were not there."""
        return ()

    def learnt(self, facts: Facts) -> Facts:
        """After `end`: the facts, with what this check found out."""
        return facts


@dataclass(frozen=True)
class Summary:
    """What is known of a partition's log once it was read: what directory and cluster checks, and the table, use.
    Offsets: `start` the first readable (checkpointed log start, or the first segment's base), `end` the log end, as far
    as it was read. `log.unread` says of what the numbers are not."""

    log: Log
    start: int
    end: int
    segments: int
    batches: int
    records: int
    size: int
    """bytes of the .log files"""
    facts: Facts = Facts()


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

    needs_directory: ClassVar[tuple[str, ...]] = ()
    """as of a LogCheck: all its clauses, but for those that a LogCheck asks too"""

    def __init__(self) -> None:
        self.problems: list[str] = []
        """as of a LogCheck"""

    def check(self, directory: Directory) -> Iterable[Finding]:
        return ()


class ClusterCheck:
    """A check over everything that was given, directories of one broker or several, after all were read. `reread`
    gives the chunks of a log once more (with records if asked), but for the segments of its `unread`. A log that is
    alone is nobody's replica."""

    needs_directory: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.problems: list[str] = []
        """as of a LogCheck"""

    def check(self, directories: tuple[Directory, ...], reread: Any) -> Iterable[Finding]:
        return ()
