"""Contracts that the operations of a leader share.

The clauses are those of the high watermark, `spec.storage.high_watermark`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from icontract import ensure

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.machine import Refused, Step
from kafkaspec.spec.storage.high_watermark_parts import replicas
from kafkaspec.spec.storage.high_watermark_parts.answers import Batch
from kafkaspec.spec.storage.high_watermark_parts.replicas import Partition, latest_epoch, maximal_isr
from kafkaspec.spec.storage.replication import BETWEEN_BROKERS

PARTITION = replicas.PARTITION

clause(
    """HWM-39: The caller's duty: of a partition epoch the controller tells one leader, one leader epoch and one set of
    in-sync replicas, of a higher one no lower leader epoch, and of one leader epoch one leader, which is in sync; this
    broker is one of the replicas, which are at most 100. A follower's answer is for its log end, from a leader whose
    log start is at most its high watermark and at most that offset; batches come in the order of their epochs. An
    answer of the controller is for a request that was sent. Time and offsets stay within 62 bits.
    [ReplicationControlManager and ReplicaManager, Kafka 4.3.0]""",
    without={
        "model": "the model's controller and followers keep it",
        "proof": "see the model",
        "impl": "the caller's duty: the impl relies on it and does not check it",
        "mutant": "beyond it nothing is promised, so that nothing can be broken",
    },
)
clause(
    """HWM-40: While a leader takes over what the controller says only if its partition epoch is higher than its
    own, each in-sync replica that the controller has is in the leader's maximal ISR, and has every record below the
    leader's high watermark. When the high watermark rises over a record, at least min.insync.replicas of the replicas
    that the leader knows as in sync have it by what they told the leader, which is one of them. [KIP-497, KIP-903]""",
    without=BETWEEN_BROKERS,
)

F = TypeVar("F", bound=Callable[..., Any])


def _after(result: Any) -> Partition | None:
    """The state after; None if it was refused."""
    if isinstance(result, Step):
        return None if isinstance(result.result, Refused) else result.state
    return None if isinstance(result, Refused) else result


@states()
def is_in_bounds(state: Partition) -> bool:
    """HWM-1: The log start is at most the high watermark, and that at most the log end, of a leader, of a follower and
    of a future replica, after every step. [Kafka Internals, ch. 03, 'Offset boundaries: LSO, LEO, HW, recovery point';
    UnifiedLog, Kafka 4.3.0; KAFKA-9491]"""
    logs = [state.log] if state.future is None else [state.log, state.future.log]
    return all(0 <= log.log_start <= log.high_watermark <= log.log_end for log in logs)


def in_bounds(function: F) -> F:
    """What every operation keeps."""
    text = "HWM-1 log start <= high watermark <= log end"
    return ensure(lambda result: (after := _after(result)) is None or is_in_bounds(after), text)(function)


@states()
def has_risen(before: Partition, after: Partition) -> bool:
    """HWM-2: The high watermark of a leader does not fall. [Kafka Internals, ch. 03, 'Offset boundaries: LSO, LEO, HW,
    recovery point'; {PARTITION}, maybeIncrementLeaderHW]"""
    return after.log.high_watermark >= before.log.high_watermark


def replicated(before: Partition, after: Partition) -> bool:
    """Whether a high watermark that rose is at or below the log end of everybody who counts."""
    if after.log.high_watermark <= before.log.high_watermark:
        return True
    members = maximal_isr(after)
    return all(f.log_end >= after.log.high_watermark for f in after.followers if f.id in members)


def of_a_leader(function: F) -> F:
    """What every operation of a leader keeps."""
    falls = "HWM-2 the high watermark does not fall"
    text = "HWM-3 it rises at most to the log end of each member of the maximal ISR"
    never = ensure(
        lambda state, result: (after := _after(result)) is None or has_risen(state, after),
        falls,
    )
    counted = ensure(lambda state, result: (after := _after(result)) is None or replicated(state, after), text)
    return in_bounds(never(counted(function)))


def unchanged(function: F) -> F:
    """Of what may be refused."""
    text = "HWM-10 what is refused changes nothing"
    return ensure(
        lambda state, result: not isinstance(result.result, Refused) or result.state == state,
        text,
    )(function)


def is_told_in_order(state: Partition, leader: int, leader_epoch: int, partition_epoch: int) -> bool:
    """Whether the controller may say so, after what it has said."""
    if partition_epoch < state.partition_epoch:
        return leader_epoch <= state.leader_epoch
    return leader_epoch > state.leader_epoch or (leader_epoch == state.leader_epoch and leader == state.leader)


def is_set(ids: Sequence[int]) -> bool:
    return 0 < len(ids) <= 100 and len(set(ids)) == len(ids)


def are_in_order(state: Partition, batches: Sequence[Batch]) -> bool:
    """Whether a leader may send these batches behind what the follower has."""
    latest = latest_epoch(state.log)
    epochs = [*([] if latest is None else [latest]), *(b.epoch for b in batches)]
    return len(batches) <= 10 and epochs == sorted(epochs)
