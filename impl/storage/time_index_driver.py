"""The time index, for the spec to walk beside."""

from __future__ import annotations

from kafkaspec.impl.common.mapped_index import NotAbove
from kafkaspec.impl.common.mapped_index_driver import IndexDriver, refused_by_both
from kafkaspec.impl.storage import time_index as impl
from kafkaspec.spec.storage import time_index as spec


class Driver(IndexDriver):
    """A time index, for the spec to walk beside."""

    subject: impl.TimeIndex
    machine = spec.machine
    refusals = {
        **refused_by_both(spec),
        NotAbove: spec.OFFSET_BELOW,
        impl.TimeBelow: spec.TIME_BELOW,
        impl.Overfull: spec.OVERFULL,
    }
    index_class = impl.TimeIndex
    layout, observation = spec.LAYOUT, spec.Observation

    @classmethod
    def filling(cls, n: int) -> tuple[int, int]:
        return 10 * n, n // 2

    def last(self) -> impl.TimestampOffset:
        return self.subject.last_entry

    def pages_touched(self, timestamp: int) -> list[int]:
        self.subject.lookup(timestamp)
        return self.subject.pages_touched()
