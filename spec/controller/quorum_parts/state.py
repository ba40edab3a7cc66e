"""What a controller of a quorum has: its memory and the past of it, who waits, and its periodic tasks.

The clauses are those of the quorum controller, `spec.controller.quorum`, whose operations use them.

Source: QuorumController and PeriodicTaskControlManager, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from kafkaspec.contract.clauses import ONE_CALL, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.numbers import Within
from kafkaspec.spec.common.metadata_log import (
    NO_EPOCH,
    NO_LOG_OFFSET,
    NO_TRANSACTIONS,
    TRANSACTIONS,
    Batch,
    PendingCall,
)

BECOMING = "Kafka Internals, ch. 11, Becoming (and ceasing to be) the active controller"

Room = Annotated[int, Within(1, 1000)]
Level = Annotated[int, Within(NO_TRANSACTIONS, TRANSACTIONS)]
Ms = Annotated[int, Within(1, 1_000_000)]
Epoch = Annotated[int, Within(0, 2**31 - 2)]
Offset = Annotated[int, Within(0, 2**62)]
Index = Annotated[int, Within(-1, 1000)]
Memory = Mapping[str, int]
NS_IN_MS: Final = 1_000_000
WRITE_NO_OP: Final = "writeNoOpRecord"
SESSION_TIMEOUT_NS: Final = 9_000_000_000
"""of a broker, unless it is configured"""
TASKS: Final = {
    "expireDelegationTokens": 300_000_000_000,
    "electUnclean": 300_000_000_000,
    "generatePeriodicPerformanceMessage": 60_000_000_000,
    WRITE_NO_OP: 0,
    "maybeFenceStaleBroker": SESSION_TIMEOUT_NS // 8,
}
"""Periodic tasks and their periods in ns, in the order in which they are scheduled: that of a Java HashMap. That of
`writeNoOpRecord` is configured."""


class ScheduledTask(NamedTuple):
    """When a periodic task is run next."""

    deadline_ns: int
    name: str


@dataclass(frozen=True)
class Controller:
    """The state."""

    cap: int
    """maxRecordsPerBatch"""
    level: int
    """the metadata version to begin with, of the bootstrap metadata"""
    elr: bool = False
    """whether these have the feature of eligible leader replicas"""
    idle_ms: int | None = None
    """the period of no-op records, if there are any"""
    claim: int = NO_EPOCH
    """the epoch in which it is active"""
    committed: int = NO_LOG_OFFSET
    committed_epoch: int = NO_EPOCH
    stable: int = NO_LOG_OFFSET
    next_write: int = NO_LOG_OFFSET
    begun: int = NO_LOG_OFFSET
    """where the open transaction begins"""
    memory: tuple[tuple[str, int], ...] = ()
    past: tuple[tuple[int, tuple[tuple[str, int], ...]], ...] = ((NO_LOG_OFFSET, ()),)
    """the memory at offsets, rising"""
    purgatory: tuple[PendingCall, ...] = ()
    calls: int = 0
    faults: int = 0
    halted: bool = False
    epoch: int = 0
    """Raft's, as far as it was told"""
    end: int = 0
    """of Raft's log on this node"""
    sent: tuple[Batch, ...] = ()
    """what of that log it has not been handed yet"""
    now: int = 0
    """ns since it started"""
    scheduled: tuple[ScheduledTask, ...] = ()
    """the earliest first"""

    @property
    def active(self) -> bool:
        return self.claim != NO_EPOCH

    @property
    def handed(self) -> int:
        """The offset up to which it has been handed Raft's log, not included."""
        return self.sent[0].base if self.sent else self.end


# ---- memory and its past ---------------------------------------------------------------------------------------------
def with_snapshot(state: Controller, offset: int) -> Controller | None:
    """With a copy of memory under that offset, unless there is one; None if there is a later one."""
    latest = state.past[-1][0] if state.past else NO_LOG_OFFSET - 1
    if latest > offset:
        return None
    return state if latest == offset else replace(state, past=(*state.past, (offset, state.memory)))


def reverted(state: Controller, offset: int) -> Controller | None:
    """With memory as it was at an offset; None if there is no copy."""
    memory = dict(state.past).get(offset)
    if memory is None:
        return None
    return replace(state, memory=memory, past=tuple(p for p in state.past if p[0] <= offset))


def new(state: Controller) -> Controller:
    """As it was when it started."""
    return Controller(state.cap, state.level, state.elr, state.idle_ms)


def remembered(memory: tuple[tuple[str, int], ...], name: str, value: int) -> tuple[tuple[str, int], ...]:
    return tuple(sorted({**dict(memory), name: value}.items()))


def behind_the_last(state: Controller, call: int, response: int) -> Controller:
    """With a call that waits where the last one does."""
    last = PendingCall(state.purgatory[-1].offset, call, response)
    return replace(state, purgatory=(*state.purgatory, last))


# ---- periodic tasks --------------------------------------------------------------------------------------------------
@states(without={"QRM-42": ONE_CALL})
def tasks(state: Controller) -> dict[str, int]:
    """QRM-42: A controller has a periodic task that writes a no-op record, if an interval is configured for it, and
    always one that fences a broker whose session has timed out (an eighth of the session timeout, but at least 1 ms),
    one that elects unclean leaders and one that removes delegation tokens (5 minutes each), and one that logs how long
    events took (a minute). The last four write nothing where there are no brokers with a session, partitions without a
    leader, and tokens: what they write otherwise is the rule of others. [Kafka Internals, ch. 11, Periodic background
    tasks; QuorumController.registerWriteNoOpRecord and the like, Kafka 4.3.0]"""
    no_op = {} if state.idle_ms is None else {WRITE_NO_OP: state.idle_ms * NS_IN_MS}
    return {name: period or no_op[name] for name, period in TASKS.items() if period or name in no_op}


def scheduled(state: Controller, name: str) -> Controller:
    """With a task scheduled its period from now; a nanosecond later where another one is at that time (EVQ-7)."""
    deadline = state.now + tasks(state)[name]
    while any(t.deadline_ns == deadline for t in state.scheduled):
        deadline += 1
    return replace(state, scheduled=tuple(sorted((*state.scheduled, ScheduledTask(deadline, name)))))


@states()
def all_scheduled(state: Controller) -> Controller:
    """QRM-39: A controller that becomes active schedules its periodic tasks when the records of its activation, if
    there are any, are applied, so that tasks see their effect; each is run first when its period has passed, no two at
    one time (EVQ-7). If the activation fails none is scheduled. [{BECOMING};
    QuorumController.CompleteActivationEvent.processBatchEndOffset, Kafka 4.3.0; PER-3]"""
    for name in tasks(state):
        state = scheduled(state, name)
    return state


@states()
def none_scheduled(state: Controller) -> Controller:
    """QRM-40: Who renounces leadership takes its periodic tasks out of the queue: a standby runs none. [{BECOMING};
    QuorumController.renounce, Kafka 4.3.0; PER-4]"""
    return replace(state, scheduled=())
