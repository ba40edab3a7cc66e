"""The table of what rejections cite: what is known is kept, what is new or states other clauses is measured."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kafkaspec.mutants.blame import Citation
from kafkaspec.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]


@pytest.fixture
def blame(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    yield importlib.import_module("blame")
    sys.modules.pop("blame", None)


@pytest.fixture
def matrix(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    yield importlib.import_module("matrix")
    sys.modules.pop("matrix", None)


def test_what_is_known_is_kept_and_the_rest_is_measured(blame: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    mutants = [Mutant(name, (f"TML-{n}",), "", "impl", dict) for n, name in enumerate("abc", 1)]
    run: list[str] = []

    def cited(s: Any, m: Mutant) -> Citation:
        run.append(m.name)
        return Citation(m.name, m.clauses, ("TML-2",), "rejected")

    monkeypatch.setattr(blame, "asked", lambda s: mutants)
    monkeypatch.setattr(blame, "cited", cited)
    known = {
        "c": {"states": ["TML-9"], "cites": [], "how": "died"},
        "a": {"states": ["TML-1"], "cites": ["TML-1"], "how": "rejected"},
        "gone": {"states": ["TML-1"], "cites": [], "how": "died"},
    }
    kept: list[Any] = []
    found = blame.measured("timeline", known, kept.append)
    assert run == ["b", "c"]
    assert [[*rows] for rows in kept] == [["a", "b"], ["a", "b", "c"]], "who is interrupted goes on from there"
    assert list(found) == ["a", "b", "c"]
    assert found["a"] == known["a"]
    assert found["c"] == {"states": ["TML-3"], "cites": ["TML-2"], "how": "rejected"}
    assert json.loads(blame.text({"timeline": found})) == {"timeline": found}
    assert blame.text({"timeline": found}).count("\n") == 7


def test_the_table_counts_what_is_cited_and_what_is_first(matrix: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[list[str]] = []

    def table(head: list[str], body: list[list[str]]) -> str:
        rows.extend(body)
        return ""

    of = {
        "a": {"states": ["TML-1"], "cites": ["TML-1", "TML-2"], "how": "rejected"},
        "b": {"states": ["TML-2"], "cites": ["TML-1", "TML-2"], "how": "rejected"},
        "c": {"states": ["TML-3"], "cites": ["TML-1"], "how": "rejected"},
        "d": {"states": ["TML-3"], "cites": [], "how": "died"},
    }
    monkeypatch.setattr(matrix, "_read", lambda name: {"timeline": of})
    said = matrix.blamed(table)
    assert [row[1:] for row in rows] == [["4", "2", "1"], ["4", "2 (50.0 %)", "1 (25.0 %)"]]
    assert said.endswith("Not rejected, and counted as not cited: 1 died.")
