"""Work in processes of their own. One that ends before it has answered, as by exit or a signal, ends nothing else: what
was under way in it is known, and another process takes the rest.

multiprocessing's Pool waits without end for a process that is gone; concurrent.futures does not say what it was at, and
Ctrl-C waits for all that is under way.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext
from typing import Any, Final, Generic, TypeVar

Task = TypeVar("Task")
Answer = TypeVar("Answer")
ENDING_S: Final = 5.0
"""How long a process that has hung up may take to end."""


class _Worker(Generic[Task, Answer]):
    """One process, with one task at a time."""

    def __init__(self, context: ForkServerContext, do: Callable[[Task], Answer]) -> None:
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(do, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def begin(self, task: Task) -> None:
        self.task = task
        with suppress(OSError):  # it has ended already, which is seen when its answer is waited for
            self.connection.send(task)

    def answer(self) -> tuple[Answer] | None:
        """What it answered; None if it has ended instead."""
        with suppress(EOFError, OSError):
            if self.connection.poll():
                answer: Answer = self.connection.recv()
                return (answer,)
        return None

    def ended(self) -> str:
        """How it ended."""
        self.process.join(ENDING_S)
        code = self.process.exitcode
        if code is None:
            return "hung up"
        if code >= 0:
            return f"ended with status {code}"
        killed = f"was ended by {signal.Signals(-code).name}"
        return killed + (", as where memory runs out" if -code == signal.SIGKILL else "")

    def stop(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.join(ENDING_S)
        self.process.kill()  # what it runs may not listen
        self.process.join()


def _work(do: Callable[[Any], Any], connection: Connection) -> None:
    """What a worker does, until nobody has a task for it. Ctrl-C is its parent's, who stops it. Cycles are looked for
    seldom, as in `few_collections`."""
    from kafkaspec.lockstep.walk import YOUNG

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(YOUNG)
    with suppress(KeyboardInterrupt):  # of an engine that listens for Ctrl-C itself
        while True:
            try:
                task = connection.recv()
            except (EOFError, OSError):
                return
            answer = do(task)
            with suppress(BrokenPipeError):
                connection.send(answer)


def each(
    do: Callable[[Task], Answer], tasks: Sequence[Task], jobs: int, ended: Callable[[Task, str], Answer]
) -> Iterator[Answer]:
    """What `do` answers to each task, as they are ready, from `jobs` processes. Of a task whose process has ended there
    is what `ended` says of it, and of how it ended."""
    context = multiprocessing.get_context("forkserver")
    left = deque(tasks)
    workers: list[_Worker[Task, Answer]] = []
    try:
        while left or workers:
            while left and len(workers) < jobs:
                workers.append(_Worker(context, do))
                workers[-1].begin(left.popleft())
            ready = {*wait([x for w in workers for x in (w.connection, w.process.sentinel)])}
            for w in [w for w in workers if ready & {w.connection, w.process.sentinel}]:
                answer = w.answer()
                if answer is None:
                    answer = (ended(w.task, w.ended()),)
                elif left:
                    w.begin(left.popleft())
                    yield answer[0]
                    continue
                workers.remove(w)
                w.stop()
                yield answer[0]
    finally:
        for w in workers:
            w.stop()
