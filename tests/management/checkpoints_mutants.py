"""Faults of the small files of a log directory, each to be caught."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from kafkaspec.contract.machine import Json, Machine, Refused, Step
from kafkaspec.impl.common.disk import StorageError
from kafkaspec.impl.management import checkpoints as impl
from kafkaspec.impl.management import checkpoints_driver
from kafkaspec.impl.management.checkpoints import CheckpointFile, Checkpoints, TopicPartition
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.management import checkpoints as model
from kafkaspec.models.management.checkpoints import Log, Phase, Writing
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import of_impl, of_model, of_spec, with_fault
from kafkaspec.spec.common.checkpoint_text import ZERO_ID
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.management import checkpoints as spec


def _patched(module: Any = impl, **functions: Any) -> Callable[[], checkpoints_driver.Driver]:
    """The driver with other functions in a module, while it is called."""

    class Faulty(checkpoints_driver.Driver):
        def reset(self, arguments: Mapping[str, Any]) -> None:
            with patch.multiple(module, **functions):
                super().reset(arguments)

        def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
            with patch.multiple(module, **functions):
                return super().apply(name, arguments)

    return Faulty


def _checkpoint(**methods: Any) -> Callable[[], checkpoints_driver.Driver]:
    """The driver with other checkpoint files."""
    return _patched(CheckpointFile=type("Faulty", (CheckpointFile,), methods))


def _broker(**methods: Any) -> Callable[[], checkpoints_driver.Driver]:
    """The driver with another broker."""
    broker = type("Faulty", (Checkpoints,), methods)
    return type("FaultyDriver", (checkpoints_driver.Driver,), {"checkpoints_class": broker})


def _log(**methods: Any) -> Callable[[], checkpoints_driver.Driver]:
    return _patched(impl.CheckpointedLog, **methods)


def _writes_in_place(self: CheckpointFile, offsets: Mapping[TopicPartition, int]) -> None:
    with impl.storage_errors(self.directory, "writing", self.path):
        self.disk.write(self.path, impl.encode(offsets))


def _flushes_no_content(self: CheckpointFile, offsets: Mapping[TopicPartition, int]) -> None:
    with impl.storage_errors(self.directory, "writing", self.path):
        beside = self.path + ".tmp"
        self.disk.write(beside, impl.encode(offsets))
        self.disk.rename(beside, self.path)
        self.disk.flush_directory(self.directory)


def _flushes_no_name(self: CheckpointFile, offsets: Mapping[TopicPartition, int]) -> None:
    with impl.storage_errors(self.directory, "writing", self.path):
        beside = self.path + ".tmp"
        self.disk.write(beside, impl.encode(offsets))
        self.disk.flush(beside)
        self.disk.rename(beside, self.path)


_encode, _decode = impl.encode, impl.decode


def _miscounts(offsets: Mapping[TopicPartition, int]) -> bytes:
    version, count, *lines = _encode(offsets).decode().split("\n")
    return "\n".join([version, str(int(count) + 1), *lines]).encode()


def _believes_every_count(data: bytes) -> dict[TopicPartition, int]:
    version, _, *lines = [*data.decode().split("\n"), ""]
    body = [line for line in lines if line]
    return _decode("\n".join([version, str(len(body)), *body, ""]).encode() if body else data)


def _reads_every_version(data: bytes) -> dict[TopicPartition, int]:
    return _decode(b"0" + data[1:] if data[:1].isdigit() else data)


def _reads_blanks_before(data: bytes, parse: Any, fields: int) -> Any:
    return _entries(b"\n".join(line.strip(b" ") for line in data.split(b"\n")), parse, fields)


def _first_counts(data: bytes) -> dict[TopicPartition, int]:
    return dict(entry for _, entry in reversed(impl.decode_lines(data)))


_entries = impl.entries
_decode_metadata, _decode_marker = impl.decode_metadata, impl.decode_marker


def _takes_the_zero_id(data: bytes) -> str:
    return ZERO_ID if data.endswith(ZERO_ID.encode()) else _decode_metadata(data)


def _reads_version_0_alone(data: bytes) -> str:
    if data.startswith(b"version: 1"):
        raise impl.CheckpointUnreadable(1, "version 1")
    return _decode_metadata(data)


def _wants_its_version(data: bytes) -> int | None:
    return _decode_marker(data) if b'"version":0' in data else None


def _keeps_the_marker(self: Checkpoints) -> None:
    """Until everything is loaded."""
    self.loaded = False
    self.had_clean_shutdown = self.disk.exists(self.marker)


def _loads_and_deletes(self: Checkpoints) -> bool:
    if self.disk.exists(self.marker):
        self.disk.remove(self.marker)
    return Checkpoints.load(self)


def _marks_whatever_was_loaded(self: Checkpoints, broker_epoch: int) -> None:
    Checkpoints.shut_down(self, broker_epoch)
    self.disk.write(self.marker, impl.encode_marker(broker_epoch))
    self.disk.flush(self.marker)


def _stops_without_flushing(self: Checkpoints, broker_epoch: int) -> None:
    with patch.object(impl.CheckpointedLog, "flush", lambda log: None):
        Checkpoints.shut_down(self, broker_epoch)


def _checkpoints_the_end(self: Checkpoints) -> None:
    self.files[spec.RECOVERY_POINTS].write({p: log.end for p, log in self.known()})


def _writes_every_start(self: Checkpoints) -> None:
    self.files[spec.LOG_STARTS].write({p: log.start for p, log in self.known()})


def _truncates_and_says_nothing(self: Checkpoints, partition: TopicPartition, offset: int) -> None:
    self.logs[partition].truncate(offset)


def _keeps_the_entries(self: Checkpoints, partition: TopicPartition) -> None:
    del self.logs[partition]


def _goes_on_without(self: Checkpoints) -> bool:
    Checkpoints.load(self)
    self.loaded = True
    return True


def _believes_the_high_watermark(self: impl.CheckpointedLog, clean: bool, point: int, start: int, mark: int) -> None:
    _load(self, clean, point, start, mark)
    self.high_watermark = max(self.start, mark)


def _recovers_to_the_end(self: impl.CheckpointedLog, clean: bool, point: int, start: int, mark: int) -> None:
    _load(self, True, point, start, mark)


def _begins_at_the_first_segment(self: impl.CheckpointedLog, clean: bool, point: int, start: int, mark: int) -> None:
    _load(self, clean, point, 0, mark)


_load = impl.CheckpointedLog.load


# ---- faults of the models


def _renames_what_is_not_flushed() -> LoadedModel:
    class CheckpointFile(model.CheckpointFile):
        @action("CKP-6", who="manager")
        def rename(s) -> None:
            require(s.writing in (Writing.WRITTEN, Writing.FLUSHED))
            s.next.writing = Writing.RENAMED

    return load(CheckpointFile)


def _returns_before_the_name_is_flushed() -> LoadedModel:
    class CheckpointFile(model.CheckpointFile):
        @action("CKP-6", who="manager")
        def rename(s) -> None:
            require(s.writing == Writing.FLUSHED)
            s.next.writing = Writing.RENAMED
            s.next.returned = s.beside

    return load(CheckpointFile)


def _marker_deleted_after_loading() -> LoadedModel:
    class Marker(model.Marker):
        @action("CKP-10", who="broker")
        def start(s) -> None:
            require(s.phase == Phase.DOWN)
            s.next.phase = Phase.LOADING
            s.next.clean = s.marker
            s.next.loaded = {log: False for log in Log}
            s.next.closed = {log: False for log in Log}

        @action("CKP-9", who="broker")
        def serve(s) -> None:
            require(s.phase == Phase.LOADING, all(s.loaded[log] for log in Log))
            s.next.phase = Phase.UP
            s.next.marker = False

    return load(Marker)


def _marker_before_the_logs_are_closed() -> LoadedModel:
    class Marker(model.Marker):
        @action("CKP-9", who="broker")
        def finish(s) -> None:
            require(s.phase == Phase.CLOSING)
            s.next.phase = Phase.DOWN
            s.next.marker = True

    return load(Marker)


def _recovery_point_jumps_to_the_end() -> LoadedModel:
    class RecoveryPoint(model.RecoveryPoint):
        @action("CKP-15", who="loader thread")
        def recover(s) -> None:
            require(not s.running)
            s.next.skipped = s.skipped or (not s.stale and s.sound < min(s.checkpoint, s.end))
            s.next.end = s.sound
            s.next.flushed = min(s.flushed, s.sound)
            s.next.point = s.sound
            s.next.stale = s.stale or s.checkpoint > s.sound
            s.next.truncated = False
            s.next.running = True

    return load(RecoveryPoint)


def _recovery_point_advances_first() -> LoadedModel:
    class RecoveryPoint(model.RecoveryPoint):
        @action("CKP-11", who="flusher")
        def advance(s) -> None:
            require(s.running, s.point < s.end)
            s.next.point = s.end

    return load(RecoveryPoint)


def _truncation_is_not_checkpointed() -> LoadedModel:
    class RecoveryPoint(model.RecoveryPoint):
        @action("CKP-11", who="leader or follower")
        def append(s) -> None:
            require(s.running, s.end < model.L)
            s.next.end = s.end + 1
            s.next.sound = s.end + 1

    return load(RecoveryPoint)


# ---- faults of the spec


def _fault(operation: str, body: Callable[..., Any]) -> Callable[[], Machine[spec.Directory]]:
    return lambda: with_fault(spec.machine, operation, body)


def _start_keeps_the_marker(state: spec.Directory, crash_while_loading: bool) -> Step[spec.Directory, spec.LastStop]:
    step = spec.start(state, crash_while_loading)
    return Step(replace(step.state, marker=state.marker), step.result)


def _starts_of_all(state: spec.Directory) -> spec.Directory:
    starts = Frozen({p: log.start for p, log in state.logs.items()})
    return replace(state, files=state.files.with_(spec.LOG_STARTS, starts))


MUTANTS = [
    of_impl("checkpoint written in place", "CKP-6", "not beside, not flushed", _checkpoint(write=_writes_in_place)),
    of_impl(
        "checkpoint content not flushed",
        "CKP-6",
        "renamed over the old one before it is on the disk",
        _checkpoint(write=_flushes_no_content),
    ),
    of_impl(
        "checkpoint name not flushed",
        "CKP-6",
        "the rename may be undone after the write has returned",
        _checkpoint(write=_flushes_no_name),
    ),
    of_impl("count line wrong", "CKP-1 CKP-5", "one entry too many announced", _patched(encode=_miscounts)),
    of_impl(
        "any count will do",
        "CKP-3",
        "the announced number of entries is not compared",
        _patched(decode=_believes_every_count),
    ),
    of_impl("any version will do", "CKP-3", "a file of another version is read", _patched(decode=_reads_every_version)),
    of_impl("blanks before an entry", "CKP-2", "a line may begin with blanks", _patched(entries=_reads_blanks_before)),
    of_impl("the first entry counts", "CKP-5", "of two entries of a partition", _patched(decode=_first_counts)),
    of_impl("the zero id is an id", "CKP-7", "a topic without an id", _patched(decode_metadata=_takes_the_zero_id)),
    of_impl(
        "version 0 alone",
        "CKP-7",
        "a partition.metadata of a later version is refused",
        _patched(decode_metadata=_reads_version_0_alone),
    ),
    of_impl(
        "the marker's version matters",
        "CKP-8",
        "an epoch without a version is none",
        _patched(decode_marker=_wants_its_version),
    ),
    of_impl(
        "the marker goes after loading",
        "CKP-10",
        "a crash while logs are loaded is taken for a clean stop",
        _broker(begin_loading=_keeps_the_marker, load=_loads_and_deletes),
        "KAFKA-10471",
    ),
    of_impl(
        "a marker for every stop",
        "CKP-9",
        "though not all logs were loaded",
        _broker(shut_down=_marks_whatever_was_loaded),
    ),
    of_impl(
        "stops without flushing",
        "CKP-9 CKP-11",
        "the recovery points are older than the marker",
        _broker(shut_down=_stops_without_flushing),
    ),
    of_impl(
        "the end is the recovery point",
        "CKP-11",
        "flushed or not",
        _broker(checkpoint_recovery_points=_checkpoints_the_end),
        "KAFKA-10101",
    ),
    of_impl(
        "every start is written", "CKP-12", "those of segments too", _broker(checkpoint_log_starts=_writes_every_start)
    ),
    of_impl(
        "truncation says nothing",
        "CKP-11",
        "the checkpoint stays above the end",
        _broker(truncate=_truncates_and_says_nothing),
    ),
    of_impl("deletion says nothing", "CKP-16", "the entries stay", _broker(delete_log=_keeps_the_entries)),
    of_impl("goes on without a checkpoint", "CKP-4", "an unreadable file is none", _broker(load=_goes_on_without)),
    of_impl("the high watermark is believed", "CKP-13", "beyond the log end", _log(load=_believes_the_high_watermark)),
    of_impl(
        "recovered means flushed",
        "CKP-15",
        "the recovery point jumps to the end",
        _log(load=_recovers_to_the_end),
        "KAFKA-10101",
    ),
    of_impl(
        "deleted records come back",
        "CKP-12 CKP-15",
        "the log start is not looked at",
        _log(load=_begins_at_the_first_segment),
    ),
    of_spec(
        "a start keeps the marker",
        "CKP-10",
        "the marker lies from the first write on",
        _fault("start", _start_keeps_the_marker),
    ),
    of_spec("a start for every log", "CKP-12", "those of segments too", _fault("checkpointLogStarts", _starts_of_all)),
    of_model(
        "CheckpointFile: renamed, not flushed", "CKP-6", "the name leads to a torn file", _renames_what_is_not_flushed
    ),
    of_model(
        "CheckpointFile: returned, not flushed",
        "CKP-6",
        "a write that had returned is undone",
        _returns_before_the_name_is_flushed,
    ),
    of_model(
        "Marker: deleted after loading",
        "CKP-10",
        "a crash while loading leaves it",
        _marker_deleted_after_loading,
        "KAFKA-10471",
    ),
    of_model(
        "Marker: written before the logs are closed",
        "CKP-9",
        "a crash finds it beside open logs",
        _marker_before_the_logs_are_closed,
    ),
    of_model(
        "RecoveryPoint: jumps to the end",
        "CKP-11 CKP-15",
        "a second loss of power is not recovered",
        _recovery_point_jumps_to_the_end,
        "KAFKA-10101",
    ),
    of_model("RecoveryPoint: advances first", "CKP-11", "before the flush", _recovery_point_advances_first),
    of_model(
        "RecoveryPoint: a truncation is not checkpointed",
        "CKP-11",
        "what is appended again is taken for flushed",
        _truncation_is_not_checkpointed,
    ),
]

SURVIVORS = {
    "Marker.stop: guard 1, other member (2)": "fewer steps: who has loaded all logs may stop, and has the same state",
    "Marker.crash: guard 1, other member": "fewer steps: to stop while loading and then to crash leads to the same",
    "RecoveryPoint.lose_power: guard 3, off by one": "fewer steps: to lose nothing is to flush first, and to be killed",
}
"""Generated faults of the models that nobody can notice, and why."""


# ---- faults of range, boundary, depth, configuration and rare state
def _counts_of_16_bits(data: bytes, parse: Any, fields: int) -> Any:
    version, count, *rest = [*data.split(b"\n", 2), b"", b""][:3]
    if count.isdigit() and int(count) < 2**31:
        return _entries(b"\n".join((version, str(int(count) % 2**16).encode(), *rest)), parse, fields)
    return _entries(data, parse, fields)


def _as_doubles(offsets: Mapping[TopicPartition, int]) -> bytes:
    return _encode({p: int(float(o)) for p, o in offsets.items()})


def _partitions_of_16_bits(data: bytes) -> dict[TopicPartition, int]:
    return {p._replace(partition=signed(p.partition, 16)): o for p, o in _decode(data).items()}


def _epochs_of_32_bits(data: bytes) -> int | None:
    epoch = _decode_marker(data)
    return None if epoch is None else signed(epoch, 32)


def _no_epoch_is_minus_one(data: bytes) -> int | None:
    epoch = _decode_marker(data)
    return None if epoch == -1 else epoch


def _points_of_32_bits(self: Checkpoints) -> None:
    self.files[spec.RECOVERY_POINTS].write({p: signed(log.recovery_point, 32) for p, log in self.known()})


def _points_of_two(self: Checkpoints) -> None:
    self.files[spec.RECOVERY_POINTS].write({p: log.recovery_point for p, log in self.known()[:2]})


def _starts_above_zero(self: Checkpoints) -> None:
    self.files[spec.LOG_STARTS].write({p: log.start for p, log in self.known() if log.start})


def _remembers_a_clean_stop(self: Checkpoints) -> None:
    before = self.had_clean_shutdown
    Checkpoints.begin_loading(self)
    self.had_clean_shutdown = self.had_clean_shutdown or before


def _reads_two(self: Checkpoints) -> bool:
    """The high watermarks are read where the log start is checkpointed too."""
    marks = self.files[spec.HIGH_WATERMARKS]
    try:
        known = self.files[spec.LOG_STARTS].read()
        kept = marks.read()
    except StorageError:
        return Checkpoints.load(self)
    marks.read = lambda: {p: o for p, o in kept.items() if p in known or not known}  # type: ignore[method-assign]
    try:
        return Checkpoints.load(self)
    finally:
        del marks.read


def _stays_below_the_mark(self: impl.CheckpointedLog, offset: int, delete_segments: bool) -> None:
    _raise_start(self, min(offset, max(self.high_watermark - 1, 0)), delete_segments)


def _ends_where_it_ended(self: impl.CheckpointedLog, clean: bool, point: int, start: int, mark: int) -> None:
    """After a clean stop a log is not emptied, though it ends below its start."""
    end = self.end
    _load(self, clean, point, start, mark)
    if clean and end < start:
        self.end = self.recovery_point = self.flushed = end


def _leaves_the_mark(self: impl.CheckpointedLog, offset: int) -> bool:
    """The high watermark is lowered with the recovery point alone."""
    mark = self.high_watermark
    cut = _truncate(self, offset)
    if cut and self.recovery_point < self.end:
        self.high_watermark = mark
    return cut


_raise_start, _truncate = impl.CheckpointedLog.raise_start, impl.CheckpointedLog.truncate

RARE = [
    of_impl("counts of 16 bits", "CKP-3", "65537 entries are one", _patched(entries=_counts_of_16_bits)),
    of_impl("offsets as doubles", "CKP-5 CKP-1", "above 2^53 they are rounded", _patched(encode=_as_doubles)),
    of_impl("partitions of 16 bits", "CKP-5", "partition 2^15 is negative", _patched(decode=_partitions_of_16_bits)),
    of_impl("epochs of 32 bits", "CKP-8", "a broker epoch wraps", _patched(decode_marker=_epochs_of_32_bits)),
    of_impl("epoch -1 is none", "CKP-8", "the marker tells it", _patched(decode_marker=_no_epoch_is_minus_one)),
    of_impl(
        "points of 32 bits",
        "CKP-11",
        "above 2^31 - 1 they wrap",
        _broker(checkpoint_recovery_points=_points_of_32_bits),
    ),
    of_impl("two logs", "CKP-11", "a third has no recovery point", _broker(checkpoint_recovery_points=_points_of_two)),
    of_impl(
        "starts above 0", "CKP-12", "whatever the first segment is", _broker(checkpoint_log_starts=_starts_above_zero)
    ),
    of_impl(
        "a clean stop is remembered",
        "CKP-10",
        "by the second start after it",
        _broker(begin_loading=_remembers_a_clean_stop),
    ),
    of_impl(
        "marks of those with a start",
        "CKP-13",
        "where any log start is checkpointed, the others have no high watermark",
        _broker(load=_reads_two),
    ),
    of_impl(
        "below the high watermark",
        "CKP-12",
        "a start is raised to one below it",
        _log(raise_start=_stays_below_the_mark),
    ),
    of_impl("ends where it ended", "CKP-15", "below its start, after a clean stop", _log(load=_ends_where_it_ended)),
    of_impl(
        "a mark above the end",
        "CKP-13",
        "a truncation above the recovery point leaves the high watermark",
        _log(truncate=_leaves_the_mark),
    ),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE
