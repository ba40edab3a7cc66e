"""A broker with a replica of one partition: it hears of the leader from the controller, and leads or follows.

A follower fetches, and the epoch of its last record tells the leader whether both logs are one up to there. A leader
knows of each follower the offset from which it last fetched: the high watermark follows from those in sync. The log is
the broker's own, on a disk that is given, with whatever that disk keeps.

Source: Partition, Replica, ReplicaManager, AbstractFetcherThread, BrokerLifecycleManager, Kafka 4.3.0; KIP-101,
KIP-279, KIP-320, KIP-497, KIP-595, KIP-903, KIP-966.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.management import checkpoints
from kafkaspec.impl.storage.log import AppendInfo, LogConfig, UnifiedLog
from kafkaspec.impl.storage.producer_state import ProducerStateError
from kafkaspec.impl.storage.replication_parts.messages import (
    FENCED_EPOCH,
    INVALID_VERSION,
    NOBODY,
    NONE,
    NOT_ENOUGH,
    NOT_ENOUGH_AFTER_APPEND,
    NOT_LEADER,
    OUT_OF_ORDER,
    OUT_OF_RANGE,
    STALE_BROKER,
    UNKNOWN_EPOCH,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    FetchRequest,
    FetchResponse,
    Member,
    MetadataRequest,
    MetadataResponse,
    PartitionRecord,
    ProduceRequest,
    ProduceResponse,
)
from kafkaspec.simulate.scenario import Ask, Boot, Clock, Effect, Message, Send, SetTimer, Timer

DIRECTORY = "t-0"
REPLICA = checkpoints.TopicPartition("t", 0)
MARKS = "replication-offset-checkpoint"
HEARTBEAT_MS, FETCH_MS, BACKOFF_MS, TIMEOUT_MS, IN_SYNC_MS, MARKS_MS = 100, 15, 30, 80, 60, 400
MOST_BYTES = 1000
"""of a fetch"""
MOST_REQUESTS = 100_000
"""of a life: the next one goes on above them, for an answer to an earlier one comes by a connection that is gone"""


class Config(NamedTuple):
    """Times in ms."""

    replicas: tuple[str, ...]
    controller: str
    log: LogConfig
    min_in_sync: int = 2
    lag_ms: int = 250


@dataclass
class Follower:
    """What a leader knows of a follower in its epoch."""

    log_end: int = -1
    """the offset from which it last fetched"""
    broker_epoch: int = -1
    caught_up_ms: int = 0
    """when its log was last as long as the leader's"""
    fetched_ms: int = 0
    end_at_fetch: int = 0
    """the leader's log end at the last fetch"""


class Alteration(NamedTuple):
    """A change of the in-sync replicas that the controller has not confirmed."""

    correlation: int
    members: tuple[Member, ...]
    """each in the life in which it was in sync, or fetched"""

    @property
    def isr(self) -> tuple[str, ...]:
        return tuple(m.broker for m in self.members)


class PendingProduce(NamedTuple):
    """A batch that is acknowledged when the high watermark is there."""

    required_offset: int
    client: str
    base_sequence: int
    base_offset: int
    correlation: int


class Broker:
    """One broker, from its start to its end."""

    log_class = UnifiedLog

    def __init__(self, name: str, disk: Disk, clock: Clock, config: Config) -> None:
        """Loads the log, after whatever end."""
        self.name, self.disk, self.clock, self.config = name, disk, clock, config
        self.soon: list[Callable[[], None]] = []
        self.log = self.log_class(DIRECTORY, disk, config.log, clock, self._schedule, clean=False)
        if disk.exists(MARKS):
            self.log.update_high_watermark(checkpoints.decode(disk.read(MARKS)).get(REPLICA, 0))
        self.incarnation = -1
        self.broker_epoch = -1
        self.correlation = 0
        self.metadata: PartitionRecord | None = None
        self.alive: dict[str, int] = {}
        self.leader = NOBODY
        self.leader_epoch = -1
        self.isr: tuple[str, ...] = ()
        self.partition_epoch = -1
        self.pending: Alteration | None = None
        self.followers: dict[str, Follower] = {}
        self.epoch_start = 0
        self.produces: list[PendingProduce] = []
        self.effects: list[Effect] = []
        self.takers: dict[type, Callable[[str, Any], None]] = {
            BrokerRegistrationResponse: self.take_registration,
            PartitionRecord: self.take_metadata,
            AlterPartitionResponse: self.take_alteration,
            FetchRequest: self.take_fetch,
            FetchResponse: self.take_records,
            ProduceRequest: self.take_produce,
            MetadataRequest: self.tell_leader,
        }
        self.timers: dict[str, Callable[[], None]] = {
            "heartbeat": self.heartbeat,
            "fetch": self.fetch,
            "in sync": self.shrink,
            "alter": self.send_alteration,
            "marks": self.checkpoint,
        }

    def _schedule(self, delay_ms: int, task: Callable[[], None]) -> None:
        """What a scheduler is given: at once is at the end of the step, later than a run lasts is never."""
        if delay_ms == 0:
            self.soon.append(task)

    def handle(self, event: Boot | Message | Timer | Ask) -> Sequence[Effect]:
        """One event; what is to be done."""
        self.effects = []
        if type(event) is Message:
            self.takers[type(event.body)](event.source, event.body)
        elif type(event) is Timer:
            self.timers[event.name]()
        elif type(event) is Boot:
            self.incarnation = event.life
            self.correlation = (event.life - 1) * MOST_REQUESTS
            self.heartbeat()
            self.checkpoint()
        while self.soon:
            self.soon.pop(0)()
        return self.effects

    def send(self, target: str, body: Any) -> None:
        self.effects.append(Send(target, body))

    @property
    def leads(self) -> bool:
        return self.leader == self.name

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark.offset

    # ---- the controller
    def heartbeat(self) -> None:
        """Say that this broker is there; before that, who it is."""
        if self.broker_epoch < 0:
            self.send(self.config.controller, self.registration())
        else:
            version = -1 if self.metadata is None else self.metadata.version
            self.send(self.config.controller, BrokerHeartbeatRequest(self.broker_epoch, version))
        self.effects.append(SetTimer("heartbeat", HEARTBEAT_MS))

    def registration(self) -> BrokerRegistrationRequest:
        """Who it is."""
        return BrokerRegistrationRequest(self.incarnation)

    def take_registration(self, _: str, body: BrokerRegistrationResponse) -> None:
        if body.incarnation == self.incarnation:
            self.broker_epoch = body.broker_epoch
            self.heartbeat()

    def take_metadata(self, _: str, body: PartitionRecord) -> None:
        """RPN-3. What was so before this life was registered is not heard of."""
        known = self.broker_epoch - 1 if self.metadata is None else self.metadata.version
        if self.broker_epoch < 0 or body.version <= known:
            return
        self.metadata = body
        self.alive = {m.broker: m.epoch for m in body.alive}
        if body.leader_epoch > self.leader_epoch:
            self.leader, self.leader_epoch = body.leader, body.leader_epoch
            self.isr, self.partition_epoch, self.pending = body.isr, body.partition_epoch, None
            self._refuse_produces()
            if self.leads:
                self.become_leader()
            else:
                self.become_follower()
        elif body.partition_epoch > self.partition_epoch:
            self.isr, self.partition_epoch, self.pending = body.isr, body.partition_epoch, None
        if self.leads:
            self.raise_high_watermark()

    def _refuse_produces(self) -> None:
        for p in self.produces:
            self.send(p.client, ProduceResponse(p.base_sequence, NOT_LEADER, -1, p.correlation))
        self.produces = []

    def become_leader(self) -> None:
        """The log stays, and the high watermark. RPN-3."""
        self.epoch_start = self.log.log_end
        self.log.assign_epoch_start_offset(self.leader_epoch, self.epoch_start)
        now = self.clock()
        self.followers = {n: Follower(caught_up_ms=now) for n in self.config.replicas if n != self.name}
        self.effects.append(SetTimer("in sync", IN_SYNC_MS))

    def become_follower(self) -> None:
        """The log stays: the fetches will tell. RPN-15."""
        self.fetch()

    # ---- a follower
    def fetch(self) -> None:
        if self.leads or self.leader == NOBODY:
            return
        self._fetch_from(self.log.log_end, self.last_epoch)
        self.effects.append(SetTimer("fetch", TIMEOUT_MS))

    def _fetch_from(self, offset: int, last_epoch: int) -> None:
        self.correlation += 1
        body = FetchRequest(self.correlation, self.broker_epoch, self.leader_epoch, offset, last_epoch)
        self.send(self.leader, body)

    @property
    def last_epoch(self) -> int:
        """Of the last record; -1 if there is none."""
        epochs = self.log.epochs.epochs
        return epochs[-1] if epochs else -1

    def take_records(self, source: str, body: FetchResponse) -> None:
        """RPN-9, RPN-15."""
        if body.correlation != self.correlation or source != self.leader or self.leads:
            return
        self.correlation += 1  # an answer counts once
        if body.error == OUT_OF_RANGE:
            self.cut(body.high_watermark)
        if body.error != NONE:
            self.effects.append(SetTimer("fetch", BACKOFF_MS))
        elif body.diverging is not None:
            self.truncate(*body.diverging)
            self.fetch()
        else:
            self.append(body)
            if body.records:
                self.fetch()
            else:
                self.effects.append(SetTimer("fetch", FETCH_MS))

    def append(self, body: FetchResponse) -> None:
        """What was fetched."""
        if body.records:
            self.log.append_as_follower(body.records, self.leader_epoch)
        self.log.update_high_watermark(body.high_watermark)

    def truncate(self, epoch: int, end: int) -> None:
        """The leader's log ends that epoch there, and this one may end it earlier. RPN-15."""
        own = self.log.end_offset_for_epoch(epoch)
        if own is None:
            self.cut(end)
        elif own.epoch < epoch:
            self.cut(own.end_offset)
        else:
            self.cut(min(own.end_offset, end))

    def cut(self, end: int) -> None:
        """The log ends there, if it does not end earlier, also after a power failure. Else what was cut may come back
        (REC-15), while the epochs that were assigned since are in their file, and recovery adds none below them
        (LDR-8): who has the records of an old epoch takes them for those of a new one."""
        self.log.truncate_to(min(end, self.log.log_end))
        if self.config.log.flush_messages == 1:
            self.log.flush(force_flush_active_segment=True)
            self.disk.flush_directory(DIRECTORY)

    # ---- a leader
    def wrong_epoch(self, epoch: int) -> str:
        """Why one of that epoch gets no answer. RPN-18."""
        if not self.leads:
            return NOT_LEADER
        if epoch == self.leader_epoch:
            return NONE
        return FENCED_EPOCH if epoch < self.leader_epoch else UNKNOWN_EPOCH

    def diverging(self, body: FetchRequest) -> tuple[int, int] | None:
        """Where the follower's last epoch ends here, if its log is another one. RPN-15."""
        if body.last_fetched_epoch < 0:
            return None
        end = self.log.end_offset_for_epoch(body.last_fetched_epoch)
        if end is None:
            return -1, 0
        if end.epoch < body.last_fetched_epoch or end.end_offset < body.offset:
            return end.epoch, end.end_offset
        return None

    def take_fetch(self, source: str, body: FetchRequest) -> None:
        error = self.wrong_epoch(body.leader_epoch)
        known = self.followers.get(source)
        of_replica = source in self.config.replicas
        if error == NONE and of_replica and (known is None or body.broker_epoch < known.broker_epoch):
            error = STALE_BROKER
        if error != NONE:
            self.send(source, FetchResponse(body.correlation, error, self.leader_epoch, -1, b""))
            return
        diverging = self.diverging(body)
        if diverging is not None:
            found = FetchResponse(body.correlation, NONE, self.leader_epoch, self.high_watermark, b"", diverging)
            self.send(source, found)
            return
        if body.offset > self.log.log_end:
            out = FetchResponse(body.correlation, OUT_OF_RANGE, self.leader_epoch, self.log.log_end, b"")
            self.send(source, out)
            return
        records = b""
        if of_replica:
            assert known is not None
            if body.offset < self.log.log_end:
                records = self.log.read(body.offset, MOST_BYTES, "LOG_END", True).records
            self.note(known, body)
            self.expand(source, known)
            self.raise_high_watermark()
        elif body.offset < self.readable:
            records = self.log.read(body.offset, MOST_BYTES, "HIGH_WATERMARK", True).records
        answer = FetchResponse(body.correlation, NONE, self.leader_epoch, self.high_watermark, records)
        self.send(source, answer)

    @property
    def readable(self) -> int:
        """Consumers see what is below."""
        return self.high_watermark

    def note(self, known: Follower, body: FetchRequest) -> None:
        """What a fetch says of the follower."""
        now, end = self.clock(), self.log.log_end
        if body.offset >= end:
            known.caught_up_ms = now
        elif body.offset >= known.end_at_fetch:
            known.caught_up_ms = max(known.caught_up_ms, known.fetched_ms)
        known.log_end, known.broker_epoch = body.offset, body.broker_epoch
        known.fetched_ms, known.end_at_fetch = now, end

    def is_eligible(self, broker: str, known: Follower) -> bool:
        """It is not fenced, in the life in which it fetches. KIP-903."""
        return self.alive.get(broker) == known.broker_epoch

    def is_caught_up(self, known: Follower) -> bool:
        return known.log_end == self.log.log_end or self.clock() - known.caught_up_ms <= self.config.lag_ms

    @property
    def maximal_isr(self) -> set[str]:
        """Those in sync, and those that may be already, if the controller has taken what is pending."""
        return {*self.isr, *(self.pending.isr if self.pending is not None else ())}

    def raise_high_watermark(self) -> None:
        """To the least log end of those in sync, and of those about to be. RPN-9, KIP-966."""
        if not self.are_enough(self.isr):
            return
        new, maximal = self.log.log_end, self.maximal_isr
        for name, known in self.followers.items():
            if known.log_end < new and (
                name in maximal or (known.log_end >= 0 and self.is_caught_up(known) and self.is_eligible(name, known))
            ):
                new = known.log_end
        if new > self.high_watermark:
            self.log.maybe_increment_high_watermark(new)
            self.complete_produces()

    def reaches(self, known: Follower) -> bool:
        """A follower has what it must have to be in sync. RPN-11."""
        return known.log_end >= self.high_watermark and known.log_end >= self.epoch_start

    def expand(self, broker: str, known: Follower) -> None:
        """RPN-11."""
        if self.pending is None and broker not in self.isr and self.is_eligible(broker, known) and self.reaches(known):
            self.alter((*self.isr, broker))

    def shrink(self) -> None:
        """RPN-10."""
        if not self.leads:
            return
        self.effects.append(SetTimer("in sync", IN_SYNC_MS))
        out = {n for n, known in self.followers.items() if n in self.isr and not self.is_caught_up(known)}
        if self.pending is None and out:
            self.alter(tuple(n for n in self.isr if n not in out))
        self.raise_high_watermark()

    def alter(self, isr: tuple[str, ...]) -> None:
        """Ask the controller for it, again and again until it is clear what came of it."""
        own = {self.name: self.broker_epoch}
        lives = own | {n: self.alive.get(n, -1) if n in self.isr else f.broker_epoch for n, f in self.followers.items()}
        self.pending = Alteration(-1, tuple(Member(n, lives[n]) for n in isr))
        self.send_alteration()

    def send_alteration(self) -> None:
        if self.pending is None or not self.leads:
            return
        self.correlation += 1
        self.pending = self.pending._replace(correlation=self.correlation)
        epochs = self.leader_epoch, self.partition_epoch
        body = AlterPartitionRequest(self.correlation, self.broker_epoch, *epochs, self.pending.members)
        self.send(self.config.controller, body)
        self.effects.append(SetTimer("alter", TIMEOUT_MS))

    def take_alteration(self, _: str, body: AlterPartitionResponse) -> None:
        """One that was refused for its members is given up. After any other refusal the metadata says what is so."""
        if self.pending is None or body.correlation != self.pending.correlation:
            return
        if (
            body.error == NONE
            and body.leader_epoch == self.leader_epoch
            and body.partition_epoch > self.partition_epoch
        ):
            self.isr, self.partition_epoch, self.pending = body.isr, body.partition_epoch, None
            self.raise_high_watermark()
        elif body.error not in (NONE, FENCED_EPOCH, INVALID_VERSION):
            self.pending = None

    # ---- clients
    def take_produce(self, source: str, body: ProduceRequest) -> None:
        """RPN-8."""
        error = self.unable(body.leader_epoch) or self.produce(source, body)
        if error:
            self.send(source, ProduceResponse(body.base_sequence, error, -1, body.correlation))

    def unable(self, leader_epoch: int) -> str:
        """Why nothing may be appended in that epoch with acks=all; "" if it may."""
        error = self.wrong_epoch(leader_epoch)
        if error != NONE:
            return error
        return "" if self.are_enough(self.isr) else NOT_ENOUGH

    def produce(self, source: str, body: ProduceRequest) -> str:
        """Append it; why it cannot be, "" if it is."""
        try:
            info = self.log.append_as_leader(body.records, self.leader_epoch)
        except ProducerStateError:
            return OUT_OF_ORDER
        self.produced(source, body, info)
        return ""

    def produced(self, source: str, body: ProduceRequest, info: AppendInfo) -> None:
        """It is acknowledged once it is committed."""
        self.produces.append(
            PendingProduce(
                self.required(info.last_offset), source, body.base_sequence, info.first_offset, body.correlation
            )
        )
        self.raise_high_watermark()
        self.complete_produces()

    def required(self, last_offset: int) -> int:
        """Where the high watermark has to be for an acknowledgement."""
        return last_offset + 1

    def complete_produces(self) -> None:
        """What the high watermark has passed is acknowledged, or refused if the leader counts over too few. RPN-26."""
        waiting = []
        for p in self.produces:
            if self.high_watermark < p.required_offset:
                waiting.append(p)
            elif self.are_enough(self.maximal_isr):
                self.send(p.client, ProduceResponse(p.base_sequence, NONE, p.base_offset, p.correlation))
            else:
                self.send(p.client, ProduceResponse(p.base_sequence, NOT_ENOUGH_AFTER_APPEND, -1, p.correlation))
        self.produces = waiting

    def are_enough(self, isr: Collection[str]) -> bool:
        """At least min.insync.replicas."""
        return len(isr) >= self.config.min_in_sync

    def tell_leader(self, source: str, _: MetadataRequest) -> None:
        if self.metadata is not None:
            self.send(source, MetadataResponse(self.metadata.leader, self.metadata.leader_epoch))

    # ---- the disk
    def checkpoint(self) -> None:
        """The high watermark, for the next start."""
        checkpoints.replace_file(self.disk, MARKS, checkpoints.encode({REPLICA: self.high_watermark}))
        self.effects.append(SetTimer("marks", MARKS_MS))
