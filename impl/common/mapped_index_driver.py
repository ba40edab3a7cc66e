"""What the drivers of both indexes share: an index over a file in memory, for the spec to walk beside."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cache
from struct import Struct
from types import ModuleType
from typing import Any, ClassVar

from kafkaspec.contract.codec import encode
from kafkaspec.contract.machine import ByName, Json, Refused
from kafkaspec.impl.common import mapped_index as impl
from kafkaspec.spec.common import mapped_index as spec
from kafkaspec.spec.common.mapped_index import SHOWN


def refused_by_both(of: ModuleType) -> Mapping[type[Exception], Refused]:
    """What both indexes refuse, as the spec of one says it."""
    return {
        impl.Overflow: of.TOO_FAR,
        impl.Full: of.FULL,
        impl.NoSlot: of.NO_SLOT,
        impl.TooShort: of.TOO_SHORT,
        impl.ReadOnly: of.NOT_WRITABLE,
        impl.Corrupt: of.NOT_SANE,
        impl.NoSuchEntry: of.NO_SUCH_ENTRY,
    }


class IndexDriver(ByName):
    """An index over a file in memory, for the spec of its kind to walk beside."""

    subject: impl.MappedIndex[Any]
    index_class: type[impl.MappedIndex[Any]]
    layout: ClassVar[Struct]
    """the spec's"""
    observation: ClassVar[type[Any]]
    """the spec's"""

    def reset(self, arguments: Mapping[str, Any]) -> None:
        first = self.machine.initial(**arguments)
        self.file = impl.MemoryFile()
        self.shown: tuple[Any, Json] = None, None
        """the entries that were observed last, and their JSON"""
        self.longest: tuple[bytes, list[Any]] = b"", []
        """the most entries that an index listed, and their bytes"""
        self.subject = self.index_class(self.file, first.base_offset, first.max_index_size)

    def reset_index(self) -> None:
        self.subject.reset()

    def can_append_offset(self, offset: int) -> bool:
        return self.subject.can_append(offset)

    def trim_to_valid_size(self) -> None:
        self.subject.trim()

    def open_(self, max_index_size: int, writable: bool) -> None:
        before = self.subject
        before.close_handler()
        self.longest = max(self.longest, before.listed, key=lambda listed: len(listed[0]))
        self.subject = self.index_class(self.file, before.base_offset, max_index_size, writable)
        self.subject.listed = self.longest  # where the file begins with the same bytes, it has the same entries

    def open_new(self, max_index_size: int) -> None:
        self.subject.close_handler()
        self.file.content = None
        self.open_(max_index_size, True)

    def open_file(self, file: str, max_index_size: int, writable: bool) -> None:
        self.subject.close_handler()
        self.file.content = bytearray(bytes.fromhex(file))
        self.open_(max_index_size, writable)

    def fill(self, count: int) -> None:
        slots = self.filled(count)
        self.open_file(slots.hex(), len(slots), True)

    @classmethod
    @cache
    def filled(cls, count: int) -> bytes:
        """A file with that many entries."""
        return b"".join(cls.layout.pack(*cls.filling(n)) for n in range(1, count + 1))

    @classmethod
    @abstractmethod
    def filling(cls, n: int) -> tuple[int, int]:
        """What the n-th slot of a filled index holds, from 1."""

    @abstractmethod
    def last(self) -> Any:
        """What the index says of its last entry."""

    def state(self) -> spec.Index:
        i = self.subject
        index = spec.Index(i.base_offset, i.max_index_size, is_open=i.open, writable=i.writable or not i.open)
        return spec.laid(index, self.layout, bytes(self.file.content or b""), i.entries if i.open else 0)

    def observe(self) -> Json:
        """What the index says of itself, beside what its file holds."""
        i, content = self.subject, bytes(self.file.content or b"")
        file = content.hex() if len(content) <= SHOWN else None
        if not i.open:
            return encode(self.observation(False, len(content), file))
        entries = i.all()
        if entries is not self.shown[0]:
            self.shown = entries, list(map(list, entries))
        shown = self.observation(True, len(content), file, [], i.max_entries, i.length, i.is_full, self.last())
        return {**encode(shown), "entries": self.shown[1]}
