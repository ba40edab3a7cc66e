"""One replica of the quorum, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.machine import ByName
from kafkaspec.impl.controller import raft as impl
from kafkaspec.spec.common import raft_replica as replica
from kafkaspec.spec.controller import raft as spec


def _id(at: impl.Position | None) -> replica.SnapshotId | None:
    return None if at is None else replica.SnapshotId(*at)


def _event(notice: impl.Notice) -> replica.Event:
    kind, epoch, leader, offset, records = notice
    return replica.Event(kind, epoch, leader, offset, tuple(replica.Record(*record) for record in records))  # type: ignore[arg-type]


class Driver(ByName):
    """Replica 0."""

    machine = spec.machine
    refusals = {
        impl.NotLeaderError: spec.NO_LEADER_APPENDS,
        impl.UnusableSnapshotError: spec.NO_SUCH_SNAPSHOT,
        impl.TooManyBatchesError: spec.TOO_MANY_BATCHES,
    }
    make: type[impl.Replica] = impl.Replica
    subject: impl.Replica

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        voters, dynamic = arguments.get("voters", (0, 1, 2)), arguments.get("dynamic", True)
        self.subject = self.make(0, voters, dynamic)

    def state(self) -> replica.Replica:
        """The log with its epochs, and the voters where it begins."""
        r = self.subject
        log = r.log
        first_offset, first = log.history[0]
        return replica.Replica(
            local=r.local,
            first=first,
            dynamic=r.dynamic,
            role=r.role,  # type: ignore[arg-type]
            epoch=r.epoch,
            leader=r.leader,
            voted=r.voted,
            start=log.start,
            log=tuple(replica.Record(*record) for record in log.read(log.start)),
            snapshots=tuple(replica.SnapshotId(*at) for at in log.snapshots),
            first_offset=first_offset,
            fetching=_id(r.fetching),
            high=r.high,
            granted=frozenset(n for n, granted in r.answers.items() if granted),
            rejected=frozenset(n for n, granted in r.answers.items() if not granted),
            fetched=r.has_fetched,
            homeless=r.is_homeless,
            begun=r.begun,
            ends=dict(r.ends),
            seen=dict(r.ends_seen),
            caught=frozenset(r.caught_up),
            heard=frozenset(r.heard),
            prepared=tuple(replica.Record(*record) for record in r.prepared),
            committed=r.committed,
            given=r.given,
            announced=r.announced,
            told=tuple(map(_event, r.told)),
        )

    def prepare_append(self, epoch: int, values: tuple[str, ...]) -> Any:
        try:
            return self.subject.prepare_append(epoch, values)
        except impl.IllegalArgumentError:
            return spec.NO_SUCH_APPEND

    def resign(self, epoch: int) -> Any:
        try:
            return self.subject.resign(epoch)
        except impl.IllegalArgumentError:
            return spec.NO_SUCH_RESIGNATION

    def fetch_response(self, answer: replica.FetchAnswer) -> None:
        at = answer.diverging and impl.Position(*answer.diverging)
        snapshot = answer.snapshot and impl.Position(*answer.snapshot)
        records = tuple(impl.Record(*record) for record in answer.records)
        self.subject.fetch_response(
            impl.FetchReply(answer.error, answer.epoch, answer.leader, answer.high, at, snapshot, records)
        )
