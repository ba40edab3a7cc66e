"""Small models for the tests of the prover: between them they use every construct of the language."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

from kafkaspec.language import (
    Bounded,
    Flag,
    Model,
    NonEmpty,
    Range,
    Size,
    Sort,
    action,
    define,
    initial,
    invariant,
    lemma,
    require,
    step,
)


class Guest(Sort):
    """Somebody who stays."""


class Room(Sort):
    """Somewhere to stay."""


L = Size("L")
POLITE = Flag("POLITE")
Place = Annotated[int, Range(0, L)]


class Light(enum.Enum):
    OFF = 0
    ON = 1


@dataclass(frozen=True)
class Stay:
    """An entry of the book."""

    guest: Guest | None
    room: Room


class Hotel(Model):
    """Guests take rooms; the porter counts them."""

    at: dict[Guest, Room | None]
    inside: dict[Room, set[Guest]]
    count: dict[Room, Annotated[int, Range(0)]]
    light: dict[Room, Light]
    queue: Annotated[list[Guest], Bounded(L)]
    book: Annotated[list[Stay], Bounded(L)]
    keys: dict[Room, dict[Guest, bool]]
    staff: Annotated[set[Guest], NonEmpty]
    best: Place

    @initial
    def start(s, g: Guest) -> None:
        s.next.staff = {g}

    @define
    def empty(s, r: Room) -> bool:
        return not any(g in s.inside[r] for g in Guest)

    @action(who="guest")
    def enter(s, g: Guest, r: Room) -> None:
        require(s.at[g] is None, POLITE or not s.empty(r), s.empty(r) or not POLITE)
        s.next.at[g] = r
        s.next.inside[r] = s.inside[r] | {g}
        s.next.count[r] = s.count[r] + 1
        s.next.light[r] = Light.ON
        s.next.keys[r][g] = True

    @action(who="guest")
    def leave(s, g: Guest) -> None:
        require(s.at[g] is not None)
        r = s.at[g]
        assert r is not None
        s.next.at[g] = None
        s.next.inside = {q: s.inside[q] - {g} if q == s.at[g] else s.inside[q] for q in Room}
        s.next.keys = {q: {h: s.keys[q][h] and h != g for h in Guest} for q in Room}
        s.next.count[r] = s.count[r] - 1
        s.next.light = {
            q: Light.OFF if sum(1 for h in Guest if h in s.inside[q]) == 1 and q == s.at[g] else s.light[q]
            for q in Room
        }

    @action(who="porter")
    def wait(s, g: Guest) -> None:
        require(len(s.queue) < L, all(s.queue[i] != g for i in range(len(s.queue))))
        s.next.queue = s.queue + [g]
        if len(s.queue) == 0:
            s.next.best = 0
        elif s.best < L and s.light == {r: Light.ON for r in Room}:
            s.next.best = s.best + 1
        else:
            s.next.best = max((i for i in range(len(s.queue)) if s.queue[i] in s.staff), default=0)

    @action(who="porter")
    def call(s) -> None:
        require(len(s.queue) > 0)
        s.next.queue = s.queue[1:]
        s.next.best = min((i for i in range(len(s.queue)) if s.queue[i] in s.staff), default=0)

    @action(who="porter")
    def give_up(s, n: Place) -> None:
        s.next.queue = s.queue[:n]

    @action(who="porter")
    def write(s, g: Guest, r: Room) -> None:
        require(len(s.book) < L)
        s.next.book = s.book + [Stay(guest=g if g in s.inside[r] else None, room=r)]

    @action(who="owner")
    def hire(s, r: Room, g: Guest) -> None:
        require(not s.empty(r) or g in s.staff, s.staff <= (s.inside[r] | s.staff))
        s.next.staff = (s.staff & s.inside[r]) | {g} if len(s.staff & s.inside[r]) > 0 else s.staff - s.inside[r] | {g}

    @invariant()
    def inside_is_where_it_is(s, g: Guest, r: Room) -> bool:
        return (g in s.inside[r]) == (s.at[g] == r)

    @invariant()
    def counted(s) -> bool:
        return all(s.count[r] == sum(1 for g in Guest if g in s.inside[r]) for r in Room)

    @invariant()
    def lit_while_taken(s, r: Room) -> bool:
        return (s.light[r] == Light.ON) == any(g in s.inside[r] for g in Guest)

    @invariant()
    def light_where_a_guest_is(s) -> bool:
        return all(s.light[s.at[g]] == Light.ON for g in Guest if s.at[g] is not None)  # type: ignore[index]

    @lemma()
    def key_of_the_room(s, g: Guest, r: Room) -> bool:
        return s.keys[r][g] == (s.at[g] == r)

    @invariant()
    def nobody_waits_twice(s) -> bool:
        return all(i == j or s.queue[i] != s.queue[j] for i in range(len(s.queue)) for j in range(len(s.queue)))

    @step()
    def nobody_moves_without_leaving(s, g: Guest) -> bool:
        return s.at[g] is None or s.next.at[g] is None or s.next.at[g] == s.at[g]

    @step()
    def the_book_is_kept(s) -> bool:
        return len(s.next.book) >= len(s.book) and all(s.next.book[i] == s.book[i] for i in range(len(s.book)))


class Counter(Model):
    """A number that two actions move; `never_three` is true and too weak, `never_two` is false."""

    n: Annotated[int, Range(0, 9)]

    @action()
    def up(s) -> None:
        require(s.n < 2)
        s.next.n = s.n + 1

    @action()
    def jump(s) -> None:
        require(s.n == 5)
        s.next.n = 7

    @invariant()
    def never_seven(s) -> bool:
        return s.n != 7


class FalseCounter(Counter):
    """With a claim that does not hold, which a lemma states."""

    @lemma()
    def never_two(s) -> bool:
        return s.n != 2


class Contradiction(Counter):
    """With claims that exclude each other: every action then keeps them."""

    @lemma()
    def above(s) -> bool:
        return s.n > 5

    @lemma()
    def below(s) -> bool:
        return s.n < 3


class Overflow(Model):
    """A number that leaves its range, and a key that is none."""

    n: Annotated[int, Range(0, L)]
    seen: dict[Place, bool]

    @action()
    def up(s) -> None:
        s.next.n = s.n + 1

    @action()
    def see(s) -> None:
        s.next.seen[s.n + 1] = True


class Endless(Model):
    """Speaks of a greatest number where there need not be one."""

    n: Annotated[int, Range(0)]

    @action()
    def up(s) -> None:
        s.next.n = s.n + 1

    @invariant()
    def greatest(s) -> bool:
        return max((i for i in range(s.n) if i != 3), default=0) <= s.n
