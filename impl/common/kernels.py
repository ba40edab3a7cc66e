"""The loops over batches and records, in the restricted Python that `kafkaspec.native` compiles: reading (`scan`),
writing (`writer`), CRC-32C.

Bytes are untrusted: every load is behind a comparison with the end of what may be read. Numbers on a batch's header
are signed unless said; addresses are numbers. A `state` is a block of 64-bit numbers, with the indices below.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from kafkaspec import native
from kafkaspec.impl.common.rows import BATCH, NO_TIMESTAMP
from kafkaspec.native import (
    arithmetic_shift,
    copy,
    crc32c_step8,
    crc32c_step64,
    load,
    load8,
    load_big16,
    load_big32,
    load_big64,
    load_bytes,
    load_bytes32,
    multiply_high,
    store,
    store8,
    store_big16,
    store_big32,
    store_big64,
)

# ---- a row of BATCH, by index ----------------------------------------------------------------------------------------
POSITION, SIZE, BASE_OFFSET, LAST_OFFSET, LEADER_EPOCH, MAGIC, CRC, ATTRIBUTES, BASE_TIMESTAMP, MAX_TIMESTAMP = range(
    10
)
PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, COUNT, PROBLEM, PROBLEM_AT, FIRST_RECORD, LAST_RECORD = range(10, 18)
LARGEST_TIMESTAMP, TOMBSTONES, CONTROL_TYPE, COORDINATOR_EPOCH, COLUMNS = range(18, 23)
assert (BATCH.names or ())[COORDINATOR_EPOCH] == "coordinator_epoch"
assert len(BATCH.names or ()) == COLUMNS

# ---- a scan's state --------------------------------------------------------------------------------------------------
AT, STOP, SHIFT, ROW, ROWS, ROWS_ROOM, RECORDS_AT, RECORDS, RECORDS_ROOM, ROOM_ASKED, FAULT, TABLE = range(12)
"""AT, STOP: addresses of the next byte and behind the last. SHIFT: position in the file minus address. ROW: address of
the rows. RECORDS_AT: of the records' rows, 0 if nobody asked. FAULT: address of what is wrong."""
STATE = 12

# ---- why a scan stopped
MORE, ROOM, ODD, COMPRESSED, RECORD_ROOM = range(5)
"""MORE: the batch at AT is not there in full. ROOM: no room for its row. ODD: its header or its CRC is wrong.
COMPRESSED: its row is begun, its records are the caller's. RECORD_ROOM: ROOM_ASKED rows of records are needed."""

# ---- what can be wrong with a batch (see scan.Problem)
BAD_LENGTH, BAD_MAGIC, BAD_CRC, BAD_ATTRIBUTES, BAD_LAST_DELTA, BAD_COUNT, BAD_COMPRESSION, BAD_RECORD = range(1, 9)
BAD_OFFSET, BAD_TIMESTAMP, BAD_CONTROL, TOO_MUCH = range(9, 13)

OVERHEAD, LOG_OVERHEAD, LEAST_RECORD = 61, 12, 7
RECORD_WORDS = 7
P0, P1, P2, P3 = 0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3
SEED, OTHER_SEED, CONTENT_SEED = 0x1D8E4E27C47D124F, 0xEB44ACCAB455D165, 0x2F8B1E6C5A9D3C71
NONE, MARK = 0x9FB21C651E98DF25, 0xD6E8FEB86659FD93
EVERY = 0xFFFFFFFF
LONG, SHORT, FOR_LONG, FOR_SHORT = 1024, 128, 0x800, 0xC00
"""CRC-32C in three parts: bytes of each, and where the tables are that put them together."""
CRC32C, DECODES = 0, 1
"""Here for the names' sake; what is compiled has its own. CRC32C: the machine's instruction. DECODES: records too."""


def advanced(table: int, c: int) -> int:
    """The register as the table's number of zeros would leave it."""
    low = load(table, c & 255) ^ load(table, 0x100 + ((c >> 8) & 255))
    return low ^ load(table, 0x200 + ((c >> 16) & 255)) ^ load(table, 0x300 + (c >> 24))


def three(c: int, p: int, part: int, table: int) -> int:
    """The register behind three parts, each of `part` bytes. The instruction has three cycles to its result and can
    start in each: so the parts go side by side."""
    first = c
    second = 0
    third = 0
    stop = p + part
    while p < stop:
        first = crc32c_step64(first, load_bytes(p, 0))
        second = crc32c_step64(second, load_bytes(p + part, 0))
        third = crc32c_step64(third, load_bytes(p + 2 * part, 0))
        p += 8
    return advanced(table, advanced(table, first) ^ second) ^ third


def checksum(table: int, crc: int, p: int, n: int) -> int:
    """CRC-32C of n bytes at p, behind bytes whose CRC is known (0 for none). Where the processor cannot: eight bytes at
    a time, by eight tables of 256."""
    c = crc ^ EVERY
    if CRC32C:
        while n >= 3 * LONG:
            c = three(c, p, LONG, table + 8 * FOR_LONG)
            p += 3 * LONG
            n -= 3 * LONG
        while n >= 3 * SHORT:
            c = three(c, p, SHORT, table + 8 * FOR_SHORT)
            p += 3 * SHORT
            n -= 3 * SHORT
        while n >= 8:
            c = crc32c_step64(c, load_bytes(p, 0))
            p += 8
            n -= 8
        while n > 0:
            c = crc32c_step8(c, load8(p, 0))
            p += 1
            n -= 1
    else:
        while n >= 8:
            w = load_bytes(p, 0) ^ c
            c = load(table, 0x700 + (w & 255)) ^ load(table, 0x600 + ((w >> 8) & 255))
            c = c ^ load(table, 0x500 + ((w >> 16) & 255)) ^ load(table, 0x400 + ((w >> 24) & 255))
            c = c ^ load(table, 0x300 + ((w >> 32) & 255)) ^ load(table, 0x200 + ((w >> 40) & 255))
            c = c ^ load(table, 0x100 + ((w >> 48) & 255)) ^ load(table, w >> 56)
            p += 8
            n -= 8
        while n > 0:
            c = load(table, (c ^ load8(p, 0)) & 255) ^ (c >> 8)
            p += 1
            n -= 1
    return c ^ EVERY


# ---- varints ---------------------------------------------------------------------------------------------------------
def varint_end(p: int, stop: int, most: int) -> int:
    """The address behind the varint at p; 0 if it does not end before `stop`, or has more than `most` bytes."""
    if p < stop and load8(p, 0) < 128:
        return p + 1
    if p + 1 < stop and load8(p, 1) < 128:
        return p + 2
    limit = p + most
    if stop < limit:
        limit = stop
    while p < limit:
        if load8(p, 0) < 128:
            return p + 1
        p += 1
    return 0


def raw_varint(p: int, q: int) -> int:
    """The seven-bit groups between p and q, the lowest first."""
    raw = load8(p, 0) & 127
    shift = 7
    p += 1
    while p < q:
        raw = raw | ((load8(p, 0) & 127) << shift)
        shift += 7
        p += 1
    return raw


def varlong(p: int, q: int) -> int:
    """The zig-zag number between p and q: 64 bits."""
    raw = raw_varint(p, q)
    return (raw >> 1) ^ -(raw & 1)


def varint(p: int, q: int) -> int:
    """The zig-zag number between p and q: the lowest 32 bits count, as in Kafka's reader."""
    if q == p + 1:
        b = load8(p, 0)
        return (b >> 1) ^ -(b & 1)
    if q == p + 2:
        b = load8(p, 0) & 127 | load8(p, 1) << 7
        return (b >> 1) ^ -(b & 1)
    raw = raw_varint(p, q) & EVERY
    return (raw >> 1) ^ -(raw & 1)


def signed16(x: int) -> int:
    return arithmetic_shift(x << 48, 48)


def signed32(x: int) -> int:
    return arithmetic_shift(x << 32, 32)


# ---- hashes ----------------------------------------------------------------------------------------------------------
def mix(a: int, b: int) -> int:
    """Both halves of the product: each bit of either factor reaches every bit."""
    return (a * b) ^ multiply_high(a, b)


def hashed(p: int, n: int, seed: int) -> int:
    """64 bits of n bytes at p; another seed gives another, independent function."""
    h = mix(seed ^ P0, n ^ P1)
    a = 0
    b = 0
    if n > 16:
        while n > 16:
            h = mix(load_bytes(p, 0) ^ P1 ^ seed, load_bytes(p, 8) ^ h)
            p += 16
            n -= 16
        a = load_bytes(p + n - 16, 0)
        b = load_bytes(p + n - 8, 0)
    elif n >= 8:
        a = load_bytes(p, 0)
        b = load_bytes(p + n - 8, 0)
    elif n >= 4:
        a = load_bytes32(p, 0)
        b = load_bytes32(p + n - 4, 0)
    elif n > 0:
        a = (load8(p, 0) << 16) | (load8(p, n // 2) << 8) | load8(p, n - 1)
    return mix(mix(a ^ P2 ^ seed, b ^ h), P3 ^ h)


# ---- reading ---------------------------------------------------------------------------------------------------------
def decode(state: int, row: int, p: int, stop: int) -> int:
    """Read the records between two addresses into a row whose header is written (and into rows of records). 0, or what
    is wrong, with FAULT; or -1 if there is no room."""
    base = load(row, BASE_OFFSET)
    attributes = load(row, ATTRIBUTES)
    last_delta = load(row, LAST_OFFSET) - base
    max_time = load(row, MAX_TIMESTAMP)
    base_time = load(row, BASE_TIMESTAMP)
    count = load(row, COUNT)
    control = attributes & 0x20
    appended = attributes & 0x08
    out = load(state, RECORDS_AT)
    number = load(state, ROWS)
    written = load(state, RECORDS)
    if out != 0:
        asked = (stop - p) // LEAST_RECORD
        if count < asked:
            asked = count
        if written + asked > load(state, RECORDS_ROOM):
            store(state, ROOM_ASKED, asked)
            return -1
        out = out + written * (8 * RECORD_WORDS)
    before = -1
    first = -1
    largest = NO_TIMESTAMP
    tombstones = 0
    control_type = -1
    coordinator_epoch = -1
    time = max_time
    for i in range(count):
        store(state, FAULT, p)
        q = varint_end(p, stop, 5)
        if q == 0:
            return BAD_RECORD
        length = varint(p, q)
        if length < 1 or length > stop - q:
            return BAD_RECORD
        end = q + length
        p = q + 1
        q = varint_end(p, end, 10)
        if q == 0:
            return BAD_RECORD
        if appended == 0:
            time = base_time + varlong(p, q)
        p = varint_end(q, end, 5)
        if p == 0:
            return BAD_RECORD
        delta = varint(q, p)
        delta_at = q
        # ---- key
        q = varint_end(p, end, 5)
        if q == 0:
            return BAD_RECORD
        key_size = varint(p, q)
        if key_size < -1 or key_size > end - q:
            return BAD_RECORD
        key = q
        p = q
        if key_size > 0:
            p = q + key_size
        # ---- value
        q = varint_end(p, end, 5)
        if q == 0:
            return BAD_RECORD
        value_size = varint(p, q)
        if value_size < -1 or value_size > end - q:
            return BAD_RECORD
        value = q
        p = q
        if value_size < 0:
            tombstones += 1
        else:
            p = q + value_size
        # ---- headers
        q = varint_end(p, end, 5)
        if q == 0:
            return BAD_RECORD
        headers = varint(p, q)
        if headers < 0:
            return BAD_RECORD
        p = q
        content = 0
        if out != 0:
            if value_size < 0:
                content = mix(CONTENT_SEED, NONE)
            else:
                content = hashed(value, value_size, CONTENT_SEED)
        while headers > 0:
            headers -= 1
            q = varint_end(p, end, 5)
            if q == 0:
                return BAD_RECORD
            size = varint(p, q)
            if size < 0 or size > end - q:
                return BAD_RECORD
            if out != 0:
                content = mix(content ^ MARK, hashed(q, size, SEED))
            p = q + size
            q = varint_end(p, end, 5)
            if q == 0:
                return BAD_RECORD
            size = varint(p, q)
            if size < -1 or size > end - q:
                return BAD_RECORD
            p = q
            if size >= 0:
                p = q + size
                if out != 0:
                    content = mix(content ^ MARK, hashed(q, size, OTHER_SEED))
            elif out != 0:
                content = mix(content ^ MARK, NONE)
        if p != end:
            return BAD_RECORD
        if delta <= before or delta > last_delta:
            store(state, FAULT, delta_at)
            return BAD_OFFSET
        before = delta
        if i == 0:
            first = base + delta
        if time > largest:
            largest = time
        if control != 0 and i == 0:
            if key_size < 4 or signed16(load_big16(key, 0)) < 0:
                return BAD_CONTROL
            control_type = signed16(load_big16(key, 2))
            if control_type == 0 or control_type == 1:
                if value_size < 6 or signed16(load_big16(value, 0)) < 0:
                    return BAD_CONTROL
                coordinator_epoch = signed32(load_big32(value, 2))
        if out != 0:
            one = 0
            two = 0
            flags = control >> 3
            if key_size >= 0:
                one = hashed(key, key_size, SEED)
                two = hashed(key, key_size, OTHER_SEED)
                flags = flags | 1
            if value_size >= 0:
                flags = flags | 2
            store(out, 0, base + delta)
            store(out, 1, time)
            store(out, 2, number)
            store(out, 3, one)
            store(out, 4, two)
            store(out, 5, mix(content ^ P2, one ^ (flags & 1) ^ P3))
            store(out, 6, flags)
            out = out + 8 * RECORD_WORDS
    if p != stop:
        store(state, FAULT, p)
        return BAD_COUNT
    store(row, FIRST_RECORD, first)
    if count > 0:
        store(row, LAST_RECORD, base + before)
        store(row, LARGEST_TIMESTAMP, largest)
    store(row, TOMBSTONES, tombstones)
    store(row, CONTROL_TYPE, control_type)
    store(row, COORDINATOR_EPOCH, coordinator_epoch)
    if out != 0:
        store(state, RECORDS, written + count)
    if count > 0 and appended == 0 and largest != max_time:
        store(state, RECORDS, written)
        return BAD_TIMESTAMP
    return 0


def forget(row: int) -> int:
    """No record was decoded."""
    store(row, FIRST_RECORD, -1)
    store(row, LAST_RECORD, -1)
    store(row, LARGEST_TIMESTAMP, -1)
    store(row, TOMBSTONES, -1)
    store(row, CONTROL_TYPE, -1)
    store(row, COORDINATOR_EPOCH, -1)
    return 0


def mark(row: int, problem: int, position: int) -> int:
    """Write a problem into a row. Of the records only what contradicts the header stays."""
    store(row, PROBLEM, problem)
    store(row, PROBLEM_AT, position)
    if problem != BAD_TIMESTAMP:
        forget(row)
    return 0


def header(state: int, row: int, at: int, size: int) -> int:
    """Write the header of the batch at an address into a row; 61 bytes are there. What is wrong with it, or 0."""
    base = load_big64(at, 0)
    attributes = load_big16(at, 21)
    delta = signed32(load_big32(at, 23))
    count = signed32(load_big32(at, 57))
    store(row, POSITION, at + load(state, SHIFT))
    store(row, SIZE, size)
    store(row, BASE_OFFSET, base)
    store(row, LAST_OFFSET, base + delta)
    store(row, LEADER_EPOCH, signed32(load_big32(at, 12)))
    store(row, MAGIC, arithmetic_shift(load8(at, 16) << 56, 56))
    store(row, CRC, load_big32(at, 17))
    store(row, ATTRIBUTES, attributes)
    store(row, BASE_TIMESTAMP, load_big64(at, 27))
    store(row, MAX_TIMESTAMP, load_big64(at, 35))
    store(row, PRODUCER_ID, load_big64(at, 43))
    store(row, PRODUCER_EPOCH, signed16(load_big16(at, 51)))
    store(row, BASE_SEQUENCE, signed32(load_big32(at, 53)))
    store(row, COUNT, count)
    store(row, PROBLEM, 0)
    store(row, PROBLEM_AT, -1)
    forget(row)
    if attributes > 0x7F or (attributes & 7) > 4:
        store(state, FAULT, at + 21)
        return BAD_ATTRIBUTES
    if delta < 0:
        store(state, FAULT, at + 23)
        return BAD_LAST_DELTA
    if count < 0:
        store(state, FAULT, at + 57)
        return BAD_COUNT
    return 0


def batch(state: int, at: int, size: int) -> int:
    """The row of the batch of `size` bytes at an address, whose CRC is right: 0, COMPRESSED or RECORD_ROOM."""
    row = load(state, ROW) + load(state, ROWS) * (8 * COLUMNS)
    problem = header(state, row, at, size)
    if DECODES:
        if problem == 0 and load(row, ATTRIBUTES) & 7 != 0 and (load(row, COUNT) != 0 or size > OVERHEAD):
            return COMPRESSED
        if problem == 0:
            problem = decode(state, row, at + OVERHEAD, at + size)
            if problem < 0:
                return RECORD_ROOM
            if problem == BAD_TIMESTAMP:
                store(state, FAULT, at + 35)
    if problem != 0:
        mark(row, problem, load(state, FAULT) + load(state, SHIFT))
    store(state, ROWS, load(state, ROWS) + 1)
    return 0


def scan(state: int) -> int:
    """Rows of the batches from AT on, until something keeps it from going on."""
    at = load(state, AT)
    stop = load(state, STOP)
    table = load(state, TABLE)
    room = load(state, ROWS_ROOM)
    why = 0
    while True:
        store(state, AT, at)
        if stop - at < OVERHEAD:
            return MORE
        size = signed32(load_big32(at, 8)) + LOG_OVERHEAD
        if size < OVERHEAD or load8(at, 16) != 2:
            return ODD
        if size > stop - at:
            return MORE
        if load(state, ROWS) >= room:
            return ROOM
        if checksum(table, 0, at + 21, size - 21) != load_big32(at, 17):
            return ODD
        why = batch(state, at, size)
        if why != 0:
            return why
        at += size


def seek(at: int, stop: int, lowest_base: int, highest_base: int, most: int) -> int:
    """The first address at which a batch of format 2 could begin, by 17 bytes of its header; `stop` if there is none.
    A base offset within limits, a size of `most` bytes at most."""
    while at + OVERHEAD <= stop:
        if load8(at, 16) == 2:
            base = load_big64(at, 0)
            size = signed32(load_big32(at, 8)) + LOG_OVERHEAD
            if base >= lowest_base and base <= highest_base and size >= OVERHEAD and size <= most:
                return at
        at += 1
    return stop


# ---- writing ---------------------------------------------------------------------------------------------------------
KEYS, KEY_SIZES, VALUES, VALUE_SIZES, HEADERS, HEADER_SIZES, TIMES, FIRST, LAST, OUT, SUMS, BARE = range(12)
"""A writer's state. Columns one after the other, and their sizes (-1: null; HEADERS 0: nobody has any); timestamps;
the records from FIRST to LAST go into the batch at address OUT. BARE: only its records, without a header."""
HEAD = 12
"""The numbers of the header, from this index of the state on, as a row of BATCH has them."""
WRITER_STATE = HEAD + COLUMNS


def zigzag(x: int) -> int:
    return (x << 1) ^ arithmetic_shift(x, 63)


def varint_size(raw: int) -> int:
    n = 1
    raw = raw >> 7
    while raw != 0:
        n += 1
        raw = raw >> 7
    return n


def put_varint(p: int, raw: int) -> int:
    """Write a natural in groups of seven bits; the address behind it."""
    while raw >> 7 != 0:
        store8(p, 0, raw | 128)
        raw = raw >> 7
        p += 1
    store8(p, 0, raw)
    return p + 1


def put_bytes(p: int, source: int, size: int) -> int:
    """Write a size and that number of bytes; -1 is a null."""
    p = put_varint(p, zigzag(size))
    if size > 0:
        copy(p, source, size)
        return p + size
    return p


def write(state: int) -> int:
    """Write one batch, and move the columns' addresses behind it. The address behind what was written."""
    p = load(state, OUT)
    start = p
    if load(state, BARE) == 0:
        p = start + OVERHEAD
    keys = load(state, KEYS)
    values = load(state, VALUES)
    headers = load(state, HEADERS)
    key_sizes = load(state, KEY_SIZES)
    value_sizes = load(state, VALUE_SIZES)
    header_sizes = load(state, HEADER_SIZES)
    times = load(state, TIMES)
    first = load(state, FIRST)
    last = load(state, LAST)
    base_time = load(state, HEAD + BASE_TIMESTAMP)
    for i in range(first, last):
        key_size = load(key_sizes, i)
        value_size = load(value_sizes, i)
        delta = zigzag(i - first)
        time = zigzag(load(times, i) - base_time)
        size = 1 + varint_size(time) + varint_size(delta) + varint_size(zigzag(key_size))
        size += varint_size(zigzag(value_size))
        if key_size > 0:
            size += key_size
        if value_size > 0:
            size += value_size
        if headers != 0:
            size += load(header_sizes, i)
        else:
            size += 1
        p = put_varint(p, zigzag(size))
        store8(p, 0, 0)
        p = put_varint(p + 1, time)
        p = put_varint(p, delta)
        p = put_bytes(p, keys, key_size)
        p = put_bytes(p, values, value_size)
        if key_size > 0:
            keys += key_size
        if value_size > 0:
            values += value_size
        if headers != 0:
            size = load(header_sizes, i)
            copy(p, headers, size)
            headers += size
            p += size
        else:
            store8(p, 0, 0)
            p += 1
    store(state, KEYS, keys)
    store(state, VALUES, values)
    store(state, HEADERS, headers)
    if load(state, BARE) == 0:
        seal(state, start, p - start)
    return p


def seal(state: int, p: int, size: int) -> int:
    """Write the header of a batch of `size` bytes whose records stand there."""
    head = state + 8 * HEAD
    base = load(head, BASE_OFFSET)
    store_big64(p, 0, base)
    store_big32(p, 8, size - LOG_OVERHEAD)
    store_big32(p, 12, load(head, LEADER_EPOCH))
    store8(p, 16, 2)
    store_big16(p, 21, load(head, ATTRIBUTES))
    store_big32(p, 23, load(head, LAST_OFFSET) - base)
    store_big64(p, 27, load(head, BASE_TIMESTAMP))
    store_big64(p, 35, load(head, MAX_TIMESTAMP))
    store_big64(p, 43, load(head, PRODUCER_ID))
    store_big16(p, 51, load(head, PRODUCER_EPOCH))
    store_big32(p, 53, load(head, BASE_SEQUENCE))
    store_big32(p, 57, load(head, COUNT))
    store_big32(p, 17, checksum(load(state, SUMS), 0, p + 21, size - 21))
    return 0


def write_all(state: int, records: int, batch_records: int, append_time: int) -> int:
    """Write `records` records in batches of `batch_records` (the last may be smaller), base offset and sequence going
    on from one to the next. `append_time`: the largest timestamp of each, -1 for that of its records. The address
    behind the last."""
    head = state + 8 * HEAD
    times = load(state, TIMES)
    first = 0
    while first < records:
        last = first + batch_records
        if last > records:
            last = records
        largest = NO_TIMESTAMP
        for i in range(first, last):
            if load(times, i) > largest:
                largest = load(times, i)
        if append_time >= 0:
            largest = append_time
        base = load(head, BASE_OFFSET)
        store(state, FIRST, first)
        store(state, LAST, last)
        store(head, COUNT, last - first)
        store(head, LAST_OFFSET, base + last - first - 1)
        store(head, BASE_TIMESTAMP, load(times, first))
        store(head, MAX_TIMESTAMP, largest)
        p = write(state)
        store(state, OUT, p)
        store(head, BASE_OFFSET, base + last - first)
        sequence = load(head, BASE_SEQUENCE)
        if sequence >= 0:
            store(head, BASE_SEQUENCE, (sequence + last - first) & 0x7FFFFFFF)
        first = last
    return load(state, OUT)


WRITING: list[Callable[..., object]] = [
    advanced, three, checksum, zigzag, varint_size, put_varint, put_bytes, write, seal, write_all,
]  # fmt: skip

HEADERS_ALONE: list[Callable[..., object]] = [
    advanced, three, checksum, signed16, signed32, forget, mark, header, batch, scan, seek,
]  # fmt: skip
READING: list[Callable[..., object]] = [*HEADERS_ALONE, varint_end, raw_varint, varlong, varint, mix, hashed, decode]
APART = {"checksum", "three", "hashed", "raw_varint"}
"""Copying these wherever they are called would double the time that compiling takes, for no speed."""


@cache
def crc_table() -> NDArray[np.int64]:
    """Eight tables of 256: what a byte at distance 0 to 7 from the end of eight adds to CRC-32C; then four each for
    what becomes of a register's bytes LONG and SHORT zeros later."""
    table = np.zeros((16, 256), np.int64)
    for n in range(256):
        c = n
        for _ in range(8):
            c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
        table[0, n] = c
    for i in range(1, 8):
        table[i] = table[0, table[i - 1] & 255] ^ table[i - 1] >> 8
    bits = [int(table[0, 1 << i & 255]) ^ (1 << i) >> 8 for i in range(32)]
    zeros = 1
    while zeros < LONG:
        bits = [_applied(bits, b) for b in bits]
        zeros *= 2
        if zeros in (SHORT, LONG):
            start = (FOR_SHORT if zeros == SHORT else FOR_LONG) // 256
            for i, image in enumerate(bits):
                part, half = table[start + i // 8], 1 << i % 8
                part[half : 2 * half] = part[:half] ^ image
    return table.reshape(-1)


def _applied(bits: list[int], c: int) -> int:
    """A linear function of 32 bits, given by what becomes of each, of a number."""
    out = 0
    for i, image in enumerate(bits):
        if c >> i & 1:
            out ^= image
    return out


def _library(
    name: str, functions: list[Callable[..., object]], exported: set[str], instruction: int | None
) -> native.MachineCode:
    crc = native.crc32c_here() if instruction is None else instruction
    constants = {n: v for n, v in globals().items() if n.isupper() and isinstance(v, int)}
    constants |= {"CRC32C": crc, "DECODES": int(decode in functions)}
    if not crc:
        functions = [f for f in functions if f is not three]
    declarations = native.DECLARATIONS | native.CRC_DECLARATIONS.get(crc, set())
    return native.library(name, functions, constants, exported, APART, declarations)


@cache
def reader(deep: bool = True, instruction: int | None = None) -> native.MachineCode:
    """The loops that read, as machine code; those for headers and CRCs alone, if not `deep`, are compiled in a fifth of
    the time. `instruction`: 0 for CRC-32C by tables; by default what the machine has."""
    exported = {"scan", "header", "mark", "seek", "checksum"}
    return (
        _library("records", READING, exported | {"decode"}, instruction)
        if deep
        else _library("headers", HEADERS_ALONE, exported, instruction)
    )


@cache
def writer(instruction: int | None = None) -> native.MachineCode:
    """The loops that write, as machine code."""
    return _library("writer", WRITING, {"write", "seal", "write_all"}, instruction)
