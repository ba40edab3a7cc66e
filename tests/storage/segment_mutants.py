"""Faults of a log segment, each with the clauses that it breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import crc32c

from kafkaspec.impl.common.rows import NO_TIMESTAMP
from kafkaspec.impl.storage import segment as impl
from kafkaspec.impl.storage import segment_driver
from kafkaspec.impl.storage.segment import (
    FetchDataInfo,
    LogOffsetPosition,
    Segment,
    TimestampAndOffset,
    TransactionState,
    headers,
)
from kafkaspec.impl.storage.transaction_index import AbortedTxn
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.storage import segment as model
from kafkaspec.models.storage.segment import Flushing, Phase
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import of_impl, of_model


class NineteenDigits(segment_driver.Driver):
    def names(self) -> list[str]:
        return [n[1:] for n in super().names()]


class KeepsTransactionIndex(Segment):
    """The transaction index is not renamed."""

    def rename(self, old: str, new: str) -> None:
        index = self.transaction_index
        path = index.path
        super().rename(old, new)
        if index.exists and index.path != path:
            self.disk.rename(index.path, path)


class Unchecked(Segment):
    def append(self, largest_offset: int, records: bytes) -> None:
        super().append(min(largest_offset, self.base_offset + 2**31 - 1), records)


class FirstOffsetsChecked(Segment):
    """The overflow is looked for at the first batch alone."""

    def append(self, largest_offset: int, records: bytes) -> None:
        first = next(headers(records))
        super().append(largest_offset if first.last_offset == largest_offset else first.base_offset, records)


class WrittenFirst(Segment):
    def append(self, largest_offset: int, records: bytes) -> None:
        if not self.offset_index.can_append(largest_offset):
            self.disk.append(self.path(impl.LOG), records)
            self.size += len(records)
        super().append(largest_offset, records)


class OncePerAppend(Segment):
    """One entry an append, as before 4.0: of the last batch, with the position of the first."""

    def append(self, largest_offset: int, records: bytes) -> None:
        interval, position = self.index_interval_bytes, self.size
        self.index_interval_bytes = 2**62
        before = self.since
        try:
            super().append(largest_offset, records)
        finally:
            self.index_interval_bytes = interval
        if before > interval:
            self.offset_index.append(largest_offset, position)
            self.time_index.maybe_append(*self.largest)
            self.since = len(records)


class AtTheInterval(Segment):
    def append(self, largest_offset: int, records: bytes) -> None:
        self.index_interval_bytes -= 1
        try:
            super().append(largest_offset, records)
        finally:
            self.index_interval_bytes += 1


class CountsOn(Segment):
    """A truncation does not begin the count of bytes again."""

    def truncate_to(self, offset: int) -> int:
        since = self.since
        cut = super().truncate_to(offset)
        self.since = since
        return cut


class LastOfTheLargest(Segment):
    """An equal timestamp counts as larger: the time entry names the last batch that has it."""

    def _take(self, timestamp: int, offset: int) -> None:
        if timestamp >= self.largest[0]:
            self._largest = timestamp, offset


class FirstOffsets(Segment):
    """The offset index gets the first offset of a batch."""

    def append(self, largest_offset: int, records: bytes) -> None:
        index = self.offset_index
        bases = {h.last_offset: h.base_offset for h in headers(records)}
        real = index.append
        index.append = lambda offset, position: real(bases[offset], position)  # type: ignore[method-assign]
        try:
            super().append(largest_offset, records)
        finally:
            del index.append


class FitsExactly(Segment):
    def should_roll(
        self, max_ms: int, max_bytes: int, timestamp: int, largest_offset: int, messages_bytes: int
    ) -> bool:
        return super().should_roll(max_ms, max_bytes - 1, timestamp, largest_offset, messages_bytes)


class WithoutJitter(Segment):
    def should_roll(
        self, max_ms: int, max_bytes: int, timestamp: int, largest_offset: int, messages_bytes: int
    ) -> bool:
        jitter, self.roll_jitter_ms = self.roll_jitter_ms, 0
        try:
            return super().should_roll(max_ms, max_bytes, timestamp, largest_offset, messages_bytes)
        finally:
            self.roll_jitter_ms = jitter


class WallClock(Segment):
    """Always by the time since creation."""

    def should_roll(
        self, max_ms: int, max_bytes: int, timestamp: int, largest_offset: int, messages_bytes: int
    ) -> bool:
        self.rolling_timestamp = -1
        return super().should_roll(max_ms, max_bytes, timestamp, largest_offset, messages_bytes)


class NeverOutOfReach(Segment):
    def should_roll(
        self, max_ms: int, max_bytes: int, timestamp: int, largest_offset: int, messages_bytes: int
    ) -> bool:
        return super().should_roll(max_ms, max_bytes, timestamp, self.base_offset, messages_bytes)


class NeverFull(Segment):
    def should_roll(
        self, max_ms: int, max_bytes: int, timestamp: int, largest_offset: int, messages_bytes: int
    ) -> bool:
        slots = [(i, i.max_entries) for i in (self.offset_index, self.time_index)]
        try:
            for index, _ in slots:
                index.max_entries = 2**31
            return super().should_roll(max_ms, max_bytes, timestamp, largest_offset, messages_bytes)
        finally:
            for index, n in slots:
                index.max_entries = n


class LeavesTheTimeIndex(Segment):
    def become_inactive(self) -> None:
        self.offset_index.trim()
        self.time_index.trim()


class LeavesTheSlots(Segment):
    def become_inactive(self) -> None:
        self.time_index.maybe_append(*self.largest, last=True)


class TrustsTheIndex(Segment):
    """Takes the index's batch for the one that was looked for."""

    def translate_offset(self, offset: int, from_position: int = 0) -> LogOffsetPosition | None:
        at = super().translate_offset(offset, from_position)
        begin = self.offset_index.lookup(offset).position
        if at is None or begin <= from_position:
            return at
        h = next(headers(self.data(), begin))
        return LogOffsetPosition(h.base_offset, h.position, h.size)


class NotTheFirst(Segment):
    def read(self, start_offset: int, max_size: int, max_position: int | None, min_one: bool) -> FetchDataInfo | None:
        return super().read(start_offset, max_size, max_position, False)


class BeyondTheBound(Segment):
    def read(self, start_offset: int, max_size: int, max_position: int | None, min_one: bool) -> FetchDataInfo | None:
        bound = None if max_position is None else max(max_position, self.size)
        return super().read(start_offset, max_size, bound, min_one)


class WholeBatches(Segment):
    """The offset of a timestamp is that of the batch's last record."""

    def find_offset_by_timestamp(self, timestamp: int, starting_offset: int) -> TimestampAndOffset | None:
        found = super().find_offset_by_timestamp(timestamp, starting_offset)
        at = None if found is None else self.translate_offset(found.offset)
        if found is None or at is None:
            return found
        h = next(headers(self.data(), at.position))
        return TimestampAndOffset(h.max_timestamp, h.last_offset, found.leader_epoch)


class IndexedAlone(Segment):
    """The next offset is that after the last index entry."""

    def read_next_offset(self) -> int:
        index = self.offset_index
        return index.last_offset + 1 if index.entries else super().read_next_offset()


class KeepsTheBatchAround(Segment):
    def truncate_to(self, offset: int) -> int:
        at = self.translate_offset(offset)
        last = None if at is None else next(headers(self.data(), at.position)).last_offset
        inside = at is not None and at.offset < offset and last is not None
        return super().truncate_to(last + 1 if inside and last is not None else offset)


class TruncatedToZeroSlots(Segment):
    def resize_indexes(self) -> None:
        self.offset_index.trim()
        self.time_index.trim()


class RemembersTheLargest(Segment):
    def truncate_to(self, offset: int) -> int:
        known = self.largest
        cut = super().truncate_to(offset)
        self._largest = known
        return cut


class SkipsTheDamaged(Segment):
    """Leaves out a batch with a wrong CRC and goes on behind it."""

    def recover(self, state: TransactionState, assign_epoch: Callable[[int, int], None]) -> int:
        data = self.data()
        good = [
            data[h.position : h.position + h.size]
            for h in headers(data)
            if crc32c.crc32c(data[h.position + impl.CRC_FROM : h.position + h.size]) == h.crc
        ]
        if len(b"".join(good)) < len(data):
            cut = self.size - len(b"".join(good))
            self.disk.write(self.path(impl.LOG), b"".join(good))
            self.size -= cut
            return cut + super().recover(state, assign_epoch)
        return super().recover(state, assign_epoch)


class NoCrc(Segment):
    def recover(self, state: TransactionState, assign_epoch: Callable[[int, int], None]) -> int:
        data = bytearray(self.data())
        for h in headers(bytes(data)):
            body = data[h.position + impl.CRC_FROM : h.position + h.size]
            data[h.position + 17 : h.position + 21] = crc32c.crc32c(bytes(body)).to_bytes(4, "big")
        self.disk.write(self.path(impl.LOG), bytes(data))
        return super().recover(state, assign_epoch)


class KeepsTheTail(Segment):
    """Recovery does not cut."""

    def _cut(self, size: int) -> int:
        return self.size - size


class KeepsEntries(Segment):
    """Recovery appends to the transaction index that is there."""

    def recover(self, state: TransactionState, assign_epoch: Callable[[int, int], None]) -> int:
        before = self.disk.read(self.transaction_index.path) if self.transaction_index.exists else b""
        cut = super().recover(state, assign_epoch)
        after = self.disk.read(self.transaction_index.path) if self.transaction_index.exists else b""
        if before or after:
            self.disk.write(self.transaction_index.path, before + after)
        return cut


class NoTransactions(Segment):
    def recover(self, state: TransactionState, assign_epoch: Callable[[int, int], None]) -> int:
        class Deaf:
            def append(self, header: Any, body: bytes) -> AbortedTxn | None:
                return None

        return super().recover(Deaf(), assign_epoch)


class ForgetsWhatWasOpen(segment_driver.Driver):
    def producers(self) -> Any:
        before, self.start = self.start, replace(self.start, open_before=())
        try:
            return super().producers()
        finally:
            self.start = before


class EpochsFromOne(Segment):
    def recover(self, state: TransactionState, assign_epoch: Callable[[int, int], None]) -> int:
        return super().recover(state, lambda epoch, offset: assign_epoch(epoch, offset) if epoch > 0 else None)


class NoLastTimeEntry(Segment):
    def recover(self, state: TransactionState, assign_epoch: Callable[[int, int], None]) -> int:
        real = self.time_index.maybe_append
        index = self.time_index
        index.maybe_append = lambda timestamp, offset, last=False: None if last else real(timestamp, offset)  # type: ignore
        try:
            return super().recover(state, assign_epoch)
        finally:
            del index.maybe_append


class AnyTimeSane(Segment):
    def sanity_check(self, time_index_file_newly_created: bool = False) -> None:
        if not self.disk.exists(self.path(impl.INDEX)):
            _ = self.offset_index
        super().sanity_check(time_index_file_newly_created)


class OpensWithoutTimes(Segment):
    """The largest timestamp is not read back."""

    @property
    def largest(self) -> tuple[int, int]:
        if self._largest is None:
            self._largest = NO_TIMESTAMP, self.base_offset
        return self._largest


def _recovery_moves_the_point() -> LoadedModel:
    class Crash(model.Crash):
        @action("SEG-17", who="restart")
        def cut(s) -> None:
            require(s.phase == Phase.RECOVERING, s.scan == s.whole)
            s.next.phase = Phase.RUNNING
            s.next.scan = 0
            s.next.end = s.whole
            s.next.visible = s.whole
            s.next.point = s.whole
            s.next.base = s.base if s.base <= s.whole else 0

    return load(Crash)


def _marked_before_the_indexes() -> LoadedModel:
    class Crash(model.Crash):
        @action("SEG-23", who="flusher")
        def flush_data(s) -> None:
            require(s.flushing == Flushing.DATA)
            s.next.flushing = Flushing.MARK
            s.next.durable = max(s.durable, s.target)

    return load(Crash)


def _marked_before_the_data() -> LoadedModel:
    class Crash(model.Crash):
        @action("SEG-23", who="flusher")
        def flush_data(s) -> None:
            require(s.flushing == Flushing.DATA)
            s.next.flushing = Flushing.INDEX

    return load(Crash)


def _recovers_too_little() -> LoadedModel:
    class Crash(model.Crash):
        @action("SEG-16", who="restart")
        def begin_recovery(s) -> None:
            require(s.phase == Phase.DOWN)
            s.next.phase = Phase.RECOVERING
            s.next.scan = s.checkpoint

    return load(Crash)


def _cuts_at_the_file_s_end() -> LoadedModel:
    class Crash(model.Crash):
        @action("SEG-17", who="restart")
        def cut(s) -> None:
            require(s.phase == Phase.RECOVERING, s.scan == s.whole)
            s.next.phase = Phase.RUNNING
            s.next.scan = 0
            s.next.visible = s.end
            s.next.point = min(s.checkpoint, s.whole)

    return load(Crash)


def _aborts_are_not_rebuilt() -> LoadedModel:
    class Crash(model.Crash):
        @action("SEG-16", "SEG-18", who="restart")
        def recover_batch(s) -> None:
            require(s.phase == Phase.RECOVERING, s.scan < s.whole)
            s.next.scan = s.scan + 1
            s.next.indexed[s.scan] = s.due[s.scan]

    return load(Crash)


def _of(segment: type[Segment]) -> Callable[[], Any]:
    def make() -> segment_driver.Driver:
        class Faulty(segment_driver.Driver):
            segment_class = segment

        return Faulty()

    return make


MUTANTS = [
    of_impl("19 digits", "SEG-1", "file names are one digit short", NineteenDigits),
    of_impl("the transaction index stays", "SEG-1", "it is not renamed", _of(KeepsTransactionIndex)),
    of_impl("out of reach", "SEG-3", "any offset is appended", _of(Unchecked), "KAFKA-4451"),
    of_impl(
        "the first is in reach", "SEG-3", "the largest offset is not looked at", _of(FirstOffsetsChecked), "KAFKA-5413"
    ),
    of_impl("refused too late", "SEG-3", "what is refused was written", _of(WrittenFirst)),
    of_impl(
        "an entry an append",
        "SEG-4 SEG-5 SEG-2",
        "as before 4.0: the last batch's offset, the first one's position",
        _of(OncePerAppend),
    ),
    of_impl("at the interval", "SEG-4", "an entry at just so many bytes", _of(AtTheInterval)),
    of_impl("counts on", "SEG-4 SEG-15", "a truncation does not begin the count again", _of(CountsOn)),
    of_impl("the last of the largest", "SEG-5 SEG-25", "an equal timestamp counts as larger", _of(LastOfTheLargest)),
    of_impl("first offsets", "SEG-5", "as before 2.0: the offset index has first offsets", _of(FirstOffsets)),
    of_impl("fits exactly", "SEG-6", "rolls a byte early", _of(FitsExactly)),
    of_impl("without jitter", "SEG-7", "the jitter is not taken off", _of(WithoutJitter)),
    of_impl("by the clock", "SEG-7", "time since creation, whatever the records say", _of(WallClock)),
    of_impl("never full", "SEG-8", "a full index is no reason", _of(NeverFull)),
    of_impl("never out of reach", "SEG-9", "offsets are no reason", _of(NeverOutOfReach), "KAFKA-4451"),
    of_impl(
        "no last entry", "SEG-10 SEG-22", "a closed segment forgets its largest timestamp", _of(LeavesTheTimeIndex)
    ),
    of_impl("slots are left", "SEG-10", "indexes are not trimmed", _of(LeavesTheSlots), "KAFKA-4734"),
    of_impl("trusts the index", "SEG-11", "the indexed batch is the one", _of(TrustsTheIndex)),
    of_impl("not even one", "SEG-12", "minOneMessage is ignored", _of(NotTheFirst)),
    of_impl("beyond the bound", "SEG-12", "the maximum position is ignored", _of(BeyondTheBound), "KAFKA-9196"),
    of_impl(
        "the batch's end", "SEG-13", "the offset of a timestamp is the batch's last", _of(WholeBatches), "KAFKA-16341"
    ),
    of_impl("as far as indexed", "SEG-14", "the next offset is read off the index", _of(IndexedAlone)),
    of_impl("the batch around stays", "SEG-15", "a truncation within a batch keeps it", _of(KeepsTheBatchAround)),
    of_impl(
        "no room after a cut",
        "SEG-15 SEG-8",
        "indexes stay trimmed, and look full",
        _of(TruncatedToZeroSlots),
        "KAFKA-6492",
    ),
    of_impl(
        "remembers the largest", "SEG-15", "the largest timestamp is of a record that is gone", _of(RemembersTheLargest)
    ),
    of_impl("goes on behind damage", "SEG-17 SEG-24", "recovery skips a bad batch", _of(SkipsTheDamaged)),
    of_impl("no CRC", "SEG-17 SEG-24", "recovery takes what reads as a batch", _of(NoCrc)),
    of_impl("the tail stays", "SEG-17", "recovery cuts nothing", _of(KeepsTheTail)),
    of_impl("entries twice", "SEG-18 SEG-20", "the transaction index is not emptied first", _of(KeepsEntries)),
    of_impl("no aborts", "SEG-18 SEG-26", "the transaction index is emptied alone", _of(NoTransactions)),
    of_impl(
        "forgets what was open",
        "SEG-18 SEG-26",
        "transactions from before the segment are not known",
        ForgetsWhatWasOpen,
    ),
    of_impl("epochs from 1", "SEG-19", "epoch 0 is not assigned", _of(EpochsFromOne), "KAFKA-10432"),
    of_impl("no last time entry", "SEG-16 SEG-25", "recovery leaves the largest timestamp out", _of(NoLastTimeEntry)),
    of_impl("always sane", "SEG-21", "a missing index file is made", _of(AnyTimeSane), "KAFKA-13603"),
    of_impl("opens without times", "SEG-22", "the largest timestamp is not read back", _of(OpensWithoutTimes)),
    of_model(
        "Crash: recovery moves the point",
        "SEG-23 SEG-24",
        "what recovery left counts as flushed",
        _recovery_moves_the_point,
        "KAFKA-10101",
    ),
    of_model(
        "Crash: marked before the indexes",
        "SEG-23 SEG-25 SEG-26",
        "the .log alone is flushed",
        _marked_before_the_indexes,
    ),
    of_model("Crash: marked before the data", "SEG-23 SEG-24", "the .log is not flushed", _marked_before_the_data),
    of_model(
        "Crash: recovers too little",
        "SEG-16 SEG-25",
        "from the recovery point on, not from its segment",
        _recovers_too_little,
    ),
    of_model("Crash: cuts at the file's end", "SEG-17 SEG-24", "what is torn stays", _cuts_at_the_file_s_end),
    of_model(
        "Crash: aborts are not rebuilt",
        "SEG-18 SEG-26",
        "the transaction index is emptied alone",
        _aborts_are_not_rebuilt,
    ),
]

SURVIVORS: dict[str, str] = {}
"""Generated faults of the models that nobody can notice, and why."""


# ---- faults of range, boundary, depth, configuration and rare state
class TimesAsDoubles(Segment):
    def _take(self, timestamp: int, offset: int) -> None:
        super()._take(int(float(timestamp)), offset)


class EndOf32Bits(Segment):
    """The end of a read is a position of 32 bits."""

    def read(self, start_offset: int, max_size: int, max_position: int | None, min_one: bool) -> FetchDataInfo | None:
        at = self.translate_offset(start_offset) if max_size >= 0 else None
        if at is not None and max_position is not None and at.position and at.position + max_size >= 2**31:
            raise impl.IllegalArgument("a size below 0")
        return super().read(start_offset, max_size, max_position, min_one)


def _rolling(change: Callable[[Segment, list[int]], bool | None]) -> Callable[[], Any]:
    """A segment that asks `change` first, with the five arguments, whether to roll."""

    class Rolls(Segment):
        def should_roll(self, *arguments: int) -> bool:
            said = change(self, list(arguments))
            sound = super().should_roll(*arguments)
            return sound if said is None else said

    return _of(Rolls)


def _first_of(segment: Segment) -> int:
    """The rolling timestamp."""
    first = next(headers(segment.data()), None)
    return NO_TIMESTAMP if first is None else first.max_timestamp


def _limits_of_32_bits(s: Segment, a: list[int]) -> bool | None:
    return True if s.size and a[0] >= 2**31 and signed(a[0], 32) < 0 else None


def _added_to_the_creation(s: Segment, a: list[int]) -> bool | None:
    """When it is due is added, from the creation on."""
    return True if s.size and _first_of(s) < 0 and s.created + a[0] - s.roll_jitter_ms >= 2**63 else None


def _unsigned_waits(s: Segment, a: list[int]) -> bool | None:
    """A timestamp before the first one lies far behind it."""
    return True if s.size and a[2] < (s.rolling_timestamp or _first_of(s)) >= 0 else None


class NoTimeIsZero(Segment):
    """A first timestamp of 0 is none."""

    def should_roll(self, *arguments: int) -> bool:
        if self.rolling_timestamp is None and _first_of(self) == 0:
            self.rolling_timestamp = -1
        return super().should_roll(*arguments)


class OneIndexIsFull(Segment):
    """The offset index alone is asked."""

    def should_roll(self, *arguments: int) -> bool:
        slots, self.time_index.max_entries = self.time_index.max_entries, 2**31
        try:
            return super().should_roll(*arguments)
        finally:
            self.time_index.max_entries = slots


class AsOldAsBefore(Segment):
    """A segment that is emptied keeps its time of creation."""

    def truncate_to(self, offset: int) -> int:
        created = self.created
        cut = super().truncate_to(offset)
        self.created = created
        return cut


class RemembersTheFirst(Segment):
    """A segment that is emptied remembers its first timestamp."""

    def truncate_to(self, offset: int) -> int:
        known = self.rolling_timestamp
        cut = super().truncate_to(offset)
        self.rolling_timestamp = known
        return cut


class ReadsAnInterval(Segment):
    """From the index's place as many bytes are looked at as lie between two entries."""

    def translate_offset(self, offset: int, from_position: int = 0) -> LogOffsetPosition | None:
        at = super().translate_offset(offset, from_position)
        begin = max(self.offset_index.lookup(offset).position, from_position)
        return None if at is not None and at.position - begin > max(self.index_interval_bytes, 4 * at.size) else at


class FromTheNextBatch(Segment):
    """A starting offset inside a batch leaves the batch out."""

    def find_offset_by_timestamp(self, timestamp: int, starting_offset: int) -> TimestampAndOffset | None:
        inside = next((h for h in headers(self.data()) if h.base_offset < starting_offset <= h.last_offset), None)
        return super().find_offset_by_timestamp(
            timestamp, starting_offset if inside is None else inside.last_offset + 1
        )


class SmallBatches(Segment):
    """Recovery reads 16 KiB at a time: a larger batch is taken for damaged."""

    def recover(self, state: TransactionState, assign_epoch: Callable[[int, int], None]) -> int:
        data = bytearray(self.data())
        large = next((h for h in headers(bytes(data)) if h.size > 2**14), None)
        if large is not None:
            data[large.position + impl.CRC_FROM] ^= 1
            self.disk.write(self.path(impl.LOG), bytes(data))
        return super().recover(state, assign_epoch)


class EpochsOf16Bits(Segment):
    def recover(self, state: TransactionState, assign_epoch: Callable[[int, int], None]) -> int:
        return super().recover(state, lambda epoch, offset: assign_epoch(signed(epoch, 16), offset))


class OneWasOpen(segment_driver.Driver):
    """Of the transactions from before the segment the first alone is known."""

    def producers(self) -> Any:
        before, self.start = self.start, replace(self.start, open_before=self.start.open_before[:1])
        try:
            return super().producers()
        finally:
            self.start = before


RARE = [
    of_impl("times as doubles", "SEG-5", "a timestamp above 2^53 is rounded", _of(TimesAsDoubles)),
    of_impl(
        "ends of 32 bits", "SEG-12", "a read of 2^31 - 1 bytes is refused but at the first batch", _of(EndOf32Bits)
    ),
    of_impl("limits of 32 bits", "SEG-7", "segment.ms above 2^31 - 1 is negative", _rolling(_limits_of_32_bits)),
    of_impl(
        "no limit is a limit",
        "SEG-7",
        "the greatest segment.ms is added to the time, and wraps",
        _rolling(_added_to_the_creation),
    ),
    of_impl(
        "waits without a sign", "SEG-7", "what is older than the first batch waited for ever", _rolling(_unsigned_waits)
    ),
    of_impl("no time is 0", "SEG-7", "a first timestamp of 0 is none", _of(NoTimeIsZero)),
    of_impl("one index is full", "SEG-8", "the time index is not asked", _of(OneIndexIsFull)),
    of_impl("as old as before", "SEG-15 SEG-7", "an emptied segment keeps its time of creation", _of(AsOldAsBefore)),
    of_impl(
        "remembers the first", "SEG-15 SEG-7", "an emptied segment keeps its first timestamp", _of(RemembersTheFirst)
    ),
    of_impl("reads an interval", "SEG-11", "a batch further from the entry is not found", _of(ReadsAnInterval)),
    of_impl("from the next batch", "SEG-13", "a starting offset inside a batch leaves it out", _of(FromTheNextBatch)),
    of_impl("small batches", "SEG-17 SEG-24", "one above 16 KiB is taken for damaged", _of(SmallBatches)),
    of_impl("epochs of 16 bits", "SEG-19", "epoch 2^15 is negative", _of(EpochsOf16Bits)),
    of_impl("one was open", "SEG-18 SEG-26", "of several transactions from before the segment", OneWasOpen),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE

UNSEEN: dict[str, str] = {
    "as old as before": "not found yet: nothing noticed it, nor the judge in 20,000 calls",
}
