"""The controller's periodic tasks. Each run that ends puts the next one into the controller's queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

DEFAULT_IMMEDIATE_NS = 10_000_000
ERROR_NS = 300_000_000_000


class AlreadyActiveError(Exception):
    """The manager is active."""


class TaskError(Exception):
    """A task has failed."""


class NoAnswerError(BaseException):
    """A task has given no answer: nobody catches it either."""


@dataclass(frozen=True)
class Result:
    """What a task gives: records to write, and whether something is left to do."""

    records: int
    again: bool | None
    is_atomic: bool = False


@dataclass(frozen=True, eq=False)
class Task:
    """A task: what it does, and how often."""

    name: str
    operation: Callable[[], Result]
    period_ns: int
    immediate_ns: int = DEFAULT_IMMEDIATE_NS


class Queue(Protocol):
    """The controller's event queue, as far as it is asked."""

    def schedule_deferred(self, tag: str, deadline_ns: int, run: Callable[[], Result]) -> None:
        """Has it run at its time, in the place of what has the tag, at the earlier of both times."""

    def cancel_deferred(self, tag: str) -> None:
        """Nothing has the tag."""


class PeriodicTasks:
    """The manager."""

    def __init__(self, clock: Callable[[], int], queue: Queue) -> None:
        self.clock = clock
        self.queue = queue
        self.active = False
        self.tasks: dict[str, Task] = {}

    def register_task(self, task: Task) -> None:
        """Unless its name is taken. [PER-1]"""
        if task.name not in self.tasks:
            self.tasks[task.name] = task
            self.reschedule(task, task.period_ns)

    def unregister_task(self, name: str) -> None:
        """Nobody has that name. [PER-2]"""
        task = self.tasks.pop(name, None)
        if task is not None:
            self.reschedule(task, task.period_ns)

    def activate(self) -> None:
        """All are scheduled. Raises AlreadyActiveError. [PER-3]"""
        if self.active:
            raise AlreadyActiveError
        self.active = True
        self.reschedule_all()

    def deactivate(self) -> None:
        """None is. [PER-4]"""
        if self.active:
            self.active = False
            self.reschedule_all()

    def reschedule_all(self) -> None:
        """Each as it ought to be."""
        for task in self.tasks.values():
            self.reschedule(task, task.period_ns)

    def reschedule(self, task: Task, delay_ns: int) -> None:
        """The next run of a task, after that time, or none. [PER-5, PER-6, PER-10, PER-13]"""
        if self.active and task.name in self.tasks:
            deadline = as_long(self.clock() + delay_ns)
            self.queue.schedule_deferred(task.name, deadline, lambda: self.run(task))
        else:
            self.queue.cancel_deferred(task.name)

    def run(self, task: Task) -> Result:
        """What the queue runs. Raises TaskError. [PER-7, PER-9, PER-11, PER-12]"""
        try:
            result = task.operation()
        except Exception as e:
            self.reschedule(task, ERROR_NS)
            raise TaskError(f"{task.name}: periodic task failed: {e}") from e
        if result.again is None:
            raise NoAnswerError
        self.reschedule(task, task.immediate_ns if result.again else task.period_ns)
        return result


def as_long(ns: int) -> int:
    """What becomes of a sum in 64 bits. [PER-8]"""
    return (ns + 2**63) % 2**64 - 2**63
