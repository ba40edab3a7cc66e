"""Damage, made on purpose: each kind changes one thing in a broker's directories and says what an audit must find.

A kind is a function of a random generator and the log directories, which it changes. It returns what is to be found:
the file, the clause, and the byte or line. Where a batch is changed but is to stay a valid one, its CRC is made right.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kafkaspec.impl.storage import producer_state
from kafkaspec.spec.common import record_format as spec
from kafkaspec.spec.common.record_format import Batch

LOG_OVERHEAD, OVERHEAD = 12, 61
LENGTH_AT, EPOCH_AT, MAGIC_AT, CRC_AT, ATTRIBUTES_AT, LAST_DELTA_AT = 8, 12, 16, 17, 21, 23
MAX_TIMESTAMP_AT, SEQUENCE_AT = 35, 53
INDEX_ENTRY, TIME_ENTRY, ABORTED_ENTRY = 8, 12, 34


class ExpectedFinding(NamedTuple):
    """One thing that must be found: in `file` (or the same file of another replica, if `replicas`), under one of
    `clauses`, at a byte or a line."""

    file: Path
    clauses: frozenset[str]
    position: int | None = None
    line: int | None = None
    replicas: bool = False


@dataclass(frozen=True)
class Place:
    """A batch in a segment."""

    log: Path
    at: int
    size: int
    batch: Batch

    @property
    def end(self) -> int:
        return self.at + self.size


Kind = Callable[[random.Random, Sequence[Path]], list[ExpectedFinding]]


def clauses(*ids: str) -> frozenset[str]:
    return frozenset(ids)


# ---- finding places --------------------------------------------------------------------------------------------------
def partitions(directories: Sequence[Path], *names: str) -> list[Path]:
    """Partition directories by topic; all that clients wrote if none is named."""
    found = [p for d in directories for p in sorted(d.iterdir()) if p.is_dir() and (p / "partition.metadata").is_file()]
    topics = [(p, p.name.rpartition("-")[0]) for p in found]
    return [p for p, topic in topics if topic in names or (not names and not topic.startswith("__"))]


def segments(partition: Path) -> list[Path]:
    return sorted(partition.glob("*.log"))


def places(log: Path) -> list[Place]:
    """The batches of a segment."""
    data, at, out = log.read_bytes(), 0, []
    while at < len(data):
        size = LOG_OVERHEAD + int.from_bytes(data[at + LENGTH_AT : at + EPOCH_AT], "big")
        out.append(Place(log, at, size, spec.decode(data[at : at + size], at)))
        at += size
    return out


def all_places(found: Sequence[Path]) -> list[Place]:
    return [x for p in found for log in segments(p) for x in places(log)]


def change(file: Path, at: int, new: bytes) -> None:
    data = bytearray(file.read_bytes())
    data[at : at + len(new)] = new
    file.write_bytes(data)


def flip(rng: random.Random, file: Path, at: int) -> None:
    """One bit."""
    change(file, at, bytes([file.read_bytes()[at] ^ 1 << rng.randrange(8)]))


def rewrite(x: Place, batch: Batch) -> None:
    """Put another batch of the same size in a batch's place, with a right CRC."""
    data = spec.encode(batch)
    assert len(data) == x.size
    change(x.log, x.at, data)


def reseal(x: Place, at: int, new: bytes) -> None:
    """Change bytes of a batch, and its CRC with them."""
    data = bytearray(x.log.read_bytes()[x.at : x.end])
    data[at : at + len(new)] = new
    change(x.log, x.at, spec.sealed(data))


# ---- bytes of a batch ------------------------------------------------------------------------------------------------
def bit_in_header(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    x = rng.choice(all_places(partitions(directories)))
    flip(rng, x.log, x.at + rng.randrange(ATTRIBUTES_AT, OVERHEAD))
    return [ExpectedFinding(x.log, clauses("BAT-3"), x.at + CRC_AT)]


def bit_in_records(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    x = rng.choice([x for x in all_places(partitions(directories)) if x.size > OVERHEAD])
    flip(rng, x.log, rng.randrange(x.at + OVERHEAD, x.end))
    return [ExpectedFinding(x.log, clauses("BAT-3"), x.at + CRC_AT)]


def bit_in_crc(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    x = rng.choice(all_places(partitions(directories)))
    flip(rng, x.log, x.at + rng.randrange(CRC_AT, ATTRIBUTES_AT))
    return [ExpectedFinding(x.log, clauses("BAT-3"), x.at + CRC_AT)]


def bit_in_length(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    x = rng.choice(all_places(partitions(directories)))
    flip(rng, x.log, x.at + rng.randrange(LENGTH_AT, EPOCH_AT))
    return [ExpectedFinding(x.log, clauses("BAT-1"), x.at + LENGTH_AT)]


def bit_in_magic(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    x = rng.choice(all_places(partitions(directories)))
    flip(rng, x.log, x.at + MAGIC_AT)
    return [ExpectedFinding(x.log, clauses("BAT-2", "BAT-1"), None)]


def wrong_count(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    """The CRC is right, the count is not."""
    x = rng.choice([x for x in all_places(partitions(directories)) if len(x.batch.records) > 1])
    reseal(x, OVERHEAD - 4, struct.pack(">i", len(x.batch.records) - 1))
    return [ExpectedFinding(x.log, clauses("BAT-6"), None)]


def wrong_max_timestamp(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    """The CRC is right, the largest timestamp is not that of the records."""
    fit = [x for x in all_places(partitions(directories)) if x.batch.records and not x.batch.log_append_time]
    x = rng.choice(fit)
    reseal(x, MAX_TIMESTAMP_AT, struct.pack(">q", x.batch.max_timestamp - 1))
    return [ExpectedFinding(x.log, clauses("BAT-10"), x.at + MAX_TIMESTAMP_AT)]


# ---- batches of a log ------------------------------------------------------------------------------------------------
def middle(found: Sequence[Path]) -> list[tuple[Place, Place, Place]]:
    """Batches with a neighbour before and behind in their segment."""
    return [t for p in found for log in segments(p) for b in [places(log)] for t in zip(b, b[1:], b[2:], strict=False)]


def overlap(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    _, x, _ = rng.choice(middle(partitions(directories)))
    change(x.log, x.at, struct.pack(">q", x.batch.base_offset - 1))
    return [ExpectedFinding(x.log, clauses("LDR-16"), x.at)]


def missing_batch(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    """Cut out behind the last index entries, so that no index is wrong."""
    fit = []
    for before, x, after in middle(partitions(directories, "clicks", "orders-gzip", "orders-lz4", "orders-zstd")):
        entries = list(struct.iter_unpack(">ii", x.log.with_suffix(".index").read_bytes()))
        if x.log == segments(x.log.parent)[-1] and all(position < x.at for _, position in entries):
            largest = max(y.batch.max_timestamp for y in places(x.log))
            if before.batch.max_timestamp < largest and x.batch.max_timestamp < largest:
                fit.append((x, after))
    x, after = rng.choice(fit)
    data = x.log.read_bytes()
    x.log.write_bytes(data[: x.at] + data[x.end :])
    return [ExpectedFinding(x.log, clauses("LDR-17"), x.at)]


def missing_segment(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    p = rng.choice([p for p in partitions(directories) if len(segments(p)) > 2])
    k = rng.randrange(1, len(segments(p)) - 1)
    gone, after = segments(p)[k : k + 2]
    for file in p.glob(f"{gone.stem}.*"):
        if file.suffix != ".snapshot":
            file.unlink()
    return [ExpectedFinding(after, clauses("LDR-17"), 0)]


def sequence_gap(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    """A batch's sequence is one too high; the CRC is right."""
    fit = []
    for p in partitions(directories, "orders-snappy", "clicks", "orders-zstd"):
        last: dict[int, Place] = {}
        for x in all_places([p]):
            y = last.get(x.batch.producer_id)
            if x.batch.producer_id >= 0 and not x.batch.control:
                if y is not None and y.batch.producer_epoch == x.batch.producer_epoch and x.batch.base_sequence > 0:
                    fit.append(x)
                last[x.batch.producer_id] = x
    x = rng.choice(fit)
    reseal(x, SEQUENCE_AT, struct.pack(">i", x.batch.base_sequence + 1))
    return [ExpectedFinding(x.log, clauses("PSM-3"), x.at)]


def epoch_back(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    """A batch's leader epoch is lower than the one before it; no CRC covers it."""
    fit = [y for x, y, z in middle(partitions(directories)) if x.batch.leader_epoch == y.batch.leader_epoch > 0]
    x = rng.choice(fit)
    change(x.log, x.at + EPOCH_AT, struct.pack(">i", x.batch.leader_epoch - 1))
    return [
        ExpectedFinding(x.log, clauses("LEC-19"), x.at),
    ]


def torn_tail(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    x = rng.choice([places(segments(p)[-1])[-1] for p in partitions(directories) if places(segments(p)[-1])])
    x.log.write_bytes(x.log.read_bytes()[: rng.randrange(x.at + 1, x.end)])
    return [ExpectedFinding(x.log, clauses("BAT-1"), x.at)]


# ---- indexes ---------------------------------------------------------------------------------------------------------
def indexed(found: Sequence[Path], suffix: str, entry: int, least: int = 2) -> list[Path]:
    return [f for p in found for f in sorted(p.glob(f"*{suffix}")) if f.stat().st_size >= least * entry]


def index_elsewhere(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    """An entry's position is not its batch's."""
    f = rng.choice(indexed(partitions(directories), ".index", INDEX_ENTRY))
    at = rng.randrange(f.stat().st_size // INDEX_ENTRY) * INDEX_ENTRY
    (position,) = struct.unpack_from(">i", f.read_bytes(), at + 4)
    change(f, at + 4, struct.pack(">i", position + 7))
    return [ExpectedFinding(f, clauses("OIX-24", "OIX-25", "OIX-26"), at)]


def index_out_of_order(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    """An entry stands twice, in the place of the next."""
    f = rng.choice(indexed(partitions(directories), ".index", INDEX_ENTRY, 3))
    k = rng.randrange(1, f.stat().st_size // INDEX_ENTRY - 1)
    data = f.read_bytes()
    change(f, k * INDEX_ENTRY, data[(k - 1) * INDEX_ENTRY : k * INDEX_ENTRY])
    return [ExpectedFinding(f, clauses("OIX-24", "OIX-25", "OIX-23"), k * INDEX_ENTRY)]


def time_index_falling(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    """An entry's timestamp is below that of the entry before it."""
    f = rng.choice(indexed(partitions(directories), ".timeindex", TIME_ENTRY, 3))
    at = rng.randrange(1, f.stat().st_size // TIME_ENTRY - 1) * TIME_ENTRY
    (before,) = struct.unpack_from(">q", f.read_bytes(), at - TIME_ENTRY)
    change(f, at, struct.pack(">q", before - 1))
    return [ExpectedFinding(f, clauses("TIX-12", "TIX-13"), at)]


def abort_missing(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    """The last entry of a transaction index is gone."""
    f = rng.choice(indexed(partitions(directories), ".txnindex", ABORTED_ENTRY, 1))
    f.write_bytes(f.read_bytes()[:-ABORTED_ENTRY])
    return [ExpectedFinding(f, clauses("PSM-16"), None)]


# ---- producer snapshots ----------------------------------------------------------------------------------------------
def snapshots(directories: Sequence[Path]) -> list[Path]:
    """With entries."""
    return [f for p in partitions(directories) for f in sorted(p.glob("*.snapshot")) if f.stat().st_size > 20]


def snapshot_crc(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    f = rng.choice(snapshots(directories))
    flip(rng, f, rng.randrange(10, f.stat().st_size))
    return [ExpectedFinding(f, clauses("PSM-25"), None)]


def snapshot_stale(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    """An entry's last sequence is an earlier one; the CRC is right."""
    fit = []
    for f in snapshots(directories):
        entries = list(producer_state.decode(f.read_bytes()))
        fit += [(f, entries, k) for k, e in enumerate(entries) if e.last_sequence > 0]
    f, entries, k = rng.choice(fit)
    entries[k] = entries[k]._replace(last_sequence=entries[k].last_sequence - 1)
    f.write_bytes(producer_state.encode(entries))
    return [ExpectedFinding(f, clauses("PSM-18", "PSM-19"), None)]


# ---- text files ------------------------------------------------------------------------------------------------------
def lines(file: Path) -> list[str]:
    return file.read_text().split("\n")


def epochs_reordered(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    fit = [p / "leader-epoch-checkpoint" for p in partitions(directories)]
    f = rng.choice([f for f in fit if len(lines(f)) > 4])
    text = lines(f)
    k = rng.randrange(2, len(text) - 2)
    text[k], text[k + 1] = text[k + 1], text[k]
    f.write_text("\n".join(text))
    return [ExpectedFinding(f, clauses("LEC-1"), line=k + 2)]


CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


def checkpoint_count(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    f = rng.choice([d / n for d in directories for n in CHECKPOINTS if (d / n).stat().st_size])
    text = lines(f)
    text[1] = str(int(text[1]) + 1)
    f.write_text("\n".join(text))
    return [ExpectedFinding(f, clauses("CKP-3"), line=2)]


def checkpoint_version(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    f = rng.choice([d / n for d in directories for n in CHECKPOINTS if (d / n).stat().st_size])
    text = lines(f)
    text[0] = "1"
    f.write_text("\n".join(text))
    return [ExpectedFinding(f, clauses("CKP-3"), line=1)]


def entry_beyond(name: str, clause: str) -> Kind:
    """A checkpoint's entry lies above the log's end."""

    def kind(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
        f = rng.choice(list(directories)) / name
        text = lines(f)
        p = rng.choice([p for p in partitions([f.parent]) if any(x.size for x in all_places([p]))])
        topic, _, number = p.name.rpartition("-")
        beyond = all_places([p])[-1].batch.last_offset + 100
        at = [k for k, line in enumerate(text) if line.rpartition(" ")[0] == f"{topic} {number}"]
        if at:
            text[at[0]] = f"{topic} {number} {beyond}"
        else:
            at = [2]
            text.insert(2, f"{topic} {number} {beyond}")
            text[1] = str(int(text[1]) + 1)
        f.write_text("\n".join(text))
        return [ExpectedFinding(f, clauses(clause), line=at[0] + 1)]

    return kind


def checkpoint_twice(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    """A partition stands in a checkpoint twice."""
    f = rng.choice(list(directories)) / "replication-offset-checkpoint"
    text = lines(f)
    k = rng.randrange(2, len(text) - 1)
    text.insert(k + 1, text[k])
    text[1] = str(int(text[1]) + 1)
    f.write_text("\n".join(text))
    return [ExpectedFinding(f, clauses("CKP-5"), line=k + 2)]


# ---- replicas, compaction --------------------------------------------------------------------------------------------
def replica_diverged(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    """One replica's record differs below the high watermark; its CRC is right."""
    d = rng.choice(list(directories))
    fit = [x for x in all_places(partitions([d], "orders", "moves")) if x.batch.codec == 0 and x.size > OVERHEAD + 20]
    x = rng.choice(fit)
    data = x.log.read_bytes()[x.at : x.end]
    reseal(x, x.size - 3, bytes([data[x.size - 3] ^ 1]))
    return [ExpectedFinding(x.log, clauses("RPL-4"), x.at, replicas=True)]


def epoch_above_metadata(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    """A log has an epoch that its partition's leader has not had, by the broker's own metadata log."""
    logs = partitions(directories, "orders", "moves")
    fit = [(p, x[-1]) for p in logs if (x := [y for s in segments(p) for y in places(s)])]
    p, last = rng.choice(fit)
    f = p / "leader-epoch-checkpoint"
    text = [line for line in lines(f) if line]
    text[1] = str(int(text[1]) + 1)
    text.append(f"{rng.randrange(1_000, 1 << 31)} {last.batch.offset(last.batch.records[-1]) + 1}")
    f.write_text("\n".join(text) + "\n")
    return [ExpectedFinding(f, clauses("RPL-8"), line=len(text))]


def key_twice(rng: random.Random, directories: Sequence[Path]) -> list[ExpectedFinding]:
    """Below the cleaner point a record has the key of the one before it, which should be gone; the CRC is right."""
    fit = []
    for d in directories:
        text = lines(d / "cleaner-offset-checkpoint")[2:]
        points = {f"{t}-{p}": int(o) for t, p, o in (line.split() for line in text if line)}
        for p in partitions([d]):
            below = [
                (x, k)
                for x in all_places([p])
                for k, r in enumerate(x.batch.records)
                if x.batch.codec == 0 and not x.batch.control and x.batch.offset(r) < points.get(p.name, 0)
            ]
            for (x, k), (y, j) in pairwise(below):
                one, other = x.batch.records[k].key, y.batch.records[j].key
                if one is not None and other is not None and len(one) == len(other):
                    fit.append((x, y, j, one))
    x, y, j, key = rng.choice(fit)
    y = next(z for z in places(y.log) if z.at == y.at)
    records = list(y.batch.records)
    records[j] = replace(records[j], key=key)
    rewrite(y, replace(y.batch, records=tuple(records)))
    return [ExpectedFinding(x.log, clauses("CMP-2"), None)]


@dataclass(frozen=True)
class Damage:
    """A kind, and the recording that it is done to."""

    name: str
    archive: str
    make: Kind


BASIC, CLUSTER = "single-basic/nodes-after-clean-stop", "cluster3-faults/nodes-after-clean-stop"
COMPACTED = "compaction-retention/node-after-clean-stop"

DAMAGES = (
    Damage("bit in a header", BASIC, bit_in_header),
    Damage("bit in the records", BASIC, bit_in_records),
    Damage("bit in a CRC", BASIC, bit_in_crc),
    Damage("bit in a length", BASIC, bit_in_length),
    Damage("bit in a magic byte", BASIC, bit_in_magic),
    Damage("wrong count", BASIC, wrong_count),
    Damage("wrong largest timestamp", BASIC, wrong_max_timestamp),
    Damage("overlap", BASIC, overlap),
    Damage("missing batch", BASIC, missing_batch),
    Damage("missing segment", BASIC, missing_segment),
    Damage("sequence gap", BASIC, sequence_gap),
    Damage("epoch going back", CLUSTER, epoch_back),
    Damage("torn tail after a clean stop", BASIC, torn_tail),
    Damage("index pointing elsewhere", BASIC, index_elsewhere),
    Damage("index out of order", BASIC, index_out_of_order),
    Damage("time index falling", BASIC, time_index_falling),
    Damage("abort missing in the transaction index", BASIC, abort_missing),
    Damage("snapshot with a wrong CRC", BASIC, snapshot_crc),
    Damage("snapshot stale", BASIC, snapshot_stale),
    Damage("leader epochs reordered", CLUSTER, epochs_reordered),
    Damage("checkpoint with a wrong count", BASIC, checkpoint_count),
    Damage("checkpoint with a wrong version", BASIC, checkpoint_version),
    Damage("partition twice in a checkpoint", BASIC, checkpoint_twice),
    Damage("log start beyond the end", BASIC, entry_beyond("log-start-offset-checkpoint", "CKP-12")),
    Damage("recovery point beyond the end", BASIC, entry_beyond("recovery-point-offset-checkpoint", "CKP-11")),
    Damage("high watermark beyond the end", BASIC, entry_beyond("replication-offset-checkpoint", "CKP-13")),
    Damage("replica diverged below the high watermark", CLUSTER, replica_diverged),
    Damage("epoch above the metadata log's", CLUSTER, epoch_above_metadata),
    Damage("key twice below the cleaner point", COMPACTED, key_twice),
)
