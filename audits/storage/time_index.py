"""Time indexes beside their segments: is every entry (T, O) true, and does the last one have the largest timestamp?

A reader that looks a time up reads the .log from the entry's offset on. So an entry misleads if a batch before has a
later timestamp. What the batches' largest timestamps are, their headers say, as they do to Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kafkaspec.audit.files import Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.common.index_evidence import MOST_REMEMBERED, IndexCheck, State
from kafkaspec.contract.clauses import states
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import Chunk, Ending, running_maximum
from kafkaspec.impl.storage.time_index import SLOT
from kafkaspec.spec.common.kafka import NO_TIMESTAMP


class TimeIndexCheck(IndexCheck):
    """Every .timeindex beside its segment."""

    slot = SLOT
    what, kind, suffix = "time index", "time indexes", ".timeindex"
    order_clause, true_clause, beyond_clause = "TIX-12", "TIX-13", "TIX-15"
    clauses = ("TIX-12", "TIX-13", "TIX-14", "TIX-15")
    needs_directory = ("TIX-16",)
    zeros_severity = Severity.ERROR
    zeros_consequence = (
        "none: the last of them counts as the segment's largest timestamp, 0, and retention by time deletes it"
    )

    def file_of(self, segment: Segment) -> File | None:
        return segment.time_index

    def load(self, segment: Segment | None, data: bytes) -> None:
        super().load(segment, data)
        self.timestamps = self.cells["timestamp"].astype(np.int64)
        self.offsets = self.cells["relative"].astype(np.int64) + self.base
        self.order = np.argsort(self.offsets, kind="stable")
        self.sorted = self.offsets[self.order]
        self.largest = NO_TIMESTAMP
        self.largest_at = -1
        """offset"""
        self.right: dict[int, tuple[int, int]] = {}
        """of wrong entries: the largest timestamp up to their offset, and that of the batch with the offset"""

    @states("TIX-13")
    def compare(self, chunk: Chunk) -> None:
        base, last = chunk.believed
        stamp = chunk.of_undamaged("max_timestamp")
        upto = np.maximum(running_maximum(stamp), self.largest)
        some = self.order[
            np.searchsorted(self.sorted, self.last_offset, "right") : np.searchsorted(self.sorted, last[-1], "right")
        ]
        if len(some):
            offset, timestamp = self.offsets[some], self.timestamps[some]
            r = np.searchsorted(last, offset)
            before = np.concatenate(([self.largest], upto[:-1]))[r]
            within = base[r] <= offset
            true = within & (stamp[r] == timestamp) & (before <= timestamp)
            state = np.where(true, State.TRUE, State.MISLEADS).astype(np.int8)
            if self.damaged:
                state[~within] = State.UNCHECKED
            self.state[some] = state
            for x in np.flatnonzero(state == State.MISLEADS).tolist():
                if len(self.right) < MOST_REMEMBERED:
                    self.right[int(some[x])] = (int(upto[r[x]]), int(stamp[r[x]]) if within[x] else NO_TIMESTAMP)
        if int(upto[-1]) > self.largest:
            self.largest = int(upto[-1])
            self.largest_at = int(last[int(np.argmax(stamp))])

    @states("TIX-13", "TIX-15")
    def settle(self, ending: Ending) -> None:
        unseen = self.state == State.UNSEEN
        beyond = unseen & (self.offsets > self.last_offset)
        self.state[beyond] = State.UNCHECKED if ending.reason or self.damaged else State.BEYOND
        self.state[unseen & ~beyond] = State.MISLEADS  # below 0, where no batch came by

    @states("TIX-12")
    def falls(self) -> NDArray[np.bool_]:
        if not self.written:
            return np.zeros(0, bool)
        offsets, times = self.offsets, self.timestamps
        return np.concatenate(([False], (offsets[1:] <= offsets[:-1]) | (times[1:] <= times[:-1])))

    def room_after(self, i: int) -> bool:
        """So few true entries may lie behind it by chance: of data that was cut off and fetched again."""
        return int((self.state[i + 1 :] == State.TRUE).sum()) <= 2

    def sentence(self, i: int) -> tuple[str, str, str, int | None]:
        offset, timestamp = int(self.offsets[i]), int(self.timestamps[i])
        says = f"the largest timestamp up to offset {offset} is said to be {timestamp}"
        match self.state[i]:
            case State.BEYOND:
                return "TIX-15", f"{says}, the segment ends with offset {self.last_offset}", "no such entry", offset
            case State.MISLEADS:
                largest, own = self.right.get(i, (NO_TIMESTAMP, NO_TIMESTAMP))
                if i not in self.right:
                    return "TIX-13", says, f"an offset from {self.base} on", offset
                if largest == timestamp:
                    return (
                        "TIX-13",
                        f"{says}, but the batch there has {own}",
                        "the offset of the batch that has it",
                        offset,
                    )
                return "TIX-13", f"{says}, it is {largest}", f"timestamp {largest}", offset
        before = f"{int(self.timestamps[i - 1])} at offset {int(self.offsets[i - 1])}"
        return (
            "TIX-12",
            f"timestamp {timestamp} at offset {offset} stands after {before}",
            "both above the entry's before",
            offset,
        )

    @states("TIX-14")
    def further(self, segment: Segment, file: File, ending: Ending, stale: int | None) -> Iterator[Finding]:
        """The last entry has the largest timestamp."""
        if self.open_ended(segment) or self.largest == NO_TIMESTAMP:
            return
        last = int(self.timestamps[-1]) if self.written else 0 if self.zeros_are_an_entry() else NO_TIMESTAMP
        if last >= self.largest:  # above it where there is damage: an entry that nothing contradicts
            return
        fixed = self.rebuilt(segment)
        yield self.log.finding(
            Severity.WARNING if fixed else Severity.ERROR,
            "TIX-14",
            file,
            f"the last entry has timestamp {last}" if self.written else "there is no entry",
            expected=f"timestamp {self.largest} at offset {self.largest_at}",
            recovery=self.consequence(segment)
            if fixed
            else "none: retention and lookups by time take the segment for older than it is",
            position=max(self.written - 1, 0) * self.slot.itemsize,
            offset=int(self.offsets[-1]) if self.written else segment.base_offset,
        )

    def zeros_are_an_entry(self) -> bool:
        """The time 0 at the base offset, as the only entry."""
        return self.slots == 1 and self.largest == 0

    @states("TIX-16")
    def missing(self, segment: Segment, ending: Ending) -> Iterator[Finding]:
        if self.log.alone or segment.log is None:
            return
        if self.largest == NO_TIMESTAMP:  # nor would there be an entry in it
            return
        recovered = self.rebuilt(segment) or (
            segment.offset_index is None and self.log.files.in_place_of(segment, ".index") is None
        )
        yield self.log.finding(
            Severity.WARNING,
            "TIX-16",
            segment.log,
            "the segment has no time index",
            expected=f"a file {segment.log.path.with_suffix('.timeindex').name}",
            recovery="the segment is recovered, and the index made again"
            if recovered
            else "loading the log makes an empty one: its largest timestamp is then the .log's time of modification",
            offset=segment.base_offset,
        )


AUDIT = (TimeIndexCheck,)
