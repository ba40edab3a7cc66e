"""Models whose text has no value somewhere, or leaves a value of another type: none of them is ever proved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kafkaspec.language import Bounded, Model, NonEmpty, Range, Size, Sort, action, initial, invariant, require, step


class P(Sort):
    """Something."""


N, L = Size("N"), Size("L")
Num = Annotated[int, Range(0, N)]


@dataclass(frozen=True)
class R:
    """A record with fields that are named like parts of a value."""

    none: bool
    len: Num


class LowerBound(Model):
    """0 is not in {x for x in range(1, N)}."""

    ok: bool

    @initial
    def start(s) -> None:
        s.next.ok = True

    @action()
    def f(s) -> None:
        s.next.ok = 0 in {x for x in range(1, N)}  # noqa: C416

    @invariant()
    def always(s) -> bool:
        return s.ok


class UpperBound(Model):
    """N is not in {x for x in range(N)}."""

    seen: set[Num]

    @action()
    def f(s) -> None:
        s.next.seen = {x for x in range(N)}  # noqa: C416

    @invariant()
    def always(s) -> bool:
        return len(s.seen) == 0 or N in s.seen


class Element(Model):
    """An element of a set leaves its range."""

    n: Num
    seen: set[Num]

    @action()
    def see(s) -> None:
        s.next.seen = s.seen | {s.n + 1}

    @action()
    def up(s) -> None:
        require(s.n < N)
        s.next.n = s.n + 1


class AtOne(Model):
    """A number leaves its range where N is 1, and nowhere else."""

    n: Num

    @action()
    def f(s) -> None:
        s.next.n = min(2, s.n + 1) if s.n < 2 else s.n


class Narrow(Model):
    """A set is assigned to one over fewer numbers."""

    a: set[Annotated[int, Range(0, 2)]]
    b: set[Annotated[int, Range(0, 5)]]

    @action()
    def f(s, n: Annotated[int, Range(3, 5)]) -> None:
        s.next.b = s.b | {n}

    @action()
    def g(s) -> None:
        s.next.a = s.b


class Emptied(Model):
    """A set that is never empty is emptied."""

    some: Annotated[set[P], NonEmpty]

    @initial
    def start(s, p: P) -> None:
        s.next.some = {p}

    @action()
    def f(s, p: P) -> None:
        s.next.some = s.some - {p}


class Longer(Model):
    """A sequence in a map becomes too long."""

    q: dict[P, Annotated[list[Num], Bounded(L)]]

    @action()
    def f(s, p: P) -> None:
        s.next.q[p] = s.q[p] + s.q[p] + [0]


class NoneInClaim(Model):
    """A claim asks for the value of an option that is None."""

    o: dict[P, Num | None]

    @action()
    def g(s, p: P) -> None:
        s.next.o[p] = 1

    @invariant()
    def fine(s, p: P) -> bool:
        return s.o[p] + 1 <= 2  # type: ignore[operator]


class BeyondInClaim(Model):
    """A claim reads the first of an empty sequence."""

    q: Annotated[list[Num], Bounded(L)]

    @action()
    def f(s) -> None:
        require(len(s.q) < L)
        s.next.q = s.q + [0]

    @invariant()
    def zero(s) -> bool:
        return s.q[0] == 0


class NoneInStep(Model):
    """A step property asks for what is None after the step."""

    o: Num | None

    @action()
    def f(s) -> None:
        s.next.o = 0 if s.o is None else None

    @step()
    def fine(s) -> bool:
        return s.o is None or s.next.o >= 0  # type: ignore[operator]


class BeyondInGuard(Model):
    """A guard reads behind the end of a sequence."""

    q: Annotated[list[Num], Bounded(L)]
    n: Num

    @action()
    def f(s) -> None:
        require(s.q[len(s.q)] == 0)
        s.next.n = 1

    @action()
    def push(s) -> None:
        require(len(s.q) < L)
        s.next.q = s.q + [0]


class NoneKey(Model):
    """None is assigned at, as if it were a key."""

    o: P | None
    m: dict[P, Num]

    @action()
    def f(s) -> None:
        s.next.m[s.o] = 0  # type: ignore[index]


class Key(Model):
    """A number is read that is no key."""

    m: dict[Num, bool]
    n: Num

    @action()
    def g(s) -> None:
        if s.m[s.n + 1]:
            s.next.n = 0

    @action()
    def up(s) -> None:
        require(s.n < N)
        s.next.n = s.n + 1


class Slice(Model):
    """A slice begins below 0."""

    q: Annotated[list[Num], Bounded(L)]
    n: Annotated[int, Range(-1, N)]

    @action()
    def f(s) -> None:
        s.next.n = s.n - 1 if s.n >= 0 else s.n

    @action()
    def cut(s) -> None:
        s.next.q = s.q[s.n :]


class Field(Model):
    """A record is made with a number beyond its field's range."""

    r: R

    @action()
    def f(s) -> None:
        s.next.r = R(none=False, len=s.r.len + 1)


class Most(Model):
    """The greatest of nothing."""

    nodes: set[P]
    n: Num

    @action()
    def f(s) -> None:
        s.next.n = max(1 for p in s.nodes)


class Asserted(Model):
    """What is asserted is false after the first step."""

    n: Num

    @action()
    def g(s) -> None:
        assert s.n == 0
        s.next.n = min(N, s.n + 1)


class NamedNone(Model):
    """A field named `none`, of an option."""

    o: R | None
    bad: bool

    @action()
    def put(s) -> None:
        s.next.o = R(none=True, len=1)

    @action()
    def f(s) -> None:
        require(s.o is not None)
        if s.o.none:  # type: ignore[union-attr]
            s.next.bad = True

    @invariant()
    def never(s) -> bool:
        return not s.bad


class Part(Model):
    """Parts of records are assigned."""

    r: R
    by: dict[P, R]

    @action()
    def f(s, p: P) -> None:
        s.next.by[p].none = True  # type: ignore[misc]

    @invariant()
    def never(s, p: P) -> bool:
        return not s.r.none and not s.by[p].none


class TwoStarts(Model):
    """Some first states are wrong, and some are not."""

    a: P
    b: P

    @initial
    def start(s, x: P, y: P) -> None:
        s.next.a = x
        s.next.b = y

    @action()
    def g(s) -> None:
        s.next.b = s.a

    @invariant()
    def fine(s) -> bool:
        return s.a == s.b


class StartsOutside(Model):
    """The first number is none of its type."""

    n: Num

    @initial
    def start(s, k: Num) -> None:
        s.next.n = k * 2

    @invariant()
    def fine(s) -> bool:
        return s.n >= 0


class StartsUndefined(Model):
    """The start reads what is not there."""

    q: Annotated[list[Num], Bounded(L)]
    n: Num

    @initial
    def start(s, k: Num) -> None:
        require(k > 0)
        s.next.n = s.q[k]


class Overwritten(Model):
    """What a later assignment overwrites may be of any type: this one is proved."""

    q: Annotated[list[bool], Bounded(1)]

    @action()
    def f(s) -> None:
        s.next.q = s.q + [True]
        s.next.q = s.q

    @action()
    def g(s) -> None:
        require(len(s.q) < 1)
        s.next.q = s.q + [True]


class Guarded(Model):
    """What is asked for is there: this one is proved."""

    o: Num | None
    q: Annotated[list[Num], Bounded(L)]
    n: Num

    @action()
    def f(s) -> None:
        require(s.o is not None, s.o < len(s.q))  # type: ignore[operator]
        s.next.n = s.q[s.o] if s.o > 0 else s.o  # type: ignore[index, operator, assignment]

    @action()
    def push(s) -> None:
        require(len(s.q) < L)
        s.next.q = s.q + [s.n]
        s.next.o = s.n

    @invariant()
    def fine(s) -> bool:
        return s.o is None or (s.o <= N and (s.o >= len(s.q) or s.q[s.o] <= N))
