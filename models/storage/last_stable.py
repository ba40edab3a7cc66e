"""Last stable: who may write when clients claim epochs in any order.

Written from the sentences, not from the spec: so one catches what is misread in the other.
"""

from __future__ import annotations

from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import Model, Range, Size, Sort, action, invariant, require, step, witness


class Client(Sort):
    """Anybody who claims epochs."""


E = Size("E")
"""The highest epoch that anybody claims."""
Epoch = Annotated[int, Range(0, E)]


class LastStable(Model):
    """`epoch` is the highest that was accepted, 0 for none; `holder` is who claimed it."""

    epoch: Epoch
    holder: Client | None

    @action("LSO-1", who="client")
    def claim(s, c: Client, e: Epoch) -> None:
        require(e > s.epoch)
        s.next.epoch = e
        s.next.holder = c

    @invariant("LSO-1", "LSO-3")
    def held_once_claimed(s) -> bool:
        return (s.holder is not None) == (s.epoch > 0)

    @step("LSO-2")
    def epochs_rise(s) -> bool:
        return s.next.epoch > s.epoch

    @witness
    def the_last_epoch_is_held(s, c: Client) -> bool:
        return s.epoch == E and s.holder == c


MODELS = [
    Expectation(
        LastStable,
        sizes={"Client": 2, "E": 3},
        distinct=7,
        generated=19,
        depth=2,
        deadlock=True,
        note="no epoch is left to claim",
    )
]
