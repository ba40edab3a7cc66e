"""What the tests of examples ask of a claim by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kafkaspec.explore.engine import Exploration, explore
from kafkaspec.language import Model, load


def alone(model: type[Model], claim: str, sizes: Mapping[str, int | bool]) -> Exploration:
    """The model explored with this claim and no other: a run ends with the first violation."""
    loaded = load(model)
    invariants = {n: c for n, c in loaded.invariants.items() if n == claim}
    steps = {n: c for n, c in loaded.steps.items() if n == claim}
    assert invariants or steps, claim
    return explore(replace(loaded, invariants=invariants, steps=steps), sizes, deadlock=True)


def broken(model: type[Model], claim: str, sizes: Mapping[str, int | bool]) -> bool:
    """Does the model break the claim?"""
    trace = alone(model, claim, sizes).trace
    return trace is not None and trace.claim == claim
