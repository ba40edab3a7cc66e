"""The controller of a quorum over a log that does as it is told, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafkaspec.contract.machine import ByName, Json, Refused
from kafkaspec.impl.controller import quorum as impl
from kafkaspec.spec.common.metadata_log import (
    ACTIVATION,
    NONE_REFUSED,
    Answer,
    Batch,
    Fault,
    Kind,
    Outcome,
    PendingCall,
    QueuedWrite,
    Record,
)
from kafkaspec.spec.controller import quorum as spec
from kafkaspec.spec.controller.quorum_parts import state as parts


class ToldRaft:
    """A log on one node: `batches` are those that the controller was not handed."""

    def __init__(self) -> None:
        self.end = 0
        self.batches: list[Batch] = []
        self.refused_at = NONE_REFUSED
        self.prepared: Batch | None = None

    def prepare_append(self, epoch: int, records: Sequence[Record]) -> int:
        if self.refused_at == 0:
            raise impl.NotLeaderError
        self.refused_at -= 1
        if not records:
            raise ValueError("no records")
        self.prepared = Batch(self.end, epoch, tuple(records))
        return self.prepared.last

    def schedule_prepared_append(self) -> None:
        assert self.prepared is not None
        self.batches.append(self.prepared)
        self.end = self.prepared.last + 1

    def log_end_offset(self) -> int:
        return self.end

    def resign(self, epoch: int) -> None:
        """The next leader is told by whoever drives."""

    def take_all(self) -> None:
        """Refuse nothing any more."""
        self.refused_at = NONE_REFUSED

    def cut_off(self) -> None:
        """What was not handed out."""
        if self.batches:
            self.end = self.batches[0].base
            self.batches.clear()

    def committed(self, epoch: int, records: Sequence[Record]) -> Batch:
        """A batch of another leader."""
        batch = Batch(self.end, epoch, tuple(records))
        self.end = batch.last + 1
        return batch


class Driver(ByName):
    """One controller."""

    machine = spec.machine
    make: type[impl.QuorumController] = impl.QuorumController

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.first = spec.initial(**arguments)
        self.raft = ToldRaft()
        features = [Record(Kind.FEATURE, "", 1)] if self.first.elr else []
        bootstrap = [Record(Kind.VERSION, "", self.first.level), *features]
        self.now = 0
        idle_ms = self.first.idle_ms
        idle_ns = None if idle_ms is None else idle_ms * impl.NS_IN_MS
        self.subject = self.make(self.raft, self.first.cap, bootstrap, lambda: self.now, idle_ns)
        self.calls = self.epoch = 0
        self.halted = False
        self.answers: list[Answer] = []
        self.numbers: dict[impl.Reply, int] = {}

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        try:
            return super().apply(name, arguments)
        except impl.FatalFaultError:
            self.halted = True
            return [] if self.machine.operations[name].returns == "step" else None

    def state(self) -> parts.Controller:
        """Memory as it can be read at every offset, and the purgatory."""
        if self.halted:
            return spec.halted(self.first)
        c = self.subject
        registry = c.memory.registry
        return parts.Controller(
            self.first.cap,
            self.first.level,
            self.first.elr,
            self.first.idle_ms,
            c.claim_epoch,
            c.last_committed_offset,
            c.last_committed_epoch,
            c.last_stable_offset,
            c.next_write_offset,
            c.memory.transaction_start,
            tuple(sorted(c.memory.values.items())),
            tuple((epoch, tuple(sorted(c.memory.values.items(epoch)))) for epoch in registry.epochs),
            tuple(
                PendingCall(offset, self.numbers.get(event.reply, ACTIVATION), event.response)
                for offset, events in c.purgatory.pending.items()
                for event in events
            ),
            self.calls,
            c.faults,
            halted=False,
            epoch=self.epoch,
            end=self.raft.end,
            sent=tuple(self.raft.batches),
            now=self.now,
            scheduled=tuple(sorted(parts.ScheduledTask(ns, name) for name, ns in c.deferred.deadlines.items())),
        )

    def answered(self) -> list[Answer]:
        """By all events that are in the queue."""
        self.answers = []
        self.subject.run_all()
        return self.answers

    def reply(self) -> impl.Reply:
        """Of the next call."""
        call, self.calls = self.calls, self.calls + 1

        def take(outcome: Outcome, value: int) -> None:
            self.answers.append(Answer(call, outcome, value))

        self.numbers[take] = call
        return take

    def operation(self, write: QueuedWrite) -> impl.Operation:
        def made() -> impl.ControllerResult:
            if write.fault != Fault.NONE:
                raise impl.OperationError(write.fault)
            return impl.ControllerResult(write.records, self.subject.latest(write.key), write.atomic)

        return made

    def write(self, key: str, records: Sequence[Record], atomic: bool, fault: Fault, refused_at: int) -> list[Answer]:
        self.raft.refused_at = refused_at
        self.subject.append_write(self.operation(QueuedWrite(key, tuple(records), atomic, fault)), self.reply())
        try:
            return self.answered()
        finally:
            self.raft.take_all()

    def late(self, records: Sequence[Record]) -> list[Answer]:
        self.answers = []
        self.subject.expire(self.reply())
        return self.answers

    def read(self, key: str) -> int | None:
        if self.subject.last_stable_offset not in self.subject.memory.registry.epochs:
            return None
        value: int = self.subject.read(key)
        return value

    def told(self, event: Callable[[], None]) -> list[Answer]:
        self.subject.append_event(event)
        return self.answered()

    def commit(self, count: int) -> list[Answer]:
        batches = self.raft.batches[:count]
        del self.raft.batches[:count]
        return self.told(lambda: self.subject.handle_commit(batches))

    def replicate(self, epoch: int, batches: Sequence[Sequence[Record]]) -> None:
        self.raft.cut_off()
        for records in batches:
            batch = self.raft.committed(epoch, records)
            self.told(lambda batch=batch: self.subject.handle_commit([batch]))  # type: ignore[misc]

    def control(self) -> None:
        batch = self.raft.committed(self.subject.claim_epoch, ())
        self.raft.end += 1
        if self.subject.is_active:
            self.raft.batches.append(batch)
        else:
            self.told(lambda: self.subject.handle_commit([batch]))

    def lead(self, epoch: int, queued: Sequence[QueuedWrite], refused: bool) -> list[Answer]:
        self.raft.end += 1
        self.epoch = epoch
        self.raft.refused_at = 0 if refused else NONE_REFUSED
        self.subject.append_event(lambda: self.subject.handle_leader_change(epoch, is_leader=True))
        self.subject.append_event(self.raft.take_all)
        for write in queued:
            self.subject.append_write(self.operation(write), self.reply())
        try:
            return self.answered()
        finally:
            self.raft.take_all()

    def advance(self, ms: int, refused: bool) -> list[Answer]:
        self.now += ms * impl.NS_IN_MS
        self.raft.refused_at = 0 if refused else NONE_REFUSED
        try:
            return self.answered()
        finally:
            self.raft.take_all()

    def lose(self, epoch: int, known: bool) -> list[Answer]:
        self.epoch = epoch
        return self.told(lambda: self.subject.handle_leader_change(epoch, is_leader=False))

    def lead_again(self, epoch: int) -> None:
        self.epoch = epoch
        self.told(lambda: self.subject.handle_leader_change(epoch, is_leader=True))

    def load_snapshot(self, offset: int, epoch: int, records: Sequence[Record]) -> None:
        self.told(lambda: self.subject.load_snapshot(offset, epoch, records))
        self.raft.end = offset
