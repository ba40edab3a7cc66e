"""The offset index of a segment: from some of its offsets to the position of a batch in the .log file.

A slot is 8 bytes: the offset less the segment's base offset, and the position. Sparse: a reader looks up the greatest
offset that is not above its own, and reads the .log from there.

Source: OffsetIndex and AbstractIndex, Kafka 4.3.0.
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
    CORRUPT,
    ILLEGAL_ARGUMENT,
    INVALID_OFFSET,
    MappedIndex,
    MemoryFile,
    Refusal,
)
from kafkaspec.spec.common.mapped_index import SHOWN, Index
from kafkaspec.spec.storage import offset_index as spec

ENTRY_SIZE = 8
SLOT = np.dtype([("relative", ">i4"), ("position", ">i4")])


class OffsetPosition(NamedTuple):
    """An offset, and a position in the .log file, bytes."""

    offset: int
    position: int


def decode(data: bytes, base_offset: int) -> list[OffsetPosition]:
    """Every whole slot of a file's bytes, unwritten ones too."""
    slots = columns(data)
    return [OffsetPosition(base_offset + int(s["relative"]), int(s["position"])) for s in slots]


@states("OIX-1")
def columns(data: bytes) -> NDArray[Any]:
    """Every whole slot, as an array of dtype SLOT over the given bytes."""
    return np.frombuffer(data, SLOT, len(data) // ENTRY_SIZE)


class OffsetIndex(MappedIndex[OffsetPosition]):
    """An offset index over its file."""

    layout = Struct(">ii")

    @states("OIX-1")
    def parse(self, slot: int) -> OffsetPosition:
        relative, position = self.cell(slot)
        return OffsetPosition(self.base_offset + relative, position)

    @property
    def last_offset(self) -> int:
        """Of the last entry; the base offset without any."""
        return self.parse(self.entries - 1).offset if self.entries else self.base_offset

    @states("OIX-3", "OIX-4")
    def append(self, offset: int, position: int) -> None:
        """Raises Refusal if the index is full, or the offset is not above the last one, or does not fit."""
        if self.is_full:
            raise Refusal("full", ILLEGAL_ARGUMENT, f"Attempt to append to a full index (size = {self.entries}).")
        if self.entries and offset <= self.last_offset:
            raise Refusal("not above", INVALID_OFFSET, f"offset {offset} after {self.last_offset}")
        self.put(self.relative(offset), position)

    @states("OIX-6")
    def lookup(self, target: int) -> OffsetPosition:
        """The entry of the greatest offset that is not above the target; without any, the segment's first byte."""
        slot = self.greatest_lower_bound(target, lambda n: self.parse(n).offset)
        return OffsetPosition(self.base_offset, 0) if slot < 0 else self.parse(slot)

    @states("OIX-10")
    def fetch_upper_bound(self, position: int, size: int) -> OffsetPosition | None:
        """The first entry at or beyond the end of a fetch of `size` bytes from `position` on."""
        slot = self.least_upper_bound(position + size, lambda n: self.parse(n).position)
        return None if slot < 0 else self.parse(slot)

    @states("OIX-11")
    def truncate_to(self, offset: int) -> None:
        """Keep the entries below the offset."""
        slot = self.greatest_lower_bound(offset, lambda n: self.parse(n).offset)
        if slot >= 0 and self.parse(slot).offset != offset:
            slot += 1
        self.keep(max(slot, 0))

    @states("OIX-20")
    def sanity_check(self) -> None:
        """Raises Refusal."""
        if self.entries and self.last_offset < self.base_offset:
            raise Refusal("corrupt", CORRUPT, f"the last offset {self.last_offset} is below {self.base_offset}")
        if self.length % self.size:
            raise Refusal("corrupt", CORRUPT, f"{self.length} bytes are no whole number of entries")


# ---- beside the spec -------------------------------------------------------------------------------------------------
class Driver:
    """The index over a file in memory, for the spec to walk beside."""

    index_class = OffsetIndex

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.base: int = arguments.get("base_offset", spec.BASE)
        self.file = MemoryFile()
        self.index = self.index_class(self.file, self.base, arguments.get("max_index_size", spec.MAX_SIZE))

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        try:
            return getattr(self, "do_" + name)(**arguments)
        except Refusal as e:
            return Refused(spec.REFUSALS[e.kind], e.error)

    def do_append(self, offset: int, position: int) -> Json:
        self.index.append(offset, position)

    def do_lookup(self, offset: int) -> Json:
        return list(self.index.lookup(offset))

    def do_entry(self, n: int) -> Json:
        return list(self.index.entry(n))

    def do_fetchUpperBoundOffset(self, position: int, size: int) -> Json:
        found = self.index.fetch_upper_bound(position, size)
        return None if found is None else list(found)

    def do_pagesTouched(self, offset: int) -> Json:
        self.index.lookup(offset)
        return {"slots": self.index.touched[:-1] if self.index.entries else [], "pages": self.index.pages_touched()}

    def do_canAppendOffset(self, offset: int) -> Json:
        return self.index.can_append(offset)

    def do_relativeOffset(self, offset: int) -> Json:
        return self.index.relative(offset)

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
        slots = b"".join(OffsetIndex.layout.pack(n, 10 * n) for n in range(1, count + 1))
        self.do_openFile(slots.hex(), len(slots), True)

    def observe(self) -> Json:
        content = bytes(self.file.content or b"")
        shown: dict[str, Any] = {"open": self.index.open, "fileLength": len(content)}
        if len(content) <= SHOWN:
            shown["file"] = content.hex()
        if shown["open"]:
            shown |= self._shown()
        return Fields(shown)

    def _shown(self) -> dict[str, Any]:
        index = self.index
        return {
            "entries": [list(e) for e in index.all()],
            "maxEntries": index.max_entries,
            "length": index.length,
            "isFull": index.is_full,
            "lastOffset": index.last_offset,
        }


def abstract(driver: Driver) -> Index:
    """The spec's state that the driver is in."""
    i = driver.index
    content = bytes(driver.file.content or b"")
    kept = i.entries if i.open else 0
    return spec.index_of(content, driver.base, i.max_index_size, kept, i.open, i.writable or not i.open)
