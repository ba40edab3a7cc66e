"""The audit's rules of time indexes over a small segment, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kafkaspec.audit.check import Log
from kafkaspec.audit.files import PartitionFiles, Segment
from kafkaspec.audits.common.index_evidence import State
from kafkaspec.audits.storage import time_index as audit
from kafkaspec.contract.machine import ByName
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import BATCH, Chunk, Ending
from kafkaspec.impl.storage.time_index import SLOT
from kafkaspec.spec.storage import time_index as spec

CODES = {State.TRUE: "", State.MISLEADS: "TIX-13", State.BEYOND: "TIX-15"}


def checked(
    batches: Sequence[spec.Batch], entries: Sequence[spec.Entry], by: type[audit.TimeIndexCheck] | None = None
) -> spec.Breaches:
    """What the check makes of a small segment that was closed cleanly, with these batches (first and last offset,
    largest timestamp) and entries (timestamp, offset): for the spec to walk beside."""
    base = min([0, *(b.base_offset for b in batches), *(e.offset for e in entries)]) - 1
    segment = Segment(0, File(Path("t.log"), 0), None, File(Path("t.timeindex"), 0))
    segment = Segment(base, segment.log, None, segment.time_index)
    check = (by or audit.TimeIndexCheck)(Log(PartitionFiles(Path("t-0"), "t", 0, segments=(segment,)), clean=True))
    slots = np.array([(t, o - base) for t, o in entries], SLOT) if entries else np.zeros(0, SLOT)
    check.load(segment, slots.tobytes())
    rows = np.zeros(len(batches), BATCH)
    for n, (row, values) in enumerate(zip(rows, batches, strict=True)):
        row["base_offset"], row["last_offset"], row["max_timestamp"] = values
        row["position"], row["size"], row["magic"] = 100 * n, 100, 2
    half = len(rows) // 2
    for part in (rows[:half], rows[half:]):
        list(check.chunk(segment, Chunk(part)))
    ending = Ending(check.seen_end, check.seen_end)
    check.settle(ending)
    falls = check.falls()
    states = [State(s) for s in check.state.tolist()]
    verdicts = [
        "TIX-15" if s is State.BEYOND else "TIX-12" if f else CODES[s]
        for s, f in zip(states, falls.tolist(), strict=True)
    ]
    assert segment.time_index is not None
    complete = any(verdicts) or not list(check.further(segment, segment.time_index, ending, None))
    return spec.Breaches(verdicts, complete)


class Driver(ByName):
    """The audit, asked beside the spec."""

    machine = spec.audit

    def breaches(self, batches: Sequence[spec.Batch], entries: Sequence[spec.Entry]) -> spec.Breaches:
        return checked(batches, entries)
