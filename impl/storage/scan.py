"""Every batch of a segment as a row of numbers: the audit's reader.

Reads the file once, by read(), through one buffer. What is damaged becomes a row too, with `problem` and the byte where
it shows; behind it the scan goes on at the next batch.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import cramjam
import crc32c
import numpy as np

from kafkaspec.audit.check import BATCH, CODEC, CONTROL, LOG_APPEND_TIME, RECORD, Chunk, Ending
from kafkaspec.audit.files import File
from kafkaspec.errors import UserError

HEADER = struct.Struct(">qiibIhiqqqhii")
OVERHEAD = 61
LEAST_LEGACY = 14
LOG_OVERHEAD = 12
ROWS = 4096
FIELDS = BATCH.names or ()


class Problem(IntEnum):
    """What can be wrong with a batch: the values of a row's `problem`."""

    NONE = 0
    LENGTH = 1
    MAGIC = 2
    CRC = 3
    ATTRIBUTES = 4
    LAST_OFFSET_DELTA = 5
    COUNT = 6
    COMPRESSION = 7
    RECORD = 8
    OFFSET = 9
    TIMESTAMP = 10
    CONTROL = 11


TEXTS = {
    Problem.LENGTH: ("BAT-1", "the length field does not lead to a batch"),
    Problem.MAGIC: ("BAT-2", "the magic byte is none of 0, 1, 2"),
    Problem.CRC: ("BAT-3", "the CRC-32C does not match the bytes from the attributes to the end"),
    Problem.ATTRIBUTES: ("BAT-4", "the attributes name no codec, or set unused bits"),
    Problem.LAST_OFFSET_DELTA: ("BAT-5", "the last offset delta is negative"),
    Problem.COUNT: ("BAT-6", "the count is not that of the records"),
    Problem.COMPRESSION: ("BAT-7", "the records do not decompress"),
    Problem.RECORD: ("BAT-8", "a record is malformed"),
    Problem.OFFSET: ("BAT-9", "a record's offset does not increase, or lies outside the batch"),
    Problem.TIMESTAMP: ("BAT-10", "the largest timestamp is not that of the records"),
    Problem.CONTROL: ("BAT-11", "a control record's key or value is malformed"),
}


def problem_text(row: Any) -> tuple[str, str]:
    """Clause id and sentence of a row's problem."""
    return TEXTS[Problem(int(row["problem"]))]


class Malformed(Exception):
    def __init__(self, problem: Problem, at: int) -> None:
        self.problem, self.at = problem, at


@dataclass
class _Found:
    first: int = -1
    last: int = -1
    largest: int = -1
    tombstones: int = 0
    control_type: int = -1
    coordinator_epoch: int = -1


def _varint(data: bytes, at: int, most: int) -> tuple[int, int]:
    raw, start = 0, at
    for shift in range(0, 7 * most, 7):
        if at >= len(data):
            raise Malformed(Problem.RECORD, start)
        b = data[at]
        at += 1
        raw |= (b & 0x7F) << shift
        if b < 0x80:
            return (raw >> 1) ^ -(raw & 1), at
    raise Malformed(Problem.RECORD, start)


def _bytes(data: bytes, at: int, stop: int, null: bool = True) -> tuple[bytes | None, int]:
    n, after = _varint(data, at, 5)
    if n == -1 and null:
        return None, after
    if n < 0 or after + n > stop:
        raise Malformed(Problem.RECORD, at)
    return data[after : after + n], after + n


def _hash(*parts: bytes | None) -> int:
    h = b""
    for p in parts:
        h += b"-" if p is None else b"%d:" % len(p) + p
    return zlib.crc32(h) << 32 | crc32c.crc32c(h)


def _records(data: bytes, header: tuple[int, ...], row: int, out: list[tuple[Any, ...]] | None) -> _Found:
    base, _, _, _, _, attributes, last_delta, base_time, max_time, *_, count = header
    found, at, before = _Found(), 0, -1
    appended, control = attributes & LOG_APPEND_TIME, attributes & CONTROL
    for _ in range(count):
        length, body = _varint(data, at, 5)
        stop = body + length
        if length < 0 or stop > len(data):
            raise Malformed(Problem.RECORD, at)
        delta_time, p = _varint(data, body + 1, 10)
        delta, q = _varint(data, p, 5)
        if not before < delta <= last_delta:
            raise Malformed(Problem.OFFSET, p)
        before = delta
        key, p = _bytes(data, q, stop)
        value, q = _bytes(data, p, stop)
        n, p = _varint(data, q, 5)
        if n < 0:
            raise Malformed(Problem.RECORD, q)
        headers = p
        for _ in range(n):
            _name, p = _bytes(data, p, stop, null=False)
            _content, p = _bytes(data, p, stop)
        if p != stop:
            raise Malformed(Problem.RECORD, at)
        time = max_time if appended else base_time + delta_time
        offset = base + delta
        found.first = offset if found.first < 0 else found.first
        found.last, found.largest = offset, max(found.largest, time)
        found.tombstones += value is None
        if control and found.control_type < 0:
            if key is None or len(key) < 4:
                raise Malformed(Problem.CONTROL, at)
            found.control_type = int.from_bytes(key[2:4], "big", signed=True)
            if found.control_type in (0, 1):
                if value is None or len(value) < 6:
                    raise Malformed(Problem.CONTROL, at)
                found.coordinator_epoch = int.from_bytes(value[2:6], "big", signed=True)
        if out is not None:
            flags = (key is not None) + 2 * (value is not None) + 4 * bool(control)
            hashes = (0, 0) if key is None else (_hash(key), _hash(b"second", key))
            out.append((offset, time, row, hashes, _hash(key, value, data[headers:stop]), flags))
        at = stop
    if at != len(data):
        raise Malformed(Problem.COUNT, at)
    return found


def _decompressed(codec: int, data: bytes) -> bytes:
    try:
        if codec == 1:
            return bytes(cramjam.gzip.decompress(data))
        if codec == 3:
            return bytes(cramjam.lz4.decompress(data))
        if codec == 4:
            return bytes(cramjam.zstd.decompress(data))
        if data[:8] != b"\x82SNAPPY\x00":
            return bytes(cramjam.snappy.decompress_raw(data))
        out, at = b"", 16
        while at < len(data):
            n = int.from_bytes(data[at : at + 4], "big")
            out += bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + n]))
            at += 4 + n
        return out
    except Exception:
        raise Malformed(Problem.COMPRESSION, 0) from None


class _Scan:
    def __init__(self, data: bytes, deep: bool, records: bool) -> None:
        self.data, self.deep = data, deep
        self.rows: list[tuple[int, ...]] = []
        self.records: list[tuple[Any, ...]] | None = [] if records else None
        self.end_offset: int | None = None

    def chunk(self) -> Chunk:
        rows, self.rows = np.array(self.rows, np.int64).view(BATCH).reshape(-1), []
        if self.records is None:
            return Chunk(rows)
        records, self.records = np.array(self.records, RECORD), []
        return Chunk(rows, records)

    def plausible(self, at: int) -> bool:
        """Whether a batch may begin here; the end of the file is plausible too."""
        if at == len(self.data):
            return True
        if at + 17 > len(self.data):
            return False
        base, length, _, magic = struct.unpack_from(">qiib", self.data, at)
        least = OVERHEAD - LOG_OVERHEAD if magic == 2 else LEAST_LEGACY
        near = self.end_offset is None or self.end_offset <= base < self.end_offset + (1 << 31)
        return magic in (0, 1, 2) and base >= 0 and length >= least and near

    def valid(self, at: int) -> bool:
        """Whether a whole batch of format 2 with a good CRC stands here."""
        if at + OVERHEAD > len(self.data):
            return False
        length, _, _, crc = struct.unpack_from(">iibI", self.data, at + 8)
        stop = at + LOG_OVERHEAD + length
        return (
            length >= OVERHEAD - LOG_OVERHEAD
            and stop <= len(self.data)
            and crc32c.crc32c(self.data[at + 21 : stop]) == crc
        )

    def next_valid(self, at: int) -> int | None:
        """The next place where a batch surely begins."""
        while (at := self.data.find(b"\x02", at + 16) - 16) >= 0:
            if self.plausible(at) and self.valid(at):
                return at
            at += 1
        return None

    def bad(self, at: int, size: int, problem: Problem, place: int) -> None:
        row = dict.fromkeys(FIELDS, -1) | {"position": at, "size": size, "problem": problem, "problem_at": place}
        row["tombstones"] = 0
        self.rows.append(tuple(row[f] for f in FIELDS))

    def reason(self, at: int) -> str:
        left = len(self.data) - at
        if not any(self.data[at:]):
            return f"{left} bytes of zeros"
        if left < 17:
            return f"a cut batch: {left} of at least {OVERHEAD} bytes"
        length = int.from_bytes(self.data[at + 8 : at + 12], "big", signed=True)
        if self.plausible(at) and at + LOG_OVERHEAD + length > len(self.data):
            return f"a cut batch of {LOG_OVERHEAD + length} bytes, {left} there"
        return f"{left} bytes that are no batch"

    def step(self, at: int) -> int | Ending:
        """Read what stands here: the position behind it."""
        data, size = self.data, len(self.data)
        if at == size:
            return Ending(at, size, "", self.end_offset)
        whole = at + 17 <= size
        length = int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
        stop = at + LOG_OVERHEAD + length
        magic = data[at + 16] if whole else -1
        if whole and magic in (0, 1) and length >= LEAST_LEGACY and stop <= size and not self.valid(at):
            base = int.from_bytes(data[at : at + 8], "big", signed=True)
            row = dict.fromkeys(FIELDS, -1) | {
                "position": at, "size": stop - at, "base_offset": base, "last_offset": base, "magic": magic,
                "problem": 0, "tombstones": 0,
            }  # fmt: skip
            self.rows.append(tuple(row[f] for f in FIELDS))
            self.end_offset = base + 1
            return stop
        good = self.valid(at)
        if good or (whole and length >= OVERHEAD - LOG_OVERHEAD and stop <= size and self.plausible(stop)):
            self.batch(at, stop, good)
            return stop
        after = self.next_valid(at + 1)
        if after is None:
            return Ending(at, size, self.reason(at), self.end_offset)
        self.bad(at, after - at, Problem.LENGTH, at + 8)
        return after

    def batch(self, at: int, stop: int, good: bool) -> None:
        header = HEADER.unpack_from(self.data, at)
        base, _, epoch, magic, crc, attributes, delta, base_time, max_time, pid, pepoch, sequence, count = header
        found, problem, place = _Found(), Problem.NONE, -1
        try:
            if magic != 2:
                raise Malformed(Problem.MAGIC, 16 - OVERHEAD)
            if not good:
                raise Malformed(Problem.CRC, 17 - OVERHEAD)
            codec = attributes & CODEC
            if codec > 4 or attributes & ~0x7F:
                raise Malformed(Problem.ATTRIBUTES, 21 - OVERHEAD)
            if delta < 0:
                raise Malformed(Problem.LAST_OFFSET_DELTA, 23 - OVERHEAD)
            if count < 0:
                raise Malformed(Problem.COUNT, 57 - OVERHEAD)
            if self.deep:
                data = self.data[at + OVERHEAD : stop]
                mark = len(self.records) if self.records is not None else 0
                try:
                    found = _records(
                        _decompressed(codec, data) if codec else data, header, len(self.rows), self.records
                    )
                    if count and not attributes & LOG_APPEND_TIME and found.largest != max_time:
                        raise Malformed(Problem.TIMESTAMP, 35 - OVERHEAD)
                except Malformed as e:
                    if self.records is not None:
                        del self.records[mark:]
                    raise Malformed(e.problem, 0 if codec and e.at >= 0 else e.at) from None
        except Malformed as e:
            found, problem, place = _Found(), e.problem, at + OVERHEAD + e.at
        if problem == 0:
            self.end_offset = base + delta + 1
        self.rows.append(
            (
                at, stop - at, base, base + delta, epoch, magic, crc, attributes, base_time, max_time, pid, pepoch,
                sequence, count, problem, place, found.first, found.last, found.largest, found.tombstones,
                found.control_type, found.coordinator_epoch,
            )
        )  # fmt: skip


def read_segment(file: File, *, deep: bool = True, records: bool = False, start: int = 0) -> Iterator[Chunk | Ending]:
    """The batches of a segment from byte `start` on, a chunk at a time, and last how it ends.

    `deep`: decode the records too. `records`: give a RECORD row for each. Raises UserError if it cannot be read.
    """
    try:
        with file.path.open("rb") as f:
            f.seek(start)
            data = bytes(start) + f.read()
    except OSError as e:
        raise UserError(f"{file.path}: {e.strerror or os.strerror(e.errno or 0)}") from None
    scan, at = _Scan(data, deep, records), start
    while True:
        done = scan.step(at)
        if len(scan.rows) >= ROWS or (isinstance(done, Ending) and scan.rows):
            yield scan.chunk()
        if isinstance(done, Ending):
            yield done
            return
        at = done
