"""What every command prints with: tables and JSON on standard output, progress and errors on standard error.

A reader that goes away (`kafkaspec ... | head`) ends the command quietly, as it ends any other.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

BROKEN_PIPE = 141
"""128 + SIGPIPE, what a shell reports for a program whose reader went away."""
PATIENCE_S = 2.0
"""A progress bar appears when an engine has worked for so long."""


def reader_gone() -> NoReturn:
    """End quietly: nobody reads what we print."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(BROKEN_PIPE)


def console(stderr: bool = False) -> Console:
    """A terminal of the width it has; 120 columns where there is none (a file, a pipe)."""
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:
            reader_gone()

    stream = sys.stderr if stderr else sys.stdout
    wide = None if stream.isatty() or "COLUMNS" in os.environ else 120
    return Ours(stderr=stderr, width=wide, highlight=False, soft_wrap=False)


def show(*what: RenderableType) -> None:
    """Print for people. Text is left to the terminal to wrap, so that what is copied from it is whole."""
    from rich.text import Text

    out = console()
    for x in what:
        out.print(x, soft_wrap=isinstance(x, Text))


def show_json(value: Any) -> None:
    """Print for machines: one JSON document, keys in the order of the result's fields."""
    import orjson

    try:
        sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS) + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        reader_gone()


class Progress:
    """What engines call as they go: `progress(done, total, text)`; `total` None where nobody can know it.

    Shows a bar on standard error, if that is a terminal, once the engine has worked for two seconds.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = time.monotonic()
        self._bars: Bars | None = None
        self._task: TaskID | None = None
        self._wanted = sys.stderr.isatty()

    def __call__(self, done: float, total: float | None = None, text: str = "") -> None:
        if not self._wanted or (self._bars is None and time.monotonic() - self._started < PATIENCE_S):
            return
        if self._bars is None:
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bars

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bars = Bars(*columns, console=console(stderr=True), transient=True)
            self._bars.start()
            self._task = self._bars.add_task(self._what)
        assert self._task is not None
        description = f"{self._what} {text}".rstrip()
        self._bars.update(self._task, completed=done, total=total, description=description)

    def close(self) -> None:
        """Take the bar away."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """A progress bar for the time of one engine's run."""
    bar = Progress(what)
    try:
        yield bar
    finally:
        bar.close()
