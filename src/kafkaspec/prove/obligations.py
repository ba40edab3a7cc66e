"""What must be shown for an inductive invariant, as formulas: one setting for the start and one for each action.

In the start every claim must hold (initiation); from any state in which all claims hold, each action must lead to a
state in which each claim holds again (consecution). Invariants, lemmas and the types of the variables support each
other; a step property is shown of every action and supports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from kafkaspec.language import Action, Expr, LoadedModel
from kafkaspec.language.expr import node, not_, or_
from kafkaspec.prove.reading import ASSERTED, DENIED, Reading, World, _nodes
from kafkaspec.prove.symbols import Formula, Value, both, implies

Kind = Literal["invariant", "lemma", "type", "keys", "step"]
START = "(start)"
"""The name under which initiation is listed among the actions."""


@dataclass(frozen=True, eq=False)
class Part:
    """One query: what must follow, and instances of what is assumed that help to see it."""

    formula: Formula
    hints: tuple[Formula, ...] = ()


@dataclass
class Goal:
    """One obligation: a claim after one action, in parts that are shown one by one. No parts: the action changes
    nothing that the claim reads."""

    action: str
    claim: str
    kind: Kind
    clauses: tuple[str, ...]
    loc: tuple[str, int]
    parts: list[Part] = field(default_factory=list)


@dataclass
class Setting:
    """The start or one action, taken from an arbitrary state: what may be assumed, and what must be shown."""

    reading: Reading
    action: Action
    env: Mapping[str, Value]
    before: World
    after: World
    assumed: list[Formula]
    not_empty: list[Formula]
    """Assumed too, but kept apart: that sets are not empty helps few proofs and slows the others."""
    goals: list[Goal]
    claims: dict[str, Formula] = field(default_factory=dict)
    """What is assumed of each claim by itself, among `assumed`: a proof may tell which of them it used."""

    @property
    def name(self) -> str:
        return self.action.name if self.before.now else START

    def assumptions(self) -> list[Formula]:
        """Everything that may be assumed but `not_empty`."""
        return [*self.assumed, *self.reading.definitions, *self.reading.axioms(), *self.reading.sizes()]


def conjuncts(e: Expr) -> list[Expr]:
    """A claim in parts, all of which together say the same."""
    if e.op == "and":
        return [p for x in e.args for p in conjuncts(x)]
    if e.op == "forall":
        return [node("forall", e.t, e.args[0], p) for p in conjuncts(e.args[1])]
    if e.op == "or":
        parts = [conjuncts(x) for x in e.args]
        many = [i for i, p in enumerate(parts) if len(p) > 1]
        if len(many) == 1:
            rest = [x for i, x in enumerate(e.args) if i != many[0]]
            return [or_(*rest, p) for p in parts[many[0]]]
    if e.op == "eq" and e.args[0].t.kind == "bool" and any(x.op in ("forall", "exists") for x in _nodes(e)):
        a, b = e.args
        return [*conjuncts(or_(not_(a), b)), *conjuncts(or_(a, not_(b)))]
    return [e]


def _opened(e: Expr) -> tuple[list[Expr], Expr]:
    """The variables for all of whose values an expression is said, and what is said of them."""
    variables: list[Expr] = []
    beside: list[Expr] = []
    while True:
        if e.op == "forall":
            variables.append(e.args[0])
            e = e.args[1]
            continue
        inner = [x for x in e.args if x.op == "forall"] if e.op == "or" else []
        if len(inner) != 1:
            return variables, or_(*beside, e)
        beside += [x for x in e.args if x is not inner[0]]
        e = inner[0]


def _part(r: Reading, e: Expr, env: Mapping[str, Value], world: World, before: World | None) -> Part:
    """An expression as a query: of arbitrary values, of which what is to be shown is assumed of the state before."""
    variables, body = _opened(e)
    values = {v.aux: r.arbitrary(v) for v in variables}
    inside = {**env, **values}
    domain = both([r.limits(v.t, values[v.aux]) for v in variables])
    hints = () if before is None else (implies(domain, r.read(body, inside, before, ASSERTED)),)
    part = Part(implies(domain, r.read(body, inside, world, DENIED)), hints)
    r.forget(variables)
    return part


def reads(e: Expr) -> set[str]:
    """The variables that an expression reads."""
    return {x.aux for x in _nodes(e) if x.op in ("var", "nextvar")}


def settings(
    model: LoadedModel,
    given: Mapping[str, int | bool],
    only: Callable[[str, str], bool] = lambda action, claim: True,
) -> Iterator[Setting]:
    """The start, then every action, with the obligations for which `only(action, claim)` is true."""
    yield start(model, given, only)
    for a in model.actions:
        yield of_action(model, a, given, only)


def start(model: LoadedModel, given: Mapping[str, int | bool], only: Callable[[str, str], bool]) -> Setting:
    """The obligations of the first state."""
    r = Reading(model, given)
    first, assumed = r.start()
    out = Setting(r, model.initial, {}, World({}), World(first), assumed, [], [])
    _state_goals(out, None, only)
    return out


def of_action(
    model: LoadedModel, a: Action, given: Mapping[str, int | bool], only: Callable[[str, str], bool]
) -> Setting:
    """The obligations of one action, from any state in which every claim holds."""
    r = Reading(model, given)
    env, typed = r.parameters(a)
    before = World(r.state())
    assumed: list[Formula] = [typed, r.enabled(a, env, before)]
    not_empty: list[Formula] = []
    claims: dict[str, Formula] = {}
    for n, t in model.vars.items():
        for is_not_empty, f in r.typed(t, before.now[n]):
            (not_empty if is_not_empty else assumed).append(f)
    for c in [*model.lemmas.values(), *model.invariants.values()]:
        claims[c.name] = r.read(c.expr, env, before, ASSERTED)
        assumed.append(claims[c.name])
    after = World(r.taken(a, env, before))
    out = Setting(r, a, env, before, after, assumed, not_empty, [], claims)
    _state_goals(out, {u.var for u in a.updates}, only)
    for c in model.steps.values():
        if only(a.name, c.name):
            g = Goal(a.name, c.name, "step", c.clauses, c.loc)
            transition = World(before.now, after.now)
            g.parts = [_part(r, p, env, transition, None) for p in conjuncts(c.expr)]
            out.goals.append(g)
    for n, keys in r.keys_written(a, env, before).items():
        if only(a.name, f"keys of {n}"):
            out.goals.append(Goal(a.name, f"keys of {n}", "keys", a.clauses, a.loc, [Part(k) for k in keys]))
    return out


def _state_goals(s: Setting, changed: set[str] | None, only: Callable[[str, str], bool]) -> None:
    model, r = s.reading.model, s.reading
    for kind, claims in (("lemma", model.lemmas), ("invariant", model.invariants)):
        for c in claims.values():
            if only(s.name, c.name):
                g = Goal(s.name, c.name, kind, c.clauses, c.loc)  # type: ignore[arg-type]
                if changed is None or changed & reads(c.expr):
                    before = None if changed is None else s.before
                    g.parts = [_part(r, p, s.env, s.after, before) for p in conjuncts(c.expr)]
                s.goals.append(g)
    for n, t in model.vars.items():
        name = f"type of {n}"
        if only(s.name, name) and (r.typed(t, r.fresh(t, n)) or t.kind == "range"):
            g = Goal(s.name, name, "type", s.action.clauses, s.action.loc)
            if changed is None or n in changed:
                g.parts = [Part(f) for _, f in r.typed(t, s.after.now[n])]
            s.goals.append(g)
