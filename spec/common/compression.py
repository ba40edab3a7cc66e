"""The codecs of record batches: none, gzip, snappy, lz4, zstd, as Kafka's readers take and its writers make them.

What decompresses to more than `limit` bytes is refused before the memory for it is taken: a few bytes that say "a
gigabyte of zeros" cost nothing. Formats:
- gzip: one or more members (RFC 1952); Kafka writes one. Java's reader does not look at the reserved flags.
- snappy: xerial's framing, as snappy-java writes it: 8 bytes of magic, version and least version, 32 bits each and
  not looked at, then blocks of raw snappy, each with its size before it, 32 bits big-endian; without that magic, one
  raw block.
- lz4: one frame of independent blocks, header checksum right; Kafka writes blocks of 64 KiB without checksums.
- zstd: frames (RFC 8878), none or more; Kafka writes one, which does not say how long its content is.
What stands behind the end of a gzip stream or an lz4 frame is not read: Kafka's readers do not either.

Source: GzipCompression, SnappyCompression, Lz4BlockInputStream, Lz4BlockOutputStream and ZstdCompression, Kafka 4.3.0.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import NamedTuple

from kafkaspec.spec.common.remembered import remembered_within

LIMIT = 128 << 20
"""Bytes that a batch's records may decompress to here. Kafka has no such bound but its memory."""

XERIAL = b"\x82SNAPPY\x00"
XERIAL_HEADER = 16
SNAPPY_BLOCK = 32 << 10
LZ4_MAGIC = bytes.fromhex("04224d18")
LZ4_BLOCK = 64 << 10
LZ4_HEADER = LZ4_MAGIC + bytes.fromhex("604082")
"""Version 1, independent blocks, no checksums; blocks of 64 KiB; the header's checksum."""
ZSTD_MAGIC = bytes.fromhex("28b52ffd")
ZSTD_BLOCK = 128 << 10
ZSTD_LEVEL, GZIP_LEVEL = 3, -1
GZIP_FLAGS, GZIP_HEADER_CRC = 0x1F, 0x02


class NotDecompressed(ValueError):
    """The bytes are not what the codec writes. The text says why."""


class TooMuch(NotDecompressed):
    """More than the limit would come out: not read, and so not known to be wrong."""


class Codec(NamedTuple):
    """One codec: its number in a batch's attributes, its name, and both directions."""

    id: int
    name: str
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes, int], bytes]


# ---- gzip
def _gunzip(data: bytes, limit: int) -> bytes:
    out = bytearray()
    rest = data
    while True:
        if len(rest) > 3 and rest[3] & ~GZIP_FLAGS and not rest[3] & GZIP_HEADER_CRC:
            rest = rest[:3] + bytes([rest[3] & GZIP_FLAGS]) + rest[4:]
        stream = zlib.decompressobj(wbits=31)
        try:
            out += stream.decompress(rest, limit - len(out) + 1)
        except zlib.error as e:
            raise NotDecompressed(str(e)) from None
        if len(out) > limit:
            raise TooMuch(f"more than {limit} bytes come out")
        if not stream.eof:
            raise NotDecompressed("the stream ends early")
        rest = stream.unused_data
        if rest[:2] != b"\x1f\x8b":
            return bytes(out)


def _gzip(data: bytes) -> bytes:
    stream = zlib.compressobj(GZIP_LEVEL, wbits=31)
    return stream.compress(data) + stream.flush()


# ---- snappy
def _uvarint(data: bytes, at: int) -> int:
    """The length that a raw snappy block begins with."""
    n = shift = 0
    for byte in data[at : at + 5]:
        n |= (byte & 127) << shift
        if byte < 128:
            return n
        shift += 7
    raise NotDecompressed("a block of snappy without a length")


def _unsnappy_block(data: bytes, limit: int) -> bytes:
    import cramjam

    if _uvarint(data, 0) > limit:
        raise TooMuch("more bytes come out than the limit")
    try:
        return bytes(cramjam.snappy.decompress_raw(data))
    except (cramjam.DecompressionError, ValueError) as e:
        raise NotDecompressed(str(e)) from None


def _unsnappy(data: bytes, limit: int) -> bytes:
    if data[:8] != XERIAL:
        return _unsnappy_block(data, limit)
    if len(data) < XERIAL_HEADER:
        raise NotDecompressed("the snappy stream's header is cut")
    out: list[bytes] = []
    at, total = XERIAL_HEADER, 0
    while at < len(data):
        if data[at : at + 8] == XERIAL:  # streams may follow each other
            at += XERIAL_HEADER
            continue
        size = int.from_bytes(data[at : at + 4], "big")
        block = data[at + 4 : at + 4 + size]
        if at + 4 > len(data):  # too few bytes for a size: the end, for snappy-java
            break
        if len(block) < size:
            raise NotDecompressed("the last block of snappy is cut")
        out.append(_unsnappy_block(block, limit - total))
        total += len(out[-1])
        at += 4 + size
    return b"".join(out)


def _snappy(data: bytes) -> bytes:
    import cramjam

    out = bytearray(XERIAL + (1).to_bytes(4, "big") + (1).to_bytes(4, "big"))
    for at in range(0, len(data), SNAPPY_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + SNAPPY_BLOCK]))
        out += len(block).to_bytes(4, "big") + block
    return bytes(out)


# ---- lz4
def _lz4_extent(data: bytes) -> tuple[int, int]:
    """Where the frame's end mark stands, and at most how many bytes come out, by its block headers alone."""
    if data[:4] != LZ4_MAGIC:
        raise NotDecompressed("no lz4 frame")
    if len(data) < 7:
        raise NotDecompressed("the lz4 frame's header is cut")
    flags, descriptor = data[4], data[5]
    if flags >> 6 != 1 or flags & 0x23 != 0x20:
        raise NotDecompressed(f"lz4 frame flags {flags:#04x}: version 1 and independent blocks are what is read")
    if descriptor & 0x8F or descriptor >> 4 < 4:
        raise NotDecompressed(f"lz4 block descriptor {descriptor:#04x}")
    most = 1 << (8 + 2 * (descriptor >> 4))
    at, out = 7 + (8 if flags & 0x08 else 0), 0
    while True:
        if at + 4 > len(data):
            raise NotDecompressed("the lz4 frame ends early")
        size = int.from_bytes(data[at : at + 4], "little")
        at += 4
        stored, size = size >> 31, size & 0x7FFFFFFF
        if size == 0:
            return at - 4, out
        if size > most:
            raise NotDecompressed(f"an lz4 block of {size} bytes, where {most} is the most")
        at += size + (4 if flags & 0x10 else 0)
        out += size if stored else most


def _unlz4(data: bytes, limit: int) -> bytes:
    import cramjam

    end, most = _lz4_extent(data)
    checksum = data[end + 4 : end + 8] if data[4] & 0x04 else b""
    return _bounded(cramjam.lz4, data[:end] + bytes(4) + checksum, most, limit)


def _lz4(data: bytes) -> bytes:
    import cramjam

    out = bytearray(LZ4_HEADER)
    for at in range(0, len(data), LZ4_BLOCK):
        plain = data[at : at + LZ4_BLOCK]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            out += len(block).to_bytes(4, "little") + block
        else:
            out += (len(plain) | 1 << 31).to_bytes(4, "little") + plain
    return bytes(out) + bytes(4)


# ---- zstd
def _zstd_extent(data: bytes) -> int:
    """At most how many bytes come out, by the frames' and blocks' headers alone."""
    at = out = 0
    while at < len(data):
        magic = data[at : at + 4]
        if len(magic) == 4 and magic[1:] == bytes.fromhex("2a4d18") and magic[0] >> 4 == 5:
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            continue
        if magic != ZSTD_MAGIC or at + 5 > len(data):
            raise NotDecompressed("no zstd frame")
        flags = data[at + 4]
        single, checksum = flags >> 5 & 1, flags >> 2 & 1
        at += 5 + (0 if single else 1) + (0, 1, 2, 4)[flags & 3]
        width = (single, 2, 4, 8)[flags >> 6]
        claimed = int.from_bytes(data[at : at + width], "little") + (256 if width == 2 else 0)
        at += width
        last, before = 0, out
        while not last:
            if at + 3 > len(data):
                raise NotDecompressed("the zstd frame ends early")
            head = int.from_bytes(data[at : at + 3], "little")
            last, kind, size = head & 1, head >> 1 & 3, head >> 3
            at += 3 + (1 if kind == 1 else size)
            out += size if kind < 2 else ZSTD_BLOCK
        if width and claimed > out - before:
            raise NotDecompressed(f"the zstd frame says {claimed} bytes, and has less")
        at += 4 * checksum
    if at != len(data):
        raise NotDecompressed("the zstd frame ends early")
    return out


def _unzstd(data: bytes, limit: int) -> bytes:
    import cramjam

    return _bounded(cramjam.zstd, data, _zstd_extent(data), limit) if data else b""


def _zstd(data: bytes) -> bytes:
    import cramjam

    return bytes(cramjam.zstd.compress(data, level=ZSTD_LEVEL))


# ---- all of them
def _bounded(codec: object, data: bytes, most: int, limit: int) -> bytes:
    """Decompress what gives `most` bytes at most; into memory of `limit` bytes where `most` is above it."""
    import cramjam

    try:
        if most <= limit:
            return bytes(codec.decompress(data))  # type: ignore[attr-defined]
        room = bytearray(limit + 1)
        size = codec.decompress_into(data, room)  # type: ignore[attr-defined]
    except (cramjam.DecompressionError, ValueError, OSError) as e:
        if most > limit and "buffer" in str(e):
            raise TooMuch(f"more than {limit} bytes come out") from None
        raise NotDecompressed(str(e)) from None
    if size > limit:
        raise TooMuch(f"more than {limit} bytes come out")
    return bytes(memoryview(room)[:size])


def _as_it_is(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise TooMuch(f"more than {limit} bytes")
    return data


CODECS = {
    c.id: c
    for c in (
        Codec(0, "none", bytes, _as_it_is),
        Codec(1, "gzip", _gzip, _gunzip),
        Codec(2, "snappy", _snappy, _unsnappy),
        Codec(3, "lz4", _lz4, _unlz4),
        Codec(4, "zstd", _zstd, _unzstd),
    )
}
"""By the number in a batch's attributes."""
CODEC_IDS = {c.name: c.id for c in CODECS.values()}


SMALL = 4096
"""Bytes of data whose decompressed form is kept."""


def _bytes_of(asked: tuple[int, bytes, int], plain: bytes | None) -> int:
    return len(asked[1]) + (0 if plain is None else len(plain))


@remembered_within(_bytes_of)
def _decompressed(asked: tuple[int, bytes, int]) -> bytes:
    codec, data, limit = asked
    return CODECS[codec].decompress(data, limit)


def decompress(codec: int, data: bytes, limit: int = LIMIT) -> bytes:
    """The records' bytes. Raises NotDecompressed if they are not what the codec writes, TooMuch (one of these) if more
    than `limit` bytes come out, KeyError for a number that is no codec's. One small batch is asked about several times:
    by spec and impl, by contracts and by the observation."""
    if len(data) > SMALL:
        return CODECS[codec].decompress(data, limit)
    return _decompressed((codec, data, limit))


def compress(codec: int, data: bytes) -> bytes:
    """As Kafka's writer frames it; the compressed bytes themselves are the library's. KeyError as above."""
    return CODECS[codec].compress(data)
