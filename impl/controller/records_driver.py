"""Metadata records, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaspec.contract.machine import ByName, Refused
from kafkaspec.impl.controller import records as impl
from kafkaspec.spec.controller import records as spec


class Driver(ByName):
    """The codec, asked for one record at a time."""

    machine = spec.machine
    refusals = {impl.RecordError: lambda e: Refused(e.clause, e.error)}
    codec = impl

    def decode_data(
        self, key: bytes | None, value: bytes | None, timestamp_delta: int, headers: Sequence[spec.Header]
    ) -> spec.MetadataRecord:
        last = (headers[-1].value or b"\0")[-1] if headers else 0
        return shown(self.codec.decode_record(key, value, timestamp_delta, last))

    def rewrite_data(self, value: bytes) -> bytes:
        return self.codec.encode(self.codec.decode(value))

    def encode_data(self, record: spec.MetadataRecord) -> bytes:
        return self.codec.encode(self.codec.from_json(record.type, record.version, record.fields))

    def decode_control(self, key: bytes | None, value: bytes | None) -> spec.MetadataRecord:
        return shown(self.codec.decode_record(key, value, control=True))

    def encode_control(self, record: spec.MetadataRecord) -> spec.ControlBytes:
        of = self.codec.from_json(record.type, record.version, record.fields, control=True)
        return spec.ControlBytes(*self.codec.encode_control(of))


def shown(record: impl.Record) -> spec.MetadataRecord:
    return spec.MetadataRecord(record.type, record.version, record.json())
