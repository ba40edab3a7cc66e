"""Metadata records: the bytes of what a controller writes to the metadata log, and what they say.

A data record is a frame of three varints around a message in the flexible encoding of Kafka's protocol; a control
record has its type in the key, and the message alone as value. Which messages there are, with which fields, is data
(`spec.common.metadata_schemas`). A codec: there is no state.

Source: Kafka Internals, ch. 11, 'Core concepts & terminology'; KIP-482, KIP-631, KIP-853; MetadataRecordSerde,
AbstractApiMessageSerde, ControlRecord, RecordsIterator and the generated messages, Kafka 4.3.0.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import A_FORMAT, AT_REST, clause, states
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Refused, without_state
from kafkaspec.contract.numbers import Int16, Int64
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT
from kafkaspec.spec.common.metadata_schemas import CONTROL, DATA, NEVER, FieldSchema, MessageSchema
from kafkaspec.spec.common.record_reader import INVALID, UNDERFLOW

PREFIX = "MRC"
TITLE = "Metadata records"

SERDE = "AbstractApiMessageSerde and MetadataRecordSerde, Kafka 4.3.0"
ACCESSOR = "ByteBufferAccessor and ByteUtils, Kafka 4.3.0"
GENERATED = "KIP-482; the generated messages of kafka-metadata, Kafka 4.3.0"
ITERATOR = "RecordsIterator, Kafka 4.3.0"

UNPARSED = "org.apache.kafka.server.common.serialization.MetadataParseException"
UNCHECKED = "java.lang.RuntimeException"
UNSUPPORTED_VERSION = "org.apache.kafka.common.errors.UnsupportedVersionException"
NEGATIVE_ARRAY = "java.lang.NegativeArraySizeException"

CURRENT_FRAME = 1
LONGEST_STRING = 2**15 - 1
NO_TAG = 2**31 - 1

clause(
    "MRC-19",
    """Every record of a metadata log and of its snapshots is one that Kafka reads: a controller or a broker that
    meets another one stops.""",
    source="RecordsIterator and RecordsSnapshotReader, Kafka 4.3.0; Kafka Internals, ch. 11, 'The replay switch'",
    without=A_FORMAT
    | AT_REST
    | {
        "spec": "about files at rest: of each record the other rules say it",
        "mutant": "about files at rest: what breaks it is damage, made in the tests of the audit",
    },
)

machine = without_state("records", __name__)


# ---- what is shown ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class MetadataRecord:
    """A record, as Kafka's JSON converters print it."""

    type: Annotated[Int16, governs("MRC-1", "MRC-3", "MRC-17")]
    """API key, or ControlRecordType"""
    version: Annotated[Int16, governs("MRC-1", "MRC-4", "MRC-18")]
    fields: Annotated[Mapping[str, Any], governs("MRC-5", "MRC-6", "MRC-7", "MRC-8", "MRC-9", "MRC-10", "MRC-18")]
    """those that the version has; of tagged ones, those that are not the default"""


class Header(NamedTuple):
    """A header of a record: metadata records have none."""

    key: str
    value: bytes


class Unread(ValueError):
    """Bytes that are no record, or a record that has no bytes: the clause, and Kafka's exception in the place where
    it shows."""

    def __init__(self, clause: str, error: str) -> None:
        super().__init__(clause)
        self.clause, self.error = clause, error


Taken = tuple[Any, int]
"""What was read, and the place behind it."""


# ---- the encoding ----------------------------------------------------------------------------------------------------
@states(without=A_FORMAT)
def unsigned_varint(data: bytes, at: int) -> Taken:
    """MRC-2: An unsigned varint has 7 bits a byte, the lowest first, the top bit of all bytes but the last set, and is
    a number of 32 bits with a sign: bits above are dropped. It is refused if it has more than 5 bytes, or does not
    end. [{ACCESSOR}]"""
    number = 0
    for n in range(5):
        if at + n >= len(data):
            raise Unread("MRC-2", UNDERFLOW)
        number += (data[at + n] % 128) * 128**n
        if data[at + n] < 128:
            return signed(number, 32), at + n + 1
    raise Unread("MRC-2", ILLEGAL_ARGUMENT)


def signed(number: int, bits: int) -> int:
    """The number that this many low bits are, in two's complement."""
    size: int = 2**bits
    low = number % size
    return low - size if 2 * low >= size else low


def length_of(data: bytes, at: int) -> Taken:
    """The length of a string, bytes or an array: one less than the varint, in 32 bits. Negative: null."""
    number, at = unsigned_varint(data, at)
    return signed(number - 1, 32), at


FORMS = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q", "uint16": ">H", "float64": ">d"}


@states(without=A_FORMAT)
def fixed(kind: str, data: bytes, at: int) -> Taken:
    """MRC-5: Whole numbers are big-endian in two's complement, of 1, 2, 4 or 8 bytes, uint16 without a sign; float64 is
    an IEEE 754 double, of which every bit is kept; a UUID is its 16 bytes; a bool is a byte, false if and only if that
    is 0, and is written as 0 or 1. Fewer bytes are refused. [{ACCESSOR}]"""
    size = {"bool": 1, "uuid": 16}.get(kind) or struct.calcsize(FORMS[kind])
    content = data[at : at + size]
    if len(content) < size:
        raise Unread("MRC-5", UNDERFLOW)
    if kind == "bool":
        return content != b"\0", at + 1
    if kind == "uuid":
        return base64.urlsafe_b64encode(content).decode()[:22], at + 16
    return struct.unpack(FORMS[kind], content)[0], at + size


def content_of(clause: str, length: int, data: bytes, at: int) -> Taken:
    if at + length > len(data):
        raise Unread(clause, UNCHECKED)
    return data[at : at + length], at + length


@states(without=A_FORMAT)
def string(data: bytes, at: int) -> Taken:
    """MRC-6: A string is its number of bytes plus 1 as an unsigned varint, and that many bytes of UTF-8; 0 or a
    negative number is null. It is refused if it is null and may not be, has more than 32767 bytes, or more than there
    are. Malformed UTF-8 is not refused: Java's replacement characters stand for it. [{GENERATED}; java.lang.String]"""
    length, at = length_of(data, at)
    if length < 0:
        return None, at
    if length > LONGEST_STRING:
        raise Unread("MRC-6", UNCHECKED)
    content, at = content_of("MRC-6", length, data, at)
    return text_of(content), at


def text_of(content: bytes) -> str:
    """What Java makes of UTF-8: a surrogate of three bytes, or its first two, is one malformed character, where
    Unicode's advice has one for each byte."""
    out = []
    while content:
        try:
            out.append(content.decode())
            break
        except UnicodeDecodeError as e:
            size = e.end - e.start
            lead = content[e.start : e.start + 3]
            if lead[:1] == b"\xed" and lead[1:2] and 0xA0 <= lead[1] <= 0xBF:
                size = 3 if lead[2:] and 0x80 <= lead[2] <= 0xBF else 2
            out.append(content[: e.start].decode() + "\N{REPLACEMENT CHARACTER}")
            content = content[e.start + size :]
    return "".join(out)


@states(without=A_FORMAT)
def blob(data: bytes, at: int) -> Taken:
    """MRC-7: Bytes are their number plus 1 as an unsigned varint, and the bytes; 0 or a negative number is null. They
    are refused if they are null and may not be, or more than there are. [{GENERATED}]"""
    length, at = length_of(data, at)
    return (None, at) if length < 0 else content_of("MRC-7", length, data, at)


@states(without=A_FORMAT)
def array(element: Callable[[bytes, int], Taken], data: bytes, at: int) -> Taken:
    """MRC-8: An array is the number of its elements plus 1 as an unsigned varint, and the elements; 0 or a negative
    number is null. It is refused if it is null and may not be, or has more elements than bytes are left, before any is
    read. [{GENERATED}]"""
    length, at = length_of(data, at)
    if length < 0:
        return None, at
    if length > len(data) - at:
        raise Unread("MRC-8", UNCHECKED)
    out = []
    for _ in range(length):
        value, at = element(data, at)
        out.append(value)
    return out, at


NULL_REFUSED = {"string": "MRC-6", "bytes": "MRC-7"}


def value_of(f: FieldSchema, message: MessageSchema, version: int, data: bytes, at: int) -> Taken:
    """The value of a field that the version has."""

    def one(data: bytes, at: int) -> Taken:
        match f.type:
            case "struct":
                return structure(f, message, version, data, at)
            case "string":
                return string(data, at)
            case "bytes":
                return blob(data, at)
        return fixed(f.type, data, at)

    value, at = array(one, data, at) if f.array else one(data, at)
    if value is None and version not in f.nullable:
        raise Unread("MRC-8" if f.array else NULL_REFUSED[f.type], UNCHECKED)
    return value, at


@states(without=A_FORMAT)
def structure(f: FieldSchema, message: MessageSchema, version: int, data: bytes, at: int) -> Taken:
    """MRC-4: The version says which fields are there. A version that no release has is not refused as such: one below 0
    is read as 0, one above the highest as the highest, unless the record has an element of a structure.
    [{GENERATED}]"""
    if version > message.highest:
        raise Unread("MRC-4", UNSUPPORTED_VERSION)
    return fields_of(f.fields, message, version, data, at)


class Fields(dict[str, Any]):
    """What a message or a structure says: every field, and the tagged fields that the schema does not have."""

    unknown: tuple[tuple[int, bytes], ...] = ()


def absent(f: FieldSchema) -> Any:
    """What a field says where it is absent."""
    if f.array:
        return f.default if f.default is None else []
    return b"" if f.type == "bytes" else f.default


@states(without=A_FORMAT)
def fields_of(
    schema: Sequence[FieldSchema], message: MessageSchema, version: int, data: bytes, at: int
) -> tuple[Fields, int]:
    """MRC-9: A message, and each structure in it, is those of its fields that the version has and that have no tag, in
    their order, and behind them its tagged fields. A field that is not there has its default. [{GENERATED}]

    MRC-10: Tagged fields are their number, and of each tag, size and value, the first three as unsigned varints. The
    size of a known one says nothing: as much is read as its type needs. Of several with one tag the last counts. A tag
    of a field that the version does not have is refused. [{GENERATED}]

    MRC-11: A tagged field that the schema does not have is kept, and written behind the known ones. It is refused if it
    has a negative size, or more bytes than there are; and on writing, unless the tags of such fields increase, from 0,
    and stay below 2147483647. [{GENERATED}; RawTaggedFieldWriter, Kafka 4.3.0]
    """
    out = Fields((f.name, absent(f)) for f in schema)
    for f in schema:
        if f.tag is None and version in f.versions:
            out[f.name], at = value_of(f, message, version, data, at)
    count, at = unsigned_varint(data, at)
    for _ in range(count):
        tag, at = unsigned_varint(data, at)
        size, at = unsigned_varint(data, at)
        known = next((f for f in schema if f.tag == tag), None)
        if known is not None:
            if version not in known.versions:
                raise Unread("MRC-10", UNCHECKED)
            out[known.name], at = value_of(known, message, version, data, at)
            continue
        if size < 0:
            raise Unread("MRC-11", NEGATIVE_ARRAY)
        content, at = content_of("MRC-11", size, data, at)
        out.unknown = (*out.unknown, (tag, content))
    return out, at


def message_of(message: MessageSchema, version: int, data: bytes, at: int) -> tuple[Fields, int]:
    """A message of any version. Those below 0 have the fields of version 0, those above the highest all."""
    return fields_of(message.fields, message, max(version, 0), data, at)


# ---- writing ---------------------------------------------------------------------------------------------------------
def varint_bytes(number: int) -> bytes:
    """The shortest unsigned varint of a number of 32 bits."""
    rest = number % 2**32
    groups = [rest % 128]
    while rest := rest // 128:
        groups[-1] += 128
        groups.append(rest % 128)
    return bytes(groups)


def counted(length: int, content: bytes) -> bytes:
    return varint_bytes(length + 1) + content


@states(without=A_FORMAT)
def value_bytes(f: FieldSchema, version: int, value: Any, single: bool = False) -> bytes:
    """MRC-15: A string of more than 32767 bytes in UTF-8 is not written. One that was read may be such: where it was
    malformed, three bytes stand for one. [{GENERATED}]"""
    if value is None:
        return b"\0"
    if f.array and not single:
        return counted(len(value), b"".join(value_bytes(f, version, v, single=True) for v in value))
    match f.type:
        case "struct":
            return fields_bytes(f.fields, version, value)
        case "string":
            content = value.encode()
            if len(content) > LONGEST_STRING:
                raise Unread("MRC-15", UNCHECKED)
            return counted(len(content), content)
        case "bytes":
            return counted(len(value), value)
        case "uuid":
            return base64.urlsafe_b64decode(value + "==")
        case "bool":
            return bytes([value])
    return struct.pack(FORMS[f.type], value)


def tagged_bytes(tag: int, content: bytes) -> bytes:
    return varint_bytes(tag) + varint_bytes(len(content)) + content


@states(without=A_FORMAT)
def fields_bytes(schema: Sequence[FieldSchema], version: int, fields: Mapping[str, Any]) -> bytes:
    """MRC-13: What is written has varints as short as can be, and of the tagged fields those alone that are not the
    default, in the order of their tags, each with its size. So a record that Kafka wrote is written again as the same
    bytes. [{GENERATED}]

    MRC-14: A field that the version does not have is not written: a record in which it is not the default is refused.
    [{GENERATED}; KIP-482]
    """
    present = [f for f in schema if version in f.versions]
    if any(fields[f.name] != absent(f) for f in schema if f not in present):
        raise Unread("MRC-14", UNSUPPORTED_VERSION)
    body = b"".join(value_bytes(f, version, fields[f.name]) for f in present if f.tag is None)
    tagged = [
        (f.tag, value_bytes(f, version, fields[f.name]))
        for f in present
        if f.tag is not None and fields[f.name] != absent(f)
    ]
    unknown = fields.unknown if isinstance(fields, Fields) else ()
    tags = [tag for tag, _ in unknown]
    if any(b <= a for a, b in zip([-1, *tags], tags, strict=False)) or NO_TAG in tags:
        raise Unread("MRC-11", UNCHECKED)
    every = [*sorted(tagged), *unknown]
    return body + varint_bytes(len(every)) + b"".join(tagged_bytes(*t) for t in every)


# ---- Kafka's JSON ----------------------------------------------------------------------------------------------------
def shown(schema: Sequence[FieldSchema], version: int, fields: Mapping[str, Any]) -> dict[str, Any]:
    """What Kafka's JSON converter prints of a message."""
    out = {}
    for f in schema:
        value = fields[f.name]
        if version in f.versions and (f.tag is None or value != absent(f)):
            several = isinstance(value, list)
            out[f.name] = [shown_value(f, version, v) for v in value] if several else shown_value(f, version, value)
    return out


def shown_value(f: FieldSchema, version: int, value: Any) -> Any:
    if f.type == "struct":
        return shown(f.fields, version, value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return value


def parsed(schema: Sequence[FieldSchema], of: Mapping[str, Any]) -> Fields:
    """What a message says that Kafka's JSON converter prints so."""
    return Fields((f.name, parsed_value(f, of[f.name]) if f.name in of else absent(f)) for f in schema)


def parsed_value(f: FieldSchema, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [parsed_value(f, v) for v in value]
    if f.type == "struct":
        return parsed(f.fields, value)
    return base64.b64decode(value) if f.type == "bytes" else value


INTEGERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def is_fields(schema: Sequence[FieldSchema], of: Any) -> bool:
    """Whether it is what a JSON converter prints of such a message, of its highest version."""
    names = {f.name for f in schema}
    return (
        isinstance(of, Mapping)
        and names >= of.keys()
        and all(f.name in of or f.tag is not None for f in schema)
        and all(is_value(f, of[f.name]) for f in schema if f.name in of)
    )


def is_value(f: FieldSchema, value: Any) -> bool:
    if value is None:
        return f.nullable != NEVER
    if f.array:
        return isinstance(value, list | tuple) and all(is_single(f, v) for v in value)
    return is_single(f, value)


def is_single(f: FieldSchema, value: Any) -> bool:
    kind = type(value)
    match f.type:
        case "struct":
            return is_fields(f.fields, value)
        case "bool":
            return kind is bool
        case "string":
            return kind is str and is_text(value)
        case "bytes":
            return kind is str and is_base64(value, base64.b64decode, base64.b64encode)
        case "uuid":
            return (
                kind is str
                and len(value) == 22
                and is_base64(value + "==", base64.urlsafe_b64decode, base64.urlsafe_b64encode)
            )
        case "float64":
            return kind is float and math.isfinite(value)
        case "uint16":
            return kind is int and 0 <= value < 2**16
    return kind is int and -(2 ** INTEGERS[f.type]) <= value < 2 ** INTEGERS[f.type]


def is_text(value: str) -> bool:
    """Whether UTF-8 has every character of it."""
    return not any("\ud800" <= c <= "\udfff" for c in value)


def is_base64(text: str, decode: Callable[[str], bytes], encode: Callable[[bytes], bytes]) -> bool:
    try:
        return text.isascii() and encode(decode(text)).decode() == text
    except ValueError:
        return False


# ---- data records ----------------------------------------------------------------------------------------------------
def frame_number(data: bytes, at: int) -> Taken:
    """A number of the frame: a varint in 16 bits."""
    number, at = unsigned_varint(data, at)
    if number > 2**15 - 1:
        raise Unread("MRC-1", UNPARSED)
    return signed(number, 16), at


def read_data(value: bytes) -> tuple[MessageSchema, int, Fields]:
    """Kind, version and fields of a data record. Raises Unread."""
    frame, at = frame_number(value, 0)
    if frame != CURRENT_FRAME:
        raise Unread("MRC-1", UNPARSED)
    type, at = frame_number(value, at)
    version, at = frame_number(value, at)
    message = DATA.get(type)
    if message is None:
        raise Unread("MRC-3", UNPARSED)
    fields, at = message_of(message, version, value, at)
    if at < len(value):
        raise Unread("MRC-12", UNPARSED)
    return message, version, fields


def frame(type: int, version: int) -> bytes:
    return varint_bytes(CURRENT_FRAME) + varint_bytes(type) + varint_bytes(version)


def last_byte(headers: Sequence[Header]) -> int:
    """The last byte of a record with these headers."""
    return (headers[-1].value or b"\0")[-1] if headers else 0


@machine.question("data.decode", *(f"MRC-{n}" for n in range(2, 12)))
@states(without=A_FORMAT)
@ensure(
    lambda result: isinstance(result, Refused) or result.type in DATA,
    "MRC-3 the type is one of Kafka's",
)
@ensure(
    lambda key, value, timestamp_delta, result: (
        isinstance(result, Refused) or (key is None and bool(value) and timestamp_delta == 0)
    ),
    "MRC-16 no key, a value, the time of the batch",
)
def decode_data(
    key: bytes | None, value: bytes | None, timestamp_delta: Int64, headers: Sequence[Header]
) -> MetadataRecord | Refused:
    """What the reader of a quorum's log makes of a record.

    MRC-1: A data record's value is the frame version 1, its type and its version as unsigned varints, and the message.
    Each of the three is refused above 32767; a negative one counts by its low 16 bits, with their sign. Another frame
    version is refused. [{SERDE}; KIP-631]

    MRC-3: A type that no record of the release has is refused. [MetadataRecordType, Kafka 4.3.0]

    MRC-12: Bytes behind the message are refused. [{SERDE}]

    MRC-16: A data record of a quorum's log has a value that is not empty, no key, the timestamp of its batch, and no
    headers: its last byte, which then is their count, must be 0. Headers that end with such a byte are not noticed.
    [{ITERATOR}]
    """
    if timestamp_delta or key is not None or not value:
        return Refused("MRC-16", ILLEGAL_ARGUMENT)
    try:
        message, version, fields = read_data(value)
    except Unread as e:
        return Refused(e.clause, UNPARSED)
    if last_byte(headers):
        return Refused("MRC-16", ILLEGAL_ARGUMENT)
    return MetadataRecord(message.type, version, shown(message.fields, max(version, 0), fields))


@machine.question("data.rewrite", *(f"MRC-{n}" for n in (*range(1, 13), 15)))
@ensure(
    lambda value, result: isinstance(result, Refused) or rewritten(result) == result,
    "MRC-13 what is written is written again as the same bytes",
)
def rewrite_data(value: bytes) -> bytes | Refused:
    """What Kafka writes of a data record that it read from these bytes."""
    return rewritten(value)


def rewritten(value: bytes) -> bytes | Refused:
    try:
        message, version, fields = read_data(value)
    except Unread as e:
        return Refused(e.clause, UNPARSED)
    try:
        return frame(message.type, version) + fields_bytes(message.fields, max(version, 0), fields)
    except Unread as e:
        return Refused(e.clause, e.error)


def is_writable(record: MetadataRecord, kinds: Mapping[int, MessageSchema]) -> bool:
    """Whether it is one of these kinds, in a version of the release, with all fields."""
    message = kinds.get(record.type)
    return message is not None and 0 <= record.version <= message.highest and is_fields(message.fields, record.fields)


@machine.question("data.encode", *(f"MRC-{n}" for n in (1, 5, 9, 13, 14, 15)))
@require(lambda record: is_writable(record, DATA), "MRC-9 a record of Kafka's, with all fields")
@ensure(
    lambda record, result: isinstance(result, Refused) or read_data(result)[1] == record.version,
    "MRC-13 what is written is read",
)
def encode_data(record: MetadataRecord) -> bytes | Refused:
    """The value that Kafka writes for a record; its fields as in JSON of the highest version."""
    message = DATA[record.type]
    try:
        content = fields_bytes(message.fields, record.version, parsed(message.fields, record.fields))
    except Unread as e:
        return Refused(e.clause, e.error)
    return frame(record.type, record.version) + content


# ---- control records -------------------------------------------------------------------------------------------------
def read_control(key: bytes, value: bytes) -> tuple[MessageSchema, Fields]:
    if len(key) < 4 or key[0] > 127:
        raise Unread("MRC-17", INVALID)
    message = CONTROL.get(int.from_bytes(key[2:4], "big", signed=True))
    if message is None:
        raise Unread("MRC-17", ILLEGAL_ARGUMENT)
    return message, message_of(message, 0, value, 0)[0]


@machine.question("control.decode", *(f"MRC-{n}" for n in (*range(2, 12), 16)))
@states(without=A_FORMAT)
@ensure(lambda result: isinstance(result, Refused) or result.type in CONTROL, "MRC-17 the type is one of a quorum's")
def decode_control(key: bytes | None, value: bytes | None) -> MetadataRecord | Refused:
    """What the reader of a quorum's log makes of a record of a control batch.

    MRC-17: A control record of a quorum's log has a value, and a key of at least 4 bytes: a version that is not
    negative, and the type, both of 16 bits; what stands behind says nothing. The types are 2, leader change, 3 and 4,
    header and footer of a snapshot, 5, kraft.version, and 6, voters. Any other is refused, those of transactions too.
    [ControlRecord and ControlRecordType, Kafka 4.3.0; KIP-595, KIP-630, KIP-853]

    MRC-18: A control record's value is a message of version 0, whatever version the message says of itself. Bytes
    behind it say nothing. [ControlRecordUtils, Kafka 4.3.0]
    """
    if not key or not value:
        return Refused("MRC-16", ILLEGAL_ARGUMENT)
    try:
        message, fields = read_control(key, value)
    except Unread as e:
        return Refused(e.clause, e.error)
    return MetadataRecord(message.type, 0, shown(message.fields, 0, fields))


class ControlBytes(NamedTuple):
    """A control record."""

    key: bytes
    value: bytes


@machine.question("control.encode", *(f"MRC-{n}" for n in (5, 9, 13, 14, 15, 17, 18)))
@require(lambda record: is_writable(record, CONTROL) and record.version == 0, "MRC-18 a message of version 0")
@ensure(
    lambda result: isinstance(result, Refused) or not isinstance(decode_control(*result), Refused),
    "MRC-18 what is written is read",
)
def encode_control(record: MetadataRecord) -> ControlBytes | Refused:
    """Key and value that Kafka writes for a control record."""
    message = CONTROL[record.type]
    try:
        content = fields_bytes(message.fields, 0, parsed(message.fields, record.fields))
    except Unread as e:
        return Refused(e.clause, e.error)
    return ControlBytes(struct.pack(">hh", 0, record.type), content)
