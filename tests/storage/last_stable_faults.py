"""Faults of a cluster with transactions, each a scenario that
`kafkaspec simulate tests/storage/last_stable_faults.py:NAME` runs."""

from __future__ import annotations

from typing import Any

from kafkaspec.impl.storage.last_stable_parts.broker import TransactionalBroker
from kafkaspec.impl.storage.last_stable_parts.clients import CommittedConsumer
from kafkaspec.impl.storage.last_stable_parts.coordinator import Coordinator, Transaction
from kafkaspec.impl.storage.last_stable_parts.messages import INVALID_PRODUCER_EPOCH
from kafkaspec.impl.storage.last_stable_simulation import cluster
from kafkaspec.impl.storage.log import Place, UnifiedLog
from kafkaspec.impl.storage.producer_state import REPLICATION
from kafkaspec.impl.storage.replication_parts.messages import FetchRequest, FetchResponse, ProduceRequest
from kafkaspec.impl.storage.replication_simulation import AT_REST
from kafkaspec.simulate.choices import Schedule
from kafkaspec.spec.storage.last_stable_parts.observer import DECIDED
from kafkaspec.spec.storage.replication_parts.observer import ACKNOWLEDGED
from tests.storage.replication_faults import Fault, other_values


# ---- logs
class StableIsHighWatermark(UnifiedLog):
    """The last stable offset is the high watermark: LSO-1."""

    @property
    def last_stable(self) -> int:
        return self.high_watermark.offset

    def _placed_last_stable(self) -> Place:
        return self._placed_high_watermark()


class KeepsEnded(UnifiedLog):
    """A transaction whose marker is cut off stays ended: LSO-8."""

    def truncate_to(self, offset: int) -> bool:
        before = {*self.producers.ongoing}
        cut = super().truncate_to(offset)
        for first in {*self.producers.ongoing} - before:
            entry = self.producers.producers[self.producers.ongoing.pop(first)]
            entry.transaction = None
        self._update_first_unstable()
        return cut


class KeepsAborted(UnifiedLog):
    """A truncation leaves the index of aborted transactions as it is: TXI-8."""

    def truncate_to(self, offset: int) -> bool:
        kept = [(s.transaction_index, [*s.transaction_index]) for s in self.segments.values()]
        cut = super().truncate_to(offset)
        for index, entries in kept:
            for entry in entries[len([*index]) :]:
                self.disk.append(index.path, entry.encode())
        return cut


# ---- brokers
class ReadsToHighWatermark(TransactionalBroker):
    """A read_committed consumer gets what is below the high watermark: LSO-10."""

    isolation = "HIGH_WATERMARK"


class LogIsStable(TransactionalBroker):
    """The last stable offset is the high watermark: LSO-1."""

    log_class = StableIsHighWatermark


class LogKeepsEnded(TransactionalBroker):
    """A transaction whose marker is cut off stays ended: LSO-8."""

    log_class = KeepsEnded


class LogKeepsAborted(TransactionalBroker):
    """A truncation leaves the index of aborted transactions as it is: TXI-8."""

    log_class = KeepsAborted


class LeavesUnstable(TransactionalBroker):
    """After a truncation it goes on with the first unstable offset of before, as Kafka does: LSO-2."""

    def cut(self, end: int) -> None:
        super(TransactionalBroker, self).cut(end)


class ForgetsAtElection(TransactionalBroker):
    """A new leader knows of no open transaction: LSO-2."""

    def become_leader(self) -> None:
        self.log.producers.ongoing.clear()
        super().become_leader()


class ForgetsAtStart(TransactionalBroker):
    """After a start no transaction is open: LSO-9."""

    def __init__(self, *more: Any) -> None:
        super().__init__(*more)
        self.log.producers.ongoing.clear()
        self.log.update_high_watermark(self.high_watermark)


class AnswersMarkersAtOnce(TransactionalBroker):
    """A marker is answered before it is replicated."""

    def marker_required(self, last_offset: int) -> int:
        return 0


class TakesStaleBatches(TransactionalBroker):
    """A batch of an epoch that is fenced off is appended: LSO-3."""

    def produce(self, source: str, body: ProduceRequest) -> str:
        error = super().produce(source, body)
        if error == INVALID_PRODUCER_EPOCH:
            self.produced(source, body, self.log.append_as_leader(body.records, self.leader_epoch, REPLICATION))
            return ""
        return error


class DoesNotVerify(TransactionalBroker):
    """The coordinator does not hear of a transaction: LSO-19. (KIP-890)"""

    def produce(self, source: str, body: ProduceRequest) -> str:
        error = super().produce(source, body)
        for unverified in self.unverified.values():
            error = self.append_transactional(*unverified)
        self.unverified = {}
        return error


class StoresOtherValues(TransactionalBroker):
    """A leader appends other values than it was sent."""

    def produce(self, source: str, body: ProduceRequest) -> str:
        return super().produce(source, body._replace(records=other_values(body.records)))


class FollowersTellNoAborted(TransactionalBroker):
    """A follower does not tell of aborted transactions: LSO-12. (KIP-392)"""

    def stable_records(self, body: FetchRequest) -> FetchResponse:
        found = super().stable_records(body)
        return found if self.leads else found._replace(aborted=())


# ---- the coordinator
class FencesNobody(Coordinator):
    """Any epoch may end the transaction: PSM-6."""

    def is_stale(self, t: Transaction, epoch: int) -> bool:
        return False


class WritesMarkersOnce(Coordinator):
    """A marker is sent once."""

    sent: Any = None

    def write_marker(self, t: Transaction) -> None:
        self.sent = self.sent or set()
        if (t.producer_id, t.epoch) not in self.sent:
            self.sent.add((t.producer_id, t.epoch))
            super().write_marker(t)


class TakesAnyAnswer(Coordinator):
    """A marker that is refused counts as written."""

    def is_written(self, error: str) -> bool:
        return True


class ChangesItsMind(Coordinator):
    """A marker that is sent again aborts: LSO-4."""

    def go_on(self) -> None:
        for t in self.transactions.values():
            t.committed = False
        super().go_on()


# ---- consumers
class DropsNothing(CommittedConsumer):
    """It hands out what was aborted: LSO-11."""

    def is_dropped(self, producer_id: int, dropped: set[int]) -> bool:
        return False


class DropsForGood(CommittedConsumer):
    """After an abort marker it goes on dropping: LSO-11."""

    def ended(self, dropped: set[int], producer_id: int) -> None:
        """Nothing."""


def _of(name: str, schedule: Schedule, first: int, rule: str, **parts: Any) -> Fault:
    """The title of a fault is the first sentence of its class."""
    ((_, faulty),) = parts.items()
    return Fault(cluster(f"last_stable:{name}", faulty.__doc__.splitlines()[0], **parts), schedule, first, rule)


FAULTS = {
    f.scenario.name.partition(":")[2]: f
    for f in (
        _of("reads_to_high_watermark", "mixed", 0, "LSO-11", broker=ReadsToHighWatermark),
        _of("log_is_stable", "mixed", 0, "LSO-2", broker=LogIsStable),
        _of("log_keeps_ended", "mixed", 0, "LSO-2", broker=LogKeepsEnded),
        _of("log_keeps_aborted", "mixed", 3, "LSO-4", broker=LogKeepsAborted),
        _of("leaves_unstable", "mixed", 0, "LSO-2", broker=LeavesUnstable),
        _of("forgets_at_election", "mixed", 0, "LSO-2", broker=ForgetsAtElection),
        _of("forgets_at_start", "mixed", 0, "LSO-2", broker=ForgetsAtStart),
        _of("answers_markers_at_once", "mixed", 0, DECIDED, broker=AnswersMarkersAtOnce),
        _of("takes_stale_batches", "mixed", 0, "PSM-6", broker=TakesStaleBatches),
        _of("does_not_verify", "mixed", 0, "PSM-6", broker=DoesNotVerify),
        _of("stores_other_values", "mixed", 0, ACKNOWLEDGED, broker=StoresOtherValues),
        _of("followers_tell_no_aborted", "mixed", 0, "LSO-11", broker=FollowersTellNoAborted),
        _of("fences_nobody", "mixed", 0, "PSM-6", coordinator=FencesNobody),
        _of("writes_markers_once", "mixed", 0, AT_REST, coordinator=WritesMarkersOnce),
        _of("takes_any_answer", "mixed", 0, "PSM-6", coordinator=TakesAnyAnswer),
        _of("changes_its_mind", "mixed", 6, DECIDED, coordinator=ChangesItsMind),
        _of("drops_nothing", "mixed", 0, "LSO-11", consumer=DropsNothing),
        _of("drops_for_good", "mixed", 7, "LSO-11", consumer=DropsForGood),
    )
}
globals().update({name: fault.scenario for name, fault in FAULTS.items()})
