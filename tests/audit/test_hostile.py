"""Directories that no broker leaves: special files, names of any bytes, offsets that no number holds. The audit ends,
opens nothing that is no file, and whatever it prints is text."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.audit import engine
from kafkaspec.audit.discover import discover, partition_files
from kafkaspec.audit.finding import Severity
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import UNPRINTABLE, File, open_regular, printable, read_small
from kafkaspec.mutants.audit import META, log_file, one_record
from tests.cli.test_audit import run

ZERO = f"{0:020}"
LAST = 2**63 - 1


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A broker's log directory with one partition, killed, and sound."""
    held = log_file("t-0", 0, [one_record(n, leader_epoch=0) for n in range(3)])
    held |= {"meta.properties": META, "t-0/leader-epoch-checkpoint": b"0\n1\n0 0\n"}
    for name, content in held.items():
        (tmp_path / "d" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "d" / name).write_bytes(content)
    return tmp_path / "d"


def bad(found: engine.Audit) -> list[tuple[str, str]]:
    return [(f.clause, Path(f.file).name) for f in found.findings if f.severity > Severity.LEFTOVER]


def test_the_directory_is_sound(directory: Path) -> None:
    assert bad(engine.audit([directory], strict=True)) == []


# ---- special files
def fifo(path: Path) -> None:
    os.mkfifo(path)


def sock(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as s:
        there = Path.cwd()
        os.chdir(path.parent)  # a socket's name is short
        try:
            s.bind(path.name)
        finally:
            os.chdir(there)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [fifo, sock, device])
@pytest.mark.parametrize(
    "name",
    [
        f"t-0/{ZERO}.log", f"t-0/{ZERO}.index", f"t-0/{ZERO}.timeindex", f"t-0/{ZERO}.txnindex",
        f"t-0/{3:020}.snapshot", "t-0/leader-epoch-checkpoint", "t-0/partition.metadata", "meta.properties",
        "recovery-point-offset-checkpoint", "cleaner-offset-checkpoint",
    ],
)  # fmt: skip
def test_a_special_file_is_named_and_never_opened(
    directory: Path, name: str, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = directory / name
    path.unlink(missing_ok=True)
    make(path)

    def guarded(really: Any) -> Any:
        def opening(file: Any, *a: Any, **k: Any) -> Any:
            assert isinstance(file, int) or os.fspath(file) != str(path), "opened"
            return really(file, *a, **k)

        return opening

    monkeypatch.setattr(os, "open", guarded(os.open))
    monkeypatch.setattr(io, "open", guarded(io.open))
    found = engine.audit([directory])
    assert f"{path}: not a regular file" in found.problems
    assert not [p for p in found.problems if "bug" in p]
    assert found.exit_code in (1, 2)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t-0/leader-epoch-checkpoint", "0\n1\n{} 0\n"),
        ("recovery-point-offset-checkpoint", "0\n1\nt 0 {}\n"),
        ("cleaner-offset-checkpoint", "0\n{}\n"),
        ("meta.properties", "version=1\nnode.id={}\n"),
    ],
)
def test_a_number_of_more_digits_than_python_reads_is_a_finding(directory: Path, name: str, text: str) -> None:
    (directory / name).write_text(text.format("9" * 5000))
    found = engine.audit([directory])
    assert not [p for p in found.problems if "bug" in p]
    assert found.exit_code == 1


def test_another_file_that_comes_to_its_place_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    real = os.open

    def swapped(file: Any, flags: int) -> int:
        path.unlink()
        os.mkfifo(path)
        return real(file, flags)

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(UserError, match="not a regular file"):
        open_regular(path)


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with path.open("wb") as f:
        f.truncate(1 << 40)
    with pytest.raises(UserError, match="larger than any such file"):
        read_small(File(path, 0))
    path.write_bytes(b"12345")
    assert read_small(File(path, 0), 5) == b"12345"
    with pytest.raises(UserError, match="larger than any such file"):
        read_small(File(path, 0), 4)


# ---- holes
TIB = 1 << 40


def holed(log: Path, size: int, pieces: dict[int, bytes]) -> None:
    """A file of a size with bytes at some places, and holes between."""
    with log.open("wb") as f:
        for at, piece in pieces.items():
            f.seek(at)
            f.write(piece)
        f.truncate(size)


@pytest.mark.parametrize("clean", [False, True])
def test_a_segment_of_many_tebibytes(directory: Path, clean: bool) -> None:
    """What is written is read, and the holes are passed over: in no time, and one buffer."""
    log = directory / "t-0" / f"{ZERO}.log"
    data = log.read_bytes()
    holed(log, 5 * TIB, {0: data})
    if clean:
        (directory / ".kafka_cleanshutdown").write_bytes(b'{"version":0,"brokerEpoch":1}')
    began = time.process_time()
    found = engine.audit([directory], strict=True)
    assert time.process_time() - began < 5
    assert {f.clause for f in found.findings} == {"BAT-1", "SEG-28"}
    assert found.partitions[0].records == 3
    assert found.partitions[0].bytes == 5 * TIB


@pytest.mark.parametrize("at", [1 << 20, (3 << 30) + 17, TIB - 4096, TIB + 5])
def test_a_batch_behind_a_hole_is_found(directory: Path, at: int) -> None:
    """At the edge of a buffer, of a block, and in the middle of one."""
    log = directory / "t-0" / f"{ZERO}.log"
    first = log.read_bytes()
    more = log_file("t-0", 0, [one_record(n, leader_epoch=0) for n in range(3, 5)])[f"t-0/{ZERO}.log"]
    holed(log, 2 * TIB, {0: first, at: more})
    found = engine.audit([directory], strict=True)
    assert found.partitions[0].records == 5
    (said,) = (f for f in found.findings if f.clause == "BAT-1" and f.severity is Severity.ERROR)
    assert f"bytes {len(first)} to {at - 1} are no batch" in said.message
    assert found.partitions[0].end == 5


@pytest.mark.parametrize("holes", [500, pytest.param(2000, marks=pytest.mark.deep)])
def test_many_holes(directory: Path, holes: int) -> None:
    log = directory / "t-0" / f"{ZERO}.log"
    piece = b"\x01" * 100
    holed(log, 3 * TIB, {n << 30: piece for n in range(1, holes)})
    began = time.process_time()
    engine.audit([directory], strict=True)
    assert time.process_time() - began < holes / 200


# ---- names
@pytest.mark.clause("LDR-18")
@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".log.swap"])
def test_an_offset_that_no_number_holds(directory: Path, suffix: str) -> None:
    for n, stem in enumerate(("9" * 20, f"{LAST + 1:020}", "٠" * 20, "x")):
        path = directory / "t-0" / f"{stem}{suffix}"
        path.write_bytes(b"")
        found = engine.audit([directory], strict=True)
        assert bad(found) == [("LDR-18", path.name)], n
        (said,) = (f for f in found.findings if f.clause == "LDR-18")
        assert (said.offset, said.recovery) == (None, "a restart fails on it: the broker does not start")
        path.unlink()
    (directory / "t-0" / f"7{suffix}").write_bytes(b"")
    (said,) = (f for f in engine.audit([directory], strict=True).findings if f.clause == "LDR-18")
    assert said.recovery == "a restart takes it for one of offset 7, and does not read it"


def test_the_largest_offset_is_one(directory: Path) -> None:
    held = partition_files(directory / "t-0", "t", 0)
    for suffix in (".log", ".snapshot"):
        (directory / "t-0" / f"{LAST:020}{suffix}").write_bytes(b"")
    now = partition_files(directory / "t-0", "t", 0)
    assert [s.base_offset for s in now.segments] == [0, LAST]
    assert [offset for offset, _ in now.snapshots] == [LAST]
    assert now.others == held.others


@pytest.mark.clause("LDR-18")
@pytest.mark.parametrize(
    ("suffix", "recovery"),
    [
        (".log", "no notice"),
        (".index", "fails on it"),
        (".timeindex", "fails on it"),
        (".txnindex", "fails on it"),
        (".snapshot", "empties the segment that ends or begins there"),
    ],
)
def test_a_directory_named_like_a_segment(directory: Path, suffix: str, recovery: str) -> None:
    folder = directory / "t-0" / f"{9:020}{suffix}"
    folder.mkdir()
    (directory / "t-0" / "other").mkdir()
    found = engine.audit([directory], strict=True)
    assert bad(found) == [("LDR-18", folder.name)]
    assert recovery in found.findings[0].recovery
    folder.rename(directory / "t-0" / f"x{suffix}")
    assert engine.audit([directory], strict=True).findings == ()  # nobody opens it


@pytest.mark.clause("LDR-18", "OIX-28", "TIX-16")
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("stopped", ["cleanly", "by a kill", "unknown"])
def test_a_directory_in_the_place_of_an_index_is_no_index_that_is_missing(
    directory: Path, suffix: str, stopped: str
) -> None:
    """Nothing makes it again: Kafka takes it for the index, and cannot open it."""
    if stopped == "cleanly":
        (directory / ".kafka_cleanshutdown").write_bytes(b"{}")
    index = directory / "t-0" / f"{ZERO}{suffix}"
    index.unlink()
    index.mkdir()
    found = engine.audit([directory / "t-0" if stopped == "unknown" else directory], strict=True)
    assert bad(found) == [("LDR-18", index.name)]
    assert found.part is None or not [x for x in found.part.without if suffix in x]


@pytest.mark.clause("LDR-18", "TIX-16")
def test_without_its_time_index_a_segment_is_not_recovered_for_a_directory(directory: Path) -> None:
    (directory / ".kafka_cleanshutdown").write_bytes(b"{}")
    index = directory / "t-0" / f"{ZERO}.index"
    index.unlink()
    index.mkdir()
    index.with_suffix(".timeindex").unlink()
    found = engine.audit([directory], strict=True)
    assert bad(found) == [("LDR-18", index.name), ("TIX-16", f"{ZERO}.log")]
    assert found.findings[1].recovery.startswith("loading the log makes an empty one")


@pytest.mark.clause("LDR-18")
def test_damage_beside_a_directory_in_the_place_of_the_index_is_not_cut(directory: Path) -> None:
    log = directory / "t-0" / f"{ZERO}.log"
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    index = log.with_suffix(".index")
    index.unlink()
    index.mkdir()
    (said,) = (f for f in engine.audit([directory], strict=True).findings if f.clause == "BAT-3")
    assert said.recovery.endswith(
        "a directory is in the place of the segment's offset index, which cannot be opened (LDR-18)"
    )


@pytest.mark.clause("LDR-5", "LDR-18")
def test_an_index_beside_a_directory_in_the_place_of_its_log_stays(directory: Path) -> None:
    folder = directory / "t-0" / f"{9:020}.log"
    folder.with_suffix(".index").write_bytes(b"")
    (told,) = engine.audit([directory], strict=True).findings
    assert told.clause == "LDR-5"
    folder.mkdir()
    (told,) = engine.audit([directory], strict=True).findings
    assert told.clause == "LDR-18"


@pytest.mark.clause("PSM-19")
def test_a_pipe_in_the_place_of_a_snapshot_is_named_wherever_it_stands(directory: Path) -> None:
    """Kafka takes it for none, and waits for good where it would write one."""
    for offset in (0, 2, 9):
        snapshot = directory / "t-0" / f"{offset:020}.snapshot"
        snapshot.unlink(missing_ok=True)
        fifo(snapshot)
        found = engine.audit([directory], strict=True)
        assert (found.findings, found.problems) == ((), (f"{snapshot}: not a regular file",))
        snapshot.unlink()


@pytest.mark.clause("LDR-19")
def test_a_partition_number_that_is_none(directory: Path) -> None:
    (directory / f"t-{2**31}").mkdir()
    (directory / f"t-{2**31 - 1}").mkdir()
    found = engine.audit([directory], strict=True)
    assert bad(found) == [("LDR-19", f"t-{2**31}")]
    assert [p.partition for p in found.partitions] == [0, 2**31 - 1]


@pytest.mark.clause("LDR-19")
def test_an_empty_directory_in_the_place_of_the_marker_is_taken_for_it(directory: Path) -> None:
    marker = directory / ".kafka_cleanshutdown"
    marker.mkdir()
    with (directory / "t-0" / f"{ZERO}.log").open("ab") as log:
        log.write(bytes(range(7)))
    found = engine.audit([directory], strict=True)
    assert found.directories[0].clean is True
    assert [(f.severity, f.clause) for f in found.findings] == [(Severity.ERROR, "BAT-1"), (Severity.WARNING, "LDR-19")]
    assert found.findings[1].recovery.startswith("a restart takes it for the marker, and removes it")


@pytest.mark.clause("LDR-19")
def test_a_directory_in_the_place_of_the_marker_that_is_not_empty_cannot_be_removed(directory: Path) -> None:
    marker = directory / ".kafka_cleanshutdown"
    marker.mkdir()
    (marker / "x").touch()
    found = engine.audit([directory], strict=True)
    assert found.directories[0].clean is False
    (said,) = found.findings
    assert (said.severity, said.clause) == (Severity.ERROR, "LDR-19")
    assert "takes the directory out of service" in said.recovery


@pytest.mark.clause("LDR-19")
def test_a_link_to_nothing_is_no_marker(directory: Path) -> None:
    (directory / ".kafka_cleanshutdown").symlink_to("nowhere")
    found = engine.audit([directory], strict=True)
    assert (found.directories[0].clean, found.findings) == (False, ())


def test_loops_of_links_end(directory: Path) -> None:
    (directory / "t-1").symlink_to(directory)
    (directory / "t-2").symlink_to("t-2")
    (directory / "t-0" / f"{5:020}.log").symlink_to(f"{5:020}.log")
    found = engine.audit([directory])
    assert [p for p in found.problems if f"{5:020}.log" in p]
    assert not [p for p in found.problems if "bug" in p]


def test_a_link_to_nothing_is_called_one(directory: Path, tmp_path: Path) -> None:
    """Its name is listed: that there is no such file would be no answer."""
    for name in ("leader-epoch-checkpoint", f"{5:020}.log", f"{0:020}.index"):
        link = directory / "t-0" / name
        link.unlink(missing_ok=True)
        link.symlink_to("nowhere")
        assert f"{link}: a symbolic link to nothing" in engine.audit([directory]).problems
    away = tmp_path / "away"
    with pytest.raises(UserError, match="away: no such file"):
        engine.audit([away])
    away.symlink_to("nowhere")
    with pytest.raises(UserError, match="away: a symbolic link to nothing"):
        engine.audit([away])


STRANGE = [
    (b"a\x1b]0;x\x07.log", "a\\x1b]0;x\\x07.log"),
    (b"\xff\xfe.log", "\\xff\\xfe.log"),
    (b"a\nsound\r.log", "a\\nsound\\r.log"),
    ("\u202egol.log".encode(), "\\u202egol.log"),
    ("\u009b2J.log".encode(), "\\u009b2J.log"),
    ("fünf.log".encode(), "fünf.log"),
]


@pytest.mark.parametrize(("name", "shown"), STRANGE)
def test_a_name_is_escaped(name: bytes, shown: str) -> None:
    assert printable(os.fsdecode(name)) == shown


@pytest.mark.parametrize(("name", "shown"), STRANGE)
def test_a_name_is_escaped_wherever_it_is_told(
    directory: Path, name: bytes, shown: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As a segment's name, a folder's, and a path's."""
    strange = tmp_path / os.fsdecode(name)
    directory.rename(strange)
    (strange / "t-0" / os.fsdecode(name)).write_bytes(b"")
    (strange / os.fsdecode(name)).mkdir()
    page = tmp_path / "page.html"
    code, out, err = run(capsys, strange, "--html", page)
    assert code == 1
    lines = "".join(out.split())
    assert "".join(f"/{shown}/t-0/{shown}".split()) in lines
    code, told, more = run(capsys, strange, "--json")
    (document,) = json.loads(told)
    assert {f["file"] for f in document["findings"]} == {
        f"{tmp_path}/{shown}/t-0/{shown}",
        f"{tmp_path}/{shown}/{shown}",
    }
    for text in (out, err, told, more, page.read_text("utf-8")):
        assert not [c for c in UNPRINTABLE.findall(text) if c != "\n"]


def test_the_command_to_see_it_again_names_the_same_file(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strange = directory.parent / os.fsdecode(b"a\x1b'\xff b\n")
    directory.rename(strange)
    log = strange / "t-0" / f"{ZERO}.log"
    data = bytearray(log.read_bytes())
    data[30] ^= 1
    log.write_bytes(data)
    _, out, _ = run(capsys, strange)
    (line,) = (x for x in out.splitlines() if "kafkaspec dump" in x)
    word = line.partition("kafkaspec dump ")[2].rpartition(" --offset")[0]
    said = subprocess.run(["bash", "-c", f"printf %s {word}"], check=True, capture_output=True).stdout
    assert said == os.fsencode(log)


# ---- errors
@pytest.mark.parametrize("name", ["gone", "empty", "notes.log", "a\x1b[2J\udcff"])
def test_an_error_is_a_document_too(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "empty":
        path.mkdir()
    elif name == "notes.log":
        path.write_text("x")
    code, out, err = run(capsys, path, "--json")
    (document,) = json.loads(out)
    assert (code, document["type"], document["verdict"]) == (2, "Audit", "could not judge")
    (problem,) = document["problems"]
    assert problem.startswith(f"{document['paths'][0]}: ")
    assert err == f"kafkaspec: {problem}\n"
    code, out, same = run(capsys, path)
    assert (code, out, same) == (2, "", err)


@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.deep)])
def test_very_many_empty_partitions(directory: Path, count: int) -> None:
    """More than a process may have files open."""
    for n in range(count):
        (directory / f"e-{n}").mkdir()
    found = engine.audit([directory], strict=True)
    assert len(found.partitions) == count + 1
    assert bad(found) == []


def test_files_that_vanish_of_a_stopped_broker(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory / ".kafka_cleanshutdown").write_bytes(b'{"version":0,"brokerEpoch":1}')
    real = discover
    gone = ["t-0/leader-epoch-checkpoint", "meta.properties"]

    def vanishing(paths: Any) -> Any:
        found = real(paths)
        for name in gone:
            (directory / name).unlink()
        return found

    monkeypatch.setattr(engine, "discover", vanishing)
    found = engine.audit([directory])
    assert found.problems == tuple(f"{directory / name}: No such file or directory" for name in gone)
    assert found.exit_code == 2
