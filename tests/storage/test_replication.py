"""The replication protocol in its generations: the counts and the violations that its author published, each rule with
values, and each left out.

The published counts are of TLC on `hachikuji/kafka-specification`; its sizes are named by replicas, the size of a log,
the most records and the highest epoch counted from 0, so that `s2222` has three epochs.
"""

# mypy: disable-error-code="operator, index, arg-type, assignment, union-attr"

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kafkaspec.explore.engine import Exploration, explore
from kafkaspec.language import LoadedModel, Model, action, invariant, load, require
from kafkaspec.language.concrete import Concrete
from kafkaspec.models.storage.replication import (
    FIRST_TRY,
    KIP_101,
    KIP_279,
    KIP_320,
    MODELS,
    TO_HIGH_WATERMARK,
    CommittedLog,
    Fetching,
    Generations,
    Offset,
    Record,
    Released,
    Replica,
)
from tests.storage.replication_mutants import MUTANTS

Sizes = dict[str, int | bool]
S2222: Sizes = {"Replica": 2, "L": 2, "R": 2, "E": 3}
S2333: Sizes = {"Replica": 2, "L": 3, "R": 3, "E": 4}
S3221: Sizes = {"Replica": 3, "L": 2, "R": 2, "E": 2}
S3222: Sizes = {"Replica": 3, "L": 2, "R": 2, "E": 3}


def alone(model: LoadedModel, claim: str, sizes: Mapping[str, int | bool]) -> Exploration:
    """The model explored with this claim and no other: a run ends with the first violation."""
    claims = {kind: {n: c for n, c in getattr(model, kind).items() if n == claim} for kind in ("invariants", "steps")}
    assert any(claims.values()), claim
    return explore(replace(model, lemmas={}, witnesses={}, **claims), sizes, deadlock=True)


def steps_to(model: LoadedModel, claim: str, sizes: Mapping[str, int | bool]) -> int | None:
    """In how many steps the claim is broken; None if it holds."""
    trace = alone(model, claim, sizes).trace
    assert trace is None or trace.claim == claim
    return None if trace is None else len(trace.steps) - 1


# ---- what was published ----------------------------------------------------------------------------------------------
PUBLISHED = [
    (TO_HIGH_WATERMARK, S2222, 10_131, 8, 9),
    (TO_HIGH_WATERMARK, S2333, 276_363, 8, 9),
    (TO_HIGH_WATERMARK, S3221, 67_807, 8, 8),
    (KIP_101, S2222, 9_045, 11, 11),
    (KIP_101, S2333, 229_695, 11, 11),
    (KIP_101, S3221, 59_788, None, 11),
    (KIP_279, S2222, 9_027, None, None),
    (KIP_279, S2333, 225_761, None, None),
    (KIP_279, S3221, 60_106, None, 11),
    (FIRST_TRY, S2222, 8_429, None, None),
    (FIRST_TRY, S2333, 196_973, None, None),
    (FIRST_TRY, S3221, 59_092, None, None),
    (KIP_320, S2222, 5_973, None, None),
    (KIP_320, S2333, 120_879, None, None),
    (KIP_320, S3221, 39_619, None, None),
    (KIP_320, S3222, 737_794, None, None),
]
"""Flags, sizes, distinct states, and in how many steps the weak and the strong claim are broken."""
LATE = [(KIP_279, S3222, 11, 11), (FIRST_TRY, S3222, 11, 11)]
"""At `s3222` the table has the states of KIP-320 alone."""


@pytest.mark.sampled(5)
@pytest.mark.clause("RPN-4", "RPN-5", "RPN-7", "RPN-13", "RPN-14")
@pytest.mark.parametrize(("flags", "sizes", "distinct", "weak", "strong"), PUBLISHED)
def test_states_and_violations_are_those_published(
    flags: Sizes, sizes: Sizes, distinct: int, weak: int | None, strong: int | None
) -> None:
    m = load(Generations)
    unclaimed = explore(replace(m, invariants={}, steps={}, witnesses={}), {**sizes, **flags}, deadlock=True)
    assert (unclaimed.outcome, unclaimed.distinct) == ("complete", distinct)
    assert steps_to(m, "weak_isr", {**sizes, **flags}) == weak
    assert steps_to(m, "strong_isr", {**sizes, **flags}) == strong


@pytest.mark.sampled(1)
@pytest.mark.clause("RPN-7", "RPN-13", "RPN-14")
@pytest.mark.parametrize(("flags", "sizes", "weak", "strong"), LATE)
def test_the_protocol_before_the_last_breaks_with_a_third_epoch(
    flags: Sizes, sizes: Sizes, weak: int, strong: int
) -> None:
    m = load(Generations)
    assert steps_to(m, "weak_isr", {**sizes, **flags}) == weak
    assert steps_to(m, "strong_isr", {**sizes, **flags}) == strong


class AsPublished(Generations):
    @invariant("RPN-1")
    def leader_in_isr(s) -> bool:
        return s.elected() is not None and s.elected() in s.isr


def test_that_the_leader_is_in_sync_is_false_as_published() -> None:
    """In the first state nobody leads."""
    assert steps_to(load(AsPublished), "leader_in_isr", {**S2222, **KIP_320}) == 0


def test_no_claim_of_the_last_one_is_broken_without_lemmas() -> None:
    m = replace(load(Released), lemmas={})
    found = explore(m, {**S2222, **KIP_320}, deadlock=True, ghosts=True)
    assert (found.outcome, found.distinct) == ("complete", 7_497)


# ---- each rule, with values ------------------------------------------------------------------------------------------
A, B, C = "r0", "r1", "r2"


def leads_to(
    flags: Sizes, *calls: tuple[Any, ...], sizes: Sizes = S3222, model: type[Model] = Generations
) -> dict[str, Any]:
    """The state after these calls; an action that is not possible raises."""
    c = Concrete(model, {**sizes, **flags})
    (state,) = c.initial_states()
    for name, *arguments in calls:
        found = [t for t in c.successors(state) if t.action == name and [*map(str, t.arguments.values())] == [*map(str, arguments)]]
        assert found, f"{name}{tuple(arguments)} is not possible"
        state = found[0].state
    return state


