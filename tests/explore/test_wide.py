"""Records of a word or more in options, and sets of records made by comprehension: the counts are the text's."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import pytest

from kafkaspec.explore.engine import explore
from kafkaspec.explore.layout import WORD, Layout
from kafkaspec.explore.program import Program
from kafkaspec.language import (
    Bounded,
    Model,
    Range,
    Sort,
    action,
    initial,
    invariant,
    load,
    replace,
    require,
    witness,
)
from kafkaspec.language.concrete import Concrete
from tests.gate.oracle import orbit

Half = Annotated[int, Range(0, 65535)]


class Node(Sort): ...


@dataclass(frozen=True)
class Word:
    """64 bits: an option of it takes 65."""

    a: Half
    b: Half
    c: Half
    d: Half


@dataclass(frozen=True)
class Wider:
    """65 bits."""

    w: Word
    e: bool


class OfWords(Model):
    """The code of the record is a word of ones."""

    p: Word
    o: Word | None
    back: Word

    @initial
    def start(s) -> None:
        s.next.p = Word(a=65535, b=65535, c=65535, d=65535)

    @action()
    def put(s) -> None:
        s.next.o = s.p

    @action()
    def take(s) -> None:
        require(s.o is not None)
        s.next.back = s.o  # type: ignore[assignment]

    @action()
    def lower(s) -> None:
        require(s.p.a > 65533)
        s.next.p = replace(s.p, a=s.p.a - 1)

    @invariant()
    def none_or_wide(s) -> bool:
        return s.o is None or s.o.d == 65535

    @witness
    def taken_back(s) -> bool:
        return s.o is not None and s.back == s.o and s.back.a == 65533


class OfWider(Model):
    """Options wider than a word, alone, in a map and in a sequence, and a choice between two of them."""

    p: Wider
    o: Wider | None
    m: dict[bool, Wider | None]
    q: Annotated[list[Wider | None], Bounded(2)]

    @action()
    def put(s) -> None:
        s.next.o = s.p

    @action()
    def pick(s, k: bool) -> None:
        s.next.m[k] = s.o if s.p.e else Wider(w=s.p.w, e=True)

    @action()
    def queue(s) -> None:
        require(len(s.q) < 2)
        s.next.q = s.q + [s.o]

    @action()
    def alter(s) -> None:
        require(s.p.w.d == 0)
        s.next.p = Wider(w=Word(a=1, b=2, c=3, d=65535), e=not s.p.e)

    @action()
    def back(s) -> None:
        require(s.o is not None)
        s.next.p = s.o if s.m[True] is None else s.m[True]  # type: ignore[assignment]

    @invariant()
    def known(s) -> bool:
        return all(s.m[k] is None or s.m[k].w.d in (0, 65535) for k in (False, True))  # type: ignore[union-attr]


@dataclass(frozen=True)
class OwnedTable:
    owner: Node
    w: Word


class Owners(Model):
    """Options wider than a word with an element of a sort in them."""

    mine: dict[Node, OwnedTable | None]
    high: Word

    @initial
    def start(s) -> None:
        s.next.high = Word(a=65535, b=65535, c=65535, d=65535)

    @action()
    def give(s, n: Node, m: Node) -> None:
        s.next.mine[n] = OwnedTable(owner=m, w=s.high)


@dataclass(frozen=True)
class Letter:
    to: Node


class Sent(Model):
    """Sets of records made over a sort, and over a set of its elements: at most as many as the sort has elements."""

    net: Annotated[set[Letter], Bounded(3)]
    some: set[Node]

    @action()
    def send(s) -> None:
        s.next.net = s.net | {Letter(to=n) for n in Node}

    @action()
    def send_some(s) -> None:
        s.next.net = {Letter(to=n) for n in s.some}

    @action()
    def choose(s, n: Node) -> None:
        s.next.some = s.some | {n}

    @action()
    def forget(s, n: Node) -> None:
        s.next.some = s.some - {n}

    @invariant()
    def few(s) -> bool:
        return len(s.net) <= len(Node)

    @witness
    def all_sent(s) -> bool:
        return s.net == {Letter(to=n) for n in Node}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("model", "sizes"),
    [(OfWords, {}), (OfWider, {}), (Sent, {"Node": 1}), (Sent, {"Node": 3})],
    ids=["word", "wider", "one", "three"],
)
def test_counts_are_the_text_s(model: type[Model], sizes: Mapping[str, int]) -> None:
    states, generated = Concrete(model, sizes).reachable()
    counts = ("complete", len(states), generated, max(states.values()))
    for usable, lanes in itertools.product((WORD - 1, 9), (8, 1)):
        program = Program(Layout(load(model), sizes, usable=usable), lanes=lanes)
        e = explore(load(model), sizes, deadlock=True, program=program)
        assert (e.outcome, e.distinct, e.generated, e.depth) == counts, (usable, lanes)
        assert all(e.witnesses.values()), (usable, lanes)


def test_elements_in_wide_options_are_renamed() -> None:
    c = Concrete(Owners, {"Node": 3})
    orbits = {orbit(c, state, ("Node",), list(c.vars)) for state in c.reachable()[0]}
    e = explore(load(Owners), {"Node": 3}, symmetry=("Node",), deadlock=True)
    assert (e.outcome, e.distinct) == ("complete", len(orbits))
