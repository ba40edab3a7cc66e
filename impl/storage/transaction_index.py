"""The transaction index as Kafka keeps it: a file that is appended to, entry by entry, and read from its start.

Source: TransactionIndex and AbortedTxn, Kafka 4.3.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kafkaspec.impl.common.disk import Disk

SUFFIX = ".txnindex"
VERSION = 0
ENTRY = struct.Struct(">hqqqq")


class AbortedTxn(NamedTuple):
    """One entry. Offsets; `last_offset` is the abort marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    def encode(self) -> bytes:
        """Its 34 bytes. [TXI-1]"""
        return ENTRY.pack(VERSION, *self)


@dataclass(frozen=True)
class TxnIndexSearchResult:
    """What a fetch gets of one index, and whether no later index need be asked."""

    aborted_transactions: list[AbortedTxn]
    is_complete: bool


class NotAscending(ValueError):
    """The last offset of an entry is not above that of the one before."""


class CorruptIndex(Exception):
    """The index cannot be one of this segment: the segment is to be recovered."""


class UnknownVersion(Exception):
    """An entry of a version that is not known."""


def decode(data: bytes) -> Iterator[AbortedTxn]:
    """The whole entries of a file's bytes. Raises UnknownVersion, at the entry that has one. [TXI-1, TXI-11]"""
    for at in range(0, len(data) - ENTRY.size + 1, ENTRY.size):
        version, *fields = ENTRY.unpack_from(data, at)
        if version > VERSION:
            raise UnknownVersion(f"version {version} at byte {at}")
        yield AbortedTxn(*fields)


class TransactionIndex:
    """One segment's index, at a path of a disk. `base_offset` is the segment's."""

    def __init__(self, path: str, base_offset: int, disk: Disk) -> None:
        self.path = path
        self.base_offset = base_offset
        self.disk = disk
        self.last_offset: int | None = None
        """what the next entry's last offset must be above; not read back from the file"""

    @property
    def exists(self) -> bool:
        return self.disk.exists(self.path)

    @property
    def size(self) -> int:
        """Bytes of the file, 0 without one."""
        return self.disk.size(self.path) if self.exists else 0

    def __iter__(self) -> Iterator[AbortedTxn]:
        """The entries; none without a file. Raises UnknownVersion. [TXI-2]"""
        return decode(self.disk.read(self.path)) if self.exists else iter(())

    def append(self, entry: AbortedTxn) -> None:
        """Put the entry at the end; the first makes the file. Raises NotAscending. [TXI-2, TXI-3]"""
        if self.last_offset is not None and entry.last_offset <= self.last_offset:
            raise NotAscending(f"last offset {entry.last_offset} is not above {self.last_offset} in {self.path}")
        self.last_offset = entry.last_offset
        self.disk.append(self.path, entry.encode())

    def collect_aborted_txns(self, fetch_offset: int, upper_bound: int) -> TxnIndexSearchResult:
        """The entries that overlap [fetch_offset, upper_bound). [TXI-4, TXI-5]"""
        found = []
        for entry in self:
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound:
                return TxnIndexSearchResult(found, True)
        return TxnIndexSearchResult(found, False)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries from the first that ends at or above the offset. [TXI-8]"""
        before: int | None = None
        for n, entry in enumerate(self):
            if entry.last_offset >= offset:
                self.disk.truncate(self.path, n * ENTRY.size)
                self.last_offset = before
                return
            before = entry.last_offset

    def reset(self) -> None:
        """Drop all bytes; the file stays. [TXI-9]"""
        if self.exists:
            self.disk.truncate(self.path, 0)
        self.last_offset = None

    def sanity_check(self) -> None:
        """Raises CorruptIndex. [TXI-10]"""
        for entry in self:
            if entry.last_offset < self.base_offset:
                raise CorruptIndex(f"{entry} in {self.path} ends below the base offset {self.base_offset}")

    def flush(self) -> None:
        if self.exists:
            self.disk.flush(self.path)

    def rename(self, path: str) -> None:
        """To another path; there need be no file."""
        if self.exists:
            self.disk.rename(self.path, path)
        self.path = path


def collect(indexes: Iterable[TransactionIndex], fetch_offset: int, upper_bound: int) -> list[AbortedTxn]:
    """Over the indexes of a log's segments, from that of the segment which holds the fetch offset. [TXI-6, TXI-7]"""
    out: list[AbortedTxn] = []
    for index in indexes:
        found = index.collect_aborted_txns(fetch_offset, upper_bound)
        out += found.aborted_transactions
        if found.is_complete:
            break
    return out
