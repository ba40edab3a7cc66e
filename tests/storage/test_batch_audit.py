"""The audit's findings about batches: each damage once, at its byte, with what a restart does about it."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kafkaspec.audit.check import Log, TopicConfig
from kafkaspec.audit.files import PartitionFiles, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.storage.batch import BatchCheck
from kafkaspec.impl.common import scan
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import Chunk
from kafkaspec.impl.common.writer import write_batches
from kafkaspec.spec.common.compression import LIMIT, compress
from tests.storage.segments import FIRST, NOW, batches, message, sealed


def log_of(folder: Path, *contents: bytes, first: int = FIRST) -> Log:
    """A log of segments with these contents, each with an offset index, base offsets a thousand apart."""
    found = list[Segment]()
    for i, data in enumerate(contents):
        base = first + 1000 * i
        path = folder / f"{base:020}.log"
        path.write_bytes(data)
        index = path.with_suffix(".index")
        index.write_bytes(b"")
        found.append(Segment(base, File(path, len(data)), File(index, 0)))
    return Log(PartitionFiles(folder, "topic", 0, segments=tuple(found)))


def findings(log: Log) -> list[Finding]:
    """What the check says of a log."""
    check, out = BatchCheck(log), list[Finding]()
    for s in log.files.segments:
        assert s.log is not None
        out += check.begin(s)
        for x in scan.read_segment(s.log, records=check.needs_records):
            out += check.chunk(s, x) if isinstance(x, Chunk) else check.ended(s, x)
    return sorted([*out, *check.end()], key=Finding.order)


def data(seed: int, first: int = FIRST) -> list[bytes]:
    """Batches of records; one record a batch."""
    r = random.Random(seed)
    return [
        bytes(write_batches(None, [r.randbytes(50)], NOW, batch_records=1, base_offset=first + i)) for i in range(9)
    ]


def test_nothing_to_say_of_good_batches(tmp_path: Path) -> None:
    assert not findings(log_of(tmp_path, b"".join(batches(random.Random(1))), b"", b"".join(data(2, FIRST + 2000))))


@pytest.mark.parametrize("clean", [True, False, None])
def test_a_wrong_checksum_and_what_a_restart_does(tmp_path: Path, clean: bool | None) -> None:
    parts = data(3)
    parts[4] = parts[4][:-3] + b"!" + parts[4][-2:]
    log = replace(log_of(tmp_path, b"".join(parts), b"".join(data(4, FIRST + 1000))), clean=clean, recovery_point=FIRST)
    (found,) = findings(log)
    start = len(b"".join(parts[:4]))
    assert (found.severity, found.position, found.offset) == (Severity.ERROR, start + 17, FIRST + 4)
    assert found.clause == scan.TEXTS[scan.Problem.CRC][0]
    assert found.topic == "topic"
    lost = f"offset {FIRST + 4} and up to {FIRST + 1008} are lost"
    assert (lost in found.recovery) == (clean is not True)
    assert (f"byte {start}" in found.recovery) == (clean is not True)
    assert ("consumer gets an error" in found.recovery) == (clean is not False)


def test_a_wrong_length_names_the_stretch(tmp_path: Path) -> None:
    parts = data(5)
    parts[2] = parts[2][:8] + b"\0\0\1\0" + parts[2][12:]
    (found,) = findings(log_of(tmp_path, b"".join(parts)))
    start = len(b"".join(parts[:2]))
    assert (found.severity, found.position, found.offset) == (Severity.ERROR, start + 8, FIRST + 2)
    assert f"length {len(parts[2]) - 12}" in found.expected


def test_the_first_batch_of_a_chunk_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "ROWS", 4)
    parts = data(6)
    parts[4] = parts[4][:8] + bytes(4) + parts[4][12:]
    (found,) = findings(log_of(tmp_path, b"".join(parts)))
    assert found.offset == FIRST + 4


def test_what_recovery_does_not_see(tmp_path: Path) -> None:
    parts = data(7)
    parts[1] = sealed(parts[1][:35] + bytes(8) + parts[1][43:])
    parts[3] = parts[3][:16] + b"\3" + parts[3][17:]
    parts[5] = parts[5][:16] + b"\1" + parts[5][17:]
    stamp, three, one = findings(log_of(tmp_path, b"".join(parts)))
    assert (stamp.expected, stamp.message.endswith("0 in the header")) == (f"{NOW}, as in the records", True)
    assert stamp.recovery.startswith("nothing")
    assert three.recovery.startswith("nothing")
    assert "cuts" in one.recovery
    assert [f.position for f in (three, one)] == [len(b"".join(parts[:i])) + 16 for i in (3, 5)]


@pytest.mark.parametrize(
    ("clean", "which", "severity"),
    [
        (True, 1, Severity.ERROR),
        (False, 1, Severity.LEFTOVER),
        (None, 1, Severity.LEFTOVER),
        (False, 0, Severity.ERROR),
        (None, 0, Severity.ERROR),
    ],
)
@pytest.mark.parametrize("tail", ["zeros", 60, 9])
def test_a_cut_batch(tmp_path: Path, clean: bool | None, which: int, severity: Severity, tail: str | int) -> None:
    contents = [b"".join(data(8)), b"".join(data(9, FIRST + 1000))]
    size = len(contents[which])
    contents[which] += data(8, FIRST + 1009)[0][:tail] if isinstance(tail, int) else bytes(100)
    (found,) = findings(replace(log_of(tmp_path, *contents), clean=clean))
    end = FIRST + 1000 * which + 9
    assert (found.severity, found.position, found.offset) == (severity, size, end)
    if severity is Severity.LEFTOVER:
        assert f"byte {size}" in found.recovery
        assert str(end) in found.recovery


def test_a_tail_that_no_append_leaves(tmp_path: Path) -> None:
    log = log_of(tmp_path, b"".join(data(10)) + random.Random(1).randbytes(300))
    (found,) = findings(replace(log, clean=False))
    assert found.severity is Severity.ERROR


def test_old_formats_once_a_segment(tmp_path: Path) -> None:
    old = [b"".join(message(f + i, 1, b"k", b"v") for i in range(9)) for f in (0, 1000)]
    found = findings(log_of(tmp_path, *old, first=0))
    assert [(f.severity, f.position, f.offset) for f in found] == [(Severity.UNCHECKED, 0, n) for n in (0, 1000)]
    assert "format 1" in found[0].message


@pytest.mark.parametrize(
    ("policy", "topic", "many"),
    [("delete", "topic", 1), ("compact", "topic", 0), (None, "topic", 0), (None, "__cluster_metadata", 1)],
)
def test_a_record_that_nobody_may_take_out(tmp_path: Path, policy: str | None, topic: str, many: int) -> None:
    parts = data(11)
    parts[8] = sealed(parts[8][:23] + b"\0\0\0\4" + parts[8][27:])
    log = replace(log_of(tmp_path, b"".join(parts)), config=TopicConfig(cleanup_policy=policy))
    found = findings(replace(log, files=replace(log.files, topic=topic)))
    assert [(f.position, f.offset) for f in found] == [(len(b"".join(parts[:8])) + 57, FIRST + 8)] * many


def test_more_than_is_decompressed_is_not_judged(tmp_path: Path) -> None:
    large = write_batches(None, [bytes(LIMIT)], NOW, batch_records=1, attributes=4, compress=partial(compress, 4))
    (found,) = findings(log_of(tmp_path, bytes(large), first=0))
    assert (found.severity, found.recovery) == (Severity.UNCHECKED, "")
