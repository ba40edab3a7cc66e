"""Recovery: whoever claims a higher epoch than all before may write, and nobody else.

A small example, whole: replace it rule by rule, the sentence first, and with each sentence its source.
"""

from __future__ import annotations

from dataclasses import dataclass

from icontract import ensure, require

from kafkaspec.contract.machine import Machine, Refused
from kafkaspec.contract.numbers import LeaderEpoch

PREFIX = "REC"
TITLE = "Recovery"

SOURCE = "the example of `kafkaspec new`"
"""Of a rule of your own: a chapter, a KIP, a class of a release."""

STALE = Refused("REC-2", "StaleEpoch")


@dataclass(frozen=True)
class Recovery:
    """The state, and all that a recording shows of it."""

    epoch: int = 0
    """the highest that was accepted; 0 if none was"""
    holder: str | None = None
    """who claimed it"""


def initial() -> Recovery:
    """Nobody has claimed an epoch."""
    return Recovery()


def observe(state: Recovery) -> Recovery:
    """What is compared after every call."""
    return state


machine = Machine("recovery", initial, observe)


@machine.operation("claim")
@require(lambda epoch: epoch >= 1, "REC-1 epochs begin at 1")
@ensure(
    lambda state, epoch, result: isinstance(result, Refused) == (epoch <= state.epoch),
    "REC-2 refused if and only if it is not higher",
)
def claim(state: Recovery, client: str, epoch: LeaderEpoch) -> Recovery | Refused:
    """REC-1: A claim of an epoch above the highest one is accepted: it is the highest then, and the client holds it.
    [{SOURCE}]

    REC-2: A claim of an epoch that is not above the highest one is refused, and nothing changes. [{SOURCE}]
    """
    return Recovery(epoch, client) if epoch > state.epoch else STALE


@machine.question("mayWrite")
@ensure(lambda state, result: not result or state.holder is not None, "REC-3 nobody may before a claim")
def may_write(state: Recovery, client: str, epoch: LeaderEpoch) -> bool:
    """REC-3: A client may write with an epoch if and only if it is the highest one and the client holds
    it. [{SOURCE}]"""
    return (epoch, client) == (state.epoch, state.holder)
