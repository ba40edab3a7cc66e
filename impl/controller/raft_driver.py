"""One replica of the quorum, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.machine import ByName
from kafkaspec.impl.controller import raft as impl
from kafkaspec.spec.controller import raft as spec


def _id(at: impl.Position | None) -> spec.SnapshotId | None:
    return None if at is None else spec.SnapshotId(*at)


class Driver(ByName):
    """Replica 0."""

    machine = spec.machine
    refusals = {
        impl.NotLeaderError: spec.NO_LEADER_APPENDS,
        impl.UnusableSnapshotError: spec.NO_SUCH_SNAPSHOT,
    }
    make: type[impl.Replica] = impl.Replica
    subject: impl.Replica

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        first = spec.initial(**arguments)
        self.subject = self.make(0, first.first, first.dynamic)

    def state(self) -> spec.Replica:
        """The log with its epochs, and the voters where it begins."""
        r = self.subject
        log = r.log
        return spec.Replica(
            local=r.local,
            first=log.history[0][1],
            dynamic=r.dynamic,
            role=r.role,  # type: ignore[arg-type]
            epoch=r.epoch,
            leader=r.leader,
            voted=r.voted,
            start=log.start,
            before=_id(log.before),
            log=tuple(spec.Record(*record) for record in log.read(log.start)),
            snapshot=_id(r.snapshot),
            fetching=_id(r.fetching),
            high=r.high,
            granted=frozenset(n for n, granted in r.answers.items() if granted),
            rejected=frozenset(n for n, granted in r.answers.items() if not granted),
            fetched=r.has_fetched,
            begun=r.begun,
            ends=dict(r.ends),
            heard=frozenset(r.heard),
            prepared=tuple(spec.Record(*record) for record in r.prepared),
            committed=r.committed,
            given=r.given,
            announced=r.announced,
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

    def fetch_response(self, answer: spec.FetchAnswer) -> None:
        at = answer.diverging and impl.Position(*answer.diverging)
        snapshot = answer.snapshot and impl.Position(*answer.snapshot)
        records = tuple(impl.Record(*record) for record in answer.records)
        self.subject.fetch_response(
            impl.Fetched(answer.error, answer.epoch, answer.leader, answer.high, at, snapshot, records)
        )
