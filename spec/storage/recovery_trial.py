"""Recovery: the arguments that engines try, and the refinement mapping onto the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.language.concrete import element
from kafkaspec.lockstep.exhaustive import Call, RefinementMapping
from kafkaspec.models.storage import recovery as model
from kafkaspec.spec.storage import recovery as spec

SIZES = {"Client": 2, "E": 3}
CLIENTS = {"a": element(model.Client, 0), "b": element(model.Client, 1)}
"""A client of the spec is an element of the model's sort."""

spec.machine.candidates |= {
    "client": lambda state: [*CLIENTS],
    "epoch": lambda state: [state.epoch + 1, state.epoch, state.epoch + 2, 1],
}
"""By parameter, the boundaries first; those of a parameter of `initial` are "init:parameter"."""


def to_model(state: spec.Recovery) -> dict[str, Any] | None:
    """The model's variables; None beyond its sizes."""
    holder = None if state.holder is None else CLIENTS[state.holder]
    return {"epoch": state.epoch, "holder": holder} if state.epoch <= SIZES["E"] else None


def calls(state: spec.Recovery, action: str, arguments: Mapping[str, Any]) -> list[Call]:
    """The calls that an action of the model stands for."""
    client = next(name for name, c in CLIENTS.items() if c == arguments["c"])
    return [(action, {"client": client, "epoch": arguments["e"]})]


REFINEMENTS = (RefinementMapping(model.Recovery, SIZES, to_model, calls),)
