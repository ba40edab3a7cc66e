"""Periodic tasks of the controller: who is scheduled, and for when.

Only the active controller runs them. Each is a deferred event of the controller's queue, whose tag is the task's name;
a run schedules the next one. The queue is here what the controller makes of it: of each name one event waits, and one
that takes the place of another keeps the earlier of both times. Source: PeriodicTaskControlManager, Kafka 4.3.0; Kafka
Internals, ch. 11, "Periodic background tasks".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import ONE_CALL, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import Few, Within
from kafkaspec.spec.common.kafka import LONG_MAX, NULL_POINTER
from kafkaspec.spec.controller.timeline import wrapped

PREFIX = "PER"
TITLE = "Periodic tasks"

MANAGER = "PeriodicTaskControlManager, Kafka 4.3.0"
TASK = "PeriodicTask, Kafka 4.3.0"
CONTROLLER = "QuorumController.PeriodicTaskControlManagerQueueAccessor, Kafka 4.3.0"

Ns = Annotated[int, Within(0, LONG_MAX)]
Outcome = Literal["done", "again", "throws", "error", "null"]
"""How a task's run ends: with nothing left to do, or something; with an exception, an Error; or its answer is null."""
Meanwhile = Literal["nothing", "unregister", "replace", "deactivate", "reactivate"]
"""What the run does to the manager: unregisters its own task, and registers another of that name; ends its being
active, and makes it active again."""

DEFAULT_IMMEDIATE_NS: Final = 10_000_000
ERROR_NS: Final = 300_000_000_000
ALREADY_ACTIVE: Final = Refused(
    "PER-3", "java.lang.RuntimeException", "Can't activate already active PeriodicTaskControlManager."
)
FAILED: Final = "org.apache.kafka.controller.errors.PeriodicControlTaskException"
ERROR: Final = Refused("PER-11", "java.lang.Error")
NO_ANSWER: Final = Refused("PER-11", NULL_POINTER)


class Task(NamedTuple):
    """A task that was made. `id`: by the order in which they were."""

    id: int
    name: str
    period_ns: int
    immediate_ns: int


class Entry(NamedTuple):
    """When a task is to be run, and which one."""

    deadline_ns: Annotated[int, governs("PER-6", "PER-7", "PER-8", "PER-9", "PER-10")]
    task: Annotated[int, governs("PER-13", "PER-1")]


class RunResult(NamedTuple):
    """What a run gives the controller to write: the task's records, whether they are one transaction, no answer."""

    task: Annotated[int, governs("PER-13")]
    records: Annotated[int, governs("PER-12")]
    is_atomic: Annotated[bool, governs("PER-12")]


@dataclass(frozen=True)
class Observation:
    """What can be seen of the manager, and of the queue by its tags."""

    active: Annotated[bool, governs("PER-3", "PER-4")]
    tasks: Annotated[Mapping[str, int], governs("PER-1", "PER-2", "PER-4")]
    scheduled: Annotated[Mapping[str, Entry], governs("PER-2", "PER-3", "PER-4", "PER-5", "PER-11")]


@dataclass(frozen=True)
class Manager:
    """The state. `made` are all tasks that ever were, by their numbers."""

    now: int
    """ns"""
    active: bool = False
    tasks: Mapping[str, Task] = field(default_factory=dict)
    scheduled: Mapping[str, Entry] = field(default_factory=dict)
    made: tuple[Task, ...] = ()


def initial(now: Annotated[int, Within(0, 2**62)] = 0) -> Manager:
    """No task, and not active."""
    return Manager(now)


def observe(state: Manager) -> Observation:
    """What is compared after every call."""
    return Observation(
        state.active, {n: t.id for n, t in sorted(state.tasks.items())}, dict(sorted(state.scheduled.items()))
    )


machine = Machine("periodic", initial, observe)


@states()
def usual_delay(task: Task) -> int:
    """PER-6: A task that is registered or activated, or whose run has done all that there was, is run when its period
    has passed from then on. [{MANAGER}, nextDelayTimeNs]"""
    return task.period_ns


@states()
def short_delay(task: Task) -> int:
    """PER-7: A task whose run says that something is left is run again after its immediate period, 10 ms unless the
    task has another; not at once, as what is due is run before all else that waits in the queue. [{MANAGER},
    nextDelayTimeNs; {TASK}]"""
    return task.immediate_ns


@states()
def delay_of_a_failure(_: Task) -> int:
    """PER-9: A task whose run throws an exception is run again after 5 minutes, whatever its period. [{MANAGER},
    nextDelayTimeNs]"""
    return ERROR_NS


@states(without={"PER-8": ONE_CALL})
def deadline_of(state: Manager, delay_ns: int) -> int:
    """PER-8: The time of a run is a long, without a check: a period that leads beyond the greatest long leads to a time
    that has passed, and the task is run at once, again and again. [{MANAGER}, reschedule]"""
    return wrapped(state.now + delay_ns, 64)


@states()
def is_to_be_run(state: Manager, name: str) -> bool:
    """PER-5: While the manager is active, a task that is registered is scheduled. While it is not, and for a name that
    is not registered, nothing is. [{MANAGER}, reschedule]"""
    return state.active and name in state.tasks


@states(without={"PER-10": ONE_CALL})
def earlier(deadline: int, before: Entry | None) -> int:
    """PER-10: Of each name one run is scheduled. Where one takes the place of another, it is run at the earlier of both
    times. [{CONTROLLER}; EventQueue.EarliestDeadlineFunction]"""
    return deadline if before is None else min(deadline, before.deadline_ns)


def scheduled(state: Manager, task: Task, delay: Callable[[Task], int] = usual_delay) -> Manager:
    """The task's next run is put into the queue, or what is there of it is taken away."""
    if not is_to_be_run(state, task.name):
        return replace(state, scheduled={n: s for n, s in state.scheduled.items() if n != task.name})
    deadline = earlier(deadline_of(state, delay(task)), state.scheduled.get(task.name))
    return replace(state, scheduled={**state.scheduled, task.name: Entry(deadline, task.id)})


def registered(state: Manager, name: str, period_ns: int, immediate_ns: int) -> Manager:
    """With a task of that name."""
    task = Task(len(state.made), name, period_ns, immediate_ns)
    state = replace(state, made=(*state.made, task))
    if name in state.tasks:
        return state
    return scheduled(replace(state, tasks={**state.tasks, name: task}), task)


def unregistered(state: Manager, name: str) -> Manager:
    """Without the task of that name."""
    task = state.tasks.get(name)
    if task is None:
        return state
    return scheduled(replace(state, tasks={n: t for n, t in state.tasks.items() if n != name}), task)


def activated(state: Manager) -> Manager:
    """All tasks are scheduled."""
    state = replace(state, active=True)
    for task in state.tasks.values():
        state = scheduled(state, task)
    return state


def deactivated(state: Manager) -> Manager:
    """No task is."""
    if not state.active:
        return state
    state = replace(state, active=False)
    for task in state.tasks.values():
        state = scheduled(state, task)
    return state


only_registered = ensure(
    lambda result: set(result.scheduled) <= set(result.tasks) if result.active else not result.scheduled,
    "PER-5 who is not registered, or inactive, is not scheduled",
)


@machine.operation("registerTask", "PER-1", "PER-6")
@only_registered
@ensure(lambda name, result: name in result.tasks, "PER-1 it is there")
def register_task(state: Manager, name: str, period_ns: Ns, immediate_ns: Ns | None, verbose: bool) -> Manager:
    """`registerTask`. `immediate_ns` None: the default. `verbose`: the flag, with which runs are logged.

    PER-1: A task is registered under its name. If the name is taken, nothing happens: the task that has it stays as it
    is, with its period. [{MANAGER}, registerTask]
    """
    return registered(state, name, period_ns, DEFAULT_IMMEDIATE_NS if immediate_ns is None else immediate_ns)


@machine.operation("unregisterTask", "PER-2")
@only_registered
@ensure(lambda name, result: name not in result.tasks and name not in result.scheduled, "PER-2 it is gone")
def unregister_task(state: Manager, name: str) -> Manager:
    """`unregisterTask`.

    PER-2: A task that is unregistered is neither registered nor scheduled any more; a name that nobody has makes no
    difference. [{MANAGER}, unregisterTask]
    """
    return unregistered(state, name)


@machine.operation("activate", "PER-3")
@ensure(
    lambda state, result: isinstance(result, Refused) or result.scheduled.keys() == result.tasks.keys(),
    "PER-5 all are scheduled",
)
def activate(state: Manager) -> Manager | Refused:
    """`activate`.

    PER-3: When the manager becomes active, each registered task is scheduled. To activate one that is active is an
    error. [{MANAGER}, activate]
    """
    return ALREADY_ACTIVE if state.active else activated(state)


@machine.operation("deactivate", "PER-4")
@ensure(lambda result: not result.active and not result.scheduled, "PER-4 none is scheduled")
def deactivate(state: Manager) -> Manager:
    """`deactivate`.

    PER-4: When the manager becomes inactive, no task is scheduled any more, and all stay registered. To deactivate one
    that is not active makes no difference. [{MANAGER}, deactivate]
    """
    return deactivated(state)


@machine.operation("advance", "PER-6", kind="time")
@require(lambda state, ns: state.now + ns <= LONG_MAX, "PER-6 the clock is a long")
def advance(state: Manager, ns: Annotated[int, Within(0, 2**62)]) -> Manager:
    """Time passes."""
    return replace(state, now=state.now + ns)


def acted(state: Manager, task: Task, meanwhile: Meanwhile) -> Manager:
    """What the task's run does to the manager."""
    if meanwhile == "unregister":
        return unregistered(state, task.name)
    if meanwhile == "replace":
        return registered(
            unregistered(state, task.name), task.name, wrapped(2 * task.period_ns, 64) % LONG_MAX, task.immediate_ns
        )
    if meanwhile in ("deactivate", "reactivate"):
        state = deactivated(state)
    return activated(state) if meanwhile == "reactivate" else state


@states()
def ends_the_task(outcome: Outcome) -> bool:
    """PER-11: A run that throws an Error, or whose answer is null, is not followed by another: its task stays
    registered and is not scheduled, until the manager becomes active again. [{MANAGER}, PeriodicTaskOperation]"""
    return outcome in ("error", "null")


@states(without={"PER-12": ONE_CALL})
def run_result(task: Task, outcome: Outcome, records: int, atomic: bool) -> RunResult | Refused:
    """PER-12: A run gives the controller its task's records to write, atomically if the task says so. If the task
    throws an exception, the run throws a PeriodicControlTaskException that names the task and has the exception's
    message, and gives no records. [{MANAGER}, PeriodicTaskOperation]"""
    if outcome == "throws":
        return Refused("PER-12", FAILED, f"{task.name}: periodic task failed: {task.id}")
    return RunResult(task.id, records, atomic)


@machine.operation("run", "PER-9", "PER-7", "PER-11", "PER-6", "PER-5", "PER-10", "PER-12", "PER-8")
@states(without={"PER-13": ONE_CALL})
@require(
    lambda state, name: name in state.scheduled and state.scheduled[name].deadline_ns <= state.now,
    "PER-6 a run is due",
)
@ensure(
    lambda result: (
        set(result.state.scheduled) <= set(result.state.tasks) if result.state.active else not result.state.scheduled
    ),
    "PER-5 who is not registered, or inactive, is not scheduled",
)
def run(
    state: Manager, name: str, outcome: Outcome, meanwhile: Meanwhile, records: Few, atomic: bool
) -> Step[Manager, RunResult]:
    """The queue runs what is scheduled.

    PER-13: The task that has run is scheduled again if its name is registered then, even if it is another task that
    has the name by now: that one does not get to run. [{MANAGER}, reschedule]
    """
    task = state.made[state.scheduled[name].task]
    state = replace(state, scheduled={n: s for n, s in state.scheduled.items() if n != name})
    state = acted(state, task, meanwhile)
    if ends_the_task(outcome):
        return Step(state, ERROR if outcome == "error" else NO_ANSWER)
    delay = {"throws": delay_of_a_failure, "again": short_delay, "done": usual_delay}[outcome]
    return Step(scheduled(state, task, delay), run_result(task, outcome, records, atomic))
