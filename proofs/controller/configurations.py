"""min.insync.replicas and eligible leader replicas: for any number of brokers."""

from __future__ import annotations

from kafkaspec.models.controller.configurations import Safety
from kafkaspec.prove.proof import Proof

PROOFS = [Proof(Safety, timeout_s=5, explored_at={"Broker": 2})]
