"""What is left out of a proof as its form shows it: it is true of every state, and what is not always true is kept."""

from __future__ import annotations

import random
from typing import Annotated

import pytest
import z3

from kafkaspec.language import Bounded, Expr, Model, Range, Size, Sort, invariant, load
from kafkaspec.language.concrete import Concrete
from kafkaspec.language.defined import defined
from kafkaspec.language.expr import FALSE, TRUE, and_, bound, contains, node, not_, or_
from kafkaspec.language.obvious import essential, obvious
from kafkaspec.language.types import BOOL, make, resolve
from kafkaspec.prove.reading import Reading, World, conjuncts
from tests.prove.forms import Forms
from tests.prove.test_reading import any_state, symbolic


class Node(Sort):
    """Something."""


L = Size("L")
Number = Annotated[int, Range(0, L)]


class Shown(Model):
    """Claims whose form shows that they have a value, and claims whose form does not."""

    q: Annotated[list[Number], Bounded(L)]
    r: Annotated[list[Number], Bounded(L)]
    o: Number | None
    n: Number
    m: dict[Number, Number]

    @invariant()
    def yes_within(s) -> bool:
        return all(s.q[i] <= L for i in range(len(s.q)))

    @invariant()
    def yes_one_less(s) -> bool:
        return all(s.q[i] <= s.q[i - 1] for i in range(1, len(s.q)))

    @invariant()
    def yes_last(s) -> bool:
        return len(s.q) == 0 or s.q[len(s.q) - 1] == s.n

    @invariant()
    def yes_shorter(s) -> bool:
        return len(s.q) >= len(s.r) or s.r[len(s.q)] == s.r[len(s.r) - 1]

    @invariant()
    def yes_cases(s) -> bool:
        return not (s.n < len(s.q) or s.n + 1 < len(s.q)) or s.q[s.n] == 0

    @invariant()
    def yes_there(s) -> bool:
        return s.o is None or (s.o < L and s.m[s.o + 1] == s.m[s.o])

    @invariant()
    def no_first(s) -> bool:
        return s.q[0] == 0

    @invariant()
    def no_one_more(s) -> bool:
        return all(s.q[i + 1] <= L for i in range(len(s.q)))

    @invariant()
    def no_other(s) -> bool:
        return all(s.r[i] <= L for i in range(len(s.q)))

    @invariant()
    def no_at_most(s) -> bool:
        return len(s.q) < len(s.r) or s.q[len(s.r)] == 0

    @invariant()
    def no_none(s) -> bool:
        return s.n == 0 or s.m[s.n] == s.o + 1  # type: ignore[operator]

    @invariant()
    def no_key(s) -> bool:
        return s.n < 1 or s.m[s.n + 1] == 0

    @invariant()
    def no_one_case(s) -> bool:
        return not (s.n < len(s.q) or s.n < len(s.r)) or s.q[s.n] == 0


def ids(conditions: list[Expr]) -> list[int]:
    return [e.id for e in conditions]


@pytest.mark.parametrize("name", list(load(Shown).invariants))
def test_the_form_shows_what_it_shows(name: str) -> None:
    e = defined(load(Shown).invariants[name].expr)
    assert obvious(e) == name.startswith("yes")


@pytest.mark.parametrize("cls", [Shown, Forms])
def test_what_is_obvious_is_true_in_every_state(cls: type[Model]) -> None:
    model, chance = load(cls), random.Random(7)
    sizes: dict[str, int | bool] = dict.fromkeys(model.sizes, 2)
    c = Concrete(cls, sizes)
    said = [p for claim in model.invariants.values() for p in conjuncts(defined(claim.expr)) if obvious(p)]
    assert len(said) > 4
    for _ in range(30):
        _, values = any_state(c, chance)
        r = Reading(model, sizes)
        world = World({n: symbolic(r, t, values[n]) for n, t in model.vars.items()})
        for p in said:
            assert z3.is_true(z3.simplify(r.read(p, {}, world))), p


def test_what_others_say_already_is_left_out() -> None:
    a, b, *_ = (defined(c.expr) for n, c in load(Shown).invariants.items() if n.startswith("no"))
    assert ids(essential([a, b, a, and_(a, b)])) == ids([a, b])
    assert ids(essential([b], given=[FALSE])) == []
    assert ids(essential([TRUE, a], given=[b])) == ids([a])


def test_two_things_that_there_are_need_not_be_one() -> None:
    v = bound(resolve(Node), "v")
    p = contains(v, node("var", make("set", elem=v.t), aux="s"))
    one, other = node("forall", BOOL, v, p), node("forall", BOOL, v, not_(p))
    assert not obvious(or_(one, other))
    assert not obvious(not_(and_(node("exists", BOOL, v, p), node("exists", BOOL, v, not_(p)))))
    assert obvious(or_(one, not_(one)))
    assert obvious(node("forall", BOOL, v, or_(p, not_(p))))
