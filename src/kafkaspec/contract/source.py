"""Texts of Python that somebody else wrote, read and not run. What is none is a UserError, with file and line."""

from __future__ import annotations

import ast
import importlib.util
import tokenize
from contextlib import suppress
from io import StringIO

from kafkaspec.errors import UserError


def decoded(data: bytes, name: str) -> str:
    """The text that a file holds, in the encoding that it names, or UTF-8; `name` is the file's."""

    def error(at: int, what: str) -> UserError:
        line = data.count(b"\n", 0, at) + 1
        return UserError(f"{name}:{line}: {what}")

    if b"\0" in data:
        raise error(data.index(b"\0"), "a NUL byte, which no text of Python has")
    try:
        return importlib.util.decode_source(data)
    except UnicodeDecodeError as e:
        raise error(e.start, f"byte 0x{data[e.start]:02x} is no text in {e.encoding}") from None
    except SyntaxError as e:  # of the encoding, which the first two lines may name
        raise error(0, e.msg) from None


def tree_of(text: str, name: str) -> ast.Module:
    """The syntax tree of a text; `name` is its file's."""
    try:
        return ast.parse(text, name)
    except SyntaxError as e:
        raise UserError(f"{name}" + (f":{e.lineno}" if e.lineno is not None else "") + f": {e.msg}") from None
    except (RecursionError, MemoryError):
        raise UserError(f"{name}:{_longest(text)}: nested too deeply to be read") from None


def _longest(text: str) -> int:
    """Where the statement of most words begins, as a line."""
    line, most, words, first = 1, 0, 0, 1
    with suppress(tokenize.TokenError, SyntaxError):  # of what comes later: it was not read so far
        for token in tokenize.generate_tokens(StringIO(text).readline):
            first = token.start[0] if not words else first
            words += 1
            if token.type == tokenize.NEWLINE:
                line, most = (first, words) if words > most else (line, most)
                words = 0
    return line
