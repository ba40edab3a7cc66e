"""A toy subsystem to test the engines with: a bounded queue that can be saved and restored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import icontract

from kafkaspec.contract.deviation import Deviation
from kafkaspec.contract.machine import Fields, Json, Machine, Refused, Step
from tests.toy_impl import EMPTY, FULL, Driver, ForgetsAfterRestore

__all__ = ["EMPTY", "FULL", "Driver", "ForgetsAfterRestore"]


@dataclass(frozen=True)
class Queue:
    """What is queued, what was saved, and how many times something was refused because the queue was full."""

    items: tuple[int, ...] = ()
    saved: tuple[int, ...] | None = None
    capacity: int = 3
    turned_away: int = 0


def initial(capacity: int = 3) -> Queue:
    return Queue(capacity=capacity)


def observe(state: Queue) -> Json:
    saved = None if state.saved is None else list(state.saved)
    return Fields(items=list(state.items), saved=saved, turnedAway=state.turned_away, full=full(state))


def full(state: Queue) -> bool:
    return len(state.items) == state.capacity


def build(name: str = "toy") -> Machine[Queue]:
    """A machine of its own for each test that spoils one."""
    machine = Machine(name, initial, observe)

    @machine.operation("push", "TOY-1")
    @icontract.require(lambda value: value >= 0, "TOY-2 values are not negative")
    @icontract.ensure(
        lambda state, result: full(state) or len(result.state.items) == len(state.items) + 1, "TOY-1 one more"
    )
    def push(state: Queue, value: int) -> Step[Queue]:
        if full(state):
            return Step(replace(state, turned_away=state.turned_away + 1), Refused("TOY-3", FULL))
        return Step(replace(state, items=(*state.items, value)), len(state.items) + 1)

    @machine.operation("pop", "TOY-4")
    @icontract.ensure(
        lambda state, result: isinstance(result.result, Refused) or result.result == state.items[0],
        "TOY-6 the oldest first",
    )
    def pop(state: Queue) -> Step[Queue]:
        if not state.items:
            return Step(state, Refused("TOY-5", EMPTY, "the queue is empty"))
        return Step(replace(state, items=state.items[1:]), state.items[0])

    @machine.operation("save", "TOY-7")
    def save(state: Queue) -> Step[Queue]:
        return Step(replace(state, saved=state.items))

    @machine.operation("restore", "TOY-8")
    def restore(state: Queue) -> Step[Queue]:
        if state.saved is None:
            return Step(state, Refused("TOY-9", FULL, "nothing saved"))
        return Step(replace(state, items=state.saved))

    @machine.operation("drain", "TOY-4")
    def drain(state: Queue, at_most: int = 2) -> Step[Queue]:
        return Step(replace(state, items=state.items[at_most:]), list(state.items[:at_most]))

    machine.candidates["value"] = lambda state: (0, 1, 7)
    machine.candidates["at_most"] = lambda state: (0, 1, 2)
    return machine


machine = build()


def _pushes_twice(ghost: int, state: Queue, op: str, arguments: Mapping[str, Any], result: Json, seen: Json) -> Any:
    if op == "pop" and ghost >= 2 and not isinstance(result, Refused):
        return result, Fields(seen, items=[*seen["items"], -1])
    return result, seen


SHOWS_GARBAGE = Deviation(
    id="TOY-D1",
    clause="TOY-6",
    title="after two restores, a pop shows garbage",
    versions="1.0",
    condition="two restores since the start, at a pop that answers",
    history=("push value=1", "save", "restore", "restore", "pop"),
    cause="the slot is not cleared",
    effect="the state shows -1 at the end",
    fix="clear the slot",
    initial=lambda: 0,
    advance=lambda ghost, before, op, arguments, after: ghost + (op == "restore"),
    rewrite=_pushes_twice,
)
ANSWERS_EMPTY = Deviation(
    id="TOY-D2",
    clause="TOY-5",
    title="pop of an empty queue answers -1",
    versions="1.0",
    condition="the queue was saved when empty",
    history=("save", "pop"),
    cause="a missing check",
    effect="-1 instead of an exception",
    fix="check",
    rewrite=lambda ghost, state, op, arguments, result, seen: (
        (-1, seen) if op == "pop" and isinstance(result, Refused) and state.saved == () else (result, seen)
    ),
)
