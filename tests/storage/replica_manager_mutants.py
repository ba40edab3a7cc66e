"""Faults of the replica manager, each with the clauses that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from kafkaspec.contract.machine import Machine, Step
from kafkaspec.impl.storage import high_watermark as hwm
from kafkaspec.impl.storage import replica_manager as impl
from kafkaspec.impl.storage.high_watermark import Partition
from kafkaspec.impl.storage.replica_manager import (
    LOCAL,
    OFFSET_UNKNOWN,
    RECORD_BYTES,
    TIMED_OUT,
    DelayedFetch,
    DelayedProduce,
    DeleteResult,
    FetchPart,
    FetchResult,
    Offline,
    Online,
    Operation,
    Part,
    PartitionError,
    ProduceResult,
    Purgatory,
    Reader,
    ReplicaManager,
    Status,
    Topic,
)
from kafkaspec.impl.storage.replica_manager_driver import Driver
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.storage import replica_manager as model
from kafkaspec.models.storage.replica_manager import Answer, Request, Stage
from kafkaspec.mutants.mutant import Mutant, of_impl, of_model, of_spec, with_fault
from kafkaspec.spec.storage import replica_manager as spec
from kafkaspec.spec.storage.replica_manager_parts.state import Manager


def _of(make: type[ReplicaManager]) -> Callable[[], Driver]:
    """What makes a driver of a faulty replica manager."""

    def made() -> Driver:
        driver = Driver()
        driver.make = make
        driver.reset({})
        return driver

    return made


def _with(**classes: type) -> Callable[[], Driver]:
    """A replica manager of which some classes are faulty."""
    return _of(type("Faulty", (ReplicaManager,), dict(classes)))


# ---- who is asked
class OfflineIsUnknown(ReplicaManager):
    def partition(self, topic: str) -> Partition:
        if isinstance(self.hosted.get(topic), Offline):
            raise PartitionError("UNKNOWN_TOPIC_OR_PARTITION")
        return super().partition(topic)


class KnowsNoMetadata(ReplicaManager):
    """A partition that it has not is unknown, also if the metadata has it."""

    def partition(self, topic: str) -> Partition:
        if topic not in self.hosted:
            raise PartitionError("UNKNOWN_TOPIC_OR_PARTITION")
        return super().partition(topic)


class ComparesNoTopicId(ReplicaManager):
    def same_topic(self, topic: str, id: int, error: str) -> Partition:
        return self.partition(topic)


class WantsATopicId(ReplicaManager):
    """A request without one is refused."""

    def same_topic(self, topic: str, id: int, error: str) -> Partition:
        partition = self.partition(topic)
        if id != self.hosted[topic].id:
            raise PartitionError(error)
        return partition


# ---- producers
class AnyAcks(ReplicaManager):
    """Other acks are as acks=1."""

    def append_records(self, timeout_ms: int, acks: int, internal: bool, entries: Iterable[tuple[str, int]]) -> None:
        super().append_records(timeout_ms, acks if acks in (-1, 0, 1) else 1, internal, entries)


class InternalToAll(ReplicaManager):
    def append_one(self, name: str, topic_id: int, acks: int, internal: bool) -> tuple[ProduceResult, bool]:
        return super().append_one(name, topic_id, acks, True)


class InternalIsDeleted(ReplicaManager):
    def delete_one(self, name: str, offset: int, internal: bool) -> Status:
        return super().delete_one(name, offset, True)


class OneInternal(ReplicaManager):
    """Of the three: everybody appends and deletes in the others."""

    def append_one(self, name: str, topic_id: int, acks: int, internal: bool) -> tuple[ProduceResult, bool]:
        return super().append_one(name, topic_id, acks, internal or name != "__consumer_offsets")

    def delete_one(self, name: str, offset: int, internal: bool) -> Status:
        return super().delete_one(name, offset, internal or name != "__consumer_offsets")


class TellsNoLogStart(ReplicaManager):
    """With too few replicas."""

    def append_one(self, name: str, topic_id: int, acks: int, internal: bool) -> tuple[ProduceResult, bool]:
        answer, rose = super().append_one(name, topic_id, acks, internal)
        return (replace(answer, log_start=OFFSET_UNKNOWN) if answer.error else answer), rose


class AllOrNothing(ReplicaManager):
    """An error of one partition is one of those behind it."""

    def append_records(self, timeout_ms: int, acks: int, internal: bool, entries: Iterable[tuple[str, int]]) -> None:
        self.broken: str | None = None
        super().append_records(timeout_ms, acks, internal, entries)

    def append_one(self, name: str, topic_id: int, acks: int, internal: bool) -> tuple[ProduceResult, bool]:
        if self.broken is not None:
            return ProduceResult(name, self.broken), False
        answer, rose = super().append_one(name, topic_id, acks, internal)
        self.broken = answer.error
        return answer, rose


class ErrorsEndIt(ReplicaManager):
    """With an error of one partition nobody waits for the others."""

    def acknowledge(self, id: int, timeout_ms: int, acks: int, results: Sequence[ProduceResult]) -> None:
        super().acknowledge(id, timeout_ms, 1 if any(r.error for r in results) else acks, results)


class WaitsForOne(ReplicaManager):
    """With acks=1 it waits as well."""

    def acknowledge(self, id: int, timeout_ms: int, acks: int, results: Sequence[ProduceResult]) -> None:
        super().acknowledge(id, timeout_ms, -1 if acks == 1 else acks, results)


class BeforeItIsReplicated(ReplicaManager):
    def is_replicated(self, status: Status) -> ProduceResult | None:
        return super().is_replicated(replace(status, required=status.required - 1))


class AnyPartitionWillDo(DelayedProduce):
    """It is answered when one of its partitions is done."""

    def try_complete(self) -> bool:
        if super().try_complete():
            return True
        if any(not s.pending and s.answer.error is None for s in self.statuses) and not self.completed:
            for status in self.statuses:
                status.pending = False
            return self.complete()
        return False


class LooksAtAllAgain(DelayedProduce):
    """What one look has found does not stay."""

    def try_complete(self) -> bool:
        for status in self.statuses:
            if status.answer.error is None or status.answer.error == "NOT_LEADER_OR_FOLLOWER":
                status.pending = status.pending or status.required > 0
        return super().try_complete()


class WaitsForALeader(ReplicaManager):
    """A producer waits on, although the broker does not lead any more."""

    def is_replicated(self, status: Status) -> ProduceResult | None:
        found = super().is_replicated(status)
        return None if found is not None and found.error == "NOT_LEADER_OR_FOLLOWER" else found


class AllTimeOut(DelayedProduce):
    """Also the partitions that were done."""

    def expire(self) -> None:
        for status in self.statuses:
            status.pending = status.required > 0
        super().expire()

    def parts(self) -> Sequence[Part]:
        return [replace(s.answer, error=TIMED_OUT) if s.pending else s.answer for s in self.statuses]


class LooksWhenTimeHasPassed(DelayedProduce):
    def expire(self) -> None:
        if not self.try_complete():
            super().expire()


class EightAtATopic(Purgatory):
    """At most eight are watched at a topic: the oldest waits for the timer alone."""

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__(now)
        self.left: list[Operation] = []

    def try_else_watch(self, operation: Operation) -> None:
        super().try_else_watch(operation)
        for topic in operation.topics:
            there = [o for o in self.watched.get(topic, []) if not o.completed]
            if len(there) > 8:
                self.left.append(there[0])
                self.watched[topic].remove(there[0])

    @property
    def delayed(self) -> list[Operation]:
        known = {o.id: o for of in [*self.watched.values(), self.left] for o in of if not o.completed}
        return [known[id] for id in sorted(known)]


class LateByOne(Purgatory):
    def expire(self) -> None:
        now = self.now
        self.now = lambda: now() - 1
        try:
            super().expire()
        finally:
            self.now = now


# ---- when they are looked at
class OnlyWhatRises(ReplicaManager):
    """An append that the high watermark does not follow wakes nobody."""

    def check(self, topic: str, *purgatories: Purgatory) -> None:
        if purgatories != (self.fetches,):
            super().check(topic, *purgatories)


class FetchesOnly(ReplicaManager):
    """A high watermark that rises with an append wakes fetches alone."""

    def append_one(self, name: str, topic_id: int, acks: int, internal: bool) -> tuple[ProduceResult, bool]:
        return super().append_one(name, topic_id, acks, internal)[0], False


class ProducersToo(ReplicaManager):
    """An append that the high watermark does not follow wakes requests that wait for something else."""

    def check(self, topic: str, *purgatories: Purgatory) -> None:
        super().check(topic, *(() if purgatories == (self.fetches,) else purgatories))


class AChangeWakesNobody(ReplicaManager):
    """Of the in-sync replicas."""

    def on_altered(self, name: str) -> None:
        self.silent = True
        super().on_altered(name)
        self.silent = False

    silent = False

    def check(self, topic: str, *purgatories: Purgatory) -> None:
        if not self.silent:
            super().check(topic, *purgatories)


class FollowersWakeNobody(ReplicaManager):
    def without_leader(self, name: str) -> None:
        pass


class FollowersWakeDeletions(ReplicaManager):
    def without_leader(self, name: str) -> None:
        self.check(name)


class LeadersWakeAll(ReplicaManager):
    def change(self, name: str, partition: Partition, topic: Topic, isr: Iterable[int]) -> None:
        super().change(name, partition, topic, isr)
        self.check(name)


class EveryFollowerWakes(ReplicaManager):
    """Also in the epoch that it knows."""

    def change(self, name: str, partition: Partition, topic: Topic, isr: Iterable[int]) -> None:
        super().change(name, partition, topic, isr)
        if topic.leader != LOCAL:
            self.without_leader(name)


# ---- fetches
class WaitsWithErrors(ReplicaManager):
    """A fetch with an error in one partition waits for the others."""

    def read(self, reader: Reader, part: FetchPart, *, counts: bool) -> FetchResult:
        found = super().read(reader, part, counts=counts)
        self.last_error = found.error
        return found

    last_error: str | None = None

    def fetch_messages(self, reader: Reader, max_wait_ms: int, parts: Sequence[FetchPart]) -> None:
        super().fetch_messages(reader, max_wait_ms, parts)
        if self.last_error is not None and len(parts) > 1 and max_wait_ms > 0:
            id = self.requests - 1
            self.answered.fetched.pop(id, None)
            fetch = DelayedFetch(id, self.now() + max_wait_ms, self.answered_fetch, reader, parts, self)
            self.fetches.watched.setdefault(parts[0].topic, []).append(fetch)


class MoreThanMinBytes(ReplicaManager):
    def fetch_messages(self, reader: Reader, max_wait_ms: int, parts: Sequence[FetchPart]) -> None:
        super().fetch_messages(replace(reader, min_bytes=reader.min_bytes + 1), max_wait_ms, parts)


class NeverAtOnce(ReplicaManager):
    """Who would wait 0 ms is answered by the timer, with what is read then."""

    def fetch_messages(self, reader: Reader, max_wait_ms: int, parts: Sequence[FetchPart]) -> None:
        super().fetch_messages(reader, max_wait_ms or 1, parts)


class EachPartitionForItself(DelayedFetch):
    """The bytes of one partition must be enough."""

    def try_complete(self) -> bool:
        try:
            return max(map(self.bytes_of, self.asked)) >= self.reader.min_bytes and self.complete()
        except impl.ERRORS:
            return self.complete()


class ConsumersWaitForTheEnd(DelayedFetch):
    """Of the log."""

    def bytes_of(self, part: FetchPart) -> int:
        log = self.manager.partition(part.topic).local_log(part.leader_epoch, self.reader.only_leader)
        if part.offset > log.end:
            raise hwm.OffsetOutOfRange
        return RECORD_BYTES * (log.end - part.offset)


class WaitsAboveTheHighWatermark(DelayedFetch):
    """A consumer that is ahead of it waits."""

    def bytes_of(self, part: FetchPart) -> int:
        try:
            return super().bytes_of(part)
        except hwm.OffsetOutOfRange:
            return 0


class FencedWait(DelayedFetch):
    """A reader of an earlier leader epoch waits on."""

    def bytes_of(self, part: FetchPart) -> int:
        return super().bytes_of(replace(part, leader_epoch=None))


class AnswersWhatItHadRead(DelayedFetch):
    """What was there when it came."""

    read: Sequence[Part] = ()

    def try_complete(self) -> bool:
        if not self.read:
            self.read = super().parts()
        return super().try_complete()

    def parts(self) -> Sequence[Part]:
        return self.read or super().parts()


class CountsAgain(DelayedFetch):
    """A follower's fetch that has waited counts."""

    def parts(self) -> Sequence[Part]:
        found = []
        for part in self.asked:
            found.append(self.manager.read(self.reader, part, counts=False))
            partition = self.manager.hosted.get(part.topic)
            if self.reader.follows and isinstance(partition, Online) and found[-1].error is None:
                followers = partition.partition.followers
                known = followers[self.reader.replica]
                followers[self.reader.replica] = replace(known, last_fetch_ms=self.manager.now())
        return found


class CountsWithoutErrors(ReplicaManager):
    """A follower's fetch counts only if no partition has an error."""

    def fetch_messages(self, reader: Reader, max_wait_ms: int, parts: Sequence[FetchPart]) -> None:
        self.counts = all(self.read(reader, part, counts=False).error is None for part in parts)
        super().fetch_messages(reader, max_wait_ms, parts)

    counts = True

    def read(self, reader: Reader, part: FetchPart, *, counts: bool) -> FetchResult:
        return super().read(reader, part, counts=counts and self.counts)


class AnswersWithTheNewOne(ReplicaManager):
    """A follower is told at once the high watermark that its own fetch raised."""

    def fetch_of_follower(self, partition: Partition, reader: Reader, part: FetchPart) -> hwm.ReadInfo:
        found = super().fetch_of_follower(partition, reader, part)
        return replace(found, high_watermark=partition.log.high_watermark)


class TimeOutIsAnError(DelayedFetch):
    def expire(self) -> None:
        self.late = True
        super().expire()

    late = False

    def parts(self) -> Sequence[Part]:
        found = super().parts()
        return [FetchResult(part.topic, TIMED_OUT) for part in self.asked] if self.late else found


# ---- deletions
class DeletesAtOnce(ReplicaManager):
    """The answer does not wait for followers."""

    def delete_one(self, name: str, offset: int, internal: bool) -> Status:
        status = super().delete_one(name, offset, internal)
        low = status.answer.low_watermark if isinstance(status.answer, DeleteResult) else 0
        return replace(status, required=min(status.required, low))


class DeletedIsNotLed(ReplicaManager):
    """A partition that it has not is one that it does not lead, as for producers."""

    def is_deleted(self, status: Status) -> DeleteResult | None:
        found = super().is_deleted(status)
        if found is not None and found.error == "UNKNOWN_TOPIC_OR_PARTITION":
            return replace(found, error="NOT_LEADER_OR_FOLLOWER")
        return found


class OfflineWaits(ReplicaManager):
    """A deletion waits for a directory that failed."""

    def is_deleted(self, status: Status) -> DeleteResult | None:
        found = super().is_deleted(status)
        return None if found is not None and found.error == "KAFKA_STORAGE_ERROR" else found


class AboveTheLowWatermark(ReplicaManager):
    def is_deleted(self, status: Status) -> DeleteResult | None:
        found = super().is_deleted(status)
        return None if found is not None and found.low_watermark == status.required else found


class TellsTheLowWatermark(impl.DelayedDelete):
    """When its time has passed, the one that there is."""

    def expire(self) -> None:
        for status in self.statuses:
            if status.pending and isinstance(status.answer, DeleteResult):
                status.answer = replace(status.answer, low_watermark=status.required)
        super().expire()


class DeletionsHere(ReplicaManager):
    """The low watermark is looked at only if a deletion waits at this topic, and not at whatever partition."""

    def fetch_of_follower(self, partition: Partition, reader: Reader, part: FetchPart) -> hwm.ReadInfo:
        high, low = partition.log.high_watermark, self.low_watermark(partition)
        found = partition.fetch_as_follower(
            reader.replica, reader.broker_epoch, part.leader_epoch, part.last_epoch, part.offset, part.log_start
        )
        here = any(part.topic in o.topics for o in self.deletes.delayed)
        if partition.log.high_watermark > high or (here and self.low_watermark(partition) > low):
            self.check(part.topic)
        return found


class AlwaysLooksAtIt(ReplicaManager):
    """At the low watermark: also if no deletion waits."""

    def fetch_of_follower(self, partition: Partition, reader: Reader, part: FetchPart) -> hwm.ReadInfo:
        low = self.low_watermark(partition)
        found = super().fetch_of_follower(partition, reader, part)
        if self.low_watermark(partition) > low:
            self.check(part.topic)
        return found


class OnlyDeletionsOfIt(ReplicaManager):
    """The low watermark that rises wakes deletions alone."""

    def fetch_of_follower(self, partition: Partition, reader: Reader, part: FetchPart) -> hwm.ReadInfo:
        high, low = partition.log.high_watermark, self.low_watermark(partition)
        self.silent = True
        try:
            found = super().fetch_of_follower(partition, reader, part)
        finally:
            self.silent = False
        if partition.log.high_watermark > high:
            self.check(part.topic)
        elif self.low_watermark(partition) > low:
            self.check(part.topic, self.deletes)
        return found

    silent = False

    def check(self, topic: str, *purgatories: Purgatory) -> None:
        if not self.silent:
            super().check(topic, *purgatories)


# ---- the metadata
class NewestPartitionEpoch(ReplicaManager):
    """What has an older partition epoch than its own is taken over."""

    def change(self, name: str, partition: Partition, topic: Topic, isr: Iterable[int]) -> None:
        partition.partition_epoch = min(partition.partition_epoch, topic.partition_epoch)
        super().change(name, partition, topic, isr)


class FollowersAreNotMade(ReplicaManager):
    """A partition is made when the broker leads it."""

    def change(self, name: str, partition: Partition, topic: Topic, isr: Iterable[int]) -> None:
        super().change(name, partition, topic, isr)
        if topic.leader != LOCAL and partition.leader_epoch == topic.leader_epoch and partition.log.end == 0:
            del self.hosted[name]


class KeepsWhatIsReassigned(ReplicaManager):
    def stop(self, name: str) -> None:
        if name in self.topics and LOCAL not in self.topics[name].replicas:
            self.without_leader(name)
        else:
            super().stop(name)


class ForgetsOffline(ReplicaManager):
    """An offline partition of a topic that is deleted is gone."""

    def stop(self, name: str) -> None:
        self.hosted.pop(name, None)
        self.without_leader(name)


class KeepsTheOldLog(ReplicaManager):
    """A topic that is made again has the log of the one before."""

    def stop(self, name: str) -> None:
        hosted = self.hosted.get(name)
        super().stop(name)
        if isinstance(hosted, Online):
            self.kept = {**self.kept, name: hosted.partition.log.end}

    kept: dict[str, int] = {}

    def get_or_create(self, name: str, id: int, directory: int) -> Partition | None:
        is_new = not isinstance(self.hosted.get(name), Online)
        partition = super().get_or_create(name, id, directory)
        if is_new and partition is not None:
            partition.log.end = self.kept.get(name, 0)
        return partition


class BringsUpOffline(ReplicaManager):
    """An offline partition that is told to lead is made again."""

    def get_or_create(self, name: str, id: int, directory: int) -> Partition | None:
        if isinstance(self.hosted.get(name), Offline):
            del self.hosted[name]
        return super().get_or_create(name, id, directory)


class OfflineForEver(ReplicaManager):
    """Also under another topic id."""

    def get_or_create(self, name: str, id: int, directory: int) -> Partition | None:
        return None if isinstance(self.hosted.get(name), Offline) else super().get_or_create(name, id, directory)


# ---- directories
class FailureWakes(ReplicaManager):
    """Requests that wait at partitions of the directory are looked at."""

    def fail_directory(self, directory: int) -> None:
        super().fail_directory(directory)
        for name, hosted in self.hosted.items():
            if hosted.directory == directory:
                self.check(name)


class AllGoOffline(ReplicaManager):
    def fail_directory(self, directory: int) -> None:
        super().fail_directory(directory)
        for name, hosted in self.hosted.items():
            self.hosted[name] = Offline(hosted.id, hosted.directory)


class FilesOfAll(ReplicaManager):
    """Each file has all partitions."""

    def checkpoint_high_watermarks(self) -> None:
        there = {n: h.partition.log.high_watermark for n, h in self.hosted.items() if isinstance(h, Online)}
        for directory in self.live:
            self.checkpoints[directory] = dict(there)


class EmptiesFiles(ReplicaManager):
    """The file of a directory without a partition is written, too."""

    def checkpoint_high_watermarks(self) -> None:
        for directory in self.live:
            self.checkpoints[directory] = {}
        super().checkpoint_high_watermarks()


# ---- once
class Twice(Purgatory):
    """Who is answered by the timer is watched still."""

    def expire(self) -> None:
        late = [o for o in self.delayed if o.deadline <= self.now()]
        super().expire()
        for operation in late:
            operation.completed = False
            operation.deadline = self.now() + 1


class WaitsForNothing(Purgatory):
    """Whose time is 0 ms waits for the next tick."""

    def try_else_watch(self, operation: Operation) -> None:
        operation.deadline = max(operation.deadline, self.now() + 1)
        super().try_else_watch(operation)


class WatchedAtOneTopic(Purgatory):
    """A request of several partitions is found at its first one alone."""

    def try_else_watch(self, operation: Operation) -> None:
        operation.topics = operation.topics[:1]
        super().try_else_watch(operation)


class ShrinksOne(ReplicaManager):
    """Of several partitions with followers that lag."""

    def maybe_shrink_isr(self) -> None:
        online = [h for h in self.hosted.values() if isinstance(h, Online)]
        for hosted in online[:1]:
            hosted.partition.maybe_shrink_isr()


# ---- the spec
def _spec(operation: str, body: Callable[..., Any]) -> Callable[[], Machine[Manager]]:
    return lambda: with_fault(spec.machine, operation, body)


def _forgets_who_waits(state: Manager, ms: int) -> Step[Manager, Any]:
    """Who is late is answered, and a second one is forgotten."""
    step = spec.advance(state, ms)
    return Step(replace(step.state, waiting=step.state.waiting[1:]), step.result)


def _leaves_the_partition(state: Manager, topic: str) -> Step[Manager, Any]:
    step = spec.delete_topic(state, topic)
    return Step(replace(step.state, hosted=state.hosted), step.result)


def _tells_who_waits(state: Manager, directory: int) -> Manager:
    return replace(spec.handle_log_dir_failure(state, directory), waiting=())


# ---- the model
def _looks_once() -> LoadedModel:
    class Waits(model.Waits):
        @action("RMG-7", "RMG-26", who="request thread")
        def look_again(s, r: Request) -> None:
            """It arms the timer, and looks no second time."""
            require(s.stage[r] == Stage.LISTED)
            s.next.stage[r] = Stage.TIMED
            if not model.SECOND_LOOK and s.is_done(r):
                s.complete(r, False)

    return load(Waits)


def _reads_before_the_change() -> LoadedModel:
    class Waits(model.Waits):
        @action("RMG-9", who="follower's fetch")
        def rise(s) -> None:
            """Nobody reads the list behind it."""
            require(not s.resigned, s.high < s.end)
            s.next.high = s.high + 1

    return load(Waits)


def _resigns_in_silence() -> LoadedModel:
    class Waits(model.Waits):
        @action("RMG-10", who="metadata")
        def resign(s) -> None:
            require(not s.resigned)
            s.next.resigned = True

    return load(Waits)


def _acknowledges_at_once() -> LoadedModel:
    class Waits(model.Waits):
        @action("RMG-6", who="request thread")
        def append(s, r: Request) -> None:
            """The answer is given with the append."""
            require(s.stage[r] == Stage.NEW, not s.resigned, s.end < model.L)
            s.next.end = s.end + 1
            s.next.required[r] = s.end + 1
            s.next.stage[r] = Stage.APPENDED
            s.next.answer[r] = Answer.DONE

    return load(Waits)


def _times_out_whoever() -> LoadedModel:
    class Waits(model.Waits):
        @action("RMG-8", who="timer")
        def expire(s, r: Request) -> None:
            """Also who has an answer."""
            require(s.stage[r] == Stage.TIMED, s.answer[r] != Answer.TIMED_OUT)
            s.next.answer[r] = Answer.TIMED_OUT

    return load(Waits)


RARE: list[Mutant] = [
    of_impl("one internal topic", "RMG-4", "of three", _of(OneInternal)),
    of_impl("eight at a topic", "RMG-9 RMG-26", "a ninth drives out the first", _with(purgatory_class=EightAtATopic)),
    of_impl("deletions here", "RMG-19", "at this topic alone", _of(DeletionsHere)),
    of_impl("all or nothing", "RMG-5", "an error of one is one of those behind it", _of(AllOrNothing)),
    of_impl("looks at all again", "RMG-7", "what one look has found is lost", _with(produce_class=LooksAtAllAgain)),
    of_impl("waits for a leader", "RMG-7 RMG-10", "on a broker that leads no more", _of(WaitsForALeader)),
    of_impl("all time out", "RMG-8", "what was done, too", _with(produce_class=AllTimeOut)),
    of_impl("only what rises", "RMG-9", "an append alone wakes nobody", _of(OnlyWhatRises)),
    of_impl("fetches only", "RMG-9", "a high watermark that rises with an append", _of(FetchesOnly)),
    of_impl("every follower wakes", "RMG-10", "in the epoch that it knows", _of(EveryFollowerWakes)),
    of_impl("answers what it had read", "RMG-13", "when it came", _with(fetch_class=AnswersWhatItHadRead)),
    of_impl("counts again", "RMG-13", "a follower that has waited", _with(fetch_class=CountsAgain)),
    of_impl("counts without errors", "RMG-14", "of other partitions", _of(CountsWithoutErrors)),
    of_impl("answers with the new one", "RMG-14", "that the fetch raised", _of(AnswersWithTheNewOne)),
    of_impl("only deletions of it", "RMG-19 RMG-9", "fetches are not looked at", _of(OnlyDeletionsOfIt)),
    of_impl("brings up offline", "RMG-23", "an empty log takes its place", _of(BringsUpOffline)),
    of_impl("watched at one topic", "RMG-9 RMG-26", "of several", _with(purgatory_class=WatchedAtOneTopic)),
]  # fmt: skip
"""Those that few histories tell from the right one."""
MUTANTS: list[Mutant] = [
    *RARE,
    of_impl("offline is unknown", "RMG-1", "a directory that failed is no error of its own", _of(OfflineIsUnknown)),
    of_impl("knows no metadata", "RMG-1", "what the metadata has is unknown", _of(KnowsNoMetadata)),
    of_impl("compares no topic id", "RMG-2", "a request of a topic of before is done", _of(ComparesNoTopicId)),
    of_impl("wants a topic id", "RMG-2", "old clients are refused", _of(WantsATopicId)),
    of_impl("any acks", "RMG-3", "other acks are as 1", _of(AnyAcks)),
    of_impl("internal to all", "RMG-4", "everybody appends there", _of(InternalToAll)),
    of_impl("internal is deleted", "RMG-4", "everybody deletes there", _of(InternalIsDeleted)),
    of_impl("tells no log start", "RMG-5", "with too few replicas", _of(TellsNoLogStart)),
    of_impl("errors end it", "RMG-6", "with one error nobody waits", _of(ErrorsEndIt)),
    of_impl("waits for one", "RMG-6", "with acks=1", _of(WaitsForOne)),
    of_impl("before it is replicated", "RMG-7", "one record less is enough", _of(BeforeItIsReplicated)),
    of_impl("any partition will do", "RMG-7", "it waits for the first alone", _with(produce_class=AnyPartitionWillDo)),
    of_impl("looks when time has passed", "RMG-8", "a last time", _with(produce_class=LooksWhenTimeHasPassed)),
    of_impl("late by one", "RMG-8 RMG-15 RMG-18", "1 ms", _with(purgatory_class=LateByOne)),
    of_impl("producers too", "RMG-9", "an append alone wakes all", _of(ProducersToo)),
    of_impl("a change wakes nobody", "RMG-9", "of the in-sync replicas", _of(AChangeWakesNobody)),
    of_impl("followers wake nobody", "RMG-10", "who waits is not told", _of(FollowersWakeNobody)),
    of_impl("followers wake deletions", "RMG-10", "a deletion is told of its leader", _of(FollowersWakeDeletions)),
    of_impl("leaders wake all", "RMG-10", "without a new high watermark", _of(LeadersWakeAll)),
    of_impl("waits with errors", "RMG-11", "of one partition", _of(WaitsWithErrors)),
    of_impl("more than minBytes", "RMG-11 RMG-12", "exactly as many are too few", _of(MoreThanMinBytes)),
    of_impl("never at once", "RMG-11", "who would not wait does", _of(NeverAtOnce)),
    of_impl("each partition for itself", "RMG-12", "bytes are not added", _with(fetch_class=EachPartitionForItself)),
    of_impl("consumers wait for the end", "RMG-12", "of the log", _with(fetch_class=ConsumersWaitForTheEnd)),
    of_impl("waits above", "RMG-12", "the high watermark", _with(fetch_class=WaitsAboveTheHighWatermark)),
    of_impl("fenced wait", "RMG-12", "a reader of an earlier epoch", _with(fetch_class=FencedWait)),
    of_impl("time out is an error", "RMG-15", "of a fetch", _with(fetch_class=TimeOutIsAnError)),
    of_impl("deletes at once", "RMG-16", "without its followers", _of(DeletesAtOnce)),
    of_impl("deleted is not led", "RMG-17", "what is gone is led by others", _of(DeletedIsNotLed)),
    of_impl("offline waits", "RMG-17", "a deletion waits for what failed", _of(OfflineWaits)),
    of_impl("above the low watermark", "RMG-17", "it must be higher", _of(AboveTheLowWatermark)),
    of_impl("tells the low watermark", "RMG-18", "as if it were reached", _with(delete_class=TellsTheLowWatermark)),
    of_impl("always looks at it", "RMG-19", "without a deletion", _of(AlwaysLooksAtIt)),
    of_impl("any partition epoch", "RMG-20", "an older one is taken over", _of(NewestPartitionEpoch)),
    of_impl("followers are not made", "RMG-20", "until they lead", _of(FollowersAreNotMade)),
    of_impl("keeps what is reassigned", "RMG-21", "to others", _of(KeepsWhatIsReassigned)),
    of_impl("forgets offline", "RMG-21", "a deleted topic's", _of(ForgetsOffline)),
    of_impl("keeps the old log", "RMG-22", "for a new topic", _of(KeepsTheOldLog)),
    of_impl("offline for ever", "RMG-23", "a new topic is not made", _of(OfflineForEver)),
    of_impl("failure wakes", "RMG-24", "who waits there", _of(FailureWakes)),
    of_impl("all go offline", "RMG-24", "also of the other directory", _of(AllGoOffline)),
    of_impl("files of all", "RMG-25", "partitions of other directories", _of(FilesOfAll)),
    of_impl("empties files", "RMG-25", "of directories without a partition", _of(EmptiesFiles)),
    of_impl("twice", "RMG-26", "the timer and a look", _with(purgatory_class=Twice)),
    of_impl("waits for nothing", "RMG-26", "whose time is 0 ms waits", _with(purgatory_class=WaitsForNothing)),
    of_impl("shrinks one", "RMG-28", "of several partitions", _of(ShrinksOne)),
    of_spec("spec: forgets who waits", "RMG-26", "when time passes", _spec("advance", _forgets_who_waits)),
    of_spec("spec: leaves the partition", "RMG-21", "of a deleted topic", _spec("deleteTopic", _leaves_the_partition)),
    of_spec("spec: tells who waits", "RMG-24", "of a failure", _spec("handleLogDirFailure", _tells_who_waits)),
    of_model("Waits: looks once", "RMG-26 RMG-7", "and enters the list too late", _looks_once),
    of_model("Waits: rises in silence", "RMG-9", "nobody reads the list", _reads_before_the_change),
    of_model("Waits: resigns in silence", "RMG-10", "nobody reads the list", _resigns_in_silence),
    of_model("Waits: acknowledges at once", "RMG-6 RMG-7", "before it is replicated", _acknowledges_at_once),
    of_model("Waits: times out whoever", "RMG-8 RMG-26", "has an answer", _times_out_whoever),
]  # fmt: skip

SURVIVORS: dict[str, str] = {}
"""Generated faults of the models that nobody can notice, and why."""
