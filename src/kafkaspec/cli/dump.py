"""`kafkaspec dump`: Kafka's files, for people or as JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import orjson

from kafkaspec.cli.output import harmless, promise, say, show_json_line, unjudged
from kafkaspec.dump.engine import dumped
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import printable

SOUND, DAMAGED, UNREADABLE = 0, 1, 2


def run(paths: Sequence[Path], *, offset: int | None, records: bool, json: bool) -> int:
    """Dump files one after another. Exit status 0 sound, 1 something is damaged or cut, 2 a file cannot be read."""
    promise(document=False)  # lines are none
    worst = SOUND
    for path in paths:
        try:
            worst = max(worst, _dump(path, offset, records, json))
        except UserError as e:
            sys.stdout.flush()
            error = UserError(printable(str(e)), e.exit_code)
            say(error)
            if json:
                show_json_line(unjudged(str(path), error))
            worst = UNREADABLE
    return worst


def _dump(path: Path, offset: int | None, records: bool, json: bool) -> int:
    lines, worst = dumped(path, offset=offset, records=records), SOUND
    if not json:
        print(printable(str(path)))
    for line in lines:
        worst = DAMAGED if line.bad else worst
        said = orjson.dumps({"file": printable(str(path)), **line.fields}).decode() if json else harmless(line.text)
        sys.stdout.write(f"{said}\n")
    return worst
