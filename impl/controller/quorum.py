"""The controller of a quorum as a program: one queue of events, one memory with a past, one purgatory.

Its memory is a timeline map, so that what is not committed can be read over and thrown away. Events are run one after
the other. What a call asks for is made into records; these go to Raft and are applied at once; the call is answered
when Raft says that they are committed. Source: Kafka Internals, ch. 11; QuorumController, OffsetControlManager,
ActivationRecordsGenerator and DeferredEventQueue, Kafka 4.3.0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from kafkaspec.impl.controller import periodic
from kafkaspec.impl.controller.periodic import PeriodicTasks
from kafkaspec.impl.controller.timeline import SnapshotRegistry, TimelineError, TimelineHashMap
from kafkaspec.spec.common.metadata_log import (
    ELR,
    FIRST_TRANSACTIONS,
    MIN_ISR,
    NO_EPOCH,
    NO_LOG_OFFSET,
    VERSION,
    Batch,
    Fault,
    Kind,
    Outcome,
    Record,
)


class FatalFaultError(Exception):
    """The process cannot go on."""


class ReplayError(Exception):
    """A record cannot be applied."""


class OperationError(Exception):
    """What an operation throws."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.value)
        self.fault = fault


class NotLeaderError(Exception):
    """Raft does not lead any more."""


class Raft(Protocol):
    """What the controller asks of Raft."""

    def prepare_append(self, epoch: int, records: Sequence[Record]) -> int:
        """The last offset of a batch that is not written yet. Raises NotLeaderError; ValueError for no records."""

    def schedule_prepared_append(self) -> None:
        """Write what was prepared."""

    def log_end_offset(self) -> int:
        """Where the log ends."""

    def resign(self, epoch: int) -> None:
        """Give up the epoch."""


class ControllerResult(NamedTuple):
    """What an operation makes."""

    records: Sequence[Record]
    response: int
    is_atomic: bool = True


Operation = Callable[[], ControllerResult]
Reply = Callable[[Outcome, int], None]
"""Takes an answer."""


class ReplayedMemory:
    """What records have made: names with numbers, and the open transaction."""

    Registry: type[SnapshotRegistry] = SnapshotRegistry

    def __init__(self) -> None:
        self.registry = self.Registry()
        self.values: TimelineHashMap[str, int] = TimelineHashMap(self.registry, 8)
        self.transaction_start = NO_LOG_OFFSET
        self.take(NO_LOG_OFFSET)

    def take(self, offset: int) -> None:
        """A snapshot, unless the latest is at that offset. [QRM-5, QRM-38]"""
        try:
            self.registry.get_or_create_snapshot(offset)
        except TimelineError as e:
            raise ReplayError(str(e)) from e

    def revert(self, offset: int) -> None:
        """Be what it was. [QRM-22, QRM-25]"""
        try:
            self.registry.revert_to_snapshot(offset)
        except TimelineError as e:
            raise ReplayError(str(e)) from e

    def replay(self, record: Record, offset: int, in_snapshot: bool = False) -> None:
        """Apply a record. Raises ReplayError for one that it cannot apply. [QRM-6, QRM-25, QRM-30]"""
        match record.kind:
            case Kind.SET:
                self.values.put(record.key, record.value)
            case Kind.VERSION:
                self.values.put(VERSION, record.value)
            case Kind.FEATURE:
                self.values.put(ELR, record.value)
            case Kind.REGISTER:
                self.values.put(f"broker {record.value}", offset)
            case Kind.NO_OP:
                pass
            case Kind.BEGIN | Kind.END | Kind.ABORT:
                self.replay_transaction(record.kind, offset, in_snapshot)
            case _:
                raise ReplayError(f"unhandled record type {record.kind.value}")

    def replay_transaction(self, kind: Kind, offset: int, in_snapshot: bool) -> None:
        """[QRM-25]"""
        opened = self.transaction_start != NO_LOG_OFFSET
        if in_snapshot or opened == (kind == Kind.BEGIN):
            raise ReplayError(f"{kind.value} at {offset}, with a transaction open: {opened}")
        if kind == Kind.BEGIN:
            self.take(offset - 1)
            self.transaction_start = offset
            return
        if kind == Kind.ABORT:
            self.revert(self.transaction_start - 1)
        self.transaction_start = NO_LOG_OFFSET

    def forget(self) -> None:
        """Be as in the beginning, without a snapshot. [QRM-31]"""
        self.registry.reset()
        self.transaction_start = NO_LOG_OFFSET


class Purgatory:
    """Calls by the offset that they wait for."""

    def __init__(self) -> None:
        self.pending: dict[int, list[WriteEvent]] = {}

    def add(self, offset: int, event: WriteEvent) -> None:
        """Behind all others; ValueError below the last. [QRM-10, QRM-12]"""
        if self.pending and offset < self.highest():
            raise ValueError(f"{offset} is below {self.highest()}")
        self.pending.setdefault(offset, []).append(event)

    def highest(self) -> int:
        """The highest offset that a call waits for; NO_LOG_OFFSET if none waits."""
        return next(reversed(self.pending), NO_LOG_OFFSET)

    def complete_up_to(self, offset: int) -> None:
        """Answer all that wait for an offset up to this. [QRM-14, QRM-15]"""
        while self.pending and next(iter(self.pending)) <= offset:
            for event in self.pending.pop(next(iter(self.pending))):
                event.succeed()

    def fail_all(self, outcome: Outcome) -> None:
        """[QRM-21]"""
        while self.pending:
            for event in self.pending.pop(next(iter(self.pending))):
                event.reply(outcome, NO_LOG_OFFSET)


def nothing() -> None:
    """What is done where nothing is to be done."""


def nobody(outcome: Outcome, value: int) -> None:
    """Who takes the answer of what the controller asks of itself."""


class WriteEvent:
    """A call that may write; it answers by `reply`. `applied` is run when its records, if any, are applied."""

    def __init__(self, operation: Operation, reply: Reply, applied: Callable[[], None] = nothing) -> None:
        self.operation = operation
        self.reply = reply
        self.applied = applied
        self.response = NO_LOG_OFFSET

    def succeed(self) -> None:
        self.reply(Outcome.DONE, self.response)


FAILURES = {
    Fault.API: (Outcome.INVALID_REQUEST, False, False),
    Fault.TOO_LONG: (Outcome.POLICY_VIOLATION, False, False),
    Fault.PERIODIC: (Outcome.PERIODIC_TASK, True, False),
    Fault.NOT_LEADER: (Outcome.NOT_CONTROLLER, False, True),
    Fault.UNEXPECTED: (Outcome.UNKNOWN_SERVER, True, True),
}
"""What the caller is told, whether it is a fault, and whether the controller gives up. [QRM-23]"""


NS_IN_MS = 1_000_000
MINUTE_NS = 60_000 * NS_IN_MS
SESSION_TIMEOUT_NS = 9_000 * NS_IN_MS


def finds_nothing() -> periodic.Result:
    """What a task does whose subsystem is none of these: there is nothing to do for it. [QRM-42]"""
    return periodic.Result(0, again=False)


def writes_no_op() -> periodic.Result:
    return periodic.Result(1, again=False)


class DeferredEvents:
    """Events of the queue that have a time. [QRM-41]"""

    def __init__(self, run: Callable[[Callable[[], periodic.Result]], None]) -> None:
        self.run = run
        self.deadlines: dict[str, int] = {}
        self.runs: dict[str, Callable[[], periodic.Result]] = {}

    def schedule_deferred(self, tag: str, deadline_ns: int, run: Callable[[], periodic.Result]) -> None:
        """No two have one deadline."""
        if tag in self.deadlines:
            deadline_ns = min(deadline_ns, self.deadlines.pop(tag))
        while deadline_ns in self.deadlines.values():
            deadline_ns += 1
        self.deadlines[tag], self.runs[tag] = deadline_ns, run

    def cancel_deferred(self, tag: str) -> None:
        self.deadlines.pop(tag, None)
        self.runs.pop(tag, None)

    @property
    def earliest(self) -> str | None:
        return min(self.deadlines, key=lambda tag: self.deadlines[tag], default=None)

    def run_earliest(self, now_ns: int) -> bool:
        """Whether one is due; it is run."""
        tag = self.earliest
        if tag is None or self.deadlines[tag] > now_ns:
            return False
        run = self.runs[tag]
        self.cancel_deferred(tag)
        self.run(run)
        return True


class QuorumController:
    """One controller. Its periodic tasks are those of Kafka 4.3.0; which of them write, is in `periodic_tasks`."""

    Memory: type[ReplayedMemory] = ReplayedMemory
    Deferred: type[Purgatory] = Purgatory
    Queue: type[DeferredEvents] = DeferredEvents

    def __init__(
        self,
        raft: Raft,
        max_records_per_batch: int,
        bootstrap: Sequence[Record],
        clock: Callable[[], int] = lambda: 0,
        max_idle_interval_ns: int | None = None,
    ) -> None:
        """`clock`: in ns. Without an interval no no-op records are written."""
        self.raft = raft
        self.max_records_per_batch = max_records_per_batch
        self.bootstrap = bootstrap
        self.memory = self.Memory()
        self.purgatory = self.Deferred()
        self.queue: deque[Callable[[], None]] = deque()
        self.claim_epoch = NO_EPOCH
        self.last_committed_offset = NO_LOG_OFFSET
        self.last_committed_epoch = NO_EPOCH
        self.last_stable_offset = NO_LOG_OFFSET
        self.next_write_offset = NO_LOG_OFFSET
        self.faults = 0
        self.clock = clock
        self.deferred = self.Queue(self.run_task)
        self.tasks = PeriodicTasks(clock, self.deferred)
        for task in self.periodic_tasks(max_idle_interval_ns):
            self.tasks.register_task(task)

    def periodic_tasks(self, max_idle_interval_ns: int | None) -> Iterable[periodic.Task]:
        """In the order of a Java HashMap. [QRM-42]"""
        yield periodic.Task("expireDelegationTokens", finds_nothing, 5 * MINUTE_NS)
        yield periodic.Task("electUnclean", finds_nothing, 5 * MINUTE_NS)
        yield periodic.Task("generatePeriodicPerformanceMessage", finds_nothing, MINUTE_NS)
        if max_idle_interval_ns is not None:
            yield periodic.Task("writeNoOpRecord", writes_no_op, max_idle_interval_ns)
        yield periodic.Task("maybeFenceStaleBroker", finds_nothing, max(NS_IN_MS, SESSION_TIMEOUT_NS // 8))

    @property
    def is_active(self) -> bool:
        return self.claim_epoch != NO_EPOCH

    # ---- events

    def append_write(self, operation: Operation, reply: Reply) -> None:
        """Behind all that is in the queue."""
        event = WriteEvent(operation, reply)
        self.queue.append(lambda: self.run_write(event))

    def expire(self, reply: Reply) -> None:
        """The deadline of a call passes in the queue: it is not run. [QRM-35]"""
        reply(Outcome.TIMEOUT, NO_LOG_OFFSET)

    def append_event(self, run: Callable[[], None]) -> None:
        self.queue.append(run)

    def run_all(self) -> None:
        """Until the queue is empty. What is due comes before what is in line. Raises FatalFaultError."""
        while True:
            if self.deferred.run_earliest(self.clock()):
                continue
            if not self.queue:
                return
            self.queue.popleft()()

    def run_task(self, run: Callable[[], periodic.Result]) -> None:
        """A run of a periodic task: all that it writes are no-op records. [QRM-41]"""

        def operation() -> ControllerResult:
            result = run()
            return ControllerResult([Record(Kind.NO_OP)] * result.records, NO_LOG_OFFSET, result.is_atomic)

        self.run_write(WriteEvent(operation, nobody))

    # ---- reading and writing

    def read(self, key: str) -> int:
        """What is stable. [QRM-2]"""
        value = self.memory.values.get(key, self.last_stable_offset)
        return NO_LOG_OFFSET if value is None else value

    def latest(self, key: str) -> int:
        """What is in memory. [QRM-4]"""
        value = self.memory.values.get(key)
        return NO_LOG_OFFSET if value is None else value

    def run_write(self, event: WriteEvent) -> None:
        """[QRM-1, QRM-4, QRM-11, QRM-12]"""
        if not self.is_active:
            event.reply(Outcome.NOT_CONTROLLER, NO_LOG_OFFSET)
            return
        try:
            result = event.operation()
            event.response = result.response
            if result.records:
                last = self.append_records(result)
                event.applied()
                self.purgatory.add(last, event)
                return
            event.applied()
            if self.purgatory.highest() == NO_LOG_OFFSET:
                event.succeed()
            else:
                self.purgatory.add(self.purgatory.highest(), event)
        except periodic.TaskError:
            self.fail(Fault.PERIODIC, event.reply)
        except OperationError as e:
            self.fail(e.fault, event.reply)
        except NotLeaderError:
            self.fail(Fault.NOT_LEADER, event.reply)
        except ValueError:
            self.fail(Fault.UNEXPECTED, event.reply)

    def fail(self, fault: Fault, reply: Reply) -> None:
        """[QRM-23]"""
        outcome, is_fault, fails_over = FAILURES[fault]
        self.faults += is_fault
        if fails_over and self.is_active:
            self.renounce()
        reply(outcome, NO_LOG_OFFSET)

    def append_records(self, result: ControllerResult) -> int:
        """The offset of the last record. Raises ValueError for what Raft or the size of a batch forbids, and
        NotLeaderError. [QRM-8, QRM-9, QRM-36]"""
        records, cap = result.records, self.max_records_per_batch
        if result.is_atomic:
            if len(records) > cap:
                raise ValueError(f"{len(records)} records are more than {cap}")
            return self.append_batch(records)
        start = 0
        while start + cap <= len(records):
            self.append_batch(records[start : start + cap])
            start += cap
        return self.append_batch(records[start:])  # an exact multiple leaves an empty one, as in Kafka 4.3.0

    def append_batch(self, records: Sequence[Record]) -> int:
        """Prepare, apply, write. [QRM-5, QRM-6, QRM-7]"""
        last = self.raft.prepare_append(self.claim_epoch, records)
        self.replay_all(records, last - len(records) + 1)
        self.raft.schedule_prepared_append()
        self.next_write_offset = last + 1
        try:
            self.memory.take(last)
        except ReplayError as e:
            raise FatalFaultError from e
        return last

    def replay_all(self, records: Sequence[Record], base: int) -> None:
        """Each record at its own offset. Raises FatalFaultError. [QRM-7, QRM-29]"""
        for offset, record in enumerate(records, base):
            try:
                self.memory.replay(record, offset)
            except ReplayError as e:
                raise FatalFaultError from e

    # ---- what Raft says

    def handle_commit(self, batches: Iterable[Batch]) -> None:
        """[QRM-13, QRM-27, QRM-28, QRM-34]"""
        for batch in batches:
            if not batch.records:
                continue
            if not self.is_active:
                self.replay_all(batch.records, batch.base)
            self.last_committed_offset = batch.last
            self.last_committed_epoch = batch.epoch
            self.advance_last_stable_offset()
            if self.is_active:
                self.purgatory.complete_up_to(self.last_stable_offset)

    def advance_last_stable_offset(self) -> None:
        """[QRM-26, QRM-13]"""
        start = self.memory.transaction_start
        committed = self.last_committed_offset
        stable = committed if start == NO_LOG_OFFSET else min(start - 1, committed)
        if stable <= self.last_stable_offset:
            return
        self.last_stable_offset = stable
        self.memory.registry.delete_snapshots_up_to(stable)
        if not self.is_active and self.memory.registry.latest_epoch <= stable:
            self.memory.take(stable)

    def handle_leader_change(self, epoch: int, is_leader: bool) -> None:
        """[QRM-16, QRM-24, QRM-37]"""
        if self.is_active and is_leader:
            self.claim_epoch = epoch
        elif self.is_active:
            self.renounce()
        elif is_leader:
            self.claim(epoch)

    def claim(self, epoch: int) -> None:
        """[QRM-16, QRM-17, QRM-39]"""
        self.claim_epoch = epoch
        try:
            self.memory.take(self.last_stable_offset)
        except ReplayError as e:
            raise FatalFaultError from e
        self.next_write_offset = self.raft.log_end_offset()
        activation = WriteEvent(self.activation_records, nobody, self.tasks.activate)
        self.queue.appendleft(lambda: self.run_write(activation))

    def activation_records(self) -> ControllerResult:
        """[QRM-18, QRM-19]"""
        level = self.memory.values.get(VERSION)
        first = next(r.value for r in self.bootstrap if r.kind == Kind.VERSION)
        transactions = (first if level is None else level) >= FIRST_TRANSACTIONS
        records = []
        if self.memory.transaction_start != NO_LOG_OFFSET:
            if not transactions:
                raise FatalFaultError
            records.append(Record(Kind.ABORT))
        if level is not None:
            return ControllerResult(records, NO_LOG_OFFSET)
        written = [*self.bootstrap]
        if any(r.kind == Kind.FEATURE for r in self.bootstrap):
            written.append(Record(Kind.SET, MIN_ISR, 1))
        records += [Record(Kind.BEGIN), *written, Record(Kind.END)] if transactions else written
        return ControllerResult(records, NO_LOG_OFFSET, is_atomic=not transactions)

    def renounce(self) -> None:
        """[QRM-21, QRM-22, QRM-40]"""
        self.raft.resign(self.claim_epoch)
        self.claim_epoch = NO_EPOCH
        self.purgatory.fail_all(Outcome.NOT_CONTROLLER)
        self.next_write_offset = NO_LOG_OFFSET
        try:
            self.memory.revert(self.last_stable_offset)
        except ReplayError as e:
            raise FatalFaultError from e
        self.tasks.deactivate()

    def load_snapshot(self, end_offset: int, epoch: int, records: Sequence[Record]) -> None:
        """[QRM-31, QRM-33]"""
        if self.is_active:
            raise FatalFaultError
        self.memory.forget()
        last = end_offset - 1
        for record in records:
            try:
                self.memory.replay(record, last, in_snapshot=True)
            except ReplayError as e:
                raise FatalFaultError from e
        self.memory.take(last)
        self.last_committed_offset = self.last_stable_offset = last
        self.last_committed_epoch = epoch
