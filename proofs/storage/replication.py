"""For any number of replicas, offsets, records and epochs, of the protocol since KIP-320: no committed record is lost,
replicas agree below their high watermarks, and what users see is one log that only grows."""

from __future__ import annotations

from kafkaspec.models.storage.replication import KIP_320, CommittedLog, Released
from kafkaspec.prove.proof import Proof

PROOFS = [
    Proof(CommittedLog, explored_at={"Replica": 2, "L": 2, "R": 2, "E": 2}),
    Proof(
        Released,
        timeout_s=60,
        fixed=KIP_320,
        explored_at={"Replica": 2, "L": 2, "R": 2, "E": 3},
        note="of the generations before it the explorer shows that the claims are false",
    ),
]
