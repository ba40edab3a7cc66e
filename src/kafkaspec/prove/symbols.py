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


def both(parts: Iterable[Formula]) -> Formula:
    """All of them."""
    out = []
    for p in parts:
        if z3.is_false(p):
            return FALSE
        if not z3.is_true(p):
            out.append(p)
    return TRUE if not out else out[0] if len(out) == 1 else z3.And(out)


def either(parts: Iterable[Formula]) -> Formula:
    """Any of them."""
    out = []
    for p in parts:
        if z3.is_true(p):
            return TRUE
        if not z3.is_false(p):
            out.append(p)
    return FALSE if not out else out[0] if len(out) == 1 else z3.Or(out)


def negated(p: Formula) -> Formula:
    """Not p."""
    return FALSE if z3.is_true(p) else TRUE if z3.is_false(p) else p.arg(0) if z3.is_not(p) else z3.Not(p)


def implies(p: Formula, q: Formula) -> Formula:
    """If p then q."""
    return q if z3.is_true(p) else TRUE if z3.is_false(p) or z3.is_true(q) else z3.Implies(p, q)


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
    return p if not variables or z3.is_true(p) or z3.is_false(p) else z3.ForAll(terms(variables), p)


def exists(variables: list[Bound], p: Formula) -> Formula:
    """p for some values of the variables."""
    return p if not variables or z3.is_true(p) or z3.is_false(p) else z3.Exists(terms(variables), p)


def pick(c: Formula, a: Term, b: Term) -> Term:
    """a if c else b, on terms."""
    if z3.is_true(c) or a.eq(b):
        return a
    if z3.is_false(c):
        return b
    if z3.is_bool(a):
        if z3.is_true(a):
            return either([c, b])
        if z3.is_false(a):
            return both([negated(c), b])
        if z3.is_true(b):
            return either([negated(c), a])
        if z3.is_false(b):
            return both([c, a])
    return z3.If(c, a, b)


def literal(x: Term) -> bool:
    """Is the term a constant whose text is its value?"""
    return bool(z3.is_int_value(x) or z3.is_true(x) or z3.is_false(x)) or (
        z3.is_app(x) and x.num_args() == 0 and x.decl().kind() == z3.Z3_OP_DT_CONSTRUCTOR
    )


def same(a: Term, b: Term) -> Formula:
    """Equality of terms."""
    if a.eq(b):
        return TRUE
    if literal(a) and literal(b):
        return FALSE
    if z3.is_bool(a):
        for x, y in ((a, b), (b, a)):
            if z3.is_true(x):
                return y
            if z3.is_false(x):
                return negated(y)
    return a == b


def less(a: Term, b: Term) -> Formula:
    """a < b."""
    if z3.is_int_value(a) and z3.is_int_value(b):
        return z3.BoolVal(a.as_long() < b.as_long())
    return FALSE if a.eq(b) else a < b


def at_most(a: Term, b: Term) -> Formula:
    """a <= b."""
    if z3.is_int_value(a) and z3.is_int_value(b):
        return z3.BoolVal(a.as_long() <= b.as_long())
    return TRUE if a.eq(b) else a <= b


def plus(a: Term, b: Term, sign: int = 1) -> Term:
    """a + b, or a - b."""
    if z3.is_int_value(a) and z3.is_int_value(b):
        return z3.IntVal(a.as_long() + sign * b.as_long())
    if z3.is_int_value(b) and b.as_long() == 0:
        return a
    return a + b if sign > 0 else a - b


def times(a: Term, k: int) -> Term:
    """a * k."""
    return z3.IntVal(a.as_long() * k) if z3.is_int_value(a) else a * k


def divided(a: Term, k: int) -> Term:
    """a // k, k > 0, rounded down: so Z3 divides too."""
    return z3.IntVal(a.as_long() // k) if z3.is_int_value(a) else a / k


def rest(a: Term, k: int) -> Term:
    """a % k, k > 0: 0 or more, as in Python."""
    return z3.IntVal(a.as_long() % k) if z3.is_int_value(a) else a % k
