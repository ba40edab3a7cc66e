"""Audit of transaction index files: whole entries of a known version, in an order in which readers find them, each
about a marker in its own segment.

Whether the entries are the aborted transactions of the data, and were stable up to there, is checked with the
producers. Indexes are small (34 bytes an aborted transaction), read whole, one at a time; between segments only the
last offset and the highest last stable offset are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkaspec.audit.check import Log, LogCheck
from kafkaspec.audit.files import Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.contract.clauses import states
from kafkaspec.impl.common.files import File, read_small
from kafkaspec.impl.common.rows import Chunk, Ending

ENTRY = np.dtype(
    [
        ("version", ">i2"),
        ("producer_id", ">i8"),
        ("first_offset", ">i8"),
        ("last_offset", ">i8"),
        ("last_stable_offset", ">i8"),
    ]
)

NOTHING = (
    "nothing, unless the segment is recovered after an unclean stop: then the index is made again from the records"
)
REBUILT = "finds the index corrupt, and makes it again from the segment's records"
READERS = "read_committed consumers are told of the wrong transactions"
FOLLOWER = (
    "nothing, unless the segment is recovered: a follower of Kafka 4.3 writes this itself where it appends several "
    "batches at once, and a recovery makes the index again, one batch at a time; until then a read_committed fetch of "
    "this replica that ends in between gets the transaction's records as if it was committed"
)


class TransactionIndexCheck(LogCheck):
    """Every .txnindex with its segment."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.before: NDArray[Any] | None = None
        """the last entry of the segments so far, with the highest last stable offset of them; None where there is none,
        or it is not to be trusted"""
        self.damaged = self.gaps = False
        self.next_offset = -1

    def begin(self, segment: Segment) -> Iterable[Finding]:
        self.damaged = self.gaps = False
        self.next_offset = segment.base_offset
        return ()

    def chunk(self, segment: Segment, chunk: Chunk) -> Iterable[Finding]:
        b = chunk.batches
        if segment.transaction_index is not None and len(b):
            self.damaged = self.damaged or bool((b["problem"] != 0).any())
            expected = np.empty(len(b), np.int64)
            expected[0] = self.next_offset
            expected[1:] = b["last_offset"][:-1] + 1
            self.gaps = self.gaps or bool((b["base_offset"] != expected).any())
            self.next_offset = int(b["last_offset"][-1]) + 1
        return ()

    def ended(self, segment: Segment, ending: Ending) -> Iterable[Finding]:
        if segment.transaction_index is not None:
            yield from self._check_index(segment, segment.transaction_index, ending)

    def skip(self, segment: Segment, problem: str) -> Iterable[Finding]:
        return ()

    @states("TXI-1", "TXI-11", "TXI-12", "TXI-13")
    def _check_index(self, segment: Segment, file: File, ending: Ending) -> Iterator[Finding]:
        data = read_small(file)
        whole, rest = divmod(len(data), ENTRY.itemsize)
        unfinished = self.log.is_active(segment) and self.log.clean is not True
        if rest:
            yield self._finding(
                Severity.LEFTOVER if unfinished else Severity.WARNING,
                "TXI-11",
                file,
                f"{rest} bytes after the last whole entry",
                f"entries of {ENTRY.itemsize} bytes, and nothing after them",
                "ignores them and, if the segment is not recovered, appends after them: later entries are misread",
                whole * ENTRY.itemsize,
            )
        entries = np.frombuffer(data, ENTRY, whole)
        if not whole:
            return
        versions = entries["version"] != 0
        if versions.any():
            n = int(np.argmax(versions))
            yield self._finding(
                Severity.ERROR,
                "TXI-1",
                file,
                f"an entry of version {entries['version'][n]}",
                "version 0",
                "refuses to read the index from here on, and every read_committed fetch that needs it"
                if entries["version"][n] > 255
                else NOTHING,
                n * ENTRY.itemsize,
            )
            self.before = None
            return
        first, last, stable = entries["first_offset"], entries["last_offset"], entries["last_stable_offset"]
        end = self._end(segment, ending)
        beyond = unfinished or self.damaged or bool(ending.reason)
        broken = [
            (
                "TXI-13",
                last < segment.base_offset,
                "ends at {last}, below the segment's base offset",
                f"markers at {segment.base_offset} or above",
                REBUILT,
            ),
            (
                "TXI-12",
                (first < 0) | (first >= last),
                "begins at {first} and ends at {last}",
                "a first offset from 0 up, below the last",
                NOTHING,
            ),
            (
                "TXI-12",
                stable < 0,
                "has the last stable offset {stable}, and ends at {last}",
                "a last stable offset from 0 up",
                NOTHING,
            ),
        ]
        if end is not None:
            broken.append(
                (
                    "TXI-13",
                    last >= end,
                    "ends at {last}, beyond the segment's last record",
                    f"markers below {end}",
                    NOTHING,
                )
            )
        bad = np.zeros(whole, bool)
        for clause, where, message, expected, recovery in broken:
            n = int(np.argmax(where & ~bad)) if (where & ~bad).any() else -1
            bad |= where
            if n >= 0:
                tail = clause == "TXI-13" and last[n] >= segment.base_offset and beyond
                yield self._finding(
                    Severity.LEFTOVER if tail else Severity.ERROR,
                    clause,
                    file,
                    "an aborted transaction "
                    + message.format(first=first[n], last=last[n], stable=stable[n])
                    + _more(int(where.sum()) - 1),
                    expected,
                    recovery,
                    n * ENTRY.itemsize,
                    int(last[n]),
                )
        if bad.any():
            self.before = None
            return
        yield from self._order(file, entries)
        so_far = entries if self.before is None else np.concatenate((self.before, entries))
        self.before = so_far[-1:].copy()
        self.before["last_stable_offset"] = so_far["last_stable_offset"].max()

    def _end(self, segment: Segment, ending: Ending) -> int | None:
        """Below which every marker lies: the end of the records, or, where the cleaner may have taken the last of them,
        the next segment's base offset."""
        after = [s.base_offset for s in self.log.files.segments if s.base_offset > segment.base_offset]
        if self.gaps or self.log.compacted or ending.end_offset is None:
            return after[0] if after else None
        return ending.end_offset

    @states("TXI-12")
    def _order(self, file: File, entries: NDArray[Any]) -> Iterator[Finding]:
        """One after the other, with those of the segments before.

        Last stable offsets may fall, and lie beyond the marker: of several batches in one append all transactions have
        begun before the first marker is looked at. A reader goes astray where a transaction begins below one of them.
        """
        own = 0 if self.before is None else 1
        every = entries if self.before is None else np.concatenate((self.before, entries))
        earlier, later = every[:-1], every[1:]
        stable = np.maximum.accumulate(earlier["last_stable_offset"])
        for where, before, message, expected, recovery in (
            (
                later["last_offset"] <= earlier["last_offset"],
                earlier["last_offset"],
                "ends at {last_offset}, and the one before it at {before}",
                "last offsets that rise",
                NOTHING,
            ),
            (
                later["first_offset"] < stable,
                stable,
                "begins at {first_offset}, below {before}, the last stable offset of one before it",
                "first offsets at or above what was stable before",
                FOLLOWER,
            ),
        ):
            if where.any():
                at = int(np.argmax(where))
                fields: dict[str, Any] = {name: later[name][at] for name in ENTRY.names or ()}
                yield self._finding(
                    Severity.ERROR,
                    "TXI-12",
                    file,
                    "an aborted transaction "
                    + message.format(before=before[at], **fields)
                    + _more(int(where.sum()) - 1),
                    expected,
                    recovery,
                    (at + 1 - own) * ENTRY.itemsize,
                    int(later["last_offset"][at]),
                )
                return

    def _finding(
        self,
        severity: Severity,
        clause: str,
        file: File,
        message: str,
        expected: str,
        recovery: str,
        position: int,
        offset: int | None = None,
    ) -> Finding:
        if severity is Severity.ERROR:
            recovery = f"{recovery}; meanwhile {READERS}" if recovery == NOTHING else recovery
        return self.log.finding(
            severity,
            clause,
            file,
            message,
            expected=expected,
            recovery=recovery,
            position=position,
            offset=offset,
        )


def _more(others: int) -> str:
    return f" ({others} more like it)" if others > 0 else ""


AUDIT = (TransactionIndexCheck,)
