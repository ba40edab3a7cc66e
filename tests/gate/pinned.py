"""The prover's formulas in single states: a state and an action's arguments are said to be these, and then each
obligation is either contradicted there or not, as the text says.

So a wrong formula is seen without a proof that rests on it. With sizes given, both directions must agree. Without,
what the text breaks must not be excluded; the other direction is the solver's luck.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import z3

from kafkaspec.language import LoadedModel, T
from kafkaspec.language.concrete import Concrete, State
from kafkaspec.language.defined import DEFINED
from kafkaspec.prove import obligations
from kafkaspec.prove.obligations import Setting
from kafkaspec.prove.reading import Reading
from kafkaspec.prove.symbols import Formula, Option, Value, both, either, negated, same
from tests.gate import oracle
from tests.gate.engines import Found
from tests.gate.oracle import Outcome, Space

STEPS = 1_000_000
"""Z3's resource units for a query: about a quarter of a second."""


def answer(formulas: list[Formula]) -> str:
    """Are the formulas satisfiable together? Asked apart from the prover's own ways to ask."""
    solver = z3.Solver()
    solver.set("rlimit", STEPS)
    solver.add(*formulas)
    return str(solver.check())


def element(r: Reading, t: T, name: str) -> Any:
    """A sort's element as a term."""
    i = int(name[1:])
    return z3.IntVal(i) if t.name in r.given else z3.Const(f"the {name}", r.sort(t))


def term(r: Reading, c: Concrete, t: T, v: Any) -> Any:
    """A value that is a key or an element, as the prover writes it. `v` as the text has it."""
    match t.kind:
        case "bool":
            return z3.BoolVal(v)
        case "range" | "int":
            return z3.IntVal(int(v))
        case "enum":
            assert t.cls is not None
            return (r.elements(t) or [])[list(t.cls).index(v)]  # type: ignore[call-overload]
        case "sort":
            return element(r, t, v.name)
        case "rec":
            return tuple(term(r, c, f, getattr(v, n)) for n, f in t.fields)
        case "option" if not r.is_partner(t):
            return r.first(t) if v is None else Option(z3.BoolVal(False), term(r, c, t.item, v))
    raise NotImplementedError(t)


def pins(r: Reading, c: Concrete, t: T, x: Value, v: Any) -> Formula:
    """That a symbolic value is this one of the text's."""
    match t.kind:
        case "option" if r.is_partner(t):
            return x.none if v is None else both([negated(x.none), x.has(element(r, t.item, v.name))])
        case "option":
            return x.none if v is None else both([negated(x.none), pins(r, c, t.item, x.value, v)])
        case "map":
            return both([pins(r, c, t.item, x(term(r, c, t.domain, k)), v[k]) for k in c.values(t.domain)])
        case "set":
            return both([same(x(term(r, c, t.item, y)), z3.BoolVal(y in v)) for y in c.values(t.item)])
        case "seq":
            cells = [pins(r, c, t.item, x.at(z3.IntVal(i)), y) for i, y in enumerate(v)]
            return both([same(x.length, z3.IntVal(len(v))), *cells])
        case "rec":
            return both([pins(r, c, f, y, getattr(v, n)) for (n, f), y in zip(t.fields, x, strict=True)])
    return same(x, term(r, c, t, v))


def world(r: Reading, c: Concrete) -> list[Formula]:
    """That the sizes are these."""
    out: list[Formula] = []
    for n, kind in r.model.sizes.items():
        if n in r.given:
            continue
        size = c.sizes[n]
        if kind != "sort":
            out.append(r.size(n) == size)
            continue
        sort = z3.DeclareSort(n)
        every = [z3.Const(f"the {n[0].lower()}{i}", sort) for i in range(int(size))]
        x = z3.Const("any", sort)
        out += [z3.Distinct(every)] if len(every) > 1 else []
        out += [z3.ForAll([x], z3.Or([x == y for y in every])), r.size(n) == size]
    return out


def compared(
    found: Found,
    m: LoadedModel,
    s: Space,
    states: list[State],
    sizes: Mapping[str, int | bool] | None,
    r: random.Random,
    most: int,
) -> None:
    """The prover's obligations in some transitions from states in which every claim holds."""
    engine = "pinned" if sizes is None else "pinned at sizes"
    c = s.concrete
    claims = [*m.invariants, *m.lemmas]
    todo: dict[tuple[str, bool], list[tuple[State, Outcome]]] = {}
    for state in states:
        if all(oracle.holds(c, n, state) for n in claims):
            for o in oracle.outcomes(c, state):
                if o.kind != "disabled":
                    todo.setdefault((o.action, o.kind == "after"), []).append((state, o))
    picked = [r.choice(some) for some in todo.values() for _ in range(2)]
    picked = r.sample(picked, min(most, len(picked)))
    settings: dict[tuple[str, bool], Setting] = {}
    with found.running(engine), c._running():
        for state, o in picked:
            for reached in (True, False):
                key = (o.action, reached)
                if key not in settings:
                    a = next(a for a in m.actions if a.name == o.action)
                    settings[key] = obligations.of_action(m, a, sizes or {}, lambda a, claim: True, reached=reached)
                _asked(found, engine, m, c, settings[key], state, o, sizes is not None)


def _asked(
    found: Found, engine: str, m: LoadedModel, c: Concrete, s: Setting, state: State, o: Outcome, exact: bool
) -> None:
    r = s.reading
    values = c._values(state)
    try:
        here = [pins(r, c, t, s.before.now[n], values[n]) for n, t in m.vars.items()]
        here += [pins(r, c, p.t, s.env[p.aux], o.arguments[s.action.parameter(p)]) for p in s.action.params]
    except NotImplementedError:
        found.counts[f"{engine}: no such pin"] += 1
        return
    broken: set[str] = set()
    if o.kind == "undefined":
        broken = {DEFINED}
    elif o.kind == "outside":
        broken = {*o.types}
    elif o.state is not None:
        broken = {n for n in [*m.invariants, *m.lemmas] if not oracle.holds(c, n, o.state)}
        broken |= {n for n in m.steps if not oracle.holds(c, n, state, o.state)}
    base = [*s.assumptions(), *s.not_empty, *here, *world(r, c)]
    goals: dict[str, list[Formula]] = {}
    for g in s.goals:
        goals.setdefault(g.claim, []).extend(negated(p.formula) for p in g.parts)
    said = f"after {o.action}({dict(o.arguments)}) in {c.show(state)} at {dict(c.sizes)}, the text: {o.kind} {o.why}"
    for claim in broken if s.has_value == (o.kind == "undefined") else set():
        found.counts[f"{engine}: broken"] += 1
        if claim not in goals:
            found.say(engine, "broken and not asked", f"{claim} {said}")
        elif (told := answer([*base, either(goals[claim])])) == "unsat":
            found.say(engine, "broken and excluded", f"{claim} {said}")
        else:
            found.counts[f"{engine}: broken, {told}"] += 1
    if not exact or (o.kind in ("undefined", "outside") and not s.has_value):
        return
    for claim in goals.keys() - broken:
        found.counts[f"{engine}: kept"] += 1
        if (told := answer([*base, either(goals[claim])])) == "sat":
            found.say(engine, "kept and contradicted", f"{claim} {said}")
        else:
            found.counts[f"{engine}: kept, {told}"] += 1
