"""What every command prints with: tables and JSON on standard output, progress and errors on standard error.

A reader that goes away (`kafkaspec ... | head`) ends the command quietly, as it ends any other.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from kafkaspec.errors import ErrorReport, SignalledError, UserError, unwritten
from kafkaspec.impl.common.files import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

BROKEN_PIPE = 141
"""128 + SIGPIPE, what a shell reports for a program whose reader went away."""
PATIENCE_S = 2.0
"""A progress bar appears when an engine has worked for so long."""


@contextmanager
def interrupted_by(*numbers: int) -> Iterator[None]:
    """These signals raise KeyboardInterrupt; SIGINT too where a shell has begun the command in the background, which
    would not hear it else. SIGHUP does not where it is ignored, as `nohup` has it."""
    before = {
        number: signal.signal(number, signal.default_int_handler)
        for number in numbers
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def reader_gone() -> NoReturn:
    """End quietly: nobody reads what we print."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SignalledError(BROKEN_PIPE)


def console(stderr: bool = False) -> Console:
    """A terminal of the width it has; 120 columns where there is none (a file, a pipe)."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    wide = None if stream.isatty() or "COLUMNS" in os.environ else 120
    return Console(stderr=stderr, width=wide, highlight=False, soft_wrap=False)


def harmless(text: str) -> str:
    """The text, in lines, without what a terminal obeys: of a file's name or of data that is shown as escapes."""
    return printable(text, but="\n\t")


def show(*what: RenderableType) -> None:
    """Print for people. Text is left to the terminal to wrap, so that what is copied from it is whole."""
    from rich.console import ConsoleOptions, RenderResult
    from rich.segment import Segment
    from rich.text import Text

    class Harmless:
        """What is printed, with no control character but its own styles."""

        def __init__(self, x: RenderableType) -> None:
            self.x = x

        def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
            for segment in out.render(self.x, options):
                yield Segment(harmless(segment.text), segment.style, segment.control)

    out = console()
    with out.capture() as printed:
        for x in what:
            out.print(Harmless(x), soft_wrap=isinstance(x, Text), crop=False)
    _print(printed.get() if out.is_terminal else "".join(f"{line.rstrip()}\n" for line in printed.get().splitlines()))


def _print(text: str) -> None:
    promise(document=False)
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        reader_gone()


def say(error: UserError) -> int:
    """An error that does not end the command: its line on standard error; its exit status is returned."""
    print(f"kafkaspec: {_line(error)}", file=sys.stderr)
    return error.exit_code


def _line(error: UserError) -> str:
    return printable(" ".join(str(error).split()))


def unjudged(source: str, error: UserError) -> ErrorReport:
    """What a JSON document says in the place of the result that an error has cost."""
    return ErrorReport(printable(source), "could not judge", (_line(error),))


_document_due = False


def promise(document: bool) -> None:
    """As the command begins: whether it has to print a JSON document, whatever happens."""
    global _document_due
    _document_due = document


def end(error: UserError) -> int:
    """An error that ends the command: its line on standard error, and a JSON document, if one is due and nothing was
    printed. Its exit status is returned."""
    code = say(error)
    if _document_due:
        tell([unjudged("", error)], json=True)
    return code


def tell(
    results: Sequence[Any],
    *,
    json: bool,
    html: Path | None = None,
    title: str = "kafkaspec",
    together: bool = False,
) -> None:
    """Print results as tables, or as one JSON list; and write them as a page. `together`: as rows of one table. Only
    JSON has the ErrorReports among them: their lines are on standard error."""
    from kafkaspec.report.json import to_json
    from kafkaspec.report.table import table

    had = [r for r in results if not isinstance(r, ErrorReport)]
    if json:
        show_json([to_json(r) for r in results])
    elif had:
        show(table(had) if together else table(*had))
    if html is not None and had:
        from kafkaspec.report.html import html as page

        write(html, page(*([had] if together else had), title=title))


def show_json(value: Any) -> None:
    """Print one JSON document, keys in the order of the result's fields."""
    import orjson

    _print(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode() + "\n")


def show_json_line(result: Any) -> None:
    """Print a result as one line of JSON."""
    import orjson

    from kafkaspec.report.json import to_json

    _print(orjson.dumps(to_json(result), option=orjson.OPT_NON_STR_KEYS).decode() + "\n")


def check_writable(path: Path) -> None:
    """UserError unless a file can be written there, its folders made if need be. Nothing is written."""
    there = next(p for p in (path, *path.absolute().parents) if p.exists())
    if there == path and path.is_dir():
        raise UserError(f"{path}: cannot be written: is a directory")
    if there != path and not there.is_dir():
        raise UserError(f"{path}: cannot be written: {there} is not a directory")
    if not os.access(there, os.W_OK):
        raise UserError(f"{path}: cannot be written: permission denied")


def write(path: Path, text: str) -> Path:
    """Write a file, and say so on standard error. Raises UserError when it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as e:
        raise unwritten(path, e) from None
    print(harmless(f"written: {path}"), file=sys.stderr)
    return path


def keep(path: Path, text: str) -> str:
    """Write a file that goes with a verdict, which is told all the same where it cannot be written. Its name; "" if it
    is not there."""
    try:
        return str(write(path, text))
    except UserError as e:
        not_kept(str(e))
        return ""


def not_kept(*why: str) -> None:
    """Say on standard error what could not be written, a line each."""
    for line in why:
        print(f"not kept: {printable(line)}", file=sys.stderr)


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
