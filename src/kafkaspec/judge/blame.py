"""Which rule was broken? The one that, decided otherwise, explains what was seen.

A call was answered in another way than the spec's. Every condition that the spec decided in that call is decided
otherwise, one at a time: at its boundary, then altogether. Where the spec then says what was seen, the clause of that
condition is the broken rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from kafkaspec.contract.machine import Json, Machine, Operation, Outside
from kafkaspec.judge.check import outcome_matches
from kafkaspec.judge.cover import SIDES, Site, otherwise, watched
from kafkaspec.lockstep.compare import same

BOUNDARY: Final = "the other way where both are equal"
OTHER: Final = "the other way"


class Blame(NamedTuple):
    """A condition that explains what was seen, and how it would have to be decided."""

    site: Site
    how: str

    def __str__(self) -> str:
        return f"`{self.site.text}` were decided {self.how} ({self.site.where})"


def blamed(
    machine: Machine[Any],
    state: Any,
    operation: Operation[Any],
    arguments: Mapping[str, Any],
    seen: Mapping[str, Json],
    shown: Json = None,
) -> list[Blame]:
    """The conditions that explain an answer (`result`, or `error`) and the state after it, where that was recorded: the
    nearest first. Nearest is a boundary, then a condition of the operation's own."""

    def explains() -> bool:
        step = operation.direct(state, arguments)
        if isinstance(step, Outside) or not outcome_matches(step.result, seen):
            return False
        return shown is None or same(machine.observe(step.state), shown)

    def far(blame: Blame) -> tuple[bool, bool]:
        return blame.how != BOUNDARY, blame.site.function != operation.body.__qualname__

    return sorted(_explaining(machine, explains), key=far)


def _explaining(machine: Machine[Any], explains: Callable[[], bool]) -> Iterator[Blame]:
    """Each condition that the call decides, and that decided otherwise explains."""
    with watched(machine) as cover:
        cover.taken.clear()
        explains()
        numbers = sorted({side // SIDES for side in cover.taken})
        for n in numbers:
            for how in (BOUNDARY, OTHER) if cover.sites[n].kind == "order" else (OTHER,):
                with otherwise(machine, n, shifted=how == BOUNDARY):
                    try:
                        found = explains()
                    except Exception:  # with a condition decided otherwise, a spec may raise anything
                        continue
                if found:
                    yield Blame(cover.sites[n], how)
                    break
