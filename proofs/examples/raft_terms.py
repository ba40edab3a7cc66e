"""One leader a term and log matching, for every number of nodes: of majorities only that two of them meet is used.

What carries log matching is `entries_are_their_leaders`: up to an entry of a term, a log is what the leader of that
term sent."""

# mypy: disable-error-code="operator, index, arg-type"

from __future__ import annotations

from kafkaspec.language import lemma, majority
from kafkaspec.models.examples.raft_terms import Index, Node, Raft, Term
from kafkaspec.prove.proof import Proof


class Inductive(Raft):
    """The same model with what its proof needs."""

    @lemma()
    def a_leader_has_a_majority(s, n: Node, t: Term) -> bool:
        return t not in s.led[n] or majority({m for m in Node if s.voted[m][t] == n})

    @lemma()
    def nobody_is_ahead_of_its_term(s, n: Node, t: Term) -> bool:
        return t <= s.term[n] or (s.voted[n][t] is None and t not in s.led[n])

    @lemma()
    def only_leaders_send(s, t: Term) -> bool:
        return len(s.sent[t]) == 0 or any(t in s.led[n] for n in Node)

    @lemma()
    def a_leader_sends_its_log(s, n: Node, i: Index) -> bool:
        q = s.sent[s.term[n]]
        return not s.leads(n) or (len(q) == len(s.log[n]) and (i >= len(s.log[n]) or q[i] == s.log[n][i]))

    @lemma()
    def entries_are_their_leaders(s, n: Node, i: Index, j: Index) -> bool:
        return i >= len(s.log[n]) or (
            s.log[n][i].term <= s.term[n]
            and i < len(s.sent[s.log[n][i].term])
            and (j > i or s.sent[s.log[n][i].term][j] == s.log[n][j])
        )

    @lemma()
    def sent_entries_are_their_leaders(s, t: Term, i: Index, j: Index) -> bool:
        return i >= len(s.sent[t]) or (
            s.sent[t][i].term <= t
            and i < len(s.sent[s.sent[t][i].term])
            and (j > i or s.sent[s.sent[t][i].term][j] == s.sent[t][j])
        )


PROOFS = [Proof(Inductive, explored_at={"Node": 3, "Command": 1, "T": 2, "L": 2})]
