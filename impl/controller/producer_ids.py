"""The next block of producer ids: an object and a number on the registry of the controller's memory, as Kafka has them.

Who is registered is somebody else's: it is asked. To give a block is to make a record; what gives it is its replay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kafkaspec.impl.controller.timeline import SnapshotRegistry, TimelineLong, TimelineObject

BLOCK_SIZE: Final = 1000
LAST_ID: Final = 2**63 - 1
NO_BROKER: Final = -1


class ProducerIdError(Exception):
    """The call is refused. `args[0]` says why, in Kafka's words."""


class UnregisteredBrokerError(ProducerIdError):
    """There is no registration of the broker. [PID-2]"""


class StaleBrokerEpochError(ProducerIdError):
    """The broker's registration has another epoch. [PID-3]"""


class ExhaustedError(ProducerIdError):
    """There is no room for a block. [PID-7]"""


class ReplayError(ProducerIdError):
    """A record does not move the next block up. [PID-9]"""


@dataclass(frozen=True)
class ProducerIdsBlock:
    """Ids from the first on. It keeps no count of those that are used: that is its broker's."""

    broker_id: int
    first: int
    size: int = BLOCK_SIZE

    @property
    def next_first(self) -> int:
        """Where the block behind it begins. [PID-5]"""
        return self.first + self.size

    def __str__(self) -> str:
        return f"ProducerIdsBlock(assignedBrokerId={self.broker_id}, firstProducerId={self.first}, size={self.size})"


EMPTY: Final = ProducerIdsBlock(NO_BROKER, 0, 0)
"""[PID-1]"""


@dataclass(frozen=True)
class ProducerIdsRecord:
    """As in the metadata log."""

    broker_id: int
    broker_epoch: int
    next_producer_id: int
    version: int = 0


@dataclass(frozen=True)
class BlockResult:
    """A block, and what has to be in the log before it counts."""

    block: ProducerIdsBlock
    records: tuple[ProducerIdsRecord, ...]
    atomic: bool = False


class ProducerIdControl:
    """Gives blocks, one behind the other, the first from 0 on. [PID-1, PID-13]"""

    def __init__(self, registry: SnapshotRegistry, epoch_of: Callable[[int], int | None]) -> None:
        self.next_block: TimelineObject[ProducerIdsBlock] = TimelineObject(registry, EMPTY)
        self.broker_epoch = TimelineLong(registry)
        self.epoch_of = epoch_of

    def check_broker(self, broker_id: int, broker_epoch: int) -> None:
        """[PID-2, PID-3]"""
        known = self.epoch_of(broker_id)
        if known is None:
            raise UnregisteredBrokerError(f"No broker registration found for broker id {broker_id}")
        if known != broker_epoch:
            raise StaleBrokerEpochError(f"Expected broker epoch {known}, but got broker epoch {broker_epoch}")

    def generate(self, broker_id: int, broker_epoch: int) -> BlockResult:
        """[PID-4, PID-5, PID-6, PID-7]"""
        self.check_broker(broker_id, broker_epoch)
        block = ProducerIdsBlock(broker_id, self.next_block.get().first)
        if block.next_first > LAST_ID:
            raise ExhaustedError(
                "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit"
            )
        return BlockResult(block, (ProducerIdsRecord(broker_id, broker_epoch, block.next_first),))

    def replay(self, record: ProducerIdsRecord) -> None:
        """[PID-8, PID-9, PID-10, PID-11]"""
        last = self.next_block.get()
        if last is not EMPTY and record.next_producer_id <= last.first:
            raise ReplayError(
                f"Next Producer ID from replayed record ({record.next_producer_id}) is not greater than current next "
                f"Producer ID in block ({last})"
            )
        self.next_block.set(ProducerIdsBlock(record.broker_id, record.next_producer_id))
        self.broker_epoch.set(record.broker_epoch)


class ProducerIdsImage:
    """What a raft snapshot has of producer ids. It is fed with what is committed."""

    def __init__(self) -> None:
        self.next_producer_id = -1

    def replay(self, record: ProducerIdsRecord) -> None:
        """Whatever it says. [PID-12]"""
        self.next_producer_id = record.next_producer_id

    def records(self) -> Sequence[ProducerIdsRecord]:
        """[PID-12]"""
        if self.next_producer_id < 0:
            return []
        return [ProducerIdsRecord(NO_BROKER, -1, self.next_producer_id)]
