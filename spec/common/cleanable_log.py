"""A log as the cleaner's manager sees it, and what of it may be cleaned: configuration, offsets, segments, no records.

Source: Kafka Internals, ch. 04, "Choosing the filthiest log"; LogToClean, LogCleanerManager, UnifiedLog, LogSegment and
LogConfig, Kafka 4.3.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from kafkaspec.contract.clauses import ONE_CALL, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.numbers import Offset, Position, Timestamp
from kafkaspec.spec.common.kafka import INT_MAX, LONG_MAX, NO_TIMESTAMP

FILTHIEST = "Kafka Internals, ch. 04, 'Choosing the filthiest log'; LogCleanerManager, Kafka 4.3.0"

WEEK_MS: Final = 7 * 24 * 3600 * 1000
"""segment.ms, where it is not set."""


@dataclass(frozen=True)
class Segment:
    """One segment. `size` in bytes; timestamps in ms, -1 where there is none. (Of a segment without any timestamp Kafka
    takes the time of its file's last change for the largest.)"""

    base_offset: Offset
    size: Position = 0
    largest_timestamp: Timestamp = NO_TIMESTAMP
    first_batch_timestamp: Timestamp = NO_TIMESTAMP


def bytes_of(segments: Iterable[Segment]) -> int:
    return sum(s.size for s in segments)


@dataclass(frozen=True)
class Config:
    """The part of a topic's configuration that matters here, with Kafka's defaults."""

    log_dir: str
    compact: bool
    delete: bool
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    min_cleanable_dirty_ratio: float = 0.5
    segment_bytes: int = 2**30

    @property
    def segment_ms(self) -> int:
        """How old the active segment may grow: a week, but no older than compaction may wait."""
        return min(WEEK_MS, self.max_compaction_lag_ms) if self.compact and self.max_compaction_lag_ms > 0 else WEEK_MS

    def with_policy(self, policy: str) -> Config:
        """The same with another cleanup.policy, such as "compact,delete"."""
        policies = policy.split(",")
        return replace(self, compact="compact" in policies, delete="delete" in policies)


SETTINGS: Final = {
    "min.compaction.lag.ms": "min_compaction_lag_ms",
    "max.compaction.lag.ms": "max_compaction_lag_ms",
    "min.cleanable.dirty.ratio": "min_cleanable_dirty_ratio",
    "segment.bytes": "segment_bytes",
}
"""The settings that have defaults: Kafka's names, and the fields of `Config`."""


def config(settings: Mapping[str, Any]) -> Config:
    """One partition's configuration, by Kafka's names; the policy is compact unless it is set."""
    given = {field: settings[name] for name, field in SETTINGS.items() if name in settings}
    return Config(settings["logDir"], compact=True, delete=False, **given).with_policy(
        settings.get("cleanup.policy", "compact")
    )


@dataclass(frozen=True)
class LogExtent:
    """What a log holds: its offsets, and its segments, of which the last is the active one."""

    log_start_offset: Offset
    log_end_offset: Offset
    last_stable_offset: Offset
    segments: tuple[Segment, ...]

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


@dataclass(frozen=True)
class Log(LogExtent):
    """A partition's log. `known`: it is in the manager's map of logs."""

    config: Config
    known: bool = True

    def with_extent(self, extent: LogExtent) -> Log:
        """The same log, which now holds that."""
        return Log(**vars(extent), config=self.config, known=self.known)


def empty_log(config: Config) -> Log:
    return Log(0, 0, 0, (Segment(0),), config)


@states("CLN-32")
def well_formed(log: LogExtent) -> bool:
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
            and NO_TIMESTAMP <= s.first_batch_timestamp <= s.largest_timestamp <= (LONG_MAX if s.size else NO_TIMESTAMP)
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
        far = end - active.base_offset > INT_MAX
        if (full or old or far) and active.base_offset < end:
            active = Segment(end)
            segments.append(active)
        first = active.first_batch_timestamp if active.size else now
        segments[-1] = Segment(active.base_offset, active.size + batch_bytes, max(active.largest_timestamp, now), first)
        end += 1
    return replace(log, segments=tuple(segments), log_end_offset=end)


# ---- what may be cleaned of it ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class CleanableOffsets:
    """The part of a log that may be cleaned: [first_dirty_offset, first_uncleanable_dirty_offset)."""

    first_dirty_offset: Annotated[int, governs("CLN-9")]
    first_uncleanable_dirty_offset: Annotated[int, governs("CLN-8")]
    force_update_checkpoint: Annotated[bool, governs("CLN-9")]


@states()
def cleanable_offsets(log: Log, checkpoint: int | None, now: int) -> CleanableOffsets:
    """The part of a log that may be cleaned, by what is checkpointed.

    CLN-8: The first uncleanable offset is the smallest of the last stable offset, the active segment's base offset and,
    if min.compaction.lag.ms > 0, the base of the first non-active segment from the first dirty offset on whose
    largest timestamp is after now - min.compaction.lag.ms; but never below the first dirty offset. [{FILTHIEST};
    KAFKA-13194, KAFKA-9133, KAFKA-8724]

    CLN-9: The first dirty offset is the checkpointed one if that lies between log start and log end, else the log
    start; it is the log start, too, where nothing is checkpointed. The checkpoint needs a forced update if and only if
    there is one and it lies outside. [{FILTHIEST}]
    """
    valid = checkpoint is not None and log.log_start_offset <= checkpoint <= log.log_end_offset
    dirty = checkpoint if checkpoint is not None and valid else log.log_start_offset
    lag_ms = log.config.min_compaction_lag_ms
    young = [s.base_offset for s in log.non_active_from(dirty) if s.largest_timestamp > now - lag_ms]
    bounds = [log.last_stable_offset, log.active_base_offset, *(young[:1] if lag_ms > 0 else [])]
    return CleanableOffsets(dirty, max(dirty, min(bounds)), checkpoint is not None and not valid)


@states(without=ONE_CALL)
def compaction_delay_ms(log: Log, first_dirty_offset: int, now: int) -> int:
    """CLN-7: A log must be compacted now if the earliest positive first-batch timestamp of its non-active segments from
    the first dirty offset on is before now - max.compaction.lag.ms; the delay is the difference. [{FILTHIEST}; KIP-354]
    """
    stamps = [s.first_batch_timestamp for s in log.non_active_from(first_dirty_offset)]
    due = now - max(log.config.max_compaction_lag_ms, 0)
    return max(due - min((t for t in stamps if t > 0), default=LONG_MAX), 0)


@dataclass(frozen=True)
class LogToClean:
    """A log as the cleaner measures it."""

    partition: Annotated[str, governs("CLN-4", "CLN-2")]
    first_dirty_offset: Annotated[int, governs("CLN-9")]
    first_uncleanable_offset: Annotated[int, governs("CLN-8")]
    clean_bytes: Annotated[int, governs("CLN-5")]
    cleanable_bytes: Annotated[int, governs("CLN-5")]
    total_bytes: Annotated[int, governs("CLN-5")]
    cleanable_ratio: Annotated[float, governs("CLN-5")]
    need_compaction_now: Annotated[bool, governs("CLN-7")]


@dataclass(frozen=True)
class MeasuredLog(LogToClean):
    """The same, and what comes of it."""

    cleanable: Annotated[bool, governs("CLN-3")]
    compaction_delay_ms: Annotated[int, governs("CLN-7")]


@dataclass(frozen=True)
class Candidate:
    """A log that may be grabbed, measured."""

    partition: str
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    compaction_delay_ms: int
    force_update_checkpoint: bool
    min_ratio: float

    @property
    def total_bytes(self) -> int:
        return self.clean_bytes + self.cleanable_bytes

    @property
    @states("CLN-5")
    def cleanable_ratio(self) -> float:
        return float(self.cleanable_bytes) / float(self.total_bytes)

    @property
    def need_compaction_now(self) -> bool:
        return self.compaction_delay_ms > 0

    @property
    @states("CLN-2", "CLN-3")
    def cleanable(self) -> bool:
        """CLN-3: Such a log is cleanable if its cleanable ratio is strictly above min.cleanable.dirty.ratio, or if it
        must be compacted now (CLN-7) and has cleanable bytes. [{FILTHIEST}]"""
        overdue = self.need_compaction_now and self.cleanable_bytes > 0
        return self.total_bytes > 0 and (overdue or self.cleanable_ratio > self.min_ratio)


@states(without=ONE_CALL)
def measure(partition: str, log: Log, checkpoint: int | None, now: int) -> Candidate:
    """CLN-5: The cleanable ratio is cleanable / (clean + cleanable) bytes, 64-bit sums of whole segments divided as
    doubles: clean are the segments whose base offset is below the first dirty offset, cleanable those from the segment
    that holds the first dirty offset up to the segment that holds the first uncleanable offset, this one not included
    (none if both are one). A segment in which the dirty part begins counts in both. [LogToClean and
    LogCleanerManager.calculateCleanableBytes, Kafka 4.3.0; KAFKA-6030, KAFKA-9826]"""
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
