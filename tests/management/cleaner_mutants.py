"""Faults of the log cleaner's manager: Kafka's own bugs, and slips that anyone may make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from struct import pack, unpack
from typing import Any
from unittest.mock import patch

from kafkaspec.contract.machine import Json, Machine, Refused
from kafkaspec.impl.management import cleaner as impl
from kafkaspec.impl.management import cleaner_driver
from kafkaspec.impl.management.checkpoints import TopicPartition
from kafkaspec.language import LoadedModel, action, define, load, require
from kafkaspec.models.management import cleaner as model
from kafkaspec.models.management.cleaner import WAITING, Doing, Partition, Status, Thread, User
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import of_impl, of_model, of_spec, with_fault
from kafkaspec.spec.common.cleanable_log import CleanableOffsets
from kafkaspec.spec.common.cleaner_state import Cleaner
from kafkaspec.spec.common.cleaning_state import Aborted
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.kafka import ILLEGAL_STATE, LONG_MAX, NO_TIMESTAMP
from kafkaspec.spec.management import cleaner as spec

# ---- faults of the implementation


def _manager(**methods: Any) -> Callable[[], cleaner_driver.Driver]:
    """The driver with other methods in its manager."""

    def make() -> cleaner_driver.Driver:
        manager = type("Faulty", (impl.LogCleanerManager,), methods)
        driver: cleaner_driver.Driver = type("FaultyDriver", (cleaner_driver.Driver,), {"manager_class": manager})()
        return driver

    return make


def _patched(module: Any = impl, **functions: Any) -> Callable[[], cleaner_driver.Driver]:
    """The driver with other functions in a module, while it is called."""

    class Faulty(cleaner_driver.Driver):
        def reset(self, arguments: Mapping[str, Any]) -> None:
            with patch.multiple(module, **functions):
                super().reset(arguments)

        def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
            with patch.multiple(module, **functions):
                return super().apply(name, arguments)

    return Faulty


Manager = impl.LogCleanerManager


def _forgets_the_abort(self: Manager, partitions: Iterable[TopicPartition]) -> None:
    for partition in partitions:
        if partition not in self.in_progress:
            raise impl.Refusal("CLN-16", ILLEGAL_STATE, f"State for partition {partition} should exist.")
        if isinstance(self.in_progress[partition], impl.LogCleaningPaused):
            Manager.done_deleting(self, [partition])
        del self.in_progress[partition]


def _pauses_once(self: Manager, partition: TopicPartition, operation: str = "abortAndPauseCleaning") -> impl.Caller:
    if isinstance(self.in_progress.get(partition), impl.LogCleaningPaused):
        return impl.Caller(operation, partition)
    return Manager.abort_and_pause_cleaning(self, partition, operation)


def _claims_nothing(self: Manager) -> list[TopicPartition]:
    return [p for p, log in self.logs.items() if not log.compact and p not in self.in_progress]


def _ignores_the_stable_offset(log: impl.CleanableLog, checkpoint: int | None, now: int) -> impl.OffsetsToClean:
    found = _cleanable_offsets(log, checkpoint, now)
    bounds = [log.segments[-1].base_offset]
    if log.min_compaction_lag_ms > 0:
        closed = impl.non_active_segments_from(log, found.first_dirty_offset)
        bounds += [s.base_offset for s in closed if s.largest_timestamp > now - log.min_compaction_lag_ms]
    return replace(found, first_uncleanable_dirty_offset=max(found.first_dirty_offset, min(bounds)))


_cleanable_offsets, _log_to_clean, _between = impl.cleanable_offsets, impl.log_to_clean, impl.segments_between


def _cleans_the_active_segment(log: impl.CleanableLog, checkpoint: int | None, now: int) -> impl.OffsetsToClean:
    found = _cleanable_offsets(log, checkpoint, now)
    if log.min_compaction_lag_ms > 0:
        return found
    return replace(found, first_uncleanable_dirty_offset=max(found.first_dirty_offset, log.last_stable_offset))


def _takes_the_youngest_too(log: impl.CleanableLog, checkpoint: int | None, now: int) -> impl.OffsetsToClean:
    return _cleanable_offsets(log, checkpoint, now + 1)


def _heals_to_the_end(log: impl.CleanableLog, checkpoint: int | None, now: int) -> impl.OffsetsToClean:
    found = _cleanable_offsets(log, checkpoint, now)
    if checkpoint is not None and checkpoint > log.log_end_offset:
        return impl.OffsetsToClean(log.log_end_offset, log.log_end_offset, True)
    return found


def _counts_the_floor_of_nothing(log: impl.CleanableLog, start: int, end: int) -> Sequence[impl.CleanableSegment]:
    return _between(log, start, end + 1) if start == end else _between(log, start, end)


def _refuses_ranges_the_wrong_way_round(
    log: impl.CleanableLog, start: int, end: int
) -> Sequence[impl.CleanableSegment]:
    if end < start:
        raise ValueError(f"invalid range {start}..{end}")
    return _between(log, start, end)


def _int32(n: int) -> int:
    return (n + 2**31) % 2**32 - 2**31


def _adds_in_32_bits(segments: Iterable[impl.CleanableSegment]) -> int:
    return _int32(sum(s.size for s in segments))


def _starts_at_the_minimum(self: impl.LogToClean) -> bool:
    forced = self.need_compaction_now and self.cleanable_bytes > 0
    return forced or self.cleanable_ratio >= self.log.min_cleanable_dirty_ratio


def _forces_without_bytes(self: impl.LogToClean) -> bool:
    return self.need_compaction_now or self.cleanable_ratio > self.log.min_cleanable_dirty_ratio


def _never_forces(self: impl.LogToClean) -> bool:
    return self.cleanable_ratio > self.log.min_cleanable_dirty_ratio


def _with_property(test: Any) -> type[impl.LogToClean]:
    return type("Faulty", (impl.LogToClean,), {"is_cleanable": property(test)})


def _ignores_uncleanable(self: Manager, partition: TopicPartition, log: impl.CleanableLog) -> bool:
    return partition not in self.in_progress


def _heals_what_it_cleans(self: Manager, now: int, stats: Any, prefer: Any = None) -> impl.LogToClean | None:
    before = {d: self._read(d) for d in self.checkpoints}
    found = Manager.grab_filthiest_compacted_log(self, now, stats, prefer)
    for directory, entries in before.items():
        after = self._read(directory)
        if entries is not None and after is not None and after != entries:
            kept = {p: o for p, o in entries.items() if p in self.logs}
            if found is not None and found.partition in after:
                kept[found.partition] = after[found.partition]
            self._write(directory, kept)
    return found


def _keeps_the_source(self: Manager, partition: TopicPartition, source: str, dest: str) -> None:
    offset = (self._read(source) or {}).get(partition)
    Manager.alter_checkpoint_dir(self, partition, source, dest)
    if offset is not None and source != dest:
        self.update_checkpoints(source, {partition: offset})


def _leaves_the_mark(self: Manager, partition: TopicPartition, source: str, dest: str) -> None:
    marked = partition in self.uncleanable.get(source, ())
    Manager.alter_checkpoint_dir(self, partition, source, dest)
    if marked:
        self.uncleanable[source].add(partition)


def _truncates_nothing(self: Manager, directory: str, partition: TopicPartition, offset: int) -> None:
    return


def _raises_too(self: Manager, directory: str, partition: TopicPartition, offset: int) -> None:
    log, entries = self.logs.get(partition), self._read(directory)
    if log is not None and log.compact and entries is not None and partition in entries:
        self._write(directory, {**entries, partition: offset})


def _keeps_the_unknown(self: Manager, directory: str, update: Any, remove: TopicPartition | None = None) -> None:
    entries = self._read(directory)
    if entries is not None:
        self._write(directory, {**{p: o for p, o in entries.items() if p != remove}, **update})


def _goes_on_writing(self: Manager, directory: str) -> None:
    return


def _signals_nobody(self: Manager) -> None:
    return


def _one_signal_is_enough(self: Manager) -> None:
    self.signalled = self.waiting[:1]


def _checkpoints_an_aborted_cleaning(self: Manager, partition: TopicPartition, directory: str, end_offset: int) -> None:
    if partition in self.in_progress and not isinstance(self.in_progress[partition], impl.LogCleaningPaused):
        self.update_checkpoints(directory, {partition: end_offset})
    Manager.done_cleaning(self, partition, directory, end_offset)


def _lets_two_wait(self: Manager, partition: TopicPartition, operation: str = "abortAndPauseCleaning") -> impl.Caller:
    if isinstance(self.in_progress.get(partition), impl.LogCleaningAborted):
        return impl.Caller(operation, partition, waits=True)
    return Manager.abort_and_pause_cleaning(self, partition, operation)


def _abort_keeps_the_pause(self: Manager, partition: TopicPartition) -> impl.Caller:
    return self.abort_and_pause_cleaning(partition)


def _resumes_all_pauses(self: Manager, partitions: Iterable[TopicPartition]) -> None:
    for partition in partitions:
        Manager.resume_cleaning(self, [partition])
        if isinstance(self.in_progress.get(partition), impl.LogCleaningPaused):
            del self.in_progress[partition]


def _only_with_delete(self: Manager) -> list[TopicPartition]:
    logs: Any = self.logs
    taken = [p for p, log in logs.items() if log.compact and log.delete and self._is_free(p, log)]
    self.in_progress |= dict.fromkeys(taken, impl.LogCleaningInProgress())
    return taken


def _gauges_the_clean(self: Manager, directory: str, now: int) -> int:
    marked = (self.logs.get(p) for p in self.uncleanable.get(directory, ()))
    return sum(impl.total_size(log.segments[:-1]) for log in marked if log is not None)


def _maintains_one_directory(self: Manager) -> None:
    for directory in sorted(self.uncleanable)[:1]:
        self.uncleanable[directory] = {p for p in self.uncleanable[directory] if p in self.logs}


def _rolls_late(self: cleaner_driver.MemoryLog, now: int, size: int) -> None:
    fits, self.segment_bytes = self.segment_bytes, self.segment_bytes + size
    _append(self, now, size)
    self.segment_bytes = fits


_append = cleaner_driver.MemoryLog.append


def _counts_timestamps_of_0(log: impl.CleanableLog, first_dirty_offset: int, now: int) -> int:
    stamps = [s.first_batch_timestamp for s in impl.non_active_segments_from(log, first_dirty_offset)]
    return max(now - max(log.max_compaction_lag_ms, 0) - min(stamps, default=LONG_MAX), 0)


# ---- faults of the spec


def _fault(operation: str, body: Callable[..., Any]) -> Callable[[], Machine[Cleaner]]:
    return lambda: with_fault(spec.machine, operation, body)


def _resumes_the_aborted(state: Cleaner, partition: str) -> Cleaner | Refused:
    if isinstance(state.state(partition), Aborted):
        return state.with_state(partition, None)
    return spec.resume_cleaning(state, partition)


def _restart_empties_checkpoints(state: Cleaner) -> Cleaner:
    return replace(spec.restart(state), checkpoints=Frozen({d: Frozen() for d in state.checkpoints}))


def _grabs_above_the_stable_offset(state: Cleaner, partition: str, last_clean_offset: int | None) -> CleanableOffsets:
    offsets = spec.cleanable_offsets_of(state, partition, last_clean_offset)
    return replace(offsets, first_uncleanable_dirty_offset=state.logs[partition].log_end_offset)


# ---- faults of the models


def _retention_claims_nothing() -> LoadedModel:
    class Cleaner(model.Cleaner):
        @action("CLN-18", who="retention")
        def start_retention(s, u: User) -> None:
            require(not s.quiet, s.doing[u] == Doing.NOTHING)
            taken = {p for p in Partition if s.known[p] and not s.compact[p] and s.status[p] == Status.FREE}
            require(any(p in taken for p in Partition))
            s.next.doing[u] = Doing.RETAINING
            s.next.held[u] = taken

        @action("CLN-18", who="retention", fair="weak", per=("u",))
        def end_retention(s, u: User) -> None:
            require(s.doing[u] == Doing.RETAINING)
            s.next.held[u] = {p for p in Partition if False}
            s.end(u)

    return load(Cleaner)


def _pause_is_a_flag() -> LoadedModel:
    class Cleaner(model.Cleaner):
        @define
        def resume(s, u: User) -> None:
            s.next.pauses = {p: 0 if p in s.held[u] else s.pauses[p] for p in Partition}
            s.next.status = {p: Status.FREE if p in s.held[u] else s.status[p] for p in Partition}
            s.next.held[u] = {p for p in Partition if False}

    return load(Cleaner)


def _deleting_forgets_the_abort() -> LoadedModel:
    class Cleaner(model.Cleaner):
        @action("CLN-16", "CLN-12", who="cleaner thread", fair="weak", per=("t",))
        def done_deleting(s, t: Thread) -> None:
            require(any(p in s.deleting[t] for p in Partition))
            s.next.status = {p: Status.FREE if p in s.deleting[t] else s.status[p] for p in Partition}
            s.next.deleting[t] = {p for p in Partition if False}

    return load(Cleaner)


def _failure_leaves_the_pause() -> LoadedModel:
    class Cleaner(model.Cleaner):
        @action("CLN-33", who="truncation or move")
        def fail_holding(s, u: User) -> None:
            require(s.doing[u] == Doing.HOLDING)
            s.next.held[u] = {p for p in Partition if False}
            s.end(u)

    return load(Cleaner)


def _policy_changes_alone() -> LoadedModel:
    class Cleaner(model.Cleaner):
        @action("CLN-13", "CLN-33", who="operator", fair="weak", per=("u",))
        def abort_to_change(s, u: User, p: Partition) -> None:
            require(s.doing[u] == Doing.TO_CHANGE, s.target[u] == p)
            s.end(u)

    return load(Cleaner)


def _deletes_under_the_cleaner() -> LoadedModel:
    class Cleaner(model.Cleaner):
        @action("CLN-13", "CLN-33", who="deletion", fair="weak", per=("u",))
        def abort_to_delete(s, u: User, p: Partition) -> None:
            require(s.doing[u] == Doing.TO_DELETE, s.target[u] == p)
            s.next.doing[u] = Doing.DELETING

    return load(Cleaner)


def _signal_is_lost() -> LoadedModel:
    class Cleaner(model.Cleaner):
        @define
        def done(s, p: Partition) -> None:
            if s.status[p] == Status.IN_PROGRESS:
                s.next.status[p] = Status.FREE
            else:
                s.next.status[p] = Status.PAUSED
                s.next.pauses[p] = 1

    return load(Cleaner)


def _waiter_does_not_look() -> LoadedModel:
    class Cleaner(model.Cleaner):
        @action("CLN-12", who="waiter", fair="weak", per=("u",))
        def wake(s, u: User, p: Partition) -> None:
            require(s.doing[u] in WAITING, s.signalled[u], s.target[u] == p)
            s.next.signalled[u] = False
            s.next.doing[u] = Doing.HOLDING

    return load(Cleaner)


def _the_dirtiest_may_wait() -> LoadedModel:
    class Cleaner(model.Cleaner):
        @action("CLN-4", who="cleaner thread")
        def grab_filthiest(s, t: Thread, p: Partition) -> None:
            require(s.idle(t), s.free(p), s.dirt[p] > 0)
            s.next.status[p] = Status.IN_PROGRESS
            s.next.dirt[p] = 0
            s.next.grabbed[p] = s.dirt[p]
            s.next.cleaning[t] = p

    return load(Cleaner)


def _two_clean_at_once() -> LoadedModel:
    class Cleaner(model.Cleaner):
        @define
        def free(s, p: Partition) -> bool:
            held = s.status[p] in (Status.ABORTED, Status.PAUSED)
            return not held and s.known[p] and s.compact[p] and not s.uncleanable[p]

    return load(Cleaner)


def _abort_keeps_a_pause() -> LoadedModel:
    class States(model.States):
        @define
        def keeps(s, p: Partition) -> bool:
            return s.status[p] == Status.ABORTED

    return load(States)


def _unstable_is_cleaned() -> LoadedModel:
    class Offsets(model.Offsets):
        @define
        def uncleanable(s) -> int:
            return max(s.dirty(), s.active)

    return load(Offsets)


def _truncation_keeps_the_checkpoint() -> LoadedModel:
    class Offsets(model.Offsets):
        @action("CLN-27", "CLN-33", who="follower")
        def truncate_checkpoint(s) -> None:
            require(s.truncating)
            s.next.truncating = False

    return load(Offsets)


MUTANTS = [
    of_impl(
        "done deleting forgets the abort",
        "CLN-16 CLN-12",
        "the state is removed though somebody waits for a pause",
        _manager(done_deleting=_forgets_the_abort),
        "KAFKA-6568",
    ),
    of_impl(
        "pause is a flag",
        "CLN-11",
        "a second pause is not counted",
        _manager(abort_and_pause_cleaning=_pauses_once),
        "KAFKA-7441",
    ),
    of_impl(
        "resume ends every pause",
        "CLN-14 CLN-1",
        "the first resume frees what somebody else still holds",
        _manager(resume_cleaning=_resumes_all_pauses),
        "KAFKA-7441",
    ),
    of_impl(
        "retention claims nothing",
        "CLN-18",
        "retention takes its logs without pausing their cleaning",
        _manager(pause_cleaning_for_non_compacted_partitions=_claims_nothing),
        "KAFKA-7322",
    ),
    of_impl(
        "unstable records are cleaned",
        "CLN-8",
        "the last stable offset does not bound cleaning",
        _patched(cleanable_offsets=_ignores_the_stable_offset),
        "KAFKA-13194",
    ),
    of_impl(
        "the active segment is cleaned",
        "CLN-8",
        "only the last stable offset bounds cleaning",
        _patched(cleanable_offsets=_cleans_the_active_segment),
    ),
    of_impl(
        "a millisecond too young",
        "CLN-8",
        "a segment exactly at the minimum lag and one more millisecond is cleaned",
        _patched(cleanable_offsets=_takes_the_youngest_too),
    ),
    of_impl(
        "a bad checkpoint heals to the end",
        "CLN-9",
        "a checkpoint beyond the log is taken for all clean",
        _patched(cleanable_offsets=_heals_to_the_end),
    ),
    of_impl(
        "an empty range has a segment",
        "CLN-5",
        "from = to gives the segment that holds it",
        _patched(segments_between=_counts_the_floor_of_nothing),
        "KAFKA-9826",
    ),
    of_impl(
        "a range the wrong way round fails",
        "CLN-8",
        "a first dirty offset above the active segment throws",
        _patched(segments_between=_refuses_ranges_the_wrong_way_round),
        "KAFKA-9133",
    ),
    of_impl("bytes in 32 bits", "CLN-5", "sums of sizes overflow", _patched(total_size=_adds_in_32_bits), "KAFKA-6030"),
    of_impl(
        "the minimum ratio is enough",
        "CLN-3",
        ">= instead of >",
        _patched(LogToClean=_with_property(_starts_at_the_minimum)),
    ),
    of_impl(
        "forced without bytes",
        "CLN-3",
        "an overdue log is grabbed though nothing of it can be cleaned",
        _patched(LogToClean=_with_property(_forces_without_bytes)),
    ),
    of_impl(
        "never forced",
        "CLN-3 CLN-7",
        "max.compaction.lag.ms forces nothing",
        _patched(LogToClean=_with_property(_never_forces)),
    ),
    of_impl(
        "missing timestamps make a log overdue",
        "CLN-7 CLN-6",
        "timestamps of 0 and -1 count as the oldest",
        _patched(compaction_delay_ms=_counts_timestamps_of_0),
    ),
    of_impl(
        "uncleanable is ignored",
        "CLN-2 CLN-24",
        "a marked partition is grabbed again",
        _manager(_is_free=_ignores_uncleanable),
    ),
    of_impl(
        "marks stay in other directories",
        "CLN-25",
        "maintenance looks at one directory",
        _manager(maintain_uncleanable_partitions=_maintains_one_directory),
    ),
    of_impl(
        "the gauge counts what is clean",
        "CLN-34",
        "the uncleanable bytes are all bytes before the active segment",
        _manager(uncleanable_bytes=_gauges_the_clean),
    ),
    of_impl(
        "healed only when cleaned",
        "CLN-10",
        "a forced update is kept for the grabbed log alone",
        _manager(grab_filthiest_compacted_log=_heals_what_it_cleans),
        "KAFKA-6266",
    ),
    of_impl(
        "truncation keeps the checkpoint",
        "CLN-27",
        "a checkpoint above the truncated log stays",
        _manager(maybe_truncate_checkpoint=_truncates_nothing),
        "KAFKA-3330",
    ),
    of_impl(
        "truncation raises the checkpoint",
        "CLN-27",
        "a checkpoint below the active segment is set to its base",
        _manager(maybe_truncate_checkpoint=_raises_too),
    ),
    of_impl(
        "the source keeps its entry",
        "CLN-28 CLN-30",
        "a moved partition stands in both directories",
        _manager(alter_checkpoint_dir=_keeps_the_source),
        "KAFKA-8362",
    ),
    of_impl(
        "the mark stays behind",
        "CLN-28",
        "a moved partition stays uncleanable in its old directory",
        _manager(alter_checkpoint_dir=_leaves_the_mark),
    ),
    of_impl(
        "entries of the deleted stay",
        "CLN-26",
        "an update keeps entries of partitions that are gone",
        _manager(update_checkpoints=_keeps_the_unknown),
        "KAFKA-1819",
    ),
    of_impl(
        "a failed directory is written on",
        "CLN-29",
        "the failure of a directory changes nothing",
        _manager(handle_log_dir_failure=_goes_on_writing),
    ),
    of_impl("nobody is signalled", "CLN-12", "done tells no waiter", _manager(_signal_all=_signals_nobody)),
    of_impl(
        "one waiter is signalled",
        "CLN-12",
        "the first waiter is woken, whichever partition it waits for",
        _manager(_signal_all=_one_signal_is_enough),
    ),
    of_impl(
        "an aborted cleaning is checkpointed",
        "CLN-15",
        "the end offset is written though the cleaning was stopped",
        _manager(done_cleaning=_checkpoints_an_aborted_cleaning),
    ),
    of_impl(
        "two wait for one", "CLN-11", "a second abort waits as well", _manager(abort_and_pause_cleaning=_lets_two_wait)
    ),
    of_impl(
        "abort keeps its pause", "CLN-13", "an abort does not resume", _manager(abort_cleaning=_abort_keeps_the_pause)
    ),
    of_impl(
        "compact-only logs keep their segments",
        "CLN-19",
        "only logs with delete in their policy are taken for deletion",
        _manager(deletable_logs=_only_with_delete),
        "KAFKA-7400",
    ),
    of_impl(
        "rolls late", "CLN-32", "one batch beyond segment.bytes", _patched(cleaner_driver.MemoryLog, append=_rolls_late)
    ),
    of_spec(
        "what is aborted can be resumed",
        "CLN-14 CLN-1 CLN-17",
        "a waiter is left behind",
        _fault("resumeCleaning", _resumes_the_aborted),
    ),
    of_spec(
        "checkpoints do not outlive a restart",
        "CLN-31",
        "all is cleaned again",
        _fault("restart", _restart_empties_checkpoints),
    ),
    of_spec(
        "everything may be cleaned",
        "CLN-8",
        "up to the log end",
        _fault("cleanableOffsets", _grabs_above_the_stable_offset),
    ),
    of_model(
        "Cleaner: retention claims nothing",
        "CLN-18 CLN-20",
        "retention and compaction meet after a change of policy",
        _retention_claims_nothing,
        "KAFKA-7322",
    ),
    of_model(
        "Cleaner: pause is a flag",
        "CLN-21 CLN-14 CLN-23",
        "one resume undoes all pauses",
        _pause_is_a_flag,
        "KAFKA-7441",
    ),
    of_model(
        "Cleaner: deleting forgets the abort",
        "CLN-16 CLN-12 CLN-22",
        "the waiter waits for ever",
        _deleting_forgets_the_abort,
        "KAFKA-6568",
    ),
    of_model(
        "Cleaner: failure leaves the pause",
        "CLN-33 CLN-21 CLN-23",
        "a truncation that fails does not resume",
        _failure_leaves_the_pause,
        "KAFKA-3123",
    ),
    of_model(
        "Cleaner: the policy changes alone",
        "CLN-33",
        "a cleaning goes on after compact was dropped",
        _policy_changes_alone,
        "KAFKA-12840",
    ),
    of_model(
        "Cleaner: deletes under the cleaner", "CLN-33 CLN-20", "deletion does not abort", _deletes_under_the_cleaner
    ),
    of_model("Cleaner: the signal is lost", "CLN-12 CLN-22", "done tells no waiter", _signal_is_lost),
    of_model("Cleaner: the waiter does not look", "CLN-12 CLN-20", "any signal will do", _waiter_does_not_look),
    of_model("Cleaner: the dirtiest may wait", "CLN-4", "any dirty log is grabbed", _the_dirtiest_may_wait),
    of_model("Cleaner: two clean at once", "CLN-20 CLN-2", "what is in progress is taken again", _two_clean_at_once),
    of_model("States: abort keeps a pause", "CLN-13", "nobody will resume it", _abort_keeps_a_pause),
    of_model(
        "Offsets: the unstable is cleaned", "CLN-8", "up to the active segment", _unstable_is_cleaned, "KAFKA-13194"
    ),
    of_model(
        "Offsets: truncation keeps the checkpoint",
        "CLN-27 CLN-33",
        "what is appended again is taken for clean",
        _truncation_keeps_the_checkpoint,
        "KAFKA-3330",
    ),
]

_COMPARED = "no claim of the model notices, but the comparison with the spec in every state of it does"

SURVIVORS = {
    "Cleaner.maintain_uncleanable: no effect 1": "a mark of a log that is gone matters only if the log comes back",
    "Cleaner.wake: no guard 1": "only who waits is signalled",
    "States.grab: guard 1, other member": _COMPARED,
    "States.grab: no effect 1": _COMPARED,
    "States.take_deletable: no effect 1": _COMPARED,
    "States.take_deletable: effect 1, other member": _COMPARED,
    "States.done_cleaning: guard 1, other member": _COMPARED,
    "States.done_cleaning: no effect 4": _COMPARED,
    "States.done_deleting: guard 1, other member": _COMPARED,
    "States.abort_and_pause: effect 2, other member": _COMPARED,
    "States.maintain: no effect 1": _COMPARED,
    "States.restore: no effect 1": _COMPARED,
    "States.restore: effect 1, other value": _COMPARED,
    "States.restart: no effect 4": _COMPARED,
    "Offsets.truncate: guard 5, off by one": "fewer steps: to cut a later segment off as well leads to the same",
    "Offsets.truncate: guard 2, other parameter": "fewer steps: the log start may rise above the base afterwards",
}
"""Generated faults of the models that nobody can notice, and why."""


# ---- faults of range, boundary, depth, configuration and rare state
_offsets_of, _delay, _append = (
    impl.cleanable_offsets,
    impl.compaction_delay_ms,
    cleaner_driver.MemoryLog.append,
)


def _pauses_three_times(self: Manager, partition: TopicPartition, operation: str = "abortAndPauseCleaning") -> Any:
    """The count of pauses has two bits."""
    caller = Manager.abort_and_pause_cleaning(self, partition, operation)
    match self.in_progress.get(partition):
        case impl.LogCleaningPaused(n) if n > 3:
            self.in_progress[partition] = impl.LogCleaningPaused(3)
    return caller


def _lags_of_32_bits(log: impl.CleanableLog, checkpoint: int | None, now: int) -> impl.OffsetsToClean:
    lag = log.min_compaction_lag_ms
    with patch.object(log, "min_compaction_lag_ms", signed(lag, 32)):
        return _offsets_of(log, checkpoint, now)


def _up_to_the_end(log: impl.CleanableLog, checkpoint: int | None, now: int) -> impl.OffsetsToClean:
    """A checkpoint at the log end is outside."""
    if checkpoint is not None and checkpoint == log.log_end_offset > log.log_start_offset:
        return replace(_offsets_of(log, None, now), force_update_checkpoint=True)
    return _offsets_of(log, checkpoint, now)


def _zero_is_none(log: impl.CleanableLog, checkpoint: int | None, now: int) -> impl.OffsetsToClean:
    return _offsets_of(log, checkpoint or None, now)


def _adds_the_lag(log: impl.CleanableLog, first_dirty_offset: int, now: int) -> int:
    """When a segment is due is added in 64 bits."""
    stamps = [s.first_batch_timestamp for s in impl.non_active_segments_from(log, first_dirty_offset)]
    due = [signed(t + max(log.max_compaction_lag_ms, 0), 64) for t in stamps if t > 0]
    return max(now - min(due, default=LONG_MAX), 0)


def _min_for_max(log: impl.CleanableLog, first_dirty_offset: int, now: int) -> int:
    """Nothing is due before the minimum lag is over."""
    lag = max(log.max_compaction_lag_ms, log.min_compaction_lag_ms)
    with patch.object(log, "max_compaction_lag_ms", lag):
        return _delay(log, first_dirty_offset, now)


def _as_float(self: impl.LogToClean) -> float:
    ratio: float = unpack("f", pack("f", float(self.cleanable_bytes) / float(self.total_bytes)))[0]
    return ratio


def _pauses_one(self: Manager) -> list[TopicPartition]:
    taken = Manager.pause_cleaning_for_non_compacted_partitions(self)
    for p in taken[1:]:
        del self.in_progress[p]
    return taken[:1]


def _takes_two(self: Manager) -> list[TopicPartition]:
    taken = Manager.deletable_logs(self)
    for p in taken[2:]:
        del self.in_progress[p]
    return taken[:2]


def _counts_one(self: Manager, directory: str, now: int) -> int:
    marked = self.uncleanable.get(directory, set())
    with patch.dict(self.uncleanable, {directory: set(sorted(marked)[:1])}):
        return Manager.uncleanable_bytes(self, directory, now)


def _moves_no_zero(self: Manager, partition: TopicPartition, source: str, dest: str) -> None:
    """An entry at offset 0 counts as none."""
    entries = self._read(source)
    if entries is not None and entries.get(partition) == 0:
        if partition in self.uncleanable.get(source, ()):
            self.uncleanable[source].remove(partition)
            self.mark_partition_uncleanable(dest, partition)
        return
    Manager.alter_checkpoint_dir(self, partition, source, dest)


def _keeps_a_pause(self: Manager, partitions: Iterable[TopicPartition]) -> None:
    """A resume of three pauses and more leaves one."""
    for partition in partitions:
        state = self.in_progress.get(partition)
        Manager.resume_cleaning(self, [partition])
        if isinstance(state, impl.LogCleaningPaused) and state.paused_count > 2:
            self.in_progress[partition] = impl.LogCleaningPaused(1)


def _waits_in_32_bits(self: cleaner_driver.MemoryLog, now: int, size: int) -> None:
    """How long a segment has waited wraps after 25 days."""
    active = self.segments[-1]
    waited = now - active.first_batch_timestamp
    if not active.size or signed(waited, 32) == waited:
        _append(self, now, size)
        return
    first, active.first_batch_timestamp = active.first_batch_timestamp, now - max(signed(waited, 32), 0)
    _append(self, now, size)
    active.first_batch_timestamp = first


def _as_old_as_allowed(self: cleaner_driver.MemoryLog, now: int, size: int) -> None:
    """A segment rolls when it is as old as it may be."""
    active = self.segments[-1]
    first, active.first_batch_timestamp = active.first_batch_timestamp, active.first_batch_timestamp - bool(active.size)
    _append(self, now, size)
    if active.size > size or first != NO_TIMESTAMP:
        active.first_batch_timestamp = first


RARE = [
    of_impl(
        "three pauses",
        "CLN-11 CLN-1",
        "a fourth is not counted",
        _manager(abort_and_pause_cleaning=_pauses_three_times),
    ),
    of_impl(
        "one pause is left",
        "CLN-14 CLN-1",
        "of three and more, by one resume",
        _manager(resume_cleaning=_keeps_a_pause),
    ),
    of_impl("lags of 32 bits", "CLN-8", "a minimum lag of 25 days wraps", _patched(cleanable_offsets=_lags_of_32_bits)),
    of_impl(
        "up to the end", "CLN-9", "a checkpoint at the log end is outside", _patched(cleanable_offsets=_up_to_the_end)
    ),
    of_impl("a checkpoint of 0", "CLN-9", "is none", _patched(cleanable_offsets=_zero_is_none)),
    of_impl(
        "no lag is a lag",
        "CLN-7",
        "the greatest long is added to the time, and wraps",
        _patched(compaction_delay_ms=_adds_the_lag),
    ),
    of_impl(
        "the minimum for the maximum",
        "CLN-7",
        "where the maximum lag is the smaller",
        _patched(compaction_delay_ms=_min_for_max),
    ),
    of_impl("ratios as floats", "CLN-5", "of 32 bits", _patched(impl.LogToClean, cleanable_ratio=property(_as_float))),
    of_impl(
        "one is paused",
        "CLN-18",
        "a second log that only retention works on is not claimed",
        _manager(pause_cleaning_for_non_compacted_partitions=_pauses_one),
    ),
    of_impl("two are deletable", "CLN-19", "a third is not taken", _manager(deletable_logs=_takes_two)),
    of_impl("one is counted", "CLN-34", "of several uncleanable logs", _manager(uncleanable_bytes=_counts_one)),
    of_impl(
        "0 does not move", "CLN-28", "an entry at offset 0 stays behind", _manager(alter_checkpoint_dir=_moves_no_zero)
    ),
    of_impl(
        "waits of 32 bits",
        "CLN-32",
        "a segment that waited 25 days does not roll",
        _patched(cleaner_driver.MemoryLog, append=_waits_in_32_bits),
    ),
    of_impl(
        "as old as allowed",
        "CLN-32",
        "a segment rolls a millisecond early",
        _patched(cleaner_driver.MemoryLog, append=_as_old_as_allowed),
    ),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE

UNSEEN: dict[str, str] = {
    "as old as allowed": "not found yet: nothing noticed it, nor the judge in 20,000 calls",
}
