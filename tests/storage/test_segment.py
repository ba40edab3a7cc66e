"""A log segment: spec beside impl, models and the released Kafka, and the rules one by one."""

from __future__ import annotations

import random
from typing import Any

import orjson

from kafkaspec.lockstep.machine import Outside
from kafkaspec.lockstep.walk import draw, draw_init
from kafkaspec.spec.storage.segment import machine


def calls(seed: int, count: int) -> list[str]:
    """A seeded history of calls that are within the contract, a JSON line each, without answers."""
    rng = random.Random(seed)
    init = draw_init(machine, rng.choice)
    lines = [orjson.dumps({"op": "init", "args": machine.init_names(init)}).decode()]
    state = machine.initial(**init)
    operations = [op for op in machine.operations.values() if op.generated]
    weights = [6 if op.name in ("append", "updateTxnIndex") else 1 for op in operations]
    while len(lines) <= count:
        op = rng.choices(operations, weights)[0]
        arguments: dict[str, Any] | None = draw(machine, op, state, rng.choice)
        if arguments is None:
            continue
        step = machine.apply(state, op.name, arguments, contracts=False)
        if not isinstance(step, Outside):
            state = step.state
            named = {t: arguments[p] for t, p in op.parameters.items()}
            lines.append(orjson.dumps({"op": op.name, "args": named}).decode())
    return lines
