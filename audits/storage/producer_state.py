"""What the audit says of producers: sequences, epochs, transactions, the transaction indexes and the snapshots.

The log is read once, batch after batch, with one line of a table for each producer, as a broker does that rebuilds its
state. A compiled loop (`follow`) takes every batch that goes on as it must, what cannot be read, and old formats; the
first batch that does not go on so, and whatever is rare (a producer's first batch, an abort, a new epoch), is looked at
here, slowly and with the rules in order.

What a log cannot tell is not held against it. `missing` counts the offsets that are not there (compaction, a damaged
batch): whatever they may have held explains what follows. Producers are forgotten when idle, and when the state is
rebuilt; where the log begins at a higher offset than 0 the state before it is that of the snapshot there, if there is
one, and unknown otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkaspec import native
from kafkaspec.audit.check import Absent, Facts, Log, LogCheck
from kafkaspec.audit.files import Kind, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.contract.clauses import states
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File, open_regular, read_small
from kafkaspec.impl.common.kernels import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    COLUMNS,
    CONTROL_TYPE,
    COORDINATOR_EPOCH,
    COUNT,
    LAST_OFFSET,
    MAGIC,
    MAX_TIMESTAMP,
    POSITION,
    PROBLEM,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    SIZE,
)
from kafkaspec.impl.common.rows import ABORT, COMMIT, Chunk, Ending
from kafkaspec.impl.storage.producer_state import (
    ENTRY_SIZE,
    HEAD_SIZE,
    INT_MAX,
    SnapshotEntry,
    SnapshotUnreadable,
    decode,
)
from kafkaspec.impl.storage.transaction_index import ENTRY as INDEX_ENTRY
from kafkaspec.impl.storage.transaction_index import SUFFIX as INDEX_SUFFIX
from kafkaspec.impl.storage.transaction_index import AbortedTxn
from kafkaspec.native import load, store
from kafkaspec.spec.common.kafka import LONG_MAX
from kafkaspec.spec.common.record_format import CONTROL, TRANSACTIONAL, Malformed, log_records
from kafkaspec.spec.common.record_format import decode as decode_batch

EXPIRATION_MS = 86_400_000
"""producer.id.expiration.ms, as Kafka has it unless it is told otherwise"""
MOST_PRODUCERS = 1 << 17
NOWHERE = 2**62
DOUBT = 2**36
"""as many offsets are missing as anything may need; so few that no log has room for LONG_MAX of them"""

# ---- a producer's line of the table
(
    KEY, EPOCH, SEQUENCE, OFFSET, DELTA, TIMESTAMP, COORDINATOR, TRANSACTION, SEEN, FILTERED, DATA_TIMESTAMP, MARKER,
    RESUMED, PLAIN,
) = range(14)  # fmt: skip
LINE = 14
"""KEY: producer id + 1, 0 where there is none. SEQUENCE, OFFSET, DELTA: of the last data batch of this epoch, -1, -1, 0
without one. COORDINATOR: the last marker's, -1 without one, UNKNOWN where there may have been one. TRANSACTION: the
open one's first offset, or -1. SEEN: how many offsets were missing at its last data batch. FILTERED: records of that
batch are missing. DATA_TIMESTAMP: that batch's. MARKER: the last marker's offset, or -1. RESUMED: where its open
transaction has all but the last of some batches below the log start, the last one's base; otherwise any below its first
offset. PLAIN: 1 if it wrote a batch that is not transactional while nothing was seen to be open."""
UNKNOWN = -2

# ---- the loop's state
NEXT, MISSING, LATEST, COMMITTED, WATCH, FILTERED_ROWS, DOUBT_AT, REBUILT = range(8)
STATE = 8
"""NEXT: the offset that comes next. LATEST: the largest timestamp so far, ms. WATCH: whether the start of a transaction
is of interest. FILTERED_ROWS: batches that lack records. DOUBT_AT: NEXT when something could not be read, or -1.
REBUILT: what ProducerCheck._rebuilt_from gives."""


# ---- compiled --------------------------------------------------------------------------------------------------------
def line_of(table: int, mask: int, producer: int) -> int:
    """The address of a producer's line, or of the free one where it belongs."""
    slot = (producer * -7046029254386353131 >> 20) & mask
    while load(table, slot * LINE) != 0 and load(table, slot * LINE) != producer + 1:
        slot = (slot + 1) & mask
    return table + slot * LINE * 8


def follow(rows: int, first: int, end: int, table: int, mask: int, state: int, sequences: int, stop: int) -> int:
    """Take the rows from `first` on as long as each goes on as it must; the index of the first that needs a look."""
    i = first
    upcoming = load(state, NEXT)
    missing = load(state, MISSING)
    latest = load(state, LATEST)
    rebuilt = load(state, REBUILT)
    while i < end:
        row = rows + i * COLUMNS * 8
        base = load(row, BASE_OFFSET)
        last = load(row, LAST_OFFSET)
        if load(row, PROBLEM) != 0:
            if load(state, DOUBT_AT) != upcoming:
                missing += DOUBT
                store(state, DOUBT_AT, upcoming)
            i += 1
            continue
        if base >= stop:
            break
        if load(row, MAGIC) < 2:
            upcoming = last + 1 if last + 1 > upcoming else upcoming
            i += 1
            continue
        if base < upcoming or last < base:
            break
        producer = load(row, PRODUCER_ID)
        timestamp = load(row, MAX_TIMESTAMP)
        whole = load(row, COUNT) == last - base + 1
        if producer >= 0:
            attributes = load(row, ATTRIBUTES)
            line = line_of(table, mask, producer)
            epoch = load(row, PRODUCER_EPOCH)
            known = load(line, EPOCH)
            transaction = load(line, TRANSACTION)
            if load(line, KEY) == 0:
                break
            if (attributes & CONTROL) != 0:
                if load(row, CONTROL_TYPE) != COMMIT or load(row, COUNT) < 1:
                    break
                if epoch < known or epoch > known + 1 or load(row, COORDINATOR_EPOCH) < load(line, COORDINATOR):
                    break
                if transaction >= 0:
                    store(state, COMMITTED, load(state, COMMITTED) + 1)
                    store(line, TRANSACTION, -1)
                if epoch != known:
                    store(line, EPOCH, epoch)
                    store(line, SEQUENCE, -1)
                    store(line, OFFSET, -1)
                    store(line, DELTA, 0)
                store(line, COORDINATOR, load(row, COORDINATOR_EPOCH))
                store(line, MARKER, base)
            else:
                sequence = load(row, BASE_SEQUENCE)
                if epoch != known or (sequences != 0 and sequence != ((load(line, SEQUENCE) + 1) & INT_MAX)):
                    break
                if sequences == 0 and sequence != 0:
                    break
                if (attributes & TRANSACTIONAL) == 0:
                    if transaction >= 0:
                        break
                elif transaction < 0:
                    if load(state, WATCH) != 0:
                        break
                    store(line, TRANSACTION, base)
                elif load(line, OFFSET) < rebuilt and (base >= rebuilt or load(state, WATCH) != 0):
                    break
                store(line, SEQUENCE, (sequence + last - base) & INT_MAX)
                store(line, OFFSET, last)
                store(line, DELTA, last - base)
                store(line, FILTERED, 0 if whole else 1)
                store(line, DATA_TIMESTAMP, timestamp)
                store(line, SEEN, missing + base - upcoming)
            store(line, TIMESTAMP, timestamp)
        if not whole:
            store(state, FILTERED_ROWS, load(state, FILTERED_ROWS) + 1)
        missing += base - upcoming
        upcoming = last + 1
        latest = timestamp if timestamp > latest else latest
        i += 1
    store(state, NEXT, upcoming)
    store(state, MISSING, missing)
    store(state, LATEST, latest)
    return i


@cache
def _code() -> native.MachineCode:
    constants = {k: v for k, v in globals().items() if k.isupper() and type(v) is int}
    return native.library("producers", [line_of, follow], constants, {"line_of", "follow"})


# ---- the table -------------------------------------------------------------------------------------------------------
class Table:
    """Producers, by id: a line of numbers each, where the compiled loop finds it."""

    def __init__(self, room: int = 256) -> None:
        self.state = np.zeros(STATE, np.int64)
        self.state[LATEST] = self.state[DOUBT_AT] = -1
        self.count = 0
        self._make(room)

    def _make(self, room: int) -> None:
        self.lines = np.zeros((room, LINE), np.int64)
        self.mask = room - 1

    def come_to(self, offset: int) -> None:
        """That offset is the next; behind the greatest there is nothing."""
        self.state[NEXT] = min(offset, LONG_MAX)

    def miss(self, offsets: int) -> None:
        """That number of offsets more are missing. They add up to more than there are where damage is in an offset."""
        self.state[MISSING] = min(int(self.state[MISSING]) + offsets, LONG_MAX)

    def find(self, producer: int) -> tuple[int, bool]:
        """The number of a producer's line, and whether it is there; otherwise of the free one where it belongs."""
        at = _code().functions["line_of"](self.lines.ctypes.data, self.mask, producer)
        n = (at - self.lines.ctypes.data) // (LINE * 8)
        return n, bool(self.lines[n, KEY])

    def add(self, producer: int, line: list[int]) -> None:
        """Write a line, new or not."""
        n, there = self.find(producer)
        if not there:
            if 2 * (self.count + 1) > len(self.lines):
                self._again(2 * len(self.lines), self.present())
                n, _ = self.find(producer)
            self.count += 1
        self.lines[n] = [producer + 1, *line, *([0] * (LINE - 1 - len(line)))]

    def _again(self, room: int, lines: NDArray[np.int64]) -> None:
        self._make(room)
        for line in lines:
            n, _ = self.find(int(line[KEY]) - 1)
            self.lines[n] = line
        self.count = len(lines)

    def present(self) -> NDArray[np.int64]:
        """A copy of the lines in use."""
        used: NDArray[np.int64] = self.lines[self.lines[:, KEY] != 0]
        return used

    def shrink(self) -> bool:
        """Forget the half that wrote longest ago, but for open transactions, if there are too many; whether it did."""
        if self.count <= MOST_PRODUCERS:
            return False
        lines = self.present()
        old = lines[:, OFFSET] < np.median(lines[:, OFFSET])
        self._again(len(self.lines), lines[~old | (lines[:, TRANSACTION] >= 0)])
        return True

    def earliest_open(self, but: int = -1, written_from: int = -1) -> int | None:
        """The least first offset of the open transactions, those of producer `but` not counted, nor those without a
        record at `written_from` or behind it."""
        lines = self.lines[(self.lines[:, KEY] != 0) & (self.lines[:, KEY] != but + 1)]
        first = lines[lines[:, OFFSET] >= written_from, TRANSACTION]
        first = first[first >= 0]
        return int(first.min()) if len(first) else None


@dataclass
class _AbortedTransaction:
    """An aborted transaction, and what the index says of it."""

    producer: int
    first: int
    marker: int
    stable: int
    next_start: int | None = None
    """first offset of the first transaction of another producer that began later"""
    begun_below: int = 0
    """its first offset may also be any below this one: its first records may be among those that are not there"""
    last: int = -1
    """base of its last batch"""
    resumed: int = -1
    lost: bool = False
    """all its records are where a state that was rebuilt may not have seen them: it may have no entry"""
    sure_stable: bool = True
    doubtful: bool = False
    """something since its producer's last batch cannot be read: the marker of an earlier transaction, perhaps"""


@dataclass
class _Difference:
    """A snapshot's entry that is not what the records make."""

    position: int
    message: str
    expected: str


@dataclass
class _Segment:
    """What is gathered of one segment."""

    aborted: list[_AbortedTransaction] = field(default_factory=list)
    waiting: list[_AbortedTransaction] = field(default_factory=list)
    """those of which no later transaction has begun yet"""
    bare: set[int] = field(default_factory=set)
    """offsets of abort markers of which no records were seen"""
    missing: int = 0
    filtered: int = 0
    """how much was missing when it began"""


def _plural(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def is_offset_commit(key: bytes) -> bool:
    """Whether a record's key is that of an offset commit: the version 0 or 1, group, topic, and partition."""
    if key[:2] not in (b"\0\0", b"\0\1"):
        return False
    at = 2
    for _ in range(2):
        at += 2 + int.from_bytes(key[at : at + 2], "big")
    return at + 4 == len(key)


class ProducerCheck(LogCheck):
    """Producers of one partition, from its first batch to its last."""

    needs_directory = ("PSM-19",)

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.table = Table()
        self.sequences = 1
        """0 once a group coordinator's batch was seen: those of its log all begin at sequence 0"""
        self.begun = False
        self.start = 0
        """first offset that was read"""
        self.known_start = True
        """whether the state before the first batch is known"""
        self.rebuilt = 0
        self.forgot = False
        self.aborted = self.starts_at = 0
        self.snapshots = list(log.files.snapshots)
        self.next_snapshot = 0
        self.unreadable: list[int] = []
        self.segment: Segment | None = None
        self.gathered = _Segment()
        self.unindexed: list[str] = []
        """of a log that is alone: the transaction indexes that would have entries and are not there"""

    # the course of the log

    @classmethod
    def applies(cls, log: Log) -> bool:
        return log.files.kind in (Kind.CURRENT, Kind.FUTURE)

    def begin(self, segment: Segment) -> Iterator[Finding]:
        self.segment = segment
        if not self.begun:
            self.begun = True
            self.start = segment.base_offset
            self.table.state[NEXT] = segment.base_offset
            self.rebuilt = self.table.state[REBUILT] = self._rebuilt_from()
            yield from self._snapshots_below(segment)
        state = self.table.state
        self.gathered = _Segment(missing=int(state[MISSING]), filtered=int(state[FILTERED_ROWS]))
        state[WATCH] = 0
        if segment.base_offset > state[NEXT]:
            # the cleaner took the last records of the segment before: the log goes on at this one's base all the same
            yield from self._reach(segment.base_offset)
            self.table.miss(segment.base_offset - int(state[NEXT]))
            if self.log.alone:  # or a segment was not given, with whatever it held
                self._doubt()
            state[NEXT] = segment.base_offset

    def _rebuilt_from(self) -> int:
        """The greatest offset from which a broker may have rebuilt its state out of records.

        Without a snapshot above the log start it reads on from the batch of the log start, within a segment: a follower
        that truncates its log in that segment, say, or a broker whose snapshots cannot be read. It then knows nothing
        of what is below, and a transaction begins at its first batch there. It deletes the snapshots up to the log
        start, so that where one is left that has not happened from there on; but those of no producer say nothing, as
        it writes them where a clean stop left none (the log start was the end).
        """
        known = self.log.start_known and self.log.files.kind is Kind.CURRENT
        start = self.log.log_start if known else NOWHERE
        return min(NOWHERE, max(start or 0, self.start), *(x for x, f in self.snapshots if f.size > HEAD_SIZE))

    def chunk(self, segment: Segment, chunk: Chunk) -> Iterator[Finding]:
        rows = np.ascontiguousarray(chunk.batches)
        address, end, i = rows.ctypes.data, len(rows), 0
        run = _code().functions["follow"]
        while i < end:
            stop = self.snapshots[self.next_snapshot][0] if self.next_snapshot < len(self.snapshots) else NOWHERE
            t = self.table
            i = run(address, i, end, t.lines.ctypes.data, t.mask, t.state.ctypes.data, self.sequences, stop)
            if i == end:
                break
            row = rows[i].item()
            yield from self._reach(row[BASE_OFFSET])
            yield from self._row(row)
            i += 1

    def _row(self, row: tuple[int, ...]) -> Iterator[Finding]:
        """A batch that can be read."""
        state = self.table.state
        base, last = row[BASE_OFFSET], row[LAST_OFFSET]
        if row[MAGIC] < 2:
            self.table.come_to(max(int(state[NEXT]), last + 1))
            return
        if base < state[NEXT] or last < base:
            self._doubt()
            self.table.come_to(max(int(state[NEXT]), last + 1))
            state[DOUBT_AT] = state[NEXT]
            return
        self.table.miss(base - int(state[NEXT]))
        whole = row[COUNT] == last - base + 1
        if row[PRODUCER_ID] >= 0:
            if row[ATTRIBUTES] & CONTROL:
                if row[COUNT] >= 1 and row[CONTROL_TYPE] in (ABORT, COMMIT):
                    yield from self._marker(row)
            else:
                yield from self._data(row, whole)
        state[FILTERED_ROWS] += not whole
        self.table.come_to(last + 1)
        state[LATEST] = max(int(state[LATEST]), row[MAX_TIMESTAMP])

    def _doubt(self) -> None:
        """Something cannot be read: it may have held anything."""
        self.table.miss(DOUBT)
        self.table.state[DOUBT_AT] = self.table.state[NEXT]

    def _finding(
        self, severity: Severity, clause: str, row: tuple[int, ...], message: str, expected: str, recovery: str
    ) -> Finding:
        assert self.segment is not None
        assert self.segment.log is not None
        return self.log.finding(
            severity, clause, self.segment.log, message, expected=expected, recovery=recovery,
            position=row[POSITION], offset=row[BASE_OFFSET],
        )  # fmt: skip

    # data

    def _may_be_forgotten(self, line: NDArray[np.int64], row: tuple[int, ...]) -> bool:
        """Whether a broker may have known nothing any more of the producer when this batch came: it was idle, or its
        last records were below the log start (which Kafka before 2.4 took for a reason)."""
        if line[TRANSACTION] >= 0:
            return False
        newest = max(int(self.table.state[LATEST]), row[MAX_TIMESTAMP])
        log_start = self.log.log_start if self.log.log_start is not None else self.start
        written = max(int(line[OFFSET]), int(line[MARKER]))
        return newest - int(line[TIMESTAMP]) >= EXPIRATION_MS or written < log_start

    @states("PSM-9")
    def _data(self, row: tuple[int, ...], whole: bool) -> Iterator[Finding]:
        producer, epoch, first = row[PRODUCER_ID], row[PRODUCER_EPOCH], row[BASE_SEQUENCE]
        base, last = row[BASE_OFFSET], row[LAST_OFFSET]
        state = self.table.state
        n, there = self.table.find(producer)
        transactional = bool(row[ATTRIBUTES] & TRANSACTIONAL)
        trusted = True
        transaction, coordinator, marker = -1, -1 if self.known_start and not self.forgot else UNKNOWN, -1
        line = self.table.lines[n].copy()
        resumed, plain = int(line[RESUMED]), int(line[PLAIN])
        if there:
            transaction, coordinator, marker = (int(line[c]) for c in (TRANSACTION, COORDINATOR, MARKER))
            gap = int(state[MISSING] - line[SEEN])
            if not self._may_be_forgotten(line, row):
                for finding in self._sequence(row, line, gap):
                    yield finding
                    trusted = False
            if transaction >= 0 and transactional and epoch > line[EPOCH] and gap == 0:
                yield self._across(row, transaction, int(line[EPOCH]))
            if transaction >= 0 and not transactional:
                if gap == 0:
                    yield self._finding(
                        Severity.ERROR, "PSM-9", row,
                        f"a batch of producer {producer} that is not transactional, while its transaction from offset "
                        f"{transaction} is open", "a transactional batch, or the marker of the transaction first",
                        "nothing: it is taken over as it is, and stays hidden below the last stable offset",
                    )  # fmt: skip
                else:
                    transaction = -1
        elif self.table.shrink():
            self.forgot = True
        if transactional and transaction < 0:
            transaction = base
            if state[WATCH]:
                self._started(producer, base)
        elif transaction < 0:
            plain = 1
        elif transactional and line[OFFSET] < self.rebuilt:
            resumed = base
            if state[WATCH]:
                self._started(producer, base)
        self.table.add(
            producer,
            [
                epoch,
                (first + last - base) & INT_MAX,
                last,
                last - base,
                row[MAX_TIMESTAMP],
                coordinator,
                transaction,
                int(state[MISSING]) - (0 if trusted else DOUBT),
                int(not whole),
                row[MAX_TIMESTAMP],
                marker,
                resumed,
                plain,
            ],
        )

    @states("PSM-32")
    def _across(self, row: tuple[int, ...], transaction: int, known: int) -> Finding:
        return self._finding(
            Severity.ERROR, "PSM-32", row, f"epoch {row[PRODUCER_EPOCH]} of producer {row[PRODUCER_ID]}, while its "
            f"transaction from offset {transaction}, last of epoch {known}, is open",
            "the marker of that transaction first", "nothing: the producer's next marker decides about both, and until "
            "it comes the last stable offset stays there",
        )  # fmt: skip

    @states("PSM-33")
    def _not_from_zero(self, row: tuple[int, ...]) -> Finding:
        return self._finding(
            Severity.ERROR, "PSM-33", row, f"a batch of producer {row[PRODUCER_ID]} that begins at sequence "
            f"{row[BASE_SEQUENCE]}, among a group coordinator's",
            "sequence 0", "nothing: nobody looks at sequences there",
        )  # fmt: skip

    @states("PSM-33")
    def _coordinators(self, row: tuple[int, ...]) -> bool:
        """Whether a group coordinator wrote the batch: a transaction's, from sequence 0, and of offset commits alone.
        Of what cannot be read any more that is supposed."""
        if row[BASE_SEQUENCE] != 0 or not row[ATTRIBUTES] & TRANSACTIONAL:
            return False
        assert self.segment is not None
        assert self.segment.log is not None
        try:
            with os.fdopen(open_regular(self.segment.log.path), "rb") as f:
                f.seek(row[POSITION])
                records = log_records(decode_batch(f.read(row[SIZE])))
        except (UserError, OSError, Malformed):
            return True
        return bool(records) and all(r.key is not None and is_offset_commit(r.key) for r in records)

    @states("PSM-2", "PSM-3", "PSM-5", "PSM-6")
    def _sequence(self, row: tuple[int, ...], line: NDArray[np.int64], gap: int) -> Iterator[Finding]:
        producer, epoch, first = row[PRODUCER_ID], row[PRODUCER_EPOCH], row[BASE_SEQUENCE]
        known = int(line[EPOCH])
        if epoch < known:
            yield self._finding(
                Severity.ERROR, "PSM-6", row, f"epoch {epoch} of producer {producer} after its epoch {known}",
                f"an epoch of at least {known}", "nothing: it is taken over as it is",
            )  # fmt: skip
            return
        if not self.sequences:
            if first != 0:
                yield self._not_from_zero(row)
            return
        if first < 0:
            return
        if epoch > known:
            if first > gap:
                yield self._finding(
                    Severity.ERROR, "PSM-5", row,
                    f"epoch {epoch} of producer {producer} begins at sequence {first}; before it stands epoch {known}",
                    "sequence 0", "nothing: it is taken over as it is",
                )  # fmt: skip
            return
        expected = (int(line[SEQUENCE]) + 1) & INT_MAX
        skipped = (first - expected) & INT_MAX
        if skipped <= gap:
            return
        if self._coordinators(row):
            self.sequences = 0
            return
        last_first = (int(line[SEQUENCE]) - int(line[DELTA])) & INT_MAX
        recovery = "nothing: it is taken over as it is, and read as it stands"
        if (first, row[LAST_OFFSET] - row[BASE_OFFSET]) == (last_first, int(line[DELTA])):
            yield self._finding(
                Severity.ERROR, "PSM-2", row,
                f"the batch of producer {producer}, epoch {epoch}, with sequence {first} stands twice: it ends at "
                "offset "
                f"{int(line[OFFSET])} too", f"sequence {expected}", recovery,
            )  # fmt: skip
        elif skipped > INT_MAX // 2:
            yield self._finding(
                Severity.ERROR, "PSM-3", row,
                f"sequence {first} of producer {producer}, epoch {epoch}, was given out before: the batch that ends at "
                f"offset {int(line[OFFSET])} ends with {int(line[SEQUENCE])}", f"sequence {expected}", recovery,
            )  # fmt: skip
        else:
            yield self._finding(
                Severity.ERROR, "PSM-3", row,
                f"producer {producer}, epoch {epoch}, goes on with sequence {first} after {int(line[SEQUENCE])} "
                "(offset "
                f"{int(line[OFFSET])}): {_plural(skipped, 'record')} of it missing", f"sequence {expected}", recovery,
            )  # fmt: skip

    def _started(self, producer: int, first: int) -> None:
        for a in self.gathered.waiting:
            if a.producer != producer:
                a.next_start = first
        self.gathered.waiting = [a for a in self.gathered.waiting if a.next_start is None]
        self.table.state[WATCH] = bool(self.gathered.waiting)

    # markers

    @states("PSM-11", "PSM-12")
    def _marker(self, row: tuple[int, ...]) -> Iterator[Finding]:
        producer, epoch, coordinator = row[PRODUCER_ID], row[PRODUCER_EPOCH], row[COORDINATOR_EPOCH]
        state = self.table.state
        n, there = self.table.find(producer)
        line = self.table.lines[n].copy()
        same = there and int(line[EPOCH]) == epoch
        kind = "abort" if row[CONTROL_TYPE] == ABORT else "commit"
        recovery = "nothing: it is taken over as it is"
        gap = int(state[MISSING] - line[SEEN]) if there else 0
        if there and not self._may_be_forgotten(line, row):
            known = int(line[EPOCH])
            if epoch < known:
                yield self._finding(
                    Severity.ERROR, "PSM-11", row, f"a marker ({kind}) of epoch {epoch} for producer {producer}, whose "
                    f"epoch is {known}", f"an epoch of at least {known}", recovery,
                )  # fmt: skip
            elif kind == "commit" and epoch > known + 1 and line[TRANSACTION] >= 0 and gap == 0:
                yield self._finding(
                    Severity.WARNING, "PSM-11", row, f"a commit of epoch {epoch} for the transaction of producer "
                    f"{producer} from offset {int(line[TRANSACTION])}, whose last records are of epoch {known}",
                    f"epoch {known}, or {known + 1} from transaction version 2 on", recovery,
                )  # fmt: skip
            if coordinator < line[COORDINATOR]:
                yield self._finding(
                    Severity.ERROR, "PSM-12", row, f"a marker ({kind}) of coordinator epoch {coordinator} for producer "
                    f"{producer}, after one of {int(line[COORDINATOR])}",
                    f"a coordinator epoch of at least {int(line[COORDINATOR])}", recovery,
                )  # fmt: skip
        if there and line[TRANSACTION] >= 0:
            if kind == "commit":
                state[COMMITTED] += 1
            else:
                self.aborted += 1
                self._remember(row, line)
        elif kind == "abort":
            self.gathered.bare.add(row[BASE_OFFSET])
        if not there and self.table.shrink():
            self.forgot = True
        kept = [int(line[c]) for c in (SEQUENCE, OFFSET, DELTA)] if same else [-1, -1, 0]
        unseen = 0 if self.known_start and not self.forgot else -DOUBT
        seen, filtered, data = (int(line[c]) for c in (SEEN, FILTERED, DATA_TIMESTAMP)) if there else (unseen, 0, -1)
        self.table.add(
            producer, [epoch, *kept, row[MAX_TIMESTAMP], coordinator, -1, seen, filtered, data, row[BASE_OFFSET]]
        )

    def _remember(self, row: tuple[int, ...], line: NDArray[np.int64]) -> None:
        other = self.table.earliest_open(but=row[PRODUCER_ID])
        known = self.table.earliest_open(but=row[PRODUCER_ID], written_from=self.rebuilt)
        missing = int(self.table.state[MISSING])
        a = _AbortedTransaction(
            row[PRODUCER_ID],
            int(line[TRANSACTION]),
            row[BASE_OFFSET],
            row[BASE_OFFSET] + 1 if other is None else other,
            begun_below=self._begun_below(line, missing),
            last=int(line[OFFSET] - line[DELTA]),
            resumed=int(line[RESUMED]),
            lost=bool(line[OFFSET] < self.rebuilt),
            sure_stable=missing == 0
            and self.known_start
            and not self.forgot
            and (other is None or other >= self.rebuilt),
            doubtful=int(self.table.state[MISSING]) >= DOUBT,
        )
        self.gathered.aborted.append(a)
        if known is None:
            self.gathered.waiting.append(a)
            self.table.state[WATCH] = 1
        else:
            a.next_start = other

    def _begun_below(self, line: NDArray[np.int64], missing: int) -> int:
        """Below which offset the open transaction may have begun, other than at its first records that are there.

        Retention and DeleteRecords end no transaction, and a new epoch none whose marker was given up: after what was
        deleted only a marker says that none was open, or a batch that is not transactional, which every broker since
        0.11 refuses in an open transaction. A snapshot behind the log's begin says less: it may have been written again
        by a state that was rebuilt, beside an index that was not.
        """
        if missing:
            return int(line[TRANSACTION])
        return 0 if self.known_start or line[MARKER] >= 0 or line[PLAIN] else self.start

    def _rebuilt_first(self, first: int, begun: int, last: int, resumed: int) -> bool:
        """Whether a state that was rebuilt may have a transaction begin there that begins before: at the first batch
        at some log start or above it. What is below the present one is not looked at closely: nobody reads it."""
        return begun < first <= last and (first < self.rebuilt or first == resumed)

    # the transaction index

    def ended(self, segment: Segment, ending: Ending) -> Iterator[Finding]:
        yield from self._index(segment)
        if ending.reason and (self.log.clean or not self.log.is_active(segment)):
            self._doubt()

    def skip(self, segment: Segment, problem: str) -> Iterator[Finding]:
        """All transactions may have ended there, and all producers may have been forgotten."""
        yield from self._reach(int(self.table.state[NEXT]))
        self.table.lines[:, TRANSACTION] = -1
        self.table.lines[:, TIMESTAMP] = -NOWHERE
        self._doubt()

    @states("PSM-16")
    def _index(self, segment: Segment) -> Iterator[Finding]:
        seen = self.gathered
        file = segment.transaction_index
        entries: dict[int, tuple[int, AbortedTxn]] = {}
        if file is not None:
            try:
                data = read_small(file)
            except UserError as error:
                self.problems.append(str(error))
                return
            for at in range(0, len(data) - INDEX_ENTRY.size + 1, INDEX_ENTRY.size):
                version, *fields = INDEX_ENTRY.unpack_from(data, at)
                if version != 0:
                    break  # unreadable from here on: for the index's own check to say
                e = AbortedTxn(*fields)
                entries.setdefault(e.last_offset, (at, e))
            else:
                version = 0
            if version != 0:
                return
        elif self.log.files.in_place_of(segment, INDEX_SUFFIX) is not None:
            return  # LDR-18 tells of it
        incomplete = (
            int(self.table.state[MISSING]) > seen.missing or int(self.table.state[FILTERED_ROWS]) > seen.filtered
        )
        assert segment.log is not None
        path = str(file.path) if file is not None else str(segment.log.path.with_suffix(INDEX_SUFFIX))
        unpaired = [a for a in seen.aborted if a.marker not in entries]
        expected = {a.marker for a in seen.aborted}
        surplus = {m: x for m, x in entries.items() if m not in expected}
        for a in seen.aborted:
            if a.marker in entries:
                yield from self._entry(path, *entries[a.marker], a)
        for a in list(unpaired):
            same = next(
                (m for m, (_, e) in surplus.items() if (e.producer_id, e.first_offset) == (a.producer, a.first)), None
            )
            if same is not None:
                at, e = surplus.pop(same)
                unpaired.remove(a)
                yield self._wrong_entry(path, at, e, a)
        lacking = [a for a in unpaired if not a.lost]
        if unpaired and file is None and self.log.alone:
            self.unindexed.append(Path(path).name)
        elif lacking and not incomplete:
            yield self._missing_entries(segment, path, lacking, file is None, list(entries))
        for marker, (at, e) in surplus.items():
            if incomplete or (
                marker in seen.bare
                and (
                    self.table.state[MISSING] > 0 or not self.known_start or self.forgot or e.first_offset < self.start
                )
            ):
                continue
            yield self.log.finding(
                Severity.ERROR, "PSM-16", path,
                f"an aborted transaction of producer {e.producer_id}, offsets {e.first_offset} to {e.last_offset}, "
                "that "
                "the log does not have", expected="no such entry",
                recovery="only a recovery of this segment writes the index again; until then read_committed skips "
                "records "
                "of that producer", position=at, offset=e.first_offset,
            )  # fmt: skip

    def _right(self, a: _AbortedTransaction) -> str:
        return f"producer {a.producer}, offsets {a.first} to {a.marker}, last stable offset {a.stable}"

    def _entry(self, path: str, at: int, e: AbortedTxn, a: _AbortedTransaction) -> Iterator[Finding]:
        stable = {a.stable, a.next_start}
        first = e.first_offset
        if e.producer_id == a.producer and (
            first == a.first
            or a.doubtful
            or 0 <= first < a.begun_below
            or self._rebuilt_first(first, a.first, a.last, a.resumed)
        ):
            right = e.last_stable_offset in stable or (not a.sure_stable and e.last_stable_offset <= a.marker + 1)
        else:
            right = False
        if not right:
            yield self._wrong_entry(path, at, e, a)

    @states("PSM-16")
    def _wrong_entry(self, path: str, at: int, e: AbortedTxn, a: _AbortedTransaction) -> Finding:
        hidden = e.producer_id == a.producer and e.first_offset == a.first and e.last_offset == a.marker
        effect = (
            "a read_committed fetch may look too far or stop too early in the indexes" if hidden
            else f"read_committed sees the aborted records of producer {a.producer} from offset {a.first} on"
        )  # fmt: skip
        return self.log.finding(
            Severity.ERROR, "PSM-16", path,
            f"the entry says producer {e.producer_id}, offsets {e.first_offset} to {e.last_offset}, last stable offset "
            f"{e.last_stable_offset}", expected=self._right(a),
            recovery=f"only a recovery of this segment writes the index again; until then {effect}",
            position=at, offset=a.first,
        )  # fmt: skip

    @states("PSM-16")
    def _missing_entries(
        self, segment: Segment, path: str, lacking: list[_AbortedTransaction], no_file: bool, have: list[int]
    ) -> Finding:
        a = lacking[0]
        after = max(have, default=-1)
        recovered = self.log.recovery_point is None or int(self.table.state[NEXT]) > self.log.recovery_point
        in_flight = self.log.clean is False and recovered and a.marker > after
        ranges = ", ".join(f"{x.first} to {x.marker - 1}" for x in lacking[:3])
        more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
        what = "there is no index" if no_file else "the index lacks"
        count = _plural(len(lacking), "aborted transaction")
        return self.log.finding(
            Severity.LEFTOVER if in_flight else Severity.ERROR,
            "PSM-16",
            path,
            f"{what + ' for' if no_file else what} {count}: of producer {a.producer}, offsets {a.first} to {a.marker}"
            + (f", and {len(lacking) - 1} more" if len(lacking) > 1 else ""),
            expected=self._right(a),
            recovery="a restart recovers the segment and writes the index again" if in_flight
            else "only a recovery of this segment writes the index again; until then read_committed sees the aborted "
            "records "
            f"at offsets {ranges}{more}",
            position=sum(1 for m in have if m < a.marker) * INDEX_ENTRY.size,
            offset=a.first,
        )  # fmt: skip

    # snapshots

    def _snapshots_below(self, segment: Segment) -> Iterator[Finding]:
        """Those below the first segment, which nothing can be compared with, and the one at its base."""
        self.known_start = segment.base_offset == 0
        while self.next_snapshot < len(self.snapshots) and self.snapshots[self.next_snapshot][0] <= segment.base_offset:
            offset, file = self.snapshots[self.next_snapshot]
            self.next_snapshot += 1
            entries = yield from self._read(offset, file)
            if entries is None or offset < segment.base_offset:
                continue
            self.known_start = True
            for e in entries:
                self.table.add(
                    e.producer_id,
                    [
                        e.epoch, e.last_sequence, e.last_offset, e.offset_delta, e.timestamp, e.coordinator_epoch,
                        e.transaction, 0, 0, e.timestamp, -1,
                    ],
                )  # fmt: skip

    @states("PSM-25")
    def _read(self, offset: int, file: File) -> Generator[Finding, None, list[SnapshotEntry] | None]:
        """The entries of a snapshot file; None if it cannot be read."""
        try:
            return decode(read_small(file))
        except UserError as e:
            self.problems.append(str(e))
            return None
        except SnapshotUnreadable as e:
            self.unreadable.append(offset)
            yield self.log.finding(
                Severity.LEFTOVER if self.log.clean is False else Severity.WARNING, "PSM-25", file, str(e),
                expected="a snapshot of version 1 with the CRC-32C of its bytes",
                recovery="a restart that comes upon it deletes it and reads on from an earlier one, or from the log "
                "start",
                position=e.at, offset=offset,
            )  # fmt: skip
            return None

    def _reach(self, offset: int) -> Iterator[Finding]:
        """Compare the snapshots up to an offset, all batches below which are in."""
        while self.next_snapshot < len(self.snapshots) and self.snapshots[self.next_snapshot][0] <= offset:
            at, file = self.snapshots[self.next_snapshot]
            self.next_snapshot += 1
            entries = yield from self._read(at, file)
            if entries is None or at < int(self.table.state[NEXT]):
                continue  # within a batch: no place where a snapshot is taken
            wrong = self._differences(at, entries)
            if wrong:
                yield self._stale(at, file, wrong)

    @states("PSM-18")
    def _stale(self, at: int, file: File, wrong: list[_Difference]) -> Finding:
        later = [x for x, _ in self.snapshots[self.next_snapshot :]]
        more = f" ({_plural(len(wrong), 'producer')} differ)" if len(wrong) > 1 else ""
        return self.log.finding(
            Severity.WARNING if later else Severity.ERROR,
            "PSM-18",
            file,
            wrong[0].message + more,
            expected=wrong[0].expected,
            recovery="not read while there is a later one"
            if later
            else "a restart takes it as it is: duplicates, sequences and open transactions depend on it",
            position=wrong[0].position,
            offset=at,
        )

    def _differences(self, at: int, entries: list[SnapshotEntry]) -> list[_Difference]:
        out: list[_Difference] = []
        present: set[int] = set()
        for n, e in enumerate(entries):
            present.add(e.producer_id)
            slot, there = self.table.find(e.producer_id)
            line = self.table.lines[slot] if there else None
            said = self._entry_differs(at, e, line)
            if said is not None:
                out.append(_Difference(HEAD_SIZE + n * ENTRY_SIZE, *said))
        out += self._absent(at, entries, present)
        return out

    def _entry_differs(self, at: int, e: SnapshotEntry, line: NDArray[np.int64] | None) -> tuple[str, str] | None:
        missing = int(self.table.state[MISSING]) + max(0, at - int(self.table.state[NEXT]))
        who = f"producer {e.producer_id}"
        if line is None:
            if missing or self.forgot or not self.known_start or e.last_offset < self.start:
                return None
            return f"{who}, of which there is no batch below offset {at}", f"no {who}"
        gap = missing - int(line[SEEN])
        epoch, sequence, offset, delta, timestamp, coordinator, transaction = map(int, line[EPOCH : TRANSACTION + 1])
        if gap >= DOUBT:
            return None
        if gap and e.last_offset < at and ((e.last_offset > offset and e.epoch >= epoch) or e.epoch > epoch):
            return None  # its last batch is one of those that are not there
        wrong: list[tuple[str, int | tuple[int, int], int | tuple[int, int]]] = []
        if e.epoch != epoch:
            wrong.append(("epoch", e.epoch, epoch))
        elif e.last_sequence == sequence and e.last_offset == int(line[MARKER]) >= 0:
            pass  # Kafka 0.11 takes the marker for the producer's last batch
        elif e.last_offset == -1 and offset < self.rebuilt:
            pass  # only its marker is where the state was rebuilt from
        elif (e.last_sequence, e.last_offset) != (sequence, offset):
            wrong.append(("last sequence and offset", (e.last_sequence, e.last_offset), (sequence, offset)))
        elif e.offset_delta != delta and not line[FILTERED]:
            wrong.append(("offset delta", e.offset_delta, delta))
        missed_marker = gap and e.coordinator_epoch >= 0  # of the same epoch: it leaves nothing but its timestamp
        if e.timestamp not in (timestamp, int(line[DATA_TIMESTAMP])) and not line[FILTERED] and not missed_marker:
            wrong.append(("timestamp", e.timestamp, timestamp))
        if e.coordinator_epoch != coordinator and not (
            (e.coordinator_epoch > coordinator and (coordinator == UNKNOWN or missing))
            or (e.coordinator_epoch == -1 and line[MARKER] < self.rebuilt)
        ):
            wrong.append(("coordinator epoch", e.coordinator_epoch, coordinator))
        if e.transaction != transaction and not (
            (gap and transaction >= 0 > e.transaction)
            or (
                0 <= e.transaction < at  # what began it, or a marker before it, is not there
                and (missing or (not self.known_start and (transaction == -1 or e.transaction < transaction)))
            )
            or (e.transaction == -1 and offset < self.rebuilt)
            or (
                transaction >= 0 and self._rebuilt_first(e.transaction, transaction, offset - delta, int(line[RESUMED]))
            )
        ):
            wrong.append(("open transaction from", e.transaction, transaction))
        if not wrong:
            return None
        return (
            f"{who}: " + ", ".join(f"{what} {_number(x)}" for what, x, _ in wrong),
            f"{who}: "
            + ", ".join(f"{what} {_number(x)}" for what, _, x in wrong)
            + f", as the records below {at} make it",
        )

    def _absent(self, at: int, entries: list[SnapshotEntry], present: set[int]) -> list[_Difference]:
        """Producers that the snapshot lacks although nothing explains it. A producer is forgotten when it is idle; then
        all are that have been idle longer and wrote before."""
        lines = self.table.present()
        lines = lines[~np.isin(lines[:, KEY] - 1, np.fromiter(present, np.int64, len(present)))]
        if not len(lines):
            return []
        out = []
        idle = [(self._written(e), e.timestamp) for e in entries if e.transaction < 0 and e.last_offset >= 0]
        for line in lines[:1000]:
            who, offset, timestamp = int(line[KEY]) - 1, int(line[OFFSET]), int(line[TIMESTAMP])
            if self.log.topic_id is not None:  # before such ids a producer of markers alone was forgotten at once
                offset = max(offset, int(line[MARKER]))
            if line[TRANSACTION] >= 0 and offset >= self.rebuilt:
                what = f"lacks producer {who}, whose transaction from offset {int(line[TRANSACTION])} is open"
            elif any(o < offset and t <= timestamp for o, t in idle):
                what = f"lacks producer {who}, although one that wrote before it, and has been idle longer, is there"
            else:
                continue
            out.append(_Difference(HEAD_SIZE, what, f"producer {who} with last offset {offset}"))
        return out

    def _written(self, e: SnapshotEntry) -> int:
        """The offset of the last that the producer wrote, its markers included."""
        slot, there = self.table.find(e.producer_id)
        return max(e.last_offset, int(self.table.lines[slot, MARKER]) if there else -1)

    # the end

    @states("PSM-19")
    def end(self) -> Iterator[Finding]:
        if not self.begun:
            return
        end = int(self.table.state[NEXT])
        yield from self._reach(end)
        damaged = self.table.state[DOUBT_AT] == end  # and so the log's end is not known
        for offset, file in self.snapshots[self.next_snapshot :] if not damaged and not self.log.alone else ():
            try:
                os.close(open_regular(file.path))
            except UserError as error:  # Kafka takes it for none
                self.problems.append(str(error))
                continue
            yield self.log.finding(
                Severity.WARNING if self.log.clean else Severity.LEFTOVER, "PSM-19", file,
                f"a snapshot at offset {offset}, above the log end {end}", expected=f"no snapshot above {end}",
                recovery="a restart deletes it, and reads on from an earlier one or from the log start", offset=offset,
            )  # fmt: skip
        yield from self._nothing_to_load(end)

    def absent(self) -> Iterator[Absent]:
        if self.unindexed:
            yield Absent("transaction indexes", ("PSM-16",), tuple(self.unindexed))
        if not self.snapshots:
            yield Absent("producer snapshots", ("PSM-18", "PSM-25"))

    def learnt(self, facts: Facts) -> Facts:
        if not self.begun:
            return facts
        end, first = int(self.table.state[NEXT]), self.table.earliest_open()
        stable = end if first is None else max(first, self.log.log_start or 0)
        if self.log.high_watermark is not None:
            stable = min(stable, max(self.log.high_watermark, self.log.log_start or 0))
        return replace(
            facts,
            committed=int(self.table.state[COMMITTED]),
            aborted=self.aborted,
            open_transactions=int((self.table.present()[:, TRANSACTION] >= 0).sum()),
            last_stable_offset=stable,
        )

    @states("PSM-18")
    def _nothing_to_load(self, end: int) -> Iterator[Finding]:
        """After a clean stop a restart with no snapshot takes it that there were no producers."""
        start = max(self.log.log_start or 0, self.start)
        lines = self.table.present()
        if not self.log.clean or start >= end or self.snapshots or not len(lines):
            return
        opened = int((lines[:, TRANSACTION] >= 0).sum())
        what = f"{_plural(len(lines), 'producer')}" + (f", {_plural(opened, 'open transaction')}" if opened else "")
        yield self.log.finding(
            Severity.ERROR if opened else Severity.WARNING, "PSM-18", str(self.log.files.path),
            f"no producer snapshot, although the broker was stopped cleanly ({what})",
            expected=f"a snapshot at the log end {end}",
            recovery="a restart takes the log for one of before producer ids: it writes empty snapshots, knows no "
            "sequence, "
            "and forgets open transactions", offset=end,
        )  # fmt: skip


def _number(x: int | tuple[int, int]) -> str:
    if isinstance(x, tuple):
        return " at ".join(_number(y) for y in x)
    return "none" if x == -1 else "unknown" if x == UNKNOWN else str(x)


AUDIT = (ProducerCheck,)
