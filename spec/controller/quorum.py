"""The controller of a quorum: a call becomes records, Raft writes them, they are applied, and answered when they stay.

One controller, as its node has it. It is told by Raft what is committed and who leads. While it is active it applies
what it writes at once, and keeps each call in its purgatory until the records are committed; a standby applies what is
committed. While it is active it also writes by itself, in periodic tasks (PER). Memory is a map from names to numbers,
and the past of it that a registry keeps is a full copy for each offset: how Kafka avoids the copying is TML. Source:
Kafka Internals, ch. 11, "Write -> commit -> apply, in detail", "Becoming (and ceasing to be) the active controller";
KIP-631; KIP-868.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

from icontract import ensure, require

from kafkaspec.contract.clauses import A_QUESTION, ONE_CALL, clause, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Machine, Step
from kafkaspec.contract.numbers import Within
from kafkaspec.spec.common.metadata_log import (
    ACTIVATION,
    ELR,
    FIRST_TRANSACTIONS,
    HALTED,
    MIN_ISR,
    NO_EPOCH,
    NO_LOG_OFFSET,
    NONE_REFUSED,
    TRANSACTIONS,
    VERSION,
    Answer,
    Batch,
    Fault,
    Kind,
    Observation,
    Outcome,
    PendingCall,
    PurgatoryEntry,
    QueuedWrite,
    Record,
    are_known,
)
from kafkaspec.spec.controller.quorum_parts import state as parts
from kafkaspec.spec.controller.quorum_parts.state import (
    NS_IN_MS,
    WRITE_NO_OP,
    Controller,
    Epoch,
    Index,
    Level,
    Ms,
    Offset,
    Room,
    ScheduledTask,
    all_scheduled,
    behind_the_last,
    new,
    none_scheduled,
    remembered,
    reverted,
    scheduled,
    with_snapshot,
)

PREFIX = "QRM"
TITLE = "Quorum controller"

WRITE = "Kafka Internals, ch. 11, Write -> commit -> apply, in detail"
BECOMING = parts.BECOMING
STABLE = "Kafka Internals, ch. 11, The three offsets and metadata transactions"
CONTROLLER = "QuorumController, Kafka 4.3.0"
MANAGER = "OffsetControlManager, Kafka 4.3.0"

OF_RAFT = "Raft's part, which the controller relies on"
WITHOUT_RECORDS = "the models leave out what a record does in memory: that is TML"
OF_MANY = {"spec": "a matter of several controllers: the spec is one", "impl": "a matter of several controllers"}

clause(
    "QRM-3",
    """Raft hands every controller the batches that are committed, each once, in the order of offsets; what is
    committed stays.""",
    source="RaftClient.Listener.handleCommit, Kafka 4.3.0; KIP-595",
    without={"impl": OF_RAFT, "mutant": OF_RAFT},
)
clause(
    "QRM-20",
    """A controller is told of its election when it has been handed all that was in its log before its epoch, so that
    its memory then is that of the whole log.""",
    source="KafkaRaftClient.ListenerContext.maybeFireLeaderChange, Kafka 4.3.0",
    without={"impl": OF_RAFT, "mutant": OF_RAFT},
)
clause(
    "QRM-28",
    """Controllers that applied the same committed records have the same state, whether they wrote them or replayed
    them: as long as no failover comes between the records of one transaction (QRM-22).""",
    source="Kafka Internals, ch. 11, Invariants & guarantees, Determinism",
    without={"spec": OF_MANY["spec"]},
)
clause(
    "QRM-32",
    """Every write is answered at last: with its result when its records are committed, or with an error when its
    controller gives up.""",
    source="Kafka Internals, ch. 11 (no request vanishes); DeferredEventQueue, Kafka 4.3.0",
    without=dict.fromkeys(("spec", "impl", "mutant"), "a matter of time")
    | {"proof": "the prover is asked no leads-to claims: explored"},
)


def initial(
    max_records_per_batch: Room = 1000,
    bootstrap_level: Level = TRANSACTIONS,
    elr: bool = False,
    max_idle_interval_ms: Ms | None = None,
) -> Controller:
    """A standby with an empty log."""
    return Controller(max_records_per_batch, bootstrap_level, elr, max_idle_interval_ms)


def observe(state: Controller) -> Observation:
    """What is compared; nothing of a controller that has met a fatal fault: the process is gone."""
    if state.halted:
        return HALTED
    past = dict(state.past)
    return Observation(
        state.claim,
        state.committed,
        state.committed_epoch,
        state.stable,
        state.next_write,
        state.begun,
        [*past],
        dict(state.memory),
        dict(past[state.stable]) if state.stable in past else None,
        [PurgatoryEntry(w.offset, w.call) for w in state.purgatory],
        [*state.sent],
        state.faults,
        {t.name: t.deadline_ns for t in state.scheduled},
        halted=False,
    )


machine = Machine("quorum", initial, observe)
Answers = Annotated[list[Answer], governs(*(f"QRM-{n}" for n in (10, 11, 12, 14, 15, 21, 36)))]


# ---- memory and its past ---------------------------------------------------------------------------------------------
def halted(state: Controller) -> Controller:
    """The process is gone, and all it had."""
    return replace(new(state), halted=True)


@states(without={"QRM-6": {"model": WITHOUT_RECORDS, "proof": WITHOUT_RECORDS}})
def with_offset(state: Controller, name: str, offset: int) -> Controller:
    """QRM-6: A record is applied at the offset that it has in the log: the active controller takes it from Raft's
    answer, as Raft puts batches of its own between those of the controller. State that keeps offsets is therefore the
    same everywhere. [KAFKA-15213; KAFKA-17304; QuorumController.ControllerWriteEvent.run, Kafka 4.3.0]"""
    return replace(state, memory=remembered(state.memory, name, offset))


@states()
def transacted(state: Controller, kind: Kind, offset: int, in_snapshot: bool) -> Controller | None:
    """QRM-25: A record that begins a metadata transaction at offset t takes a snapshot at t - 1 and opens it, if none
    is open. One that ends it closes it; one that aborts it closes it and makes memory what it was at t - 1. Otherwise
    such a record cannot be applied, and none of them can be in a snapshot. [{STABLE}; KIP-868;
    OffsetControlManager.replay, Kafka 4.3.0]"""
    if in_snapshot or (state.begun == NO_LOG_OFFSET) != (kind == Kind.BEGIN):
        return None
    if kind == Kind.BEGIN:
        before = with_snapshot(state, offset - 1)
        return None if before is None else replace(before, begun=offset)
    after = reverted(state, state.begun - 1) if kind == Kind.ABORT else state
    return None if after is None else replace(after, begun=NO_LOG_OFFSET)


@states(without={"QRM-30": ONE_CALL})
def is_unknown(kind: Kind) -> bool:
    """QRM-30: A record of a type that the controller does not know cannot be applied; it is not skipped. [Kafka
    Internals, ch. 11, Gotchas; QuorumController.replay, Kafka 4.3.0]"""
    return kind == Kind.UNKNOWN


def applied(state: Controller, record: Record, offset: int, in_snapshot: bool = False) -> Controller | None:
    """With a record applied; None if it cannot be."""
    if is_unknown(record.kind):
        return None
    match record.kind:
        case Kind.SET:
            return replace(state, memory=remembered(state.memory, record.key, record.value))
        case Kind.VERSION:
            return replace(state, memory=remembered(state.memory, VERSION, record.value))
        case Kind.FEATURE:
            return replace(state, memory=remembered(state.memory, ELR, record.value))
        case Kind.REGISTER:
            return with_offset(state, f"broker {record.value}", offset)
        case Kind.NO_OP:
            return state
    return transacted(state, record.kind, offset, in_snapshot)


def all_applied(state: Controller, records: Sequence[Record], base: int) -> Controller | None:
    after: Controller | None = state
    for n, record in enumerate(records):
        if after is not None:
            after = applied(after, record, base + n)
    return after


# ---- what is committed -----------------------------------------------------------------------------------------------
@states()
def settled(state: Controller, batch: Batch) -> Controller:
    """Its offsets, when a batch with records is committed.

    QRM-26: The last stable offset is the committed one; while a transaction is open, the smaller of that and the offset
    before the transaction. It never falls. The transaction that counts is the one open in memory: on the active
    controller one that is written, committed or not. [{STABLE}; OffsetControlManager.maybeAdvanceLastStableOffset,
    Kafka 4.3.0]
    """
    committed = batch.last
    stable = committed if state.begun == NO_LOG_OFFSET else min(state.begun - 1, committed)
    after = replace(state, committed=committed, committed_epoch=batch.epoch)
    if stable <= state.stable:
        return after
    after = replace(after, stable=stable, past=tuple(p for p in after.past if p[0] >= stable))
    if after.active:
        return after
    snapshot = with_snapshot(after, stable)
    return after if snapshot is None else snapshot


@states()
def is_stable(state: Controller, waiting: PendingCall) -> bool:
    """QRM-14: A write is answered with its result only when the last stable offset has reached the offset of its last
    record. [{WRITE}; Kafka Internals, ch. 11, Durability before acknowledgement]"""
    return waiting.offset <= state.stable


@states()
def completed(state: Controller) -> tuple[Controller, Answers]:
    """The purgatory, and what it answers when the stable offset has moved.

    QRM-15: When the stable offset moves, all calls that wait for an offset up to it are answered, by rising offset, and
    at one offset in the order in which they came. [DeferredEventQueue.completeUpTo, Kafka 4.3.0]
    """
    done = [w for w in state.purgatory if is_stable(state, w)]
    answers = [Answer(w.call, Outcome.DONE, w.response) for w in done if w.call != ACTIVATION]
    return replace(state, purgatory=state.purgatory[len(done) :]), answers


# ---- giving up -------------------------------------------------------------------------------------------------------
@states()
def failed(state: Controller) -> Answers:
    """What is answered to those who wait.

    QRM-21: A controller that renounces leadership tells Raft to resign in the epoch that it claimed, claims none, and
    fails every call in its purgatory with NotControllerException, in the order in which they would have been answered.
    [{BECOMING}; QuorumController.renounce, Kafka 4.3.0]
    """
    return [Answer(w.call, Outcome.NOT_CONTROLLER) for w in state.purgatory if w.call != ACTIVATION]


@states()
def gone_back(state: Controller) -> Controller | None:
    """QRM-22: Who renounces makes memory what it was at the last stable offset, so that what is written and not stable
    is gone. Kafka 4.3.0 leaves two things as they are: the committed offset, though within a transaction memory is then
    older than that; and the start of the open transaction, though its begin, or its end, may be among what is gone.
    [{BECOMING}; OffsetControlManager.deactivate, Kafka 4.3.0]"""
    return reverted(state, state.stable)


def renounced(state: Controller) -> tuple[Controller, Answers]:
    """After leadership is given up, and what is answered to those who wait."""
    after = gone_back(none_scheduled(replace(state, claim=NO_EPOCH, next_write=NO_LOG_OFFSET, purgatory=())))
    return (halted(state), []) if after is None else (after, failed(state))


@states(without={"QRM-23": {"model": "the model has the failover, not its cause", "proof": "likewise"}})
def faulted(state: Controller, fault: Fault, call: int) -> tuple[Controller, Answers]:
    """After an exception in an event of the active controller.

    QRM-23: What an event throws decides: an error of the API is answered as it is; a list of records that is too long
    is a PolicyViolationException; neither changes anything. A periodic task that fails is a fault, and changes nothing
    else. That Raft has lost leadership is no fault, and fails over: the caller is told NotControllerException. Anything
    else is a fault and fails over: UnknownServerException. Those in the purgatory are failed before the caller is.
    [Kafka Internals, ch. 11, Failure handling; EventHandlerExceptionInfo.fromInternal, Kafka 4.3.0]
    """
    outcome, is_fault, fails_over = {
        Fault.API: (Outcome.INVALID_REQUEST, False, False),
        Fault.TOO_LONG: (Outcome.POLICY_VIOLATION, False, False),
        Fault.PERIODIC: (Outcome.PERIODIC_TASK, True, False),
        Fault.NOT_LEADER: (Outcome.NOT_CONTROLLER, False, True),
        Fault.UNEXPECTED: (Outcome.UNKNOWN_SERVER, True, True),
    }[fault]
    after, answers = replace(state, faults=state.faults + is_fault), Answers()
    if fails_over:
        after, answers = renounced(after)
    if after.halted:
        return after, []
    return after, [*answers, *([Answer(call, outcome)] if call != ACTIVATION else [])]


# ---- writing ---------------------------------------------------------------------------------------------------------
@states(without={"QRM-8": ONE_CALL})
def are_too_many(records: Sequence[Record], cap: int, atomic: bool) -> bool:
    """QRM-8: Records that must be written all or none are one batch; if there are more than a batch may have, that is
    an error, and nothing is written. [Kafka Internals, ch. 11, Atomic vs. non-atomic batches;
    QuorumController.appendRecords, Kafka 4.3.0]"""
    return atomic and len(records) > cap


@states(without={"QRM-9": ONE_CALL})
def may_be_split(atomic: bool) -> bool:
    """QRM-9: Records that need not be are as many batches as needed, each as large as may be, and the call waits for
    the last. If they are an exact multiple of what a batch may have, Kafka 4.3.0 hands Raft an empty batch behind them,
    which Raft refuses: the controller fails over by a fault. That is no known deviation: nobody is promised when a
    controller does not fail over, and what comes of it is what comes of any fault (QRM-23). [Kafka Internals, ch. 11,
    Atomic vs. non-atomic batches; QuorumController.appendRecords; KafkaRaftClient.append, Kafka 4.3.0]"""
    return not atomic


@states()
def written(state: Controller, records: Sequence[Record]) -> Controller | None:
    """After a batch; None if one of its records cannot be applied.

    QRM-5: Of each batch first Raft prepares it, then its records are applied to memory, then Raft is told to write it;
    then a snapshot of memory is taken at its last offset, and the next write offset is the one behind it. [{WRITE};
    QuorumController.ControllerWriteEvent.run, Kafka 4.3.0]
    """
    batch = Batch(state.end, state.claim, tuple(records))
    after = all_applied(state, records, batch.base)
    kept = None if after is None else with_snapshot(after, batch.last)
    end = batch.last + 1
    return None if kept is None else replace(kept, next_write=end, end=end, sent=(*state.sent, batch))


@states(without={"QRM-7": ONE_CALL})
def cannot_go_on(after: Controller | None) -> bool:
    """QRM-7: If a record cannot be applied on the active controller, the fault is fatal, and Raft is not told to write
    the batch. [{WRITE}; QuorumController.ControllerWriteEvent.run, Kafka 4.3.0]"""
    return after is None


@states(without={"QRM-36": {"model": "a failover by a fault", "proof": "a failover by a fault"}})
def is_refused(batch: int, refused_at: int) -> bool:
    """QRM-36: If Raft refuses to prepare a batch because it has lost leadership, the controller fails over; what it
    applied of earlier batches of the call goes with the rest. [NotLeaderException; QuorumController.renounce, Kafka
    4.3.0]"""
    return batch == refused_at


@states()
def waiting(state: Controller, call: int, response: int) -> Controller:
    """QRM-10: A call with records is not answered when it is done; it waits in the purgatory at the offset of its last
    record. [{WRITE}]"""
    return replace(state, purgatory=(*state.purgatory, PendingCall(state.end - 1, call, response)))


def appended(
    state: Controller, call: int, response: int, records: Sequence[Record], atomic: bool, refused_at: int
) -> tuple[Controller, Answers]:
    """After an event's records were written."""
    if are_too_many(records, state.cap, atomic):
        return faulted(state, Fault.UNEXPECTED, call)
    cap = state.cap if may_be_split(atomic) else len(records) + 1
    batches = [records[n : n + cap] for n in range(0, len(records) + 1, cap)]
    for n, batch in enumerate(batches):
        if is_refused(n, refused_at):
            return faulted(state, Fault.NOT_LEADER, call)
        if not batch:
            return faulted(state, Fault.UNEXPECTED, call)
        after = written(state, batch)
        if cannot_go_on(after):
            return halted(state), []
        assert after is not None
        state = after
    return waiting(state, call, response), []


@states(without={"QRM-1": ONE_CALL})
def takes_writes(state: Controller) -> bool:
    """QRM-1: A write at a controller that is not active does nothing, and is answered NotControllerException. [{WRITE};
    QuorumController.ControllerWriteEvent.run, Kafka 4.3.0]"""
    return state.active


@states(without={"QRM-4": {"model": WITHOUT_RECORDS, "proof": WITHOUT_RECORDS}})
def latest_value(state: Controller, key: str) -> int:
    """QRM-4: A write makes its records and its result from the latest memory, what is not committed included, and
    changes nothing by that. [{WRITE}; QuorumController.ControllerWriteOperation, Kafka 4.3.0]"""
    return dict(state.memory).get(key, NO_LOG_OFFSET)


@states()
def answered_at_once(call: int, response: int) -> Answers:
    """QRM-11: A write that has no records is answered at once if the purgatory is empty. [{WRITE}]"""
    return [Answer(call, Outcome.DONE, response)]


@states()
def has_to_wait(state: Controller) -> bool:
    """QRM-12: A write without records that finds calls in the purgatory waits at the highest offset for which one
    waits, so that all that it saw is stable when it is answered. [{WRITE}; DeferredEventQueue.highestPendingOffset,
    Kafka 4.3.0]"""
    return bool(state.purgatory)


def one_write(state: Controller, write: QueuedWrite, refused_at: int = NONE_REFUSED) -> tuple[Controller, Answers]:
    """After a write event."""
    call, state = state.calls, replace(state, calls=state.calls + 1)
    if not takes_writes(state):
        return state, [Answer(call, Outcome.NOT_CONTROLLER)]
    if write.fault != Fault.NONE:
        return faulted(state, write.fault, call)
    response = latest_value(state, write.key)
    if write.records:
        return appended(state, call, response, write.records, write.atomic, refused_at)
    if has_to_wait(state):
        return behind_the_last(state, call, response), []
    return state, answered_at_once(call, response)


KNOWN = "QRM-18 records that there are"
runs = require(lambda state: not state.halted, "QRM-7 a controller that met a fatal fault is gone")


@states(without={"QRM-38": {"model": WITHOUT_RECORDS, "proof": WITHOUT_RECORDS}})
def can_go_back(state: Controller) -> bool:
    """QRM-38: While it is active there is a snapshot at the last stable offset, unless it has written an abort before
    what that aborts was committed: then there is none until the abort is committed, and to renounce is a fatal fault.
    Kafka 4.3.0 itself aborts only what is committed. [Kafka Internals, ch. 11, Timeline data structures; KAFKA-13114;
    KAFKA-17608; OffsetControlManager.activate, Kafka 4.3.0]"""
    aborts = any(r.kind == Kind.ABORT for batch in state.sent for r in batch.records)
    return not state.active or aborts or any(offset == state.stable for offset, _ in state.past)


goes_back = ensure(lambda result: can_go_back(result.state), "QRM-38 it can go back to what is stable")
in_order = ensure(
    lambda result: all(a.offset <= b.offset for a, b in pairwise(result.state.purgatory)),
    "QRM-15 calls wait in the order of offsets",
)
nothing_early = ensure(
    lambda result: result.state.halted or all(w.offset > result.state.stable for w in result.state.purgatory),
    "QRM-15 whatever can be answered is",
)
not_before_stable = ensure(
    lambda state, result: all(
        w.offset <= result.state.stable
        for w in state.purgatory
        if any(a.call == w.call and a.outcome == Outcome.DONE for a in result.result)
    ),
    "QRM-14 no call is answered before its records are stable",
)


none_waits_at_a_standby = ensure(
    lambda result: result.state.active or not result.state.purgatory, "QRM-21 nobody waits at a standby"
)
OF_A_WRITE = tuple(f"QRM-{n}" for n in (10, 5, 23, 36, 22, 1, 4, 11, 12, 7, 8, 9, 6))


@machine.operation("write", *OF_A_WRITE)
@runs
@require(lambda records: are_known(records), KNOWN)
@goes_back
@in_order
@nothing_early
@none_waits_at_a_standby
def write(
    state: Controller,
    key: str,
    records: Sequence[Record],
    atomic: bool = True,
    fault: Fault = Fault.NONE,
    refused_at: Index = NONE_REFUSED,
) -> Step[Controller, Answers]:
    """A call that makes those records, answers the value of `key`, -1 if it has none, or throws. Raft refuses to
    prepare the batch with the index `refused_at`. Who is answered by that, in order."""
    after, answers = one_write(state, QueuedWrite(key, tuple(records), atomic, fault), refused_at)
    return Step(after, answers)


@machine.operation("late")
@states(without={"QRM-35": ONE_CALL})
@runs
@ensure(lambda state, result: result.state == replace(state, calls=state.calls + 1), "QRM-35 nothing is done")
def late(state: Controller, records: Sequence[Record]) -> Step[Controller, Answers]:
    """A write whose deadline passes while it is in the queue.

    QRM-35: An event that is still in the queue when its deadline has passed is not run; it is answered
    TimeoutException, whether or not the controller is active. A call in the purgatory has no deadline any more.
    [KafkaEventQueue.EventHandler.handleEvents; QuorumController.handleEventException, Kafka 4.3.0]
    """
    return Step(replace(state, calls=state.calls + 1), [Answer(state.calls, Outcome.TIMEOUT)])


@machine.question("read")
@states(without=A_QUESTION)
@runs
def read(state: Controller, key: str) -> int | None:
    """The value of a name, -1 if it has none; null if memory at the last stable offset is not kept.

    QRM-2: A read is answered at once, of what memory was at the last stable offset, by a controller that is active and
    by one that is not. [Kafka Internals, ch. 11, The event loop and the asynchronous API;
    QuorumController.ControllerReadEvent, Kafka 4.3.0]
    """
    shown = observe(state).stable
    return None if shown is None else shown.get(key, NO_LOG_OFFSET)


# ---- what Raft says --------------------------------------------------------------------------------------------------
@machine.operation("commit", "QRM-29", "QRM-13", "QRM-15", "QRM-14", "QRM-26", "QRM-27", "QRM-34")
@runs
@require(lambda state, count: count <= len(state.sent), "QRM-3 it is in the log")
@goes_back
@in_order
@nothing_early
@not_before_stable
def commit(state: Controller, count: Annotated[int, Within(1, 1000)]) -> Step[Controller, Answers]:
    """The next batches of its log are committed, and it is handed them: as the active controller, or as a standby that
    finds what it wrote, and gave up, committed by another."""
    answers = Answers()
    for batch in state.sent[:count]:
        state, more = handed(replace(state, sent=state.sent[1:]), batch)
        if state.halted:
            return Step(state, [])
        answers += more
    return Step(state, answers)


@states(without={"QRM-34": {"model": "the model leaves out Raft's own records", "proof": "likewise"}})
def is_of_raft(batch: Batch) -> bool:
    """QRM-34: A committed batch without records of the controller's, as Raft writes for itself, changes nothing:
    neither the committed offset, nor the stable one, nor the snapshots. [KAFKA-17608; QuorumController.handleCommit,
    Kafka 4.3.0]"""
    return not batch.records


@states()
def settled_by_writer(state: Controller, batch: Batch) -> tuple[Controller, Answers]:
    """QRM-13: The active controller does not apply again what is committed. It moves the committed offset and epoch,
    and with them the stable offset; older snapshots go. [{WRITE}; {CONTROLLER}; {MANAGER}]"""
    return completed(settled(state, batch))


@states()
def replays(state: Controller) -> bool:
    """QRM-27: A standby applies each committed record, at its offset in the log; then it moves its offsets, and takes a
    snapshot where it is stable. [{WRITE}; {CONTROLLER}]"""
    return not state.active


@states()
def cannot_follow(after: Controller | None) -> bool:
    """QRM-29: A committed record that a standby cannot apply is a fatal fault. [Kafka Internals, ch. 11, Failure
    handling; {CONTROLLER}]"""
    return after is None


def handed(state: Controller, batch: Batch) -> tuple[Controller, Answers]:
    """After a committed batch."""
    if is_of_raft(batch):
        return state, []
    if not replays(state):
        return settled_by_writer(state, batch)
    after = all_applied(state, batch.records, batch.base)
    if cannot_follow(after):
        return halted(state), []
    assert after is not None
    return settled(after, batch), []


@machine.operation("replicate", "QRM-29", "QRM-27", "QRM-25", "QRM-26", "QRM-30")
@runs
@require(lambda state: not state.active, "QRM-3 another wrote it")
@require(lambda state, epoch: max(state.committed_epoch, 0) <= epoch <= state.epoch, "QRM-3 in an epoch that was")
@require(lambda batches: all(batches), "QRM-3 no batch is empty")
@require(lambda batches: all(map(are_known, batches)), KNOWN)
def replicate(state: Controller, epoch: Epoch, batches: Sequence[Sequence[Record]]) -> Controller:
    """Batches that another wrote are committed, and it is handed them; what it has in its log and was not handed is
    cut off before."""
    end = state.handed
    state = replace(state, end=end, sent=())
    for records in batches:
        batch = Batch(end, epoch, tuple(records))
        end = batch.last + 1
        state = handed(replace(state, end=end), batch)[0]
        if state.halted:
            return state
    return state


@machine.operation("control", "QRM-34", "QRM-6")
@runs
@require(lambda state: state.active or not state.sent, "QRM-3 a standby is handed what is committed")
def control(state: Controller) -> Controller:
    """Raft writes a record of its own: into the log of the active controller, or one that is committed."""
    if not state.active:
        return replace(state, end=state.end + 1)
    return replace(state, end=state.end + 1, sent=(*state.sent, Batch(state.end, state.claim, ())))


@machine.operation("lead", "QRM-18", "QRM-19", "QRM-16", "QRM-17", "QRM-10", "QRM-36", "QRM-22", "QRM-9", "QRM-39")
@runs
@require(lambda state: not state.active and not state.sent, "QRM-20 it was handed all that was before its epoch")
@require(lambda state, epoch: epoch > state.epoch, "QRM-3 epochs rise")
@require(lambda queued: all(are_known(w.records) for w in queued), KNOWN)
@goes_back
@in_order
@nothing_early
@none_waits_at_a_standby
def lead(
    state: Controller, epoch: Epoch, queued: Sequence[QueuedWrite] = (), refused: bool = False
) -> Step[Controller, Answers]:
    """It is told that it leads, while those writes wait in its queue; the record by which Raft begins the epoch is
    committed, and it was handed that. Raft may refuse what it writes to activate. Who is answered by all that, in
    order.

    QRM-17: Its activation goes before every event that waits in the queue. [{BECOMING}; QuorumController.claim, Kafka
    4.3.0]
    """
    ready = claimed(replace(state, end=state.end + 1), epoch)
    if ready is None:
        return Step(halted(state), [])
    state, answers = activated(ready, refused)
    for w in queued:
        if not state.halted:
            state, more = one_write(state, w)
            answers = [*answers, *more]
    return Step(state, [] if state.halted else answers)


@states()
def claimed(state: Controller, epoch: int) -> Controller | None:
    """QRM-16: A controller that is told that it leads in an epoch claims that epoch, takes a snapshot at its last
    stable offset, and writes next at the end of Raft's log. [{BECOMING}; QuorumController.claim, Kafka 4.3.0]"""
    return with_snapshot(replace(state, claim=epoch, epoch=epoch, next_write=state.end), state.stable)


@states(
    without={"QRM-18": {"model": "the model's log begins with a version", "proof": "the model's log begins with one"}}
)
def bootstrap_records(state: Controller, has_transactions: bool) -> list[Record]:
    """QRM-18: If there is no metadata version in memory, the activation writes the bootstrap records: between the begin
    and the end of a transaction if their metadata version has transactions, as one batch otherwise; if they have the
    feature of eligible leader replicas, the min.insync.replicas of this controller is behind them. If a transaction is
    open it is aborted before; without transactions that is a fatal fault. [{BECOMING};
    ActivationRecordsGenerator.recordsForEmptyLog, Kafka 4.3.0]"""
    begin, end = ([Record(Kind.BEGIN)], [Record(Kind.END)]) if has_transactions else ([], [])
    elr = [Record(Kind.FEATURE, "", 1), Record(Kind.SET, MIN_ISR, 1)] if state.elr else []
    return [*begin, Record(Kind.VERSION, "", state.level), *elr, *end]


@states()
def activated(state: Controller, refused: bool) -> tuple[Controller, Answers]:
    """After its activation.

    QRM-19: If there is a metadata version in memory, the activation aborts a transaction that is open, never ends it,
    and writes nothing if none is open; if the version has no transactions, an open one is a fatal fault. So a bootstrap
    whose version is committed and whose end is not is aborted, and not written again until the next activation.
    [{BECOMING}; ActivationRecordsGenerator.recordsForNonEmptyLog, Kafka 4.3.0]
    """
    level = dict(state.memory).get(VERSION)
    open_, has_transactions = state.begun != NO_LOG_OFFSET, (level or state.level) >= FIRST_TRANSACTIONS
    if open_ and not has_transactions:
        return halted(state), []
    records = [Record(Kind.ABORT)] if open_ else []
    if level is None:
        records += bootstrap_records(state, has_transactions)
    if records:
        atomic = level is not None or not has_transactions
        state, answers = appended(state, ACTIVATION, NO_LOG_OFFSET, records, atomic, 0 if refused else NONE_REFUSED)
        return (all_scheduled(state) if state.active else state), answers
    return all_scheduled(state), []


# ---- time ------------------------------------------------------------------------------------------------------------
@states()
def one_task(state: Controller, task: ScheduledTask, refused: bool) -> tuple[Controller, Answers]:
    """After a run of a periodic task.

    QRM-41: A periodic task whose time has come is run before all that waits in the queue, the earliest first, as a
    write of the controller's own. It is scheduled again from that time on, before its records go to Raft; they are
    written like those of a call, need not be one batch, and fail over where those of a call would. A run without
    records waits like a call without records (QRM-12). Nobody is told. [Kafka Internals, ch. 11, Periodic background
    tasks; QuorumController.PeriodicTaskControlManagerQueueAccessor, Kafka 4.3.0; EVQ-4]
    """
    state = scheduled(replace(state, scheduled=tuple(t for t in state.scheduled if t != task)), task.name)
    if task.name == WRITE_NO_OP:
        at = 0 if refused else NONE_REFUSED
        return appended(state, ACTIVATION, NO_LOG_OFFSET, [Record(Kind.NO_OP)], atomic=False, refused_at=at)
    return (behind_the_last(state, ACTIVATION, NO_LOG_OFFSET) if has_to_wait(state) else state), []


@machine.operation("advance", "QRM-41", "QRM-40", "QRM-42", kind="time")
@runs
@goes_back
@in_order
@nothing_early
@ensure(
    lambda result: all(t.deadline_ns > result.state.now for t in result.state.scheduled),
    "QRM-41 whatever is due is run",
)
@ensure(
    lambda result: result.state.active or not result.state.scheduled, "QRM-40 a standby has no periodic task to run"
)
def advance(state: Controller, ms: Ms, refused: bool = False) -> Step[Controller, Answers]:
    """Time passes, and the queue is woken. Raft may refuse what tasks write. Who is answered by that, in order."""
    state, answers = replace(state, now=state.now + ms * NS_IN_MS), Answers()
    while state.scheduled and state.scheduled[0].deadline_ns <= state.now:
        state, more = one_task(state, state.scheduled[0], refused)
        answers = [*answers, *more]
    return Step(state, answers)


@machine.operation("lose", "QRM-21", "QRM-22", "QRM-38", "QRM-40")
@states(without={"QRM-37": ONE_CALL})
@runs
@require(lambda state, epoch: epoch > state.claim and epoch >= state.epoch, "QRM-3 epochs rise")
@ensure(lambda result: not result.state.active and not result.state.purgatory, "QRM-21 nobody waits at a standby")
@ensure(
    lambda state, result: (
        not state.active
        or result.state.halted
        or [a.outcome for a in result.result]
        == [Outcome.NOT_CONTROLLER] * len([w for w in state.purgatory if w.call != ACTIVATION])
    ),
    "QRM-21 all who wait are failed",
)
@ensure(
    lambda state, result: state.active or result.state == replace(state, epoch=result.state.epoch),
    "QRM-37 it changes nothing at a standby",
)
def lose(state: Controller, epoch: Epoch, known: bool = True) -> Step[Controller, Answers]:
    """It is told that another leads in an epoch, or, if that is not known, that nobody does.

    QRM-37: A standby that is told that another leads changes nothing. [QuorumController.handleLeaderChange, Kafka
    4.3.0]
    """
    state = replace(state, epoch=epoch)
    return Step(*renounced(state)) if state.active else Step(state, [])


@machine.operation("leadAgain")
@states(without={"QRM-24": ONE_CALL})
@runs
@require(lambda state, epoch: state.active and epoch > state.epoch, "QRM-3 epochs rise")
@ensure(lambda state, result, epoch: result == replace(state, claim=epoch, epoch=epoch), "QRM-24 nothing else changes")
def lead_again(state: Controller, epoch: Epoch) -> Controller:
    """The active controller is told that it leads in a later epoch.

    QRM-24: A controller that is active and is told that it leads in a later epoch claims that one. Whoever waits goes
    on waiting, and it is not activated again. [QuorumController.handleLeaderChange, Kafka 4.3.0]
    """
    return replace(state, claim=epoch, epoch=epoch)


@states(without={"QRM-33": ONE_CALL})
def loads_nothing(state: Controller) -> bool:
    """QRM-33: An active controller that is to load a snapshot meets a fatal fault. [Kafka Internals, ch. 11, Failure
    handling; QuorumController.handleLoadSnapshot, Kafka 4.3.0]"""
    return state.claim != NO_EPOCH


@machine.operation("loadSnapshot", "QRM-33")
@runs
@require(lambda state, offset: offset >= state.end and not state.sent, "QRM-3 it is behind the snapshot")
@require(lambda state, epoch: state.committed_epoch <= epoch <= state.epoch, "QRM-3 in an epoch that was")
@require(lambda records: are_known(records), KNOWN)
@ensure(lambda state, result: result.halted or not state.active, "QRM-33 not while active")
def load_snapshot(state: Controller, offset: Offset, epoch: Epoch, records: Sequence[Record]) -> Controller:
    """Raft has a snapshot of the log up to `offset`, not included.

    QRM-31: A standby that loads a snapshot first forgets everything, then applies all of its records at its last
    offset, which is then the committed and the stable one; no transaction is open. [Kafka Internals, ch. 11, Failure
    handling; OffsetControlManager.endLoadSnapshot, RecordsSnapshotReader.lastContainedLogOffset, Kafka 4.3.0]
    """
    if loads_nothing(state):
        return halted(state)
    after: Controller | None = replace(
        new(state),
        past=(),
        calls=state.calls,
        faults=state.faults,
        epoch=state.epoch,
        now=state.now,
    )
    for record in records:
        if after is not None:
            after = applied(after, record, offset - 1, in_snapshot=True)
    if after is None:
        return halted(state)
    last = offset - 1
    after = replace(after, committed=last, committed_epoch=epoch, stable=last, end=offset)
    return replace(after, past=((last, after.memory),))
