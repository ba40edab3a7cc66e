"""Message formats 0 and 1: messages, and compressed sets of them, as bytes.

A message is a batch of one record. A compressed set is a message too, the *wrapper*, whose value is a set of messages,
compressed. 4.x writes neither; it still reads them, and its leader takes them from old clients. The clauses are those
of the validator, `spec.storage.validator`, which asks these functions.

Source: LegacyRecord and AbstractLegacyRecordBatch, Kafka 4.3.0; KIP-31 and KIP-32.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafkaspec.contract.clauses import A_FORMAT, states
from kafkaspec.spec.common import record_format as fmt
from kafkaspec.spec.common.compression import CODEC_IDS, decompress
from kafkaspec.spec.common.kafka import NO_TIMESTAMP
from kafkaspec.spec.common.record_reader import CORRUPT, INVALID, Denied

MESSAGE = "LegacyRecord, Kafka 4.3.0"
SET = "AbstractLegacyRecordBatch, Kafka 4.3.0"

NONE, LZ4, ZSTD = CODEC_IDS["none"], CODEC_IDS["lz4"], CODEC_IDS["zstd"]
OVERHEAD = (fmt.LOG_OVERHEAD + 14, fmt.LOG_OVERHEAD + 22)
"""Bytes of a message without key and value, by its format."""
LEAST = 14
"""Bytes of the smallest message behind its offset and its size."""
CRC_AT, MAGIC_AT, ATTRIBUTES_AT, TIMESTAMP_AT = 12, 16, 17, 18
LZ4_FLAGS, LZ4_CHECKSUM = b"\x60\x40", b"\x82"
"""Of a frame of independent blocks of 64 KiB: its flags, and the checksum of its header."""


class Message(NamedTuple):
    """A message. `timestamp` ms, NO_TIMESTAMP in format 0; `crc` as it stands there."""

    offset: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    data: bytes
    """all its bytes"""

    @property
    def codec(self) -> int:
        return self.attributes & fmt.CODEC_MASK

    @property
    def log_append_time(self) -> bool:
        return self.magic == 1 and bool(self.attributes & fmt.LOG_APPEND_TIME)


class Unsized(ValueError):
    """A message whose sizes do not fit into it."""


@states(without=A_FORMAT)
def message(data: bytes) -> Message:
    """The message that `data` is, whole. Raises Unsized.

    VAL-1: A message of format 0 or 1 is an offset, 64 bits, a size, 32 bits, a CRC-32 of all that follows it, the magic
    byte, attributes, a byte, in format 1 a timestamp, 64 bits, and a key and a value, each its size, 32 bits, and as
    many bytes; a negative size is null. Bits 0 to 2 of the attributes are the codec, in format 1 bit 3 is
    LogAppendTime. A message of format 0 has no timestamp, which reads as -1. [{MESSAGE}; KIP-32]
    """
    magic, attributes = data[MAGIC_AT], data[ATTRIBUTES_AT]
    at = TIMESTAMP_AT
    time = NO_TIMESTAMP
    if magic == 1:
        if len(data) < OVERHEAD[1]:
            raise Unsized("a message of format 1 that is too short")
        (time,) = struct.unpack_from(">q", data, at)
        at += 8
    parts: list[bytes | None] = []
    for _ in range(2):
        if at + 4 > len(data):
            raise Unsized("no size of a value")
        (size,) = struct.unpack_from(">i", data, at)
        at += 4
        if at + size > len(data):
            raise Unsized(f"{size} bytes of a key or a value")
        parts.append(None if size < 0 else data[at : at + size])
        at += max(size, 0)
    if at != len(data):
        raise Unsized(f"{len(data) - at} bytes behind the value")
    (offset,) = struct.unpack_from(">q", data)
    return Message(
        offset, int.from_bytes(data[CRC_AT:MAGIC_AT], "big"), magic, attributes, time, parts[0], parts[1], data
    )


@states("VAL-1")
def crc_of(data: bytes) -> int:
    """The CRC that a message's bytes have."""
    return zlib.crc32(data[MAGIC_AT:])


@states("VAL-1")
def sealed(data: bytes) -> bytes:
    """With the CRC that its bytes have."""
    return data[:CRC_AT] + crc_of(data).to_bytes(4, "big") + data[MAGIC_AT:]


@states("VAL-1")
def message_bytes(
    offset: int, magic: int, timestamp: int, key: bytes | None, value: bytes | None, attributes: int = 0
) -> bytes:
    """A message, with its right CRC."""
    body = struct.pack(">bB", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def unpacked(codec: int, magic: int, data: bytes) -> bytes:
    """What a wrapper's value decompresses to. In format 0 the checksum of an LZ4 frame's header is wrong, and not
    looked at (KAFKA-3160). Raises NotDecompressed."""
    if codec == LZ4 and magic == 0 and data[4:6] == LZ4_FLAGS:
        data = data[:6] + LZ4_CHECKSUM + data[7:]
    return decompress(codec, data)


def messages(data: bytes) -> Iterator[Message]:
    """The messages behind each other; one that is cut ends them. Raises Denied for a size below the least, Unsized."""
    while len(data) >= fmt.LOG_OVERHEAD:
        size = fmt.field_of(data, "length")
        if size < LEAST:
            raise Denied("VAL-2", CORRUPT)
        if fmt.LOG_OVERHEAD + size > len(data):
            return
        yield message(data[: fmt.LOG_OVERHEAD + size])
        data = data[fmt.LOG_OVERHEAD + size :]


@states(without=A_FORMAT)
def inner(wrapper: Message) -> Sequence[Message]:
    """The messages of a compressed set, at their offsets and with the timestamps that a reader sees. Raises Denied,
    Unsized, NotDecompressed.

    VAL-2: A compressed set of format 0 or 1 is a message without key whose value is messages, compressed together by
    gzip, snappy or lz4; what is cut at its end is left out. It is refused if the codec is zstd, the value is null, or
    there is no message in it; and with CorruptRecordException if one is smaller than a message can be. In format 0 they
    have their offsets. In format 1 the wrapper has the offset of its last message, and the offsets inside are relative:
    the last one is what the wrapper's stands for, unless that is 0, which some clients send, and then they are as they
    stand; a wrapper's offset below that of its last message, and not 0, is refused. [{SET}; KIP-31]

    VAL-3: The timestamps in a compressed set of format 1 are the messages' own, unless the wrapper has LogAppendTime:
    then its timestamp is that of all. The type is the wrapper's; what the messages say of it is not looked at. [{SET};
    KIP-32]
    """
    if wrapper.codec == ZSTD or wrapper.value is None:
        raise Denied("VAL-2", INVALID)
    found = list(messages(unpacked(wrapper.codec, wrapper.magic, wrapper.value)))
    if not found:
        raise Denied("VAL-2", INVALID, "Found invalid compressed record set with no inner records")
    if wrapper.magic == 0:
        return found
    last = found[-1].offset
    if wrapper.offset != 0 and wrapper.offset < last:
        raise Denied("VAL-2", INVALID)
    base = wrapper.offset - last if wrapper.offset else 0
    appended = wrapper.log_append_time
    return [
        m._replace(
            offset=fmt.signed(base + m.offset, 64),
            timestamp=wrapper.timestamp if appended and m.magic == 1 else m.timestamp,
        )
        for m in found
    ]
