"""Offset indexes beside their segments: does every entry lead a reader to the batch that it wants?

A reader that looks an offset up reads the .log from the entry's position on, and takes the first batch that ends at or
beyond the offset. So an entry misleads if its position is no batch's, or if a batch before it ends at or beyond the
entry's offset; anything else is at worst slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkaspec.audit.files import Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.common.index_evidence import INTERVAL, MOST_REMEMBERED, IndexCheck, State
from kafkaspec.contract.clauses import states
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.impl.storage.offset_index import SLOT


def _made_of(rows: NDArray[Any], n: NDArray[np.intp], offset: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the n-th batch, the first that ends at or beyond the offset, ends with it, or did before the cleaner took
    records out of it. Where its records are not known any offset within is taken for that. Of a batch that is not among
    the rows nothing is said."""
    m = np.minimum(n, len(rows) - 1)
    base, last, record = (rows[name][m] for name in ("base_offset", "last_offset", "last_record"))
    made: NDArray[np.bool_] = (last == offset) | (record == offset) | ((record < 0) & (base <= offset))
    return made


class OffsetIndexCheck(IndexCheck):
    """Every .index beside its segment."""

    slot = SLOT
    what, kind, suffix = "offset index", "offset indexes", ".index"
    order_clause, true_clause, beyond_clause = "OIX-23", "OIX-24", "OIX-27"
    clauses = ("OIX-23", "OIX-24", "OIX-25", "OIX-26", "OIX-27")
    needs_directory = ("OIX-28",)
    zeros_severity = Severity.WARNING
    zeros_consequence = (
        "none: they count as entries, which lead to the segment's first byte; "
        "the next segment begins at the next append"
    )

    def file_of(self, segment: Segment) -> File | None:
        return segment.offset_index

    def load(self, segment: Segment | None, data: bytes) -> None:
        super().load(segment, data)
        self.positions = self.cells["position"].astype(np.int64)
        self.offsets = self.cells["relative"].astype(np.int64) + self.base
        self.order = np.argsort(self.positions, kind="stable")
        self.sorted = self.positions[self.order]
        self.own = np.zeros(self.written, bool)
        """the entry's offset is that of the batch at its position, as with nearly all"""
        self.pending: list[int] = []
        self.inside: dict[int, tuple[int, int]] = {}
        """of entries that mislead: where the batch begins that they point into, and the offset before it"""

    @states("OIX-24", "OIX-25")
    def compare(self, chunk: Chunk) -> None:
        rows, bad, last = chunk.batches, chunk.bad, chunk.last
        position = rows["position"]
        end = int(position[-1] + rows["size"][-1])
        if self.pending:
            self._resolve(rows[~bad] if chunk.damaged else rows)
        some = self.order[np.searchsorted(self.sorted, self.seen_end) : np.searchsorted(self.sorted, end)]
        if not len(some):
            return
        at, offset = self.positions[some], self.offsets[some]
        row = np.searchsorted(position, at, "right") - 1
        r = np.maximum(row, 0)
        before = np.maximum(np.concatenate(([-1], chunk.reached))[r], self.last_offset)
        sound = (row >= 0) & ~bad[r]
        on = sound & (position[r] == at)
        state = np.full(len(some), State.UNCHECKED, np.int8)
        state[sound & (at < position[r] + rows["size"][r])] = State.MISLEADS
        fine = on & (before < offset)
        n = np.searchsorted(chunk.reached, offset)
        state[fine] = State.UNCHECKED if self.damaged else State.ODD
        state[fine & ((rows["base_offset"][r] == offset) | _made_of(rows, n, offset))] = State.TRUE
        later = fine & (n == len(last))
        state[later] = State.PENDING
        self.pending += some[later].tolist()
        self.state[some] = state
        self.own[some] = on & (last[r] == offset)
        for x in np.flatnonzero(state == State.MISLEADS).tolist():
            if len(self.inside) < MOST_REMEMBERED:
                self.inside[int(some[x])] = (int(position[r[x]]), int(before[x]))

    @states("OIX-25")
    def _resolve(self, rows: NDArray[Any]) -> None:
        """An entry's offset may be the last of a later batch of the same append."""
        waiting = np.array(self.pending)
        offset = self.offsets[waiting]
        n = np.searchsorted(rows["last_offset"], offset)
        made, over = _made_of(rows, n, offset), n == len(rows)
        self.state[waiting[~over]] = State.UNCHECKED if self.damaged else State.ODD
        self.state[waiting[made]] = State.TRUE
        self.pending = waiting[over].tolist()

    @states("OIX-24", "OIX-25", "OIX-27")
    def settle(self, ending: Ending) -> None:
        self.state[self.pending] = State.UNCHECKED if self.damaged else State.ODD
        self.state[self.positions < 0] = State.MISLEADS
        beyond = self.positions >= self.seen_end
        self.state[beyond] = State.BEYOND
        self.state[beyond & (self.positions < ending.size)] = State.UNCHECKED  # of what is no batch

    @states("OIX-23")
    def falls(self) -> NDArray[np.bool_]:
        if not self.written:
            return np.zeros(0, bool)
        return np.concatenate(([self.offsets[0] < self.base], self.offsets[1:] <= self.offsets[:-1]))

    def blames_the_first(self, i: int) -> bool:
        return bool(self.own[i + 1] and not self.own[i])

    def room_after(self, i: int) -> bool:
        since = self.seen_end - (int(self.positions[i - 1]) if i else 0)
        interval = self.log.config.index_interval_bytes or INTERVAL
        return since <= 2 * (interval + self.largest_batch)

    def sentence(self, i: int) -> tuple[str, str, str, int | None]:
        offset, position = int(self.offsets[i]), int(self.positions[i])
        says = f"offset {offset} is said to be at byte {position}"
        match self.state[i]:
            case State.BEYOND:
                return "OIX-27", f"{says}, the segment ends at {self.seen_end}", "no such entry", offset
            case State.ODD:
                return (
                    "OIX-25",
                    f"{says}, no batch from there on ends with it",
                    "the last offset, or the last record's, of a batch",
                    offset,
                )
            case State.MISLEADS:
                begins, before = self.inside.get(i, (-1, -1))
                if begins < 0:
                    return "OIX-24", says, "a position within the segment", offset
                if begins != position:
                    return "OIX-24", f"{says}, in the middle of a batch", f"byte {begins} or another batch's", offset
                return (
                    "OIX-24",
                    f"{says}, but a batch before that ends with offset {before}",
                    f"an offset above {before}, or the position of its batch",
                    offset,
                )
        before = int(self.offsets[i - 1]) if i else self.base - 1
        if offset > before:
            after = int(self.offsets[i + 1])
            return "OIX-23", f"offset {offset} stands before {after}", f"an offset below {after}", offset
        return "OIX-23", f"offset {offset} stands after {before}", f"an offset above {before}", offset

    @states("OIX-26")
    def further(self, segment: Segment, file: File, ending: Ending, stale: int | None) -> Iterator[Finding]:
        """One entry out of line with the interval; all of them only say that it was another one then."""
        interval = self.log.config.index_interval_bytes
        if interval is None or self.damaged:
            return
        gaps = np.diff(self.positions[:stale])
        dense = np.flatnonzero(gaps <= interval)
        if len(dense) == 1 and 0 < dense[0] < len(gaps) - 1:
            i = int(dense[0]) + 1
            yield self.log.finding(
                Severity.WARNING,
                "OIX-26",
                file,
                f"byte {int(self.positions[i])} is {int(gaps[i - 1])} bytes after the entry before",
                expected=f"more than {interval} bytes, as between all others",
                recovery=self.consequence(segment),
                position=i * self.slot.itemsize,
                offset=int(self.offsets[i]),
            )

    @states("OIX-28")
    def missing(self, segment: Segment, ending: Ending) -> Iterator[Finding]:
        if self.log.alone or segment.log is None:
            return
        empty_and_new = ending.end == 0 and self.open_ended(segment)
        yield self.log.finding(
            Severity.LEFTOVER if empty_and_new else Severity.WARNING,
            "OIX-28",
            segment.log,
            "the segment has no offset index",
            expected=f"a file {segment.log.path.with_suffix('.index').name}",
            recovery="loading the log recovers the segment: both indexes are made again",
            offset=segment.base_offset,
        )


AUDIT = (OffsetIndexCheck,)
