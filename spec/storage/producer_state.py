"""What a partition remembers of its producers: sequences, epochs, open transactions, and the snapshots of all that.

An idempotent producer numbers its records; the leader takes each number once and in order. A transactional producer's
records stay undecided until a marker ends the transaction, and the last stable offset stays below them. All of it is a
function of the log, so it can be rebuilt by reading; snapshots, one at each roll, spare the reading. Time alone is not
in the log: idle producers are forgotten. Source: Kafka Internals, ch. 03, "ProducerStateManager: idempotency, snapshots
& transactions"; KIP-98, KIP-360, KIP-447, KIP-890; ProducerStateManager and its neighbours, Kafka 4.3.0.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from icontract import ensure, require

from kafkaspec.contract.clauses import A_FORMAT, clause, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.governs import reveals
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import (
    LATEST,
    CoordinatorEpoch,
    Duration,
    Guard,
    Offset,
    ProducerEpoch,
    ProducerId,
    SequenceNumber,
    SequenceNumberOrNone,
    Time,
    Timeout,
    Timestamp,
    Within,
)
from kafkaspec.spec.common import producer_contracts as contracts
from kafkaspec.spec.common import producer_snapshot
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, INT_MAX
from kafkaspec.spec.common.producer_contracts import refused
from kafkaspec.spec.common.producer_snapshot import ENTRY, HEAD, VERSION, Entry
from kafkaspec.spec.common.producers import (
    FIRST_NOW,
    MOST_EPOCH,
    NO_EPOCH,
    NO_GUARD,
    UNKNOWN_VERSION,
    Batch,
    BatchNumbers,
    Config,
    Duplicate,
    EndedTransaction,
    MarkerType,
    OpenedTransactions,
    Origin,
    Producer,
    ProducerEntry,
    State,
    TransactionEnd,
    Verification,
    VerificationEntry,
    entry_of,
    observe,
)

PREFIX = "PSM"
TITLE = "Producer state"

MANAGER = "ProducerStateManager, Kafka 4.3.0"
APPEND = "ProducerAppendInfo, Kafka 4.3.0"
CHAPTER = "Kafka Internals, ch. 03, 'ProducerStateManager: idempotency, snapshots & transactions'"
TIMELESS = {"model": "the model has no clock", "proof": "the model has no clock"}

clause(
    "PSM-30",
    """The caller's duty: batches come in the order of their offsets, none below the offset at which the state stands,
    with a producer id and epoch that are not negative and sequences of that many records; and a manager over a
    directory with snapshots loads them before it takes one. As the log calls it, a batch has a guard that was handed
    out, and at most a thousand records, within the log's first segment.""",
    source="UnifiedLog.append and UnifiedLog.rebuildProducerState, Kafka 4.3.0",
    without={
        "model": "the model's log gives out offsets one by one",
        "proof": "see the model",
        "impl": "the caller's duty: the impl relies on it and does not check it",
        "mutant": "beyond it nothing is promised, so that nothing can be broken",
    },
)

OUT_OF_ORDER = "org.apache.kafka.common.errors.OutOfOrderSequenceException"
INVALID_EPOCH = "org.apache.kafka.common.errors.InvalidProducerEpochException"
INVALID_STATE = "org.apache.kafka.common.errors.InvalidTxnStateException"
NOT_THE_NEXT = Refused("PSM-3", OUT_OF_ORDER)
NOT_FROM_ZERO = Refused("PSM-5", OUT_OF_ORDER)
STALE_EPOCH = Refused("PSM-6", INVALID_EPOCH)
ABOVE_VERIFICATION = Refused("PSM-7", OUT_OF_ORDER)
WITHIN_TRANSACTION = Refused("PSM-9", INVALID_STATE)
NO_VERSION = Refused("PSM-11", ILLEGAL_ARGUMENT)
STALE_MARKER = Refused("PSM-11", INVALID_EPOCH)
STALE_COORDINATOR = Refused("PSM-12", "org.apache.kafka.common.errors.TransactionCoordinatorFencedException")
UNREADABLE = Refused("PSM-25", "org.apache.kafka.storage.internals.log.CorruptSnapshotException")
NOT_VERIFIED = Refused("PSM-27", INVALID_STATE)


def initial(
    max_transaction_timeout_ms: Timeout = 300_000,
    producer_id_expiration_ms: Timeout = 86_400_000,
    transaction_verification_enabled: bool = True,
) -> State:
    """Nothing is known, nothing snapshot; the log is empty and begins at 0."""
    config = Config(max_transaction_timeout_ms, producer_id_expiration_ms, transaction_verification_enabled)
    return State({}, {}, {}, {}, 0, 0, FIRST_NOW, 0, frozenset(), config)


machine = Machine("producer_state", initial, observe)

TransactionVersion = Annotated[int, Within(UNKNOWN_VERSION, 2)]


# ---- appends ---------------------------------------------------------------------------------------------------------
@states(
    "PSM-3",
    "PSM-5",
    "PSM-7",
    without={"model": "the model's producers are known, or begin at 0", "proof": "see the model"},
)
def sequence_refused(state: State, producer_id: int, epoch: int, first_seq: int) -> Refused | None:
    """What a client is told whose batch does not begin where it must.

    PSM-7: Of a producer of which no epoch is known a client's batch may begin at any sequence: its records may be
    deleted, or its state forgotten. Not so while a transaction is being verified: then only at 0 if the client can bump
    epochs (transaction version 2), and in no case above the lowest sequence that verification has seen. [KIP-360;
    KIP-890; {APPEND}]
    """
    known, verification = state.known(producer_id), state.verifications.get(producer_id)
    if verification is not None:
        if verification.supports_epoch_bump and first_seq != 0 and not known.batches:
            return ABOVE_VERIFICATION
        if first_seq > verification.lowest_sequence:
            return ABOVE_VERIFICATION
    if known.epoch == NO_EPOCH or first_seq == known.following(epoch):
        return None
    return NOT_THE_NEXT if epoch == known.epoch else NOT_FROM_ZERO


@machine.operation("appendDataBatch", "PSM-7", "PSM-4", "PSM-30")
@states(without={"PSM-8": {"proof": "the model appends as a leader; a follower checks nothing that could be proved"}})
@contracts.a_batch
@ensure(contracts.in_sequence, "PSM-3 a client's batch begins at the next sequence, or at 0 of a new epoch")
@ensure(
    lambda state, producer_id, origin, producer_epoch, result: (
        refused(result) or origin == "REPLICATION" or producer_epoch >= state.known(producer_id).epoch
    ),
    "PSM-6 a lower epoch is refused",
)
@ensure(contracts.batch_is_in, "PSM-1 the batch is remembered as it came, and the state stands behind it")
@ensure(contracts.in_its_transaction, "PSM-9 a transaction opens with its first batch and stays open")
@ensure(
    lambda producer_id, result: refused(result) or result.state.producers[producer_id].batches[-1].first_sequence >= 0,
    "PSM-4 the first sequence is none below 0",
)
@contracts.refusal_changes_nothing("PSM-3")
@contracts.keeps_the_rest
def append_data_batch(
    state: State, producer_id: ProducerId, origin: Origin, producer_epoch: ProducerEpoch, first_seq: SequenceNumber,
    last_seq: SequenceNumber, first_offset: Offset, last_offset: Offset, timestamp: Timestamp, transactional: bool,
) -> Step[State, OpenedTransactions]:  # fmt: skip
    """One batch of records: the first offsets of transactions that it opens. Duplicates are for the log to find
    (`produce`); here they are out of order.

    PSM-1: For each producer id that wrote lately a partition knows its epoch, the epoch of the coordinator that wrote
    its last marker, the timestamp of its last batch or marker, the first offset of its open transaction, and its five
    latest data batches (last sequence, last offset, offset delta, timestamp), the oldest dropped for a sixth; a batch
    or marker of another epoch drops all before it. [{CHAPTER}; KIP-98; ProducerStateEntry, Kafka 4.3.0]

    PSM-3: A client's batch of the producer's own epoch begins at the sequence after its last one (at 0 if a marker
    brought the epoch and no batch came since), or it is refused: within an epoch the log has every sequence once, in
    order. [KIP-98; {APPEND}; KAFKA-7298]

    PSM-5: A client's batch of a new epoch begins at sequence 0, or it is refused, unless no epoch of the producer is
    known. [KIP-98; KIP-360; {APPEND}]

    PSM-6: A batch of a client or a coordinator with an epoch below the producer's is refused: epochs fence off
    producers that were replaced, and never fall in a log. [KIP-98; {APPEND}]

    PSM-8: Checks go by origin: of a client epoch and sequence; of a coordinator (offset commits, markers) epoch and
    coordinator epoch, no sequence; of replication none of these, for the leader has checked: what it sends is taken
    over, lower epochs too. [AppendOrigin and {APPEND}; KAFKA-6003]

    PSM-9: A transactional batch of a producer without an open transaction opens one at its first offset; the following
    ones belong to it. A batch that is not transactional is refused while one is open, whatever its origin. [KIP-98;
    {APPEND}]
    """
    known = state.known(producer_id)
    if origin != "REPLICATION" and producer_epoch < known.epoch:
        return Step(state, STALE_EPOCH)
    wrong = sequence_refused(state, producer_id, producer_epoch, first_seq) if origin == "CLIENT" else None
    if wrong is not None:
        return Step(state, wrong)
    if known.transaction is not None and not transactional:
        return Step(state, WITHIN_TRANSACTION)
    batch = Batch(last_seq, last_offset, last_offset - first_offset, timestamp)
    after = known.appended(producer_epoch, batch, transactional)
    opened = [first_offset] if after.transaction != known.transaction else []
    return Step(state.with_producer(producer_id, after, last_offset + 1), {"startedTransactions": opened})


@states()
def marker_epoch_refused(known: Producer, origin: str, epoch: int, version: int) -> bool:
    """PSM-11: A marker's epoch is at least the producer's (transaction versions 0 and 1), and from version 2 on above
    it, for then each transaction's end bumps the epoch. At version 2 an equal epoch is accepted if no transaction is
    open (the marker is written again), or at the greatest epoch. Else it is refused. The version must be said, but for
    replication, which takes what the leader took. [KIP-890; {APPEND}; KAFKA-19999]
    """
    if origin == "REPLICATION":
        return False
    if version < 2 or epoch != known.epoch:
        return epoch < known.epoch
    return known.transaction is not None and epoch != MOST_EPOCH


@states()
def last_stable_offset_of(state: State, producer_id: int, marker: Offset) -> Offset:
    """What the transaction index says of a transaction of this producer that ended at `marker`.

    PSM-16: An aborted transaction that has records is entered in the transaction index of the segment that holds its
    marker: producer id, first offset, the marker's offset, and as last stable offset the first offset of the earliest
    transaction of another producer that is still open, or without one the offset after the marker. Committed ones are
    not entered, and every aborted one is. Of several batches in one append, as a follower has them, those that other
    producers begin behind the marker are open too (TXI-12). [{CHAPTER}; ProducerStateManager.lastStableOffset,
    UnifiedLog.append, LogSegment.updateTxnIndex, Kafka 4.3.0]
    """
    return min((first for first, other in state.opened.items() if other != producer_id), default=marker + 1)


@machine.operation("appendEndTxnMarker", "PSM-11", "PSM-16", "PSM-8", "PSM-30")
@reveals("PSM-6")
@contracts.a_marker
@contracts.ends_its_transaction
@contracts.takes_its_epochs
@ensure(contracts.marker_epoch_is_right, "PSM-11 a marker's epoch is that of its version")
@ensure(
    lambda state, producer_id, origin, coordinator_epoch, result: (
        refused(result) or origin == "REPLICATION" or coordinator_epoch >= state.known(producer_id).coordinator_epoch
    ),
    "PSM-12 a lower coordinator epoch is refused",
)
@ensure(contracts.index_entry_is_stable, "PSM-16 the index entry says up to where all is decided")
@contracts.refusal_changes_nothing("PSM-11")
@contracts.keeps_the_rest
def append_end_txn_marker(
    state: State, producer_id: ProducerId, origin: Origin, type: MarkerType, coordinator_epoch: CoordinatorEpoch,
    producer_epoch: ProducerEpoch, offset: Offset, timestamp: Timestamp,
    transaction_version: TransactionVersion = UNKNOWN_VERSION,
) -> Step[State, EndedTransaction | None]:  # fmt: skip
    """One marker: the transaction that it ends, with the last stable offset of its entry in the transaction index
    (which is written if it was aborted), or null.

    PSM-10: A marker ends its producer's open transaction, committed or aborted, at the marker's own offset; without one
    it completes nothing, and is legal. Either way the producer's epoch, coordinator epoch and last timestamp become the
    marker's. [KIP-98; {APPEND}; KAFKA-9144]

    PSM-12: A marker of a coordinator epoch below the last one that wrote for this producer is refused, but for
    replication: in a log the coordinator epochs of a producer's markers never fall. [KIP-98; {APPEND}]
    """
    known = state.known(producer_id)
    if transaction_version == UNKNOWN_VERSION and origin != "REPLICATION":
        return Step(state, NO_VERSION)
    if marker_epoch_refused(known, origin, producer_epoch, transaction_version):
        return Step(state, STALE_MARKER)
    if origin != "REPLICATION" and coordinator_epoch < known.coordinator_epoch:
        return Step(state, STALE_COORDINATOR)
    first = known.transaction
    after = state.with_producer(producer_id, known.marked(producer_epoch, coordinator_epoch, timestamp), offset + 1)
    if first is None:
        return Step(after, None)
    stable = last_stable_offset_of(state, producer_id, offset)
    ended = {**state.ended, first: TransactionEnd(producer_id, offset)}
    return Step(
        replace(after, ended=dict(sorted(ended.items()))),
        EndedTransaction(producer_id, first, offset, type == "ABORT", stable),
    )


# ---- as the log calls it ---------------------------------------------------------------------------------------------
FIRST_SEGMENT = "PSM-30 within the first segment: a log that rolls takes a snapshot"


@machine.operation("produce", "PSM-2", "PSM-27", "PSM-8", "PSM-30")
@require(
    lambda first_offset, last_offset: last_offset - first_offset < 1000,
    "PSM-30 a batch of at most a thousand records: unlike `appendDataBatch`, a log is given each of them",
)
@require(lambda last_offset: last_offset <= INT_MAX, FIRST_SEGMENT)
@require(lambda state, guard: guard == NO_GUARD or guard in state.handed_out, "PSM-30 a guard that was handed out")
@contracts.a_batch
@ensure(contracts.no_duplicate_goes_in, "PSM-2 a duplicate is answered, not appended")
@ensure(contracts.guarded, "PSM-27 a transaction opens only with the guard of its verification")
@contracts.refusal_changes_nothing("PSM-27")
@contracts.keeps_the_rest
def produce(
    state: State, producer_id: ProducerId, origin: Origin, producer_epoch: ProducerEpoch, first_seq: SequenceNumber,
    last_seq: SequenceNumber, first_offset: Offset, last_offset: Offset, timestamp: Timestamp, transactional: bool,
    guard: Guard = NO_GUARD,
) -> Step[State, OpenedTransactions | Duplicate]:  # fmt: skip
    """One batch as a log appends it: the duplicate [first sequence, last sequence, first offset, last offset,
    timestamp] that it is, or as `appendDataBatch` does. `guard` is what `startVerification` gave.

    PSM-2: A client's batch with the epoch, and exactly the first and last sequence, of one of the five retained batches
    is a duplicate: nothing is appended, and the answer is the offsets and the timestamp of the batch that is there. No
    duplicate of a retained batch is ever appended. [{CHAPTER}; UnifiedLog.analyzeAndValidateProducerState,
    ProducerStateEntry.findDuplicateBatch, Kafka 4.3.0]
    """
    known = state.known(producer_id)
    there = known.duplicate(producer_epoch, first_seq, last_seq) if origin == "CLIENT" else None
    if there is not None:
        return Step(state, {"duplicate": list(there.numbers)})
    if origin != "REPLICATION" and transactional and not known.has_open_transaction(producer_epoch):
        if producer_epoch < known.epoch:
            return Step(state, STALE_EPOCH)
        verification = state.verifications.get(producer_id)
        if state.config.transaction_verification_enabled and (verification is None or verification.guard != guard):
            return Step(state, NOT_VERIFIED)
    numbers = (first_seq, last_seq, first_offset, last_offset, timestamp)
    step: Step[State, OpenedTransactions] = append_data_batch.__wrapped__(  # type: ignore[attr-defined]
        state, producer_id, origin, producer_epoch, *numbers, transactional
    )
    ends = transactional and not refused(step)
    return Step(step.state.without_verification(producer_id) if ends else step.state, step.result)


@machine.operation("endTransaction", "PSM-10", "PSM-11", "PSM-12", "PSM-27", "PSM-30")
@require(lambda offset: offset <= INT_MAX, FIRST_SEGMENT)
@contracts.a_marker
@contracts.takes_its_epochs
@contracts.ends_its_transaction
@contracts.refusal_changes_nothing("PSM-11")
@contracts.keeps_the_rest
def end_transaction(
    state: State, producer_id: ProducerId, origin: Origin, type: MarkerType, coordinator_epoch: CoordinatorEpoch,
    producer_epoch: ProducerEpoch, offset: Offset, timestamp: Timestamp,
    transaction_version: TransactionVersion = UNKNOWN_VERSION,
) -> Step[State, EndedTransaction | None]:  # fmt: skip
    """One marker as a log appends it: a coordinator's stale epoch is refused before all else; then as
    `appendEndTxnMarker`, and the verification ends, unless it is that of the next transaction. A client's control batch
    does not come so far."""
    if origin == "COORDINATOR" and producer_epoch < state.known(producer_id).epoch:
        return Step(state, STALE_MARKER)
    step: Step[State, EndedTransaction | None] = append_end_txn_marker.__wrapped__(  # type: ignore[attr-defined]
        state, producer_id, origin, type, coordinator_epoch, producer_epoch, offset, timestamp, transaction_version
    )
    v = state.verifications.get(producer_id)
    of_the_next = v is not None and v.supports_epoch_bump and v.epoch == producer_epoch
    ends = not refused(step) and not of_the_next
    return Step(step.state.without_verification(producer_id) if ends else step.state, step.result)


@machine.question("findDuplicateBatch", "PSM-2", "PSM-4")
@states(
    without={
        "model": "the model's sequences do not wrap: arithmetic modulo 2^31, without a history",
        "proof": "see the model; it is tested at its ends",
    }
)
@ensure(
    lambda state, producer_id, producer_epoch, first_seq, last_seq, result: (
        result is None or (result[:2] == (first_seq, last_seq) and state.producers[producer_id].epoch == producer_epoch)
    ),
    "PSM-2 exactly the same sequences, in the same epoch",
)
def find_duplicate_batch(
    state: State, producer_id: ProducerId, producer_epoch: ProducerEpoch, first_seq: SequenceNumber,
    last_seq: SequenceNumber,
) -> BatchNumbers | None:  # fmt: skip
    """The retained batch that one with these numbers repeats, or null.

    PSM-4: Sequences wrap: 0 follows 2^31 - 1. A batch's first sequence is its last one minus its offset delta, modulo
    2^31, and its first offset comes from offsets, never from sequences. [DefaultRecordBatch.incrementSequence and
    decrementSequence, BatchMetadata, Kafka 4.3.0; KAFKA-7692]
    """
    there = state.known(producer_id).duplicate(producer_epoch, first_seq, last_seq)
    return None if there is None else there.numbers


# ---- verification ----------------------------------------------------------------------------------------------------
@states(without={"model": "the coordinator's protocol; here it is one remembered entry", "proof": "see the model"})
def verified(state: State, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> State:
    """PSM-26: The verification of a producer's transaction remembers when it began, whether the client can bump epochs,
    and the lowest sequence asked for within its highest epoch; another request for it changes at most that. It is
    dropped when told to. [KIP-890; VerificationStateEntry and ProducerStateManager.maybeCreateVerificationStateEntry,
    Kafka 4.3.0]
    """
    v = state.verifications.get(producer_id)
    guards = state.guards if v is not None else state.guards + 1
    if v is None:
        v = Verification(state.now, sequence, epoch, supports_epoch_bump, guards)
    elif epoch > v.epoch:
        v = v._replace(epoch=epoch, lowest_sequence=sequence)
    elif epoch == v.epoch:
        v = v._replace(lowest_sequence=min(v.lowest_sequence, sequence))
    return replace(state, verifications=dict(sorted({**state.verifications, producer_id: v}.items())), guards=guards)


@machine.operation("maybeCreateVerificationStateEntry", "PSM-26")
@ensure(contracts.lowest_of_the_highest_epoch, "PSM-26 the lowest sequence of the highest epoch; all else stays")
@ensure(lambda state, result: result.state.producers == state.producers, "PSM-26 no producer is touched")
def maybe_create_verification_state_entry(
    state: State, producer_id: ProducerId, sequence: SequenceNumberOrNone, epoch: ProducerEpoch,
    supports_epoch_bump: bool,
) -> Step[State, VerificationEntry]:  # fmt: skip
    """The verification of a producer, begun if there is none: lowest sequence, epoch, whether epochs can be bumped."""
    after = verified(state, producer_id, sequence, epoch, supports_epoch_bump)
    v = after.verifications[producer_id]
    return Step(after, VerificationEntry(v.lowest_sequence, v.epoch, v.supports_epoch_bump))


@machine.operation("clearVerificationStateEntry", "PSM-26")
@ensure(lambda producer_id, result: producer_id not in result.verifications, "PSM-26 it is gone")
def clear_verification_state_entry(state: State, producer_id: ProducerId) -> State:
    """The verification of a producer is dropped, if there is one."""
    return state.without_verification(producer_id)


@machine.operation("startVerification", "PSM-27", "PSM-26", "PSM-6")
@states(without={"model": "see PSM-26", "proof": "see PSM-26"})
@ensure(
    lambda state, producer_id, epoch, result: (
        refused(result) or (result.result == NO_GUARD) == state.known(producer_id).has_open_transaction(epoch)
    ),
    "PSM-27 none begins while a transaction of that epoch is open",
)
@contracts.refusal_changes_nothing("PSM-27")
def start_verification(
    state: State, producer_id: ProducerId, sequence: SequenceNumberOrNone, epoch: ProducerEpoch,
    supports_epoch_bump: bool,
) -> Step[State, Guard]:  # fmt: skip
    """The guard that a batch must come with which opens a transaction; 0 if one is open and none is needed.

    PSM-27: Where verification is on, a transactional batch of a client or a coordinator that opens a transaction, or
    comes with another epoch than the open one's, needs the guard of the producer's verification, of which each has its
    own; a lower epoch is refused before that. A verification begins only without an open transaction of that epoch, and
    ends with the first transactional batch or marker, but not with a marker of its own epoch if the client can bump
    epochs: that is the end of the transaction before. [KIP-890; UnifiedLog.maybeStartTransactionVerification,
    analyzeAndValidateProducerState, updateProducers]
    """
    known = state.known(producer_id)
    if epoch < known.epoch:
        return Step(state, STALE_EPOCH)
    if known.has_open_transaction(epoch):
        return Step(state, NO_GUARD)
    after = verified(state, producer_id, sequence, epoch, supports_epoch_bump)
    guard = after.verifications[producer_id].guard
    return Step(replace(after, handed_out=after.handed_out | {guard}), guard)


# ---- offsets, expiry -------------------------------------------------------------------------------------------------
@states()
def stable(state: State, below: Offset) -> State:
    """PSM-15: A transaction that has ended stays unstable until the high watermark is above its marker. [{MANAGER};
    KAFKA-5121]"""
    return replace(state, ended={first: e for first, e in state.ended.items() if e.last_offset >= below})


@machine.operation("onHighWatermarkUpdated", "PSM-15", "PSM-13")
@ensure(
    lambda state, high_watermark, result: (
        result.ended == {f: e for f, e in state.ended.items() if e.last_offset >= high_watermark}
        and result.producers == state.producers
    ),
    "PSM-15 what ended below the high watermark is stable, nothing else changes",
)
def on_high_watermark_updated(state: State, high_watermark: Offset) -> State:
    """The high watermark is this now."""
    return stable(state, high_watermark)


@machine.question("lastStableOffset")
@require(
    lambda high_watermark, log_start_offset: log_start_offset <= high_watermark,
    "PSM-14 the log start is at most the high watermark",
)
@ensure(
    lambda state, high_watermark, log_start_offset, result: (
        log_start_offset <= result <= high_watermark
        and all(result <= max(first, log_start_offset) for first in state.opened)
    ),
    "PSM-14 within the log, never above an open transaction's first record",
)
def last_stable_offset(state: State, high_watermark: Offset, log_start_offset: Offset = 0) -> int:
    """The last stable offset of a log with this high watermark and log start.

    PSM-14: The last stable offset is the first unstable offset, but at least the log start, if that is below the high
    watermark; else the high watermark. So it is never above the first record of an open transaction, never above the
    high watermark, and appends never lower it. [Kafka Internals, ch. 03, 'Offset boundaries: LSO, LEO, HW, recovery
    point'; UnifiedLog.lastStableOffset]

    PSM-13: The first unstable offset is the least first offset of all transactions that are open or whose end is not
    replicated yet; there is none without any. The first undecided offset counts the open ones alone. [{CHAPTER};
    {MANAGER}]
    """
    first = state.first_unstable
    return high_watermark if first is None else min(high_watermark, max(first, log_start_offset))


@states(without=TIMELESS)
def expired(state: State, producer: Producer, now: int) -> bool:
    """PSM-17: A producer without an open transaction is forgotten once its last timestamp lies
    producer.id.expiration.ms or more in the past; one with an open transaction never is. A verification that old is
    forgotten too. [KIP-98; {MANAGER}; KAFKA-9144]
    """
    return producer.transaction is None and now - producer.last_timestamp >= state.config.producer_id_expiration_ms


@machine.operation("removeExpiredProducers", "PSM-17")
@ensure(
    lambda state, result: result.opened == state.opened,
    "PSM-17 a producer with an open transaction is not forgotten",
)
@ensure(
    lambda state, current_time_ms, result: all(
        (i in result.producers) != expired(state, p, current_time_ms) for i, p in state.producers.items()
    ),
    "PSM-17 exactly the idle ones are forgotten",
)
def remove_expired_producers(state: State, current_time_ms: Time) -> State:
    """Idle producers and old verifications are forgotten."""
    producers = {i: p for i, p in state.producers.items() if not expired(state, p, current_time_ms)}
    limit = current_time_ms - state.config.producer_id_expiration_ms
    verifications = {i: v for i, v in state.verifications.items() if v.timestamp > limit}
    return replace(state, producers=producers, verifications=verifications)


@machine.operation("advance", kind="time")
@states(without=TIMELESS)
@require(lambda ms: ms >= 0, "PSM-29 time does not go back")
@require(lambda state, ms: state.now + ms <= LATEST, "PSM-29 the clock stays far from the end of a long")
@ensure(lambda state, ms, result: result == replace(state, now=state.now + ms), "PSM-29 only the clock moves")
def advance(state: State, ms: Duration) -> State:
    """The clock moves.

    PSM-29: A partition has a late transaction if the last timestamp of the producer of its first open transaction is
    positive and lies more than the maximum transaction timeout and five minutes in the past. [{MANAGER},
    hasLateTransaction; KIP-664]
    """
    return replace(state, now=state.now + ms)


# ---- snapshots -------------------------------------------------------------------------------------------------------
@machine.operation("takeSnapshot", "PSM-18", "PSM-30")
@require(
    lambda state: state.end <= state.last_snapshot or state.end not in state.snapshots,
    "PSM-30 a manager loads what snapshots there are before it takes one",
)
@ensure(contracts.only_above_the_last, "PSM-18 written only above the last one; it holds what the records below make")
def take_snapshot(state: State) -> State:
    """A snapshot, if the state has moved beyond the last one.

    PSM-18: A snapshot at offset x holds what the records below x make: of each producer its epoch, coordinator epoch,
    last timestamp, open transaction and its latest batch alone, whose own timestamp is lost: loaded, it is the last
    one. It is taken at every roll, when a log is closed and when it was recovered, and written only if x is above the
    offset of the last one taken or loaded. [{CHAPTER}; {MANAGER}; KAFKA-6683]
    """
    if state.end <= state.last_snapshot:
        return state
    return state.with_snapshots({**state.snapshots, state.end: state.saved}, last_snapshot=state.end)


@states()
def loaded(state: State, log_start: Offset, now: int) -> State:
    """A state that knows nothing, after loading the latest readable snapshot.

    PSM-20: Loading takes the latest snapshot that can be read, deletes those after it that cannot, leaves out producers
    that are expired, and opens the transactions that were open; the state then stands at its offset. Without any it is
    empty and stands at the log start. What the log holds after it is then read as replication. [{CHAPTER}; {MANAGER};
    UnifiedLog.rebuildProducerState]
    """
    at = max((x for x, s in state.snapshots.items() if s is not None), default=None)
    if at is None:
        return replace(state, snapshots={}, end=log_start, last_snapshot=log_start)
    snapshots = {x: s for x, s in state.snapshots.items() if x <= at}
    producers = {i: p for i, p in (snapshots[at] or {}).items() if not expired(state, p, now)}
    return replace(state, producers=producers, snapshots=snapshots, end=at, last_snapshot=at)


@states(without={"model": "the model's log begins at 0", "proof": "see the model"})
def with_log_start(state: State, log_start: Offset) -> State:
    """PSM-22: A raised log start makes the ends of transactions below it replicated, lifts the state's offset at least
    to it, and makes the latest snapshot's offset, or without one the log start, that of the last snapshot. Producers
    whose records are all deleted stay known, until they expire. [{MANAGER}, onLogStartOffsetIncremented; KIP-360]
    """
    last = max(state.snapshots, default=log_start)
    return replace(stable(state, log_start), end=max(state.end, log_start), last_snapshot=last)


@machine.operation("truncateAndReload", "PSM-19", "PSM-20")
@reveals("PSM-18")
@require(lambda log_start_offset, log_end_offset: min(log_start_offset, log_end_offset) >= 0, "PSM-30 offsets")
@ensure(
    lambda log_start_offset, log_end_offset, result: all(
        log_start_offset < x <= log_end_offset for x in result.snapshots
    ),
    "PSM-19 no snapshot is left above the log end, or not above the log start",
)
@ensure(
    contracts.loaded_or_kept,
    "PSM-20 the latest readable snapshot is loaded; nothing is, if the state stands at the end",
)
@ensure(lambda state, result: result.verifications == state.verifications, "PSM-19 verifications stay")
def truncate_and_reload(state: State, log_start_offset: Offset, log_end_offset: Offset, current_time_ms: Time) -> State:
    """The log has this start and end now. Where the state then stands below the end, the caller reads on from there.

    PSM-19: Truncation and start-up delete the snapshots above the new log end and those not above the log start; if the
    new end is not where the state stands, all of it (but verifications) is dropped and loaded from a snapshot. If it
    is, the state stays, and the log start alone is taken note of. [{MANAGER}, truncateAndReload; KAFKA-12153]
    """
    after = replace(
        state, snapshots={x: s for x, s in state.snapshots.items() if log_start_offset < x <= log_end_offset}
    )
    if state.end == log_end_offset:
        return with_log_start(after, log_start_offset)
    return loaded(replace(after, producers={}, ended={}), log_start_offset, current_time_ms)


@machine.operation("truncateFullyAndStartAt")
@states(without={"model": "an empty log, which the model begins with", "proof": "see the model"})
@ensure(
    lambda offset, result: not (result.producers or result.ended or result.snapshots) and result.end == offset,
    "PSM-21 nothing is left, and the state stands at the offset",
)
def truncate_fully_and_start_at(state: State, offset: Offset) -> State:
    """The whole log is gone; it begins at this offset.

    PSM-21: A full truncation to an offset forgets producers and transactions, and deletes all snapshots; the state
    stands at that offset. [{MANAGER}, truncateFullyAndStartAt]
    """
    return replace(state, producers={}, ended={}, snapshots={}, end=offset, last_snapshot=0)


@machine.operation("onLogStartOffsetIncremented", "PSM-22", "PSM-15")
@ensure(lambda state, result: result.producers == state.producers, "PSM-22 producers stay known")
@ensure(lambda log_start_offset, result: result.end >= log_start_offset, "PSM-22 the state stands at least there")
def on_log_start_offset_incremented(state: State, log_start_offset: Offset) -> State:
    """The log begins at this offset now."""
    return with_log_start(state, log_start_offset)


@machine.operation("deleteSnapshotsBefore", "PSM-23")
@require(lambda offset: offset >= 0, "PSM-23 an offset")
@ensure(
    lambda state, offset, result: (
        result.snapshots == {x: s for x, s in state.snapshots.items() if x >= offset}
        and result.producers == state.producers
    ),
    "PSM-23 those below are gone, nothing else changes",
)
def delete_snapshots_before(state: State, offset: Offset) -> State:
    """The snapshots below an offset are deleted."""
    return replace(state, snapshots={x: s for x, s in state.snapshots.items() if x >= offset})


@states(
    without={
        "model": "which files are kept decides how much is read again, not what comes out",
        "proof": "see the model",
    }
)
def without_strays(snapshots: Mapping[Offset, Any], base_offsets: Sequence[Offset]) -> list[Offset]:
    """The offsets of the snapshots that stay when a log with these segments is loaded.

    PSM-23: Snapshots below an offset can be deleted; before a log is loaded those are deleted that belong to no
    segment's base offset, but for the latest of them if it is above every base offset: that is the one of the shutdown.
    [{MANAGER}, deleteSnapshotsBefore and removeStraySnapshots; KAFKA-9105, KAFKA-5829, KAFKA-12964]
    """
    strays = sorted(x for x in snapshots if x not in base_offsets)
    kept = strays[-1:] if strays and (not base_offsets or strays[-1] >= max(base_offsets)) else []
    return [x for x in snapshots if x not in strays or x in kept]


@machine.operation("removeStraySnapshots", "PSM-23")
@ensure(
    lambda state, segment_base_offsets, result: all(
        x in result.snapshots for x in state.snapshots if x in segment_base_offsets
    ),
    "PSM-23 those of segments stay",
)
@ensure(
    lambda segment_base_offsets, result: sum(x not in segment_base_offsets for x in result.snapshots) <= 1,
    "PSM-23 of the others at most one stays",
)
def remove_stray_snapshots(state: State, segment_base_offsets: Sequence[Offset]) -> State:
    """The snapshots that belong to no segment are deleted, but for that of the shutdown."""
    return replace(
        state, snapshots={x: state.snapshots[x] for x in without_strays(state.snapshots, segment_base_offsets)}
    )


@machine.operation("reopen", "PSM-28", kind="restart")
@reveals("PSM-18")
@ensure(
    lambda state, result: result.snapshots == state.snapshots and not result.producers,
    "PSM-28 the files alone are left",
)
def reopen(state: State) -> State:
    """The process ended, and another one looks at the directory: nothing is loaded yet.

    PSM-28: After a crash at any moment, the snapshots that are left and the log read on from one of them make the state
    that there was: the same producers, epochs, last sequences and open transactions, so that the same batches are
    accepted and refused. Of the retained batches the latest is sure to be there, and of the others those read again; an
    older duplicate is then refused as out of order, and not appended. [{CHAPTER}; {MANAGER}]
    """
    return replace(state, producers={}, ended={}, verifications={}, end=0, last_snapshot=0)


@machine.environment("corruptSnapshot", kind="damage")
@require(lambda state, offset: offset in state.snapshots, "PSM-25 there is such a file")
@ensure(lambda offset, result: result.snapshots[offset] is None, "PSM-25 it cannot be read")
def corrupt_snapshot(state: State, offset: Offset) -> State:
    """The first byte of a snapshot file is overwritten (with 255: no version that there is)."""
    return replace(state, snapshots={**state.snapshots, offset: None})


@machine.question("readEmptiedMarker")
@states(
    without={
        "model": "the cleaner is not in the model: every marker of its log has its record",
        "proof": "see the model",
    }
)
@contracts.a_producer
@require(lambda offset: offset >= 0, "PSM-30 an offset")
@ensure(
    lambda producer_id, producer_epoch, timestamp, result: (
        (result.producer_id, result.epoch, result.last_timestamp) == (producer_id, producer_epoch, timestamp)
    ),
    "PSM-31 the epoch is the batch's",
)
def read_emptied_marker(
    producer_id: ProducerId, producer_epoch: ProducerEpoch, offset: Offset, timestamp: Timestamp
) -> ProducerEntry:
    """What is known of a producer after a log was read that holds of it a marker without its record alone.

    PSM-31: The cleaner keeps the last marker of a producer that has no data batch for the epoch that it has, without
    its record in the end. Read again, such a batch makes its producer known with that epoch and the batch's timestamp,
    without a coordinator epoch (which was in the record), batches or a transaction. [KAFKA-8335; Cleaner and
    MemoryRecords.filterTo, Kafka 4.3.0]
    """
    return entry_of(producer_id, Producer(producer_epoch, last_timestamp=timestamp))


# ---- the bytes -------------------------------------------------------------------------------------------------------
@machine.question("writeSnapshot")
@states(without=A_FORMAT)
@require(
    lambda entries: len({e.producer_id for e in entries}) == len(entries), "PSM-24 each producer has one entry at most"
)
@require(
    lambda entries: all(map(producer_snapshot.is_kafkas, entries)), "PSM-24 no batch is -1, -1 and 0, no transaction -1"
)
@require(lambda entries: all(map(producer_snapshot.fits, entries)), "PSM-24 numbers of the fields' sizes")
@ensure(
    lambda entries, result: (
        len(result) == 2 * (HEAD.size + ENTRY.size * len(entries))
        and struct.unpack_from(">hIi", bytes.fromhex(result))[::2] == (VERSION, len(entries))
    ),
    "PSM-24 46 bytes a producer behind a head of ten",
)
def write_snapshot(entries: Sequence[Entry]) -> str:
    """The bytes of a snapshot file, in hexadecimal digits, of these entries.

    PSM-24: A snapshot file is named by its offset in 20 digits and `.snapshot`. It begins with the version 1 (16 bits),
    a CRC-32C of all bytes behind it (32 bits) and the number of producers (32 bits); then of each in 46 bytes: producer
    id (64), epoch (16), last sequence (32), last offset (64), offset delta (32), timestamp (64), coordinator epoch
    (32), first offset of the open transaction (64), big-endian. A producer without a batch has last sequence and last
    offset -1 and delta 0; one without a transaction -1. The order of the producers says nothing. [Kafka Internals, ch.
    03, 'Snapshot file format'; ProducerSnapshot.json, Kafka 4.3.0]
    """
    return producer_snapshot.packed(entries).hex()


@machine.question("readSnapshot", "PSM-25", "PSM-24")
@states(without=A_FORMAT)
@require(lambda file: len(file) % 2 == 0 and set(file) <= set("0123456789abcdef"), "PSM-24 bytes in hexadecimal digits")
@ensure(
    lambda file, result: (
        isinstance(result, Refused) or producer_snapshot.is_read_as_written(bytes.fromhex(file), result)
    ),
    "PSM-24 what Kafka writes is read as it was written, and nothing that it could not have written",
)
def read_snapshot(file: str) -> list[Entry] | Refused:
    """The entries of a snapshot file (bytes in hexadecimal digits), or the refusal.

    PSM-25: A snapshot file is unreadable if it is cut short, its version is not 1, it announces more producers than it
    holds or a negative number of them, or its CRC is not that of its bytes. Bytes behind the last producer count in the
    CRC, and say nothing. A producer with a negative last offset has no batch, and one with a negative first offset no
    open transaction, whatever else stands there. [ProducerStateManager.readSnapshot, Kafka 4.3.0]
    """
    entries = producer_snapshot.unpacked(bytes.fromhex(file))
    return UNREADABLE if entries is None else entries
