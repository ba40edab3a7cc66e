"""The symbolic reading of a model's graph: expressions become formulas of Z3, states become closures over them.

Where a sort has no size, quantifiers stay quantifiers, and what is proved holds for every number of elements. Where all
sorts and sizes are given, quantifiers are expanded and formulas are free of them: that is how counterexamples are made
small and how steps are unrolled.
"""

from __future__ import annotations

import enum
import itertools
import typing
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Literal

import z3

from kafkaspec.language import Action, Expr, LoadedModel, T, show
from kafkaspec.language.expr import BINDERS, and_, bound, field, index, join, length, name_of, node, not_, or_
from kafkaspec.language.expr import TRUE as YES
from kafkaspec.language.expr import at_most as surely_at_most
from kafkaspec.language.expr import less as less_expr
from kafkaspec.language.model import must_have_values
from kafkaspec.language.obvious import essential, obvious
from kafkaspec.language.parts import kept, shape, used, variables_bound
from kafkaspec.language.substitute import substituted
from kafkaspec.language.types import INT
from kafkaspec.prove.counting import Count, majorities, numbers
from kafkaspec.prove.symbols import (
    FALSE,
    TRUE,
    Bound,
    Environment,
    Formula,
    Option,
    Partner,
    Sequence,
    State,
    Term,
    Value,
    at_most,
    both,
    divided,
    either,
    exists,
    forall,
    implies,
    is_true,
    less,
    negated,
    pick,
    plus,
    rest,
    same,
    times,
)
from kafkaspec.prove.values import Values, enum_sort

Side = Literal[1, -1, 0]
"""How a formula stands in a query: 1 asserted, -1 denied, 0 either."""
ASSERTED: Side = 1
DENIED: Side = -1

HIDDEN = frozenset(("get", "greatest", "least"))
"""What only a property defines, where sizes are not given."""
COUNTED = 3
"""A number of elements is compared with a constant up to this one by naming the elements."""


@dataclass(eq=False, frozen=True)
class World:
    """What a text reads: the variables now and, where a step is spoken of, next."""

    now: State
    next: State | None = None


class Reading(Values):
    """One reading of a model. `given` fixes sizes, flags and sorts; what it leaves out is arbitrary.

    `definitions` collects what is known of the constants and functions that reading made up (the greatest number that
    ..., the partner of ...): they belong to the assumptions of every query made from this reading."""

    def __init__(self, model: LoadedModel, given: Mapping[str, int | bool] | None = None) -> None:
        super().__init__(model, given)
        self.definitions: list[Formula] = []
        self.constants: dict[str, list[Term]] = {}
        self.ground: dict[str, list[Value]] = {}
        """The constants in the place of parameters (of each step, where there are several) and of bound variables."""
        self._given_names: set[str] = set()
        self._counted_sorts: set[str] = set()
        self._memo: dict[object, tuple[Value, object]] = {}
        self._counts: dict[Hashable, dict[int, Count]] = {}
        self._majorities: dict[Hashable, dict[int, Count]] = {}
        self._worlds: dict[int, World] = {}
        self._alone: dict[int, World] = {}
        """State, by its identity -> what a text of that state alone reads."""
        self.looked_at: set[str] = set()
        """The sorts of which the elements in `constants` were looked at."""

    # ---- what is known beforehand
    def number(self, limit: int | Expr) -> Term:
        """A type's limit as a term."""
        return z3.IntVal(limit) if isinstance(limit, int) else z3.simplify(self.read(limit, {}, World({}), 0))

    def sizes(self) -> list[Formula]:
        """What is known of the sizes that are not given: they are 1 or more, and no variable's type is empty."""
        kinds = self.model.sizes
        known = [self.size(n) >= 1 for n, kind in kinds.items() if kind == "size" and n not in self.given]
        known += [self.size(n) >= 1 for n in self._counted_sorts if n not in self.given]
        for t in self.model.vars.values():
            known += [f for lo, hi in must_have_values(t) if not is_true(f := self._ordered(lo, hi))]
        return known

    def _ordered(self, lo: int | Expr, hi: int | Expr) -> Formula:
        """lo <= hi, unless that is known as sizes are 1 or more."""
        return TRUE if surely_at_most(lo, hi) else at_most(self.number(lo), self.number(hi))

    def axioms(self) -> list[Formula]:
        """What holds of every state by its shape alone."""
        known = -1
        while known != (known := len(self.unknowns())):  # what is counted may speak of other numbers of elements
            for c in self.unknowns():
                c.member(c.around(self)[1], self.variable(c.elem))
        forms = [list(of_world.values()) for of_world in self._counts.values()]
        atoms = [c for of_world in self._majorities.values() for c in of_world.values()]
        return [
            *self._axioms.values(),
            *numbers(self, forms, self.constants, self._counted_sorts),
            *majorities(self, atoms),
        ]

    def extent(self) -> tuple[int, ...]:
        """How much is known beforehand: equal unless something was read since that adds to it."""
        constants = sum(map(len, self.constants.values()))
        return len(self.definitions), len(self._axioms), len(self.unknowns()), constants, len(self._counted_sorts)

    def has_made_up(self) -> bool:
        """Was something read that is known in this reading alone?"""
        return bool(self.definitions or self.unknowns() or self._counted_sorts)

    def axioms_read(self) -> dict[str, Formula]:
        """What was read of variables of which a state has many values, by their names."""
        return self._axioms

    def unknowns(self) -> list[Count]:
        """What is said of sets as a whole, as far as it has been read."""
        tables = (self._counts, self._majorities)
        return [c for table in tables for of_world in table.values() for c in of_world.values()]

    # ---- constants in the place of bound variables
    def arbitrary(self, bound: Expr) -> Bound:
        """A new constant for a bound variable, which then is as good as a parameter of the action."""
        x = self._constant_for(bound)
        self.ground.setdefault(bound.aux, []).append(x)
        for name, part in self._parts_of_sorts(bound.t, x):
            self.constants.setdefault(name, []).append(part)
        return x

    def _constant_for(self, bound: Expr) -> Bound:
        self._where = bound.loc or self._where
        return self.variable(bound.t, name_of(bound.aux))

    def forget(self, bounds: list[Expr]) -> None:
        """End the use of such constants."""
        for b in reversed(bounds):
            self.ground[b.aux].pop()
            for name, _ in self._parts_of_sorts(b.t, self.variable(b.t)):
                self.constants[name].pop()

    def _is_ground(self, name: str, env: Environment) -> bool:
        """Does a constant stand for the variable here? Not where a comprehension binds it once more."""
        return name in env and any(env[name] is x for x in self.ground.get(name, ()))

    def _parts_of_sorts(self, t: T, x: Value) -> list[tuple[str, Bound]]:
        """The elements of sorts in a parameter's value, and the value itself if it is a record: by the type's name."""
        if t.kind == "rec":
            inner = [p for (_, ft), y in zip(t.fields, x, strict=True) for p in self._parts_of_sorts(ft, y)]
            return [(t.name, x), *inner]
        return [(t.name, x)] if t.kind == "sort" else []

    # ---- composite values
    # ---- expressions
    def read(self, e: Expr, env: Environment, world: World, side: Side = 0) -> Value:
        """The value of an expression. For truth values, `side` says how the formula stands in the query: where a text
        speaks of the partner of something under a quantifier, that decides how the partner is bound. The two ways are
        equal where there is a partner, or where the text asks first whether there is; else an assumption is read weaker
        and a goal stronger. Without a side, as in a value that is assigned, a text must ask first."""
        if not _two_sided(e):
            side = 0
        e = kept(e)
        bound = tuple((n, _ident(v)) for n, v in env.items() if n in e.free or n[0] == "=")
        key = (e.id, id(world), side, bound)
        hit = self._memo.get(key)
        if hit is None:
            if e.loc is not None:
                self._where = e.loc
            if e.op in BINDERS and any(e.args[0].aux in variables_bound(x) for x in e.args[1:]):
                raise self.error(f"{show(e)} binds {name_of(e.args[0].aux)} within its own scope")
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
            means = self._may_be(hidden, x, env, world, side)
            rest = self.read(e, {**env, f"={hidden.id}": x}, world, side)
            return forall([x], implies(means, rest))
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
                return self.equal(join(x.t, y.t), go(x), go(y)) if known is None else known
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
            case "must":
                return TRUE
            case "majority":
                return self._majority(e, env, world)
        value: Formula = self._value(e, env, world)
        return value

    def _quantified(self, e: Expr, env: Environment, world: World, side: Side) -> Formula:
        op, variables, domains, sort_of = e.op, [], [], []
        beside: list[tuple[Expr, Environment]] = []
        joint = "or" if op == "forall" else "and"
        while True:  # one quantifier over many variables is easier than many quantifiers: pull the inner ones out
            if e.op == op and self.elements(e.args[0].t) is None:
                v = e.args[0]
                x = self._constant_for(v)
                variables.append(x)
                sort_of.append(v.t)
                domains.append(self.limits(v.t, x))
                env, e = {**env, v.aux: x}, kept(e.args[1])
                continue
            if e.op == joint:
                parts = [kept(x) for x in e.args]
                inner = [x for x in parts if x.op == op]
                if len(inner) == 1 or len(parts) == 1:
                    e = inner[0] if inner else parts[0]
                    beside += [(x, env) for x in parts if x is not e]
                    continue
            break
        join = either if op == "forall" else both
        if e.op == op:
            v, inside = e.args
            known = [self.read(inside, {**env, v.aux: x}, world, side) for x in self.elements(v.t) or []]
            body = both(known) if op == "forall" else either(known)
        else:
            body = self.read(e, env, world, side)
        body = join([*[self.read(x, around, world, side) for x, around in beside], body])
        if op == "forall":
            return forall(variables, implies(both(domains), body))
        found = exists(variables, both([*domains, body]))
        if side == DENIED and len(variables) == 1:  # try the action's own parameters first: solvers do not see it
            t, x = sort_of[0], variables[0]
            if t.kind == "sort":
                self.looked_at.add(t.name)
                found = either([found, *[z3.substitute(body, (x, c)) for c in self.constants.get(t.name, [])]])
        return found

    def _value(self, e: Expr, env: Environment, world: World) -> Value:
        a, t = e.args, e.t
        if e.op in HIDDEN and f"={e.id}" in env:
            return env[f"={e.id}"]

        def go(x: Expr) -> Value:
            return self.read(x, env, world)

        match e.op:
            case "const":
                if t.kind == "bool":
                    return z3.BoolVal(bool(e.aux))
                if t.kind == "enum":
                    return enum_sort(typing.cast(type[enum.Enum], t.cls))[1][e.aux]
                return z3.IntVal(e.aux)
            case "size":
                return self.size(e.aux)
            case "sortsize":
                self._counted_sorts.add(e.aux)
                return self.size(e.aux)
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
            case "concat":
                q, r = map(go, a)
                return Sequence(
                    plus(q.length, r.length),
                    lambda i: self.choose(t.item, less(i, q.length), q.at(i), r.at(plus(i, q.length, -1))),
                )
            case "mul":
                return times(go(a[0]), a[1].aux) if a[1].op == "const" else go(a[0]) * go(a[1])  # of two sizes
            case "div":
                return divided(go(a[0]), a[1].aux)
            case "mod":
                return rest(go(a[0]), a[1].aux)
            case "add" | "sub":
                return plus(go(a[0]), go(a[1]), 1 if e.op == "add" else -1)
            case "none":
                return self.first(t)
            case "some":
                x = go(a[0])
                return Partner(FALSE, lambda y: same(y, x), x) if self.is_partner(t) else Option(FALSE, x)
            case "get" if not self.is_partner(a[0].t):  # what stands behind None is one value: all of None are equal
                o = go(a[0])
                return self.choose(t, o.none, self.first(t), o.value)
            case "empty":
                return lambda _: FALSE
            case "full":
                return lambda _: TRUE
            case "with":
                s, x = map(go, a)
                return lambda i: either([s(i), self.equal(t.item, i, x)])
            case "without":
                s, x = map(go, a)
                return lambda i: both([s(i), negated(self.equal(t.item, i, x))])
            case "union" | "inter" | "diff":
                s, r = map(go, a)
                if e.op == "union":
                    return lambda i: either([s(i), r(i)])
                return lambda i: both([s(i), negated(r(i)) if e.op == "diff" else r(i)])
            case "setof":
                v, cond = a
                return lambda i: both([self.inside(v.t, i), self.read(cond, {**env, v.aux: i}, world)])
            case "image":
                v, cond, value = a

                def made(i: Bound) -> Formula:
                    def of(x: Bound) -> Formula:
                        at = {**env, v.aux: x}
                        return both([self.read(cond, at, world), self.equal(t.item, self.read(value, at, world), i)])

                    return self.some(v.t, of)

                return made
            case "mapof":
                v, value = a
                return lambda i: self.read(value, {**env, v.aux: i}, world)
            case "count" | "card" | "sum":
                return self._counted(e, env, world)
            case "greatest" | "least" if self.elements(a[0].t) is not None:
                return self._chosen(e, env, world)
            case "get" | "greatest" | "least":
                return self._defined(e, env, world)
        raise self.error(f"{show(e)} ({e.op}) has no symbolic reading")

    def _chosen(self, e: Expr, env: Environment, world: World) -> Term:
        """The greatest or least of few and known values."""
        v, cond, value, *default = e.args
        known = self.elements(v.t) or []
        if value is v:
            found = self.read(default[0], env, world) if default else z3.IntVal(0)
            for x in known if e.op == "greatest" else reversed(known):
                found = pick(self.read(cond, {**env, v.aux: x}, world), x, found)
            return found
        any_yet, best = FALSE, z3.IntVal(0)
        for x in known:
            at = {**env, v.aux: x}
            there, y = self.read(cond, at, world), self.read(value, at, world)
            better = less(best, y) if e.op == "greatest" else less(y, best)
            best = pick(both([there, either([negated(any_yet), better])]), y, best)
            any_yet = either([any_yet, there])
        return pick(any_yet, best, self.read(default[0], env, world)) if default else best

    # ---- terms that only a property defines
    def _hidden(self, e: Expr, env: Environment) -> Expr | None:
        """The innermost part of a text that a property defines and that speaks of bound variables. Those that it binds
        itself have no value yet."""
        for m in _implicit(e):
            if f"={m.id}" in env or not m.free <= e.free or all(self._is_ground(n, env) for n in m.free):
                continue
            if m.op == "get" and not self.is_partner(m.args[0].t):
                continue
            if m.op != "get" and self.elements(m.args[0].t) is not None:
                continue
            return m
        return None

    def _may_be(self, m: Expr, x: Term, env: Environment, world: World, side: Side) -> Formula:
        """x is what m says; and anything where m is None: a text that asks first does not depend on it there."""
        means = self._means(m, x, env, world)
        if m.op != "get" or side == ASSERTED:
            return means
        return either([self.read(m.args[0], env, world).none, means])

    def _means(self, m: Expr, x: Term, env: Environment, world: World) -> Formula:
        """x is what m says."""
        if m.op == "get":
            p = self.read(m.args[0], env, world)
            return p.has(x)
        v, cond, value, *default = m.args
        if v.t.numeric and (v.t.lo if m.op == "least" and value is v else v.t.hi) is None:
            raise self.error(f"{show(m)} may not exist: its range has no limit")

        def at(y: Bound) -> Formula:
            return both([self.limits(v.t, y), self.read(cond, {**env, v.aux: y}, world)])

        def of(y: Bound) -> Term:
            return self.read(value, {**env, v.aux: y}, world)

        y, z = self.variable(v.t), self.variable(v.t)
        among = at(x) if value is v else exists([z], both([at(z), same(of(z), x)]))
        order = at_most(of(y), x) if m.op == "greatest" else at_most(x, of(y))
        found = forall([y], implies(at(y), both([order, among])))
        return both([*[either([among, same(x, self.read(d, env, world))]) for d in default], found])

    def _defined(self, e: Expr, env: Environment, world: World) -> Term:
        inner = {f"={x.id}" for x in used(e)}
        names = sorted([*(n for n in e.free if not self._is_ground(n, env)), *(n for n in env if n in inner)])
        outer = {n: v for n, v in env.items() if self._is_ground(n, env)}
        key = ("defined", e.id, id(world), *names, *((n, _ident(v)) for n, v in outer.items() if n in e.free))
        if key not in self._memo:
            variables = [self.like(env[n], n) for n in names]
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
    def _members(self, e: Expr, env: Environment, world: World) -> tuple[T, Callable[[Bound], Formula]]:
        if e.op in ("card", "majority"):
            return e.args[0].t.item, self.read(e.args[0], env, world)
        v, cond = e.args[:2]
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

    def _at_least(self, n: int, t: T, member: Callable[[Bound], Formula]) -> Formula:
        if n <= 0:
            return TRUE
        xs = [self.variable(t) for _ in range(n)]
        there = [both([self.limits(t, x), member(x)]) for x in xs]
        if t.kind == "rec":
            apart = [negated(self.equal(t, x, y)) for x, y in itertools.combinations(xs, 2)]
        else:
            apart = [z3.Distinct(xs)] if n > 1 else []
        return exists(xs, both([*there, *apart]))

    def _counted(self, e: Expr, env: Environment, world: World) -> Term:
        """The number of a set's elements, or a sum over elements."""
        if e.op == "card":
            made = self._built(e.args[0], env, world)
            if made is not None:
                return made
        t, member = self._members(e, env, world)
        known = self.elements(t)
        if known is not None:
            total = z3.IntVal(0)
            for x in known:
                total = plus(total, pick(member(x), self._weight(e, env, world, x), z3.IntVal(0)))
            return total
        return self._unknown(self._counts, "count", z3.IntSort(), e, env, world)

    def _weight(self, e: Expr, env: Environment, world: World, x: Bound) -> Term:
        """What an element adds to a sum."""
        return self.read(e.args[2], {**env, e.args[0].aux: x}, world) if e.op == "sum" else z3.IntVal(1)

    def _built(self, s: Expr, env: Environment, world: World) -> Term | None:
        """The number of elements of a set as it is built from another; None if its form does not tell."""
        one, zero = z3.IntVal(1), z3.IntVal(0)
        s = kept(s)
        if s.op == "empty":
            return zero
        if s.op == "full" and s.t.item.kind == "sort":
            self._counted_sorts.add(s.t.item.name)
            return self.size(s.t.item.name)
        if self.elements(s.t.item) is not None or s.op not in ("with", "without", "ite"):
            return None
        if s.op == "ite":
            c = self.read(s.args[0], env, world)
            return pick(c, *[self._counted(node("card", INT, x), env, world) for x in s.args[1:]])
        inner = self._counted(node("card", INT, s.args[0]), env, world)
        there = self.read(s.args[0], env, world)(self.read(s.args[1], env, world))
        return plus(inner, pick(there, zero, one)) if s.op == "with" else plus(inner, pick(there, one, zero), -1)

    def _unknown(
        self,
        table: dict[Hashable, dict[int, Count]],
        name: str,
        sort: z3.SortRef,
        e: Expr,
        env: Environment,
        world: World,
    ) -> Term:
        """What is said of elements as a whole, as an unknown of which the axioms below say what is known."""
        if any(f"={x.id}" in env for x in used(e)):
            raise self.error(f"{show(e)}: bind what it speaks of (`for x in ... if y == x`) before counting")
        e, world = self._of_one_state(e, world)
        of_world = table.setdefault(shape(e), {})
        if id(world) not in of_world:
            t, _ = self._members(e, env, world)
            types = {x.aux: x.t for x in used(e) if x.op == "bound" and x.aux in e.free}
            names = sorted(n for n in types if n not in self._given_names)
            k = next(self._made)
            outer = {n: v for n, v in env.items() if n in self._given_names}

            def function(args: list[Bound]) -> Term:
                return self._leaf(f"{name}!{k}", tuple(args), sort)

            def inside(inner: Environment, x: Bound) -> Formula:
                return self._members(e, {**outer, **inner}, world)[1](x)

            def weight(inner: Environment, x: Bound) -> Term:
                return self._weight(e, {**outer, **inner}, world, x)

            of_world[id(world)] = Count(
                function, names, [types[n] for n in names], t, inside, weight if e.op == "sum" else None
            )
        found = of_world[id(world)]
        return found.function([env[n] for n in found.names])

    def _of_one_state(self, e: Expr, world: World) -> tuple[Expr, World]:
        """What is read of a step, as it is read of a state, where it speaks of one alone: so that what is counted in
        both states of a step is of one form, and what is counted in one of them is the same in every claim."""
        spoken_of = {x.op for x in used(e)} & {"var", "nextvar"}
        if len(spoken_of) > 1:
            return e, world
        if world.next is None or "nextvar" not in spoken_of:
            return e, self._alone.setdefault(id(world.now), World(world.now))
        now = substituted(e, lambda x: node("var", x.t, aux=x.aux) if x.op == "nextvar" else None)
        return now, self._alone.setdefault(id(world.next), World(world.next))

    def _majority(self, e: Expr, env: Environment, world: World) -> Formula:
        """More than half of a sort's elements are in a set."""
        t, member = self._members(e, env, world)
        known = self.elements(t)
        if known is None:
            self._counted_sorts.add(t.name)
            return self._unknown(self._majorities, "majority", z3.BoolSort(), e, env, world)
        total = z3.IntVal(0)
        for x in known:
            total = plus(total, pick(member(x), z3.IntVal(1), z3.IntVal(0)))
        return less(z3.IntVal(len(known)), times(total, 2))

    # ---- actions and types
    def parameters(self, a: Action, suffix: str = "") -> tuple[dict[str, Value], Formula]:
        """Arbitrary values for an action's parameters, and that they are of their types."""
        env: dict[str, Value] = {}
        typed = []
        for p in a.params:
            name = f"{a.name}({a.parameter(p)}){suffix}"
            env[p.aux] = self.fresh(p.t, name)
            self.ground.setdefault(p.aux, []).append(env[p.aux])
            self._given_names.add(p.aux)
            for sort, part in self._parts_of_sorts(p.t, env[p.aux]):
                self.constants.setdefault(sort, []).append(part)
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
            for x in used(u.value):
                if x.op in ("with", "without") and x.t.item.kind == "rec" and x.args[1].free <= env.keys():
                    self.constants.setdefault(x.t.item.name, []).append(self.read(x.args[1], env, world))
            after[u.var] = self._put(self.model.vars[u.var], after[u.var], keys, cond, value)
        return after

    def _put(self, t: T, old: Value, keys: list[Term], cond: Formula, new: Value) -> Value:
        if not keys:
            return self.choose(t, cond, new, old)
        k, deeper = keys[0], keys[1:]
        if t.kind == "rec":
            i = k.as_long()
            return (*old[:i], self._put(t.fields[i][1], old[i], deeper, cond, new), *old[i + 1 :])

        def at(i: Term) -> Value:
            before = old.at(i) if t.kind == "seq" else old(i)
            here = both([cond, same(i, k)])
            return self.choose(t.item, here, self._put(t.item, before, deeper, TRUE, new), before)

        return Sequence(old.length, at) if t.kind == "seq" else at

    def nothing_yet(self) -> World:
        """Where the start begins: every variable has its type's first value."""
        return World({n: self.first(t) for n, t in self.model.vars.items()})

    def needs(self, a: Action, env: Environment, world: World, side: Side = DENIED) -> list[Formula]:
        """What the action's text evaluates has a value, where it is reached."""
        out: list[Formula] = []
        back: Side = -side
        before: list[Expr] = []
        for need in a.needs:
            said = essential(conjuncts(need.defined), [*a.guard[: need.after], *before])
            before += said
            if said:
                reached = both([self.read(g, env, world, back) for g in a.guard[: need.after]])
                out += [implies(reached, self.read(p, env, world, side)) for p in said]
        return out

    def fits(self, a: Action, env: Environment, world: World, side: Side = DENIED) -> dict[str, list[Formula]]:
        """By variable: what the action leaves in it is of its type."""
        out: dict[str, list[Formula]] = {}
        for n, e in a.typed(self.model.vars):
            out.setdefault(n, []).extend(self.read(p, env, world, side) for p in conjuncts(e) if not obvious(p))
        return out

    def few(self) -> list[Expr]:
        """That sets of records are no larger than their types say, in any state."""
        out: list[Expr] = []

        def walk(t: T, e: Expr) -> Expr:
            match t.kind:
                case "set" if t.hi is not None:
                    return less_expr(length(e), t.hi, equal=True)
                case "map":
                    k = bound(t.domain, "k")
                    inner = walk(t.item, index(e, k))
                    return inner if inner is YES else node("forall", inner.t, k, inner)
                case "rec":
                    return and_(*[walk(ft, field(e, n)) for n, ft in t.fields])
            return YES

        for n, t in self.model.vars.items():
            e = walk(t, node("var", t, aux=n))
            out += [] if e is YES else [e]
        return out


def _ident(v: Value) -> object:
    if isinstance(v, tuple):
        return tuple(map(_ident, v))
    return int(v.get_id()) if isinstance(v, z3.AstRef) else id(v)


def conjuncts(e: Expr) -> list[Expr]:
    """A claim in parts, all of which together say the same."""
    e = kept(e)
    if e is YES:
        return []
    if e.op == "and":
        return [p for x in e.args for p in conjuncts(x)]
    if e.op == "forall":
        return [node("forall", e.t, e.args[0], p) for p in conjuncts(e.args[1])]
    if e.op == "or":
        parts = [conjuncts(x) for x in e.args]
        many = [i for i, p in enumerate(parts) if len(p) > 1]
        if len(many) == 1:
            rest = [x for i, x in enumerate(e.args) if i != many[0]]
            return [or_(*rest, p) for p in parts[many[0]]]
    if e.op == "eq" and e.args[0].t.kind == "bool" and any(x.op in ("forall", "exists") for x in used(e)):
        a, b = e.args
        return [*conjuncts(or_(not_(a), b)), *conjuncts(or_(a, not_(b)))]
    return [e]


_hiding: dict[int, tuple[Expr, ...]] = {}
_sided: dict[int, bool] = {}


def _implicit(e: Expr) -> tuple[Expr, ...]:
    """The parts that only a property defines in the unbounded reading, the inner ones first."""
    hit = _hiding.get(e.id)
    if hit is None:
        hit = _hiding[e.id] = tuple(x for x in used(e) if x.op in HIDDEN)
    return hit


def _two_sided(e: Expr) -> bool:
    """Does it matter whether the formula is asserted or denied?"""
    hit = _sided.get(e.id)
    if hit is None:
        hit = _sided[e.id] = any(x.op in ("get", "exists", "forall") for x in used(e))
    return hit
