"""Raft: one leader a term, and logs that agree up to wherever they have an entry of one index and one term.

Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm", without changes of the members and without
the commit index, and so without a vote's comparison of the logs (`prevote` has both). Nobody keeps a role: a node
leads if it was elected in its term. A vote is asked for by voting for oneself. `sent` is the log of the leader of a
term, which only grows: whatever a leader has ever sent may arrive late, again and again, or never.

`proofs/examples/raft_terms.py` proves its claims for every number of nodes, terms and entries.
"""

# mypy: disable-error-code="operator, index, arg-type"
# (the modelling language unwraps an option where its value is wanted; mypy narrows no element of a map)

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import (
    Bounded,
    Model,
    Range,
    Size,
    Sort,
    action,
    define,
    invariant,
    majority,
    require,
    step,
    witness,
)


class Node(Sort):
    """A server."""


class Command(Sort):
    """What a client wants to be written."""


T = Size("T")
"""The highest term; all begin in 0, without a leader."""
L = Size("L")
"""The most entries of a log."""
Term = Annotated[int, Range(0, T)]
Index = Annotated[int, Range(0, L)]
"""Of an entry, from 0; or the length of a log."""


@dataclass(frozen=True)
class Entry:
    term: Term
    command: Command


class Raft(Model):
    """`voted` is a node's vote in each term, `led` the terms in which it was elected."""

    term: dict[Node, Term]
    voted: dict[Node, dict[Term, Node | None]]
    led: dict[Node, set[Term]]
    log: dict[Node, Annotated[list[Entry], Bounded(L)]]
    sent: dict[Term, Annotated[list[Entry], Bounded(L)]]

    @define
    def leads(s, n: Node) -> bool:
        return s.term[n] in s.led[n]

    # A node whose election timeout is over, or that has a leader and cannot hear it: a new term, and its own vote.
    @action(who="node")
    def time_out(s, n: Node) -> None:
        require(not s.leads(n), s.term[n] < T)
        s.next.term[n] = s.term[n] + 1
        s.next.voted[n][s.term[n] + 1] = n

    # A node on any request or answer of a higher term. A leader or candidate is one no longer.
    @action(who="node")
    def hear_of_term(s, n: Node, t: Term) -> None:
        require(s.term[n] < t, any(t <= s.term[m] for m in Node))
        s.next.term[n] = t

    # RequestVote: one vote a term. Simplified: the candidate has not gone on meanwhile.
    @action(who="node")
    def vote(s, m: Node, n: Node) -> None:
        require(s.term[m] == s.term[n], s.voted[n][s.term[n]] == n, s.voted[m][s.term[m]] is None)
        s.next.voted[m][s.term[m]] = n

    # A candidate with a majority of the votes of its term.
    @action(who="candidate")
    def become_leader(s, n: Node) -> None:
        require(not s.leads(n), majority({m for m in Node if s.voted[m][s.term[n]] == n}))
        s.next.led[n] = s.led[n] | {s.term[n]}
        s.next.sent[s.term[n]] = s.log[n]

    # A leader, on a client's request.
    @action(who="leader")
    def write(s, n: Node, c: Command) -> None:
        require(s.leads(n), len(s.log[n]) < L)
        s.next.log[n] = s.log[n] + [Entry(term=s.term[n], command=c)]
        s.next.sent[s.term[n]] = s.log[n] + [Entry(term=s.term[n], command=c)]

    # AppendEntries of the node's term, with the entry at i and the term of the one before: the node has that one. What
    # is at i in its log, and what follows, goes if the terms differ.
    @action(who="follower")
    def append(s, m: Node, i: Index) -> None:
        q = s.sent[s.term[m]]
        require(i < len(q), i <= len(s.log[m]))
        require(i == 0 or s.log[m][i - 1].term == q[i - 1].term)
        require(i == len(s.log[m]) or s.log[m][i].term != q[i].term)
        s.next.log[m] = s.log[m][:i] + [q[i]]

    @invariant()
    def one_leader_per_term(s, m: Node, n: Node, t: Term) -> bool:
        return m == n or t not in s.led[m] or t not in s.led[n]

    @invariant()
    def log_matching(s, m: Node, n: Node, i: Index, j: Index) -> bool:
        """Two entries of one index and one term: the logs are the same up to there."""
        return (
            j > i
            or i >= len(s.log[m])
            or i >= len(s.log[n])
            or s.log[m][i].term != s.log[n][i].term
            or s.log[m][j] == s.log[n][j]
        )

    @step()
    def leaders_only_append(s, n: Node, i: Index) -> bool:
        return not s.leads(n) or i >= len(s.log[n]) or (i < len(s.next.log[n]) and s.next.log[n][i] == s.log[n][i])

    @witness
    def logs_diverge(s, m: Node, n: Node) -> bool:
        """Two leaders wrote at one index."""
        return len(s.log[m]) > 0 and len(s.log[n]) > 0 and s.log[m][0] != s.log[n][0]

    @witness
    def follower_has_what_another_leader_wrote(s, n: Node) -> bool:
        return len(s.log[n]) > 1 and s.log[n][0].term != s.log[n][1].term and not s.leads(n)


MODELS = [
    Expectation(
        Raft,
        sizes={"Node": 3, "Command": 2, "T": 2, "L": 2},
        distinct=126_864,
        generated=310_597,
        depth=21,
        deadlock=True,
    ),
    Expectation(
        Raft,
        sizes={"Node": 3, "Command": 1, "T": 3, "L": 3},
        distinct=5_997_529,
        generated=15_051_538,
        depth=34,
        deadlock=True,
    ),
]
