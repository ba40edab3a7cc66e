"""The symbolic reading of a model's graph: expressions become formulas of Z3, states become closures over them.

Where a sort has no size it is an uninterpreted sort, a size is an unknown number >= 1, quantifiers stay quantifiers,
and what is proved holds for every number of elements. Where all sorts and sizes are given, quantifiers are expanded
and formulas are free of them: that is how counterexamples are made small and how steps are unrolled.
"""

from __future__ import annotations

import enum
import itertools
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import z3

from kafkaspec.language import Action, Expr, LoadedModel, ModelError, T, show
from kafkaspec.language.text import short
from kafkaspec.prove.symbols import (
    FALSE,
    TRUE,
    Formula,
    Option,
    Partner,
    Sequence,
    Term,
    Value,
    at_most,
    both,
    either,
    exists,
    forall,
    implies,
    less,
    negated,
    pick,
    plus,
    same,
)

State = dict[str, Value]
Environment = Mapping[str, Value]
Side = Literal[1, -1, 0]
"""How a formula stands in a query: 1 asserted, -1 denied, 0 either."""
ASSERTED: Side = 1
DENIED: Side = -1

EXPANDED = 8
"""Quantifiers over enums, bool and fixed ranges up to this many values are expanded in the unbounded reading too."""
COUNTED = 3
"""A number of elements is compared with a constant up to this one by naming the elements."""


@dataclass(eq=False, frozen=True)
class World:
    """What a text reads: the variables now and, where a step is spoken of, next."""

    now: State
    next: State | None = None


@dataclass(eq=False)
class _Count:
    """The number of elements with a property, as an unknown number that depends on `names`."""

    function: Callable[[list[Term]], Term]
    names: list[str]
    types: list[T]
    elem: T
    member: Callable[[Environment, Term], Formula]


_enums: dict[type, tuple[z3.SortRef, list[Term]]] = {}
_enum_names: set[str] = set()


def _enum_sort(cls: type[enum.Enum]) -> tuple[z3.SortRef, list[Term]]:
    if cls not in _enums:  # Z3's names are global: one sort for an enum, whoever asks
        name = cls.__name__
        while name in _enum_names:
            name += "_"
        _enum_names.add(name)
        members = [f"{name}.{m.name}" for m in cls]
        _enums[cls] = z3.EnumSort(name, members)
    return _enums[cls]


class Reading:
    """One reading of a model. `given` fixes sizes, flags and sorts; what it leaves out is arbitrary.

    `definitions` collects what is known of the constants and functions that reading made up (the greatest number that
    ..., the partner of ...): they belong to the assumptions of every query made from this reading."""

    def __init__(self, model: LoadedModel, given: Mapping[str, int | bool] | None = None) -> None:
        self.model, self.given = model, dict(given or {})
        self.definitions: list[Formula] = []
        self.constants: dict[str, list[Term]] = {}
        self.ground: set[str] = set()
        self._given_names: set[str] = set()
        self._axioms: dict[str, Formula] = {}
        self._functions: dict[str, z3.FuncDeclRef] = {}
        self._memo: dict[object, tuple[Value, object]] = {}
        self._counts: dict[int, dict[int, _Count]] = {}
        self._worlds: dict[int, World] = {}
        self._made: Iterator[int] = itertools.count()
        self._where: tuple[str, int] | None = None

    # ---- sorts, domains, leaves
    def sort(self, t: T) -> z3.SortRef:
        """The Z3 sort of a type whose values are terms."""
        match t.kind:
            case "bool":
                return z3.BoolSort()
            case "int" | "range":
                return z3.IntSort()
            case "sort":
                return z3.IntSort() if t.name in self.given else z3.DeclareSort(t.name)
            case "enum":
                return _enum_sort(typing.cast(type[enum.Enum], t.cls))[0]
        raise self.error(f"a value of type {t!r} cannot be a key, an element of a set or a bound variable in a proof")

    def elements(self, t: T) -> list[Term] | None:
        """Every value of a type as terms, where they are few and known."""
        match t.kind:
            case "bool":
                return [FALSE, TRUE]
            case "enum":
                members = _enum_sort(typing.cast(type[enum.Enum], t.cls))[1]
                return members if len(members) <= EXPANDED or self.finite else None
            case "sort":
                return [z3.IntVal(i) for i in range(int(self.given[t.name]))] if t.name in self.given else None
            case "range":
                lo, hi = self.number(t.lo), None if t.hi is None else self.number(t.hi)
                if z3.is_int_value(lo) and hi is not None and z3.is_int_value(hi):
                    values = range(lo.as_long(), hi.as_long() + 1)
                    if self.finite or len(values) <= EXPANDED:
                        return [z3.IntVal(i) for i in values]
        return None

    @property
    def finite(self) -> bool:
        """Are all sorts and sizes given?"""
        return all(kind == "flag" or name in self.given for name, kind in self.model.sizes.items())

    def number(self, limit: int | Expr) -> Term:
        """A type's limit as a term."""
        return z3.IntVal(limit) if isinstance(limit, int) else z3.simplify(self.read(limit, {}, World({}), 0))

    def limits(self, t: T, x: Term) -> Formula:
        """x is a value of type t, where its Z3 sort has others too."""
        if t.kind == "range":
            parts = [] if t.lo is None else [at_most(self.number(t.lo), x)]
            return both(parts + ([] if t.hi is None else [at_most(x, self.number(t.hi))]))
        if t.kind == "sort" and t.name in self.given:
            return both([at_most(z3.IntVal(0), x), less(x, z3.IntVal(int(self.given[t.name])))])
        return TRUE

    def sizes(self) -> list[Formula]:
        """What is known of the sizes that are not given."""
        return [z3.Int(n) >= 1 for n, kind in self.model.sizes.items() if kind == "size" and n not in self.given]

    def axioms(self) -> list[Formula]:
        """What holds of every state by its shape alone."""
        return [*self._axioms.values(), *self._counting()]

    def variable(self, t: T, name: str = "x") -> Term:
        """A new constant of that type, to be bound or to stand for something."""
        return z3.Const(f"{name}!{next(self._made)}", self.sort(t))

    def arbitrary(self, bound: Expr) -> Term:
        """A new constant for a bound variable, which then is as good as a parameter of the action."""
        x = self.variable(bound.t, str(bound.aux).rpartition("_")[0])
        self.ground.add(bound.aux)
        if bound.t.kind == "sort":
            self.constants.setdefault(bound.t.name, []).append(x)
        return x

    def forget(self, bounds: list[Expr]) -> None:
        """End the use of such constants."""
        for b in reversed(bounds):
            self.ground.discard(b.aux)
            if b.t.kind == "sort":
                self.constants[b.t.name].pop()

    def _leaf(self, name: str, at: tuple[Term, ...], sort: z3.SortRef) -> Term:
        if not at:
            return z3.Const(name, sort)
        f = self._functions.get(name)
        if f is None:
            f = self._functions[name] = z3.Function(name, *[i.sort() for i in at], sort)
        return f(*at)

    def is_partner(self, t: T) -> bool:
        """Is the type an option of a sort without a size?"""
        return t.kind == "option" and t.item.kind == "sort" and t.item.name not in self.given

    def fresh(self, t: T, name: str, at: tuple[Term, ...] = ()) -> Value:
        """An arbitrary value of type t, named `name`."""
        if self.is_partner(t):
            if name not in self._axioms:
                self._axioms[name] = TRUE
                around = [z3.Const(f"a!{j}", i.sort()) for j, i in enumerate(at)]
                p = self.fresh(t, name, tuple(around))
                x, y = self.variable(t.item), self.variable(t.item)
                only = both([implies(p.has(x), negated(p.none)), implies(both([p.has(x), p.has(y)]), same(x, y))])
                self._axioms[name] = forall([*around, x, y], only)
            none = self._leaf(name + ".none", at, z3.BoolSort())
            return Partner(none, lambda x: self._leaf(name, (*at, x), z3.BoolSort()))
        match t.kind:
            case "option":
                return Option(self._leaf(name + ".none", at, z3.BoolSort()), self.fresh(t.item, name, at))
            case "map":
                return lambda i: self.fresh(t.item, name, (*at, i))
            case "set":
                return lambda i: self._leaf(name, (*at, i), z3.BoolSort())
            case "seq":
                length = self._leaf(name + ".len", at, z3.IntSort())
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
                return _enum_sort(typing.cast(type[enum.Enum], t.cls))[1][0]
            case "range":
                lo, zero = self.number(t.lo), z3.IntVal(0)
                return pick(less(lo, zero), zero, lo)
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
        return {n: self.fresh(t, n + suffix) for n, t in self.model.vars.items()}

    # ---- composite values
    def choose(self, t: T, c: Formula, a: Value, b: Value) -> Value:
        """a if c else b."""
        if z3.is_true(c) or a is b:
            return a
        if z3.is_false(c):
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
                if z3.is_true(p.none):
                    return q.none
            x = self.variable(t.item)
            return both([same(a.none, b.none), forall([x], same(a.has(x), b.has(x)))])
        match t.kind:
            case "option":
                if z3.is_true(a.none) or z3.is_true(b.none):
                    return b.none if z3.is_true(a.none) else a.none
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

    def every(self, t: T, p: Callable[[Term], Formula]) -> Formula:
        """p of every value of type t."""
        known = self.elements(t)
        if known is not None:
            return both([p(x) for x in known])
        x = self.variable(t)
        return forall([x], implies(self.limits(t, x), p(x)))

    def some(self, t: T, p: Callable[[Term], Formula]) -> Formula:
        """p of some value of type t."""
        known = self.elements(t)
        if known is not None:
            return either([p(x) for x in known])
        x = self.variable(t)
        return exists([x], both([self.limits(t, x), p(x)]))

    def places(self, t: T, length: Term, p: Callable[[Term], Formula]) -> Formula:
        """p of every index of a sequence of type t that is `length` long."""
        most = self.number(t.hi) if t.hi is not None else None
        if self.finite and most is not None and z3.is_int_value(most):
            return both([implies(less(z3.IntVal(i), length), p(z3.IntVal(i))) for i in range(most.as_long())])
        i = z3.Int(f"i!{next(self._made)}")
        return forall([i], implies(both([i >= 0, i < length]), p(i)))

    # ---- expressions
    def error(self, what: str) -> ModelError:
        """The error for a text that this reading cannot read, with its file and line."""
        where = f"{short(self._where[0])}:{self._where[1]}: " if self._where else ""
        return ModelError(where + what)

    def read(self, e: Expr, env: Environment, world: World, side: Side = 0) -> Value:
        """The value of an expression. For truth values, `side` says how the formula stands in the query: where a text
        speaks of the partner of something under a quantifier, that decides how the partner is bound. The two ways are
        equal where there is a partner; where there is none, assumptions are read weaker and goals stronger."""
        if not _two_sided(e):
            side = 0
        bound = tuple((n, _ident(v)) for n, v in env.items() if n in e.free or n[0] == "=")
        key = (e.id, id(world), side, bound)
        hit = self._memo.get(key)
        if hit is None:
            if e.loc is not None:
                self._where = e.loc
            self._worlds[id(world)] = world
            value = self._formula(e, env, world, side) if e.t.kind == "bool" else self._value(e, env, world)
            hit = self._memo[key] = (value, env)
        return hit[0]

    def _formula(self, e: Expr, env: Environment, world: World, side: Side) -> Formula:
        a = e.args
        match e.op:
            case "and":
                return both([self.read(x, env, world, side) for x in a])
            case "or":
                return either([self.read(x, env, world, side) for x in a])
            case "not":
                return negated(self.read(a[0], env, world, -side))
            case "forall" | "exists":
                return self._quantified(e, env, world, side)
            case "ite" if side and _two_sided(a[0]):
                yes, no = (self.read(a[0], env, world, typing.cast(Side, s)) for s in (-side, side))
                return both(
                    [
                        either([negated(yes), self.read(a[1], env, world, side)]),
                        either([no, self.read(a[2], env, world, side)]),
                    ]
                )
            case "eq" if side and a[0].t.kind == "bool" and _two_sided(e):
                back = typing.cast(Side, -side)
                p, q = ((self.read(x, env, world, side), self.read(x, env, world, back)) for x in a)
                return both([either([negated(p[1]), q[0]]), either([p[0], negated(q[1])])])
        hidden = None if self.finite else self._hidden(e, env)
        if hidden is not None:
            x = self.variable(hidden.t)
            means = self._means(hidden, x, env, world)
            rest = self.read(e, {**env, f"={hidden.id}": x}, world, side)
            there = TRUE
            if hidden.op == "get" and side != ASSERTED:
                there = negated(self.read(hidden.args[0], env, world).none)
            return both([there, forall([x], implies(means, rest))])
        return self._atom(e, env, world)

    def _atom(self, e: Expr, env: Environment, world: World) -> Formula:
        a = e.args

        def go(x: Expr) -> Value:
            return self.read(x, env, world)

        match e.op:
            case "eq":
                x, y = a if a[0].op != "none" else (a[1], a[0])
                if y.op == "none":
                    return go(x).none
                known = self._compared(e, env, world)
                return self.equal(x.t, go(x), go(y)) if known is None else known
            case "lt" if self._said(e):
                return TRUE
            case "lt" | "le":
                known = self._compared(e, env, world)
                if known is not None:
                    return known
                return (less if e.op == "lt" else at_most)(go(a[0]), go(a[1]))
            case "in":
                return go(a[1])(go(a[0]))
            case "subset":
                left, right = go(a[0]), go(a[1])
                return self.every(a[0].t.item, lambda i: implies(left(i), right(i)))
        value: Formula = self._value(e, env, world)
        return value

    def _quantified(self, e: Expr, env: Environment, world: World, side: Side) -> Formula:
        op, variables, domains, beside, sort_of = e.op, [], [], [], []
        joint = "or" if op == "forall" else "and"
        while True:  # one quantifier over many variables is easier than many quantifiers: pull the inner ones out
            if e.op == op and self.elements(e.args[0].t) is None:
                v = e.args[0]
                x = self.variable(v.t, str(v.aux).rpartition("_")[0])
                variables.append(x)
                sort_of.append(v.t)
                domains.append(self.limits(v.t, x))
                env, e = {**env, v.aux: x}, e.args[1]
                continue
            if e.op == joint:
                parts = [x for x in e.args if not self._said(x.args[0] if x.op == "not" else x)]
                inner = [x for x in parts if x.op == op]
                if len(inner) == 1 or len(parts) == 1:
                    e = inner[0] if inner else parts[0]
                    beside += [x for x in parts if x is not e]
                    continue
            break
        join = either if op == "forall" else both
        if e.op == op:
            v, inside = e.args
            known = [self.read(inside, {**env, v.aux: x}, world, side) for x in self.elements(v.t) or []]
            body = both(known) if op == "forall" else either(known)
        else:
            body = self.read(e, env, world, side)
        body = join([*[self.read(x, env, world, side) for x in beside], body])
        if op == "forall":
            return forall(variables, implies(both(domains), body))
        found = exists(variables, both([*domains, body]))
        if side == DENIED and len(variables) == 1:  # try the action's own parameters first: solvers do not see it
            t, x = sort_of[0], variables[0]
            found = either([found, *[z3.substitute(body, (x, c)) for c in self.constants.get(t.name, [])]])
        return found

    def _value(self, e: Expr, env: Environment, world: World) -> Value:
        if f"={e.id}" in env:
            return env[f"={e.id}"]
        a, t = e.args, e.t

        def go(x: Expr) -> Value:
            return self.read(x, env, world)

        match e.op:
            case "const":
                if t.kind == "bool":
                    return z3.BoolVal(bool(e.aux))
                if t.kind == "enum":
                    return _enum_sort(typing.cast(type[enum.Enum], t.cls))[1][e.aux]
                return z3.IntVal(e.aux)
            case "size":
                if e.aux in self.given:
                    g = self.given[e.aux]
                    return z3.BoolVal(bool(g)) if t.kind == "bool" else z3.IntVal(int(g))
                return z3.Bool(e.aux) if t.kind == "bool" else z3.Int(e.aux)
            case "bound":
                return env[e.aux]
            case "var":
                return world.now[e.aux]
            case "nextvar":
                assert world.next is not None
                return world.next[e.aux]
            case "idx":
                return go(a[0])(go(a[1]))
            case "at":
                return go(a[0]).at(go(a[1]))
            case "field":
                return go(a[0])[e.aux]
            case "rec":
                return tuple(map(go, a))
            case "len":
                return go(a[0]).length
            case "append":
                q, x = go(a[0]), go(a[1])
                return Sequence(
                    plus(q.length, z3.IntVal(1)), lambda i: self.choose(t.item, same(i, q.length), x, q.at(i))
                )
            case "take":
                q, n = go(a[0]), go(a[1])
                return Sequence(pick(less(n, q.length), n, q.length), q.at)
            case "drop":
                q, n = go(a[0]), go(a[1])
                return Sequence(
                    pick(less(n, q.length), plus(q.length, n, -1), z3.IntVal(0)), lambda i: q.at(plus(i, n))
                )
            case "emptyseq":
                return Sequence(z3.IntVal(0), lambda _: self.first(t.item))
            case "ite":
                return self.choose(t, *map(go, a))
            case "add" | "sub":
                return plus(go(a[0]), go(a[1]), 1 if e.op == "add" else -1)
            case "none":
                return self.first(t)
            case "some":
                x = go(a[0])
                return Partner(FALSE, lambda y: same(y, x), x) if self.is_partner(t) else Option(FALSE, x)
            case "get" if not self.is_partner(a[0].t):
                return go(a[0]).value
            case "empty":
                return lambda _: FALSE
            case "full":
                return lambda _: TRUE
            case "with":
                s, x = map(go, a)
                return lambda i: either([s(i), same(i, x)])
            case "without":
                s, x = map(go, a)
                return lambda i: both([s(i), negated(same(i, x))])
            case "union" | "inter" | "diff":
                s, r = map(go, a)
                if e.op == "union":
                    return lambda i: either([s(i), r(i)])
                return lambda i: both([s(i), negated(r(i)) if e.op == "diff" else r(i)])
            case "setof":
                v, cond = a
                return lambda i: self.read(cond, {**env, v.aux: i}, world)
            case "mapof":
                v, value = a
                return lambda i: self.read(value, {**env, v.aux: i}, world)
            case "count" | "card":
                return self._counted(e, env, world)
            case "greatest" | "least" if self.elements(a[0].t) is not None:
                found = go(a[2])
                known = self.elements(a[0].t) or []
                for x in known if e.op == "greatest" else reversed(known):
                    found = pick(self.read(a[1], {**env, a[0].aux: x}, world), x, found)
                return found
            case "get" | "greatest" | "least":
                return self._defined(e, env, world)
        raise self.error(f"{show(e)} ({e.op}) has no symbolic reading")

    def _said(self, e: Expr) -> bool:
        """Is the condition `x < n` one that the limits of x say already, as x is taken from range(n)?"""
        if e.op != "lt" or e.args[0].op != "bound" or not isinstance(e.args[0].t.hi, int | Expr):
            return False
        if any(x.op not in ("size", "const", "add", "sub") for x in _nodes(e.args[1])):
            return False
        gap = z3.simplify(self.number(e.args[1]) - self.number(e.args[0].t.hi))
        return bool(z3.is_int_value(gap) and gap.as_long() >= 1)

    # ---- terms that only a property defines
    def _hidden(self, e: Expr, env: Environment) -> Expr | None:
        """The innermost part of a text that a property defines and that speaks of bound variables."""
        for m in _implicit(e):
            if f"={m.id}" in env or not m.free <= env.keys() or m.free <= self.ground:
                continue
            if m.op == "get" and not self.is_partner(m.args[0].t):
                continue
            if m.op != "get" and self.elements(m.args[0].t) is not None:
                continue
            return m
        return None

    def _means(self, m: Expr, x: Term, env: Environment, world: World) -> Formula:
        """x is what m says."""
        if m.op == "get":
            p = self.read(m.args[0], env, world)
            return p.has(x)
        v, cond, default = m.args
        if (v.t.hi if m.op == "greatest" else v.t.lo) is None:
            raise self.error(f"{show(m)} may not exist: its range has no limit")

        def at(y: Term) -> Formula:
            return both([self.limits(v.t, y), self.read(cond, {**env, v.aux: y}, world)])

        y = self.variable(v.t)
        order = at_most(y, x) if m.op == "greatest" else at_most(x, y)
        found = forall([y], implies(at(y), both([order, at(x)])))
        return both([either([at(x), same(x, self.read(default, env, world))]), found])

    def _defined(self, e: Expr, env: Environment, world: World) -> Term:
        inner = {f"={x.id}" for x in _nodes(e)}
        names = sorted([*(n for n in e.free if n not in self.ground), *(n for n in env if n in inner)])
        outer = {n: v for n, v in env.items() if n in self.ground}
        key = ("defined", e.id, id(world), *names, *((n, _ident(v)) for n, v in outer.items() if n in e.free))
        if key not in self._memo:
            variables = [z3.Const(f"{n}!{next(self._made)}", env[n].sort()) for n in names]
            name = f"{'the' if e.op == 'get' else e.op}!{next(self._made)}"
            x = self._leaf(name, tuple(variables), self.sort(e.t))
            inside = {**outer, **dict(zip(names, variables, strict=True))}
            means = self._means(e, x, inside, world)
            if e.op == "get":
                means = either([self.read(e.args[0], inside, world).none, means])
            self.definitions.append(forall(variables, means))
            self._memo[key] = (name, (outer, world))
        return self._leaf(self._memo[key][0], tuple(env[n] for n in names), self.sort(e.t))

    # ---- numbers of elements
    def _members(self, e: Expr, env: Environment, world: World) -> tuple[T, Callable[[Term], Formula]]:
        if e.op == "card":
            return e.args[0].t.item, self.read(e.args[0], env, world)
        v, cond = e.args
        return v.t, lambda x: self.read(cond, {**env, v.aux: x}, world)

    def _compared(self, e: Expr, env: Environment, world: World) -> Formula | None:
        """A number of elements compared with a small constant: by naming the elements."""
        if self.finite:
            return None
        for i, (n, k) in enumerate((e.args, e.args[::-1])):
            if n.op not in ("count", "card") or k.op != "const" or not -1 <= k.aux < COUNTED:
                continue
            t, member = self._members(n, env, world)
            if self.elements(t) is not None:
                return None
            c = int(k.aux)
            if e.op == "eq":
                return both([self._at_least(c, t, member), negated(self._at_least(c + 1, t, member))])
            strict = e.op == "lt"
            if i == 0:
                return negated(self._at_least(c if strict else c + 1, t, member))
            return self._at_least(c + 1 if strict else c, t, member)
        return None

    def _at_least(self, n: int, t: T, member: Callable[[Term], Formula]) -> Formula:
        if n <= 0:
            return TRUE
        xs = [self.variable(t) for _ in range(n)]
        there = [both([self.limits(t, x), member(x)]) for x in xs]
        return exists(xs, both([*there, *([z3.Distinct(xs)] if n > 1 else [])]))

    def _counted(self, e: Expr, env: Environment, world: World) -> Term:
        t, member = self._members(e, env, world)
        known = self.elements(t)
        if known is not None:
            total = z3.IntVal(0)
            for x in known:
                total = plus(total, pick(member(x), z3.IntVal(1), z3.IntVal(0)))
            return total
        names = sorted(n for n in e.free if n not in self._given_names)
        if any(n[0] == "=" for n in env):
            raise self.error(f"{show(e)}: bind what it speaks of (`for x in ... if y == x`) before counting")
        of_world = self._counts.setdefault(e.id, {})
        if id(world) not in of_world:
            k = next(self._made)
            outer = {n: v for n, v in env.items() if n in self._given_names}

            def function(args: list[Term]) -> Term:
                return self._leaf(f"count!{k}", tuple(args), z3.IntSort())

            def inside(inner: Environment, x: Term) -> Formula:
                return self._members(e, {**outer, **inner}, world)[1](x)

            of_world[id(world)] = _Count(function, names, [self._bound_type(e, n) for n in names], t, inside)
        return of_world[id(world)].function([env[n] for n in names])

    def _bound_type(self, e: Expr, name: str) -> T:
        for x in _nodes(e):
            if x.op == "bound" and x.aux == name:
                return x.t
        raise self.error(f"{show(e)} speaks of an unknown name")

    def _counting(self) -> list[Formula]:
        """What is used of the numbers of elements: none is 0; a change of one element is a change by one."""
        out: list[Formula] = []
        for of_world in self._counts.values():
            counts = list(of_world.values())
            for c in counts:
                around = [self.variable(t) for t in c.types]
                env = dict(zip(c.names, around, strict=True))
                n = c.function(around)
                x = self.variable(c.elem)
                there = both([self.limits(c.elem, x), c.member(env, x)])
                out.append(forall(around, both([n >= 0, same(n == 0, negated(exists([x], there)))])))
            for a, b in itertools.combinations(counts, 2):
                around = [self.variable(t) for t in a.types]
                env = dict(zip(a.names, around, strict=True))
                before, after = a.function(around), b.function(around)
                constants = self.constants.get(a.elem.name, [])
                x = self.variable(a.elem)
                alike = same(a.member(env, x), b.member(env, x))
                for chosen in ([], *[[c] for c in constants]):
                    apart = both([self.limits(a.elem, x), *[negated(same(x, c)) for c in chosen]])
                    change = z3.IntVal(0)
                    for c in chosen:
                        one, zero = z3.IntVal(1), z3.IntVal(0)
                        change = change + pick(b.member(env, c), one, zero) - pick(a.member(env, c), one, zero)
                    rest = forall([x], implies(apart, alike))
                    out.append(forall(around, implies(rest, after == before + change)))
        return out

    # ---- actions and types
    def parameters(self, a: Action, suffix: str = "") -> tuple[dict[str, Value], Formula]:
        """Arbitrary values for an action's parameters, and that they are of their types."""
        env: dict[str, Value] = {}
        typed = []
        for p in a.params:
            name = f"{a.name}.{a.parameter(p)}{suffix}"
            env[p.aux] = self.fresh(p.t, name)
            self.ground.add(p.aux)
            self._given_names.add(p.aux)
            if p.t.kind == "sort":
                self.constants.setdefault(p.t.name, []).append(env[p.aux])
            typed += [f for _, f in self.typed(p.t, env[p.aux])]
        return env, both(typed)

    def enabled(self, a: Action, env: Environment, world: World) -> Formula:
        """The action's guard."""
        return both([self.read(g, env, world, ASSERTED) for g in a.guard])

    def taken(
        self, a: Action, env: Environment, world: World, when: Formula = TRUE, onto: State | None = None
    ) -> State:
        """The state after the action: the variables of `onto` (else of the world) with the action's updates."""
        after = dict(world.now if onto is None else onto)
        for u in a.updates:
            keys = [self.read(k, env, world) for k in u.keys]
            cond = both([when, self.read(u.cond, env, world)])
            value = self.read(u.value, env, world)
            after[u.var] = self._put(self.model.vars[u.var], after[u.var], keys, cond, value)
        return after

    def _put(self, t: T, old: Value, keys: list[Term], cond: Formula, new: Value) -> Value:
        if not keys:
            return self.choose(t, cond, new, old)
        k, rest = keys[0], keys[1:]

        def at(i: Term) -> Value:
            before = old(i)
            here = both([cond, same(i, k)])
            return self.choose(t.item, here, self._put(t.item, before, rest, TRUE, new), before)

        return at

    def keys_written(self, a: Action, env: Environment, world: World) -> dict[str, list[Formula]]:
        """For each variable that the action writes at a number: that the number is a key."""
        out: dict[str, list[Formula]] = {}
        for u in a.updates:
            t = self.model.vars[u.var]
            for k in u.keys:
                if t.domain.kind == "range":
                    cond = self.read(u.cond, env, world, DENIED)
                    out.setdefault(u.var, []).append(implies(cond, self.limits(t.domain, self.read(k, env, world))))
                t = t.item
        return out

    def start(self) -> tuple[State, list[Formula]]:
        """The first state, and what is assumed of its parameters."""
        a = self.model.initial
        world = World({n: self.first(t) for n, t in self.model.vars.items()})
        env, typed = self.parameters(a)
        guard = self.enabled(a, env, world)
        return self.taken(a, env, world), [typed, guard]

    def typed(self, t: T, v: Value) -> list[tuple[bool, Formula]]:
        """That a value is of its type: (is it that a set is not empty?, formula)."""
        out: list[tuple[bool, Formula]] = []

        def walk(t: T, v: Value, around: list[Term], given: list[Formula]) -> None:
            def say(p: Formula, not_empty: bool = False) -> None:
                f = forall(around, implies(both(given), p))
                if not z3.is_true(f):
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
                    if self.finite and t.hi is not None:
                        for n in range(self.number(t.hi).as_long()):
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


def _ident(v: Value) -> int:
    return int(v.get_id()) if isinstance(v, z3.AstRef) else id(v)


_parts: dict[int, tuple[Expr, ...]] = {}
_hiding: dict[int, tuple[Expr, ...]] = {}
_sided: dict[int, bool] = {}


def _nodes(e: Expr) -> tuple[Expr, ...]:
    """Every node of an expression, the inner ones first."""
    hit = _parts.get(e.id)
    if hit is None:
        out = {x.id: x for a in e.args for x in _nodes(a)}
        out[e.id] = e
        hit = _parts[e.id] = tuple(out.values())
    return hit


def _implicit(e: Expr) -> tuple[Expr, ...]:
    """The parts that only a property defines in the unbounded reading, the inner ones first."""
    hit = _hiding.get(e.id)
    if hit is None:
        hit = _hiding[e.id] = tuple(x for x in _nodes(e) if x.op in ("get", "greatest", "least"))
    return hit


def _two_sided(e: Expr) -> bool:
    """Does it matter whether the formula is asserted or denied?"""
    hit = _sided.get(e.id)
    if hit is None:
        hit = _sided[e.id] = any(x.op in ("get", "exists", "forall") for x in _nodes(e))
    return hit
