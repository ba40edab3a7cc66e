"""The loader of a log's directory, and the cleaner's swap, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import crc32c

from kafkaspec.contract.codec import encode
from kafkaspec.contract.machine import ByName, Json
from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.management.checkpoints import decode_epochs
from kafkaspec.impl.storage import log_loader as impl
from kafkaspec.impl.storage import segment as segments
from kafkaspec.impl.storage.leader_epochs import EpochEntry, LeaderEpochCheckpoint
from kafkaspec.impl.storage.leader_epochs import encode as encode_epochs
from kafkaspec.impl.storage.producer_state import encode as encode_snapshot
from kafkaspec.impl.storage.segment import headers
from kafkaspec.impl.storage.transaction_index import AbortedTxn
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.segment_contents import Batch as RecordBatch
from kafkaspec.spec.common.segment_contents import Record
from kafkaspec.spec.storage import log_loader as spec
from kafkaspec.spec.storage.log_loader import (
    CLEANED,
    EPOCHS,
    INDEX,
    LOG,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    name_of,
)

DIRECTORY = "dir/t-0"
TIME_MS = 1000
MAX_INDEX_BYTES = 1024
TORN_BYTES = 40
"""of a batch that was not written to its end"""


def encode_log(log: spec.LogFile) -> bytes:
    """The bytes of a .log."""
    out = bytearray()
    for b in log.batches:
        out += _batch(b)
    if log.torn:
        end = log.batches[-1].last + 1 if log.batches else 0
        out += _batch(spec.Batch(end, end))[:TORN_BYTES]
    return bytes(out)


@lru_cache(maxsize=1024)
def _batch(b: spec.Batch) -> bytes:
    records = tuple(Record(offset, TIME_MS) for offset in range(b.base, b.last + 1))
    data = bytearray(segments.encode(RecordBatch(records, 1, b.epoch)))
    data[-1] ^= not b.whole
    return bytes(data)


def decode_log(data: bytes) -> spec.LogFile:
    """What the spec sees of a .log."""
    found = []
    end = 0
    for h in headers(data):
        body = data[h.position + segments.CRC_FROM : h.position + h.size]
        whole = crc32c.crc32c(body) == h.crc
        found.append(spec.Batch(h.base_offset, h.last_offset, h.leader_epoch, whole))
        end = h.position + h.size
    return spec.LogFile(tuple(found), end < len(data))


CORRUPT_TXN_INDEX = AbortedTxn(1, -9, -9, 0).encode()
CORRUPT_SNAPSHOT = b"\0\1\x09\x09\x09\x09\0"


def encode_content(name: str, content: spec.Content) -> bytes:
    """A file's bytes."""
    if isinstance(content, spec.LogFile):
        return encode_log(content)
    if not isinstance(content, str):
        return encode_epochs([EpochEntry(*e) for e in content])
    if SNAPSHOT in name:
        return CORRUPT_SNAPSHOT if content == "corrupt" else encode_snapshot(())
    return CORRUPT_TXN_INDEX if content == "corrupt" else b""


@lru_cache(maxsize=4096)
def decode_content(name: str, data: bytes) -> spec.Content:
    """What the spec sees of a file."""
    if LOG in name:
        return decode_log(data)
    if name == EPOCHS:
        return tuple(spec.EpochEntry(*entry) for _, entry in decode_epochs(data))
    if SNAPSHOT in name:
        return "corrupt" if data == CORRUPT_SNAPSHOT else ""
    return "corrupt" if TXN_INDEX in name and data == CORRUPT_TXN_INDEX else ""


@lru_cache(maxsize=4096)
def shown(name: str, data: bytes) -> Json:
    """The same as an observation has it."""
    return encode(decode_content(name, data))


class Driver(ByName):
    """The loader over a simulated disk."""

    machine = spec.machine
    loader_class: type[impl.LogLoader] = impl.LogLoader
    replacement_class: type[impl.Replacement] = impl.Replacement

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.disk = SimulatedDisk()
        self._put(*(spec.File(*file) for file in spec.initial(**arguments).files.items()))

    def _put(self, *files: spec.File) -> None:
        for file in files:
            path = f"{DIRECTORY}/{file.name}"
            self.disk.write(path, encode_content(*file))
            self.disk.flush(path)
        self.disk.flush_directory(DIRECTORY)

    def put(self, file: spec.File) -> None:
        self._put(file)

    def drop(self, name: str) -> None:
        self.disk.remove(f"{DIRECTORY}/{name}")
        self.disk.flush_directory(DIRECTORY)

    def write_cleaned(self, new: Sequence[int]) -> None:
        for n in new:
            log = spec.File(name_of(n, LOG, CLEANED), spec.LogFile((spec.Batch(n, n),)))
            self._put(log, *(spec.File(name_of(n, end, CLEANED), "") for end in (INDEX, TIME_INDEX)))

    def replace_segments(self, old: Sequence[int], new: Sequence[int], steps: int) -> int:
        return self.replacement_class(DIRECTORY, self.disk, old, new).run(steps)

    def _loader(self, clean: bool, recovery_point: int, log_start: int) -> impl.LogLoader:
        return self.loader_class(
            DIRECTORY, self.disk, clean, recovery_point, log_start, max_index_bytes=MAX_INDEX_BYTES
        )

    def crashed_load(self, first: int, renames: int) -> int:
        loader = self._loader(clean=False, recovery_point=0, log_start=0)
        LeaderEpochCheckpoint(DIRECTORY, self.disk)
        return loader.swap(renames)

    def load(self, clean: bool, recovery_point: int, log_start: int) -> impl.LoadedOffsets:
        return self._loader(clean, recovery_point, log_start).load()

    def _files(self) -> Iterator[tuple[str, bytes]]:
        return ((n, self.disk.read(f"{DIRECTORY}/{n}")) for n in self.disk.files(DIRECTORY))

    def state(self) -> spec.Directory:
        return spec.Directory(Frozen({n: decode_content(n, data) for n, data in self._files()}))

    def observe(self) -> Json:
        return {"files": {n: shown(n, data) for n, data in self._files()}}
