"""What a partition knows of its producers: the tables of the producer state manager, as values.

The rules are PSM, most of them with the operations. Source: ProducerStateManager, ProducerStateEntry, BatchMetadata,
VerificationStateEntry and TxnMetadata, Kafka 4.3.0.

Offsets, timestamps (ms), sequences and epochs are whole numbers; -1 stands for "none" wherever Kafka's files say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple, TypedDict

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.codec import Unordered, partial, replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.numbers import Offset
from kafkaspec.spec.common import record_format as fmt

Origin = Literal["CLIENT", "REPLICATION", "COORDINATOR"]
"""who appends: a producer, the leader's log being copied (or the own log being read again), a coordinator"""
MarkerType = Literal["COMMIT", "ABORT"]

BATCHES_RETAINED: Final = 5
SEQUENCES: Final = 2**31
"""sequences are 0 .. SEQUENCES - 1, and 0 follows the last"""
MOST_EPOCH: Final = 2**15 - 1
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = fmt.NO_SEQUENCE
NO_GUARD: Final = 0
UNKNOWN_VERSION: Final = -1
"""the transaction version of a marker that comes from a log: the log does not hold it"""
FIRST_NOW: Final = 1_000_000

OF_COORDINATORS = dict.fromkeys(
    ("spec", "impl", "model", "proof", "mutant"),
    "what coordinators write, not what a partition accepts: the audit looks for it in the log",
)

clause(
    "PSM-32",
    """A producer's epoch rises after its transaction has ended: the coordinator hands out a higher epoch when every
    partition of the transaction has its marker. Where a batch of a higher epoch follows an open transaction, a marker
    is lost, or the transaction's last batch came in after its marker, as was possible before KIP-890.""",
    source="TransactionCoordinator, Kafka 2.8 and 4.3.0; KIP-98; KIP-890",
    without=OF_COORDINATORS,
)
clause(
    "PSM-33",
    """A batch that a group coordinator writes for a producer, of offset commits in its transaction, begins at sequence
    0, each of them: such sequences are nobody's, and are not compared.""",
    source="GroupMetadataManager.storeOffsets, Kafka 0.11 to 3.9; CoordinatorRuntime, Kafka 4.3.0",
    without=OF_COORDINATORS,
)


@states("PSM-4")
def next_sequence(sequence: int) -> int:
    """The one after it; 0 after the last one and after NO_SEQUENCE."""
    return (sequence + 1) % SEQUENCES


# ---- one producer ----------------------------------------------------------------------------------------------------
class BatchNumbers(NamedTuple):
    """A batch as it is shown."""

    first_sequence: Annotated[int, governs("PSM-4")]
    last_sequence: Annotated[int, governs("PSM-1")]
    first_offset: Annotated[int, governs("PSM-4")]
    last_offset: Annotated[int, governs("PSM-1")]
    timestamp: Annotated[int, governs("PSM-1")]


class Batch(NamedTuple):
    """A data batch that is remembered."""

    last_sequence: int
    last_offset: Offset
    offset_delta: int
    timestamp: int

    @property
    @states("PSM-4")
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) % SEQUENCES

    @property
    @states("PSM-4")
    def first_offset(self) -> Offset:
        return self.last_offset - self.offset_delta

    @property
    def numbers(self) -> BatchNumbers:
        first, last = self.first_sequence, self.last_sequence
        return BatchNumbers(first, last, self.first_offset, self.last_offset, self.timestamp)


class Producer(NamedTuple):
    """What is known of one producer id."""

    epoch: int = NO_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    transaction: Offset | None = None
    """first offset of the open one"""
    batches: tuple[Batch, ...] = ()
    """oldest first"""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def following(self, epoch: int) -> int:
        """The sequence with which a batch of that epoch begins."""
        return next_sequence(self.last_sequence) if epoch == self.epoch else 0

    @states("PSM-1", "PSM-9")
    def appended(self, epoch: int, batch: Batch, transactional: bool) -> Producer:
        """The producer after a data batch that was accepted."""
        kept = self.batches if epoch == self.epoch else ()
        transaction = batch.first_offset if transactional and self.transaction is None else self.transaction
        return Producer(epoch, self.coordinator_epoch, batch.timestamp, transaction, (*kept, batch)[-BATCHES_RETAINED:])

    @states("PSM-1", "PSM-10")
    def marked(self, epoch: int, coordinator_epoch: int, timestamp: int) -> Producer:
        """The producer after a marker that was accepted."""
        return Producer(epoch, coordinator_epoch, timestamp, None, self.batches if epoch == self.epoch else ())

    @states("PSM-2")
    def duplicate(self, epoch: int, first_sequence: int, last_sequence: int) -> Batch | None:
        """The retained batch that a batch with these numbers repeats; of several the oldest."""
        numbers = (self.epoch, first_sequence, last_sequence)
        return next((b for b in self.batches if (epoch, b.first_sequence, b.last_sequence) == numbers), None)

    def has_open_transaction(self, epoch: int) -> bool:
        return self.transaction is not None and self.epoch == epoch

    @states("PSM-18")
    def saved(self) -> Producer:
        """What a snapshot keeps of it: one timestamp for the producer and its batch."""
        return self._replace(batches=tuple(b._replace(timestamp=self.last_timestamp) for b in self.batches[-1:]))


UNKNOWN: Final = Producer()


# ---- a partition -----------------------------------------------------------------------------------------------------
class TransactionEnd(NamedTuple):
    """Of a transaction whose marker is at `last_offset`."""

    producer_id: int
    last_offset: Offset


class Verification(NamedTuple):
    """Of a producer's transaction: when it began, and what was asked for since."""

    timestamp: int
    lowest_sequence: int
    epoch: int
    supports_epoch_bump: bool
    guard: int
    """its own number"""


class Config(NamedTuple):
    max_transaction_timeout_ms: int = 300_000
    producer_id_expiration_ms: int = 86_400_000
    transaction_verification_enabled: bool = True


Snapshot = Mapping[int, Producer]
"""what a snapshot file holds, by producer id"""


@dataclass(frozen=True)
class State:
    """A partition's producers. Nothing in it is ever changed in place."""

    producers: Mapping[int, Producer]
    ended: Mapping[Offset, TransactionEnd]
    """transactions that ended and are not known to be replicated, by first offset"""
    verifications: Mapping[int, Verification]
    snapshots: Mapping[Offset, Snapshot | None]
    """the files, ascending; None: unreadable"""
    end: Offset
    """all batches below it are in"""
    last_snapshot: Offset
    """of the last one taken or loaded"""
    now: int
    guards: int
    """how many there were"""
    handed_out: frozenset[int]
    """the guards that somebody was given"""
    config: Config

    def known(self, producer_id: int) -> Producer:
        return self.producers.get(producer_id, UNKNOWN)

    @property
    def opened(self) -> dict[Offset, int]:
        """Producer ids by the first offsets of open transactions, ascending."""
        return dict(sorted((p.transaction, i) for i, p in self.producers.items() if p.transaction is not None))

    @property
    @states("PSM-13")
    def first_undecided(self) -> Offset | None:
        return min(self.opened, default=None)

    @property
    @states("PSM-13")
    def first_unstable(self) -> Offset | None:
        return min([*self.opened, *self.ended], default=None)

    @property
    @states("PSM-18")
    def saved(self) -> Snapshot:
        """What a snapshot taken now holds."""
        return {i: p.saved() for i, p in sorted(self.producers.items())}

    def with_producer(self, producer_id: int, producer: Producer, end: Offset) -> State:
        """The state that stands at `end` after a batch of that producer."""
        return replace(self, producers={**self.producers, producer_id: producer}, end=end)

    def without_verification(self, producer_id: int) -> State:
        return replace(self, verifications={i: v for i, v in self.verifications.items() if i != producer_id})

    def with_snapshots(self, snapshots: Mapping[Offset, Snapshot | None], **more: Any) -> State:
        return replace(self, snapshots=dict(sorted(snapshots.items())), **more)

    def __hash__(self) -> int:
        return hash((tuple(self.producers.items()), tuple(self.ended), self.end, tuple(self.snapshots), self.now))


# ---- what is shown of it ---------------------------------------------------------------------------------------------
LATE_TRANSACTION_BUFFER_MS: Final = 5 * 60 * 1000


@states("PSM-29")
def is_late(state: State) -> bool:
    """Whether the partition has a late transaction."""
    opened = state.opened
    last = state.known(next(iter(opened.values()))).last_timestamp if opened else -1
    return last > 0 and state.now - last > state.config.max_transaction_timeout_ms + LATE_TRANSACTION_BUFFER_MS


@dataclass(frozen=True)
class ProducerEntry:
    """What is known of a producer."""

    producer_id: Annotated[int, governs("PSM-1")]
    epoch: Annotated[int, governs("PSM-1", "PSM-10")]
    coordinator_epoch: Annotated[int, governs("PSM-10", "PSM-1", "PSM-12")]
    last_timestamp: Annotated[int, governs("PSM-1", "PSM-10")]
    last_seq: Annotated[int, governs("PSM-1")]
    current_txn_first_offset: Annotated[int | None, governs("PSM-9", "PSM-10")]
    batches: Annotated[list[BatchNumbers], governs("PSM-1", "PSM-18")]


@dataclass(frozen=True)
class VerificationEntry:
    """The verification of a producer."""

    lowest_sequence: Annotated[int, governs("PSM-26")]
    epoch: Annotated[int, governs("PSM-26")]
    supports_epoch_bump: Annotated[bool, governs("PSM-26")]


@dataclass(frozen=True)
class TimedVerification(VerificationEntry):
    """The verification of a producer."""

    timestamp: Annotated[int, governs("PSM-26")]
    """ms"""


@partial
@dataclass(frozen=True)
class Observation:
    """Producers, transactions, verifications and snapshots. A release without verifications, or which tells no late
    transaction, omits those."""

    now: Annotated[int, governs("PSM-29")]
    """ms"""
    map_end_offset: Annotated[int, governs("PSM-19", "PSM-20", "PSM-21", "PSM-22", "PSM-28")]
    first_unstable_offset: Annotated[int | None, governs("PSM-13", "PSM-15", "PSM-22")]
    first_undecided_offset: Annotated[int | None, governs("PSM-13", "PSM-9", "PSM-10")]
    producers: Annotated[
        Unordered[ProducerEntry], governs("PSM-1", "PSM-17", "PSM-19", "PSM-20", "PSM-21", "PSM-28", "PSM-31")
    ]
    verification: Annotated[dict[str, TimedVerification], governs("PSM-26", "PSM-27", "PSM-17")]
    """by producer id"""
    snapshots: Annotated[list[int], governs("PSM-18", "PSM-19", "PSM-20", "PSM-21", "PSM-23", "PSM-28")]
    """their offsets"""
    has_late_transaction: Annotated[bool, governs("PSM-29")]


def entry_of(producer_id: int, p: Producer) -> ProducerEntry:
    numbers = [b.numbers for b in p.batches]
    return ProducerEntry(
        producer_id, p.epoch, p.coordinator_epoch, p.last_timestamp, p.last_sequence, p.transaction, numbers
    )


def observe(state: State) -> Observation:
    return Observation(
        state.now,
        state.end,
        state.first_unstable,
        state.first_undecided,
        Unordered(entry_of(i, p) for i, p in sorted(state.producers.items())),
        {
            str(i): TimedVerification(v.lowest_sequence, v.epoch, v.supports_epoch_bump, v.timestamp)
            for i, v in sorted(state.verifications.items())
        },
        list(state.snapshots),
        is_late(state),
    )


# ---- what is answered ------------------------------------------------------------------------------------------------
class OpenedTransactions(TypedDict):
    """The first offsets of the transactions that a batch opened."""

    startedTransactions: Annotated[list[int], governs("PSM-9")]


class Duplicate(TypedDict):
    """The retained batch that a batch repeats: nothing was appended."""

    duplicate: Annotated[list[int], governs("PSM-2", "PSM-4")]
    """first sequence, last sequence, first offset, last offset, timestamp"""


@dataclass(frozen=True)
class EndedTransaction:
    """A transaction that a marker ended."""

    producer_id: Annotated[int, governs("PSM-10")]
    first_offset: Annotated[int, governs("PSM-10")]
    last_offset: Annotated[int, governs("PSM-10")]
    is_aborted: Annotated[bool, governs("PSM-10")]
    last_stable_offset: Annotated[int, governs("PSM-16")]
