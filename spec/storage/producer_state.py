"""What a partition remembers of its producers: sequences, epochs, open transactions, and the snapshots of all that.

An idempotent producer numbers its records; the leader takes each number once and in order. A transactional producer's
records stay undecided until a marker ends the transaction, and the last stable offset stays below them. All of it is a
function of the log, so it can be rebuilt by reading; snapshots, one at each roll, spare the reading. Time alone is not
in the log: idle producers are forgotten. Source: Kafka Internals, ch. 03, "ProducerStateManager: idempotency, snapshots
& transactions"; KIP-98, KIP-360, KIP-447, KIP-890; ProducerStateManager and its neighbours, Kafka 4.3.0.

Offsets, timestamps (ms), sequences and epochs are whole numbers; -1 stands for "none" wherever Kafka's files say so.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypedDict, cast

import crc32c
from icontract import ensure, require

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.machine import Fields, Json, Machine, Refused, Step
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT

PREFIX = "PSM"
TITLE = "Producer state"

Offset = int
Origin = Literal["CLIENT", "REPLICATION", "COORDINATOR"]
"""who appends: a producer, the leader's log being copied (or the own log being read again), a coordinator"""
MarkerType = Literal["COMMIT", "ABORT"]

BATCHES_RETAINED: Final = 5
SEQUENCES: Final = 2**31
"""sequences are 0 .. SEQUENCES - 1, and 0 follows the last"""
MOST_EPOCH: Final = 2**15 - 1
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
LATE_TRANSACTION_BUFFER_MS: Final = 5 * 60 * 1000
UNKNOWN_VERSION: Final = -1
"""the transaction version of a marker that comes from a log: the log does not hold it"""

OUT_OF_ORDER = "org.apache.kafka.common.errors.OutOfOrderSequenceException"
INVALID_EPOCH = "org.apache.kafka.common.errors.InvalidProducerEpochException"
INVALID_STATE = "org.apache.kafka.common.errors.InvalidTxnStateException"
COORDINATOR_FENCED = "org.apache.kafka.common.errors.TransactionCoordinatorFencedException"
CORRUPT_SNAPSHOT = "org.apache.kafka.storage.internals.log.CorruptSnapshotException"

MANAGER = "ProducerStateManager, Kafka 4.3.0"
APPEND = "ProducerAppendInfo, Kafka 4.3.0"
CHAPTER = "Kafka Internals, ch. 03, 'ProducerStateManager: idempotency, snapshots & transactions'"
_TIMELESS = "the model has no clock"
_BYTES = "bytes without a history"

PSM_1 = clause(
    "PSM-1",
    """For each producer id that wrote lately a partition knows its epoch, the epoch of the coordinator that wrote its
    last marker, the timestamp of its last batch or marker, the first offset of its open transaction, and its five
    latest data batches (last sequence, last offset, offset delta, timestamp), the oldest dropped for a sixth; a batch
    or marker of another epoch drops all before it.""",
    source=f"{CHAPTER}; KIP-98; ProducerStateEntry, Kafka 4.3.0",
)
PSM_2 = clause(
    "PSM-2",
    """A client's batch with the epoch, and exactly the first and last sequence, of one of the five retained batches is
    a duplicate: nothing is appended, and the answer is the offsets and the timestamp of the batch that is there. No
    duplicate of a retained batch is ever appended.""",
    source=f"{CHAPTER}; UnifiedLog.analyzeAndValidateProducerState, ProducerStateEntry.findDuplicateBatch, Kafka 4.3.0",
)
PSM_3 = clause(
    "PSM-3",
    """A client's batch of the producer's own epoch begins at the sequence after its last one (at 0 if a marker brought
    the epoch and no batch came since), or it is refused: within an epoch the log has every sequence once, in order.""",
    source=f"KIP-98; {APPEND}; KAFKA-7298",
)
PSM_4 = clause(
    "PSM-4",
    """Sequences wrap: 0 follows 2^31 - 1. A batch's first sequence is its last one minus its offset delta, modulo 2^31,
    and its first offset comes from offsets, never from sequences.""",
    source="DefaultRecordBatch.incrementSequence and decrementSequence, BatchMetadata, Kafka 4.3.0; KAFKA-7692",
    without={
        "model": "the model's sequences do not wrap: arithmetic modulo 2^31, without a history",
        "proof": "see the model; it is tested at its ends",
    },
)
PSM_5 = clause(
    "PSM-5",
    "A client's batch of a new epoch begins at sequence 0, or it is refused, unless no epoch of the producer is known.",
    source=f"KIP-98; KIP-360; {APPEND}",
)
PSM_6 = clause(
    "PSM-6",
    """A batch of a client or a coordinator with an epoch below the producer's is refused: epochs fence off producers
    that were replaced, and never fall in a log.""",
    source=f"KIP-98; {APPEND}",
)
PSM_7 = clause(
    "PSM-7",
    """Of a producer of which no epoch is known a client's batch may begin at any sequence: its records may be deleted,
    or its state forgotten. Not so while a transaction is being verified: then only at 0 if the client can bump epochs
    (transaction version 2), and in no case above the lowest sequence that verification has seen.""",
    source=f"KIP-360; KIP-890; {APPEND}",
    without={
        "model": "the model's producers are known, or begin at 0",
        "proof": "see the model",
    },
)
PSM_8 = clause(
    "PSM-8",
    """Checks go by origin: of a client epoch and sequence; of a coordinator (offset commits, markers) epoch and
    coordinator epoch, no sequence; of replication none of these, for the leader has checked: what it sends is
    taken over, lower epochs too.""",
    source=f"AppendOrigin and {APPEND}; KAFKA-6003",
    without={"proof": "the model appends as a leader; a follower checks nothing that could be proved"},
)
PSM_9 = clause(
    "PSM-9",
    """A transactional batch of a producer without an open transaction opens one at its first offset; the following ones
    belong to it. A batch that is not transactional is refused while one is open, whatever its origin.""",
    source=f"KIP-98; {APPEND}",
)
PSM_10 = clause(
    "PSM-10",
    """A marker ends its producer's open transaction, committed or aborted, at the marker's own offset; without one it
    completes nothing, and is legal. Either way the producer's epoch, coordinator epoch and last timestamp become the
    marker's.""",
    source=f"KIP-98; {APPEND}; KAFKA-9144",
)
PSM_11 = clause(
    "PSM-11",
    """A marker's epoch is at least the producer's (transaction versions 0 and 1), and from version 2 on above it, for
    then each transaction's end bumps the epoch. At version 2 an equal epoch is accepted if no transaction is open (the
    marker is written again), or at the greatest epoch. Else it is refused. The version must be said, but for
    replication, which takes what the leader took.""",
    source=f"KIP-890; {APPEND}; KAFKA-19999",
)
PSM_12 = clause(
    "PSM-12",
    """A marker of a coordinator epoch below the last one that wrote for this producer is refused, but for replication:
    in a log the coordinator epochs of a producer's markers never fall.""",
    source=f"KIP-98; {APPEND}",
)
PSM_13 = clause(
    "PSM-13",
    """The first unstable offset is the least first offset of all transactions that are open or whose end is not
    replicated yet; there is none without any. The first undecided offset counts the open ones alone.""",
    source=f"{CHAPTER}; {MANAGER}",
)
PSM_14 = clause(
    "PSM-14",
    """The last stable offset is the first unstable offset, but at least the log start, if that is below the high
    watermark; else the high watermark. So it is never above the first record of an open transaction, never above the
    high watermark, and appends never lower it.""",
    source="Kafka Internals, ch. 03, 'Offset boundaries: LSO, LEO, HW, recovery point'; UnifiedLog.lastStableOffset",
)
PSM_15 = clause(
    "PSM-15",
    """A transaction that has ended stays unstable until the high watermark is above its marker.""",
    source=f"{MANAGER}; KAFKA-5634",
)
PSM_16 = clause(
    "PSM-16",
    """An aborted transaction that has records is entered in the transaction index of the segment that holds its marker:
    producer id, first offset, the marker's offset, and as last stable offset the first offset of the earliest
    transaction of another producer that is still open, or without one the offset after the marker. Committed ones are
    not entered, and every aborted one is.""",
    source=f"{CHAPTER}; ProducerStateManager.lastStableOffset, UnifiedLog.append, LogSegment.updateTxnIndex",
)
PSM_17 = clause(
    "PSM-17",
    """A producer without an open transaction is forgotten once its last timestamp lies producer.id.expiration.ms or
    more in the past; one with an open transaction never is. A verification that old is forgotten too.""",
    source=f"KIP-98; {MANAGER}; KAFKA-9144",
    without={"model": _TIMELESS, "proof": _TIMELESS},
)
PSM_18 = clause(
    "PSM-18",
    """A snapshot at offset x holds what the records below x make: of each producer its epoch, coordinator epoch, last
    timestamp, open transaction and its latest batch alone, whose own timestamp is lost: loaded, it is the last one. It
    is taken at every roll, when a log is closed and when it was recovered, and written only if x is above the offset of
    the last one taken or loaded.""",
    source=f"{CHAPTER}; {MANAGER}; KAFKA-6683",
)
PSM_19 = clause(
    "PSM-19",
    """Truncation and start-up delete the snapshots above the new log end and those not above the log start; if the new
    end is not where the state stands, all of it (but verifications) is dropped and loaded from a snapshot. If it is,
    the state stays, and the log start alone is taken note of.""",
    source=f"{MANAGER}, truncateAndReload; KAFKA-12153",
)
PSM_20 = clause(
    "PSM-20",
    """Loading takes the latest snapshot that can be read, deletes those after it that cannot, leaves out producers that
    are expired, and opens the transactions that were open; the state then stands at its offset. Without any it is empty
    and stands at the log start. What the log holds after it is then read as replication.""",
    source=f"{CHAPTER}; {MANAGER}; UnifiedLog.rebuildProducerState",
)
PSM_21 = clause(
    "PSM-21",
    """A full truncation to an offset forgets producers and transactions, and deletes all snapshots; the state stands at
    that offset.""",
    source=f"{MANAGER}, truncateFullyAndStartAt",
    without={"model": "an empty log, which the model begins with", "proof": "see the model"},
)
PSM_22 = clause(
    "PSM-22",
    """A raised log start makes the ends of transactions below it replicated, lifts the state's offset at least to it,
    and makes the latest snapshot's offset, or without one the log start, that of the last snapshot. Producers whose
    records are all deleted stay known, until they expire.""",
    source=f"{MANAGER}, onLogStartOffsetIncremented; KIP-360",
    without={"model": "the model's log begins at 0", "proof": "see the model"},
)
PSM_23 = clause(
    "PSM-23",
    """Snapshots below an offset can be deleted; before a log is loaded those are deleted that belong to no segment's
    base offset, but for the latest of them if it is above every base offset: that is the one of the shutdown.""",
    source=f"{MANAGER}, deleteSnapshotsBefore and removeStraySnapshots; KAFKA-9105, KAFKA-5829, KAFKA-12964",
    without={
        "model": "which files are kept decides how much is read again, not what comes out",
        "proof": "see the model",
    },
)
PSM_24 = clause(
    "PSM-24",
    """A snapshot file is named by its offset in 20 digits and `.snapshot`. It begins with the version 1 (16 bits), a
    CRC-32C of all bytes behind it (32 bits) and the number of producers (32 bits); then of each in 46 bytes: producer
    id (64), epoch (16), last sequence (32), last offset (64), offset delta (32), timestamp (64), coordinator epoch
    (32), first offset of the open transaction (64), big-endian. A producer without a batch has last sequence and last
    offset -1 and delta 0; one without a transaction -1. The order of the producers says nothing.""",
    source="Kafka Internals, ch. 03, 'Snapshot file format'; ProducerSnapshot.json, Kafka 4.3.0",
    without={"model": _BYTES, "proof": _BYTES},
)
PSM_25 = clause(
    "PSM-25",
    """A snapshot file is unreadable if it is cut short, its version is not 1, it announces more producers than it holds
    or a negative number of them, or its CRC is not that of its bytes. Bytes behind the last producer count in the CRC,
    and say nothing.""",
    source="ProducerStateManager.readSnapshot, Kafka 4.3.0",
    without={"model": _BYTES, "proof": _BYTES},
)
PSM_26 = clause(
    "PSM-26",
    """The verification of a producer's transaction remembers when it began, whether the client can bump epochs, and the
    lowest sequence asked for within its highest epoch; another request for it changes at most that. It is dropped when
    told to.""",
    source="KIP-890; VerificationStateEntry and ProducerStateManager.maybeCreateVerificationStateEntry, Kafka 4.3.0",
    without={
        "model": "verification is the coordinator's protocol; here it is one remembered entry",
        "proof": "see the model",
    },
)
PSM_27 = clause(
    "PSM-27",
    """Where verification is on, a transactional batch of a client or a coordinator that opens a transaction, or comes
    with another epoch than the open one's, needs the guard of the producer's verification, of which each has its own; a
    lower epoch is refused before that. A verification begins only without an open transaction of that epoch, and ends
    with the first transactional batch or marker, but not with a marker of its own epoch if the client can bump epochs:
    that is the end of the transaction before.""",
    source="KIP-890; UnifiedLog.maybeStartTransactionVerification, analyzeAndValidateProducerState, updateProducers",
    without={"model": "see PSM-26", "proof": "see PSM-26"},
)
PSM_28 = clause(
    "PSM-28",
    """After a crash at any moment, the snapshots that are left and the log read on from one of them make the state that
    there was: the same producers, epochs, last sequences and open transactions, so that the same batches are accepted
    and refused. Of the retained batches the latest is sure to be there, and of the others those read again; an older
    duplicate is then refused as out of order, and not appended.""",
    source=f"{CHAPTER}; {MANAGER}",
)
PSM_29 = clause(
    "PSM-29",
    """A partition has a late transaction if the last timestamp of the producer of its first open transaction is
    positive and lies more than the maximum transaction timeout and five minutes in the past.""",
    source=f"{MANAGER}, hasLateTransaction; KIP-664",
    without={"model": _TIMELESS, "proof": _TIMELESS},
)
PSM_30 = clause(
    "PSM-30",
    """The caller's duty: batches come in the order of their offsets, none below the offset at which the state stands,
    with a producer id and epoch that are not negative and sequences of that many records; and a manager over a
    directory with snapshots loads them before it takes one.""",
    source="UnifiedLog.append and UnifiedLog.rebuildProducerState, Kafka 4.3.0",
    without={
        "model": "the model's log gives out offsets one by one",
        "proof": "see the model",
        "impl": "the caller's duty: the impl relies on it and does not check it",
        "mutant": "beyond it nothing is promised, so that nothing can be broken",
    },
)
PSM_31 = clause(
    "PSM-31",
    """The cleaner keeps the last marker of a producer that has no data batch for the epoch that it has, without its
    record in the end. Read again, such a batch makes its producer known with that epoch and the batch's timestamp,
    without a coordinator epoch (which was in the record), batches or a transaction.""",
    source="KAFKA-8335; Cleaner and MemoryRecords.filterTo, Kafka 4.3.0",
    without={
        "model": "the cleaner is not in the model: every marker of its log has its record",
        "proof": "see the model",
    },
)


# ---- the state -------------------------------------------------------------------------------------------------------
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

    @states("PSM-18")
    def saved(self) -> Producer:
        """What a snapshot keeps of it: one timestamp for the producer and its batch."""
        return self._replace(batches=tuple(b._replace(timestamp=self.last_timestamp) for b in self.batches[-1:]))


UNKNOWN: Final = Producer()


class Ended(NamedTuple):
    """A transaction whose marker is at `last_offset`."""

    producer_id: int
    last_offset: Offset


class Verification(NamedTuple):
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


Saved = Mapping[int, Producer]
"""what a snapshot file holds, by producer id"""


@dataclass(frozen=True)
class State:
    """A partition's producers. Nothing in it is ever changed in place."""

    producers: Mapping[int, Producer]
    ended: Mapping[Offset, Ended]
    """transactions that ended and are not known to be replicated, by first offset"""
    verifications: Mapping[int, Verification]
    snapshots: Mapping[Offset, Saved | None]
    """the files, ascending; None: unreadable"""
    end: Offset
    """all batches below it are in"""
    last_snapshot: Offset
    """of the last one taken or loaded"""
    now: int
    guards: int
    """how many were given out"""
    config: Config

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

    def __hash__(self) -> int:
        return hash((tuple(self.producers.items()), tuple(self.ended), self.end, tuple(self.snapshots), self.now))


FIRST_NOW = 1_000_000


def initial(
    max_transaction_timeout_ms: int = 300_000,
    producer_id_expiration_ms: int = 86_400_000,
    transaction_verification_enabled: bool = True,
) -> State:
    """Nothing is known, nothing snapshot; the log is empty and begins at 0."""
    config = Config(max_transaction_timeout_ms, producer_id_expiration_ms, transaction_verification_enabled)
    return State({}, {}, {}, {}, 0, 0, FIRST_NOW, 0, config)


def shown_batch(b: Batch) -> Json:
    return [b.first_sequence, b.last_sequence, b.first_offset, b.last_offset, b.timestamp]


@states("PSM-29")
def _late(state: State) -> bool:
    opened = state.opened
    last = state.producers[next(iter(opened.values()))].last_timestamp if opened else -1
    return last > 0 and state.now - last > state.config.max_transaction_timeout_ms + LATE_TRANSACTION_BUFFER_MS


class ShownProducer(TypedDict):
    """What is known of a producer."""

    producerId: int
    epoch: int
    coordinatorEpoch: int
    lastTimestamp: int
    lastSeq: int
    currentTxnFirstOffset: int | None
    batches: list[list[int]]
    """first sequence, last sequence, first offset, last offset, timestamp"""


class VerificationEntry(TypedDict):
    """The verification of a producer."""

    lowestSequence: int
    epoch: int
    supportsEpochBump: bool


class ShownVerification(VerificationEntry):
    """The verification of a producer."""

    timestamp: int
    """ms"""


class Observation(TypedDict, total=False):
    """Producers, transactions, verifications and snapshots."""

    now: int
    """ms"""
    mapEndOffset: int
    firstUnstableOffset: int | None
    firstUndecidedOffset: int | None
    producers: list[ShownProducer]
    verification: dict[str, ShownVerification]
    """by producer id"""
    snapshots: list[int]
    """their offsets"""
    hasLateTransaction: bool


def shown_producer(producer_id: int, p: Producer) -> ShownProducer:
    return {
        "producerId": producer_id,
        "epoch": p.epoch,
        "coordinatorEpoch": p.coordinator_epoch,
        "lastTimestamp": p.last_timestamp,
        "lastSeq": p.last_sequence,
        "currentTxnFirstOffset": p.transaction,
        "batches": [shown_batch(b) for b in p.batches],
    }


def observe(state: State) -> Observation:
    """What the recordings show. A release without verifications, or which tells no late transaction, omits those."""
    shown: Observation = {
        "now": state.now,
        "mapEndOffset": state.end,
        "firstUnstableOffset": state.first_unstable,
        "firstUndecidedOffset": state.first_undecided,
        "producers": [shown_producer(i, p) for i, p in sorted(state.producers.items())],
        "verification": {
            str(i): {
                "lowestSequence": v.lowest_sequence,
                "epoch": v.epoch,
                "supportsEpochBump": v.supports_epoch_bump,
                "timestamp": v.timestamp,
            }
            for i, v in sorted(state.verifications.items())
        },
        "snapshots": list(state.snapshots),
        "hasLateTransaction": _late(state),
    }
    return cast(Observation, Fields(shown))


machine = Machine("producer_state", initial, observe)


# ---- conditions that several operations share ------------------------------------------------------------------------
def _refused(result: Step[State]) -> bool:
    return isinstance(result.result, Refused)


def refusal_changes_nothing(state: State, result: Step[State]) -> bool:
    return not _refused(result) or result.state == state


def nothing_changes(state: State, result: Step[State]) -> bool:
    return result.state == state


def well_formed(result: Step[State]) -> bool:
    """At most five batches, of rising offsets; every transaction begins below the end, none twice."""
    s = result.state
    opened = [p.transaction for p in s.producers.values() if p.transaction is not None]
    return len(set(opened)) == len(opened) and all(
        len(p.batches) <= BATCHES_RETAINED
        and all(a.last_offset < b.last_offset for a, b in zip(p.batches, p.batches[1:], strict=False))
        for p in s.producers.values()
    )


def others_are_untouched(state: State, producer_id: int, result: Step[State]) -> bool:
    before = {i: p for i, p in state.producers.items() if i != producer_id}
    return before == {i: p for i, p in result.state.producers.items() if i != producer_id}


def never_unstable_lower(state: State, result: Step[State]) -> bool:
    """An append adds no unstable offset below the old end, so that the last stable offset does not fall."""
    first = result.state.first_unstable
    return first is None or first >= state.end or (state.first_unstable is not None and first >= state.first_unstable)


def in_order(state: State, first_offset: Offset, last_offset: Offset) -> bool:
    return state.end <= first_offset <= last_offset


def lasts_as_many_sequences(first_seq: int, last_seq: int, first_offset: Offset, last_offset: Offset) -> bool:
    return (
        0 <= first_seq < SEQUENCES
        and last_offset - first_offset < SEQUENCES
        and last_seq == (first_seq + last_offset - first_offset) % SEQUENCES
    )


def is_producer(producer_id: int, producer_epoch: int) -> bool:
    return 0 <= producer_id < 2**63 and 0 <= producer_epoch <= MOST_EPOCH


offsets_in_order = require(in_order, "PSM-30 batches come in the order of their offsets")
sequences_fit = require(lasts_as_many_sequences, "PSM-30 as many sequences as records")
a_producer = require(is_producer, "PSM-30 a producer id and an epoch that are not negative")
stays_well_formed = ensure(well_formed, "PSM-1 at most five batches, in order; no two transactions begin at one offset")
no_other_producer = ensure(others_are_untouched, "PSM-1 no other producer is touched")
last_stable_does_not_fall = ensure(never_unstable_lower, "PSM-14 an append does not lower the last stable offset")


# ---- appends ---------------------------------------------------------------------------------------------------------
@states("PSM-4")
def next_sequence(sequence: int) -> int:
    """The one after it; 0 after the last one and after NO_SEQUENCE."""
    return (sequence + 1) % SEQUENCES


def _with(state: State, producer_id: int, producer: Producer, **more: Any) -> State:
    return replace(state, producers={**state.producers, producer_id: producer}, **more)


@states("PSM-6", "PSM-8")
def _stale_epoch(origin: str, epoch: int, known: Producer) -> bool:
    return origin != "REPLICATION" and epoch < known.epoch


@states("PSM-3", "PSM-5", "PSM-7")
def _sequence_refused(state: State, producer_id: int, known: Producer, epoch: int, first_seq: int) -> Refused | None:
    """What a client is told whose batch does not begin where it must."""
    verification = state.verifications.get(producer_id)
    if verification is not None:
        if verification.supports_epoch_bump and first_seq != 0 and not known.batches:
            return Refused("PSM-7", OUT_OF_ORDER)
        if first_seq > verification.lowest_sequence:
            return Refused("PSM-7", OUT_OF_ORDER)
    if known.epoch == NO_EPOCH:
        return None
    if epoch != known.epoch:
        return Refused("PSM-5", OUT_OF_ORDER) if first_seq != 0 else None
    return None if first_seq == next_sequence(known.last_sequence) else Refused("PSM-3", OUT_OF_ORDER)


@states("PSM-1", "PSM-9")
def appended(known: Producer, epoch: int, batch: Batch, transactional: bool) -> Producer:
    """The producer after a data batch that was accepted."""
    kept = known.batches if epoch == known.epoch else ()
    transaction = batch.first_offset if transactional and known.transaction is None else known.transaction
    return known._replace(
        epoch=epoch,
        last_timestamp=batch.timestamp,
        transaction=transaction,
        batches=(*kept, batch)[-BATCHES_RETAINED:],
    )


def _accepted_in_sequence(
    state: State, producer_id: int, origin: str, producer_epoch: int, first_seq: int, result: Step[State]
) -> bool:
    known = state.producers.get(producer_id, UNKNOWN)
    if _refused(result) or origin != "CLIENT" or known.epoch == NO_EPOCH:
        return True
    return first_seq == (next_sequence(known.last_sequence) if producer_epoch == known.epoch else 0)


def _epoch_does_not_fall(state: State, producer_id: int, origin: str, producer_epoch: int, result: Step[State]) -> bool:
    known = state.producers.get(producer_id, UNKNOWN)
    return _refused(result) or origin == "REPLICATION" or producer_epoch >= known.epoch


def _batch_is_in(
    state: State,
    producer_id: int,
    last_seq: int,
    last_offset: Offset,
    first_offset: Offset,
    timestamp: int,
    result: Step[State],
) -> bool:
    if _refused(result):
        return True
    p = result.state.producers[producer_id]
    return p.batches[-1] == Batch(last_seq, last_offset, last_offset - first_offset, timestamp) and (
        result.state.end == last_offset + 1 and p.last_timestamp == timestamp
    )


def _transaction_is_as_the_batch(
    state: State, producer_id: int, transactional: bool, first_offset: Offset, result: Step[State]
) -> bool:
    before = state.producers.get(producer_id, UNKNOWN).transaction
    if _refused(result):
        return True
    after = result.state.producers[producer_id].transaction
    if before is not None:
        return transactional and after == before
    return after == (first_offset if transactional else None)


class Started(TypedDict):
    """The first offsets of the transactions that a batch opened."""

    startedTransactions: list[int]


@machine.operation("appendDataBatch", "PSM-1", "PSM-3", "PSM-5", "PSM-6", "PSM-7", "PSM-8", "PSM-9", "PSM-4", "PSM-30")
@a_producer
@offsets_in_order
@sequences_fit
@ensure(_accepted_in_sequence, "PSM-3 a client's batch begins at the next sequence, or at 0 of a new epoch")
@ensure(_epoch_does_not_fall, "PSM-6 a lower epoch is refused")
@ensure(_batch_is_in, "PSM-1 the batch is remembered as it came, and the state stands behind it")
@ensure(_transaction_is_as_the_batch, "PSM-9 a transaction opens with its first batch and stays open")
@ensure(
    lambda producer_id, result: _refused(result) or result.state.producers[producer_id].batches[-1].first_sequence >= 0,
    "PSM-4 the first sequence is none below 0",
)
@ensure(refusal_changes_nothing, "PSM-3 what is refused changes nothing")
@stays_well_formed
@no_other_producer
@last_stable_does_not_fall
def append_data_batch(
    state: State,
    producer_id: int,
    origin: Origin,
    producer_epoch: int,
    first_seq: int,
    last_seq: int,
    first_offset: Offset,
    last_offset: Offset,
    timestamp: int,
    transactional: bool,
) -> Step[State, Started]:
    """One batch of records: the first offsets of transactions that it opens. Duplicates are for the log to find
    (`produce`); here they are out of order."""
    known = state.producers.get(producer_id, UNKNOWN)
    if _stale_epoch(origin, producer_epoch, known):
        return Step(state, Refused("PSM-6", INVALID_EPOCH))
    if origin == "CLIENT":
        refused = _sequence_refused(state, producer_id, known, producer_epoch, first_seq)
        if refused is not None:
            return Step(state, refused)
    if known.transaction is not None and not transactional:
        return Step(state, Refused("PSM-9", INVALID_STATE))
    batch = Batch(last_seq, last_offset, last_offset - first_offset, timestamp)
    after = appended(known, producer_epoch, batch, transactional)
    started = [first_offset] if after.transaction != known.transaction else []
    return Step(_with(state, producer_id, after, end=last_offset + 1), {"startedTransactions": started})


@states("PSM-1", "PSM-10")
def marked(known: Producer, epoch: int, coordinator_epoch: int, timestamp: int) -> Producer:
    """The producer after a marker that was accepted."""
    return Producer(epoch, coordinator_epoch, timestamp, None, known.batches if epoch == known.epoch else ())


@states("PSM-11")
def _marker_epoch_refused(known: Producer, origin: str, epoch: int, version: int) -> bool:
    if origin == "REPLICATION":
        return False
    if version < 2 or epoch != known.epoch:
        return epoch < known.epoch
    return known.transaction is not None and epoch != MOST_EPOCH


@states("PSM-16")
def last_stable_offset_of(state: State, producer_id: int, marker: Offset) -> Offset:
    """What the transaction index says of a transaction of this producer that ended at `marker`."""
    return min((first for first, other in state.opened.items() if other != producer_id), default=marker + 1)


def _ends_the_transaction(state: State, producer_id: int, offset: Offset, type: str, result: Step[State]) -> bool:
    before = state.producers.get(producer_id, UNKNOWN).transaction
    if _refused(result):
        return True
    if before is None:
        return result.result is None and result.state.ended == state.ended
    said: Json = result.result
    return (
        (said["firstOffset"], said["lastOffset"], said["isAborted"]) == (before, offset, type == "ABORT")
        and result.state.ended == {**state.ended, before: Ended(producer_id, offset)}
        and result.state.producers[producer_id].transaction is None
    )


def _marker_is_in(
    producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp: int, result: Step[State]
) -> bool:
    if _refused(result):
        return True
    p = result.state.producers[producer_id]
    return (p.epoch, p.coordinator_epoch, p.last_timestamp) == (producer_epoch, coordinator_epoch, timestamp)


def _marker_epoch_is_right(
    state: State, producer_id: int, origin: str, producer_epoch: int, transaction_version: int, result: Step[State]
) -> bool:
    """A marker of version 2 that ends a transaction is above all of its data."""
    known = state.producers.get(producer_id, UNKNOWN)
    if _refused(result) or origin == "REPLICATION":
        return True
    if transaction_version >= 2 and known.transaction is not None and producer_epoch != MOST_EPOCH:
        return producer_epoch > known.epoch
    return producer_epoch >= known.epoch


def _coordinator_epoch_does_not_fall(
    state: State, producer_id: int, origin: str, coordinator_epoch: int, result: Step[State]
) -> bool:
    known = state.producers.get(producer_id, UNKNOWN)
    return _refused(result) or origin == "REPLICATION" or coordinator_epoch >= known.coordinator_epoch


def _index_entry_is_stable(state: State, producer_id: int, offset: Offset, result: Step[State]) -> bool:
    """The entry's last stable offset is the least offset that is still undecided once this transaction has ended."""
    if _refused(result) or result.result is None:
        return True
    first = result.state.first_undecided
    said: Json = result.result
    return bool(said["lastStableOffset"] == (offset + 1 if first is None else first))


class EndedTransaction(TypedDict):
    """A transaction that a marker ended."""

    producerId: int
    firstOffset: int
    lastOffset: int
    isAborted: bool
    lastStableOffset: int


@machine.operation("appendEndTxnMarker", "PSM-10", "PSM-11", "PSM-12", "PSM-16", "PSM-8", "PSM-30")
@a_producer
@require(lambda state, offset: offset >= state.end, "PSM-30 batches come in the order of their offsets")
@ensure(_ends_the_transaction, "PSM-10 it ends the open transaction at its own offset, or nothing")
@ensure(_marker_is_in, "PSM-10 the epochs and the timestamp are the marker's")
@ensure(_marker_epoch_is_right, "PSM-11 a marker's epoch is that of its version")
@ensure(_coordinator_epoch_does_not_fall, "PSM-12 a lower coordinator epoch is refused")
@ensure(_index_entry_is_stable, "PSM-16 the index entry says up to where all is decided")
@ensure(refusal_changes_nothing, "PSM-11 what is refused changes nothing")
@stays_well_formed
@no_other_producer
@last_stable_does_not_fall
def append_end_txn_marker(
    state: State,
    producer_id: int,
    origin: Origin,
    type: MarkerType,
    coordinator_epoch: int,
    producer_epoch: int,
    offset: Offset,
    timestamp: int,
    transaction_version: int = UNKNOWN_VERSION,
) -> Step[State, EndedTransaction | None]:
    """One marker: the transaction that it ends, with the last stable offset of its entry in the transaction index
    (which is written if it was aborted), or null."""
    known = state.producers.get(producer_id, UNKNOWN)
    if transaction_version == UNKNOWN_VERSION and origin != "REPLICATION":
        return Step(state, Refused("PSM-11", ILLEGAL_ARGUMENT))
    if _marker_epoch_refused(known, origin, producer_epoch, transaction_version):
        return Step(state, Refused("PSM-11", INVALID_EPOCH))
    if origin != "REPLICATION" and coordinator_epoch < known.coordinator_epoch:
        return Step(state, Refused("PSM-12", COORDINATOR_FENCED))
    after = _with(state, producer_id, marked(known, producer_epoch, coordinator_epoch, timestamp), end=offset + 1)
    if known.transaction is None:
        return Step(after)
    ended = {**state.ended, known.transaction: Ended(producer_id, offset)}
    completed: EndedTransaction = {
        "producerId": producer_id,
        "firstOffset": known.transaction,
        "lastOffset": offset,
        "isAborted": type == "ABORT",
        "lastStableOffset": last_stable_offset_of(state, producer_id, offset),
    }
    return Step(replace(after, ended=dict(sorted(ended.items()))), completed)


# ---- as the log calls it ---------------------------------------------------------------------------------------------
@states("PSM-2")
def duplicate_of(state: State, producer_id: int, epoch: int, first_seq: int, last_seq: int) -> Batch | None:
    """The retained batch that a batch with these numbers repeats; of several the oldest."""
    known = state.producers.get(producer_id, UNKNOWN)
    if known.epoch != epoch:
        return None
    return next((b for b in known.batches if (b.first_sequence, b.last_sequence) == (first_seq, last_seq)), None)


def has_open_transaction(state: State, producer_id: int, epoch: int) -> bool:
    known = state.producers.get(producer_id, UNKNOWN)
    return known.transaction is not None and known.epoch == epoch


NO_GUARD = 0


def _without_verification(state: State, producer_id: int) -> State:
    return replace(state, verifications={i: v for i, v in state.verifications.items() if i != producer_id})


def _no_duplicate_goes_in(
    state: State, producer_id: int, origin: str, producer_epoch: int, first_seq: int, last_seq: int, result: Step[State]
) -> bool:
    there = duplicate_of(state, producer_id, producer_epoch, first_seq, last_seq) if origin == "CLIENT" else None
    return there is None or (result.state == state and not _refused(result) and "duplicate" in result.result)


def _guarded(
    state: State,
    producer_id: int,
    origin: str,
    producer_epoch: int,
    transactional: bool,
    guard: int,
    result: Step[State],
) -> bool:
    """What opens a transaction on a verified log had the verification's guard."""
    opens = transactional and not has_open_transaction(state, producer_id, producer_epoch)
    if _refused(result) or "duplicate" in result.result or origin == "REPLICATION" or not opens:
        return True
    known = state.verifications.get(producer_id)
    return not state.config.transaction_verification_enabled or (known is not None and known.guard == guard)


class Duplicate(TypedDict):
    """The retained batch that a batch repeats: nothing was appended."""

    duplicate: list[int]
    """first sequence, last sequence, first offset, last offset, timestamp"""


@machine.operation("produce", "PSM-2", "PSM-27", "PSM-8", "PSM-30")
@a_producer
@offsets_in_order
@sequences_fit
@ensure(_no_duplicate_goes_in, "PSM-2 a duplicate is answered, not appended")
@ensure(_guarded, "PSM-27 a transaction opens only with the guard of its verification")
@ensure(refusal_changes_nothing, "PSM-27 what is refused changes nothing")
@stays_well_formed
@no_other_producer
@last_stable_does_not_fall
def produce(
    state: State,
    producer_id: int,
    origin: Origin,
    producer_epoch: int,
    first_seq: int,
    last_seq: int,
    first_offset: Offset,
    last_offset: Offset,
    timestamp: int,
    transactional: bool,
    guard: int = NO_GUARD,
) -> Step[State, Started | Duplicate]:
    """One batch as a log appends it: the duplicate [first sequence, last sequence, first offset, last offset,
    timestamp] that it is, or as `appendDataBatch` does. `guard` is what `startVerification` gave."""
    if origin == "CLIENT":
        there = duplicate_of(state, producer_id, producer_epoch, first_seq, last_seq)
        if there is not None:
            return Step(state, {"duplicate": shown_batch(there)})
    if origin != "REPLICATION" and transactional and not has_open_transaction(state, producer_id, producer_epoch):
        if producer_epoch < state.producers.get(producer_id, UNKNOWN).epoch:
            return Step(state, Refused("PSM-6", INVALID_EPOCH))
        verification = state.verifications.get(producer_id)
        if state.config.transaction_verification_enabled and (verification is None or verification.guard != guard):
            return Step(state, Refused("PSM-27", INVALID_STATE))
    step = append_data_batch.__wrapped__(  # type: ignore[attr-defined]
        state,
        producer_id,
        origin,
        producer_epoch,
        first_seq,
        last_seq,
        first_offset,
        last_offset,
        timestamp,
        transactional,
    )
    if _refused(step) or not transactional:
        return Step(step.state, step.result)
    return Step(_without_verification(step.state, producer_id), step.result)


@machine.operation("endTransaction", "PSM-10", "PSM-11", "PSM-12", "PSM-27", "PSM-30")
@a_producer
@require(lambda state, offset: offset >= state.end, "PSM-30 batches come in the order of their offsets")
@ensure(_marker_is_in, "PSM-10 the epochs and the timestamp are the marker's")
@ensure(_ends_the_transaction, "PSM-10 it ends the open transaction at its own offset, or nothing")
@ensure(refusal_changes_nothing, "PSM-11 what is refused changes nothing")
@no_other_producer
@last_stable_does_not_fall
def end_transaction(
    state: State,
    producer_id: int,
    origin: Origin,
    type: MarkerType,
    coordinator_epoch: int,
    producer_epoch: int,
    offset: Offset,
    timestamp: int,
    transaction_version: int = UNKNOWN_VERSION,
) -> Step[State, EndedTransaction | None]:
    """One marker as a log appends it: a coordinator's stale epoch is refused before all else; then as
    `appendEndTxnMarker`, and the verification ends, unless it is that of the next transaction. A client's control batch
    does not come so far."""
    if origin == "COORDINATOR" and producer_epoch < state.producers.get(producer_id, UNKNOWN).epoch:
        return Step(state, Refused("PSM-11", INVALID_EPOCH))
    step = append_end_txn_marker.__wrapped__(  # type: ignore[attr-defined]
        state, producer_id, origin, type, coordinator_epoch, producer_epoch, offset, timestamp, transaction_version
    )
    verification = state.verifications.get(producer_id)
    of_the_next = verification is not None and verification.supports_epoch_bump and verification.epoch == producer_epoch
    if _refused(step) or of_the_next:
        return Step(step.state, step.result)
    return Step(_without_verification(step.state, producer_id), step.result)


@machine.operation("findDuplicateBatch", "PSM-2", "PSM-4")
@ensure(nothing_changes, "PSM-2 looking changes nothing")
@ensure(
    lambda state, producer_id, producer_epoch, first_seq, last_seq, result: (
        result.result is None
        or (result.result[:2] == [first_seq, last_seq] and state.producers[producer_id].epoch == producer_epoch)
    ),
    "PSM-2 exactly the same sequences, in the same epoch",
)
def find_duplicate_batch(
    state: State, producer_id: int, producer_epoch: int, first_seq: int, last_seq: int
) -> Step[State, list[int] | None]:
    """The retained batch that one with these numbers repeats, or null."""
    there = duplicate_of(state, producer_id, producer_epoch, first_seq, last_seq)
    return Step(state, None if there is None else shown_batch(there))


# ---- verification ----------------------------------------------------------------------------------------------------
@states("PSM-26")
def _verified(state: State, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> State:
    v = state.verifications.get(producer_id)
    guards = state.guards
    if v is None:
        guards += 1
        v = Verification(state.now, sequence, epoch, supports_epoch_bump, guards)
    elif epoch > v.epoch:
        v = v._replace(epoch=epoch, lowest_sequence=sequence)
    elif epoch == v.epoch:
        v = v._replace(lowest_sequence=min(v.lowest_sequence, sequence))
    return replace(state, verifications=dict(sorted({**state.verifications, producer_id: v}.items())), guards=guards)


def _lowest_of_the_highest_epoch(
    state: State, producer_id: int, sequence: int, epoch: int, result: Step[State]
) -> bool:
    before, after = state.verifications.get(producer_id), result.state.verifications[producer_id]
    if before is None:
        return (after.lowest_sequence, after.epoch, after.timestamp) == (sequence, epoch, state.now)
    same = (after.guard, after.timestamp, after.supports_epoch_bump) == (
        before.guard, before.timestamp, before.supports_epoch_bump
    )  # fmt: skip
    return (
        same and after.epoch == max(before.epoch, epoch) and (epoch < after.epoch or after.lowest_sequence <= sequence)
    )


@machine.operation("maybeCreateVerificationStateEntry", "PSM-26")
@ensure(_lowest_of_the_highest_epoch, "PSM-26 the lowest sequence of the highest epoch; all else stays")
@ensure(lambda state, result: result.state.producers == state.producers, "PSM-26 no producer is touched")
def maybe_create_verification_state_entry(
    state: State, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool
) -> Step[State, VerificationEntry]:
    """The verification of a producer, begun if there is none: lowest sequence, epoch, whether epochs can be bumped."""
    after = _verified(state, producer_id, sequence, epoch, supports_epoch_bump)
    v = after.verifications[producer_id]
    return Step(
        after,
        {"lowestSequence": v.lowest_sequence, "epoch": v.epoch, "supportsEpochBump": v.supports_epoch_bump},
    )


@machine.operation("clearVerificationStateEntry", "PSM-26")
@ensure(lambda producer_id, result: producer_id not in result.state.verifications, "PSM-26 it is gone")
def clear_verification_state_entry(state: State, producer_id: int) -> Step[State, None]:
    """The verification of a producer is dropped, if there is one."""
    return Step(_without_verification(state, producer_id))


@machine.operation("startVerification", "PSM-27", "PSM-26", "PSM-6")
@ensure(
    lambda state, producer_id, epoch, result: (
        _refused(result) or (result.result == NO_GUARD) == has_open_transaction(state, producer_id, epoch)
    ),
    "PSM-27 none begins while a transaction of that epoch is open",
)
@ensure(refusal_changes_nothing, "PSM-27 what is refused changes nothing")
def start_verification(
    state: State, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool
) -> Step[State, int]:
    """The guard that a batch must come with which opens a transaction; 0 if one is open and none is needed."""
    if epoch < state.producers.get(producer_id, UNKNOWN).epoch:
        return Step(state, Refused("PSM-6", INVALID_EPOCH))
    if has_open_transaction(state, producer_id, epoch):
        return Step(state, NO_GUARD)
    after = _verified(state, producer_id, sequence, epoch, supports_epoch_bump)
    return Step(after, after.verifications[producer_id].guard)


# ---- offsets, expiry -------------------------------------------------------------------------------------------------
@states("PSM-15")
def _stable(state: State, below: Offset) -> State:
    return replace(state, ended={first: e for first, e in state.ended.items() if e.last_offset >= below})


@machine.operation("onHighWatermarkUpdated", "PSM-15", "PSM-13")
@ensure(
    lambda state, high_watermark, result: (
        result.state.ended == {f: e for f, e in state.ended.items() if e.last_offset >= high_watermark}
        and result.state.producers == state.producers
    ),
    "PSM-15 what ended below the high watermark is stable, nothing else changes",
)
def on_high_watermark_updated(state: State, high_watermark: Offset) -> Step[State, None]:
    """The high watermark is this now."""
    return Step(_stable(state, high_watermark))


@machine.operation("lastStableOffset", "PSM-14", "PSM-13")
@require(
    lambda high_watermark, log_start_offset: log_start_offset <= high_watermark,
    "PSM-14 the log start is at most the high watermark",
)
@ensure(nothing_changes, "PSM-14 looking changes nothing")
@ensure(
    lambda state, high_watermark, log_start_offset, result: (
        log_start_offset <= result.result <= high_watermark
        and all(result.result <= max(first, log_start_offset) for first in state.opened)
    ),
    "PSM-14 within the log, never above an open transaction's first record",
)
def last_stable_offset(state: State, high_watermark: Offset, log_start_offset: Offset = 0) -> Step[State, int]:
    """The last stable offset of a log with this high watermark and log start."""
    first = state.first_unstable
    return Step(state, high_watermark if first is None else min(high_watermark, max(first, log_start_offset)))


@states("PSM-17")
def expired(state: State, producer: Producer, now: int) -> bool:
    idle = now - producer.last_timestamp
    return producer.transaction is None and idle >= state.config.producer_id_expiration_ms


@machine.operation("removeExpiredProducers", "PSM-17")
@ensure(
    lambda state, result: result.state.opened == state.opened,
    "PSM-17 a producer with an open transaction is not forgotten",
)
@ensure(
    lambda state, current_time_ms, result: all(
        (i in result.state.producers) != expired(state, p, current_time_ms) for i, p in state.producers.items()
    ),
    "PSM-17 exactly the idle ones are forgotten",
)
def remove_expired_producers(state: State, current_time_ms: int) -> Step[State, None]:
    """Idle producers and old verifications are forgotten."""
    producers = {i: p for i, p in state.producers.items() if not expired(state, p, current_time_ms)}
    limit = current_time_ms - state.config.producer_id_expiration_ms
    verifications = {i: v for i, v in state.verifications.items() if v.timestamp > limit}
    return Step(replace(state, producers=producers, verifications=verifications))


@machine.operation("advance", "PSM-29", kind="time")
@require(lambda ms: ms >= 0, "PSM-29 time does not go back")
@ensure(lambda state, ms, result: result.state == replace(state, now=state.now + ms), "PSM-29 only the clock moves")
def advance(state: State, ms: int) -> Step[State, None]:
    """The clock moves."""
    return Step(replace(state, now=state.now + ms))


# ---- snapshots -------------------------------------------------------------------------------------------------------
@states("PSM-18")
def saved(state: State) -> Saved:
    """What a snapshot taken now holds."""
    return {i: p.saved() for i, p in sorted(state.producers.items())}


def _only_above_the_last(state: State, result: Step[State]) -> bool:
    if state.end <= state.last_snapshot:
        return result.state == state
    return (
        result.state.snapshots[state.end] == saved(state)
        and result.state.producers == state.producers
        and all(result.state.snapshots[x] == s for x, s in state.snapshots.items() if x != state.end)
    )


@machine.operation("takeSnapshot", "PSM-18", "PSM-30")
@require(
    lambda state: state.end <= state.last_snapshot or state.end not in state.snapshots,
    "PSM-30 a manager loads what snapshots there are before it takes one",
)
@ensure(_only_above_the_last, "PSM-18 written only above the last one; it holds what the records below make")
def take_snapshot(state: State) -> Step[State, None]:
    """A snapshot, if the state has moved beyond the last one."""
    if state.end <= state.last_snapshot:
        return Step(state)
    snapshots = dict(sorted({**state.snapshots, state.end: saved(state)}.items()))
    return Step(replace(state, snapshots=snapshots, last_snapshot=state.end))


@states("PSM-20")
def loaded(state: State, log_start: Offset, now: int) -> State:
    """A state that knows nothing, after loading the latest readable snapshot."""
    snapshots = dict(state.snapshots)
    while snapshots:
        at = max(snapshots)
        content = snapshots[at]
        if content is None:
            del snapshots[at]
            continue
        producers = {i: p for i, p in content.items() if not expired(state, p, now)}
        return replace(state, producers=producers, snapshots=snapshots, end=at, last_snapshot=at)
    return replace(state, snapshots=snapshots, end=log_start, last_snapshot=log_start)


@states("PSM-22")
def _log_start(state: State, log_start: Offset) -> State:
    last = max(state.snapshots, default=log_start)
    return replace(_stable(state, log_start), end=max(state.end, log_start), last_snapshot=last)


def _snapshots_in_range(log_start_offset: Offset, log_end_offset: Offset, result: Step[State]) -> bool:
    return all(log_start_offset < x <= log_end_offset for x in result.state.snapshots)


def _loaded_or_kept(state: State, log_start_offset: Offset, log_end_offset: Offset, result: Step[State]) -> bool:
    if state.end == log_end_offset:
        return result.state.producers == state.producers
    readable = [x for x, s in state.snapshots.items() if s is not None and log_start_offset < x <= log_end_offset]
    return result.state.end == max(readable, default=log_start_offset) and not result.state.ended


@machine.operation("truncateAndReload", "PSM-19", "PSM-20")
@require(lambda log_start_offset, log_end_offset: min(log_start_offset, log_end_offset) >= 0, "PSM-30 offsets")
@ensure(_snapshots_in_range, "PSM-19 no snapshot is left above the log end, or not above the log start")
@ensure(_loaded_or_kept, "PSM-20 the latest readable snapshot is loaded; nothing is, if the state stands at the end")
@ensure(lambda state, result: result.state.verifications == state.verifications, "PSM-19 verifications stay")
def truncate_and_reload(
    state: State, log_start_offset: Offset, log_end_offset: Offset, current_time_ms: int
) -> Step[State, None]:
    """The log has this start and end now. Where the state then stands below the end, the caller reads on from there."""
    snapshots = {x: s for x, s in state.snapshots.items() if log_start_offset < x <= log_end_offset}
    after = replace(state, snapshots=snapshots)
    if state.end == log_end_offset:
        return Step(_log_start(after, log_start_offset))
    return Step(loaded(replace(after, producers={}, ended={}), log_start_offset, current_time_ms))


@machine.operation("truncateFullyAndStartAt", "PSM-21")
@ensure(
    lambda offset, result: (
        not (result.state.producers or result.state.ended or result.state.snapshots) and result.state.end == offset
    ),
    "PSM-21 nothing is left, and the state stands at the offset",
)
def truncate_fully_and_start_at(state: State, offset: Offset) -> Step[State, None]:
    """The whole log is gone; it begins at this offset."""
    return Step(replace(state, producers={}, ended={}, snapshots={}, end=offset, last_snapshot=0))


@machine.operation("onLogStartOffsetIncremented", "PSM-22", "PSM-15")
@ensure(lambda state, result: result.state.producers == state.producers, "PSM-22 producers stay known")
@ensure(lambda log_start_offset, result: result.state.end >= log_start_offset, "PSM-22 the state stands at least there")
def on_log_start_offset_incremented(state: State, log_start_offset: Offset) -> Step[State, None]:
    """The log begins at this offset now."""
    return Step(_log_start(state, log_start_offset))


@machine.operation("deleteSnapshotsBefore", "PSM-23")
@require(lambda offset: offset >= 0, "PSM-23 an offset")
@ensure(
    lambda state, offset, result: (
        result.state.snapshots == {x: s for x, s in state.snapshots.items() if x >= offset}
        and result.state.producers == state.producers
    ),
    "PSM-23 those below are gone, nothing else changes",
)
def delete_snapshots_before(state: State, offset: Offset) -> Step[State, None]:
    """The snapshots below an offset are deleted."""
    return Step(replace(state, snapshots={x: s for x, s in state.snapshots.items() if x >= offset}))


@states("PSM-23")
def without_strays(snapshots: Mapping[Offset, Any], base_offsets: Sequence[Offset]) -> list[Offset]:
    """The offsets of the snapshots that stay when a log with these segments is loaded."""
    strays = sorted(x for x in snapshots if x not in base_offsets)
    kept = strays[-1:] if strays and (not base_offsets or strays[-1] >= max(base_offsets)) else []
    return [x for x in snapshots if x not in strays or x in kept]


@machine.operation("removeStraySnapshots", "PSM-23")
@ensure(
    lambda state, segment_base_offsets, result: all(
        x in result.state.snapshots for x in state.snapshots if x in segment_base_offsets
    ),
    "PSM-23 those of segments stay",
)
@ensure(
    lambda segment_base_offsets, result: sum(x not in segment_base_offsets for x in result.state.snapshots) <= 1,
    "PSM-23 of the others at most one stays",
)
def remove_stray_snapshots(state: State, segment_base_offsets: Sequence[Offset]) -> Step[State, None]:
    """The snapshots that belong to no segment are deleted, but for that of the shutdown."""
    kept = without_strays(state.snapshots, segment_base_offsets)
    return Step(replace(state, snapshots={x: s for x, s in state.snapshots.items() if x in kept}))


@machine.operation("reopen", "PSM-28", "PSM-20", kind="restart")
@ensure(
    lambda state, result: result.state.snapshots == state.snapshots and not result.state.producers,
    "PSM-28 the files alone are left",
)
def reopen(state: State) -> Step[State, None]:
    """The process ended, and another one looks at the directory: nothing is loaded yet."""
    return Step(replace(state, producers={}, ended={}, verifications={}, end=0, last_snapshot=0))


@machine.operation("corruptSnapshot", "PSM-25", "PSM-20", kind="damage")
@require(lambda state, offset: offset in state.snapshots, "PSM-25 there is such a file")
@ensure(lambda offset, result: result.state.snapshots[offset] is None, "PSM-25 it cannot be read")
def corrupt_snapshot(state: State, offset: Offset) -> Step[State, None]:
    """The first byte of a snapshot file is overwritten (with 255: no version that there is)."""
    return Step(replace(state, snapshots={**state.snapshots, offset: None}))


@machine.operation("readEmptiedMarker", "PSM-31")
@a_producer
@require(lambda offset: offset >= 0, "PSM-30 an offset")
@ensure(nothing_changes, "PSM-31 asked of a log that holds nothing else")
@ensure(
    lambda producer_id, producer_epoch, timestamp, result: (
        (result.result["producerId"], result.result["epoch"], result.result["lastTimestamp"])
        == (producer_id, producer_epoch, timestamp)
    ),
    "PSM-31 the epoch is the batch's",
)
def read_emptied_marker(
    state: State, producer_id: int, producer_epoch: int, offset: Offset, timestamp: int
) -> Step[State, ShownProducer]:
    """What is known of a producer after a log was read that holds of it a marker without its record alone."""
    return Step(state, shown_producer(producer_id, Producer(producer_epoch, last_timestamp=timestamp)))


# ---- the bytes -------------------------------------------------------------------------------------------------------
VERSION: Final = 1
HEAD: Final = struct.Struct(">hIi")
"""version, CRC, number of producers"""
ENTRY: Final = struct.Struct(">qhiqiqiq")
CRC_FROM: Final = 6
"""the first byte that the CRC counts"""


@states("PSM-24")
def snapshot_name(offset: Offset) -> str:
    return f"{offset:020}.snapshot"


Entry = tuple[int, int, int, int, int, int, int, int]
"""producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, transaction's first
offset"""


def _is_entry(e: Sequence[int]) -> bool:
    bits = (64, 16, 32, 64, 32, 64, 32, 64)
    return len(e) == len(bits) and all(-(1 << b - 1) <= x < 1 << b - 1 for x, b in zip(e, bits, strict=True))


@machine.operation("writeSnapshot", "PSM-24")
@require(lambda entries: all(_is_entry(e) for e in entries), "PSM-24 numbers of the fields' sizes")
@ensure(nothing_changes, "PSM-24 bytes have no history")
@ensure(
    lambda entries, result: (
        len(result.result) == 2 * (HEAD.size + ENTRY.size * len(entries))
        and struct.unpack_from(">hIi", bytes.fromhex(result.result))[::2] == (VERSION, len(entries))
    ),
    "PSM-24 46 bytes a producer behind a head of ten",
)
def write_snapshot(state: State, entries: Sequence[Sequence[int]]) -> Step[State, str]:
    """The bytes of a snapshot file, in hexadecimal digits, of entries [producer id, epoch, last sequence, last offset,
    offset delta, timestamp, coordinator epoch, first offset of the open transaction]."""
    counted = struct.pack(">i", len(entries)) + b"".join(ENTRY.pack(*e) for e in entries)
    return Step(state, (struct.pack(">hI", VERSION, crc32c.crc32c(counted)) + counted).hex())


@machine.operation("readSnapshot", "PSM-25", "PSM-24")
@require(lambda file: len(file) % 2 == 0 and set(file) <= set("0123456789abcdef"), "PSM-24 bytes in hexadecimal digits")
@ensure(nothing_changes, "PSM-25 bytes have no history")
@ensure(
    lambda file, result: (
        _refused(result)
        or write_snapshot.__wrapped__(None, result.result).result[12:]  # type: ignore[attr-defined]
        == file[12 : 2 * (HEAD.size + ENTRY.size * len(result.result))]
    ),
    "PSM-24 written again, the producers are the same bytes",
)
def read_snapshot(state: State, file: str) -> Step[State, list[list[int]]]:
    """The entries of a snapshot file (bytes in hexadecimal digits), or the refusal."""
    data = bytes.fromhex(file)
    corrupt = Step(state, Refused("PSM-25", CORRUPT_SNAPSHOT))
    if len(data) < HEAD.size:
        return corrupt
    version, crc, count = HEAD.unpack_from(data)
    if version != VERSION or not 0 <= count <= (len(data) - HEAD.size) // ENTRY.size:
        return corrupt
    if crc != crc32c.crc32c(data[CRC_FROM:]):
        return corrupt
    return Step(state, [list(ENTRY.unpack_from(data, HEAD.size + i * ENTRY.size)) for i in range(count)])
