"""Archives in place of directories: judged as what they hold, refused in a line, and nothing stays behind."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafkaspec.audit import archive, engine
from kafkaspec.audit.archive import is_archive
from kafkaspec.audit.recorded import recorded, wrongly_audited
from kafkaspec.errors import UserError
from kafkaspec.mutants.audit import META, log_file, one_record
from kafkaspec.report.describe import describe
from tests.cli.test_audit import run

ZERO = f"{0:020}"
LOG = f"node/t-0/{ZERO}.log"
pytestmark = pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="archives need Python 3.11.4")

TIB = 1 << 40


def held() -> dict[str, bytes]:
    """A broker's log directory with one partition, killed, and sound."""
    out = log_file("node/t-0", 0, [one_record(n, leader_epoch=0) for n in range(5)])
    return out | {"node/meta.properties": META, "node/t-0/leader-epoch-checkpoint": b"0\n1\n0 0\n"}


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where archives are unpacked. It is empty after every test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def member(
    name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, **fields: object
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.type = len(data), kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def sparse(name: str, size: int, data: bytes, at: int = 0) -> tuple[tarfile.TarInfo, bytes]:
    """A member of a size of which only some bytes are there, as `tar --sparse --format=pax` writes it."""
    kind = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    of = {"GNU.sparse.name": name, "GNU.sparse.realsize": str(size)}
    holes = f"1\n{at}\n{len(data)}\n".encode()
    return member(f"GNUSparseFile.0/{Path(name).name}", holes.ljust(512, b"\0") + data, pax_headers=kind | of)


def packed(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w", sound: bool = True) -> Path:
    """An archive of a sound log directory and these members."""
    every = [member(name, data) for name, data in held().items()] if sound else []
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for info, data in (*every, *members):
            tar.addfile(info, io.BytesIO(data))
    return path


# ---- what is read
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.tgz", "w:gz"), ("a.tar.bz2", "w:bz2"), ("a.tbz2", "w:bz2"),
        ("a.tar.xz", "w:xz"), ("a.txz", "w:xz"), ("bundle", "w:gz"), ("bundle.bin", "w"), ("wrong.tar", "w:xz"),
    ],
)  # fmt: skip
def test_an_archive_is_judged_as_what_it_holds(name: str, mode: str, tmp_path: Path) -> None:
    path = packed(tmp_path / name, mode=mode)
    found = engine.audit([path], strict=True)
    with tarfile.open(path) as tar:
        tar.extractall(tmp_path / "there", filter="data")
    there = engine.audit([tmp_path / "there"], strict=True)
    assert found.archives == (str(path),)
    assert found.partitions == tuple(
        replace(p, path=p.path.replace(str(tmp_path / "there"), str(path))) for p in there.partitions
    )
    assert found.verdict == there.verdict == "sound"


@pytest.mark.parametrize("name", ["single-basic/nodes-after-clean-stop", "compaction-retention/node-after-sigkill-1"])
def test_a_recording_is_judged_in_its_archive(name: str) -> None:
    """One as tar writes it with --sparse, too."""
    r = next(r for r in recorded() if r.name == name)
    assert wrongly_audited(r, engine.audit([r.archive], strict=True)) == []


@pytest.mark.deep
@pytest.mark.parametrize("r", recorded(), ids=lambda r: r.name)
def test_every_recording_is_judged_in_its_archive(r: object) -> None:
    assert wrongly_audited(r, engine.audit([r.archive], strict=True)) == []  # type: ignore[arg-type, attr-defined]


def test_names_are_those_in_the_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(held()[LOG])
    data[30] ^= 1
    other = member("node/t-0/x", b""), member("node/lost", kind=tarfile.DIRTYPE)
    path = packed(tmp_path / "a.tar", member(LOG, bytes(data)), *other, sound=False)
    with_meta = packed(tmp_path / "b.tar", member("./node/meta.properties", META), sound=False)
    found = engine.audit([path, with_meta], strict=True)
    assert [(f.clause, f.file) for f in found.findings] == [("BAT-3", f"{path}/{LOG}")]
    assert [d.path for d in found.directories] == [f"{path}/node", f"{with_meta}/node"]
    assert not [s for s in describe(found) if "kafkaspec dump" in s.again], "dump reads no archives"
    page = tmp_path / "page.html"
    code, out, err = run(capsys, path, "--html", page)
    assert code == 1
    for text in (out, err.replace(str(page), ""), page.read_text()):
        assert "kafkaspec-audit-" not in text
        assert "temporary" not in text


def test_two_archives_of_one_cluster_are_compared(tmp_path: Path) -> None:
    """What a message says of another file has that one's name too."""
    paths = []
    for n in (1, 2):
        files = held() | {"node/meta.properties": META.replace(b"node.id=1", b"node.id=%d" % n)}
        every = [member(name, data) for name, data in files.items()]
        paths.append(packed(tmp_path / f"{n}.tar", *every, sound=False))
    found = engine.audit(paths, strict=True)
    assert [f.clause for f in found.findings] == ["MTP-6"]
    assert f"that of {paths[0]}/node too" in found.findings[0].message


def test_an_archive_of_a_partition_is_a_part(tmp_path: Path) -> None:
    """Its files alone are known by the name of the archive."""
    files = [member(f"./{Path(n).name}", data) for n, data in held().items() if "/t-0/" in n]
    found = engine.audit([packed(tmp_path / "t-3.tar.gz", *files, mode="w:gz", sound=False)], strict=True)
    assert found.part is not None
    assert [(p.topic, p.partition, p.path) for p in found.partitions] == [("t", 3, str(tmp_path / "t-3.tar.gz"))]
    assert (found.verdict, found.notes) == ("sound", ())


def test_given_twice_it_is_judged_once(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.tar")
    (tmp_path / "b.tar").symlink_to(path)
    found = engine.audit([path, tmp_path / "b.tar"], strict=True)
    assert found.notes == (f"{tmp_path / 'b.tar'}: given twice; audited once",)
    assert len(found.directories) == 1


def test_an_archive_in_an_archive_is_a_file(tmp_path: Path) -> None:
    inner = packed(tmp_path / "inner.tar").read_bytes()
    found = engine.audit([packed(tmp_path / "a.tar", member("node/inner.tar", inner))], strict=True)
    assert found.verdict == "sound"
    with pytest.raises(UserError, match="nothing of Kafka's"):
        engine.audit([packed(tmp_path / "b.tar", member("inner.tar", inner), sound=False)])


def test_what_is_no_archive(tmp_path: Path) -> None:
    for name, data in {
        "f.png": b"\x89PNG",
        "empty": b"",
        f"{ZERO}.log": b"\x1f\x8b",
        "leader-epoch-checkpoint": b"BZh",
    }.items():
        (tmp_path / name).write_bytes(data)
        assert not is_archive(tmp_path / name)
    (tmp_path / "d.tar").mkdir()
    os.mkfifo(tmp_path / "f.tar")
    assert not is_archive(tmp_path / "d.tar")
    assert not is_archive(tmp_path / "f.tar")
    assert not is_archive(tmp_path / "gone.tar")


# ---- what is refused
def cut(path: Path, size: int) -> Path:
    path.write_bytes(path.read_bytes()[:size])
    return path


def garbage(path: Path, at: int) -> Path:
    data = bytearray(path.read_bytes())
    data[at : at + 40] = b"\x55" * 40
    path.write_bytes(data)
    return path


def huge(path: Path) -> Path:
    """Of the first member, which has holes: it is passed over as far as it says that it goes."""
    info, data = sparse("node/x", 10, b"12345")
    info.size = 1 << 43
    path.write_bytes(info.tobuf(tarfile.PAX_FORMAT) + data.ljust(1024, b"\0") + path.read_bytes())
    return path


Make = Callable[[Path], Path]


def plus(info: tuple[tarfile.TarInfo, bytes], *more: tuple[tarfile.TarInfo, bytes]) -> Make:
    """A sound archive and these members."""
    return lambda folder: packed(folder / "a.tar", info, *more)


def broken(how: Callable[[Path, int], Path], at: int, name: str = "a.tar", mode: str = "w") -> Make:
    """A sound archive, cut or damaged there."""
    return lambda folder: how(packed(folder / name, mode=mode), at)


UNREAD = "no archive that can be read"
REFUSED: dict[str, tuple[Make, str]] = {
    "a link": (plus(member("node/x", kind=tarfile.SYMTYPE, linkname="t-0")), "node/x: a link"),
    "a hard link": (plus(member("node/x", kind=tarfile.LNKTYPE, linkname=LOG)), "node/x: a link"),
    "a file behind a link": (
        plus(member("x", kind=tarfile.SYMTYPE, linkname="/tmp"), member("x/f", b"1")),
        "x: a link",
    ),
    "a device": (plus(member("node/d", kind=tarfile.CHRTYPE)), "node/d: neither a file nor"),
    "a FIFO": (plus(member("node/d", kind=tarfile.FIFOTYPE)), "node/d: neither a file nor"),
    "an unknown kind": (plus(member("node/d", kind=b"Z")), "node/d: neither a file nor"),
    "an absolute name": (plus(member("/etc/x", b"1")), "/etc/x: an absolute name"),
    "a name upwards": (plus(member("node/../../x", b"1")), "a name that leads out"),
    "a control character": (plus(member("node/a\x1b[2J", b"1")), "control characters"),
    "a name of no UTF-8": (plus(member("node/a\udcff", b"1")), "or of no UTF-8"),
    "a name twice": (plus(member(LOG, b"")), f"{LOG}: there twice"),
    "a name twice, otherwise written": (plus(member(f"./{LOG}", b"")), f"{LOG}: there twice"),
    "a file as a folder": (plus(member(f"{LOG}/x", b"")), f"{LOG}/x: there twice"),
    "a folder as a file": (plus(member("node", b"")), "node: there twice"),
    "too deep": (plus(member("a/" * 20 + "x", b"")), "more than 16 folders deep"),
    "a long name": (plus(member("a" * 300, b"")), "cannot be unpacked: file name too long"),
    "long headers": (plus(member("x", pax_headers={"comment": "x" * (2 << 20)})), "more than 1 MiB"),
    "holes that overlap": (plus(sparse("node/x", 10, b"12345", at=-3)), "holes that overlap"),
    "more than its size": (plus(sparse("node/x", 10, b"12345", at=8)), "more bytes than its size"),
    "a size of tebibytes": (lambda folder: huge(packed(folder / "a.tar")), "unexpected end of data"),
    "nothing": (broken(cut, 0), f"{UNREAD}: empty file"),
    "text": (broken(garbage, 0), UNREAD),
    "a header": (broken(garbage, 1024), "cut short or damaged: no member begins at byte 1024"),
    "cut in a header": (broken(cut, 1100), "cut short"),
    "cut in a member": (broken(cut, 700), "unexpected end of data"),
    "cut between members": (broken(cut, 1024), "cut short"),
    "gzip, cut": (broken(cut, -9, "a.tgz", "w:gz"), UNREAD),
    "gzip, its CRC cut": (broken(cut, -3, "a.tgz", "w:gz"), UNREAD),
    "gzip, damaged": (broken(garbage, 60, "a.tgz", "w:gz"), UNREAD),
    "bz2, cut": (broken(cut, -9, "a.tbz2", "w:bz2"), UNREAD),
    "xz, cut": (broken(cut, -9, "a.txz", "w:xz"), UNREAD),
    "xz, damaged": (broken(garbage, 60, "a.txz", "w:xz"), UNREAD),
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused_in_a_line(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, said = REFUSED[what]
    path = make(tmp_path)
    beside = sorted(p.name for p in tmp_path.iterdir())
    code, out, err = run(capsys, path)
    assert (code, out) == (2, "")
    assert err.startswith(f"kafkaspec: {path}: ")
    assert said in err
    assert err.count("\n") == 1
    assert err.isprintable() or err[:-1].isprintable()
    assert sorted(p.name for p in tmp_path.iterdir()) == beside


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path / "a.tgz", member("node/zeros", bytes(3 << 20)), mode="w:gz")
    assert engine.audit([path], strict=True).verdict == "sound"
    for name, value, said in (
        ("MOST_MEMBERS", 3, "more than 3 members"),
        ("MOST_BYTES", 1 << 20, "it holds more than"),
        ("ALWAYS_BYTES", 1 << 20, "more than 250 times its own size"),
        ("SPARE_SHARE", 1, "not enough room"),
    ):
        with monkeypatch.context() as m:
            m.setattr(archive, name, value)
            with pytest.raises(UserError, match=said):
                engine.audit([path])


def test_the_disk_is_not_filled_by_a_bomb(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stopped when it has written what is allowed, not when it has written all."""
    monkeypatch.setattr(archive, "ALWAYS_BYTES", 1 << 20)
    path = packed(tmp_path / "a.tgz", member("node/zeros", bytes(8 << 20)), mode="w:gz")
    read = archive._Stream.read
    most = 0

    def reading(self: archive._Stream, size: int) -> bytes:
        nonlocal most
        most = max(most, sum(p.stat().st_blocks * 512 for p in temporary.rglob("*")))
        return read(self, size)

    monkeypatch.setattr(archive._Stream, "read", reading)
    with pytest.raises(UserError, match="times its own size"):
        engine.audit([path])
    assert 0 < most <= 250 * path.stat().st_size + (1 << 16) < 8 << 20


def test_headers_one_behind_the_other(tmp_path: Path) -> None:
    """Each is read by a call within the last one's; and none of them is a member."""
    buffer = io.BytesIO()
    for n in range(3000):
        buffer.write(tarfile.TarInfo.create_pax_global_header({"comment": f"{n}"}))
    (tmp_path / "a.tar").write_bytes(buffer.getvalue() + packed(tmp_path / "b.tar").read_bytes())
    with pytest.raises(UserError):
        engine.audit([tmp_path / "a.tar"])


def test_a_member_of_many_tebibytes(tmp_path: Path) -> None:
    """Holes take no room and no time."""
    data = held()[LOG]
    index = sparse(f"node/t-0/{ZERO}.index", 10 << 20, b"")
    log = sparse(LOG, 3 * TIB, data)
    rest = [member(n, d) for n, d in held().items() if n != LOG and not n.endswith("0.index")]
    began = time.process_time()
    found = engine.audit([packed(tmp_path / "a.tar", log, index, *rest, sound=False)], strict=True)
    assert time.process_time() - began < 10
    (said,) = (f for f in found.findings if f.clause == "BAT-1")
    assert said.message.startswith(f"{3 * TIB - len(data)} bytes of zeros")
    assert [f.clause for f in found.findings if f.clause == "SEG-28"] == ["SEG-28"]
    assert found.partitions[0].records == 5


# ---- signals
def heard() -> None:
    """Signals end a program, also where the tests were begun in the background."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), pytest.param(signal.SIGHUP, 129, marks=pytest.mark.deep)],
)
def test_a_signal_leaves_nothing(number: int, code: int, tmp_path: Path, temporary: Path) -> None:
    many = [member(f"node/e-{n}", kind=tarfile.DIRTYPE) for n in range(5_000)]
    path = packed(tmp_path / "a.tar", *many)
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "kafkaspec", "audit", str(path)]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heard
    )
    try:
        while process.poll() is None and not list(temporary.glob("*/0/a/node/t-0")):
            time.sleep(0.005)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out) == (code, "")
    assert err in ("", "kafkaspec: interrupted\n")


# ---- mutated archives
def refusal(path: Path) -> str | None:
    """Why an archive is not judged; None if it is. Twenty seconds of work are enough."""

    def late(*_: object) -> None:
        raise AssertionError(f"{path} takes too long")

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, 20)
    try:
        engine.audit([path], strict=True)
    except UserError as e:
        return str(e)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def mutated(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        at = rng.randrange(len(out))
        at -= rng.choice([0, at % 512 if at >= 512 else 0])
        match rng.randrange(7):
            case 0:
                out[at % len(out)] ^= 1 << rng.randrange(8)
            case 1:
                del out[at:]
            case 2:
                out[at : at + 512] = rng.randbytes(512)
            case 3:
                out[at:at] = out[max(0, at - 1024) : at]
            case 4:
                del out[at : at + rng.choice([1, 512, 1024])]
            case 5:  # a field of a header: another number, and its checksum made right
                header = 512 * (at // 512)
                block = out[header : header + 512]
                if len(block) == 512:
                    first = rng.choice([100, 108, 124, 136, 156, 157, 257, 329, 345])
                    block[first : first + 8] = rng.choice(
                        [b"77777777", b"\xff" * 8, b"\x80" + b"\x7f" * 7, b"-1      ", bytes(8)]
                    )
                    block[148:156] = b" " * 8
                    block[148:156] = b"%06o\0 " % sum(block)
                    out[header : header + 512] = block
            case _:
                out[at : at + 8] = b"\0" * 8
        if len(out) < 2:
            break
    return bytes(out)


def judged_or_refused(seeds: range, tmp_path: Path, temporary: Path) -> int:
    """How many of the mutated archives are refused. Each is judged or refused in a line, and writes nothing beside."""
    originals = [
        packed(tmp_path / "a.tar", sparse("node/t-0/x", 1 << 30, b"12345", at=512), member("y" * 150, b"1")),
        packed(tmp_path / "a.tgz", mode="w:gz"), packed(tmp_path / "a.tbz2", mode="w:bz2"),
        packed(tmp_path / "a.txz", mode="w:xz"),
    ]  # fmt: skip
    refused = 0
    for seed in seeds:
        rng = random.Random(seed)
        original = originals[0] if seed % 2 else rng.choice(originals)
        path = tmp_path / f"m{original.suffix}"
        path.write_bytes(mutated(original.read_bytes(), rng))
        before = sorted(p.name for p in tmp_path.iterdir())
        why = refusal(path)
        refused += why is not None
        assert why is None or why.startswith(f"{path}: "), seed
        assert "\n" not in (why or ""), seed
        assert str(temporary) not in (why or ""), seed
        assert sorted(p.name for p in tmp_path.iterdir()) == before, seed
        assert list(temporary.iterdir()) == [], seed
    return refused


def test_mutated_archives(tmp_path: Path, temporary: Path) -> None:
    assert 10 < judged_or_refused(range(40), tmp_path, temporary) < 40


@pytest.mark.deep
def test_many_mutated_archives(tmp_path: Path, temporary: Path) -> None:
    judged_or_refused(range(40, 2000), tmp_path, temporary)
