"""Offsets of the controller, for any number of records, transactions and snapshots.

What holds without a condition: the order of the offsets, that the open transaction is not stable, that no snapshot is
below the stable offset, and what giving up goes back to. The rest is of transactions that are committed whole
(`WHOLE`): then there is a snapshot at the stable offset, and one before the open transaction, and a snapshot shows
nothing later. Without that the explorer shows that they are false.
"""

from __future__ import annotations

from kafkaspec.models.controller.offset_control import Offsets
from kafkaspec.prove.proof import Proof

PROOFS = [Proof(Offsets, timeout_s=30, explored_at={"N": 2, "WHOLE": True})]
