"""A history as text that reads as a conversation and replays: one line an operation with its answer.

    # found by lockstep, seed 7
    init long=0
    map.put key=1 value=2 -> null
    getOrCreateSnapshot epoch=3 -> 3
    map.put key=1 value=null !! java.lang.NullPointerException
    map.get key=1 epoch=9 !! java.lang.RuntimeException: "No in-memory snapshot for epoch 9"
      state {"epochs":[3],"at":{"3":{"size":1}}}
    deleteSnapshot epoch=3 -> null
      state.epochs = []
      state.at["3"] gone

After `->` stands the result, after `!!` the exception's class and, where it matters, its message. Below it stands the
state that was seen after the call, or parts of it: each by the keys that lead to it, with what stood there, or that
nothing did. What is left out (an argument, the answer, the state or other parts of it, or the operation itself or an
exception's class, written `?`) was not recorded. Values are JSON. The same history is NDJSON by `ndjson`, in the form
of recorded traces, and `kafkaspec check` reads both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kafkaspec.contract.machine import Json, Refused
from kafkaspec.errors import UserError

Record = dict[str, Any]
"""One line of a trace: op, args, and result or error {class, message}, and state or parts of it; by the names of the
recordings. A part is [keys, value], or [keys] where nothing is."""


@dataclass(frozen=True)
class History:
    """Calls and answers in order. Of a failure `why` says in plain lines what is wrong, `clause` by which rule, and
    `shape` what differs, without the values that vary: failures alike in clause, last operation and shape are one."""

    records: tuple[Record, ...]
    why: str = ""
    clause: str = ""
    shape: str = ""

    def __str__(self) -> str:
        """The text, with `why` as its head."""
        return to_text(self)

    def ndjson(self) -> bytes:
        """The same as a recorded trace, one JSON line a call, numbered."""
        return b"".join(orjson.dumps({"i": i, **r}) + b"\n" for i, r in enumerate(self.records))


LONGEST: Final = 400
"""Characters of a call or an answer that are told."""


def cut(text: str, most: int = LONGEST) -> str:
    """The text, or its beginning and how long it is.

    >>> cut("abc"), cut("abcdef", 3)
    ('abc', 'abc... (6 characters)')
    """
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def outcome(result: Json | Refused) -> Record:
    """A result or a refusal as the fields of a trace line.

    >>> outcome(Refused("TML-9", "java.lang.NullPointerException"))
    {'error': {'class': 'java.lang.NullPointerException'}}
    """
    if not isinstance(result, Refused):
        return {"result": result}
    error = {"class": result.error}
    return {"error": error if result.message is None else {**error, "message": result.message}}


def _json(value: Json) -> str:
    return orjson.dumps(value, default=float).decode()


def call_text(op: str, arguments: Mapping[str, Json]) -> str:
    """One call, as a history prints it.

    >>> call_text("map.put", {"key": 1, "value": None})
    'map.put key=1 value=null'
    """
    return " ".join([op, *(f"{k}={_json(v)}" for k, v in arguments.items())])


def answer_text(record: Mapping[str, Any]) -> str:
    """The answer of one line: `-> result`, `!! class: message`, or nothing where none is recorded."""
    if "error" in record:
        error = record["error"]
        message = error.get("message")
        return f"!! {error.get('class', '?')}" + ("" if message is None else f": {_json(message)}")
    return f"-> {_json(record['result'])}" if "result" in record else ""


def part_text(keys: Sequence[str], *value: Json) -> str:
    """A part of a state; without a value nothing is there.

    >>> part_text(["at", "3", "size"], 1), part_text(["epochs"])
    ('state.at["3"].size = 1', 'state.epochs gone')
    """
    where = "".join(f".{k}" if _name.fullmatch(k) else f"[{_json(k)}]" for k in keys)
    return f"state{where} = {_json(value[0])}" if value else f"state{where} gone"


def record_text(record: Mapping[str, Any]) -> str:
    """One line of a history, and more where it records the state or parts of it."""
    text = f"{call_text(record.get('op', '?'), record.get('args', {}))} {answer_text(record)}".rstrip()
    state = [f"state {_json(record['state'])}"] if "state" in record else []
    return "\n  ".join([text, *state, *(part_text(*part) for part in record.get("parts", ()))])


def to_text(history: History) -> str:
    head = [f"# {line}" for line in history.why.splitlines()]
    return "\n".join([*head, *(record_text(r) for r in history.records)]) + "\n"


_decoder = json.JSONDecoder()
_argument = re.compile(r"\s+([A-Za-z_][\w.]*)=")
_name = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _parse_call(line: str) -> Record:
    m = re.match(r"(\?|[A-Za-z_][\w.]*)(?=\s|$)", line)
    if m is None:
        raise ValueError(1, "expected the name of an operation")
    record: Record = {} if m[1] == "?" else {"op": m[1]}
    at = m.end()
    arguments: Record = {}
    while a := _argument.match(line, at):
        arguments[a[1]], at = _value(line, a.end())
    record["args"] = arguments
    rest = line[at:].lstrip()
    at = len(line) - len(rest)
    if rest.startswith("->"):
        record["result"], at = _value(line, at + 2 + len(rest[2:]) - len(rest[2:].lstrip()))
    elif rest.startswith("!!"):
        e = re.compile(r"!!\s+([\w.$]+|\?)").match(line, at)
        if e is None:
            raise ValueError(at + 1, "expected the class of the exception after !!")
        at = e.end()
        record["error"] = {} if e[1] == "?" else {"class": e[1]}
        if line.startswith(": ", at):
            record["error"]["message"], at = _value(line, at + 2)
    _ended(line, at)
    return record


def _parse_state(line: str, at: int, record: Record) -> None:
    """The state that a line shows, or a part of it; `at` is the place after the word."""
    keys: list[Json] = []
    while line.startswith((".", "["), at):
        if line[at] == "[":
            key, at = _value(line, at + 1)
            if not isinstance(key, str) or not line.startswith("]", at):
                raise ValueError(at + 1, 'expected a key as ["KEY"]')
            at += 1
        elif name := _name.match(line, at + 1):
            key, at = name[0], name.end()
        else:
            raise ValueError(at + 2, "expected a key")
        keys.append(key)
    rest = re.compile(r"\s+(=\s+|gone$)?").match(line, at)
    if not keys:
        record["state"], at = _value(line, rest.end() if rest else at)
    elif rest is None or rest[1] is None:
        raise ValueError(at + 1, "expected ` = ` and a value, or ` gone`")
    elif rest[1] == "gone":
        record.setdefault("parts", []).append([keys])
        return
    else:
        value, at = _value(line, rest.end())
        record.setdefault("parts", []).append([keys, value])
    _ended(line, at)


def _ended(line: str, at: int) -> None:
    rest = line[at:].lstrip()
    if rest:
        raise ValueError(len(line) - len(rest) + 1, f"cannot read {rest!r}")


def _value(line: str, at: int) -> tuple[Json, int]:
    """The JSON value that stands there, as a line of a recorded trace would have it, and where it ends."""
    try:
        _, end = _decoder.raw_decode(line, at)
        return orjson.loads(line[at:end]), end
    except json.JSONDecodeError as e:
        wrong = e.pos + 1 if e.doc == line else at + 1
    except (ValueError, RecursionError):  # a number of thousands of digits, a thousand levels
        wrong = at + 1
    raise ValueError(wrong, "expected a JSON value")


def parse(text: str, name: str) -> History:
    """Read a history; `name` is the file's, for errors. UserError ("file:line:column: ...") for what cannot be read."""
    return History(tuple(record for _, record in numbered(text, name)))


def read(data: bytes, name: str) -> list[list[Record]]:
    """The histories in a file, as text or as NDJSON; each begins with `init`. UserError for what cannot be read."""
    return [[record for _, record in records] for records in read_numbered(data, name)]


def read_numbered(data: bytes, name: str) -> list[list[tuple[int, Record]]]:
    """The same, each call with the number of its line."""
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        raise UserError(f"{name}: not UTF-8 text (byte {e.start})") from None
    out: list[list[tuple[int, Record]]] = []
    for number, record in _ndjson(text, name) if text.lstrip().startswith("{") else numbered(text, name):
        if not out or record.get("op") == "init":
            out.append([])
        out[-1].append((number, record))
    return out


def _ndjson(text: str, name: str) -> Iterator[tuple[int, Record]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as e:
            raise UserError(f"{name}:{number}: not JSON: {e.msg} at column {e.colno}") from None
        if not isinstance(record, dict) or not isinstance(record.get("args", {}), dict):
            raise UserError(f"{name}:{number}: not a line of a trace: {line[:80]}")
        yield number, record


def numbered(text: str, name: str) -> list[tuple[int, Record]]:
    """The calls of a history, each with the number of its line."""
    records: list[tuple[int, Record]] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.rstrip()
        if not line or line.startswith("#"):
            continue
        try:
            if line.startswith((" ", "\t")):
                at = re.compile(r"\s+state(?=\s+|[.\[])").match(line)
                if at is None or not records:
                    raise ValueError(1, "an indented line must be `state {...}` or `state.KEY = ...` and follow a call")
                _parse_state(line, at.end(), records[-1][1])
            else:
                records.append((number, _parse_call(line)))
        except ValueError as e:
            column, what = e.args
            raise UserError(f"{name}:{number}:{column}: {what}") from None
    return records
