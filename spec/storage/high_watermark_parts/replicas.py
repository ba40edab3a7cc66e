"""What a broker knows of a partition that it has a replica of: its own log, its followers, who is in sync, and the
change of the in-sync replicas that it has asked for; and a future replica in another of its log directories.

The clauses are those of the high watermark, `spec.storage.high_watermark`, whose operations use them.

Source: Kafka Internals, ch. 03, "Offset boundaries: LSO, LEO, HW, recovery point"; KIP-497, KIP-841, KIP-903; Partition
and Replica, Kafka 4.3.0.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from kafkaspec.contract.clauses import A_QUESTION, states
from kafkaspec.contract.codec import partial, replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.numbers import BrokerEpoch, NodeId
from kafkaspec.spec.storage import leader_epochs as lec
from kafkaspec.spec.storage import replication
from kafkaspec.spec.storage.leader_epochs import EndOffset, Entries, Entry

PARTITION = replication.PARTITION
MANAGER = "ReplicaManager, Kafka 4.3.0"
REPLICA = "Replica and ReplicaState, Kafka 4.3.0"

LOCAL = 1
"""The id of the broker whose partition this is."""
NOT_KNOWN = -1
"""The offset of a follower of which nothing is known; and the broker epoch that is not compared."""


class Broker(NamedTuple):
    """A broker as the metadata has it."""

    id: NodeId
    epoch: BrokerEpoch
    fenced: bool
    shutting_down: bool


class Member(NamedTuple):
    """A member of the in-sync replicas that a leader proposes, and the epoch of the broker that was seen there."""

    id: int
    broker_epoch: int


@dataclass(frozen=True)
class Change:
    """An AlterPartition request for this partition: the proposed in-sync replicas, and for which epochs."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[Member, ...]
    leader_recovery_state: Literal["RECOVERED"] = "RECOVERED"

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(m.id for m in self.isr)


@dataclass(frozen=True)
class Follower:
    """What a leader knows of a follower, from its fetches."""

    id: int
    log_end: int = NOT_KNOWN
    log_start: int = NOT_KNOWN
    last_fetch_leader_end: int = 0
    """the leader's log end when it last fetched"""
    last_fetch_ms: int = 0
    last_caught_up_ms: int = 0
    broker_epoch: int | None = None


@dataclass(frozen=True)
class Log:
    """Where this replica's log begins and ends, up to where it is replicated, and which epoch begins where."""

    log_start: int = 0
    log_end: int = 0
    high_watermark: int = 0
    epochs: Entries = ()


@dataclass(frozen=True)
class FutureReplica:
    """A replica in another log directory of the broker, that is to take the place of the current one."""

    directory: int
    leader_epoch: int
    """in which it fetches"""
    log: Log = Log()
    offset: int = 0
    """from which it fetches next, or at which it truncates where no epoch says more"""
    is_truncating: bool = True
    reassignment: Literal["NONE", "QUEUED", "ACCEPTED"] = "NONE"
    """whether the controller was asked to note the directory, or has"""


class Assignment(NamedTuple):
    """A request that the controller note the directory of this replica, and whether a future replica is to be there."""

    directory: int
    of_future: bool


@dataclass(frozen=True)
class Config:
    """What is configured: of the broker, and of the topic."""

    replica_lag_time_max_ms: int
    min_insync_replicas: int
    broker_epoch: int


@dataclass(frozen=True)
class Partition:
    """The state. `leader` is None until the broker first hears of the partition, -1 while nobody leads."""

    config: Config
    now: int
    brokers: tuple[Broker, ...] = ()
    leader: int | None = None
    leader_epoch: int = -1
    partition_epoch: int = 0
    epoch_start: int | None = None
    """the log end at which the leader's epoch began; None unless this broker leads"""
    isr: tuple[int, ...] = ()
    """as the controller last told it; nothing on a follower"""
    recovering: bool = False
    """the controller elected a leader that was not in sync, and it has not said that it recovered"""
    pending: Change | None = None
    """the change that the leader takes for possible"""
    in_flight: Change | None = None
    """the request that is not answered; the leader may have forgotten why it was sent"""
    followers: tuple[Follower, ...] = ()
    log: Log = Log()
    last_fetched_epoch: int | None = None
    """the epoch that a follower names in its next fetch"""
    directory: int | None = None
    """the directory of the log; None until there is a log"""
    wanted_directory: int | None = None
    """the directory that was asked for before there was a log"""
    future: FutureReplica | None = None
    assignment: Assignment | None = None
    """the request about a directory that is not answered"""

    @property
    def is_leader(self) -> bool:
        return self.leader == LOCAL

    def broker(self, id: int) -> Broker | None:
        return next((b for b in self.brokers if b.id == id), None)

    def follower(self, id: int) -> Follower | None:
        return next((f for f in self.followers if f.id == id), None)

    def with_log(self, **changes: Any) -> Partition:
        return replace(self, log=replace(self.log, **changes))


# ---- who counts ------------------------------------------------------------------------------------------------------
@states()
def maximal_isr(state: Partition) -> frozenset[int]:
    """HWM-4: The maximal ISR of a leader is the in-sync replicas that the controller last told it, and, while it has
    asked to take a replica in, that one: until the leader knows better, both may be what the controller has. A replica
    that it has asked to take out stays in it. [KIP-497; {PARTITION}]"""
    return frozenset(state.isr) | frozenset(state.pending.ids if state.pending is not None else ())


@states(without=A_QUESTION)
def is_caught_up(state: Partition, follower: Follower) -> bool:
    """HWM-5: A follower is caught up if its log end is the leader's, or if it last was at most
    replica.lag.time.max.ms ago. [{REPLICA}]"""
    behind_ms = state.now - follower.last_caught_up_ms
    return follower.log_end == state.log.log_end or behind_ms <= state.config.replica_lag_time_max_ms


@states(
    without={
        "model": "who is eligible is the controller's choice there, at any moment",
        "proof": "see the model",
    }
)
def is_eligible(state: Partition, follower: Follower) -> bool:
    """HWM-6: A follower may join the in-sync replicas if and only if the metadata has its broker, neither fenced nor
    shutting down, and the broker epoch of its last fetch is that broker's, or -1, which is not compared. [KIP-841,
    KIP-903; {PARTITION}, isReplicaIsrEligible; KAFKA-13916, KAFKA-14617]"""
    broker = state.broker(follower.id)
    if broker is None or broker.fenced or broker.shutting_down:
        return False
    return follower.broker_epoch in (NOT_KNOWN, broker.epoch)


def min_isr(state: Partition) -> int:
    """min.insync.replicas, or the number of replicas where that is smaller."""
    return min(state.config.min_insync_replicas, len(state.followers) + 1)


@states()
def with_high_watermark_raised(state: Partition) -> Partition:
    """HWM-3: A leader looks at its high watermark when it takes over what the controller says, appends, hears that a
    follower has fetched from another offset than before, or learns that a change of the in-sync replicas succeeded.
    Nothing happens if the in-sync replicas are fewer than min.insync.replicas, or than all replicas where those are
    fewer. Otherwise let o be the smallest log end among its own, those of the maximal ISR, and those of the caught-up
    followers that may join: the high watermark rises to o if it is lower. [KIP-497; {PARTITION},
    maybeIncrementLeaderHW; KAFKA-13091, KAFKA-15021, KAFKA-15583]"""
    if len(state.isr) < min_isr(state):
        return state
    members = maximal_isr(state)
    waited_for = [
        f.log_end for f in state.followers if f.id in members or (is_caught_up(state, f) and is_eligible(state, f))
    ]
    offset = min([state.log.log_end, *waited_for])
    return state.with_log(high_watermark=offset) if offset > state.log.high_watermark else state


# ---- changes of the in-sync replicas ---------------------------------------------------------------------------------
def proposed(state: Partition, isr: Iterable[int]) -> Change:
    """The request for these in-sync replicas: a broker's epoch is that of its last fetch, -1 where there was none."""
    known = {f.id: f.broker_epoch for f in state.followers} | {LOCAL: state.config.broker_epoch}
    epochs = {id: epoch for id, epoch in known.items() if epoch is not None}
    members = tuple(Member(id, epochs.get(id, NOT_KNOWN)) for id in sorted(isr))
    return Change(state.leader_epoch, state.partition_epoch, members)


@states()
def with_change(state: Partition, isr: Iterable[int]) -> Partition:
    """The state of a leader that proposes these in-sync replicas.

    HWM-16: A leader asks the controller for a change by one AlterPartition at a time. It names leader epoch and
    partition epoch, as state of recovery that the leader has recovered, and each member with the broker epoch of its
    last fetch: -1 where it has not fetched, its own broker's for itself. While an earlier one is not answered, it is
    not attempted: the in-sync replicas stay, and nothing is pending. [KIP-497, KIP-903; DefaultAlterPartitionManager,
    Kafka 4.3.0; {PARTITION}, addBrokerEpochToIsr]
    """
    if state.in_flight is not None:
        return state
    change = proposed(state, isr)
    return replace(state, pending=change, in_flight=change)


@states()
def maybe_expanded(state: Partition, id: int) -> Partition:
    """HWM-14: When a follower fetches, the leader asks to take it into the in-sync replicas if and only if it is none
    of them, no change is pending, it may join, and its log end is at least the high watermark and at least the offset
    at which the leader's own epoch began: below that the leader does not know what is committed. [KIP-497; {PARTITION},
    isFollowerInSync; KAFKA-7128]"""
    follower = state.follower(id)
    if follower is None or id in state.isr or state.pending is not None or not is_eligible(state, follower):
        return state
    begun = state.epoch_start is not None and follower.log_end >= state.epoch_start
    if not begun or follower.log_end < state.log.high_watermark:
        return state
    return with_change(state, {*state.isr, id})


def out_of_sync(state: Partition) -> frozenset[int]:
    """The in-sync replicas that are not caught up; one of which nothing is known is none of the followers."""
    lagging = {f.id for f in state.followers if not is_caught_up(state, f)}
    unknown = {id for id in state.isr if id != LOCAL and state.follower(id) is None}
    return frozenset(state.isr) & (lagging | unknown)


# ---- followers -------------------------------------------------------------------------------------------------------
@states(
    without={
        "model": "how long a follower may lag is a matter of time: there, a set of those that do not",
        "proof": "see the model",
    }
)
def after_fetch(follower: Follower, state: Partition, offset: int, log_start: int, broker_epoch: int) -> Follower:
    """HWM-7: A follower's fetch tells its log end, which is the offset that it fetches from, its log start and its
    broker epoch. It is caught up now if that offset is the leader's log end; it was when it last fetched if the offset
    has reached what was the leader's log end then. So one that is always a fetch behind is in sync. [{REPLICA};
    KIP-903]"""
    end = state.log.log_end
    caught_up = follower.last_caught_up_ms
    if offset >= end:
        caught_up = max(caught_up, state.now)
    elif offset >= follower.last_fetch_leader_end:
        caught_up = max(caught_up, follower.last_fetch_ms)
    return Follower(
        follower.id,
        offset,
        log_start,
        max(end, follower.last_fetch_leader_end),
        state.now,
        caught_up,
        broker_epoch,
    )


@states(
    without={
        "model": "how long a follower may lag is a matter of time: there, a set of those that do not",
        "proof": "see the model",
    }
)
def after_election(follower: Follower, state: Partition, in_sync: bool, was_leader: bool) -> Follower:
    """HWM-25: A leader of a new epoch takes a follower for caught up now if it is in sync, and for never caught up if
    not. One that did not lead before forgets all else that it knew of its followers: how far their logs reach too. One
    that did keeps log end, log start and broker epoch, and takes its own log end for that of the last fetch.
    [{REPLICA}, resetReplicaState]"""
    now = state.now if in_sync else 0
    if not was_leader:
        return Follower(follower.id, last_fetch_leader_end=NOT_KNOWN, last_caught_up_ms=now)
    return replace(follower, last_fetch_leader_end=state.log.log_end, last_fetch_ms=now, last_caught_up_ms=now)


# ---- the log ---------------------------------------------------------------------------------------------------------
def rule(operation: Callable[..., Any]) -> Callable[..., Any]:
    """What an operation of the leader epochs does, without its contracts: those are about its callers."""
    body: Callable[..., Any] = inspect.unwrap(operation)
    return body


def end_of_epoch(log: Log, epoch: int) -> EndOffset:
    """Where an epoch ended in this log; -1 and -1 where that is unknown."""
    found: EndOffset = rule(lec.end_offset_for)(lec.Cache(log.epochs), epoch, log.log_end)
    return found


def with_epoch(log: Log, epoch: int, offset: int) -> Log:
    return replace(log, epochs=lec.assigned(log.epochs, Entry(epoch, offset)))


def cut(log: Log, offset: int) -> Log:
    """The log without what is at an offset or beyond."""
    epochs = lec.cut_from_end(log.epochs, offset)
    if offset >= log.log_end:
        return replace(log, epochs=epochs)
    return Log(min(log.log_start, offset), offset, min(log.high_watermark, offset), epochs)


def latest_epoch(log: Log) -> int | None:
    return log.epochs[-1].epoch if log.epochs else None


def truncation(log: Log, epoch: int, end_offset: int) -> tuple[int, bool]:
    """Where a log is cut that is told of an epoch of another one, and where that ends; and whether it has that epoch,
    or none as low, so that it need not ask again."""
    own = end_of_epoch(log, epoch)
    if own.end_offset == NOT_KNOWN:
        return min(end_offset, log.log_end), True
    if own.epoch != epoch:
        return min(own.end_offset, log.log_end), False
    return min(own.end_offset, end_offset, log.log_end), True


def reset_to(log: Log, start: int, end: int) -> Log:
    """The log of one whose fetch was out of range, and whose leader's log begins and ends there."""
    if end < log.log_end:
        return cut(log, end)
    return Log(start, start, start) if start > log.log_end else log


def with_high_watermark(log: Log, offset: int) -> Log:
    """The log with a high watermark, as far as the log goes."""
    return replace(log, high_watermark=min(max(offset, log.log_start), log.log_end))


def with_log_fetched(state: Partition, log: Log) -> Partition:
    """The state of a follower with that log, whose latest epoch is named in its next fetch."""
    return replace(state, log=log, last_fetched_epoch=latest_epoch(log))


def begun_at(log: Log, offset: int) -> Log:
    """The log whose start rose to an offset."""
    if offset <= log.log_start:
        return log
    return replace(log, log_start=offset, epochs=lec.cut_from_start(log.epochs, offset))


def low_watermark_of(state: Partition) -> int:
    """The smallest log start of the leader, of its future replica, and of the followers whose brokers are alive."""
    alive = {b.id for b in state.brokers if not b.fenced}
    future = [] if state.future is None else [state.future.log.log_start]
    return min([state.log.log_start, *future, *(f.log_start for f in state.followers if f.id in alive)])


# ---- what is observed ------------------------------------------------------------------------------------------------
@partial
@dataclass(frozen=True)
class Observation:
    """What is compared after every call."""

    leader: Annotated[int | None, governs("HWM-24", "HWM-26", "HWM-23")]
    leader_epoch: Annotated[int, governs("HWM-24", "HWM-26", "HWM-23")]
    partition_epoch: Annotated[int, governs("HWM-17", "HWM-24", "HWM-26", "HWM-18", "HWM-23")]
    epoch_start: Annotated[int | None, governs("HWM-24", "HWM-26")]
    isr: Annotated[tuple[int, ...], governs("HWM-17", "HWM-24", "HWM-26", "HWM-19", "HWM-18", "HWM-22")]
    maximal_isr: Annotated[tuple[int, ...], governs("HWM-4", "HWM-14", "HWM-15", "HWM-17", "HWM-19", "HWM-20")]
    recovering: Annotated[bool, governs("HWM-24", "HWM-26")]
    in_flight: Annotated[Change | None, governs("HWM-16", "HWM-14", "HWM-15", "HWM-21", "HWM-22")]
    is_pending: Annotated[bool, governs("HWM-16", "HWM-17", "HWM-18", "HWM-19", "HWM-20", "HWM-24")]
    followers: Annotated[tuple[Follower, ...], governs("HWM-7", "HWM-25", "HWM-8", "HWM-24", "HWM-26")]
    log_start: Annotated[int, governs("HWM-30", "HWM-32", "HWM-33", "HWM-34", "HWM-1")]
    log_end: Annotated[int, governs("HWM-28", "HWM-32", "HWM-33", "HWM-34", "HWM-1")]
    high_watermark: Annotated[int, governs("HWM-3", "HWM-2", "HWM-32", "HWM-33", "HWM-34", "HWM-1")]
    epochs: Annotated[Entries, governs("HWM-24", "HWM-28", "HWM-32", "HWM-33", "HWM-34", "HWM-30", "HWM-45")]
    directory: Annotated[int | None, governs("HWM-41", "HWM-44")]
    future: Annotated[FutureReplica | None, governs("HWM-41", "HWM-42", "HWM-43", "HWM-44", "HWM-46", "HWM-48")]
    assignment: Annotated[int | None, governs("HWM-44", "HWM-47")]


def observe(state: Partition) -> Observation:
    """What Kafka's class shows of itself; who is eligible is not of the partition."""
    return Observation(
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        state.epoch_start,
        state.isr,
        tuple(sorted(maximal_isr(state))),
        state.recovering,
        state.in_flight,
        state.pending is not None,
        state.followers,
        state.log.log_start,
        state.log.log_end,
        state.log.high_watermark,
        state.log.epochs,
        state.directory,
        state.future,
        None if state.assignment is None else state.assignment.directory,
    )
