"""`kafkaspec dump`: whole segments, damaged ones, the small files, and Kafka's own tool beside it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.audit.recorded import unpack
from kafkaspec.cli.main import main
from kafkaspec.impl.storage.batch import Encoder
from kafkaspec.spec.common import record_format as spec
from kafkaspec.spec.common.record_format import LogRecord
from kafkaspec.spec.storage import batch_trial
from tests.kafka import run_class

NAME = "00000000000000000000.log"
NOW = 1_700_000_000_000
RECORDINGS = Path(__file__).parent.parent / "recordings" / "audit"


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as e:
        main(["dump", *map(str, arguments)])
    said = capsys.readouterr()
    assert isinstance(e.value.code, int)
    return e.value.code, said.out, said.err


def three() -> list[bytes]:
    """Plain, compressed and transactional, and a marker."""
    first = Encoder(0, leader_epoch=2)
    first.append(NOW, b"k", b"v", [(b"h", b"x")])
    first.append(NOW + 5, None, b"\xff\xfe")
    second = Encoder(
        2, leader_epoch=2, codec="zstd", producer_id=9, producer_epoch=1, base_sequence=0, transactional=True
    )
    second.append(NOW, b"key\n", b"long " * 50)
    third = Encoder(3, leader_epoch=2, producer_id=9, producer_epoch=1, transactional=True, control=True)
    third.append(NOW, spec.COMMIT, batch_trial.EPOCH)
    return [first.finish(), second.finish(), third.finish()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / NAME).write_bytes(b"".join(three()))
    return tmp_path / NAME


def test_batches_and_records_for_people(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, path)
    sizes = [len(b) for b in three()]
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        str(path),
        f"@0  0–1  2 records  {sizes[0]} bytes  epoch 2  2023-11-14 22:13:20.005",
        "    0  2023-11-14 22:13:20.000  k = v  [h: x]",
        "    1  2023-11-14 22:13:20.005  null = 0xfffe",
        f"@{sizes[0]}  2  1 record  {sizes[1]} bytes  epoch 2  2023-11-14 22:13:20.000  zstd  "
        "producer 9 epoch 1 sequence 0  transactional",
        "    2  2023-11-14 22:13:20.000  key\\n = " + ("long " * 50)[:72] + "… (250 bytes)",
        f"@{sum(sizes[:2])}  3  1 record  {sizes[2]} bytes  epoch 2  2023-11-14 22:13:20.000  "
        "producer 9 epoch 1  transactional  control",
        "    3  2023-11-14 22:13:20.000  COMMIT  coordinator epoch 7",
    ]


def test_json_has_a_line_for_each_batch_and_nothing_is_cut(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, path, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [b["baseOffset"] for b in lines] == [0, 2, 3]
    assert lines[0]["records"][1] == {
        "offset": 1, "timestamp": NOW + 5, "sequence": -1, "key": None, "value": {"hex": "fffe"}, "headers": [],
    }  # fmt: skip
    assert lines[1]["records"][0]["value"] == "long " * 50
    assert lines[2]["records"][0]["control"] == {
        "type": "COMMIT", "version": 0, "coordinatorEpoch": 7, "valueVersion": 0,
    }  # fmt: skip


def test_from_an_offset_on_and_without_records(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, path, "--offset", "1", "--no-records", "--json")
    assert [json.loads(line)["baseOffset"] for line in out.splitlines()] == [0, 2, 3]
    _, out, _ = run(capsys, path, "--offset", "2", "--no-records", "--json")
    assert [json.loads(line)["baseOffset"] for line in out.splitlines()] == [2, 3]
    assert '"records"' not in out


@pytest.mark.parametrize(("at", "clause"), [(8, "BAT-1"), (16, "BAT-2"), (40, "BAT-3")])
def test_damage_is_shown_and_the_dump_goes_on(
    path: Path, capsys: pytest.CaptureFixture[str], at: int, clause: str
) -> None:
    data = bytearray(path.read_bytes())
    start = len(three()[0])
    data[start + at] ^= 0x40
    path.write_bytes(data)
    code, out, err = run(capsys, path, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (1, "")
    assert [b.get("baseOffset") for b in lines if "problem" not in b] == [0, 3]
    assert [b["problem"]["clause"] for b in lines if "problem" in b] == [clause]
    assert start <= lines[1]["problem"]["position"] <= start + 21
    code, out, _ = run(capsys, path)
    assert code == 1
    assert f"({clause})" in out


def test_damage_inside_shows_the_records_before_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [LogRecord(n, NOW, b"k", b"v") for n in range(3)]
    data = spec.encode(spec.built(0, records))
    (tmp_path / NAME).write_bytes(batch_trial.patched(data, len(data) - 3, b"\x7e"))
    code, out, _ = run(capsys, tmp_path / NAME)
    assert code == 1
    assert [line.split()[0] for line in out.splitlines()[2:]] == ["0", "1", "!!"]
    assert "(BAT-8)" in out


def test_a_cut_tail(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_bytes(path.read_bytes()[:-5])
    code, out, _ = run(capsys, path)
    assert code == 1
    assert out.splitlines()[-1].startswith(f"@{len(b''.join(three()[:2]))}  !! a cut batch")


def test_what_cannot_be_read(tmp_path: Path, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign = tmp_path / "notes.txt"
    foreign.write_text("x")
    for wrong in (tmp_path / "absent.log", tmp_path, foreign):
        code, out, err = run(capsys, wrong, path)
        assert code == 2
        assert err.count("\n") == 1
        assert str(wrong) in err
        assert "COMMIT" in out  # the other file is dumped all the same
    (tmp_path / "empty.log").write_bytes(b"")
    assert run(capsys, tmp_path / "empty.log")[0] == 0


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"".join(three()) * 20_000)
    command = [sys.executable, "-m", "kafkaspec", "dump", str(tmp_path / NAME)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as dump:
        assert dump.stdout is not None
        assert dump.stderr is not None
        assert dump.stdout.readline().startswith(str(tmp_path).encode())
        dump.stdout.close()
        assert dump.stderr.read() == b""
        dump.wait(timeout=60)


# ---- real files
@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some recorded log directories."""
    folder = tmp_path_factory.mktemp("recorded")
    for archive in sorted(RECORDINGS.glob("*/*.tar.gz")):
        if archive.parent.name in ("single-basic", "controller-metadata", "compaction-retention", "classic-3.9.1"):
            unpack(archive, folder / f"{archive.parent.name}-{archive.name}")
    if not any(folder.iterdir()):
        pytest.skip("no recordings of log directories here")
    return folder


def chosen(folder: Path, pattern: str, most: int) -> list[Path]:
    """Some of the files, none empty, from as many folders as there are."""
    found = sorted((p for p in folder.rglob(pattern) if p.stat().st_size), key=lambda p: (str(p)[::-1], p))
    return found[:: max(1, len(found) // most)][:most]


@pytest.mark.parametrize(
    "pattern",
    ["*.index", "*.timeindex", "*.txnindex", "*.snapshot", "*checkpoint", "partition.metadata", "meta.properties"],
)
def test_the_small_files_of_real_brokers(unpacked: Path, capsys: pytest.CaptureFixture[str], pattern: str) -> None:
    files = chosen(unpacked, pattern, 8)
    assert files
    code, out, err = run(capsys, *files)
    assert (code, err) == (0, "")
    code, lines, _ = run(capsys, *files, "--json")
    assert code == 0
    assert all("file" in json.loads(line) for line in lines.splitlines())
    assert len(out.splitlines()) == len(lines.splitlines()) + len(files)


def theirs(text: str) -> Iterator[tuple[dict[str, str], list[dict[str, str]]]]:
    """What DumpLogSegments says of each batch, and of its records."""
    batch: dict[str, str] | None = None
    records: list[dict[str, str]] = []
    for line in text.splitlines():
        if line.startswith("baseOffset: "):
            if batch is not None:
                yield batch, records
            batch, records = dict(re.findall(r"(\w+): (\S+)", line)), []
        elif line.startswith(("offset: ", "Dumping ")):  # of format 0 or 1; the next file
            if batch is not None:
                yield batch, records
            batch = None
        elif line.startswith("| offset: ") and batch is not None:
            records.append(dict(re.findall(r"(\w+): (\[[^\]]*\]|\S+)", line.split(" key: ")[0].split(" payload: ")[0])))
            records[-1]["line"] = line
    if batch is not None:
        yield batch, records


@pytest.mark.deep
def test_kafkas_own_tool_says_the_same(unpacked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every field that both print, of every batch and record, of segments of every codec and with control batches."""
    files = chosen(unpacked, "*.log", 60) + chosen(unpacked, "0*.checkpoint", 2)
    main_class = "org.apache.kafka.tools.DumpLogSegments"
    said = run_class(main_class, "--deep-iteration", "--print-data-log", "--files", ",".join(map(str, files)))
    code, out, err = run(capsys, *files, "--json")
    assert (code, err) == (0, "")
    ours, kinds = [json.loads(line) for line in out.splitlines()], set()
    rest = iter([b for b in ours if "baseOffset" in b])
    for batch, records in theirs(said):
        b = next(rest)
        kinds |= {b["codec"], "control" if b["control"] else "data", "horizon" if b["deleteHorizon"] else ""}
        type = b["timestampType"]
        assert {
            k: int(batch[k]) for k in ("baseOffset", "lastOffset", "count", "size", "crc", "magic", "position")
        } == {k: b[k] for k in ("baseOffset", "lastOffset", "count", "size", "crc", "magic", "position")}
        assert {k: int(batch[k]) for k in ("baseSequence", "lastSequence", "producerId", "producerEpoch", type)} == {
            **{k: b[k] for k in ("baseSequence", "lastSequence", "producerId", "producerEpoch")},
            type: b["maxTimestamp"],
        }  # fmt: skip
        assert int(batch["partitionLeaderEpoch"]) == b["leaderEpoch"]
        assert (batch["isTransactional"], batch["isControl"]) == tuple(
            str(b[k]).lower() for k in ("transactional", "control")
        )
        horizon = b["deleteHorizon"]
        assert batch["deleteHorizonMs"] == ("OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]")
        assert (batch["compresscodec"], batch["isvalid"]) == (b["codec"], "true")
        assert len(records) == len(b["records"])
        for their, our in zip(records, b["records"], strict=True):
            same_record(their, our, type)
    assert next(rest, None) is None
    assert {"none", "gzip", "snappy", "lz4", "zstd", "control", "horizon"} <= kinds


def same_record(their: dict[str, str], our: dict[str, Any], type: str) -> None:
    def size(content: Any) -> int:
        return -1 if content is None else len(raw(content))

    def raw(content: Any) -> bytes:
        return bytes.fromhex(content["hex"]) if isinstance(content, dict) else content.encode()

    assert [int(their[k]) for k in ("offset", "keySize", "valueSize", "sequence")] == [
        our["offset"], size(our["key"]), size(our["value"]), our["sequence"],
    ]  # fmt: skip
    assert int(their[type]) == our["timestamp"]
    assert their["headerKeys"] == f"[{','.join(k for k, _ in our['headers'])}]"
    line = their["line"]
    if "control" in our and our["control"]["type"] in ("ABORT", "COMMIT"):
        said = our["control"]
        assert line.endswith(f" endTxnMarker: {said['type']} coordinatorEpoch: {said['coordinatorEpoch']}")
    elif isinstance(our["key"], str) and isinstance(our["value"], str) and (our["key"] + our["value"]).isprintable():
        assert line.endswith(f" key: {our['key']} payload: {our['value']}")
