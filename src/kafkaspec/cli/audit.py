"""`kafkaspec audit`: check what brokers left on disk, or what a live one writes, and tell it."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kafkaspec.cli.output import Progress, interrupted_by, progress, show_json_line, tell
from kafkaspec.errors import UserError
from kafkaspec.workers import cores

if TYPE_CHECKING:
    from kafkaspec.audit.engine import Audit, Fan
    from kafkaspec.audit.watch import AuditChange, Watch

MB = 1_000_000


def run(
    paths: Sequence[Path],
    *,
    master: str | None,
    threads: int | None,
    html: Path | None,
    everything: bool,
    json: bool,
) -> int:
    """Audit the paths, on this machine or on a Spark master. 0 sound, 1 findings, 2 could not judge. What could not be
    read at all is an error; with `json` it is a document too. `everything`: every finding is told."""
    from kafkaspec.audit.engine import unread
    from kafkaspec.audit.watch import settled
    from kafkaspec.impl.common.files import printable

    try:
        with _fan(master, threads) as fan, progress("audit") as bar:
            result = settled(paths, fan=fan, progress=Rate(bar))
    except UserError as e:
        if json:
            tell([unread(paths, str(e))], json=True)
        raise UserError(printable(str(e)), e.exit_code) from None
    result = replace(result, everything=everything)
    tell([result], json=json, html=html, title=printable(f"audit {' '.join(map(str, paths))}"))
    return result.exit_code


def watch(
    paths: Sequence[Path],
    *,
    every_s: float,
    master: str | None,
    threads: int | None,
    everything: bool,
    json: bool,
) -> int:
    """Audit the paths again and again until SIGINT, SIGTERM or SIGHUP: all is told first, then what has changed; with
    `json` a line each. The exit status is that of the last look that was told."""
    from kafkaspec.audit.engine import unread
    from kafkaspec.audit.watch import Watch
    from kafkaspec.impl.common.files import printable

    def told(what: Audit | AuditChange) -> None:
        what = replace(what, everything=everything)
        if json:
            show_json_line(what)
        else:
            tell([what], json=False)

    looking = None
    try:
        with interrupted_by(signal.SIGINT, signal.SIGTERM, signal.SIGHUP), _fan(master, threads) as fan:
            looking = Watch(paths, fan=fan)
            told(_look(looking))
            while True:
                time.sleep(every_s)
                if change := _look(looking):
                    told(change)
    except KeyboardInterrupt:
        if looking is None or looking.last is None:
            raise
        return looking.last.exit_code
    except UserError as e:
        if json:
            show_json_line(unread(paths, str(e)))
        raise UserError(printable(str(e)), e.exit_code) from None


def _look(watch: Watch) -> Audit | AuditChange:
    with progress("audit") as bar:
        watch.progress = Rate(bar)
        return watch.first() if watch.last is None else watch.again()


@contextmanager
def _fan(master: str | None, threads: int | None) -> Iterator[Fan]:
    """How logs are audited: on that number of this machine's cores (all, if none is given), or on a Spark master."""
    if master is None:
        from kafkaspec.audit.parallel import over

        yield over(cores() if threads is None else threads)
        return
    from kafkaspec.fleet.audit import on
    from kafkaspec.fleet.session import session

    with session(master) as spark:
        yield on(spark)


class Rate:
    """Progress in bytes, shown with the rates and the time left."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._started = time.monotonic()

    def __call__(self, done: float, total: float | None, records: int) -> None:
        seconds = max(time.monotonic() - self._started, 1e-3)
        text = f"{done / MB / seconds:,.0f} MB/s, {records / seconds:,.0f} records/s"
        if total and done:
            left = max(0, int(seconds * (total - done) / done))
            text += f", {left // 60}:{left % 60:02} left; MB"
        self._bar(int(done / MB), None if total is None else max(1, int(total / MB)), text)
