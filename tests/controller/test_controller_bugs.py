"""Bugs that Kafka's controller had: each is found where it is planted, and the page has the same table."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kafkaspec.contract.subsystem import find
from kafkaspec.explore.engine import explore
from kafkaspec.impl.controller.quorum_simulation import SCENARIO
from kafkaspec.impl.storage.replication_simulation import AT_REST
from kafkaspec.mutants.matrix import check_detector, lockstep_detector, written
from kafkaspec.mutants.mutant import Mutant
from kafkaspec.simulate import RandomChoices, run
from kafkaspec.simulate.choices import Schedule
from kafkaspec.spec.controller.quorum_parts.observer import SAME_MEMORY, STABLE_READS
from tests.controller.controller_bugs import BUGS, InLog
from tests.controller.quorum_faults import FAULTS
from tests.controller.test_metadata_image_audit import DAMAGE, edited, found
from tests.storage.replication_bugs import InCluster, InModel, InPart, table

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "controller" / "quorum.md"
SUBSYSTEMS = (
    "bootstrap", "configurations", "event_queue", "features", "metadata_image", "offset_control", "periodic",
    "producer_ids", "quorum", "raft", "records", "timeline",
)  # fmt: skip
"""Whose mutants with a ticket have a row."""
OF_STORAGE = {"KIP-101", "KAFKA-6361"}
"""Those are bugs of replication, planted in Raft's log too."""
RULES = {"AT_REST": AT_REST, "SAME_MEMORY": SAME_MEMORY, "STABLE_READS": STABLE_READS}
IN_MODELS = [(b.ticket, p) for b in BUGS for p in b.planted if isinstance(p, InModel)]
IN_PARTS = [(b.ticket, p) for b in BUGS for p in b.planted if isinstance(p, InPart)]
IN_QUORUMS = [(b.ticket, p) for b in BUGS for p in b.planted if isinstance(p, InCluster)]
IN_LOGS = [(b.ticket, p) for b in BUGS for p in b.planted if isinstance(p, InLog)]


def names(
    rows: list[tuple[str, InModel]] | list[tuple[str, InPart]] | list[tuple[str, InCluster]] | list[tuple[str, InLog]],
) -> list[str]:
    return [f"{ticket}-{p.cells()[0]}" for ticket, p in rows]


def mutant(subsystem: str, name: str) -> Mutant:
    (made,) = (m for m in written(find(subsystem)) if m.name == name)
    return made


def test_the_page_has_the_table() -> None:
    assert table(BUGS) in PAGE.read_text("utf-8")


def test_there_are_many_and_each_is_planted() -> None:
    tickets = [b.ticket for b in BUGS]
    assert len(set(tickets)) == len(tickets) >= 25
    assert sum(t.startswith("KAFKA-") for t in tickets) >= 25
    assert all(b.planted for b in BUGS)
    planted = [p.cells()[0] for b in BUGS for p in b.planted]
    assert len(planted) == len(set(planted))


def test_every_mutant_with_a_ticket_has_a_row() -> None:
    rows = {(ticket, p.subsystem, p.mutant) for ticket, p in IN_PARTS}
    rows |= {(ticket, p.subsystem, p.mutant) for ticket, p in IN_MODELS}
    known = {(m.bug, s, m.name) for s in SUBSYSTEMS for m in written(find(s)) if m.bug and m.bug not in OF_STORAGE}
    assert known == rows


def test_every_fault_of_the_quorum_with_a_ticket_has_a_row() -> None:
    said = {(name, re.search(r"KAFKA-\d+", f.scenario.title)) for name, f in FAULTS.items()}
    assert {(name, m[0]) for name, m in said if m} == {(p.scenario, ticket) for ticket, p in IN_QUORUMS}


def test_the_page_says_why_of_those_that_are_not_planted() -> None:
    _, _, below = PAGE.read_text("utf-8").partition(table(BUGS))
    tickets = re.findall(r"^\| (KAFKA-\d+) \| [^|]+ \| [^|]+ \|$", below.partition("\n## ")[0], re.MULTILINE)
    assert len(tickets) == len(set(tickets)) >= 3
    assert not {*tickets} & {b.ticket for b in BUGS}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("ticket", "planted"), IN_MODELS, ids=names(IN_MODELS))
def test_a_model_shows_it(ticket: str, planted: InModel) -> None:
    """In that many steps at least, at the smallest pinned size that shows it."""
    faulty = mutant(planted.subsystem, planted.mutant)
    assert faulty.bug == ticket
    made = faulty.make()
    bare = replace(made, lemmas={}, witnesses={}, leads_to={})
    models = find(planted.subsystem).layer("models")
    assert models is not None
    pinned = sorted((e for e in models.MODELS if e.loaded.cls in made.cls.__mro__), key=lambda e: e.distinct)
    traces = (explore(bare, e.sizes, deadlock=True, ghosts=e.ghosts).trace for e in pinned)
    trace = next(t for t in traces if t is not None)
    assert (trace.claim, len(trace.steps) - 1) == (planted.claim, planted.steps)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("ticket", "planted"), IN_PARTS, ids=names(IN_PARTS))
def test_a_component_beside_its_spec_shows_it(ticket: str, planted: InPart) -> None:
    """By the first of twenty walks that fails, made small; or by a recording, where walks do not find it."""
    subsystem, faulty = find(planted.subsystem), mutant(planted.subsystem, planted.mutant)
    assert faulty.bug == ticket
    assert planted.rule in faulty.clauses
    assert planted.rule in {c.id for c in subsystem.clauses}
    if planted.recording:
        seen = str(check_detector().look(subsystem, faulty.layer, faulty.made()))
        assert seen.startswith(f"{planted.recording}: rejected at step {planted.calls}, "), seen
    else:
        seen = str(lockstep_detector(20).look(subsystem, faulty.layer, faulty.made()))
        assert re.search(rf" after {planted.calls} calls?\b", seen), seen


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("ticket", "planted"), IN_QUORUMS, ids=names(IN_QUORUMS))
def test_the_simulated_quorum_shows_it(ticket: str, planted: InCluster) -> None:
    """By the first seed that does, and the sound quorum is not touched by it."""
    fault = FAULTS[planted.scenario]
    assert ticket in fault.scenario.title
    seeds: list[tuple[Schedule, int, int]] = []
    for find_, schedule in ((planted.uniform, "uniform"), (planted.mixed, "mixed")):
        if find_.seed is not None:
            seeds.append((schedule, find_.seed, find_.steps))  # type: ignore[arg-type]
    assert seeds
    for schedule, seed, steps in seeds:
        r = run(fault.scenario, RandomChoices(fault.scenario, seed, schedule))
        assert r.violation is not None
        assert (r.violation.rule, len(r.steps)) == (RULES.get(planted.rule, planted.rule), steps)
        assert run(SCENARIO, RandomChoices(SCENARIO, seed, schedule)).violation is None


@pytest.mark.deep
@pytest.mark.parametrize(("ticket", "planted"), IN_QUORUMS, ids=names(IN_QUORUMS))
def test_no_earlier_seed_of_the_table_shows_it(ticket: str, planted: InCluster) -> None:
    scenario = FAULTS[planted.scenario].scenario
    for find_, schedule in ((planted.uniform, "uniform"), (planted.mixed, "mixed")):
        for seed in range(find_.steps if find_.seed is None else find_.seed):
            choices = RandomChoices(scenario, seed, schedule)  # type: ignore[arg-type]
            assert run(scenario, choices).violation is None, (schedule, seed)


@pytest.mark.parametrize(("ticket", "planted"), IN_LOGS, ids=names(IN_LOGS))
def test_the_audit_shows_it_in_a_log(ticket: str, planted: InLog, tmp_path: Path) -> None:
    """At the record, and nothing beside it."""
    edit, clause, offset = DAMAGE[planted.damage]
    assert clause == planted.rule
    findings = [f for f in found(tmp_path, edited(edit)) if f.severity]
    assert [(f.clause, f.offset) for f in findings] == [(planted.rule, offset)]
