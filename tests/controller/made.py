"""What tests of the controller's managers share: what makes faulty ones, and spec beside implementation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from kafkaspec.contract.machine import ByName, Machine, Outside
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


class Beside:
    """A manager, called by name; every call has its contracts, and the implementation beside it."""

    machine: ClassVar[Machine[Any]]
    driver_type: ClassVar[type[ByName]]
    state: Any

    def __init__(self, **config: Any) -> None:
        self.state = self.machine.initial(**config)
        self.driver = self.driver_type()
        self.driver.reset(config)

    def __call__(self, name: str, /, **arguments: Any) -> Any:
        step = self.machine.apply(self.state, name, arguments)
        assert not isinstance(step, Outside), step
        self.state = step.state
        assert self.driver.apply(name, arguments) == step.result
        assert self.driver.state() == step.state
        assert self.driver.observe() == self.machine.observe(step.state)
        return step.result
