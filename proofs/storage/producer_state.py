"""Producers of a partition, for any number of them, of epochs, sequences and records: the table's rules, and that a log
that is read again makes the table that there was.

What holds the second up is that each record makes the next state from the one before it
(`each_record_makes_the_next`), at writing and at reading alike; that what stands above a record remembers its epoch and
sequence (`what_was_written_is_known_later`), so that nothing is accepted twice; and that a record without a marker
belongs to the transaction that is open (`an_undecided_record_is_of_the_open_transaction`).
"""

from __future__ import annotations

from kafkaspec.models.storage.producer_state import Log, Producers
from kafkaspec.prove.proof import Proof

PROOFS = [
    Proof(Producers, timeout_s=10, explored_at={"Producer": 2, "E": 1, "S": 2, "L": 3}),
    Proof(Log, timeout_s=30, explored_at={"Producer": 2, "E": 1, "S": 2, "L": 3}),
]
