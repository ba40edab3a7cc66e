"""What must have a value, in a form that can be read and is safe to evaluate from left to right.

TLC stops with an error of its own where an expression has no value. So every claim is exported as "defined and true",
and what the actions evaluate as conditions that an invariant joins. What is known where a condition is asked (the
guards before it, the branch taken) is left out of the condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from kafkaspec.language.defined import defined, every
from kafkaspec.language.expr import FALSE, TRUE, Expr, and_, eq, has_values, length, less, limits, node, not_, or_
from kafkaspec.language.model import Action
from kafkaspec.language.types import BOOL

Sum = tuple[tuple[int, int], ...]
"""A sum of numbers without its constant: by the number's node, how often it stands in it."""


class Facts(NamedTuple):
    """What is known to be true: conditions by id, and of sums the greatest value that they can have."""

    true: frozenset[int] = frozenset()
    most: Mapping[Sum, int] = {}


NOTHING = Facts()


class Asked(NamedTuple):
    """`what` must be true where all of `where` hold, asked in this order."""

    where: tuple[Expr, ...]
    what: Expr


def parts_of(e: Expr) -> tuple[Expr, ...]:
    """What must all be true for a condition to be true."""
    return e.args if e.op == "and" else () if e is TRUE else (e,)


def known(e: Expr, facts: Facts = NOTHING) -> Facts:
    """The facts, and what else is known where `e` is true."""
    true, most = set(facts.true), dict(facts.most)
    todo = [e]
    while todo:
        x = todo.pop()
        if x.id in true or x is TRUE:
            continue
        true.add(x.id)
        a = x.args
        match x.op:
            case "and":
                todo += a
            case "in":
                todo.append(less(0, length(a[1])))
            case "exists" if (n := _how_many(a[0], parts_of(a[1])[:1])) is not None:
                todo.append(less(0, n))
            case "not" if a[0].op == "eq" and "empty" in (a[0].args[0].op, a[0].args[1].op):
                todo += [less(0, length(x)) for x in a[0].args if x.op != "empty"]
            case "lt" | "le":
                terms, greatest = _at_most(x)
                most[terms] = min(greatest, most.get(terms, greatest))
            case "eq" if a[0].t.numeric:
                todo += [less(a[0], a[1], equal=True), less(a[1], a[0], equal=True)]
            case "eq" if a[0].t.kind == "option":
                todo += [not_(eq(o, None)) for o, v in (a, a[::-1]) if o.op != "some" and v.op == "some"]
            case "not" if a[0].op == "or":
                todo += map(not_, a[0].args)
            case "not" if a[0].op in ("lt", "le"):
                todo.append(less(a[0].args[1], a[0].args[0], equal=a[0].op == "lt"))
            case "not" if a[0].op == "eq" and a[0].args[0].t.numeric:
                for n, other in (a[0].args, a[0].args[::-1]):
                    for limit, beyond in zip(limits(n), (less(other, n), less(n, other)), strict=True):
                        if other.op == "const" and isinstance(limit, int) and limit == other.aux:
                            todo.append(beyond)
    return Facts(frozenset(true), most)


def _how_many(v: Expr, condition: Sequence[Expr]) -> Expr | None:
    """The length of the set or sequence that a bound variable is taken from, if a condition says that alone."""
    if len(condition) != 1 or condition[0].op not in ("in", "lt"):
        return None
    x, domain = condition[0].args
    if x is not v or v.aux in domain.free:
        return None
    if condition[0].op == "in":
        return cast(Expr, length(domain))
    return domain if domain.op == "len" and v.t.lo == 0 else None


def _at_most(e: Expr) -> tuple[Sum, int]:
    """a < b, or a <= b, as a sum and the greatest value that it may have."""
    terms: dict[int, int] = {}
    constant = 0
    todo = [(e.args[0], 1), (e.args[1], -1)]
    while todo:
        x, n = todo.pop()
        match x.op:
            case "const":
                constant += n * x.aux
            case "add" | "sub":
                todo += [(x.args[0], n), (x.args[1], n if x.op == "add" else -n)]
            case _:
                terms[x.id] = terms.get(x.id, 0) + n
    return tuple(sorted((i, n) for i, n in terms.items() if n)), -constant - (e.op == "lt")


def _compared(e: Expr, facts: Facts) -> Expr:
    """A comparison of numbers, where its form, their limits or the facts decide it."""
    terms, limit = _at_most(e)
    if not terms:
        return TRUE if limit >= 0 else FALSE
    most, least = limits(e.args[0])[1], limits(e.args[1])[0]
    if isinstance(most, int) and isinstance(least, int) and most + (e.op == "lt") <= least:
        return TRUE
    if terms in facts.most and facts.most[terms] <= limit:
        return TRUE
    k, n = e.args
    if e.op == "le" and k.op == "const" and n.op == "sub" and n.args[1].op == "const":
        return less(k.aux + n.args[1].aux - 1, n.args[0])
    return e


def given(e: Expr, facts: Facts) -> Expr:
    """A condition that is equal to `e` where the facts hold, shorter if they decide a part of it."""
    if e.id in facts.true:
        return TRUE
    if e.t is BOOL and not_(e).id in facts.true:
        return FALSE
    match e.op:
        case "only":
            return given(e.args[1], facts)
        case "and" | "or":
            out = []
            for x in e.args:
                y = given(x, facts)
                out.append(y)
                facts = known(x if e.op == "and" else not_(x), facts)
            return _kept((and_ if e.op == "and" else or_)(*out))
        case "not":
            return not_(given(e.args[0], facts))
        case "lt" | "le":
            return _compared(e, facts)
        case "eq" if {"none", "ite"} == {x.op for x in e.args}:
            c, x, y = next(x.args for x in e.args if x.op == "ite")
            return given(_branched(c, *[eq(z, None) if z.t.kind == "option" else FALSE for z in (x, y)]), facts)
        case "exists" if (n := _how_many(e.args[0], parts_of(e.args[1]))) is not None:
            return given(less(0, n), facts)
        case "forall" | "exists":
            v, body = e.args[0], given(e.args[1], facts)
            if body is (TRUE if e.op == "forall" else FALSE) or (body.op == "const" and has_values(v.t)):
                return body
            return e if body is e.args[1] else node(e.op, BOOL, v, body)
        case "ite" if e.t is BOOL:
            c, x, y = e.args
            return _branched(given(c, facts), given(x, known(c, facts)), given(y, known(not_(c), facts)))
    return e


def _kept(e: Expr) -> Expr:
    """An expression without what is evaluated for nothing: here all has a value."""
    return e.args[1] if e.op == "only" else e


def _branched(c: Expr, x: Expr, y: Expr) -> Expr:
    """x if c else y, of conditions."""
    if c is TRUE or c is FALSE or x is y:
        return x if c is not FALSE else y
    if x is TRUE or y is TRUE:
        return _kept(or_(not_(c), x) if y is TRUE else or_(c, y))
    if x is FALSE or y is FALSE:
        return _kept(and_(c, x) if y is FALSE else and_(not_(c), y))
    return node("ite", BOOL, c, x, y)


def sure(e: Expr, facts: Facts = NOTHING) -> Expr:
    """Has `e` a value, and is it true? The answer can be evaluated from left to right."""
    if e.total:
        return e
    a = e.args
    match e.op:
        case "only":
            return and_(given(defined(a[0]), facts), sure(a[1], facts))
        case "must":
            return sure(a[0], facts)
        case "and":
            out = []
            for x in a:
                out.append(sure(x, facts))
                facts = known(x, facts)
            return and_(*out)
        case "or":
            first, rest = a[0], or_(*a[1:])
            return and_(given(defined(first), facts), or_(first, sure(rest, known(not_(first), facts))))
        case "ite":
            c, x, y = a
            return and_(
                given(defined(c), facts),
                _branched(c, sure(x, known(c, facts)), sure(y, known(not_(c), facts))),
            )
        case "forall":
            return every(a[0], sure(a[1], facts))
    return and_(given(defined(e), facts), e)


def asked(parts: Iterable[Asked]) -> list[Asked]:
    """The same conditions: without what is true where it is asked, and without what was asked before. An implication's
    premise moves to where it is asked."""
    out: list[Asked] = []
    before: list[tuple[frozenset[int], int]] = []
    for reached, what in parts:
        facts, where = NOTHING, list[Expr]()
        for p in reached:
            if given(p, facts) is FALSE:
                break
            if given(p, facts) is not TRUE:
                where.append(p)
            facts = known(p, facts)
        else:
            for x in parts_of(given(what, facts)):
                premises, conclusion = _implication(x)
                premised = tuple({p.id: p for p in (*where, *premises)}.values())
                ids = frozenset(p.id for p in premised)
                for c in parts_of(conclusion):
                    if not any(p <= ids and i == c.id for p, i in before):
                        before.append((ids, c.id))
                        out.append(Asked(premised, c))
    return out


def _implication(e: Expr) -> tuple[list[Expr], Expr]:
    """A disjunction that begins with negations, as what they deny and the rest, which holds something."""
    if e.op != "or":
        return [], e
    n = next((i for i, x in enumerate(e.args) if x.op != "not"), len(e.args) - 1)
    return [p for x in e.args[:n] for p in parts_of(x.args[0])], or_(*e.args[n:])


def of_action(a: Action, left_out: Sequence[Expr] = ()) -> list[Asked]:
    """What an action's text evaluates has a value where it is reached. `left_out`: conditions of its guard that hold
    wherever this is asked."""
    skip = {g.id for g in left_out}
    out = []
    for n in a.needs:
        where = [g for g in a.guard[: n.after] if g.id not in skip]
        for w in parts_of(n.when):
            out.append(Asked(tuple(where), defined(w)))
            where.append(w)
        out.append(Asked(tuple(where), defined(n.what)))
    return asked(out)


# ---- a step that changes nothing -------------------------------------------------------------------------------------
_PARTIAL = frozenset(("idx", "at", "get", "take", "drop", "rec", "must", "greatest", "least"))


def in_place(e: Expr) -> Expr:
    """A step property, defined and true, of a step that changes nothing: TRUE if its form shows that it holds."""
    return given(_still(sure(e), {}), NOTHING)


def _still(e: Expr, done: dict[int, Expr]) -> Expr:
    if e.id not in done:
        done[e.id] = _rebuilt(e, [_still(x, done) for x in e.args])
    return done[e.id]


def _rebuilt(e: Expr, a: list[Expr]) -> Expr:
    match e.op:
        case "nextvar":
            return node("var", e.t, aux=e.aux)
        case "and":
            return and_(*a)
        case "or":
            return or_(*a)
        case "not":
            return not_(a[0])
        case "le" | "subset" if a[0] is a[1]:
            return TRUE
        case "eq":
            same = eq(*a)
            return same.args[1] if same.op == "only" else same
        case "le" if a[1].op == "add" and a[1].args[0] is a[0] and a[1].args[1].op == "const":
            return TRUE
        case "forall" if a[1] is TRUE:
            return TRUE
    if all(x is y for x, y in zip(a, e.args, strict=True)):
        return e
    return node(e.op, e.t, *a, aux=e.aux, total=e.op not in _PARTIAL)
