"""Elections by majority, with votes as a map and with votes as messages, and other models of the new forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kafkaspec.language import (
    Bounded,
    Model,
    Of,
    Range,
    Size,
    Sort,
    action,
    invariant,
    lemma,
    majority,
    require,
)


class Node(Sort):
    """A voter."""


T, K = Size("T"), Size("K")
Term = Annotated[int, Range(0, T)]


class Election(Model):
    """Each node votes once a term; who has the votes of a majority leads."""

    voted: dict[Node, dict[Term, Node | None]]
    leads: dict[Node, set[Term]]

    @action(who="node")
    def vote(s, m: Node, t: Term, n: Node) -> None:
        require(s.voted[m][t] is None)
        s.next.voted[m][t] = n

    @action(who="node")
    def lead(s, n: Node, t: Term) -> None:
        require(majority({m for m in Node if s.voted[m][t] == n}))
        s.next.leads[n] = s.leads[n] | {t}

    @lemma()
    def a_leader_has_a_majority(s, n: Node, t: Term) -> bool:
        return t not in s.leads[n] or majority({m for m in Node if s.voted[m][t] == n})

    @invariant()
    def one_leader_a_term(s, n: Node, k: Node, t: Term) -> bool:
        return n == k or not (t in s.leads[n] and t in s.leads[k])


class Fickle(Election):
    """Nodes change their minds: two may lead."""

    @action(who="node")
    def vote(s, m: Node, t: Term, n: Node) -> None:
        s.next.voted[m][t] = n


class Half(Election):
    """As many as not is enough: two may lead."""

    @action(who="node")
    def lead(s, n: Node, t: Term) -> None:
        require(2 * sum(1 for m in Node if s.voted[m][t] == n) >= len(Node))
        s.next.leads[n] = s.leads[n] | {t}


@dataclass(frozen=True)
class Vote:
    """A vote on its way."""

    by: Node
    to: Node
    term: Term


class ByLetter(Model):
    """The same with votes as messages, each of which may be lost, and be counted once it is there."""

    given: dict[Node, dict[Term, Node | None]]
    post: Annotated[set[Vote], Bounded(K)]
    heard: dict[Node, dict[Term, set[Node]]]
    leads: dict[Node, set[Term]]

    @action(who="node")
    def vote(s, m: Node, t: Term, n: Node) -> None:
        require(s.given[m][t] is None, len(s.post) < K)
        s.next.given[m][t] = n
        s.next.post = s.post | {Vote(by=m, to=n, term=t)}

    @action(who="node")
    def hear(s, v: Annotated[Vote, Of("post")]) -> None:
        s.next.heard[v.to][v.term] = s.heard[v.to][v.term] | {v.by}
        s.next.post = s.post - {v}

    @action(who="net")
    def lose(s, v: Annotated[Vote, Of("post")]) -> None:
        s.next.post = s.post - {v}

    @action(who="node")
    def lead(s, n: Node, t: Term) -> None:
        require(majority(s.heard[n][t]))
        s.next.leads[n] = s.leads[n] | {t}

    @lemma()
    def a_letter_is_a_vote(s) -> bool:
        return all(s.given[v.by][v.term] == v.to for v in s.post)

    @lemma()
    def what_was_heard_was_given(s, n: Node, m: Node, t: Term) -> bool:
        return m not in s.heard[n][t] or s.given[m][t] == n

    @lemma()
    def a_leader_has_a_majority(s, n: Node, t: Term) -> bool:
        return t not in s.leads[n] or majority(s.heard[n][t])

    @invariant()
    def one_leader_a_term(s, n: Node, k: Node, t: Term) -> bool:
        return n == k or not (t in s.leads[n] and t in s.leads[k])


class Forgetful(ByLetter):
    """Letters are sent without room for them."""

    @action(who="node")
    def vote(s, m: Node, t: Term, n: Node) -> None:
        require(s.given[m][t] is None)
        s.next.given[m][t] = n
        s.next.post = s.post | {Vote(by=m, to=n, term=t)}


@dataclass(frozen=True)
class Reply:
    """A message that may name nobody."""

    to: Node
    who: Node | None


class Replies(Model):
    """Messages with an option of a sort in them."""

    post: Annotated[set[Reply], Bounded(K)]

    @action()
    def send(s, n: Node) -> None:
        require(len(s.post) < K)
        s.next.post = s.post | {Reply(to=n, who=None)}

    @invariant()
    def nobody_is_named(s) -> bool:
        return all(r.who is None for r in s.post)


class Bank(Model):
    """Money moves; its sum does not change."""

    has: dict[Node, Annotated[int, Range(0)]]
    total: Annotated[int, Range(0)]
    best: Annotated[int, Range(0)]
    full: bool

    @action()
    def earn(s, n: Node) -> None:
        s.next.has[n] = s.has[n] + 2
        s.next.total = s.total + 2

    @action()
    def spend(s, n: Node) -> None:
        require(s.has[n] % 2 == 1 or s.has[n] // 2 > 0, s.has[n] * 2 >= 4)
        s.next.has[n] = s.has[n] - 2
        s.next.total = s.total - 2

    @action()
    def look(s) -> None:
        s.next.best = max(s.has[n] for n in Node)
        s.next.full = sum(1 for n in Node if s.has[n] >= 0) == len(Node)

    @invariant()
    def the_total_is_the_sum(s) -> bool:
        return s.total == sum(s.has[n] for n in Node)

    @invariant()
    def never_negative(s, n: Node) -> bool:
        return s.has[n] >= 0 and sum(s.has[k] for k in Node) >= 0


class Thief(Bank):
    """Some of the money is gone."""

    @action()
    def spend(s, n: Node) -> None:
        require(s.has[n] >= 2)
        s.next.has[n] = s.has[n] - 2
        s.next.total = s.total - 1


class Parts(Model):
    """Images, sequences joined, assignments to parts."""

    seen: set[Term]
    of: dict[Node, Term]
    q: Annotated[list[Term], Bounded(T)]
    last: Vote | None
    first: dict[Node, Vote | None]

    @action()
    def image(s) -> None:
        s.next.seen = {s.of[n] for n in Node}

    @action()
    def cut(s, i: Term) -> None:
        s.next.q = s.q[:i] + s.q[i:]

    @action()
    def put(s, i: Term) -> None:
        require(i < len(s.q))
        s.next.q[i] = 0

    @action()
    def push(s, n: Node, t: Term) -> None:
        require(len(s.q) < T, t in s.seen)
        s.next.q = s.q + [t]
        s.next.of[n] = t
        s.next.last = Vote(by=n, to=n, term=t)

    @invariant()
    def no_term_above(s) -> bool:
        return all(t <= T for t in s.seen) and all(t <= T for t in s.q)

    @invariant()
    def the_last_is_its_own(s) -> bool:
        return s.last is None or s.last.by == s.last.to


class Groups(Model):
    """Sets of nodes of which numbers, sums and majorities are asked."""

    a: set[Node]
    b: set[Node]
    knows: dict[Node, set[Node]]
    weight: dict[Node, Annotated[int, Range(-5)]]

    @action()
    def add(s, n: Node) -> None:
        s.next.a = s.a | {n}
        s.next.weight[n] = s.weight[n] - 1

    @invariant()
    def large(s, n: Node) -> bool:
        return majority(s.a) or majority(s.b) or majority(s.knows[n]) or majority({k for k in Node if n in s.knows[k]})

    @invariant()
    def counted(s, n: Node) -> bool:
        return len(s.a) + len(s.knows[n]) <= len(Node)

    @invariant()
    def summed(s, n: Node) -> bool:
        return sum(s.weight[k] for k in s.a) <= sum(s.weight[k] for k in Node if k in s.knows[n])
