"""A cluster in the simulator: three brokers with a replica each, a controller, two producers and a consumer; and what
lets the spec watch it.

What the spec is shown of a log are the batches in the broker's file, not what the broker says of it. At the end the
files of the replicas are compared by the rules for replicas at rest.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from random import Random
from typing import Any

from kafkaspec.impl.common.disk import Crashed, SimulatedDisk
from kafkaspec.impl.storage.batch import MAGIC_AT
from kafkaspec.impl.storage.log import LogConfig, UnifiedLog
from kafkaspec.impl.storage.replication_parts.broker import Broker, Config
from kafkaspec.impl.storage.replication_parts.clients import MOST_RECORDS, Consumer, Producer
from kafkaspec.impl.storage.replication_parts.controller import Controller
from kafkaspec.impl.storage.replication_parts.eligible import EligibleBroker, EligibleController, may_lead
from kafkaspec.impl.storage.replication_parts.messages import (
    NOBODY,
    NONE,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    PartitionRecord,
    ProduceResponse,
)
from kafkaspec.impl.storage.replication_parts.reassignment import ReassigningBroker, ReassigningController
from kafkaspec.impl.storage.segment import Header, headers
from kafkaspec.simulate.scenario import Ask, Clock, Crash, Faults, Message, Node, Scenario, Send, Step, Timer, Violation
from kafkaspec.spec.storage import replicas
from kafkaspec.spec.storage.replication_parts.observer import ACKNOWLEDGED, Observer, Record

BROKERS, CONTROLLER, PRODUCERS, CONSUMER = ("b1", "b2", "b3"), "k", ("p1", "p2"), "c"
SESSION_MS = 350
AT_REST = "at rest"
"""the rule of the end: everything written is committed, acknowledged and read (RPN-19)"""
ENOUGH = "what is committed is on at least min.insync.replicas of the replicas that the leader was told"
"""the rule of a leader that commits: RPN-9, RPN-26"""
FENCED = "who is fenced neither leads nor joins those in sync"
"""the controller's rule: KIP-841"""
LOG = LogConfig(segment_bytes=800, flush_messages=1, index_interval_bytes=300, segment_index_bytes=4096)
"""Every append is flushed before it counts: in-sync replicas alone do not hold when the power fails everywhere."""


def contents(h: Header, data: bytes) -> int:
    """A checksum, which nobody wrote, of a batch's bytes but for what a leader puts in: the base offset and its
    epoch."""
    return zlib.crc32(data[h.position + MAGIC_AT : h.position + h.size])


def batches_of(log: UnifiedLog, base: int = 0, position: int = 0) -> Iterator[tuple[Header, bytes]]:
    """What the files of a log have, from a position of a segment on: each batch, and the bytes that it stands in."""
    for b in log.bases[bisect_left(log.bases, base) :]:
        data = log.segments[b].data()
        for h in headers(data, position if b == base else 0):
            yield h, data


class Watch:
    """Shows the spec what a step has changed."""

    producers: tuple[str, ...] = PRODUCERS
    consumers: tuple[str, ...] = (CONSUMER,)
    brokers: tuple[str, ...] = BROKERS

    def __init__(self) -> None:
        self.observer = self.watching()
        self.seen: dict[str, tuple[int, int, int]] = {}
        """of each broker that is up: the end of its log, its last segment and the position in that one's file"""
        self.partition_epoch = 0
        self.in_sync: set[str] = {*self.brokers}
        """those that the controller had in sync last"""
        self.rolls = 0

    def watching(self) -> Observer:
        """Who is shown it."""
        return Observer(self.brokers)

    def logged(self, log: UnifiedLog, base: int = 0, position: int = 0) -> Iterator[Sequence[Any]]:
        """The records of each batch of a log, from a position of a segment on."""
        return starmap(self.records_of, batches_of(log, base, position))

    def records_of(self, h: Header, data: bytes) -> Sequence[Any]:
        """The records of a batch that stands in these bytes."""
        of = contents(h, data)
        return [Record(h.leader_epoch, h.producer_id, h.base_sequence + n, of) for n in range(h.records)]

    def observe(self, step: Step, nodes: Mapping[str, Any]) -> Violation | None:
        name, event = step.node, step.event
        if name in self.brokers:
            if type(event) is Crash:
                self.seen.pop(name, None)
                self.observer.follows(name)
                return None
            broker = nodes.get(name)
            if broker is None:
                return None
            committed = len(self.observer.committed)
            found = self._broker(name, broker)
            return self._enough(broker) if found is None and len(self.observer.committed) > committed else found
        if name == CONTROLLER:
            controller = nodes[name]
            found = self._fenced(controller)
            if found is None and controller.partition_epoch != self.partition_epoch:
                self.partition_epoch = controller.partition_epoch
                return self.observer.are_in_sync(self.candidates(controller))
            return found
        elif name in self.consumers:
            return self._consumer(name, nodes[name])
        elif name in self.producers and type(event) is Message and type(event.body) is ProduceResponse:
            return self._producer(nodes[name], event.body) if event.body.error == NONE else None
        return None

    def _enough(self, leader: Any) -> Violation | None:
        """Of what a leader has committed in this step."""
        replicas, wanted = leader.metadata.replicas or self.brokers, leader.config.min_in_sync
        has = [b for b in replicas if self.observer.replicas[b].agreed >= len(self.observer.committed)]
        if len(has) >= wanted:
            return None
        return Violation(ENOUGH, f"{len(has)} of {', '.join(replicas)} have it, {wanted} are wanted")

    def candidates(self, controller: Any) -> Sequence[str]:
        """Who may be elected, and so must have what is committed."""
        found: Sequence[str] = controller.isr
        return found

    def _fenced(self, controller: Any) -> Violation | None:
        """A broker that is fenced, and leads or has joined those in sync."""
        known, leader = controller.brokers, controller.leader
        if leader in known and known[leader].fenced:
            return Violation(FENCED, f"{leader} leads")
        joined = {*controller.isr} - self.in_sync
        self.in_sync = {*controller.isr}
        for b in sorted(joined):
            if b in known and known[b].fenced:
                return Violation(FENCED, f"{b} is in sync again")
        return None

    def _broker(self, name: str, broker: Broker) -> Violation | None:
        o, log = self.observer, broker.log
        r = o.replicas[name]
        seen = self.seen.get(name)
        if seen is None:
            o.starts(name)
            there = [record for batch in self.logged(log) for record in batch]
            both = min(len(r.log), len(there))
            common = next((n for n in range(both) if r.log[n] != there[n]), both)
            found = o.cuts(name, common)
            if found is not None:
                return found
            o.appends(name, there[common:])
            self.seen[name] = log.log_end, log.bases[-1], log.active.size
        elif log.log_end < seen[0]:
            self.seen[name] = log.log_end, log.bases[-1], log.active.size
            found = o.cuts(name, log.log_end)
            if found is not None:
                return found
        elif log.log_end > seen[0]:
            for batch in self.logged(log, *seen[1:]):
                o.appends(name, batch)
            self.rolls += log.bases[-1] != seen[1]
            self.seen[name] = log.log_end, log.bases[-1], log.active.size
        if not broker.leads:
            r.leads_in = None
        elif r.leads_in != broker.leader_epoch:
            found = o.leads(name, broker.leader_epoch)
            if found is not None:
                return found
        high_watermark = log.high_watermark.offset
        return o.shows(name, high_watermark) if high_watermark != r.high_watermark else None

    def _consumer(self, name: str, consumer: Any) -> Violation | None:
        if consumer.told is not None:
            found = self.observer.is_told(name, *consumer.told)
            consumer.told = None
            if found is not None:
                return found
        for h, data in consumer.fresh:
            for n, record in enumerate(self.records_of(h, data)):
                found = self.observer.reads(name, h.base_offset + n, record)
                if found is not None:
                    return found
        return None

    def _producer(self, producer: Any, body: ProduceResponse) -> Violation | None:
        sent = self.sent(producer, body)
        if sent is None:
            return Violation(ACKNOWLEDGED, f"{producer.name} has no batch of sequence {body.base_sequence}")
        wanted = [record for h in headers(sent) for record in self.records_of(h, sent)]
        return self.observer.acknowledged(body.base_offset, wanted)

    def sent(self, producer: Any, body: ProduceResponse) -> bytes | None:
        """The batch that this answers; None if there is none."""
        batch = producer.batches.get(body.base_sequence)
        return None if batch is None else batch.records

    def counts(self) -> Mapping[str, int]:
        return self.observer.counted | {"segments rolled": self.rolls}

    def replicas(self, controller: Any) -> Sequence[str]:
        """Who has a replica at the end."""
        return self.brokers

    def waiting(self, nodes: Mapping[str, Any]) -> str:
        """What clients wait for yet; "" if for nothing."""
        waiting = {p: len(nodes[p].waiting) for p in self.producers if nodes[p].waiting}
        return f"batches that are not acknowledged: {waiting}" if waiting else ""

    def settled(self, nodes: Mapping[str, Any]) -> Violation | None:
        """RPN-19, RPL-3."""
        o, controller = self.observer, nodes[CONTROLLER]
        brokers = self.replicas(controller)
        if controller.leader == NOBODY:
            return Violation(AT_REST, "nobody leads")
        if len(controller.isr) < len(brokers):
            return Violation(AT_REST, f"in sync are {', '.join(controller.isr)} alone")
        waiting = self.waiting(nodes)
        if waiting:
            return Violation(AT_REST, waiting)
        ends = {b: len(o.replicas[b].log) for b in brokers}
        if any(end != len(o.committed) for end in ends.values()):
            return Violation(AT_REST, f"{len(o.committed)} records are committed, the logs end at {ends}")
        least = min(o.position.get(c, 0) for c in self.consumers)
        if least < len(o.committed):
            return Violation(AT_REST, f"{len(o.committed)} records are committed, {least} read")
        logs = {b: _at_rest(nodes[b]) for b in brokers}
        first, *others = brokers
        for b in others:
            found = replicas.first_difference(logs[first], logs[b])
            if found is not None:
                return Violation("RPL-3", f"{first} and {b} differ at offset {found.offset}: {found.kind}")
        return None


def _at_rest(broker: Broker) -> replicas.Replica:
    """The log of a broker as it is on its disk."""
    batches = tuple(
        replicas.Batch(
            h.base_offset,
            h.last_offset,
            h.leader_epoch,
            h.crc,
            h.magic,
            tuple(replicas.Record(h.base_offset + n, h.crc) for n in range(h.records)),
        )
        for h, _ in batches_of(broker.log)
    )
    return replicas.Replica(batches, broker.log.log_end, high_watermark=broker.log.high_watermark.offset)


class EligibleWatch(Watch):
    """Shows the spec who may be elected: in sync or eligible, and in the life that the controller knows. Once a leader
    was elected that is neither, nothing more is promised, and nothing judged."""

    def __init__(self) -> None:
        super().__init__()
        self.in_doubt: set[str] = set()
        """those that crashed, and the controller has not heard of it"""
        self.shown: tuple[str, ...] = ()
        self.happened = dict.fromkeys(ELIGIBILITY, 0)
        self.is_over = False

    def observe(self, step: Step, nodes: Mapping[str, Any]) -> Violation | None:
        if self.is_over:
            return None
        name, event = step.node, step.event
        if name in BROKERS and type(event) is Crash:
            self.in_doubt.add(name)
            self.observer.isr = tuple(b for b in self.observer.isr if b != name)
        elif name in BROKERS and type(event) is Timer and event.name == "start":
            self.happened["clean restarts"] += 1
            self.seen.pop(name, None)
        if name == CONTROLLER and self._elected(nodes[CONTROLLER], nodes):
            self.is_over = True
            return None
        return super().observe(step, nodes)

    def _elected(self, controller: Any, nodes: Mapping[str, Any]) -> bool:
        """What the controller did; whether it elected somebody who is not eligible."""
        heard = {b for b in self.in_doubt if b in nodes and controller.brokers[b].incarnation == nodes[b].incarnation}
        self.in_doubt -= heard
        now = may_lead(controller)
        if now != self.shown:
            self.shown = now
            self.happened["elections of an eligible replica"] += len(controller.isr) == 1 and not self.isr
            self.isr = controller.isr
            self.happened["replicas became eligible"] += len(controller.eligible) > self.eligible
            self.eligible = len(controller.eligible)
            self.partition_epoch = -1
        over: bool = controller.unclean_elections > 0
        self.happened["elections of the last leader"] += over
        return over

    isr: tuple[str, ...] = BROKERS
    eligible = 0

    def candidates(self, controller: Any) -> Sequence[str]:
        return [b for b in may_lead(controller) if b not in self.in_doubt]

    def _enough(self, leader: Any) -> None:
        """A replica that came back with less than it had may be counted yet, until the leader hears of it."""

    def counts(self) -> Mapping[str, int]:
        return {**super().counts(), **self.happened}

    def settled(self, nodes: Mapping[str, Any]) -> Violation | None:
        return None if self.is_over else super().settled(nodes)


FIVE = (*BROKERS, "b4", "b5")
TARGET = "when a reassignment ends, the replicas are its target, and whoever was added is in sync"
REPLICAS = "who leads or is in sync is a replica"
"""the rules of a reassignment: KIP-455"""
REASSIGNED = (
    "reassignments begun", "reassignments completed", "reassignments cancelled", "the leader was not in the target",
)  # fmt: skip


class ReassigningWatch(Watch):
    """Shows the spec the replicas too, and looks at how a reassignment ends. It knows the target from who asked for
    it."""

    brokers = FIVE

    def __init__(self) -> None:
        super().__init__()
        self.in_sync = {*BROKERS}
        self.observer.isr = BROKERS
        self.goal: frozenset[str] = frozenset(BROKERS)
        self.before = self.goal
        """the replicas, before the controller's last step"""
        self.wanted = self.goal
        """of the target those that must be in sync when the reassignment ends"""
        self.goes_on = False
        self.leader = NOBODY
        self.happened = dict.fromkeys(REASSIGNED, 0)

    def replicas(self, controller: Any) -> Sequence[str]:
        found: Sequence[str] = controller.replicas
        return found

    def observe(self, step: Step, nodes: Mapping[str, Any]) -> Violation | None:
        if step.node == CONTROLLER:
            found = self._reassigned(step.event, nodes[CONTROLLER])
            if found is not None:
                return found
        return super().observe(step, nodes)

    def _reassigned(self, event: Any, controller: Any) -> Violation | None:
        asked = event.what if type(event) is Ask else None
        replicas, goes_on = frozenset(controller.replicas), controller.is_reassigning
        if asked is not None and asked[0] == "reassign" and controller.leader_epoch > 0:
            self.goal = frozenset(asked[1])
            added, gone = self.goal - self.before, self.before - self.goal
            self.wanted = self.goal if len(added) < len(gone) else added
            self.goes_on = self.goes_on or self.goal != self.before
            self.happened["reassignments begun"] += self.goal != self.before
        if asked == ["cancel"] and self.goes_on and not goes_on:
            self.happened["reassignments cancelled"] += 1
            self.goal, self.goes_on = replicas, False
        outside = {*controller.isr, controller.leader} - replicas - {NOBODY}
        if outside:
            return Violation(REPLICAS, f"{', '.join(sorted(outside))}; replicas are {', '.join(sorted(replicas))}")
        if self.goes_on and not goes_on:
            self.goes_on = False
            self.happened["reassignments completed"] += 1
            self.happened["the leader was not in the target"] += self.leader not in {*self.goal, NOBODY}
            if replicas != self.goal or not self.wanted <= {*controller.isr}:
                is_so = f"replicas are {', '.join(controller.replicas)}, in sync {', '.join(controller.isr)}"
                return Violation(TARGET, f"{is_so}; the target was {', '.join(sorted(self.goal))}")
        self.leader, self.before = controller.leader, replicas
        return None

    def counts(self) -> Mapping[str, int]:
        return {**super().counts(), **self.happened}

    def settled(self, nodes: Mapping[str, Any]) -> Violation | None:
        controller = nodes[CONTROLLER]
        if controller.is_reassigning:
            adding, removing = ", ".join(controller.adding), ", ".join(controller.removing)
            return Violation(AT_REST, f"a reassignment does not end: adding {adding}, removing {removing}")
        return super().settled(nodes)


ELIGIBILITY = (
    "replicas became eligible", "elections of an eligible replica", "elections of the last leader", "clean restarts",
)  # fmt: skip
QUIET = (
    BrokerRegistrationRequest, BrokerRegistrationResponse, BrokerHeartbeatRequest, MetadataRequest, MetadataResponse
)  # fmt: skip


def _is_idle(body: Any) -> bool:
    """Nobody learns from it."""
    if type(body) is FetchResponse:
        return not body.records and body.error == NONE and body.diverging is None
    return type(body) in QUIET or type(body) is FetchRequest


def is_routine(step: Step) -> bool:
    """Heartbeats, fetches of nothing, looking for the leader, and metadata that says nothing new or is told again."""
    event = step.event
    if type(event) is Timer:
        return all(_is_idle(e.body) for e in step.effects if type(e) is Send)
    if type(event) is not Message:
        return False
    if type(event.body) is PartitionRecord:
        return not step.effects
    if type(event.body) is BrokerHeartbeatRequest and len(step.effects) == 1:
        return True
    return _is_idle(event.body) and all(_is_idle(e.body) for e in step.effects if type(e) is Send)


def _produce(rng: Random) -> tuple[str, Any]:
    return PRODUCERS[int(rng.random() * 2)], ["produce", 1 + int(rng.random() * 3)]


def _elect(_: Random) -> tuple[str, Any]:
    return CONTROLLER, ["elect"]


def understands(node: str, what: Any) -> bool:
    """Whether a node knows a request."""
    match what:
        case ["produce", int(count)]:
            return node in PRODUCERS and 0 < count <= MOST_RECORDS
        case ["elect"]:
            return node == CONTROLLER
    return False


def cluster(
    name: str = "replication",
    title: str = "three replicas of a partition, a controller, two producers and a consumer",
    *,
    broker: type[Broker] = Broker,
    controller: type[Controller] = Controller,
    producer: type[Producer] = Producer,
    consumer: type[Consumer] = Consumer,
    disk: Callable[[], SimulatedDisk] = SimulatedDisk,
    log: LogConfig = LOG,
    watch: type[Watch] = Watch,
    workload: Mapping[str, Callable[[Random], tuple[str, Any]]] | None = None,
    brokers: tuple[str, ...] = BROKERS,
    **more: Any,
) -> Scenario:
    """The scenario, with these classes for its nodes: a test puts a faulty one in."""
    config = Config(brokers, CONTROLLER, log)

    def boot(node: str, disk: Any, clock: Clock) -> Node:
        if node in brokers:
            return broker(node, disk, clock, config)
        if node == CONTROLLER:
            return controller(node, brokers, clock, SESSION_MS)
        if node == CONSUMER:
            return consumer(node, brokers, clock)
        return producer(node, brokers, clock, 1 + PRODUCERS.index(node))

    def watches() -> Sequence[Watch]:
        return [watch()]

    return Scenario(
        name,
        title,
        (CONTROLLER, *brokers, *PRODUCERS, CONSUMER),
        boot,
        lambda node: disk() if node in brokers else None,
        watches,
        workload or {"produce": _produce, "elect": _elect},
        mortal=brokers,
        crashes=Crashed,
        is_routine=is_routine,
        **{"understands": understands} | more,
    )


def _move_or_stop(rng: Random) -> tuple[str, Any]:
    return (BROKERS[int(rng.random() * 3)], ["stop"]) if rng.random() < 0.1 else _elect(rng)


def _understands_stop(node: str, what: Any) -> bool:
    return (node in BROKERS and what == ["stop"]) or understands(node, what)


def eligible_cluster(
    name: str = "replication:ELIGIBLE",
    title: str = "the same with eligible leader replicas, where nothing is flushed but by a clean shutdown",
    **parts: Any,
) -> Scenario:
    """KIP-966."""
    given: dict[str, Any] = {
        "broker": EligibleBroker, "controller": EligibleController, "log": UNFLUSHED, "watch": EligibleWatch,
        "workload": {"produce": _produce, "elect": _move_or_stop}, "understands": _understands_stop,
        "faults": Faults(crash=0.3, power_failure=0.7, partition=2.0, pause=2.0),
    }  # fmt: skip
    return cluster(name, title, **{**given, **parts})


def _elect_or_reassign(rng: Random) -> tuple[str, Any]:
    """Three of the five, in any order, leader or not; now and then the way back."""
    x = rng.random()
    if x < 0.05:
        return CONTROLLER, ["cancel"]
    if x < 0.25:
        left = [*FIVE]
        return CONTROLLER, ["reassign", [left.pop(int(rng.random() * len(left))) for _ in range(3)]]
    return _elect(rng)


def _understands_reassignment(node: str, what: Any) -> bool:
    match what:
        case ["reassign", [_, *_] as target] if node == CONTROLLER:
            return all(b in FIVE for b in target) and len({*target}) == len(target)
        case ["cancel"]:
            return node == CONTROLLER
    return understands(node, what)


def reassigning_cluster(
    name: str = "replication:REASSIGNING",
    title: str = "five brokers, of which three have a replica, and which three changes (KIP-455)",
    **parts: Any,
) -> Scenario:
    """KIP-455."""
    given: dict[str, Any] = {
        "broker": ReassigningBroker, "controller": ReassigningController, "watch": ReassigningWatch, "brokers": FIVE,
        "workload": {"produce": _produce, "elect": _elect_or_reassign}, "understands": _understands_reassignment,
    }  # fmt: skip
    return cluster(name, title, **{**given, **parts})


UNFLUSHED = replace(LOG, flush_messages=2**63 - 1)
SCENARIO = cluster()
ELIGIBLE = eligible_cluster()
REASSIGNING = reassigning_cluster()
