"""What the operations of the high watermark take and answer."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from kafkaspec.contract.governs import governs
from kafkaspec.contract.numbers import LeaderEpoch, Within

FewRecords = Annotated[int, Within(1, 1000)]


class AppendInfo(NamedTuple):
    """Offsets of what was appended, and whether the high watermark rose with it."""

    first_offset: Annotated[int, governs("HWM-28")]
    last_offset: Annotated[int, governs("HWM-28")]
    high_watermark_rose: Annotated[bool, governs("HWM-3")]


class Completion(NamedTuple):
    """Whether a producer's answer can be given, and the error in it."""

    reached: Annotated[bool, governs("HWM-29")]
    error: Annotated[str | None, governs("HWM-29", "HWM-10")]


class Deletion(NamedTuple):
    """The offset below which records are deleted, and the low watermark."""

    requested_offset: Annotated[int, governs("HWM-30")]
    low_watermark: Annotated[int, governs("HWM-31")]


class Batch(NamedTuple):
    """Records of one leader epoch."""

    epoch: LeaderEpoch
    records: FewRecords


class FetchRequest(NamedTuple):
    """What a follower asks its leader."""

    current_leader_epoch: int
    last_fetched_epoch: int | None
    offset: int
    log_start: int


# ---- what the controller answers -------------------------------------------------------------------------------------
NOT_DONE = ("INELIGIBLE_REPLICA", "OPERATION_NOT_ATTEMPTED")
TO_BE_TOLD = (
    "UNKNOWN_TOPIC_OR_PARTITION",
    "UNKNOWN_TOPIC_ID",
    "FENCED_LEADER_EPOCH",
    "INVALID_UPDATE_VERSION",
    "INVALID_REQUEST",
    "NEW_LEADER_ELECTED",
)
AlterPartitionError = Literal[
    "INELIGIBLE_REPLICA", "OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID",
    "FENCED_LEADER_EPOCH", "INVALID_UPDATE_VERSION", "INVALID_REQUEST", "NEW_LEADER_ELECTED",
    "UNKNOWN_SERVER_ERROR", "NOT_CONTROLLER", "REQUEST_TIMED_OUT",
]  # fmt: skip
