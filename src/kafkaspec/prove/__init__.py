"""The symbolic readings of a model: inductive proofs for every size, and bounded search."""
