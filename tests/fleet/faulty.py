"""The toy as a subsystem, with an implementation that is wrong in two ways. Workers import this."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any, cast

from kafkaspec.contract.machine import Json, Refused
from kafkaspec.contract.subsystem import Subsystem
from kafkaspec.lockstep.exhaustive import RefinementMapping
from tests.lockstep import toy
from tests.lockstep.toy_model import ToyQueue


class Toy(Subsystem):
    """The toy, with an implementation that is right."""

    driver: type[toy.Driver] = toy.Driver

    def layer(self, layer: str, role: str = "") -> ModuleType | None:
        how = RefinementMapping(ToyQueue, {"V": 2, "L": 2}, _to_model, lambda *_: None, init={"capacity": 2})
        modules: dict[str, Any] = {
            "spec": SimpleNamespace(machine=toy.machine),
            "spec trial": SimpleNamespace(COVERAGE=how),
            "impl driver": SimpleNamespace(Driver=self.driver),
        }
        return cast(ModuleType | None, modules.get(f"{layer} {role}".strip()))


def _to_model(state: toy.Queue) -> Mapping[str, Any] | None:
    items, saved = list(state.items), list(state.saved or ())
    if max(len(items), len(saved)) > 2 or max(items + saved, default=0) > 2:
        return None
    return {"items": items, "saved": saved, "is_saved": state.saved is not None}


class Faulty(toy.ForgetsAfterRestore):
    """Wrong after a restore, and wrong on the tenth call of pop."""

    def reset(self, arguments: Mapping[str, Any]) -> None:
        super().reset(arguments)
        self.pops = 0
        self.shared = None

    def pop(self) -> Json | Refused:
        self.pops += 1
        answer = super().pop()
        return -1 if self.pops == 10 else answer


class FaultyToy(Toy):
    """The toy, with an implementation that is wrong."""

    driver = Faulty
