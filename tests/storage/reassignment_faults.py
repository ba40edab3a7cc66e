"""Faults of a reassignment, each a scenario that
`kafkaspec simulate tests/storage/reassignment_faults.py:NAME` runs."""

from __future__ import annotations

from typing import Any

from kafkaspec.impl.storage.replication_parts.messages import PartitionRecord
from kafkaspec.impl.storage.replication_parts.reassignment import ReassigningBroker, ReassigningController
from kafkaspec.impl.storage.replication_simulation import AT_REST, ENOUGH, REPLICAS, TARGET, reassigning_cluster
from kafkaspec.simulate.choices import Schedule
from tests.storage.replication_faults import Fault


# ---- the controller
class CompletesEarly(ReassigningController):
    """The target is complete before those that were added are in sync: they count as in sync."""

    def complete(self) -> None:
        if self.is_reassigning:
            self.isr = tuple(b for b in self.replicas if b not in self.removing and self._is_alive(b))
        super().complete()


class CompletesWithAny(ReassigningController):
    """A reassignment ends as soon as one of the target is in sync."""

    def complete(self) -> None:
        stay = tuple(b for b in self.replicas if b not in self.removing)
        if self.is_reassigning and {*stay} & {*self.isr}:
            gone = self.removing
            self.isr = tuple(b for b in self.isr if b in stay)
            self.replicas, self.adding, self.removing = stay, (), ()
            self.remove(gone)


class RemovesFirst(ReassigningController):
    """Whoever is to go is removed before the others are there."""

    def complete(self) -> None:
        gone = self.removing
        self.replicas = tuple(b for b in self.replicas if b not in gone)
        alive = tuple(b for b in self.replicas if self._is_alive(b))
        self.isr = tuple(b for b in self.isr if b not in gone) or alive
        self.removing = ()
        if {*self.replicas} <= {*self.isr}:
            self.adding = ()
        self.remove(gone)


class NeverCompletes(ReassigningController):
    """Nobody looks whether the target is in sync when the leader takes somebody in."""

    def _set_isr(self, isr: tuple[str, ...]) -> None:
        self.isr = isr


class LeaderStays(ReassigningController):
    """A leader that is not in the target leads on."""

    def remove(self, gone: tuple[str, ...]) -> None:
        if gone:
            self.leader_epoch += 1


class CancelKeepsTheAdded(ReassigningController):
    """After the way back those that were being added are in sync yet."""

    def cancel(self) -> None:
        isr = self.isr
        super().cancel()
        if not self.is_reassigning:
            self.isr = isr


class CancelLeavesHalf(ReassigningController):
    """After the way back those that were to be removed are to be removed yet."""

    def cancel(self) -> None:
        removing = self.removing
        super().cancel()
        if not self.is_reassigning:
            self.removing = removing


# ---- brokers
class CountsTheRemoved(ReassigningBroker):
    """A replica that was removed goes on to fetch, and is counted: for the high watermark and min.insync.replicas."""

    def stop(self) -> None:
        """Nothing."""

    def assign(self, replicas: tuple[str, ...]) -> None:
        super().assign((*replicas, *(b for b in self.config.replicas if b not in replicas)))

    def take_metadata(self, source: str, body: PartitionRecord) -> None:
        before, version = self.isr, self.partition_epoch
        super().take_metadata(source, body)
        if self.partition_epoch > version:
            gone = tuple(b for b in before if b in self.config.replicas and b not in body.replicas)
            self.isr = (*self.isr, *(b for b in gone if b not in self.isr))


class CommitsWithTooFew(ReassigningBroker):
    """The high watermark rises with fewer than min.insync.replicas in sync."""

    def are_enough(self, isr: Any) -> bool:
        return True


class FetchesOn(ReassigningBroker):
    """An answer to a fetch counts after the replica was stopped."""

    def stop(self) -> None:
        asked = self.correlation
        super().stop()
        self.correlation = asked


class WaitsForAnEpoch(ReassigningBroker):
    """A replica that is added fetches with the next leader epoch first."""

    new = False

    def assign(self, replicas: tuple[str, ...]) -> None:
        self.new = self.name in replicas and self.name not in self.config.replicas
        super().assign(replicas)

    def fetch(self) -> None:
        if not self.new:
            super().fetch()

    def become_follower(self) -> None:
        self.new = False
        super().become_follower()


def _of(name: str, schedule: Schedule, first: int, rule: str, **parts: Any) -> Fault:
    """The title of a fault is the first sentence of its class."""
    ((_, faulty),) = parts.items()
    title = faulty.__doc__.splitlines()[0]
    return Fault(reassigning_cluster(f"replication:REASSIGNING:{name}", title, **parts), schedule, first, rule)


FAULTS = {
    f.scenario.name.rpartition(":")[2]: f
    for f in (
        _of("completes_early", "mixed", 0, "RPN-14", controller=CompletesEarly),
        _of("completes_with_any", "mixed", 0, TARGET, controller=CompletesWithAny),
        _of("removes_first", "mixed", 0, "RPN-14", controller=RemovesFirst),
        _of("never_completes", "mixed", 0, AT_REST, controller=NeverCompletes),
        _of("leader_stays", "mixed", 1, REPLICAS, controller=LeaderStays),
        _of("cancel_keeps_the_added", "mixed", 16, REPLICAS, controller=CancelKeepsTheAdded),
        _of("cancel_leaves_half", "mixed", 18, TARGET, controller=CancelLeavesHalf),
        _of("counts_the_removed", "mixed", 0, AT_REST, broker=CountsTheRemoved),
        _of("commits_with_too_few", "mixed", 1, ENOUGH, broker=CommitsWithTooFew),
        _of("fetches_on", "mixed", 14, "RPN-12", broker=FetchesOn),
        _of("waits_for_an_epoch", "mixed", 3, AT_REST, broker=WaitsForAnEpoch),
    )
}
globals().update({name: fault.scenario for name, fault in FAULTS.items()})
