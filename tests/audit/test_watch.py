"""A live broker watched: what changes is told, and what only one reading shows is not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.audit import engine
from kafkaspec.audit import watch as watching
from kafkaspec.audit.check import DirectoryCheck
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audit.watch import AuditChange, LogEnd, Watch
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.scan import read_segment
from kafkaspec.mutants.audit import META, log_file, one_record
from kafkaspec.report.describe import describe
from kafkaspec.report.json import to_json
from tests.cli.test_audit import run

ZERO = f"{0:020}"


def batches(first: int, end: int) -> bytes:
    return log_file("t-0", 0, [one_record(n, leader_epoch=0) for n in range(first, end)])[f"t-0/{ZERO}.log"]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A running broker's log directory with two partitions."""
    for topic in ("s", "t"):
        held = log_file(f"{topic}-0", 0, [one_record(n, leader_epoch=0) for n in range(3)])
        held |= {"meta.properties": META, f"{topic}-0/leader-epoch-checkpoint": b"0\n1\n0 0\n"}
        for name, content in held.items():
            (tmp_path / "d" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "d" / name).write_bytes(content)
    return tmp_path / "d"


def log(directory: Path, topic: str = "t") -> Path:
    return directory / f"{topic}-0" / f"{ZERO}.log"


def append(directory: Path, first: int, end: int) -> None:
    with log(directory).open("ab") as f:
        f.write(batches(first, end))


def flip(file: Path, at: int) -> bytes:
    """Change a byte; what was there before."""
    before = file.read_bytes()
    file.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :])
    return before


def started(directory: Path) -> Watch:
    watch = Watch([directory])
    assert watch.first().verdict == "sound"
    return watch


# ---- what changes
def test_nothing_has_changed(directory: Path) -> None:
    watch = started(directory)
    change = watch.again()
    assert not change
    assert change.verdict == "sound"


def test_a_log_end_that_moves(directory: Path) -> None:
    watch = started(directory)
    append(directory, 3, 8)
    assert watch.again().ends == (LogEnd(str(directory / "t-0"), "t", 0, 3, 8),)
    log(directory).write_bytes(batches(0, 5))
    assert watch.again().ends == (LogEnd(str(directory / "t-0"), "t", 0, 8, 5),)
    shutil.rmtree(directory / "s-0")
    assert watch.again().ends == (LogEnd(str(directory / "s-0"), "s", 0, 3, None),)
    shutil.copytree(directory / "t-0", directory / "s-0")
    assert watch.again().ends == (LogEnd(str(directory / "s-0"), "s", 0, None, 5),)
    assert not watch.again()


def test_a_finding_that_comes_and_goes(directory: Path) -> None:
    watch = started(directory)
    sound = flip(log(directory), 30)
    change = watch.again()
    assert [(f.clause, f.file) for f in change.new] == [("BAT-3", str(log(directory)))]
    assert (change.gone, change.verdict) == ((), "unsound")
    assert watch.last is not None
    assert watch.last.exit_code == 1
    assert not watch.again(), "told once"
    log(directory).write_bytes(sound)
    change = watch.again()
    assert [f.clause for f in change.gone] == ["BAT-3"]
    assert (change.new, change.verdict) == ((), "sound")
    assert not watch.again()


def test_the_first_look_tells_all(directory: Path) -> None:
    flip(log(directory), 30)
    found = Watch([directory]).first()
    assert [f.clause for f in found.findings] == ["BAT-3"]
    assert found == engine.audit([directory])


def test_left_overs_come_and_go_untold(directory: Path) -> None:
    watch = started(directory)
    (directory / "t-0" / f"{9:020}.log.deleted").write_bytes(b"")
    assert not watch.again()
    assert watch.last is not None
    assert [f.severity for f in watch.last.findings] == [Severity.LEFTOVER]


def test_a_directory_that_is_gone_for_a_while(directory: Path) -> None:
    flip(log(directory), 30)
    watch = Watch([directory])
    watch.first()
    directory.rename(directory.with_name("away"))
    change = watch.again()
    assert change.problems == (f"{directory}: no such file or directory",)
    assert (change.gone, change.ends, change.verdict) == ((), (), "unsound"), "what cannot be read is not gone"
    assert not watch.again()
    directory.with_name("away").rename(directory)
    change = watch.again()
    assert change.solved == (f"{directory}: no such file or directory",)
    assert (change.new, change.gone) == ((), ())


def test_what_cannot_be_watched(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        Watch([tmp_path / "gone"]).first()
    (tmp_path / "a.tar").write_bytes(b"")
    with pytest.raises(UserError, match="an archive does not change"):
        Watch([directory, tmp_path / "a.tar"])


# ---- what only one reading shows
class Says(DirectoryCheck):
    """Says at each audit what it is given."""

    audits: list[tuple[str, ...]] = []

    def check(self, directory: Any) -> Iterator[Finding]:
        said = Says.audits.pop(0) if len(Says.audits) > 1 else Says.audits[0]
        for x in said:
            yield Finding(Severity.ERROR, "XXX-1", x, f"seen {len(Says.audits)} audits before the end")


@pytest.mark.parametrize(
    ("audits", "told", "left"),
    [
        ([("a",), ()], (), 1),
        ([("a",), ("b",), ()], (), 1),
        ([("a",), ("a",)], ("a",), 1),
        ([("a", "b"), ("a",), ("a",)], ("a",), 1),
        ([("a",), ("b",), ("c",), ("d",), ("e",)], (), 1),
        ([("a",), ("a", "b"), ("a", "c"), ("a", "d"), ("a", "e")], ("a",), 1),
        ([(), ("a",)], (), 1),
    ],
)
def test_two_readings_must_agree(
    audits: list[tuple[str, ...]], told: tuple[str, ...], left: int, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = started(directory)
    Says.audits = list(audits)
    monkeypatch.setattr(engine, "checks", lambda: engine.Checks((), (Says,), ()))
    change = watch.again()
    assert tuple(f.file for f in change.new) == told
    assert watch.last is not None
    assert watch.last.verdict == ("unsound" if told else "sound")


def test_what_is_gone_must_be_gone_twice(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Says.audits = [("a",)]
    monkeypatch.setattr(engine, "checks", lambda: engine.Checks((), (Says,), ()))
    watch = Watch([directory])
    assert [f.file for f in watch.first().findings] == ["a"]
    Says.audits = [(), ("a",)]
    assert not watch.again()
    Says.audits = [()]
    assert [f.file for f in watch.again().gone] == ["a"]


# ---- files that change while they are read
Reading = Callable[[Callable[[File], None]], None]


@pytest.fixture
def while_reading(monkeypatch: pytest.MonkeyPatch) -> Reading:
    """Something happens whenever a segment is about to be read."""

    def when(happens: Callable[[File], None]) -> None:
        def reading(file: File, **more: Any) -> Any:
            happens(file)
            yield from read_segment(file, **more)

        monkeypatch.setattr(engine, "read_segment", reading)

    return when


def test_a_checkpoint_that_is_written_after_the_log_was_read(directory: Path, while_reading: Reading) -> None:
    """Records are deleted up to the end that the log has by then: no log start is beyond the end."""
    starts = directory / "log-start-offset-checkpoint"
    starts.write_bytes(b"0\n0\n")
    end = [0]

    def after(file: File) -> None:
        if file.path.parent.name == "t-0":
            end[0] += 5
            starts.write_bytes(b"0\n1\nt 0 %d\n" % end[0])

    while_reading(after)
    found = engine.audit([directory], strict=True)
    assert [f for f in found.findings if f.severity > Severity.LEFTOVER] == []
    assert Watch([directory]).first().verdict == "sound"


@pytest.mark.parametrize("suffix", [".deleted", ".cleaned", ".swap"])
def test_files_that_are_renamed_meanwhile(directory: Path, suffix: str, while_reading: Reading) -> None:
    """A segment is rolled; the old one is renamed, and then gone."""
    watch = started(directory)
    done = list[str]()

    def rolls(file: File) -> None:
        if file.path == log(directory) and not done:
            done.append("renamed")
            held = log_file("t-0", 3, [one_record(n, leader_epoch=0) for n in range(3, 6)])
            for name, content in held.items():
                (directory / name).write_bytes(content)
            for old in (directory / "t-0").glob(f"{ZERO}.*"):
                old.rename(old.with_name(old.name + suffix))
            (directory / "t-0" / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 3\n")

    append(directory, 3, 4)
    while_reading(rolls)
    change = watch.again()
    assert done
    assert (change.new, change.problems, change.verdict) == ((), (), "sound")
    assert [(e.before, e.now) for e in change.ends] == [(3, 6)]


def test_a_log_that_is_not_changed_is_not_read_again(directory: Path, while_reading: Reading) -> None:
    watch = started(directory)
    read = list[str]()
    while_reading(lambda file: read.append(file.path.parent.name))
    append(directory, 3, 5)
    watch.again()
    assert read == ["t-0"]
    (directory / "recovery-point-offset-checkpoint").write_bytes(b"0\n1\ns 0 3\n")
    read.clear()
    watch.again()
    assert read == ["s-0"], "what surrounds it has changed"


def broker(directory: Path, stop: threading.Event) -> None:
    """Appends, rolls, deletes old segments and checkpoints, as fast as it can."""
    folder, base, end = directory / "t-0", 0, 3
    while not stop.is_set():
        for _ in range(20):
            with (folder / f"{base:020}.log").open("ab") as f:
                data = batches(end, end + 1)
                f.write(data[:30])
                f.flush()
                f.write(data[30:])
            end += 1
        old, base = base, end
        stem = folder / f"{old:020}"
        stem.with_suffix(".timeindex").write_bytes((end - 1).to_bytes(8, "big") + (end - 1 - old).to_bytes(4, "big"))
        for suffix, content in ((".log", b""), (".index", b""), (".timeindex", b"\0" * 12)):
            (folder / f"{base:020}{suffix}").write_bytes(content)
        new = folder / "leader-epoch-checkpoint.tmp"
        new.write_bytes(b"0\n1\n0 %d\n" % base)
        new.replace(folder / "leader-epoch-checkpoint")
        for path in list(folder.glob(f"{old:020}.*")):
            path.rename(path.with_name(path.name + ".deleted"))
        for path in list(folder.glob("*.deleted")):
            path.unlink()
        for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
            (directory / f"{name}.tmp").write_bytes(b"0\n1\nt 0 %d\n" % base)
            (directory / f"{name}.tmp").replace(directory / name)


@pytest.mark.parametrize("seconds", [1.5, pytest.param(60, marks=pytest.mark.deep)])
def test_a_writer_at_work_gives_no_false_alarm(directory: Path, seconds: float) -> None:
    stop = threading.Event()
    writer = threading.Thread(target=broker, args=(directory, stop))
    writer.start()
    try:
        watch = Watch([directory])
        found = watch.first()
        looks, until = 0, time.monotonic() + seconds
        while time.monotonic() < until or looks < 2:
            change = watch.again()
            looks += 1
            assert (change.new, change.problems) == ((), ())
        assert found.verdict == "sound"
    finally:
        stop.set()
        writer.join()


# ---- told
def test_a_change_is_told(directory: Path) -> None:
    watch = started(directory)
    append(directory, 3, 8)
    sound = flip(log(directory), 30)
    change = watch.again()
    head, finding = describe(change)
    assert head.title == change.at
    assert head.verdict.text == "unsound; 1 new"
    assert [[c.text for c in row] for row in head.grids[0].rows] == [["t-0", "3", "8"]]
    assert finding.verdict.text == "error, BAT-3"
    document = to_json(change)
    assert list(document) == [
        "type", "paths", "at", "verdict", "new", "gone", "problems", "solved", "ends",
    ]  # fmt: skip
    assert document["ends"] == [{"path": str(directory / "t-0"), "topic": "t", "partition": 0, "before": 3, "now": 8}]
    log(directory).write_bytes(sound)
    head, gone = describe(watch.again())
    assert head.verdict.text == "sound; 1 gone"
    assert (gone.title, gone.verdict.text) == ("BAT-3", "gone")


def test_many_log_ends_are_counted() -> None:
    ends = tuple(LogEnd(f"d/t-{n}", "t", n, 0, n) for n in range(40))
    change = AuditChange(("d",), "now", "sound", (), (), (), (), ends)
    (head,) = describe(change)
    assert len(head.grids[0].rows) == 5
    assert head.facts[0][1].text == "35 more have moved; --all shows them"
    (head,) = describe(replace(change, everything=True))
    assert (len(head.grids[0].rows), head.facts) == (40, ())


def lines(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def ignored() -> None:
    """As a shell begins a command in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def default() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("number", "begun"),
    [
        (signal.SIGINT, default),
        pytest.param(signal.SIGINT, ignored, marks=pytest.mark.deep),
        pytest.param(signal.SIGTERM, default, marks=pytest.mark.deep),
    ],
)
def test_it_runs_until_interrupted(directory: Path, number: int, begun: Callable[[], None]) -> None:
    """The exit status is that of the last look."""
    command = [sys.executable, "-m", "kafkaspec", "audit", str(directory), "--watch", "0.2", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=begun)
    late = threading.Timer(120, process.kill)
    late.start()
    try:
        told = lines(process)
        assert next(told)["type"] == "Audit"
        flip(log(directory), 30)
        change = next(told)
        assert (change["type"], [f["clause"] for f in change["new"]]) == ("AuditChange", ["BAT-3"])
        process.send_signal(number)
        out, err = process.communicate()
        assert (process.returncode, out, err) == (1, "", "")
    finally:
        late.cancel()
        process.kill()
        process.wait()


def test_wrong_uses_are_a_line(directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong: tuple[tuple[list[str | Path], str], ...] = (
        ([directory, "--watch", "1", "--html", tmp_path / "x.html"], "--watch writes no page"),
        ([tmp_path / "gone", "--watch", "1"], "no such file"),
        ([directory, "--watch", "0"], "0.1"),
    )
    for arguments, said in wrong:
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, "")
        assert said in err
        assert err.count("\n") == 1
    assert os.listdir(tmp_path) == ["d"]
    assert watching.READINGS >= 2
