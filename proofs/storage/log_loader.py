"""For any number of old and of new segments: after a crash at any moment and a load, the old ones or the new ones."""

from __future__ import annotations

from kafkaspec.models.storage.log_loader import Replacement
from kafkaspec.prove.proof import Proof

PROOFS = [Proof(Replacement, explored_at={"N": 2, "Old": 2}, fixed={"IN_ORDER": True}, timeout_s=3.0)]
