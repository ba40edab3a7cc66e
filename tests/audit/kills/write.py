"""Small log directories, written down in a line or two.

    one(seg(7, b(7), b(8, 9)))                       # a sound log of two batches in one segment, stopped cleanly
    one(seg(7, b(6)))                                # its batch begins below the segment's base

What is left out is as a sound broker would have it: an empty offset index, a time index as of a segment that rolled,
the leader epoch checkpoint that the batches make. The batches of a segment are rows, as a scan of its .log would give
them (the .log itself is empty then); or they are real ones (`Batch`, or bytes), which stand in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from struct import pack
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kafkaspec.audit.check import TopicConfig
from kafkaspec.audit.discover import partition_name
from kafkaspec.impl.common.rows import BATCH, RECORD, Chunk, Ending
from kafkaspec.impl.storage.producer_state import SnapshotEntry, encode
from kafkaspec.impl.storage.transaction_index import AbortedTxn
from kafkaspec.spec.common import record_format
from kafkaspec.spec.common.record_format import CONTROL, TRANSACTIONAL, Batch

SIZE: Final = 100
"""Bytes of a batch that is a row."""
NOW: Final = 1_000_000
"""Largest timestamp of a batch, ms, if nothing else is said."""
MARKER: Final = ".kafka_cleanshutdown"
LONG: Final = 2**64 - 1

Row = dict[str, int]
Files = dict[str, bytes]


class Auto:
    """As a sound broker would have it."""


AUTO: Final = Auto()


# ---- batches ---------------------------------------------------------------------------------------------------------
def b(base: int, last: int | None = None, **of: int) -> Row:
    """A batch as a row: from one offset to another, of one record each. `of`: columns of BATCH; `time`, `epoch`
    (leader's), `pid`, `pepoch`, `seq` for short."""
    last = base if last is None else last
    for short, name in SHORT.items():
        if short in of:
            of[name] = of.pop(short)
    time = of.get("max_timestamp", NOW)
    row = dict.fromkeys(BATCH.names or (), -1) | {
        "size": SIZE, "base_offset": base, "last_offset": last, "leader_epoch": 0, "magic": 2, "crc": 0,
        "attributes": 0,
        "max_timestamp": time, "count": last - base + 1, "problem": 0, "first_record": base, "last_record": last,
        "largest_timestamp": time, "tombstones": 0,
    }  # fmt: skip
    if of.get("producer_id", -1) >= 0:
        row |= {"producer_epoch": 0, "base_sequence": 0}
    return row | of


SHORT: Final = {
    "time": "max_timestamp", "epoch": "leader_epoch", "pid": "producer_id", "pepoch": "producer_epoch",
    "seq": "base_sequence",
}  # fmt: skip


def p(base: int, pid: int, seq: int, n: int = 1, **of: int) -> Row:
    """A producer's batch of so many records."""
    return b(base, base + n - 1, pid=pid, seq=seq, **of)


def t(base: int, pid: int, seq: int, n: int = 1, **of: int) -> Row:
    """The same of a transaction."""
    return p(base, pid, seq, n, **{"attributes": TRANSACTIONAL, **of})


def commit(base: int, pid: int, **of: int) -> Row:
    return _end(base, pid, 1, of)


def abort(base: int, pid: int, **of: int) -> Row:
    return _end(base, pid, 0, of)


def _end(base: int, pid: int, kind: int, of: Row) -> Row:
    said = {"attributes": TRANSACTIONAL | CONTROL, "control_type": kind, "coordinator_epoch": 0, "seq": -1}
    return b(base, pid=pid, **{**said, **of})


# ---- a segment -------------------------------------------------------------------------------------------------------
@dataclass
class Seg:
    """A segment: its files, and the rows that a scan of it gives (None: it is read as it stands)."""

    base: int
    files: Files
    rows: list[Row] | None
    epochs: list[tuple[int, int]]
    end: int
    """log end offset, as far as it goes"""
    ending: dict[str, Any]


def seg(
    base: int,
    *batches: Row | Batch | bytes,
    index: bytes | Sequence[tuple[int, int]] | None = b"",
    times: bytes | Sequence[tuple[int, int]] | Auto | None = AUTO,
    txn: bytes | Sequence[tuple[int, int, int, int]] | None = None,
    rest: bytes = b"",
    reason: str = "",
    torn: bool = False,
    size: int | None = None,
    end_offset: int | None = -1,
) -> Seg:
    """A segment. `index`: (offset, position) of each entry; `times`: (timestamp, offset); `txn`: producer, first
    offset, marker, last stable offset; None: there is no such file. `rest`: bytes behind the batches. Of rows:
    `reason`, `torn`, `size` and `end_offset` say how a scan of them ends."""
    rows = [dict(x) for x in batches if isinstance(x, dict)]
    real = [x if isinstance(x, bytes) else record_format.encode(x) for x in batches if not isinstance(x, dict)]
    assert not (rows and real), "rows or real batches"
    at = 0
    for row in rows:
        if row["position"] < 0:
            row["position"] = at
        if row["problem"] and row["problem_at"] < 0:
            row["problem_at"] = row["position"]
        at = row["position"] + row["size"]
    if real:
        said = [record_format.header_of(x)[0] for x in real if len(x) >= 61 and x[16] == 2]
        good = [(x.base_offset, x.last_offset, x.leader_epoch, x.max_timestamp) for x in said]
    else:
        good = [
            (r["base_offset"], r["last_offset"], r["leader_epoch"], r["max_timestamp"])
            for r in rows
            if not r["problem"]
        ]
    name = f"{base:020}"
    files: Files = {f"{name}.log": b"".join(real) + rest}
    if index is not None:
        files[f"{name}.index"] = (
            index if isinstance(index, bytes) else b"".join(pack(">ii", o - base, q) for o, q in index)
        )
    if isinstance(times, Auto):
        stamp = max((x[3] for x in good), default=-1)
        times = [(stamp, next(x[1] for x in good if x[3] == stamp))] if stamp >= 0 else []
        times = [x for x in times if abs(x[1] - base) < 1 << 31]
    if times is not None:
        files[f"{name}.timeindex"] = (
            times if isinstance(times, bytes) else b"".join(pack(">qi", x, o - base) for x, o in times)
        )
    if txn is not None:
        files[f"{name}.txnindex"] = txn if isinstance(txn, bytes) else b"".join(AbortedTxn(*x).encode() for x in txn)
    epochs: list[tuple[int, int]] = []
    for first, _, epoch, _ in good:
        if epoch >= 0 and (not epochs or epochs[-1][0] != epoch):
            epochs.append((epoch, first))
    ends = [x[1] + 1 for x in good]
    ending = {
        "end": at, "size": at if size is None else size, "reason": reason, "torn": torn,
        "end_offset": (ends[-1] if ends else None) if end_offset == -1 else end_offset,
    }  # fmt: skip
    return Seg(base, files, None if real or rest else rows, epochs, max([base, *ends]), ending)


def chunks(rows: Sequence[Row], size: int, records: bool) -> list[Chunk]:
    """The rows, so many in a chunk (0: none, and then all); nobody can change them."""
    columns = BATCH.names or ()
    table = np.array([tuple(r[c] for c in columns) for r in rows], BATCH)
    table.flags.writeable = False
    bounds = [(n, min(n + size, len(table))) for n in range(0, len(table), size)] if size else [(0, 0), (0, len(table))]
    return [Chunk(table[x:y], _records(rows[x:y]) if records else None) for x, y in bounds]


def _records(rows: Sequence[Row]) -> NDArray[Any]:
    """A record for each offset of each batch that is decoded, the same in all logs unless the batch says `content`, a
    number; each with a key of its own, unless it says a `key`."""
    made = [
        (o, 0, n, (row.get("key", o) & LONG, 0), (row.get("content", 0) + o) & LONG, 3)
        for n, row in enumerate(rows)
        if ("content" in row or (not row["problem"] and row["magic"] >= 2)) and row["count"]
        for o in range(row["first_record"], row["last_record"] + 1)
    ]
    table = np.array(made, RECORD)
    table.flags.writeable = False
    return table


# ---- a partition -----------------------------------------------------------------------------------------------------
@dataclass
class Part:
    """A partition's directory."""

    name: str
    files: Files
    folders: tuple[str, ...]
    segs: tuple[Seg, ...]
    end: int


def part(
    *segs: Seg,
    name: str = "t-0",
    epochs: bytes | Sequence[tuple[int, int]] | Auto | None = AUTO,
    snapshots: Mapping[int, bytes | Sequence[SnapshotEntry]] | None = None,
    files: Mapping[str, bytes] | None = None,
    folders: Sequence[str] = (),
) -> Part:
    """A partition. `epochs`: (epoch, start offset) of each entry of the leader epoch checkpoint; None: there is none.
    `snapshots`: a producer snapshot's entries, by offset."""
    out: Files = {}
    made: list[tuple[int, int]] = []
    for s in segs:
        out |= s.files
        made += [e for e in s.epochs if not made or e[0] > made[-1][0]]
    if isinstance(epochs, Auto):
        epochs = made
    if epochs is not None:
        out["leader-epoch-checkpoint"] = epochs if isinstance(epochs, bytes) else entries(epochs)
    for offset, snapshot in (snapshots or {}).items():
        out[f"{offset:020}.snapshot"] = snapshot if isinstance(snapshot, bytes) else encode(snapshot)
    return Part(name, out | dict(files or {}), tuple(folders), segs, segs[-1].end if segs else 0)


def entries(of: Iterable[Sequence[Any]]) -> bytes:
    """A checkpoint file of these entries."""
    lines = [" ".join(map(str, x)) for x in of]
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()


def e(pid: int, seq: int, offset: int, **of: int) -> SnapshotEntry:
    """A producer of a snapshot."""
    return SnapshotEntry(pid, 0, seq, offset, 0, NOW, -1, -1)._replace(**of)


# ---- a log directory, and what is audited ----------------------------------------------------------------------------
@dataclass
class Folder:
    """A log directory, or (not `whole`) a folder of partitions that are given by themselves."""

    name: str
    files: Files
    parts: tuple[Part, ...]
    folders: tuple[str, ...] = ()
    whole: bool = True


CHECKPOINTS: Final = {
    "recovery": "recovery-point-offset-checkpoint", "starts": "log-start-offset-checkpoint",
    "high": "replication-offset-checkpoint", "cleaner": "cleaner-offset-checkpoint",
}  # fmt: skip


def meta(node: int | None, cluster: str | None, directory: str | None) -> bytes:
    said = {"version": 1, "cluster.id": cluster, "node.id": node, "directory.id": directory}
    return "".join(f"{k}={v}\n" for k, v in said.items() if v is not None).encode()


IDS: Final = ("q1NlNcK3TLyRkSHWPZ3hLQ", "B1NlNcK3TLyRkSHWPZ3hLQ", "C1NlNcK3TLyRkSHWPZ3hLQ", "D1NlNcK3TLyRkSHWPZ3hLQ")
CLUSTER: Final = "MkU3OEVBNTcwNTJENDM2Qg"


def folder(
    *parts: Part,
    name: str = "d",
    clean: bool = True,
    node: int | None = 1,
    cluster: str | None = CLUSTER,
    properties: bytes | Auto | None = AUTO,
    files: Mapping[str, bytes] | None = None,
    folders: Sequence[str] = (),
    whole: bool = True,
    **checkpoints: bytes | Mapping[str, int],
) -> Folder:
    """A log directory. `recovery`, `starts`, `high`, `cleaner`: the entries of the four checkpoints by partition (or
    the file's bytes); a checkpoint that is not named is not there."""
    out: Files = {}
    if isinstance(properties, Auto):
        properties = meta(node, cluster, IDS[sum(map(ord, name)) % len(IDS)])
    if whole and properties is not None:
        out["meta.properties"] = properties
    if whole and clean:
        out[MARKER] = b'{"version":0,"brokerEpoch":1}'
    for key, of in checkpoints.items():
        data = of if isinstance(of, bytes) else entries([*k.rsplit("-", 1), v] for k, v in of.items())
        out[CHECKPOINTS[key]] = data
    return Folder(name, out | dict(files or {}), parts, tuple(folders), whole)


@dataclass
class Case:
    """Directories to be audited, and what is known around them."""

    folders: tuple[Folder, ...]
    config: Mapping[str, TopicConfig] = field(default_factory=dict)
    """of topics, as a metadata log would tell"""
    ids: Mapping[str, str] = field(default_factory=dict)
    """of topics, likewise"""
    chunk: int | Mapping[str, int] = 2
    """batches that the scan gives at a time; of each directory, by its name"""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """constants of the rules, `storage.batch:MOST_KEPT` or a class's, that are other than they are"""
    only: Sequence[str] = ()
    """paths to audit, instead of the folders"""
    gone: Sequence[str] = ()
    """files, or folders, that are not there any more when they are read"""
    later: Mapping[str, bytes] = field(default_factory=dict)
    """files that a running broker writes while the first segment is read, and what they hold then"""

    def scans(self, records: bool) -> dict[str, tuple[Chunk | Ending, ...]]:
        """What a scan gives of each .log that is not read as it stands, by its path."""
        out: dict[str, tuple[Chunk | Ending, ...]] = {}
        for f in self.folders:
            size = self.chunk if isinstance(self.chunk, int) else self.chunk[f.name]
            for x in f.parts:
                for s in x.segs:
                    if s.rows is not None:
                        read = chunks(s.rows, size, records)
                        out[f"{f.name}/{x.name}/{s.base:020}.log"] = (*read, Ending(**s.ending))
        return out

    def files(self) -> dict[str, bytes]:
        out: dict[str, bytes] = {}
        for f in self.folders:
            out |= {f"{f.name}/{n}": data for n, data in f.files.items()}
            for x in f.parts:
                out |= {f"{f.name}/{x.name}/{n}": data for n, data in x.files.items()}
        return out

    def made_folders(self) -> list[str]:
        """Folders that are there though no file may be in them."""
        out = []
        for f in self.folders:
            out += [f.name, *(f"{f.name}/{n}" for n in f.folders)]
            for x in f.parts:
                out += [f"{f.name}/{x.name}", *(f"{f.name}/{x.name}/{n}" for n in x.folders)]
        return out

    def paths(self) -> list[str]:
        if self.only:
            return list(self.only)
        return [p for f in self.folders for p in ([f.name] if f.whole else [f"{f.name}/{x.name}" for x in f.parts])]


PARTITION: Final = ("name", "epochs", "snapshots", "files", "folders")
AROUND: Final = ("config", "ids", "chunk", "limits", "only", "gone", "later")


def one(*segs: Seg, policy: str | None = None, id: str | None = None, alone: bool = False, **of: Any) -> Case:
    """One partition in one directory. `of`: what `part`, `Case` and `folder` take, in this order of their names;
    `policy`: the topic's cleanup policy, `id`: its id, if they are known; `alone`: the partition is given by itself."""
    of_part = {k: of.pop(k) for k in PARTITION if k in of}
    of_case = {k: of.pop(k) for k in AROUND if k in of}
    x = part(*segs, **of_part)
    named = partition_name(x.name)
    topic = x.name if named is None else named[0]
    if policy is not None:
        of_case["config"] = {topic: TopicConfig(cleanup_policy=policy)}
    if id is not None:
        of_case["ids"] = {topic: id}
    return Case((folder(x, whole=not alone, **of),), **of_case)


def cases(*folders: Folder, **of: Any) -> Case:
    return Case(folders, **of)
