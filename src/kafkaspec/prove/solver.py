"""Asking Z3, with a budget that is counted in its own steps first, so that a busy machine does not change a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import z3

from kafkaspec.prove.symbols import Formula, negated

STEPS_PER_SECOND = 4_000_000
"""Z3's resource units that a quiet core does in about a second; only the size of a budget depends on it."""
PATIENCE = 6
"""The clock stops a query at this many times its budget: only a machine that busy can change a verdict."""

Answer = Literal["unsat", "sat", "unknown"]

PORTFOLIO: tuple[Mapping[str, Any], ...] = (
    {},
    {"smt.mbqi": False},
    {"smt.mbqi": False, "smt.random_seed": 7},
    {"smt.random_seed": 11},
)
"""Options of the solver, in the order in which they are tried."""


@dataclass(frozen=True)
class Asked:
    """An answer, the model where there is one, and why where there is none."""

    answer: Answer
    model: z3.ModelRef | None
    why: str
    steps: int


def ask(formulas: Sequence[Formula], budget_s: float, options: Mapping[str, Any] | None = None) -> Asked:
    """Are the formulas satisfiable together?"""
    s = z3.Solver()
    s.set("rlimit", int(budget_s * STEPS_PER_SECOND))
    s.set("timeout", int(budget_s * PATIENCE * 1000))
    for name, value in (options or {}).items():
        s.set(name, value)
    s.add(*formulas)
    answer: Answer = str(s.check())  # type: ignore[assignment]
    steps = 0
    for k, v in s.statistics():
        if k == "rlimit count":
            steps = int(v)
    return Asked(
        answer, s.model() if answer == "sat" else None, s.reason_unknown() if answer == "unknown" else "", steps
    )


def follows(
    assumed: Sequence[Formula], apart: Sequence[Formula], goal: Formula, budget_s: float, quick_s: float = 0.5
) -> Answer:
    """Does the goal follow? "unsat": it does, as denying it is contradictory. Tries without the assumptions kept apart
    first, and each line of the portfolio with a small budget before any with the whole."""
    denied = negated(goal)
    for budget in (min(quick_s, budget_s), budget_s):
        for options in PORTFOLIO:
            for extra in ([], apart) if apart else ([],):
                asked = ask([*assumed, *extra, denied], budget, options)
                if asked.answer == "unsat":
                    return "unsat"
                if asked.answer == "sat" and (extra or not apart):
                    return "sat"
    return "unknown"
