"""Periodic tasks: the arguments that engines try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafkaspec.spec.common.kafka import LONG_MAX
from kafkaspec.spec.controller.periodic import DEFAULT_IMMEDIATE_NS, ERROR_NS, Manager, machine

SECOND: Final = 1_000_000_000
NAMES: Final = ("a", "b", "c")


def _due(state: Manager) -> Sequence[str]:
    return [name for name, s in state.scheduled.items() if s.deadline_ns <= state.now]


def _passing(state: Manager) -> Sequence[int]:
    left = [s.deadline_ns - state.now for s in state.scheduled.values() if s.deadline_ns > state.now]
    near = [n for first in sorted(left)[:2] for n in (first, first, first - 1)]
    return [n for n in (*near, SECOND, 0) if n <= 2**62 and state.now + n <= LONG_MAX]


machine.candidates |= {
    "name": lambda state: NAMES,
    "run:name": _due,
    "period_ns": lambda state: (SECOND, 5 * SECOND, 0, 2 * ERROR_NS, LONG_MAX),
    "immediate_ns": lambda state: (None, None, DEFAULT_IMMEDIATE_NS // 10, 2 * SECOND, 0),
    "verbose": lambda state: (False, True),
    "ns": _passing,
    "outcome": lambda state: ("done", "done", "again", "again", "throws", "error", "null"),
    "meanwhile": lambda state: ("nothing",) * 4 + ("unregister", "replace", "deactivate", "reactivate"),
    "records": lambda state: (0, 1, 3),
    "atomic": lambda state: (False, True),
    "init:now": lambda state: (0, 12_345, 2**62),
}
