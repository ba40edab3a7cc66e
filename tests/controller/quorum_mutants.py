"""Faults of the controller of a quorum, each with the clauses that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from kafkaspec.contract.machine import Step
from kafkaspec.impl.controller import periodic
from kafkaspec.impl.controller import quorum as impl
from kafkaspec.impl.controller.quorum_driver import Driver
from kafkaspec.language import action, require
from kafkaspec.models.controller import quorum as model
from kafkaspec.models.controller.quorum import Controller, Kind, Offset
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import driver_with, faulty_machine, of_impl, of_model, of_spec
from kafkaspec.spec.common.metadata_log import (
    ACTIVATION,
    NO_EPOCH,
    NO_LOG_OFFSET,
    Answer,
    Batch,
    Fault,
    Outcome,
    Record,
)
from kafkaspec.spec.common.metadata_log import Kind as RecordKind
from kafkaspec.spec.controller import quorum as spec
from kafkaspec.spec.controller.quorum_parts import state as parts


def _of(make: type[impl.QuorumController]) -> Callable[[], Driver]:
    """What makes a driver of a faulty controller."""
    return driver_with(Driver, make=make)


def _with(**classes: type) -> Callable[[], Driver]:
    """A controller of which some classes are faulty."""
    return _of(type("Faulty", (impl.QuorumController,), dict(classes)))


# ---- periodic tasks
class NeverActivatesTasks(impl.QuorumController):
    def claim(self, epoch: int) -> None:
        super().claim(epoch)
        activation = impl.WriteEvent(self.activation_records, impl.nobody)
        self.queue[0] = lambda: self.run_write(activation)


class ActivatesTasksWithABootstrap(NeverActivatesTasks):
    """By the first leader of a cluster alone."""

    def append_batch(self, records: Sequence[Record]) -> int:
        last = super().append_batch(records)
        if records[-1].kind == RecordKind.END and not self.tasks.active:
            self.tasks.activate()
        return last


class KeepsTasks(impl.QuorumController):
    """Who renounces leaves them in the queue, as if they were those of a standby."""

    def renounce(self) -> None:
        deadlines, runs = dict(self.deferred.deadlines), dict(self.deferred.runs)
        super().renounce()
        self.deferred.deadlines, self.deferred.runs = deadlines, runs


class RunsOnce(impl.DeferredEvents):
    """A task that has run is not scheduled again."""

    def run_earliest(self, now_ns: int) -> bool:
        tag = self.earliest
        ran = super().run_earliest(now_ns)
        if ran and tag is not None:
            self.cancel_deferred(tag)
        return ran


class LatestFirst(impl.DeferredEvents):
    """Of those that are due."""

    @property
    def earliest(self) -> str | None:
        due = [tag for tag, ns in self.deadlines.items() if ns <= self.now_ns]
        return max(due, key=lambda tag: self.deadlines[tag], default=None)

    now_ns = 0

    def run_earliest(self, now_ns: int) -> bool:
        self.now_ns = now_ns
        return super().run_earliest(now_ns)


class SharesDeadlines(impl.DeferredEvents):
    """Two events may have one."""

    def schedule_deferred(self, tag: str, deadline_ns: int, run: Callable[[], periodic.Result]) -> None:
        super().schedule_deferred(tag, deadline_ns, run)
        if tag in self.deadlines:
            self.deadlines[tag] = deadline_ns


class TasksDoNotWait(impl.QuorumController):
    """A run without records is over at once."""

    def run_task(self, run: Callable[[], periodic.Result]) -> None:
        waiting = {offset: [*events] for offset, events in self.purgatory.pending.items()}
        written = self.next_write_offset
        super().run_task(run)
        if self.is_active and self.next_write_offset == written:
            self.purgatory.pending = waiting


class TasksWriteAtomically(impl.QuorumController):
    def run_task(self, run: Callable[[], periodic.Result]) -> None:
        def whole() -> periodic.Result:
            return replace(run(), is_atomic=True)

        super().run_task(whole)


class TasksStayThoughRefused(impl.QuorumController):
    """Raft refuses what a task writes, and it leads on."""

    def run_task(self, run: Callable[[], periodic.Result]) -> None:
        give_up, self.renounce = self.renounce, impl.nothing  # type: ignore[method-assign]
        super().run_task(run)
        self.renounce = give_up  # type: ignore[method-assign]


def _tasks(**periods_ns: int | None) -> Callable[[], Driver]:
    """With other periods of tasks; None: without the task."""

    class Other(impl.QuorumController):
        def periodic_tasks(self, max_idle_interval_ns: int | None) -> Iterable[periodic.Task]:
            for task in super().periodic_tasks(max_idle_interval_ns):
                period = periods_ns.get(task.name, task.period_ns)
                if period is not None:
                    yield replace(task, period_ns=period)

    return _of(Other)


class AlwaysWritesNoOps(impl.QuorumController):
    """Every half second if no interval is configured."""

    def periodic_tasks(self, max_idle_interval_ns: int | None) -> Iterable[periodic.Task]:
        return super().periodic_tasks(max_idle_interval_ns or 500 * impl.NS_IN_MS)


# ---- reading and writing
class StandbyWrites(impl.QuorumController):
    def run_write(self, event: impl.WriteEvent) -> None:
        if self.is_active:
            super().run_write(event)
        else:
            event.reply(Outcome.DONE, event.operation().response)


class ReadsTheLatest(impl.QuorumController):
    def read(self, key: str) -> int:
        return self.latest(key)


class WritesWhatIsStable(impl.QuorumController):
    """The result is made of the stable state."""

    def latest(self, key: str) -> int:
        return self.read(key)


class AnswersReadsAtOnce(impl.QuorumController):
    def run_write(self, event: impl.WriteEvent) -> None:
        super().run_write(event)
        for events in self.purgatory.pending.values():
            if event in events and events[0] is not event:
                events.remove(event)
                event.succeed()


class MakesReadsWait(impl.Purgatory):
    """Also where nothing is uncommitted."""

    def highest(self) -> int:
        return super().highest() if self.pending else 0


class AnswersWhenWritten(impl.QuorumController):
    def append_records(self, result: impl.ControllerResult) -> int:
        last = super().append_records(result)
        self.last_stable_offset = last
        return last


class AppliesAfterRaft(impl.QuorumController):
    """What cannot be applied is written."""

    def append_batch(self, records: Sequence[Record]) -> int:
        last = self.raft.prepare_append(self.claim_epoch, records)
        self.raft.schedule_prepared_append()
        self.next_write_offset = last + 1
        for offset, record in enumerate(records, last - len(records) + 1):
            try:
                self.memory.replay(record, offset)
            except impl.ReplayError:
                continue
        self.memory.take(last)
        return last


class AppliesBeforeRaft(impl.QuorumController):
    """What Raft would refuse is applied, where the log ends now."""

    def append_batch(self, records: Sequence[Record]) -> int:
        base = self.raft.log_end_offset()
        self.replay_all(records, base)
        last = self.raft.prepare_append(self.claim_epoch, records)
        self.raft.schedule_prepared_append()
        self.next_write_offset = last + 1
        self.memory.take(last)
        return last


class PredictsOffsets(impl.QuorumController):
    """The offset of a record is the one behind the last that it wrote."""

    def replay_all(self, records: Sequence[Record], base: int) -> None:
        super().replay_all(records, self.next_write_offset if self.is_active else base)


class TakesNoSnapshot(impl.ReplayedMemory):
    """Of what is written: as Kafka did on promotion."""

    def take(self, offset: int) -> None:
        if offset == NO_LOG_OFFSET or self.transaction_start == offset + 1:
            super().take(offset)


class SplitsAtomic(impl.QuorumController):
    def append_records(self, result: impl.ControllerResult) -> int:
        return super().append_records(result._replace(is_atomic=len(result.records) <= self.max_records_per_batch))


class NeverSplits(impl.QuorumController):
    def append_records(self, result: impl.ControllerResult) -> int:
        return self.append_batch(result.records)


class WaitsForTheFirst(impl.QuorumController):
    """Of several batches."""

    def append_records(self, result: impl.ControllerResult) -> int:
        before = self.next_write_offset
        last = super().append_records(result)
        return last if result.is_atomic else min(last, before + self.max_records_per_batch - 1)


class SkipsUnknown(impl.ReplayedMemory):
    def replay(self, record: Record, offset: int, in_snapshot: bool = False) -> None:
        if record.kind != RecordKind.UNKNOWN:
            super().replay(record, offset, in_snapshot)


class BeginsTwice(impl.ReplayedMemory):
    def replay_transaction(self, kind: RecordKind, offset: int, in_snapshot: bool) -> None:
        if kind == RecordKind.BEGIN:
            self.transaction_start = NO_LOG_OFFSET
        super().replay_transaction(kind, offset, in_snapshot)


class AbortsNothing(impl.ReplayedMemory):
    def replay_transaction(self, kind: RecordKind, offset: int, in_snapshot: bool) -> None:
        super().replay_transaction(RecordKind.END if kind == RecordKind.ABORT else kind, offset, in_snapshot)


# ---- what is committed
class AppliesTwice(impl.QuorumController):
    """The active controller applies again what is committed."""

    def handle_commit(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            if self.is_active and batch.records:
                self.replay_all(batch.records, batch.base)
            super().handle_commit([batch])


class CountsControlBatches(impl.QuorumController):
    """A batch of Raft's own moves the offsets."""

    def handle_commit(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            if batch.records:
                super().handle_commit([batch])
            else:
                self.last_committed_offset = batch.base
                self.advance_last_stable_offset()


class IgnoresTransactions(impl.QuorumController):
    def advance_last_stable_offset(self) -> None:
        start, self.memory.transaction_start = self.memory.transaction_start, NO_LOG_OFFSET
        super().advance_last_stable_offset()
        self.memory.transaction_start = start


class WaitsForStable(impl.QuorumController):
    """The committed offset waits for the end of the transaction, too."""

    def advance_last_stable_offset(self) -> None:
        super().advance_last_stable_offset()
        self.last_committed_offset = self.last_stable_offset


class StandbyForgetsSnapshots(impl.QuorumController):
    def advance_last_stable_offset(self) -> None:
        before = self.last_stable_offset
        super().advance_last_stable_offset()
        if not self.is_active and self.last_stable_offset > before:
            self.memory.registry.delete_snapshots_up_to(self.last_stable_offset + 1)


class StandbyDoesNotReplay(impl.QuorumController):
    def handle_commit(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            wrote_it = not self.is_active and batch.epoch == getattr(self, "renounced_epoch", NO_EPOCH)
            super().handle_commit([Batch(batch.base, batch.epoch, (Record(RecordKind.NO_OP),) * len(batch.records))]
                                  if wrote_it and batch.records else [batch])  # fmt: skip

    def renounce(self) -> None:
        self.renounced_epoch = self.claim_epoch
        super().renounce()


class SkipsWhatFails(impl.QuorumController):
    """A standby goes on behind a record that it cannot apply."""

    def replay_all(self, records: Sequence[Record], base: int) -> None:
        for offset, record in enumerate(records, base):
            try:
                super().replay_all([record], offset)
            except impl.FatalFaultError:
                if self.is_active:
                    raise


class LastFirst(impl.Purgatory):
    def complete_up_to(self, offset: int) -> None:
        for events in self.pending.values():
            events.reverse()
        super().complete_up_to(offset)
        for events in self.pending.values():
            events.reverse()


class OneAtATime(impl.Purgatory):
    """A commit answers those of one offset."""

    def complete_up_to(self, offset: int) -> None:
        first = next(iter(self.pending), offset + 1)
        super().complete_up_to(min(first, offset))


class AnswersOneEarly(impl.Purgatory):
    def complete_up_to(self, offset: int) -> None:
        super().complete_up_to(offset + 1)


# ---- leading
class ActivatesLast(impl.QuorumController):
    """The activation waits behind what is in the queue."""

    def claim(self, epoch: int) -> None:
        super().claim(epoch)
        self.queue.append(self.queue.popleft())


class WritesWhereCommitted(impl.QuorumController):
    """Next behind what is committed, not at the end of the log."""

    def claim(self, epoch: int) -> None:
        super().claim(epoch)
        self.next_write_offset = self.last_committed_offset + 1


class BootstrapsWithoutTransaction(impl.QuorumController):
    def activation_records(self) -> impl.ControllerResult:
        result = super().activation_records()
        if self.memory.values.get("metadata.version") is not None:
            return result
        return impl.ControllerResult(
            [r for r in result.records if r.kind in (RecordKind.VERSION, RecordKind.ABORT)], NO_LOG_OFFSET
        )


class LeavesWhatDangles(impl.QuorumController):
    def activation_records(self) -> impl.ControllerResult:
        result = super().activation_records()
        return result._replace(records=[r for r in result.records if r.kind != RecordKind.ABORT])


class EndsWhatDangles(impl.QuorumController):
    """As if all of it were there."""

    def activation_records(self) -> impl.ControllerResult:
        result = super().activation_records()
        return result._replace(
            records=[Record(RecordKind.END) if r.kind == RecordKind.ABORT else r for r in result.records]
        )


class AbortsWithoutTransactions(impl.QuorumController):
    """Though the metadata version has none."""

    def activation_records(self) -> impl.ControllerResult:
        try:
            return super().activation_records()
        except impl.FatalFaultError:
            return impl.ControllerResult([Record(RecordKind.ABORT)], NO_LOG_OFFSET)


class ActivatesAgain(impl.QuorumController):
    def handle_leader_change(self, epoch: int, is_leader: bool) -> None:
        if self.is_active and is_leader:
            self.renounce()
        super().handle_leader_change(epoch, is_leader)


class StandbyRenounces(impl.QuorumController):
    def handle_leader_change(self, epoch: int, is_leader: bool) -> None:
        super().handle_leader_change(epoch, is_leader)
        if not is_leader:
            self.memory.revert(self.last_stable_offset)
            self.memory.transaction_start = NO_LOG_OFFSET


class KeepsWaiting(impl.QuorumController):
    """Whoever waits is not failed."""

    def renounce(self) -> None:
        waiting = dict(self.purgatory.pending)
        self.purgatory.pending = {}
        super().renounce()
        self.purgatory.pending = waiting


class AnswersWhenRenounced(impl.Purgatory):
    def fail_all(self, outcome: Outcome) -> None:
        super().fail_all(Outcome.DONE)


class KeepsWhatIsNotStable(impl.QuorumController):
    def renounce(self) -> None:
        latest = dict(self.memory.values.items())
        super().renounce()
        for key, value in latest.items():
            if self.memory.values.get(key) != value:
                self.memory.values.put(key, value)


class ClosesTheTransaction(impl.QuorumController):
    def renounce(self) -> None:
        super().renounce()
        self.memory.transaction_start = NO_LOG_OFFSET


# ---- faults
def _failures(**changes: tuple[Outcome, bool, bool]) -> type[impl.QuorumController]:
    table = {**impl.FAILURES, **{Fault[name]: as_ for name, as_ in changes.items()}}

    class Fails(impl.QuorumController):
        def fail(self, fault: Fault, reply: impl.Reply) -> None:
            outcome, is_fault, fails_over = table[fault]
            self.faults += is_fault
            if fails_over and self.is_active:
                self.renounce()
            reply(outcome, NO_LOG_OFFSET)

    return Fails


class AnswersBeforeItRenounces(impl.QuorumController):
    def fail(self, fault: Fault, reply: impl.Reply) -> None:
        reply(impl.FAILURES[fault][0], NO_LOG_OFFSET)
        super().fail(fault, lambda outcome, value: None)


class StaysThoughRefused(impl.QuorumController):
    """Raft does not lead any more, and the controller goes on."""

    def renounce(self) -> None:
        if getattr(self, "refused", False):
            self.refused = False
        else:
            super().renounce()

    def append_batch(self, records: Sequence[Record]) -> int:
        try:
            return super().append_batch(records)
        except impl.NotLeaderError:
            self.refused = True
            raise


class RunsLate(impl.QuorumController):
    """A call whose deadline has passed is told that nobody leads."""

    def expire(self, reply: impl.Reply) -> None:
        reply(Outcome.TIMEOUT if self.is_active else Outcome.NOT_CONTROLLER, NO_LOG_OFFSET)


# ---- snapshots
class LoadsOver(impl.QuorumController):
    """What was in memory stays."""

    def load_snapshot(self, end_offset: int, epoch: int, records: Sequence[Record]) -> None:
        before = {} if self.is_active else dict(self.memory.values.items())
        kept = [
            Record(RecordKind.SET, key, value) for key, value in before.items() if " " not in key and "." not in key
        ]
        super().load_snapshot(end_offset, epoch, [*kept, *records])


class LoadsBelowTheLast(impl.QuorumController):
    """The committed offset is that of the record before the last."""

    def load_snapshot(self, end_offset: int, epoch: int, records: Sequence[Record]) -> None:
        super().load_snapshot(end_offset, epoch, records)
        self.last_committed_offset = end_offset - 2


class LoadsPastTheLast(impl.QuorumController):
    """The stable offset is the snapshot's end: as Kafka 4.3.0 has it."""

    def load_snapshot(self, end_offset: int, epoch: int, records: Sequence[Record]) -> None:
        super().load_snapshot(end_offset, epoch, records)
        self.last_committed_offset = self.last_stable_offset = end_offset
        self.memory.registry.reset()
        for record in records:
            self.memory.replay(record, end_offset - 1, in_snapshot=True)
        self.memory.take(end_offset)


class LoadsTransactions(impl.ReplayedMemory):
    def replay(self, record: Record, offset: int, in_snapshot: bool = False) -> None:
        opens = in_snapshot and record.kind in (RecordKind.BEGIN, RecordKind.END, RecordKind.ABORT)
        if not opens:
            super().replay(record, offset, in_snapshot)


class LoadsWhileActive(impl.QuorumController):
    def load_snapshot(self, end_offset: int, epoch: int, records: Sequence[Record]) -> None:
        if not self.is_active:
            super().load_snapshot(end_offset, epoch, records)


# ---- what shows rarely
class SplitsOnce(impl.QuorumController):
    """What does not fit into one batch is two, the second of any size."""

    def append_records(self, result: impl.ControllerResult) -> int:
        records, cap = result.records, self.max_records_per_batch
        if result.is_atomic or len(records) <= 2 * cap or len(records) % cap == 0:
            return super().append_records(result)
        self.append_batch(records[:cap])
        return self.append_batch(records[cap:])


class OneSnapshotACall(impl.QuorumController):
    """Not one of each of its batches."""

    def append_records(self, result: impl.ControllerResult) -> int:
        before = {*self.memory.registry.epochs}
        last = super().append_records(result)
        for epoch in [e for e in self.memory.registry.epochs if e not in before and e != last]:
            self.memory.registry.delete_snapshot(epoch)
        return last


class CountsFromTheFirst(impl.QuorumController):
    """Of several batches each is applied at the offsets of the first."""

    first: int | None = None
    counting = False

    def append_records(self, result: impl.ControllerResult) -> int:
        self.counting, self.first = True, None
        try:
            return super().append_records(result)
        finally:
            self.counting = False

    def replay_all(self, records: Sequence[Record], base: int) -> None:
        if self.counting and self.first is None:
            self.first = base
        super().replay_all(records, self.first if self.counting and self.first is not None else base)


class StaysThoughRefusedLater(StaysThoughRefused):
    """Where it is not the first batch of a call that Raft refuses."""

    def append_batch(self, records: Sequence[Record]) -> int:
        return impl.QuorumController.append_batch(self, records)

    def append_records(self, result: impl.ControllerResult) -> int:
        before = self.next_write_offset
        try:
            return super().append_records(result)
        except impl.NotLeaderError:
            self.refused = self.next_write_offset > before
            raise


class WaitsWithTheFirst(impl.QuorumController):
    """A call without records waits for the first of those who wait."""

    def run_write(self, event: impl.WriteEvent) -> None:
        before = {*self.purgatory.pending}
        super().run_write(event)
        for offset, events in self.purgatory.pending.items():
            if event in events and offset in before:
                events.remove(event)
                self.purgatory.pending[min(before)].append(event)
                return


class TwoAreFailed(impl.Purgatory):
    """Those at two offsets; who waits for a third is forgotten."""

    def fail_all(self, outcome: Outcome) -> None:
        self.pending = {offset: self.pending[offset] for offset in [*self.pending][:2]}
        super().fail_all(outcome)


class LeadsAgainOnce(impl.QuorumController):
    """A third epoch is not claimed."""

    again = False

    def handle_leader_change(self, epoch: int, is_leader: bool) -> None:
        if self.is_active and is_leader:
            if self.again:
                return
            self.again = True
        super().handle_leader_change(epoch, is_leader)


class EpochOfTheClaim(impl.QuorumController):
    """What is committed was written in the epoch that is claimed now."""

    def handle_commit(self, batches: Iterable[Batch]) -> None:
        batches = [*batches]
        super().handle_commit(batches)
        if self.is_active and any(b.records for b in batches):
            self.last_committed_epoch = self.claim_epoch


class EpochsOf16Bits(impl.QuorumController):
    def handle_commit(self, batches: Iterable[Batch]) -> None:
        super().handle_commit(batches)
        self.last_committed_epoch = signed(self.last_committed_epoch, 16)


class OffsetsOf32Bits(impl.QuorumController):
    def load_snapshot(self, end_offset: int, epoch: int, records: Sequence[Record]) -> None:
        super().load_snapshot(signed(end_offset, 32), epoch, records)


class LoadsTwoRecords(impl.QuorumController):
    def load_snapshot(self, end_offset: int, epoch: int, records: Sequence[Record]) -> None:
        super().load_snapshot(end_offset, epoch, records[:2])


class BootstrapsElrAlone(impl.QuorumController):
    """The feature has no min.insync.replicas behind it."""

    def activation_records(self) -> impl.ControllerResult:
        result = super().activation_records()
        return result._replace(records=[r for r in result.records if r.kind != RecordKind.SET])


# ---- the spec, and the models
def _answers_what_waits(state: parts.Controller, count: int) -> Step[parts.Controller, list[Answer]]:
    """Whatever is committed answers all."""
    step = spec.commit(state, count)
    assert isinstance(step.result, list)
    more = [Answer(w.call, Outcome.DONE, w.response) for w in step.state.purgatory if w.call != ACTIVATION]
    return Step(replace(step.state, purgatory=()), [*step.result, *more])


def _loses_no_memory(state: parts.Controller, epoch: int, known: bool = True) -> Step[parts.Controller, list[Answer]]:
    step = spec.lose(state, epoch, known)
    return Step(replace(step.state, memory=state.memory), step.result)


_wrong = partial(faulty_machine, spec.machine)


class ClaimsBeforeItHasAll(model.Quorum):
    @action("QRM-16", "QRM-20", who="controller", fair="weak", per=("c",))
    def claim_leadership(s, c: Controller) -> None:
        require(s.leader == c, s.claim[c] == 0, c not in s.halted)
        s.next.claim[c] = s.epoch
        s.next.wrote[c] = s.log


class EndsWhatAnotherBegan(model.Quorum):
    """As if it were whole."""

    @action("QRM-17", "QRM-19", who="controller", fair="weak", per=("c",))
    def activate(s, c: Controller, o: Offset) -> None:
        require(s.claim[c] > 0, c not in s.active)
        s.next.active = s.active | {c}
        if s.open[c] is None:
            require(o == 0)
        else:
            s.put(c, o, Kind.END, False)
            s.next.open[c] = None


class WritesBeforeItsActivation(model.Quorum):
    @action("QRM-5", "QRM-10", who="controller")
    def write(s, c: Controller, o: Offset) -> None:
        require(s.claim[c] > 0, s.open[c] is None or len(s.memory[c]) + 1 < model.L)
        s.put(c, o, Kind.DATA, s.open[c] is not None)


class StaysAStandbyToo(model.Quorum):
    """What is committed is applied again by who wrote it and renounced."""

    @action("QRM-21", "QRM-22", who="controller", fair="weak", per=("c",))
    def renounce(s, c: Controller) -> None:
        require(s.claim[c] > 0, s.claim[c] != s.epoch)
        s.next.claim[c] = 0
        s.next.active = s.active - {c}
        s.next.waiting[c] = set()


class NeverRenounces(model.Quorum):
    """A deposed controller is not told."""

    @action("QRM-21", "QRM-22", who="controller", fair="weak", per=("c",))
    def renounce(s, c: Controller) -> None:
        require(s.claim[c] > 0, s.claim[c] != s.epoch, c in s.halted)
        s.give_up(c)


class AsksForWhatIsThere(model.StateMachine):
    """Or for what comes."""

    @action("QRM-10", who="user")
    def ask(s, c: Controller, o: Offset) -> None:
        require(s.term[c] > 0, o > len(s.sees[c]), o not in s.asked[c])
        s.next.asked[c] = s.asked[c] | {o}


class AnswersWithAnyRecord(model.StateMachine):
    @action("QRM-14", "QRM-15", who="controller")
    def look(s, c: Controller, n: Offset) -> None:
        require(len(s.sees[c]) <= n, n <= len(s.committed))
        s.next.sees[c] = s.committed[:n]
        s.next.answered = {
            o: s.committed[o - 1] if o in s.asked[c] and o <= n else s.answered[o] for o in range(model.L + 1)
        }
        s.next.asked[c] = {o for o in s.asked[c] if o > n}


class TasksRunOn(model.Member):
    """Whoever renounces leaves his tasks scheduled."""

    @action("QRM-21", "QRM-22", "QRM-40", who="raft")
    def renounce(s) -> None:
        require(s.active)
        s.next.active = False
        s.next.waiting = set()
        s.next.written = s.handed


class TasksRunAtAStandby(model.Member):
    @action("QRM-41", "QRM-10", who="controller")
    def run_task(s) -> None:
        require(not s.halted, s.known > 0, s.written < model.L)
        s.next.written = s.written + 1
        s.next.waiting = s.waiting | {s.written + 1}


class TasksAreNotScheduled(model.Member):
    @action("QRM-16", "QRM-17", "QRM-19", "QRM-10", "QRM-39", who="controller")
    def lead(s) -> None:
        require(not s.active, not s.halted, s.handed < model.L)
        s.next.active = True
        s.next.handed = s.handed + 1
        s.next.written = s.handed + 1


class AbortsNothingAtAll(model.Member):
    @action("QRM-16", "QRM-17", "QRM-19", "QRM-10", who="controller")
    def lead(s) -> None:
        require(not s.active, not s.halted, s.handed < model.L)
        s.next.active = True
        s.next.handed = s.handed + 1
        s.next.written = s.handed + 1


class LeadsBehindWhatIsKnown(model.Member):
    """Not behind all that it was handed."""

    @action("QRM-16", who="controller")
    def lead(s) -> None:
        require(not s.active, not s.halted, s.handed < model.L, s.open is None, s.known > 0)
        s.next.active = True
        s.next.scheduled = True
        s.next.handed = s.known + 1
        s.next.written = s.handed + 1


class WaitsBehindWhatIsKnown(model.Member):
    """For the bootstrap, which is behind Raft's records."""

    @action("QRM-16", "QRM-10", who="controller")
    def lead(s) -> None:
        require(not s.active, not s.halted, s.handed + 1 + model.BOOTSTRAP <= model.L, s.open is None, s.known == 0)
        s.next.active = True
        s.next.scheduled = True
        s.next.handed = s.handed + 1
        s.next.written = s.handed + 1 + model.BOOTSTRAP
        s.next.waiting = {s.known + 1 + model.BOOTSTRAP}


class OpensWhereItKnows(model.Member):
    """Not behind Raft's own record, which may be between."""

    @action("QRM-26", "QRM-25", who="raft")
    def replay(s, kind: model.Kind) -> None:
        require(not s.active, not s.halted, s.handed < model.L, s.known > 0 or kind == model.Kind.DATA)
        require(kind == model.Kind.DATA or (kind == model.Kind.BEGIN) == (s.open is None))
        n = s.handed + 1
        s.next.handed = n
        s.next.known = n
        s.next.written = n
        s.next.open = s.known if kind == model.Kind.BEGIN else s.open if kind == model.Kind.DATA else None
        if kind == model.Kind.BEGIN:
            s.next.stable = max(s.stable, s.handed)
        elif kind != model.Kind.DATA or s.open is None:
            s.next.stable = n


class LeadsThoughHalted(model.Member):
    @action("QRM-16", "QRM-29", who="controller")
    def lead(s) -> None:
        require(not s.active, s.handed < model.L, s.open is None)
        s.next.active = True
        s.next.scheduled = True
        s.next.handed = s.handed + 1
        s.next.written = s.handed + 1


class BootstrapsNothing(model.Member):
    """Nobody leads in an empty log."""

    @action("QRM-16", "QRM-17", "QRM-18", who="controller")
    def lead(s) -> None:
        require(not s.active, not s.halted, s.handed < model.L, s.known > 0)
        s.next.active = True
        s.next.scheduled = True
        s.next.handed = s.handed + 1
        if s.open is not None:
            require(s.handed + 2 <= model.L)
            s.next.written = s.handed + 2
            s.next.waiting = {s.handed + 2}
            s.next.open = None
        else:
            s.next.written = s.handed + 1


MUTANTS = [
    of_impl("a standby writes", "QRM-1", "a write is answered without a leader", _of(StandbyWrites)),
    of_impl("reads the latest", "QRM-2", "a read shows what is not committed", _of(ReadsTheLatest), "KAFKA-15048"),
    of_impl("writes of what is stable", "QRM-4", "a write does not see the one before", _of(WritesWhatIsStable)),
    of_impl(
        "reads at once", "QRM-12", "a call without records does not wait for those before", _of(AnswersReadsAtOnce)
    ),
    of_impl("reads wait", "QRM-11", "a call without records waits for nothing", _with(Deferred=MakesReadsWait)),
    of_impl(
        "answered when written", "QRM-10 QRM-13 QRM-14", "the log is stable when it is written", _of(AnswersWhenWritten)
    ),
    of_impl("applied after Raft", "QRM-7 QRM-5", "a record that cannot be applied is written", _of(AppliesAfterRaft)),
    of_impl("applied before Raft", "QRM-5", "what Raft refuses is applied", _of(AppliesBeforeRaft)),
    of_impl("dangling is ended", "QRM-19", "not aborted", _of(EndsWhatDangles)),
    of_impl(
        "predicted offsets", "QRM-6 QRM-28", "Raft's own records are not counted", _of(PredictsOffsets), "KAFKA-15213"
    ),
    of_impl(
        "no snapshot", "QRM-38 QRM-5 QRM-16", "none where it must go back", _with(Memory=TakesNoSnapshot), "KAFKA-13100"
    ),
    of_impl("atomic in parts", "QRM-8", "too many records are written in parts", _of(SplitsAtomic)),
    of_impl("never split", "QRM-9 QRM-8", "a batch of any size", _of(NeverSplits), "KAFKA-14204"),
    of_impl("waits for the first", "QRM-9 QRM-14", "of several batches", _of(WaitsForTheFirst)),
    of_impl(
        "unknown is skipped", "QRM-30 QRM-29", "a record of an unknown type is skipped", _with(Memory=SkipsUnknown)
    ),
    of_impl("begins twice", "QRM-25", "a transaction begins in another", _with(Memory=BeginsTwice)),
    of_impl("aborts nothing", "QRM-25", "an abort leaves what was written", _with(Memory=AbortsNothing)),
    of_impl("applied twice", "QRM-13", "what is committed is applied again", _of(AppliesTwice)),
    of_impl(
        "control batches count", "QRM-34 QRM-38", "they move the offsets", _of(CountsControlBatches), "KAFKA-17608"
    ),
    of_impl("transactions are ignored", "QRM-26", "part of one is shown", _of(IgnoresTransactions)),
    of_impl(
        "committed when stable",
        "QRM-26 QRM-13 QRM-27",
        "the committed offset waits",
        _of(WaitsForStable),
        "KAFKA-15441",
    ),
    of_impl("a standby keeps no past", "QRM-27 QRM-2", "no snapshot where it is stable", _of(StandbyForgetsSnapshots)),
    of_impl("its own is not replayed", "QRM-27 QRM-28", "what it wrote and gave up", _of(StandbyDoesNotReplay)),
    of_impl("what fails is skipped", "QRM-29", "by a standby", _of(SkipsWhatFails), "KAFKA-14275"),
    of_impl("last first", "QRM-15", "at one offset", _with(Deferred=LastFirst)),
    of_impl("one at a time", "QRM-15", "a commit answers those of one offset", _with(Deferred=OneAtATime)),
    of_impl("one early", "QRM-14 QRM-15", "a call is answered one offset early", _with(Deferred=AnswersOneEarly)),
    of_impl("activates last", "QRM-17", "behind the writes that wait", _of(ActivatesLast), "KAFKA-13966"),
    of_impl("writes where committed", "QRM-16", "not at the end of the log", _of(WritesWhereCommitted), "KAFKA-17304"),
    of_impl("bootstrap without transaction", "QRM-18", "though there are some", _of(BootstrapsWithoutTransaction)),
    of_impl("what dangles stays", "QRM-19 QRM-18", "an open transaction is not aborted", _of(LeavesWhatDangles)),
    of_impl("aborts without transactions", "QRM-19 QRM-18", "the version has none", _of(AbortsWithoutTransactions)),
    of_impl("activates again", "QRM-24", "in a later epoch", _of(ActivatesAgain)),
    of_impl("a standby goes back", "QRM-37", "when another leads", _of(StandbyRenounces)),
    of_impl("goes on waiting", "QRM-21", "who waits at a standby is forgotten", _of(KeepsWaiting)),
    of_impl("answered when renounced", "QRM-21 QRM-14", "with success", _with(Deferred=AnswersWhenRenounced)),
    of_impl("keeps what is not stable", "QRM-22", "in memory", _of(KeepsWhatIsNotStable), "KAFKA-12792"),
    of_impl("closes the transaction", "QRM-22", "which is open in the log", _of(ClosesTheTransaction)),
    of_impl(
        "an error fails over",
        "QRM-23",
        "of the API",
        _of(_failures(API=(Outcome.INVALID_REQUEST, False, True))),
    ),
    of_impl(
        "too much fails over",
        "QRM-23",
        "a call that asks for too many records",
        _of(_failures(TOO_LONG=(Outcome.UNKNOWN_SERVER, True, True))),
        "KAFKA-14996",
    ),
    of_impl(
        "a periodic task fails over",
        "QRM-23",
        "that failed",
        _of(_failures(PERIODIC=(Outcome.PERIODIC_TASK, True, True))),
    ),
    of_impl(
        "a fault stays",
        "QRM-23 QRM-8",
        "and leads on",
        _of(_failures(UNEXPECTED=(Outcome.UNKNOWN_SERVER, True, False))),
    ),
    of_impl("answered first", "QRM-23", "before those in the purgatory", _of(AnswersBeforeItRenounces)),
    of_impl("stays though refused", "QRM-36", "Raft leads no more", _of(StaysThoughRefused)),
    of_impl("late is not late", "QRM-35", "at a standby", _of(RunsLate)),
    of_impl("loaded over", "QRM-31", "what was there stays", _of(LoadsOver)),
    of_impl("loaded below the last", "QRM-31", "the committed offset is one less", _of(LoadsBelowTheLast)),
    of_impl("loaded past the last", "QRM-31", "the stable offset is one more", _of(LoadsPastTheLast)),
    of_impl("a snapshot with transactions", "QRM-31 QRM-25", "is loaded", _with(Memory=LoadsTransactions)),
    of_impl("loaded while active", "QRM-33", "and goes on", _of(LoadsWhileActive)),
    of_impl("tasks stay asleep", "QRM-39", "though it is active", _of(NeverActivatesTasks)),
    of_impl("tasks of a first leader", "QRM-39", "and of no later one", _of(ActivatesTasksWithABootstrap)),
    of_impl("tasks stay", "QRM-40", "in the queue of who renounces", _of(KeepsTasks)),
    of_impl("tasks run once", "QRM-41", "and are not scheduled again", _with(Queue=RunsOnce)),
    of_impl("the latest task first", "QRM-41", "of those that are due", _with(Queue=LatestFirst)),
    of_impl("tasks at one time", "QRM-39 QRM-41", "two have one deadline", _with(Queue=SharesDeadlines)),
    of_impl("tasks wait for nothing", "QRM-12 QRM-41", "if they write nothing", _of(TasksDoNotWait)),
    of_impl("tasks write one batch", "QRM-41", "whatever its size", _of(TasksWriteAtomically)),
    of_impl("tasks are refused nothing", "QRM-41", "by a Raft that does not lead", _of(TasksStayThoughRefused)),
    of_impl("fences late", "QRM-42", "once a session timeout", _tasks(maybeFenceStaleBroker=impl.SESSION_TIMEOUT_NS)),
    of_impl("fences nobody", "QRM-42", "by a task", _tasks(maybeFenceStaleBroker=None)),
    of_impl("expires every minute", "QRM-42", "delegation tokens", _tasks(expireDelegationTokens=impl.MINUTE_NS)),
    of_impl("no-ops by default", "QRM-42", "without an interval", _of(AlwaysWritesNoOps)),
    of_impl("no no-ops", "QRM-42", "though there is an interval", _tasks(writeNoOpRecord=None)),
    of_spec("answers what waits", "QRM-14 QRM-15", "a commit answers all", _wrong("commit", _answers_what_waits)),
    of_spec("memory is kept", "QRM-22", "when it renounces", _wrong("lose", _loses_no_memory)),
    of_model("claims early", "QRM-16", "before it has all of the log", lambda: ClaimsBeforeItHasAll),
    of_model("ends what another began", "QRM-19 QRM-25", "by its activation", lambda: EndsWhatAnotherBegan),
    of_model("writes before", "QRM-17", "it is activated", lambda: WritesBeforeItsActivation),
    of_model("keeps all", "QRM-22", "when it renounces", lambda: StaysAStandbyToo),
    of_model("never renounces", "QRM-21", "though another leads", lambda: NeverRenounces),
    of_model("asks for what is there", "QRM-14", "and is answered with it", lambda: AsksForWhatIsThere),
    of_model("any record is an answer", "QRM-14", "at the offset of a call", lambda: AnswersWithAnyRecord),
    of_model("tasks run on", "QRM-40", "at whoever renounces", lambda: TasksRunOn),
    of_model("tasks run at a standby", "QRM-41", "and write", lambda: TasksRunAtAStandby),
    of_model("tasks are not scheduled", "QRM-39", "by an activation", lambda: TasksAreNotScheduled),
    of_model("nothing is aborted", "QRM-19", "by an activation", lambda: AbortsNothingAtAll),
    of_model("leads behind what is known", "QRM-16", "not all that it was handed", lambda: LeadsBehindWhatIsKnown),
    of_model("waits behind what is known", "QRM-10", "and wrote behind more", lambda: WaitsBehindWhatIsKnown),
    of_model("opens where it knows", "QRM-26", "not where the transaction begins", lambda: OpensWhereItKnows),
    of_model("leads though halted", "QRM-29", "with nothing in memory", lambda: LeadsThoughHalted),
    of_model("bootstraps nothing", "QRM-16", "nobody leads in an empty log", lambda: BootstrapsNothing),
]

RARE = [
    of_impl("split once", "QRM-9", "into two batches, the second of any size", _of(SplitsOnce)),
    of_impl("one snapshot a call", "QRM-5", "not one of each batch", _of(OneSnapshotACall)),
    of_impl("counted from the first", "QRM-6", "batch of several", _of(CountsFromTheFirst)),
    of_impl("stays though refused later", "QRM-36", "in a second batch", _of(StaysThoughRefusedLater)),
    of_impl("waits with the first", "QRM-12", "of those who wait", _of(WaitsWithTheFirst)),
    of_impl("two are failed", "QRM-21", "a third offset is forgotten", _with(Deferred=TwoAreFailed)),
    of_impl("leads again once", "QRM-24", "a third epoch is not claimed", _of(LeadsAgainOnce)),
    of_impl("epoch of the claim", "QRM-13", "not of the batch", _of(EpochOfTheClaim)),
    of_impl("epochs of 16 bits", "QRM-13 QRM-27", "of what is committed", _of(EpochsOf16Bits)),
    of_impl("offsets of 32 bits", "QRM-31", "of a snapshot", _of(OffsetsOf32Bits)),
    of_impl("two records are loaded", "QRM-31", "of a snapshot", _of(LoadsTwoRecords)),
    of_impl("elr alone", "QRM-18", "without its min.insync.replicas", _of(BootstrapsElrAlone)),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE
