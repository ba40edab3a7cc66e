"""Every batch of a segment as a row of numbers: the audit's reader.

The file is read once, by read(), through one buffer of a fixed size; compiled loops (`kernels`) check and decode it
there. What is damaged becomes a row too, with `problem` and the byte where it shows; behind it the scan goes on at the
next batch. `spec.common.record_format` is the oracle for what a row says.
"""

from __future__ import annotations

import ctypes
import errno
import os
import zlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import numpy as np

from kafkaspec.errors import UserError
from kafkaspec.impl.common import kernels as k
from kafkaspec.impl.common.files import File, open_regular
from kafkaspec.impl.common.rows import BATCH, RECORD, Chunk, Ending
from kafkaspec.spec.common.compression import NotDecompressed, TooMuch, decompress
from kafkaspec.spec.common.record_format import CODEC_MASK

BUFFER = 1 << 20
"""Bytes that are read at a time; a larger batch gets a larger buffer once its CRC is known to be right."""
ROWS = 8192
RECORDS = 1 << 16
NO_ROOM = -1
MAGIC_END = 17
"""Bytes up to the magic byte, it included: what Kafka reads of a batch first."""
LEAST_LEGACY = 26
"""Bytes of the smallest message of format 0, offset and length included."""
ENOUGH = 1000
"""From this number on headers that each lead to the next are batches, whatever their CRCs say."""
WIDEST = (1 << 31) - 1
"""A batch's offset less its segment's base offset is at most this."""


class Problem(IntEnum):
    """What can be wrong with a batch: the values of a row's `problem`. Of several the first in the order of BAT-13."""

    NONE = 0
    LENGTH = k.BAD_LENGTH
    MAGIC = k.BAD_MAGIC
    CRC = k.BAD_CRC
    ATTRIBUTES = k.BAD_ATTRIBUTES
    LAST_OFFSET_DELTA = k.BAD_LAST_DELTA
    COUNT = k.BAD_COUNT
    COMPRESSION = k.BAD_COMPRESSION
    RECORD = k.BAD_RECORD
    OFFSET = k.BAD_OFFSET
    TIMESTAMP = k.BAD_TIMESTAMP
    CONTROL = k.BAD_CONTROL
    TOO_MUCH = k.TOO_MUCH
    """nothing is known to be wrong: more records than are decompressed here"""


TEXTS = {
    Problem.LENGTH: ("BAT-1", "the length field is wrong, or what follows it"),
    Problem.MAGIC: ("BAT-2", "the magic byte is wrong"),
    Problem.CRC: ("BAT-3", "the CRC is not that of the bytes"),
    Problem.ATTRIBUTES: ("BAT-4", "the attributes name no codec, or set unused bits"),
    Problem.LAST_OFFSET_DELTA: ("BAT-5", "the last offset delta is negative"),
    Problem.COUNT: ("BAT-6", "the count is not that of the records"),
    Problem.COMPRESSION: ("BAT-7", "the records do not decompress"),
    Problem.RECORD: ("BAT-8", "a record is malformed"),
    Problem.OFFSET: ("BAT-9", "a record's offset does not rise, or lies outside the batch"),
    Problem.TIMESTAMP: ("BAT-10", "the largest timestamp is not that of the records"),
    Problem.CONTROL: ("BAT-11", "a control record's key or value is malformed"),
    Problem.TOO_MUCH: ("BAT-7", "the records are more than is decompressed here"),
}
"""Clause and what is wrong, in a phrase."""


def problem_text(row: Any) -> tuple[str, str]:
    """Clause id of a row's problem, and what is wrong, in a phrase."""
    return TEXTS[Problem(int(row["problem"]))]


class _Window:
    """A part of a file in memory: `filled` bytes from `start` on. Raises UserError where reading fails."""

    def __init__(self, file: File, capacity: int) -> None:
        self.path = file.path
        self.fd = open_regular(file.path)
        self.size = os.fstat(self.fd).st_size
        """of the file; less once it turned out to have shrunk"""
        self.start = self.filled = 0
        self.allocate(capacity)

    def failed(self, e: OSError) -> UserError:
        return UserError(f"{self.path}: {e.strerror or e}")

    def allocate(self, capacity: int) -> None:
        self.memory = np.empty(capacity, np.uint8)
        self.address = self.memory.ctypes.data
        self.view = self.memory.data

    @property
    def stop(self) -> int:
        return self.start + self.filled

    def at(self, position: int) -> int:
        """The address of a byte of the file that is here."""
        return self.address + position - self.start

    def move(self, position: int) -> None:
        """Begin at a position of the file, and read on as far as there is room."""
        if self.start < position < self.stop:
            kept = self.stop - position
            ctypes.memmove(self.address, self.at(position), kept)
            self.filled = kept
        elif position != self.start:
            self.filled = 0
        self.start = position
        while self.filled < len(self.view) and self.stop < self.size:
            part = self.view[self.filled : self.filled + self.size - self.stop]
            try:
                got = os.preadv(self.fd, [part], self.stop)
            except OSError as e:
                raise self.failed(e) from None
            if got == 0:
                self.size = self.stop
            self.filled += got

    def more(self, position: int) -> bool:
        """Read on, with the window beginning at a position: False if it does, or all was read, already."""
        if position == self.start and (self.filled == len(self.view) or self.stop == self.size):
            return False
        before = self.stop
        self.move(position)
        return self.stop > before

    def have(self, position: int, size: int) -> bool:
        """Bring bytes here; False if the file, or the buffer, is too small for them."""
        if position < self.start or position + size > self.stop:
            self.move(position)
        return position + size <= self.stop

    def bytes(self, position: int, size: int) -> bytes:
        """Bytes that are here."""
        at = position - self.start
        return bytes(self.view[at : at + size])

    def number(self, position: int, size: int, signed: bool = True) -> int:
        """A number that is here."""
        return int.from_bytes(self.bytes(position, size), "big", signed=signed)

    def grow(self, position: int, size: int) -> None:
        """Bring a batch here that is larger than the buffer."""
        self.allocate(size)
        self.start, self.filled = position, 0
        self.move(position)

    def written(self, position: int) -> int:
        """The first byte from here on that may be other than 0: a file may be much longer than what is written of it on
        the disk."""
        if not hasattr(os, "SEEK_DATA"):
            return position
        try:
            return max(position, min(os.lseek(self.fd, position, os.SEEK_DATA), self.size))
        except OSError as e:
            return self.size if e.errno == errno.ENXIO else position

    def close(self) -> None:
        os.close(self.fd)


class _Scan:
    """One pass over a segment from byte `start` on."""

    def __init__(self, window: _Window, base_offset: int | None, deep: bool, records: bool, start: int) -> None:
        self.window, self.base_offset = window, base_offset
        self.position = start
        self.end_offset: int | None = None
        self.chain = set[int]()
        """where batches begin that lead to a good one"""
        self.table = k.crc_table()
        self.call = k.reader(deep).functions
        self.state = np.zeros(k.STATE, np.int64)
        self.s = self.state.ctypes.data
        self.state[k.TABLE] = self.table.ctypes.data
        self.room = RECORDS if records else 0
        self.fresh()

    # ---- rows
    def fresh(self) -> None:
        """Empty rows: those that were yielded are the caller's."""
        self.rows = np.empty(ROWS, BATCH)
        self.state[k.ROW] = self.rows.ctypes.data
        self.state[k.ROWS], self.state[k.ROWS_ROOM] = 0, ROWS
        if self.room:
            self.records = np.empty(self.room, RECORD)
            self.state[k.RECORDS_AT] = self.records.ctypes.data
            self.state[k.RECORDS], self.state[k.RECORDS_ROOM] = 0, self.room

    @property
    def count(self) -> int:
        return int(self.state[k.ROWS])

    def chunk(self) -> Chunk:
        """What was read since the last."""
        self.remember()
        rows = self.rows[: self.count]
        records = self.records[: int(self.state[k.RECORDS])] if self.room else None
        self.room = min(self.room, RECORDS)
        self.fresh()
        return Chunk(rows, records)

    def remember(self) -> None:
        """The end offset by the rows at hand."""
        for i in range(self.count - 1, -1, -1):
            if self.rows["problem"][i] == 0:
                self.end_offset = int(self.rows["last_offset"][i]) + 1
                return

    def row_address(self) -> int:
        return int(self.state[k.ROW]) + self.count * BATCH.itemsize

    def put(self, position: int, size: int, problem: Problem = Problem.NONE, at: int = -1, **fields: int) -> None:
        """A row with what is given and -1 elsewhere."""
        known = {"position": position, "size": size, "problem": problem, "problem_at": at, **fields}
        self.rows[self.count] = tuple(known.get(name, -1) for name in BATCH.names or ())
        self.state[k.ROWS] += 1

    # ---- the pass
    def run(self) -> Iterator[Chunk | Ending]:
        """What `read_segment` yields."""
        ending: Ending | None = None
        while ending is None:
            why = self.loops()
            full = why == k.ROOM
            if why == k.COMPRESSED:
                full = not self.compressed()
            elif why == k.RECORD_ROOM:
                full = not self.more_room()
            elif why == k.ODD or (why == k.MORE and not self.window.more(self.position)):
                full = self.count == ROWS
                ending = None if full else self.odd()
            if full or (ending and self.count):
                yield self.chunk()
        yield ending

    def loops(self) -> int:
        """Let the compiled loops go on from `position`. Why they stopped there.
        [BAT-1, BAT-2, BAT-3, BAT-4, BAT-5, BAT-6, BAT-8, BAT-9, BAT-10, BAT-11, BAT-12]"""
        w = self.window
        if not w.start <= self.position <= w.stop:
            w.move(self.position)
        self.state[k.AT], self.state[k.STOP] = w.at(self.position), w.at(w.stop)
        self.state[k.SHIFT] = w.start - w.address
        why = self.call["scan"](self.s)
        self.position = int(self.state[k.AT]) + w.start - w.address
        return why

    def more_room(self) -> bool:
        """Room for the records of the next batch; False if a chunk must go first."""
        if self.count:
            return False
        self.room = max(self.room, int(self.state[k.ROOM_ASKED]))
        self.fresh()
        return True

    def compressed(self) -> bool:
        """Read the records of a compressed batch, whose row was begun. False if a chunk must go first. [BAT-7]"""
        if self.count == ROWS:
            return False
        row = self.rows[self.count]
        size = int(row["size"])
        data, at = self.window.bytes(self.position + k.OVERHEAD, size - k.OVERHEAD), k.OVERHEAD
        try:
            plain = decompress(int(row["attributes"]) & CODEC_MASK, data)
            first = np.frombuffer(plain, np.uint8).ctypes.data
            problem = self.call["decode"](self.s, self.row_address(), first, first + len(plain))
        except TooMuch:
            problem = Problem.TOO_MUCH
        except NotDecompressed:
            problem = Problem.COMPRESSION
        if problem == NO_ROOM:
            return self.more_room()
        if problem == Problem.TIMESTAMP:
            at = 35
        if problem:
            self.call["mark"](self.row_address(), problem, self.position + at)
        self.state[k.ROWS] += 1
        self.position += size
        return True

    def odd(self) -> Ending | None:
        """Something at `position` that the loops do not go over: a damaged batch, one of format 0 or 1, one that is
        larger than the buffer, the end."""
        w, at = self.window, self.position
        left = w.size - at
        if left == 0 or not w.have(at, MAGIC_END):
            return self.ending()
        size, magic = k.LOG_OVERHEAD + w.number(at + 8, 4), w.number(at + 16, 1)
        if not LEAST_LEGACY <= size <= left:
            return self.damaged()
        good = size >= k.OVERHEAD and self.valid(at, size)
        if good and magic == 2:
            if not w.have(at, size):
                w.grow(at, size)
            return None
        if magic in (0, 1) and not good:
            return self.legacy(at, size, magic)
        if size < k.OVERHEAD or not (good or (self.leads(at + size) and self.next_valid(at + 1, at + size) is None)):
            return self.damaged()
        w.have(at, k.OVERHEAD)
        self.state[k.SHIFT] = w.start - w.address
        self.call["header"](self.s, self.row_address(), w.at(at), size)
        problem, place = (Problem.MAGIC, 16) if magic != 2 else (Problem.CRC, 17)
        self.call["mark"](self.row_address(), problem, at + place)
        self.state[k.ROWS] += 1
        self.position += size
        return None

    def legacy(self, at: int, size: int, magic: int) -> Ending | None:
        """A message of format 0 or 1."""
        base = self.window.number(at, 8)
        if self.valid_legacy(at, size):
            self.put(at, size, magic=magic, base_offset=base, last_offset=base)
        elif self.leads(at + size):
            self.put(at, size, Problem.CRC, at + 12, magic=magic, base_offset=base, last_offset=base)
        else:
            return self.damaged()
        self.position = at + size
        return None

    def valid_legacy(self, at: int, size: int) -> bool:
        """Whether a message of format 0 or 1 agrees with its CRC-32, of the bytes from the magic byte on."""
        w = self.window
        if not w.have(at, MAGIC_END):
            return False
        stored, crc, place, stop = w.number(at + 12, 4, signed=False), 0, at + 16, at + size
        while place < stop and w.have(place, 1):
            part = min(w.stop, stop) - place
            crc = zlib.crc32(w.view[place - w.start : place - w.start + part], crc)
            place += part
        return crc == stored and place == stop

    def valid(self, at: int, size: int) -> bool:
        """Whether `size` bytes, no more than the file has, agree with the CRC in them. [BAT-3]"""
        w = self.window
        if not w.have(at, k.OVERHEAD):
            return False
        stored, crc, place, stop = w.number(at + 17, 4, signed=False), 0, at + 21, at + size
        while place < stop:
            if not w.have(place, min(stop - place, len(w.view))):
                return False
            part = min(w.stop, stop) - place
            crc = self.call["checksum"](self.table.ctypes.data, crc, w.at(place), part)
            place += part
        return crc == stored

    def limits(self) -> tuple[int, int]:
        """The least and the greatest base offset of a batch that stands in this segment."""
        if self.base_offset is None:
            return 0, (1 << 63) - 1
        return self.base_offset, self.base_offset + WIDEST

    def leads(self, at: int) -> bool:
        """Whether batches, damaged perhaps but one behind the other, lead from here to a good one or to the end;
        `ENOUGH` one behind the other are no accident either."""
        w = self.window
        visited, good = set[int](), at == w.size or at in self.chain
        while not good and self.plausible(at):
            visited.add(at)
            size, magic = k.LOG_OVERHEAD + w.number(at + 8, 4), w.number(at + 16, 1)
            at += size
            whole = self.valid if magic == 2 else self.valid_legacy
            good = at == w.size or len(visited) == ENOUGH or (at < w.size and whole(at - size, size))
        if good and visited:
            self.chain = visited
        return good

    def plausible(self, at: int) -> bool:
        """Whether a batch may begin here, by its first bytes."""
        w = self.window
        if not w.have(at, MAGIC_END):
            return False
        size, magic, (low, high) = k.LOG_OVERHEAD + w.number(at + 8, 4), w.number(at + 16, 1), self.limits()
        least = k.OVERHEAD if magic == 2 else LEAST_LEGACY
        return magic in (0, 1, 2) and size >= least and low <= w.number(at, 8) <= high

    def next_valid(self, at: int, stop: int | None = None) -> int | None:
        """The next place, before byte `stop` if given, where a batch of format 2 surely begins: header plausible, CRC
        right, behind what was read."""
        w = self.window
        self.remember()
        low, high = self.limits()
        if self.end_offset is not None and low <= self.end_offset <= high:
            low = self.end_offset
        stop = w.size if stop is None else stop
        while at + k.OVERHEAD <= stop and w.have(at, k.OVERHEAD):
            end = min(w.stop, stop + k.OVERHEAD - 1)
            found = self.call["seek"](w.at(at), w.at(end), low, high, w.size - at) + w.start - w.address
            if found >= stop:
                return None
            if found < w.stop:
                size = k.LOG_OVERHEAD + w.number(found + 8, 4)
                if self.valid(found, size):
                    return found
                at = found + 1
            else:
                at = max(at + 1, w.stop - k.OVERHEAD + 1)
                at = max(at, w.written(at) - k.OVERHEAD)  # no batch begins with as many zeros
        return None

    def damaged(self) -> Ending | None:
        """Bytes that are no batch: a row up to the next that is one, or the segment's end."""
        at, after = self.position, self.next_valid(self.position + 1)
        if after is None:
            return self.ending()
        self.put(at, after - at, Problem.LENGTH, at + 8)
        self.position = after
        return None

    def ending(self) -> Ending | None:
        """How the segment ends: nothing that follows is a whole batch. But if the rest agrees with its CRC, it is one
        whose length field is wrong: a row, and the end comes next."""
        w, at = self.window, self.position
        left = w.size - at
        fits = k.OVERHEAD <= left <= k.LOG_OVERHEAD + WIDEST
        if fits and w.have(at, k.OVERHEAD) and w.number(at + 16, 1) == 2 and self.valid(at, left):
            self.put(at, left, Problem.LENGTH, at + 8)
            self.position = w.size
            return None
        self.remember()
        if left == 0:
            return Ending(at, w.size, "", self.end_offset)
        torn, reason = self.rest(at, left)
        return Ending(at, w.size, reason, self.end_offset, torn)

    def rest(self, at: int, left: int) -> tuple[bool, str]:
        """What stands behind the last batch: whether a cut append leaves such, and what it is."""
        w = self.window
        zeros, place = True, at
        while zeros and place < w.size and w.have(place, 1):
            zeros = not w.memory[place - w.start : w.filled].any()
            place = w.written(w.stop)
        if zeros:
            return True, f"{left} bytes of zeros"
        if left < MAGIC_END or not w.have(at, MAGIC_END):
            return True, f"a cut batch: {left} bytes, fewer than the {MAGIC_END} up to its magic byte"
        size = k.LOG_OVERHEAD + w.number(at + 8, 4)
        if size > left and self.plausible(at):
            return True, f"a cut batch of {size} bytes, {left} there"
        return False, f"{left} bytes that are no batch"


def read_segment(
    file: File, *, deep: bool = True, records: bool = False, start: int = 0, buffer: int = BUFFER
) -> Iterator[Chunk | Ending]:
    """The batches of a segment from byte `start` on, a chunk at a time, and last how it ends.

    `deep`: decode the records too; without, their columns are -1. `records`: a RECORD row for each. `buffer`: bytes to
    read at a time. A file that shrinks meanwhile ends where it ends then. Raises UserError if it cannot be read.
    """
    window = _Window(file, max(buffer, k.OVERHEAD))
    try:
        name = file.path.name.split(".")[0]
        base_offset = int(name) if len(name) == 20 and name.isdecimal() and name.isascii() else None
        yield from _Scan(window, base_offset, deep, records and deep, start).run()
    finally:
        window.close()
