"""The symbolic readings of a model: inductive proofs for every size, and bounded search."""

from kafkaspec.prove.bounded import Bounded, bounded
from kafkaspec.prove.engine import Obligation, Progress, Proved, prove
from kafkaspec.prove.proof import Proof

__all__ = ["Bounded", "Obligation", "Progress", "Proof", "Proved", "bounded", "prove"]
