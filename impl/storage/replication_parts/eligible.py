"""Eligible leader replicas (KIP-966): a controller that remembers who left the in-sync replicas when too few stayed,
and a broker that says whether it was shut down cleanly. Logs need not be flushed with every append: whoever may have
lost records by a crash is neither in sync nor eligible.

Source: PartitionChangeBuilder, ReplicationControlManager, ClusterControlManager, LogManager, CleanShutdownFileHandler,
Kafka 4.3.0; KIP-966.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.management.checkpoints import replace_file
from kafkaspec.impl.storage.replication_parts.broker import DIRECTORY, Broker, Config
from kafkaspec.impl.storage.replication_parts.controller import Controller
from kafkaspec.impl.storage.replication_parts.messages import NOBODY, BrokerRegistrationRequest
from kafkaspec.impl.storage.segment import headers
from kafkaspec.simulate.scenario import Ask, Boot, Clock, Effect, Message, SetTimer, Timer

MIN_IN_SYNC = 2
SHUT_DOWN = "kafka_cleanshutdown"
"""the file that a clean shutdown leaves, with the broker's epoch"""
DOWN_MS = 120
"""how long a broker is down that was shut down cleanly"""
LIVES = 1_000
"""clean starts between two crashes, at most"""


class EligibleController(Controller):
    """It keeps the eligible replicas beside those in sync."""

    def __init__(self, name: str, replicas: Sequence[str], clock: Clock, session_ms: int) -> None:
        super().__init__(name, replicas, clock, session_ms)
        self.eligible: tuple[str, ...] = ()
        self.last_leader = NOBODY
        self.unclean_elections = 0

    def _set_isr(self, isr: tuple[str, ...], unclean: str = NOBODY) -> None:
        """Those in sync, and with them those that are eligible; not who shut down uncleanly. RPN-22, RPN-23."""
        before = {*self.isr, *self.eligible}
        self.isr = isr
        self.eligible = self.eligible_of(tuple(b for b in self.replicas if b in before and b not in isr), unclean)

    def eligible_of(self, left: tuple[str, ...], unclean: str) -> tuple[str, ...]:
        """Of those that were in sync or eligible and are not in sync now."""
        return () if len(self.isr) >= MIN_IN_SYNC else tuple(b for b in left if b != unclean)

    def _restarted(self, broker: str, *, clean: bool) -> None:
        if clean:
            self._leave(broker)
        elif broker in (*self.isr, *self.eligible) or broker == self.leader:
            self._remove(broker, unclean=broker)

    def _leave(self, broker: str) -> None:
        if broker in self.isr or broker == self.leader:
            self._remove(broker)

    def _remove(self, broker: str, unclean: str = NOBODY) -> None:
        """The last one in sync too. RPN-22."""
        if self.leader_epoch == 0:
            return
        self._set_isr(tuple(b for b in self.isr if b != broker), unclean)
        if self.leader == broker:
            self.leader = NOBODY
        self.leader_epoch += 1
        self.partition_epoch += 1
        self._elect()

    def candidates(self) -> list[str]:
        """Who is in sync; if nobody is, who is eligible; if nobody is either, the leader of before. RPN-1, RPN-24."""
        if self.isr:
            return super().candidates()
        able = self.eligible or (self.last_leader,)
        return [b for b in able if self._is_alive(b)]

    def _elect(self) -> None:
        able = self.candidates()
        if self.leader == NOBODY and able:
            if able[0] not in self.isr:
                self.unclean_elections += not self.eligible
                self._set_isr((able[0],))
            self._name(able[0])

    def _name(self, leader: str) -> None:
        super()._name(leader)
        self.last_leader = leader


class EligibleBroker(Broker):
    """One broker, from a crash to the next; in between it may be shut down cleanly, and start again."""

    def __init__(self, name: str, disk: Disk, clock: Clock, config: Config) -> None:
        super().__init__(name, disk, clock, config)
        self.is_down = False
        self.timers["start"] = self.start_again
        self.previous_epoch = -1
        """that of the broker's last life, if it ended cleanly"""
        if disk.exists(SHUT_DOWN):
            self.previous_epoch = int(disk.read(SHUT_DOWN))
            disk.remove(SHUT_DOWN)
            disk.flush_directory("")
        self.cut_at_gap()

    def cut_at_gap(self) -> None:
        """Cut the log where offsets are missing. A segment is flushed after the next one has begun: a power failure may
        take its last batches, and leave the next one. Recovery does not look for that, and the log would end where the
        last segment begins."""
        expected = 0
        for base in self.log.bases:
            for h in headers(self.log.segments[base].data()):
                if h.base_offset != expected:
                    self.cut(expected)
                    return
                expected = h.last_offset + 1
        if expected < self.log.log_end:
            self.cut(expected)

    def handle(self, event: Boot | Message | Timer | Ask) -> Sequence[Effect]:
        if type(event) is Boot:
            event = Boot(event.life * LIVES)
        elif type(event) is Ask and not self.is_down:
            self.effects = []
            self.shut_down()
            return self.effects
        elif self.is_down and event != Timer("start"):
            return ()
        return super().handle(event)

    def registration(self) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(self.incarnation, self.previous_epoch)

    def shut_down(self) -> None:
        """Have all on the disk, and say so there."""
        self.log.flush(force_flush_active_segment=True)
        replace_file(self.disk, SHUT_DOWN, b"%d" % self.broker_epoch)
        self.is_down = True
        self.effects.append(SetTimer("start", DOWN_MS))

    def start_again(self) -> None:
        incarnation, correlation, effects = self.incarnation + 1, self.correlation, self.effects
        type(self).__init__(self, self.name, self.disk, self.clock, self.config)
        self.incarnation, self.correlation, self.effects = incarnation, correlation, effects
        self.heartbeat()
        self.checkpoint()

    def cut(self, end: int) -> None:
        """What was cut does not come back (see Broker.cut), though appends may be lost."""
        super().cut(end)
        self.log.flush(force_flush_active_segment=True)
        self.disk.flush_directory(DIRECTORY)


def may_lead(controller: Any) -> tuple[str, ...]:
    """Who may be elected without a loss."""
    return (*controller.isr, *controller.eligible)
