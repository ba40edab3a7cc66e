"""What drivers of the controller's managers share: each is over a registry of snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafkaspec.contract.machine import ByName
from kafkaspec.impl.controller.timeline import SnapshotRegistry
from kafkaspec.spec.common.snapshots import NONE_YET

V = TypeVar("V")


class RegistryDriver(ByName):
    """A manager over a registry of its own."""

    registry: SnapshotRegistry

    def get_or_create_snapshot(self, epoch: int) -> None:
        self.registry.get_or_create_snapshot(epoch)

    def revert_to_snapshot(self, epoch: int) -> None:
        self.registry.revert_to_snapshot(epoch)

    def delete_snapshots_up_to(self, epoch: int) -> None:
        self.registry.delete_snapshots_up_to(epoch)

    def past(self, view: Callable[[int], V]) -> tuple[tuple[int, V], ...]:
        """What there was at each snapshot."""
        return tuple((epoch, view(epoch)) for epoch in self.registry.epochs)

    def highest(self) -> int:
        """The highest epoch used."""
        return max(NONE_YET, self.registry.highest_epoch)
