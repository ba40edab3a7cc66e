"""For any number of producers and records: what a read_committed consumer sees, whatever comes between its steps.

What holds it up: a transactional record is decided, or belongs to what is open (`what_is_undecided_is_open`); from its
first offset to its marker a transaction is all that its producer writes (`what_is_open_is_undecided`), so that a marker
decides all of it and nothing else; what lies below the bound of a fetch is decided for good (`a_fetch_is_stable`); and
between a fetch's position and its bound each abort marker is told or its producer dropped already, never both too late
(`what_was_aborted_is_told_or_dropped`).
"""

from __future__ import annotations

from kafkaspec.models.storage.last_stable import Readers, Stability
from kafkaspec.prove.proof import Proof

PROOFS = [
    Proof(Stability, explored_at={"Producer": 2, "L": 4}),
    Proof(Readers, timeout_s=60, explored_at={"Producer": 2, "L": 2}),
]
