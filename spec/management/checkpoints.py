"""The small files of a log directory: offset checkpoints, partition.metadata and the clean-shutdown marker.

What their text is and what of it is read; which of them says what about which log, and when; what a start does with
them, and with one that cannot be read. A log is here what the checkpoints tell of it: its offsets.

Source: Kafka Internals, ch. 04, "On-disk: the offset checkpoint file"; CheckpointFile, OffsetCheckpointFile,
LeaderEpochCheckpointFile, PartitionMetadataFile, CleanShutdownFileHandler and LogManager, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Literal

from icontract import ensure, require

from kafkaspec.contract.clauses import ONE_CALL, clause, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.governs import governs, reveals
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import BrokerEpoch, Few, Int64, Offset
from kafkaspec.spec.common.checkpoint_text import (
    ZERO_ID,
    EpochEntry,
    Unreadable,
    announces_few,
    are_partitions,
    canonical,
    checkpoint_entries,
    checkpoint_text,
    epoch_entries,
    is_topic_id,
    marker_epoch,
    metadata_id,
    metadata_text,
    room_is_known,
    text_of,
)
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.kafka import LONG_MAX, STORAGE_EXCEPTION

PREFIX = "CKP"
TITLE = "Checkpoint files"

MANAGER = "LogManager, Kafka 4.3.0"

UNREADABLE = Refused("CKP-3", STORAGE_EXCEPTION)
UNREADABLE_METADATA = Refused("CKP-7", STORAGE_EXCEPTION)

clause(
    "CKP-6",
    """A checkpoint is replaced atomically: after a crash at any moment the file is whole, the old one or the new one,
    and the new one if the write had returned. What a crash leaves of a file NAME.tmp is never read.""",
    source="Kafka Internals, ch. 04, 'On-disk: the offset checkpoint file'; CheckpointFile and "
    "Utils.atomicMoveWithFallback, Kafka 4.3.0",
)
clause(
    "CKP-14",
    """The file cleaner-offset-checkpoint has the first dirty offset of each log that was cleaned, between its log
    start and its end; one that lies outside is replaced by the log start before the next cleaning (CLN-9).""",
    source="Kafka Internals, ch. 04, 'On-disk: the offset checkpoint file'; LogCleanerManager, Kafka 4.3.0",
    without={
        "spec": "the spec of the cleaner has it: CLN-9, CLN-10, CLN-26 to CLN-28",
        "model": "see the spec",
        "proof": "see the spec",
        "mutant": "see the spec",
    },
)

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_POINTS = "cleaner-offset-checkpoint"
CHECKPOINTS = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS)
"""Those that this spec's directory has; the cleaner's is in the cleaner's spec."""


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


@dataclass(frozen=True)
class LogOffsets:
    """A log of a running broker: offsets."""

    start: Annotated[int, governs("CKP-12", "CKP-15")]
    high_watermark: Annotated[int, governs("CKP-13")]
    recovery_point: Annotated[int, governs("CKP-15", "CKP-11")]
    end: Annotated[int, governs("CKP-15", "CKP-11")]


@dataclass(frozen=True)
class Observation:
    """A log directory and its broker."""

    logs: Annotated[Mapping[str, LogOffsets], governs("CKP-15", "CKP-16")]
    """by partition; none while the broker is down"""
    files: Annotated[
        Mapping[str, Mapping[str, int] | Annotated[Literal["unreadable"], governs("CKP-1", "CKP-5")]],
        governs(
            "CKP-6",
            keys={
                "recovery-point-offset-checkpoint": ("CKP-11", "CKP-9", "CKP-16", "CKP-6"),
                "log-start-offset-checkpoint": ("CKP-12", "CKP-9", "CKP-16", "CKP-6"),
                "replication-offset-checkpoint": ("CKP-13", "CKP-16", "CKP-6"),
            },
        ),
    ]
    """checkpoint -> partition -> offset"""
    marker: Annotated[int | None, governs("CKP-10", "CKP-9", "CKP-8")]
    """the broker epoch in the marker of a clean shutdown"""
    running: Annotated[bool, governs("CKP-4")]


def observe(state: Directory) -> Observation:
    logs = state.logs.items() if state.running and state.loaded else ()
    return Observation(
        {p: LogOffsets(log.start, log.high_watermark, log.recovery_point, log.end) for p, log in logs},
        {n: "unreadable" if isinstance(content, Unreadable) else content for n, content in state.files.items()},
        state.marker,
        state.running,
    )


machine: Machine[Directory] = Machine("checkpoints", initial, observe)


def _has_loaded(state: Directory) -> bool:
    return state.running and state.loaded


def _has_the_log(state: Directory, partition: str) -> bool:
    return partition in state.logs


def loaded(id: str) -> require:
    """Of an operation of that clause: the broker runs, and has its logs."""
    return require(_has_loaded, f"{id} the broker has loaded its logs")


def a_log(id: str) -> require:
    """Of an operation of that clause: the log is there."""
    return require(_has_the_log, f"{id} the log is there")


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


# ---- the texts -------------------------------------------------------------------------------------------------------
few_announced = require(lambda file: announces_few(file), "CKP-3 a file announces no more entries than may have room")
known_room = require(lambda file: room_is_known(file), "CKP-3 a file announces what may have room, or never has")


@machine.question("offsetCheckpoint.write", "CKP-1", "CKP-5")
@require(lambda offsets: are_partitions(offsets), "CKP-5 partitions")
@ensure(lambda offsets, result: checkpoint_entries(result) == dict(offsets), "CKP-2 what is written is read back")
def offset_checkpoint_write(offsets: Mapping[str, Int64]) -> str:
    """The text of an offset checkpoint with these entries."""
    return checkpoint_text(offsets)


@machine.question("offsetCheckpoint.read", "CKP-2", "CKP-3", "CKP-5")
@known_room
@ensure(
    lambda result: (
        isinstance(result, Refused)
        or not are_partitions(result)  # of another number's sign a name does not tell: t--1
        or checkpoint_entries(checkpoint_text(result)) == result
    ),
    "CKP-1 what is read can be written, where it is of partitions",
)
def offset_checkpoint_read(file: str) -> dict[str, int] | Refused:
    """The entries of an offset checkpoint with this text."""
    entries = checkpoint_entries(file)
    return UNREADABLE if isinstance(entries, Unreadable) else entries


@machine.question("leaderEpochCheckpoint.read", "CKP-2", "CKP-3")
@known_room
@ensure(
    lambda result: isinstance(result, Refused) or epoch_entries(text_of(result)) == result,
    "CKP-1 what is read can be written",
)
def leader_epoch_checkpoint_read(file: str) -> list[EpochEntry] | Refused:
    """The entries [epoch, start offset] of a leader-epoch-checkpoint with this text: the same layer, two fields."""
    entries = epoch_entries(file)
    return UNREADABLE if isinstance(entries, Unreadable) else entries


@dataclass(frozen=True)
class PartitionMetadata:
    """A partition.metadata."""

    file: Annotated[str, governs("CKP-7")]
    topic_id: Annotated[str, governs("CKP-7")]


@machine.question("partitionMetadata.writeRead", "CKP-7")
@require(
    lambda topic_id: is_topic_id(topic_id) and topic_id == canonical(topic_id) != ZERO_ID,
    "CKP-7 an id as Kafka writes it, and not the zero one",
)
@ensure(lambda topic_id, result: metadata_id(result.file) == topic_id, "CKP-7 what is written is read back")
def partition_metadata_write_read(topic_id: str) -> PartitionMetadata:
    """The text of a partition.metadata, and the id that is read from it."""
    return PartitionMetadata(metadata_text(topic_id), topic_id)


@machine.question("partitionMetadata.read", "CKP-7")
@ensure(
    lambda result: isinstance(result, Refused) or metadata_id(metadata_text(result)) == result,
    "CKP-7 what is read can be written",
)
def partition_metadata_read(file: str) -> str | Refused:
    """The topic's id in a partition.metadata with this text."""
    id = metadata_id(file)
    return UNREADABLE_METADATA if isinstance(id, Unreadable) else id


@machine.question("cleanShutdown.read", "CKP-8")
def clean_shutdown_read(file: str) -> int | None:
    """The broker epoch in a marker with this text."""
    return marker_epoch(file)


# ---- the logs --------------------------------------------------------------------------------------------------------
@machine.environment("createLog")
@loaded("CKP-11")
@require(lambda state, partition: partition not in state.logs, "CKP-11 the log is new")
@require(
    lambda state: not isinstance(state.files[HIGH_WATERMARKS], Unreadable), "CKP-4 its high watermark can be looked up"
)
@ensure(lambda result: sound(result.state.logs[result.result]), "CKP-13 offsets are in order")
def create_log(state: Directory, partition: str) -> Step[Directory, str]:
    """An empty log. Its checkpointed high watermark, left by one of the same name, is not above its end."""
    return Step(replace(state, logs=state.logs.with_(partition, LogView())), partition)


def _changed(state: Directory, partition: str, log: LogView) -> Directory:
    return replace(state, logs=state.logs.with_(partition, log))


@machine.environment("append")
@loaded("CKP-11")
@a_log("CKP-11")
@require(lambda count: 0 <= count <= 100, "CKP-11 at most a hundred records at once")
@require(
    lambda state, partition, count: partition not in state.logs or state.logs[partition].end + count <= LONG_MAX,
    "CKP-13 offsets have 64 bits",
)
@ensure(lambda partition, result: sound(result.logs[partition]), "CKP-13 offsets are in order")
def append(state: Directory, partition: str, count: Few) -> Directory:
    """Records are written and not flushed."""
    log = state.logs[partition]
    return _changed(state, partition, replace(log, end=log.end + count))


@machine.operation("flush", "CKP-11")
@loaded("CKP-11")
@a_log("CKP-11")
@ensure(
    lambda partition, result: (log := result.logs[partition]).recovery_point == log.flushed == log.end and sound(log),
    "CKP-11 the recovery point is what is flushed",
)
def flush(state: Directory, partition: str) -> Directory:
    """The log is flushed to its end."""
    log = state.logs[partition]
    return _changed(state, partition, replace(log, flushed=log.end, recovery_point=log.end))


@machine.operation("advanceHighWatermark", "CKP-13")
@loaded("CKP-13")
@a_log("CKP-13")
@ensure(lambda partition, result: sound(result.logs[partition]), "CKP-13 offsets are in order")
def advance_high_watermark(state: Directory, partition: str, offset: Offset) -> Directory:
    """Up to the log end and never back."""
    log = state.logs[partition]
    mark = max(log.high_watermark, min(offset, log.end))
    return _changed(state, partition, replace(log, high_watermark=mark))


@machine.operation("raiseStart", "CKP-12")
@loaded("CKP-12")
@a_log("CKP-12")
@ensure(lambda partition, result: sound(result.logs[partition]), "CKP-13 offsets are in order")
def raise_start(state: Directory, partition: str, offset: Offset, delete_segments: bool) -> Directory:
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
    return _changed(state, partition, raised)


def _written(state: Directory, name: str, offsets: Mapping[str, int]) -> Directory:
    return replace(state, files=state.files.with_(name, Frozen(offsets)))


@states()
def _with_recovery_points(state: Directory) -> Directory:
    """CKP-11: The file recovery-point-offset-checkpoint has an entry for each log of the directory, and no other: the
    offset below which the log is flushed or given up, which when it is written is not below the log start and not above
    the end. After a clean stop it is the end. [{MANAGER}; Kafka Internals, ch. 03, 'Flush'; KAFKA-10101]"""
    return _written(state, RECOVERY_POINTS, {p: log.recovery_point for p, log in state.logs.items()})


@states(without=ONE_CALL)
def _with_log_starts(state: Directory) -> Directory:
    """CKP-12: The file log-start-offset-checkpoint has an entry for exactly those logs whose log start is above the
    base offset of their first segment: the log start. [{MANAGER}]"""
    return _written(state, LOG_STARTS, {p: log.start for p, log in state.logs.items() if log.start > log.first_base})


@machine.operation("truncate", "CKP-11")
@loaded("CKP-11")
@a_log("CKP-11")
@ensure(lambda partition, result: sound(result.logs[partition]), "CKP-13 offsets are in order")
@ensure(lambda result: recovery_points_hold(result), "CKP-11 not above what is flushed")
@ensure(
    lambda state, partition, offset, result: (
        offset >= state.logs[partition].end
        or result.files[RECOVERY_POINTS].get(partition) == result.logs[partition].recovery_point
    ),
    "CKP-11 a truncation is followed by a checkpoint of the recovery points",
)
def truncate(state: Directory, partition: str, offset: Offset) -> Directory:
    """A follower cuts its log, and the recovery points are checkpointed; nothing if the log ends below `offset`. A log
    that begins above it is then empty, and begins there."""
    log = state.logs[partition]
    if offset >= log.end:
        return state
    cut = LogView(*(min(getattr(log, f.name), offset) for f in fields(log)))
    return _with_recovery_points(_changed(state, partition, cut))


@machine.operation("deleteLog")
@states(without=ONE_CALL)
@loaded("CKP-16")
@a_log("CKP-16")
@ensure(
    lambda partition, result: all(partition not in result.content(name) for name in (RECOVERY_POINTS, LOG_STARTS)),
    "CKP-16 no entry is left in these two",
)
def delete_log(state: Directory, partition: str) -> Directory:
    """The log's directory is renamed, then both checkpoints are written.

    CKP-16: Deleting a log takes its entries out of the recovery-point and log-start checkpoints at once, after its
    directory was renamed. An entry whose partition has no directory is not looked at, and is gone with the next write.
    [{MANAGER}]
    """
    left = replace(state, logs=state.logs.without(partition))
    return _with_log_starts(_with_recovery_points(left))


# ---- the checkpoints -------------------------------------------------------------------------------------------------
@machine.operation("checkpointRecoveryPoints", "CKP-11", "CKP-16")
@loaded("CKP-11")
@ensure(
    lambda result: result.content(RECOVERY_POINTS).keys() == result.logs.keys(),
    "CKP-11 every log, and no other",
)
@ensure(lambda result: recovery_points_hold(result), "CKP-11 not above what is flushed")
def checkpoint_recovery_points(state: Directory) -> Directory:
    """Every minute, and after a truncation."""
    return _with_recovery_points(state)


@machine.operation("checkpointLogStarts", "CKP-12", "CKP-16")
@loaded("CKP-12")
@ensure(
    lambda state, result: all(
        (p in result.content(LOG_STARTS)) == (log.start > log.first_base) for p, log in state.logs.items()
    ),
    "CKP-12 exactly those that begin within a segment",
)
def checkpoint_log_starts(state: Directory) -> Directory:
    """Every minute."""
    return _with_log_starts(state)


@machine.operation("checkpointHighWatermarks")
@states(without=ONE_CALL)
@loaded("CKP-13")
@ensure(
    lambda state, result: all(
        log.start <= result.content(HIGH_WATERMARKS)[p] <= log.end for p, log in state.logs.items()
    ),
    "CKP-13 between log start and log end",
)
def checkpoint_high_watermarks(state: Directory) -> Directory:
    """Every five seconds.

    CKP-13: The file replication-offset-checkpoint has the high watermark of each partition, which lies between log
    start and log end when it is written. A start raises one that is below the log start to it, and lowers one that is
    above the log end to that. [ReplicaManager.checkpointHighWatermarks and UnifiedLog.updateHighWatermark, Kafka 4.3.0]
    """
    return _written(state, HIGH_WATERMARKS, {p: log.high_watermark for p, log in state.logs.items()})


# ---- stop and start --------------------------------------------------------------------------------------------------
@states(without=ONE_CALL)
def stopping(state: Directory) -> list[Unreadable]:
    """Why a start does not succeed: the files that it reads and cannot. High watermarks are read for the first log.

    CKP-4: A checkpoint file that cannot be read is a storage error: its directory is taken out of service, and a broker
    with no other directory stops. [CheckpointFileWithFailureHandler and LogManager.handleLogDirFailure, Kafka 4.3.0;
    Kafka Internals, ch. 04, 'Disk failure']
    """
    read = (state.files[name] for name in CHECKPOINTS if state.logs or name != HIGH_WATERMARKS)
    return [content for content in read if isinstance(content, Unreadable)]


@machine.operation("shutdown", "CKP-9", "CKP-11", "CKP-12")
@reveals("CKP-1", "CKP-6")
@require(lambda state: state.running, "CKP-9 a broker that runs")
@ensure(lambda result: honest(result), "CKP-10 a marker says the truth")
@ensure(
    lambda state, result: (result.marker is not None) == (state.was_clean or state.loaded),
    "CKP-9 a marker if all logs are sound",
)
@ensure(
    lambda state, result: (
        not state.loaded or all(result.content(RECOVERY_POINTS)[p] == log.end for p, log in state.logs.items())
    ),
    "CKP-11 after a clean stop it is the end",
)
@ensure(
    lambda state, result: (
        not state.loaded
        or result.content(LOG_STARTS) == {p: log.start for p, log in state.logs.items() if log.start > log.first_base}
    ),
    "CKP-12 the log starts are written too",
)
def shutdown(state: Directory, broker_epoch: BrokerEpoch) -> Directory:
    """An orderly stop. Of a broker that has not loaded its logs it writes checkpoints without them.

    CKP-9: The marker is written last in a clean stop: after every log of the directory was flushed, and both
    checkpoints were written; and only if there was a marker when the broker started, or all logs were loaded since.
    [{MANAGER}]
    """
    if state.loaded:
        flushed = {p: replace(log, flushed=log.end, recovery_point=log.end) for p, log in state.logs.items()}
        state = replace(state, logs=Frozen(flushed))
        marks = {p: log.high_watermark for p, log in state.logs.items()}
        state = _with_log_starts(_with_recovery_points(_written(state, HIGH_WATERMARKS, marks)))
    else:
        state = _written(_written(state, RECOVERY_POINTS, {}), LOG_STARTS, {})
    marker = broker_epoch if state.was_clean or state.loaded else None
    return replace(state, marker=marker, running=False)


@machine.operation("kill", "CKP-10", "CKP-6", kind="crash")
@require(lambda state: state.running, "CKP-10 a broker that runs")
@ensure(lambda state, result: result.files == state.files, "CKP-6 the files are what they were")
@ensure(lambda result: result.marker is None, "CKP-10 there is no marker")
def kill(state: Directory) -> Directory:
    """The process is gone; what it had written is there."""
    return replace(state, running=False)


@machine.environment("damage", kind="damage")
@require(lambda state: not state.running, "CKP-3 nobody else writes the files of a broker that runs")
@require(lambda state, name: name in state.files, "CKP-3 a checkpoint")
@few_announced
def damage(state: Directory, name: str, file: str) -> Directory:
    """Somebody gives a checkpoint another text."""
    entries = checkpoint_entries(file)
    content: Content = entries if isinstance(entries, Unreadable) else Frozen(entries)
    return replace(state, files=state.files.with_(name, content))


@dataclass(frozen=True)
class LastStop:
    """What a broker that comes up makes of its directory."""

    clean: Annotated[bool, governs("CKP-10", "CKP-8", "CKP-9")]
    """the last stop was orderly"""
    halted: Annotated[bool, governs("CKP-4", "CKP-3")]
    """a checkpoint could not be read, and the broker stops"""


@machine.operation("start", "CKP-10", "CKP-15", "CKP-3", "CKP-4", "CKP-13", "CKP-16", kind="restart")
@require(lambda state: not state.running, "CKP-10 a broker that is stopped")
@require(
    lambda state, crash_while_loading: not crash_while_loading or (bool(state.logs) and not stopping(state)),
    "CKP-10 it can only crash while it loads a log",
)
@ensure(lambda result: result.state.marker is None, "CKP-10 the marker is gone before a log is read")
@ensure(lambda state, result: result.state.files == state.files, "CKP-4 an unreadable file stays as it is")
@ensure(lambda result: all(sound(log) for log in result.state.logs.values()), "CKP-13 offsets are in order")
@ensure(lambda state, result: result.state.running != bool(stopping(state)), "CKP-4 a broker with one directory stops")
def start(state: Directory, crash_while_loading: bool) -> Step[Directory, LastStop]:
    """The broker comes up, or crashes when it has deleted the marker and loaded nothing yet. The answer: what it knew
    of the last stop.

    CKP-10: A start deletes the marker before it reads a log, and what it said counts for this start alone. So where a
    marker is, no log of the directory was written since the clean stop that made it. [{MANAGER}; KAFKA-10471]
    """
    clean = state.marker is not None
    gone = replace(state, marker=None, was_clean=clean, loaded=False)
    if crash_while_loading:
        return Step(replace(gone, running=True), LastStop(clean, halted=False))
    points, starts, marks = (state.content(name) for name in CHECKPOINTS)
    logs = {
        p: _loaded(log, clean, points.get(p, 0), starts.get(p, 0), marks.get(p, 0)) for p, log in state.logs.items()
    }
    halted = bool(stopping(state))
    after = replace(gone, logs=Frozen(logs), running=not halted, loaded=not halted)
    return Step(after, LastStop(clean, halted))


@states("CKP-13", "CKP-15")
def _loaded(log: LogView, clean: bool, point: int, start: int, mark: int) -> LogView:
    """A log after a start, by three checkpoints. One that ends below its log start is emptied and begins there.

    CKP-15: At a start a log without an entry has recovery point 0 and begins at its first segment; so have all logs if
    the file cannot be read. With a marker the recovery point becomes the log end, without one it is lowered to the end
    where it is above, and raised to the log start where it is below. [{MANAGER}; LogLoader, Kafka 4.3.0; KAFKA-10101]
    """
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
