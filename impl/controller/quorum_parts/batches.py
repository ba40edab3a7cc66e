"""What a controller's log and its snapshots have, as Kafka's bytes: metadata records in data batches, Raft's own in
control batches.

Raft takes a record's bytes as a text, one character a byte: it looks into none.

Source: BatchBuilder, RecordsBatchReader, RecordsSnapshotWriter, KafkaRaftClient, Kafka 4.3.0; KIP-595,
KIP-630, KIP-853.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from kafkaspec.impl.controller import raft, records
from kafkaspec.impl.controller.metadata_image import TOPIC_RESOURCE
from kafkaspec.impl.storage.batch import Batch, Encoder
from kafkaspec.impl.storage.segment import Header, headers
from kafkaspec.spec.common.metadata_log import ELR, VERSION, Kind, Record
from kafkaspec.spec.common.record_format import CONTROL

KEPT = 1 << 14
"""how many batches and records stay decoded"""
BROKER = "broker "
"""what the name of a broker's registration begins with in memory; its value is the offset"""
NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"
"""the id of each voter's directory: a number has one node"""
PLAIN = {
    Kind.NO_OP: "NoOpRecord",
    Kind.BEGIN: "BeginTransactionRecord",
    Kind.END: "EndTransactionRecord",
    Kind.ABORT: "AbortTransactionRecord",
}
KINDS = {name: kind for kind, name in PLAIN.items()}
FEATURES = {VERSION: Kind.VERSION, ELR: Kind.FEATURE}


class StoredBatch(NamedTuple):
    """A batch, and what Raft knows of its records."""

    base: int
    last: int
    epoch: int
    data: bytes
    entries: tuple[raft.Record, ...]


# ---- metadata records
def _made(kind: str, **fields: Any) -> records.Record:
    """A record with these fields, and the defaults for all others."""
    plain = records.record(kind)
    return records.Record(plain.type, plain.version, {**plain.fields, **fields})


@lru_cache(KEPT)
def text_of(record: Record, offset: int = 0) -> str:
    """The bytes of a metadata record. A registration has its own offset, as the broker's epoch."""
    match record.kind:
        case Kind.SET:
            made = _made("ConfigRecord", resourceType=TOPIC_RESOURCE, name=record.key, value=str(record.value))
        case Kind.VERSION | Kind.FEATURE:
            name = VERSION if record.kind == Kind.VERSION else ELR
            made = _made("FeatureLevelRecord", name=name, featureLevel=record.value)
        case Kind.REGISTER:
            made = _made("RegisterBrokerRecord", brokerId=record.value, brokerEpoch=offset)
        case kind:
            made = records.record(PLAIN[kind])
    return records.encode(made).decode("latin-1")


@lru_cache(KEPT)
def record_of(text: str) -> Record:
    """The metadata record of these bytes."""
    found = records.decode(text.encode("latin-1"))
    of = found.fields
    match found.name:
        case "ConfigRecord":
            return Record(Kind.SET, of["name"], int(of["value"]))
        case "FeatureLevelRecord":
            return Record(FEATURES[of["name"]], "", of["featureLevel"])
        case "RegisterBrokerRecord":
            return Record(Kind.REGISTER, "", of["brokerId"])
        case name:
            return Record(KINDS[name])


# ---- batches
def encoded(base: int, epoch: int, entries: Sequence[raft.Record], now_ms: int, leader: int = -1) -> bytes:
    """A batch of what a leader writes: data, or records of Raft's, of which one names the leader."""
    first = entries[0]
    out = Encoder(base, leader_epoch=epoch, control=first.value is None)
    for entry in entries:
        if entry.value is not None:
            out.append(now_ms, None, entry.value.encode("latin-1"))
        else:
            out.append(now_ms, *_control(entry, leader))
    return out.finish()


def _control(entry: raft.Record, leader: int) -> tuple[bytes, bytes]:
    """Key and value of a leader change, of the version behind it, or of the voters."""
    if entry.voters is not None:
        return _voters(entry.voters)
    if entry.joined:
        return _kraft_version()
    return records.encode_control(records.record("LeaderChangeMessage", leaderId=leader))


def _kraft_version() -> tuple[bytes, bytes]:
    """The version in which voters are said by records."""
    return records.encode_control(records.record("KRaftVersionRecord", kRaftVersion=1))


def _voters(voters: Iterable[int]) -> tuple[bytes, bytes]:
    empty = {"endpoints": [], "voterDirectoryId": NO_DIRECTORY}
    feature = {"minSupportedVersion": 0, "maxSupportedVersion": 1}
    shown = [{"voterId": v, **empty, "kRaftVersionFeature": feature} for v in voters]
    return records.encode_control(records.record("VotersRecord", voters=shown))


@lru_cache(KEPT)
def _entries(data: bytes) -> tuple[raft.Record, ...]:
    """The records of one batch."""
    batch = Batch(data)
    epoch, found = batch.leader_epoch, enumerate(batch.records())
    if not batch.control:
        return tuple(raft.Record(epoch, (r.value or b"").decode("latin-1"), joined=n > 0) for n, r in found)
    return tuple(raft.Record(epoch, None, _voters_of(r.key, r.value), n > 0) for n, r in found)


def _voters_of(key: bytes | None, value: bytes | None) -> tuple[int, ...] | None:
    found = records.decode_control(key, value)
    if found.name != "VotersRecord":
        return None
    return tuple(v["voterId"] for v in found.fields["voters"])


def stored(h: Header, data: bytes) -> StoredBatch:
    """A batch that stands in these bytes."""
    whole = data[h.position : h.position + h.size]
    return StoredBatch(h.base_offset, h.last_offset, h.leader_epoch, whole, _entries(whole))


def split(data: bytes) -> list[StoredBatch]:
    """Those of some bytes, one after the other."""
    return [stored(h, data) for h in headers(data)]


def told(data: bytes) -> str:
    """The batches of some bytes, in short."""
    return "; ".join(f"{b.base}{f'-{b.last}' * (b.last > b.base)} of epoch {b.epoch} ({_said(b)})" for b in split(data))


def _said(batch: StoredBatch) -> str:
    return ", ".join(map(_said_one, batch.entries))


def _said_one(entry: raft.Record) -> str:
    if entry.voters is not None:
        return f"voters {', '.join(map(str, entry.voters))}"
    if entry.value is None:
        return "kraft.version" if entry.joined else "leader change"
    r = record_of(entry.value)
    return f"{r.key} = {r.value}" if r.kind == Kind.SET else f"{r.kind.value} {r.value}" if r.value else r.kind.value


# ---- snapshots
def snapshot(values: Mapping[str, int], voters: Sequence[int], offset: int, epoch: int) -> bytes:
    """The file of a snapshot: what there is at an offset, sorted, and who votes there."""
    opened = Encoder(0, leader_epoch=epoch, control=True)
    opened.append(0, *records.encode_control(records.record("SnapshotHeaderRecord")))
    opened.append(0, *_kraft_version())
    opened.append(0, *_voters(voters))
    content = Encoder(3, leader_epoch=epoch)
    for name, value in sorted(values.items()):
        content.append(0, None, _kept(name, value).encode("latin-1"))
    closed = Encoder(3 + len(values), leader_epoch=epoch, control=True)
    closed.append(0, *records.encode_control(records.record("SnapshotFooterRecord")))
    return opened.finish() + content.finish() + closed.finish()


def _kept(name: str, value: int) -> str:
    """A registration keeps its offset."""
    if name.startswith(BROKER):
        return text_of(Record(Kind.REGISTER, "", int(name[len(BROKER) :])), value)
    return text_of(Record(FEATURES[name], "", value) if name in FEATURES else Record(Kind.SET, name, value))


class Snapshot(NamedTuple):
    """What a snapshot has."""

    values: Mapping[str, int]
    records: tuple[Record, ...]
    voters: tuple[int, ...]


@lru_cache(64)
def loaded(data: bytes) -> Snapshot:
    """What a file has. As records that do not depend on the offset at which they are applied."""
    values: dict[str, int] = {}
    out: list[Record] = []
    voters: tuple[int, ...] = ()
    for h in headers(data):
        batch = Batch(data[h.position : h.position + h.size])
        for r in batch.records():
            if h.attributes & CONTROL:
                voters = _voters_of(r.key, r.value) or voters
                continue
            found = records.decode(r.value or b"")
            if found.name == "RegisterBrokerRecord":
                record = Record(Kind.SET, f"{BROKER}{found.fields['brokerId']}", int(found.fields["brokerEpoch"]))
            else:
                record = record_of((r.value or b"").decode("latin-1"))
            name = record.key if record.kind == Kind.SET else found.fields["name"]
            out.append(record)
            values[name] = record.value
    return Snapshot(values, tuple(out), voters)
