"""Record batches as bytes, for general use: `Batch`, `Encoder`, and the leader's changes to a header in place.

A batch stays the bytes it came in; fields are unpacked at once, records when they are asked for. The encoder writes
what MemoryRecordsBuilder writes, byte for byte where nothing is compressed. For whole segments there is `scan`, for
many records at once `writer`: compiled, and checked against the same spec.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from crc32c import crc32c

from kafkaspec.contract.codec import view
from kafkaspec.spec.common import record_format as fmt
from kafkaspec.spec.common.compression import CODEC_IDS, CODECS, LIMIT, NotDecompressed, TooMuch, compress, decompress
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, KAFKA_EXCEPTION, NULL_POINTER
from kafkaspec.spec.common.leader_rules import INVALID_TIMESTAMP, VALIDATION
from kafkaspec.spec.common.record_format import Legacy, Malformed, Unread
from kafkaspec.spec.common.record_reader import CORRUPT, INVALID, UNDERFLOW, ReadBatch, ReadRecord

__all__ = ["Batch", "Encoder", "Legacy", "Malformed", "Record", "Unread"]

LEADING = struct.Struct(">qiibI")
"""Base offset, length, leader epoch, magic, CRC."""
COVERED = struct.Struct(">hiqqqhii")
"""What the CRC covers of the header."""
COVERED_FIELDS = (
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "count",
)
LENGTH_AT, EPOCH_AT, MAGIC_AT, CRC_AT = 8, 12, 16, 17
ATTRIBUTES_AT, LAST_DELTA_AT, MAX_TIMESTAMP_AT, COUNT_AT = 21, 23, 35, 57
LOG_OVERHEAD, OVERHEAD = 12, 61
"""Bytes before those that the length counts; bytes of the header."""
LEAST_LENGTH = OVERHEAD - LOG_OVERHEAD
LEAST_FRAMED = 26
"""Bytes of the smallest message of format 0, offset and length included."""
MAGIC = 2
CODEC_MASK, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 7, 8, 16, 32, 64
HIGHEST_CODEC, USED = 4, 127
"""Of the attributes: the codecs end here; the bits that have a meaning."""
CONTROL_KEY = struct.Struct(">hh")
END_MARKER = struct.Struct(">hi")
NULL = b"\x01"
INT_BITS = 32
INT_VARINT, LONG_VARINT = 5, 10
"""Bytes of the longest varint."""
INT_MASK, LONG_MASK = 2**32 - 1, 2**64 - 1
LARGEST_SEQUENCE = 2**31 - 1
TYPES = {"CreateTime": 0, "LogAppendTime": LOG_APPEND_TIME}

Headers = Sequence[tuple[bytes, bytes | None]]


class Record(NamedTuple):
    """A record as a reader gets it: its own offset, timestamp (ms) and sequence (-1: none)."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    sequence: int = -1
    timestamp_delta: int = 0
    attributes: int = 0


# ---- varints ---------------------------------------------------------------------------------------------------------
def put_varint(out: bytearray, n: int) -> None:
    """The shortest form, at the end of `out`; of a number of 32 or 64 bits. [BAT-12]"""
    n = (n << 1) ^ (n >> 63)
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)


def get_varint(data: bytes, at: int, end: int, most: int = INT_VARINT) -> tuple[int, int]:
    """The number at a byte and the byte behind it, of `most` bytes. IndexError if it does not end in time. [BAT-12]"""
    if at < end and (byte := data[at]) < 128:
        return (byte >> 1) ^ -(byte & 1), at + 1
    stop = min(end, at + most)
    n = shift = 0
    while at < stop:
        byte = data[at]
        at += 1
        n |= (byte & 127) << shift
        if byte < 128:
            n &= INT_MASK if most == INT_VARINT else LONG_MASK
            return (n >> 1) ^ -(n & 1), at
        shift += 7
    raise IndexError("a varint that does not end")


def wrapped(n: int) -> int:
    """As 64 bits hold it."""
    return ((n + (1 << 63)) & LONG_MASK) - (1 << 63)


# ---- reading ---------------------------------------------------------------------------------------------------------
class Batch:
    """One batch of format 2, checked up to its header's fields; `records()` checks the rest."""

    __slots__ = (*COVERED_FIELDS, "base_offset", "crc", "data", "leader_epoch", "magic", "position")

    attributes: int
    base_offset: int
    base_sequence: int
    base_timestamp: int
    count: int
    crc: int
    last_offset_delta: int
    leader_epoch: int
    magic: int
    max_timestamp: int
    producer_epoch: int
    producer_id: int

    def __init__(self, data: bytes, position: int = 0) -> None:
        """`data` is the batch, whole; `position` of its first byte is for what is said. Raises Malformed.
        [BAT-1, BAT-2, BAT-3, BAT-4, BAT-5, BAT-6, BAT-13]"""
        self.data, self.position = data, position
        size = len(data)
        if size <= MAGIC_AT:
            raise Malformed("BAT-1", position, f"{size} bytes, fewer than the {MAGIC_AT + 1} up to the magic byte")
        if data[MAGIC_AT] < MAGIC:
            why = f"a message set of format {data[MAGIC_AT]}: not decoded"
            raise Legacy("BAT-2", position + MAGIC_AT, why)
        length = int.from_bytes(data[LENGTH_AT:EPOCH_AT], "big", signed=True)
        if length < LEAST_LENGTH or length + LOG_OVERHEAD != size:
            why = f"length {length}, where {size - LOG_OVERHEAD} bytes follow, {LEAST_LENGTH} at least"
            raise Malformed("BAT-1", position + LENGTH_AT, why)
        self.unpack()
        if self.magic != MAGIC:
            raise Malformed("BAT-2", position + MAGIC_AT, f"magic {self.magic}")
        right = crc32c(memoryview(data)[ATTRIBUTES_AT:])
        if self.crc != right:
            raise Malformed("BAT-3", position + CRC_AT, f"CRC {self.crc:#010x}, where the bytes have {right:#010x}")
        if not 0 <= self.attributes <= USED or self.attributes & CODEC_MASK > HIGHEST_CODEC:
            raise Malformed("BAT-4", position + ATTRIBUTES_AT, f"attributes {self.attributes & 0xFFFF:#06x}")
        if self.last_offset_delta < 0:
            raise Malformed("BAT-5", position + LAST_DELTA_AT, f"last offset delta {self.last_offset_delta}")
        if self.count < 0:
            raise Malformed("BAT-6", position + COUNT_AT, f"count {self.count}")

    def unpack(self) -> None:
        """Take the header's fields from the bytes."""
        self.base_offset, _, self.leader_epoch, self.magic, self.crc = LEADING.unpack_from(self.data)
        (
            self.attributes, self.last_offset_delta, self.base_timestamp, self.max_timestamp, self.producer_id,
            self.producer_epoch, self.base_sequence, self.count,
        ) = COVERED.unpack_from(self.data, ATTRIBUTES_AT)  # fmt: skip

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    @property
    def codec(self) -> str:
        return CODECS[self.attributes & CODEC_MASK].name

    @property
    def log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME != 0

    @property
    def timestamp_type(self) -> str:
        return "LogAppendTime" if self.log_append_time else "CreateTime"

    @property
    def transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def delete_horizon(self) -> int | None:
        """ms. [BAT-15]"""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def last_offset(self) -> int:
        """The last offset that the batch takes. [BAT-5]"""
        return wrapped(self.base_offset + self.last_offset_delta)

    @property
    def last_sequence(self) -> int:
        """That of the last offset. [BAT-16]"""
        return self.sequence(self.last_offset_delta)

    def sequence(self, offset_delta: int) -> int:
        """That of a record; -1 if the batch has none. [BAT-16]"""
        return -1 if self.base_sequence < 0 else (self.base_sequence + offset_delta) & LARGEST_SEQUENCE

    def section(self, limit: int = LIMIT) -> tuple[bytes, bool]:
        """The records' bytes, and whether they were compressed. Raises Malformed, Unread beyond the limit. [BAT-7]"""
        data, codec = self.data[OVERHEAD:], self.attributes & CODEC_MASK
        if codec == 0 or (self.count == 0 and not data):
            return data, False
        try:
            return decompress(codec, data, limit), True
        except TooMuch as e:
            raise Unread("BAT-7", self.position + OVERHEAD, str(e)) from None
        except NotDecompressed as e:
            raise Malformed("BAT-7", self.position + OVERHEAD, f"{CODECS[codec].name}: {e}") from None

    def records(self, limit: int = LIMIT) -> Iterator[Record]:
        """The records, each checked as it comes, and behind the last one what is left. Raises Malformed.
        [BAT-6, BAT-8, BAT-9, BAT-10, BAT-13, BAT-14, BAT-16]"""
        data, packed = self.section(limit)
        first = self.position + OVERHEAD
        at, size, before, last = 0, len(data), -1, self.last_offset_delta
        base, base_time, appended, largest = self.base_offset, self.base_timestamp, self.log_append_time, -1
        for n in range(self.count):
            start = at
            try:
                length, at = get_varint(data, at, size)
                end = at + length
                if length < 1 or end > size:
                    raise IndexError(f"length {length}, where {size - at} bytes follow")
                attributes = data[at]
                time_delta, delta_at = get_varint(data, at + 1, end, LONG_VARINT)
                delta, at = get_varint(data, delta_at, end)
                key, at = _sized(data, at, end)
                value, at = _sized(data, at, end)
                headers, at = _headers(data, at, end)
                if at != end:
                    raise IndexError(f"{end - at} bytes behind its headers")
            except IndexError as e:
                raise self.inside("BAT-8", first, start, packed, f"record {n}: {e}") from None
            if not before < delta <= last:
                why = f"record {n}: offset delta {delta} after {before}, of {last} at most"
                raise self.inside("BAT-9", first, delta_at, packed, why)
            before = delta
            if n == 0 and self.control:
                try:
                    control(key, value)
                except ValueError as e:
                    raise self.inside("BAT-11", first, start, packed, str(e)) from None
            time = self.max_timestamp if appended else wrapped(base_time + time_delta)
            largest = max(largest, time)
            sequence = self.sequence(delta)
            yield Record(wrapped(base + delta), time, key, value, headers, sequence, time_delta, attributes)
        if at != size:
            raise self.inside("BAT-6", first, at, packed, f"{size - at} bytes behind the last of {self.count} records")
        if self.count and not appended and largest != self.max_timestamp:
            why = f"largest timestamp {self.max_timestamp}, where the records have {largest}"
            raise Malformed("BAT-10", self.position + MAX_TIMESTAMP_AT, why)

    def inside(self, clause: str, first: int, at: int, packed: bool, why: str) -> Malformed:
        """Of compressed records the first byte is named. [BAT-13]"""
        return Malformed(clause, first if packed else first + at, f"{why}, byte {at} of the records" if packed else why)

    def described(self, records: Sequence[Record]) -> fmt.DecodedBatch:
        """All fields, and what follows from them."""
        said = control(records[0].key, records[0].value) if self.control and records else None

        def relative(r: Record) -> fmt.Record:
            headers = tuple(fmt.Header(*h) for h in r.headers)
            return view(fmt.Record, r, offset_delta=wrapped(r.offset - self.base_offset), headers=headers)

        return view(
            fmt.DecodedBatch,
            self,
            records=tuple(map(relative, records)),
            offsets=tuple(r.offset for r in records),
            timestamps=tuple(r.timestamp for r in records),
            sequences=tuple(r.sequence for r in records),
            control=said and (said.name, said.version, said.coordinator_epoch, said.value_version),
        )


class Control(NamedTuple):
    """What a control record says."""

    name: str
    version: int
    type: int
    coordinator_epoch: int | None = None
    value_version: int | None = None


def control(key: bytes | None, value: bytes | None) -> Control:
    """Of a control record's key and value. ValueError if they are malformed. [BAT-11]"""
    if key is None or len(key) < CONTROL_KEY.size:
        raise ValueError("a control record's key is 4 bytes or more")
    version, kind = CONTROL_KEY.unpack_from(key)
    if version < 0:
        raise ValueError(f"a control record's key of version {version}")
    name = fmt.CONTROL_TYPES[kind] if 0 <= kind < len(fmt.CONTROL_TYPES) else "UNKNOWN"
    if kind not in (0, 1):
        value_version = int.from_bytes(value[:2], "big", signed=True) if value and len(value) > 1 else None
        return Control(name, version, kind, None, value_version)
    if value is None or len(value) < END_MARKER.size:
        raise ValueError("the value of an abort or a commit is 6 bytes or more")
    value_version, epoch = END_MARKER.unpack_from(value)
    if value_version < 0:
        raise ValueError(f"an abort or a commit of version {value_version}")
    return Control(name, version, kind, epoch, value_version)


def _sized(data: bytes, at: int, end: int, least: int = -1) -> tuple[bytes | None, int]:
    size, at = get_varint(data, at, end)
    if size < 0:
        if size < least:
            raise IndexError(f"{size} bytes of a key, a value or a header")
        return None, at
    if at + size > end:
        raise IndexError(f"{size} bytes of a key, a value or a header, where {end - at} follow")
    return data[at : at + size], at + size


def _headers(data: bytes, at: int, end: int, null: int = -1) -> tuple[Headers, int]:
    count, at = get_varint(data, at, end)
    if count == 0:
        return (), at
    if count < 0:
        raise IndexError(f"{count} headers")
    out = []
    for _ in range(count):
        name, at = _sized(data, at, end, 0)
        value, at = _sized(data, at, end, null)
        assert name is not None
        out.append((name, value))
    return out, at


class InvalidRecords(ValueError):
    """What Kafka's reader, or the leader, refuses; `clause` says why, `error` is Kafka's exception class."""

    def __init__(self, clause: str, error: str, words: str | None = None) -> None:
        super().__init__(words or clause)
        self.clause, self.error, self.words = clause, error, words


def framed(data: bytes) -> Iterator[bytes]:
    """The batches in memory, CRCs compared, as Kafka finds them; one that is cut ends them. Raises InvalidRecords.
    [BAT-1, BAT-2, BAT-3]"""
    while len(data) >= LOG_OVERHEAD:
        size = LOG_OVERHEAD + int.from_bytes(data[LENGTH_AT:EPOCH_AT], "big", signed=True)
        if size < LEAST_FRAMED:
            raise InvalidRecords("BAT-1", CORRUPT)
        if len(data) <= MAGIC_AT:
            return
        magic = data[MAGIC_AT]
        if magic > MAGIC or (magic < MAGIC and size <= len(data)):
            raise InvalidRecords("BAT-2", CORRUPT)
        if size > len(data):
            return
        if size < OVERHEAD:
            raise InvalidRecords("BAT-1", CORRUPT)
        stored = int.from_bytes(data[CRC_AT:ATTRIBUTES_AT], "big")
        right = crc32c(memoryview(data)[ATTRIBUTES_AT:size])
        if stored != right:
            words = f"Record is corrupt (stored crc = {stored}, computed crc = {right})"
            raise InvalidRecords("BAT-3", CORRUPT, words)
        yield data[:size]
        data = data[size:]


class Lenient(Batch):
    """A framed batch, with as few questions as Kafka's reader asks. Raises InvalidRecords."""

    __slots__ = ()
    null = -(2**31)

    def __init__(self, data: bytes) -> None:
        """Only the codec is asked for. Raises InvalidRecords. [BAT-4]"""
        self.data, self.position = data, 0
        self.unpack()
        if self.attributes & CODEC_MASK not in CODECS:
            raise InvalidRecords("BAT-4", ILLEGAL_ARGUMENT)

    def records(self, limit: int = LIMIT) -> Iterator[Record]:
        """The records, in as many bytes as they say. Raises InvalidRecords. [BAT-6, BAT-7, BAT-8, BAT-12]"""
        if self.count == 0:
            return
        try:
            data, packed = self.section(limit)
        except Malformed:
            raise InvalidRecords("BAT-7", KAFKA_EXCEPTION) from None
        if self.count < 0:
            raise InvalidRecords("BAT-6", INVALID)
        at, size = 0, len(data)
        for _ in range(self.count):
            start = at
            try:
                length, at = get_varint(data, at, size)
            except IndexError:
                if size - start < INT_VARINT:
                    raise InvalidRecords("BAT-8", INVALID) from None
                raise InvalidRecords("BAT-12", INVALID if packed else ILLEGAL_ARGUMENT) from None
            try:
                record, after = self._record(data, at, at + length)
            except IndexError:
                raise InvalidRecords("BAT-8", INVALID) from None
            at += length
            if after != at or at > size:
                raise InvalidRecords("BAT-8", INVALID)
            yield record
        if at != size:
            raise InvalidRecords("BAT-6", INVALID)

    def _record(self, data: bytes, at: int, end: int) -> tuple[Record, int]:
        """The record that ends at a byte, and the byte behind it. Raises IndexError. [BAT-8, BAT-14, BAT-16]"""
        end = min(end, len(data))
        if at >= end:
            raise IndexError("no attributes")
        attributes = data[at]
        time_delta, at = get_varint(data, at + 1, end, LONG_VARINT)
        delta, at = get_varint(data, at, end)
        key, at = _sized(data, at, end, self.null)
        value, at = _sized(data, at, end, self.null)
        headers, at = _headers(data, at, end, self.null)
        time = self.max_timestamp if self.log_append_time else wrapped(self.base_timestamp + time_delta)
        sequence = self.sequence(delta)
        record = Record(wrapped(self.base_offset + delta), time, key, value, headers, sequence, time_delta, attributes)
        return record, at

    def marker(self, first: Record) -> tuple[str, int | None]:
        """Of the first record. [BAT-11]"""
        if first.key is None:
            raise InvalidRecords("BAT-11", NULL_POINTER)
        if len(first.key) >= CONTROL_KEY.size and first.key[0] < 128 and int.from_bytes(first.key[2:4], "big") < 2:
            if first.value is None:
                raise InvalidRecords("BAT-11", NULL_POINTER)
            if len(first.value) < 2 or (len(first.value) < END_MARKER.size and first.value[0] < 128):
                raise InvalidRecords("BAT-11", UNDERFLOW)
        try:
            said = control(first.key, first.value)
        except ValueError:
            raise InvalidRecords("BAT-11", INVALID) from None
        return said.name, said.coordinator_epoch

    def shown(self) -> ReadBatch:
        """What a reader shows of it."""
        records = list(self.records())
        return view(
            ReadBatch,
            self,
            compression=self.codec,
            count=len(records),
            records=tuple(view(ReadRecord, r, headers=_named(r.headers)) for r in records),
            marker=self.marker(records[0]) if self.control and records else None,
        )


def _named(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((key.decode("utf-8", "replace"), value) for key, value in headers)


# ---- writing ---------------------------------------------------------------------------------------------------------
def put_record(
    out: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Headers = (),
    attributes: int = 0,
) -> None:
    """One record at the end of `out`. [BAT-8, BAT-19]"""
    body = bytearray((attributes,))
    put_varint(body, timestamp_delta)
    put_varint(body, offset_delta)
    for content in (key, value):
        if content is None:
            body += NULL
        else:
            put_varint(body, len(content))
            body += content
    put_varint(body, len(headers))
    for name, content in headers:
        put_varint(body, len(name))
        body += name
        if content is None:
            body += NULL
        else:
            put_varint(body, len(content))
            body += content
    put_varint(out, len(body))
    out += body


class Encoder:
    """Builds one batch, a record at a time, as MemoryRecordsBuilder does. Raises ValueError for what that refuses.
    [BAT-18]"""

    def __init__(
        self,
        base_offset: int = 0,
        *,
        codec: str = "none",
        leader_epoch: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
        control: bool = False,
        append_time: int | None = None,
        delete_horizon: int | None = None,
        again: bool = False,
    ) -> None:
        """`append_time`: LogAppendTime, with this time for all, ms. `delete_horizon`: ms. `again`: of records that a
        leader took, with any timestamp."""
        if transactional and producer_id == -1:
            raise ValueError("a transactional batch without a producer id")
        if producer_id != -1 and producer_epoch == -1:
            raise ValueError("a producer id without an epoch")
        if producer_id != -1 and base_sequence < 0 and not control:
            raise ValueError("a producer id without a sequence")
        self.base_offset, self.leader_epoch, self.append_time = base_offset, leader_epoch, append_time
        self.producer = (producer_id, producer_epoch, base_sequence)
        self.codec = CODEC_IDS[codec]
        self.attributes = (
            self.codec
            | LOG_APPEND_TIME * (append_time is not None)
            | TRANSACTIONAL * transactional
            | CONTROL * control
            | DELETE_HORIZON * (delete_horizon is not None)
        )
        self.base_timestamp = delete_horizon
        self.again = again
        self.largest = -1
        self.last_offset: int | None = None
        self.count = 0
        self.section = bytearray()

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        offset: int | None = None,
    ) -> None:
        """One record, `timestamp` in ms, at an offset above the one before; at the next one if none is given.
        [BAT-9]"""
        if offset is None:
            offset = self.base_offset if self.last_offset is None else self.last_offset + 1
        if self.last_offset is not None and offset <= self.last_offset:
            raise ValueError(f"offset {offset} after {self.last_offset}")
        if timestamp < -1 and not self.again:
            raise ValueError(f"timestamp {timestamp}")
        if self.base_timestamp is None:
            self.base_timestamp = timestamp
        self.largest = max(self.largest, timestamp)
        put_record(self.section, offset - self.base_offset, timestamp - self.base_timestamp, key, value, headers)
        self.last_offset = offset
        self.count += 1

    def finish(self, last_offset: int | None = None) -> bytes:
        """The batch; b"" without records. `last_offset`: another than the last record's, after compaction. [BAT-10]"""
        if self.last_offset is None or self.base_timestamp is None:
            return b""
        last = self.last_offset if last_offset is None else last_offset
        largest = self.largest if self.append_time is None else self.append_time
        header = (self.attributes, last - self.base_offset, self.base_timestamp, largest, *self.producer, self.count)
        section = bytes(self.section) if self.codec == 0 else compress(self.codec, bytes(self.section))
        return assembled(self.base_offset, self.leader_epoch, COVERED.pack(*header) + section)


def covered(batch: Any, **other: int) -> bytes:
    """What the CRC covers of the header: a batch's fields, but for those given."""
    return COVERED.pack(*(other[f] if f in other else getattr(batch, f) for f in COVERED_FIELDS))


def assembled(base_offset: int, leader_epoch: int, content: bytes) -> bytes:
    """A batch of what its CRC covers. [BAT-1, BAT-3, BAT-19]"""
    length = ATTRIBUTES_AT - LOG_OVERHEAD + len(content)
    return LEADING.pack(base_offset, length, leader_epoch, MAGIC, crc32c(content)) + content


def empty(batch: Batch) -> bytes:
    """What the cleaner keeps of a batch without records. [BAT-17]"""
    attributes = batch.attributes & ~(CODEC_MASK | DELETE_HORIZON)
    header = covered(batch, attributes=attributes, base_timestamp=-1, count=0)
    return assembled(batch.base_offset, batch.leader_epoch, header)


def retain(batch: Batch, kept: frozenset[int], delete_horizon: int) -> bytes:
    """What the cleaner writes of a batch of which it keeps these records, by their numbers, and the batch in any case.
    `delete_horizon`, ms, is set if a tombstone is kept and there is none yet. [BAT-24]"""
    records = list(batch.records())
    left = [r for n, r in enumerate(records) if n in kept]
    if not left:
        return empty(batch)
    horizon = batch.delete_horizon
    if horizon is None and any(r.value is None for r in left):
        horizon = delete_horizon
    elif len(left) == len(records):
        return batch.data
    encoder = Encoder(
        batch.base_offset,
        codec=batch.codec,
        leader_epoch=batch.leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.transactional,
        control=batch.control,
        append_time=batch.max_timestamp if batch.log_append_time else None,
        delete_horizon=horizon,
        again=True,
    )
    for r in left:
        encoder.append(r.timestamp, r.key, r.value, r.headers, r.offset)
    return encoder.finish(batch.last_offset)


# ---- the leader ------------------------------------------------------------------------------------------------------
def stamp(data: bytes, base_offset: int, leader_epoch: int, append_time: bool, largest: int) -> bytes:
    """The header's fields that a leader sets, in place; the CRC only where bytes that it covers change. [BAT-23]"""
    out = bytearray(data)
    struct.pack_into(">q", out, 0, base_offset)
    struct.pack_into(">i", out, EPOCH_AT, leader_epoch)
    attributes, _, _, before = COVERED.unpack_from(data, ATTRIBUTES_AT)[:4]
    if (attributes & LOG_APPEND_TIME != 0) != append_time or before != largest:
        struct.pack_into(">h", out, ATTRIBUTES_AT, attributes & ~LOG_APPEND_TIME | LOG_APPEND_TIME * append_time)
        struct.pack_into(">q", out, MAX_TIMESTAMP_AT, largest)
        struct.pack_into(">I", out, CRC_AT, crc32c(memoryview(out)[ATTRIBUTES_AT:]))
    return bytes(out)


def assign(
    data: bytes,
    *,
    initial_offset: int,
    compacted_topic: bool,
    log_append_time: bool,
    timestamp_before_max_ms: int,
    timestamp_after_max_ms: int,
    partition_leader_epoch: int,
    now: int,
    target_compression: str,
    client: bool = True,
) -> tuple[bytes, bool]:
    """What a leader writes of a producer's batch, from `initial_offset` on, and whether it wrote the records again.
    Raises InvalidRecords, Malformed. [BAT-20, BAT-21, BAT-22, BAT-23]"""
    batch = Batch(data)
    if client and (
        batch.count == 0
        or batch.count != batch.last_offset_delta + 1
        or batch.control
        or (batch.producer_id > -1 and batch.base_sequence < 0)
    ):
        raise InvalidRecords("BAT-20", INVALID)
    target, largest = CODEC_IDS[target_compression], -1
    source = batch.attributes & CODEC_MASK
    keep = source == target or (source == 0 and batch.control)
    keyless: list[int] = []
    untimely = False
    records = []
    for n, r in enumerate(batch.records()):
        if compacted_topic and r.key is None:
            keyless.append(n)
        else:
            untimely |= batch.log_append_time
            if not log_append_time and r.timestamp != -1:
                age = wrapped(now - r.timestamp)
                untimely |= age > timestamp_before_max_ms or wrapped(-age) > timestamp_after_max_ms
        largest = max(largest, r.timestamp)
        keep = keep and (source == 0 or r.offset == n)
        records.append(r)
    if untimely:
        words = f"{INVALID_TIMESTAMP}: One or more records have been rejected due to invalid timestamp"
        raise InvalidRecords("BAT-22", VALIDATION, words)
    if keyless:
        raise InvalidRecords("BAT-21", VALIDATION, _keyless(keyless))
    if keep:
        base = initial_offset + len(records) - 1 - batch.last_offset_delta
        return stamp(data, base, partition_leader_epoch, log_append_time, now if log_append_time else largest), False
    encoder = Encoder(
        initial_offset,
        codec=target_compression,
        leader_epoch=partition_leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.transactional,
        append_time=now if log_append_time else None,
        again=True,
    )
    for r in records:
        encoder.append(r.timestamp, r.key, r.value, r.headers)
    return encoder.finish(), True


def _keyless(which: list[int]) -> str:
    text = "Compacted topic cannot accept message without key in topic partition t-0"
    three = ", ".join(f"RecordError(batchIndex={n}, message='{text}')" for n in which[:3])
    return (
        f"{INVALID}: One or more records have been rejected due to {len(which)} record errors in total, "
        f"and only showing the first three errors at most: [{three}]"
    )
