"""For any number of slots, any offsets and any warm section: a search answers the greatest lower bound, and leaves
out at least half with every look; beside appends it is right without a lock."""

from __future__ import annotations

from kafkaspec.models.storage.offset_index import Race, Search
from kafkaspec.prove.proof import Proof

PROOFS = [
    Proof(Search, explored_at={"N": 3, "K": 3, "W": 1}),
    Proof(Race, explored_at={"N": 2, "K": 2, "W": 1}),
]
