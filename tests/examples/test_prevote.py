"""Pre-vote: each rule left out, and the claim that breaks; and the proofs."""

# mypy: disable-error-code="operator, index, arg-type, assignment"

from __future__ import annotations

import pytest

from kafkaspec.language import action, define, load, majority, require
from kafkaspec.models.examples.prevote import E, Epoch, PreVote, Role, Voter
from kafkaspec.proofs.examples import prevote as proof_of_prevote
from kafkaspec.prove.proof import Proof
from tests.examples.claims import broken

SIZES: dict[str, int | bool] = {"Voter": 3, "E": 2}


class WithoutPreVote(PreVote):
    """KIP-595 alone: who misses its leader begins an election."""

    @action(who="prospective voter")
    def become_candidate(s, n: Voter) -> None:
        require(s.role[n] == Role.PROSPECTIVE, s.epoch[n] < E)
        s.become(n, Role.CANDIDATE, s.epoch[n] + 1, None)
        s.next.voted[n] = n
        s.next.granted[n] = {n}
        s.next.votes[s.epoch[n] + 1][n] = n


class GrantsWhileItFetches(PreVote):
    """A follower grants a pre-vote to anybody with a log as long as its own."""

    @action(who="voter")
    def grant_pre_vote(s, m: Voter, n: Voter) -> None:
        require(s.role[n] == Role.PROSPECTIVE, m not in s.granted[n], s.epoch[m] == s.epoch[n], s.log[m] <= s.log[n])
        require(s.role[m] not in (Role.LEADER, Role.CANDIDATE))
        s.next.granted[n] = s.granted[n] | {m}


class ForgetsItsVote(PreVote):
    """A change of state within the epoch loses the vote."""

    @define
    def become(s, n: Voter, role: Role, epoch: Epoch, leader: Voter | None) -> None:
        s.next.voted[n] = None
        s.next.role[n] = role
        s.next.epoch[n] = epoch
        s.next.leader[n] = leader
        s.next.fetched[n] = False
        s.next.granted[n] = set()


class KeepsGrants(PreVote):
    """Grants of before count in the next state: pre-votes as votes."""

    @define
    def become(s, n: Voter, role: Role, epoch: Epoch, leader: Voter | None) -> None:
        if s.epoch[n] != epoch:
            s.next.voted[n] = None
        s.next.role[n] = role
        s.next.epoch[n] = epoch
        s.next.leader[n] = leader
        s.next.fetched[n] = False

    @action(who="prospective voter")
    def become_candidate(s, n: Voter) -> None:
        require(s.role[n] == Role.PROSPECTIVE, majority(s.granted[n]), s.epoch[n] < E)
        s.become(n, Role.CANDIDATE, s.epoch[n] + 1, None)
        s.next.voted[n] = n


class VotesForAnyLog(PreVote):
    @action(who="voter")
    def vote(s, m: Voter, n: Voter) -> None:
        require(s.role[n] == Role.CANDIDATE, s.epoch[m] == s.epoch[n])
        require(s.role[m] in (Role.UNATTACHED, Role.PROSPECTIVE), s.voted[m] is None, s.leader[m] is None)
        s.next.voted[m] = n
        s.next.granted[n] = s.granted[n] | {m}


BROKEN = [
    (WithoutPreVote, "new_epochs_need_a_majority"),
    (WithoutPreVote, "no_disruption"),
    (GrantsWhileItFetches, "no_disruption"),
    (ForgetsItsVote, "one_leader_per_epoch"),
    (KeepsGrants, "one_leader_per_epoch"),
    (VotesForAnyLog, "leaders_have_what_is_committed"),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("model", "claim"), BROKEN)
def test_a_rule_left_out_breaks_the_claim(model: type[PreVote], claim: str) -> None:
    assert broken(model, claim, SIZES)


@pytest.mark.deep
@pytest.mark.parametrize("proof", proof_of_prevote.PROOFS, ids=lambda p: p.name)
def test_elections_and_logs_are_right_for_every_number_of_voters(proof: Proof) -> None:
    assert proof.run().complete


def test_each_claim_but_one_is_proved() -> None:
    """That a majority is not disrupted is explored only."""
    proved = {n for p in proof_of_prevote.PROOFS for n in (*p.loaded.invariants, *p.loaded.steps)}
    claimed = load(PreVote)
    assert {*claimed.invariants, *claimed.steps} - proved == {"no_disruption"}
