"""Faults of the last stable offset, each with the clauses that it breaks."""

# mypy: disable-error-code="operator"
# (the modelling language unwraps an option where its value is wanted)

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kafkaspec.contract.machine import Refused
from kafkaspec.impl.storage import last_stable as impl
from kafkaspec.impl.storage import last_stable_driver, producer_state
from kafkaspec.impl.storage.last_stable import Batch, Bound, Consumer, FetchInfo, TransactionalLog
from kafkaspec.impl.storage.producer_state import (
    CLIENT,
    REPLICATION,
    Append,
    BatchMetadata,
    CompletedTransaction,
    ProducerEntry,
    ProducerStateManager,
    SnapshotEntry,
)
from kafkaspec.impl.storage.transaction_index import AbortedTxn
from kafkaspec.language import LoadedModel, action, define, load, require
from kafkaspec.models.storage import last_stable as model
from kafkaspec.models.storage.last_stable import Kind, L, Offset, Producer
from kafkaspec.mutants.mutant import Mutant, of_impl, of_model, of_spec, with_fault
from kafkaspec.spec.common.transactional_log import Fetch, PartitionLog, Poll, handed_out
from kafkaspec.spec.common.transactional_reads import answer
from kafkaspec.spec.storage import last_stable as spec
from kafkaspec.spec.storage.last_stable_parts.appends import rule


# ---- the log
class StableWhenMarked(ProducerStateManager):
    """Transactions that ended are stable before their marker is replicated."""

    @property
    def first_unstable(self) -> int | None:
        return self.first_undecided


class AboveTheHighWatermark(TransactionalLog):
    @property
    def last_stable(self) -> int:
        return self.end if self.first_unstable is None else self.first_unstable


class BelowTheLogStart(TransactionalLog):
    def look_up_first_unstable(self) -> None:
        self.first_unstable = self.producers.first_unstable


class LooksWhenAppended(TransactionalLog):
    """A change of the high watermark does not look up what is unstable."""

    def set_high_watermark(self, offset: int) -> None:
        known = self.first_unstable
        super().set_high_watermark(offset)
        self.first_unstable = known


class IndexesEveryAbort(TransactionalLog):
    """An abort marker without a transaction gets an entry too."""

    def append(self, batch: Batch, origin: str, version: int = -1, guard: int = 0) -> tuple[int, int]:
        before = sum(1 for _ in self.active.index)
        found = super().append(batch, origin, version, guard)
        if batch.kind == "ABORT" and sum(1 for _ in self.active.index) == before:
            self.active.index.append(AbortedTxn(batch.producer_id, batch.base, batch.base, self.end))
        return found


class IndexesCommits(TransactionalLog):
    def _complete(self, completed: CompletedTransaction) -> None:
        super()._complete(completed._replace(aborted=True))


class OneByOne(TransactionalLog):
    """Batches of one append come one after the other."""

    def append_all(self, batches: Sequence[Batch]) -> tuple[int, int]:
        for batch in batches:
            super().append(batch, REPLICATION)
        return batches[0].base, batches[-1].last


class KeepsTheFirst(TransactionalLog):
    """Of batches of which one is refused the first one stays."""

    def append_all(self, batches: Sequence[Batch]) -> tuple[int, int]:
        try:
            return super().append_all(batches)
        except producer_state.ProducerStateError:
            super().append_all(batches[:1])
            raise


class LaterStable(ProducerStateManager):
    """The entry of an aborted transaction says that all is stable up to its marker, whoever is open."""

    def last_stable_offset_of(self, completed: CompletedTransaction) -> int:
        return completed.last_offset + 1


class AppendsDuplicates(TransactionalLog):
    """A duplicate is appended where it is the producer's last batch."""

    def append(self, batch: Batch, origin: str, version: int = -1, guard: int = 0) -> tuple[int, int]:
        entry = self.producers.producers.get(batch.producer_id)
        if origin == CLIENT and entry is not None and entry.batches and entry.last_seq == batch.sequence:
            origin = REPLICATION
        return super().append(batch, origin, version, guard)


class VerifiesNothing(TransactionalLog):
    def _fence(self, batch: Batch, origin: str, guard: int) -> None:
        self.verifies = False
        super()._fence(batch, origin, guard)


class TakesAnyGuard(TransactionalLog):
    """A verification is asked for, and not whose guard it is that comes."""

    def _fence(self, batch: Batch, origin: str, guard: int) -> None:
        known = self.producers.verifications.get(batch.producer_id)
        super()._fence(batch, origin, known.guard if known is not None and guard else guard)


class OneGuardForAll(TransactionalLog):
    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool, now: int
    ) -> int:
        guard = super().start_verification(producer_id, sequence, epoch, supports_epoch_bump, now)
        if guard:
            self.producers.verifications[producer_id].guard = self.producers.guards = guard = 1
        return guard


class VerifiedOnce(TransactionalLog):
    """A marker does not end the verification of its transaction."""

    def _end_verification(self, batch: Batch) -> None:
        if not batch.is_control:
            super()._end_verification(batch)


class EveryMarkerEnds(TransactionalLog):
    """A marker ends the verification of the next transaction too."""

    def _end_verification(self, batch: Batch) -> None:
        self.producers.verifications.pop(batch.producer_id, None)


class VerifiesEveryBatch(TransactionalLog):
    """A batch of an open transaction needs a guard too."""

    def _fence(self, batch: Batch, origin: str, guard: int) -> None:
        super()._fence(batch, origin, guard)
        if self.verifies and origin == CLIENT and batch.is_transactional and not guard:
            raise producer_state.NotVerified


class FollowerChecks(Append):
    """A follower compares sequences with what it knows."""

    def data(
        self, epoch: int, first_seq: int, last_seq: int, first_offset: int, last_offset: int, timestamp: int,
        transactional: bool,
    ) -> None:  # fmt: skip
        if self.origin == REPLICATION and self.current.epoch == epoch:
            self._check_sequence(epoch, first_seq)
        super().data(epoch, first_seq, last_seq, first_offset, last_offset, timestamp, transactional)


class ZombiesWrite(Append):
    """An earlier epoch may go on with its transaction."""

    def _check_epoch(self, epoch: int, version: int, stale: Any = producer_state.StaleEpoch) -> None:
        if self.updated.transaction is None:
            super()._check_epoch(epoch, version, stale)


class MarkersOfAnyVersion(Append):
    """By transaction version 2 too a marker may have the epoch of the records."""

    def _check_epoch(self, epoch: int, version: int, stale: Any = producer_state.StaleEpoch) -> None:
        super()._check_epoch(epoch, min(version, 1), stale)


class AnyCoordinator(Append):
    def marker(
        self, aborted: bool, epoch: int, coordinator_epoch: int, offset: int, timestamp: int, version: int
    ) -> CompletedTransaction | None:
        self.updated.coordinator_epoch = -1
        return super().marker(aborted, epoch, coordinator_epoch, offset, timestamp, version)


class Falls(TransactionalLog):
    """A leader's high watermark follows what it is told."""

    def maybe_increment_high_watermark(self, offset: int) -> None:
        if offset > self.end:
            raise impl.HighWatermarkAboveEnd
        self.set_high_watermark(offset)


class UpToTheEnd(TransactionalLog):
    """A high watermark above the end is the end."""

    def maybe_increment_high_watermark(self, offset: int) -> None:
        super().maybe_increment_high_watermark(min(offset, self.end))


class DeletesUnreplicated(TransactionalLog):
    def maybe_increment_log_start_offset(self, offset: int) -> None:
        if self.high_watermark < offset <= self.end:
            self.high_watermark = offset
        super().maybe_increment_log_start_offset(offset)


class DeletedIsEnded(TransactionalLog):
    """A transaction whose records are deleted is ended with them."""

    def maybe_increment_log_start_offset(self, offset: int) -> None:
        super().maybe_increment_log_start_offset(offset)
        for first in [f for f in self.producers.ongoing if f < self.log_start]:
            self.producers.producers[self.producers.ongoing.pop(first)].transaction = None
        self.look_up_first_unstable()


class KeepsTheLogStart(TransactionalLog):
    """Retention leaves the log start where it was."""

    def delete_old_segments(self, retention_ms: int, now: int) -> None:
        start = self.log_start
        super().delete_old_segments(retention_ms, now)
        self.log_start = start


class DeletesAboveHighWatermark(TransactionalLog):
    """Retention deletes what is old, replicated or not."""

    def _delete(self, is_due: Any) -> None:
        high, self.high_watermark = self.high_watermark, self.end
        super()._delete(is_due)
        self.high_watermark = max(high, self.log_start)


class TimeFirst(TransactionalLog):
    """Retention looks at time, and only where nothing is old at the log start."""

    def delete_old_segments(self, retention_ms: int, now: int) -> None:
        first = self.segments[0].base
        self._delete(lambda n: now - self._largest_timestamp(n, now) > retention_ms)
        if self.segments[0].base == first:
            self._delete(lambda n: n + 1 < len(self.segments) and self.segments[n + 1].base <= self.log_start)


class RollsOnce(TransactionalLog):
    """A segment that begins at the end is there already, and no second one can be made."""

    def roll(self) -> None:
        if self.active.base == self.end:
            raise impl.LogStartAboveHighWatermark
        super().roll()


class PendingIsLive(ProducerEntry):
    """An append that is being checked shares its batches with the table."""

    __slots__ = ()

    def copy_without_batches(self) -> ProducerEntry:
        copy = super().copy_without_batches()
        copy.batches = self.batches
        return copy

    def update(self, other: ProducerEntry) -> None:
        if self.batches is not other.batches:
            super().update(other)
            return
        self.epoch, self.coordinator_epoch = other.epoch, other.coordinator_epoch
        self.transaction, self.last_timestamp = other.transaction, other.last_timestamp


class EntryIsShared(ProducerStateManager):
    Entry = PendingIsLive


class MarkersOnce(Append):
    """By transaction version 2 a marker's epoch is above all that is known, even if no transaction is open."""

    def _check_epoch(self, epoch: int, version: int, stale: Any = producer_state.StaleEpoch) -> None:
        if version >= 2 and epoch <= self.updated.epoch and self.origin != REPLICATION:
            raise stale
        super()._check_epoch(epoch, version, stale)


class KeepsCutAborts(TransactionalLog):
    """A truncation leaves the transaction index alone."""

    def truncate_to(self, offset: int, now: int) -> None:
        known = [list(s.index) for s in self.segments]
        super().truncate_to(offset, now)
        have = sum(1 for _ in self.active.index)
        for entry in known[len(self.segments) - 1][have:] if offset < self.end + 1 else ():
            self.active.index.append(entry)


class HighAboveTheEnd(TransactionalLog):
    """A full truncation leaves the high watermark where it was."""

    def truncate_fully(self, offset: int, now: int) -> None:
        high = self.high_watermark
        super().truncate_fully(offset, now)
        self.high_watermark = high


class LooksTooEarly(TransactionalLog):
    """A truncation publishes its offsets before the producers' state is made again."""

    def _rebuild(self, now: int, clean: bool) -> None:
        if self.high_watermark >= self.end:
            self.set_high_watermark(self.end)
        early = self.first_unstable
        super()._rebuild(now, clean)
        self._early = early

    def set_high_watermark(self, offset: int) -> None:
        super().set_high_watermark(offset)
        if getattr(self, "_early", None) is not None:
            self.first_unstable, self._early = self._early, None


class ExpiresWithItsData(ProducerStateManager):
    """A producer is as old as its last data batch; one without any is expired."""

    def is_expired(self, entry: ProducerEntry, now: int) -> bool:
        last = entry.batches[-1].timestamp if entry.batches else -1
        return entry.transaction is None and now - last >= self.expiration_ms


class ExpiresOpenOnes(ProducerStateManager):
    def is_expired(self, entry: ProducerEntry, now: int) -> bool:
        return now - entry.last_timestamp >= self.expiration_ms

    def remove_expired_producers(self, now: int) -> None:
        super().remove_expired_producers(now)
        self.ongoing = {f: i for f, i in self.ongoing.items() if i in self.producers}


class SavesNoTransaction(ProducerEntry):
    """A snapshot does not say what is open."""

    def snapshot(self) -> SnapshotEntry:
        return super().snapshot()._replace(transaction=-1)


class EntrySavesNoTransaction(ProducerStateManager):
    Entry = SavesNoTransaction


class KeepsEnds(TransactionalLog):
    """A log that is loaded still knows which ends are not replicated."""

    def reopen(self, high_watermark: int, now: int) -> None:
        known = dict(self.producers.unreplicated)
        super().reopen(high_watermark, now)
        self.producers.unreplicated = {f: c for f, c in known.items() if c.last_offset >= self.high_watermark}
        self.look_up_first_unstable()


class LoadsNoHighWatermark(TransactionalLog):
    """The high watermark of a log that is loaded is its end."""

    def reopen(self, high_watermark: int, now: int) -> None:
        super().reopen(self.end, now)


class RollsWithoutSnapshot(TransactionalLog):
    def roll(self) -> None:
        known = self.producers.last_snapshot
        self.producers.last_snapshot = self.end
        super().roll()
        self.producers.last_snapshot = known


class RollsTwice(TransactionalLog):
    """An empty last segment stays beside the new one."""

    def roll(self) -> None:
        if self.active.base == self.end and not self.active.batches:
            self.segments.append(self.active)
        super().roll()


# ---- reads
class CommittedToTheHighWatermark(TransactionalLog):
    """A read_committed fetch goes up to the high watermark."""

    def read(self, start: int, max_batches: int, read_committed: bool) -> FetchInfo:
        known, self.first_unstable = self.first_unstable, None
        try:
            return super().read(start, max_batches, read_committed)
        finally:
            self.first_unstable = known


class WithTheBoundsBatch(TransactionalLog):
    """The batch that begins at the bound is given too."""

    def _place(self, offset: int) -> Bound:
        found = super()._place(offset)
        at = self.segments[found.segment].batches
        more = offset in (self.last_stable, self.high_watermark) and found.position < len(at)
        return found._replace(position=found.position + 1) if more else found


class PlaceOfBeforeTheRoll(TransactionalLog):
    """A high watermark at which a segment was rolled keeps its place in the segment before: a fetch in the new one
    has no bound."""

    def read(self, start: int, max_batches: int, read_committed: bool) -> FetchInfo:
        if self.high_watermark == self.active.base and self.active.base <= start and not read_committed:
            at = self._place(start)
            return FetchInfo(self.segments[at.segment].batches[at.position :][:max_batches], None)
        return super().read(start, max_batches, read_committed)


class AnyStart(TransactionalLog):
    """A fetch below the log start begins there."""

    def read(self, start: int, max_batches: int, read_committed: bool) -> FetchInfo:
        return super().read(max(start, self.log_start), max_batches, read_committed)


class OneSegmentsAborts(TransactionalLog):
    """The aborted transactions are looked for in the segment that is read alone."""

    def read(self, start: int, max_batches: int, read_committed: bool) -> FetchInfo:
        found = super().read(start, max_batches, read_committed)
        at = self._place(start)
        own = set(self.segments[at.segment].index)
        return found._replace(aborted=None if found.aborted is None else [a for a in found.aborted if a in own])


class WhatBeginsInTheFetch(TransactionalLog):
    """A transaction that began before the fetch is not told."""

    def read(self, start: int, max_batches: int, read_committed: bool) -> FetchInfo:
        found = super().read(start, max_batches, read_committed)
        told = None if found.aborted is None else [a for a in found.aborted if a.first_offset >= start]
        return found._replace(aborted=told)


class UpToTheBatch(TransactionalLog):
    """What begins with the last batch of the fetch is not told any more."""

    def read(self, start: int, max_batches: int, read_committed: bool) -> FetchInfo:
        found = super().read(start, max_batches, read_committed)
        if not found.batches or found.aborted is None:
            return found
        return found._replace(aborted=[a for a in found.aborted if a.first_offset < found.batches[-1].base])


# ---- the consumer
class DropsForGood(Consumer):
    """An abort marker does not end the dropping."""

    def _is_dropped(self, batch: Batch) -> bool:
        dropping = set(self.dropping)
        found = super()._is_dropped(batch)
        self.dropping |= dropping
        return found


class DropsNothing(Consumer):
    def _is_dropped(self, batch: Batch) -> bool:
        return False


class DropsWhoEverAborted(Consumer):
    """All of a producer that is told is dropped, from the fetch's beginning on."""

    def _is_dropped(self, batch: Batch) -> bool:
        told = {a.producer_id for a in self.fetched.aborted or ()}
        return batch.is_transactional and not batch.is_control and batch.producer_id in told


class HandsOutMarkers(Consumer):
    def __iter__(self) -> Iterator[int]:
        for batch in self.fetched.batches:
            if not self._is_dropped(batch):
                yield from range(max(batch.base, self.position), batch.last + 1)
            self.position = batch.last + 1


class FromTheBatch(Consumer):
    """Records of the first batch below the position are handed out again."""

    def __iter__(self) -> Iterator[int]:
        if self.fetched.batches:
            self.position = self.fetched.batches[0].base
        yield from super().__iter__()


class StaysBeforeMarkers(Consumer):
    """Goes on behind the last record that it handed out."""

    def __iter__(self) -> Iterator[int]:
        start = last = self.position
        for offset in super().__iter__():
            last = offset + 1
            yield offset
        self.position = max(start, last)


def _log(log: type[TransactionalLog]) -> Callable[[], Any]:
    def make() -> last_stable_driver.Driver:
        driver = last_stable_driver.Driver()
        driver.Log = log
        driver.reset({})
        return driver

    return make


def _manager(manager: type[ProducerStateManager]) -> Callable[[], Any]:
    return _log(type("Faulty", (TransactionalLog,), {"Manager": manager}))


def _appending(appending: type[Append]) -> Callable[[], Any]:
    return _manager(type("Faulty", (ProducerStateManager,), {"Appending": appending}))


def _reader(reader: type[Consumer]) -> Callable[[], Any]:
    def make() -> last_stable_driver.Driver:
        driver = last_stable_driver.Driver()
        driver.Reader = reader
        return driver

    return make


# ---- the spec
def _undecided_is_stable() -> Any:
    def body(state: PartitionLog, offset: int) -> Any:
        step = rule(spec.maybe_increment_high_watermark)(state, offset)
        return step if isinstance(step, Refused) else replace(step, first_unstable=None)

    return with_fault(spec.machine, "maybeIncrementHighWatermark", body)


def _a_deleted_abort_is_kept() -> Any:
    def body(state: PartitionLog, offset: int) -> Any:
        return replace(rule(spec.truncate_to)(state, offset), aborted=state.aborted)

    return with_fault(spec.machine, "truncateTo", body)


def _time_before_the_log_start() -> Any:
    def body(state: PartitionLog, retention_ms: int) -> Any:
        low = replace(state, log_start=0)
        old = spec.first_segments(
            low, lambda base: state.producers.now - spec.largest_timestamp(state, base) > retention_ms
        )
        if old:
            return spec.without_segments(spec.roll_raw(state) if old == state.segments else state, old)
        return rule(spec.delete_old_segments)(state, 2**63 - 1)

    return with_fault(spec.machine, "deleteOldSegments", body)


def _consumes_the_aborted() -> Any:
    def body(state: PartitionLog, start_offset: int, max_batches: int, read_committed: bool) -> Any:
        found = answer(state, start_offset, max_batches, read_committed)
        if isinstance(found, Refused):
            return found
        following = found.batches[-1].last_offset + 1 if found.batches else start_offset
        told = Fetch(found.batches, (found.aborted_transactions or ())[:1])
        return Poll(tuple(handed_out(told, start_offset)), following)

    return with_fault(spec.machine, "consume", body)


# ---- the model
def _stable_when_marked() -> LoadedModel:
    class Readers(model.Readers):
        @define
        def is_stable(s, o: Offset) -> bool:
            return o <= s.high and (
                o <= s.start or all(s.open_at[s.end][p] is None or o <= s.open_at[s.end][p] for p in Producer)
            )

    return load(Readers)


def _cuts_what_was_forgotten() -> LoadedModel:
    class Readers(model.Readers):
        @action("LSO-8", "LSO-9", who="replication")
        def truncate(s, x: Offset, loaded: Offset) -> None:
            require(s.high <= x, x < s.end, loaded <= x)
            s.next.end = x
            s.next.who = {y: s.who[y] if y < x else None for y in range(L + 1)}
            s.next.kind = {y: s.kind[y] if y < x else Kind.NOTHING for y in range(L + 1)}
            s.next.decided = {
                y: s.decided[y] if y < x and s.decided[y] is not None and s.decided[y] < x else None
                for y in range(L + 1)
            }
            s.next.began = {y: s.began[y] if y < x else None for y in range(L + 1)}
            s.next.open_at = {y: {p: s.open_at[y][p] if y <= x else None for p in Producer} for y in range(L + 1)}
            s.next.ended = {f: None for f in range(L + 1)}
            s.next.forgotten = loaded if s.forgotten < loaded else s.forgotten

    return load(Readers)


def _tells_what_begins_in_the_fetch() -> LoadedModel:
    class Readers(model.Readers):
        @action("LSO-12", "LSO-13", who="reader")
        def collect(s, upper: Offset) -> None:
            require(s.bound is not None, not s.collected, s.bound <= upper)
            s.next.told = {
                p: {
                    f
                    for f in range(L + 1)
                    if s.position <= f
                    and f < upper
                    and any(
                        m >= s.position and s.kind[m] == Kind.ABORT and s.who[m] == p and s.began[m] == f
                        for m in range(L + 1)
                    )
                }
                for p in Producer
            }
            s.next.collected = True

    return load(Readers)


def _drops_for_good() -> LoadedModel:
    class Readers(model.Readers):
        @action("LSO-11", "LSO-16", who="reader")
        def consume(s, p: Producer) -> None:
            require(s.bound is not None, s.collected, s.position < s.bound, s.who[s.position] == p)
            if s.kind[s.position] == Kind.PLAIN or (s.kind[s.position] == Kind.TRANSACTIONAL and not s.is_dropped(p)):
                s.next.seen = s.seen | {s.position}
            s.next.dropping = {q for q in Producer if s.is_dropped(q)}
            s.next.told = {q: {f for f in range(L + 1) if f in s.told[q] and f > s.position} for q in Producer}
            s.next.position = s.position + 1

    return load(Readers)


def _a_commit_ends_the_dropping() -> LoadedModel:
    """Of whoever writes it."""

    class Readers(model.Readers):
        @action("LSO-11", "LSO-16", who="reader")
        def consume(s, p: Producer) -> None:
            require(s.bound is not None, s.collected, s.position < s.bound, s.who[s.position] == p)
            if s.kind[s.position] == Kind.PLAIN or (s.kind[s.position] == Kind.TRANSACTIONAL and not s.is_dropped(p)):
                s.next.seen = s.seen | {s.position}
            s.next.dropping = {
                q for q in Producer if s.is_dropped(q) and s.kind[s.position] in (Kind.PLAIN, Kind.TRANSACTIONAL)
            }
            s.next.told = {q: {f for f in range(L + 1) if f in s.told[q] and f > s.position} for q in Producer}
            s.next.position = s.position + 1

    return load(Readers)


def _an_end_holds_back_for_good() -> LoadedModel:
    class Readers(model.Readers):
        @action("LSO-5", who="replication")
        def replicate(s, h: Offset) -> None:
            require(s.high < h, h <= s.end)
            s.next.high = h

    return load(Readers)


def _a_start_forgets_nothing() -> LoadedModel:
    class Readers(model.Readers):
        @action("LSO-9", who="environment")
        def reopen(s) -> None:
            s.next.forgotten = s.end

    return load(Readers)


def _one_fetch_alone() -> LoadedModel:
    class Readers(model.Readers):
        @action("LSO-16", who="reader")
        def finish(s) -> None:
            require(s.bound is not None)
            s.next.collected = False
            s.next.told = {q: set() for q in model.Producer}
            s.next.dropping = set()

    return load(Readers)


def _skips_nothing() -> LoadedModel:
    class Readers(model.Readers):
        @action("LSO-10", who="reader")
        def fall_behind(s) -> None:
            require(s.bound is None, s.position <= s.start)
            s.next.position = s.start
            s.next.skipped = s.start

    return load(Readers)


def _the_start_falls() -> LoadedModel:
    class Stability(model.Stability):
        @action("LSO-6", who="client")
        def delete_records(s, o: Offset) -> None:
            require(o <= s.high)
            s.next.start = o

    return load(Stability)


def _deleting_ends() -> LoadedModel:
    class Stability(model.Stability):
        @action("LSO-6", who="client")
        def delete_records(s, o: Offset) -> None:
            require(s.start < o, o <= s.high)
            s.next.start = o
            s.next.opened = {p: None if s.opened[p] is not None and s.opened[p] < o else s.opened[p] for p in Producer}

    return load(Stability)


def _reads_up_to_the_high_watermark() -> LoadedModel:
    class Readers(model.Readers):
        @action("LSO-10", who="reader")
        def fetch(s, o: Offset) -> None:
            require(s.bound is None, s.start <= s.position, s.position < o, o <= s.high)
            s.next.bound = o

    return load(Readers)


MUTANTS: list[Mutant] = [
    of_impl(
        "stable when marked",
        "LSO-2 LSO-5",
        "what ended is stable before its marker is replicated",
        _manager(StableWhenMarked),
    ),
    of_impl(
        "stable above the high watermark",
        "LSO-1",
        "the end bounds it, not the high watermark",
        _log(AboveTheHighWatermark),
    ),
    of_impl(
        "unstable below the log start",
        "LSO-2 LSO-1",
        "the first unstable offset may be deleted",
        _log(BelowTheLogStart),
    ),
    of_impl("looked up when appended", "LSO-2 LSO-5", "a high watermark makes nothing stable", _log(LooksWhenAppended)),
    of_impl("every abort is indexed", "LSO-4", "a late marker aborts what is not open", _log(IndexesEveryAbort)),
    of_impl("commits are indexed", "LSO-4 LSO-12", "a committed transaction is told as aborted", _log(IndexesCommits)),
    of_impl("all stable at a marker", "LSO-4 LSO-12", "other open transactions do not count", _manager(LaterStable)),
    of_impl("one by one", "LSO-18", "each batch of an append is one of its own", _log(OneByOne)),
    of_impl("keeps the first", "LSO-18", "a refused batch leaves those before it", _log(KeepsTheFirst)),
    of_impl("duplicates go in", "LSO-3", "the last batch may be appended again", _log(AppendsDuplicates)),
    of_impl("nothing is verified", "LSO-19", "a late batch opens a transaction", _log(VerifiesNothing)),
    of_impl("any guard", "LSO-19", "that of another verification is taken", _log(TakesAnyGuard)),
    of_impl("one guard for all", "LSO-19", "an old answer opens a new transaction", _log(OneGuardForAll)),
    of_impl("verified once", "LSO-19", "a marker leaves what was verified before it", _log(VerifiedOnce)),
    of_impl("every marker ends", "LSO-19", "the next transaction must be verified again", _log(EveryMarkerEnds)),
    of_impl("every batch is verified", "LSO-19", "an open transaction does not go on", _log(VerifiesEveryBatch)),
    of_impl("a follower checks", "LSO-3", "what the leader took is refused", _appending(FollowerChecks), "KAFKA-6003"),
    of_impl("zombies write", "LSO-3", "an earlier epoch goes on with its transaction", _appending(ZombiesWrite)),
    of_impl(
        "markers of any version", "LSO-3", "a marker of version 2 needs no new epoch", _appending(MarkersOfAnyVersion)
    ),
    of_impl("any coordinator", "LSO-3", "an earlier coordinator may decide", _appending(AnyCoordinator)),
    of_impl("falls", "LSO-5 LSO-1", "a leader's high watermark goes back", _log(Falls)),
    of_impl("up to the end", "LSO-5", "a high watermark above the end is taken for the end", _log(UpToTheEnd)),
    of_impl(
        "deletes what is not replicated",
        "LSO-6",
        "a log start above the high watermark lifts it",
        _log(DeletesUnreplicated),
    ),
    of_impl("deleted is ended", "LSO-6", "a transaction ends with its first record", _log(DeletedIsEnded)),
    of_impl("keeps the log start", "LSO-7", "retention does not raise it", _log(KeepsTheLogStart)),
    of_impl(
        "deletes above the high watermark",
        "LSO-7",
        "retention looks at time alone",
        _log(DeletesAboveHighWatermark),
        "KAFKA-5634",
    ),
    of_impl(
        "time before the log start",
        "LSO-7",
        "what is below the log start stays until the next look",
        _log(TimeFirst),
        "KAFKA-12177",
    ),
    of_impl(
        "a roll at the same base fails",
        "LSO-14",
        "an empty segment cannot be made again",
        _log(RollsOnce),
        "KAFKA-6388",
    ),
    of_impl(
        "the pending entry is the live one",
        "LSO-3",
        "a batch that is refused leaves its sequence",
        _manager(EntryIsShared),
        "KAFKA-6683",
    ),
    of_impl(
        "a marker is not written again",
        "LSO-3 LSO-4",
        "by transaction version 2 the same marker is refused",
        _appending(MarkersOnce),
        "KAFKA-19999",
    ),
    of_impl("keeps aborts that are cut", "LSO-8", "a truncation leaves the transaction index", _log(KeepsCutAborts)),
    of_impl(
        "the high watermark stays", "LSO-8", "a full truncation does not set it", _log(HighAboveTheEnd), "KAFKA-9491"
    ),
    of_impl(
        "looked up too early",
        "LSO-8 LSO-2",
        "a truncation publishes what was unstable before it",
        _log(LooksTooEarly),
        "KAFKA-12153",
    ),
    of_impl(
        "expires with its data",
        "LSO-15 LSO-3",
        "a marker does not keep its producer known",
        _manager(ExpiresWithItsData),
        "KAFKA-9144",
    ),
    of_impl("open ones expire", "LSO-15", "an idle transaction is forgotten", _manager(ExpiresOpenOnes)),
    of_impl("a snapshot without transactions", "LSO-9", "what is open is forgotten", _manager(EntrySavesNoTransaction)),
    of_impl("ends outlive a process", "LSO-9", "an end that was not replicated is unstable still", _log(KeepsEnds)),
    of_impl("loaded to the end", "LSO-9", "the high watermark is the log's end", _log(LoadsNoHighWatermark)),
    of_impl("rolled without a snapshot", "LSO-14 LSO-9", "none is there to be loaded", _log(RollsWithoutSnapshot)),
    of_impl("an empty segment stays", "LSO-14", "two segments begin at one offset", _log(RollsTwice)),
    of_impl(
        "committed up to the high watermark",
        "LSO-10 LSO-11",
        "the undecided is read",
        _log(CommittedToTheHighWatermark),
    ),
    of_impl("with the batch at the bound", "LSO-10", "one batch too much is read", _log(WithTheBoundsBatch)),
    of_impl(
        "the place before the roll",
        "LSO-10",
        "a fetch in a new segment has no bound",
        _log(PlaceOfBeforeTheRoll),
        "KAFKA-9196",
    ),
    of_impl("any start", "LSO-10", "a fetch below the log start is not refused", _log(AnyStart)),
    of_impl("one segment's aborts", "LSO-12", "a marker in a later segment is not told", _log(OneSegmentsAborts)),
    of_impl(
        "aborts that begin in the fetch", "LSO-12", "one that began before is not told", _log(WhatBeginsInTheFetch)
    ),
    of_impl("aborts up to the last batch", "LSO-13 LSO-12", "what begins with it is not told", _log(UpToTheBatch)),
    of_impl("drops for good", "LSO-11", "the next transaction is dropped too", _reader(DropsForGood)),
    of_impl("drops nothing", "LSO-11", "the aborted are handed out", _reader(DropsNothing)),
    of_impl("drops who ever aborted", "LSO-11", "a transaction before is dropped too", _reader(DropsWhoEverAborted)),
    of_impl("hands out markers", "LSO-16", "a marker is a record", _reader(HandsOutMarkers)),
    of_impl("from the batch", "LSO-16", "records below the position are handed out again", _reader(FromTheBatch)),
    of_impl("stays before markers", "LSO-16", "goes on behind the last record", _reader(StaysBeforeMarkers)),
    of_spec("spec: undecided is stable", "LSO-1 LSO-2", "a high watermark makes all stable", _undecided_is_stable),
    of_spec(
        "spec: time before the log start",
        "LSO-7",
        "one look leaves what the next one deletes",
        _time_before_the_log_start,
        "KAFKA-12177",
    ),
    of_spec("spec: a cut abort is kept", "LSO-8", "its entry outlives the marker", _a_deleted_abort_is_kept),
    of_spec("spec: one abort is told", "LSO-11 LSO-12", "the consumer drops one producer's", _consumes_the_aborted),
    of_model(
        "Readers: stable when marked",
        "LSO-2 LSO-5",
        "ends that are not replicated are stable",
        _stable_when_marked,
    ),
    of_model(
        "Readers: cuts what was forgotten",
        "LSO-8 LSO-9",
        "a marker that was taken for replicated is cut",
        _cuts_what_was_forgotten,
    ),
    of_model(
        "Readers: tells what begins in the fetch",
        "LSO-12",
        "earlier ones are left out",
        _tells_what_begins_in_the_fetch,
    ),
    of_model("Readers: drops for good", "LSO-11", "a marker does not end it", _drops_for_good),
    of_model("Readers: any marker ends the dropping", "LSO-11", "also another producer's", _a_commit_ends_the_dropping),
    of_model(
        "Readers: reads up to the high watermark",
        "LSO-10 LSO-1",
        "not to the last stable offset",
        _reads_up_to_the_high_watermark,
    ),
    of_model("Readers: an end holds back for good", "LSO-5", "when it is replicated", _an_end_holds_back_for_good),
    of_model("Readers: a start forgets nothing", "LSO-9", "that is not replicated", _a_start_forgets_nothing),
    of_model("Readers: one fetch alone", "LSO-16", "and never another", _one_fetch_alone),
    of_model("Readers: skips nothing", "LSO-10", "and says that it did", _skips_nothing),
    of_model("Stability: start falls", "LSO-6", "records are deleted up to a lower offset", _the_start_falls),
    of_model("Stability: deleting ends", "LSO-6", "a transaction ends with its first record", _deleting_ends),
]

FEWER = "It makes fewer steps, none of which a witness tells from the others."
SURVIVORS: dict[str, str] = {
    "Readers.replicate: guard 1, off by one": "What a truncation has made known again may be forgotten at any time.",
    "Readers.truncate: guard 1, off by one": FEWER,
    "Readers.truncate: guard 1, other parameter": FEWER,
    "Readers.truncate: guard 2, off by one": FEWER,
    "Readers.truncate: guard 2, other parameter": FEWER,
    "Readers.fetch: guard 5, off by one (2)": FEWER,
    "Readers.fetch: guard 5, off by one (3)": FEWER,
    "Readers.collect: no guard 2": "What was aborted may be looked up again, wherever the consumer is.",
    "Readers.collect: effect 1, off by one": "The next upper offset tells the same.",
    "Readers.consume: effect 3, off by one": "What begins at the position is dropped from there on, told or not.",
}
"""Generated faults of the models that nobody can notice, and why."""


# ---- faults of range, boundary, depth, configuration and rare state
class WrapsBySubtraction(BatchMetadata):
    @property
    def first_seq(self) -> int:
        return self.last_seq - self.offset_delta


class AppendWraps(Append):
    Batch = WrapsBySubtraction


class BeginsBySubtraction(Append):
    """A transaction begins as many offsets below its batch's last as the sequences differ."""

    def data(
        self, epoch: int, first_seq: int, last_seq: int, first_offset: int, last_offset: int, timestamp: int,
        transactional: bool,
    ) -> None:  # fmt: skip
        was_open = self.updated.transaction is not None
        super().data(epoch, first_seq, last_seq, first_offset, last_offset, timestamp, transactional)
        if transactional and not was_open:
            self.updated.transaction = self.started[-1] = last_offset - (last_seq - first_seq)


class ZeroIsNone(TransactionalLog):
    """A first unstable offset of 0 is none."""

    def look_up_first_unstable(self) -> None:
        super().look_up_first_unstable()
        self.first_unstable = self.first_unstable or None


class UpToItsMarker(ProducerStateManager):
    """A marker right below the high watermark is not stable yet."""

    def on_high_watermark_updated(self, offset: int) -> None:
        super().on_high_watermark_updated(offset - 1)


class ReadsWhatItNeverKnew(TransactionalLog):
    """A truncation reads the log although nothing was known."""

    def _rebuild(self, now: int, clean: bool) -> None:
        if not clean:
            self.producers.end_offset = min(self.producers.end_offset, max(0, self.end - 1))
        super()._rebuild(now, clean)


class RetainsLess(TransactionalLog):
    """What is exactly as old as retention.ms is deleted."""

    def delete_old_segments(self, retention_ms: int, now: int) -> None:
        super().delete_old_segments(max(0, retention_ms - 1), now)


class TwoSegmentsAborts(TransactionalLog):
    def read(self, start: int, max_batches: int, read_committed: bool) -> FetchInfo:
        found = super().read(start, max_batches, read_committed)
        at = self._place(start)
        own = {e for s in self.segments[at.segment : at.segment + 2] for e in s.index}
        return found._replace(aborted=None if found.aborted is None else [a for a in found.aborted if a in own])


class TwoAborts(TransactionalLog):
    """A fetch is told of two at most."""

    def _aborted(self, segment: int, start: int, upper: int) -> list[AbortedTxn]:
        return super()._aborted(segment, start, upper)[:2]


class CommitsFirst(TransactionalLog):
    """Of transactions that end in one append those that are committed end first."""

    def _take_in(self, batches: Iterable[Batch]) -> list[CompletedTransaction]:
        return sorted(super()._take_in(batches), key=lambda completed: completed.aborted)


class ReadsBatchByBatch(TransactionalLog):
    """A segment is read as so many appends."""

    def _read(self, segment: Any, start: int) -> None:
        for n in range(segment.position(start) or 0, len(segment.batches)):
            if segment.batches[n].last >= start:
                part = impl.Segment(segment.base, segment.index, segment.batches[n : n + 1])
                super()._read(part, start)


class EveryBatchIndexed(TransactionalLog):
    """The first batch after a log was loaded has an entry in the offset index."""

    def reopen(self, high_watermark: int, now: int) -> None:
        fresh = self.active.is_fresh
        super().reopen(high_watermark, now)
        self.active.is_fresh = fresh


class InTheOrderOfMarkers(Consumer):
    """The aborted transactions are taken in the order in which they are told."""

    def __init__(self, fetched: FetchInfo, position: int) -> None:
        super().__init__(fetched, position)
        self.told = [(a.first_offset, a.producer_id) for a in fetched.aborted or ()]

    def _is_dropped(self, batch: Batch) -> bool:
        self.queue = []
        while self.told and self.told[0][0] <= batch.last:
            self.dropping.add(self.told.pop(0)[1])
        return super()._is_dropped(batch)


class NoLastEpoch(Append):
    """The last epoch is refused, as one that was never given out."""

    def _check_epoch(self, epoch: int, version: int, stale: Any = producer_state.StaleEpoch) -> None:
        if epoch == producer_state.SHORT_MAX and self.origin != REPLICATION:
            raise stale
        super()._check_epoch(epoch, version, stale)


RARE = [
    of_impl(
        "sequences by subtraction",
        "LSO-3",
        "a batch across 2^31 - 1 is not known again",
        _appending(AppendWraps),
        "KAFKA-7692",
    ),
    of_impl(
        "begins by subtraction",
        "LSO-2 LSO-3",
        "a transaction that begins with a batch across 2^31 - 1 is unstable from far above its records",
        _appending(BeginsBySubtraction),
        "KAFKA-7692",
    ),
    of_impl("0 is not unstable", "LSO-2", "a transaction that begins at 0 is stable", _log(ZeroIsNone)),
    of_impl(
        "up to its marker", "LSO-5", "a marker right below the high watermark is unstable", _manager(UpToItsMarker)
    ),
    of_impl("reads what it never knew", "LSO-9", "a truncation finds producers again", _log(ReadsWhatItNeverKnew)),
    of_impl("retains less", "LSO-7", "what is as old as retention.ms is deleted", _log(RetainsLess)),
    of_impl("two segments' aborts", "LSO-12", "a marker in the third is not told", _log(TwoSegmentsAborts)),
    of_impl("two aborts", "LSO-12", "a third aborted transaction is not told", _log(TwoAborts)),
    of_impl("commits end first", "LSO-18", "what ends later is stable first", _log(CommitsFirst)),
    of_impl("reads batch by batch", "LSO-9", "an epoch that came back has no batches", _log(ReadsBatchByBatch)),
    of_impl("every batch indexed", "LSO-13", "fewer aborted transactions are told", _log(EveryBatchIndexed)),
    of_impl("in the order of markers", "LSO-11", "one that began earlier comes too late", _reader(InTheOrderOfMarkers)),
    of_impl("no last epoch", "LSO-3", "epoch 32767 is refused", _appending(NoLastEpoch)),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE
