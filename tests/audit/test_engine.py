"""The engine: everything is read once and judged, whatever the files do meanwhile, and nothing is written."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kafkaspec.audits
from kafkaspec.audit import engine
from kafkaspec.audit.check import Log, LogCheck
from kafkaspec.audit.discover import discover, partition_files
from kafkaspec.audit.files import Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.impl.common.scan import read_segment

Originals = Callable[[str], tuple[Path, ...]]
BASIC, CLUSTER = "single-basic/nodes-after-clean-stop", "cluster3-faults/nodes-after-clean-stop"
KILLED = "compaction-retention/node-after-sigkill-1"


def log_of(path: Path, **more: Any) -> Log:
    return Log(partition_files(path, path.name.rpartition("-")[0], int(path.name.rpartition("-")[2])), **more)


class Seen(LogCheck):
    """Writes down what it is shown."""

    calls: list[str] = []

    def begin(self, segment: Segment) -> Iterable[Finding]:
        Seen.calls.append(f"begin {segment.base_offset}")
        return ()

    def chunk(self, segment: Segment, chunk: Chunk) -> Iterable[Finding]:
        Seen.calls.append(f"chunk {segment.base_offset}")
        return ()

    def ended(self, segment: Segment, ending: Ending) -> Iterable[Finding]:
        Seen.calls.append(f"ended {segment.base_offset} {ending.end_offset}")
        return ()

    def end(self) -> Iterable[Finding]:
        Seen.calls.append("end")
        yield self.log.finding(Severity.WARNING, "XXX-1", "f", "said at the end")


class NotHere(LogCheck):
    @classmethod
    def applies(cls, log: Log) -> bool:
        return False

    def __init__(self, log: Log) -> None:
        raise AssertionError


class Broken(LogCheck):
    def chunk(self, segment: Segment, chunk: Chunk) -> Iterable[Finding]:
        raise KeyError("a bug")


def test_a_log_is_shown_in_order(originals: Originals) -> None:
    log = log_of(originals(BASIC)[0] / "ledger-2", clean=True, log_start=40)
    Seen.calls = []
    findings, summary = engine.audit_log(log, [Seen, NotHere])
    bases = [s.base_offset for s in log.files.segments]
    ends = [*bases[1:], summary.end]
    want = [x for b, e in zip(bases, ends, strict=True) for x in (f"begin {b}", f"chunk {b}", f"ended {b} {e}")]
    assert Seen.calls == [*want, "end"]
    assert [f.message for f in findings] == ["said at the end"]
    assert (summary.start, summary.end, summary.segments) == (40, 311, len(bases))
    assert summary.size == sum(s.log.size for s in log.files.segments if s.log)


def test_every_subsystem_s_checks_are_found() -> None:
    found = engine.checks()
    areas = Path(str(kafkaspec.audits.__path__[0]))
    names = {f"kafkaspec.audits.{p.parent.name}.{p.stem}" for p in areas.glob("*/*.py")}
    every = [*found.logs, *found.directories, *found.clusters]
    assert {c.__module__ for c in every} <= names
    assert len({c.__module__ for c in every}) >= 8


def test_a_check_that_breaks_does_not_stop_the_others(originals: Originals, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = originals(BASIC)[0]
    every = engine.checks()
    monkeypatch.setattr(engine, "checks", lambda: replace(every, logs=(Broken, *every.logs)))
    with pytest.raises(KeyError):
        engine.audit([directory / "ledger-0"], strict=True)
    found = engine.audit([directory / "ledger-0"], strict=False)
    assert found.exit_code == 2
    (line,) = found.problems
    assert "Broken cannot check it" in line
    assert found.partitions[0].committed > 0, "the others went on"


def test_findings_of_one_kind_are_bounded() -> None:
    kept = engine.FindingList()
    kept.add(Finding(Severity.ERROR, "XXX-1", "f", str(n)) for n in range(engine.MOST_ALIKE + 5))
    kept.add([Finding(Severity.ERROR, "XXX-2", "f", "")])
    assert len(kept.kept) == engine.MOST_ALIKE + 1
    assert kept.omitted == [engine.OmittedCounts("XXX-1", "f", 5, Severity.ERROR)]


def state(folder: Path) -> list[tuple[str, int, str]]:
    return [
        (str(p), p.lstat().st_mtime_ns, hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else "")
        for p in sorted(folder.rglob("*"))
    ]


def test_nothing_is_written(copied: Callable[[str], tuple[Path, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    (directory,) = copied(KILLED)
    before = state(directory.parent)
    flags = list[int]()
    really = os.open

    def opened(path: str, flag: int, *a: Any, **k: Any) -> int:
        flags.append(flag)
        return really(path, flag, *a, **k)

    monkeypatch.setattr(os, "open", opened)
    engine.audit([directory], strict=True)
    assert state(directory.parent) == before
    assert flags
    assert all(f & os.O_ACCMODE == os.O_RDONLY for f in flags)


def test_a_partition_and_a_segment_alone_are_sound(originals: Originals) -> None:
    for name in (BASIC, KILLED):
        for partition in discover(originals(name)).places[0].files.partitions:
            found = engine.audit([partition.path], strict=True)
            assert found.verdict == "sound", found.findings
            for s in partition.segments:
                assert s.log is not None
                found = engine.audit([s.log.path], strict=True)
                assert found.verdict == "sound", found.findings


def test_the_replicas_of_a_cluster_and_each_broker_alone(originals: Originals) -> None:
    nodes = originals(CLUSTER)
    together = engine.audit(nodes, strict=True)
    alone = [engine.audit([n], strict=True) for n in nodes]
    assert together.verdict == "sound"
    assert sum(len(a.partitions) for a in alone) == len(together.partitions)
    assert {d.node for d in together.directories} == {1, 2, 3}
    assert sum(t.records for t in together.topics) == sum(p.records for a in alone for p in a.partitions)


# ---- a running broker ------------------------------------------------------------------------------------------------
def live(copied: Callable[[str], tuple[Path, ...]], name: str = BASIC) -> Path:
    """A directory as under a running broker: no marker of a clean stop."""
    (directory,) = copied(name)
    (directory / ".kafka_cleanshutdown").unlink(missing_ok=True)
    return directory


@pytest.mark.parametrize("cut", [1, 5, 20, 100])
def test_a_batch_that_is_being_written_is_no_damage(copied: Callable[[str], tuple[Path, ...]], cut: int) -> None:
    directory = live(copied)
    log = max((directory / "clicks-0").glob("*.log"))
    data = log.read_bytes()
    log.write_bytes(data + data[:cut])
    found = engine.audit([directory], strict=True)
    assert found.verdict == "sound", found.findings[:2]
    assert any(f.severity is Severity.LEFTOVER and f.file == str(log) for f in found.findings)


def test_segments_that_retention_deletes_meanwhile(
    copied: Callable[[str], tuple[Path, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = live(copied)
    first = min((directory / "ledger-1").glob("*.log"))
    read = read_segment
    done = list[int]()

    def reading(file: File, **more: Any) -> Any:
        if file.path == first and not done:
            done.append(1)
            for f in first.parent.glob(f"{first.stem}.*"):
                f.unlink()
        return read(file, **more)

    monkeypatch.setattr(engine, "read_segment", reading)
    found = engine.audit([directory], strict=True)
    assert done
    assert (found.verdict, found.problems) == ("sound", ())
    (p,) = (p for p in found.partitions if p.path == str(first.parent))
    assert p.start == min(int(f.stem) for f in first.parent.glob("*.log")) > 0


def test_a_partition_that_is_deleted_meanwhile(
    copied: Callable[[str], tuple[Path, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = live(copied)
    gone = directory / "ledger-1"
    read = read_segment

    def reading(file: File, **more: Any) -> Any:
        if file.path.parent == gone and gone.exists():
            shutil.rmtree(gone)
        return read(file, **more)

    monkeypatch.setattr(engine, "read_segment", reading)
    found = engine.audit([directory], strict=True)
    assert found.problems == ()
    assert [n for n in found.notes if str(gone) in n]
    assert str(gone) not in [p.path for p in found.partitions]


def test_a_file_that_vanishes_from_a_stopped_broker_is_said(
    copied: Callable[[str], tuple[Path, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory,) = copied(BASIC)
    log = min((directory / "ledger-1").glob("*.log"))
    read = read_segment

    def reading(file: File, **more: Any) -> Any:
        if file.path == log:
            raise UserError(f"{log}: input/output error")
        return read(file, **more)

    monkeypatch.setattr(engine, "read_segment", reading)
    found = engine.audit([directory])
    assert f"{log}: input/output error" in found.problems
    assert found.exit_code == 2


def test_a_file_that_shrinks_while_it_is_read(copied: Callable[[str], tuple[Path, ...]]) -> None:
    directory = live(copied)
    log = max((directory / "clicks-1").glob("*.log"))
    files = partition_files(log.parent, "clicks", 1)
    longer = replace(files, segments=tuple(replace(s, log=File(s.log.path, 10**9)) for s in files.segments if s.log))
    findings, summary = engine.audit_log(Log(longer, clean=False))
    assert [f for f in findings if f.severity > Severity.LEFTOVER] == []
    assert summary.size == sum(s.log.size for s in files.segments if s.log)


def test_an_index_that_grows_behind_the_log_is_not_wrong(
    copied: Callable[[str], tuple[Path, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches and index entries come after the log was read: what the engine read ahead of it counts."""
    directory = live(copied)
    log = max((directory / "orders-snappy-0").glob("*.log"))
    index = log.with_suffix(".index")
    whole, entries = log.read_bytes(), index.read_bytes()
    half = int.from_bytes(entries[-4:], "big")
    assert 0 < half < len(whole)
    log.write_bytes(whole[:half])
    index.write_bytes(entries[:-8])
    (log.with_suffix(".timeindex")).write_bytes((log.with_suffix(".timeindex")).read_bytes()[:12])
    read = read_segment

    def reading(file: File, **more: Any) -> Any:
        yield from read(file, **more)
        if file.path == log:
            index.write_bytes(entries)

    monkeypatch.setattr(engine, "read_segment", reading)
    findings, _ = engine.audit_log(log_of(log.parent, clean=False))
    assert [f for f in findings if f.file == str(index) and f.severity > Severity.LEFTOVER] == []


def test_a_listing_that_is_out_of_date_is_made_anew(copied: Callable[[str], tuple[Path, ...]]) -> None:
    """A broker makes a segment's .log before its indexes: who listed in between must look again."""
    log = log_of(live(copied) / "clicks-0", clean=False)
    stale = tuple(replace(s, offset_index=None, time_index=None) for s in log.files.segments)
    judged = engine.check_log(replace(log, files=replace(log.files, segments=stale)), strict=True)
    assert judged is not None
    assert [f for f in judged.findings.kept if f.severity > Severity.LEFTOVER] == []
    assert judged.log.files == log.files
