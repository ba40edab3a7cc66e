"""A quorum of controllers, for every number of voters, epochs and records: one leader an epoch, and logs that agree.
The votes are proved apart from the logs. That a leader has what is committed is explored, not proved."""

from __future__ import annotations

from kafkaspec.models.controller.raft import Agreement, Roles, Votes
from kafkaspec.proofs.examples.prevote import of
from kafkaspec.prove.proof import Proof

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
