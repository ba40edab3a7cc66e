"""What cannot be read hides nothing else, and nothing is concluded from what is not there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from kafkaspec.audit import engine
from kafkaspec.audit.check import Log, LogCheck, TopicConfig
from kafkaspec.audit.discover import partition_files
from kafkaspec.audit.files import PartitionFiles, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.management.compaction import CompactionCheck
from kafkaspec.audits.storage.log_loader import OffsetCheck
from kafkaspec.audits.storage.producer_state import ProducerCheck
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.impl.common.scan import read_segment
from kafkaspec.mutants.audit import META, log_file, one_record
from tests.audit.conftest import Copy
from tests.audit.kills.write import Row, abort, b, chunks, p, t

CLUSTER, CLEANED = "cluster3-faults/nodes-after-clean-stop", "compaction-retention/node-after-clean-stop"
Put = Callable[[Path], None]


def fifo(path: Path) -> None:
    os.mkfifo(path)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def large(path: Path) -> None:
    with path.open("wb") as f:
        f.truncate(300 << 20)


def replaced(path: Path, put: Put = dangling) -> Path:
    """Another thing is in the file's place."""
    path.unlink(missing_ok=True)
    put(path)
    return path


def flipped(path: Path, at: int = 100) -> None:
    """A bit that the CRC of the first batch covers."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def bad(found: engine.Audit) -> list[tuple[str, str]]:
    """Rules and files of the findings, but for leftovers."""
    return sorted((f.clause, Path(f.file).name) for f in found.findings if f.severity > Severity.LEFTOVER)


def told(found: engine.Audit) -> set[str]:
    """The files that the problems name."""
    return {p.partition(": ")[0] for p in found.problems}


# ---- what is found all the same
def logs(partition: Path) -> list[Path]:
    return sorted(partition.glob("*.log"))


@pytest.mark.parametrize("put", [fifo, loop, dangling, large])
def test_a_checkpoint_that_cannot_be_read_hides_no_damage(copied: Copy, put: Put) -> None:
    partition = copied(CLUSTER)[1] / "orders-0"
    first, *_, last = logs(partition)
    flipped(first)
    flipped(last)
    epochs = replaced(partition / "leader-epoch-checkpoint", put)
    found = engine.audit([partition.parent])
    assert bad(found) == [("BAT-3", first.name), ("BAT-3", last.name)]
    assert told(found) == {str(epochs)}
    assert found.exit_code == 1


@pytest.mark.parametrize("put", [fifo, loop, dangling])
@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_segment_that_cannot_be_read_hides_no_damage_of_others(copied: Copy, put: Put, which: int) -> None:
    partition = copied(CLUSTER)[1] / "orders-0"
    every = logs(partition)
    unread = every.pop(which)
    for log in every:
        flipped(log)
    replaced(unread, put)
    found = engine.audit([partition.parent])
    assert bad(found) == [("BAT-3", log.name) for log in every]
    assert told(found) == {str(unread)}
    assert found.exit_code == 1
    (p,) = (p for p in found.partitions if p.path == str(partition))
    assert (p.findings, p.last_stable_offset) == (len(every), None)


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot"])
def test_an_index_that_cannot_be_read_hides_nothing_of_the_others(copied: Copy, suffix: str) -> None:
    partition = copied(CLUSTER)[1] / "orders-0"
    first, *_, second, last = logs(partition)
    unread = replaced(first.with_suffix(suffix))
    flipped(last)
    index = second.with_suffix(".index")
    index.write_bytes(b"\0\0\0\1\0\0\0\1" + index.read_bytes())
    found = engine.audit([partition.parent])
    assert {("BAT-3", last.name), ("OIX-24", index.name)} <= {*bad(found)}
    assert told(found) == {str(unread)}


def test_the_entry_of_an_epoch_is_compared_with_batches_as_before(copied: Copy) -> None:
    """Without the file the epochs of the batches are still looked at."""
    partition = copied(CLUSTER)[1] / "orders-0"
    replaced(partition / "leader-epoch-checkpoint")
    _, *_, last = logs(partition)
    data = bytearray(last.read_bytes())
    data[12:16] = bytes(4)
    last.write_bytes(data)
    assert ("LEC-19", last.name) in bad(engine.audit([partition.parent]))


def test_replicas_are_compared_where_both_can_be_read(copied: Copy) -> None:
    nodes = copied(CLUSTER)
    one, two = (n / "orders-0" for n in nodes[:2])
    unread, _, *_, last = logs(one)
    replaced(unread)
    clean = engine.audit(nodes)
    assert (bad(clean), told(clean)) == ([], {str(unread)})
    (at,) = {int(f.stem) for f in logs(two)} & {int(last.stem)}
    other = two / f"{at:020}.log"
    other.write_bytes(changed(other.read_bytes()))
    assert "RPL-4" in {clause for clause, _ in bad(engine.audit(nodes))}


def changed(segment: bytes) -> bytes:
    """The first batch with another record of its size, and the CRC of that."""
    size = 12 + int.from_bytes(segment[8:12], "big")
    batch = bytearray(segment[:size])
    batch[-2] ^= 1
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch) + segment[size:]


def test_one_checkpoint_of_a_directory_hides_no_other(copied: Copy) -> None:
    directory = copied(CLUSTER)[1]
    unread = replaced(directory / "recovery-point-offset-checkpoint")
    (directory / "log-start-offset-checkpoint").write_text("0\n7\n")
    found = engine.audit([directory])
    assert bad(found) == [("CKP-3", "log-start-offset-checkpoint")]
    assert told(found) == {str(unread)}


# ---- no false alarm
def said(found: engine.Audit) -> set[tuple[str, str, str]]:
    return {(f.clause, f.file, f.message) for f in found.findings}


@pytest.mark.parametrize("name", [CLUSTER, CLEANED])
def test_what_is_not_read_is_no_evidence(copied: Copy, name: str) -> None:
    """Of each log the first segment or the last, and of all every other one."""
    directories = copied(name)
    clean = engine.audit(directories)
    assert bad(clean) == []
    every = [logs(p) for d in directories for p in sorted(d.iterdir()) if p.is_dir()]
    for which in (slice(1), slice(-1, None), slice(None, None, 2), slice(1, None, 2)):
        kept = {log: log.read_bytes() for of in every for log in of[which]}
        for log in kept:
            replaced(log)
        found = engine.audit(directories)
        assert said(found) <= said(clean)
        assert told(found) == set(map(str, kept))
        assert found.exit_code == 2
        for log, data in kept.items():
            log.unlink()
            log.write_bytes(data)


@pytest.mark.parametrize("name", [CLUSTER, CLEANED])
def test_no_file_that_is_not_read_is_evidence(copied: Copy, name: str) -> None:
    """All small files of the partitions, a kind at a time."""
    directories = copied(name)
    clean = engine.audit(directories)
    for pattern in ("*.index", "*.timeindex", "*.txnindex", "*.snapshot", "leader-epoch-checkpoint"):
        kept = {f: f.read_bytes() for d in directories for f in d.glob(f"*/{pattern}")}
        for file in kept:
            replaced(file)
        found = engine.audit(directories)
        assert said(found) <= said(clean)
        assert told(found) <= set(map(str, kept))
        for file, data in kept.items():
            file.unlink()
            file.write_bytes(data)


# ---- the engine
class Written(LogCheck):
    """Writes down what it is told, and goes on."""

    calls: list[str] = []
    fails_at = "", -1

    def _told(self, what: str, segment: Segment) -> Iterable[Finding]:
        Written.calls.append(f"{what} {segment.base_offset}")
        if (what, segment.base_offset) == Written.fails_at:
            raise UserError("not there")
        return ()

    def begin(self, segment: Segment) -> Iterable[Finding]:
        return self._told("begin", segment)

    def chunk(self, segment: Segment, chunk: Chunk) -> Iterable[Finding]:
        return self._told("chunk", segment)

    def ended(self, segment: Segment, ending: object) -> Iterable[Finding]:
        return self._told("ended", segment)

    def skip(self, segment: Segment, problem: str) -> Iterable[Finding]:
        return self._told("skip", segment)

    def end(self) -> Iterable[Finding]:
        Written.calls.append("end")
        yield self.log.finding(Severity.WARNING, "XXX-1", "f", "said at the end")


class Ends(LogCheck):
    """It cannot go on without a segment."""

    def end(self) -> Iterable[Finding]:
        raise AssertionError


class NotMade(LogCheck):
    def __init__(self, log: Log) -> None:
        raise UserError("no file")


class NotBuilt(LogCheck):
    def __init__(self, log: Log) -> None:
        raise KeyError("a bug")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Of three segments."""
    for base in (0, 2, 4):
        for name, data in log_file("t-0", base, [one_record(n, leader_epoch=0) for n in (base, base + 1)]).items():
            (tmp_path / "d" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "d" / name).write_bytes(data)
    (tmp_path / "d" / "meta.properties").write_bytes(META)
    (tmp_path / "d" / "t-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    Written.calls, Written.fails_at = [], ("", -1)
    return Log(partition_files(tmp_path / "d" / "t-0", "t", 0), clean=True, start_known=True)


def read(log: Log, *of: type[LogCheck], strict: bool = True) -> engine.LogResult:
    return engine._read(log, of, strict=strict)


def test_a_segment_that_cannot_be_opened_is_told_to_each(log: Log) -> None:
    unread = replaced(log.files.path / f"{2:020}.log")
    found = read(log, Written, Ends)
    assert Written.calls == [
        "begin 0", "chunk 0", "ended 0", "begin 2", "skip 2", "begin 4", "chunk 4", "ended 4", "end",
    ]  # fmt: skip
    assert found.problems == [f"{unread}: a symbolic link to nothing"] * 2
    assert found.summary.log.unread == ((2, 4),)
    assert (found.summary.end, found.summary.facts.end_uncertain) == (6, False)
    assert [f.message for f in found.findings.kept] == ["said at the end"]
    with pytest.raises(UserError, match="symbolic link"):
        engine.audit_log(log, [Written])


def test_a_segment_that_breaks_off_is_told_to_each(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def reading(file: object, **more: object) -> object:
        chunk, *rest = read_segment(file, **more)  # type: ignore[arg-type]
        yield chunk
        if f"{4:020}" in str(file):
            raise UserError("input/output error")
        yield from rest

    monkeypatch.setattr(engine, "read_segment", reading)
    found = read(log, Written)
    assert Written.calls[-4:] == ["begin 4", "chunk 4", "skip 4", "end"]
    assert (found.problems, found.summary.log.unread) == (["input/output error"], ((4, 2**63 - 1),))
    assert (found.summary.end, found.summary.facts.end_uncertain, found.summary.records) == (4, True, 6)


@pytest.mark.parametrize("at", ["begin", "chunk", "ended"])
def test_a_check_that_cannot_read_a_file_of_a_segment_goes_on_with_the_next(log: Log, at: str) -> None:
    Written.fails_at = at, 2
    found = read(log, Written)
    steps = ["begin 2", "chunk 2", "ended 2"]
    mine = steps[: steps.index(f"{at} 2") + 1]
    assert Written.calls[3:] == [*mine, "skip 2", "begin 4", "chunk 4", "ended 4", "end"]
    assert (found.problems, found.summary.log.unread) == (["not there"], ())


def test_a_check_that_cannot_be_made_hides_no_other(log: Log) -> None:
    found = read(log, NotMade, Written)
    assert (found.problems, Written.calls[-1]) == (["no file"], "end")
    with pytest.raises(KeyError):
        read(log, NotBuilt)
    found = read(log, NotBuilt, Written, strict=False)
    assert (len(found.findings.kept), len(found.problems)) == (1, 1)
    assert "NotBuilt cannot check it: KeyError" in found.problems[0]


def test_what_is_not_there_any_more_is_said_when_it_is_read_again(log: Log) -> None:
    found = read(log, Written).summary
    replaced(log.files.path / f"{2:020}.log")
    with pytest.raises(UserError):
        list(engine.reread(found.log))
    found = read(log, Written).summary
    assert [s.base_offset for s, _ in engine.reread(found.log)] == [0, 4]


# ---- what a segment may have held that is not read
def found_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, check: type[LogCheck], rows: dict[int, list[Row] | None], **of: Any
) -> list[str]:
    """The rules that a check says are broken, of segments with these batches; None: it cannot be read."""
    segments = tuple(Segment(base, File(tmp_path / f"{base:020}.log", 0)) for base in rows)

    def reading(file: File, **more: object) -> Iterator[Chunk | Ending]:
        of_segment = rows[int(file.path.stem)]
        if of_segment is None:
            raise UserError("input/output error")
        yield from chunks(of_segment, 0, True)
        yield Ending(100, 100, "", max(r["last_offset"] for r in of_segment) + 1)

    monkeypatch.setattr(engine, "read_segment", reading)
    files = PartitionFiles(tmp_path, "t", 0, segments=segments)
    log = Log(files, **{"clean": False, "config": TopicConfig(cleanup_policy="delete"), **of})
    return [f.clause for f in read(log, check).findings.kept]


def test_a_transaction_may_have_ended_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And the next one of its producer have no records: then its abort has no entry in the index."""
    rows: dict[int, list[Row] | None] = {0: [t(0, 7, 0)], 1: None, 5: [b(5, 8)], 9: [abort(9, 7)]}
    assert found_in(monkeypatch, tmp_path, ProducerCheck, rows) == []
    rows[9] = [t(9, 7, 1), abort(10, 7)]
    assert found_in(monkeypatch, tmp_path, ProducerCheck, rows) == ["PSM-16"]
    cleaned: dict[str, Any] = {"config": TopicConfig(cleanup_policy="compact"), "cleaner_point": 5}
    rows = {0: [t(0, 7, 0)], 1: None, 5: [abort(5, 7)]}
    assert found_in(monkeypatch, tmp_path, CompactionCheck, rows, **cleaned) == []
    rows = {0: [t(0, 7, 0)], 1: [abort(1, 7)], 5: [b(5)]}
    assert found_in(monkeypatch, tmp_path, CompactionCheck, rows, **cleaned) == ["CMP-4"]


def test_a_producer_may_have_been_forgotten_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    later = [p(5, 7, 3, producer_epoch=3)]
    rows: dict[int, list[Row] | None] = {0: [p(0, 7, 0, producer_epoch=5)], 1: None, 5: later}
    assert found_in(monkeypatch, tmp_path, ProducerCheck, rows) == []
    rows[1] = [b(1, 4)]
    assert found_in(monkeypatch, tmp_path, ProducerCheck, rows) == ["PSM-6"]
    rows = {0: [p(0, 7, 0)], 1: None, 5: [p(5, 7, 8), p(6, 7, 7)]}
    assert found_in(monkeypatch, tmp_path, ProducerCheck, rows) == ["PSM-3"]


def test_offsets_may_be_missing_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows: dict[int, list[Row] | None] = {0: [b(0)], 5: None, 9: [b(9), b(11)]}
    assert found_in(monkeypatch, tmp_path, OffsetCheck, rows) == ["LDR-17"]
    rows[9] = [b(9)]
    assert found_in(monkeypatch, tmp_path, OffsetCheck, rows) == []
    rows[5] = [b(5, 8)]
    assert found_in(monkeypatch, tmp_path, OffsetCheck, rows) == ["LDR-17"]


def test_batches_may_lack_records_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the policy of a topic is not known they tell that it is compacted."""
    unknown: dict[str, Any] = {"config": TopicConfig(), "topic_id": "id"}
    rows: dict[int, list[Row] | None] = {0: [b(0), b(2)], 3: [b(3)]}
    assert found_in(monkeypatch, tmp_path, OffsetCheck, rows, **unknown) == ["LDR-17"]
    rows[3] = None
    assert found_in(monkeypatch, tmp_path, OffsetCheck, rows, **unknown) == []
