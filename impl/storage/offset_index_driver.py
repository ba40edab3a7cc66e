"""The offset index, for the spec to walk beside."""

from __future__ import annotations

from kafkaspec.impl.common.mapped_index import NotAbove
from kafkaspec.impl.common.mapped_index_driver import IndexDriver, refused_by_both
from kafkaspec.impl.storage import offset_index as impl
from kafkaspec.spec.storage import offset_index as spec


class Driver(IndexDriver):
    """An offset index, for the spec to walk beside."""

    subject: impl.OffsetIndex
    machine = spec.machine
    refusals = {**refused_by_both(spec), NotAbove: spec.NOT_ABOVE}
    index_class = impl.OffsetIndex
    layout, observation = spec.LAYOUT, spec.Observation

    @classmethod
    def filling(cls, n: int) -> tuple[int, int]:
        return n, 10 * n

    def last(self) -> int:
        return self.subject.last_offset

    def pages_touched(self, offset: int) -> spec.Reads:
        self.subject.lookup(offset)
        slots = self.subject.touched[:-1] if self.subject.entries else []
        return spec.Reads(slots, self.subject.pages_touched())
