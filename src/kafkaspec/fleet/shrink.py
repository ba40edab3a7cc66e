"""A failing history made small: calls left out, then arguments made simple, for as long as it fails the same way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kafkaspec.lockstep.history import History, Record
from kafkaspec.lockstep.machine import Driver, Json, Machine
from kafkaspec.lockstep.walk import replay, shrink


def shrunk(machine: Machine[Any], driver: Driver, failure: History) -> History:
    """The smallest history found that fails at the same operation by the same clause; always the same one."""
    best = shrink(machine, driver, failure)
    while True:
        simpler = _simplified(machine, driver, best)
        if simpler is None:
            return best
        best = shrink(machine, driver, simpler)


def _simplified(machine: Machine[Any], driver: Driver, failure: History) -> History | None:
    """The history with every argument as simple as it goes, the calls being the same; None if none goes simpler."""
    best = failure
    for n, record in enumerate(failure.records):
        for name in record["args"]:
            for value in simpler_values(best.records[n]["args"][name]):
                changed = {**best.records[n], "args": {**best.records[n]["args"], name: value}}
                found = _fails_alike(machine, driver, [*best.records[:n], changed, *best.records[n + 1 :]], best)
                if found is not None:
                    best = found
                    break
    return None if best is failure else best


def _fails_alike(machine: Machine[Any], driver: Driver, records: list[Record], as_: History) -> History | None:
    try:
        found = replay(machine, driver, records)
    except Exception:
        return None  # an argument that the spec cannot take
    if found is None or len(found.records) != len(as_.records):
        return None
    same = (found.clause, found.records[-1]["op"]) == (as_.clause, as_.records[-1]["op"])
    return found if same else None


def simpler_values(value: Json) -> Iterator[Json]:
    """Values to try in place of one, the simplest first; each is simpler, so that trying ends.

    >>> list(simpler_values(100)), list(simpler_values(-3)), list(simpler_values(True)), list(simpler_values([7, 8]))
    ([0, 1, 50, 99], [0, 3, -1, -2], [False], [[], [7], [8]])
    """
    if isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int):
        if value < 0:
            yield from dict.fromkeys((0, -value, -(-value // 2), value + 1))
        elif value:
            yield from dict.fromkeys(v for v in (0, 1, value // 2, value - 1) if v < value)
    elif isinstance(value, list) and value:
        yield []
        if len(value) > 1:
            yield from (value[:n] + value[n + 1 :] for n in reversed(range(len(value))))


def shape(why: str) -> str:
    """What kind of difference a failure's text tells, without the values, keys and numbers that vary from seed to seed.

    >>> shape("seed 7: differs at call 3: push value=1\\nTOY-1: One more.\\nstate.at[39].x: seen 1, expected 2")
    'state.at[*].x'
    >>> shape("x: differs at call 3: pop\\nanswered -> 3, expected !! java.lang.IllegalStateException")
    'answered, expected java.lang.IllegalStateException'
    """
    out = []
    for line in why.splitlines()[1:]:
        if re.match(r"[A-Z]{3}-\d+($|:)|and \d+ more", line):
            continue
        if m := re.match(r"answered (.*), expected (.*)$", line):
            out.append(f"{_answer(m[1], 'answered')}, expected {_answer(m[2], 'an answer')}")
        elif m := re.match(r"(the driver failed: \w+)", line):
            out.append(m[1])
        else:
            path = line.partition(": seen ")[0]
            out.append(re.sub(r"\[[^\]]*\]", "[*]", path))
    return "; ".join(sorted(set(out)))


def _answer(text: str, result: str) -> str:
    m = re.match(r"!! ([\w.$]+)", text)
    return m[1] if m else result
