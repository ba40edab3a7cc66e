"""How far the controller's memory is written, committed and stable, and its snapshots of it at offsets of the log.

The active controller applies its records to its memory when it hands them to raft, before they are committed; a
standby applies what is committed. The next write offset, the committed and the stable offset say how far each is; a
snapshot of the memory at an offset is what a reader of the stable state sees, and what is gone back to. A metadata
transaction holds the stable offset back. The memory is timeline collections (TML); here it is one map, from a key to
the offset of the record that set it last. Source: Kafka Internals, ch. 11, "The three offsets and metadata
transactions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from icontract import ensure, require

from kafkaspec.contract.clauses import states
from kafkaspec.contract.codec import partial, replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import Duration, Int64, LeaderEpoch, Offset, Timestamp, Within
from kafkaspec.spec.common.timeline_state import Timeline, View
from kafkaspec.spec.controller import timeline

PREFIX = "OFC"
TITLE = "Offsets of the controller"

OFFSETS = "Kafka Internals, ch. 11, The three offsets and metadata transactions"
CLASS = "OffsetControlManager"
CONTROLLER = "QuorumController"

RUNTIME_EXCEPTION = timeline.RUNTIME_EXCEPTION
NONE: Final = -1
"""No offset, no epoch, no transaction; and the epoch of the first snapshot, below every offset."""
BEGIN_MS: Final = 1_000_000
"""What the clock shows at first."""

Key = Literal["k0", "k1", "k2", "k3", "s"]
KEYS: Final = ("k0", "k1", "k2", "k3", "s")
Marker = Literal["begin", "end", "abort"]
Entry = Literal["begin", "end", "abort", "k0", "k1", "k2", "k3", "s"]
"""A record: a marker of a transaction, or the key that a data record sets."""
Records = Annotated[int, Within(1, 100)]
"""How many records a batch has."""


@dataclass(frozen=True)
class Metrics:
    """What the controller's metrics show."""

    active: bool = False
    last_applied: int = NONE
    last_committed: int = NONE
    last_applied_timestamp: int = NONE


@dataclass(frozen=True)
class SnapshotId:
    """A raft snapshot, by its id. The class takes the offset for that of the last record in it; raft means the one
    behind (QRM-D1)."""

    offset: int
    epoch: int

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.offset:020d}-{self.epoch:010d}"

    def __str__(self) -> str:
        return f"OffsetAndEpoch[offset={self.offset}, epoch={self.epoch}]"


@dataclass(frozen=True)
class Offsets:
    """The state."""

    registry: Timeline
    """the memory and its snapshots; the map's keys are places in KEYS"""
    next_write: int = NONE
    """the offset after the last that was handed to raft; NONE on a standby"""
    last_committed: int = NONE
    committed_epoch: int = NONE
    last_stable: int = NONE
    transaction_start: int = NONE
    loading: SnapshotId | None = None
    metrics: Metrics = field(default_factory=Metrics)
    now: int = BEGIN_MS
    """ms"""

    @property
    def active(self) -> bool:
        """Whether this controller writes the log."""
        return self.next_write != NONE

    @property
    def memory(self) -> View:
        """What the records that were replayed made."""
        return self.registry.present


@partial
@dataclass(frozen=True)
class Observation:
    """All that the manager shows, and the memory now and at every snapshot."""

    active: Annotated[bool, governs("OFC-3", "OFC-5", "OFC-16")]
    next_write_offset: Annotated[int, governs("OFC-3", "OFC-5", "OFC-7", "OFC-16", "OFC-17")]
    last_committed_offset: Annotated[int, governs("OFC-8", "OFC-11", "OFC-16", "OFC-17")]
    last_committed_epoch: Annotated[int, governs("OFC-8", "OFC-11", "OFC-16", "OFC-17")]
    last_stable_offset: Annotated[int, governs("OFC-9", "OFC-11", "OFC-16", "OFC-17", "OFC-21")]
    transaction_start_offset: Annotated[int, governs("OFC-12", "OFC-13", "OFC-14", "OFC-16", "OFC-22")]
    current_snapshot_name: Annotated[str | None, governs("OFC-16", "OFC-17")]
    snapshot_epochs: Annotated[
        list[int], governs("OFC-1", "OFC-4", "OFC-5", "OFC-7", "OFC-10", "OFC-12", "OFC-14", "OFC-16", "OFC-17")
    ]
    data: Annotated[dict[str, int], governs("OFC-5", "OFC-14", "OFC-16", "OFC-18", "OFC-19")]
    metric_active: Annotated[bool, governs("OFC-20")]
    metric_last_applied: Annotated[int, governs("OFC-20")]
    metric_last_committed: Annotated[int, governs("OFC-20")]
    metric_last_applied_timestamp: Annotated[int, governs("OFC-20")]
    at: Annotated[dict[str, dict[str, int]], governs("OFC-7", "OFC-10", "OFC-12", "OFC-23")]
    """the memory at each snapshot"""


@states()
def initial() -> Offsets:
    """OFC-1: At first there is no offset, no transaction, and the controller is not active; there is one snapshot, of
    the empty memory, at -1. [{CLASS}, Kafka 4.3.0]"""
    registry = timeline.with_snapshot(timeline.initial(), NONE)
    assert not isinstance(registry, Refused)
    return Offsets(registry)


def data_of(view: View) -> dict[str, int]:
    """A view of the memory as recordings show it."""
    return {KEYS[n]: offset for n, offset in sorted(view.entries.items())}


def observe(state: Offsets) -> Observation:
    """What is compared after every call."""
    return Observation(
        active=state.active,
        next_write_offset=state.next_write,
        last_committed_offset=state.last_committed,
        last_committed_epoch=state.committed_epoch,
        last_stable_offset=state.last_stable,
        transaction_start_offset=state.transaction_start,
        current_snapshot_name=None if state.loading is None else state.loading.name,
        snapshot_epochs=list(state.registry.past),
        data=data_of(state.memory),
        metric_active=state.metrics.active,
        metric_last_applied=state.metrics.last_applied,
        metric_last_committed=state.metrics.last_committed,
        metric_last_applied_timestamp=state.metrics.last_applied_timestamp,
        at={str(offset): data_of(view) for offset, view in state.registry.past.items()},
    )


machine = Machine("offset_control", initial, observe)


# ---- snapshots of the memory -----------------------------------------------------------------------------------------
def _with_snapshot(state: Offsets, offset: int) -> Offsets | Refused:
    made = timeline.with_snapshot(state.registry, offset)
    return made if isinstance(made, Refused) else replace(state, registry=made)


def _snapshot_above(state: Offsets, offset: int) -> Offsets:
    """Where no snapshot is later: the caller's duty."""
    made = _with_snapshot(state, offset)
    assert not isinstance(made, Refused)
    return made


def _reverted(state: Offsets, offset: int) -> Offsets:
    registry = timeline.revert_to_snapshot(state.registry, offset)
    assert not isinstance(registry, Refused)
    return replace(state, registry=registry)


def _set(state: Offsets, key: str, offset: int) -> Offsets:
    return replace(state, registry=timeline.map_put(state.registry, KEYS.index(key), offset).state)


# ---- transactions ----------------------------------------------------------------------------------------------------
@states()
def within_a_snapshot(entry: str) -> Refused:
    """OFC-15: A raft snapshot holds no marker of a transaction: one that is replayed while a snapshot is loaded is
    refused. [{CLASS}.replay, Kafka 4.3.0]"""
    name = f"{entry.capitalize()}TransactionRecord"
    return Refused("OFC-15", RUNTIME_EXCEPTION, f"{name} cannot appear within a snapshot.")


@states()
def begun(state: Offsets, offset: int) -> Offsets | Refused:
    """OFC-12: A transaction begins at the offset of its begin record: the memory before it has a snapshot at the offset
    below, from then on. While a transaction is open another begin is refused. [{OFFSETS}; KIP-868; {CLASS}.replay,
    Kafka 4.3.0]"""
    if state.transaction_start != NONE:
        message = (
            f"Can't replay a BeginTransactionRecord at {offset} because the transaction at "
            f"{state.transaction_start} was never closed."
        )
        return Refused("OFC-12", RUNTIME_EXCEPTION, message)
    return replace(_snapshot_above(state, offset - 1), transaction_start=offset)


def _none_open(clause: str, entry: str, offset: int) -> Refused:
    message = f"Can't replay an {entry}TransactionRecord at {offset} because there is no open transaction."
    return Refused(clause, RUNTIME_EXCEPTION, message)


@states()
def ended(state: Offsets, offset: int) -> Offsets | Refused:
    """OFC-13: An end record closes the open transaction, and what it wrote stays. Without one it is refused.
    [{OFFSETS}; KIP-868; {CLASS}.replay, Kafka 4.3.0]"""
    if state.transaction_start == NONE:
        return _none_open("OFC-13", "End", offset)
    return replace(state, transaction_start=NONE)


@states()
def aborted(state: Offsets, offset: int) -> Offsets | Refused:
    """OFC-14: An abort record closes the open transaction and makes the memory what it was before it; snapshots that
    were taken since are gone. Without one it is refused, and without a snapshot at the offset below its begin record,
    and the transaction stays open then. [{OFFSETS}; KIP-868; {CLASS}.replay, Kafka 4.3.0]"""
    if state.transaction_start == NONE:
        return _none_open("OFC-14", "Abort", offset)
    before = state.transaction_start - 1
    if before not in state.registry.past:
        return Refused("OFC-14", *timeline.missing(state.registry, before)[1:])
    return replace(_reverted(state, before), transaction_start=NONE)


def _replayed(state: Offsets, entry: str, offset: int) -> Offsets | Refused:
    match entry:
        case "begin":
            return begun(state, offset)
        case "end":
            return ended(state, offset)
        case "abort":
            return aborted(state, offset)
    return _set(state, entry, offset)


def _all_replayed(state: Offsets, first: int, entries: Sequence[str]) -> Step[Offsets, None]:
    """The records one after the other, up to the first that is refused."""
    for offset, entry in enumerate(entries, first):
        after = _replayed(state, entry, offset)
        if isinstance(after, Refused):
            return Step(state, after)
        state = after
    return Step(state)


# ---- the active controller -------------------------------------------------------------------------------------------
@states(
    without={
        "impl": "the caller's duty: an implementation relies on it",
        "model": "the caller's duty: the model's calls are those of one who keeps it",
        "proof": "the caller's duty: the model's calls are those of one who keeps it",
        "mutant": "the caller's duty: no implementation can neglect it",
    }
)
def not_loading(state: Offsets) -> bool:
    """OFC-2: The caller's duty: offsets rise. What is appended or committed lies above all that was committed and above
    every snapshot, also above what the active controller handed to raft, and a commit of the active controller within
    that; it becomes active above what is committed. An active controller appends, a standby replays what is committed,
    and neither does while a raft snapshot is loaded. [{CONTROLLER}.handleCommit, handleLoadSnapshot and claim, Kafka
    4.3.0; KAFKA-15213, KAFKA-17304]"""
    return state.loading is None


def above(state: Offsets, offset: int) -> bool:
    """Whether records may stand at that offset and those after it."""
    return offset > max(state.last_committed, state.registry.highest) and offset >= state.next_write


idle = require(not_loading, "OFC-2 no raft snapshot is being loaded")
of_the_active = require(lambda state: state.active, "OFC-2 the controller is active")
of_a_standby = require(lambda state: not state.active, "OFC-2 the controller is a standby")
rising = require(lambda state, first_offset: above(state, first_offset), "OFC-2 offsets rise")
one_marker = require(
    lambda kind, count: 1 <= count <= (100 if kind == "data" else 1), "OFC-2 a marker of a transaction is one record"
)
some_records = require(lambda records: 1 <= len(records) <= 100, "OFC-2 a batch has records")


def outcome_of(result: Step[Offsets, None]) -> Refused | None:
    """The refusal, if it is one."""
    return result.result if isinstance(result.result, Refused) else None


def clause_of(result: Step[Offsets, None]) -> str:
    """That of the refusal; empty if there is none."""
    refusal = outcome_of(result)
    return "" if refusal is None else refusal.clause


stable_never_falls = ensure(
    lambda state, result: result.state.last_stable >= state.last_stable, "OFC-9 the stable offset never falls"
)
stable_is_committed = ensure(
    lambda result: result.state.last_stable <= result.state.last_committed, "OFC-9 what is stable is committed"
)
stable_is_not_in_the_transaction = ensure(
    lambda result: result.state.transaction_start == NONE or result.state.last_stable < result.state.transaction_start,
    "OFC-9 the open transaction is not stable",
)


def commits(function: Any) -> Any:
    """What every operation ensures that commits."""
    return stable_never_falls(stable_is_committed(stable_is_not_in_the_transaction(function)))


@machine.operation("activate")
@idle
@require(
    lambda state, new_next_write_offset: (
        state.active or new_next_write_offset < 0 or new_next_write_offset > state.last_committed
    ),
    "OFC-2 the controller becomes active above what is committed",
)
@ensure(
    lambda state, new_next_write_offset, result: (
        isinstance(result, Refused) or (not state.active and result.next_write == new_next_write_offset >= 0)
    ),
    "OFC-3 a standby becomes active",
)
@ensure(
    lambda result: isinstance(result, Refused) or result.last_stable in result.registry.past,
    "OFC-4 there is a snapshot at the stable offset",
)
def activate(state: Offsets, new_next_write_offset: Int64) -> Offsets | Refused:
    """The controller claims the log, from that offset on.

    OFC-3: A controller is active if and only if it has a next write offset. To become active is refused if it is active
    already, and with a negative offset. [{OFFSETS}; {CLASS}.activate, Kafka 4.3.0]

    OFC-4: Before a controller becomes active it takes a snapshot at the last stable offset, unless there is one; if one
    cannot be taken, as there is a later one, it does not become active. [Kafka Internals, ch. 11, "Timeline data
    structures"; {CLASS}.activate, Kafka 4.3.0; KAFKA-13114]
    """
    if state.active:
        return Refused("OFC-3", RUNTIME_EXCEPTION, "Can't activate already active OffsetControlManager.")
    if new_next_write_offset < 0:
        message = f"Invalid negative newNextWriteOffset {new_next_write_offset}."
        return Refused("OFC-3", RUNTIME_EXCEPTION, message)
    made = _with_snapshot(state, state.last_stable)
    if isinstance(made, Refused):
        return made._replace(clause="OFC-4")
    return replace(made, next_write=new_next_write_offset, metrics=replace(state.metrics, active=True))


@machine.operation("deactivate", "OFC-22")
@idle
@ensure(
    lambda state, result: (
        outcome_of(result) is not None or result.state.memory == state.registry.past[state.last_stable]
    ),
    "OFC-5 the memory is what it was at the stable offset",
)
@ensure(
    lambda state, result: state.active == (result.state != state) and not result.state.active,
    "OFC-5 an active controller becomes a standby",
)
@ensure(
    lambda state, result: result.state.transaction_start == state.transaction_start,
    "OFC-22 the transaction stays open",
)
def deactivate(state: Offsets) -> Step[Offsets, None]:
    """The controller gives the log up.

    OFC-5: A controller that gives up makes its memory what it was at the last stable offset, and later snapshots are
    gone. One that is not active is refused. [{OFFSETS}; Kafka Internals, ch. 11, "Timeline data structures";
    {CLASS}.deactivate, Kafka 4.3.0]

    OFC-6: Without a snapshot at the last stable offset it is refused: the controller is a standby then, and the memory
    and its snapshots stay as they are. [{CLASS}.deactivate, Kafka 4.3.0; KAFKA-13114, KAFKA-17608]

    OFC-22: The chapter says that exactly the records are thrown away that were not committed. Kafka gives up more, and
    less: of an open transaction the committed records go too, as they are not stable; and the transaction stays open,
    although its begin record may be one of those that went. [{CLASS}.deactivate, Kafka 4.3.0]
    """
    if not state.active:
        return Step(state, Refused("OFC-5", RUNTIME_EXCEPTION, "Can't deactivate inactive OffsetControlManager."))
    metrics = replace(state.metrics, active=False, last_applied=state.last_stable)
    standby = replace(state, next_write=NONE, metrics=metrics)
    if state.last_stable not in state.registry.past:
        message = (
            f"Unable to reset to last stable offset {state.last_stable}. No in-memory snapshot found for this offset."
        )
        return Step(standby, Refused("OFC-6", RUNTIME_EXCEPTION, message))
    return Step(_reverted(standby, state.last_stable))


@states()
def scheduled(state: Offsets, last_offset: int) -> Offsets:
    """OFC-7: When records were handed to raft the next write offset is the one after their last, and the memory has a
    snapshot at their last. [{OFFSETS}; {CLASS}.handleScheduleAppend, Kafka 4.3.0]"""
    metrics = replace(state.metrics, last_applied=last_offset, last_applied_timestamp=state.now)
    return replace(_snapshot_above(state, last_offset), next_write=last_offset + 1, metrics=metrics)


def _append(state: Offsets, first: int, entries: Sequence[str]) -> Step[Offsets, None]:
    replayed = _all_replayed(state, first, entries)
    if outcome_of(replayed) is not None:
        return replayed
    return Step(scheduled(replayed.state, first + len(entries) - 1))


def appends(function: Any) -> Any:
    """What both operations require and ensure that append."""
    conditions: dict[str, Callable[..., bool]] = {
        "OFC-7 a snapshot at the last offset": lambda result: (
            outcome_of(result) is not None or result.state.registry.past[result.state.next_write - 1]
            == result.state.memory
        ),
        "OFC-18 what is refused is not handed to raft": lambda state, result: (
            outcome_of(result) is None or result.state.next_write == state.next_write
        ),
        "OFC-8 an append commits nothing": lambda state, result: (
            (state.last_committed, state.last_stable) == (result.state.last_committed, result.state.last_stable)
        ),
    }  # fmt: skip
    for text, condition in conditions.items():
        function = ensure(condition, text)(function)
    return idle(of_the_active(rising(function)))


@machine.operation("appendBatch", "OFC-7", "OFC-12", "OFC-13", "OFC-14", "OFC-18", "OFC-20")
@some_records
@appends
def append_batch(state: Offsets, first_offset: Offset, records: Sequence[Entry]) -> Step[Offsets, None]:
    """The active controller replays records, and has them handed to raft as one batch.

    OFC-18: The records of an append are replayed in order before they are handed to raft; so are those of a committed
    batch on a standby, before it counts as committed. One that is refused ends the call: what was replayed before it
    stays. [{CONTROLLER}.handleCommit and the appender of a write event, Kafka 4.3.0]
    """
    return _append(state, first_offset, records)


@machine.operation("appendActive", "OFC-7", "OFC-12", "OFC-13", "OFC-14", "OFC-18", "OFC-20")
@one_marker
@appends
def append_active(
    state: Offsets,
    kind: Literal["data", "begin", "end", "abort"],
    first_offset: Offset,
    count: Records,
    key: Key,
    epoch: LeaderEpoch = 0,
    append_timestamp: Timestamp = NONE,
) -> Step[Offsets, None]:
    """`count` data records of one key, or one marker."""
    return _append(state, first_offset, [key] * count if kind == "data" else [kind])


# ---- commits ---------------------------------------------------------------------------------------------------------
@states()
def stable_offset(state: Offsets) -> int:
    """OFC-9: With no transaction open all that is committed is stable. With one open the stable offset is at most the
    one below its begin record. It never falls, until a raft snapshot is loaded. [{OFFSETS};
    {CLASS}.maybeAdvanceLastStableOffset, Kafka 4.3.0]

    OFC-21: The chapter says that no reader sees a transaction in part. Which one is open is told by the records that
    were replayed: on the active controller a transaction is closed when its end is handed to raft, and what is
    committed of it meanwhile is stable. [{CLASS}.maybeAdvanceLastStableOffset, Kafka 4.3.0]
    """
    start, committed = state.transaction_start, state.last_committed
    return max(state.last_stable, committed if start == NONE else min(start - 1, committed))


@states()
def committed(state: Offsets, last_offset: int, epoch: int, append_timestamp: int) -> Step[Offsets, None]:
    """OFC-8: A batch that was committed makes its last offset the last committed one, and its epoch the last committed
    epoch. [{OFFSETS}; {CLASS}.handleCommitBatch, Kafka 4.3.0]

    OFC-10: When the stable offset rises, the snapshots below it are gone; a standby takes one at it, the active
    controller takes none. Where it cannot be taken, as there is a later one, the call ends there.
    [{CLASS}.maybeAdvanceLastStableOffset, Kafka 4.3.0; KAFKA-15048]

    OFC-23: The snapshot that a standby takes at the stable offset shows the memory as it is: if a transaction of which
    no record is left holds the stable offset back, it shows what was committed above it.
    [{CLASS}.maybeAdvanceLastStableOffset, Kafka 4.3.0]
    """
    state = replace(state, last_committed=last_offset, committed_epoch=epoch)
    stable = stable_offset(state)
    if stable != state.last_stable:
        kept = timeline.delete_snapshots_up_to(state.registry, stable)
        state = replace(state, last_stable=stable, registry=kept)
        made = state if state.active else _with_snapshot(state, stable)
        if isinstance(made, Refused):
            return Step(state, made._replace(clause="OFC-10"))
        state = made
    return Step(_measured(state, last_offset, append_timestamp))


@states(without=dict.fromkeys(("model", "proof"), "metrics are shown, and nothing depends on them"))
def _measured(state: Offsets, last_offset: int, append_timestamp: int) -> Offsets:
    """OFC-20: The metrics: a controller is active from when it becomes active until it gives up, whatever it loads;
    the last committed record is that of the last batch committed, with control batches, or of the raft snapshot
    loaded; the last applied record is, on the active controller, the last handed to raft, with the time at which it
    was, on a standby the last committed, with the time of its batch, and the snapshot's last after it was loaded;
    after giving up it is at the stable offset. [{CLASS}, Kafka 4.3.0]"""
    metrics = replace(state.metrics, last_committed=last_offset)
    if not state.active:
        metrics = replace(metrics, last_applied=last_offset, last_applied_timestamp=append_timestamp)
    return replace(state, metrics=metrics)


@machine.operation("handleCommitBatch", "OFC-8", "OFC-9", "OFC-10", "OFC-20", "OFC-21")
@idle
@of_the_active
@require(lambda first_offset, last_offset: first_offset <= last_offset, "OFC-2 a batch has records")
@require(
    lambda state, last_offset: state.last_committed < last_offset < state.next_write,
    "OFC-2 what is committed rises, and was appended",
)
@commits
@ensure(lambda state, result: result.state.memory == state.memory, "OFC-8 nothing is replayed again")
@ensure(
    lambda state, last_offset, epoch, result: (
        (result.state.last_committed, result.state.committed_epoch) == (last_offset, epoch)
    ),
    "OFC-8 the last committed offset and epoch are the batch's",
)
@ensure(
    lambda state, result: (
        result.state.last_stable == state.last_stable
        or all(at >= result.state.last_stable for at in result.state.registry.past)
    ),
    "OFC-10 no snapshot is below a stable offset that rose",
)
def handle_commit_batch(
    state: Offsets, first_offset: Offset, last_offset: Offset, epoch: LeaderEpoch, append_timestamp: Timestamp = NONE
) -> Step[Offsets, None]:
    """A batch of the active controller was committed. It was replayed when it was appended."""
    return committed(state, last_offset, epoch, append_timestamp)


@machine.operation("commitControlBatch", "OFC-20")
@idle
@ensure(lambda state, result: replace(result, metrics=state.metrics) == state, "OFC-11 nothing but the metrics changes")
def commit_control_batch(
    state: Offsets, offset: Offset, epoch: LeaderEpoch, append_timestamp: Timestamp = NONE
) -> Offsets:
    """A batch of raft's own was committed: the change of a leader, or of the voters.

    OFC-11: A batch without records changes neither the committed nor the stable offset, nor any snapshot, be the
    controller active or not. [{CONTROLLER}.handleCommit, Kafka 4.3.0; KAFKA-17608]
    """
    return _measured(state, offset, append_timestamp)


def _commit(state: Offsets, first: int, entries: Sequence[str], epoch: int, timestamp: int) -> Step[Offsets, None]:
    replayed = _all_replayed(state, first, entries)
    if outcome_of(replayed) is not None:
        return replayed
    return committed(replayed.state, first + len(entries) - 1, epoch, timestamp)


def replays(function: Any) -> Any:
    """What both operations require and ensure that replay what was committed."""
    conditions: dict[str, Callable[..., bool]] = {
        "OFC-10 a snapshot at the stable offset": lambda state, result: (
            outcome_of(result) is not None
            or result.state.last_stable == state.last_stable
            or result.state.registry.past[result.state.last_stable] is not None
        ),
        "OFC-19 committed, or not at all": lambda state, result: (
            clause_of(result) in ("", "OFC-10") or result.state.last_committed == state.last_committed
        ),
    }
    for text, condition in conditions.items():
        function = ensure(condition, text)(function)
    return idle(of_a_standby(rising(commits(function))))


REPLAYED = ("OFC-8", "OFC-9", "OFC-10", "OFC-12", "OFC-13", "OFC-14", "OFC-18", "OFC-20", "OFC-23")


@machine.operation("commitBatch", *REPLAYED)
@some_records
@replays
def commit_batch(
    state: Offsets,
    first_offset: Offset,
    records: Sequence[Entry],
    epoch: LeaderEpoch,
    append_timestamp: Timestamp = NONE,
) -> Step[Offsets, None]:
    """A batch was committed: a standby replays its records.

    OFC-19: A standby replays a batch when it is committed, and then has it as the active controller has: what a record
    does is the same on both, and both end with the same offsets and the same memory. [Kafka Internals, ch. 11,
    Determinism; {CONTROLLER}.handleCommit, Kafka 4.3.0; KAFKA-15213]
    """
    return _commit(state, first_offset, records, epoch, append_timestamp)


@machine.operation("commitStandby", *REPLAYED, "OFC-19")
@one_marker
@replays
def commit_standby(
    state: Offsets,
    kind: Literal["data", "begin", "end", "abort"],
    first_offset: Offset,
    count: Records,
    key: Key,
    epoch: LeaderEpoch,
    append_timestamp: Timestamp = NONE,
) -> Step[Offsets, None]:
    """`count` data records of one key, or one marker."""
    return _commit(state, first_offset, [key] * count if kind == "data" else [kind], epoch, append_timestamp)


# ---- raft snapshots --------------------------------------------------------------------------------------------------
@machine.operation("beginLoadSnapshot", "OFC-20")
@ensure(lambda state, result: isinstance(result, Refused) == (state.loading is not None), "OFC-16 one at a time")
@ensure(
    lambda result: (
        isinstance(result, Refused)
        or (
            not (result.registry.past or result.memory.entries or result.active)
            and result.last_committed == result.last_stable == result.transaction_start == NONE
        )
    ),
    "OFC-16 nothing is left",
)
def begin_load_snapshot(state: Offsets, offset: Offset, epoch: LeaderEpoch) -> Offsets | Refused:
    """A raft snapshot is about to be loaded.

    OFC-16: Before a raft snapshot is loaded the memory is emptied, all its snapshots go, no offset and no transaction
    is left, and the controller is not active. The raft snapshot's name is that of its file: twenty digits of the
    offset and ten of the epoch. While one is loaded another is refused. [Kafka Internals, ch. 11, Failure modes;
    {CLASS}.beginLoadSnapshot, Kafka 4.3.0]
    """
    wanted = SnapshotId(offset, epoch)
    if state.loading is not None:
        message = f"Can't begin reading snapshot for {wanted}, because we are already reading {state.loading}"
        return Refused("OFC-16", RUNTIME_EXCEPTION, message)
    registry = timeline.reset_registry(state.registry)
    return Offsets(registry, loading=wanted, metrics=state.metrics, now=state.now)


of_a_snapshot = require(lambda state: state.loading is not None, "OFC-2 a raft snapshot is being loaded")


@machine.operation("loadSnapshotData", "OFC-18")
@of_a_snapshot
@ensure(lambda result: not result.registry.past, "OFC-17 no snapshot before the end")
def load_snapshot_data(state: Offsets, key: Key, value: Offset) -> Offsets:
    """A data record of the raft snapshot is replayed."""
    return _set(state, key, value)


@machine.operation("replayInSnapshot", "OFC-15")
@of_a_snapshot
@ensure(lambda result: isinstance(result, Refused), "OFC-15 refused")
def replay_in_snapshot(state: Offsets, kind: Marker) -> Offsets | Refused:
    """A marker of a transaction stands in the raft snapshot."""
    return within_a_snapshot(kind)


@machine.operation("endLoadSnapshot", "OFC-20")
@ensure(lambda state, result: isinstance(result, Refused) == (state.loading is None), "OFC-17 refused without one")
@ensure(
    lambda state, result: isinstance(result, Refused) or result.registry.past == {result.last_stable: state.memory},
    "OFC-17 one snapshot, of what was loaded",
)
def end_load_snapshot(state: Offsets, timestamp: Timestamp) -> Offsets | Refused:
    """All of the raft snapshot was replayed.

    OFC-17: After a raft snapshot was loaded its offset is the last committed and the last stable one, its epoch the
    last committed epoch, no transaction is open, and the memory has one snapshot, at that offset. Without one being
    loaded it is refused. [Kafka Internals, ch. 11, Failure modes; {CLASS}.endLoadSnapshot, Kafka 4.3.0]
    """
    of = state.loading
    if of is None:
        message = "Can't end loading snapshot, because there is no current snapshot."
        return Refused("OFC-17", RUNTIME_EXCEPTION, message)
    registry = _snapshot_above(state, of.offset).registry
    metrics = Metrics(state.metrics.active, of.offset, of.offset, timestamp)
    return Offsets(registry, NONE, of.offset, of.epoch, of.offset, metrics=metrics, now=state.now)


@machine.operation("advance", "OFC-20", kind="time")
@require(lambda state, ms: state.now + ms < 2**62, "OFC-20 the clock is a long")
def advance(state: Offsets, ms: Duration) -> Offsets:
    """Time passes."""
    return replace(state, now=state.now + ms)
