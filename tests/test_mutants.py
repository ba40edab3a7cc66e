"""The reasons why mutants survive are of mutants that there are: what is generated changes with the models."""

from __future__ import annotations

import pytest

from kafkaspec.contract.subsystem import find, subsystems
from kafkaspec.errors import UserError
from kafkaspec.mutants import matrix


@pytest.mark.parametrize("name", subsystems())
def test_a_reason_is_of_a_mutant_that_there_is(name: str) -> None:
    assert matrix.mutants_of(find(name))


@pytest.mark.parametrize("name", subsystems())
def test_rare_faults_are_enough_and_of_clauses_that_there_are(name: str) -> None:
    """Those that the judge is measured by at its default size."""
    s = find(name)
    module = s.beside("mutants")
    assert module is not None
    names = [m.name for m in module.MUTANTS]
    assert len(module.RARE) >= (11 if s.is_component else 8)
    assert {m.name for m in module.RARE} <= {*names}
    assert [n for n in names if names.count(n) > 1] == []
    known = {c.id for c in s.clauses}
    assert [m.name for m in module.RARE if not m.clauses or not {*m.clauses} <= known] == []


def test_a_reason_of_another_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    s = find("time_index")
    monkeypatch.setattr(matrix._module(s), "SURVIVORS", {"Appends.none: guard 1 negated": "a reason"}, raising=False)
    with pytest.raises(UserError, match="unknown generated mutant of time_index"):
        matrix.mutants_of(s)
