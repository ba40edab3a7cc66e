"""The codec of metadata records: bytes of the metadata log and its snapshots, and what they say.

Whoever needs a record's bytes uses this module, `kafkaspec.impl.controller.records`:

    decode(value) -> Record             a data record: the value of a record of `__cluster_metadata-0`
    encode(record) -> bytes             what Kafka writes of it
    decode_control(key, value) -> Record    a control record: leader change, snapshot header and footer, ...
    encode_control(record) -> (key, value)
    decode_record(key, value, ...)      the same as `decode`, of a record with its key, time and headers
    parse(value) -> ParsedRecord              the same as `decode` several times faster, for whoever reads millions
    log_records(batch) -> ...           the records of a batch's bytes, as they stand
    record("TopicRecord", 0, name="t", topicId=id) -> Record    with defaults for all other fields

`Record.fields` has every field of Kafka's newest version by the name in Kafka's JSON (`brokerId`), defaults included:
int, bool, float, str, bytes, a list, a dict for a structure; a UUID is text, as Kafka prints it. `Record.json()` is
what Kafka's JSON converters print. What cannot be read or written raises `Unreadable` or `Unwritable`, both
`RecordError`, with clause, Kafka's exception and byte; nothing else is raised, and no more memory is taken than the
bytes warrant.
The kinds of records are data: `kafkaspec.spec.common.metadata_schemas`.

Each message is compiled once into functions that read and write it; for `parse`, into the text of a function.
Source: MetadataRecordSerde, ControlRecord and the generated messages, Kafka 4.3.0.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from kafkaspec.impl.storage.batch import COUNT_AT, OVERHEAD
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT
from kafkaspec.spec.common.metadata_schemas import CONTROL, DATA, FieldSchema, MessageSchema
from kafkaspec.spec.common.record_reader import INVALID, UNDERFLOW

FRAME: Final = 1
"""The one version of the frame around a data record."""
PARSE: Final = "org.apache.kafka.server.common.serialization.MetadataParseException"
RUNTIME: Final = "java.lang.RuntimeException"
UNSUPPORTED: Final = "org.apache.kafka.common.errors.UnsupportedVersionException"
NEGATIVE_SIZE: Final = "java.lang.NegativeArraySizeException"
UNKNOWN: Final = "_unknownTaggedFields"
"""The key in fields under which tagged fields stand that the schema does not have: tag and bytes of each."""
MOST_STRING_BYTES: Final = 0x7FFF
"""Bytes of a string, at most."""
LAST_TAG: Final = 2**31 - 1
KEY: Final = struct.Struct(">hh")
"""A control record's key: version and type."""


class RecordError(Exception):
    """A record that Kafka refuses."""

    def __init__(self, clause: str, error: str, message: str, at: int = 0) -> None:
        super().__init__(message)
        self.clause, self.error, self.at = clause, error, at


class Unreadable(RecordError):
    """Bytes that are no record; `at` is the byte at which it shows."""


class Unwritable(RecordError):
    """A record that Kafka does not write."""


@dataclass(frozen=True)
class Record:
    """A record: its kind, its version, and what it says."""

    type: int
    """API key, or ControlRecordType"""
    version: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    control: bool = False

    @property
    def schema(self) -> MessageSchema:
        return (CONTROL if self.control else DATA)[self.type]

    @property
    def name(self) -> str:
        """PartitionChangeRecord, LeaderChangeMessage, ..."""
        return self.schema.name

    def json(self) -> dict[str, Any]:
        """As Kafka's JSON converters print it: tagged fields only where they are not the default, bytes in base64."""
        return _shown(self.fields, self.schema.fields, max(self.version, 0))


def record(name: str, version: int | None = None, /, **fields: Any) -> Record:
    """A record of that name with these fields, the defaults for all others; the highest version if none is given.
    Raises KeyError if there is no such record, or no such field."""
    control, schema = _by_name()[name]
    known = {f.name for f in schema.fields}
    if not known.issuperset(fields):
        raise KeyError(f"{name} has no field {', '.join(sorted(fields.keys() - known))}")
    highest = 0 if control else schema.highest
    return Record(schema.type, highest if version is None else version, _defaults(schema.fields) | fields, control)


@cache
def _by_name() -> Mapping[str, tuple[bool, MessageSchema]]:
    return {s.name: (control, s) for control, them in ((False, DATA), (True, CONTROL)) for s in them.values()}


def _defaults(schema: tuple[FieldSchema, ...]) -> dict[str, Any]:
    return {f.name: default(f) for f in schema}


def default(f: FieldSchema) -> Any:
    """What a field says where it is absent."""
    if f.array:
        return None if f.default is None else []
    if f.type == "struct":
        return _defaults(f.fields)
    return b"" if f.type == "bytes" and f.default is not None else f.default


# ---- Kafka's JSON ----------------------------------------------------------------------------------------------------
INFINITE: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


def _shown(fields: Mapping[str, Any], schema: tuple[FieldSchema, ...], version: int) -> dict[str, Any]:
    return {
        f.name: _json(f, value, version)
        for f in schema
        if version in f.versions and ((value := fields[f.name]) != default(f) or f.tag is None)
    }


def _json(f: FieldSchema, value: Any, version: int) -> Any:
    if isinstance(value, list):
        return [_json_one(f, v, version) for v in value]
    return _json_one(f, value, version)


def _json_one(f: FieldSchema, value: Any, version: int) -> Any:
    if f.type == "struct":
        return _shown(value, f.fields, version)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return INFINITE.get(value, "NaN")
    return value


def from_json(type: int, version: int, shown: Mapping[str, Any], control: bool = False) -> Record:
    """The record that Kafka's JSON prints so."""
    schema = (CONTROL if control else DATA)[type]
    return Record(type, version, _parsed(shown, schema.fields), control)


def _parsed(shown: Mapping[str, Any], schema: tuple[FieldSchema, ...]) -> dict[str, Any]:
    return {f.name: _parsed_value(f, shown[f.name]) if f.name in shown else default(f) for f in schema}


def _parsed_value(f: FieldSchema, value: Any) -> Any:
    if isinstance(value, list):
        return [_parsed_one(f, v) for v in value]
    return _parsed_one(f, value)


def _parsed_one(f: FieldSchema, value: Any) -> Any:
    if value is None:
        return None
    if f.type == "struct":
        return _parsed(value, f.fields)
    if f.type == "bytes":
        return base64.b64decode(value)
    return float(value) if f.type == "float64" else value


# ---- bytes -----------------------------------------------------------------------------------------------------------
SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Bytes of half a character of two, for which Java has one mark and Python several."""
MARK = "\N{REPLACEMENT CHARACTER}".encode()


def java_text(data: bytes) -> str:
    """The text that Java makes of bytes in UTF-8, of malformed ones too. [MRC-6]"""
    return SURROGATE.sub(MARK, data).decode("utf-8", "replace")


class Input:
    """Bytes that are read from front to back."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    @property
    def remaining(self) -> int:
        return len(self.data) - self.at

    def fail(self, clause: str, error: str, message: str) -> Unreadable:
        return Unreadable(clause, error, message, self.at)

    def unsigned(self) -> int:
        """A varint, with the sign that 32 bits give it. [MRC-2]"""
        number = 0
        for n, byte in enumerate(self.data[self.at : self.at + 5]):
            number |= (byte & 127) << (7 * n)
            if byte < 128:
                self.at += n + 1
                number &= 0xFFFFFFFF
                return number - (number >> 31 << 32)
        if self.remaining < 5:
            raise self.fail("MRC-2", UNDERFLOW, "a varint that is cut short")
        raise self.fail("MRC-2", ILLEGAL_ARGUMENT, "a varint of more than 5 bytes")

    def length(self) -> int:
        """Of a string, bytes or an array: the varint less 1, in 32 bits; negative: null. [MRC-2]"""
        return (self.unsigned() - 1 + 2**31) % 2**32 - 2**31

    def fixed(self, form: struct.Struct) -> Any:
        """A number of a fixed size. [MRC-5]"""
        if form.size > self.remaining:
            raise self.fail("MRC-5", UNDERFLOW, f"{self.remaining} bytes where {form.size} belong")
        self.at += form.size
        return form.unpack_from(self.data, self.at - form.size)[0]

    def take(self, size: int, clause: str) -> bytes:
        if size > self.remaining:
            raise self.fail(clause, RUNTIME, f"{size} bytes announced, and {self.remaining} there")
        self.at += size
        return self.data[self.at - size : self.at]


Read = Callable[[Input], Any]
Write = Callable[[bytearray, Any], None]


def put_unsigned(out: bytearray, number: int) -> None:
    """A varint, as short as it can be. [MRC-13]"""
    number &= 0xFFFFFFFF
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


# ---- one field -------------------------------------------------------------------------------------------------------
NUMBERS: Final = {
    t: struct.Struct(f">{c}")
    for t, c in {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint16": "H", "float64": "d"}.items()
}
UUID: Final = struct.Struct(">16s")
BYTE: Final = struct.Struct(">b")


def _read_number(form: struct.Struct) -> Read:
    return lambda data: data.fixed(form)


def _read_bool(data: Input) -> bool:
    """[MRC-5]"""
    return bool(data.fixed(BYTE) != 0)


def _read_uuid(data: Input) -> str:
    """[MRC-5]"""
    return base64.urlsafe_b64encode(data.fixed(UUID)).decode().rstrip("=")


def _read_string(data: Input) -> str | None:
    """[MRC-6]"""
    length = data.length()
    if length < 0:
        return None
    if length > MOST_STRING_BYTES:
        raise data.fail("MRC-6", RUNTIME, f"a string of {length} bytes")
    return java_text(data.take(length, "MRC-6"))


def _read_bytes(data: Input) -> bytes | None:
    """[MRC-7]"""
    length = data.length()
    return None if length < 0 else data.take(length, "MRC-7")


def _read_array(element: Read) -> Read:
    def read(data: Input) -> list[Any] | None:
        """[MRC-8]"""
        length = data.length()
        if length < 0:
            return None
        if length > data.remaining:
            raise data.fail("MRC-8", RUNTIME, f"{length} elements announced, and {data.remaining} bytes there")
        return [element(data) for _ in range(length)]

    return read


def _put_number(form: struct.Struct) -> Write:
    def put(out: bytearray, value: Any) -> None:
        out += form.pack(value)

    return put


def _put_uuid(out: bytearray, value: str) -> None:
    out += base64.urlsafe_b64decode(value + "==")


def _put_string(out: bytearray, value: str) -> None:
    """[MRC-15]"""
    data = value.encode()
    if len(data) > MOST_STRING_BYTES:
        raise Unwritable("MRC-15", RUNTIME, f"a string of {len(data)} bytes")
    put_unsigned(out, len(data) + 1)
    out += data


def _put_bytes(out: bytearray, value: bytes) -> None:
    put_unsigned(out, len(value) + 1)
    out += value


def _put_array(element: Write) -> Write:
    def put(out: bytearray, value: list[Any]) -> None:
        put_unsigned(out, len(value) + 1)
        for v in value:
            element(out, v)

    return put


NULL_CLAUSES: Final = {"string": "MRC-6", "bytes": "MRC-7"}


def _codec(f: FieldSchema, highest: int, version: int) -> tuple[Read, Write]:
    """How a field's value is read and written, null aside."""
    if f.type == "struct":
        message = _Structure(f.fields, f.structure, highest, version)
        one: tuple[Read, Write] = message.read, message.write
    elif f.type in NUMBERS:
        one = _read_number(NUMBERS[f.type]), _put_number(NUMBERS[f.type])
    else:
        others: Mapping[str, tuple[Read, Write]] = {
            "bool": (_read_bool, _put_number(BYTE)),
            "uuid": (_read_uuid, _put_uuid),
            "string": (_read_string, _put_string),
            "bytes": (_read_bytes, _put_bytes),
        }
        one = others[f.type]
    return (_read_array(one[0]), _put_array(one[1])) if f.array else one


@dataclass(frozen=True)
class _FieldCodec:
    """A field of one version of a message, compiled."""

    schema: FieldSchema
    present: bool
    nullable: bool
    reads: Read
    writes: Write

    def read(self, data: Input) -> Any:
        value = self.reads(data)
        if value is None and not self.nullable:
            clause = "MRC-8" if self.schema.array else NULL_CLAUSES[self.schema.type]
            raise data.fail(clause, RUNTIME, f"{self.schema.name} is null")
        return value

    def write(self, out: bytearray, value: Any) -> None:
        if value is None:
            out.append(0)
        else:
            self.writes(out, value)


class _Structure:
    """A message of one version, or a structure in it, compiled."""

    def __init__(self, schema: tuple[FieldSchema, ...], name: str, highest: int, version: int) -> None:
        self.name, self.too_high = name, bool(name) and version > highest
        self.version = version
        self.fields = [
            _FieldCodec(f, version in f.versions, version in f.nullable, *_codec(f, highest, version)) for f in schema
        ]
        self.tagged = {f.schema.tag: f for f in self.fields if f.schema.tag is not None}

    def read(self, data: Input) -> dict[str, Any]:
        """[MRC-9]"""
        if self.too_high:
            raise data.fail("MRC-4", UNSUPPORTED, f"version {self.version} has no {self.name}")
        fields = {
            f.schema.name: f.read(data) if f.present and f.schema.tag is None else default(f.schema)
            for f in self.fields
        }
        unknown: list[tuple[int, bytes]] = []
        for _ in range(data.unsigned()):
            tag, size = data.unsigned(), data.unsigned()
            known = self.tagged.get(tag)
            if known is None:
                unknown.append((tag, self._unknown(data, size)))
            elif known.present:
                fields[known.schema.name] = known.read(data)
            else:
                raise data.fail("MRC-10", RUNTIME, f"version {self.version} has no tag {tag}")
        if unknown:
            fields[UNKNOWN] = unknown
        return fields

    def _unknown(self, data: Input, size: int) -> bytes:
        """[MRC-11]"""
        if size < 0:
            raise data.fail("MRC-11", NEGATIVE_SIZE, f"a tagged field of {size} bytes")
        return data.take(size, "MRC-11")

    def write(self, out: bytearray, fields: Mapping[str, Any]) -> None:
        """[MRC-13]"""
        for f in self.fields:
            value = fields[f.schema.name]
            if not f.present:
                self._absent(f.schema, value)
            elif f.schema.tag is None:
                f.write(out, value)
        tagged = [(f.schema.tag, f) for f in self.tagged.values() if f.present and self._differs(f.schema, fields)]
        unknown = fields.get(UNKNOWN, ())
        put_unsigned(out, len(tagged) + len(unknown))
        for tag, f in sorted(tagged, key=lambda t: t[0] or 0):
            inner = bytearray()
            f.write(inner, fields[f.schema.name])
            self._put_tagged(out, tag or 0, bytes(inner))
        before = -1
        for tag, content in unknown:
            self._rising(before, tag)
            self._put_tagged(out, tag, content)
            before = tag

    def _absent(self, schema: FieldSchema, value: Any) -> None:
        """[MRC-14]"""
        if value != default(schema):
            raise Unwritable("MRC-14", UNSUPPORTED, f"version {self.version} has no {schema.name}")

    def _differs(self, schema: FieldSchema, fields: Mapping[str, Any]) -> bool:
        return bool(fields[schema.name] != default(schema))

    def _rising(self, before: int, tag: int) -> None:
        """[MRC-11]"""
        if tag <= before or tag == LAST_TAG:
            raise Unwritable("MRC-11", RUNTIME, f"tag {tag} behind tag {before}")

    def _put_tagged(self, out: bytearray, tag: int, content: bytes) -> None:
        put_unsigned(out, tag)
        put_unsigned(out, len(content))
        out += content


@cache
def _structure(control: bool, type: int, version: int) -> _Structure:
    schema = (CONTROL if control else DATA)[type]
    return _Structure(schema.fields, "", schema.highest, version)


def _compiled(type: int, version: int) -> _Structure:
    """Of a data record. Versions above the highest are alike, and so are those below 0. [MRC-4]"""
    return _structure(False, type, max(0, min(version, DATA[type].highest + 1)))


# ---- data records ----------------------------------------------------------------------------------------------------
def decode(value: bytes) -> Record:
    """A data record, of its whole value. Raises Unreadable. [MRC-1, MRC-3, MRC-4, MRC-12]"""
    data = Input(value)
    try:
        frame = _short(data, "frame version")
        if frame != FRAME:
            raise data.fail("MRC-1", PARSE, f"frame version {frame}")
        type, version = _short(data, "type"), _short(data, "version")
        if type not in DATA:
            raise data.fail("MRC-3", PARSE, f"no record has type {type}")
        fields = _compiled(type, version).read(data)
        if data.remaining:
            raise data.fail("MRC-12", PARSE, f"{data.remaining} bytes behind the record")
    except Unreadable as e:
        raise Unreadable(e.clause, PARSE, str(e), e.at) from None
    return Record(type, version, fields)


def _short(data: Input, what: str) -> int:
    """A number of the frame, in 16 bits. [MRC-1]"""
    number = data.unsigned()
    if number > 0x7FFF:
        raise data.fail("MRC-1", PARSE, f"{what} {number}")
    return in_16_bits(number)


def in_16_bits(number: int) -> int:
    """[MRC-1]"""
    return (number + 2**15) % 2**16 - 2**15


def encode(record: Record) -> bytes:
    """The value that Kafka writes for a data record. Raises Unwritable. [MRC-1, MRC-13]"""
    out = bytearray()
    for number in (FRAME, record.type, record.version):
        put_unsigned(out, number)
    _compiled(record.type, record.version).write(out, record.fields)
    return bytes(out)


def decode_record(
    key: bytes | None, value: bytes | None, timestamp_delta: int = 0, last_byte: int = 0, control: bool = False
) -> Record:
    """A record as the reader of a quorum's log takes it. `timestamp_delta`: to its batch; `last_byte`: of the record,
    which is 0 where it has no headers. Raises Unreadable. [MRC-16]"""
    if timestamp_delta:
        raise Unreadable("MRC-16", ILLEGAL_ARGUMENT, f"a timestamp {timestamp_delta} ms off its batch's")
    if control:
        found = decode_control(key, value)
    elif key is not None:
        raise Unreadable("MRC-16", ILLEGAL_ARGUMENT, "a data record with a key")
    else:
        found = decode(_content(value, "value"))
    if last_byte:
        raise Unreadable("MRC-16", ILLEGAL_ARGUMENT, "a record with headers")
    return found


def _content(data: bytes | None, what: str) -> bytes:
    """[MRC-16]"""
    if not data:
        raise Unreadable("MRC-16", ILLEGAL_ARGUMENT, f"a record without a {what}")
    return data


# ---- control records -------------------------------------------------------------------------------------------------
def decode_control(key: bytes | None, value: bytes | None) -> Record:
    """A control record of a quorum's log. Raises Unreadable. [MRC-17, MRC-18]"""
    key, value = _content(key, "key"), _content(value, "value")
    if len(key) < KEY.size:
        raise Unreadable("MRC-17", INVALID, f"a control record's key of {len(key)} bytes")
    version, type = KEY.unpack_from(key)
    if version < 0:
        raise Unreadable("MRC-17", INVALID, f"a control record's key of version {version}")
    if type not in CONTROL:
        raise Unreadable("MRC-17", ILLEGAL_ARGUMENT, f"control record type {type}")
    return Record(type, 0, _structure(True, type, 0).read(Input(value)), control=True)


def encode_control(record: Record) -> tuple[bytes, bytes]:
    """Key and value of a control record. Raises Unwritable. [MRC-17, MRC-18]"""
    out = bytearray()
    _structure(True, record.type, 0).write(out, record.fields)
    return KEY.pack(0, record.type), bytes(out)


# ---- many records ----------------------------------------------------------------------------------------------------
class ParsedRecord(NamedTuple):
    """A data record, as in `Record`."""

    type: int
    version: int
    fields: dict[str, Any]


class _Odd(ValueError):
    """Bytes that the quick reader leaves to the exact one."""


QUICK_FAILURES: Final = (_Odd, IndexError, struct.error, UnicodeDecodeError)
Quick = Callable[[bytes, int], tuple[dict[str, Any], int]]


def parse(value: bytes) -> ParsedRecord:
    """The same as `decode`. What is not as Kafka writes it goes to that one, which says what it is. [MRC-1, MRC-3]"""
    try:
        frame, type, version = value[0], value[1], value[2]
        if frame != FRAME:
            raise _Odd
        fields, at = _quick(type, version)(value, 3)  # a byte of a longer number is above every type and version
        if at == len(value):
            return ParsedRecord(type, version, fields)
    except QUICK_FAILURES:
        pass
    found = decode(value)
    return ParsedRecord(found.type, found.version, dict(found.fields))


@lru_cache(maxsize=1 << 16)
def _uuid_text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _longer(data: bytes, at: int) -> tuple[int, int]:
    """A varint of more than a byte, without a sign, and the byte behind it."""
    source = Input(data)
    source.at = at
    try:
        number = source.unsigned()
    except Unreadable:
        raise _Odd from None
    if number < 0:
        raise _Odd
    return number, source.at


@cache
def _quick(type: int, version: int) -> Quick:
    """The reader of a message of one version of the release."""
    schema = DATA.get(type)
    if schema is None or version > schema.highest:
        raise _Odd
    text = _Text(version)
    name = text.structure(schema.fields)
    names = {"base": base64, "longer": _longer, "Odd": _Odd, "uuid": _uuid_text, "unpack": struct.unpack_from}
    exec(compile("\n".join(text.lines), f"<{schema.name} {version}>", "exec"), names)
    made: Quick = names[name]  # type: ignore[assignment]
    return made


class _Text:
    """Writes functions that read structures of one version: one each, in `lines`. Of what they read `d` are the bytes,
    `at` is the place."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.lines: list[str] = []
        self.count = 0

    def structure(self, schema: tuple[FieldSchema, ...]) -> str:
        """Writes the function of a structure. Its name. [MRC-9, MRC-10, MRC-11]"""
        present = [(n, f) for n, f in enumerate(schema) if self.version in f.versions]
        inner = {n: self.structure(f.fields) for n, f in present if f.type == "struct"}
        body = [f"f{n} = {default(f)!r}" for n, f in enumerate(schema) if f.tag is not None or (n, f) not in present]
        for n, f in present:
            if f.tag is None:
                body += self.value(n, f, inner.get(n, ""))
        body += self.length("tags")
        body += ["for _ in range(tags):"]
        for line in (*self.length("tag"), *self.length("size")):
            body.append("    " + line)
        word = "if"
        for n, f in present:
            if f.tag is not None:
                body.append(f"    {word} tag == {f.tag}:")
                body += ["        " + line for line in self.value(n, f, inner.get(n, ""))]
                word = "elif"
        body += ["    raise Odd"] if word == "if" else ["    else:", "        raise Odd"]
        shown = ", ".join(f"{f.name!r}: f{n}" for n, f in enumerate(schema))
        name = f"read{self.count}"
        self.count += 1
        self.lines += [f"def {name}(d, at):", *("    " + line for line in body), f"    return {{{shown}}}, at"]
        return name

    def length(self, name: str) -> list[str]:
        """[MRC-2]"""
        return [f"{name} = d[at]", "at += 1", f"if {name} > 127:", f"    {name}, at = longer(d, at - 1)"]

    def value(self, n: int, f: FieldSchema, structure: str) -> list[str]:
        """Reads a field into `f<n>`. [MRC-5, MRC-6, MRC-7, MRC-8]"""
        if not f.array:
            return self.single(f"f{n}", f, structure)
        null = [f"    f{n} = None" if self.version in f.nullable else "    raise Odd"]
        head = [*self.length("count"), "if count == 0:", *null, "else:", "    count -= 1"]
        if f.type in NUMBERS:
            form = NUMBERS[f.type].format[1:]
            size = NUMBERS[f.type].size
            return [*head, f"    f{n} = list(unpack(f'>{{count}}{form}', d, at))", f"    at += {size} * count"]
        each = ["    " * 2 + line for line in self.single("x", f, structure)]
        return [
            *head, "    if count > len(d) - at: raise Odd", f"    f{n} = []", "    for _ in range(count):", *each,
            f"        f{n}.append(x)",
        ]  # fmt: skip

    def single(self, to: str, f: FieldSchema, structure: str) -> list[str]:
        if f.type == "struct":
            return [f"{to}, at = {structure}(d, at)"]
        if f.type in NUMBERS:
            form = NUMBERS[f.type]
            return [f"{to}, = unpack({form.format!r}, d, at)", f"at += {form.size}"]
        if f.type == "bool":
            return [f"{to} = d[at] != 0", "at += 1"]
        if f.type == "uuid":
            return ["if at + 16 > len(d): raise Odd", f"{to} = uuid(d[at:at + 16])", "at += 16"]
        read = "d[at:at + n].decode()" if f.type == "string" else "d[at:at + n]"
        null = [f"    {to} = None" if self.version in f.nullable else "    raise Odd"]
        return [
            *self.length("n"), "if n == 0:", *null, "else:", "    n -= 1",
            f"    if n > {MOST_STRING_BYTES if f.type == 'string' else LAST_TAG} or at + n > len(d): raise Odd",
            f"    {to} = {read}", "    at += n",
        ]  # fmt: skip


class LogRecord(NamedTuple):
    """A record of a batch's bytes. `at`: where its value begins in the batch, or its key, if it has no value."""

    delta: int
    """of its offset to the batch's"""
    timestamp_delta: int
    key: bytes | None
    value: bytes | None
    at: int
    last_byte: int
    """0 of a record without headers"""


def log_records(batch: bytes) -> Iterator[LogRecord]:
    """The records of a batch of format 2 that is sound and not compressed: of such bytes alone the answer means
    anything."""
    at = OVERHEAD
    for _ in range(int.from_bytes(batch[COUNT_AT:OVERHEAD], "big")):
        length, at = _signed_varint(batch, at)
        end = at + length
        if batch[at + 1] or batch[at + 2] > 127 or batch[at + 3] != NO_KEY:
            timestamp_delta, at = _signed_varint(batch, at + 1)
            delta, at = _signed_varint(batch, at)
            size, at = _signed_varint(batch, at)
            place = at
            key = None if size < 0 else batch[at : at + size]
            at += max(size, 0)
        else:  # as most records are: of the batch's time, without a key
            timestamp_delta, delta, key = 0, batch[at + 2] >> 1, None
            at = place = at + 4
        size, at = _signed_varint(batch, at)
        value = None if size < 0 else batch[at : at + size]
        yield LogRecord(delta, timestamp_delta, key, value, place if value is None else at, batch[end - 1])
        at = end


NO_KEY: Final = 1
"""A length of -1, as a varint."""


def _signed_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of a record of format 2, and the byte behind it."""
    byte = data[at]
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at + 1
    number, shift = byte & 127, 7
    while True:
        at += 1
        byte = data[at]
        number |= (byte & 127) << shift
        if byte < 128:
            return (number >> 1) ^ -(number & 1), at + 1
        shift += 7
