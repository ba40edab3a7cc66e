"""A partition on one broker, for the spec to walk beside: the clock, the metadata and the answers are the caller's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkaspec.contract.machine import ByName, Refused
from kafkaspec.impl.storage import high_watermark as impl
from kafkaspec.spec.storage import high_watermark as spec
from kafkaspec.spec.storage.high_watermark_parts import answers, fetches, moves, replicas
from kafkaspec.spec.storage.leader_epochs import Entry


def _unknown_replica(error: BaseException) -> Refused:
    named = isinstance(error, impl.UnknownReplica) and error.names_epoch
    return spec.UNKNOWN_REPLICA if named else spec.UNKNOWN_REPLICA_WITHOUT_EPOCH


class Driver(ByName):
    """Our implementation, walked against the spec."""

    machine = spec.machine
    refusals = {
        impl.NotLeaderOrFollower: fetches.NOT_LEADER,
        impl.StaleBrokerEpoch: spec.STALE_BROKER,
        impl.FencedLeaderEpoch: fetches.FENCED,
        impl.UnknownLeaderEpoch: fetches.UNKNOWN_EPOCH,
        impl.UnknownReplica: _unknown_replica,
        impl.OffsetOutOfRange: fetches.NOT_THERE,
        impl.DeletionOutOfRange: spec.ABOVE_HIGH_WATERMARK,
        impl.NotEnoughReplicas: spec.TOO_FEW,
        impl.OffsetNotAvailable: spec.NOT_AVAILABLE,
        impl.ReplicaNotAvailable: moves.NO_REPLICA,
    }
    subject: impl.Partition
    make: type[impl.Partition] = impl.Partition
    queue_class: type[impl.AlterPartitionQueue] = impl.AlterPartitionQueue

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.first = self.machine.initial(**arguments)
        self.now = self.first.now
        self.metadata = impl.Metadata()
        config = self.first.config
        self.queue = self.queue_class()
        self.subject = self.make(
            replicas.LOCAL,
            config.broker_epoch,
            config.replica_lag_time_max_ms,
            config.min_insync_replicas,
            self.metadata,
            self.queue,
            lambda: self.now,
        )
        others = [f.id for f in self.first.followers]
        for b in self.first.brokers:
            self.update_broker(*b)
        if others:
            self.subject.make_leader(1, 1, [replicas.LOCAL, *others], [replicas.LOCAL, *others])

    # the environment

    def update_broker(self, id: int, epoch: int, fenced: bool, shutting_down: bool) -> None:
        self.metadata[id] = impl.Registration(epoch, fenced, shutting_down)

    def remove_broker(self, id: int) -> None:
        self.metadata.pop(id, None)

    def advance(self, ms: int) -> None:
        self.now += ms

    # calls that are named otherwise

    def make_leader(
        self, leader_epoch: int, partition_epoch: int, replicas: Sequence[int], isr: Sequence[int],
        leader_recovery_state: str,
    ) -> bool:  # fmt: skip
        return self.subject.make_leader(leader_epoch, partition_epoch, replicas, isr)

    def make_follower(self, leader: int, leader_epoch: int, partition_epoch: int, leader_recovery_state: str) -> bool:
        return self.subject.make_follower(leader, leader_epoch, partition_epoch, leader_recovery_state == "RECOVERING")

    def append_records_to_leader(self, count: int, required_acks: int) -> answers.AppendInfo:
        return answers.AppendInfo(*self.subject.append_as_leader(count, required_acks))

    def check_enough_replicas_reach_offset(self, required_offset: int) -> answers.Completion:
        return answers.Completion(*self.subject.enough_replicas_reach(required_offset))

    def fetch_records(
        self, replica: int, broker_epoch: int, current_leader_epoch: int | None, last_fetched_epoch: int | None,
        offset: int, log_start: int,
    ) -> fetches.Fetch:  # fmt: skip
        return _fetch(
            self.subject.fetch_as_follower(
                replica, broker_epoch, current_leader_epoch, last_fetched_epoch, offset, log_start
            )
        )

    def fetch_records_of_consumer(
        self, current_leader_epoch: int | None, last_fetched_epoch: int | None, offset: int, only_leader: bool
    ) -> fetches.Fetch:
        self.subject.local_log(current_leader_epoch, only_leader)
        return _fetch(self.subject.read(offset, last_fetched_epoch, up_to_end=False))

    def last_offset_for_leader_epoch(
        self, current_leader_epoch: int | None, leader_epoch: int, only_leader: bool
    ) -> fetches.EpochEnd:
        return fetches.EpochEnd(*self.subject.end_of_epoch(current_leader_epoch, leader_epoch, only_leader))

    def alter_partition_succeeded(self, leader_epoch: int, partition_epoch: int, isr: Sequence[int]) -> None:
        members = tuple((id, impl.NOT_COMPARED) for id in isr)
        self.subject.on_success(impl.LeaderAndIsr(leader_epoch, partition_epoch, members))

    def alter_partition_failed(self, error: str) -> None:
        self.subject.on_error(error)

    def delete_records_on_leader(self, offset: int) -> answers.Deletion:
        return answers.Deletion(*self.subject.delete_records(offset))

    def low_watermark_if_leader(self) -> int:
        return self.subject.low_watermark()

    def process_partition_data(self, batches: Sequence[answers.Batch], high_watermark: int, log_start: int) -> None:
        self.subject.process(batches, high_watermark, log_start)

    def truncate_on_fetch_response(self, epoch: int, end_offset: int) -> int:
        return self.subject.truncate_on_fetch(epoch, end_offset)

    def next_fetch(self) -> answers.FetchRequest:
        return answers.FetchRequest(*self.subject.next_fetch())

    def alter_replica_log_dirs(self, directory: int) -> None:
        self.subject.alter_log_dir(directory)

    def assign_replicas_to_dirs_succeeded(self) -> None:
        self.subject.on_assigned()

    def fetch_from_current_replica(self) -> None:
        self.subject.continue_move()

    def state(self) -> replicas.Partition:
        """The spec's state that the partition stands for."""
        brokers = tuple(
            replicas.Broker(id, b.epoch, b.fenced, b.shutting_down) for id, b in sorted(self.metadata.items())
        )
        return partition_of(self.subject, self.queue, self.first.config, self.now, brokers)


def partition_of(
    p: impl.Partition, queue: impl.AlterPartitionQueue, config: replicas.Config, now: int,
    brokers: tuple[replicas.Broker, ...],
) -> replicas.Partition:  # fmt: skip
    """The spec's state that a partition stands for, at this time and with these brokers."""
    sent = queue.unsent.get(p.name)
    return replicas.Partition(
        config=config,
        now=now,
        brokers=brokers,
        leader=p.leader,
        leader_epoch=p.leader_epoch,
        partition_epoch=p.partition_epoch,
        epoch_start=p.epoch_start,
        isr=tuple(sorted(p.state.isr)),
        recovering=p.state.recovering,
        pending=None if isinstance(p.state, impl.CommittedState) else _change(p.state.sent),
        in_flight=None if sent is None else _change(sent.sent),
        followers=tuple(_follower(id, f) for id, f in p.followers.items()),
        log=_log(p.log),
        last_fetched_epoch=p.last_fetched_epoch,
        directory=p.directory,
        wanted_directory=p.wanted_directory,
        future=None if p.future is None else _future(p.future),
        assignment=None if p.assignment is None else replicas.Assignment(*p.assignment),
    )


def _log(log: impl.ReplicaLog) -> replicas.Log:
    return replicas.Log(log.start, log.end, log.high_watermark, tuple(Entry(*e) for e in log.epochs.entries))


def _future(future: impl.FutureReplica) -> replicas.FutureReplica:
    return replicas.FutureReplica(
        future.directory,
        future.leader_epoch,
        _log(future.log),
        future.offset,
        future.is_truncating,
        future.reassignment,
    )


def _fetch(info: impl.ReadInfo) -> fetches.Fetch:
    diverging = None if info.diverging is None else fetches.EpochEnd(*info.diverging)
    return fetches.Fetch(diverging, info.end, info.high_watermark, info.log_start, info.log_end)


def _change(sent: impl.LeaderAndIsr) -> replicas.Change:
    members = tuple(replicas.Member(*m) for m in sent.isr)
    return replicas.Change(sent.leader_epoch, sent.partition_epoch, members)


def _follower(id: int, f: impl.FollowerState) -> replicas.Follower:
    return replicas.Follower(
        id,
        f.log_end,
        f.log_start,
        f.last_fetch_leader_end,
        f.last_fetch_ms,
        f.last_caught_up_ms,
        f.broker_epoch,
    )
