"""Refinement: every step of a model is a step of a more abstract one, or changes nothing that the abstract one sees.

A refinement names the abstract model and a mapping, which says for each state which abstract state it shows. From these
come claims like any other, which the explorer checks, the prover shows and TLC reads: the mapping's values are of the
abstract variables' types (an invariant); a first state shows a first state (a claim about the start); a step shows a
step or stutters (a step property). That is a forward simulation, so what holds of every run of the abstract model holds
of what every run shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from kafkaspec.language import expr as x
from kafkaspec.language.defined import Need, Update, defined, fits, implies, typed
from kafkaspec.language.expr import FALSE, TRUE, Expr, ModelError, and_, bound, eq, ite, node, or_
from kafkaspec.language.substitute import at_key, substituted
from kafkaspec.language.types import BOOL, T, make

if TYPE_CHECKING:
    from kafkaspec.language.model import Action, LoadedModel


@dataclass(frozen=True)
class Refinement:
    """What a model refines: `mapping` gives each variable of the abstract model its value in a state."""

    name: str
    clauses: tuple[str, ...]
    abstract: LoadedModel
    mapping: Mapping[str, Expr]
    doc: str
    loc: tuple[str, int]

    def typed(self) -> Expr:
        """What the mapping shows is a state of the abstract model."""
        return and_(*[fits(e, self.abstract.vars[n]) for n, e in self.mapping.items()])

    def starts(self) -> Expr:
        """What the mapping shows is a first state of the abstract model, if it is a state of it."""
        first = {n: self.mapping[n] if no_first(t) else first_value(t) for n, t in self.abstract.vars.items()}
        return implies(self.typed(), self._taken(self.abstract.initial, first, self.mapping))

    @cached_property
    def ways(self) -> dict[str, Expr]:
        """What the mapping shows takes a step of the abstract model, by the action; or, under "", stays as it is."""
        after = {n: substituted(e, _primed) for n, e in self.mapping.items()}
        stutters = and_(*[eq(after[n], e) for n, e in self.mapping.items()])
        return {"": stutters} | {a.name: self._taken(a, self.mapping, after) for a in self.abstract.actions}

    def steps(self) -> Expr:
        """What the mapping shows takes a step of the abstract model, or stays as it is, if it is a state of it."""
        return implies(self.typed(), or_(*self.ways.values()))

    def _taken(self, a: Action, before: Mapping[str, Expr], after: Mapping[str, Expr]) -> Expr:
        """For some of its parameters the action leads from the one abstract state to the other. It leads nowhere where
        its text has no value, or leaves one that is of another type than its variable."""
        params = {p.aux: bound(p.t, a.parameter(p)) for p in a.params}

        def given(e: Expr) -> Expr | None:
            if e.op == "bound":
                return params.get(e.aux)
            return before[e.aux] if e.op == "var" else None

        needs = [Need(n.after, substituted(n.when, given), substituted(n.what, given)) for n in a.needs]
        guard: list[Expr] = []
        for i, g in enumerate([*(substituted(g, given) for g in a.guard), TRUE]):
            guard += [*[n.defined for n in needs if n.after == i], defined(g), g]
        updates = [
            Update(
                u.var,
                tuple(substituted(k, given) for k in u.keys),
                substituted(u.cond, given),
                substituted(u.value, given),
            )
            for u in a.updates
        ]
        partial = {u.var for u in updates if not u.value.total}
        types = self.abstract.vars
        asked = {n for n, t in types.items() if n in partial or fits(after[n], t) is not TRUE}
        guard += [f for _, f in typed([u for u in updates if u.var in asked], types)]
        parts = [
            becomes(t, [(u.cond, u.keys, u.value) for u in updates if u.var == n], before[n], after[n])
            for n, t in types.items()
        ]
        e = and_(*guard, *parts)
        chosen = [*params.values()]
        for p in reversed(params.values()):
            shown = [] if p.t.kind == "sort" else [s for u in updates if (s := _shown_in(u, p, updates, guard, after))]
            if not shown:
                continue
            there, value = shown[0]

            def named(y: Expr, p: Expr = p, value: Expr = value) -> Expr | None:
                return value if y is p else None

            e = and_(defined(value), there, fits(value, p.t), substituted(e, named))
            guard = [substituted(g, named) for g in guard]
            updates = [
                Update(u.var, tuple(substituted(k, named) for k in u.keys), u.cond, substituted(u.value, named))
                for u in updates
            ]
            chosen = [q for q in chosen if q is not p]
        for p in reversed(chosen):
            e = _for_some(p, e)
        return e


def _shown_in(
    u: Update, p: Expr, updates: list[Update], guard: list[Expr], after: Mapping[str, Expr]
) -> tuple[Expr, Expr] | None:
    """Where the update leaves the parameter's value in the state after, or as many elements as it says of a sequence
    that has them: a condition under which it stands there, and what stands there. If the action is taken with some
    value of the parameter, it is with that one and no other, so that nobody need look for it. A place that another
    update may overwrite, or that the parameter chooses, shows nothing; nor does a key that may be none, where nothing
    is left."""
    if u.cond is not TRUE or sum(w.var == u.var for w in updates) > 1 or any(p.aux in k.free for k in u.keys):
        return None
    then = after[u.var]
    for k in u.keys:
        if then.t.kind != "map" or not x.within(x.of_type(k), then.t.domain):
            return None
        then = at_key(then, k)
    if u.value is p:
        return TRUE, then
    if u.value.op == "append" and u.value.args[1] is p and p.aux not in u.value.args[0].free:
        n = x.length(u.value.args[0])
        return x.less(n, x.length(then)), node("at", then.t.item, then, x.number(n), aux="inside")
    if u.value.op == "take" and u.value.args[1] is p:
        there = x.less(p, x.length(u.value.args[0]), equal=True)
        return (TRUE, x.number(x.length(then))) if any(g is there for g in guard) else None
    return None


def _for_some(p: Expr, e: Expr) -> Expr:
    """For some value of the parameter. Let it be a set of any elements of its type, of which e asks one by one: e is,
    in part, that for each element k something holds that looks at nothing of the set but whether k is in it. Then there
    is such a set iff for each k that holds of its being in the set or of its being out of it. Parts change their order,
    so each must have a value whatever the others say."""
    free = p.t.kind == "set" and p.t.hi is None and not p.t.nonempty
    parts = [_key_by_key(c) for c in _conjuncts(e)]
    asked = [c for c in parts if p.aux in c.free]
    if not free or not e.total or any(c.op != "forall" or c.args[0].t is not p.t.item for c in asked):
        return exists(p, e)
    k = bound(p.t.item, "k")

    def each(inside: Expr) -> Expr:
        def given(c: Expr) -> Callable[[Expr], Expr | None]:
            v = c.args[0]

            def at(y: Expr) -> Expr | None:
                asks = y.op == "in" and y.args[0] is v and y.args[1] is p
                return inside if asks else k if y is v else None

            return at

        return and_(*[substituted(c.args[1], given(c)) for c in asked])

    either = or_(each(TRUE), each(FALSE))
    if p.aux in either.free:
        return exists(p, e)
    return and_(*[c for c in parts if p.aux not in c.free], node("forall", BOOL, k, either))


def exists(p: Expr, e: Expr) -> Expr:
    """e for some value of a parameter: of one that may be None, for None or for some value that is there."""
    if e is FALSE:
        return e
    if p.t.kind == "option":
        there = bound(p.t.item, "there")
        none, some = (
            substituted(e, lambda y, v=v: v if y is p else None)  # type: ignore[misc]
            for v in (node("none", p.t), x.lift(there, p.t))
        )
        return or_(none, exists(there, some))
    return node("exists", BOOL, p, e)


def _key_by_key(e: Expr) -> Expr:
    """The same; of two maps that are equal, that their values are, for each key."""
    if e.op != "eq" or e.args[0].t.kind != "map":
        return e
    k = bound(e.args[0].t.domain, "k")
    return node("forall", BOOL, k, eq(*[at_key(m, k) for m in e.args]))


def _conjuncts(e: Expr) -> list[Expr]:
    return [c for a in e.args for c in _conjuncts(a)] if e.op == "and" else [e]


def _primed(e: Expr) -> Expr | None:
    return node("nextvar", e.t, aux=e.aux) if e.op == "var" else None


def no_first(t: T) -> str:
    """Why a variable of the type must be assigned in @initial; "" if it has a first value."""
    match t.kind:
        case "sort":
            return "an element of a sort has no first value"
        case "set" if t.nonempty:
            return "a set that is never empty has no first value"
        case "map":
            return no_first(t.item)
        case "rec":
            return next((why for _, f in t.fields if (why := no_first(f))), "")
    return ""


def first_value(t: T) -> Expr:
    """The value of a variable that @initial does not assign. Raises ModelError for a sort, which has none."""
    match t.kind:
        case "bool":
            return FALSE
        case "enum":
            return node("const", t, aux=0)
        case "range":
            inside = and_(x.less(t.lo, 0, equal=True), TRUE if t.hi is None else x.less(0, t.hi, equal=True))
            return x.number(ite(inside, 0, x.number(t.lo)))
        case "option":
            return node("none", t)
        case "set":
            return node("empty", make("set", elem=t.item, hi=None if t.hi is None else 0))
        case "seq":
            return node("emptyseq", make("seq", elem=t.item, hi=0))
        case "map":
            value = first_value(t.item)
            return node("mapof", make("map", elem=x.of_type(value), key=t.domain), bound(t.domain, "k"), value)
        case "rec":
            return node("rec", t, *[first_value(f) for _, f in t.fields])
    raise ModelError(f"a value of type {t!r} has no first value")


def becomes(t: T, updates: list[tuple[Expr, tuple[Expr, ...], Expr]], now: Expr, then: Expr) -> Expr:
    """`then` is what the updates (condition, keys, value) make of `now`, of type t."""
    if not any(keys for _, keys, _ in updates):
        value = now
        for cond, _, new in updates:
            value = x.lift(ite(cond, new, value), t)
        return eq(then, value)
    if t.kind == "rec":
        return and_(
            *[
                becomes(
                    ft,
                    [
                        (c, keys[1:], v) if keys else (c, (), x.field(v, n))
                        for c, keys, v in updates
                        if not keys or keys[0].aux == i
                    ],
                    x.field(now, n),
                    x.field(then, n),
                )
                for i, (n, ft) in enumerate(t.fields)
            ]
        )
    if t.kind == "seq":
        i = bound(make("range", lo=0, hi=x.last_index(t)), "i")
        at = [node("at", q.t.item, q, i, aux="inside") for q in (now, then)]
        each = becomes(t.item, [(and_(c, eq(keys[0], i)), keys[1:], v) for c, keys, v in updates], at[0], at[1])
        same = eq(x.length(now), x.length(then))
        return and_(same, node("forall", BOOL, i, or_(x.not_(x.less(i, x.length(now))), each)))
    k = bound(t.domain, "k")
    here = [(and_(c, eq(keys[0], k)), keys[1:], v) if keys else (c, (), at_key(v, k)) for c, keys, v in updates]
    return node("forall", BOOL, k, becomes(t.item, here, at_key(now, k), at_key(then, k)))


def mapped(abstract: LoadedModel, values: Mapping[str, object]) -> dict[str, Expr]:
    """The values that a mapping gives the abstract model's variables. Raises ModelError unless it names each once."""
    wrong: Iterable[str] = sorted(values.keys() ^ abstract.vars.keys())
    for n in wrong:
        what = "is given no value" if n in abstract.vars else f"is no variable of {abstract.name}"
        raise ModelError(f"{n} {what}")
    return {n: x.lift(values[n], t) for n, t in abstract.vars.items()}
