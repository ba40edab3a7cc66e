"""Every kind of damage is found: at its place, under its clause, and with no other finding beside it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafkaspec.audit.engine import Audit, audit
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audit.recorded import recorded
from tests.audit.damage import DAMAGES, Damage, ExpectedFinding

ARCHIVES = {r.name: r for r in recorded()}
BAD = (Severity.WARNING, Severity.ERROR)


def place(file: Path, replicas: bool) -> str:
    return "/".join(file.parts[-2:]) if replicas else str(file)


def fits(expected: ExpectedFinding, finding: Finding) -> bool:
    return (
        place(expected.file, expected.replicas) == place(Path(finding.file), expected.replicas)
        and finding.clause in expected.clauses
        and expected.position in (None, finding.position)
        and expected.line in (None, finding.line)
    )


def damaged(damage: Damage, seed: int) -> tuple[list[ExpectedFinding], Audit]:
    """What must be found, and what the audit of a copy so damaged finds."""
    with ARCHIVES[damage.archive].unpacked() as directories:
        return damage.make(random.Random(seed), directories), audit(list(directories))


def judge(damage: Damage, seed: int) -> None:
    expected, found = damaged(damage, seed)
    bad = [f for f in found.findings if f.severity in BAD]
    assert [e for e in expected if not any(fits(e, f) for f in bad)] == [], "not found"
    assert [f for f in bad if not any(fits(e, f) for e in expected)] == [], "found beside it"
    assert found.problems == ()
    assert found.exit_code == 1
    for f in bad:
        assert f.message
        assert f.expected
        assert f.recovery


@pytest.mark.sampled(2)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda d: d.name.replace(" ", "-"))
def test_damage_is_found_and_nothing_else(damage: Damage) -> None:
    judge(damage, 0)


@pytest.mark.deep
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda d: d.name.replace(" ", "-"))
def test_damage_at_many_places(damage: Damage) -> None:
    for seed in range(1, 40):
        judge(damage, seed)


def test_there_are_kinds_enough() -> None:
    assert len(DAMAGES) >= 14
