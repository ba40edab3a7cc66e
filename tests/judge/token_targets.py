"""Targets that choose numbers in their own way: `python -m tests.judge.token_targets NAME`. They import little."""

from __future__ import annotations

import shlex
import sys

from kafkaspec.impl.storage import producer_state_driver
from kafkaspec.judge.serve import serve
from kafkaspec.spec.storage.producer_state import machine


class Fourteens(producer_state_driver.Driver):
    """Its guards are 1400, 1386, 1372, ..."""

    def guard(self, n: int) -> int:
        return 1400 - 14 * (n - 1) if n else 0

    def number(self, guard: int) -> int:
        return 1 + (1400 - guard) // 14 if guard else 0

    def start_verification(self, *arguments: int) -> int:
        return self.guard(super().start_verification(*arguments))  # type: ignore[arg-type]

    def produce(self, *arguments: int) -> object:  # type: ignore[override]
        return super().produce(*arguments[:-1], self.number(arguments[-1]))  # type: ignore[arg-type, call-arg]


class TheSame(Fourteens):
    """Every verification has the same guard."""

    def guard(self, n: int) -> int:
        return 7 if n else 0

    def number(self, guard: int) -> int:
        return self.subject.guards if guard else 0


class Another(Fourteens):
    """A verification has another guard each time that it is asked for."""

    asked = 0

    def start_verification(self, *arguments: int) -> int:
        self.asked += 1
        return super().start_verification(*arguments) and 100_000 * self.asked

    def number(self, guard: int) -> int:
        return self.subject.guards if guard else 0


def command(driver: type[Fourteens]) -> str:
    """What starts it."""
    return shlex.join([sys.executable, "-m", "tests.judge.token_targets", driver.__name__])


if __name__ == "__main__":
    served = {"producer_state": (machine, globals()[sys.argv[1]]())}
    serve(served, sys.stdin.buffer, sys.stdout.buffer, sys.argv[1], "1")
