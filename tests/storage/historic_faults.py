"""Bugs that Kafka's replication had, put into the simulated cluster: each a scenario that
`kafkaspec simulate tests/storage/historic_faults.py:NAME` runs. Those that are planted already for another reason are
in replication_faults.py and eligible_faults.py; replication_bugs.py has all of them by their tickets."""

from __future__ import annotations

from typing import Any

from kafkaspec.impl.storage.log import UnifiedLog
from kafkaspec.impl.storage.replication_parts.broker import FETCH_MS, Alteration, Broker, Follower
from kafkaspec.impl.storage.replication_parts.controller import Controller
from kafkaspec.impl.storage.replication_parts.messages import (
    FENCED_EPOCH,
    INVALID_VERSION,
    NOBODY,
    NONE,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    FetchRequest,
    FetchResponse,
    PartitionRecord,
)
from kafkaspec.impl.storage.replication_simulation import AT_REST, FENCED, cluster
from kafkaspec.simulate.scenario import SetTimer
from kafkaspec.simulate.world import NODE_FAILED
from kafkaspec.spec.storage.replication_parts.observer import ACKNOWLEDGED
from tests.storage import log_mutants
from tests.storage.replication_faults import Fault


# ---- the controller
class FencesFromOneState(Controller):
    """Brokers that fall silent together are fenced by one state: the last takes back the others. (KAFKA-13173)"""

    def _fence_silent(self) -> None:
        before, leader = self.isr, self.leader
        now = self.clock()
        for broker, known in self.brokers.items():
            if not known.fenced and now - known.heard_ms > self.session_ms:
                known.fenced = True
                named, self.isr = self.leader, before
                self._leave(broker)
                if leader != broker and named != self.leader == NOBODY:
                    self.leader = named  # it did not lead in that state: no new leader is elected
                self._publish()


class TakesFenced(Controller):
    """Who is fenced is taken into those in sync. (KAFKA-13916)"""

    def wrong(self, source: str, body: AlterPartitionRequest) -> str:
        if source != self.leader or body.leader_epoch != self.leader_epoch:
            return FENCED_EPOCH
        return INVALID_VERSION if body.partition_epoch != self.partition_epoch else NONE


class ProposesFenced(Broker):
    """A leader does not look whether a follower is fenced."""

    def is_eligible(self, broker: str, known: Follower) -> bool:
        return True


class WritesNoOps(Controller):
    """No fault: the metadata has a new version with every check, as with Kafka's NoOpRecord, and a broker is unfenced
    once it has heard of its registration."""

    def _fence_silent(self) -> None:
        super()._fence_silent()
        self.version += 1

    def _heartbeat(self, broker: str, body: BrokerHeartbeatRequest) -> None:
        known = self.brokers.get(broker)
        if known is None or known.epoch != body.broker_epoch:
            return
        super()._heartbeat(broker, body)
        if known.fenced and body.version >= self.wanted(known.epoch):
            known.fenced = False
            self._elect()
            self._publish()

    def wanted(self, registered: int) -> int:
        """The version that a fenced broker must have heard of."""
        return registered


class WantsTheNewest(WritesNoOps):
    """A broker is unfenced once it has heard of all that the metadata has. (KAFKA-13959)"""

    def wanted(self, registered: int) -> int:
        return self.version


class RegistersAgain(Controller):
    """A registration that comes twice is two: the broker is fenced, and gets another epoch. (KAFKA-16952)"""

    def _register(self, broker: str, body: BrokerRegistrationRequest) -> None:
        known = self.brokers.get(broker)
        if known is not None and known.incarnation == body.incarnation:
            known.incarnation -= 1
        super()._register(broker, body)


class RegistersAndLeavesIt(Controller):
    """A broker that starts again before its session has ended is fenced, and leads as before. (KAFKA-18106)"""

    def _restarted(self, broker: str, *, clean: bool) -> None:
        """Nothing."""


# ---- followers
class EndWithoutItsEpoch(Broker):
    """The answer says where the log ends an epoch, and not which one that is. (KAFKA-6361)"""

    def diverging(self, body: FetchRequest) -> tuple[int, int] | None:
        if body.last_fetched_epoch < 0:
            return None
        end = self.log.end_offset_for_epoch(body.last_fetched_epoch)
        if end is not None and end.end_offset < body.offset:
            return body.last_fetched_epoch, end.end_offset
        return None

    def truncate(self, epoch: int, end: int) -> None:
        self.cut(end)


class SkipsForTheSameLeader(Broker):
    """A follower that missed a term does not compare logs, for the leader is the one of before. (KAFKA-7164)"""

    skips = False

    def take_metadata(self, source: str, body: PartitionRecord) -> None:
        self.skips = body.leader == self.leader and body.leader_epoch > self.leader_epoch
        super().take_metadata(source, body)

    def _fetch_from(self, offset: int, last_epoch: int) -> None:
        super()._fetch_from(offset, -1 if self.skips else last_epoch)

    def append(self, body: FetchResponse) -> None:
        self.skips = self.skips and not body.records
        super().append(body)


class TakesTheMarkFirst(Broker):
    """A follower takes over the high watermark of an answer that tells it to truncate. (KAFKA-14704)"""

    later: tuple[int, int] | None = None

    def __init__(self, *more: Any) -> None:
        super().__init__(*more)
        self.timers["cut"] = self.cut_later

    def truncate(self, epoch: int, end: int) -> None:
        self.later = epoch, end

    def take_records(self, source: str, body: FetchResponse) -> None:
        if body.diverging is not None and body.correlation == self.correlation and source == self.leader:
            self.log.update_high_watermark(body.high_watermark)
            self.effects.append(SetTimer("cut", FETCH_MS))
        super().take_records(source, body)

    def fetch(self) -> None:
        if self.later is None:
            super().fetch()

    def cut_later(self) -> None:
        later, self.later = self.later, None
        if later is not None and not self.leads:
            super().truncate(*later)
            self.fetch()


class ForgetsTheLastEpoch(Broker):
    """Behind an empty answer a fetch names no epoch, and the leader compares no logs. (KAFKA-15510)"""

    empty = False

    def append(self, body: FetchResponse) -> None:
        super().append(body)
        self.empty = not body.records

    def _fetch_from(self, offset: int, last_epoch: int) -> None:
        super()._fetch_from(offset, -1 if self.empty else last_epoch)


class TruncatesWhatIsNotFetched(Broker):
    """An answer that says where to truncate counts, though the broker does not fetch any more. (KAFKA-13207)"""

    def take_records(self, source: str, body: FetchResponse) -> None:
        if body.error == NONE and body.diverging is not None and self.leads:
            self.truncate(*body.diverging)
        super().take_records(source, body)


# ---- leaders
class DiscardsEqualVersions(Broker):
    """An answer to AlterPartition with the version that the leader has leaves the change pending. (KAFKA-12751)"""

    def take_metadata(self, source: str, body: PartitionRecord) -> None:
        pending, epoch = self.pending, self.leader_epoch
        super().take_metadata(source, body)
        if self.leader_epoch == epoch and self.leads:
            self.pending: Alteration | None = pending


def _with(log: type[UnifiedLog], doc: str) -> type[Broker]:
    return type(log.__name__, (Broker,), {"log_class": log, "__doc__": doc})


def _log(**methods: Any) -> type[UnifiedLog]:
    return type("Faulty", (UnifiedLog,), methods)


LeavesNoTrace = _with(
    _log(assign_epoch_start_offset=log_mutants._no_trace_of_a_leader),
    "A leader that writes nothing leaves no trace in the leader epochs. (KAFKA-7415)",
)
SnapshotOfTheFuture = _with(
    _log(_append=log_mutants._snapshot_of_the_future),
    "The producer snapshot of a roll has the batch that is to come. (KAFKA-6683)",
)


def _of(name: str, first: int, rule: str, **parts: Any) -> Fault:
    """The title of a fault is the first sentence of its class."""
    doc = next(p.__doc__ for p in parts.values())
    return Fault(cluster(f"replication:{name}", doc.splitlines()[0], **parts), "mixed", first, rule)


ALL = (
    _of("fences_from_one_state", 19, FENCED, controller=FencesFromOneState),
    _of("takes_fenced", 0, FENCED, broker=ProposesFenced, controller=TakesFenced),
    _of("wants_the_newest", 0, AT_REST, controller=WantsTheNewest),
    _of("registers_again", 8, AT_REST, controller=RegistersAgain),
    _of("registers_and_leaves_it", 2, FENCED, controller=RegistersAndLeavesIt),
    _of("end_without_its_epoch", 1, "RPN-12", broker=EndWithoutItsEpoch),
    _of("skips_for_the_same_leader", 14, "RPN-14", broker=SkipsForTheSameLeader),
    _of("takes_the_mark_first", 6, "RPN-12", broker=TakesTheMarkFirst),
    _of("forgets_the_last_epoch", 1, NODE_FAILED, broker=ForgetsTheLastEpoch),
    _of("truncates_what_is_not_fetched", 2, "RPN-14", broker=TruncatesWhatIsNotFetched),
    _of("discards_equal_versions", 0, AT_REST, broker=DiscardsEqualVersions),
    _of("leaves_no_trace", 0, "RPN-14", broker=LeavesNoTrace),
    _of("snapshot_of_the_future", 1, ACKNOWLEDGED, broker=SnapshotOfTheFuture),
)
FAULTS = {f.scenario.name.rpartition(":")[2]: f for f in ALL}
SOUND = cluster("replication:no_ops", "a busy metadata log", controller=WritesNoOps)
"""What `wants_the_newest` stands on, without its fault."""
globals().update({name: fault.scenario for name, fault in FAULTS.items()})
