"""What brokers, controller and clients of one partition tell each other: the fields of Kafka's requests that the
protocol of replication needs, by Kafka's names for them.

Source: FetchRequest, ProduceRequest, AlterPartitionRequest, BrokerRegistrationRequest, BrokerHeartbeatRequest,
Kafka 4.3.0; KIP-497, KIP-595, KIP-903.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkaspec.impl.storage.segment import headers

NONE = "NONE"
NOT_LEADER = "NOT_LEADER_OR_FOLLOWER"
FENCED_EPOCH = "FENCED_LEADER_EPOCH"
UNKNOWN_EPOCH = "UNKNOWN_LEADER_EPOCH"
OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
NOT_ENOUGH = "NOT_ENOUGH_REPLICAS"
NOT_ENOUGH_AFTER_APPEND = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
OUT_OF_ORDER = "OUT_OF_ORDER_SEQUENCE_NUMBER"
INELIGIBLE = "INELIGIBLE_REPLICA"
INVALID_VERSION = "INVALID_UPDATE_VERSION"
STALE_BROKER = "STALE_BROKER_EPOCH"
INVALID_REQUEST = "INVALID_REQUEST"
NOBODY = ""
"""the leader, where there is none"""


class Member(NamedTuple):
    """A broker in a certain life of its."""

    broker: str
    epoch: int

    def __str__(self) -> str:
        return f"{self.broker}@{self.epoch}"


def members(of: tuple[Member, ...]) -> str:
    return "{" + ", ".join(map(str, of)) + "}"


def batches(records: bytes) -> Iterator[str]:
    """The batches of some bytes, in short: offsets, the epoch, and whose they are."""
    for h in headers(records):
        last = f"-{h.last_offset}" if h.last_offset_delta else ""
        yield f"{h.base_offset}{last} of epoch {h.leader_epoch} (producer {h.producer_id}, {h.base_sequence})"


class BrokerRegistrationRequest(NamedTuple):
    incarnation: int
    previous_broker_epoch: int = -1
    """if the broker was shut down cleanly"""


class BrokerRegistrationResponse(NamedTuple):
    incarnation: int
    broker_epoch: int


class BrokerHeartbeatRequest(NamedTuple):
    broker_epoch: int
    version: int
    """of the metadata that the broker has"""


class PartitionRecord(NamedTuple):
    """The metadata of the partition, of a version; `alive`: the brokers that are not fenced; `replicas`: where these
    change."""

    version: int
    leader: str
    leader_epoch: int
    isr: tuple[str, ...]
    partition_epoch: int
    alive: tuple[Member, ...]
    replicas: tuple[str, ...] = ()

    def __str__(self) -> str:
        isr = ", ".join(self.isr)
        of = f" of {{{', '.join(self.replicas)}}}" if self.replicas else ""
        return (
            f"Metadata {self.version}(leader {self.leader or 'none'}, epoch {self.leader_epoch}, in sync {{{isr}}}{of} "
            f"by partition epoch {self.partition_epoch}, alive {members(self.alive)})"
        )


class AlterPartitionRequest(NamedTuple):
    correlation: int
    broker_epoch: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[Member, ...]

    def __str__(self) -> str:
        return (
            f"AlterPartitionRequest {self.correlation}(in sync {members(self.isr)}, epoch {self.leader_epoch}, "
            f"partition epoch {self.partition_epoch})"
        )


class AlterPartitionResponse(NamedTuple):
    correlation: int
    error: str
    leader_epoch: int
    isr: tuple[str, ...]
    partition_epoch: int


class FetchRequest(NamedTuple):
    """Of a follower, or of a consumer, who has no broker epoch (-1)."""

    correlation: int
    broker_epoch: int
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    read_committed: bool = False

    def __str__(self) -> str:
        last = f", last record of epoch {self.last_fetched_epoch}" if self.last_fetched_epoch >= 0 else ""
        last += ", read_committed" if self.read_committed else ""
        return f"FetchRequest {self.correlation}(from {self.offset}, epoch {self.leader_epoch}{last})"


class FetchResponse(NamedTuple):
    """`diverging`: an epoch and its end in the leader's log, where the follower's log is another one."""

    correlation: int
    error: str
    leader_epoch: int
    high_watermark: int
    records: bytes
    diverging: tuple[int, int] | None = None
    aborted: tuple[tuple[int, int], ...] = ()
    """producer id and first offset of aborted transactions, for a read_committed consumer"""

    def __str__(self) -> str:
        if self.error != NONE:
            return f"FetchResponse {self.correlation}({self.error})"
        if self.diverging is not None:
            epoch, end = self.diverging
            return f"FetchResponse {self.correlation}(diverging: epoch {epoch} ends at {end})"
        what = "; ".join(batches(self.records)) or "nothing"
        what += "".join(f"; aborted: producer {p} from {first}" for p, first in self.aborted)
        return f"FetchResponse {self.correlation}({what}; high watermark {self.high_watermark})"


class ProduceRequest(NamedTuple):
    """With acks=all; one batch."""

    leader_epoch: int
    base_sequence: int
    records: bytes
    correlation: int = 0

    def __str__(self) -> str:
        (h,) = headers(self.records)
        return f"ProduceRequest(producer {h.producer_id}, {h.records} records from sequence {self.base_sequence})"


class ProduceResponse(NamedTuple):
    base_sequence: int
    error: str
    base_offset: int
    correlation: int = 0

    def __str__(self) -> str:
        said = f"offset {self.base_offset}" if self.error == NONE else self.error
        return f"ProduceResponse(sequence {self.base_sequence}: {said})"


class MetadataRequest(NamedTuple):
    pass


class MetadataResponse(NamedTuple):
    leader: str
    leader_epoch: int
