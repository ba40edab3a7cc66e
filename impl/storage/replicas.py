"""Replicas side by side, for the spec to walk beside: small logs as the chunks that the audit compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kafkaspec.audit.check import BATCH, RECORD, Chunk, Directory, Log, Summary, TopicConfig
from kafkaspec.audit.files import File, Kind, LogDirectory, PartitionFiles, Segment
from kafkaspec.impl.storage import replicas_audit as audit
from kafkaspec.lockstep.machine import Json, Refused


class SmallLog:
    """A replica's log: its summary, and its chunks of `size` batches."""

    def __init__(self, text: Mapping[str, Any], node: int, topic: str, size: int) -> None:
        self.size = size
        self.segment = Segment(0, File(Path(f"{node}/{0:020}.log"), 0))
        compacted = text.get("compacted", False)
        config = TopicConfig(cleanup_policy=None if compacted is None else "compact" if compacted else "delete")
        files = PartitionFiles(Path(str(node)), topic, 0, segments=(self.segment,))
        self.log = Log(files, high_watermark=text.get("highWatermark"), config=config)
        rows = text["batches"]
        self.batches = np.zeros(len(rows), BATCH)
        self.records = np.zeros(sum(len(r[5]) for r in rows), RECORD)
        n = 0
        for i, (base, last, epoch, frame, magic, records) in enumerate(rows):
            row = self.batches[i]
            row["position"], row["base_offset"], row["last_offset"], row["leader_epoch"] = 100 * i, base, last, epoch
            row["crc"], row["magic"] = frame, magic
            for offset, content in records:
                self.records[n]["offset"], self.records[n]["batch"], self.records[n]["hash"] = offset, i, content
                n += 1
        facts = {"epochs": [list(e) for e in text.get("epochs", [])]}
        self.summary = Summary(self.log, text.get("start", 0), text["end"], 1, len(rows), n, 0, facts)

    def chunks(self, records: bool) -> Iterator[tuple[Segment, Chunk]]:
        for i in range(0, len(self.batches), self.size):
            of = self.records[(self.records["batch"] >= i) & (self.records["batch"] < i + self.size)].copy()
            of["batch"] -= i
            yield self.segment, Chunk(self.batches[i : i + self.size].copy(), of if records else None)


class Driver:
    """The audit's comparisons, with every size of chunks up to three batches."""

    def reset(self, arguments: Mapping[str, Any]) -> None:
        pass

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        return getattr(self, "do_" + name)(**arguments)

    def do_compare(self, a: Mapping[str, Any], b: Mapping[str, Any], metadata: bool) -> Json:
        topic = audit.METADATA_TOPIC if metadata else "t"
        answers = []
        for sizes in ((1, 1), (1, 3), (2, 1), (9, 9)):
            logs = [
                SmallLog(text, node, topic, size) for node, (text, size) in enumerate(zip((a, b), sizes, strict=True))
            ]

            def reread(log: Log, records: bool, logs: Sequence[SmallLog] = logs) -> Iterator[tuple[Segment, Chunk]]:
                return next(x for x in logs if x.log is log).chunks(records)

            found = audit.compare(logs[0].summary, logs[1].summary, reread)
            answers.append(None if found is None else [found[0].kind, found[0].offset])
        return answers[0] if all(x == answers[0] for x in answers) else answers

    def do_compareEpochs(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> Json:
        found = audit.epochs_differ(*(SmallLog(text, n, "t", 1).summary for n, text in enumerate((a, b))))
        return None if found is None else found[0]

    def do_areReplicas(self, a: Sequence[Any], b: Sequence[Any]) -> Json:
        copies = []
        for n, (cluster, node, topic_id, kind) in enumerate((a, b)):
            log = Log(PartitionFiles(Path(f"{n}/t-0"), "t", 0, Kind(kind)))
            directory = Directory(LogDirectory(Path(str(n))), (), True, node, cluster)
            copies.append(audit.Copy(directory, Summary(log, 0, 0, 0, 0, 0, 0, {}), topic_id))
        return audit.are_replicas(copies[0], copies[1])

    def observe(self) -> Json:
        return {}
