"""Configurations and ids of topics, as the metadata log of a KRaft cluster has them.

Read are the newest snapshot (`<offset>-<epoch>.checkpoint`) and the log behind it, of the copy that reaches farthest;
of the records those that name topics and set configurations. What cannot be read is left out: this is context for the
checks, and no verdict. A value that changed on the way is taken for unknown, since older segments were written under
the one before; what the log's past held before the snapshot nobody can know.
Source: TopicRecord, RemoveTopicRecord, ConfigRecord (common/metadata/*.json) and MetadataRecordSerde, Kafka 4.3.0.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kafkaspec.audit.check import TopicConfig
from kafkaspec.audit.discover import Place
from kafkaspec.audit.files import METADATA_TOPIC, Kind, PartitionFiles
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File, open_regular
from kafkaspec.impl.common.rows import Chunk
from kafkaspec.impl.common.scan import read_segment
from kafkaspec.impl.management.checkpoints import LONG_BITS, parse_integer
from kafkaspec.impl.storage.batch import Batch, Malformed
from kafkaspec.spec.common.record_format import CONTROL

SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
TOPIC, CONFIG, REMOVE_TOPIC = 2, 4, 9
OF_TOPIC, OF_BROKER = 2, 4
FRAME_VERSION = 1
BROKERS = {
    "cleanup.policy": "log.cleanup.policy",
    "index.interval.bytes": "log.index.interval.bytes",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "message.timestamp.type": "log.message.timestamp.type",
}
"""What a broker's configuration calls a topic's."""
WANTED = {*BROKERS, *BROKERS.values(), "internal.segment.bytes"}
EVERY_BROKER = ""
"""The name under which the defaults of all brokers stand."""


@dataclass
class Topics:
    """What a metadata log says. Values as text, None once they are gone; `changed` names what had several."""

    ids: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """by id"""
    values: dict[tuple[int, str, str], str | None] = field(default_factory=dict)
    """by kind of resource, its name, and the name of the configuration"""
    changed: set[tuple[int, str, str]] = field(default_factory=set)

    def of(self, topic: str, node: int | None) -> tuple[TopicConfig, str | None]:
        """A topic's configuration, the brokers' defaults taken into account; and its id."""

        def said(name: str) -> str | None:
            places = (
                (OF_TOPIC, topic, name),
                (OF_BROKER, "" if node is None else str(node), BROKERS.get(name, "")),
                (OF_BROKER, EVERY_BROKER, BROKERS.get(name, "")),
            )
            if any(p in self.changed for p in places):
                return None
            return next((v for p in places if (v := self.values.get(p)) is not None), None)

        def number(name: str) -> int | None:
            text = said(name)
            return None if text is None else parse_integer(text.strip(), LONG_BITS)

        config = TopicConfig(
            cleanup_policy=said("cleanup.policy"),
            index_interval_bytes=number("index.interval.bytes"),
            delete_retention_ms=number("delete.retention.ms"),
            segment_bytes=number("internal.segment.bytes") or number("segment.bytes"),
            timestamp_type=said("message.timestamp.type"),
        )
        return config, self.ids.get(topic)

    # ---- records
    def take(self, value: bytes) -> None:
        """One record of the log. IndexError or ValueError if it is not what it says."""
        version, at = _unsigned(value, 0)
        key, at = _unsigned(value, at)
        _, at = _unsigned(value, at)
        if version != FRAME_VERSION:
            raise ValueError(f"frame version {version}")
        if key == TOPIC:
            name, at = _string(value, at)
            self._topic(name or "", value[at : at + 16])
        elif key == REMOVE_TOPIC:
            self._removed(value[at : at + 16])
        elif key == CONFIG:
            kind = value[at]
            resource, at = _string(value, at + 1)
            name, at = _string(value, at)
            text, at = _string(value, at)
            self._config(kind, resource or "", name or "", text)

    def _topic(self, name: str, id: bytes) -> None:
        text = base64.urlsafe_b64encode(id).decode().rstrip("=")
        self.ids[name], self.names[text] = text, name

    def _removed(self, id: bytes) -> None:
        name = self.names.pop(base64.urlsafe_b64encode(id).decode().rstrip("="), None)
        if name is None:
            return
        del self.ids[name]
        for key in [k for k in self.values if k[:2] == (OF_TOPIC, name)]:
            del self.values[key]
            self.changed.discard(key)

    def _config(self, kind: int, resource: str, name: str, value: str | None) -> None:
        if name not in WANTED:
            return
        key = kind, resource, name
        if key in self.values and self.values[key] != value:
            self.changed.add(key)
        self.values[key] = value


def topics_of(places: Sequence[Place]) -> Topics:
    """What the metadata log that reaches farthest says, of those in the places; nothing if there is none."""
    copies = [
        p for place in places for p in place.files.partitions if p.topic == METADATA_TOPIC and p.kind is Kind.CURRENT
    ]
    out = Topics()
    if copies:
        _read(max(copies, key=_reach), out)
    return out


def _reach(files: PartitionFiles) -> tuple[int, int]:
    last = files.segments[-1] if files.segments else None
    return (last.base_offset, last.log.size) if last is not None and last.log is not None else (-1, 0)


def _read(files: PartitionFiles, out: Topics) -> None:
    """The newest snapshot, and the log from there on."""
    snapshots = sorted((m[0], int(m[1]), f) for f in files.others if (m := SNAPSHOT.fullmatch(f.path.name)))
    first = 0
    if snapshots:
        _, first, file = snapshots[-1]
        _take(file, 0, out)
    starts = [s.base_offset for s in files.segments]
    for n, segment in enumerate(files.segments):
        if segment.log is not None and (n + 1 == len(starts) or starts[n + 1] > first):
            _take(segment.log, first, out)


def _take(file: File, first: int, out: Topics) -> None:
    """The records from an offset on of a file of batches. What is damaged is left out."""
    try:
        for batch in _batches(file.path, file, first):
            for record in batch.records():
                if record.value is not None and record.offset >= first:
                    try:
                        out.take(record.value)
                    except (IndexError, ValueError):
                        continue
    except (UserError, Malformed, OSError):
        return


def _batches(path: Path, file: File, first: int) -> Iterator[Batch]:
    with os.fdopen(open_regular(path), "rb") as f:
        for x in read_segment(file, deep=False):
            if isinstance(x, Chunk):
                rows = x.batches
                wanted = (rows["problem"] == 0) & (rows["magic"] == 2) & (rows["attributes"] & CONTROL == 0)
                for row in rows[wanted & (rows["last_offset"] >= first)]:
                    at, size = int(row["position"]), int(row["size"])
                    yield Batch(os.pread(f.fileno(), size, at), at)


# ---- the flexible encoding -------------------------------------------------------------------------------------------
def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint and the byte behind it."""
    n = shift = 0
    while True:
        byte = data[at]
        n |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return n, at
        if shift > 28:
            raise ValueError("a varint of more than 5 bytes")


def _string(data: bytes, at: int) -> tuple[str | None, int]:
    """A compact string and the byte behind it."""
    n, at = _unsigned(data, at)
    if n == 0:
        return None, at
    if at + n - 1 > len(data):
        raise ValueError("a string that does not end")
    return data[at : at + n - 1].decode(), at + n - 1
