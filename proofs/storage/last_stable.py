"""For any number of producers and records: what a read_committed consumer sees, whatever comes between its steps.

What holds it up: a transactional record is decided, or belongs to what is open (`what_is_undecided_is_open`); from its
first offset to its marker a transaction is all that its producer writes (`what_is_open_is_undecided`), so that a marker
decides all of it and nothing else; what lies below the bound of a fetch is decided for good (`a_fetch_is_stable`); and
between a fetch's position and its bound each abort marker is told or its producer dropped already, never both too late
(`what_was_aborted_is_told_or_dropped`).

What each of these rests on is named, so that its proof is looked for there first.
"""

from __future__ import annotations

from kafkaspec.models.storage.last_stable import Readers, Stability
from kafkaspec.prove.proof import Proof

PRODUCERS = ("every_record_is_somebodys",)
MARKERS = (*PRODUCERS, "a_marker_decides")
TRANSACTIONS = (*MARKERS, "a_marker_ends_one_transaction", "what_is_open_is_undecided")
READ = ("only_what_is_replicated_is_read", "offsets_are_in_order")

BEGINS_WITH = {
    "every_record_is_somebodys": PRODUCERS,
    "a_marker_decides": MARKERS,
    "what_is_undecided_is_open": (*MARKERS, "what_is_undecided_is_open", "what_is_open_is_undecided"),
    "what_is_open_is_undecided": ("a_marker_decides", "what_is_open_is_undecided"),
    "the_first_marker_decides": (*MARKERS, "the_first_marker_decides", "what_is_undecided_is_open"),
    "a_marker_ends_one_transaction": (*TRANSACTIONS, "what_is_undecided_is_open", "a_marker_ends_what_is_open"),
    "an_unreplicated_end_is_remembered": (
        "an_unreplicated_end_is_remembered",
        "a_marker_decides",
        "a_marker_ends_one_transaction",
        "every_abort_is_in_the_index",
        "nothing_undecided_is_stable",
        "what_is_open_is_undecided",
    ),
    "nothing_undecided_is_stable": (
        *TRANSACTIONS,
        "nothing_undecided_is_stable",
        "an_unreplicated_end_is_remembered",
        "every_abort_is_in_the_index",
        "what_is_undecided_is_open",
    ),
    "a_fetch_is_stable": (
        *MARKERS,
        *READ,
        "a_fetch_is_stable",
        "an_unreplicated_end_is_remembered",
        "every_abort_is_in_the_index",
        "nothing_undecided_is_stable",
        "what_is_open_is_beyond_the_fetch",
    ),
    "what_is_open_is_beyond_the_fetch": (
        *PRODUCERS,
        *READ,
        "a_fetch_is_stable",
        "what_is_open_is_beyond_the_fetch",
        "what_is_open_is_undecided",
    ),
    "what_is_told_was_aborted": (*MARKERS, "a_marker_ends_one_transaction", "what_is_told_was_aborted"),
    "what_is_dropped_was_aborted": (
        *TRANSACTIONS,
        "a_marker_ends_what_is_open",
        "what_is_dropped_was_aborted",
        "what_is_told_was_aborted",
    ),
    "what_was_passed_is_decided": (*MARKERS, *READ, "a_fetch_is_stable", "what_was_passed_is_decided"),
    "what_was_seen_is_replicated": (
        *MARKERS,
        "a_fetch_is_stable",
        "only_what_is_replicated_is_read",
        "what_was_seen_is_replicated",
    ),
    "nothing_else_is_seen": (
        *MARKERS,
        "a_fetch_is_stable",
        "a_marker_ends_one_transaction",
        "every_abort_is_in_the_index",
        "nothing_else_is_seen",
        "only_what_is_replicated_is_read",
        "what_was_aborted_is_told_or_dropped",
        "what_was_seen_is_replicated",
    ),
    "nothing_is_left_out": (
        *TRANSACTIONS,
        *READ,
        "a_marker_ends_what_is_open",
        "every_abort_is_in_the_index",
        "nothing_is_left_out",
        "what_is_dropped_was_aborted",
        "what_is_told_was_aborted",
        "what_was_passed_is_decided",
    ),
}

PROOFS = [
    Proof(Stability, explored_at={"Producer": 2, "L": 4}),
    Proof(Readers, timeout_s=60, explored_at={"Producer": 2, "L": 2}, begins_with=BEGINS_WITH),
]
