"""Values of the symbolic readings: formulas of Z3, and Python closures over them.

A map is a function from its key's term to a value, a set a function to a formula, a sequence a length and a function,
a record a tuple, an option a formula "is none" and a value. The state after an action is therefore just another
closure: it is substituted, and neither primed copies nor frame axioms nor array theory are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import z3

Term = Any
"""A Z3 term of any sort."""
Formula = Any
"""A Z3 term of sort Bool."""
Value = Any
"""Term, Option, Partner, Sequence, tuple (record) or closure (map, set)."""
Bound = Any
"""A value made of terms alone, so that a quantifier can bind them: a term, or a record (tuple) of such."""
State = dict[str, Value]
"""The values of the model's variables."""
Environment = Mapping[str, Value]
"""The values of parameters and bound variables."""

TRUE: Formula = z3.BoolVal(True)
FALSE: Formula = z3.BoolVal(False)
_TRUE, _FALSE = TRUE.ast.value, FALSE.ast.value


@dataclass(frozen=True, eq=False, slots=True)
class Option:
    """None, or a value."""

    none: Formula
    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class Partner:
    """None, or an element of an unbounded sort, as a relation with at most one partner. No function makes elements,
    so that instantiation of quantifiers ends. `exact` is the partner where its term is known."""

    none: Formula
    has: Callable[[Term], Formula]
    exact: Term | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Sequence:
    """The first `length` values of `at`."""

    length: Term
    at: Callable[[Term], Value]


def is_true(p: Term) -> bool:
    """Is it the formula "true"? Z3 keeps one term of each form, and so equal terms stand in one place: to compare the
    places is all that is to be done, and Z3 need not be asked."""
    return bool(p.ast.value == _TRUE)


def is_false(p: Term) -> bool:
    """Is it the formula "false"?"""
    return bool(p.ast.value == _FALSE)


def is_number(x: Term) -> bool:
    """Is it a number?"""
    return isinstance(x, z3.IntNumRef)


def one(a: Term, b: Term) -> bool:
    """Are they one and the same term?"""
    return bool(a.ast.value == b.ast.value)


def _all_of(make: Any, parts: list[Formula]) -> Formula:
    """A formula of formulas, without the questions that z3's own `And` asks of each of them."""
    ctx = parts[0].ctx
    return z3.BoolRef(make(ctx.ref(), len(parts), (z3.Ast * len(parts))(*[p.ast for p in parts])), ctx)


def _made(make: Any, *parts: Term) -> Formula:
    """A formula of one or two terms, likewise."""
    ctx = parts[0].ctx
    return z3.BoolRef(make(ctx.ref(), *[x.ast for x in parts]), ctx)


def applied(f: z3.FuncDeclRef, args: list[Term]) -> Term:
    """A function of terms of its sorts. Z3 itself looks at their sorts; its Python layer would once more."""
    ctx = f.ctx
    made = z3.Z3_mk_app(ctx.ref(), f.ast, len(args), (z3.Ast * len(args))(*[x.ast for x in args]))
    return z3.z3._to_expr_ref(made, ctx)


def both(parts: Iterable[Formula]) -> Formula:
    """All of them."""
    out = []
    for p in parts:
        if is_false(p):
            return FALSE
        if not is_true(p):
            out.append(p)
    return TRUE if not out else out[0] if len(out) == 1 else _all_of(z3.Z3_mk_and, out)


def either(parts: Iterable[Formula]) -> Formula:
    """Any of them."""
    out = []
    for p in parts:
        if is_true(p):
            return TRUE
        if not is_false(p):
            out.append(p)
    return FALSE if not out else out[0] if len(out) == 1 else _all_of(z3.Z3_mk_or, out)


def negated(p: Formula) -> Formula:
    """Not p."""
    return FALSE if is_true(p) else TRUE if is_false(p) else p.arg(0) if z3.is_not(p) else _made(z3.Z3_mk_not, p)


def implies(p: Formula, q: Formula) -> Formula:
    """If p then q."""
    return q if is_true(p) else TRUE if is_false(p) or is_true(q) else _made(z3.Z3_mk_implies, p, q)


def terms(values: Iterable[Bound]) -> list[Term]:
    """The terms that values are made of: a record by its fields, an option in a record by "is none" and its value."""
    out: list[Term] = []
    for v in values:
        if isinstance(v, tuple):
            out += terms(v)
        elif isinstance(v, Option):
            out += [v.none, *terms([v.value])]
        else:
            out.append(v)
    return out


def forall(variables: list[Bound], p: Formula) -> Formula:
    """p for all values of the variables."""
    return p if not variables or is_true(p) or is_false(p) else z3.ForAll(terms(variables), p)


def exists(variables: list[Bound], p: Formula) -> Formula:
    """p for some values of the variables."""
    return p if not variables or is_true(p) or is_false(p) else z3.Exists(terms(variables), p)


def pick(c: Formula, a: Term, b: Term) -> Term:
    """a if c else b, on terms."""
    if is_true(c) or one(a, b):
        return a
    if is_false(c):
        return b
    if z3.is_bool(a):
        if is_true(a):
            return either([c, b])
        if is_false(a):
            return both([negated(c), b])
        if is_true(b):
            return either([negated(c), a])
        if is_false(b):
            return both([c, a])
    return z3.If(c, a, b)


def literal(x: Term) -> bool:
    """Is the term a constant whose text is its value?"""
    return bool(is_number(x) or is_true(x) or is_false(x)) or (
        z3.is_app(x) and x.num_args() == 0 and x.decl().kind() == z3.Z3_OP_DT_CONSTRUCTOR
    )


def same(a: Term, b: Term) -> Formula:
    """Equality of terms."""
    if one(a, b):
        return TRUE
    if literal(a) and literal(b):
        return FALSE
    if z3.is_bool(a):
        for x, y in ((a, b), (b, a)):
            if is_true(x):
                return y
            if is_false(x):
                return negated(y)
    return _made(z3.Z3_mk_eq, a, b)


def less(a: Term, b: Term) -> Formula:
    """a < b."""
    if is_number(a) and is_number(b):
        return z3.BoolVal(a.as_long() < b.as_long())
    return FALSE if one(a, b) else _made(z3.Z3_mk_lt, a, b)


def at_most(a: Term, b: Term) -> Formula:
    """a <= b."""
    if is_number(a) and is_number(b):
        return z3.BoolVal(a.as_long() <= b.as_long())
    return TRUE if one(a, b) else _made(z3.Z3_mk_le, a, b)


def plus(a: Term, b: Term, sign: int = 1) -> Term:
    """a + b, or a - b."""
    if is_number(a) and is_number(b):
        return z3.IntVal(a.as_long() + sign * b.as_long())
    if is_number(b) and b.as_long() == 0:
        return a
    return a + b if sign > 0 else a - b


def times(a: Term, k: int) -> Term:
    """a * k."""
    return z3.IntVal(a.as_long() * k) if is_number(a) else a * k


def divided(a: Term, k: int) -> Term:
    """a // k, k > 0, rounded down: so Z3 divides too."""
    return z3.IntVal(a.as_long() // k) if is_number(a) else a / k


def rest(a: Term, k: int) -> Term:
    """a % k, k > 0: 0 or more, as in Python."""
    return z3.IntVal(a.as_long() % k) if is_number(a) else a % k
