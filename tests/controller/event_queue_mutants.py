"""Faults of the event queue, each with the clauses that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from kafkaspec.contract.codec import replace
from kafkaspec.contract.machine import Machine
from kafkaspec.impl.controller import event_queue as impl
from kafkaspec.impl.controller.event_queue import Asleep, Ending, Event, EventQueue, Execution, Node
from kafkaspec.impl.controller.event_queue_driver import Driver
from kafkaspec.language import LoadedModel, action, define, load, require
from kafkaspec.models.controller import event_queue as model
from kafkaspec.models.controller.event_queue import Status, T, Thread, Time
from kafkaspec.mutants.mutant import driver_with, of_impl, of_model, of_spec, with_fault
from kafkaspec.spec.controller import event_queue as spec

Handling = Generator[Execution | Asleep, Ending, None]


def _of(make: type[EventQueue]) -> Callable[[], Driver]:
    """What makes a driver of a faulty queue."""
    return driver_with(Driver, make=make)


class RunsWhatItIsGiven(EventQueue):
    """Somebody who adds to an empty line has his event run at once."""

    def run(self, node: Node, event: Event) -> Handling:
        yield Execution(node)
        taken = None if self.line_is_empty else self.take()
        if taken is not None and taken[1] is None and taken[0].event is not None:
            self.remove(taken[0])
            yield Execution(taken[0])
            self.count -= 1


class AppendsAtTheHead(EventQueue):
    def append(self, event: Event) -> None:
        self.enqueue(event, impl.no_deadline, behind=self.count < 3)


class PrependsAtTheEnd(EventQueue):
    def prepend(self, event: Event) -> None:
        self.append(event)


class PrependsBehindTheFirst(EventQueue):
    def insert(self, node: Node, of: Callable[[int | None], int | None], behind: bool | None) -> Exception | None:
        before = self.head
        if behind is False and not self.line_is_empty:
            self.head = self.head.after
            refusal = super().insert(node, of, behind)
            self.head = before
            return refusal
        return super().insert(node, of, behind)


class AfterItsDeadlineAlone(EventQueue):
    """A deferred event waits until its time has passed."""

    def take(self) -> tuple[Node, Exception | None] | None:
        first = self.deadlines.first()
        if first is not None and first.deferred and first.deadline == self.clock() and self.line_is_empty:
            return None
        return super().take()

    def until(self) -> int | None:
        first = super().until()
        return None if first is None else first + 1


class LineFirst(EventQueue):
    """What is due waits until the line is empty."""

    def take(self) -> tuple[Node, Exception | None] | None:
        first = self.deadlines.first()
        if first is not None and first.deferred and not self.line_is_empty and not self.interrupted:
            return self.head.after, None
        return super().take()


class RunsWhatIsLate(EventQueue):
    def take(self) -> tuple[Node, Exception | None] | None:
        taken = super().take()
        return (taken[0], None) if taken is not None and isinstance(taken[1], impl.QueueTimeoutError) else taken


class TimesOutInItsTurn(EventQueue):
    """Late events are told when they come to the head of the line."""

    def take(self) -> tuple[Node, Exception | None] | None:
        taken = super().take()
        if taken is not None and isinstance(taken[1], impl.QueueTimeoutError) and taken[0] is not self.head.after:
            return self.head.after, None
        return taken


class LastDeadlineFirst(EventQueue):
    def take(self) -> tuple[Node, Exception | None] | None:
        due = [n for ns, n in sorted(self.deadlines.nodes.items()) if ns <= self.clock()]
        if due:
            return due[-1], None if due[-1].deferred else impl.QueueTimeoutError()
        return super().take()


class OneForEachDeadline(impl.Deadlines):
    def free(self, ns: int) -> int:
        return ns + 1 if ns in self.nodes else ns

    def add(self, ns: int, node: Node) -> int:
        while self.free(ns) in self.nodes:
            ns += 2
        return super().add(self.free(ns), node)


class NeverWraps(impl.Deadlines):
    """Before the greatest long, if there is none behind it."""

    def free(self, ns: int) -> int:
        found = super().free(ns)
        if found >= ns:
            return found
        while ns in self.nodes:
            ns -= 1
        return ns


def _deadlines(make: type[impl.Deadlines]) -> Callable[[], Driver]:
    class Faulty(EventQueue):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.deadlines = make()

    return _of(Faulty)


class KeepsBoth(EventQueue):
    """A tag is taken over, and who has had it stays."""

    def take_tag(self, node: Node) -> int | None:
        before = None if node.tag is None else self.tags.get(node.tag)
        if node.tag is not None:
            self.tags[node.tag] = node
        return None if before is None else before.deadline


class KeepsTheFirst(EventQueue):
    """Who has a tag keeps it."""

    def enqueue(
        self,
        event: Event,
        of: Callable[[int | None], int | None],
        *,
        tag: str | None = None,
        behind: bool | None = None,
    ) -> None:
        if tag is None or tag not in self.tags:
            super().enqueue(event, of, tag=tag, behind=behind)


class TellsWhoIsReplaced(EventQueue):
    def take_tag(self, node: Node) -> int | None:
        before = None if node.tag is None else self.tags.get(node.tag)
        existing = super().take_tag(node)
        if before is not None and before.event is not None:
            self.tell(before.event, impl.RejectedExecutionError())
        return existing


class TagOfWhoRuns(EventQueue):
    """An event that is taken keeps its tag until it has ended."""

    def run(self, node: Node, event: Event) -> Handling:
        free = "a" not in self.tags
        if free:
            self.tags["a"] = node
        yield from super().run(node, event)
        if self.tags.get("a") is node:
            del self.tags["a"]


class NewDeadlineAlways(EventQueue):
    """The deadline of whom had the tag is not asked for."""

    def take_tag(self, node: Node) -> int | None:
        super().take_tag(node)
        return None


class CancelsDeferredAlone(EventQueue):
    def cancel_deferred(self, tag: str | None) -> None:
        node = None if tag is None else self.tags.get(tag)
        if node is not None and node.deferred:
            super().cancel_deferred(tag)


class TellsWhoIsCancelled(EventQueue):
    def cancel_deferred(self, tag: str | None) -> None:
        node = None if tag is None else self.tags.get(tag)
        super().cancel_deferred(tag)
        if node is not None and node.event is not None:
            self.tell(node.event, impl.RejectedExecutionError())


class KeepsTheTagOfTheRefused(EventQueue):
    """As in Kafka 4.3.0."""

    def insert(self, node: Node, of: Callable[[int | None], int | None], behind: bool | None) -> Exception | None:
        tag = node.tag
        refusal = super().insert(node, of, behind)
        if isinstance(refusal, impl.MissingDeadlineError) and tag is not None:
            self.tags[tag] = node
            node.tag = tag
        return refusal


class RunsItAtOnce(EventQueue):
    """A deferred event without a deadline is due."""

    def schedule_deferred(self, tag: str | None, of: Callable[[int | None], int | None], event: Event) -> None:
        super().schedule_deferred(tag, lambda existing: -1 if of(existing) is None else of(existing), event)


class TellsNothingOfItsOwn(EventQueue):
    def run(self, node: Node, event: Event) -> Handling:
        ending = yield Execution(node)
        self.interrupted = self.interrupted or ending.interrupted


class ExceptionEndsTheThread(EventQueue):
    def tell(self, event: Event, e: BaseException) -> None:
        try:
            event.handle_exception(e)
        except Exception:
            raise impl.FatalError from None


class ErrorIsSwallowed(EventQueue):
    def tell(self, event: Event, e: BaseException) -> None:
        try:
            super().tell(event, e)
        except impl.FatalError:
            return


class AcceptsWhileShuttingDown(EventQueue):
    def insert(self, node: Node, of: Callable[[int | None], int | None], behind: bool | None) -> Exception | None:
        if not self.shutting_down or self.count == 0:
            return super().insert(node, of, behind)
        self.shutting_down = False
        refusal = super().insert(node, of, behind)
        self.shutting_down = True
        return refusal


class InterruptedBeforeShutDown(EventQueue):
    def insert(self, node: Node, of: Callable[[int | None], int | None], behind: bool | None) -> Exception | None:
        if self.interrupted:
            return impl.InterruptedExecutionError()
        return super().insert(node, of, behind)


class DropsTheLine(EventQueue):
    """At a shutdown nothing in line is run any more."""

    def take(self) -> tuple[Node, Exception | None] | None:
        taken = super().take()
        if self.shutting_down and taken is not None and taken[1] is None and not taken[0].deferred:
            return taken[0], impl.RejectedExecutionError()
        return taken


class TimesOutAtShutdown(EventQueue):
    """As the documentation of beginShutdown has it."""

    def take(self) -> tuple[Node, Exception | None] | None:
        taken = super().take()
        if taken is not None and taken[0].deferred and isinstance(taken[1], impl.RejectedExecutionError):
            return taken[0], impl.QueueTimeoutError()
        return taken


class RunsTimedAtShutdown(EventQueue):
    """As the documentation of beginShutdown has it: events in line are run, with a deadline or without."""

    def take(self) -> tuple[Node, Exception | None] | None:
        taken = super().take()
        if taken is not None and not taken[0].deferred and isinstance(taken[1], impl.RejectedExecutionError):
            return taken[0], None
        return taken


class WaitsForDeadlines(EventQueue):
    """A shutdown waits for deferred events."""

    def take(self) -> tuple[Node, Exception | None] | None:
        taken = super().take()
        if taken is None or not taken[0].deferred or not isinstance(taken[1], impl.RejectedExecutionError):
            return taken
        return None if self.line_is_empty else (self.head.after, None)


class NoCleanUp(EventQueue):
    def ended(self) -> None:
        return


class CleansUpFirst(EventQueue):
    def begin_shutdown(self) -> None:
        if not self.shutting_down:
            self.clean_up()
        super().begin_shutdown()


class CleanUpIsToBeSound(EventQueue):
    """What the clean-up event throws comes out of the thread."""

    def ended(self) -> None:
        self.clean_up()


class ClosesAtOnce(Driver):
    """Who closes does not wait."""

    def state(self) -> spec.Queue:
        return super().state()

    def observe(self) -> Any:
        return {**super().observe(), "closed": self.closing}


class TellsWhoThrewInterrupted(EventQueue):
    def run(self, node: Node, event: Event) -> Handling:
        ending = yield Execution(node)
        if ending.thrown is not None:
            self.tell(event, ending.thrown)
        elif ending.interrupted:
            self.tell(event, impl.InterruptedExecutionError())
        self.interrupted = self.interrupted or ending.interrupted


class InterruptedOnce(EventQueue):
    """An interruption is over with the next event."""

    def run(self, node: Node, event: Event) -> Handling:
        yield from super().run(node, event)
        self.interrupted = False


class LeavesAtOnce(EventQueue):
    """Who is interrupted while he waits leaves, and tells nobody."""

    def sleep(self) -> Handling:
        yield from super().sleep()
        if self.interrupted:
            raise impl.FatalError


class RunsWhatWaits(EventQueue):
    """An interruption is no more than a shutdown."""

    def take(self) -> tuple[Node, Exception | None] | None:
        taken = super().take()
        if taken is not None and taken[0] is self.head.after and isinstance(taken[1], impl.InterruptedExecutionError):
            return taken[0], None
        return taken


class LineBeforeDeadlines(EventQueue):
    """When it is interrupted the line is told first."""

    def take(self) -> tuple[Node, Exception | None] | None:
        if self.interrupted and not self.line_is_empty:
            return self.head.after, impl.InterruptedExecutionError()
        return super().take()


class ShutDownTwice(EventQueue):
    def begin_shutdown(self) -> None:
        self.shutting_down = not self.shutting_down
        self.signal()


class CountsWhoWaits(EventQueue):
    @property
    def size(self) -> int:
        return len([n for n in self.deadlines.nodes.values() if n.deferred]) + self.in_line

    @property
    def in_line(self) -> int:
        node, n = self.head.after, 0
        while node is not self.head:
            node, n = node.after, n + 1
        return n


class ForgetsToCount(EventQueue):
    """Who is cancelled is counted."""

    def cancel_deferred(self, tag: str | None) -> None:
        before = self.count
        super().cancel_deferred(tag)
        self.count = before


class FirstOfAll(EventQueue):
    def first_deferred_if_idling(self) -> Node | None:
        first = self.deadlines.first()
        return first if first is not None and first.deferred else None


class AnyKindIfIdling(EventQueue):
    def first_deferred_if_idling(self) -> Node | None:
        return self.deadlines.first()


class SignalsTheLineAlone(EventQueue):
    """Who adds an earlier deadline wakes nobody."""

    def insert(self, node: Node, of: Callable[[int | None], int | None], behind: bool | None) -> Exception | None:
        wake = self.wake
        if behind is None:
            self.wake = lambda: None
        refusal = super().insert(node, of, behind)
        self.wake = wake
        return refusal


class PrependsInSilence(EventQueue):
    def prepend(self, event: Event) -> None:
        wake = self.wake
        self.wake = lambda: None
        super().prepend(event)
        self.wake = wake


class ShutsDownInSilence(EventQueue):
    def begin_shutdown(self) -> None:
        self.shutting_down = True


class SleepsForGood(EventQueue):
    def until(self) -> int | None:
        return None

    def wakeup(self) -> None:
        return


class IdleInAllTheTime(EventQueue):
    """The time of an event counts too."""

    def __init__(self, *arguments: Any) -> None:
        self.last = arguments[0]()
        super().__init__(*arguments)

    def sleep(self) -> Handling:
        begin = self.last // impl.NS_PER_MS
        slept = yield Asleep(self.until())
        self.last = self.clock()
        self.idled(max(0, self.last // impl.NS_PER_MS - begin))
        self.interrupted = self.interrupted or slept.interrupted


class IdleRoundedUp(EventQueue):
    def sleep(self) -> Handling:
        begin = self.clock()
        slept = yield Asleep(self.until())
        self.idled(-(-(self.clock() - begin) // impl.NS_PER_MS))
        self.interrupted = self.interrupted or slept.interrupted


class RunsItAgain(EventQueue):
    """An event that threw something is run once more."""

    def run(self, node: Node, event: Event) -> Handling:
        ending = yield Execution(node)
        if ending.thrown is not None:
            self.tell(event, ending.thrown)
            yield Execution(node)
        self.interrupted = self.interrupted or ending.interrupted


class LosesTheLastAtShutdown(EventQueue):
    def begin_shutdown(self) -> None:
        if not self.shutting_down and not self.line_is_empty:
            self.remove(self.head.before)
            self.count -= 1
        super().begin_shutdown()


class RunsTheNextWhenWoken(EventQueue):
    """Whoever wakes it has the next deferred event run."""

    def wakeup(self) -> None:
        first = self.first_deferred_if_idling()
        if first is not None and first.deadline is not None:
            ns = first.deadline
            self.deadlines.remove(ns)
            first.deadline = self.deadlines.add(min(ns, self.clock()), first)
        super().wakeup()


def _spec(operation: str, body: Callable[..., Any]) -> Callable[[], Machine[spec.Queue]]:
    return lambda: with_fault(spec.machine, operation, body)


def _refuses_nobody(state: spec.Queue, handle_exception: spec.Handling) -> spec.Stepped:
    open_ = replace(state, shutting_down=False, interrupted=False)
    step = spec.enqueued(open_, "APPEND", None, "none", 0, handle_exception)
    return step._replace(state=replace(step.state, shutting_down=state.shutting_down))


def _cancels_nobody(state: spec.Queue, tag: str | None) -> spec.Queue:
    return state


def _begins_nothing(state: spec.Queue, source: str) -> spec.Stepped:
    return spec.settled(state)


# ---- of the model ----------------------------------------------------------------------------------------------------
def _appends_in_silence() -> LoadedModel:
    """Nobody wakes the handler for the line."""

    class Handler(model.Handler):
        @action("EVQ-3", "EVQ-24", who="caller")
        def prepend(s, e: model.Event) -> None:
            require(s.accepts(e), s.head > 1)
            s.next.status[e] = Status.WAITS
            s.next.kind[e] = model.Kind.PREPENDED
            s.next.place[e] = s.head - 1
            s.next.head = s.head - 1

    return load(Handler)


def _defers_in_silence() -> LoadedModel:
    """Nobody wakes the handler for an earlier deadline."""

    class Handler(model.Handler):
        @define
        def is_before_others(s, d: Time, e: model.Event | None) -> bool:
            return d > T

    return load(Handler)


def _shuts_down_in_silence() -> LoadedModel:
    class Handler(model.Handler):
        @action("EVQ-15", "EVQ-24", who="caller")
        def begin_shutdown(s) -> None:
            require(not s.shutting)
            s.next.shutting = True

    return load(Handler)


def _leaves_at_once() -> LoadedModel:
    """Who is interrupted leaves, and tells nobody."""

    class Handler(model.Handler):
        @action("EVQ-17", who="handler", fair="weak")
        def end(s) -> None:
            require(s.thread == Thread.LOOKS, s.shutting or s.interrupted)
            require(s.interrupted or all(not s.waits(e) for e in model.Event))
            s.next.thread = Thread.ENDED

    return load(Handler)


def _cancels_nothing() -> LoadedModel:
    class Handler(model.Handler):
        @action("EVQ-10", who="caller")
        def cancel(s) -> None:
            require(s.tagged is None)

    return load(Handler)


def _refuses_anybody() -> LoadedModel:
    class Handler(model.Handler):
        @action("EVQ-15", who="caller")
        def refuse(s, e: model.Event) -> None:
            require(s.status[e] == Status.NEW)
            s.next.status[e] = Status.TOLD

    return load(Handler)


def _wakes_deaf() -> LoadedModel:
    """The mark is taken away, and nobody is interrupted."""

    class Handler(model.Handler):
        @action("EVQ-24", "EVQ-19", who="handler", fair="weak")
        def wake(s) -> None:
            require(s.thread == Thread.SLEEPS, s.signalled or s.mark or s.wakes <= s.now)
            s.next.thread = Thread.LOOKS
            s.next.signalled = False
            s.next.wakes = model.NEVER
            s.next.mark = False

    return load(Handler)


def _appends_again() -> LoadedModel:
    class Handler(model.Handler):
        @action("EVQ-2", "EVQ-24", who="caller")
        def append(s, e: model.Event, tag: bool) -> None:
            require(s.accepts(e) or s.in_line(e), s.tail < 2 * model.P, not tag)
            s.next.status[e] = Status.WAITS
            s.next.kind[e] = model.Kind.APPENDED
            s.next.place[e] = s.tail
            s.next.tail = s.tail + 1
            s.signal()

    return load(Handler)


def _tells_what_is_deferred() -> LoadedModel:
    """That its deadline has come."""

    class Handler(model.Handler):
        @action("EVQ-1", "EVQ-5", "EVQ-6", who="handler", fair="weak")
        def time_out(s, e: model.Event) -> None:
            require(s.thread == Thread.LOOKS, s.is_first_timed(e), s.is_due(e))
            s.take(e, Status.HEARS)

    return load(Handler)


def _takes_two() -> LoadedModel:
    """It goes on while an event runs."""

    class Handler(model.Handler):
        @action("EVQ-1", "EVQ-4", "EVQ-6", who="handler", fair="weak")
        def run_deferred(s, e: model.Event) -> None:
            require(s.thread == Thread.LOOKS or s.thread == Thread.WORKS, s.is_first_timed(e), s.is_due(e))
            require(s.kind[e] == model.Kind.DEFERRED)
            s.take(e, Status.RUNS)

    return load(Handler)


def _runs_the_line_first() -> LoadedModel:
    class Handler(model.Handler):
        @define
        def line_comes(s) -> bool:
            return True

    return load(Handler)


def _tells_nothing_of_its_own() -> LoadedModel:
    """What a run throws is forgotten."""

    class Handler(model.Handler):
        @action("EVQ-1", "EVQ-19", "EVQ-12", who="handler", fair="weak")
        def finish(s, e: model.Event, how: model.Ending) -> None:
            require(s.thread == Thread.WORKS, s.status[e] == Status.RUNS)
            s.next.status[e] = Status.RAN
            s.next.thread = Thread.LOOKS
            if how == model.Ending.INTERRUPTED or s.mark:
                s.next.interrupted = True

    return load(Handler)


def _an_exception_ends_the_thread() -> LoadedModel:
    """Of handleException, as an Error does."""

    class Handler(model.Handler):
        @action("EVQ-1", "EVQ-19", "EVQ-13", "EVQ-14", who="handler", fair="weak")
        def is_told(s, e: model.Event, how: model.Ending) -> None:
            require(s.thread == Thread.WORKS, s.status[e] == Status.HEARS or s.status[e] == Status.FAILS)
            require(how != model.Ending.INTERRUPTED)
            s.next.status[e] = Status.RAN if s.status[e] == Status.FAILS else Status.TOLD
            if how == model.Ending.RETURNS:
                s.next.thread = Thread.LOOKS
                if s.mark:
                    s.next.interrupted = True
            else:
                s.next.thread = Thread.ENDED
                if how == model.Ending.ERROR:
                    s.next.broken = True

    return load(Handler)


def _an_exception_interrupts() -> LoadedModel:
    """Of handleException."""

    class Handler(model.Handler):
        @action("EVQ-1", "EVQ-19", "EVQ-13", "EVQ-14", who="handler", fair="weak")
        def is_told(s, e: model.Event, how: model.Ending) -> None:
            require(s.thread == Thread.WORKS, s.status[e] == Status.HEARS or s.status[e] == Status.FAILS)
            require(how != model.Ending.INTERRUPTED)
            s.next.status[e] = Status.RAN if s.status[e] == Status.FAILS else Status.TOLD
            if how == model.Ending.ERROR:
                s.next.thread = Thread.ENDED
                s.next.broken = True
            else:
                s.next.thread = Thread.LOOKS
                if s.mark or how == model.Ending.THROWS:
                    s.next.interrupted = True

    return load(Handler)


def _an_error_is_swallowed() -> LoadedModel:
    """Of handleException, as an exception is."""

    class Handler(model.Handler):
        @action("EVQ-1", "EVQ-19", "EVQ-13", "EVQ-14", who="handler", fair="weak")
        def is_told(s, e: model.Event, how: model.Ending) -> None:
            require(s.thread == Thread.WORKS, s.status[e] == Status.HEARS or s.status[e] == Status.FAILS)
            require(how != model.Ending.INTERRUPTED)
            s.next.status[e] = Status.RAN if s.status[e] == Status.FAILS else Status.TOLD
            s.next.thread = Thread.LOOKS
            if s.mark:
                s.next.interrupted = True

    return load(Handler)


def _an_error_shuts_down() -> LoadedModel:
    """Who adds something later is told."""

    class Handler(model.Handler):
        @action("EVQ-1", "EVQ-19", "EVQ-13", "EVQ-14", who="handler", fair="weak")
        def is_told(s, e: model.Event, how: model.Ending) -> None:
            require(s.thread == Thread.WORKS, s.status[e] == Status.HEARS or s.status[e] == Status.FAILS)
            require(how != model.Ending.INTERRUPTED)
            s.next.status[e] = Status.RAN if s.status[e] == Status.FAILS else Status.TOLD
            if how == model.Ending.ERROR:
                s.next.thread = Thread.ENDED
                s.next.broken = True
                s.next.shutting = True
            else:
                s.next.thread = Thread.LOOKS
                if s.mark:
                    s.next.interrupted = True

    return load(Handler)


MUTANTS = [
    of_impl("two at a time", "EVQ-1 EVQ-26", "the next begins with the end of the one before", _of(RunsWhatItIsGiven)),
    of_impl("appends at the head", "EVQ-2", "if there are three", _of(AppendsAtTheHead)),
    of_impl("prepends at the end", "EVQ-3", "as it appends", _of(PrependsAtTheEnd)),
    of_impl("prepends behind the first", "EVQ-3", "of the line", _of(PrependsBehindTheFirst)),
    of_impl("runs what is late", "EVQ-5", "and tells it nothing", _of(RunsWhatIsLate)),
    of_impl("times out in its turn", "EVQ-5", "at the head of the line", _of(TimesOutInItsTurn)),
    of_impl("keeps both", "EVQ-8", "whose tag is the same", _of(KeepsBoth)),
    of_impl("keeps the first", "EVQ-8", "of a tag", _of(KeepsTheFirst)),
    of_impl("tells who is replaced", "EVQ-8", "that it was rejected", _of(TellsWhoIsReplaced)),
    of_impl("tag of who runs", "EVQ-8 EVQ-10", "until it has ended", _of(TagOfWhoRuns)),
    of_impl("cancels deferred alone", "EVQ-10", "no event in line", _of(CancelsDeferredAlone)),
    of_impl("tells who is cancelled", "EVQ-10", "that it was rejected", _of(TellsWhoIsCancelled)),
    of_impl("keeps the tag of the refused", "EVQ-11", "as Kafka 4.3.0 does", _of(KeepsTheTagOfTheRefused)),
    of_impl("runs it at once", "EVQ-11", "if it has no deadline", _of(RunsItAtOnce)),
    of_impl("tells nothing of its own", "EVQ-12", "that its run threw", _of(TellsNothingOfItsOwn)),
    of_impl("exception ends the thread", "EVQ-13", "of a handler", _of(ExceptionEndsTheThread), "KAFKA-14601"),
    of_impl("error is swallowed", "EVQ-14", "as an exception", _of(ErrorIsSwallowed)),
    of_impl("accepts while shutting down", "EVQ-15", "while somebody waits", _of(AcceptsWhileShuttingDown)),
    of_impl("interrupted before shut down", "EVQ-15", "of both", _of(InterruptedBeforeShutDown)),
    of_impl("times out at shutdown", "EVQ-16", "deferred events, as documented", _of(TimesOutAtShutdown)),
    of_impl("waits for deadlines", "EVQ-16 EVQ-17", "at a shutdown", _of(WaitsForDeadlines)),
    of_impl("no clean-up", "EVQ-17", "at the end", _of(NoCleanUp)),
    of_impl("cleans up first", "EVQ-17", "before what waits", _of(CleansUpFirst)),
    of_impl("clean-up is to be sound", "EVQ-17", "or nothing goes on", _of(CleanUpIsToBeSound)),
    of_impl("tells who was interrupted", "EVQ-19", "by its own exception", _of(TellsWhoThrewInterrupted)),
    of_impl("interrupted once", "EVQ-19", "the next event ends it", _of(InterruptedOnce)),
    of_impl("shut down twice", "EVQ-21", "is not shut down", _of(ShutDownTwice)),
    of_impl("counts who waits", "EVQ-22", "and not who runs", _of(CountsWhoWaits)),
    of_impl("forgets to count", "EVQ-22", "who was cancelled", _of(ForgetsToCount)),
    of_impl("any kind if idling", "EVQ-23", "whatever has a deadline", _of(AnyKindIfIdling)),
    of_impl("prepends in silence", "EVQ-24", "and wakes nobody", _of(PrependsInSilence)),
    of_impl("shuts down in silence", "EVQ-24", "and wakes nobody", _of(ShutsDownInSilence)),
    of_impl("sleeps for good", "EVQ-24 EVQ-4", "whatever the clock says", _of(SleepsForGood)),
    of_impl("idle in all the time", "EVQ-25", "since it was idle before", _of(IdleInAllTheTime)),
    of_impl("idle rounded up", "EVQ-25", "to milliseconds", _of(IdleRoundedUp)),
    of_impl("runs it again", "EVQ-26", "if it threw something", _of(RunsItAgain)),
    of_impl("loses the last", "EVQ-26", "at a shutdown", _of(LosesTheLastAtShutdown)),
    of_impl("runs the next when woken", "EVQ-27 EVQ-4", "before its time", _of(RunsTheNextWhenWoken)),
    of_spec("spec: refuses nobody", "EVQ-15", "an event that is appended", _spec("append", _refuses_nobody)),
    of_spec("spec: cancels nobody", "EVQ-10", "whatever the tag", _spec("cancelDeferred", _cancels_nobody)),
    of_spec("spec: begins nothing", "EVQ-15 EVQ-16", "no shutdown", _spec("beginShutdown", _begins_nothing)),
    of_model("Handler: appends in silence", "EVQ-24", "and wakes nobody", _appends_in_silence),
    of_model("Handler: defers in silence", "EVQ-24", "what is earlier", _defers_in_silence),
    of_model("Handler: shuts down in silence", "EVQ-24 EVQ-17", "and wakes nobody", _shuts_down_in_silence),
    of_model("Handler: cancels nothing", "EVQ-10", "with a tag that an event has", _cancels_nothing),
    of_model("Handler: refuses anybody", "EVQ-15", "though the queue goes on", _refuses_anybody),
    of_model("Handler: wakes deaf", "EVQ-19", "to its mark", _wakes_deaf),
    of_model("Handler: appended again", "EVQ-2", "what waits takes a new place", _appends_again),
    of_model("Handler: late though deferred", "EVQ-4", "what is due is told so", _tells_what_is_deferred),
    of_model("Handler: leaves at once", "EVQ-17 EVQ-26", "when interrupted", _leaves_at_once, "KAFKA-14601"),
    of_model("Handler: takes two", "EVQ-1", "while one runs", _takes_two),
    of_model("Handler: tells nothing of its own", "EVQ-12", "that its run threw", _tells_nothing_of_its_own),
    of_model("Handler: exception ends it", "EVQ-13", "of a handler", _an_exception_ends_the_thread, "KAFKA-14601"),
    of_model("Handler: exception interrupts", "EVQ-13 EVQ-19", "of a handler", _an_exception_interrupts),
    of_model("Handler: error is swallowed", "EVQ-14", "as an exception", _an_error_is_swallowed),
    of_model("Handler: error shuts down", "EVQ-14", "and not the thread alone", _an_error_shuts_down),
    of_model("Handler: runs the line first", "EVQ-4 EVQ-5 EVQ-16", "whatever is due", _runs_the_line_first),
]

RARE = [
    of_impl("when it has passed", "EVQ-4", "not at its time", _of(AfterItsDeadlineAlone)),
    of_impl("line first", "EVQ-4", "what is due waits for the line", _of(LineFirst)),
    of_impl("last deadline first", "EVQ-6", "of those that are due", _of(LastDeadlineFirst)),
    of_impl("every second nanosecond", "EVQ-7", "of those that are free", _deadlines(OneForEachDeadline)),
    of_impl("never wraps", "EVQ-7", "the nanosecond before the last", _deadlines(NeverWraps)),
    of_impl("new deadline always", "EVQ-9", "also if the one before was earlier", _of(NewDeadlineAlways)),
    of_impl("drops the line", "EVQ-16", "at a shutdown", _of(DropsTheLine)),
    of_impl("runs timed at shutdown", "EVQ-16", "events in line, as documented", _of(RunsTimedAtShutdown)),
    of_impl("closes at once", "EVQ-18", "without the thread", ClosesAtOnce),
    of_impl("leaves at once", "EVQ-19 EVQ-20 EVQ-26", "and tells nobody", _of(LeavesAtOnce), "KAFKA-14601"),
    of_impl("runs what waits", "EVQ-20", "in line", _of(RunsWhatWaits)),
    of_impl("line before deadlines", "EVQ-20", "when it is interrupted", _of(LineBeforeDeadlines)),
    of_impl("first of all", "EVQ-23", "while others are in line", _of(FirstOfAll)),
    of_impl("signals the line alone", "EVQ-24", "no deadline", _of(SignalsTheLineAlone)),
]
"""Those that show at the end of a number's range, with several deadlines, or after a rare sequence."""

MUTANTS += RARE

WAKES_FOR_NOTHING = "The thread wakes once more than it must, finds nothing to do and sleeps again."
SURVIVORS: dict[str, str] = {
    "Handler.defer: effect 8, other member of its condition": WAKES_FOR_NOTHING,
    "Handler.defer: effect 8, off by one of its condition (2)": "An equal deadline wakes the thread in time.",
    "Handler.defer: effect 8, off by one of its condition (3)": "An equal deadline wakes the thread in time.",
    "Handler.sleep: effect 2, off by one": WAKES_FOR_NOTHING,
}
"""Generated faults of the models that nobody can notice, and why."""
