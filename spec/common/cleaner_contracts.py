"""Contracts that many steps of the log cleaner's manager keep.

The conditions are functions: a broken contract prints the text of a lambda only where it stands in the decorator
itself.

Source: Kafka Internals, ch. 04, "The cleaning state machine"; LogCleanerManager, Kafka 4.3.0.
"""

from __future__ import annotations

from typing import Any

from icontract import ensure, require

from kafkaspec.contract.machine import Refused, Step
from kafkaspec.spec.common.cleaner_state import Cleaner
from kafkaspec.spec.common.cleaning_state import Aborted, legal_move


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


def unchanged_if_refused(id: str) -> ensure:
    """Of an operation of that clause."""
    return ensure(_refusal_changes_nothing, f"{id} what is refused changes nothing")
