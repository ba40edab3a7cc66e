"""Audit of segments as such: which offsets a segment may hold, and how large it may be.

Names, gaps between segments and what a crash leaves are checked with the loading of a log; indexes against the batches
with the indexes.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kafkaspec.audit.check import Log, LogCheck
from kafkaspec.audit.files import Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.contract.clauses import states
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.spec.common.kafka import INT_MAX

SPLIT = "splits the segment if it recovers it; until then the batch is not found, or by a wrong offset"
HIDDEN = "nothing: offsets below the base are looked for in the segment before"


class SegmentCheck(LogCheck):
    """The first batch of a segment, and every batch's reach from the base offset."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.below = self.beyond = False
        """one finding of each kind a segment"""

    def begin(self, segment: Segment) -> Iterable[Finding]:
        self.below = self.beyond = False
        return ()

    @states("SEG-27")
    def chunk(self, segment: Segment, chunk: Chunk) -> Iterable[Finding]:
        assert segment.log is not None
        b = chunk.batches
        good = ~(chunk.bad | chunk.old)
        below = good & (chunk.base < segment.base_offset)
        beyond = good & (chunk.last > segment.base_offset + INT_MAX)
        if below.any() and not self.below:
            self.below = True
            row = b[int(np.argmax(below))]
            yield self.log.finding(
                Severity.ERROR,
                "SEG-27",
                segment.log,
                f"a batch that begins at {row['base_offset']}, below the segment's base offset",
                expected=f"offsets of {segment.base_offset} or above",
                recovery=HIDDEN,
                position=int(row["position"]),
                offset=int(row["base_offset"]),
            )
        if beyond.any() and not self.beyond:
            self.beyond = True
            row = b[int(np.argmax(beyond))]
            yield self.log.finding(
                Severity.ERROR,
                "SEG-27",
                segment.log,
                f"a batch that ends at {row['last_offset']}, more than 2^31 - 1 above the segment's base offset",
                expected=f"offsets of {segment.base_offset + INT_MAX} or below",
                recovery=SPLIT,
                position=int(row["position"]),
                offset=int(row["last_offset"]),
            )

    @states("SEG-28")
    def ended(self, segment: Segment, ending: Ending) -> Iterable[Finding]:
        if ending.size > INT_MAX and segment.log is not None:
            yield self.log.finding(
                Severity.ERROR,
                "SEG-28",
                segment.log,
                f"{ending.size} bytes, more than the 2^31 - 1 of a segment",
                expected=f"at most {INT_MAX} bytes",
                recovery="does not open the log: its directory goes offline",
                position=INT_MAX,
            )

    def skip(self, segment: Segment, problem: str) -> Iterable[Finding]:
        return ()


AUDIT = (SegmentCheck,)
