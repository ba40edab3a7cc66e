"""The controller, as far as one partition needs it: it registers brokers and fences them, elects leaders among the
in-sync replicas, and takes changes of these from the leader. A stub: it does not fail, and its metadata is a variable.

Source: ReplicationControlManager, ClusterControlManager, BrokerHeartbeatManager, Kafka 4.3.0, without eligible leader
replicas (eligible.py has them); KIP-497, KIP-841, KIP-903.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kafkaspec.impl.storage.replication_parts.messages import (
    FENCED_EPOCH,
    INELIGIBLE,
    INVALID_VERSION,
    NOBODY,
    NONE,
    STALE_BROKER,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Member,
    PartitionRecord,
)
from kafkaspec.simulate.scenario import Ask, Boot, Clock, Effect, Message, Send, SetTimer, Timer

CHECK_MS = 50
"""how often the controller looks who is silent"""


@dataclass
class Registration:
    """A broker, in its newest life. A fenced one neither leads nor joins the in-sync replicas."""

    incarnation: int
    epoch: int
    fenced: bool
    heard_ms: int
    altered: int = -1
    """the number of its last AlterPartition: a connection brings each once, and in order"""


class Controller:
    """Of one partition, with these replicas."""

    def __init__(self, name: str, replicas: Sequence[str], clock: Clock, session_ms: int) -> None:
        self.name, self.replicas, self.clock, self.session_ms = name, tuple(replicas), clock, session_ms
        self.brokers: dict[str, Registration] = {}
        self.version = 0
        self.leader = NOBODY
        self.leader_epoch = 0
        self.partition_epoch = 0
        self.isr = self.replicas
        self.effects: list[Effect] = []

    def handle(self, event: Boot | Message | Timer | Ask) -> Sequence[Effect]:
        """One event; what is to be done."""
        self.effects = []
        match event:
            case Message(source, body):
                self._take(source, body)
            case Ask(["elect"]):
                self._move()
            case Boot() | Timer():
                self._fence_silent()
                self.effects.append(SetTimer("check", CHECK_MS))
        return self.effects

    def _take(self, source: str, body: Any) -> None:
        if type(body) is BrokerHeartbeatRequest:
            self._heartbeat(source, body)
        elif type(body) is AlterPartitionRequest:
            self._alter(source, body)
        elif type(body) is BrokerRegistrationRequest:
            self._register(source, body)

    # ---- brokers
    def _register(self, broker: str, body: BrokerRegistrationRequest) -> None:
        """A broker that starts again is another one: what it was in sync with may be gone."""
        known, incarnation = self.brokers.get(broker), body.incarnation
        if known is not None and known.incarnation >= incarnation:
            if known.incarnation == incarnation:
                self.effects.append(Send(broker, BrokerRegistrationResponse(incarnation, known.epoch)))
            return
        epoch = self.version + 1
        self.brokers[broker] = Registration(incarnation, epoch, True, self.clock())
        self._restarted(broker, clean=known is not None and known.epoch == body.previous_broker_epoch)
        self._publish()
        self.effects.append(Send(broker, BrokerRegistrationResponse(incarnation, epoch)))

    def _restarted(self, broker: str, *, clean: bool) -> None:
        """It is there again, fenced yet."""
        self._leave(broker)

    def _heartbeat(self, broker: str, body: BrokerHeartbeatRequest) -> None:
        known = self.brokers.get(broker)
        if known is None or known.epoch != body.broker_epoch:
            return
        known.heard_ms = self.clock()
        if body.version < self.version:
            self.effects.append(Send(broker, self._record()))
        elif known.fenced:
            known.fenced = False
            self._elect()
            self._publish()

    def _fence_silent(self) -> None:
        now = self.clock()
        for broker, known in self.brokers.items():
            if not known.fenced and now - known.heard_ms > self.session_ms:
                known.fenced = True
                self._leave(broker)
                self._publish()

    # ---- the partition
    def _is_alive(self, broker: str) -> bool:
        return broker in self.brokers and not self.brokers[broker].fenced

    def _set_isr(self, isr: tuple[str, ...]) -> None:
        self.isr = isr

    def _leave(self, broker: str) -> None:
        """Out of the in-sync replicas, but for the last one; nobody leads, or another one. RPN-2."""
        if self.leader_epoch == 0 or (broker not in self.isr and self.leader != broker):
            return
        if self.isr != (broker,):
            self.isr = tuple(b for b in self.isr if b != broker)
        if self.leader == broker:
            self.leader = NOBODY
        self.leader_epoch += 1
        self.partition_epoch += 1
        self._elect()

    def candidates(self) -> list[str]:
        """Who may lead, the best first. RPN-1."""
        return [b for b in self.isr if self._is_alive(b)]

    def _elect(self) -> None:
        """A leader, if there is none and one can be."""
        able = self.candidates()
        if self.leader == NOBODY and able:
            self._name(able[0])

    def _move(self) -> None:
        """Somebody wants another leader."""
        able = self.candidates()
        others = [b for b in able if b != self.leader]
        if self.leader != NOBODY and others:
            self._name(others[self.leader_epoch % len(others)])
            self._publish()

    def _name(self, leader: str) -> None:
        self.leader = leader
        self.leader_epoch += 1
        self.partition_epoch += 1

    def wrong(self, source: str, body: AlterPartitionRequest) -> str:
        """Why a change of the in-sync replicas is refused. RPN-10, RPN-11."""
        if source != self.leader or body.leader_epoch != self.leader_epoch:
            return FENCED_EPOCH
        if body.partition_epoch != self.partition_epoch:
            return INVALID_VERSION
        if any(not self._is_alive(m.broker) or self.brokers[m.broker].epoch != m.epoch for m in body.isr):
            return INELIGIBLE
        return NONE

    def _alter(self, source: str, body: AlterPartitionRequest) -> None:
        known = self.brokers.get(source)
        if known is None or known.epoch != body.broker_epoch or body.correlation <= known.altered:
            error = STALE_BROKER
        else:
            known.altered = body.correlation
            error = self.wrong(source, body)
            if error == NONE:
                self._set_isr(tuple(m.broker for m in body.isr))
                self.partition_epoch += 1
                self._publish()
        answer = AlterPartitionResponse(body.correlation, error, self.leader_epoch, self.isr, self.partition_epoch)
        if error != STALE_BROKER:
            self.effects.append(Send(source, answer))

    def _record(self) -> PartitionRecord:
        alive = tuple(Member(b, r.epoch) for b, r in self.brokers.items() if not r.fenced)
        return PartitionRecord(self.version, self.leader, self.leader_epoch, self.isr, self.partition_epoch, alive)

    def _publish(self) -> None:
        """To all brokers; those that miss it get it with a heartbeat."""
        self.version += 1
        record = self._record()
        self.effects += [Send(b, record) for b in self.brokers]
