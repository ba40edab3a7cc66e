"""What a restart of the broker does with what lies in a log directory, for findings: residue, gaps and damage.

Offsets are followed over batches and segments; what a crash left is named with what the loader will do about it.

Source: LogLoader, LogSegment.recover and LogManager, Kafka 4.3.0; Kafka Internals, ch. 03, "Crash recovery & startup".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kafkaspec.audit.check import Absent, ClusterCheck, Directory, DirectoryCheck, Facts, Log, LogCheck
from kafkaspec.audit.files import Kind, PartitionFiles, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.common.findings import METADATA_TOPIC, MOST_FINDINGS
from kafkaspec.contract.clauses import states
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.impl.management.checkpoints import MARKER
from kafkaspec.spec.common.kafka import LONG_MAX

ALWAYS_COMPACTED = ("__consumer_offsets", "__transaction_state", "__share_group_state")
SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
SNAPSHOT_SUFFIX = ".snapshot"
UNNOTICED = "a restart takes no notice of it"
UNOPENED = (
    "if its segment is there the index cannot be opened: a restart fails on it where the segment is the last one or is "
    "recovered; of another one the first look into the index takes the directory out of service"
)
IN_THE_WAY = {
    ".log": f"{UNNOTICED}: there is no such segment",
    ".index": UNOPENED,
    ".timeindex": UNOPENED,
    ".txnindex": "a restart fails on it if its segment is there: the index cannot be opened",
    SNAPSHOT_SUFFIX: f"{UNNOTICED} until a snapshot of that offset is due, as at the log's end: after a clean stop it "
    "fails; after an unclean one it takes that for damage, empties the segment that ends or begins there, and removes "
    "those behind it",
}
"""What a directory does that has the name of a file, by the name's end."""


# ---- what recovery does ----------------------------------------------------------------------------------------------
def rescanned_from(log: Log) -> int | None:
    """The base offset of the first segment that a restart without the clean-shutdown marker reads in full: the one that
    holds the recovery point (0 where the checkpoint has no entry). None if the log has no segment."""
    bases = [s.base_offset for s in log.files.segments]
    point = log.recovery_point or 0
    return max((b for b in bases if b <= point), default=min(bases, default=None))


def recovery_consequence(
    log: Log, segment: Segment, position: int, offset: int | None = None, end: int | None = None
) -> str:
    """What a restart does with a batch at byte `position` of `segment` that is torn or fails its CRC: one sentence.
    `offset` is the first offset that is lost there, if known; `end` the log end offset, if known."""
    if log.files.in_place_of(segment, ".index") is not None:
        return "none: a directory is in the place of the segment's offset index, which cannot be opened (LDR-18)"
    if segment.offset_index is None:
        return f"the segment has no offset index, so a restart scans it and cuts it at byte {position}" + _lost(
            offset, None, "; segments after it stay, behind a hole"
        )
    stays = "starts without reading it; a consumer gets an error there, and the cleaner gives the partition up"
    first = rescanned_from(log)
    if log.clean:
        return f"the stop was clean: a restart {stays}"
    if first is not None and segment.base_offset < first:
        below = f"the segment is below the recovery point {log.recovery_point}: a restart {stays}"
        return below if log.clean is False else f"{below}, after a clean stop and after an unclean one"
    cuts = f"a restart scans the segment again and cuts the log at byte {position}" + _lost(
        offset, end, "" if log.is_active(segment) else "; it deletes the segments after it"
    )
    return cuts if log.clean is False else f"after a clean stop a restart {stays}; after an unclean one {cuts}"


def _lost(offset: int | None, end: int | None, more: str) -> str:
    """Which offsets go, in words."""
    if offset is None or (end is not None and end <= offset):
        return f": what follows there is lost{more}"
    return f": offset {offset} and up{'' if end is None else f' to {end - 1}'} are lost{more}"


# ---- offsets over batches and segments -------------------------------------------------------------------------------
@dataclass
class _Gap:
    segment: Segment
    position: int
    expected: int
    found: int


class OffsetCheck(LogCheck):
    """Offsets rise from batch to batch and from segment to segment, within their segments, and leave nothing out that
    nobody took out."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.next_offset: int | None = None
        """after the last batch, if that was whole"""
        self.overlapped = False
        """the last batch began before the end of the one before it"""
        self.uncertain = False
        """something between the last good batch and here is damaged"""
        self.partial = False
        """some batch lacks records: somebody compacted"""
        self.gaps: list[_Gap] = []
        self.overlaps = 0
        self.strangers = 0
        self.between: list[tuple[int, int]] = []
        """of a log that is alone: the offsets from and to that no segment holds, which may be in others"""
        self.upper: dict[int, int] = {}
        bases = [s.base_offset for s in log.files.segments]
        self.upper = dict(zip(bases, [*bases[1:], 2**63 - 1], strict=False))

    def chunk(self, segment: Segment, chunk: Chunk) -> Iterator[Finding]:
        rows = chunk.batches
        if not len(rows):
            return
        if not chunk.usual:
            yield from self._with_damage(segment, rows, ~(chunk.bad | chunk.old))
            return
        first, last = chunk.base, chunk.last
        if not self.partial:
            self.partial = bool((chunk.count != last - first + 1).any())
        expected = np.empty(len(rows), dtype=np.int64)
        expected[1:] = last[:-1] + 1
        expected[0] = first[0] if self.next_offset is None else self.next_offset
        yield from self._step(segment, rows, first, last, expected)
        self._after(int(last[-1]))

    def _with_damage(self, segment: Segment, rows: Any, known: Any) -> Iterator[Finding]:
        """The same, run by run of what is whole: nothing is concluded across damage."""
        edges = np.flatnonzero(np.diff(known.astype(np.int8))) + 1
        for run in np.split(np.arange(len(rows)), edges):
            part = rows[run]
            if not known[run[0]]:
                self._broken(part)
                continue
            yield from self.chunk(segment, Chunk(part))

    def _broken(self, rows: Any) -> None:
        if (rows["problem"] != 0).any():
            self.next_offset, self.uncertain = None, True
        else:  # an older format, checked elsewhere
            self._after(int(rows["last_offset"][-1]))
            self.next_offset = None

    def _after(self, last: int) -> None:
        self.next_offset, self.uncertain = last + 1, False

    def _step(self, segment: Segment, rows: Any, first: Any, last: Any, expected: Any) -> Iterator[Finding]:
        if (first != expected).any():
            below = first < expected
            for i in np.flatnonzero(below):
                yield from self._overlap(segment, rows[i], int(expected[i]))
            behind = np.concatenate([[self.overlapped], below[:-1]])  # what seems to be missing there is its doing
            for i in np.flatnonzero((first > expected) & ~behind):
                at, lacking, found = (int(x) for x in (rows["position"][i], expected[i], first[i]))
                if self.log.alone and at == 0 and lacking < segment.base_offset:
                    self.between.append((lacking, segment.base_offset - 1))
                    lacking = segment.base_offset
                if lacking < found and len(self.gaps) < MOST_FINDINGS:
                    self.gaps.append(_Gap(segment, at, lacking, found))
        self.overlapped = bool(first[-1] < expected[-1])
        upper = self.upper.get(segment.base_offset, 2**63 - 1)
        outside = (first < segment.base_offset) | (last >= upper)
        if outside.any():
            for i in np.flatnonzero(outside):
                if first[i] >= expected[i]:
                    yield from self._stranger(segment, rows[i], upper)

    @states("LDR-16")
    def _overlap(self, segment: Segment, row: Any, expected: int) -> Iterator[Finding]:
        self.overlaps += 1
        if self.overlaps > MOST_FINDINGS or segment.log is None:
            return
        yield self.log.finding(
            Severity.ERROR,
            "LDR-16",
            segment.log,
            f"a batch of offsets {row['base_offset']} to {row['last_offset']} follows one that ends at {expected - 1}",
            expected=f"a base offset of {expected} or more",
            recovery="none that is sure: a clean start reads on; a scan keeps it, unless an index entry is due there: "
            "then it empties the segment",
            position=int(row["position"]),
            offset=int(row["base_offset"]),
        )

    @states("LDR-18")
    def _stranger(self, segment: Segment, row: Any, upper: int) -> Iterator[Finding]:
        self.strangers += 1
        if self.strangers > MOST_FINDINGS or segment.log is None:
            return
        below = int(row["base_offset"]) < segment.base_offset
        bound = f"{segment.base_offset} or more" if below else f"below {upper}, where the next segment begins"
        yield self.log.finding(
            Severity.ERROR,
            "LDR-18",
            segment.log,
            f"a batch of offsets {row['base_offset']} to {row['last_offset']} in the segment {segment.base_offset}",
            expected=f"offsets {bound}",
            recovery="none: a lookup of these offsets does not find them here",
            position=int(row["position"]),
            offset=int(row["base_offset"]),
        )

    def ended(self, segment: Segment, ending: Ending) -> Iterable[Finding]:
        if ending.reason:
            self.uncertain = True
            self.next_offset = None
        return ()

    def skip(self, segment: Segment, problem: str) -> Iterable[Finding]:
        """Its batches may lack records, as where somebody compacted."""
        self.next_offset, self.overlapped, self.uncertain, self.partial = None, False, True, True
        return ()

    def absent(self) -> Iterator[Absent]:
        if self.between and not self.compacted:
            yield Absent("segments", ("LDR-17",), tuple(f"offsets {a} to {b}" for a, b in self.between))

    def learnt(self, facts: Facts) -> Facts:
        return replace(facts, end_uncertain=self.uncertain)

    @states("LDR-17")
    def end(self) -> Iterator[Finding]:
        if not self.gaps or self.compacted:
            return
        known = self.not_compacted
        gaps = self.gaps if known else self.gaps[:1]
        for gap in gaps:
            assert gap.segment.log is not None
            what = f"offsets {gap.expected} to {gap.found - 1} are missing"
            doubt = "" if known else "; compaction would explain it, and whether the topic is compacted is not known"
            yield self.log.finding(
                Severity.ERROR if known else Severity.UNCHECKED,
                "LDR-17",
                gap.segment.log,
                what + doubt,
                expected=f"a batch that begins at offset {gap.expected}, in a topic that is not compacted",
                recovery="none: a start does not look for gaps, and a consumer passes over them",
                position=gap.position,
                offset=gap.expected,
            )

    @property
    def compacted(self) -> bool:
        """Compaction may have taken records out."""
        return (
            self.log.compacted is True
            or self.log.topic in ALWAYS_COMPACTED
            or any(f.path.name.endswith((".swap", ".cleaned")) for f in self.log.files.transient)
            or (self.log.compacted is None and self.partial)
        )

    @property
    def not_compacted(self) -> bool:
        """Nobody took records out: the topic's configuration says so, or the metadata log knows the topic and says
        nothing of its policy."""
        return self.log.topic == METADATA_TOPIC or self.log.compacted is False or self.log.topic_id is not None


# ---- residue ---------------------------------------------------------------------------------------------------------
def offset_of(name: str) -> int | None:
    """The offset that a file's name begins with; None if it does not begin with one."""
    head = name.partition(".")[0]
    return int(head) if re.fullmatch(r"[0-9]{20}", head) and int(head) <= LONG_MAX else None


def smallest_cleaned(files: Sequence[File]) -> int | None:
    """The smallest base offset of an unfinished compaction's files."""
    found = [offset_of(f.path.name) for f in files if f.path.name.endswith(".cleaned")]
    return min((n for n in found if n is not None), default=None)


@states("LDR-1", "LDR-2", "LDR-4")
def leftover(file: File, files: Sequence[File]) -> tuple[str, str, str]:
    """The clause, what a .deleted, .cleaned or .swap file is, and what the next start does with it."""
    name = file.path.name
    if name.endswith(".deleted"):
        return "LDR-1", "a file whose removal was due file.delete.delay.ms later", "a restart removes it"
    if name.endswith(".cleaned"):
        return (
            "LDR-1",
            "the output of a compaction that was not finished",
            "a restart removes it; the old segments stay",
        )
    cleaned, offset = smallest_cleaned(files), offset_of(name)
    if cleaned is not None and offset is not None and offset >= cleaned:
        return (
            "LDR-2",
            "the output of a replacement of which not all files had their place",
            f"a restart removes it, because there is a .cleaned file at {cleaned}; the old segments stay",
        )
    stem = name.removesuffix(".swap")
    return (
        "LDR-4",
        "the output of a compaction, finished and not yet in its place",
        f"a restart removes the segments that it replaces and renames it to {stem}",
    )


class LeftoverCheck(LogCheck):
    """Files that a crash left in a partition's directory, and files that stop a start."""

    needs_directory = ("LDR-5",)

    def begin(self, segment: Segment) -> Iterable[Finding]:
        return ()

    def skip(self, segment: Segment, problem: str) -> Iterable[Finding]:
        return ()

    @states("LDR-5")
    def end(self) -> Iterator[Finding]:
        log = self.log
        for file in log.files.transient:
            if file.path.name.endswith((".swap", ".cleaned")) and offset_of(file.path.name) is None:
                yield self._nameless(file)
                continue
            clause, what, then = leftover(file, log.files.transient)
            yield log.finding(Severity.LEFTOVER, clause, file, what, recovery=then, offset=offset_of(file.path.name))
        for orphan in log.files.orphans if not log.alone else ():
            if log.files.in_place_of(orphan, ".log") is not None:
                continue  # a start looks for the name alone
            for index in (orphan.offset_index, orphan.time_index, orphan.transaction_index):
                if index is not None:
                    yield log.finding(
                        Severity.LEFTOVER,
                        "LDR-5",
                        index,
                        "an index of a segment that is not there",
                        recovery="a restart removes it",
                        offset=orphan.base_offset,
                    )
        for file in log.files.others:
            yield from self._other(file)
        for folder in log.files.folders:
            yield from self._folder(folder)

    def absent(self) -> Iterator[Absent]:
        if self.log.files.orphans:
            yield Absent("segments", (), tuple(f"{s.base_offset:020}.log" for s in self.log.files.orphans))

    @states("CKP-6")
    def _other(self, file: File) -> Iterator[Finding]:
        name = file.path.name
        if name.endswith(".tmp"):
            yield self.log.finding(
                Severity.LEFTOVER,
                "CKP-6",
                file,
                f"a {name.removesuffix('.tmp')} that was being written",
                recovery="it is never read, and the next write replaces it",
            )
        elif name.endswith((*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX)):
            yield self._nameless(file)

    @states("LDR-18")
    def _nameless(self, file: File) -> Finding:
        head = file.path.name.partition(".")[0]
        number = re.fullmatch(r"[+-]?[0-9]+", head) is not None and -LONG_MAX - 1 <= int(head) <= LONG_MAX
        return self.log.finding(
            Severity.ERROR,
            "LDR-18",
            file,
            "a segment's file whose name is no offset of 20 digits",
            expected="20 digits, a number below 2^63, and a suffix",
            recovery=f"a restart takes it for one of offset {int(head)}, and does not read it"
            if number
            else "a restart fails on it: the broker does not start",
        )

    @states("LDR-18")
    def _folder(self, folder: Path) -> Iterator[Finding]:
        suffix, offset = folder.suffix, offset_of(folder.name)
        if suffix not in IN_THE_WAY or offset is None:  # a start passes over it, and no file will have the name
            return
        what = "producer snapshot" if suffix == SNAPSHOT_SUFFIX else "segment's file"
        yield self.log.finding(
            Severity.ERROR,
            "LDR-18",
            str(folder),
            f"a directory with the name of a {what}",
            expected="a file",
            recovery=IN_THE_WAY[suffix],
            offset=offset,
        )


KINDS = {
    Kind.DELETED: ("a partition that was deleted", "a restart loads it and removes it after file.delete.delay.ms"),
    Kind.FUTURE: (
        "a copy that was being moved here from another directory",
        "a restart goes on with the move",
    ),
    Kind.STRAY: (
        "a partition that the cluster did not assign to this broker when it started",
        "a restart keeps it aside; nothing removes it",
    ),
}


class DirectoryLeftoverCheck(DirectoryCheck):
    """Directories of partitions that are none any more or not yet, and others that stop a start."""

    needs_directory = ("LDR-19",)

    @states("LDR-19")
    def check(self, directory: Directory) -> Iterator[Finding]:
        for p in directory.files.partitions:
            if p.kind in KINDS:
                what, then = KINDS[p.kind]
                yield self._of(p, Severity.LEFTOVER, "LDR-19", what, then)
        for folder in directory.files.folders:
            if folder.name == MARKER:
                yield self._marker(folder, directory.files.empty_marker)
            elif folder.name != "remote-log-index-cache":
                yield Finding(
                    Severity.WARNING,
                    "LDR-19",
                    str(folder),
                    "a directory whose name is no partition's",
                    "TOPIC-PARTITION, or that with a unique part and -delete, -future or -stray",
                    "a restart fails on it: the broker does not start",
                )

    @staticmethod
    @states("LDR-19")
    def _marker(folder: Path, empty: bool) -> Finding:
        """A start asks whether there is anything of the name, and removes it before it looks at the partitions."""
        return Finding(
            Severity.WARNING if empty else Severity.ERROR,
            "LDR-19",
            str(folder),
            "a directory in the place of the marker of a clean stop" + ("" if empty else ", and it is not empty"),
            "a file, or nothing",
            "a restart takes it for the marker, and removes it: no log is recovered; the broker's epoch is not known"
            if empty
            else "a restart cannot remove it, and takes the directory out of service; a broker with no other directory "
            "stops",
        )

    @staticmethod
    def _of(p: PartitionFiles, severity: Severity, clause: str, message: str, recovery: str) -> Finding:
        return Finding(severity, clause, str(p.path), message, recovery=recovery, topic=p.topic, partition=p.partition)


class TwiceCheck(ClusterCheck):
    """A partition lies in one directory of a broker."""

    needs_directory = ("LDR-19",)

    @states("LDR-19")
    def check(self, directories: tuple[Directory, ...], reread: Any) -> Iterator[Finding]:
        seen: dict[tuple[Any, Any, str, int], Path] = {}
        for directory in directories:
            if directory.node is None:
                continue
            for p in directory.files.partitions:
                if p.kind is not Kind.CURRENT or p.topic == METADATA_TOPIC:
                    continue
                other = seen.setdefault((directory.cluster, directory.node, p.topic, p.partition), p.path)
                if other != p.path:
                    yield Finding(
                        Severity.ERROR,
                        "LDR-19",
                        str(p.path),
                        f"the partition lies in {other} too, a directory of the same node",
                        "one directory of a broker",
                        "a restart fails on it: the broker does not start",
                        topic=p.topic,
                        partition=p.partition,
                    )


AUDIT = (OffsetCheck, LeftoverCheck, DirectoryLeftoverCheck, TwiceCheck)
