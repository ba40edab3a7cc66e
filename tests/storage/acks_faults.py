"""A cluster as before KIP-966, whose high watermark rises while too few are in sync: a producer that asked for acks=all
is refused on arrival, or told so once its records are committed. The sound one and its faults, each a scenario that
`kafkaspec simulate tests/storage/acks_faults.py:NAME` runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.storage.replication_parts.broker import Broker, Config
from kafkaspec.impl.storage.replication_parts.messages import (
    NONE,
    NOT_ENOUGH,
    NOT_ENOUGH_AFTER_APPEND,
    ProduceRequest,
    ProduceResponse,
)
from kafkaspec.impl.storage.replication_simulation import BROKERS, Watch, cluster
from kafkaspec.simulate.scenario import Clock, Message, Send, Step, Violation
from tests.storage.replication_faults import Fault

ARRIVES = "with too few in sync nothing is appended for acks=all"
ANSWERED = "what is acknowledged is on at least min.insync.replicas"


class WantsThree(Broker):
    """No fault: min.insync.replicas is 3, so that there are too few often."""

    def __init__(self, name: str, disk: Disk, clock: Clock, config: Config) -> None:
        super().__init__(name, disk, clock, config._replace(min_in_sync=3))


class RisesWithTooFew(WantsThree):
    """No fault: the high watermark waits for those in sync, however few they are."""

    rises = False

    def raise_high_watermark(self) -> None:
        self.rises = True
        super().raise_high_watermark()

    def complete_produces(self) -> None:
        self.rises = False
        super().complete_produces()

    def are_enough(self, isr: Any) -> bool:
        rises, self.rises = self.rises, False
        return rises or super().are_enough(isr)


class AppendsWithTooFew(RisesWithTooFew):
    """A request is not refused on arrival: RPN-8."""

    def unable(self, leader_epoch: int) -> str:
        error = self.wrong_epoch(leader_epoch)
        return "" if error == NONE else error


class AnswersWithTooFew(RisesWithTooFew):
    """What is committed is acknowledged, however few are in sync: RPN-26."""

    def complete_produces(self) -> None:
        wanted, self.config = self.config, self.config._replace(min_in_sync=1)
        super().complete_produces()
        self.config = wanted


class AcksWatch(Watch):
    """Looks at what a leader appends, and what it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.told = dict.fromkeys((NOT_ENOUGH, NOT_ENOUGH_AFTER_APPEND), 0)

    def observe(self, step: Step, nodes: Mapping[str, Any]) -> Violation | None:
        name = step.node
        before = len(self.observer.replicas[name].log) if name in BROKERS else 0
        found = super().observe(step, nodes)
        if found is not None or name not in nodes or name not in BROKERS:
            return found
        broker, event = nodes[name], step.event
        least = broker.config.min_in_sync
        produces = type(event) is Message and type(event.body) is ProduceRequest
        if produces and broker.log.log_end > before and len(broker.isr) < least:
            return Violation(ARRIVES, f"{name} appends with {', '.join(broker.isr)} in sync")
        for e in step.effects:
            if type(e) is Send and type(e.body) is ProduceResponse:
                if e.body.error in self.told:
                    self.told[e.body.error] += 1
                has = [b for b, r in self.observer.replicas.items() if r.agreed > e.body.base_offset]
                if e.body.error == NONE and len(has) < least:
                    return Violation(ANSWERED, f"{name} acknowledges offset {e.body.base_offset}, which {has} have")
        return None

    def _enough(self, leader: Any) -> None:
        """Before KIP-966 a leader commits with too few in sync."""

    def counts(self) -> Mapping[str, int]:
        return {**super().counts(), **self.told}


SOUND = cluster("replication:before_kip_966", "as before KIP-966", broker=RisesWithTooFew, watch=AcksWatch)
STRICT = cluster("replication:with_kip_966", "the same with KIP-966", broker=WantsThree, watch=AcksWatch)
FAULTS = {
    name: Fault(
        cluster(f"replication:{name}", broker.__doc__ or "", broker=broker, watch=AcksWatch), "mixed", seed, rule
    )
    for name, broker, seed, rule in (
        ("appends_with_too_few", AppendsWithTooFew, 0, ARRIVES),
        ("answers_with_too_few", AnswersWithTooFew, 4, ANSWERED),
    )
}
globals().update({name: fault.scenario for name, fault in FAULTS.items()})
