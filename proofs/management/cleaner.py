"""For any number of partitions, cleaner threads, users and pauses: who cleans is alone, pauses are counted, no waiter
is forgotten; for any offsets: what is below a checkpoint was cleaned, and nothing above the last stable offset was."""

from __future__ import annotations

from kafkaspec.models.management.cleaner import Cleaner, Offsets, States
from kafkaspec.prove.proof import Proof

PROOFS = [
    Proof(Cleaner, explored_at={"Partition": 1, "Thread": 2, "User": 2, "N": 2, "D": 1}),
    Proof(States, explored_at={"Partition": 2, "N": 2, "D": 1}),
    Proof(Offsets, explored_at={"L": 4}),
]
