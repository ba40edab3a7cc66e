"""What is assumed of sets whose elements cannot be listed: their numbers of elements, sums over them, majorities.

Each is an unknown, of which that is said which holds of every set of every size; the tests ask the small ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import z3

from kafkaspec.language import T
from kafkaspec.prove.symbols import (
    Bound,
    Environment,
    Formula,
    Term,
    both,
    either,
    exists,
    forall,
    implies,
    negated,
    pick,
    same,
)
from kafkaspec.prove.values import Values


@dataclass(eq=False)
class Count:
    """What is said of the elements with a property as a whole (their number, the sum of a number of each, that they are
    a majority), as an unknown that depends on `names`. `weight`: what an element adds to a sum."""

    function: Callable[[list[Bound]], Term]
    names: list[str]
    types: list[T]
    elem: T
    member: Callable[[Environment, Bound], Formula]
    weight: Callable[[Environment, Bound], Term] | None = None

    def around(self, values: Values) -> tuple[list[Bound], dict[str, Bound]]:
        """Arbitrary values for what the unknown depends on."""
        around = [values.variable(t) for t in self.types]
        return around, dict(zip(self.names, around, strict=True))

    def adds(self, env: Environment, x: Bound) -> Term:
        """What an element adds, if it is there."""
        return z3.IntVal(1) if self.weight is None else self.weight(env, x)


def numbers(
    values: Values,
    forms: Iterable[Collection[Count]],
    constants: Mapping[str, list[Bound]],
    counted: Collection[str],
) -> list[Formula]:
    """What is used of numbers of elements and of sums, those of one form together. `constants`: elements that are
    spoken of, by their type; `counted`: sorts whose own number of elements is spoken of.

    A number of elements is 0 or more, 0 if and only if there is none, and at most that of the sort, which it is if
    and only if each element is there. A sum to which nothing adds is 0; one to which nothing below 0 is added is 0
    or more. Where two of one form (in two states) differ in one element, or in two, they differ by what these add.
    Two sets of whatever form that have the same elements have as many, if nothing else is spoken of in their texts."""
    out: list[Formula] = []
    forms = list(forms)
    for counts in forms:
        for c in counts:
            around, env = c.around(values)
            n = c.function(around)
            x = values.variable(c.elem)
            there = both([values.limits(c.elem, x), c.member(env, x)])
            if c.weight is None:
                out.append(forall(around, both([n >= 0, same(n == 0, negated(exists([x], there)))])))
            else:
                weight = c.weight(env, x)
                out.append(forall(around, implies(forall([x], implies(there, weight >= 0)), n >= 0)))
                out.append(forall(around, implies(forall([x], implies(there, weight == 0)), n == 0)))
            if c.weight is None and c.elem.kind == "sort" and c.elem.name in counted:
                whole = values.size(c.elem.name)
                out.append(forall(around, both([n <= whole, same(n == whole, forall([x], there))])))
        for a, b in itertools.combinations(counts, 2):
            out += _differences(values, a, b, constants.get(a.elem.name, []))
    for counts, others in itertools.combinations(forms, 2):
        for a, b in itertools.product(counts, others):
            if a.elem is b.elem and a.weight is b.weight is None and not (a.names or b.names):
                x = values.variable(a.elem)
                alike = implies(values.limits(a.elem, x), same(a.member({}, x), b.member({}, x)))
                out.append(implies(forall([x], alike), a.function([]) == b.function([])))
    return out


def _differences(values: Values, a: Count, b: Count, constants: list[Bound]) -> list[Formula]:
    """Where only some of the constants are in one and not in the other, or add another number."""
    around, env = a.around(values)
    before, after = a.function(around), b.function(around)
    zero = z3.IntVal(0)
    x = values.variable(a.elem)
    alike = same(a.member(env, x), b.member(env, x))
    if a.weight is not None and b.weight is not None:
        same_weight = same(a.weight(env, x), b.weight(env, x))
        alike = both([alike, implies(a.member(env, x), same_weight)])
    groups: list[list[Bound]] = [[], *[[c] for c in constants]]
    groups += [list(two) for two in itertools.combinations(constants, 2)]
    out = []
    for chosen in groups:
        apart = [negated(values.equal(a.elem, x, c)) for c in chosen]
        change = zero
        for i, c in enumerate(chosen):
            again = either([values.equal(a.elem, c, d) for d in chosen[:i]])
            counted = values.limits(a.elem, c)
            more = pick(both([counted, b.member(env, c)]), b.adds(env, c), zero)
            fewer = pick(both([counted, a.member(env, c)]), a.adds(env, c), zero)
            change = change + pick(again, zero, more - fewer)
        others = forall([x], implies(both([values.limits(a.elem, x), *apart]), alike))
        out.append(forall(around, implies(others, after == before + change)))
    return out


def majorities(values: Values, atoms: list[Count]) -> list[Formula]:
    """What is used of majorities, for sets A and B of elements of one sort, which has n >= 1 elements:

    1. two majorities have an element in common: else n >= |A| + |B| > n/2 + n/2 (so none is empty: take A twice);
    2. a set that has all elements of a majority is one: |B| >= |A| > n/2;
    3. the set of all elements is one: n > n/2, as n >= 1."""
    out: list[Formula] = []
    for a in atoms:
        around, env = a.around(values)
        x = values.variable(a.elem)
        out.append(forall(around, implies(forall([x], a.member(env, x)), a.function(around))))
    for a, b in itertools.product(atoms, repeat=2):
        if a.elem is not b.elem:
            continue
        (these, here), (those, there) = a.around(values), b.around(values)
        x = values.variable(a.elem)
        m, n = a.function(these), b.function(those)
        in_a, in_b = a.member(here, x), b.member(there, x)
        out.append(forall([*these, *those], implies(both([m, n]), exists([x], both([in_a, in_b])))))
        if a is not b:
            out.append(forall([*these, *those], implies(both([m, forall([x], implies(in_a, in_b))]), n)))
    return out
