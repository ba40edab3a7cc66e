"""For any number of writes, logs and offsets: a checkpoint is never torn, a marker never lies, and nothing that is not
sound stays below a recovery point."""

from __future__ import annotations

from kafkaspec.models.management.checkpoints import CheckpointFile, Marker, RecoveryPoint
from kafkaspec.prove.proof import Proof

PROOFS = [
    Proof(CheckpointFile, explored_at={"V": 2}),
    Proof(Marker, explored_at={"Log": 2}),
    Proof(RecoveryPoint, explored_at={"L": 2}),
]
