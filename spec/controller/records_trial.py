"""Metadata records: the arguments that engines try. Every kind in every version, and what can be wrong with each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafkaspec.contract.machine import Refused
from kafkaspec.spec.common.metadata_schemas import CONTROL, DATA, NEVER, FieldSchema, MessageSchema
from kafkaspec.spec.controller.records import (
    LONGEST_STRING,
    NO_TAG,
    Header,
    MetadataRecord,
    counted,
    encode_control,
    encode_data,
    frame,
    machine,
    tagged_bytes,
    varint_bytes,
)

_IDS = ("AAAAAAAAAAAAAAAAAAAAAA", "Wz2UP7E_QO2kiOpi3I8jIQ", "_____________________w", "EAAAAAAAAAAAAAAAAAAAAA")
"""The last one begins like 15 bytes with their length."""
_VALUES: Mapping[str, tuple[Any, ...]] = {
    "bool": (False, True),
    "int8": (0, 1, -128, 127, -1),
    "int16": (0, 7, -(2**15), 2**15 - 1),
    "int32": (0, 1, -1, -(2**31), 2**31 - 1),
    "int64": (0, 5, -1, -(2**63), 2**63 - 1),
    "uint16": (0, 9092, 2**16 - 1),
    "float64": (0.0, 1.5, -1e300, 5e-324),
    "uuid": _IDS,
    "string": ("", "t", "\xe9\u20ac\N{GRINNING FACE}", "x" * 127, "x" * 126),
    "bytes": ("", "AQ==", "/wA="),
}


def _value(f: FieldSchema, n: int) -> Any:
    """The n-th of the values worth trying."""
    if n % 5 == 4 and f.nullable != NEVER:
        return None
    if f.array:
        return [_single(f, n + k) for k in range(n % 3)]
    return _single(f, n)


def _single(f: FieldSchema, n: int) -> Any:
    if f.type == "struct":
        return _fields(f.fields, n)
    values = _VALUES[f.type]
    return values[n % len(values)]


def _fields(schema: tuple[FieldSchema, ...], n: int) -> dict[str, Any]:
    return {f.name: _value(f, n + k) for k, f in enumerate(schema) if f.tag is None or (n + k) % 4}


def _records(kinds: Mapping[int, MessageSchema], each: int) -> Iterator[MetadataRecord]:
    """Of each kind and version several, with fields that the version does not have among them."""
    for type, message in kinds.items():
        for version in range(message.highest + 1):
            for n in range(each):
                yield MetadataRecord(type, version, _within(message.fields, _fields(message.fields, n), version, n))


def _within(schema: tuple[FieldSchema, ...], fields: dict[str, Any], version: int, n: int) -> dict[str, Any]:
    """The fields, of which mostly those that a later version added say nothing."""
    out = dict(fields)
    for f in schema:
        if version not in f.versions and n % 4 != 3:
            if f.tag is None:
                out[f.name] = [] if f.array else f.default
            else:
                out.pop(f.name, None)
    return out


_DATA_RECORDS = [*_records(DATA, 6), MetadataRecord(2, 0, {"name": "x" * (LONGEST_STRING + 1), "topicId": _IDS[0]})]
_CONTROL_RECORDS = [r for r in _records(CONTROL, 6) if r.version == 0]
_CONTROL_RECORDS += [
    MetadataRecord(
        2, 0, {"version": 1, "leaderId": 1, "voters": [{"voterId": 1, "voterDirectoryId": i}], "grantingVoters": []}
    )
    for i in _IDS
]

# ---- bytes -----------------------------------------------------------------------------------------------------------
_WRITTEN = [b for b in map(encode_data, _DATA_RECORDS) if not isinstance(b, Refused) and len(b) < 400]
_NEGATIVE = b"\xff\xff\xff\xff\x0f"
_LOWEST = b"\x80\x80\x80\x80\x08"
_LONG = b"\x80\x80\x80\x80\x80\x00"


def _topic(name: bytes, rest: bytes = bytes(16) + b"\0", version: int = 0) -> bytes:
    return frame(2, version) + name + rest


def _tagged(*tags: tuple[int, bytes], count: int | None = None) -> bytes:
    """A record without fields, with these tagged fields."""
    content = varint_bytes(len(tags) if count is None else count) + b"".join(tagged_bytes(*t) for t in tags)
    return frame(20, 0) + content


def _change(rest: bytes, version: int = 0) -> bytes:
    """A change of a partition, up to its tagged fields."""
    return frame(5, version) + bytes(20) + rest


_FRAMES = [
    b"",
    b"\0",
    b"\1",
    b"\1\2",
    b"\2\x14\0\0",
    b"\0\x14\0\0",
    b"\1\x14\0",
    b"\1\x14\0\0",
    b"\1\x14\0\0\0",
    b"\x81\0\x94\0\x80\0\0",
    b"\1\6\0\0",
    b"\1\x0d\0\0",
    b"\1\x1d\0\0",
    b"\1" + varint_bytes(2**15 - 1) + b"\0\0",
    b"\1\x14" + varint_bytes(2**15 - 1) + b"\0",
    b"\1" + varint_bytes(2**15) + b"\0\0",
    varint_bytes(2**16 + 1) + b"\x14\0\0",
    varint_bytes(-(2**16) + 1) + b"\x14\0\0",
    b"\1" + varint_bytes(-(2**16) + 20) + b"\0\0",
    b"\1\x14" + varint_bytes(-1) + b"\0",
    b"\1\x14" + varint_bytes(2**15) + b"\0",
    b"\1\x14" + varint_bytes(-(2**15)) + b"\0",
    b"\1\x14\1\0",
    b"\1\x14\7\0",
    _LONG + b"\x14\0\0",
    b"\1" + _LONG,
    b"\1\x14" + _LONG,
    b"\1\x14\0" + _LONG,
    b"\x80",
    b"\1\x80",
    b"\1\x14\xff\xff",
    b"\1\x14\0" + _NEGATIVE,
    b"\1\x14\0" + _LOWEST,
    _NEGATIVE + b"\x14\0\0",
    b"\1\x94\x80\x80\x80\x70\0\0",
]
_STRINGS = [
    _topic(counted(len(s), s))
    for s in (
        b"",
        b"t",
        b"\xff",
        b"a\xc0\x80b",
        b"\xed\xa0\x80",
        b"\xed\xa0",
        b"\xed\xa0x",
        b"\xed",
        b"\xe2\x82",
        b"\xe2\x82x",
        b"\xf0\x9f\x98",
        b"\xf0\x9fx",
        b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80",
        b"\xe0\x80\x80",
        b"\xf0\x80\x80\x80",
        b"\xe0\xa0",
        b"\xf0\x9f",
        b"\xf8\x88\x80\x80\x80",
        b"\xed\xbf\xbf\xed\xb0\x80",
        b"\xed\x9f\xbf",
        b"\xc2",
        b"\xc2x",
        b"\0",
        b"\xf1\x80\x80x",
        b"\xe1\x80\xe1",
        b"\xef\xbf\xbd",
        b"\xed\xa0\xed\xa0\x80",
    )
] + [
    _topic(b"\0"),
    _topic(b"\5t"),
    _topic(_NEGATIVE),
    _topic(_LOWEST),
    _topic(_LONG),
    _topic(b"\x80"),
    _topic(varint_bytes(2**15 + 1)),
    _topic(counted(2**15 - 1, b"\xff" * (2**15 - 1))),
    _topic(counted(2**15 - 1, b"x" * (2**15 - 1))),
    _topic(counted(2**15, b"x" * 2**15)),
    _topic(counted(43, b"x" * 43)),
    _topic(counted(8170, b"x" * 8170)),
    _topic(b"\2t", bytes(15)),
    _topic(b"\2t", bytes(16)),
    _topic(b"\2t", version=7),
    _topic(b"\2t", version=-1),
    _topic(b"\x82\x80\0t"),
]
_TAGS = [
    _tagged((0, b"")),
    _tagged((0, b"ab"), (7, b"")),
    _tagged((7, b"a"), (7, b"b")),
    _tagged((7, b"a"), (3, b"b")),
    _tagged((NO_TAG, b"a")),
    _tagged((NO_TAG - 1, b"a")),
    _tagged((-1, b"a")),
    _tagged((1, b"a"), count=2),
    _tagged((1, b"a"), count=-1),
    _tagged(count=1),
    _tagged(count=-1),
    frame(20, 0) + b"\1\5" + _NEGATIVE,
    frame(20, 0) + b"\1\5\x09abc",
    frame(20, 0) + b"\1\5" + varint_bytes(128),
    frame(20, 0) + b"\1" + _NEGATIVE + b"\0",
    frame(20, 0) + b"\1\5" + _LONG,
    _change(b"\0"),
    _change(b"\1\0\1\0"),
    _change(b"\1\0\1\1"),
    _change(b"\1\0\x09\2\0\0\0\5"),
    _change(b"\1\0\5\2\0\0\0\5"),
    _change(b"\1\0\6\2\0\0\0\5"),
    _change(b"\1\1\4\xff\xff\xff\xfe"),
    _change(b"\1\1\4\0\0\0\7"),
    _change(b"\2\1\4\0\0\0\7" + b"\1\4\0\0\0\x08"),
    _change(b"\1\6\1\1"),
    _change(b"\1\6\1\1", 1),
    _change(b"\1\6\1\1", 2),
    _change(b"\1\x08\1\1"),
    _change(b"\1\x08\1\1", 1),
    _change(b"\1\x08\1\1", -1),
    _change(b"\1\x08\1\1", 9),
    _change(b"\1\0\1" + _NEGATIVE),
    _change(b"\1\0\1" + _LOWEST),
    _change(b"\1\0\1\7\0\0\0\1"),
    _change(b"\3\5\1\1\x09\1z\0\1\1"),
    _change(b"\1\5\0\1"),
    _change(b"\1\5\1"),
    frame(17, 2) + bytes(12) + b"\1\2\1\0",
    frame(17, 2) + bytes(12) + b"\1\2\1\1",
    frame(17, 3) + bytes(12) + b"\1\3\1\0",
    frame(17, 0) + bytes(12) + b"\1\1\1\1",
    frame(23, 0) + b"\1\0\1\0",
    frame(23, 0) + b"\1\0\2\2x",
    frame(25, 0) + b"\1\0\1\1",
]
_SCRAM = counted(1, b"u") + b"\1"
_NAN, _SIGNALLING = b"\x7f\xf8" + bytes(5) + b"\7", b"\xff\xf0" + bytes(5) + b"\1"
_OTHERS = [
    frame(11, 0) + _SCRAM + b"\0\1\1" + bytes(4) + b"\0",
    frame(11, 0) + _SCRAM + b"\x09ab",
    frame(11, 0) + _SCRAM + _LOWEST,
    frame(11, 0) + _SCRAM + _NEGATIVE,
    frame(11, 0) + _SCRAM + b"\1" * 3 + bytes(3),
    frame(11, 0) + _SCRAM + b"\2a\2b\2c" + bytes(4) + b"\0",
    *(
        frame(14, 0) + b"\1\2k" + x + b"\2\0"
        for x in (_NAN, _SIGNALLING, b"\x80" + bytes(7), b"\x7f\xf0" + bytes(6), b"\xff\xf0" + bytes(6))
    ),
    frame(14, 0) + b"\0",
    frame(14, 0) + b"\0\2k" + bytes(9) + b"\0",
    frame(14, 0) + _NEGATIVE,
    frame(14, 0) + b"\2\2t\0\1\6\1x\2k" + bytes(9) + b"\0",
    frame(14, 0) + b"\2\2t\2n\0\2k" + bytes(7),
    frame(14, 0) + b"\x7f\2t",
    frame(14, 0) + b"\2\0\0\0\2k",
    frame(14, 9) + b"\1\2k" + bytes(9) + b"\0",
    frame(14, 9) + b"\2\2t\0\0\2k" + bytes(9) + b"\0",
    frame(14, 0) + b"\2\2t\0\1\6\3xyz\2k" + bytes(9) + b"\0",
    frame(0, 5) + bytes(29) + b"\1\1\0\1\0\0",
    frame(0, 5) + bytes(29) + b"\2\1\1\0\0\0" + b"\0\0\1\0\1\0\0",
    frame(0, 4) + bytes(29) + b"\1\1\0\2\x02\1\0\1\0",
    frame(0, -3) + bytes(28) + b"\1\1\0\1\0",
    frame(0, 2) + bytes(29) + b"\1\1\0\1\1\1\0\1\1",
    frame(0, 4) + bytes(29) + b"\3\2a\2b\0\1\0\0\0\2a\2c\0\2\0\0\0\1\0\1\0\0",
    # an endpoint that reads like all that stands behind it
    frame(0, 4) + bytes(29) + b"\2\1\1\0\0\2\0\0\1\1\1\2\1\x09\x0d" + bytes(13),
]


def _damaged() -> Iterator[bytes]:
    """Of what Kafka writes one in several, cut, longer, and with a byte changed."""
    for n, data in enumerate(_WRITTEN):
        at = (7 * n) % len(data)
        yield data[:at]
        yield data[:at] + bytes([data[at] ^ (1 << n % 8)]) + data[at + 1 :]
        if n % 5 == 0:
            yield data + b"\0"
        if n % 7 == 0:
            yield data[:-1] + b"\xff"


HOSTILE = [*_FRAMES, *_STRINGS, *_TAGS, *_OTHERS]
VALUES = [*_WRITTEN, *HOSTILE, *_damaged()]

_KEYS = [
    None,
    b"",
    b"\0",
    b"\0\0\0",
    b"\0\0\0\2",
    b"\0\0\0\3",
    b"\0\0\0\4",
    b"\0\0\0\5",
    b"\0\0\0\6",
    b"\0\0\0\0",
    b"\0\0\0\1",
    b"\0\0\0\7",
    b"\0\0\xff\xff",
    b"\0\1\0\2",
    b"\x7f\xff\0\6",
    b"\x80\0\0\2",
    b"\xff\xff\0\3",
    b"\0\0\0\3\xff",
    b"\0\0\1\2",
]
_CONTROLS = [b for b in map(encode_control, _CONTROL_RECORDS) if not isinstance(b, Refused)]
_HEADERS = [Header("h", b""), Header("h", b"\1"), Header("h", b"\1\0")]


def _control_values() -> Iterator[bytes]:
    for n, (_, value) in enumerate(_CONTROLS):
        yield value
        yield value[: (5 * n) % len(value)]
        yield value + b"\xff"
        at = (3 * n) % len(value)
        yield value[:at] + bytes([value[at] ^ 0x41]) + value[at + 1 :]
    yield from (
        bytes(6) + x
        for x in (
            b"\0",
            b"\1\0",
            _NEGATIVE,
            _LONG,
            _LONG[:5],
            _LOWEST,
            b"\2\0\0\0\1\0\1\0",
            b"\1\1\1\5" + _NEGATIVE,
            b"\1\1\1\5\1a",
        )
    )


CONTROL_VALUES = [*_control_values()]


def _in_trace(records: Sequence[MetadataRecord]) -> list[dict[str, Any]]:
    return [{"type": r.type, "version": r.version, "fields": r.fields} for r in records]


def _hex(of: Sequence[bytes | None]) -> list[str | None]:
    """As in a trace."""
    return [None if data is None else data.hex() for data in of]


_HEX, _HEX_KEYS, _HEX_CONTROLS = _hex(VALUES), _hex(_KEYS), _hex([None, b"", *CONTROL_VALUES])
_DATA_IN_TRACE, _CONTROL_IN_TRACE = _in_trace(_DATA_RECORDS), _in_trace(_CONTROL_RECORDS)
_HEX_HEADERS = [[h.key, h.value.hex()] for h in _HEADERS]
machine.candidates |= {
    "data.decode:key": lambda state: [None, None, None, None, None, "", "6b"],
    "data.decode:value": lambda state: [None, *_HEX],
    "timestamp_delta": lambda state: [0, 0, 0, 0, 0, 1, -1],
    "headers": lambda state: [[], [], [], [], *([h] for h in _HEX_HEADERS), [_HEX_HEADERS[1], _HEX_HEADERS[0]]],
    "data.rewrite:value": lambda state: _HEX,
    "data.encode:record": lambda state: _DATA_IN_TRACE,
    "control.decode:key": lambda state: _HEX_KEYS,
    "control.decode:value": lambda state: _HEX_CONTROLS,
    "control.encode:record": lambda state: _CONTROL_IN_TRACE,
}
