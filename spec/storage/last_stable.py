"""The last stable offset of a partition, and what a read_committed reader sees of its transactions.

Producers write into one log, each in a transaction or without one; markers end transactions, late, twice or never.
What a reader may see ends at the last stable offset: below it every transaction is decided and replicated. The records
of aborted ones are there too. A fetch says which those are, and the consumer drops them. So a consumer that goes on
from offset to offset sees every committed record once, and nothing else, while high watermark, log start and last
stable offset move between its steps.

Which producers there are, what they may append and what is open is the producer state (PSM); which transactions were
aborted is the transaction index (TXI). Here they stand beside the batches of one log.

Source: Kafka Internals, ch. 03, "Offset boundaries: LSO, LEO, HW, recovery point" and "ProducerStateManager:
idempotency, snapshots & transactions"; KIP-98, KIP-890; UnifiedLog, LocalLog, LogLoader and CompletedFetch, Kafka
4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any, TypeVar

from icontract import ensure, require

from kafkaspec.contract.clauses import clause, not_modelled, states
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
    TimeLimit,
    Within,
)
from kafkaspec.spec.common import producers as tables
from kafkaspec.spec.common import transactional_log
from kafkaspec.spec.common import transactional_reads as reads
from kafkaspec.spec.common.aborted_transaction import AbortedTransaction
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, INT_MAX, OUT_OF_RANGE
from kafkaspec.spec.common.producers import NO_GUARD, MarkerType
from kafkaspec.spec.common.transactional_log import (
    NOBODY,
    Fetch,
    Kind,
    LogBatch,
    PartitionLog,
    Poll,
    ReplicaBatch,
    covers_the_aborted,
    in_bounds,
    is_whole,
    looked_up,
    observe,
    sees_nothing_undecided,
    sees_the_committed,
)
from kafkaspec.spec.common.transactional_reads import answer, handed_on
from kafkaspec.spec.storage import producer_state as psm
from kafkaspec.spec.storage.last_stable_parts.appends import (
    Offsets,
    appended,
    one_by_one,
    placed,
    refreshed,
    replicated,
    rule,
    taken_at_once,
    with_high_watermark,
    without_verifications,
)

PREFIX = "LSO"
TITLE = "Last stable offset"

LOG = transactional_log.LOG
LOADER = "LogLoader and UnifiedLog.rebuildProducerState, Kafka 4.3.0"
CONSUMER = "CompletedFetch, Kafka clients 4.3.0"
BOUNDARIES = "Kafka Internals, ch. 03, 'Offset boundaries: LSO, LEO, HW, recovery point'"

ABOVE_END = Refused("LSO-5", ILLEGAL_ARGUMENT)
ABOVE_HIGH_WATERMARK = Refused("LSO-6", OUT_OF_RANGE)
NO_SUCH_OFFSET = reads.NO_SUCH_OFFSET

FewRecords = Annotated[int, Within(1, 5)]
FewBatches = Annotated[int, Within(1, 100)]
Version = Annotated[int, Within(0, 2)]
NO_CLOCK = not_modelled("the model has no clock")
NO_FILES = not_modelled("the model's log is one sequence; that a table read again is the same is the model of PSM")

clause(
    "LSO-17",
    """The caller's duty: a batch has one to five records; a follower is given batches in the order of their offsets,
    at most five at once; a
    high watermark is the first offset of a batch or the log's end, and is at least the log start where the log is
    loaded; a log is truncated behind one of its batches; offsets stay within 31 bits; a guard was handed out.""",
    source="Partition and ReplicaManager, Kafka 4.3.0",
    without={
        "model": "the model's batches are one record each",
        "proof": "see the model",
        "impl": "the caller's duty: the impl relies on it and does not check it",
        "mutant": "beyond it nothing is promised, so that nothing can be broken",
    },
)


def initial(
    producer_id_expiration_ms: Annotated[int, Within(1, 2**31 - 1)] = 86_400_000,
    transaction_verification_enabled: bool = False,
) -> PartitionLog:
    """An empty log that begins at 0."""
    producers = psm.initial(300_000, producer_id_expiration_ms, transaction_verification_enabled)
    return PartitionLog((0,), (), (), 0, 0, 0, None, producers)


machine = Machine("last_stable", initial, observe)

F = TypeVar("F", bound=Callable[..., Any])


# ---- contracts that operations share ---------------------------------------------------------------------------------
def _after(result: Any) -> PartitionLog | None:
    """The state after; None if it was refused."""
    if isinstance(result, Step):
        return None if isinstance(result.result, Refused) else result.state
    return None if isinstance(result, Refused) else result


def ordered(function: F) -> F:
    """What every operation keeps."""
    text = "LSO-1 log start <= last stable offset <= high watermark <= log end"
    return ensure(lambda result: (after := _after(result)) is None or in_bounds(after), text)(function)


def keeps_whole(function: F) -> F:
    """What every operation of a running leader or follower keeps."""
    text = "LSO-2 whatever is open or aborted is known to be"
    return ensure(
        lambda state, result: (after := _after(result)) is None or not is_whole(state) or is_whole(after), text
    )(function)


def never_falls(function: F) -> F:
    """The last stable offset of a log that is not truncated, and that has looked up what is unstable since it was."""
    text = "LSO-1 the last stable offset does not fall"
    return ensure(
        lambda state, result: (
            (after := _after(result)) is None
            or state.first_unstable != looked_up(state)
            or after.last_stable >= state.last_stable
        ),
        text,
    )(function)


# ---- appends ---------------------------------------------------------------------------------------------------------
room = require(lambda state: state.log_end < INT_MAX - 100, "LSO-17 offsets stay within 31 bits")


def goes_to_the_end(state: PartitionLog, result: Step[PartitionLog, Offsets]) -> bool:
    """Refused or a duplicate, which change nothing; or behind all that there was."""
    if isinstance(result.result, Refused) or result.result.last_offset < state.log_end:
        return result.state == state
    return result.state.batches[:-1] == state.batches and result.state.log_end == result.result.last_offset + 1


def an_append(function: F) -> F:
    """What every append keeps."""
    text = "LSO-3 it goes to the end, or changes nothing"
    return ordered(keeps_whole(never_falls(ensure(goes_to_the_end, text)(function))))


@machine.operation("append", "LSO-3", "LSO-2")
@room
@an_append
def append(state: PartitionLog, count: FewRecords) -> Step[PartitionLog, Offsets]:
    """A client without a producer id appends records: they are decided at once."""
    last = state.log_end + count - 1
    batch = LogBatch(state.log_end, last, NOBODY, NOBODY, "PLAIN", NOBODY, NOBODY, state.producers.now)
    return appended(state, batch, "CLIENT")


NO_COORDINATOR = {"model": "the coordinator's protocol; here it is one remembered entry", "proof": "see the model"}


@machine.operation("startVerification", "LSO-19")
@states(without={"LSO-19": NO_COORDINATOR})
@ensure(
    lambda state, result: result.state.with_producers(state.producers) == state,
    "LSO-19 nothing of the log changes",
)
@ensure(
    lambda state, producer_id, producer_epoch, result: (
        isinstance(result.result, Refused)
        or (result.result == NO_GUARD) == state.producers.known(producer_id).has_open_transaction(producer_epoch)
    ),
    "LSO-19 none begins while a transaction of that epoch is open",
)
def start_verification(
    state: PartitionLog, producer_id: ProducerId, first_sequence: SequenceNumberOrNone, producer_epoch: ProducerEpoch,
    supports_epoch_bump: bool,
) -> Step[PartitionLog, Guard]:  # fmt: skip
    """A broker is about to ask the coordinator whether a producer's transaction has this partition: the guard with
    which the batch must come then; 0 if its transaction is open, and nothing is asked.

    LSO-19: Where transactions are verified, a client's batch opens a transaction only with the guard of a verification
    that began after the transaction before had ended (PSM-26, PSM-27). From transaction version 2 on each marker raises
    the epoch, and a batch of the epoch before is fenced off (LSO-3). Either way a batch that comes late, behind the
    marker of its transaction, opens none that nobody will end. Without either it does, and the last stable offset stays
    there. [KIP-890; {LOG}, maybeStartTransactionVerification]
    """
    step = rule(psm.start_verification)(
        state.producers, producer_id, first_sequence, producer_epoch, supports_epoch_bump
    )
    return Step(state.with_producers(step.state), step.result)


def guarded(
    state: PartitionLog, producer_id: ProducerId, producer_epoch: ProducerEpoch, transactional: bool, guard: Guard,
    result: Step[PartitionLog, Offsets],
) -> bool:  # fmt: skip
    """Where transactions are verified, what opens one had the guard of its verification."""
    opens = transactional and not state.producers.known(producer_id).has_open_transaction(producer_epoch)
    if isinstance(result.result, Refused) or result.result.last_offset < state.log_end or not opens:
        return True
    verification = state.producers.verifications.get(producer_id)
    verified = verification is not None and verification.guard == guard
    return verified or not state.producers.config.transaction_verification_enabled


@machine.operation("produce", "LSO-3", "LSO-2", "LSO-19")
@reveals("LSO-9", "LSO-15")
@require(
    lambda state, guard: guard == NO_GUARD or guard in state.producers.handed_out, "LSO-17 a guard that was handed out"
)
@ensure(guarded, "LSO-19 a transaction opens only with the guard of its verification")
@room
@an_append
@ensure(
    lambda state, producer_id, producer_epoch, result: (
        isinstance(result.result, Refused) or producer_epoch >= state.producers.known(producer_id).epoch
    ),
    "LSO-3 an earlier epoch is fenced off",
)
def produce(
    state: PartitionLog, producer_id: ProducerId, producer_epoch: ProducerEpoch, first_sequence: SequenceNumber,
    count: FewRecords, transactional: bool, guard: Guard = NO_GUARD,
) -> Step[PartitionLog, Offsets]:  # fmt: skip
    """A producer appends a batch of its transaction, or, idempotent alone, of none. `guard` is what
    `startVerification` gave."""
    return appended(
        state,
        LogBatch(
            state.log_end,
            state.log_end + count - 1,
            producer_id,
            producer_epoch,
            "TRANSACTIONAL" if transactional else "PLAIN",
            first_sequence,
            NOBODY,
            state.producers.now,
        ),
        "CLIENT",
        guard=guard,
    )


@machine.operation("endTransaction", "LSO-4", "LSO-3", "LSO-2")
@reveals("LSO-9", "LSO-15")
@room
@an_append
@ensure(
    lambda state, producer_id, type, result: (
        isinstance(result.result, Refused)
        or (len(result.state.aborted) > len(state.aborted))
        == (type == "ABORT" and state.producers.known(producer_id).transaction is not None)
    ),
    "LSO-4 an entry for every transaction that is aborted, and none without one",
)
def end_transaction(
    state: PartitionLog, producer_id: ProducerId, producer_epoch: ProducerEpoch, type: MarkerType,
    coordinator_epoch: CoordinatorEpoch, transaction_version: Version,
) -> Step[PartitionLog, Offsets]:  # fmt: skip
    """A coordinator writes a marker: in time, late, or once more. From transaction version 2 on its epoch is above
    that of the records (PSM-11)."""
    numbers = (state.log_end, state.log_end, producer_id, producer_epoch)
    batch = LogBatch(*numbers, type, NOBODY, coordinator_epoch, state.producers.now)
    return appended(state, batch, "COORDINATOR", transaction_version)


@machine.operation("replicate", "LSO-3", "LSO-4", "LSO-2", "LSO-17")
@room
@require(
    lambda state, first_offset: state.log_end <= first_offset <= state.log_end + 100,
    "LSO-17 in the order of the offsets",
)
@require(lambda kind, count: count == 1 or kind in ("PLAIN", "TRANSACTIONAL"), "LSO-17 a marker is one record")
@an_append
def replicate(
    state: PartitionLog, producer_id: ProducerId, producer_epoch: ProducerEpoch, kind: Kind,
    first_sequence: SequenceNumber, coordinator_epoch: CoordinatorEpoch, first_offset: Offset, count: FewRecords,
) -> Step[PartitionLog, Offsets]:  # fmt: skip
    """A follower appends what the leader has: nothing is checked but that a transaction is open or not. Where the
    leader's log was cleaned, offsets are missing."""
    batch = ReplicaBatch(producer_id, producer_epoch, kind, first_sequence, coordinator_epoch, count)
    return appended(state, replicated(state, batch, first_offset), "REPLICATION")


@machine.operation("replicateBatches", "LSO-18", "LSO-3", "LSO-4", "LSO-2", "LSO-17")
@states(
    without={
        "LSO-18": {
            "model": "the model appends one record at a time, and its entries have no last stable offset",
            "proof": "see the model",
            "audit": "the entries of an index are compared with the markers of the log: PSM-16",
        }
    }
)
@room
@require(lambda batches: 2 <= len(batches) <= 5, "LSO-17 several batches")
@require(
    lambda batches: all(b.records == 1 or b.kind in ("PLAIN", "TRANSACTIONAL") for b in batches),
    "LSO-17 a marker is one record",
)
@ordered
@keeps_whole
@never_falls
@ensure(
    lambda state, batches, result: (
        observe(result.state) == observe(state)
        if isinstance(result.result, Refused)
        else result.state.batches[: len(state.batches)] == state.batches
        and len(result.state.batches) == len(state.batches) + len(batches)
    ),
    "LSO-18 all go to the end, or none",
)
@ensure(
    lambda state, result: (
        isinstance(result.result, Refused)
        or [(a.producer_id, a.first_offset, a.last_offset) for a in result.state.aborted]
        == [(a.producer_id, a.first_offset, a.last_offset) for a in one_by_one(state, result.state).aborted]
    ),
    "LSO-18 the aborted transactions are those of the batches one after the other",
)
def replicate_batches(state: PartitionLog, batches: Sequence[ReplicaBatch]) -> Step[PartitionLog, Offsets]:
    """A follower appends several batches that it has fetched, at its log's end, at once.

    LSO-18: Batches that a follower appends at once stand one after the other, or, if one of them is refused, none goes
    in. The transactions that they abort are put into the transaction index as if they came one by one, but what is
    stable then is the first offset of another producer's transaction also where that begins behind the marker, as long
    as it is one of these batches that begins it (PSM-16, TXI-12). A producer whose epoch is at the end what it was
    before keeps its batches (LSO-9). Of the producers of batches before a refused one the verification (PSM-26) has
    ended all the same. [{LOG}, append and analyzeAndValidateProducerState]
    """
    appended = placed(state, batches)
    taken_in = taken_at_once(state.producers, appended)
    if isinstance(taken_in, Refused):
        return Step(state.with_producers(without_verifications(state.producers, appended)), taken_in)
    producers, ended = taken_in
    begun = {b.base_offset: b.producer_id for b in appended if b.kind == "TRANSACTIONAL"}
    unstable = {**begun, **state.producers.opened}
    aborted = list(state.aborted)
    for end in ended:
        others = [first for first, i in unstable.items() if i != end.producer_id]
        if end.is_aborted:
            stable = min(others, default=end.last_offset + 1)
            aborted.append(AbortedTransaction(end.producer_id, end.first_offset, end.last_offset, stable))
        unstable = {f: i for f, i in unstable.items() if i != end.producer_id or f > end.last_offset}
    indexed = (b._replace(is_indexed=n > 0 or not state.is_fresh) for n, b in enumerate(appended))
    after = replace(
        state,
        batches=(*state.batches, *indexed),
        aborted=tuple(aborted),
        log_end=appended[-1].last_offset + 1,
        is_fresh=False,
    )
    offsets = Offsets(appended[0].base_offset, appended[-1].last_offset)
    return Step(refreshed(after.with_producers(producers)), offsets)


# ---- high watermark, log start ---------------------------------------------------------------------------------------
def is_boundary(state: PartitionLog, offset: Offset) -> bool:
    """Whether a batch begins there, or nothing stands there any more."""
    return offset >= state.log_end or any(b.base_offset == offset for b in state.batches)


@machine.operation("maybeIncrementHighWatermark", "LSO-5", "LSO-1", "LSO-2", "LSO-17")
@require(is_boundary, "LSO-17 where a batch begins, or the end")
@ordered
@keeps_whole
@never_falls
@ensure(
    lambda state, offset, result: (
        isinstance(result, Refused) or result.high_watermark == max(state.high_watermark, offset)
    ),
    "LSO-5 it only rises",
)
def maybe_increment_high_watermark(state: PartitionLog, offset: Offset) -> PartitionLog | Refused:
    """The leader knows that everything below this offset is replicated.

    LSO-5: A leader's high watermark only rises, and never above the log's end: that is refused. What ended below it is
    stable from then on. [{BOUNDARIES}; {LOG}]

    LSO-1: The last stable offset is the first unstable offset, if there is one below the high watermark, else the high
    watermark. At every step: log start offset <= last stable offset <= high watermark <= log end offset. Of a log that
    is not truncated or loaded again it never falls. [{BOUNDARIES}; KIP-98; {LOG}, lastStableOffset]
    """
    if offset > state.log_end:
        return ABOVE_END
    return with_high_watermark(state, offset) if offset > state.high_watermark else state


@machine.operation("maybeIncrementLogStartOffset", "LSO-6", "LSO-1", "LSO-2")
@ordered
@keeps_whole
@never_falls
@ensure(
    lambda state, offset, result: (
        isinstance(result, Refused) or (result.log_start == max(state.log_start, offset) <= result.high_watermark)
    ),
    "LSO-6 it only rises, and not above the high watermark",
)
def maybe_increment_log_start_offset(state: PartitionLog, offset: Offset) -> PartitionLog | Refused:
    """DeleteRecords.

    LSO-6: The log start only rises, and never above the high watermark: that is refused. It may rise into an open
    transaction, or beyond it: the transaction stays open, its first unstable offset is the log start from then on, and
    its marker ends it as ever. [{BOUNDARIES}; {LOG}, maybeIncrementLogStartOffset; KIP-107]
    """
    if offset > state.high_watermark:
        return ABOVE_HIGH_WATERMARK
    return with_log_start(state, offset)


def with_log_start(state: PartitionLog, offset: Offset) -> PartitionLog:
    if offset <= state.log_start:
        return state
    producers = rule(psm.on_log_start_offset_incremented)(state.producers, offset)
    return refreshed(state.with_producers(producers, log_start=offset))


# ---- segments --------------------------------------------------------------------------------------------------------
def snapshot(producers: tables.State, end: Offset) -> tables.State:
    """The producer state that stands at that offset, with a snapshot there."""
    after: tables.State = rule(psm.take_snapshot)(replace(producers, end=end))
    return after


@machine.operation("roll")
@states(without={"LSO-14": NO_FILES})
@ordered
@keeps_whole
@never_falls
@ensure(
    lambda state, result: result.batches == state.batches and result.segments[-1] == state.log_end,
    "LSO-14 a new segment, the same records",
)
def roll(state: PartitionLog) -> PartitionLog:
    """LSO-14: A new segment begins at the log's end, with a snapshot of the producers there; an empty one that begins
    there is made again. A high watermark at the end is set again, and the first unstable offset looked up with it.
    [{LOG}, roll; KAFKA-9196]"""
    after = state.with_producers(
        snapshot(state.producers, state.log_end),
        segments=tuple(sorted({*state.segments, state.log_end})),
        is_fresh=True,
    )
    return with_high_watermark(after, state.log_end) if state.high_watermark == state.log_end else after


def without_segments(state: PartitionLog, bases: Sequence[Offset]) -> PartitionLog:
    """The log without its first segments, which these are; there is one behind them."""
    following = state.next_segment(bases[-1])
    assert following is not None
    after = with_log_start(state, following)
    snapshots = {x: s for x, s in after.producers.snapshots.items() if x not in bases}
    return after.with_producers(
        replace(after.producers, snapshots=snapshots),
        segments=tuple(s for s in after.segments if s not in bases),
        batches=tuple(b for b in after.batches if b.base_offset >= following),
        aborted=tuple(a for a in after.aborted if a.last_offset >= following),
    )


def first_segments(state: PartitionLog, is_due: Callable[[Offset], bool]) -> tuple[Offset, ...]:
    """The segments from the first on that are due and lie below the high watermark; an empty last one never is."""
    out: list[Offset] = []
    for base in state.segments:
        following = state.next_segment(base)
        empty_last = following is None and not state.of_segment(base)
        end = state.log_end if following is None else following
        if state.high_watermark < end or not is_due(base) or empty_last:
            break
        out.append(base)
    return tuple(out)


def largest_timestamp(state: PartitionLog, base: Offset) -> int:
    """Of the batches of a segment; the clock's time of an empty one."""
    return max((b.timestamp for b in state.of_segment(base)), default=state.producers.now)


@machine.operation("deleteOldSegments", "LSO-7", "LSO-6", "LSO-1", "LSO-2")
@ordered
@keeps_whole
@never_falls
@ensure(
    lambda state, result: result.log_start <= state.high_watermark and result.log_end == state.log_end,
    "LSO-7 nothing at or above the high watermark is deleted",
)
@ensure(
    lambda result: all(b.base_offset >= result.segments[0] for b in result.batches),
    "LSO-7 whole segments",
)
@ensure(
    lambda retention_ms, result: retained(result, retention_ms) == result,
    "LSO-7 a second look finds nothing more",
)
def delete_old_segments(state: PartitionLog, retention_ms: TimeLimit) -> PartitionLog:
    """Retention, with this retention.ms.

    LSO-7: Retention deletes whole segments from the first on, none that reaches above the high watermark: those that
    end at or below the log start, and then those whose largest timestamp lies more than retention.ms in the past. The
    log start rises to the first segment that is left, into or beyond open transactions as well; aborted transactions
    and snapshots go with their segments. If all are due, a new one is made first. A second look at the same time finds
    nothing more. [{BOUNDARIES}; {LOG}, deleteOldSegments; KAFKA-5634, KAFKA-12177]
    """
    return retained(state, retention_ms)


def retained(state: PartitionLog, retention_ms: int) -> PartitionLog:
    below = first_segments(
        state, lambda base: (following := state.next_segment(base)) is not None and following <= state.log_start
    )
    after = without_segments(state, below) if below else state
    now = after.producers.now
    old = first_segments(after, lambda base: now - largest_timestamp(after, base) > retention_ms)
    if not old:
        return after
    return without_segments(roll_raw(after) if old == after.segments else after, old)


def roll_raw(state: PartitionLog) -> PartitionLog:
    after: PartitionLog = rule(roll)(state)
    return after


# ---- time ------------------------------------------------------------------------------------------------------------
@machine.operation("advance", kind="time")
@states(without=NO_CLOCK)
@require(lambda state, ms: state.producers.now + ms <= LATEST, "LSO-17 the clock stays far from the end of a long")
@ensure(
    lambda state, ms, result: (
        result == replace(state, producers=replace(state.producers, now=state.producers.now + ms))
    ),
    "LSO-15 time alone decides no transaction",
)
def advance(state: PartitionLog, ms: Duration) -> PartitionLog:
    """The clock moves.

    LSO-15: Expiry forgets idle producers (PSM-17), never one with an open transaction: neither time nor expiry moves
    the last stable offset. [{LOG}, removeExpiredProducers; KAFKA-9144]
    """
    return state.with_producers(replace(state.producers, now=state.producers.now + ms))


@machine.operation("removeExpiredProducers", "LSO-15")
@ordered
@keeps_whole
@ensure(
    lambda state, result: result.last_stable == state.last_stable and result.producers.opened == state.producers.opened,
    "LSO-15 no open transaction is forgotten",
)
def remove_expired_producers(state: PartitionLog) -> PartitionLog:
    """The log's look for idle producers."""
    return state.with_producers(rule(psm.remove_expired_producers)(state.producers, state.producers.now))


# ---- truncation, loading ---------------------------------------------------------------------------------------------
@states()
def rebuilt(state: PartitionLog, clean: bool) -> tables.State:
    """The producer state of a log that was cut or loaded.

    LSO-9: The producer state is then loaded from its latest snapshot (PSM-20), and the batches from there on are read
    as replication; snapshots are taken where the last two segments are begun, and at the end. Nothing is read if
    nothing was known and the state stood at or beyond the end; nor by a clean start without any snapshot: the log is
    then said to have no producers. A segment is read as one append: a producer whose epoch is at its end what it was
    before keeps the batches of then, though there was another epoch between. [{LOADER}]
    """
    producers = state.producers
    last_two = state.segments[-2:]
    if clean and not producers.snapshots:
        for x in (*last_two, state.log_end):
            producers = snapshot(producers, x)
        return producers
    knows_nothing = not producers.producers and not producers.ended and producers.end >= state.log_end
    producers = rule(psm.truncate_and_reload)(producers, state.log_start, state.log_end, producers.now)
    if not knows_nothing:
        first = state.floor(producers.end)
        for base in (s for s in state.segments if first <= s < state.log_end and producers.end < state.log_end):
            producers = replace(producers, end=max(base, producers.end, state.log_start))
            if base in last_two:
                producers = snapshot(producers, producers.end)
            taken_in = taken_at_once(producers, [b for b in state.of_segment(base) if b.last_offset >= producers.end])
            if not isinstance(taken_in, Refused):  # what is in the log was not refused
                producers, _ = taken_in
    return snapshot(producers, state.log_end)


@machine.operation("truncateTo", "LSO-8", "LSO-9", "LSO-2", "LSO-17")
@require(
    lambda state, offset: (
        offset >= state.log_end
        or offset <= state.segments[0]
        or any(b.last_offset + 1 == offset for b in state.batches)
    ),
    "LSO-17 behind a batch, or the whole log",
)
@ordered
@ensure(
    lambda state, offset, result: result.log_end == (offset if offset < state.log_end else state.log_end),
    "LSO-8 the log ends there",
)
@ensure(
    lambda offset, result: (
        all(b.last_offset < result.log_end for b in result.batches)
        and all(a.last_offset < result.log_end for a in result.aborted)
        and all(first < result.log_end for first in result.producers.opened)
    ),
    "LSO-8 nothing that was cut off is known any more",
)
def truncate_to(state: PartitionLog, offset: Offset) -> PartitionLog:
    """A follower cuts off what its leader does not have.

    LSO-8: A truncation drops the batches, the aborted transactions and the segments from the offset on; log start and
    high watermark are at most the new end, and the producer state is what the rest makes. One at or above the end
    changes nothing; one below the first segment empties the log, which begins there then, as a full truncation does.
    [{LOG}, truncateTo, truncateFullyAndStartAt; KAFKA-12153; KAFKA-9491]
    """
    if offset >= state.log_end:
        return state
    if offset < state.segments[0]:
        after: PartitionLog = rule(truncate_fully)(state, offset)
        return after
    dropped = [s for s in state.segments if s > offset]
    snapshots = {x: s for x, s in state.producers.snapshots.items() if x not in dropped}
    cut = state.with_producers(
        replace(state.producers, snapshots=snapshots),
        segments=tuple(s for s in state.segments if s <= offset),
        batches=tuple(b for b in state.batches if b.last_offset < offset),
        aborted=tuple(a for a in state.aborted if a.last_offset < offset),
        log_start=min(offset, state.log_start),
        log_end=offset,
        is_fresh=True,
    )
    cut = cut.with_producers(rebuilt(cut, clean=False))
    return with_high_watermark(cut, offset) if state.high_watermark >= offset else cut


@machine.operation("truncateFullyAndStartAt", "LSO-8")
@require(lambda offset: offset < INT_MAX - 100, "LSO-17 offsets stay within 31 bits")
@ordered
@ensure(
    lambda offset, result: (
        (result.log_start, result.high_watermark, result.log_end) == (offset, offset, offset) and not result.batches
    ),
    "LSO-8 all begins there",
)
def truncate_fully(state: PartitionLog, offset: Offset) -> PartitionLog:
    """A follower that has nothing in common with its leader begins again."""
    producers = rule(psm.truncate_fully_and_start_at)(state.producers, offset)
    after = PartitionLog((offset,), (), (), offset, state.high_watermark, offset, None, producers)
    return with_high_watermark(after.with_producers(rebuilt(after, clean=False)), offset)


@machine.operation("reopen", "LSO-9", "LSO-1", "LSO-2", "LSO-17", kind="restart")
@reveals("LSO-8")
@require(is_boundary, "LSO-17 where a batch begins, or the end")
@require(lambda state, offset: offset >= state.log_start, "LSO-17 not below the log start")
@ordered
@ensure(
    lambda state, offset, result: (
        result.high_watermark == min(offset, state.log_end) and result.first_unstable == looked_up(result)
    ),
    "LSO-9 the high watermark is the checkpoint's, the first unstable offset what was read",
)
@ensure(
    lambda state, result: (result.batches, result.aborted) == (state.batches, state.aborted),
    "LSO-9 the records, and which of them are aborted, are those that there were",
)
def reopen(state: PartitionLog, offset: Offset) -> PartitionLog:
    """The log is closed, and loaded by the next process, whose checkpoint has this high watermark. A transaction that
    ended is in no snapshot: it is stable from then on, whether its marker is replicated or not."""
    closed = rule(psm.take_snapshot)(state.producers)
    empty = rule(psm.remove_stray_snapshots)(rule(psm.reopen)(closed), state.segments)
    loaded = state.with_producers(empty, is_fresh=True)
    loaded = loaded.with_producers(rebuilt(loaded, clean=True))
    return with_high_watermark(loaded, min(offset, state.log_end))


# ---- reads -----------------------------------------------------------------------------------------------------------
@machine.question("read", "LSO-10", "LSO-12", "LSO-13")
@ensure(
    lambda state, read_committed, result: (
        isinstance(result, Refused)
        or all(b.last_offset < (state.last_stable if read_committed else state.high_watermark) for b in result.batches)
    ),
    "LSO-10 nothing at or above the bound",
)
@ensure(
    lambda result: (
        isinstance(result, Refused) or all(a.last_offset < b.base_offset for a, b in pairwise(result.batches))
    ),
    "LSO-10 in offset order",
)
@ensure(covers_the_aborted, "LSO-12 no aborted record without its transaction")
def read(state: PartitionLog, start_offset: Offset, max_batches: FewBatches, read_committed: bool) -> Fetch | Refused:
    """A fetch from an offset, with room for that many batches."""
    return answer(state, start_offset, max_batches, read_committed)


# ---- the consumer ----------------------------------------------------------------------------------------------------
@machine.question("consume", "LSO-11", "LSO-16", "LSO-10", "LSO-12")
@ensure(sees_the_committed, "LSO-11 every committed record, no aborted one")
@ensure(sees_nothing_undecided, "LSO-11 no undecided one")
@ensure(
    lambda state, start_offset, result: (
        isinstance(result, Refused)
        or (
            all(a < b for a, b in pairwise(result.records))
            and all(start_offset <= x < result.next_offset for x in result.records)
        )
    ),
    "LSO-16 in offset order, once, and none that the next step hands out again",
)
def consume(state: PartitionLog, start_offset: Offset, max_batches: FewBatches, read_committed: bool) -> Poll | Refused:
    """One step of a consumer that stands at an offset: a fetch, and what it makes of the answer.

    LSO-11: A read_committed consumer drops the transactional batches of a producer from where one of the aborted
    transactions that it was told begins, up to that producer's next abort marker. So it hands out every record without
    a transaction and every record of a committed one, none of an aborted one and none that is undecided. [KIP-98;
    {CONSUMER}]

    LSO-16: Records are handed out in offset order from the start offset on, markers never. The consumer goes on behind
    the last batch that it was given, so that whatever it does, in however many steps, it sees no record twice and
    leaves none out. [KIP-98; {CONSUMER}]
    """
    return handed_on(answer(state, start_offset, max_batches, read_committed), start_offset)
