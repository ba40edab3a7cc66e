"""Faults of the controller's offsets, each with the clauses that it breaks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kafkaspec.contract.machine import Refused, Step
from kafkaspec.impl.controller import offset_control as impl
from kafkaspec.impl.controller.offset_control import NONE, Marker, OffsetControl, Replay, SnapshotId
from kafkaspec.impl.controller.offset_control_driver import Driver
from kafkaspec.impl.controller.timeline import SnapshotRegistry
from kafkaspec.language import LoadedModel, action, define, load, require
from kafkaspec.models.controller import offset_control as model
from kafkaspec.models.controller.offset_control import WHOLE, Kind, N, Next, Offset
from kafkaspec.mutants.mutant import Mutant, driver_with, of_impl, of_model, of_spec, with_fault
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH
from kafkaspec.spec.controller import offset_control as spec
from kafkaspec.spec.controller.offset_control import Offsets


def _of(make: type[OffsetControl]) -> Callable[[], Driver]:
    """What makes a driver of a faulty manager."""
    return driver_with(Driver, make=make)


class BeginsWithoutSnapshot(OffsetControl):
    def __init__(self, registry: SnapshotRegistry, clock: Callable[[], int]) -> None:
        super().__init__(registry, clock)
        registry.reset()


class ActivatesAgain(OffsetControl):
    def activate(self, new_next_write_offset: int) -> None:
        if self.active and new_next_write_offset >= 0:
            self.next_write = new_next_write_offset
            return
        super().activate(new_next_write_offset)


class ActivatesAnywhere(OffsetControl):
    def activate(self, new_next_write_offset: int) -> None:
        super().activate(max(new_next_write_offset, 0))


class ActivatesWithoutSnapshot(OffsetControl):
    """Where giving up was refused, or nothing was committed since: the snapshot is not taken."""

    def activate(self, new_next_write_offset: int) -> None:
        if self.active or new_next_write_offset < 0:
            super().activate(new_next_write_offset)
        self.next_write = new_next_write_offset
        self.gauges.active = True


class StaysAsItIs(OffsetControl):
    """A controller that gives up keeps what was not committed."""

    def deactivate(self) -> None:
        if not self.active or self.last_stable not in self.registry.epochs:
            super().deactivate()
        self.gauges.active = False
        self.gauges.last_applied = self.last_stable
        self.next_write = NONE


class GoesBackToTheCommitted(OffsetControl):
    """A controller that gives up goes back to what is committed, transaction or not."""

    def deactivate(self) -> None:
        stable = self.last_stable
        if self.active and self.last_committed in self.registry.epochs and self.last_stable in self.registry.epochs:
            self.last_stable = self.last_committed
        try:
            super().deactivate()
        finally:
            self.last_stable = stable
            if not self.active:
                self.gauges.last_applied = stable


class GivesUpAnyway(OffsetControl):
    """Without a snapshot at the stable offset nothing is reverted, and nobody told."""

    def deactivate(self) -> None:
        with contextlib.suppress(impl.NoWayBackError):
            super().deactivate()


class StaysActive(OffsetControl):
    """Where giving up is refused."""

    def deactivate(self) -> None:
        before = self.next_write
        try:
            super().deactivate()
        except impl.NoWayBackError:
            self.next_write = before
            raise


class ForgetsTheTransaction(OffsetControl):
    """A controller that gives up has no transaction open, as its begin record may have gone."""

    def deactivate(self) -> None:
        super().deactivate()
        self.transaction_start = NONE


class SnapshotsNoAppend(OffsetControl):
    def scheduled(self, last_offset: int) -> None:
        if self.next_write == last_offset:  # a batch of two
            self.next_write = last_offset + 1
            self.gauges.last_applied = last_offset
            self.gauges.last_applied_timestamp = self.clock()
            return
        super().scheduled(last_offset)


class WritesOver(OffsetControl):
    """The next write offset is that of the last record."""

    def scheduled(self, last_offset: int) -> None:
        super().scheduled(last_offset)
        self.next_write = last_offset


class KeepsTheEpoch(OffsetControl):
    def committed(self, last_offset: int, epoch: int, append_timestamp: int) -> None:
        super().committed(last_offset, max(epoch, self.committed_epoch) if epoch != 1 else 0, append_timestamp)


class CommitsToTheEnd(OffsetControl):
    """On the active controller, whatever was handed to raft counts as committed."""

    def committed(self, last_offset: int, epoch: int, append_timestamp: int) -> None:
        super().committed(max(last_offset, self.next_write - 1), epoch, append_timestamp)


class StableIsCommitted(OffsetControl):
    """A transaction holds nothing back."""

    def _advance(self) -> None:
        start, self.transaction_start = self.transaction_start, NONE
        super()._advance()
        self.transaction_start = start


class StableWithTheBegin(OffsetControl):
    """The begin record is stable."""

    def _advance(self) -> None:
        if self.transaction_start != NONE:
            self.transaction_start += 1
            super()._advance()
            self.transaction_start -= 1
        else:
            super()._advance()


class StableFalls(OffsetControl):
    def _advance(self) -> None:
        super()._advance()
        if self.transaction_start != NONE:
            self.last_stable = min(self.last_stable, self.transaction_start - 2)


class KeepsSnapshots(OffsetControl):
    """Those below the stable offset."""

    def _advance(self) -> None:
        deleting = self.registry.delete_snapshots_up_to
        self.registry.delete_snapshots_up_to = lambda epoch: None  # type: ignore[method-assign]
        super()._advance()
        self.registry.delete_snapshots_up_to = deleting  # type: ignore[method-assign]


class DeletesTheStableToo(OffsetControl):
    def _advance(self) -> None:
        before = self.last_stable
        super()._advance()
        if self.active and self.last_stable > before:
            self.registry.delete_snapshots_up_to(self.last_stable + 1)


class NoSnapshotOnAStandby(OffsetControl):
    def _advance(self) -> None:
        before = self.last_stable
        super()._advance()
        if not self.active and self.last_stable > before:
            self.registry.delete_snapshots_up_to(LATEST_EPOCH)


class SnapshotOnTheActive(OffsetControl):
    def _advance(self) -> None:
        super()._advance()
        if self.active and self.last_stable > self.registry.highest_epoch:
            self.registry.get_or_create_snapshot(self.last_stable)


class KeepsTheOpenOne(OffsetControl):
    """A standby keeps the snapshots from the transaction on, though it has none to go back to."""

    def _advance(self) -> None:
        before = self.last_stable
        super()._advance()
        if not self.active and self.last_stable > before and self.last_committed > self.registry.highest_epoch:
            self.registry.get_or_create_snapshot(self.last_committed)


class StableByControlBatches(OffsetControl):
    def control_committed(self, last_offset: int, append_timestamp: int) -> None:
        super().control_committed(last_offset, append_timestamp)
        if last_offset > self.last_committed:
            self.last_committed = last_offset
            self._advance()


class BeginsTwice(OffsetControl):
    def _begin(self, offset: int) -> None:
        if self.transaction_start != NONE:
            self.transaction_start = offset
            return
        super()._begin(offset)


class BeginsWithoutASnapshot(OffsetControl):
    """Where a data record stands before the begin record of the same batch, an abort has nothing to go back to."""

    def _begin(self, offset: int) -> None:
        if self.transaction_start == NONE:
            self.transaction_start = offset
            return
        super()._begin(offset)


class BeginsWithItself(OffsetControl):
    def _begin(self, offset: int) -> None:
        super()._begin(offset)
        self.transaction_start = offset + 1


class EndsNothing(OffsetControl):
    def mark(self, marker: Marker, offset: int) -> None:
        if marker is Marker.END and self.transaction_start == NONE and self.loading is None:
            return
        super().mark(marker, offset)


class StaysOpen(OffsetControl):
    def mark(self, marker: Marker, offset: int) -> None:
        start = self.transaction_start
        super().mark(marker, offset)
        if marker is Marker.END:
            self.transaction_start = start


class EndUndoes(OffsetControl):
    """An end record does what an abort record does."""

    def mark(self, marker: Marker, offset: int) -> None:
        if marker is Marker.END and self.transaction_start - 1 in self.registry.epochs and self.loading is None:
            marker = Marker.ABORT
        super().mark(marker, offset)


class AbortsNothing(OffsetControl):
    def mark(self, marker: Marker, offset: int) -> None:
        if marker is Marker.ABORT and self.transaction_start != NONE and self.loading is None:
            self.transaction_start = NONE
            return
        super().mark(marker, offset)


class AbortsToTheStable(OffsetControl):
    """An abort throws away all that is not stable."""

    def mark(self, marker: Marker, offset: int) -> None:
        if marker is Marker.ABORT and self.transaction_start != NONE and self.loading is None:
            self.transaction_start = self.last_stable + 1
        super().mark(marker, offset)


class AbortsAnyway(OffsetControl):
    """Where there is no snapshot from before the transaction."""

    def mark(self, marker: Marker, offset: int) -> None:
        try:
            super().mark(marker, offset)
        except impl.NothingToAbortError:
            if self.transaction_start == NONE:
                raise
            self.transaction_start = NONE


class MarksInSnapshots(OffsetControl):
    def mark(self, marker: Marker, offset: int) -> None:
        if self.loading is not None and marker is Marker.BEGIN:
            return
        super().mark(marker, offset)


class LoadsTwo(OffsetControl):
    def begin_load(self, of: SnapshotId) -> None:
        self.loading = None
        super().begin_load(of)


class LoadsOver(OffsetControl):
    """What was in the memory stays."""

    def begin_load(self, of: SnapshotId) -> None:
        if self.loading is None:
            self.loading = of
            self.registry.delete_snapshots_up_to(LATEST_EPOCH)
            self._forget()
            return
        super().begin_load(of)


class LoadsWithinATransaction(OffsetControl):
    """The transaction that was open stays open."""

    def begin_load(self, of: SnapshotId) -> None:
        start = self.transaction_start
        super().begin_load(of)
        self.transaction_start = start


class LoadedWithoutSnapshot(OffsetControl):
    def end_load(self, timestamp: int) -> None:
        super().end_load(timestamp)
        self.registry.delete_snapshots_up_to(LATEST_EPOCH)


class LoadedAndNotCommitted(OffsetControl):
    def end_load(self, timestamp: int) -> None:
        super().end_load(timestamp)
        self.last_committed = NONE


class EndsNoLoad(OffsetControl):
    def end_load(self, timestamp: int) -> None:
        if self.loading is not None:
            super().end_load(timestamp)


class AppliesLate(OffsetControl):
    """A batch whose markers are refused leaves no data."""

    def replay(self, records: Sequence[Marker | Replay], first_offset: int) -> None:
        for offset, record in enumerate(records, first_offset):
            if isinstance(record, Marker):
                self.mark(record, offset)
        for offset, record in enumerate(records, first_offset):
            if not isinstance(record, Marker):
                record(offset)


class SkipsWhatIsRefused(OffsetControl):
    """Of a batch with several records."""

    def replay(self, records: Sequence[Marker | Replay], first_offset: int) -> None:
        for offset, record in enumerate(records, first_offset):
            try:
                super().replay([record], offset)
            except impl.OffsetError:
                if len(records) == 1:
                    raise


class PredictsOffsets(OffsetControl):
    """The active controller counts its records from the last one, though raft's own batches stand between."""

    def replay(self, records: Sequence[Marker | Replay], first_offset: int) -> None:
        super().replay(records, self.next_write if self.active else first_offset)


class AbsentWhileLoading(OffsetControl):
    """The metrics tell of a standby while it loads."""

    def begin_load(self, of: SnapshotId) -> None:
        super().begin_load(of)
        self.gauges.active = False


class MeasuresCommits(OffsetControl):
    """On the active controller, too, what is committed counts as applied last."""

    def control_committed(self, last_offset: int, append_timestamp: int) -> None:
        super().control_committed(last_offset, append_timestamp)
        self.gauges.last_applied = last_offset


class MeasuresNoControlBatch(OffsetControl):
    def control_committed(self, last_offset: int, append_timestamp: int) -> None:
        if last_offset == self.last_committed:
            super().control_committed(last_offset, append_timestamp)


class TimeOfTheFirst(OffsetControl):
    """An append keeps the time of the one before."""

    def scheduled(self, last_offset: int) -> None:
        before = self.gauges.last_applied_timestamp
        super().scheduled(last_offset)
        self.gauges.last_applied_timestamp = before


class ClosedWhenCommitted(OffsetControl):
    """What is stable waits for the end record to be committed, as the chapter has it."""

    closed: tuple[int, int] | None = None

    def mark(self, marker: Marker, offset: int) -> None:
        start = self.transaction_start
        super().mark(marker, offset)
        if marker is not Marker.BEGIN:
            self.closed = start, offset

    def _advance(self) -> None:
        if self.closed is not None and self.closed[0] <= self.last_committed < self.closed[1]:
            start, self.transaction_start = self.transaction_start, self.closed[0]
            super()._advance()
            self.transaction_start = start
            return
        super()._advance()


class ReadsNothingLater(OffsetControl):
    """A standby's snapshot at the stable offset is taken where nothing above it was replayed alone."""

    def _advance(self) -> None:
        before = self.last_stable
        super()._advance()
        behind = self.last_committed > self.last_stable > before
        if behind and not self.active and self.registry.latest_epoch == self.last_stable and self.phantom:
            self.registry.delete_snapshots_up_to(LATEST_EPOCH)

    @property
    def phantom(self) -> bool:
        """Whether the open transaction's begin record was not replayed since the controller became a standby."""
        return self.given_up

    given_up = False

    def _begin(self, offset: int) -> None:
        super()._begin(offset)
        self.given_up = False

    def deactivate(self) -> None:
        super().deactivate()
        self.given_up = True


# faults of the spec


def _spec(name: str, clauses: str, what: str, operation: str, change: Callable[..., Any]) -> Mutant:
    """One operation, with what `change` makes of the state before and of what the right one returns."""
    body = spec.machine.find(operation).body

    def faulty(state: Offsets, **arguments: Any) -> Any:
        return change(state, body(state, **arguments))

    return of_spec(name, clauses, what, lambda: with_fault(spec.machine, operation, faulty))


def _after(change: Callable[[Offsets, Offsets], Offsets]) -> Callable[[Offsets, Any], Any]:
    """Of what an operation returns, in whichever form, the state is changed; a refusal stays."""

    def made(before: Offsets, returned: Any) -> Any:
        if isinstance(returned, Refused):
            return returned
        if isinstance(returned, Step):
            return returned if isinstance(returned.result, Refused) else Step(change(before, returned.state))
        return change(before, returned)

    return made


def _commits_what_is_refused(before: Offsets, step: Step[Offsets, None]) -> Step[Offsets, None]:
    if isinstance(step.result, Refused) and step.state.last_committed == before.last_committed:
        return Step(replace(step.state, last_committed=before.last_committed + 1), step.result)
    return step


def _hands_over_what_is_refused(before: Offsets, step: Step[Offsets, None]) -> Step[Offsets, None]:
    if isinstance(step.result, Refused):
        return Step(replace(step.state, next_write=before.next_write + 1), step.result)
    return step


SPEC = [
    _spec(
        "the transaction is forgotten (spec)",
        "OFC-22",
        "when the controller gives up",
        "deactivate",
        _after(lambda before, after: replace(after, transaction_start=NONE)),
    ),
    _spec(
        "nothing is thrown away (spec)",
        "OFC-5",
        "the memory stays when the controller gives up",
        "deactivate",
        _after(lambda before, after: replace(after, registry=after.registry.showing(before.memory))),
    ),
    _spec(
        "the epoch stays (spec)",
        "OFC-8",
        "that of the first commit",
        "handleCommitBatch",
        _after(lambda before, after: replace(after, committed_epoch=max(before.committed_epoch, 0))),
    ),
    _spec(
        "all that is committed is stable (spec)",
        "OFC-9",
        "a transaction or not",
        "handleCommitBatch",
        _after(lambda before, after: replace(after, last_stable=after.last_committed)),
    ),
    _spec(
        "snapshots stay (spec)",
        "OFC-10",
        "below the stable offset",
        "handleCommitBatch",
        _after(lambda before, after: replace(after, registry=before.registry)),
    ),
    _spec(
        "control batches are committed (spec)",
        "OFC-11",
        "their offset is",
        "commitControlBatch",
        _after(lambda before, after: replace(after, last_committed=after.metrics.last_committed)),
    ),
    _spec(
        "the snapshot is of before (spec)",
        "OFC-7",
        "an append's shows the memory without it",
        "appendBatch",
        _after(
            lambda before, after: replace(
                after,
                registry=after.registry._replace(past={**after.registry.past, after.next_write - 1: before.memory}),
            )
        ),
    ),
    _spec("handed over (spec)", "OFC-18", "what is refused", "appendBatch", _hands_over_what_is_refused),
    _spec("committed all the same (spec)", "OFC-19", "what is refused", "commitBatch", _commits_what_is_refused),
    _spec(
        "loaded over (spec)",
        "OFC-16",
        "the memory is not emptied",
        "beginLoadSnapshot",
        _after(lambda before, after: replace(after, registry=after.registry.showing(before.memory))),
    ),
    _spec(
        "loaded without a snapshot (spec)",
        "OFC-17",
        "none is taken at the end",
        "endLoadSnapshot",
        _after(lambda before, after: replace(after, registry=before.registry)),
    ),
    _spec(
        "markers in snapshots (spec)",
        "OFC-15",
        "they are overlooked",
        "replayInSnapshot",
        lambda before, returned: before,
    ),
    _spec(
        "active below all (spec)",
        "OFC-3",
        "the offset is taken for 0",
        "activate",
        _after(lambda before, after: replace(after, next_write=0)),
    ),
]


# faults of the model


class Committing(model.Offsets):
    """A control batch moves the stable offset."""

    @action("OFC-11", who="raft")
    def commit_control(s, last: Offset) -> None:  # type: ignore[override]
        require(s.loading == 0, s.end > 0, s.committed < last, last < s.end, s.start == 0)
        s.next.committed = last
        s.next.stable = last
        s.next.taken = {e: s.taken[e] and e >= last for e in range(N + 1)}
        s.next.saw = {e: {o: s.saw[e][o] and e >= last for o in range(N + 1)} for e in range(N + 1)}


class Unclamped(model.Offsets):
    """An open transaction holds nothing back."""

    @define
    def stable_after(s, last: Offset, start: Offset) -> int:
        return max(s.stable, last)


class Activating(model.Offsets):
    """A controller becomes active without a snapshot, and commits take none."""

    @action("OFC-3", "OFC-4", who="raft")
    def activate(s, n: Next) -> None:
        require(s.end == 0, s.loading == 0, n > s.committed)
        s.next.end = n
        s.next.taken = {e: False for e in range(N + 1)}
        s.next.saw = {e: {o: False for o in range(N + 1)} for e in range(N + 1)}


class Remaining(model.Offsets):
    """A controller that gives up keeps what it has replayed."""

    @action("OFC-5", "OFC-6", "OFC-22", who="raft")
    def deactivate(s) -> None:
        require(s.end > 0, s.taken[s.stable])
        require(not WHOLE or (s.start == 0 and s.stable == s.committed))
        s.next.end = 0
        s.next.taken = {e: s.taken[e] and e <= s.stable for e in range(N + 1)}
        s.next.saw = {e: {o: s.saw[e][o] and e <= s.stable for o in range(N + 1)} for e in range(N + 1)}


class Splitting(model.Offsets):
    """Raft commits a part of a batch."""

    @action("OFC-8", "OFC-9", "OFC-10", "OFC-21", who="raft")
    def commit(s, last: Offset) -> None:
        require(s.end > 0, s.committed < last, last < s.end)
        now = s.stable_after(last, s.start)
        s.next.committed = last
        s.next.stable = now
        s.next.taken = {e: s.taken[e] and e >= now for e in range(N + 1)}
        s.next.saw = {e: {o: s.saw[e][o] and e >= now for o in range(N + 1)} for e in range(N + 1)}


class Aborting(model.Offsets):
    """An abort keeps what the transaction wrote."""

    @define
    def has_after(s, k: Kind, f: Offset, b: Offset, last: Offset, o: Offset) -> bool:
        return s.has[o] or (f <= o and o <= last and (k == Kind.DATA or o != b))


class Nesting(model.Offsets):
    """A begin record takes the place of the one before."""

    @define
    def may_replay(s, k: Kind, f: Offset, b: Offset, last: Offset) -> None:
        require(f <= b, b <= last, k in (Kind.DATA, Kind.BEGIN) or s.start > 0)
        require(k != Kind.ABORT or s.taken[s.start - 1])


class Closing(model.Offsets):
    """An end record is taken where nothing is open."""

    @define
    def may_replay(s, k: Kind, f: Offset, b: Offset, last: Offset) -> None:
        require(f <= b, b <= last, k in (Kind.DATA, Kind.END) or (k == Kind.BEGIN) == (s.start == 0))
        require(k != Kind.ABORT or s.taken[s.start - 1])


class Overlooking(model.Offsets):
    """The snapshot before a transaction is without what its batch has before it."""

    @define
    def saw_after(s, k: Kind, f: Offset, b: Offset, e: Offset, o: Offset) -> bool:
        return (
            s.saw[e][o] and e < s.start
            if k == Kind.ABORT
            else s.has[o]
            if k == Kind.BEGIN and e == b - 1 and not s.taken[e]
            else s.saw[e][o]
        )


def _loaded(of: type[model.Offsets]) -> Callable[[], LoadedModel]:
    return lambda: load(of)


FaultRow = tuple[str, str, str, type[OffsetControl], str | None]
"""Name, clauses, the fault, the faulty manager, and the bug of Kafka's that it is."""


def _impl(*rows: FaultRow) -> list[Mutant]:
    return [of_impl(name, clauses, what, _of(make), bug) for name, clauses, what, make, bug in rows]


IMPL = _impl(
    ("no first snapshot", "OFC-1", "there is none at -1", BeginsWithoutSnapshot, None),
    ("active twice", "OFC-3", "an active controller becomes active again", ActivatesAgain, None),
    ("active anywhere", "OFC-3", "a negative offset is taken for 0", ActivatesAnywhere, None),
    ("nothing is thrown away", "OFC-5", "the memory stays when the controller gives up", StaysAsItIs, None),
    ("no snapshot of two", "OFC-7", "none is taken at the end of a batch of two", SnapshotsNoAppend, None),
    ("written over", "OFC-7", "the next write offset is that of the last record", WritesOver, None),
    ("an epoch too low", "OFC-8", "epoch 1 counts as 0", KeepsTheEpoch, None),
    ("committed to the end", "OFC-8", "all that was handed to raft is", CommitsToTheEnd, None),
    ("all that is committed is stable", "OFC-9", "a transaction or not", StableIsCommitted, None),
    ("stable with its begin", "OFC-9", "the begin record is stable", StableWithTheBegin, None),
    ("stable falls", "OFC-9", "by one, while a transaction is open", StableFalls, None),
    ("snapshots stay", "OFC-10", "below the stable offset", KeepsSnapshots, None),
    ("one on the active", "OFC-10", "beyond all that it appended", SnapshotOnTheActive, None),
    ("stable by control batches", "OFC-11", "they count as committed", StableByControlBatches, "KAFKA-17608"),
    ("begins twice", "OFC-12", "a second begin takes the place of the first", BeginsTwice, None),
    ("begins behind itself", "OFC-12", "at the next offset", BeginsWithItself, None),
    ("ends nothing", "OFC-13", "an end without a transaction is taken", EndsNothing, None),
    ("stays open", "OFC-13", "after its end", StaysOpen, None),
    ("end undoes", "OFC-13", "what the transaction wrote is gone", EndUndoes, None),
    ("aborts nothing", "OFC-14", "what was aborted stays", AbortsNothing, None),
    ("aborts to the stable", "OFC-14", "what was there before the transaction goes too", AbortsToTheStable, None),
    ("markers in snapshots", "OFC-15", "a begin record is overlooked", MarksInSnapshots, None),
    ("two at once", "OFC-16", "a second raft snapshot takes the place of the first", LoadsTwo, None),
    ("loaded over", "OFC-16", "the memory is not emptied", LoadsOver, None),
    ("loaded within", "OFC-16", "the transaction stays open", LoadsWithinATransaction, None),
    ("loaded without a snapshot", "OFC-17", "none is taken at the end", LoadedWithoutSnapshot, None),
    ("loaded and not committed", "OFC-17", "the committed offset is none", LoadedAndNotCommitted, None),
    ("ends no load", "OFC-17", "nobody is told", EndsNoLoad, None),
    ("markers first", "OFC-18 OFC-19", "the markers of a batch are replayed before its data", AppliesLate, None),
    ("skipped", "OFC-18 OFC-19", "what is refused among others is left out", SkipsWhatIsRefused, None),
    ("absent while loading", "OFC-20", "the metrics tell of a standby", AbsentWhileLoading, None),
    ("commits are applied", "OFC-20", "on the active controller", MeasuresCommits, None),
    ("control batches do not count", "OFC-20 OFC-11", "in the metrics", MeasuresNoControlBatch, None),
    ("time stands", "OFC-20", "appends have the time of what was before", TimeOfTheFirst, None),
)

RARE = _impl(
    ("active without a snapshot", "OFC-4", "none is taken", ActivatesWithoutSnapshot, "KAFKA-13100"),
    ("back to the committed", "OFC-5 OFC-22", "committed records of a transaction stay", GoesBackToTheCommitted, None),
    ("gives up anyway", "OFC-6", "nobody is told that there is no snapshot", GivesUpAnyway, None),
    ("stays active", "OFC-6", "where there is no snapshot", StaysActive, None),
    ("the transaction is forgotten", "OFC-22", "when the controller gives up", ForgetsTheTransaction, None),
    ("none on a standby", "OFC-10", "no snapshot at the stable offset", NoSnapshotOnAStandby, "KAFKA-15048"),
    ("one at the committed", "OFC-10", "a standby takes a second one", KeepsTheOpenOne, None),
    ("the stable one goes too", "OFC-10", "on the active controller", DeletesTheStableToo, "KAFKA-17608"),
    ("begins without a snapshot", "OFC-12", "none from before it", BeginsWithoutASnapshot, None),
    ("aborts anyway", "OFC-14", "without a snapshot from before", AbortsAnyway, None),
    ("closed when committed", "OFC-21", "the stable offset waits for the end record", ClosedWhenCommitted, None),
    ("nothing later is read", "OFC-23", "the snapshot that would show it is left out", ReadsNothingLater, None),
    ("offsets are counted", "OFC-18 OFC-19", "not taken from raft", PredictsOffsets, "KAFKA-15213"),
)
"""Those that show after a controller has given up within a transaction, or in one of several snapshots."""

MUTANTS = [
    *SPEC,
    *IMPL,
    *RARE,
    of_model("a control batch is stable (model)", "OFC-11", "no snapshot is there", _loaded(Committing), "KAFKA-17608"),
    of_model("nothing is held back (model)", "OFC-9", "the transaction is stable", _loaded(Unclamped)),
    of_model("active without a snapshot (model)", "OFC-4", "they are gone", _loaded(Activating), "KAFKA-13100"),
    of_model("nothing is thrown away (model)", "OFC-5", "the memory stays", _loaded(Remaining)),
    of_model("a batch is split (model)", "OFC-6", "a part of it is committed", _loaded(Splitting), "KAFKA-13114"),
    of_model("nothing is undone (model)", "OFC-14", "what was aborted stays", _loaded(Aborting)),
    of_model("begins twice (model)", "OFC-12", "a second begin takes the place of the first", _loaded(Nesting)),
    of_model("ends nothing (model)", "OFC-13", "an end without a transaction is taken", _loaded(Closing)),
    of_model("overlooks what is before (model)", "OFC-12", "a begin in the same batch", _loaded(Overlooking)),
]
