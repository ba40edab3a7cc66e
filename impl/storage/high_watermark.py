"""A partition as its broker keeps it: states of the in-sync replicas that replace each other, a table of followers,
and the queue of AlterPartition requests that takes one of each partition.

What the leader knows of the in-sync replicas is an object of its own: committed, or pending with the committed one that
it came from. The clock, the metadata and the queue come in as arguments. Of the log there is what replication needs of
it: its offsets, and the leader epochs with their file. A future replica is an object with a log of its own, that is
told to fetch.

Source: Partition, Replica, DefaultAlterPartitionManager, AbstractFetcherThread, ReplicaFetcherThread and
ReplicaAlterLogDirsThread, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.storage.leader_epochs import UNDEFINED, LeaderEpochCache, LeaderEpochCheckpoint

UNKNOWN_OFFSET: Final = -1
NOT_COMPARED: Final = -1
"""A broker epoch of a request that is too old to have one."""
UNLED: Final = -1


# ---- errors
class NotLeaderOrFollower(Exception):
    """This broker does not lead the partition."""


class StaleBrokerEpoch(Exception):
    """A fetch of a broker as it was before its restart."""


class FencedLeaderEpoch(Exception):
    """The leader epoch that was named is an earlier one."""


class UnknownLeaderEpoch(Exception):
    """The leader epoch that was named is a later one."""


class UnknownReplica(Exception):
    """The broker that fetches is no replica; `names_epoch`: it named a leader epoch, so that it will try again."""

    def __init__(self, names_epoch: bool) -> None:
        super().__init__()
        self.names_epoch = names_epoch


class OffsetOutOfRange(Exception):
    """A fetch is not for the log."""


class DeletionOutOfRange(Exception):
    """A deletion is not for what is replicated."""


class NotEnoughReplicas(Exception):
    """Too few are in sync for a producer that wants all acks."""


class ReplicaNotAvailable(Exception):
    """There is no log yet that could be moved."""


class OffsetNotAvailable(Exception):
    """A new leader does not know yet what the leader before had replicated."""


# ---- the metadata
@dataclass(frozen=True)
class Registration:
    """A broker, as the metadata has it."""

    epoch: int
    fenced: bool
    shutting_down: bool


class Metadata(dict[int, Registration]):
    """The brokers by their ids."""

    def alive_epoch(self, id: int) -> int | None:
        """The epoch of a broker that is not fenced."""
        broker = self.get(id)
        return None if broker is None or broker.fenced else broker.epoch


# ---- changes of the in-sync replicas
@dataclass(frozen=True)
class LeaderAndIsr:
    """What AlterPartition sends and answers."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    """ids and broker epochs"""


@dataclass(frozen=True)
class CommittedState:
    """The in-sync replicas that the controller told."""

    isr: frozenset[int] = frozenset()
    recovering: bool = False

    @property
    def maximal_isr(self) -> frozenset[int]:
        """[HWM-4]"""
        return self.isr


@dataclass(frozen=True)
class PendingExpand:
    """The controller was asked to take a replica in."""

    replica: int
    sent: LeaderAndIsr
    committed: CommittedState
    recovering = False

    @property
    def isr(self) -> frozenset[int]:
        return self.committed.isr

    @property
    def maximal_isr(self) -> frozenset[int]:
        """It may have been taken in. [HWM-4]"""
        return self.isr | {self.replica}


@dataclass(frozen=True)
class PendingShrink:
    """The controller was asked to take replicas out."""

    replicas: frozenset[int]
    sent: LeaderAndIsr
    committed: CommittedState
    recovering = False

    @property
    def isr(self) -> frozenset[int]:
        return self.committed.isr

    @property
    def maximal_isr(self) -> frozenset[int]:
        """None of them may have been taken out. [HWM-4]"""
        return self.isr


Pending = PendingExpand | PendingShrink
State = CommittedState | Pending


class AlterPartitionQueue:
    """Requests that are not answered: one of a partition."""

    def __init__(self) -> None:
        self.unsent: dict[str, Pending] = {}

    def submit(self, partition: str, change: Pending) -> bool:
        """Whether it will be sent: not while an earlier one is there. [HWM-16]"""
        return self.unsent.setdefault(partition, change) is change

    def take(self, partition: str) -> Pending:
        """The request that is answered."""
        return self.unsent.pop(partition)


# ---- followers
@dataclass(frozen=True)
class FollowerState:
    """What a leader knows of a follower; replaced as a whole by every fetch."""

    log_end: int = UNKNOWN_OFFSET
    log_start: int = UNKNOWN_OFFSET
    last_fetch_leader_end: int = 0
    last_fetch_ms: int = 0
    last_caught_up_ms: int = 0
    broker_epoch: int | None = None

    def is_caught_up(self, leader_end: int, now: int, lag_max_ms: int) -> bool:
        """[HWM-5]"""
        return leader_end == self.log_end or now - self.last_caught_up_ms <= lag_max_ms

    def fetched(self, offset: int, log_start: int, leader_end: int, now: int, broker_epoch: int) -> FollowerState:
        """The state behind a fetch. [HWM-7]"""
        if offset >= leader_end:
            caught_up = now
        elif offset >= self.last_fetch_leader_end:
            caught_up = self.last_fetch_ms
        else:
            caught_up = 0
        return FollowerState(
            offset,
            log_start,
            max(leader_end, self.last_fetch_leader_end),
            now,
            max(caught_up, self.last_caught_up_ms),
            broker_epoch,
        )

    def reset(self, leader_end: int, now: int, *, new_leader: bool, in_sync: bool) -> FollowerState:
        """The state in a new leader epoch. [HWM-25]"""
        at = now if in_sync else 0
        if new_leader:
            return FollowerState(last_fetch_leader_end=UNKNOWN_OFFSET, last_caught_up_ms=at)
        return replace(self, last_fetch_leader_end=leader_end, last_fetch_ms=at, last_caught_up_ms=at)


# ---- the log
class ReplicaLog:
    """The offsets of a log, and its leader epochs, which have a file."""

    def __init__(self) -> None:
        checkpoint = LeaderEpochCheckpoint("log/t-0", SimulatedDisk())
        self.epochs = LeaderEpochCache(checkpoint, lambda task: task())
        self.start = 0
        self.end = 0
        self.high_watermark = 0

    @property
    def latest_epoch(self) -> int | None:
        return self.epochs.epochs[-1] if self.epochs.epochs else None

    def append(self, epoch: int, count: int) -> int:
        """Records of an epoch at the end; the first one's offset. [HWM-28]"""
        first = self.end
        self.epochs.assign(epoch, first)
        self.end += count
        return first

    def maybe_increment_high_watermark(self, offset: int) -> bool:
        """Whether it rose. [HWM-2]"""
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    def update_high_watermark(self, offset: int) -> None:
        """Set it, within the log. [HWM-1, HWM-32]"""
        self.high_watermark = min(max(offset, self.start), self.end)

    def maybe_increment_log_start(self, offset: int) -> None:
        """Raise the log start. Raises DeletionOutOfRange. [HWM-30]"""
        if offset > self.high_watermark:
            raise DeletionOutOfRange
        if offset > self.start:
            self.start = offset
            self.epochs.truncate_from_start(offset)

    def truncate_to(self, offset: int) -> None:
        """Cut the log at an offset; the epochs also where it ends before. [HWM-33]"""
        self.epochs.truncate_from_end(offset)
        if offset < self.end:
            self.end = offset
            self.start = min(self.start, offset)
            self.update_high_watermark(self.high_watermark)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything, and begin there. [HWM-34]"""
        self.epochs.clear_and_flush()
        self.start = self.end = offset
        self.update_high_watermark(offset)

    def truncation_for(self, epoch: int, end_offset: int) -> tuple[int, bool]:
        """Where to cut, as another log's epoch ends there; and whether that is the last word. [HWM-33]"""
        own = self.end_of_epoch(epoch)
        if own is None:
            return min(end_offset, self.end), True
        same = own[0] == epoch
        return min(own[1], self.end, end_offset if same else self.end), same

    def reset_to(self, start: int, end: int) -> bool:
        """A fetch was out of range of a log that begins and ends there. Whether this one was cut. [HWM-34]"""
        if end < self.end:
            self.truncate_to(end)
            return True
        if start > self.end:
            self.truncate_fully_and_start_at(start)
        return False

    def copy_from(self, other: ReplicaLog) -> None:
        """Append all that another log has behind this one's end. [HWM-43]"""
        starts = dict(other.epochs.entries)
        for (epoch, start), until in zip(starts.items(), [*starts.values(), other.end][1:], strict=True):
            first = max(start, self.end)
            if first < min(until, other.end):
                self.append(epoch, min(until, other.end) - first)

    def end_of_epoch(self, epoch: int) -> tuple[int, int] | None:
        """Epoch and end offset of the highest epoch that is not above one; None if that is unknown. [HWM-35]"""
        found = self.epochs.end_offset_for(epoch, self.end)
        return None if found.end_offset == UNDEFINED else (found.epoch, found.end_offset)


@dataclass(frozen=True)
class ReadInfo:
    """What a fetch found; `diverging` is an epoch and its end."""

    diverging: tuple[int, int] | None
    end: int | None
    high_watermark: int
    log_start: int
    log_end: int


# ---- a move to another log directory
Reassignment = Literal["NONE", "QUEUED", "ACCEPTED"]
UNASKED: Final = "NONE"
QUEUED: Final = "QUEUED"
ACCEPTED: Final = "ACCEPTED"
"""Whether the controller was asked to note a future replica's directory, and has."""


class FutureReplica:
    """A replica in another directory, that copies the current one."""

    def __init__(self, directory: int, leader_epoch: int, log: ReplicaLog) -> None:
        self.directory = directory
        self.log = log
        self.reassignment: Reassignment = UNASKED
        self.offset = 0
        self.begin(leader_epoch)

    def begin(self, leader_epoch: int) -> None:
        """Fetch in another leader epoch. [HWM-42]"""
        self.leader_epoch = leader_epoch
        self.offset = self.log.high_watermark
        self.is_truncating = True

    def mark_for_truncation(self, offset: int) -> None:
        """The current replica was cut there. [HWM-42]"""
        self.offset = min(offset, self.offset)
        self.is_truncating = True

    def truncate(self, current: ReplicaLog) -> None:
        """Ask the current replica where the latest epoch ends, and cut. [HWM-42]"""
        latest = self.log.latest_epoch
        end = None if latest is None else current.end_of_epoch(latest)
        complete = True
        if end is not None:
            self.offset, complete = self.log.truncation_for(*end)
        self.log.truncate_to(self.offset)
        self.is_truncating = not complete

    def fetch(self, current: ReplicaLog) -> bool:
        """Whether there was something to be had. [HWM-43]"""
        fetched = current.start <= self.offset <= current.end
        if fetched:
            self.log.copy_from(current)
            self.log.update_high_watermark(current.high_watermark)
            self.log.maybe_increment_log_start(current.start)
        else:
            self.log.reset_to(current.start, current.end)
        self.offset = self.log.end
        return fetched


class Partition:
    """One replica. `now` gives ms."""

    Log = ReplicaLog
    Future = FutureReplica
    name = "t-0"
    assigned_directory = 1

    def __init__(
        self,
        broker: int,
        broker_epoch: int,
        lag_max_ms: int,
        min_isr: int,
        metadata: Metadata,
        queue: AlterPartitionQueue,
        now: Callable[[], int],
    ) -> None:
        self.broker, self.broker_epoch = broker, broker_epoch
        self.lag_max_ms, self.configured_min_isr = lag_max_ms, min_isr
        self.metadata, self.queue, self.now = metadata, queue, now
        self.log = self.Log()
        self.leader: int | None = None
        self.leader_epoch = -1
        self.partition_epoch = 0
        self.epoch_start: int | None = None
        self.state: State = CommittedState()
        self.followers: dict[int, FollowerState] = {}
        self.last_fetched_epoch: int | None = None
        self.directory: int | None = None
        self.wanted_directory: int | None = None
        self.future: FutureReplica | None = None
        self.assignment: tuple[int, bool] | None = None
        """what the controller is asked to note: a directory, and whether a future replica is to be there"""

    @property
    def is_leader(self) -> bool:
        return self.leader == self.broker

    @property
    def min_isr(self) -> int:
        """[HWM-27]"""
        return min(self.configured_min_isr, len(self.followers) + 1)

    def lead(self) -> None:
        """Raises NotLeaderOrFollower. [HWM-10]"""
        if not self.is_leader:
            raise NotLeaderOrFollower

    # what the controller says

    def make_leader(self, leader_epoch: int, partition_epoch: int, replicas: Iterable[int], isr: Iterable[int]) -> bool:
        """Whether it did not lead before. [HWM-23, HWM-24]"""
        if partition_epoch < self.partition_epoch:
            self.restart_move()
            return False
        new_leader, in_sync = not self.is_leader, frozenset(isr)
        self._take_followers([id for id in replicas if id != self.broker], keep=not new_leader)
        self.state = CommittedState(in_sync)
        if leader_epoch > self.leader_epoch:
            self._begin_epoch(leader_epoch, new_leader, in_sync)
        self.partition_epoch = partition_epoch
        self.leader = self.broker
        self.maybe_increment_high_watermark()
        self.restart_move()
        return new_leader

    def _take_followers(self, ids: Sequence[int], *, keep: bool) -> None:
        """Those that are new are not known. [HWM-24]"""
        known = self.followers if keep else {}
        self.followers = {id: known.get(id, FollowerState()) for id in sorted(ids)}

    def _begin_epoch(self, leader_epoch: int, new_leader: bool, in_sync: frozenset[int]) -> None:
        """The epoch is in the log before its first record. [HWM-24, HWM-25]"""
        end, now = self.log.end, self.now()
        self.log.epochs.assign(leader_epoch, end)
        for id, follower in self.followers.items():
            self.followers[id] = follower.reset(end, now, new_leader=new_leader, in_sync=id in in_sync)
        self.leader_epoch, self.epoch_start = leader_epoch, end

    def make_follower(self, leader: int, leader_epoch: int, partition_epoch: int, recovering: bool) -> bool:
        """Whether it begins to fetch. [HWM-23, HWM-26]"""
        if partition_epoch < self.partition_epoch:
            self.restart_move()
            return False
        is_new = leader_epoch > self.leader_epoch
        self.leader, self.leader_epoch, self.partition_epoch = leader, leader_epoch, partition_epoch
        self.epoch_start = None
        self.followers = {}
        self.state = CommittedState(recovering=recovering)
        if is_new:
            self.last_fetched_epoch = self.log.latest_epoch
        self.restart_move()
        return is_new

    # the high watermark

    def is_under_min_isr(self) -> bool:
        """[HWM-3]"""
        return len(self.state.isr) < self.min_isr

    def is_eligible(self, id: int) -> bool:
        """Whether a follower may join the in-sync replicas. [HWM-6]"""
        broker, seen = self.metadata.get(id), self.followers[id].broker_epoch
        if broker is None or broker.fenced or broker.shutting_down:
            return False
        return seen is not None and seen in (NOT_COMPARED, broker.epoch)

    def is_waited_for(self, id: int) -> bool:
        """Whether the high watermark is not above a follower's log end. [HWM-3]"""
        if id in self.state.maximal_isr:
            return True
        caught_up = self.followers[id].is_caught_up(self.log.end, self.now(), self.lag_max_ms)
        return caught_up and self.is_eligible(id)

    def maybe_increment_high_watermark(self) -> bool:
        """Whether it rose. [HWM-3]"""
        if self.is_under_min_isr():
            return False
        new = self.log.end
        for id, follower in self.followers.items():
            if follower.log_end < new and self.is_waited_for(id):
                new = follower.log_end
        return self.log.maybe_increment_high_watermark(new)

    # producers

    def append_as_leader(self, count: int, acks: int) -> tuple[int, int, bool]:
        """First and last offset, and whether the high watermark rose. Raises NotLeaderOrFollower, NotEnoughReplicas.
        [HWM-27, HWM-28]"""
        self.lead()
        if acks == -1 and self.is_under_min_isr():
            raise NotEnoughReplicas
        first = self.log.append(self.leader_epoch, count)
        return first, self.log.end - 1, self.maybe_increment_high_watermark()

    def enough_replicas_reach(self, offset: int) -> tuple[bool, str | None]:
        """Whether a producer is answered, and the error. [HWM-29]"""
        if not self.is_leader:
            return False, "NOT_LEADER_OR_FOLLOWER"
        if self.log.high_watermark < offset:
            return False, None
        enough = len(self.state.maximal_isr) >= self.min_isr
        return True, None if enough else "NOT_ENOUGH_REPLICAS_AFTER_APPEND"

    # fetches

    def check_epoch(self, leader_epoch: int | None) -> None:
        """Raises FencedLeaderEpoch, UnknownLeaderEpoch. [HWM-9]"""
        if leader_epoch is not None and leader_epoch < self.leader_epoch:
            raise FencedLeaderEpoch
        if leader_epoch is not None and leader_epoch > self.leader_epoch:
            raise UnknownLeaderEpoch

    def local_log(self, leader_epoch: int | None, only_leader: bool) -> ReplicaLog:
        """Raises for another epoch, and NotLeaderOrFollower. [HWM-9, HWM-10]"""
        self.check_epoch(leader_epoch)
        if self.leader is None or (only_leader and not self.is_leader):
            raise NotLeaderOrFollower
        return self.log

    def read(self, offset: int, last_epoch: int | None, *, up_to_end: bool) -> ReadInfo:
        """Raises OffsetOutOfRange. [HWM-12, HWM-13, HWM-37]"""
        log = self.log
        bounds = (log.high_watermark, log.start, log.end)
        if last_epoch is not None:
            found = log.end_of_epoch(last_epoch)
            if found is None or offset < log.start:
                raise OffsetOutOfRange
            if found[0] < last_epoch or found[1] < offset:
                return ReadInfo(found, None, *bounds)
        if offset < log.start or offset > log.end:
            raise OffsetOutOfRange
        return ReadInfo(None, log.end if up_to_end else max(offset, log.high_watermark), *bounds)

    def fetch_as_follower(
        self, id: int, broker_epoch: int, leader_epoch: int | None, last_epoch: int | None, offset: int, log_start: int
    ) -> ReadInfo:
        """Raises for another epoch, NotLeaderOrFollower, UnknownReplica, OffsetOutOfRange, StaleBrokerEpoch.
        [HWM-11, HWM-12]"""
        self.local_log(leader_epoch, only_leader=True)
        if id not in self.followers:
            raise UnknownReplica(leader_epoch is not None)
        info = self.read(offset, last_epoch, up_to_end=True)
        if info.diverging is None:
            self.update_follower(id, offset, log_start, broker_epoch)
        return info

    def update_follower(self, id: int, offset: int, log_start: int, broker_epoch: int) -> None:
        """Raises StaleBrokerEpoch. [HWM-8]"""
        alive = self.metadata.alive_epoch(id)
        if broker_epoch != NOT_COMPARED and alive is not None and alive > broker_epoch:
            raise StaleBrokerEpoch
        before = self.followers[id]
        self.followers[id] = before.fetched(offset, log_start, self.log.end, self.now(), broker_epoch)
        self.maybe_expand_isr(id)
        if before.log_end != offset:
            self.maybe_increment_high_watermark()

    def end_of_epoch(self, leader_epoch: int | None, epoch: int, only_leader: bool) -> tuple[int, int]:
        """OffsetsForLeaderEpoch: epoch and end offset, both -1 where that is unknown. [HWM-35]"""
        return self.local_log(leader_epoch, only_leader).end_of_epoch(epoch) or (UNDEFINED, UNDEFINED)

    def latest_offset(self, leader_epoch: int | None, client: bool) -> int:
        """ListOffsets of the latest one. Raises OffsetNotAvailable. [HWM-36]"""
        log = self.local_log(leader_epoch, only_leader=True)
        if not client:
            return log.end
        if self.epoch_start is not None and log.high_watermark < self.epoch_start:
            raise OffsetNotAvailable
        return log.high_watermark

    # changes of the in-sync replicas

    def maybe_expand_isr(self, id: int) -> None:
        """[HWM-14]"""
        state = self.state
        if (
            not isinstance(state, CommittedState)
            or id in state.isr
            or not self.is_eligible(id)
            or not self.is_in_sync(id)
        ):
            return
        self.submit(PendingExpand(id, self._proposal(state.isr | {id}), state))

    def is_in_sync(self, id: int) -> bool:
        """Whether a follower has what is replicated, and what the leader found when it was elected. [HWM-14]"""
        end = self.followers[id].log_end
        return end >= self.log.high_watermark and self.epoch_start is not None and end >= self.epoch_start

    def out_of_sync(self, isr: Iterable[int]) -> frozenset[int]:
        """[HWM-15]"""
        now = self.now()
        return frozenset(
            id
            for id in isr
            if id != self.broker
            and (id not in self.followers or not self.followers[id].is_caught_up(self.log.end, now, self.lag_max_ms))
        )

    def maybe_shrink_isr(self) -> None:
        """[HWM-15]"""
        state = self.state
        if not self.is_leader or not isinstance(state, CommittedState):
            return
        leaving = self.out_of_sync(state.isr)
        if leaving:
            self.submit(PendingShrink(leaving, self._proposal(state.isr - leaving), state))

    def _proposal(self, isr: Iterable[int]) -> LeaderAndIsr:
        return LeaderAndIsr(
            self.leader_epoch, self.partition_epoch, tuple((id, self.epoch_of(id)) for id in sorted(isr))
        )

    def epoch_of(self, id: int) -> int:
        """The broker epoch with which a member is proposed. [HWM-16]"""
        if id == self.broker:
            return self.broker_epoch
        seen = self.followers[id].broker_epoch if id in self.followers else None
        return NOT_COMPARED if seen is None else seen

    def submit(self, change: Pending) -> None:
        """Ask the controller, unless it is asked something else. [HWM-16]"""
        self.state = change
        if not self.queue.submit(self.name, change):
            self.state = change.committed

    def on_success(self, answer: LeaderAndIsr) -> None:
        """The controller has done it. [HWM-17, HWM-18, HWM-22]"""
        change = self.queue.take(self.name)
        if self.state != change:
            return
        if answer.leader_epoch != self.leader_epoch or answer.partition_epoch < self.partition_epoch:
            return
        self.state = CommittedState(frozenset(id for id, _ in answer.isr))
        self.partition_epoch = answer.partition_epoch
        self.maybe_increment_high_watermark()

    def on_error(self, error: str) -> None:
        """The controller has not done it, or not said that it has. [HWM-19, HWM-20, HWM-21, HWM-22]"""
        change = self.queue.take(self.name)
        if self.state != change:
            return
        reaction = REACTIONS.get(error, SEND_AGAIN)
        if reaction == GIVE_UP:
            self.state = change.committed
        elif reaction == SEND_AGAIN:
            self.submit(change)

    # deletion

    def low_watermark(self) -> int:
        """Raises NotLeaderOrFollower. [HWM-31]"""
        self.lead()
        low = self.log.start
        for id, follower in self.followers.items():
            if follower.log_start < low and self.metadata.alive_epoch(id) is not None:
                low = follower.log_start
        return low if self.future is None else min(low, self.future.log.start)

    def delete_records(self, offset: int) -> tuple[int, int]:
        """The offset, and the low watermark. Raises NotLeaderOrFollower, DeletionOutOfRange. [HWM-30]"""
        self.lead()
        wanted = self.log.high_watermark if offset == UNKNOWN_OFFSET else offset
        if wanted < 0:
            raise DeletionOutOfRange
        self.log.maybe_increment_log_start(wanted)
        return wanted, self.low_watermark()

    # a follower

    def process(self, batches: Iterable[tuple[int, int]], high_watermark: int, log_start: int) -> None:
        """The leader's records, as epochs and numbers of records, and its offsets. [HWM-32, HWM-38]"""
        for epoch, count in batches:
            if epoch > self.leader_epoch:
                break
            self.log.append(epoch, count)
            self.last_fetched_epoch = epoch
        self.log.update_high_watermark(high_watermark)
        self.log.maybe_increment_log_start(log_start)

    def truncate_on_fetch(self, epoch: int, end_offset: int) -> int:
        """The logs diverge. The log end then. [HWM-33]"""
        offset, complete = self.log.truncation_for(epoch, end_offset)
        self.log.truncate_to(offset)
        self.last_fetched_epoch = self.log.latest_epoch
        if complete and self.future is not None:
            self.future.mark_for_truncation(offset)
        return self.log.end

    def fetch_offset_and_truncate(self, leader_start: int, leader_end: int) -> int:
        """A fetch was out of range. The log end then. [HWM-34]"""
        if self.log.reset_to(leader_start, leader_end) and self.future is not None:
            self.future.mark_for_truncation(leader_end)
        self.last_fetched_epoch = self.log.latest_epoch
        return self.log.end

    def next_fetch(self) -> tuple[int, int | None, int, int]:
        """Leader epoch, epoch of the last record, offset and log start. [HWM-38]"""
        return self.leader_epoch, self.last_fetched_epoch, self.log.end, self.log.start

    # a move to another log directory

    def restart_move(self) -> None:
        """The controller has said something. [HWM-41, HWM-46]"""
        if self.directory is None:
            self.directory = self.assigned_directory if self.wanted_directory is None else self.wanted_directory
            self.wanted_directory = None
        if self.future is not None:
            self.future.reassignment = UNASKED
            if self.future.leader_epoch != self.leader_epoch:
                self.future.begin(self.leader_epoch)

    def alter_log_dir(self, directory: int) -> None:
        """Move the replica there. Raises ReplicaNotAvailable. [HWM-41]"""
        if self.future is not None and self.future.directory != directory:
            self.cancel_move()
        if self.directory is None:
            self.wanted_directory = directory
            raise ReplicaNotAvailable
        if directory != self.directory and self.future is None:
            self.future = self.Future(directory, self.leader_epoch, self.Log())

    def cancel_move(self) -> None:
        """Drop the future replica. [HWM-47]"""
        if self.future is not None and self.future.reassignment != UNASKED and self.directory is not None:
            self.assignment = self.directory, False
        self.future = None

    def on_assigned(self) -> None:
        """The controller has noted the directory that it was last asked for. [HWM-48]"""
        assignment, self.assignment = self.assignment, None
        if assignment is not None and assignment[1] and self.future is not None:
            self.future.reassignment = ACCEPTED

    def continue_move(self) -> None:
        """One round of the future replica's fetcher. [HWM-42, HWM-43, HWM-44]"""
        future = self.future
        assert future is not None
        if future.is_truncating:
            future.truncate(self.log)
        if future.is_truncating or not future.fetch(self.log) or future.log.end != self.log.end:
            return
        if future.reassignment == ACCEPTED:
            self.promote(future)
        elif future.reassignment == UNASKED:
            future.reassignment = QUEUED
            self.assignment = future.directory, True

    def promote(self, future: FutureReplica) -> None:
        """Let the future replica take the place of the current one. [HWM-44, HWM-45]"""
        future.log.update_high_watermark(self.log.high_watermark)
        self.log = future.log
        self.directory = future.directory
        self.future = None


GIVE_UP, WAIT, SEND_AGAIN = "give up", "wait", "send again"
REACTIONS: Mapping[str, str] = {
    "INELIGIBLE_REPLICA": GIVE_UP,
    "OPERATION_NOT_ATTEMPTED": GIVE_UP,
    "UNKNOWN_TOPIC_OR_PARTITION": WAIT,
    "UNKNOWN_TOPIC_ID": WAIT,
    "FENCED_LEADER_EPOCH": WAIT,
    "INVALID_UPDATE_VERSION": WAIT,
    "INVALID_REQUEST": WAIT,
    "NEW_LEADER_ELECTED": WAIT,
}
"""What a leader does on an error of AlterPartition; any other is sent again."""
