"""Bounded symbolic search: every run of at most N steps from the start, at given sizes or at every size."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import z3

from kafkaspec.errors import UserError
from kafkaspec.language import Action, Claim, LoadedModel, T, Trace, TraceStep
from kafkaspec.language.defined import DEFINED
from kafkaspec.prove.counterexample import every_size, plain, show, widened
from kafkaspec.prove.engine import Progress, possible
from kafkaspec.prove.obligations import START, has_value
from kafkaspec.prove.reading import ASSERTED, DENIED, Reading, World
from kafkaspec.prove.solver import limit
from kafkaspec.prove.symbols import Formula, State, Term, Value, both, either, implies, negated


@dataclass(frozen=True)
class BoundedResult:
    """What a bounded search found. "complete": no claim is broken within `steps` steps, at these sizes; sizes that are
    not given are arbitrary. "violation": the trace is a shortest one. "vacuous": there is no first state, so no run.
    "unknown": the solver gave up after `reached`, or found neither a first state nor that there is none."""

    model: str
    sizes: Mapping[str, int | bool]
    steps: int
    outcome: Literal["complete", "violation", "vacuous", "unknown"]
    reached: int
    """All runs of that many steps were searched; -1: not even the first states."""
    trace: Trace | None
    seconds: float
    vacuous: tuple[str, ...] = ()
    """The start, if there is no first state at these sizes, as in a proof."""
    unseen: tuple[str, ...] = ()
    """The start, if it is open whether there is a first state: none was found, and none excluded."""

    @property
    def not_known(self) -> str:
        """What an "unknown" search does not know."""
        if self.unseen:
            return "whether there is a first state is not known"
        return "the solver gave up on " + (f"step {self.reached + 1}" if self.reached >= 0 else "the first state")

    def summary(self) -> str:
        """One line for people."""
        at = ", ".join(f"{n}={v}" for n, v in self.sizes.items()) or "every size"
        said = {
            "complete": f"no violation within {self.steps} steps",
            "violation": f"{self.trace.claim if self.trace else ''} is broken in {self.reached} steps",
            "vacuous": "there is no first state",
            "unknown": (f"no violation within {self.reached} steps; " if self.reached >= 0 else "") + self.not_known,
        }[self.outcome]
        return f"{self.model} at {at}: {said} ({self.seconds:.1f} s)"


def bounded(
    model: LoadedModel,
    steps: int,
    sizes: Mapping[str, int | bool] | None = None,
    *,
    timeout_s: float = 60.0,
    progress: Progress | None = None,
) -> BoundedResult:
    """Search every run of at most `steps` steps for one that breaks an invariant, a lemma, a step property or a type,
    or that comes to an action whose text has no value.

    Sizes that are not given are arbitrary; if a run exists at some size, one at a small size is shown. If no run is
    found, a first state is looked for, as without one there are no runs. `timeout_s` is the budget of each step.
    Raises UserError for sizes that do not fit."""
    began = time.perf_counter()
    given = dict(sizes or {})
    if steps < 0:
        raise UserError(f"a search takes 0 steps or more, not {steps}")
    missing = model.open_sizes(given)
    if missing:
        model.check_given(given)
    else:
        model.check_sizes({**{n: False for n, kind in model.sizes.items() if kind == "flag"}, **given})
    search = _Search(model, given)
    for depth in range(steps + 1):
        if progress is not None:
            progress(depth, steps, f"step {depth}")
        answer = search.step(timeout_s)
        if answer == "unsat":
            continue
        trace = search.trace() if answer == "sat" and not missing else None
        if missing:
            trace = _small(model, given, depth, timeout_s)
        seconds = time.perf_counter() - began
        if trace is None:
            return BoundedResult(model.name, given, steps, "unknown", depth - 1, None, seconds)
        return BoundedResult(model.name, given, steps, "violation", depth, trace, seconds)
    starts = possible(model, START, given, timeout_s)
    return BoundedResult(
        model.name,
        given,
        steps,
        "complete" if starts else "vacuous" if starts is False else "unknown",
        steps,
        None,
        time.perf_counter() - began,
        vacuous=(START,) if starts is False else (),
        unseen=(START,) if starts is None else (),
    )


def _small(model: LoadedModel, given: Mapping[str, int | bool], depth: int, timeout_s: float) -> Trace | None:
    """A run of that length at small sizes."""
    for sizes in every_size(model, given):
        try:
            found = bounded(model, depth, sizes, timeout_s=timeout_s)
        except UserError:  # a variable has no value at these sizes
            continue
        if found.trace is not None:
            return found.trace
    return None


@dataclass(frozen=True)
class _Move:
    """The start or a step, as it is taken from the last state: by the action that `choice` numbers."""

    choice: Term
    made: list[tuple[Action, Mapping[str, Value]]]
    after: State


class _Search:
    """Runs, unrolled step by step: the state after each step has a name of its own and is equal to what the action
    that is chosen there makes of the state before. A step in which something has no value, or after which a variable
    leaves its type, ends the search, so that every named state is of its types."""

    def __init__(self, model: LoadedModel, given: Mapping[str, int | bool]) -> None:
        self.model, self.reading = model, Reading(model, given)
        self.worlds: list[World] = []
        self.moves: list[_Move] = []
        self.formulas: list[Formula] = []
        self.claims: dict[str, Claim] = {**model.invariants, **model.lemmas}
        self.found: z3.ModelRef | None = None
        self.denied: dict[str, Formula] = {}
        self.ended = False

    def step(self, timeout_s: float) -> str:
        """One more step (the first is the start): can it go wrong, or break a claim?"""
        r, i = self.reading, len(self.worlds)
        actions = self.model.actions if i else [self.model.initial]
        here = self.worlds[-1] if i else r.nothing_yet()
        choice = z3.Int(f"action taken@{i}")  # no variable is called so
        after = dict(here.now)
        made: list[tuple[Action, Mapping[str, Value]]] = []
        taken: list[Formula] = [choice >= 0, choice < len(actions)]
        undefined: list[Formula] = []
        outside: dict[str, list[Formula]] = {}
        for k, a in enumerate(actions):
            env, typed = r.parameters(a, f"@{i}")
            chosen = both([choice == k, typed])
            enabled, there = r.enabled(a, env, here), both(r.needs(a, env, here, ASSERTED))
            undefined.append(both([chosen, negated(both(r.needs(a, env, here)))]))
            for n, fits in r.fits(a, env, here).items():
                outside.setdefault(n, []).append(both([chosen, enabled, there, negated(both(fits))]))
            fit = [f for fs in r.fits(a, env, here, ASSERTED).values() for f in fs]
            taken.append(implies(choice == k, both([typed, enabled, there, *fit])))
            after = r.taken(a, env, here, when=choice == k, onto=after)
            made.append((a, env))
        self.moves.append(_Move(choice, made, after))
        wrong = {DEFINED: either(undefined), **{f"type of {n}": either(outside[n]) for n in outside}}
        answer = self._ask(wrong, timeout_s)
        if answer != "unsat":
            self.ended = True
            return answer
        named = r.state(f"@{i}")
        self.formulas += taken + [r.equal(t, named[n], after[n]) for n, t in self.model.vars.items()]
        self.worlds.append(World(named))
        return self._ask(self._broken(), timeout_s)

    def _broken(self) -> dict[str, Formula]:
        """Each claim, denied of the last state or the last step."""
        last = self.worlds[-1]
        claims: list[tuple[Claim, World]] = [(c, last) for c in self.claims.values()]
        if len(self.worlds) == 1:
            claims += [(c, last) for c in self.model.starts.values()]
        else:
            transition = World(self.worlds[-2].now, last.now)
            claims += [(c, transition) for c in self.model.steps.values()]
        return {
            c.name: negated(both([self.reading.read(p, {}, w, DENIED) for p in [*has_value(c.expr), c.expr]]))
            for c, w in claims
        }

    def _ask(self, denied: Mapping[str, Formula], timeout_s: float) -> str:
        self.denied = {n: f for n, f in denied.items() if not z3.is_false(f)}
        if not self.denied:
            return "unsat"
        r, solver = self.reading, z3.Solver()
        limit(solver, timeout_s)
        solver.add(*r.sizes(), *self.formulas, *r.definitions, *r.axioms(), either(self.denied.values()))
        answer = str(solver.check())
        if answer == "sat" and r.unknowns():  # numbers of elements of which the axioms alone are known: may be no run
            answer = "unknown"
        self.found = solver.model() if answer == "sat" else None
        return answer

    def trace(self) -> Trace:
        """The run that was found."""
        z, r, types = self.found, self.reading, self.model.vars
        assert z is not None
        claim = next(n for n, f in self.denied.items() if z3.is_true(z.eval(f, True)))
        states: list[tuple[Mapping[str, T], State]] = [(types, w.now) for w in self.worlds]
        if self.ended:
            last = self.moves[-1]
            before = self.worlds[-1].now if self.worlds else r.nothing_yet().now
            states.append(
                (types, before) if claim == DEFINED else (widened(types, [a for a, _ in last.made]), last.after)
            )
        steps = []
        for i, (move, (wide, state)) in enumerate(zip(self.moves, states, strict=True)):
            values = {n: show(wide[n], plain(r, z, wide[n], v)) for n, v in state.items()}
            a, env = move.made[z.eval(move.choice, True).as_long()]
            if i == 0:
                steps.append(TraceStep("", "", (), {}, values))
                continue
            arguments = {a.parameter(p): show(p.t, plain(r, z, p.t, env[p.aux])) for p in a.params}
            steps.append(TraceStep(a.name, a.who, a.clauses, arguments, values))
        flags = {
            n: bool(z3.is_true(z.eval(r.size(n), True)))
            for n, kind in self.model.sizes.items()
            if kind == "flag" and n not in r.given
        }
        known = self.claims.get(claim) or self.model.steps.get(claim) or self.model.starts.get(claim)
        clauses = known.clauses if known is not None else steps[-1].clauses
        return Trace(self.model.name, {**r.given, **flags}, "violation", claim, clauses, tuple(steps))
