"""False claims, each of which exploring refutes at a size beyond those that a proof explores first: never proved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from kafkaspec.explore import explore
from kafkaspec.language import (
    Bounded,
    Model,
    ModelError,
    Range,
    Size,
    Sort,
    action,
    invariant,
    lemma,
    load,
    require,
)
from kafkaspec.prove import Proof, bounded
from tests.language.texts import model

N = Size("N")


class P(Sort):
    """Something."""


class PartnerAskedFirst(Model):
    """A set of those whose partner is good, or who have none: None is asked of first, inside the condition."""

    link: dict[P, P | None]
    m: dict[P, bool]
    S: set[P]

    @action()
    def act(s) -> None:
        require(len(P) > 3)
        s.next.S = {p for p in P if (s.m[s.link[p]] if s.link[p] is not None else True)}  # type: ignore[index]

    @invariant()
    def never(s, p: P) -> bool:
        return p not in s.S or s.link[p] is not None


class PartnersNumber(Model):
    """The same with a number."""

    link: dict[P, P | None]
    k: dict[P, Annotated[int, Range(0, 2)]]
    S: set[P]

    @action()
    def act(s) -> None:
        require(len(P) > 3)
        s.next.S = {p for p in P if (s.k[s.link[p]] if s.link[p] is not None else 1) > 0}  # type: ignore[index]

    @invariant()
    def never(s, p: P) -> bool:
        return p not in s.S or s.link[p] is not None


class GreatestAskedFirst(Model):
    """A set by a greatest element that there need not be."""

    of: dict[P, bool]
    k: dict[P, Annotated[int, Range(0, 2)]]
    S: set[P]

    @action()
    def act(s) -> None:
        require(len(P) > 3)
        s.next.S = {p for p in P if (max(s.k[q] for q in P if s.of[q]) if any(s.of[q] for q in P) else 1) > s.k[p]}

    @invariant()
    def never(s, p: P) -> bool:
        return p not in s.S or any(s.of[q] for q in P)


@dataclass(frozen=True)
class R:
    """A letter."""

    x: Annotated[int, Range(0, N)]


class CountedBeyondTheLimits(Model):
    """A record outside its limits stands where nothing is done with it; a count must not count it."""

    n: Annotated[int, Range(0, N)]
    k: Annotated[int, Range(0, N + 1)]
    bad: bool
    net: Annotated[set[R], Bounded(5)]

    @action()
    def up(s) -> None:
        require(s.n < N)
        s.next.n = s.n + 1

    @action()
    def act(s) -> None:
        require(s.n == N, N > 4, s.k == 0)
        if s.n < N:
            s.next.net = s.net | {R(x=s.n + 1)}
        s.next.k = N + 1
        s.next.bad = True

    @lemma()
    def few(s) -> bool:
        return s.n == N or sum(1 for y in {R(x=s.n + 1)} if y.x > s.k) + N >= 1

    @invariant()
    def good(s) -> bool:
        return not s.bad


FALSE: list[tuple[type[Model], dict[str, int | bool], str]] = [
    (PartnerAskedFirst, {"P": 4}, "never"),
    (PartnersNumber, {"P": 4}, "never"),
    (GreatestAskedFirst, {"P": 4}, "never"),
    (CountedBeyondTheLimits, {"N": 5}, "good"),
]


@pytest.mark.parametrize(("cls", "sizes", "claim"), FALSE, ids=lambda x: getattr(x, "__name__", ""))
def test_it_is_false_and_not_proved(cls: type[Model], sizes: dict[str, int | bool], claim: str) -> None:
    e = explore(load(cls), sizes, deadlock=True)
    assert e.trace is not None
    assert e.trace.claim == claim
    p = Proof(cls, timeout_s=2).run()
    assert p.outcome != "proved"
    assert {o.verdict for o in p.obligations if (o.action, o.claim) == ("act", claim)} <= {"refuted", "unknown"}


ACTION = """
@action()
def up(s) -> None:
    require(s.{0} < 3)
    s.next.{0} = s.{0} + 1
@invariant()
def low(s) -> bool:
    return s.{0} < 2
"""


def test_a_variable_is_not_the_search_s_own_choice() -> None:
    m = model(ACTION.format("action_taken"), "action_taken: Annotated[int, Range(0, 3)]\n")
    assert bounded(m, 3).outcome == "violation"


@pytest.mark.parametrize("kind", ["invariant()", "step()", "action()", "lemma()", "witness"])
def test_no_method_is_called_as_the_claim_that_everything_has_a_value(kind: str) -> None:
    body = "s.next.n = 0" if kind == "action()" else "return True"
    with pytest.raises(ModelError, match="defined is no name for a method"):
        model(f"@{kind}\ndef defined(s):\n    {body}\n")


def test_open_sizes_are_one_or_more_and_need_not_be_one() -> None:
    assert bounded(model("@invariant()\ndef some(s) -> bool:\n    return 2 * len(P) >= 2\n"), 1).outcome == "complete"
    two = model("@invariant()\ndef low(s) -> bool:\n    return s.n2 < 3\n", "n2: Annotated[int, Range(2, N)]\n")
    b = bounded(two, 1)
    assert (b.outcome, b.trace is not None) == ("complete", False)
