"""Last stable: for any number of clients and epochs."""

from kafkaspec.models.storage import last_stable as model
from kafkaspec.prove.proof import Proof

PROOFS = [Proof(model.LastStable, explored_at={"Client": 2, "E": 3})]
