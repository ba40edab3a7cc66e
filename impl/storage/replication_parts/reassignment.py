"""Reassignment (KIP-455): the replicas of a partition change while it is written and read. The controller adds the new
replicas, and once these are in sync it removes the others; until then it may be cancelled.

Source: PartitionReassignmentReplicas, Kafka 4.3.0; PartitionReassignmentRevert, PartitionChangeBuilder,
ReplicationControlManager, Partition, apache/kafka at 1eb7644349c; KIP-455.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.storage.replication_parts.broker import Broker, Config, Follower
from kafkaspec.impl.storage.replication_parts.controller import Controller
from kafkaspec.impl.storage.replication_parts.messages import (
    INVALID_REQUEST,
    NOBODY,
    NOT_LEADER,
    AlterPartitionRequest,
    FetchRequest,
    FetchResponse,
    PartitionRecord,
)
from kafkaspec.simulate.scenario import Ask, Boot, Clock, Effect, Message, Timer

AT_FIRST = 3
"""how many of the brokers have a replica at the beginning"""


class ReassigningController(Controller):
    """It keeps who is being added to the replicas, and who is to be removed."""

    def __init__(self, name: str, brokers: Sequence[str], clock: Clock, session_ms: int) -> None:
        super().__init__(name, brokers[:AT_FIRST], clock, session_ms)
        self.adding: tuple[str, ...] = ()
        self.removing: tuple[str, ...] = ()

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding or self.removing)

    def handle(self, event: Boot | Message | Timer | Ask) -> Sequence[Effect]:
        self.effects = []
        match event:
            case Ask(["reassign", list(target)]) if self.leader_epoch > 0:
                self.reassign(tuple(map(str, target)))
                return self.effects
            case Ask(["cancel"]) if self.is_reassigning:
                self.cancel()
                return self.effects
        return super().handle(event)

    def reassign(self, target: tuple[str, ...]) -> None:
        """Who is to be removed stays until those that are added are in sync. A reassignment that goes on is replaced:
        whoever it was adding is a replica now, and is to be removed if the new target has no place for it."""
        self.adding = tuple(b for b in target if b not in self.replicas)
        self.removing = tuple(b for b in self.replicas if b not in target)
        self.replicas = (*target, *self.removing)
        self.complete()
        self._changed()

    def cancel(self) -> None:
        """Whoever was being added goes, and whoever was to be removed stays. Refused if nobody but the added are in
        sync: the way back would be an unclean election."""
        isr = tuple(b for b in self.isr if b not in self.adding)
        if isr:
            gone, self.isr = self.adding, isr
            self.replicas = tuple(b for b in self.replicas if b not in gone)
            self.adding, self.removing = (), ()
            self.remove(gone)
            self._changed()

    def complete(self) -> None:
        """Once those that were added are in sync the others are no replicas any more; if there will be fewer replicas,
        once all of the target are."""
        stay = tuple(b for b in self.replicas if b not in self.removing)
        isr = tuple(b for b in self.isr if b in stay)
        wanted = stay if len(self.adding) < len(self.removing) else self.adding
        if self.is_reassigning and isr and {*wanted} <= {*isr}:
            gone = self.removing
            self.replicas, self.isr, self.adding, self.removing = stay, isr, (), ()
            self.remove(gone)

    def remove(self, gone: tuple[str, ...]) -> None:
        """They are no replicas: a new leader epoch, and another leader if one of them led."""
        if not gone:
            return
        self.leader_epoch += 1
        if self.leader in gone:
            self.leader = NOBODY
            self._elect()

    def _changed(self) -> None:
        self.partition_epoch += 1
        self._publish()

    def _set_isr(self, isr: tuple[str, ...]) -> None:
        super()._set_isr(isr)
        self.complete()

    def wrong(self, source: str, body: AlterPartitionRequest) -> str:
        if any(m.broker not in self.replicas for m in body.isr):
            return INVALID_REQUEST
        return super().wrong(source, body)

    def _record(self) -> PartitionRecord:
        return super()._record()._replace(replicas=self.replicas)


class ReassigningBroker(Broker):
    """One broker, with a replica or without."""

    def __init__(self, name: str, disk: Disk, clock: Clock, config: Config) -> None:
        super().__init__(name, disk, clock, config._replace(replicas=()))

    def take_metadata(self, source: str, body: PartitionRecord) -> None:
        known = self.broker_epoch - 1 if self.metadata is None else self.metadata.version
        before = self.config.replicas
        if self.broker_epoch >= 0 and body.version > known:
            self.assign(body.replicas)
        epoch = self.leader_epoch
        super().take_metadata(source, body)
        if self.leader_epoch == epoch and self.name in self.config.replicas and self.name not in before:
            self.fetch()  # it is new, and the leader's epoch is not

    def assign(self, replicas: tuple[str, ...]) -> None:
        """Who has a replica. Of those that have none any more nothing is known, and their logs go."""
        self.config = self.config._replace(replicas=replicas)
        if self.name not in replicas:
            self.stop()
        if self.leads:
            self.followers = {n: self.followers.get(n, Follower()) for n in replicas if n != self.name}

    def stop(self) -> None:
        """Its log goes, and no answer to a fetch counts any more."""
        self.correlation += 1
        if self.log.log_end > 0:
            self.cut(0)

    def fetch(self) -> None:
        if self.name in self.config.replicas:
            super().fetch()

    def take_fetch(self, source: str, body: FetchRequest) -> None:
        """A broker that has no replica, as the leader knows, is not answered."""
        if body.broker_epoch >= 0 and source not in self.config.replicas:
            self.send(source, FetchResponse(body.correlation, NOT_LEADER, self.leader_epoch, -1, b""))
        else:
            super().take_fetch(source, body)
