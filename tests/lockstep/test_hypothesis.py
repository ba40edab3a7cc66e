"""Hypothesis drives the spec of every subsystem beside its implementation, and beside the audit's rules of it."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from kafkaspec.contract.subsystem import Pair, answered, subsystems
from kafkaspec.lockstep.walk import state_machine

PAIRS = {f"{s.name}-{pair.layer}": pair for s in subsystems().values() for pair in s.pairs()}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_spec_and_implementation_agree(pair: Pair) -> None:
    fewer = settings(max_examples=settings().max_examples // 5)
    run_state_machine_as_test(state_machine(pair.machine, pair.driver), settings=fewer)


def test_every_subsystem_is_driven() -> None:
    assert {name.rpartition("-")[0] for name in PAIRS} == answered().keys()
