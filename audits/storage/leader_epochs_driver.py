"""The audit's rules of leader epochs over a small log, for the spec to walk beside."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kafkaspec.audit.check import Log
from kafkaspec.audit.files import PartitionFiles, Segment
from kafkaspec.audit.finding import Severity
from kafkaspec.audits.storage import leader_epochs as audit
from kafkaspec.contract.machine import ByName
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import BATCH, Chunk, Ending
from kafkaspec.impl.storage.leader_epochs import EpochEntry
from kafkaspec.spec.storage import leader_epochs as spec


class Driver(ByName):
    """The audit, asked beside the spec."""

    machine = spec.audit

    def breaches(self, batches: spec.Batches, entries: spec.Entries, log_start: int, log_end: int) -> spec.Breaches:
        """What the check makes of a small log with these batches and entries."""
        segment = Segment(0, File(Path("00000000000000000000.log"), 0))
        log = Log(PartitionFiles(Path("t-0"), "t", 0, segments=(segment,)), clean=True, log_start=log_start)
        check = audit.LeaderEpochCheck(log)
        check.file = File(Path("leader-epoch-checkpoint"), 0)
        check.entries = [EpochEntry(*e) for e in entries]
        check.starts = np.array([e.start_offset for e in check.entries], np.int64)
        rows = np.zeros(len(batches), BATCH)
        for row, b in zip(rows, batches, strict=True):
            row["base_offset"], row["last_offset"], row["leader_epoch"], row["magic"] = b
        for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
            list(check.chunk(segment, Chunk(half)))
        list(check.ended(segment, Ending(0, 0, end_offset=log_end)))
        found = list(check.end())
        wrong = any(f.severity == Severity.ERROR for f in found)
        fall = bool(check.outliers)
        odd = [r for r in check.outliers if r.last >= check.start]
        unknown = bool(check.unknown) or not all(audit.known(r, check.entries) for r in odd)
        assert wrong == (fall or unknown)
        return spec.Breaches(fall, unknown, any(f.severity == Severity.LEFTOVER for f in found))
