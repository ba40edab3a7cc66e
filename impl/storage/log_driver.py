"""A log on a simulated disk, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from kafkaspec.contract.codec import Unordered, encode, replace
from kafkaspec.contract.machine import ByName, Json
from kafkaspec.impl.common.disk import SimulatedDisk, StorageError
from kafkaspec.impl.management.checkpoints import PARTITION_METADATA
from kafkaspec.impl.storage import log as impl
from kafkaspec.impl.storage import producer_state_driver
from kafkaspec.impl.storage.batch import CONTROL_KEY, END_MARKER, Encoder, stamp
from kafkaspec.impl.storage.producer_state import CLIENT, COORDINATOR
from kafkaspec.impl.storage.producer_state import SUFFIX as SNAPSHOT
from kafkaspec.impl.storage.segment import LOG, TRANSACTION_INDEX, CorruptRecord, Header, IllegalArgument, headers
from kafkaspec.spec.common.aborted_transaction import AbortedTransaction
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.record_format import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL
from kafkaspec.spec.storage import log as spec
from kafkaspec.spec.storage.leader_epochs import Entry
from kafkaspec.spec.storage.log_parts import changes, reading, shown, validation
from kafkaspec.spec.storage.log_parts.contents import BatchToReplicate, KeyValue

MAX_INDEX_BYTES = 4096
"""an index on a simulated disk is copied by each change: no history fills more"""


class RefusingDisk(SimulatedDisk):
    """A disk that refuses the effect of a name."""

    def refuse(self, path: str, *effects: tuple[str, bool]) -> None:
        if self.refused is not None and (self.refused, True) in effects:
            self.refused = None
            raise OSError(28, "no space left on device", path)

    refused: str | None = None
    active: Callable[[], str] = staticmethod(lambda: "")

    def write(self, path: str, data: bytes) -> None:
        self.refuse(
            path,
            ("topicId", PARTITION_METADATA in path),
            ("epochs", "leader-epoch" in path),
            ("snapshot", path.endswith(SNAPSHOT)),
            ("roll", path.endswith(LOG)),
        )
        super().write(path, data)

    def rename(self, source: str, target: str) -> None:
        renamed = source.endswith(LOG)
        self.refuse(source, ("roll", source == self.active()), ("rename", renamed))  # a roll replaces an empty segment
        super().rename(source, target)

    def append(self, path: str, data: bytes) -> None:
        self.refuse(path, ("bytes", path.endswith(LOG)), ("txnIndex", path.endswith(TRANSACTION_INDEX)))
        super().append(path, data)

    def truncate(self, path: str, size: int) -> None:
        self.refuse(path, ("cut", path.endswith(LOG)))
        super().truncate(path, size)

    def flush(self, path: str) -> None:
        self.refuse(path, ("flush", path == self.active() and len(self.names[path].content) > 0))
        super().flush(path)


@lru_cache(maxsize=4096)
def encoded(b: BatchToReplicate) -> bytes:
    """The bytes of a batch."""
    marker = b.kind in ("abort", "commit")
    out = Encoder(
        b.base_offset, leader_epoch=b.leader_epoch, producer_id=b.producer_id, producer_epoch=b.producer_epoch,
        base_sequence=b.base_sequence, transactional=b.kind != "data", control=marker,
    )  # fmt: skip
    if marker:
        out.append(b.timestamp, CONTROL_KEY.pack(0, b.kind == "commit"), END_MARKER.pack(0, b.coordinator_epoch))
    for key, value in b.records:
        out.append(b.timestamp, None if key is None else key.encode(), None if value is None else value.encode())
    data = bytearray(out.finish())
    if b.log_append_time:
        data = bytearray(stamp(bytes(data), b.base_offset, b.leader_epoch, True, b.timestamp))
    data[-1] ^= b.damaged
    return bytes(data)


class Driver(ByName):
    """The log on a simulated disk. What the scheduler is given without a delay is done at once."""

    machine = spec.machine
    refusals = {
        **producer_state_driver.Driver.refusals,
        impl.RecordTooLarge: changes.RECORD_TOO_LARGE,
        impl.RecordsInError: validation.IN_ERROR,
        impl.BatchTooLarge: changes.BATCH_TOO_LARGE,
        impl.InvalidRecord: changes.NOT_FROM_ZERO,
        impl.OffsetsOutOfOrder: changes.OUT_OF_ORDER,
        impl.UnexpectedAppendOffset: changes.UNEXPECTED_OFFSET,
        impl.CorruptBatch: changes.CORRUPT,
        CorruptRecord: changes.CORRUPT_END,
        impl.OtherTopic: changes.OTHER_TOPIC,
        impl.BelowTheActiveSegment: changes.BELOW_THE_ACTIVE,
        impl.AboveLogEnd: spec.ABOVE_THE_END,
        impl.OffsetOutOfRange: reading.NOT_IN_THE_LOG,
        IllegalArgument: reading.NEGATIVE_SIZE,
        impl.AboveHighWatermark: spec.ABOVE_HIGH_WATERMARK,
        StorageError: changes.OUT_OF_SERVICE,
        impl.NoLog: spec.NO_LOG,
    }
    log_class: type[impl.UnifiedLog] = impl.UnifiedLog
    directory = ""
    subject: impl.UnifiedLog

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        first = spec.initial(**arguments)
        c = first.config
        known = c._asdict() | {"segment_index_bytes": min(c.segment_index_bytes, MAX_INDEX_BYTES)}
        expiration_ms = first.producers.config.producer_id_expiration_ms
        self.config = impl.LogConfig(**known, producer_id_expiration_ms=expiration_ms)
        self.directory = f"logs/{arguments.get('topic_partition', 't-0')}"
        self.now = first.now
        self.disk = RefusingDisk()
        self._load()

    def _load(self, **more: Any) -> None:
        self.later: list[tuple[int, Callable[[], None]]] = []
        self.subject = self.log_class(self.directory, self.disk, self.config, lambda: self.now, self._schedule, **more)
        _ = self.subject.active.offset_index, self.subject.active.time_index
        self.disk.active = lambda: self.subject.active.path(LOG)

    def _schedule(self, delay_ms: int, task: Callable[[], None]) -> None:
        """What writes the topic's id is an operation."""
        if task.__name__ == "flush_metadata_file":
            return
        if delay_ms == 0:
            with suppress(StorageError):  # nobody waits for it
                task()
        else:
            self.later.append((self.now + delay_ms, task))

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Any:
        self.disk.refused = arguments.get("fail_at")
        try:
            return super().apply(name, arguments)
        finally:
            self.disk.refused = None
            _ = self.subject.active.offset_index, self.subject.active.time_index

    def _said(self, info: impl.AppendInfo) -> shown.LogAppendInfo:
        i = info
        return shown.LogAppendInfo(
            i.first_offset, i.last_offset, i.max_timestamp, i.log_append_time, i.log_start_offset, i.last_leader_epoch,
            i.num_messages, i.valid_bytes,
        )  # fmt: skip

    def append_as_leader(
        self, leader_epoch: int, timestamp: int, records: Sequence[KeyValue], producer_id: int, producer_epoch: int,
        base_sequence: int, transactional: bool, base_offset: int, trailing_bytes: int, trailing_zeros: bool,
        fail_at: str | None,
    ) -> shown.LogAppendInfo:  # fmt: skip
        kind = "transactional" if transactional else "data"
        log, guard = self.subject, 0
        if transactional:
            guard = log.start_verification(producer_id, base_sequence, producer_epoch, False)
        numbers = (-1, producer_id, producer_epoch, base_sequence)
        b = BatchToReplicate(base_offset, timestamp, tuple(records), *numbers, kind)  # type: ignore[arg-type]
        data = encoded(b)
        data += bytes(trailing_bytes) if trailing_zeros else data[:trailing_bytes]
        return self._said(log.append_as_leader(data, leader_epoch, CLIENT, guard))

    def append_end_txn_marker(
        self, producer_id: int, producer_epoch: int, type: str, coordinator_epoch: int, version: int, timestamp: int,
        leader_epoch: int, fail_at: str | None,
    ) -> shown.LogAppendInfo:  # fmt: skip
        kind = "abort" if type == "ABORT" else "commit"
        numbers = (-1, producer_id, producer_epoch, -1)
        b = BatchToReplicate(0, timestamp, (), *numbers, kind, coordinator_epoch)  # type: ignore[arg-type]
        return self._said(self.subject.append_as_leader(encoded(b), leader_epoch, COORDINATOR, 0, version))

    def append_as_follower(
        self, leader_epoch: int, base_offset: int, batch_leader_epoch: int, timestamp: int, records: Sequence[KeyValue]
    ) -> shown.LogAppendInfo:
        b = BatchToReplicate(base_offset, timestamp, tuple(records), batch_leader_epoch)
        return self._said(self.subject.append_as_follower(encoded(b), leader_epoch))

    def append_batches_as_follower(
        self, leader_epoch: int, batches: Sequence[BatchToReplicate], missing_bytes: int, fail_at: str | None
    ) -> shown.LogAppendInfo:
        data = b"".join(encoded(replace(b, records=tuple(b.records))) for b in batches)
        return self._said(self.subject.append_as_follower(data[: max(0, len(data) - missing_bytes)], leader_epoch))

    def roll(self, fail_at: str | None) -> int:
        return self.subject.roll()

    def maybe_increment_log_start_offset(self, offset: int, fail_at: str | None) -> bool:
        return self.subject.maybe_increment_log_start_offset(offset)

    def truncate_to(self, offset: int, fail_at: str | None) -> bool:
        return self.subject.truncate_to(offset)

    def truncate_fully_and_start_at(self, offset: int, log_start: int | None, fail_at: str | None) -> None:
        self.subject.truncate_fully_and_start_at(offset, log_start)

    def delete_old_segments(self, fail_at: str | None) -> int:
        return self.subject.delete_old_segments()

    def flush(self, force_flush_active_segment: bool, fail_at: str | None) -> None:
        self.subject.flush(force_flush_active_segment)

    def end_offset_for_epoch(self, leader_epoch: int) -> shown.OffsetAndEpoch | None:
        end = self.subject.end_offset_for_epoch(leader_epoch)
        return None if end is None else shown.OffsetAndEpoch(end.end_offset, end.epoch)

    def read(self, offset: int, max_length: int, isolation: str, min_one_message: bool) -> shown.FetchDataInfo:
        found = self.subject.read(offset, max_length, isolation, min_one_message)
        aborted = found.aborted
        return shown.FetchDataInfo(
            *found.place,
            len(found.records),
            found.first_entry_incomplete,
            [batch_read(h) for h in headers(found.records)],
            None
            if aborted is None
            else [shown.ProducerIdAndFirstOffset(a.producer_id, a.first_offset) for a in aborted],
        )

    def fetch_offset_by_timestamp(self, timestamp: int) -> shown.TimestampAndOffset | None:
        found = self.subject.fetch_offset_by_timestamp(timestamp)
        return None if found is None else shown.TimestampAndOffset(*found)

    def advance(self, ms: int) -> None:
        self.now += ms
        due = [task for at, task in self.later if at <= self.now]
        self.later = [(at, task) for at, task in self.later if at > self.now]
        for task in due:
            task()

    def close_and_reopen(
        self,
        log_start: int,
        recovery_point: int,
        clean: bool,
        torn_bytes: int,
        no_snapshots: bool,
        topic_id: str | None,
        fail_at: str | None,
    ) -> None:
        self.subject.close()
        self.disk.refused = None
        try:
            self._reopen(log_start, recovery_point, clean, no_snapshots, topic_id)
        except impl.OtherTopic:
            self._reopen(log_start, recovery_point, clean, False)
            raise

    def crash_and_reopen(
        self, log_start: int, recovery_point: int, clean: bool, torn_bytes: int, no_snapshots: bool
    ) -> None:
        last = max(n for n in self.disk.files(self.directory) if n.endswith(LOG))
        path = f"{self.directory}/{last}"
        self.disk.truncate(path, max(0, self.disk.size(path) - torn_bytes))
        self._reopen(log_start, recovery_point, clean, no_snapshots)

    def _reopen(
        self, log_start: int, recovery_point: int, clean: bool, no_snapshots: bool, topic_id: str | None = None
    ) -> None:
        for name in self.disk.files(self.directory):
            if no_snapshots and name.endswith(SNAPSHOT):
                self.disk.remove(f"{self.directory}/{name}")
        guards = self.subject.producers.guards
        self._load(clean=clean, recovery_point=recovery_point, log_start=log_start, topic_id=topic_id)
        self.subject.producers.guards = guards

    def parse_topic_partition_name(self, name: str) -> shown.TopicPartition:
        return shown.TopicPartition(*impl.parse_topic_partition_name(name))

    def observe(self) -> Json:
        log, m = self.subject, self.subject.producers
        known = [producer_state_driver.shown(p) for _, p in sorted(m.producers.items())]
        files = {
            n: shown.FileEntry(self.disk.size(f"{self.directory}/{n}"))
            for n in self.disk.files(self.directory)
            if ".index" not in n and ".timeindex" not in n
        }
        return encode(
            shown.Observation(
                self.now,
                log.log_start,
                log.log_end,
                log.high_watermark.offset,
                log.last_stable,
                None if log.first_unstable is None else log.first_unstable.offset,
                log.recovery_point,
                tuple(shown.SegmentEntry(b, log.segments[b].size, log.segments[b].largest[0]) for b in log.bases),
                tuple(Entry(*e) for e in log.epochs.entries),
                Unordered(
                    shown.ProducerEntry(
                        p.producer_id,
                        p.epoch,
                        p.coordinator_epoch,
                        p.last_timestamp,
                        p.current_txn_first_offset,
                        p.batches,
                    )
                    for p in known
                ),
                sorted(m.snapshots),
                tuple(AbortedTransaction(*e) for b in log.bases for e in log.segments[b].transaction_index),
                log.topic_id,
                Frozen({n: f for n, f in files.items() if ".txnindex" not in n or f.size}),
            )
        )


def batch_read(h: Header) -> shown.BatchRead:
    """A batch as a reader has it."""
    known = h.producer_id >= 0
    return shown.BatchRead(
        h.base_offset, h.last_offset, h.size, h.max_timestamp, h.leader_epoch,
        h.producer_id if known else None, h.producer_epoch if known else None, h.base_sequence if known else None,
        bool(h.attributes & TRANSACTIONAL), bool(h.attributes & CONTROL), bool(h.attributes & LOG_APPEND_TIME),
    )  # fmt: skip
