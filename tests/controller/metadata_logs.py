"""Metadata logs in bytes: real ones that are changed record by record, and small ones that are made."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kafkaspec.impl.controller import records as codec
from kafkaspec.spec.common.record_format import CONTROL, LogRecord, built, decode, encode, log_records

NAME = "__cluster_metadata-0"
NOW = 1_700_000_000_000
TOPIC, OTHER, GONE = "AAAAAAAAAAAAAAAAAAAABQ", "AAAAAAAAAAAAAAAAAAAABg", "AAAAAAAAAAAAAAAAAAAABw"


@dataclass
class LogBatch:
    """A batch, to be changed: the values of its records, or key and value of control records."""

    base: int
    epoch: int
    records: list[tuple[bytes | None, bytes]]
    control: bool = False
    time: int = NOW
    more: dict[str, int] = field(default_factory=dict)

    def encoded(self) -> bytes:
        records = [LogRecord(self.base + n, self.time, key, value) for n, (key, value) in enumerate(self.records)]
        header = {"leader_epoch": self.epoch, "attributes": CONTROL if self.control else 0} | self.more
        return encode(built(self.base, records, **header))

    @property
    def last(self) -> int:
        return self.base + len(self.records) - 1


def parsed(data: bytes) -> list[LogBatch]:
    """The batches of a log or a snapshot."""
    out, at = [], 0
    while at < len(data):
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        b = decode(data[at : at + size])
        records = log_records(b)
        kept = [(r.key, r.value or b"") for r in records]
        out.append(LogBatch(b.base_offset, b.leader_epoch, kept, bool(b.attributes & CONTROL), records[0].timestamp))
        at += size
    return out


def written(batches: Sequence[LogBatch]) -> bytes:
    return b"".join(b.encoded() for b in batches)


def place(batches: Sequence[LogBatch], offset: int) -> tuple[LogBatch, int]:
    """The batch that has an offset, and the record's number in it."""
    b = next(b for b in batches if b.base <= offset <= b.last)
    return b, offset - b.base


def record_at(batches: Sequence[LogBatch], offset: int) -> codec.Record:
    b, n = place(batches, offset)
    return codec.decode(b.records[n][1])


def put(batches: Sequence[LogBatch], offset: int, record: codec.Record | bytes) -> None:
    """Another record stands there."""
    b, n = place(batches, offset)
    b.records[n] = None, record if isinstance(record, bytes) else codec.encode(record)


def change(batches: Sequence[LogBatch], offset: int, version: int | None = None, /, **fields: Any) -> None:
    """The record has other fields."""
    r = record_at(batches, offset)
    put(batches, offset, codec.Record(r.type, r.version if version is None else version, {**r.fields, **fields}))


# ---- made from nothing -----------------------------------------------------------------------------------------------
def made(name: str, version: int | None = None, /, **fields: Any) -> bytes:
    """A record of data."""
    return codec.encode(codec.record(name, version, **fields))


def batches_of(*records: bytes | Sequence[bytes], base: int = 0, epoch: int = 1) -> list[LogBatch]:
    """Batches of records of data, of one each, or several that stand together."""
    out = []
    for r in records:
        values = [r] if isinstance(r, bytes) else list(r)
        out.append(LogBatch(base, epoch, [(None, v) for v in values]))
        base += len(values)
    return out


def control(base: int, name: str, epoch: int = 1, /, **fields: Any) -> LogBatch:
    return LogBatch(base, epoch, [codec.encode_control(codec.record(name, **fields))], control=True)


def snapshot_of(*records: bytes, epoch: int = 1) -> list[LogBatch]:
    """A snapshot: header, records, footer."""
    data = batches_of(list(records), base=1, epoch=epoch) if records else []
    header = control(0, "SnapshotHeaderRecord", epoch, lastContainedLogTimestamp=NOW)
    return [header, *data, control(1 + len(records), "SnapshotFooterRecord", epoch)]


def level(of: int) -> bytes:
    return made("FeatureLevelRecord", name="metadata.version", featureLevel=of)


def broker(id: int, epoch: int, version: int = 4, **of: Any) -> bytes:
    return made("RegisterBrokerRecord", version, **({"brokerId": id, "brokerEpoch": epoch, "fenced": False} | of))


def topic(name: str = "t", id: str = TOPIC) -> bytes:
    return made("TopicRecord", name=name, topicId=id)


def partition(number: int = 0, id: str = TOPIC, **of: Any) -> bytes:
    said = {
        "partitionId": number, "topicId": id, "replicas": [1, 2], "isr": [1, 2], "leader": 1, "leaderEpoch": 3,
        "partitionEpoch": 5,
    }  # fmt: skip
    return made("PartitionRecord", **{**said, **of})


def changed(number: int = 0, id: str = TOPIC, **of: Any) -> bytes:
    return made("PartitionChangeRecord", partitionId=number, topicId=id, **of)


NO_OP = made("NoOpRecord")


# ---- real ones -------------------------------------------------------------------------------------------------------
RECORDINGS = Path(__file__).parent.parent / "recordings" / "audit"


@cache
def real(recording: str = "controller-metadata/nodes-after-clean-stop.tar.gz") -> dict[str, dict[str, bytes]]:
    """Of each node the files of its metadata log."""
    out: dict[str, dict[str, bytes]] = {}
    with tarfile.open(RECORDINGS / recording) as tar:
        for member in tar:
            folder, _, name = member.name.rpartition("/")
            if member.isfile() and folder.endswith(NAME):
                content = tar.extractfile(member)
                assert content is not None
                out.setdefault(folder.split("/")[0], {})[name] = content.read()
    return out


def replayable(files: dict[str, bytes]) -> Iterator[tuple[int, codec.Record]]:
    """The records of data of a log that begins at 0, with their offsets."""
    for b in parsed(files[f"{0:020}.log"]):
        if not b.control:
            for n, (_, value) in enumerate(b.records):
                yield b.base + n, codec.decode(value)


Edit = Callable[[list[LogBatch]], None]
