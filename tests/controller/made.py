"""What makes faulty managers of the controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kafkaspec.contract.machine import Machine
from kafkaspec.impl.controller.registry_driver import RegistryDriver
from kafkaspec.mutants.mutant import with_fault


def faulty_machine(machine: Machine[Any], operation: str, body: Callable[..., Any]) -> Callable[[], Machine[Any]]:
    """What makes the machine with another body for an operation."""
    return lambda: with_fault(machine, operation, body)


R = TypeVar("R", bound=RegistryDriver)


def deleting_one_more(driver: type[R]) -> type[R]:
    """A driver that deletes the snapshot at the epoch itself, too."""

    class Faulty(driver):  # type: ignore[valid-type, misc]
        def delete_snapshots_up_to(self, epoch: int) -> None:
            super().delete_snapshots_up_to(epoch + 1)

    return Faulty
