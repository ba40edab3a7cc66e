"""The offset index of a segment: from some of its offsets to the position of a batch in the .log file.

A slot is 8 bytes: the offset less the segment's base offset, and the position. Sparse: a reader looks up the greatest
offset that is not above its own, and reads the .log from there.

Source: OffsetIndex and AbstractIndex, Kafka 4.3.0.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkaspec.impl.common.mapped_index import (
    Corrupt,
    Full,
    MappedIndex,
    NotAbove,
)

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


def columns(data: bytes) -> NDArray[Any]:
    """Every whole slot, as an array of dtype SLOT over the given bytes. [OIX-1]"""
    return np.frombuffer(data, SLOT, len(data) // ENTRY_SIZE)


class OffsetIndex(MappedIndex[OffsetPosition]):
    """An offset index over its file."""

    layout = Struct(">ii")

    def meaning(self, relative: int, position: int) -> OffsetPosition:
        """The entry of a slot: an offset above the base offset, and a position in the .log, bytes. [OIX-1]"""
        return OffsetPosition(self.base_offset + relative, position)

    @property
    def last_offset(self) -> int:
        """Of the last entry; the base offset without any."""
        return self.parse(self.entries - 1).offset if self.entries else self.base_offset

    def append(self, offset: int, position: int) -> None:
        """Raises Full, NotAbove if the offset is not above the last one, or Overflow. [OIX-3, OIX-4]"""
        if self.is_full:
            raise Full(f"Attempt to append to a full index (size = {self.entries}).")
        if self.entries and offset <= self.last_offset:
            raise NotAbove(f"offset {offset} after {self.last_offset}")
        self.put(self.relative_offset(offset), position)

    def lookup(self, target: int) -> OffsetPosition:
        """The entry of the greatest offset that is not above the target; without any, the segment's first byte.
        [OIX-6]"""
        slot = self.greatest_lower_bound(target, lambda n: self.parse(n).offset)
        return OffsetPosition(self.base_offset, 0) if slot < 0 else self.parse(slot)

    def fetch_upper_bound_offset(self, position: int, size: int) -> OffsetPosition | None:
        """The first entry at or beyond the end of a fetch of `size` bytes from `position` on. [OIX-10]"""
        slot = self.least_upper_bound(position + size, lambda n: self.parse(n).position)
        return None if slot < 0 else self.parse(slot)

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below the offset. [OIX-11]"""
        slot = self.greatest_lower_bound(offset, lambda n: self.parse(n).offset)
        if slot >= 0 and self.parse(slot).offset != offset:
            slot += 1
        self.keep(max(slot, 0))

    def sanity_check(self) -> None:
        """Raises Corrupt. [OIX-20]"""
        if self.entries and self.last_offset < self.base_offset:
            raise Corrupt(f"the last offset {self.last_offset} is below {self.base_offset}")
        if self.length % self.size:
            raise Corrupt(f"{self.length} bytes are no whole number of entries")
