"""For any number of controllers, epochs and records: nothing that was answered is lost, every controller shows a
beginning of one log, and no call is answered before its records are stable.

What holds it up: a controller claims leadership when it has applied the whole log (`claim_leadership`), so that the
active one of the latest epoch has all there is (`the_active_controller_has_all_there_is`); what a controller knows
committed it has in memory, whoever applied it (`same_log_same_state`); and it shows it up to where a transaction begins
(`stable_ends_where_a_transaction_begins`). What a call is answered with was not there before the call: whoever claims
an epoch has all that was written in it (`who_claims_an_epoch_has_all_its_records`).
"""

from __future__ import annotations

from kafkaspec.models.controller.quorum import COMMITTED, Member, Quorum, StateMachine
from kafkaspec.prove.proof import Proof

SHOWN = (
    *("same_log_same_state", "only_what_is_committed_is_shown", "who_waits_waits_for_what_is_not_stable"),
    *("committed_is_in_the_log", "stable_ends_where_a_transaction_begins", "the_active_controller_has_all_there_is"),
    *("before_its_activation_it_has_what_is_committed", "who_waits_waits_for_a_record_of_its_own"),
    *("who_claims_an_epoch_has_all_its_records", "one_writer_an_epoch", "epochs_are_those_of_elections"),
)
APPLIED = (
    *("before_its_activation_it_has_what_is_committed", "committed_is_in_the_log"),
    *("epochs_are_those_of_elections", "logs_are_formed"),
)
BEGINS_WITH = {
    "users": SHOWN,
    "users after claim_leadership": ("the_active_controller_has_all_there_is",),
    "before_its_activation_it_has_what_is_committed after renounce": ("same_log_same_state",),
    "whatever_is_committed_can_be_applied after replay": (*APPLIED, "stable_ends_where_a_transaction_begins"),
    "a_standby_has_what_is_committed_alone": ("same_log_same_state",),
    "open_is_what_memory_says": ("same_log_same_state", "stable_ends_where_a_transaction_begins"),
    "open_is_what_memory_says after replay": (
        *("a_standby_has_what_is_committed_alone", "committed_is_in_the_log", "logs_are_formed", "same_log_same_state"),
    ),
    "same_log_same_state": ("same_log_same_state",),
    "stable_ends_where_a_transaction_begins after replay": APPLIED,
}

PROOFS = [
    Proof(Member, explored_at={"L": 6}),
    Proof(StateMachine, explored_at={"Controller": 2, "L": 2, "E": 1}),
    Proof(
        Quorum,
        fixed=COMMITTED,
        explored_at={"Controller": 2, "L": 2, "E": 2},
        begins_with=BEGINS_WITH,
    ),
]
