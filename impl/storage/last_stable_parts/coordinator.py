"""The transaction coordinator, as far as one partition needs it: it gives out producer epochs, decides transactions,
and has the leader write their markers. A stub: it does not fail, and its log is a variable.

From version 2 on a transaction has an epoch of its own: the marker raises it, so that what comes late is fenced off.

Source: TransactionCoordinator, TransactionMarkerChannelManager, Kafka 4.3.0; KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kafkaspec.impl.storage.last_stable_parts.messages import (
    CONCURRENT,
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkaspec.impl.storage.replication_parts.clients import Client
from kafkaspec.impl.storage.replication_parts.messages import NOBODY, NONE
from kafkaspec.simulate.scenario import Clock, Send

TIMEOUT_MS = 450
"""after which an open transaction is aborted"""
EMPTY, ONGOING, PREPARED = "empty", "ongoing", "prepared"


@dataclass
class Transaction:
    """That of a transactional id, and its epoch; `decided` is the epoch of the last one that ended, and how."""

    producer_id: int
    epoch: int = -1
    state: str = EMPTY
    began_ms: int = 0
    committed: bool = False
    decided: tuple[int, bool] | None = None


class Coordinator(Client):
    """Of all transactional ids."""

    def __init__(self, name: str, brokers: Sequence[str], clock: Clock) -> None:
        super().__init__(name, brokers, clock)
        self.transactions: dict[str, Transaction] = {}
        self.decisions: dict[tuple[int, int], bool] = {}
        """by producer id and epoch: whether it was committed"""

    def of(self, producer_id: int) -> Transaction:
        return next(t for t in self.transactions.values() if t.producer_id == producer_id)

    def go_on(self) -> None:
        """Abort what is late; the markers that are not answered again."""
        for t in self.transactions.values():
            if t.state == ONGOING and self.clock() - t.began_ms > TIMEOUT_MS:
                self.decide(t, committed=False)
            elif t.state == PREPARED:
                self.write_marker(t)
        self.look_for_leader()

    def take(self, source: str, body: Any) -> None:
        if type(body) is InitProducerIdRequest:
            self.init_producer_id(source, body)
        elif type(body) is AddPartitionsToTxnRequest:
            self.effects.append(Send(source, AddPartitionsToTxnResponse(body.correlation, self.add(body))))
        elif type(body) is EndTxnRequest:
            t = self.of(body.producer_id)
            error = self.end(t, body)
            self.effects.append(Send(source, EndTxnResponse(body.correlation, error, t.epoch)))
        elif type(body) is WriteTxnMarkersResponse:
            t = self.of(body.producer_id)
            if t.state == PREPARED and body.producer_epoch == t.epoch and self.is_written(body.error):
                t.state = EMPTY

    def init_producer_id(self, source: str, body: InitProducerIdRequest) -> None:
        """A producer begins, and whoever had this id before is fenced off."""
        known = self.transactions.setdefault(body.transactional_id, Transaction(len(self.transactions) + 1))
        error = CONCURRENT
        if known.state == ONGOING:
            self.decide(known, committed=False)
        elif known.state == EMPTY:
            known.epoch += 1
            error = NONE
        answer = InitProducerIdResponse(body.correlation, error, known.producer_id, known.epoch)
        self.effects.append(Send(source, answer))

    def is_stale(self, t: Transaction, epoch: int) -> bool:
        """Somebody else has the id now, or the transaction is over."""
        return epoch != t.epoch

    def add(self, body: AddPartitionsToTxnRequest) -> str:
        """The partition belongs to the transaction, from now on."""
        t = self.of(body.producer_id)
        if self.is_stale(t, body.producer_epoch):
            return INVALID_PRODUCER_EPOCH
        if t.state == PREPARED:
            return CONCURRENT
        if t.state == EMPTY:
            t.state, t.began_ms = ONGOING, self.clock()
        return NONE

    def end(self, t: Transaction, body: EndTxnRequest) -> str:
        """Decide, once: who asks again is told the same."""
        if (body.producer_epoch, body.committed) == t.decided and t.epoch == body.producer_epoch + 1:
            return NONE
        if self.is_stale(t, body.producer_epoch):
            return INVALID_PRODUCER_EPOCH
        if t.state != ONGOING:
            return CONCURRENT if t.state == PREPARED else INVALID_TXN_STATE
        self.decide(t, committed=body.committed)
        return NONE

    def decide(self, t: Transaction, *, committed: bool) -> None:
        """From here on nothing else can come of the transaction."""
        t.decided = t.epoch, committed
        self.decisions[t.producer_id, t.epoch] = committed
        t.epoch += 1
        t.state, t.committed = PREPARED, committed
        self.write_marker(t)

    def write_marker(self, t: Transaction) -> None:
        if self.leader != NOBODY:
            body = WriteTxnMarkersRequest(self.leader_epoch, t.producer_id, t.epoch, t.committed)
            self.effects.append(Send(self.leader, body))

    def is_written(self, error: str) -> bool:
        """The marker is in the log: in that of this answer, or so that a later one is refused."""
        return error in (NONE, INVALID_PRODUCER_EPOCH)
