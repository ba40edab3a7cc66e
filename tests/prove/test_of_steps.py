"""What is counted in both states of a step, and what an option holds: proved for every size; what is false beside it,
beyond the sizes that a proof explores first, is not."""

from __future__ import annotations

from typing import Annotated

import pytest

from kafkaspec.explore.engine import explore
from kafkaspec.language import Model, Range, Size, Sort, action, lemma, load, refines, require, step
from kafkaspec.prove.proof import Proof

L = Size("L")
Amount = Annotated[int, Range(0, L)]


class Account(Sort):
    """One of many."""


class Total(Model):
    """What all accounts have."""

    total: Annotated[int, Range(0)]

    @action()
    def deposit(s) -> None:
        s.next.total = s.total + 1


class Accounts(Model):
    """Amounts that come and are moved on."""

    has: dict[Account, Amount]
    noted: bool

    @action()
    def put(s, a: Account) -> None:
        require(s.has[a] < L)
        s.next.has[a] = s.has[a] + 1

    @action()
    def move(s, a: Account, b: Account) -> None:
        require(a != b, s.has[a] > 0, s.has[b] < L)
        s.next.has[a] = s.has[a] - 1
        s.next.has[b] = s.has[b] + 1

    @action()
    def note(s) -> None:
        s.next.noted = not s.noted

    @step()
    def grows(s) -> bool:
        return sum(s.has[a] for a in Account) <= sum(s.next.has[a] for a in Account)

    @refines(Total)
    def all_of_it(s) -> Total:
        return Total.shown(total=sum(s.has[a] for a in Account))


class MovesAndLoses(Accounts):
    """What is moved gets lost where there is much."""

    @action()
    def move(s, a: Account, b: Account) -> None:
        require(a != b, s.has[a] > 3)
        s.next.has[a] = s.has[a] - 1


class MovesToItself(Accounts):
    """The later assignment to one account is the one that counts."""

    @action()
    def move(s, a: Account, b: Account) -> None:
        require(s.has[a] > 3, s.has[b] < L)
        s.next.has[b] = s.has[b] + 1
        s.next.has[a] = s.has[a] - 1


class Growing(Model):
    """A set that nothing is taken from."""

    items: set[Account]

    @action()
    def add(s, a: Account) -> None:
        s.next.items = s.items | {a}

    @step()
    def grows(s) -> bool:
        return len(s.items) <= len(s.next.items) and len(s.next.items) <= len(s.items) + 1


class GrowingByOne(Growing):
    """What is there may be added once more."""

    @action()
    def add(s, a: Account) -> None:
        require(a not in s.items or len(Account) > 3)
        s.next.items = s.items | {a}

    @step()
    def grows(s) -> bool:
        return len(s.next.items) == len(s.items) + 1


class Chosen(Model):
    """A set that another takes the place of, of which enough are asked for."""

    items: set[Account]
    proposed: set[Account]
    high: Annotated[int, Range(0)]

    @action()
    def propose(s, items: set[Account]) -> None:
        s.next.proposed = items

    @action()
    def choose(s, items: set[Account]) -> None:
        s.next.items = items
        if len(items) >= L:
            s.next.high = s.high + 1

    @action()
    def take(s, wanted: bool) -> None:
        if wanted:
            s.next.items = s.proposed
            if len(s.proposed) >= L:
                s.next.high = s.high + 1

    @step()
    def rises_with_enough(s) -> bool:
        return s.next.high == s.high or len(s.next.items) >= L


class ChosenBefore(Chosen):
    """Where there are many it is asked of the set of before."""

    @action()
    def take(s, wanted: bool) -> None:
        s.next.items = s.proposed
        if len(s.items if len(Account) > 3 else s.proposed) >= L:
            s.next.high = s.high + 1


class Led(Model):
    """The only one that is ready leads."""

    ready: dict[Account, bool]
    leader: Account | None

    @action()
    def lead(s, a: Account) -> None:
        require(all(not s.ready[b] or a == b for b in Account))
        s.next.ready[a] = True
        s.next.leader = a

    @lemma()
    def a_leader_is_ready(s, a: Account) -> bool:
        return s.leader != a or s.ready[a]

    @step()
    def stays(s) -> bool:
        return s.leader is None or s.next.leader == s.leader


class LedByOneOfTwo(Led):
    """Another may lead too where there are many."""

    @action()
    def lead(s, a: Account) -> None:
        require(len(Account) > 3 or all(not s.ready[b] or a == b for b in Account))
        s.next.ready[a] = True
        s.next.leader = a


@pytest.mark.parametrize("cls", [Accounts, Growing, Chosen, Led], ids=lambda c: c.__name__)
def test_what_is_true_of_a_step_is_proved_for_every_size(cls: type[Model]) -> None:
    p = Proof(cls).run()
    assert p.outcome == "proved", p.summary()
    assert p.vacuous == ()


@pytest.mark.parametrize(
    ("cls", "sizes", "claim"),
    [
        (MovesAndLoses, {"L": 4, "Account": 2}, "grows"),
        (MovesToItself, {"L": 5, "Account": 2}, "grows"),
        (GrowingByOne, {"Account": 4}, "grows"),
        (ChosenBefore, {"Account": 4, "L": 1}, "rises_with_enough"),
        (LedByOneOfTwo, {"Account": 4}, "stays"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_is_false_beside_it_is_not(cls: type[Model], sizes: dict[str, int | bool], claim: str) -> None:
    e = explore(load(cls), sizes, deadlock=True)
    assert e.trace is not None
    assert e.trace.claim == claim
    p = Proof(cls, timeout_s=2).run()
    assert p.outcome != "proved"
    assert {o.verdict for o in p.obligations if o.claim == claim} & {"refuted", "unknown"}
