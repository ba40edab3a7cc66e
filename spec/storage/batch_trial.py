"""Record batch: the arguments that engines try."""

from __future__ import annotations

import base64
import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from kafkaspec.contract.codec import encode as as_json
from kafkaspec.contract.codec import view
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.spec.common.compression import CODEC_IDS, CODECS, compress
from kafkaspec.spec.common.kafka import INT_MAX, LONG_MAX
from kafkaspec.spec.common.record_format import (
    ABORT,
    AT,
    CODEC_MASK,
    COMMIT,
    CONTROL,
    CONTROL_KEY,
    CONTROL_TYPES,
    END_MARKER,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    OVERHEAD,
    TRANSACTIONAL,
    Batch,
    BatchFields,
    Header,
    LogRecord,
    Record,
    built,
    emptied,
    encode,
    record_bytes,
    sealed,
    varint_bytes,
)
from kafkaspec.spec.storage.batch import TIMESTAMP_TYPES, CurrentBatch, machine

NOW = 1_700_000_000_000
EPOCH = END_MARKER.pack(0, 7)
"""The value of a marker."""


@cache
def examples() -> tuple[Batch, ...]:
    """Well-formed batches at every bound that the format has."""
    plain = [LogRecord(n, NOW + 3 * (n % 2), b"k%d" % n, b"v" * n) for n in range(3)]
    some = [
        LogRecord(0, NOW, None, b"v"),
        LogRecord(1, NOW - 1, b"", None, (Header(b"", None), Header(b"h\xc3\xa9", b""))),
    ]
    producer: dict[str, Any] = {"producer_id": 4000, "producer_epoch": 3}
    control = TRANSACTIONAL | CONTROL
    one = built(0, plain)
    out = [
        one,
        built(0, some, leader_epoch=5, producer_id=2**40, producer_epoch=2**15 - 1, base_sequence=INT_MAX - 1),
        built(LONG_MAX - 2, [t._replace(offset=LONG_MAX - 2 + t.offset) for t in plain]),
        built(
            70,
            [LogRecord(75, NOW, b"k", b"v"), LogRecord(76, 0, b"k", b"w")],
            last_offset=90,
            **producer,
            base_sequence=9,
        ),
        built(0, [LogRecord(0, -1, b"k", b"v")]),
        built(0, [LogRecord(n, NOW + n, b"k", None) for n in range(300)], attributes=2),
        built(0, plain, attributes=LOG_APPEND_TIME, append_time=NOW + 99),
        built(0, plain, attributes=TRANSACTIONAL, base_sequence=0, **producer),
        built(3, [LogRecord(3, NOW, COMMIT, EPOCH)], attributes=control, **producer),
        built(3, [LogRecord(3, NOW, ABORT, EPOCH + b"later")], attributes=control, **producer),
        built(9, [LogRecord(9, NOW, struct.pack(">hhb", 1, 2, 0), b"\0\0\1")], attributes=CONTROL),
        built(9, [LogRecord(9, NOW, CONTROL_KEY.pack(0, k), b"\0\0") for k in (3,)], attributes=CONTROL),
        built(0, [t for t in some if t.offset], delete_horizon=NOW + 86400000, last_offset=1, **producer),
        built(0, [LogRecord(0, NOW, b"k" * 64, bytes(8192)), LogRecord(1, 0, b"x" * 63, bytes(20000))]),
        emptied(built(5, [LogRecord(5, NOW, b"k", b"v")], last_offset=9, base_sequence=4, **producer)),
        emptied(built(5, [LogRecord(5, NOW, COMMIT, EPOCH)], attributes=control, **producer)),
    ]
    out += [built(0, plain + [LogRecord(3, NOW, None, b"ab" * 500)], attributes=c) for c in CODECS if c]
    out += [
        built(
            0, [LogRecord(0, NOW, b"k", bytes(9000)), *(t._replace(offset=t.offset + 1) for t in plain)], attributes=c
        )
        for c in (1, 4)
    ]
    out += [built(40, [LogRecord(40, NOW + 4, b"k", b"v")], attributes=c) for c in (1, 3)]
    out += [built(0, some[1:], attributes=4 | LOG_APPEND_TIME, append_time=NOW, last_offset=1)]
    out += [
        built(0, [LogRecord(0, 0, b"k", b"v"), LogRecord(1, NOW, b"k", b"v", (Header(b"h", b"v"),) * 64)]),
        built(2**53, [LogRecord(2**53 + 1, 2**53 + 1, b"k", b"v")], **producer | {"producer_id": 2**53 + 1}),
        built(3, [LogRecord(3, NOW, COMMIT, END_MARKER.pack(0, INT_MAX))], attributes=control, **producer),
    ]
    return tuple(out)


@cache
def well_formed_and_not() -> tuple[Batch, ...]:
    """The examples, and batches each with a rule broken or at its bound."""
    one = examples()[0]
    record = one.records[0]
    wrong = [
        replace(one, last_offset_delta=-1),
        replace(one, last_offset_delta=1),
        replace(one, max_timestamp=NOW),
        replace(one, attributes=5),
        replace(one, attributes=0x80),
        replace(one, attributes=-1),
        replace(one, attributes=CONTROL),
        replace(one, records=one.records[::-1]),
        replace(one, records=(record, record)),
        replace(one, records=(replace(record, offset_delta=-1),)),
        replace(one, records=(replace(record, timestamp_delta=-(2**63)),), max_timestamp=NOW),
        replace(one, base_timestamp=LONG_MAX, records=(replace(record, timestamp_delta=2),), max_timestamp=-1),
        replace(one, records=(replace(record, attributes=255),), max_timestamp=NOW),
    ]
    for key, value in ((b"\0\0\0", EPOCH), (b"\xff\xff\0\1", EPOCH), (COMMIT, b"\xff\xff\0\0\0\1"), (COMMIT, b"\0\0\0"),
                       (COMMIT, None), (None, EPOCH)):  # fmt: skip
        wrong.append(built(0, [LogRecord(0, NOW, key, value)], attributes=CONTROL))
    wrong += _markers()
    return tuple(b for b in (*examples(), *wrong) if b.attributes & CODEC_MASK in CODECS)


def _markers() -> Iterator[Batch]:
    """Control batches: types around those that there are, a negative version, values of each length that is asked for,
    of a negative version too."""
    for kind in (-1, *range(len(CONTROL_TYPES) - 1, len(CONTROL_TYPES) + 2)):
        yield built(0, [LogRecord(0, NOW, CONTROL_KEY.pack(0, kind), b"\0\0")], attributes=CONTROL)
    for key in (COMMIT, CONTROL_KEY.pack(-(2**15), 1), CONTROL_KEY.pack(0, 3)):
        for value in (None, b"", b"\0", b"\0\0", b"\x80\0", b"\0" * 5, b"\x80" + b"\0" * 4, b"\x80" + b"\0" * 5):
            yield built(0, [LogRecord(0, NOW, key, value)], attributes=CONTROL)


@cache
def encodings() -> tuple[Json, ...]:
    """What `encode` is tried with."""
    return tuple(as_json(view(BatchFields, b)) for b in well_formed_and_not())


def patched(data: bytes, at: int, new: bytes, sealing: bool = True) -> bytes:
    """Some bytes overwritten; with the right CRC, unless not `sealing`."""
    data = data[:at] + new + data[at + len(new) :]
    return sealed(data) if sealing else data


def _resized(data: bytes) -> bytes:
    return sealed(data[: AT["length"]] + (len(data) - LOG_OVERHEAD).to_bytes(4, "big") + data[AT["leader_epoch"] :])


def _damaged(data: bytes) -> Iterator[bytes]:
    """The same batch, with one thing wrong or odd."""
    for cut in (0, 11, 16, 17, 20, 60, len(data) - 1):
        yield data[:cut]
    yield data + b"\0"
    for at in (0, 8, 11, 12, 16, 17, 20, 21, 22, 26, 27, 35, 42, 43, 53, 57, 60, 61, 62, len(data) - 1):
        if at < len(data):
            yield patched(data, at, bytes([data[at] ^ 1]), sealing=False)
            yield patched(data, at, bytes([data[at] ^ 0x80]))
            yield patched(data, at, bytes([(data[at] + 1) % 256]))
    for magic in (0, 1, 3, 127, 255):
        yield patched(data, AT["magic"], bytes([magic]))
    for codec in range(8):
        yield patched(data, AT["attributes"], bytes([0, data[22] & ~7 | codec]))
    for count in (-1, 0, 1, 2, INT_MAX):
        yield patched(data, AT["count"], count.to_bytes(4, "big", signed=True))
    for sequence in (-1, 0, INT_MAX):
        yield patched(data, AT["base_sequence"], sequence.to_bytes(4, "big", signed=True))
    yield _resized(data + b"\0")
    yield _resized(data[:-1])
    for at, new in (
        (AT["crc"], b"\1\2\3\4"),
        (AT["attributes"], b"\1"),
        (AT["count"], b"\xff"),
        (AT["max_timestamp"], b"\1"),
    ):
        for other, with_it in (
            (AT["magic"], b"\3"),
            (AT["attributes"], b"\2"),
            (AT["last_offset_delta"], b"\xff"),
            (AT["length"], b"\1"),
        ):
            two = patched(patched(data, at, new, sealing=False), other, with_it, sealing=False)
            yield two if AT["crc"] in (at, other) else sealed(two)


def _with_records(count: int, section: bytes, attributes: int = 0) -> bytes:
    """A header of `examples` over any bytes."""
    head = encode(replace(examples()[0], records=(), attributes=attributes, last_offset_delta=9))[: AT["count"]]
    return _resized(head + count.to_bytes(4, "big", signed=True) + section)


@cache
def odd_records() -> tuple[bytes, ...]:
    """Records whose varints are long, too long, too large or cut; sizes that do not fit; compressed too."""
    good = record_bytes(Record(0, 3, b"k", b"v"))
    body = good[1:]
    bodies = [
        body,
        b"\0\x86\x00\x00\x02k\x02v\x00",  # a timestamp delta in two bytes that needs one
        b"\0\x06\x80\x80\x80\x80\x00\x02k\x02v\x00",  # an offset delta in five
        b"\0\x06\x80\x80\x80\x80\x70\x02k\x02v\x00",  # with bits beyond the 32nd
        b"\0\x06" + 5 * b"\x80" + b"\x00\x02k\x02v\x00",  # in six
        b"\0\x86\x80\x80\x80\x80\x80\x80\x80\x80\x7e\x00\x02k\x02v\x00",  # a timestamp delta in ten
        b"\0\x86\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00\x00\x02k\x02v\x00",  # in eleven
        b"\0\x06\x00\x03\x02v\x00",  # a key of -2 bytes
        b"\0\x06\x00\x02k\x03\x00",
        b"\0\x06\x00\x02k\x02v\x01",  # -1 headers
        b"\0\x06\x00\x02k\x02v\x02",  # a header, and none there
        b"\0\x06\x00\x02k\x02v\x02\x01\x00",  # whose key is null
        b"\0\x06\x00\x02k\x02v\x02\x02h\x01",
        b"\0\x06\x00\x02k\x02v\x02\x02h\x03",
        b"\0\x06\x00\x02k\x02v\x00\x00",  # a byte behind the headers
        b"\0\x06\x00\x7ek\x02v\x00",
        b"\0\x06\x13\x02k\x02v\x00",
        b"\0\x06\x14\x02k\x02v\x00",
        b"\0\x06\x12\x02k\x02v\x00",
        b"\0",
        b"",
    ]
    sections = [varint_bytes(len(b)) + b for b in bodies]
    sections += [good + good, good[:-1], b"\x01", b"\x80", b"\xff\xff\xff\xff\x0f", b"\x92\x00" + body]
    sections += [b"\xff" * n for n in (4, 5, 6)]
    out = [_with_records(1, s) for s in sections]
    out += [
        _with_records(2, good + record_bytes(Record(1, 3, None, None))),
        _with_records(0, good),
        _with_records(2, good),
    ]
    for codec in (c for c in CODECS if c):
        packed = compress(codec, good)
        out += [_with_records(1, packed, codec), _with_records(2, packed, codec), _with_records(0, b"", codec)]
        out += [_with_records(1, packed[:-1], codec), _with_records(1, good, codec), _with_records(0, packed, codec)]
        out += [_with_records(1, compress(codec, sections[4]), codec), _with_records(1, compress(codec, b""), codec)]
        out += [_with_records(1, b"", codec), _with_records(-1, packed, codec)]
        flags, version = packed[:3] + b"\xa0" + packed[4:], packed[:8] + bytes(4) + packed[12:]
        out += [_with_records(1, flags, codec), _with_records(1, version, codec)]
    out += [patched(d, AT["max_timestamp"], (NOW + 3).to_bytes(8, "big")) for d in out]
    return tuple(out)


@cache
def byte_strings() -> tuple[str, ...]:
    """What `decode` is tried with."""
    out = [encode(b) for b in well_formed_and_not()]
    out += [d for b in (examples()[k] for k in (0, 1, 3, 7, 11, 13, 15, 16, 17, 18)) for d in _damaged(encode(b))]
    return tuple(dict.fromkeys(d.hex() for d in (*out, *odd_records())))


@cache
def evenly() -> tuple[str, ...]:
    """The same, each broken rule, and each kind of batch, about as often as another."""
    by: dict[str, list[str]] = {}
    for text in byte_strings():
        answer = machine.operations["decode"].body(bytes.fromhex(text))
        kind = answer.clause if isinstance(answer, Refused) else str(answer.attributes)
        by.setdefault(kind, []).append(text)
    most = max(map(len, by.values()))
    return tuple(t for group in by.values() for t in group * (most // len(group)))


@cache
def readable() -> tuple[str, ...]:
    """What `read` is tried with: the same, and several batches behind each other."""
    one, packed = (encode(examples()[n]).hex() for n in (0, 15))
    several = [one + packed, packed + one[:100], one + one[:20], one[:-2] + packed, packed + packed + packed]
    several += [one + odd.hex() for odd in odd_records()[::5]]
    several += [bytes(8).hex() + "00000004" + "00" * n for n in (0, 4, 5)]
    several += [bytes(8).hex() + f"{n:08x}" + "00" * n for n in (13, 14, 15)]
    several += [bytes(8).hex() + f"{n:08x}" + "00000000" + "0200" for n in (13, 14, 15)]  # cut
    several += fuzzed(600)
    return (*evenly(), *(t for t in several for _ in range(4)))


def fuzzed(count: int) -> list[str]:
    """Byte strings with a few bytes changed, left out or put in; nearly all with the right CRC."""
    rng = random.Random(0)
    base = [bytes.fromhex(t) for t in byte_strings() if 2 * OVERHEAD < len(t) < 1000]
    out = []
    for _ in range(count):
        data = bytearray(rng.choice(base))
        for _ in range(rng.choice((1, 1, 2, 3))):
            at = rng.randrange(rng.choice((0, 0, AT["count"])), len(data))
            data[at] = rng.choice((data[at] ^ 1 << rng.randrange(8), rng.randrange(256), 0, 0x7F, 0x80, 0xFF))
        if rng.random() < 0.2:
            at = rng.randrange(len(data))
            data[at : at + rng.randrange(2)] = rng.randbytes(rng.randrange(2))
            data[AT["length"] : AT["leader_epoch"]] = (len(data) - LOG_OVERHEAD).to_bytes(4, "big")
        out.append((sealed(data) if rng.random() < 0.95 else bytes(data)).hex())
    return out


@cache
def sendable() -> tuple[str, ...]:
    """What the leader is tried with: well-formed batches at base offset 0 and elsewhere, and a few that are not."""
    out = list(examples())
    out += [replace(b, base_offset=0) for b in out if b.base_offset]
    out += [replace(b, last_offset_delta=b.last_offset_delta + 1) for b in out[:2]]
    keyed = [LogRecord(n, NOW + n, b"k%d" % n, b"v") for n in range(3)]
    out += [built(0, keyed, attributes=c, producer_id=5, producer_epoch=0, base_sequence=0) for c in CODECS]
    out += [built(0, keyed, attributes=c, producer_id=5, producer_epoch=0) for c in (0, 1)]
    out += [
        built(0, [LogRecord(0, -9, b"k", b"v"), LogRecord(1, t, b"l", b"w")], attributes=c)
        for c in (0, 1)
        for t in (NOW, -7)
    ]
    untimely = [LogRecord(0, NOW, None, b"v"), LogRecord(1, NOW + 12, b"k", b"v"), LogRecord(2, NOW, None, b"w")]
    out += [built(0, untimely, attributes=c) for c in (0, 0, 0, 1, 3)]
    out += [built(0, [LogRecord(n, NOW, None, b"v") for n in range(6)], attributes=c) for c in (0, 2)]
    out += [built(0, [LogRecord(0, -1, b"k", b"v")], attributes=c | LOG_APPEND_TIME) for c in (0, 2)]
    out += [built(0, [LogRecord(0, NOW, b"k", b"v")], attributes=c | LOG_APPEND_TIME, append_time=NOW) for c in (0, 4)]
    aged = [LogRecord(n, NOW + n, b"k%d" % n, None if n % 2 else b"v") for n in (0, 1, 4)]
    out += [
        built(0, aged, attributes=c, delete_horizon=h, producer_id=5, producer_epoch=0, base_sequence=9, last_offset=6)
        for c, h in ((0, NOW + 86_400_000), (1, NOW + 86_400_000), (0, None), (4, None))
    ]
    data = [encode(b) for b in out]
    return tuple(d.hex() for d in (*data, data[0][:-1], patched(data[0], 30, b"\xff", sealing=False)))


def _trace_records(state: CurrentBatch) -> Sequence[Json]:
    def r(t: int, k: str | None, v: str | None, headers: int = 0) -> Json:
        return {"t": t, "k": k, "v": v, "headers": headers}

    return (
        [r(NOW, "k", "v")],
        [r(NOW + 5, "k", None, 1), r(NOW, None, "v"), r(NOW + 9, "k", "w", 2)],
        [r(-1, "k", "v")],
        [r(NOW - 11, "k", "v"), r(NOW + 11, None, "v")],
        [r(NOW + 10, None, ""), r(NOW - 10, "", "v"), r(NOW, None, "v"), r(NOW, None, "v"), r(NOW, None, "v")],
        [r(-2, "k", "v")],
    )


def _flips(state: CurrentBatch) -> Sequence[str]:
    data = state.data or encode(examples()[0])
    places = [n for n in (0, 8, 10, 11, 12, 16, 17, 21, 30, 57, 61, len(data) - 1) if n < len(data)]
    flipped = [patched(data, n, bytes([data[n] ^ bit]), sealing=False) for n in places for bit in (1, 16)]
    flipped += [data, data + data, data[:-1], data + data[:20], data + patched(data, 30, b"\xff", sealing=False)]
    return [base64.b64encode(d).decode() for d in flipped]


NUMBERS = (0, -1, 1, 63, 64, -64, -65, 8191, 8192, 2**20, -(2**20) - 1, 2**27, 2**28, INT_MAX, -INT_MAX - 1)


LONGS = (*NUMBERS, 2**34, 2**35, -(2**55), LONG_MAX, -LONG_MAX - 1)


machine.candidates |= {
    "decode:data": lambda s: evenly(),
    "load:data": lambda s: sendable(),
    "retainEmpty:data": lambda s: sendable(),
    "retain:data": lambda s: sendable(),
    "kept": lambda s: ([0], [1], [0, 1, 2, 3], [0, 2], [1, 2], [3], [], [0, 1]),
    "delete_horizon": lambda s: (NOW + 7, 0),
    "read:data": lambda s: readable(),
    "batch": lambda s: encodings(),
    "number": lambda s: LONGS,
    "bits": lambda s: (32, 64),
    "readVarint:data": lambda s: tuple(
        dict.fromkeys(
            [varint_bytes(n, 64).hex() for n in LONGS]
            + ["", "80", "8000", "8080808000", "808080808000", "ffffffff0f", "ffffffff1f", "ffffffff7f", "ffffffff80"]
            + ["80" * 9 + "01", "80" * 9 + "02", "80" * 9 + "7f", "80" * 10 + "00", "ff" * 9 + "01"]
        )
    ),
    "magic": lambda s: (2,),
    "to_magic": lambda s: (2,),
    "compression": lambda s: tuple(CODEC_IDS),
    "target_compression": lambda s: tuple(CODEC_IDS),
    "base_offset": lambda s: (0, 0, 7, 2**40),
    "initial_offset": lambda s: (0, 100, 2**33),
    "timestamp_type": lambda s: tuple(TIMESTAMP_TYPES),
    "producer_id": lambda s: (-1, 0, 2**33),
    "producer_epoch": lambda s: (-1, 0, 2**15 - 1),
    "base_sequence": lambda s: (-1, 0, INT_MAX),
    "transactional": lambda s: (False, True),
    "partition_leader_epoch": lambda s: (-1, 0, 4),
    "records": _trace_records,
    "log_append_time": lambda s: (-1, NOW),
    "of": lambda s: ("previous build",),
    "byte": lambda s: (-1,),
    "base64": _flips,
    "compacted_topic": lambda s: (False, True),
    "timestamp_before_max_ms": lambda s: (10, LONG_MAX),
    "timestamp_after_max_ms": lambda s: (10, LONG_MAX),
    "now": lambda s: (NOW, NOW + 1),
    "origin": lambda s: ("CLIENT", "COORDINATOR"),
}
