"""The leader's validator, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaspec.contract.machine import ByName, Refused
from kafkaspec.impl.storage import validator as impl
from kafkaspec.impl.storage.validator import OLD_OVERHEAD, SIZE
from kafkaspec.spec.storage import validator as spec


class Driver(ByName):
    """The validator, and what its last call counted."""

    machine = spec.machine
    refusals = {impl.InvalidRecords: lambda e: Refused(e.clause, e.error, e.words)}
    make: type[impl.Validator] = impl.Validator

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.meters = spec.Meters()

    def state(self) -> spec.Meters:
        return self.meters

    def validate(self, **asked: Any) -> spec.ValidationResult:
        v = self.make(**asked)
        try:
            data = v.run()
        finally:
            self.meters = spec.Meters(**v.counts)
        batches = tuple(shown(e) for e in impl.entries(data))
        return spec.ValidationResult(v.now, v.largest, v.changed, v.next_offset, v.memory, v.converted, data, batches)


def shown(e: impl.Entry) -> spec.WrittenBatch:
    """A batch as recordings show it."""
    offset = int.from_bytes(e.data[:8], "big", signed=True)
    h = e.header
    if h is not None:
        return spec.WrittenBatch(
            offset, e.magic, e.attributes, h.max_timestamp, h.leader_epoch, h.base_timestamp, h.last_offset_delta,
            h.producer_id, h.producer_epoch, h.base_sequence, h.count, h.section()[0],
        )  # fmt: skip
    whole = impl.old_message(e.data)
    records = e.data[OLD_OVERHEAD[e.magic] - 2 * SIZE.size :]
    if e.codec and whole.value is not None:
        records = impl.opened(e.codec, e.magic, whole.value)
    return spec.WrittenBatch(offset, e.magic, e.attributes, whole.timestamp, -1, -1, 0, -1, -1, -1, 1, records)
