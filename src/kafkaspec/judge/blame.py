"""Which rule was broken? The one that, decided otherwise, explains what was seen.

A call was answered in another way than the spec's. Every condition that the spec decided in that call is decided
otherwise, one at a time: at its boundary, then altogether. Where the spec then says what was seen, the clause of that
condition is the broken rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from icontract import ViolationError

from kafkaspec.contract.machine import Json, Machine, Operation, Outside
from kafkaspec.judge.check import outcome_matches
from kafkaspec.judge.cover import SIDES, Site, otherwise, watched
from kafkaspec.lockstep.compare import same

NO_ANSWER = (ViolationError, TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError, ArithmeticError)
"""What a spec may raise when one of its conditions is decided otherwise."""


class Blame(NamedTuple):
    """A condition that explains what was seen, and how it would have to be decided."""

    site: Site
    how: str
    """"at its boundary", or "the other way" """

    def __str__(self) -> str:
        return f"as if `{self.site.text}` were decided otherwise {self.how} ({self.site.where})"


def blamed(
    machine: Machine[Any],
    state: Any,
    operation: Operation[Any],
    arguments: Mapping[str, Any],
    seen: Mapping[str, Json],
    shown: Json = None,
) -> list[Blame]:
    """The conditions that explain an answer (`result`, or `error`) and the state after it, where that was recorded."""

    def explains() -> bool:
        step = operation.direct(state, arguments)
        if isinstance(step, Outside) or not outcome_matches(step.result, seen):
            return False
        return shown is None or same(machine.observe(step.state), shown)

    return list(_explaining(machine, explains))


def _explaining(machine: Machine[Any], explains: Callable[[], bool]) -> Iterator[Blame]:
    with watched(machine) as cover:
        cover.taken.clear()
        explains()
        numbers = sorted({side // SIDES for side in cover.taken})
        found: list[Blame] = []
        for how in ("at its boundary", "the other way"):
            for n in numbers:
                if how == "at its boundary" and cover.sites[n].kind != "order":
                    continue
                try:
                    with otherwise(machine, n, shifted=how == "at its boundary"):
                        if explains():
                            found.append(Blame(cover.sites[n], how))
                except NO_ANSWER:
                    continue
        yield from found
