"""Two-phase commit is consistent for any number of resource managers."""

from __future__ import annotations

from kafkaspec.models.examples.two_phase import TwoPhase
from kafkaspec.prove.proof import Proof

PROOFS = [Proof(TwoPhase, explored_at={"Manager": 3})]
