"""Kafka's reader of batches in memory: what it takes, what it refuses, and what it shows of a batch.

It asks for less than a writer keeps: it takes what decoding (`spec.common.record_format`) refuses, and where it does
not look at all it fails with an exception of Java's own. The clauses are those of the record batch.

Source: Kafka Internals, ch. 03, "Interactions with other subsystems"; ByteBufferLogInputStream, DefaultRecordBatch,
DefaultRecord and ControlRecordType, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from kafkaspec.contract.clauses import states
from kafkaspec.contract.codec import partial, replace, view
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Refused
from kafkaspec.spec.common import record_format as fmt
from kafkaspec.spec.common.compression import CODECS, NotDecompressed, TooMuch, decompress
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, KAFKA_EXCEPTION, NULL_POINTER
from kafkaspec.spec.common.record_format import Batch
from kafkaspec.spec.common.remembered import remembered_within

CORRUPT = "org.apache.kafka.common.errors.CorruptRecordException"
INVALID = "org.apache.kafka.common.InvalidRecordException"
UNDERFLOW = "java.nio.BufferUnderflowException"


# ---- what it takes ---------------------------------------------------------------------------------------------------
class Denied(ValueError):
    """What Kafka's reader of bytes in memory refuses, and how."""

    def __init__(self, clause: str, error: str, words: str | None = None) -> None:
        super().__init__(words or clause)
        self.refused = Refused(clause, error, words)


class Unaffordable(ValueError):
    """What Kafka's reader takes so much memory for that it may not have it."""


LEAST_FRAMED = fmt.LOG_OVERHEAD + 14
"""Bytes of the smallest message of any format, which is all that a reader asks for at first."""


@states("BAT-1", "BAT-2", "BAT-3")
def framed(data: bytes) -> Iterator[bytes]:
    """The batches behind each other, as Kafka's reader of bytes in memory finds them, with their CRC compared. One that
    is cut at the end is left out. Raises Denied."""
    while len(data) >= fmt.LOG_OVERHEAD:
        size = fmt.LOG_OVERHEAD + fmt.field_of(data, "length")
        if size < LEAST_FRAMED:
            raise Denied("BAT-1", CORRUPT)
        if len(data) < fmt.MAGIC_END:
            return
        magic = fmt.field_of(data, "magic")
        if magic not in (0, 1, fmt.MAGIC):
            raise Denied("BAT-2", CORRUPT)
        if size > len(data):
            return
        one, data = data[:size], data[size:]
        if magic != fmt.MAGIC:
            raise Denied("BAT-2", CORRUPT)
        if size < fmt.OVERHEAD:
            raise Denied("BAT-1", CORRUPT)
        stored, right = fmt.field_of(one, "crc"), fmt.crc_of(one)
        if stored != right:
            raise Denied("BAT-3", CORRUPT, f"Record is corrupt (stored crc = {stored}, computed crc = {right})")
        yield one


AFFORDABLE = 1 << 24
"""Bytes of a record of a compressed batch that Kafka's reader surely has memory for. It takes the memory for as many as
the bytes say before it looks whether they are there."""
AFFORDABLE_RECORDS = 1 << 20
"""The same for the records of such a batch."""


@states("BAT-4", "BAT-6", "BAT-7", "BAT-8")
def leniently(data: bytes) -> Batch:
    """A framed batch, as Kafka's reader takes it: more than `decode` does. Raises Denied, Unaffordable."""
    batch, count = fmt.header_of(data)
    codec, plain = batch.codec, data[fmt.OVERHEAD :]
    if codec not in CODECS:
        raise Denied("BAT-4", ILLEGAL_ARGUMENT)
    batch = replace(batch, attributes=batch.attributes & fmt.USED)
    if count == 0:
        return batch
    if codec:
        try:
            plain = decompress(codec, plain)
        except TooMuch:
            raise Unaffordable("bytes") from None
        except NotDecompressed:
            raise Denied("BAT-7", KAFKA_EXCEPTION) from None
    if count < 0:
        raise Denied("BAT-6", INVALID)
    if codec and count > AFFORDABLE_RECORDS:
        raise Unaffordable("records")
    records: list[fmt.Record] = []
    at = 0
    for _ in range(count):
        try:
            length, _ = fmt.varint(plain, at, len(plain))
        except fmt.TooLong:  # nothing catches it if there is no codec
            raise Denied("BAT-12", INVALID if codec else ILLEGAL_ARGUMENT) from None
        except ValueError:
            raise Denied("BAT-8", INVALID) from None
        if codec and length > AFFORDABLE:
            raise Unaffordable("bytes of a record")
        try:
            record, at, _ = fmt.decoded_record(plain, at, null=-(2**31))
        except ValueError:
            raise Denied("BAT-8", INVALID) from None
        records.append(record)
    if at != len(plain):
        raise Denied("BAT-6", INVALID)
    return replace(batch, records=tuple(records))


@states("BAT-11")
def marker_as_read(batch: Batch) -> tuple[str, int | None] | None:
    """The type and, of an abort or a commit, the coordinator's epoch of a control batch's first record. Raises Denied
    for what is no marker, with an exception of Java's own where Kafka looks without asking."""
    if not batch.control or not batch.records:
        return None
    key, value = batch.records[0].key, batch.records[0].value
    if key is None:
        raise Denied("BAT-11", NULL_POINTER)
    if len(key) < fmt.CONTROL_KEY.size or fmt.signed(key[0], 8) < 0:
        raise Denied("BAT-11", INVALID)
    if key[2:4] in (b"\0\0", b"\0\1"):
        if value is None:
            raise Denied("BAT-11", NULL_POINTER)
        if len(value) >= 2 and fmt.signed(value[0], 8) < 0:
            raise Denied("BAT-11", INVALID)
        if len(value) < fmt.END_MARKER.size:
            raise Denied("BAT-11", UNDERFLOW)
    said = fmt.marker(batch.records[0])
    return said.name, said.coordinator_epoch


# ---- what it shows ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ReadRecord:
    """A record as a reader shows it; bytes in hexadecimal."""

    offset: Annotated[int, governs("BAT-14")]
    timestamp: Annotated[int, governs("BAT-14", "BAT-15")]
    sequence: Annotated[int, governs("BAT-16")]
    key: Annotated[bytes | None, governs("BAT-8")]
    value: Annotated[bytes | None, governs("BAT-8")]
    headers: Annotated[tuple[tuple[str, bytes | None], ...], governs("BAT-8")]


@partial
@dataclass(frozen=True, kw_only=True)
class BatchSummary(fmt.BatchIdentity):
    """A batch without its records."""

    last_offset: Annotated[int, governs("BAT-5")]
    size: Annotated[int, governs("BAT-1")]
    """bytes"""
    magic: Annotated[int, governs("BAT-2")]
    transactional: Annotated[bool, governs("BAT-4")]
    control: Annotated[bool, governs("BAT-4")]
    compression: Annotated[str, governs("BAT-4")]
    timestamp_type: Annotated[str, governs("BAT-4", "BAT-23")]


@partial
@dataclass(frozen=True, kw_only=True)
class ReadBatch(BatchSummary):
    """A batch as a reader shows it."""

    delete_horizon: Annotated[int | None, governs("BAT-15", "BAT-24")]
    base_timestamp: Annotated[int, governs("BAT-15")]
    last_sequence: Annotated[int, governs("BAT-16")]
    count: Annotated[int, governs("BAT-6")]
    records: Annotated[tuple[ReadRecord, ...], governs("BAT-6", "BAT-8", "BAT-24")]
    marker: Annotated[tuple[str, int | None] | None, governs("BAT-11")]
    """type, and of an abort or a commit the coordinator's epoch"""


def as_read(batch: Batch, size: int) -> ReadBatch:
    """What Kafka's reader shows of a batch of that size in bytes. Raises Denied for a malformed marker."""
    records = tuple(
        ReadRecord(
            batch.offset(r),
            batch.timestamp(r),
            batch.sequence(r.offset_delta),
            r.key,
            r.value,
            tuple((h.key.decode(), h.value) for h in r.headers),
        )
        for r in batch.records
    )
    found = marker_as_read(batch)
    return view(ReadBatch, batch, size=size, magic=fmt.MAGIC, count=len(records), records=records, marker=found)


def _size_of_reading(data: bytes, found: list[ReadBatch] | Refused | str | None) -> int:
    """Bytes, and those of what was compressed."""
    batches = found if isinstance(found, list) else []
    return len(data) + sum(8 + len(r.key or b"") + len(r.value or b"") for b in batches for r in b.records)


@remembered_within(_size_of_reading)
def reading(data: bytes) -> list[ReadBatch] | Refused | str:
    """What Kafka's reader makes of these bytes: the batches, or its refusal; or why that cannot be said."""
    out = []
    try:
        for one in framed(data):
            batch = leniently(one)
            if batch.base_sequence < fmt.NO_SEQUENCE or (
                batch.base_sequence >= 0
                and any(n < 0 for n in (batch.last_offset_delta, *(r.offset_delta for r in batch.records)))
            ):
                return "no sequences"
            if not is_text(batch):
                return "a header's key is not UTF-8"
            out.append(as_read(batch, len(one)))
    except Denied as e:
        return e.refused
    except Unaffordable as e:
        return str(e)
    return out


def is_text(batch: Batch) -> bool:
    """Whether the keys of headers are UTF-8: what stands for other bytes is a library's affair."""
    try:
        for h in (h for r in batch.records for h in r.headers):
            h.key.decode()
    except UnicodeDecodeError:
        return False
    return True
