"""Batches of message formats 0, 1 and 2, as a leader gets them: found in their bytes, and read.

Source: ByteBufferLogInputStream, DefaultRecordBatch and AbstractLegacyRecordBatch, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafkaspec.contract.clauses import states
from kafkaspec.spec.common import legacy_format as legacy
from kafkaspec.spec.common import record_format as fmt
from kafkaspec.spec.common import record_reader as reader
from kafkaspec.spec.common.compression import CODECS, NotDecompressed, TooMuch, decompress
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT
from kafkaspec.spec.common.record_reader import CORRUPT, Denied
from kafkaspec.spec.common.remembered import remembered_within

NONE = legacy.NONE


@dataclass(frozen=True)
class Source:
    """A batch as it came. Of format 2 `header` is what its header says; of the others `message` is the batch."""

    data: bytes
    magic: int
    codec: int
    log_append_time: bool
    """whether its records have LogAppendTime"""
    header: fmt.Batch | None = None
    count: int = 0
    message: legacy.Message | None = None

    def __hash__(self) -> int:
        """Of the bytes, which say all of it: they keep their hash."""
        return hash(self.data)

    @property
    def control(self) -> bool:
        return self.header is not None and self.header.control

    @property
    def transactional(self) -> bool:
        return self.header is not None and self.header.transactional

    @property
    def producer_id(self) -> int:
        return fmt.NO_PRODUCER if self.header is None else self.header.producer_id


class AnyRecord(NamedTuple):
    """A record as the validator gets it. `size`, bytes; `message`: the one that it is, in format 0 or 1."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[fmt.Header, ...]
    size: int
    message: legacy.Message | None


def source(data: bytes) -> Source:
    """A batch, by its bytes. Raises Denied, legacy.Unsized."""
    if data[legacy.MAGIC_AT] == fmt.MAGIC:
        header, count = fmt.header_of(data)
        batch = Source(data, fmt.MAGIC, header.codec, header.log_append_time, header=header, count=count)
    else:
        m = legacy.message(data)
        batch = Source(data, m.magic, m.codec, m.log_append_time, message=m)
    if batch.codec not in CODECS:
        raise Denied("BAT-4", ILLEGAL_ARGUMENT)
    return batch


@states("BAT-1", "BAT-2")
def framed(data: bytes) -> Iterator[bytes]:
    """The batches behind each other, of any format; one that is cut ends them. Raises Denied."""
    while len(data) >= fmt.LOG_OVERHEAD:
        length = fmt.field_of(data, "length")
        if length < legacy.LEAST:
            raise Denied("BAT-1", CORRUPT)
        if len(data) < fmt.MAGIC_END:
            return
        if fmt.field_of(data, "magic") not in (0, 1, fmt.MAGIC):
            raise Denied("BAT-2", CORRUPT)
        size = fmt.LOG_OVERHEAD + length
        if size > len(data):
            return
        yield data[:size]
        data = data[size:]


def _size_of(data: bytes, answer: Any) -> int:
    return len(data)


@remembered_within(_size_of)
def sources(data: bytes) -> tuple[Source, ...]:
    """Raises Denied, legacy.Unsized."""
    return tuple(source(one) for one in framed(data))


def sizes(plain: bytes, count: int) -> Iterator[int]:
    """Bytes of each record of format 2, its length in the shortest form."""
    at = 0
    for _ in range(count):
        length, at = fmt.varint(plain, at, len(plain))
        yield len(fmt.varint_bytes(length)) + length
        at += length


def _size_of_records(s: Source, records: tuple[AnyRecord, ...] | None) -> int:
    return len(s.data) + _contents_size((r.key, r.value) for r in records or ())


def _contents_size(contents: Iterable[tuple[bytes | None, bytes | None]]) -> int:
    """Bytes of keys and values, and eight of each record."""
    return sum(8 + len(key or b"") + len(value or b"") for key, value in contents)


@remembered_within(_size_of_records)
def records_of(s: Source) -> tuple[AnyRecord, ...]:
    """The records of a batch, as a reader gets them. Raises Denied, legacy.Unsized, NotDecompressed."""
    if s.header is not None:
        batch = reader.leniently(s.data)
        plain = s.data[fmt.OVERHEAD :]
        if s.codec and batch.records:
            plain = decompress(s.codec, plain)
        found = zip(fmt.log_records(batch), sizes(plain, len(batch.records)), strict=True)
        return tuple(AnyRecord(*r, size, None) for r, size in found)
    assert s.message is not None
    inside = [s.message] if s.codec == NONE else legacy.inner(s.message)
    return tuple(AnyRecord(m.offset, m.timestamp, m.key, m.value, (), len(m.data), m) for m in inside)


# ---- what is promised of them ----------------------------------------------------------------------------------------
def is_timely(time: int) -> bool:
    """Whether there is room for its difference from another."""
    return -(2**62) <= time < 2**62


@remembered_within(_size_of)
def outside(data: bytes) -> str:
    """Why nothing is promised of these bytes; empty if something is."""
    try:
        for one in framed(data):
            if one[legacy.MAGIC_AT] == fmt.MAGIC and len(one) < fmt.OVERHEAD:
                return "a header that is cut"
            s = source(one)
            if s.header is not None and not is_timely(s.header.max_timestamp):
                return "a largest timestamp"
            try:
                records = records_of(s)
            except Denied as e:
                if s.header is not None and s.codec and e.refused.clause != "BAT-6":
                    return "compressed records that are malformed"
                continue
            if not all(is_timely(r.timestamp) for r in records):
                return "a timestamp"
            if s.header is not None and not reader.is_text(reader.leniently(s.data)):
                return "a header's key"
            if any(r.message is not None and r.message.magic not in (0, 1) for r in records):
                return "a message's magic"
    except Denied:
        return ""
    except (legacy.Unsized, NotDecompressed, TooMuch, reader.Unaffordable) as e:
        return str(e) or "unread"
    return ""


def tail_of(data: bytes) -> bytes:
    """What is behind the last whole batch. Raises Denied, legacy.Unsized."""
    return data[sum(len(s.data) for s in sources(data)) :]


def offsets_of(data: bytes) -> list[int]:
    """Of all records, as a reader gets them."""
    return [r.offset for s in sources(data) for r in records_of(s)]


def _size_of_contents(data: bytes, found: list[tuple[bytes | None, bytes | None]] | None) -> int:
    return len(data) + _contents_size(found or ())


@remembered_within(_size_of_contents)
def contents_of(data: bytes) -> list[tuple[bytes | None, bytes | None]]:
    return [(r.key, r.value) for s in sources(data) for r in records_of(s)]


def has_deltas_of_their_places(data: bytes) -> bool:
    """Whether the records of format 2 have the offset deltas 0, 1, 2, ..., up to the batch's last."""
    return all(
        s.header.last_offset_delta == len(records_of(s)) - 1
        and all(r.offset == s.header.base_offset + n for n, r in enumerate(records_of(s)))
        for s in sources(data)
        if s.header is not None
    )
