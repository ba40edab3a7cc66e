"""Periodic tasks, for the spec to walk beside: the clock and the queue are the caller's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kafkaspec.contract.machine import ByName, Refused
from kafkaspec.impl.controller import periodic as impl
from kafkaspec.impl.controller.event_queue import FatalError, earliest_deadline
from kafkaspec.spec.common.kafka import LONG_MAX
from kafkaspec.spec.controller import periodic as spec
from kafkaspec.spec.controller.timeline import wrapped


class Entry(NamedTuple):
    """What waits in the queue."""

    deadline_ns: int
    run: Callable[[], impl.Result]
    task: int


class Queue:
    """Of each tag one entry waits; one that replaces another has the earlier deadline."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.id_of: Callable[[Callable[[], impl.Result]], int]

    def schedule_deferred(self, tag: str, deadline_ns: int, run: Callable[[], impl.Result]) -> None:
        before = self.entries.get(tag)
        deadline = earliest_deadline(deadline_ns)(None if before is None else before.deadline_ns)
        assert deadline is not None
        self.entries[tag] = Entry(deadline, run, self.id_of(run))

    def cancel_deferred(self, tag: str) -> None:
        self.entries.pop(tag, None)


class Operation:
    """What a task does: as the caller says, when it is run."""

    def __init__(self, driver: Driver, id: int) -> None:
        self.driver = driver
        self.id = id

    def __call__(self) -> impl.Result:
        return self.driver.perform(self)


class Driver(ByName):
    """The manager over a queue that runs nothing by itself."""

    machine = spec.machine
    make: type[impl.PeriodicTasks] = impl.PeriodicTasks
    subject: impl.PeriodicTasks
    refusals = {
        impl.AlreadyActiveError: spec.ALREADY_ACTIVE,
        impl.TaskError: lambda e: Refused("PER-12", spec.FAILED, str(e)),
    }

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.now = spec.initial(**arguments).now
        self.queue = Queue()
        self.queue.id_of = self._id_of
        self.subject = self.make(lambda: self.now, self.queue)
        self.made: list[impl.Task] = []

    def _id_of(self, run: Callable[[], impl.Result]) -> int:
        """Of the task that is run there."""
        (task,) = [c.cell_contents for c in run.__closure__ or () if isinstance(c.cell_contents, impl.Task)]
        return self._number(task)

    def _number(self, task: impl.Task) -> int:
        return next(n for n, made in enumerate(self.made) if made is task)

    def _register(self, name: str, period_ns: int, immediate_ns: int | None) -> None:
        operation = Operation(self, len(self.made))
        if immediate_ns is None:
            task = impl.Task(name, operation, period_ns)
        else:
            task = impl.Task(name, operation, period_ns, immediate_ns)
        self.made.append(task)
        self.subject.register_task(task)

    def register_task(self, name: str, period_ns: int, immediate_ns: int | None, verbose: bool) -> None:
        self._register(name, period_ns, immediate_ns)

    def advance(self, ns: int) -> None:
        self.now += ns

    def run(
        self, name: str, outcome: spec.Outcome, meanwhile: spec.Meanwhile, records: int, atomic: bool
    ) -> spec.RunResult | Refused:
        entry = self.queue.entries.pop(name)
        self.asked = outcome, meanwhile, records, atomic
        try:
            result = entry.run()
        except FatalError:
            return spec.ERROR
        except impl.NoAnswerError:
            return spec.NO_ANSWER
        return spec.RunResult(entry.task, result.records, result.is_atomic)

    def perform(self, operation: Operation) -> impl.Result:
        """What a task does."""
        outcome, meanwhile, records, atomic = self.asked
        task, manager = self.made[operation.id], self.subject
        if meanwhile in ("unregister", "replace"):
            manager.unregister_task(task.name)
        if meanwhile == "replace":
            self._register(task.name, wrapped(2 * task.period_ns, 64) % LONG_MAX, task.immediate_ns)
        if meanwhile in ("deactivate", "reactivate"):
            manager.deactivate()
        if meanwhile == "reactivate":
            manager.activate()
        if outcome == "error":
            raise FatalError
        if outcome == "throws":
            raise ValueError(operation.id)
        return impl.Result(records, None if outcome == "null" else outcome == "again", atomic)

    def state(self) -> spec.Manager:
        """What is registered, and what waits in the queue."""
        made = tuple(spec.Task(n, t.name, t.period_ns, t.immediate_ns) for n, t in enumerate(self.made))
        return spec.Manager(
            self.now,
            self.subject.active,
            {name: made[self._number(t)] for name, t in self.subject.tasks.items()},
            {name: spec.Entry(e.deadline_ns, e.task) for name, e in self.queue.entries.items()},
            made,
        )
