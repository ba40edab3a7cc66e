"""A model that uses every form of the language whose value or whose being defined depends on the state."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Annotated

from kafkaspec.language import (
    Bounded,
    Model,
    NonEmpty,
    Of,
    Range,
    Size,
    Sort,
    action,
    define,
    initial,
    invariant,
    majority,
    require,
    step,
)


class Node(Sort):
    """Somebody who writes letters."""


class Tone(enum.Enum):
    LOW = 0
    MID = 1
    HIGH = 2


N, K, L = Size("N"), Size("K"), Size("L")
Number = Annotated[int, Range(0, N)]
Signed = Annotated[int, Range(-1, N)]


@dataclass(frozen=True)
class Letter:
    """A message."""

    to: Node
    n: Number


@dataclass(frozen=True)
class Pair:
    """A record with a record and an option in it."""

    first: Letter
    rest: Number | None


class Forms(Model):
    """Numbers, sets, sequences, records, letters."""

    a: Number
    b: Signed
    o: Number | None
    who: Node | None
    m: dict[Number, Number]
    of: dict[Node, Signed]
    voted: dict[Node, Node | None]
    nodes: set[Node]
    some: Annotated[set[Tone], NonEmpty]
    numbers: set[Number]
    small: set[Annotated[int, Range(0, 1)]]
    q: Annotated[list[Number], Bounded(L)]
    r: Annotated[list[Number | None], Bounded(L)]
    p: Pair
    by: dict[Node, Letter]
    post: Annotated[set[Letter], Bounded(K)]

    @initial
    def start(s, n: Node) -> None:
        s.next.some = {Tone.LOW}
        s.next.p = Pair(first=Letter(to=n, n=0), rest=None)
        s.next.by = {k: Letter(to=n, n=0) for k in Node}

    @define
    def free(s, n: Node) -> bool:
        known = s.of[n] + 1
        return s.a < known

    @action()
    def send(s, n: Node, k: Number) -> None:
        require(n in s.nodes, Letter(to=n, n=s.a + k) not in s.post)
        s.next.post = s.post | {Letter(to=n, n=k)}

    @action()
    def receive(s, letter: Annotated[Letter, Of("post")]) -> None:
        require(letter.n <= s.a)
        s.next.post = s.post - {letter}
        s.next.of[letter.to] = letter.n - 2
        s.next.p.first = letter  # type: ignore[misc]

    @action()
    def broadcast(s) -> None:
        s.next.post = s.post | {Letter(to=n, n=s.a) for n in Node if n in s.nodes}
        s.next.nodes = {x.to for x in s.post if x.n == s.a}

    @action()
    def assign(s, n: Node, k: Signed) -> None:
        require(k < N or s.o == k)
        s.next.by[n].n = k  # type: ignore[misc]
        s.next.q[k] = s.a + 1
        s.next.p.rest = s.o  # type: ignore[misc]
        if s.a > 0:
            s.next.a = s.q[k - 1]

    @action()
    def count(s) -> None:
        s.next.a = s.a * 3 // 2 - s.b % 2
        s.next.b = sum(s.of[n] for n in Node if n in s.nodes)
        s.next.o = max((x - 1 for x in s.numbers if x != s.a), default=s.a - 1)

    @action()
    def extremes(s) -> None:
        s.next.a = max(s.of[n] for n in Node if n in s.nodes)
        s.next.b = min(x + s.b for x in s.q)
        s.next.o = s.o + 1 if s.o is not None and s.o < 5 else None

    @action()
    def narrow(s) -> None:
        require(s.who is not None)
        s.next.small = s.numbers
        s.next.numbers = {s.of[n] + 1 for n in Node if n != s.who} | {x for x in range(1, N) if x > s.b}
        s.next.some = s.some - {Tone.MID}

    @action()
    def join(s, k: Number) -> None:
        s.next.q = s.q[k:] + s.q[: s.b]
        s.next.r = [s.o] + s.r

    @action()
    def vote(s, n: Node) -> None:
        assert s.voted[n] is None
        require(majority({x for x in Node if s.voted[x] == s.who}) or s.a == 0)
        s.next.voted[n] = s.who
        s.next.m[s.b] = s.m[s.a + 1]

    @action()
    def rename(s, n: Node) -> None:
        s.next.p = replace(s.p, first=replace(s.p.first, n=s.b), rest=s.a)
        s.next.who = n if s.free(n) else None
        s.next.by[s.who] = Letter(to=s.who, n=0)  # type: ignore[index,arg-type]

    @invariant()
    def numbers_of_elements(s) -> bool:
        return len(s.nodes) * 2 > len(Node) or len(s.post) + len(Tone) == K + 3

    @invariant()
    def inside(s, n: Number) -> bool:
        return n in s.q or s.o in s.numbers or n in set(range(1, N)) or n in {s.of[k] for k in Node}

    @invariant()
    def beyond(s, n: Node) -> bool:
        return s.q[s.a] == s.r[0] or s.m[s.of[n]] == s.o + 1 or s.m[s.b] == 0  # type: ignore[operator]

    @invariant()
    def alike(s) -> bool:
        return (s.small == s.numbers) == (s.small <= s.numbers) and s.q + [s.b] != s.q[: s.a] + [s.a]

    @invariant()
    def best(s) -> bool:
        return max(x.n for x in s.post) <= min((x.n + s.a for x in s.post if x.to == s.who), default=s.a)

    @invariant()
    def majorities(s, n: Node) -> bool:
        return majority(s.nodes) == (2 * sum(1 for k in Node if k in s.nodes) > len(Node)) and s.by[n].to in s.nodes

    @invariant()
    def sums(s) -> bool:
        return sum(x * 2 for x in s.q) + sum(x.n for x in s.post) <= 3 + sum(1 for x in s.q if x == s.a)

    @invariant()
    def records(s) -> bool:
        return all(x == s.p.first or x.n < s.p.rest for x in s.post) and any(x.to == s.who for x in s.post)  # type: ignore[operator]

    @invariant()
    def images(s) -> bool:
        return {Letter(to=n, n=s.a) for n in Node if n in s.nodes} <= s.post or len({x.to for x in s.post}) == 1

    @invariant()
    def evaluated(s) -> bool:
        element = s.q[0]
        return s.a == 0 or element == s.a

    @invariant()
    def kept_in_order(s) -> bool:
        return s.o is None or (s.o > 0 and s.m[s.o - 1] == s.m[s.o]) or all(s.q[i] < s.o for i in range(len(s.q)))

    @step()
    def moves(s) -> bool:
        return s.next.a // 2 <= s.a or s.next.q[s.a] == s.q[s.a]
