"""Log directories that real clusters left, and what their clients had seen: what an audit must agree with.

The archives lie in `kafkaspec.recordings/audit`, one folder a recording; beside an archive its truth, boiled down from
the clients' history (see `boil.py` there). An archive without a truth is known by its name alone: `crash-...` and
`...-after-sigkill...` were left by a killed broker, the others by a clean stop.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from kafkaspec.impl.management import checkpoints
from kafkaspec.spec.storage.batch import Batch, decode, marker

LOG_OVERHEAD = 12


@dataclass(frozen=True)
class Recorded:
    """One archive of log directories."""

    recording: str
    archive: Path

    @property
    def name(self) -> str:
        return f"{self.recording}/{self.archive.name.removesuffix('.tar.gz')}"

    @property
    def killed(self) -> bool:
        """Whether the brokers were killed, so that left-overs are to be expected; else they were stopped cleanly."""
        return "sigkill" in self.archive.name or self.archive.name.startswith("crash-")

    @property
    def truth(self) -> dict[str, Any] | None:
        """What the clients saw; its fields are described in `boil.py`. None if there is no history."""
        path = self.archive.with_name(self.archive.name.removesuffix(".tar.gz") + ".truth.json.gz")
        return json.loads(gzip.decompress(path.read_bytes())) if path.is_file() else None

    @contextmanager
    def unpacked(self) -> Iterator[tuple[Path, ...]]:
        """The log directories, in a folder that is removed afterwards. Preallocated indexes keep their size."""
        folder = Path(tempfile.mkdtemp(prefix="kafkaspec-"))
        try:
            with tarfile.open(self.archive) as tar:
                tar.extractall(folder, filter="data")
            yield tuple(sorted(p.parent for p in folder.rglob("meta.properties")))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@cache
def recorded() -> tuple[Recorded, ...]:
    """Every archive, by name."""
    root = Path(str(resources.files("kafkaspec.recordings"))) / "audit"
    return tuple(Recorded(p.parent.name, p) for p in sorted(root.glob("*/*.tar.gz")))


@dataclass
class Contents:
    """What a partition's segments hold, decoded by the spec's readable decoder."""

    records: dict[int, int] = field(default_factory=dict)
    """offset -> crc of key and value, of the records that are no markers"""
    aborted: set[int] = field(default_factory=set)
    """offsets of records whose transaction was aborted"""
    end: int = 0
    stable: int = 0
    """last stable offset"""
    commits: int = 0
    aborts: int = 0


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
                if kinds and kinds[0] == 0:
                    c.aborted.update(done)
                c.aborts += kinds == [0]
                c.commits += kinds == [1]
            else:
                c.records |= {o: crc(r.key, r.value) for o, r in zip(offsets, batch.records, strict=True)}
                if batch.transactional:
                    pending.setdefault(batch.producer_id, []).extend(offsets or [batch.base_offset])
            c.end = batch.last_offset + 1
    c.stable = min((offsets[0] for offsets in pending.values()), default=c.end)
    return c


def batches(data: bytes) -> Iterator[Batch]:
    """The batches of a whole segment."""
    at = 0
    while at < len(data):
        size = LOG_OVERHEAD + int.from_bytes(data[at + 8 : at + LOG_OVERHEAD], "big")
        yield decode(data[at : at + size], at)
        at += size


def crc(key: bytes | None, value: bytes | None) -> int:
    """As in `boil.py`."""
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


def disagreements(truth: dict[str, Any], directories: Sequence[Path]) -> list[str]:
    """How directories differ from what the clients saw, a line each. Each replica is held to it."""
    out: list[str] = []
    for directory in directories:
        start = starts(directory)
        for name in sorted({*truth["partitions"], *truth["acknowledged"]}):
            if (directory / name).is_dir():
                where = f"{directory.parent.name}/{name}"
                found = contents(directory / name)
                out += [f"{where}: {line}" for line in _differs(truth, name, found, start.get(name, 0))]
    return out


def _differs(truth: dict[str, Any], name: str, found: Contents, start: int) -> Iterator[str]:
    topic = name.rpartition("-")[0]
    seen = truth["partitions"].get(name, {})
    for isolation, end in (("read_uncommitted", found.end), ("read_committed", found.stable)):
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
            elif outcome != "open" and (outcome == "aborted") != (offset in found.aborted):
                yield f"offset {offset}: {outcome} for the client, not so here"


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
