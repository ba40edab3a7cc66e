"""What the audit says of record batches, one by one: damage, contradictions inside a batch, how a segment ends.

The work was done by `scan`, batch by batch: here its rows become findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafkaspec.audit.check import Log, LogCheck
from kafkaspec.audit.files import Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.common.findings import METADATA_TOPIC
from kafkaspec.audits.storage.log_loader import recovery_consequence
from kafkaspec.contract.clauses import states
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.impl.common.scan import TEXTS, Problem, problem_text
from kafkaspec.spec.common.compression import LIMIT
from kafkaspec.spec.common.record_format import CODEC_MASK

CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
UNSEEN = "nothing: recovery reads a batch's header and CRC, not its records; who reads them fails there"
RECOVERY_SEES = {Problem.LENGTH, Problem.MAGIC, Problem.CRC, Problem.CONTROL}
"""What makes recovery cut a log. It decodes the records of a control batch alone, and takes any magic above 1 for 2."""
MOST_KEPT = 10_000
"""Damaged batches, at most, that wait until the log's end is known; what is said of the others does without."""
LEGACY_CLAUSE = "BAT-2"
COUNT_CLAUSE, TAIL_CLAUSE = "BAT-20", "BAT-1"


@dataclass(frozen=True)
class _Damage:
    """A batch that needs a finding, kept until the log's end is known."""

    segment: Segment
    row: Any
    offset: int | None
    """the first offset that may be lost: the one after the batch before"""


class BatchCheck(LogCheck):
    """Length, magic, CRC, attributes, counts, offsets and timestamps of each batch; the end of each segment."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.damage: list[_Damage] = []
        self.endings: list[tuple[Segment, Ending]] = []
        self.next_offset: int | None = None

    def begin(self, segment: Segment) -> Iterable[Finding]:
        if self.next_offset is None:
            self.next_offset = segment.base_offset
        self.named_legacy = False
        return ()

    def chunk(self, segment: Segment, chunk: Chunk) -> Iterator[Finding]:
        rows, good = chunk.batches, ~chunk.bad
        if not self.named_legacy and chunk.legacy:
            self.named_legacy = True
            yield self._legacy(segment, rows[chunk.old][0])
        if not good.all():
            before = np.maximum.accumulate(np.where(good, np.arange(len(rows)), -1))
            for i in np.flatnonzero(~good):
                offset = int(rows["last_offset"][before[i]]) + 1 if before[i] >= 0 else self.next_offset
                damage = _Damage(segment, rows[i].copy(), offset)
                if len(self.damage) < MOST_KEPT:
                    self.damage.append(damage)
                else:
                    yield self._damaged(damage)
        if self._whole_batches():
            odd = good & ~chunk.old & (chunk.count != chunk.last - chunk.base + 1)
            for row in rows[odd]:
                yield self._count(segment, row)
        if good.any():
            self.next_offset = int(chunk.last[np.flatnonzero(good)[-1]]) + 1

    def ended(self, segment: Segment, ending: Ending) -> Iterable[Finding]:
        if ending.reason:
            self.endings.append((segment, ending))
        return ()

    def skip(self, segment: Segment, problem: str) -> Iterable[Finding]:
        self.next_offset = None
        return ()

    def end(self) -> Iterator[Finding]:
        for d in self.damage:
            yield self._damaged(d)
        for segment, ending in self.endings:
            yield self._ending(segment, ending)

    def _whole_batches(self) -> bool:
        """Whether nothing ever takes a record out of a batch of this log."""
        return self.log.topic == METADATA_TOPIC or self.log.compacted is False

    # ---- findings
    @states("BAT-2")
    def _legacy(self, segment: Segment, row: Any) -> Finding:
        assert segment.log is not None
        return self.log.finding(
            Severity.UNCHECKED,
            LEGACY_CLAUSE,
            segment.log,
            f"messages of format {int(row['magic'])}, which is not checked: only their CRC-32 was compared",
            expected="message format 2",
            position=int(row["position"]),
            offset=int(row["base_offset"]),
        )

    @states("BAT-20")
    def _count(self, segment: Segment, row: Any) -> Finding:
        assert segment.log is not None
        room = int(row["last_offset"] - row["base_offset"]) + 1
        return self.log.finding(
            Severity.ERROR,
            COUNT_CLAUSE,
            segment.log,
            f"{int(row['count'])} records on {room} offsets, in a topic that is not compacted",
            expected=f"a count of {room}",
            recovery="nothing: recovery does not count records",
            position=int(row["position"]) + 57,
            offset=int(row["base_offset"]),
        )

    @states("BAT-1", "BAT-2", "BAT-3", "BAT-4", "BAT-5", "BAT-6", "BAT-7", "BAT-8", "BAT-9", "BAT-10", "BAT-11")
    def _damaged(self, d: _Damage) -> Finding:
        assert d.segment.log is not None
        row, problem = d.row, Problem(int(d.row["problem"]))
        unchecked = problem is Problem.TOO_MUCH
        clause, sentence = problem_text(row)
        message, expected = _words(row, problem)
        at, start = int(row["problem_at"]), int(row["position"])
        if problem in RECOVERY_SEES and not (problem is Problem.MAGIC and int(row["magic"]) > 2):
            recovery = recovery_consequence(self.log, d.segment, start, d.offset, self.next_offset)
        else:
            recovery = "" if unchecked else UNSEEN
        return self.log.finding(
            Severity.UNCHECKED if unchecked else Severity.ERROR,
            clause,
            d.segment.log,
            f"{sentence}: {message}",
            expected=expected,
            recovery=recovery,
            position=at,
            offset=int(row["base_offset"]) if int(row["base_offset"]) >= 0 else d.offset,
        )

    @states("BAT-1")
    def _ending(self, segment: Segment, ending: Ending) -> Finding:
        assert segment.log is not None
        active, end = self.log.is_active(segment), ending.end_offset
        offset = segment.base_offset if end is None else end
        if active and ending.torn and self.log.clean is not True:
            return self.log.finding(
                Severity.LEFTOVER,
                TAIL_CLAUSE,
                segment.log,
                f"{ending.reason}: an append that was cut short, or that is under way",
                recovery=f"a restart cuts the file at byte {ending.end}, log end offset {offset}; no whole batch goes",
                position=ending.end,
                offset=offset,
            )
        return self.log.finding(
            Severity.ERROR,
            TAIL_CLAUSE,
            segment.log,
            f"{ending.reason} behind the last whole batch",
            expected="the end of the file" + ("" if active else ": only the active segment can end in a cut batch"),
            recovery=recovery_consequence(self.log, segment, ending.end, offset, None if active else self.next_offset),
            position=ending.end,
            offset=offset,
        )


def _words(row: Any, problem: Problem) -> tuple[str, str]:
    """What is there, and what would have been right."""
    start, size, attributes = int(row["position"]), int(row["size"]), int(row["attributes"])
    base, last, count = int(row["base_offset"]), int(row["last_offset"]), int(row["count"])
    at = f"byte {int(row['problem_at'])}"
    match problem:
        case Problem.LENGTH:
            return (
                f"bytes {start} to {start + size - 1} are no batch as they stand",
                f"length {size - 12}, if nothing else is wrong",
            )
        case Problem.MAGIC:
            return f"magic {int(row['magic'])}", "magic 2"
        case Problem.CRC:
            return f"CRC {int(row['crc']):#010x}", "the CRC of the bytes that follow"
        case Problem.ATTRIBUTES:
            return f"attributes {attributes:#06x}", "a codec from 0 to 4, bits 7 to 15 zero"
        case Problem.LAST_OFFSET_DELTA:
            return f"{last - base}", "0 or more"
        case Problem.COUNT:
            return f"a count of {count}", f"records that end where the batch does, at byte {start + size}"
        case Problem.COMPRESSION:
            return (
                f"{CODECS[attributes & CODEC_MASK]}, {size - 61} bytes",
                f"{count} records in {CODECS[attributes & CODEC_MASK]}",
            )
        case Problem.TOO_MUCH:
            return f"{CODECS[attributes & CODEC_MASK]}, {size - 61} bytes: not checked", f"at most {LIMIT >> 20} MiB"
        case Problem.TIMESTAMP:
            return f"{int(row['max_timestamp'])} in the header", f"{int(row['largest_timestamp'])}, as in the records"
        case Problem.OFFSET:
            return at, f"offsets that increase, from {base} to {last}"
        case _:
            return at, f"{count} whole records"


AUDIT = (BatchCheck,)
CLAUSES = tuple(id for id, _ in TEXTS.values())
"""Those that come from the scan."""
