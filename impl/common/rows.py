"""The rows that a scan of a segment gives: one a batch, one a record; and how the segment ends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

BATCH = np.dtype(
    [
        ("position", "<i8"),  # of the batch's first byte in the file
        ("size", "<i8"),  # bytes, the 12 before the length's count included
        # ---- the header, as it stands
        ("base_offset", "<i8"),
        ("last_offset", "<i8"),  # base offset + last offset delta
        ("leader_epoch", "<i8"),
        ("magic", "<i8"),
        ("crc", "<i8"),  # unsigned
        ("attributes", "<i8"),
        ("base_timestamp", "<i8"),
        ("max_timestamp", "<i8"),
        ("producer_id", "<i8"),
        ("producer_epoch", "<i8"),
        ("base_sequence", "<i8"),
        ("count", "<i8"),
        # ---- what decoding found
        ("problem", "<i8"),  # 0: nothing; else see impl.common.scan
        ("problem_at", "<i8"),  # byte of the file; inside a compressed batch: its first byte of records
        # ---- the records (of an empty batch, or one not decoded: -1)
        ("first_record", "<i8"),  # offset
        ("last_record", "<i8"),
        ("largest_timestamp", "<i8"),  # of the records, CreateTime; -1 without any
        ("tombstones", "<i8"),
        ("control_type", "<i8"),  # 0 abort, 1 commit, 2.. KRaft's; -1: no control record
        ("coordinator_epoch", "<i8"),  # of an abort or a commit, else -1
    ]
)
"""One row a batch. All numbers are 64 bits wide so that compiled code can fill them as a matrix."""

RECORD = np.dtype(
    [
        ("offset", "<i8"),
        ("timestamp", "<i8"),
        ("batch", "<i8"),  # row in the chunk's batches
        ("key_hash", "<u8", (2,)),  # 128 bits of the key; both 0 without a key
        ("hash", "<u8"),  # of key, value and headers
        ("flags", "<i8"),  # 1 has a key, 2 has a value (no tombstone), 4 control record
    ]
)
"""One row a record; filled for partitions where a check `needs_records`."""


def running_maximum(x: NDArray[np.int64]) -> NDArray[np.int64]:
    """The largest number up to each: the numbers themselves where they never fall, which is seen much faster."""
    if (x[1:] >= x[:-1]).all():
        return x
    largest: NDArray[np.int64] = np.maximum.accumulate(x)
    return largest


def last_not_above(starts: NDArray[np.int64], x: NDArray[np.int64]) -> NDArray[np.intp]:
    """For each number the index of the last of some rising starts that is not above it, -1 if all are. Where one is the
    answer for the least and the greatest number, it is for all."""
    if not len(x):
        return np.zeros(0, np.intp)
    low, high = np.searchsorted(starts, (x.min(), x.max()), "right")
    if low == high:
        return np.full(len(x), low - 1)
    found: NDArray[np.intp] = np.searchsorted(starts, x, "right") - 1
    return found


NO_TIMESTAMP = -1
ABORT, COMMIT = 0, 1
"""Of `control_type`."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive batches of one segment. Rows stand in the order of the file. Batches of formats 0 and 1 have a row
    too, with `magic` below 2 and -1 in what they lack."""

    batches: NDArray[Any]
    """of dtype BATCH"""
    records: NDArray[Any] | None = None
    """of dtype RECORD, or None if nobody asked"""

    # ---- what several checks ask, each worked out once. Columns are copies: in the rows each number has a line of the
    # processor's cache to itself.
    @cached_property
    def bad(self) -> NDArray[np.bool_]:
        """Which batches are damaged."""
        found: NDArray[np.bool_] = self.batches["problem"] != 0
        return found

    @cached_property
    def damaged(self) -> bool:
        """Whether some batch is damaged."""
        return bool(self.bad.any())

    @cached_property
    def old(self) -> NDArray[np.bool_]:
        """Which batches, not damaged, are of format 0 or 1."""
        found: NDArray[np.bool_] = (self.batches["magic"] < 2) & ~self.bad
        return found

    @cached_property
    def legacy(self) -> bool:
        """Whether some batch, not damaged, is of format 0 or 1."""
        return bool(self.old.any())

    @property
    def usual(self) -> bool:
        """Whether every batch is of format 2 and not damaged."""
        return not (self.damaged or self.legacy)

    @cached_property
    def size(self) -> NDArray[np.int64]:
        """The sizes of the batches, bytes."""
        return self.batches["size"].copy()

    @cached_property
    def count(self) -> NDArray[np.int64]:
        """How many records each batch says it has."""
        return self.batches["count"].copy()

    @cached_property
    def base(self) -> NDArray[np.int64]:
        """The base offsets."""
        return self.batches["base_offset"].copy()

    @cached_property
    def last(self) -> NDArray[np.int64]:
        """The last offsets."""
        return self.batches["last_offset"].copy()

    @cached_property
    def believed(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Base and last offsets of the batches that are not damaged."""
        return (self.base[~self.bad], self.last[~self.bad]) if self.damaged else (self.base, self.last)

    def of_undamaged(self, name: str) -> NDArray[np.int64]:
        """A column of the batches that are not damaged."""
        column: NDArray[np.int64] = self.batches[name].copy()
        return column[~self.bad] if self.damaged else column

    @cached_property
    def rising(self) -> bool:
        """Whether each batch that is not damaged begins above the end of the one before, and ends no lower than it
        begins."""
        base, last = self.believed
        return not ((base[1:] <= last[:-1]).any() or (last < base).any())

    @cached_property
    def reached(self) -> NDArray[np.int64]:
        """The highest last offset up to each batch of those that are not damaged; -1 before the first."""
        return running_maximum(np.where(self.bad, -1, self.last) if self.damaged else self.last)


@dataclass(frozen=True)
class Ending:
    """How a segment's bytes end. `end` is the first byte that is no whole batch; `size` the file's length when it was
    read. `reason` "" if the file ends there; else what stands there, in words."""

    end: int
    size: int
    reason: str = ""
    end_offset: int | None = None
    """last offset + 1 of the last whole batch; None if there is none"""
    torn: bool = False
    """an append that was cut short leaves just this: the first bytes of a batch, or zeros"""
