"""The commands that run one engine: names resolved, engine called, result printed, exit status returned."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkaspec.cli import names
from kafkaspec.cli.output import progress, show, show_json
from kafkaspec.errors import UserError, unknown

if TYPE_CHECKING:
    from kafkaspec.judge.check import Verdict
    from kafkaspec.subsystem import Subsystem

LOOKED_AT_LINES = 200
"""How many lines of a recording are looked at to tell whose it is."""


# ---- check -----------------------------------------------------------------------------------------------------------
def check(traces: list[str], *, subsystem: str | None, strict: bool, html: Path | None, json: bool) -> int:
    """Judge each trace. 0 if all are accepted, else 1 if one is rejected, else 2."""
    from kafkaspec import subsystem as subsystems

    wanted = subsystems.find(subsystem) if subsystem is not None else None
    verdicts = [_judge(t, wanted, strict) for t in traces]
    if json:
        show_json(verdicts)
    else:
        from kafkaspec import report

        for v in verdicts:
            show(report.verdict_table(v))
    if html is not None:
        from kafkaspec import report

        _write(html, report.html(*verdicts, title="Recorded traces, judged"))
    codes = [v.exit_code for v in verdicts]
    return 1 if 1 in codes else max(codes)


def _judge(trace: str, wanted: Subsystem | None, strict: bool) -> Verdict:
    from kafkaspec.judge.check import check as judge

    if trace == "-":
        lines: Iterable[bytes] = sys.stdin.buffer
        if wanted is None:
            first = list(itertools.islice(lines, LOOKED_AT_LINES))
            wanted = guess("standard input", first)
            lines = itertools.chain(first, lines)
        return judge(wanted.spec.machine, lines, name="standard input", strict=strict)
    path = Path(trace)
    names.check_readable(path)
    if path.stat().st_size == 0:
        raise UserError(f"{path}: is empty")
    if wanted is None:
        wanted = guess(path.name, _first_lines(path))
    with progress(path.name) as bar:
        return judge(wanted.spec.machine, path, strict=strict, progress=bar)


def _first_lines(path: Path) -> list[bytes]:
    import gzip

    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as f:
            return list(itertools.islice(f, LOOKED_AT_LINES))
    except (OSError, EOFError) as e:
        raise UserError(f"{path}: cannot read: {e}") from None


def guess(name: str, lines: Iterable[bytes]) -> Subsystem:
    """The subsystem whose operations a recording calls; the file's name decides between several.

    Raises UserError: no subsystem knows the operations, or more than one and the name does not tell.
    """
    from kafkaspec.subsystem import subsystems

    called = set(_operations(name, lines))
    knowing = {n: s for n, s in subsystems().items() if called and called <= s.spec.machine.operations.keys()}
    named = [n for n in subsystems() if n in re.split(r"[^a-z0-9]+", name.lower())]
    choice = [n for n in named if n in knowing] or list(knowing) or named
    if len(choice) == 1:
        return subsystems()[choice[0]]
    wanted = f"one of {', '.join(choice)}" if choice else "none of the subsystems knows its operations"
    raise UserError(f"{name}: whose recording is it? {wanted}: say --subsystem ({', '.join(subsystems())})")


def _operations(name: str, lines: Iterable[bytes]) -> Iterator[str]:
    import orjson

    if name.endswith(".history"):
        for line in lines:
            word = line.split(None, 1)[0].decode("utf-8", "replace") if line.strip() else "#"
            if word[0] not in "#?" and not line[:1].isspace() and word != "init":
                yield word
        return
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as e:
            raise UserError(f"{name}:{number}: not JSON: {e.msg} at column {e.colno}") from None
        op = record.get("op") if isinstance(record, dict) else None
        if isinstance(op, str) and op != "init":
            yield op


# ---- what they share -------------------------------------------------------------------------------------------------
def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as e:
        raise UserError(f"{path}: cannot be written: {(e.strerror or str(e)).lower()}") from None
    print(f"written: {path}", file=sys.stderr)


def _one_of(kind: str, name: str, known: Iterable[str]) -> str:
    known = list(known)
    if name not in known:
        raise unknown(kind, name, known)
    return name


def _unused() -> Any: ...
