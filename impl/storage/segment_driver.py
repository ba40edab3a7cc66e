"""A segment and its indexes, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkaspec.contract.codec import encode as as_json
from kafkaspec.contract.machine import ByName, Json
from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.storage import segment as impl
from kafkaspec.impl.storage.producer_state import REPLICATION, ProducerStateManager
from kafkaspec.impl.storage.segment import INDEX, LOG, TIME_INDEX, TRANSACTION_INDEX
from kafkaspec.impl.storage.transaction_index import AbortedTxn
from kafkaspec.spec.common.aborted_transaction import AbortedTransaction
from kafkaspec.spec.common.segment_contents import BatchToAppend, EpochEntry, OffsetEntry, TimeEntry, batches_of
from kafkaspec.spec.storage import segment as spec

DIRECTORY = "t-0"


class Driver(ByName):
    """A segment on a simulated disk."""

    machine = spec.machine
    refusals = {
        impl.OffsetOverflow: spec.OUT_OF_REACH,
        impl.IllegalArgument: spec.NO_SUCH_READ,
        impl.NoIndexFile: spec.NO_INDEX_FILE,
    }
    subject: impl.Segment
    segment_class: type[impl.Segment] = impl.Segment

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.start = spec.initial(**arguments)
        self.disk = SimulatedDisk()
        self.now = self.start.now
        self.subject = self._open()
        _ = self.subject.offset_index, self.subject.time_index

    def _open(self, suffix: str = "") -> impl.Segment:
        s = self.start
        return self.segment_class(
            DIRECTORY,
            s.base_offset,
            self.disk,
            index_interval_bytes=s.index_interval_bytes,
            max_index_bytes=s.max_index_bytes,
            roll_jitter_ms=s.roll_jitter_ms,
            clock=lambda: self.now,
            suffix=suffix,
        )

    def producers(self) -> ProducerStateManager:
        """The state where the segment begins."""
        manager = ProducerStateManager(DIRECTORY, SimulatedDisk())
        for producer_id, first in self.start.open_before:
            update = manager.prepare(producer_id, REPLICATION)
            update.data(0, 0, 0, first, first, 0, True)
            manager.update(update)
        return manager

    def append(self, batches: Sequence[BatchToAppend]) -> None:
        new = batches_of(batches)
        self.subject.append(new[-1].last_offset, b"".join(impl.encode(b) for b in new))

    def update_txn_index(
        self, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int, aborted: bool
    ) -> None:
        entry = AbortedTxn(producer_id, first_offset, last_offset, last_stable_offset)
        self.subject.update_transaction_index(entry, aborted)

    def recover(self, active: bool) -> spec.RecoveryResult:
        epochs: list[EpochEntry] = []
        state = impl.ProducerStates(self.producers())
        cut = self.subject.recover(state, lambda epoch, offset: epochs.append(EpochEntry(epoch, offset)))
        if active:
            self.subject.resize_indexes()
        return spec.RecoveryResult(cut, tuple(epochs))

    def reopen(self, active: bool) -> None:
        self.subject.close()
        self.subject = self._open(self.subject.suffix)
        if active:
            self.subject.resize_indexes()

    def crash(self, lost_bytes: int, keep_indexes: bool) -> None:
        s = self.subject
        if keep_indexes:
            s.offset_index.trim()
            s.time_index.trim()
        else:
            for end in (INDEX, TIME_INDEX):
                if self.disk.exists(s.path(end)):
                    self.disk.remove(s.path(end))
        self.disk.truncate(s.path(LOG), max(0, s.size - lost_bytes))
        self.subject = self._open(s.suffix)

    def damage(self, batch: int) -> None:
        data = bytearray(self.subject.data())
        h = list(impl.headers(bytes(data)))[batch]
        data[h.position + h.size - 1] ^= 1
        self.disk.write(self.subject.path(LOG), bytes(data))

    def create_indexes(self) -> None:
        _ = self.subject.offset_index, self.subject.time_index

    def advance(self, ms: int) -> None:
        self.now += ms

    def names(self) -> list[str]:
        order = (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX)
        there = self.disk.files(DIRECTORY)
        names = (impl.file_name(self.start.base_offset, end, self.subject.suffix) for end in order)
        return [n for n in names if n in there and (self.subject.transaction_index.size or TRANSACTION_INDEX not in n)]

    def observe(self) -> Json:
        s = self.subject
        there = s.disk.exists(s.path(INDEX))
        return as_json(
            spec.Observation(
                size=s.size,
                offset_index=tuple(OffsetEntry(*e) for e in s.offset_index.all()) if there else (),
                time_index=tuple(TimeEntry(*e) for e in s.time_index.all()) if there else (),
                offset_slots=s.offset_index.max_entries if there else None,
                time_slots=s.time_index.max_entries if there else None,
                aborted_txns=tuple(AbortedTransaction(*e) for e in s.transaction_index),
                largest_record_timestamp=(None if s.largest[0] < 0 else s.largest[0]) if there else None,
                suffix=s.suffix,
            )
        )
