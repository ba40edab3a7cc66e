"""Blocks of producer ids, which the controller gives to brokers: no id is in two of them.

A broker gives each producer an id out of its block, and asks for the next block when that is used up. The controller
answers with a block and a record, which says where the block behind it begins. It counts when it is replayed, and is
undone if it was not committed. The registrations of brokers stand beside it in the same memory. Source: Kafka
Internals, ch. 11, "ProducerIdControlManager"; KIP-730.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import not_modelled, states
from kafkaspec.contract.codec import partial, replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import BrokerEpoch, Int64, NodeId, Within
from kafkaspec.spec.common.kafka import LONG_MAX
from kafkaspec.spec.common.snapshots import Epoch, SnapshotState
from kafkaspec.spec.controller.timeline import RUNTIME_EXCEPTION as RUNTIME_EXCEPTION

PREFIX = "PID"
TITLE = "Blocks of producer ids"

CHAPTER = "Kafka Internals, ch. 11, ProducerIdControlManager"
CLASS = "ProducerIdControlManager"

STALE_BROKER_EPOCH = "org.apache.kafka.common.errors.StaleBrokerEpochException"
UNKNOWN_SERVER = "org.apache.kafka.common.errors.UnknownServerException"
BLOCK_SIZE: Final = 1000
NO_BROKER: Final = -1
"""The broker of the block that there is at first, and of a record in a raft snapshot."""
UNKNOWN_EPOCH: Final = -1
"""The epoch of a broker in a raft snapshot's record."""

BrokerOrNobody = Annotated[int, Within(NO_BROKER, 2**31 - 1)]


class Block(NamedTuple):
    """Ids from the first on, `size` of them."""

    broker_id: int
    first: int
    size: int

    def __str__(self) -> str:
        return f"ProducerIdsBlock(assignedBrokerId={self.broker_id}, firstProducerId={self.first}, size={self.size})"


EMPTY: Final = Block(NO_BROKER, 0, 0)
"""The block of a controller that has replayed no record; no record makes a block without ids."""


@dataclass(frozen=True)
class Record:
    """A ProducerIdsRecord."""

    version: int
    broker_id: int
    broker_epoch: int
    next_producer_id: int


@partial
@dataclass(frozen=True)
class Allocation:
    """A block, and the records that make it one."""

    first_producer_id: Annotated[int, governs("PID-4", "PID-13")]
    size: Annotated[int, governs("PID-4")]
    records: Annotated[tuple[Record, ...], governs("PID-5")]
    atomic: Annotated[bool, governs("PID-5")]
    assigned_broker_id: Annotated[int, governs("PID-4")]


class Memory(NamedTuple):
    """What records have made: the part that is kept for each snapshot."""

    next: Block = EMPTY
    """the block that is given next, with the broker of the last record"""
    broker_epoch: int = 0
    """of the last record"""
    brokers: tuple[tuple[int, int], ...] = ()
    """those that are registered, with their epochs, by rising ids"""


NOTHING: Final = Memory()


@dataclass(frozen=True, kw_only=True)
class ProducerIds(SnapshotState[Memory]):
    """The state."""

    present: Memory = NOTHING

    @property
    def next(self) -> Block:
        """The block that is given next."""
        return self.present.next


class ShownMemory(NamedTuple):
    """What records have made, at one epoch."""

    next_producer_id: int
    assigned_broker_id: int
    size: int
    broker_epoch: int
    brokers: dict[str, int]


@partial
@dataclass(frozen=True)
class Observation:
    """All that the manager keeps, and the brokers that are registered; now and at every snapshot."""

    next_producer_id: Annotated[int, governs("PID-10", "PID-8", "PID-9", "PID-1", "PID-11")]
    snapshot_epochs: Annotated[list[int], governs("PID-11")]
    assigned_broker_id: Annotated[int, governs("PID-1", "PID-8", "PID-9", "PID-11")]
    size: Annotated[int, governs("PID-1", "PID-8", "PID-11")]
    broker_epoch: Annotated[int, governs("PID-1", "PID-8", "PID-9", "PID-11")]
    brokers: Annotated[dict[str, int], governs("PID-11", "PID-2")]
    at: Annotated[dict[str, ShownMemory], governs("PID-11")]
    """by epoch"""


class Registration(NamedTuple):
    """A broker and its epoch."""

    broker_id: NodeId
    broker_epoch: BrokerEpoch


@states()
def initial(brokers: Sequence[Registration] = ()) -> ProducerIds:
    """Some brokers are registered.

    PID-1: At first, and after a reset, no broker has a block, the next block begins at 0, and the epoch of the broker
    that asked last is 0. [{CLASS}, its TimelineObject and TimelineLong; ProducerIdsBlock.EMPTY, Kafka 4.3.0]
    """
    return ProducerIds(present=Memory(brokers=tuple(sorted((b, e) for b, e in dict(brokers).items()))))


def _shown(memory: Memory) -> ShownMemory:
    brokers = {str(id): epoch for id, epoch in memory.brokers}
    return ShownMemory(memory.next.first, memory.next.broker_id, memory.next.size, memory.broker_epoch, brokers)


def observe(state: ProducerIds) -> Observation:
    """What is compared after every call."""
    now = _shown(state.present)
    return Observation(
        now.next_producer_id,
        state.epochs,
        now.assigned_broker_id,
        now.size,
        now.broker_epoch,
        now.brokers,
        {str(epoch): _shown(memory) for epoch, memory in state.past},
    )


machine = Machine("producer_ids", initial, observe)


# ---- who gets a block ------------------------------------------------------------------------------------------------
@states()
def refused_broker(state: ProducerIds, broker_id: int, broker_epoch: int) -> Refused | None:
    """PID-2: A broker that is not registered gets no block. [{CHAPTER}; ClusterControlManager.checkBrokerEpoch, Kafka
    4.3.0]

    PID-3: A broker that asks with another epoch than that of its registration, an earlier or a later one, gets no
    block. [{CHAPTER}; ClusterControlManager.checkBrokerEpoch, Kafka 4.3.0]
    """
    known = dict(state.present.brokers).get(broker_id)
    if known is None:
        return Refused("PID-2", STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
    if known != broker_epoch:
        message = f"Expected broker epoch {known}, but got broker epoch {broker_epoch}"
        return Refused("PID-3", STALE_BROKER_EPOCH, message)
    return None


# ---- records ---------------------------------------------------------------------------------------------------------
@states(without={"PID-10": {"proof": "that something may happen is shown by a witness"}})
def may_say_any(last: Block) -> bool:
    """PID-10: The chapter says that every record has to move it up. The first record, and the first after a reset, may
    say any id, be it 0 or negative. [{CLASS}.replay, Kafka 4.3.0]"""
    return last == EMPTY


@states()
def does_not_rise(last: Block, said: int) -> bool:
    """PID-9: A record that does not move the next block up is refused, and changes nothing: the same id again, or a
    lower one, whoever it names. [{CHAPTER}; {CLASS}.replay, Kafka 4.3.0]"""
    return said <= last.first


@states()
def replayed(state: ProducerIds, record: Record) -> ProducerIds | Refused:
    """PID-8: A record that is replayed says where the next block begins; the broker and the epoch that it names are
    those of the last record. [{CHAPTER}; {CLASS}.replay, Kafka 4.3.0]"""
    last, said = state.next, record.next_producer_id
    if not may_say_any(last) and does_not_rise(last, said):
        message = (
            f"Next Producer ID from replayed record ({said}) is not greater than current next Producer ID in block "
            f"({last})"
        )
        return Refused("PID-9", RUNTIME_EXCEPTION, message)
    block = Block(record.broker_id, said, BLOCK_SIZE)
    return replace(state, present=state.present._replace(next=block, broker_epoch=record.broker_epoch))


@states()
def record_of(first: int, broker_id: int, broker_epoch: int) -> Record:
    """PID-5: A block's record, which is the only one, names the broker and its epoch, and says that the next block
    begins behind this one. [{CHAPTER}; {CLASS}.generateNextProducerId, Kafka 4.3.0; KAFKA-15552]"""
    return Record(0, broker_id, broker_epoch, first + BLOCK_SIZE)


@states()
def is_exhausted(first: int) -> bool:
    """PID-7: If a whole block does not end within 64 bits none is given, and nothing changes: the ids above are never
    given. [{CLASS}.generateNextProducerId, Kafka 4.3.0]"""
    return first > LONG_MAX - BLOCK_SIZE


@states(without={"PID-6": not_modelled("the call alone changes nothing")})
def changes_something(replayed: bool) -> bool:
    """PID-6: To ask changes nothing: until the record is replayed whoever asks is given the same block.
    [{CLASS}.generateNextProducerId, Kafka 4.3.0]"""
    return replayed


def _answered(result: Step[ProducerIds, Allocation]) -> bool:
    return not isinstance(result.result, Refused)


@machine.operation("generateNextProducerId", "PID-5", "PID-6", "PID-7", "PID-2", "PID-3", "PID-8")
@ensure(
    lambda state, broker_id, broker_epoch, result: (
        _answered(result) <= (dict(state.present.brokers).get(broker_id, broker_epoch - 1) == broker_epoch)
    ),
    "PID-3 a broker that is registered with that epoch",
)
@ensure(
    lambda state, result: not _answered(result) or result.result.first_producer_id >= state.next.first,
    "PID-13 no id that a record in the memory has given",
)
@ensure(
    lambda result: (
        not _answered(result)
        or result.result.records[0].next_producer_id == result.result.first_producer_id + result.result.size
    ),
    "PID-5 the record says where the block ends",
)
@ensure(
    lambda state, replayed, result: (result.state == state) != (replayed and _answered(result)),
    "PID-6 the state changes if and only if the record is replayed",
)
@ensure(
    lambda state, result: (
        (result.result.clause == "PID-7" if not _answered(result) else False)
        <= (state.next.first + BLOCK_SIZE > LONG_MAX)
    ),
    "PID-7 refused only where there is no room",
)
def generate_next_producer_id(
    state: ProducerIds, broker_id: NodeId, broker_epoch: BrokerEpoch, replayed: bool
) -> Step[ProducerIds, Allocation]:
    """A broker asks for a block. The controller replays the record at once, before the next call; it may also be left.

    PID-4: A block has 1000 ids, from where the last record said that the next block begins, and is the asking
    broker's. [{CHAPTER}; {CLASS}.generateNextProducerId; ProducerIdsBlock, Kafka 4.3.0]

    PID-13: No id is in two blocks whose records are both in the log, however often the controller changes: a block
    begins where a record in the log said, and the record behind it says more. [KIP-730; {CLASS}, Kafka 4.3.0]
    """
    refusal = refused_broker(state, broker_id, broker_epoch)
    if refusal is not None:
        return Step(state, refusal)
    first = state.next.first
    if is_exhausted(first):
        message = "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit"
        return Step(state, Refused("PID-7", UNKNOWN_SERVER, message))
    record = record_of(first, broker_id, broker_epoch)
    after = _after(state, record) if changes_something(replayed) else state
    return Step(after, Allocation(first, BLOCK_SIZE, (record,), False, broker_id))


def _after(state: ProducerIds, record: Record) -> ProducerIds:
    """Of a record that moves the next block up."""
    after = replayed(state, record)
    assert not isinstance(after, Refused)
    return after


@machine.operation("replay", "PID-10", "PID-8", "PID-9")
@ensure(
    lambda state, next_producer_id, result: (
        isinstance(result, Refused) == (state.next != EMPTY and next_producer_id <= state.next.first)
    ),
    "PID-9 refused if and only if it does not move the next block up, and is not the first",
)
@ensure(
    lambda state, next_producer_id, result: (
        isinstance(result, Refused)
        or (result.next.first == next_producer_id and result.present.brokers == state.present.brokers)
    ),
    "PID-8 the next block begins there",
)
def replay(
    state: ProducerIds, broker_id: BrokerOrNobody, broker_epoch: BrokerEpoch, next_producer_id: Int64
) -> ProducerIds | Refused:
    """A record of the log or of a raft snapshot is replayed."""
    return replayed(state, Record(0, broker_id, broker_epoch, next_producer_id))


@machine.question("imageRecords")
def image_records(next_producer_ids: Sequence[Int64]) -> list[Record]:
    """The records that a raft snapshot has of producer ids, after records that said so.

    PID-12: A raft snapshot has one record: it says what the last one said, and names neither its broker nor its epoch,
    which are -1. There is none before the first record, nor if that said a negative id. [ProducerIdsDelta.replay,
    ProducerIdsImage.write, Kafka 4.3.0]
    """
    last = next_producer_ids[-1] if next_producer_ids else NO_BROKER
    return [Record(0, NO_BROKER, UNKNOWN_EPOCH, last)] if last >= 0 else []


# ---- the past --------------------------------------------------------------------------------------------------------
@machine.operation("getOrCreateSnapshot", "PID-11")
@require(lambda state, epoch: epoch > state.highest, "PID-11 a new epoch is above every one used before")
@ensure(lambda state, result: result.present == state.present, "PID-11 the present stays")
def get_or_create_snapshot(state: ProducerIds, epoch: Epoch) -> ProducerIds:
    """A snapshot of all that there is."""
    return state.with_snapshot(epoch)


@machine.operation("revertToSnapshot")
@require(lambda state, epoch: state.past_at(epoch) is not None, "PID-11 the epoch has a snapshot")
@ensure(
    lambda state, epoch, result: result.present == state.past_at(epoch), "PID-11 the present is that of the snapshot"
)
def revert_to_snapshot(state: ProducerIds, epoch: Epoch) -> ProducerIds:
    """`revertToSnapshot` of the registry.

    PID-11: The next block, the broker and epoch of the last record, and the registrations can be put back, together, to
    what they were at a snapshot: a block whose record was not committed is given again. [{CHAPTER}; {CLASS}, its
    TimelineObject and TimelineLong, Kafka 4.3.0]
    """
    return state.reverted(epoch)


@machine.operation("deleteSnapshotsUpTo", "PID-11")
@ensure(lambda state, result: result.present == state.present, "PID-11 the present stays")
def delete_snapshots_up_to(state: ProducerIds, epoch: Epoch) -> ProducerIds:
    """Snapshots below the epoch are forgotten."""
    return state.without_below(epoch)


@machine.operation("reset", "PID-1", "PID-11")
@ensure(lambda result: result == ProducerIds(), "PID-1 nothing is left")
def reset_registry(state: ProducerIds) -> ProducerIds:
    """`reset` of the registry, before a raft snapshot is loaded."""
    return state.begun_again(NOTHING)


# ---- brokers ---------------------------------------------------------------------------------------------------------
def _registered(state: ProducerIds, broker_id: int, broker_epoch: int | None) -> ProducerIds:
    others = {id: epoch for id, epoch in state.present.brokers if id != broker_id}
    if broker_epoch is not None:
        others[broker_id] = broker_epoch
    return replace(state, present=state.present._replace(brokers=tuple(sorted(others.items()))))


@machine.environment("registerBroker")
@ensure(
    lambda broker_id, broker_epoch, result: dict(result.present.brokers)[broker_id] == broker_epoch,
    "PID-3 the broker has that epoch",
)
@ensure(lambda state, result: result.next == state.next, "PID-8 the next block stays")
def register_broker(state: ProducerIds, broker_id: NodeId, broker_epoch: BrokerEpoch) -> ProducerIds:
    """The record of a broker's registration is replayed, its first one or a later one."""
    return _registered(state, broker_id, broker_epoch)


@machine.environment("unregisterBroker")
@require(lambda state, broker_id: broker_id in dict(state.present.brokers), "PID-2 the broker is registered")
def unregister_broker(state: ProducerIds, broker_id: NodeId) -> ProducerIds:
    """The record is replayed that a broker is registered no longer."""
    return _registered(state, broker_id, None)
