"""Faults of a cluster with eligible leader replicas, each a scenario that
`kafkaspec simulate tests/storage/eligible_faults.py:NAME` runs."""

from __future__ import annotations

from typing import Any

from kafkaspec.impl.management.checkpoints import replace_file
from kafkaspec.impl.storage.replication_parts.eligible import SHUT_DOWN, EligibleBroker, EligibleController
from kafkaspec.impl.storage.replication_simulation import eligible_cluster
from kafkaspec.simulate.choices import Schedule
from tests.storage.replication_faults import Fault


# ---- the controller
class ElectsAnybody(EligibleController):
    """If nobody is in sync, any replica is elected: RPN-24."""

    def candidates(self) -> list[str]:
        if self.isr:
            return super().candidates()
        self.eligible = self.replicas
        return [b for b in self.replicas if self._is_alive(b)]


class KeepsUnclean(EligibleController):
    """An unclean shutdown keeps the replica eligible: RPN-23."""

    def _restarted(self, broker: str, *, clean: bool) -> None:
        super()._restarted(broker, clean=True)


class KeepsEligible(EligibleController):
    """Replicas stay eligible when enough are in sync: RPN-22."""

    def eligible_of(self, left: tuple[str, ...], unclean: str) -> tuple[str, ...]:
        return tuple(b for b in left if b != unclean)


# ---- brokers
class CommitsAlone(EligibleBroker):
    """The high watermark rises with too few in sync: RPN-20. (KAFKA-15583)"""

    def are_enough(self, isr: Any) -> bool:
        return True


class SaysItWasClean(EligibleBroker):
    """A broker that crashed says that it was shut down cleanly: RPN-23."""

    def take_registration(self, source: str, body: Any) -> None:
        super().take_registration(source, body)
        if self.broker_epoch >= 0:
            replace_file(self.disk, SHUT_DOWN, b"%d" % self.broker_epoch)


class KeepsGaps(EligibleBroker):
    """A log that lacks offsets at the end of a segment goes on behind them, as Kafka's does."""

    def cut_at_gap(self) -> None:
        """Nothing."""


def _of(name: str, schedule: Schedule, first: int, rule: str, **parts: Any) -> Fault:
    """The title of a fault is the first sentence of its class."""
    ((_, faulty),) = parts.items()
    title = faulty.__doc__.splitlines()[0]
    return Fault(eligible_cluster(f"replication:ELIGIBLE:{name}", title, **parts), schedule, first, rule)


FAULTS = {
    f.scenario.name.rpartition(":")[2]: f
    for f in (
        _of("elects_not_eligible", "mixed", 5, "RPN-14", controller=ElectsAnybody),
        _of("keeps_unclean", "mixed", 9, "RPN-14", controller=KeepsUnclean),
        _of("keeps_eligible", "mixed", 0, "RPN-14", controller=KeepsEligible),
        _of("commits_alone", "mixed", 0, "RPN-14", broker=CommitsAlone),
        _of("says_it_was_clean", "mixed", 9, "RPN-14", broker=SaysItWasClean),
        _of("keeps_gaps", "mixed", 21, "RPN-9", broker=KeepsGaps),
    )
}
globals().update({name: fault.scenario for name, fault in FAULTS.items()})
