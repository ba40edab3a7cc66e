"""What must be shown for an inductive invariant, as formulas: one setting for the start and one for each action.

In the start every claim must hold (initiation); from any state in which all claims hold, each action must lead to a
state in which each claim holds again (consecution). Invariants, lemmas and the types of the variables support each
other; a step property is shown of every action and supports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Literal

from kafkaspec.language import Action, Expr, LoadedModel, T
from kafkaspec.language.defined import DEFINED, defined
from kafkaspec.language.expr import and_, or_
from kafkaspec.language.obvious import essential
from kafkaspec.language.parts import kept, used, variables
from kafkaspec.language.refine import Refinement
from kafkaspec.prove.reading import ASSERTED, DENIED, Reading, World, conjuncts
from kafkaspec.prove.solver import SharedSolver
from kafkaspec.prove.symbols import Formula, Value, both, implies

Kind = Literal["invariant", "lemma", "type", "defined", "step", "start"]
START = "(start)"
"""The name under which initiation is listed among the actions."""


@dataclass(frozen=True, eq=False)
class Part:
    """One query: what must follow, and instances of what is assumed that help to see it."""

    formula: Formula
    hints: tuple[Formula, ...] = ()


@dataclass
class Goal:
    """One obligation: a claim after one action, or that the action's text has a value, or that what it leaves is of
    its type; in parts that are shown one by one. No parts: the action changes nothing that the claim reads, or its form
    shows that the type is kept."""

    action: str
    claim: str
    kind: Kind
    clauses: tuple[str, ...]
    loc: tuple[str, int]
    parts: list[Part] = field(default_factory=list)
    shows: Refinement | None = None
    """The goal is of a refinement's step, and that part is left to `ways`."""


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
    """Assumed too, but kept apart: that sets are not empty, and that claims have a value, helps few proofs and slows
    the others."""
    goals: list[Goal]
    claims: dict[str, list[Formula]] = field(default_factory=dict)
    """What is assumed of each claim by itself, that it is true and has a value: a proof may tell what it used."""
    shared: SharedSolver = field(default_factory=SharedSolver)
    """Has read what is assumed, and tries each goal first."""
    numbers: Set[int] = frozenset()
    """Of the assumptions, those about numbers of elements and majorities, by Z3's numbers of formulas."""
    _known: tuple[object, list[Formula]] = (None, [])

    @property
    def name(self) -> str:
        return self.action.name if self.before.now else START

    @property
    def has_value(self) -> bool:
        """Are the obligations those that the text has a value?"""
        return self.after is self.before

    @property
    def named(self) -> dict[str, Formula]:
        """What is assumed of the claims, by name: "claim" that it is true, "claim#1" and so on that it has a value."""
        return {f"{n}#{i}" if i else n: f for n, parts in self.claims.items() for i, f in enumerate(parts)}

    def assumptions(self) -> list[Formula]:
        """Everything that may be assumed but `not_empty`: the same list until more has been read."""
        r = self.reading
        read = (len(self.assumed), *r.extent())
        if self._known[0] != read:
            axioms = r.axioms()
            self._known = (read, [*self.assumed, *r.definitions, *axioms, *r.sizes()])
            self.numbers = {f.get_id() for f in axioms} - {f.get_id() for f in r.axioms_read().values()}
        return self._known[1]


def _opened(e: Expr) -> tuple[list[Expr], Expr]:
    """The variables for all of whose values an expression is said, and what is said of them."""
    variables: list[Expr] = []
    beside: list[Expr] = []
    while True:
        e = kept(e)
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


@dataclass(frozen=True)
class _Read:
    """What was read of the state before: formulas, the axioms of the variables in them, and the sorts of whose elements
    in the action's parameters it would have made use. `apart`: another reading cannot have it, as it speaks of
    something that was made up."""

    formulas: Any
    axioms: Mapping[str, Formula]
    looked_at: Set[str]
    apart: bool


class _State:
    """What is assumed of the state before any action of a model, at some sizes. Variables have the same names in every
    reading, so that formulas about them alone are made once for all actions."""

    def __init__(self, model: LoadedModel, given: Mapping[str, int | bool]) -> None:
        self.model, self.given = model, given
        self.found: dict[int | str, _Read] = {}
        self._begin()

    def _begin(self) -> None:
        self.reading = Reading(self.model, self.given)
        self.before = World(self.reading.state())

    def typed(self, r: Reading, n: str, before: World) -> list[tuple[bool, Formula]]:
        """What a variable's type says of it, for another reading."""

        def read(reading: Reading, world: World) -> list[tuple[bool, Formula]]:
            return list(reading.typed(self.model.vars[n], world.now[n]))

        formulas: list[tuple[bool, Formula]] = self._once(r, before, n, read)
        return formulas

    def read(self, r: Reading, e: Expr, before: World) -> Formula:
        """What is assumed without parameters, for another reading."""
        return self._once(r, before, e.id, lambda reading, world: reading.read(e, {}, world, ASSERTED))

    def _once(self, r: Reading, before: World, key: int | str, read: Callable[[Reading, World], Any]) -> Any:
        hit = self.found.get(key)
        if hit is None:
            own = self.reading
            formulas = read(own, self.before)
            hit = self.found[key] = _Read(formulas, dict(own.axioms_read()), own.looked_at, own.has_made_up())
            if hit.apart or hit.looked_at:
                self._begin()  # nothing of it is to come back within what is read next
        if hit.apart or any(r.constants.get(n) for n in hit.looked_at):
            return read(r, before)
        for n, f in hit.axioms.items():
            r.axioms_read().setdefault(n, f)
        return hit.formulas


MOST_STATES = 16
"""What was read of the state before is kept for at most 16 models and sizes."""
_states: dict[tuple[int, frozenset[tuple[str, int | bool]]], _State] = {}


def _known(model: LoadedModel, given: Mapping[str, int | bool]) -> _State:
    """What was read of the state before."""
    key = (id(model), frozenset(given.items()))
    state = _states.pop(key, None) or _State(model, given)
    _states[key] = state  # the newest is the last
    if len(_states) > MOST_STATES:
        del _states[next(iter(_states))]
    return state


Only = Callable[[str, str], bool]


def settings(
    model: LoadedModel,
    given: Mapping[str, int | bool],
    only: Only = lambda action, claim: True,
    apart: bool = False,
) -> Iterator[Setting]:
    """The start, then every action, with the obligations for which `only(action, claim)` is true: first that its text
    has a value, then what holds after it. What has none of these obligations is not read. `apart`: steps of refinements
    are left to `ways`."""
    for name in [START, *[a.name for a in model.actions]]:
        if only(name, DEFINED):
            before = setting(model, name, given, only, reached=True)
            if before.goals:
                yield before
        if any(only(name, claim) for claim in _claims_after(model, name)):
            yield setting(model, name, given, only, apart=apart)


def _claims_after(model: LoadedModel, action: str) -> list[str]:
    """What may have to be shown after the start or an action."""
    more = model.starts if action == START else model.steps
    return [*model.lemmas, *model.invariants, *more, *map(_type_of, model.vars)]


def _type_of(variable: str) -> str:
    return f"type of {variable}"


def setting(
    model: LoadedModel,
    action: str,
    given: Mapping[str, int | bool],
    only: Only,
    *,
    reached: bool = False,
    apart: bool = False,
) -> Setting:
    """The obligations of the start or an action; `reached`: that its text has a value, and no others."""
    if action == START:
        return start(model, given, only, reached=reached)
    a = next(a for a in model.actions if a.name == action)
    return of_action(model, a, given, only, reached=reached, apart=apart)


def start(model: LoadedModel, given: Mapping[str, int | bool], only: Only, *, reached: bool = False) -> Setting:
    """The obligations of the first state; `reached`: those that its text has a value."""
    r = Reading(model, given)
    env, typed = r.parameters(model.initial)
    nothing = r.nothing_yet()
    here = World({})
    out = Setting(r, model.initial, env, here, here, [typed], [], [])
    if reached:
        _need_goals(out, nothing, only)
        return out
    out.assumed += [r.enabled(model.initial, env, nothing), *_needed(out, nothing)]
    out.after = World(r.taken(model.initial, env, nothing))
    _state_goals(out, None, nothing, only)
    return out


def of_action(
    model: LoadedModel,
    a: Action,
    given: Mapping[str, int | bool],
    only: Only,
    *,
    reached: bool = False,
    apart: bool = False,
) -> Setting:
    """The obligations of one action, from any state in which every claim holds; `reached`: those that its text has a
    value."""
    r = Reading(model, given)
    env, typed = r.parameters(a)
    before = World(r.state())
    out = Setting(r, a, env, before, before, [typed], [], [])
    if not reached:
        out.assumed.append(r.enabled(a, env, before))
    known = _known(model, given)
    for n in model.vars:
        for is_not_empty, f in known.typed(r, n, before):
            (out.not_empty if is_not_empty else out.assumed).append(f)
    out.assumed += [known.read(r, e, before) for e in r.few()]
    for c in [*model.lemmas.values(), *model.invariants.values()]:
        there = [known.read(r, p, before) for p in has_value(c.expr)]
        true = known.read(r, c.expr, before)
        out.not_empty += there
        out.assumed.append(true)
        out.claims[c.name] = [true, *there]
    if reached:
        _need_goals(out, before, only)
        return out
    out.assumed += _needed(out, before)
    out.after = World(r.taken(a, env, before))
    _state_goals(out, {u.var for u in a.updates}, before, only)
    for c in model.steps.values():
        if only(a.name, c.name):
            g = Goal(a.name, c.name, "step", c.clauses, c.loc)
            if apart and (of := model.refinements.get(c.name)) is not None and of.steps() is c.expr:
                g.shows = of
            true = conjuncts(c.expr) if g.shows is None else []
            g.parts = [part_of(out, p) for p in [*has_value(c.expr), *true]]
            out.goals.append(g)
    return out


def part_of(s: Setting, e: Expr) -> Part:
    """What is said of an action's step, as a query."""
    return _part(s.reading, e, s.env, World(s.before.now, s.after.now), None)


_valued: dict[int, list[Expr]] = {}


def has_value(claim: Expr) -> list[Expr]:
    """That a claim has a value, in parts; what its form shows is left out."""
    if claim.id not in _valued:
        _valued[claim.id] = essential(conjuncts(defined(claim)))
    return _valued[claim.id]


def _needed(s: Setting, before: World) -> list[Formula]:
    """That the action's text has a value, which is an obligation of its own: where sizes are given, it keeps
    counterexamples to others apart from it. Where they are not, it follows from what is assumed."""
    return s.reading.needs(s.action, s.env, before, ASSERTED) if s.reading.finite else []


def _need_goals(s: Setting, before: World, only: Only) -> None:
    if only(s.name, DEFINED):
        parts = [Part(f) for f in s.reading.needs(s.action, s.env, before)]
        if parts:
            s.goals.append(Goal(s.name, DEFINED, "defined", s.action.clauses, s.action.loc, parts))


def _limited(t: T) -> bool:
    """Are there values of the type's shape that are none of the type?"""
    match t.kind:
        case "range" | "seq":
            return True
        case "set":
            return t.nonempty or t.hi is not None or _limited(t.item)
        case "option" | "map":
            return _limited(t.item)
        case "rec":
            return any(_limited(ft) for _, ft in t.fields)
    return False


def _state_goals(s: Setting, changed: set[str] | None, before: World, only: Only) -> None:
    model, r = s.reading.model, s.reading
    of_start = model.starts if changed is None else {}
    for kind, claims in (("lemma", model.lemmas), ("invariant", model.invariants), ("start", of_start)):
        for c in claims.values():
            if only(s.name, c.name):
                g = Goal(s.name, c.name, kind, c.clauses, c.loc)  # type: ignore[arg-type]
                every = and_(*has_value(c.expr), c.expr)
                if changed is None or changed & variables(used(every)):
                    hinted = None if changed is None else s.before
                    g.parts = [_part(r, p, s.env, s.after, hinted) for p in conjuncts(every)]
                s.goals.append(g)
    fits = r.fits(s.action, s.env, before)
    for n, t in model.vars.items():
        name = _type_of(n)
        if only(s.name, name) and (_limited(t) or n in fits):
            s.goals.append(
                Goal(s.name, name, "type", s.action.clauses, s.action.loc, [Part(f) for f in fits.get(n, [])])
            )
