"""The rows of `verify` for simulations: one a scenario, red with a fault."""

from __future__ import annotations

import pytest

from kafkaspec.contract.subsystem import find, subsystems
from kafkaspec.impl.storage import last_stable_simulation, replication_simulation
from kafkaspec.simulate import RandomChoices, run
from kafkaspec.verify import budget
from kafkaspec.verify.engine import SIMULATED, units, verify
from kafkaspec.verify.row import Row
from tests.storage import eligible_faults, last_stable_faults, replication_faults


def rows(name: str) -> list[Row]:
    return verify([name], 4, only="simulations")


def test_sound_ones_are_tested() -> None:
    found = rows("replication")
    assert [(r.what, r.word, r.ok) for r in found] == [
        ("simulation replication", "tested", True),
        ("simulation replication:ELIGIBLE", "tested", True),
        ("simulation replication:REASSIGNING", "tested", True),
    ]
    assert [r.work.keys() for r in found] == [{budget.STEPS}] * 3
    assert found[0].detail.startswith("6 seeds, ")
    assert "never" not in found[0].detail
    steps = sum(r.work[budget.STEPS] for r in found)
    assert 20_000 < steps < budget.limits("replication")[budget.STEPS]


def test_a_fault_turns_it_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the command makes the seed again that shows it."""
    monkeypatch.setattr(last_stable_simulation, "SCENARIO", last_stable_faults.FAULTS["drops_nothing"].scenario)
    monkeypatch.setattr(replication_simulation, "ELIGIBLE", eligible_faults.FAULTS["elects_not_eligible"].scenario)
    monkeypatch.setattr(replication_simulation, "SCENARIO", replication_faults.FAULTS["acknowledges_its_own"].scenario)
    first, second, _ = rows("replication")
    assert (first.ok, second.ok) == (False, False)
    assert first.why.startswith("seed 0 breaks what is acknowledged is committed: ")
    assert first.again == "kafkaspec simulate replication:acknowledges_its_own --seed 0 --schedule uniform"
    assert second.why.startswith("seed 5 breaks RPN-14: ")
    assert second.again.endswith("--seed 5 --schedule priority")
    (third,) = rows("last_stable")
    assert third.why.startswith("seed 0 breaks LSO-11: ")


def test_who_has_none_has_no_row() -> None:
    asked = {u.subsystem for u in units(only="simulations")}
    assert asked == {"replication", "last_stable", "quorum"}
    assert asked < subsystems().keys()
    assert find("segment").layer("impl", "simulation") is None


def test_seeds_of_every_schedule_are_among_them() -> None:
    scenario = replication_simulation.SCENARIO
    drawn = {bool(RandomChoices(scenario, seed, "mixed").ranks) for seed in range(SIMULATED)}
    assert drawn == {True, False}
    assert run(scenario, RandomChoices(scenario, SIMULATED - 1, "mixed")).violation is None
