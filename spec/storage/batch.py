"""A record batch of message format 2: the bytes that producers send, brokers store and replicas copy.

Everything in Kafka stands on this one layout: a header of 61 bytes with a checksum, and records of varints behind it,
compressed as a whole or not at all. Decoding says what is wrong and at which byte; encoding makes Kafka's own bytes.
The last operations are the leader's: what it refuses of a producer's batch, and what it writes into it.

Source: Kafka Internals, ch. 03, "Interactions with other subsystems" and "Offset, timestamp & epoch assignment";
DefaultRecordBatch, DefaultRecord, MemoryRecordsBuilder,
MemoryRecords, ByteUtils, ControlRecordType and LogValidator, Kafka 4.3.0.
"""

from __future__ import annotations

import base64
import itertools
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn, TypedDict, cast

import icontract
from crc32c import crc32c

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.machine import Fields, Json, Machine, Refused, Step
from kafkaspec.spec.common.compression import CODEC_IDS, CODECS, LIMIT, NotDecompressed, TooMuch, compress, decompress
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, KAFKA_EXCEPTION, NULL_POINTER

PREFIX = "BAT"
TITLE = "Record batch"

CHAPTER = "Kafka Internals, ch. 03, 'Interactions with other subsystems'"
ASSIGNMENT = "Kafka Internals, ch. 03, 'Offset, timestamp & epoch assignment (LogValidator)'"
BATCH = "DefaultRecordBatch, Kafka 4.3.0"
RECORD = "DefaultRecord, Kafka 4.3.0"
WRITER = "MemoryRecordsBuilder, Kafka 4.3.0"
VALIDATOR = "LogValidator, Kafka 4.3.0"

OF_THE_BYTES = {"model": "a matter of bytes, not of interleavings", "proof": "a matter of bytes: tested at every bound"}
OF_THE_LEADER = {
    "model": "one call over one batch, that depends on nobody else",
    "proof": "one call over one batch: tested at every bound",
}

BAT_1 = clause(
    "BAT-1",
    """A batch is a base offset, 64 bits, a length, 32 bits, and as many bytes as the length says, at least 49; all
    numbers are big-endian. Kafka checks it on every read, before anything else.""",
    source=f"{CHAPTER}; {BATCH}; ByteBufferLogInputStream and FileLogInputStream, Kafka 4.3.0",
    without=OF_THE_BYTES,
)
BAT_2 = clause(
    "BAT-2",
    """The magic byte, byte 16, is 2. 0 and 1 are message sets of the formats before; they are named and not decoded.
    Kafka refuses any other magic of bytes in memory; of a file it takes every magic above 1 for 2.""",
    source=f"{CHAPTER}; ByteBufferLogInputStream and FileLogInputStream, Kafka 4.3.0",
    without=OF_THE_BYTES,
)
BAT_3 = clause(
    "BAT-3",
    """The CRC, bytes 17 to 20, is the CRC-32C of the bytes from the attributes to the batch's end: base offset, length,
    leader epoch and magic are outside it. Kafka checks it when a batch is appended, recovered or fetched.""",
    source=f"{CHAPTER}; {BATCH}",
    without=OF_THE_BYTES,
)
BAT_4 = clause(
    "BAT-4",
    """Of the attributes, bits 0 to 2 are the codec (0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd), then one bit each:
    LogAppendTime, transactional, control, delete horizon; bits 7 to 15 are 0. Kafka's reader refuses another codec and
    does not look at the unused bits, which its writer keeps 0.""",
    source=f"{CHAPTER}; {BATCH}; CompressionType, Kafka 4.3.0",
    without=OF_THE_BYTES,
)
BAT_5 = clause(
    "BAT-5",
    """The last offset delta is 0 or more, and the batch takes the offsets from base offset to base offset + last offset
    delta, whether or not they still have records. The leader checks it of a client's batch; a reader does not.""",
    source=f"{CHAPTER}; {VALIDATOR}",
    without=OF_THE_BYTES,
)
BAT_6 = clause(
    "BAT-6",
    """The count is that of the records, 0 or more, and nothing stands behind the last one. Kafka checks it as it reads
    the records, but for a count of 0, with which it reads nothing.""",
    source=f"{CHAPTER}; {BATCH}",
    without=OF_THE_BYTES,
)
BAT_7 = clause(
    "BAT-7",
    """The records, all bytes behind the header, are compressed together by the batch's codec and decompress as
    spec.common.compression says. Here to a bounded size, beyond which a batch is not judged; Kafka has no bound.""",
    source=f"{CHAPTER}; Compression, Kafka 4.3.0",
    without=OF_THE_BYTES,
)
BAT_8 = clause(
    "BAT-8",
    """A record is its length, attributes (a byte, unused), timestamp delta, offset delta, key, value and headers, and
    takes up its length exactly. A key, a value or a header's value is its size and as many bytes, or the size -1 for
    null; a header's key is never null. Kafka's reader checks it of each record, but that it takes any negative size for
    null.""",
    source=f"{CHAPTER}; {RECORD}",
    without=OF_THE_BYTES,
)
BAT_9 = clause(
    "BAT-9",
    """The offset deltas of the records rise strictly, from 0 or more to the last offset delta or less; compaction
    leaves gaps. Only Kafka's writer keeps this; a leader rewrites a compressed batch of a client whose offsets are not
    consecutive.""",
    source=f"{CHAPTER}; {WRITER}; {VALIDATOR}",
    without=OF_THE_BYTES,
)
BAT_10 = clause(
    "BAT-10",
    """With CreateTime the largest timestamp is the largest of the records, -1 if none is above; compaction computes it
    again from those that are left, and keeps it where none is. With LogAppendTime it is the time of the append, for
    every record. Leader and cleaner write it; nobody checks it on a read.""",
    source=f"{CHAPTER}; {VALIDATOR}; {WRITER}",
    without=OF_THE_BYTES,
)
BAT_11 = clause(
    "BAT-11",
    """A control batch's first record has a key of a version, 16 bits, 0 or more, and a type, 16 bits: 0 abort, 1
    commit, 2 leader change, 3 snapshot header, 4 snapshot footer, 5 kraft.version, 6 voters; others are unknown and
    skipped. The value of an abort or a commit is a version, 16 bits, 0 or more, and the coordinator's epoch, 32 bits.
    Bytes behind these are a later version's. Kafka checks it when it replays the batch.""",
    source=f"{CHAPTER}; ControlRecordType and EndTransactionMarker, Kafka 4.3.0",
    without=OF_THE_BYTES,
)
BAT_12 = clause(
    "BAT-12",
    """A varint is the zig-zag form of a signed number, 7 bits a byte, the lowest first, each byte but the last with bit
    7 set; at most 5 bytes for 32 bits, 10 for 64. Kafka writes the shortest form and reads longer ones; bits beyond the
    number's width are dropped.""",
    source=f"{CHAPTER}; ByteUtils, Kafka 4.3.0",
    without=OF_THE_BYTES,
)
BAT_13 = clause(
    "BAT-13",
    """Of several things wrong the first of these is said: length, magic, CRC, attributes, last offset delta, negative
    count, decompression, then the records in their order, what follows the last one, and the largest timestamp. The
    byte is that of the field; inside compressed records, the first byte of the records.""",
    source="kafkaspec",
    without=OF_THE_BYTES,
)
BAT_14 = clause(
    "BAT-14",
    """A record's offset is the base offset + its offset delta; its timestamp the base timestamp + its timestamp delta,
    or with LogAppendTime the batch's largest timestamp; sums wrap at 64 bits.""",
    source=f"{CHAPTER}; {RECORD}",
    without=OF_THE_BYTES,
)
BAT_15 = clause(
    "BAT-15",
    """With the delete horizon flag the base timestamp is the horizon, in ms, after which tombstones and markers of the
    batch may go; timestamp deltas count from it, and records keep their timestamps.""",
    source=f"{CHAPTER}; {BATCH}; KIP-534",
    without=OF_THE_BYTES,
)
BAT_16 = clause(
    "BAT-16",
    """A record's sequence is the base sequence + its offset delta, going on from 2147483647 to 0; the batch's last
    sequence follows from the last offset delta, so that compaction does not change it. With a base sequence below 0,
    which is -1 in what Kafka writes, there is none.""",
    source=f"{CHAPTER}; {BATCH}; KAFKA-7692",
    without=OF_THE_BYTES,
)
BAT_17 = clause(
    "BAT-17",
    """A batch that compaction empties but must keep, for its producer's sequence or as the log's last, is its header
    alone: count 0, no codec, no delete horizon, base timestamp -1, and base offset, last offset delta, largest
    timestamp, producer, base sequence, leader epoch and the other flags as they were.""",
    source=f"{CHAPTER}; {BATCH}",
    without=OF_THE_BYTES,
)
BAT_18 = clause(
    "BAT-18",
    """The writer takes for base timestamp that of the first record (or the delete horizon), for the last offset delta
    that of the last record unless told another, for the largest timestamp what BAT-10 says. It refuses a timestamp
    below -1, a transactional batch without a producer id, a producer id without an epoch, or with a base sequence
    below 0 unless it is a control batch, and writes nothing without records.""",
    source=WRITER,
    without=OF_THE_BYTES,
)
BAT_19 = clause(
    "BAT-19",
    "A batch that Kafka wrote is, decoded and encoded again, the same bytes, as long as its compressed part is kept.",
    source=f"{WRITER}; {BATCH}",
    without=OF_THE_BYTES,
)
BAT_20 = clause(
    "BAT-20",
    """A leader takes from a client one batch, whose offset range is 1 or more and its count, that is no control batch,
    and that has a base sequence of 0 or more if it has a producer id.""",
    source=f"{ASSIGNMENT}; {VALIDATOR}",
    without=OF_THE_LEADER,
)
BAT_21 = clause(
    "BAT-21",
    "For a compacted topic every record has a key, or the whole batch is refused.",
    source=f"{ASSIGNMENT}; {VALIDATOR}",
    without=OF_THE_LEADER,
)
BAT_22 = clause(
    "BAT-22",
    """For a topic of CreateTime a record's timestamp is -1, or at most before.max.ms before and after.max.ms after now;
    else the whole batch is refused. So it is if the producer set LogAppendTime. Where one record lacks a key and
    another's timestamp is wrong, that is the error.""",
    source=f"{ASSIGNMENT}; {VALIDATOR}; that of 3.5.2 for the producer's LogAppendTime",
    without=OF_THE_LEADER,
)
BAT_23 = clause(
    "BAT-23",
    """The leader gives consecutive offsets from its log end on, its leader epoch, its topic's timestamp type and the
    largest timestamp. It does so in the header of the bytes that came if codec and topic's codec are one and, of
    compressed records, the offsets are 0, 1, 2, ...; otherwise it writes the batch again in the topic's codec,
    with producer and transactional flag kept.""",
    source=f"{ASSIGNMENT}; {VALIDATOR}",
    without=OF_THE_LEADER,
)
BAT_24 = clause(
    "BAT-24",
    """Of a batch of which compaction keeps some records these keep their offsets, timestamps, keys, values and headers,
    and the batch its base offset, last offset, producer, flags, codec and timestamp type. A delete horizon is set where
    a tombstone is kept and there is none yet; one that is there stays. If all records are kept and no horizon is set,
    the bytes are copied.""",
    source=f"MemoryRecords.filterTo, Kafka 4.3.0; {WRITER}; KIP-534",
    without=OF_THE_BYTES,
)

HEADER = struct.Struct(">qiibIhiqqqhii")
OVERHEAD = HEADER.size  # 61
LOG_OVERHEAD = 12
LEAST_LENGTH = OVERHEAD - LOG_OVERHEAD
LENGTH_AT, EPOCH_AT, MAGIC_AT, CRC_AT, ATTRIBUTES_AT, DELTA_AT, BASE_TIME_AT, MAX_TIME_AT = (
    8,
    12,
    16,
    17,
    21,
    23,
    27,
    35,
)
PRODUCER_AT, PRODUCER_EPOCH_AT, SEQUENCE_AT, COUNT_AT = 43, 51, 53, 57
MAGIC = 2
CODEC_MASK, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
USED = 0x7F
NO_TIMESTAMP = NO_PRODUCER = NO_SEQUENCE = -1
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
CONTROL_TYPES = (
    "ABORT",
    "COMMIT",
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
)

CORRUPT = "org.apache.kafka.common.errors.CorruptRecordException"
INVALID = "org.apache.kafka.common.InvalidRecordException"
INVALID_TIMESTAMP = "org.apache.kafka.common.errors.InvalidTimestampException"
VALIDATION = "org.apache.kafka.storage.internals.log.RecordValidationException"
UNDERFLOW = "java.nio.BufferUnderflowException"
ERRORS = {BAT_1: CORRUPT, BAT_2: CORRUPT, BAT_3: CORRUPT, BAT_4: ILLEGAL_ARGUMENT, BAT_7: KAFKA_EXCEPTION}
"""Kafka's exception where it finds what decoding refuses; InvalidRecordException for the rest."""


class Malformed(ValueError):
    """Bytes that are no batch: `clause` is broken at byte `position`; `why` says how, in a phrase."""

    def __init__(self, clause: str, position: int, why: str) -> None:
        super().__init__(f"byte {position}: {why} ({clause})")
        self.clause, self.position, self.why = clause, position, why


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


def unzigzag(n: int) -> int:
    """0, -1, 1, -2, ... of 0, 1, 2, 3, ..."""
    return (n >> 1) ^ -(n & 1)


@states("BAT-12")
def varint(data: bytes, at: int, end: int, bits: int = 32) -> tuple[int, int]:
    """The number at a byte, and the byte behind it. ValueError if it is not over before `end`, TooLong (one of
    these) if it has too many bytes."""
    raw = shift = 0
    most = 5 if bits == 32 else 10
    for place in range(at, min(end, at + most)):
        raw |= (data[place] & 0x7F) << shift
        if data[place] < 0x80:
            return unzigzag(raw & ((1 << bits) - 1)), place + 1
        shift += 7
    if end - at >= most:
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
@dataclass(frozen=True)
class Header:
    """A record header: `key` is UTF-8, as a rule; `value` None is null."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True)
class Record:
    """One record, as its bytes say: deltas count from the batch's base offset and base timestamp (ms)."""

    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    attributes: int = 0


@dataclass(frozen=True)
class Batch:
    """One batch. Timestamps in ms, -1 for none; `compressed` the records' bytes as they were read, None if there is no
    codec or it was not read."""

    base_offset: int
    records: tuple[Record, ...]
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    attributes: int = 0
    leader_epoch: int = -1
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE
    compressed: bytes | None = None

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    @states("BAT-15")
    def delete_horizon(self) -> int | None:
        """ms; None without the flag."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    @states("BAT-5")
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    @states("BAT-16")
    def last_sequence(self) -> int:
        return self.sequence(self.last_offset_delta)

    @states("BAT-14")
    def offset(self, record: Record) -> int:
        """The record's offset."""
        return signed(self.base_offset + record.offset_delta, 64)

    @states("BAT-14")
    def timestamp(self, record: Record) -> int:
        """The record's, ms."""
        return self.max_timestamp if self.log_append_time else signed(self.base_timestamp + record.timestamp_delta, 64)

    @states("BAT-16")
    def sequence(self, offset_delta: int) -> int:
        """That of the record with this offset delta; NO_SEQUENCE if the batch has none."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + offset_delta) % (INT_MAX + 1)

    @property
    def largest_timestamp(self) -> int:
        """Of the records, as they are read."""
        return max((self.timestamp(r) for r in self.records), default=NO_TIMESTAMP)


class Marker(NamedTuple):
    """What a control record says; `coordinator_epoch` None where it is neither an abort nor a commit."""

    version: int
    type: int
    coordinator_epoch: int | None
    value_version: int | None

    @property
    def name(self) -> str:
        return CONTROL_TYPES[self.type] if 0 <= self.type < len(CONTROL_TYPES) else "UNKNOWN"


@states("BAT-11")
def marker(record: Record) -> Marker:
    """Of a control record. ValueError if it is malformed."""
    if record.key is None or len(record.key) < 4:
        raise ValueError("a control record's key is 4 bytes or more")
    version, kind = struct.unpack_from(">hh", record.key)
    if version < 0:
        raise ValueError(f"a control record's key of version {version}")
    value_version = struct.unpack_from(">h", record.value)[0] if record.value and len(record.value) > 1 else None
    if kind > 1 or kind < 0:
        return Marker(version, kind, None, value_version)
    if record.value is None or len(record.value) < 6:
        raise ValueError("the value of an abort or a commit is 6 bytes or more")
    value_version, epoch = struct.unpack_from(">hi", record.value)
    if value_version < 0:
        raise ValueError(f"an abort or a commit of version {value_version}")
    return Marker(version, kind, epoch, value_version)


# ---- decoding --------------------------------------------------------------------------------------------------------
@states("BAT-1", "BAT-2", "BAT-3", "BAT-4", "BAT-5", "BAT-6", "BAT-7", "BAT-9", "BAT-10", "BAT-13")
def decode(data: bytes, position: int = 0, limit: int = LIMIT) -> Batch:
    """The batch that `data` is, whole. `position`: of its first byte, for what is said; `limit`: of its records, bytes
    decompressed. Raises Malformed (BAT-1 to BAT-11, in the order of BAT-13)."""

    def wrong(clause: str, at: int, why: str) -> NoReturn:
        raise Malformed(clause, position + at, why)

    if len(data) < MAGIC_AT + 1:
        wrong(BAT_1, 0, f"{len(data)} bytes, where a batch begins with {MAGIC_AT + 1} up to its magic byte")
    length = int.from_bytes(data[LENGTH_AT:EPOCH_AT], "big", signed=True)
    magic = signed(data[MAGIC_AT], 8)
    if magic in (0, 1):
        raise Legacy(BAT_2, position + MAGIC_AT, f"a message set of format {magic}: not decoded")
    if length < LEAST_LENGTH:
        wrong(BAT_1, LENGTH_AT, f"length {length}, less than the {LEAST_LENGTH} of the header")
    if length != len(data) - LOG_OVERHEAD:
        wrong(BAT_1, LENGTH_AT, f"length {length}, where {len(data) - LOG_OVERHEAD} bytes follow")
    if magic != MAGIC:
        wrong(BAT_2, MAGIC_AT, f"magic {magic}")
    (base, _, epoch, _, crc, attributes, last, base_time, max_time, producer, producer_epoch, sequence, count) = (
        HEADER.unpack_from(data)
    )
    if crc != crc32c(data[ATTRIBUTES_AT:]):
        wrong(BAT_3, CRC_AT, f"CRC {crc:#010x}, where the bytes have {crc32c(data[ATTRIBUTES_AT:]):#010x}")
    if attributes & ~USED or attributes & CODEC_MASK not in CODECS:
        wrong(BAT_4, ATTRIBUTES_AT, f"attributes {attributes & 0xFFFF:#06x}")
    if last < 0:
        wrong(BAT_5, DELTA_AT, f"last offset delta {last}")
    if count < 0:
        wrong(BAT_6, COUNT_AT, f"count {count}")
    codec, section = attributes & CODEC_MASK, data[OVERHEAD:]
    plain, packed = section, codec != 0 and (count > 0 or section != b"")
    if packed:
        try:
            plain = decompress(codec, section, limit)
        except TooMuch as e:
            raise Unread(BAT_7, position + OVERHEAD, str(e)) from None
        except NotDecompressed as e:
            wrong(BAT_7, OVERHEAD, f"{CODECS[codec].name}: {e}")

    def inside(clause: str, at: int, why: str) -> NoReturn:
        wrong(clause, OVERHEAD + (0 if packed else at), f"{why}, byte {at} of the records" if packed else why)

    batch = Batch(
        base, (), last, base_time, max_time, attributes, epoch, producer, producer_epoch, sequence,
        section if packed else None,
    )  # fmt: skip
    records: list[Record] = []
    at = 0
    for n in range(count):
        start = at
        try:
            record, at, delta_at = _record(plain, start)
        except ValueError as e:
            inside(BAT_8, start, f"record {n}: {e}")
        before = records[-1].offset_delta if records else -1
        if not before < record.offset_delta <= last:
            inside(BAT_9, delta_at, f"record {n}: offset delta {record.offset_delta} after {before}, of {last} at most")
        if batch.control and n == 0:
            try:
                marker(record)
            except ValueError as e:
                inside(BAT_11, start, str(e))
        records.append(record)
    if at != len(plain):
        inside(BAT_6, at, f"{len(plain) - at} bytes behind the last of {count} records")
    batch = replace(batch, records=tuple(records))
    if records and not batch.log_append_time and max_time != max(NO_TIMESTAMP, batch.largest_timestamp):
        wrong(BAT_10, MAX_TIME_AT, f"largest timestamp {max_time}, where the records have {batch.largest_timestamp}")
    return batch


@states("BAT-8")
def _record(data: bytes, at: int, null: int = -1) -> tuple[Record, int, int]:
    """The record at a byte, the byte behind it and that of its offset delta. Sizes from `null` up to -1 are null.
    ValueError for one that breaks BAT-8 or BAT-12."""
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


@states("BAT-1", "BAT-19")
def encode(batch: Batch) -> bytes:
    """Kafka's bytes. The compressed part is taken as it was read, if it was; struct.error if a field is too large."""
    section = batch.compressed
    if section is None:
        section = b"".join(map(record_bytes, batch.records))
        if batch.codec and batch.records:
            section = compress(batch.codec, section)
    data = bytearray(OVERHEAD) + section
    HEADER.pack_into(
        data, 0, batch.base_offset, len(data) - LOG_OVERHEAD, batch.leader_epoch, MAGIC, 0, batch.attributes,
        batch.last_offset_delta, batch.base_timestamp, batch.max_timestamp, batch.producer_id, batch.producer_epoch,
        batch.base_sequence, len(batch.records),
    )  # fmt: skip
    return sealed(data)


@states("BAT-3")
def sealed(data: bytes | bytearray) -> bytes:
    """With the CRC that its bytes have."""
    return bytes(data[:CRC_AT]) + crc32c(bytes(data[ATTRIBUTES_AT:])).to_bytes(4, "big") + bytes(data[ATTRIBUTES_AT:])


class Timed(NamedTuple):
    """A record before it has its place in a batch."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


@states("BAT-10", "BAT-18")
def built(
    base_offset: int,
    records: Sequence[Timed],
    *,
    attributes: int = 0,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    append_time: int = NO_TIMESTAMP,
    delete_horizon: int | None = None,
    last_offset: int | None = None,
) -> Batch:
    """The batch that Kafka's writer makes of these records, one at least. `append_time` matters with
    LogAppendTime alone, ms."""
    base_time = records[0].timestamp if delete_horizon is None else delete_horizon
    largest = append_time if attributes & LOG_APPEND_TIME else max(NO_TIMESTAMP, *(r.timestamp for r in records))
    return Batch(
        base_offset,
        tuple(Record(r.offset - base_offset, r.timestamp - base_time, r.key, r.value, r.headers) for r in records),
        (records[-1].offset if last_offset is None else last_offset) - base_offset,
        base_time,
        largest,
        attributes | (DELETE_HORIZON if delete_horizon is not None else 0),
        leader_epoch,
        producer_id,
        producer_epoch,
        base_sequence,
    )


@states("BAT-17")
def emptied(batch: Batch) -> Batch:
    """What the cleaner keeps of a batch without records."""
    return replace(
        batch,
        records=(),
        base_timestamp=NO_TIMESTAMP,
        attributes=batch.attributes & ~(CODEC_MASK | DELETE_HORIZON),
        compressed=None,
    )


def timed(batch: Batch) -> tuple[Timed, ...]:
    """The records as a reader gets them."""
    return tuple(Timed(batch.offset(r), batch.timestamp(r), r.key, r.value, r.headers) for r in batch.records)


# ---- as JSON ---------------------------------------------------------------------------------------------------------
def hexed(content: bytes | None) -> str | None:
    return None if content is None else content.hex()


def unhexed(digits: str | None) -> bytes | None:
    return None if digits is None else bytes.fromhex(digits)


class RecordFields(TypedDict):
    """A record as it is written; bytes in hexadecimal."""

    attributes: int
    timestampDelta: int
    offsetDelta: int
    key: str | None
    value: str | None
    headers: list[list[str | None]]
    """key and value"""


class BatchFields(TypedDict):
    """A batch as it is written."""

    baseOffset: int
    leaderEpoch: int
    attributes: int
    lastOffsetDelta: int
    baseTimestamp: int
    maxTimestamp: int
    producerId: int
    producerEpoch: int
    baseSequence: int
    records: list[RecordFields]


class DecodedBatch(BatchFields):
    """The same, and what follows from it."""

    lastOffset: int
    lastSequence: int
    deleteHorizon: int | None
    """ms"""
    offsets: list[int]
    timestamps: list[int]
    sequences: list[int]
    control: list[str | int | None] | None
    """of a marker: type, version, coordinator epoch, version of the value"""


class RecordToBuild(TypedDict):
    """A record for a writer; key and value are Latin-1."""

    t: int
    """ms"""
    k: str | None
    v: str | None
    headers: int
    """how many"""


class BuiltRecord(TypedDict, total=False):
    """A record of a batch that was written; key and value are Latin-1."""

    o: int
    """offset"""
    t: int
    """ms"""
    k: str | None
    v: str | None


class BuiltBatch(TypedDict, total=False):
    """A batch that was written."""

    baseOffset: int
    lastOffset: int
    size: int
    """bytes"""
    maxTimestamp: int
    magic: int
    leaderEpoch: int
    producerId: int
    producerEpoch: int
    baseSequence: int
    transactional: bool
    control: bool
    deleteHorizonMs: int | None
    compression: str
    timestampType: str
    records: list[BuiltRecord]


class Built(TypedDict, total=False):
    """What a writer made."""

    sizeInBytes: int
    base64: str | None
    """the bytes, if they are not compressed"""
    batches: list[BuiltBatch]


class Validated(TypedDict, total=False):
    """What the leader writes."""

    logAppendTimeMs: int
    maxTimestampMs: int
    messageSizeMaybeChanged: bool
    batches: list[BuiltBatch]


class ReadRecord(TypedDict):
    """A record as a reader shows it; bytes in hexadecimal."""

    offset: int
    timestamp: int
    sequence: int
    key: str | None
    value: str | None
    headers: list[list[str | None]]


class ReadBatch(TypedDict, total=False):
    """A batch as a reader shows it."""

    baseOffset: int
    lastOffset: int
    size: int
    """bytes"""
    magic: int
    leaderEpoch: int
    compression: str
    timestampType: str
    transactional: bool
    control: bool
    deleteHorizon: int | None
    baseTimestamp: int
    maxTimestamp: int
    producerId: int
    producerEpoch: int
    baseSequence: int
    lastSequence: int
    count: int
    records: list[ReadRecord]
    marker: list[str | int | None] | None
    """type, and of an abort or a commit the coordinator's epoch"""


def as_json(batch: Batch) -> dict[str, Json]:
    """Every field, bytes in hexadecimal; the compressed part is left out."""
    return {
        "baseOffset": batch.base_offset,
        "leaderEpoch": batch.leader_epoch,
        "attributes": batch.attributes,
        "lastOffsetDelta": batch.last_offset_delta,
        "baseTimestamp": batch.base_timestamp,
        "maxTimestamp": batch.max_timestamp,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "records": [
            {
                "attributes": r.attributes,
                "timestampDelta": r.timestamp_delta,
                "offsetDelta": r.offset_delta,
                "key": hexed(r.key),
                "value": hexed(r.value),
                "headers": [[h.key.hex(), hexed(h.value)] for h in r.headers],
            }
            for r in batch.records
        ],
    }


def from_json(fields: Mapping[str, Json]) -> Batch:
    """The other way. KeyError, TypeError or ValueError for what is no batch."""
    records = tuple(
        Record(
            r["offsetDelta"],
            r["timestampDelta"],
            unhexed(r["key"]),
            unhexed(r["value"]),
            tuple(Header(bytes.fromhex(k), unhexed(v)) for k, v in r["headers"]),
            r["attributes"],
        )
        for r in fields["records"]
    )
    return Batch(
        fields["baseOffset"],
        records,
        fields["lastOffsetDelta"],
        fields["baseTimestamp"],
        fields["maxTimestamp"],
        fields["attributes"],
        fields["leaderEpoch"],
        fields["producerId"],
        fields["producerEpoch"],
        fields["baseSequence"],
    )


def read(batch: Batch) -> dict[str, Json]:
    """What a reader makes of it: all fields, and what follows from them."""
    said = marker(batch.records[0]) if batch.control and batch.records else None
    return as_json(batch) | {
        "lastOffset": signed(batch.last_offset, 64),
        "lastSequence": batch.last_sequence,
        "deleteHorizon": batch.delete_horizon,
        "offsets": [batch.offset(r) for r in batch.records],
        "timestamps": [batch.timestamp(r) for r in batch.records],
        "sequences": [batch.sequence(r.offset_delta) for r in batch.records],
        "control": None if said is None else [said.name, said.version, said.coordinator_epoch, said.value_version],
    }


def shown(batch: Batch, size: int) -> Fields:
    """As the recordings show a batch; keys and values are Latin-1."""

    def text(content: bytes | None) -> str | None:
        return None if content is None else content.decode("latin-1")

    return Fields(
        baseOffset=batch.base_offset,
        lastOffset=batch.last_offset,
        size=size,
        maxTimestamp=batch.max_timestamp,
        magic=MAGIC,
        leaderEpoch=batch.leader_epoch,
        producerId=batch.producer_id,
        producerEpoch=batch.producer_epoch,
        baseSequence=batch.base_sequence,
        transactional=batch.transactional,
        control=batch.control,
        deleteHorizonMs=batch.delete_horizon,
        compression=CODECS[batch.codec].name,
        timestampType="LogAppendTime" if batch.log_append_time else "CreateTime",
        records=[Fields(o=r.offset, t=r.timestamp, k=text(r.key), v=text(r.value)) for r in timed(batch)],
    )


# ---- the machine -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Held:
    """The batch that was built or loaded last: what `validate` and `corrupt` work on. Empty: none."""

    data: bytes = b""


def initial() -> Held:
    return Held()


class Observation(TypedDict, total=False):
    """The batch at hand, in hexadecimal."""

    data: str


def observe(state: Held) -> Observation:
    return cast(Observation, Fields(data=state.data.hex()))


machine: Machine[Held] = Machine("batch", initial, observe)


@lru_cache(maxsize=512)
def known(data: bytes) -> Batch:
    """The same as `decode`, at once for bytes that come again."""
    return decode(data)


def refused(e: Malformed) -> Refused:
    """With the byte where it shows."""
    return Refused(e.clause, ERRORS.get(e.clause, INVALID), f"byte {e.position}")


class Denied(ValueError):
    """What Kafka's reader of bytes in memory refuses, and how."""

    def __init__(self, clause: str, error: str, words: str | None = None) -> None:
        super().__init__(words or clause)
        self.refused = Refused(clause, error, words)


class Unaffordable(ValueError):
    """What Kafka's reader takes so much memory for that it may not have it."""


@states("BAT-1", "BAT-2", "BAT-3")
def framed(data: bytes) -> Iterator[bytes]:
    """The batches behind each other, as Kafka's reader of bytes in memory finds them, with their CRC compared. One that
    is cut at the end is left out. Raises Denied."""
    while len(data) >= LOG_OVERHEAD:
        size = LOG_OVERHEAD + int.from_bytes(data[LENGTH_AT:EPOCH_AT], "big", signed=True)
        if size < LOG_OVERHEAD + 14:
            raise Denied(BAT_1, CORRUPT)
        if len(data) < MAGIC_AT + 1:
            return
        magic = signed(data[MAGIC_AT], 8)
        if magic not in (0, 1, MAGIC):
            raise Denied(BAT_2, CORRUPT)
        if size > len(data):
            return
        one, data = data[:size], data[size:]
        if magic != MAGIC:
            raise Denied(BAT_2, CORRUPT)
        if size < OVERHEAD:
            raise Denied(BAT_1, CORRUPT)
        stored, right = int.from_bytes(one[CRC_AT:ATTRIBUTES_AT], "big"), crc32c(one[ATTRIBUTES_AT:])
        if stored != right:
            raise Denied(BAT_3, CORRUPT, f"Record is corrupt (stored crc = {stored}, computed crc = {right})")
        yield one


AFFORDABLE = 1 << 24
"""Records of a compressed batch, and bytes of one of them, that Kafka's reader surely has memory for. It takes the
memory for as many as the bytes say before it looks whether they are there."""


@states("BAT-4", "BAT-6", "BAT-7", "BAT-8")
def leniently(data: bytes) -> Batch:
    """A framed batch, as Kafka's reader takes it: more than `decode` does. Raises Denied, Unaffordable."""
    (base, _, epoch, _, _, attributes, last, base_time, max_time, producer, producer_epoch, sequence, count) = (
        HEADER.unpack_from(data)
    )
    codec, plain = attributes & CODEC_MASK, data[OVERHEAD:]
    if codec not in CODECS:
        raise Denied(BAT_4, ILLEGAL_ARGUMENT)
    batch = Batch(base, (), last, base_time, max_time, attributes & USED, epoch, producer, producer_epoch, sequence)
    if count == 0:
        return batch
    if codec:
        try:
            plain = decompress(codec, plain)
        except TooMuch:
            raise Unaffordable("bytes") from None
        except NotDecompressed:
            raise Denied(BAT_7, KAFKA_EXCEPTION) from None
    if count < 0:
        raise Denied(BAT_6, INVALID)
    if codec and count > AFFORDABLE:
        raise Unaffordable("records")
    records: list[Record] = []
    at = 0
    for _ in range(count):
        try:
            length, _ = varint(plain, at, len(plain))
        except TooLong:  # nothing catches it if there is no codec
            raise Denied(BAT_12, INVALID if codec else ILLEGAL_ARGUMENT) from None
        except ValueError:
            raise Denied(BAT_8, INVALID) from None
        if codec and length > AFFORDABLE:
            raise Unaffordable("bytes of a record")
        try:
            record, at, _ = _record(plain, at, null=-(2**31))
        except ValueError:
            raise Denied(BAT_8, INVALID) from None
        records.append(record)
    if at != len(plain):
        raise Denied(BAT_6, INVALID)
    return replace(batch, records=tuple(records))


@states("BAT-11")
def marker_as_read(batch: Batch) -> list[Json] | None:
    """The type and, of an abort or a commit, the coordinator's epoch of a control batch's first record. Raises Denied
    for what is no marker, with an exception of Java's own where Kafka looks without asking."""
    if not batch.control or not batch.records:
        return None
    key, value = batch.records[0].key, batch.records[0].value
    if key is None:
        raise Denied(BAT_11, NULL_POINTER)
    if len(key) < 4 or signed(key[0], 8) < 0:
        raise Denied(BAT_11, INVALID)
    if key[2:4] in (b"\0\0", b"\0\1"):
        if value is None:
            raise Denied(BAT_11, NULL_POINTER)
        if len(value) >= 2 and signed(value[0], 8) < 0:
            raise Denied(BAT_11, INVALID)
        if len(value) < 6:
            raise Denied(BAT_11, UNDERFLOW)
    said = marker(batch.records[0])
    return [said.name, said.coordinator_epoch]


def as_read(batch: Batch, size: int) -> Fields:
    """What Kafka's reader shows of a batch of so many bytes: keys and values in hexadecimal."""
    return Fields(
        baseOffset=batch.base_offset,
        lastOffset=signed(batch.last_offset, 64),
        size=size,
        magic=MAGIC,
        leaderEpoch=batch.leader_epoch,
        compression=CODECS[batch.codec].name,
        timestampType="LogAppendTime" if batch.log_append_time else "CreateTime",
        transactional=batch.transactional,
        control=batch.control,
        deleteHorizon=batch.delete_horizon,
        baseTimestamp=batch.base_timestamp,
        maxTimestamp=batch.max_timestamp,
        producerId=batch.producer_id,
        producerEpoch=batch.producer_epoch,
        baseSequence=batch.base_sequence,
        lastSequence=batch.last_sequence,
        count=len(batch.records),
        records=[
            {
                "offset": batch.offset(r),
                "timestamp": batch.timestamp(r),
                "sequence": batch.sequence(r.offset_delta),
                "key": hexed(r.key),
                "value": hexed(r.value),
                "headers": [[h.key.decode(), hexed(h.value)] for h in r.headers],
            }
            for r in batch.records
        ],
        marker=marker_as_read(batch),
    )


@lru_cache(maxsize=4096)
def reading(data: bytes) -> list[Fields] | Refused | str:
    """What Kafka's reader makes of these bytes: the batches, or its refusal; or why that cannot be said."""
    out = []
    try:
        for one in framed(data):
            batch = leniently(one)
            if batch.base_sequence < NO_SEQUENCE or (
                batch.base_sequence >= 0 and any(n < 0 for n in (batch.last_offset_delta, *deltas(batch)))
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


def deltas(batch: Batch) -> list[int]:
    return [r.offset_delta for r in batch.records]


def is_hex(text: str) -> bool:
    return len(text) % 2 == 0 and set(text) <= set("0123456789abcdef")


def is_base64(text: str) -> bool:
    try:
        return base64.b64encode(base64.b64decode(text)).decode() == text
    except ValueError:
        return False


def in_bits(number: int, bits: int) -> bool:
    return -(1 << (bits - 1)) <= number < 1 << (bits - 1)


def are_records(records: Json) -> bool:
    """Whether it is a list, not empty, of records as `build` takes them."""

    def text(x: Any) -> bool:
        return x is None or (isinstance(x, str) and all(ord(c) < 256 for c in x))

    return (
        isinstance(records, list)
        and len(records) > 0
        and all(
            isinstance(r, dict)
            and r.keys() == {"t", "k", "v", "headers"}
            and isinstance(r["t"], int)
            and in_bits(r["t"], 64)
            and text(r["k"])
            and text(r["v"])
            and isinstance(r["headers"], int)
            and 0 <= r["headers"] < 100
            for r in records
        )
    )


def nothing_changes(state: Held, result: Step[Held]) -> bool:
    return result.state == state


def accepted(result: Step[Held]) -> bool:
    return not isinstance(result.result, Refused)


def fits(fields: Json) -> bool:
    """Whether it is a batch whose every field fits its place."""
    try:
        batch = from_json(fields)
        HEADER.pack(0, 0, batch.leader_epoch, 2, 0, batch.attributes, batch.last_offset_delta, 0, 0, 0, 0, 0, 0)
        HEADER.pack(
            batch.base_offset, 0, 0, 2, 0, 0, 0, batch.base_timestamp, batch.max_timestamp, batch.producer_id,
            batch.producer_epoch, batch.base_sequence, 0,
        )  # fmt: skip
        return all(
            0 <= r.attributes <= 255
            and -(2**63) <= r.timestamp_delta <= LONG_MAX
            and -(2**31) <= r.offset_delta < 2**31
            for r in batch.records
        )
    except (KeyError, TypeError, ValueError, AttributeError, struct.error):
        return False


def whole(batch: Batch) -> bool:
    """Whether it keeps BAT-4 to BAT-11, so that its bytes are a batch."""
    deltas = [r.offset_delta for r in batch.records]
    try:
        if batch.control and batch.records:
            marker(batch.records[0])
    except ValueError:
        return False
    return (
        0 <= batch.attributes <= USED
        and batch.codec in CODECS
        and batch.last_offset_delta >= 0
        and all(a < b for a, b in itertools.pairwise([-1, *deltas, batch.last_offset_delta + 1]))
        and (not batch.records or batch.log_append_time or batch.max_timestamp == max(-1, batch.largest_timestamp))
    )


@machine.operation("decode", BAT_1, BAT_2, BAT_3, BAT_4, BAT_5, BAT_6, BAT_7, BAT_8, BAT_9, BAT_10, BAT_11, BAT_13)
@icontract.ensure(lambda state, result: nothing_changes(state, result), "BAT-1 reading changes nothing")
@icontract.ensure(
    lambda data, result: accepted(result) or 0 <= int(result.result.message[5:]) <= len(data) // 2,
    "BAT-13 the byte is one of the batch, or the one behind it",
)
@icontract.ensure(
    lambda data, result: not accepted(result) or int(data[16:24], 16) == len(data) // 2 - LOG_OVERHEAD,
    "BAT-1 the length is that of the bytes",
)
@icontract.ensure(
    lambda data, result: not accepted(result) or int(data[34:42], 16) == crc32c(bytes.fromhex(data)[ATTRIBUTES_AT:]),
    "BAT-3 the CRC is that of the bytes",
)
@icontract.ensure(
    lambda result: not accepted(result) or whole(from_json(result.result)),
    "BAT-9 what is read keeps the rules of its records",
)
@icontract.ensure(
    lambda data, result: not accepted(result) or len(result.result["records"]) == int(data[114:122], 16),
    "BAT-6 as many records as the count says",
)
@icontract.ensure(
    lambda result: (
        not accepted(result)
        or result.result["baseSequence"] < 0
        or (result.result["lastSequence"] - result.result["baseSequence"] - result.result["lastOffsetDelta"]) % 2**31
        == 0
    ),
    "BAT-16 sequences follow the offsets, modulo 2147483648",
)
@icontract.ensure(
    lambda result: (
        not accepted(result)
        or not result.result["attributes"] & LOG_APPEND_TIME
        or set(result.result["timestamps"]) <= {result.result["maxTimestamp"]}
    ),
    "BAT-14 LogAppendTime is every record's",
)
@icontract.ensure(
    lambda result: (
        not accepted(result)
        or (result.result["deleteHorizon"] is None) == (result.result["attributes"] & DELETE_HORIZON == 0)
    ),
    "BAT-15 a horizon where the flag is",
)
@icontract.require(lambda data: is_hex(data), "BAT-1 bytes, in hexadecimal")
def decode_bytes(state: Held, data: str) -> Step[Held, DecodedBatch]:
    """Read a batch. `data` in hexadecimal."""
    try:
        return Step(state, cast(DecodedBatch, read(decode(bytes.fromhex(data)))))
    except Malformed as e:
        return Step(state, refused(e))


def reads_alike(data: bytes, answer: list[Fields] | Refused) -> bool:
    """Whether a batch that `decode` takes is read, to the same records; and what it refuses may be."""
    try:
        batch = known(data)
    except Malformed:
        return True
    return (
        not isinstance(answer, Refused)
        and len(answer) == 1
        and [(r["offset"], r["timestamp"], r["key"], r["value"]) for r in answer[0]["records"]]
        == [(t.offset, t.timestamp, hexed(t.key), hexed(t.value)) for t in timed(batch)]
    )


@machine.operation("read", BAT_1, BAT_2, BAT_3, BAT_4, BAT_6, BAT_7, BAT_8, BAT_11, BAT_12, BAT_14, BAT_15, BAT_16)
@icontract.require(
    lambda data: not isinstance(reading(bytes.fromhex(data)), str),
    "BAT-16 sequences are of offset deltas of 0 or more, headers have names, and the bytes ask for no huge memory",
)
@icontract.require(lambda data: is_hex(data), "BAT-1 bytes, in hexadecimal")
@icontract.ensure(lambda state, result: nothing_changes(state, result), "BAT-1 reading changes nothing")
@icontract.ensure(
    lambda data, result: reads_alike(bytes.fromhex(data), result.result),
    "BAT-8 a reader asks for no more than a writer keeps: what is well-formed is read",
)
def read_bytes(state: Held, data: str) -> Step[Held, list[ReadBatch]]:
    """Kafka's reader of bytes in memory, and of a control batch's marker: the batches. It compares the CRC,
    decompresses a batch to its end, then reads its records. A batch cut at the end is left out."""
    answer = reading(bytes.fromhex(data))
    assert not isinstance(answer, str)
    return Step(state, cast(list[ReadBatch] | Refused, answer))


@machine.operation("encode", BAT_1, BAT_3, BAT_8, BAT_12, BAT_17, BAT_19)
@icontract.require(lambda batch: fits(batch), "BAT-8 every field fits its place")
@icontract.ensure(lambda state, result: nothing_changes(state, result), "BAT-19 writing changes nothing here")
@icontract.ensure(
    lambda batch, result: not whole(from_json(batch)) or as_json(known(bytes.fromhex(result.result))) == batch,
    "BAT-19 what was written is read again",
)
@icontract.ensure(
    lambda batch, result: bool(batch["records"]) or len(result.result) == 2 * OVERHEAD,
    "BAT-17 a batch without records is its header",
)
def encode_fields(state: Held, batch: BatchFields) -> Step[Held, str]:
    """Write a batch, well-formed or not: hexadecimal."""
    return Step(state, encode(from_json(batch)).hex())


@machine.operation("retainEmpty", BAT_17)
@icontract.require(lambda data: is_whole(Held(bytes.fromhex(data))), "BAT-17 the batch is well-formed")
@icontract.require(lambda data: is_hex(data), "BAT-17 bytes, in hexadecimal")
@icontract.ensure(lambda state, result: nothing_changes(state, result), "BAT-17 writing changes nothing here")
@icontract.ensure(lambda result: len(result.result) == 2 * OVERHEAD, "BAT-17 the header alone")
@icontract.ensure(
    lambda data, result: (
        known(bytes.fromhex(result.result)).last_sequence == known(bytes.fromhex(data)).last_sequence
        and known(bytes.fromhex(result.result)).last_offset == known(bytes.fromhex(data)).last_offset
    ),
    "BAT-17 the last offset and the last sequence stay",
)
@icontract.ensure(
    lambda data, result: all(
        result.result[2 * at : 2 * end] == data[2 * at : 2 * end]
        for at, end in ((0, LENGTH_AT), (EPOCH_AT, CRC_AT), (DELTA_AT, BASE_TIME_AT), (MAX_TIME_AT, COUNT_AT))
    ),
    "BAT-17 offsets, leader epoch, largest timestamp and producer as they were",
)
def retain_empty(state: Held, data: str) -> Step[Held, str]:
    """What the cleaner keeps of a batch of which it keeps no record. Hexadecimal."""
    return Step(state, encode(emptied(known(bytes.fromhex(data)))).hex())


@machine.operation("retain", BAT_24, BAT_9, BAT_10, BAT_15, BAT_17, BAT_19)
@icontract.require(
    lambda data, kept: all(0 <= n < len(known(bytes.fromhex(data)).records) for n in kept),
    "BAT-24 numbers of the batch's records",
)
@icontract.require(
    lambda data, kept: not kept or 0 in kept or not known(bytes.fromhex(data)).control,
    "BAT-11 the first record of a control batch is its marker",
)
@icontract.require(
    lambda data, delete_horizon: (
        0 <= delete_horizon < 2**62
        and all(in_bits(t.timestamp, 63) for t in timed(known(bytes.fromhex(data))))
        and known(bytes.fromhex(data)).base_offset >= 0
    ),
    "BAT-15 a horizon and offsets from 0 up, and times with room for their differences",
)
@icontract.require(lambda data: is_text(known(bytes.fromhex(data))), "BAT-8 the keys of headers are UTF-8")
@icontract.require(
    lambda data: not is_unsequenced(known(bytes.fromhex(data))),
    "BAT-20 what a leader took: a producer id has a sequence, but for control batches",
)
@icontract.require(lambda data: is_whole(Held(bytes.fromhex(data))), "BAT-24 the batch is well-formed")
@icontract.require(lambda data: is_hex(data), "BAT-24 bytes, in hexadecimal")
@icontract.ensure(lambda state, result: nothing_changes(state, result), "BAT-24 writing changes nothing here")
@icontract.ensure(
    lambda data, kept, result: (
        [(r["offset"], r["timestamp"], r["key"], r["value"]) for r in result.result[0]["records"]]
        == [
            (t.offset, t.timestamp, hexed(t.key), hexed(t.value))
            for n, t in enumerate(timed(known(bytes.fromhex(data))))
            if n in kept
        ]
    ),
    "BAT-24 records as they were",
)
@icontract.ensure(
    lambda data, result: all(
        result.result[0][name] == as_read(known(bytes.fromhex(data)), 0)[name]
        for name in ("baseOffset", "lastOffset", "lastSequence", "producerId", "transactional", "control")
    ),
    "BAT-24 offsets and producer as they were",
)
def retain(state: Held, data: str, kept: list[int], delete_horizon: int) -> Step[Held, list[ReadBatch]]:
    """What the cleaner writes of a batch of which it keeps these records (their numbers), and the batch in any case.
    `delete_horizon`, ms, is set where there is reason. The answer is what a reader makes of it."""
    batch = known(bytes.fromhex(data))
    after = retained(batch, frozenset(kept), delete_horizon)
    return Step(state, [cast(ReadBatch, as_read(after, len(encode(after))))])


@states("BAT-24")
def retained(batch: Batch, kept: frozenset[int], delete_horizon: int) -> Batch:
    """The batch of which compaction keeps the records with these numbers."""
    left = [t for n, t in enumerate(timed(batch)) if n in kept]
    if not left:
        return emptied(batch)
    new_horizon = batch.delete_horizon is None and any(t.value is None for t in left)
    if len(left) == len(batch.records) and not new_horizon:
        return batch
    return built(
        batch.base_offset,
        left,
        attributes=batch.attributes & ~DELETE_HORIZON,
        leader_epoch=batch.leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        append_time=batch.max_timestamp,
        delete_horizon=delete_horizon if new_horizon else batch.delete_horizon,
        last_offset=batch.last_offset,
    )


@machine.operation("varint", BAT_12)
@icontract.require(
    lambda number, bits: bits in (32, 64) and -(1 << (bits - 1)) <= number < 1 << (bits - 1),
    "BAT-12 a number of that width",
)
@icontract.ensure(lambda state, result: nothing_changes(state, result), "BAT-12 a function")
@icontract.ensure(
    lambda number, bits, result: varint(bytes.fromhex(result.result), 0, 20, bits) == (number, len(result.result) // 2),
    "BAT-12 it is read as it was written",
)
@icontract.ensure(
    lambda number, result: len(result.result) // 2 == max(1, -(-(2 * abs(number) - (number < 0)).bit_length() // 7)),
    "BAT-12 in as few bytes as its zig-zag form needs",
)
def write_varint(state: Held, number: int, bits: int) -> Step[Held, str]:
    """The bytes of a number of 32 or 64 bits, hexadecimal."""
    return Step(state, varint_bytes(number, bits).hex())


@machine.operation("readVarint", BAT_12)
@icontract.require(lambda data, bits: is_hex(data) and bits in (32, 64), "BAT-12 bytes, for 32 bits or 64")
@icontract.ensure(lambda state, result: nothing_changes(state, result), "BAT-12 a function")
@icontract.ensure(
    lambda bits, result: not accepted(result) or 1 <= result.result[1] <= (5 if bits == 32 else 10),
    "BAT-12 5 bytes at most, or 10",
)
def read_varint(state: Held, data: str, bits: int) -> Step[Held, list[int]]:
    """The number that bytes begin with, and how many bytes it takes."""
    content = bytes.fromhex(data)
    try:
        return Step(state, list(varint(content, 0, len(content), bits)))
    except TooLong:
        return Step(state, Refused(BAT_12, ILLEGAL_ARGUMENT))
    except ValueError:
        return Step(state, Refused(BAT_12, UNDERFLOW))


@machine.operation("load", BAT_20)
@icontract.ensure(lambda data, result: result.state.data.hex() == data, "BAT-20 these bytes are held")
@icontract.require(lambda data: is_hex(data), "BAT-20 bytes, in hexadecimal")
def load(state: Held, data: str) -> Step[Held, None]:
    """A batch as a producer may send it, well-formed or not."""
    return Step(Held(bytes.fromhex(data)))


HEADER_OF_THE_TRACES = Header(b"h", b"hv")
TIMESTAMP_TYPES = {"CreateTime": 0, "LogAppendTime": LOG_APPEND_TIME}


def of_the_trace(base_offset: int, records: Json) -> list[Timed]:
    """Records as `build` takes them: `t`, `k`, `v`, and how many headers."""

    def content(text: str | None) -> bytes | None:
        return None if text is None else text.encode("latin-1")

    return [
        Timed(base_offset + n, r["t"], content(r["k"]), content(r["v"]), (HEADER_OF_THE_TRACES,) * r["headers"])
        for n, r in enumerate(records)
    ]


@states("BAT-18")
def wrong_for_the_writer(
    producer_id: int, producer_epoch: int, base_sequence: int, flags: int, times: list[int]
) -> bool:
    """Whether Kafka's writer refuses them."""
    return (
        any(t < NO_TIMESTAMP for t in times)
        or (producer_id == NO_PRODUCER and bool(flags & TRANSACTIONAL))
        or (producer_id != NO_PRODUCER and (producer_epoch == -1 or (base_sequence < 0 and not flags & CONTROL)))
    )


@machine.operation("build", BAT_10, BAT_18)
@icontract.require(lambda magic: magic == MAGIC, "BAT-2 formats 0 and 1 are not written")
@icontract.require(
    lambda compression, timestamp_type, records: (
        compression in CODEC_IDS and timestamp_type in TIMESTAMP_TYPES and are_records(records)
    ),
    "BAT-18 known words, and records, one at least",
)
@icontract.require(
    lambda base_offset, producer_id, producer_epoch, base_sequence, partition_leader_epoch, log_append_time, records: (
        are_records(records)
        and all(in_bits(n, 64) for n in (base_offset, base_offset + len(records), producer_id, log_append_time))
        and all(in_bits(n, 32) for n in (base_sequence, partition_leader_epoch))
        and in_bits(producer_epoch, 16)
        and (records[0]["t"] < -1 or all(in_bits(r["t"] - records[0]["t"], 64) for r in records))
    ),
    "BAT-8 every number fits its place",
)
@icontract.ensure(
    lambda state, result: accepted(result) or nothing_changes(state, result), "BAT-18 refused: nothing is written"
)
@icontract.ensure(
    lambda records, timestamp_type, result: (
        not accepted(result)
        or timestamp_type != "CreateTime"
        or known(result.state.data).max_timestamp == max(r["t"] for r in records)
    ),
    "BAT-10 the largest of the records",
)
@icontract.ensure(
    lambda base_offset, records, result: (
        not accepted(result)
        or [r["o"] for r in result.result["batches"][0]["records"]]
        == list(range(base_offset, base_offset + len(records)))
    ),
    "BAT-18 consecutive offsets from the base on",
)
def build(
    state: Held,
    magic: int,
    compression: str,
    base_offset: int,
    timestamp_type: str,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool,
    partition_leader_epoch: int,
    records: Sequence[RecordToBuild],
    log_append_time: int = NO_TIMESTAMP,
) -> Step[Held, Built]:
    """Kafka's writer, fed records of consecutive offsets. `log_append_time`, ms, matters with LogAppendTime alone. The
    result's `base64` is the batch if it is not compressed."""
    flags = CODEC_IDS[compression] | TIMESTAMP_TYPES[timestamp_type] | (TRANSACTIONAL if transactional else 0)
    if wrong_for_the_writer(producer_id, producer_epoch, base_sequence, flags, [r["t"] for r in records]):
        return Step(state, Refused(BAT_18, ILLEGAL_ARGUMENT))
    batch = built(
        base_offset,
        of_the_trace(base_offset, records),
        attributes=flags,
        leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        append_time=log_append_time,
    )
    data = encode(batch)
    made = Fields(
        sizeInBytes=len(data),
        base64=None if batch.codec else base64.b64encode(data).decode(),
        batches=[shown(batch, len(data))],
    )
    return Step(Held(data), cast(Built, made))


class Readable(TypedDict):
    """The base offsets of sound batches."""

    valid: bool
    batches: list[int]


@machine.operation("corrupt", BAT_1, BAT_2, BAT_3)
@icontract.ensure(lambda state, result: nothing_changes(state, result), "BAT-1 reading changes nothing")
@icontract.ensure(
    lambda result: accepted(result) or result.result.clause in (BAT_1, BAT_2, BAT_3), "BAT-3 the header's checks alone"
)
@icontract.require(lambda base64: is_base64(base64), "BAT-1 bytes, in Base64")
def corrupt(state: Held, base64: str, of: str = "previous build", byte: int = -1) -> Step[Held, Readable]:
    """What Kafka's reader of bytes in memory, with `ensureValid` of each batch, makes of these: the base offsets.
    A batch cut at the end is left out."""
    try:
        return Step(state, {"valid": True, "batches": [HEADER.unpack_from(b)[0] for b in framed(_unbase64(base64))]})
    except Denied as e:
        return Step(state, e.refused)


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text)


# ---- the leader ------------------------------------------------------------------------------------------------------
def is_whole(state: Held) -> bool:
    """Whether it is a batch that some producer can have written."""
    try:
        b = known(state.data)
    except Malformed:
        return False
    return not wrong_for_the_writer(b.producer_id, b.producer_epoch, 0, b.attributes, [])


def is_a_brokers(batch: Batch) -> bool:
    """Whether a coordinator can have written it."""
    strange = batch.control and (batch.codec or not consecutive(batch))
    return len(batch.records) == batch.last_offset_delta + 1 and not (strange or is_unsequenced(batch))


def is_unsequenced(batch: Batch) -> bool:
    """Whether a producer's batch lacks its sequence; markers have none."""
    return batch.producer_id != NO_PRODUCER and batch.base_sequence < 0 and not batch.control


def held(state: Held) -> Batch:
    return known(state.data)


@states("BAT-20")
def allowed(batch: Batch, origin: str) -> Refused | None:
    """What the leader asks of the batch as a whole."""
    wrong = (
        len(batch.records) == 0
        or batch.last_offset_delta + 1 != len(batch.records)
        or batch.control
        or (batch.producer_id > NO_PRODUCER and batch.base_sequence < 0)
    )
    return Refused(BAT_20, INVALID) if origin == "CLIENT" and wrong else None


@states("BAT-21", "BAT-22")
def faults(
    batch: Batch, compacted: bool, create_time: bool, now: int, before_ms: int, after_ms: int
) -> Iterator[tuple[str, int]]:
    """The records that the leader refuses: the clause, and which it is."""
    for n, r in enumerate(timed(batch)):
        age = signed(now - r.timestamp, 64)
        if compacted and r.key is None:
            yield BAT_21, n
        elif batch.log_append_time or (
            create_time and r.timestamp != NO_TIMESTAMP and (age > before_ms or signed(-age, 64) > after_ms)
        ):
            yield BAT_22, n


@states("BAT-22")
def refusal(found: Sequence[tuple[str, int]]) -> Refused | None:
    """One for all records: a wrong timestamp before a missing key."""
    if not found:
        return None
    if any(c == BAT_22 for c, _ in found):
        words = f"{INVALID_TIMESTAMP}: One or more records have been rejected due to invalid timestamp"
        return Refused(BAT_22, VALIDATION, words)
    keyless = "Compacted topic cannot accept message without key in topic partition t-0"
    three = ", ".join(f"RecordError(batchIndex={n}, message='{keyless}')" for _, n in found[:3])
    words = f"One or more records have been rejected due to {len(found)} record errors in total"
    return Refused(
        BAT_21, VALIDATION, f"{INVALID}: {words}, and only showing the first three errors at most: [{three}]"
    )


def consecutive(batch: Batch) -> bool:
    """Whether the records' offsets are 0, 1, 2, ..., as a producer sends them."""
    return [r.offset for r in timed(batch)] == list(range(len(batch.records)))


@states("BAT-23")
def in_place(batch: Batch, target: int) -> bool:
    """Whether the leader keeps the records' bytes."""
    if batch.codec == target == 0 or (batch.control and batch.codec == 0):
        return True
    return batch.codec == target and consecutive(batch)


@machine.operation("validate", BAT_20, BAT_21, BAT_22, BAT_23)
@icontract.require(
    lambda to_magic, timestamp_type, target_compression, origin, initial_offset, partition_leader_epoch, now: (
        to_magic == MAGIC
        and in_bits(initial_offset, 48)
        and in_bits(partition_leader_epoch, 32)
        and in_bits(now, 48)
        and timestamp_type in TIMESTAMP_TYPES
        and target_compression in CODEC_IDS
        and origin in ("CLIENT", "COORDINATOR")
    ),
    "BAT-2 known words, this format, and numbers that fit with room for those that follow",
)
@icontract.require(
    lambda state, origin: origin == "CLIENT" or (is_whole(state) and is_a_brokers(held(state))),
    "BAT-20 a broker's own batches have a record an offset and a sequence; control batches begin at 0, not compressed",
)
@icontract.require(
    lambda state: all(in_bits(t.timestamp, 63) for t in timed(held(state))),
    "BAT-22 times with room for their differences",
)
@icontract.require(lambda state: is_whole(state), "BAT-18 the batch is well-formed, its producer as a writer has it")
@icontract.ensure(lambda state, result: nothing_changes(state, result), "BAT-23 the producer's bytes are a copy")
@icontract.ensure(
    lambda state, initial_offset, result: (
        not accepted(result)
        or [r["o"] for r in result.result["batches"][0]["records"]]
        == list(range(initial_offset, initial_offset + len(held(state).records)))
    ),
    "BAT-23 consecutive offsets from the log end on",
)
@icontract.ensure(
    lambda state, result: (
        not accepted(result)
        or [(r["k"], r["v"]) for r in result.result["batches"][0]["records"]]
        == [(r["k"], r["v"]) for r in shown(held(state), 0)["records"]]
    ),
    "BAT-23 keys and values as they came",
)
@icontract.ensure(
    lambda partition_leader_epoch, timestamp_type, result: (
        not accepted(result)
        or (result.result["batches"][0]["leaderEpoch"], result.result["batches"][0]["timestampType"])
        == (partition_leader_epoch, timestamp_type)
    ),
    "BAT-23 the leader's epoch, the topic's timestamp type",
)
@icontract.ensure(
    lambda state, result: (
        not accepted(result)
        or all(
            result.result["batches"][0][name] == shown(held(state), 0)[name]
            for name in ("producerId", "producerEpoch", "baseSequence", "transactional", "control")
        )
    ),
    "BAT-23 the producer is kept",
)
@icontract.ensure(
    lambda compacted_topic, result: (
        not accepted(result)
        or not compacted_topic
        or all(r["k"] is not None for r in result.result["batches"][0]["records"])
    ),
    "BAT-21 every record of a compacted topic has a key",
)
@icontract.ensure(
    lambda now, timestamp_type, timestamp_before_max_ms, timestamp_after_max_ms, result: (
        not accepted(result)
        or all(
            r["t"] == now
            if timestamp_type == "LogAppendTime"
            else r["t"] == -1 or now - timestamp_before_max_ms <= r["t"] <= now + timestamp_after_max_ms
            for r in result.result["batches"][0]["records"]
        )
    ),
    "BAT-22 timestamps within the bounds, or the leader's",
)
@icontract.ensure(
    lambda state, result: not accepted(result) or not held(state).log_append_time,
    "BAT-22 no producer sets LogAppendTime",
)
def validate(
    state: Held,
    to_magic: int,
    initial_offset: int,
    compacted_topic: bool,
    timestamp_type: str,
    timestamp_before_max_ms: int,
    timestamp_after_max_ms: int,
    partition_leader_epoch: int,
    now: int,
    target_compression: str,
    origin: str,
    of: str = "previous build",
) -> Step[Held, Validated]:
    """The leader takes the batch: what it writes, or why it refuses. `initial_offset` is the log end, `now` ms."""
    batch = held(state)
    create_time = timestamp_type == "CreateTime"
    no = allowed(batch, origin) or refusal(
        list(faults(batch, compacted_topic, create_time, now, timestamp_before_max_ms, timestamp_after_max_ms))
    )
    if no is not None:
        return Step(state, no)
    target = CODEC_IDS[target_compression]
    after = taken(batch, initial_offset, timestamp_type, partition_leader_epoch, now, target)
    return Step(state, cast(Validated, after))


@states("BAT-23")
def taken(
    batch: Batch, initial_offset: int, timestamp_type: str, partition_leader_epoch: int, now: int, target: int
) -> dict[str, Json]:
    """What the leader writes of a batch that it does not refuse."""
    create_time = timestamp_type == "CreateTime"
    if in_place(batch, target):
        largest = max([NO_TIMESTAMP, *(r.timestamp for r in timed(batch))]) if create_time else now
        after = replace(
            batch,
            base_offset=initial_offset + len(batch.records) - 1 - batch.last_offset_delta,
            leader_epoch=partition_leader_epoch,
            max_timestamp=largest,
            attributes=batch.attributes & ~LOG_APPEND_TIME | TIMESTAMP_TYPES[timestamp_type],
        )
    else:
        after = built(
            initial_offset,
            [r._replace(offset=initial_offset + n) for n, r in enumerate(timed(batch))],
            attributes=target | TIMESTAMP_TYPES[timestamp_type] | batch.attributes & TRANSACTIONAL,
            leader_epoch=partition_leader_epoch,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            append_time=now,
        )
    return Fields(
        logAppendTimeMs=now,
        maxTimestampMs=after.max_timestamp,
        messageSizeMaybeChanged=not in_place(batch, target),
        batches=[shown(after, len(encode(after)))],
    )


# ---- what engines try ------------------------------------------------------------------------------------------------
NOW = 1_700_000_000_000
ABORT, COMMIT = struct.pack(">hh", 0, 0), struct.pack(">hh", 0, 1)
