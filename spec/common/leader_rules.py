"""What a leader asks of one batch and of one record: rules of the record batch (BAT-20 to BAT-22), which the validator
asks of every format.

Source: LogValidator, Kafka 4.3.0.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from kafkaspec.contract.clauses import states
from kafkaspec.spec.common import record_format as fmt
from kafkaspec.spec.common.kafka import NO_TIMESTAMP

INVALID_TIMESTAMP = "org.apache.kafka.common.errors.InvalidTimestampException"
VALIDATION = "org.apache.kafka.storage.internals.log.RecordValidationException"

Wrong = Literal["offset range", "count", "inconsistent", "control", "sequence"]


@states("BAT-20")
def wrong_batch(
    last_offset_delta: int, count: int, control: bool, producer_id: int, base_sequence: int
) -> Wrong | None:
    """Why a client's batch of format 2 is refused as a whole: the first reason."""
    if last_offset_delta + 1 <= 0:
        return "offset range"
    if count <= 0:
        return "count"
    if last_offset_delta + 1 != count:
        return "inconsistent"
    if control:
        return "control"
    return "sequence" if producer_id > fmt.NO_PRODUCER and base_sequence < 0 else None


class Limits(NamedTuple):
    """What a topic asks of its records. `create_time`: its timestamp type; the times in ms."""

    compacted: bool
    create_time: bool
    now: int
    before_ms: int
    after_ms: int


@states("BAT-22")
def is_out_of_range(timestamp: int, limits: Limits) -> bool:
    """Whether a timestamp, not -1, is further from now than the topic allows."""
    age = fmt.signed(limits.now - timestamp, 64)
    return age > limits.before_ms or fmt.signed(-age, 64) > limits.after_ms


@states("BAT-21", "BAT-22")
def fault(key: bytes | None, timestamp: int, appended: bool, limits: Limits) -> str | None:
    """The clause for which a record is refused. `appended`: its producer set LogAppendTime."""
    if limits.compacted and key is None:
        return "BAT-21"
    untimely = limits.create_time and timestamp != NO_TIMESTAMP and is_out_of_range(timestamp, limits)
    return "BAT-22" if appended or untimely else None
