"""The state of the log cleaner's manager, and what is shown of it.

Source: Kafka Internals, ch. 04, "Cleaning state in LogCleanerManager"; LogCleanerManager, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from kafkaspec.contract.codec import replace, view
from kafkaspec.contract.governs import governs
from kafkaspec.spec.common.cleanable_log import Log
from kafkaspec.spec.common.cleaning_state import Cleaning, state_text
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.remembered import remembered_each


@dataclass(frozen=True)
class Cleaner:
    """The manager's whole state, the logs and the clock that it sees included."""

    now: int
    """ms"""
    logs: Frozen[str, Log]
    """every log there ever was in this history, by partition; `known` says which ones the manager has"""
    cleaning: Frozen[str, Cleaning]
    """partitions with a cleaning state"""
    blocked: Frozen[str, str]
    """partition -> the operation whose caller waits for it"""
    checkpoints: Frozen[str, Frozen[str, int]]
    """directory -> partition -> first dirty offset: what the file says"""
    uncleanable: Frozen[str, frozenset[str]]
    """directory -> partitions"""
    failed: frozenset[str] = frozenset()
    """directories whose checkpoint is no longer used"""
    batch_bytes: int = 72
    """the size of each batch that `append` appends"""

    def state(self, partition: str) -> Cleaning:
        return self.cleaning.get(partition)

    def known(self) -> Iterator[tuple[str, Log]]:
        return ((p, log) for p, log in self.logs.items() if log.known)

    def knows(self, partition: str) -> bool:
        return partition in self.logs and self.logs[partition].known

    def compacts(self, partition: str) -> bool:
        """It is known, and has compact in its policy."""
        return self.knows(partition) and self.logs[partition].config.compact

    def is_uncleanable(self, partition: str) -> bool:
        """It is marked where its log lies."""
        return partition in self.uncleanable.get(self.logs[partition].config.log_dir, frozenset())

    def live_checkpoints(self) -> list[Frozen[str, int]]:
        return [entries for directory, entries in self.checkpoints.items() if directory not in self.failed]

    def last_clean(self) -> dict[str, int]:
        """partition -> first dirty offset, of all live directories"""
        return {p: offset for checkpoint in self.live_checkpoints() for p, offset in checkpoint.items()}

    def with_state(self, partition: str, after: Cleaning) -> Cleaner:
        if after is None:
            return replace(self, cleaning=self.cleaning.without(partition))
        return replace(self, cleaning=self.cleaning.with_(partition, after))

    def with_log(self, partition: str, log: Log) -> Cleaner:
        return replace(self, logs=self.logs.with_(partition, log))

    def with_entries(self, directory: str, entries: Mapping[str, int]) -> Cleaner:
        return replace(self, checkpoints=self.checkpoints.with_(directory, Frozen(entries)))

    def with_marks(self, directory: str, marked: frozenset[str]) -> Cleaner:
        return replace(self, uncleanable=self.uncleanable.with_(directory, marked))


@dataclass(frozen=True)
class SegmentView:
    """A segment: size in bytes, timestamp in ms."""

    base_offset: Annotated[int, governs("CLN-32")]
    size: Annotated[int, governs("CLN-32")]
    largest_timestamp: Annotated[int, governs("CLN-32")]


@dataclass(frozen=True)
class LogView:
    """A log."""

    known: Annotated[bool, governs("CLN-2")]
    """the manager has it"""
    log_start_offset: Annotated[int, governs("CLN-32")]
    log_end_offset: Annotated[int, governs("CLN-32")]
    last_stable_offset: Annotated[int, governs("CLN-32")]
    segments: Annotated[list[SegmentView], governs("CLN-32")]


@dataclass(frozen=True)
class Observation:
    """The manager, its checkpoints, and the logs."""

    now: Annotated[int, governs("CLN-7")]
    """ms"""
    cleaning: Annotated[
        Mapping[str, str],
        governs("CLN-1", "CLN-11", "CLN-14", "CLN-15", "CLN-16", "CLN-18", "CLN-19", "CLN-4", "CLN-13", "CLN-31"),
    ]
    """partition -> its state"""
    checkpoints: Annotated[
        Mapping[str, Mapping[str, int]], governs("CLN-26", "CLN-27", "CLN-28", "CLN-10", "CLN-15", "CLN-29", "CLN-31")
    ]
    """directory -> partition -> first dirty offset"""
    uncleanable: Annotated[Mapping[str, frozenset[str]], governs("CLN-24", "CLN-25", "CLN-28", "CLN-29", "CLN-31")]
    """directory -> partitions"""
    blocked_callers: Annotated[frozenset[str], governs("CLN-12", "CLN-31")]
    """partitions for which somebody waits"""
    logs: Annotated[Mapping[str, LogView], governs("CLN-32")]


@remembered_each
def shown(log: Log) -> LogView:
    return view(LogView, log, segments=[view(SegmentView, s) for s in log.segments])


def observe(state: Cleaner) -> Observation:
    """The state as the recordings show it."""
    return view(
        Observation,
        state,
        cleaning={p: state_text(state.state(p)) for p in state.logs},
        blocked_callers=frozenset(state.blocked),
        logs={p: shown(log) for p, log in state.logs.items()},
    )
