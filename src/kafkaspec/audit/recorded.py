"""Log directories that real clusters left, and what their clients had seen: what an audit must agree with.

The archives lie in `kafkaspec.recordings/audit`, one folder a recording; beside an archive its truth, condensed from
the clients' history (see `condense.py` there). An archive without a truth is known by its name alone: `crash-...` and
`...-after-sigkill...` were left by a killed broker, the others by a clean stop.
"""

from __future__ import annotations

import gzip
import json
import random
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from kafkaspec.audit.engine import Audit
from kafkaspec.audit.files import METADATA_TOPIC, Kind
from kafkaspec.audit.finding import Severity
from kafkaspec.impl.management import checkpoints
from kafkaspec.impl.storage.batch import CRC_AT, LOG_OVERHEAD
from kafkaspec.spec.common import producer_snapshot
from kafkaspec.spec.common.record_format import Batch, decode, marker

COVERED_FROM = 21
ABORTED_BYTES = 34


@dataclass(frozen=True)
class Archive:
    """One archive of log directories."""

    recording: str
    archive: Path

    @property
    def name(self) -> str:
        return f"{self.recording}/{self.archive.name.removesuffix('.tar.gz')}"

    @property
    def killed(self) -> bool:
        """Whether the brokers were killed, so that leftovers are to be expected; else they were stopped cleanly."""
        return "sigkill" in self.archive.name or self.archive.name.startswith("crash-")

    @property
    def truth(self) -> dict[str, Any] | None:
        """What the clients saw; its fields are described in `condense.py`. None if there is no history."""
        path = self.archive.with_name(self.archive.name.removesuffix(".tar.gz") + ".truth.json.gz")
        return json.loads(gzip.decompress(path.read_bytes())) if path.is_file() else None

    @contextmanager
    def unpacked(self) -> Iterator[tuple[Path, ...]]:
        """The log directories, in a folder that is removed afterwards. Preallocated indexes keep their size."""
        folder = Path(tempfile.mkdtemp(prefix="kafkaspec-"))
        try:
            unpack(self.archive, folder)
            yield tuple(sorted(p.parent for p in folder.rglob("meta.properties")))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def unpack(archive: Path, folder: Path) -> None:
    """Write what is in an archive of ours into a folder. PEP 706's filter looks at it where there is one: in Python
    3.11.4 and later."""
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(folder)


@cache
def recorded() -> tuple[Archive, ...]:
    """Every archive, by name."""
    root = Path(str(resources.files("kafkaspec.recordings"))) / "audit"
    return tuple(Archive(p.parent.name, p) for p in sorted(root.glob("*/*.tar.gz")))


@dataclass
class Contents:
    """What a partition's segments hold, decoded by the spec's readable decoder."""

    records: dict[int, int] = field(default_factory=dict)
    """offset -> crc of key and value, of the records that are no markers"""
    aborted: set[int] = field(default_factory=set)
    """offsets of records whose transaction was aborted"""
    committed: set[int] = field(default_factory=set)
    open: set[int] = field(default_factory=set)
    """offsets of records whose transaction has no marker"""
    end: int = 0
    stable: int = 0
    """last stable offset"""
    commits: int = 0
    """markers that end a transaction whose data, or an empty batch of it, is there"""
    aborts: int = 0
    markers: int = 0


def contents(partition: Path) -> Contents:
    """Everything in a partition's directory. Raises Malformed where a segment is damaged."""
    c = Contents()
    pending: dict[int, list[int]] = {}
    for segment in sorted(partition.glob("*.log")):
        for batch in batches(segment.read_bytes()):
            offsets = [batch.offset(r) for r in batch.records]
            if batch.control:
                kinds = [marker(r).type for r in batch.records]
                done = pending.pop(batch.producer_id, []) if batch.transactional else []
                (c.aborted if kinds and kinds[0] == 0 else c.committed).update(done)
                c.markers += len(kinds)
                c.aborts += bool(done) and kinds == [0]
                c.commits += bool(done) and kinds == [1]
            else:
                c.records |= {o: crc(r.key, r.value) for o, r in zip(offsets, batch.records, strict=True)}
                if batch.transactional:
                    pending.setdefault(batch.producer_id, []).extend(offsets or [batch.base_offset])
            c.end = batch.last_offset + 1
    c.stable = min((offsets[0] for offsets in pending.values()), default=c.end)
    snapshot = partition / producer_snapshot.name(c.end)
    if snapshot.is_file():  # it knows a transaction too whose records were all deleted, and no marker ended
        begun = (e.first_offset for e in producer_snapshot.unpacked(snapshot.read_bytes()) or () if e.first_offset >= 0)
        c.stable = min([c.stable, *begun])
    c.open.update(o for offsets in pending.values() for o in offsets)
    return c


Read = Callable[[Path], Contents]
"""`contents`, or what remembers them."""


def batches(data: bytes) -> Iterator[Batch]:
    """The batches of a whole segment."""
    for at, size in _spans(data):
        yield decode(data[at : at + size], at)


def crc(key: bytes | None, value: bytes | None) -> int:
    """As in `condense.py`."""
    return zlib.crc32(value or b"", zlib.crc32(b"\xff", zlib.crc32(key or b"")))


def starts(directory: Path) -> dict[str, int]:
    """The log start offset of each partition in a log directory, by name."""
    found = {
        str(tp): o for tp, o in checkpoints.decode((directory / "log-start-offset-checkpoint").read_bytes()).items()
    }
    for partition in {log.parent for log in directory.glob("*/*.log")}:
        first = min(int(log.stem) for log in partition.glob("*.log"))
        found[partition.name] = max(first, found.get(partition.name, 0))
    return found


def disagreements(truth: dict[str, Any], directories: Sequence[Path], read: Read = contents) -> list[str]:
    """How directories differ from what the clients saw, a line each. Each replica is held to it."""
    known = {*truth["partitions"], *truth["acknowledged"]}
    out = [*_absent(truth, known, directories)]
    for directory in directories:
        start = starts(directory)
        there = dict[str, Contents]()
        for name in sorted(known):
            if (directory / name).is_dir():
                where = f"{directory.parent.name}/{name}"
                found = there[name] = read(directory / name)
                first = start.get(name, 0)
                out += [f"{where}: {line}" for line in _differs(truth, name, found, first)]
                out += [f"{where}: {line}" for line in _told_otherwise(truth, name, found, first)]
        out += [f"{directory.parent.name}: {line}" for line in _torn_apart(truth, there)]
    return out


def _absent(truth: dict[str, Any], known: Set[str], directories: Sequence[Path]) -> Iterator[str]:
    """A partition of which too few replicas are there; and one that no client knows, where the history knows all."""
    for name in sorted(known):
        n, wanted = sum((d / name).is_dir() for d in directories), truth.get("replicas", {}).get(name, 1)
        if n < wanted:
            yield f"{name}: {n} replicas in {len(directories)} directories; it has {wanted}"
    if "unanswered" in truth:
        there = {log.parent.name for d in directories for log in d.glob("*/*.log") if log.stat().st_size}
        for name in sorted(n for n in there - known if not n.startswith("__") and n.rpartition("-")[2].isdigit()):
            yield f"{name}: no client knows this partition"


def _differs(truth: dict[str, Any], name: str, found: Contents, start: int) -> Iterator[str]:
    topic = name.rpartition("-")[0]
    seen = truth["partitions"].get(name, {})
    stable = max(start, found.stable)  # DeleteRecords may pass the beginning of an open transaction
    for isolation, end in (("read_uncommitted", found.end), ("read_committed", stable)):
        if isolation in seen and topic not in truth["compacted"]:
            hidden = found.aborted if isolation == "read_committed" else set()
            count = sum(start <= o < end and o not in hidden for o in found.records)
            if [start, end, count] != seen[isolation]:
                yield f"{isolation}: from {start} to {end}, {count} records; a consumer saw {seen[isolation]}"
        elif isolation in seen and end != seen[isolation][1]:
            yield f"{isolation}: ends at {end}; a consumer saw {seen[isolation][1]}"
    if topic in truth["lossy"]:
        return
    of = truth["acknowledged"].get(name, {})
    if topic in truth["compacted"]:
        yield from _latest(of, found, set(truth["unsure"].get(name, ())), start)
        return
    for outcome, records in of.items():
        for offset, digest in records:
            if offset < start:
                continue
            if found.records.get(offset) != digest:
                there = "another" if offset in found.records else "no"
                yield f"offset {offset}: acknowledged ({outcome}), but {there} record"
            elif offset in found.open and outcome in ("aborted", "committed") and "settled" in truth:
                if truth["settled"]:
                    yield f"offset {offset}: {outcome} for the client, not decided here"
            elif (outcome == "plain") == (offset in found.aborted | found.committed | found.open):
                said = "without a transaction" if outcome == "plain" else "in one"
                yield f"offset {offset}: the client wrote it {said}, not so here"
            elif outcome == "left":
                if offset in found.committed:
                    yield f"offset {offset}: committed here, and no client asked for it"
            elif outcome not in ("open", "given up") and (outcome == "aborted") != (offset in found.aborted):
                yield f"offset {offset}: {outcome} for the client, not so here"


def _told_otherwise(truth: dict[str, Any], name: str, found: Contents, start: int) -> Iterator[str]:
    """Of a history that knows all that was sent: what is in the log and was not sent, or is there twice; a log start
    that nobody asked for; and reads that are not of this log."""
    if name in truth.get("unanswered", {}):
        yield from _strangers(truth, name, found)
    asked = truth.get("asked_to_delete", {}).get(name)
    if asked is not None and start > asked and not _aged(truth, name):
        yield f"the log starts at {start}; clients asked for no more than {asked}"
    for isolation, of, first, end, records in truth.get("reads", ()):
        if of == name:
            for line in _misread(truth, name, found, start, isolation, first, end, records):
                yield f"{isolation} from {first} to {end}: {line}"


def _aged(truth: dict[str, Any], name: str) -> bool:
    return name.rpartition("-")[0] in truth["aged"]


def _lossy(truth: dict[str, Any], name: str) -> bool:
    return name.rpartition("-")[0] in truth["lossy"]


def _strangers(truth: dict[str, Any], name: str, found: Contents) -> Iterator[str]:
    """Each record was sent by a client, and is at the offset that it was told if it was told one, but where another
    may have taken its place; each is there once, since all producers are idempotent."""
    acknowledged = [(r[0], r[1]) for of in truth["acknowledged"].get(name, {}).values() for r in of]
    told = dict(acknowledged)
    unanswered = set(truth["unanswered"][name])
    if _lossy(truth, name):
        unanswered.update(crc for _, crc in acknowledged)
    met = dict[int, int]()
    for offset, digest in found.records.items():
        if digest in met:
            yield f"offset {offset}: the record at {met[digest]} once more"
        met[digest] = offset
        if told.get(offset) != digest and digest not in unanswered:
            yield f"offset {offset}: a record that no client sent, or that was refused, or acknowledged elsewhere"


def _misread(
    truth: dict[str, Any],
    name: str,
    found: Contents,
    start: int,
    isolation: str,
    first: int,
    end: int,
    records: list[list[int]],
) -> Iterator[str]:
    """A read of the offsets from `first` to `end` against the log as it is now: in order and each once, nothing that
    is not there, and all that is there and is not hidden. Below the log start, and below what DeleteRecords was asked
    for, records may be gone; in a compacted topic everywhere. Where an unclean election may have taken what was read,
    its order alone is looked at."""
    committed = isolation == "read_committed"
    low = max(start, first)
    compacted = name.rpartition("-")[0] in truth["compacted"]
    before = -1
    for offset, digest in records:
        if offset <= before:
            yield f"offset {offset} is read after {before}"
        before = max(before, offset)
        if not first <= offset < end:
            yield f"offset {offset} is read, and lies outside"
        if _lossy(truth, name):
            continue
        there = found.records.get(offset)
        if there is None and (offset < start or compacted):
            continue
        if there != digest:
            yield f"offset {offset} is read, and {'another' if there is not None else 'no'} record is there"
        elif committed and offset in found.aborted:
            yield f"offset {offset} is read, and was aborted"
        elif committed and offset in found.open:
            yield f"offset {offset} is read, and is not decided"
    if _lossy(truth, name):
        return
    if end > max(found.end, start):
        yield f"the log ends at {found.end}"
    read = {offset for offset, _ in records}
    for offset in sorted(found.records):
        if low <= offset < end and offset not in read and not (committed and offset in found.aborted):
            yield f"offset {offset} is not read"


def _torn_apart(truth: dict[str, Any], there: dict[str, Contents]) -> Iterator[str]:
    """A transaction of which no client knows the end is committed as a whole, or aborted."""
    for transaction in truth.get("together", ()):
        of = [(name, offset) for name, offset in transaction if name in there]
        committed = [x for x in of if x[1] in there[x[0]].committed]
        aborted = [x for x in of if x[1] in there[x[0]].aborted]
        if committed and aborted:
            yield f"one transaction is committed at {committed[0]} and aborted at {aborted[0]}"


def _latest(of: dict[str, list[list[Any]]], found: Contents, unsure: set[str | None], start: int) -> Iterator[str]:
    """Compaction keeps each key's last value."""
    last: dict[str, list[Any]] = {}
    for record in sorted((r for o in ("plain", "committed") for r in of.get(o, ())), key=lambda r: r[0]):
        last[record[2]] = record
    for key, (offset, digest, _, tombstone) in last.items():
        if offset < start or key in unsure or (tombstone and offset not in found.records):
            continue
        if found.records.get(offset) != digest:
            yield f"offset {offset}: the last value of {key!r} is lost"


# ---- the audit beside it ---------------------------------------------------------------------------------------------
def wrongly_audited(r: Archive, a: Audit) -> list[str]:
    """What an audit of a recording says that is wrong, a line each: brokers of Kafka's wrote it, so all is sound but
    for leftovers, and those only where a broker was killed or a partition was on its way out."""
    out = [f"{f.severity.name} {f.clause} {f.file}: {f.message}" for f in a.findings if f.severity >= Severity.WARNING]
    out += a.problems
    for f in a.findings:
        if f.severity is Severity.UNCHECKED and not r.recording.startswith("classic-"):
            out.append(f"UNCHECKED {f.clause} {f.file}: {f.message}")
        if f.severity is Severity.LEFTOVER and not r.killed and "-delete" not in f.file:
            out.append(f"LEFTOVER {f.clause} {f.file}: {f.message}")
    left = any(f.severity is Severity.LEFTOVER for f in a.findings)
    return out + ([f"{r.name}: no leftovers, where a broker was killed"] if r.killed and not left else [])


def miscounted(r: Archive, truth: dict[str, Any], a: Audit, read: Read = contents) -> list[str]:
    """Where an audit's totals are not those of the readable decoder, or not what consumers were told, a line each."""
    out = []
    for p in a.partitions:
        name = Path(p.path).name
        if p.topic == METADATA_TOPIC or p.kind is not Kind.CURRENT:
            continue
        c = read(Path(p.path))
        stable = max(p.start, c.stable)  # DeleteRecords may pass the beginning of an open transaction
        mine = (p.end, p.records, p.committed, p.aborted)
        right = (c.end, len(c.records) + c.markers, c.commits, c.aborts)
        if mine != right:
            out.append(f"{p.path}: end, records, commits, aborts {mine}; decoded {right}")
        if not r.killed and p.last_stable_offset != stable:  # of a killed broker the high watermark lags
            out.append(f"{p.path}: last stable offset {p.last_stable_offset}; decoded {stable}")
        seen = truth["partitions"].get(name, {})
        for isolation, end in (("read_uncommitted", p.end), ("read_committed", p.last_stable_offset)):
            if isolation in seen and [p.start, end] != seen[isolation][:2]:
                out.append(f"{p.path}: {isolation} from {p.start} to {end}; a consumer saw {seen[isolation]}")
    return out


# ---- damage ----------------------------------------------------------------------------------------------------------
def damages(directories: Sequence[Path], seed: int) -> Iterator[tuple[str, Path, bytes, str, int]]:
    """Small damage to a recording, one at a time, at places that the seed picks: what it is, the file, its bytes then,
    and the clause and the byte (or line) where an audit must find it, and nothing else."""
    rng = random.Random(seed)
    logs = sorted(f for d in directories for f in d.glob("[!_]*/*.log") if f.stat().st_size and "-delete" not in str(f))
    for _ in range(6):
        log = rng.choice(logs)
        data = bytearray(log.read_bytes())
        spans = list(_spans(bytes(data)))
        at, size = rng.choice(spans)
        data[rng.randrange(at + COVERED_FROM, at + size)] ^= 1 << rng.randrange(8)
        yield "a flipped bit", log, bytes(data), "BAT-3", at + CRC_AT
    aborts = sorted(f for d in directories for f in d.glob("*/*.txnindex") if f.stat().st_size)
    for f in rng.sample(aborts, min(1, len(aborts))):
        yield "an abort gone from the transaction index", f, f.read_bytes()[:-ABORTED_BYTES], "PSM-16", -1
    f = rng.choice(sorted(d / "recovery-point-offset-checkpoint" for d in directories))
    version, count, *rest = f.read_text().split("\n")
    text = "\n".join([version, str(int(count) + 1), *rest])
    yield "a wrong count in a checkpoint", f, text.encode(), "CKP-3", 2


def _spans(data: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(data):
        size = LOG_OVERHEAD + int.from_bytes(data[at + 8 : at + LOG_OVERHEAD], "big")
        yield at, size
        at += size


def missed(directories: Sequence[Path], seed: int, audit: Callable[[Sequence[Path]], Audit]) -> tuple[int, list[str]]:
    """How many kinds of damage were done, and which an audit does not find rightly, a line each."""
    out, n = list[str](), 0
    for what, file, data, clause, at in damages(directories, seed):
        n += 1
        before = file.read_bytes()
        file.write_bytes(data)
        try:
            bad = [f for f in audit(directories).findings if f.severity >= Severity.WARNING]
        finally:
            file.write_bytes(before)
        right = [
            f for f in bad if f.file == str(file) and f.clause == clause and (at == -1 or at in (f.position, f.line))
        ]
        if not right:
            out.append(f"{what}, {file}: not found")
        out += [f"{what}, {file}: beside it {f.clause} {f.file}: {f.message}" for f in bad if f not in right]
    return n, out
