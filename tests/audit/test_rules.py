"""Each rule of the audit that is an operation of a spec, walked beside it."""

from __future__ import annotations

import pytest

from kafkaspec.contract.subsystem import Pair, subsystems
from kafkaspec.lockstep.walk import walk

PAIRS = [
    pytest.param(pair, id=s.name)
    for s in subsystems().values()
    if s.is_component
    for pair in s.pairs()
    if pair.layer == "audit"
]


def test_there_are_some() -> None:
    assert len(PAIRS) >= 3


@pytest.mark.parametrize("pair", PAIRS)
def test_long_walks_call_every_operation(pair: Pair) -> None:
    called: set[str] = set()
    for seed in range(10):
        w = walk(pair.machine, pair.driver(), seed, 150)
        assert w.failure is None, str(w.failure)
        called |= w.coverage.operations.keys()
    assert called == pair.machine.operations.keys()
