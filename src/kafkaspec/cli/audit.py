"""`kafkaspec audit`: judge what brokers left on disk, and tell it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kafkaspec.cli.output import Progress, progress, tell
from kafkaspec.errors import UserError

if TYPE_CHECKING:
    from kafkaspec.audit.engine import Audit

MB = 1_000_000


def run(paths: Sequence[Path], *, master: str | None, html: Path | None, everything: bool, json: bool) -> int:
    """Audit the paths, in this process or on a Spark master. 0 sound, 1 findings, 2 could not judge. What could not be
    read at all is an error; with `json` it is a document too. `everything`: every finding is told."""
    from kafkaspec.audit.engine import unread
    from kafkaspec.impl.common.files import printable

    try:
        result = _audited(paths, master)
    except UserError as e:
        if json:
            tell([unread(paths, str(e))], json=True)
        raise UserError(printable(str(e)), e.exit_code) from None
    result = replace(result, everything=everything)
    tell([result], json=json, html=html, title=printable(f"audit {' '.join(map(str, paths))}"))
    return result.exit_code


def _audited(paths: Sequence[Path], master: str | None) -> Audit:
    from kafkaspec.audit.engine import audit

    with progress("audit") as bar:
        if master is None:
            return audit(paths, progress=Rate(bar))
        from kafkaspec.fleet.audit import on
        from kafkaspec.fleet.session import session

        with session(master) as spark:
            return audit(paths, fan=on(spark), progress=Rate(bar))


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
