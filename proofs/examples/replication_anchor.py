"""A committed record is on every in-sync replica's log: for any number of replicas, offsets and epochs, if fetches are
fenced by the leader's epoch (KIP-320)."""

from __future__ import annotations

from kafkaspec.models.examples.replication_anchor import CommittedLog, Replication
from kafkaspec.prove.proof import Proof

PROOFS = [
    Proof(
        Replication,
        fixed={"FENCED": True},
        explored_at={"Replica": 3, "L": 2, "E": 2},
        note="unfenced, the claim is false: the shortest counterexample has 12 states",
    ),
    Proof(CommittedLog, explored_at={"Replica": 2, "L": 2, "E": 2}),
]
