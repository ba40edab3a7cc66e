"""For any number of epochs and offsets: entries rise, in the file too; records are known by the entry of their epoch;
and a restart comes to the same entries whatever truncation was not written. The last two of the fixed protocol: of
the released one the explorer shows that they are false."""

from __future__ import annotations

from kafkaspec.models.storage.leader_epochs import Entries, Replica
from kafkaspec.prove.proof import Proof

PROOFS = [
    Proof(Entries, explored_at={"E": 2, "L": 2}),
    Proof(Replica, explored_at={"E": 2, "L": 2, "FIXED": True}),
]
