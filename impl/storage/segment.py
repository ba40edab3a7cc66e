"""A log segment as Kafka keeps it: the .log file, two mapped indexes and the transaction index, on a disk that is
given.

Positions and sizes are bytes of the .log. A lookup walks over headers from where an index says; records are decoded
only where a timestamp is looked for, and CRCs are computed only in recovery. The file is read whole for that: this is
how a segment works, not how fast it can be read (the audit's reader is elsewhere).

Source: LogSegment, FileRecords, FileLogInputStream and LogFileUtils, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import crc32c

from kafkaspec.impl.common.disk import Disk, RealDisk
from kafkaspec.impl.common.mapped_index import IndexFile, RealFile
from kafkaspec.impl.storage.batch import CONTROL_KEY, END_MARKER, LENGTH_AT, MAGIC, MAGIC_AT, Batch, Encoder, control
from kafkaspec.impl.storage.offset_index import OffsetIndex
from kafkaspec.impl.storage.producer_state import (
    INT_MAX,
    REPLICATION,
    Append,
    CompletedTransaction,
    ProducerStateManager,
)
from kafkaspec.impl.storage.time_index import TimeIndex
from kafkaspec.impl.storage.transaction_index import AbortedTxn, TransactionIndex
from kafkaspec.spec.common.record_format import CONTROL, HEADER, TRANSACTIONAL
from kafkaspec.spec.common.segment_contents import Batch as BatchInFile

LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX = ".log", ".index", ".timeindex", ".txnindex"
OVERHEAD = 12
"""Bytes of the base offset and the length, that the length does not count."""
MAGIC_END = 17
"""Bytes up to the magic byte, it included."""
LEAST = 14
"""The smallest length that a batch of any format has."""
CRC_FROM = 21


class OffsetOverflow(Exception):
    """An offset cannot be written relative to the segment's base (SEG-3)."""


class IllegalArgument(ValueError):
    """A read that makes no sense (SEG-12)."""


class NoIndexFile(Exception):
    """The offset index file is not there (SEG-21)."""


class CorruptRecord(Exception):
    """A batch that is not what was written; `position` is its first byte."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(f"{why} at byte {position}")
        self.position = position


class Header(NamedTuple):
    """A batch's header, and where it stands in the file."""

    position: int
    size: int
    base_offset: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta


def headers(data: bytes, position: int = 0) -> Iterator[Header]:
    """The whole batches from a position on. Ends before what is no whole batch; raises CorruptRecord for a length that
    no batch has. Formats 0 and 1 are not read."""
    while position < len(data) - MAGIC_END:
        length = int.from_bytes(data[position + LENGTH_AT : position + OVERHEAD], "big", signed=True)
        if length < LEAST:
            raise CorruptRecord(position, f"a length of {length}")
        if position > len(data) - OVERHEAD - length:
            return
        if data[position + MAGIC_AT] < MAGIC or length < HEADER.size - OVERHEAD:
            raise CorruptRecord(position, "no batch of format 2")
        base, _, *rest = HEADER.unpack_from(data, position)
        yield Header(position, OVERHEAD + length, base, *rest)
        position += OVERHEAD + length


class TransactionState(Protocol):
    """What recovery tells of each batch, in order: producer state, and who else listens."""

    def append(self, header: Header, body: bytes) -> AbortedTxn | None:
        """The aborted transaction that the batch's marker completes, if it does."""


class DiskFile:
    """An index file on a disk that has no mappings."""

    def __init__(self, path: str, disk: Disk) -> None:
        self.path, self.disk = path, disk

    def exists(self) -> bool:
        return self.disk.exists(self.path)

    def size(self) -> int:
        return self.disk.size(self.path)

    def set_size(self, size: int) -> None:
        if self.exists():
            self.disk.truncate(self.path, size)
        else:
            self.disk.write(self.path, bytes(size))

    def map(self, writable: bool) -> None: ...

    def unmap(self) -> None: ...

    def get(self, at: int, count: int) -> bytes:
        return self.disk.read(self.path)[at : at + count]

    def put(self, at: int, data: bytes) -> None:
        content = self.disk.read(self.path)
        self.disk.write(self.path, content[:at] + data + content[at + len(data) :])


def moved(file: IndexFile, path: str) -> IndexFile:
    """The same file under another name; its mapping stays."""
    if isinstance(file, RealFile):
        file.path = Path(path)
    elif isinstance(file, DiskFile):
        file.path = path
    return file


def index_file(path: str, disk: Disk) -> IndexFile:
    return RealFile(Path(path)) if isinstance(disk, RealDisk) else DiskFile(path, disk)


def file_name(base_offset: int, end: str, suffix: str = "") -> str:
    """Such as 00000000000000000042.index. [SEG-1]"""
    return f"{base_offset:020}{end}{suffix}"


@dataclass(frozen=True)
class LogOffsetPosition:
    """Where a batch is."""

    offset: int
    position: int
    size: int


@dataclass(frozen=True)
class FetchDataInfo:
    """What a read gives: from which batch on, and how many bytes."""

    offset: int
    position: int
    bytes: int
    first_entry_incomplete: bool


@dataclass(frozen=True)
class TimestampAndOffset:
    """A record that a timestamp was looked for."""

    timestamp: int
    offset: int
    leader_epoch: int | None


class Segment:
    """One segment in a directory. Index files are made, or opened, when they are first asked for."""

    def __init__(
        self,
        directory: str,
        base_offset: int,
        disk: Disk,
        *,
        index_interval_bytes: int = 4096,
        max_index_bytes: int = 10 << 20,
        roll_jitter_ms: int = 0,
        clock: Callable[[], int] = lambda: 0,
        suffix: str = "",
    ) -> None:
        self.directory, self.base_offset, self.disk, self.suffix = directory, base_offset, disk, suffix
        self.index_interval_bytes, self.max_index_bytes = index_interval_bytes, max_index_bytes
        self.roll_jitter_ms, self.clock = roll_jitter_ms, clock
        if not disk.exists(self.path(LOG)):
            disk.write(self.path(LOG), b"")
        self.size = disk.size(self.path(LOG))
        self.transaction_index = TransactionIndex(self.path(TRANSACTION_INDEX), base_offset, disk)
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._largest: tuple[int, int] | None = None
        self.since = 0
        self.created = clock()
        self.rolling_timestamp: int | None = None

    # ---- files

    def path(self, end: str) -> str:
        return f"{self.directory}/{file_name(self.base_offset, end, self.suffix)}"

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index, opened when it is first asked for. [SEG-22]"""
        if self._offset_index is None:
            file = index_file(self.path(INDEX), self.disk)
            self._offset_index = OffsetIndex(file, self.base_offset, self.max_index_bytes)
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        """The time index, opened when it is first asked for. [SEG-22]"""
        if self._time_index is None:
            file = index_file(self.path(TIME_INDEX), self.disk)
            self._time_index = TimeIndex(file, self.base_offset, self.max_index_bytes)
        return self._time_index

    @property
    def largest(self) -> tuple[int, int]:
        """The largest timestamp so far, and the last offset of the first batch that has it. [SEG-22]"""
        if self._largest is None:
            last = self.time_index.last_entry
            self._largest = last.timestamp, last.offset
        return self._largest

    def data(self) -> bytes:
        return self.disk.read(self.path(LOG))[: self.size]

    def rename(self, old: str, new: str) -> None:
        """Put another suffix in place of the old one. [SEG-1]"""
        assert self.suffix.endswith(old)
        before, suffix = self.suffix, self.suffix.removesuffix(old) + new
        for end in (LOG, INDEX, TIME_INDEX):
            source, target = (f"{self.directory}/{file_name(self.base_offset, end, s)}" for s in (before, suffix))
            self.disk.rename(source, target)
            self.suffix = suffix  # from the log's file on: a reader goes on in it
        for index, end in ((self._offset_index, INDEX), (self._time_index, TIME_INDEX)):
            if index is not None:
                to = f"{self.directory}/{file_name(self.base_offset, end, suffix)}"
                index.file = moved(index.file, to)
        self.transaction_index.rename(f"{self.directory}/{file_name(self.base_offset, TRANSACTION_INDEX, suffix)}")

    def _close_handlers(self) -> None:
        for index in (self._offset_index, self._time_index):
            if index is not None:
                index.close_handler()

    def resize_indexes(self) -> None:
        """To their full size: the segment is the active one. [SEG-8]"""
        self.offset_index.resize(self.max_index_bytes)
        self.time_index.resize(self.max_index_bytes)

    def flush(self) -> None:
        """The .log first, then what is made from it. [SEG-23]"""
        self.disk.flush(self.path(LOG))
        self.disk.flush(self.path(INDEX))
        self.disk.flush(self.path(TIME_INDEX))
        self.transaction_index.flush()

    def become_inactive(self) -> None:
        """The last time entry; trimmed indexes. [SEG-10]"""
        self.time_index.maybe_append(*self.largest, last=True)
        self.offset_index.trim()
        self.time_index.trim()

    def close(self) -> None:
        """The same, and let go of the files. [SEG-10]"""
        self.become_inactive()
        self._close_handlers()
        self._offset_index = self._time_index = None

    # ---- writing

    def append(self, largest_offset: int, records: bytes) -> None:
        """Write batches, and index them. Raises OffsetOverflow; the indexes' refusals, if the caller did not roll.
        [SEG-2, SEG-3, SEG-4, SEG-5]"""
        if not records:
            return
        position = self.size
        if not self.offset_index.can_append(largest_offset):
            raise OffsetOverflow(f"offset {largest_offset} in a segment from {self.base_offset} on")
        self.disk.append(self.path(LOG), records)
        self.size += len(records)
        for h in headers(records):
            self._take(h.max_timestamp, h.last_offset)
            if self.since > self.index_interval_bytes:
                self.offset_index.append(h.last_offset, position)
                self.time_index.maybe_append(*self.largest)
                self.since = 0
            position += h.size
            self.since += h.size

    def _take(self, timestamp: int, offset: int) -> None:
        """Keep a timestamp, ms, with its offset if it is the largest so far. [SEG-5]"""
        if timestamp > self.largest[0]:
            self._largest = timestamp, offset

    def update_transaction_index(self, entry: AbortedTxn, aborted: bool) -> None:
        if aborted:
            self.transaction_index.append(entry)

    def truncate_to(self, offset: int) -> int:
        """Drop everything from an offset on; answers the bytes cut. [SEG-15]"""
        at = self.translate_offset(offset)
        had_timestamp = self.largest[0] >= 0  # as the time index says before it is cut
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        self.resize_indexes()
        cut = 0 if at is None else self._cut(at.position)
        if self.size == 0:
            self.created = self.clock()
            self.rolling_timestamp = None
        self.since = 0
        if had_timestamp:
            self._largest = self._read_largest()
        return cut

    def _cut(self, size: int) -> int:
        cut = self.size - size
        if cut:
            self.disk.truncate(self.path(LOG), size)
            self.size = size
        return cut

    def _read_largest(self) -> tuple[int, int]:
        """The largest timestamp, ms, with its offset: by the last entry of the time index, then batch by batch.
        [SEG-15]"""
        last = self.time_index.last_entry
        best = last.timestamp, last.offset
        for h in headers(self.data(), self.offset_index.lookup(last.offset).position):
            if h.max_timestamp > best[0]:
                best = h.max_timestamp, h.last_offset
        return best

    def recover(self, state: TransactionState, assign_epoch: Callable[[int, int], None]) -> int:
        """Make the indexes again from the .log, and cut it before the first batch that is not whole; answers the bytes
        cut. `assign_epoch` gets each epoch above those before it, with its first offset. Raises OffsetOverflow.
        [SEG-16, SEG-17, SEG-18, SEG-19, SEG-20, SEG-24, SEG-25, SEG-26]"""
        self.offset_index.reset()
        self.time_index.reset()
        self.transaction_index.reset()
        self._largest = None
        valid = last_entry = 0
        epoch = -1
        data = self.data()
        try:
            for h in headers(data):
                body = data[h.position : h.position + h.size]
                if crc32c.crc32c(body[CRC_FROM:]) != h.crc:
                    raise CorruptRecord(h.position, "a wrong CRC")
                if not self.offset_index.can_append(h.last_offset):
                    raise OffsetOverflow(f"offset {h.last_offset} in a segment from {self.base_offset} on")
                self._take(h.max_timestamp, h.last_offset)
                if valid - last_entry > self.index_interval_bytes:
                    self.offset_index.append(h.last_offset, valid)
                    self.time_index.maybe_append(*self.largest)
                    last_entry = valid
                valid += h.size
                if h.leader_epoch > epoch:
                    epoch = h.leader_epoch
                    assign_epoch(epoch, h.base_offset)
                aborted = state.append(h, body)
                if aborted is not None:
                    self.transaction_index.append(aborted)
        except CorruptRecord:
            pass  # what stands behind is lost
        cut = self._cut(valid)
        self.offset_index.trim()
        self.time_index.maybe_append(*self.largest, last=True)
        self.time_index.trim()
        return cut

    def sanity_check(self, time_index_file_newly_created: bool = False) -> None:
        """Raises NoIndexFile; what the transaction index raises. [SEG-21]"""
        if not self.disk.exists(self.path(INDEX)):
            raise NoIndexFile(self.path(INDEX))
        if time_index_file_newly_created:
            self.time_index.resize(0)
        self.transaction_index.sanity_check()

    # ---- questions

    def should_roll(
        self, max_ms: int, max_bytes: int, timestamp: int, largest_offset: int, messages_bytes: int
    ) -> bool:
        """Whether messages with this largest timestamp and offset, of `messages_bytes` bytes, need a new segment.
        [SEG-6, SEG-7, SEG-8, SEG-9]"""
        if self.rolling_timestamp is None:
            first = next(headers(self.data()), None)
            self.rolling_timestamp = None if first is None else first.max_timestamp
        begun = self.rolling_timestamp
        waited = timestamp - begun if begun is not None and begun >= 0 else self.clock() - self.created
        return (
            self.size > max_bytes - messages_bytes
            or (self.size > 0 and waited > max_ms - self.roll_jitter_ms)
            or self.offset_index.is_full
            or self.time_index.is_full
            or not self.offset_index.can_append(largest_offset)
        )

    def translate_offset(self, offset: int, from_position: int = 0) -> LogOffsetPosition | None:
        """Where the batch with an offset is: by the offset index, then batch by batch. [SEG-11]"""
        begin = max(self.offset_index.lookup(offset).position, from_position)
        for h in headers(self.data(), begin):
            if h.last_offset >= offset:
                return LogOffsetPosition(h.base_offset, h.position, h.size)
        return None

    def read(self, start_offset: int, max_size: int, max_position: int | None, min_one: bool) -> FetchDataInfo | None:
        """The bytes from the batch with an offset on. Raises IllegalArgument. [SEG-12]"""
        if max_size < 0:
            raise IllegalArgument(f"a size of {max_size}")
        at = self.translate_offset(start_offset)
        if at is None:
            return None
        most = max(max_size, at.size) if min_one else max_size
        if most == 0 or max_position is None:
            return FetchDataInfo(at.offset, at.position, 0, False)
        size = min(max_position - at.position, most)
        if size < 0:
            raise IllegalArgument(f"a size of {size}")
        return FetchDataInfo(at.offset, at.position, min(size, self.size - at.position), most < at.size)

    def find_offset_by_timestamp(self, timestamp: int, starting_offset: int) -> TimestampAndOffset | None:
        """The first record at or after a timestamp: by the time index, the offset index, then record by record.
        [SEG-13]"""
        known = self.time_index.lookup(timestamp).offset
        data = self.data()
        for h in headers(data, self.offset_index.lookup(max(known, starting_offset)).position):
            if h.max_timestamp >= timestamp:
                for r in Batch(data[h.position : h.position + h.size], h.position).records():
                    if r.timestamp >= timestamp and r.offset >= starting_offset:
                        return TimestampAndOffset(
                            r.timestamp, r.offset, h.leader_epoch if h.leader_epoch >= 0 else None
                        )
        return None

    def read_next_offset(self) -> int:
        """The offset after the last batch, found by the last entry of the offset index. [SEG-14]"""
        begin = self.translate_offset(self.offset_index.last_offset)
        after = [] if begin is None else list(headers(self.data(), begin.position))
        return after[-1].last_offset + 1 if after else self.base_offset


# ---- beside the batches of the spec ----------------------------------------------------------------------------------
def encode(b: BatchInFile) -> bytes:
    """The bytes of a batch of the spec."""
    epoch, sequence = (-1, -1) if b.producer_id < 0 else (0, -1 if b.control else 0)
    out = Encoder(
        b.base_offset,
        leader_epoch=b.leader_epoch,
        producer_id=b.producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=b.kind != "data",
        control=b.control,
    )
    for r in b.records:
        if b.control:
            out.append(r.timestamp, CONTROL_KEY.pack(0, b.kind == "commit"), END_MARKER.pack(0, 0), offset=r.offset)
        else:
            out.append(r.timestamp, None, bytes(b.value_bytes), offset=r.offset)
    return out.finish()


class ProducerStates:
    """Recovery's listener that keeps the producer state, from that at the segment's base offset on."""

    def __init__(self, manager: ProducerStateManager) -> None:
        self.manager = manager

    def append(self, header: Header, body: bytes) -> AbortedTxn | None:
        """Bring the producer state up to date with a batch; the aborted transaction that it ends, if any.
        [SEG-18, PSM-16]"""
        manager = self.manager
        if header.producer_id < 0:
            return None
        update = manager.prepare(header.producer_id, REPLICATION)
        completed = self._taken(update, header, body)
        manager.update(update)
        if completed is None:
            return None
        stable = manager.last_stable_offset_of(completed)
        manager.complete(completed)
        if not completed.aborted:
            return None
        return AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)

    def append_all(self, batches: Iterable[tuple[Header, bytes]]) -> None:
        """Bring the producer state up to date with what is read in one go, as with one append. [LOG-31]"""
        updates: dict[int, Append] = {}
        ended = list[CompletedTransaction]()
        for header, body in batches:
            if header.producer_id >= 0:
                if header.producer_id not in updates:
                    updates[header.producer_id] = self.manager.prepare(header.producer_id, REPLICATION)
                completed = self._taken(updates[header.producer_id], header, body)
                ended += [completed] if completed is not None else []
        for update in updates.values():
            self.manager.update(update)
        for completed in ended:
            self.manager.complete(completed)

    @staticmethod
    def _taken(update: Append, h: Header, body: bytes) -> CompletedTransaction | None:
        """What a producer appends, with a batch; the transaction that it ends, if any."""
        if h.attributes & CONTROL and not h.records:
            return None  # a marker that the cleaner emptied: an unknown producer gets epoch -1, no time
        if h.attributes & CONTROL:
            marker = next(Batch(body, h.position).records())
            says = control(marker.key, marker.value)
            return update.marker(
                says.type == 0, h.producer_epoch, says.coordinator_epoch or 0, h.last_offset, h.max_timestamp, -1
            )
        last = (h.base_sequence + h.last_offset_delta) & INT_MAX  # after INT_MAX comes 0
        update.data(
            h.producer_epoch,
            h.base_sequence,
            last,
            h.base_offset,
            h.last_offset,
            h.max_timestamp,
            bool(h.attributes & TRANSACTIONAL),
        )
        return None
