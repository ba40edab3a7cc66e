"""What the audits of the two mapped indexes share: an index file beside its segment, entry by entry.

A check compares entries with the batches as they come by, and gives each a verdict; what the verdicts mean depends on
how the broker was stopped, and is worked out when the segment has ended. The entries that a truncation or a kill left
in the last segment's file are told from damage: nothing true stands behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkaspec.audit.check import Absent, Log, LogCheck
from kafkaspec.audit.files import Kind, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.common.findings import MOST_FINDINGS
from kafkaspec.contract.clauses import states
from kafkaspec.impl.common.files import File, read_small
from kafkaspec.impl.common.rows import Chunk, Ending

INTERVAL = 4096
"""index.interval.bytes, bytes, where nothing is known of it."""
MOST_REMEMBERED = 1_000
"""Wrong entries of a file of which is remembered what would have been right."""


class State(IntEnum):
    """What is known of an entry."""

    UNSEEN = 0
    """no batch has come by that it points at"""
    TRUE = 1
    MISLEADS = 2
    ODD = 3
    """a lookup by it is right, but no Kafka would have made it"""
    UNCHECKED = 4
    """there is damage where it points"""
    BEYOND = 5
    """it points beyond the segment's end"""
    PENDING = 6


BAD = (State.MISLEADS, State.ODD, State.BEYOND)


class IndexCheck(LogCheck):
    """One kind of index file of a log, segment by segment."""

    slot: np.dtype[Any]
    what: str
    """in a sentence: "offset index" """

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.load(None, b"")

    # ---- to be said by each kind
    def file_of(self, segment: Segment) -> File | None:
        raise NotImplementedError

    def compare(self, chunk: Chunk) -> None:
        """Check the entries that these batches are evidence for: some may be damaged, the others rise."""
        raise NotImplementedError

    def falls(self) -> NDArray[np.bool_]:
        """The entries that do not stand above the one before."""
        raise NotImplementedError

    def blames_the_first(self, i: int) -> bool:
        """Whether of the i-th entry and the next, which fall, the i-th is the odd one."""
        return False

    def sentence(self, i: int) -> tuple[str, str, str, int | None]:
        """Of a wrong entry: clause, what is there, what would have been right, offset."""
        raise NotImplementedError

    # ---- a segment
    def load(self, segment: Segment | None, data: bytes) -> None:
        """Begin with a segment whose index file holds these bytes."""
        size = self.slot.itemsize
        slots = np.frombuffer(data, self.slot, len(data) // size)
        self.written = min(-(-len(data.rstrip(b"\0")) // size), len(slots))
        self.slots, self.odd_bytes = len(slots), len(data) - len(slots) * size
        self.cells = slots[: self.written]
        self.base = segment.base_offset if segment is not None else 0
        self.state = np.zeros(self.written, np.int8)
        self.damaged = False
        self.legacy = False
        self.disordered = False
        self.rows = 0
        self.largest_batch = 0
        self.seen_end = 0
        """byte after the last batch that came by"""
        self.last_offset = -1
        """the highest, of the batches that came by"""

    def begin(self, segment: Segment) -> Iterable[Finding]:
        file = self.file_of(segment)
        self.load(segment, read_small(file) if file is not None else b"")
        return ()

    def chunk(self, segment: Segment, chunk: Chunk) -> Iterable[Finding]:
        rows = chunk.batches
        if not len(rows):
            return ()
        self.damaged |= chunk.damaged
        self.legacy |= chunk.legacy
        if self.legacy:
            return ()
        self.rows += len(rows)
        self.largest_batch = max(self.largest_batch, int(chunk.size.max()))
        base, last = chunk.believed
        if len(last):
            if int(base[0]) <= self.last_offset or not chunk.rising:
                self.disordered = True
            if not self.disordered:
                self.compare(chunk)
            self.last_offset = max(self.last_offset, int(chunk.reached[-1]))
        self.seen_end = int(rows["position"][-1] + rows["size"][-1])
        return ()

    # ---- at its end
    @states("OIX-23", "TIX-12")
    def ended(self, segment: Segment, ending: Ending) -> Iterator[Finding]:
        file = self.file_of(segment)
        if self.legacy:
            return
        if file is None:
            if self.log.files.in_place_of(segment, self.suffix) is None:  # of that LDR-18 tells
                yield from self.missing(segment, ending)
            return
        if self.odd_bytes:
            yield self.log.finding(
                Severity.WARNING,
                self.order_clause,
                file,
                f"{self.odd_bytes} bytes follow the last whole slot",
                expected=f"a multiple of {self.slot.itemsize} bytes",
                recovery=self.consequence(segment),
                position=self.slots * self.slot.itemsize,
            )
        yield from self.unwritten(segment, file)
        if self.disordered:
            return
        self.settle(ending)
        wrong = self.wrong()
        found = len(wrong)
        stale = self.stale_from(segment, wrong)
        if stale is not None:
            yield self.left_over(file, stale, ending)
            wrong = wrong[wrong < stale]
            found = len(wrong)
        for i in wrong[:MOST_FINDINGS].tolist():
            yield self.of_entry(segment, file, i)
        if found > MOST_FINDINGS:
            yield self.log.finding(
                Severity.ERROR,
                self.true_clause,
                file,
                f"{found - MOST_FINDINGS} more entries of this file are wrong",
                recovery=self.consequence(segment),
                position=int(wrong[MOST_FINDINGS]) * self.slot.itemsize,
            )
        if not found:
            yield from self.further(segment, file, ending, stale)

    def skip(self, segment: Segment, problem: str) -> Iterable[Finding]:
        return ()

    order_clause: str
    true_clause: str
    beyond_clause: str

    def settle(self, ending: Ending) -> None:
        """Give the entries that nothing came by for their verdict."""
        raise NotImplementedError

    def further(self, segment: Segment, file: File, ending: Ending, stale: int | None) -> Iterable[Finding]:
        """What is asked only of an index whose entries are all right."""
        return ()

    def missing(self, segment: Segment, ending: Ending) -> Iterable[Finding]:
        raise NotImplementedError

    suffix: str
    clauses: tuple[str, ...]
    """what is asked of a file that is there"""

    def absent(self) -> Iterable[Absent]:
        without = [
            s.log.path.with_suffix(self.suffix).name
            for s in self.log.files.segments
            if not self.file_of(s) and not self.log.files.in_place_of(s, self.suffix) and s.log
        ]
        return [Absent(self.kind, self.clauses, tuple(without))] if without else []

    kind: str
    """of such files, in the plural"""

    def wrong(self) -> NDArray[np.intp]:
        """The entries that are wrong, in themselves or after the one before them."""
        bad: NDArray[np.bool_] = np.isin(self.state, BAD)
        falls = self.falls()
        falls[1:] &= ~bad[:-1]  # the one before may be what is wrong
        for i in np.flatnonzero(falls[1:]).tolist():
            if self.blames_the_first(i):
                falls[i], falls[i + 1] = True, False
        return np.flatnonzero(bad | falls)

    def open_ended(self, segment: Segment) -> bool:
        """Whether the file may hold more than the index did: the broker runs, was killed, or the log is deleted."""
        if self.log.files.kind in (Kind.DELETED, Kind.STRAY):
            return True
        return self.log.clean is not True and self.log.is_active(segment)

    def stale_from(self, segment: Segment, wrong: NDArray[np.intp]) -> int | None:
        """The entry from which on the file holds what a truncation left behind; None if there is no such."""
        if not len(wrong) or not self.open_ended(segment):
            return None
        true = np.flatnonzero(self.state == State.TRUE)
        damage = np.flatnonzero(np.isin(self.state, BAD))
        for i in wrong.tolist():
            later = true[true > i]
            if not len(later) or not (damage >= i).any() or self.room_after(i):
                return int(i)
        return None

    def room_after(self, i: int) -> bool:
        """Whether the writer need not have made an entry since the one before i."""
        return False

    def rebuilt(self, segment: Segment) -> bool:
        """Whether a restart makes the segment's indexes again."""
        if self.log.clean is not False:
            return False
        if self.log.is_active(segment) or self.log.recovery_point is None:
            return True
        later = [s.base_offset for s in self.log.files.segments if s.base_offset > segment.base_offset]
        return later[0] > self.log.recovery_point

    def consequence(self, segment: Segment) -> str:
        if self.log.files.kind is Kind.DELETED:
            return "the directory is to be deleted"
        if self.log.clean is None:
            return "after an unclean stop recovery may make the index again; otherwise it is read as it is"
        if self.rebuilt(segment):
            return "recovery makes the index again from the .log file"
        return "none: the index is read as it is, and not checked"

    @states("OIX-27", "TIX-15")
    def unwritten(self, segment: Segment, file: File) -> Iterator[Finding]:
        zeros = self.slots - self.written
        if not zeros or self.zeros_are_an_entry():
            return
        left = self.open_ended(segment) or self.rebuilt(segment)
        severity = Severity.LEFTOVER if left else self.zeros_severity
        yield self.log.finding(
            severity,
            self.beyond_clause,
            file,
            f"{zeros} unwritten slots after {self.written} entries",
            expected="" if left else f"{self.written * self.slot.itemsize} bytes",
            recovery=self.consequence(segment) if left else self.zeros_consequence,
            position=self.written * self.slot.itemsize,
        )

    zeros_severity: Severity
    zeros_consequence: str

    def zeros_are_an_entry(self) -> bool:
        return False

    @states("OIX-27", "TIX-15")
    def left_over(self, file: File, first: int, ending: Ending) -> Finding:
        n = self.written - first
        return self.log.finding(
            Severity.LEFTOVER,
            self.beyond_clause,
            file,
            f"{n} {'entry' if n == 1 else 'entries'} of what a truncation took from the log",
            recovery="the directory is to be deleted"
            if self.log.files.kind is Kind.DELETED
            else "recovery makes the index again from the .log file",
            position=first * self.slot.itemsize,
            offset=ending.end_offset,
        )

    def of_entry(self, segment: Segment, file: File, i: int) -> Finding:
        clause, message, expected, offset = self.sentence(i)
        severity = Severity.WARNING if self.state[i] == State.ODD else Severity.ERROR
        return self.log.finding(
            severity,
            clause,
            file,
            message,
            expected=expected,
            recovery=self.consequence(segment),
            position=i * self.slot.itemsize,
            offset=offset,
        )
