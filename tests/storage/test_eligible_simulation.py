"""A cluster with eligible leader replicas in the simulator: sound as it is, and found with any fault."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafkaspec.cli.simulate import find
from kafkaspec.errors import UserError
from kafkaspec.impl.storage.replication_simulation import ELIGIBILITY, ELIGIBLE
from kafkaspec.simulate import RandomChoices, Run, run
from kafkaspec.simulate.choices import Schedule
from tests.storage.eligible_faults import FAULTS
from tests.storage.replication_faults import Fault

ROOT = Path(__file__).parent.parent.parent


def of(seed: int, schedule: Schedule = "mixed") -> Run:
    return run(ELIGIBLE, RandomChoices(ELIGIBLE, seed, schedule))


def survive(seeds: range) -> dict[str, int]:
    """None of these seeds breaks a rule; what happened in them."""
    out: dict[str, int] = {}
    for seed in seeds:
        r = of(seed)
        assert r.violation is None, (seed, r.violation)
        for name, n in r.counts.items():
            out[name] = out.get(name, 0) + n
    return out


def test_the_sound_one_survives() -> None:
    happened = survive(range(12))
    assert happened["replicas became eligible"] > 4, happened
    assert happened["clean restarts"] > 10
    assert happened["records read"] > 500


@pytest.mark.deep
def test_the_sound_one_survives_many_seeds() -> None:
    happened = survive(range(12, 80))
    assert min(happened[name] for name in ELIGIBILITY) > 0, happened


@pytest.mark.parametrize("fault", [pytest.param(f, id=name) for name, f in FAULTS.items()])
def test_a_fault_is_found(fault: Fault) -> None:
    """By its seed, and the sound one is not."""
    r = run(fault.scenario, RandomChoices(fault.scenario, fault.first, fault.schedule))
    assert r.violation is not None
    assert r.violation.rule == fault.rule
    assert of(fault.first, fault.schedule).violation is None


@pytest.mark.deep
@pytest.mark.parametrize("fault", [pytest.param(f, id=name) for name, f in FAULTS.items()])
def test_no_earlier_seed_finds_it(fault: Fault) -> None:
    found = [
        seed
        for seed in range(fault.first)
        if run(fault.scenario, RandomChoices(fault.scenario, seed, fault.schedule)).violation is not None
    ]
    assert found == []


def test_it_is_found_by_its_name() -> None:
    assert find("replication:ELIGIBLE") is ELIGIBLE
    with pytest.raises(UserError, match="unknown scenario of replication 'ELIGIBEL'; did you mean 'ELIGIBLE'"):
        find("replication:ELIGIBEL")


def test_the_page_tells_of_every_fault() -> None:
    """With its first seed and its rule, in the order of the faults."""
    page = (ROOT / "docs" / "storage" / "replication.md").read_text("utf-8")
    rows = re.findall(r"^\| [^|]+ \| (uniform|swarm|priority|mixed) \| (\d+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert rows == [(f.schedule, str(f.first), f.rule) for f in FAULTS.values()]
