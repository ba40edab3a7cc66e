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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import crc32c

from kafkaspec.contract.clauses import states
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.impl.common.disk import Disk, SimulatedDisk

BATCHES = 5
INT_MAX = 2**31 - 1
SHORT_MAX = 2**15 - 1
VERSION = 1
VERSION_UNKNOWN = -1
LATE_MS = 300_000
CLIENT, REPLICATION, COORDINATOR = "CLIENT", "REPLICATION", "COORDINATOR"

ERRORS = "org.apache.kafka.common.errors."
CORRUPT = "org.apache.kafka.storage.internals.log.CorruptSnapshotException"


class ProducerStateError(Exception):
    """A refusal: the clause that says so, and Kafka's exception class."""

    def __init__(self, clause: str, error: str, message: str = "") -> None:
        super().__init__(message or error)
        self.refused = Refused(clause, error)


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


@states("PSM-24", "PSM-25")
def decode(data: bytes) -> list[SnapshotEntry]:
    """The producers of a snapshot file. Raises SnapshotUnreadable."""
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


@states("PSM-24")
def encode(entries: Iterable[SnapshotEntry]) -> bytes:
    """A snapshot file's bytes, in the order given."""
    packed = [_ENTRY.pack(*e) for e in entries]
    counted = len(packed).to_bytes(4, "big") + b"".join(packed)
    return VERSION.to_bytes(2, "big") + crc32c.crc32c(counted).to_bytes(4, "big") + counted


@states("PSM-24")
def file_name(offset: int) -> str:
    return f"{offset:020d}{SUFFIX}"


# ---- a producer ------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class BatchMetadata:
    last_seq: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    @states("PSM-4")
    def first_seq(self) -> int:
        return decrement(self.last_seq, self.offset_delta)

    @property
    @states("PSM-4")
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


@states("PSM-4")
def decrement(sequence: int, by: int) -> int:
    return sequence - by if sequence >= by else INT_MAX - (by - sequence) + 1


@states("PSM-4")
def follows(last: int, following: int) -> bool:
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

    @states("PSM-1")
    def _take_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch

    @states("PSM-1")
    def _add(self, batch: BatchMetadata) -> None:
        if len(self.batches) == BATCHES:
            self.batches.popleft()
        self.batches.append(batch)

    @states("PSM-1")
    def add_batch(self, epoch: int, batch: BatchMetadata) -> None:
        self._take_epoch(epoch)
        self._add(batch)
        self.last_timestamp = batch.timestamp

    @states("PSM-10")
    def end_transaction(self, epoch: int, coordinator_epoch: int, timestamp: int) -> None:
        self._take_epoch(epoch)
        self.coordinator_epoch = coordinator_epoch
        self.transaction = None
        self.last_timestamp = timestamp

    @classmethod
    @states("PSM-31")
    def emptied(cls, producer_id: int, epoch: int, timestamp: int) -> Self:
        """Of a marker without its record: what its batch's header says."""
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

    @states("PSM-2")
    def duplicate(self, epoch: int, first_seq: int, last_seq: int) -> BatchMetadata | None:
        if epoch != self.epoch:
            return None
        return next((b for b in self.batches if b.first_seq == first_seq and b.last_seq == last_seq), None)

    @states("PSM-18")
    def snapshot(self) -> SnapshotEntry:
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
    @states("PSM-18")
    def load(cls, e: SnapshotEntry) -> Self:
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

    @states("PSM-26")
    def ask(self, sequence: int, epoch: int) -> None:
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

    @states("PSM-8", "PSM-9")
    def data(
        self, epoch: int, first_seq: int, last_seq: int, first_offset: int, last_offset: int, timestamp: int,
        transactional: bool,
    ) -> None:  # fmt: skip
        """Raises ProducerStateError."""
        self._check_epoch(epoch, VERSION_UNKNOWN)
        if self.origin == CLIENT:
            self._check_sequence(epoch, first_seq)
        self.updated.add_batch(epoch, self.Batch(last_seq, last_offset, last_offset - first_offset, timestamp))
        if self.updated.transaction is not None and not transactional:
            raise ProducerStateError("PSM-9", ERRORS + "InvalidTxnStateException")
        if self.updated.transaction is None and transactional:
            self.updated.transaction = first_offset
            self.started.append(first_offset)

    @states("PSM-8", "PSM-10", "PSM-11", "PSM-12")
    def marker(
        self, aborted: bool, epoch: int, coordinator_epoch: int, offset: int, timestamp: int, version: int
    ) -> CompletedTransaction | None:
        """Raises ProducerStateError."""
        if version == VERSION_UNKNOWN and self.origin != REPLICATION:
            raise ProducerStateError("PSM-11", "java.lang.IllegalArgumentException")
        self._check_epoch(epoch, max(version, 0), "PSM-11")
        if coordinator_epoch < self.updated.coordinator_epoch and self.origin != REPLICATION:
            raise ProducerStateError("PSM-12", ERRORS + "TransactionCoordinatorFencedException")
        first = self.updated.transaction
        self.updated.end_transaction(epoch, coordinator_epoch, timestamp)
        return None if first is None else CompletedTransaction(self.updated.producer_id, first, offset, aborted)

    @states("PSM-6", "PSM-8", "PSM-11")
    def _check_epoch(self, epoch: int, version: int, clause: str = "PSM-6") -> None:
        known = self.updated.epoch
        if epoch > known or (epoch == known and version < 2):
            return
        again = self.updated.transaction is None or epoch == SHORT_MAX
        if version >= 2 and epoch == known and again:
            return
        if self.origin != REPLICATION:
            raise ProducerStateError(clause, ERRORS + "InvalidProducerEpochException")

    @states("PSM-3", "PSM-5", "PSM-7")
    def _check_sequence(self, epoch: int, first_seq: int) -> None:
        v = self.verification
        if v is not None and (
            (v.supports_epoch_bump and first_seq != 0 and not self.current.batches) or first_seq > v.lowest_sequence
        ):
            raise ProducerStateError("PSM-7", ERRORS + "OutOfOrderSequenceException")
        if epoch != self.updated.epoch:
            if first_seq != 0 and self.updated.epoch != -1:
                raise ProducerStateError("PSM-5", ERRORS + "OutOfOrderSequenceException")
            return
        if self.updated.batches:
            last = self.updated.last_seq
        else:
            last = self.current.last_seq if epoch == self.current.epoch else -1
        if self.current.epoch != -1 and not follows(last, first_seq):
            raise ProducerStateError("PSM-3", ERRORS + "OutOfOrderSequenceException")


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

    @states("PSM-18")
    def take_snapshot(self, flush: bool = True) -> int | None:
        """Write a file if the state has moved on since the last one; its offset. At a roll it is not flushed here, but
        with the segment, later."""
        if self.end_offset <= self.last_snapshot:
            return None
        path = self.path(self.end_offset)
        self.disk.write(path, encode(p.snapshot() for p in self.producers.values()))
        if flush:
            self.disk.flush(path)
        self.snapshots.add(self.end_offset)
        self.last_snapshot = self.end_offset
        return self.end_offset

    @states("PSM-23")
    def delete_snapshots_before(self, offset: int) -> None:
        for x in [x for x in self.snapshots if x < offset]:
            self._delete(x)

    @states("PSM-23", "LDR-13")
    def remove_stray_snapshots(self, base_offsets: Sequence[int]) -> None:
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
    @states("PSM-13")
    def first_undecided(self) -> int | None:
        return min(self.ongoing, default=None)

    @property
    @states("PSM-13")
    def first_unstable(self) -> int | None:
        return min((*self.ongoing, *self.unreplicated), default=None)

    @states("PSM-14")
    def last_stable_offset(self, high_watermark: int, log_start: int) -> int:
        first = self.first_unstable
        if first is not None and max(first, log_start) < high_watermark:
            return max(first, log_start)
        return high_watermark

    @states("PSM-16")
    def last_stable_offset_of(self, completed: CompletedTransaction) -> int:
        """What is written beside an aborted transaction, before it is completed."""
        for first in sorted(self.ongoing):
            if self.ongoing[first] != completed.producer_id:
                return first
        return completed.last_offset + 1

    @states("PSM-29")
    def has_late_transaction(self, now: int) -> bool:
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

    @states("PSM-15")
    def complete(self, completed: CompletedTransaction) -> None:
        del self.ongoing[completed.first_offset]
        self.unreplicated[completed.first_offset] = completed

    # verification

    @states("PSM-26")
    def verification(self, producer_id: int, sequence: int, epoch: int, supports_bump: bool, now: int) -> Verification:
        entry = self.verifications.get(producer_id)
        if entry is None:
            self.guards += 1
            entry = Verification(now, sequence, epoch, supports_bump, self.guards)
            self.verifications[producer_id] = entry
        entry.ask(sequence, epoch)
        return entry

    # offsets, time

    @states("PSM-15")
    def on_high_watermark_updated(self, offset: int) -> None:
        for first in [f for f, c in self.unreplicated.items() if c.last_offset < offset]:
            del self.unreplicated[first]

    @states("PSM-22")
    def on_log_start_offset_incremented(self, offset: int) -> None:
        self.on_high_watermark_updated(offset)
        self.end_offset = max(self.end_offset, offset)
        self.last_snapshot = max(self.snapshots, default=offset)

    @states("PSM-17")
    def is_expired(self, entry: ProducerEntry, now: int) -> bool:
        return entry.transaction is None and now - entry.last_timestamp >= self.expiration_ms

    @states("PSM-17")
    def remove_expired(self, now: int) -> None:
        for i in [i for i, p in self.producers.items() if self.is_expired(p, now)]:
            del self.producers[i]
        for i in [i for i, v in self.verifications.items() if now - v.timestamp >= self.expiration_ms]:
            del self.verifications[i]

    @states("PSM-21")
    def truncate_fully_and_start_at(self, offset: int) -> None:
        self._forget()
        for x in list(self.snapshots):
            self._delete(x)
        self.last_snapshot = 0
        self.end_offset = offset

    def _forget(self) -> None:
        self.producers.clear()
        self.ongoing.clear()
        self.unreplicated.clear()

    @states("PSM-19")
    def truncate_and_reload(self, log_start: int, log_end: int, now: int) -> None:
        for x in [x for x in self.snapshots if x > log_end or x <= log_start]:
            self._delete(x)
        if self.end_offset == log_end:
            self.on_log_start_offset_incremented(log_start)
        else:
            self._forget()
            self._load(log_start, now)

    @states("PSM-20")
    def _load(self, log_start: int, now: int) -> None:
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


# ---- lockstep --------------------------------------------------------------------------------------------------------
class Driver:
    """The manager on a simulated disk, by the operations of the spec."""

    DIRECTORY = "log/t-0"
    Manager = ProducerStateManager

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.disk = SimulatedDisk()
        self.expiration_ms = arguments.get("producer_id_expiration_ms", 86_400_000)
        self.timeout_ms = arguments.get("max_transaction_timeout_ms", 300_000)
        self.verifies = arguments.get("transaction_verification_enabled", True)
        self.now = 1_000_000
        self.manager = self._opened()

    def _opened(self) -> ProducerStateManager:
        return self.Manager(self.DIRECTORY, self.disk, self.expiration_ms, self.timeout_ms)

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        try:
            answer: Json = getattr(self, "do_" + name)(**arguments)
        except ProducerStateError as e:
            return e.refused
        return answer

    def observe(self) -> Json:
        m = self.manager
        return {
            "now": self.now,
            "mapEndOffset": m.end_offset,
            "firstUnstableOffset": m.first_unstable,
            "firstUndecidedOffset": m.first_undecided,
            "producers": [self._producer(p) for _, p in sorted(m.producers.items())],
            "verification": {
                str(i): {
                    "lowestSequence": v.lowest_sequence,
                    "epoch": v.epoch,
                    "supportsEpochBump": v.supports_epoch_bump,
                    "timestamp": v.timestamp,
                }
                for i, v in sorted(m.verifications.items())
            },
            "snapshots": sorted(m.snapshots),
            "hasLateTransaction": m.has_late_transaction(self.now),
        }

    def _producer(self, p: ProducerEntry) -> Json:
        return {
            "producerId": p.producer_id,
            "epoch": p.epoch,
            "coordinatorEpoch": p.coordinator_epoch,
            "lastTimestamp": p.last_timestamp,
            "lastSeq": p.last_seq,
            "currentTxnFirstOffset": p.transaction,
            "batches": [self._shown(b) for b in p.batches],
        }

    def do_readEmptiedMarker(self, producer_id: int, producer_epoch: int, offset: int, timestamp: int) -> Json:
        return self._producer(self.manager.Entry.emptied(producer_id, producer_epoch, timestamp))

    @staticmethod
    def _shown(b: BatchMetadata) -> Json:
        return [b.first_seq, b.last_seq, b.first_offset, b.last_offset, b.timestamp]

    def do_appendDataBatch(
        self, producer_id: int, origin: str, producer_epoch: int, first_seq: int, last_seq: int, first_offset: int,
        last_offset: int, timestamp: int, transactional: bool,
    ) -> Json:  # fmt: skip
        append = self.manager.prepare(producer_id, origin)
        append.data(producer_epoch, first_seq, last_seq, first_offset, last_offset, timestamp, transactional)
        self.manager.update(append)
        self.manager.end_offset = last_offset + 1
        return {"startedTransactions": append.started}

    def do_appendEndTxnMarker(
        self, producer_id: int, origin: str, type: str, coordinator_epoch: int, producer_epoch: int, offset: int,
        timestamp: int, transaction_version: int = VERSION_UNKNOWN,
    ) -> Json:  # fmt: skip
        append = self.manager.prepare(producer_id, origin)
        completed = append.marker(
            type == "ABORT", producer_epoch, coordinator_epoch, offset, timestamp, transaction_version
        )
        self.manager.update(append)
        answer = None
        if completed is not None:
            answer = {
                "producerId": completed.producer_id,
                "firstOffset": completed.first_offset,
                "lastOffset": completed.last_offset,
                "isAborted": completed.aborted,
                "lastStableOffset": self.manager.last_stable_offset_of(completed),
            }
            self.manager.complete(completed)
        self.manager.end_offset = offset + 1
        return answer

    @states("PSM-2", "PSM-27")
    def do_produce(
        self, producer_id: int, origin: str, producer_epoch: int, first_seq: int, last_seq: int, first_offset: int,
        last_offset: int, timestamp: int, transactional: bool, guard: int = 0,
    ) -> Json:  # fmt: skip
        m = self.manager
        entry = m.producers.get(producer_id)
        if origin == CLIENT and entry is not None:
            there = entry.duplicate(producer_epoch, first_seq, last_seq)
            if there is not None:
                return {"duplicate": self._shown(there)}
        if origin != REPLICATION and transactional and not m.has_open_transaction(producer_id, producer_epoch):
            if entry is not None and producer_epoch < entry.epoch:
                raise ProducerStateError("PSM-6", ERRORS + "InvalidProducerEpochException")
            known = m.verifications.get(producer_id)
            if self.verifies and (known is None or guard == 0 or known.guard != guard):
                raise ProducerStateError("PSM-27", ERRORS + "InvalidTxnStateException")
        answer = self.do_appendDataBatch(
            producer_id,
            origin,
            producer_epoch,
            first_seq,
            last_seq,
            first_offset,
            last_offset,
            timestamp,
            transactional,
        )
        if transactional:
            m.verifications.pop(producer_id, None)
        return answer

    @states("PSM-27")
    def do_endTransaction(
        self, producer_id: int, origin: str, type: str, coordinator_epoch: int, producer_epoch: int, offset: int,
        timestamp: int, transaction_version: int = VERSION_UNKNOWN,
    ) -> Json:  # fmt: skip
        entry = self.manager.producers.get(producer_id)
        if origin == COORDINATOR and entry is not None and producer_epoch < entry.epoch:
            raise ProducerStateError("PSM-11", ERRORS + "InvalidProducerEpochException")
        answer = self.do_appendEndTxnMarker(
            producer_id, origin, type, coordinator_epoch, producer_epoch, offset, timestamp, transaction_version
        )
        v = self.manager.verifications.get(producer_id)
        if v is not None and not (v.supports_epoch_bump and v.epoch == producer_epoch):
            del self.manager.verifications[producer_id]
        return answer

    def do_findDuplicateBatch(self, producer_id: int, producer_epoch: int, first_seq: int, last_seq: int) -> Json:
        entry = self.manager.producers.get(producer_id)
        there = entry.duplicate(producer_epoch, first_seq, last_seq) if entry is not None else None
        return None if there is None else self._shown(there)

    def do_maybeCreateVerificationStateEntry(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool
    ) -> Json:
        v = self.manager.verification(producer_id, sequence, epoch, supports_epoch_bump, self.now)
        return {"lowestSequence": v.lowest_sequence, "epoch": v.epoch, "supportsEpochBump": v.supports_epoch_bump}

    def do_clearVerificationStateEntry(self, producer_id: int) -> None:
        self.manager.verifications.pop(producer_id, None)

    @states("PSM-27")
    def do_startVerification(self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> Json:
        entry = self.manager.producers.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise ProducerStateError("PSM-6", ERRORS + "InvalidProducerEpochException")
        if self.manager.has_open_transaction(producer_id, epoch):
            return 0
        return self.manager.verification(producer_id, sequence, epoch, supports_epoch_bump, self.now).guard

    def do_onHighWatermarkUpdated(self, high_watermark: int) -> None:
        self.manager.on_high_watermark_updated(high_watermark)

    def do_lastStableOffset(self, high_watermark: int, log_start_offset: int = 0) -> Json:
        return self.manager.last_stable_offset(high_watermark, log_start_offset)

    def do_removeExpiredProducers(self, current_time_ms: int) -> None:
        self.manager.remove_expired(current_time_ms)

    def do_advance(self, ms: int) -> None:
        self.now += ms

    def do_takeSnapshot(self) -> None:
        self.manager.take_snapshot()

    def do_truncateAndReload(self, log_start_offset: int, log_end_offset: int, current_time_ms: int) -> None:
        self.manager.truncate_and_reload(log_start_offset, log_end_offset, current_time_ms)

    def do_truncateFullyAndStartAt(self, offset: int) -> None:
        self.manager.truncate_fully_and_start_at(offset)

    def do_onLogStartOffsetIncremented(self, log_start_offset: int) -> None:
        self.manager.on_log_start_offset_incremented(log_start_offset)

    def do_deleteSnapshotsBefore(self, offset: int) -> None:
        self.manager.delete_snapshots_before(offset)

    def do_removeStraySnapshots(self, segment_base_offsets: Sequence[int]) -> None:
        self.manager.remove_stray_snapshots(segment_base_offsets)

    def do_reopen(self) -> None:
        guards = self.manager.guards
        self.manager = self._opened()
        self.manager.guards = guards

    def do_corruptSnapshot(self, offset: int) -> None:
        path = self.manager.path(offset)
        self.disk.write(path, b"\xff" + self.disk.read(path)[1:])

    def do_writeSnapshot(self, entries: Sequence[Sequence[int]]) -> Json:
        return encode(SnapshotEntry._make(e) for e in entries).hex()

    def do_readSnapshot(self, file: str) -> Json:
        try:
            return [list(e) for e in decode(bytes.fromhex(file))]
        except SnapshotUnreadable as e:
            raise ProducerStateError("PSM-25", CORRUPT, str(e)) from None
