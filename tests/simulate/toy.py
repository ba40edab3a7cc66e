"""An adder asks a sum to add numbers, again and again until it is told that it was done; the sum keeps its total on a
disk. Sound, and with faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from kafkaspec.impl.common.disk import Crashed, SimulatedDisk
from kafkaspec.simulate import Ask, Boot, Effect, Faults, Message, Scenario, Send, SetTimer, Step, Timer, Violation

Event = Boot | Message | Timer | Ask
RETRY_MS = 50
FILE = "total"


class Add(NamedTuple):
    number: int
    amount: int


class Sum(NamedTuple):
    number: int


class Adder:
    """One number at a time."""

    def __init__(self) -> None:
        self.waiting: list[Add] = []
        self.asked = 0
        self.added = 0
        """what was confirmed"""

    def handle(self, event: Event) -> Sequence[Effect]:
        match event:
            case Ask(int(amount)):
                self.asked += 1
                self.waiting.append(Add(self.asked, amount))
            case Message(_, Sum(number)) if self.waiting and self.waiting[0].number == number:
                self.added += self.waiting.pop(0).amount
            case Message():
                return ()
        return [SetTimer("retry", RETRY_MS), *(Send("sum", a) for a in self.waiting[:1])]


class Total:
    """What was added, and the number of the last addition: one line in a file."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        text = disk.read(FILE).decode() if disk.exists(FILE) else ""
        self.last, self.total = map(int, text.split()) if text else (0, 0)

    def is_new(self, add: Add) -> bool:
        return add.number > self.last

    def flush(self) -> None:
        self.disk.flush(FILE + ".new")

    def handle(self, event: Event) -> Sequence[Effect]:
        match event:
            case Message(source, Add() as add):
                if self.is_new(add):
                    self.last, self.total = add.number, self.total + add.amount
                    self.disk.write(FILE + ".new", f"{self.last} {self.total}".encode())
                    self.flush()
                    self.disk.rename(FILE + ".new", FILE)
                    self.disk.flush_directory("")
                return [Send(source, Sum(add.number))]
        return ()


class AddsTwice(Total):
    """It does not know what it has added."""

    def is_new(self, add: Add) -> bool:
        return True


class Forgets(Total):
    """It does not flush."""

    def flush(self) -> None:
        pass


class Breaks(Total):
    """It cannot be asked for 3."""

    def is_new(self, add: Add) -> bool:
        if add.amount == 3:
            raise ZeroDivisionError("three")
        return super().is_new(add)


class Judge:
    """What is confirmed has been added, once."""

    def __init__(self) -> None:
        self.steps = 0

    def observe(self, step: Step, nodes: Mapping[str, Any]) -> Violation | None:
        self.steps += 1
        adder, total = nodes.get("adder"), nodes.get("sum")
        if adder is None or total is None:
            return None
        most = adder.added + sum(a.amount for a in adder.waiting[:1])
        if total.total > most:
            return Violation("added once", f"the total is {total.total}, {most} at most was asked for")
        if total.total < adder.added:
            return Violation("added", f"the total is {total.total}, and {adder.added} is confirmed")
        return None

    def settled(self, nodes: Mapping[str, Any]) -> Violation | None:
        waiting = len(nodes["adder"].waiting)
        return Violation("at rest", f"{waiting} not confirmed") if waiting else None

    def counts(self) -> Mapping[str, int]:
        return {"steps": self.steps}


def _add(rng: Random) -> tuple[str, Any]:
    return "adder", 1 + int(rng.random() * 3)


def _understands(node: str, what: Any) -> bool:
    return node == "adder" and isinstance(what, int)


def scenario(total: Callable[[SimulatedDisk], Any] = Total, **more: Any) -> Scenario:
    def boot(node: str, disk: Any, clock: object) -> Any:
        return Adder() if node == "adder" else total(disk)

    given: dict[str, Any] = {"faults": Faults(), "active_ms": 1000, "settle_ms": 1500} | more
    return Scenario(
        "toy",
        "an adder and a sum",
        ("adder", "sum"),
        boot,
        lambda node: SimulatedDisk() if node == "sum" else None,
        lambda: [Judge()],
        {"add": _add},
        mortal=("sum",),
        crashes=Crashed,
        understands=_understands,
        **given,
    )


SCENARIO = scenario()
ADDS_TWICE = scenario(AddsTwice)
FORGETS = scenario(Forgets)
BREAKS = scenario(Breaks)
