"""The small files of a log directory: offset checkpoints, partition.metadata and the clean-shutdown marker.

What their text is and what of it is read; which of them says what about which log, and when; what a start does with
them, and with one that cannot be read. A log is here what the checkpoints tell of it: its offsets.

Source: Kafka Internals, ch. 04, "On-disk: the offset checkpoint file"; CheckpointFile, OffsetCheckpointFile,
LeaderEpochCheckpointFile, PartitionMetadataFile, CleanShutdownFileHandler and LogManager, Kafka 4.3.0.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, TypedDict

import icontract

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.kafka import INT_MAX, LONG_MAX, STORAGE_EXCEPTION

PREFIX = "CKP"
TITLE = "Checkpoint files"

CHAPTER = "Kafka Internals, ch. 04, 'On-disk: the offset checkpoint file'"
MANAGER = "LogManager, Kafka 4.3.0"

A_TEXT = {
    "model": "a matter of text, not of interleavings",
    "proof": "a matter of text: tested on every malformed kind, and judged on recordings",
}
ONE_AT_A_TIME = {
    "model": "which log stands in which file is looked up in one step: nothing here depends on who acts meanwhile",
    "proof": "see the model",
}

CKP_1 = clause(
    "CKP-1",
    """A checkpoint file is UTF-8 text: a line with a version, a line with the number of entries, and a line for each
    entry, its fields separated by a blank, every line ended by a newline.""",
    source=f"{CHAPTER}; CheckpointFile, Kafka 4.3.0",
    without=A_TEXT,
)
CKP_2 = clause(
    "CKP-2",
    """Reading a checkpoint file gives its entries in their order; nothing if it has no second line. Any line end will
    do, and none after the last line; fields may be any blanks apart, and blanks may follow the last, but not come
    before the first; a number may have a sign.""",
    source="CheckpointFile, OffsetCheckpointFile and LeaderEpochCheckpointFile, Kafka 4.3.0",
    without=A_TEXT,
)
CKP_3 = clause(
    "CKP-3",
    """Any other version, a line that is no number or no entry, or a number of entries that is not the one announced
    makes the file unreadable.""",
    source="CheckpointFile, Kafka 4.3.0",
    without=A_TEXT,
)
CKP_4 = clause(
    "CKP-4",
    """A checkpoint file that cannot be read is a storage error: its directory is taken out of service, and a broker
    with no other directory stops.""",
    source="CheckpointFileWithFailureHandler and LogManager.handleLogDirFailure, Kafka 4.3.0; Kafka Internals, ch. 04, "
    "'Disk failure'",
    without=ONE_AT_A_TIME,
)
CKP_5 = clause(
    "CKP-5",
    """An offset checkpoint has version 0 and entries `topic partition offset`, in any order; a partition stands in it
    once, and where it stands twice the last one counts.""",
    source=f"{CHAPTER}; OffsetCheckpointFile, Kafka 4.3.0",
    without=A_TEXT,
)
CKP_6 = clause(
    "CKP-6",
    """A checkpoint is replaced atomically: after a crash at any moment the file is whole, the old one or the new one,
    and the new one if the write had returned. What a crash leaves of a file NAME.tmp is never read.""",
    source=f"{CHAPTER}; CheckpointFile and Utils.atomicMoveWithFallback, Kafka 4.3.0",
)
CKP_7 = clause(
    "CKP-7",
    """The file partition.metadata is a line `version: 0` and a line `topic_id: ` with the topic's id, 16 bytes in URL-
    safe base64, without a newline at its end. A version of 0 or more is read; a file without these two lines,
    or with the id that is all zero, is a storage error.""",
    source="PartitionMetadataFile and PartitionMetadataReadBuffer, Kafka 4.3.0; KIP-516",
    without=A_TEXT,
)
CKP_8 = clause(
    "CKP-8",
    """The file .kafka_cleanshutdown is a JSON object with version 0 and the broker epoch. That the file is there says
    that the stop was clean, whatever is in it; the broker epoch is known if the file begins with such an
    object.""",
    source="CleanShutdownFileHandler, Kafka 4.3.0; KIP-966",
    without=A_TEXT,
)
CKP_9 = clause(
    "CKP-9",
    """The marker is written last in a clean stop: after every log of the directory was flushed, and both checkpoints
    were written; and only if there was a marker when the broker started, or all logs were loaded since.""",
    source=MANAGER,
)
CKP_10 = clause(
    "CKP-10",
    """A start deletes the marker before it reads a log, and what it said counts for this start alone. So where a marker
    is, no log of the directory was written since the clean stop that made it.""",
    source=f"{MANAGER}; KAFKA-10471",
)
CKP_11 = clause(
    "CKP-11",
    """The file recovery-point-offset-checkpoint has an entry for each log of the directory, and no other: the offset
    below which the log is flushed or given up, which when it is written is not below the log start and not above the
    end. After a clean stop it is the end.""",
    source=f"{MANAGER}; Kafka Internals, ch. 03, 'Flush'; KAFKA-10101",
)
CKP_12 = clause(
    "CKP-12",
    """The file log-start-offset-checkpoint has an entry for just those logs whose log start is above the base offset
    of their first segment: the log start.""",
    source=MANAGER,
    without=ONE_AT_A_TIME,
)
CKP_13 = clause(
    "CKP-13",
    """The file replication-offset-checkpoint has the high watermark of each partition, which lies between log start
    and log end when it is written. A start raises one that is below the log start to it, and lowers one that is
    above the log end to that.""",
    source="ReplicaManager.checkpointHighWatermarks and UnifiedLog.updateHighWatermark, Kafka 4.3.0",
    without=ONE_AT_A_TIME,
)
CKP_14 = clause(
    "CKP-14",
    """The file cleaner-offset-checkpoint has the first dirty offset of each log that was cleaned, between its log
    start and its end; one that lies outside is replaced by the log start before the next cleaning (CLN-9).""",
    source=f"{CHAPTER}; LogCleanerManager, Kafka 4.3.0",
    without={
        "spec": "the spec of the cleaner has it: CLN-9, CLN-10, CLN-26 to CLN-28",
        "model": "see the spec",
        "proof": "see the spec",
        "mutant": "see the spec",
    },
)
CKP_15 = clause(
    "CKP-15",
    """At a start a log without an entry has recovery point 0 and begins at its first segment; so have all logs if the
    file cannot be read. With a marker the recovery point becomes the log end, without one it is lowered to the end
    where it is above, and raised to the log start where it is below.""",
    source=f"{MANAGER}; LogLoader, Kafka 4.3.0; KAFKA-10101",
)
CKP_16 = clause(
    "CKP-16",
    """Deleting a log takes its entries out of the recovery-point and log-start checkpoints at once, after its directory
    was renamed. An entry whose partition has no directory is not looked at, and is gone with the next write.""",
    source=MANAGER,
    without=ONE_AT_A_TIME,
)

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_POINTS = "cleaner-offset-checkpoint"
CHECKPOINTS = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS)
"""Those that this spec's directory has; the cleaner's is in the cleaner's spec."""


# ---- the text --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Unreadable:
    """Why a file cannot be read."""

    reason: Literal["version", "line", "count", "negative count", "number"]
    text: str = ""
    """the piece of text that is to blame"""
    line: int = 1
    """where it stands, from 1"""


def lines_of(text: str) -> list[str]:
    """The lines, whatever ends them; an empty last one is none."""
    lines = re.split(r"\r\n|\r|\n", text)
    return lines if lines[-1] else lines[:-1]


def integer(text: str, largest: int) -> int | None:
    """A whole number as Java reads it; None if it is none or does not fit."""
    if not re.fullmatch(r"[+-]?\d+", text):
        return None
    value = int(text)
    return value if -largest - 1 <= value <= largest else None


@states("CKP-2", "CKP-3")
def read_entries(text: str, numbers: Sequence[tuple[int, int]], fields: int) -> list[list[str]] | Unreadable:
    """The entries of a checkpoint file of version 0, each so many fields. `numbers` says which fields
    are numbers, and the largest of each."""
    lines = lines_of(text)
    if not lines:
        return []
    version = integer(lines[0], INT_MAX)
    if version is None:
        return Unreadable("line", lines[0], 1)
    if version != 0:
        return Unreadable("version", lines[0], 1)
    if len(lines) == 1:
        return []
    count = integer(lines[1], INT_MAX)
    if count is None:
        return Unreadable("line", lines[1], 2)
    if count < 0:
        return Unreadable("negative count", lines[1], 2)
    entries = []
    for at, line in enumerate(lines[2:], 3):
        parts = re.split(r"\s+", line, flags=re.ASCII)
        while parts and parts[-1] == "":
            parts.pop()
        if len(parts) != fields:
            return Unreadable("line", line, at)
        for field, largest in numbers:
            if integer(parts[field], largest) is None:
                return Unreadable("number", parts[field], at)
        entries.append(parts)
    return entries if len(entries) == count else Unreadable("count", lines[1], 2)


@states("CKP-1")
def text_of(entries: Sequence[Sequence[object]]) -> str:
    """A checkpoint file of version 0 with these entries."""
    lines = ["0", str(len(entries)), *(" ".join(map(str, entry)) for entry in entries)]
    return "".join(line + "\n" for line in lines)


def topic_and_partition(name: str) -> tuple[str, str]:
    topic, _, number = name.rpartition("-")
    return topic, number


@states("CKP-5")
def checkpoint_text(offsets: Mapping[str, int]) -> str:
    """An offset checkpoint, the entries in the order given."""
    return text_of([(*topic_and_partition(p), offset) for p, offset in offsets.items()])


@states("CKP-5")
def checkpoint_entries(text: str) -> dict[str, int] | Unreadable:
    """The offsets of an offset checkpoint, by partition."""
    entries = read_entries(text, ((1, INT_MAX), (2, LONG_MAX)), fields=3)
    if isinstance(entries, Unreadable):
        return entries
    return {f"{topic}-{int(number)}": int(offset) for topic, number, offset in entries}


def epoch_entries(text: str) -> list[list[int]] | Unreadable:
    """The entries `epoch offset` of a leader-epoch-checkpoint."""
    entries = read_entries(text, ((0, INT_MAX), (1, LONG_MAX)), fields=2)
    return entries if isinstance(entries, Unreadable) else [[int(n) for n in entry] for entry in entries]


ZERO_ID = "A" * 22


@states("CKP-7")
def metadata_text(topic_id: str) -> str:
    """A partition.metadata."""
    return f"version: 0\ntopic_id: {topic_id}"


def is_topic_id(text: str) -> bool:
    """Whether it is the URL-safe base64 of 16 bytes, with or without its padding."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{22}(==)?", text):
        return False
    try:
        return len(base64.urlsafe_b64decode(text[:22] + "==")) == 16
    except binascii.Error:
        return False


def canonical(topic_id: str) -> str:
    """The same id in 22 characters, the last of which has nothing in the four bits that it has over."""
    return base64.urlsafe_b64encode(base64.urlsafe_b64decode(topic_id[:22] + "==")).decode()[:22]


@states("CKP-7")
def metadata_id(text: str) -> str | Unreadable:
    """The topic's id of a partition.metadata."""
    lines = lines_of(text)
    fields = [
        re.split(r":\s+", re.sub(r"(:\s+)+$", "", line, flags=re.ASCII), flags=re.ASCII)
        for line in (lines + ["", ""])[:2]
    ]
    if len(fields[0]) != 2:
        return Unreadable("line", lines[0] if lines else "", 1)
    version = integer(fields[0][1], INT_MAX)
    if version is None:
        return Unreadable("line", lines[0], 1)
    if version < 0:
        return Unreadable("version", lines[0], 1)
    if len(fields[1]) != 2:
        return Unreadable("line", lines[1] if len(lines) > 1 else "", 2)
    if not is_topic_id(fields[1][1]):
        return Unreadable("number", fields[1][1], 2)
    id = canonical(fields[1][1])
    return Unreadable("line", lines[1], 2) if id == ZERO_ID else id


@states("CKP-8")
def marker_epoch(text: str) -> int | None:
    """The broker epoch of a marker; None if it tells none."""
    try:
        # what Python reads as a constant, such as NaN, is not JSON's: no whole number, so that this fails
        content, _ = json.JSONDecoder(parse_constant=int).raw_decode(text.lstrip(" \t\r\n"))
    except ValueError:
        return None
    if not isinstance(content, dict) or _whole(content.get("version", 0), INT_MAX) is None:
        return None
    return _whole(content.get("brokerEpoch"), LONG_MAX)


def _whole(value: object, largest: int) -> int | None:
    """A JSON value as Kafka's reader makes a whole number of it: a fraction is cut off, and text may hold one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        value = int(value) if math.isfinite(value) else None
    if isinstance(value, str):
        value = integer(value.strip(), largest)
    return value if isinstance(value, int) and -largest - 1 <= value <= largest else None


# ---- one directory, and the broker that uses it ----------------------------------------------------------------------
@dataclass(frozen=True)
class LogView:
    """What the checkpoints tell of a log. On disk are `first_base`, the base offset of its first segment, `flushed`, up
    to where a loss of power does no harm, and `end`; the others are the broker's."""

    first_base: int = 0
    start: int = 0
    high_watermark: int = 0
    flushed: int = 0
    recovery_point: int = 0
    end: int = 0


Content = Frozen[str, int] | Unreadable


@dataclass(frozen=True)
class Directory:
    """A log directory and its broker. `marker` is the broker epoch in the marker, None if there is none."""

    logs: Frozen[str, LogView]
    files: Frozen[str, Content]
    marker: int | None = None
    running: bool = True
    was_clean: bool = False
    """there was a marker when the broker last started"""
    loaded: bool = True
    """all logs were loaded since"""

    def content(self, name: str) -> Frozen[str, int]:
        """What a checkpoint says; nothing if it cannot be read."""
        content = self.files[name]
        return Frozen() if isinstance(content, Unreadable) else content


def initial() -> Directory:
    """A new directory, its broker running."""
    return Directory(Frozen(), Frozen({name: Frozen[str, int]() for name in CHECKPOINTS}))


class ShownLog(TypedDict):
    """A log of a running broker: offsets."""

    start: int
    highWatermark: int
    recoveryPoint: int
    end: int


class Observation(TypedDict):
    """A log directory and its broker."""

    logs: dict[str, ShownLog]
    """by partition; none while the broker is down"""
    files: dict[str, dict[str, int] | Literal["unreadable"]]
    """checkpoint -> partition -> offset"""
    marker: int | None
    """the broker epoch in the marker of a clean shutdown"""
    running: bool


def observe(state: Directory) -> Observation:
    return {
        "logs": {
            p: {
                "start": log.start,
                "highWatermark": log.high_watermark,
                "recoveryPoint": log.recovery_point,
                "end": log.end,
            }
            for p, log in state.logs.items()
            if state.running and state.loaded
        },
        "files": {
            name: "unreadable" if isinstance(content, Unreadable) else dict(content)
            for name, content in state.files.items()
        },
        "marker": state.marker,
        "running": state.running,
    }


machine: Machine[Directory] = Machine("checkpoints", initial, observe)


def _has_loaded(state: Directory) -> bool:
    return state.running and state.loaded


def _has_the_log(state: Directory, partition: str) -> bool:
    return partition in state.logs


def loaded(clause: str) -> icontract.require:
    """Of an operation of that clause: the broker runs, and has its logs."""
    return icontract.require(_has_loaded, f"{clause} the broker has loaded its logs")


def a_log(clause: str) -> icontract.require:
    """Of an operation of that clause: the log is there."""
    return icontract.require(_has_the_log, f"{clause} the log is there")


def sound(log: LogView) -> bool:
    """The offsets of a log in their order."""
    return (
        0 <= log.first_base <= log.start <= log.high_watermark <= log.end <= LONG_MAX
        and log.start <= log.recovery_point <= log.flushed <= log.end
    )


@states("CKP-10")
def honest(state: Directory) -> bool:
    """Whether, where a marker is, every log is flushed to its end."""
    return state.marker is None or all(log.flushed == log.end for log in state.logs.values())


@states("CKP-11")
def recovery_points_hold(state: Directory) -> bool:
    """Whether what is below a log's checkpointed recovery point is flushed, or the point is above the log's end."""
    points = state.content(RECOVERY_POINTS)
    return all(points.get(p, 0) <= log.flushed or points[p] > log.end for p, log in state.logs.items())


# ---- the text's operations
def are_partitions(offsets: Mapping[str, int]) -> bool:
    """Whether the keys are names of partitions, and the offsets 64 bits wide."""
    return all(
        re.fullmatch(r"\S+-(0|[1-9]\d{0,8})", name, re.ASCII) and -(1 << 63) <= offset < 1 << 63
        for name, offset in offsets.items()
    )


@machine.operation("offsetCheckpoint.write", "CKP-1", "CKP-5")
@icontract.require(lambda offsets: are_partitions(offsets), "CKP-5 partitions")
@icontract.ensure(
    lambda offsets, result: checkpoint_entries(result.result) == dict(offsets), "CKP-2 what is written is read back"
)
def offset_checkpoint_write(state: Directory, offsets: Mapping[str, int]) -> Step[Directory, str]:
    """The text of an offset checkpoint with these entries."""
    return Step(state, checkpoint_text(offsets))


@machine.operation("offsetCheckpoint.read", "CKP-2", "CKP-3", "CKP-5")
@icontract.ensure(
    lambda result: (
        isinstance(result.result, Refused) or checkpoint_entries(checkpoint_text(result.result)) == result.result
    ),
    "CKP-1 what is read can be written",
)
def offset_checkpoint_read(state: Directory, file: str) -> Step[Directory, dict[str, int]]:
    """The entries of an offset checkpoint with this text."""
    entries = checkpoint_entries(file)
    return Step(state, Refused("CKP-3", STORAGE_EXCEPTION) if isinstance(entries, Unreadable) else entries)


@machine.operation("leaderEpochCheckpoint.read", "CKP-2", "CKP-3")
@icontract.ensure(
    lambda result: (
        isinstance(result.result, Refused) or epoch_entries(text_of(result.result)) == [list(e) for e in result.result]
    ),
    "CKP-1 what is read can be written",
)
def leader_epoch_checkpoint_read(state: Directory, file: str) -> Step[Directory, list[list[int]]]:
    """The entries [epoch, start offset] of a leader-epoch-checkpoint with this text: the same layer, two fields."""
    entries = epoch_entries(file)
    return Step(state, Refused("CKP-3", STORAGE_EXCEPTION) if isinstance(entries, Unreadable) else entries)


class WrittenMetadata(TypedDict):
    """A partition.metadata."""

    file: str
    topicId: str


@machine.operation("partitionMetadata.writeRead", "CKP-7")
@icontract.require(lambda topic_id: is_topic_id(topic_id) and topic_id != ZERO_ID, "CKP-7 an id, and not the zero one")
@icontract.ensure(
    lambda topic_id, result: metadata_id(result.result["file"]) == topic_id, "CKP-7 what is written is read back"
)
def partition_metadata_write_read(state: Directory, topic_id: str) -> Step[Directory, WrittenMetadata]:
    """The text of a partition.metadata, and the id that is read from it."""
    return Step(state, {"file": metadata_text(topic_id), "topicId": topic_id})


@machine.operation("partitionMetadata.read", "CKP-7")
@icontract.ensure(
    lambda result: isinstance(result.result, Refused) or metadata_id(metadata_text(result.result)) == result.result,
    "CKP-7 what is read can be written",
)
def partition_metadata_read(state: Directory, file: str) -> Step[Directory, str]:
    """The topic's id in a partition.metadata with this text."""
    found = metadata_id(file)
    return Step(state, Refused("CKP-7", STORAGE_EXCEPTION) if isinstance(found, Unreadable) else found)


@machine.operation("cleanShutdown.read", "CKP-8")
def clean_shutdown_read(state: Directory, file: str) -> Step[Directory, int | None]:
    """The broker epoch in a marker with this text."""
    return Step(state, marker_epoch(file))


# ---- the logs' operations
@machine.operation("createLog", "CKP-11")
@loaded("CKP-11")
@icontract.require(lambda state, partition: partition not in state.logs, "CKP-11 the log is new")
@icontract.require(
    lambda state: not isinstance(state.files[HIGH_WATERMARKS], Unreadable), "CKP-4 its high watermark can be looked up"
)
@icontract.ensure(lambda result: sound(result.state.logs[result.result]), "CKP-13 offsets are in order")
def create_log(state: Directory, partition: str) -> Step[Directory, str]:
    """An empty log. Its checkpointed high watermark, left by one of the same name, is not above its end."""
    return Step(replace(state, logs=state.logs.with_(partition, LogView())), partition)


def _changed(state: Directory, partition: str, log: LogView) -> Directory:
    return replace(state, logs=state.logs.with_(partition, log))


@machine.operation("append", "CKP-11")
@loaded("CKP-11")
@a_log("CKP-11")
@icontract.require(lambda count: 0 <= count <= 1000, "CKP-11 at most a thousand records at once")
@icontract.ensure(lambda partition, result: sound(result.state.logs[partition]), "CKP-13 offsets are in order")
def append(state: Directory, partition: str, count: int) -> Step[Directory, None]:
    """Records are written and not flushed."""
    log = state.logs[partition]
    return Step(_changed(state, partition, replace(log, end=log.end + count)))


@machine.operation("flush", "CKP-11")
@loaded("CKP-11")
@a_log("CKP-11")
@icontract.ensure(
    lambda partition, result: (
        (log := result.state.logs[partition]).recovery_point == log.flushed == log.end and sound(log)
    ),
    "CKP-11 the recovery point is what is flushed",
)
def flush(state: Directory, partition: str) -> Step[Directory, None]:
    """The log is flushed to its end."""
    log = state.logs[partition]
    return Step(_changed(state, partition, replace(log, flushed=log.end, recovery_point=log.end)))


@machine.operation("advanceHighWatermark", "CKP-13")
@loaded("CKP-13")
@a_log("CKP-13")
@icontract.ensure(lambda partition, result: sound(result.state.logs[partition]), "CKP-13 offsets are in order")
def advance_high_watermark(state: Directory, partition: str, offset: int) -> Step[Directory, None]:
    """Up to the log end and never back."""
    log = state.logs[partition]
    mark = max(log.high_watermark, min(offset, log.end))
    return Step(_changed(state, partition, replace(log, high_watermark=mark)))


@machine.operation("raiseStart", "CKP-12")
@loaded("CKP-12")
@a_log("CKP-12")
@icontract.ensure(lambda partition, result: sound(result.state.logs[partition]), "CKP-13 offsets are in order")
def raise_start(state: Directory, partition: str, offset: int, delete_segments: bool) -> Step[Directory, None]:
    """Records below `offset` are given up, not above the high watermark; with `delete_segments` no segment is left
    below it."""
    log = state.logs[partition]
    start = max(log.start, min(offset, log.high_watermark))
    raised = replace(
        log,
        start=start,
        first_base=start if delete_segments else log.first_base,
        flushed=max(log.flushed, start),
        recovery_point=max(log.recovery_point, start),
    )
    return Step(_changed(state, partition, raised))


def _written(state: Directory, name: str, offsets: Mapping[str, int]) -> Directory:
    return replace(state, files=state.files.with_(name, Frozen(offsets)))


@states("CKP-11")
def _with_recovery_points(state: Directory) -> Directory:
    return _written(state, RECOVERY_POINTS, {p: log.recovery_point for p, log in state.logs.items()})


@states("CKP-12")
def _with_log_starts(state: Directory) -> Directory:
    return _written(state, LOG_STARTS, {p: log.start for p, log in state.logs.items() if log.start > log.first_base})


@machine.operation("truncate", "CKP-11")
@loaded("CKP-11")
@a_log("CKP-11")
@icontract.ensure(lambda partition, result: sound(result.state.logs[partition]), "CKP-13 offsets are in order")
@icontract.ensure(lambda result: recovery_points_hold(result.state), "CKP-11 not above what is flushed")
@icontract.ensure(
    lambda state, partition, offset, result: (
        offset >= state.logs[partition].end
        or result.state.files[RECOVERY_POINTS].get(partition) == result.state.logs[partition].recovery_point
    ),
    "CKP-11 a truncation is followed by a checkpoint of the recovery points",
)
def truncate(state: Directory, partition: str, offset: int) -> Step[Directory, None]:
    """A follower cuts its log, and the recovery points are checkpointed; nothing if the log ends below `offset`. A log
    that begins above it is then empty, and begins there."""
    log = state.logs[partition]
    if offset >= log.end:
        return Step(state)
    cut = LogView(*(min(getattr(log, f.name), offset) for f in fields(log)))
    return Step(_with_recovery_points(_changed(state, partition, cut)))


@machine.operation("deleteLog", "CKP-16")
@loaded("CKP-16")
@a_log("CKP-16")
@icontract.ensure(
    lambda partition, result: all(
        partition not in result.state.content(name) for name in (RECOVERY_POINTS, LOG_STARTS)
    ),
    "CKP-16 no entry is left in these two",
)
def delete_log(state: Directory, partition: str) -> Step[Directory, None]:
    """The log's directory is renamed, then both checkpoints are written."""
    left = replace(state, logs=state.logs.without(partition))
    return Step(_with_log_starts(_with_recovery_points(left)))


# ---- the checkpoints' operations
@machine.operation("checkpointRecoveryPoints", "CKP-11")
@loaded("CKP-11")
@icontract.ensure(
    lambda result: result.state.content(RECOVERY_POINTS).keys() == result.state.logs.keys(),
    "CKP-11 every log, and no other",
)
@icontract.ensure(lambda result: recovery_points_hold(result.state), "CKP-11 not above what is flushed")
def checkpoint_recovery_points(state: Directory) -> Step[Directory, None]:
    """Every minute, and after a truncation."""
    return Step(_with_recovery_points(state))


@machine.operation("checkpointLogStarts", "CKP-12")
@loaded("CKP-12")
@icontract.ensure(
    lambda state, result: all(
        (p in result.state.content(LOG_STARTS)) == (log.start > log.first_base) for p, log in state.logs.items()
    ),
    "CKP-12 just those that begin within a segment",
)
def checkpoint_log_starts(state: Directory) -> Step[Directory, None]:
    """Every minute."""
    return Step(_with_log_starts(state))


@machine.operation("checkpointHighWatermarks", "CKP-13")
@loaded("CKP-13")
@icontract.ensure(
    lambda state, result: all(
        log.start <= result.state.content(HIGH_WATERMARKS)[p] <= log.end for p, log in state.logs.items()
    ),
    "CKP-13 between log start and log end",
)
def checkpoint_high_watermarks(state: Directory) -> Step[Directory, None]:
    """Every five seconds."""
    return Step(_written(state, HIGH_WATERMARKS, {p: log.high_watermark for p, log in state.logs.items()}))


# ---- stop and start
@states("CKP-4")
def stopping(state: Directory) -> list[Unreadable]:
    """Why a start does not succeed: the files that it reads and cannot. High watermarks are read for the first log."""
    read = (state.files[name] for name in CHECKPOINTS if state.logs or name != HIGH_WATERMARKS)
    return [content for content in read if isinstance(content, Unreadable)]


@machine.operation("shutdown", "CKP-9", "CKP-11", "CKP-12")
@icontract.require(lambda state: state.running, "CKP-9 a broker that runs")
@icontract.ensure(lambda result: honest(result.state), "CKP-10 a marker says the truth")
@icontract.ensure(
    lambda state, result: (result.state.marker is not None) == (state.was_clean or state.loaded),
    "CKP-9 a marker if all logs are sound",
)
@icontract.ensure(
    lambda state, result: (
        not state.loaded or all(result.state.content(RECOVERY_POINTS)[p] == log.end for p, log in state.logs.items())
    ),
    "CKP-11 after a clean stop it is the end",
)
@icontract.ensure(
    lambda state, result: (
        not state.loaded
        or result.state.content(LOG_STARTS)
        == {p: log.start for p, log in state.logs.items() if log.start > log.first_base}
    ),
    "CKP-12 the log starts are written too",
)
def shutdown(state: Directory, broker_epoch: int) -> Step[Directory, None]:
    """An orderly stop. Of a broker that has not loaded its logs it writes checkpoints without them."""
    if state.loaded:
        flushed = {p: replace(log, flushed=log.end, recovery_point=log.end) for p, log in state.logs.items()}
        state = replace(state, logs=Frozen(flushed))
        marks = {p: log.high_watermark for p, log in state.logs.items()}
        state = _with_log_starts(_with_recovery_points(_written(state, HIGH_WATERMARKS, marks)))
    else:
        state = _written(_written(state, RECOVERY_POINTS, {}), LOG_STARTS, {})
    marker = broker_epoch if state.was_clean or state.loaded else None
    return Step(replace(state, marker=marker, running=False))


@machine.operation("kill", "CKP-10", "CKP-6", kind="crash")
@icontract.require(lambda state: state.running, "CKP-10 a broker that runs")
@icontract.ensure(lambda state, result: result.state.files == state.files, "CKP-6 the files are what they were")
@icontract.ensure(lambda result: result.state.marker is None, "CKP-10 there is no marker")
def kill(state: Directory) -> Step[Directory, None]:
    """The process is gone; what it had written is there."""
    return Step(replace(state, running=False))


@machine.operation("damage", "CKP-3", "CKP-16", kind="damage")
@icontract.require(lambda state: not state.running, "CKP-3 nobody else writes the files of a broker that runs")
@icontract.require(lambda state, name: name in state.files, "CKP-3 a checkpoint")
def damage(state: Directory, name: str, file: str) -> Step[Directory, None]:
    """Somebody gives a checkpoint another text."""
    entries = checkpoint_entries(file)
    content: Content = entries if isinstance(entries, Unreadable) else Frozen(entries)
    return Step(replace(state, files=state.files.with_(name, content)))


class LastStop(TypedDict):
    """What a broker that comes up makes of its directory."""

    clean: bool
    """the last stop was orderly"""
    halted: bool
    """a checkpoint could not be read, and the broker stops"""


@machine.operation("start", "CKP-10", "CKP-15", "CKP-4", "CKP-13", kind="restart")
@icontract.require(lambda state: not state.running, "CKP-10 a broker that is stopped")
@icontract.require(
    lambda state, crash_while_loading: not crash_while_loading or (bool(state.logs) and not stopping(state)),
    "CKP-10 it can only crash while it loads a log",
)
@icontract.ensure(lambda result: result.state.marker is None, "CKP-10 the marker is gone before a log is read")
@icontract.ensure(lambda state, result: result.state.files == state.files, "CKP-4 an unreadable file stays as it is")
@icontract.ensure(lambda result: all(sound(log) for log in result.state.logs.values()), "CKP-13 offsets are in order")
@icontract.ensure(
    lambda state, result: result.state.running != bool(stopping(state)), "CKP-4 a broker with one directory stops"
)
def start(state: Directory, crash_while_loading: bool) -> Step[Directory, LastStop]:
    """The broker comes up, or crashes when it has deleted the marker and loaded nothing yet. The answer: what it knew
    of the last stop."""
    clean = state.marker is not None
    gone = replace(state, marker=None, was_clean=clean, loaded=False)
    if crash_while_loading:
        return Step(replace(gone, running=True), {"clean": clean, "halted": False})
    points, starts, marks = (state.content(name) for name in CHECKPOINTS)
    logs = {
        p: _loaded(log, clean, points.get(p, 0), starts.get(p, 0), marks.get(p, 0)) for p, log in state.logs.items()
    }
    halted = bool(stopping(state))
    after = replace(gone, logs=Frozen(logs), running=not halted, loaded=not halted)
    return Step(after, {"clean": clean, "halted": halted})


@states("CKP-15", "CKP-13")
def _loaded(log: LogView, clean: bool, point: int, start: int, mark: int) -> LogView:
    """A log after a start, by three checkpoints. One that ends below its log start is emptied and begins there."""
    if log.end < start:
        log = replace(log, first_base=start, end=start, flushed=start)
    first = max(start, log.first_base)
    recovered = log.end if clean else max(first, min(point, log.end))
    return replace(
        log,
        start=first,
        recovery_point=recovered,
        flushed=max(log.flushed, recovered),
        high_watermark=max(first, min(mark, log.end)),
    )
