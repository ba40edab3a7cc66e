"""An audit on several cores: what it says on one, and what becomes of it when a process ends."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.audit import engine, parallel
from kafkaspec.audit.check import LogCheck
from kafkaspec.audit.context import contexts
from kafkaspec.audit.discover import discover
from kafkaspec.audit.engine import Tally, audit
from kafkaspec.audit.finding import Finding
from kafkaspec.audit.parallel import over
from kafkaspec.audit.watch import Watch
from kafkaspec.report.json import to_json
from kafkaspec.workers import Start
from tests.audit.conftest import Copy
from tests.audit.damage import COMPACTED
from tests.cli.test_audit import run

BASIC, KILLED = "single-basic/nodes-after-clean-stop", "broker-kills/node-after-sigkill-3"
CLUSTER, OLD = "cluster3-faults/nodes-after-clean-stop", "classic-1.1.1/broker-1"


@pytest.fixture(autouse=True)
def whatever_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "WORTHWHILE", 0)


def damaged(directories: tuple[Path, ...]) -> tuple[Path, ...]:
    """With one byte of every second file changed."""
    rng = random.Random(7)
    for file in sorted(f for d in directories for f in d.rglob("*") if f.is_file()):
        data = bytearray(file.read_bytes())
        if data and rng.random() < 0.5:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            file.write_bytes(data)
    return directories


@pytest.mark.parametrize(
    ("name", "start"),
    [
        *((name, "fork") for name in (BASIC, KILLED, COMPACTED, CLUSTER, OLD)),
        (KILLED, "forkserver"),
        pytest.param(CLUSTER, "forkserver", marks=pytest.mark.deep),
    ],
)
def test_it_says_what_it_says_on_one_core(
    name: str, start: Start, copied: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "START", start)
    sound = copied(name)
    alone = audit(sound)
    assert to_json(alone) == to_json(audit(sound, fan=over(2)))
    bad = damaged(sound)
    alone = audit(bad)
    assert to_json(alone) == to_json(audit(bad, fan=over(3)))
    assert len({f.file for f in alone.findings}) > 5
    assert active_children() == []


def test_it_prints_what_it_prints_on_one_core(copied: Copy, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """To the byte, with an archive among the paths, and with files that cannot be read."""
    (directory,) = damaged(copied(BASIC))
    gone = directory / "ledger-1" / f"{0:020}.log"
    gone.unlink()
    gone.mkdir()
    archive = tmp_path / "bundle.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(directory, "bundle")
    for options in (["--json"], ["--all"]):
        one = run(capsys, directory, archive, "--threads", "1", *options)
        assert run(capsys, directory, archive, "--threads", "2", *options) == one
        assert run(capsys, directory, archive, *options) == one
        assert one[0] == 1
    parts = sorted(directory.glob("ledger-*"))
    assert len(parts) > 1
    for some in (parts, parts[:1], parts[:1][0].glob("*.log")):
        given = list(some)
        pages = [tmp_path / "one.html", tmp_path / "two.html"]
        said = [run(capsys, *given, "--html", p, "--threads", str(n)) for n, p in enumerate(pages, 1)]
        assert said[0][0] == said[1][0] == 1
        assert pages[0].read_bytes() == pages[1].read_bytes()


def test_a_watch_says_what_it_says_on_one_core(copied: Copy) -> None:
    (directory,) = copied(KILLED)
    one, two = Watch([directory]), Watch([directory], fan=over(2))
    assert to_json(one.first()) == to_json(two.first())
    log = next(f for f in sorted((directory / "ledger-0").glob("*.log")) if f.stat().st_size > 200)
    data = bytearray(log.read_bytes())
    data[150] ^= 4
    log.write_bytes(data)
    a, b = one.again(), two.again()
    assert a.new
    assert to_json(replace(a, at="")) == to_json(replace(b, at=""))


def test_what_is_small_is_read_in_this_process(copied: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    def begins(*_: Any, **__: Any) -> Iterator[Any]:
        raise AssertionError("a process begins")

    monkeypatch.setattr(parallel, "each", begins)
    directories = copied(BASIC)
    assert audit(directories, fan=over(1)).verdict == "sound"
    with pytest.raises(AssertionError, match="a process begins"):
        audit(directories, fan=over(2))
    monkeypatch.undo()
    monkeypatch.setattr(parallel, "each", begins)
    assert audit(directories, fan=over(2)).verdict == "sound"


class Heard(Tally):
    """How often something was said."""

    times = 0

    def __call__(self, size: int, records: int) -> None:
        self.times += 1
        super().__call__(size, records)


@pytest.mark.parametrize("told", [2000, 1 << 30])
def test_progress_is_told_as_it_is_on_one_core(told: int, copied: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """All bytes and records at the end, those of a log with its answer at the latest, and of a large one before."""
    monkeypatch.setattr(parallel, "TOLD", told)
    logs = [log for of in contexts(discover(copied(BASIC)).places) for log in of]
    one, two = (Heard(None, 0) for _ in range(2))
    list(engine.here(logs, True, one))
    answers = over(2)(logs, True, two)
    n, _ = next(answers)
    assert two.bytes >= engine.size_of(logs[n]) > 0
    list(answers)
    assert (two.bytes, two.records) == (one.bytes, one.records)
    assert two.times > len(logs) if told == 2000 else two.times == len(logs)


# ---- ends ------------------------------------------------------------------------------------------------------------
class Ends(LogCheck):
    """Kills the process that reads one of the partitions."""

    def end(self) -> Iterator[Finding]:
        if self.log.files.path.name == "clicks-0":
            os.kill(os.getpid(), signal.SIGKILL)
        yield from ()


def joined(text: str) -> str:
    """Whatever its lines are."""
    return "".join(text.split())


def test_a_process_that_is_killed_costs_its_own_partition(
    copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory,) = copied(BASIC)
    every = engine.checks()
    monkeypatch.setattr(engine, "checks", lambda: replace(every, logs=(*every.logs, Ends)))
    code, out, err = run(capsys, directory, "--threads", "2")
    assert (code, err) == (2, "")
    why = "not read to its end: the process that read it was ended by SIGKILL, as where memory runs out"
    assert out.count("problem") == 1
    assert joined(f"problem {directory}/clicks-0: {why}") in joined(out)
    assert joined("node 1, 16 partitions") in joined(out)
    log = directory / "ledger-0" / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    code, out, _ = run(capsys, directory, "--threads", "2")
    assert code == 1
    assert "BAT-3" in out
    assert joined(why) in joined(out)


class Raises(LogCheck):
    def end(self) -> Iterator[Finding]:
        raise LookupError("a bug")


def test_a_bug_of_a_check_is_told_as_on_one_core(copied: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    directories = copied(BASIC)
    every = engine.checks()
    monkeypatch.setattr(engine, "checks", lambda: replace(every, logs=(*every.logs, Raises)))
    alone = audit(directories)
    assert len(alone.problems) == len(alone.partitions)
    assert to_json(alone) == to_json(audit(directories, fan=over(2)))
    with pytest.raises(LookupError, match="a bug"):
        audit(directories, fan=over(2), strict=True)


SLOW = """
import sys, time
from dataclasses import replace
from pathlib import Path
from kafkaspec.audit import engine, parallel
from kafkaspec.audit.check import LogCheck
from kafkaspec.cli.main import main

class Slow(LogCheck):
    def end(self):
        Path(sys.argv[2], self.log.files.path.name).touch()
        time.sleep(600)
        yield from ()

every = engine.checks()
engine.checks = lambda: replace(every, logs=(*every.logs, Slow))
parallel.WORTHWHILE = 0
main(["audit", *sys.argv[3:], "--threads", "2", sys.argv[1]])
"""


@pytest.mark.parametrize(
    ("number", "options", "status", "line"),
    [
        (signal.SIGINT, [], 130, b"kafkaspec: interrupted\n"),
        (signal.SIGINT, ["--watch", "60"], 130, b"kafkaspec: interrupted\n"),
        (signal.SIGTERM, ["--watch", "60"], 130, b"kafkaspec: interrupted\n"),
    ],
)
def test_a_signal_ends_all_of_it_with_one_line(
    number: int, options: list[str], status: int, line: bytes, copied: Copy, tmp_path: Path
) -> None:
    """To the whole group, as a terminal sends it."""
    (directory,) = copied(BASIC)
    begun = tmp_path / "begun"
    begun.mkdir()
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", SLOW, str(directory), str(begun), *options]
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, start_new_session=True)
    until = time.monotonic() + 120
    while len(list(begun.iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(process.pid, number)
    try:
        out, err = process.communicate(timeout=60)  # ends when nobody has the pipes any more
    finally:
        process.kill()
    assert (process.returncode, out, err) == (status, b"", line)
