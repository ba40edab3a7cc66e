"""The time index of a segment: from the largest timestamps so far to the offsets that have them.

A slot is 12 bytes: a timestamp, and an offset less the segment's base offset. The last slot is kept free for the entry
that is made when the segment is closed.

Source: TimeIndex and AbstractIndex, Kafka 4.3.0.
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
    Refusal,
)
from kafkaspec.spec.common.kafka import NO_TIMESTAMP

ENTRY_SIZE = 12
SLOT = np.dtype([("timestamp", ">i8"), ("relative", ">i4")])


class TimeBelow(Refusal):
    """A timestamp is below the last entry's."""


class Overfull(Refusal):
    """The slot that is kept for the last entry is in use too."""


class TimestampOffset(NamedTuple):
    """A timestamp, ms since 1970, and an offset."""

    timestamp: int
    offset: int


def decode(data: bytes, base_offset: int) -> list[TimestampOffset]:
    """Every whole slot of a file's bytes, unwritten ones too."""
    return [TimestampOffset(int(s["timestamp"]), base_offset + int(s["relative"])) for s in columns(data)]


def columns(data: bytes) -> NDArray[Any]:
    """Every whole slot, as an array of dtype SLOT over the given bytes. [TIX-1]"""
    return np.frombuffer(data, SLOT, len(data) // ENTRY_SIZE)


class TimeIndex(MappedIndex[TimestampOffset]):
    """A time index over its file."""

    layout = Struct(">qi")

    def meaning(self, timestamp: int, relative: int) -> TimestampOffset:
        """The entry of a slot: a timestamp, ms, and an offset above the base offset. [TIX-1]"""
        return TimestampOffset(timestamp, self.base_offset + relative)

    @property
    def is_full(self) -> bool:
        """One slot is kept for the last entry. [TIX-4]"""
        return self.entries >= self.max_entries - 1

    @property
    def last_entry(self) -> TimestampOffset:
        """Without any, no timestamp at the base offset. [TIX-9]"""
        return self.parse(self.entries - 1) if self.entries else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def maybe_append(self, timestamp: int, offset: int, last: bool = False) -> None:
        """Nothing, unless the timestamp is above the last. `last`: the segment is closed, the kept slot may be used.
        Raises Refusal. [TIX-2, TIX-3, TIX-4, TIX-5]"""
        if not last and self.is_full:
            raise Full(f"Attempt to append to a full time index (size = {self.entries}).")
        if self.entries:
            if offset < self.last_entry.offset:
                raise NotAbove(f"offset {offset} after {self.last_entry.offset}")
            if timestamp < self.last_entry.timestamp:
                raise TimeBelow(f"timestamp {timestamp} after {self.last_entry.timestamp}")
        if timestamp <= self.last_entry.timestamp:
            return
        self._check_writable()
        if self.entries >= self.max_entries:
            raise Overfull(f"{self.entries} entries in {self.max_entries} slots")
        self.put(timestamp, self.relative_offset(offset))

    def lookup(self, target: int) -> TimestampOffset:
        """The entry of the greatest timestamp that is not above the target; without any, no timestamp at the base.
        [TIX-6]"""
        slot = self.greatest_lower_bound(target, lambda n: self.parse(n).timestamp)
        return TimestampOffset(NO_TIMESTAMP, self.base_offset) if slot < 0 else self.parse(slot)

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below the offset. Offsets may be equal: of those the first counts. [TIX-8]"""
        slot = self.greatest_lower_bound(offset - 1, lambda n: self.parse(n).offset)
        while 0 <= slot < self.entries - 1 and self.parse(slot + 1).offset < offset:
            slot += 1
        self.keep(slot + 1)

    def sanity_check(self) -> None:
        """Raises Corrupt. [TIX-10]"""
        if self.entries:
            if self.last_entry.timestamp < self.parse(0).timestamp:
                raise Corrupt("the last timestamp is below the first")
            if self.last_entry.offset < self.base_offset:
                raise Corrupt(f"offset {self.last_entry.offset} is below {self.base_offset}")
        if self.length % self.size:
            raise Corrupt(f"{self.length} bytes are no whole number of entries")
