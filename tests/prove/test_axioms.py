"""What the prover assumes of numbers of elements, sums and majorities holds of every set at every small size."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import z3

from kafkaspec.language import load
from kafkaspec.prove.counting import Count
from kafkaspec.prove.reading import Reading, World
from tests.prove.election import Groups

SIZES = [1, 2, 3, *(pytest.param(n, marks=pytest.mark.deep) for n in (4, 5, 6))]


def meaning(c: Count, x: Any, env: dict[str, Any], share: int, elements: list[Any]) -> Any:
    """What an unknown stands for: a number, a sum, or that more than a `share`-th of the elements are there."""
    there = [c.member(env, k) for k in elements]
    if z3.is_bool(x):
        return x == (share * z3.Sum([z3.If(p, 1, 0) for p in there]) > len(elements))
    weights = [z3.IntVal(1) if c.weight is None else c.weight(env, k) for k in elements]
    return x == z3.Sum([z3.If(p, w, 0) for p, w in zip(there, weights, strict=True)])


def refuted(n: int, share: int = 2) -> list[Any]:
    """The axioms that some sets of a sort of n elements break."""
    model = load(Groups)
    r = Reading(model)
    (a,) = model.actions
    env, _ = r.parameters(a)
    for world in (World(r.state()), World(r.state("@after"))):
        for claim in model.invariants.values():
            r.read(claim.expr, env, world)
    axioms = r.axioms()
    elements = list(z3.Consts([f"e{i}" for i in range(n)], z3.DeclareSort("Node")))
    x = z3.Const("x", z3.DeclareSort("Node"))
    solver = z3.Solver()
    solver.add(r.size("Node") == n, z3.ForAll([x], z3.Or([x == e for e in elements])))
    if n > 1:
        solver.add(z3.Distinct(elements))
    unknowns = r.unknowns()
    assert {(c.weight is None, z3.is_bool(c.function(elements[: len(c.names)]))) for c in unknowns} == {
        (True, False),
        (False, False),
        (True, True),
    }
    for c in unknowns:
        for values in itertools.product(elements, repeat=len(c.names)):
            inside = dict(zip(c.names, values, strict=True))
            solver.add(meaning(c, c.function(list(values)), inside, share, elements))
    out = []
    for axiom in axioms:
        solver.push()
        solver.add(z3.Not(axiom))
        answer = solver.check()
        assert answer != z3.unknown
        if answer == z3.sat:
            out.append(axiom)
        solver.pop()
    return out


@pytest.mark.parametrize("n", SIZES)
def test_what_is_assumed_of_sets_holds_of_all_sets(n: int) -> None:
    assert refuted(n) == []


def test_more_than_a_third_is_not_enough() -> None:
    broken = refuted(2, share=3)
    assert broken, "two sets of more than a third need not meet"
