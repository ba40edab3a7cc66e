"""Expressions with others in the place of their parts: rebuilt, so that types, limits and constants follow."""

from __future__ import annotations

from collections.abc import Callable

from kafkaspec.language import expr as x
from kafkaspec.language.expr import BINDERS, TRUE, Expr, ModelError, and_, bound, eq, index, ite, name_of, node, or_
from kafkaspec.language.parts import variables_bound
from kafkaspec.language.types import make

Given = Callable[[Expr], Expr | None]


def stripped(e: Expr) -> Expr:
    """Without what is evaluated and dropped: the same value, where it has one."""

    def given(y: Expr) -> Expr | None:
        return stripped(y.args[1]) if y.op == "only" else TRUE if y.op == "must" else None

    return e if e.total else substituted(e, given)


def at_key(m: Expr, k: Expr) -> Expr:
    """m[k]; of a comprehension, its value there."""
    if m.op == "mapof" and x.within(x.of_type(k), m.t.domain):
        return substituted(m.args[1], lambda e: k if e is m.args[0] else None)
    return index(m, k)


def substituted(e: Expr, given: Given, known: dict[int, Expr] | None = None) -> Expr:
    """The expression with what `given` says in the place of its parts, and types that follow. No variable is bound
    within its own scope, neither before nor after."""
    known = {} if known is None else known
    if e.id in known:
        return known[e.id]
    new = given(e)
    if new is None:
        new = _substituted_within(e, given, known)
    known[e.id] = new
    return new


def _substituted_within(e: Expr, given: Given, known: dict[int, Expr]) -> Expr:
    """The same of the parts alone. A comprehension takes another variable where what is put into it binds its own, as
    in a[a[k]], where the value of `a` is a comprehension."""
    while True:
        args = tuple(a if e.op in BINDERS and i == 0 else substituted(a, given, known) for i, a in enumerate(e.args))
        if all(a is b for a, b in zip(args, e.args, strict=True)):
            return e
        if e.op not in BINDERS or not any(e.args[0].aux in variables_bound(a) for a in args[1:]):
            return _rebuilt(e, args)
        e = _renamed(e)


_other_names: dict[int, Expr] = {}


def _renamed(e: Expr) -> Expr:
    """A comprehension with another variable: always the same one."""
    if e.id not in _other_names:
        v = e.args[0]
        w = bound(v.t, name_of(v.aux))
        rest = [substituted(a, lambda y: w if y is v else None) for a in e.args[1:]]
        _other_names[e.id] = _rebuilt(e, (w, *rest))
    return _other_names[e.id]


def _rebuilt(e: Expr, a: tuple[Expr, ...]) -> Expr:
    """The operation of e on other arguments."""
    match e.op:
        case "and":
            return and_(*a)
        case "or":
            return or_(*a)
        case "not":
            return x.not_(a[0])
        case "eq":
            return eq(*a)
        case "lt" | "le":
            return x.less(a[0], a[1], equal=e.op == "le")
        case "subset":
            return x.less(a[0], a[1], equal=True)
        case "in":
            return x.contains(*a)
        case "ite":
            return x.lift(ite(*a), e.t)
        case "add":
            return x.plus(*a)
        case "sub":
            return x.minus(*a)
        case "mul":
            return x.times(*a)
        case "div" | "mod":
            return x.divided(e.op, *a)
        case "idx":
            return at_key(*a)
        case "at":
            return node("at", a[0].t.item, *a, aux=e.aux, total=e.aux is not None)
        case "take" | "drop":
            if a[1].op == "const" and a[1].aux < 0:  # not reached where the condition before it says so
                return node(e.op, make("seq", elem=a[0].t.item, hi=a[0].t.hi), *a, total=False)
            return x.sliced(e.op, *a)
        case "append":
            return x.appended(a[0], [a[1]])
        case "concat":
            return x.concatenated(*a)
        case "field":
            return x.field(a[0], e.args[0].t.fields[e.aux][0])
        case "rec":
            return x.record(e.t, dict(zip((n for n, _ in e.t.fields), a, strict=True)))
        case "get":
            return x.unwrapped(a[0])
        case "some":
            return x.some(a[0])
        case "with":
            return x.set_operation("union", a[0], x.SetLiteral([a[1]]))
        case "without":
            return x.set_operation("diff", a[0], x.SetLiteral([a[1]]))
        case "union" | "inter" | "diff":
            return x.set_operation(e.op, *a)
        case "len" | "card":
            return x.number(x.length(a[0]))
        case "majority":
            return x.majority(a[0])
        case "only":
            return x.only(*a)
        case "must":
            return x.must(a[0])
        case "image":
            return node("image", make("set", elem=x.of_type(a[2]), hi=e.t.hi), *a)
        case "mapof":
            return node("mapof", make("map", elem=x.of_type(a[1]), key=e.t.domain), *a)
        case "greatest" | "least":
            return node(e.op, e.t, *a, total=len(a) > 3)
        case "forall" | "exists" | "count" | "sum" | "setof":
            return node(e.op, e.t, *a)
    raise ModelError(f"{x.show(e)} ({e.op}) cannot be read of another model's state")
