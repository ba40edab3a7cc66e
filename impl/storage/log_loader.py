"""Loading a log after a stop, over the real files of a partition's directory.

Segments, leader epochs and producer state are the ones of their own modules; here is the order in which the loader
looks at files, removes, renames, recovers and splits them. What Kafka hands to a scheduler is done when `load` is
through. `Replacement` is the swap of a cleaner or of a split, a rename at a time.

Source: LogLoader, LocalLog.replaceSegments and splitOverflowedSegment and UnifiedLog.rebuildProducerState, Kafka 4.3.0;
Kafka Internals, ch. 03, "Crash recovery & startup: LogLoader".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.storage.leader_epochs import LeaderEpochCache, LeaderEpochCheckpoint
from kafkaspec.impl.storage.producer_state import SUFFIX as SNAPSHOT
from kafkaspec.impl.storage.producer_state import ProducerStateManager
from kafkaspec.impl.storage.segment import (
    INDEX,
    LOG,
    TIME_INDEX,
    TRANSACTION_INDEX,
    Header,
    NoIndexFile,
    OffsetOverflow,
    ProducerStates,
    Segment,
    file_name,
    headers,
)
from kafkaspec.impl.storage.transaction_index import AbortedTxn, CorruptIndex
from kafkaspec.spec.common.kafka import LONG_MAX

R = TypeVar("R")

INDEXES = (INDEX, TIME_INDEX, TRANSACTION_INDEX)
DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"
METADATA_DELETED = ".checkpoint.deleted"


@dataclass(frozen=True)
class LoadedOffsets:
    """What a load finds out."""

    log_start: int
    recovery_point: int
    log_end: int


def offset_from(name: str) -> int | None:
    """The number before the first dot of a name; None if it is no number."""
    head, dot, _ = name.partition(".")
    return int(head) if dot and head.isdecimal() and head.isascii() else None


@dataclass
class LogLoader:
    """One load of a directory. `clean`: there was a clean-shutdown marker; `recovery_point` and `log_start` as
    checkpointed, 0 where they are not. OSError, StorageError come through."""

    directory: str
    disk: Disk
    clean: bool
    recovery_point: int = 0
    log_start: int = 0
    max_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    now: Callable[[], int] = lambda: 0
    segments: dict[int, Segment] = field(default_factory=dict)
    cut: list[int] = field(default_factory=list)
    """the segments, by base offset, of which bytes were cut"""
    made: set[int] = field(default_factory=set)
    """the pieces, by base offset, that splits have made"""

    def load(self) -> LoadedOffsets:
        """All passes. [LDR-11, LDR-12]"""
        self.later: list[Callable[[], None]] = []
        self.epochs = LeaderEpochCache(LeaderEpochCheckpoint(self.directory, self.disk), self.later.append)
        self.producers = self._producer_state()
        self.swap()
        self.without_overflow(self.load_segments)
        recovered = self.without_overflow(self.recover_log)
        self.segments[max(self.segments)].resize_indexes()
        first = max(self.log_start, min(self.segments))
        self.epochs.fit(self.log_start, recovered.log_end)
        self.producers.remove_stray_snapshots(sorted(self.segments))
        self.rebuild(self.producers, first, recovered.log_end, self.clean)
        for task in self.later:
            task()
        return LoadedOffsets(first, max(first, recovered.recovery_point), recovered.log_end)

    # ---- files

    def swap(self, renames: int | None = None) -> int:
        """The first three passes; of the last one at most `renames` renames, all with None. Returns their number."""
        swaps = self.remove_temporary_files()
        self.remove_replaced_segments(swaps)
        return self.rename_swapped_files(renames)

    def path(self, name: str) -> str:
        return f"{self.directory}/{name}"

    def names(self) -> list[str]:
        return self.disk.files(self.directory)

    def _open(self, base: int, suffix: str = "") -> Segment:
        return Segment(
            self.directory,
            base,
            self.disk,
            max_index_bytes=self.max_index_bytes,
            index_interval_bytes=self.index_interval_bytes,
            clock=self.now,
            suffix=suffix,
        )

    def _producer_state(self) -> ProducerStateManager:
        return ProducerStateManager(self.directory, self.disk)

    def remove_temporary_files(self) -> list[str]:
        """Remove what was deleted or not finished; the .swap files that are left. [LDR-1, LDR-2, LDR-15]"""
        swaps, cleaned = [], []
        for name in self.names():
            if name.endswith(DELETED) and not name.endswith(METADATA_DELETED):
                self.disk.remove(self.path(name))
            elif name.endswith(CLEANED):
                cleaned.append(name)
            elif name.endswith(SWAP):
                swaps.append(name)
        least = min((offset_from(n) or 0 for n in cleaned), default=LONG_MAX)
        unfinished = [n for n in swaps if (offset_from(n) or 0) >= least]
        for name in (*unfinished, *cleaned):  # in this order: a crash must not leave an unfinished .swap alone
            self.disk.remove(self.path(name))
        return [n for n in swaps if n not in unfinished]

    def remove_replaced_segments(self, swaps: Sequence[str]) -> None:
        """Remove the files that the .swap replace. To know where one ends its index is opened, and made if it is not
        there. [LDR-3]"""
        new = [self._open(offset_from(n) or 0, SWAP) for n in swaps if n.endswith(LOG + SWAP)]
        if not new:
            return
        first, end = min(s.base_offset for s in new), max(s.read_next_offset() for s in new)
        for name in self.names():
            offset = offset_from(name)
            if not name.endswith(SWAP) and offset is not None and first <= offset < end:
                self.disk.remove(self.path(name))

    def rename_swapped_files(self, renames: int | None = None) -> int:
        """Give .swap files their names: at most this many, all with None. How many there were. [LDR-4, LDR-15]"""
        swaps = sorted(name for name in self.names() if name.endswith(SWAP))[:renames]
        for name in swaps:
            self.disk.rename(self.path(name), self.path(name.removesuffix(SWAP)))
        return len(swaps)

    # ---- segments

    def load_segments(self) -> None:
        """Remove indexes of no segment, and open the segments, recovering those that need it. Raises SegmentOverflow.
        [LDR-5, LDR-6]"""
        self.segments.clear()
        for name in self.names():
            base = offset_from(name)
            if base is None:
                continue
            if name.endswith(INDEXES):
                if not self.disk.exists(self.path(file_name(base, LOG))):
                    self.disk.remove(self.path(name))
            elif name.endswith(LOG):
                new_time_index = not self.disk.exists(self.path(file_name(base, TIME_INDEX)))
                segment = self._open(base)
                try:
                    segment.sanity_check(new_time_index)
                except (NoIndexFile, CorruptIndex):
                    self.recover(segment)
                self.segments[base] = segment

    def recover(self, segment: Segment) -> int:
        """Recover one segment; the bytes that were cut. Raises SegmentOverflow. [LDR-6, LDR-8, LDR-20]"""
        producers = self._producer_state()
        self.rebuild(producers, self.log_start, segment.base_offset, clean=False)
        try:
            cut = segment.recover(_Listener(producers), self._assign)
        except OffsetOverflow as found:
            raise SegmentOverflow(segment) from found
        producers.take_snapshot()
        if cut:
            self.cut.append(segment.base_offset)
        return cut

    def _assign(self, epoch: int, offset: int) -> None:
        """Add a leader epoch with its first offset if it is above those that are known. [LDR-8]"""
        if not self.epochs.epochs or epoch > self.epochs.epochs[-1]:
            self.epochs.assign(epoch, offset)

    def between(self, start: int, end: int) -> list[Segment]:
        """From the segment that holds `start` to the one below `end`; none if both are one. [LDR-7]"""
        floor = max((b for b in self.segments if b <= start), default=-1)
        return [self.segments[b] for b in sorted(self.segments) if floor <= b < end and start != end]

    def recover_log(self) -> LoadedOffsets:
        """Recover what may not be on the disk, and find the log's end; an empty segment where there is none.
        [LDR-9, LDR-10, LDR-11]"""
        self.recover_unflushed()
        end = self.segments[max(self.segments)].read_next_offset() if self.segments else None
        if end is not None and end < self.log_start:
            self.delete(list(self.segments.values()))
            self.epochs.clear_and_flush()
            self.producers.load_snapshots()
            self.producers.truncate_fully_and_start_at(self.log_start)
            end = None
        if not self.segments:
            self.segments[self.log_start] = self._open(self.log_start)
        if self.clean and end is not None:
            return LoadedOffsets(self.log_start, end, end)
        end = self.segments[max(self.segments)].read_next_offset() if end is None else end
        return LoadedOffsets(self.log_start, min(self.recovery_point, end), end)

    def recover_unflushed(self) -> None:
        """The segments from the recovery point on, up to the first that is cut. [LDR-7]"""
        unflushed = [] if self.clean else self.between(self.recovery_point, LONG_MAX)
        for n, segment in enumerate(unflushed):
            if self.recover(segment):
                self.delete(unflushed[n + 1 :])
                break

    def delete(self, gone: Sequence[Segment]) -> None:
        """Segments and their snapshots."""
        for segment in gone:
            del self.segments[segment.base_offset]
            for end in (LOG, *INDEXES, SNAPSHOT):
                path = self.path(file_name(segment.base_offset, end))
                if self.disk.exists(path):
                    self.disk.remove(path)

    # ---- a segment whose offsets overflow

    def without_overflow(self, work: Callable[[], R]) -> R:
        """Do it, from the beginning again after each segment that was split. No piece overflows, so that at most each
        segment that was there is split; raises PieceOverflow if one does. [LDR-23]"""
        while True:
            try:
                return work()
            except SegmentOverflow as found:
                if found.segment.base_offset in self.made:
                    raise PieceOverflow(f"{found.segment.path(LOG)}: a piece of a split overflows") from found
                self.split(found.segment)

    def split(self, segment: Segment) -> None:
        """Put segments in the place of one that overflows. [LDR-21, LDR-22]"""
        base, new = segment.base_offset, self.pieces(segment)
        self.made.update(p.base_offset for p in new)
        for piece in new:
            piece.become_inactive()
            piece.flush()
        replacement = Replacement(self.directory, self.disk, [base], [p.base_offset for p in new])
        replacement.run()
        self.later.append(replacement.remove_deleted)
        self.segments.pop(base, None)
        self.segments |= {p.base_offset: self._open(p.base_offset) for p in new}
        if base not in self.segments and base in self.producers.snapshots:
            self.later.append(self._retired_snapshot(base))

    def pieces(self, segment: Segment) -> list[Segment]:
        """The segments that a split makes, as .cleaned: each begins with the batch that the one before cannot hold."""
        data, new = segment.data(), list[Segment]()
        for h in headers(data):
            if not new or not new[-1].offset_index.can_append(h.last_offset):
                new.append(self._open(h.base_offset, CLEANED))
            new[-1].append(h.last_offset, data[h.position : h.position + h.size])
        return new

    def _retired_snapshot(self, offset: int) -> Callable[[], None]:
        """Give a snapshot another name; what removes it."""
        self.producers.snapshots.discard(offset)
        path = self.path(file_name(offset, SNAPSHOT))
        if not self.disk.exists(path):
            return lambda: None
        self.disk.rename(path, path + DELETED)
        return lambda: self.disk.remove(path + DELETED)

    # ---- producer state

    def rebuild(self, producers: ProducerStateManager, log_start: int, log_end: int, clean: bool) -> None:
        """The producer state at `log_end`, from the newest snapshot on; snapshots at the bases of the last two segments
        that are passed, and at the end. [LDR-13, PSM-20, PSM-28]"""
        last_two = sorted(self.segments)[-2:]
        if clean and not producers.snapshots:
            for offset in (*last_two, log_end):
                producers.end_offset = offset
                producers.take_snapshot()
            return
        nothing_to_read = not producers.producers and producers.end_offset >= log_end
        producers.truncate_and_reload(log_start, log_end, self.now())
        if log_end > producers.end_offset and not nothing_to_read:
            for segment in self.between(producers.end_offset, log_end):
                begin = max(segment.base_offset, producers.end_offset, log_start)
                producers.end_offset = begin
                if segment.base_offset in (*last_two, log_end):
                    producers.take_snapshot()
                self._replay(segment, begin, log_end, ProducerStates(producers))
        producers.end_offset = log_end
        producers.take_snapshot()

    @staticmethod
    def _read(segment: Segment, begin: int, end: int) -> Iterator[tuple[Header, bytes]]:
        """The batches from an offset on, up to the one that holds `end`."""
        at = segment.translate_offset(begin)
        if at is None:
            return
        data = segment.data()
        for h in headers(data, at.position):
            if h.last_offset >= end:
                return
            yield h, data[h.position : h.position + h.size]

    @classmethod
    def _replay(cls, segment: Segment, begin: int, end: int, state: ProducerStates) -> None:
        for header, body in cls._read(segment, begin, end):
            state.append(header, body)


class SegmentOverflow(Exception):
    """A segment has a batch whose offsets its indexes cannot hold."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment.base_offset)
        self.segment = segment


class PieceOverflow(Exception):
    """A segment that a split made has such a batch all the same. Splitting it again would have no end."""


class _Listener:
    """Recovery tells the producer state how far it came, batch by batch."""

    def __init__(self, producers: ProducerStateManager) -> None:
        self.producers = producers
        self.state = ProducerStates(producers)

    def append(self, header: Header, body: bytes) -> AbortedTxn | None:
        aborted = self.state.append(header, body)
        self.producers.end_offset = header.last_offset + 1
        return aborted


# ---- the swap of a cleaner or of a split -----------------------------------------------------------------------------
@dataclass
class Replacement:
    """New segments, written as .cleaned and flushed, take the place of old ones."""

    directory: str
    disk: Disk
    old: Sequence[int]
    new: Sequence[int]

    def renames(self) -> Iterator[tuple[str, str]]:
        """Every rename in its order, of the files that are there. [LDR-14]"""
        for base in sorted(self.new, reverse=True):
            yield from self._change(base, CLEANED, SWAP)
        for base in sorted(self.old):
            yield from self._change(base, "", DELETED)
        for base in sorted(self.new):
            yield from self._change(base, SWAP, "")

    def _change(self, base: int, before: str, after: str) -> Iterator[tuple[str, str]]:
        for end in (LOG, *INDEXES):
            source, target = (f"{self.directory}/{file_name(base, end, s)}" for s in (before, after))
            if self.disk.exists(source):
                yield source, target

    def run(self, most: int | None = None) -> int:
        """Make the renames, at most that many; returns how many were made. The directory is flushed at the end."""
        done = 0
        for source, target in self.renames():
            if done == most:
                return done
            self.disk.rename(source, target)
            done += 1
        self.disk.flush_directory(self.directory)
        return done

    def remove_deleted(self) -> None:
        """Remove the old segments, which have another name by now."""
        for base in self.old:
            for end in (LOG, *INDEXES):
                path = f"{self.directory}/{file_name(base, end, DELETED)}"
                if self.disk.exists(path):
                    self.disk.remove(path)
