"""Segments made for tests: batches of every kind, and what damage does to them."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkaspec.impl.common import kernels, scan
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import BATCH, RECORD, Chunk, Ending
from kafkaspec.impl.common.writer import header_column, write_batches

NAME = "00000000000000001000.log"
FIRST = 1000
NOW = 1_700_000_000_000
GZIP, TRANSACTIONAL, CONTROL, DELETE_HORIZON, APPEND_TIME = 1, 0x10, 0x20, 0x40, 0x08


BY_TABLES = kernels.reader(False, 0).functions


def checksum(data: bytes) -> int:
    """CRC-32C, by the tables."""
    body, table = np.frombuffer(data, np.uint8), kernels.crc_table()
    return BY_TABLES["checksum"](table.ctypes.data, 0, body.ctypes.data, len(body)) & 0xFFFFFFFF


def sealed(batch: bytes | bytearray) -> bytes:
    """A batch with length and CRC made right."""
    data = bytearray(batch)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[17:21] = checksum(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def marker(offset: int, kind: int, producer_id: int = 7, coordinator_epoch: int = 3) -> bytes:
    """The end of a transaction."""
    key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, coordinator_epoch)
    return bytes(
        write_batches(
            [key], [value], NOW, batch_records=1, base_offset=offset, producer_id=producer_id, producer_epoch=0,
            attributes=TRANSACTIONAL | CONTROL,
        )
    )  # fmt: skip


def empty(offset: int, last: int) -> bytes:
    """What the cleaner keeps of a batch without records."""
    head = struct.pack(">qiibIhiqqqhii", offset, 0, 1, 2, 0, 0, last - offset, -1, NOW, 9, 0, 5, 0)
    return sealed(head)


def batches(r: random.Random, count: int = 40) -> list[bytes]:
    """Consecutive batches of every kind, from offset FIRST on."""
    out, offset = list[bytes](), FIRST
    while len(out) < count:
        kind = r.randrange(8)
        n = r.randrange(1, 12)
        keys = [None if r.random() < 0.2 else r.randbytes(r.randrange(0, 40)) for _ in range(n)]
        values = [None if r.random() < 0.2 else r.randbytes(r.randrange(0, 200)) for _ in range(n)]
        times = [NOW + r.randrange(-1000, 100_000) for _ in range(n)]
        written = partial(write_batches, keys, values, times, base_offset=offset, leader_epoch=1, batch_records=n)
        if kind == 0:
            out.append(marker(offset, r.randrange(2)))
            n = 1
        elif kind == 1:
            out.append(empty(offset, offset + n - 1))
        elif kind == 2:
            out.append(bytes(written(attributes=GZIP, compress=gzip.compress)))
        elif kind == 3:
            headers = [[("trace", r.randbytes(9)), ("none", None)][: r.randrange(3)] for _ in range(n)]
            out.append(bytes(written(headers=header_column(headers))))
        elif kind == 4:
            out.append(bytes(written(attributes=APPEND_TIME, append_time=NOW + 7)))
        elif kind == 5:
            first = r.randrange(1 << 31)
            out.append(bytes(written(attributes=TRANSACTIONAL, producer_id=7, producer_epoch=0, base_sequence=first)))
        else:
            out.append(bytes(written()))
        offset += n
    return out


def message(offset: int, magic: int, key: bytes, value: bytes) -> bytes:
    """A message of format 0 or 1."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", NOW) if magic else b"")
    body += struct.pack(">i", len(key)) + key + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


@dataclass
class Read:
    """A segment as it was read."""

    rows: NDArray[Any]
    records: NDArray[Any]
    ending: Ending

    @property
    def bad(self) -> NDArray[Any]:
        return self.rows[np.flatnonzero(self.rows["problem"])]


def read(path: Path, data: bytes | None = None, **options: bool | int) -> Read:
    """Read a segment, after its content was written there if given."""
    if data is not None:
        path.write_bytes(data)
    rows, records, ending = [np.empty(0, BATCH)], [np.empty(0, RECORD)], None
    for x in scan.read_segment(File(path, path.stat().st_size), **options):  # type: ignore[arg-type]
        assert ending is None
        if isinstance(x, Chunk):
            assert len(x.batches)
            rows.append(x.batches)
            if x.records is not None:
                part = x.records.copy()
                part["batch"] += sum(map(len, rows[:-1]))
                records.append(part)
        else:
            ending = x
    assert ending is not None
    return Read(np.concatenate(rows), np.concatenate(records), ending)


def flips(r: random.Random, data: bytes, count: int) -> Iterator[tuple[int, bytes]]:
    """Damage of one byte each: where, and the data."""
    for _ in range(count):
        at = r.randrange(len(data))
        damaged = bytearray(data)
        damaged[at] ^= 1 << r.randrange(8) if r.random() < 0.5 else r.randrange(1, 256)
        yield at, bytes(damaged)
