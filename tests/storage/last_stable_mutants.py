"""Faults of the last_stable subsystem, each with the clause that it breaks."""

from __future__ import annotations

from kafkaspec.impl.storage import last_stable as impl
from kafkaspec.mutants.matrix import of_impl


class KeepsTheHolder(impl.LastStable):
    def claim(self, client: str, epoch: int) -> None:
        super().claim(self.claims[-1][1] if self.claims else client, epoch)


class AcceptsTheSameEpoch(impl.LastStable):
    def claim(self, client: str, epoch: int) -> None:
        if self.claims and epoch == self.claims[-1][0]:
            self.claims.pop()
        super().claim(client, epoch)


class LetsAnyHolderWrite(impl.LastStable):
    def may_write(self, client: str, epoch: int) -> bool:
        return (epoch, client) in self.claims


def faulty(make: type[impl.LastStable]) -> impl.Driver:
    """A driver of a faulty implementation."""
    driver = impl.Driver()
    driver.make = make
    driver.reset({})
    return driver


MUTANTS = [
    of_impl("first holder", "LSO-1", "the first client stays the holder", lambda: faulty(KeepsTheHolder)),
    of_impl("same epoch", "LSO-2", "the highest epoch is accepted again", lambda: faulty(AcceptsTheSameEpoch)),
    of_impl("any holder", "LSO-3", "who held it once may write", lambda: faulty(LetsAnyHolderWrite)),
]
