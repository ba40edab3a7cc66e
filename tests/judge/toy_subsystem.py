"""The toy as a subsystem that can be judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any, cast

from kafkaspec.contract.subsystem import Subsystem
from tests.judge.toy_target import build
from tests.lockstep import test_exhaustive, toy


def _to_model(state: toy.Queue) -> Mapping[str, Any] | None:
    beyond = state.capacity != 2 or max((*state.items, *(state.saved or ())), default=0) > 2
    return None if beyond else test_exhaustive.to_model(state)


HOW = replace(test_exhaustive.HOW, to_model=_to_model)


class JudgedToy(Subsystem):
    """What `judge` needs of a subsystem."""

    machine = build(toy.SHOWS_GARBAGE, toy.ANSWERS_EMPTY)

    def layer(self, layer: str, role: str = "") -> ModuleType | None:
        modules: dict[str, Any] = {
            "spec": SimpleNamespace(machine=self.machine, TITLE="Toy", PREFIX="TOY"),
            "spec trial": SimpleNamespace(REFINEMENTS=(HOW,)),
        }
        return cast(ModuleType | None, modules.get(f"{layer} {role}".strip()))


TOY = JudgedToy("toy", "lockstep")
