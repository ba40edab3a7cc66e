"""Faults of recovery, each with the clause that it breaks."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from typing import Any
from unittest.mock import patch

from kafkaspec.impl.storage import recovery as impl
from kafkaspec.impl.storage import recovery_driver as driven
from kafkaspec.impl.storage.leader_epochs import LeaderEpochCache
from kafkaspec.impl.storage.log import Loader, Place, UnifiedLog
from kafkaspec.impl.storage.segment import Segment
from kafkaspec.language import action, require
from kafkaspec.models.storage import recovery as models
from kafkaspec.mutants.mutant import of_impl, of_model


class KeepsTheMarker(impl.LogDirectory):
    def take_marker(self) -> bool:
        return self.disk.exists(self.marker)


class IgnoresTheMarker(impl.LogDirectory):
    def take_marker(self) -> bool:
        super().take_marker()
        return False


class TrustsItsRecovery(impl.RecoverableLog):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.recovery_point = self.log_end


class ChecksPointsAfterARecovery(impl.LogDirectory):
    def start(self) -> impl.StartResult:
        found = super().start()
        self.points.write({self.partition: self.running.log_end})
        return found


class CutsNothing(impl.RecoveringLoader):
    def recover_unflushed(self) -> None:
        if self.most is not None:
            super().recover_unflushed()


class BeginsAbove(impl.RecoveringLoader):
    def between(self, start: int, end: int) -> list[Segment]:
        found = super().between(start, end)
        return found[1:] if end == 2**63 - 1 else found


class KeepsWhatIsBehind(impl.RecoveringLoader):
    def delete(self, gone: Any) -> None:
        pass


class Joins(impl.RecoveringLoader):
    def recover_unflushed(self) -> None:
        super().recover_unflushed()
        bases = sorted(self.segments)
        for a, b in itertools.pairwise(bases):
            if self.segments[a].read_next_offset() < b:
                self.delete([self.segments[c] for c in bases if c >= b])
                return


class SyncsNothing(impl.RecoverableLog):
    def _flush(self, offset: int, including: bool = False) -> None:
        self.recovery_point = max(self.recovery_point, min(offset, self.log_end))


class SaysTooMuch(impl.RecoverableLog):
    _flush = UnifiedLog._flush


class KeepsThePoint(impl.RecoverableLog):
    def _raise_log_start(self, offset: int) -> bool:
        before = self.recovery_point
        changed = super()._raise_log_start(offset)
        self.recovery_point = before
        return changed


class BelievesTheMark(impl.LogDirectory):
    def start(self) -> impl.StartResult:
        found = super().start()
        self.running.high_watermark = Place(self.marks.read().get(self.partition, 0))
        return found


class ForgetsTheStart(impl.LogDirectory):
    def checkpoint_log_starts(self) -> None:
        self.starts.write({})


class DropsWhatIsScheduled(impl.LogDirectory):
    def background(self) -> None:
        self.scheduled = []


class Epochs(LeaderEpochCache):
    def assign(self, epoch: int, start_offset: int) -> None:
        self._assign(epoch, start_offset)


class WritesEpochsLate(impl.LogDirectory):
    def append(self, batch: bytes, leader_epoch: int) -> None:
        self.running.epochs.__class__ = Epochs
        super().append(batch, leader_epoch)


class ForgetsTheCut(impl.LogDirectory):
    def truncate_to(self, offset: int) -> bool:
        return self.running.truncate_to(offset)


class StopsWithoutAFlush(impl.LogDirectory):
    def stop(self, broker_epoch: int = -1) -> None:
        self.running.flush = lambda force_flush_active_segment=False: None  # type: ignore[method-assign]
        super().stop(broker_epoch)


# ---- those that show after a rare sequence
class FlushesTheLastAlone(impl.RecoverableLog):
    def _flush(self, offset: int, including: bool = False) -> None:
        self.recovery_point, point = self.bases[bisect_left(self.bases, offset + including) - 1], self.recovery_point
        super()._flush(offset, including)
        self.recovery_point = max(point, self.recovery_point)


class FlushesNoNames(impl.RecoverableLog):
    def _flush(self, offset: int, including: bool = False) -> None:
        with patch.object(self.disk, "flush_directory", lambda path: None):
            super()._flush(offset, including)


class RecoversOne(impl.RecoveringLoader):
    def between(self, start: int, end: int) -> list[Segment]:
        found = super().between(start, end)
        return found[:1] if end == 2**63 - 1 else found


class GivesUpTheNextAlone(impl.RecoveringLoader):
    def delete(self, gone: Any) -> None:
        super().delete(gone[:1])


class Trims(impl.RecoveringLoader):
    def recover_unflushed(self) -> None:
        super().recover_unflushed()
        for a, b in itertools.pairwise(sorted(self.segments)):
            if self.segments[a].read_next_offset() > b:
                self.segments[a].truncate_to(b)


class MarksBelowTheStart(impl.LogDirectory):
    def start(self) -> impl.StartResult:
        found = super().start()
        self.running.high_watermark = Place(min(self.marks.read().get(self.partition, 0), found.log_end))
        return found


class BeginsAtTheEnd(impl.LogDirectory):
    def start(self) -> impl.StartResult:
        found = super().start()
        if found.log_start == found.log_end and not found.clean:
            self.points.write({})
        return found


class ChecksEveryCut(impl.LogDirectory):
    def truncate_to(self, offset: int) -> bool:
        cut = super().truncate_to(offset)
        self.checkpoint_recovery_points()
        return cut


class ChecksDeepCuts(impl.LogDirectory):
    def truncate_to(self, offset: int) -> bool:
        return super().truncate_to(offset) if offset < self.running.recovery_point else self.running.truncate_to(offset)


class StopsAboveTheActive(impl.LogDirectory):
    def stop(self, broker_epoch: int = -1) -> None:
        flush = self.running.flush
        self.running.flush = lambda force_flush_active_segment=False: flush()  # type: ignore[method-assign]
        super().stop(broker_epoch)


class DoesTheFirst(impl.LogDirectory):
    def background(self) -> None:
        flushes = [t for t in self.scheduled if "roll" in t.__qualname__]
        self.scheduled = [t for t in self.scheduled if t not in flushes[1:]]
        super().background()


class MarkerGoesAfterTheLoad(impl.LogDirectory):
    def take_marker(self) -> bool:
        return self.disk.exists(self.marker)

    def start(self) -> impl.StartResult:
        found = super().start()
        super().take_marker()
        return found


class LeavesThePointAtTheEnd(impl.RecoverableLog):
    def _raise_log_start(self, offset: int) -> bool:
        before = self.recovery_point
        changed = super()._raise_log_start(offset)
        if offset == self.log_end:
            self.recovery_point = before
        return changed


class CountsWhatItRecovered(impl.LogDirectory):
    def start(self) -> impl.StartResult:
        try:
            return super().start()
        except impl.Killed:
            bases = [int(n[:20]) for n in self.disk.files(self.directory) if n.endswith(".log")]
            self.points.write({self.partition: max(bases)})
            raise


def of_directory(make: type[impl.LogDirectory]) -> driven.Driver:
    """A driver of a faulty directory."""
    driver = driven.Driver()
    driver.directory_class = make
    driver.reset({})
    return driver


def of_log(make: type[impl.RecoverableLog]) -> driven.Driver:
    """A driver of a directory with a faulty log."""

    class Directory(impl.LogDirectory):
        log_class = make

    return of_directory(Directory)


def of_loader(make: type[Loader]) -> driven.Driver:
    """A driver of a directory with a faulty loader."""

    class Log(impl.RecoverableLog):
        loader_class = make

    return of_log(Log)


class MarkerStaysWhileLoading(models.Recovery):
    """KAFKA-10471."""

    @action("REC-5", "REC-6", who="broker")
    def open(s) -> None:
        require(s.doing == models.Doing.DOWN)
        s.next.clean = s.marker
        s.next.power = False
        s.next.doing = models.Doing.OPENED


class RecoveryPointJumps(models.Recovery):
    """KAFKA-10101."""

    @action("REC-8", who="broker")
    def load_recovered(s) -> None:
        require(s.doing == models.Doing.FIRST, s.end >= s.start_file)
        s.next.start = s.start_file
        s.next.point = s.end
        s.next.doing = models.Doing.UP


class KillsWhatIsNotFlushed(models.Recovery):
    @action("REC-2", "REC-9", who="operator")
    def kill(s) -> None:
        require(s.doing != models.Doing.DOWN)
        s.next.doing = models.Doing.DOWN
        s.next.scheduled = 0
        s.next.power = False
        s.next.one = s.safe
        s.next.end = s.safe if s.base == 0 else s.safe2


class CutIsNotCheckpointed(models.Recovery):
    @action("REC-15", who="follower")
    def truncate(s, o: models.Offset) -> None:
        require(s.doing == models.Doing.UP, o < s.end, s.start <= o, s.base == 0)
        s.next.end = o
        s.next.one = o
        s.next.safe = min(s.safe, o)
        s.next.point = min(s.point, o)
        s.next.kept = min(s.kept, o)


MUTANTS = [
    of_impl("marker stays", "REC-5 REC-6", "the marker is not removed",
            lambda: of_directory(KeepsTheMarker), "KAFKA-10471"),
    of_impl("marker unseen", "REC-6", "the marker is removed and not believed", lambda: of_directory(IgnoresTheMarker)),
    of_impl("trusted", "REC-8", "a recovery raises the point", lambda: of_log(TrustsItsRecovery), "KAFKA-10101"),
    of_impl("checked", "REC-9 REC-10", "a start checkpoints the log end",
            lambda: of_directory(ChecksPointsAfterARecovery)),
    of_impl("uncut", "REC-4 REC-7", "nothing is recovered", lambda: of_loader(CutsNothing)),
    of_impl("begins above", "REC-7 REC-4", "the recovery point's segment is left out", lambda: of_loader(BeginsAbove)),
    of_impl("kept behind", "REC-4 REC-7", "what is behind a cut stays", lambda: of_loader(KeepsWhatIsBehind)),
    of_impl("joined", "REC-19 REC-3", "what is behind a gap goes", lambda: of_loader(Joins)),
    of_impl("unsynced", "REC-10", "a flush writes nothing", lambda: of_log(SyncsNothing)),
    of_impl("too much", "REC-18", "a late flush says what it was told", lambda: of_log(SaysTooMuch)),
    of_impl("left behind", "REC-17", "the recovery point stays below", lambda: of_log(KeepsThePoint)),
    of_impl("believed mark", "REC-11", "any mark counts", lambda: of_directory(BelievesTheMark), "KAFKA-8306"),
    of_impl("start forgotten", "REC-12", "no log start is checkpointed", lambda: of_directory(ForgetsTheStart)),
    of_impl("dropped", "REC-13", "nothing scheduled is done", lambda: of_directory(DropsWhatIsScheduled), "KAFKA-9892"),
    of_impl("late epochs", "REC-14", "epochs stay in memory", lambda: of_directory(WritesEpochsLate), "KAFKA-16541"),
    of_impl("cut forgotten", "REC-15", "a cut is not checkpointed", lambda: of_directory(ForgetsTheCut)),
    of_impl("unflushed stop", "REC-16", "a stop flushes nothing", lambda: of_directory(StopsWithoutAFlush)),
    of_model("late removal", "REC-5", "the marker is there while the log is loaded",
             lambda: MarkerStaysWhileLoading, "KAFKA-10471"),
    of_model("jump", "REC-8", "a recovery raises the point to the end", lambda: RecoveryPointJumps, "KAFKA-10101"),
    of_model("killed", "REC-2", "a kill takes what was not flushed", lambda: KillsWhatIsNotFlushed),
    of_model("cut in memory", "REC-15", "a cut is not checkpointed", lambda: CutIsNotCheckpointed),
]  # fmt: skip


RARE = [
    of_impl("the last alone", "REC-10", "of several segments the last is flushed", lambda: of_log(FlushesTheLastAlone)),
    of_impl("names unflushed", "REC-10", "a new segment's name is not flushed", lambda: of_log(FlushesNoNames)),
    of_impl("recovers one", "REC-7", "only the recovery point's segment is recovered", lambda: of_loader(RecoversOne)),
    of_impl("the next alone", "REC-4", "of what is behind a cut one goes", lambda: of_loader(GivesUpTheNextAlone)),
    of_impl("trims", "REC-21", "what reaches above the next segment is cut", lambda: of_loader(Trims)),
    of_impl("mark below the start", "REC-11", "the high watermark is below the log start",
            lambda: of_directory(MarksBelowTheStart)),
    of_impl("checks an empty log", "REC-8 REC-10", "a start that finds nothing checkpoints that",
            lambda: of_directory(BeginsAtTheEnd)),
    of_impl("checks every cut", "REC-15", "a cut of nothing is checkpointed", lambda: of_directory(ChecksEveryCut)),
    of_impl("checks deep cuts", "REC-15", "a cut above the recovery point is not checkpointed",
            lambda: of_directory(ChecksDeepCuts)),
    of_impl("stops above the active", "REC-16", "a stop leaves an empty active segment unflushed",
            lambda: of_directory(StopsAboveTheActive)),
    of_impl("does the first", "REC-13", "of two rolls' flushes one is done", lambda: of_directory(DoesTheFirst)),
    of_impl("marker after the load", "REC-5 REC-6", "the marker goes when the log is loaded",
            lambda: of_directory(MarkerGoesAfterTheLoad), "KAFKA-10471"),
    of_impl("the point at the end", "REC-17", "the recovery point stays if all is deleted",
            lambda: of_log(LeavesThePointAtTheEnd)),
    of_impl("counts what it recovered", "REC-9 REC-8", "a start that is killed checkpoints how far it came",
            lambda: of_directory(CountsWhatItRecovered)),
]  # fmt: skip
"""Those that show after a rare sequence."""

MUTANTS += RARE
