"""The controller's periodic tasks, while the controller becomes active and inactive, tasks come and go, and runs do so
themselves.

A run is two steps here, that it begins and that it ends, so that whatever else a run does to the manager is between.
Who has failed with an Error is scheduled no more, until the manager is active again.

What was simplified. There is no time but for what a task is scheduled for; each name is that of one task.

Source: PeriodicTaskControlManager, Kafka 4.3.0.
"""

from __future__ import annotations

import enum

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import (
    Model,
    Sort,
    action,
    invariant,
    leads_to,
    require,
    step,
    witness,
)


class Task(Sort):
    """A task."""


class Delay(enum.Enum):
    """What a task waits for: its period, its immediate period, 5 minutes after an exception."""

    NONE = "NONE"
    PERIOD = "PERIOD"
    IMMEDIATE = "IMMEDIATE"
    ERROR = "ERROR"


class Outcome(enum.Enum):
    """How a run has ended; NONE: there was none since the task was registered or activated."""

    NONE = "NONE"
    DONE = "DONE"
    AGAIN = "AGAIN"
    THROWS = "THROWS"


class Tasks(Model):
    """`runs` is the task that the controller's thread runs, `said` how its last run ended, `dead` those whose run threw
    an Error."""

    active: bool
    registered: set[Task]
    waits: dict[Task, Delay]
    said: dict[Task, Outcome]
    runs: Task | None
    dead: set[Task]

    @action("PER-1", "PER-5", "PER-6", who="controller")
    def register(s, t: Task) -> None:
        require(t not in s.registered)
        s.next.registered = s.registered | {t}
        if s.active:
            s.next.waits[t] = Delay.PERIOD
            s.next.said[t] = Outcome.NONE
            s.next.dead = s.dead - {t}

    @action("PER-2", who="controller")
    def unregister(s, t: Task) -> None:
        require(t in s.registered)
        s.next.registered = s.registered - {t}
        s.next.waits[t] = Delay.NONE

    @action("PER-3", "PER-5", "PER-6", who="controller")
    def activate(s) -> None:
        require(not s.active)
        s.next.active = True
        s.next.waits = {t: Delay.PERIOD if t in s.registered else Delay.NONE for t in Task}
        s.next.said = {t: Outcome.NONE for t in Task}
        s.next.dead = set()

    @action("PER-4", "PER-5", who="controller")
    def deactivate(s) -> None:
        require(s.active)
        s.next.active = False
        s.next.waits = {t: Delay.NONE for t in Task}

    @action("PER-6", who="event queue", fair="strong", per=("t",))
    def begin(s, t: Task) -> None:
        require(s.runs is None, s.waits[t] != Delay.NONE)
        s.next.runs = t
        s.next.waits[t] = Delay.NONE

    @action("PER-6", "PER-7", "PER-9", who="task", fair="weak")
    def end(s, t: Task, outcome: Outcome) -> None:
        """Where a run of the task is scheduled by now, the earlier one counts; which that is depends on the periods."""
        require(s.runs == t, outcome != Outcome.NONE)
        s.next.runs = None
        if not s.active or t not in s.registered:
            s.next.waits[t] = Delay.NONE
        else:
            s.next.said[t] = outcome
            if outcome == Outcome.DONE:
                s.next.waits[t] = Delay.PERIOD
            elif outcome == Outcome.AGAIN:
                s.next.waits[t] = Delay.IMMEDIATE
            else:
                s.next.waits[t] = Delay.ERROR

    @action("PER-11", who="task")
    def fail(s, t: Task) -> None:
        require(s.runs == t)
        s.next.runs = None
        if s.waits[t] == Delay.NONE:
            s.next.dead = s.dead | {t}

    @invariant("PER-5", "PER-2", "PER-4")
    def who_waits_is_registered_and_active(s, t: Task) -> bool:
        return s.waits[t] == Delay.NONE or (s.active and t in s.registered)

    @invariant("PER-1", "PER-3", "PER-5", "PER-11")
    def nobody_is_forgotten(s, t: Task) -> bool:
        """While the manager is active: unless an Error has come out of its run."""
        return not s.active or t not in s.registered or s.waits[t] != Delay.NONE or s.runs == t or t in s.dead

    @invariant("PER-6", "PER-7", "PER-9")
    def waits_for_what_it_said(s, t: Task) -> bool:
        return (
            s.waits[t] == Delay.NONE
            or (s.waits[t] == Delay.PERIOD and (s.said[t] == Outcome.NONE or s.said[t] == Outcome.DONE))
            or (s.waits[t] == Delay.IMMEDIATE and s.said[t] == Outcome.AGAIN)
            or (s.waits[t] == Delay.ERROR and s.said[t] == Outcome.THROWS)
        )

    @invariant("PER-11")
    def who_has_failed_neither_waits_nor_runs(s, t: Task) -> bool:
        return t not in s.dead or (s.waits[t] == Delay.NONE and s.runs != t)

    @step("PER-6")
    def what_runs_was_scheduled(s, t: Task) -> bool:
        return s.runs == t or s.next.runs != t or s.waits[t] != Delay.NONE

    @step("PER-1", "PER-3")
    def scheduled_by_what_changes(s, t: Task) -> bool:
        """A task that stays registered, while the manager stays active, is scheduled otherwise by its own run alone."""
        return (
            s.waits[t] == s.next.waits[t]
            or s.runs == t
            or s.next.runs == t
            or not (s.active and s.next.active and t in s.registered and t in s.next.registered)
        )

    @step("PER-7", "PER-9")
    def delayed_by_its_run(s, t: Task) -> bool:
        return (
            s.next.waits[t] == s.waits[t]
            or s.runs == t
            or s.next.waits[t] == Delay.NONE
            or s.next.waits[t] == Delay.PERIOD
        )

    @leads_to("PER-5", "PER-6")
    def each_runs_again(s, t: Task) -> tuple[bool, bool]:
        return (
            s.active and t in s.registered and s.waits[t] != Delay.NONE,
            s.runs == t or not s.active or t not in s.registered,
        )

    @witness
    def runs_without_being_registered(s) -> bool:
        return s.runs is not None and s.runs not in s.registered

    @witness
    def runs_and_is_scheduled(s) -> bool:
        return s.runs is not None and s.waits[s.runs] != Delay.NONE

    @witness
    def runs_while_inactive(s) -> bool:
        return s.runs is not None and not s.active

    @witness
    def forgotten(s) -> bool:
        return s.active and any(t in s.dead and t in s.registered for t in Task)


MODELS = [Expectation(Tasks, sizes={"Task": 3}, distinct=21248, generated=140289, depth=21)]
