"""What is measured of the faults that are made of implementations' texts is of the texts as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkaspec.contract.subsystem import find, subsystems
from kafkaspec.mutants.code import of_code
from kafkaspec.mutants.judge import campaigned
from tests.judge.unnoticed import UNNOTICED

MEASURED = json.loads((Path(__file__).parents[2] / "docs" / "measured" / "code.json").read_text("utf-8"))


@pytest.mark.parametrize("name", subsystems())
def test_every_fault_of_a_text_is_measured(name: str) -> None:
    """If this is red: python bench/code.py NAME."""
    assert [f.name for f in of_code(find(name))] == [*MEASURED.get(name, {})]


def test_most_are_rejected_and_a_reason_is_of_one_that_is_not() -> None:
    rejected = left = 0
    for name, of in MEASURED.items():
        reasons = UNNOTICED.get(name, {})
        assert {f for f in reasons if of.get(f, 0) is not None} == set(), name
        rejected += sum(calls is not None for calls in of.values())
        left += sum(calls is None and f not in reasons for f, calls in of.items())
    assert rejected / (rejected + left) >= 0.95
    assert MEASURED.keys() >= UNNOTICED.keys()


@pytest.mark.deep
@pytest.mark.parametrize("name", MEASURED)
def test_faults_are_rejected_as_measured(name: str) -> None:
    """Those that went quickly; a fault that its process does not have would outlive this."""
    quick = [f for f in of_code(find(name)) if (MEASURED[name][f.name] or 1_000) < 200][:16]
    found = campaigned(find(name), quick, "guided", 0, 200)
    assert {f: kill and kill.calls for f, kill in found.items()} == {f.name: MEASURED[name][f.name] for f in quick}
