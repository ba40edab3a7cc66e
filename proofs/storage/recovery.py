"""Recovery: for any number of clients and epochs."""

from kafkaspec.models.storage import recovery as model
from kafkaspec.prove.proof import Proof

PROOFS = [Proof(model.Recovery, explored_at={"Client": 2, "E": 3})]
