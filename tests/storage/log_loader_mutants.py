"""Faults of loading a log, each to be caught."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kafkaspec.contract.machine import Machine, Step
from kafkaspec.impl.storage import log_loader as impl
from kafkaspec.impl.storage.log_loader import LoadedOffsets, LogLoader, Replacement
from kafkaspec.impl.storage.producer_state import ProducerStateManager
from kafkaspec.impl.storage.segment import NoIndexFile, Segment
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.storage import log_loader as model
from kafkaspec.models.storage.log_loader import Doing, N, New, Stage
from kafkaspec.mutants.matrix import Mutant, of_impl, of_model, with_fault
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.kafka import LONG_MAX
from kafkaspec.spec.storage import log_loader as spec
from kafkaspec.spec.storage.log_loader import CLEANED, DELETED, INDEX, LOG, SWAP, TIME_INDEX, TXN_INDEX

# ---- faults of the implementation


def _loader(**methods: Any) -> Callable[[], impl.Driver]:
    loader = type("Faulty", (LogLoader,), methods)
    return type("FaultyDriver", (impl.Driver,), {"loader_class": loader})


def _replacement(**methods: Any) -> Callable[[], impl.Driver]:
    replacement = type("Faulty", (Replacement,), methods)
    return type("FaultyDriver", (impl.Driver,), {"replacement_class": replacement})


def _keeps_the_deleted(self: LogLoader) -> list[str]:
    gone = {n: self.disk.read(self.path(n)) for n in self.names() if n.endswith(DELETED)}
    swaps = LogLoader.remove_temporary_files(self)
    for name, data in gone.items():
        self.disk.write(self.path(name), data)
    return swaps


def _completes_every_swap(self: LogLoader) -> list[str]:
    swaps = {n: self.disk.read(self.path(n)) for n in self.names() if n.endswith(SWAP)}
    LogLoader.remove_temporary_files(self)
    for name, data in swaps.items():
        self.disk.write(self.path(name), data)
    return list(swaps)


def _drops_every_swap(self: LogLoader) -> list[str]:
    for name in LogLoader.remove_temporary_files(self):
        self.disk.remove(self.path(name))
    return []


def _finishes_the_cleaned(self: LogLoader) -> list[str]:
    for name in self.names():
        if name.endswith(CLEANED):
            self.disk.rename(self.path(name), self.path(name.removesuffix(CLEANED) + SWAP))
    return LogLoader.remove_temporary_files(self)


def _keeps_what_is_replaced(self: LogLoader, swaps: Sequence[str]) -> None:
    return None


def _replaces_by_name(self: LogLoader, swaps: Sequence[str]) -> None:
    """Only the segments of the same base offsets."""
    for name in swaps:
        path = self.path(name.removesuffix(SWAP))
        if self.disk.exists(path):
            self.disk.remove(path)


def _renames_logs_alone(self: LogLoader) -> None:
    for name in self.names():
        if name.endswith(LOG + SWAP):
            self.disk.rename(self.path(name), self.path(name.removesuffix(SWAP)))
        elif name.endswith(SWAP):
            self.disk.remove(self.path(name))


def _keeps_orphans(self: LogLoader) -> None:
    ends = (INDEX, TIME_INDEX, TXN_INDEX)
    orphans = {n: self.disk.read(self.path(n)) for n in self.names() if n.endswith(ends)}
    LogLoader.load_segments(self)
    for name, data in orphans.items():
        if not self.disk.exists(self.path(name)):
            self.disk.write(self.path(name), data)


def _needs_no_index(self: LogLoader) -> None:
    def makes_one(segment: Segment, new_time_index: bool = False) -> None:
        try:
            check(segment, new_time_index)
        except NoIndexFile:
            _ = segment.offset_index, segment.time_index

    check = Segment.sanity_check
    Segment.sanity_check = makes_one  # type: ignore[method-assign,assignment]
    try:
        LogLoader.load_segments(self)
    finally:
        Segment.sanity_check = check  # type: ignore[method-assign]


def _trusts_every_stop(self: LogLoader) -> LoadedOffsets:
    self.clean, clean = True, self.clean
    try:
        found = LogLoader.recover_log(self)
    finally:
        self.clean = clean
    return found if clean else replace(found, recovery_point=min(self.recovery_point, found.log_end))


def _starts_above_the_recovery_point(self: LogLoader, start: int, end: int) -> list[Segment]:
    found = LogLoader.between(self, start, end)
    return [s for s in found if end != LONG_MAX or s.base_offset >= start]


def _keeps_what_follows_a_cut(self: LogLoader, gone: Sequence[Segment]) -> None:
    if len(gone) == len(self.segments):
        LogLoader.delete(self, gone)


def _recovered_to_the_end(self: LogLoader) -> LoadedOffsets:
    found = LogLoader.recover_log(self)
    return replace(found, recovery_point=found.log_end)


def _knows_no_epochs(self: LogLoader, epoch: int, offset: int) -> None:
    return None


def _takes_no_snapshot(self: LogLoader, segment: Segment) -> int:
    producers = ProducerStateManager(self.directory, self.disk)
    self.rebuild(producers, self.log_start, segment.base_offset, clean=False)
    return segment.recover(impl._Listener(producers), self._assign)


def _log_start_is_no_matter(self: LogLoader) -> LoadedOffsets:
    self.log_start, start = 0, self.log_start
    try:
        return LogLoader.recover_log(self)
    finally:
        self.log_start = start


def _old_ones_first(self: Replacement) -> Any:
    for base in sorted(self.old):
        yield from self._change(base, "", DELETED)
    for base in sorted(self.new, reverse=True):
        yield from self._change(base, CLEANED, SWAP)
    for base in sorted(self.new):
        yield from self._change(base, SWAP, "")


def _lowest_first(self: Replacement) -> Any:
    for base in sorted(self.new):
        yield from self._change(base, CLEANED, SWAP)
    for base in sorted(self.old):
        yield from self._change(base, "", DELETED)
    for base in sorted(self.new):
        yield from self._change(base, SWAP, "")


# ---- faults of the models


def _swaps_from_the_first_on() -> LoadedModel:
    class Replacement(model.Replacement):
        @action("LDR-14", who="cleaner")
        def swap_log(s, n: New) -> None:
            require(s.doing == Doing.SWAPPING, s.new[n] == Stage.CLEANED)
            require(all(s.new[m] == Stage.SWAP for m in range(1, N + 1) if m < n))
            s.next.new[n] = Stage.HALF

        @action("LDR-14", who="cleaner")
        def swap_indexes(s, n: New) -> None:
            require(s.doing == Doing.SWAPPING, s.new[n] == Stage.HALF)
            s.next.new[n] = Stage.SWAP
            if n == N:
                s.next.doing = Doing.RETIRING

    return load(Replacement)


def _completes_what_is_unfinished() -> LoadedModel:
    class Replacement(model.Replacement):
        @action("LDR-2", who="loader")
        def drop_unfinished(s, n: New) -> None:
            require(s.doing == Doing.DROPPING, s.new[n] == Stage.HALF)
            s.next.new[n] = Stage.SWAP

        @action("LDR-1", who="loader")
        def begin_tidying(s) -> None:
            require(s.doing == Doing.DROPPING)
            s.next.doing = Doing.TIDYING

    return load(Replacement)


def _tidies_first() -> LoadedModel:
    class Replacement(model.Replacement):
        @action("LDR-1", who="loader")
        def begin_tidying(s) -> None:
            require(s.doing == Doing.DROPPING)
            s.next.doing = Doing.TIDYING

    return load(Replacement)


def _retires_before_all_are_swapped() -> LoadedModel:
    class Replacement(model.Replacement):
        @action("LDR-14", who="cleaner")
        def retire(s, o: model.Old) -> None:
            require(s.doing in (Doing.SWAPPING, Doing.RETIRING), s.old[o])
            s.next.old[o] = False

    return load(Replacement)


def _replaces_nothing() -> LoadedModel:
    class Replacement(model.Replacement):
        @action("LDR-4", who="loader")
        def begin_renaming(s) -> None:
            require(s.doing == Doing.REPLACING)
            s.next.doing = Doing.RENAMING

    return load(Replacement)


# ---- faults of the spec


def _fault(
    operation: str, body: Callable[..., Step[spec.Directory, spec.Ends]]
) -> Callable[[], Machine[spec.Directory]]:
    return lambda: with_fault(spec.machine, operation, body)


def _believes_the_recovery_point(
    state: spec.Directory, clean: bool, recovery_point: int, log_start: int
) -> Step[spec.Directory, spec.Ends]:
    files, found = spec.loaded(state.files, clean, recovery_point, log_start)
    return Step(spec.Directory(Frozen(files)), replace(found, recovery_point=recovery_point))


MUTANTS = [
    of_impl("the deleted stay", "LDR-1", "for ever", _loader(remove_temporary_files=_keeps_the_deleted)),
    of_impl(
        "the cleaned are finished",
        "LDR-1 LDR-2",
        "a torn compaction counts",
        _loader(remove_temporary_files=_finishes_the_cleaned),
    ),
    of_impl(
        "every swap is completed",
        "LDR-2",
        "whatever .cleaned is there",
        _loader(remove_temporary_files=_completes_every_swap),
        "KAFKA-6264",
    ),
    of_impl(
        "every swap is dropped",
        "LDR-4 LDR-3",
        "though its old segments may be gone",
        _loader(remove_temporary_files=_drops_every_swap),
    ),
    of_impl(
        "what is replaced stays",
        "LDR-3",
        "records come twice",
        _loader(remove_replaced_segments=_keeps_what_is_replaced),
    ),
    of_impl(
        "replaced by name",
        "LDR-3",
        "other segments of the range stay",
        _loader(remove_replaced_segments=_replaces_by_name),
    ),
    of_impl(
        "only logs get their names", "LDR-4", "indexes are dropped", _loader(rename_swapped_files=_renames_logs_alone)
    ),
    of_impl("orphans stay", "LDR-5", "indexes of nothing", _loader(load_segments=_keeps_orphans)),
    of_impl("no index is needed", "LDR-6", "an empty one is made", _loader(load_segments=_needs_no_index)),
    of_impl("every stop is clean", "LDR-7", "nothing is recovered", _loader(recover_log=_trusts_every_stop)),
    of_impl(
        "recovery starts above",
        "LDR-7",
        "the segment of the recovery point is not read",
        _loader(between=_starts_above_the_recovery_point),
    ),
    of_impl("what follows a cut stays", "LDR-7", "behind a hole", _loader(delete=_keeps_what_follows_a_cut)),
    of_impl(
        "recovered means flushed",
        "LDR-11",
        "the recovery point jumps to the end",
        _loader(recover_log=_recovered_to_the_end),
        "KAFKA-10101",
    ),
    of_impl(
        "epochs are not recovered",
        "LDR-8 LDR-12",
        "the cache misses what was not flushed",
        _loader(_assign=_knows_no_epochs),
    ),
    of_impl(
        "no snapshot after recovery",
        "LDR-8 LDR-13",
        "the next segment is replayed again",
        _loader(recover=_takes_no_snapshot),
    ),
    of_impl(
        "any log start will do",
        "LDR-9 LDR-10",
        "a log may end below its start",
        _loader(recover_log=_log_start_is_no_matter),
    ),
    of_impl("old ones first", "LDR-14", "a crash leaves neither", _replacement(renames=_old_ones_first)),
    of_impl(
        "lowest first", "LDR-14", "a crash leaves half of a split", _replacement(renames=_lowest_first), "KAFKA-6264"
    ),
    Mutant(
        "the recovery point is believed",
        ("LDR-11",),
        "beyond the end",
        "spec",
        _fault("load", _believes_the_recovery_point),
    ),
    of_model(
        "Replacement: from the first on",
        "LDR-14 LDR-2",
        "half of a split is kept",
        _swaps_from_the_first_on,
        "KAFKA-6264",
    ),
    of_model(
        "Replacement: the unfinished is completed",
        "LDR-2",
        "its indexes are not there",
        _completes_what_is_unfinished,
        "KAFKA-6264",
    ),
    of_model("Replacement: tidies first", "LDR-2 LDR-15", "a crash leaves an unfinished .swap alone", _tidies_first),
    of_model("Replacement: retires early", "LDR-14", "a crash leaves neither", _retires_before_all_are_swapped),
    of_model("Replacement: nothing is replaced", "LDR-3 LDR-4", "records come twice", _replaces_nothing),
]

SURVIVORS: dict[str, str] = {}
"""Generated faults of the model that nobody can notice, and why."""
