"""The transaction index as Kafka keeps it: a file that is appended to, entry by entry, and read from its start.

Source: TransactionIndex and AbortedTxn, Kafka 4.3.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kafkaspec.contract.clauses import states
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.impl.common.disk import Disk, SimulatedDisk
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, KAFKA_EXCEPTION
from kafkaspec.spec.storage import transaction_index as spec

SUFFIX = ".txnindex"
VERSION = 0
ENTRY = struct.Struct(">hqqqq")


class AbortedTxn(NamedTuple):
    """One entry. Offsets; `last_offset` is the abort marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    @states("TXI-1")
    def encode(self) -> bytes:
        """Its 34 bytes."""
        return ENTRY.pack(VERSION, *self)


class NotAscending(ValueError):
    """The last offset of an entry is not above that of the one before."""


class CorruptIndex(Exception):
    """The index cannot be one of this segment: the segment is to be recovered."""


class UnknownVersion(Exception):
    """An entry of a version that is not known."""


@states("TXI-1", "TXI-11")
def decode(data: bytes) -> Iterator[AbortedTxn]:
    """The whole entries of a file's bytes. Raises UnknownVersion, at the entry that has one."""
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

    @states("TXI-2")
    def __iter__(self) -> Iterator[AbortedTxn]:
        """The entries; none without a file. Raises UnknownVersion."""
        return decode(self.disk.read(self.path)) if self.exists else iter(())

    @states("TXI-2", "TXI-3")
    def append(self, entry: AbortedTxn) -> None:
        """Put the entry at the end; the first makes the file. Raises NotAscending."""
        if self.last_offset is not None and entry.last_offset <= self.last_offset:
            raise NotAscending(f"last offset {entry.last_offset} is not above {self.last_offset} in {self.path}")
        self.last_offset = entry.last_offset
        self.disk.append(self.path, entry.encode())

    @states("TXI-4", "TXI-5")
    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTxn], bool]:
        """The entries that overlap [fetch_offset, upper_bound), and whether no later index need be asked."""
        found = []
        for entry in self:
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    @states("TXI-8")
    def truncate_to(self, offset: int) -> None:
        """Drop the entries from the first that ends at or above the offset."""
        before: int | None = None
        for n, entry in enumerate(self):
            if entry.last_offset >= offset:
                self.disk.truncate(self.path, n * ENTRY.size)
                self.last_offset = before
                return
            before = entry.last_offset

    @states("TXI-9")
    def reset(self) -> None:
        """Drop all bytes; the file stays."""
        if self.exists:
            self.disk.truncate(self.path, 0)
        self.last_offset = None

    @states("TXI-10")
    def sanity_check(self) -> None:
        """Raises CorruptIndex."""
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


@states("TXI-6", "TXI-7")
def collect(indexes: Iterable[TransactionIndex], fetch_offset: int, upper_bound: int) -> list[AbortedTxn]:
    """Over the indexes of a log's segments, from that of the segment which holds the fetch offset."""
    out: list[AbortedTxn] = []
    for index in indexes:
        found, complete = index.collect(fetch_offset, upper_bound)
        out += found
        if complete:
            break
    return out


# ---- as the recordings call it ---------------------------------------------------------------------------------------
DIRECTORY = "t-0"


class Driver:
    """The indexes of a log's segments, on a simulated disk."""

    index: type[TransactionIndex] = TransactionIndex

    def __init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.disk = SimulatedDisk()
        self.indexes: list[TransactionIndex] = []
        self._open(arguments.get("start_offset", 0))

    def _open(self, base_offset: int) -> None:
        self.indexes.append(self.index(f"{DIRECTORY}/{base_offset:020}{SUFFIX}", base_offset, self.disk))

    @property
    def active(self) -> TransactionIndex:
        return self.indexes[-1]

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        a = arguments
        try:
            match name:
                case "append":
                    self.active.append(AbortedTxn(*(a[f] for f in AbortedTxn._fields)))
                case "collectAbortedTxns":
                    found, complete = self.active.collect(a["fetch_offset"], a["upper_bound_offset"])
                    return {"abortedTransactions": spec.shown(found), "isComplete": complete}
                case "log.collectAbortedTxns":
                    below = [n for n, i in enumerate(self.indexes) if i.base_offset <= a["fetch_offset"]]
                    asked = self.indexes[below[-1] :]
                    return [list(e) for e in collect(asked, a["fetch_offset"], a["upper_bound_offset"])]
                case "roll":
                    self._open(a["start_offset"])
                case "truncateTo":
                    self.active.truncate_to(a["offset"])
                case "reset":
                    self.active.reset()
                case "sanityCheck":
                    self.active.sanity_check()
                case "reopen":
                    self._open(self.indexes.pop().base_offset)
                case "crash":
                    if self.active.exists:
                        self.disk.truncate(self.active.path, max(0, self.active.size - a["lost_bytes"]))
                    self._open(self.indexes.pop().base_offset)
                case "file":
                    return b"".join(e.encode() for e in self.active).hex()
                case "read":
                    return [list(e) for e in decode(bytes.fromhex(a["content"]))]
                case _:
                    raise ValueError(name)
        except NotAscending:
            return Refused(spec.TXI_3, ILLEGAL_ARGUMENT)
        except CorruptIndex:
            return Refused(spec.TXI_10, spec.CORRUPT_INDEX)
        except UnknownVersion:
            return Refused(spec.TXI_11, KAFKA_EXCEPTION)
        return None

    def observe(self) -> Json:
        return spec.observe(abstract(self))


def abstract(driver: Driver) -> spec.Log:
    """What the files and the memory stand for."""
    return spec.Log(
        tuple(
            spec.Index(
                i.base_offset,
                tuple(spec.Aborted(*e) for e in i),
                i.exists,
                i.last_offset,
                i.size % ENTRY.size,
            )
            for i in driver.indexes
        )
    )
