"""Record batches, for the spec to walk beside."""

from __future__ import annotations

import base64 as base_64
from collections.abc import Iterable, Mapping
from typing import Any

from kafkaspec.contract.codec import view
from kafkaspec.contract.machine import ByName, Refused
from kafkaspec.impl.storage import batch as impl
from kafkaspec.impl.storage.batch import CODEC_MASK, INT_BITS, INT_VARINT, LENGTH_AT, LONG_VARINT, TYPES
from kafkaspec.spec.common import record_format as fmt
from kafkaspec.spec.common.compression import compress
from kafkaspec.spec.common.record_format import Malformed
from kafkaspec.spec.common.record_reader import INVALID, ReadBatch
from kafkaspec.spec.storage import batch as spec


class Driver(ByName):
    """The batch that was built or loaded last, and the operations over bytes."""

    machine = spec.machine
    refusals = {
        Malformed: lambda e: Refused(e.clause, spec.ERRORS.get(e.clause, INVALID), f"byte {e.position}"),
        impl.InvalidRecords: lambda e: Refused(e.clause, e.error, e.words),
    }
    batch = impl.Batch
    encoder = impl.Encoder
    put_varint = staticmethod(impl.put_varint)
    get_varint = staticmethod(impl.get_varint)
    put_record = staticmethod(impl.put_record)
    assign = staticmethod(impl.assign)
    empty = staticmethod(impl.empty)
    retained = staticmethod(impl.retain)
    lenient = impl.Lenient

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.data = b""

    def state(self) -> spec.CurrentBatch:
        return spec.CurrentBatch(self.data)

    def load(self, data: bytes) -> None:
        self.data = data

    def decode_bytes(self, data: bytes) -> Any:
        batch = self.batch(data)
        return batch.described(list(batch.records()))

    def encode_fields(self, batch: fmt.BatchFields) -> bytes:
        out = bytearray()
        for r in batch.records:
            self.put_record(out, r.offset_delta, r.timestamp_delta, r.key, r.value, r.headers, r.attributes)
        codec = batch.attributes & CODEC_MASK
        section = compress(codec, bytes(out)) if codec and out else bytes(out)
        header = impl.covered(batch, count=len(batch.records))
        return impl.assembled(batch.base_offset, batch.leader_epoch, header + section)

    def retain_empty(self, data: bytes) -> bytes:
        return self.empty(self.batch(data))

    def write_varint(self, number: int, bits: int) -> bytes:
        out = bytearray()
        self.put_varint(out, number)
        return bytes(out)

    def read_varint(self, data: bytes, bits: int) -> tuple[int, int] | Refused:
        most = INT_VARINT if bits == INT_BITS else LONG_VARINT
        try:
            return self.get_varint(data, 0, len(data), most)
        except IndexError:
            return spec.VARINT_CUT if len(data) < most else spec.VARINT_TOO_LONG

    def build(
        self,
        magic: int,
        compression: str,
        timestamp_type: str,
        partition_leader_epoch: int,
        records: Iterable[spec.RecordToBuild],
        log_append_time: int,
        **header: Any,
    ) -> spec.BuildResult | Refused:
        append_time = log_append_time if TYPES[timestamp_type] else None
        try:
            encoder = self.encoder(
                codec=compression, leader_epoch=partition_leader_epoch, append_time=append_time, **header
            )
            for r in records:
                key, value = (x if x is None else x.encode("latin-1") for x in (r.k, r.v))
                encoder.append(r.t, key, value, [(b"h", b"hv")] * r.headers)
        except ValueError:
            return spec.NOT_WRITTEN
        self.data = encoder.finish()
        text = None if encoder.codec else base_64.b64encode(self.data).decode()
        return spec.BuildResult(len(self.data), text, (self.shown(self.data),))

    def corrupt(self, base64: str, of: str, byte: int) -> spec.SoundBatches:
        found = [int.from_bytes(b[:LENGTH_AT], "big", signed=True) for b in impl.framed(base_64.b64decode(base64))]
        return spec.SoundBatches(True, tuple(found))

    def read_bytes(self, data: bytes) -> list[ReadBatch]:
        return [self.lenient(b).shown() for b in impl.framed(data)]

    def retain(self, data: bytes, kept: frozenset[int], delete_horizon: int) -> list[ReadBatch]:
        return [impl.Lenient(self.retained(self.batch(data), kept, delete_horizon)).shown()]

    def validate(self, to_magic: int, timestamp_type: str, origin: str, of: str, **told: Any) -> spec.ValidationResult:
        log_append_time = TYPES[timestamp_type] != 0
        data, again = self.assign(self.data, log_append_time=log_append_time, client=origin == "CLIENT", **told)
        return spec.ValidationResult(told["now"], impl.Batch(data).max_timestamp, again, (self.shown(data),))

    def shown(self, data: bytes) -> spec.BuiltBatch:
        """As the recordings show a batch."""
        b = impl.Batch(data)
        records = tuple(spec.BuiltRecord(r.offset, r.timestamp, _text(r.key), _text(r.value)) for r in b.records())
        return view(spec.BuiltBatch, b, compression=b.codec, delete_horizon_ms=b.delete_horizon, records=records)


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode("latin-1")
