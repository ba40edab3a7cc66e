"""The log cleaner's state machine and its manager: which log is cleaned next, who may stop it, what is remembered.

One lock guards everything here, so each operation is one step. A caller that must wait is a visible state (`blocked`);
its return is part of the step that lets it go. Of logs the manager reads offsets, segments and configuration; it never
writes a record.

In `spec/common`: a log, and what of it may be cleaned (`cleanable_log`); the state of a partition and its moves
(`cleaning_state`); the manager's state (`cleaner_state`), and what many of its steps keep (`cleaner_contracts`); what
others do to the logs, and the clock (`cleaner_world`).

Source: Kafka Internals, ch. 04, "Choosing the filthiest log", "Cleaning state in LogCleanerManager" and "The cleaning
state machine"; LogCleanerManager, LogToClean, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from icontract import ensure, require

from kafkaspec.contract.clauses import A_QUESTION, ONE_CALL, clause, states
from kafkaspec.contract.codec import replace, view
from kafkaspec.contract.governs import governs, reveals
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import Int64, Offset, Within
from kafkaspec.spec.common import cleanable_log as logs
from kafkaspec.spec.common import cleaner_world as world
from kafkaspec.spec.common.cleaner_contracts import a_directory, a_partition, legal_moves, unchanged_if_refused, waiters
from kafkaspec.spec.common.cleaner_state import Cleaner, observe
from kafkaspec.spec.common.cleaning_state import Aborted, InProgress, NoMove, Paused, java_name, moved
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.kafka import ILLEGAL_STATE

PREFIX = "CLN"
TITLE = "Log cleaner manager"

CHAPTER = "Kafka Internals, ch. 04"
MANAGER = "LogCleanerManager, Kafka 4.3.0"
FILTHIEST = logs.FILTHIEST
STATES = f"{CHAPTER}, 'The cleaning state machine'"

OF_THE_DIRECTORY = {
    "model": "the model has one directory: nothing here depends on who acts at the same time",
    "proof": "see the model",
}

OF_THE_USERS = dict.fromkeys(("spec", "impl"), "about the users of the manager: the model has them")

clause(
    """CLN-20: Retention, truncation, deletion or a move of directory never works on a partition while a cleaner thread
    does, and no two cleaner threads work on one. [{CHAPTER}, 'Invariants & guarantees'; KAFKA-7322]

    CLN-21: While every user resumes exactly what it paused, the pause count of a partition is the number of its
    holders, no resume is refused, and no partition stays paused that nobody holds. [{STATES}; KAFKA-7441, KAFKA-3123]

    CLN-22: A blocked abort-and-pause returns, if cleaner threads go on running and a woken waiter runs sooner or
    later. [{STATES}; KAFKA-6568]

    CLN-23: A paused partition whose holders all resume becomes cleanable again. [{STATES}; KAFKA-7441, KAFKA-3123]

    CLN-33: Who works on a partition's segments aborts and pauses its cleaning, works, and resumes, on the way of
    failure too; truncation also lowers the checkpoint, deletion removes it, and giving up the compact policy aborts a
    cleaning. [{STATES}; LogManager, Kafka sources of October 2024; KAFKA-3123, KAFKA-3330, KAFKA-1819, KAFKA-12840]""",
    without={
        "CLN-20": {
            "spec": "about who works, not about the manager's state: the model has the workers",
            "impl": "about who works: the manager, which is all that there is of it, has its part by CLN-11 to CLN-19",
        },
        "CLN-21": OF_THE_USERS,
        "CLN-22": {
            "spec": "liveness",
            "impl": "liveness: of runs, which callers and their scheduler make; what the manager does for it is CLN-12",
            "proof": "liveness is explored; proved for every size is that the way out is never closed (CLN-12)",
        },
        "CLN-23": {
            "spec": "liveness",
            "impl": "liveness: of runs, which callers make; what the manager does for it is CLN-14",
        },
        "CLN-33": OF_THE_USERS,
    },
)

QUICK: dict[str, Any] = {"max.compaction.lag.ms": 5000, "segment.bytes": 200}
PARTITIONS: list[dict[str, Any]] = [
    {"partition": "c-0", "logDir": "dir0", "cleanup.policy": "compact", **QUICK},
    {"partition": "c-1", "logDir": "dir1", "cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.9, **QUICK},
    {
        "partition": "cd-0",
        "logDir": "dir0",
        "cleanup.policy": "compact,delete",
        "min.compaction.lag.ms": 2000,
        "min.cleanable.dirty.ratio": 0.2,
        **QUICK,
    },
    {"partition": "d-0", "logDir": "dir1", "cleanup.policy": "delete", **QUICK},
]
"""What histories begin with unless they say otherwise: as the recordings do, but all are overdue and full sooner."""


BatchBytes = Annotated[int, Within(72, 118)]
"""of a batch of one record whose key has 4 bytes at most, and whose length is told in one byte"""


def initial(partitions: Sequence[Mapping[str, Any]] | None = None, batch_bytes: BatchBytes = 72) -> Cleaner:
    """Empty logs, no checkpoints. `batch_bytes` is the size of the batches that the history appends."""
    settings = PARTITIONS if partitions is None else partitions
    empty = Frozen({p["partition"]: logs.empty_log(logs.config(p)) for p in settings})
    directories = sorted({log.config.log_dir for log in empty.values()})
    return Cleaner(
        now=1_000_000,
        logs=empty,
        cleaning=Frozen(),
        blocked=Frozen(),
        checkpoints=Frozen({d: Frozen() for d in directories}),
        uncleanable=Frozen({d: frozenset() for d in directories}),
        batch_bytes=batch_bytes,
    )


machine: Machine[Cleaner] = Machine("cleaner", initial, observe)


# ---- choosing the filthiest log --------------------------------------------------------------------------------------
@states(without=OF_THE_DIRECTORY)
def ambiguous(state: Cleaner) -> bool:
    """CLN-30: A partition's entry stands in the checkpoint of one live directory at most. While it stands in two, it is
    not known how far the partition is clean, and nothing is grabbed. [KAFKA-8362; {MANAGER}]"""
    entries = [p for checkpoint in state.live_checkpoints() for p in checkpoint]
    return len(entries) != len(set(entries))


@states("CLN-2", "CLN-19", "CLN-24")
def free(state: Cleaner, partition: str) -> bool:
    """Nobody holds the partition, and it is not uncleanable where its log lies."""
    return state.state(partition) is None and not state.is_uncleanable(partition)


@states()
def looked_at(state: Cleaner) -> list[logs.Candidate]:
    """The logs that a grab looks at, empty ones included.

    CLN-2: Only a log that the manager knows, whose policy has compact, whose partition has no cleaning state and is not
    uncleanable in the log's directory, and whose clean and cleanable bytes are more than 0 together, may be grabbed.
    [{FILTHIEST}]
    """
    last_clean = state.last_clean()
    return [
        logs.measure(p, log, last_clean.get(p), state.now)
        for p, log in state.logs.items()
        if state.compacts(p) and free(state, p)
    ]


@states("CLN-4", "CLN-30")
def filthiest(state: Cleaner) -> list[str | None]:
    """The partitions that a grab may take, in ascending order; [None] if it takes none."""
    if ambiguous(state):
        return [None]
    cleanable = [c for c in looked_at(state) if c.cleanable]
    highest = max((c.cleanable_ratio for c in cleanable), default=0.0)
    return [*sorted(c.partition for c in cleanable if c.cleanable_ratio == highest)] or [None]


@dataclass(frozen=True)
class Grab:
    """What a cleaner thread got, and among how many."""

    log: Annotated[logs.LogToClean | None, governs("CLN-4", "CLN-2", "CLN-3", "CLN-30")]
    cleanable_partitions: Annotated[int, governs("CLN-6", "CLN-3", "CLN-2")]
    delayed_partitions: Annotated[int, governs("CLN-6", "CLN-7")]
    max_compaction_delay_ms: Annotated[int, governs("CLN-6", "CLN-7")]


@states(without=ONE_CALL)
def grab_of(grabbed: logs.Candidate | None, looked: Sequence[logs.Candidate]) -> Grab:
    """CLN-6: A grab reports how many logs were cleanable, how many are delayed beyond max.compaction.lag.ms, and the
    longest such delay, over all logs that were looked at. [PreCleanStats, Kafka 4.3.0]"""
    return Grab(
        None if grabbed is None else view(logs.LogToClean, grabbed),
        sum(c.cleanable for c in looked),
        sum(c.need_compaction_now for c in looked),
        max((c.compaction_delay_ms for c in looked), default=0),
    )


@machine.operation(
    "grabFilthiestCompactedLog",
    "CLN-4", "CLN-2", "CLN-3", "CLN-5", "CLN-6", "CLN-7", "CLN-10", "CLN-30",
    chosen=("chosen",),
)  # fmt: skip
@require(lambda state, chosen: chosen in filthiest(state), "CLN-4 what is chosen is among the filthiest cleanable logs")
@ensure(
    lambda state, result: (
        (log := result.result.log) is None
        or (state.state(log.partition) is None and result.state.state(log.partition) == InProgress())
    ),
    "CLN-4 what is grabbed had no state and is in progress",
)
@ensure(
    lambda state, result: (
        (log := result.result.log) is None
        or (state.logs[log.partition].config.compact and not state.is_uncleanable(log.partition))
    ),
    "CLN-2 what is grabbed is compacted and not uncleanable",
)
@ensure(
    lambda state, result: (
        (log := result.result.log) is None
        or log.first_uncleanable_offset <= max(log.first_dirty_offset, state.logs[log.partition].last_stable_offset)
    ),
    "CLN-8 nothing above the last stable offset is cleaned",
)
@ensure(
    lambda state, result: (
        ambiguous(state)
        or all(
            logs.cleanable_offsets(log, entry, state.now).force_update_checkpoint is False
            for p, log in state.known()
            if log.config.compact and free(state, p) and log.config.log_dir not in state.failed
            for entry in [result.state.checkpoints[log.config.log_dir].get(p)]
        )
    ),
    "CLN-10 no log that was looked at keeps a checkpoint in its directory that needs a forced update",
)
@legal_moves
@waiters
def grab_filthiest_compacted_log(state: Cleaner, chosen: str | None) -> Step[Cleaner, Grab]:
    """A cleaner thread asks for work. `chosen` resolves which of equally filthy logs it gets (`filthiest`).

    CLN-4: Of the cleanable logs one with the highest cleanable ratio is grabbed and becomes in progress; a log that
    must be compacted now has no precedence over a filthier one. Which of equally filthy logs it is, is not promised.
    With no cleanable log nothing is grabbed. [{FILTHIEST}]

    CLN-10: A grab writes a forced update to the checkpoint of the log's directory for every log that it looks at,
    whether or not that log is then cleaned. [{MANAGER}; KAFKA-6266]
    """
    if ambiguous(state):
        return Step(state, grab_of(None, []))
    looked = looked_at(state)
    after = state
    for c in looked:
        if c.force_update_checkpoint:
            directory = state.logs[c.partition].config.log_dir
            after = checkpoint_updated(after, directory, {c.partition: c.first_dirty_offset})
    grabbed = next((c for c in looked if c.cleanable and c.partition == chosen), None)
    if grabbed is not None:
        after = after.with_state(grabbed.partition, InProgress())
    return Step(after, grab_of(grabbed, looked))


@machine.question("cleanableOffsets", "CLN-9", "CLN-8")
@a_partition("CLN-9")
@ensure(
    lambda state, partition, result: (
        result.first_uncleanable_dirty_offset
        <= max(result.first_dirty_offset, state.logs[partition].last_stable_offset)
    ),
    "CLN-8 nothing above the last stable offset may be cleaned",
)
@ensure(
    lambda state, partition, result: (
        state.logs[partition].log_start_offset <= result.first_dirty_offset <= state.logs[partition].log_end_offset
    ),
    "CLN-9 the dirty part begins within the log",
)
@ensure(
    lambda last_clean_offset, result: (
        result.force_update_checkpoint
        == (last_clean_offset is not None and last_clean_offset != result.first_dirty_offset)
    ),
    "CLN-9 a checkpoint outside the log needs a forced update",
)
def cleanable_offsets_of(state: Cleaner, partition: str, last_clean_offset: Int64 | None) -> logs.CleanableOffsets:
    """What of a log may be cleaned, if that offset is what is checkpointed."""
    return logs.cleanable_offsets(state.logs[partition], last_clean_offset, state.now)


@machine.question("logToClean", "CLN-5", "CLN-3", "CLN-7", "CLN-2")
@reveals("CLN-9", "CLN-8")
@a_partition("CLN-5")
@ensure(
    lambda result: (
        result is None
        or (0 <= result.cleanable_ratio <= 1 and result.total_bytes == result.clean_bytes + result.cleanable_bytes)
    ),
    "CLN-5 a ratio of the two kinds of bytes",
)
@ensure(
    lambda result: result is None or result.need_compaction_now or not result.cleanable or result.cleanable_ratio > 0,
    "CLN-3 what nothing forces is cleanable by its ratio alone",
)
def log_to_clean(state: Cleaner, partition: str, last_clean_offset: Int64 | None) -> logs.MeasuredLog | None:
    """What a grab would find of a log, if that offset is what is checkpointed; nothing if the log is empty."""
    c = logs.measure(partition, state.logs[partition], last_clean_offset, state.now)
    return None if c.total_bytes == 0 else view(logs.MeasuredLog, c)


# ---- who may stop a cleaning -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Wait:
    """Whether the caller waits for a cleaning to end: it returns when `doneCleaning` or `doneDeleting` releases it."""

    blocked: Annotated[bool, governs("CLN-12")]


def _pause(state: Cleaner, partition: str, caller: str) -> Step[Cleaner, Wait]:
    """One more pause; of a partition in progress, its cleaning is to stop, and `caller` is the operation that waits."""
    before = state.state(partition)
    after = moved(before, "pause")
    if isinstance(after, NoMove):
        why = f"cannot be aborted and paused since it is in {java_name(before)} state."
        return Step(state, Refused("CLN-11", ILLEGAL_STATE, f"Compaction for partition {partition} {why}"))
    paused = state.with_state(partition, after)
    if after == Aborted():
        return Step(replace(paused, blocked=state.blocked.with_(partition, caller)), Wait(True))
    return Step(paused, Wait(False))


@machine.operation("abortAndPauseCleaning", "CLN-1", "CLN-12")
@a_partition("CLN-11")
@ensure(
    lambda state, partition, result: (
        isinstance(result.result, Refused) or result.result.blocked == (state.state(partition) == InProgress())
    ),
    "CLN-11 the caller waits if and only if the partition was in progress",
)
@unchanged_if_refused("CLN-11")
@legal_moves
@waiters
def abort_and_pause_cleaning(state: Cleaner, partition: str) -> Step[Cleaner, Wait]:
    """Somebody needs the partition for itself.

    CLN-11: Abort-and-pause of a partition without a state pauses it once; of a paused one, once more; of one in
    progress, marks it aborted and its caller waits. Of an aborted one it is refused: one caller waits at most.
    [{STATES}; {MANAGER}; KAFKA-7441]
    """
    return _pause(state, partition, "abortAndPauseCleaning")


@machine.operation("abortCleaning", "CLN-11", "CLN-12")
@a_partition("CLN-13")
@ensure(
    lambda state, result: isinstance(result.result, Refused) or result.result.blocked or result.state == state,
    "CLN-13 an abort that need not wait leaves no trace",
)
@unchanged_if_refused("CLN-13")
@legal_moves
@waiters
def abort_cleaning(state: Cleaner, partition: str) -> Step[Cleaner, Wait]:
    """Somebody needs a cleaning of the partition to end, and does not mind the next one.

    CLN-13: Abort is abort-and-pause, the waiting included, and then a resume of that one pause. [{MANAGER}]
    """
    step = _pause(state, partition, "abortCleaning")
    if step.result == Wait(False):
        return Step(_resumed(step.state, partition), step.result)
    return step


def _resumed(state: Cleaner, partition: str) -> Cleaner:
    """The state after one pause of a paused partition is undone."""
    after = moved(state.state(partition), "resume")
    assert not isinstance(after, NoMove)
    return state.with_state(partition, after)


@machine.operation("resumeCleaning", "CLN-1")
@a_partition("CLN-14")
@ensure(
    lambda state, partition, result: isinstance(result, Refused) != isinstance(state.state(partition), Paused),
    "CLN-14 what is paused can be resumed, and nothing else",
)
@legal_moves
@waiters
def resume_cleaning(state: Cleaner, partition: str) -> Cleaner | Refused:
    """Whoever paused the partition no longer needs it.

    CLN-14: A resume undoes one pause. It is refused unless the partition is paused. [{STATES}; {MANAGER}; KAFKA-7441]
    """
    before = state.state(partition)
    if isinstance(before, Paused):
        return _resumed(state, partition)
    why = "it is not paused." if before is None else f"it is in {java_name(before)} state."
    return Refused("CLN-14", ILLEGAL_STATE, f"Compaction for partition {partition} cannot be resumed since {why}")


@dataclass(frozen=True)
class Release:
    """The operation that had waited and now returns, if any."""

    released: Annotated[str | None, governs("CLN-12")]


@states()
def _done(state: Cleaner, partition: str, id: str) -> Step[Cleaner, Release]:
    """The cleaner thread is done, checkpoint apart. A waiting abort resumes as soon as it is let go (CLN-13).

    CLN-12: A caller waits on a partition exactly while it is aborted. The cleaner's done makes it paused(1) and lets
    the caller go: no waiter is forgotten. [{STATES}; {MANAGER}; KAFKA-6568]
    """
    before = state.state(partition)
    after = moved(before, "done")
    if isinstance(after, NoMove):
        why = f"In-progress partition {partition} cannot be in {java_name(before)} state."
        none = f"State for partition {partition} should exist."
        return Step(state, Refused(id, ILLEGAL_STATE, none if before is None else why))
    caller = state.blocked.get(partition)
    done = replace(state.with_state(partition, after), blocked=state.blocked.without(partition))
    return Step(_resumed(done, partition) if caller == "abortCleaning" else done, Release(caller))


def _lets_the_caller_go(state: Cleaner, partition: str, result: Step[Cleaner, Release]) -> bool:
    return isinstance(result.result, Refused) or result.result.released == state.blocked.get(partition)


waiter_returns = ensure(_lets_the_caller_go, "CLN-12 the caller that waited returns")


@machine.operation("doneCleaning", "CLN-12")
@a_partition("CLN-15")
@ensure(
    lambda state, partition, result: (
        not isinstance(state.state(partition), Aborted) or result.state.checkpoints == state.checkpoints
    ),
    "CLN-15 an aborted cleaning is not checkpointed",
)
@waiter_returns
@unchanged_if_refused("CLN-15")
@legal_moves
@waiters
def done_cleaning(state: Cleaner, partition: str, end_offset: Offset) -> Step[Cleaner, Release]:
    """The cleaner thread that had the partition has finished, or has stopped because it was asked to.

    CLN-15: Done cleaning, of a partition in progress, checkpoints the end offset in the log's directory and ends the
    state; of an aborted one it pauses it once and checkpoints nothing; of any other it is refused. [{STATES};
    {MANAGER}]
    """
    step = _done(state, partition, "CLN-15")
    if state.state(partition) != InProgress():
        return step
    directory = state.logs[partition].config.log_dir
    return Step(checkpoint_updated(step.state, directory, {partition: end_offset}), step.result)


@machine.operation("doneDeleting", "CLN-12")
@a_partition("CLN-16")
@ensure(lambda state, result: result.state.checkpoints == state.checkpoints, "CLN-16 deleting is not checkpointed")
@waiter_returns
@unchanged_if_refused("CLN-16")
@legal_moves
@waiters
def done_deleting(state: Cleaner, partition: str) -> Step[Cleaner, Release]:
    """The cleaner thread has deleted the old segments of a partition that it took by `deletableLogs`.

    CLN-16: Done deleting does the same without a checkpoint. [{MANAGER}; KAFKA-6568]
    """
    return _done(state, partition, "CLN-16")


STOPPED = Refused("CLN-17", "org.apache.kafka.storage.internals.log.LogCleaningAbortedException")


@machine.question("checkCleaningAborted")
@a_partition("CLN-17")
@ensure(
    lambda state, partition, result: (result == STOPPED) == (state.state(partition) == Aborted()),
    "CLN-17 it throws if and only if the cleaning is aborted",
)
def check_cleaning_aborted(state: Cleaner, partition: str) -> Refused | None:
    """The cleaner thread looks up from its work.

    CLN-17: Checking whether the cleaning of a partition is aborted throws if and only if it is, and changes nothing.
    [{STATES}; {MANAGER}]
    """
    return STOPPED if state.state(partition) == Aborted() else None


@machine.operation("pauseCleaningForNonCompactedPartitions")
@ensure(
    lambda state, result: all(
        state.state(p) is None and not state.logs[p].config.compact and result.state.state(p) == Paused(1)
        for p in result.result
    ),
    "CLN-18 what retention gets was free, is not compacted, and is paused once",
)
@legal_moves
@waiters
def pause_cleaning_for_non_compacted_partitions(state: Cleaner) -> Step[Cleaner, list[str]]:
    """The retention task asks for work.

    CLN-18: Before retention, every known log without compact in its policy and without a cleaning state is paused once;
    retention works on these and no others, and resumes them at the end. [{CHAPTER}, 'Detailed mechanics, retention';
    {MANAGER}; KAFKA-7322]
    """
    taken = sorted(p for p, log in state.known() if not log.config.compact and state.state(p) is None)
    return Step(replace(state, cleaning=Frozen({**state.cleaning, **dict.fromkeys(taken, Paused(1))})), taken)


@machine.operation("deletableLogs", "CLN-24")
@ensure(
    lambda state, result: all(
        free(state, p) and state.logs[p].config.compact and result.state.state(p) == InProgress() for p in result.result
    ),
    "CLN-19 what is taken was free and compacted, and is in progress",
)
@legal_moves
@waiters
def deletable_logs(state: Cleaner) -> Step[Cleaner, list[str]]:
    """A cleaner thread asks for logs to delete old segments of.

    CLN-19: After cleaning, every known log with compact in its policy (without delete too, for segments below the log
    start), without a cleaning state and not uncleanable in its directory is marked in progress, for its old segments
    to be deleted. [{MANAGER}; KAFKA-7400]
    """
    taken = sorted(p for p in state.logs if state.compacts(p) and free(state, p))
    return Step(replace(state, cleaning=Frozen({**state.cleaning, **dict.fromkeys(taken, InProgress())})), taken)


# ---- uncleanable partitions ------------------------------------------------------------------------------------------
@machine.operation("markPartitionUncleanable")
@a_partition("CLN-24")
@a_directory("CLN-24")
@ensure(lambda dir, partition, result: partition in result.uncleanable[dir], "CLN-24 it is marked")
@legal_moves
def mark_partition_uncleanable(state: Cleaner, dir: str, partition: str) -> Cleaner:
    """A cleaner thread got an unexpected exception from the partition's log.

    CLN-24: A partition is uncleanable in a directory once it is marked there, and is then neither grabbed nor taken for
    deletion while its log lies in that directory. [{STATES}; {MANAGER}]
    """
    return state.with_marks(dir, state.uncleanable[dir] | {partition})


@machine.operation("maintainUncleanablePartitions")
@states(without={"proof": "a step without consequences for who may do what"})
@ensure(
    lambda state, result: all(
        result.uncleanable[d] == {p for p in marked if state.knows(p)} for d, marked in state.uncleanable.items()
    ),
    "CLN-25 those known stay, the others go",
)
def maintain_uncleanable_partitions(state: Cleaner) -> Cleaner:
    """A cleaner thread, after each round.

    CLN-25: Maintenance of the uncleanable partitions drops, in every directory, those that the manager no longer knows.
    [{MANAGER}]
    """
    kept = {d: frozenset(p for p in marked if state.knows(p)) for d, marked in state.uncleanable.items()}
    return replace(state, uncleanable=Frozen(kept))


def _uncleanable(state: Cleaner, directory: str, now: int) -> int:
    last_clean = state.last_clean()
    marked = [p for p in state.uncleanable[directory] if state.knows(p)]
    return sum(logs.measure(p, state.logs[p], last_clean.get(p), now).cleanable_bytes for p in marked)


@machine.question("uncleanableBytes", "CLN-24")
@states(without=A_QUESTION)
@require(
    lambda state, dir: _uncleanable(state, dir, world.CLOCKS_FROM_MS) == _uncleanable(state, dir, world.WALL_CLOCK_MS),
    "CLN-34 whatever the machine's clock says, it is the same",
)
@require(lambda state: not ambiguous(state), "CLN-30 no partition stands in the checkpoints of two directories")
@a_directory("CLN-34")
@ensure(
    lambda state, dir, result: (
        0 <= result <= sum(logs.bytes_of(state.logs[p].segments[:-1]) for p in state.uncleanable[dir] if state.knows(p))
    ),
    "CLN-34 no more than what they have before their active segments",
)
def uncleanable_bytes(state: Cleaner, dir: str) -> int:
    """Somebody reads the gauge. Kafka asks the machine's clock for it, and no other.

    CLN-34: The uncleanable bytes of a directory, a gauge, are the cleanable bytes (CLN-5) of the known partitions that
    are uncleanable there, all together. [KIP-346; KAFKA-13305; {MANAGER}]
    """
    return _uncleanable(state, dir, world.WALL_CLOCK_MS)


# ---- checkpoints -----------------------------------------------------------------------------------------------------
@states("CLN-26", "CLN-29", without=OF_THE_DIRECTORY)
def checkpoint_updated(
    state: Cleaner, directory: str, update: Mapping[str, int] | None = None, remove: str | None = None
) -> Cleaner:
    """Entries set, one removed, those of unknown partitions dropped. A directory that failed keeps its file.

    CLN-26: Updating a directory's checkpoint sets or removes the named partition's offset, silently drops every other
    entry whose partition is not known, and leaves the rest. The partition that is set need not be known. [{MANAGER};
    KAFKA-1819]
    """
    if directory in state.failed:
        return state
    kept = {p: o for p, o in state.checkpoints[directory].items() if state.knows(p) and p != remove}
    return state.with_entries(directory, {**kept, **(update or {})})


@machine.operation("updateCheckpoints", "CLN-26", "CLN-29")
@a_directory("CLN-26")
@require(lambda update, offset: (update is None) == (offset is None), "CLN-26 a partition to set comes with its offset")
@ensure(
    lambda state, dir, update, offset, result: (
        dir in state.failed or update is None or result.checkpoints[dir][update] == offset
    ),
    "CLN-26 what is set is there",
)
@ensure(
    lambda state, dir, update, result: (
        dir in state.failed or all(state.knows(p) or p == update for p in result.checkpoints[dir])
    ),
    "CLN-26 no other entry of an unknown partition stays",
)
@ensure(
    lambda state, dir, result: result.checkpoints.without(dir) == state.checkpoints.without(dir),
    "CLN-26 other directories are left alone",
)
def update_checkpoints(
    state: Cleaner, dir: str, update: str | None = None, offset: Offset | None = None, remove: str | None = None
) -> Cleaner:
    """Somebody sets or removes an entry, or only has those of unknown partitions dropped."""
    new = {update: offset} if update is not None and offset is not None else None
    return checkpoint_updated(state, dir, new, remove)


@machine.operation("maybeTruncateCheckpoint", "CLN-29")
@a_partition("CLN-27")
@a_directory("CLN-27")
@ensure(
    lambda state, dir, partition, offset, result: (
        dir in state.failed
        or not state.compacts(partition)
        or result.checkpoints[dir].get(partition, 0) <= max(offset, 0)
    ),
    "CLN-27 a compacted partition's entry is not above the offset",
)
def maybe_truncate_checkpoint(state: Cleaner, dir: str, partition: str, offset: Offset) -> Cleaner:
    """The log was truncated, and its active segment now begins at `offset`.

    CLN-27: Truncating a checkpoint sets a compacted partition's offset in that directory to the given one if it is
    above it, and otherwise, an unknown partition included, changes nothing. [{CHAPTER}, 'Truncation during compaction';
    {MANAGER}; KAFKA-3330]
    """
    entries = state.checkpoints[dir]
    if not state.compacts(partition) or dir in state.failed or entries.get(partition, 0) <= offset:
        return state
    return state.with_entries(dir, entries.with_(partition, offset))


@machine.operation("alterCheckpointDir", "CLN-26", "CLN-29")
@states(without=OF_THE_DIRECTORY)
@a_partition("CLN-28")
@require(
    lambda state, source, dest: {source, dest} <= state.checkpoints.keys(),
    "CLN-28 the directories are the manager's",
)
@ensure(
    lambda state, partition, source, dest, result: (
        source in state.failed or source == dest or partition not in result.checkpoints[source]
    ),
    "CLN-28 the source keeps no entry",
)
@ensure(
    lambda state, partition, source, dest, result: (
        {source, dest} & state.failed
        or partition not in state.checkpoints[source]
        or result.checkpoints[dest][partition] == state.checkpoints[source][partition]
    ),
    "CLN-28 the destination has it",
)
def alter_checkpoint_dir(state: Cleaner, partition: str, source: str, dest: str) -> Cleaner:
    """The partition's log now lies in `dest`.

    CLN-28: When a partition moves, its entry goes from the source directory's checkpoint to the destination's, and so
    does its mark as uncleanable, each if there is one. [{MANAGER}; KAFKA-8362]
    """
    after = state
    offset = None if source in state.failed else state.checkpoints[source].get(partition)
    if offset is not None:
        after = checkpoint_updated(after, source, remove=partition)
        after = checkpoint_updated(after, dest, {partition: offset})
    if partition in state.uncleanable[source]:
        after = after.with_marks(source, after.uncleanable[source] - {partition})
        after = after.with_marks(dest, after.uncleanable[dest] | {partition})
    return after


@machine.operation("handleLogDirFailure")
@states(without=OF_THE_DIRECTORY)
@a_directory("CLN-29")
@ensure(lambda state, result: result == replace(state, failed=result.failed), "CLN-29 all else stays")
def handle_log_dir_failure(state: Cleaner, dir: str) -> Cleaner:
    """The directory's disk failed.

    CLN-29: After the failure of a directory, of which a checkpoint that cannot be read is one (CKP-4), its checkpoint
    is neither read nor written; the file stays as it was, and cleaning states and uncleanable marks stay. [{CHAPTER},
    'Disk failure'; {MANAGER}]
    """
    return replace(state, failed=state.failed | {dir})


@machine.operation("restart", kind="restart")
@ensure(lambda state, result: result.checkpoints == state.checkpoints, "CLN-31 checkpoints outlive it")
def restart(state: Cleaner) -> Cleaner:
    """The broker crashes and comes back.

    CLN-31: Checkpoints outlive a restart; cleaning states, uncleanable marks and waiting callers do not. [{CHAPTER},
    'On-disk: the offset checkpoint file'; {MANAGER}]
    """
    marks = Frozen({d: frozenset[str]() for d in state.checkpoints})
    return replace(state, cleaning=Frozen(), blocked=Frozen(), uncleanable=marks, failed=frozenset())


# ---- what happens to the logs and to the clock -----------------------------------------------------------------------
machine.operation("append")(world.append)
machine.operation("maybeIncrementLogStartOffset", "CLN-32")(world.maybe_increment_log_start_offset)
machine.operation("logChanged", "CLN-32")(world.log_changed)
machine.environment("updateConfig")(world.update_config)
machine.environment("forgetLog")(world.forget_log)
machine.environment("restoreLog")(world.restore_log)
machine.environment("advance", kind="time")(world.advance)
