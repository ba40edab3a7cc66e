"""Is the claim that failed false, or only too weak? What the model can reach at the counterexample's sizes tells.

If the claim is broken in a reachable state, it or the model is wrong, and the shortest way there is shown. If the first
state of the counterexample is reachable, so is the second. If neither, the claim may be true and too weak to support
itself: a lemma that excludes the first state strengthens it. The explorer looks for that state, or one that differs in
the names of elements only, as it would for a witness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kafkaspec.errors import UserError
from kafkaspec.language import Claim, Expr, LoadedModel, Sort, T, Trace
from kafkaspec.language.expr import (
    TRUE,
    and_,
    bound,
    contains,
    eq,
    field,
    index,
    length,
    lift,
    node,
    not_,
    record,
    some,
    unwrapped,
)
from kafkaspec.language.parts import used, variables
from kafkaspec.language.types import resolve
from kafkaspec.prove.counterexample import Counterexample, Plain
from kafkaspec.prove.obligations import Goal

STATES_PER_SECOND = 300_000
"""The search ends after this many states for each second of the obligation's time limit, and says so."""
NAME = "the state of the counterexample"


@dataclass(frozen=True)
class Reachability:
    """What was found: a sentence for people, and the way to the state if there is one."""

    text: str
    way: Trace | None = None


def reachability(model: LoadedModel, goal: Goal, cti: Counterexample, limit_s: float = 10.0) -> Reachability:
    """Explore the model at the counterexample's sizes for a state that breaks the claim, and for its first state: as
    many states as a time limit of `limit_s` allows, counted so that they do not depend on the machine."""
    if cti.before is None:
        return Reachability("it is a first state: the claim or the model is wrong")
    from kafkaspec.explore.engine import explore

    most = max(1000, int(limit_s * STATES_PER_SECOND))
    at = ", ".join(f"{n}={v}" for n, v in cti.sizes.items()) or "its one size"
    for ghosts in (True, False) if model.ghosts else (False,):
        kept = {n: v for n, v in cti.before.items() if ghosts or n not in model.ghosts}
        witness = Claim(NAME, (), alike(model, kept), "", (model.file, 1))
        claims = {
            n: c
            for n, c in (model.invariants | model.lemmas).items()
            if n == goal.claim and variables(used(c.expr)) <= kept.keys()
        }
        steps = {n: c for n, c in model.steps.items() if n == goal.claim and variables(used(c.expr)) <= kept.keys()}
        alone = replace(model, witnesses={NAME: witness}, invariants=claims, lemmas={}, steps=steps, leads_to={})
        try:
            e = explore(alone, cti.sizes, ghosts=ghosts, liveness=False, deadlock=True, max_states=most)
        except UserError as error:
            why = str(error)
            continue
        apart = "" if ghosts or not model.ghosts else " (ghosts left aside)"
        if e.outcome == "violation" and e.trace is not None:
            return Reachability(f"{e.trace.claim} is false: broken in {_steps(e.trace)} at {at}{apart}", e.trace)
        way = e.witnesses.get(NAME)
        if way is not None:
            return Reachability(f"reachable at {at} in {_steps(way)}{apart}: the claim or the model is wrong", way)
        if e.outcome == "limit":
            return Reachability(f"not among the first {e.distinct:,} states at {at}{apart}; {e.limit}")
        return Reachability(
            f"not reachable at {at}{apart}, among all {e.distinct:,} states: the claim may be true and too weak to "
            "support itself; a lemma that excludes this state would help"
        )
    return Reachability(f"whether it is reachable at {at} could not be looked for: {why}")


def _steps(way: Trace) -> str:
    n = len(way.steps) - 1
    return f"{n} step{'s' if n != 1 else ''}"


def alike(model: LoadedModel, state: Mapping[str, Plain]) -> Expr:
    """The model is in this state, or in one that differs in the names of elements only."""
    names: dict[Sort, Expr] = {}

    def element(x: Sort) -> Expr:
        if x not in names:
            names[x] = bound(resolve(type(x)), x.name)
        return names[x]

    def value(t: T, v: Plain) -> Expr:
        match t.kind:
            case "sort":
                return element(v)
            case "option":
                return lift(None, t) if v is None else some(value(t.item, v))
            case "rec":
                return record(t, {n: value(ft, getattr(v, n)) for n, ft in t.fields})
        return lift(v, t)

    def equal(e: Expr, t: T, v: Plain) -> Expr:
        match t.kind:
            case "sort":
                return eq(e, element(v))
            case "option":
                return eq(e, None) if v is None else and_(not_(eq(e, None)), equal(unwrapped(e), t.item, v))
            case "map":
                return and_(*[equal(index(e, value(t.domain, k)), t.item, x) for k, x in v.items()])
            case "set":
                inside = [contains(value(t.item, x), e) for x in v]
                return and_(*inside, eq(length(e), len(v)))
            case "seq":
                places = [equal(index(e, i), t.item, x) for i, x in enumerate(v)]
                return and_(eq(length(e), len(v)), *places)
            case "rec":
                return and_(*[equal(field(e, n), ft, getattr(v, n)) for n, ft in t.fields])
        return eq(e, lift(v, t))

    body = and_(*[equal(node("var", t, aux=n), t, state[n]) for n, t in model.vars.items() if n in state])
    elements = list(names.items())
    apart = [not_(eq(b, c)) for i, (x, b) in enumerate(elements) for y, c in elements[:i] if type(x) is type(y)]
    found = and_(*apart, body)
    for _, b in elements:
        found = found if found is TRUE else node("exists", found.t, b, found)
    return found
