"""The clients of a partition with transactions: producers of which several may have one transactional id, and
consumers that read what is committed, from the leader or from followers.

Source: TransactionManager, Sender, CompletedFetch, Kafka 4.3.0; KIP-98, KIP-392, KIP-890.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkaspec.impl.storage.batch import Batch, Encoder, control
from kafkaspec.impl.storage.last_stable_parts.messages import (
    CONCURRENT,
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkaspec.impl.storage.replication_parts.clients import MOST_RECORDS, POLL_MS, Client
from kafkaspec.impl.storage.replication_parts.messages import (
    NOBODY,
    NONE,
    OUT_OF_ORDER,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    ProduceResponse,
)
from kafkaspec.impl.storage.segment import Header, headers
from kafkaspec.simulate.scenario import Clock, Send, SetTimer
from kafkaspec.spec.common.record_format import CONTROL, TRANSACTIONAL

FATAL = (INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, OUT_OF_ORDER)
"""errors after which the producer begins again, with its next transaction"""


class TransactionalProducer(Client):
    """It does one thing after the other, and asks again until it has the answer."""

    def __init__(
        self, name: str, brokers: Sequence[str], clock: Clock, coordinator: str, transactional_id: str
    ) -> None:
        super().__init__(name, brokers, clock)
        self.coordinator, self.transactional_id = coordinator, transactional_id
        self.producer_id, self.epoch, self.sequence = -1, -1, 0
        self.todo: list[Any] = []
        self.records = b""
        """of the batch that is under way"""
        self.correlation = 0
        self.request: Any = None
        self.sent: dict[int, bytes] = {}
        """each batch, by its correlation"""

    @property
    def waiting(self) -> Sequence[Any]:
        return self.todo

    def do(self, what: Any) -> None:
        match what:
            case ["produce", int(count)] if 0 < count <= MOST_RECORDS:
                self.todo.append(what)
            case ["end", bool()]:
                self.todo.append(what)
        self.next()

    def next(self) -> None:
        """The next thing, if none is under way."""
        while self.todo and self.request is None:
            self.correlation += 1
            match self.todo[0]:
                case ["end", _] if self.sequence == 0:
                    self.todo.pop(0)  # an empty transaction
                    continue
                case _ if self.producer_id < 0:
                    self.request = InitProducerIdRequest(self.correlation, self.transactional_id)
                case ["produce", count]:
                    out = Encoder(
                        producer_id=self.producer_id,
                        producer_epoch=self.epoch,
                        base_sequence=self.sequence,
                        transactional=True,
                    )
                    for n in range(count):
                        out.append(self.clock(), None, b"%d:%d:%d" % (self.producer_id, self.epoch, self.sequence + n))
                    batch = self.sent[self.correlation] = bytes(out.finish())
                    self.request = ProduceRequest(-1, self.sequence, batch, self.correlation)
                case ["end", committed]:
                    self.request = EndTxnRequest(self.correlation, self.producer_id, self.epoch, committed)
            self.send()

    def send(self) -> None:
        if type(self.request) is not ProduceRequest:
            self.effects.append(Send(self.coordinator, self.request))
        elif self.leader != NOBODY:
            self.effects.append(Send(self.leader, self.request._replace(leader_epoch=self.leader_epoch)))

    def go_on(self) -> None:
        if self.request is not None:
            self.send()
            if type(self.request) is ProduceRequest:
                self.look_for_leader()
        self.next()

    def take(self, source: str, body: Any) -> None:
        if self.request is None or body.correlation != self.request.correlation:
            return
        error = body.error
        if error in FATAL:
            self.give_up()
        elif error == NONE:
            self.request = None
            if type(body) is InitProducerIdResponse:
                self.producer_id, self.epoch, self.sequence = body.producer_id, body.producer_epoch, 0
            elif type(body) is ProduceResponse:
                self.sequence += self.todo.pop(0)[1]
            elif type(body) is EndTxnResponse:
                self.todo.pop(0)
                self.epoch, self.sequence = body.producer_epoch, 0
        elif error == CONCURRENT:
            return  # the timer asks again
        self.next()

    def give_up(self) -> None:
        """The transaction is not to be saved: what is left of it goes, and the next one gets a new epoch."""
        self.request, self.producer_id, self.sequence = None, -1, 0
        while self.todo and self.todo.pop(0)[0] != "end":
            pass


class CommittedConsumer(Client):
    """It reads what is committed, from the leader, or from one broker after the other."""

    from_leader = True

    def __init__(self, name: str, brokers: Sequence[str], clock: Clock) -> None:
        super().__init__(name, brokers, clock)
        self.position = 0
        self.correlation = 0
        self.turn = 0
        self.began = 0
        """where it was before the last step"""
        self.fresh: list[tuple[Header, bytes]] = []
        """the batches that it handed out in the last step, each with the bytes that it stands in"""

    def handle(self, event: Any) -> Any:
        self.fresh, self.began = [], self.position
        return super().handle(event)

    def go_on(self) -> None:
        if self.leader == NOBODY:
            self.look_for_leader()
            return
        self.correlation += 1
        source = self.leader if self.from_leader else self.brokers[self.turn % len(self.brokers)]
        body = FetchRequest(self.correlation, -1, self.leader_epoch, self.position, -1, read_committed=True)
        self.effects.append(Send(source, body))

    def take(self, source: str, body: Any) -> None:
        if type(body) is not FetchResponse or body.correlation != self.correlation:
            return
        self.correlation += 1  # an answer counts once
        self.turn += 1
        if body.error != NONE:
            self.look_for_leader()
            return
        self.hand_out(body)
        if self.position > self.began:
            self.wait()
            self.go_on()
        else:
            self.effects.append(SetTimer("retry", POLL_MS))

    def hand_out(self, body: FetchResponse) -> None:
        """The batches of aborted transactions, and markers, are dropped. LSO-11."""
        aborted = sorted(body.aborted, key=lambda a: a[1])
        dropped: set[int] = set()
        for h in headers(body.records):
            while aborted and aborted[0][1] <= h.last_offset:
                dropped.add(aborted.pop(0)[0])
            if h.attributes & CONTROL:
                if not is_commit(body.records, h):
                    self.ended(dropped, h.producer_id)
            elif h.last_offset >= self.position and not (
                h.attributes & TRANSACTIONAL and self.is_dropped(h.producer_id, dropped)
            ):
                self.fresh.append((h, body.records))
            self.position = max(self.position, h.last_offset + 1)

    def is_dropped(self, producer_id: int, dropped: set[int]) -> bool:
        return producer_id in dropped

    def ended(self, dropped: set[int], producer_id: int) -> None:
        """An abort marker of that producer."""
        dropped.discard(producer_id)


class FollowerConsumer(CommittedConsumer):
    """It reads from one broker after the other (KIP-392)."""

    from_leader = False


def is_commit(records: bytes, h: Header) -> bool:
    """What a control batch says."""
    found = next(Batch(records[h.position : h.position + h.size], h.position).records())
    return control(found.key, found.value).type == 1
