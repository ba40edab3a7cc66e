"""The audit's rules of offset indexes over a small segment, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kafkaspec.audit.check import Log
from kafkaspec.audit.files import PartitionFiles, Segment
from kafkaspec.audits.common.index_evidence import IndexCheck, State
from kafkaspec.audits.storage import offset_index as audit
from kafkaspec.contract.machine import ByName
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import BATCH, Chunk, Ending
from kafkaspec.impl.storage.offset_index import SLOT
from kafkaspec.spec.storage import offset_index as spec

CODES = {State.TRUE: "", State.MISLEADS: "OIX-24", State.ODD: "OIX-25", State.BEYOND: "OIX-27"}


def checked(
    batches: Sequence[spec.Batch], entries: Sequence[spec.Entry], by: type[IndexCheck] | None = None
) -> list[str]:
    """What the check makes of a small segment that was closed cleanly, with these batches (position, size, first and
    last offset, last record's) and entries (offset, position): for the spec to walk beside."""
    base = min((b.base_offset for b in batches), default=0)
    base = min([base, *(e.offset for e in entries)]) - 1
    segment = Segment(base, File(Path(f"{base:020}.log"), 0), File(Path(f"{base:020}.index"), 0))
    check = (by or audit.OffsetIndexCheck)(Log(PartitionFiles(Path("t-0"), "t", 0, segments=(segment,)), clean=True))
    slots = np.array([(o - base, p) for o, p in entries], SLOT) if entries else np.zeros(0, SLOT)
    check.load(segment, slots.tobytes())
    rows = np.zeros(len(batches), BATCH)
    for row, values in zip(rows, batches, strict=True):
        row["position"], row["size"], row["base_offset"], row["last_offset"], row["last_record"] = values
        row["magic"] = 2
    half = len(rows) // 2
    for part in (rows[:half], rows[half:]):
        list(check.chunk(segment, Chunk(part)))
    check.settle(Ending(check.seen_end, check.seen_end))
    falls = [*check.falls().tolist(), *(True for _ in entries[check.written :])]
    states = [*(State(s) for s in check.state.tolist()), *(State.BEYOND for _ in entries[check.written :])]
    return ["OIX-23" if f and s is not State.BEYOND else CODES[s] for s, f in zip(states, falls, strict=True)]


class Driver(ByName):
    """The audit, asked beside the spec."""

    machine = spec.audit

    def breaches(self, batches: Sequence[spec.Batch], entries: Sequence[spec.Entry]) -> list[str]:
        return checked(batches, entries)
