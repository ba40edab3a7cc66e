"""Faults of the validator, each with the clauses that it breaks."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from crc32c import crc32c

from kafkaspec.impl.storage import batch as v2
from kafkaspec.impl.storage import validator as impl
from kafkaspec.impl.storage.validator import Entry, InvalidRecords, Row, Validator
from kafkaspec.impl.storage.validator_driver import Driver
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import Mutant, of_impl, with_fault
from kafkaspec.spec.common.compression import decompress
from kafkaspec.spec.common.record_reader import CORRUPT, INVALID
from kafkaspec.spec.storage import validator as spec


def _of(kind: type[Validator]) -> type[Driver]:
    """A driver of a faulty validator."""

    class Of(Driver):
        make = kind

    return Of


def _with(**functions: Any) -> type[Driver]:
    """A driver beside which functions or classes of the module are others."""

    class With(Driver):
        def validate(self, **asked: Any) -> spec.ValidationResult:
            with patch.multiple(impl, **functions):
                return super().validate(**asked)

    return With


# ---- formats 0 and 1
_message, _set, _put, _entries = impl.old_message, impl.old_set, impl.put_old, impl.entries


def _null_is_empty(data: bytes) -> Row:
    r = _message(data)
    return r._replace(key=r.key or b"")


def _times_of_42_bits(data: bytes) -> Row:
    r = _message(data)
    return r._replace(timestamp=signed(r.timestamp, 42))


def _cut_is_wrong(data: bytes) -> Iterator[Row]:
    """A message that is cut is no end."""
    found = list(_set(data))
    if sum(r.size for r in found) < len(data):
        raise InvalidRecords("VAL-2")
    yield from found


def _zeroes_are_messages(data: bytes) -> Iterator[Row]:
    """A size that is too small ends a set."""
    try:
        yield from _set(data)
    except InvalidRecords:
        return


def _right_lz4(codec: int, magic: int, value: bytes) -> bytes:
    """The checksum of the header of an LZ4 frame is compared in every format."""
    try:
        return decompress(codec, value)
    except ValueError:
        raise InvalidRecords("VAL-2") from None


class TypesOfTheirOwn(Entry):
    """Whether a message has LogAppendTime is said by itself."""

    def _old_rows(self, wrapper: Row) -> list[Row]:
        rows = super()._old_rows(wrapper)
        self.appended = self.appended and self.magic == 1 and bool(rows[0].raw[17] & 8)
        return rows


class AsTheyStand(Entry):
    """Offsets inside a wrapper are absolute in every format."""

    def _old_rows(self, wrapper: Row) -> list[Row]:
        return super()._old_rows(wrapper._replace(offset=0))


class NoZero(Entry):
    """A wrapper's offset of 0 is one as any other."""

    def _old_rows(self, wrapper: Row) -> list[Row]:
        rows = super()._old_rows(wrapper)
        if self.magic == 1 and wrapper.offset == 0 and rows[-1].offset > 0:
            raise InvalidRecords("VAL-2")
        return rows


class AnyWrapper(Entry):
    """A wrapper's offset below that of its last message is taken."""

    def _old_rows(self, wrapper: Row) -> list[Row]:
        try:
            return super()._old_rows(wrapper)
        except InvalidRecords as e:
            if e.error != INVALID or e.words or self.magic == 0 or wrapper.value is None or self.codec == 4:
                raise
            return super()._old_rows(wrapper._replace(offset=0))


class ZstdToo(Entry):
    """A wrapper may be compressed by zstd."""

    def _old_rows(self, wrapper: Row) -> list[Row]:
        with patch.object(impl, "OLD_CODECS", (1, 2, 3, 4)):
            return super()._old_rows(wrapper)


class SizesAsWritten(Entry):
    """A record's size is that of what follows its length."""

    def _new_rows(self, header: v2.Lenient) -> list[Row]:
        return [r._replace(size=r.size - 1) for r in super()._new_rows(header)]


# ---- what is asked
class FirstCodec(Validator):
    """The codec of the records is that of the first batch."""

    def run(self) -> bytes:
        with patch.object(impl, "entries", self.hidden):
            return super().run()

    @staticmethod
    def hidden(data: bytes) -> Iterator[Entry]:
        found = list(_entries(data))
        for e in found[1:]:
            e.codec = found[0].codec
        yield from found


class TheFirstBatch(Validator):
    """Batches behind one of format 2 are left out."""

    def run(self) -> bytes:
        try:
            return super().run()
        except InvalidRecords as e:
            found = list(_entries(self.records)) if e.clause == "VAL-5" else []
            if not found:
                raise
            self.records = found[0].data
            return super().run()


class NothingIsTaken(Validator):
    """No batch is no fault."""

    def run(self) -> bytes:
        if not list(_entries(self.records)):
            self.next_offset = self.offset
            return self.records
        return super().run()


class AnyMagic(Validator):
    """Formats may be mixed."""

    def asked(self, first: Entry, entry: Entry, converts: bool) -> list[Row]:
        return super().asked(entry, entry, converts)


class EverybodyIsAClient(Validator):
    """A coordinator is asked what a client is."""

    def __init__(self, **asked: Any) -> None:
        super().__init__(**{**asked, "origin": "CLIENT"})


class OnlyCoordinators(Validator):
    """Who is not a coordinator is a client."""

    def __init__(self, **asked: Any) -> None:
        super().__init__(**{**asked, "origin": "CLIENT" if asked["origin"] != "COORDINATOR" else "COORDINATOR"})


def _checking(skip: Callable[[v2.Lenient], bool]) -> type[Validator]:
    """A header of this kind is taken."""

    class Checking(Validator):
        def check_header(self, h: v2.Lenient) -> None:
            if not skip(h):
                super().check_header(h)

    return Checking


class CountFirst(Validator):
    """The count is asked before the offset range."""

    def check_header(self, h: v2.Lenient) -> None:
        if h.count < 1:
            self.met("invalid_offset")
            words = f"Invalid reported count for record batch: {h.count}"
            raise InvalidRecords("BAT-20", INVALID, words + spec.IN)
        super().check_header(h)


class OldProducers(Validator):
    """An idempotent producer is taken in every format."""

    def asked(self, first: Entry, entry: Entry, converts: bool) -> list[Row]:
        try:
            return super().asked(first, entry, converts)
        except InvalidRecords as e:
            if e.clause != "VAL-8" or entry.transactional:
                raise
            return entry.rows()


def _row(change: Callable[[Validator, Entry, Row], str | bool | None]) -> type[Validator]:
    """A record is asked otherwise; True: as it should be."""

    class Asking(Validator):
        def record_error(self, entry: Entry, r: Row) -> str | None:
            said = change(self, entry, r)
            return super().record_error(entry, r) if said is True else said  # type: ignore[return-value]

    return Asking


def _takes_other_magic(v: Validator, entry: Entry, r: Row) -> bool | None:
    return True if r.magic == entry.magic or r.raw[17] & 7 else None


def _takes_nested(v: Validator, entry: Entry, r: Row) -> bool | None:
    return not (r.raw and entry.codec and r.raw[17] & 7) or None


def _no_crc(v: Validator, entry: Entry, r: Row) -> Any:
    if r.raw and entry.codec and r.magic == entry.magic:
        right = bytearray(r.raw)
        struct.pack_into(">I", right, 12, zlib.crc32(r.raw[16:]))
        return Validator.record_error(v, entry, r._replace(raw=bytes(right)))
    return True


def _first_crc(v: Validator, entry: Entry, r: Row) -> Any:
    return True if r.offset == 0 else _no_crc(v, entry, r)


def _every_crc(v: Validator, entry: Entry, r: Row) -> bool:
    """The CRC of a message that is not compressed is compared too."""
    if r.raw and not entry.codec and int.from_bytes(r.raw[12:16], "big") != zlib.crc32(r.raw[16:]):
        raise InvalidRecords("VAL-10", CORRUPT)
    return True


def _none_is_old(v: Validator, entry: Entry, r: Row) -> Any:
    """A record without a timestamp is one of 1970."""
    return Validator.record_error(v, entry, r._replace(timestamp=0 if r.timestamp == -1 else r.timestamp))


def _within_alone(v: Validator, entry: Entry, r: Row) -> bool | str:
    """What is as old as the limit allows is too old."""
    late = not v.append_time and r.timestamp != -1 and v.now - r.timestamp == v.before
    return "BAT-22" if late and not (v.compacted and r.key is None) else True


def _limit_is_added(v: Validator, entry: Entry, r: Row) -> bool | str:
    """The limit is added to now, and wraps."""
    wraps = not v.append_time and r.timestamp != -1 and v.now + v.after >= 2**63
    return "BAT-22" if wraps and not (v.compacted and r.key is None) else True


def _key_of_format_2(v: Validator, entry: Entry, r: Row) -> Any:
    """Keys are asked for in format 2 alone."""
    return Validator.record_error(v, entry, r._replace(key=r.key or b"")) if r.raw else True


def _bounded_by_append_time(v: Validator, entry: Entry, r: Row) -> Any:
    """Whether a producer set LogAppendTime is asked where its timestamp is not compared alone."""
    if entry.appended and not v.append_time and r.timestamp != -1:
        entry.appended = False
        try:
            return Validator.record_error(v, entry, r)
        finally:
            entry.appended = True
    return True


class OneError(Validator):
    """The first record in error is named alone."""

    def asked(self, first: Entry, entry: Entry, converts: bool) -> list[Row]:
        try:
            return super().asked(first, entry, converts)
        except InvalidRecords as e:
            if e.words and ": records [" in e.words:
                e.words = e.words.split(",")[0].rstrip("]") + "]"
            raise


class ThreeErrors(Validator):
    """Three records in error are named at most."""

    def asked(self, first: Entry, entry: Entry, converts: bool) -> list[Row]:
        try:
            return super().asked(first, entry, converts)
        except InvalidRecords as e:
            if e.words and ": records [" in e.words:
                e.words = ", ".join(e.words.split(", ")[:3]).rstrip("]") + "]"
            raise


class PlacesOverAll(Validator):
    """Places are counted over all batches."""

    before_it = 0

    def asked(self, first: Entry, entry: Entry, converts: bool) -> list[Row]:
        try:
            rows = super().asked(first, entry, converts)
        except InvalidRecords as e:
            if e.words and e.words.endswith(": records [0]"):
                e.words = e.words.replace("[0]", f"[{self.before_it}]")
            raise
        self.before_it += len(rows)
        return rows


class CauseOfTheFirst(Validator):
    """The cause is that of the first record in error."""

    firsts: str | None = None

    def record_error(self, entry: Entry, r: Row) -> str | None:
        said = super().record_error(entry, r)
        self.firsts = self.firsts or said
        return said and self.firsts


# ---- in place
class AlwaysInOrder(Validator):
    """Offsets inside a compressed batch are not looked at."""

    @staticmethod
    def in_order(rows: list[Row]) -> bool:
        return True


class FirstInOrder(Validator):
    """The first offset is looked at."""

    @staticmethod
    def in_order(rows: list[Row]) -> bool:
        return not rows or rows[0].offset == 0


class LastInOrder(Validator):
    """The last offset is looked at."""

    @staticmethod
    def in_order(rows: list[Row]) -> bool:
        return not rows or rows[-1].offset == len(rows) - 1


class Recompressed(Validator):
    """A control batch is compressed for a topic with a codec."""

    def run(self) -> bytes:
        class Data(Entry):
            control = False

        with patch.object(impl, "Entry", Data):
            return super().run()


def _stamping(change: Callable[[bytearray, Entry, Validator], None]) -> type[Validator]:
    """A batch of format 2 is stamped otherwise."""

    class Stamping(Validator):
        def stamp_new(self, out: bytearray, e: Entry, last: int, time: int) -> None:
            super().stamp_new(out, e, last, time)
            change(out, e, self)

    return Stamping


def _no_epoch(out: bytearray, e: Entry, v: Validator) -> None:
    out[e.at + 12 : e.at + 16] = e.data[12:16]


def _resealed(out: bytearray, e: Entry, at: int = 0) -> None:
    struct.pack_into(">I", out, e.at + 17, crc32c(bytes(out[e.at + 21 : e.at + len(e.data)])))


def _always_sealed(out: bytearray, e: Entry, v: Validator) -> None:
    _resealed(out, e)


def _keeps_unused(out: bytearray, e: Entry, v: Validator) -> None:
    if e.attributes & ~127 & 0xFFFF and bytes(out[e.at + 17 : e.at + 21]) != e.data[17:21]:
        struct.pack_into(">h", out, e.at + 21, e.attributes & ~8 | 8 * v.append_time)
        _resealed(out, e)


def _base_of_the_count(out: bytearray, e: Entry, v: Validator) -> None:
    """The base offset is the log end, whatever the last offset delta."""
    struct.pack_into(">q", out, e.at, v.offset)


class OldTimesStay(Validator):
    """A timestamp below -1 stays in format 1."""

    def stamp_old(self, out: bytearray, e: Entry, last: int, time: int) -> None:
        if time == -1 and e.magic and not e.codec and not self.append_time:
            time = min(-1, impl.old_message(e.data).timestamp)
        super().stamp_old(out, e, last, time)


class OldFlagsStay(Validator):
    """Other attributes of a message of format 1 stay."""

    def stamp_old(self, out: bytearray, e: Entry, last: int, time: int) -> None:
        super().stamp_old(out, e, last, time)
        if e.magic and bytes(out[e.at + 12 : e.at + 16]) != e.data[12:16]:
            out[e.at + 17] |= e.attributes & 0xF0
            struct.pack_into(">I", out, e.at + 12, zlib.crc32(out[e.at + 16 : e.at + len(e.data)]))


class StaleOldCrc(Validator):
    """The CRC of a message of format 1 stays."""

    def stamp_old(self, out: bytearray, e: Entry, last: int, time: int) -> None:
        super().stamp_old(out, e, last, time)
        out[e.at + 12 : e.at + 16] = e.data[12:16]


class FirstOffset(Validator):
    """A wrapper gets the offset of its first message."""

    def stamp_old(self, out: bytearray, e: Entry, last: int, time: int) -> None:
        super().stamp_old(out, e, self.offset if e.codec else last, time)


# ---- written again
class NoHeaders(Validator):
    """Headers are left out in formats 0 and 1."""

    def check_row(self, r: Row) -> None:
        super().check_row(r._replace(headers=()))


class ZstdWrapper(Validator):
    """A wrapper is compressed by zstd."""

    def check_target(self, first: Entry) -> None:
        if self.target != 4:
            super().check_target(first)


class AnyTime(Validator):
    """A timestamp below -1 is written as -1."""

    def check_row(self, r: Row) -> None:
        super().check_row(r._replace(timestamp=max(r.timestamp, -1)))

    def rewrite_new(self, first: Entry, rows: list[Row]) -> bytes:
        return super().rewrite_new(first, [r._replace(timestamp=max(r.timestamp, -1)) for r in rows])


class Absolute(Validator):
    """Offsets inside a wrapper that is written are absolute."""

    def rewrite_old(self, first: Entry, rows: list[Row]) -> bytes:
        if not (self.target and self.magic):
            return super().rewrite_old(first, rows)

        def put(out: bytearray, offset: int, *rest: Any) -> None:
            _put(out, offset + self.offset if rest[3] is None or not rest[-1] & 7 else offset, *rest)

        with patch.object(impl, "put_old", put):
            return super().rewrite_old(first, rows)


class NoProducer(Validator):
    """A batch that is written again has no producer."""

    def rewrite_new(self, first: Entry, rows: list[Row]) -> bytes:
        class Nobody(Entry):
            producer = (-1, -1, -1)
            transactional = False

        return super().rewrite_new(Nobody(first.data, 0), rows)


class NowForFormat0(Validator):
    """Records of format 0 get the time of their conversion."""

    def rewrite_new(self, first: Entry, rows: list[Row]) -> bytes:
        if first.magic == 0 and not self.append_time:
            self.largest = self.now
            rows = [r._replace(timestamp=self.now) for r in rows]
        return super().rewrite_new(first, rows)


class CreateTimeInside(Validator):
    """With LogAppendTime the wrapper alone has the time."""

    def rewrite_old(self, first: Entry, rows: list[Row]) -> bytes:
        if not (self.append_time and self.target and self.magic):
            return super().rewrite_old(first, rows)
        times = iter([r.timestamp for r in rows])

        def put(out: bytearray, offset: int, magic: int, time: int, *rest: Any) -> None:
            _put(out, offset, magic, next(times, time), *rest)

        with patch.object(impl, "put_old", put):
            return super().rewrite_old(first, rows)


def _answering(change: Callable[[Validator], None]) -> type[Validator]:
    """What the log is told is another."""

    class Answering(Validator):
        def run(self) -> bytes:
            data = super().run()
            change(self)
            return data

    return Answering


def _time_of_format_0(v: Validator) -> None:
    if v.append_time and not v.magic:
        v.largest = v.now


def _last_time(v: Validator) -> None:
    rows = [r for e in _entries(v.records) for r in e.rows()]
    if not v.append_time and v.magic and rows:
        v.largest = max(-1, rows[-1].timestamp)


def _no_overhead(v: Validator) -> None:
    if v.memory and v.magic == 2 and not v.converted:
        v.memory -= v2.OVERHEAD


def _counts_in_place(v: Validator) -> None:
    if v.memory:
        v.converted = v.next_offset - v.offset


def _old_overhead(v: Validator) -> None:
    """A wrapper that is written has the header of format 1 in format 0."""
    if v.memory and v.magic == 0 and v.target:
        v.memory += 8


def _offset_of_32_bits(v: Validator) -> None:
    v.next_offset = v.offset & ~0xFFFFFFFF | v.next_offset & 0xFFFFFFFF


def _by_the_range(v: Validator) -> None:
    """The log end moves by the last offset delta."""
    for e in _entries(v.records):
        if e.header is not None and not v.client:
            v.next_offset = v.offset + e.header.last_offset_delta + 1


class CountsBatches(Validator):
    """Records without a key are counted once a batch."""

    def asked(self, first: Entry, entry: Entry, converts: bool) -> list[Row]:
        before = self.counts["no_key_compacted_topic"]
        try:
            return super().asked(first, entry, converts)
        finally:
            self.counts["no_key_compacted_topic"] = min(before + 1, self.counts["no_key_compacted_topic"])


class NeverCounts(Validator):
    """Sequences are not counted."""

    def met(self, meter: str) -> None:
        if meter != "invalid_sequence":
            super().met(meter)


# ---- the spec
def _told(change: Callable[[dict[str, Any]], None]) -> Callable[..., Any]:
    """The spec is told something else."""

    def validated(state: spec.Meters, **asked: Any) -> Any:
        change(asked)
        return spec.answer(**asked)

    return validated


def _from_zero(asked: dict[str, Any]) -> None:
    asked["offset"] = 0


def _other_epoch(asked: dict[str, Any]) -> None:
    asked["partition_leader_epoch"] = -1


def _any_age(asked: dict[str, Any]) -> None:
    asked["timestamp_before_max_ms"] = 2**63 - 1


def _format_2(asked: dict[str, Any]) -> None:
    asked["target_magic"] = 2


def _spec(name: str, clauses: str, what: str, body: Callable[..., Any]) -> Mutant:
    return Mutant(name, tuple(clauses.split()), what, "spec", lambda: with_fault(spec.machine, "validate", body))


MUTANTS = [
    of_impl(
        "an old key is never null",
        "VAL-1",
        "a message without a key has an empty one",
        _with(old_message=_null_is_empty),
    ),
    of_impl("sets end whole", "VAL-2", "a message that is cut is refused", _with(old_set=_cut_is_wrong)),
    of_impl("a small size ends a set", "VAL-2", "it is no corrupt record", _with(old_set=_zeroes_are_messages)),
    of_impl(
        "LZ4 by its specification",
        "VAL-2",
        "the header's checksum is compared in format 0",
        _with(opened=_right_lz4),
        "KAFKA-3160",
    ),
    of_impl("absolute offsets", "VAL-2", "those inside a wrapper are as they stand", _with(Entry=AsTheyStand)),
    of_impl("any wrapper", "VAL-2", "its offset may be below its last message's", _with(Entry=AnyWrapper)),
    of_impl("zstd in a wrapper", "VAL-2", "it is read", _with(Entry=ZstdToo)),
    of_impl("own types", "VAL-3 VAL-12", "the type is that of the first message", _with(Entry=TypesOfTheirOwn)),
    of_impl("the first batch's codec", "VAL-4", "a compressed batch behind it is not seen", _of(FirstCodec)),
    of_impl("the first batch", "VAL-5", "what follows is left out", _of(TheFirstBatch)),
    of_impl("nothing is taken", "VAL-5", "no batch is no fault", _of(NothingIsTaken)),
    of_impl("formats are mixed", "VAL-6", "messages of format 0 stand beside those of 1", _of(AnyMagic)),
    of_impl(
        "a coordinator is a client", "VAL-7", "its control batches are refused", _of(EverybodyIsAClient), "KAFKA-6003"
    ),
    of_impl("a client's control batch", "VAL-7", "it is taken", _of(_checking(lambda h: h.control and h.count == 1))),
    of_impl(
        "a client without a sequence",
        "VAL-7",
        "it is taken",
        _of(_checking(lambda h: h.count == h.last_offset_delta + 1 > 0 and not h.control)),
    ),
    of_impl("the count first", "VAL-7", "it is asked before the offset range", _of(CountFirst)),
    of_impl("idempotence in format 1", "VAL-8", "the producer is lost", _of(OldProducers)),
    of_impl("formats in a wrapper", "VAL-9", "they may differ", _of(_row(_takes_other_magic)), "KAFKA-4298"),
    of_impl("a wrapper in a wrapper", "VAL-9", "it is a message", _of(_row(_takes_nested))),
    of_impl("no CRC inside", "VAL-10", "it is not compared", _of(_row(_no_crc))),
    of_impl("every CRC", "VAL-10", "that of a message is compared again", _of(_row(_every_crc))),
    of_impl("one error", "VAL-11", "the first record in error is named alone", _of(OneError)),
    of_impl("the cause of the first", "VAL-11", "a missing key hides a timestamp", _of(CauseOfTheFirst)),
    of_impl("none is 1970", "VAL-12", "a record without a timestamp is too old", _of(_row(_none_is_old))),
    of_impl(
        "keys in format 2 alone", "VAL-12", "old messages have none on a compacted topic", _of(_row(_key_of_format_2))
    ),
    of_impl(
        "a producer's LogAppendTime",
        "VAL-12",
        "it is asked where no timestamp is compared",
        _of(_row(_bounded_by_append_time)),
        "KAFKA-14991",
    ),
    of_impl("in any order", "VAL-13", "offsets in a compressed batch are not looked at", _of(AlwaysInOrder)),
    of_impl("no epoch", "VAL-14", "a batch keeps its producer's", _of(_stamping(_no_epoch))),
    of_impl("an old CRC", "VAL-15 VAL-1", "it stays as the timestamp changes", _of(StaleOldCrc)),
    of_impl("a wrapper at its first", "VAL-15", "it has the offset of its first message", _of(FirstOffset)),
    of_impl("headers are lost", "VAL-16", "in formats 0 and 1", _of(NoHeaders)),
    of_impl("zstd in format 1", "VAL-16", "a wrapper is compressed by it", _of(ZstdWrapper)),
    of_impl("below -1 is none", "VAL-16", "a timestamp below -1 is written as -1", _of(AnyTime)),
    of_impl("absolute inside", "VAL-17", "a wrapper of format 1 has absolute offsets", _of(Absolute)),
    of_impl("no producer", "VAL-17", "a batch that is written again has none", _of(NoProducer)),
    of_impl("now for format 0", "VAL-17 VAL-18", "converted records get a timestamp", _of(NowForFormat0)),
    of_impl("the last time", "VAL-18", "the largest timestamp is the last record's", _of(_answering(_last_time))),
    of_impl("memory without headers", "VAL-19", "61 bytes are missing", _of(_answering(_no_overhead))),
    of_impl("all are converted", "VAL-19", "records in place are", _of(_answering(_counts_in_place))),
    of_impl("lengths are not counted", "VAL-19", "a byte of each record is missing", _with(Entry=SizesAsWritten)),
    of_impl("one a batch", "VAL-20", "records without a key are counted once", _of(CountsBatches)),
    _spec("offsets from 0", "VAL-21", "the log end does not matter", _told(_from_zero)),
    _spec("no leader epoch is set", "VAL-14", "it stays -1", _told(_other_epoch)),
    _spec("old records are taken", "VAL-12", "there is no lower bound", _told(_any_age)),
    _spec("format 2 for all", "VAL-13 VAL-17", "the target's format does not matter", _told(_format_2)),
]

SURVIVORS: dict[str, str] = {}

UNSEEN: dict[str, str] = {}
"""Mutants that the judge cannot notice, and why."""


# ---- faults of range, boundary, depth, configuration and rare state
RARE = [
    of_impl("old times of 42 bits", "VAL-1", "a timestamp from 2039 on wraps", _with(old_message=_times_of_42_bits)),
    of_impl("a wrapper at 0", "VAL-2", "its offset is that of its last message too", _with(Entry=NoZero)),
    of_impl(
        "coordinators alone", "VAL-7", "a replica and a controller are asked what a client is", _of(OnlyCoordinators)
    ),
    of_impl("the first CRC", "VAL-10", "later ones in a wrapper are not compared", _of(_row(_first_crc))),
    of_impl("three errors", "VAL-11", "a fourth is not named", _of(ThreeErrors)),
    of_impl("places over all", "VAL-11", "they are counted over all batches", _of(PlacesOverAll)),
    of_impl("as old as allowed", "VAL-12", "it is too old", _of(_row(_within_alone))),
    of_impl(
        "no limit is a limit", "VAL-12", "the greatest long is added to the time, and wraps", _of(_row(_limit_is_added))
    ),
    of_impl("the first in order", "VAL-13", "later offsets are not looked at", _of(FirstInOrder)),
    of_impl("the last in order", "VAL-13", "earlier offsets are not looked at", _of(LastInOrder)),
    of_impl("markers are compressed", "VAL-13", "a control batch is written again, and is none", _of(Recompressed)),
    of_impl("always a right CRC", "VAL-14", "it is made where nothing changes", _of(_stamping(_always_sealed))),
    of_impl("unused bits stay", "VAL-14", "as the type changes", _of(_stamping(_keeps_unused))),
    of_impl(
        "the base is the log end", "VAL-14", "whatever the last offset delta is", _of(_stamping(_base_of_the_count))
    ),
    of_impl("old times below -1", "VAL-15", "they stay", _of(OldTimesStay)),
    of_impl("old flags stay", "VAL-15", "as the type changes", _of(OldFlagsStay)),
    of_impl("own times inside", "VAL-17", "with LogAppendTime the wrapper alone has the time", _of(CreateTimeInside)),
    of_impl("a time of format 0", "VAL-18", "in place it has that of the append", _of(_answering(_time_of_format_0))),
    of_impl(
        "a header of format 1", "VAL-19", "a wrapper of format 0 counts 8 bytes more", _of(_answering(_old_overhead))
    ),
    of_impl("sequences are not counted", "VAL-20", "a fault without a meter", _of(NeverCounts)),
    of_impl("offsets of 32 bits", "VAL-21", "the log end wraps", _of(_answering(_offset_of_32_bits))),
    of_impl(
        "offsets by the range", "VAL-21", "a coordinator's batch takes its offset range", _of(_answering(_by_the_range))
    ),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE
