"""Finalized features: for any number of brokers and controllers."""

from __future__ import annotations

from kafkaspec.models.controller.features import Cluster
from kafkaspec.prove.proof import Proof

PROOFS = [Proof(Cluster, timeout_s=5, explored_at={"Broker": 2, "Controller": 1})]
