"""A quorum of controllers, for every number of voters, epochs and records: one leader an epoch, logs that agree, and
leaders that have what is committed. What each of these rests on is named, so that its proof is looked for there first.
The roles and the pre-votes are proved apart from the logs."""

from __future__ import annotations

from dataclasses import replace

from kafkaspec.language import load
from kafkaspec.models.controller.raft import Agreement, Completeness, Roles, Votes
from kafkaspec.prove.proof import Proof

RECORDS = ("records_are_their_leaders", "sent_records_are_their_leaders", "only_leaders_send")
RISE = ("epochs_rise_along_a_log", "epochs_rise_along_what_is_sent")
ALONE = ("nobody_else_can_lead", "candidates_have_not_led")
LEADER = ("a_leader_sends_its_log", "whoever_leads_was_elected", *ALONE)
LED = "records_are_of_epochs_with_a_leader"
AGREE = {
    "log_matching": ("log_matching", *RECORDS[:2], LED, "whoever_can_lead_is_the_first"),
    LED: (LED, *RECORDS, "a_leader_sends_its_log"),
    "candidates_have_no_record_of_their_epoch": ("candidates_have_no_record_of_their_epoch", RECORDS[0]),
    RECORDS[0]: (*RECORDS, "a_leader_sends_its_log", "whoever_leads_was_elected", "whoever_can_lead_is_the_first"),
    "sent_records_are_their_leaders": (
        *(*RECORDS, "whoever_can_lead_is_the_first", "candidates_have_no_record_of_their_epoch"),
    ),
    "a_follower_keeps_what_its_leader_has": ("a_leader_sends_its_log", "whoever_leads_was_elected", *RECORDS, *RISE),
    "epochs_rise_along_a_log": (*RECORDS, *RISE, "a_leader_sends_its_log"),
    "epochs_rise_along_what_is_sent": (*RECORDS, *RISE, "a_leader_sends_its_log"),
}
AGREE |= {
    "leaders_are_elected after become_leader": ("leaders_are_elected",),
    "whoever_can_lead_is_the_first after become_candidate": ("leaders_are_elected", "nobody_is_ahead_of_its_epoch"),
    f"{RECORDS[1]} after become_leader": ("only_leaders_send", RECORDS[0], "whoever_can_lead_is_the_first"),
    f"{RECORDS[1]} after write": ("a_leader_sends_its_log",),
    f"{RISE[0]} after append": (*RECORDS[:2], *RISE),
    "log_matching after append": ("log_matching", *RECORDS[:2]),
    "log_matching after write": ("a_leader_sends_its_log", RECORDS[0]),
}
MATCH = {
    "nobody_else_can_lead": (
        *("nobody_else_can_lead", "leaders_have_a_majority", "nobody_is_ahead_of_its_epoch"),
        "whoever_leads_is_a_voter",
    ),
    RECORDS[0]: (*RECORDS, *LEADER),
    RECORDS[1]: (*RECORDS, *LEADER, "candidates_have_no_record_of_their_epoch"),
    "epochs_rise_along_a_log": (*RECORDS, *RISE, "a_leader_sends_its_log"),
    "epochs_rise_along_what_is_sent": (*RECORDS, *RISE, "a_leader_sends_its_log"),
    "a_leader_sends_its_log": LEADER,
    "candidates_have_no_record_of_their_epoch": ("candidates_have_no_record_of_their_epoch", RECORDS[0]),
}
VOTED, HAD = "candidates_have_what_their_voters_had", "who_had_a_record_has_it"
PIECE, PIECE_SENT = "an_epoch_is_one_piece_of_a_log", "an_epoch_is_one_piece_of_what_is_sent"
LOG, SENT = "before_a_later_record_it_is_there_or_lost", "before_a_later_record_it_is_sent_or_lost"
BEGINS, ENDS = "an_epoch_begins_where_it_begins", "what_is_sent_ends_in_its_epoch"
AHEAD = ("only_leaders_send", "nobody_is_ahead_of_its_epoch")
BEGUN = ("epochs_begin_with_a_leader", "a_leader_sends_its_log", *ALONE)
ELECTED = (VOTED, *AHEAD, *LEADER, "epochs_begin_with_a_leader")
COMPLETE = {
    "lost_without_a_majority": ("lost_without_a_majority",),
    "what_a_majority_has_is_not_lost": ("lost_without_a_majority", "what_a_majority_has_is_not_lost"),
    "acked_is_sent": ("acked_is_sent", "only_leaders_send", *LEADER),
    "a_majority_has_what_is_committed": ("a_majority_has_what_is_committed", *BEGUN),
    "committed_is_not_lost": (
        "committed_is_not_lost",
        "what_a_majority_has_is_not_lost",
        "a_majority_has_what_is_committed",
    ),
    ENDS: (ENDS, *AHEAD, *LEADER),
    PIECE: (PIECE, PIECE_SENT, *RECORDS, *LEADER, BEGINS),
    PIECE_SENT: (PIECE, PIECE_SENT, *RECORDS, *LEADER, BEGINS, BEGUN[0]),
    LOG: (LOG, SENT, ENDS, *RECORDS, *ELECTED),
    SENT: (LOG, SENT, ENDS, *RECORDS, *ELECTED),
    HAD: (HAD, SENT, LOG, PIECE, *AHEAD, "acked_is_sent", *LEADER, BEGINS, *RECORDS, *RISE),
    VOTED: (
        *(VOTED, HAD, LOG, PIECE, "nobody_is_ahead_of_its_epoch", "votes_are_for_who_stood", RISE[0]),
        *("epochs_begin_with_a_leader", *ALONE),
    ),
    "leaders_have_what_is_committed_or_it_is_lost": (
        *("leaders_have_what_is_committed_or_it_is_lost", SENT, ENDS, *BEGUN, *LEADER, VOTED, *AHEAD),
    ),
}

ONCE = {
    f"{LED} after append": ("only_leaders_send", RECORDS[1]),
    f"{LOG} after append": (LOG, SENT, *RECORDS[:2]),
    f"{RECORDS[0]} after append": RECORDS[:2],
    f"{PIECE} after append": (PIECE_SENT, *RECORDS[:2]),
    f"{PIECE} after become_leader": (*ALONE, RECORDS[0], "only_leaders_send"),
    f"{RISE[1]} after become_leader": (RISE[0], RECORDS[0]),
    "leaders_have_what_is_committed_or_it_is_lost after become_leader": ("a_majority_has_what_is_committed", VOTED),
    f"{HAD} after truncate": (HAD, SENT, ENDS, RECORDS[0], *RISE),
}
"""Steps that are hard to prove among all that such a claim rests on, and easy among what they themselves need."""

COMPLETENESS = load(Completeness).claiming()
OTHERWISE = ("leaders_are_elected", "whoever_can_lead_is_the_first")
"""Lemmas of the proof before that are said in another way here: with both the proofs take twice as long."""

FEW = {"Voter": 2, "E": 2, "L": 2}
PROOFS = [
    Proof(
        load(Roles).claiming(
            *("one_leader_per_epoch", "new_epochs_need_a_majority", "a_vote_lasts_as_long_as_the_epoch"),
            *("a_leader_is_known_as_long_as_the_epoch", "who_knows_a_leader_gives_no_vote"),
            "who_has_its_leader_grants_no_pre_vote",
        ),
        explored_at={"Voter": 2, "E": 2},
    ),
    Proof(
        load(Votes).claiming(
            *("one_leader_per_epoch", "an_epoch_keeps_its_leader", "a_vote_stays", "epochs_rise"),
            *("votes_go_to_logs_that_are_up_to_date", "a_candidate_votes_for_itself", "a_leader_begins_with_a_record"),
            "followers_learn_up_to_their_end",
        ),
        explored_at=FEW,
    ),
    Proof(
        load(Agreement).claiming("log_matching", "leaders_only_append", "a_follower_keeps_what_its_leader_has"),
        timeout_s=30,
        explored_at=FEW,
        begins_with=AGREE,
    ),
    Proof(
        replace(COMPLETENESS, lemmas={n: c for n, c in COMPLETENESS.lemmas.items() if n not in OTHERWISE}),
        timeout_s=30,
        explored_at=FEW,
        begins_with=MATCH | COMPLETE | ONCE,
    ),
]
