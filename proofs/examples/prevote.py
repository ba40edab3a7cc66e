"""Elections with pre-vote, for any number of voters and epochs: one leader an epoch, and no leader without what is
committed. The votes and the logs are proved apart, which takes a third of the time that both take together. That a
majority is not disrupted is explored, not proved."""

# mypy: disable-error-code="operator, index, arg-type"

from __future__ import annotations

from kafkaspec.language import lemma, load, majority
from kafkaspec.models.examples.prevote import Epoch, PreVote, Role, Voter
from kafkaspec.prove.proof import Proof


class Votes(PreVote):
    """The same model with what the proof of its elections needs."""

    @lemma()
    def votes_are_remembered(s, n: Voter, e: Epoch) -> bool:
        """For as long as the epoch lasts, and none is of a later one."""
        return s.votes[s.epoch[n]][n] == s.voted[n] and (e <= s.epoch[n] or s.votes[e][n] is None)

    @lemma()
    def candidates_count_votes(s, n: Voter, m: Voter) -> bool:
        return s.role[n] != Role.CANDIDATE or m not in s.granted[n] or s.votes[s.epoch[n]][m] == n

    @lemma()
    def leaders_are_elected(s, m: Voter) -> bool:
        """Whoever is taken for the leader has a majority of the votes of that epoch."""
        return s.leader[m] is None or majority({k for k in Voter if s.votes[s.epoch[m]][k] == s.leader[m]})

    @lemma()
    def roles_know_their_leader(s, n: Voter) -> bool:
        return (
            (s.role[n] not in (Role.LEADER, Role.RESIGNED) or s.leader[n] == n)
            and (s.role[n] != Role.FOLLOWER or s.leader[n] is not None)
            and (not s.fetched[n] or s.role[n] == Role.FOLLOWER)
        )


class Logs(PreVote):
    """The same model with what the proof of its logs needs."""

    @lemma()
    def fetched_as_follower(s, n: Voter) -> bool:
        return not s.fetched[n] or s.role[n] == Role.FOLLOWER

    @lemma()
    def logs_are_not_ahead(s, n: Voter) -> bool:
        return s.log[n] <= s.epoch[n] and (s.role[n] != Role.LEADER or s.log[n] == s.epoch[n])

    @lemma()
    def candidates_have_what_their_voters_had(s, n: Voter, m: Voter) -> bool:
        """A voter's log has grown since only if somebody led the epoch of its vote, or a later one."""
        return (
            s.role[n] != Role.CANDIDATE
            or m not in s.granted[n]
            or (s.epoch[n] <= s.epoch[m] and (s.log[m] <= s.log[n] or s.epoch[n] <= s.log[m]))
        )

    @lemma()
    def a_majority_holds_what_is_committed(s) -> bool:
        return s.committed == 0 or majority(s.holders)

    @lemma()
    def holders_keep_what_is_committed(s, m: Voter) -> bool:
        return m not in s.holders or s.committed <= s.log[m]

    @lemma()
    def holders_vote_for_who_has_it(s, n: Voter, m: Voter) -> bool:
        return (
            s.role[n] != Role.CANDIDATE
            or s.epoch[n] <= s.committed
            or m not in s.granted[n]
            or m not in s.holders
            or s.committed <= s.log[n]
        )


PROOFS = [
    Proof(load(Votes).claiming("one_leader_per_epoch", "new_epochs_need_a_majority"), explored_at={"Voter": 3, "E": 2}),
    Proof(load(Logs).claiming("leaders_have_what_is_committed"), explored_at={"Voter": 3, "E": 2}),
]
