"""The reasons why mutants survive are of mutants that there are: what is generated changes with the models."""

from __future__ import annotations

import pytest

from kafkaspec.contract.subsystem import find, subsystems
from kafkaspec.errors import UserError
from kafkaspec.mutants import matrix


@pytest.mark.parametrize("name", subsystems())
def test_a_reason_is_of_a_mutant_that_there_is(name: str) -> None:
    assert matrix.mutants_of(find(name))


def test_a_reason_of_another_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    s = find("time_index")
    monkeypatch.setattr(matrix._module(s), "SURVIVORS", {"Appends.none: guard 1 negated": "a reason"}, raising=False)
    with pytest.raises(UserError, match="unknown generated mutant of time_index"):
        matrix.mutants_of(s)
