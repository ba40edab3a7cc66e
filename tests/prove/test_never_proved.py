"""False claims, each of which exploring refutes at a size beyond those that a proof explores first: never proved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from kafkaspec.explore.engine import explore
from kafkaspec.language import (
    Bounded,
    Model,
    ModelError,
    Range,
    Size,
    Sort,
    action,
    define,
    initial,
    invariant,
    lemma,
    load,
    refines,
    require,
)
from kafkaspec.prove.bounded import bounded
from kafkaspec.prove.proof import Proof
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


@dataclass(frozen=True)
class Letter:
    """A letter whose number may be missing."""

    o: Annotated[int, Range(0, N)] | None


class CountedByAnOption(Model):
    """A number of elements depends on what a record may lack."""

    k: dict[P, Annotated[int, Range(0, N)]]
    net: Annotated[set[Letter], Bounded(2)]
    bad: bool

    @action()
    def act(s) -> None:
        require(len(P) > 3)
        s.next.bad = True

    @lemma()
    def odd(s) -> bool:
        return all(sum(1 for p in P if s.k[p] < m.o) + N >= 1 for m in s.net if m.o is not None)

    @invariant()
    def good(s) -> bool:
        return not s.bad


class GreatestByAnOption(Model):
    """So does a greatest number."""

    net: Annotated[set[Letter], Bounded(2)]
    bad: bool

    @action()
    def act(s) -> None:
        require(len(P) > 3)
        s.next.bad = True

    @lemma()
    def odd(s) -> bool:
        return sum(max((y for y in range(N + 1) if y <= m.o), default=0) for m in s.net if m.o is not None) >= 0

    @invariant()
    def good(s) -> bool:
        return not s.bad


class PartnerByAnOption(Model):
    """So does a partner, of which there are several."""

    link: dict[Annotated[int, Range(0, N)], P | None]
    w: dict[P, Annotated[int, Range(0, 3)]]
    net: Annotated[set[Letter], Bounded(2)]
    a: P
    b: P
    bad: bool

    @initial
    def start(s, x: P, y: P) -> None:
        s.next.a = x
        s.next.b = y

    @action()
    def connect(s) -> None:
        s.next.link[0] = s.a
        s.next.link[1] = s.b

    @action()
    def act(s) -> None:
        require(N > 4, len(P) > 3)
        s.next.bad = s.link[0] is not None and s.link[1] is not None and s.link[0] != s.link[1]

    @lemma()
    def odd(s) -> bool:
        return sum(s.w[s.link[m.o]] for m in s.net if m.o is not None and s.link[m.o] is not None) >= 0  # type: ignore[index,misc]

    @invariant()
    def good(s) -> bool:
        return not s.bad


class CountedWithoutANumber(Model):
    """A record without a number is counted by what is asked first."""

    net: Annotated[set[Letter], Bounded(2)]
    bad: bool

    @action()
    def act(s) -> None:
        require(N > 4, all(False for m in s.net))
        s.next.net = s.net | {Letter(o=None)}
        s.next.bad = True

    @lemma()
    def odd(s) -> bool:
        return any(m.o is None for m in s.net) or sum(1 for m in s.net if m.o >= 3) + N >= 1  # type: ignore[misc,operator]

    @invariant()
    def good(s) -> bool:
        return not s.bad or (any(m.o is None for m in s.net) and sum(1 for m in s.net if m.o is not None) == 7 + N)


class Abstract(Model):
    """Goes nowhere."""

    x: Annotated[int, Range(0, 9)]

    @action()
    def up(s) -> None:
        require(s.x > 100)
        s.next.x = 0


class RefinesWhatGoesNowhere(Model):
    """Goes up."""

    k: dict[P, Annotated[int, Range(0, N)]]
    net: Annotated[set[Letter], Bounded(2)]
    y: Annotated[int, Range(0, 9)]

    @action()
    def act(s) -> None:
        require(s.y < 9, len(P) > 3)
        s.next.y = s.y + 1

    @lemma()
    def odd(s) -> bool:
        return all(sum(1 for p in P if s.k[p] < m.o) + N >= 1 for m in s.net if m.o is not None)

    @refines(Abstract)
    def mapping(s) -> Abstract:
        return Abstract.shown(x=s.y)


Bit = Annotated[int, Range(0, 1)]


class AsksTwice(Model):
    """A map is read at a key that it gives itself."""

    a: dict[Bit, Bit]
    done: bool

    @action()
    def change(s, b: Bit, c: Bit) -> None:
        require(not s.done)
        s.next.a[0] = b
        s.next.a[1] = c

    @action()
    def act(s) -> None:
        require(not s.done, s.a[s.a[0]] == 0)
        s.next.done = True


class AsksWhatItWrites(Model):
    """A map is read at the key that is written to it."""

    a: dict[Bit, Bit]
    done: bool

    @action()
    def change(s, b: Bit, c: Bit) -> None:
        require(not s.done)
        s.next.a[0] = b
        s.next.a[1] = c

    @action()
    def act(s, p: Bit) -> None:
        require(s.a[p] == 0, not s.done)
        s.next.a[0] = p
        s.next.done = True


class Partners(Model):
    """Elements have partners, and partners a number."""

    link: dict[P, P | None]
    w: dict[P, Bit]
    done: bool

    @action()
    def put(s, p: P, q: P, k: Bit) -> None:
        require(not s.done)
        s.next.link[p] = q
        s.next.w[q] = k

    @action()
    def act(s) -> None:
        require(len(P) > 3, not s.done)
        s.next.done = True

    @define
    def some_other(s, v: Bit) -> int:
        return 1 if any(s.link[q] is not None and s.w[s.link[q]] != v for q in P) else 0  # type: ignore[index]


class ShowsTwice(Partners):
    """What the abstract map is read at has the variable of the comprehension that shows the map."""

    @refines(AsksTwice)
    def mapping(s) -> AsksTwice:
        return AsksTwice.shown(a={v: s.some_other(v) for v in range(2)}, done=s.done)


class ShowsWhatItWrites(Partners):
    """So has what stands for the abstract parameter."""

    @refines(AsksWhatItWrites)
    def mapping(s) -> AsksWhatItWrites:
        return AsksWhatItWrites.shown(a={v: s.some_other(v) for v in range(2)}, done=s.done)


Wide = Annotated[int, Range(0, N + 1)]


class ASetAskedOfItself(Model):
    """Whether a set is assigned depends on the set, and of its elements it is asked whether they are of their type."""

    link: dict[Wide, P | None]
    w: dict[P, dict[P, bool]]
    x: dict[P, set[Annotated[int, Range(0, N)]]]

    @define
    def those(s, k: P) -> set[int]:
        t = {q for q in range(N + 2) if s.link[q] is not None and s.w[k][s.link[q]]}  # type: ignore[index]
        return t if any(s.link[q] is not None and q not in t for q in range(N + 2)) else set()

    @action()
    def put(s, p: P, k: P, q: Wide) -> None:
        require(N > 3)
        s.next.link[q] = p
        s.next.w[p][k] = True

    @action()
    def act(s) -> None:
        s.next.x = {k: s.those(k) for k in P}


@dataclass(frozen=True)
class Room:
    """Who is there."""

    those: set[Annotated[int, Range(0, N)]]


class ARecordAskedOfItsSet(Model):
    """The same in a claim, of the set in a record."""

    link: dict[Wide, P | None]
    w: dict[P, dict[P, bool]]
    u: set[Wide]
    bad: bool

    @define
    def fits(s, k: P) -> bool:
        t = {q for q in range(N + 2) if s.link[q] is not None and s.w[k][s.link[q]]}  # type: ignore[index]
        linked = all(s.link[q] is None or q in s.u for q in range(N + 2))
        return linked or t != s.u or Room(those=t) == Room(those=t)

    @action()
    def put(s, p: P, k: P, q: Wide) -> None:
        require(N > 3, not s.bad)
        s.next.link[q] = p
        s.next.w[p][k] = True

    @action()
    def act(s) -> None:
        require(N > 3)
        s.next.u = s.u | {N + 1}
        s.next.bad = True

    @invariant()
    def good(s, k: P) -> bool:
        return not s.bad or s.fits(k)


FALSE: list[tuple[type[Model], dict[str, int | bool], str]] = [
    (PartnerAskedFirst, {"P": 4}, "never"),
    (PartnersNumber, {"P": 4}, "never"),
    (GreatestAskedFirst, {"P": 4}, "never"),
    (CountedBeyondTheLimits, {"N": 5}, "good"),
    (CountedByAnOption, {"P": 4, "N": 1}, "good"),
    (GreatestByAnOption, {"P": 4, "N": 1}, "good"),
    (PartnerByAnOption, {"P": 4, "N": 5}, "good"),
    (CountedWithoutANumber, {"N": 5}, "good"),
    (RefinesWhatGoesNowhere, {"P": 4, "N": 1}, "mapping"),
    (ShowsTwice, {"P": 4}, "mapping"),
    (ShowsWhatItWrites, {"P": 4}, "mapping"),
    (ASetAskedOfItself, {"P": 2, "N": 4}, "type of x"),
    (ARecordAskedOfItsSet, {"P": 2, "N": 4}, "good"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("cls", "sizes", "claim"), FALSE, ids=lambda x: getattr(x, "__name__", ""))
def test_it_is_false_and_not_proved(cls: type[Model], sizes: dict[str, int | bool], claim: str) -> None:
    e = explore(load(cls), sizes, deadlock=True)
    assert e.trace is not None
    assert e.trace.claim == claim
    p = Proof(cls, timeout_s=2).run()
    assert p.outcome != "proved"
    assert {o.verdict for o in p.obligations if (o.action, o.claim) == ("act", claim)} <= {"refuted", "unknown"}


@pytest.mark.deep
@pytest.mark.parametrize(("cls", "sizes"), [(c, z) for c, z, claim in FALSE if claim == "good" and "P" in z][:2])
def test_nor_does_the_bounded_search_miss_it(cls: type[Model], sizes: dict[str, int | bool]) -> None:
    """At open sizes the assumptions must not contradict each other."""
    assert bounded(load(cls), 2, timeout_s=2).outcome != "complete"


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
