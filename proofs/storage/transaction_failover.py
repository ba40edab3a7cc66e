"""For any number of producers, transactions and records: what a consumer sees of the log of what is committed, if the
rules of markers are kept. That replicas whose leaders change show that log is explored."""

from __future__ import annotations

from kafkaspec.models.storage.transaction_failover import CommittedTransactions
from kafkaspec.prove.proof import Proof

PROOFS = [
    Proof(CommittedTransactions, explored_at={"Producer": 1, "L": 4, "E": 1, "T": 2, "C": 1}),
]
