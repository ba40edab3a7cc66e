"""The event queue, for the spec to walk beside: the clock, the handler's thread and its interrupted mark are the
caller's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kafkaspec.contract.machine import ByName
from kafkaspec.impl.controller import event_queue as impl
from kafkaspec.spec.controller import event_queue as spec

TOLD = {
    impl.QueueTimeoutError: spec.TIMEOUT,
    impl.RejectedExecutionError: spec.REJECTED,
    impl.InterruptedExecutionError: spec.INTERRUPTED,
    impl.MissingDeadlineError: spec.NO_DEADLINE,
}


class ErrorInCaller(Exception):
    """An Error has come out of a call."""


class OwnError(Exception):
    """What an event's run throws."""


@dataclass(eq=False)
class Event:
    """One that notes what is called."""

    id: int
    handling: spec.Handling
    note: Callable[[int | None, str], None]

    def handle_exception(self, e: BaseException) -> None:
        """It ends as the caller has said."""
        self.note(self.id, spec.THROWN if isinstance(e, OwnError) else TOLD[type(e)])  # type: ignore[index]
        if self.handling == "error":
            raise impl.FatalError
        if self.handling == "throws":
            raise ValueError


class Driver(ByName):
    """The queue with a thread that does nothing but what it must."""

    machine = spec.machine
    refusals = {ErrorInCaller: spec.ERROR}
    make: type[impl.EventQueue] = impl.EventQueue
    subject: impl.EventQueue

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.first = spec.initial(**arguments)
        self.cleanup = arguments.get("cleanup", "returns")
        self.now = self.first.now
        self.calls: list[spec.Call] = []
        self.by: spec.Thread = "handler"
        self.added = self.closing = self.idle_ms = 0
        self.mark = self.signalled = self.broken = False
        self.subject = self.make(lambda: self.now, self._clean_up, self._wake, self._idled)
        self.at: impl.Execution | impl.Asleep | None = next(self.subject.handler)

    def _clean_up(self) -> None:
        self._note(None, spec.RUN)
        if self.cleanup == "throws":
            raise ValueError

    def _wake(self) -> None:
        self.signalled = True

    def _idled(self, ms: int) -> None:
        self.idle_ms += ms

    def _note(self, event: int | None, what: str) -> None:
        self.calls.append(spec.Call(event, what, self.by))

    # -- the handler's thread
    def _go_on(self, ending: impl.Ending) -> None:
        """Until it runs an event, sleeps, or has ended."""
        self.by = "handler"
        try:
            self.at = self.subject.handler.send(ending)
        except StopIteration:
            self.at = None
            self.broken = self.subject.size > 0
        if isinstance(self.at, impl.Execution):
            self._note(self._event(self.at.node).id, spec.RUN)

    def _settle(self, interrupted: bool = False) -> spec.Answer:
        """It sleeps no longer than it must."""
        while isinstance(self.at, impl.Asleep):
            until = self.at.until
            if not (interrupted or self.signalled or (until is not None and until <= self.now)):
                break
            self.signalled = False
            self._go_on(impl.Ending(interrupted=interrupted))
            interrupted = False
        self.signalled = False
        calls, self.calls = tuple(self.calls), []
        return calls

    @staticmethod
    def _event(node: impl.Node) -> Event:
        assert isinstance(node.event, Event)
        return node.event

    def finish(self, outcome: spec.Outcome) -> spec.Answer:
        self.mark = self.mark and outcome != "clears"
        thrown = OwnError() if outcome in ("throws", "error") else None
        self._go_on(impl.Ending(thrown, self.mark or outcome == "interrupted"))
        return self._settle()

    def advance(self, ns: int) -> spec.Answer:
        self.now += ns
        self.subject.wakeup()
        return self._settle()

    def interrupt(self, times: int) -> spec.Answer:
        self.mark = self.mark or isinstance(self.at, impl.Execution)
        return self._settle(interrupted=isinstance(self.at, impl.Asleep))

    # -- callers
    def _new(self, handling: spec.Handling) -> Event:
        self.added += 1
        return Event(self.added - 1, handling, self._note)

    def _add(self, call: Callable[..., None], *arguments: Any, **further: Any) -> spec.Answer:
        self.by = "caller"
        try:
            call(*arguments, **further)
        except impl.FatalError:
            self.calls = []
            raise ErrorInCaller from None
        return self._settle()

    def append(self, handle_exception: spec.Handling) -> spec.Answer:
        return self._add(self.subject.append, self._new(handle_exception))

    def prepend(self, handle_exception: spec.Handling) -> spec.Answer:
        return self._add(self.subject.prepend, self._new(handle_exception))

    def append_with_deadline(self, deadline_ns: int, handle_exception: spec.Handling) -> spec.Answer:
        return self._add(self.subject.append_with_deadline, deadline_ns, self._new(handle_exception))

    def schedule_deferred(
        self, tag: str | None, function: spec.Calculator, deadline_ns: int, handle_exception: spec.Handling
    ) -> spec.Answer:
        of = calculator(function, deadline_ns)
        return self._add(self.subject.schedule_deferred, tag, of, self._new(handle_exception))

    def enqueue(
        self,
        insertion: spec.Insertion,
        tag: str | None,
        function: spec.Calculator,
        deadline_ns: int,
        handle_exception: spec.Handling,
    ) -> spec.Answer:
        behind = None if insertion == "DEFERRED" else insertion == "APPEND"
        of = calculator(function, deadline_ns)
        return self._add(self.subject.enqueue, self._new(handle_exception), of, tag=tag, behind=behind)

    def cancel_deferred(self, tag: str | None) -> spec.Answer | None:
        """Nobody is told. [EVQ-10]"""
        self.subject.cancel_deferred(tag)
        return self._settle() or None

    def begin_shutdown(self, source: str) -> spec.Answer:
        self.subject.begin_shutdown()
        return self._settle()

    def close(self, callers: int) -> spec.Answer:
        """They wait until the thread has ended. [EVQ-18]"""
        self.closing += callers
        self.subject.begin_shutdown()
        return self._settle()

    def wakeup(self) -> spec.Answer:
        self.subject.wakeup()
        return self._settle()

    def observe(self) -> Any:
        """The queue's own counts, beside what the state says."""
        first = self.subject.first_deferred_if_idling()
        return {
            **super().observe(),
            "size": self.subject.size,
            "firstDeferredIfIdling": None if first is None else self._event(first).id,
            "tags": {tag: self._event(node).id for tag, node in sorted(self.subject.tags.items())},
        }

    def state(self) -> spec.Queue:
        """What the line, the deadlines and the tags hold."""
        q = self.subject
        line, node = [], q.head.after
        while node is not q.head:
            line.append(self._shown(node))
            node = node.after
        deferred = [self._shown(n) for _, n in sorted(q.deadlines.nodes.items()) if n.deferred]
        running = self.at.node if isinstance(self.at, impl.Execution) else None
        return spec.Queue(
            now=self.now,
            line=tuple(line),
            deferred=tuple(deferred),
            running=None if running is None else self._shown(running),
            added=self.added,
            shutting_down=q.shutting_down,
            interrupted=q.interrupted,
            mark=self.mark,
            ended=self.at is None,
            broken=self.broken,
            closing=self.closing,
            idle_ms=self.idle_ms,
        )

    def _shown(self, node: impl.Node) -> spec.Event:
        event = self._event(node)
        return spec.Event(event.id, node.deferred, node.tag, node.deadline, event.handling)


def calculator(function: spec.Calculator, ns: int) -> Callable[[int | None], int | None]:
    """The function of that name."""
    if function == "none":
        return impl.no_deadline
    return impl.deadline(ns) if function == "deadline" else impl.earliest_deadline(ns)
