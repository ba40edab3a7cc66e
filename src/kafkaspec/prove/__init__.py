"""The symbolic readings of a model: inductive proofs for every size, and bounded search."""

from kafkaspec.prove.engine import Obligation, Progress, Proved, prove

__all__ = ["Obligation", "Progress", "Proved", "prove"]
