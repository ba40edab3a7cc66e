"""Periodic tasks: spec against impl, and the rules one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis.stateful import run_state_machine_as_test

from kafkaspec.contract.machine import Refused
from kafkaspec.impl.controller.periodic_driver import Driver
from kafkaspec.lockstep.walk import state_machine
from kafkaspec.spec.common.kafka import LONG_MAX, NULL_POINTER
from kafkaspec.spec.controller import periodic as spec
from kafkaspec.spec.controller.periodic_trial import SECOND
from tests.layers import Comparison


class Manager(Comparison):
    """A manager, and the impl's beside it."""

    def __init__(self, **init: Any) -> None:
        super().__init__(spec.machine, Driver(), init)

    def register(self, name: str, period: int = SECOND, immediate: int | None = None) -> None:
        self("registerTask", name=name, period_ns=period, immediate_ns=immediate, verbose=False)

    def run(
        self, name: str, outcome: str = "done", meanwhile: str = "nothing", records: int = 1, atomic: bool = False
    ) -> Any:
        """At its time."""
        left = self.state.scheduled[name].deadline_ns - self.state.now
        self("advance", ns=max(0, left))
        return self("run", name=name, outcome=outcome, meanwhile=meanwhile, records=records, atomic=atomic)

    @property
    def scheduled(self) -> Any:
        """By name the time from now, and the task."""
        return {name: (s[0] - self.state.now, s[1]) for name, s in self.shown["scheduled"].items()}


def active(**init: Any) -> Manager:
    manager = Manager(**init)
    manager("activate")
    return manager


def test_impl_does_what_the_spec_says() -> None:
    run_state_machine_as_test(state_machine(spec.machine, Driver))


@pytest.mark.clause("PER-1", "PER-6")
def test_the_first_of_a_name() -> None:
    m = active()
    m.register("a")
    m.register("a", 5 * SECOND)
    m.register("b", 3 * SECOND)
    assert m.shown["tasks"] == {"a": 0, "b": 2}
    assert m.scheduled == {"a": (SECOND, 0), "b": (3 * SECOND, 2)}


@pytest.mark.clause("PER-2")
def test_unregistered() -> None:
    m = active()
    m.register("a")
    m.register("b")
    m("unregisterTask", name="a")
    m("unregisterTask", name="c")
    assert m.shown["tasks"] == {"b": 1}
    assert m.scheduled == {"b": (SECOND, 1)}


@pytest.mark.clause("PER-3", "PER-5")
def test_activated() -> None:
    m = Manager()
    m.register("a")
    m.register("b", 2 * SECOND)
    assert m.scheduled == {}
    m("advance", ns=7)
    assert m("activate") is None
    assert m.scheduled == {"a": (SECOND, 0), "b": (2 * SECOND, 1)}
    assert m("activate") == spec.ALREADY_ACTIVE


@pytest.mark.clause("PER-4", "PER-5")
def test_deactivated() -> None:
    m = active()
    m.register("a")
    assert m("deactivate") is None
    assert m.scheduled == {}
    assert m.shown["tasks"] == {"a": 0}
    assert m("deactivate") is None


@pytest.mark.clause("PER-5")
@pytest.mark.parametrize("meanwhile", ["unregister", "deactivate"])
def test_a_run_that_is_its_last(meanwhile: str) -> None:
    m = active()
    m.register("a")
    m.run("a", "again", meanwhile)
    assert m.scheduled == {}


@pytest.mark.clause("PER-6")
def test_again_after_its_period() -> None:
    m = active()
    m.register("a")
    m("advance", ns=5 * SECOND)
    m.run("a")
    assert m.scheduled == {"a": (SECOND, 0)}


@pytest.mark.clause("PER-7")
@pytest.mark.parametrize(("immediate", "after"), [(None, 10_000_000), (3, 3)])
def test_soon_if_something_is_left(immediate: int | None, after: int) -> None:
    m = active()
    m.register("a", immediate=immediate)
    m.run("a", "again")
    assert m.scheduled == {"a": (after, 0)}


@pytest.mark.clause("PER-8")
def test_a_period_beyond_the_greatest_long() -> None:
    m = active(now=1)
    m.register("a", LONG_MAX)
    assert m.shown["scheduled"]["a"][0] == -LONG_MAX - 1
    m.run("a")
    assert m.shown["scheduled"]["a"][0] < 0


@pytest.mark.clause("PER-9", "PER-12")
@pytest.mark.parametrize("period", [SECOND, 3600 * SECOND])
def test_after_an_exception(period: int) -> None:
    m = active()
    m.register("a", period)
    assert m.run("a", "throws") == Refused("PER-12", spec.FAILED, "a: periodic task failed: 0")
    assert m.scheduled == {"a": (300 * SECOND, 0)}


@pytest.mark.clause("PER-10")
def test_the_earlier_of_both_times() -> None:
    m = active()
    m.register("a", 3600 * SECOND, SECOND)
    m.run("a", "again", "reactivate")
    assert m.scheduled == {"a": (SECOND, 0)}
    m.register("b", 3600 * SECOND)
    m.run("b", "throws", "reactivate")
    assert m.scheduled["b"] == (300 * SECOND, 1)
    m.register("c", SECOND)
    m.run("c", "throws", "reactivate")
    assert m.scheduled["c"] == (SECOND, 2)


@pytest.mark.clause("PER-11")
@pytest.mark.parametrize(("outcome", "error"), [("error", "java.lang.Error"), ("null", NULL_POINTER)])
def test_a_run_that_is_followed_by_none(outcome: str, error: str) -> None:
    m = active()
    m.register("a")
    assert m.run("a", outcome) == Refused("PER-11", error)
    assert m.scheduled == {}
    assert m.shown["tasks"] == {"a": 0}
    m("deactivate")
    m("activate")
    assert m.scheduled == {"a": (SECOND, 0)}


@pytest.mark.clause("PER-12")
@pytest.mark.parametrize("atomic", [False, True])
def test_what_it_gives_to_write(atomic: bool) -> None:
    m = active()
    m.register("a")
    m.register("b")
    assert m.run("b", records=3, atomic=atomic) == [1, 3, atomic]
    assert m.run("a", records=0, atomic=atomic) == [0, 0, atomic]


@pytest.mark.clause("PER-13")
def test_the_task_that_has_run_takes_the_place_of_its_successor() -> None:
    m = active()
    m.register("a")
    m.run("a", "done", "replace")
    assert m.shown["tasks"] == {"a": 1}
    assert m.scheduled == {"a": (SECOND, 0)}
    m.run("a", "throws", "nothing")
    assert m.scheduled == {"a": (300 * SECOND, 0)}
