"""Any arguments of the right types: a precondition answers, whatever the others say of them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kafkaspec.contract.machine import Machine, Outside, Step
from kafkaspec.contract.subsystem import find, subsystems
from kafkaspec.lockstep.walk import draw, draw_init

MACHINES = [pytest.param(p.machine, id=f"{s.name}-{p.machine.name}") for s in subsystems().values() for p in s.pairs()]
ODD: dict[Any, tuple[Any, ...]] = {
    int: (-(2**63), -(2**31), -2, -1, 0, 1, 2**15, 2**31, 2**53, 2**63 - 1),
    str: ("", "x", "\0", "a-0"),
    bool: (False, True),
}


def asked(machine: Machine[Any], seeds: int = 6, steps: int = 40) -> dict[str, set[str]]:
    """Operation with such an argument -> what its preconditions raise in reached states, where one argument of a drawn
    call is another value of its type."""
    found: dict[str, set[str]] = {}
    for seed in range(seeds):
        rng = random.Random(seed)
        state = machine.initial(**draw_init(machine, rng.choice))
        for _ in range(steps):
            drawn = {op.name: draw(machine, op, state, rng.choice) for op in machine.operations.values()}
            for name, arguments in drawn.items():
                for parameter, value in (arguments or {}).items():
                    for odd in ODD.get(type(value), ()):
                        _ask(machine, name, state, {**(arguments or {}), parameter: odd}, parameter, found)
            name, arguments = rng.choice([(n, a) for n, a in drawn.items() if a is not None])
            step = machine.apply(state, name, arguments, contracts=False)
            state = step.state if isinstance(step, Step) else state
    return found


def _ask(
    machine: Machine[Any], name: str, state: Any, arguments: dict[str, Any], odd: str, found: dict[str, set[str]]
) -> None:
    op = machine.find(name)
    if op.beyond(arguments) or odd in op.decoders:
        return
    raised = found.setdefault(name, set())
    try:
        machine.outside(op, state, arguments)
    except Exception as e:
        raised.add(f"{odd}={arguments[odd]!r}: {type(e).__name__}")


@pytest.mark.parametrize("machine", MACHINES)
def test_the_preconditions_of_every_operation_answer_whatever_its_arguments(machine: Machine[Any]) -> None:
    found = asked(machine)
    assert {name: raised for name, raised in found.items() if raised} == {}
    with_one = {
        n for n, op in machine.operations.items() if any(op.annotations[p] in ODD for p in op.parameters.values())
    }
    assert with_one <= found.keys()


def test_a_word_that_is_not_known_breaks_its_own_clause() -> None:
    """Before it is looked up by another one: `check` called it a line that the spec cannot take."""
    cleaner, validator = (find(name).pairs()[0].machine for name in ("cleaner", "validator"))
    gauge = cleaner.apply(cleaner.initial(), "uncleanableBytes", {"dir": "x"})
    assert gauge == Outside("CLN-34", "the directory is one of the manager's")
    op, state = validator.find("validate"), validator.initial()
    drawn = draw(validator, op, state, random.Random(0).choice)
    assert drawn is not None
    unknown = validator.outside(op, state, {**drawn, "target_compression": "x", "origin": "CLIENT"})
    assert unknown is not None
    assert unknown.clause == "VAL-12"
