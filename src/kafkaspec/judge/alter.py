"""Does a check notice? Every answer and every value of a recorded trace altered, one at a time.

A trace with one value altered must be rejected, at that line or later, by a clause. What is accepted nevertheless is a
hole in the spec's observation. Where a known deviation was recorded, an alteration may just undo it: such a line is
right, and is counted apart.
"""

from __future__ import annotations

import copy
import gzip
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from kafkaspec.contract.machine import Fields, Json, Machine, Refused
from kafkaspec.judge.check import Check, Line


@dataclass(frozen=True)
class Alteration:
    """One value of one line altered. `line` counts from 1; `verdict` is what became of the trace."""

    line: int
    path: str
    before: Json
    after: Json
    verdict: str = ""


@dataclass(frozen=True)
class AlterationCounts:
    """What became of a trace's alterations."""

    tried: int
    later: int
    """of those rejected, how many at a later line than the altered one"""
    righted: int
    """how many undid a known deviation: what the spec says stands there now"""
    accepted: tuple[Alteration, ...]
    """those that were not rejected, or not by a clause"""


def _values(value: Json, shape: Json, path: str) -> Iterator[tuple[str, Json, Json]]:
    """(path, before, after) for every alteration of a value; `shape` is what the spec shows in its place."""
    if isinstance(value, bool):
        yield path, value, not value
    elif isinstance(value, int | float):
        yield path, value, value + 1
    elif isinstance(value, str):
        yield path, value, value + "x"
    elif value is None:
        yield path, value, 0
    elif isinstance(value, dict):
        for k, v in value.items():
            inner = shape.get(k) if isinstance(shape, dict) else None
            for where, before, after in _values(v, inner, f"{path}.{k}"):
                yield where, before, {**value, k: after}
            if not isinstance(shape, Fields):
                yield f"{path}.{k} removed", v, {n: w for n, w in value.items() if n != k}
    elif isinstance(value, list):
        for n, v in enumerate(value):
            inner = shape[n] if isinstance(shape, list | tuple) and n < len(shape) else None
            for where, before, after in _values(v, inner, f"{path}[{n}]"):
                yield where, before, [*value[:n], after, *value[n + 1 :]]
            yield f"{path}[{n}] dropped", value, value[:n] + value[n + 1 :]
            yield f"{path}[{n}] twice", value, [*value[: n + 1], *value[n:]]


def _records(record: dict[str, Any], result: Json | Refused, shape: Json) -> Iterator[tuple[str, Json, dict[str, Any]]]:
    if "state" in record:
        for path, before, after in _values(record["state"], shape, "state"):
            yield path, before, {**record, "state": after}
    if "result" in record:
        for path, before, after in _values(record["result"], result, "result"):
            yield path, before, {**record, "result": after}
        failed = {k: v for k, v in record.items() if k != "result"} | {"error": {"class": "java.lang.Error"}}
        yield "result to error", record["result"], failed
    if "error" in record:
        error = record["error"]
        yield "error.class", error["class"], {**record, "error": {**error, "class": error["class"] + "x"}}
        if isinstance(result, Refused) and result.message is not None and "message" in error:
            yield "error.message", error["message"], {**record, "error": {**error, "message": f"{error['message']}x"}}
        yield "error to result", error, {k: v for k, v in record.items() if k != "error"} | {"result": None}


def altered(
    machine: Machine[Any], path: Path, *, share: float = 1.0, seed: int = 0, release: str | None = None
) -> AlterationCounts:
    """Alter each value of each line of an NDJSON trace (`.gz` too) in turn, or a random share of them, and check what
    follows.

    The trace itself must be accepted (known deviations too) up to the line where it is rejected or leaves the contract.
    `release` is the release of Kafka that was recorded, if not the newest.
    """
    rng = random.Random(seed)
    data = path.read_bytes()
    lines = (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()
    check = Check(machine, path.name, release=release)
    tried = later = righted = 0
    accepted: list[Alteration] = []
    for number, text in enumerate(lines, 1):
        record = orjson.loads(text)
        before = check.frontier
        if check.slow(copy.deepcopy(record), number) is not None:
            break
        after = check.frontier
        result, shape, deviates = _expected(check, record, number, before)
        for where, old, changed in _records(record, result, shape):
            if rng.random() >= share:
                continue
            tried += 1
            check.frontier = before
            verdict, clause = _judge(check, changed, number)
            if verdict == "accepted" and deviates and not _expected(check, changed, number, before)[2]:
                righted += 1
                continue
            if verdict == "accepted":  # does it show at a later line?
                rest = Check(machine, path.name, release=release)
                rest.frontier = check.frontier
                final = rest.run(lines[number:], lambda: None) if number < len(lines) else None
                verdict, clause = (final.verdict, final.clause) if final is not None else (verdict, clause)
                later += verdict == "rejected"
            if verdict != "rejected" or (not clause and record.get("op") != "init"):
                accepted.append(Alteration(number, where, old, changed, verdict))
        check.frontier = after
    return AlterationCounts(tried, later, righted, tuple(accepted))


def _judge(check: Check, record: dict[str, Any], number: int) -> tuple[str, str]:
    line: Line = check.validated(record, number)
    if line.op == "init":
        verdict = check.begin(line)
        return ("accepted", "") if verdict is None else (verdict.verdict, verdict.clause)
    found, deviated, outside = check.explanations(line)
    if found or deviated:
        check.frontier = [a.after for a in found] + [a.after for a, _ in deviated]
        return "accepted", ""
    if outside is not None:
        return "outside", outside.clause
    return "rejected", check.rejected(line, nearest=False).clause


def _expected(
    check: Check, record: dict[str, Any], number: int, before: list[Any]
) -> tuple[Json | Refused, Json, bool]:
    """What the spec shows at a line, or what a known deviation that explains it does, for the shape of it (what may be
    left out, whether a message is stated); and whether only a known deviation explains it."""
    line = check.validated(record, number)
    if line.op == "init":
        return None, check.machine.observe(check.frontier[0].state), False
    check.frontier, after = before, check.frontier
    found, deviated, _ = check.explanations(line)
    check.frontier = after
    if found:
        return found[0].result, found[0].observation, False
    attempt, ids = deviated[0]
    result, observation = attempt.result, attempt.observation
    for deviation, at in zip(check.deviations, check.ghost_of, strict=True):
        if deviation.id in ids:
            ghost = None if at is None else attempt.after.ghosts[at]
            call = attempt.operation.name, attempt.arguments
            result, observation = deviation.rewrite(ghost, attempt.after.state, *call, result, observation)
    return result, observation, True
