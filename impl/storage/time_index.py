"""The time index of a segment: from the largest timestamps so far to the offsets that have them.

A slot is 12 bytes: a timestamp, and an offset less the segment's base offset. The last slot is kept free for the entry
that is made when the segment is closed.

Source: TimeIndex and AbstractIndex, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkaspec.contract.clauses import states
from kafkaspec.contract.machine import Fields, Json, Refused
from kafkaspec.impl.common.mapped_index import (
    BUFFER_OVERFLOW,
    CORRUPT,
    ILLEGAL_ARGUMENT,
    ILLEGAL_STATE,
    INVALID_OFFSET,
    MappedIndex,
    MemoryFile,
    Refusal,
)
from kafkaspec.spec.common.mapped_index import SHOWN, Index
from kafkaspec.spec.storage import time_index as spec

ENTRY_SIZE = 12
NO_TIMESTAMP = -1
SLOT = np.dtype([("timestamp", ">i8"), ("relative", ">i4")])


class TimestampOffset(NamedTuple):
    """A timestamp, ms since 1970, and an offset."""

    timestamp: int
    offset: int


def decode(data: bytes, base_offset: int) -> list[TimestampOffset]:
    """Every whole slot of a file's bytes, unwritten ones too."""
    return [TimestampOffset(int(s["timestamp"]), base_offset + int(s["relative"])) for s in columns(data)]


@states("TIX-1")
def columns(data: bytes) -> NDArray[Any]:
    """Every whole slot, as an array of dtype SLOT over the given bytes."""
    return np.frombuffer(data, SLOT, len(data) // ENTRY_SIZE)


class TimeIndex(MappedIndex[TimestampOffset]):
    """A time index over its file."""

    layout = Struct(">qi")

    @states("TIX-1")
    def parse(self, slot: int) -> TimestampOffset:
        timestamp, relative = self.cell(slot)
        return TimestampOffset(timestamp, self.base_offset + relative)

    @property
    @states("TIX-4")
    def is_full(self) -> bool:
        """One slot is kept for the last entry."""
        return self.entries >= self.max_entries - 1

    @property
    @states("TIX-9")
    def last_entry(self) -> TimestampOffset:
        """Without any, no timestamp at the base offset."""
        return self.parse(self.entries - 1) if self.entries else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    @states("TIX-2", "TIX-3", "TIX-4", "TIX-5")
    def maybe_append(self, timestamp: int, offset: int, last: bool = False) -> None:
        """Nothing, unless the timestamp is above the last. `last`: the segment is closed, the kept slot may be used.
        Raises Refusal."""
        if not last and self.is_full:
            raise Refusal("full", ILLEGAL_ARGUMENT, f"Attempt to append to a full time index (size = {self.entries}).")
        if self.entries:
            if offset < self.last_entry.offset:
                raise Refusal("offset below", INVALID_OFFSET, f"offset {offset} after {self.last_entry.offset}")
            if timestamp < self.last_entry.timestamp:
                raise Refusal("time below", ILLEGAL_STATE, f"timestamp {timestamp} after {self.last_entry.timestamp}")
        if timestamp <= self.last_entry.timestamp:
            return
        self._check_writable()
        if self.entries >= self.max_entries:
            raise Refusal("overfull", BUFFER_OVERFLOW, f"{self.entries} entries in {self.max_entries} slots")
        self.put(timestamp, self.relative(offset))

    @states("TIX-6")
    def lookup(self, target: int) -> TimestampOffset:
        """The entry of the greatest timestamp that is not above the target; without any, no timestamp at the base."""
        slot = self.greatest_lower_bound(target, lambda n: self.parse(n).timestamp)
        return TimestampOffset(NO_TIMESTAMP, self.base_offset) if slot < 0 else self.parse(slot)

    @states("TIX-8")
    def truncate_to(self, offset: int) -> None:
        """Keep the entries below the offset. Offsets may be equal: of those the first counts."""
        slot = self.greatest_lower_bound(offset - 1, lambda n: self.parse(n).offset)
        while 0 <= slot < self.entries - 1 and self.parse(slot + 1).offset < offset:
            slot += 1
        self.keep(slot + 1)

    @states("TIX-10")
    def sanity_check(self) -> None:
        """Raises Refusal."""
        if self.entries:
            if self.last_entry.timestamp < self.parse(0).timestamp:
                raise Refusal("corrupt", CORRUPT, "the last timestamp is below the first")
            if self.last_entry.offset < self.base_offset:
                raise Refusal("corrupt", CORRUPT, f"offset {self.last_entry.offset} is below {self.base_offset}")
        if self.length % self.size:
            raise Refusal("corrupt", CORRUPT, f"{self.length} bytes are no whole number of entries")


# ---- beside the spec -------------------------------------------------------------------------------------------------
class Driver:
    """The index over a file in memory, for the spec to walk beside."""

    index_class = TimeIndex

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.base: int = arguments.get("base_offset", spec.BASE)
        self.file = MemoryFile()
        self.index = self.index_class(self.file, self.base, arguments.get("max_index_size", spec.MAX_SIZE))

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        try:
            return getattr(self, "do_" + name)(**arguments)
        except Refusal as e:
            return Refused(spec.REFUSALS[e.kind], e.error)

    def do_maybeAppend(self, timestamp: int, offset: int, skip_full_check: bool) -> Json:
        self.index.maybe_append(timestamp, offset, skip_full_check)

    def do_lookup(self, timestamp: int) -> Json:
        return list(self.index.lookup(timestamp))

    def do_pagesTouched(self, timestamp: int) -> Json:
        self.index.lookup(timestamp)
        return self.index.pages_touched()

    def do_entry(self, n: int) -> Json:
        return list(self.index.entry(n))

    def do_truncateTo(self, offset: int) -> Json:
        self.index.truncate_to(offset)

    def do_truncate(self) -> Json:
        self.index.truncate()

    def do_resize(self, new_size: int) -> Json:
        return self.index.resize(new_size)

    def do_trimToValidSize(self) -> Json:
        self.index.trim()

    def do_reset(self) -> Json:
        self.index.reset()

    def do_sanityCheck(self) -> Json:
        self.index.sanity_check()

    def do_close(self) -> Json:
        self.index.close()

    def do_closeHandler(self) -> Json:
        self.index.close_handler()

    def _open(self, max_index_size: int, writable: bool) -> None:
        self.index.close_handler()
        self.index = self.index_class(self.file, self.base, max_index_size, writable)

    def do_open(self, max_index_size: int, writable: bool) -> Json:
        self._open(max_index_size, writable)

    def do_openNew(self, max_index_size: int) -> Json:
        self.index.close_handler()
        self.file.content = None
        self._open(max_index_size, True)

    def do_openFile(self, file: str, max_index_size: int, writable: bool) -> Json:
        self.index.close_handler()
        self.file.content = bytearray(bytes.fromhex(file))
        self._open(max_index_size, writable)

    def do_fill(self, count: int) -> Json:
        slots = b"".join(TimeIndex.layout.pack(10 * n, n // 2) for n in range(1, count + 1))
        self.do_openFile(slots.hex(), len(slots), True)

    def observe(self) -> Json:
        content = bytes(self.file.content or b"")
        shown: dict[str, Any] = {"open": self.index.open, "fileLength": len(content)}
        if len(content) <= SHOWN:
            shown["file"] = content.hex()
        if self.index.open:
            index = self.index
            shown |= {
                "entries": [list(e) for e in index.all()],
                "maxEntries": index.max_entries,
                "length": index.length,
                "isFull": index.is_full,
                "lastEntry": list(index.last_entry),
            }
        return Fields(shown)


def abstract(driver: Driver) -> Index:
    """The spec's state that the driver is in."""
    i = driver.index
    content = bytes(driver.file.content or b"")
    kept = i.entries if i.open else 0
    return spec.index_of(content, driver.base, i.max_index_size, kept, i.open, i.writable or not i.open)
