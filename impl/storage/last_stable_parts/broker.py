"""A broker of a partition with transactions: it has the coordinator verify what opens one, appends the coordinator's
markers, and gives read_committed consumers what is stable in its own log, whether it leads or follows.

Source: ReplicaManager, AddPartitionsToTxnManager, Partition, Kafka 4.3.0; KIP-98, KIP-392, KIP-890.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.storage.batch import CONTROL_KEY, END_MARKER, Encoder
from kafkaspec.impl.storage.last_stable_parts.messages import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkaspec.impl.storage.producer_state import COORDINATOR, NotVerified, ProducerStateError, StaleEpoch
from kafkaspec.impl.storage.replication_parts.broker import MOST_BYTES, MOST_REQUESTS, Broker, Config
from kafkaspec.impl.storage.replication_parts.messages import (
    FENCED_EPOCH,
    NONE,
    NOT_LEADER,
    OUT_OF_ORDER,
    OUT_OF_RANGE,
    UNKNOWN_EPOCH,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    ProduceResponse,
)
from kafkaspec.impl.storage.segment import headers
from kafkaspec.simulate.scenario import Clock
from kafkaspec.spec.common.record_format import TRANSACTIONAL

COORDINATOR_NODE = "t"
VERSION = 2
"""of transactions: each marker raises the producer's epoch"""


class UnverifiedBatch(NamedTuple):
    """A batch that waits for the coordinator's word."""

    client: str
    request: ProduceRequest
    guard: int


class PendingMarker(NamedTuple):
    """A marker that is answered when the high watermark is there."""

    required_offset: int
    client: str
    request: WriteTxnMarkersRequest


def marker(producer_id: int, epoch: int, timestamp_ms: int, *, committed: bool) -> bytes:
    """The control batch that ends a transaction."""
    out = Encoder(producer_id=producer_id, producer_epoch=epoch, transactional=True, control=True)
    out.append(timestamp_ms, CONTROL_KEY.pack(0, committed), END_MARKER.pack(0, 0))
    return bytes(out.finish())


class TransactionalBroker(Broker):
    """One broker, from its start to its end."""

    def __init__(self, name: str, disk: Disk, clock: Clock, config: Config) -> None:
        super().__init__(name, disk, clock, config)
        self.asked = 0
        self.unverified: dict[int, UnverifiedBatch] = {}
        self.markers: list[PendingMarker] = []
        self.takers[AddPartitionsToTxnResponse] = self.take_verification
        self.takers[WriteTxnMarkersRequest] = self.take_marker

    def _refuse_produces(self) -> None:
        super()._refuse_produces()
        for p in self.markers:
            self._answer(p.client, p.request, NOT_LEADER)
        self.markers, self.unverified = [], {}

    # ---- producers
    def produce(self, source: str, body: ProduceRequest) -> str:
        """A batch that opens a transaction is verified first. LSO-19."""
        (h,) = headers(body.records)
        if not h.attributes & TRANSACTIONAL:
            return super().produce(source, body)
        try:
            guard = self.log.start_verification(h.producer_id, h.base_sequence, h.producer_epoch, True)
        except StaleEpoch:
            return INVALID_PRODUCER_EPOCH
        if guard == 0:
            return self.append_transactional(source, body, 0)
        self.asked = max(self.asked, self.incarnation * MOST_REQUESTS) + 1
        self.unverified[self.asked] = UnverifiedBatch(source, body, guard)
        request = AddPartitionsToTxnRequest(self.asked, h.producer_id, h.producer_epoch)
        self.send(COORDINATOR_NODE, request)
        return ""

    def take_verification(self, _: str, body: AddPartitionsToTxnResponse) -> None:
        found = self.unverified.pop(body.correlation, None)
        if found is None:
            return
        source, request, guard = found
        error = body.error if body.error != NONE else self.unable(request.leader_epoch)
        error = error or self.append_transactional(source, request, guard)
        if error:
            self.send(source, ProduceResponse(request.base_sequence, error, -1, request.correlation))

    def append_transactional(self, source: str, body: ProduceRequest, guard: int) -> str:
        """Append it; why it cannot be, "" if it is."""
        try:
            info = self.log.append_as_leader(body.records, self.leader_epoch, guard=guard)
        except StaleEpoch:
            return INVALID_PRODUCER_EPOCH
        except NotVerified:
            return INVALID_TXN_STATE
        except ProducerStateError:
            return OUT_OF_ORDER
        self.produced(source, body, info)
        return ""

    # ---- the coordinator
    def take_marker(self, source: str, body: WriteTxnMarkersRequest) -> None:
        """It is answered once it is committed. LSO-4."""
        error = self.unable(body.leader_epoch)
        if not error:
            batch = marker(body.producer_id, body.producer_epoch, self.clock(), committed=body.committed)
            try:
                info = self.log.append_as_leader(batch, self.leader_epoch, COORDINATOR, version=VERSION)
            except ProducerStateError:
                error = INVALID_PRODUCER_EPOCH
            else:
                self.markers.append(PendingMarker(self.marker_required(info.last_offset), source, body))
                self.raise_high_watermark()
                self.complete_produces()
        if error:
            self._answer(source, body, error)

    def marker_required(self, last_offset: int) -> int:
        """Where the high watermark has to be for the answer to a marker."""
        return last_offset + 1

    def _answer(self, client: str, request: WriteTxnMarkersRequest, error: str) -> None:
        self.send(client, WriteTxnMarkersResponse(request.producer_id, request.producer_epoch, error))

    def complete_produces(self) -> None:
        super().complete_produces()
        waiting = []
        for p in self.markers:
            if self.high_watermark >= p.required_offset:
                self._answer(p.client, p.request, NONE)
            else:
                waiting.append(p)
        self.markers = waiting

    # ---- consumers
    def take_fetch(self, source: str, body: FetchRequest) -> None:
        if body.read_committed:
            self.send(source, self.stable_records(body))
        else:
            super().take_fetch(source, body)

    def stable_records(self, body: FetchRequest) -> FetchResponse:
        """What a read_committed consumer gets, from a follower too (KIP-392). LSO-10, LSO-12."""
        error = NONE
        if body.leader_epoch != self.leader_epoch:
            error = FENCED_EPOCH if body.leader_epoch < self.leader_epoch else UNKNOWN_EPOCH
        elif body.offset > self.log.log_end:
            error = OUT_OF_RANGE
        if error != NONE:
            return FetchResponse(body.correlation, error, self.leader_epoch, -1, b"")
        found = self.log.read(body.offset, MOST_BYTES, self.isolation, True)
        aborted = tuple((a.producer_id, a.first_offset) for a in found.aborted or ())
        answer = FetchResponse(body.correlation, NONE, self.leader_epoch, self.high_watermark, found.records)
        return answer._replace(aborted=aborted)

    isolation = "TXN_COMMITTED"

    def cut(self, end: int) -> None:
        """What is unstable is looked up at once; else the log has the old one until its next append (LSO-2), and may
        show what is open again."""
        super().cut(end)
        self.log.update_high_watermark(self.high_watermark)
