"""The metadata log of one controller: what Raft knows of it, and Kafka's log on a disk below.

What a step changes is kept until the step's end: then the files follow, in order, and are flushed. Between them goes
the quorum state: nobody has a record of an epoch on its disk that does not know the epoch there.

Source: KafkaRaftLog, Kafka 4.3.0; KIP-595, KIP-630.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.controller import raft
from kafkaspec.impl.controller.quorum_parts.batches import StoredBatch, encoded, split
from kafkaspec.impl.storage.log import LogConfig, UnifiedLog
from kafkaspec.simulate.scenario import Clock

DIRECTORY = "__cluster_metadata-0"


class DurableLog(raft.Log):
    """Raft's log, batch by batch. Whoever appends records says before of how many a batch is."""

    def __init__(self, voters: Sequence[int], disk: Disk, config: LogConfig, clock: Clock) -> None:
        """Loads the files, after whatever end."""
        super().__init__([(-1, tuple(sorted({*voters})))], [raft.BOOTSTRAP])
        self.clock = clock
        self.soon: list[Callable[[], None]] = []
        self.files = UnifiedLog(DIRECTORY, disk, config, clock, self._schedule, clean=False)
        self.batches: list[StoredBatch] = []
        self.coming: deque[tuple[int, StoredBatch | None]] = deque()
        """of batches whose records come next: how many, and the batch if it came as one"""
        self.unfinished: list[raft.Record] = []
        self.leader = -1
        """whose changes are written, if this node leads"""
        self.undone: list[Callable[[], None]] = []
        """what the files do not have yet"""

    def _schedule(self, delay_ms: int, task: Callable[[], None]) -> None:
        """What a scheduler is given: at once is at the end of the step, later than a run lasts is never."""
        if delay_ms == 0:
            self.soon.append(task)

    @property
    def before(self) -> raft.Position | None:
        """The snapshot behind which it begins."""
        return self.snapshots[0] if self.start else None

    # ---- the start
    def load(self, snapshot: raft.Position | None, voters: Sequence[int]) -> None:
        """What the files have, behind the latest snapshot. If they do not go on where it ends, nothing of them stays: a
        crash came between the two (RFT-24)."""
        there = [b for base in self.files.bases for b in split(self.files.segments[base].data())]
        if snapshot is not None:
            if not self._goes_on(there, snapshot):
                there = []
                self.files.truncate_fully_and_start_at(snapshot.offset)
                self.files.flush(force_flush_active_segment=True)
            super().replace(snapshot, tuple(sorted({*voters})))
            there = [b for b in there if b.base >= snapshot.offset]
        for batch in there:
            self.batches.append(batch)
            for record in batch.entries:
                super().append(record)
        self.write()

    def _goes_on(self, there: Sequence[StoredBatch], at: raft.Position) -> bool:
        before = [*takewhile(lambda b: b.base < at.offset, there)]
        if before:
            return (before[-1].last + 1, before[-1].epoch) == at
        return (there[0].base if there else self.files.log_end) == at.offset

    # ---- what Raft does
    def expect(self, count: int) -> None:
        """The next records are one batch."""
        self.coming.append((count, None))

    def take(self, batches: Iterable[StoredBatch]) -> None:
        """The next records are these batches."""
        self.coming.extend((len(b.entries), b) for b in batches)

    def append(self, record: raft.Record) -> None:
        super().append(record)
        self.unfinished.append(record)
        count, batch = self.coming[0] if self.coming else (1, None)
        if len(self.unfinished) < count:
            return
        if self.coming:
            self.coming.popleft()
        entries, self.unfinished = tuple(self.unfinished), []
        if batch is None:
            base = self.end - count
            data = encoded(base, record.epoch, entries, self.clock(), self.leader)
            batch = StoredBatch(base, self.end - 1, record.epoch, data, entries)
        self.batches.append(batch)
        self.undone.append(lambda: self.write_batch(batch))

    def truncate(self, end: int) -> None:
        super().truncate(end)
        while self.batches and self.batches[-1].last >= end:
            self.batches.pop()
        self.undone.append(lambda: self.cut_files(end))

    def drop(self, at: raft.Position) -> None:
        super().drop(at)
        self.batches = [b for b in self.batches if b.base >= at.offset]
        self.undone.append(lambda: self._drop_files(at.offset))

    def replace(self, at: raft.Position, voters: tuple[int, ...]) -> None:
        super().replace(at, voters)
        self.batches = []
        self.undone.append(lambda: self._begin_files(at.offset))

    def read(self, offset: int, to: int | None = None) -> tuple[raft.Record, ...]:
        """None: whoever reads wants batches."""
        return ()

    # ---- batches
    def between(self, offset: int, end: int) -> list[StoredBatch]:
        """The batches from an offset on, below another."""
        first = bisect_left(self.batches, offset, key=lambda b: b.last)
        return [*takewhile(lambda b: b.last < end, self.batches[first:])]

    def bytes_from(self, offset: int, most: int) -> bytes:
        """The batches from an offset on: one, and as many more as there is room for."""
        first = bisect_left(self.batches, offset, key=lambda b: b.last)
        out = bytearray()
        for batch in self.batches[first:]:
            if out and len(out) + len(batch.data) > most:
                break
            out += batch.data
        return bytes(out)

    def voters_at(self, offset: int) -> tuple[int, ...]:
        """By the records below an offset."""
        return [v for at, v in self.history if at < offset][-1]

    # ---- the files
    def write(self) -> None:
        """Have the files follow."""
        undone, self.undone = self.undone, []
        for task in undone:
            task()
        while self.soon:
            self.soon.pop(0)()

    def write_batch(self, batch: StoredBatch) -> None:
        self.files.append_as_follower(batch.data, batch.epoch)

    def cut_files(self, end: int) -> None:
        """Also after a power failure: what was cut does not come back below records of a later epoch, nor a segment
        that was removed behind a hole. A flush of the log has the names of new segments alone outlive it (LOG-35)."""
        self.files.truncate_to(min(end, self.files.log_end))
        self.files.flush(force_flush_active_segment=True)
        self.files.disk.flush_directory(DIRECTORY)

    def _drop_files(self, start: int) -> None:
        self.files.update_high_watermark(start)
        self.files.maybe_increment_log_start_offset(start)
        self.files.delete_old_segments()

    def _begin_files(self, start: int) -> None:
        self.files.truncate_fully_and_start_at(start)
        self.files.flush(force_flush_active_segment=True)
