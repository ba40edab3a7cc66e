"""The time index, for the spec to walk beside."""

from __future__ import annotations

from kafkaspec.impl.common.mapped_index import (
    Corrupt,
    Full,
    NoSlot,
    NoSuchEntry,
    NotAbove,
    Overflow,
    ReadOnly,
    TooShort,
)
from kafkaspec.impl.common.mapped_index_driver import IndexDriver
from kafkaspec.impl.storage import time_index as impl
from kafkaspec.spec.storage import time_index as spec


class Driver(IndexDriver):
    """A time index, for the spec to walk beside."""

    subject: impl.TimeIndex
    machine = spec.machine
    refusals = {
        NotAbove: spec.OFFSET_BELOW,
        impl.TimeBelow: spec.TIME_BELOW,
        Full: spec.FULL,
        impl.Overfull: spec.OVERFULL,
        Overflow: spec.TOO_FAR,
        NoSlot: spec.NO_SLOT,
        TooShort: spec.TOO_SHORT,
        ReadOnly: spec.NOT_WRITABLE,
        Corrupt: spec.NOT_SANE,
        NoSuchEntry: spec.NO_SUCH_ENTRY,
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
