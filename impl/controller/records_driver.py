"""Metadata records, for the spec to walk beside."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from kafkaspec.contract.machine import ByName, Refused
from kafkaspec.impl.controller import records as impl
from kafkaspec.impl.storage.batch import COUNT_AT, put_record
from kafkaspec.spec.controller import records as spec

COUNT: Final = struct.Struct(">i")


class Driver(ByName):
    """The codec, asked for one record at a time."""

    machine = spec.machine
    refusals = {impl.RecordError: lambda e: Refused(e.clause, e.error)}
    codec = impl

    def decode_data(
        self, key: bytes | None, value: bytes | None, timestamp_delta: int, headers: Sequence[spec.Header]
    ) -> spec.MetadataRecord:
        """As a reader of the log has it: out of the bytes of a batch."""
        batch = bytearray(COUNT_AT) + COUNT.pack(1)
        put_record(batch, 0, timestamp_delta, key, value, [(h.key.encode(), h.value) for h in headers])
        (r,) = self.codec.log_records(bytes(batch))
        return shown(self.codec.decode_record(r.key, r.value, r.timestamp_delta, r.last_byte))

    def rewrite_data(self, value: bytes) -> bytes:
        """What the quick reader read, and, if it is a record again, what the exact one reads of that."""
        written = self.codec.encode(self.codec.Record(*self.codec.parse(value)))
        with suppress(impl.RecordError):
            return self.codec.encode(self.codec.decode(written))
        return written

    def encode_data(self, record: spec.MetadataRecord) -> bytes:
        return self.codec.encode(self.made(record, control=False))

    def decode_control(self, key: bytes | None, value: bytes | None) -> spec.MetadataRecord:
        return shown(self.codec.decode_record(key, value, control=True))

    def encode_control(self, record: spec.MetadataRecord) -> spec.ControlBytes:
        return spec.ControlBytes(*self.codec.encode_control(self.made(record, control=True)))

    def made(self, record: spec.MetadataRecord, control: bool) -> impl.Record:
        """As a writer of the log makes it: by its name."""
        of = self.codec.from_json(record.type, record.version, record.fields, control)
        return self.codec.record(of.name, of.version, **of.fields)


def shown(record: impl.Record) -> spec.MetadataRecord:
    return spec.MetadataRecord(record.type, record.version, record.json())
