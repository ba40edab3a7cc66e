"""How fast the log's impl appends and reads: `python bench/log.py 1000000 --batch 100`.

Batches are made before the clock starts, as a leader gets them: the log looks through them, gives offsets and epochs,
and writes. They are then read from the log's start to its end, at most --length bytes at a time, and every batch's
header is looked at. Files are real, in a temporary directory. Prints JSON: `records`, `bytes`, `segments`;
`append_seconds`, `append_cpu_seconds`, `appended_per_second`; `read_seconds`, `read_cpu_seconds`, `read_per_second`.
Rates are of wall time.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from kafkaspec.impl.common.disk import RealDisk
from kafkaspec.impl.storage.log import LogConfig, UnifiedLog
from kafkaspec.impl.storage.log_driver import encoded
from kafkaspec.impl.storage.segment import headers
from kafkaspec.spec.storage.log_parts.contents import BatchToReplicate, KeyValue


def measured(records: int, batch: int, value_bytes: int, length: int, folder: Path) -> dict[str, float]:
    """Append, then read all of it."""
    (folder / "t-0").mkdir()
    config = LogConfig(segment_bytes=64 << 20)
    log = UnifiedLog(str(folder / "t-0"), RealDisk(), config, lambda: 0, lambda _, task: task())
    value = "v" * value_bytes
    one = encoded(BatchToReplicate(0, 1_000_000, tuple(KeyValue(f"k{n}", value) for n in range(batch)), -1))
    begun, cpu = time.perf_counter(), time.process_time()
    for _ in range(records // batch):
        log.append_as_leader(one, 0)
    append_s, append_cpu_s = time.perf_counter() - begun, time.process_time() - cpu
    count = at = 0
    begun, cpu = time.perf_counter(), time.process_time()
    while found := log.read(at, length, "LOG_END", True).records:
        for h in headers(found):
            if h.position + h.size <= len(found):
                count += h.last_offset_delta + 1
                at = h.last_offset + 1
    read_s, read_cpu_s = time.perf_counter() - begun, time.process_time() - cpu
    assert count == log.log_end == records // batch * batch
    return {
        "records": count,
        "bytes": log.size,
        "segments": len(log.bases),
        "append_seconds": append_s,
        "append_cpu_seconds": append_cpu_s,
        "appended_per_second": count / append_s,
        "read_seconds": read_s,
        "read_cpu_seconds": read_cpu_s,
        "read_per_second": count / read_s,
    }


def main() -> None:
    """Print what was measured."""
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    p.add_argument("records", type=int)
    p.add_argument("--batch", type=int, default=100, help="records of each")
    p.add_argument("--value", type=int, default=20, help="bytes of a value")
    p.add_argument("--length", type=int, default=1 << 20, help="bytes of a read, at most")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measured(o.records, o.batch, o.value, o.length, Path(folder))))


if __name__ == "__main__":
    main()
