"""The harness: contestants take turns, wrong counts fail, goals are read right; deep: TLC and SPIN on the anchors."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.export.tlc import tools as tlc_jar

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """bench/run.py, which imports its neighbours as scripts do."""
    monkeypatch.syspath_prepend(str(BENCH))
    yield importlib.import_module("run")
    for name in ("run", "tools"):
        sys.modules.pop(name, None)


def test_contestants_take_turns(run: ModuleType) -> None:
    order: list[str] = []

    def measured(name: str) -> dict[str, float]:
        order.append(name)
        return {"seconds": float(len(order))}

    contest = run.Contest(
        "A job",
        [("s", "seconds", ".1f"), ("MB", "peak_mb", ".0f")],
        [run.Contestant("ours", lambda: measured("ours")), run.Contestant("theirs", lambda: measured("theirs"))],
    )
    contest.run(3)
    assert order == ["ours", "theirs"] * 3
    assert contest.median("ours", "seconds") == 3
    assert contest.median("ours", "peak_mb") is None
    assert contest.median("nobody", "seconds") is None
    assert "| theirs | 4.0 (2.0–6.0) |  |" in contest.table()


def test_wrong_counts_fail(run: ModuleType) -> None:
    anchor = run.QUICK["Cleaner"]
    process = run.Process(2.0, 1.0, 100.0, "what it said")
    good = run.explored(process, 1.0, 0.5, anchor.generated, anchor.distinct, anchor)
    assert good["whole_seconds"] == 1.5
    assert good["distinct_rate"] == pytest.approx(anchor.distinct / 1e6)
    with pytest.raises(run.Failed, match="8791 distinct, 64093 generated; pinned"):
        run.explored(process, 1.0, 0.5, anchor.generated, anchor.distinct - 1, anchor)


def test_a_process_that_fails_is_reported(run: ModuleType) -> None:
    with pytest.raises(run.Failed, match=r"ended with 3: the reason"):
        run.tools.run([sys.executable, "-c", "import sys; print('the reason'); sys.exit(3)"])
    done = run.tools.run([sys.executable, "-c", "print(7)"])
    assert done.output == "7\n"
    assert done.seconds > 0
    assert done.peak_mb > 1


def test_goals(run: ModuleType) -> None:
    at_least = run.Goal("speed", 80, 81.0)
    assert (at_least.met, run.Goal("speed", 80, 79.9).met, run.Goal("speed", 80, None).met) == (
        "yes", "no", "not measured",
    )  # fmt: skip
    assert at_least.row() == "| speed | ≥ 80 × | 81.00 × | yes |"
    at_most = run.Goal("memory", 0.1, 0.2, most=True)
    assert (at_most.met, run.Goal("memory", 0.1, 0.1, most=True).met) == ("no", "yes")
    assert (
        run.Goal("events", 100_000, 123456.7, "events/s").row()
        == "| events | ≥ 100,000 events/s | 123,457 events/s | yes |"
    )


def test_goals_are_ratios_of_medians(run: ModuleType) -> None:
    def contestant(name: str, seconds: float, memory: float) -> object:
        sample = {"search_seconds": seconds, "whole_seconds": 2 * seconds, "peak_mb": memory}
        return run.Contestant(name, dict, [sample])

    contest = run.Contest(
        "x", [], [contestant("kafkaspec, 2 threads", 0.5, 300), contestant("TLC, 2 workers", 75, 4000)]
    )
    found = {g.text: g for g in run.goals({"Cleaner": contest})}
    assert found["search, cleaner model, against TLC"].value == 150
    assert found["search, cleaner model, against TLC"].met == "yes"
    assert found["peak memory, cleaner model, part of TLC's"].value == 0.075
    assert found["search, replication model, against TLC"].met == "not measured"
    assert found["search, cleaner model, against SPIN, BFS"].met == "not measured"


def test_the_judge_is_measured_and_its_time_is_told(run: ModuleType) -> None:
    found = run.script("judge", f"{sys.executable} {run.TEMPLATE}", "leader_epochs", "--seconds", "1", "--where")[1]
    assert found["histories"] > 0
    assert found["lines"] > found["calls"] > found["histories"]
    assert found["calls_per_second"] == pytest.approx(found["calls"] / found["seconds"])
    assert found["cpu_seconds"] > 0
    assert sum(found["where"].values()) == pytest.approx(1, abs=0.01)
    assert {"guidance", "spec", "encoding", "candidates"} <= found["where"].keys()
    faulty = run.TEMPLATE.with_name("faulty.py")
    with pytest.raises(run.Failed):
        run.script("judge", f"{sys.executable} {faulty}", "leader_epochs", "--seconds", "1", "--uniform")


def test_large_runs_are_measured_and_their_counts_are_checked(run: ModuleType) -> None:
    contest = run.large_runs(quick=True)
    contest.run(1)
    for c in contest.contestants:
        assert c.median("part") > 0
        assert c.median("generated_rate") > 0
    found = run.script("counters", "3", "9", "--bits", "6", "--threads", "1")[1]
    assert (found["distinct"], found["generated"], found["depth"]) == (1_000, 2_701, 28)
    assert found["bits"] == 18
    with pytest.raises(run.Failed):
        run.script("counters", "3", "9", "--bits", "3")


def test_hypothesis_is_measured(run: ModuleType) -> None:
    found = run.script("hypothesis_steps", "5")[1]
    assert found["steps"] > 50
    assert found["seconds"] > 0


@pytest.mark.deep
@pytest.mark.parametrize("anchor", ["Cleaner", "Replication"])
def test_tlc_counts_the_anchors(run: ModuleType, anchor: str) -> None:
    tlc_jar()
    run.tlc(run.QUICK[anchor], 0)


@pytest.mark.deep
@pytest.mark.parametrize("search", ["DFS", "BFS", "BFS, 2 cores"])
def test_spin_counts_the_anchor(run: ModuleType, tmp_path: Path, search: str) -> None:
    if shutil.which("spin") is None or shutil.which("gcc") is None:
        pytest.skip("SPIN is not here: install spin (a package of Debian and Ubuntu) and gcc")
    anchor = run.QUICK["Cleaner"]
    run.spin(anchor, search, run.tools.spin_made(search, anchor.partitions, tmp_path / "spin"))
