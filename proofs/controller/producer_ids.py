"""Blocks of producer ids: for any number of brokers, controllers, epochs and ids, and blocks of any size."""

from __future__ import annotations

from kafkaspec.models.controller.producer_ids import Cluster, Memory
from kafkaspec.prove.proof import Proof

PROOFS = [
    Proof(Memory, timeout_s=10, explored_at={"Broker": 1, "E": 2, "N": 2}),
    Proof(Cluster, timeout_s=30, explored_at={"Controller": 2, "M": 4, "B": 2}),
]
