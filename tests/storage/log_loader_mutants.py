"""Faults of loading a log, each to be caught."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import crc32c

from kafkaspec.contract.machine import Machine, Step
from kafkaspec.impl.storage import log_loader as impl
from kafkaspec.impl.storage import log_loader_driver
from kafkaspec.impl.storage.log_loader import LoadedOffsets, LogLoader, Replacement
from kafkaspec.impl.storage.producer_state import ProducerStateManager
from kafkaspec.impl.storage.segment import CRC_FROM, NoIndexFile, OffsetOverflow, Segment, headers
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.storage import log_loader as model
from kafkaspec.models.storage.log_loader import Doing, N, New, Stage
from kafkaspec.mutants.code import signed
from kafkaspec.mutants.mutant import Mutant, of_impl, of_model, with_fault
from kafkaspec.spec.common.frozen import Frozen
from kafkaspec.spec.common.kafka import INT_MAX, LONG_MAX
from kafkaspec.spec.storage import log_loader as spec
from kafkaspec.spec.storage.log_loader import CLEANED, DELETED, INDEX, LOG, SWAP, TIME_INDEX, TXN_INDEX

# ---- faults of the implementation


def _loader(**methods: Any) -> Callable[[], log_loader_driver.Driver]:
    loader = type("Faulty", (LogLoader,), methods)
    return type("FaultyDriver", (log_loader_driver.Driver,), {"loader_class": loader})


def _replacement(**methods: Any) -> Callable[[], log_loader_driver.Driver]:
    replacement = type("Faulty", (Replacement,), methods)
    return type("FaultyDriver", (log_loader_driver.Driver,), {"replacement_class": replacement})


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


def _renames_logs_alone(self: LogLoader, renames: int | None = None) -> int:
    swaps = sorted(name for name in self.names() if name.endswith(SWAP))[:renames]
    for name in swaps:
        if name.endswith(LOG + SWAP):
            self.disk.rename(self.path(name), self.path(name.removesuffix(SWAP)))
        else:
            self.disk.remove(self.path(name))
    return len(swaps)


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
    try:
        return segment.recover(impl._Listener(producers), self._assign)
    except OffsetOverflow as found:
        raise impl.SegmentOverflow(segment) from found


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


def _cuts_what_overflows(self: LogLoader, segment: Segment) -> int:
    """As what is not whole."""
    try:
        return LogLoader.recover(self, segment)
    except impl.SegmentOverflow:
        return segment.truncate_to(segment.base_offset + INT_MAX + 1)


def _looks_at_every_segment(self: LogLoader) -> None:
    """While they are opened."""
    LogLoader.load_segments(self)
    for segment in self.segments.values():
        if not segment.offset_index.can_append(max(segment.read_next_offset() - 1, segment.base_offset)):
            raise impl.SegmentOverflow(segment)


def _a_piece_for_each_batch(self: LogLoader, segment: Segment) -> list[Segment]:
    data, new = segment.data(), list[Segment]()
    for h in headers(data):
        new.append(self._open(h.base_offset, CLEANED))
        new[-1].append(h.last_offset, data[h.position : h.position + h.size])
    return new


def _only_whole_batches(self: LogLoader, segment: Segment) -> list[Segment]:
    """Up to the first that is not whole."""
    data, size = segment.data(), segment.size
    for h in headers(data):
        if crc32c.crc32c(data[h.position + CRC_FROM : h.position + h.size]) != h.crc:
            segment.size = h.position
            break
    try:
        return LogLoader.pieces(self, segment)
    finally:
        segment.size = size


def _stays_beside_its_pieces(self: LogLoader, segment: Segment) -> None:
    """Unless the first one has its name."""
    ends = (LOG, INDEX, TIME_INDEX)
    there = {end: self.disk.read(segment.path(end)) for end in ends}
    LogLoader.split(self, segment)
    if segment.base_offset not in self.segments:
        for end, data in there.items():
            self.disk.write(segment.path(end), data)


def _recovers_once(self: LogLoader) -> None:
    """Not again with the pieces."""
    if not vars(self).get("begun"):
        vars(self)["begun"] = True
        LogLoader.recover_unflushed(self)


def _opens_once(self: LogLoader) -> None:
    """After a split it goes on as if all were open."""
    if not vars(self).get("opened"):
        vars(self)["opened"] = True
        LogLoader.load_segments(self)


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
    of_impl("an overflow is cut", "LDR-20", "as what is not whole", _loader(recover=_cuts_what_overflows)),
    of_impl(
        "every overflow is noticed",
        "LDR-20",
        "after a clean stop too",
        _loader(load_segments=_looks_at_every_segment),
    ),
    of_impl("a piece for each batch", "LDR-21", "even if it fits", _loader(pieces=_a_piece_for_each_batch)),
    of_impl("whole batches alone", "LDR-21", "a split cuts, too", _loader(pieces=_only_whole_batches)),
    of_impl(
        "what was split stays",
        "LDR-22",
        "beside its pieces, records come twice",
        _loader(split=_stays_beside_its_pieces),
    ),
    of_impl("recovered once", "LDR-23", "a piece is not recovered", _loader(recover_unflushed=_recovers_once)),
    of_impl("opened once", "LDR-23", "the segments above are missing", _loader(load_segments=_opens_once)),
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


# ---- faults of range, boundary, depth, configuration and rare state


def _points_of_32_bits(self: LogLoader) -> LoadedOffsets:
    self.recovery_point = signed(self.recovery_point, 32)
    return LogLoader.load(self)


def _starts_of_32_bits(self: LogLoader) -> LoadedOffsets:
    self.log_start = max(signed(self.log_start, 32), 0)
    return LogLoader.load(self)


def _above_the_greatest_cleaned(self: LogLoader) -> list[str]:
    """A .swap is removed from the greatest offset of a .cleaned on, not from the smallest."""
    greatest = max((impl.offset_from(n) or 0 for n in self.names() if n.endswith(CLEANED)), default=LONG_MAX)
    kept = {
        n: self.disk.read(self.path(n))
        for n in self.names()
        if n.endswith(SWAP) and (impl.offset_from(n) or 0) < greatest
    }
    LogLoader.remove_temporary_files(self)
    for name, data in kept.items():
        self.disk.write(self.path(name), data)
    return list(kept)


def _replaces_as_the_first(self: LogLoader, swaps: Sequence[str]) -> None:
    """What is replaced ends where the first new segment ends."""
    logs = sorted(n for n in swaps if n.endswith(LOG + SWAP))
    LogLoader.remove_replaced_segments(self, logs[:1])
    for name in logs[1:]:  # their indexes are made all the same
        self._open(impl.offset_from(name) or 0, SWAP).read_next_offset()


def _from_the_one_before(self: LogLoader, start: int, end: int) -> list[Segment]:
    """A recovery point at a segment's base lies in the segment before."""
    return LogLoader.between(self, max(start - 1, 0) if end == LONG_MAX else start, end)


def _deletes_one(self: LogLoader, gone: Sequence[Segment]) -> None:
    """Behind a segment that was cut the next one alone is deleted."""
    LogLoader.delete(self, gone if len(gone) == len(self.segments) else gone[:1])


def _empties_at_the_start(self: LogLoader) -> LoadedOffsets:
    """A log that ends at the log start is emptied, as one that ends below it."""
    start = self.log_start
    if self.segments and start and self.clean and self.segments[max(self.segments)].read_next_offset() == start:
        self.delete(list(self.segments.values()))
        self.epochs.clear_and_flush()
    return LogLoader.recover_log(self)


def _keeps_the_point(self: LogLoader) -> LoadedOffsets:
    """After a clean stop a recovery point above the end stays."""
    found = LogLoader.recover_log(self)
    return replace(found, recovery_point=max(found.recovery_point, self.recovery_point)) if self.clean else found


def _fits_to_the_segments(self: LogLoader) -> None:
    """The leader epochs begin where the first segment does, if that is higher."""
    LogLoader.load_segments(self)
    first = min(self.segments, default=0)
    fit = self.epochs.fit
    self.epochs.fit = lambda start, end: fit(max(first, start), end)  # type: ignore[method-assign,assignment]


def _assigns_16_bits(self: LogLoader, epoch: int, offset: int) -> None:
    LogLoader._assign(self, signed(epoch, 16), offset) if signed(epoch, 16) >= 0 else None


def _counts_three(self: LogLoader, producers: ProducerStateManager, log_start: int, log_end: int, clean: bool) -> None:
    """A directory without snapshots gets one for each segment."""
    if clean and not producers.snapshots:
        for offset in (*sorted(self.segments), log_end):
            producers.end_offset = offset
            producers.take_snapshot()
        return
    LogLoader.rebuild(self, producers, log_start, log_end, clean)


def _one_snapshot(self: LogLoader, producers: ProducerStateManager, log_start: int, log_end: int, clean: bool) -> None:
    """One of its snapshots that is above the log end stays, the latest."""
    latest = max(producers.snapshots, default=None)
    LogLoader.rebuild(self, producers, log_start, log_end, clean)
    if latest is not None and latest > log_end + 1:
        producers.disk.write(producers.path(latest), b"")


def _cuts_one_early(self: LogLoader, segment: Segment) -> list[Segment]:
    """A batch that just fits begins a piece."""
    data, new = segment.data(), list[Segment]()
    for h in headers(data):
        if not new or not new[-1].offset_index.can_append(h.last_offset + 1):
            new.append(self._open(h.base_offset, CLEANED))
        new[-1].append(h.last_offset, data[h.position : h.position + h.size])
    return new


class _ThreeAtMost(Replacement):
    """Of the old segments the first two are renamed."""

    def renames(self) -> Any:
        third = sorted(self.old)[2:]
        return ((a, b) for a, b in super().renames() if not (b.endswith(DELETED) and _base_of(a) in third))


def _base_of(path: str) -> int:
    return int(path.rpartition("/")[2].partition(".")[0])


RARE = [
    of_impl("points of 32 bits", "LDR-11", "a recovery point above 2^31 - 1 wraps", _loader(load=_points_of_32_bits)),
    of_impl("starts of 32 bits", "LDR-9 LDR-10", "a log start above 2^31 - 1 wraps", _loader(load=_starts_of_32_bits)),
    of_impl(
        "from the greatest .cleaned on",
        "LDR-2",
        "a .swap between two .cleaned stays",
        _loader(remove_temporary_files=_above_the_greatest_cleaned),
    ),
    of_impl(
        "replaces as the first",
        "LDR-3",
        "of several .swap the first says where what is replaced ends",
        _loader(remove_replaced_segments=_replaces_as_the_first),
    ),
    of_impl(
        "from the one before",
        "LDR-7",
        "a recovery point at a segment's base lies in the one before",
        _loader(between=_from_the_one_before),
    ),
    of_impl("one behind the cut", "LDR-7", "the next segment alone is deleted", _loader(delete=_deletes_one)),
    of_impl(
        "emptied at the start", "LDR-9", "a log that ends at the log start", _loader(recover_log=_empties_at_the_start)
    ),
    of_impl("a point above the end", "LDR-11", "stays after a clean stop", _loader(recover_log=_keeps_the_point)),
    of_impl(
        "epochs begin with the segments",
        "LDR-12",
        "the first segment's base stands for the checkpointed log start",
        _loader(load_segments=_fits_to_the_segments),
    ),
    of_impl("epochs of 16 bits", "LDR-8", "epoch 2^15 is none", _loader(_assign=_assigns_16_bits)),
    of_impl("a snapshot for each", "LDR-13", "not for the last two segments alone", _loader(rebuild=_counts_three)),
    of_impl("a snapshot beyond", "LDR-13", "one far above the log end stays", _loader(rebuild=_one_snapshot)),
    of_impl("cut one early", "LDR-21", "a batch that just fits begins a piece", _loader(pieces=_cuts_one_early)),
    of_impl(
        "two are deleted",
        "LDR-14",
        "a third old segment keeps its name",
        lambda: type("FaultyDriver", (log_loader_driver.Driver,), {"replacement_class": _ThreeAtMost})(),
    ),
]
"""Those that show at the end of a number's range, with many entries, or after a rare sequence."""

MUTANTS += RARE
