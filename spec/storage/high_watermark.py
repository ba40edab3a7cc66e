"""One replica of a partition as its broker has it: a leader that knows its followers by their fetches, raises the high
watermark and asks for changes of the in-sync replicas, or a follower that appends and truncates what its leader says.

The leader does not know what the controller has: its request may be done, refused, or lost, and the answer late. So
while it waits it counts with the larger of the sets that may be true (the maximal ISR), and a record is replicated when
all of those have it.

What the replicas and the controller come to together is the replication protocol (RPN); what the log does with batches
is the log (LOG); where an epoch begins is the leader epochs (LEC). Here they stand beside each other in one broker. Its
replica may move to another log directory: a future replica copies it there, and takes its place.

Source: Kafka Internals, ch. 03, "Offset boundaries: LSO, LEO, HW, recovery point"; KIP-101, KIP-279, KIP-320, KIP-497,
KIP-841, KIP-903; Partition, Replica, DefaultAlterPartitionManager, AbstractFetcherThread and ReplicaFetcherThread,
Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from icontract import ensure, require

from kafkaspec.contract.clauses import A_QUESTION, ONE_CALL, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import BrokerEpoch, Duration, LeaderEpoch, NodeId, Offset, Time, Timeout, Within
from kafkaspec.spec.common.kafka import INT_MAX, OUT_OF_RANGE
from kafkaspec.spec.storage import replication
from kafkaspec.spec.storage.high_watermark_parts import fetches, replicas
from kafkaspec.spec.storage.high_watermark_parts.answers import (
    NOT_DONE,
    TO_BE_TOLD,
    AlterPartitionError,
    AppendInfo,
    Batch,
    Completion,
    Deletion,
    FetchRequest,
    FewRecords,
)
from kafkaspec.spec.storage.high_watermark_parts.contracts import (
    are_in_order,
    in_bounds,
    is_set,
    is_told_in_order,
    of_a_leader,
    unchanged,
)
from kafkaspec.spec.storage.high_watermark_parts.fetches import (
    NOT_LEADER,
    ONE_BROKER,
    UNKNOWN_EPOCH,
    EpochEnd,
    Fetch,
    read,
    refused_log,
)
from kafkaspec.spec.storage.high_watermark_parts.moves import (
    alter_replica_log_dirs,
    assign_replicas_to_dirs_succeeded,
    fetch_from_current_replica,
    marked,
    with_move,
)
from kafkaspec.spec.storage.high_watermark_parts.replicas import (
    LOCAL,
    NOT_KNOWN,
    Broker,
    Config,
    Follower,
    Partition,
    after_election,
    after_fetch,
    begun_at,
    cut,
    end_of_epoch,
    is_caught_up,
    is_eligible,
    latest_epoch,
    low_watermark_of,
    maximal_isr,
    maybe_expanded,
    min_isr,
    observe,
    out_of_sync,
    reset_to,
    rule,
    truncation,
    with_change,
    with_epoch,
    with_high_watermark,
    with_high_watermark_raised,
    with_log_fetched,
)

PREFIX = "HWM"
TITLE = "High watermark"

PARTITION, REPLICA = replicas.PARTITION, replicas.REPLICA
FETCHER = replication.FETCHER
LOG = fetches.LOG
ERRORS = fetches.ERRORS

STALE_BROKER = NOT_LEADER._replace(clause="HWM-8")
UNKNOWN_REPLICA = UNKNOWN_EPOCH._replace(clause="HWM-11")
UNKNOWN_REPLICA_WITHOUT_EPOCH = NOT_LEADER._replace(clause="HWM-11")
TOO_FEW = Refused("HWM-27", f"{ERRORS}NotEnoughReplicasException")
ABOVE_HIGH_WATERMARK = Refused("HWM-30", OUT_OF_RANGE)
NOT_AVAILABLE = Refused("HWM-36", f"{ERRORS}OffsetNotAvailableException")

RecoveryState = Literal["RECOVERED", "RECOVERING"]
PartitionEpoch = Annotated[int, Within(0, INT_MAX)]
Acks = Annotated[int, Within(-1, 1)]
OffsetOrHighWatermark = Annotated[int, Within(-2, 2**62)]
FewReplicas = Annotated[int, Within(1, 100)]
FollowerId = Annotated[int, Within(2, INT_MAX)]
NodeIdOrNone = Annotated[int, Within(-1, INT_MAX)]


MAX_FOLLOWERS = 5


def initial(
    replica_lag_time_max_ms: Timeout = 30_000,
    min_insync_replicas: FewReplicas = 1,
    broker_epoch: BrokerEpoch = 101,
    now: Time = 1_000_000,
    followers: Annotated[int, Within(0, MAX_FOLLOWERS)] = 0,
) -> Partition:
    """An empty log, `now` in ms. Without `followers` the broker has not heard yet whether it leads. With some it leads
    them, in leader epoch and partition epoch 1: brokers from 2 on, in sync, and registered with epoch 12."""
    state = Partition(Config(replica_lag_time_max_ms, min_insync_replicas, broker_epoch), now)
    if not followers:
        return state
    if not 0 < followers <= MAX_FOLLOWERS:
        raise ValueError(f"followers: {followers} is not 0 to {MAX_FOLLOWERS}")
    others = range(2, followers + 2)
    state = replace(state, brokers=tuple(Broker(id, 12, False, False) for id in others))
    led: Partition = rule(make_leader)(state, 1, 1, [LOCAL, *others], [LOCAL, *others], "RECOVERED").state
    return led


machine = Machine("high_watermark", initial, observe)


# ---- what the controller says ----------------------------------------------------------------------------------------
@machine.environment("updateBroker")
@ensure(lambda id, result: result.broker(id) is not None, "HWM-39 the metadata has the broker")
def update_broker(state: Partition, id: FollowerId, epoch: BrokerEpoch, fenced: bool, shutting_down: bool) -> Partition:
    """The metadata has a broker, as this one learns."""
    others = [b for b in state.brokers if b.id != id]
    return replace(state, brokers=tuple(sorted([*others, Broker(id, epoch, fenced, shutting_down)])))


@machine.environment("removeBroker")
@ensure(lambda id, result: result.broker(id) is None, "HWM-39 the metadata has it no more")
def remove_broker(state: Partition, id: FollowerId) -> Partition:
    """The metadata has a broker no more."""
    return replace(state, brokers=tuple(b for b in state.brokers if b.id != id))


@machine.environment("advance", kind="time")
@require(lambda state, ms: state.now + ms <= 2**62, "HWM-39 time stays within 62 bits")
@ensure(lambda state, ms, result: result.now == state.now + ms, "HWM-39 time passes")
def advance(state: Partition, ms: Duration) -> Partition:
    """Time passes; `ms` of it."""
    return replace(state, now=state.now + ms)


@machine.operation("makeLeader", "HWM-24", "HWM-23", "HWM-25", "HWM-3", "HWM-4", "HWM-2", "HWM-1", "HWM-41", "HWM-46")
@states(without={"HWM-23": ONE_CALL})
@require(
    lambda state, leader_epoch, partition_epoch: is_told_in_order(state, LOCAL, leader_epoch, partition_epoch),
    "HWM-39 the controller tells one leader an epoch, and no lower epochs",
)
@require(lambda replicas: is_set(replicas) and LOCAL in replicas, "HWM-39 the broker is one of the replicas")
@require(lambda isr, replicas: is_set(isr) and LOCAL in isr, "HWM-39 a leader is in sync")
@of_a_leader
@ensure(
    lambda state, partition_epoch, result: (
        (result.state == with_move(state) and result.result is False) or partition_epoch >= state.partition_epoch
    ),
    "HWM-23 what has a lower partition epoch changes nothing",
)
@ensure(
    lambda state, isr, partition_epoch, result: (
        partition_epoch < state.partition_epoch
        or (
            set(result.state.isr) == set(isr)
            and result.state.pending is None
            and result.state.partition_epoch == partition_epoch
        )
    ),
    "HWM-24 the in-sync replicas are those that the controller has, and nothing is pending",
)
@ensure(
    lambda state, leader_epoch, partition_epoch, result: (
        partition_epoch < state.partition_epoch
        or leader_epoch <= state.leader_epoch
        or (result.state.epoch_start == state.log.log_end and result.state.log.epochs[-1].epoch == leader_epoch)
    ),
    "HWM-24 a new epoch begins at the log end",
)
def make_leader(
    state: Partition, leader_epoch: LeaderEpoch, partition_epoch: PartitionEpoch, replicas: Sequence[NodeId],
    isr: Sequence[NodeId], leader_recovery_state: RecoveryState,
) -> Step[Partition, bool]:  # fmt: skip
    """The controller says that this broker leads. The answer is whether it did not before.

    HWM-23: What the controller says is skipped if its partition epoch is lower than the broker's own: an answer to
    AlterPartition may have told that before. [{PARTITION}, makeLeader and makeFollower]

    HWM-24: A leader takes over replicas, in-sync replicas and partition epoch, and forgets what was pending, also where
    the partition epoch is its own; it knows nothing of a replica that is new, and takes itself for recovered. In a new
    leader epoch it begins that epoch at its log end, before any record is there. [{PARTITION}, makeLeader; KIP-101,
    KIP-497; KAFKA-7415]
    """
    if partition_epoch < state.partition_epoch:
        return Step(with_move(state), False)
    was_leader = state.is_leader
    known = {f.id: f for f in state.followers} if was_leader else {}
    followers = [known.get(id, Follower(id)) for id in sorted(replicas) if id != LOCAL]
    after = replace(state, isr=tuple(sorted(isr)), recovering=False, pending=None, followers=tuple(followers))
    if leader_epoch > state.leader_epoch:
        end = state.log.log_end
        reset = tuple(after_election(f, state, f.id in isr, was_leader) for f in followers)
        log = with_epoch(state.log, leader_epoch, end)
        after = replace(after, followers=reset, leader_epoch=leader_epoch, epoch_start=end, log=log)
    after = replace(after, partition_epoch=partition_epoch, leader=LOCAL)
    return Step(with_move(with_high_watermark_raised(after)), not was_leader)


@machine.operation("makeFollower", "HWM-26", "HWM-23", "HWM-1", "HWM-41", "HWM-46")
@states(without={"HWM-26": ONE_BROKER})
@require(
    lambda state, leader, leader_epoch, partition_epoch: is_told_in_order(state, leader, leader_epoch, partition_epoch),
    "HWM-39 the controller tells one leader an epoch, and no lower epochs",
)
@require(lambda leader: leader != LOCAL, "HWM-39 a follower does not lead")
@in_bounds
@ensure(
    lambda state, partition_epoch, result: (
        (result.state == with_move(state) and result.result is False) or partition_epoch >= state.partition_epoch
    ),
    "HWM-23 what has a lower partition epoch changes nothing",
)
@ensure(
    lambda state, partition_epoch, result: (
        partition_epoch < state.partition_epoch
        or (
            result.state.log == state.log
            and result.state.followers == ()
            and result.state.isr == ()
            and result.state.pending is None
        )
    ),
    "HWM-26 the log stays, and of the others nothing is known",
)
def make_follower(
    state: Partition, leader: NodeIdOrNone, leader_epoch: LeaderEpoch, partition_epoch: PartitionEpoch,
    leader_recovery_state: RecoveryState,
) -> Step[Partition, bool]:  # fmt: skip
    """The controller says that another broker leads, or nobody (-1). The answer is whether the epoch is new.

    HWM-26: A follower takes over leader, leader epoch, partition epoch and state of recovery, and forgets in-sync
    replicas, followers, where its own epoch began and what was pending. Its log and its high watermark stay: it fetches
    from the new leader if and only if the leader epoch is new. [{PARTITION}, makeFollower; KIP-320; KAFKA-7164]
    """
    if partition_epoch < state.partition_epoch:
        return Step(with_move(state), False)
    after = replace(
        state,
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        epoch_start=None,
        isr=(),
        recovering=leader_recovery_state == "RECOVERING",
        pending=None,
        followers=(),
    )
    if leader_epoch > state.leader_epoch:
        after = replace(after, last_fetched_epoch=latest_epoch(state.log))
    return Step(with_move(after), leader_epoch > state.leader_epoch)


# ---- producers -------------------------------------------------------------------------------------------------------
@machine.operation("appendRecordsToLeader", "HWM-28", "HWM-27", "HWM-10", "HWM-3", "HWM-2", "HWM-1")
@states(without={"HWM-10": ONE_CALL})
@require(lambda state, count: state.log.log_end + count <= 2**62, "HWM-39 offsets stay within 62 bits")
@of_a_leader
@unchanged
@ensure(
    lambda state, required_acks, result: (
        not state.is_leader or (result.result == TOO_FEW) == (required_acks == -1 and len(state.isr) < min_isr(state))
    ),
    "HWM-27 refused if and only if all acks are wanted, and too few are in sync",
)
@ensure(
    lambda state, count, result: (
        isinstance(result.result, Refused) or result.state.log.log_end == state.log.log_end + count
    ),
    "HWM-28 it goes to the end",
)
def append_records_to_leader(state: Partition, count: FewRecords, required_acks: Acks) -> Step[Partition, AppendInfo]:
    """A producer's records.

    HWM-10: Who does not lead refuses what only a leader does: appends, fetches of followers and of consumers that want
    the leader, deletions, and what depends on them. [{PARTITION}]

    HWM-27: An append with acks=all is refused if the in-sync replicas that the controller last told are fewer than
    min.insync.replicas, or than all replicas where those are fewer. Any other append is not. [{PARTITION},
    appendRecordsToLeader and effectiveMinIsr]

    HWM-28: A leader appends at its log end, in its leader epoch. [{PARTITION}, appendRecordsToLeader; KIP-101]
    """
    if not state.is_leader:
        return Step(state, NOT_LEADER)
    if required_acks == -1 and len(state.isr) < min_isr(state):
        return Step(state, TOO_FEW)
    first = state.log.log_end
    log = with_epoch(state.log, state.leader_epoch, first)
    after = with_high_watermark_raised(replace(state, log=replace(log, log_end=first + count)))
    rose = after.log.high_watermark > state.log.high_watermark
    return Step(after, AppendInfo(first, first + count - 1, rose))


@machine.question("checkEnoughReplicasReachOffset", "HWM-29", "HWM-10")
@states(without=A_QUESTION)
@ensure(
    lambda state, required_offset, result: (
        result.reached == (state.is_leader and state.log.high_watermark >= required_offset)
    ),
    "HWM-29 reached if and only if the high watermark has",
)
@ensure(
    lambda state, result: result.error is None or not state.is_leader or len(maximal_isr(state)) < min_isr(state),
    "HWM-29 no error while enough are in sync",
)
def check_enough_replicas_reach_offset(state: Partition, required_offset: Offset) -> Completion:
    """Whether a producer with acks=all, whose records end below that offset, is answered.

    HWM-29: It is answered once the high watermark has reached the end of its records: without an error if the maximal
    ISR has at least min.insync.replicas members, or all replicas where those are fewer, and otherwise with
    NOT_ENOUGH_REPLICAS_AFTER_APPEND. Of a broker that does not lead any more it gets NOT_LEADER_OR_FOLLOWER.
    [{PARTITION}, checkEnoughReplicasReachOffset]
    """
    if not state.is_leader:
        return Completion(False, "NOT_LEADER_OR_FOLLOWER")
    if state.log.high_watermark < required_offset:
        return Completion(False, None)
    enough = min_isr(state) <= len(maximal_isr(state))
    return Completion(True, None if enough else "NOT_ENOUGH_REPLICAS_AFTER_APPEND")


# ---- fetches ---------------------------------------------------------------------------------------------------------
@machine.operation(
    "fetchRecords", "HWM-7", "HWM-8", "HWM-11", "HWM-9", "HWM-10", "HWM-12", "HWM-13", "HWM-14", "HWM-16", "HWM-5",
    "HWM-6", "HWM-3", "HWM-4", "HWM-2", "HWM-1",
)  # fmt: skip
@states(without={"HWM-8": ONE_BROKER, "HWM-11": ONE_CALL})
@of_a_leader
@unchanged
@ensure(
    lambda state, replica, offset, result: (
        isinstance(result.result, Refused)
        or result.result.diverging is not None
        or result.state.follower(replica).log_end == offset
    ),
    "HWM-7 the offset is the follower's log end",
)
@ensure(
    lambda state, result: (
        isinstance(result.result, Refused) or result.result.diverging is None or result.state == state
    ),
    "HWM-12 a fetch of a log that diverges does not count",
)
@ensure(
    lambda state, replica, result: (
        result.state.pending == state.pending
        or (
            set(result.state.pending.ids) == {*state.isr, replica}
            and is_eligible(result.state, result.state.follower(replica))
        )
    ),
    "HWM-14 the one that fetched is taken in, and may join",
)
def fetch_records(
    state: Partition, replica: FollowerId, broker_epoch: BrokerEpoch, current_leader_epoch: LeaderEpoch | None,
    last_fetched_epoch: LeaderEpoch | None, offset: Offset, log_start: Offset,
) -> Step[Partition, Fetch]:  # fmt: skip
    """A follower fetches from the end of its log, which begins at `log_start`.

    HWM-8: A fetch with a lower broker epoch than the one that the metadata has of an unfenced broker is refused, and
    nothing is learnt from it: it is from before that broker's restart. Of -1 nothing is compared. [KIP-903; {REPLICA}]

    HWM-11: A fetch of a broker that is none of the replicas is refused, so that it tries again: as
    UNKNOWN_LEADER_EPOCH if it names a leader epoch, and otherwise as NOT_LEADER_OR_FOLLOWER. [{PARTITION},
    followerReplicaOrThrow]
    """
    refused = refused_log(state, current_leader_epoch, only_leader=True)
    if refused is not None:
        return Step(state, refused)
    known = state.follower(replica)
    if known is None:
        return Step(state, UNKNOWN_REPLICA_WITHOUT_EPOCH if current_leader_epoch is None else UNKNOWN_REPLICA)
    found = read(state, offset, last_fetched_epoch, follower=True)
    if isinstance(found, Refused) or found.diverging is not None:
        return Step(state, found)
    broker = state.broker(replica)
    if broker_epoch != NOT_KNOWN and broker is not None and not broker.fenced and broker.epoch > broker_epoch:
        return Step(state, STALE_BROKER)
    follower = after_fetch(known, state, offset, log_start, broker_epoch)
    followers = tuple(follower if f.id == replica else f for f in state.followers)
    after = maybe_expanded(replace(state, followers=followers), replica)
    return Step(with_high_watermark_raised(after) if offset != known.log_end else after, found)


@machine.question("fetchRecordsOfConsumer", "HWM-37", "HWM-9", "HWM-10", "HWM-12", "HWM-13")
@states(without=A_QUESTION)
@ensure(
    lambda state, offset, result: (
        isinstance(result, Refused) or result.end is None or result.end == max(offset, state.log.high_watermark)
    ),
    "HWM-37 what is read ends at the high watermark",
)
def fetch_records_of_consumer(
    state: Partition, current_leader_epoch: LeaderEpoch | None, last_fetched_epoch: LeaderEpoch | None,
    offset: Offset, only_leader: bool,
) -> Fetch | Refused:  # fmt: skip
    """A consumer fetches, from the leader or from the nearest replica.

    HWM-37: A consumer is given records below the high watermark alone; from there on up to the log end it gets none,
    and no error. [Kafka Internals, ch. 03, 'Offset boundaries: LSO, LEO, HW, recovery point'; {LOG}, read; KIP-392]
    """
    return refused_log(state, current_leader_epoch, only_leader) or read(
        state, offset, last_fetched_epoch, follower=False
    )


@machine.question("lastOffsetForLeaderEpoch", "HWM-35", "HWM-9", "HWM-10")
@states(without=A_QUESTION)
@ensure(
    lambda state, result: isinstance(result, Refused) or result.end_offset <= state.log.log_end,
    "HWM-35 not above the log end",
)
def last_offset_for_leader_epoch(
    state: Partition, current_leader_epoch: LeaderEpoch | None, leader_epoch: LeaderEpoch, only_leader: bool
) -> EpochEnd | Refused:
    """OffsetsForLeaderEpoch, of this partition.

    HWM-35: Asked for the end of a leader epoch, a broker answers where the highest epoch that is not above it ends in
    its log, and which that is; both are -1 where it does not know (LEC-10, LEC-12). The epoch of a leader is in its log
    from its election on, without any record too, unless the log was moved to another directory (HWM-45). [KIP-101,
    KIP-279; {PARTITION}, lastOffsetForLeaderEpoch; KAFKA-7415]
    """
    refused = refused_log(state, current_leader_epoch, only_leader)
    if refused is not None:
        return refused
    end = end_of_epoch(state.log, leader_epoch)
    return EpochEnd(end.epoch, end.end_offset)


@machine.question("latestOffset", "HWM-36", "HWM-9", "HWM-10")
@states(without=A_QUESTION)
@ensure(
    lambda state, client, result: (
        isinstance(result, Refused) or result == (state.log.high_watermark if client else state.log.log_end)
    ),
    "HWM-36 a client is told the high watermark, a follower the log end",
)
def latest_offset(state: Partition, current_leader_epoch: LeaderEpoch | None, client: bool) -> int | Refused:
    """ListOffsets, of the latest one, asked of the leader.

    HWM-36: A client that asks for the latest offset is told the high watermark, a follower the log end. A client is
    refused while a new leader's high watermark has not reached the offset at which its epoch began: the high watermark
    of the leader before may have been higher. [KIP-207; {PARTITION}, fetchOffsetForTimestamp]
    """
    refused = refused_log(state, current_leader_epoch, only_leader=True)
    if refused is not None:
        return refused
    if not client:
        return state.log.log_end
    behind = state.epoch_start is not None and state.epoch_start > state.log.high_watermark
    return NOT_AVAILABLE if behind else state.log.high_watermark


# ---- changes of the in-sync replicas ---------------------------------------------------------------------------------
@machine.operation("maybeShrinkIsr", "HWM-15", "HWM-16", "HWM-5", "HWM-4", "HWM-2", "HWM-1")
@of_a_leader
@ensure(
    lambda state, result: (
        result.pending == state.pending
        or all(not is_caught_up(state, f) for f in state.followers if f.id in {*state.isr} - {*result.pending.ids})
    ),
    "HWM-15 who is caught up stays",
)
@ensure(
    lambda state, result: result.isr == state.isr and maximal_isr(result) == maximal_isr(state),
    "HWM-15 who is to go counts until the controller says otherwise",
)
def maybe_shrink_isr(state: Partition) -> Partition:
    """The broker looks who lags, every half of replica.lag.time.max.ms.

    HWM-15: A leader asks to take out all in-sync replicas but itself that are not caught up, and those that are none of
    the replicas, if there are any and no change is pending. Nothing else is done before the controller has answered.
    [KIP-497; {PARTITION}, maybeShrinkIsr and getOutOfSyncReplicas; KAFKA-9672]
    """
    leaving = out_of_sync(state)
    if not state.is_leader or state.pending is not None or not leaving:
        return state
    return with_change(state, {*state.isr} - leaving)


asked = require(lambda state: state.in_flight is not None, "HWM-39 an answer is of a request")


def answered(state: Partition) -> tuple[Partition, bool]:
    """The state in which no request is under way, and whether the answer is of the change that is pending."""
    return replace(state, in_flight=None), state.pending is not None and state.pending == state.in_flight


@machine.operation("alterPartitionSucceeded", "HWM-17", "HWM-18", "HWM-22", "HWM-3", "HWM-4", "HWM-2", "HWM-1")
@states(without={"HWM-18": ONE_CALL})
@asked
@require(lambda isr: is_set(isr) and LOCAL in isr, "HWM-39 a leader is in sync")
@of_a_leader
@ensure(
    lambda state, leader_epoch, partition_epoch, isr, result: (
        state.pending != state.in_flight
        or leader_epoch != state.leader_epoch
        or partition_epoch < state.partition_epoch
        or ((result.isr, result.partition_epoch) == (tuple(sorted(isr)), partition_epoch) and result.pending is None)
    ),
    "HWM-17 the leader has what the controller has",
)
@ensure(
    lambda state, leader_epoch, partition_epoch, result: (
        (state.pending == state.in_flight and leader_epoch == state.leader_epoch)
        or replace(result, in_flight=state.in_flight) == state
    ),
    "HWM-22 what is not of the pending change changes nothing",
)
@ensure(
    lambda state, partition_epoch, result: partition_epoch >= state.partition_epoch or result.pending == state.pending,
    "HWM-18 an earlier state of the controller is not taken over",
)
def alter_partition_succeeded(
    state: Partition, leader_epoch: LeaderEpoch, partition_epoch: PartitionEpoch, isr: Sequence[NodeId]
) -> Partition:  # fmt: skip
    """The controller answers that it has these in-sync replicas, of a leader that has recovered, as it was told.

    HWM-17: When the controller has done a change, the leader takes over in-sync replicas and partition epoch as they
    stand in the answer, and nothing is pending: also if the partition epoch is the leader's own, as when the controller
    had them already. Then it looks at its high watermark. [KIP-497; {PARTITION},
    handleAlterPartitionUpdate; KAFKA-12751, KAFKA-13091]

    HWM-18: An answer of another leader epoch than the leader's own, or of a lower partition epoch, changes nothing: the
    change stays pending until the controller says what there is. [{PARTITION}, handleAlterPartitionUpdate]

    HWM-22: An answer of a request that is not for the pending change, because the controller has said what there is in
    the meantime, changes nothing. Then the next request can be sent. [{PARTITION}, submitAlterPartition]
    """
    after, current = answered(state)
    if not current or leader_epoch != state.leader_epoch or partition_epoch < state.partition_epoch:
        return after
    after = replace(
        after,
        isr=tuple(sorted(isr)),
        partition_epoch=partition_epoch,
        pending=None,
    )
    return with_high_watermark_raised(after)


@machine.operation("alterPartitionFailed", "HWM-19", "HWM-20", "HWM-21", "HWM-22", "HWM-4", "HWM-2", "HWM-1")
@states(without={"HWM-21": ONE_CALL})
@asked
@of_a_leader
@ensure(
    lambda state, error, result: (
        result.pending == state.pending or (error in NOT_DONE and state.pending == state.in_flight)
    ),
    "HWM-19 only what was not done, and never will be, is given up",
)
@ensure(
    lambda state, error, result: (
        (result.in_flight is not None)
        == (error not in NOT_DONE and error not in TO_BE_TOLD and state.pending == state.in_flight)
    ),
    "HWM-21 what is pending is asked for again",
)
@ensure(lambda state, result: result.isr == state.isr, "HWM-20 the in-sync replicas stay")
def alter_partition_failed(state: Partition, error: AlterPartitionError) -> Partition:
    """The controller answers with an error for this partition.

    HWM-19: INELIGIBLE_REPLICA and OPERATION_NOT_ATTEMPTED say that the change was not done, and that no controller will
    do it: nothing is pending then, and the in-sync replicas are those of before. [KIP-841; {PARTITION},
    handleAlterPartitionError]

    HWM-20: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, INVALID_REQUEST
    and NEW_LEADER_ELECTED leave open what the controller has: the change stays pending, so that the maximal ISR does
    too, and nothing is sent until the controller says what there is. [{PARTITION}, handleAlterPartitionError]

    HWM-21: With any other error the same request is sent again. [{PARTITION}, handleAlterPartitionError]
    """
    after, current = answered(state)
    if not current:
        return after
    if error in NOT_DONE:
        return replace(after, pending=None)
    return after if error in TO_BE_TOLD else state


# ---- moves to another log directory ----------------------------------------------------------------------------------
machine.operation("alterReplicaLogDirs", "HWM-41", "HWM-47", "HWM-1")(alter_replica_log_dirs)
machine.operation("assignReplicasToDirsSucceeded", "HWM-48")(assign_replicas_to_dirs_succeeded)
machine.operation("fetchFromCurrentReplica", "HWM-42", "HWM-43", "HWM-44", "HWM-45", "HWM-1")(
    fetch_from_current_replica
)


# ---- deletion --------------------------------------------------------------------------------------------------------
@machine.operation("deleteRecordsOnLeader", "HWM-30", "HWM-31", "HWM-10", "HWM-2", "HWM-1")
@states(without={"HWM-30": ONE_BROKER})
@of_a_leader
@unchanged
@ensure(
    lambda state, result: (
        isinstance(result.result, Refused)
        or result.state.log.log_start == max(state.log.log_start, result.result.requested_offset)
    ),
    "HWM-30 the log begins there, or later",
)
def delete_records_on_leader(state: Partition, offset: OffsetOrHighWatermark) -> Step[Partition, Deletion]:
    """DeleteRecords: records below an offset, or below the high watermark (-1), are not wanted.

    HWM-30: A leader raises its log start to the offset, and not above its high watermark, where it is refused as out of
    range, as is one below -1; -1 stands for the high watermark. A lower offset than the log start changes nothing.
    [KIP-107; {PARTITION}, deleteRecordsOnLeader]
    """
    if not state.is_leader:
        return Step(state, NOT_LEADER)
    wanted = state.log.high_watermark if offset == -1 else offset
    if wanted < 0 or wanted > state.log.high_watermark:
        return Step(state, ABOVE_HIGH_WATERMARK)
    after = replace(state, log=begun_at(state.log, wanted))
    return Step(after, Deletion(wanted, low_watermark_of(after)))


@machine.question("lowWatermarkIfLeader", "HWM-31", "HWM-10")
@states(without=A_QUESTION)
@ensure(
    lambda state, result: isinstance(result, Refused) or result <= state.log.log_start,
    "HWM-31 not above the log start",
)
def low_watermark_if_leader(state: Partition) -> int | Refused:
    """Whether a deletion is done everywhere.

    HWM-31: The low watermark is the smallest of the log starts of the leader, of its future replica, and of its
    followers whose brokers the metadata has unfenced, in sync or not; -1 if one of them has not fetched yet.
    DeleteRecords is answered when it has reached the offset. [KIP-107, KIP-113; {PARTITION}, lowWatermarkIfLeader]
    """
    return low_watermark_of(state) if state.is_leader else NOT_LEADER


# ---- followers -------------------------------------------------------------------------------------------------------
follows = require(lambda state: state.leader is not None and not state.is_leader, "HWM-39 a follower's answer")


@machine.operation("processPartitionData", "HWM-32", "HWM-1")
@states(without=ONE_BROKER)
@follows
@require(lambda state: state.log.log_end <= 2**61, "HWM-39 offsets stay within 62 bits")
@require(lambda state, batches: are_in_order(state, batches), "HWM-39 batches come in the order of their epochs")
@require(
    lambda state, high_watermark, log_start: log_start <= min(high_watermark, state.log.log_end),
    "HWM-39 a leader's log start is at most its high watermark, and the offset",
)
@in_bounds
@ensure(
    lambda state, high_watermark, result: (
        result.log.high_watermark == min(max(high_watermark, state.log.log_start), result.log.log_end)
    ),
    "HWM-32 the high watermark is the leader's, as far as the log goes",
)
@ensure(
    lambda state, result: all(e.epoch <= state.leader_epoch for e in {*result.log.epochs} - {*state.log.epochs}),
    "HWM-32 nothing of a later epoch than the leader's is appended",
)
def process_partition_data(
    state: Partition, batches: Sequence[Batch], high_watermark: Offset, log_start: Offset
) -> Partition:
    """The leader's answer to a fetch.

    HWM-32: A follower appends what its leader sends, at its log end, up to the first batch of a higher leader epoch
    than that in which it fetched. Its high watermark is the leader's then, also if that is lower than its own, but not
    above its log end; and its log start rises to the leader's. [{FETCHER}; ReplicaFetcherThread and {LOG},
    maybeUpdateHighWatermark and maybeIncrementLogStartOffset; KAFKA-18723]
    """
    log, named = state.log, state.last_fetched_epoch
    for batch in batches:
        if batch.epoch > state.leader_epoch:
            break
        named = batch.epoch
        log = replace(with_epoch(log, batch.epoch, log.log_end), log_end=log.log_end + batch.records)
    log = begun_at(with_high_watermark(log, high_watermark), log_start)
    return replace(state, log=log, last_fetched_epoch=named)


@machine.operation("truncateOnFetchResponse", "HWM-33", "HWM-1", "HWM-42")
@states(without=ONE_BROKER)
@follows
@in_bounds
@ensure(
    lambda state, result: result.state.log.log_end == result.result <= state.log.log_end,
    "HWM-33 the log ends where it was cut",
)
@ensure(
    lambda state, result: result.state.log.high_watermark == min(state.log.high_watermark, result.state.log.log_end),
    "HWM-33 the high watermark is not the leader's",
)
def truncate_on_fetch_response(state: Partition, epoch: LeaderEpoch, end_offset: Offset) -> Step[Partition, int]:
    """The leader's answer that the logs diverge: its epoch that is nearest, and where that ends. The result is the
    follower's log end then.

    HWM-33: A follower that is told that the logs diverge truncates, and takes nothing else from the answer. It cuts its
    log at the end that it was told, at its own end of that epoch, and at its log end, whichever is the smallest; if it
    has no such epoch, but lower ones, at the end of the highest of those. Its high watermark is then not above its log
    end. [KIP-101, KIP-279, KIP-595; {FETCHER}, getOffsetTruncationState; KAFKA-6361, KAFKA-14704]
    """
    offset, is_complete = truncation(state.log, epoch, end_offset)
    after = with_log_fetched(state, cut(state.log, offset))
    return Step(marked(after, offset) if is_complete else after, offset)


@machine.operation("fetchOffsetAndTruncate", "HWM-34", "HWM-1", "HWM-42")
@states(without=ONE_BROKER)
@follows
@require(lambda leader_start, leader_end: leader_start <= leader_end, "HWM-39 a log begins before it ends")
@in_bounds
@ensure(
    lambda leader_start, leader_end, result: leader_start <= result.result <= leader_end,
    "HWM-34 it fetches from within the leader's log",
)
@ensure(lambda result: result.state.log.log_end == result.result, "HWM-34 it fetches from its log end")
def fetch_offset_and_truncate(state: Partition, leader_start: Offset, leader_end: Offset) -> Step[Partition, int]:
    """A follower whose fetch was out of range asks where the leader's log begins and ends. The result is its log end
    then, from which it fetches.

    HWM-34: If the leader's log ends below its own, it truncates to that end. If the leader's begins above its end, it
    drops its log and begins one there: log start, high watermark and log end are that offset, and no epoch is known.
    Otherwise nothing changes. [{FETCHER}, fetchOffsetAndTruncate; {LOG}, truncateFullyAndStartAt; KAFKA-9491]
    """
    after = with_log_fetched(state, reset_to(state.log, leader_start, leader_end))
    return Step(marked(after, leader_end) if leader_end < state.log.log_end else after, after.log.log_end)


@machine.question("nextFetch", "HWM-38")
@states(without=A_QUESTION)
@follows
@ensure(
    lambda state, result: result.last_fetched_epoch == state.last_fetched_epoch,
    "HWM-38 it names the latest epoch that it fetched",
)
def next_fetch(state: Partition) -> FetchRequest:
    """HWM-38: A follower fetches from its log end, and names its leader epoch, its log start, and the latest epoch of
    its log, whatever the answer before had in it; none if it knows no epoch. After a move to another log directory
    (HWM-45) that is the latest epoch of the log before, until it appends or truncates. [KIP-595; {FETCHER};
    KAFKA-15510]"""
    return FetchRequest(state.leader_epoch, state.last_fetched_epoch, state.log.log_end, state.log.log_start)
