"""Faults of the toy."""

from __future__ import annotations

from dataclasses import replace

from kafkaspec.contract.machine import Refused, Step
from kafkaspec.mutants.mutant import Mutant, with_fault
from tests.lockstep import toy


def pops_last(state: toy.Queue) -> Step[toy.Queue]:
    if not state.items:
        return Step(state, Refused("TOY-5", toy.EMPTY, "the queue is empty"))
    return Step(replace(state, items=state.items[:-1]), state.items[-1])


def saves_nothing(state: toy.Queue) -> Step[toy.Queue]:
    return Step(state)


MUTANTS = [
    Mutant(
        "pops the last",
        ("TOY-6",),
        "pop takes from the wrong end",
        "spec",
        lambda: with_fault(toy.machine, "pop", pops_last),
    ),
    Mutant(
        "saves nothing", ("TOY-7",), "save does nothing", "spec", lambda: with_fault(toy.machine, "save", saves_nothing)
    ),
    Mutant("shares", ("TOY-8",), "restore shares what was saved", "impl", toy.ForgetsAfterRestore, bug="KAFKA-0"),
    Mutant("a copy", ("TOY-8",), "restore copies twice", "impl", toy.Driver, survives="a second copy changes nothing"),
]

SURVIVORS = {
    "ToyQueue.restore: no effect 1": "whatever restore reaches, pushes and pops reach too; no claim says what it does",
}
