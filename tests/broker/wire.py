"""One connection to a broker: a request goes out, its answer comes back, or the connection is gone.

The messages are those of kafka-python. Nothing is sent again behind the caller's back, so that a history says what was
asked and what was answered, and which questions were never answered.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kafka.protocol.admin import DeleteRecordsRequest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

ANSWER_S = 20
EARLIEST, LATEST = -2, -1
RETRIABLE = frozenset({3, 5, 6, 7, 14, 15, 16, 19, 51, 56})
"""Errors after which the same is asked again: of topics and coordinators that a broker has not loaded yet."""
UNSURE = frozenset({-1, 3, 6, 7, 20, 56})
"""Errors of a produce that do not say that nothing was appended: a leader answers so too when it loses its partition
while it waits for the other replicas."""
OUT_OF_RANGE = 1

Gone = OSError
"""The connection is gone, or no answer came in time."""


@dataclass(frozen=True)
class Leadership:
    """A partition's leader, -1 if it has none, and its in-sync replicas."""

    leader: int
    in_sync: frozenset[int]


@dataclass(frozen=True)
class FetchAnswer:
    """What one fetch of a partition gave."""

    error: int
    high_watermark: int
    last_stable: int
    log_start: int
    aborted: tuple[tuple[int, int], ...]
    """(producer id, first offset) of the aborted transactions in it"""
    records: bytes


class Asked(Protocol):
    """What clients ask: of one broker, or of the one of a cluster that answers. All raise Gone."""

    def close(self) -> None: ...
    def find_coordinator(self, transactional_id: str) -> int: ...
    def init_producer(self, transactional_id: str | None, timeout_ms: int) -> tuple[int, int, int]: ...
    def add_partitions(self, transactional_id: str, producer: tuple[int, int], names: Sequence[str]) -> int: ...
    def produce(self, name: str, batch: bytes, transactional_id: str | None, version: int) -> tuple[int, int]: ...
    def end(
        self, transactional_id: str, producer: tuple[int, int], commit: bool, version: int
    ) -> tuple[int, tuple[int, int]]: ...
    def delete_records(self, name: str, offset: int) -> tuple[int, int]: ...
    def offset(self, name: str, timestamp: int, committed: bool = False) -> tuple[int, int]: ...
    def fetch(self, name: str, offset: int, committed: bool) -> FetchAnswer: ...


class Connection:
    def __init__(self, port: int, answer_s: float = ANSWER_S) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=answer_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._count = 0

    def close(self) -> None:
        self._socket.close()

    def call(self, request: Any) -> Any:
        """The answer. Raises Gone."""
        self._count += 1
        request.with_header(correlation_id=self._count, client_id="history")
        self._socket.sendall(request.encode(header=True, framed=True))
        answer = self._read(int.from_bytes(self._read(4), "big"))
        return request.header.get_response_class().decode(answer, header=True)

    def _read(self, size: int) -> bytes:
        out = b""
        while len(out) < size:
            more = self._socket.recv(size - len(out))
            if not more:
                raise ConnectionResetError("the broker closed the connection")
            out += more
        return out

    # ---- what clients ask --------------------------------------------------------------------------------------------
    def find_coordinator(self, transactional_id: str) -> int:
        """The error. The first who asks has the broker make the topic of transactions."""
        return self.coordinator(transactional_id)[0]

    def coordinator(self, transactional_id: str) -> tuple[int, int]:
        """Error, and the node."""
        answer = self.call(FindCoordinatorRequest(version=1, key=transactional_id, key_type=1))
        return answer.error_code, answer.node_id

    def leaders(self, topics: Sequence[str]) -> dict[str, Leadership]:
        """Of each partition, as this broker knows it."""
        asked = [MetadataRequest.MetadataRequestTopic(name=t) for t in topics]
        answer = self.call(MetadataRequest(version=8, topics=asked, allow_auto_topic_creation=False))
        return {
            f"{t.name}-{p.partition_index}": Leadership(p.leader_id, frozenset(p.isr_nodes))
            for t in answer.topics
            for p in t.partitions
        }

    def init_producer(self, transactional_id: str | None, timeout_ms: int) -> tuple[int, int, int]:
        """Error, producer id, epoch."""
        request = InitProducerIdRequest(
            version=4,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
        )
        answer = self.call(request)
        return answer.error_code, answer.producer_id, answer.producer_epoch

    def add_partitions(self, transactional_id: str, producer: tuple[int, int], names: Sequence[str]) -> int:
        """The first error, 0 if there is none. Of transactions of version 1."""
        Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        by_topic = dict[str, list[int]]()
        for name in names:
            topic, _, partition = name.rpartition("-")
            by_topic.setdefault(topic, []).append(int(partition))
        answer = self.call(
            AddPartitionsToTxnRequest(
                version=3,
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=producer[0],
                v3_and_below_producer_epoch=producer[1],
                v3_and_below_topics=[Topic(name=t, partitions=ps) for t, ps in by_topic.items()],
            )
        )
        errors = [
            p.partition_error_code
            for t in answer.results_by_topic_v3_and_below
            for p in t.results_by_partition
            if p.partition_error_code
        ]
        return errors[0] if errors else 0

    def produce(self, name: str, batch: bytes, transactional_id: str | None, version: int) -> tuple[int, int]:
        """Error and base offset."""
        topic, _, partition = name.rpartition("-")
        Topic = ProduceRequest.TopicProduceData
        data = Topic.PartitionProduceData(index=int(partition), records=batch)
        answer = self.call(
            ProduceRequest(
                version=version,
                transactional_id=transactional_id,
                acks=-1,
                timeout_ms=10_000,
                topic_data=[Topic(name=topic, partition_data=[data])],
            )
        )
        got = answer.responses[0].partition_responses[0]
        return got.error_code, got.base_offset

    def end(
        self, transactional_id: str, producer: tuple[int, int], commit: bool, version: int
    ) -> tuple[int, tuple[int, int]]:
        """Error, and the producer id and epoch to go on with."""
        answer = self.call(
            EndTxnRequest(
                version=version,
                transactional_id=transactional_id,
                producer_id=producer[0],
                producer_epoch=producer[1],
                committed=commit,
            )
        )
        bumped = version >= 5 and not answer.error_code and answer.producer_id >= 0
        return answer.error_code, (answer.producer_id, answer.producer_epoch) if bumped else producer

    def delete_records(self, name: str, offset: int) -> tuple[int, int]:
        """Error and the log start that it led to; the offset -1 is the high watermark."""
        topic, _, partition = name.rpartition("-")
        Topic = DeleteRecordsRequest.DeleteRecordsTopic
        asked = Topic.DeleteRecordsPartition(partition_index=int(partition), offset=offset)
        answer = self.call(
            DeleteRecordsRequest(version=2, topics=[Topic(name=topic, partitions=[asked])], timeout_ms=10_000)
        )
        got = answer.topics[0].partitions[0]
        return got.error_code, got.low_watermark

    def offset(self, name: str, timestamp: int, committed: bool = False) -> tuple[int, int]:
        """Error and offset: EARLIEST, or LATEST, which is the last stable offset for `committed`."""
        topic, _, partition = name.rpartition("-")
        Topic = ListOffsetsRequest.ListOffsetsTopic
        asked = Topic.ListOffsetsPartition(partition_index=int(partition), current_leader_epoch=-1, timestamp=timestamp)
        answer = self.call(
            ListOffsetsRequest(
                version=5,
                replica_id=-1,
                isolation_level=int(committed),
                topics=[Topic(name=topic, partitions=[asked])],
            )
        )
        got = answer.topics[0].partitions[0]
        return got.error_code, got.offset

    def fetch(self, name: str, offset: int, committed: bool) -> FetchAnswer:
        topic, _, partition = name.rpartition("-")
        Topic = FetchRequest.FetchTopic
        asked = Topic.FetchPartition(
            partition=int(partition),
            current_leader_epoch=-1,
            fetch_offset=offset,
            log_start_offset=-1,
            partition_max_bytes=2_000,
        )
        answer = self.call(
            FetchRequest(
                version=11,
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1 << 20,
                isolation_level=int(committed),
                session_id=0,
                session_epoch=-1,
                topics=[Topic(topic=topic, partitions=[asked])],
                forgotten_topics_data=[],
                rack_id="",
            )
        )
        got = answer.responses[0].partitions[0]
        aborted = tuple((a.producer_id, a.first_offset) for a in got.aborted_transactions or ())
        return FetchAnswer(
            got.error_code,
            got.high_watermark,
            got.last_stable_offset,
            got.log_start_offset,
            aborted,
            bytes(got.records or b""),
        )


def connected(port: int, patience_s: float = 60, answer_s: float = ANSWER_S) -> Connection:
    """A connection, as soon as there is one. Raises Gone after a while."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return Connection(port, answer_s)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


Pair = tuple[bytes | None, bytes | None]
"""key and value of a record"""


def batch(
    records: Sequence[Pair], producer: tuple[int, int], sequence: int, transactional: bool, gzip: bool, now_ms: int
) -> bytes:
    """A batch of format 2, as kafka-python builds it."""
    codec = DefaultRecordBatchBuilder.CODEC_GZIP if gzip else DefaultRecordBatchBuilder.CODEC_NONE
    builder = DefaultRecordBatchBuilder(2, codec, transactional, producer[0], producer[1], sequence, 1 << 20)
    for i, (key, value) in enumerate(records):
        assert builder.append(i, now_ms, key, value, []) is not None
    return bytes(builder.build())


@dataclass(frozen=True)
class Read:
    """A batch as kafka-python reads it."""

    producer_id: int
    base_offset: int
    next_offset: int
    control: bool
    transactional: bool
    records: tuple[tuple[int, bytes | None, bytes | None], ...]
    """offset, key, value"""


def read(records: bytes) -> list[Read]:
    """The whole batches of a fetch."""
    out, them = [], MemoryRecords(records)
    while them.has_next():
        b = them.next_batch()
        rows = tuple((r.offset, r.key, r.value) for r in b)
        out.append(Read(b.producer_id, b.base_offset, b.last_offset + 1, b.is_control_batch, b.is_transactional, rows))
    return out
