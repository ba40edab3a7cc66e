"""A metadata log of many records, and the audit of it; see README.md. Each run prints one line of JSON last.

python bench/metadata.py make FOLDER RECORDS     ISR changes, elections, fencing, configurations; 1 to 50 a batch
python bench/metadata.py audit FOLDER            the whole audit, every check on
python bench/metadata.py invariants PARTITIONS   the time of a check: of what changed, and of everything (naive)
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import resource
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafkaspec.audit.engine import audit
from kafkaspec.impl.common.writer import write_batches
from kafkaspec.impl.controller.metadata_image import MetadataImage
from kafkaspec.impl.controller.records import decode, encode, record

START = 1_700_000_000_000
METADATA = "__cluster_metadata-0"
BROKERS, REPLICAS, PARTITIONS_A_TOPIC = 20, 3, 100
PARTITIONS = 50_000
ID_AT, TOPIC_AT, FIELDS_AT = 3, 7, 23
"""Where a partition's number, its topic's id, and what follows stand in a record of it."""


def uuid_of(n: int) -> bytes:
    return struct.pack(">QQ", 1 << 40, n)


def text_of(id: bytes) -> str:
    return base64.urlsafe_b64encode(id).decode().rstrip("=")


class Writer:
    """A log, and the partitions as it has them: replicas, in-sync replicas, leader."""

    def __init__(self, folder: Path, seed: int = 7) -> None:
        folder.mkdir(parents=True)
        self.random = random.Random(seed)
        self.file = (folder / f"{0:020}.log").open("wb")
        self.offset = 0
        self.batches = 0
        self.partitions: list[tuple[bytes, list[int], list[int], int]] = []
        self.fenced: dict[int, bool] = {}
        self.epochs: dict[int, int] = {}
        self.known: dict[tuple[Any, ...], bytes] = {}

    def put(self, *values: bytes) -> None:
        """A batch."""
        self.file.write(
            write_batches(
                None,
                list(values),
                START + self.offset,
                batch_records=len(values),
                base_offset=self.offset,
                leader_epoch=1,
            )
        )
        self.offset += len(values)
        self.batches += 1

    def change(self, n: int, isr: list[int], leader: int | None) -> bytes:
        """A partition's change. Its bytes are those of another's with the same fields, but for the partition."""
        key = (*isr, leader)
        if key not in self.known:
            more: dict[str, Any] = {} if leader is None else {"leader": leader}
            made = encode(record("PartitionChangeRecord", isr=isr, **more))
            self.known[key] = made[FIELDS_AT:]
        id, replicas, _, before = self.partitions[n]
        self.partitions[n] = id, replicas, isr, before if leader is None else leader
        return b"\1\5\2" + id + self.known[key]

    # ---- what happens
    def begin(self, partitions: int) -> None:
        """Brokers and topics."""
        self.put(encode(record("FeatureLevelRecord", name="metadata.version", featureLevel=30)))
        for b in range(BROKERS):
            self.epochs[b], self.fenced[b] = self.offset, False
            said = record("RegisterBrokerRecord", brokerId=b, brokerEpoch=self.offset, fenced=False)
            self.put(encode(said))
        for t in range(partitions // PARTITIONS_A_TOPIC):
            id = uuid_of(t + 1)
            values = [encode(record("TopicRecord", name=f"topic-{t}", topicId=text_of(id)))]
            for p in range(PARTITIONS_A_TOPIC):
                replicas = self.random.sample(range(BROKERS), REPLICAS)
                made = record(
                    "PartitionRecord", partitionId=p, topicId=text_of(id), replicas=replicas, isr=replicas,
                    leader=replicas[0], leaderEpoch=0, partitionEpoch=0, directories=[text_of(uuid_of(9))] * REPLICAS,
                )  # fmt: skip
                values.append(encode(made))
                self.partitions.append((struct.pack(">i", p) + id, replicas, replicas, replicas[0]))
            self.put(*values)

    def isr_changes(self) -> None:
        """Replicas fall behind, or catch up."""
        values = []
        for _ in range(self.random.randrange(1, 51)):
            n = self.random.randrange(len(self.partitions))
            _, replicas, isr, leader = self.partitions[n]
            full = len(isr) == len(replicas)
            values.append(self.change(n, [b for b in isr if b == leader] if full else replicas, None))
        self.put(*values)

    def elections(self) -> None:
        values = []
        for _ in range(self.random.randrange(1, 51)):
            n = self.random.randrange(len(self.partitions))
            _, _, isr, leader = self.partitions[n]
            to = next((b for b in isr if b != leader and not self.fenced[b]), None)
            if to is not None:
                values.append(self.change(n, isr, to))
        if values:
            self.put(*values)

    def fencing(self) -> None:
        """A broker that leads nothing any more is fenced, or one that was comes back."""
        b = self.random.randrange(BROKERS)
        if not self.fenced[b]:
            values = []
            for n, (_, replicas, isr, leader) in enumerate(self.partitions):
                if leader == b:
                    others = [x for x in replicas if x != b and not self.fenced[x]]
                    values.append(self.change(n, others[:1], others[0] if others else -1))
                elif b in isr:
                    values.append(self.change(n, [x for x in isr if x != b], None))
            for first in range(0, len(values), 1000):
                self.put(*values[first : first + 1000])
        self.fenced[b] = not self.fenced[b]
        how = 1 if self.fenced[b] else -1
        self.put(
            encode(record("BrokerRegistrationChangeRecord", 0, brokerId=b, brokerEpoch=self.epochs[b], fenced=how))
        )

    def others(self) -> None:
        t = self.random.randrange(len(self.partitions) // PARTITIONS_A_TOPIC)
        value = str(self.random.randrange(1 << 30))
        made = record("ConfigRecord", resourceType=2, resourceName=f"topic-{t}", name="retention.ms", value=value)
        self.put(encode(made))
        self.put(encode(record("NoOpRecord")))


def make(folder: Path, records: int, partitions: int = PARTITIONS) -> dict[str, int]:
    """A partition's directory with at least so many records. A replica of a fenced broker is not in sync again."""
    w = Writer(folder, 7)
    w.begin(partitions)
    kinds = [w.isr_changes] * 70 + [w.elections] * 20 + [w.others] * 10
    n = 0
    while w.offset < records:
        n += 1
        if n % 2_000 == 0:
            w.fencing()
        else:
            w.random.choice(kinds)()
    w.file.close()
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    voted = {"leaderId": 1, "leaderEpoch": 1, "votedId": 1, "votedDirectoryId": text_of(bytes(16)), "data_version": 1}
    (folder / "quorum-state").write_text(json.dumps(voted))
    return {"records": w.offset, "batches": w.batches, "bytes": (folder / f"{0:020}.log").stat().st_size}


def audited(folder: Path) -> dict[str, Any]:
    """Of a directory with another name the records would not be replayed, and a measurement would say nothing."""
    if folder.name != METADATA:
        raise SystemExit(f"{folder}: the directory of a metadata log is named {METADATA}")
    started, cpu = time.perf_counter(), time.process_time()
    a = audit([folder], strict=True)
    seconds, cpu_s = time.perf_counter() - started, time.process_time() - cpu
    records = sum(t.records for t in a.topics)
    return {
        "verdict": a.verdict, "findings": len(a.findings), "records": records, "seconds": seconds, "cpu_s": cpu_s,
        "records_per_cpu_s": records / cpu_s, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def invariants(partitions: int) -> dict[str, float]:
    """Microseconds of CPU of a check after a batch of 20 changes."""
    image = MetadataImage()

    def replay(value: bytes, offset: int = 1 << 40) -> None:
        made = decode(value)
        image.replay(made.type, made.fields, offset)

    for b in range(BROKERS):
        replay(encode(record("RegisterBrokerRecord", brokerId=b, brokerEpoch=b, fenced=False)))
    for t in range(max(1, partitions // PARTITIONS_A_TOPIC)):
        id = text_of(uuid_of(t + 1))
        replay(encode(record("TopicRecord", name=f"topic-{t}", topicId=id)))
        for p in range(min(partitions, PARTITIONS_A_TOPIC)):
            said = {"topicId": id, "partitionId": p, "replicas": [0, 1, 2], "isr": [0, 1, 2], "leader": 0}
            replay(encode(record("PartitionRecord", **said)))
    image.check()
    ids = list(image.topics)
    r = random.Random(7)
    out = {"partitions": float(partitions)}
    ways: dict[str, tuple[Callable[[], Any], int]] = {"changed_us": (image.check, 200), "all_us": (image.check_all, 5)}
    for name, (check, rounds) in ways.items():
        spent = 0.0
        for _ in range(rounds):
            for _ in range(20):
                said = {"topicId": r.choice(ids), "partitionId": r.randrange(min(partitions, PARTITIONS_A_TOPIC))}
                made = record("PartitionChangeRecord", **said, isr=[0, 1])
                image.replay(made.type, made.fields, 0)
            started = time.process_time()
            check()
            spent += time.process_time() - started
        out[name] = 1e6 * spent / rounds
    return out


def main() -> None:
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    p.add_argument("what", choices=("make", "audit", "invariants"))
    p.add_argument("folder", type=Path)
    p.add_argument("records", type=int, nargs="?", default=1_000_000)
    given = p.parse_args()
    if given.what == "make":
        out: dict[str, Any] = make(given.folder, given.records)
    elif given.what == "audit":
        out = audited(given.folder)
    else:
        out = invariants(int(str(given.folder)))
    print(json.dumps(out))


if __name__ == "__main__":
    main()
