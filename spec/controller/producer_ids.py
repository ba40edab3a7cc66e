"""Blocks of producer ids, which the controller gives to brokers: no id is in two of them.

A broker gives each producer an id out of its block, and asks for the next block when that is used up. The controller's answer
is a record in the log; it counts when the record is replayed, and is undone if it was not committed. Source: Kafka Internals,
ch. 11, "ProducerIdControlManager".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final

from icontract import ensure, require

from kafkaspec.contract.clauses import states
from kafkaspec.contract.codec import partial
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import BrokerEpoch, Int64, NodeId, Offset
from kafkaspec.spec.common.kafka import LONG_MAX

PREFIX = "PID"
TITLE = "Blocks of producer ids"

CHAPTER = "Kafka Internals, ch. 11, ProducerIdControlManager"
CLASS = "ProducerIdControlManager"

STALE_BROKER_EPOCH = "org.apache.kafka.common.errors.StaleBrokerEpochException"
UNKNOWN_SERVER = "org.apache.kafka.common.errors.UnknownServerException"
RUNTIME_EXCEPTION = "java.lang.RuntimeException"
BLOCK_SIZE: Final = 1000
EMPTY: Final = -1
"""The broker of the block that there is at first."""
FIRST_SNAPSHOT: Final = -1


@dataclass(frozen=True)
class Block:
    """Ids from the first on, `size` of them."""

    first_producer_id: int
    size: int


@dataclass(frozen=True)
class Fields:
    """Of the record."""

    broker_id: int
    broker_epoch: int
    next_producer_id: int


@dataclass(frozen=True)
class Allocation:
    """A block, and the record that makes it one."""

    block: Block
    record: Fields


@dataclass(frozen=True)
class NextBlock:
    """Whose record was the last, and where the next block begins."""

    broker_id: int = EMPTY
    first: int = 0
    broker_epoch: int = 0


@dataclass(frozen=True)
class ProducerIds:
    """The state."""

    brokers: Mapping[int, int]
    """the epochs of those that are registered"""
    next: NextBlock
    past: Mapping[int, NextBlock]
    """by rising epoch, what was at each snapshot"""

    @property
    def latest(self) -> int:
        """The epoch of the latest snapshot."""
        return next(reversed(dict(self.past)))


@partial
@dataclass(frozen=True)
class Observation:
    """Where the next block begins, and who asked for the last; now and at every snapshot."""

    next_producer_id: Annotated[int, governs("PID-1", "PID-5", "PID-7")]
    snapshot_epochs: Annotated[list[int], governs("PID-7")]
    broker_id: Annotated[int, governs("PID-1", "PID-5", "PID-7")]
    broker_epoch: Annotated[int, governs("PID-1", "PID-5", "PID-7")]
    at: Annotated[dict[str, int], governs("PID-7")]


@states()
def initial() -> ProducerIds:
    """PID-1: At first no broker has a block, and the first one begins at 0. [{CLASS}, Kafka 4.3.0]"""
    return ProducerIds({0: 100}, NextBlock(), {FIRST_SNAPSHOT: NextBlock()})


def observe(state: ProducerIds) -> Observation:
    """What is compared after every call."""
    at = {str(epoch): block.first for epoch, block in state.past.items()}
    return Observation(state.next.first, list(state.past), state.next.broker_id, state.next.broker_epoch, at)


machine = Machine("producer_ids", initial, observe)


@states()
def refused_broker(state: ProducerIds, broker_id: int, broker_epoch: int) -> Refused | None:
    """PID-2: A broker that is not registered, or that asks with another epoch than that of its registration, gets no block.
    [{CHAPTER}; ClusterControlManager.checkBrokerEpoch, Kafka 4.3.0]"""
    known = state.brokers.get(broker_id)
    if known is None:
        return Refused("PID-2", STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
    if known != broker_epoch:
        message = f"Expected broker epoch {known}, but got broker epoch {broker_epoch}"
        return Refused("PID-2", STALE_BROKER_EPOCH, message)
    return None


@states()
def replayed(state: ProducerIds, record: Fields) -> ProducerIds | Refused:
    """PID-5: A record that is replayed says where the next block begins. [{CHAPTER}; {CLASS}.replay, Kafka 4.3.0]

    PID-6: A record that does not move the next block up is refused, and changes nothing; the first record may say any id.
    [{CHAPTER}; {CLASS}.replay, Kafka 4.3.0]
    """
    last, said = state.next, record.next_producer_id
    if last.broker_id != EMPTY and said <= last.first:
        block = f"ProducerIdsBlock(assignedBrokerId={last.broker_id}, firstProducerId={last.first}, size={BLOCK_SIZE})"
        message = (
            f"Next Producer ID from replayed record ({said}) is not greater than current next Producer ID in block "
            f"({block})"
        )
        return Refused("PID-6", RUNTIME_EXCEPTION, message)
    return replace(state, next=NextBlock(record.broker_id, said, record.broker_epoch))


@machine.operation("generateNextProducerId", "PID-2", "PID-5")
@ensure(
    lambda state, result: (
        isinstance(result.result, Refused)
        or (
            result.result.block.first_producer_id == state.next.first
            and result.state.next.first == state.next.first + BLOCK_SIZE
        )
    ),
    "PID-3 the next block begins where this one ends",
)
def generate_next_producer_id(
    state: ProducerIds, broker_id: NodeId, broker_epoch: BrokerEpoch
) -> Step[ProducerIds, Allocation]:
    """A broker asks for a block; the record that is made is replayed.

    PID-3: A block has {BLOCK_SIZE} ids, from where the last record said that the next block begins; its record says that
    the next one begins behind it, and names the broker and its epoch. [{CHAPTER}; {CLASS}.generateNextProducerId, Kafka
    4.3.0]

    PID-4: If there is no room for a whole block below the end of 64 bits, none is given, and nothing changes.
    [{CLASS}.generateNextProducerId, Kafka 4.3.0]
    """
    refusal = refused_broker(state, broker_id, broker_epoch)
    if refusal is not None:
        return Step(state, refusal)
    first = state.next.first
    if first > LONG_MAX - BLOCK_SIZE:
        message = (
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit"
        )
        return Step(state, Refused("PID-4", UNKNOWN_SERVER, message))
    record = Fields(broker_id, broker_epoch, first + BLOCK_SIZE)
    after = replayed(state, record)
    if isinstance(after, Refused):
        return Step(state, after)
    return Step(after, Allocation(Block(first, BLOCK_SIZE), record))


@machine.operation("replay", "PID-5", "PID-6")
@require(lambda broker_id: broker_id >= 0, "PID-5 a record names a broker")
@ensure(
    lambda state, next_producer_id, result: (
        isinstance(result, Refused)
        == (state.next.broker_id != EMPTY and next_producer_id <= state.next.first)
    ),
    "PID-6 refused if and only if it does not move the next block up",
)
def replay(
    state: ProducerIds, broker_id: NodeId, broker_epoch: BrokerEpoch, next_producer_id: Int64
) -> ProducerIds | Refused:
    """A record of the log is replayed, as a standby does."""
    return replayed(state, Fields(broker_id, broker_epoch, next_producer_id))


@machine.environment("register")
def register(state: ProducerIds, broker_id: NodeId, broker_epoch: BrokerEpoch) -> ProducerIds:
    """A broker registers, or registers again: in the class beside this one."""
    return replace(state, brokers={**state.brokers, broker_id: broker_epoch})
