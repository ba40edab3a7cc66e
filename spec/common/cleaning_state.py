"""The cleaning state of a partition.

Source: Kafka Internals, ch. 04, "The cleaning state machine"; LogCleaningState, Kafka 4.3.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from kafkaspec.contract.clauses import states


@dataclass(frozen=True)
class InProgress:
    """A cleaner thread works on the partition."""


@dataclass(frozen=True)
class Aborted:
    """A cleaner thread works on the partition, and is asked to stop."""


@dataclass(frozen=True)
class Paused:
    """Nobody cleans the partition until each of `count` pauses is undone."""

    count: int


Cleaning = InProgress | Aborted | Paused | None
"""None: no state."""
Event = Literal["take", "pause", "resume", "done"]
"""A cleaner thread takes the partition; somebody pauses it; resumes it; the cleaner thread is done."""
EVENTS: Final[tuple[Event, ...]] = ("take", "pause", "resume", "done")


@dataclass(frozen=True)
class NoMove:
    """The event cannot happen in that state."""


@states()
def moved(before: Cleaning, event: Event) -> Cleaning | NoMove:
    """CLN-1: A partition's cleaning state is none, in progress, aborted or paused(n) with n >= 1. It moves from none to
    in progress or paused(1); from in progress to none or aborted; from aborted to paused(1); from paused(n) to
    paused(n+1), to paused(n-1) when n > 1, and from paused(1) to none. [Kafka Internals, ch. 04, 'The cleaning state
    machine'; LogCleaningState, Kafka 4.3.0]"""
    match before, event:
        case None, "take":
            return InProgress()
        case None, "pause":
            return Paused(1)
        case InProgress(), "pause":
            return Aborted()
        case InProgress(), "done":
            return None
        case Aborted(), "done":
            return Paused(1)
        case Paused(n), "pause":
            return Paused(n + 1)
        case Paused(n), "resume":
            return Paused(n - 1) if n > 1 else None
    return NoMove()


@states("CLN-1")
def legal_move(before: Cleaning, after: Cleaning) -> bool:
    """Whether one step may lead from a state to another: one move or none; or the last one of a cleaning that an abort
    waited for, which resumes at once (CLN-13)."""
    return after in (before, *(moved(before, e) for e in EVENTS)) or (before, after) == (Aborted(), None)


def state_text(state: Cleaning) -> str:
    match state:
        case None:
            return "none"
        case InProgress():
            return "inProgress"
        case Aborted():
            return "aborted"
        case Paused(n):
            return f"paused({n})"


def java_name(state: Cleaning) -> str:
    """A state as Kafka's messages print it; identity hashes are masked in recordings."""
    if isinstance(state, Paused):
        return f"LogCleaningPaused{{pausedCount={state.count}}}"
    return f"org.apache.kafka.storage.internals.log.LogCleaningState$LogCleaning{type(state).__name__}@HASH"
