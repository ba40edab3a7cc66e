"""The producer state and its snapshots, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkaspec.contract.codec import Unordered
from kafkaspec.contract.codec import encode as as_json
from kafkaspec.contract.machine import ByName, Json
from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.storage import producer_state as impl
from kafkaspec.impl.storage.producer_state import CLIENT, COORDINATOR, REPLICATION
from kafkaspec.spec.common import producers as tables
from kafkaspec.spec.common.producer_snapshot import Entry
from kafkaspec.spec.storage import producer_state as spec


class Driver(ByName):
    """The manager on a simulated disk, and what a log does with it."""

    DIRECTORY = "log/t-0"
    Manager = impl.ProducerStateManager
    subject: impl.ProducerStateManager
    machine = spec.machine
    refusals = {
        impl.NotTheNext: spec.NOT_THE_NEXT,
        impl.NotFromZero: spec.NOT_FROM_ZERO,
        impl.StaleEpoch: spec.STALE_EPOCH,
        impl.AboveVerification: spec.ABOVE_VERIFICATION,
        impl.WithinTransaction: spec.WITHIN_TRANSACTION,
        impl.NoVersion: spec.NO_VERSION,
        impl.StaleMarker: spec.STALE_MARKER,
        impl.StaleCoordinator: spec.STALE_COORDINATOR,
        impl.NotVerified: spec.NOT_VERIFIED,
        impl.SnapshotUnreadable: spec.UNREADABLE,
    }

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        first = spec.initial(**arguments)
        self.config, self.now = first.config, first.now
        self.disk = SimulatedDisk()
        self.subject = self._opened()

    def _opened(self) -> impl.ProducerStateManager:
        expiration_ms, timeout_ms = self.config.producer_id_expiration_ms, self.config.max_transaction_timeout_ms
        return self.Manager(self.DIRECTORY, self.disk, expiration_ms, timeout_ms)

    def reopen(self) -> None:
        guards = self.subject.guards
        self.subject = self._opened()
        self.subject.guards = guards

    def observe(self) -> Json:
        """What the manager's own tables say."""
        m = self.subject
        verifications = {
            str(i): tables.TimedVerification(v.lowest_sequence, v.epoch, v.supports_epoch_bump, v.timestamp)
            for i, v in sorted(m.verifications.items())
        }
        return as_json(
            tables.Observation(
                self.now,
                m.end_offset,
                m.first_unstable,
                m.first_undecided,
                Unordered(shown(p) for _, p in sorted(m.producers.items())),
                verifications,
                sorted(m.snapshots),
                m.has_late_transaction(self.now),
            )
        )

    def read_emptied_marker(
        self, producer_id: int, producer_epoch: int, offset: int, timestamp: int
    ) -> tables.ProducerEntry:
        return shown(self.subject.Entry.emptied(producer_id, producer_epoch, timestamp))

    def append_data_batch(
        self, producer_id: int, origin: str, epoch: int, first_seq: int, last_seq: int, first_offset: int,
        last_offset: int, timestamp: int, transactional: bool,
    ) -> tables.OpenedTransactions:  # fmt: skip
        append = self.subject.prepare(producer_id, origin)
        append.data(epoch, first_seq, last_seq, first_offset, last_offset, timestamp, transactional)
        self.subject.update(append)
        self.subject.end_offset = last_offset + 1
        return {"startedTransactions": append.started}

    def append_end_txn_marker(
        self, producer_id: int, origin: str, type: str, coordinator_epoch: int, epoch: int, offset: int,
        timestamp: int, version: int,
    ) -> tables.EndedTransaction | None:  # fmt: skip
        append = self.subject.prepare(producer_id, origin)
        completed = append.marker(type == "ABORT", epoch, coordinator_epoch, offset, timestamp, version)
        self.subject.update(append)
        self.subject.end_offset = offset + 1
        if completed is None:
            return None
        answer = tables.EndedTransaction(*completed, self.subject.last_stable_offset_of(completed))
        self.subject.complete(completed)
        return answer

    def produce(
        self, producer_id: int, origin: str, epoch: int, first_seq: int, last_seq: int, first_offset: int,
        last_offset: int, timestamp: int, transactional: bool, guard: int,
    ) -> tables.OpenedTransactions | tables.Duplicate:  # fmt: skip
        """Append a batch as a log does: answer a duplicate, ask for the guard, and end the verification.
        [PSM-2, PSM-27]"""
        m = self.subject
        entry = m.producers.get(producer_id)
        if origin == CLIENT and entry is not None:
            there = entry.duplicate(epoch, first_seq, last_seq)
            if there is not None:
                return {"duplicate": list(numbers(there))}
        if origin != REPLICATION and transactional and not m.has_open_transaction(producer_id, epoch):
            if entry is not None and epoch < entry.epoch:
                raise impl.StaleEpoch
            known = m.verifications.get(producer_id)
            verifies = self.config.transaction_verification_enabled
            if verifies and (known is None or guard == 0 or known.guard != guard):
                raise impl.NotVerified
        answer = self.append_data_batch(
            producer_id, origin, epoch, first_seq, last_seq, first_offset, last_offset, timestamp, transactional
        )
        if transactional:
            m.verifications.pop(producer_id, None)
        return answer

    def end_transaction(
        self, producer_id: int, origin: str, type: str, coordinator_epoch: int, epoch: int, *more: int
    ) -> tables.EndedTransaction | None:
        """Append a marker as a log does: check its epoch first, and end the verification after it. [PSM-27]"""
        entry = self.subject.producers.get(producer_id)
        if origin == COORDINATOR and entry is not None and epoch < entry.epoch:
            raise impl.StaleMarker
        answer = self.append_end_txn_marker(producer_id, origin, type, coordinator_epoch, epoch, *more)
        v = self.subject.verifications.get(producer_id)
        if v is not None and not (v.supports_epoch_bump and v.epoch == epoch):
            del self.subject.verifications[producer_id]
        return answer

    def find_duplicate_batch(
        self, producer_id: int, epoch: int, first_seq: int, last_seq: int
    ) -> tables.BatchNumbers | None:
        entry = self.subject.producers.get(producer_id)
        there = entry.duplicate(epoch, first_seq, last_seq) if entry is not None else None
        return None if there is None else numbers(there)

    def maybe_create_verification_state_entry(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool
    ) -> tables.VerificationEntry:
        v = self.subject.verification(producer_id, sequence, epoch, supports_epoch_bump, self.now)
        return tables.VerificationEntry(v.lowest_sequence, v.epoch, v.supports_epoch_bump)

    def clear_verification_state_entry(self, producer_id: int) -> None:
        self.subject.verifications.pop(producer_id, None)

    def start_verification(self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> int:
        """The guard of the producer's verification, 0 if its transaction is open. Raises StaleEpoch. [PSM-27]"""
        entry = self.subject.producers.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise impl.StaleEpoch
        if self.subject.has_open_transaction(producer_id, epoch):
            return 0
        return self.subject.verification(producer_id, sequence, epoch, supports_epoch_bump, self.now).guard

    def advance(self, ms: int) -> None:
        self.now += ms

    def take_snapshot(self) -> None:
        self.subject.take_snapshot()

    def corrupt_snapshot(self, offset: int) -> None:
        path = self.subject.path(offset)
        self.disk.write(path, b"\xff" + self.disk.read(path)[1:])

    def write_snapshot(self, entries: Sequence[Entry]) -> str:
        return impl.encode(impl.SnapshotEntry._make(e) for e in entries).hex()

    def read_snapshot(self, file: str) -> list[impl.SnapshotEntry]:
        return [self.subject.Entry.load(e).snapshot() for e in impl.decode(bytes.fromhex(file))]


def numbers(b: impl.BatchMetadata) -> tables.BatchNumbers:
    return tables.BatchNumbers(b.first_seq, b.last_seq, b.first_offset, b.last_offset, b.timestamp)


def shown(p: impl.ProducerEntry) -> tables.ProducerEntry:
    batches = [numbers(b) for b in p.batches]
    return tables.ProducerEntry(
        p.producer_id, p.epoch, p.coordinator_epoch, p.last_timestamp, p.last_seq, p.transaction, batches
    )
