"""The event queue's handler, while others add events, take them away, shut the queue down and interrupt its thread.

What is one step here is what happens under the queue's lock, so that between any two steps of the handler any caller
may come: between its look at the queue and its sleep nobody can, but between its waking and its look everybody. Sleep,
signal and the time at which it wakes by itself are there, so that a wake-up can be lost.

An event that runs returns, or throws something: then it is told so, by its handleException, which may throw in turn.
An exception that comes out of that changes nothing; an Error ends the thread, and the queue does not know.

What was simplified. There is one tag. Each event is added once. Two events may have the same deadline, and either may
be first; Kafka gives the second the next nanosecond. Where a caller's thread tells an event something, that is the end
of it.

Source: KafkaEventQueue, Kafka 4.3.0.
"""

from __future__ import annotations

import enum
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import (
    Model,
    Range,
    Size,
    Sort,
    action,
    define,
    initial,
    invariant,
    leads_to,
    lemma,
    require,
    step,
    witness,
)


class Event(Sort):
    """An event."""


T = Size("T")
"""The latest time."""
P = Size("P")
"""How many places there are behind the first, and before it."""
NEVER = T + 1
Time = Annotated[int, Range(0, T)]
TimeOrNever = Annotated[int, Range(0, NEVER)]
Place = Annotated[int, Range(0, 2 * P)]


class Kind(enum.Enum):
    """How an event was added."""

    APPENDED = "APPENDED"
    PREPENDED = "PREPENDED"
    DEFERRED = "DEFERRED"


class Status(enum.Enum):
    """How far an event is. HEARS: it is given an exception, without being run; FAILS: the one that its run has thrown.
    REMOVED: it was replaced or cancelled."""

    NEW = "NEW"
    WAITS = "WAITS"
    RUNS = "RUNS"
    HEARS = "HEARS"
    FAILS = "FAILS"
    RAN = "RAN"
    TOLD = "TOLD"
    REMOVED = "REMOVED"


class Ending(enum.Enum):
    """How a run, or handleException, ends: it returns, or throws an exception, an Error, or an InterruptedException."""

    RETURNS = "RETURNS"
    THROWS = "THROWS"
    ERROR = "ERROR"
    INTERRUPTED = "INTERRUPTED"


class Thread(enum.Enum):
    """What the handler's thread does. LOOKS: it is about to look for something to do."""

    LOOKS = "LOOKS"
    SLEEPS = "SLEEPS"
    WORKS = "WORKS"
    ENDED = "ENDED"


class Handler(Model):
    """`head` and `tail` are the next places before and behind all others. `wakes` is when a thread that sleeps wakes by
    itself, `mark` its interrupted mark. The thread is `broken` when an Error has ended it."""

    status: dict[Event, Status]
    kind: dict[Event, Kind]
    place: dict[Event, Place]
    deadline: dict[Event, TimeOrNever]
    tagged: Event | None
    head: Place
    tail: Place
    now: Time
    shutting: bool
    interrupted: bool
    mark: bool
    thread: Thread
    broken: bool
    signalled: bool
    wakes: TimeOrNever

    @initial
    def start(s) -> None:
        s.next.head = P
        s.next.tail = P
        s.next.tagged = None
        s.next.deadline = {e: NEVER for e in Event}
        s.next.wakes = NEVER

    # ---- what there is to take
    @define
    def waits(s, e: Event) -> bool:
        return s.status[e] == Status.WAITS

    @define
    def in_line(s, e: Event) -> bool:
        return s.waits(e) and s.kind[e] != Kind.DEFERRED

    @define
    def is_timed(s, e: Event) -> bool:
        return s.waits(e) and s.deadline[e] != NEVER

    @define
    def is_due(s, e: Event) -> bool:
        return s.waits(e) and s.deadline[e] <= s.now

    @define
    def is_first_timed(s, e: Event) -> bool:
        return s.is_timed(e) and all(s.deadline[e] <= s.deadline[f] for f in Event if s.is_timed(f))

    @define
    def is_first_in_line(s, e: Event) -> bool:
        return s.in_line(e) and all(s.place[e] <= s.place[f] for f in Event if s.in_line(f))

    @define
    def line_comes(s) -> bool:
        """The handler looks at the line: no deadline has come, and none is left if the queue is to end."""
        return all(not s.is_due(e) for e in Event) and (
            not (s.shutting or s.interrupted) or all(not s.is_timed(e) for e in Event)
        )

    # ---- callers
    @define
    def signal(s) -> None:
        if s.thread == Thread.SLEEPS:
            s.next.signalled = True

    @define
    def is_before_others(s, d: Time, e: Event | None) -> bool:
        """No event but e has an earlier deadline."""
        return all(d <= s.deadline[f] for f in Event if s.is_timed(f) and f != e)

    @define
    def take_tag(s, e: Event, tag: bool) -> None:
        """Who has had the tag is gone."""
        if tag:
            s.next.tagged = e
            if s.tagged is not None:
                s.next.status[s.tagged] = Status.REMOVED
                s.next.deadline[s.tagged] = NEVER
                s.next.place[s.tagged] = 0

    @define
    def accepts(s, e: Event) -> bool:
        return s.status[e] == Status.NEW and not s.shutting and not s.interrupted

    @action("EVQ-2", "EVQ-8", "EVQ-24", who="caller")
    def append(s, e: Event, tag: bool) -> None:
        require(s.accepts(e), s.tail < 2 * P)
        s.take_tag(e, tag)
        s.next.status[e] = Status.WAITS
        s.next.kind[e] = Kind.APPENDED
        s.next.place[e] = s.tail
        s.next.tail = s.tail + 1
        s.signal()

    @action("EVQ-2", "EVQ-5", "EVQ-24", who="caller")
    def append_with_deadline(s, e: Event, d: Time) -> None:
        require(s.accepts(e), s.tail < 2 * P)
        s.next.status[e] = Status.WAITS
        s.next.kind[e] = Kind.APPENDED
        s.next.place[e] = s.tail
        s.next.tail = s.tail + 1
        s.next.deadline[e] = d
        s.signal()

    @action("EVQ-3", "EVQ-24", who="caller")
    def prepend(s, e: Event) -> None:
        require(s.accepts(e), s.head > 1)
        s.next.status[e] = Status.WAITS
        s.next.kind[e] = Kind.PREPENDED
        s.next.place[e] = s.head - 1
        s.next.head = s.head - 1
        s.signal()

    @action("EVQ-4", "EVQ-8", "EVQ-24", who="caller")
    def defer(s, e: Event, d: Time, tag: bool) -> None:
        require(s.accepts(e))
        s.take_tag(e, tag)
        s.next.status[e] = Status.WAITS
        s.next.kind[e] = Kind.DEFERRED
        s.next.deadline[e] = d
        if (tag and s.is_before_others(d, s.tagged)) or (not tag and s.is_before_others(d, None)):
            s.signal()

    @action("EVQ-10", who="caller")
    def cancel(s) -> None:
        require(s.tagged is not None)
        if s.tagged is not None:
            s.next.status[s.tagged] = Status.REMOVED
            s.next.deadline[s.tagged] = NEVER
            s.next.place[s.tagged] = 0
        s.next.tagged = None

    @action("EVQ-15", who="caller")
    def refuse(s, e: Event) -> None:
        """The caller's thread tells it."""
        require(s.status[e] == Status.NEW, s.shutting or s.interrupted)
        s.next.status[e] = Status.TOLD

    @action("EVQ-15", "EVQ-24", who="caller")
    def begin_shutdown(s) -> None:
        require(not s.shutting)
        s.next.shutting = True
        s.signal()

    @action("EVQ-19", who="caller")
    def interrupt(s) -> None:
        require(s.thread != Thread.ENDED)
        s.next.mark = True

    @action("EVQ-4", who="clock", fair="weak")
    def tick(s) -> None:
        require(s.now < T)
        s.next.now = s.now + 1

    # ---- the handler's thread
    @define
    def take(s, e: Event, to: Status) -> None:
        s.next.status[e] = to
        s.next.deadline[e] = NEVER
        s.next.place[e] = 0
        s.next.thread = Thread.WORKS
        if s.tagged == e:
            s.next.tagged = None

    @action("EVQ-1", "EVQ-4", "EVQ-6", who="handler", fair="weak")
    def run_deferred(s, e: Event) -> None:
        require(s.thread == Thread.LOOKS, s.is_first_timed(e), s.is_due(e), s.kind[e] == Kind.DEFERRED)
        s.take(e, Status.RUNS)

    @action("EVQ-1", "EVQ-5", "EVQ-6", who="handler", fair="weak")
    def time_out(s, e: Event) -> None:
        require(s.thread == Thread.LOOKS, s.is_first_timed(e), s.is_due(e), s.kind[e] != Kind.DEFERRED)
        s.take(e, Status.HEARS)

    @action("EVQ-1", "EVQ-16", "EVQ-20", who="handler", fair="weak")
    def reject(s, e: Event) -> None:
        require(s.thread == Thread.LOOKS, s.is_first_timed(e), not s.is_due(e), s.shutting or s.interrupted)
        s.take(e, Status.HEARS)

    @action("EVQ-1", "EVQ-2", "EVQ-3", "EVQ-16", who="handler", fair="weak")
    def run(s, e: Event) -> None:
        require(s.thread == Thread.LOOKS, s.is_first_in_line(e), s.line_comes(), not s.interrupted)
        s.take(e, Status.RUNS)

    @action("EVQ-1", "EVQ-20", who="handler", fair="weak")
    def drop(s, e: Event) -> None:
        require(s.thread == Thread.LOOKS, s.is_first_in_line(e), s.line_comes(), s.interrupted)
        s.take(e, Status.HEARS)

    @action("EVQ-24", who="handler", fair="weak")
    def sleep(s) -> None:
        require(s.thread == Thread.LOOKS, s.line_comes(), all(not s.in_line(e) for e in Event))
        require(not s.shutting, not s.interrupted)
        s.next.thread = Thread.SLEEPS
        s.next.wakes = min((s.deadline[e] for e in Event if s.is_timed(e)), default=NEVER)

    @action("EVQ-24", "EVQ-19", who="handler", fair="weak")
    def wake(s) -> None:
        """With the mark, sleeping ends with an exception, which clears it."""
        require(s.thread == Thread.SLEEPS, s.signalled or s.mark or s.wakes <= s.now)
        s.next.thread = Thread.LOOKS
        s.next.signalled = False
        s.next.wakes = NEVER
        if s.mark:
            s.next.interrupted = True
            s.next.mark = False

    @action("EVQ-1", "EVQ-19", "EVQ-12", who="handler", fair="weak")
    def finish(s, e: Event, how: Ending) -> None:
        """A run ends. What it throws is told to it next, but for an InterruptedException."""
        require(s.thread == Thread.WORKS, s.status[e] == Status.RUNS)
        if how == Ending.THROWS or how == Ending.ERROR:
            s.next.status[e] = Status.FAILS
        else:
            s.next.status[e] = Status.RAN
            s.next.thread = Thread.LOOKS
            if how == Ending.INTERRUPTED or s.mark:
                s.next.interrupted = True

    @action("EVQ-1", "EVQ-19", "EVQ-13", "EVQ-14", who="handler", fair="weak")
    def is_told(s, e: Event, how: Ending) -> None:
        """handleException ends. An Error that it throws ends the thread."""
        require(s.thread == Thread.WORKS, s.status[e] == Status.HEARS or s.status[e] == Status.FAILS)
        require(how != Ending.INTERRUPTED)
        s.next.status[e] = Status.RAN if s.status[e] == Status.FAILS else Status.TOLD
        if how == Ending.ERROR:
            s.next.thread = Thread.ENDED
            s.next.broken = True
        else:
            s.next.thread = Thread.LOOKS
            if s.mark:
                s.next.interrupted = True

    @action("EVQ-17", who="handler", fair="weak")
    def end(s) -> None:
        require(s.thread == Thread.LOOKS, s.shutting or s.interrupted, all(not s.waits(e) for e in Event))
        s.next.thread = Thread.ENDED

    # ---- what holds
    @define
    def is_at_work(s, e: Event) -> bool:
        return s.status[e] == Status.RUNS or s.status[e] == Status.HEARS or s.status[e] == Status.FAILS

    @invariant("EVQ-1")
    def one_event_at_a_time(s, e: Event, f: Event) -> bool:
        return not (s.is_at_work(e) and s.is_at_work(f)) or e == f

    @invariant("EVQ-1")
    def somebody_is_at_work(s) -> bool:
        return (s.thread == Thread.WORKS) == any(s.is_at_work(e) for e in Event)

    @invariant("EVQ-24")
    def sleeps_through_nothing(s, e: Event) -> bool:
        """What it could take, or will be able to before it wakes, is not there."""
        return (
            s.thread != Thread.SLEEPS
            or s.signalled
            or (not s.shutting and not s.interrupted and not s.in_line(e) and s.wakes <= s.deadline[e])
        )

    @invariant("EVQ-17", "EVQ-26", "EVQ-13")
    def nothing_is_left(s, e: Event) -> bool:
        """By a thread that ends, unless an Error has ended it."""
        return s.thread != Thread.ENDED or s.broken or not s.waits(e)

    @invariant("EVQ-14")
    def an_error_ends_the_thread(s) -> bool:
        return not s.broken or s.thread == Thread.ENDED

    @step("EVQ-14")
    def an_error_changes_nothing_else(s, e: Event) -> bool:
        """The queue neither shuts down nor is interrupted, and what waits goes on waiting."""
        return (
            s.broken
            or not s.next.broken
            or (
                (s.is_at_work(e) or s.next.status[e] == s.status[e])
                and s.next.shutting == s.shutting
                and s.next.interrupted == s.interrupted
            )
        )

    @step("EVQ-14")
    def nothing_is_run_behind_an_error(s, e: Event) -> bool:
        return not s.broken or not s.is_taken(e)

    @step("EVQ-12", "EVQ-13")
    def what_a_run_throws_is_told_at_once(s, e: Event) -> bool:
        """Before anything else is taken; and then the queue goes on, or has ended by an Error."""
        return (
            s.status[e] != Status.FAILS
            or (s.next.status[e] == Status.FAILS and s.next.thread == Thread.WORKS)
            or (s.next.status[e] == Status.RAN and (s.next.thread == Thread.LOOKS or s.next.broken))
        )

    @invariant("EVQ-8")
    def who_has_the_tag_waits(s) -> bool:
        return s.tagged is None or s.waits(s.tagged)

    @define
    def is_final(s, x: Status) -> bool:
        return x == Status.RAN or x == Status.TOLD or x == Status.REMOVED

    @step("EVQ-26")
    def once(s, e: Event) -> bool:
        return (
            s.next.status[e] == s.status[e]
            or (s.status[e] == Status.NEW and (s.next.status[e] == Status.WAITS or s.next.status[e] == Status.TOLD))
            or (
                s.status[e] == Status.WAITS
                and (
                    s.next.status[e] == Status.RUNS
                    or s.next.status[e] == Status.HEARS
                    or s.next.status[e] == Status.REMOVED
                )
            )
            or (s.status[e] == Status.RUNS and (s.next.status[e] == Status.RAN or s.next.status[e] == Status.FAILS))
            or (s.status[e] == Status.FAILS and s.next.status[e] == Status.RAN)
            or (s.status[e] == Status.HEARS and s.next.status[e] == Status.TOLD)
        )

    @define
    def is_taken(s, e: Event) -> bool:
        return s.waits(e) and (s.next.status[e] == Status.RUNS or s.next.status[e] == Status.HEARS)

    @define
    def is_run(s, e: Event) -> bool:
        return s.waits(e) and s.next.status[e] == Status.RUNS

    @step("EVQ-4")
    def not_before_its_time(s, e: Event) -> bool:
        return not s.is_run(e) or s.kind[e] != Kind.DEFERRED or s.is_due(e)

    @step("EVQ-5")
    def not_after_its_deadline(s, e: Event) -> bool:
        return not s.is_run(e) or s.kind[e] == Kind.DEFERRED or not s.is_due(e)

    @step("EVQ-4", "EVQ-5", "EVQ-6")
    def the_earliest_deadline_first(s, e: Event, f: Event) -> bool:
        """What is due is before what is not, and the earlier before the later."""
        return not s.is_taken(e) or not s.is_due(f) or (s.is_due(e) and s.deadline[e] <= s.deadline[f])

    @step("EVQ-2", "EVQ-3")
    def in_the_order_of_the_line(s, e: Event, f: Event) -> bool:
        """Without a deadline nobody is before whom stands before him."""
        return (
            not s.is_taken(e)
            or not s.in_line(e)
            or s.deadline[e] != NEVER
            or not s.in_line(f)
            or s.place[e] <= s.place[f]
        )

    @define
    def is_added(s, e: Event, k: Kind) -> bool:
        return s.status[e] == Status.NEW and s.next.status[e] == Status.WAITS and s.next.kind[e] == k

    @step("EVQ-2")
    def appended_behind_all(s, e: Event, f: Event) -> bool:
        return not s.is_added(e, Kind.APPENDED) or not s.in_line(f) or f == e or s.place[f] < s.next.place[e]

    @step("EVQ-3")
    def prepended_before_all(s, e: Event, f: Event) -> bool:
        return not s.is_added(e, Kind.PREPENDED) or not s.in_line(f) or f == e or s.next.place[e] < s.place[f]

    @step("EVQ-2", "EVQ-3", "EVQ-4", "EVQ-5")
    def who_waits_stays_as_it_is(s, e: Event) -> bool:
        """Until it is taken or removed."""
        return (
            not s.waits(e)
            or s.next.status[e] != Status.WAITS
            or (s.next.kind[e] == s.kind[e] and s.next.place[e] == s.place[e] and s.next.deadline[e] == s.deadline[e])
        )

    @step("EVQ-4")
    def what_is_deferred_is_run_when_it_is_due(s, e: Event) -> bool:
        """It is never told that it is late."""
        return not s.waits(e) or s.next.status[e] != Status.HEARS or s.kind[e] != Kind.DEFERRED or not s.is_due(e)

    @step("EVQ-15")
    def refused_at_the_end_alone(s, e: Event) -> bool:
        return s.status[e] != Status.NEW or s.next.status[e] != Status.TOLD or s.shutting or s.interrupted

    @step("EVQ-24", "EVQ-19")
    def wakes_for_a_reason(s) -> bool:
        return s.thread != Thread.SLEEPS or s.next.thread == Thread.SLEEPS or s.signalled or s.mark or s.wakes <= s.now

    @step("EVQ-19")
    def a_mark_interrupts(s) -> bool:
        """When the thread looks for something to do: from sleep, which takes it away, or from work. A thread that has
        ended is not marked."""
        return (
            s.next.mark == s.mark
            if s.thread == Thread.ENDED
            else not s.mark
            or s.next.thread != Thread.LOOKS
            or s.thread == Thread.LOOKS
            or (s.next.interrupted and (s.thread != Thread.SLEEPS or not s.next.mark))
        )

    @step("EVQ-15")
    def none_is_added_at_the_end(s, e: Event) -> bool:
        return not (s.shutting or s.interrupted) or s.status[e] != Status.NEW or s.next.status[e] != Status.WAITS

    @step("EVQ-16", "EVQ-20")
    def told_for_a_reason(s, e: Event) -> bool:
        """That its deadline has come, or that the queue ends; without a deadline, an interruption alone."""
        return (
            not s.waits(e)
            or s.next.status[e] != Status.HEARS
            or s.interrupted
            or (s.deadline[e] != NEVER and (s.shutting or s.is_due(e)))
        )

    @step("EVQ-16", "EVQ-20")
    def deadlines_before_the_line_at_the_end(s, e: Event, f: Event) -> bool:
        return not ((s.shutting or s.interrupted) and s.is_taken(e) and s.deadline[e] == NEVER and s.is_timed(f))

    @step("EVQ-20")
    def nothing_in_line_runs_when_interrupted(s, e: Event) -> bool:
        return not s.interrupted or not s.is_run(e) or s.kind[e] == Kind.DEFERRED

    @step("EVQ-10", "EVQ-8")
    def removed_by_its_tag(s, e: Event) -> bool:
        return s.status[e] == s.next.status[e] or s.next.status[e] != Status.REMOVED or s.tagged == e

    @step("EVQ-19")
    def interrupted_for_good(s) -> bool:
        return not s.interrupted or s.next.interrupted

    @step("EVQ-19", "EVQ-12", "EVQ-13")
    def interrupted_for_a_reason(s) -> bool:
        """By its mark, or by an event's run, when the thread looks for something to do; what handleException throws
        interrupts nothing."""
        return (
            s.interrupted
            or not s.next.interrupted
            or (
                s.next.thread == Thread.LOOKS
                and (s.mark or any(s.status[e] == Status.RUNS and s.next.status[e] == Status.RAN for e in Event))
            )
        )

    @lemma()
    def the_head_is_before_the_tail(s) -> bool:
        return s.head >= 1 and s.head <= s.tail

    @lemma()
    def places_are_between(s, e: Event) -> bool:
        return not s.in_line(e) or (s.head <= s.place[e] and s.place[e] < s.tail)

    @lemma()
    def places_are_taken_once(s, e: Event, f: Event) -> bool:
        return not (s.in_line(e) and s.in_line(f)) or e == f or s.place[e] != s.place[f]

    @lemma()
    def who_does_not_wait_has_no_deadline_and_no_place(s, e: Event) -> bool:
        return s.waits(e) or (s.deadline[e] == NEVER and s.place[e] == 0)

    @lemma()
    def who_is_deferred_has_a_deadline_and_no_place(s, e: Event) -> bool:
        return not s.waits(e) or s.kind[e] != Kind.DEFERRED or (s.deadline[e] != NEVER and s.place[e] == 0)

    @lemma()
    def who_is_awake_waits_for_nothing(s) -> bool:
        return s.thread == Thread.SLEEPS or (s.wakes == NEVER and not s.signalled)

    @lemma()
    def the_end_has_a_reason(s) -> bool:
        return s.thread != Thread.ENDED or s.shutting or s.interrupted or s.broken

    @leads_to("EVQ-26", "EVQ-24")
    def nobody_waits_for_ever(s, e: Event) -> tuple[bool, bool]:
        """Unless an Error has ended the thread."""
        return s.waits(e), not s.waits(e) or s.broken

    @leads_to("EVQ-17")
    def a_shutdown_ends(s) -> tuple[bool, bool]:
        return s.shutting, s.thread == Thread.ENDED

    @witness
    def replaced(s) -> bool:
        return s.tagged is not None and any(s.status[e] == Status.REMOVED for e in Event)

    @witness
    def a_deferred_event_overtakes(s) -> bool:
        return any(s.status[e] == Status.RUNS and s.kind[e] == Kind.DEFERRED for e in Event) and any(
            s.in_line(e) for e in Event
        )

    @witness
    def timed_out_and_others_wait(s) -> bool:
        return any(s.status[e] == Status.HEARS for e in Event) and any(s.in_line(e) for e in Event) and not s.shutting

    @witness
    def all_have_run_at_the_end(s) -> bool:
        return s.thread == Thread.ENDED and all(s.status[e] == Status.RAN for e in Event)

    @witness
    def told_of_its_own_exception_and_another_waits(s) -> bool:
        return any(s.status[e] == Status.FAILS and any(s.waits(f) for f in Event) for e in Event) and not s.shutting

    @witness
    def accepted_behind_an_error(s) -> bool:
        return s.broken and not s.shutting and not s.interrupted and any(s.waits(e) for e in Event)

    @witness
    def refused_while_the_thread_sleeps(s) -> bool:
        """Nothing was ever in line, so that no deadline has come."""
        return s.thread == Thread.SLEEPS and s.tail == P and any(s.status[e] == Status.TOLD for e in Event)

    @witness
    def cancelled(s, e: Event) -> bool:
        """No other event was there that could have replaced it."""
        return s.status[e] == Status.REMOVED and all(s.status[f] == Status.NEW for f in Event if f != e)

    @witness
    def marked_in_its_sleep(s) -> bool:
        return s.thread == Thread.SLEEPS and s.mark

    @witness
    def sleeps_with_a_deadline(s) -> bool:
        return s.thread == Thread.SLEEPS and any(s.is_timed(e) for e in Event)


MODELS = [
    Expectation(Handler, sizes={"Event": 2, "T": 2, "P": 2}, distinct=29340, generated=113503, depth=14, deadlock=True),
    Expectation(
        Handler,
        sizes={"Event": 3, "T": 1, "P": 3},
        distinct=329292,
        generated=1336831,
        depth=16,
        deadlock=True,
        deep=True,
    ),
]
