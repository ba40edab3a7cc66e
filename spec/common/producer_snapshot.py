"""The bytes of a producer snapshot, version 1: a head, and 46 bytes of each producer.

Nothing here is a rule of its own; the rules are PSM-24 and PSM-25. Source: ProducerSnapshot.json and
ProducerStateManager.readSnapshot, Kafka 4.3.0.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

import crc32c

from kafkaspec.contract.clauses import states
from kafkaspec.contract.numbers import Int16, Int32, Int64, Offset
from kafkaspec.spec.common.producers import Snapshot

VERSION: Final = 1
HEAD: Final = struct.Struct(">hIi")
"""version, CRC, number of producers"""
ENTRY: Final = struct.Struct(">qhiqiqiq")
BITS: Final = (64, 16, 32, 64, 32, 64, 32, 64)
"""of the fields of an entry"""
CRC_FROM: Final = 6
"""the first byte that the CRC counts"""


class Entry(NamedTuple):
    """A producer in a snapshot file. -1 stands for no batch, and for no transaction."""

    producer_id: Int64
    epoch: Int16
    last_sequence: Int32
    last_offset: Int64
    offset_delta: Int32
    timestamp: Int64
    coordinator_epoch: Int32
    first_offset: Int64
    """of the open transaction"""


def fits(e: Entry) -> bool:
    """Whether the numbers have the fields' sizes."""
    return all(-(1 << b - 1) <= x < 1 << b - 1 for x, b in zip(e, BITS, strict=True))


def is_kafkas(e: Entry) -> bool:
    """Whether Kafka has a producer that is written so: what it lacks has the marks of that."""
    return e == understood(e)


@states("PSM-24")
def name(offset: Offset) -> str:
    return f"{offset:020}.snapshot"


@states("PSM-24")
def packed(entries: Sequence[Entry]) -> bytes:
    """A file with these entries, in this order."""
    return sealed(len(entries), b"".join(ENTRY.pack(*e) for e in entries))


@states("PSM-24")
def sealed(count: Int32, entries: bytes, version: Int16 = VERSION) -> bytes:
    """A file with these bytes for its entries, and the CRC of what stands there."""
    counted = struct.pack(">i", count) + entries
    return struct.pack(">hI", version, crc32c.crc32c(counted)) + counted


@states("PSM-24")
def written(data: bytes) -> list[Entry]:
    """The whole entries that stand behind the head of a file, number for number."""
    whole = (len(data) - HEAD.size) // ENTRY.size
    return [Entry._make(ENTRY.unpack_from(data, HEAD.size + i * ENTRY.size)) for i in range(whole)]


@states("PSM-25")
def understood(e: Entry) -> Entry:
    """An entry as Kafka takes it: a negative last offset is that of no batch, whatever stands beside it."""
    if e.last_offset < 0:
        e = e._replace(last_sequence=-1, last_offset=-1, offset_delta=0)
    return e._replace(first_offset=max(e.first_offset, -1))


@states("PSM-24")
def is_read_as_written(data: bytes, entries: Sequence[Entry]) -> bool:
    """Whether the entries that Kafka writes come out of a file as they stand there, and none that it does not write."""
    return all(map(is_kafkas, entries)) and all(
        e == there for e, there in zip(entries, written(data), strict=False) if is_kafkas(there)
    )


@states("PSM-25")
def unpacked(data: bytes) -> list[Entry] | None:
    """The entries of a file with these bytes; None if it is unreadable."""
    if len(data) < HEAD.size:
        return None
    version, crc, count = HEAD.unpack_from(data)
    if version != VERSION or not 0 <= count <= (len(data) - HEAD.size) // ENTRY.size:
        return None
    if crc != crc32c.crc32c(data[CRC_FROM:]):
        return None
    return [understood(e) for e in written(data)[:count]]


@states("PSM-24")
def entries_of(snapshot: Snapshot) -> list[Entry]:
    """The entries of a snapshot that holds these producers."""
    out = []
    for i, p in snapshot.items():
        last = p.batches[-1] if p.batches else None
        sequence, offset, delta = (-1, -1, 0) if last is None else last[:3]
        transaction = -1 if p.transaction is None else p.transaction
        out.append(Entry(i, p.epoch, sequence, offset, delta, p.last_timestamp, p.coordinator_epoch, transaction))
    return out
