"""What a manager of the controller keeps, and what it was at each snapshot of its registry, as full copies.

Nothing here is a rule of its own; how Kafka avoids the copying is TML. Source: Kafka Internals, ch. 11, "Timeline data
structures".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Generic, Self, TypeVar

from kafkaspec.contract.codec import replace
from kafkaspec.contract.numbers import Within

V = TypeVar("V")

Epoch = Annotated[int, Within(-1, 2**62)]
"""of a snapshot: an offset, or -1 before the first one"""
NONE_YET = -2
"""below every epoch"""


@dataclass(frozen=True, kw_only=True)
class SnapshotState(Generic[V]):
    """The present, and the past."""

    present: V
    past: tuple[tuple[int, V], ...] = ()
    """by rising epochs"""
    highest: int = NONE_YET
    """the highest epoch used"""

    @property
    def epochs(self) -> list[int]:
        """The epochs of all snapshots, rising."""
        return [epoch for epoch, _ in self.past]

    def past_at(self, epoch: int) -> V | None:
        """What there was at a snapshot."""
        return dict(self.past).get(epoch)

    def with_snapshot(self, epoch: int) -> Self:
        """With a snapshot of the present at a new epoch."""
        return replace(self, past=(*self.past, (epoch, self.present)), highest=epoch)

    def reverted(self, epoch: int) -> Self:
        """As it was at a snapshot; later ones are forgotten."""
        kept = self.past[: self.epochs.index(epoch) + 1]
        return replace(self, present=kept[-1][1], past=kept, highest=epoch)

    def without_below(self, epoch: int) -> Self:
        """Without the snapshots below an epoch."""
        return replace(self, past=tuple(p for p in self.past if p[0] >= epoch))

    def begun_again(self, present: V) -> Self:
        """After a reset: without snapshots."""
        return replace(self, present=present, past=(), highest=NONE_YET)
