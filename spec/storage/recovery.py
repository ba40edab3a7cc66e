"""A log after any crash: which records a start still has when the process was killed, or the power failed.

One log directory with one partition, and the broker that comes and goes. What a write reaches is a disk that forgets
(`crashing_disk`); what a load makes of the files is the log loader's (LDR); what a log does is the log's (LOG). Here is
what stands above them: in which order the broker flushes, checkpoints, marks, and starts, and which prefix of the log
therefore survives. Batches have no producers here: of a producer snapshot it matters whether it can be read.

Source: Kafka Internals, ch. 03, "Crash recovery & startup: LogLoader" and "Offset boundaries", and ch. 04, "Startup
recovery"; the design notes ("Implementation", 'Log'); LogLoader, UnifiedLog, LocalLog and LogManager, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from icontract import ensure, require

from kafkaspec.contract.clauses import clause, not_modelled, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import Machine, Step
from kafkaspec.contract.numbers import Few, LeaderEpoch, Offset
from kafkaspec.spec.common.kafka import LONG_MAX
from kafkaspec.spec.management import checkpoints
from kafkaspec.spec.storage import log_loader
from kafkaspec.spec.storage.leader_epochs import Entry, assigned, cut_from_end, cut_from_start
from kafkaspec.spec.storage.log import ABOVE_HIGH_WATERMARK
from kafkaspec.spec.storage.log_loader import (
    DELETED,
    EPOCHS,
    INDEX,
    LOG,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    Batch,
    Content,
    EpochEntry,
    LogFile,
    Snapshots,
    log_of,
    name_of,
    sensible,
)
from kafkaspec.spec.storage.log_parts import contents
from kafkaspec.spec.storage.recovery_parts.broker import (
    Broker,
    RunningLog,
    bases_of,
    batches_of,
    flushed_batches,
    observe,
    offsets_of,
)
from kafkaspec.spec.storage.recovery_parts.crashing_disk import Disk, all_flushed, becoming, begins_again

PREFIX = "REC"
TITLE = "Recovery"

CHAPTER = "Kafka Internals, ch. 03, 'Crash recovery & startup: LogLoader'"
BOUNDS, FAILURES, LOADER, MANAGER = contents.BOUNDS, contents.FAILURES, log_loader.LOADER, checkpoints.MANAGER
MANAGING = "Kafka Internals, ch. 04, 'Log Management, Retention & Compaction'"
DESIGN = "the design notes, 'Implementation', 'Log'"

ENDS = (LOG, INDEX, TIME_INDEX)
BY_THE_SYSTEM = "what a killed process wrote is the operating system's affair"

clause(
    """REC-1: A power failure takes nothing that was flushed. Of a file that was written since it was flushed any first
    part may be left, half a batch at its end, or its length with something in it that was never written; of the names
    that were made, changed or removed since their directory was flushed the last ones may be undone. [{DESIGN}; fsync
    and rename, POSIX.1-2017]""",
    without={
        "impl": "about disks: the simulated disk does it, and others are not ours",
        "mutant": "a disk is no part of Kafka: the tests compare the simulated one with it",
    },
)

clause(
    """REC-20: A segment without an offset index is recovered while the segments are opened (LDR-6), and for that those
    below it are read, which are not recovered yet. If one of them has zeros where a batch was to be, the load ends in a
    CorruptRecordException, which is no storage error: the broker does not start. [LogLoader.loadSegmentFiles, Kafka
    4.3.0]""",
    without={
        "spec": "the spec's files have no zeros: half a batch, or one that is not whole, does no such harm",
        "model": "of the files' bytes, not of interleavings",
        "proof": "of the files' bytes: a test has it",
        "mutant": "a fault that is kept as the released Kafka has it, and no promise",
    },
)


NEW: Mapping[str, Content] = {name_of(0, LOG): LogFile(), name_of(0, INDEX): "", name_of(0, TIME_INDEX): "", EPOCHS: ()}


def initial() -> Broker:
    """The broker runs, and its log is new; all of that is on the disk."""
    return Broker(all_flushed(NEW), log=RunningLog())


machine: Machine[Broker] = Machine("recovery", initial, observe)


def running(state: Broker) -> RunningLog:
    """The log of a broker that runs."""
    assert state.log is not None
    return state.log


def known(state: Broker) -> RunningLog:
    """The log; a new one if the broker is down: for preconditions, of which any may be asked first."""
    return state.log or RunningLog()


is_up = require(lambda state: state.log is not None, "REC-5 the broker runs")
is_down = require(lambda state: state.log is None, "REC-5 the broker is down")
in_order = ensure(
    lambda result: (
        (after := result.state if isinstance(result, Step) else result).log is None
        or after.log.log_start <= after.log.high_watermark <= after.log.log_end
    ),
    "REC-11 log start, high watermark and log end stay in order",
)
honest = ensure(
    lambda result: no_more_than_flushed(result.state if isinstance(result, Step) else result),
    "REC-10 the recovery point is not above what was flushed",
)


@states("REC-10")
def safe_between(disk: Disk, start: int, end: int) -> bool:
    """Whether every batch from an offset on, and below another, is flushed."""
    for base in bases_of(disk.files):
        stored = disk.stored[name_of(base, LOG)]
        assert isinstance(stored.content, LogFile)
        safe = stored.content.batches[: flushed_batches(stored)]
        if any(start <= b.last < end and b.whole and b not in safe for b in stored.content.batches):
            return False
    return True


def no_more_than_flushed(state: Broker) -> bool:
    """Whether the log is flushed from its start to its recovery point."""
    return state.log is None or safe_between(state.disk, sure_from(state), state.log.recovery_point)


@states("REC-17")
def sure_from(state: Broker) -> int:
    """Where those records of a running log begin that no log start has passed."""
    return max(running(state).log_start, state.skipped)


# ---- a broker that runs ----------------------------------------------------------------------------------------------
def active(files: Mapping[str, Content]) -> int:
    """The last segment's base offset."""
    return bases_of(files)[-1]


def with_segment(disk: Disk, base: int) -> Disk:
    """With a new one."""
    disk = disk.put(name_of(base, LOG), LogFile())
    return disk.put(name_of(base, INDEX), "", flushed=True).put(name_of(base, TIME_INDEX), "", flushed=True)


@states("REC-14", "LOG-14")
def with_epoch(state: Broker, epoch: int) -> Broker:
    """With an epoch that begins at the log end, in its file too."""
    log = running(state)
    entries = tuple(EpochEntry(*e) for e in assigned(tuple(Entry(*e) for e in log.epochs), Entry(epoch, log.log_end)))
    if entries == log.epochs:
        return state
    return replace(state, log=replace(log, epochs=entries), disk=state.disk.replace_whole(EPOCHS, entries))


@machine.operation("append", "REC-14")
@states(without={"REC-14": not_modelled("the model has no leader epochs")})
@is_up
@require(lambda records: 1 <= len(records) <= 10 and all(1 <= n <= 100 for n in records), "LOG-2 some records")
@require(
    lambda state, leader_epoch: leader_epoch >= max((e.epoch for e in known(state).epochs), default=0),
    "LOG-14 a leader's epochs do not fall",
)
@require(lambda state: known(state).log_end < 2**31 - 2**12, "LOG-2 the log end stays within one segment's reach")
@in_order
@honest
@ensure(lambda state, result: result.log.recovery_point == running(state).recovery_point, "REC-10 nothing is flushed")
def append(state: Broker, records: Sequence[Few], leader_epoch: LeaderEpoch) -> Broker:
    """Batches with these numbers of records, one append each.

    REC-14: A batch is written only after the leader epoch checkpoint has its epoch, flushed. So no record outlives a
    crash of which the epoch does not. [{FAILURES}; UnifiedLog.append, Kafka 4.3.0; KAFKA-16541]
    """
    state = with_epoch(state, leader_epoch)
    log = running(state)
    name = name_of(active(state.disk.files), LOG)
    there = state.disk.stored[name].content
    assert isinstance(there, LogFile)
    new, end = list[Batch](), log.log_end
    for n in records:
        new.append(Batch(end, end + n - 1, leader_epoch))
        end += n
    return replace(
        state,
        disk=state.disk.append(name, LogFile((*there.batches, *new), there.torn)),
        log=replace(log, log_end=end, seen=end),
        written=state.written | {*new},
    )


@machine.operation("roll", "REC-13")
@is_up
@require(
    lambda state: log_of(state.disk.files, active(state.disk.files)).batches != (), "LOG-7 the active segment has some"
)
@in_order
@honest
def roll(state: Broker) -> Broker:
    """A new segment.

    REC-13: A roll schedules the flush of the old segment, and of the producer snapshot that it took; neither is waited
    for. A snapshot that a crash leaves unreadable is removed when it is read, and the one before it counts, so that
    more of the log is read again, and nothing is missed. [{CHAPTER}; LocalLog.roll and ProducerStateManager, Kafka
    4.3.0; KAFKA-9892]
    """
    log, base = running(state), running(state).log_end
    disk, snapshot = with_segment(state.disk, base), None
    if base > log.last_snapshot:
        snapshot = base
        disk = disk.put(name_of(base, SNAPSHOT), "")
    return replace(
        state,
        disk=disk,
        log=replace(
            log,
            seen=base,
            last_snapshot=max(base, log.last_snapshot),
            known=log.known | {base} if snapshot is not None else log.known,
            to_flush=(*log.to_flush, (base, snapshot)),
        ),
    )


def flushed(state: Broker, offset: int, including: bool = False, within: bool = True) -> Broker:
    """The segments from the one on that holds the recovery point are flushed, then the directory if one of them is new,
    and then the recovery point rises; `within`: not above the log end."""
    log, disk = running(state), state.disk
    if offset + including <= log.recovery_point:
        return state
    bases = bases_of(disk.files)
    first = max((n for n, b in enumerate(bases) if b <= log.recovery_point), default=0)
    there = [b for b in bases[first:] if b < offset + including]
    for base in there:
        for end in ENDS:
            disk = disk.flush(name_of(base, end))
    if any(base >= log.recovery_point for base in there):
        disk = disk.flush_names()
    reached = min(offset, log.log_end) if within else offset
    return replace(state, disk=disk, log=replace(log, recovery_point=max(log.recovery_point, reached)))


@machine.operation("flush", "REC-10")
@is_up
@in_order
@honest
@ensure(lambda result: running(result).recovery_point == running(result).log_end, "REC-10 up to the log end")
def flush(state: Broker) -> Broker:
    """The log is flushed up to its end.

    REC-10: The recovery point rises only by a flush, when the contents are on the disk and, for new segments, their
    names; only then may it be checkpointed. So what is below a checkpointed recovery point is safe. The exception is
    REC-17. [{BOUNDS}; LocalLog.flush, Kafka 4.3.0; KAFKA-10101]
    """
    return flushed(state, running(state).log_end)


@machine.operation("background", "REC-13", "LOG-34", kind="time")
@is_up
@in_order
@honest
def background(state: Broker) -> Broker:
    """What is scheduled is done: flushes, the leader epoch checkpoint, removals.

    REC-18: The flush that a roll schedules may come after a truncation. The recovery point then rises to the log end at
    most: what is appended later, up to where the log had been, is not flushed. [{BOUNDS}; UnifiedLog.flush, Kafka
    4.3.0]
    """
    return with_scheduled(state)


@states("REC-18")
def with_scheduled(state: Broker, within: bool = True) -> Broker:
    """After all that is scheduled; `within`: no flush raises the recovery point above the log end."""
    for offset, snapshot in running(state).to_flush:
        if snapshot is not None and name_of(snapshot, SNAPSHOT) in state.disk.stored:
            state = replace(state, disk=state.disk.flush(name_of(snapshot, SNAPSHOT)))
        if offset > running(state).recovery_point:
            state = flushed(state, offset, within=within)
    log, disk = running(state), state.disk
    if log.epochs_to_write:
        disk = disk.replace_whole(EPOCHS, log.epochs)
    for name in log.to_remove:
        if name in disk.stored:
            disk = disk.remove(name)
    return replace(state, disk=disk, log=replace(log, to_flush=(), epochs_to_write=False, to_remove=()))


@machine.operation("updateHighWatermark", "LOG-15")
@is_up
@in_order
@require(lambda state, offset: offset >= known(state).high_watermark, "LOG-16 replication goes on")
def update_high_watermark(state: Broker, offset: Offset) -> Broker:
    """As far as the followers have it."""
    log = running(state)
    return replace(state, log=replace(log, high_watermark=min(offset, log.log_end)))


@machine.operation("deleteRecords", "REC-17", "LOG-32")
@is_up
@in_order
@honest
def delete_records(state: Broker, offset: Offset) -> Step[Broker, bool]:
    """The log begins at an offset now: whether that is new.

    REC-17: A log start that rises above the recovery point takes it along, without a flush (LOG-32). So between two
    checkpoints a power failure may leave the recovery point above, and the log start below, records that were never
    flushed: a start then neither recovers nor hides them. Nor does a later flush come to their segments: while the
    checkpointed recovery point is still below them, a start recovers them, cuts the log where one is not whole, and
    gives up all that is behind, flushed or not. And a segment in which the log start lies then is taken for one whose
    name was flushed: no flush does it, not that of a clean stop, and a power failure may take the segment.
    [UnifiedLog.maybeIncrementLogStartOffset, Kafka 4.3.0; KAFKA-16073]
    """
    log = running(state)
    if offset > log.high_watermark:
        return Step(state, ABOVE_HIGH_WATERMARK)
    if offset <= log.log_start:
        return Step(state, False)
    cut = cut_from_start(tuple(Entry(*e) for e in log.epochs), offset)
    begun = any(e.start_offset <= offset for e in log.epochs)
    after = replace(
        log,
        log_start=offset,
        recovery_point=max(log.recovery_point, offset),
        epochs=tuple(EpochEntry(*e) for e in cut) if begun else log.epochs,
        epochs_to_write=log.epochs_to_write or begun,
        seen=max(log.seen, offset),
        last_snapshot=max(log.known, default=offset),
    )
    skipped = max(state.skipped, offset) if offset > log.recovery_point else state.skipped
    return Step(replace(state, log=after, skipped=skipped), True)


def retired(state: Broker, bases: list[int]) -> Broker:
    """Without segments: their files get another name, and are removed later."""
    log, disk, names = running(state), state.disk, list[str]()
    for base in bases:
        for end in ENDS:
            disk = disk.rename(name_of(base, end), name_of(base, end, DELETED))
            names.append(name_of(base, end, DELETED))
    return replace(state, disk=disk, log=replace(log, to_remove=(*log.to_remove, *names)))


def retired_snapshots(state: Broker, bases: list[int]) -> Broker:
    """Without the snapshots at deleted segments' base offsets."""
    log, disk, names = running(state), state.disk, list[str]()
    for base in bases:
        if base in log.known and name_of(base, SNAPSHOT) in disk.stored:
            disk = disk.rename(name_of(base, SNAPSHOT), name_of(base, SNAPSHOT, DELETED))
            names.append(name_of(base, SNAPSHOT, DELETED))
    return replace(
        state,
        disk=disk,
        log=replace(log, known=log.known - frozenset(bases), to_remove=(*log.to_remove, *names)),
    )


@machine.operation("deleteOldSegments", "LOG-39", "LOG-34")
@is_up
@in_order
@honest
def delete_old_segments(state: Broker) -> Step[Broker, int]:
    """Segments that end at or below the log start go: how many."""
    bases = bases_of(state.disk.files)
    gone = [a for a, b in pairwise(bases) if b <= running(state).log_start]
    return Step(retired_snapshots(retired(state, gone), gone), len(gone))


@machine.operation("truncateTo", "REC-15", "LOG-28")
@is_up
@in_order
@honest
@ensure(
    lambda state, offset, result: (
        not result.result or (result.state.point or 0) <= offset >= running(result.state).recovery_point
    ),
    "REC-15 the checkpointed recovery point is not above the cut",
)
def truncate_to(state: Broker, offset: Offset) -> Step[Broker, bool]:
    """A follower cuts its log where it parts from its leader's: whether there was something to cut.

    REC-15: A truncation lowers the recovery point to the cut and checkpoints it at once, before anything is appended
    behind the cut: else a start would take new records, that were never flushed, for flushed ones. The cut itself is
    not flushed: a power failure may bring back what was cut. [{MANAGER}, truncateTo]
    """
    log = running(state)
    if offset >= log.log_end:
        cut = tuple(EpochEntry(*e) for e in cut_from_end(tuple(Entry(*e) for e in log.epochs), log.log_end))
        after = replace(log, epochs=cut, epochs_to_write=log.epochs_to_write or cut != log.epochs)
        return Step(replace(state, log=after), False)
    bases = bases_of(state.disk.files)
    if bases[0] > offset:
        return Step(checkpointed(emptied(state, bases, offset)), True)
    gone = [b for b in bases if b > offset]
    state = retired(state, gone)
    disk, last = state.disk, active(state.disk.files)
    there = log_of(disk.files, last)
    disk = disk.cut(name_of(last, LOG), LogFile(tuple(b for b in there.batches if b.last < offset)))
    cut = tuple(EpochEntry(*e) for e in cut_from_end(tuple(Entry(*e) for e in log.epochs), offset))
    after = replace(
        running(state),
        log_end=offset,
        log_start=min(log.log_start, offset),
        recovery_point=min(log.recovery_point, offset),
        high_watermark=min(log.high_watermark, offset),
        epochs=cut,
        epochs_to_write=log.epochs_to_write or cut != log.epochs,
    )
    state = retired_snapshots(replace(state, disk=disk, log=after), gone)
    within = {offset} if any(b.base < offset <= b.last for b in there.batches) else set[int]()
    state = replace(state, holes=state.holes | within, skipped=min(state.skipped, offset))
    return Step(checkpointed(rebuilt(state, offset)), True)


def emptied(state: Broker, bases: list[int], offset: int) -> Broker:
    """The log begins again at an offset below its first segment."""
    log = running(state)
    state = retired(state, bases)
    disk = with_segment(state.disk, offset).replace_whole(EPOCHS, ())
    for x in log.known:
        disk = disk.remove(name_of(x, SNAPSHOT))
    after = replace(
        running(state),
        log_start=offset, log_end=offset, high_watermark=offset, recovery_point=min(log.recovery_point, offset),
        epochs=(), epochs_to_write=log.epochs_to_write, seen=offset, last_snapshot=0, known=frozenset(),
    )  # fmt: skip
    return rebuilt(replace(state, disk=disk, log=after, skipped=min(state.skipped, offset)), offset)


def rebuilt(state: Broker, end: int) -> Broker:
    """The producer state is brought to the new end (LOG-31): snapshots go and come."""
    log = running(state)
    there = {x: str(state.disk.stored[name_of(x, SNAPSHOT)].content) for x in log.known}
    snapshots = Snapshots(dict(there), log.seen, log.last_snapshot)
    snapshots.rebuild(bases_of(state.disk.files), log.log_start, end, clean=False)
    disk = state.disk
    for x in sorted(log.known - snapshots.known.keys()):
        disk = disk.remove(name_of(x, SNAPSHOT))
    for x in sorted(x for x, content in snapshots.known.items() if there.get(x) != content):
        disk = disk.put(name_of(x, SNAPSHOT), "", flushed=True)
    after = replace(log, seen=snapshots.end, last_snapshot=snapshots.last, known=frozenset(snapshots.known))
    return replace(state, disk=disk, log=after)


# ---- checkpoints -----------------------------------------------------------------------------------------------------
def checkpointed(state: Broker) -> Broker:
    """With the recovery point in its checkpoint."""
    return replace(state, point=running(state).recovery_point)


@machine.operation("checkpointRecoveryPoints", "CKP-11", "REC-10")
@is_up
def checkpoint_recovery_points(state: Broker) -> Broker:
    """Once in a while."""
    return checkpointed(state)


def with_start(state: Broker) -> Broker:
    """With the log start in its checkpoint, if it is above the first segment's base offset."""
    log = running(state)
    return replace(state, start=log.log_start if log.log_start > bases_of(state.disk.files)[0] else None)


@machine.operation("checkpointLogStarts", "CKP-12", "REC-12")
@is_up
def checkpoint_log_starts(state: Broker) -> Broker:
    """Once in a while."""
    return with_start(state)


@machine.operation("checkpointHighWatermarks", "CKP-13", "REC-11")
@is_up
def checkpoint_high_watermarks(state: Broker) -> Broker:
    """Once in a while."""
    return replace(state, mark=running(state).high_watermark)


# ---- stops -----------------------------------------------------------------------------------------------------------
@states("REC-17")
def may_be_cut(state: Broker) -> bool:
    """Whether a start from the checkpoint would come upon records that a log start has passed and nothing flushed."""
    return is_damaged(state) or not safe_between(state.disk, recovered_from(state), state.skipped)


@states("REC-17")
def is_damaged(state: Broker) -> bool:
    """Whether it would come upon one that is not whole."""
    files = state.disk.files
    logs = [log_of(files, b) for b in bases_of(files) if recovered_from(state) <= b < state.skipped]
    return any(f.torn or any(not b.whole and b.last < state.skipped for b in f.batches) for f in logs)


@states("REC-17")
def nameless(state: Broker) -> list[int]:
    """The segments that a log start has passed into before their names were flushed."""
    return [b for b in unnamed(state.disk) if b < state.skipped]


def unnamed(disk: Disk) -> list[int]:
    """The segments whose names a power failure may take."""
    certain = disk.undone(0)
    return [b for b in bases_of(disk.files) if name_of(b, LOG) not in certain]


@states("REC-7")
def recovered_from(state: Broker) -> int:
    """The base offset of the first segment that a start without a marker recovers."""
    return max((b for b in bases_of(state.disk.files) if b <= (state.point or 0)), default=0)


@states("REC-3")
def gone_down(state: Broker, *, killed: bool = False) -> Broker:
    """Without a running broker; what was in its log is kept in mind."""
    log = running(state)
    there = tuple(b for b in batches_of(state.disk.files) if log.log_start <= b.last)
    doubtful = (
        set(there) if may_be_cut(state) else {b for n in nameless(state) for b in log_of(state.disk.files, n).batches}
    )
    safe = tuple(b for b in there if sure_from(state) <= b.last < log.recovery_point and b not in doubtful)
    return replace(state, log=None, promised=there if killed and not is_damaged(state) else safe, safe=safe)


@machine.operation("stop", "REC-16", "CKP-9")
@is_up
@ensure(
    lambda state, result: batches_of(result.disk.files) == batches_of(state.disk.files), "REC-16 every batch is there"
)
@ensure(lambda state, result: result.point == running(state).log_end, "REC-16 the recovery point is the log end")
@ensure(
    lambda state, result: safe_between(result.disk, sure_from(state), LONG_MAX),
    "REC-16 all of it is flushed, from the log start on",
)
@ensure(lambda result: unnamed(result.disk) == nameless(result), "REC-16 so are the names")
def stop(state: Broker) -> Broker:
    """The broker shuts down.

    REC-16: A clean stop flushes the log, active segment included, closes it with a snapshot at its end, checkpoints,
    and leaves the marker last of all. What is scheduled and was not done is not done any more. [{MANAGING}; {MANAGER},
    shutdown]
    """
    state = flushed(state, running(state).log_end, including=True)
    log = running(state)
    if log.seen > log.last_snapshot:
        state = replace(state, disk=state.disk.put(name_of(log.seen, SNAPSHOT), "", flushed=True))
    state = with_start(checkpointed(replace(state, mark=log.high_watermark)))
    return replace(gone_down(state), marker=True)


@machine.operation("kill", "REC-2", kind="crash")
@states(without={"REC-2": {"impl": BY_THE_SYSTEM}})
@is_up
def kill(state: Broker) -> Broker:
    """The process ends at once.

    REC-2: A process that is killed loses nothing that it wrote, flushed or not; what was scheduled is not done, and no
    marker is left. [{DESIGN}; write, POSIX.1-2017]
    """
    return gone_down(state, killed=True)


@machine.operation("powerFails", "REC-1", kind="crash")
@require(lambda state, keeps_marker: state.marker or not keeps_marker, "REC-1 no marker appears by itself")
@require(lambda state, files: state.disk.may_leave(files), "REC-1 the disk may leave these files")
def power_fails(state: Broker, files: Mapping[str, Content], keeps_marker: bool) -> Broker:
    """The machine stops. `files`: what the disk has left; `keeps_marker`: it still has the marker, if there was one."""
    down = gone_down(state) if state.log is not None else replace(state, promised=state.safe)
    return replace(down, disk=all_flushed(files), marker=keeps_marker, holes=state.holes | out_of_step(files))


@states()
def out_of_step(files: Mapping[str, Content]) -> set[int]:
    """The base offsets of segments below which a whole one ends too early, or too late.

    REC-19: A segment that lost its end, so that a whole batch is its last, is not told from one that ends there: it is
    not cut, and the segments after it stay. The log has a hole then, as one may have that was compacted. For that the
    power must fail after a roll and before its flush. [LogLoader.recoverLog, Kafka 4.3.0; {CHAPTER} says that what is
    behind the first invalid byte goes]
    """
    bases = bases_of(files)
    return {
        b
        for a, b in pairwise(bases)
        if log_loader.next_offset(a, log_of(files, a).sound) != b and log_of(files, a) == log_of(files, a).sound
    }


# ---- starts ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class LoadedLog:
    """What a start finds."""

    clean: Annotated[bool, governs("REC-6")]
    log_start: Annotated[int, governs("REC-12", "REC-17")]
    recovery_point: Annotated[int, governs("REC-8", "REC-7")]
    log_end: Annotated[int, governs("REC-4", "REC-7", "REC-19")]


@states(without={"REC-21": not_modelled("its power failures take from a file's end, and bring nothing back")})
def survivors(state: Broker) -> tuple[Batch, ...]:
    """The batches of a running log, from its log start on, without those that only REC-17 or REC-21 lets stay.

    REC-21: A cut, whether a truncation's or a recovery's, is flushed with its segment alone. If the log rolls at the
    cut before that, no later flush comes to the segment, for it lies below the recovery point; a power failure may
    bring back what was cut, even after a clean stop, and no start cuts it again. So a segment may reach above the next
    one's base offset, with batches that are not whole. [LocalLog.flush and LogLoader.recoverLog, Kafka 4.3.0; {DESIGN}]
    """
    files = state.disk.files
    ends = (*bases_of(files)[1:], LONG_MAX)
    within = (
        b for base, end in zip(bases_of(files), ends, strict=True) for b in log_of(files, base).batches if b.last < end
    )
    return tuple(b for b in within if b.last >= sure_from(state))


@states("REC-4")
def one_behind_another(batches: tuple[Batch, ...], holes: frozenset[int]) -> bool:
    """Whether no offset is missing between batches, but below `holes`."""
    return all(a.last + 1 == b.base or b.base in holes for a, b in pairwise(batches))


@states("REC-9")
def starts_again(result: Step[Broker, LoadedLog]) -> bool:
    """Whether another start, without a stop in between, has the same log."""
    after, found = result.state, result.result
    assert isinstance(found, LoadedLog)
    files, ends = log_loader.loaded(after.disk.files, False, after.point or 0, after.start or 0)
    return ends.log_end == found.log_end and batches_of(files) == batches_of(after.disk.files)


@machine.operation(
    "start", "REC-3", "REC-4", "REC-5", "REC-6", "REC-7", "REC-8", "REC-9", "REC-11", "REC-12", "LDR-7", "LDR-13",
    kind="restart",
)  # fmt: skip
@states(without={"REC-11": not_modelled("the model has no high watermark")})
@is_down
@require(lambda state: sensible(state.disk.files), "LDR-18 a directory of Kafka's")
@in_order
@honest
@ensure(
    lambda state, result: (
        {b for b in state.promised if b.last >= running(result.state).log_start}
        <= set(batches_of(result.state.disk.files))
    ),
    "REC-3 what was promised is there",
)
@ensure(
    lambda state, result: set(survivors(result.state)) <= state.written,
    "REC-4 nothing that was never written",
)
@ensure(
    lambda state, result: one_behind_another(survivors(result.state), state.holes),
    "REC-4 no hole",
)
@ensure(
    lambda state, result: (
        state.marker or running(result.state).recovery_point <= max(state.point or 0, running(result.state).log_start)
    ),
    "REC-8 a recovery does not raise the recovery point",
)
@ensure(starts_again, "REC-9 a start after a start has the same log")
def start(state: Broker) -> Step[Broker, LoadedLog]:
    """The broker starts, and loads the log.

    REC-3: After any crash, and a start, the log has every batch that was below the recovery point when it crashed and
    not below the log start; after a kill every one that was written. [{BOUNDS}; {FAILURES}]

    REC-4: After any crash, and a start, the log has nothing that was never written, and, but for
    REC-17 and REC-21, no batch that is not whole. From the log start on it is a first part of what was written, but for
    REC-19 and REC-21. [{FAILURES}; {DESIGN}]

    REC-5: A start works in this order: the marker is looked at and removed; the checkpoints are read; the log is
    loaded (LDR-1 to LDR-13); the high watermark is set. Nothing of the log is changed before the marker is gone.
    [{MANAGER}, loadLogs; KAFKA-10471]

    REC-6: With a marker nothing is recovered, and the recovery point becomes the log end. The marker counts for one
    start: its removal reaches the disk before the log is opened, so that no later crash brings it back. [{CHAPTER};
    {MANAGER}; KAFKA-10471]

    REC-7: Without a marker the log is recovered from the segment on that holds the checkpointed recovery point; without
    a checkpoint, all of it. [{CHAPTER}; {MANAGER}]

    REC-8: A recovery flushes nothing and does not raise the recovery point, for what was read may not be on the disk:
    whoever starts after the next crash reads it again. [{LOADER}; KAFKA-10101]

    REC-9: A start after a start, whatever crash was between them, ends with the log that the first one left, if nothing
    was lost meanwhile: same batches, same log end. [{CHAPTER}; {LOADER}]

    REC-11: The high watermark after a start is the one that was checkpointed, or 0, but not below the log start and not
    above the log end. [{MANAGING}; UnifiedLog.updateHighWatermark, Kafka 4.3.0; KAFKA-8306]

    REC-12: The log start after a start is the one that was checkpointed, or the first segment's base offset if that is
    higher. If the log would end below it, it is empty and begins there; that costs no promised batch, for none at or
    above the log start was flushed. [{FAILURES}; {LOADER}]
    """
    clean = state.marker
    files, ends = log_loader.loaded(state.disk.files, clean, state.point or 0, state.start or 0)
    disk, epochs, before = becoming(state.disk, files), files[EPOCHS], state.disk.files[EPOCHS]
    assert isinstance(epochs, tuple)
    assert isinstance(before, tuple)
    from_start = any(e.start_offset == (state.start or 0) for e in epochs)
    from_end = any(e.start_offset >= ends.log_end for e in before) and not begins_again(state.disk.files, files)
    if from_start or from_end:
        disk = disk.flush_names()  # the leader epochs were cut, and their file is written last of all (LEC-7)
    log = RunningLog(
        log_start=ends.log_start,
        recovery_point=ends.recovery_point,
        high_watermark=max(ends.log_start, min(state.mark or 0, ends.log_end)),
        log_end=ends.log_end,
        epochs=epochs,
        seen=ends.log_end,
        last_snapshot=ends.log_end,
        known=frozenset(offsets_of(files, SNAPSHOT)),
    )
    found = LoadedLog(clean, ends.log_start, ends.recovery_point, ends.log_end)
    skipped = min(state.skipped, ends.log_end)
    return Step(replace(state, disk=disk, log=log, marker=False, promised=(), safe=(), skipped=skipped), found)


def recovering(state: Broker, segments: int) -> tuple[Disk, int]:
    """The disk after at most that number of segments were recovered; how many were."""
    point, first = state.point or 0, state.start or 0
    begun = log_loader.begun(state.disk.files, point, first)
    begun.open_segments()  # no segment overflows here (LDR-20): an append is within one's reach
    done = 0
    for base in log_loader.segments_between(list(begun.segments), point, LONG_MAX):
        if done == segments:
            break
        cut = begun.recover(base, list(begun.segments))
        begun.segments[base] = log_of(begun.files, base)
        done += 1
        if cut:
            given_up(begun, [b for b in begun.segments if b > base])
            break
    begun.files[EPOCHS] = begun.epochs
    return becoming(state.disk, begun.files), done


def given_up(begun: log_loader.Load, bases: list[int]) -> None:
    """Segments behind a cut have another name until they are removed."""
    for base in bases:
        del begun.segments[base]
        for end in (*ENDS, TXN_INDEX, SNAPSHOT):
            if name_of(base, end) in begun.files:
                begun.files[name_of(base, end, DELETED)] = begun.files.pop(name_of(base, end))


@machine.operation("startInterrupted", "REC-7", "REC-6", "REC-9", "REC-5", "REC-8", kind="crash")
@is_down
@require(lambda state: sensible(state.disk.files), "LDR-18 a directory of Kafka's")
@ensure(
    lambda state, result: is_damaged(state) or machine_starts(state)[0] == machine_starts(result.state)[0],
    "REC-9 the next start has the log that this one would have had",
)
def start_interrupted(state: Broker, segments: Few) -> Step[Broker, int]:
    """The broker starts, and is killed after that number of segments were recovered: how many were. With a marker it is
    killed when that is gone, before it opens the log."""
    if state.marker:
        return Step(replace(state, marker=False), 0)
    disk, done = recovering(state, segments)
    return Step(replace(state, disk=disk), done)


def machine_starts(state: Broker) -> tuple[tuple[Batch, ...], log_loader.Ends]:
    """The batches and offsets that a start would find."""
    files, ends = log_loader.loaded(state.disk.files, state.marker, state.point or 0, state.start or 0)
    return batches_of(files), ends
