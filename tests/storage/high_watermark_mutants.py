"""Faults of the high watermark, each with the clauses that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kafkaspec.contract.machine import Machine, Step
from kafkaspec.impl.storage import high_watermark as impl
from kafkaspec.impl.storage.high_watermark import (
    GIVE_UP,
    NOT_COMPARED,
    REACTIONS,
    SEND_AGAIN,
    WAIT,
    AlterPartitionQueue,
    CommittedState,
    FollowerState,
    FutureReplica,
    LeaderAndIsr,
    Partition,
    Pending,
    PendingExpand,
    PendingShrink,
    ReadInfo,
    ReplicaLog,
)
from kafkaspec.impl.storage.high_watermark_driver import Driver
from kafkaspec.language import LoadedModel, Update, action, define, load, require
from kafkaspec.models.storage import high_watermark as model
from kafkaspec.models.storage.high_watermark import BROKER_EPOCHS, MAXIMAL, NEWER, Follower, Offset, Request, Version
from kafkaspec.mutants.mutant import Mutant, of_impl, of_model, of_spec, with_fault
from kafkaspec.spec.storage import high_watermark as spec
from kafkaspec.spec.storage.high_watermark_parts import replicas


def _of(make: type[Partition], queue: type[AlterPartitionQueue] = AlterPartitionQueue) -> Callable[[], Driver]:
    """What makes a driver of a faulty partition."""

    def made() -> Driver:
        driver = Driver()
        driver.make, driver.queue_class = make, queue
        driver.reset({})
        return driver

    return made


def _log(make: type[ReplicaLog]) -> Callable[[], Driver]:
    return _of(type(make.__name__, (Partition,), {"Log": make}))


def _followers(make: type[FollowerState]) -> Callable[[], Driver]:
    """A partition whose followers are of that class."""

    class Faulty(Partition):
        def _take_followers(self, ids: Sequence[int], *, keep: bool) -> None:
            super()._take_followers(ids, keep=keep)
            self._remake()

        def _begin_epoch(self, leader_epoch: int, new_leader: bool, in_sync: frozenset[int]) -> None:
            super()._begin_epoch(leader_epoch, new_leader, in_sync)
            self._remake()

        def update_follower(self, id: int, offset: int, log_start: int, broker_epoch: int) -> None:
            super().update_follower(id, offset, log_start, broker_epoch)
            self._remake()

        def _remake(self) -> None:
            self.followers = {id: make(**vars(f)) for id, f in self.followers.items()}

    return _of(Faulty)


# ---- the high watermark
class AboveTheEnd(ReplicaLog):
    """A follower's high watermark is its leader's, wherever its log ends."""

    def update_high_watermark(self, offset: int) -> None:
        self.high_watermark = max(offset, self.start)


class OfAFollowerRises(ReplicaLog):
    """A follower's high watermark does not fall."""

    def update_high_watermark(self, offset: int) -> None:
        super().update_high_watermark(max(offset, min(self.high_watermark, self.end)))


class OfALeaderFalls(ReplicaLog):
    def maybe_increment_high_watermark(self, offset: int) -> bool:
        rose = offset > self.high_watermark
        if offset >= 0:
            self.high_watermark = max(offset, self.start)
        return rose


class NotAfterAChange(Partition):
    """A change of the in-sync replicas that succeeded does not raise it."""

    def on_success(self, answer: LeaderAndIsr) -> None:
        before = self.log.high_watermark
        super().on_success(answer)
        self.log.high_watermark = before


class WaitsForWhoeverIsCaughtUp(Partition):
    """Also for one that may not join."""

    def is_waited_for(self, id: int) -> bool:
        caught_up = self.followers[id].is_caught_up(self.log.end, self.now(), self.lag_max_ms)
        return id in self.state.maximal_isr or caught_up


class WaitsForNobodyElse(Partition):
    def is_waited_for(self, id: int) -> bool:
        return id in self.state.maximal_isr


class BelowMinIsr(Partition):
    """It rises while too few are in sync."""

    def maybe_increment_high_watermark(self) -> bool:
        low = [f.log_end for id, f in self.followers.items() if self.is_waited_for(id)]
        return self.log.maybe_increment_high_watermark(min([self.log.end, *low]))


class CountsTheCommitted(Partition):
    """Whom the leader has asked to take in does not count before the answer."""

    def is_waited_for(self, id: int) -> bool:
        if isinstance(self.state, PendingExpand) and id == self.state.replica:
            return False
        return super().is_waited_for(id)


class CountsTheProposed(Partition):
    """Whom the leader has asked to take out does not count any more."""

    def is_waited_for(self, id: int) -> bool:
        leaving = isinstance(self.state, PendingShrink) and id in self.state.replicas
        return not leaving and super().is_waited_for(id)


class LooksAtEveryFetch(Partition):
    def update_follower(self, id: int, offset: int, log_start: int, broker_epoch: int) -> None:
        super().update_follower(id, offset, log_start, broker_epoch)
        self.maybe_increment_high_watermark()


class LooksBeforeItExpands(Partition):
    """A fetch raises the high watermark before it is looked whether the follower is in sync."""

    def maybe_expand_isr(self, id: int) -> None:
        self.maybe_increment_high_watermark()
        super().maybe_expand_isr(id)


# ---- followers
class LagsOnTheLimit(FollowerState):
    def is_caught_up(self, leader_end: int, now: int, lag_max_ms: int) -> bool:
        return leader_end == self.log_end or now - self.last_caught_up_ms < lag_max_ms


class LagsWithEverything(FollowerState):
    """Also whoever has all there is lags, if nothing comes."""

    def is_caught_up(self, leader_end: int, now: int, lag_max_ms: int) -> bool:
        return now - self.last_caught_up_ms <= lag_max_ms


class InTimeAlone(FollowerState):
    """One that is a fetch behind was not caught up when it fetched last."""

    def fetched(self, offset: int, log_start: int, leader_end: int, now: int, broker_epoch: int) -> FollowerState:
        after = super().fetched(offset, log_start, leader_end, now, broker_epoch)
        return after if offset >= leader_end else replace(after, last_caught_up_ms=self.last_caught_up_ms)


class CaughtUpByFetching(FollowerState):
    """Whoever fetches is caught up."""

    def fetched(self, offset: int, log_start: int, leader_end: int, now: int, broker_epoch: int) -> FollowerState:
        after = super().fetched(offset, log_start, leader_end, now, broker_epoch)
        return replace(after, last_caught_up_ms=now)


class KeepsTheLogEnd(FollowerState):
    """A follower's log end does not fall."""

    def fetched(self, offset: int, log_start: int, leader_end: int, now: int, broker_epoch: int) -> FollowerState:
        after = super().fetched(offset, log_start, leader_end, now, broker_epoch)
        return replace(after, log_end=max(self.log_end, offset))


class AnyLife(Partition):
    """A broker that has registered again may join by what it had before."""

    def is_eligible(self, id: int) -> bool:
        broker, seen = self.metadata.get(id), self.followers[id].broker_epoch
        return seen is not None and broker is not None and not broker.fenced and not broker.shutting_down


class AnyState(Partition):
    """A broker that is fenced or shutting down may join."""

    def is_eligible(self, id: int) -> bool:
        broker, seen = self.metadata.get(id), self.followers[id].broker_epoch
        return broker is not None and seen is not None and seen in (NOT_COMPARED, broker.epoch)


class TakesOldFetches(Partition):
    def update_follower(self, id: int, offset: int, log_start: int, broker_epoch: int) -> None:
        before = self.followers[id]
        self.followers[id] = before.fetched(offset, log_start, self.log.end, self.now(), broker_epoch)
        self.maybe_expand_isr(id)
        if before.log_end != offset:
            self.maybe_increment_high_watermark()


class FetchesOfTheFenced(Partition):
    """Also a fenced broker's fetches are compared with what it has registered."""

    def update_follower(self, id: int, offset: int, log_start: int, broker_epoch: int) -> None:
        known = self.metadata.get(id)
        if known is not None and broker_epoch != NOT_COMPARED and known.epoch > broker_epoch:
            raise impl.StaleBrokerEpoch
        super().update_follower(id, offset, log_start, broker_epoch)


class FencesLowerEpochs(Partition):
    """Who names a higher epoch is answered."""

    def check_epoch(self, leader_epoch: int | None) -> None:
        if leader_epoch is not None and leader_epoch < self.leader_epoch:
            raise impl.FencedLeaderEpoch


class FencesHigherEpochs(Partition):
    """Who names a lower epoch is answered."""

    def check_epoch(self, leader_epoch: int | None) -> None:
        if leader_epoch is not None and leader_epoch > self.leader_epoch:
            raise impl.UnknownLeaderEpoch


class AnybodyAnswers(Partition):
    """A follower answers who wants the leader."""

    def local_log(self, leader_epoch: int | None, only_leader: bool) -> ReplicaLog:
        return super().local_log(leader_epoch, only_leader and self.leader is None)


class NoReplicaIsToldTheEpoch(Partition):
    def fetch_as_follower(
        self, id: int, broker_epoch: int, leader_epoch: int | None, last_epoch: int | None, offset: int, log_start: int
    ) -> ReadInfo:
        try:
            return super().fetch_as_follower(id, broker_epoch, leader_epoch, last_epoch, offset, log_start)
        except impl.UnknownReplica:
            raise impl.UnknownReplica(True) from None


class DivergesAtTheEnd(Partition):
    """Only where the epoch ends below the offset, whichever it is."""

    def read(self, offset: int, last_epoch: int | None, *, up_to_end: bool) -> ReadInfo:
        found = super().read(offset, last_epoch, up_to_end=up_to_end)
        if found.diverging is not None and found.diverging[1] >= offset <= self.log.end:
            return super().read(offset, None, up_to_end=up_to_end)
        return found


class CountsWhoDiverges(Partition):
    def fetch_as_follower(
        self, id: int, broker_epoch: int, leader_epoch: int | None, last_epoch: int | None, offset: int, log_start: int
    ) -> ReadInfo:
        found = super().fetch_as_follower(id, broker_epoch, leader_epoch, last_epoch, offset, log_start)
        if found.diverging is not None and offset <= self.log.end:
            self.update_follower(id, offset, log_start, broker_epoch)
        return found


class DivergesBelowTheStart(Partition):
    """Divergence is told before the log start is looked at."""

    def read(self, offset: int, last_epoch: int | None, *, up_to_end: bool) -> ReadInfo:
        log = self.log
        if last_epoch is not None and offset < log.start:
            found = log.end_of_epoch(last_epoch)
            if found is not None and (found[0] < last_epoch or found[1] < offset):
                return ReadInfo(found, None, log.high_watermark, log.start, log.end)
        return super().read(offset, last_epoch, up_to_end=up_to_end)


class ReadsFromTheStart(Partition):
    """A fetch below the log start begins there."""

    def read(self, offset: int, last_epoch: int | None, *, up_to_end: bool) -> ReadInfo:
        return super().read(max(offset, self.log.start), last_epoch, up_to_end=up_to_end)


# ---- changes of the in-sync replicas
class JoinsBelowTheEpoch(Partition):
    """A follower that has reached the high watermark joins, wherever the leader's epoch began."""

    def is_in_sync(self, id: int) -> bool:
        return self.followers[id].log_end >= self.log.high_watermark


class JoinsAboveTheHighWatermark(Partition):
    def is_in_sync(self, id: int) -> bool:
        return super().is_in_sync(id) and (self.followers[id].log_end > self.log.high_watermark or not self.log.end)


class KeepsTheUnknown(Partition):
    """An in-sync replica that is none of the replicas stays."""

    def out_of_sync(self, isr: Iterable[int]) -> frozenset[int]:
        return super().out_of_sync(id for id in isr if id in self.followers)


class OneLeavesAtATime(Partition):
    def out_of_sync(self, isr: Iterable[int]) -> frozenset[int]:
        return frozenset(sorted(super().out_of_sync(isr))[:1])


class Overtakes(AlterPartitionQueue):
    """A request takes the place of one that is not answered."""

    def submit(self, partition: str, change: Pending) -> bool:
        self.unsent[partition] = change
        return True


class StaysPending(Partition):
    """A request that is not attempted stays pending."""

    def submit(self, change: Pending) -> None:
        self.state = change
        self.queue.submit(self.name, change)


class ComparesNoBrokerEpochs(Partition):
    def epoch_of(self, id: int) -> int:
        return self.broker_epoch if id == self.broker else NOT_COMPARED


class NewerAnswers(Partition):
    """An answer with the leader's own partition epoch is stale."""

    def on_success(self, answer: LeaderAndIsr) -> None:
        if answer.partition_epoch == self.partition_epoch:
            answer = replace(answer, partition_epoch=-1)
        super().on_success(answer)


class AnswersOfAnyEpoch(Partition):
    def on_success(self, answer: LeaderAndIsr) -> None:
        super().on_success(replace(answer, leader_epoch=self.leader_epoch))


class AnswersOfAnyVersion(Partition):
    """The partition epoch falls with the answer."""

    def on_success(self, answer: LeaderAndIsr) -> None:
        if answer.partition_epoch < self.partition_epoch and answer.leader_epoch == self.leader_epoch:
            self.partition_epoch = answer.partition_epoch
        super().on_success(answer)


class TakesTheProposal(Partition):
    """The in-sync replicas are those that it asked for, whatever the answer has."""

    def on_success(self, answer: LeaderAndIsr) -> None:
        change = self.queue.unsent[self.name]
        super().on_success(replace(answer, isr=change.sent.isr))


class Reacting(Partition):
    """A partition that takes errors for others."""

    errors: Mapping[str, str] = {}

    def on_error(self, error: str) -> None:
        super().on_error(self.errors.get(error, error))


class WaitsWhereItWasNotDone(Reacting):
    errors = dict.fromkeys([e for e, r in REACTIONS.items() if r == GIVE_UP], "INVALID_REQUEST")


class GivesUpWhereItMayBeDone(Reacting):
    errors = dict.fromkeys([e for e, r in REACTIONS.items() if r == WAIT], "INELIGIBLE_REPLICA")


class NeverAgain(Reacting):
    errors = dict.fromkeys(["UNKNOWN_SERVER_ERROR", "NOT_CONTROLLER", "REQUEST_TIMED_OUT"], "INVALID_REQUEST")


class NewLeaderIsRetried(Reacting):
    errors = {"NEW_LEADER_ELECTED": SEND_AGAIN}


class LateAnswers(Partition):
    """An answer counts, whatever is pending."""

    def on_success(self, answer: LeaderAndIsr) -> None:
        self.state = self.queue.unsent[self.name]
        super().on_success(answer)


class LateErrors(Partition):
    def on_error(self, error: str) -> None:
        self.state = self.queue.unsent[self.name]
        super().on_error(error)


# ---- elections
class AnyVersion(Partition):
    """What the controller said before is taken over."""

    def make_leader(self, leader_epoch: int, partition_epoch: int, replicas: Iterable[int], isr: Iterable[int]) -> bool:
        self.partition_epoch = min(self.partition_epoch, partition_epoch)
        return super().make_leader(leader_epoch, partition_epoch, replicas, isr)


class NewerVersions(Partition):
    """What has the broker's own partition epoch is skipped."""

    def make_leader(self, leader_epoch: int, partition_epoch: int, replicas: Iterable[int], isr: Iterable[int]) -> bool:
        if partition_epoch == self.partition_epoch and leader_epoch == self.leader_epoch:
            return False
        return super().make_leader(leader_epoch, partition_epoch, replicas, isr)


class FollowsAnyVersion(Partition):
    def make_follower(self, leader: int, leader_epoch: int, partition_epoch: int, recovering: bool) -> bool:
        self.partition_epoch = min(self.partition_epoch, partition_epoch)
        return super().make_follower(leader, leader_epoch, partition_epoch, recovering)


class EpochWithItsFirstRecord(Partition):
    """A leader's epoch is in its log with the first record."""

    def _begin_epoch(self, leader_epoch: int, new_leader: bool, in_sync: frozenset[int]) -> None:
        before = self.log.epochs.entries
        super()._begin_epoch(leader_epoch, new_leader, in_sync)
        self.log.epochs.clear_and_flush()
        for e in before:
            self.log.epochs.assign(*e)


class KeepsPending(Partition):
    """What is pending stays so when the controller says who is in sync."""

    def make_leader(self, leader_epoch: int, partition_epoch: int, replicas: Iterable[int], isr: Iterable[int]) -> bool:
        before = self.state
        took = partition_epoch >= self.partition_epoch
        found = super().make_leader(leader_epoch, partition_epoch, replicas, isr)
        if took and not isinstance(before, CommittedState):
            self.state = before
        return found


class KnowsItsFollowersFromBefore(Partition):
    """A new leader counts with what it knew of its followers when it last led."""

    def make_follower(self, leader: int, leader_epoch: int, partition_epoch: int, recovering: bool) -> bool:
        known = self.followers
        took = partition_epoch >= self.partition_epoch
        found = super().make_follower(leader, leader_epoch, partition_epoch, recovering)
        if took:
            self.known = known
        return found

    known: dict[int, FollowerState]

    def _begin_epoch(self, leader_epoch: int, new_leader: bool, in_sync: frozenset[int]) -> None:
        super()._begin_epoch(leader_epoch, new_leader, in_sync)
        for id, f in getattr(self, "known", {}).items():
            if new_leader and id in self.followers:
                self.followers[id] = replace(self.followers[id], log_end=f.log_end)


class AllAreCaughtUp(Partition):
    """In a new epoch all followers are caught up."""

    def _begin_epoch(self, leader_epoch: int, new_leader: bool, in_sync: frozenset[int]) -> None:
        super()._begin_epoch(leader_epoch, new_leader, frozenset(self.followers))


class FetchesFromANewLeader(Partition):
    """It begins to fetch if and only if the leader is another one."""

    def make_follower(self, leader: int, leader_epoch: int, partition_epoch: int, recovering: bool) -> bool:
        before = self.leader
        found = super().make_follower(leader, leader_epoch, partition_epoch, recovering)
        return found and leader != before


class RemembersWhoIsInSync(Partition):
    def make_follower(self, leader: int, leader_epoch: int, partition_epoch: int, recovering: bool) -> bool:
        before = self.state.isr
        found = super().make_follower(leader, leader_epoch, partition_epoch, recovering)
        if not self.state.isr:
            self.state = CommittedState(before, self.state.recovering)
        return found


# ---- producers
class CountsWhoMayBeInSync(Partition):
    """An append with acks=all counts the maximal ISR."""

    def is_under_min_isr(self) -> bool:
        return len(self.state.maximal_isr) < self.min_isr


class MoreThanThereAre(Partition):
    """min.insync.replicas may be more than all replicas."""

    @property
    def min_isr(self) -> int:
        return self.configured_min_isr


class AppendsWithoutEpoch(ReplicaLog):
    """Records are of the latest epoch that the log knows."""

    def append(self, epoch: int, count: int) -> int:
        latest = self.latest_epoch
        return super().append(epoch if latest is None else latest, count)


class AnswersWithTheCommitted(Partition):
    def enough_replicas_reach(self, offset: int) -> tuple[bool, str | None]:
        found, error = super().enough_replicas_reach(offset)
        if found:
            error = None if len(self.state.isr) >= self.min_isr else "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
        return found, error


class AnswersNoError(Partition):
    def enough_replicas_reach(self, offset: int) -> tuple[bool, str | None]:
        found, error = super().enough_replicas_reach(offset)
        return found, None if found else error


# ---- deletion
class DeletesUpToTheEnd(ReplicaLog):
    def maybe_increment_log_start(self, offset: int) -> None:
        if self.high_watermark < offset <= self.end:
            self.high_watermark = offset
        super().maybe_increment_log_start(offset)


class WaitsForTheDead(Partition):
    def low_watermark(self) -> int:
        self.lead()
        return min([self.log.start, *(f.log_start for f in self.followers.values())])


class WaitsForThoseInSync(Partition):
    def low_watermark(self) -> int:
        self.lead()
        alive = {id for id in self.followers if self.metadata.alive_epoch(id) is not None}
        return min([self.log.start, *(self.followers[id].log_start for id in alive & self.state.isr)])


# ---- a follower
class AppendsLaterEpochs(Partition):
    def process(self, batches: Iterable[tuple[int, int]], high_watermark: int, log_start: int) -> None:
        here, self.leader_epoch = self.leader_epoch, 2**31
        try:
            super().process(batches, high_watermark, log_start)
        finally:
            self.leader_epoch = here


class SkipsLaterEpochs(Partition):
    """What comes behind a batch of a later epoch is appended, if it is of none."""

    def process(self, batches: Iterable[tuple[int, int]], high_watermark: int, log_start: int) -> None:
        """Here they rise: nothing of an earlier one comes behind."""
        kept = [b for b in batches if b[0] <= self.leader_epoch]
        super().process(kept[: 1 if len(kept) == 2 else None], high_watermark, log_start)


class TruncatesWhereItIsTold(Partition):
    """KIP-101: at the leader's end of the epoch, whatever epoch that is."""

    def truncate_on_fetch(self, epoch: int, end_offset: int) -> int:
        self.log.truncate_to(min(end_offset, self.log.end))
        return self.log.end


class TruncatesToTheHighWatermark(Partition):
    """Before KIP-101."""

    def truncate_on_fetch(self, epoch: int, end_offset: int) -> int:
        self.log.truncate_to(self.log.high_watermark)
        return self.log.end


class TruncatesItsOwnEpoch(Partition):
    """Its own end of the epoch alone counts."""

    def truncate_on_fetch(self, epoch: int, end_offset: int) -> int:
        own = self.log.end_of_epoch(epoch)
        return super().truncate_on_fetch(epoch, end_offset if own is None else max(end_offset, own[1]))


class KeepsTheHighWatermark(ReplicaLog):
    """A truncation leaves it where it was."""

    def truncate_to(self, offset: int) -> None:
        before = self.high_watermark
        super().truncate_to(offset)
        self.high_watermark = before


class KeepsTheEpochs(ReplicaLog):
    """A truncation at the log's end, or beyond, leaves them."""

    def truncate_to(self, offset: int) -> None:
        if offset < self.end:
            super().truncate_to(offset)


class FullyBelowTheStart(ReplicaLog):
    """A log that begins again keeps its high watermark."""

    def truncate_fully_and_start_at(self, offset: int) -> None:
        before = self.high_watermark
        super().truncate_fully_and_start_at(offset)
        self.high_watermark = before


class BeginsAgain(Partition):
    """A follower whose fetch is out of range drops its log, wherever the leader's begins."""

    def fetch_offset_and_truncate(self, leader_start: int, leader_end: int) -> int:
        if leader_end >= self.log.end:
            self.log.truncate_fully_and_start_at(max(leader_start, self.log.end))
        return super().fetch_offset_and_truncate(leader_start, leader_end)


class EndsOfTheEpochAsked(ReplicaLog):
    """The epoch in the answer is the one that was asked for."""

    def end_of_epoch(self, epoch: int) -> tuple[int, int] | None:
        found = super().end_of_epoch(epoch)
        return None if found is None else (epoch, found[1])


class TellsTheLatest(Partition):
    """A new leader tells its high watermark, however low."""

    def latest_offset(self, leader_epoch: int | None, client: bool) -> int:
        try:
            return super().latest_offset(leader_epoch, client)
        except impl.OffsetNotAvailable:
            return self.log.high_watermark


class ReadsUpToTheEnd(Partition):
    """A consumer reads what is not replicated."""

    def read(self, offset: int, last_epoch: int | None, *, up_to_end: bool) -> ReadInfo:
        return super().read(offset, last_epoch, up_to_end=True)


class ForgetsTheLastEpoch(Partition):
    """An answer without records clears the epoch that the next fetch names."""

    empty = False

    def process(self, batches: Iterable[tuple[int, int]], high_watermark: int, log_start: int) -> None:
        self.empty = not batches
        super().process(batches, high_watermark, log_start)

    def next_fetch(self) -> tuple[int, int | None, int, int]:
        epoch, last, offset, start = super().next_fetch()
        return epoch, None if self.empty else last, offset, start


# ---- the spec
def _spec(operation: str, body: Callable[..., Any]) -> Callable[[], Machine[replicas.Partition]]:
    return lambda: with_fault(spec.machine, operation, body)


def _rises_with_the_log(state: replicas.Partition, count: int, required_acks: int) -> Step[replicas.Partition, Any]:
    step = spec.append_records_to_leader(state, count, required_acks)
    return Step(step.state.with_log(high_watermark=step.state.log.log_end), step.result)


def _falls_with_the_start(state: replicas.Partition, offset: int) -> Step[replicas.Partition, Any]:
    step = spec.delete_records_on_leader(state, offset)
    return Step(step.state.with_log(high_watermark=step.state.log.log_start), step.result)


# ---- the model
def _tells_the_same_version() -> LoadedModel:
    class Changes(model.Changes):
        @action("HWM-24", "HWM-40", who="controller")
        def tell(s, v: Version) -> None:
            """What has the leader's own partition epoch is taken over."""
            require(s.told < v, s.version <= v, v <= s.latest, v >= s.version or not NEWER)
            s.next.told = v
            s.next.isr = s.history[v]
            s.next.version = v
            s.next.pending = False

    return load(Changes)


def _judges_no_version() -> LoadedModel:
    class Changes(model.Changes):
        @action("HWM-40", who="controller")
        def judge(s) -> None:
            """A request is done, whatever partition epoch it names."""
            require(s.request == Request.SENT)
            if BROKER_EPOCHS and not s.sent - s.history[s.latest] <= s.unfenced & s.sent_fresh:
                s.next.request = Request.INELIGIBLE
            else:
                s.decide(s.sent)
                s.next.request = Request.DONE

    return load(Changes)


def _judges_no_broker_epoch() -> LoadedModel:
    class Changes(model.Changes):
        @action("HWM-40", who="controller")
        def judge(s) -> None:
            require(s.request == Request.SENT)
            if s.sent_at != s.latest:
                s.next.request = Request.INVALID
            elif not s.sent - s.history[s.latest] <= s.unfenced or (not BROKER_EPOCHS and s.sent_fresh == set()):
                s.next.request = Request.INELIGIBLE
            else:
                s.decide(s.sent)
                s.next.request = Request.DONE
                s.next.accepted = s.latest + 1

    return load(Changes)


def _counts_only_the_committed() -> LoadedModel:
    class Changes(model.Changes):
        @define
        def maximal(s) -> set[Follower]:
            return s.isr if MAXIMAL else s.isr & s.sent

    return load(Changes)


def _gives_up_what_may_be_done() -> LoadedModel:
    class Changes(model.Changes):
        @action("HWM-20", "HWM-40", who="leader")
        def hear_invalid(s) -> None:
            """The first request may have been done, and its answer lost."""
            require(s.request == Request.INVALID)
            s.next.request = Request.NONE
            s.next.pending = False

    return load(Changes)


def _shrinks_at_once() -> LoadedModel:
    class Changes(model.Changes):
        @define
        def maximal(s) -> set[Follower]:
            """Whoever is to leave does not count."""
            return s.sent if s.pending and MAXIMAL else s.isr

    return load(Changes)


def _leading_shrinks_at_once() -> LoadedModel:
    class Leadership(model.Leadership):
        @define
        def maximal(s) -> set[Follower]:
            return s.proposed if s.pending else s.isr

    return load(Leadership)


def _leading_joins_anywhere() -> LoadedModel:
    class Leadership(model.Leadership):
        @action("HWM-14", "HWM-16", who="follower")
        def fetch(s, f: Follower, o: Offset) -> None:
            """Below the high watermark too."""
            require(o <= s.end, s.reached[f] <= o)
            s.next.reached[f] = o
            s.next.known = s.known | {f}
            if o == s.end:
                s.next.current = s.current | {f}
            if not s.pending and not s.in_flight and f not in s.isr and f in s.eligible:
                s.next.pending = True
                s.next.in_flight = True
                s.next.proposed = s.isr | {f}

    return load(Leadership)


def _leading_tells_whatever_the_number() -> LoadedModel:
    class Leadership(model.Leadership):
        @action("HWM-24", "HWM-3", who="controller")
        def tell(s, isr: set[Follower]) -> None:
            """The high watermark rises if enough were in sync before."""
            require(isr <= s.maximal())
            s.next.isr = isr
            s.next.pending = False
            s.next.proposed = set()
            s.next.high = s.raised(s.end, s.isr, isr)

    return load(Leadership)


def _leading_succeeds_whatever_the_number() -> LoadedModel:
    class Leadership(model.Leadership):
        @action("HWM-17", "HWM-22", "HWM-3", who="controller")
        def succeed(s) -> None:
            """The high watermark rises if enough were in sync before."""
            require(s.in_flight)
            s.next.in_flight = False
            s.next.pending = False
            s.next.proposed = set()
            if s.pending:
                s.next.isr = s.proposed
                s.next.high = s.raised(s.end, s.isr, s.proposed)

    return load(Leadership)


def _leading_waits_for_nobody_else() -> LoadedModel:
    class Leadership(model.Leadership):
        @define
        def raised(s, end: Offset, isr: set[Follower], maximal: set[Follower]) -> Offset:
            """Only for the maximal ISR."""
            low = min((s.reached[f] for f in Follower if f in maximal), default=end)
            return max(s.high, min(low, end)) if s.in_sync(isr) else s.high

    return load(Leadership)


def _leading_fetch(raises: int) -> LoadedModel:
    """A fetch raises the high watermark under one of its two conditions alone."""
    sound = load(model.Leadership)

    def faulty(u: Update) -> Update:
        assert len(u.cond.args) == 2
        return replace(u, cond=u.cond.args[raises])

    actions = [
        replace(a, updates=[faulty(u) if u.var == "high" else u for u in a.updates]) if a.name == "fetch" else a
        for a in sound.actions
    ]
    return replace(sound, actions=actions)


def _leading_fetches_whatever_the_number() -> LoadedModel:
    return _leading_fetch(1)


def _leading_looks_at_every_fetch() -> LoadedModel:
    return _leading_fetch(0)


# ---- moves to another log directory
def _futures(make: type[FutureReplica]) -> Callable[[], Driver]:
    return _of(type(make.__name__, (Partition,), {"Future": make}))


class WantedIsForgotten(Partition):
    """What was asked for before there was a log."""

    def alter_log_dir(self, directory: int) -> None:
        try:
            super().alter_log_dir(directory)
        finally:
            self.wanted_directory = None


class KeepsTheOtherDirectory(Partition):
    """A future replica goes on in the directory that was asked for first."""

    def alter_log_dir(self, directory: int) -> None:
        if self.future is None or directory == self.directory:
            super().alter_log_dir(directory)


class LowWithoutTheFuture(Partition):
    def low_watermark(self) -> int:
        future, self.future = self.future, None
        try:
            return super().low_watermark()
        finally:
            self.future = future


class LowWithoutAccepted(Partition):
    """A future replica that the controller has accepted holds no deletion back."""

    def low_watermark(self) -> int:
        future = self.future
        if future is None or future.reassignment != impl.ACCEPTED:
            return super().low_watermark()
        self.future = None
        try:
            return super().low_watermark()
        finally:
            self.future = future


class AcceptedStays(Partition):
    """A directory that the controller has accepted is not taken back when the move is given up."""

    def cancel_move(self) -> None:
        if self.future is not None and self.future.reassignment == impl.ACCEPTED:
            self.future = None
        super().cancel_move()


class RisingFuture(FutureReplica):
    """Its high watermark does not fall with the current one's."""

    def fetch(self, current: ReplicaLog) -> bool:
        before = self.log.high_watermark
        fetched = super().fetch(current)
        if fetched:
            self.log.high_watermark = min(max(before, self.log.high_watermark), self.log.end)
        return fetched


class BeginsAtTheEnd(FutureReplica):
    """In a new epoch it would fetch from its log end: where no epoch says more, nothing is cut."""

    def begin(self, leader_epoch: int) -> None:
        super().begin(leader_epoch)
        self.offset = self.log.end


class BeginsWithoutTruncating(FutureReplica):
    def begin(self, leader_epoch: int) -> None:
        super().begin(leader_epoch)
        self.is_truncating = False
        self.offset = self.log.end


class TruncatesToTheMark(FutureReplica):
    """Whatever the epochs say: before KIP-279."""

    def truncate(self, current: ReplicaLog) -> None:
        self.log.truncate_to(self.offset)
        self.is_truncating = False


class NotMarked(FutureReplica):
    """The current replica was cut."""

    def mark_for_truncation(self, offset: int) -> None:
        pass


class MarkedAboveItsOffset(FutureReplica):
    """The last cut is the last word, also above what it has, or above an earlier cut."""

    def mark_for_truncation(self, offset: int) -> None:
        self.offset = offset
        self.is_truncating = True


class MarkedAlways(Partition):
    """Also where the leader's epoch was unknown: what would be right, and is not so."""

    def truncate_on_fetch(self, epoch: int, end_offset: int) -> int:
        end = super().truncate_on_fetch(epoch, end_offset)
        if self.future is not None:
            self.future.mark_for_truncation(end)
        return end


class FetchesWhatIsReplicated(FutureReplica):
    """Alone."""

    def fetch(self, current: ReplicaLog) -> bool:
        end, current.end = current.end, max(current.high_watermark, min(self.offset, current.end))
        try:
            return super().fetch(current)
        finally:
            current.end = end


class KeepsItsStart(FutureReplica):
    def fetch(self, current: ReplicaLog) -> bool:
        start, current.start = current.start, min(current.start, self.log.start)
        try:
            return super().fetch(current)
        finally:
            current.start = start


class FetchesAtOnceAgain(FutureReplica):
    """Where its fetch was out of range."""

    def fetch(self, current: ReplicaLog) -> bool:
        return super().fetch(current) or super().fetch(current)


class PromotesUnasked(Partition):
    """Before KIP-858: the controller need not know."""

    def continue_move(self) -> None:
        if self.future is not None:
            self.future.reassignment = impl.ACCEPTED
        super().continue_move()


class PromotesBehind(Partition):
    """As soon as the controller has accepted it."""

    def on_assigned(self) -> None:
        super().on_assigned()
        if self.future is not None and self.future.reassignment == impl.ACCEPTED:
            self.promote(self.future)


class KeepsItsHighWatermark(Partition):
    """That of its last fetch."""

    def promote(self, future: FutureReplica) -> None:
        high = future.log.high_watermark - (future.log.high_watermark > future.log.start)
        super().promote(future)
        self.log.high_watermark = high


class CarriesTheEpochs(Partition):
    """As KAFKA-20961 would have it."""

    def promote(self, future: FutureReplica) -> None:
        for epoch, start in self.log.epochs.entries:
            future.log.epochs.assign(epoch, start)
        super().promote(future)


class NamesTheNewLogsEpoch(Partition):
    def promote(self, future: FutureReplica) -> None:
        super().promote(future)
        self.last_fetched_epoch = self.log.latest_epoch


class GoesOnAsking(Partition):
    """What the controller says does not end that it was asked."""

    def restart_move(self) -> None:
        before = None if self.future is None else self.future.reassignment
        super().restart_move()
        if self.future is not None and before is not None:
            self.future.reassignment = before


class RestartsByNewEpochs(Partition):
    """Alone."""

    def restart_move(self) -> None:
        future = self.future
        if future is None or future.leader_epoch != self.leader_epoch:
            super().restart_move()


class TakesNothingBack(Partition):
    def cancel_move(self) -> None:
        self.future = None


class ComparesTheDirectory(Partition):
    """An answer is for the directory that it was asked for."""

    def on_assigned(self) -> None:
        asked, future = self.assignment, self.future
        before = None if future is None else future.reassignment
        super().on_assigned()
        if future is not None and before is not None and asked is not None and asked[0] != future.directory:
            future.reassignment = before


MUTANTS: list[Mutant] = [
    of_impl("above the end", "HWM-1 HWM-32", "a follower's high watermark is above its log end", _log(AboveTheEnd)),
    of_impl("falls", "HWM-2 HWM-3", "a leader's high watermark falls", _log(OfALeaderFalls)),
    of_impl(
        "not after a change", "HWM-3 HWM-17", "a shrink does not raise it", _of(NotAfterAChange), "KAFKA-13091"
    ),
    of_impl(
        "waits for whoever is caught up",
        "HWM-3",
        "also for one that is fenced",
        _of(WaitsForWhoeverIsCaughtUp),
        "KAFKA-15021",
    ),
    of_impl("waits for nobody else", "HWM-3 HWM-5", "not for one that may join", _of(WaitsForNobodyElse)),
    of_impl("below min ISR", "HWM-3", "it rises while too few are in sync", _of(BelowMinIsr), "KAFKA-15583"),
    of_impl("counts the committed", "HWM-3 HWM-4", "whom it asked to take in does not count", _of(CountsTheCommitted)),
    of_impl("counts the proposed", "HWM-3 HWM-4", "whom it asked to take out does not count", _of(CountsTheProposed)),
    of_impl("looks before it expands", "HWM-3 HWM-14", "a fetch raises it first", _of(LooksBeforeItExpands)),
    of_impl("lags with everything", "HWM-5 HWM-15", "who has all there is lags", _followers(LagsWithEverything)),
    of_impl("any life", "HWM-6 HWM-14", "an earlier broker epoch may join", _of(AnyLife), "KAFKA-14617"),
    of_impl("any state", "HWM-6 HWM-14", "a fenced broker may join", _of(AnyState), "KAFKA-13916"),
    of_impl("in time alone", "HWM-7", "who is a fetch behind was never caught up", _followers(InTimeAlone)),
    of_impl("caught up by fetching", "HWM-7", "whoever fetches is caught up", _followers(CaughtUpByFetching)),
    of_impl("takes old fetches", "HWM-8 HWM-14", "of an earlier life", _of(TakesOldFetches), "KAFKA-14617"),
    of_impl("fences lower epochs", "HWM-9", "who names a higher epoch is answered", _of(FencesLowerEpochs)),
    of_impl("fences higher epochs", "HWM-9", "who names a lower epoch is answered", _of(FencesHigherEpochs)),
    of_impl("anybody answers", "HWM-10", "a follower answers in its leader's place", _of(AnybodyAnswers)),
    of_impl("told the epoch", "HWM-11", "who is no replica gets an epoch's error always", _of(NoReplicaIsToldTheEpoch)),
    of_impl("diverges at the end", "HWM-12", "an unknown epoch does not diverge", _of(DivergesAtTheEnd)),
    of_impl("counts who diverges", "HWM-12", "its offset is its log end", _of(CountsWhoDiverges)),
    of_impl("reads from the start", "HWM-13", "a fetch below the log start begins there", _of(ReadsFromTheStart)),
    of_impl(
        "joins below the epoch", "HWM-14", "a follower below the leader's epoch joins", _of(JoinsBelowTheEpoch),
        "KAFKA-7128",
    ),
    of_impl("joins above", "HWM-14", "at the high watermark it does not join", _of(JoinsAboveTheHighWatermark)),
    of_impl("keeps the unknown", "HWM-15", "who is none of the replicas stays", _of(KeepsTheUnknown), "KAFKA-9672"),
    of_impl("overtakes", "HWM-16 HWM-22", "a second request takes the place of the first", _of(Partition, Overtakes)),
    of_impl("stays pending", "HWM-16 HWM-4", "what is not attempted stays pending", _of(StaysPending)),
    of_impl("compares no broker epochs", "HWM-16", "members have none", _of(ComparesNoBrokerEpochs), "KAFKA-14617"),
    of_impl("newer answers", "HWM-17", "of its own partition epoch are stale", _of(NewerAnswers), "KAFKA-12751"),
    of_impl("takes the proposal", "HWM-17", "whatever the answer has", _of(TakesTheProposal)),
    of_impl("answers of any epoch", "HWM-18", "of another leader epoch too", _of(AnswersOfAnyEpoch)),
    of_impl("answers of any version", "HWM-18", "the partition epoch falls", _of(AnswersOfAnyVersion)),
    of_impl("waits where it was not done", "HWM-19", "it stays pending", _of(WaitsWhereItWasNotDone)),
    of_impl("gives up where it may be done", "HWM-20 HWM-4", "any refusal is the end", _of(GivesUpWhereItMayBeDone)),
    of_impl("never again", "HWM-21", "a request that failed is not sent again", _of(NeverAgain)),
    of_impl("late answers", "HWM-22", "of what is not pending count", _of(LateAnswers)),
    of_impl("late errors", "HWM-22", "of what is not pending count", _of(LateErrors)),
    of_impl("any version", "HWM-23", "what the controller said before is taken over", _of(AnyVersion)),
    of_impl("newer versions", "HWM-24", "what has its own partition epoch is skipped", _of(NewerVersions)),
    of_impl("follows any version", "HWM-23 HWM-26", "also as a follower", _of(FollowsAnyVersion)),
    of_impl(
        "epoch with its first record", "HWM-24 HWM-35", "a leader's is not in its log",
        _of(EpochWithItsFirstRecord), "KAFKA-7415",
    ),
    of_impl("keeps pending", "HWM-24", "what is pending outlives what the controller says", _of(KeepsPending)),
    of_impl("all are caught up", "HWM-25", "in a new epoch", _of(AllAreCaughtUp)),
    of_impl("knows from before", "HWM-25", "log ends of its last time as a leader", _of(KnowsItsFollowersFromBefore)),
    of_impl(
        "fetches from a new leader", "HWM-26", "the same leader's new epoch is none", _of(FetchesFromANewLeader),
        "KAFKA-7164",
    ),
    of_impl("remembers who is in sync", "HWM-26", "a follower does", _of(RemembersWhoIsInSync)),
    of_impl("counts who may be in sync", "HWM-27 HWM-3", "for acks=all", _of(CountsWhoMayBeInSync)),
    of_impl("more than there are", "HWM-27 HWM-29", "min.insync.replicas above all replicas", _of(MoreThanThereAre)),
    of_impl("appends without epoch", "HWM-28 HWM-32", "records are of the latest one", _log(AppendsWithoutEpoch)),
    of_impl("answers with the committed", "HWM-29", "whom it asked to take in does not count",
            _of(AnswersWithTheCommitted)),
    of_impl("answers no error", "HWM-29", "too few in sync are no error", _of(AnswersNoError)),
    of_impl("deletes up to the end", "HWM-30 HWM-2", "what is not replicated is deleted", _log(DeletesUpToTheEnd)),
    of_impl("waits for the dead", "HWM-31", "a fenced broker's log start counts", _of(WaitsForTheDead)),
    of_impl("waits for those in sync", "HWM-31", "no other's log start counts", _of(WaitsForThoseInSync)),
    of_impl("appends later epochs", "HWM-32", "than the leader's", _of(AppendsLaterEpochs), "KAFKA-18723"),
    of_impl("of a follower rises", "HWM-32", "its high watermark does not fall", _log(OfAFollowerRises)),
    of_impl("truncates where it is told", "HWM-33", "whatever epoch", _of(TruncatesWhereItIsTold), "KAFKA-6361"),
    of_impl("to the high watermark", "HWM-33", "as before KIP-101", _of(TruncatesToTheHighWatermark), "KIP-101"),
    of_impl("its own epoch", "HWM-33", "its own end of it alone counts", _of(TruncatesItsOwnEpoch)),
    of_impl("keeps the high watermark", "HWM-33 HWM-1", "above the log end", _log(KeepsTheHighWatermark)),
    of_impl("below the start", "HWM-34 HWM-1", "the high watermark stays", _log(FullyBelowTheStart), "KAFKA-9491"),
    of_impl("begins again", "HWM-34", "a log that the leader's covers is dropped", _of(BeginsAgain)),
    of_impl("ends of the epoch asked", "HWM-35 HWM-12", "it answers for the one asked", _log(EndsOfTheEpochAsked),
            "KAFKA-6361"),
    of_impl("tells the latest", "HWM-36", "before its epoch is replicated", _of(TellsTheLatest)),
    of_impl("reads up to the end", "HWM-37", "a consumer reads what may be lost", _of(ReadsUpToTheEnd)),
    of_impl("forgets the last epoch", "HWM-38", "behind an empty answer", _of(ForgetsTheLastEpoch), "KAFKA-15510"),
    of_impl("wanted is forgotten", "HWM-41", "a directory that was asked for first", _of(WantedIsForgotten)),
    of_impl("keeps the other directory", "HWM-41 HWM-47", "that was asked for before", _of(KeepsTheOtherDirectory)),
    of_impl("low without the future", "HWM-31", "its log start does not count", _of(LowWithoutTheFuture)),
    of_impl("begins without truncating", "HWM-42", "in a new epoch", _futures(BeginsWithoutTruncating)),
    of_impl("truncates to the mark", "HWM-42", "whatever the epochs say", _futures(TruncatesToTheMark), "KIP-279"),
    of_impl("not marked", "HWM-42", "when the current replica is cut", _futures(NotMarked)),
    of_impl("marked always", "HWM-42", "also where the leader's epoch was unknown", _of(MarkedAlways)),
    of_impl("fetches what is replicated", "HWM-43", "alone", _futures(FetchesWhatIsReplicated)),
    of_impl("keeps its start", "HWM-43", "where the current log's rises", _futures(KeepsItsStart)),
    of_impl("promotes unasked", "HWM-44", "the controller need not know", _of(PromotesUnasked), "KIP-858"),
    of_impl("promotes behind", "HWM-44", "once it was accepted", _of(PromotesBehind)),
    of_impl("keeps its high watermark", "HWM-45", "of before", _of(KeepsItsHighWatermark)),
    of_impl("carries the epochs", "HWM-45", "those without records too", _of(CarriesTheEpochs)),
    of_impl("names the new log's epoch", "HWM-45 HWM-38", "in its next fetch", _of(NamesTheNewLogsEpoch)),
    of_impl("goes on asking", "HWM-46", "what the controller says ends nothing", _of(GoesOnAsking)),
    of_impl(
        "takes nothing back", "HWM-47", "the controller has another directory", _of(TakesNothingBack), "KAFKA-16297"
    ),
    of_impl("compares the directory", "HWM-48", "of an answer", _of(ComparesTheDirectory)),
    of_spec(
        "spec: rises with the log", "HWM-3 HWM-28", "an append is replicated at once",
        _spec("appendRecordsToLeader", _rises_with_the_log),
    ),
    of_spec(
        "spec: falls with the start", "HWM-2 HWM-30", "a deletion lowers it",
        _spec("deleteRecordsOnLeader", _falls_with_the_start),
    ),
    of_model(
        "Changes: the same version", "HWM-40 HWM-24", "as released: it is taken over twice",
        _tells_the_same_version,
    ),
    of_model("Changes: any version", "HWM-40", "the controller does what is out of date", _judges_no_version),
    of_model(
        "Changes: any life", "HWM-40", "the controller takes in who has restarted", _judges_no_broker_epoch,
        "KAFKA-14617",
    ),
    of_model("Changes: the committed", "HWM-40 HWM-4", "before KIP-497's answer", _counts_only_the_committed),
    of_model("Changes: gives up", "HWM-20 HWM-40", "what may have been done", _gives_up_what_may_be_done),
    of_model("Changes: shrinks at once", "HWM-15 HWM-40", "before the answer", _shrinks_at_once),
    of_model("Leadership: shrinks at once", "HWM-15 HWM-4", "before the answer", _leading_shrinks_at_once),
    of_model("Leadership: joins anywhere", "HWM-14", "below the high watermark", _leading_joins_anywhere),
    of_model(
        "Leadership: fetch below min ISR", "HWM-3", "a fetch raises it while too few are in sync",
        _leading_fetches_whatever_the_number, "KAFKA-15583",
    ),
    of_model(
        "Leadership: told below min ISR", "HWM-3 HWM-24", "those of before are counted, as the controller tells others",
        _leading_tells_whatever_the_number, "KAFKA-15583",
    ),
    of_model(
        "Leadership: answer below min ISR", "HWM-3 HWM-17", "those of before the answer are counted",
        _leading_succeeds_whatever_the_number, "KAFKA-15583",
    ),
    of_model("Leadership: waits for nobody else", "HWM-3", "not for one that may join", _leading_waits_for_nobody_else),
    of_model(
        "Leadership: looks at every fetch", "HWM-3", "also where its offset is the one of before",
        _leading_looks_at_every_fetch,
    ),
]  # fmt: skip

_SO_TELLS = "a step of `tell`, which may tell what was asked for: fewer ways to the same states"
_STAYS = "whoever was never fenced is in the same states: fewer ways to them"
_RESTARTS = "whoever restarts is unfenced and out of sync, as one that is unfenced: fewer ways to the same states"
SURVIVORS: dict[str, str] = {
    "Leadership.succeed: guard 1 negated": _SO_TELLS,
    "Leadership.succeed: no effect 1": _SO_TELLS,
    "Leadership.succeed: effect 1, other value": _SO_TELLS,
    "Leadership.unfence: guard 1 negated": _STAYS,
    "Leadership.unfence: no effect 1": _STAYS,
    "Changes.unfence: guard 1 negated": _RESTARTS,
    "Changes.unfence: no effect 1": _RESTARTS,
}
"""Generated faults of the models that nobody can notice, and why."""


# ---- faults of range, boundary, depth, configuration and rare state
def _wraps(n: int, bits: int) -> int:
    half = 1 << bits - 1
    return (n + half) % (1 << bits) - half


class VersionsOf16Bits(Partition):
    def on_success(self, answer: LeaderAndIsr) -> None:
        super().on_success(replace(answer, partition_epoch=_wraps(answer.partition_epoch, 16)))


class OffsetsOf32Bits(ReplicaLog):
    def end_of_epoch(self, epoch: int) -> tuple[int, int] | None:
        found = super().end_of_epoch(epoch)
        return None if found is None else (found[0], _wraps(found[1], 32))


class BrokerEpochsOf32Bits(Partition):
    def is_eligible(self, id: int) -> bool:
        known = self.followers[id]
        if known.broker_epoch is not None and known.broker_epoch != _wraps(known.broker_epoch, 32):
            return False
        return super().is_eligible(id)


class TwoFollowers(Partition):
    """A third follower is not waited for."""

    def is_waited_for(self, id: int) -> bool:
        return id in list(self.followers)[:2] and super().is_waited_for(id)


class ZeroIsNoStart(Partition):
    """A leader whose epoch begins at offset 0 takes nobody in before a record is replicated."""

    def is_in_sync(self, id: int) -> bool:
        return super().is_in_sync(id) and bool(self.epoch_start or self.log.high_watermark)


class RetriesTwice(Partition):
    """A request that failed three times is given up."""

    failures = 0

    def on_error(self, error: str) -> None:
        self.failures = self.failures + 1 if error not in REACTIONS else 0
        super().on_error("INELIGIBLE_REPLICA" if self.failures == 3 else error)


class CutsAtTheStart(ReplicaLog):
    """A truncation below the log start leaves that."""

    def truncate_to(self, offset: int) -> None:
        super().truncate_to(max(offset, self.start))


class ShrinksToTwo(Partition):
    """Of three or more that lag, two are taken out."""

    def out_of_sync(self, isr: Iterable[int]) -> frozenset[int]:
        return frozenset(sorted(super().out_of_sync(isr))[:2])


class LowestOfTwo(Partition):
    def low_watermark(self) -> int:
        known = self.followers
        self.followers = dict(list(known.items())[:2])
        try:
            return super().low_watermark()
        finally:
            self.followers = known


class ReassignedIsKnown(Partition):
    """A replica that was removed and comes back is known as before."""

    def _take_followers(self, ids: Sequence[int], *, keep: bool) -> None:
        self.seen = {**getattr(self, "seen", {}), **self.followers}
        super()._take_followers(ids, keep=keep)
        if keep:
            self.followers = {id: self.seen.get(id, f) for id, f in self.followers.items()}

    seen: dict[int, FollowerState]


class NoErrorInFlight(Partition):
    """No error is answered while a change is pending."""

    def enough_replicas_reach(self, offset: int) -> tuple[bool, str | None]:
        found, error = super().enough_replicas_reach(offset)
        return found, error if not found or isinstance(self.state, CommittedState) else None


RARE: list[Mutant] = [
    of_impl("low without accepted", "HWM-31", "future replicas", _of(LowWithoutAccepted)),
    of_impl("accepted stays", "HWM-47", "of a move that was given up", _of(AcceptedStays)),
    of_impl("rising future", "HWM-43", "also where the current one's falls", _futures(RisingFuture)),
    of_impl("begins at the end", "HWM-42", "no epoch in common: nothing is cut", _futures(BeginsAtTheEnd)),
    of_impl("marked above its offset", "HWM-42", "also where it has less", _futures(MarkedAboveItsOffset)),
    of_impl("fetches at once again", "HWM-43", "where it was out of range", _futures(FetchesAtOnceAgain)),
    of_impl("restarts by new epochs", "HWM-46", "alone", _of(RestartsByNewEpochs)),
    of_impl("looks at every fetch", "HWM-3", "also where its offset is the one of before", _of(LooksAtEveryFetch)),
    of_impl("lags on the limit", "HWM-5", "at replica.lag.time.max.ms", _followers(LagsOnTheLimit)),
    of_impl("keeps the log end", "HWM-7", "of a follower that has less", _followers(KeepsTheLogEnd)),
    of_impl("fetches of the fenced", "HWM-8", "are compared too", _of(FetchesOfTheFenced)),
    of_impl("diverges below the start", "HWM-13", "is told first", _of(DivergesBelowTheStart)),
    of_impl("one leaves at a time", "HWM-15", "of two that lag", _of(OneLeavesAtATime)),
    of_impl("new leader is retried", "HWM-20", "NEW_LEADER_ELECTED is sent again", _of(NewLeaderIsRetried)),
    of_impl("skips later epochs", "HWM-32", "and one of two batches before it", _of(SkipsLaterEpochs)),
    of_impl("keeps the epochs", "HWM-33", "that begin at the log end", _log(KeepsTheEpochs)),
    of_impl("cuts at the start", "HWM-33 HWM-34", "a cut below the log start is one there", _log(CutsAtTheStart)),
    of_impl("versions of 16 bits", "HWM-17 HWM-18", "partition epoch 2^15 is below 0", _of(VersionsOf16Bits)),
    of_impl("offsets of 32 bits", "HWM-35 HWM-12 HWM-33", "an epoch's end above 2^31 - 1 wraps", _log(OffsetsOf32Bits)),
    of_impl("broker epochs of 32 bits", "HWM-6 HWM-14", "a higher one may not join", _of(BrokerEpochsOf32Bits)),
    of_impl("two followers", "HWM-3", "a third is not waited for", _of(TwoFollowers)),
    of_impl("zero is no start", "HWM-14", "nobody joins a new partition", _of(ZeroIsNoStart)),
    of_impl("retries twice", "HWM-21", "the third failure is the last", _of(RetriesTwice)),
    of_impl("lowest of two", "HWM-31", "a third follower's log start does not count", _of(LowestOfTwo)),
    of_impl("reassigned is known", "HWM-24", "a replica that comes back", _of(ReassignedIsKnown)),
    of_impl("no error in flight", "HWM-29", "while a change is pending", _of(NoErrorInFlight)),
]
"""Those that show at the end of a number's range, with many followers, or after a rare sequence."""

MUTANTS += RARE
