"""`kafkaspec explain SUBSYSTEM`: its rules, and what a target of the judge must know of it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

import orjson

from kafkaspec.cli.output import show, show_json
from kafkaspec.contract.subsystem import Subsystem
from kafkaspec.judge.interface import Told, interface

WIDTH = 100


def run(subsystem: Subsystem, *, json: bool) -> int:
    """Print it, as JSON where that is wanted."""
    told = interface(subsystem)
    if json:
        show_json(told)
    else:
        from rich.text import Text

        show(*(Text(line, style="" if line.startswith(" ") else "bold") for line in _lines(told)))
    return 0


def _lines(told: Told) -> Iterator[str]:
    yield f"{told['subsystem']}: {told['title']}"
    yield ""
    yield "rules"
    for rule in told["rules"]:
        yield from _wrapped(f"{rule['id']:8}{rule['sentence']}", 2, 10)
    if "operations" not in told:
        return
    yield ""
    yield "configuration, the arguments of init"
    for p in told["configuration"]:
        yield from _wrapped(_said(p), 2, 4)
    if not told["configuration"]:
        yield "  none"
    yield ""
    yield "operations"
    for op in told["operations"]:
        yield from _about(op)
    yield "the first state, with the defaults of the configuration"
    yield "  none is shown" if told["first"] is None else f"  {_short(told['first'])}"
    for record in told["records"]:
        yield ""
        yield record["name"]
        for f in record["fields"]:
            yield from _wrapped(
                f"{f['name']}{'' if f['needed'] else ' ?'}: {f['type']}. {f['what']}".rstrip(" ."), 2, 6
            )


def _about(op: Told) -> Iterator[str]:
    yield f"  {op['name']}" + ("" if op["kind"] == "call" else f" ({op['kind']})")
    yield from _wrapped(op["what"], 4, 4)
    for p in op["arguments"]:
        yield from _wrapped(_said(p), 4, 6)
    for name in op["chosen"]:
        yield f"    {name}: the target's own choice"
    yield from _wrapped(f"-> {op['result']}", 4, 6)
    for text in op["askedIf"]:
        yield from _wrapped(f"asked only if: {text}", 4, 6)
    for n, r in enumerate(op["refusals"]):
        turn = "" if n == 0 else "then " if r["later"] else "or "
        yield f"    refused: {turn}{r['error']}, {r['clause']}"
    if op["before"] is not None:
        yield f"    before   {_short(op['before'])}"
    if op["example"] is not None:
        yield f"    example  {_short(op['example'])}"
    yield ""


def _said(p: Told) -> str:
    return f"{p['name']}: {p['type']}" + (f" ({json.dumps(p['default'])} if left out)" if "default" in p else "")


def _short(value: Any) -> str:
    text = orjson.dumps(value, default=float).decode()
    return text if len(text) <= 400 else f"{text[:399]}…"


def _wrapped(text: str, first: int, others: int) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=" " * first, subsequent_indent=" " * others, break_long_words=False
    )
