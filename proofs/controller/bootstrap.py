"""StorageFormat a node, for any number of directories and of attempts."""

from __future__ import annotations

from kafkaspec.models.controller.bootstrap import StorageFormat
from kafkaspec.prove.proof import Proof

PROOFS = [Proof(StorageFormat, timeout_s=10, explored_at={"Directory": 2, "A": 2})]
