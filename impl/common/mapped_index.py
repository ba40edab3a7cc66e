"""A sparse index as Kafka keeps it: a file of fixed slots, made as long as it may get, mapped into memory.

The offset index and the time index are two layouts of it. How many slots are in use is known in memory alone: the file
does not say, and an index that is opened takes every whole slot for an entry. The file and its mapping come in as an
argument: a simulated one, or a real file.

Source: AbstractIndex and LazyIndex, Kafka 4.3.0.
"""

from __future__ import annotations

import mmap
import os
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import ClassVar, Generic, Protocol, TypeVar

from kafkaspec.spec.common.mapped_index import MOST_RELATIVE, PAGE, WARM


class Refusal(Exception):
    """An index says no."""


class Overflow(Refusal):
    """An offset cannot be stored relative to the base offset."""


class NotAbove(Refusal):
    """An offset does not follow the last entry's."""


class Full(Refusal):
    """No slot is left."""


class NoSlot(Refusal):
    """A new file would have no slot."""


class TooShort(Refusal):
    """The entries in use do not fit into the new size."""


class ReadOnly(Refusal):
    """The index was opened to be read."""


class Corrupt(Refusal):
    """The sanity check fails."""


class NoSuchEntry(Refusal):
    """There are fewer entries."""


class IndexFile(Protocol):
    """A file, and the one mapping of it. Every method may raise OSError."""

    def exists(self) -> bool: ...
    def size(self) -> int: ...

    def set_size(self, size: int) -> None:
        """Create the file if need be; cut it, or fill it up with zeros. Not while it is mapped."""

    def map(self, writable: bool) -> None:
        """Map the whole file."""

    def unmap(self) -> None: ...

    def get(self, at: int, count: int) -> bytes:
        """Bytes of the mapping."""

    def put(self, at: int, data: bytes) -> None:
        """Into the mapping: the file has it at once, for every process; a machine that stops may lose it."""


class MemoryFile:
    """A file in memory."""

    def __init__(self, content: bytes | None = None) -> None:
        """None: there is no such file yet."""
        self.content = None if content is None else bytearray(content)
        self.mapped = False

    def exists(self) -> bool:
        return self.content is not None

    def size(self) -> int:
        return len(self._bytes())

    def _bytes(self) -> bytearray:
        if self.content is None:
            raise FileNotFoundError(2, "no such file")
        return self.content

    def set_size(self, size: int) -> None:
        assert not self.mapped
        kept = (self.content or bytearray())[:size]
        self.content = kept + bytes(size - len(kept))

    def map(self, writable: bool) -> None:
        self.mapped = True

    def unmap(self) -> None:
        self.mapped = False

    def get(self, at: int, count: int) -> bytes:
        return bytes(self._bytes()[at : at + count])

    def put(self, at: int, data: bytes) -> None:
        content = self._bytes()
        assert self.mapped
        assert at + len(data) <= len(content)
        content[at : at + len(data)] = data


class RealFile:
    """A file of the machine's own, really mapped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mapping: mmap.mmap | None = None

    def exists(self) -> bool:
        return self.path.exists()

    def size(self) -> int:
        return self.path.stat().st_size

    def set_size(self, size: int) -> None:
        with self.path.open("r+b" if self.path.exists() else "w+b") as f:
            f.truncate(size)

    def map(self, writable: bool) -> None:
        if self.size() == 0:  # nothing to map, and no system maps it
            return
        descriptor = os.open(self.path, os.O_RDWR if writable else os.O_RDONLY)
        try:
            self.mapping = mmap.mmap(descriptor, 0, access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ)
        finally:
            os.close(descriptor)

    def unmap(self) -> None:
        if self.mapping is not None:
            self.mapping.close()
            self.mapping = None

    def get(self, at: int, count: int) -> bytes:
        return b"" if self.mapping is None else self.mapping[at : at + count]

    def put(self, at: int, data: bytes) -> None:
        assert self.mapping is not None
        self.mapping[at : at + len(data)] = data


E = TypeVar("E")


class MappedIndex(Generic[E]):
    """What both indexes share. A subclass says how an entry lies in its slot."""

    layout: ClassVar[Struct]
    warm_bytes = WARM

    def __init__(self, file: IndexFile, base_offset: int, max_index_size: int, writable: bool = True) -> None:
        """Open the file, or make it if it is not there. Raises NoSlot. [OIX-13, OIX-18, TIX-9]"""
        self.file, self.base_offset, self.max_index_size = file, base_offset, max_index_size
        self.writable = writable
        self.size = self.layout.size
        new = not file.exists()
        if new:
            file.set_size(0 if max_index_size < self.size else self.rounded(max_index_size))
            if max_index_size < self.size:
                raise NoSlot(f"Invalid max index size: {max_index_size}")
        file.map(writable)
        self.open = True
        self.length = file.size()
        self.max_entries = self.length // self.size
        self.entries = 0 if new else self.max_entries
        self.touched: list[int] = []
        """the slots that the last lookup read, in order"""
        self.listed: tuple[bytes, list[E]] = b"", []
        """the entries that `all` answered last, and their bytes"""

    def rounded(self, size: int) -> int:
        """The most whole slots that fit, bytes."""
        return size // self.size * self.size

    # ---- entries

    @abstractmethod
    def meaning(self, first: int, second: int, /) -> E:
        """The entry of a slot that holds these two."""

    def parse(self, slot: int) -> E:
        """The entry in a slot."""
        return self.meaning(*self.cell(slot))

    def cell(self, slot: int) -> tuple[int, ...]:
        """A slot as it is stored."""
        self.touched.append(slot)
        return self.layout.unpack(self.file.get(slot * self.size, self.size))

    @property
    def is_full(self) -> bool:
        """Whether all slots are in use. [OIX-4]"""
        return self.entries >= self.max_entries

    def all(self) -> list[E]:
        """Those in use; the list of before where the file still holds the same ones."""
        used = self.file.get(0, self.entries * self.size)
        before, known = self.listed
        if used != before:
            same = len(before) if used.startswith(before) else len(used) if before.startswith(used) else 0
            more = [self.meaning(*cell) for cell in self.layout.iter_unpack(used[same:])]
            self.listed = used, known[: same // self.size] + more
        return self.listed[1]

    def entry(self, n: int) -> E:
        """The n-th. Raises NoSuchEntry. [OIX-21, TIX-11]"""
        if n >= self.entries:
            raise NoSuchEntry(f"entry {n} of an index of {self.entries}")
        return self.parse(n)

    def can_append(self, offset: int) -> bool:
        """Whether the offset can be stored. [OIX-2]"""
        return 0 <= offset - self.base_offset <= MOST_RELATIVE

    def relative_offset(self, offset: int) -> int:
        """The offset as it is stored. Raises Overflow. [OIX-2]"""
        if not self.can_append(offset):
            raise Overflow(f"offset {offset} in an index from {self.base_offset} on")
        return offset - self.base_offset

    def put(self, *cell: int) -> None:
        """Write the next slot, and count it. [OIX-5]"""
        self._check_writable()
        self.file.put(self.entries * self.size, self.layout.pack(*cell))
        self.entries += 1

    def _check_writable(self) -> None:
        """Raises ReadOnly if the index was opened to be read. [OIX-19, TIX-9]"""
        if not self.writable:
            raise ReadOnly("the index was opened to be read")

    # ---- the search

    def greatest_lower_bound(self, target: int, key: Callable[[int], int]) -> int:
        """The last slot whose key is not above the target, -1 without any."""
        return self._search(target, key, upper=False)

    def least_upper_bound(self, target: int, key: Callable[[int], int]) -> int:
        """The first slot whose key is not below the target, -1 without any."""
        return self._search(target, key, upper=True)

    def _search(self, target: int, key: Callable[[int], int], upper: bool) -> int:
        """Within the warm section if the target lies there, else before it. `key` gives a slot's.
        [OIX-7, OIX-9, TIX-7]"""
        self.touched = []
        if self.entries == 0:
            return -1
        first_warm = max(0, self.entries - 1 - self.warm_bytes // self.size)
        if key(first_warm) < target:
            return self._halve(target, key, first_warm, self.entries - 1, upper)
        first = key(0)
        if first > target or (upper and first == target):
            return 0 if upper else -1
        return self._halve(target, key, 0, first_warm, upper)

    def _halve(self, target: int, key: Callable[[int], int], low: int, high: int, upper: bool) -> int:
        """The answer lies within; `low` itself is not above the target. [OIX-8, TIX-7]"""
        while low < high:
            middle = (low + high + 1) >> 1
            found = key(middle)
            if found == target:
                return middle
            if found > target:
                high = middle - 1
            else:
                low = middle
        if upper:
            return low + 1 if low + 1 < self.entries else -1
        return low

    def pages_touched(self) -> list[int]:
        """The pages of the file that the last lookup read, each once."""
        first = {slot * self.size // PAGE for slot in self.touched}
        last = {(slot * self.size + self.size - 1) // PAGE for slot in self.touched}
        return sorted(first | last)

    # ---- shorter and longer

    def keep(self, entries: int) -> None:
        """The first `entries` entries."""
        self.entries = entries

    def truncate(self) -> None:
        """No entry is left; the slots keep what was in them. [OIX-12, TIX-8]"""
        self.keep(0)

    def resize(self, size: int) -> bool:
        """Make the file as long as the whole slots in `size` bytes; whether that changed it. Raises TooShort
        if the entries in use do not fit. (Kafka 4.3.0 cuts the file all the same: OIX-D3.)
        [OIX-14, OIX-15, OIX-19, TIX-9]"""
        length = self.rounded(size)
        if length == self.length:
            return False
        if length < self.entries * self.size:
            raise TooShort(f"{self.entries} entries in {length} bytes")
        self.file.unmap()
        self.file.set_size(length)
        self.file.map(True)
        self.writable = True
        self.length, self.max_entries = length, length // self.size
        return True

    def trim(self) -> None:
        """Cut the slots that are not in use. [OIX-16, TIX-9]"""
        if self.open:
            self.resize(self.entries * self.size)

    def reset(self) -> None:
        """No entry, and as many slots as may be. [OIX-17, TIX-9]"""
        self.truncate()
        self.resize(self.max_index_size)

    def close_handler(self) -> None:
        """Unmap, and leave the file as it is. [OIX-16, TIX-9]"""
        self.file.unmap()
        self.open = False

    def close(self) -> None:
        """Trim, and unmap. [OIX-16, TIX-9]"""
        self.trim()
        self.close_handler()
