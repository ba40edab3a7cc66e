"""What the offset index and the time index have in common: slots in a file, of which some first ones are in use.

Nothing here is a rule of its own; the rules are OIX and TIX. Source: AbstractIndex, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from struct import Struct, pack
from typing import Annotated

from icontract import require

from kafkaspec.contract.codec import replace
from kafkaspec.contract.numbers import Within
from kafkaspec.spec.common.remembered import remembered

FILES = "Kafka Internals, ch. 03, 'Data structures: the index files, field by field'"
WRITING = "Kafka Internals, ch. 03, 'Writing into the segment & the sparse index'"
ABSTRACT = "AbstractIndex, Kafka 4.3.0"

Cell = tuple[int, int]
"""What a slot holds, as it is stored: two signed numbers."""
UNWRITTEN: Cell = (0, 0)

PAGE = 4096
"""Bytes: the smallest page of the processors that Kafka runs on."""
WARM = 8192
"""Bytes at the end of an index that its lookups keep in memory."""
MOST_RELATIVE = 2**31 - 1
"""A relative offset is stored in four bytes, and not negative."""
BASE = 100
"""The base offset of the segment whose index is tried."""
IndexSize = Annotated[int, Within(0, 2**15)]
"""Bytes of an index's file: no more than is easily compared. Every slot of a file that is opened is an entry."""
SHOWN = 256
"""An observation shows the bytes of a file of at most this size, bytes."""

READ_ONLY = "java.nio.ReadOnlyBufferException"
BUFFER_OVERFLOW = "java.nio.BufferOverflowException"
INVALID_OFFSET = "org.apache.kafka.common.errors.InvalidOffsetException"
OVERFLOW = "org.apache.kafka.storage.internals.log.IndexOffsetOverflowException"
CORRUPT = "org.apache.kafka.storage.internals.log.CorruptIndexException"


def is_hexadecimal(text: str) -> bool:
    """Whether it is bytes in hexadecimal."""
    return len(text) % 2 == 0 and all(c in "0123456789abcdef" for c in text)


@dataclass(frozen=True)
class Index:
    """An index and its file. Where it is not open, all that the file holds is in `beyond`."""

    base_offset: int
    max_index_size: int
    """bytes"""
    used: tuple[Cell, ...] = ()
    """the entries"""
    beyond: tuple[Cell, ...] = ()
    """what the slots after them hold, up to the last that is not unwritten"""
    slots: int = 0
    """how many there are"""
    odd: bytes = b""
    """what follows the last whole slot"""
    is_open: bool = False
    writable: bool = True
    """if open"""


def written(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """Without the unwritten ones at the end."""
    out = list(cells)
    while out and out[-1] == UNWRITTEN:
        del out[-1]
    return tuple(out)


def size(index: Index, layout: Struct) -> int:
    """Bytes of the file."""
    return index.slots * layout.size + len(index.odd)


@remembered
def content(index: Index, layout: Struct) -> bytes:
    """The file's bytes."""
    held = index.used + index.beyond
    cells = pack(layout.format[0] + layout.format[1:] * len(held), *chain.from_iterable(held))
    return cells + bytes(index.slots * layout.size - len(cells)) + index.odd


def shown(index: Index, layout: Struct) -> str | None:
    """The file as an observation shows it: in hexadecimal, where it is short."""
    return content(index, layout).hex() if size(index, layout) <= SHOWN else None


def laid(index: Index, layout: Struct, data: bytes, used: int) -> Index:
    """The index over a file of these bytes, with its first `used` slots in use."""
    whole = len(data) // layout.size * layout.size
    cells: list[Cell] = [(a, b) for a, b in layout.iter_unpack(data[:whole])]
    return replace(index, used=tuple(cells[:used]), beyond=written(cells[used:]), slots=len(cells), odd=data[whole:])


def rounded(size: int, layout: Struct) -> int:
    """The most whole slots that fit, bytes."""
    return size // layout.size * layout.size


def with_size(index: Index, layout: Struct, size: int) -> Index:
    """The file cut, or filled up with zeros, to `size` bytes; entries that do not fit are gone, and the index with
    them."""
    if size == index.slots * layout.size + len(index.odd):
        return index
    used = len(index.used)
    if not index.odd and size >= used * layout.size and size % layout.size == 0:
        slots = size // layout.size
        return replace(index, slots=slots, beyond=written(index.beyond[: slots - used]))
    data = content(index, layout)[:size]
    return laid(index, layout, data + bytes(size - len(data)), min(used, size // layout.size))


def keeps(index: Index, layout: Struct, size: int) -> bool:
    """Whether the entries in use fit into a file of `size` bytes at most."""
    return len(with_size(index, layout, rounded(size, layout)).used) == len(index.used)


def resized(index: Index, layout: Struct, size: int) -> Index | None:
    """The index in a file of the whole slots that fit into `size` bytes, filled up with zeros; None if entries do not
    fit."""
    after = with_size(index, layout, rounded(size, layout))
    if after is index:
        return index
    return replace(after, writable=True) if keeps(index, layout, size) else None


def closed(index: Index) -> Index:
    """Unmapped, and the file as it is."""
    return replace(index, used=(), beyond=written(index.used + index.beyond), is_open=False, writable=True)


def opened(index: Index, max_index_size: int, writable: bool) -> Index:
    """The file as it is, every whole slot of it an entry."""
    held = closed(index).beyond
    used = held + (UNWRITTEN,) * (index.slots - len(held))
    return replace(index, used=used, beyond=(), max_index_size=max_index_size, is_open=True, writable=writable)


def keep(index: Index, entries: int) -> Index:
    """The index with its first `entries` entries; the slots after them keep what they hold."""
    return replace(index, used=index.used[:entries], beyond=written(index.used[entries:] + index.beyond))


def append(index: Index, cell: Cell) -> Index:
    """One entry more, in the next slot."""
    return replace(index, used=(*index.used, cell), beyond=index.beyond[1:])


NEW_FILE = ("openNew", "openFile", "fill")
"""Operations after which nothing is left of the file before."""


def needs_open(id: str) -> require:
    """What the clause of that id says is asked of an open index."""
    return require(lambda state: state.is_open, f"{id} a closed index is not used")


def first_warm(entries: int, layout: Struct) -> int:
    """The slot in which the warm section begins."""
    return max(0, entries - 1 - WARM // layout.size)


def probed(entries: int, layout: Struct, key: Callable[[int], int], target: int) -> list[int]:
    """The slots that a search for the greatest key not above the target reads, in order."""
    if entries == 0:
        return []
    warm = first_warm(entries, layout)
    if key(warm) < target:
        return [warm, *halving(key, target, warm, entries - 1)]
    if key(0) > target:
        return [warm, 0]
    return [warm, 0, *halving(key, target, 0, warm)]


def halving(key: Callable[[int], int], target: int, low: int, high: int) -> list[int]:
    """Those between, each time the upper middle of what is left."""
    if low >= high:
        return []
    middle = high - (high - low) // 2
    found = key(middle)
    if found == target:
        return [middle]
    return [middle, *(halving(key, target, middle, high) if found < target else halving(key, target, low, middle - 1))]


def pages(slots: Iterable[int], layout: Struct) -> list[int]:
    """The pages on which these slots lie."""
    ends = ((s * layout.size, s * layout.size + layout.size - 1) for s in slots)
    return sorted({at // PAGE for both in ends for at in both})
