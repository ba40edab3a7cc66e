"""What is measured of the faults that are made of implementations' texts is of the texts as they are."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path

import pytest

from kafkaspec.contract.subsystem import find, subsystems
from kafkaspec.impl.storage import leader_epochs
from kafkaspec.mutants.code import comparisons, of_code
from kafkaspec.mutants.judge import campaigned
from tests.judge.unnoticed import UNNOTICED

MEASURED = json.loads((Path(__file__).parents[2] / "docs" / "measured" / "code.json").read_text("utf-8"))


@pytest.fixture
def in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each comparison is changed in the text's own tree, which is whole again before the next. A name needs no more,
    and a copy of the tree for each takes ten times as long."""
    every = cache(lambda tree, walk=ast.walk: [*walk(tree)])
    whole: dict[ast.Compare, list[ast.cmpop]] = {}

    def put_right(tree: ast.Module) -> ast.Module:
        for node in every(tree):
            if isinstance(node, ast.Compare):
                node.ops[:] = whole.setdefault(node, [*node.ops])
        return tree

    monkeypatch.setattr("kafkaspec.mutants.code.copy.deepcopy", put_right)
    monkeypatch.setattr("kafkaspec.mutants.code.ast.walk", lambda tree: iter(every(tree)))


@pytest.mark.parametrize("name", subsystems())
def test_every_fault_of_a_text_is_measured(name: str, in_place: None) -> None:
    """If this is red: python bench/code.py NAME."""
    assert [f.name for f in of_code(find(name))] == [*MEASURED.get(name, {})]


def test_a_fault_has_a_tree_of_its_own() -> None:
    """As it is made where it is run, which is not in place."""
    faults = [*comparisons(leader_epochs)]
    assert len({id(f.tree) for f in faults}) == len(faults) > 5
    assert {f.name for f in faults} <= MEASURED["leader_epochs"].keys()
    assert all(f.before != f.after and f.after in ast.unparse(f.tree) for f in faults)


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
