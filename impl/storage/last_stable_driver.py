"""The log with its transactions and a consumer, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafkaspec.contract.codec import encode as as_json
from kafkaspec.contract.machine import ByName, Json
from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.storage import last_stable as impl
from kafkaspec.impl.storage import producer_state_driver
from kafkaspec.impl.storage.last_stable import Batch
from kafkaspec.impl.storage.producer_state import CLIENT, COORDINATOR, REPLICATION, NotVerified
from kafkaspec.spec.common.aborted_transaction import AbortedTransaction
from kafkaspec.spec.common.transactional_log import (
    BatchView,
    Fetch,
    KeptBatch,
    Observation,
    Poll,
    ProducerView,
    ReplicaBatch,
)
from kafkaspec.spec.storage import last_stable as spec
from kafkaspec.spec.storage.last_stable_parts.appends import NOT_VERIFIED, Offsets


def shown(batches: Iterable[Batch]) -> tuple[BatchView, ...]:
    return tuple(BatchView._make((b.base, b.last, b.producer_id, b.epoch, b.kind)) for b in batches)


class Driver(ByName):
    """The log on a simulated disk, and a consumer."""

    machine = spec.machine
    refusals = {
        impl.HighWatermarkAboveEnd: spec.ABOVE_END,
        impl.LogStartAboveHighWatermark: spec.ABOVE_HIGH_WATERMARK,
        impl.OffsetOutOfRange: spec.NO_SUCH_OFFSET,
        **producer_state_driver.Driver.refusals,
        NotVerified: NOT_VERIFIED,
    }
    Log = impl.TransactionalLog
    Reader = impl.Consumer

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        first = spec.initial(**arguments)
        self.config, self.now = first.producers.config, first.producers.now
        verifies = self.config.transaction_verification_enabled
        self.subject = self.Log(SimulatedDisk(), self.config.producer_id_expiration_ms, verifies)

    def _append(
        self, origin: str, version: int, count: int, *of_producer: Any, at: int | None = None, guard: int = 0
    ) -> Offsets:
        base = self.subject.end if at is None else at
        producer_id, epoch, kind, sequence, coordinator = of_producer
        batch = Batch(base, base + count - 1, producer_id, epoch, kind, sequence, coordinator, self.now)
        return Offsets(*self.subject.append(batch, origin, version, guard))

    def append(self, count: int) -> Offsets:
        return self._append(CLIENT, -1, count, -1, -1, "PLAIN", -1, -1)

    def start_verification(self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> int:
        guard: int = self.subject.start_verification(producer_id, sequence, epoch, supports_epoch_bump, self.now)
        return guard

    def produce(
        self, producer_id: int, epoch: int, sequence: int, count: int, transactional: bool, guard: int
    ) -> Offsets:
        kind = "TRANSACTIONAL" if transactional else "PLAIN"
        return self._append(CLIENT, -1, count, producer_id, epoch, kind, sequence, -1, guard=guard)

    def end_transaction(self, producer_id: int, epoch: int, type: str, coordinator_epoch: int, version: int) -> Offsets:
        return self._append(COORDINATOR, version, 1, producer_id, epoch, type, -1, coordinator_epoch)

    def replicate(
        self, producer_id: int, epoch: int, kind: str, sequence: int, coordinator_epoch: int, first: int, count: int
    ) -> Offsets:
        control = kind in ("COMMIT", "ABORT")
        own = (-1, coordinator_epoch) if control else (sequence, -1)
        return self._append(REPLICATION, -1, count, producer_id, epoch, kind, *own, at=first)

    def replicate_batches(self, batches: Sequence[ReplicaBatch]) -> Offsets:
        appended, end = [], self.subject.end
        for b in map(ReplicaBatch._make, batches):
            own = (-1, b.coordinator_epoch) if b.kind in ("COMMIT", "ABORT") else (b.first_sequence, -1)
            appended.append(Batch(end, end + b.records - 1, b.producer_id, b.producer_epoch, b.kind, *own, self.now))
            end += b.records
        return Offsets(*self.subject.append_all(appended))

    def delete_old_segments(self, retention_ms: int) -> None:
        self.subject.delete_old_segments(retention_ms, self.now)

    def advance(self, ms: int) -> None:
        self.now += ms

    def remove_expired_producers(self) -> None:
        self.subject.remove_expired_producers(self.now)

    def truncate_to(self, offset: int) -> None:
        self.subject.truncate_to(offset, self.now)

    def truncate_fully(self, offset: int) -> None:
        self.subject.truncate_fully(offset, self.now)

    def reopen(self, offset: int) -> None:
        self.subject.reopen(offset, self.now)

    def read(self, start: int, max_batches: int, read_committed: bool) -> Fetch:
        found = self.subject.read(start, max_batches, read_committed)
        told = None if found.aborted is None else tuple((a.producer_id, a.first_offset) for a in found.aborted)
        return Fetch(shown(found.batches), told)

    def consume(self, start: int, max_batches: int, read_committed: bool) -> Poll:
        reader = self.Reader(self.subject.read(start, max_batches, read_committed), start)
        return Poll(tuple(reader), reader.position)

    def observe(self) -> Json:
        """What the log's segments, indexes and tables say."""
        log = self.subject
        known = sorted(log.producers.producers.values(), key=lambda p: p.producer_id)
        return as_json(
            Observation(
                log.log_start,
                log.high_watermark,
                log.last_stable,
                log.end,
                log.first_unstable,
                tuple(s.base for s in log.segments),
                shown(log.batches()),
                tuple(AbortedTransaction(*a) for s in log.segments for a in s.index),
                tuple(
                    ProducerView(
                        p.producer_id,
                        p.epoch,
                        p.coordinator_epoch,
                        p.last_seq,
                        p.transaction,
                        tuple(KeptBatch(b.first_seq, b.last_seq, b.first_offset, b.last_offset) for b in p.batches),
                    )
                    for p in known
                ),
            )
        )
