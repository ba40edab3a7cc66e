"""What seeded walks of a spec meet: an example of each operation, its refusals, and which of two is the answer."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

import orjson

from kafkaspec.contract.history import Record, outcome
from kafkaspec.contract.machine import Json, Machine, Operation, Outside, Refused
from kafkaspec.contract.subsystem import Subsystem
from kafkaspec.judge.cover import SIDES, otherwise, watched
from kafkaspec.lockstep.walk import calls

WALKS: Final = 40
STEPS: Final = 150
"""The number of walks, and of calls in each, that show refusals and examples."""
LOOKS: Final = 8
"""Of a refusal's meetings, at most this number is looked at for what else applies."""
EXAMPLE: Final = 160
"""Bytes of an example, and of the state before it, if there is one that is not longer."""


class Example(NamedTuple):
    """A call, and its answer."""

    before: Json
    """what `observe` shows before it; None where that is long, or nothing is shown"""
    record: Record


class Refusal(NamedTuple):
    """What an operation may be refused with."""

    clause: str
    error: str
    """its class"""


@dataclass
class Samples:
    """What seeded walks of a spec met, by operation."""

    refusals: dict[str, dict[Refusal, None]] = field(default_factory=dict)
    """Of two that apply to one call, the first is the answer; else in the order of clauses."""
    turns: dict[str, set[tuple[Refusal, Refusal]]] = field(default_factory=dict)
    """Which was asked for before which, and so on: where a pair is not there, no call was met that says it."""
    examples: dict[str, Example] = field(default_factory=dict)
    """with an answer that is no refusal, if there was one"""


@cache
def met(subsystem: Subsystem) -> Samples:
    """Walk the spec by itself."""
    machine: Machine[Any] = subsystem.spec.machine
    operations = [op for op in machine.operations.values() if op.generated]
    refusals: dict[str, set[Refusal]] = {op.name: set() for op in operations}
    before: dict[str, set[tuple[Refusal, Refusal]]] = {op.name: set() for op in operations}
    looked: Counter[tuple[str, Refusal]] = Counter()
    examples: dict[str, tuple[tuple[bool, bool, bool, int], Example]] = {}
    for seed in range(WALKS):
        for state, op, arguments, step in calls(machine, random.Random(seed), STEPS):
            result = step.result
            if isinstance(result, Refused):
                refusal = Refusal(result.clause, result.error)
                refusals[op.name].add(refusal)
                looked[op.name, refusal] += 1
                if looked[op.name, refusal] <= LOOKS:
                    before[op.name] |= {*_turns(machine, op, state, arguments, refusal)}
            given = {t: arguments[p] for t, p in op.parameters.items() if p not in op.chosen}
            record = {"op": op.name, "args": given, **outcome(result)}
            size = _size(record)
            fits = size <= EXAMPLE
            known = examples[op.name][0] if op.name in examples else (False, False, False, 0)
            if (not isinstance(result, Refused), fits) >= known[:2]:
                shown = machine.observe(state)
                seen = shown is not None and _size(shown) <= EXAMPLE
                size += _size(shown) if seen else 0
                worth = (not isinstance(result, Refused), fits, seen, size if fits else -size)
                if op.name not in examples or worth > known:
                    examples[op.name] = worth, Example(shown if seen else None, record)
    order = {c.id: n for n, c in enumerate(subsystem.clauses)}
    out = Samples()
    for name, found in refusals.items():
        out.turns[name] = _and_so_on(before[name])
        by_clause = sorted(found, key=lambda e: (order.get(e.clause, 0), e.error))
        out.refusals[name] = dict.fromkeys(_in_turn(by_clause, out.turns[name]))
    out.examples.update({name: example for name, (_, example) in examples.items()})
    return out


def _size(value: Json) -> int:
    """Bytes of JSON."""
    return len(orjson.dumps(value, default=float))


def _turns(
    machine: Machine[Any], op: Operation[Any], state: Any, arguments: Mapping[str, Any], refusal: Refusal
) -> Iterator[tuple[Refusal, Refusal]]:
    """Refusals of which the first is asked for before the second, told from a call that was refused: conditions of
    refusals that it decided are decided otherwise. Another refusal by its own condition stands before the one that was
    met; one that comes when the condition of that one does not hold stands behind it."""
    with watched(machine) as cover:
        cover.begin()
        machine.apply(state, op.name, arguments, contracts=False)
        for n in sorted({side // SIDES for side in cover.taken}):
            with otherwise(machine, n, "negated"), contextlib.suppress(Exception):
                step = machine.apply(state, op.name, arguments, contracts=False)
                if isinstance(step, Outside) or not isinstance(step.result, Refused):
                    continue
                found, decides = Refusal(step.result.clause, step.result.error), cover.sites[n].refusal
                if found != refusal and decides == refusal:
                    yield refusal, found
                elif found != refusal and decides == found:
                    yield found, refusal


def _and_so_on(pairs: Set[tuple[Refusal, Refusal]]) -> set[tuple[Refusal, Refusal]]:
    """With what follows from them."""
    out = {*pairs}
    while further := {(a, d) for a, b in out for c, d in out if b == c} - out:
        out |= further
    return out


def _in_turn(refusals: list[Refusal], before: Set[tuple[Refusal, Refusal]]) -> Iterator[Refusal]:
    """Each after all that come before it; of those that have no order, and of a circle, the first of the list."""
    left = [*refusals]
    while left:
        free = (x for x in left if not any((y, x) in before for y in left if y != x))
        first = next(free, left[0])
        left.remove(first)
        yield first
