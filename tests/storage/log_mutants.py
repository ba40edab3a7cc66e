"""Faults of the log: Kafka's own bugs, and slips that anyone may make."""

# mypy: disable-error-code="operator, index, arg-type, assignment, type-var"
# (the modelling language unwraps an option where its value is wanted)

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from kafkaspec.contract.machine import Driver, Machine, Step
from kafkaspec.impl.common.disk import StorageError
from kafkaspec.impl.storage import log as impl
from kafkaspec.impl.storage import log_driver
from kafkaspec.impl.storage.batch import stamp
from kafkaspec.impl.storage.leader_epochs import EpochEnd
from kafkaspec.impl.storage.log import AppendInfo, FetchResult, Place, UnifiedLog
from kafkaspec.impl.storage.log_loader import LogLoader
from kafkaspec.impl.storage.producer_state import CLIENT, ProducerStateError, ProducerStateManager
from kafkaspec.impl.storage.segment import CRC_FROM, CorruptRecord, Header, Segment, headers
from kafkaspec.impl.storage.transaction_index import AbortedTxn
from kafkaspec.language import action, define, require
from kafkaspec.models.storage import log as model
from kafkaspec.models.storage.log import Batch, Offset, Phase
from kafkaspec.mutants.mutant import Mutant, of_impl, of_model, of_spec, with_fault
from kafkaspec.spec.common.record_format import CONTROL
from kafkaspec.spec.storage import log as spec
from kafkaspec.spec.storage.log_parts.contents import Log
from kafkaspec.spec.storage.log_parts.shown import TopicPartition

Sound = UnifiedLog


def _of(log: type[UnifiedLog]) -> Callable[[], Driver]:
    """The driver of a faulty log."""

    def make() -> Driver:
        driver: Driver = type("FaultyDriver", (log_driver.Driver,), {"log_class": log})()
        return driver

    return make


def _log(**methods: Any) -> Callable[[], Driver]:
    return _of(type("Faulty", (UnifiedLog,), methods))


def _configured(**changes: Any) -> Callable[[], Driver]:
    """A log that reads its configuration otherwise."""

    def make(self: UnifiedLog, directory: str, disk: Any, config: impl.LogConfig, *rest: Any, **more: Any) -> None:
        Sound.__init__(
            self, directory, disk, replace(config, **{k: f(config) for k, f in changes.items()}), *rest, **more
        )

    return _log(__init__=make)


# ---- appends
def _end_before_bytes(
    self: UnifiedLog, records: bytes, new: Sequence[Header], info: AppendInfo, *rest: Any
) -> AppendInfo:
    """The log end rises before the bytes are written."""
    before = self.log_end
    try:
        return Sound._append(self, records, new, info, *rest)
    except StorageError:
        raise
    except OSError:
        if self.log_end == before:
            self.log_end = info.last_offset + 1
        raise


def _offsets_from_one(self: UnifiedLog, records: bytes, epoch: int, *rest: Any) -> AppendInfo:
    """Each append leaves an offset out."""
    if self.log_end and not self.offline:
        self.log_end += 1
        try:
            return Sound.append_as_leader(self, records, epoch, *rest)
        except impl.LogError:
            self.log_end -= 1
            raise
    return Sound.append_as_leader(self, records, epoch, *rest)


def _epoch_of_the_client(self: UnifiedLog, records: bytes, epoch: int, *rest: Any) -> AppendInfo:
    return Sound.append_as_leader(self, records, max(0, epoch - 1), *rest)


def _whole_append_in_message(self: UnifiedLog, records: bytes, epoch: int, *rest: Any) -> AppendInfo:
    """max.message.bytes is asked after the epochs were assigned."""
    if len(records) > self.config.max_message_bytes and not self.offline:
        self.epochs.assign(epoch, self.log_end)
    return Sound.append_as_leader(self, records, epoch, *rest)


def _size_first(self: UnifiedLog, records: bytes, new: Sequence[Header], *rest: Any) -> AppendInfo:
    """The size is checked before the epochs are assigned."""
    if len(records) > self.config.segment_bytes:
        raise impl.BatchTooLarge(f"{len(records)} bytes")
    return Sound._append(self, records, new, *rest)


def _rolls_at_the_end(self: UnifiedLog, size: int, info: AppendInfo) -> None:
    """A segment begins at the log end, also before a gap."""
    c = self.config
    if self.active.should_roll(c.segment_ms, c.segment_bytes, info.max_timestamp, info.last_offset, size):
        self._roll(self.log_end)


def _no_snapshot(self: UnifiedLog, expected: int) -> int:
    taken, self.producers.last_snapshot = self.producers.last_snapshot, 2**62
    try:
        return Sound._roll(self, expected)
    finally:
        self.producers.last_snapshot = taken


def _fails_on_empty(self: UnifiedLog, expected: int) -> int:
    if self.active.base_offset == max(expected, self.log_end):
        raise StorageError(self.directory, "the segment is there already")
    return Sound._roll(self, expected)


def _snapshot_of_the_old_end(self: UnifiedLog, expected: int) -> int:
    """The snapshot is taken at the producers' own end, not at the new base."""
    base = max(expected, self.log_end)
    sound, end = self.producers.take_snapshot, self.producers.end_offset

    def take(flush: bool = True) -> int | None:
        self.producers.end_offset = min(end, base)
        taken = sound(flush)
        self.producers.end_offset = base
        return taken

    with patch.object(self.producers, "take_snapshot", take):
        return Sound._roll(self, expected)


def _asks_twice(self: UnifiedLog, records: bytes, h: Header, origin: str, *rest: Any) -> Any:
    """Duplicates are appended."""
    known = self.producers.producers.get(h.producer_id)
    if origin == CLIENT and known is not None and h.attributes & 0x30 == 0:
        last = h.base_sequence + h.last_offset_delta
        if known.duplicate(h.producer_epoch, h.base_sequence, last) is not None:
            return None
    return Sound._ask_producers(self, records, h, origin, *rest)


def _duplicate_now(self: UnifiedLog, *args: Any) -> AppendInfo:
    info = Sound._append(self, *args)
    if info.log_append_time >= 0:
        info.log_append_time = self.clock()
    return info


def _producers_first(
    self: UnifiedLog, records: bytes, new: Sequence[Header], info: AppendInfo, *rest: Any
) -> AppendInfo:
    """A refused append leaves no segment behind."""
    bases = list(self.bases)
    try:
        return Sound._append(self, records, new, info, *rest)
    except ProducerStateError:
        if self.bases != bases and self.active.size == 0:
            self._give_up([self.active])
        raise


def _stable_of_the_marker(self: UnifiedLog, *args: Any) -> AppendInfo:
    """The transaction index says that all is stable up to the marker."""
    with patch.object(self.producers, "last_stable_offset_of", lambda c: c.last_offset + 1):
        return Sound._append(self, *args)


def _follower_overwrites(self: UnifiedLog, records: bytes, epoch: int) -> AppendInfo:
    """A batch below the log end is passed over."""
    try:
        return Sound.append_as_follower(self, records, epoch)
    except impl.UnexpectedAppendOffset:
        return AppendInfo(-1, -1, -1, self.log_start, 0, None)


def _any_order(self: UnifiedLog, records: bytes, epoch: int) -> AppendInfo:
    try:
        return Sound.append_as_follower(self, records, epoch)
    except impl.OffsetsOutOfOrder:
        first = next(headers(records))
        return Sound.append_as_follower(self, records[: first.size], epoch)


def _takes_higher_epochs(self: UnifiedLog, records: bytes, epoch: int) -> AppendInfo:
    return Sound.append_as_follower(self, records, 2**31 - 1)


def _trusts_crcs(records: bytes, h: Header) -> None: ...


def _epochs_of_the_last(self: UnifiedLog, records: bytes, new: Sequence[Header], *rest: Any) -> AppendInfo:
    """The last batch's epoch alone is assigned."""
    sound = self.epochs.assign
    last = new[-1].leader_epoch

    def assign(epoch: int, offset: int) -> None:
        if epoch == last:
            sound(epoch, offset)

    with patch.object(self.epochs, "assign", assign):
        return Sound._append(self, records, new, *rest)


# ---- what a leader asks, and its timestamps
def _with_config(method: str, **changes: Any) -> Callable[..., Any]:
    """A method that reads the configuration otherwise."""

    def call(self: UnifiedLog, *args: Any) -> Any:
        kept, self.config = self.config, replace(self.config, **changes)
        try:
            return getattr(Sound, method)(self, *args)
        finally:
            self.config = kept

    return call


def _marker_is_not_asked(self: UnifiedLog, whole: bytes, *rest: Any) -> bytes:
    """A coordinator's records are taken as they are."""
    *most, origin = rest
    if origin == CLIENT:
        return Sound._validated(self, whole, *rest)
    return bytes(_with_config("_validated", timestamp_before_max_ms=2**63 - 1, timestamp_after_max_ms=2**63 - 1)(
        self, whole, *most, origin
    ))  # fmt: skip


def _duplicates_first(self: UnifiedLog, records: bytes, new: Sequence[Header], epoch: int, *rest: Any) -> Any:
    """A client's batch that is there already is answered before its records are asked."""
    try:
        return Sound._led(self, records, new, epoch, *rest)
    except impl.RecordsInError:
        h = new[0]
        known = self.producers.producers.get(h.producer_id)
        if (
            known is None
            or known.duplicate(h.producer_epoch, h.base_sequence, h.base_sequence + h.last_offset_delta) is None
        ):
            raise
        return _with_config("_led", timestamp_before_max_ms=2**63 - 1, timestamp_after_max_ms=2**63 - 1, compact=False)(
            self, records, new, epoch, *rest
        )


def _epochs_before_records(self: UnifiedLog, records: bytes, new: Sequence[Header], epoch: int, *rest: Any) -> Any:
    """Leader epochs are assigned before the records are asked."""
    self.epochs.assign(epoch, self.log_end)
    return Sound._led(self, records, new, epoch, *rest)


def _follower_asks(self: UnifiedLog, records: bytes, epoch: int) -> AppendInfo:
    """A follower refuses what it would not take as a leader."""
    for h in headers(records) if not self.offline and self.config.create_time else ():
        age = self.clock() - h.max_timestamp
        if age > self.config.timestamp_before_max_ms or -age > self.config.timestamp_after_max_ms:
            raise impl.RecordsInError(str(age))
    return Sound.append_as_follower(self, records, epoch)


def _follower_stamps(self: UnifiedLog, records: bytes, epoch: int) -> AppendInfo:
    """A follower's batches get its own topic's timestamp type."""
    if self.config.create_time:
        return Sound.append_as_follower(self, records, epoch)
    out = bytearray(records)
    for h in headers(records):
        data = stamp(records[h.position : h.position + h.size], h.base_offset, h.leader_epoch, True, h.max_timestamp)
        if data[CRC_FROM:] != records[h.position + CRC_FROM : h.position + h.size]:
            self._check_crc(records, h)
        out[h.position : h.position + h.size] = data
    return Sound.append_as_follower(self, bytes(out), epoch)


def _type_alone(data: bytes, offset: int, epoch: int, append_time: bool, largest: int) -> bytes:
    """LogAppendTime is said, and the client's timestamp stays."""
    return stamp(data, offset, epoch, append_time, next(headers(data)).max_timestamp)


def _time_alone(data: bytes, offset: int, epoch: int, append_time: bool, largest: int) -> bytes:
    """The largest timestamp is the leader's, and nothing says so."""
    return stamp(data, offset, epoch, False, largest)


def _without_crc(data: bytes, offset: int, epoch: int, append_time: bool, largest: int) -> bytes:
    """The CRC is that of the batch as it came."""
    done = stamp(data, offset, epoch, append_time, largest)
    return done[:17] + data[17:21] + done[21:]


def _stamping(stamped: Callable[..., bytes]) -> Callable[[], Driver]:
    def led(self: UnifiedLog, *args: Any) -> Any:
        with patch.object(impl, "stamp", stamped):
            return Sound._led(self, *args)

    return _log(_led=led)


def _time_of_the_client(self: UnifiedLog, new: Sequence[Header], epoch: int | None) -> AppendInfo:
    """The log rolls, and answers, by what the client said; the batch itself is right."""
    info = Sound._info(self, new, epoch)
    if epoch is None:
        info.max_timestamp = new[0].base_timestamp
    return info


def _no_append_time(self: UnifiedLog, *args: Any) -> AppendInfo:
    """The answer has no log append time."""
    info = Sound.append_as_leader(self, *args)
    if info.log_append_time == self.clock():
        info.log_append_time = -1
    return info


def _always_append_time(self: UnifiedLog, *args: Any) -> AppendInfo:
    """The answer has a log append time with CreateTime, too."""
    info = Sound.append_as_leader(self, *args)
    if info.log_append_time == -1 and info.first_offset >= 0:
        info.log_append_time = self.clock()
    return info


UNBOUNDED = 2**63 - 1
LEADERS = [
    of_impl(
        "any key",
        "LOG-48",
        "a compacted topic takes a record without a key",
        _log(_validated=_with_config("_validated", compact=False), _led=_with_config("_led", compact=False)),
    ),
    of_impl(
        "as old as can be",
        "LOG-48",
        "message.timestamp.before.max.ms is not asked for",
        _configured(timestamp_before_max_ms=lambda _: UNBOUNDED),
    ),
    of_impl(
        "of the future",
        "LOG-48",
        "message.timestamp.after.max.ms is not asked for",
        _configured(timestamp_after_max_ms=lambda _: UNBOUNDED),
        "KAFKA-14991",
    ),
    of_impl(
        "one difference",
        "LOG-48",
        "a timestamp after the clock has the bound of one before it, as message.timestamp.difference.max.ms had",
        _configured(timestamp_after_max_ms=lambda c: c.timestamp_before_max_ms),
    ),
    of_impl(
        "older by one",
        "LOG-48",
        "a timestamp at the bound is refused",
        _configured(
            timestamp_before_max_ms=lambda c: c.timestamp_before_max_ms - (c.timestamp_before_max_ms < UNBOUNDED)
        ),
    ),
    of_impl(
        "markers pass", "LOG-48", "a coordinator's timestamps are not asked", _log(_validated=_marker_is_not_asked)
    ),
    of_impl(
        "duplicates first", "LOG-48 LOG-8", "a duplicate is answered before it is asked", _log(_led=_duplicates_first)
    ),
    of_impl(
        "epochs before records",
        "LOG-48 LOG-14",
        "an append that is refused for its records leaves its leader epoch",
        _log(_led=_epochs_before_records),
    ),
    of_impl("a follower asks", "LOG-48", "a follower asks timestamps", _log(append_as_follower=_follower_asks)),
    of_impl(
        "a follower stamps",
        "LOG-49",
        "a follower gives its own topic's timestamp type",
        _log(append_as_follower=_follower_stamps),
    ),
    of_impl("type alone", "LOG-49", "LogAppendTime with the client's timestamp", _stamping(_type_alone)),
    of_impl("time alone", "LOG-49", "the leader's time as CreateTime", _stamping(_time_alone)),
    of_impl("the client's CRC", "LOG-49", "the CRC is that of the batch as it came", _stamping(_without_crc)),
    of_impl(
        "rolls by the client",
        "LOG-49 LOG-5",
        "the log rolls by the client's timestamp",
        _log(_info=_time_of_the_client),
    ),
    of_impl("no append time", "LOG-49", "the answer lacks the log append time", _log(append_as_leader=_no_append_time)),
    of_impl(
        "always append time",
        "LOG-49",
        "the answer has a log append time with CreateTime",
        _log(append_as_leader=_always_append_time),
    ),
]


# ---- offsets
def _above_the_end(self: UnifiedLog, offset: int) -> int:
    self._set_high_watermark(Place(max(offset, self.log_start)))
    return self.high_watermark.offset


def _lowers(self: UnifiedLog, offset: int) -> int | None:
    before = self._placed_high_watermark().offset
    known = Sound.maybe_increment_high_watermark(self, offset)
    if known is None and offset < before and offset >= self.log_start:
        self._set_high_watermark(Place(offset))
        return before
    return known


def _stays_above(self: UnifiedLog) -> None: ...


def _keeps_the_offset(self: UnifiedLog, offset: int) -> Place:
    """As 3.9.1 does."""
    found = Sound._find(self, offset)
    return found._replace(offset=offset)


def _all_is_stable(self: UnifiedLog) -> None:
    first = self.producers.first_undecided
    self.first_unstable = None if first is None else self._look_up(max(first, self.log_start))


def _unstable_below(self: UnifiedLog) -> None:
    first = self.producers.first_unstable
    self.first_unstable = None if first is None else Place(first)


def _start_above(self: UnifiedLog, offset: int) -> bool:
    if offset > self.high_watermark.offset and offset <= self.log_end and not self.offline:
        return self._raise_log_start(offset)
    return Sound.maybe_increment_log_start_offset(self, offset)


def _start_without_point(self: UnifiedLog, offset: int) -> bool:
    point = self.recovery_point
    raised = Sound._raise_log_start(self, offset)
    self.recovery_point = point
    return raised


# ---- what the disk refuses
def _renamed_first(self: UnifiedLog, gone: Sequence[Segment]) -> None:
    """Segments are in the log until their files have other names."""
    paths = [path for segment in gone for path in self._renamed(segment)]
    for segment in gone:
        del self.segments[segment.base_offset]
    self.bases = sorted(self.segments)
    self._remove_later(paths)


def _cut_before_names(self: UnifiedLog, offset: int) -> bool:
    """The log end falls before segments are given up."""
    if not self.offline and self.bases[0] <= offset < self.log_end:
        self._set_end(offset)
        self.log_end = offset + 1  # there is something to cut
        try:
            return Sound.truncate_to(self, offset)
        except StorageError:
            self.log_end = offset
            raise
    return Sound.truncate_to(self, offset)


def _start_behind_names(self: UnifiedLog, wanted: Callable[[Segment, int | None], bool]) -> int:
    """KAFKA-16073: the log start rises when the segments are gone."""
    late: list[int] = []
    with patch.object(self, "_raise_log_start", late.append):
        count = Sound._delete(self, wanted)
    for offset in late:
        self._raise_log_start(offset)
    return count


def _told_of_epochs(self: UnifiedLog, task: Callable[[], None]) -> None:
    """Whoever cuts the log waits for the epochs' file."""
    with self._disk_errors():
        task()


def _in_service_without_epochs(self: UnifiedLog, task: Callable[[], None]) -> None:
    """Epochs that the scheduler could not write take nothing out of service."""
    self.schedule(0, task)


def _closed_in_any_case(self: UnifiedLog) -> None:
    """A close goes on without its snapshot."""
    try:
        Sound.close(self)
    except StorageError:
        self.offline = False
        self._close_segments()


def _cleared_last(self: UnifiedLog, offset: int, log_start: int | None) -> None:
    """A full truncation clears leader epochs when all else is done."""
    with patch.object(self.epochs, "clear_and_flush", lambda: None):
        Sound._truncate_fully(self, offset, log_start)
    self.epochs.clear_and_flush()


REFUSED = [
    of_impl(
        "renamed first", "LOG-50", "segments stay in the log if they cannot be renamed", _log(_give_up=_renamed_first)
    ),
    of_impl(
        "cut before names",
        "LOG-50 LOG-37",
        "a truncation that cannot rename has moved the log end",
        _log(truncate_to=_cut_before_names),
    ),
    of_impl(
        "start behind names",
        "LOG-50 LOG-33",
        "retention that cannot rename has not raised the log start",
        _log(_delete=_start_behind_names),
        "KAFKA-16073",
    ),
    of_impl(
        "told of epochs",
        "LOG-51",
        "a truncation fails if the scheduler cannot write the epochs",
        _log(_write_later=_told_of_epochs),
    ),
    of_impl(
        "in service without epochs",
        "LOG-51 LOG-37",
        "a directory stays in service when the epochs could not be written",
        _log(_write_later=_in_service_without_epochs),
    ),
    of_impl("closed in any case", "LOG-37", "a close goes on without its snapshot", _log(close=_closed_in_any_case)),
    of_impl(
        "cleared last",
        "LOG-51",
        "a full truncation that cannot write epochs has done all else",
        _log(_truncate_fully=_cleared_last),
    ),
]


# ---- reads
def _reads_below(self: UnifiedLog, offset: int, *rest: Any) -> FetchResult:
    return Sound.read(self, max(offset, self.log_start), *rest)


def _stops_at_a_hole(self: UnifiedLog, offset: int, most: int, isolation: str, one: bool) -> FetchResult:
    """A hole at a segment's end is taken for the end of the log."""
    found = Sound.read(self, offset, most, isolation, one)
    n = self._from(offset)
    if n >= 0 and found.place.segment > self.bases[n] and found.records:
        return FetchResult(self.end, b"", False, None)
    return found


def _whole_segment(self: UnifiedLog, offset: int, most: int, isolation: str, one: bool) -> FetchResult:
    """A reader up to the high watermark is given the rest of the segment."""
    other = "LOG_END" if isolation == "HIGH_WATERMARK" and offset < self.high_watermark.offset else isolation
    return Sound.read(self, offset, most, other, one)


def _aborted_below(self: UnifiedLog, base: int, offset: int, position: int, size: int) -> list[AbortedTxn]:
    """The segment's own transaction index alone is asked."""
    found = self.segments[base].transaction_index.collect_aborted_txns(offset, self.log_end)
    return list(found.aborted_transactions)


def _nowhere_at_the_bound(self: UnifiedLog, *args: Any) -> FetchResult:
    found = Sound.read(self, *args)
    return found if found.records else found._replace(place=Place(found.place.offset))


def _searches_on(self: UnifiedLog, timestamp: int) -> tuple[int, int, int | None] | None:
    """Later segments are searched too, as one might expect."""
    found = Sound.fetch_offset_by_timestamp(self, timestamp)
    if found is None and timestamp >= 0:
        for base in self.bases:
            there = self.segments[base].find_offset_by_timestamp(timestamp, self.log_start)
            if there is not None:
                return there.timestamp, there.offset, there.leader_epoch
    return found


def _from_the_first_segment(self: UnifiedLog, timestamp: int) -> tuple[int, int, int | None] | None:
    """Records below the log start are found."""
    start, self.log_start = self.log_start, self.bases[0] if timestamp >= 0 else self.log_start
    try:
        return Sound.fetch_offset_by_timestamp(self, timestamp)
    finally:
        self.log_start = start


def _latest_of_the_active(self: UnifiedLog) -> tuple[int, int, int | None] | None:
    bases, self.bases = self.bases, self.bases[-1:]
    try:
        return Sound._largest(self)
    finally:
        self.bases = bases


# ---- truncation, deletion
def _cuts_above(self: UnifiedLog, offset: int) -> bool:
    """The log end is cut, the high watermark stays."""
    with patch.object(self, "_bound_high_watermark", lambda: None):
        return Sound.truncate_to(self, offset)


def _leaves_entries(self: UnifiedLog, offset: int) -> bool:
    return False if offset >= self.log_end and not self.offline else Sound.truncate_to(self, offset)


def _watermark_stays(self: UnifiedLog, offset: int, log_start: int | None) -> None:
    """KAFKA-9491: the high watermark is left below the new log start."""
    before = self.high_watermark
    Sound._truncate_fully(self, offset, log_start)
    if before.offset < offset:
        self._set_high_watermark(before)


def _old_goes_first(self: UnifiedLog, old: Segment, base: int) -> None:
    """For a moment the log has no segment."""
    self._give_up([old])
    self._open(base)


def _forgets_producers(self: UnifiedLog, end: int) -> None:
    m = self.producers
    m._forget()
    m.end_offset = end


def _deletes_above(self: UnifiedLog, wanted: Callable[[Segment, int | None], bool]) -> int:
    """KAFKA-5634: segments above the high watermark go."""
    known, self.high_watermark = self.high_watermark, self.end
    try:
        return Sound._delete(self, wanted)
    finally:
        self.high_watermark = known if known.offset >= self.log_start else Place(self.log_start)


def _at_once(self: UnifiedLog, paths: Sequence[str]) -> None:
    for path in paths:
        if self.disk.exists(path):
            self.disk.remove(path)


def _flushes_before(self: UnifiedLog, force_flush_active_segment: bool = False) -> None:
    """KAFKA-10101: the recovery point rises although the flush failed."""
    self.recovery_point = max(self.recovery_point, self.log_end)
    Sound.flush(self, force_flush_active_segment)


def _point_at_load(self: UnifiedLog, *args: Any, **more: Any) -> None:
    """KAFKA-10101: after a recovery the recovery point is the log end."""
    Sound.__init__(self, *args, **more)
    if more.get("clean") is False:
        self.recovery_point = self.log_end


def _goes_on(self: UnifiedLog) -> None: ...


def _retention_first(self: UnifiedLog) -> int:
    """A compacted log is not rid of what lies below its start (KAFKA-7400)."""
    return Sound.delete_old_segments(self) if self.config.delete else 0


def _over_by_one(self: UnifiedLog) -> int:
    """retention.bytes may be gone below."""
    kept = self.config
    if kept.retention_bytes > 0:
        self.config = replace(kept, retention_bytes=kept.retention_bytes - 1)
    try:
        return Sound.delete_old_segments(self)
    finally:
        self.config = kept


def _end_of_unknown(self: UnifiedLog, epoch: int) -> Any:
    end = Sound.end_offset_for_epoch(self, epoch)
    return end if end is not None else EpochEnd(epoch, self.log_end)


def _high_watermark_at_end(self: UnifiedLog, *args: Any, **more: Any) -> None:
    """Loaded, all of the log is taken for replicated."""
    Sound.__init__(self, *args, **more)
    self._set_high_watermark(self.end)


def _no_shutdown_snapshot(self: UnifiedLog) -> None:
    for segment in self.segments.values():
        segment.close()


# ---- the topic's id, and what comes behind the last batch
def _named_by_an_append_that_succeeds(self: UnifiedLog, records: bytes, epoch: int, *rest: Any) -> AppendInfo:
    """The topic's id is written behind the batches."""
    with patch.object(self, "flush_metadata_file", lambda: None):
        info = Sound.append_as_leader(self, records, epoch, *rest)
    self.flush_metadata_file()
    return info


def _left_to_the_scheduler(self: UnifiedLog) -> None:
    """A close does not write the topic's id."""
    with patch.object(self, "flush_metadata_file", lambda: None):
        Sound.close(self)


def _any_id(self: UnifiedLog, topic_id: str) -> None:
    """The last id that the log is told."""
    if self.topic_id != topic_id:
        self.topic_id, self.id_is_written = topic_id, False


def _id_of_the_caller(self: UnifiedLog, *args: Any, topic_id: str | None = None, **more: Any) -> None:
    """A log that is opened with an id has it, whatever its file has."""
    Sound.__init__(self, *args, **more)
    self.topic_id = topic_id or self.topic_id


class _ReadsAll(impl.Loader):
    """Producers are read from the log whenever there is no snapshot."""

    def rebuild(self, producers: ProducerStateManager, log_start: int, log_end: int, clean: bool) -> None:
        super().rebuild(producers, log_start, log_end, False)


def _refuses_what_is_cut(self: UnifiedLog, records: bytes, epoch: int) -> AppendInfo:
    """A fetch that ends within a batch is refused."""
    if sum(h.size for h in headers(records)) < len(records):
        raise CorruptRecord(0, "a batch that is not whole")
    return Sound.append_as_follower(self, records, epoch)


def _writes_what_is_cut(self: UnifiedLog, records: bytes, epoch: int, *rest: Any) -> AppendInfo:
    """What follows the last batch is written."""
    behind = records[sum(h.size for h in headers(records)) :]

    def append(records: bytes, *more: Any) -> AppendInfo:
        return sound(records + behind, *more)

    sound = self._append
    with patch.object(self, "_append", append):
        return Sound.append_as_leader(self, records, epoch, *rest)


def _lengths_of_seventeen(self: UnifiedLog, records: bytes, epoch: int, *rest: Any) -> AppendInfo:
    """A length is looked at only if more than a magic byte follows."""
    with patch.object(impl, "arrived", headers):
        return Sound.append_as_leader(self, records, epoch, *rest)


class AnyName(log_driver.Driver):
    def parse_topic_partition_name(self, name: str) -> Any:
        topic, _, number = name.rpartition("-")
        if topic and number.isdigit() and int(number) > 2**31 - 1:
            return TopicPartition(topic, int(number))
        return super().parse_topic_partition_name(name)


# ---- the spec
def _spec_passes_failures(state: Log, force_flush_active_segment: bool) -> Log:
    return replace(state, recovery_point=state.log_end + 1)


def _spec_point_on_truncation(state: Log, offset: int) -> Step[Log, bool]:
    after = spec.truncate_to.__wrapped__(state, offset)  # type: ignore[attr-defined]
    return Step(replace(after.state, high_watermark=state.high_watermark), after.result)


def _of_the_spec(operation: str, body: Callable[..., Any]) -> Callable[[], Machine[Any]]:
    return lambda: with_fault(spec.machine, operation, body)


# ---- the model
class EndsFirst(model.Writer):
    @action("LOG-1", who="leader or follower")
    def write(s) -> None:
        """The log end rises with the assignment; the bytes follow."""
        require(s.phase in (Phase.ASSIGNED, Phase.ROLLED), not s.offline)
        s.next.log_end = s.log_end + 1
        s.next.phase = Phase.WRITTEN


class EpochLater(model.Writer):
    @action("LOG-1", "LOG-2", "LOG-14", who="leader or follower")
    def assign(s, b: Batch) -> None:
        require(s.phase == Phase.IDLE, s.named, not s.offline, s.log_end < model.L)
        require(b != Batch.OPENS or s.opened is None)
        require(b != Batch.ENDS or (s.opened is not None and s.ended is None))
        s.next.batch = b
        s.next.phase = Phase.ASSIGNED


class NamedLater(model.Writer):
    @action("LOG-1", "LOG-2", "LOG-14", who="leader or follower")
    def assign(s, b: Batch) -> None:
        """The topic's id is left to the scheduler."""
        require(s.phase == Phase.IDLE, not s.offline, s.log_end < model.L)
        require(b != Batch.OPENS or s.opened is None)
        require(b != Batch.ENDS or (s.opened is not None and s.ended is None))
        s.next.batch = b
        s.next.covered = max(s.covered, s.log_end + 1)
        s.next.phase = Phase.ASSIGNED


class RetiresFirst(model.Writer):
    """KAFKA-16073: segments go before the log start has risen."""

    @action("LOG-33", who="retention")
    def retire(s, o: Offset) -> None:
        require(s.bases[o], o <= s.hw, not s.offline, s.phase == Phase.IDLE)
        require(any(s.bases[f] and f < o for f in range(model.L + 1)))
        s.next.bases = {f: s.bases[f] and f >= o for f in range(model.L + 1)}


class PointAtTheEnd(model.Writer):
    """KAFKA-10101."""

    @action("LOG-35", "LOG-36", who="scheduler")
    def mark(s) -> None:
        require(s.syncing is not None)
        s.next.syncing = None
        s.next.point = s.log_end


class RecoveredIsFlushed(model.Writer):
    """KAFKA-10101."""

    @define
    def loaded_point(s, end: Offset) -> Offset:
        return max(end, s.log_start)


class SyncsNothing(model.Writer):
    @action("LOG-35", "LOG-36", who="scheduler")
    def sync(s) -> None:
        require(s.syncing is None, not s.offline, s.point < s.log_end)
        s.next.syncing = s.log_end


class OneEpochForEver(model.Writer):
    @action("LOG-1", "LOG-2", "LOG-14", who="leader or follower")
    def assign(s, b: Batch) -> None:
        """Once something is flushed, the epoch is left to memory."""
        require(s.phase == Phase.IDLE, s.named, not s.offline, s.log_end < model.L)
        require(b != Batch.OPENS or s.opened is None)
        require(b != Batch.ENDS or (s.opened is not None and s.ended is None))
        s.next.batch = b
        s.next.covered = s.covered if s.point > 0 else max(s.covered, s.log_end + 1)
        s.next.phase = Phase.ASSIGNED


class WatermarkStays(model.Writer):
    """KAFKA-9491."""

    @action("LOG-30", who="follower")
    def start_at(s, o: Offset) -> None:
        require(s.phase == Phase.IDLE, not s.offline)
        s.next.bases = {f: f == o for f in range(model.L + 1)}
        s.next.log_start = o
        s.next.hw = min(s.hw, o)
        s.next.log_end = o
        s.next.written = o
        s.next.covered = o
        s.next.flushed = min(s.flushed, o)
        s.next.point = min(s.point, o)
        s.next.opened = None
        s.next.ended = None
        s.next.unstable = None


MUTANTS: list[Mutant] = [
    of_impl(
        "end before bytes",
        "LOG-1 LOG-37",
        "the log ends behind bytes that were not written",
        _log(_append=_end_before_bytes),
    ),
    of_impl(
        "an offset left out",
        "LOG-2",
        "each append begins one above the log end",
        _log(append_as_leader=_offsets_from_one),
    ),
    of_impl(
        "the last epoch",
        "LOG-2 LOG-14",
        "a batch gets the epoch before the leader's",
        _log(append_as_leader=_epoch_of_the_client),
    ),
    of_impl(
        "size after epochs",
        "LOG-3",
        "max.message.bytes is asked too late",
        _log(append_as_leader=_whole_append_in_message),
    ),
    of_impl(
        "size before epochs",
        "LOG-4",
        "segment.bytes is asked before the epochs are assigned",
        _log(_append=_size_first),
    ),
    of_impl(
        "no size of segments",
        "LOG-5 LOG-6",
        "segment.bytes is twice as much",
        _configured(segment_bytes=lambda c: 2 * c.segment_bytes),
    ),
    of_impl(
        "rolls at the end",
        "LOG-5 LOG-6",
        "a segment begins at the log end, not at the first offset",
        _log(_maybe_roll=_rolls_at_the_end),
        "KAFKA-6530",
    ),
    of_impl("no snapshot", "LOG-6", "a roll takes no snapshot", _log(_roll=_no_snapshot)),
    of_impl(
        "an empty segment stays",
        "LOG-7",
        "a roll onto an empty segment fails",
        _log(_roll=_fails_on_empty),
        "KAFKA-6388",
    ),
    of_impl("duplicates go in", "LOG-8", "the copy of a batch has no duplicate", _log(_ask_producers=_asks_twice)),
    of_impl("duplicates are of now", "LOG-8", "the answer's time is the clock's", _log(_append=_duplicate_now)),
    of_impl(
        "refused without a roll",
        "LOG-9",
        "a segment goes that was rolled for what was refused",
        _log(_append=_producers_first),
    ),
    of_impl(
        "stable to the marker", "LOG-10", "other open transactions do not count", _log(_append=_stable_of_the_marker)
    ),
    of_impl(
        "a follower passes over",
        "LOG-11",
        "batches below the log end are not refused",
        _log(append_as_follower=_follower_overwrites),
    ),
    of_impl("any order", "LOG-11", "batches out of order are cut off", _log(append_as_follower=_any_order)),
    of_impl(
        "higher epochs",
        "LOG-12",
        "batches of a higher epoch are taken",
        _log(append_as_follower=_takes_higher_epochs),
        "KAFKA-18723",
    ),
    of_impl("no CRC", "LOG-13", "a damaged batch is taken", _log(_check_crc=staticmethod(_trusts_crcs))),
    of_impl(
        "the last batch's epoch",
        "LOG-14",
        "epochs in the middle of an append are lost",
        _log(_append=_epochs_of_the_last),
    ),
    of_impl(
        "above the end",
        "LOG-15 LOG-22",
        "the high watermark is put above the log end",
        _log(update_high_watermark=_above_the_end),
    ),
    of_impl("lowered", "LOG-16", "a leader's high watermark falls", _log(maybe_increment_high_watermark=_lowers)),
    of_impl(
        "left above",
        "LOG-17 LOG-22",
        "a truncation leaves the high watermark above the log end",
        _log(_bound_high_watermark=_stays_above),
    ),
    of_impl("the offset is kept", "LOG-18", "an offset within a batch stays", _log(_find=_keeps_the_offset)),
    of_impl(
        "replicated or not",
        "LOG-19 LOG-20",
        "a transaction that ended is stable at once",
        _log(_update_first_unstable=_all_is_stable),
    ),
    of_impl(
        "unstable below the start",
        "LOG-20 LOG-22",
        "the first unstable offset is below the log start",
        _log(_update_first_unstable=_unstable_below),
    ),
    of_impl("reads below", "LOG-21", "a read below the log start begins there", _log(read=_reads_below)),
    of_impl("holes end the log", "LOG-23", "no later segment is read", _log(read=_stops_at_a_hole)),
    of_impl("to the segment's end", "LOG-24", "a reader sees what is not replicated", _log(read=_whole_segment)),
    of_impl("one transaction index", "LOG-25", "aborts in later segments are not told", _log(_aborted=_aborted_below)),
    of_impl("nowhere at the bound", "LOG-26", "an empty read has no place", _log(read=_nowhere_at_the_bound)),
    of_impl("searches on", "LOG-27", "later segments are searched", _log(fetch_offset_by_timestamp=_searches_on)),
    of_impl(
        "before the start",
        "LOG-27",
        "records below the log start are found",
        _log(fetch_offset_by_timestamp=_from_the_first_segment),
    ),
    of_impl(
        "watermark after a cut",
        "LOG-28 LOG-17",
        "a truncation leaves the high watermark",
        _log(truncate_to=_cuts_above),
    ),
    of_impl("entries at the end", "LOG-29", "an entry at the log end stays", _log(truncate_to=_leaves_entries)),
    of_impl(
        "watermark below the start",
        "LOG-30 LOG-22",
        "a full truncation leaves the high watermark",
        _log(_truncate_fully=_watermark_stays),
        "KAFKA-9491",
    ),
    of_impl(
        "the old one goes first",
        "LOG-7 LOG-30",
        "the only segment goes before the new one is there",
        _log(_replace=_old_goes_first),
    ),
    of_impl(
        "producers are forgotten", "LOG-31", "a truncation forgets the producers", _log(_rebuild=_forgets_producers)
    ),
    of_impl(
        "start above the watermark",
        "LOG-32",
        "the log start passes the high watermark",
        _log(maybe_increment_log_start_offset=_start_above),
    ),
    of_impl(
        "above the watermark",
        "LOG-33",
        "segments above the high watermark go",
        _log(_delete=_deletes_above),
        "KAFKA-5634",
    ),
    of_impl("files go at once", "LOG-34", "the delay is left out", _log(_remove_later=_at_once)),
    of_impl("flushed before", "LOG-35", "the recovery point rises before the flush", _log(flush=_flushes_before)),
    of_impl(
        "flushed by recovery",
        "LOG-35 LOG-43",
        "a recovery moves the recovery point to the log end",
        _log(__init__=_point_at_load),
        "KAFKA-10101",
    ),
    of_impl(
        "never flushed", "LOG-36", "flush.messages is not looked at", _configured(flush_messages=lambda c: 2**63 - 1)
    ),
    of_impl("goes on", "LOG-37", "a failed directory stays in service", _log(_check_service=_goes_on), "KAFKA-10778"),
    of_impl(
        "largest of the active", "LOG-38", "-3 looks at the active segment alone", _log(_largest=_latest_of_the_active)
    ),
    of_impl(
        "compacted logs keep all",
        "LOG-39",
        "what lies below the log start of a compacted log stays",
        _log(delete_old_segments=_retention_first),
        "KAFKA-7400",
    ),
    of_impl(
        "unknown epochs end",
        "LOG-40",
        "an unknown epoch ends at the log end",
        _log(end_offset_for_epoch=_end_of_unknown),
    ),
    of_impl("no shutdown snapshot", "LOG-42", "a close takes no snapshot", _log(close=_no_shutdown_snapshot)),
    of_impl(
        "loaded as replicated",
        "LOG-42 LOG-43",
        "the high watermark is the log end",
        _log(__init__=_high_watermark_at_end),
    ),
    of_spec(
        "flushed beyond",
        "LOG-35",
        "the recovery point is above the log end",
        _of_the_spec("flush", _spec_passes_failures),
    ),
    of_spec(
        "watermark of before",
        "LOG-28 LOG-17 LOG-22",
        "a truncation keeps the high watermark",
        _of_the_spec("truncateTo", _spec_point_on_truncation),
    ),
    of_model("ends first", "LOG-1 LOG-24", "the log end rises before the bytes are there", lambda: EndsFirst),
    of_impl(
        "named behind the batches",
        "LOG-44 LOG-1",
        "the topic's id is written behind the batches",
        _log(append_as_leader=_named_by_an_append_that_succeeds),
    ),
    of_impl("not named by a close", "LOG-44", "a close leaves the topic's id", _log(close=_left_to_the_scheduler)),
    of_impl("any topic", "LOG-45", "the last id that is told counts", _log(assign_topic_id=_any_id)),
    of_impl("the caller's topic", "LOG-45", "an id in the file is not looked at", _log(__init__=_id_of_the_caller)),
    of_impl(
        "read after a clean stop",
        "LOG-47",
        "without a snapshot the log is read for producers",
        _log(loader_class=_ReadsAll),
    ),
    of_impl(
        "cut is refused",
        "LOG-46",
        "a fetch that ends within a batch is refused",
        _log(append_as_follower=_refuses_what_is_cut),
    ),
    of_impl(
        "cut is written",
        "LOG-46",
        "what follows the last batch is written",
        _log(append_as_leader=_writes_what_is_cut),
    ),
    of_impl(
        "lengths with a magic",
        "LOG-46",
        "a length that no batch has is passed over in 12 to 17 bytes",
        _log(append_as_leader=_lengths_of_seventeen),
    ),
    of_model("named later", "LOG-44 LOG-1", "the topic's id is not in its file", lambda: NamedLater),
    of_model("epoch later", "LOG-14", "the epoch is not in its file", lambda: EpochLater),
    of_model("one epoch", "LOG-14", "once something is flushed, no epoch goes to the file", lambda: OneEpochForEver),
    of_model("syncs nothing", "LOG-35", "a flush syncs no file", lambda: SyncsNothing),
    of_model(
        "recovered is flushed",
        "LOG-43 LOG-35",
        "a recovery raises the recovery point to the log end",
        lambda: RecoveredIsFlushed,
        "KAFKA-10101",
    ),
    of_model("retires first", "LOG-33", "segments go before the log start rises", lambda: RetiresFirst, "KAFKA-16073"),
    of_model(
        "point at the end",
        "LOG-35",
        "the recovery point is the log end, flushed or not",
        lambda: PointAtTheEnd,
        "KAFKA-10101",
    ),
    of_model(
        "watermark stays",
        "LOG-30 LOG-22",
        "the high watermark is below the log start",
        lambda: WatermarkStays,
        "KAFKA-9491",
    ),
]


# ---- faults of range, boundary, depth, configuration and rare state
def _short_offsets(self: UnifiedLog, size: int, info: AppendInfo) -> None:
    """A gap of more than 2^31 - 1 does not roll."""
    far = info.last_offset - self.active.base_offset > 2**31 - 1
    if far and self.active.size == 0:
        raise impl.OffsetsOutOfOrder("too far")
    Sound._maybe_roll(self, size, info)


def _name_kept(self: UnifiedLog, bases: Sequence[int]) -> None:
    for base in bases:
        self.producers.snapshots.discard(base)


def _strictly_older(self: UnifiedLog) -> int:
    """A segment goes when it is as old as retention.ms."""
    kept = self.config
    if kept.retention_ms > 0:
        self.config = replace(kept, retention_ms=kept.retention_ms - 1)
    try:
        return Sound.delete_old_segments(self)
    finally:
        self.config = kept


def _log_start_last(self: UnifiedLog) -> int:
    """KAFKA-12177: by time, by size, and below the log start last."""
    delete, count = self._delete, 0
    waiting: list[Callable[[Segment, int | None], bool]] = []

    def all_but_the_first(wanted: Callable[[Segment, int | None], bool]) -> int:
        if waiting:
            return delete(wanted)
        waiting.append(wanted)
        return 0

    for bound in ("retention_bytes", "retention_ms"):
        waiting.clear()
        with (
            patch.object(self, "config", replace(self.config, **{bound: -1})),
            patch.object(self, "_delete", all_but_the_first),
        ):
            count += Sound.delete_old_segments(self)
    return count + delete(waiting[0])


def _rolled_out(self: UnifiedLog, wanted: Callable[[Segment, int | None], bool]) -> int:
    """The active segment is never deleted."""
    return Sound._delete(self, lambda s, following: following is not None and wanted(s, following))


def _start_stays(self: UnifiedLog, offset: int) -> bool:
    """A truncation below the log start leaves it."""
    start = self.log_start
    cut = Sound.truncate_to(self, offset)
    if cut and offset < start and self.bases[0] <= offset:
        self.log_start = start
    return cut


def _first_entry_alone(self: UnifiedLog, *args: Any) -> FetchResult:
    return Sound.read(self, *args)._replace(first_entry_incomplete=False)


class BatchByBatch(impl.Loader):
    _replay = LogLoader.__dict__["_replay"]


RARE = [
    of_impl("batch by batch", "LOG-31", "what is read again counts batch by batch", _log(loader_class=BatchByBatch)),
    of_impl("over by one", "LOG-39", "retention.bytes is one byte less", _log(delete_old_segments=_over_by_one)),
    of_impl("strictly older", "LOG-39", "a segment goes one ms early", _log(delete_old_segments=_strictly_older)),
    of_impl(
        "log start last",
        "LOG-39",
        "the time is asked before the log start: a pass leaves what the next one deletes",
        _log(delete_old_segments=_log_start_last),
        "KAFKA-12177",
    ),
    of_impl("the active stays", "LOG-33", "the active segment is never deleted", _log(_delete=_rolled_out)),
    of_impl("no jitter", "LOG-5", "the jitter is left out", _configured(roll_jitter_ms=lambda c: 0)),
    of_impl(
        "full indexes",
        "LOG-5 LOG-7",
        "indexes have more room",
        _configured(segment_index_bytes=lambda c: max(c.segment_index_bytes, 4096)),
    ),
    of_impl(
        "flushes one late",
        "LOG-36",
        "at more than flush.messages",
        _configured(flush_messages=lambda c: min(c.flush_messages + 1, 2**63 - 1)),
    ),
    of_impl(
        "point below the start",
        "LOG-32 LOG-35",
        "the recovery point stays below the log start",
        _log(_raise_log_start=_start_without_point),
    ),
    of_impl(
        "start above a cut", "LOG-28 LOG-22", "the log start stays above the log end", _log(truncate_to=_start_stays)
    ),
    of_impl(
        "snapshots stay",
        "LOG-34",
        "the files of deleted segments' snapshots stay",
        _log(_give_up_snapshots=_name_kept),
        "KAFKA-9105",
    ),
    of_impl(
        "too far for an empty one",
        "LOG-5",
        "an empty segment is not rolled for a far offset",
        _log(_maybe_roll=_short_offsets),
        "KAFKA-4451",
    ),
    of_impl(
        "never incomplete", "LOG-23", "a first batch larger than the limit is not told", _log(read=_first_entry_alone)
    ),
    of_impl(
        "snapshot of the old end",
        "LOG-6",
        "before a gap the snapshot is at the log end",
        _log(_roll=_snapshot_of_the_old_end),
    ),
    of_impl("partitions of 64 bits", "LOG-41", "a number above 2^31 - 1 is a partition", AnyName),
]
"""Those that show at the end of a number's range, with a rare configuration, or after a rare sequence."""

MUTANTS += RARE


# ---- Kafka's own bugs
def _watermark_in_the_old_segment(self: UnifiedLog, expected: int) -> int:
    with patch.object(self, "_bound_high_watermark", lambda: None):
        return Sound._roll(self, expected)


def _offsets_before_producers(self: UnifiedLog, offset: int) -> bool:
    """The high watermark is looked at while the producers are still those of before."""
    sound, bound = self._rebuild, self._bound_high_watermark

    def rebuild(end: int) -> None:
        bound()
        sound(end)

    with patch.object(self, "_rebuild", rebuild), patch.object(self, "_bound_high_watermark", lambda: None):
        return Sound.truncate_to(self, offset)


def _snapshot_of_the_future(
    self: UnifiedLog, records: bytes, new: Sequence[Header], info: AppendInfo, origin: str, guard: int, version: int
) -> AppendInfo:
    """The snapshot of a roll has the batch for which the log rolls."""
    m, sound = self.producers, self._maybe_roll

    def roll(size: int, info: AppendInfo) -> None:
        known, verifications = dict(m.producers), dict(m.verifications)
        updates = dict[int, Any]()
        try:
            for h in new:
                if h.producer_id >= 0:
                    self._ask_producers(records, h, origin, guard, version, updates, [])
            for update in updates.values():
                m.producers[update.updated.producer_id] = update.updated
        except ProducerStateError:
            pass
        m.verifications = verifications
        sound(size, info)
        m.producers = known

    with patch.object(self, "_maybe_roll", roll):
        return Sound._append(self, records, new, info, origin, guard, version)


def _empty_ends_at_zero(self: UnifiedLog, *args: Any, **more: Any) -> None:
    """Loaded without a batch, the log ends at 0."""
    Sound.__init__(self, *args, **more)
    if self.size == 0:
        self._set_end(0)


def _removed_by_name(self: UnifiedLog, bases: Sequence[int]) -> None:
    """Snapshots keep their name until they are removed."""
    there = [b for b in bases if b in self.producers.snapshots]
    self.producers.snapshots.difference_update(there)
    self._remove_later([self.producers.path(base) for base in there])


def _no_trace_of_a_leader(self: UnifiedLog, epoch: int, offset: int) -> None:
    self._check_service()


def _never_placed(self: UnifiedLog) -> Place:
    return self.high_watermark


def _largest_at_the_batch_end(self: UnifiedLog) -> tuple[int, int, int | None] | None:
    found = Sound._largest(self)
    if found is None:
        return None
    segment = self.segments[self.bases[self._from(found[1])]]
    return found[0], next(h.last_offset for h in headers(segment.data()) if h.last_offset >= found[1]), found[2]


def _follower_checks(self: UnifiedLog, records: bytes, epoch: int) -> AppendInfo:
    """A follower checks sequences as a leader does."""
    sound = self.producers.prepare
    with patch.object(self.producers, "prepare", lambda producer_id, _: sound(producer_id, CLIENT)):
        return Sound.append_as_follower(self, records, epoch)


def _without_the_first(self: UnifiedLog, end: int) -> None:
    """Producers are read again from the segment behind the one that holds the snapshot's offset."""
    with patch.object(self, "_from", lambda offset: Sound._from(self, offset) + 1):
        Sound._rebuild(self, end)


def _no_wrap(self: UnifiedLog, records: bytes, h: Header, origin: str, guard: int, version: int, *rest: Any) -> Any:
    """The last sequence number of a batch goes beyond 2^31 - 1."""
    with patch.object(impl, "INT_MAX", 2**40):
        return Sound._ask_producers(self, records, h, origin, guard, version, *rest)


def _verified_again(
    self: UnifiedLog, records: bytes, new: Sequence[Header], info: AppendInfo, *rest: Any
) -> AppendInfo:
    verifications = dict(self.producers.verifications)
    try:
        return Sound._append(self, records, new, info, *rest)
    except ProducerStateError:
        self.producers.verifications = verifications
        raise


def _from_the_active_on(self: UnifiedLog, expected: int) -> int:
    return Sound._roll(self, max(expected, self.active.base_offset + (self.active.size > 0)))


def _all_ended_first(self: UnifiedLog, records: bytes, new: Sequence[Header], *rest: Any) -> AppendInfo:
    """The last stable offset of each marker is that behind all markers of the append."""
    sound, ended = self.producers.last_stable_offset_of, {h.producer_id for h in new if h.attributes & CONTROL}

    def stable(c: Any) -> int:
        others = [f for f, p in sorted(self.producers.ongoing.items()) if p not in ended]
        return others[0] if others else int(sound(c) if len(ended) == 1 else c.last_offset + 1)

    with patch.object(self.producers, "last_stable_offset_of", stable):
        return Sound._append(self, records, new, *rest)


SEVERAL = [
    of_impl(
        "verified again",
        "LOG-9",
        "an append that the producers refuse ends no verification",
        _log(_append=_verified_again),
    ),
    of_impl(
        "from the active on",
        "LOG-6",
        "a roll below the active segment begins there, and is not refused",
        _log(_roll=_from_the_active_on),
    ),
    of_impl(
        "all ended first",
        "LOG-10",
        "of two markers in one append the first one does not see the transaction that the second one ends",
        _log(_append=_all_ended_first),
    ),
]
"""Of an append of several batches, and of what a refused one has left."""

MUTANTS += SEVERAL

BUGS = [
    of_impl(
        "the old segment",
        "LOG-17",
        "a roll at the high watermark leaves its place in the segment before",
        _log(_roll=_watermark_in_the_old_segment),
        "KAFKA-9196",
    ),
    of_impl(
        "offsets before producers",
        "LOG-28 LOG-20",
        "a truncation moves the offsets before the producers are rebuilt",
        _log(truncate_to=_offsets_before_producers),
        "KAFKA-12153",
    ),
    of_impl(
        "snapshot of the future",
        "LOG-6 LOG-1",
        "the snapshot of a roll has the batch that is to come",
        _log(_append=_snapshot_of_the_future),
        "KAFKA-6683",
    ),
    of_impl(
        "empty at zero",
        "LOG-42 LOG-43",
        "a log without batches ends at 0 when it is loaded",
        _log(__init__=_empty_ends_at_zero),
        "KAFKA-8306",
    ),
    of_impl(
        "removed by name",
        "LOG-34",
        "a snapshot that was given up is removed by its name, later",
        _log(_give_up_snapshots=_removed_by_name),
        "KAFKA-12964",
    ),
    of_impl(
        "no trace of a leader",
        "LOG-14 LOG-40",
        "a leader that writes nothing leaves no epoch",
        _log(assign_epoch_start_offset=_no_trace_of_a_leader),
        "KAFKA-7415",
    ),
    of_impl(
        "never placed",
        "LOG-18 LOG-26",
        "the place of the high watermark is not looked up",
        _log(_placed_high_watermark=_never_placed),
        "KAFKA-5745",
    ),
    of_impl(
        "the batch's end",
        "LOG-38",
        "-3 is the last offset of the batch",
        _log(_largest=_largest_at_the_batch_end),
        "KAFKA-16342",
    ),
    of_impl(
        "a follower checks",
        "LOG-9 LOG-11",
        "a follower refuses sequences that its leader took",
        _log(append_as_follower=_follower_checks),
        "KAFKA-6003",
    ),
    of_impl(
        "without the first",
        "LOG-31",
        "the segment that holds the snapshot's offset is not read again",
        _log(_rebuild=_without_the_first),
        "KAFKA-1042",
    ),
    of_impl("no wrap", "LOG-9 LOG-8", "sequence numbers do not wrap", _log(_ask_producers=_no_wrap), "KAFKA-7692"),
]
"""Those that no fault above is."""

MUTANTS += BUGS
MUTANTS += LEADERS
MUTANTS += REFUSED

UNSEEN: dict[str, str] = {
    "batch by batch": "too rare: nothing noticed it, nor the judge in 20,000 calls; a test of LOG-31 does",
    "verified again": "not found yet: nothing noticed it, nor the judge in 20,000 calls; a test of LOG-9 does",
}
