"""Faults of models, made one at a time from a model's graph, and whether a fault changes anything at all.

Of each action each guard is left out or negated, each effect left out, made the other branch's, or put on every key; a
comparison is strict where it was not, a number is off by one, another member stands for an enum's, another parameter
for one of the same type; a fairness condition is left out. `steps_beside` tells faults that change no step of the
system, of which no claim can tell, from those that do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from kafkaspec.language import LoadedModel, Update, show
from kafkaspec.language.defined import Need, assigned
from kafkaspec.language.expr import (
    BINDERS,
    FALSE,
    TRUE,
    Expr,
    and_,
    bound,
    eq,
    field,
    index,
    ite,
    node,
    not_,
    of_type,
    or_,
    replaced,
)
from kafkaspec.language.model import Action, Claim
from kafkaspec.language.substitute import substituted
from kafkaspec.language.types import BOOL, T, make


@dataclass(frozen=True)
class Fault:
    """One fault of one action. `name` says which, `what` is a sentence; `make` gives the faulty model."""

    name: str
    what: str
    action: Action
    make: Callable[[], LoadedModel]


def faults(model: LoadedModel) -> Iterator[Fault]:
    """Every fault of a model, action by action, each under a name of its own."""
    for n, a in enumerate(model.actions):
        taken: dict[str, int] = {}
        for name, what, change in _of_action(a, model):
            times = taken[name] = taken.get(name, 0) + 1
            whole = f"{model.name}.{a.name}: {name}" + (f" ({times})" if times > 1 else "")
            yield Fault(whole, what, a, partial(_changed, model, n, change))


def _changed(model: LoadedModel, n: int, change: Mapping[str, Any]) -> LoadedModel:
    actions = [*model.actions[:n], replace(model.actions[n], **change), *model.actions[n + 1 :]]
    return replace(model, actions=actions)


Change = tuple[str, str, Mapping[str, Any]]
"""A fault's name within its action, its sentence, and the fields of the action that are other than they were."""


def _of_action(a: Action, model: LoadedModel) -> Iterator[Change]:
    for i, condition in enumerate(a.guard):
        if i < len(a.drawn):
            continue  # that a drawn parameter is in its set

        def guarded(by: Expr, i: int = i) -> Mapping[str, Any]:
            return {"guard": [*a.guard[:i], by, *a.guard[i + 1 :]]}

        less = a.without_guard(i)
        yield f"no guard {i + 1}", f"without the guard {show(condition)}", {"guard": less.guard, "needs": less.needs}
        yield f"guard {i + 1} negated", f"not {show(condition)}", guarded(not_(condition))
        for kind, said, other in _variants(condition, a.params):
            yield f"guard {i + 1}, {kind}", said, guarded(other)
    for i, update in enumerate(a.updates):

        def effected(*by: Update, i: int = i) -> Mapping[str, Any]:
            needs = [*a.needs, *(n for u in by for n in _evaluates(u, len(a.guard), model.vars))]
            return {"updates": [*a.updates[:i], *by, *a.updates[i + 1 :]], "needs": needs}

        place = update.var + "".join(f"[{show(k)}]" for k in update.keys)
        yield f"no effect {i + 1}", f"without the effect on {place}", effected()
        if update.cond is not TRUE:
            unless = replace(update, cond=not_(update.cond))
            yield f"effect {i + 1}, other branch", f"{place} is changed unless {show(update.cond)}", effected(unless)
        t = model.vars[update.var]
        if update.keys and (of := assigned(t, update.keys[:-1])).kind == "map":
            every = effected(_on_all(update, of.domain))
            yield f"effect {i + 1}, every key", f"the effect on {place} is one on every key", every
        for kind, said, by in _update_variants(update, a.params, t):
            yield f"effect {i + 1}, {kind}", f"{place}: {said}", effected(by)
    if a.fair and model.leads_to:
        yield "not fair", f"without its {a.fair} fairness", {"fair": "", "per": ()}


def _update_variants(update: Update, params: Sequence[Expr], t: T) -> Iterator[tuple[str, str, Update]]:
    for kind, said, cond in _variants(update.cond, params):
        yield f"{kind} of its condition", said, replace(update, cond=cond)
    for i, key in enumerate(update.keys):
        if assigned(t, update.keys[:i]).kind == "rec":
            continue
        for kind, said, other in _variants(key, params):
            yield kind, said, replace(update, keys=(*update.keys[:i], other, *update.keys[i + 1 :]))
    if update.value.op == "const" and update.value.t is BOOL:
        other = FALSE if update.value is TRUE else TRUE
        yield "other value", f"{show(other)} for {show(update.value)}", replace(update, value=other)
    for kind, said, value in _variants(update.value, params):
        yield kind, said, replace(update, value=value)


def _evaluates(update: Update, guards: int, types: Mapping[str, T]) -> Iterator[Need]:
    """What a text with that update evaluates when its guard holds, as far as it may have no value."""
    place = node("var", types[update.var], aux=update.var)
    parts = [(TRUE, update.cond), (update.cond, update.value)]
    for k in update.keys:
        place = node("field", place.t.fields[k.aux][1], place, aux=k.aux) if place.t.kind == "rec" else index(place, k)
        parts.append((update.cond, place))
    for when, what in parts:
        need = Need(guards, when, what)
        if need.defined is not TRUE:
            yield need


def _on_all(update: Update, domain: T) -> Update:
    """The update of one key, on every key of that map."""
    whole = node("mapof", make("map", key=domain, elem=of_type(update.value)), bound(domain, "any"), update.value)
    return replace(update, keys=update.keys[:-1], value=whole)


# ---- variants of an expression ---------------------------------------------------------------------------------------
def _variants(e: Expr, params: Sequence[Expr]) -> Iterator[tuple[str, str, Expr]]:
    """The kind, the sentence and the whole of each expression that differs from `e` in one place."""
    for part in _parts(e):
        for kind, by in _others(part):
            yield kind, f"{show(by)} for {show(part)}", _with(e, part, by)
    for p in params:
        for q in params:
            if p is not q and p.t is q.t and p.aux in e.free:
                yield "other parameter", f"{show(q)} for {show(p)}", _with(e, p, q)


def _others(part: Expr) -> Iterator[tuple[str, Expr]]:
    """What may stand wrongly for one node."""
    a = part.args
    match part.op:
        case "lt" | "le" if not _limits(part):
            yield "off by one", node("le" if part.op == "lt" else "lt", BOOL, *a)
        case "add" | "sub" if a[1].op == "const":
            yield "off by one", a[0]
        case "ite":
            yield "branches swapped", node("ite", part.t, a[0], a[2], a[1])
        case "const" if part.t.kind == "enum" and part.t.cls is not None and len(list(part.t.cls)) > 1:  # type: ignore[call-overload]
            members = len(list(part.t.cls))  # type: ignore[call-overload]
            yield "other member", node("const", part.t, aux=(part.aux + 1) % members)
        case "const" if part.t.kind == "int":
            yield "off by one", node("const", part.t, aux=part.aux + 1)


def _limits(part: Expr) -> bool:
    """It is the limit of a comprehension's own variable, as in range(1, N): beyond it there is nothing."""
    return any(x.op == "bound" and not y.free and y.op in ("const", "size", "add", "sub") for x, y in _both(part))


def _both(part: Expr) -> Iterator[tuple[Expr, Expr]]:
    x, y = part.args
    yield x, y
    yield y, x


def _parts(e: Expr) -> list[Expr]:
    """The nodes of an expression, each once, outermost first; of a sum or comparison with a number not the number,
    which is off by one with it. The sides of an equation stand in the order of their making, which says nothing."""
    found: dict[int, Expr] = {}

    def walk(x: Expr) -> None:
        if x.id in found:
            return
        found[x.id] = x
        whole = x.op in ("add", "sub", "lt", "le")
        parts = sorted(x.args, key=show) if x.op == "eq" else x.args[1:] if x.op in BINDERS else x.args
        for y in parts:
            if not (whole and y.op == "const"):
                walk(y)

    walk(e)
    return list(found.values())


def _with(e: Expr, part: Expr, by: Expr) -> Expr:
    """`e` with `by` wherever `part` stands."""
    other = substituted(e, lambda x: by if x is part else None)
    other.loc = other.loc or e.loc
    return other


# ---- does a fault change a step? -------------------------------------------------------------------------------------
Steps = Literal["same", "fewer", "other"]
SAME = "the_same_steps"


def steps_beside(model: LoadedModel, other: LoadedModel, sizes: Mapping[str, int | bool]) -> Steps:
    """Whether at these sizes the other model makes the steps that the model makes, or fewer of them. A step that
    changes nothing is none. The other model is one that breaks no type at these sizes.

    A step is a function of the state before, so that it makes them is a claim on states. Where it holds in all that the
    model reaches, the other reaches no state that the model does not, by induction on the length of the way."""
    from kafkaspec.explore.engine import explore

    pairs = _pairs(model, other)
    nothing: dict[str, Any] = {}
    bare = replace(model, lemmas=nothing, steps=nothing, witnesses=nothing, leads_to=nothing)

    def holds(*claims: Expr) -> bool:
        asked = replace(bare, invariants={SAME: Claim(SAME, (), and_(*claims), "", model.initial.loc)})
        found = explore(asked, sizes, ghosts=True, liveness=False, deadlock=True)
        return bool(found.outcome == "complete" and SAME not in found.unchecked)

    def within(steps: Sequence[Action], other: LoadedModel) -> bool:
        """First by the action of that name alone, which is mostly enough."""
        ways = [[b for b in other.actions if b.name == a.name] for a in steps], [other.actions for _ in steps]
        return any(holds(*(_taken_by(model.vars, a, *by) for a, by in zip(steps, way, strict=True))) for way in ways)

    if pairs is None or not within([b for _, b in pairs], model):
        return "other"
    return "same" if within([a for a, _ in pairs], other) else "fewer"


def _pairs(model: LoadedModel, other: LoadedModel) -> list[tuple[Action, Action]] | None:
    """The actions of one name that are not alike; None if it is another system."""
    actions = {a.name: a for a in other.actions}
    if model.vars != other.vars or not alike(model.initial, other.initial):
        return None
    if actions.keys() != {a.name for a in model.actions}:
        return None
    return [(a, actions[a.name]) for a in model.actions if not alike(a, actions[a.name])]


def _taken_by(variables: Mapping[str, T], a: Action, *others: Action) -> Expr:
    """Whatever the first action does in a state, changes nothing or can be done by one of the others."""
    after = _after(variables, a)
    still = and_(*[_equal(node("var", t, aux=n), after[n]) for n, t in variables.items()])
    ways = [way for b in others for way in _ways(variables, a, after, _renamed(b))]
    e = or_(not_(and_(*a.guard)), still, *ways)
    for p in reversed(a.params):
        e = e if e.op == "const" else node("forall", BOOL, p, e)
    return e


def _ways(variables: Mapping[str, T], a: Action, after: Mapping[str, Expr], b: Action) -> Iterator[Expr]:
    """That b does the same, with the same arguments, or with some."""
    could = _after(variables, b)
    taken = and_(*b.guard, *[_equal(after[n], could[n]) for n in variables])
    if a.name == b.name and [p.t for p in a.params] == [p.t for p in b.params]:
        as_is = taken
        for p, q in zip(b.params, a.params, strict=True):
            as_is = _with(as_is, p, q)
        yield as_is
    for p in reversed(b.params):
        taken = taken if taken.op == "const" else node("exists", BOOL, p, taken)
    yield taken


def _renamed(a: Action) -> Action:
    """The action with parameters of its own."""
    params = [bound(p.t, a.parameter(p)) for p in a.params]

    def own(e: Expr) -> Expr:
        for p, q in zip(a.params, params, strict=True):
            e = _with(e, p, q)
        return e

    updates = [Update(u.var, tuple(map(own, u.keys)), own(u.cond), own(u.value)) for u in a.updates]
    return replace(a, params=params, guard=[own(g) for g in a.guard], updates=updates)


def _after(variables: Mapping[str, T], a: Action) -> dict[str, Expr]:
    """Each variable after the action, of the state before."""
    after: dict[str, Expr] = {n: node("var", t, aux=n) for n, t in variables.items()}
    for u in a.updates:
        value = _put(after[u.var], u.keys, u.value)
        after[u.var] = ite(u.cond, value, after[u.var])
    return after


def _put(old: Expr, keys: Sequence[Expr], value: Expr) -> Expr:
    """A map with another value at the keys."""
    if not keys:
        return value
    if old.t.kind == "rec":
        name = old.t.fields[keys[0].aux][0]
        return replaced(old, **{name: _put(field(old, name), keys[1:], value)})
    v = bound(old.t.domain, "key")
    at = _at(old, v)
    new = ite(eq(v, keys[0]), _put(at, keys[1:], value), at)
    return node("mapof", make("map", key=old.t.domain, elem=of_type(new)), v, new)


def _equal(x: Expr, y: Expr) -> Expr:
    """Equality, of maps key by key."""
    if x is y:
        return TRUE
    if x.t.kind != "map":
        return eq(x, y)
    v = bound(x.t.domain, "key")
    same = _equal(_at(x, v), _at(y, v))
    return same if same.op == "const" else node("forall", BOOL, v, same)


def _at(y: Expr, v: Expr) -> Expr:
    """`y[v]`, also of a map that a comprehension or a condition gives."""
    if y.op == "mapof":
        return _with(y.args[1], y.args[0], v)
    if y.op == "ite":
        a, b = _at(y.args[1], v), _at(y.args[2], v)
        return a if a is b else node("ite", a.t, y.args[0], a, b)
    return node("idx", y.t.item, y, v)


# ---- are two actions one? --------------------------------------------------------------------------------------------
def alike(a: Action, b: Action) -> bool:
    """They say the same; the names of what they bind may differ. (`==` on expressions makes an expression.)"""
    if (a.name, a.fair, a.per, len(a.params), len(a.guard), len(a.updates)) != (
        b.name, b.fair, b.per, len(b.params), len(b.guard), len(b.updates),
    ):  # fmt: skip
        return False
    names = {x.aux: y.aux for x, y in zip(a.params, b.params, strict=True) if x.t is y.t}
    if len(names) != len(a.params):
        return False
    pairs = list(zip(a.guard, b.guard, strict=True))
    for u, w in zip(a.updates, b.updates, strict=True):
        if u.var != w.var or len(u.keys) != len(w.keys):
            return False
        pairs += [*zip(u.keys, w.keys, strict=True), (u.cond, w.cond), (u.value, w.value)]
    return all(_says_the_same(x, y, names) for x, y in pairs)


def _says_the_same(x: Expr, y: Expr, names: dict[str, str]) -> bool:
    if x is y and not x.free:
        return True
    if x.op != y.op or x.t is not y.t or len(x.args) != len(y.args):
        return False
    if x.op == "bound":
        return bool(names.get(x.aux, x.aux) == y.aux)
    if x.aux != y.aux:
        return False
    if x.op in BINDERS:
        v, w = x.args[0], y.args[0]
        if v.t is not w.t:
            return False
        names = {**names, v.aux: w.aux}
    if x.op == "eq":  # its sides stand in the order of their making
        (a, b), (c, d) = x.args, y.args
        return (_says_the_same(a, c, names) and _says_the_same(b, d, names)) or (
            _says_the_same(a, d, names) and _says_the_same(b, c, names)
        )
    return all(_says_the_same(p, q, names) for p, q in zip(x.args, y.args, strict=True))
