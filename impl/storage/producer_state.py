"""A partition's producers as Kafka keeps them: tables that change in place, and snapshot files on a disk.

What validates an append works on a copy of the producer's entry without its batches, and is put into the tables only
after the records are in the log: a roll in between snapshots the state before them (KAFKA-6683). Open transactions
stand in a table of their own, by first offset, and so do those that ended above the high watermark. Snapshot files are
read and written in Kafka's bytes, version 1, on a disk that comes in as an argument.

Source: ProducerStateManager, ProducerAppendInfo, ProducerStateEntry, SnapshotFile, and what UnifiedLog does with them,
Kafka 4.3.0.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import crc32c

from kafkaspec.impl.common.disk import Disk
from kafkaspec.spec.common import kafka

BATCHES = 5
INT_MAX = kafka.INT_MAX
SHORT_MAX = 2**15 - 1
VERSION = 1
VERSION_UNKNOWN = -1
LATE_MS = 300_000
CLIENT, REPLICATION, COORDINATOR = "CLIENT", "REPLICATION", "COORDINATOR"


class ProducerStateError(Exception):
    """A batch or a marker is refused."""


class NotTheNext(ProducerStateError):
    """A batch does not begin at the sequence after the last one."""


class NotFromZero(ProducerStateError):
    """The first batch of an epoch does not begin at sequence 0."""


class StaleEpoch(ProducerStateError):
    """A batch has an epoch below the producer's."""


class AboveVerification(ProducerStateError):
    """A batch begins above what verification has seen."""


class WithinTransaction(ProducerStateError):
    """A batch that is not transactional comes while a transaction is open."""


class NoVersion(ProducerStateError):
    """A marker comes without a transaction version."""


class StaleMarker(ProducerStateError):
    """A marker's epoch is not that of its version."""


class StaleCoordinator(ProducerStateError):
    """A marker has a coordinator epoch below the last one's."""


class NotVerified(ProducerStateError):
    """A batch opens a transaction without the guard of its verification."""


# ---- snapshot files --------------------------------------------------------------------------------------------------
class SnapshotEntry(NamedTuple):
    """One producer of a snapshot file, as its 46 bytes say."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    transaction: int
    """first offset of the open transaction, or -1"""


_HEAD = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_CRC_AT = 2
_COUNTED_FROM = 6
ENTRY_SIZE = _ENTRY.size
HEAD_SIZE = _HEAD.size
SUFFIX = ".snapshot"


class SnapshotUnreadable(Exception):
    """The bytes are no snapshot (PSM-25): `at` is the byte, from 0, that shows it."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


def decode(data: bytes) -> list[SnapshotEntry]:
    """The producers of a snapshot file. Raises SnapshotUnreadable. [PSM-24, PSM-25]"""
    if len(data) < _HEAD.size:
        raise SnapshotUnreadable(len(data), f"{len(data)} bytes, fewer than the {_HEAD.size} of the head")
    version, crc, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise SnapshotUnreadable(0, f"version {version}, expected {VERSION}")
    whole = (len(data) - _HEAD.size) // _ENTRY.size
    if not 0 <= count <= whole:
        raise SnapshotUnreadable(_COUNTED_FROM, f"{count} producers announced, {whole} whole ones are there")
    computed = crc32c.crc32c(memoryview(data)[_COUNTED_FROM:])
    if crc != computed:
        raise SnapshotUnreadable(_CRC_AT, f"CRC-32C {crc:#010x}, that of the bytes is {computed:#010x}")
    end = _HEAD.size + count * _ENTRY.size
    return [SnapshotEntry._make(e) for e in _ENTRY.iter_unpack(memoryview(data)[_HEAD.size : end])]


def encode(entries: Iterable[SnapshotEntry]) -> bytes:
    """A snapshot file's bytes, in the order given. [PSM-24]"""
    packed = [_ENTRY.pack(*e) for e in entries]
    counted = len(packed).to_bytes(4, "big") + b"".join(packed)
    return VERSION.to_bytes(2, "big") + crc32c.crc32c(counted).to_bytes(4, "big") + counted


def file_name(offset: int) -> str:
    """The name of the snapshot file at an offset. [PSM-24]"""
    return f"{offset:020d}{SUFFIX}"


# ---- a producer ------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class BatchMetadata:
    last_seq: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_seq(self) -> int:
        """The sequence of the batch's first record. [PSM-4]"""
        return decrement(self.last_seq, self.offset_delta)

    @property
    def first_offset(self) -> int:
        """The offset of the batch's first record. [PSM-4]"""
        return self.last_offset - self.offset_delta


def decrement(sequence: int, by: int) -> int:
    """The sequence that is `by` before another; the one before 0 is INT_MAX. [PSM-4]"""
    return sequence - by if sequence >= by else INT_MAX - (by - sequence) + 1


def follows(last: int, following: int) -> bool:
    """Whether a sequence comes next after the last one; after INT_MAX comes 0. [PSM-4]"""
    return following == last + 1 or (following == 0 and last == INT_MAX)


@dataclass(slots=True)
class ProducerEntry:
    producer_id: int
    epoch: int = -1
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    transaction: int | None = None
    batches: deque[BatchMetadata] = field(default_factory=deque)

    @property
    def last_seq(self) -> int:
        return self.batches[-1].last_seq if self.batches else -1

    def _take_epoch(self, epoch: int) -> None:
        """Set the epoch; the batches of another one are dropped. [PSM-1]"""
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch

    def _add(self, batch: BatchMetadata) -> None:
        """Keep a batch as the last one; the oldest makes room. [PSM-1]"""
        if len(self.batches) == BATCHES:
            self.batches.popleft()
        self.batches.append(batch)

    def add_batch(self, epoch: int, batch: BatchMetadata) -> None:
        """Keep a batch of an epoch, with its timestamp as the producer's. [PSM-1]"""
        self._take_epoch(epoch)
        self._add(batch)
        self.last_timestamp = batch.timestamp

    def end_transaction(self, epoch: int, coordinator_epoch: int, timestamp: int) -> None:
        """Take over what a marker says, its timestamp in ms; no transaction is open then. [PSM-10]"""
        self._take_epoch(epoch)
        self.coordinator_epoch = coordinator_epoch
        self.transaction = None
        self.last_timestamp = timestamp

    @classmethod
    def emptied(cls, producer_id: int, epoch: int, timestamp: int) -> Self:
        """Of a marker without its record: what its batch's header says. [PSM-31]"""
        return cls(producer_id, epoch, -1, timestamp, None)

    def update(self, other: ProducerEntry) -> None:
        """Take over what an append made of a copy; the copy's batches are moved."""
        self._take_epoch(other.epoch)
        while other.batches:
            self._add(other.batches.popleft())
        self.coordinator_epoch = other.coordinator_epoch
        self.transaction = other.transaction
        self.last_timestamp = other.last_timestamp

    def copy_without_batches(self) -> ProducerEntry:
        return type(self)(self.producer_id, self.epoch, self.coordinator_epoch, self.last_timestamp, self.transaction)

    def duplicate(self, epoch: int, first_seq: int, last_seq: int) -> BatchMetadata | None:
        """The kept batch of that epoch with exactly these sequences; None if there is none. [PSM-2]"""
        if epoch != self.epoch:
            return None
        return next((b for b in self.batches if b.first_seq == first_seq and b.last_seq == last_seq), None)

    def snapshot(self) -> SnapshotEntry:
        """The entry as a snapshot file has it, with the last batch alone. [PSM-18]"""
        last = self.batches[-1] if self.batches else None
        return SnapshotEntry(
            self.producer_id,
            self.epoch,
            self.last_seq,
            last.last_offset if last else -1,
            last.offset_delta if last else 0,
            self.last_timestamp,
            self.coordinator_epoch,
            -1 if self.transaction is None else self.transaction,
        )

    @classmethod
    def load(cls, e: SnapshotEntry) -> Self:
        """The entry of a snapshot file, with the one batch that it tells of, if any. [PSM-18, PSM-25]"""
        entry = cls(
            e.producer_id, e.epoch, e.coordinator_epoch, e.timestamp, e.transaction if e.transaction >= 0 else None
        )
        if e.last_offset >= 0:
            entry._add(BatchMetadata(e.last_sequence, e.last_offset, e.offset_delta, e.timestamp))
        return entry


@dataclass(slots=True)
class Verification:
    timestamp: int
    lowest_sequence: int
    epoch: int
    supports_epoch_bump: bool
    guard: int

    def ask(self, sequence: int, epoch: int) -> None:
        """Take in another request for verification: the lowest sequence of the highest epoch is kept. [PSM-26]"""
        if epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


# ---- an append -------------------------------------------------------------------------------------------------------
class Append:
    """What one request appends of one producer: checked batch by batch on a copy, then handed to `update`."""

    Batch = BatchMetadata

    def __init__(self, current: ProducerEntry, origin: str, verification: Verification | None) -> None:
        self.current = current
        self.origin = origin
        self.verification = verification
        self.updated = current.copy_without_batches()
        self.started: list[int] = []

    def data(
        self, epoch: int, first_seq: int, last_seq: int, first_offset: int, last_offset: int, timestamp: int,
        transactional: bool,
    ) -> None:  # fmt: skip
        """Check a batch, and add it to the copy. Raises ProducerStateError. [PSM-8, PSM-9]"""
        self._check_epoch(epoch, VERSION_UNKNOWN)
        if self.origin == CLIENT:
            self._check_sequence(epoch, first_seq)
        self.updated.add_batch(epoch, self.Batch(last_seq, last_offset, last_offset - first_offset, timestamp))
        if self.updated.transaction is not None and not transactional:
            raise WithinTransaction
        if self.updated.transaction is None and transactional:
            self.updated.transaction = first_offset
            self.started.append(first_offset)

    def marker(
        self, aborted: bool, epoch: int, coordinator_epoch: int, offset: int, timestamp: int, version: int
    ) -> CompletedTransaction | None:
        """Check a marker, and end the copy's transaction, which is returned if it was open. Raises ProducerStateError.
        [PSM-8, PSM-10, PSM-11, PSM-12]"""
        if version == VERSION_UNKNOWN and self.origin != REPLICATION:
            raise NoVersion
        self._check_epoch(epoch, max(version, 0), StaleMarker)
        if coordinator_epoch < self.updated.coordinator_epoch and self.origin != REPLICATION:
            raise StaleCoordinator
        first = self.updated.transaction
        self.updated.end_transaction(epoch, coordinator_epoch, timestamp)
        return None if first is None else CompletedTransaction(self.updated.producer_id, first, offset, aborted)

    def _check_epoch(self, epoch: int, version: int, stale: type[ProducerStateError] = StaleEpoch) -> None:
        """Raises `stale` if the epoch may not come after the producer's, unless the append is replicated.
        [PSM-6, PSM-8, PSM-11]"""
        known = self.updated.epoch
        if epoch > known or (epoch == known and version < 2):
            return
        again = self.updated.transaction is None or epoch == SHORT_MAX
        if version >= 2 and epoch == known and again:
            return
        if self.origin != REPLICATION:
            raise stale

    def _check_sequence(self, epoch: int, first_seq: int) -> None:
        """Raises ProducerStateError if a client's batch may not begin at that sequence. [PSM-3, PSM-5, PSM-7]"""
        v = self.verification
        if v is not None and (
            (v.supports_epoch_bump and first_seq != 0 and not self.current.batches) or first_seq > v.lowest_sequence
        ):
            raise AboveVerification
        if epoch != self.updated.epoch:
            if first_seq != 0 and self.updated.epoch != -1:
                raise NotFromZero
            return
        if self.updated.batches:
            last = self.updated.last_seq
        else:
            last = self.current.last_seq if epoch == self.current.epoch else -1
        if self.current.epoch != -1 and not follows(last, first_seq):
            raise NotTheNext


# ---- the manager -----------------------------------------------------------------------------------------------------
class ProducerStateManager:
    """The producers of one partition, and the snapshot files in its directory. The disk's errors (OSError) come
    through."""

    Entry = ProducerEntry
    Appending = Append

    def __init__(self, directory: str, disk: Disk, expiration_ms: int = 86_400_000, timeout_ms: int = 300_000) -> None:
        self.directory = directory
        self.disk = disk
        self.expiration_ms = expiration_ms
        self.timeout_ms = timeout_ms
        self.producers: dict[int, ProducerEntry] = {}
        self.ongoing: dict[int, int] = {}
        """producer ids by first offset"""
        self.unreplicated: dict[int, CompletedTransaction] = {}
        """by first offset"""
        self.verifications: dict[int, Verification] = {}
        self.guards = 0
        self.end_offset = 0
        self.last_snapshot = 0
        self.snapshots: set[int] = set()
        self.load_snapshots()

    # snapshot files

    def path(self, offset: int) -> str:
        return f"{self.directory}/{file_name(offset)}"

    def load_snapshots(self) -> None:
        """Look which files are there."""
        names = (n.removesuffix(SUFFIX) for n in self.disk.files(self.directory) if n.endswith(SUFFIX))
        self.snapshots = {int(n) for n in names if n.isdigit()}

    def _delete(self, offset: int) -> None:
        self.snapshots.discard(offset)
        if self.disk.exists(self.path(offset)):
            self.disk.remove(self.path(offset))

    def take_snapshot(self, flush: bool = True) -> int | None:
        """Write a file if the state has moved on since the last one; its offset. At a roll it is not flushed here, but
        with the segment, later. [PSM-18]"""
        if self.end_offset <= self.last_snapshot:
            return None
        path = self.path(self.end_offset)
        self.disk.write(path, encode(p.snapshot() for p in self.producers.values()))
        if flush:
            self.disk.flush(path)
        self.snapshots.add(self.end_offset)
        self.last_snapshot = self.end_offset
        return self.end_offset

    def delete_snapshots_before(self, offset: int) -> None:
        """Delete the snapshot files below an offset. [PSM-23]"""
        for x in [x for x in self.snapshots if x < offset]:
            self._delete(x)

    def remove_stray_snapshots(self, base_offsets: Sequence[int]) -> None:
        """Delete the snapshot files at no base offset, the latest of them only if a segment begins above it.
        [PSM-23, LDR-13]"""
        self.load_snapshots()
        bases = set(base_offsets)
        latest: int | None = None
        for x in sorted(self.snapshots):
            if x not in bases:
                if latest is not None:
                    self._delete(latest)
                latest = x
        if latest is not None and bases and latest < max(bases):
            self._delete(latest)

    # what is asked

    @property
    def first_undecided(self) -> int | None:
        """The lowest first offset of the open transactions; None if there are none. [PSM-13]"""
        return min(self.ongoing, default=None)

    @property
    def first_unstable(self) -> int | None:
        """The lowest first offset of the transactions that are open or not replicated; None if there are none.
        [PSM-13]"""
        return min((*self.ongoing, *self.unreplicated), default=None)

    def last_stable_offset(self, high_watermark: int, log_start: int) -> int:
        """The last stable offset of a log with that high watermark and log start offset. [PSM-14]"""
        first = self.first_unstable
        if first is not None and max(first, log_start) < high_watermark:
            return max(first, log_start)
        return high_watermark

    def last_stable_offset_of(self, completed: CompletedTransaction) -> int:
        """What is written beside an aborted transaction, before it is completed. [PSM-16]"""
        for first in sorted(self.ongoing):
            if self.ongoing[first] != completed.producer_id:
                return first
        return completed.last_offset + 1

    def has_late_transaction(self, now: int) -> bool:
        """Whether the open transaction that begins first is late at `now`, ms. [PSM-29]"""
        first = self.first_undecided
        if first is None:
            return False
        entry = self.producers.get(self.ongoing[first])
        last = entry.last_timestamp if entry is not None else -1
        return last > 0 and now - last > self.timeout_ms + LATE_MS

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        entry = self.producers.get(producer_id)
        return entry is not None and entry.transaction is not None and entry.epoch == epoch

    # appends

    def prepare(self, producer_id: int, origin: str) -> Append:
        current = self.producers.get(producer_id) or self.Entry(producer_id)
        return self.Appending(current, origin, self.verifications.get(producer_id))

    def update(self, append: Append) -> None:
        entry = self.producers.get(append.updated.producer_id)
        if entry is not None:
            entry.update(append.updated)
        else:
            self.producers[append.updated.producer_id] = append.updated
        for first in append.started:
            self.ongoing[first] = append.updated.producer_id

    def complete(self, completed: CompletedTransaction) -> None:
        """Move a transaction that has ended from the open ones to those that are not replicated. [PSM-15]"""
        del self.ongoing[completed.first_offset]
        self.unreplicated[completed.first_offset] = completed

    # verification

    def verification(self, producer_id: int, sequence: int, epoch: int, supports_bump: bool, now: int) -> Verification:
        """The producer's verification, with this request taken in; a new one begins at `now`, ms. [PSM-26]"""
        entry = self.verifications.get(producer_id)
        if entry is None:
            self.guards += 1
            entry = Verification(now, sequence, epoch, supports_bump, self.guards)
            self.verifications[producer_id] = entry
        entry.ask(sequence, epoch)
        return entry

    # offsets, time

    def on_high_watermark_updated(self, offset: int) -> None:
        """Forget the ended transactions whose last offset is below the high watermark. [PSM-15]"""
        for first in [f for f, c in self.unreplicated.items() if c.last_offset < offset]:
            del self.unreplicated[first]

    def on_log_start_offset_incremented(self, offset: int) -> None:
        """Forget the transactions that ended below the log start offset; the state reaches at least there. [PSM-22]"""
        self.on_high_watermark_updated(offset)
        self.end_offset = max(self.end_offset, offset)
        self.last_snapshot = max(self.snapshots, default=offset)

    def is_expired(self, entry: ProducerEntry, now: int) -> bool:
        """Whether the producer has expired at `now`, ms. [PSM-17]"""
        return entry.transaction is None and now - entry.last_timestamp >= self.expiration_ms

    def remove_expired_producers(self, now: int) -> None:
        """Forget the producers and the verifications that have expired at `now`, ms. [PSM-17]"""
        for i in [i for i, p in self.producers.items() if self.is_expired(p, now)]:
            del self.producers[i]
        for i in [i for i, v in self.verifications.items() if now - v.timestamp >= self.expiration_ms]:
            del self.verifications[i]

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forget producers, transactions and snapshot files, and begin at an offset. [PSM-21]"""
        self._forget()
        for x in list(self.snapshots):
            self._delete(x)
        self.last_snapshot = 0
        self.end_offset = offset

    def _forget(self) -> None:
        self.producers.clear()
        self.ongoing.clear()
        self.unreplicated.clear()

    def truncate_and_reload(self, log_start: int, log_end: int, now: int) -> None:
        """Fit the state to a log that has these ends now, from a snapshot file if need be; `now` in ms. [PSM-19]"""
        for x in [x for x in self.snapshots if x > log_end or x <= log_start]:
            self._delete(x)
        if self.end_offset == log_end:
            self.on_log_start_offset_incremented(log_start)
        else:
            self._forget()
            self._load(log_start, now)

    def _load(self, log_start: int, now: int) -> None:
        """Load the latest snapshot file that can be read, or begin at the log start; `now`, ms, says who has expired.
        [PSM-20]"""
        while self.snapshots:
            at = max(self.snapshots)
            try:
                entries = decode(self.disk.read(self.path(at)))
            except SnapshotUnreadable:
                self._delete(at)
                continue
            for e in map(self.Entry.load, entries):
                if not self.is_expired(e, now):
                    self.producers[e.producer_id] = e
                    if e.transaction is not None:
                        self.ongoing[e.transaction] = e.producer_id
            self.end_offset = self.last_snapshot = at
            return
        self.end_offset = self.last_snapshot = log_start
