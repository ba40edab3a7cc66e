"""For any number of producers and any log: entries are in order, and a fetch that stops at one leaves nothing out."""

from __future__ import annotations

from kafkaspec.models.storage.transaction_index import Aborts
from kafkaspec.prove.proof import Proof

PROOFS = [Proof(Aborts, explored_at={"Producer": 2, "L": 4})]
