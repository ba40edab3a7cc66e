"""The small files of a log directory against its logs: readable, complete, and within what the logs hold.

Source: CheckpointFile, OffsetCheckpointFile, PartitionMetadataFile and LogManager, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kafkaspec.audit.check import Absent, Directory, DirectoryCheck, Log, LogCheck, Summary
from kafkaspec.audit.files import Kind, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.common.findings import METADATA_TOPIC
from kafkaspec.contract.clauses import states
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File, read_small
from kafkaspec.impl.common.rows import Chunk
from kafkaspec.impl.management.checkpoints import (
    CLEANER_POINTS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    TEMPORARY,
    CheckpointUnreadable,
    TopicPartition,
    decode_lines,
    decode_metadata,
)

HALTS = "a restart takes the directory out of service; a broker with no other directory stops"
UNREADABLE = {
    RECOVERY_POINTS: HALTS,
    LOG_STARTS: f"{HALTS}; records that were deleted would be back",
    HIGH_WATERMARKS: HALTS,
    CLEANER_POINTS: "the cleaner takes the directory out of service when it looks for work",
}
BAD_NUMBER = {
    RECOVERY_POINTS: "a restart without a clean stop scans every log of the directory from its start (CKP-D1)",
    LOG_STARTS: "a restart begins each log at its first segment: deleted records are back (CKP-D1)",
    HIGH_WATERMARKS: "the broker fails when it starts the first partition of the directory (CKP-D1)",
    CLEANER_POINTS: "it ends each cleaner thread that looks for work (CKP-D1)",
}
WHAT = {
    RECOVERY_POINTS: "recovery point",
    LOG_STARTS: "log start",
    HIGH_WATERMARKS: "high watermark",
    CLEANER_POINTS: "first dirty offset",
}


class CheckpointCheck(DirectoryCheck):
    """The four offset checkpoints of a directory, beside its logs."""

    needs_directory = ("CKP-3", "CKP-5", "CKP-11", "CKP-12", "CKP-13", "CKP-14", "CKP-16", "MTP-8")

    def check(self, directory: Directory) -> Iterator[Finding]:
        self.directory = directory
        self.logs: dict[TopicPartition, Summary] = {
            TopicPartition(s.log.topic, s.log.partition): s
            for s in directory.logs
            if s.log.files.kind in (Kind.CURRENT, Kind.FUTURE)
        }
        self.folders = {
            TopicPartition(p.topic, p.partition)
            for p in directory.files.partitions
            if p.kind in (Kind.CURRENT, Kind.FUTURE)
        }
        self.lost: set[TopicPartition] = set()
        """partitions of which the end is known to be gone"""
        for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANER_POINTS):
            file = directory.files.files.get(name)
            if file is not None:
                yield from self._file(name, file)
        yield from self._temporary()

    # ---- one file
    @states("CKP-3", "CKP-5")
    def _file(self, name: str, file: File) -> Iterator[Finding]:
        try:
            entries = decode_lines(read_small(file))
        except UserError as e:
            self.problems.append(str(e))
            return
        except CheckpointUnreadable as e:
            numeric = e.line > 2 and _is_entry(file, e.line)
            yield Finding(
                Severity.ERROR,
                "CKP-3",
                str(file.path),
                f"the file cannot be read: {e}",
                "version 0, the number of entries, and entries `topic partition offset`",
                (BAD_NUMBER if numeric else UNREADABLE)[name],
                line=e.line,
            )
            return
        seen: dict[TopicPartition, int] = {}
        for line, (partition, _) in entries:
            if partition in seen:
                yield Finding(
                    Severity.WARNING,
                    "CKP-5",
                    str(file.path),
                    f"{partition} stands in line {seen[partition]} too",
                    "one entry for a partition",
                    "the last one counts",
                    line=line,
                    topic=partition.topic,
                    partition=partition.partition,
                )
            seen[partition] = line
        for partition, (line, offset) in {p: (line, o) for line, (p, o) in entries}.items():
            summary = self.logs.get(partition)
            if summary is not None:
                yield from self._entry(name, file, line, partition, offset, summary)
            elif partition not in self.folders:
                yield self._unknown(name, file, line, partition, offset)
        if name == RECOVERY_POINTS and self.directory.clean:
            yield from self._missing(file, seen)

    @states("CKP-11", "CKP-16")
    def _unknown(self, name: str, file: File, line: int, partition: TopicPartition, offset: int) -> Finding:
        gone = name == RECOVERY_POINTS and self.directory.clean and offset > 0
        return Finding(
            Severity.ERROR if gone else Severity.LEFTOVER,
            "CKP-16" if not gone else "CKP-11",
            str(file.path),
            f"{partition} has an entry and no directory"
            + (f": at the clean stop it had records up to offset {offset - 1}" if gone else ""),
            "a directory for each entry" if gone else "",
            "a restart begins it again, empty" if gone else "the entry is not looked at, and gone with the next write",
            line=line,
            topic=partition.topic,
            partition=partition.partition,
        )

    @states("CKP-11")
    def _missing(self, file: File, seen: dict[TopicPartition, int]) -> Iterator[Finding]:
        for partition, summary in self.logs.items():
            if partition not in seen and partition.topic != METADATA_TOPIC and summary.log.files.kind is Kind.CURRENT:
                yield Finding(
                    Severity.WARNING,
                    "CKP-11",
                    str(file.path),
                    f"{partition} has a directory and no entry, after a clean stop",
                    f"{partition.topic} {partition.partition} {summary.end}",
                    "none needed now; after a kill the whole log would be scanned",
                    topic=partition.topic,
                    partition=partition.partition,
                )

    # ---- one entry
    @states("CKP-11", "CKP-12", "CKP-13", "CKP-14")
    def _entry(
        self, name: str, file: File, line: int, partition: TopicPartition, offset: int, summary: Summary
    ) -> Iterator[Finding]:
        end_known = not summary.facts.end_uncertain
        first = min((s.base_offset for s in summary.log.files.segments), default=0)
        clean, end = self.directory.clean, summary.end

        def finding(severity: Severity, clause: str, message: str, expected: str, recovery: str) -> Finding:
            return Finding(
                severity,
                clause,
                str(file.path),
                f"{WHAT[name]} {offset} of {partition}: {message}",
                expected,
                recovery,
                line=line,
                offset=offset,
                topic=partition.topic,
                partition=partition.partition,
            )

        beyond = end_known and offset > end
        if name == RECOVERY_POINTS:
            if beyond and clean:
                self.lost.add(partition)
                yield finding(
                    Severity.ERROR,
                    "CKP-11",
                    f"the log ends at {end}: offsets {end} to {offset - 1} were there at the clean stop and are gone",
                    f"{end}, the log end",
                    "a restart takes the log as it is; it ends earlier",
                )
            elif beyond:
                yield finding(
                    Severity.LEFTOVER,
                    "CKP-11",
                    f"the log ends at {end}, as after a truncation that was not yet checkpointed",
                    f"at most {end}",
                    f"a restart lowers it to {end}",
                )
            elif clean and end_known and offset < end:
                yield finding(
                    Severity.WARNING,
                    "CKP-11",
                    f"the log ends at {end}, and the stop was clean",
                    f"{end}, the log end",
                    f"a restart takes everything up to {end} for flushed",
                )
        elif name == LOG_STARTS:
            if beyond:
                yield finding(
                    Severity.ERROR,
                    "CKP-12",
                    f"the log ends at {end}",
                    f"{first} to {end}",
                    f"a restart deletes all segments and starts an empty log at {offset}",
                )
            elif clean and offset < first:
                yield finding(
                    Severity.ERROR,
                    "CKP-12",
                    f"the first segment begins at {first}: what was below it is gone since the clean stop",
                    f"{first} or more",
                    f"a restart begins the log at {first}",
                )
        elif name == HIGH_WATERMARKS:
            if beyond and partition not in self.lost:
                yield finding(
                    Severity.ERROR if clean else Severity.LEFTOVER,
                    "CKP-13",
                    f"the log ends at {end}"
                    + ("" if clean else ", as after a truncation, or a loss of what was not flushed"),
                    f"{summary.start} to {end}",
                    f"a restart lowers it to {end}",
                )
            elif clean and offset < summary.start <= end and partition not in self.lost:
                yield finding(
                    Severity.WARNING,
                    "CKP-13",
                    f"the log starts at {summary.start}",
                    f"{summary.start} to {end}",
                    f"a restart raises it to {summary.start}",
                )
        elif beyond and partition not in self.lost:
            yield finding(
                Severity.WARNING if clean else Severity.LEFTOVER,
                "CKP-14",
                f"the log ends at {end}",
                f"{summary.start} to {end}",
                f"the cleaner starts over from {summary.start}",
            )

    @states("CKP-6", "MTP-8")
    def _temporary(self) -> Iterator[Finding]:
        for name, file in self.directory.files.files.items():
            if name.endswith(TEMPORARY):
                yield Finding(
                    Severity.LEFTOVER,
                    "MTP-8" if name.startswith("meta.properties") else "CKP-6",
                    str(file.path),
                    f"a {name.removesuffix(TEMPORARY)} that was being written",
                    recovery="it is never read, and the next write replaces it",
                )


def _is_entry(file: File, line: int) -> bool:
    """Whether a line has the three fields of an entry, so that a number in it is what is wrong."""
    text = read_small(file).decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return len(text[line - 1].split()) == 3


class PartitionMetadataCheck(LogCheck):
    """partition.metadata, beside the topic's id in the metadata log."""

    @classmethod
    def applies(cls, log: Log) -> bool:
        return log.files.kind is Kind.CURRENT

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.batches = 0
        self.without = ", and there are no records"

    def chunk(self, segment: Segment, chunk: Chunk) -> Iterable[Finding]:
        self.batches += len(chunk.batches)
        return ()

    def skip(self, segment: Segment, problem: str) -> Iterable[Finding]:
        self.without = ""
        return ()

    def absent(self) -> Iterable[Absent]:
        if self.log.files.metadata is None and self.log.files.folder("partition.metadata") is None:
            yield Absent("partition.metadata files", ("CKP-7",), ("partition.metadata",))

    @states("CKP-7")
    def end(self) -> Iterable[Finding]:
        log, file = self.log, self.log.files.metadata
        folder = log.files.folder("partition.metadata")
        if folder is not None:
            there = "a directory in the place of the file"
            yield log.finding(Severity.ERROR, "CKP-7", str(folder), there, expected="a file", recovery=HALTS)
            return
        if file is None:
            if log.topic_id is not None and log.topic != METADATA_TOPIC and not log.alone:
                yield log.finding(
                    Severity.ERROR if self.batches else Severity.LEFTOVER,
                    "CKP-7",
                    str(log.files.path),
                    "there is no partition.metadata" + ("" if self.batches else self.without),
                    expected=f"one with topic_id {log.topic_id}",
                    recovery="a restart takes it for a replica of a topic that is gone, and renames it to -stray",
                )
            return
        try:
            found = decode_metadata(read_small(file))
        except CheckpointUnreadable as e:
            yield log.finding(
                Severity.ERROR,
                "CKP-7",
                file,
                f"the file cannot be read: {e}",
                expected="the lines `version: 0` and `topic_id: ID`",
                recovery=HALTS,
                line=e.line,
            )
            return
        if log.topic_id is not None and found != log.topic_id:
            yield log.finding(
                Severity.WARNING,
                "CKP-7",
                file,
                f"topic_id {found}, and the metadata log knows the topic as {log.topic_id}",
                expected=f"topic_id: {log.topic_id}",
                recovery="a restart takes it for a replica of a topic that is gone, and renames it to -stray",
                line=2,
            )


AUDIT: tuple[Any, ...] = (CheckpointCheck, PartitionMetadataCheck)
