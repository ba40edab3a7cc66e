"""Small segments with index files, for the audits of the two indexes: batches as rows, index files as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from kafkaspec.audit.check import Log, LogCheck, TopicConfig
from kafkaspec.audit.files import Kind, PartitionFiles, Segment
from kafkaspec.audit.finding import Finding
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import BATCH, Chunk, Ending

OFFSETS, TIMES = Struct(">ii"), Struct(">qi")
SIZE = 100
"""Bytes of a batch, where nothing else is said."""


class B(NamedTuple):
    """A batch of a segment."""

    base: int
    last: int
    time: int = 0
    size: int = SIZE
    problem: int = 0
    magic: int = 2


class Part(NamedTuple):
    """A segment: its batches, and the bytes of its index files (None: there is none)."""

    batches: Sequence[B]
    offsets: bytes | None
    times: bytes | None
    reason: str = ""


def packed(layout: Struct, base: int, entries: Sequence[tuple[int, int]], slots: int = 0) -> bytes:
    """An index file: (offset, position) or (timestamp, offset) pairs, and unwritten slots up to `slots`."""
    cells = [(a - base, b) if layout is OFFSETS else (a, b - base) for a, b in entries]
    data = b"".join(layout.pack(*c) for c in cells)
    return data + bytes(max(slots * layout.size - len(data), 0))


def audited(
    folder: Path, check: type[LogCheck], *parts: Part, kind: Kind = Kind.CURRENT, chunk: int = 2, **log: Any
) -> list[Finding]:
    """What a check says of a log with these segments, its batches `chunk` at a time."""
    segments = []
    for part in parts:
        base = part.batches[0].base if part.batches else 0
        names = {}
        for suffix, data in ((".log", b""), (".index", part.offsets), (".timeindex", part.times)):
            path = folder / f"{base:020}{suffix}"
            if data is not None:
                path.write_bytes(data)
                names[suffix] = File(path, len(data))
        segments.append(Segment(base, names[".log"], names.get(".index"), names.get(".timeindex")))
    files = PartitionFiles(folder, "t", 0, kind, tuple(segments))
    interval = log.pop("interval", None)
    made = check(Log(files, config=TopicConfig(index_interval_bytes=interval), **log))
    found: list[Finding] = []
    for segment, part in zip(segments, parts, strict=True):
        rows = np.zeros(len(part.batches), BATCH)
        at = 0
        for row, b in zip(rows, part.batches, strict=True):
            row["position"], row["size"], row["base_offset"], row["last_offset"] = at, b.size, b.base, b.last
            row["max_timestamp"], row["problem"], row["magic"], row["last_record"] = b.time, b.problem, b.magic, b.last
            at += b.size
        found += made.begin(segment)
        for n in range(0, len(rows), chunk):
            found += made.chunk(segment, Chunk(rows[n : n + chunk]))
        last = part.batches[-1].last + 1 if part.batches else None
        found += made.ended(segment, Ending(at, at + (7 if part.reason else 0), part.reason, last))
    return [*found, *made.end()]
