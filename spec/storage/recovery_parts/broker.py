"""A log directory with one partition, and its broker: the state, and what is seen of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from kafkaspec.contract.codec import partial
from kafkaspec.contract.governs import governs
from kafkaspec.spec.storage.log_loader import (
    EPOCHS,
    LOG,
    Batch,
    Content,
    Epochs,
    LogFile,
    log_of,
)
from kafkaspec.spec.storage.recovery_parts.crashing_disk import Disk, FileOnDisk


@dataclass(frozen=True)
class RunningLog:
    """The log in memory. `last_snapshot`: the offset of the newest snapshot that it knows, `seen`: where its producer
    state is."""

    log_start: int = 0
    recovery_point: int = 0
    high_watermark: int = 0
    log_end: int = 0
    epochs: Epochs = ()
    seen: int = 0
    last_snapshot: int = 0
    known: frozenset[int] = frozenset()
    """the offsets of the snapshots that it knows"""
    to_flush: tuple[tuple[int, int | None], ...] = ()
    """of rolls whose flush is scheduled: up to which offset, and which snapshot"""
    epochs_to_write: bool = False
    to_remove: tuple[str, ...] = ()


@dataclass(frozen=True)
class Broker:
    """A log directory and its broker. A checkpoint without an entry for the log is None."""

    disk: Disk
    point: int | None = None
    start: int | None = None
    mark: int | None = None
    marker: bool = False
    log: RunningLog | None = None
    """None: the broker is down"""
    promised: tuple[Batch, ...] = field(default=(), compare=False)
    """what was below the recovery point when the broker went down, and not below the log start"""
    written: frozenset[Batch] = field(default=frozenset(), compare=False)
    """every batch that was ever appended"""
    safe: tuple[Batch, ...] = field(default=(), compare=False)
    """those of the promised ones that were flushed"""
    skipped: int = field(default=0, compare=False)
    """below it there are records that may not be flushed although the recovery point is above them: a log start has
    risen past them, and took it along"""
    holes: frozenset[int] = field(default=frozenset(), compare=False)
    """the offsets below which some are missing: of a batch that was cut at an offset within it, or of a segment that
    lost whole batches at its end when the next one did not"""


def batches_of(files: Mapping[str, Content]) -> tuple[Batch, ...]:
    """The batches of the segments, in their order."""
    return tuple(b for base in bases_of(files) for b in log_of(files, base).batches)


def offsets_of(files: Iterable[str], end: str) -> Iterator[int]:
    """Those that the names with this end say."""
    return (int(n.removesuffix(end)) for n in files if n.endswith(end))


def bases_of(files: Mapping[str, Content]) -> list[int]:
    """The segments' base offsets."""
    return sorted(offsets_of(files, LOG))


@dataclass(frozen=True)
class LogOffsets:
    """Of the log of a running broker."""

    log_start: Annotated[int, governs("REC-9", "REC-12", "LDR-11")]
    recovery_point: Annotated[int, governs("REC-8", "REC-7", "REC-10", "REC-13", "REC-17", "LOG-35")]
    high_watermark: Annotated[int, governs("REC-11")]
    log_end: Annotated[int, governs("REC-3", "REC-4", "REC-9", "LDR-11")]


@partial
@dataclass(frozen=True)
class Observation:
    """A log directory and its broker."""

    files: Annotated[
        Mapping[str, Content],
        governs(
            "REC-3",
            keys={
                "*.deleted": ("REC-5", "LOG-34"),
                "*.snapshot": ("REC-13", "LDR-13"),
                "leader-epoch-checkpoint": ("REC-14", "LDR-8", "LDR-12"),
                "*.log": ("REC-3", "REC-4", "REC-7", "REC-19", "REC-21", "LDR-7"),
            },
        ),
    ]
    recovery_point: Annotated[int | None, governs("REC-10", "REC-15", "CKP-11")]
    """as checkpointed; the log start and the high watermark likewise"""
    log_start: Annotated[int | None, governs("REC-12", "CKP-12")]
    high_watermark: Annotated[int | None, governs("REC-11", "CKP-13")]
    marker: Annotated[bool, governs("REC-6", "REC-16", "CKP-9", "CKP-10")]
    log: Annotated[LogOffsets | None, governs("REC-3")]
    flushed: Annotated[Mapping[str, int] | None, governs("REC-10", "REC-13", "REC-14")] = None
    """of each .log how many batches no power failure takes, and 1 of the leader epochs if none
    takes them; nobody sees that from outside, nor `undoable`"""
    undoable: Annotated[Sequence[str] | None, governs("REC-10", "REC-1")] = None
    """the .log files that a power failure may bring or take"""


def observe(state: Broker) -> Observation:
    """What is compared after every call."""
    log = state.log
    return Observation(
        state.disk.files,
        state.point,
        state.start,
        state.mark,
        state.marker,
        None if log is None else LogOffsets(log.log_start, log.recovery_point, log.high_watermark, log.log_end),
        {name: safe_part(s) for name, s in state.disk.stored.items() if name.endswith((LOG, EPOCHS))},
        sorted(n for n in state.disk.undone(0).keys() ^ state.disk.stored.keys() if n.endswith(LOG)),
    )


def safe_part(stored: FileOnDisk) -> int:
    """Of a .log the batches that no power failure takes; of another file whether none takes it."""
    return flushed_batches(stored) if isinstance(stored.content, LogFile) else int(stored.content == stored.flushed)


def flushed_batches(stored: FileOnDisk) -> int:
    """Of how many batches of a .log the disk is sure."""
    known = stored.flushed.batches if isinstance(stored.flushed, LogFile) else ()
    return len(known) if stored.untouched is None else stored.untouched
