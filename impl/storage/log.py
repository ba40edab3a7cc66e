"""A partition's log as a broker keeps it: segments, leader epochs and producer state in one directory of a disk that is
given, and the four offsets that bound what a reader may see.

One thread writes. What it does is a sequence of writes to the disk; the log end rises behind the write of the batches,
and readers, who take no lock, go by the offsets alone. Batches are bytes, as a client or a leader sent them: of those
only headers are read and changed. What a broker hands to its scheduler is handed to `schedule`.

Source: UnifiedLog and LocalLog, Kafka 4.3.0; Kafka Internals, ch. 03.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import crc32c

from kafkaspec.impl.common.disk import Disk, StorageError
from kafkaspec.impl.common.rows import NO_TIMESTAMP
from kafkaspec.impl.management.checkpoints import (
    PARTITION_METADATA,
    decode_metadata,
    encode_metadata,
    replace_file,
    storage_errors,
)
from kafkaspec.impl.storage import producer_state
from kafkaspec.impl.storage.batch import CODEC_MASK, LENGTH_AT, MAGIC, Batch, control, stamp
from kafkaspec.impl.storage.leader_epochs import UNDEFINED, EpochEnd
from kafkaspec.impl.storage.log_loader import DELETED, LogLoader
from kafkaspec.impl.storage.producer_state import (
    CLIENT,
    COORDINATOR,
    REPLICATION,
    VERSION_UNKNOWN,
    Append,
    CompletedTransaction,
    NotVerified,
    ProducerStateManager,
    StaleEpoch,
    StaleMarker,
)
from kafkaspec.impl.storage.segment import (
    CRC_FROM,
    INDEX,
    LEAST,
    LOG,
    OVERHEAD,
    TIME_INDEX,
    TRANSACTION_INDEX,
    CorruptRecord,
    Header,
    ProducerStates,
    Segment,
    headers,
)
from kafkaspec.impl.storage.transaction_index import AbortedTxn
from kafkaspec.impl.storage.validator import InvalidRecords, Validator
from kafkaspec.spec.common.compression import CODECS
from kafkaspec.spec.common.kafka import INT_MAX
from kafkaspec.spec.common.record_format import CONTROL, TRANSACTIONAL

UNKNOWN = -1
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4
"""timestamps that ask for something else"""


class LogError(Exception):
    """A call of a log is refused."""


class RecordTooLarge(LogError):
    """A batch is larger than max.message.bytes (LOG-3)."""


class BatchTooLarge(LogError):
    """An append is larger than segment.bytes (LOG-4)."""


class InvalidRecord(LogError):
    """A client's batch has a base offset (LOG-2)."""


class RecordsInError(LogError):
    """A record is one that a leader does not take (LOG-48)."""


class OffsetsOutOfOrder(LogError):
    """A leader's batches do not rise (LOG-11)."""


class UnexpectedAppendOffset(LogError):
    """A leader's batch begins below the log end (LOG-11)."""


class CorruptBatch(LogError):
    """A batch's CRC is wrong (LOG-13)."""


class OffsetOutOfRange(LogError):
    """An offset is not in the log (LOG-21)."""


class AboveHighWatermark(LogError):
    """The log start may not be there (LOG-32)."""


class AboveLogEnd(LogError):
    """The high watermark may not be there (LOG-16)."""


class BelowTheActiveSegment(LogError):
    """A segment may not begin there (LOG-6)."""


class OtherTopic(LogError):
    """A log has another topic's id (LOG-45)."""


class NoLog(LogError):
    """A directory has not the name of a log's (LOG-41)."""


@dataclass(frozen=True)
class LogConfig:
    """Sizes in bytes, times in ms; -1 is no limit."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    roll_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    delete: bool = True
    file_delete_delay_ms: int = 60_000
    max_message_bytes: int = 1_048_588
    flush_messages: int = 2**63 - 1
    producer_id_expiration_ms: int = 86_400_000
    compact: bool = False
    create_time: bool = True
    timestamp_before_max_ms: int = 2**63 - 1
    timestamp_after_max_ms: int = 2**63 - 1

    @property
    def asks_records(self) -> bool:
        """Whether a leader has to look at the records themselves: at their keys, or at their timestamps. [LOG-48]"""
        bounded = min(self.timestamp_before_max_ms, self.timestamp_after_max_ms) < 2**63 - 1
        return self.compact or (self.create_time and bounded)


class Place(NamedTuple):
    """An offset, and where its batch begins: segment and position, -1 if that was not looked up."""

    offset: int
    segment: int = UNKNOWN
    position: int = UNKNOWN


@dataclass
class AppendInfo:
    """What is known of an append; -1 where there is nothing."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_start_offset: int
    valid_bytes: int
    last_leader_epoch: int | None
    log_append_time: int = NO_TIMESTAMP

    @property
    def num_messages(self) -> int:
        return self.last_offset - self.first_offset + 1 if min(self.first_offset, self.last_offset) >= 0 else 0


class FetchResult(NamedTuple):
    """What a read gives. `aborted` is None for a reader who did not ask."""

    place: Place
    records: bytes
    first_entry_incomplete: bool
    aborted: list[AbortedTxn] | None


class Loader(LogLoader):
    """A load that knows when producers expire, and reads a segment in one go. [LOG-31, LOG-47]"""

    expiration_ms = 86_400_000

    def _producer_state(self) -> ProducerStateManager:
        return ProducerStateManager(self.directory, self.disk, self.expiration_ms)

    @classmethod
    def _replay(cls, segment: Segment, begin: int, end: int, state: ProducerStates) -> None:
        """What is read of a segment counts as one append. [LOG-31]"""
        m, updates, ended = state.manager, dict[int, Append](), list[CompletedTransaction]()
        for h, body in cls._read(segment, begin, end):
            if h.producer_id >= 0:
                if h.producer_id not in updates:
                    updates[h.producer_id] = m.prepare(h.producer_id, REPLICATION)
                completed = state.taken(updates[h.producer_id], h, body)
                ended += [completed] if completed is not None else []
        for update in updates.values():
            m.update(update)
        for completed in ended:
            m.complete(completed)


def arrived(records: bytes) -> Iterator[Header]:
    """The whole batches of an append. Raises CorruptRecord for a length behind them that no batch has. [LOG-46]"""
    end = 0
    for h in headers(records):
        end = h.position + h.size
        yield h
    rest = records[end:]
    if len(rest) >= OVERHEAD and int.from_bytes(rest[LENGTH_AT:OVERHEAD], "big", signed=True) < LEAST:
        raise CorruptRecord(end, "a length that no batch has")


Schedule = Callable[[int, Callable[[], None]], None]
"""given a delay, ms, and what is to be done after it"""


class UnifiedLog:
    """One log. Whatever needs the disk raises StorageError if that fails, once and from then on."""

    segment_class = Segment
    loader_class = Loader

    def __init__(
        self, directory: str, disk: Disk, config: LogConfig, clock: Callable[[], int], schedule: Schedule,
        *, clean: bool = True, recovery_point: int = 0, log_start: int = 0, topic_id: str | None = None,
    ) -> None:  # fmt: skip
        """Loads what the directory has, or makes it. Raises OtherTopic. [LOG-42, LOG-43]"""
        self.directory, self.disk, self.config, self.clock, self.schedule = directory, disk, config, clock, schedule
        self.offline = False
        loader = self.loader_class(
            directory,
            disk,
            clean,
            recovery_point,
            log_start,
            config.segment_index_bytes,
            config.index_interval_bytes,
            clock,
        )
        loader.expiration_ms = config.producer_id_expiration_ms
        with self._disk_errors():
            loaded = loader.load()
        self.segments = loader.segments
        self.bases = sorted(self.segments)
        for segment in self.segments.values():
            segment.roll_jitter_ms = config.roll_jitter_ms
        self.epochs, self.producers = loader.epochs, loader.producers
        self.epochs.schedule = self._write_later
        self.log_start, self.log_end, self.recovery_point = loaded.log_start, loaded.log_end, loaded.recovery_point
        self._set_end(self.log_end)
        self.high_watermark = Place(self.log_start)
        self.first_unstable: Place | None = None
        self._update_first_unstable()
        self.topic_id: str | None = None
        self.id_is_written = True
        if self.disk.exists(self._metadata_path):
            with self._disk_errors(), storage_errors(directory, "reading", self._metadata_path):
                self.topic_id = decode_metadata(self.disk.read(self._metadata_path))
        if topic_id is not None:
            try:
                self.assign_topic_id(topic_id)
            except OtherTopic:
                self._close_segments()
                raise

    # ---- the topic's id

    @property
    def _metadata_path(self) -> str:
        return f"{self.directory}/{PARTITION_METADATA}"

    def assign_topic_id(self, topic_id: str) -> None:
        """The log's topic has this id. Raises OtherTopic. [LOG-45]"""
        if self.topic_id is None:
            self.topic_id, self.id_is_written = topic_id, False
            self.schedule(0, self.flush_metadata_file)
        elif self.topic_id != topic_id:
            raise OtherTopic(f"{topic_id}: the log is of {self.topic_id}")

    def flush_metadata_file(self) -> None:
        """Have the topic's id in its file. Raises StorageError. [LOG-44]"""
        if self.id_is_written:
            return
        assert self.topic_id is not None
        try:
            replace_file(self.disk, self._metadata_path, encode_metadata(self.topic_id))
        except OSError as e:
            self.offline = True
            raise StorageError(self.directory, str(e)) from e
        self.id_is_written = True

    @contextmanager
    def _disk_errors(self) -> Iterator[None]:
        """An effect that the disk refuses takes the directory out of service. [LOG-37]"""
        self._check_service()
        try:
            yield
        except (OSError, StorageError) as e:
            self.offline = True
            raise StorageError(self.directory, str(e)) from e

    def _write_later(self, task: Callable[[], None]) -> None:
        """Leader epochs that were cut, by the scheduler: if the disk refuses, nobody else is told. [LOG-51]"""

        def write() -> None:
            with self._disk_errors():
                task()

        self.schedule(0, write)

    def _check_service(self) -> None:
        """Raises StorageError after an effect has failed. [LOG-37]"""
        if self.offline:
            raise StorageError(self.directory, f"{self.directory} is out of service")

    @property
    def active(self) -> Segment:
        return self.segments[self.bases[-1]]

    @property
    def last_stable(self) -> int:
        """[LOG-19, LOG-22]"""
        first, hw = self.first_unstable, self.high_watermark.offset
        return first.offset if first is not None and first.offset < hw else hw

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(s.size for s in self.segments.values())

    def _from(self, offset: int) -> int:
        """The number of the last segment that begins at or below an offset; -1 if there is none."""
        return bisect_right(self.bases, offset) - 1

    # ---- places

    def _find(self, offset: int) -> Place:
        """The place of an offset. Raises OffsetOutOfRange. [LOG-18]"""
        n = self._from(offset)
        if n < 0 or offset > self.log_end:
            raise OffsetOutOfRange(f"{offset} is not in the log up to {self.log_end}")
        if offset < self.log_end:
            for base in self.bases[n:]:
                at = self.segments[base].translate_offset(offset)
                if at is not None:
                    return Place(at.offset, base, at.position)
        return self.end

    def _look_up(self, offset: int) -> Place:
        """The place of an offset; the offset alone if it has none. [LOG-18]"""
        try:
            return self._find(offset)
        except OffsetOutOfRange:
            return Place(offset)

    def _update_first_unstable(self) -> None:
        """[LOG-20]"""
        first = self.producers.first_unstable
        self.first_unstable = None if first is None else self._look_up(max(first, self.log_start))

    def _set_high_watermark(self, place: Place) -> None:
        self.high_watermark = place
        self.producers.on_high_watermark_updated(place.offset)
        self._update_first_unstable()

    def _bound_high_watermark(self) -> None:
        """[LOG-17]"""
        if self.high_watermark.offset >= self.log_end:
            self._set_high_watermark(self.end)

    def _placed_high_watermark(self) -> Place:
        """[LOG-18]"""
        if self.high_watermark.segment == UNKNOWN:
            self._set_high_watermark(self._look_up(self.high_watermark.offset))
        return self.high_watermark

    def _placed_last_stable(self) -> Place:
        """[LOG-18, LOG-19]"""
        hw = self._placed_high_watermark()
        if self.first_unstable is None or self.first_unstable.offset >= hw.offset:
            return hw
        if self.first_unstable.segment == UNKNOWN:
            self.first_unstable = self._look_up(self.first_unstable.offset)
        return self.first_unstable

    # ---- appends

    def append_as_leader(
        self, records: bytes, leader_epoch: int, origin: str = CLIENT, guard: int = 0, version: int = VERSION_UNKNOWN
    ) -> AppendInfo:
        """Append a batch, which gets offsets and this leader epoch. Raises LogError, CorruptRecord, ProducerStateError,
        StorageError. [LOG-1, LOG-2, LOG-3, LOG-44, LOG-46]"""
        self.flush_metadata_file()
        new: list[Header] = []
        for h in arrived(records):
            if origin == CLIENT and h.base_offset != 0:
                raise InvalidRecord(f"base offset {h.base_offset}")
            if h.size > self.config.max_message_bytes:
                raise RecordTooLarge(f"{h.size} bytes")
            self._check_crc(records, h)
            new.append(h)
        if not new:
            return self._nothing()
        with self._disk_errors():
            now = self.clock()
            data, placed = self._led(records[: new[-1].position + new[-1].size], new, leader_epoch, origin, now)
            info = self._info(placed, None)
            info.log_append_time = NO_TIMESTAMP if self.config.create_time else now
            return self._append(data, placed, info, origin, guard, version)

    def _led(
        self, records: bytes, new: Sequence[Header], epoch: int, origin: str, now: int
    ) -> tuple[bytes, list[Header]]:
        """The batches with the offsets, the epoch and the timestamp that a leader gives them, and their headers. Raises
        RecordsInError. [LOG-2, LOG-48, LOG-49]"""
        c, data, offset = self.config, bytearray(), self.log_end
        for h in new:
            whole = records[h.position : h.position + h.size]
            if c.asks_records:
                data += self._validated(whole, offset, now, epoch, CODECS[h.attributes & CODEC_MASK].name, origin)
            else:
                data += stamp(whole, offset, epoch, not c.create_time, h.max_timestamp if c.create_time else now)
            offset += h.last_offset_delta + 1
        return bytes(data), list(headers(bytes(data)))

    def _validated(self, whole: bytes, offset: int, now: int, epoch: int, codec: str, origin: str) -> bytes:
        """A batch of which each record was looked at. Raises RecordsInError. [LOG-48]"""
        c, kind = self.config, "CreateTime" if self.config.create_time else "LogAppendTime"
        bounds = c.timestamp_before_max_ms, c.timestamp_after_max_ms
        try:
            return Validator(whole, offset, now, c.compact, MAGIC, codec, kind, *bounds, epoch, origin).run()
        except InvalidRecords as e:
            raise RecordsInError(str(e)) from e

    def append_as_follower(self, records: bytes, leader_epoch: int) -> AppendInfo:
        """Append batches with the offsets and epochs that they have. Raises LogError, CorruptRecord, StorageError.
        [LOG-11, LOG-12, LOG-13, LOG-44, LOG-46]"""
        self.flush_metadata_file()
        new: list[Header] = []
        for h in arrived(records):
            if h.leader_epoch > leader_epoch:
                break
            self._check_crc(records, h)
            if new and new[-1].last_offset >= h.last_offset:
                raise OffsetsOutOfOrder(f"{h.last_offset} after {new[-1].last_offset}")
            new.append(h)
        if not new:
            return self._nothing()
        with self._disk_errors():
            if new[0].base_offset < self.log_end:
                raise UnexpectedAppendOffset(f"{new[0].base_offset} below the log end {self.log_end}")
            size = new[-1].position + new[-1].size
            return self._append(
                records[:size], new, self._info(new, new[-1].leader_epoch), REPLICATION, 0, VERSION_UNKNOWN
            )

    @staticmethod
    def _check_crc(records: bytes, h: Header) -> None:
        """Raises CorruptBatch. [LOG-13]"""
        if crc32c.crc32c(memoryview(records)[h.position + CRC_FROM : h.position + h.size]) != h.crc:
            raise CorruptBatch(f"the batch at {h.base_offset}")

    def _nothing(self) -> AppendInfo:
        """Of an append without a whole batch. [LOG-46]"""
        return AppendInfo(UNKNOWN, UNKNOWN, NO_TIMESTAMP, self.log_start, 0, None)

    def _info(self, new: Sequence[Header], epoch: int | None) -> AppendInfo:
        size = new[-1].position + new[-1].size
        largest = max(h.max_timestamp for h in new)
        return AppendInfo(new[0].base_offset, new[-1].last_offset, largest, self.log_start, size, epoch)

    def _append(
        self, records: bytes, new: Sequence[Header], info: AppendInfo, origin: str, guard: int, version: int
    ) -> AppendInfo:
        """Every effect of an append, in its order. [LOG-1, LOG-4, LOG-9, LOG-10, LOG-14, LOG-36]"""
        for h in new:
            self.epochs.assign(h.leader_epoch, h.base_offset)
        if len(records) > self.config.segment_bytes:
            raise BatchTooLarge(f"{len(records)} bytes")
        self._maybe_roll(len(records), info)
        updates, completed = dict[int, Append](), list[CompletedTransaction]()
        for h in new:
            if h.producer_id >= 0:
                duplicate = self._ask_producers(records, h, origin, guard, version, updates, completed)
                if duplicate is not None:
                    info.first_offset, info.last_offset = duplicate.first_offset, duplicate.last_offset
                    info.log_append_time, info.log_start_offset = duplicate.timestamp, self.log_start
                    return info
        self.active.append(info.last_offset, records)
        self._set_end(info.last_offset + 1)
        self._bound_high_watermark()
        for update in updates.values():
            self.producers.update(update)
        for c in completed:
            stable = self.producers.last_stable_offset_of(c)
            self.active.update_transaction_index(
                AbortedTxn(c.producer_id, c.first_offset, c.last_offset, stable), c.aborted
            )
            self.producers.complete(c)
        self.producers.end_offset = self.log_end
        self._update_first_unstable()
        if self.log_end - self.recovery_point >= self.config.flush_messages:
            self._flush(self.log_end)
        return info

    def _ask_producers(
        self, records: bytes, h: Header, origin: str, guard: int, version: int, updates: dict[int, Append],
        completed: list[CompletedTransaction],
    ) -> producer_state.BatchMetadata | None:  # fmt: skip
        """Check one batch with the producer state; the batch that it repeats, if it does. Raises ProducerStateError.
        [LOG-8, LOG-9]"""
        m, producer_id, epoch = self.producers, h.producer_id, h.producer_epoch
        known = m.producers.get(producer_id)
        transactional, last = bool(h.attributes & TRANSACTIONAL), h.base_sequence + h.last_offset_delta
        last -= INT_MAX + 1 if last > INT_MAX else 0
        if origin == CLIENT and known is not None:
            there = known.duplicate(epoch, h.base_sequence, last)
            if there is not None:
                return there
        if h.attributes & CONTROL:
            if origin == COORDINATOR and known is not None and epoch < known.epoch:
                raise StaleMarker
        elif origin != REPLICATION and transactional and not m.has_open_transaction(producer_id, epoch):
            if known is not None and epoch < known.epoch:
                raise StaleEpoch
            verification = m.verifications.get(producer_id)
            if verification is None or guard == 0 or verification.guard != guard:
                raise NotVerified
        if producer_id not in updates:
            updates[producer_id] = m.prepare(producer_id, origin)
        update = updates[producer_id]
        if h.attributes & CONTROL:
            marker = next(Batch(records[h.position : h.position + h.size], h.position).records())
            says = control(marker.key, marker.value)
            ended = update.marker(
                says.type == 0, epoch, says.coordinator_epoch or 0, h.last_offset, h.max_timestamp, version
            )
            if ended is not None:
                completed.append(ended)
            v = m.verifications.get(producer_id)
            if v is not None and not (v.supports_epoch_bump and v.epoch == epoch):
                del m.verifications[producer_id]
            return None
        update.data(epoch, h.base_sequence, last, h.base_offset, h.last_offset, h.max_timestamp, transactional)
        if transactional:
            m.verifications.pop(producer_id, None)
        return None

    def start_verification(self, producer_id: int, sequence: int, epoch: int, supports_bump: bool) -> int:
        """The guard for a transactional batch; 0 if its transaction is open. Raises StaleEpoch. [LOG-9]"""
        known = self.producers.producers.get(producer_id)
        if known is not None and epoch < known.epoch:
            raise StaleEpoch
        if self.producers.has_open_transaction(producer_id, epoch):
            return 0
        return self.producers.verification(producer_id, sequence, epoch, supports_bump, self.clock()).guard

    # ---- rolling

    def _maybe_roll(self, size: int, info: AppendInfo) -> None:
        """[LOG-5]"""
        c = self.config
        if self.active.should_roll(c.segment_ms, c.segment_bytes, info.max_timestamp, info.last_offset, size):
            self._roll(info.first_offset)

    def roll(self) -> int:
        """Begin a segment at the log end; its base offset. [LOG-6, LOG-7]"""
        with self._disk_errors():
            return self._roll(0)

    def _roll(self, expected: int) -> int:
        """[LOG-6, LOG-7]"""
        base, old = max(expected, self.log_end), self.active
        if base < old.base_offset:
            raise BelowTheActiveSegment(f"a segment from {base} on, below that from {old.base_offset} on")
        if old.base_offset == base:
            assert old.size == 0, "a roll onto a segment with batches"
            self._replace(old, base)
        else:
            old.become_inactive()
            self._open(base)
        self._set_end(self.log_end)
        self.producers.end_offset = base
        snapshot = self.producers.take_snapshot(flush=False)
        self._bound_high_watermark()

        def flush() -> None:
            if snapshot is not None and self.disk.exists(self.producers.path(snapshot)):
                self.disk.flush(self.producers.path(snapshot))
            if base > self.recovery_point:
                self._flush(base)

        self.schedule(0, flush)
        return base

    def _open(self, base: int) -> Segment:
        """A new segment; what is left of an older one of its name is removed. [LOG-6]"""
        c = self.config
        for end in (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX):
            path = f"{self.directory}/{base:020}{end}"
            if self.disk.exists(path):
                self.disk.remove(path)
        segment = self.segment_class(
            self.directory, base, self.disk, index_interval_bytes=c.index_interval_bytes,
            max_index_bytes=c.segment_index_bytes, roll_jitter_ms=c.roll_jitter_ms, clock=self.clock,
        )  # fmt: skip
        self.segments[base] = segment
        self.bases = sorted(self.segments)
        return segment

    # ---- deletion

    def _replace(self, old: Segment, base: int) -> None:
        """A new segment for the only one, that goes: the log has one at every moment. [LOG-7, LOG-30, LOG-34]"""
        paths = self._renamed(old) if old.base_offset == base else []
        self._open(base)
        if not paths:
            self._give_up([old])
        self._remove_later(paths)

    def _give_up(self, gone: Sequence[Segment]) -> None:
        """Take segments out of the log; their files get another name, and go later. [LOG-34, LOG-50]"""
        for segment in gone:
            del self.segments[segment.base_offset]
        self.bases = sorted(self.segments)
        self._remove_later([path for segment in gone for path in self._renamed(segment)])

    @staticmethod
    def _renamed(segment: Segment) -> list[str]:
        """The files of a segment that goes, by the names that they have from now on. [LOG-34]"""
        _ = segment.offset_index, segment.time_index  # files that are opened late: there is something to rename
        segment.rename("", DELETED)
        return [segment.path(end) for end in (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX)]

    def _give_up_snapshots(self, bases: Sequence[int]) -> None:
        """[LOG-34]"""
        there = [b for b in bases if b in self.producers.snapshots]
        for base in there:
            self.producers.snapshots.discard(base)
            path = self.producers.path(base)
            self.disk.rename(path, path + DELETED)
        self._remove_later([self.producers.path(base) + DELETED for base in there])

    def _remove_later(self, paths: Sequence[str]) -> None:
        """[LOG-34]"""

        def remove() -> None:
            for path in paths:
                if self.disk.exists(path):
                    self.disk.remove(path)

        if paths:
            self.schedule(self.config.file_delete_delay_ms, remove)

    def delete_old_segments(self) -> int:
        """Apply retention; how many segments were deleted. [LOG-39]"""
        start = self.log_start
        count = self._delete(lambda s, following: following is not None and following <= start)
        if not self.config.delete:
            return count
        over = self.size - self.config.retention_bytes
        if self.config.retention_bytes >= 0 and over >= 0:

            def too_much(s: Segment, _: int | None) -> bool:
                nonlocal over
                if s.size > over:
                    return False
                over -= s.size
                return True

            count += self._delete(too_much)
        if self.config.retention_ms >= 0:
            limit = self.clock() - self.config.retention_ms
            count += self._delete(lambda s, _: 0 <= s.largest[0] < limit)
        return count

    def _delete(self, wanted: Callable[[Segment, int | None], bool]) -> int:
        """[LOG-33]"""
        gone: list[Segment] = []
        for n, base in enumerate(self.bases):
            segment = self.segments[base]
            following = self.bases[n + 1] if n + 1 < len(self.bases) else None
            upper = self.log_end if following is None else following
            if self.high_watermark.offset < upper or not wanted(segment, following):
                break
            if following is None and segment.size == 0:
                break
            gone.append(segment)
        if not gone:
            return 0
        with self._disk_errors():
            if len(gone) == len(self.bases):
                self._roll(0)
            self._raise_log_start(self.bases[len(gone)])
            self._give_up(gone)
            self._give_up_snapshots([s.base_offset for s in gone])
        return len(gone)

    # ---- offsets

    def update_high_watermark(self, offset: int) -> int:
        """Set it, within the log; what it became. [LOG-15]"""
        inside = self.end if offset >= self.log_end else Place(offset)
        self._set_high_watermark(Place(self.log_start) if offset < self.log_start else inside)
        return self.high_watermark.offset

    def maybe_increment_high_watermark(self, offset: int) -> int | None:
        """Raise it; what it was, if it changed. Raises AboveLogEnd. [LOG-16]"""
        if offset > self.log_end:
            raise AboveLogEnd(f"{offset} above the log end {self.log_end}")
        before = self._placed_high_watermark().offset
        if offset <= before:
            return None
        self._set_high_watermark(Place(offset))
        return before

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Raise the log start; whether it changed. Raises AboveHighWatermark. [LOG-32]"""
        with self._disk_errors():
            if offset > self.high_watermark.offset:
                raise AboveHighWatermark(f"{offset} above the high watermark {self.high_watermark.offset}")
            return self._raise_log_start(offset)

    def _raise_log_start(self, offset: int) -> bool:
        """[LOG-32]"""
        if offset <= self.log_start:
            return False
        self.log_start = offset
        if self.high_watermark.offset < offset:
            self.update_high_watermark(offset)
        self.recovery_point = max(self.recovery_point, offset)
        self.epochs.truncate_from_start(offset)
        self.producers.on_log_start_offset_incremented(offset)
        self._update_first_unstable()
        return True

    def flush(self, force_flush_active_segment: bool = False) -> None:
        """Have the whole log outlive a crash. [LOG-35]"""
        with self._disk_errors():
            if self.log_end + force_flush_active_segment > self.recovery_point:
                self._flush(self.log_end, force_flush_active_segment)

    def _flush(self, offset: int, including: bool = False) -> None:
        """Flush the segments from the recovery point on, the directory for their names; only then the recovery point
        rises. [LOG-35]"""
        first = max(0, self._from(self.recovery_point))
        last = bisect_left(self.bases, offset + including)
        for base in self.bases[first:last]:
            segment = self.segments[base]
            _ = segment.offset_index, segment.time_index
            segment.flush()
        if any(base >= self.recovery_point for base in self.bases[first:last]):
            self.disk.flush_directory(self.directory)
        self.recovery_point = max(self.recovery_point, offset)

    # ---- truncation

    def truncate_to(self, offset: int) -> bool:
        """Cut the log; whether there was something to cut. [LOG-28, LOG-29]"""
        with self._disk_errors():
            if offset >= self.log_end:
                self.epochs.truncate_from_end(self.log_end)
                return False
            if self.bases[0] > offset:
                self._truncate_fully(offset, None)
                return True
            gone = [self.segments[b] for b in self.bases if b > offset]
            if gone:
                self._give_up(gone)
            self.active.truncate_to(offset)
            self._cut_end(offset)
            self._give_up_snapshots([s.base_offset for s in gone])
            self.epochs.truncate_from_end(offset)
            self.log_start = min(self.log_start, offset)
            self._rebuild(offset)
            self._bound_high_watermark()
            return True

    def _set_end(self, offset: int) -> None:
        """The log end, with its place as it is now: what is written behind it is not to be read yet. [LOG-1, LOG-24]"""
        self.log_end, self.end = offset, Place(offset, self.bases[-1], self.active.size)

    def _cut_end(self, offset: int) -> None:
        """[LOG-28]"""
        self._set_end(offset)
        self.recovery_point = min(self.recovery_point, offset)

    def truncate_fully_and_start_at(self, offset: int, log_start: int | None = None) -> None:
        """Empty the log, to begin at an offset. [LOG-30]"""
        with self._disk_errors():
            self._truncate_fully(offset, log_start)

    def _truncate_fully(self, offset: int, log_start: int | None) -> None:
        """[LOG-30]"""
        *others, last = (self.segments[base] for base in self.bases)
        self._give_up(others)
        self._replace(last, offset)
        self._cut_end(offset)
        self.epochs.clear_and_flush()
        self.producers.truncate_fully_and_start_at(offset)
        self.log_start = offset if log_start is None else log_start
        self._rebuild(offset)
        self._set_high_watermark(self.end)

    def _rebuild(self, end: int) -> None:
        """Bring the producer state to the new end, from a snapshot and the batches behind it. [LOG-31]"""
        m, last_two = self.producers, self.bases[-2:]
        nothing_to_read = not m.producers and not m.unreplicated and m.end_offset >= end
        m.truncate_and_reload(self.log_start, end, self.clock())
        if end > m.end_offset and not nothing_to_read:
            first = max(0, self._from(m.end_offset))
            for base in self.bases[first : bisect_left(self.bases, end)]:
                begin = max(base, m.end_offset, self.log_start)
                m.end_offset = begin
                if base in (*last_two, end):
                    m.take_snapshot()
                Loader._replay(self.segments[base], begin, end, ProducerStates(m))
                m.end_offset = begin
        m.end_offset = end
        m.take_snapshot()

    # ---- reads

    def read(self, offset: int, max_length: int, isolation: str, min_one_message: bool) -> FetchResult:
        """Bytes from an offset on, below the isolation's bound. Raises OffsetOutOfRange, IllegalArgument.
        [LOG-21, LOG-23, LOG-24, LOG-26]"""
        if offset < self.log_start:
            raise OffsetOutOfRange(f"{offset} is below the log start {self.log_start}")
        self._check_service()
        committed = isolation == "TXN_COMMITTED"
        bound = self.end
        if isolation == "HIGH_WATERMARK":
            bound = self._placed_high_watermark()
        elif committed:
            bound = self._placed_last_stable()
        n = self._from(offset)
        if offset > self.log_end or n < 0:
            raise OffsetOutOfRange(f"{offset} is not in the log up to {self.log_end}")
        nothing: list[AbortedTxn] | None = [] if committed else None
        if offset >= bound.offset:
            return FetchResult(bound if offset == bound.offset else self._find(offset), b"", False, nothing)
        with self._disk_errors():
            for base in self.bases[n:]:
                segment = self.segments[base]
                most = segment.size if base < bound.segment else bound.position if base == bound.segment else None
                found = segment.read(offset, max_length, most, min_one_message)
                if found is None:
                    continue
                data = segment.data()[found.position : found.position + found.bytes] if found.bytes else b""
                aborted = self._aborted(base, offset, found.position, found.bytes) if committed else None
                return FetchResult(
                    Place(found.offset, base, found.position), data, found.first_entry_incomplete, aborted
                )
        return FetchResult(self.end, b"", False, None)

    def _aborted(self, base: int, offset: int, position: int, size: int) -> list[AbortedTxn]:
        """[LOG-25]"""
        n = self.bases.index(base)
        behind = self.segments[base].offset_index.fetch_upper_bound_offset(position, size)
        following = self.bases[n + 1] if n + 1 < len(self.bases) else self.log_end
        upper = following if behind is None else behind.offset
        out: list[AbortedTxn] = []
        for b in self.bases[n:]:
            found = self.segments[b].transaction_index.collect_aborted_txns(offset, upper)
            out += found.aborted_transactions
            if found.is_complete:
                break
        return out

    def fetch_offset_by_timestamp(self, timestamp: int) -> tuple[int, int, int | None] | None:
        """Timestamp, offset and leader epoch for a timestamp, ms, or what a negative one is. [LOG-27, LOG-38]"""
        self._check_service()
        if timestamp == LATEST:
            return NO_TIMESTAMP, self.log_end, self.epochs.epochs[-1] if self.epochs.epochs else None
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            known = self.epochs.starts and self.epochs.starts[0] <= self.log_start
            return NO_TIMESTAMP, self.log_start, self.epochs.epochs[0] if known else None
        if timestamp < MAX_TIMESTAMP:
            return NO_TIMESTAMP, UNKNOWN, UNKNOWN
        if timestamp == MAX_TIMESTAMP:
            return self._largest()
        for base in self.bases:
            segment = self.segments[base]
            if segment.largest[0] < 0 or segment.largest[0] >= timestamp:
                found = segment.find_offset_by_timestamp(timestamp, self.log_start)
                return None if found is None else (found.timestamp, found.offset, found.leader_epoch)
        return None

    def _largest(self) -> tuple[int, int, int | None] | None:
        """The first record with the largest timestamp. [LOG-38]"""
        segment = max((self.segments[b] for b in self.bases), key=lambda s: s.largest[0])
        largest, offset = segment.largest
        data = segment.data()
        for h in headers(data, segment.offset_index.lookup(offset).position):
            if h.max_timestamp == largest:
                records = Batch(data[h.position : h.position + h.size], h.position).records()
                return largest, next(r.offset for r in records if r.timestamp == largest), h.leader_epoch
        return None

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd | None:
        """[LOG-40]"""
        end = self.epochs.end_offset_for(epoch, self.log_end)
        return None if end.end_offset == UNDEFINED else end

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        """[LOG-14]"""
        self.epochs.assign(epoch, offset)

    def close(self) -> None:
        """[LOG-42, LOG-44]"""
        self.flush_metadata_file()
        with self._disk_errors():
            self.producers.take_snapshot()
            self._close_segments()

    def _close_segments(self) -> None:
        for segment in self.segments.values():
            segment.close()


# ---- names -----------------------------------------------------------------------------------------------------------
ENDINGS = ("-delete", "-future", "-stray")


def parse_topic_partition_name(name: str) -> tuple[str, int]:
    """The topic and partition of a log's directory. Raises NoLog. [LOG-41]"""
    rest = name
    for ending in ENDINGS:
        if name.endswith(ending):
            if not re.fullmatch(r"\S+-\S+\.\S+" + ending, name, re.ASCII):
                raise NoLog(name)
            rest = name[: name.rindex(".")]
    topic, dash, number = rest.rpartition("-")
    if (
        not dash
        or not topic
        or not re.fullmatch(r"[+-]?\d+", number, re.ASCII)
        or not -INT_MAX - 1 <= int(number) <= INT_MAX
    ):
        raise NoLog(name)
    return topic, int(number)
