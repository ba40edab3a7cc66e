"""The values of a model's types as formulas of Z3 and closures over them: their sorts, shapes and limits.

Where a sort has no size it is an uninterpreted sort, and a size is an unknown number >= 1. Where all sorts and sizes
are given, there are as many values as they say, and quantifiers over them are expanded. No text is read here.
"""

from __future__ import annotations

import enum
import itertools
import math
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping

import z3

from kafkaspec.language import Expr, LoadedModel, ModelError, T
from kafkaspec.language.text import short
from kafkaspec.language.types import BOOL
from kafkaspec.prove.symbols import (
    FALSE,
    TRUE,
    Bound,
    Formula,
    Option,
    Partner,
    Sequence,
    State,
    Term,
    Value,
    applied,
    at_most,
    both,
    either,
    exists,
    forall,
    implies,
    is_false,
    is_number,
    is_true,
    less,
    negated,
    pick,
    same,
)

EXPANDED = 8
"""Quantifiers over enums, bool and fixed ranges up to this many values are expanded in the unbounded reading too."""
LISTED = 256
"""Values of a type, places of a sequence, elements of a sort that a proof at given sizes reads one by one."""
MOST_READ = 50_000
"""Values of variables in one formula, of which no shipped model takes a tenth."""


def named(size: str) -> str:
    """The name of a size, a flag or a sort's number of elements in formulas. Names of variables, their fields and their
    parts (`x.f`, `x:none`) never begin so, as a text's names are identifiers."""
    return f"#{size}"


WRITTEN = frozenset(["true", "false", "distinct", "ite", "let", "forall", "exists", "div", "mod", "Int", "Bool"])
"""The words in which formulas are written down, as far as a text may have them for names too."""


def spelled(name: str) -> str:
    """The name of a variable, a sort or an enum in formulas: none that stands for something else where these are
    written down."""
    return f"{name}." if name in WRITTEN else name


_enums: dict[type, tuple[z3.SortRef, list[Term]]] = {}
_enum_names: set[str] = set()


def enum_sort(cls: type[enum.Enum]) -> tuple[z3.SortRef, list[Term]]:
    if cls not in _enums:  # Z3's names are global: one sort for an enum, whoever asks
        name = spelled(cls.__name__)
        while name in _enum_names:
            name += "_"
        _enum_names.add(name)
        members = [f"{name}.{m.name}" for m in cls]
        _enums[cls] = z3.EnumSort(name, members)
    return _enums[cls]


class Values(ABC):
    """The values of a model's types. `given` fixes sizes, flags and sorts; what it leaves out is arbitrary."""

    def __init__(self, model: LoadedModel, given: Mapping[str, int | bool] | None = None) -> None:
        self.model, self.given = model, dict(given or {})
        self._axioms: dict[str, Formula] = {}
        self._functions: dict[tuple[str, int], z3.FuncDeclRef] = {}
        self._made: Iterator[int] = itertools.count()
        self.leaves = 0
        self._where: tuple[str, int] | None = None

    @abstractmethod
    def number(self, limit: int | Expr) -> Term:
        """A type's limit as a term."""

    def error(self, what: str) -> ModelError:
        """The error for a text that cannot be read, with its file and line."""
        file, line = self._where or self.model.initial.loc
        return ModelError(f"{short(file)}:{line}: {what}")

    # ---- sorts, domains, leaves
    def sort(self, t: T) -> z3.SortRef:
        """The Z3 sort of a type whose values are terms."""
        match t.kind:
            case "bool":
                return z3.BoolSort()
            case "int" | "range":
                return z3.IntSort()
            case "sort":
                return z3.IntSort() if t.name in self.given else z3.DeclareSort(spelled(t.name))
            case "enum":
                return enum_sort(typing.cast(type[enum.Enum], t.cls))[0]
        raise self.error(f"a value of type {t!r} cannot be a key, an element of a set or a bound variable in a proof")

    def elements(self, t: T) -> list[Bound] | None:
        """Every value of a type as terms, where they are few and known."""
        match t.kind:
            case "bool":
                return [FALSE, TRUE]
            case "enum":
                members = enum_sort(typing.cast(type[enum.Enum], t.cls))[1]
                return members if self.listed(len(members)) else None
            case "sort" if t.name in self.given:
                n = int(self.given[t.name])
                if n > LISTED:
                    raise self.error(f"{t.name}={n}: a proof at given sizes reads at most {LISTED} elements")
                return [z3.IntVal(i) for i in range(n)]
            case "range":
                lo, hi = self.number(t.lo), None if t.hi is None else self.number(t.hi)
                if is_number(lo) and hi is not None and is_number(hi):
                    values = range(lo.as_long(), hi.as_long() + 1)
                    if self.listed(len(values)):
                        return [z3.IntVal(i) for i in values]
            case "rec":
                parts = [self.elements(ft) for _, ft in t.fields]
                if all(x is not None for x in parts):
                    values_of = typing.cast(list[list[Bound]], parts)
                    if self.listed(math.prod(map(len, values_of))):
                        return list(itertools.product(*values_of))
            case "option" if not self.is_partner(t):
                there = self.elements(t.item)
                if there is not None:
                    return [self.first(t), *[Option(FALSE, x) for x in there]]
        return None

    def listed(self, n: int) -> bool:
        """Are n values read one by one?"""
        return n <= (LISTED if self.finite else EXPANDED)

    @property
    def finite(self) -> bool:
        """Are all sorts and sizes given?"""
        return all(kind == "flag" or name in self.given for name, kind in self.model.sizes.items())

    def size(self, name: str) -> Term:
        """A size, a flag, or the number of a sort's elements."""
        if name in self.given:
            g = self.given[name]
            return z3.BoolVal(g) if self.model.sizes[name] == "flag" else z3.IntVal(int(g))
        return z3.Bool(named(name)) if self.model.sizes[name] == "flag" else z3.Int(named(name))

    def limits(self, t: T, x: Bound) -> Formula:
        """x is a value of type t, where its Z3 sort has others too."""
        match t.kind:
            case "range":
                parts = [] if t.lo is None else [at_most(self.number(t.lo), x)]
                return both(parts + ([] if t.hi is None else [at_most(x, self.number(t.hi))]))
            case "sort" if t.name in self.given:
                return both([at_most(z3.IntVal(0), x), less(x, z3.IntVal(int(self.given[t.name])))])
            case "rec":
                return both([self.limits(ft, y) for (_, ft), y in zip(t.fields, x, strict=True)])
            case "option" if not self.is_partner(t):
                return implies(negated(x.none), self.limits(t.item, x.value))
        return TRUE

    def inside(self, t: T, x: Bound) -> Formula:
        """x, an element of a set over a wider type or the same, is a value of type t."""
        return TRUE if t.kind == "sort" else self.limits(t, x)

    def variable(self, t: T, name: str = "x") -> Bound:
        """A new constant of that type, to be bound or to stand for something."""
        if t.kind == "rec":
            for fn, ft in t.fields:
                if self.is_partner(ft):
                    raise self.error(f"{t.name}.{fn}: a set of records with {ft!r} in them is read at given sizes only")
            return tuple(self.variable(ft, f"{name}.{fn}") for fn, ft in t.fields)
        if t.kind == "option" and not self.is_partner(t):
            return Option(self.variable(BOOL, f"{name}:none"), self.variable(t.item, name))
        return z3.Const(f"{name}!{next(self._made)}", self.sort(t))

    def like(self, x: Bound, name: str) -> Bound:
        """A new constant in the place of a value that is made of terms."""
        if isinstance(x, tuple):
            return tuple(self.like(y, name) for y in x)
        if isinstance(x, Option):
            return Option(self.like(x.none, name), self.like(x.value, name))
        return z3.Const(f"{name}!{next(self._made)}", x.sort())

    def _leaf(self, name: str, at: tuple[Bound, ...], sort: z3.SortRef) -> Term:
        self.leaves += 1
        if self.leaves > MOST_READ:
            raise self.error(f"more than {MOST_READ:,} values of variables are read, too many for a proof")
        if not at:
            return z3.Const(name, sort)
        flat = [y for x in at for y in self._flat(x)]
        f = self._functions.get((name, len(flat)))
        if f is None:
            f = self._functions[name, len(flat)] = z3.Function(name, *[i.sort() for i in flat], sort)
        return applied(f, flat)

    def _flat(self, x: Value) -> list[Term]:
        """A value as the arguments of a function: equal values give equal arguments."""
        if isinstance(x, tuple):
            return [y for part in x for y in self._flat(part)]
        if isinstance(x, Option):
            anything = [self._any(y.sort()) for y in self._flat(x.value)]
            return [x.none, *[pick(x.none, z, y) for y, z in zip(self._flat(x.value), anything, strict=True)]]
        if isinstance(x, Partner):
            raise self.error("a set of records with an option of a sort in them is read at given sizes only")
        return [x]

    def _any(self, sort: z3.SortRef) -> Term:
        """The value that stands for that of an option that is None."""
        if sort == z3.BoolSort():
            return FALSE
        if sort == z3.IntSort():
            return z3.IntVal(0)
        return sort.constructor(0)() if isinstance(sort, z3.DatatypeSortRef) else z3.Const(f"any {sort}", sort)

    def is_partner(self, t: T) -> bool:
        """Is the type an option of a sort without a size?"""
        return t.kind == "option" and t.item.kind == "sort" and t.item.name not in self.given

    def fresh(self, t: T, name: str, at: tuple[Term, ...] = ()) -> Value:
        """An arbitrary value of type t's shape, named `name`. A set has elements of its type alone; what else is known
        of a value by its type, `typed` says."""
        if self.is_partner(t):
            if name not in self._axioms:
                self._axioms[name] = TRUE
                around = [self.like(i, "a") for i in at]
                p = self.fresh(t, name, tuple(around))
                x, y = self.variable(t.item), self.variable(t.item)
                only = both([implies(p.has(x), negated(p.none)), implies(both([p.has(x), p.has(y)]), same(x, y))])
                # not of a map's elements: it would be a function of them, by which models need not be finite
                some = [] if at else [either([p.none, exists([x], p.has(x))])]
                self._axioms[name] = both([forall([*around, x, y], only), *some])
            none = self._leaf(name + ":none", at, z3.BoolSort())
            return Partner(none, lambda x: self._leaf(name, (*at, x), z3.BoolSort()))
        match t.kind:
            case "option":
                return Option(self._leaf(name + ":none", at, z3.BoolSort()), self.fresh(t.item, name, at))
            case "map":
                return lambda i: self.fresh(t.item, name, (*at, i))
            case "set":
                return lambda i: both([self.inside(t.item, i), self._leaf(name, (*at, i), z3.BoolSort())])
            case "seq":
                length = self._leaf(name + ":len", at, z3.IntSort())
                return Sequence(length, lambda i: self.fresh(t.item, name, (*at, i)))
            case "rec":
                return tuple(self.fresh(ft, f"{name}.{fn}", at) for fn, ft in t.fields)
        return self._leaf(name, at, self.sort(t))

    def first(self, t: T) -> Value:
        """The first value of a type, which a variable has that @initial does not assign."""
        if self.is_partner(t):
            return Partner(TRUE, lambda _: FALSE)
        match t.kind:
            case "bool":
                return FALSE
            case "enum":
                return enum_sort(typing.cast(type[enum.Enum], t.cls))[1][0]
            case "range":
                lo, zero = self.number(t.lo), z3.IntVal(0)
                return pick(self.limits(t, zero), zero, lo)
            case "option":
                return Option(TRUE, self.first(t.item))
            case "map":
                return lambda _: self.first(t.item)
            case "set":
                return lambda _: FALSE
            case "seq":
                return Sequence(z3.IntVal(0), lambda _: self.first(t.item))
            case "rec":
                return tuple(self.first(ft) for _, ft in t.fields)
            case "sort" if t.name in self.given:
                return z3.IntVal(0)
        return self.variable(t, "any")

    def state(self, suffix: str = "") -> State:
        """An arbitrary state."""
        return {n: self.fresh(t, spelled(n) + suffix) for n, t in self.model.vars.items()}

    # ---- composite values
    def choose(self, t: T, c: Formula, a: Value, b: Value) -> Value:
        """a if c else b."""
        if is_true(c) or a is b:
            return a
        if is_false(c):
            return b
        if self.is_partner(t):
            return Partner(pick(c, a.none, b.none), lambda x: pick(c, a.has(x), b.has(x)))
        match t.kind:
            case "option":
                return Option(pick(c, a.none, b.none), self.choose(t.item, c, a.value, b.value))
            case "map":
                return lambda i: self.choose(t.item, c, a(i), b(i))
            case "set":
                return lambda i: pick(c, a(i), b(i))
            case "seq":
                return Sequence(pick(c, a.length, b.length), lambda i: self.choose(t.item, c, a.at(i), b.at(i)))
            case "rec":
                return tuple(self.choose(ft, c, x, y) for (_, ft), x, y in zip(t.fields, a, b, strict=True))
        return pick(c, a, b)

    def equal(self, t: T, a: Value, b: Value) -> Formula:
        """a == b."""
        if a is b:
            return TRUE
        if self.is_partner(t):
            for p, q in ((a, b), (b, a)):
                if p.exact is not None:
                    return q.has(p.exact) if q.exact is None else same(p.exact, q.exact)
                if is_true(p.none):
                    return q.none
            x = self.variable(t.item)
            return both([same(a.none, b.none), forall([x], same(a.has(x), b.has(x)))])
        match t.kind:
            case "option":
                if is_true(a.none) or is_true(b.none):
                    return b.none if is_true(a.none) else a.none
                there = both([negated(a.none), negated(b.none)])
                return either([both([a.none, b.none]), both([there, self.equal(t.item, a.value, b.value)])])
            case "map":
                return self.every(t.domain, lambda i: self.equal(t.item, a(i), b(i)))
            case "set":
                return self.every(t.item, lambda i: same(a(i), b(i)))
            case "seq":
                alike = self.places(t, a.length, lambda i: self.equal(t.item, a.at(i), b.at(i)))
                return both([same(a.length, b.length), alike])
            case "rec":
                parts = zip(t.fields, a, b, strict=True)
                return both([self.equal(ft, x, y) for (_, ft), x, y in parts])
        return same(a, b)

    def every(self, t: T, p: Callable[[Bound], Formula]) -> Formula:
        """p of every value of type t."""
        known = self.elements(t)
        if known is not None:
            return both([p(x) for x in known])
        x = self.variable(t)
        return forall([x], implies(self.limits(t, x), p(x)))

    def some(self, t: T, p: Callable[[Bound], Formula]) -> Formula:
        """p of some value of type t."""
        known = self.elements(t)
        if known is not None:
            return either([p(x) for x in known])
        x = self.variable(t)
        return exists([x], both([self.limits(t, x), p(x)]))

    def places(self, t: T, length: Term, p: Callable[[Term], Formula]) -> Formula:
        """p of every index of a sequence of type t that is `length` long."""
        if (most := self.most(t)) is not None:
            return both([implies(less(z3.IntVal(i), length), p(z3.IntVal(i))) for i in range(most)])
        i = z3.Int(f"i!{next(self._made)}")
        return forall([i], implies(both([i >= 0, i < length]), p(i)))

    def most(self, t: T) -> int | None:
        """The greatest length of a sequence type, if its places are read one by one."""
        n = self.number(t.hi) if self.finite and t.hi is not None else None
        return n.as_long() if n is not None and is_number(n) and self.listed(n.as_long()) else None

    # ---- types
    def typed(self, t: T, v: Value) -> list[tuple[bool, Formula]]:
        """That an arbitrary value is of its type: (is it that a set is not empty?, formula)."""
        out: list[tuple[bool, Formula]] = []

        def walk(t: T, v: Value, around: list[Term], given: list[Formula]) -> None:
            def say(p: Formula, not_empty: bool = False) -> None:
                f = forall(around, implies(both(given), p))
                if not is_true(f):
                    out.append((not_empty, f))

            if self.is_partner(t):
                return
            match t.kind:
                case "range" | "sort":
                    say(self.limits(t, v))
                case "option":
                    walk(t.item, v.value, around, [*given, negated(v.none)])
                case "set" if t.nonempty:
                    say(self.some(t.item, v), not_empty=True)
                case "map":
                    for k in self.elements(t.domain) or []:
                        walk(t.item, v(k), around, given)
                    if self.elements(t.domain) is None:
                        i = self.variable(t.domain)
                        walk(t.item, v(i), [*around, i], [*given, self.limits(t.domain, i)])
                case "seq":
                    say(
                        both(
                            [
                                at_most(z3.IntVal(0), v.length),
                                *([] if t.hi is None else [at_most(v.length, self.number(t.hi))]),
                            ]
                        )
                    )
                    if (most := self.most(t)) is not None:
                        for n in range(most):
                            k = z3.IntVal(n)
                            walk(t.item, v.at(k), around, [*given, less(k, v.length)])
                    else:
                        k = z3.Int(f"i!{next(self._made)}")
                        walk(t.item, v.at(k), [*around, k], [*given, k >= 0, k < v.length])
                case "rec":
                    for (_, ft), x in zip(t.fields, v, strict=True):
                        walk(ft, x, around, given)

        walk(t, v, [], [])
        return out
