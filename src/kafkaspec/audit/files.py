"""What lies in a broker's directories, by name: nothing here reads a file's content.

Source of the names: LogFileUtils, UnifiedLog, LocalLog and LogManager, Kafka 4.3.0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from kafkaspec.impl.common.files import File
from kafkaspec.impl.management.checkpoints import MARKER

METADATA_TOPIC = "__cluster_metadata"
"""KRaft's log: no clients write to it."""


class Kind(Enum):
    """What a partition's directory is, by the end of its name."""

    CURRENT = ""
    FUTURE = "-future"
    """a copy that is being moved here from another directory of the broker"""
    DELETED = "-delete"
    STRAY = "-stray"


@dataclass(frozen=True)
class Segment:
    """The files of one segment, without a suffix. Only `log` makes it a segment; orphans have `log` None."""

    base_offset: int
    log: File | None = None
    offset_index: File | None = None
    time_index: File | None = None
    transaction_index: File | None = None


@dataclass(frozen=True)
class PartitionFiles:
    """A partition's directory."""

    path: Path
    topic: str
    partition: int
    kind: Kind = Kind.CURRENT
    segments: tuple[Segment, ...] = ()
    """those with a .log, ascending by base offset"""
    orphans: tuple[Segment, ...] = ()
    """index files without a .log"""
    snapshots: tuple[tuple[int, File], ...] = ()
    """producer snapshots by offset, ascending"""
    transient: tuple[File, ...] = ()
    """.deleted, .cleaned, .swap"""
    leader_epoch_checkpoint: File | None = None
    metadata: File | None = None
    """partition.metadata"""
    others: tuple[File, ...] = ()
    """what is none of these (quorum-state and .checkpoint files of the metadata log among them)"""
    folders: tuple[Path, ...] = ()
    """directories in it: Kafka makes none"""
    only: frozenset[str] | None = None
    """names of files, if a user named these and not the partition; indexes beside a .log need no naming"""

    def folder(self, name: str) -> Path | None:
        """The directory of that name in it, in the place of a file."""
        return next((f for f in self.folders if f.name == name), None)

    def in_place_of(self, segment: Segment, suffix: str) -> Path | None:
        """The directory in the place of a segment's file."""
        return self.folder(f"{segment.base_offset:020}{suffix}")


@dataclass(frozen=True)
class LogDirectory:
    """One entry of log.dirs."""

    path: Path
    partitions: tuple[PartitionFiles, ...] = ()
    files: dict[str, File] = field(default_factory=dict)
    """the directory's own files by name: checkpoints, meta.properties, .kafka_cleanshutdown, .lock, leftover .tmp"""
    folders: tuple[Path, ...] = ()
    """sub-directories that are no partition's"""
    empty_marker: bool = False
    """one of these is in the place of the marker of a clean stop, and holds nothing"""

    @property
    def clean(self) -> bool:
        """Whether a start takes the last stop for a clean one."""
        return MARKER in self.files or self.empty_marker
