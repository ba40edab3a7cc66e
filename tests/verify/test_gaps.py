"""What looks like a part of the spec or of a model and asks nothing is a gap in the row of the clauses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkaspec.contract.subsystem import find
from kafkaspec.language.expr import TRUE
from kafkaspec.verify.engine import CHECKS

EPOCHS = find("leader_epochs")


def gaps() -> str:
    (row,) = CHECKS["clauses"][1](EPOCHS, 0, 1)
    return row.why


def test_there_are_none() -> None:
    assert gaps() == ""


def test_an_operation_without_a_clause(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = EPOCHS.spec.machine
    more = {**machine.operations, "shut": replace(machine.operations["assign"], name="shut", clauses=())}
    monkeypatch.setattr(machine, "operations", more)
    assert gaps() == "the operation shut states no clause"


def test_candidates_that_nobody_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = EPOCHS.spec.machine
    monkeypatch.setattr(machine, "tried", {**machine.candidates, "limit": lambda s: [1]})
    assert gaps().startswith("the candidates of limit are of no operation's parameter")


def test_a_claim_that_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = EPOCHS.layer("models").MODELS[0].loaded  # type: ignore[union-attr]
    name, claim = next((n, c) for n, c in model.invariants.items() if c.clauses)
    monkeypatch.setitem(model.invariants, name, replace(claim, expr=TRUE))
    assert gaps() == f"{model.name}.{name} reads no variable: it says nothing of {', '.join(claim.clauses)}"
