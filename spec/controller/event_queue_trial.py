"""The event queue: the arguments that engines try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafkaspec.spec.common.kafka import LONG_MAX
from kafkaspec.spec.controller.event_queue import LONG_MIN, NS_PER_MS, Queue, machine

HOUR: Final = 3_600_000_000_000
"""ns. Deadlines are that far apart: a handler that goes by a judge's clock waits by its own, and is not to wake."""
TAGS: Final = ("a", "b", "c")


def _one_in(state: Queue, n: int) -> bool:
    """In one of `n` states: what ends the queue is done seldom."""
    return (state.added * 7 + len(state.waiting) * 3 + state.now // HOUR + (state.running is None)) % n == 0


def _deadlines(state: Queue) -> Sequence[int]:
    """Near those that there are, past, now and to come, and the ends of the type."""
    known = [e.deadline for e in state.timed if e.deadline is not None]
    ends = [LONG_MAX, LONG_MIN] if _one_in(state, 5) else []
    later = [state.now + n * HOUR for n in (1, 2, 3)]
    return [n for n in (*later, *known[:3], state.now, state.now - 1, *ends) if LONG_MIN <= n <= LONG_MAX]


def _passing(state: Queue) -> Sequence[int]:
    left = [e.deadline - state.now for e in state.timed if e.deadline is not None and e.deadline > state.now]
    near = [n for first in left[:2] for n in (first, first - HOUR // 2) if n >= 0]
    return [n for n in (*near, HOUR, NS_PER_MS - 1, 0) if state.now + n <= LONG_MAX and n <= 2**62]


def _tags(state: Queue) -> Sequence[str | None]:
    return [*sorted(state.tagged), *TAGS, None]


def _handlings(state: Queue) -> Sequence[str]:
    """Seldom what ends the handler's thread."""
    return ("returns", "returns", "throws", "error") if _one_in(state, 4) else ("returns", "returns", "throws")


def _outcomes(state: Queue) -> Sequence[str]:
    if state.mark and not _one_in(state, 3):
        return ("clears",)
    usual = ("returns", "returns", "returns", "throws", "error", "clears")
    return (*usual, "interrupted") if _one_in(state, 11) else usual


machine.candidates |= {
    "handle_exception": _handlings,
    "deadline_ns": _deadlines,
    "tag": _tags,
    "function": lambda state: ("earliest", "deadline", "earliest", "deadline", "none"),
    "enqueue:function": lambda state: ("none", "deadline", "earliest"),
    "insertion": lambda state: ("APPEND", "PREPEND", "DEFERRED"),
    "outcome": _outcomes,
    "ns": _passing,
    "times": lambda state: (1, 2) if _one_in(state, 5) else (),
    "source": lambda state: ("test",) if _one_in(state, 13) else (),
    "callers": lambda state: (1, 2) if _one_in(state, 17) else (),
    "init:now": lambda state: (0, HOUR + 1, 2**62),
    "init:cleanup": lambda state: ("returns", "throws"),
}
