"""Recordings that are damaged on purpose: bytes, and the structure of their JSON. The same seed damages alike."""

from __future__ import annotations

import copy
import gzip
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson

from kafkaspec.contract.recording import Recording, manifest
from kafkaspec.contract.subsystem import Subsystem, find

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53, 2**62, 2**63 - 1, -(2**63), 2**64 - 1,
    0.5, 1e300, -0.0, "", "x", "0", "ff", "zz", "\x00", "\u202e\x1b[2J", "é" * 5, "a" * 5000, "topic-0",
    [], [None], [[]], {}, {"": None}, {"x": 1}, [0] * 300, {str(n): n for n in range(100)},
)  # fmt: skip
"""What stands in place of a value."""
TEXTS: tuple[bytes, ...] = (
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 30, b'"\\ud800"', b"1" * 5000, b"9223372036854775808", b"1.0",
    b"\xff", b"\x00", b"\r", b"\n", b"{", b"}", b"[", b"]", b'"', b",", b":", b"-", b"null", b"[" * 900, b"[" * 100_000,
    b'"op":"pop",', b'"result":1,', b'"state":{}', b',"state":{}', b"\xef\xbb\xbf", b"\xff\xfe",
)  # fmt: skip
"""What stands between bytes."""
LEVELS = (30, 120, 300, 900)
KEYS = ("i", "op", "args", "result", "error", "state")


@dataclass(frozen=True)
class DamagedFile:
    """A damaged piece of a recording."""

    number: int
    subsystem: Subsystem
    recording: Recording
    data: bytes


@cache
def _lines(recording: Recording) -> tuple[list[bytes], list[int]]:
    """Its lines, and where histories begin."""
    data = recording.path.read_bytes()
    lines = (gzip.decompress(data) if recording.path.suffix == ".gz" else data).splitlines()
    return lines, [0, *(n for n, line in enumerate(lines) if b'"op":"init"' in line)]


def damaged(numbers: Iterable[int], most_lines: int = 24) -> Iterator[DamagedFile]:
    """Pieces of the recordings, each damaged by its number."""
    for number in numbers:
        rng = random.Random(number)
        recording = rng.choice(manifest())
        subsystem = find(recording.subsystem)
        lines, starts = _lines(recording)
        at = rng.choice(starts)
        piece = lines[at : at + rng.randint(1, most_lines)]
        if rng.random() < 0.35:
            data = _bytes_damaged(rng, b"\n".join(piece) + b"\n")
        else:
            operations = ["init", "nope", None, *subsystem.spec.machine.operations]
            data = _structure_damaged(rng, [orjson.loads(line) for line in piece], operations)
        yield DamagedFile(number, subsystem, recording, data)


# ---- bytes -----------------------------------------------------------------------------------------------------------
def _bytes_damaged(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(out))
        match rng.randrange(6):
            case 0:
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                out[at:at] = rng.choice(TEXTS)
            case 2:
                del out[at : at + rng.choice((1, 2, 10, 100))]
            case 3:
                out[at:at] = out[at : at + rng.choice((1, 10, 200))]
            case 4:
                del out[at:]
            case _:
                values = list(re.finditer(rb'-?\d+|true|null|"[^"]*"', bytes(out)))
                if values:
                    start, end = rng.choice(values).span()
                    out[start:end] = rng.choice(TEXTS[:9])
        out = out or bytearray(b"\n")
    return bytes(out)


# ---- structure -------------------------------------------------------------------------------------------------------
def _structure_damaged(rng: random.Random, records: list[Any], operations: Sequence[str | None]) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        n = rng.randrange(len(records))
        records[n] = _record_damaged(rng, records[n], operations)
        match rng.randrange(8):
            case 0:
                records.insert(rng.randrange(len(records)), copy.deepcopy(records[n]))
            case 1 if len(records) > 1:
                del records[n]
            case 2:
                m = rng.randrange(len(records))
                records[n], records[m] = records[m], records[n]
            case 3:  # a sparse recording
                records = [_sparse(rng, r) for r in records]
    return b"".join(_written(r) + b"\n" for r in records)


def _record_damaged(rng: random.Random, record: Any, operations: Sequence[str | None]) -> Any:
    places = list(_places(record))
    arguments = [p for p in places if len(p) > 1 and p[0] == "args"]
    place = rng.choice(arguments if arguments and rng.random() < 0.6 else places)
    value = copy.deepcopy(rng.choice(VALUES))
    old = _at(record, place)
    match rng.randrange(10):
        case 0 | 1 | 2 | 3:
            return _with(record, place, value)
        case 4:
            return _with(record, place, _nested(rng.choice(LEVELS), rng.random() < 0.5))
        case 5 if place:
            del _at(record, place[:-1])[place[-1]]
        case 6 if isinstance(old, dict):
            old[rng.choice((*KEYS, "x", "epoch", "a" * 300))] = value
        case 6 if isinstance(old, list):
            old.append(value)
        case 7 if type(old) is int:
            return _with(record, place, max(-(2**63), min(old + rng.choice((-1, 1, 2**31, 2**40)), 2**64 - 1)))
        case 8 if isinstance(record, dict):
            record["op"] = rng.choice(operations)
        case 9 if isinstance(record, dict):
            for key in rng.sample(KEYS, 2):
                record.pop(key, None)
    return record


def _sparse(rng: random.Random, record: Any) -> Any:
    if not isinstance(record, dict) or rng.random() < 0.5:
        return record
    kept = {k: v for k, v in record.items() if k in ("op", "args") or rng.random() < 0.5}
    if isinstance(kept.get("args"), dict) and rng.random() < 0.2:
        kept["args"] = {k: v for k, v in kept["args"].items() if rng.random() < 0.5}
    return kept


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, v in inner:
        if len(at) < 20:
            yield from _places(v, (*at, key))


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


def _with(record: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    _at(record, place[:-1])[place[-1]] = value
    return record


def _nested(levels: int, lists: bool) -> str:
    """A mark in place of a value that is nested so deep."""
    return f"@{levels}{'[' if lists else '{'}@"


def _written(record: Any) -> bytes:
    def nested(mark: re.Match[bytes]) -> bytes:
        head, tail = (b"[", b"]") if mark[2] == b"[" else (b'{"a":', b"}")
        return head * int(mark[1]) + b"0" + tail * int(mark[1])

    return re.sub(rb'"@(\d+)([\[{])@"', nested, orjson.dumps(record))
