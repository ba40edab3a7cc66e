"""Recovery, kept as the list of the claims that were accepted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.machine import ByName
from kafkaspec.spec.storage import recovery as spec


class StaleEpochError(Exception):
    """The epoch is not above the highest one."""


class Recovery:
    """Claims in the order in which they were accepted: each with its epoch and its client."""

    def __init__(self) -> None:
        self.claims: list[tuple[int, str]] = []

    def claim(self, client: str, epoch: int) -> None:
        """Whoever claims may write from then on. Raises StaleEpochError. [REC-1, REC-2]"""
        if self.claims and epoch <= self.claims[-1][0]:
            raise StaleEpochError
        self.claims.append((epoch, client))

    def may_write(self, client: str, epoch: int) -> bool:
        """Whether this was the last claim. [REC-3]"""
        return self.claims[-1:] == [(epoch, client)]


class Driver(ByName):
    """Our implementation, walked against the spec."""

    machine = spec.machine
    refusals = {StaleEpochError: spec.STALE}
    make: type[Recovery] = Recovery

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.subject = self.make()

    def state(self) -> spec.Recovery:
        """The spec's state that the list stands for."""
        claims = self.subject.claims
        return spec.Recovery(*claims[-1]) if claims else spec.Recovery()
