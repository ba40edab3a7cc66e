"""Raft: each rule left out, and the claim that breaks; and the proof."""

# mypy: disable-error-code="operator, index, arg-type"

from __future__ import annotations

import pytest

from kafkaspec.language import action, define, require
from kafkaspec.models.examples.raft_terms import Command, Entry, Index, L, Node, Raft, Term
from kafkaspec.proofs.examples import raft_terms as proof_of_raft
from tests.examples.claims import broken

SIZES: dict[str, int | bool] = {"Node": 3, "Command": 2, "T": 2, "L": 2}


class VotesTwice(Raft):
    @action(who="node")
    def vote(s, m: Node, n: Node) -> None:
        require(s.term[m] == s.term[n], s.voted[n][s.term[n]] == n)
        s.next.voted[m][s.term[m]] = n


class ElectsItself(Raft):
    """A candidate that does not count the votes."""

    @action(who="candidate")
    def become_leader(s, n: Node) -> None:
        require(not s.leads(n), s.voted[n][s.term[n]] == n)
        s.next.led[n] = s.led[n] | {s.term[n]}
        s.next.sent[s.term[n]] = s.log[n]


class GoesBack(Raft):
    """A node takes a lower term for its own."""

    @action(who="node")
    def hear_of_term(s, n: Node, t: Term) -> None:
        require(any(t <= s.term[m] for m in Node))
        s.next.term[n] = t


class AppendsAnywhere(Raft):
    """A follower does not look at the entry before."""

    @action(who="follower")
    def append(s, m: Node, i: Index) -> None:
        q = s.sent[s.term[m]]
        require(i < len(q), i <= len(s.log[m]))
        require(i == len(s.log[m]) or s.log[m][i].term != q[i].term)
        s.next.log[m] = s.log[m][:i] + [q[i]]


class LeadsOn(Raft):
    """A leader that hears of a later term goes on as if it led that."""

    @define
    def leads(s, n: Node) -> bool:
        return any(t in s.led[n] for t in range(1, s.term[n] + 1))

    @action(who="leader")
    def write(s, n: Node, c: Command) -> None:
        require(s.leads(n), len(s.log[n]) < L)
        s.next.log[n] = s.log[n] + [Entry(term=s.term[n], command=c)]


BROKEN = [
    (VotesTwice, "one_leader_per_term"),
    (ElectsItself, "one_leader_per_term"),
    (ElectsItself, "log_matching"),
    (ElectsItself, "leaders_only_append"),
    (GoesBack, "one_leader_per_term"),
    (AppendsAnywhere, "log_matching"),
    (LeadsOn, "log_matching"),
]


@pytest.mark.parametrize(("model", "claim"), BROKEN)
def test_a_rule_left_out_breaks_the_claim(model: type[Raft], claim: str) -> None:
    assert broken(model, claim, SIZES)


@pytest.mark.deep
def test_leaders_and_logs_are_right_for_every_number_of_nodes() -> None:
    (proof,) = proof_of_raft.PROOFS
    assert proof.run().complete
