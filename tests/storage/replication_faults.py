"""Faults of a cluster, each a scenario that `kafkaspec simulate tests/storage/replication_faults.py:NAME` runs. Those
with a ticket or a KIP were Kafka's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple

from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.storage.batch import MAGIC_AT, Batch, Encoder
from kafkaspec.impl.storage.log import LogConfig
from kafkaspec.impl.storage.replication_parts.broker import FETCH_MS, Broker, Follower
from kafkaspec.impl.storage.replication_parts.clients import Consumer, Producer
from kafkaspec.impl.storage.replication_parts.controller import Controller
from kafkaspec.impl.storage.replication_parts.messages import (
    NOBODY,
    NONE,
    AlterPartitionRequest,
    FetchRequest,
    FetchResponse,
    PartitionRecord,
    ProduceRequest,
)
from kafkaspec.impl.storage.replication_simulation import AT_REST, CONSUMER, ENOUGH, FENCED, LOG, cluster
from kafkaspec.impl.storage.segment import headers
from kafkaspec.simulate.choices import Schedule
from kafkaspec.simulate.scenario import Scenario, Send, SetTimer
from kafkaspec.simulate.world import NODE_FAILED
from kafkaspec.spec.common.record_format import CONTROL, TRANSACTIONAL
from kafkaspec.spec.storage.replication_parts.observer import ACKNOWLEDGED, ONCE


# ---- the controller
class ElectsAnybody(Controller):
    """An unclean election: RPN-1. (KAFKA-13162)"""

    def candidates(self) -> list[str]:
        return super().candidates() or [b for b in self.replicas if self._is_alive(b)]

    def _elect(self) -> None:
        super()._elect()
        if self.leader and self.leader not in self.isr:
            self.isr = (self.leader,)


class TakesFromAnyLeader(Controller):
    """It takes any change of those in sync, also from a leader that was deposed: RPN-10. (KIP-497)"""

    def wrong(self, source: str, body: AlterPartitionRequest) -> str:
        return NONE


# ---- followers
class TruncatesToHighWatermark(Broker):
    """A follower truncates to its high watermark: RPN-4. (before KIP-101)"""

    def become_follower(self) -> None:
        self.cut(self.high_watermark)
        super().become_follower()

    def diverging(self, body: FetchRequest) -> None:
        return None


class AcknowledgesFirst(Broker):
    """It fetches on before it has written what it got."""

    later: FetchResponse | None = None

    def take_records(self, source: str, body: FetchResponse) -> None:
        if body.records and body.correlation == self.correlation and self.later is None and not self.leads:
            self.later = body
            *_, last = headers(body.records)
            self._fetch_from(last.last_offset + 1, body.leader_epoch)
            self.effects.append(SetTimer("write", FETCH_MS))
        else:
            super().take_records(source, body)

    def fetch(self) -> None:
        if self.later is None:
            super().fetch()

    def __init__(self, *more: Any) -> None:
        super().__init__(*more)
        self.timers["write"] = self.write

    def write(self) -> None:
        body, self.later = self.later, None
        if body is not None and not self.leads and body.leader_epoch == self.leader_epoch:
            self.append(body)
            self.fetch()


class LeavesTruncationsToChance(Broker):
    """A truncation is not flushed, and a power failure brings back what was cut, as in Kafka: REC-15, LDR-8."""

    def cut(self, end: int) -> None:
        self.log.truncate_to(min(end, self.log.log_end))


class NeverTruncates(Broker):
    """What differs from the leader's log stays: RPN-15."""

    def diverging(self, body: FetchRequest) -> None:
        return None


# ---- leaders
class LeadsByItself(Broker):
    """Where nobody leads, a broker that is in sync does: RPN-3."""

    def take_metadata(self, source: str, body: PartitionRecord) -> None:
        alone = body.leader == NOBODY and self.name in body.isr
        super().take_metadata(source, body._replace(leader=self.name) if alone else body)


class LowersHighWatermark(Broker):
    """The high watermark follows a follower that has fallen back: RPN-9."""

    def raise_high_watermark(self) -> None:
        super().raise_high_watermark()
        ends = [f.log_end for name, f in self.followers.items() if name in self.maximal_isr]
        self.log.update_high_watermark(max(0, min([self.high_watermark, *ends])))


class ExpandsEarly(Broker):
    """A follower is in sync with its first fetch: RPN-11."""

    def reaches(self, known: Follower) -> bool:
        return known.log_end >= 0


class ExpandsAtHighWatermark(Broker):
    """A follower is in sync before the leader's own epoch: RPN-11. (KAFKA-7128)"""

    def reaches(self, known: Follower) -> bool:
        return known.log_end >= self.high_watermark


class IgnoresPendingRemoval(Broker):
    """The high watermark passes a follower that is about to leave those in sync: RPN-9. (KIP-497)"""

    @property
    def maximal_isr(self) -> set[str]:
        return {*(self.pending.isr if self.pending is not None else self.isr)}


class AnswersAnyEpoch(Broker):
    """A fetch of another epoch is answered and counted: RPN-18. (KIP-320)"""

    def wrong_epoch(self, epoch: int) -> str:
        return super().wrong_epoch(self.leader_epoch)


class AcknowledgesItsOwn(Broker):
    """acks=all is acks=1."""

    def required(self, last_offset: int) -> int:
        return 0


class IgnoresMinimum(Broker):
    """A leader commits and acknowledges however few are in sync: RPN-9, RPN-26. (KIP-966)"""

    def are_enough(self, isr: Collection[str]) -> bool:
        return True


class TellsLogEnd(Broker):
    """A consumer is told the log end as the high watermark: RPN-9."""

    def take_fetch(self, source: str, body: FetchRequest) -> None:
        super().take_fetch(source, body)
        for n, e in enumerate(self.effects):
            if source == CONSUMER and type(e) is Send and type(e.body) is FetchResponse and e.body.error == NONE:
                self.effects[n] = Send(e.target, e.body._replace(high_watermark=self.log.log_end))


class ShowsAll(Broker):
    """Consumers see what is not committed: RPN-12."""

    def take_fetch(self, source: str, body: FetchRequest) -> None:
        super().take_fetch(source, body)
        of_consumer = source not in self.config.replicas and self.wrong_epoch(body.leader_epoch) == NONE
        if of_consumer and self.high_watermark <= body.offset < self.log.log_end:
            found = self.log.read(body.offset, 1000, "LOG_END", True).records
            self.effects.pop()
            self.send(source, FetchResponse(body.correlation, NONE, self.leader_epoch, self.high_watermark, found))


# ---- clients
class SeveralInFlight(Producer):
    """Three batches at a time (see the class)."""

    most_in_flight = 3


class CountsAgain(Producer):
    """A batch that is sent again gets the next sequence."""

    def go_on(self) -> None:
        if self.waiting and self.sent and self.waiting[0].base_sequence + self.waiting[0].count == self.sequence:
            again = self.waiting[0]
            self.batches[again.base_sequence] = replace(again)
            again.base_sequence, again.records = self.sequence, self.encoded(self.sequence, again.count)
            self.batches[self.sequence] = again
            self.sequence += again.count
        super().go_on()


class ReadsTwice(Consumer):
    """It begins again with a new leader."""

    def look_for_leader(self) -> None:
        super().look_for_leader()
        self.position = 0


# ---- values
def other_values(records: bytes) -> bytes:
    """The same batches with other values, and the checksums of these."""
    out = bytearray(records)
    for h in headers(records):
        end = h.position + h.size
        if not h.attributes & CONTROL:
            batch = Encoder(
                producer_id=h.producer_id,
                producer_epoch=h.producer_epoch,
                base_sequence=h.base_sequence,
                transactional=bool(h.attributes & TRANSACTIONAL),
            )
            for r in Batch(records[h.position : end], h.position).records():
                batch.append(r.timestamp, r.key, bytes(b ^ 1 for b in r.value or b""))
            out[h.position + MAGIC_AT : end] = batch.finish()[MAGIC_AT:]
    return bytes(out)


class StoresOtherValues(Broker):
    """A leader appends other values than it was sent."""

    def produce(self, source: str, body: ProduceRequest) -> str:
        return super().produce(source, body._replace(records=other_values(body.records)))


class CopiesOtherValues(Broker):
    """A follower appends other values than it fetched: RPN-15."""

    def append(self, body: FetchResponse) -> None:
        super().append(body._replace(records=other_values(body.records)))


class ReadsOtherValues(Consumer):
    """It takes other values from what it fetched."""

    def take(self, source: str, body: Any) -> None:
        super().take(source, body._replace(records=other_values(body.records)) if type(body) is FetchResponse else body)


# ---- disks
class LyingDisk(SimulatedDisk):
    """It says that it has flushed a log, and has not."""

    def flush(self, path: str) -> None:
        if not path.endswith(".log"):
            super().flush(path)

    def crash(self, keep_names: Any, keep_content: Any) -> LyingDisk:
        left = super().crash(keep_names, keep_content)
        return LyingDisk(left.names, left.durable_names)


class Fault(NamedTuple):
    """A scenario with a fault; by which schedule it is found, by which seed first, and which rule that one breaks."""

    scenario: Scenario
    schedule: Schedule
    first: int
    rule: str


def _of(name: str, schedule: Schedule, first: int, rule: str, **parts: Any) -> Fault:
    """The title of a fault is the first sentence of its class."""
    classes = [p for p in parts.values() if isinstance(p, type)]
    doc = classes[0].__doc__ if classes else "Nothing is flushed: Kafka's default."
    assert doc is not None
    return Fault(cluster(f"replication:{name}", doc.splitlines()[0], **parts), schedule, first, rule)


UNFLUSHED = LogConfig(**{**LOG.__dict__, "flush_messages": 2**63 - 1})

FAULTS = {
    f.scenario.name.partition(":")[2]: f
    for f in (
        _of("elects_anybody", "swarm", 5, "RPN-14", controller=ElectsAnybody),
        _of("takes_from_any_leader", "mixed", 9, FENCED, controller=TakesFromAnyLeader),
        _of("truncates_to_high_watermark", "mixed", 0, "RPN-14", broker=TruncatesToHighWatermark),
        _of("acknowledges_first", "mixed", 0, "RPN-9", broker=AcknowledgesFirst),
        _of("never_truncates", "mixed", 0, NODE_FAILED, broker=NeverTruncates),
        _of("leads_by_itself", "mixed", 0, "RPN-3", broker=LeadsByItself),
        _of("lowers_high_watermark", "mixed", 0, "RPN-9", broker=LowersHighWatermark),
        _of("expands_early", "mixed", 3, "RPN-14", broker=ExpandsEarly),
        _of("expands_at_high_watermark", "priority", 58, "RPN-14", broker=ExpandsAtHighWatermark),
        _of("ignores_pending_removal", "mixed", 2, "RPN-14", broker=IgnoresPendingRemoval),
        _of("answers_any_epoch", "mixed", 0, "RPN-14", broker=AnswersAnyEpoch),
        _of("acknowledges_its_own", "mixed", 0, ACKNOWLEDGED, broker=AcknowledgesItsOwn),
        _of("shows_all", "mixed", 0, "RPN-12", broker=ShowsAll),
        _of("ignores_minimum", "mixed", 4, ENOUGH, broker=IgnoresMinimum),
        _of("tells_log_end", "mixed", 0, "RPN-9", broker=TellsLogEnd),
        _of("several_in_flight", "mixed", 6, ONCE, producer=SeveralInFlight),
        _of("counts_again", "mixed", 0, AT_REST, producer=CountsAgain),
        _of("reads_twice", "mixed", 0, "RPN-12", consumer=ReadsTwice),
        _of("lying_disk", "mixed", 0, "RPN-14", disk=LyingDisk),
        _of("unflushed", "mixed", 0, "RPN-14", log=UNFLUSHED),
        _of("stores_other_values", "mixed", 0, ACKNOWLEDGED, broker=StoresOtherValues),
        _of("copies_other_values", "mixed", 0, "RPN-14", broker=CopiesOtherValues),
        _of("reads_other_values", "mixed", 0, "RPN-12", consumer=ReadsOtherValues),
        _of("leaves_truncations_to_chance", "priority", 145, AT_REST, broker=LeavesTruncationsToChance),
    )
}
globals().update({name: fault.scenario for name, fault in FAULTS.items()})
