"""A record batch of message format 2: the bytes that producers send, brokers store and replicas copy.

Everything in Kafka stands on this one layout: a header of 61 bytes with a checksum, and records of varints behind it,
compressed as a whole or not at all. Decoding says what is wrong and at which byte; encoding makes Kafka's own bytes.
The last operations are the leader's: what it refuses of a producer's batch, and what it writes into it.

Source: Kafka Internals, ch. 03, "Record batch format v2"; DefaultRecordBatch, DefaultRecord, MemoryRecordsBuilder,
MemoryRecords, ByteUtils, ControlRecordType and LogValidator, Kafka 4.3.0.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, NoReturn

from crc32c import crc32c

from kafkaspec.clauses import clause
from kafkaspec.spec.storage.compression import CODECS, LIMIT, NotDecompressed, TooMuch, compress, decompress

PREFIX = "BAT"
TITLE = "Record batch"

CHAPTER = "Kafka Internals, ch. 03, 'Record batch format v2'"
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
    spec.storage.compression says. Here to a bounded size, beyond which a batch is not judged; Kafka has no bound.""",
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
    anew from those that are left, and keeps it where none is. With LogAppendTime it is the time of the append, for
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
    sequence follows from the last offset delta, so that compaction does not change it. With base sequence -1 there is
    none.""",
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
    source=f"Kafka Internals, ch. 03, 'Append path'; {VALIDATOR}",
    without=OF_THE_LEADER,
)
BAT_21 = clause(
    "BAT-21",
    "For a compacted topic every record has a key, or the whole batch is refused.",
    source=VALIDATOR,
    without=OF_THE_LEADER,
)
BAT_22 = clause(
    "BAT-22",
    """For a topic of CreateTime a record's timestamp is -1, or at most before.max.ms before and after.max.ms after now;
    else the whole batch is refused. So it is if the producer set LogAppendTime, but for a topic of CreateTime and a
    timestamp that is not -1. Where one record lacks a key and another's timestamp is wrong, that is the error.""",
    source=VALIDATOR,
    without=OF_THE_LEADER,
)
BAT_23 = clause(
    "BAT-23",
    """The leader gives consecutive offsets from its log end on, its leader epoch, its topic's timestamp type and the
    largest timestamp. It does so in the header of the bytes that came if codec and topic's codec are one and, of
    compressed records, the offset deltas are 0, 1, 2, ...; otherwise it writes the batch anew in the topic's codec,
    with producer and transactional flag kept.""",
    source=VALIDATOR,
    without=OF_THE_LEADER,
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
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
KAFKA_EXCEPTION = "org.apache.kafka.common.KafkaException"
UNSUPPORTED = "java.lang.UnsupportedOperationException"
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


def unzigzag(n: int) -> int:
    """0, -1, 1, -2, ... of 0, 1, 2, 3, ..."""
    return (n >> 1) ^ -(n & 1)


def varint(data: bytes, at: int, end: int, bits: int = 32) -> tuple[int, int]:
    """The number at a byte, and the byte behind it (BAT-12). ValueError if it is not over before `end`, or too long."""
    raw = shift = 0
    for place in range(at, min(end, at + (5 if bits == 32 else 10))):
        raw |= (data[place] & 0x7F) << shift
        if data[place] < 0x80:
            return unzigzag(raw & ((1 << bits) - 1)), place + 1
        shift += 7
    raise ValueError("a varint that does not end")


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
    def delete_horizon(self) -> int | None:
        """ms; None without the flag (BAT-15)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        return self.sequence(self.last_offset_delta)

    def offset(self, record: Record) -> int:
        """BAT-14."""
        return signed(self.base_offset + record.offset_delta, 64)

    def timestamp(self, record: Record) -> int:
        """ms (BAT-14)."""
        return self.max_timestamp if self.log_append_time else signed(self.base_timestamp + record.timestamp_delta, 64)

    def sequence(self, offset_delta: int) -> int:
        """BAT-16."""
        if self.base_sequence == NO_SEQUENCE:
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


def marker(record: Record) -> Marker:
    """Of a control record (BAT-11). ValueError if it is malformed."""
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


def _record(data: bytes, at: int) -> tuple[Record, int, int]:
    """The record at a byte, the byte behind it and that of its offset delta. ValueError for one that breaks BAT-8 or
    BAT-12."""
    if at == len(data):
        raise ValueError("the records end before it")
    length, at = varint(data, at, len(data))
    if not 1 <= length <= len(data) - at:
        raise ValueError(f"length {length}, where {len(data) - at} bytes follow")
    end = at + length

    def sized(at: int, what: str, least: int = -1) -> tuple[bytes | None, int]:
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
def record_bytes(record: Record) -> bytes:
    """BAT-8, with varints in their shortest form."""

    def sized(content: bytes | None) -> bytes:
        return varint_bytes(-1) if content is None else varint_bytes(len(content)) + content

    body = bytes([record.attributes]) + varint_bytes(record.timestamp_delta, 64) + varint_bytes(record.offset_delta)
    body += sized(record.key) + sized(record.value) + varint_bytes(len(record.headers))
    body += b"".join(sized(h.key) + sized(h.value) for h in record.headers)
    return varint_bytes(len(body)) + body


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


def sealed(data: bytes | bytearray) -> bytes:
    """With the CRC that its bytes have (BAT-3)."""
    return bytes(data[:CRC_AT]) + crc32c(bytes(data[ATTRIBUTES_AT:])).to_bytes(4, "big") + bytes(data[ATTRIBUTES_AT:])


class Timed(NamedTuple):
    """A record before it has its place in a batch."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


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
    """The batch that Kafka's writer makes of these records (BAT-18), one at least. `append_time` matters with
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


def emptied(batch: Batch) -> Batch:
    """What the cleaner keeps of a batch without records (BAT-17)."""
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
