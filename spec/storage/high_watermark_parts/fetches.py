"""What a fetch finds in a broker's log, and why it is refused.

The clauses are those of the high watermark, `spec.storage.high_watermark`, whose operations use them.

Source: KIP-320, KIP-595; Partition and UnifiedLog, Kafka 4.3.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from kafkaspec.contract.clauses import ONE_CALL, states
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Refused
from kafkaspec.spec.common import transactional_log
from kafkaspec.spec.common.kafka import OUT_OF_RANGE
from kafkaspec.spec.storage.high_watermark_parts import replicas
from kafkaspec.spec.storage.high_watermark_parts.replicas import NOT_KNOWN, Partition, end_of_epoch

PARTITION = replicas.PARTITION
LOG = transactional_log.LOG
ERRORS = "org.apache.kafka.common.errors."

NOT_LEADER = Refused("HWM-10", f"{ERRORS}NotLeaderOrFollowerException")
FENCED = Refused("HWM-9", f"{ERRORS}FencedLeaderEpochException")
UNKNOWN_EPOCH = Refused("HWM-9", f"{ERRORS}UnknownLeaderEpochException")
NOT_THERE = Refused("HWM-13", OUT_OF_RANGE)

ONE_BROKER = {
    "model": "the protocol between brokers is modelled as RPN; here it is one call",
    "proof": "the protocol between brokers is proved as RPN; here it is one call",
}


class EpochEnd(NamedTuple):
    """An epoch and where it ends."""

    epoch: int
    end_offset: int


@dataclass(frozen=True)
class Fetch:
    """What a fetch is answered: where the logs diverge, or up to where there are records to read; and the bounds of the
    leader's log before anything came of it."""

    diverging: Annotated[EpochEnd | None, governs("HWM-12", "HWM-35")]
    end: Annotated[int | None, governs("HWM-37")]
    """the records end below it; None where the logs diverge"""
    high_watermark: Annotated[int, governs("HWM-3")]
    log_start: Annotated[int, governs("HWM-30")]
    log_end: Annotated[int, governs("HWM-28")]


@states(without=ONE_BROKER)
def refused_epoch(state: Partition, current_leader_epoch: int | None) -> Refused | None:
    """HWM-9: Who names a lower leader epoch than the broker's own gets FENCED_LEADER_EPOCH, who names a higher one
    UNKNOWN_LEADER_EPOCH, before all else. Without one nothing is compared. [KIP-320; {PARTITION},
    checkCurrentLeaderEpoch]"""
    if current_leader_epoch is None or current_leader_epoch == state.leader_epoch:
        return None
    return FENCED if current_leader_epoch < state.leader_epoch else UNKNOWN_EPOCH


def refused_log(state: Partition, current_leader_epoch: int | None, only_leader: bool) -> Refused | None:
    """Why the log cannot be asked; None if it can. Nothing was heard of the partition: there is no log."""
    refused = refused_epoch(state, current_leader_epoch)
    if refused is not None:
        return refused
    return NOT_LEADER if state.leader is None or (only_leader and not state.is_leader) else None


@states(without={"HWM-12": ONE_BROKER, "HWM-13": ONE_CALL})
def read(state: Partition, offset: int, last_fetched_epoch: int | None, follower: bool) -> Fetch | Refused:
    """What a fetch from an offset finds.

    HWM-12: A fetch names the epoch of the last record that it has. If the broker's log has no such epoch, but lower
    ones, or ends that epoch below the offset, the logs diverge: the answer is where the highest epoch that is not above
    it ends, without records, and the follower does not count for it. [KIP-320, KIP-595; {PARTITION}, readRecords]

    HWM-13: A fetch is refused as out of range if its offset is below the log start or above the log end, or if the end
    of the epoch that it names is unknown to the broker's log. [{PARTITION}, readRecords; {LOG}, read]
    """
    log = state.log
    bounds = (log.high_watermark, log.log_start, log.log_end)
    if last_fetched_epoch is not None:
        end = end_of_epoch(log, last_fetched_epoch)
        if end.end_offset == NOT_KNOWN or offset < log.log_start:
            return NOT_THERE
        if end.epoch < last_fetched_epoch or end.end_offset < offset:
            return Fetch(EpochEnd(end.epoch, end.end_offset), None, *bounds)
    if not log.log_start <= offset <= log.log_end:
        return NOT_THERE
    return Fetch(None, log.log_end if follower else max(offset, log.high_watermark), *bounds)
