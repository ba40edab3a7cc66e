"""A judged campaign on Spark comes to what one process comes to, with the same findings, to the letter."""

from __future__ import annotations

import itertools
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkaspec import report
from kafkaspec.fleet import judge as fleet
from kafkaspec.judge.campaign import judge
from kafkaspec.judge.judging import BLOCK
from kafkaspec.judge.result import Job, SubsystemVerdict
from tests.fleet.test_spark import spark  # noqa: F401

TEMPLATES = Path(__file__).parents[2] / "targets" / "examples" / "python"
DIES = """
import os, sys
sys.path.insert(0, {folder!r})
from faulty import Faulty, serve
class Dies(Faulty):
    def clear(self):
        if self.entries and self.entries[-1] == [2, 2]:
            os._exit(9)
        super().clear()
    OPERATIONS = {{**Faulty.OPERATIONS, "clearAndFlush": clear}}
serve("Dies", "1", {{"leader_epochs": Dies}})
"""


def plain(r: SubsystemVerdict) -> Any:
    """The result as JSON, without what a clock says."""

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: timeless(v) for k, v in value.items() if k != "seconds"}
        return [timeless(v) for v in value] if isinstance(value, list) else value

    return timeless(report.to_json(r))


def job(*words: str, seed: int = 0) -> Job:
    return Job("leader_epochs", shlex.join([sys.executable, *words]), seed, timeout_s=30.0)


def test_spark_and_one_process_agree_exactly(spark: Any) -> None:  # noqa: F811
    faulty = job(str(TEMPLATES / "faulty.py"), seed=1)
    here, there = judge(faulty, examples=520), fleet.judge(spark, faulty, examples=520)
    assert plain(here) == plain(there)
    assert here.verdict == "rejected"
    assert here.tally.histories == 520
    assert here.tally.model_states == there.tally.model_states
    assert here.rejections == there.rejections
    other = fleet.judge(spark, job(str(TEMPLATES / "faulty.py"), seed=2), examples=20)
    assert other.tally.histories == 20


def test_trouble_on_a_worker_ends_it_where_one_process_ends(
    spark: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    script = tmp_path / "dies.py"
    script.write_text(DIES.format(folder=str(TEMPLATES)))
    here, there = judge(job(str(script)), examples=600), fleet.judge(spark, job(str(script)), examples=600)
    assert here.tally.trouble is not None
    assert there.tally.trouble is not None
    assert here.tally.trouble.kind == there.tally.trouble.kind == "died"
    assert here.tally.last == there.tally.last
    assert here.tally.last is not None
    assert here.tally.last.records[-1]["op"] == "clearAndFlush"
    assert max(here.tally.histories, there.tally.histories) < 600
    none = fleet.judge(spark, job(str(tmp_path / "nothing.py")), examples=30)
    assert (none.verdict, none.tally.trouble is not None) == ("could not judge", True)


def test_ctrl_c_tells_what_was_merged(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    calls = itertools.count()

    def interrupt(done: int, total: int | None, text: str) -> None:
        if next(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(fleet, "WAVE_S", 0.0)
    r = fleet.judge(spark, job(str(TEMPLATES / "leader_epochs.py")), examples=5000, progress=interrupt)
    assert (r.verdict, r.why, r.interrupted) == ("could not judge", "interrupted", True)
    assert r.tally.histories == 2 * BLOCK
