"""What happens to the logs that the cleaner's manager sees, and to the clock: operations of others than the manager.

Source: UnifiedLog, LogSegment.shouldRoll and LogConfig.maxSegmentMs, Kafka 4.3.0; KIP-354.
"""

from __future__ import annotations

from icontract import ensure, require

from kafkaspec.contract.codec import replace
from kafkaspec.contract.machine import Refused, Step
from kafkaspec.contract.numbers import Duration, Few, Offset
from kafkaspec.spec.common.cleanable_log import LogExtent, appended, well_formed
from kafkaspec.spec.common.cleaner_contracts import a_partition, unchanged_if_refused
from kafkaspec.spec.common.cleaner_state import Cleaner
from kafkaspec.spec.common.kafka import INT_MAX, OUT_OF_RANGE

POLICIES = ("compact", "delete", "compact,delete")
WALL_CLOCK_MS = 2**60
"""The machine's clock, as histories see it, whose own clock is simulated: long after all that they do."""
CLOCKS_FROM_MS = 1_767_225_600_000
"""What every machine's clock has passed: the beginning of 2026."""


@require(lambda count: 0 <= count <= 100, "CLN-32 at most a hundred batches at once")
@require(
    lambda state, partition: (
        (active := state.logs[partition].segments[-1]).size == 0 or active.first_batch_timestamp >= 0
    ),
    "CLN-32 the first batch of the active segment has a timestamp: without one it ages from when it was opened",
)
@require(
    lambda state, partition: (
        (active := (log := state.logs[partition]).segments[-1]).size > 0
        or log.log_end_offset - active.base_offset <= INT_MAX
    ),
    "CLN-32 an empty segment is not rolled: its largest timestamp would be its file's",
)
@a_partition("CLN-32")
@require(
    lambda then_high_watermark: then_high_watermark in ("logEndOffset", None),
    "CLN-32 the high watermark goes to the end or stays",
)
@ensure(
    lambda state, partition, count, result: (
        result.result == state.logs[partition].log_end_offset + count
        and result.state.logs[partition].log_end_offset == result.result
    ),
    "CLN-32 offsets advance by the number of records",
)
@ensure(
    lambda state, partition, result: (
        well_formed(result.state.logs[partition])
        and state.logs[partition].segments[:-1]
        == result.state.logs[partition].segments[: len(state.logs[partition].segments) - 1]
    ),
    "CLN-32 the log stays well-formed, and its closed segments as they are",
)
def append(
    state: Cleaner, partition: str, key: str, count: Few, then_high_watermark: str | None = "logEndOffset"
) -> Step[Cleaner, int]:
    """`count` batches of one record each are appended, and the high watermark follows if told to.

    CLN-32: A log, as the manager sees it, has log start <= last stable offset <= log end and segments in ascending
    order of their base offsets, the last of which is active and begins below the log end, or at it and is empty; an
    empty segment has no timestamps. An append adds to the active segment, and rolls to a new one at the log end when
    the batch would not fit into segment.bytes, or the segment's first batch is older than segment.ms (of a compacted
    log: or than max.compaction.lag.ms), or the log end is more than 2^31 - 1 above the segment's base offset.
    [UnifiedLog, LogSegment.shouldRoll and LogConfig.maxSegmentMs, Kafka 4.3.0; KIP-354]
    """
    log = appended(state.logs[partition], state.now, count, state.batch_bytes)
    if then_high_watermark is not None:
        log = replace(log, last_stable_offset=log.log_end_offset)
    return Step(state.with_log(partition, log), log.log_end_offset)


@a_partition("CLN-32")
@ensure(
    lambda state, partition, result: (
        result.state.logs[partition].log_start_offset >= state.logs[partition].log_start_offset
        and well_formed(result.state.logs[partition])
    ),
    "CLN-32 the log start never goes back, nor beyond what is stable",
)
@unchanged_if_refused("CLN-32")
def maybe_increment_log_start_offset(state: Cleaner, partition: str, offset: Offset) -> Step[Cleaner, bool]:
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


@require(lambda log: well_formed(log), "CLN-32 the log is well-formed")
@a_partition("CLN-32")
def log_changed(state: Cleaner, partition: str, log: LogExtent) -> Cleaner:
    """Compaction, retention, truncation, replication or a transaction changed the log: it now looks like this."""
    return state.with_log(partition, state.logs[partition].with_extent(log))


@a_partition("CLN-2")
@require(lambda policy: policy in POLICIES, "CLN-2 the policy is one of Kafka's")
def update_config(state: Cleaner, partition: str, policy: str) -> Cleaner:
    """The log gets another cleanup policy. Nothing that is under way is stopped by that (see CLN-33)."""
    log = state.logs[partition]
    return state.with_log(partition, replace(log, config=log.config.with_policy(policy)))


@a_partition("CLN-2")
def forget_log(state: Cleaner, partition: str) -> Cleaner:
    """The log is deleted, or taken offline: the manager no longer has it."""
    return state.with_log(partition, replace(state.logs[partition], known=False))


@a_partition("CLN-2")
def restore_log(state: Cleaner, partition: str) -> Cleaner:
    """The manager has the log again."""
    return state.with_log(partition, replace(state.logs[partition], known=True))


@require(lambda ms: ms >= 0, "CLN-7 the clock does not go back")
@require(lambda state, ms: state.now + ms < WALL_CLOCK_MS, "CLN-34 the clock stays behind the machine's")
def advance(state: Cleaner, ms: Duration) -> Cleaner:
    """Time passes."""
    return replace(state, now=state.now + ms)
