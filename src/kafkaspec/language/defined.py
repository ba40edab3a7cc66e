"""Where an expression has a value, and whether a value is of a type: the one answer that every engine asks for.

Both answers are expressions of the language, so that the explorer compiles them, the prover shows them, and the exports
write them as they do anything else. They follow the text as Python runs it: `and`, `or`, `if` and a comprehension's
conditions guard what stands behind them; `all` and `any` ask every element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafkaspec.language.expr import (
    FALSE,
    TRUE,
    Expr,
    and_,
    at_most,
    bound,
    contains,
    eq,
    has_values,
    index,
    last_index,
    length,
    less,
    limits,
    node,
    not_,
    of_type,
    or_,
    unwrapped,
    within,
)
from kafkaspec.language.substitute import stripped
from kafkaspec.language.types import BOOL, T, make

DEFINED = "defined"
"""The claim that whatever an action evaluates has a value. No claim of a text is called so."""

_defined: dict[int, Expr] = {}


def implies(p: Expr, q: Expr) -> Expr:
    """If p then q."""
    return or_(not_(p), q)


def every(v: Expr, p: Expr) -> Expr:
    """p for every value of a bound variable."""
    return p if p is TRUE or (v.aux not in p.free and has_values(v.t)) else node("forall", BOOL, v, p)


def defined(e: Expr) -> Expr:
    """Has `e` a value? The answer itself always has one."""
    if e.total:
        return TRUE
    known = _defined.get(e.id)
    if known is None:
        known = _defined[e.id] = stripped(_condition(e))
    return known


def _condition(e: Expr) -> Expr:
    a = e.args
    match e.op:
        case "and" | "or":
            return in_turn(a, e.op == "and")
        case "ite":
            return and_(defined(a[0]), implies(a[0], defined(a[1])), or_(a[0], defined(a[2])))
        case "forall" | "exists" | "count" | "setof" | "mapof":
            return every(a[0], defined(a[1]))
        case "sum" | "image" | "greatest" | "least":
            each = every(a[0], and_(defined(a[1]), implies(a[1], defined(a[2]))))
            rest = [defined(x) for x in a[3:]]
            if e.op in ("greatest", "least") and not rest:
                rest = [node("exists", BOOL, a[0], a[1])]
            return and_(each, *rest)
    return and_(*map(defined, a), _itself(e))


def in_turn(parts: Iterable[Expr], go_on: bool = True) -> Expr:
    """Are these defined, one after the other, as long as each is true (with `go_on` False: false)?"""
    out: list[Expr] = []
    reached: list[Expr] = []
    for x in parts:
        d = defined(x)
        if d is not TRUE:
            out.append(implies(and_(*reached), d))
        reached.append(x if go_on else not_(x))
    return and_(*out)


def _itself(e: Expr) -> Expr:
    """Has the operation a value, where its arguments have?"""
    a = e.args
    match e.op:
        case "idx":
            return fits(a[1], a[0].t.domain)
        case "at" if e.aux is None:
            low = limits(a[1])[0]
            sure = low is not None and at_most(0, low)
            return and_(TRUE if sure else less(0, a[1], equal=True), less(a[1], length(a[0])))
        case "get":
            return not_(eq(a[0], None))
        case "take" | "drop":
            low = limits(a[1])[0]
            return TRUE if low is not None and at_most(0, low) else less(0, a[1], equal=True)
        case "rec":
            return and_(*[fits(x, ft) for x, (_, ft) in zip(a, e.t.fields, strict=True)])
        case "must":
            return a[0]
    return TRUE


def fits(e: Expr, t: T) -> Expr:
    """Is the value of `e`, where it has one, of type t, whose shape it has?"""
    inside = TRUE if within(of_type(e), t) else _shaped(e, t)
    if e.op == "get":  # put where a value is wanted: None is none of its type
        return and_(not_(eq(e.args[0], None)), inside)
    return inside


def _shaped(e: Expr, t: T) -> Expr:
    match e.op:
        case "ite":
            return and_(implies(e.args[0], fits(e.args[1], t)), or_(e.args[0], fits(e.args[2], t)))
        case "only":
            return fits(e.args[1], t)
        case "some":
            return fits(e.args[0], t.item if t.kind == "option" else t)
    if e.t.kind == "option":
        there = not_(eq(e, None))
        if t.kind == "option":
            return TRUE if e.op == "none" else implies(there, fits(unwrapped(e), t.item))
        return and_(there, fits(unwrapped(e), t))
    if t.kind == "option":
        return fits(e, t.item)
    match t.kind:
        case "range":
            return _inside(e, t)
        case "set":
            few = (
                TRUE
                if t.hi is None or (e.t.hi is not None and at_most(e.t.hi, t.hi))
                else less(length(e), t.hi, equal=True)
            )
            some = TRUE if e.t.nonempty or not t.nonempty else not_(eq(length(e), 0))
            return and_(few, some, _members(e, t))
        case "seq":
            few = TRUE if at_most(e.t.hi, t.hi) else less(length(e), t.hi, equal=True)
            return and_(few, _elements(e, t))
        case "map":
            if e.op == "mapof":
                return every(e.args[0], fits(e.args[1], t.item))
            k = bound(t.domain, "k")
            return every(k, fits(index(e, k), t.item))
    return TRUE


def _inside(e: Expr, t: T) -> Expr:
    lo, hi = limits(e)
    low = TRUE if lo is not None and at_most(t.lo, lo) else less(t.lo, e, equal=True)
    high = TRUE if t.hi is None or (hi is not None and at_most(hi, t.hi)) else less(e, t.hi, equal=True)
    return and_(low, high)


def _members(e: Expr, t: T) -> Expr:
    """Is every element of a set of type t's element?"""
    if within(e.t.item, t.item):
        return TRUE
    a = e.args
    match e.op:
        case "with":
            return and_(_members(a[0], t), fits(a[1], t.item))
        case "union":
            return and_(_members(a[0], t), _members(a[1], t))
        case "ite":
            return and_(implies(a[0], _members(a[1], t)), or_(a[0], _members(a[2], t)))
        case "setof":
            return every(a[0], implies(a[1], fits(a[0], t.item)))
        case "image":
            return every(a[0], implies(a[1], fits(a[2], t.item)))
    x = bound(e.t.item, "x")
    return every(x, implies(contains(x, e), fits(x, t.item)))


def _elements(e: Expr, t: T) -> Expr:
    """Is every element of a sequence of type t's element?"""
    if within(e.t.item, t.item):
        return TRUE
    a = e.args
    match e.op:
        case "append":
            return and_(_elements(a[0], t), fits(a[1], t.item))
        case "concat":
            return and_(_elements(a[0], t), _elements(a[1], t))
        case "emptyseq":
            return TRUE
    i = bound(make("range", lo=0, hi=last_index(e.t)), "i")
    return every(i, implies(less(i, length(e)), fits(node("at", e.t.item, e, i, aux="inside"), t.item)))


# ---- actions ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Need:
    """Something that an action's text evaluates, reached where `after` conditions of its guard hold and `when` does."""

    after: int
    when: Expr
    what: Expr

    @property
    def defined(self) -> Expr:
        """It has a value, where it is reached but for the guard; and so has what says whether it is."""
        return and_(defined(self.when), implies(self.when, defined(self.what)))


@dataclass(frozen=True)
class Update:
    """`s.next.var[keys] = value` if `cond`. A key is a map's, an index of a sequence, or a record's field by number.
    Later updates win where they meet."""

    var: str
    keys: tuple[Expr, ...]
    cond: Expr
    value: Expr


def assigned(t: T, keys: Iterable[Expr]) -> T:
    """The type of the place that the keys lead to in a variable of type t."""
    for k in keys:
        t = t.fields[k.aux][1] if t.kind == "rec" else t.item
    return t


def typed(updates: Iterable[Update], types: Mapping[str, T]) -> list[tuple[str, Expr]]:
    """By variable: what an action leaves in it is of its type. What a later update overwrites is not asked."""
    out: list[tuple[str, Expr]] = []
    todo = list(updates)
    for i, u in enumerate(todo):
        later = [(x.cond, x.keys) for x in todo[i + 1 :] if x.var == u.var]
        t, over = types[u.var], []
        for cond, keys in later:
            meet = cond
            for a, b in zip(u.keys, keys, strict=False):
                same = eq(a, b)
                if same is FALSE:
                    meet = FALSE  # also if the condition may have no value
                    break  # of two fields, what follows is of other types
                meet = and_(meet, same)
            if meet is not FALSE:
                over.append((meet, keys[len(u.keys) :]))
        f = implies(u.cond, _left(u.value, assigned(t, u.keys), over))
        if f is not TRUE:
            out.append((u.var, f))
    return out


def _left(value: Expr, t: T, over: list[tuple[Expr, tuple[Expr, ...]]]) -> Expr:
    """What is left of a value when parts of it are overwritten is of type t."""
    if fits(value, t) is TRUE:
        return TRUE
    gone = or_(*[c for c, keys in over if not keys])
    parts = [(c, keys) for c, keys in over if keys]
    if not parts:
        return or_(gone, fits(value, t))
    if t.kind == "rec":
        each = [
            _left(node("field", ft, value, aux=i), ft, [(c, keys[1:]) for c, keys in parts if keys[0].aux == i])
            for i, (_, ft) in enumerate(t.fields)
        ]
        return or_(gone, and_(*each))
    if t.kind == "map":
        k = bound(t.domain, "k")
        return or_(
            gone, every(k, _left(index(value, k), t.item, [(and_(c, eq(keys[0], k)), keys[1:]) for c, keys in parts]))
        )
    return or_(gone, fits(value, t))
