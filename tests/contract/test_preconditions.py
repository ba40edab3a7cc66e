"""Any arguments of the right types: a precondition answers, whatever the others say of them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kafkaspec.contract.machine import Machine, Step
from kafkaspec.contract.subsystem import subsystems
from kafkaspec.lockstep.walk import draw, draw_init

MACHINES = [pytest.param(p.machine, id=f"{s.name}-{p.machine.name}") for s in subsystems().values() for p in s.pairs()]
ODD: dict[Any, tuple[Any, ...]] = {
    int: (-(2**63), -(2**31), -2, -1, 0, 1, 2**15, 2**31, 2**53, 2**63 - 1),
    str: ("", "x", "\0", "a-0"),
    bool: (False, True),
}


def raised(machine: Machine[Any], seeds: int = 3, steps: int = 25) -> set[str]:
    """What preconditions raise in reached states, where one argument of a drawn call is another value of its type."""
    found = set()
    for seed in range(seeds):
        rng = random.Random(seed)
        state = machine.initial(**draw_init(machine, rng.choice))
        for _ in range(steps):
            op = rng.choice([*machine.operations.values()])
            drawn = draw(machine, op, state, rng.choice)
            if drawn is None:
                continue
            for parameter, value in drawn.items():
                for odd in ODD.get(type(value), ()):
                    arguments = {**drawn, parameter: odd}
                    if op.beyond(arguments) or parameter in op.decoders:
                        continue
                    try:
                        machine.outside(op, state, arguments)
                    except Exception as e:
                        found.add(f"{op.name} {parameter}={odd!r}: {type(e).__name__}")
            step = machine.apply(state, op.name, drawn, contracts=False)
            state = step.state if isinstance(step, Step) else state
    return found


@pytest.mark.parametrize("machine", MACHINES)
def test_a_precondition_answers_whatever_the_arguments(machine: Machine[Any]) -> None:
    assert raised(machine) == set()
