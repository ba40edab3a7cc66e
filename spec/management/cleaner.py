"""The log cleaner's state machine and its manager: which log is cleaned next, who may stop it, what is remembered.

One lock guards everything here, so each operation is one step. A caller that must wait is a visible state (`blocked`);
its return is part of the step that lets it go. Logs are seen through an interface (`Log`): the manager reads offsets,
segments and configuration, and never writes a record.

Source: Kafka Internals, ch. 04, "Choosing the filthiest log", "Cleaning state in LogCleanerManager" and "The cleaning
state machine"; LogCleanerManager, LogToClean, Kafka 4.3.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypedDict, TypeVar

import icontract

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.spec.common.kafka import ILLEGAL_STATE, INT_MAX, LONG_MAX

PREFIX = "CLN"
TITLE = "Log cleaner manager"

CHAPTER = "Kafka Internals, ch. 04"
MANAGER = "LogCleanerManager, Kafka 4.3.0"

OF_THE_DIRECTORY = {
    "model": "the model has one directory: nothing here depends on who acts at the same time",
    "proof": "see the model",
}
OF_THE_NUMBERS = {
    "model": "the models know dirt as one number; how it is measured is arithmetic over one log",
    "proof": "see the model",
}
OF_THE_USERS = {
    "spec": "about the users of the manager: the model has them",
    "impl": "about the users of the manager: the model has them",
}

CLN_1 = clause(
    "CLN-1",
    """A partition's cleaning state is none, in progress, aborted or paused(n) with n >= 1. It moves from none to in
    progress or paused(1); from in progress to none or aborted; from aborted to paused(1); from paused(n) to
    paused(n+1), to paused(n-1) when n > 1, and from paused(1) to none.""",
    source=f"{CHAPTER}, 'The cleaning state machine'; LogCleaningState, Kafka 4.3.0",
)
CLN_2 = clause(
    "CLN-2",
    """Only a log that the manager knows, whose policy has compact, whose partition has no cleaning state and is not
    uncleanable in the log's directory, and whose clean and cleanable bytes are more than 0 together, may be
    grabbed.""",
    source=f"{CHAPTER}, 'Choosing the filthiest log'; {MANAGER}",
)
CLN_3 = clause(
    "CLN-3",
    """Such a log is cleanable if its cleanable ratio is strictly above min.cleanable.dirty.ratio, or if it must be
    compacted now (CLN-7) and has cleanable bytes.""",
    source=f"{CHAPTER}, 'Choosing the filthiest log'; {MANAGER}",
)
CLN_4 = clause(
    "CLN-4",
    """Of the cleanable logs one with the highest cleanable ratio is grabbed and becomes in progress; a log that must
    be compacted now has no precedence over a filthier one. Which of equally filthy logs it is, is not promised. With
    no cleanable log nothing is grabbed.""",
    source=f"{CHAPTER}, 'Choosing the filthiest log'; {MANAGER}",
)
CLN_5 = clause(
    "CLN-5",
    """The cleanable ratio is cleanable / (clean + cleanable) bytes, 64-bit sums of whole segments divided as doubles:
    clean are the segments whose base offset is below the first dirty offset, cleanable those from the segment that
    holds the first dirty offset up to the segment that holds the first uncleanable offset, this one not included
    (none if both are one). A segment in which the dirty part begins counts in both.""",
    source="LogToClean and LogCleanerManager.calculateCleanableBytes, Kafka 4.3.0; KAFKA-6030, KAFKA-9826",
    without=OF_THE_NUMBERS,
)
CLN_6 = clause(
    "CLN-6",
    """A grab reports how many logs were cleanable, how many are delayed beyond max.compaction.lag.ms, and the longest
    such delay, over all logs that were looked at.""",
    source="PreCleanStats, Kafka 4.3.0",
    without={"model": "a report that nothing depends on", "proof": "a report that nothing depends on"},
)
CLN_7 = clause(
    "CLN-7",
    """A log must be compacted now if the earliest positive first-batch timestamp of its non-active segments from the
    first dirty offset on is before now - max.compaction.lag.ms; the delay is the difference.""",
    source=f"{CHAPTER}, 'Choosing the filthiest log'; {MANAGER}; KIP-354",
    without=OF_THE_NUMBERS,
)
CLN_8 = clause(
    "CLN-8",
    """The first uncleanable offset is the smallest of the last stable offset, the active segment's base offset and,
    if min.compaction.lag.ms > 0, the base of the first non-active segment from the first dirty offset on whose
    largest timestamp is after now - min.compaction.lag.ms; but never below the first dirty offset.""",
    source=f"{CHAPTER}, 'Choosing the filthiest log'; {MANAGER}; KAFKA-13194, KAFKA-9133, KAFKA-8724",
)
CLN_9 = clause(
    "CLN-9",
    """The first dirty offset is the checkpointed one if that lies between log start and log end, else the log start;
    it is the log start, too, where nothing is checkpointed. The checkpoint needs a forced update just when one is
    there and lies outside.""",
    source=f"{CHAPTER}, 'Choosing the filthiest log'; {MANAGER}",
)
CLN_10 = clause(
    "CLN-10",
    """A grab writes a forced update to the checkpoint of the log's directory for every log that it looks at, whether
    or not that log is then cleaned.""",
    source=f"{MANAGER}; KAFKA-6266",
)
CLN_11 = clause(
    "CLN-11",
    """Abort-and-pause of a partition without a state pauses it once; of a paused one, once more; of one in progress,
    marks it aborted and its caller waits. Of an aborted one it is refused: one caller waits at most.""",
    source=f"{CHAPTER}, 'The cleaning state machine'; {MANAGER}; KAFKA-7441",
)
CLN_12 = clause(
    "CLN-12",
    """A caller waits on a partition exactly while it is aborted. The cleaner's done makes it paused(1) and lets the
    caller go: no waiter is forgotten.""",
    source=f"{CHAPTER}, 'The cleaning state machine'; {MANAGER}; KAFKA-6568",
)
CLN_13 = clause(
    "CLN-13",
    "Abort is abort-and-pause, the waiting included, and then a resume of that one pause.",
    source=MANAGER,
)
CLN_14 = clause(
    "CLN-14",
    "A resume undoes one pause. It is refused unless the partition is paused.",
    source=f"{CHAPTER}, 'The cleaning state machine'; {MANAGER}; KAFKA-7441",
)
CLN_15 = clause(
    "CLN-15",
    """Done cleaning, of a partition in progress, checkpoints the end offset in the log's directory and ends the
    state; of an aborted one it pauses it once and checkpoints nothing; of any other it is refused.""",
    source=f"{CHAPTER}, 'The cleaning state machine'; {MANAGER}",
)
CLN_16 = clause(
    "CLN-16",
    "Done deleting does the same without a checkpoint.",
    source=f"{MANAGER}; KAFKA-6568",
)
CLN_17 = clause(
    "CLN-17",
    "Checking whether the cleaning of a partition is aborted throws just when it is, and changes nothing.",
    source=f"{CHAPTER}, 'The cleaning state machine'; {MANAGER}",
)
CLN_18 = clause(
    "CLN-18",
    """Before retention, every known log without compact in its policy and without a cleaning state is paused once;
    retention works on these and no others, and resumes them at the end.""",
    source=f"{CHAPTER}, 'Detailed mechanics, retention'; {MANAGER}; KAFKA-7322",
)
CLN_19 = clause(
    "CLN-19",
    """After cleaning, every known log with compact in its policy (without delete too, for segments below the log
    start), without a cleaning state and not uncleanable in its directory is marked in progress, for its old segments
    to be deleted.""",
    source=f"{MANAGER}; KAFKA-7400",
)
CLN_20 = clause(
    "CLN-20",
    """Retention, truncation, deletion or a move of directory never works on a partition while a cleaner thread does,
    and no two cleaner threads work on one.""",
    source=f"{CHAPTER}, 'Invariants & guarantees'; KAFKA-7322",
    without={
        "spec": "about who works, not about the manager's state: the model has the workers",
        "impl": "about who works: the manager, which is all that there is of it, has its part by CLN-11 to CLN-19",
    },
)
CLN_21 = clause(
    "CLN-21",
    """While every user resumes just what it paused, the pause count of a partition is the number of its holders, no
    resume is refused, and no partition stays paused that nobody holds.""",
    source=f"{CHAPTER}, 'The cleaning state machine'; KAFKA-7441, KAFKA-3123",
    without=OF_THE_USERS,
)
CLN_22 = clause(
    "CLN-22",
    "A blocked abort-and-pause returns, if cleaner threads go on running and a woken waiter runs sooner or later.",
    source=f"{CHAPTER}, 'The cleaning state machine'; KAFKA-6568",
    without={
        "spec": "liveness",
        "impl": "liveness: of runs, which callers and their scheduler make; what the manager does for it is CLN-12",
        "proof": "liveness is explored; proved for every size is that the way out is never closed (CLN-12)",
    },
)
CLN_23 = clause(
    "CLN-23",
    "A paused partition whose holders all resume becomes cleanable again.",
    source=f"{CHAPTER}, 'The cleaning state machine'; KAFKA-7441, KAFKA-3123",
    without={
        "spec": "liveness",
        "impl": "liveness: of runs, which callers make; what the manager does for it is CLN-14",
    },
)
CLN_24 = clause(
    "CLN-24",
    """A partition is uncleanable in a directory once it is marked there, and is then neither grabbed nor taken for
    deletion while its log lies in that directory.""",
    source=f"{CHAPTER}, 'The cleaning state machine'; {MANAGER}",
)
CLN_25 = clause(
    "CLN-25",
    "Maintenance of the uncleanable partitions drops, in every directory, those that the manager no longer knows.",
    source=MANAGER,
    without={"proof": "a step without consequences for who may do what"},
)
CLN_26 = clause(
    "CLN-26",
    """Updating a directory's checkpoint sets or removes the named partition's offset, silently drops every other
    entry whose partition is not known, and leaves the rest. The partition that is set need not be known.""",
    source=f"{MANAGER}; KAFKA-1819",
    without=OF_THE_DIRECTORY,
)
CLN_27 = clause(
    "CLN-27",
    """Truncating a checkpoint sets a compacted partition's offset in that directory to the given one if it is above
    it, and otherwise, an unknown partition included, changes nothing.""",
    source=f"{CHAPTER}, 'Truncation during compaction'; {MANAGER}; KAFKA-3330",
)
CLN_28 = clause(
    "CLN-28",
    """When a partition moves, its entry goes from the source directory's checkpoint to the destination's, and so does
    its mark as uncleanable, each if there is one.""",
    source=f"{MANAGER}; KAFKA-8362",
    without=OF_THE_DIRECTORY,
)
CLN_29 = clause(
    "CLN-29",
    """After the failure of a directory, of which a checkpoint that cannot be read is one (CKP-4), its checkpoint is
    neither read nor written; the file stays as it was, and cleaning states and uncleanable marks stay.""",
    source=f"{CHAPTER}, 'Disk failure'; {MANAGER}",
    without=OF_THE_DIRECTORY,
)
CLN_30 = clause(
    "CLN-30",
    """A partition's entry stands in the checkpoint of one live directory at most. While it stands in two, it is not
    known how far the partition is clean, and nothing is grabbed.""",
    source=f"KAFKA-8362; {MANAGER}",
    without=OF_THE_DIRECTORY,
)
CLN_31 = clause(
    "CLN-31",
    """Checkpoints outlive a restart; cleaning states, uncleanable marks and waiting callers do not.""",
    source=f"{CHAPTER}, 'On-disk: the offset checkpoint file'; {MANAGER}",
)
CLN_32 = clause(
    "CLN-32",
    """A log, as the manager sees it, has log start <= last stable offset <= log end and segments in ascending order
    of their base offsets, the last of which is active and begins below the log end, or at it and is empty; an empty
    segment has no timestamps. An append adds to the active segment, and rolls to a new one at the log end when the
    batch would not fit into segment.bytes, or the segment's first batch is older than segment.ms (of a compacted log:
    or than max.compaction.lag.ms).""",
    source="UnifiedLog, LogSegment.shouldRoll and LogConfig.maxSegmentMs, Kafka 4.3.0; KIP-354",
)
CLN_33 = clause(
    "CLN-33",
    """Who works on a partition's segments aborts and pauses its cleaning, works, and resumes, on the way of failure
    too; truncation also lowers the checkpoint, deletion removes it, and giving up the compact policy aborts a
    cleaning.""",
    source=f"{CHAPTER}, 'The cleaning state machine'; LogManager, Kafka sources of October 2024; "
    "KAFKA-3123, KAFKA-3330, KAFKA-1819, KAFKA-12840",
    without=OF_THE_USERS,
)

CLN_34 = clause(
    "CLN-34",
    """The uncleanable bytes of a directory, a gauge, are the cleanable bytes (CLN-5) of the known partitions that are
    uncleanable there, all together.""",
    source=f"KIP-346; KAFKA-13305; {MANAGER}",
    without={"model": "a report that nothing depends on", "proof": "a report that nothing depends on"},
)

WEEK_MS = 7 * 24 * 3600 * 1000
"""segment.ms, where it is not set."""
WALL_CLOCK_MS = 2**60
"""The machine's clock, as histories see it, whose own clock is simulated: long after all that they do."""

ABORTED_EXCEPTION = "org.apache.kafka.storage.internals.log.LogCleaningAbortedException"
POLICIES = ("compact", "delete", "compact,delete")
OUT_OF_RANGE = "org.apache.kafka.common.errors.OffsetOutOfRangeException"

K = TypeVar("K")
V = TypeVar("V")


class Frozen(dict[K, V]):
    """A dict that is never changed in place: `with_` and `without` make new ones. Hashable."""

    def with_(self, key: K, value: V) -> Frozen[K, V]:
        return Frozen({**self, key: value})

    def without(self, *keys: K) -> Frozen[K, V]:
        return Frozen({k: v for k, v in self.items() if k not in keys})

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a frozen map does not change")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _refuse


# ---- the log, as the manager sees it ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class Segment:
    """One segment. `size` in bytes; timestamps in ms, -1 where there is none. (Of a segment without any timestamp Kafka
    takes the time of its file's last change for the largest.)"""

    base_offset: int
    size: int = 0
    largest_timestamp: int = -1
    first_batch_timestamp: int = -1


@dataclass(frozen=True)
class Config:
    """What of a topic's configuration matters here."""

    log_dir: str
    compact: bool
    delete: bool
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    min_cleanable_dirty_ratio: float = 0.5
    segment_bytes: int = 2**30

    @property
    def segment_ms(self) -> int:
        """How old the active segment may grow: a week, but not beyond what compaction must not wait for."""
        return min(WEEK_MS, self.max_compaction_lag_ms) if self.compact and self.max_compaction_lag_ms > 0 else WEEK_MS


@dataclass(frozen=True)
class Log:
    """A partition's log. `known`: it is in the manager's map of logs. The last segment is the active one."""

    config: Config
    known: bool = True
    log_start_offset: int = 0
    log_end_offset: int = 0
    last_stable_offset: int = 0
    segments: tuple[Segment, ...] = (Segment(0),)

    @property
    def active_base_offset(self) -> int:
        return self.segments[-1].base_offset

    def between(self, start: int, end: int) -> tuple[Segment, ...]:
        """The segments that hold offsets of [start, end), from the one that holds `start` or the first one."""
        if start >= end:
            return ()
        first = max((s.base_offset for s in self.segments if s.base_offset <= start), default=start)
        return tuple(s for s in self.segments if first <= s.base_offset < end)

    def non_active_from(self, offset: int) -> tuple[Segment, ...]:
        """The segments, without the active one, from the one that holds `offset`."""
        return self.between(offset, self.active_base_offset)


@states("CLN-32")
def well_formed(log: Log) -> bool:
    """Whether offsets and segments are in their order, and sizes and timestamps possible."""
    bases = [s.base_offset for s in log.segments]
    return (
        0 <= log.log_start_offset <= log.last_stable_offset <= log.log_end_offset <= LONG_MAX
        and bases != []
        and all(a < b for a, b in itertools.pairwise(bases))
        and 0 <= bases[0] <= log.log_start_offset
        and bases[-1] <= log.log_end_offset - (log.segments[-1].size > 0)
        and all(
            0 <= s.size <= INT_MAX
            and -1 <= s.first_batch_timestamp <= s.largest_timestamp <= (LONG_MAX if s.size else -1)
            for s in log.segments
        )
    )


@states("CLN-32")
def appended(log: Log, now: int, count: int, batch_bytes: int) -> Log:
    """The log after `count` batches of one record, `batch_bytes` each, with the timestamp `now`."""
    segments = list(log.segments)
    end = log.log_end_offset
    for _ in range(count):
        active = segments[-1]
        full = active.size > log.config.segment_bytes - batch_bytes
        old = active.size > 0 and now - active.first_batch_timestamp > log.config.segment_ms
        if (full or old) and active.base_offset < end:
            active = Segment(end)
            segments.append(active)
        first = active.first_batch_timestamp if active.size else now
        segments[-1] = Segment(active.base_offset, active.size + batch_bytes, max(active.largest_timestamp, now), first)
        end += 1
    return replace(log, segments=tuple(segments), log_end_offset=end)


# ---- the cleaning state ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class InProgress:
    """A cleaner thread works on the partition."""


@dataclass(frozen=True)
class Aborted:
    """A cleaner thread works on the partition, and is asked to stop."""


@dataclass(frozen=True)
class Paused:
    """Nobody cleans the partition until each of `count` pauses is undone."""

    count: int


Cleaning = InProgress | Aborted | Paused | None
"""None: no state."""


@states("CLN-1")
def legal_move(before: Cleaning, after: Cleaning) -> bool:
    """Whether a state may become another in one step. It may also stay, or be paused and resumed at once (CLN-13)."""
    match before, after:
        case (None, InProgress() | Paused(1)) | (InProgress(), None | Aborted()) | (Aborted(), Paused(1)):
            return True
        case Aborted(), None:
            return True  # paused(1), and the abort that waited for it resumes it in the same step
        case Paused(m), Paused(n):
            return abs(m - n) <= 1
        case Paused(1), None:
            return True
    return before == after


@dataclass(frozen=True)
class Cleaner:
    """The manager's whole state, the logs and the clock that it sees included."""

    now: int
    """ms"""
    logs: Frozen[str, Log]
    """every log there ever was in this history, by partition; `known` says which ones the manager has"""
    cleaning: Frozen[str, Cleaning]
    """partitions with a cleaning state"""
    blocked: Frozen[str, str]
    """partition -> the operation whose caller waits for it"""
    checkpoints: Frozen[str, Frozen[str, int]]
    """directory -> partition -> first dirty offset: what the file says"""
    uncleanable: Frozen[str, frozenset[str]]
    """directory -> partitions"""
    failed: frozenset[str] = frozenset()
    """directories whose checkpoint is no longer used"""
    batch_bytes: int = 72
    """the size of each batch that `append` appends"""

    def state(self, partition: str) -> Cleaning:
        return self.cleaning.get(partition)

    def known(self) -> Iterator[tuple[str, Log]]:
        return ((p, log) for p, log in self.logs.items() if log.known)

    def knows(self, partition: str) -> bool:
        return partition in self.logs and self.logs[partition].known

    def live_checkpoints(self) -> list[Frozen[str, int]]:
        return [entries for directory, entries in self.checkpoints.items() if directory not in self.failed]

    def with_state(self, partition: str, after: Cleaning) -> Cleaner:
        if after is None:
            return replace(self, cleaning=self.cleaning.without(partition))
        return replace(self, cleaning=self.cleaning.with_(partition, after))

    def with_log(self, partition: str, log: Log) -> Cleaner:
        return replace(self, logs=self.logs.with_(partition, log))


_QUICK: dict[str, Any] = {"max.compaction.lag.ms": 5000, "segment.bytes": 200}
PARTITIONS: list[dict[str, Any]] = [
    {"partition": "c-0", "logDir": "dir0", "cleanup.policy": "compact", **_QUICK},
    {"partition": "c-1", "logDir": "dir1", "cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.9, **_QUICK},
    {
        "partition": "cd-0",
        "logDir": "dir0",
        "cleanup.policy": "compact,delete",
        "min.compaction.lag.ms": 2000,
        "min.cleanable.dirty.ratio": 0.2,
        **_QUICK,
    },
    {"partition": "d-0", "logDir": "dir1", "cleanup.policy": "delete", **_QUICK},
]
"""What histories begin with unless they say otherwise: as the recordings do, but all are overdue and full sooner."""


def config(settings: Mapping[str, Any]) -> Config:
    """One partition's configuration, by the names of the recordings; defaults as in Kafka."""
    policy = str(settings.get("cleanup.policy", "compact")).split(",")
    return Config(
        log_dir=settings["logDir"],
        compact="compact" in policy,
        delete="delete" in policy,
        min_compaction_lag_ms=settings.get("min.compaction.lag.ms", 0),
        max_compaction_lag_ms=settings.get("max.compaction.lag.ms", LONG_MAX),
        min_cleanable_dirty_ratio=settings.get("min.cleanable.dirty.ratio", 0.5),
        segment_bytes=settings.get("segment.bytes", 2**30),
    )


def initial(partitions: Sequence[Mapping[str, Any]] | None = None, batch_bytes: int = 72) -> Cleaner:
    """Empty logs, no checkpoints. `batch_bytes` is the size of the batches that the history appends."""
    partitions = PARTITIONS if partitions is None else partitions
    logs = Frozen({p["partition"]: Log(config(p)) for p in partitions})
    directories = sorted({log.config.log_dir for log in logs.values()})
    return Cleaner(
        now=1_000_000,
        logs=logs,
        cleaning=Frozen(),
        blocked=Frozen(),
        checkpoints=Frozen({d: Frozen() for d in directories}),
        uncleanable=Frozen({d: frozenset() for d in directories}),
        batch_bytes=batch_bytes,
    )


def state_text(state: Cleaning) -> str:
    match state:
        case None:
            return "none"
        case InProgress():
            return "inProgress"
        case Aborted():
            return "aborted"
        case Paused(n):
            return f"paused({n})"


class ShownSegment(TypedDict):
    """A segment: size in bytes, timestamp in ms."""

    baseOffset: int
    size: int
    largestTimestamp: int


class ShownLog(TypedDict):
    """A log."""

    known: bool
    """the manager has it"""
    logStartOffset: int
    logEndOffset: int
    lastStableOffset: int
    segments: list[ShownSegment]


class Observation(TypedDict):
    """The manager, its checkpoints, and the logs."""

    now: int
    """ms"""
    cleaning: dict[str, str]
    """partition -> its state"""
    checkpoints: dict[str, dict[str, int]]
    """directory -> partition -> first dirty offset"""
    uncleanable: dict[str, list[str]]
    """directory -> partitions"""
    blockedCallers: list[str]
    """partitions for which somebody waits"""
    logs: dict[str, ShownLog]


def observe(state: Cleaner) -> Observation:
    """The state as the recordings show it."""
    return {
        "now": state.now,
        "cleaning": {p: state_text(state.state(p)) for p in state.logs},
        "checkpoints": {d: dict(entries) for d, entries in state.checkpoints.items()},
        "uncleanable": {d: sorted(marked) for d, marked in state.uncleanable.items()},
        "blockedCallers": sorted(state.blocked),
        "logs": {
            p: {
                "known": log.known,
                "logStartOffset": log.log_start_offset,
                "logEndOffset": log.log_end_offset,
                "lastStableOffset": log.last_stable_offset,
                "segments": [
                    {"baseOffset": s.base_offset, "size": s.size, "largestTimestamp": s.largest_timestamp}
                    for s in log.segments
                ],
            }
            for p, log in state.logs.items()
        },
    }


machine: Machine[Cleaner] = Machine("cleaner", initial, observe)


# Contracts that many steps keep. Their conditions are functions: a broken contract prints the text of a lambda only
# where it stands in the decorator itself.
def _moves_legally(state: Cleaner, result: Step[Cleaner]) -> bool:
    return all(legal_move(state.state(p), result.state.state(p)) for p in state.logs)


def _aborted_have_waiters(result: Step[Cleaner]) -> bool:
    return set(result.state.blocked) == {p for p, s in result.state.cleaning.items() if s == Aborted()}


def _is_a_partition(state: Cleaner, partition: str) -> bool:
    return partition in state.logs


def _refusal_changes_nothing(state: Cleaner, result: Step[Cleaner]) -> bool:
    return not isinstance(result.result, Refused) or result.state == state


legal_moves = icontract.ensure(_moves_legally, "CLN-1 each state moves as the machine allows")
waiters = icontract.ensure(_aborted_have_waiters, "CLN-12 a caller waits on just the aborted partitions")


def a_partition(clause: str) -> icontract.require:
    """Of an operation of that clause: the history began with the partition."""
    return icontract.require(_is_a_partition, f"{clause} the partition is one that the history began with")


def refused_changes_nothing(clause: str) -> icontract.ensure:
    """Of an operation of that clause."""
    return icontract.ensure(_refusal_changes_nothing, f"{clause} what is refused changes nothing")


# ---- choosing the filthiest log --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class OffsetsToClean:
    """What may be cleaned of a log: [first_dirty_offset, first_uncleanable_dirty_offset)."""

    first_dirty_offset: int
    first_uncleanable_dirty_offset: int
    force_update_checkpoint: bool


@states("CLN-8", "CLN-9")
def cleanable_offsets(log: Log, checkpoint: int | None, now: int) -> OffsetsToClean:
    """The part of a log that may be cleaned, by what is checkpointed."""
    valid = checkpoint is not None and log.log_start_offset <= checkpoint <= log.log_end_offset
    dirty = checkpoint if checkpoint is not None and valid else log.log_start_offset
    lag_ms = log.config.min_compaction_lag_ms
    young = [s.base_offset for s in log.non_active_from(dirty) if s.largest_timestamp > now - lag_ms]
    bounds = [log.last_stable_offset, log.active_base_offset, *(young[:1] if lag_ms > 0 else [])]
    return OffsetsToClean(dirty, max(dirty, min(bounds)), checkpoint is not None and not valid)


@states("CLN-7")
def compaction_delay_ms(log: Log, first_dirty_offset: int, now: int) -> int:
    """How long ago the log ought to have been compacted; 0 if it is not overdue."""
    stamps = [s.first_batch_timestamp for s in log.non_active_from(first_dirty_offset)]
    due = now - max(log.config.max_compaction_lag_ms, 0)
    return max(due - min((t for t in stamps if t > 0), default=LONG_MAX), 0)


@dataclass(frozen=True)
class Candidate:
    """A log that may be grabbed, measured."""

    partition: str
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    delay_ms: int
    force_update_checkpoint: bool
    min_ratio: float

    @property
    def total_bytes(self) -> int:
        return self.clean_bytes + self.cleanable_bytes

    @property
    @states("CLN-5")
    def ratio(self) -> float:
        return float(self.cleanable_bytes) / float(self.total_bytes)

    @property
    @states("CLN-3")
    def cleanable(self) -> bool:
        """Whether it is dirty enough, or overdue with something to clean."""
        return (self.delay_ms > 0 and self.cleanable_bytes > 0) or self.ratio > self.min_ratio

    def report(self) -> LogToClean:
        return {
            "partition": self.partition,
            "firstDirtyOffset": self.first_dirty_offset,
            "firstUncleanableOffset": self.first_uncleanable_offset,
            "cleanBytes": self.clean_bytes,
            "cleanableBytes": self.cleanable_bytes,
            "totalBytes": self.total_bytes,
            "cleanableRatio": self.ratio,
            "needCompactionNow": self.delay_ms > 0,
        }


def bytes_of(segments: Iterable[Segment]) -> int:
    return sum(s.size for s in segments)


@states("CLN-5")
def measure(partition: str, log: Log, checkpoint: int | None, now: int) -> Candidate:
    """How many bytes of the log are clean, and how many may be cleaned."""
    offsets = cleanable_offsets(log, checkpoint, now)
    dirty = offsets.first_dirty_offset
    after = log.non_active_from(offsets.first_uncleanable_dirty_offset)
    uncleanable = after[0].base_offset if after else log.active_base_offset
    return Candidate(
        partition,
        dirty,
        uncleanable,
        bytes_of(s for s in log.segments if s.base_offset < dirty),
        bytes_of(log.between(dirty, uncleanable)),
        compaction_delay_ms(log, dirty, now),
        offsets.force_update_checkpoint,
        log.config.min_cleanable_dirty_ratio,
    )


@states("CLN-30")
def ambiguous(state: Cleaner) -> bool:
    """Whether some partition stands in the checkpoints of two live directories."""
    entries = [p for checkpoint in state.live_checkpoints() for p in checkpoint]
    return len(entries) != len(set(entries))


@states("CLN-2", "CLN-19", "CLN-24")
def free(state: Cleaner, partition: str, log: Log) -> bool:
    """Nobody holds the partition, and it is not uncleanable where its log lies."""
    return state.state(partition) is None and partition not in state.uncleanable.get(log.config.log_dir, frozenset())


@states("CLN-2")
def looked_at(state: Cleaner) -> list[Candidate]:
    """The logs that a grab looks at, empty ones included."""
    last_clean = {p: offset for checkpoint in state.live_checkpoints() for p, offset in checkpoint.items()}
    return [
        measure(p, log, last_clean.get(p), state.now)
        for p, log in state.known()
        if log.config.compact and free(state, p, log)
    ]


@states("CLN-4", "CLN-30")
def filthiest(state: Cleaner) -> list[str | None]:
    """The partitions that a grab may take, in ascending order; [None] if it takes none."""
    if ambiguous(state):
        return [None]
    cleanable = [c for c in looked_at(state) if c.total_bytes > 0 and c.cleanable]
    highest = max((c.ratio for c in cleanable), default=0.0)
    return [*sorted(c.partition for c in cleanable if c.ratio == highest)] or [None]


class LogToClean(TypedDict):
    """A log as the cleaner measures it."""

    partition: str
    firstDirtyOffset: int
    firstUncleanableOffset: int
    cleanBytes: int
    cleanableBytes: int
    totalBytes: int
    cleanableRatio: float
    needCompactionNow: bool


class MeasuredLog(LogToClean):
    """The same, and what comes of it."""

    cleanable: bool
    compactionDelayMs: int


class Grabbed(TypedDict):
    """What a cleaner thread got, and among how many."""

    log: LogToClean | None
    cleanablePartitions: int
    delayedPartitions: int
    maxCompactionDelayMs: int


@machine.operation(
    "grabFilthiestCompactedLog",
    *("CLN-4", "CLN-2", "CLN-3", "CLN-5", "CLN-6", "CLN-7", "CLN-10", "CLN-30"),
    chosen=("chosen",),
)
@icontract.require(
    lambda state, chosen: chosen in filthiest(state), "CLN-4 what is chosen is among the filthiest cleanable logs"
)
@icontract.ensure(
    lambda state, result: (
        result.result["log"] is None
        or (
            state.state(result.result["log"]["partition"]) is None
            and result.state.state(result.result["log"]["partition"]) == InProgress()
        )
    ),
    "CLN-4 what is grabbed had no state and is in progress",
)
@icontract.ensure(
    lambda state, result: (
        result.result["log"] is None
        or (
            state.logs[result.result["log"]["partition"]].config.compact
            and result.result["log"]["partition"]
            not in state.uncleanable.get(state.logs[result.result["log"]["partition"]].config.log_dir, ())
        )
    ),
    "CLN-2 what is grabbed is compacted and not uncleanable",
)
@icontract.ensure(
    lambda state, result: (
        result.result["log"] is None
        or result.result["log"]["firstUncleanableOffset"]
        <= max(
            result.result["log"]["firstDirtyOffset"], state.logs[result.result["log"]["partition"]].last_stable_offset
        )
    ),
    "CLN-8 nothing above the last stable offset is cleaned",
)
@icontract.ensure(
    lambda state, result: (
        ambiguous(state)
        or all(
            cleanable_offsets(log, entry, state.now).force_update_checkpoint is False
            for p, log in state.known()
            if log.config.compact and free(state, p, log) and log.config.log_dir not in state.failed
            for entry in [result.state.checkpoints[log.config.log_dir].get(p)]
        )
    ),
    "CLN-10 no log that was looked at keeps a checkpoint in its directory that needs a forced update",
)
@legal_moves
@waiters
def grab_filthiest_compacted_log(state: Cleaner, chosen: str | None) -> Step[Cleaner, Grabbed]:
    """A cleaner thread asks for work. `chosen` resolves which of equally filthy logs it gets (`filthiest`)."""
    if ambiguous(state):
        return Step(state, {"log": None, "cleanablePartitions": 0, "delayedPartitions": 0, "maxCompactionDelayMs": 0})
    candidates = looked_at(state)
    after = state
    for c in candidates:
        if c.force_update_checkpoint:
            after = checkpoint_updated(
                after, state.logs[c.partition].config.log_dir, {c.partition: c.first_dirty_offset}
            )
    cleanable = [c for c in candidates if c.total_bytes > 0 and c.cleanable]
    grabbed = next((c for c in cleanable if c.partition == chosen), None)
    if grabbed is not None:
        after = after.with_state(grabbed.partition, InProgress())
    result: Grabbed = {
        "log": None if grabbed is None else grabbed.report(),
        "cleanablePartitions": len(cleanable),
        "delayedPartitions": sum(1 for c in candidates if c.delay_ms > 0),
        "maxCompactionDelayMs": max((c.delay_ms for c in candidates), default=0),
    }
    return Step(after, result)


class CleanableOffsets(TypedDict):
    """The part of a log that may be cleaned."""

    firstDirtyOffset: int
    firstUncleanableDirtyOffset: int
    forceUpdateCheckpoint: bool


@machine.operation("cleanableOffsets", "CLN-9", "CLN-8")
@a_partition("CLN-9")
@icontract.ensure(
    lambda state, partition, result: (
        result.result["firstUncleanableDirtyOffset"]
        <= max(result.result["firstDirtyOffset"], state.logs[partition].last_stable_offset)
    ),
    "CLN-8 nothing above the last stable offset may be cleaned",
)
@icontract.ensure(
    lambda state, partition, result: (
        state.logs[partition].log_start_offset
        <= result.result["firstDirtyOffset"]
        <= state.logs[partition].log_end_offset
    ),
    "CLN-9 the dirty part begins within the log",
)
@icontract.ensure(
    lambda last_clean_offset, result: (
        result.result["forceUpdateCheckpoint"]
        == (last_clean_offset is not None and last_clean_offset != result.result["firstDirtyOffset"])
    ),
    "CLN-9 a checkpoint outside the log needs a forced update",
)
def cleanable_offsets_of(
    state: Cleaner, partition: str, last_clean_offset: int | None
) -> Step[Cleaner, CleanableOffsets]:
    """What of a log may be cleaned, if that offset is what is checkpointed."""
    found = cleanable_offsets(state.logs[partition], last_clean_offset, state.now)
    return Step(
        state,
        {
            "firstDirtyOffset": found.first_dirty_offset,
            "firstUncleanableDirtyOffset": found.first_uncleanable_dirty_offset,
            "forceUpdateCheckpoint": found.force_update_checkpoint,
        },
    )


@machine.operation("logToClean", "CLN-5", "CLN-3", "CLN-7", "CLN-2")
@a_partition("CLN-5")
@icontract.ensure(
    lambda result: (
        result.result is None
        or (
            0 <= result.result["cleanableRatio"] <= 1
            and result.result["totalBytes"] == result.result["cleanBytes"] + result.result["cleanableBytes"]
        )
    ),
    "CLN-5 a ratio of the two kinds of bytes",
)
@icontract.ensure(
    lambda result: (
        result.result is None
        or result.result["needCompactionNow"]
        or not result.result["cleanable"]
        or result.result["cleanableRatio"] > 0
    ),
    "CLN-3 what nothing forces is cleanable by its ratio alone",
)
def log_to_clean(state: Cleaner, partition: str, last_clean_offset: int | None) -> Step[Cleaner, MeasuredLog | None]:
    """What a grab would find of a log, if that offset is what is checkpointed; nothing if the log is empty."""
    log = state.logs[partition]
    found = measure(partition, log, last_clean_offset, state.now)
    if found.total_bytes == 0:
        return Step(state)
    return Step(state, {**found.report(), "cleanable": found.cleanable, "compactionDelayMs": found.delay_ms})


# ---- the state machine -----------------------------------------------------------------------------------------------
def _java_name(state: Cleaning) -> str:
    """A state as Kafka's messages print it; identity hashes are masked in recordings."""
    if isinstance(state, Paused):
        return f"LogCleaningPaused{{pausedCount={state.count}}}"
    return f"org.apache.kafka.storage.internals.log.LogCleaningState$LogCleaning{type(state).__name__}@HASH"


@states("CLN-11")
def _abort_and_pause(state: Cleaner, partition: str, caller: str) -> Step[Cleaner, Waiting]:
    """One more pause; of a partition in progress, its cleaning is to stop, and `caller` is the operation that waits."""
    match state.state(partition):
        case None:
            return Step(state.with_state(partition, Paused(1)), {"blocked": False})
        case InProgress():
            after = state.with_state(partition, Aborted())
            return Step(replace(after, blocked=state.blocked.with_(partition, caller)), {"blocked": True})
        case Paused(n):
            return Step(state.with_state(partition, Paused(n + 1)), {"blocked": False})
        case Aborted() as aborted:
            message = (
                f"Compaction for partition {partition} cannot be aborted and paused since it is in "
                f"{_java_name(aborted)} state."
            )
            return Step(state, Refused("CLN-11", ILLEGAL_STATE, message))


@states("CLN-14")
def _resume(state: Cleaner, partition: str) -> Step[Cleaner]:
    """One pause is undone."""
    match state.state(partition):
        case Paused(1):
            return Step(state.with_state(partition, None))
        case Paused(n):
            return Step(state.with_state(partition, Paused(n - 1)))
        case None:
            why = "it is not paused."
        case other:
            why = f"it is in {_java_name(other)} state."
    return Step(
        state, Refused("CLN-14", ILLEGAL_STATE, f"Compaction for partition {partition} cannot be resumed since {why}")
    )


@states("CLN-15", "CLN-16", "CLN-12")
def _done(state: Cleaner, partition: str, clause_id: str) -> Step[Cleaner]:
    """The cleaner thread is done, checkpoint apart. A waiting abort resumes as soon as it is let go (CLN-13)."""
    match state.state(partition):
        case None:
            return Step(state, Refused(clause_id, ILLEGAL_STATE, f"State for partition {partition} should exist."))
        case InProgress():
            return Step(state.with_state(partition, None), {"released": None})
        case Aborted():
            caller = state.blocked.get(partition)
            after = replace(state.with_state(partition, Paused(1)), blocked=state.blocked.without(partition))
            if caller == "abortCleaning":
                after = after.with_state(partition, None)
            return Step(after, {"released": caller})
        case Paused() as paused:
            message = f"In-progress partition {partition} cannot be in {_java_name(paused)} state."
            return Step(state, Refused(clause_id, ILLEGAL_STATE, message))


class Waiting(TypedDict):
    """Whether the caller waits for a cleaning to end: it returns when `doneCleaning` or `doneDeleting` releases it."""

    blocked: bool


@machine.operation("abortAndPauseCleaning", "CLN-11", "CLN-1", "CLN-12")
@a_partition("CLN-11")
@icontract.ensure(
    lambda state, partition, result: (
        isinstance(result.result, Refused) or result.result["blocked"] == (state.state(partition) == InProgress())
    ),
    "CLN-11 the caller waits just when the partition was in progress",
)
@refused_changes_nothing("CLN-11")
@legal_moves
@waiters
def abort_and_pause_cleaning(state: Cleaner, partition: str) -> Step[Cleaner, Waiting]:
    """Somebody needs the partition for itself."""
    return _abort_and_pause(state, partition, "abortAndPauseCleaning")


@machine.operation("abortCleaning", "CLN-13", "CLN-11", "CLN-12")
@a_partition("CLN-13")
@icontract.ensure(
    lambda state, partition, result: (
        isinstance(result.result, Refused) or result.result["blocked"] or result.state == state
    ),
    "CLN-13 an abort that need not wait leaves no trace",
)
@refused_changes_nothing("CLN-13")
@legal_moves
@waiters
def abort_cleaning(state: Cleaner, partition: str) -> Step[Cleaner, Waiting]:
    """Somebody needs a cleaning of the partition to end, and does not mind the next one."""
    step = _abort_and_pause(state, partition, "abortCleaning")
    if isinstance(step.result, Refused) or step.result["blocked"]:
        return step
    return Step(_resume(step.state, partition).state, step.result)


@machine.operation("resumeCleaning", "CLN-14", "CLN-1")
@a_partition("CLN-14")
@icontract.ensure(
    lambda state, partition, result: isinstance(result.result, Refused) != isinstance(state.state(partition), Paused),
    "CLN-14 what is paused can be resumed, and nothing else",
)
@refused_changes_nothing("CLN-14")
@legal_moves
@waiters
def resume_cleaning(state: Cleaner, partition: str) -> Step[Cleaner, None]:
    """Whoever paused the partition no longer needs it."""
    return _resume(state, partition)


class Released(TypedDict):
    """The operation that had waited and now returns, if any."""

    released: str | None


@machine.operation("doneCleaning", "CLN-15", "CLN-12")
@a_partition("CLN-15")
@icontract.ensure(
    lambda state, partition, result: (
        not isinstance(state.state(partition), Aborted) or result.state.checkpoints == state.checkpoints
    ),
    "CLN-15 an aborted cleaning is not checkpointed",
)
@icontract.ensure(
    lambda state, partition, result: (
        isinstance(result.result, Refused) or result.result["released"] == state.blocked.get(partition)
    ),
    "CLN-12 the caller that waited returns",
)
@refused_changes_nothing("CLN-15")
@legal_moves
@waiters
def done_cleaning(state: Cleaner, partition: str, end_offset: int) -> Step[Cleaner, Released]:
    """The cleaner thread that had the partition has finished, or has stopped because it was asked to."""
    step = _done(state, partition, "CLN-15")
    if state.state(partition) == InProgress():
        directory = state.logs[partition].config.log_dir
        return Step(checkpoint_updated(step.state, directory, {partition: end_offset}), step.result)
    return step


@machine.operation("doneDeleting", "CLN-16", "CLN-12")
@a_partition("CLN-16")
@icontract.ensure(
    lambda state, result: result.state.checkpoints == state.checkpoints, "CLN-16 deleting is not checkpointed"
)
@icontract.ensure(
    lambda state, partition, result: (
        isinstance(result.result, Refused) or result.result["released"] == state.blocked.get(partition)
    ),
    "CLN-12 the caller that waited returns",
)
@refused_changes_nothing("CLN-16")
@legal_moves
@waiters
def done_deleting(state: Cleaner, partition: str) -> Step[Cleaner, Released]:
    """The cleaner thread has deleted the old segments of a partition that it took by `deletableLogs`."""
    return _done(state, partition, "CLN-16")


@machine.operation("checkCleaningAborted", "CLN-17")
@a_partition("CLN-17")
@icontract.ensure(lambda state, result: result.state == state, "CLN-17 looking changes nothing")
@icontract.ensure(
    lambda state, partition, result: isinstance(result.result, Refused) == (state.state(partition) == Aborted()),
    "CLN-17 it throws just when the cleaning is aborted",
)
def check_cleaning_aborted(state: Cleaner, partition: str) -> Step[Cleaner, None]:
    """The cleaner thread looks up from its work."""
    if state.state(partition) == Aborted():
        return Step(state, Refused("CLN-17", ABORTED_EXCEPTION))
    return Step(state)


@machine.operation("pauseCleaningForNonCompactedPartitions", "CLN-18")
@icontract.ensure(
    lambda state, result: all(
        state.state(p) is None and not state.logs[p].config.compact and result.state.state(p) == Paused(1)
        for p in result.result
    ),
    "CLN-18 what retention gets was free, is not compacted, and is paused once",
)
@legal_moves
@waiters
def pause_cleaning_for_non_compacted_partitions(state: Cleaner) -> Step[Cleaner, list[str]]:
    """The retention task asks for work."""
    taken = sorted(p for p, log in state.known() if not log.config.compact and state.state(p) is None)
    after = state
    for p in taken:
        after = after.with_state(p, Paused(1))
    return Step(after, taken)


@machine.operation("deletableLogs", "CLN-19", "CLN-24")
@icontract.ensure(
    lambda state, result: all(
        free(state, p, state.logs[p]) and state.logs[p].config.compact and result.state.state(p) == InProgress()
        for p in result.result
    ),
    "CLN-19 what is taken was free and compacted, and is in progress",
)
@legal_moves
@waiters
def deletable_logs(state: Cleaner) -> Step[Cleaner, list[str]]:
    """A cleaner thread asks for logs to delete old segments of."""
    taken = sorted(p for p, log in state.known() if log.config.compact and free(state, p, log))
    after = state
    for p in taken:
        after = after.with_state(p, InProgress())
    return Step(after, taken)


# ---- uncleanable partitions ------------------------------------------------------------------------------------------
def _marked(state: Cleaner, directory: str, partition: str) -> Cleaner:
    marked = state.uncleanable.get(directory, frozenset()) | {partition}
    return replace(state, uncleanable=state.uncleanable.with_(directory, marked))


@machine.operation("markPartitionUncleanable", "CLN-24")
@a_partition("CLN-24")
@icontract.require(lambda state, dir: dir in state.checkpoints, "CLN-24 the directory is one of the manager's")
@icontract.ensure(lambda dir, partition, result: partition in result.state.uncleanable[dir], "CLN-24 it is marked")
@legal_moves
def mark_partition_uncleanable(state: Cleaner, dir: str, partition: str) -> Step[Cleaner, None]:
    """A cleaner thread got an unexpected exception from the partition's log."""
    return Step(_marked(state, dir, partition))


@machine.operation("maintainUncleanablePartitions", "CLN-25")
@icontract.ensure(
    lambda state, result: all(
        result.state.uncleanable[d] == {p for p in marked if state.knows(p)} for d, marked in state.uncleanable.items()
    ),
    "CLN-25 those known stay, the others go",
)
def maintain_uncleanable_partitions(state: Cleaner) -> Step[Cleaner, None]:
    """A cleaner thread, after each round."""
    kept = {d: frozenset(p for p in marked if state.knows(p)) for d, marked in state.uncleanable.items()}
    return Step(replace(state, uncleanable=Frozen(kept)))


@machine.operation("uncleanableBytes", "CLN-34", "CLN-24")
@icontract.require(lambda state, dir: dir in state.checkpoints, "CLN-34 the directory is one of the manager's")
@icontract.require(
    lambda state: not ambiguous(state), "CLN-30 no partition stands in the checkpoints of two directories"
)
@icontract.ensure(
    lambda state, dir, result: (
        0
        <= result.result
        <= sum(bytes_of(state.logs[p].segments[:-1]) for p in state.uncleanable[dir] if state.knows(p))
    ),
    "CLN-34 no more than what they have before their active segments",
)
@icontract.ensure(lambda state, result: result.state == state, "CLN-34 looking changes nothing")
def uncleanable_bytes(state: Cleaner, dir: str) -> Step[Cleaner, int]:
    """Somebody reads the gauge. Kafka asks the machine's clock for it, and no other."""
    last_clean = {p: offset for checkpoint in state.live_checkpoints() for p, offset in checkpoint.items()}
    marked = [p for p in sorted(state.uncleanable[dir]) if state.knows(p)]
    found = [measure(p, state.logs[p], last_clean.get(p), WALL_CLOCK_MS) for p in marked]
    return Step(state, sum(c.cleanable_bytes for c in found))


# ---- checkpoints -----------------------------------------------------------------------------------------------------
@states("CLN-26", "CLN-29")
def checkpoint_updated(
    state: Cleaner, directory: str, update: Mapping[str, int] | None = None, remove: str | None = None
) -> Cleaner:
    """Entries set, one removed, those of unknown partitions dropped. A directory that failed keeps its file."""
    if directory in state.failed:
        return state
    kept = {p: o for p, o in state.checkpoints[directory].items() if state.knows(p) and p != remove}
    return replace(state, checkpoints=state.checkpoints.with_(directory, Frozen({**kept, **(update or {})})))


@machine.operation("updateCheckpoints", "CLN-26", "CLN-29")
@icontract.require(lambda state, dir: dir in state.checkpoints, "CLN-26 the directory is one of the manager's")
@icontract.require(
    lambda update, offset: (update is None) == (offset is None), "CLN-26 a partition to set comes with its offset"
)
@icontract.ensure(
    lambda state, dir, update, offset, result: (
        dir in state.failed or update is None or result.state.checkpoints[dir][update] == offset
    ),
    "CLN-26 what is set is there",
)
@icontract.ensure(
    lambda state, dir, update, result: (
        dir in state.failed or all(state.knows(p) or p == update for p in result.state.checkpoints[dir])
    ),
    "CLN-26 no other entry of an unknown partition stays",
)
@icontract.ensure(
    lambda state, dir, result: result.state.checkpoints.without(dir) == state.checkpoints.without(dir),
    "CLN-26 other directories are left alone",
)
def update_checkpoints(
    state: Cleaner, dir: str, update: str | None = None, offset: int | None = None, remove: str | None = None
) -> Step[Cleaner, None]:
    """Somebody sets or removes an entry, or just has those of unknown partitions dropped."""
    new = {update: offset} if update is not None and offset is not None else None
    return Step(checkpoint_updated(state, dir, new, remove))


@machine.operation("maybeTruncateCheckpoint", "CLN-27", "CLN-29")
@a_partition("CLN-27")
@icontract.require(lambda state, dir: dir in state.checkpoints, "CLN-27 the directory is one of the manager's")
@icontract.ensure(
    lambda state, dir, partition, offset, result: (
        dir in state.failed
        or not state.knows(partition)
        or not state.logs[partition].config.compact
        or result.state.checkpoints[dir].get(partition, 0) <= max(offset, 0)
    ),
    "CLN-27 a compacted partition's entry is not above the offset",
)
def maybe_truncate_checkpoint(state: Cleaner, dir: str, partition: str, offset: int) -> Step[Cleaner, None]:
    """The log was truncated, and its active segment now begins at `offset`."""
    if not state.knows(partition) or not state.logs[partition].config.compact or dir in state.failed:
        return Step(state)
    entries = state.checkpoints[dir]
    if entries.get(partition, 0) <= offset:
        return Step(state)
    return Step(replace(state, checkpoints=state.checkpoints.with_(dir, entries.with_(partition, offset))))


@machine.operation("alterCheckpointDir", "CLN-28", "CLN-26", "CLN-29")
@a_partition("CLN-28")
@icontract.require(
    lambda state, source, dest: {source, dest} <= state.checkpoints.keys(),
    "CLN-28 the directories are the manager's",
)
@icontract.ensure(
    lambda state, partition, source, dest, result: (
        source in state.failed or source == dest or partition not in result.state.checkpoints[source]
    ),
    "CLN-28 the source keeps no entry",
)
@icontract.ensure(
    lambda state, partition, source, dest, result: (
        {source, dest} & state.failed
        or partition not in state.checkpoints[source]
        or result.state.checkpoints[dest][partition] == state.checkpoints[source][partition]
    ),
    "CLN-28 the destination has it",
)
def alter_checkpoint_dir(state: Cleaner, partition: str, source: str, dest: str) -> Step[Cleaner, None]:
    """The partition's log now lies in `dest`."""
    after = state
    offset = None if source in state.failed else state.checkpoints[source].get(partition)
    if offset is not None:
        after = checkpoint_updated(after, source, remove=partition)
        after = checkpoint_updated(after, dest, {partition: offset})
    if partition in state.uncleanable.get(source, frozenset()):
        left = replace(after, uncleanable=after.uncleanable.with_(source, after.uncleanable[source] - {partition}))
        after = _marked(left, dest, partition)
    return Step(after)


@machine.operation("handleLogDirFailure", "CLN-29")
@icontract.require(lambda state, dir: dir in state.checkpoints, "CLN-29 the directory is one of the manager's")
@icontract.ensure(
    lambda state, result: result.state == replace(state, failed=result.state.failed), "CLN-29 all else stays"
)
def handle_log_dir_failure(state: Cleaner, dir: str) -> Step[Cleaner, None]:
    """The directory's disk failed."""
    return Step(replace(state, failed=state.failed | {dir}))


@machine.operation("restart", "CLN-31", kind="restart")
@icontract.ensure(lambda state, result: result.state.checkpoints == state.checkpoints, "CLN-31 checkpoints outlive it")
def restart(state: Cleaner) -> Step[Cleaner, None]:
    """The broker crashes and comes back: what was in memory is gone, what was checkpointed is there."""
    return Step(
        replace(
            state,
            cleaning=Frozen(),
            blocked=Frozen(),
            uncleanable=Frozen({d: frozenset() for d in state.checkpoints}),
            failed=frozenset(),
        )
    )


# ---- what happens to the logs and to the clock -----------------------------------------------------------------------
@machine.operation("append", "CLN-32")
@icontract.require(lambda count: 0 <= count <= 1000, "CLN-32 at most a thousand batches at once")
@icontract.require(
    lambda state, partition: (
        state.logs[partition].segments[-1].size == 0 or state.logs[partition].segments[-1].first_batch_timestamp >= 0
    ),
    "CLN-32 the first batch of the active segment has a timestamp: without one it ages from when it was opened",
)
@a_partition("CLN-32")
@icontract.require(
    lambda then_high_watermark: then_high_watermark in ("logEndOffset", None),
    "CLN-32 the high watermark goes to the end or stays",
)
@icontract.ensure(
    lambda state, partition, count, result: (
        result.result == state.logs[partition].log_end_offset + count
        and result.state.logs[partition].log_end_offset == result.result
    ),
    "CLN-32 offsets advance by the number of records",
)
@icontract.ensure(
    lambda state, partition, result: (
        well_formed(result.state.logs[partition])
        and state.logs[partition].segments[:-1]
        == result.state.logs[partition].segments[: len(state.logs[partition].segments) - 1]
    ),
    "CLN-32 the log stays well-formed, and its closed segments as they are",
)
def append(
    state: Cleaner, partition: str, key: str, count: int, then_high_watermark: str | None = "logEndOffset"
) -> Step[Cleaner, int]:
    """`count` batches of one record each are appended, and the high watermark follows if told to."""
    log = appended(state.logs[partition], state.now, count, state.batch_bytes)
    if then_high_watermark is not None:
        log = replace(log, last_stable_offset=log.log_end_offset)
    return Step(state.with_log(partition, log), log.log_end_offset)


@machine.operation("maybeIncrementLogStartOffset", "CLN-32")
@a_partition("CLN-32")
@icontract.ensure(
    lambda state, partition, result: (
        result.state.logs[partition].log_start_offset >= state.logs[partition].log_start_offset
        and well_formed(result.state.logs[partition])
    ),
    "CLN-32 the log start never goes back, nor beyond what is stable",
)
@refused_changes_nothing("CLN-32")
def maybe_increment_log_start_offset(state: Cleaner, partition: str, offset: int) -> Step[Cleaner, bool]:
    """Records below `offset` are given up. Segments stay until somebody deletes them."""
    log = state.logs[partition]
    if offset > log.last_stable_offset:
        message = (
            f"Cannot increment the log start offset to {offset} of partition {partition} since it is larger than the "
            f"high watermark {log.last_stable_offset}"
        )
        return Step(state, Refused("CLN-32", OUT_OF_RANGE, message))
    if offset <= log.log_start_offset:
        return Step(state, False)
    return Step(state.with_log(partition, replace(log, log_start_offset=offset)), True)


def _log_of(view: Mapping[str, Any], log: Log) -> Log:
    segments = tuple(
        Segment(s["baseOffset"], s["size"], s.get("largestTimestamp", -1), s.get("firstBatchTimestamp", -1))
        for s in view["segments"]
    )
    return replace(
        log,
        log_start_offset=view["logStartOffset"],
        log_end_offset=view["logEndOffset"],
        last_stable_offset=view["lastStableOffset"],
        segments=segments,
    )


@machine.operation("logChanged", "CLN-32")
@icontract.require(
    lambda state, partition, log: well_formed(_log_of(log, state.logs[partition])), "CLN-32 the log is well-formed"
)
@a_partition("CLN-32")
def log_changed(state: Cleaner, partition: str, log: Mapping[str, Any]) -> Step[Cleaner, None]:
    """Compaction, retention, truncation, replication or a transaction changed the log: it now looks like this."""
    return Step(state.with_log(partition, _log_of(log, state.logs[partition])))


@machine.operation("updateConfig", "CLN-2")
@a_partition("CLN-2")
@icontract.require(lambda policy: policy in POLICIES, "CLN-2 the policy is one of Kafka's")
def update_config(state: Cleaner, partition: str, policy: str) -> Step[Cleaner, None]:
    """The log gets another cleanup policy. Nothing that is under way is stopped by that (see CLN-33)."""
    log = state.logs[partition]
    policies = policy.split(",")
    changed = replace(log.config, compact="compact" in policies, delete="delete" in policies)
    return Step(state.with_log(partition, replace(log, config=changed)))


@machine.operation("forgetLog", "CLN-2")
@a_partition("CLN-2")
def forget_log(state: Cleaner, partition: str) -> Step[Cleaner, None]:
    """The log is deleted, or taken offline: the manager no longer has it."""
    return Step(state.with_log(partition, replace(state.logs[partition], known=False)))


@machine.operation("restoreLog", "CLN-2")
@a_partition("CLN-2")
def restore_log(state: Cleaner, partition: str) -> Step[Cleaner, None]:
    """The manager has the log again."""
    return Step(state.with_log(partition, replace(state.logs[partition], known=True)))


@machine.operation("advance", "CLN-7", kind="time")
@icontract.require(lambda ms: ms >= 0, "CLN-7 the clock does not go back")
def advance(state: Cleaner, ms: int) -> Step[Cleaner, None]:
    """Time passes."""
    return Step(replace(state, now=state.now + ms))


TWO_SIZES = {"Partition": 2, "N": 1, "D": 1}
