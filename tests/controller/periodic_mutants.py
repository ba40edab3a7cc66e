"""Faults of the periodic tasks, each with the clauses that it breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkaspec.contract.codec import replace
from kafkaspec.contract.machine import Machine, Step
from kafkaspec.impl.controller import periodic as impl
from kafkaspec.impl.controller.event_queue import FatalError
from kafkaspec.impl.controller.periodic import PeriodicTasks, Result, Task
from kafkaspec.impl.controller.periodic_driver import Driver
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.controller import periodic as model
from kafkaspec.models.controller.periodic import Delay
from kafkaspec.mutants.mutant import driver_with, of_impl, of_model, of_spec, with_fault
from kafkaspec.spec.controller import periodic as spec


def _of(make: type[PeriodicTasks]) -> Callable[[], Driver]:
    """What makes a driver of a faulty manager."""
    return driver_with(Driver, make=make)


class RegistersTheNewest(PeriodicTasks):
    def register_task(self, task: Task) -> None:
        self.tasks.pop(task.name, None)
        super().register_task(task)


class SchedulesTheNewest(PeriodicTasks):
    """Who registers a name that is taken is scheduled."""

    def register_task(self, task: Task) -> None:
        super().register_task(task)
        self.reschedule(task, task.period_ns)


class LeavesItScheduled(PeriodicTasks):
    """Who is unregistered is run once more."""

    def unregister_task(self, name: str) -> None:
        self.tasks.pop(name, None)


class NeverUnregisters(PeriodicTasks):
    def unregister_task(self, name: str) -> None:
        self.queue.cancel_deferred(name)


class ActivatesTwice(PeriodicTasks):
    def activate(self) -> None:
        self.active = True
        self.reschedule_all()


class ActivatesInSilence(PeriodicTasks):
    """Who was registered before is not scheduled."""

    def activate(self) -> None:
        if self.active:
            raise impl.AlreadyActiveError
        self.active = True


class DeactivatesInSilence(PeriodicTasks):
    """What is scheduled stays so."""

    def deactivate(self) -> None:
        self.active = False


class ForgetsThemAll(PeriodicTasks):
    def deactivate(self) -> None:
        super().deactivate()
        self.tasks.clear()


class SchedulesWhileInactive(PeriodicTasks):
    def register_task(self, task: Task) -> None:
        before, self.active = self.active, True
        super().register_task(task)
        self.active = before


class GoesOnInactive(PeriodicTasks):
    """A run in which the controller resigns is followed by another."""

    def run(self, task: Task) -> Result:
        result = super().run(task)
        if not self.active and task.name in self.tasks:
            self.queue.schedule_deferred(task.name, self.clock() + task.period_ns, lambda: self.run(task))
        return result


class AtOnce(PeriodicTasks):
    """A task that is registered is due."""

    def register_task(self, task: Task) -> None:
        super().register_task(task)
        if self.active and self.tasks[task.name] is task:
            self.reschedule(task, 0)


class HalfAPeriod(PeriodicTasks):
    def run(self, task: Task) -> Result:
        result = super().run(task)
        if not result.again and self.active and task.name in self.tasks:
            self.reschedule(task, task.period_ns // 2)
        return result


class AgainAtOnce(PeriodicTasks):
    """As it was before the small delay: the event queue runs nothing else."""

    def run(self, task: Task) -> Result:
        result = super().run(task)
        if result.again:
            self.reschedule(task, 0)
        return result


class DefaultImmediate(PeriodicTasks):
    """The task's own immediate period is not asked for."""

    def run(self, task: Task) -> Result:
        period = task.immediate_ns
        object.__setattr__(task, "immediate_ns", impl.DEFAULT_IMMEDIATE_NS)
        try:
            return super().run(task)
        finally:
            object.__setattr__(task, "immediate_ns", period)


class Saturates(PeriodicTasks):
    """A sum beyond the greatest long is that."""

    def reschedule(self, task: Task, delay_ns: int) -> None:
        super().reschedule(task, min(delay_ns, 2**63 - 1 - self.clock()))


class AfterItsPeriod(PeriodicTasks):
    """Who has failed is run again as ever."""

    def reschedule(self, task: Task, delay_ns: int) -> None:
        super().reschedule(task, task.period_ns if delay_ns == impl.ERROR_NS else delay_ns)


class NeverAgain(PeriodicTasks):
    """Who has failed is not run again."""

    def run(self, task: Task) -> Result:
        try:
            return super().run(task)
        except impl.TaskError:
            self.queue.cancel_deferred(task.name)
            raise


class FailsFirst(PeriodicTasks):
    """The period counts, if it is longer than the 5 minutes."""

    def reschedule(self, task: Task, delay_ns: int) -> None:
        super().reschedule(task, max(task.period_ns, delay_ns) if delay_ns == impl.ERROR_NS else delay_ns)


class Replaces(PeriodicTasks):
    """The later time counts, where one is scheduled."""

    def reschedule(self, task: Task, delay_ns: int) -> None:
        self.queue.cancel_deferred(task.name)
        super().reschedule(task, delay_ns)


class SurvivesErrors(PeriodicTasks):
    def run(self, task: Task) -> Result:
        try:
            return super().run(task)
        except FatalError:
            self.reschedule(task, impl.ERROR_NS)
            raise


class NullIsDone(PeriodicTasks):
    """A task that answers null is run again."""

    def run(self, task: Task) -> Result:
        try:
            return super().run(task)
        except impl.NoAnswerError:
            self.reschedule(task, task.period_ns)
            raise


class NeverAtomic(PeriodicTasks):
    def run(self, task: Task) -> Result:
        result = super().run(task)
        return Result(result.records, result.again)


class LosesRecords(PeriodicTasks):
    """Those of a run that has more to do."""

    def run(self, task: Task) -> Result:
        result = super().run(task)
        return Result(0, True, result.is_atomic) if result.again else result


class AnotherName(PeriodicTasks):
    def run(self, task: Task) -> Result:
        try:
            return super().run(task)
        except impl.TaskError as e:
            raise impl.TaskError(str(e).partition(": ")[2]) from e


class RunsTheSuccessor(PeriodicTasks):
    """Who has the name by now is scheduled."""

    def reschedule(self, task: Task, delay_ns: int) -> None:
        super().reschedule(self.tasks.get(task.name, task), delay_ns)


class LetsTheSuccessorBe(PeriodicTasks):
    """A run of one who is not registered any more schedules nobody."""

    def run(self, task: Task) -> Result:
        schedule, self.reschedule = self.reschedule, self.only_itself  # type: ignore[method-assign]
        self.schedule = schedule
        try:
            return super().run(task)
        finally:
            self.reschedule = schedule  # type: ignore[method-assign]

    def only_itself(self, task: Task, delay_ns: int) -> None:
        if self.tasks.get(task.name, task) is task:
            self.schedule(task, delay_ns)


def _spec(operation: str, body: Callable[..., Any]) -> Callable[[], Machine[spec.Manager]]:
    return lambda: with_fault(spec.machine, operation, body)


def _leaves_it_scheduled(state: spec.Manager, name: str) -> spec.Manager:
    return replace(state, tasks={n: t for n, t in state.tasks.items() if n != name})


def _stays_scheduled(state: spec.Manager) -> spec.Manager:
    return replace(state, active=False)


def _schedules_nobody(state: spec.Manager) -> spec.Manager:
    return replace(state, active=True)


def _runs_for_good(
    state: spec.Manager, name: str, outcome: str, meanwhile: str, records: int, atomic: bool
) -> Step[spec.Manager, spec.RunResult]:
    task = state.made[state.scheduled[name].task]
    forced = {**state.scheduled, name: spec.Entry(state.now + task.period_ns, task.id)}
    return Step(
        replace(spec.acted(state, task, "unregister"), scheduled=forced), spec.RunResult(task.id, records, atomic)
    )


# ---- the model -------------------------------------------------------------------------------------------------------
def _schedules_whoever_ends() -> LoadedModel:
    """Also who is not registered any more."""

    class Tasks(model.Tasks):
        @action("PER-6", "PER-7", "PER-9", who="task", fair="weak")
        def end(s, t: model.Task, outcome: model.Outcome) -> None:
            require(s.runs == t, outcome != model.Outcome.NONE)
            s.next.runs = None
            s.next.said[t] = outcome
            if outcome == model.Outcome.AGAIN:
                s.next.waits[t] = Delay.IMMEDIATE
            else:
                s.next.waits[t] = Delay.PERIOD

    return load(Tasks)


def _stays_scheduled_when_inactive() -> LoadedModel:
    class Tasks(model.Tasks):
        @action("PER-4", "PER-5", who="controller")
        def deactivate(s) -> None:
            require(s.active)
            s.next.active = False

    return load(Tasks)


def _activates_nobody() -> LoadedModel:
    class Tasks(model.Tasks):
        @action("PER-3", "PER-5", "PER-6", who="controller")
        def activate(s) -> None:
            require(not s.active)
            s.next.active = True
            s.next.dead = set()

    return load(Tasks)


MUTANTS = [
    of_impl("registers the newest", "PER-1", "of a name", _of(RegistersTheNewest)),
    of_impl("schedules the newest", "PER-1", "of a name that is taken", _of(SchedulesTheNewest)),
    of_impl("leaves it scheduled", "PER-2", "what is unregistered", _of(LeavesItScheduled)),
    of_impl("never unregisters", "PER-2", "until it is activated again", _of(NeverUnregisters)),
    of_impl("activates twice", "PER-3", "without an error", _of(ActivatesTwice)),
    of_impl("activates in silence", "PER-3", "and schedules nobody", _of(ActivatesInSilence)),
    of_impl("deactivates in silence", "PER-4", "what is scheduled stays so", _of(DeactivatesInSilence)),
    of_impl("forgets them all", "PER-4", "with the end of its being active", _of(ForgetsThemAll)),
    of_impl("schedules while inactive", "PER-5", "who registers", _of(SchedulesWhileInactive)),
    of_impl("again at once", "PER-7", "without a delay", _of(AgainAtOnce)),
    of_impl("after its period", "PER-9", "although it has failed", _of(AfterItsPeriod)),
    of_impl("never again", "PER-9", "after an exception", _of(NeverAgain)),
    of_impl("never atomic", "PER-12", "whatever the task says", _of(NeverAtomic)),
    of_impl("another name", "PER-12", "none", _of(AnotherName)),
    of_spec("spec: leaves it scheduled", "PER-2 PER-5", "what is gone", _spec("unregisterTask", _leaves_it_scheduled)),
    of_spec("spec: stays scheduled", "PER-4", "while inactive", _spec("deactivate", _stays_scheduled)),
    of_spec("spec: schedules nobody", "PER-3 PER-5", "when it becomes active", _spec("activate", _schedules_nobody)),
    of_spec("spec: runs for good", "PER-5", "although it is unregistered", _spec("run", _runs_for_good)),
    of_model("Tasks: schedules whoever ends", "PER-5 PER-9", "also who is gone", _schedules_whoever_ends),
    of_model("Tasks: stays scheduled", "PER-4 PER-5", "while inactive", _stays_scheduled_when_inactive),
    of_model("Tasks: activates nobody", "PER-3 PER-5", "whoever is registered", _activates_nobody),
]

RARE = [
    of_impl("at once", "PER-6", "the first run", _of(AtOnce)),
    of_impl("half a period", "PER-6", "after a run", _of(HalfAPeriod)),
    of_impl("default immediate", "PER-7", "whatever the task's own", _of(DefaultImmediate)),
    of_impl("goes on inactive", "PER-5", "after a run that deactivates", _of(GoesOnInactive)),
    of_impl("the longer after an exception", "PER-9", "of period and 5 minutes", _of(FailsFirst)),
    of_impl("replaces", "PER-10", "the earlier time by the later", _of(Replaces)),
    of_impl("survives errors", "PER-11", "as exceptions", _of(SurvivesErrors)),
    of_impl("null is done", "PER-11", "and run again", _of(NullIsDone)),
    of_impl("loses records", "PER-12", "of a run that has more to do", _of(LosesRecords)),
    of_impl("saturates", "PER-8", "at the greatest long", _of(Saturates)),
    of_impl("runs the successor", "PER-13", "who has the name by now", _of(RunsTheSuccessor)),
    of_impl("lets the successor be", "PER-13", "as it is scheduled", _of(LetsTheSuccessorBe)),
]
"""Those that show in the run after the next, or in what a run does to the manager."""

MUTANTS += RARE

SURVIVORS: dict[str, str] = {}
"""Generated faults of the models that nobody can notice, and why."""
