"""For any number of replicas, producers, transactions and records: no replica tells a wrong outcome, and a
read_committed consumer that goes from one to another is given what was committed, once, and nothing else
(`ReplicatedMarkers`).

What holds it up: in every log the transactions of a producer come in order, and nothing joins one that has ended
(`transactions_come_in_order`); the next transaction begins when a marker of the one before is replicated
(`the_marker_before_is_replicated`). So a record that is ended by the marker of a later transaction stands in a log that
is not what was committed (`a_marker_between_is_missing`), and no high watermark passes that marker
(`a_replicated_marker_ends_its_own`).

What each of these rests on is named, so that its proof is looked for there first.
"""

from __future__ import annotations

from kafkaspec.models.storage.transaction_failover import ReplicatedMarkers
from kafkaspec.prove.proof import Proof

ENDS = ("a_record_ends_at_a_marker_behind_it",)
BELOW = ("what_is_below_a_high_watermark_is_committed",)
MISSING = (*ENDS, "a_marker_between_is_missing")
OWN = (*MISSING, *BELOW, "a_replicated_marker_ends_its_own")
TELLS = (*ENDS, *BELOW, "a_marker_between_is_missing", "markers_say_what_was_decided")
"""Without the claim itself: with it the proofs take twenty times as long."""
SEEN = (*BELOW, *ENDS, "each_replica_tells_the_outcome", "only_what_is_committed_is_read")

BEGINS_WITH = {
    "a_record_ends_at_a_marker_behind_it": ENDS,
    "the_first_marker_ends_it": (*ENDS, "the_first_marker_ends_it"),
    "what_is_below_a_high_watermark_is_committed": BELOW,
    "markers_say_what_was_decided": ("markers_say_what_was_decided", "records_are_of_a_transaction_that_began"),
    "transactions_come_in_order": ("transactions_come_in_order",),
    "records_are_of_a_transaction_that_began": ("records_are_of_a_transaction_that_began",),
    "each_once_and_in_order": ("each_once_and_in_order",),
    "committed_in_order": (*BELOW, "committed_in_order", "transactions_come_in_order"),
    "below_a_replicated_marker_all_logs_are_the_same": (
        *(*ENDS, *BELOW),
        "below_a_replicated_marker_all_logs_are_the_same",
    ),
    "a_marker_between_is_missing": (
        *MISSING,
        "the_first_marker_ends_it",
        "the_marker_before_is_replicated",
        "transactions_come_in_order",
        "committed_in_order",
        "records_are_of_a_transaction_that_began",
    ),
    "a_replicated_marker_ends_its_own": OWN,
    "each_replica_tells_the_outcome": TELLS,
    "nothing_else_is_seen": (*SEEN, "nothing_else_is_seen"),
    "nothing_is_left_out": (*SEEN, "nothing_is_left_out"),
}

PROOFS = [
    Proof(
        ReplicatedMarkers,
        explored_at={"Replica": 2, "Producer": 1, "L": 2, "E": 1, "T": 2, "C": 1},
        begins_with=BEGINS_WITH,
    )
]
