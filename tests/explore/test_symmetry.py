"""Symmetry: as many orbits as the whole space has, whatever the sorts; what it cannot do is refused."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Annotated

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore.engine import Search, explore
from kafkaspec.explore.layout import Layout
from kafkaspec.explore.program import Program
from kafkaspec.explore.symmetry import neighbour_swaps
from kafkaspec.language import Bounded, Model, NonEmpty, Sort, action, initial, invariant, load, require
from kafkaspec.language.concrete import Concrete, State
from kafkaspec.models.examples.cleaner_anchor import CleanerAnchor
from kafkaspec.models.examples.replication_anchor import Replication
from kafkaspec.models.examples.two_phase import TwoPhase


class A(Sort): ...


class B(Sort): ...


@dataclass(frozen=True)
class Pair:
    first: A
    others: Annotated[set[A], NonEmpty]
    second: B | None


class Tangle(Model):
    """Sort elements everywhere: in keys, sets, options, records, sequences and maps of maps."""

    likes: dict[A, dict[B, bool]]
    where: dict[A, B | None]
    seen: dict[B, set[A]]
    queue: Annotated[list[Pair], Bounded(2)]
    last: Pair

    @initial
    def start(s, a: A) -> None:
        s.next.last = Pair(first=a, others=set(A), second=None)

    @action()
    def meet(s, a: A, b: B) -> None:
        require(not s.likes[a][b])
        s.next.likes[a][b] = True
        s.next.where[a] = b
        s.next.seen[b] = s.seen[b] | {a}

    @action()
    def join(s, a: A) -> None:
        require(len(s.queue) < 2, s.where[a] is not None, s.last.first != a)
        s.next.queue = s.queue + [Pair(first=a, others=s.last.others - {s.last.first} | {a}, second=s.where[a])]

    @action()
    def serve(s) -> None:
        require(len(s.queue) > 0)
        s.next.last = s.queue[0]
        s.next.queue = s.queue[1:]

    @invariant()
    def never_three(s) -> bool:
        return not all(s.likes[a][b] for a in A for b in B) or len(s.queue) < 2


def sizes_of(model: type[Model], sizes: dict[str, int | bool], symmetry: tuple[str, ...]) -> None:
    """The states of the whole space fall into as many orbits as the reduced run counts; orbits have their full size."""
    c = Concrete(model, sizes)
    states, _ = c.reachable()
    reduced = explore(load(model), sizes, symmetry=symmetry, liveness=False, deadlock=True)
    program = Program(Layout(load(model), sizes), symmetry, lanes=8)
    search = Search(program, 1, 64)
    try:
        orbits: dict[tuple[int, ...], list[State]] = {}
        keep = set(program.layout.vars)
        for s in states:
            words = tuple(program.layout.encode({n: v for n, v in c.show(s).items() if n in keep}))
            orbits.setdefault(search.orbit([words])[0], []).append(s)
    finally:
        search.close()
    assert reduced.outcome == "complete"
    assert reduced.distinct == len(orbits) < len(states)
    group = math.prod(math.factorial(int(sizes[n])) for n in symmetry)
    assert all(group % len(o) == 0 for o in orbits.values())
    assert reduced.depth == max(states.values())


@pytest.mark.parametrize(
    ("model", "sizes", "symmetry"),
    [
        (TwoPhase, {"Manager": 3}, ("Manager",)),
        (CleanerAnchor, {"Partition": 2, "Thread": 2, "N": 2, "D": 1}, ("Partition", "Thread")),
        (CleanerAnchor, {"Partition": 2, "Thread": 2, "N": 2, "D": 1}, ("Thread",)),
        pytest.param(Replication, {"Replica": 3, "L": 1, "E": 1, "FENCED": True}, ("Replica",), marks=pytest.mark.deep),
    ],
)
def test_orbits_are_those_of_the_whole_space(
    model: type[Model], sizes: dict[str, int | bool], symmetry: tuple[str, ...]
) -> None:
    sizes_of(model, sizes, symmetry)


def test_sort_elements_are_renamed_wherever_they_stand() -> None:
    sizes: dict[str, int | bool] = {"A": 2, "B": 2}
    whole = {n: explore(load(Tangle), sizes, symmetry=n, deadlock=True) for n in ((), ("A",), ("B",), ("A", "B"))}
    assert whole[()].outcome == "violation"
    lengths = {len(e.trace.steps) for e in whole.values() if e.trace is not None}
    assert [e.outcome for e in whole.values()] == ["violation"] * 4
    assert len(lengths) == 1
    assert whole[("A", "B")].distinct < whole[("A",)].distinct < whole[()].distinct


def test_a_run_found_under_symmetry_is_a_run_of_the_model() -> None:
    e = explore(load(Tangle), {"A": 3, "B": 2}, symmetry=("A", "B"))
    assert e.trace is not None
    c = Concrete(Tangle, e.sizes)
    here = next(s for s in c.initial_states() if c.show(s) == e.trace.steps[0].state)
    for step in e.trace.steps[1:]:
        here = next(t.state for t in c.successors(here) if c.show(t.state) == step.state and t.action == step.action)
    assert not c.holds("never_three", here)


def test_a_result_says_that_it_counts_orbits() -> None:
    e = explore(load(TwoPhase), {"Manager": 5}, symmetry=("Manager",), liveness=False)
    assert (e.distinct, e.symmetry) == (314, ("Manager",))


def test_neighbour_swaps_visit_every_order() -> None:
    for n in range(1, 6):
        order = list(range(n))
        seen = {tuple(order)}
        for i in neighbour_swaps(n):
            order[i], order[i + 1] = order[i + 1], order[i]
            seen.add(tuple(order))
        assert seen == set(itertools.permutations(range(n)))


def test_what_symmetry_cannot_do_is_refused() -> None:
    with pytest.raises(UserError, match="leads-to claims cannot be checked under symmetry"):
        explore(load(TwoPhase), {"Manager": 2}, symmetry=("Manager",))
    with pytest.raises(UserError, match="40,320 renamings of Manager: symmetry is for small sorts"):
        explore(load(TwoPhase), {"Manager": 8}, symmetry=("Manager",), liveness=False)
