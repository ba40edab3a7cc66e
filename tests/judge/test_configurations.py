"""Every configuration of every machine is tried: a target is begun in each."""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

import orjson
import pytest

from kafkaspec.contract.machine import Machine
from kafkaspec.contract.numbers import within
from kafkaspec.contract.subsystem import Subsystem, subsystems
from kafkaspec.lockstep.walk import draw_init

NOT_TRIED = {
    ("timeline", "long"): "what a release does not have, and a target leaves out: no configuration of one",
    ("timeline", "int_"): "as above",
    ("timeline", "object_"): "as above",
}
SUBSYSTEMS = [pytest.param(s, id=name) for name, s in subsystems().items() if s.spec.machine.operations]


def parameters() -> Iterator[Any]:
    for name, s in subsystems().items():
        for p in inspect.signature(s.spec.machine.initial).parameters.values():
            yield pytest.param(name, s.spec.machine, p, id=f"{name} {p.name}")


@pytest.mark.parametrize(("name", "machine", "parameter"), parameters())
def test_each_parameter_has_values_on_both_sides(
    name: str, machine: Machine[Any], parameter: inspect.Parameter
) -> None:
    """Yes and no; each of what is to be chosen from; or the usual value and at least two others, of numbers also one
    that is less and one that is more."""
    candidates = machine.candidates.get(f"init:{parameter.name}")
    assert (candidates is None) == ((name, parameter.name) in NOT_TRIED)
    if candidates is None:
        return
    tried = list(candidates(machine.initial()))
    usual = parameter.default
    if isinstance(usual, bool):
        assert {*tried} == {True, False}
        return
    kind = get_type_hints(machine.initial).get(parameter.name)
    if get_origin(kind) is Literal:
        assert {*tried} == {*get_args(kind)}
        return
    hint = within(machine._numbered.get(parameter.name, (int, None))[0])
    room = 3 if hint is None else hint.most - hint.least + 1
    assert len({orjson.dumps(v, option=orjson.OPT_SORT_KEYS) for v in tried}) >= min(3, room)
    if isinstance(usual, int):
        numbers = [v for v in tried if v is not None]
        assert usual in numbers
        assert max(numbers) > usual or (hint is not None and usual == hint.most)
        assert min(numbers) < usual or (hint is not None and usual == hint.least)


@pytest.mark.parametrize("subsystem", SUBSYSTEMS)
def test_each_value_is_a_configuration(subsystem: Subsystem) -> None:
    machine = subsystem.spec.machine
    rng = random.Random(0)
    for _ in range(50):
        init = draw_init(machine, rng.choice)
        assert not machine.beyond(init)
        pair = subsystem.pairs()[0]
        driver = pair.driver()
        driver.reset(init)
        seen = orjson.loads(orjson.dumps(driver.observe(), default=float))
        assert seen == orjson.loads(orjson.dumps(machine.observe(machine.initial(**init)), default=float))
