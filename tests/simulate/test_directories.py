"""The directories of simulated brokers are Kafka's, and sound together. (Those of controllers: with their quorum.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaspec.impl.storage import last_stable_simulation, replication_simulation
from kafkaspec.simulate.scenario import Scenario
from tests.simulate.directories import clauses_against, left

SCENARIOS = [
    replication_simulation.SCENARIO,
    replication_simulation.ELIGIBLE,
    replication_simulation.REASSIGNING,
    last_stable_simulation.SCENARIO,
]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.deep) for n in range(2, 40))])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_they_are_sound(scenario: Scenario, seed: int, tmp_path: Path) -> None:
    assert clauses_against(left(scenario, seed, tmp_path)) == set()


def test_a_broker_of_another_run_is_unsound(tmp_path: Path) -> None:
    """Its log is sound, and not theirs."""
    one, other = (left(SCENARIOS[0], seed, tmp_path / str(seed)) for seed in (0, 1))
    for file in (one / "b2" / "t-0").iterdir():
        file.unlink()
    for file in (other / "b2" / "t-0").iterdir():
        file.rename(one / "b2" / "t-0" / file.name)
    assert clauses_against(one) >= {"RPL-4"}
