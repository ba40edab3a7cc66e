"""acks=all with too few in sync, in the simulator: refused on arrival, or told once the records are committed."""

from __future__ import annotations

from collections import Counter

import pytest

from kafkaspec.impl.storage.replication_parts.messages import NOT_ENOUGH, NOT_ENOUGH_AFTER_APPEND
from kafkaspec.simulate import RandomChoices, run
from kafkaspec.simulate.scenario import Scenario
from tests.storage.acks_faults import FAULTS, SOUND, STRICT
from tests.storage.replication_faults import Fault


def told(scenario: Scenario) -> Counter[str]:
    """What producers were told, by seeds of which none breaks a rule."""
    out: Counter[str] = Counter()
    for seed in range(6):
        r = run(scenario, RandomChoices(scenario, seed, "mixed"))
        assert r.violation is None, (seed, r.violation)
        out.update(r.counts)
    return out


def test_what_is_committed_with_too_few_is_told_as_an_error() -> None:
    found = told(SOUND)
    assert found[NOT_ENOUGH] > 20
    assert found[NOT_ENOUGH_AFTER_APPEND] > 0
    assert found["acknowledgements"] > 200


def test_with_kip_966_nobody_is_told_that_after_the_append() -> None:
    """The high watermark waits, and so does the producer."""
    found = told(STRICT)
    assert found[NOT_ENOUGH] > 20
    assert found[NOT_ENOUGH_AFTER_APPEND] == 0


@pytest.mark.parametrize("fault", [pytest.param(f, id=name) for name, f in FAULTS.items()])
def test_a_fault_is_found(fault: Fault) -> None:
    """By its seed, and the sound one is not."""
    r = run(fault.scenario, RandomChoices(fault.scenario, fault.first, fault.schedule))
    assert r.violation is not None
    assert r.violation.rule == fault.rule
    assert run(SOUND, RandomChoices(SOUND, fault.first, fault.schedule)).violation is None
