"""Bounded symbolic search: every run of at most so many steps from the start, at given sizes or at every size."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import z3

from kafkaspec.errors import UserError
from kafkaspec.language import Action, Claim, LoadedModel, Trace, TraceStep
from kafkaspec.prove.counterexample import every_size, plain, plain_state, show
from kafkaspec.prove.engine import Progress
from kafkaspec.prove.reading import DENIED, Reading, World
from kafkaspec.prove.solver import limit
from kafkaspec.prove.symbols import Formula, Term, Value, both, either, implies, negated


@dataclass(frozen=True)
class Bounded:
    """What a bounded search found. "complete": no claim is broken within `steps` steps, at these sizes; sizes that are
    not given are arbitrary. "violation": the trace is a shortest one. "unknown": the solver gave up after `reached`."""

    model: str
    sizes: Mapping[str, int | bool]
    steps: int
    outcome: Literal["complete", "violation", "unknown"]
    reached: int
    """All runs of that many steps were searched."""
    trace: Trace | None
    seconds: float

    def summary(self) -> str:
        """One line for people."""
        at = ", ".join(f"{n}={v}" for n, v in self.sizes.items()) or "every size"
        said = {
            "complete": f"no violation within {self.steps} steps",
            "violation": f"{self.trace.claim if self.trace else ''} is broken in {self.reached} steps",
            "unknown": f"no violation within {self.reached} steps; the solver gave up on {self.reached + 1}",
        }[self.outcome]
        return f"{self.model} at {at}: {said} ({self.seconds:.1f} s)"


def bounded(
    model: LoadedModel,
    steps: int,
    sizes: Mapping[str, int | bool] | None = None,
    *,
    timeout_s: float = 60.0,
    progress: Progress | None = None,
) -> Bounded:
    """Search every run of at most `steps` steps for one that breaks an invariant, a lemma, a step property or a type.

    Sizes that are not given are arbitrary; if a run exists at some size, one at a small size is shown. `timeout_s` is
    the budget of each step. Raises UserError for sizes that do not fit."""
    began = time.perf_counter()
    given = dict(sizes or {})
    if steps < 0:
        raise UserError(f"a search takes 0 steps or more, not {steps}")
    missing = [n for n, kind in model.sizes.items() if n not in given and kind != "flag"]
    if missing:
        model.check_sizes({**{n: False if kind == "flag" else 1 for n, kind in model.sizes.items()}, **given})
    else:
        model.check_sizes({**{n: False for n, kind in model.sizes.items() if kind == "flag"}, **given})
    search = _Search(model, given)
    for depth in range(steps + 1):
        if progress is not None:
            progress(depth, steps, f"step {depth}")
        answer = search.broken(timeout_s)
        if answer == "unsat":
            search.step()
            continue
        trace = search.trace() if answer == "sat" and not missing else None
        if missing:
            trace = _small(model, given, depth, timeout_s)
        seconds = time.perf_counter() - began
        if trace is None:
            return Bounded(model.name, given, steps, "unknown", depth - 1, None, seconds)
        return Bounded(model.name, given, steps, "violation", depth, trace, seconds)
    return Bounded(model.name, given, steps, "complete", steps, None, time.perf_counter() - began)


def _small(model: LoadedModel, given: Mapping[str, int | bool], depth: int, timeout_s: float) -> Trace | None:
    """A run of that length at small sizes."""
    for sizes in every_size(model, given):
        found = bounded(model, depth, sizes, timeout_s=timeout_s)
        if found.trace is not None:
            return found.trace
    return None


class _Search:
    """Runs, unrolled step by step: the state after each step has a name of its own and is equal to what the action
    that is chosen there makes of the state before."""

    def __init__(self, model: LoadedModel, given: Mapping[str, int | bool]) -> None:
        self.model, self.reading = model, Reading(model, given)
        r = self.reading
        first, assumed = r.start()
        self.worlds = [World(self._named(first, 0, assumed))]
        self.chosen: list[tuple[Term, list[tuple[Action, Mapping[str, Value]]]]] = []
        self.formulas = [*assumed, *r.sizes()]
        self.claims: dict[str, Claim] = {**model.invariants, **model.lemmas}
        self.model_found: Any = None
        self.denied: dict[str, Formula] = {}

    def _named(self, state: Mapping[str, Value], i: int, into: list[Formula]) -> dict[str, Value]:
        named = self.reading.state(f"@{i}")
        into += [self.reading.equal(t, named[n], state[n]) for n, t in self.model.vars.items()]
        return named

    def step(self) -> None:
        """One more step."""
        r, world, i = self.reading, self.worlds[-1], len(self.worlds)
        choice = z3.Int(f"action@{i}")
        after = dict(world.now)
        made: list[tuple[Action, Mapping[str, Value]]] = []
        guards = []
        for k, a in enumerate(self.model.actions):
            env, typed = r.parameters(a, f"@{i}")
            here = choice == k
            guards.append(implies(here, both([typed, r.enabled(a, env, world)])))
            after = r.taken(a, env, world, when=here, onto=after)
            made.append((a, env))
        self.formulas += [choice >= 0, choice < len(made), *guards]
        named = self._named(after, i, self.formulas)
        self.chosen.append((choice, made))
        self.worlds.append(World(named))

    def broken(self, timeout_s: float) -> str:
        """Can the last state, or the last step, break a claim?"""
        r, world = self.reading, self.worlds[-1]
        self.denied = {n: negated(r.read(c.expr, {}, world, DENIED)) for n, c in self.claims.items()}
        for n, t in self.model.vars.items():
            typed = both([f for _, f in r.typed(t, world.now[n])])
            if not z3.is_true(typed):
                self.denied[f"type of {n}"] = negated(typed)
        if len(self.worlds) > 1:
            transition = World(self.worlds[-2].now, world.now)
            for n, c in self.model.steps.items():
                self.denied[n] = negated(r.read(c.expr, {}, transition, DENIED))
        solver = z3.Solver()
        limit(solver, timeout_s)
        solver.add(*self.formulas, *r.definitions, *r.axioms(), either(self.denied.values()))
        answer = str(solver.check())
        self.model_found = solver.model() if answer == "sat" else None
        return answer

    def trace(self) -> Trace:
        """The run that was found."""
        z, r = self.model_found, self.reading
        kinds = self.model.sizes
        flags = {
            n: bool(z3.is_true(z.eval(z3.Bool(n), True))) for n in kinds if kinds[n] == "flag" and n not in r.given
        }
        steps = []
        for i, world in enumerate(self.worlds):
            state = {n: show(self.model.vars[n], v) for n, v in plain_state(r, z, world.now).items()}
            if i == 0:
                steps.append(TraceStep("", "", (), {}, state))
                continue
            choice, made = self.chosen[i - 1]
            a, env = made[z.eval(choice, True).as_long()]
            arguments = {a.parameter(p): show(p.t, plain(r, z, p.t, env[p.aux])) for p in a.params}
            steps.append(TraceStep(a.name, a.who, a.clauses, arguments, state))
        claim = next(n for n, f in self.denied.items() if z3.is_true(z.eval(f, True)))
        known = self.claims.get(claim) or self.model.steps.get(claim)
        clauses = known.clauses if known is not None else steps[-1].clauses
        return Trace(self.model.name, {**r.given, **flags}, "violation", claim, clauses, tuple(steps))
