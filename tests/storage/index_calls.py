"""Random calls of an index for the released classes to answer: within the contract, by the spec's own candidates, from
more base offsets and sizes than the judge's histories begin with.

A history ends where a known deviation leaves a mark in the state: nothing after it would be comparable.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.history import Record
from kafkaspec.contract.machine import Machine, Outside, Refused

NOT_KAFKAS = ("pagesTouched", "judge", "fill")
"""Operations that the released classes do not have."""
ONES_THAT_END = ("close", "closeHandler", "openNew", "openFile", "open")
MARKS = "TIX-5"
"""What is refused by this clause leaves a mark (TIX-D1), though it may not show at once."""
LONGEST = 400


def histories(machine: Machine[Any], seed: int, count: int) -> Iterator[list[Record]]:
    """Histories of so many calls together, each with its `init`, without answers."""
    r = random.Random(seed)
    names = [n for n in machine.operations if n not in NOT_KAFKAS]
    weights = [1 if n in ONES_THAT_END else 6 if "ppend" in n else 3 for n in names]
    made = 0
    while made < count:
        size = r.choice([43, 65, 100, 120, 240, 2400])
        start = {"baseOffset": r.choice([0, 100, 2**40]), "maxIndexSize": size}
        history: list[Record] = [{"op": "init", "args": start}]
        made += 1
        state: Any = machine.start(start)
        ghosts = [d.initial() for d in machine.deviations]
        for _ in range(min(LONGEST, count - made)):
            op = machine.find(r.choices(names, weights)[0])
            choices = machine.choices(op, state)
            arguments = {p: r.choice(list(c)) for p, c in choices.items()}
            step = machine.apply(state, op.name, arguments)
            if isinstance(step, Outside):
                continue
            history.append({"op": op.name, "args": {t: arguments[p] for t, p in op.parameters.items()}})
            made += 1
            marked = isinstance(step.result, Refused) and step.result.clause == MARKS
            for n, d in enumerate(machine.deviations):
                ghosts[n] = d.advance(ghosts[n], state, op.name, arguments, step.state)
                marked = marked or _marks(machine, d, ghosts[n], step.state, op.name, arguments, step.result)
            state = step.state
            if marked:
                break
        yield history


def _marks(machine: Machine[Any], d: Deviation, ghost: Any, state: Any, op: str, arguments: Any, result: Any) -> bool:
    seen = machine.observe(state)
    return bool(d.rewrite(ghost, state, op, arguments, result, seen)[1] != seen)
