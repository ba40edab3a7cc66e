"""Asking Z3, with a budget that is counted in its own steps first, so that a busy machine does not change a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import z3

from kafkaspec.prove.symbols import Formula, negated

STEPS_PER_SECOND = 4_000_000
"""Z3's resource units that a quiet core does in about a second; only the size of a budget depends on it."""
PATIENCE = 30
"""The clock stops a query at this many times its budget, and 10 s: only a machine that busy changes a verdict."""

Answer = Literal["unsat", "sat", "unknown"]

PORTFOLIO: tuple[Mapping[str, Any], ...] = (
    {},
    {"smt.mbqi": False},
    {"smt.auto_config": False, "smt.mbqi": False},
    {"smt.random_seed": 3},
    {"smt.mbqi": False, "smt.arith.solver": 2},
)
"""Options of the solver, in the order in which they are tried. Whether one of them finds a proof is luck, which many
short attempts use better than one long one."""
ROUNDS_S = (0.1, 0.4, 1.6, 6.4)
"""Budgets of one attempt: each round tries the whole portfolio, until the budget of the obligation is reached."""


@dataclass(frozen=True)
class Asked:
    """An answer, the model where there is one, and why where there is none."""

    answer: Answer
    model: z3.ModelRef | None
    why: str
    steps: int


def limit(solver: z3.Solver, budget_s: float) -> None:
    """Give a solver its budget."""
    solver.set("rlimit", int(budget_s * STEPS_PER_SECOND))
    solver.set("timeout", int((budget_s * PATIENCE + 10) * 1000))


def ask(formulas: Sequence[Formula], budget_s: float, options: Mapping[str, Any] | None = None) -> Asked:
    """Are the formulas satisfiable together?"""
    s = z3.Solver()
    limit(s, budget_s)
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
    assumed: Sequence[Formula], apart: Sequence[Formula], goal: Formula, budget_s: float, after_s: float = 0
) -> Answer:
    """Does the goal follow? "unsat": it does, as denying it is contradictory.

    Rounds up to `budget_s` an attempt are made, those up to `after_s` left out as made before. The assumptions kept
    apart are used once the others are known not to be enough."""
    denied = negated(goal)
    settings = [list(assumed)]
    for budget in [b for b in ROUNDS_S if after_s < b < budget_s] + [budget_s]:
        for options in PORTFOLIO:
            for formulas in settings:
                asked = ask([*formulas, denied], budget, options)
                if asked.answer == "unsat":
                    return "unsat"
                if asked.answer == "sat":
                    if not apart or len(formulas) > len(assumed):
                        return "sat"
                    settings = [[*assumed, *apart]]
        if apart and len(settings) == 1 and len(settings[0]) == len(assumed):
            settings = [list(assumed), [*assumed, *apart]]
    return "unknown"
