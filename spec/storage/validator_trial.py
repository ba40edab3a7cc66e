"""Validator: the arguments that engines try."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from kafkaspec.spec.common import legacy_format as legacy
from kafkaspec.spec.common import record_format as fmt
from kafkaspec.spec.common.any_format import outside
from kafkaspec.spec.common.compression import CODEC_IDS, CODECS, compress
from kafkaspec.spec.common.kafka import INT_MAX, LONG_MAX
from kafkaspec.spec.common.record_format import (
    AT,
    COMMIT,
    CONTROL,
    END_MARKER,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Header,
    LogRecord,
    built,
)
from kafkaspec.spec.storage.batch_trial import NOW, patched
from kafkaspec.spec.storage.validator import ORIGINS, TIMESTAMP_TYPES, machine

GZIP, SNAPPY = (CODEC_IDS[name] for name in ("gzip", "snappy"))
LZ4, ZSTD = legacy.LZ4, legacy.ZSTD
OLD_CODECS = (GZIP, SNAPPY, LZ4)
NO_CRC = b"\1\2\3\4"


# ---- format 2
def _keyed(count: int, first: int = NOW) -> list[LogRecord]:
    return [LogRecord(n, first + 3 * (n % 2), b"k%d" % n, b"v" * n) for n in range(count)]


@cache
def batches() -> tuple[bytes, ...]:
    """Batches of format 2: well formed, at the bounds, and with one thing odd."""
    producer: dict[str, Any] = {"producer_id": 4000, "producer_epoch": 3, "base_sequence": 7}
    control: dict[str, Any] = producer | {"base_sequence": -1, "attributes": TRANSACTIONAL | CONTROL}
    keyless = [LogRecord(n, NOW, None if n in (0, 2) else b"k", b"v") for n in range(4)]
    untimely = [LogRecord(n, NOW + t, b"k", b"v") for n, t in enumerate((0, 11, -11, 10, -10))]
    both = [LogRecord(0, NOW, None, b"v"), LogRecord(1, NOW + 99, b"k", b"v"), LogRecord(2, NOW - 99, None, None)]
    headers = [LogRecord(0, NOW, b"k", b"v"), LogRecord(1, NOW, b"k", None, (Header(b"h", b"w"), Header(b"", None)))]
    below = [LogRecord(0, -9, b"k", b"v"), LogRecord(1, NOW, b"l", b"w")]
    out = [built(0, _keyed(n), attributes=c) for c in CODECS for n in (1, 3)]
    out += [built(0, _keyed(3), attributes=c, **producer) for c in (0, GZIP, ZSTD)]
    out += [built(0, _keyed(2), attributes=c | TRANSACTIONAL, **producer) for c in (0, LZ4)]
    out += [built(0, rows, attributes=c) for rows in (keyless, untimely, both, headers, below) for c in (0, GZIP)]
    out += [built(0, [LogRecord(0, -1, b"k", b"v")], attributes=c) for c in (0, SNAPPY)]
    out += [
        built(0, _keyed(2), attributes=c | LOG_APPEND_TIME, append_time=t)
        for c in (0, GZIP)
        for t in (NOW, NOW + 99, -1)
    ]
    out += [built(0, [LogRecord(0, NOW, COMMIT, END_MARKER.pack(0, 7))], **control)]
    out += [built(5, [LogRecord(5, NOW, COMMIT, END_MARKER.pack(0, 7))], **control | {"producer_id": -1})]
    out += [built(0, _keyed(2), producer_id=5, producer_epoch=e, base_sequence=s) for e, s in ((0, -1), (-1, 0))]
    out += [built(0, _keyed(2), producer_id=0, producer_epoch=0, base_sequence=s) for s in (0, -1)]
    out += [built(0, _keyed(2), attributes=TRANSACTIONAL)]
    out += [built(7, [r._replace(offset=7 + r.offset) for r in _keyed(3)], attributes=c) for c in (0, GZIP, ZSTD)]
    out += [built(LONG_MAX - 2, [r._replace(offset=LONG_MAX - 2 + r.offset) for r in _keyed(3)])]
    out += [built(0, [r._replace(offset=2 * r.offset) for r in _keyed(3)], attributes=c) for c in (0, LZ4)]
    for c in (0, GZIP):
        two = built(0, _keyed(2), attributes=c)
        first, second = two.records
        for deltas in ((0, 0), (1, 0), (1, 1), (1, 2), (0, 2), (0, -1)):
            rows = (replace(first, offset_delta=deltas[0]), replace(second, offset_delta=deltas[1]))
            out.append(replace(two, records=rows))
        out += [replace(two, last_offset_delta=d) for d in (-1, 0, 2, INT_MAX)]
    out += [replace(built(0, _keyed(2)), max_timestamp=t) for t in (NOW, -1)]
    out += [built(0, [LogRecord(0, NOW, b"k" * 64, bytes(9000)), *_keyed(3)[1:]], attributes=c) for c in (0, *CODECS)]
    out += [built(0, _keyed(2), delete_horizon=NOW + 7, attributes=c) for c in (0, GZIP)]
    out += [built(0, [LogRecord(n, NOW + n, b"k", None) for n in range(130)], attributes=c) for c in (0, GZIP)]
    data = [fmt.encode(b) for b in out]
    plain, packed = data[1], data[3]
    for one in (plain, packed):
        data += [patched(one, AT["count"], n.to_bytes(4, "big", signed=True)) for n in (-1, 0, 1, 2, 4)]
        data += [patched(one, AT["crc"], NO_CRC, sealing=False)]
        data += [patched(patched(one, AT["attributes"], bytes([a, one[22] | b])), AT["crc"], NO_CRC, sealing=False)
                 for a, b in ((0, 0x80), (1, 0))]  # fmt: skip
        data += [patched(one, AT["attributes"], bytes([0, one[22] & ~7 | c])) for c in (5, 7)]
        data += [one + plain, one + packed, one + one[:20], one + one[:12], one + bytes(11), one[:-1], one[:16]]
        both_wrong = patched(one, AT["count"], bytes(4))
        data += [patched(both_wrong, AT[name], b"\xff" * 4) for name in ("base_sequence", "last_offset_delta")]
    data += [patched(plain, fmt.OVERHEAD, b"\x7e"), plain[:-1] + b"\x02", patched(plain, len(plain) - 1, b"\x02")]
    data += [b"", bytes(12), bytes(17), bytes(8) + (13).to_bytes(4, "big") + bytes(20)]
    data += [bytes(8) + (14).to_bytes(4, "big") + b"\0" * 4 + b"\3" + bytes(20)]
    return tuple(data)


# ---- formats 0 and 1
Row = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp, key, value."""


def _message(magic: int, row: Row, attributes: int = 0) -> bytes:
    return legacy.message_bytes(row[0], magic, row[1], row[2], row[3], attributes)


def _set(magic: int, rows: Sequence[Row], attributes: int = 0) -> bytes:
    return b"".join(_message(magic, row, attributes) for row in rows)


def wrapper(magic: int, codec: int, offset: int, time: int, inside: bytes, attributes: int = 0) -> bytes:
    """A compressed set."""
    value = compress(codec, inside)
    if codec == LZ4 and magic == 0:
        value = value[:6] + b"\0" + value[7:]
    return legacy.message_bytes(offset, magic, time, None, value, codec | attributes)


def _rows(count: int, first: int = 0, time: int = NOW) -> list[Row]:
    return [(first + n, time + 3 * (n % 2), b"k%d" % n, b"v" * n) for n in range(count)]


def _wrappers(magic: int) -> Iterator[bytes]:
    other = 1 - magic
    for codec in OLD_CODECS:
        yield wrapper(magic, codec, 2, NOW + 3, _set(magic, _rows(3)))
        yield wrapper(magic, codec, 0, NOW, _set(magic, _rows(1)))
    inside = _set(magic, _rows(3))
    for offset in (0, 1, 3, 9, -1):
        yield wrapper(magic, GZIP, offset, NOW + 3, inside)
    for rows in ([(5, NOW, b"k", b"v"), (6, NOW, None, b"w")], [(0, NOW, b"k", b"v"), (0, NOW, b"l", b"w")],
                 [(0, NOW, None, b"v"), (1, NOW + 99, b"k", b"v"), (2, NOW - 99, None, b"v")],
                 [(0, -1, b"k", None)], [(0, -9, b"k", None), (1, -7, b"k", b"")],
                 [(0, NOW, None, b"v"), (1, NOW, b"k", b"v"), (2, NOW, None, b"v"), (3, NOW, None, b"v")],
                 [(n, NOW - n, b"key", bytes(700)) for n in range(70)]):  # fmt: skip
        yield wrapper(magic, GZIP, rows[-1][0], NOW, _set(magic, rows))
        yield wrapper(magic, SNAPPY, rows[-1][0] + 40, NOW, _set(magic, rows))
    for time in (NOW, NOW + 99, -1, -9):
        yield wrapper(magic, GZIP, 2, time, inside, LOG_APPEND_TIME)
    yield wrapper(magic, GZIP, 2, NOW + 3, inside, 0x30)
    yield wrapper(magic, GZIP, 1, NOW, _set(magic, _rows(1)) + _set(other, _rows(1, 1)))
    yield wrapper(magic, GZIP, 1, NOW, _set(other, _rows(2)))
    yield wrapper(magic, GZIP, 2, NOW, _set(magic, [(0, NOW, None, b"v")]) + _set(other, [(1, NOW + 99, None, b"")])
                  + _set(magic, [(2, NOW + 99, b"k", b"v")]))  # fmt: skip
    damaged = bytearray(inside)
    damaged[legacy.CRC_AT] ^= 1
    yield wrapper(magic, GZIP, 2, NOW + 3, bytes(damaged))
    last = bytearray(inside)
    last[-1] ^= 1
    yield wrapper(magic, GZIP, 2, NOW + 3, bytes(last))
    untimely = bytearray(_set(magic, [(0, NOW + 99, None, b"v"), (1, NOW, b"k", b"v")]))
    untimely[-1] ^= 1
    yield wrapper(magic, GZIP, 1, NOW + 3, bytes(untimely))
    wrong = bytearray(_set(other, _rows(1)))
    wrong[legacy.CRC_AT] ^= 1
    yield wrapper(magic, GZIP, 0, NOW, bytes(wrong))
    nested = wrapper(magic, GZIP, 0, NOW, _set(magic, _rows(1)))
    yield wrapper(magic, GZIP, 0, NOW, nested)
    yield wrapper(magic, SNAPPY, 1, NOW, _set(magic, _rows(1)) + nested)
    yield wrapper(magic, SNAPPY, 1, NOW, _set(magic, _rows(1)) + _message(magic, (1, NOW, b"k", b"v"), 5))
    yield wrapper(magic, GZIP, 0, NOW, b"")
    yield wrapper(magic, GZIP, 0, NOW, bytes(11))
    yield wrapper(magic, GZIP, 0, NOW, bytes(12))
    yield wrapper(magic, GZIP, 0, NOW, inside[:20])
    yield wrapper(magic, GZIP, 1, NOW, inside[:-1])
    for codec in (*OLD_CODECS, ZSTD, 5, 7):
        yield _message(magic, (0, NOW, b"k", None), codec)
    yield _message(magic, (0, NOW, None, compress(ZSTD, inside)), ZSTD)


@cache
def message_sets() -> tuple[bytes, ...]:
    """Sets of formats 0 and 1, and of several formats."""
    out = [b""]
    for magic in (0, 1):
        out += [_set(magic, _rows(n, first)) for n, first in ((1, 0), (3, 0), (3, 40))]
        out += [_set(magic, [(0, NOW, b"k", b"v"), (0, NOW, b"k", b"v")])]
        for time in (-1, -9, NOW + 10, NOW + 11, NOW - 10, NOW - 11, 0, 2**42):
            out += [_set(magic, [(0, time, b"k", b"v")]), _set(magic, [(0, NOW, b"k", b""), (1, time, b"k", None)])]
        out += [_set(magic, [(0, NOW, b"k", b"v"), (1, NOW, None, b"v"), (2, NOW + 99, None, b"v")])]
        out += [_set(magic, [(0, NOW + 99, None, b"v"), (1, NOW, None, b"v")])]
        out += [_set(magic, _rows(2), a) for a in (LOG_APPEND_TIME, 0x30, 0x38, 0xB0)]
        out += [_message(magic, (0, NOW, b"k", b"v")) + _message(magic, (1, NOW, b"k", b"v"), LOG_APPEND_TIME)]
        broken = _message(magic, (0, NOW, b"k", b"v"))
        broken = broken[: legacy.CRC_AT] + NO_CRC + broken[legacy.MAGIC_AT :]
        out += [broken, _set(magic, _rows(1)) + broken]
        out += [_set(magic, _rows(2)) + _set(magic, _rows(1))[:-1], _set(magic, _rows(1)) + bytes(5)]
        out += [_set(magic, _rows(1)) + _set(1 - magic, _rows(1)), _set(magic, _rows(1)) + batches()[0]]
        out += [batches()[0] + _set(magic, _rows(1)), batches()[2] + _set(magic, _rows(1))]
        wrapped = wrapper(magic, GZIP, 1, NOW, _set(magic, _rows(2)))
        out += [wrapped + _set(magic, _rows(1)), _set(magic, _rows(1)) + wrapped, wrapped + wrapped]
        out += [_set(magic, [(0, NOW, None, b"v")]) + _set(1 - magic, _rows(1))]
        out += [_set(magic, [(n, NOW + n % 7, b"k", b"v") for n in range(60)])]
        out += _wrappers(magic)
    return tuple(out)


def marker() -> bytes:
    """A control batch, of a coordinator."""
    rows = [LogRecord(0, NOW, COMMIT, END_MARKER.pack(0, 7))]
    return fmt.encode(built(0, rows, attributes=TRANSACTIONAL | CONTROL, producer_id=4000, producer_epoch=3))


@cache
def tried() -> tuple[str, ...]:
    """What the validator is tried with: what is well formed comes more often."""
    sound = [b for b in (*batches(), *message_sets()) if outside(b) == ""]
    usual = [fmt.encode(built(0, _keyed(n), attributes=c)) for c in CODECS for n in (1, 2, 5)]
    usual += [_set(m, _rows(n)) for m in (0, 1) for n in (1, 2, 5)]
    usual += 5 * [_set(1, [(0, -9, b"k", b"v")]), _set(1, [(0, -9, b"k", None), (1, NOW, b"k", b"")])]
    usual += 6 * [marker()]
    usual += [_set(1, _rows(n), 0x30) for n in (1, 2, 3)] + [wrapper(1, GZIP, 1, NOW, _set(1, _rows(2)), 0x70)]
    usual += [wrapper(m, c, n - 1, NOW, _set(m, _rows(n))) for m in (0, 1) for c in OLD_CODECS for n in (1, 4)]
    return tuple(b.hex() for b in (*sound, *usual, *changed(150)))


@cache
def changed(count: int) -> tuple[bytes, ...]:
    """Some of them with a few bytes changed, of which something is promised."""
    rng = random.Random(0)
    base = [b for b in (*batches(), *message_sets()) if 20 < len(b) < 400 and outside(b) == ""]
    out: list[bytes] = []
    while len(out) < count:
        data = bytearray(rng.choice(base))
        for _ in range(rng.choice((1, 1, 2))):
            at = rng.randrange(rng.choice((0, 0, min(57, len(data) - 1))), len(data))
            data[at] = rng.choice((data[at] ^ 1 << rng.randrange(8), rng.randrange(256), 0, 0x7F, 0x80, 0xFF))
        if outside(bytes(data)) == "":
            out.append(bytes(data))
    return tuple(out)


machine.candidates |= {
    "records": lambda s: tried(),
    "offset": lambda s: (0, 0, 7, 2**32 - 1, 2**33, 2**62),
    "now": lambda s: (NOW, NOW + 1),
    "compacted_topic": lambda s: (False, False, True),
    "target_magic": lambda s: (2, 2, 2, 1, 0),
    "target_compression": lambda s: ("none", "none", "gzip", "gzip", "snappy", "lz4", "zstd"),
    "timestamp_type": lambda s: ("CreateTime", *TIMESTAMP_TYPES),
    "timestamp_before_max_ms": lambda s: (10, LONG_MAX, LONG_MAX),
    "timestamp_after_max_ms": lambda s: (10, LONG_MAX, LONG_MAX),
    "partition_leader_epoch": lambda s: (-1, 0, 4),
    "origin": lambda s: ("CLIENT", "CLIENT", *ORIGINS),
}
