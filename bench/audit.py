"""The audit's data and its parts, one run in one process; see README.md. Each prints one line of JSON last.

python bench/audit.py make FOLDER BYTES --batch 100 --codec none
python bench/audit.py headers FOLDER       headers and CRCs alone
python bench/audit.py records FOLDER       every record decoded, no check
python bench/audit.py bytes FOLDER         read() alone, through the same buffer; --crc: and CRC-32C of all of it;
                                           --mapped: that of the mapped files, without read()
python bench/audit.py write                records from Python lists to batches in memory
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from kafkaspec.impl.common import kernels, scan
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.impl.common.writer import Column, write_batches
from kafkaspec.spec.common import compression

SEGMENT = 128 << 20
INDEX_INTERVAL = 4096
"""bytes, the broker's default"""
AT_ONCE = 100_000
"""Records that are written at a time."""
START = 1_700_000_000_000
KEY = 12
"""bytes; values have 90 to 129"""


def columns(r: np.random.Generator, first: int, words: bool) -> tuple[Column, Column, np.ndarray]:
    """Keys, values and timestamps of the next records. Values are random bytes, or of a few words, which compress."""
    sizes = r.integers(90, 130, AT_ONCE)
    total = int(sizes.sum())
    if words:
        some = np.frombuffer(r.bytes(64 * 8), "V8")
        data = r.choice(some, total // 8 + 1).tobytes()[:total]
    else:
        data = r.bytes(total)
    keys = Column(r.bytes(KEY * AT_ONCE), np.full(AT_ONCE, KEY, np.int64))
    return keys, Column(data, sizes), START + np.arange(first, first + AT_ONCE) // 10


def compressor(codec: str) -> Callable[[bytes], bytes] | None:
    if codec == "none":
        return None
    return partial(compression.compress, compression.CODEC_IDS[codec])


def make(folder: Path, total: int, batch: int, codec: str) -> dict[str, int]:
    """A partition's directory as a cleanly stopped broker leaves it, with at least so many bytes in its segments."""
    folder.mkdir(parents=True)
    r, offset, written, batches = np.random.default_rng(7), 0, 0, 0
    compress = compressor(codec)
    while written < total:
        path = folder / f"{offset:020}.log"
        first = offset
        with path.open("wb") as f:
            while f.tell() < min(SEGMENT, total - written):
                keys, values, times = columns(r, offset, codec != "none")
                f.write(
                    write_batches(
                        keys, values, times, batch_records=batch, base_offset=offset, compress=compress,
                        attributes=compression.CODEC_IDS[codec],
                    )
                )  # fmt: skip
                offset += AT_ONCE
            written += f.tell()
        batches += index(path, first)
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: kafkaspecBenchTopicAAA\n")
    return {"records": offset, "batches": batches, "bytes": written}


def index(path: Path, base: int) -> int:
    """Write both indexes of a segment by the broker's rule; the number of its batches."""
    offsets, times, since, count = list[int](), list[int](), 0, 0
    latest, latest_offset, entered = -1, -1, -1
    for x in scan.read_segment(File(path, path.stat().st_size), deep=False):
        if isinstance(x, Ending):
            break
        count += len(x.batches)
        rows = (x.batches[name].tolist() for name in ("position", "size", "last_offset", "max_timestamp"))
        for position, size, last, stamp in zip(*rows, strict=True):
            if stamp > latest:
                latest, latest_offset = stamp, last
            if since > INDEX_INTERVAL:
                offsets += (last - base, position)
                if latest > entered:
                    times += (latest, latest_offset - base)
                    entered = latest
                since = 0
            since += size
    if latest > entered:
        times += (latest, latest_offset - base)
    path.with_suffix(".index").write_bytes(np.array(offsets, ">i4").tobytes())
    entries = np.empty(len(times) // 2, [("timestamp", ">i8"), ("offset", ">i4")])
    entries["timestamp"], entries["offset"] = times[::2], times[1::2]
    path.with_suffix(".timeindex").write_bytes(entries.tobytes())
    return count


def read(folder: Path, deep: bool) -> dict[str, float]:
    """Every segment of a folder."""
    started, size, batches, records = time.perf_counter(), 0, 0, 0
    for path in sorted(folder.glob("*.log")):
        for x in scan.read_segment(File(path, path.stat().st_size), deep=deep):
            if isinstance(x, Chunk):
                assert not x.batches["problem"].any()
                batches += len(x.batches)
                records += int(x.batches["count"].sum())
            else:
                assert not x.reason
                size += x.size
    return {"records": records, "batches": batches, "bytes": size, "seconds": time.perf_counter() - started}


def read_bytes(folder: Path, crc: bool, mapped: bool) -> dict[str, float]:
    """Every segment's bytes, as the scan reads them, and nothing is looked for: what bounds it."""
    memory = np.empty(scan.BUFFER, np.uint8)
    checksum, table = (kernels.reader(False).functions["checksum"] if crc or mapped else None), kernels.crc_table()
    started, cpu, size = time.perf_counter(), time.process_time(), 0
    for path in sorted(folder.glob("*.log")):
        if mapped and checksum is not None:
            content = np.memmap(path, np.uint8, "r")
            size += content.size
            checksum(table.ctypes.data, 0, content.ctypes.data, content.size)
            continue
        with path.open("rb", buffering=0) as f:
            while got := f.readinto(memory.data):
                size += got
                if checksum is not None:
                    checksum(table.ctypes.data, 0, memory.ctypes.data, got)
    return {"bytes": size, "seconds": time.perf_counter() - started, "cpu_s": time.process_time() - cpu}


def write(batches: Sequence[int] = (1, 10, 100, 1000), records: int = 1_000_000) -> dict[str, float]:
    """Records a second from lists of bytes, by records a batch; the best of three, the first one takes the memory."""
    r = np.random.default_rng(7)
    data = r.bytes(2 * records)
    keys = [data[i : i + KEY] for i in range(records)]
    values = [data[i : i + 90 + i % 40] for i in range(records)]
    times = [START + i // 10 for i in range(records)]
    out = dict[str, float]()
    for batch in batches:
        rounds = list[float]()
        for _ in range(3):
            started = time.perf_counter()
            write_batches(keys, values, times, batch_records=batch)
            rounds.append(time.perf_counter() - started)
        out[str(batch)] = records / min(rounds)
    return out


def main() -> None:
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    p.add_argument("what", choices=("make", "headers", "records", "bytes", "write"))
    p.add_argument("folder", type=Path, nargs="?", default=Path())
    p.add_argument("bytes", type=int, nargs="?", default=SEGMENT)
    p.add_argument("--batch", type=int, default=100, help="records a batch (100)")
    p.add_argument("--codec", choices=compression.CODEC_IDS, default="none")
    p.add_argument("--crc", action="store_true")
    p.add_argument("--mapped", action="store_true")
    o = p.parse_args()
    if o.what == "make":
        found: dict[str, float] | dict[str, int] = make(o.folder, o.bytes, o.batch, o.codec)
    elif o.what == "write":
        found = write()
    elif o.what == "bytes":
        found = read_bytes(o.folder, o.crc, o.mapped)
    else:
        found = read(o.folder, o.what == "records")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
