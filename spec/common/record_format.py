"""Message format 2: the bytes of a record batch, read and written.

Decoding says what is wrong and at which byte; encoding makes Kafka's own bytes. The clauses are those of the record
batch, `spec.storage.batch`, which asks these functions.

Source: Kafka Internals, ch. 03, "Interactions with other subsystems"; DefaultRecordBatch, DefaultRecord,
MemoryRecordsBuilder, MemoryRecords, ByteUtils and ControlRecordType, Kafka 4.3.0.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, NamedTuple

from crc32c import crc32c

from kafkaspec.contract.clauses import A_FORMAT, states
from kafkaspec.contract.codec import replace, view
from kafkaspec.contract.governs import governs
from kafkaspec.contract.numbers import Byte, Int16, Int32, Int64
from kafkaspec.spec.common.compression import CODECS, LIMIT, NotDecompressed, TooMuch, compress, decompress
from kafkaspec.spec.common.kafka import INT_MAX, NO_TIMESTAMP

CHAPTER = "Kafka Internals, ch. 03, 'Interactions with other subsystems'"
BATCH = "DefaultRecordBatch, Kafka 4.3.0"
RECORD = "DefaultRecord, Kafka 4.3.0"
WRITER = "MemoryRecordsBuilder, Kafka 4.3.0"
VALIDATOR = "LogValidator, Kafka 4.3.0"
STREAMS = "ByteBufferLogInputStream and FileLogInputStream, Kafka 4.3.0"

LAYOUT = {
    "base_offset": "q",
    "length": "i",
    "leader_epoch": "i",
    "magic": "b",
    "crc": "I",
    "attributes": "h",
    "last_offset_delta": "i",
    "base_timestamp": "q",
    "max_timestamp": "q",
    "producer_id": "q",
    "producer_epoch": "h",
    "base_sequence": "i",
    "count": "i",
}
"""The header: its fields in the order of their bytes, each as `struct` has it, big-endian."""
HEADER = struct.Struct(">" + "".join(LAYOUT.values()))
AT = dict(
    zip(LAYOUT, itertools.accumulate((struct.calcsize(f">{c}") for c in LAYOUT.values()), initial=0), strict=False)
)
"""The first byte of each field."""
FIELDS = {name: struct.Struct(">" + code) for name, code in LAYOUT.items()}
OVERHEAD = HEADER.size
LOG_OVERHEAD = AT["leader_epoch"]
"""Bytes before those that the length counts."""
LEAST_LENGTH = OVERHEAD - LOG_OVERHEAD
MAGIC_END = AT["magic"] + 1
COVERED_AT = AT["attributes"]
"""The first byte that the CRC covers."""
MAGIC = 2
CODEC_MASK, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
USED = 0x7F
"""The bits of the attributes that have a meaning."""
TIMESTAMP_TYPES = {"CreateTime": 0, "LogAppendTime": LOG_APPEND_TIME}
"""message.timestamp.type, and its bit."""
NO_PRODUCER = NO_SEQUENCE = -1
CONTROL_TYPES = (
    "ABORT",
    "COMMIT",
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
)
CONTROL_KEY, END_MARKER = struct.Struct(">hh"), struct.Struct(">hi")
ABORT, COMMIT = CONTROL_KEY.pack(0, 0), CONTROL_KEY.pack(0, 1)
"""Keys of control records."""


class Malformed(ValueError):
    """Bytes that are no batch: `clause` is broken at byte `position`; `why` says how, in a phrase."""

    def __init__(self, clause: str, position: int, why: str) -> None:
        super().__init__(f"byte {position}: {why} ({clause})")
        self.clause, self.position, self.why = clause, position, why

    def moved(self, by: int) -> Malformed:
        """The same, of a batch that begins at byte `by`."""
        return type(self)(self.clause, self.position + by, self.why)


class Legacy(Malformed):
    """A message set of format 0 or 1: nothing wrong, but not decoded."""


class Unread(Malformed):
    """Records that decompress to more than is read here: not known to be wrong."""


# ---- varints ---------------------------------------------------------------------------------------------------------
def signed(n: int, bits: int) -> int:
    """The lowest `bits` bits of n as a two's complement number."""
    n &= (1 << bits) - 1
    return n - (1 << bits) if n >> (bits - 1) else n


class TooLong(ValueError):
    """A varint of more than 5 bytes, or 10."""


def varint_limit(bits: int) -> int:
    """The most bytes of a varint."""
    return 5 if bits == 32 else 10


def unzigzag(n: int) -> int:
    """0, -1, 1, -2, ... of 0, 1, 2, 3, ..."""
    return (n >> 1) ^ -(n & 1)


@states(without=A_FORMAT)
def varint(data: bytes, at: int, end: int, bits: int = 32) -> tuple[int, int]:
    """The number at a byte, and the byte behind it. ValueError if it is not over before `end`, TooLong (one of
    these) if it has too many bytes.

    BAT-12: A varint is the zig-zag form of a signed number, 7 bits a byte, the lowest first, each byte but the last
    with bit 7 set; at most 5 bytes for 32 bits, 10 for 64. Kafka writes the shortest form and reads longer ones; bits
    beyond the number's width are dropped. [{CHAPTER}; ByteUtils, Kafka 4.3.0]
    """
    raw = shift = 0
    limit = varint_limit(bits)
    for place in range(at, min(end, at + limit)):
        byte = data[place]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return unzigzag(raw & ((1 << bits) - 1)), place + 1
        shift += 7
    if end - at >= limit:
        raise TooLong("a varint of too many bytes")
    raise ValueError("a varint that does not end")


@states("BAT-12")
def varint_bytes(n: int, bits: int = 32) -> bytes:
    """The shortest form."""
    raw = ((n << 1) ^ (n >> (bits - 1))) & ((1 << bits) - 1)
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


# ---- batches ---------------------------------------------------------------------------------------------------------
class Header(NamedTuple):
    """A record header: `key` is UTF-8, as a rule; `value` None is null."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True)
class Record:
    """One record, as its bytes say: deltas count from the batch's base offset and base timestamp (ms)."""

    offset_delta: Annotated[Int32, governs("BAT-9")]
    timestamp_delta: Annotated[Int64, governs("BAT-14")]
    key: Annotated[bytes | None, governs("BAT-8")]
    value: Annotated[bytes | None, governs("BAT-8")]
    headers: Annotated[tuple[Header, ...], governs("BAT-8")] = ()
    """key and value"""
    attributes: Annotated[Byte, governs("BAT-8")] = 0


@dataclass(frozen=True, kw_only=True)
class BatchIdentity:
    """Where a batch belongs and whose it is: the fields of its header that every view of it shows. Marks of -1 say that
    there is none; timestamps in ms."""

    base_offset: Annotated[Int64, governs("BAT-1", "BAT-23")]
    leader_epoch: Annotated[Int32, governs("BAT-1", "BAT-23")]
    max_timestamp: Annotated[Int64, governs("BAT-10")]
    producer_id: Annotated[Int64, governs("BAT-1", "BAT-24")]
    producer_epoch: Annotated[Int16, governs("BAT-1", "BAT-24")]
    base_sequence: Annotated[Int32, governs("BAT-16")]


@dataclass(frozen=True, kw_only=True)
class BatchFields(BatchIdentity):
    """A batch as it is written: the other fields of its header are computed."""

    attributes: Annotated[Int16, governs("BAT-4")]
    last_offset_delta: Annotated[Int32, governs("BAT-5")]
    base_timestamp: Annotated[Int64, governs("BAT-15", "BAT-18")]
    records: Annotated[tuple[Record, ...], governs("BAT-8", "BAT-6")]


HEADER_FIELDS = tuple(f.name for f in fields(BatchFields) if f.name in LAYOUT)


@dataclass(frozen=True, kw_only=True)
class Batch(BatchFields):
    """One batch. `compressed`: the records' bytes as they were read, None if there is no codec or it was not read."""

    compressed: bytes | None = None

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def compression(self) -> str:
        return CODECS[self.codec].name

    @property
    def log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def timestamp_type(self) -> str:
        return "LogAppendTime" if self.log_append_time else "CreateTime"

    @property
    def transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    @states(without=A_FORMAT)
    def delete_horizon(self) -> int | None:
        """ms; None without the flag.

        BAT-15: With the delete horizon flag the base timestamp is the horizon, in ms, after which tombstones and
        markers of the batch may go; timestamp deltas count from it, and records keep their timestamps. [{CHAPTER};
        {BATCH}; KIP-534]
        """
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    @states(without=A_FORMAT)
    def last_offset(self) -> int:
        """BAT-5: The last offset delta is 0 or more, and the batch takes the offsets from base offset to base offset +
        last offset delta, whether or not they still have records. The leader checks it of a client's batch; a reader
        does not. [{CHAPTER}; {VALIDATOR}]"""
        return signed(self.base_offset + self.last_offset_delta, 64)

    @property
    @states("BAT-16")
    def last_sequence(self) -> int:
        return self.sequence(self.last_offset_delta)

    @states(without=A_FORMAT)
    def offset(self, record: Record) -> int:
        """BAT-14: A record's offset is the base offset + its offset delta; its timestamp the base timestamp + its
        timestamp delta, or with LogAppendTime the batch's largest timestamp; sums wrap at 64 bits. [{CHAPTER};
        {RECORD}]"""
        return signed(self.base_offset + record.offset_delta, 64)

    @states("BAT-14")
    def timestamp(self, record: Record) -> int:
        """The record's, ms."""
        return self.max_timestamp if self.log_append_time else signed(self.base_timestamp + record.timestamp_delta, 64)

    @states(without=A_FORMAT)
    def sequence(self, offset_delta: int) -> int:
        """That of the record with this offset delta; NO_SEQUENCE if the batch has none.

        BAT-16: A record's sequence is the base sequence + its offset delta, going on from 2147483647 to 0; the batch's
        last sequence follows from the last offset delta, so that compaction does not change it. With a base sequence
        below 0, which is -1 in what Kafka writes, there is none. [{CHAPTER}; {BATCH}; KAFKA-7692]
        """
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + offset_delta) % (INT_MAX + 1)

    @property
    def largest_timestamp(self) -> int:
        """Of the records, as they are read."""
        return max((self.timestamp(r) for r in self.records), default=NO_TIMESTAMP)


class LogRecord(NamedTuple):
    """A record with its own offset and timestamp (ms), as a writer is given it and a reader gets it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def log_records(batch: Batch) -> tuple[LogRecord, ...]:
    """The records as a reader gets them."""
    return tuple(LogRecord(batch.offset(r), batch.timestamp(r), r.key, r.value, r.headers) for r in batch.records)


class Marker(NamedTuple):
    """What a control record says; `coordinator_epoch` None where it is neither an abort nor a commit."""

    version: int
    type: int
    coordinator_epoch: int | None
    value_version: int | None

    @property
    def name(self) -> str:
        return CONTROL_TYPES[self.type] if 0 <= self.type < len(CONTROL_TYPES) else "UNKNOWN"


@states(without=A_FORMAT)
def marker(record: Record) -> Marker:
    """Of a control record. ValueError if it is malformed.

    BAT-11: A control batch's first record has a key of a version, 16 bits, 0 or more, and a type, 16 bits: 0 abort, 1
    commit, 2 leader change, 3 snapshot header, 4 snapshot footer, 5 kraft.version, 6 voters; others are unknown and
    skipped. The value of an abort or a commit is a version, 16 bits, 0 or more, and the coordinator's epoch, 32 bits.
    Bytes behind these are a later version's. Kafka checks it when it replays the batch. [{CHAPTER}; ControlRecordType
    and EndTransactionMarker, Kafka 4.3.0]
    """
    if record.key is None or len(record.key) < CONTROL_KEY.size:
        raise ValueError("a control record's key is 4 bytes or more")
    version, kind = CONTROL_KEY.unpack_from(record.key)
    if version < 0:
        raise ValueError(f"a control record's key of version {version}")
    value_version = struct.unpack_from(">h", record.value)[0] if record.value and len(record.value) > 1 else None
    if kind > 1 or kind < 0:
        return Marker(version, kind, None, value_version)
    if record.value is None or len(record.value) < END_MARKER.size:
        raise ValueError("the value of an abort or a commit is 6 bytes or more")
    value_version, epoch = END_MARKER.unpack_from(record.value)
    if value_version < 0:
        raise ValueError(f"an abort or a commit of version {value_version}")
    return Marker(version, kind, epoch, value_version)


# ---- decoding --------------------------------------------------------------------------------------------------------
@states(without=A_FORMAT)
def decode(data: bytes, position: int = 0, limit: int = LIMIT) -> Batch:
    """The batch that `data` is, whole. `position`: of its first byte, for what is said; `limit`: of its records, bytes
    decompressed. Raises Malformed (BAT-1 to BAT-11, in the order of BAT-13).

    BAT-13: Of several things wrong the first of these is said: length, magic, CRC, attributes, last offset delta,
    negative count, decompression, then the records in their order, what follows the last one, and the largest
    timestamp. The byte is that of the field; inside compressed records, the first byte of the records. [kafkaspec]
    """
    try:
        check_framing(data)
        check_crc(data)
        batch, count = header_of(data)
        check_header(batch, count)
        batch = replace(batch, compressed=compressed_part(batch, count, data[OVERHEAD:]))
        plain = data[OVERHEAD:] if batch.compressed is None else unpacked(batch, batch.compressed, limit)
        try:
            batch = replace(batch, records=decoded_records(batch, count, plain))
        except Malformed as e:
            if batch.compressed is None:
                raise e.moved(OVERHEAD) from None
            raise Malformed(e.clause, OVERHEAD, f"{e.why}, byte {e.position} of the records") from None
        check_largest_timestamp(batch)
    except Malformed as e:
        raise e.moved(position) from None
    return batch


@states(without=A_FORMAT)
def check_framing(data: bytes) -> None:
    """Raises Malformed.

    BAT-1: A batch is a base offset, 64 bits, a length, 32 bits, and as many bytes as the length says, at least 49; all
    numbers are big-endian. Kafka checks it on every read, before anything else. [{CHAPTER}; {BATCH}; {STREAMS}]

    BAT-2: The magic byte, byte 16, is 2. 0 and 1 are message sets of the formats before; they are named and not
    decoded. Kafka refuses any other magic of bytes in memory; of a file it takes every magic above 1 for 2. [{CHAPTER};
    {STREAMS}]
    """
    if len(data) < MAGIC_END:
        raise Malformed("BAT-1", 0, f"{len(data)} bytes, where a batch begins with {MAGIC_END} up to its magic byte")
    length, magic = field_of(data, "length"), field_of(data, "magic")
    if magic in (0, 1):
        raise Legacy("BAT-2", AT["magic"], f"a message set of format {magic}: not decoded")
    if length < LEAST_LENGTH:
        raise Malformed("BAT-1", AT["length"], f"length {length}, less than the {LEAST_LENGTH} of the header")
    if length != len(data) - LOG_OVERHEAD:
        raise Malformed("BAT-1", AT["length"], f"length {length}, where {len(data) - LOG_OVERHEAD} bytes follow")
    if magic != MAGIC:
        raise Malformed("BAT-2", AT["magic"], f"magic {magic}")


def field_of(data: bytes, name: str) -> int:
    """One field of a header."""
    return int(FIELDS[name].unpack_from(data, AT[name])[0])


def header_of(data: bytes) -> tuple[Batch, int]:
    """What the header says of a batch, without its records; and how many these are."""
    said = dict(zip(LAYOUT, HEADER.unpack_from(data), strict=True))
    return Batch(records=(), **{name: said[name] for name in HEADER_FIELDS}), said["count"]


@states(without=A_FORMAT)
def crc_of(data: bytes | bytearray) -> int:
    """BAT-3: The CRC, bytes 17 to 20, is the CRC-32C of the bytes from the attributes to the batch's end: base offset,
    length, leader epoch and magic are outside it. Kafka checks it when a batch is appended, recovered or fetched.
    [{CHAPTER}; {BATCH}]"""
    return int(crc32c(bytes(data[COVERED_AT:])))


@states("BAT-3")
def check_crc(data: bytes) -> None:
    """Raises Malformed."""
    crc, right = field_of(data, "crc"), crc_of(data)
    if crc != right:
        raise Malformed("BAT-3", AT["crc"], f"CRC {crc:#010x}, where the bytes have {right:#010x}")


@states(without=A_FORMAT)
def attributes_are_valid(attributes: int) -> bool:
    """BAT-4: Of the attributes, bits 0 to 2 are the codec (0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd), then one bit each:
    LogAppendTime, transactional, control, delete horizon; bits 7 to 15 are 0. Kafka's reader refuses another codec and
    does not look at the unused bits, which its writer keeps 0. [{CHAPTER}; {BATCH}; CompressionType, Kafka 4.3.0]"""
    return not attributes & ~USED and attributes & CODEC_MASK in CODECS


@states("BAT-4", "BAT-5", "BAT-6")
def check_header(batch: Batch, count: int) -> None:
    """Raises Malformed."""
    if not attributes_are_valid(batch.attributes):
        raise Malformed("BAT-4", AT["attributes"], f"attributes {batch.attributes & 0xFFFF:#06x}")
    if batch.last_offset_delta < 0:
        raise Malformed("BAT-5", AT["last_offset_delta"], f"last offset delta {batch.last_offset_delta}")
    if count < 0:
        raise Malformed("BAT-6", AT["count"], f"count {count}")


def compressed_part(batch: Batch, count: int, section: bytes) -> bytes | None:
    """What is behind the header, if it is compressed: an empty batch need not be."""
    return section if batch.codec and (count > 0 or section) else None


@states(without=A_FORMAT)
def unpacked(batch: Batch, section: bytes, limit: int) -> bytes:
    """The bytes of compressed records. Raises Malformed, Unread beyond the limit.

    BAT-7: The records, all bytes behind the header, are compressed together by the batch's codec and decompress as
    spec.common.compression says. Here to a bounded size, beyond which a batch is not checked; Kafka has no bound.
    [{CHAPTER}; Compression, Kafka 4.3.0]
    """
    try:
        return decompress(batch.codec, section, limit)
    except TooMuch as e:
        raise Unread("BAT-7", OVERHEAD, str(e)) from None
    except NotDecompressed as e:
        raise Malformed("BAT-7", OVERHEAD, f"{batch.compression}: {e}") from None


@states(without=A_FORMAT)
def decoded_records(batch: Batch, count: int, plain: bytes) -> tuple[Record, ...]:
    """The records. Raises Malformed, with the byte of `plain`.

    BAT-6: The count is that of the records, 0 or more, and nothing stands behind the last one. Kafka checks it as it
    reads the records, but for a count of 0, with which it reads nothing. [{CHAPTER}; {BATCH}]

    BAT-9: The offset deltas of the records rise strictly, from 0 or more to the last offset delta or less; compaction
    leaves gaps. Only Kafka's writer keeps this; a leader rewrites a compressed batch of a client whose offsets are not
    consecutive. [{CHAPTER}; {WRITER}; {VALIDATOR}]
    """
    records: list[Record] = []
    at, before, last = 0, -1, batch.last_offset_delta
    for n in range(count):
        start = at
        try:
            record, at, delta_at = decoded_record(plain, start)
        except ValueError as e:
            raise Malformed("BAT-8", start, f"record {n}: {e}") from None
        if not before < record.offset_delta <= last:
            why = f"record {n}: offset delta {record.offset_delta} after {before}, of {last} at most"
            raise Malformed("BAT-9", delta_at, why)
        if batch.control and n == 0:
            try:
                marker(record)
            except ValueError as e:
                raise Malformed("BAT-11", start, str(e)) from None
        records.append(record)
        before = record.offset_delta
    if at != len(plain):
        raise Malformed("BAT-6", at, f"{len(plain) - at} bytes behind the last of {count} records")
    return tuple(records)


@states(without=A_FORMAT)
def decoded_record(data: bytes, at: int, null: int = -1) -> tuple[Record, int, int]:
    """The record at a byte, the byte behind it and that of its offset delta. Sizes from `null` up to -1 are null.
    ValueError for one that breaks BAT-8 or BAT-12.

    BAT-8: A record is its length, attributes (a byte, unused), timestamp delta, offset delta, key, value and headers,
    and takes up its length exactly. A key, a value or a header's value is its size and as many bytes, or the size -1
    for null; a header's key is never null. Kafka's reader checks it of each record, but that it takes any negative size
    for null. [{CHAPTER}; {RECORD}]
    """
    if at == len(data):
        raise ValueError("the records end before it")
    length, at = varint(data, at, len(data))
    if not 1 <= length <= len(data) - at:
        raise ValueError(f"length {length}, where {len(data) - at} bytes follow")
    end = at + length

    def sized(at: int, what: str, least: int = null) -> tuple[bytes | None, int]:
        size, at = varint(data, at, end)
        if not least <= size <= end - at:
            raise ValueError(f"{what} of {size} bytes, where {end - at} follow")
        return (None, at) if size < 0 else (bytes(data[at : at + size]), at + size)

    attributes = data[at]
    timestamp_delta, delta_at = varint(data, at + 1, end, 64)
    offset_delta, at = varint(data, delta_at, end)
    key, at = sized(at, "a key")
    value, at = sized(at, "a value")
    count, at = varint(data, at, end)
    if count < 0:
        raise ValueError(f"{count} headers")
    headers = []
    for _ in range(count):
        name, at = sized(at, "a header's key", 0)
        content, at = sized(at, "a header's value")
        headers.append(Header(name or b"", content))
    if at != end:
        raise ValueError(f"{end - at} bytes behind its headers")
    return Record(offset_delta, timestamp_delta, key, value, tuple(headers), attributes), at, delta_at


@states(without=A_FORMAT)
def largest(timestamps: Iterable[int]) -> int:
    """BAT-10: With CreateTime the largest timestamp is the largest of the records, -1 if none is above; compaction
    computes it again from those that are left, and keeps it where none is. With LogAppendTime it is the time of the
    append, for every record. Leader and cleaner write it; nobody checks it on a read. [{CHAPTER}; {VALIDATOR};
    {WRITER}]"""
    return max([NO_TIMESTAMP, *timestamps])


@states("BAT-10")
def check_largest_timestamp(batch: Batch) -> None:
    """Raises Malformed."""
    if not has_largest_timestamp(batch):
        why = f"largest timestamp {batch.max_timestamp}, where the records have {batch.largest_timestamp}"
        raise Malformed("BAT-10", AT["max_timestamp"], why)


@states("BAT-10")
def has_largest_timestamp(batch: Batch) -> bool:
    """Whether the header's is that of the records."""
    computed = largest(batch.timestamp(r) for r in batch.records)
    return not batch.records or batch.log_append_time or batch.max_timestamp == computed


@states("BAT-4", "BAT-5", "BAT-9", "BAT-10", "BAT-11")
def is_well_formed(batch: Batch) -> bool:
    """Whether it keeps BAT-4 to BAT-11, so that its bytes are a batch."""
    try:
        if batch.control and batch.records:
            marker(batch.records[0])
    except ValueError:
        return False
    deltas = [-1, *(r.offset_delta for r in batch.records), batch.last_offset_delta + 1]
    return (
        batch.attributes >= 0
        and attributes_are_valid(batch.attributes)
        and batch.last_offset_delta >= 0
        and all(a < b for a, b in itertools.pairwise(deltas))
        and has_largest_timestamp(batch)
    )


@dataclass(frozen=True, kw_only=True)
class DecodedBatch(BatchFields):
    """A batch as it is written, and what follows from it."""

    last_offset: Annotated[int, governs("BAT-5")]
    last_sequence: Annotated[int, governs("BAT-16")]
    delete_horizon: Annotated[int | None, governs("BAT-15")]
    """ms"""
    offsets: Annotated[tuple[int, ...], governs("BAT-14")]
    timestamps: Annotated[tuple[int, ...], governs("BAT-14", "BAT-15")]
    sequences: Annotated[tuple[int, ...], governs("BAT-16")]
    control: Annotated[tuple[str, int, int | None, int | None] | None, governs("BAT-11")]
    """of a marker: type, version, coordinator epoch, version of the value"""


def decoded(batch: Batch) -> DecodedBatch:
    """What a reader makes of a batch: all fields, and what follows from them."""
    said = marker(batch.records[0]) if batch.control and batch.records else None
    return view(
        DecodedBatch,
        batch,
        offsets=tuple(batch.offset(r) for r in batch.records),
        timestamps=tuple(batch.timestamp(r) for r in batch.records),
        sequences=tuple(batch.sequence(r.offset_delta) for r in batch.records),
        control=said and (said.name, said.version, said.coordinator_epoch, said.value_version),
    )


# ---- encoding --------------------------------------------------------------------------------------------------------
@states("BAT-8")
def record_bytes(record: Record) -> bytes:
    """A record's bytes, with varints in their shortest form."""

    def sized(content: bytes | None) -> bytes:
        return varint_bytes(-1) if content is None else varint_bytes(len(content)) + content

    body = bytes([record.attributes]) + varint_bytes(record.timestamp_delta, 64) + varint_bytes(record.offset_delta)
    body += sized(record.key) + sized(record.value) + varint_bytes(len(record.headers))
    body += b"".join(sized(h.key) + sized(h.value) for h in record.headers)
    return varint_bytes(len(body)) + body


@states("BAT-1")
def header_bytes(batch: Batch, length: int) -> bytes:
    """The header, with a CRC of 0. struct.error if a field is too large."""
    said = {**vars(batch), "length": length, "magic": MAGIC, "crc": 0, "count": len(batch.records)}
    return HEADER.pack(*(said[name] for name in LAYOUT))


@states(without=A_FORMAT)
def encode(batch: Batch) -> bytes:
    """Kafka's bytes. The compressed part is taken as it was read, if it was; struct.error if a field is too large.

    BAT-19: A batch that Kafka wrote is, decoded and encoded again, the same bytes, as long as its compressed part is
    kept. [{WRITER}; {BATCH}]
    """
    section = batch.compressed
    if section is None:
        section = b"".join(map(record_bytes, batch.records))
        if batch.codec and batch.records:
            section = compress(batch.codec, section)
    return sealed(header_bytes(batch, LEAST_LENGTH + len(section)) + section)


@states("BAT-3")
def sealed(data: bytes | bytearray) -> bytes:
    """With the CRC that its bytes have."""
    return bytes(data[: AT["crc"]]) + crc_of(data).to_bytes(4, "big") + bytes(data[COVERED_AT:])


def built(
    base_offset: int,
    records: Sequence[LogRecord],
    *,
    append_time: int = NO_TIMESTAMP,
    delete_horizon: int | None = None,
    last_offset: int | None = None,
    **header: int,
) -> Batch:
    """The batch that Kafka's writer makes of these records. `header`: other fields of it, attributes 0 and the rest -1
    unless they are given."""
    said = dict.fromkeys(HEADER_FIELDS, -1) | {"base_offset": base_offset, "attributes": 0} | header
    return filled(Batch(records=(), compressed=None, **said), records, append_time, delete_horizon, last_offset)


@states(without=A_FORMAT)
def filled(
    batch: Batch,
    records: Sequence[LogRecord],
    append_time: int,
    delete_horizon: int | None = None,
    last_offset: int | None = None,
) -> Batch:
    """The batch with these records, one at least, instead of its own. `append_time` matters with LogAppendTime alone,
    ms.

    BAT-18: The writer takes for base timestamp that of the first record (or the delete horizon), for the last offset
    delta that of the last record unless told another, for the largest timestamp what BAT-10 says. It refuses a
    timestamp below -1, a transactional batch without a producer id, a producer id without an epoch, or with a base
    sequence below 0 unless it is a control batch, and writes nothing without records. [{WRITER}]
    """
    base, base_time = batch.base_offset, records[0].timestamp if delete_horizon is None else delete_horizon
    return replace(
        batch,
        records=tuple(Record(r.offset - base, r.timestamp - base_time, r.key, r.value, r.headers) for r in records),
        last_offset_delta=(records[-1].offset if last_offset is None else last_offset) - base,
        base_timestamp=base_time,
        max_timestamp=append_time if batch.log_append_time else largest(r.timestamp for r in records),
        attributes=batch.attributes & ~DELETE_HORIZON | (0 if delete_horizon is None else DELETE_HORIZON),
        compressed=None,
    )


@states("BAT-18")
def is_refused_by_the_writer(batch: BatchFields, timestamps: Iterable[int] = ()) -> bool:
    """Whether Kafka's writer refuses such a batch, with records of these timestamps."""
    attributes = batch.attributes
    unsequenced = batch.base_sequence < 0 and not attributes & CONTROL
    return (
        any(t < NO_TIMESTAMP for t in timestamps)
        or (batch.producer_id == NO_PRODUCER and bool(attributes & TRANSACTIONAL))
        or (batch.producer_id != NO_PRODUCER and (batch.producer_epoch == -1 or unsequenced))
    )


# ---- compaction ------------------------------------------------------------------------------------------------------
@states(without=A_FORMAT)
def emptied(batch: Batch) -> Batch:
    """What the cleaner keeps of a batch without records.

    BAT-17: A batch that compaction empties but must keep, for its producer's sequence or as the log's last, is its
    header alone: count 0, no codec, no delete horizon, base timestamp -1, and base offset, last offset delta, largest
    timestamp, producer, base sequence, leader epoch and the other flags as they were. [{CHAPTER}; {BATCH}]
    """
    return replace(
        batch,
        records=(),
        base_timestamp=NO_TIMESTAMP,
        attributes=batch.attributes & ~(CODEC_MASK | DELETE_HORIZON),
        compressed=None,
    )


@states(without=A_FORMAT)
def retained(batch: Batch, kept: frozenset[int], delete_horizon: int) -> Batch:
    """The batch of which compaction keeps the records with these numbers.

    BAT-24: Of a batch of which compaction keeps some records these keep their offsets, timestamps, keys, values and
    headers, and the batch its base offset, last offset, producer, flags, codec and timestamp type. A delete horizon is
    set where a tombstone is kept and there is none yet; one that is there stays. If all records are kept and no horizon
    is set, the bytes are copied. [MemoryRecords.filterTo, Kafka 4.3.0; {WRITER}; KIP-534]
    """
    left = [r for n, r in enumerate(log_records(batch)) if n in kept]
    if not left:
        return emptied(batch)
    new_horizon = batch.delete_horizon is None and any(r.value is None for r in left)
    if len(left) == len(batch.records) and not new_horizon:
        return batch
    horizon = delete_horizon if new_horizon else batch.delete_horizon
    return filled(batch, left, batch.max_timestamp, horizon, batch.base_offset + batch.last_offset_delta)
