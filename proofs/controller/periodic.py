"""Periodic tasks, for any number of them: who waits is registered, and nobody is forgotten."""

from __future__ import annotations

from kafkaspec.models.controller.periodic import Tasks
from kafkaspec.prove.proof import Proof

PROOFS = [Proof(Tasks, explored_at={"Task": 2})]
