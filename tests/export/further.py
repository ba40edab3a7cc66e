# mypy: disable-error-code="misc,operator,index"
"""Two more models that say what the language can: messages and majorities, and numbers and sequences."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

from kafkaspec.language import (
    Bounded,
    Model,
    NonEmpty,
    Range,
    Size,
    Sort,
    action,
    define,
    initial,
    invariant,
    leads_to,
    majority,
    require,
    step,
    witness,
)
from kafkaspec.language.types import Of


class Voter(Sort):
    pass


K = Size("K")
L = Size("L")
Term = Annotated[int, Range(0, K)]


class Role(enum.Enum):
    FOLLOWER = 0
    LEADER = 1


@dataclass(frozen=True)
class Letter:
    sender: Voter
    term: Term
    about: Voter | None


@dataclass(frozen=True)
class Ballot:
    IN: Term
    role: Role
    votes: set[Voter]


class Letters(Model):
    """Voters write letters about each other. It means nothing."""

    post: Annotated[set[Letter], Bounded(2)]
    kept: dict[Voter, Annotated[set[Letter], Bounded(1)]]
    ballot: dict[Voter, Ballot]

    @action("XXX-1", who="a voter", fair="weak", per=("v",))
    def write(s, v: Voter, about: Voter | None) -> None:
        letter = Letter(sender=v, term=s.ballot[v].IN, about=about)
        require(len(s.post) < 2, letter not in s.post, about != v)
        s.next.post = s.post | {letter}
        if about is not None:
            s.next.ballot[about].role = Role.LEADER if majority(s.ballot[about].votes | {about}) else Role.FOLLOWER

    @action("XXX-1", fair="weak")
    def read(s, m: Annotated[Letter, Of("post")], keep: bool) -> None:
        require(not keep or len(s.kept[m.sender]) < 1)
        s.next.post = s.post - {m}
        if m.about is not None:
            s.next.ballot[m.about].votes = s.ballot[m.about].votes | {m.sender}
            if s.ballot[m.about].IN < K and len(s.post) * 2 > len(Voter):
                s.next.ballot[m.about].IN = s.ballot[m.about].IN + 1
        if keep:
            s.next.kept[m.sender] = {m}

    @action("XXX-1", fair="strong")
    def burn(s, m: Annotated[Letter, Of("post")], n: Annotated[Letter, Of("post")]) -> None:
        require(m != n)
        s.next.post = {x for x in s.post if x != m and x != n}
        s.next.kept = {v: {x for x in s.kept[v] if x.term == 0} for v in Voter}

    @invariant("XXX-2")
    def post_is_small(s) -> bool:
        return len(s.post) <= 2 and all(m.term <= K and m.about != m.sender for m in s.post)

    @invariant("XXX-2")
    def kept_by_their_senders(s, v: Voter) -> bool:
        return all(m.sender == v for m in s.kept[v]) and {m.sender for m in s.kept[v]} <= {v}

    @invariant("XXX-2")
    def one_each(s) -> bool:
        return sum(len(s.kept[v]) for v in Voter) <= len(Voter)

    @step("XXX-2")
    def terms_rise(s, v: Voter) -> bool:
        return s.ballot[v].IN <= s.next.ballot[v].IN

    @witness
    def a_leader(s) -> bool:
        return any(s.ballot[v].role == Role.LEADER for v in Voter)

    @leads_to("XXX-2")
    def letters_are_read(s, v: Voter) -> tuple[bool, bool]:
        return any(m.about == v for m in s.post), len(s.ballot[v].votes) > 0 or s.post == set()


class Lines(Model):
    """Numbers stand in a line. It means nothing."""

    line: Annotated[list[Term], Bounded(L)]
    whose: Annotated[list[Voter | None], Bounded(1)]
    mine: Ballot
    balance: Annotated[int, Range(-2, 2)]
    debt: Annotated[int, Range(-5, -3)]
    high: Annotated[int, Range(2, 4)]
    mixed: Annotated[int, Range(1 - K, K)]
    chosen: Term | None
    terms: set[Term]

    @initial
    def start(s) -> None:
        s.next.line = [0]

    @define
    def total(s) -> int:
        return sum(x for x in s.line)

    @action("XXX-3")
    def extend(s, x: Term) -> None:
        require(len(s.line) < L)
        s.next.line = s.line + [x]
        s.next.mine.votes = {v for v in Voter if x > 0}

    @action("XXX-3")
    def turn(s) -> None:
        require(len(s.line) > 1)
        a, b = s.line[1:], s.line[:1]
        s.next.line = a + b
        s.next.balance = s.total() // 2 - 1
        s.next.mixed = (0 - s.line[0]) % 2

    @action("XXX-3")
    def rewrite(s, i: Annotated[int, Range(0, L - 1)]) -> None:
        require(i < len(s.line), s.line[i] > 0)
        s.next.line[i] = s.line[i] - 1
        s.next.mine.IN = s.line[i]
        s.next.mine.role = Role.LEADER

    @action("XXX-3")
    def choose(s) -> None:
        require(any(x > 0 for x in s.line))
        s.next.chosen = max(x for x in s.line)
        s.next.debt = min((0 - 3 - s.mine.IN for v in s.mine.votes), default=s.debt)
        s.next.terms = {min(x * 2, K) for x in s.line} | set(s.line[1:3])

    @action("XXX-3")
    def unchoose(s) -> None:
        require(s.chosen is not None, s.chosen in s.terms, 1 in s.line)
        if s.chosen < len(s.line):
            s.next.line[s.chosen] = 0
        elif len(s.whose) == 0:
            s.next.whose = [None]
        s.next.chosen = None

    @invariant("XXX-4")
    def numbers(s) -> bool:
        return s.balance >= -1 and s.high == 2 and s.debt <= -3 and s.total() <= K * 3

    @invariant("XXX-4")
    def line_is_not_empty(s) -> bool:
        return s.line[0] >= 0 and all(x in s.terms or x <= K for x in s.line)

    @step("XXX-4")
    def line_grows_by_one(s) -> bool:
        return len(s.next.line) <= len(s.line) + 1

    @step("XXX-4")
    def the_first_moves(s) -> bool:
        return s.next.line[0] <= K and (s.chosen is None or s.chosen + 1 <= K + 1)

    @witness
    def all_used(s) -> bool:
        return s.chosen is not None and s.chosen + 1 > 1 and len(s.whose) == 0


class Wide(Model):
    """Sets over wider ranges than their variables', and the parts of a set that is never empty."""

    few: Annotated[set[Voter], NonEmpty]
    small: set[Annotated[int, Range(0, 2)]]
    n: Term

    @initial
    def start(s, v: Voter) -> None:
        s.next.few = {v}

    @action()
    def count(s, v: Voter) -> None:
        s.next.few = s.few | {v}
        s.next.n = len(s.few) % 2

    @action()
    def fill(s) -> None:
        s.next.small = {x for x in s.small | {s.n + 1} if x < 3} | set(range(1, s.n + 1))

    @action()
    def drop(s) -> None:
        require(len(s.few) * 2 > len(Voter), len(s.few) > 1)
        require(s.small == {1, 2})
        v = sum(1 for x in s.small if x > s.n)
        s.next.small = {v - 1, v}
        s.next.few = {x for x in s.few if s.n == 0} | {x for x in Voter if x in s.few or s.n == 2}

    @invariant()
    def within(s) -> bool:
        return all(x in (0, 1, 2) for x in s.small) and len(s.few) >= 1


class Öl(Sort):
    pass


class Farbe(enum.Enum):
    rot = 0
    grün = 1


@dataclass(frozen=True)
class Maß:
    wahr_: bool
    größe: Farbe
    grufc__: bool


class Init(Model):
    """Names that TLA+ has no letters for, or has for something else; and what they could be mistaken for."""

    ü: Farbe
    ufc_: bool
    maß: Maß
    von: dict[Öl, Farbe]

    @action()
    def fülle(s, größe: Öl) -> None:
        s.next.ü = Farbe.grün
        s.next.ufc_ = not s.ufc_
        s.next.maß.größe = s.von[größe]
        s.next.von[größe] = s.ü

    @invariant()
    def gültig(s) -> bool:
        return s.ü == Farbe.grün or s.von == {k: Farbe.rot for k in Öl}
