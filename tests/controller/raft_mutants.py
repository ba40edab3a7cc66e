"""Faults of a replica of the quorum, each with the clauses that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkaspec.contract.codec import replace
from kafkaspec.impl.controller import raft as impl
from kafkaspec.impl.controller.raft_driver import Driver
from kafkaspec.language import LoadedModel, action, define, load, majority, require
from kafkaspec.models.controller import raft as model
from kafkaspec.models.controller.raft import ONE_AT_A_TIME, OWN_EPOCH_FIRST, E, Entry, L, Length, Part, Role, Voter
from kafkaspec.mutants.mutant import Mutant, of_impl, of_model, of_spec, with_fault
from kafkaspec.spec.common.raft_replica import Replica
from kafkaspec.spec.controller import raft as spec


def _of(make: type[impl.Replica]) -> Callable[[], Driver]:
    """What makes a driver of a faulty replica."""

    def made() -> Driver:
        driver = Driver()
        driver.make = make
        driver.reset({})
        return driver

    return made


# ---- votes and roles
class ForgetsItsVote(impl.Replica):
    """With every change of the role."""

    def begin(self, role: str) -> None:
        super().begin(role)
        self.voted = None


class VotesTwice(impl.Replica):
    def grants(self, candidate: int, up_to_date: bool, pre_vote: bool) -> bool:
        voted, self.voted = self.voted, None
        granted = super().grants(candidate, up_to_date, pre_vote)
        self.voted = voted
        return granted


class PreVotesAreVotes(impl.Replica):
    def vote(self, epoch: int, candidate: int, last_epoch: int, last_offset: int, pre_vote: bool) -> impl.Reply:
        answer = super().vote(epoch, candidate, last_epoch, last_offset, pre_vote)
        if answer.granted and self.voted is None:
            self.voted = candidate
        return answer


class PreVotesForAnyLog(impl.Replica):
    def grants(self, candidate: int, up_to_date: bool, pre_vote: bool) -> bool:
        return super().grants(candidate, up_to_date or pre_vote, pre_vote)


class VotesForAnyLog(impl.Replica):
    def grants(self, candidate: int, up_to_date: bool, pre_vote: bool) -> bool:
        return super().grants(candidate, up_to_date or not pre_vote, pre_vote)


class ComparesTheEndAlone(impl.Replica):
    def vote(self, epoch: int, candidate: int, last_epoch: int, last_offset: int, pre_vote: bool) -> impl.Reply:
        own = self.log.last_epoch if last_offset >= self.log.end else -1
        return super().vote(epoch, candidate, min(max(last_epoch, own), epoch - 1), last_offset, pre_vote)


class FollowersPreVote(impl.Replica):
    """Though they fetch from their leader."""

    def grants(self, candidate: int, up_to_date: bool, pre_vote: bool) -> bool:
        if pre_vote and self.role == impl.FOLLOWER:
            return up_to_date
        return super().grants(candidate, up_to_date, pre_vote)


class CandidatesVote(impl.Replica):
    def grants(self, candidate: int, up_to_date: bool, pre_vote: bool) -> bool:
        if not pre_vote and self.role == impl.CANDIDATE:
            return up_to_date
        return super().grants(candidate, up_to_date, pre_vote)


class TakesAnyRequest(impl.Replica):
    """Of a log with records of a later epoch."""

    def vote(self, epoch: int, candidate: int, last_epoch: int, last_offset: int, pre_vote: bool) -> impl.Reply:
        return super().vote(epoch, candidate, min(last_epoch, epoch - 1), last_offset, pre_vote)


class ServesAnEarlierEpoch(impl.Replica):
    def vote(self, epoch: int, candidate: int, last_epoch: int, last_offset: int, pre_vote: bool) -> impl.Reply:
        return super().vote(max(epoch, self.epoch), candidate, last_epoch, last_offset, pre_vote)


class TakesEarlierAnswers(impl.Replica):
    def is_good(self, error: str, epoch: int, leader: int | None) -> bool:
        return super().is_good(error, max(epoch, self.epoch), leader)


class StandsAtOnce(impl.Replica):
    """In a new epoch, without asking."""

    def stand(self) -> None:
        super().stand()
        while self.role == impl.PROSPECTIVE:
            self.answers = dict.fromkeys(self.log.voters, True)
            self.count()


class ObserversStand(impl.Replica):
    def fetch_timeout(self) -> None:
        self.stand()


class LosesItsLeader(impl.Replica):
    """When it gives up."""

    def give_up(self) -> None:
        self.begin(impl.UNATTACHED)


class NeverGivesUp(impl.Replica):
    def vote_response(self, source: int, error: str, epoch: int, leader: int | None, granted: bool) -> None:
        role = self.role
        super().vote_response(source, error, epoch, leader, granted)
        if role == impl.PROSPECTIVE and leader is None and epoch == self.epoch and not granted:
            self.begin(impl.PROSPECTIVE)


class HalfIsEnough(impl.Replica):
    @property
    def majority(self) -> int:
        return max(1, len(self.log.voters) // 2)


class WritesNothing(impl.Replica):
    """At its election."""

    def lead(self) -> None:
        end, history = self.log.end, [*self.log.history]
        super().lead()
        self.log.truncate(end)
        self.log.history = history


class ResignedStays(impl.Replica):
    """In its epoch."""

    def election_timeout(self) -> None:
        if self.role == impl.RESIGNED:
            self.leader = None
            self.begin(impl.UNATTACHED)
        else:
            super().election_timeout()


class FollowsNobody(impl.Replica):
    """Of its own epoch."""

    def hear(self, epoch: int, leader: int | None) -> None:
        if epoch > self.epoch:
            super().hear(epoch, leader)


class RestartsAsAFollower(impl.Replica):
    """Of itself, and leads on."""

    def restart(self) -> None:
        led = self.leader == self.local and self.log.voters != (self.local,)
        super().restart()
        if led:
            self.begin(impl.UNATTACHED)


class LeadsOn(impl.Replica):
    """After a restart, in the epoch that it led."""

    def restart(self) -> None:
        led = self.leader == self.local and self.log.voters != (self.local,)
        super().restart()
        if led:
            self.lead()


# ---- the log
class ServesAnyEpoch(impl.Replica):
    def refuses(self, epoch: int) -> str | None:
        return None if self.role == impl.LEADER else super().refuses(epoch)


class EndsWithoutTheEpoch(impl.Log):
    """The end of the epoch that was asked for, under its name."""

    def end_of(self, epoch: int) -> impl.Position:
        return super().end_of(epoch)._replace(epoch=epoch)


class _WithLog(impl.Replica):
    log_class: type[impl.Log]

    def __init__(self, local: int, voters: Sequence[int], dynamic: bool) -> None:
        super().__init__(local, voters, dynamic)
        self.log.__class__ = self.log_class


def _log(made: type[impl.Log]) -> Callable[[], Driver]:
    return _of(type("Faulty", (_WithLog,), {"log_class": made}))


class CutsWhereTheLeaderEnds(impl.Log):
    """Without a look at its own epochs."""

    def cut(self, diverging: impl.Position) -> int:
        return min(diverging.offset, self.end)


class CutsToTheHighWatermark(impl.Replica):
    """Whatever the leader has."""

    def fetch_response(self, answer: impl.FetchReply) -> None:
        is_cut = answer.diverging is not None and answer.error == impl.OK and answer.epoch == self.epoch
        super().fetch_response(answer)
        if is_cut:
            self.log.truncate(max(self.committed, self.log.start))


class ForgetsTheVotersItCut(impl.Log):
    """They stay as they were said in what is gone."""

    def truncate(self, end: int) -> None:
        history = [*self.history]
        super().truncate(end)
        self.history = history


class TakesTheLeadersHighWatermark(impl.Replica):
    """Beyond its own end."""

    def fetch_response(self, answer: impl.FetchReply) -> None:
        super().fetch_response(answer)
        if self.high is not None and answer.high is not None and answer.error == impl.OK:
            self.high = self.committed = max(self.high, answer.high)


class AppendsTheFirstRecordAlone(impl.Replica):
    def fetch_response(self, answer: impl.FetchReply) -> None:
        super().fetch_response(answer._replace(records=answer.records[:1]))


class CommitsEarlierEpochs(impl.Replica):
    """Before one of its own."""

    def raise_high(self) -> None:
        begun, self.begun = self.begun, -1
        super().raise_high()
        if self.role == impl.LEADER:
            self.begun = begun


class CommitsWhereItBegan(impl.Replica):
    """Without its own first record: one less."""

    def raise_high(self) -> None:
        begun = self.begun
        if begun is not None:
            self.begun = begun - 1
        super().raise_high()
        if self.role == impl.LEADER:
            self.begun = begun


class CountsItself(impl.Replica):
    """Though it is no voter any more."""

    def raise_high(self) -> None:
        assert self.begun is not None
        if self.local not in self.log.voters:
            ends = sorted((self.ends.get(v, -1) for v in self.log.voters), reverse=True)
            high = [self.log.end, *ends][self.majority - 1]
            if high > max(self.begun, self.high or 0):
                self.high = self.committed = high
        super().raise_high()


class CommitsForAnyone(impl.Replica):
    """Observers count."""

    def raise_high(self) -> None:
        assert self.begun is not None
        ends = sorted([*self.ends.values(), self.log.end])
        if len(ends) >= self.majority and ends[-self.majority] > max(self.begun, self.high or 0):
            self.high = self.committed = ends[-self.majority]
        super().raise_high()


class SnapshotsOfAnything(impl.Log):
    def is_whole(self, offset: int) -> bool:
        return True


class SnapshotsBeyondWhatIsCommitted(impl.Replica):
    def create_snapshot(self, offset: int, epoch: int) -> bool:
        committed, self.committed = self.committed, self.log.end
        try:
            return super().create_snapshot(offset, epoch)
        finally:
            self.committed = committed


class ServesFromItsLog(impl.Log):
    """What is in a snapshot."""

    def begins_after(self, offset: int, epoch: int) -> bool:
        return False


class KeepsItsVoters(impl.Replica):
    """Those of a snapshot are not taken."""

    def fetch_snapshot_response(self, voters: Sequence[int]) -> None:
        super().fetch_snapshot_response(self.log.voters)


class KeepsItsHighWatermark(impl.Replica):
    """When a snapshot takes the place of the log."""

    def fetch_snapshot_response(self, voters: Sequence[int]) -> None:
        high = self.high
        super().fetch_snapshot_response(voters)
        self.high = high


class ServesFromOffset0(impl.Replica):
    """The log, though there is a snapshot of it."""

    def fetch(self, replica: int, epoch: int, offset: int, last_epoch: int) -> impl.FetchReply:
        if offset == 0 == self.log.start:
            snapshots, self.log.snapshots = self.log.snapshots, self.log.snapshots[:0]
            try:
                return super().fetch(replica, epoch, offset, last_epoch)
            finally:
                self.log.snapshots = snapshots
        return super().fetch(replica, epoch, offset, last_epoch)


# ---- what the controller asks
class AppendsForAnyEpoch(impl.Replica):
    def prepare_append(self, epoch: int, values: Sequence[str]) -> int:
        return super().prepare_append(max(epoch, self.epoch), values)


class PredictsOffsets(impl.Replica):
    """From what is committed, without what is not."""

    def prepare_append(self, epoch: int, values: Sequence[str]) -> int:
        super().prepare_append(epoch, values)
        return max(self.committed, self.begun or 0) + len(self.prepared) - 1


class AppendsAtOnce(impl.Replica):
    def prepare_append(self, epoch: int, values: Sequence[str]) -> int:
        last = super().prepare_append(epoch, values)
        self.schedule_prepared_append()
        return last


class ResignsFromAnyEpoch(impl.Replica):
    def resign(self, epoch: int) -> None:
        super().resign(self.epoch if 0 <= epoch < self.epoch and self.role == impl.LEADER else epoch)


class CountsFromTheFirst(impl.Replica):
    """Who has fetched since it leads, not since a majority did."""

    def fetch(self, replica: int, epoch: int, offset: int, last_epoch: int) -> impl.FetchReply:
        heard = {*self.heard}
        answer = super().fetch(replica, epoch, offset, last_epoch)
        self.heard |= heard if self.role == impl.LEADER else set()
        return answer


class LeadsAlone(impl.Replica):
    def check_quorum_timeout(self) -> None:
        pass


class HearsItself(impl.Replica):
    """It counts itself among those who have fetched, though it is no voter any more."""

    def fetch(self, replica: int, epoch: int, offset: int, last_epoch: int) -> impl.FetchReply:
        answer = super().fetch(replica, epoch, offset, last_epoch)
        if self.role == impl.LEADER and len(self.heard) >= self.majority - 1:
            self.heard.clear()
        return answer


class WaitsInOrder(impl.Replica):
    """Each twice as long as the one before, from the first."""

    def election_backoff_ms(self, successors: Sequence[int], max_ms: int) -> int:
        return super().election_backoff_ms([*reversed(successors)], max_ms)


# ---- changes of the voters
class VotersWhenCommitted(impl.Replica):
    """A change counts when it is committed."""

    @property
    def majority(self) -> int:
        known = [v for offset, v in self.log.history if offset < (self.high or 0) or offset < 0]
        return len(known[-1] if known else self.log.voters) // 2 + 1


class ManyChanges(impl.Replica):
    def refuses_change(self) -> str | None:
        error = super().refuses_change()
        return error if self.high is None or error != impl.TIME_OUT else None


class ChangesBeforeItsEpoch(impl.Replica):
    def refuses_change(self) -> str | None:
        if self.role == impl.LEADER and self.high is None and self.dynamic:
            return None
        return super().refuses_change()


class AddsWhoLags(impl.Replica):
    def add_voter(self, voter: int) -> str:
        self.caught_up |= {*self.ends}
        return super().add_voter(voter)


class RemovesTheLast(impl.Replica):
    def remove_voter(self, voter: int) -> str:
        error = self.refuses_change()
        if error is None and self.log.voters == (voter,):
            return impl.OK
        return super().remove_voter(voter)


# ---- the listener
class GivesWhatIsNotCommitted(impl.Replica):
    def give(self) -> None:
        high, self.high = self.high, self.high if self.high is None else self.log.end
        super().give()
        self.high = high


class GivesTwice(impl.Replica):
    def give(self) -> None:
        self.given = max(-1, self.given - 1) if self.given > self.log.start else self.given
        super().give()


class TellsAtOnce(impl.Replica):
    """That it leads, before the listener has all that was before."""

    def announce(self) -> None:
        begun, self.begun = self.begun, None
        super().announce()
        self.begun = begun


class TellsAtOnceIfEmpty(impl.Replica):
    """That it leads, where the log was empty."""

    def announce(self) -> None:
        begun = self.begun
        if begun == 0:
            self.begun = None
        super().announce()
        self.begun = begun


class GivesTheLog(impl.Replica):
    """A new listener, although there is a snapshot."""

    def give(self) -> None:
        if self.given < 0 and self.log.start == 0 and self.high is not None:
            self.given = 0
        super().give()


class GoesOnAfterTheOther(impl.Replica):
    def register(self) -> None:
        given = self.given
        super().register()
        if given >= 0 and self.high is not None:
            self.told = [notice for notice in self.told if notice.kind == "leader"]


# ---- of the spec and the models
def _grants_to_all(state: Replica, **asked: object) -> object:
    step = spec.machine.find("vote").body(state, **asked)
    s = step.state
    granted = step.result.error == spec.NONE and s.voted is None and not asked["pre_vote"] and s.role == "unattached"
    return step._replace(result=step.result._replace(granted=True)) if granted else step


def _commits_early(state: Replica) -> Replica:
    """Whatever is written is committed."""
    found = spec.machine.find("schedulePreparedAppend").body(state)
    return replace(found, high=found.end) if isinstance(found, Replica) else found


def _any_log_is_voted_for() -> LoadedModel:
    class Logs(model.Logs):
        @action("RFT-1", "RFT-4", who="voter")
        def vote(s, n: Voter, m: Voter) -> None:
            require(s.part[m] == Part.CANDIDATE, s.part[n] == Part.VOTER, s.epoch[n] == s.epoch[m])
            require(s.votes[s.epoch[n]][n] is None)
            s.next.votes[s.epoch[n]][n] = m

    return load(Logs)


def _its_own_vote_is_enough() -> LoadedModel:
    class Logs(model.Logs):
        @action("RFT-2", "RFT-9", who="candidate")
        def become_leader(s, n: Voter) -> None:
            e = s.epoch[n]
            require(s.part[n] == Part.CANDIDATE, s.votes[e][n] == n, len(s.log[n]) < L)
            s.next.lost = {
                d: {
                    c: s.lost[d][c] or (d < e and majority({m for m in Voter if s.epoch[m] > d and s.acked[d][m] < c}))
                    for c in range(L + 1)
                }
                for d in range(E + 1)
            }
            s.next.part[n] = Part.LEADER
            s.next.leader[e] = n
            s.next.begun[e] = len(s.log[n])
            s.next.log[n] = s.log[n] + [e]
            s.next.sent[e] = s.log[n] + [e]
            s.next.acked[e][n] = len(s.log[n]) + 1

    return load(Logs)


def _commits_what_others_wrote() -> LoadedModel:
    """Without a record of its own epoch."""

    class Logs(model.Logs):
        @action("RFT-18", who="leader")
        def commit(s, n: Voter, c: Length) -> None:
            e = s.epoch[n]
            require(s.part[n] == Part.LEADER, c > 0, c <= len(s.log[n]), s.committed[e] < c)
            require(majority({m for m in Voter if s.acked[e][m] >= c}))
            s.next.committed[e] = c
            s.next.high[n] = c
            s.next.told[n] = e

    return load(Logs)


def _appends_without_a_comparison() -> LoadedModel:
    class Logs(model.Logs):
        @action("RFT-17", who="follower")
        def append(s, n: Voter, x: Length) -> None:
            e = s.epoch[n]
            s.asks(n, x)
            require(len(s.log[n]) < len(s.sent[e]))
            s.next.log[n] = s.log[n] + [s.sent[e][len(s.log[n])]]

    return load(Logs)


def _leaders_pre_vote() -> LoadedModel:
    """Whoever fetches from its leader helps others to stand."""

    class Elections(model.Elections):
        @define
        def would_vote(s, m: Voter, n: Voter) -> bool:
            return s.log[m] <= s.log[n] and s.epoch[m] <= s.epoch[n]

    return load(Elections)


def _never_leaves_its_epoch() -> LoadedModel:
    """Who resigned."""

    class Elections(model.Elections):
        @action("RFT-10", who="resigned leader", fair="weak", per=("n",))
        def leave_resigned(s, n: Voter) -> None:
            require(s.up(n), s.role[n] == Role.RESIGNED, s.epoch[n] < E)
            s.become(n, Role.UNATTACHED, s.epoch[n], None)

    return load(Elections)


def _stands_once() -> LoadedModel:
    """A candidate that was not elected waits for ever."""

    class Elections(model.Elections):
        @action("RFT-7", who="voter", fair="strong", per=("n",))
        def become_prospective(s, n: Voter) -> None:
            require(s.up(n), s.role[n] in (Role.FOLLOWER, Role.UNATTACHED))
            require(not s.calm or s.nobody_else_may_win(n))
            s.become(n, Role.PROSPECTIVE, s.epoch[n], s.leader[n])
            s.next.granted[n] = {n}

    return load(Elections)


def _two_changes_at_a_time() -> LoadedModel:
    class VoterChanges(model.VoterChanges):
        @action("RFT-30", "RFT-31", "RFT-32", "RFT-33", who="leader")
        def change(s, n: Voter, x: Voter) -> None:
            v = s.voters(n)
            w = v - {x} if x in v else v | {x}
            require(s.leads[n], len(s.log[n]) < L, len(w) > 0)
            require(not OWN_EPOCH_FIRST or (s.high[n] > 0 and s.log[n][s.high[n] - 1].epoch == s.epoch[n]))
            require(ONE_AT_A_TIME or s.voters_at(n, s.high[n]) == v)
            s.next.log[n] = s.log[n] + [Entry(epoch=s.epoch[n], voters=w)]

    return load(VoterChanges)


def _changes_before_its_epoch() -> LoadedModel:
    class VoterChanges(model.VoterChanges):
        @action("RFT-30", "RFT-31", "RFT-32", "RFT-33", who="leader")
        def change(s, n: Voter, x: Voter) -> None:
            v = s.voters(n)
            w = v - {x} if x in v else v | {x}
            require(s.leads[n], len(s.log[n]) < L, len(w) > 0)
            require(OWN_EPOCH_FIRST or s.high[n] > 0)
            require(not ONE_AT_A_TIME or all(e.voters == v for e in s.log[n][s.high[n] :]))
            require(not ONE_AT_A_TIME or s.voters_at(n, s.high[n]) == v)
            s.next.log[n] = s.log[n] + [Entry(epoch=s.epoch[n], voters=w)]

    return load(VoterChanges)


MUTANTS = [
    of_impl("forgets its vote", "RFT-1", "with every change of the role", _of(ForgetsItsVote)),
    of_impl("votes twice", "RFT-1 RFT-4", "for whoever asks", _of(VotesTwice)),
    of_impl("pre-votes are votes", "RFT-3", "a pre-vote is kept as a vote", _of(PreVotesAreVotes)),
    of_impl("pre-votes for any log", "RFT-3", "a log that is behind", _of(PreVotesForAnyLog)),
    of_impl("votes for any log", "RFT-4", "a log that is behind", _of(VotesForAnyLog)),
    of_impl("compares ends alone", "RFT-4", "the longer log wins", _of(ComparesTheEndAlone)),
    of_impl("followers pre-vote", "RFT-5 RFT-3", "though they hear their leader", _of(FollowersPreVote)),
    of_impl("candidates vote", "RFT-5", "for another", _of(CandidatesVote)),
    of_impl("takes any request", "RFT-40", "of a log from a later epoch", _of(TakesAnyRequest)),
    of_impl("serves an earlier epoch", "RFT-6", "a vote request of before", _of(ServesAnEarlierEpoch)),
    of_impl("takes earlier answers", "RFT-6", "as if they were of now", _of(TakesEarlierAnswers)),
    of_impl("stands at once", "RFT-7", "without asking whether it would win", _of(StandsAtOnce)),
    of_impl("observers stand", "RFT-7", "for election", _of(ObserversStand)),
    of_impl("loses its leader", "RFT-8", "when it gives up", _of(LosesItsLeader)),
    of_impl("never gives up", "RFT-8", "though a majority refused", _of(NeverGivesUp)),
    of_impl("half is enough", "RFT-9 RFT-7 RFT-18", "of an even number of voters", _of(HalfIsEnough)),
    of_impl("writes nothing", "RFT-9", "at its election", _of(WritesNothing)),
    of_impl("resigned stays", "RFT-10", "in its epoch", _of(ResignedStays)),
    of_impl("follows nobody", "RFT-11", "of its own epoch", _of(FollowsNobody)),
    of_impl("a leader is no leader", "RFT-39", "after a restart", _of(RestartsAsAFollower)),
    of_impl("leads on", "RFT-39", "after a restart", _of(LeadsOn), "KAFKA-10527"),
    of_impl("serves any epoch", "RFT-14", "a fetch of before", _of(ServesAnyEpoch)),
    of_impl("ends without the epoch", "RFT-15", "of an answer", _log(EndsWithoutTheEpoch), "KAFKA-6361"),
    of_impl("cuts where the leader ends", "RFT-16", "not where its own epoch does", _log(CutsWhereTheLeaderEnds)),
    of_impl("cuts to the high watermark", "RFT-16", "whatever the leader has", _of(CutsToTheHighWatermark), "KIP-101"),
    of_impl("keeps voters that it cut", "RFT-29 RFT-16", "with the log", _log(ForgetsTheVotersItCut)),
    of_impl("takes any high watermark", "RFT-17 RFT-22", "beyond its end", _of(TakesTheLeadersHighWatermark)),
    of_impl("appends one", "RFT-17", "of all that it fetched", _of(AppendsTheFirstRecordAlone)),
    of_impl("commits earlier epochs", "RFT-18", "before its own", _of(CommitsEarlierEpochs)),
    of_impl("commits for anyone", "RFT-18", "observers count", _of(CommitsForAnyone)),
    of_impl("commits where it began", "RFT-18", "without its first record", _of(CommitsWhereItBegan), "KAFKA-12619"),
    of_impl("counts itself", "RFT-33 RFT-18", "though it is no voter", _of(CountsItself), "KAFKA-16530"),
    of_impl("snapshots of anything", "RFT-23", "within a batch", _log(SnapshotsOfAnything), "KAFKA-17713"),
    of_impl("serves from offset 0", "RFT-23", "what is in a snapshot", _of(ServesFromOffset0), "KAFKA-15078"),
    of_impl("snapshots of more", "RFT-23", "than is committed", _of(SnapshotsBeyondWhatIsCommitted)),
    of_impl("serves from its log", "RFT-23 RFT-15", "what is in a snapshot", _log(ServesFromItsLog)),
    of_impl("keeps its voters", "RFT-24 RFT-29", "with another's snapshot", _of(KeepsItsVoters)),
    of_impl("keeps its high watermark", "RFT-24 RFT-22", "with a snapshot", _of(KeepsItsHighWatermark)),
    of_impl("appends for any epoch", "RFT-25", "for a leader of before", _of(AppendsForAnyEpoch)),
    of_impl("predicts offsets", "RFT-26", "without Raft's own records", _of(PredictsOffsets), "KAFKA-17304"),
    of_impl("appends at once", "RFT-26", "what is prepared", _of(AppendsAtOnce)),
    of_impl("resigns from any epoch", "RFT-27", "also one of before", _of(ResignsFromAnyEpoch)),
    of_impl("counts from the first", "RFT-28", "who has fetched", _of(CountsFromTheFirst)),
    of_impl("waits in order", "RFT-34", "the last one first", _of(WaitsInOrder)),
    of_impl("leads alone", "RFT-28", "though nobody fetches", _of(LeadsAlone), "KAFKA-15489"),
    of_impl("hears itself", "RFT-28 RFT-33", "though it is no voter", _of(HearsItself), "KAFKA-16531"),
    of_impl("voters when committed", "RFT-29 RFT-32", "not when written", _of(VotersWhenCommitted)),
    of_impl("many changes", "RFT-30", "at a time", _of(ManyChanges)),
    of_impl("changes before its epoch", "RFT-31", "has anything committed", _of(ChangesBeforeItsEpoch)),
    of_impl("adds who lags", "RFT-32", "has fetched once", _of(AddsWhoLags)),
    of_impl("removes the last", "RFT-33", "voter that there is", _of(RemovesTheLast)),
    of_impl("gives what is not committed", "RFT-35", "to the listener", _of(GivesWhatIsNotCommitted)),
    of_impl("gives twice", "RFT-35", "the last record", _of(GivesTwice)),
    of_impl("tells at once", "RFT-36", "that it leads", _of(TellsAtOnce)),
    of_impl("tells at once if empty", "RFT-36", "the log", _of(TellsAtOnceIfEmpty), "KAFKA-15345"),
    of_impl("gives the log", "RFT-37", "to who needs the snapshot", _of(GivesTheLog), "KAFKA-15076"),
    of_impl("goes on after the other", "RFT-38", "a new listener", _of(GoesOnAfterTheOther)),
    of_spec("grants to all", "RFT-4 RFT-1", "a vote", lambda: with_fault(spec.machine, "vote", _grants_to_all)),
    of_spec(
        "committed when written",
        "RFT-18",
        "by a leader",
        lambda: with_fault(spec.machine, "schedulePreparedAppend", _commits_early),
    ),
    of_model("Logs: any log is voted for", "RFT-4 RFT-20", "a shorter one too", _any_log_is_voted_for),
    of_model("Logs: a vote is enough", "RFT-2", "its own", _its_own_vote_is_enough),
    of_model(
        "Logs: commits what others wrote", "RFT-18 RFT-20 RFT-21", "and nothing of its own", _commits_what_others_wrote
    ),
    of_model("Logs: appends without a comparison", "RFT-19 RFT-17", "of logs", _appends_without_a_comparison),
    of_model("Elections: leaders pre-vote", "RFT-12 RFT-5", "and who follows them", _leaders_pre_vote),
    of_model("Elections: never leaves its epoch", "RFT-10", "who resigned", _never_leaves_its_epoch),
    of_model("Elections: stands once", "RFT-13 RFT-7", "in an epoch, and waits", _stands_once),
    of_model("VoterChanges: two at a time", "RFT-30", "a change before another is committed", _two_changes_at_a_time),
    of_model(
        "VoterChanges: before its epoch",
        "RFT-31",
        "has anything committed, the voters change",
        _changes_before_its_epoch,
    ),
]


# ---- what shows rarely
class RestartsWithoutItsVote(impl.Replica):
    """A candidate that starts again does not count its own vote."""

    def restart(self) -> None:
        super().restart()
        if self.role == impl.CANDIDATE:
            self.answers.clear()


class RecordsAreCounted(impl.Replica):
    """Not batches, of those that may wait."""

    def prepare_append(self, epoch: int, values: Sequence[str]) -> int:
        if self.role == impl.LEADER and values and epoch == self.epoch and len(self.prepared) >= impl.MAX_BATCHES:
            raise impl.TooManyBatchesError
        return super().prepare_append(epoch, values)


class ChangesBeforeWhatIsPrepared(impl.Replica):
    """The record of a change comes before what waits."""

    def change(self, voters: Sequence[int]) -> str:
        prepared, self.prepared = self.prepared, []
        done = super().change(voters)
        if self.role == impl.LEADER:
            self.prepared = prepared
        return done


class PreparedChangesAreNone(impl.Replica):
    """A change that waits is none yet."""

    def refuses_change(self) -> str | None:
        prepared, self.prepared = self.prepared, []
        try:
            return super().refuses_change()
        finally:
            self.prepared = prepared


class NobodyWaitsForNothing(impl.Replica):
    """The others wait a millisecond at least."""

    def election_backoff_ms(self, successors: Sequence[int], max_ms: int) -> int:
        waits = super().election_backoff_ms(successors, max_ms)
        return waits or int(bool(successors) and successors[0] != self.local)


class DropsEveryVoter(impl.Log):
    """Of a log that a snapshot shortens, those that the last dropped record named."""

    def drop(self, at: impl.Position) -> None:
        before = self.history[0]
        super().drop(at)
        self.history[0] = before


SEQUENCES = {
    "leads on", "cuts to the high watermark", "keeps voters that it cut",
    "snapshots of anything", "changes before its epoch", "tells at once if empty",
    "goes on after the other",
}  # fmt: skip
"""Of the faults above those that show after a rare sequence."""
RARE: list[Mutant] = [
    of_impl("restarts without its vote", "RFT-39", "for itself", _of(RestartsWithoutItsVote)),
    of_impl("counts records", "RFT-26", "not batches", _of(RecordsAreCounted)),
    of_impl("changes before what waits", "RFT-26 RFT-30", "to be appended", _of(ChangesBeforeWhatIsPrepared)),
    of_impl("prepared changes are none", "RFT-30", "and another is taken", _of(PreparedChangesAreNone)),
    of_impl("nobody waits for nothing", "RFT-34", "also where the longest wait is 0", _of(NobodyWaitsForNothing)),
    of_impl("drops every voter", "RFT-29 RFT-23", "that a dropped record named", _log(DropsEveryVoter)),
]
"""Those that show after a restart, with many records that wait, or while a change of the voters does."""

MUTANTS += RARE
RARE += [m for m in MUTANTS if m.name in SEQUENCES]
