"""A partition's log with its transactions, as Kafka keeps it, and a consumer's filter.

Segments of batches, each with a transaction index; a producer state manager beside them, which says where the first
unstable transaction begins. Batches have positions in their segments, as bytes do, and a bound is such a position.
Index and snapshot files are on a disk that comes in as an argument. The consumer keeps a queue of the aborted
transactions that it was told, and the set of producers whose records it drops at the moment.

Source: UnifiedLog, LocalLog, LogSegment, LogLoader and CompletedFetch, Kafka 4.3.0.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.storage import producer_state, transaction_index
from kafkaspec.impl.storage.producer_state import CLIENT, REPLICATION, ProducerStateManager
from kafkaspec.impl.storage.transaction_index import AbortedTxn, TransactionIndex

DIRECTORY = "log/t-0"
SEQUENCES = 2**31


class HighWatermarkAboveEnd(ValueError):
    """A high watermark is above the log's end."""


class LogStartAboveHighWatermark(IndexError):
    """A log start is above the high watermark."""


class OffsetOutOfRange(IndexError):
    """A fetch begins below the log start, or above the log's end."""


@dataclass(slots=True)
class Batch:
    """Records, or one marker."""

    base: int
    last: int
    producer_id: int
    epoch: int
    kind: str
    sequence: int
    coordinator_epoch: int
    timestamp: int
    is_indexed: bool = False

    @property
    def is_control(self) -> bool:
        return self.kind in ("COMMIT", "ABORT")

    @property
    def is_transactional(self) -> bool:
        return self.kind != "PLAIN"


@dataclass
class Segment:
    """Batches from a base offset on, and their transaction index. A position is how many batches are before it."""

    base: int
    index: TransactionIndex
    batches: list[Batch] = field(default_factory=list)
    is_fresh: bool = True
    """nothing was appended since it was made, cut or opened: the next batch gets no entry in the offset index"""

    def append(self, batch: Batch) -> None:
        batch.is_indexed, self.is_fresh = not self.is_fresh, False
        self.batches.append(batch)

    @property
    def next_offset(self) -> int:
        return self.batches[-1].last + 1 if self.batches else self.base

    def position(self, offset: int) -> int | None:
        """Where the first batch is that ends at or above an offset; None if all end below."""
        return next((n for n, b in enumerate(self.batches) if b.last >= offset), None)

    def indexed_from(self, position: int) -> int | None:
        """The last offset of the first batch from there on that has an entry in the offset index. The search passes
        over the index's first entry if it is of the batch right there. [LSO-13]"""
        entries = [n for n, b in enumerate(self.batches) if b.is_indexed]
        if entries[:1] == [position]:
            del entries[0]
        at = next((n for n in entries if n >= position), None)
        return None if at is None else self.batches[at].last


class Bound(NamedTuple):
    """An offset, and the place of the batch that it is in."""

    offset: int
    segment: int
    position: int


class FetchInfo(NamedTuple):
    """The batches of a fetch, and the aborted transactions that it tells; None if it tells none at all."""

    batches: list[Batch]
    aborted: list[AbortedTxn] | None


class TransactionalLog:
    """One partition. Raises ProducerStateError where the producers' state refuses a batch."""

    Manager = ProducerStateManager
    Index = TransactionIndex

    def __init__(self, disk: Disk, expiration_ms: int, verifies: bool = False) -> None:
        self.disk = disk
        self.expiration_ms = expiration_ms
        self.verifies = verifies
        """whether a transaction of a client opens only with the guard of its verification"""
        self.producers = self._manager()
        self.segments = [self._segment(0)]
        self.log_start = 0
        self.high_watermark = 0
        self.first_unstable: int | None = None
        self.end = 0

    def _manager(self) -> ProducerStateManager:
        return self.Manager(DIRECTORY, self.disk, self.expiration_ms)

    def _segment(self, base: int) -> Segment:
        path = f"{DIRECTORY}/{base:020}{transaction_index.SUFFIX}"
        if self.disk.exists(path):
            self.disk.remove(path)
        return Segment(base, self.Index(path, base, self.disk))

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    def batches(self) -> Iterator[Batch]:
        for segment in self.segments:
            yield from segment.batches

    @property
    def last_stable(self) -> int:
        """The first unstable offset if it is below the high watermark, else that. [LSO-1]"""
        first = self.first_unstable
        return first if first is not None and first < self.high_watermark else self.high_watermark

    def look_up_first_unstable(self) -> None:
        """Ask the producers' state where the first unstable transaction begins. [LSO-2]"""
        first = self.producers.first_unstable
        if first is not None and first < self.log_start:
            at = self._place(self.log_start)
            batches = self.segments[at.segment].batches[at.position :]
            first = max(self.log_start, batches[0].base) if batches else self.end
        self.first_unstable = first

    # appends

    def append(self, batch: Batch, origin: str, version: int = -1, guard: int = 0) -> tuple[int, int]:
        """Put a batch at the end; first and last offset, of its duplicate if there is one. [LSO-3, LSO-4, LSO-19]"""
        if batch.producer_id >= 0:
            entry = self.producers.producers.get(batch.producer_id)
            if origin == CLIENT and entry is not None:
                last = (batch.sequence + batch.last - batch.base) % SEQUENCES
                there = entry.duplicate(batch.epoch, batch.sequence, last)
                if there is not None:
                    return there.first_offset, there.last_offset
            self._fence(batch, origin, guard)
        append = self.producers.prepare(batch.producer_id, origin) if batch.producer_id >= 0 else None
        completed = None if append is None else self._put(append, batch, version)
        self.active.append(batch)
        self.end = batch.last + 1
        if append is not None:
            self.producers.update(append)
        if completed is not None:
            self._complete(completed)
        self.producers.end_offset = self.end
        self.look_up_first_unstable()
        return batch.base, batch.last

    def _fence(self, batch: Batch, origin: str, guard: int) -> None:
        """A transactional batch that opens a transaction, or a marker that ends none, of an earlier epoch is refused
        before all else; then one that opens a transaction without the guard of its verification. [LSO-3, LSO-19]"""
        if origin == REPLICATION or not batch.is_transactional:
            return
        entry = self.producers.producers.get(batch.producer_id)
        if entry is not None and batch.epoch < entry.epoch:
            raise producer_state.StaleMarker if batch.is_control else producer_state.StaleEpoch
        opens = not batch.is_control and not self.producers.has_open_transaction(batch.producer_id, batch.epoch)
        if self.verifies and opens:
            verification = self.producers.verifications.get(batch.producer_id)
            if verification is None or verification.guard != guard:
                raise producer_state.NotVerified

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool, now: int
    ) -> int:
        """The guard of the producer's verification, 0 if its transaction is open. Raises StaleEpoch. [LSO-19]"""
        entry = self.producers.producers.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise producer_state.StaleEpoch
        if self.producers.has_open_transaction(producer_id, epoch):
            return 0
        return self.producers.verification(producer_id, sequence, epoch, supports_epoch_bump, now).guard

    def _put(
        self, append: producer_state.Append, batch: Batch, version: int
    ) -> producer_state.CompletedTransaction | None:
        """Have an append check a batch and take it in, which ends the producer's verification; the transaction that it
        ends. Raises ProducerStateError."""
        completed = None
        if batch.is_control:
            marker = (batch.epoch, batch.coordinator_epoch, batch.base, batch.timestamp)
            completed = append.marker(batch.kind == "ABORT", *marker, version)
        else:
            last = (batch.sequence + batch.last - batch.base) % SEQUENCES
            data = (batch.epoch, batch.sequence, last, batch.base, batch.last, batch.timestamp)
            append.data(*data, batch.is_transactional)
        if batch.is_transactional:
            self._end_verification(batch)
        return completed

    def _end_verification(self, batch: Batch) -> None:
        """That of the next transaction stays, which a client that bumps epochs has with the marker's. [LSO-19]"""
        v = self.producers.verifications.get(batch.producer_id)
        if v is not None and not (batch.is_control and v.supports_epoch_bump and v.epoch == batch.epoch):
            del self.producers.verifications[batch.producer_id]

    def append_all(self, batches: Sequence[Batch]) -> tuple[int, int]:
        """Put batches of the leader at the end, all or none; first and last offset. [LSO-18]"""
        ended = self._take_in(batches)
        for batch in batches:
            self.active.append(batch)
        self.end = batches[-1].last + 1
        for completed in ended:
            self._complete(completed)
        self.producers.end_offset = self.end
        self.look_up_first_unstable()
        return batches[0].base, batches[-1].last

    def _take_in(self, batches: Iterable[Batch]) -> list[producer_state.CompletedTransaction]:
        """Have the producers' state take in batches as one append; the transactions that they end."""
        appends: dict[int, producer_state.Append] = {}
        ended = []
        for batch in batches:
            if batch.producer_id >= 0:
                append = appends.get(batch.producer_id) or self.producers.prepare(batch.producer_id, REPLICATION)
                appends[batch.producer_id] = append
                ended.append(self._put(append, batch, -1))
        for append in appends.values():
            self.producers.update(append)
        return [completed for completed in ended if completed is not None]

    def _complete(self, completed: producer_state.CompletedTransaction) -> None:
        """Have the index take in a transaction that was aborted, and the producers' state that it ended. [LSO-4]"""
        if completed.aborted:
            stable = self.producers.last_stable_offset_of(completed)
            numbers = (completed.producer_id, completed.first_offset, completed.last_offset)
            self.active.index.append(AbortedTxn(*numbers, stable))
        self.producers.complete(completed)

    # high watermark, log start

    def set_high_watermark(self, offset: int) -> None:
        """Set it, whatever it was. [LSO-5]"""
        self.high_watermark = offset
        self.producers.on_high_watermark_updated(offset)
        self.look_up_first_unstable()

    def maybe_increment_high_watermark(self, offset: int) -> None:
        """Raise it. Raises HighWatermarkAboveEnd. [LSO-5]"""
        if offset > self.end:
            raise HighWatermarkAboveEnd
        if offset > self.high_watermark:
            self.set_high_watermark(offset)

    def maybe_increment_log_start_offset(self, offset: int) -> None:
        """Raise it. Raises LogStartAboveHighWatermark. [LSO-6]"""
        if offset > self.high_watermark:
            raise LogStartAboveHighWatermark
        if offset > self.log_start:
            self.log_start = offset
            self.producers.on_log_start_offset_incremented(offset)
            self.look_up_first_unstable()

    # segments

    def roll(self) -> None:
        """Begin a segment at the end, with a snapshot there. [LSO-14]"""
        if self.active.base == self.end:
            self.segments.pop()
        self.segments.append(self._segment(self.end))
        self.producers.end_offset = self.end
        self.producers.take_snapshot(flush=False)
        if self.high_watermark >= self.end:
            self.set_high_watermark(self.end)

    def delete_old_segments(self, retention_ms: int, now: int) -> None:
        """Delete segments below the log start, and then those that are older than `retention_ms`. [LSO-7]"""
        self._delete(lambda n: n + 1 < len(self.segments) and self.segments[n + 1].base <= self.log_start)
        self._delete(lambda n: now - self._largest_timestamp(n, now) > retention_ms)

    def _largest_timestamp(self, n: int, now: int) -> int:
        return max((b.timestamp for b in self.segments[n].batches), default=now)

    def _delete(self, is_due: Callable[[int], bool]) -> None:
        count = 0
        while count < len(self.segments):
            is_last = count + 1 == len(self.segments)
            end = self.end if is_last else self.segments[count + 1].base
            if self.high_watermark < end or not is_due(count) or (is_last and not self.active.batches):
                break
            count += 1
        if not count:
            return
        if count == len(self.segments):
            self.roll()
        self.maybe_increment_log_start_offset(self.segments[count].base)
        dropped, self.segments = self.segments[:count], self.segments[count:]
        for segment in dropped:
            self._drop(segment)

    def _drop(self, segment: Segment) -> None:
        """Remove the files of a segment, its snapshot too."""
        if segment.index.exists:
            self.disk.remove(segment.index.path)
        if segment.base in self.producers.snapshots:
            self.producers.snapshots.discard(segment.base)
            self.disk.remove(self.producers.path(segment.base))

    def remove_expired_producers(self, now: int) -> None:
        """Forget idle producers, none with an open transaction; `now` in ms. [LSO-15]"""
        self.producers.remove_expired_producers(now)

    # truncation, loading

    def truncate_to(self, offset: int, now: int) -> None:
        """Cut the log at an offset, and make the producers' state again. [LSO-8]"""
        if offset >= self.end:
            return
        if offset < self.segments[0].base:
            self.truncate_fully(offset, now)
            return
        while self.active.base > offset:
            self._drop(self.segments.pop())
        at = self.active.position(offset)
        if at is not None:
            del self.active.batches[at:]
        self.active.index.truncate_to(offset)
        self.active.is_fresh = True
        self.end = offset
        self.log_start = min(self.log_start, offset)
        self._rebuild(now, clean=False)
        if self.high_watermark >= offset:
            self.set_high_watermark(offset)

    def truncate_fully(self, offset: int, now: int) -> None:
        """Empty the log: it begins at an offset. [LSO-8]"""
        for segment in self.segments:
            if segment.index.exists:
                self.disk.remove(segment.index.path)
        self.segments = [self._segment(offset)]
        self.producers.truncate_fully_and_start_at(offset)
        self.log_start = self.end = offset
        self._rebuild(now, clean=False)
        self.set_high_watermark(offset)

    def reopen(self, high_watermark: int, now: int) -> None:
        """Close the log, and load it as the next process does, with the checkpoint's high watermark. [LSO-9]"""
        self.producers.take_snapshot()
        guards = self.producers.guards
        self.producers = self._manager()
        self.producers.guards = guards
        for segment in self.segments:
            segment.index = self.Index(segment.index.path, segment.base, self.disk)
            segment.is_fresh = True
        self.producers.remove_stray_snapshots([s.base for s in self.segments])
        self._rebuild(now, clean=True)
        self.set_high_watermark(min(high_watermark, self.end))

    def _rebuild(self, now: int, clean: bool) -> None:
        """Load the producers' state, and read on from its snapshot. [LSO-9]"""
        producers = self.producers
        to_snapshot = [s.base for s in self.segments[-2:]]
        if clean and not producers.snapshots:
            for offset in (*to_snapshot, self.end):
                producers.end_offset = offset
                producers.take_snapshot()
            return
        empty = not producers.producers and not producers.unreplicated and producers.end_offset >= self.end
        producers.truncate_and_reload(self.log_start, self.end, now)
        if not empty and producers.end_offset < self.end:
            below = [n for n, s in enumerate(self.segments) if s.base <= producers.end_offset]
            for segment in self.segments[below[-1] if below else 0 :]:
                if segment.base >= self.end:
                    break
                producers.end_offset = max(segment.base, producers.end_offset, self.log_start)
                if segment.base in to_snapshot:
                    producers.take_snapshot()
                self._read(segment, producers.end_offset)
        producers.end_offset = self.end
        producers.take_snapshot()

    def _read(self, segment: Segment, start: int) -> None:
        """Have the producers' state take in what a segment has from an offset on, as one append. [LSO-9]"""
        at = segment.position(start)
        for completed in self._take_in(segment.batches[at:] if at is not None else ()):
            self.producers.complete(completed)

    # reads

    def _place(self, offset: int) -> Bound:
        """The place of the first batch that ends at or above an offset, or the end of the log."""
        for n, segment in enumerate(self.segments):
            at = segment.position(offset)
            if at is not None:
                return Bound(offset, n, at)
        return Bound(offset, len(self.segments) - 1, len(self.active.batches))

    def read(self, start: int, max_batches: int, read_committed: bool) -> FetchInfo:
        """The batches from an offset on, of one segment. Raises OffsetOutOfRange. [LSO-10, LSO-12]"""
        if start < self.log_start or start > self.end:
            raise OffsetOutOfRange
        bound = self._place(self.last_stable if read_committed else self.high_watermark)
        if start >= bound.offset:
            return FetchInfo([], [] if read_committed else None)
        at = self._place(start)
        segment = self.segments[at.segment]
        end = min(at.position + max_batches, len(segment.batches))
        if at.segment == bound.segment:
            end = min(end, bound.position)
        elif at.segment > bound.segment:
            end = at.position
        found = segment.batches[at.position : max(end, at.position)]
        if not read_committed:
            return FetchInfo(found, None)
        if at.position == len(segment.batches):
            return FetchInfo([], [])
        upper = segment.indexed_from(at.position + len(found))
        if upper is None:
            more = at.segment + 1 < len(self.segments)
            upper = self.segments[at.segment + 1].base if more else self.end
        return FetchInfo(found, self._aborted(at.segment, start, upper))

    def _aborted(self, segment: int, start: int, upper: int) -> list[AbortedTxn]:
        """The aborted transactions that overlap, of a segment and those behind it. All are looked at: of those that
        were appended at once an earlier one may say that all is stable up to beyond a later one. [LSO-12]"""
        entries = (e for s in self.segments[segment:] for e in s.index)
        return [e for e in entries if e.last_offset >= start and e.first_offset < upper]


class Consumer:
    """What a consumer makes of one answer."""

    def __init__(self, fetched: FetchInfo, position: int) -> None:
        self.fetched = fetched
        self.position = position
        self.queue = [(a.first_offset, a.producer_id) for a in fetched.aborted or ()]
        heapq.heapify(self.queue)
        self.dropping: set[int] = set()

    def __iter__(self) -> Iterator[int]:
        """The offsets of the records that are handed out; `position` is then where to go on. [LSO-11, LSO-16]"""
        for batch in self.fetched.batches:
            if not self._is_dropped(batch) and not batch.is_control:
                yield from range(max(batch.base, self.position), batch.last + 1)
            self.position = batch.last + 1

    def _is_dropped(self, batch: Batch) -> bool:
        """Whether the batch is of a transaction that was aborted. [LSO-11]"""
        if batch.producer_id < 0:
            return False
        while self.queue and self.queue[0][0] <= batch.last:
            self.dropping.add(heapq.heappop(self.queue)[1])
        if batch.kind == "ABORT":
            self.dropping.discard(batch.producer_id)
            return False
        return batch.is_transactional and batch.producer_id in self.dropping
