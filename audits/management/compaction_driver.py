"""The audit's rules of compaction over small logs, for the spec to walk beside."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from kafkaspec.audit.check import Log
from kafkaspec.audit.files import PartitionFiles, Segment
from kafkaspec.audit.finding import Finding
from kafkaspec.audits.management import compaction as audit
from kafkaspec.contract.codec import decode as from_json
from kafkaspec.contract.machine import ByName
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.impl.common.scan import read_segment
from kafkaspec.spec.common.kafka import INT_MAX
from kafkaspec.spec.common.record_format import (
    CONTROL,
    NO_PRODUCER,
    TRANSACTIONAL,
    LogRecord,
    built,
    emptied,
    encode,
)
from kafkaspec.spec.management import compaction as spec

MARKERS = {spec.ABORT: 0, spec.COMMIT: 1}


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def bytes_of(batch: spec.Batch) -> bytes:
    """A batch as the spec writes it, as Kafka does."""
    base, last, kind, producer, records = batch
    rows = [LogRecord(o, 1000 + o, _bytes(k), _bytes(v)) for o, k, v in records]
    attributes = 0 if kind == spec.DATA else TRANSACTIONAL
    if kind in MARKERS:
        attributes |= CONTROL
        rows = [LogRecord(base, 1000, bytes([0, 0, 0, MARKERS[kind]]), bytes(6))]
    if producer < 0:
        producer = NO_PRODUCER
    epoch, sequence = (-1, -1) if producer == NO_PRODUCER else (0, -1 if kind in MARKERS else base & INT_MAX)
    made = built(
        base,
        rows or [LogRecord(base, 1000, None, None)],
        attributes=attributes,
        leader_epoch=0,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        last_offset=last,
    )
    return encode(made if rows else emptied(made))


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """One for the process, in memory where that can be had: writing files to a disk takes longer than the rest."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(prefix="kafkaspec-", dir=memory if os.access(memory, os.W_OK) else None)


class LaidOut(NamedTuple):
    """A segment of a small log, with what a scan reads of it."""

    segment: Segment
    read: tuple[Chunk | Ending, ...]


def laid_out(batches: spec.Log, segments: int, folder: Path) -> list[LaidOut]:
    """Write a log with these batches, cut into segments, and read it."""
    out: list[LaidOut] = []
    for n in range(segments):
        part = batches[len(batches) * n // segments : len(batches) * (n + 1) // segments]
        if part or not out:
            base = part[0].base_offset if part and out else 0
            path = folder / f"{base:020}.log"
            path.write_bytes(b"".join(map(bytes_of, part)))
            file = File(path, path.stat().st_size)
            out.append(LaidOut(Segment(base, file), tuple(read_segment(file, records=True))))
    return out


@lru_cache(maxsize=256)
def kept(batches: spec.Log, segments: int) -> list[LaidOut]:
    """The same in a folder of its own, once a log: nobody can change what was read."""
    out = laid_out(batches, segments, Path(tempfile.mkdtemp(dir=_folder().name)))
    for piece in itertools.chain.from_iterable(s.read for s in out):
        for rows in (piece.batches, piece.records) if isinstance(piece, Chunk) else ():
            if rows is not None:
                rows.flags.writeable = False
    return out


def findings_in(batches: Sequence[Any], log_start: int, point: int, segments: int = 1) -> list[Finding]:
    """What the audit finds in a log with these batches, as JSON has them, cut into segments."""
    log: spec.Log = from_json(spec.Log, batches)
    return found_in(laid_out(log, segments, Path(_folder().name)), log, log_start, point)


def found_in(listed: Sequence[LaidOut], batches: spec.Log, log_start: int, point: int) -> list[Finding]:
    """What the audit finds in a log that was laid out."""
    active = Segment(max(batches[-1].last_offset + 1 if batches else 0, point))
    files = PartitionFiles(Path(_folder().name), "t", 0, segments=(*(s.segment for s in listed), active))
    log = Log(files, log_start=log_start, cleaner_point=point)
    if not audit.CompactionCheck.applies(log):
        return []
    check = audit.CompactionCheck(log)
    found: list[Finding] = []
    for segment, read in listed:
        found += check.begin(segment)
        for piece in read:
            found += check.chunk(segment, piece) if isinstance(piece, Chunk) else check.ended(segment, piece)
    return found + list(check.end())


RULES = ("CMP-2", "CMP-3", "CMP-4", "CMP-10", "CMP-11")
"""In the order of the fields of the spec's answer."""


class Driver(ByName):
    """The audit over one segment and over three, with room for all keys in memory and for two."""

    machine = spec.machine

    def breaches(self, log: spec.Log, log_start: int, point: int) -> spec.Breaches:
        findings = found_in(kept(log, 3), log, log_start, point)
        found = [(f, f.offset) for f in findings if f.offset is not None]
        by = {c: [(f, o) for f, o in found if f.clause == c] for c in RULES}
        twice, *others = by.values()
        return spec.Breaches(
            sorted((offset, int(f.message.split("at offset ")[1].split(",")[0])) for f, offset in twice),
            *(sorted(offset for _, offset in of) for of in others),
        )
