"""The offsets of a controller whose memory is one map, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from kafkaspec.contract.machine import ByName, Json, Refused
from kafkaspec.impl.controller import offset_control as impl
from kafkaspec.impl.controller import timeline
from kafkaspec.spec.common.timeline_state import LATEST_EPOCH, Timeline, View
from kafkaspec.spec.controller import offset_control as spec
from kafkaspec.spec.controller.timeline import initial as first_timeline

MARKERS = {m.value.lower(): m for m in impl.Marker}


class Driver(ByName):
    """The manager, its registry, and a map on it."""

    machine = spec.machine
    CLAUSES: Mapping[type[impl.OffsetError], str] = {
        impl.ActiveError: "OFC-3",
        impl.StableSnapshotError: "OFC-4",
        impl.StandbyError: "OFC-5",
        impl.NoWayBackError: "OFC-6",
        impl.LateSnapshotError: "OFC-10",
        impl.OpenTransactionError: "OFC-12",
        impl.NothingToEndError: "OFC-13",
        impl.NothingToAbortError: "OFC-14",
        impl.MarkerInSnapshotError: "OFC-15",
        impl.LoadingError: "OFC-16",
        impl.NotLoadingError: "OFC-17",
    }
    make: type[impl.OffsetControl] = impl.OffsetControl
    subject: impl.OffsetControl

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.now = spec.BEGIN_MS
        registry = timeline.SnapshotRegistry()
        self.data: timeline.TimelineHashMap[str, int] = timeline.TimelineHashMap(registry, 4)
        self.subject = self.make(registry, lambda: self.now)

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        try:
            return super().apply(name, arguments)
        except impl.OffsetError as e:
            return Refused(self.CLAUSES[type(e)], spec.RUNTIME_EXCEPTION, e.args[0])

    def state(self) -> spec.Offsets:
        """The spec's state that the numbers and the collections stand for."""
        s, registry = self.subject, self.subject.registry
        past = {epoch: self._view(epoch) for epoch in registry.epochs}
        memory: Timeline = first_timeline()._replace(
            present=self._view(LATEST_EPOCH), past=past, highest=registry.highest_epoch
        )
        loading = None if s.loading is None else spec.SnapshotId(s.loading.offset, s.loading.epoch)
        metrics = spec.Metrics(
            s.gauges.active, s.gauges.last_applied, s.gauges.last_committed, s.gauges.last_applied_timestamp
        )
        return spec.Offsets(
            memory, s.next_write, s.last_committed, s.committed_epoch, s.last_stable, s.transaction_start, loading,
            metrics, self.now,
        )  # fmt: skip

    def _view(self, epoch: int) -> View:
        return first_timeline().present._replace(
            entries={spec.KEYS.index(key): offset for key, offset in self.data.items(epoch)}
        )

    def _records(self, entries: Sequence[str]) -> list[impl.Marker | impl.Replay]:
        return [MARKERS[e] if e in MARKERS else partial(self._put, e) for e in entries]

    def _put(self, key: str, offset: int) -> None:
        self.data.put(key, offset)

    def _entries(self, kind: str, count: int, key: str) -> list[str]:
        return [key] * count if kind == "data" else [kind]

    def append_batch(self, first_offset: int, records: Sequence[str]) -> None:
        self.subject.replay(self._records(records), first_offset)
        self.subject.scheduled(first_offset + len(records) - 1)

    def append_active(
        self, kind: str, first_offset: int, count: int, key: str, epoch: int, append_timestamp: int
    ) -> None:
        self.append_batch(first_offset, self._entries(kind, count, key))

    def commit_batch(self, first_offset: int, records: Sequence[str], epoch: int, append_timestamp: int) -> None:
        self.subject.replay(self._records(records), first_offset)
        self.subject.committed(first_offset + len(records) - 1, epoch, append_timestamp)

    def commit_standby(
        self, kind: str, first_offset: int, count: int, key: str, epoch: int, append_timestamp: int
    ) -> None:
        self.commit_batch(first_offset, self._entries(kind, count, key), epoch, append_timestamp)

    def handle_commit_batch(self, first_offset: int, last_offset: int, epoch: int, append_timestamp: int) -> None:
        self.subject.committed(last_offset, epoch, append_timestamp)

    def commit_control_batch(self, offset: int, epoch: int, append_timestamp: int) -> None:
        self.subject.control_committed(offset, append_timestamp)

    def begin_load_snapshot(self, offset: int, epoch: int) -> None:
        self.subject.begin_load(impl.SnapshotId(offset, epoch))

    def load_snapshot_data(self, key: str, value: int) -> None:
        self._put(key, value)

    def replay_in_snapshot(self, kind: str) -> None:
        self.subject.mark(MARKERS[kind], spec.NONE)

    def end_load_snapshot(self, timestamp: int) -> None:
        self.subject.end_load(timestamp)

    def advance(self, ms: int) -> None:
        self.now += ms
