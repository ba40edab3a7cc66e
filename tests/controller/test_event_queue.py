"""The event queue: spec against impl, the rules one by one, and the model with a fault for each signal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis.stateful import run_state_machine_as_test

from kafkaspec.contract.machine import Refused
from kafkaspec.impl.controller.event_queue_driver import Driver
from kafkaspec.lockstep.walk import state_machine
from kafkaspec.spec.common.kafka import LONG_MAX
from kafkaspec.spec.controller import event_queue as spec
from kafkaspec.spec.controller.event_queue_trial import HOUR
from tests.layers import Comparison

MS = spec.NS_PER_MS


class Queue(Comparison):
    """A queue, and the impl's beside it."""

    def __init__(self, **init: Any) -> None:
        super().__init__(spec.machine, Driver(), init)

    def append(self, handling: str = "returns") -> Any:
        return self("append", handle_exception=handling)

    def prepend(self, handling: str = "returns") -> Any:
        return self("prepend", handle_exception=handling)

    def timed(self, ns: int, handling: str = "returns") -> Any:
        return self("appendWithDeadline", deadline_ns=ns, handle_exception=handling)

    def later(self, ns: int, tag: str | None = None, function: str = "deadline", handling: str = "returns") -> Any:
        return self("scheduleDeferred", tag=tag, function=function, deadline_ns=ns, handle_exception=handling)

    def enqueue(self, insertion: str, tag: str | None, ns: int | None = None) -> Any:
        function = "none" if ns is None else "deadline"
        return self(
            "enqueue", insertion=insertion, tag=tag, function=function, deadline_ns=ns or 0, handle_exception="returns"
        )

    def finish(self, outcome: str = "returns") -> Any:
        return self("finish", outcome=outcome)

    def shut_down(self) -> Any:
        return self("beginShutdown", source="test")

    def advance(self, ns: int) -> Any:
        return self("advance", ns=ns)


def handler(*calls: tuple[int | None, str]) -> Sequence[Any]:
    """What the handler's thread called."""
    return [[event, what, "handler"] for event, what in calls]


def caller(event: int, what: str) -> Sequence[Any]:
    return [[event, what, "caller"]]


RUN, TIMEOUT, REJECTED, INTERRUPTED = spec.RUN, spec.TIMEOUT, spec.REJECTED, spec.INTERRUPTED
CLEANUP = (None, RUN)


def test_impl_does_what_the_spec_says() -> None:
    run_state_machine_as_test(state_machine(spec.machine, Driver))


@pytest.mark.clause("EVQ-1", "EVQ-2", "EVQ-26")
def test_one_at_a_time_in_order() -> None:
    q = Queue()
    assert q.append() == handler((0, RUN))
    assert q.append() == []
    assert q.append() == []
    assert q.finish() == handler((1, RUN))
    assert q.finish() == handler((2, RUN))
    assert q.finish() == []
    assert q.state.running is None
    assert not q.state.waiting


@pytest.mark.clause("EVQ-1")
def test_nothing_is_told_while_an_event_runs() -> None:
    q = Queue()
    q.append()
    q.timed(HOUR)
    assert q.advance(2 * HOUR) == []
    assert q.finish() == handler((1, TIMEOUT))


@pytest.mark.clause("EVQ-3")
def test_prepended_before_all_in_line() -> None:
    q = Queue()
    q.append()
    q.append()
    q.prepend()
    q.prepend()
    assert q.shown["line"] == [3, 2, 1]
    assert q.finish() == handler((3, RUN))


@pytest.mark.clause("EVQ-4")
def test_deferred_until_its_time() -> None:
    q = Queue()
    assert q.later(HOUR) == []
    assert q.advance(HOUR - 1) == []
    assert q.advance(1) == handler((0, RUN))


@pytest.mark.clause("EVQ-4")
def test_what_is_due_overtakes_the_line() -> None:
    q = Queue()
    q.append()
    q.prepend()
    q.later(HOUR)
    q.advance(HOUR)
    assert q.finish() == handler((2, RUN))
    assert q.finish() == handler((1, RUN))


@pytest.mark.clause("EVQ-5", "EVQ-2")
def test_a_deadline_that_has_passed() -> None:
    q = Queue()
    q.append()
    q.append()
    q.timed(HOUR)
    q.timed(3 * HOUR)
    q.advance(HOUR)
    assert q.finish() == handler((2, TIMEOUT), (1, RUN))
    assert q.finish() == handler((3, RUN))
    assert q.advance(5 * HOUR) == []  # it runs
    assert q.finish() == []


@pytest.mark.clause("EVQ-5")
def test_a_deadline_that_has_passed_when_it_is_added() -> None:
    assert Queue(now=5).timed(5) == handler((0, TIMEOUT))


@pytest.mark.clause("EVQ-6")
def test_by_their_deadlines() -> None:
    q = Queue()
    q.append()
    q.timed(3 * HOUR)
    q.later(2 * HOUR)
    q.timed(HOUR)
    q.advance(4 * HOUR)
    assert q.finish() == handler((3, TIMEOUT), (2, RUN))
    assert q.finish() == handler((1, TIMEOUT))


@pytest.mark.clause("EVQ-7")
def test_the_next_nanosecond() -> None:
    q = Queue()
    q.append()
    q.later(HOUR)
    q.timed(HOUR)
    q.later(HOUR + 1)
    assert q.shown["deadlines"] == [[HOUR, 1], [HOUR + 1, 2], [HOUR + 2, 3]]


@pytest.mark.clause("EVQ-7")
def test_behind_the_greatest_long() -> None:
    q = Queue()
    assert q.later(LONG_MAX) == []
    assert q.later(LONG_MAX) == handler((1, RUN))
    q.timed(LONG_MAX)
    assert q.finish() == handler((2, TIMEOUT))


@pytest.mark.clause("EVQ-8")
def test_a_tag_is_that_of_one_event() -> None:
    q = Queue()
    q.later(HOUR, "a")
    q.later(2 * HOUR, "a")
    assert q.shown["size"] == 1
    assert q.shown["tags"] == {"a": 1}
    assert q.advance(HOUR) == []
    assert q.advance(HOUR) == handler((1, RUN))
    assert q.shown["tags"] == {}
    q.later(3 * HOUR, "a")  # that one runs, and is let be
    assert q.shown["running"] == 1
    assert q.shown["tags"] == {"a": 2}


@pytest.mark.clause("EVQ-8")
def test_a_tag_is_that_of_any_kind() -> None:
    q = Queue()
    q.append()
    q.enqueue("APPEND", "a")
    q.later(HOUR, "a")
    assert q.shown["line"] == []
    assert q.shown["tags"] == {"a": 2}
    q.enqueue("PREPEND", "a")
    assert q.shown["deadlines"] == []
    assert q.shown["line"] == [3]
    q.enqueue("APPEND", None)
    assert q.shown["line"] == [3, 4]


@pytest.mark.clause("EVQ-9")
def test_which_deadline() -> None:
    q = Queue()
    q.later(2 * HOUR, "a", "earliest")
    q.later(3 * HOUR, "a", "earliest")
    assert q.shown["deadlines"] == [[2 * HOUR, 1]]
    q.later(HOUR, "a", "earliest")
    assert q.shown["deadlines"] == [[HOUR, 2]]
    q.later(3 * HOUR, "a")
    assert q.shown["deadlines"] == [[3 * HOUR, 3]]
    q.later(4 * HOUR, None, "earliest")
    assert q.shown["deadlines"] == [[3 * HOUR, 3], [4 * HOUR, 4]]


@pytest.mark.clause("EVQ-10")
def test_cancelled() -> None:
    q = Queue()
    q.append()
    q.later(HOUR, "a")
    q.enqueue("APPEND", "b")
    for tag in ("a", "b", "c", None):
        assert q("cancelDeferred", tag=tag) is None
    assert q.shown["size"] == 1
    assert q.shown["line"] == []
    assert q.shown["deadlines"] == []
    assert q.finish() == []
    assert q.advance(HOUR) == []


@pytest.mark.clause("EVQ-10")
def test_who_runs_is_not_cancelled() -> None:
    q = Queue()
    q.later(0, "a")
    q("cancelDeferred", tag="a")
    assert q.shown["running"] == 0


@pytest.mark.clause("EVQ-11")
def test_deferred_without_a_deadline() -> None:
    q = Queue()
    q.later(HOUR, "a")
    assert q.later(0, "a", "none") == caller(1, spec.NO_DEADLINE)
    assert q.shown["size"] == 0
    assert q.shown["tags"] == {}
    assert q.shown["deadlines"] == []
    assert q.later(0, None, "none") == caller(2, spec.NO_DEADLINE)


@pytest.mark.clause("EVQ-12")
@pytest.mark.parametrize("outcome", ["throws", "error"])
def test_what_it_throws_it_is_told(outcome: str) -> None:
    q = Queue()
    q.append()
    q.append()
    assert q.finish(outcome) == handler((0, spec.THROWN), (1, RUN))


@pytest.mark.clause("EVQ-13")
def test_an_exception_of_handle_exception_is_swallowed() -> None:
    q = Queue()
    q.append("throws")
    q.timed(0, "throws")
    q.append()
    assert q.finish("throws") == handler((0, spec.THROWN), (1, TIMEOUT), (2, RUN))
    q.shut_down()
    assert q.append("throws") == caller(3, REJECTED)


@pytest.mark.clause("EVQ-14")
def test_an_error_of_handle_exception_ends_the_thread() -> None:
    q = Queue()
    q.append("error")
    q.append()
    assert q.finish("throws") == handler((0, spec.THROWN), CLEANUP)
    assert q.shown["ended"]
    assert not q.shown["shuttingDown"]
    assert q.append() == []
    assert q.shown["line"] == [1, 2]
    assert q.shown["size"] == 3
    assert q.advance(HOUR) == []
    assert q.shut_down() == []
    assert q.append("error") == Refused("EVQ-14", "java.lang.Error")


@pytest.mark.clause("EVQ-14")
def test_an_error_of_one_that_is_only_told() -> None:
    q = Queue()
    assert q.timed(0, "error") == handler((0, TIMEOUT), CLEANUP)


@pytest.mark.clause("EVQ-15")
def test_no_more_events() -> None:
    q = Queue()
    q.append()
    q.later(HOUR, "a")
    q.shut_down()
    assert q.append() == caller(2, REJECTED)
    assert q.prepend() == caller(3, REJECTED)
    assert q.later(HOUR, "a") == caller(4, REJECTED)
    assert q.shown["tags"] == {"a": 1}
    assert q.shown["size"] == 2


@pytest.mark.clause("EVQ-15", "EVQ-19")
def test_no_more_events_after_an_interruption() -> None:
    q = Queue()
    q.append()
    q.finish("interrupted")
    assert q.append() == caller(1, INTERRUPTED)
    q.shut_down()
    assert q.append() == caller(2, REJECTED)


@pytest.mark.clause("EVQ-16", "EVQ-17")
def test_what_is_there_when_a_shutdown_begins() -> None:
    q = Queue()
    q.append()
    q.append()
    q.timed(3 * HOUR)
    q.later(2 * HOUR)
    q.later(HOUR)
    q.advance(HOUR)
    assert q.shut_down() == []
    assert q.finish() == handler((4, RUN))
    assert q.finish() == handler((3, REJECTED), (2, REJECTED), (1, RUN))
    assert q.finish() == handler(CLEANUP)
    assert q.shown["ended"]


@pytest.mark.clause("EVQ-17")
@pytest.mark.parametrize("cleanup", ["returns", "throws"])
def test_the_clean_up_event_is_last(cleanup: str) -> None:
    q = Queue(cleanup=cleanup)
    q.later(HOUR)
    assert q.shut_down() == handler((0, REJECTED), CLEANUP)
    assert q.shut_down() == []


@pytest.mark.clause("EVQ-18", "EVQ-21")
def test_close_waits() -> None:
    q = Queue()
    q.append()
    assert q("close", callers=2) == []
    assert q.shown["closed"] == 0
    assert q.shut_down() == []
    assert q.finish() == handler(CLEANUP)
    assert q.shown["closed"] == 2
    q("close", callers=1)
    assert q.shown["closed"] == 3


@pytest.mark.clause("EVQ-19", "EVQ-20")
def test_interrupted_while_it_waits() -> None:
    q = Queue()
    q.later(HOUR)
    assert q("interrupt", times=1) == handler((0, INTERRUPTED), CLEANUP)


@pytest.mark.clause("EVQ-19", "EVQ-20")
@pytest.mark.parametrize("outcome", ["interrupted", "returns", "throws"])
def test_interrupted_while_an_event_runs(outcome: str) -> None:
    q = Queue()
    q.append()
    for _ in range(2):
        q.append()
    q.later(3 * HOUR)
    q.timed(2 * HOUR)
    if outcome != "interrupted":
        q("interrupt", times=1)
    told = [(0, spec.THROWN)] if outcome == "throws" else []
    ending = [(4, INTERRUPTED), (3, INTERRUPTED), (1, INTERRUPTED), (2, INTERRUPTED)]
    assert q.finish(outcome) == handler(*told, *ending, CLEANUP)


@pytest.mark.clause("EVQ-19")
def test_an_event_that_clears_the_mark() -> None:
    q = Queue()
    q.append()
    q.append()
    q("interrupt", times=2)
    assert q.finish("clears") == handler((1, RUN))
    assert not q.shown["interrupted"]


@pytest.mark.clause("EVQ-20")
def test_what_is_due_is_run_all_the_same() -> None:
    q = Queue()
    q.append()
    q.append()
    q.later(HOUR)
    q.timed(2 * HOUR)
    q.advance(2 * HOUR)
    q("interrupt", times=1)
    assert q.finish() == handler((2, RUN))
    assert q.finish("clears") == handler((3, TIMEOUT), (1, INTERRUPTED), CLEANUP)


@pytest.mark.clause("EVQ-22")
def test_size() -> None:
    q = Queue()
    assert q.shown["size"] == 0
    q.append()
    q.append()
    q.later(HOUR)
    q.timed(HOUR)
    assert q.shown["size"] == 4
    q.finish()
    assert q.shown["size"] == 3


@pytest.mark.clause("EVQ-23")
def test_the_first_deferred_if_idling() -> None:
    q = Queue()
    assert q.shown["firstDeferredIfIdling"] is None
    q.later(2 * HOUR)
    q.later(HOUR)
    assert q.shown["firstDeferredIfIdling"] == 1
    q.append()
    assert q.shown["firstDeferredIfIdling"] == 1
    q.append()
    assert q.shown["firstDeferredIfIdling"] is None


@pytest.mark.clause("EVQ-24")
def test_it_sleeps_through_nothing() -> None:
    q = Queue()
    q.later(3 * HOUR, "a")
    assert q.prepend() == handler((1, RUN))
    q.finish()
    assert q.later(0) == handler((2, RUN))
    q.finish()
    q.later(HOUR)
    q("cancelDeferred", tag="a")
    assert q.advance(HOUR) == handler((3, RUN))
    q.finish()
    assert q.shut_down() == handler(CLEANUP)


@pytest.mark.clause("EVQ-25")
def test_how_long_it_was_idle() -> None:
    q = Queue(now=MS // 2)
    q.advance(MS // 2)
    assert q.shown["idleMs"] == 1
    q.append()
    q.advance(7 * MS)
    assert q.shown["idleMs"] == 1
    q.finish()
    q.advance(3 * MS - 1)
    assert q.shown["idleMs"] == 3
    q.advance(1)
    assert q.shown["idleMs"] == 4


@pytest.mark.clause("EVQ-26")
@pytest.mark.parametrize("ends", ["beginShutdown", "interrupt"])
def test_nothing_is_lost(ends: str) -> None:
    q = Queue()
    heard: list[Any] = [*q.append()]
    for _ in range(3):
        heard += [*q.append(), *q.later(HOUR), *q.timed(HOUR), *q.prepend()]
    heard += q(ends, **({"source": "test"} if ends == "beginShutdown" else {"times": 1}))
    while q.state.running is not None:
        heard += q.finish()
    assert sorted(c[0] for c in heard if c[0] is not None) == list(range(13))
    assert heard[-1] == [None, RUN, "handler"]


@pytest.mark.clause("EVQ-27")
def test_woken_for_nothing() -> None:
    q = Queue()
    assert q("wakeup") == []
    q.append()
    assert q("wakeup") == []
