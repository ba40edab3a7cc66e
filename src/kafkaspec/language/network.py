"""Networks to build a model on: messages are records in the variable `net`, a set of at most N.

    class Protocol(Lossy):
        net: Annotated[set[Letter], Bounded(3)]

        @action(who="node")
        def answer(s, m: Annotated[Letter, Of("net")]) -> None:
            s.next.net = s.left(m) | {Letter(to=m.sender, ...)}

A set has no order, so whatever was sent may be received next: reordering is always there. (A channel that keeps the
order is a sequence.) What is left when a message was received, and what else may happen to one, is the network's:

Network       a message is received once
Lossy         the same, and any message may be lost
Duplicating   a message that was received stays, and may be received again
Unreliable    both: received any number of times, until it is lost
"""

from __future__ import annotations

from typing import Annotated, Any

from kafkaspec.language.model import Model, action, define
from kafkaspec.language.types import Of


class Network(Model):
    """Messages are received in any order, each once."""

    net: Any
    """The messages on their way; a subclass gives the type."""

    @define
    def left(s, m: Any) -> Any:
        """The messages that are left when `m` was received."""
        return s.net - {m}


class Lossy(Network):
    """Any message may be lost."""

    @action(who="network")
    def lose(s, m: Annotated[Any, Of("net")]) -> None:
        """A message is lost."""
        s.next.net = s.net - {m}


class Duplicating(Network):
    """A message may be received again."""

    @define
    def left(s, m: Any) -> Any:
        """All of them."""
        return s.net


class Unreliable(Duplicating, Lossy):
    """A message may be received any number of times, and may be lost."""
