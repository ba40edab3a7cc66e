"""The audit's comparison of replicas over small logs, for the spec to walk beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from kafkaspec.audit.check import Directory, Facts, Log, Summary, TopicConfig
from kafkaspec.audit.files import Kind, LogDirectory, PartitionFiles, Segment
from kafkaspec.audits.common.findings import METADATA_TOPIC
from kafkaspec.audits.storage import replicas as audit
from kafkaspec.contract.machine import ByName
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import BATCH, RECORD, Chunk
from kafkaspec.spec.storage import replicas as spec

BATCH_BYTES = 100
CHUNKS = ((1, 1), (1, 3), (2, 1), (9, 9))
"""Batches a chunk, of either log."""


class SmallLog:
    """A replica's log: its summary, and its chunks of `size` batches."""

    def __init__(self, replica: spec.Replica, node: int, topic: str, size: int) -> None:
        self.size = size
        self.segment = Segment(0, File(Path(f"{node}/{0:020}.log"), 0))
        policy = {None: None, True: "compact", False: "delete"}[replica.compacted]
        files = PartitionFiles(Path(str(node)), topic, 0, segments=(self.segment,))
        self.log = Log(files, high_watermark=replica.high_watermark, config=TopicConfig(cleanup_policy=policy))
        self.batches = np.zeros(len(replica.batches), BATCH)
        self.records = np.zeros(sum(len(b.records) for b in replica.batches), RECORD)
        n = 0
        for i, (row, b) in enumerate(zip(self.batches, replica.batches, strict=True)):
            row["position"], row["crc"], row["magic"] = BATCH_BYTES * i, b.frame, b.magic
            row["base_offset"], row["last_offset"], row["leader_epoch"] = b.base_offset, b.last_offset, b.epoch
            for r in b.records:
                self.records[n]["offset"], self.records[n]["batch"] = r.offset, i
                self.records[n]["hash"] = r.content % 2**64
                n += 1
        self.batches.flags.writeable = False
        self.read = [self._chunk(i) for i in range(0, len(self.batches), size)]
        facts = Facts(epochs=tuple((e.epoch, e.start_offset) for e in replica.epochs))
        self.summary = Summary(self.log, replica.start, replica.end, 1, len(self.batches), n, 0, facts)

    def _chunk(self, first: int) -> Chunk:
        """The batches from there on, with their records; nobody can change them."""
        end = first + self.size
        records = self.records[(self.records["batch"] >= first) & (self.records["batch"] < end)]
        records["batch"] -= first
        records.flags.writeable = False
        return Chunk(self.batches[first:end], records)

    def chunks(self, records: bool) -> Iterator[tuple[Segment, Chunk]]:
        for chunk in self.read:
            yield self.segment, chunk if records else Chunk(chunk.batches)


@lru_cache(maxsize=1024)
def small_logs(replica: spec.Replica, node: int, topic: str) -> list[SmallLog]:
    """One replica's log for each of CHUNKS."""
    return [SmallLog(replica, node, topic, sizes[node]) for sizes in CHUNKS]


class Driver(ByName):
    """The audit's comparisons, with every size of chunks up to three batches."""

    machine = spec.machine

    def compare(self, a: spec.Replica, b: spec.Replica, metadata: bool) -> tuple[Any, ...] | None:
        """The kind and the offset of the difference; all that were found, where that hangs on the chunks."""
        topic = METADATA_TOPIC if metadata else "t"
        answers = []
        for logs in zip(small_logs(a, 0, topic), small_logs(b, 1, topic), strict=True):

            def reread(log: Log, records: bool, logs: Sequence[SmallLog] = logs) -> Iterator[tuple[Segment, Chunk]]:
                return next(x for x in logs if x.log is log).chunks(records)

            found = audit.compare(logs[0].summary, logs[1].summary, reread)
            answers.append(None if found is None else (found[0].kind, found[0].offset))
        return answers[0] if len(set(answers)) == 1 else tuple(answers)

    def compare_epochs(self, a: spec.Replica, b: spec.Replica) -> int | None:
        found = audit.epochs_differ(*(small_logs(r, node, "t")[0].summary for node, r in enumerate((a, b))))
        return None if found is None else found[0]

    def epoch_above(self, a: spec.Replica, told: int) -> int:
        found = audit.epoch_above(small_logs(a, 0, "t")[0].summary, told)
        return -1 if found is None else found

    def replicas_of_one(self, a: spec.Directory, b: spec.Directory) -> bool:
        copies = []
        for n, d in enumerate((a, b)):
            log = Log(PartitionFiles(Path(f"{n}/t-0"), "t", 0, Kind(d.kind)))
            directory = Directory(LogDirectory(Path(str(n))), (), True, d.node, d.cluster)
            copies.append(audit.Copy(directory, Summary(log, 0, 0, 0, 0, 0, 0), d.topic_id))
        return audit.are_replicas(copies[0], copies[1])
