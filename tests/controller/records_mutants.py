"""Faults of the codec of metadata records, each with the clause that it breaks."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import patch

from kafkaspec.contract.machine import Json, Refused
from kafkaspec.impl.controller import records as impl
from kafkaspec.impl.controller.records_driver import Driver
from kafkaspec.mutants.mutant import of_impl
from kafkaspec.spec.common.metadata_schemas import DATA
from kafkaspec.spec.common.record_reader import INVALID


def patched(target: Any = impl, **functions: Any) -> Callable[[], Driver]:
    """The driver with other functions, while it is called; what was compiled before is compiled again."""

    class Faulty(Driver):
        def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
            with patch.multiple(target, **functions):
                impl._structure.cache_clear()
                try:
                    return super().apply(name, arguments)
                finally:
                    impl._structure.cache_clear()

    return Faulty


_unsigned, _short, _decode = impl.Input.unsigned, impl._short, impl.decode
_read, _write, _absent, _fixed = impl._Structure.read, impl._Structure.write, impl._Structure._absent, impl.Input.fixed
_decode_control, _read_string, _record = impl.decode_control, impl._read_string, impl.decode_record


def _of_five_bytes_more(self: impl.Input) -> int:
    if self.data[self.at : self.at + 5].endswith(b"\x80"):
        self.at += 5
    return _unsigned(self)


def _without_a_sign(self: impl.Input) -> int:
    return _unsigned(self) % 2**32


def _any_frame(data: impl.Input, what: str) -> int:
    found = _short(data, what)
    return impl.FRAME if what == "frame version" else found


def _no_negative_frame(data: impl.Input, what: str) -> int:
    number = data.unsigned()
    if not 0 <= number <= 0x7FFF:
        raise data.fail("MRC-1", impl.PARSE, what)
    return number


def _unknown_types_are_no_ops(value: bytes) -> impl.Record:
    try:
        return _decode(value)
    except impl.Unreadable as e:
        if e.clause != "MRC-3":
            raise
        return impl.Record(20, 0)


def _versions_are_checked(value: bytes) -> impl.Record:
    found = _decode(value)
    if not 0 <= found.version <= found.schema.highest:
        raise impl.Unreadable("MRC-4", impl.PARSE, "version")
    return found


def _strict_bool(data: impl.Input) -> bool:
    return bool(data.fixed(impl.BYTE) == 1)


def _padded(self: impl.Input, form: Any) -> Any:
    self.data += b"\0" * max(0, form.size - self.remaining)
    return _fixed(self, form)


def _swapped(data: impl.Input) -> str:
    return base64.urlsafe_b64encode(data.fixed(impl.UUID)[::-1]).decode().rstrip("=")


def _strict_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise impl.Unreadable("MRC-6", impl.RUNTIME, "no UTF-8") from None


def _unicode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _null_is_empty(data: impl.Input) -> str:
    return _read_string(data) or ""


def _empty_is_null(data: impl.Input) -> bytes | None:
    length = data.length()
    return None if length <= 0 else data.take(length, "MRC-7")


def _short_bytes(self: impl.Input, size: int, clause: str) -> bytes:
    found = self.data[self.at : self.at + size]
    self.at += len(found)
    return found


def _null_is_an_empty_array(element: impl.Read) -> impl.Read:
    def read(data: impl.Input) -> list[Any]:
        return [element(data) for _ in range(max(0, data.length()))]

    return read


def _without_inner_tags(self: impl._Structure, data: impl.Input) -> dict[str, Any]:
    if not self.name:
        return _read(self, data)
    return {f.schema.name: f.read(data) for f in self.fields}


def _by_the_size(self: impl._Structure, data: impl.Input) -> dict[str, Any]:
    """A known tagged field ends where its size says."""
    read = impl._FieldCodec.read

    def sized(f: impl._FieldCodec, data: impl.Input) -> Any:
        if f.schema.tag is None:
            return read(f, data)
        size = data.data[data.at - 1]
        end = data.at + size
        value = read(f, data)
        data.at = end
        return value

    with patch.object(impl._FieldCodec, "read", sized):
        return _read(self, data)


def _any_tag(self: impl._Structure, data: impl.Input) -> dict[str, Any]:
    present = property(lambda f: f.schema.tag is not None or vars(f)["present"])
    with patch.object(impl._FieldCodec, "present", present, create=True):
        return _read(self, data)


def _forgets_unknown(self: impl._Structure, data: impl.Input) -> dict[str, Any]:
    found = _read(self, data)
    found.pop(impl.UNKNOWN, None)
    return found


def _garbage_is_left(value: bytes) -> impl.Record:
    try:
        return _decode(value)
    except impl.Unreadable as e:
        if e.clause != "MRC-12":
            raise
        return _decode(value[: e.at])


def _long_varints(out: bytearray, number: int) -> None:
    number &= 0xFFFFFFFF
    while number > 126:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _always(self: impl._Structure, schema: Any, fields: Mapping[str, Any]) -> bool:
    return True


def _drops(self: impl._Structure, schema: Any, value: Any) -> None:
    """What the version does not have is not written, and nobody is told."""


def _any_order(self: impl._Structure, before: int, tag: int) -> None:
    """Tags as they come."""


def _long_strings(out: bytearray, value: str) -> None:
    data = value.encode()
    impl.put_unsigned(out, len(data) + 1)
    out += data


def _counts_characters(out: bytearray, value: str) -> None:
    impl.put_unsigned(out, len(value) + 1)
    out += value.encode()


def _any_envelope(
    key: bytes | None, value: bytes | None, timestamp_delta: int = 0, last_byte: int = 0, control: bool = False
) -> impl.Record:
    return _record(key if control else None, value, 0, 0, control)


def _counts_headers(
    key: bytes | None, value: bytes | None, timestamp_delta: int = 0, last_byte: int = 0, control: bool = False
) -> impl.Record:
    return _record(key, value, timestamp_delta, 0, control)


def _whole_keys(key: bytes | None, value: bytes | None) -> impl.Record:
    if key and len(key) != impl.KEY.size:
        raise impl.Unreadable("MRC-17", INVALID, "key")
    return _decode_control(key, value)


def _version_0_keys(key: bytes | None, value: bytes | None) -> impl.Record:
    if key and value and key[:2] > b"\0\0" and key[0] < 128:
        raise impl.Unreadable("MRC-17", INVALID, "version")
    return _decode_control(key, value)


def _newest_version(record: impl.Record) -> tuple[bytes, bytes]:
    out = bytearray()
    impl._structure(True, record.type, record.schema.highest).write(out, record.fields)
    return impl.KEY.pack(0, record.type), bytes(out)


def _strict_control(key: bytes | None, value: bytes | None) -> impl.Record:
    found = _decode_control(key, value)
    if found.type == 3 and value and len(value) != 11:
        raise impl.Unreadable("MRC-18", impl.RUNTIME, "garbage")
    return found


INPUT, S = impl.Input, impl._Structure
MUTANTS = [
    of_impl("any frame", "MRC-1", "the frame version is not looked at", patched(_short=_any_frame)),
    of_impl("no negatives", "MRC-1", "negative numbers of the frame are refused", patched(_short=_no_negative_frame)),
    of_impl(
        "long varint", "MRC-2", "a varint may have more than 5 bytes", patched(INPUT, unsigned=_of_five_bytes_more)
    ),
    of_impl("unsigned", "MRC-2", "a varint has no sign", patched(INPUT, unsigned=_without_a_sign)),
    of_impl("unknown type", "MRC-3", "an unknown type is skipped", patched(decode=_unknown_types_are_no_ops)),
    of_impl("known versions", "MRC-4", "only versions of the release are read", patched(decode=_versions_are_checked)),
    of_impl("strict bool", "MRC-5", "a bool is true only if it is 1", patched(_read_bool=_strict_bool)),
    of_impl("padded", "MRC-5", "a number that is cut short is filled up", patched(INPUT, fixed=_padded)),
    of_impl("uuid reversed", "MRC-5", "a UUID is little-endian", patched(_read_uuid=_swapped)),
    of_impl("strict text", "MRC-6", "malformed UTF-8 is refused", patched(java_text=_strict_text)),
    of_impl("Unicode's marks", "MRC-6", "half a surrogate pair is three marks", patched(java_text=_unicode_text)),
    of_impl("null is empty", "MRC-6", "a string that is null is read as empty", patched(_read_string=_null_is_empty)),
    of_impl("empty is null", "MRC-7", "no bytes are read as null", patched(_read_bytes=_empty_is_null)),
    of_impl("short bytes", "MRC-7 MRC-6 MRC-11", "what is cut short ends there", patched(INPUT, take=_short_bytes)),
    of_impl(
        "null array", "MRC-8", "an array that is null is read as empty", patched(_read_array=_null_is_an_empty_array)
    ),
    of_impl("no inner tags", "MRC-9", "a structure has no tagged fields", patched(S, read=_without_inner_tags)),
    of_impl("sizes count", "MRC-10", "a known tagged field ends where its size says", patched(S, read=_by_the_size)),
    of_impl("any tag", "MRC-10", "a tag that the version lacks is read", patched(S, read=_any_tag)),
    of_impl("forgets", "MRC-11", "unknown tagged fields are dropped", patched(S, read=_forgets_unknown)),
    of_impl("any order", "MRC-11", "unknown tags are written in any order", patched(S, _rising=_any_order)),
    of_impl("garbage", "MRC-12", "bytes behind the record are left", patched(decode=_garbage_is_left)),
    of_impl("longer varints", "MRC-13", "a varint is longer than it must be", patched(put_unsigned=_long_varints)),
    of_impl("defaults too", "MRC-13", "tagged fields are always written", patched(S, _differs=_always)),
    of_impl("drops", "MRC-14", "a field that the version lacks is dropped", patched(S, _absent=_drops)),
    of_impl("long strings", "MRC-15", "a string of any length is written", patched(_put_string=_long_strings)),
    of_impl("characters", "MRC-13", "a string's length is in characters", patched(_put_string=_counts_characters)),
    of_impl("any envelope", "MRC-16", "key, time and headers are not looked at", patched(decode_record=_any_envelope)),
    of_impl("headers", "MRC-16", "headers are not looked at", patched(decode_record=_counts_headers)),
    of_impl("keys of 4 bytes", "MRC-17", "a longer key is refused", patched(decode_control=_whole_keys)),
    of_impl("keys of version 0", "MRC-17", "a later key is refused", patched(decode_control=_version_0_keys)),
    of_impl("newest version", "MRC-18", "a leader change has directory ids", patched(encode_control=_newest_version)),
    of_impl("control garbage", "MRC-18", "bytes behind a header are refused", patched(decode_control=_strict_control)),
]


# ---- what shows rarely
_java_text, _compiled = impl.java_text, impl._compiled
_put_unsigned, _put_str, _put_num = impl.put_unsigned, impl._put_string, impl._put_number


def _equal_tags_too(self: impl._Structure, before: int, tag: int) -> None:
    if tag < before or tag == impl.LAST_TAG:
        raise impl.Unwritable("MRC-11", impl.RUNTIME, "tags fall")


def _no_wrap(data: impl.Input, what: str) -> int:
    """Below 16 bits nothing is."""
    number = data.unsigned()
    if not -(2**15) <= number <= 0x7FFF:
        raise data.fail("MRC-1", impl.PARSE, what)
    return number


def _as_the_highest(type: int, version: int) -> impl._Structure:
    return _compiled(type, min(version, DATA[type].highest))


def _negative_as_the_highest(type: int, version: int) -> impl._Structure:
    return _compiled(type, DATA[type].highest if version < 0 else version)


def _fits(out: bytearray, value: str) -> None:
    """A string that is too long ends where it must."""
    _put_str(out, value.encode()[: impl.MOST_STRING_BYTES].decode("utf-8", "ignore"))


def _zero_of_java(data: bytes) -> str:
    """Its modified UTF-8."""
    return _java_text(data.replace(b"\xc0\x80", b"\0"))


def _any_length(element: impl.Read) -> impl.Read:
    """Of an array: it is found out when there is no more."""

    def read(data: impl.Input) -> list[Any] | None:
        length = data.length()
        return None if length < 0 else [element(data) for _ in range(min(length, data.remaining + 1))]

    return read


def _of_16_bits(out: bytearray, number: int) -> None:
    """A negative number is written shorter."""
    _put_unsigned(out, number if number >= 0 else number & 0xFFFF)


def _of_two_bytes(out: bytearray, number: int) -> None:
    _put_unsigned(out, number if number < 0 else number % 2**14)


def _one_byte_of_the_type(key: bytes | None, value: bytes | None) -> impl.Record:
    return _decode_control(key[:2] + b"\0" + key[3:] if key and len(key) > 3 else key, value)


def _versions_without_a_sign(key: bytes | None, value: bytes | None) -> impl.Record:
    return _decode_control(bytes([key[0] & 127]) + key[1:] if key and len(key) > 3 else key, value)


def _timestamps_before(
    key: bytes | None, value: bytes | None, timestamp_delta: int = 0, last_byte: int = 0, control: bool = False
) -> impl.Record:
    return _record(key, value, max(0, timestamp_delta), last_byte, control)


RARE = [
    of_impl("equal tags", "MRC-11", "are written", patched(S, _rising=_equal_tags_too)),
    of_impl("no more than 16 bits", "MRC-1", "below them a number is refused", patched(_short=_no_wrap)),
    of_impl("later versions", "MRC-4", "are read as the highest", patched(_compiled=_as_the_highest)),
    of_impl("negative versions", "MRC-4", "are the highest", patched(_compiled=_negative_as_the_highest)),
    of_impl("cut strings", "MRC-15", "are written of those that are too long", patched(_put_string=_fits)),
    of_impl("modified UTF-8", "MRC-6", "0 may have two bytes", patched(java_text=_zero_of_java)),
    of_impl("announced elements", "MRC-8", "are read until there is no more", patched(_read_array=_any_length)),
    of_impl("negative numbers of 16 bits", "MRC-13 MRC-2", "are written", patched(put_unsigned=_of_16_bits)),
    of_impl("varints of two bytes", "MRC-13 MRC-2", "at most", patched(put_unsigned=_of_two_bytes)),
    of_impl(
        "one byte of the type", "MRC-17", "of a control record counts", patched(decode_control=_one_byte_of_the_type)
    ),
    of_impl("key versions without a sign", "MRC-17", "are good", patched(decode_control=_versions_without_a_sign)),
    of_impl("timestamps before", "MRC-16", "the batch's are good", patched(decode_record=_timestamps_before)),
]
"""Those that show at the end of a number's range, or of one value among hundreds."""

MUTANTS += RARE
