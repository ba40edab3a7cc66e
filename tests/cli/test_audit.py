"""`kafkaspec audit` as it is run: table, JSON, page, exit status, and one line for what is no log directory."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kafkaspec.audit import engine
from kafkaspec.audit.check import DirectoryCheck
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audit.recorded import recorded
from kafkaspec.cli.audit import Rate
from kafkaspec.cli.main import main
from kafkaspec.report.describe import describe
from kafkaspec.report.html import html
from kafkaspec.report.json import to_json
from kafkaspec.report.table import table

BASIC, KILLED = "single-basic/nodes-after-clean-stop", "compaction-retention/node-after-sigkill-1"
OLD = "classic-2.8.2/broker-1"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Any]:
    """A recording's log directory by name, a copy of its own."""
    unpacked = []

    def get(name: str) -> Path:
        context = next(r for r in recorded() if r.name == name).unpacked()
        unpacked.append(context)
        return context.__enter__()[0]

    yield get
    for context in unpacked:
        context.__exit__(None, None, None)


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as e:
        main(["audit", *map(str, arguments)])
    out = capsys.readouterr()
    assert isinstance(e.value.code, int)
    return e.value.code, out.out, out.err


def flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


def test_sound(capsys: pytest.CaptureFixture[str], archive: Any) -> None:
    code, out, err = run(capsys, archive(BASIC))
    assert (code, err) == (0, "")
    assert "✓ sound" in out.splitlines()[0]
    assert "node 1, 17 partitions, stopped cleanly" in out
    (row,) = (line.split() for line in out.splitlines() if line.split()[:1] == ["ledger"])
    assert row[1] == "3"
    assert row[-1] == "0"


def test_left_overs_are_listed_last_and_are_sound(capsys: pytest.CaptureFixture[str], archive: Any) -> None:
    code, out, _ = run(capsys, archive(KILLED))
    assert code == 0
    assert "✓ sound; leftovers of a crash: " in out.splitlines()[0]
    assert "no marker of a clean stop" in out
    assert "a restart removes it" in out


def test_a_finding_says_all_that_a_person_needs(
    capsys: pytest.CaptureFixture[str], archive: Any, tmp_path: Path
) -> None:
    directory = archive(BASIC)
    log = directory / "clicks-0" / f"{0:020}.log"
    flip(log, 100)
    page = tmp_path / "audit.html"
    code, out, err = run(capsys, directory, "--html", page)
    assert code == 1
    assert "✗ unsound; 1 error" in out.splitlines()[0]
    flat = " ".join(out.split())
    assert f"{log.name} byte 17, offset " in flat.replace(" /", "/")
    for said in ("BAT-3", "is the CRC-32C of the bytes", "there", "right", "a restart", "kafkaspec dump "):
        assert said in flat
    text = page.read_text()
    assert "BAT-3" in text
    assert "http" not in text.replace("http://www.w3.org", "")
    assert str(page) in err
    code, out, _ = run(capsys, directory, "--json")
    assert code == 1
    (told,) = json.loads(out)
    assert (told["type"], told["verdict"]) == ("Audit", "unsound")
    (finding,) = told["findings"]
    assert (finding["severity"], finding["clause"], finding["position"]) == ("ERROR", "BAT-3", 17)
    assert (finding["topic"], finding["partition"], finding["file"]) == ("clicks", 0, str(log))
    assert sum(t["findings"] for t in told["topics"]) == 1


def test_old_formats_are_named_and_not_judged(capsys: pytest.CaptureFixture[str], archive: Any) -> None:
    code, out, _ = run(capsys, archive(OLD))
    assert code == 2
    assert "? could not judge; not checked: " in out.splitlines()[0]


def test_many_findings_of_one_kind_are_counted() -> None:
    findings = tuple(
        Finding(Severity.ERROR, "BAT-3", f"d/t-0/{n:020}.log", "there", position=n, offset=n) for n in range(40)
    )
    a = engine.Audit(("d",), "unsound", (), (), (), findings, (engine.OmittedCounts("BAT-3", "d", 7, Severity.ERROR),))
    assert a.count(Severity.ERROR) == 47
    sections = describe(a)
    assert "47 errors" in sections[0].verdict.text
    _, group, *items, rest = sections
    assert (group.title, group.verdict.text, group.rules) == ("BAT-3", "47 errors in 40 files", ("BAT-3",))
    assert [s.title for s in items] == [f"d/t-0/{n:020}.log byte {n}, offset {n}" for n in range(5)]
    assert (rest.title, rest.verdict.text) == (
        "BAT-3",
        "and 35 more; --all shows them, and 7 more that were counted only",
    )
    assert not any(s.detail for s in sections), "on a page there is what is on a terminal"
    assert len(to_json(a)["findings"]) == 40
    assert a.exit_code == 1
    _, _, *items, rest = describe(replace(a, everything=True))
    assert len(items) == 40
    assert rest.verdict.text == "and 7 more that were counted only"
    assert to_json(replace(a, everything=True)) == to_json(a)


def test_one_finding_of_a_rule_is_told_with_it() -> None:
    one = Finding(Severity.ERROR, "BAT-3", "d/t-0/f.log", "there")
    sections = describe(engine.Audit(("d",), "unsound", (), (), (), (one,)))
    assert [(s.title, s.rules) for s in sections[1:]] == [("d/t-0/f.log", ("BAT-3",))]


@pytest.mark.parametrize("everything", [False, True])
def test_a_page_says_what_a_terminal_says(everything: bool) -> None:
    """The same groups in the same order, in the same words."""
    rules = (
        ("LDR-1", Severity.LEFTOVER),
        ("BAT-3", Severity.ERROR),
        ("OIX-24", Severity.ERROR),
        ("OIX-25", Severity.WARNING),
    )
    findings = tuple(
        Finding(
            s,
            c,
            f"d/t-{n}/{n:020}.log",
            f"what {c} {n} is",
            "what is right",
            "what a restart does",
            position=n,
            offset=n,
        )
        for c, s in rules
        for n in range(8)
    )
    a = engine.Audit(("d",), "unsound", (), (), (), tuple(sorted(findings, key=Finding.order)), everything=everything)
    page = " ".join(unescape(re.sub(r"<(script|style|nav).*?</\1>|<[^>]*>", " ", html(a), flags=re.DOTALL)).split())
    console = Console(width=400, file=io.StringIO(), highlight=False)
    console.print(table(a))
    assert isinstance(console.file, io.StringIO)
    lines = [line for line in console.file.getvalue().splitlines() if line.strip(" ─")]
    at = 0
    for line in lines:
        for word in re.split(r"\s{2,}|: (?=kafkaspec dump)", line.strip()):
            found = page.find(word, at)
            assert found >= 0, f"{word!r} is not on the page behind {page[max(0, at - 60) : at]!r}"
            at = found
    for c, _ in rules:
        assert sum(f"what {c} {n} is" in page for n in range(8)) == (8 if everything else 5)


def test_many_leftovers_of_one_kind_are_counted() -> None:
    findings = tuple(Finding(Severity.LEFTOVER, "LDR-1", f"d/t-0/{n:020}.log.deleted", "there") for n in range(40))
    sections = describe(engine.Audit(("d",), "sound", (), (), (), findings))
    assert [s.detail for s in sections] == [False, False]
    assert len(sections[1].grids[0].rows) == 5
    assert sections[1].facts[0][1].text == "35 more; --all shows them"


@pytest.mark.parametrize("severity", list(Severity))
def test_the_verdict_by_the_worst(severity: Severity, archive: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Says(DirectoryCheck):
        def check(self, directory: Any) -> Any:
            yield Finding(severity, "XXX-1", "f", "")

    monkeypatch.setattr(engine, "checks", lambda: engine.Checks((), (Says,), ()))
    a = engine.audit([archive(BASIC)], strict=True)
    code = {Severity.LEFTOVER: 0, Severity.UNCHECKED: 2, Severity.WARNING: 1, Severity.ERROR: 1}[severity]
    assert a.exit_code == code


@pytest.mark.parametrize("what", ["nothing", "empty", "foreign", "file", "loop"])
def test_one_line_for_what_is_no_log_directory(what: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "p"
    match what:
        case "empty":
            path.mkdir()
        case "foreign":
            path.mkdir()
            (path / "notes.txt").write_text("x")
        case "file":
            path.write_bytes(b"\0" * 100)
        case "loop":
            path.symlink_to(path)
    code, out, err = run(capsys, path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith(f"kafkaspec: {path}: ")
    assert "Traceback" not in err


@pytest.mark.parametrize("data", [b"", b"\0" * 5000, b"GIF89a" * 999, bytes(range(256)) * 40, b"\xff" * 3000])
@pytest.mark.parametrize("name", [".log", ".index", ".timeindex", ".txnindex", ".snapshot"])
def test_foreign_bytes_in_a_partition_are_never_a_traceback(name: str, data: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"")
    (folder / f"{0:020}{name}").write_bytes(data)
    found = engine.audit([folder], strict=True)
    assert found.verdict in ("sound", "unsound")


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\0\0", b"0\n99999999999999999999\n", "\U0001f600\n".encode() * 9])
def test_foreign_bytes_in_a_directory_are_never_a_traceback(data: bytes, archive: Any) -> None:
    directory = archive(BASIC)
    for other in directory.iterdir():
        if other.is_dir() and other.name not in ("ledger-0", "__cluster_metadata-0"):
            shutil.rmtree(other)
    for name in (
        "meta.properties", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint", ".kafka_cleanshutdown",
        "replication-offset-checkpoint", "cleaner-offset-checkpoint", "ledger-0/leader-epoch-checkpoint",
        "ledger-0/partition.metadata", "__cluster_metadata-0/00000000000000000000.log",
    ):  # fmt: skip
        file = directory / name
        before = file.read_bytes() if file.exists() else None
        file.write_bytes(data)
        assert engine.audit([directory], strict=True).verdict in ("sound", "unsound"), name
        file.unlink()
        if before is not None:
            file.write_bytes(before)


def test_special_files_are_no_segments(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"")
    os.mkfifo(folder / f"{7:020}.log")
    (folder / f"{9:020}.log").mkdir()
    (folder / f"{11:020}.log").symlink_to(folder / f"{11:020}.log")
    found = engine.audit([folder])
    assert [(f.clause, f.file) for f in found.findings] == [("LDR-18", str(folder / f"{9:020}.log"))]
    assert all("\n" not in p for p in found.problems)
    assert any("not a regular file" in p or "symbolic link" in p for p in found.problems)
    (folder / f"{9:020}.log").rmdir()
    assert engine.audit([folder]).exit_code == 2


def test_the_rate_is_shown() -> None:
    said = []
    rate = Rate(lambda *a: said.append(a))  # type: ignore[arg-type]
    rate._started -= 10
    rate(50_000_000, 100_000_000, 1_000_000)
    ((done, total, text),) = said
    assert (done, total) == (50, 100)
    assert "MB/s" in text
    assert "records/s" in text
    assert "0:10 left" in text or "0:09 left" in text


def test_it_runs_as_a_program(archive: Any) -> None:
    command = [sys.executable, "-m", "kafkaspec", "audit", str(archive(BASIC)), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    (told,) = json.loads(done.stdout)
    here = to_json(replace(engine.audit(told["paths"], strict=True)))
    assert told == json.loads(json.dumps(here))
