"""The state of the log cleaner's manager, what is shown of it, and contracts that many of its steps keep.

Source: Kafka Internals, ch. 04, "Cleaning state in LogCleanerManager"; LogCleanerManager, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from icontract import ensure, require

from kafkaspec.contract.machine import Refused, Step
from kafkaspec.spec.common.cleanable_log import Log
from kafkaspec.spec.common.cleaning_state import Aborted, Cleaning, legal_move, state_text
from kafkaspec.spec.common.frozen import Frozen


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

    base_offset: int
    size: int
    largest_timestamp: int


@dataclass(frozen=True)
class LogView:
    """A log."""

    known: bool
    """the manager has it"""
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    segments: list[SegmentView]


@dataclass(frozen=True)
class Observation:
    """The manager, its checkpoints, and the logs."""

    now: int
    """ms"""
    cleaning: Mapping[str, str]
    """partition -> its state"""
    checkpoints: Mapping[str, Mapping[str, int]]
    """directory -> partition -> first dirty offset"""
    uncleanable: Mapping[str, frozenset[str]]
    """directory -> partitions"""
    blocked_callers: frozenset[str]
    """partitions for which somebody waits"""
    logs: Mapping[str, LogView]


def view(log: Log) -> LogView:
    segments = [SegmentView(s.base_offset, s.size, s.largest_timestamp) for s in log.segments]
    return LogView(log.known, log.log_start_offset, log.log_end_offset, log.last_stable_offset, segments)


def observe(state: Cleaner) -> Observation:
    """The state as the recordings show it."""
    return Observation(
        state.now,
        {p: state_text(state.state(p)) for p in state.logs},
        state.checkpoints,
        state.uncleanable,
        frozenset(state.blocked),
        {p: view(log) for p, log in state.logs.items()},
    )


# ---- contracts -------------------------------------------------------------------------------------------------------
# The conditions are functions: a broken contract prints the text of a lambda only where it stands in the decorator
# itself.
def _after(state: Cleaner, result: Step[Cleaner] | Cleaner | Refused) -> Cleaner:
    """The state after an operation that returned that."""
    return state if isinstance(result, Refused) else result.state if isinstance(result, Step) else result


def _moves_legally(state: Cleaner, result: Any) -> bool:
    return all(legal_move(state.state(p), _after(state, result).state(p)) for p in state.logs)


def _aborted_have_waiters(state: Cleaner, result: Any) -> bool:
    after = _after(state, result)
    return set(after.blocked) == {p for p, s in after.cleaning.items() if s == Aborted()}


def _is_a_partition(state: Cleaner, partition: str) -> bool:
    return partition in state.logs


def _is_a_directory(state: Cleaner, dir: str) -> bool:
    return dir in state.checkpoints


def _refusal_changes_nothing(state: Cleaner, result: Step[Cleaner]) -> bool:
    return not isinstance(result.result, Refused) or result.state == state


legal_moves = ensure(_moves_legally, "CLN-1 each state moves as the machine allows")
waiters = ensure(_aborted_have_waiters, "CLN-12 a caller waits on exactly the aborted partitions")


def a_partition(id: str) -> require:
    """Of an operation of that clause: the history began with the partition."""
    return require(_is_a_partition, f"{id} the partition is one that the history began with")


def a_directory(id: str) -> require:
    """Of an operation of that clause."""
    return require(_is_a_directory, f"{id} the directory is one of the manager's")


def refused_changes_nothing(id: str) -> ensure:
    """Of an operation of that clause."""
    return ensure(_refusal_changes_nothing, f"{id} what is refused changes nothing")
