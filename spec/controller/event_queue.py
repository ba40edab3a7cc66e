"""The controller's event queue: one thread that runs events, one at a time, now or at their time.

A caller adds an event at the end of the line, at its head, or for later; with a deadline, with a tag. The handler's
thread takes the next one whenever the one before has ended. Here the caller also says how an event ends, and until then
it runs: so every order of callers and of the handler's thread is there. What the handler does by itself, such as to
tell an event that its deadline has passed, it has done when a call returns: an operation's answer is what the queue has
called meanwhile, in order. Source: KafkaEventQueue, Kafka 4.3.0; Kafka Internals, ch. 11, "The event loop".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import A_QUESTION, ONE_CALL, clause, states
from kafkaspec.contract.codec import partial, replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import Few, Int64, Within
from kafkaspec.spec.common.kafka import LONG_MAX

PREFIX = "EVQ"
TITLE = "Event queue"

QUEUE = "KafkaEventQueue, Kafka 4.3.0"
HANDLER = "KafkaEventQueue.EventHandler.handleEvents, Kafka 4.3.0"
ENQUEUE = "KafkaEventQueue.EventHandler.enqueue, Kafka 4.3.0"
INTERFACE = "EventQueue, Kafka 4.3.0"

clause(
    "EVQ-26",
    """An event that was accepted is run, or told of an exception without being run, or replaced or cancelled: one of
    these, and once. When the handler's thread has ended because of a shutdown or an interruption, none waits.""",
    source=f"{INTERFACE}; {HANDLER}",
)

Insertion = Literal["APPEND", "PREPEND", "DEFERRED"]
Calculator = Literal["none", "deadline", "earliest"]
"""NoDeadlineFunction, DeadlineFunction, EarliestDeadlineFunction"""
Handling = Literal["returns", "throws", "error"]
"""What an event's handleException does: an exception or an Error may come out of it."""
Outcome = Literal["returns", "throws", "error", "interrupted", "clears"]
"""How an event's run ends: by itself; with an exception, an Error, an InterruptedException; or by itself after it has
cleared its thread's interrupted mark."""
Thread = Literal["caller", "handler"]

RUN: Final = "run"
THROWN: Final = "thrown"
"""what the event's own run has thrown"""
TIMEOUT: Final = "org.apache.kafka.common.errors.TimeoutException"
REJECTED: Final = "java.util.concurrent.RejectedExecutionException"
INTERRUPTED: Final = "java.lang.InterruptedException"
NO_DEADLINE: Final = "java.lang.RuntimeException"
ERROR: Final = Refused("EVQ-14", "java.lang.Error")
LONG_MIN: Final = -LONG_MAX - 1
NS_PER_MS: Final = 1_000_000


class Call(NamedTuple):
    """What the queue has called."""

    event: Annotated[int | None, governs("EVQ-2", "EVQ-3", "EVQ-6", "EVQ-20")]
    """by the order in which they were added, from 0; None: the clean-up event"""
    what: Annotated[str, governs("EVQ-16", "EVQ-5", "EVQ-12", "EVQ-15", "EVQ-19")]
    """`run`, or the class of the exception that its handleException was given; `thrown` for its own"""
    by: Annotated[Thread, governs("EVQ-15")]


@dataclass(frozen=True)
class Event:
    """An event that was accepted."""

    id: int
    is_deferred: bool
    """whether it stands among the deadlines alone"""
    tag: str | None
    deadline: int | None
    """ns; where it stands among the deadlines"""
    handle_exception: Handling


class Deadline(NamedTuple):
    """An entry of the deadlines."""

    ns: int
    event: int


@partial
@dataclass(frozen=True)
class Observation:
    """The queue as a caller, a debugger and its clock see it."""

    size: Annotated[int, governs("EVQ-22")]
    running: Annotated[int | None, governs("EVQ-24", "EVQ-4", "EVQ-1")]
    first_deferred_if_idling: Annotated[int | None, governs("EVQ-23")]
    line: Annotated[tuple[int, ...], governs("EVQ-2", "EVQ-3", "EVQ-26")]
    deadlines: Annotated[tuple[Deadline, ...], governs("EVQ-9", "EVQ-7", "EVQ-5")]
    tags: Annotated[Mapping[str, int], governs("EVQ-8", "EVQ-10", "EVQ-11")]
    shutting_down: Annotated[bool, governs("EVQ-21", "EVQ-15")]
    interrupted: Annotated[bool, governs("EVQ-19")]
    ended: Annotated[bool, governs("EVQ-17", "EVQ-14", "EVQ-13")]
    closed: Annotated[int, governs("EVQ-18")]
    """calls of close that have returned"""
    idle_ms: Annotated[int, governs("EVQ-25")]
    """what the idle-time callback was given, added up"""


@dataclass(frozen=True)
class Queue:
    """The state. `line` are those that were appended or prepended, `deferred` the others, by their deadlines."""

    now: int
    """ns"""
    line: tuple[Event, ...] = ()
    deferred: tuple[Event, ...] = ()
    running: Event | None = None
    added: int = 0
    shutting_down: bool = False
    interrupted: bool = False
    mark: bool = False
    """the interrupted mark of the handler's thread"""
    ended: bool = False
    """the handler's thread"""
    broken: bool = False
    """it has ended because of an Error"""
    closing: int = 0
    """calls of close"""
    idle_ms: int = 0

    @property
    def waiting(self) -> tuple[Event, ...]:
        """All that wait."""
        return (*self.line, *self.deferred)

    @property
    def timed(self) -> list[Event]:
        """Those with a deadline, the earliest first."""
        return sorted((e for e in self.waiting if e.deadline is not None), key=lambda e: _deadline(e))

    @property
    def tagged(self) -> dict[str, Event]:
        """By tag, who waits."""
        return {e.tag: e for e in self.waiting if e.tag is not None}

    @property
    def idle(self) -> bool:
        """Whether the handler's thread waits for something to do."""
        return not self.ended and self.running is None

    def without(self, event: Event) -> Queue:
        """It does not wait any more."""
        if event.is_deferred:
            return replace(self, deferred=tuple(e for e in self.deferred if e is not event))
        return replace(self, line=tuple(e for e in self.line if e is not event))


def _deadline(event: Event) -> int:
    assert event.deadline is not None
    return event.deadline


def initial(now: Annotated[int, Within(0, 2**62)] = 0, cleanup: Literal["returns", "throws"] = "returns") -> Queue:
    """A new queue, whose handler waits. `cleanup`: how the clean-up event ends, which makes no difference."""
    return Queue(now)


@states(without={"EVQ-22": A_QUESTION, "EVQ-23": A_QUESTION})
def observe(state: Queue) -> Observation:
    """What is compared after every call.

    EVQ-22: Its `size` is the number of events that wait, and one more while an event runs. [{INTERFACE}, size]

    EVQ-23: Its `firstDeferredIfIdling` is the deferred event with the earliest deadline, due or not, if no event waits
    in line, whether or not one runs; and none otherwise. [KafkaEventQueue.firstDeferredIfIdling, Kafka 4.3.0]
    """
    timed = state.timed
    return Observation(
        size=len(state.waiting) + (state.running is not None or state.broken),
        running=None if state.running is None else state.running.id,
        first_deferred_if_idling=timed[0].id if timed and not state.line else None,
        line=tuple(e.id for e in state.line),
        deadlines=tuple(Deadline(_deadline(e), e.id) for e in timed),
        tags={tag: e.id for tag, e in sorted(state.tagged.items())},
        shutting_down=state.shutting_down,
        interrupted=state.interrupted,
        ended=state.ended,
        closed=state.closing if state.ended else 0,
        idle_ms=state.idle_ms,
    )


machine = Machine("event_queue", initial, observe)
Answer = Annotated[tuple[Call, ...], governs("EVQ-8", "EVQ-16", "EVQ-17", "EVQ-19", "EVQ-20", "EVQ-26")]
Stepped = Step[Queue, Answer]


# ---- the handler's thread --------------------------------------------------------------------------------------------
@states()
def earliest(state: Queue) -> Event | None:
    """EVQ-6: Of several events whose deadlines have come, run or told, the one with the earliest is first.
    [{HANDLER}]"""
    timed = state.timed
    return timed[0] if timed else None


@states()
def is_due(state: Queue, event: Event) -> bool:
    """EVQ-4: A deferred event is run once the clock has reached its deadline, not before, and before all that wait in
    line. [{INTERFACE}, scheduleDeferred; {HANDLER}]"""
    return _deadline(event) <= state.now


@states()
def told_when_due(event: Event) -> str:
    """EVQ-5: An event in line whose deadline has come before the handler took it is not run: its handleException is
    given a TimeoutException. It is told as soon as the handler takes something, wherever in the line it stands.
    [{INTERFACE}, appendWithDeadline; {HANDLER}]"""
    return RUN if event.is_deferred else TIMEOUT


@states()
def next_of(state: Queue) -> tuple[Event, str] | None:
    """Which event the handler takes next, and whether it runs it or what it tells it; None if there is nothing to take
    now.

    EVQ-16: While the queue shuts down, an event that waits in line without a deadline is still run. One that has a
    deadline which has not come, deferred or in line, is given a RejectedExecutionException, the earliest deadline
    first, before anything in line is taken: the documentation of beginShutdown speaks of a TimeoutException, and of
    deferred events alone. [{HANDLER}; KafkaEventQueue.beginShutdown]

    EVQ-20: When the handler's thread was interrupted, each event that waits is given an InterruptedException: those
    with a deadline by it, then those in line, in order. One whose deadline has come is run or timed out as ever.
    [{HANDLER}]
    """
    first = earliest(state)
    if first is not None:
        if is_due(state, first):
            return first, told_when_due(first)
        if state.interrupted:
            return first, INTERRUPTED
        if state.shutting_down:
            return first, REJECTED
    if state.line:
        return state.line[0], INTERRUPTED if state.interrupted else RUN
    return None


@states()
def is_swallowed(handling: Handling) -> bool:
    """EVQ-13: An exception that handleException throws changes nothing: the queue goes on. [{QUEUE}, EventContext]"""
    return handling == "throws"


def is_fatal(handling: Handling) -> bool:
    """Whether what comes out of handleException goes on."""
    return handling != "returns" and not is_swallowed(handling)


@states()
def told(state: Queue, event: Event, what: str) -> tuple[Queue, Answer]:
    """The handler's thread gives an event an exception.

    EVQ-14: An Error that comes out of handleException ends the handler's thread at once, with the clean-up event. The
    queue is not shut down then: what waits is neither run nor told, new events are accepted, and are not run either;
    the event goes on being counted. Where handleException is called by the caller's thread, the Error comes out of the
    call that added the event. [{QUEUE}, EventContext.completeWithException and EventHandler.run]
    """
    calls: Answer = (Call(event.id, what, "handler"),)
    if not is_fatal(event.handle_exception):
        return state, calls
    after, ending = end(replace(state, broken=True))
    return after, (*calls, *ending)


@states()
def end(state: Queue) -> tuple[Queue, Answer]:
    """The handler's thread ends.

    EVQ-17: The handler's thread ends when the queue shuts down, or was interrupted, and no event is left. It runs the
    clean-up event last, once; what that throws makes no difference. [{QUEUE}, EventHandler.run]
    """
    return replace(state, running=None, ended=True), (Call(None, RUN, "handler"),)


@states()
def taken(state: Queue, event: Event, what: str) -> tuple[Queue, Answer]:
    """EVQ-1: One event runs at a time: the handler takes the next one, to run it or to tell it something, when the one
    before has ended. [{HANDLER}]"""
    state = state.without(event)
    if what != RUN:
        return told(state, event, what)
    return replace(state, running=replace(event, tag=None, deadline=None)), (Call(event.id, RUN, "handler"),)


@states()
def settled(state: Queue, calls: Answer = ()) -> Stepped:
    """The handler has gone on until it runs an event, has nothing to do, or has ended.

    EVQ-24: While the handler's thread sleeps, there is nothing that it could take: whoever adds something that it could
    take before it would wake, or begins a shutdown, wakes it, and it wakes at the earliest deadline. [{ENQUEUE};
    {HANDLER}]
    """
    while state.idle:
        found = next_of(state)
        if found is None:
            if state.shutting_down or state.interrupted:
                state, more = end(state)
                calls += more
            break
        state, more = taken(state, *found)
        calls += more
    return Step(state, calls)


@states()
def has_thrown(outcome: Outcome) -> bool:
    """EVQ-12: What an event's run throws, exception or Error, is given to its handleException by the handler's thread,
    and the queue goes on. [{QUEUE}, EventContext.run]"""
    return outcome in ("throws", "error")


@machine.operation(
    "finish",
    "EVQ-16",
    "EVQ-6",
    "EVQ-20",
    "EVQ-26",
    "EVQ-5",
    "EVQ-19",
    "EVQ-12",
    "EVQ-13",
    "EVQ-17",
    "EVQ-4",
    "EVQ-14",
    "EVQ-1",
    "EVQ-2",
)
@require(lambda state: state.running is not None, "EVQ-1 an event runs")
@ensure(
    lambda state, result: all(c.event != state.running.id or c.what in (THROWN, INTERRUPTED) for c in result.result),
    "EVQ-26 it is not run again, and told of its own exception alone",
)
@ensure(
    lambda state, result: all(c.event != state.running.id or c.what != INTERRUPTED for c in result.result),
    "EVQ-19 it is not told that the thread was interrupted",
)
@ensure(
    lambda state, result: all(
        c.what == (RUN if e.deadline is None else REJECTED)
        for e in state.waiting
        if state.shutting_down and not result.state.interrupted and (e.deadline is None or e.deadline > state.now)
        for c in result.result
        if c.event == e.id
    ),
    "EVQ-16 of those whose deadline has not come, who has none is run",
)
@ensure(
    lambda state, result: (
        result.state.ended
        or (result.state.running is not None and result.state.running.is_deferred)
        or {e.id for e in state.line if e.deadline is not None and is_due(state, e)} <= {c.event for c in result.result}
    ),
    "EVQ-5 who is late is told before anything in line is run",
)
def finish(state: Queue, outcome: Outcome) -> Stepped:
    """The event that runs ends.

    EVQ-19: The handler's thread counts as interrupted, for good, when an event's run throws an InterruptedException,
    when the thread's interrupted mark is set as an event ends, or when it is interrupted while it waits for something
    to do. The event that threw the InterruptedException is told nothing. [{QUEUE}, EventContext.run; {HANDLER}]
    """
    event = state.running
    assert event is not None
    state = replace(state, running=None, mark=state.mark and outcome != "clears")
    calls: Answer = ()
    if has_thrown(outcome):
        state, calls = told(state, event, THROWN)
    if state.ended:
        return Step(state, calls)
    return settled(replace(state, interrupted=state.interrupted or state.mark or outcome == "interrupted"), calls)


none_is_lost = ensure(
    lambda state, result: (
        {e.id for e in state.waiting} <= {e.id for e in result.state.waiting} | {c.event for c in result.result}
    ),
    "EVQ-26 who has waited waits, or is run or told",
)


@machine.operation("advance", "EVQ-4", "EVQ-5", "EVQ-24", kind="time")
@states(without={"EVQ-25": ONE_CALL})
@require(lambda state, ns: state.now + ns <= LONG_MAX, "EVQ-4 the clock is a long")
@ensure(lambda state, result: state.idle or not result.result, "EVQ-1 while an event runs nothing else happens")
@none_is_lost
def advance(state: Queue, ns: Annotated[int, Within(0, 2**62)]) -> Stepped:
    """Time passes; a handler that waits looks at the clock.

    EVQ-25: Whenever the handler wakes, the idle-time callback is given the milliseconds that it has waited, by the
    clock: together they are the time in which no event ran and none was to be told. [{HANDLER}, idleTimeCallback]
    """
    now = state.now + ns
    idle = now // NS_PER_MS - state.now // NS_PER_MS if state.idle else 0
    return settled(replace(state, now=now, idle_ms=state.idle_ms + idle))


@machine.operation("interrupt", "EVQ-19", "EVQ-20", "EVQ-17", "EVQ-25")
@require(lambda times: times > 0, "EVQ-19 at least once")
@none_is_lost
def interrupt(state: Queue, times: Few) -> Stepped:
    """Somebody interrupts the handler's thread, once or several times in a row."""
    if state.running is not None:
        return Step(replace(state, mark=True), ())
    return settled(state if state.ended else replace(state, interrupted=True))


# ---- adding ----------------------------------------------------------------------------------------------------------
@states(without={"EVQ-7": ONE_CALL})
def free(state: Queue, deadline: int) -> int:
    """EVQ-7: No two events have the same deadline: where it is taken the next nanosecond is tried. After the greatest
    long comes the least, and that has come already: a second event that is never to be run is run at once.
    [{ENQUEUE}]"""
    taken = {e.deadline for e in state.waiting}
    while deadline in taken:
        deadline = LONG_MIN if deadline == LONG_MAX else deadline + 1
    return deadline


@states(without={"EVQ-9": ONE_CALL})
def calculated(function: Calculator, ns: int, existing: int | None) -> int | None:
    """EVQ-9: The deadline of an event is the one that its function calculates of that of the event which had its tag:
    none; the new one; or the earlier of the two, the new one if there was none.
    [EventQueue.DeadlineFunction, NoDeadlineFunction and EarliestDeadlineFunction, Kafka 4.3.0]"""
    if function == "none":
        return None
    return ns if function == "deadline" or existing is None else min(existing, ns)


def refused(state: Queue, id: int, what: str, handling: Handling) -> Stepped:
    """The caller's thread gives an event an exception."""
    if is_fatal(handling):
        return Step(state, ERROR)
    return Step(state, (Call(id, what, "caller"),))


@states()
def accepts(state: Queue) -> bool:
    """EVQ-15: Once a shutdown has begun, an event that is added is given a RejectedExecutionException by the caller's
    thread, before the call returns. If the handler's thread was interrupted, and no shutdown has begun, it is an
    InterruptedException. Nothing else changes. [{ENQUEUE}]"""
    return not (state.shutting_down or state.interrupted)


@states()
def holder(state: Queue, tag: str | None) -> Event | None:
    """EVQ-8: At most one event that waits has a given tag, of whatever kind they are. The one that had it is removed
    when another comes with it, and is neither run nor told. An event that is taken has its tag no more. [{ENQUEUE}]"""
    return None if tag is None else state.tagged.get(tag)


@states(without={"EVQ-11": ONE_CALL})
def has_no_time(insertion: Insertion, deadline: int | None) -> bool:
    """EVQ-11: A deferred event without a deadline is given a RuntimeException by the caller's thread; the event that
    had its tag is removed all the same. [{ENQUEUE}]"""
    return insertion == "DEFERRED" and deadline is None


@states()
def behind_all(state: Queue, event: Event) -> Queue:
    """EVQ-2: An appended event is run behind all that wait in line. [{INTERFACE}, append]"""
    return replace(state, line=(*state.line, event))


@states()
def before_all(state: Queue, event: Event) -> Queue:
    """EVQ-3: A prepended event is run before all that wait in line. [{INTERFACE}, prepend]"""
    return replace(state, line=(event, *state.line))


def enqueued(
    state: Queue, insertion: Insertion, tag: str | None, function: Calculator, ns: int, handling: Handling
) -> Stepped:
    """An event is added."""
    id = state.added
    state = replace(state, added=id + 1)
    if not accepts(state):
        return refused(state, id, REJECTED if state.shutting_down else INTERRUPTED, handling)
    before = holder(state, tag)
    if before is not None:
        state = state.without(before)
    deadline = calculated(function, ns, None if before is None else before.deadline)
    if has_no_time(insertion, deadline):
        return refused(state, id, NO_DEADLINE, handling)
    event = Event(id, insertion == "DEFERRED", tag, None if deadline is None else free(state, deadline), handling)
    if insertion == "APPEND":
        state = behind_all(state, event)
    elif insertion == "PREPEND":
        state = before_all(state, event)
    else:
        state = replace(state, deferred=tuple(sorted((*state.deferred, event), key=_deadline)))
    return settled(state)


refused_at_once = ensure(
    lambda state, result: (
        accepts(state)
        or isinstance(result.result, Refused)
        or [(c.event, c.by) for c in result.result] == [(state.added, "caller")]
    ),
    "EVQ-15 what is not accepted is told so at once",
)
runs_if_idle = ensure(
    lambda state, result: (
        isinstance(result.result, Refused)
        or not accepts(state)
        or not result.state.idle
        or next_of(result.state) is None
    ),
    "EVQ-24 the handler does not sleep",
)


@machine.operation("append", "EVQ-2", "EVQ-15", "EVQ-24", "EVQ-14", "EVQ-25")
@refused_at_once
@runs_if_idle
@ensure(
    lambda state, result: not accepts(state) or state.idle or result.state.line[:-1] == state.line,
    "EVQ-2 behind all others",
)
def append(state: Queue, handle_exception: Handling) -> Stepped:
    """`append`."""
    return enqueued(state, "APPEND", None, "none", 0, handle_exception)


@machine.operation("prepend", "EVQ-3", "EVQ-15", "EVQ-24", "EVQ-14", "EVQ-25")
@refused_at_once
@runs_if_idle
@ensure(
    lambda state, result: not accepts(state) or state.idle or result.state.line[1:] == state.line,
    "EVQ-3 before all others",
)
def prepend(state: Queue, handle_exception: Handling) -> Stepped:
    """`prepend`."""
    return enqueued(state, "PREPEND", None, "none", 0, handle_exception)


@machine.operation("appendWithDeadline", "EVQ-5", "EVQ-2", "EVQ-7", "EVQ-15", "EVQ-24", "EVQ-14")
@refused_at_once
@runs_if_idle
def append_with_deadline(state: Queue, deadline_ns: Int64, handle_exception: Handling) -> Stepped:
    """`appendWithDeadline`."""
    return enqueued(state, "APPEND", None, "deadline", deadline_ns, handle_exception)


@machine.operation("scheduleDeferred", "EVQ-4", "EVQ-11", "EVQ-8", "EVQ-9", "EVQ-7", "EVQ-15", "EVQ-24", "EVQ-14")
@refused_at_once
@runs_if_idle
@ensure(
    lambda state, tag, result: len([e for e in result.state.waiting if tag is not None and e.tag == tag]) <= 1,
    "EVQ-8 a tag is that of one event",
)
def schedule_deferred(
    state: Queue, tag: str | None, function: Calculator, deadline_ns: Int64, handle_exception: Handling
) -> Stepped:
    """`scheduleDeferred`."""
    return enqueued(state, "DEFERRED", tag, function, deadline_ns, handle_exception)


@machine.operation(
    "enqueue", "EVQ-8", "EVQ-9", "EVQ-2", "EVQ-3", "EVQ-5", "EVQ-7", "EVQ-11", "EVQ-15", "EVQ-24", "EVQ-14"
)
@refused_at_once
@runs_if_idle
@ensure(
    lambda state, tag, result: len([e for e in result.state.waiting if tag is not None and e.tag == tag]) <= 1,
    "EVQ-8 a tag is that of one event",
)
def enqueue(
    state: Queue,
    insertion: Insertion,
    tag: str | None,
    function: Calculator,
    deadline_ns: Int64,
    handle_exception: Handling,
) -> Stepped:
    """`enqueue`, of which the others are cases."""
    return enqueued(state, insertion, tag, function, deadline_ns, handle_exception)


# ---- taking away, and the end ----------------------------------------------------------------------------------------
@machine.operation("cancelDeferred")
@ensure(lambda tag, result: tag not in result.tagged, "EVQ-10 nobody waits with it")
def cancel_deferred(state: Queue, tag: str | None) -> Queue:
    """`cancelDeferred`.

    EVQ-10: To cancel a tag removes the event that waits with it, deferred or in line; it is neither run nor told. An
    event that runs already, and a tag that nobody has, are not looked at. [{INTERFACE}, cancelDeferred]
    """
    event = None if tag is None else state.tagged.get(tag)
    return state if event is None else state.without(event)


@machine.operation("beginShutdown", "EVQ-15", "EVQ-16", "EVQ-17", "EVQ-24", "EVQ-25")
@states(without={"EVQ-21": ONE_CALL})
@ensure(lambda result: result.state.shutting_down, "EVQ-15 it has begun")
@none_is_lost
def begin_shutdown(state: Queue, source: str) -> Stepped:
    """`beginShutdown`.

    EVQ-21: A shutdown that has begun does not begin again. [KafkaEventQueue.beginShutdown, Kafka 4.3.0]
    """
    return settled(replace(state, shutting_down=True))


@machine.operation("close", "EVQ-16", "EVQ-17", "EVQ-21", "EVQ-25")
@states(without={"EVQ-18": ONE_CALL})
@require(lambda callers: callers > 0, "EVQ-18 at least one")
@none_is_lost
def close(state: Queue, callers: Few) -> Stepped:
    """`close`, by one thread or several.

    EVQ-18: To close the queue is to begin a shutdown, and to wait until the handler's thread has ended.
    [KafkaEventQueue.close, Kafka 4.3.0]
    """
    return settled(replace(state, shutting_down=True, closing=state.closing + callers))


@machine.operation("wakeup")
@states(without={"EVQ-27": ONE_CALL})
@ensure(lambda state, result: result.state == state and not result.result, "EVQ-27 nothing happens")
def wakeup(state: Queue) -> Stepped:
    """`wakeup`.

    EVQ-27: A handler that is woken and has nothing to do changes nothing, and waits again. [{INTERFACE}, wakeup]
    """
    return settled(state)
