"""Campaigns in this process: the same rows however they are made, failures told once and small, clear refusals."""

from __future__ import annotations

import contextlib
import importlib
import itertools
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from kafkaspec.contract.machine import Refused, Step
from kafkaspec.contract.subsystem import Subsystem, find
from kafkaspec.errors import UserError
from kafkaspec.fleet import CampaignResult, campaign
from kafkaspec.fleet.campaign import Store, code_digest
from kafkaspec.judge.check import check
from kafkaspec.mutants.mutant import with_fault
from kafkaspec.report.describe import describe
from tests.fleet.faulty import FaultyToy, Toy
from tests.lockstep import toy

TOY, FAULTY = Toy("toy", "lockstep"), FaultyToy("toy", "lockstep")
SEEDS, STEPS = range(120), 60


def walk(out: Path, subsystem: Subsystem = FAULTY, **other: Any) -> CampaignResult:
    return campaign(subsystem, **{"seeds": SEEDS, "steps": STEPS, "out": out, **other})


def rows(out: Path) -> Any:
    return Store(out).table(SEEDS).drop_columns("seconds").to_pylist()


def test_every_seed_has_a_row_and_coverage_adds_up(tmp_path: Path) -> None:
    r = walk(tmp_path / "a", TOY)
    assert (r.failing, r.failures, r.walked, r.never_called) == (0, (), 120, ())
    assert r.calls == 120 * STEPS == sum(r.operations.values()) == sum(x["steps"] for x in rows(tmp_path / "a"))
    assert r.refused("pop") == r.refusals["pop TOY-5"] == r.clauses["TOY-5"]
    assert r.model_states is not None
    assert r.model_states_reached is not None
    assert 20 < r.model_states_reached < r.model_states == 182


def test_failures_are_small_and_told_once(tmp_path: Path) -> None:
    r = walk(tmp_path)
    assert [(f.operation, f.clause, f.shape, f.calls) for f in r.failures] == [
        ("push", "TOY-1", "state.saved", 3),
        ("pop", "TOY-5", "answered, expected java.util.NoSuchElementException", 10),
        ("pop", "TOY-4", "answered, expected an answer", 11),
    ]
    assert r.failing == sum(f.seeds for f in r.failures) > 50
    assert r.failures[0].history.endswith(
        "init\nsave -> null\nrestore -> null\npush value=0 -> 1\n"
        '  state {"items":[0],"saved":[0],"turnedAway":0,"full":false}\n'
    )
    for f in r.failures:
        assert f.file is not None
        assert f.file.read_text() == f.history
        assert check(toy.machine, f.file).verdict == "rejected"


def test_a_history_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    whole = walk(tmp_path)
    kept = [f.file for f in whole.failures if f.file is not None]
    kept[1].unlink()
    kept[1].mkdir()
    (kept[1] / "x.history").touch()
    found = walk(tmp_path)
    assert found.not_kept == (f"{kept[1]}: cannot be written: is a directory",)
    assert [f.file for f in found.failures] == [kept[0], None, kept[2]]
    assert [f.history for f in found.failures] == [f.history for f in whole.failures]
    again = [s.again for s in describe(found)]
    assert f"kafkaspec campaign toy --seeds {found.failures[1].seed} --steps {STEPS} --out DIR" in again
    assert f"kafkaspec check {kept[0]} --subsystem toy" in again


def test_the_same_seeds_are_the_same_rows_in_one_go_or_in_many(tmp_path: Path) -> None:
    whole = walk(tmp_path / "whole")
    for first, end in ((30, 31), (0, 10), (5, 60), (0, 120)):
        parts = walk(tmp_path / "parts", seeds=range(first, end))
    assert rows(tmp_path / "whole") == rows(tmp_path / "parts")
    assert parts.walked == 120 - 61 + 1
    assert parts.failures == tuple(
        replace(f, file=tmp_path / "parts/failures" / f.file.name) for f in whole.failures if f.file is not None
    )
    assert (parts.operations, parts.clauses, parts.calls) == (whole.operations, whole.clauses, whole.calls)


def test_an_interrupted_campaign_goes_on(tmp_path: Path) -> None:
    calls = itertools.count()

    def interrupt(done: int, total: int | None, text: str) -> None:
        if next(calls) == 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        walk(tmp_path / "a", progress=interrupt)
    assert len(rows(tmp_path / "a")) == 50
    assert walk(tmp_path / "a").walked == 70
    assert walk(tmp_path / "a").walked == 0
    walk(tmp_path / "b")
    assert rows(tmp_path / "a") == rows(tmp_path / "b")


def test_rows_that_workers_wrote_elsewhere_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("kafkaspec.fleet.campaign")
    monkeypatch.setattr(module, "session", contextlib.nullcontext)
    monkeypatch.setattr(module, "_walk_on_spark", lambda *_: None)
    with pytest.raises(UserError, match=r"rows: 120 rows are not there: the driver and all workers must share"):
        walk(tmp_path / "a", master="spark://somewhere:7077")


class BrokenSpec(Toy):
    """The toy, with a spec that breaks its own contract."""

    def layer(self, layer: str, role: str = "") -> ModuleType | None:
        broken = with_fault(
            toy.machine, "pop", lambda state: Step(state, 5 if state.items else Refused("TOY-5", toy.EMPTY))
        )
        if (layer, role) == ("spec", ""):
            return cast(ModuleType, SimpleNamespace(machine=broken))
        return super().layer(layer, role)


def test_a_spec_that_breaks_its_contract_is_a_failure_too(tmp_path: Path) -> None:
    r = walk(tmp_path, BrokenSpec("toy", "lockstep"), seeds=range(5))
    assert [(f.clause, f.operation) for f in r.failures] == [("TOY-6", "")]
    assert r.failures[0].shape.startswith("the spec fails: ViolationError: TOY-6 the oldest first")
    assert "kafkaspec campaign toy --seeds" in r.failures[0].history


def test_what_cannot_be_walked_is_said_in_a_line(tmp_path: Path) -> None:
    walk(tmp_path / "a", seeds=range(3))
    (tmp_path / "other").mkdir()
    (tmp_path / "other/notes.txt").write_text("mine")
    (tmp_path / "file").write_text("")
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"seeds": range(0)}, "seeds 0:0: not a range of seeds from 0 on"),
        ({"seeds": range(-3, 3)}, "seeds -3:3: not a range"),
        ({"steps": 0}, "steps 0: a walk has at least one"),
        ({"out": tmp_path / "other"}, "other: is not empty, and holds no campaign"),
        ({"out": tmp_path / "file"}, "file: file exists"),
        ({"steps": 61}, "a: holds a campaign of toy with 60 steps, not of toy with 61; name another directory"),
        ({"resume": False}, "a: holds a campaign already; name another directory"),
    )
    for wrong, said in cases:
        with pytest.raises(UserError) as e:
            walk(**{"out": tmp_path / "a", **wrong})
        assert said in str(e.value)
        assert "\n" not in str(e.value)


def test_rows_of_other_code_or_damaged_rows_are_not_summed_up(tmp_path: Path) -> None:
    walk(tmp_path, seeds=range(3))
    about = tmp_path / "campaign.json"
    good = about.read_bytes()
    about.write_bytes(orjson.dumps({**orjson.loads(good), "code": "0"}))
    with pytest.raises(UserError, match="walked with other code than today's"):
        walk(tmp_path)
    about.write_bytes(b"{")
    with pytest.raises(UserError, match=r"campaign.json: is not JSON"):
        walk(tmp_path)
    about.write_bytes(good)
    (part,) = (tmp_path / "rows").iterdir()
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(UserError, match=r"rows: a file cannot be read"):
        walk(tmp_path)


@pytest.mark.parametrize("file", ["cleaner.py", "checkpoint_text.py", "disk.py", "walk.py", "machine.py"])
def test_rows_depend_on_what_layers_share_too(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, read = code_digest(find("cleaner")), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + (b"#" if path.name == file else b""))
    assert code_digest(find("cleaner")) != before
