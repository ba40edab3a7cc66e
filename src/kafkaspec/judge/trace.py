"""The lines of a trace: read within limits, whatever the file is."""

from __future__ import annotations

import codecs
import gzip
import io
import itertools
import math
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO, Final

import orjson

from kafkaspec.contract import history
from kafkaspec.contract.machine import Json
from kafkaspec.errors import UserError

MAX_LINE_BYTES: Final = 16 << 20
"""A longer line is not read; nor is a longer history in text."""
LONG_LINE_BYTES: Final = 64 << 10
"""Before a longer line the check looks whether it may go on."""
MAX_DEPTH: Final = 100
"""A line that is nested deeper is not read."""
MAX_UNPACKED: Final = 200
"""A file that unpacks to more than `MAX_UNPACKED` times its size, and more than `FREE_BYTES`, is not read."""
FREE_BYTES: Final = 64 << 20


_TEXT_OR_NUMBER: Final = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?', re.DOTALL
)


class UnreadError(UserError):
    """The rest of a recording is not read, and why."""


def parsed(line: bytes, name: str, number: int) -> Any:
    """A line's JSON object; None for a blank line. UserError for what is none or too long, with file and line."""
    if len(line) > MAX_LINE_BYTES:
        raise UserError(f"{name}:{number}: longer than {MAX_LINE_BYTES >> 20} MiB")
    try:
        record = _loaded(line)
    except orjson.JSONDecodeError as e:
        if not line.strip():
            return None
        what = f"not JSON: {e.msg} at column {e.colno}"
        if "depth limit" in e.msg or "ecursion" in e.msg:  # as its version says it
            what = f"nested deeper than {MAX_DEPTH} levels"
        try:
            line.decode()
        except UnicodeDecodeError as broken:
            what = f"not UTF-8 text (byte {broken.start} of the line)"
        raise UserError(f"{name}:{number}: {what}") from None
    if not isinstance(record, dict):
        what = "null" if record is None else type(record).__name__
        raise UserError(f"{name}:{number}: expected a JSON object, not {what}")
    return record


def _loaded(line: bytes) -> Any:
    """A line's JSON. Numbers beyond all doubles are JSON too: the largest power of ten stands in their place, which
    fits no type either that a smaller number beyond 64 bits does not."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as e:
        if "infinity" not in e.msg:  # as its version says it
            raise
    return orjson.loads(_within_doubles(line))


def _within_doubles(line: bytes) -> bytearray:
    """The line with as many bytes of a smaller number for each that is beyond: an error tells the column."""
    out = bytearray(line)
    for found in _TEXT_OR_NUMBER.finditer(line):
        token = found[0]
        if not token.startswith(b'"') and math.isinf(float(token)):
            out[slice(*found.span())] = (b"-1e308" if token.startswith(b"-") else b"1e308").ljust(len(token))
    return out


def is_deep(value: Json) -> bool:
    """Whether it is nested deeper than a line may be."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH - 1):
        level = [c for v in level for c in (v.values() if isinstance(v, dict) else v) if isinstance(c, (dict, list))]
        if not level:
            return False
    return any(level)


class CountingReader(io.RawIOBase):
    """Bytes that are read, counted. `packed` are those that they are unpacked from: there may not be too many more."""

    def __init__(self, source: Any, packed: CountingReader | None = None) -> None:
        self.source = source
        self.packed = packed
        self.bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n: int = self.source.readinto(buffer) or 0
        self.bytes += n
        if self.packed is not None and self.bytes > max(FREE_BYTES, MAX_UNPACKED * self.packed.bytes):
            raise UnreadError(f"the file unpacks to more than {MAX_UNPACKED} times its size")
        return n


def opened(raw: CountingReader, name: str, suffix: str) -> Iterable[bytes]:
    """The lines of a file of that suffix, of which a long one is cut after `MAX_LINE_BYTES`."""
    if suffix == ".history":
        text = io.BufferedReader(raw).read(MAX_LINE_BYTES + 1)
        if len(text) > MAX_LINE_BYTES:
            raise UserError(f"{name}: a history in text longer than {MAX_LINE_BYTES >> 20} MiB is not read")
        return numbered_lines(text, name)
    if suffix == ".gz":
        raw = CountingReader(gzip.GzipFile(fileobj=io.BufferedReader(raw)), raw)
    return lines_of(io.BufferedReader(raw, 1 << 16))


def lines_of(stream: io.BufferedIOBase | BinaryIO) -> Iterator[bytes]:
    """The lines of a stream, of which a long one is cut after `MAX_LINE_BYTES`; a mark of UTF-8 before them is none."""
    first = stream.readline(MAX_LINE_BYTES + 1)
    return itertools.chain(
        [first.removeprefix(codecs.BOM_UTF8)] if first else [],
        iter(partial(stream.readline, MAX_LINE_BYTES + 1), b""),
    )


def numbered_lines(text: bytes, name: str) -> Iterator[bytes]:
    """A history's calls as NDJSON, each on the line where the text has it."""
    try:
        records = history.numbered(text.removeprefix(codecs.BOM_UTF8).decode(), name)
    except UnicodeDecodeError as e:
        raise UserError(f"{name}: not UTF-8 text (byte {e.start})") from None
    at = 1
    for number, record in records:
        if is_deep(record):
            raise UserError(f"{name}:{number}: nested deeper than {MAX_DEPTH} levels")
        yield from itertools.repeat(b"", number - at)
        yield orjson.dumps(record)
        at = number + 1


def json_text(value: Json) -> bytes:
    """A value as JSON."""
    return orjson.dumps(value, default=float, option=orjson.OPT_NON_STR_KEYS)
