"""Bugs that Kafka's replication had: each is found where it is planted, and the page has the same table."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kafkaspec.contract.subsystem import find
from kafkaspec.explore.engine import explore
from kafkaspec.impl.storage import replication_simulation
from kafkaspec.impl.storage.replication_simulation import ELIGIBLE, SCENARIO
from kafkaspec.models.storage.replication import MODELS
from kafkaspec.mutants.matrix import check_detector, lockstep_detector, written
from kafkaspec.simulate import RandomChoices, run
from kafkaspec.simulate.choices import Schedule
from kafkaspec.simulate.world import NODE_FAILED
from kafkaspec.spec.storage.replication_parts import observer
from tests.storage import eligible_faults, historic_faults, replication_faults
from tests.storage.historic_faults import SOUND
from tests.storage.replication_bugs import BUGS, MORE, InCluster, InModel, InPart, table
from tests.storage.replication_faults import Fault
from tests.storage.replication_mutants import MUTANTS

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "storage" / "replication.md"
MUTANT = {**{m.name: m for m in MUTANTS}, **MORE}
FAULT: dict[str, Fault] = {**replication_faults.FAULTS, **eligible_faults.FAULTS, **historic_faults.FAULTS}
RULES = {
    "AT_REST": replication_simulation.AT_REST,
    "FENCED": replication_simulation.FENCED,
    "ACKNOWLEDGED": observer.ACKNOWLEDGED,
    "NODE_FAILED": NODE_FAILED,
}
IN_MODELS = [(b.ticket, p) for b in BUGS for p in b.planted if isinstance(p, InModel)]
IN_PARTS = [(b.ticket, p) for b in BUGS for p in b.planted if isinstance(p, InPart)]
IN_CLUSTERS = [(b.ticket, p) for b in BUGS for p in b.planted if isinstance(p, InCluster)]


def names(rows: list[tuple[str, InModel]] | list[tuple[str, InPart]] | list[tuple[str, InCluster]]) -> list[str]:
    return [f"{ticket}-{p[0]}" for ticket, p in rows]


def test_the_page_has_the_table() -> None:
    assert table() in PAGE.read_text("utf-8")


def test_there_are_many_and_each_is_planted() -> None:
    tickets = [b.ticket for b in BUGS]
    assert len(tickets) == len(set(tickets)) >= 30
    assert all(b.planted for b in BUGS)
    planted = [p.cells()[0] for b in BUGS for p in b.planted]
    assert len(planted) == len(set(planted))


def test_every_historic_fault_of_the_cluster_has_a_row() -> None:
    assert historic_faults.FAULTS.keys() <= {p.scenario for _, p in IN_CLUSTERS}


def test_the_page_says_why_of_those_that_are_not_planted() -> None:
    """Of a ticket that is in no place, and of one that is not in the simulator."""
    _, _, below = PAGE.read_text("utf-8").partition(table())
    _, _, below = below.partition("\n## ")[0].partition("| not in |")
    elsewhere, _, nowhere = below.partition("cannot be expressed here:")
    known = {b.ticket for b in BUGS}
    simulated = {ticket for ticket, _ in IN_CLUSTERS}
    found = set(re.findall(r"KAFKA-\d+", elsewhere))
    assert found
    assert found <= known - simulated
    found = set(re.findall(r"^\| (KAFKA-\d+) \| [^|]+ \| [^|]+ \|$", nowhere, re.MULTILINE))
    assert len(found) == 10
    assert not found & known


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("ticket", "planted"), IN_MODELS, ids=names(IN_MODELS))
def test_a_model_shows_it(ticket: str, planted: InModel) -> None:
    """In that many steps at least, at the smallest pinned size that shows it."""
    mutant = MUTANT[planted.mutant]
    assert mutant.bug == ticket
    made = mutant.make()
    bare = replace(made, lemmas={}, witnesses={}, leads_to={})
    pinned = sorted((e for e in MODELS if e.name == made.name), key=lambda e: e.distinct)
    traces = (explore(bare, e.sizes, deadlock=True, ghosts=e.ghosts).trace for e in pinned)
    trace = next(t for t in traces if t is not None)
    assert (trace.claim, len(trace.steps) - 1) == (planted.claim, planted.steps)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("ticket", "planted"), IN_PARTS, ids=names(IN_PARTS))
def test_a_component_beside_its_spec_shows_it(ticket: str, planted: InPart) -> None:
    """By the first of ten walks that fails, made small; or by a recording."""
    subsystem = find(planted.subsystem)
    (mutant,) = (m for m in written(subsystem) if m.name == planted.mutant)
    assert mutant.bug == ticket
    if planted.recording:
        found = check_detector().look(subsystem, mutant.layer, mutant.made())
        assert found == f"{planted.recording}: rejected at step {planted.calls}, {planted.rule}"
    else:
        found = str(lockstep_detector(10).look(subsystem, mutant.layer, mutant.made()))
        assert found.startswith(f"{planted.rule} after {planted.calls} call"), found


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("ticket", "planted"), IN_CLUSTERS, ids=names(IN_CLUSTERS))
def test_the_simulated_cluster_shows_it(ticket: str, planted: InCluster) -> None:
    """By the seeds of the table, or by that of the fault; the sound cluster is not touched by them."""
    fault = FAULT[planted.scenario]
    sound = ELIGIBLE if fault.scenario.name.startswith("replication:ELIGIBLE") else SCENARIO
    seeds: list[tuple[int, int | None, Schedule]] = [(fault.first, None, fault.schedule)]
    for find_, schedule in ((planted.uniform, "uniform"), (planted.mixed, "mixed")):
        if find_.seed is not None:
            seeds.append((find_.seed, find_.steps, schedule))  # type: ignore[arg-type]
    rules = set()
    for seed, steps, schedule in seeds:
        r = run(fault.scenario, RandomChoices(fault.scenario, seed, schedule))
        assert r.violation is not None
        rules.add(r.violation.rule)
        assert steps in (None, len(r.steps))
        assert run(sound, RandomChoices(sound, seed, schedule)).violation is None
    assert RULES.get(planted.rule, planted.rule) in rules


@pytest.mark.deep
@pytest.mark.parametrize(("ticket", "planted"), IN_CLUSTERS, ids=names(IN_CLUSTERS))
def test_no_earlier_seed_of_the_table_shows_it(ticket: str, planted: InCluster) -> None:
    scenario = FAULT[planted.scenario].scenario
    for find_, schedule in ((planted.uniform, "uniform"), (planted.mixed, "mixed")):
        for seed in range(find_.steps if find_.seed is None else find_.seed):
            choices = RandomChoices(scenario, seed, schedule)  # type: ignore[arg-type]
            assert run(scenario, choices).violation is None, (schedule, seed)


def test_a_busy_metadata_log_alone_breaks_nothing() -> None:
    for seed in range(4):
        assert run(SOUND, RandomChoices(SOUND, seed, "mixed")).violation is None
