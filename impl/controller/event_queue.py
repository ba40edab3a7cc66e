"""The event queue of a controller: a linked line, a sorted list of deadlines, an index by tag, and a handler.

The handler is a coroutine in the place of a thread: it hands out the event that it runs and goes on when it is sent how
that ended; it hands out until when it sleeps and goes on when it is woken. So whoever drives it decides who is next, as
a scheduler of threads does, and the rest is as with threads, the signals too.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Protocol

LONG_MAX = 2**63 - 1
NS_PER_MS = 1_000_000


class QueueTimeoutError(Exception):
    """The deadline of an event has come before it was run."""


class RejectedExecutionError(Exception):
    """The queue shuts down."""


class InterruptedExecutionError(Exception):
    """The handler's thread was interrupted."""


class MissingDeadlineError(Exception):
    """A deferred event has none."""


class FatalError(BaseException):
    """What nobody is to catch, such as an Error in Java."""


class Event(Protocol):
    """What a caller adds."""

    def handle_exception(self, e: BaseException) -> None:
        """It was not run, or its run threw that."""


@dataclass(eq=False)
class Node:
    """An event in the line; one that is in no line is linked with itself."""

    event: Event | None
    deferred: bool = False
    tag: str | None = None
    deadline: int | None = None
    before: Node = field(init=False, repr=False)
    after: Node = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.before = self.after = self

    def insert_after(self, other: Node) -> None:
        """The other one stands behind this one."""
        self.after.before = other
        other.after, other.before = self.after, self
        self.after = other

    def unlink(self) -> None:
        """It stands in the line no more."""
        self.before.after, self.after.before = self.after, self.before
        self.before = self.after = self


class Deadlines:
    """Nodes by their deadlines, of which no two are the same."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.nodes: dict[int, Node] = {}

    def free(self, ns: int) -> int:
        """The first nanosecond from that one on that nobody has; behind the greatest long comes the least. [EVQ-7]"""
        while ns in self.nodes:
            ns = -LONG_MAX - 1 if ns == LONG_MAX else ns + 1
        return ns

    def add(self, ns: int, node: Node) -> int:
        """Its place among them."""
        ns = self.free(ns)
        bisect.insort(self.order, ns)
        self.nodes[ns] = node
        return ns

    def remove(self, ns: int) -> None:
        """Nobody has that deadline any more."""
        del self.nodes[ns]
        self.order.pop(bisect.bisect_left(self.order, ns))

    def first(self) -> Node | None:
        """Who has the earliest."""
        return self.nodes[self.order[0]] if self.order else None


def no_deadline(existing: int | None) -> int | None:
    """None. [EVQ-9]"""
    return None


def deadline(ns: int) -> Callable[[int | None], int | None]:
    """That one. [EVQ-9]"""
    return lambda existing: ns


def earliest_deadline(ns: int) -> Callable[[int | None], int | None]:
    """That one, or the one that is there if it is earlier. [EVQ-9]"""
    return lambda existing: ns if existing is None else min(ns, existing)


@dataclass(frozen=True)
class Execution:
    """The handler runs an event; it is sent what came out of it."""

    node: Node


@dataclass(frozen=True)
class Asleep:
    """The handler sleeps until it is woken, or until the clock has reached that."""

    until: int | None


@dataclass(frozen=True)
class Ending:
    """How an event's run has ended: with an exception, an InterruptedException, with the thread's interrupted mark
    set."""

    thrown: BaseException | None = None
    interrupted: bool = False


class EventQueue:
    """The queue. `wake` is called where a waiting thread would be signalled, `idled` with the ms that it has slept."""

    def __init__(
        self,
        clock: Callable[[], int],
        clean_up: Callable[[], None],
        wake: Callable[[], None],
        idled: Callable[[int], None],
    ) -> None:
        self.clock = clock
        self.clean_up = clean_up
        self.wake = wake
        self.idled = idled
        self.head = Node(None)
        self.deadlines = Deadlines()
        self.tags: dict[str, Node] = {}
        self.count = 0
        self.shutting_down = False
        self.interrupted = False
        self.handler = self.handle_events()

    @property
    def size(self) -> int:
        """How many wait, and one that runs. [EVQ-22]"""
        return self.count

    @property
    def line_is_empty(self) -> bool:
        """Whether nobody waits in line."""
        return self.head.after is self.head

    # -- callers
    def append(self, event: Event) -> None:
        """Behind all others. [EVQ-2]"""
        self.enqueue(event, no_deadline, behind=True)

    def prepend(self, event: Event) -> None:
        """Before all others. [EVQ-3]"""
        self.enqueue(event, no_deadline, behind=False)

    def append_with_deadline(self, ns: int, event: Event) -> None:
        """Behind all others, unless it is too late by then. [EVQ-2, EVQ-5]"""
        self.enqueue(event, deadline(ns), behind=True)

    def schedule_deferred(self, tag: str | None, of: Callable[[int | None], int | None], event: Event) -> None:
        """At its time. [EVQ-4]"""
        self.enqueue(event, of, tag=tag)

    def enqueue(
        self,
        event: Event,
        of: Callable[[int | None], int | None],
        *,
        tag: str | None = None,
        behind: bool | None = None,
    ) -> None:
        """Adds an event; what speaks against it is told to the event. `behind` None: it is deferred. [EVQ-15,
        EVQ-14]"""
        refusal = self.insert(Node(event, behind is None, tag), of, behind)
        if refusal is not None:
            self.tell(event, refusal)

    def insert(self, node: Node, of: Callable[[int | None], int | None], behind: bool | None) -> Exception | None:
        """Puts it in its places, or says what speaks against it. [EVQ-15, EVQ-8, EVQ-11]"""
        if self.shutting_down:
            return RejectedExecutionError()
        if self.interrupted:
            return InterruptedExecutionError()
        existing = self.take_tag(node)
        ns = of(existing)
        if ns is None and node.deferred:
            self.remove(node)
            return MissingDeadlineError()
        signal = False
        if behind is not None:
            signal = self.line_is_empty
            (self.head.before if behind else self.head).insert_after(node)
        if ns is not None:
            first = self.deadlines.first()
            node.deadline = self.deadlines.add(ns, node)
            signal = signal or first is None or node.deadline <= (first.deadline or 0)
        self.count += 1
        if signal:
            self.signal()
        return None

    def take_tag(self, node: Node) -> int | None:
        """The deadline of whom has had its tag; that one is gone. [EVQ-8]"""
        if node.tag is None:
            return None
        before = self.tags.get(node.tag)
        existing = None
        if before is not None:
            existing = before.deadline
            self.remove(before)
            self.count -= 1
        self.tags[node.tag] = node
        return existing

    def cancel_deferred(self, tag: str | None) -> None:
        """Whoever waits with that tag does not any more. [EVQ-10]"""
        node = None if tag is None else self.tags.get(tag)
        if node is not None:
            self.remove(node)
            self.count -= 1

    def begin_shutdown(self) -> None:
        """No more events. [EVQ-15, EVQ-21]"""
        self.shutting_down = True
        self.signal()

    def wakeup(self) -> None:
        """Has the handler look at the clock. [EVQ-27]"""
        self.signal()

    def signal(self) -> None:
        """Wakes the handler. [EVQ-24]"""
        self.wake()

    def first_deferred_if_idling(self) -> Node | None:
        """The next event, if it is a deferred one. [EVQ-23]"""
        first = self.deadlines.first()
        return first if first is not None and first.deferred and self.line_is_empty else None

    # -- the handler
    def remove(self, node: Node) -> None:
        """It is in none of the places."""
        node.unlink()
        if node.deadline is not None:
            self.deadlines.remove(node.deadline)
            node.deadline = None
        if node.tag is not None:
            if self.tags.get(node.tag) is node:
                del self.tags[node.tag]
            node.tag = None

    def tell(self, event: Event, e: BaseException) -> None:
        """Gives an event an exception. One that comes out of it is swallowed, an error is not. [EVQ-13, EVQ-14]"""
        try:
            event.handle_exception(e)
        except Exception:  # the event's own affair
            return

    def take(self) -> tuple[Node, Exception | None] | None:
        """The next one, and what it is told if it is not run. [EVQ-4, EVQ-5, EVQ-6, EVQ-16, EVQ-20]"""
        first = self.deadlines.first()
        if first is not None:
            assert first.deadline is not None
            if first.deadline <= self.clock():
                return first, None if first.deferred else QueueTimeoutError()
            if self.interrupted:
                return first, InterruptedExecutionError()
            if self.shutting_down:
                return first, RejectedExecutionError()
        if self.line_is_empty:
            return None
        return self.head.after, InterruptedExecutionError() if self.interrupted else None

    def handle_events(self) -> Generator[Execution | Asleep, Ending, None]:
        """One event after the other, until the end. [EVQ-1, EVQ-17]"""
        with contextlib.suppress(FatalError):  # it ends the thread
            yield from self.go_on()
        self.ended()

    def go_on(self) -> Generator[Execution | Asleep, Ending, None]:
        """While there may be more. [EVQ-26]"""
        while True:
            taken = self.take()
            if taken is None:
                if self.shutting_down or self.interrupted:
                    return
                yield from self.sleep()
                continue
            node, reason = taken
            self.remove(node)
            assert node.event is not None
            if reason is None:
                yield from self.run(node, node.event)
            else:
                self.tell(node.event, reason)
            self.count -= 1

    def sleep(self) -> Generator[Execution | Asleep, Ending, None]:
        """Until it is woken; says how long. [EVQ-25, EVQ-19]"""
        begin = self.clock() // NS_PER_MS
        slept = yield Asleep(self.until())
        self.idled(max(0, self.clock() // NS_PER_MS - begin))
        self.interrupted = self.interrupted or slept.interrupted

    def run(self, node: Node, event: Event) -> Generator[Execution | Asleep, Ending, None]:
        """Runs it, and tells it what came out. [EVQ-12, EVQ-19]"""
        ending = yield Execution(node)
        if ending.thrown is not None:
            self.tell(event, ending.thrown)
        self.interrupted = self.interrupted or ending.interrupted

    def until(self) -> int | None:
        """When the handler has something to do again. [EVQ-24]"""
        first = self.deadlines.first()
        return None if first is None else first.deadline

    def ended(self) -> None:
        """The handler's thread ends. [EVQ-17]"""
        try:
            self.clean_up()
        except Exception:  # there is nobody left to tell
            return
