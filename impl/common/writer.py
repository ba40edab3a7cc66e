"""Record batches from columns: keys, values and timestamps of many records at once, written by compiled loops.

What comes out is what `impl.storage.batch` writes a record at a time, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkaspec.impl.common import kernels as k
from kafkaspec.impl.common.rows import NO_TIMESTAMP

Numbers = NDArray[np.int64]
NULL = -1
MOST_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 1
"""Bytes of a record besides key, value and headers, at most: its size, attributes, deltas, two sizes, no headers."""


@dataclass(frozen=True)
class Column:
    """Byte strings behind each other; `sizes` in bytes, -1 for a null."""

    data: bytes | memoryview
    sizes: Numbers

    @staticmethod
    def of(values: Sequence[bytes | None]) -> Column:
        """A list as a column."""
        try:
            sizes = np.fromiter(map(len, values), np.int64, len(values))  # type: ignore[arg-type]
            return Column(b"".join(values), sizes)  # type: ignore[arg-type]
        except TypeError:
            sizes = np.fromiter((NULL if v is None else len(v) for v in values), np.int64, len(values))
            return Column(b"".join([v for v in values if v is not None]), sizes)

    @staticmethod
    def nulls(count: int) -> Column:
        return Column(b"", np.full(count, NULL, np.int64))

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def total(self) -> int:
        """Bytes of all."""
        return int(self.sizes[self.sizes > 0].sum())


Headers = Sequence[tuple[str, bytes | None]]


def header_column(headers: Sequence[Headers]) -> Column:
    """The headers of each record as they stand in it, their count first."""
    return Column.of([_varint(len(h)) + b"".join(map(_header, h)) for h in headers])


def _header(header: tuple[str, bytes | None]) -> bytes:
    name, value = header[0].encode(), header[1]
    return _varint(len(name)) + name + (_varint(NULL) if value is None else _varint(len(value)) + value)


def _varint(n: int) -> bytes:
    n = (n << 1) ^ (n >> 63)
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def write_batches(
    keys: Column | Sequence[bytes | None] | None,
    values: Column | Sequence[bytes | None],
    timestamps: Numbers | Sequence[int] | int,
    *,
    batch_records: int,
    base_offset: int = 0,
    leader_epoch: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    attributes: int = 0,
    append_time: int = -1,
    headers: Column | None = None,
    compress: Callable[[bytes], bytes] | None = None,
) -> memoryview:
    """All records in batches of `batch_records` each, the last perhaps smaller; base offset and base sequence go on
    from one to the next.

    `keys` None: no record has one. `timestamps` in ms; one number for all. `attributes` as in the header: codec, flags.
    `append_time`: with LogAppendTime in the attributes, the time of the append. `compress`: what the codec does to the
    records of a batch. Raises ValueError if the columns differ in length, if sizes are not those of the data, or for a
    timestamp below -1.
    """
    value_column = values if isinstance(values, Column) else Column.of(values)
    count = len(value_column)
    key_column = Column.nulls(count) if keys is None else keys if isinstance(keys, Column) else Column.of(keys)
    if isinstance(timestamps, int):
        times = np.full(count, timestamps, np.int64)
    else:
        times = np.ascontiguousarray(timestamps, np.int64)
    columns = [c for c in (key_column, value_column, headers) if c is not None]
    if {len(c) for c in columns} | {len(times)} != {count} or batch_records < 1:
        raise ValueError("columns of different lengths, or batches of no record")
    if any(c.total != len(c.data) or (c.sizes < NULL).any() for c in columns):
        raise ValueError("sizes that are not those of the data")
    if (times < NO_TIMESTAMP).any():
        raise ValueError("a timestamp below -1")
    writer = _Writer(columns, times)
    head = writer.state[k.HEAD :]
    head[k.BASE_OFFSET], head[k.LEADER_EPOCH], head[k.ATTRIBUTES] = base_offset, leader_epoch, attributes
    head[k.PRODUCER_ID], head[k.PRODUCER_EPOCH], head[k.BASE_SEQUENCE] = producer_id, producer_epoch, base_sequence
    if compress is None:
        return writer.all(batch_records, append_time)
    return writer.compressed(batch_records, append_time, compress)


class _Writer:
    """The compiled loops over some columns; keeps what their addresses point to."""

    def __init__(self, columns: Sequence[Column], times: Numbers) -> None:
        self.columns, self.times, self.table = columns, times, k.crc_table()
        self.data = [np.frombuffer(c.data, np.uint8) for c in columns]
        self.sizes = [np.ascontiguousarray(c.sizes, np.int64) for c in columns]
        self.state = np.zeros(k.WRITER_STATE, np.int64)
        for at, data in zip((k.KEYS, k.VALUES, k.HEADERS), self.data, strict=False):
            self.state[at] = data.ctypes.data
        for at, sizes in zip((k.KEY_SIZES, k.VALUE_SIZES, k.HEADER_SIZES), self.sizes, strict=False):
            self.state[at] = sizes.ctypes.data
        self.state[k.TIMES], self.state[k.SUMS] = times.ctypes.data, self.table.ctypes.data
        self.call = k.writer().functions

    def room(self, batches: int) -> NDArray[np.uint8]:
        """Memory for everything, in `batches` batches."""
        size = sum(c.total for c in self.columns) + len(self.times) * MOST_OVERHEAD + batches * k.OVERHEAD
        return np.empty(size, np.uint8)

    def all(self, batch_records: int, append_time: int) -> memoryview:
        count = len(self.times)
        out = self.room(-(-count // batch_records))
        self.state[k.OUT] = start = out.ctypes.data
        end = self.call["write_all"](self.state.ctypes.data, count, batch_records, append_time)
        return out[: end - start].data

    def compressed(self, batch_records: int, append_time: int, compress: Callable[[bytes], bytes]) -> memoryview:
        """The records of each batch are written to a place of their own first."""
        out, bare, state, count = bytearray(), self.room(0), self.state, len(self.times)
        head = state[k.HEAD :]
        state[k.BARE] = 1
        for first in range(0, count, batch_records):
            last = min(first + batch_records, count)
            times = self.times[first:last]
            base, sequence = int(head[k.BASE_OFFSET]), int(head[k.BASE_SEQUENCE])
            state[k.FIRST], state[k.LAST], state[k.OUT] = first, last, bare.ctypes.data
            head[k.COUNT], head[k.LAST_OFFSET] = last - first, base + last - first - 1
            head[k.BASE_TIMESTAMP] = times[0]
            head[k.MAX_TIMESTAMP] = append_time if append_time >= 0 else max(NO_TIMESTAMP, int(times.max()))
            end = self.call["write"](state.ctypes.data)
            batch = np.frombuffer(
                bytes(k.OVERHEAD) + compress(bare[: end - bare.ctypes.data].tobytes()), np.uint8
            ).copy()
            self.call["seal"](state.ctypes.data, batch.ctypes.data, len(batch))
            out += batch.data
            head[k.BASE_OFFSET] = base + last - first
            if sequence >= 0:
                head[k.BASE_SEQUENCE] = (sequence + last - first) & 0x7FFFFFFF
        return memoryview(out)
