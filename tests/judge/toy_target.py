"""The toy as a target: `python -m tests.judge.toy_target FAULT`. Many are started: it imports little."""

from __future__ import annotations

import os
import random
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import icontract

from kafkaspec.contract.machine import Exhaustive, Json, Machine, Refused, Step
from kafkaspec.judge.serve import Served, serve
from tests.lockstep import toy


def build(*deviations: Any) -> Machine[toy.Queue]:
    """The toy with an operation in which the system chooses."""
    machine = toy.build()

    @machine.operation("takeAny", "TOY-10", chosen=("which",))
    @icontract.require(lambda state, which: which < max(1, len(state.items)), "TOY-11 of those that are there")
    def take_any(state: toy.Queue, which: int) -> Step[toy.Queue]:
        if not state.items:
            return Step(state, Refused("TOY-5", toy.EMPTY, "the queue is empty"))
        items = (*state.items[:which], *state.items[which + 1 :])
        return Step(replace(state, items=items), state.items[which])

    machine.candidates["which"] = lambda state: Exhaustive(range(max(1, len(state.items))))
    machine.candidates["init:capacity"] = lambda state: (2, 3)
    machine.deviations += deviations
    return machine


EMPTY = Refused("", toy.EMPTY, "the queue is empty")


class Sound(toy.Driver):
    """Right. Of those that it may take, it takes one in the middle."""

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        return self.take_any(**arguments) if name == "takeAny" else super().apply(name, arguments)

    def take_any(self) -> Json | Refused:
        if not self.items:
            return EMPTY
        item = self.items[len(self.items) // 2]
        self.items.remove(item)
        return item


class TakesNone(Sound):
    """Wrong: it says that it took one, and did not."""

    def take_any(self) -> Json | Refused:
        return self.items[0] if self.items else EMPTY


class Forgets(toy.ForgetsAfterRestore, Sound):
    """Wrong after a restore."""

    def reset(self, arguments: Mapping[str, Any]) -> None:
        super().reset(arguments)
        self.shared = None


class ForgetsAndMiscounts(Forgets):
    """Wrong after a restore, and in what it answers to the second push."""

    def push(self, value: int) -> Json | Refused:
        answer = super().push(value)
        return answer if isinstance(answer, Refused) or answer < 2 else answer + 1


class Deviates(Sound):
    """As a released system that has the known deviation TOY-D2."""

    def pop(self) -> Json | Refused:
        return -1 if self.saved == [] and not self.items else super().pop()


class OfferedInPart(Sound):
    """It offers two values and one limit: its process ends if it is given others."""

    offers = {"values": {"push": {"value": [0, 7]}, "drain": {"atMost": [2]}}}

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        if arguments.get("value", 7) not in (0, 7) or arguments.get("at_most", 2) != 2:
            os._exit(3)
        return super().apply(name, arguments)


class ForgetsInPart(OfferedInPart, Forgets):
    """Wrong after a restore, and offered in part."""


class Dies(Sound):
    """Its process ends in the third restore of a history."""

    most = 3

    def reset(self, arguments: Mapping[str, Any]) -> None:
        super().reset(arguments)
        self.restores = 0

    def restore(self) -> Json | Refused:
        self.restores += 1
        if self.restores == self.most:
            print("that was one too many", file=sys.stderr, flush=True)
            os._exit(3)
        return super().restore()


class DiesWrongly(Dies, ForgetsAndMiscounts):
    """Wrong, and its process ends later."""

    most = 12


class MiscountsAndDies(Sound):
    """Wrong in what it answers to the second push, and its process ends in the next call."""

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        if self.wrong:
            os._exit(3)
        return super().apply(name, arguments)

    def reset(self, arguments: Mapping[str, Any]) -> None:
        super().reset(arguments)
        self.wrong = False

    def push(self, value: int) -> Json | Refused:
        answer = super().push(value)
        self.wrong = not isinstance(answer, Refused) and answer >= 2
        return 9 if self.wrong else answer


class Fickle(Sound):
    """Wrong only now and then, whatever it is asked."""

    random = random.Random(5)

    def push(self, value: int) -> Json | Refused:
        answer = super().push(value)
        return -5 if self.random.random() < 0.0005 else answer


class Fails(Sound):
    """It has a bug in its own code."""

    def drain(self, at_most: int = 2) -> Json:
        return [1 // at_most, *super().drain(at_most)][1:]


def command(fault: type[Sound]) -> str:
    """What starts it."""
    return shlex.join([sys.executable, "-m", "tests.judge.toy_target", fault.__name__])


def served(fault: str) -> dict[str, Served]:
    """What it serves."""
    return {"toy": (build(), globals()[fault]())}


if __name__ == "__main__":
    serve(served(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer, "toy", "1.0")
