"""A cluster with transactions in the simulator: three brokers with a replica each, a controller, a transaction
coordinator, three transactional producers of which two have one id, an idempotent one, and two read_committed
consumers, one of the leader and one of each broker in turn; and what lets the spec watch it.

What the spec is shown of a log are the batches in the broker's file, control batches opened; of a transaction what its
coordinator decided, and how many records its producer knew of then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from kafkaspec.impl.common.disk import Crashed, SimulatedDisk
from kafkaspec.impl.storage.last_stable_parts.broker import COORDINATOR_NODE, TransactionalBroker
from kafkaspec.impl.storage.last_stable_parts.clients import (
    CommittedConsumer,
    FollowerConsumer,
    TransactionalProducer,
    is_commit,
)
from kafkaspec.impl.storage.last_stable_parts.coordinator import EMPTY, Coordinator
from kafkaspec.impl.storage.last_stable_parts.messages import (
    INVALID_PRODUCER_EPOCH,
)
from kafkaspec.impl.storage.log import LogConfig
from kafkaspec.impl.storage.replication_parts.broker import Broker, Config
from kafkaspec.impl.storage.replication_parts.clients import MOST_RECORDS, Producer
from kafkaspec.impl.storage.replication_parts.controller import Controller
from kafkaspec.impl.storage.replication_parts.messages import ProduceResponse
from kafkaspec.impl.storage.replication_simulation import (
    AT_REST,
    BROKERS,
    CONTROLLER,
    LOG,
    SESSION_MS,
    Watch,
    contents,
    is_routine,
)
from kafkaspec.impl.storage.segment import Header
from kafkaspec.simulate.scenario import Clock, Message, Node, Scenario, Step, Violation
from kafkaspec.spec.common.record_format import CONTROL, TRANSACTIONAL
from kafkaspec.spec.storage.last_stable_parts.observer import (
    Record,
    TransactionObserver,
)

PRODUCERS = {"p1": "a", "p2": "a", "p3": "b"}
"""transactional ids: two producers have one, and fence each other off"""
PLAIN_PRODUCER, PLAIN_ID = "q", 1000
FROM_LEADER, FROM_ALL = "c", "f"


class TransactionWatch(Watch):
    """Shows the spec what a step has changed."""

    producers = (*PRODUCERS, PLAIN_PRODUCER)
    consumers = (FROM_LEADER, FROM_ALL)
    observer: TransactionObserver

    def __init__(self) -> None:
        super().__init__()
        self.decided = self.fenced = 0

    def counts(self) -> Mapping[str, int]:
        return {**super().counts(), "refusals of a fenced producer": self.fenced}

    def watching(self) -> TransactionObserver:
        return TransactionObserver(BROKERS)

    def records_of(self, h: Header, data: bytes) -> list[Record]:
        epochs, of = (h.leader_epoch, h.producer_epoch), contents(h, data)
        if h.attributes & CONTROL:
            return [Record(h.producer_id, -1, *epochs, "commit" if is_commit(data, h) else "abort", of)]
        kind = "transactional" if h.attributes & TRANSACTIONAL else "plain"
        return [Record(h.producer_id, h.base_sequence + n, *epochs, kind, of) for n in range(h.records)]

    def observe(self, step: Step, nodes: Mapping[str, Any]) -> Violation | None:
        event = step.event
        if (
            step.node in PRODUCERS
            and type(event) is Message
            and getattr(event.body, "error", "") == INVALID_PRODUCER_EPOCH
        ):
            self.fenced += 1
        if step.node != COORDINATOR_NODE:
            return super().observe(step, nodes)
        decisions = nodes[COORDINATOR_NODE].decisions
        if len(decisions) > self.decided:
            self.observer.decisions = decisions
            for producer_id, epoch in [*decisions][self.decided :]:
                self.observer.promised[producer_id, epoch] = _promised(nodes, producer_id, epoch)
            self.decided = len(decisions)
        return None

    def _broker(self, name: str, broker: Broker) -> Violation | None:
        found = super()._broker(name, broker)
        if found is not None:
            return found
        return self.observer.is_stable(name, broker.log.last_stable, broker.log.high_watermark.offset)

    def _consumer(self, name: str, consumer: Any) -> Violation | None:
        if consumer.position == consumer.began:
            return None
        handed = [
            (h.base_offset + n, record)
            for h, data in consumer.fresh
            for n, record in enumerate(self.records_of(h, data))
        ]
        return self.observer.moves(name, consumer.position, handed)

    def sent(self, producer: Any, body: ProduceResponse) -> bytes | None:
        if producer.name == PLAIN_PRODUCER:
            return super().sent(producer, body)
        batch: bytes | None = producer.sent.get(body.correlation)
        return batch

    def settled(self, nodes: Mapping[str, Any]) -> Violation | None:
        found = super().settled(nodes) or self.observer.unended()
        if found is not None:
            return found
        busy = [i for i, t in nodes[COORDINATOR_NODE].transactions.items() if t.state != EMPTY]
        if busy:
            return Violation(AT_REST, f"transactional ids with markers that are not answered: {', '.join(busy)}")
        for b in BROKERS:
            log = nodes[b].log
            if log.last_stable != log.log_end:
                return Violation(AT_REST, f"{b}: last stable offset {log.last_stable}, log end {log.log_end}")
            indexes = (log.segments[base].transaction_index for base in log.bases)
            entries = [(a.producer_id, a.first_offset, a.last_offset) for index in indexes for a in index]
            wrong = self.observer.index_is_right(b, entries)
            if wrong is not None:
                return wrong
        return None


def _promised(nodes: Mapping[str, Any], producer_id: int, epoch: int) -> int:
    """How many records were acknowledged to the producer that has this epoch."""
    for p in PRODUCERS:
        if (nodes[p].producer_id, nodes[p].epoch) == (producer_id, epoch):
            sequence: int = nodes[p].sequence
            return sequence
    return 0


def _produce(rng: Random) -> tuple[str, Any]:
    return [*PRODUCERS][int(rng.random() * 3)], ["produce", 1 + int(rng.random() * 2)]


def _end(rng: Random) -> tuple[str, Any]:
    who, what = _produce(rng)
    return who, ["end", rng.random() < 0.7] if rng.random() < 0.6 else what


def _plain(_: Random) -> tuple[str, Any]:
    return PLAIN_PRODUCER, ["produce", 1]


def _elect(_: Random) -> tuple[str, Any]:
    return CONTROLLER, ["elect"]


def understands(node: str, what: Any) -> bool:
    """Whether a node knows a request."""
    match what:
        case ["produce", int(count)]:
            return node in (*PRODUCERS, PLAIN_PRODUCER) and 0 < count <= MOST_RECORDS
        case ["end", bool()]:
            return node in PRODUCERS
        case ["elect"]:
            return node == CONTROLLER
    return False


def cluster(
    name: str = "last_stable",
    title: str = "three replicas of a partition with transactions, their coordinator, producers and consumers",
    *,
    broker: type[TransactionalBroker] = TransactionalBroker,
    coordinator: type[Coordinator] = Coordinator,
    producer: type[TransactionalProducer] = TransactionalProducer,
    consumer: type[CommittedConsumer] = CommittedConsumer,
    disk: Callable[[], SimulatedDisk] = SimulatedDisk,
    log: LogConfig = LOG,
    **more: Any,
) -> Scenario:
    """The scenario, with these classes for its nodes: a test puts a faulty one in."""
    config = Config(BROKERS, CONTROLLER, log)

    class FromAll(FollowerConsumer, consumer):  # type: ignore[valid-type, misc]
        """As faulty as the consumer of the leader."""

    def boot(node: str, disk: Any, clock: Clock) -> Node:
        if node in BROKERS:
            return broker(node, disk, clock, config)
        if node == CONTROLLER:
            return Controller(node, BROKERS, clock, SESSION_MS)
        if node == COORDINATOR_NODE:
            return coordinator(node, BROKERS, clock)
        if node in PRODUCERS:
            return producer(node, BROKERS, clock, COORDINATOR_NODE, PRODUCERS[node])
        if node == PLAIN_PRODUCER:
            return Producer(node, BROKERS, clock, PLAIN_ID)
        return (consumer if node == FROM_LEADER else FromAll)(node, BROKERS, clock)

    def watches() -> Sequence[Watch]:
        return [TransactionWatch()]

    return Scenario(
        name,
        title,
        (CONTROLLER, *BROKERS, COORDINATOR_NODE, *PRODUCERS, PLAIN_PRODUCER, FROM_LEADER, FROM_ALL),
        boot,
        lambda node: disk() if node in BROKERS else None,
        watches,
        {"produce": _produce, "end": _end, "plain": _plain, "elect": _elect},
        mortal=BROKERS,
        crashes=Crashed,
        is_routine=is_routine,
        understands=understands,
        **{"workload_weight": 20.0} | more,
    )


SCENARIO = cluster()
