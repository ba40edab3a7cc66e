"""The clients of one partition: a producer that is idempotent and waits for acks=all, and a consumer that reads what is
committed.

Source: Sender, TransactionManager, Fetcher, Kafka 4.3.0; KIP-98, KIP-320.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kafkaspec.impl.storage.batch import Encoder
from kafkaspec.impl.storage.replication_parts.messages import (
    NOBODY,
    NONE,
    OUT_OF_RANGE,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from kafkaspec.impl.storage.segment import Header, headers
from kafkaspec.simulate.scenario import Ask, Boot, Clock, Effect, Message, Send, SetTimer, Timer

RETRY_MS, POLL_MS = 80, 20
MOST_RECORDS = 16
"""in a batch: who asks for more gets none, and a file to replay that does is refused"""


class Client:
    """Who looks for the leader, and asks it."""

    def __init__(self, name: str, brokers: Sequence[str], clock: Clock) -> None:
        self.name, self.brokers, self.clock = name, tuple(brokers), clock
        self.leader, self.leader_epoch = NOBODY, -1
        self.asked = 0
        self.effects: list[Effect] = []

    def handle(self, event: Boot | Message | Timer | Ask) -> Sequence[Effect]:
        """One event; what is to be done."""
        self.effects = []
        if type(event) is Message:
            if type(event.body) is MetadataResponse:
                if event.body.leader_epoch > self.leader_epoch:
                    self.leader, self.leader_epoch = event.body.leader, event.body.leader_epoch
                    self.go_on()
            else:
                self.take(event.source, event.body)
        elif type(event) is Ask:
            self.do(event.what)
        else:
            self.wait()
            self.go_on()
        return self.effects

    def look_for_leader(self) -> None:
        """Ask one broker after the other."""
        self.effects.append(Send(self.brokers[self.asked % len(self.brokers)], MetadataRequest()))
        self.asked += 1

    def take(self, source: str, body: Any) -> None:
        """An answer."""

    def do(self, what: Any) -> None:
        """What somebody asks for."""

    def wait(self) -> None:
        """Set the timer after which it tries again."""
        self.effects.append(SetTimer("retry", RETRY_MS))

    def go_on(self) -> None:
        """Ask the leader, or look for it."""


@dataclass
class Batch:
    """One that it had to send."""

    number: int
    base_sequence: int
    count: int
    records: bytes


class Producer(Client):
    """Idempotent, with acks=all. It sends its batches in order, a few from the first that waits for its answer,
    again and again until each is acknowledged.

    More than one at a time would not always do: a broker that knows nothing of a producer takes any sequence (PSM-7),
    the second batch before the first; and one that has read a snapshot knows the last batch alone (PSM-18), and refuses
    the one before it for ever if its acknowledgement was lost.
    """

    most_in_flight = 1

    def __init__(self, name: str, brokers: Sequence[str], clock: Clock, producer_id: int) -> None:
        super().__init__(name, brokers, clock)
        self.producer_id = producer_id
        self.sequence = 0
        self.waiting: list[Batch] = []
        self.batches: dict[int, Batch] = {}
        """every batch that it ever had, by its first sequence"""
        self.sent = 0
        """how many of those that wait were sent to the leader"""

    def do(self, what: Any) -> None:
        match what:
            case ["produce", int(count)] if 0 < count <= MOST_RECORDS:
                batch = Batch(len(self.batches), self.sequence, count, self.encoded(self.sequence, count))
                self.waiting.append(batch)
                self.batches[self.sequence] = batch
                self.sequence += count
                self.send()

    def encoded(self, sequence: int, count: int) -> bytes:
        """A batch of `count` records."""
        out = Encoder(producer_id=self.producer_id, producer_epoch=0, base_sequence=sequence)
        for n in range(count):
            out.append(self.clock(), None, b"%d:%d" % (self.producer_id, sequence + n))
        return bytes(out.finish())

    def send(self) -> None:
        """What may be sent now."""
        if self.leader == NOBODY:
            return
        first = self.waiting[0].number if self.waiting else 0
        for batch in self.waiting[self.sent :]:
            if batch.number >= first + self.most_in_flight:
                break
            body = ProduceRequest(self.leader_epoch, batch.base_sequence, batch.records)
            self.effects.append(Send(self.leader, body))
            self.sent += 1

    def go_on(self) -> None:
        self.sent = 0
        if self.waiting:
            self.look_for_leader()
            self.send()

    def take(self, source: str, body: Any) -> None:
        if type(body) is not ProduceResponse:
            return
        place = next((n for n, b in enumerate(self.waiting) if b.base_sequence == body.base_sequence), None)
        if place is None:
            return
        if body.error == NONE:
            del self.waiting[place]
            self.sent = max(0, self.sent - 1)
            self.send()


class Consumer(Client):
    """From the first record on, below the high watermark."""

    def __init__(self, name: str, brokers: Sequence[str], clock: Clock) -> None:
        super().__init__(name, brokers, clock)
        self.position = 0
        self.correlation = 0
        self.fresh: list[tuple[Header, bytes]] = []
        """the batches that it got in the last step, each with the bytes that it stands in"""
        self.told: tuple[int, int] | None = None
        """the leader epoch and the high watermark of the last answer"""
        self.resets = 0
        """how often its position was not in the log"""

    def handle(self, event: Boot | Message | Timer | Ask) -> Sequence[Effect]:
        self.fresh = []
        return super().handle(event)

    def go_on(self) -> None:
        if self.leader == NOBODY:
            self.look_for_leader()
            return
        self.correlation += 1
        body = FetchRequest(self.correlation, -1, self.leader_epoch, self.position, -1)
        self.effects.append(Send(self.leader, body))

    def take(self, source: str, body: Any) -> None:
        if type(body) is not FetchResponse or body.correlation != self.correlation:
            return
        self.correlation += 1  # an answer counts once
        if body.error == OUT_OF_RANGE:
            self.resets += 1
            self.position = 0
        if body.error != NONE:
            self.look_for_leader()
            return
        self.told = body.leader_epoch, body.high_watermark
        for h in headers(body.records):
            if h.last_offset >= self.position:
                self.fresh.append((h, body.records))
                self.position = h.last_offset + 1
        if self.fresh:
            self.wait()
            self.go_on()
        else:
            self.effects.append(SetTimer("retry", POLL_MS))
