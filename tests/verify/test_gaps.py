"""What looks like a part of the spec or of a model and asks nothing is a gap in the row of the clauses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkaspec.contract import clauses, traceability
from kafkaspec.contract.clauses import Use
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


def test_an_operation_of_the_environment_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = EPOCHS.spec.machine
    more = replace(machine.operations["assign"], name="shut", clauses=(), environment=True)
    monkeypatch.setattr(machine, "operations", {**machine.operations, "shut": more})
    assert gaps() == ""


def test_an_operation_that_names_a_released_clause_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = EPOCHS.spec.machine
    fewer = replace(machine.operations["reopen"], clauses=("LEC-9",))
    monkeypatch.setattr(machine, "operations", {**machine.operations, "reopen": fewer})
    assert gaps() == "LEC-7 is not named by reopen any more; in tests/released_clauses.txt it is"


def test_candidates_that_nobody_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = EPOCHS.spec.machine
    monkeypatch.setattr(machine, "tried", {**machine.candidates, "limit": lambda s: [1]})
    assert gaps().startswith("the candidates of limit are of no operation's parameter")


def test_a_claim_that_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = EPOCHS.layer("models").MODELS[0].loaded  # type: ignore[union-attr]
    name, claim = next((n, c) for n, c in model.invariants.items() if c.clauses)
    monkeypatch.setitem(model.invariants, name, replace(claim, expr=TRUE))
    assert gaps() == f"{model.name}.{name} reads no variable: it says nothing of {', '.join(claim.clauses)}"


def with_use(monkeypatch: pytest.MonkeyPatch, use: Use) -> str:
    """What the row says where this place states a clause too."""
    traceability.load(EPOCHS.prefix)
    of = {**clauses._uses.get(use.clause, {}), use: None}
    monkeypatch.setattr(clauses, "_uses", {**clauses._uses, use.clause: of})
    return gaps()


def test_a_form_that_is_there_although_a_reason_excuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    where = "kafkaspec.models.storage.leader_epochs:Entries.clear"
    reason = "a question about one state, that changes nothing"
    said = with_use(monkeypatch, Use("LEC-14", "model", where))
    assert said == f"LEC-14 says that it has no model ({reason}), but {where} is one"


def test_a_rule_of_the_audit_under_which_nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    where = "kafkaspec.audits.storage.leader_epochs:known"
    said = with_use(monkeypatch, Use("LEC-14", "audit", where))
    assert said == f"{where} states LEC-14, and the audit reports nothing under it"


@pytest.mark.parametrize("form", ["spec", "impl", "audit", "model", "proof", "mutant"])
def test_a_form_of_a_clause_that_there_is_not(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where = "kafkaspec.impl.storage.leader_epochs:LeaderEpochCache.clear_and_flush"
    said = with_use(monkeypatch, Use("LEC-99", form, where))
    assert said == f"{where} ({form}) names LEC-99, which is no clause"
