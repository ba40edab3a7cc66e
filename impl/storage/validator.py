"""A leader's validator over a buffer: batches are found by their places and stamped there, or written again.

One pass over the batches takes their records; what they become is decided behind it. Messages of formats 0 and 1 are
read and written here, batches of format 2 by `impl.storage.batch`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from kafkaspec.contract.machine import AnyBytes
from kafkaspec.impl.storage import batch as v2
from kafkaspec.spec.common.compression import CODEC_IDS, CODECS, compress, decompress
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT
from kafkaspec.spec.common.leader_rules import INVALID_TIMESTAMP, VALIDATION
from kafkaspec.spec.common.record_reader import CORRUPT, INVALID

OFFSET_AND_SIZE = struct.Struct(">qi")
MAGIC_AT = v2.MAGIC_AT
OLD_ATTRIBUTES_AT, OLD_TIME_AT, OLD_CRC_AT = 17, 18, 12
LEAST_SIZE = 14
OLD_OVERHEAD = {0: 26, 1: 34}
"""Bytes of a message of that format without key and value."""
SIZE = struct.Struct(">i")
APPENDED = 8
CODEC = 7
OLD_LZ4 = 3
OLD_CODECS = (1, 2, OLD_LZ4)
UNSUPPORTED = "org.apache.kafka.common.errors.UnsupportedForMessageFormatException"
IN = " in topic partition t-0"
"""How messages end that name the partition."""
DEFAULT_LZ4_FLAGS, DEFAULT_LZ4_CHECKSUM = b"\x60\x40", b"\x82"


class InvalidRecords(ValueError):
    """What a leader does not append, with Kafka's exception class."""

    def __init__(self, clause: str, error: str = INVALID, words: str | None = None) -> None:
        super().__init__(words or clause)
        self.clause, self.error, self.words = clause, error, words


class Row(NamedTuple):
    """A record with all that is asked of it; `raw` are the bytes of a message of format 0 or 1."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: v2.Headers
    size: int
    magic: int
    raw: bytes = b""


# ---- formats 0 and 1 -------------------------------------------------------------------------------------------------
def old_message(data: bytes) -> Row:
    """A message of format 0 or 1, whole. [VAL-1]"""
    magic = data[MAGIC_AT]
    at, time = OLD_TIME_AT, -1
    if magic == 1:
        time, at = int.from_bytes(data[at : at + 8], "big", signed=True), at + 8
    key, at = _part(data, at)
    value, _ = _part(data, at)
    offset = int.from_bytes(data[:8], "big", signed=True)
    return Row(offset, time, key, value, (), len(data), magic, data)


def _part(data: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = SIZE.unpack_from(data, at)
    at += SIZE.size
    return (None, at) if size < 0 else (data[at : at + size], at + size)


def old_set(data: bytes) -> Iterator[Row]:
    """The messages of a set. Raises InvalidRecords. [VAL-2]"""
    at = 0
    while at + OFFSET_AND_SIZE.size <= len(data):
        _, size = OFFSET_AND_SIZE.unpack_from(data, at)
        if size < LEAST_SIZE:
            raise InvalidRecords("VAL-2", CORRUPT)
        end = at + OFFSET_AND_SIZE.size + size
        if end > len(data):
            return
        yield old_message(data[at:end])
        at = end


def opened(codec: int, magic: int, value: bytes) -> bytes:
    """A wrapper's value, decompressed. An LZ4 frame's header may have any checksum in format 0. [VAL-2]"""
    if codec == OLD_LZ4 and magic == 0 and value[4:6] == DEFAULT_LZ4_FLAGS:
        value = value[:6] + DEFAULT_LZ4_CHECKSUM + value[7:]
    return decompress(codec, value)


def put_old(
    out: bytearray, offset: int, magic: int, time: int, key: bytes | None, value: bytes | None, attributes: int
) -> None:
    """A message at the end of `out`. [VAL-1, VAL-17]"""
    body = bytearray((magic, attributes))
    if magic:
        body += time.to_bytes(8, "big", signed=True)
    for part in (key, value):
        body += SIZE.pack(-1 if part is None else len(part)) + (part or b"")
    out += OFFSET_AND_SIZE.pack(offset, len(body) + 4) + zlib.crc32(body).to_bytes(4, "big") + body


# ---- batches of any format -------------------------------------------------------------------------------------------
class Entry:
    """A batch in the buffer."""

    def __init__(self, data: bytes, at: int) -> None:
        """Only the codec is asked for. Raises InvalidRecords."""
        self.data, self.at, self.magic = data, at, data[MAGIC_AT]
        self.header: v2.Lenient | None = None
        if self.magic < v2.MAGIC:
            self.attributes = data[OLD_ATTRIBUTES_AT]
            self.appended = self.magic == 1 and self.attributes & APPENDED != 0
            if self.attributes & CODEC not in CODECS:
                raise InvalidRecords("BAT-4", ILLEGAL_ARGUMENT)
        else:
            try:
                self.header = v2.Lenient(data)
            except v2.InvalidRecords as e:
                raise InvalidRecords(e.clause, e.error, e.words) from None
            self.attributes, self.appended = self.header.attributes, self.header.log_append_time
        self.codec = self.attributes & CODEC

    @property
    def transactional(self) -> bool:
        return self.header is not None and self.header.transactional

    @property
    def control(self) -> bool:
        return self.header is not None and self.header.control

    @property
    def producer(self) -> tuple[int, int, int]:
        """Id, epoch and base sequence."""
        h = self.header
        return (-1, -1, -1) if h is None else (h.producer_id, h.producer_epoch, h.base_sequence)

    def rows(self) -> list[Row]:
        """Its records. Raises InvalidRecords. [VAL-2, VAL-3]"""
        if self.header is not None:
            return self._new_rows(self.header)
        whole = old_message(self.data)
        return [whole] if self.codec == 0 else self._old_rows(whole)

    def _new_rows(self, header: v2.Lenient) -> list[Row]:
        try:
            records = list(header.records())
            section = header.section()[0] if records else b""
        except v2.InvalidRecords as e:
            raise InvalidRecords(e.clause, e.error, e.words) from None
        out, at = [], 0
        for r in records:
            length, behind = v2.get_varint(section, at, len(section))
            shortest = bytearray()
            v2.put_varint(shortest, length)
            out.append(Row(r.offset, r.timestamp, r.key, r.value, r.headers, len(shortest) + length, self.magic))
            at = behind + length
        return out

    def _old_rows(self, wrapper: Row) -> list[Row]:
        if self.codec not in OLD_CODECS or wrapper.value is None:
            raise InvalidRecords("VAL-2")
        rows = list(old_set(opened(self.codec, self.magic, wrapper.value)))
        if not rows:
            raise InvalidRecords("VAL-2", INVALID, "Found invalid compressed record set with no inner records")
        if self.magic == 0:
            return rows
        shift = 0
        if wrapper.offset != 0:
            shift = wrapper.offset - rows[-1].offset
            if shift < 0:
                raise InvalidRecords("VAL-2")
        return [
            r._replace(
                offset=v2.wrapped(r.offset + shift),
                timestamp=wrapper.timestamp if self.appended and r.magic == 1 else r.timestamp,
            )
            for r in rows
        ]


def entries(data: bytes) -> Iterator[Entry]:
    """The batches in a buffer; one that is cut ends them. Raises InvalidRecords. [VAL-6]"""
    at = 0
    while at + OFFSET_AND_SIZE.size <= len(data):
        size = OFFSET_AND_SIZE.unpack_from(data, at)[1]
        if size < LEAST_SIZE:
            raise InvalidRecords("BAT-1", CORRUPT)
        if at + MAGIC_AT >= len(data):
            return
        if data[at + MAGIC_AT] > v2.MAGIC:
            raise InvalidRecords("BAT-2", CORRUPT)
        end = at + OFFSET_AND_SIZE.size + size
        if end > len(data):
            return
        yield Entry(data[at:end], at)
        at = end


# ---- the validator ---------------------------------------------------------------------------------------------------
class Validator:
    """One call: `run` gives what is appended."""

    def __init__(
        self,
        records: bytes,
        offset: int,
        now: int,
        compacted_topic: bool,
        target_magic: int,
        target_compression: str,
        timestamp_type: str,
        timestamp_before_max_ms: int,
        timestamp_after_max_ms: int,
        partition_leader_epoch: int,
        origin: str,
    ) -> None:
        self.records, self.offset, self.now, self.compacted = records, offset, now, compacted_topic
        self.magic, self.target = target_magic, CODEC_IDS[target_compression]
        self.append_time = timestamp_type == "LogAppendTime"
        self.before, self.after = timestamp_before_max_ms, timestamp_after_max_ms
        self.epoch, self.client = partition_leader_epoch, origin == "CLIENT"
        self.counts = {"invalid_magic": 0, "invalid_offset": 0, "invalid_sequence": 0, "invalid_checksums": 0,
                       "no_key_compacted_topic": 0}  # fmt: skip
        self.largest = -1
        self.changed = False
        self.memory = 0
        self.converted = 0

    def run(self) -> bytes:
        """What is appended. Raises InvalidRecords. [VAL-4, VAL-5, VAL-13]"""
        found = list(entries(self.records))
        source = 0
        for e in found:
            source = e.codec or source
        plain = source == self.target == 0
        converts = plain and any(e.magic != self.magic for e in found)
        if converts:
            for e in found:  # its size is estimated before anything is asked
                e.rows()
        if not found:
            raise InvalidRecords("VAL-5", INVALID, "Record batch has no batches at all")
        first = found[0]
        if len(found) > 1 and (source or first.magic == v2.MAGIC):
            raise InvalidRecords("VAL-5", INVALID, "Compressed outer record has more than one batch")
        if converts:
            self.check_target(first)
        batches = [(e, self.asked(first, e, converts)) for e in found]
        rows = [r for _, more in batches for r in more]
        if plain:
            keeps = not converts
        else:
            keeps = source == self.target and first.magic == self.magic > 0 and self.in_order(rows)
            keeps = keeps or (source == 0 and first.control)
            self.memory = sum(self.header_size(e.codec) + sum(r.size for r in more) for e, more in batches)
        self.next_offset = self.offset + len(rows)
        return self.stamp(batches) if keeps else self.rewrite(first, rows)

    @staticmethod
    def in_order(rows: list[Row]) -> bool:
        """Whether their offsets are 0, 1, 2, ... [VAL-13]"""
        return all(r.offset == n for n, r in enumerate(rows))

    def header_size(self, codec: int) -> int:
        """Of the target's format, bytes. [VAL-19]"""
        if self.magic == v2.MAGIC:
            return v2.OVERHEAD
        return OLD_OVERHEAD[self.magic] if codec else 0

    def met(self, meter: str) -> None:
        """A fault. [VAL-20]"""
        self.counts[meter] += 1

    # ---- what is asked
    def asked(self, first: Entry, entry: Entry, converts: bool) -> list[Row]:
        """The records of a batch. Raises InvalidRecords. [VAL-6, VAL-8, VAL-11]"""
        if entry.magic != first.magic:
            self.met("invalid_magic")
            words = f"Batch magic {entry.magic} is not the same as the first batch's magic byte {first.magic}"
            raise InvalidRecords("VAL-6", INVALID, words + IN)
        if self.client and entry.header is not None:
            self.check_header(entry.header)
        if self.magic < v2.MAGIC and (entry.transactional or entry.producer[0] >= 0):
            kind = "Transactional" if entry.transactional else "Idempotent"
            words = f"{kind} records cannot be used with magic version {self.magic}"
            raise InvalidRecords("VAL-8", UNSUPPORTED, words)
        rows = entry.rows()
        wrong: dict[int, str] = {}
        for n, r in enumerate(rows):
            clause = self.record_error(entry, r)
            if clause:
                wrong[n] = clause
            elif converts and not wrong:
                self.check_row(r)
        if wrong:
            late = "BAT-22" in wrong.values()
            places = ", ".join(map(str, wrong))
            words = f"{INVALID_TIMESTAMP if late else INVALID}: records [{places}]"
            raise InvalidRecords("VAL-11", VALIDATION, words)
        return rows

    def check_header(self, h: v2.Lenient) -> None:
        """What a client may not send. Raises InvalidRecords. [VAL-7]"""
        bounds = f"[{h.base_offset}, {h.last_offset}]"
        meter = "invalid_offset"
        if h.last_offset_delta < 0:
            words = f"Batch has an invalid offset range: {bounds}"
        elif h.count < 1:
            words = f"Invalid reported count for record batch: {h.count}"
        elif h.count != h.last_offset_delta + 1:
            words = f"Inconsistent batch offset range {bounds} and count of records {h.count}"
        elif h.control:
            words = "Clients are not allowed to write control records"
        elif h.producer_id >= 0 > h.base_sequence:
            meter = "invalid_sequence"
            words = f"Invalid sequence number {h.base_sequence} in record batch with producerId {h.producer_id}"
        else:
            return
        self.met(meter)
        raise InvalidRecords("VAL-7", INVALID, words + IN)

    def record_error(self, entry: Entry, r: Row) -> str | None:
        """The clause for which a record is refused. Raises InvalidRecords. [VAL-9, VAL-10, VAL-12]"""
        if r.raw and entry.codec:
            inside = r.raw[OLD_ATTRIBUTES_AT] & CODEC
            if inside:
                raise InvalidRecords("VAL-9", INVALID if inside in CODECS else ILLEGAL_ARGUMENT)
            if r.magic != entry.magic:
                self.met("invalid_magic")
                return "VAL-9"
            stored, right = int.from_bytes(r.raw[OLD_CRC_AT:MAGIC_AT], "big"), zlib.crc32(r.raw[MAGIC_AT:])
            if stored != right:
                self.met("invalid_checksums")
                words = f"Record is corrupt (stored crc = {stored}, computed crc = {right})"
                raise InvalidRecords("VAL-10", CORRUPT, words)
        if self.compacted and r.key is None:
            self.met("no_key_compacted_topic")
            return "BAT-21"
        if entry.appended:
            return "BAT-22"
        if self.append_time or r.timestamp == -1:
            return None
        age = v2.wrapped(self.now - r.timestamp)
        return "BAT-22" if age > self.before or v2.wrapped(-age) > self.after else None

    # ---- in place
    def stamp(self, batches: list[tuple[Entry, list[Row]]]) -> bytes:
        """The bytes that came, with what is new in their headers. [VAL-14, VAL-15, VAL-18, VAL-21]"""
        out, last = bytearray(self.records), self.offset - 1
        for e, rows in batches:
            last += len(rows)
            largest = max((r.timestamp for r in rows), default=-1) if e.magic and self.magic else -1
            self.largest = max(self.largest, largest)
            time = self.now if self.append_time else max(largest, -1)
            if e.magic == v2.MAGIC:
                self.stamp_new(out, e, last, time)
            else:
                self.stamp_old(out, e, last, time)
        uncompressed_and_old = self.magic == 0 and not self.target
        if self.append_time and not uncompressed_and_old:
            self.largest = self.now
        return bytes(out)

    def stamp_new(self, out: bytearray, e: Entry, last: int, time: int) -> None:
        """A batch of format 2. [VAL-14]"""
        h = e.header
        assert h is not None
        struct.pack_into(">q", out, e.at, v2.wrapped(last - h.last_offset_delta))
        struct.pack_into(">i", out, e.at + v2.EPOCH_AT, self.epoch)
        if (e.appended, h.max_timestamp) != (self.append_time, time):
            meaning = e.attributes & v2.USED & ~APPENDED | APPENDED * self.append_time
            struct.pack_into(">h", out, e.at + v2.ATTRIBUTES_AT, meaning)
            struct.pack_into(">q", out, e.at + v2.MAX_TIMESTAMP_AT, time)
            covered = bytes(out[e.at + v2.ATTRIBUTES_AT : e.at + len(e.data)])
            struct.pack_into(">I", out, e.at + v2.CRC_AT, crc32c(covered))

    def stamp_old(self, out: bytearray, e: Entry, last: int, time: int) -> None:
        """A message or a wrapper of format 0 or 1. [VAL-15]"""
        struct.pack_into(">q", out, e.at, last)
        if e.magic == 0:
            return
        before = int.from_bytes(e.data[OLD_TIME_AT : OLD_TIME_AT + 8], "big", signed=True)
        if (e.appended, before) != (self.append_time, time):
            out[e.at + OLD_ATTRIBUTES_AT] = e.codec | APPENDED * self.append_time
            struct.pack_into(">q", out, e.at + OLD_TIME_AT, time)
            crc = zlib.crc32(out[e.at + MAGIC_AT : e.at + len(e.data)])
            struct.pack_into(">I", out, e.at + OLD_CRC_AT, crc)

    # ---- written again
    def check_target(self, first: Entry) -> None:
        """What cannot be written in the target's format. Raises InvalidRecords. [VAL-16]"""
        words = None
        if self.magic < v2.MAGIC and first.transactional:
            words = f"Transactional records are not supported for magic {self.magic}"
        elif self.magic < v2.MAGIC and self.target not in (0, *OLD_CODECS):
            words = f"ZStandard compression is not supported for magic {self.magic}"
        if words:
            raise InvalidRecords("VAL-16", ILLEGAL_ARGUMENT, words)

    def check_row(self, r: Row) -> None:
        """Raises InvalidRecords. [VAL-16]"""
        if r.timestamp < -1:
            raise InvalidRecords("VAL-16", ILLEGAL_ARGUMENT, f"Invalid negative timestamp {r.timestamp}")
        if self.magic < v2.MAGIC and len(r.headers):
            words = f"Magic v{self.magic} does not support record headers"
            raise InvalidRecords("VAL-16", ILLEGAL_ARGUMENT, words)

    def rewrite(self, first: Entry, rows: list[Row]) -> bytes:
        """The records again. Raises InvalidRecords. [VAL-16, VAL-17, VAL-18, VAL-19, VAL-21]"""
        self.check_target(first)
        for r in rows:
            self.check_row(r)
        self.changed, self.converted = True, len(rows)
        if self.append_time:
            self.largest = self.now
        elif self.magic:
            self.largest = max(-1, *(r.timestamp for r in rows))
        data = self.rewrite_new(first, rows) if self.magic == v2.MAGIC else self.rewrite_old(first, rows)
        return AnyBytes(data) if self.target else data

    def rewrite_new(self, first: Entry, rows: list[Row]) -> bytes:
        """One batch of format 2. [VAL-17]"""
        producer_id, producer_epoch, base_sequence = first.producer
        try:
            encoder = v2.Encoder(
                self.offset,
                codec=CODECS[self.target].name,
                leader_epoch=self.epoch,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
                transactional=first.transactional,
                append_time=self.now if self.append_time else None,
            )
            for r in rows:
                encoder.append(r.timestamp, r.key, r.value, r.headers)
        except ValueError:
            raise InvalidRecords("VAL-16", ILLEGAL_ARGUMENT) from None
        self.memory += v2.OVERHEAD + len(encoder.section)
        return encoder.finish()

    def rewrite_old(self, first: Entry, rows: list[Row]) -> bytes:
        """Messages of format 0 or 1, or a wrapper of them. [VAL-17]"""
        if first.producer[0] != -1:
            raise InvalidRecords("VAL-16", ILLEGAL_ARGUMENT)
        flag = APPENDED if self.magic and self.append_time else 0
        relative = self.target and self.magic
        out = bytearray()
        for n, r in enumerate(rows, 0 if relative else self.offset):
            time = self.now if self.append_time else r.timestamp
            put_old(out, n, self.magic, time, r.key, r.value, flag)
        if not self.target:
            self.memory += len(out)
            return bytes(out)
        self.memory += OLD_OVERHEAD[self.magic] + len(out)
        wrapper, value = bytearray(), compress(self.target, bytes(out))
        put_old(wrapper, self.next_offset - 1, self.magic, self.largest, None, value, self.target | flag)
        return bytes(wrapper)
