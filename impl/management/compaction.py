"""A small log as the bytes of a segment, scanned and judged as the audit does it, for the spec to walk beside."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kafkaspec.audit.check import Chunk, Log
from kafkaspec.audit.files import File, PartitionFiles, Segment
from kafkaspec.audit.finding import Finding
from kafkaspec.impl.management import compaction_audit as audit
from kafkaspec.impl.storage.scan import read_segment
from kafkaspec.lockstep.machine import Json, Refused
from kafkaspec.spec.management import compaction as spec
from kafkaspec.spec.storage.batch import CONTROL, NO_PRODUCER, TRANSACTIONAL, Timed, built, emptied, encode

MARKERS = {spec.ABORT: 0, spec.COMMIT: 1}


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def bytes_of(batch: Sequence[Any]) -> bytes:
    """A batch as the spec writes it, as Kafka does."""
    base, last, kind, producer, records = batch
    rows = [Timed(o, 1000 + o, _bytes(k), _bytes(v)) for o, k, v in records]
    attributes = 0 if kind == spec.DATA else TRANSACTIONAL
    if kind in MARKERS:
        attributes |= CONTROL
        rows = [Timed(base, 1000, bytes([0, 0, 0, MARKERS[kind]]), bytes(6))]
    if producer < 0:
        producer = NO_PRODUCER
    epoch, sequence = (-1, -1) if producer == NO_PRODUCER else (0, -1 if kind in MARKERS else base)
    made = built(
        base,
        rows or [Timed(base, 1000, None, None)],
        attributes=attributes,
        leader_epoch=0,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        last_offset=last,
    )
    return encode(made if rows else emptied(made))


def judged(batches: Sequence[Sequence[Any]], log_start: int, point: int, segments: int = 1) -> list[Finding]:
    """What the audit finds in a log with these batches, cut into segments."""
    with tempfile.TemporaryDirectory() as folder:
        listed: list[Segment] = []
        for n in range(segments):
            part = batches[len(batches) * n // segments : len(batches) * (n + 1) // segments]
            if part or not listed:
                base = part[0][0] if part and listed else 0
                path = Path(folder) / f"{base:020}.log"
                path.write_bytes(b"".join(map(bytes_of, part)))
                listed.append(Segment(base, File(path, path.stat().st_size)))
        active = Segment(max(batches[-1][1] + 1 if batches else 0, point))
        log = Log(
            PartitionFiles(Path(folder), "t", 0, segments=(*listed, active)), log_start=log_start, cleaner_point=point
        )
        if not audit.CompactionCheck.applies(log):
            return []
        check = audit.CompactionCheck(log)
        found: list[Finding] = []
        for segment in listed:
            found += check.begin(segment)
            assert segment.log is not None
            for piece in read_segment(segment.log, records=True):
                found += check.chunk(segment, piece) if isinstance(piece, Chunk) else check.ended(segment, piece)
        return found + list(check.end())


class Driver:
    """The audit over one segment and over three, with room for all keys in memory and for two."""

    def reset(self, arguments: Mapping[str, Any]) -> None:
        pass

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        return getattr(self, "do_" + name)(**arguments)

    def do_judge(self, log: Sequence[Sequence[Any]], log_start: int, point: int) -> Json:
        found = judged(log, log_start, point, 3)
        by_clause = {c: [f for f in found if f.clause == c] for c in ("CMP-2", "CMP-3", "CMP-4")}
        pairs = [[f.offset, int(f.message.split("at offset ")[1].split(",")[0])] for f in by_clause["CMP-2"]]
        return {
            "superseded": sorted(pairs),
            "keyless": [f.offset for f in by_clause["CMP-3"]],
            "aborted": [f.offset for f in by_clause["CMP-4"]],
        }

    def observe(self) -> Json:
        return {}
