"""A quorum of controllers, for every number of voters, epochs and records: one leader an epoch, and logs that agree.
The votes are proved apart from the logs. That a leader has what is committed is explored, not proved."""

# mypy: disable-error-code="operator, index, arg-type"

from __future__ import annotations

from kafkaspec.language import lemma, majority
from kafkaspec.models.controller.raft import Elections, Epoch, Length, Logs, Part, Role, Voter
from kafkaspec.proofs.examples.prevote import of
from kafkaspec.prove.proof import Proof


class Votes(Logs):
    """The same model with what the proof of its elections needs."""

    @lemma()
    def leaders_are_elected(s, e: Epoch) -> bool:
        return s.leader[e] is None or majority({m for m in Voter if s.votes[e][m] == s.leader[e]})

    @lemma()
    def whoever_leads_was_elected(s, n: Voter) -> bool:
        return s.part[n] != Part.LEADER or s.leader[s.epoch[n]] == n

    @lemma()
    def nobody_is_ahead_of_its_epoch(s, n: Voter, e: Epoch) -> bool:
        return e <= s.epoch[n] or (s.votes[e][n] is None and s.leader[e] != n)

    @lemma()
    def candidates_have_not_led(s, n: Voter) -> bool:
        return s.part[n] != Part.CANDIDATE or s.leader[s.epoch[n]] is None or s.leader[s.epoch[n]] != n

    @lemma()
    def candidates_have_an_epoch(s, n: Voter) -> bool:
        return s.part[n] == Part.VOTER or s.epoch[n] > 0


class Agreement(Votes):
    """The same model with what the proof of its logs needs."""

    @lemma()
    def whoever_can_lead_is_the_first(s, n: Voter) -> bool:
        e = s.epoch[n]
        return (
            s.part[n] != Part.CANDIDATE or s.leader[e] is None or not majority({m for m in Voter if s.votes[e][m] == n})
        )

    @lemma()
    def candidates_have_no_record_of_their_epoch(s, n: Voter, i: Length) -> bool:
        return s.part[n] != Part.CANDIDATE or i >= len(s.log[n]) or s.log[n][i] < s.epoch[n]

    @lemma()
    def epochs_rise_along_a_log(s, n: Voter, i: Length, j: Length) -> bool:
        return not (j < i and i < len(s.log[n])) or s.log[n][j] <= s.log[n][i]

    @lemma()
    def epochs_rise_along_what_is_sent(s, e: Epoch, i: Length, j: Length) -> bool:
        return not (j < i and i < len(s.sent[e])) or s.sent[e][j] <= s.sent[e][i]

    @lemma()
    def only_leaders_send(s, e: Epoch) -> bool:
        return (s.leader[e] is None) == (len(s.sent[e]) == 0)

    @lemma()
    def a_leader_sends_its_log(s, n: Voter, i: Length) -> bool:
        q = s.sent[s.epoch[n]]
        return s.part[n] != Part.LEADER or (len(q) == len(s.log[n]) and (i >= len(q) or q[i] == s.log[n][i]))

    @lemma()
    def records_are_their_leaders(s, n: Voter, i: Length, j: Length) -> bool:
        return i >= len(s.log[n]) or (
            s.log[n][i] <= s.epoch[n]
            and i < len(s.sent[s.log[n][i]])
            and (j > i or s.sent[s.log[n][i]][j] == s.log[n][j])
        )

    @lemma()
    def sent_records_are_their_leaders(s, e: Epoch, i: Length, j: Length) -> bool:
        return i >= len(s.sent[e]) or (
            s.sent[e][i] <= e and i < len(s.sent[s.sent[e][i]]) and (j > i or s.sent[s.sent[e][i]][j] == s.sent[e][j])
        )


class Roles(Elections):
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


RECORDS = ("records_are_their_leaders", "sent_records_are_their_leaders", "only_leaders_send")
RISE = ("epochs_rise_along_a_log", "epochs_rise_along_what_is_sent")
BEGINS = {
    "sent_records_are_their_leaders": (
        *(*RECORDS, "whoever_can_lead_is_the_first", "candidates_have_no_record_of_their_epoch"),
    ),
    "a_follower_keeps_what_its_leader_has": ("a_leader_sends_its_log", "whoever_leads_was_elected", *RECORDS, *RISE),
    "epochs_rise_along_a_log": (*RECORDS, *RISE, "a_leader_sends_its_log"),
    "epochs_rise_along_what_is_sent": (*RECORDS, *RISE, "a_leader_sends_its_log"),
}

AT = {"Voter": 3, "E": 2, "L": 2}
PROOFS = [
    Proof(
        of(
            Roles,
            *("one_leader_per_epoch", "new_epochs_need_a_majority", "a_vote_lasts_as_long_as_the_epoch"),
            *("a_leader_is_known_as_long_as_the_epoch", "who_knows_a_leader_gives_no_vote"),
            "who_has_its_leader_grants_no_pre_vote",
        ),
        explored_at={"Voter": 3, "E": 2},
    ),
    Proof(
        of(
            Votes,
            *("one_leader_per_epoch", "an_epoch_keeps_its_leader", "a_vote_stays", "epochs_rise"),
            *("votes_go_to_logs_that_are_up_to_date", "a_candidate_votes_for_itself", "a_leader_begins_with_a_record"),
            "followers_learn_up_to_their_end",
        ),
        explored_at=AT,
    ),
    Proof(
        of(Agreement, "log_matching", "leaders_only_append", "a_follower_keeps_what_its_leader_has"),
        explored_at=AT,
        begins_with=BEGINS,
    ),
]
