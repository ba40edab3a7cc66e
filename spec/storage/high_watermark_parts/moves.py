"""A move of a replica to another log directory of its broker: a future replica there copies the current one, and takes
its place when it has all of it and the controller knows.

The clauses are those of the high watermark, `spec.storage.high_watermark`, whose operations these are.

Source: KIP-113, KIP-858; Partition, ReplicaManager, ReplicaAlterLogDirsThread and LocalLeaderEndPoint, Kafka 4.3.0.
"""

from __future__ import annotations

from typing import Annotated, Final

from icontract import ensure, require

from kafkaspec.contract.clauses import states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.machine import Refused, Step
from kafkaspec.contract.numbers import Within
from kafkaspec.spec.storage.high_watermark_parts import replicas
from kafkaspec.spec.storage.high_watermark_parts.contracts import in_bounds
from kafkaspec.spec.storage.high_watermark_parts.replicas import (
    NOT_KNOWN,
    Assignment,
    FutureReplica,
    Log,
    Partition,
    begun_at,
    cut,
    end_of_epoch,
    latest_epoch,
    reset_to,
    truncation,
    with_epoch,
    with_high_watermark,
)

PARTITION = replicas.PARTITION
MANAGER = "ReplicaManager, Kafka 4.3.0"
THREAD = "ReplicaAlterLogDirsThread, Kafka 4.3.0"
ASSIGNED: Final = 1
"""The directory that the controller assigns to every log."""
NO_REPLICA = Refused("HWM-41", "org.apache.kafka.common.errors.ReplicaNotAvailableException")
LogDirectory = Annotated[int, Within(1, 3)]

ONE_REPLICA = {
    "model": "two logs of one broker, in one step at a time; what is between brokers is modelled",
    "proof": "see the model",
}


# ---- what the other operations do to it ------------------------------------------------------------------------------
@states(without=ONE_REPLICA)
def with_move(state: Partition) -> Partition:
    """The state of a broker that has heard of the partition: its log has a directory, and its future replica a fetcher.

    HWM-46: Whatever the controller says of the partition, a lower partition epoch included, the broker forgets for its
    future replica that the controller was asked to note the directory, or has: it asks again when the future replica
    has caught up. [{MANAGER}, maybeAddLogDirFetchers; ReplicaAlterLogDirsThread, Kafka 4.3.0, addPartitions]
    """
    if state.directory is None:
        state = replace(state, directory=state.wanted_directory or ASSIGNED, wanted_directory=None)
    future = state.future
    if future is None:
        return state
    if future.leader_epoch != state.leader_epoch:
        future = replace(future, leader_epoch=state.leader_epoch, offset=future.log.high_watermark, is_truncating=True)
    return replace(state, future=replace(future, reassignment="NONE"))


def marked(state: Partition, offset: int) -> Partition:
    """The state in which the future replica is to truncate, as the current one has."""
    future = state.future
    if future is None:
        return state
    return replace(state, future=replace(future, offset=min(future.offset, offset), is_truncating=True))


@states(without=ONE_REPLICA)
def without_future(state: Partition) -> Partition:
    """HWM-47: When a future replica is removed for which the controller was asked to note the directory, answered or
    not, the broker asks it to note the directory of its log. A request that is not answered is replaced by the next one
    of its partition. [KIP-858; {THREAD}, removePartitions; KAFKA-16297]"""
    future = state.future
    if future is None:
        return state
    after = replace(state, future=None)
    if future.reassignment != "NONE" and state.directory is not None:
        after = replace(after, assignment=Assignment(state.directory, False))
    return after


# ---- one round of its fetcher ----------------------------------------------------------------------------------------
def truncated(future: FutureReplica, current: Log) -> FutureReplica:
    """The future replica after it has asked the current one where its latest epoch ends."""
    epoch = latest_epoch(future.log)
    end = None if epoch is None else end_of_epoch(current, epoch)
    if end is None or end.end_offset == NOT_KNOWN:
        offset, complete = future.offset, True
    else:
        offset, complete = truncation(future.log, end.epoch, end.end_offset)
    return replace(future, log=cut(future.log, offset), offset=offset, is_truncating=not complete)


def appended(log: Log, current: Log) -> Log:
    """The log with all that the current one has behind its end."""
    ends = [*(e.start_offset for e in current.epochs[1:]), current.log_end]
    end = log.log_end
    for entry, until in zip(current.epochs, ends, strict=False):
        first = max(entry.start_offset, end)
        if first < min(until, current.log_end):
            log = with_epoch(log, entry.epoch, first)
    return replace(log, log_end=max(end, current.log_end))


@states(without=ONE_REPLICA)
def fetched(future: FutureReplica, current: Log) -> FutureReplica:
    """HWM-43: A future replica fetches from its log end, in its partition's leader epoch, whatever is in the current
    replica's log up to its log end, replicated or not. Its high watermark is the current one's then, but not above its
    log end, and its log start rises to the current one's. Where its log end is outside of the current log, it does as
    HWM-34 says, with that log for the leader's, and fetches the next time. [KIP-113; LocalLeaderEndPoint, Kafka 4.3.0;
    {THREAD}, processPartitionData]"""
    if not current.log_start <= future.offset <= current.log_end:
        log = reset_to(future.log, current.log_start, current.log_end)
        return replace(future, log=log, offset=log.log_end)
    log = with_high_watermark(appended(future.log, current), current.high_watermark)
    log = begun_at(log, current.log_start)
    return replace(future, log=log, offset=log.log_end)


@states(without=ONE_REPLICA)
def promoted(state: Partition, future: FutureReplica) -> Partition:
    """HWM-45: When a future replica takes the place of the current one, its log is the replica's, with the high
    watermark of the log that it replaces. The leader epochs are those of its records: an epoch of a leader that has
    none is not among them any more, and what a leader answers of its epochs (HWM-35), and with what it compares a fetch
    (HWM-12, HWM-13), is that. A follower names in its next fetch the epoch that it would have named. [KIP-113;
    LogManager, Kafka 4.3.0, replaceCurrentWithFutureLog; KAFKA-15608, KAFKA-20961]"""
    log = with_high_watermark(future.log, state.log.high_watermark)
    return replace(state, log=log, directory=future.directory, future=None)


# ---- operations ------------------------------------------------------------------------------------------------------
@states(without=ONE_REPLICA)
@in_bounds
@ensure(
    lambda state, directory, result: (
        isinstance(result.result, Refused) or (result.state.future is None) == (directory == state.directory)
    ),
    "HWM-41 there is a future replica if and only if the log is elsewhere",
)
@ensure(lambda state, result: result.state.log == state.log, "HWM-41 the log stays")
def alter_replica_log_dirs(state: Partition, directory: LogDirectory) -> Step[Partition, None]:
    """Somebody asks for the replica in a log directory.

    HWM-41: A log is created in the directory that the controller assigned, or in the one that was last asked for before
    there was a log: until then such a request is refused as REPLICA_NOT_AVAILABLE, and remembered. Later the broker
    creates a future replica in the directory that is asked for, if that is not the log's and there is none in it: an
    empty log with high watermark 0, which fetches in the partition's leader epoch. A future replica in another
    directory is removed first. [KIP-113, KIP-858; {MANAGER}, alterReplicaLogDirs; {PARTITION},
    maybeCreateFutureReplica; KAFKA-16297]
    """
    if state.future is not None and state.future.directory != directory:
        state = without_future(state)
    if state.directory is None:
        return Step(replace(state, wanted_directory=directory), NO_REPLICA)
    if directory == state.directory or state.future is not None:
        return Step(state, None)
    return Step(replace(state, future=FutureReplica(directory, state.leader_epoch)), None)


@states(without=ONE_REPLICA)
@require(lambda state: state.assignment is not None, "HWM-39 an answer is of a request")
@ensure(lambda result: result.assignment is None, "HWM-48 it is answered")
def assign_replicas_to_dirs_succeeded(state: Partition) -> Partition:
    """The controller has noted the directory that it was last asked for.

    HWM-48: When the controller has noted the directory of a future replica, the one that the broker has then may take
    the place of the current replica, also if it is another than that for which it was asked. [KIP-858; {THREAD},
    updateReassignmentState]
    """
    assert state.assignment is not None
    after = replace(state, assignment=None)
    if not state.assignment.of_future or state.future is None:
        return after
    return replace(after, future=replace(state.future, reassignment="ACCEPTED"))


@states(without=ONE_REPLICA)
@require(lambda state: state.future is not None, "HWM-39 there is a future replica")
@in_bounds
@ensure(
    lambda state, result: (
        result.future is not None
        or (state.future.reassignment == "ACCEPTED" and result.log.log_end == state.log.log_end)
    ),
    "HWM-44 it takes the place of the current one when it has all of it, and the controller knows",
)
@ensure(
    lambda state, result: result.log == state.log or result.future is None, "HWM-44 until then the current log stays"
)
@ensure(lambda state, result: result.log.high_watermark == state.log.high_watermark, "HWM-45 the high watermark stays")
def fetch_from_current_replica(state: Partition) -> Partition:
    """One round of the thread that moves the replica: the future replica truncates, fetches, and takes its place.

    HWM-42: A future replica truncates before it fetches: when it was created, in a new leader epoch, and when the
    current replica was truncated, unless that had no such epoch as its leader answered (HWM-33). It asks the current
    replica where the latest epoch of its log ends, and cuts its log as a follower does (HWM-33); if it had no such
    epoch as it is answered, it asks again before it fetches. If it knows no epoch, or the current replica none as low,
    it cuts its log at the offset from which it would fetch: its high watermark in a new leader epoch; or where the
    current replica was truncated, if that is lower. [KIP-113, KIP-279; {THREAD}, truncate; AbstractFetcherThread, Kafka
    4.3.0, markPartitionsForTruncation; ReplicaFetcherThread, Kafka 4.3.0, truncate]

    HWM-44: When a future replica has fetched, and its log ends where the current one's does, it asks the controller to
    note its directory, once. If the controller has accepted that, it takes the place of the current replica instead.
    [KIP-113, KIP-858; {THREAD}, maybePromoteFutureReplica; {PARTITION}, runCallbackIfFutureReplicaCaughtUp]
    """
    future = state.future
    assert future is not None
    if future.is_truncating:
        future = truncated(future, state.log)
        if future.is_truncating:
            return replace(state, future=future)
    is_fetched = state.log.log_start <= future.offset <= state.log.log_end
    future = fetched(future, state.log)
    if not is_fetched or future.log.log_end != state.log.log_end or future.reassignment == "QUEUED":
        return replace(state, future=future)
    if future.reassignment == "ACCEPTED":
        return promoted(state, future)
    assignment = Assignment(future.directory, True)
    return replace(state, future=replace(future, reassignment="QUEUED"), assignment=assignment)
