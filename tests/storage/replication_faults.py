"""Faults of a cluster, each a scenario that `kafkaspec simulate tests/storage/replication_faults.py:NAME` runs. Those
with a ticket or a KIP were Kafka's."""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.storage.log import LogConfig
from kafkaspec.impl.storage.replication_parts.broker import FETCH_MS, Broker, Follower
from kafkaspec.impl.storage.replication_parts.clients import Consumer, Producer
from kafkaspec.impl.storage.replication_parts.controller import Controller
from kafkaspec.impl.storage.replication_parts.messages import NONE, AlterPartitionRequest, FetchRequest, FetchResponse
from kafkaspec.impl.storage.replication_simulation import LOG, cluster
from kafkaspec.impl.storage.segment import headers
from kafkaspec.simulate.scenario import Scenario, SetTimer


# ---- the controller
class ElectsAnybody(Controller):
    """An unclean election: RPN-1."""

    def candidates(self) -> list[str]:
        return super().candidates() or [b for b in self.replicas if self._is_alive(b)]

    def _elect(self) -> None:
        super()._elect()
        if self.leader and self.leader not in self.isr:
            self.isr = (self.leader,)


class TakesFromAnyLeader(Controller):
    """It changes those in sync for a leader that was deposed: RPN-10. (KIP-497)"""

    def wrong(self, source: str, body: AlterPartitionRequest) -> str:
        return NONE


class TakesOldLives(Controller):
    """A broker that has started again joins those in sync by what it fetched before. (KIP-903)"""

    def wrong(self, source: str, body: AlterPartitionRequest) -> str:
        lives = {b: r.epoch for b, r in self.brokers.items()}
        return super().wrong(source, body._replace(isr=tuple(m._replace(epoch=lives[m.broker]) for m in body.isr)))


# ---- followers
class TruncatesToHighWatermark(Broker):
    """Before KIP-101: RPN-4."""

    def become_follower(self) -> None:
        self.log.truncate_to(min(self.log.log_end, self.high_watermark))
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


class NeverTruncates(Broker):
    """What differs from the leader's log stays: RPN-15."""

    def diverging(self, body: FetchRequest) -> None:
        return None


# ---- leaders
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
            again.base_sequence, again.records = self.sequence, self.encoded(self.sequence, again.count)
            self.counts[self.sequence] = again.count
            self.sequence += again.count
        super().go_on()


class ReadsTwice(Consumer):
    """It begins again with a new leader."""

    def look_for_leader(self) -> None:
        super().look_for_leader()
        self.position = 0


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
    """A scenario with a fault; the schedule by which it is found, and within how many seeds from 0 on."""

    scenario: Scenario
    schedule: str
    seeds: int


def _of(name: str, schedule: str, seeds: int, **parts: Any) -> Fault:
    """The title of a fault is the first sentence of its class."""
    doc = next((p.__doc__ for p in parts.values() if isinstance(p, type)), None) or name
    return Fault(cluster(f"replication:{name}", doc.splitlines()[0], **parts), schedule, seeds)


UNFLUSHED = LogConfig(**{**LOG.__dict__, "flush_messages": 2**63 - 1})

FAULTS = {
    f.scenario.name.partition(":")[2]: f
    for f in (
        _of("elects_anybody", "uniform", 10, controller=ElectsAnybody),
        _of("takes_from_any_leader", "uniform", 10, controller=TakesFromAnyLeader),
        _of("takes_old_lives", "uniform", 10, controller=TakesOldLives),
        _of("truncates_to_high_watermark", "uniform", 10, broker=TruncatesToHighWatermark),
        _of("acknowledges_first", "uniform", 10, broker=AcknowledgesFirst),
        _of("never_truncates", "uniform", 10, broker=NeverTruncates),
        _of("expands_early", "uniform", 10, broker=ExpandsEarly),
        _of("expands_at_high_watermark", "uniform", 10, broker=ExpandsAtHighWatermark),
        _of("ignores_pending_removal", "uniform", 10, broker=IgnoresPendingRemoval),
        _of("answers_any_epoch", "uniform", 10, broker=AnswersAnyEpoch),
        _of("acknowledges_its_own", "uniform", 10, broker=AcknowledgesItsOwn),
        _of("shows_all", "uniform", 10, broker=ShowsAll),
        _of("several_in_flight", "uniform", 10, producer=SeveralInFlight),
        _of("counts_again", "uniform", 10, producer=CountsAgain),
        _of("reads_twice", "uniform", 10, consumer=ReadsTwice),
        _of("lying_disk", "uniform", 10, disk=LyingDisk),
        _of("unflushed", "uniform", 10, log=UNFLUSHED),
    )
}
globals().update({name: fault.scenario for name, fault in FAULTS.items()})
