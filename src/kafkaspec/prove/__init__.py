"""The symbolic readings of a model: inductive proofs for every size, and bounded search."""

from kafkaspec.prove.bounded import BoundedResult, bounded
from kafkaspec.prove.engine import Obligation, Progress, ProofResult, prove
from kafkaspec.prove.proof import Proof

__all__ = ["BoundedResult", "Obligation", "Progress", "Proof", "ProofResult", "bounded", "prove"]
