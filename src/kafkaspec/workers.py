"""Work in processes of their own. One that ends before it has answered, as by exit or a signal, ends nothing else: what
was under way in it is known, and another process takes the rest.

multiprocessing's Pool waits without end for a process that is gone; concurrent.futures does not say what it was at, and
Ctrl-C waits for all that is under way.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Final, Literal, TypeVar

Task = TypeVar("Task")
Answer = TypeVar("Answer")
Say = Callable[[Any], None]
"""What a task says on its way, before it answers."""
Start = Literal["fork", "forkserver"]
"""How a process begins: as a copy of this one, with all that it has imported and compiled; or with nothing."""
START: Final[Start] = "fork" if sys.platform == "linux" else "forkserver"
"""A copy has everything at once. Elsewhere the system's libraries may not bear a copy."""
ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end the program."""
_NONE: Final[Any] = object()
ENDING_S: Final = 5.0
"""How long a process that has hung up may take to end."""
YOUNG: Final = 100_000
"""How many new objects there are before Python looks for cycles, where few are expected."""


@contextmanager
def few_collections() -> Iterator[None]:
    """Within this context Python seldom looks for cycles: states, records and observations make none."""
    young, *older = gc.get_threshold()
    if young:  # 0: it never looks
        gc.set_threshold(max(young, YOUNG), *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)


def cores() -> int:
    """The processor's cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker:
    """One process, with one task at a time."""

    def __init__(self, do: Callable[[Any, Say], Any], start: Start) -> None:
        fork = start == "fork"
        context = multiprocessing.get_context("fork") if fork else multiprocessing.get_context("forkserver")
        self.connection, theirs = context.Pipe()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # until it has handlers of its own
        try:
            arguments = (do, theirs, self.connection, before)
            self.process = context.Process(target=_work, args=arguments, daemon=True)
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()

    def begin(self, task: Any) -> None:
        self.task = task
        with suppress(OSError):  # it has ended already, which is seen when its answer is waited for
            self.connection.send(task)

    def heard(self) -> tuple[str, Any]:
        """What it says, answers or raises; how it ended, if it has."""
        with suppress(EOFError, OSError):
            if self.connection.poll():
                message: tuple[str, Any] = self.connection.recv()
                return message
        return "ended", self.ended()

    def ended(self) -> str:
        self.process.join(ENDING_S)
        code = self.process.exitcode
        if code is None:
            return "hung up"
        if code >= 0:
            return f"ended with status {code}"
        killed = f"was ended by {signal.Signals(-code).name}"
        return killed + (", as where memory runs out" if -code == signal.SIGKILL else "")

    def hang_up(self) -> None:
        self.process.terminate()
        self.connection.close()

    def gone(self) -> None:
        self.process.join(ENDING_S)
        self.process.kill()  # what it runs may not listen
        self.process.join()

    def stop(self) -> None:
        self.hang_up()
        self.gone()


def _work(do: Callable[[Any, Say], Any], connection: Connection, ours: Connection, mask: set[signal.Signals]) -> None:
    """What a worker does, until nobody has a task for it. Ctrl-C is its parent's, who stops it. `ours` is the parent's
    end, which a copy of the parent has too: while that is open nobody notices that the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end(_: int, __: object) -> None:
        """At once: an exception would be lost where it is raised in a callback of the garbage collector."""
        for again in (signal.SIGTERM, signal.SIGHUP):  # what tidies up is not disturbed in it
            signal.signal(again, signal.SIG_IGN)
        if tidy is not None:
            tidy.__exit__(None, None, None)
        os._exit(0)

    tidy = do if isinstance(do, AbstractContextManager) else None
    for number in (signal.SIGTERM, signal.SIGHUP):  # a copy of the parent would tidy up what is the parent's
        signal.signal(number, signal.SIG_DFL if tidy is None else end)
    ours.close()

    def say(what: Any) -> None:
        with suppress(BrokenPipeError):
            connection.send(("said", what))

    # The interrupt is of an engine that listens for Ctrl-C itself.
    with suppress(KeyboardInterrupt), tidy or nullcontext():
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        while True:
            try:
                task = connection.recv()
            except (EOFError, OSError):
                return
            try:
                message = "answered", do(task, say)
            except Exception as e:
                message = "raised", e
            with suppress(BrokenPipeError):
                connection.send(message)


def each(
    do: Callable[[Task, Say], Answer],
    tasks: Iterable[Task],
    jobs: int,
    ended: Callable[[Task, str], Answer],
    *,
    hear: Say | None = None,
    start: Start = "forkserver",
) -> Generator[Answer]:
    """What `do` answers to each task, as they are ready, from at most `jobs` processes. Of a task whose process has
    ended there is what `ended` says of it, and of how it ended. `hear` is called with what tasks say meanwhile. An
    exception of `do` is raised here, and ends all. A task is taken from `tasks` when a process is free for it. If `do`
    is a context manager, each process enters it at its beginning and leaves it at its end."""
    left = iter(tasks)
    workers = list[_Worker]()
    try:
        while True:
            while len(workers) < jobs and (task := next(left, _NONE)) is not _NONE:
                workers.append(_Worker(do, start))
                workers[-1].begin(task)
            if not workers:
                return
            ready = {*wait([x for w in workers for x in (w.connection, w.process.sentinel)])}
            for w in [w for w in workers if ready & {w.connection, w.process.sentinel}]:
                match w.heard():
                    case "said", what:
                        if hear is not None:
                            hear(what)
                    case "raised", error:
                        raise error
                    case "answered", answer:
                        if (task := next(left, _NONE)) is not _NONE:
                            w.begin(task)
                        else:
                            workers.remove(w)
                            w.stop()
                        yield answer
                    case _, how:
                        workers.remove(w)
                        w.stop()
                        yield ended(w.task, how)
    finally:
        for w in workers:
            w.hang_up()
        for w in workers:
            w.gone()
