"""The measured kill matrix: what is measured is kept, what is new is measured, and the tables say what the files do."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kafkaspec.contract import subsystem
from kafkaspec.mutants.judge import Kill
from kafkaspec.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]


def _module(monkeypatch: pytest.MonkeyPatch, folder: str, name: str) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / folder))
    yield importlib.import_module(name)
    sys.modules.pop(name, None)


@pytest.fixture
def kills(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    yield from _module(monkeypatch, "bench", "kills")


@pytest.fixture
def matrix(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    yield from _module(monkeypatch, "docs", "matrix")


def test_campaigns_are_kept_and_only_what_lacks_is_run(
    kills: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[tuple[int, list[str]]] = []

    def campaigned(s: Any, mutants: Sequence[Mutant], how: str, seed: int, limit: int, sound: bool) -> dict[str, Any]:
        run.append((seed, [m.name for m in mutants]))
        assert sound == (seed == 0)
        return {m.name: None if m.name == "b" else Kill(10 * seed + 1, "rejected") for m in mutants}

    monkeypatch.setattr(kills, "campaigned", campaigned)
    a, b, c = (Mutant(name, (), "", "impl", dict) for name in "abc")
    timeline = subsystem.find("timeline")
    file = tmp_path / "judge.json"
    measured = kills.JudgeTable(file, 100, 20, 1000)
    measured.run(timeline, "guided", 0, 100, [a, b])
    assert kills.JudgeTable(file, 100, 20, 1000).data == measured.data
    assert measured.run(timeline, "guided", 0, 100, [a, b]) == ""
    measured.run(timeline, "guided", 0, 100, [a, b, c])
    measured.run(timeline, "guided", 1, 100, [a])
    assert run == [(0, ["a", "b"]), (0, ["c"]), (1, ["a"])]
    guided = json.loads(file.read_text())["subsystems"]["timeline"]["guided"]
    assert guided == {"a": {"0": 1, "1": 11}, "b": {"0": None}, "c": {"0": 1}}
    with pytest.raises(SystemExit, match="measured with other limits: 100, 1000"):
        kills.JudgeTable(file, 200, 20, 1000)


def test_who_outlives_too_much_has_no_median(kills: ModuleType) -> None:
    def calls(*of: int | None) -> dict[str, int | None]:
        return {str(seed): c for seed, c in enumerate(of)}

    assert not kills.outlives(calls(*[None] * 5), 20)
    assert kills.outlives(calls(*[None] * 6), 20)
    assert not kills.outlives(calls(1, *[None] * 10), 20)
    assert kills.outlives(calls(1, *[None] * 11), 20)


def test_medians_are_of_the_seeds(matrix: ModuleType) -> None:
    def of(*calls: int | None) -> Any:
        return matrix.Kills(calls, 20, 1000)

    assert (of(3, 900, 5).median, str(of(3, 900, 5))) == (5, "5")
    assert (of(3, None, 5).median, str(of(3, None))) == (5, "3")
    assert (of(None, None, 5).median, str(of(None, None, 5))) == (None, "> 1,000 (1 of 3 seeds)")
    assert str(of(*[None] * 6)) == "> 1,000"


def test_every_table_is_made_of_what_was_measured(matrix: ModuleType) -> None:
    """Every written mutant that was measured stands in the page's tables, and none survives unexplained."""
    rows = list(matrix.every())
    assert len(rows) > 400

    def table(head: list[str], body: list[list[str]]) -> str:
        assert all(len(row) == len(head) for row in body)
        return "\n".join(map(" | ".join, body))

    whole = matrix.kill_rows(table)
    assert all(r.name in whole for r in rows)
    assert "no reason" not in matrix.survivors(table)
    assert "**all**" in matrix.kill_totals(table)
    assert "a ratio of" in matrix.guided_and_uniform(table)
    assert "KAFKA-6568" in matrix.kill_bugs(table)
