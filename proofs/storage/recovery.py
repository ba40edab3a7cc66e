"""A log after any crash: for any number of records."""

from __future__ import annotations

from kafkaspec.models.storage.recovery import Recovery
from kafkaspec.prove.proof import Proof

SOUND = {"REMOVED": True, "JOINED": True, "CAPPED": True, "SYNCED": True}
PROOFS = [Proof(Recovery, explored_at={"L": 3}, fixed=SOUND)]
