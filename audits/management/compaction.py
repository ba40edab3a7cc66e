"""Compaction's promises about a log at rest: no key twice below the cleaner point, no record without a key, none of an
aborted transaction.

Keys are compared by 128 bits of hash, in memory as long as they are few. When there are more than fit, they go to
temporary files by the first bits of their hashes, and each file is looked at by itself (and is split again if it is
still too large): the answer is exact for any number of keys, in constant memory. Where hashes are equal the keys
themselves are read and compared, so that a collision is no finding.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkaspec.audit.check import Log, LogCheck
from kafkaspec.audit.files import Kind, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.common.evidence import fitting
from kafkaspec.audits.common.findings import MOST_FINDINGS
from kafkaspec.contract.clauses import states
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File, open_regular
from kafkaspec.impl.common.rows import ABORT, COMMIT, Chunk, Ending
from kafkaspec.spec.common.kafka import INT_MAX, LONG_MAX
from kafkaspec.spec.common.record_format import (
    CONTROL,
    TRANSACTIONAL,
    Malformed,
    decode,
    log_records,
)

KEY = np.dtype(
    [
        ("high", "<u8"),
        ("low", "<u8"),
        ("offset", "<i8"),
        ("position", "<i8"),
        ("segment", "<i4"),
        ("size", "<i4"),  # of the batch, bytes
    ]
)
CAPACITY = 1 << 19
"""Keys that are kept in memory: 20 MiB, and as much again while they are sorted."""
PARTS_BITS = 6
MOST_LOOKS = 2000
"""Groups of equal hashes of which the keys are read."""
HAS_KEY, CONTROL_RECORD = 1, 4


class Keys:
    """Many keys by their hashes; `equal` gives those that share one, in constant memory: of very many with one hash the
    last ones. `depth`: how many times the first bits of the hashes were used to split them."""

    def __init__(self, capacity: int = CAPACITY, depth: int = 0) -> None:
        self.capacity, self.depth = capacity, depth
        self.rows = np.empty(0, KEY)
        self.waiting: list[NDArray[Any]] = []
        self.count = 0
        self.folder: Path | None = None

    def add(self, rows: NDArray[Any]) -> None:
        """More keys. Raises OSError if there is no room on the disk for temporary files."""
        self.waiting.append(rows)
        self.count += len(rows)
        if self.count >= self.capacity and self.depth:
            rows = _thinned(np.concatenate(self.waiting))
            self.waiting, self.count = [rows], len(rows)
        if self.count >= self.capacity // (2 if self.depth else 1) and self.depth * PARTS_BITS < 64 - PARTS_BITS:
            self._spill()

    def _spill(self) -> None:
        rows = np.concatenate(self.waiting)
        self.waiting, self.count = [], 0
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="kafkaspec-audit-"))
        shift = np.uint64(64 - PARTS_BITS * (self.depth + 1))
        part = ((rows["high"] >> shift) & np.uint64((1 << PARTS_BITS) - 1)).astype(np.uint8)
        order = np.argsort(part, kind="stable")  # by counting, for so small a type
        rows = _words(rows)[order]
        bounds = np.concatenate(([0], np.bincount(part, minlength=1 << PARTS_BITS).cumsum()))
        for n, (first, after) in enumerate(itertools.pairwise(bounds.tolist())):
            if first < after:
                with (self.folder / str(n)).open("ab") as f:
                    rows[first:after].tofile(f)

    def equal(self) -> Iterator[NDArray[Any]]:
        """Each group of keys of one hash, by rising offset. Once; the temporary files are gone after that."""
        if self.folder is None:
            rows = np.concatenate(self.waiting) if self.waiting else self.rows
            self.waiting = []
            yield from _groups(rows)
            return
        if self.count:
            self._spill()
        for n in range(1 << PARTS_BITS):
            path = self.folder / str(n)
            if path.is_file():
                part = Keys(self.capacity, self.depth + 1)
                try:
                    with path.open("rb") as f:
                        while len(rows := np.fromfile(f, KEY, self.capacity // 4 + 1)):
                            part.add(rows)
                    path.unlink()
                    yield from part.equal()
                finally:
                    part.close()

    def close(self) -> None:
        """Remove what is left of the temporary files."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def __del__(self) -> None:
        self.close()


def _words(rows: NDArray[Any]) -> NDArray[Any]:
    """The same rows as plain numbers, which are picked faster."""
    return rows.view("<u8").reshape(-1, KEY.itemsize // 8)


def _thinned(rows: NDArray[Any]) -> NDArray[Any]:
    """Of each hash the last few: as many as there may be findings, and one more."""
    rows = rows[np.lexsort((rows["offset"], rows["low"], rows["high"]))]
    last = np.append((rows["high"][1:] != rows["high"][:-1]) | (rows["low"][1:] != rows["low"][:-1]), True)
    ends = np.flatnonzero(last)
    after = np.repeat(ends, np.diff(ends, prepend=-1)) - np.arange(len(rows))
    kept: NDArray[Any] = rows[after <= MOST_FINDINGS]
    return kept


def _groups(rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    high = rows["high"].copy()
    order = np.argsort(high)
    high = high[order]
    twice = np.flatnonzero(high[1:] == high[:-1])
    if not len(twice):
        return
    some = np.zeros(len(rows), bool)
    some[twice] = some[twice + 1] = True
    rows = np.sort(rows[order[some]], order=("high", "low", "offset"))
    same = (rows["high"][1:] == rows["high"][:-1]) & (rows["low"][1:] == rows["low"][:-1])
    starts = np.concatenate(([0], np.flatnonzero(~same) + 1, [len(rows)]))
    for first, after in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if after - first > 1:
            yield rows[first:after]


class CompactionCheck(LogCheck):
    """What a log has left below its cleaner point though it ought to be gone."""

    needs_records = True
    needs_directory = ("CMP-2", "CMP-3", "CMP-4", "CMP-5", "CMP-6", "CMP-7", "CMP-8", "CMP-10", "CMP-11")
    keys_class = Keys

    @classmethod
    @states("CMP-5")
    def applies(cls, log: Log) -> bool:
        """A point above the active segment's base was not written of this log as it is."""
        segments = log.files.segments
        return (
            log.cleaner_point is not None
            and log.files.kind == Kind.CURRENT
            and log.files.only is None
            and log.start_known
            and bool(segments)
            and segments[0].base_offset < log.cleaner_point <= segments[-1].base_offset
        )

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        assert log.cleaner_point is not None
        self.point = log.cleaner_point
        first = log.files.segments[0].base_offset if log.files.segments else 0
        self.start = max(log.log_start or 0, first)
        self.segments: list[Segment] = []
        self.before = -1
        self.keys = self.keys_class()
        self.open: dict[int, tuple[int, int, int]] = {}
        """by producer: segment, position and offset of the first batch below the point of a transaction that goes on"""
        self.keyless: list[tuple[int, int, int]] = []
        self.aborted: list[tuple[int, int, int]] = []
        self.emptied: dict[int, tuple[tuple[int, int, int], int]] = {}
        """by producer: its last batch without records below the point, and that one's last sequence"""
        self.emptied_before: list[tuple[tuple[int, int, int], int]] = []
        """batches without records, each with the offset of a later one of its producer"""
        self.doubtful = False
        """something cannot be read: it may have held a marker"""

    def begin(self, segment: Segment) -> Iterable[Finding]:
        self.segments.append(segment)
        return ()

    def chunk(self, segment: Segment, chunk: Chunk) -> Iterable[Finding]:
        rows = chunk.batches
        if not len(rows):
            return ()
        sound = (rows["problem"] == 0) & (rows["magic"] >= 2)
        sound[sound] = self._fits(rows[sound])
        self.doubtful = self.doubtful or not bool(sound.all())
        of_transactions = sound & ((rows["attributes"] & (TRANSACTIONAL | CONTROL)) != 0)
        promised = self._promised(rows, chunk.records)
        self._transactions(rows[of_transactions], promised[of_transactions])
        if chunk.records is not None and int(rows["base_offset"][0]) < self.point:
            self._records(rows, chunk.records, sound)
            self._emptied(rows[sound & (rows["count"] == 0)])
        return ()

    def ended(self, segment: Segment, ending: Ending) -> Iterable[Finding]:
        self.doubtful = self.doubtful or bool(ending.reason)
        return ()

    def skip(self, segment: Segment, problem: str) -> Iterable[Finding]:
        """All transactions may have ended there."""
        self.doubtful = True
        self.open.clear()
        return ()

    @states("CMP-8")
    def _fits(self, rows: NDArray[Any]) -> NDArray[Any]:
        if not len(rows):
            return np.zeros(0, bool)
        base, last = rows["base_offset"], rows["last_offset"]
        after = np.append(base[1:], LONG_MAX)
        fits = fitting(base, last, self.before, after)
        if fits.any():
            self.before = int(last[fits].max())
        return fits

    @states("CMP-3", "CMP-5", "CMP-6", "CMP-7")
    def _records(self, rows: NDArray[Any], records: NDArray[Any], sound: NDArray[Any]) -> None:
        of = records["batch"]
        promised = (records["offset"] >= self.start) & (records["offset"] < self.point) & sound[of]
        promised &= (records["flags"] & CONTROL_RECORD) == 0
        has_key = (records["flags"] & HAS_KEY) != 0
        without = np.flatnonzero(promised & ~has_key)
        for i in without[: MOST_FINDINGS - len(self.keyless)].tolist():
            at = int(rows["position"][of[i]])
            self.keyless.append((len(self.segments) - 1, at, int(records["offset"][i])))
        chosen = np.flatnonzero(promised & has_key)
        if len(chosen):
            out = np.empty(len(chosen), KEY)
            picked = records[chosen]
            out["high"], out["low"] = picked["key_hash"][:, 0], picked["key_hash"][:, 1]
            out["offset"] = picked["offset"]
            out["position"], out["size"] = rows["position"][of[chosen]], rows["size"][of[chosen]]
            out["segment"] = len(self.segments) - 1
            self.keys.add(out)

    @states("CMP-5", "CMP-6")
    def _promised(self, rows: NDArray[Any], records: NDArray[Any] | None) -> NDArray[Any]:
        """Which batches have a record at or above the log start and below the point: one may begin before the first,
        end behind the second, and have none between them."""
        found = np.zeros(len(rows), bool)
        if records is not None:
            found[records["batch"][(records["offset"] >= self.start) & (records["offset"] < self.point)]] = True
        return found

    @states("CMP-4", "CMP-7", "CMP-8")
    def _transactions(self, rows: NDArray[Any], promised: NDArray[Any]) -> None:
        """Of each producer the first batch with promised records since its last marker; a marker that aborts finds
        it."""
        if not len(rows):
            return
        control = (rows["attributes"] & CONTROL) != 0
        data = ~control & promised
        markers = control & ((rows["control_type"] == ABORT) | (rows["control_type"] == COMMIT))
        for i in np.flatnonzero(data | markers).tolist():
            producer = int(rows["producer_id"][i])
            if not markers[i]:
                at = int(rows["position"][i]), int(rows["base_offset"][i])
                self.open.setdefault(producer, (len(self.segments) - 1, *at))
            else:
                first = self.open.pop(producer, None)
                if first is not None and rows["control_type"][i] == ABORT and len(self.aborted) < MOST_FINDINGS:
                    self.aborted.append(first)

    @states("CMP-5", "CMP-11")
    def _emptied(self, rows: Any) -> None:
        """Of each producer the last data batch without records. Kafka before 2.3 kept every batch that had its
        producer's last sequence, whatever the epoch: where the topic may be so old, only another sequence tells."""
        counts = ((rows["attributes"] & CONTROL) == 0) & (rows["producer_id"] >= 0)
        counts &= (rows["last_offset"] >= self.start) & (rows["last_offset"] + 1 < self.point)
        for row in rows[counts]:
            producer, base, last = (int(row[c]) for c in ("producer_id", "base_offset", "last_offset"))
            sequence = (int(row["base_sequence"]) + last - base) & INT_MAX
            before = self.emptied.get(producer)
            if before is not None and (self.log.topic_id is not None or before[1] != sequence):
                self.emptied_before.append((before[0], base))
            self.emptied[producer] = (len(self.segments) - 1, int(row["position"]), base), sequence

    # ---- findings

    def end(self) -> Iterable[Finding]:
        try:
            yield from self._twice()
        finally:
            self.keys.close()
        yield from self._left_open()
        for (segment, position, offset), later in self.emptied_before[:MOST_FINDINGS]:
            yield self._finding(
                "CMP-11",
                segment,
                position,
                offset,
                f"a batch without records below the cleaner point {self.point}, and its producer has another one at "
                f"offset {later}",
                "at most one of a producer, that of its last sequence",
                "the next cleaning of the log removes it",
            )
        for segment, position, offset in self.keyless[:MOST_FINDINGS]:
            yield self._finding(
                "CMP-3",
                segment,
                position,
                offset,
                f"a record without a key below the cleaner point {self.point}",
                "every record below it has a key",
                "the next cleaning of the log removes it",
            )
        for segment, position, offset in sorted(self.aborted):
            yield self._finding(
                "CMP-4",
                segment,
                position,
                offset,
                f"records of an aborted transaction below the cleaner point {self.point}",
                "no such record below it",
                "the next cleaning of the log removes them, if the transaction index knows the transaction",
            )

    @states("CMP-10")
    def _left_open(self) -> Iterator[Finding]:
        if self.doubtful:
            return
        for segment, position, offset in sorted(self.open.values())[:MOST_FINDINGS]:
            yield self._finding(
                "CMP-10",
                segment,
                position,
                offset,
                f"records of a transaction without a marker below the cleaner point {self.point}",
                "a marker of its producer behind them: the cleaner stays below the last stable offset",
                "none: the last stable offset stays there until its producer's next marker",
            )

    @states("CMP-2")
    def _twice(self) -> Iterator[Finding]:
        found = 0
        for group in itertools.islice(self.keys.equal(), MOST_LOOKS):
            for earlier, last, key in self.confirmed(group):
                found += 1
                if found > MOST_FINDINGS:
                    return
                there = self._file(int(last["segment"]))
                shown = key[:40].decode("latin-1").encode("unicode_escape").decode()
                yield self._finding(
                    "CMP-2",
                    int(earlier["segment"]),
                    int(earlier["position"]),
                    int(earlier["offset"]),
                    f"the record's key '{shown}{'...' if len(key) > 40 else ''}' stands again at offset "
                    f"{int(last['offset'])}, byte {int(last['position'])} of {there.path.name}, below the cleaner "
                    f"point {self.point}",
                    "a key at most once below it, its last record",
                    "none: it goes when the key is written again and that is cleaned",
                )

    @states("CMP-2")
    def confirmed(self, group: NDArray[Any]) -> Iterator[tuple[Any, Any, bytes]]:
        """Of keys with one hash those that are really the same: each earlier one, with the last one."""
        by_key: dict[bytes, list[Any]] = {}
        for row in group[-MOST_FINDINGS - 1 :]:
            key = self.key_of(row)
            if key is not None:
                by_key.setdefault(key, []).append(row)
        for key, rows in by_key.items():
            for earlier in rows[:-1]:
                yield earlier, rows[-1], key

    def key_of(self, row: Any) -> bytes | None:
        """The key itself, read from the segment; None if it is not there any more."""
        try:
            with os.fdopen(open_regular(self._file(int(row["segment"])).path), "rb") as f:
                f.seek(int(row["position"]))
                batch = decode(f.read(int(row["size"])))
        except (UserError, OSError, Malformed):
            return None
        return next((r.key for r in log_records(batch) if r.offset == int(row["offset"])), None)

    def _file(self, segment: int) -> File:
        file = self.segments[segment].log
        assert file is not None
        return file

    def _finding(
        self, clause: str, segment: int, position: int, offset: int, message: str, expected: str, recovery: str
    ) -> Finding:
        return self.log.finding(
            Severity.WARNING,
            clause,
            self._file(segment),
            message,
            expected=expected,
            recovery=recovery,
            position=position,
            offset=offset,
        )


AUDIT = (CompactionCheck,)
