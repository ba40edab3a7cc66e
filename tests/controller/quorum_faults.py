"""Faults of a quorum, each a scenario that `kafkaspec simulate tests/controller/quorum_faults.py:NAME` runs. Those with
a ticket or a KIP were Kafka's; those of Kafka 4.3.0 are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from kafkaspec.impl.common.disk import SimulatedDisk
from kafkaspec.impl.controller import periodic, raft
from kafkaspec.impl.controller.quorum import (
    ControllerResult,
    Purgatory,
    QuorumController,
    ReplayedMemory,
    WriteEvent,
    nobody,
)
from kafkaspec.impl.controller.quorum_parts.batches import BROKER, StoredBatch, encoded, record_of, text_of
from kafkaspec.impl.controller.quorum_parts.controller import SoundController
from kafkaspec.impl.controller.quorum_parts.log import DIRECTORY, DurableLog
from kafkaspec.impl.controller.quorum_parts.node import ControllerNode, Member, QuorumState, path_of
from kafkaspec.impl.controller.quorum_simulation import LOG, NO_FAULT, changing, five, idle, quorum
from kafkaspec.impl.controller.raft import LEADER, FetchReply, Position
from kafkaspec.impl.management.checkpoints import TEMPORARY
from kafkaspec.impl.storage.replication_simulation import AT_REST
from kafkaspec.simulate.choices import Schedule
from kafkaspec.simulate.scenario import Scenario
from kafkaspec.simulate.world import NODE_FAILED
from kafkaspec.spec.common.metadata_log import NO_EPOCH, NO_LOG_OFFSET, Batch, Kind, Outcome, Record
from kafkaspec.spec.controller.quorum_parts.observer import ACKNOWLEDGED, ONCE, SAME_MEMORY, STABLE_READS
from tests.storage.replication_faults import Fault


# ---- votes
class VotesTwice(Member):
    """It votes for every candidate that asks: RFT-1."""

    def grants(self, candidate: int, up_to_date: bool, pre_vote: bool) -> bool:
        self.voted = None if self.voted != self.local else self.voted
        return super().grants(candidate, up_to_date, pre_vote)


class ForgetsVote(ControllerNode):
    """It forgets its epoch and its vote in a crash: RFT-1, RFT-39."""

    def save(self, state: QuorumState) -> None:
        super().save(QuorumState())


class VotesForAnyLog(Member):
    """It votes also for who has less than it has itself: RFT-4."""

    def grants(self, candidate: int, up_to_date: bool, pre_vote: bool) -> bool:
        return super().grants(candidate, up_to_date or not pre_vote, pre_vote)


class DeniesItsLeader(Member):
    """A follower grants a pre-vote, though it hears from its leader: RFT-5. (KIP-996)"""

    def grants(self, candidate: int, up_to_date: bool, pre_vote: bool) -> bool:
        fetched, self.has_fetched = self.has_fetched, False
        try:
            return super().grants(candidate, up_to_date, pre_vote)
        finally:
            self.has_fetched = fetched


class StandsAtOnce(Member):
    """It stands without pre-votes, so that one that comes back disturbs the others: RFT-7, RFT-12. (KIP-996)"""

    def stand(self) -> None:
        self.begin(raft.PROSPECTIVE)
        self.answers = dict.fromkeys(self.log.voters, True)
        self.count()


class LeadsWithoutMajority(Member):
    """One vote beside its own is enough, of five: RFT-9."""

    def count(self) -> None:
        if self.role == raft.CANDIDATE and sum(self.answers.values()) == 2:
            self.lead()
        else:
            super().count()


class LeadsWithoutController(Member):
    """A controller that renounces does not tell Raft: QRM-21. (KAFKA-13104)"""

    def resign(self, epoch: int) -> None:
        pass


# ---- a leader
class CountsOlderEpochs(Member):
    """It commits what was written in an earlier epoch by counting: RFT-18. (Raft, 5.4.2)"""

    def raise_high(self) -> None:
        begun, self.begun = self.begun, 0
        super().raise_high()
        if self.role == LEADER:
            self.begun = begun


class CommitsAlone(Member):
    """What is in its own log is committed: RFT-18."""

    def raise_high(self) -> None:
        if self.role == LEADER and self.log.end > max(self.begun or 0, self.high or 0):
            self.high = self.committed = self.log.end
            self.give()
            self.announce()


class LowersHighWatermark(Member):
    """The high watermark follows the others' logs, also down: RFT-22."""

    def raise_high(self) -> None:
        known = self.ends | {self.local: self.log.end}
        reached = sorted(known.get(v, -1) for v in self.log.voters)
        high = reached[len(reached) - self.majority]
        if high > (self.begun or 0):
            self.high = self.committed = high
            self.give()
            self.announce()


class NeverDiverges(DurableLog):
    """Whatever a follower has of an epoch, a leader takes it for its own: RFT-15."""

    def end_of(self, epoch: int) -> Position:
        return Position(self.end, epoch)


# ---- followers
class ShowsItsLog(Member):
    """A follower's high watermark is the end of its log: RFT-17."""

    def fetch_response(self, answer: FetchReply) -> None:
        super().fetch_response(answer)
        if self.role == raft.FOLLOWER:
            self.high = self.committed = self.log.end
            self.give()


class NeverTruncates(DurableLog):
    """What differs from the leader's log stays: RFT-16."""

    def cut(self, diverging: Position) -> int:
        return self.end


class TruncatesToHighWatermark(Member):
    """A follower truncates all that it does not know to be committed: RFT-22. (before KIP-101)"""

    def fetch_response(self, answer: FetchReply) -> None:
        if answer.diverging is not None and self.high is not None:
            self.log.truncate(max(self.log.start, self.high - 1))
        super().fetch_response(answer)


class WritesLater(ControllerNode):
    """A follower fetches on before it has written what it got."""

    def __init__(self, *more: Any) -> None:
        self.late: list[Callable[[], None]] = []
        super().__init__(*more)

    def persist(self) -> None:
        late, self.late = self.late, self.log.undone
        self.log.undone = late
        super().persist()
        self.log.write()


class CopiesOtherValues(DurableLog):
    """A follower writes other values than it fetched."""

    def take(self, batches: Iterable[StoredBatch]) -> None:
        super().take([other_values(b) for b in batches])


def other_values(batch: StoredBatch) -> StoredBatch:
    """Each value is one more."""
    entries = tuple(e if e.value is None else e._replace(value=_more(e.value)) for e in batch.entries)
    return batch._replace(entries=entries, data=encoded(batch.base, batch.epoch, entries, 0))


def _more(text: str) -> str:
    r = record_of(text)
    return text_of(r._replace(value=r.value + 1)) if r.kind == Kind.SET else text


class LeavesNamesToChance(DurableLog):
    """A truncation is flushed, but not the names of the segments that it removed, and a power failure brings these
    back: LOG-34, LOG-35."""

    def cut_files(self, end: int) -> None:
        self.files.truncate_to(min(end, self.files.log_end))
        self.files.flush(force_flush_active_segment=True)


# ---- snapshots
class SnapshotsEarly(ControllerNode):
    """A snapshot is made of what is not committed: RFT-23."""

    def make_snapshot(self) -> None:
        c = self.controller
        if c.is_active and c.next_write_offset > c.last_stable_offset + 1 and c.next_write_offset > self.log.start + 12:
            at = Position(c.next_write_offset, self.replica.epoch)
            if at > self.log.snapshots[-1]:
                self.replica.committed = at.offset
                self.take_snapshot(at, at.offset - 1)
        else:
            super().make_snapshot()


class SnapshotsOneBefore(ControllerNode):
    """A snapshot is named by the offset of its last record, not by the one behind: RFT-23. (KAFKA-14618)"""

    def write_snapshot(self, at: Position, content: bytes) -> None:
        super().write_snapshot(at._replace(offset=at.offset - 1), content)


class SnapshotsUnflushed(ControllerNode):
    """A snapshot has its name before it is on the disk: RFT-23. (KAFKA-15312)"""

    def write_snapshot(self, at: Position, content: bytes) -> None:
        path = path_of(at)
        self.disk.write(path + TEMPORARY, content)
        self.disk.rename(path + TEMPORARY, path)
        self.disk.flush_directory(DIRECTORY)
        self.snapshots.append(at)


class DropsBySize(DurableLog):
    """A segment goes when the log is too large, whether a snapshot has it or not: RFT-19, RFT-23. (KAFKA-14238)"""

    def write_batch(self, batch: StoredBatch) -> None:
        super().write_batch(batch)
        if len(self.files.bases) > 2:
            self.files.update_high_watermark(batch.base)
            config, self.files.config = self.files.config, replace(self.files.config, retention_bytes=0)
            self.files.delete_old_segments()
            self.files.config = config


class SnapshotsInPart(ControllerNode):
    """A snapshot is without the registrations."""

    def contents(self, offset: int) -> dict[str, int]:
        return {name: value for name, value in super().contents(offset).items() if not name.startswith(BROKER)}


# ---- the voters
class ChangesTwice(Member):
    """It changes the voters while a change is not committed: RFT-30. (KIP-853)"""

    def refuses_change(self) -> str | None:
        return raft.NO_LEADER if self.role != LEADER else None


class ChangesManyAtOnce(Member):
    """It adds and removes in one change: RFT-30. (KIP-853)"""

    def remove_voter(self, voter: int) -> str:
        if (error := self.refuses_change()) is not None:
            return error
        rest = [v for v in (1, 2, 3, 4, 5) if v not in self.log.voters]
        return self.change([self.local, *rest])


# ---- the controller
class AnswersAtOnce(SoundController):
    """A call is answered when it is written: QRM-10, QRM-14."""

    class Deferred(Purgatory):
        def add(self, offset: int, event: WriteEvent) -> None:
            event.succeed()


class AnswersAll(SoundController):
    """When something is stable, all that wait are answered: QRM-14."""

    class Deferred(Purgatory):
        def complete_up_to(self, offset: int) -> None:
            super().complete_up_to(self.highest())


class AnswersWhatItKnows(SoundController):
    """A call without records does not wait for those that it saw: QRM-12."""

    class Deferred(Purgatory):
        def add(self, offset: int, event: WriteEvent) -> None:
            if self.pending and offset == self.highest():
                event.succeed()
            else:
                super().add(offset, event)


class RevertsNothing(SoundController):
    """Who renounces keeps what is not stable: QRM-22."""

    def renounce(self) -> None:
        self.raft.resign(self.claim_epoch)
        self.claim_epoch = NO_EPOCH
        self.purgatory.fail_all(Outcome.NOT_CONTROLLER)
        self.next_write_offset = NO_LOG_OFFSET
        self.tasks.deactivate()


class ClaimsEarly(Member):
    """It is told that it leads before it has what was committed: RFT-36, QRM-20."""

    def lead(self) -> None:
        super().lead()
        begun, self.begun = self.begun, None
        self.announce()
        self.begun = begun


class PredictsOffsets(SoundController):
    """A record is applied at the offset that it would have without Raft's own: QRM-6. (KAFKA-15213, KAFKA-17304)"""

    def replay_all(self, records: Sequence[Record], base: int) -> None:
        for offset, record in enumerate(records, base):
            shift = int(self.is_active and record.kind == Kind.REGISTER)
            super().replay_all([record], offset - shift)


class CountsControlBatches(SoundController):
    """A batch of Raft's own moves the stable offset, where no snapshot of memory is: QRM-34. (KAFKA-17608)"""

    def handle_commit(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            super().handle_commit([batch])
            if not batch.records:
                self.last_committed_offset, self.last_committed_epoch = batch.base, batch.epoch
                self.advance_last_stable_offset()


class ReadsLatest(SoundController):
    """A read is answered from what is not stable: QRM-2. (KAFKA-15048)"""

    def read(self, key: str) -> int:
        return self.latest(key)


class LooksAtWhatIsStable(ControllerNode):
    """A write is made from what is stable, not from the latest: QRM-4."""

    def known(self, name: str) -> int:
        return self.controller.read(name)


class SkipsAborts(SoundController):
    """An abort takes nothing back: QRM-25."""

    class Memory(ReplayedMemory):
        def replay_transaction(self, kind: Kind, offset: int, in_snapshot: bool) -> None:
            super().replay_transaction(Kind.END if kind == Kind.ABORT else kind, offset, in_snapshot)


# ---- periodic tasks
class SchedulesNoTasks(SoundController):
    """An activation schedules no periodic task: QRM-39."""

    def claim(self, epoch: int) -> None:
        super().claim(epoch)
        activation = WriteEvent(self.activation_records, nobody)
        self.queue[0] = lambda: self.run_write(activation)


class KeepsItsTasks(SoundController):
    """Who renounces has its periodic tasks still in the queue: QRM-40."""

    def renounce(self) -> None:
        deadlines, runs = dict(self.deferred.deadlines), dict(self.deferred.runs)
        super().renounce()
        self.deferred.deadlines, self.deferred.runs = deadlines, runs


class RunsTasksOnce(SoundController):
    """A periodic task that writes is not scheduled again: QRM-41."""

    def run_task(self, run: Callable[[], periodic.Result]) -> None:
        before = set(self.deferred.deadlines)
        super().run_task(run)
        for tag in ({*self.deferred.deadlines} - before) & {"writeNoOpRecord"}:
            self.deferred.cancel_deferred(tag)


# ---- as Kafka 4.3.0
class LoadsAsKafka(SoundController):
    """A snapshot's end is taken for the offset of its last record: QRM-31, Kafka 4.3.0."""

    def load_snapshot(self, end_offset: int, epoch: int, records: Sequence[Record]) -> None:
        super().load_snapshot(end_offset + 1, epoch, records)


class TransactsAsKafka(SoundController):
    """The transaction that counts is the one in memory: QRM-26, QRM-22, Kafka 4.3.0."""

    def advance_last_stable_offset(self) -> None:
        QuorumController.advance_last_stable_offset(self)

    def renounce(self) -> None:
        QuorumController.renounce(self)


class SplitsAsKafka(SoundController):
    """An exact multiple of the largest batch has an empty one behind it: QRM-9, Kafka 4.3.0."""

    def append_records(self, result: ControllerResult) -> int:
        return QuorumController.append_records(self, result)


# ---- disks
class LyingDisk(SimulatedDisk):
    """It says that it has flushed a log, and has not."""

    def flush(self, path: str) -> None:
        if not path.endswith(".log"):
            super().flush(path)

    def crash(self, keep_names: Any, keep_content: Any) -> LyingDisk:
        left = super().crash(keep_names, keep_content)
        return LyingDisk(left.names, left.durable_names)


UNFLUSHED: Final = replace(LOG, flush_messages=2**63 - 1)
PARTS: Final = {Member: "replica_class", DurableLog: "log_class", SoundController: "controller_class"}


def _of(
    faulty: type | None,
    schedule: Schedule,
    first: int,
    rule: str,
    *,
    of: Callable[..., Scenario] = quorum,
    **parts: Any,
) -> Fault:
    """The title of a fault is the text of its class; its name is that of the class."""
    doc, name = "Nothing is flushed: Kafka's default for other logs. (KAFKA-10533)", "unflushed"
    if faulty is not None:
        assert faulty.__doc__ is not None
        doc, name = faulty.__doc__, "".join(f"_{c.lower()}" if c.isupper() else c for c in faulty.__name__)[1:]
        part = next((p for base, p in PARTS.items() if issubclass(faulty, base)), None)
        if part is not None:
            parts["controller"] = type(faulty.__name__, (ControllerNode,), {part: faulty})
        else:
            parts["disk" if issubclass(faulty, SimulatedDisk) else "controller"] = faulty
    return Fault(of(f"quorum:{name}", " ".join(doc.split()), **parts), schedule, first, rule)


FAULTS = {
    f.scenario.name.partition(":")[2]: f
    for f in (
        _of(VotesTwice, "mixed", 29, "RFT-1"),
        _of(ForgetsVote, "mixed", 10, AT_REST),
        _of(VotesForAnyLog, "mixed", 2, "RFT-4"),
        _of(DeniesItsLeader, "mixed", 0, "RFT-5"),
        _of(StandsAtOnce, "mixed", 0, "RFT-7"),
        _of(LeadsWithoutController, "mixed", 1, AT_REST),
        _of(LeadsWithoutMajority, "mixed", 0, "RFT-9", of=five),
        _of(CountsOlderEpochs, "mixed", 0, "RFT-18"),
        _of(CommitsAlone, "mixed", 0, "RFT-18"),
        _of(LowersHighWatermark, "mixed", 1, "RFT-22"),
        _of(NeverDiverges, "mixed", 0, "RFT-19"),
        _of(ShowsItsLog, "mixed", 0, "RFT-18"),
        _of(NeverTruncates, "mixed", 7, AT_REST),
        _of(TruncatesToHighWatermark, "mixed", 8, "RFT-22"),
        _of(WritesLater, "mixed", 0, "RFT-18"),
        _of(CopiesOtherValues, "mixed", 0, "RFT-19"),
        _of(LeavesNamesToChance, "priority", 12, "RFT-19"),
        _of(SnapshotsEarly, "mixed", 0, "RFT-23"),
        _of(SnapshotsOneBefore, "mixed", 0, "RFT-23"),
        _of(SnapshotsUnflushed, "mixed", 0, SAME_MEMORY),
        _of(DropsBySize, "mixed", 0, "RFT-19"),
        _of(SnapshotsInPart, "mixed", 0, SAME_MEMORY),
        _of(ChangesTwice, "priority", 24, "RFT-20", of=changing),
        _of(ChangesManyAtOnce, "mixed", 5, "RFT-20", of=changing),
        _of(AnswersAtOnce, "mixed", 0, ACKNOWLEDGED),
        _of(AnswersAll, "mixed", 0, ACKNOWLEDGED),
        _of(AnswersWhatItKnows, "mixed", 4, ACKNOWLEDGED),
        _of(RevertsNothing, "mixed", 0, SAME_MEMORY),
        _of(ClaimsEarly, "mixed", 0, NODE_FAILED),
        _of(PredictsOffsets, "mixed", 0, SAME_MEMORY),
        _of(CountsControlBatches, "mixed", 7, AT_REST),
        _of(ReadsLatest, "mixed", 2, STABLE_READS),
        _of(LooksAtWhatIsStable, "uniform", 1, ONCE),
        _of(SkipsAborts, "mixed", 26, SAME_MEMORY),
        _of(SchedulesNoTasks, "mixed", 0, "QRM-39", of=idle),
        _of(KeepsItsTasks, "mixed", 1, "QRM-40", of=idle),
        _of(RunsTasksOnce, "mixed", 0, AT_REST, of=idle),
        _of(LoadsAsKafka, "mixed", 0, SAME_MEMORY),
        _of(TransactsAsKafka, "mixed", 0, SAME_MEMORY),
        _of(SplitsAsKafka, "mixed", 0, NO_FAULT),
        _of(LyingDisk, "mixed", 0, "RFT-22"),
        _of(None, "mixed", 0, "RFT-22", log=UNFLUSHED),
    )
}
globals().update({name: fault.scenario for name, fault in FAULTS.items()})
