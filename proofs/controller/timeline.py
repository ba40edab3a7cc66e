"""Timeline collections, for any number of keys, values and snapshots: the invariants of the rules, of the tiers, and of
an iterator at an epoch.

What holds the tiers up is said by the lemmas of `Tiers`: a delta holds what its own snapshot saw (`kept_was_seen`); of
two deltas with the same key the later one's entry was written after the earlier snapshot, and so was the table's entry
(`later_deltas_are_newer`, `table_is_newer`); every key of a copy is in the table or in a delta from that snapshot on,
written in time (`copy_is_somewhere`); and what was written after a snapshot without a delta was written after a later
snapshot too (`unchanged_means_older_or_after_the_next`), which is why a snapshot without one may take over the next
one's as it is.
"""

from __future__ import annotations

from kafkaspec.models.controller.timeline import Copies, Iteration, Scalar, Tiers
from kafkaspec.prove.proof import Proof

KEPT = ("kept_shows_the_copy", "only_snapshots_keep")
ITERATION = {
    "first_delta_shows_the_copy": ("first_delta_shows_the_copy", "later_deltas_are_newer", *KEPT),
    "present_size_is_right": (
        *("copy_is_somewhere", "first_size_is_right", "kept_was_seen", "table_shows_the_copy"),
        *KEPT,
    ),
}
"""Among which claims the proofs of these are looked for first."""

PROOFS = [
    Proof(Copies, timeout_s=5, explored_at={"Key": 2, "Value": 2, "E": 2}),
    Proof(Tiers, timeout_s=20, explored_at={"Key": 2, "Value": 2, "E": 3}),
    Proof(Iteration, timeout_s=30, explored_at={"Key": 2, "Value": 1, "E": 3}, begins_with=ITERATION),
    Proof(Scalar, timeout_s=5, explored_at={"Value": 3, "E": 3}),
]
