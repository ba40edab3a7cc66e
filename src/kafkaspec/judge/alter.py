"""Does a check notice? Every answer and every value of a recorded trace altered, one at a time.

A trace with one value altered must be rejected, at that line or later, by a clause. What is accepted nevertheless is a
hole in the spec's observation. Where a known deviation was recorded, an alteration may just undo it: such a line is
right, and is counted apart.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from kafkaspec.contract.machine import Fields, Json, Machine, Outside, Refused
from kafkaspec.judge.check import MAX_CALLS, Attempt, Check, Explanations, Line


@dataclass(frozen=True)
class Alteration:
    """One value of one line altered. `line` counts from 1, `after` is that line, `verdict` what became of the trace."""

    line: int
    path: str
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


Place = tuple[str | int, ...]
"""The keys and indexes that lead from a line to a value in it."""
REMOVED, DROPPED, TWICE, TO_ERROR, TO_RESULT = "removed", "dropped", "twice", "to error", "to result"
UNCITED = "rejected by no clause"
Attempts = list[Attempt | Outside]
"""The calls that a line may be, made once for all of its alterations."""


class _Places:
    """Of all places of a line that can be altered, and how ("": to another value), a random share."""

    def __init__(self, rng: random.Random, share: float) -> None:
        self.random, self.share = rng.random, share
        self.found: list[tuple[Place, str]] = []

    def draw(self, place: Place, key: str | int, *ways: str) -> None:
        for how in ways:
            if self.random() < self.share:
                self.found.append(((*place, key), how))

    def within(self, value: Json, shape: Json, place: Place) -> None:
        """Those below a place; `shape` is what the spec shows there."""
        items: Iterable[tuple[str | int, Json]]
        ways: tuple[str, ...]
        if isinstance(value, dict):
            items, ways = value.items(), () if isinstance(shape, Fields) else (REMOVED,)
        else:
            items, ways = enumerate(value), (DROPPED, TWICE)
        for key, v in items:
            if isinstance(v, (dict, list)):
                self.within(v, _part(shape, key), (*place, key))
                self.draw(place, key, *ways)
            else:
                self.draw(place, key, "", *ways)

    def of_line(self, line: Mapping[str, Any], result: Json | Refused, shape: Json) -> list[tuple[Place, str]]:
        """Those of a line; `result` and `shape` are what the spec answers and shows."""
        self.found = []
        for key, shown, ways in (("state", shape, ()), ("result", result, (TO_ERROR,))):
            if key in line:
                whole = isinstance(line[key], (dict, list))
                if whole:
                    self.within(line[key], shown, (key,))
                self.draw((), key, *(() if whole else ("",)), *ways)
        if "error" in line:
            self.draw(("error",), "class", "")
            if isinstance(result, Refused) and result.message is not None and "message" in line["error"]:
                self.draw(("error",), "message", "")
            self.draw((), "error", TO_RESULT)
        return self.found


def _part(shape: Json, key: str | int) -> Json:
    """What the spec shows under a key, or at a place of a list; None if nothing."""
    if isinstance(shape, dict):
        return shape.get(key)
    return shape[key] if isinstance(shape, list | tuple) and isinstance(key, int) and key < len(shape) else None


def _other(value: Json) -> Json:
    """Another value than that one, of its type where the type has others."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value + "x"
    if value is None:
        return 0
    return value + 1 if value + 1 != value else -value  # a large double is its own next one


def _changed(value: Json, place: Place, how: str) -> Json:
    """The value altered at a place in it; what is on the way there is copied, the rest is shared."""
    if not place:
        return _other(value)
    key: Any = place[0]
    if place[1:] or not how:
        inner = _changed(value[key], place[1:], how)
        return {**value, key: inner} if isinstance(value, dict) else [*value[:key], inner, *value[key + 1 :]]
    if isinstance(value, dict):
        new: Json = {TO_ERROR: {"error": {"class": "java.lang.Error"}}, TO_RESULT: {"result": None}}.get(how, {})
        return {k: v for k, v in value.items() if k != key} | new
    return value[:key] + value[key + 1 :] if how == DROPPED else [*value[: key + 1], *value[key:]]


def _path(place: Place, how: str) -> str:
    """A change in words: `state.entries[0].epoch`, `state.entries[0] dropped`."""
    return f"{place[0]}{''.join(f'[{k}]' if isinstance(k, int) else f'.{k}' for k in place[1:])} {how}".rstrip()


def altered(
    machine: Machine[Any], path: Path, *, share: float = 1.0, seed: int = 0, release: str | None = None
) -> AlterationCounts:
    """Alter each value of each line of an NDJSON trace (`.gz` too) in turn, or a random share of them, and check what
    follows.

    The trace itself must be accepted (known deviations too) up to the line where it is rejected or leaves the contract.
    `release` is the release of Kafka that was recorded, if not the newest.
    """
    drawn = _Places(random.Random(seed), share)
    data = path.read_bytes()
    lines = (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()
    check = Check(machine, path.name, release=release)
    tried = later = righted = 0
    accepted: list[Alteration] = []
    cited: set[tuple[str | None, bool]] = set()
    """the operations for which a rejection cited a clause, and whether an error was recorded"""
    for number, text in enumerate(lines, 1):
        line = check.validated(orjson.loads(text), number)
        record, before = line.record, check.frontier
        made = None if line.op == "init" or not check.complete(line) else [*check.attempts(line)]
        if line.op == "init":
            verdict = check.begin(line)
            result, shape, deviates = None, check.machine.observe(check.frontier[0].state), False
        else:
            explanations = check.explanations(line, made)
            verdict = check.settled(line, explanations)
            if verdict is None:
                result, shape = _expected(check, explanations)
                deviates = not explanations.found
        if verdict is not None:
            break
        after = check.frontier
        for place, how in drawn.of_line(record, result, shape):
            tried += 1
            changed = line._replace(record=_changed(record, place, how))
            check.frontier, check.left = before, MAX_CALLS  # it is a trace of its own
            became, by_spec = _judge(check, changed, made, cited)
            if became == "accepted" and deviates and by_spec:
                righted += 1
                continue
            if became == "accepted":  # does it show at a later line?
                rest = Check(machine, path.name, release=release)
                rest.frontier = check.frontier
                final = rest.run(lines[number:], lambda: None) if number < len(lines) else None
                if final is not None:
                    became = final.verdict if final.verdict != "rejected" or final.clause else UNCITED
                    later += final.verdict == "rejected"
            if became != "rejected":
                accepted.append(Alteration(number, _path(place, how), changed.record, became))
        check.frontier = after
    return AlterationCounts(tried, later, righted, tuple(accepted))


def _judge(check: Check, line: Line, made: Attempts | None, cited: set[tuple[str | None, bool]]) -> tuple[str, bool]:
    """The verdict on an altered line, and whether the spec explains it without a known deviation. What a rejection
    cites is looked at once for each operation and kind of answer: it has at least the clauses of the operation or of
    its contracts, whatever the values."""
    if line.op == "init":
        verdict = check.begin(line)
        return ("accepted", True) if verdict is None else (verdict.verdict, False)
    found, deviated, outside = check.explanations(line, made)
    if found or deviated:
        check.frontier = [a.after for a in found] + [a.after for a, _ in deviated]
        return "accepted", bool(found)
    if outside is not None:
        return "outside", False
    kind = line.op, "error" in line.record
    if kind not in cited and check.rejected(line, nearest=False).clause:
        cited.add(kind)
    return "rejected" if kind in cited else UNCITED, False


def _expected(check: Check, explanations: Explanations) -> tuple[Json | Refused, Json]:
    """What the spec shows at a line, or what a known deviation that explains it does: for the shape of it, what may be
    left out, and whether a message is stated."""
    if explanations.found:
        return explanations.found[0].result, explanations.found[0].observation
    attempt, ids = explanations.deviated[0]
    result, observation = attempt.result, attempt.observation
    for deviation, at in zip(check.deviations, check.ghost_of, strict=True):
        if deviation.id in ids:
            ghost = None if at is None else attempt.after.ghosts[at]
            call = attempt.operation.name, attempt.arguments
            result, observation = deviation.rewrite(ghost, attempt.after.state, *call, result, observation)
    return result, observation
