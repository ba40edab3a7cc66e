"""Counterexamples to induction: two states, as small as can be found, one action apart.

The claims hold in the first, one of them fails in the second. They are looked for at given small sizes, where formulas
have no quantifiers, and believed only when the model's own text, run on the concrete states, says the same.
"""

from __future__ import annotations

import enum
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from kafkaspec.errors import UserError
from kafkaspec.language import Action, Expr, LoadedModel, T, Trace, TraceStep, load
from kafkaspec.language.concrete import Concrete, OutsideType, Undefined, element
from kafkaspec.language.expr import join, of_type
from kafkaspec.language.trace import Value as Shown
from kafkaspec.language.types import make
from kafkaspec.prove import obligations
from kafkaspec.prove.obligations import Goal, Setting
from kafkaspec.prove.reading import Reading
from kafkaspec.prove.solver import Budget
from kafkaspec.prove.symbols import State, Term, Value, either, negated

LEVELS = (1, 2, 3, 4)
"""Sizes that are tried for every sort and size together, before each is made smaller by itself."""

Needed = frozenset[str]
"""The claims that exclude a counterexample at some sizes."""
LEAST_SHARE_S = 0.5
"""Of the budget, for one size: making the formulas takes as long."""
FEW = {"smt.core.minimize": True}
"""The claims that exclude a counterexample are told without those that are not wanted beside the others."""
Plain = Any
"""A model value in Python's own shapes: dict, set, list, dataclass, enum member, element of a Sort."""


@dataclass(frozen=True)
class Counterexample:
    """A counterexample to induction. In the start, `before` is None."""

    sizes: Mapping[str, int | bool]
    action: Action
    arguments: Mapping[str, Plain]
    before: Mapping[str, Plain] | None
    after: Mapping[str, Plain]

    def trace(self, model: LoadedModel, goal: Goal) -> Trace:
        """As reports print it."""

        def shown(s: Mapping[str, Plain]) -> dict[str, Shown]:
            return {n: show(t, s[n]) for n, t in model.vars.items() if n in s}

        arguments = {
            a: show(p.t, self.arguments[a])
            for p in self.action.params
            if (a := self.action.parameter(p)) in self.arguments
        }
        last = TraceStep(
            self.action.name if self.before is not None else "",
            self.action.who,
            self.action.clauses,
            arguments,
            shown(self.after),
        )
        steps = (last,) if self.before is None else (TraceStep("", "", (), {}, shown(self.before)), last)
        return Trace(model.name, dict(self.sizes), "cti", goal.claim, goal.clauses, steps)


def find(
    model: LoadedModel,
    goal: Goal,
    fixed: Mapping[str, int | bool],
    budget: Budget,
    share_s: float,
    levels: tuple[int, ...] = LEVELS,
) -> Counterexample | Needed | None:
    """The smallest counterexample to the goal that is found within the budget, each size having its share. Else the
    claims that exclude one at the sizes that were searched to the end, or None if none was."""
    names = model.open_sizes(fixed)
    needed: Needed | None = None
    for level in levels if names else levels[:1]:
        sizes = dict(fixed) | dict.fromkeys(names, level)
        found = at_sizes(model, goal, sizes, budget, share_s)
        if not isinstance(found, Counterexample):
            needed = found if needed is None else needed | (found or Needed())
            continue
        smaller = True
        while smaller:  # each size by itself, as long as there still is one
            smaller = False
            for n in names:
                if sizes[n] == 1 or budget.over:
                    continue
                less = at_sizes(model, goal, sizes | {n: sizes[n] - 1}, budget, share_s)
                if isinstance(less, Counterexample):
                    sizes[n], found, smaller = sizes[n] - 1, less, True
        return found
    return needed


def at_sizes(
    model: LoadedModel, goal: Goal, sizes: Mapping[str, int | bool], budget: Budget, share_s: float
) -> Counterexample | Needed | None:
    """A counterexample at these sizes that the model's text confirms; or the claims that exclude one; or None."""
    if budget.over:
        return None
    wanted = lambda a, c: (a, c) == (goal.action, goal.claim)  # noqa: E731
    s = obligations.setting(model, goal.action, sizes, wanted, reached=goal.kind == "defined")
    if not s.goals:
        return None  # at these sizes the form alone shows it
    (g,) = s.goals
    claims = {n: f for n, f in s.named.items() if not z3.is_true(f)}
    named = {f.get_id() for f in claims.values()}
    others = [f for f in [*s.assumptions(), *s.not_empty] if f.get_id() not in named]
    denied = either([negated(p.formula) for p in g.parts])
    asked = budget.ask([*others, denied], max(share_s, LEAST_SHARE_S), FEW, claims)
    if asked.answer == "unsat":
        return asked.core
    return _read(model, s, goal, sizes, asked.model) if asked.model is not None else None


def _read(
    model: LoadedModel, s: Setting, goal: Goal, sizes: Mapping[str, int | bool], z: z3.ModelRef
) -> Counterexample | None:
    r = s.reading
    flags = {
        n: bool(z3.is_true(z.eval(r.size(n), model_completion=True)))
        for n, kind in model.sizes.items()
        if kind == "flag" and n not in sizes
    }
    sizes = dict(sizes) | flags
    before = plain_state(r, z, s.before.now) if s.before.now else None
    wide = widened(model.vars, [s.action])
    after = {n: plain(r, z, wide[n], v) for n, v in s.after.now.items()}
    arguments = {s.action.parameter(p): plain(r, z, p.t, s.env[p.aux]) for p in s.action.params if p.aux in s.env}
    if not confirmed(model, sizes, goal, before, arguments):
        return None
    return Counterexample(sizes, s.action, arguments, before, after)


def confirmed(
    model: LoadedModel,
    sizes: Mapping[str, int | bool],
    goal: Goal,
    before: Mapping[str, Plain] | None,
    arguments: Mapping[str, Plain],
) -> bool:
    """Does the model's text, run on these states, break the goal?"""
    if load(model.cls) is not model:
        return True  # a variant of the graph that has no text
    c = Concrete(model.cls, sizes, ghosts=True)
    about_action = goal.kind in ("type", "defined")
    wrong = {"type": OutsideType, "defined": Undefined}.get(goal.kind)

    def broken(state: Any, after: Any = None) -> bool:
        try:
            return not c.holds(goal.claim, state, after)
        except Undefined:
            return True  # a claim must have a value, too

    try:
        if before is None:
            starts = c.initial_states()
            return not about_action and any(map(broken, starts))
        state = c.freeze(before)
        if not all(c.holds(n, state) for n in [*model.lemmas, *model.invariants]):
            return False
        after = c.take(state, goal.action, arguments)
        if after is None or about_action:
            return False
        return broken(state, after) if goal.kind == "step" else broken(after)
    except UserError as e:  # also where an abstract action has more choices than can be listed
        return wrong is not None and isinstance(e, wrong)


def plain_state(r: Reading, z: z3.ModelRef, s: State) -> dict[str, Plain]:
    """A state of a Z3 model in Python's shapes."""
    return {n: plain(r, z, t, s[n]) for n, t in r.model.vars.items()}


def plain(r: Reading, z: z3.ModelRef, t: T, v: Value) -> Plain:
    """A value of a Z3 model in Python's shapes. Only at given sizes."""
    match t.kind:
        case "option":
            return None if z3.is_true(_eval(z, v.none)) else plain(r, z, t.item, v.value)
        case "map":
            keys = r.elements(t.domain) or []
            return {plain(r, z, t.domain, k): plain(r, z, t.item, v(k)) for k in keys}
        case "set":
            return {plain(r, z, t.item, x) for x in r.elements(t.item) or [] if z3.is_true(_eval(z, v(x)))}
        case "seq":
            length = _eval(z, v.length).as_long()
            return [plain(r, z, t.item, v.at(z3.IntVal(i))) for i in range(length)]
        case "rec":
            assert t.cls is not None
            return t.cls(**{n: plain(r, z, ft, x) for (n, ft), x in zip(t.fields, v, strict=True)})
    x = _eval(z, v)
    match t.kind:
        case "bool":
            return bool(z3.is_true(x))
        case "enum":
            names = [str(m) for m in r.elements(t) or []]
            return list(typing.cast(type[enum.Enum], t.cls))[names.index(str(x))]
        case "sort":
            return element(typing.cast(Any, t.cls), x.as_long())
    return x.as_long()


def _eval(z: z3.ModelRef, x: Term) -> Term:
    return z.eval(x, model_completion=True)


def widened(types: Mapping[str, T], actions: Iterable[Action]) -> dict[str, T]:
    """The types of what actions leave in variables, where that may be none of the variable's own type: to show it."""

    def put(t: T, keys: Sequence[Expr], new: T) -> T:
        if not keys:
            return join(t, new)
        if t.kind == "rec":
            i = keys[0].aux
            fields = [(n, put(ft, keys[1:], new) if j == i else ft) for j, (n, ft) in enumerate(t.fields)]
            return make("rec", t.name, cls=t.cls, fields=tuple(fields))
        return make(t.kind, elem=put(t.item, keys[1:], new), key=t.key, hi=t.hi)

    out = dict(types)
    for a in actions:
        for u in a.updates:
            out[u.var] = put(out[u.var], u.keys, of_type(u.value))
    return out


def show(t: T, v: Plain) -> Shown:
    """A value in JSON's shapes."""
    match t.kind:
        case "option":
            return None if v is None else show(t.item, v)
        case "map":
            return {str(show(t.domain, k)): show(t.item, x) for k, x in v.items()}
        case "set":
            return sorted((show(t.item, x) for x in v), key=str)
        case "seq":
            return [show(t.item, x) for x in v]
        case "rec":
            return {n: show(ft, getattr(v, n)) for n, ft in t.fields}
        case "enum" | "sort":
            return v.name
    return v


def every_size(model: LoadedModel, fixed: Mapping[str, int | bool]) -> Iterator[dict[str, int | bool]]:
    """The sizes that are tried, smallest first."""
    for level in LEVELS:
        yield dict(fixed) | dict.fromkeys(model.open_sizes(fixed), level)
