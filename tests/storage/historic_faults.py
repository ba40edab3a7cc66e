"""Bugs that Kafka's replication had, put into the simulated cluster: each a scenario that
`kafkaspec simulate tests/storage/historic_faults.py:NAME` runs. Those that are planted already for another reason are
in replication_faults.py and eligible_faults.py; replication_bugs.py has all of them by their tickets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkaspec.impl.storage.log import UnifiedLog
from kafkaspec.impl.storage.replication_parts.broker import FETCH_MS, Alteration, Broker, Follower
from kafkaspec.impl.storage.replication_parts.controller import Controller
from kafkaspec.impl.storage.replication_parts.eligible import EligibleBroker, EligibleController
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
from kafkaspec.impl.storage.replication_simulation import cluster, eligible_cluster
from kafkaspec.simulate.scenario import SetTimer
from tests.storage import log_mutants
from tests.storage.replication_faults import Fault


# ---- the controller
class FencesFromOneState(Controller):
    """Brokers that fall silent together leave those in sync by one state: the last change takes back the others."""

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
    """Who is fenced is taken into those in sync."""

    def wrong(self, source: str, body: AlterPartitionRequest) -> str:
        if source != self.leader or body.leader_epoch != self.leader_epoch:
            return FENCED_EPOCH
        return INVALID_VERSION if body.partition_epoch != self.partition_epoch else NONE


class ProposesFenced(Broker):
    """A leader does not look whether a follower is fenced."""

    def is_eligible(self, broker: str, known: Follower) -> bool:
        return True


class BumpsNoEpoch(EligibleController):
    """No fault: a follower that fails leaves those in sync in the same leader epoch, as since metadata version 3.6."""

    def _remove(self, broker: str, unclean: str = NOBODY) -> None:
        leader, epoch = self.leader, self.leader_epoch
        super()._remove(broker, unclean)
        if leader not in (broker, NOBODY):
            self.leader_epoch = epoch


class TakesAnyLife(BumpsNoEpoch):
    """What a follower had in its last life counts in this one: in sync are brokers, and not a life of theirs."""

    def wrong(self, source: str, body: AlterPartitionRequest) -> str:
        alive = (m._replace(epoch=self.brokers[m.broker].epoch) for m in body.isr)
        return super().wrong(source, body._replace(isr=tuple(alive)))


class CountsAnyLife(EligibleBroker):
    """The leader's half of that."""

    def is_eligible(self, broker: str, known: Follower) -> bool:
        return broker in self.alive

    def note(self, known: Follower, body: FetchRequest) -> None:
        reached = known.log_end
        super().note(known, body)
        known.log_end = max(reached, known.log_end)

    def take_metadata(self, source: str, body: PartitionRecord) -> None:
        super().take_metadata(source, body)
        if self.leads:
            for broker, known in self.followers.items():
                self.expand(broker, known)


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
    """A broker is unfenced once it has heard of all that the metadata has."""

    def wanted(self, registered: int) -> int:
        return self.version


class RegistersAgain(Controller):
    """A registration that comes twice is two: the broker is fenced, and gets another epoch."""

    def _register(self, broker: str, body: BrokerRegistrationRequest) -> None:
        known = self.brokers.get(broker)
        if known is not None and known.incarnation == body.incarnation:
            known.incarnation -= 1
        super()._register(broker, body)


class RegistersAndLeavesIt(Controller):
    """A broker that starts again before its session has ended is fenced, and leads and is in sync as before."""

    def _restarted(self, broker: str, *, clean: bool) -> None:
        """Nothing."""


# ---- followers
class EndWithoutItsEpoch(Broker):
    """The answer says where the log ends an epoch, and not which one that is."""

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
    """A follower whose leader is the one of before does not ask whether the logs are one, though it missed a term."""

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
    """A follower takes over the high watermark of an answer that says where to truncate, and then truncates."""

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
    """Behind an empty answer a fetch names no epoch: the leader does not look whether the logs are one."""

    empty = False

    def append(self, body: FetchResponse) -> None:
        super().append(body)
        self.empty = not body.records

    def _fetch_from(self, offset: int, last_epoch: int) -> None:
        super()._fetch_from(offset, -1 if self.empty else last_epoch)


class TruncatesWhatIsNotFetched(Broker):
    """An answer that says where to truncate counts, though the broker does not fetch any more."""

    def take_records(self, source: str, body: FetchResponse) -> None:
        if body.error == NONE and body.diverging is not None and self.leads:
            self.truncate(*body.diverging)
        super().take_records(source, body)


# ---- leaders
class DiscardsEqualVersions(Broker):
    """An answer to AlterPartition with the version that the leader has already leaves the change pending."""

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
    "A leader that writes nothing leaves no trace in the leader epochs.",
)
SnapshotOfTheFuture = _with(
    _log(_append=log_mutants._snapshot_of_the_future),
    "The producer snapshot of a roll has the batch that is to come.",
)


def _of(name: str, first: int, rule: str, of: Callable[..., Any] = cluster, **parts: Any) -> Fault:
    """The title of a fault is the first sentence of its class."""
    doc = next(p.__doc__ for p in parts.values())
    where = "replication:" if of is cluster else "replication:ELIGIBLE:"
    return Fault(of(where + name, doc.splitlines()[0], **parts), "mixed", first, rule)


ALL = (
    _of("fences_from_one_state", 0, "", controller=FencesFromOneState),
    _of("takes_fenced", 0, "", broker=ProposesFenced, controller=TakesFenced),
    _of("takes_any_life", 0, "", eligible_cluster, controller=TakesAnyLife, broker=CountsAnyLife),
    _of("wants_the_newest", 0, "", controller=WantsTheNewest),
    _of("registers_again", 0, "", controller=RegistersAgain),
    _of("registers_and_leaves_it", 0, "", controller=RegistersAndLeavesIt),
    _of("end_without_its_epoch", 0, "", broker=EndWithoutItsEpoch),
    _of("skips_for_the_same_leader", 0, "", broker=SkipsForTheSameLeader),
    _of("takes_the_mark_first", 0, "", broker=TakesTheMarkFirst),
    _of("forgets_the_last_epoch", 0, "", broker=ForgetsTheLastEpoch),
    _of("truncates_what_is_not_fetched", 0, "", broker=TruncatesWhatIsNotFetched),
    _of("discards_equal_versions", 0, "", broker=DiscardsEqualVersions),
    _of("leaves_no_trace", 0, "", broker=LeavesNoTrace),
    _of("snapshot_of_the_future", 0, "", broker=SnapshotOfTheFuture),
)
FAULTS = {f.scenario.name.rpartition(":")[2]: f for f in ALL}
SOUND = (
    cluster("replication:no_ops", "a busy metadata log", controller=WritesNoOps),
    eligible_cluster("replication:ELIGIBLE:no_bump", "failures without a new leader epoch", controller=BumpsNoEpoch),
)
"""What two of the faults stand on, without the fault."""
globals().update({name: fault.scenario for name, fault in FAULTS.items()})
