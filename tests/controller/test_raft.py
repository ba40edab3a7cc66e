"""One replica of the quorum: spec against impl, each rule with values, the models, the recording of Kafka's classes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkaspec.contract.codec import encode
from kafkaspec.contract.deviation import Deviation, shown
from kafkaspec.contract.machine import Outside, Refused
from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import find
from kafkaspec.explore.checked import Expectation
from kafkaspec.explore.engine import explore
from kafkaspec.impl.controller.raft_driver import Driver
from kafkaspec.judge.check import check
from kafkaspec.judge.recorded import check_recording, unexpected
from kafkaspec.language import LoadedModel, action, load, require
from kafkaspec.models.controller import raft as model
from kafkaspec.models.controller.raft import Completeness, Length, Part, Voter
from kafkaspec.mutants.matrix import check_detector, explorer_detector, kill_matrix, lockstep_detector, written
from kafkaspec.proofs.controller.raft import PROOFS
from kafkaspec.prove.engine import prove
from kafkaspec.prove.proof import Proof
from kafkaspec.spec.common.raft_replica import BOOTSTRAP, FetchAnswer, Record, Replica, SnapshotId
from kafkaspec.spec.controller import raft as spec
from kafkaspec.spec.controller.raft import (
    FENCED,
    INVALID,
    NONE,
    NOT_LEADER,
    TIMED_OUT,
    UNKNOWN_EPOCH,
    machine,
)
from tests.layers import a_row_of_verify, some_are_killed, walked


class One:
    """Replica 0, called by name; every call has its contracts, and the impl beside it."""

    def __init__(self, *voters: int, dynamic: bool = True) -> None:
        init = {"voters": voters or (0, 1, 2), "dynamic": dynamic}
        self.state: Replica = machine.initial(**init)
        self.driver = Driver()
        self.driver.reset(init)
        assert self.driver.state() == self.state

    def __call__(self, op: str, /, **arguments: Any) -> Any:
        step = machine.apply(self.state, op, encode(arguments))
        assert not isinstance(step, Outside), step
        self.state = step.state
        answer = self.driver.apply(op, encode(arguments))
        if isinstance(step.result, Refused):
            assert isinstance(answer, Refused)
            assert answer.error == step.result.error
        else:
            assert answer == step.result
        assert self.driver.state() == step.state
        return step.result

    def outside(self, op: str, /, **arguments: Any) -> str:
        """The clause that a caller breaks who calls that."""
        step = machine.apply(self.state, op, encode(arguments))
        assert isinstance(step, Outside), step
        return step.clause

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, name)

    @property
    def is_(self) -> Any:
        """Role, epoch, leader, vote."""
        return self.role, self.epoch, self.leader, self.voted

    def vote(self, candidate: int, epoch: int, log: tuple[int, int] = (0, 0), pre: bool = False) -> bool:
        """Whether it is granted, of a log with that last epoch and end."""
        answer = self("vote", epoch=epoch, candidate=candidate, last_epoch=log[0], last_offset=log[1], pre_vote=pre)
        assert answer[0] == NONE
        return bool(answer[3])

    def answered(self, source: int, granted: bool, epoch: int | None = None, leader: int | None = None) -> None:
        at = self.epoch if epoch is None else epoch
        self("voteResponse", source=source, error=NONE, epoch=at, leader=leader, granted=granted)

    def follow(self, epoch: int, leader: int = 1) -> None:
        assert self("beginQuorumEpoch", epoch=epoch, leader=leader)[0] == NONE

    def fetched(self, *records: Record, **more: Any) -> None:
        """An answer of its leader."""
        answer = FetchAnswer(NONE, self.epoch, 1 if self.leader is None else self.leader, records=records)
        self("fetchResponse", answer=answer._replace(**more))

    def fetch(self, replica: int, offset: int, last_epoch: int, epoch: int | None = None) -> FetchAnswer:
        at = self.epoch if epoch is None else epoch
        found = self("fetch", replica=replica, epoch=at, offset=offset, last_epoch=last_epoch)
        error, at, leader, high, diverging, snapshot, records = found
        return FetchAnswer(
            error,
            at,
            leader,
            high,
            diverging and SnapshotId(*diverging),
            snapshot and SnapshotId(*snapshot),
            tuple(Record(e, v, w and tuple(w), j) for e, v, w, j in records),
        )

    def append(self, *values: str) -> None:
        self("prepareAppend", epoch=self.epoch, values=values)
        self("schedulePreparedAppend")

    def told(self) -> list[Any]:
        return list(self("told"))


def stands(*voters: int, **init: Any) -> One:
    """A candidate of epoch 1."""
    one = One(*voters, **init)
    one("electionTimeout")
    for other in one.voters:
        if one.role == "prospective" and other != 0:
            one.answered(other, True)
    assert one.is_ == ("candidate", 1, None, 0)
    return one


def leads(*voters: int, **init: Any) -> One:
    """The leader of epoch 1, of whose first batch nothing is committed."""
    one = stands(*voters, **init)
    for other in one.voters:
        if one.role == "candidate" and other != 0:
            one.answered(other, True)
    assert one.is_ == ("leader", 1, 0, None)
    return one


def commits(*voters: int, **init: Any) -> One:
    """A leader that has committed its first batch."""
    one = leads(*voters, **init)
    for other in one.voters[1:]:
        one.fetch(other, one.end, 1)
    assert one.high == one.end
    return one


FIRST = (Record(1), Record(1, joined=True), Record(1, voters=(0, 1, 2), joined=True))


def test_impl_does_what_the_spec_says() -> None:
    walked(machine, Driver, seeds=150, steps=100)


# ---- votes and roles


@pytest.mark.clause("RFT-1")
def test_one_vote_an_epoch() -> None:
    one = One()
    assert one.vote(1, 1)
    assert not one.vote(2, 1)
    assert one.vote(1, 1)
    one("electionTimeout")
    assert one.is_ == ("prospective", 1, None, 1)
    assert not one.vote(2, 1)
    one.follow(1, 2)
    assert one.is_ == ("follower", 1, 2, 1)
    one("restart")
    assert one.is_ == ("follower", 1, 2, 1)
    assert one.vote(2, 2)
    assert stands().voted == 0
    assert not stands().vote(1, 1)


@pytest.mark.clause("RFT-3", "RFT-5")
def test_a_pre_vote_changes_nothing() -> None:
    one = One()
    assert one.vote(1, 0, pre=True)
    assert one.vote(2, 0, pre=True)
    assert one.is_ == ("unattached", 0, None, None)
    one.follow(1)
    assert one.vote(2, 1, pre=True)
    one.fetched(Record(1, "a"))
    assert not one.vote(2, 1, (1, 1), pre=True)
    assert one.is_ == ("follower", 1, 1, None)
    one("fetchTimeout")
    assert one.vote(2, 1, (1, 1), pre=True)
    assert not one.vote(2, 1, (0, 0), pre=True)
    leader = leads()
    assert not leader.vote(1, 1, (1, 9), pre=True)
    leader("resign", epoch=1)
    assert leader.vote(1, 1, (1, 9), pre=True)
    assert stands().vote(1, 1, (1, 9), pre=True)


@pytest.mark.clause("RFT-4")
def test_a_vote_is_for_a_log_that_is_up_to_date() -> None:
    def voter() -> One:
        one = One()
        one.follow(2)
        one.fetched(Record(1, "a"), Record(2, "b"))
        return one

    assert not voter().vote(2, 3, (1, 9))
    assert not voter().vote(2, 3, (2, 1))
    assert voter().vote(2, 3, (2, 2))
    assert not voter().vote(2, 2, (1, 2))


@pytest.mark.clause("RFT-5")
@pytest.mark.parametrize("role", ["follower", "candidate", "leader", "resigned"])
def test_who_grants_no_vote(role: str) -> None:
    one = {"candidate": stands, "leader": leads}.get(role, leads if role == "resigned" else One)()
    if role == "follower":
        one.follow(1)
    if role == "resigned":
        one("resign", epoch=1)
    assert one.role == role
    assert not one.vote(1, 1)
    assert one.is_[1:] == (1, {"follower": 1, "candidate": None}.get(role, 0), 0 if role == "candidate" else None)


@pytest.mark.clause("RFT-40")
def test_a_log_of_a_later_epoch_than_its_candidate() -> None:
    one = One()
    ask = {"epoch": 3, "candidate": 1, "last_offset": 5}
    assert one("vote", **ask, last_epoch=4, pre_vote=True) == [INVALID, 0, None, False]
    assert one("vote", **ask, last_epoch=3, pre_vote=False) == [INVALID, 0, None, False]
    assert one("vote", **ask, last_epoch=3, pre_vote=True) == [NONE, 3, None, True]


@pytest.mark.clause("RFT-6")
def test_epochs_rise() -> None:
    one = leads()
    assert one("vote", epoch=0, candidate=1, last_epoch=0, last_offset=0, pre_vote=True) == [FENCED, 1, 0, False]
    assert one("beginQuorumEpoch", epoch=0, leader=1) == [FENCED, 1, 0, False]
    assert one("endQuorumEpoch", epoch=0, leader=1) == [FENCED, 1, 0, False]
    one.answered(1, True, epoch=0, leader=1)
    assert one.is_ == ("leader", 1, 0, None)
    assert one.vote(2, 5, (1, 3), pre=True)
    assert one.is_ == ("unattached", 5, None, None)
    one("beginQuorumEpoch", epoch=6, leader=2)
    assert one.is_ == ("follower", 6, 2, None)
    one("fetchResponse", answer=FetchAnswer(FENCED, 8, None))
    assert one.is_ == ("unattached", 8, None, None)
    one("fetchResponse", answer=FetchAnswer(UNKNOWN_EPOCH, 9, 2))
    assert one.is_ == ("unattached", 8, None, None)
    one("fetchResponse", answer=FetchAnswer(NONE, 7, 1, records=(Record(7),)))
    assert (one.epoch, one.end) == (8, 3)
    one("fetchResponse", answer=FetchAnswer(NONE, 9, 1, records=(Record(9),)))
    assert (one.is_, one.end) == (("follower", 9, 1, None), 3)


@pytest.mark.clause("RFT-7")
def test_a_majority_before_an_epoch() -> None:
    one = One(0, 1, 2, 3)
    one.follow(4)
    one("fetchTimeout")
    assert (one.is_, one.granted) == (("prospective", 4, 1, None), {0})
    one.answered(1, True)
    assert one.role == "prospective"
    one.answered(2, True)
    assert (one.is_, one.granted) == (("candidate", 5, None, 0), {0})
    one("electionTimeout")
    assert (one.is_, one.granted) == (("prospective", 5, None, 0), {0})
    assert One(0).is_ == ("leader", 1, 0, None)


@pytest.mark.clause("RFT-7")
def test_an_observer_does_not_stand() -> None:
    one = One()
    one.follow(1)
    one.fetched(Record(1, voters=(1, 2)))
    one("fetchTimeout")
    assert one.role == "follower"
    one.vote(1, 2, (1, 1))
    one("electionTimeout")
    assert one.role == "unattached"


@pytest.mark.clause("RFT-8")
def test_a_lost_pre_vote() -> None:
    one = One()
    one.follow(4)
    for end in ("rejected", "timed out"):
        one("fetchTimeout")
        if end == "rejected":
            one.answered(1, False)
            assert one.role == "prospective"
            one.answered(2, False)
        else:
            one("electionTimeout")
        assert one.is_ == ("follower", 4, 1, None), end
    two = One()
    two.vote(1, 1)
    two("electionTimeout")
    two.answered(1, False)
    two("electionTimeout")
    assert (two.is_, two.rejected) == (("prospective", 1, None, 1), set())
    two.answered(1, False)
    two.answered(2, False)
    assert two.is_ == ("unattached", 1, None, 1)
    lost = stands()
    lost.answered(1, False)
    lost.answered(2, False)
    assert lost.is_ == ("candidate", 1, None, 0)


@pytest.mark.clause("RFT-9")
def test_a_leader_begins_with_a_record() -> None:
    one = leads()
    assert (one.log, one.begun, one.high) == (FIRST, 0, None)
    assert leads(dynamic=False).log == (Record(1),)
    one("checkQuorumTimeout")
    one("electionTimeout")
    one.answered(1, True)
    one.answered(2, True)
    assert (one.epoch, one.log, one.begun) == (3, (*FIRST, Record(3)), 3)


@pytest.mark.clause("RFT-9")
def test_a_leader_does_not_write_again_who_the_voters_are() -> None:
    one = One()
    one.follow(1)
    one.fetched(Record(1, voters=(0, 1, 2)))
    one("fetchTimeout")
    one.answered(1, True)
    one.answered(1, True)
    assert one.is_ == ("leader", 2, 0, None)
    assert one.log == (Record(1, voters=(0, 1, 2)), Record(2))


@pytest.mark.clause("RFT-4", "RFT-7", "RFT-33")
def test_an_id_has_32_bits() -> None:
    wide = 2**31 - 1
    one = One()
    assert one.vote(wide, 1)
    assert one.voted == wide
    leader = leads(0, wide, wide - 1)
    leader.fetch(wide, 3, 1)
    assert leader("removeVoter", voter=wide) == NONE
    assert leader.voters == (0, wide - 1)


@pytest.mark.clause("RFT-10")
def test_a_leader_that_resigned() -> None:
    one = leads()
    one("resign", epoch=1)
    assert one.is_ == ("resigned", 1, 0, None)
    assert one.fetch(1, 0, 0).error == NOT_LEADER
    one("electionTimeout")
    assert one.is_ == ("prospective", 2, None, None)
    assert one.told()[-1] == ["leader", 2, None, None, []]


@pytest.mark.clause("RFT-11")
def test_who_hears_of_the_leader_follows() -> None:
    for one in (One(), stands()):
        epoch = max(1, one.epoch)
        one.follow(epoch, 2)
        assert (one.role, one.leader) == ("follower", 2)
    one = One()
    one("electionTimeout")
    one.answered(1, True, leader=2)
    assert one.is_ == ("follower", 0, 2, None)
    one = One()
    one("fetchResponse", answer=FetchAnswer(NONE, 0, 2, records=(Record(0, "a"),)))
    assert (one.is_, one.end, one.state.fetched) == (("follower", 0, 2, None), 1, True)


@pytest.mark.clause("RFT-11")
def test_who_does_not_know_where_its_leader_is_hears_of_it_by_an_error() -> None:
    one = One(0, 1)
    one.follow(3, 2)
    one("restart")
    assert (one.role, one.homeless) == ("unattached", True)
    one("fetchResponse", answer=FetchAnswer(NOT_LEADER, 3, 2))
    assert (one.is_, one.homeless) == (("follower", 3, 2, None), False)
    one("restart")
    one("electionTimeout")
    one.answered(1, False, leader=2)
    assert (one.role, one.homeless) == ("unattached", True)


@pytest.mark.clause("RFT-2")
def test_who_has_heard_of_a_leader_is_told_of_no_other_in_that_epoch() -> None:
    one = One()
    one.follow(3, 2)
    assert one.outside("beginQuorumEpoch", epoch=3, leader=1) == "RFT-2"
    assert one.outside("fetchResponse", answer=FetchAnswer(FENCED, 3, 1)) == "RFT-2"
    one.follow(3, 2)
    one.follow(4, 1)
    assert one.is_ == ("follower", 4, 1, None)
    assert leads().outside("beginQuorumEpoch", epoch=1, leader=2) == "RFT-2"


@pytest.mark.clause("RFT-19")
def test_the_epochs_of_what_is_fetched_do_not_fall() -> None:
    one = One()
    one.follow(5)
    one.fetched(Record(2, "a"), Record(4, "b"))
    for records in ((Record(3, "c"),), (Record(5, "c"), Record(4, "d")), (Record(6, "c"),)):
        assert one.outside("fetchResponse", answer=FetchAnswer(NONE, 5, 1, records=records)) == "RFT-19"
    one.fetched(Record(4, "c"), Record(5, "d"))
    assert [r.epoch for r in one.log] == [2, 4, 4, 5]


@pytest.mark.clause("RFT-39")
def test_it_starts_again() -> None:
    one = leads()
    one("restart")
    assert (one.is_, one.log, one.high) == (("resigned", 1, 0, None), FIRST, None)
    one = stands()
    one("restart")
    assert (one.is_, one.granted) == (("candidate", 1, None, 0), {0})
    one.follow(1, 2)
    one("restart")
    assert one.is_ == ("candidate", 1, None, 0)
    one = One()
    one.vote(2, 7)
    one("restart")
    assert one.is_ == ("unattached", 7, None, 2)
    one.follow(7, 2)
    one.fetched(Record(1, voters=(0, 1)), high=1)
    one("restart")
    assert (one.is_, one.high, one.homeless) == (("unattached", 7, 2, 2), None, True)
    one("electionTimeout")
    one("electionTimeout")
    assert one.is_ == ("prospective", 7, 2, 2)
    one.follow(7, 2)
    assert (one.role, one.homeless) == ("follower", False)
    one("restart")
    assert one.homeless
    one.fetched(Record(7, "a"))
    assert (one.role, one.homeless, one.end) == ("follower", False, 2)
    only = One(0)
    only("restart")
    assert (only.is_, only.end, only.high) == (("leader", 2, 0, None), 4, 4)


def test_who_stood_and_is_no_voter_any_more_follows_its_leader() -> None:
    one = stands()
    one.follow(1, 2)
    one.fetched(Record(1, voters=(1, 2)), high=1)
    one("restart")
    assert one.is_ == ("follower", 1, 2, 0)


# ---- the log


@pytest.mark.clause("RFT-14")
def test_only_a_leader_serves_its_epoch() -> None:
    one = leads()
    assert one.fetch(1, 0, 0, epoch=0) == FetchAnswer(FENCED, 1, 0)
    assert one.fetch(1, 0, 0, epoch=2) == FetchAnswer(UNKNOWN_EPOCH, 1, 0)
    assert one.fetch(1, 0, 2) == FetchAnswer(INVALID, 1, 0)
    assert One().fetch(1, 0, 0) == FetchAnswer(NOT_LEADER, 0, None)
    assert one.ends == {}


@pytest.mark.clause("RFT-15", "RFT-17")
def test_a_fetch_that_diverges() -> None:
    one = One()
    one.follow(5)
    one.fetched(Record(2, "a"), Record(2, "b"), Record(4, "c"))
    one("fetchTimeout")
    one.answered(1, True)
    one.answered(1, True)
    assert (one.role, one.epoch) == ("leader", 6)
    assert one.fetch(1, 2, 2).records == one.log[2:]
    assert one.fetch(1, 0, 3).records == one.log
    assert one.fetch(1, 3, 2).diverging == (2, 2)
    assert one.fetch(1, 1, 3).diverging == (2, 2)
    assert one.fetch(1, 9, 6).diverging == (6, 6)
    assert one.fetch(1, 1, 1).diverging == BOOTSTRAP
    assert one.ends == {1: 0}


@pytest.mark.clause("RFT-15")
def test_an_epoch_between_the_snapshot_and_the_log_ends_with_the_snapshot() -> None:
    one = One()
    one.follow(5)
    one.fetched(snapshot=SnapshotId(4, 2))
    one("fetchSnapshotResponse", voters=(0, 1, 2))
    one.fetched(Record(4, "a"), Record(4, "b"))
    one("fetchTimeout")
    one.answered(1, True)
    one.answered(1, True)
    assert one.role == "leader"
    assert one.fetch(1, 5, 3).diverging == (4, 2)


@pytest.mark.clause("RFT-16")
@pytest.mark.parametrize(
    ("answer", "end"),
    [((1, 2), 1), ((2, 1), 1), ((9, 4), 3), ((3, 3), 2), ((2, 0), 2), ((9, 0), 3), ((2, 4), 2)],
)
def test_a_follower_cuts_its_log(answer: tuple[int, int], end: int) -> None:
    one = One()
    one.follow(5)
    one.fetched(Record(1, "a"), Record(2, "b"), Record(4, "c"))
    one.fetched(diverging=SnapshotId(*answer))
    assert one.log == (Record(1, "a"), Record(2, "b"), Record(4, "c"))[:end]
    assert (one.role, one.state.fetched) == ("follower", True)


@pytest.mark.clause("RFT-17", "RFT-22")
def test_a_follower_learns_what_is_committed() -> None:
    one = One()
    one.follow(1)
    one.fetched(Record(1, "a"), high=9)
    assert (one.high, one.end) == (1, 1)
    one.fetched(Record(1, "b"), Record(1, "c"), high=2)
    assert (one.high, one.end) == (2, 3)
    one.fetched()
    assert one.high == 2
    down = FetchAnswer(NONE, 1, 1, high=1)
    assert one.outside("fetchResponse", answer=down) == "RFT-22"
    assert one.outside("fetchResponse", answer=down._replace(high=None, diverging=SnapshotId(1, 1))) == "RFT-22"
    one.fetched(diverging=SnapshotId(2, 1))
    assert (one.high, one.end) == (2, 2)
    one("fetchTimeout")
    one.answered(1, True)
    assert (one.role, one.high) == ("candidate", 2)
    one.answered(1, True)
    assert (one.role, one.high, one.committed) == ("leader", None, 2)


@pytest.mark.clause("RFT-18")
def test_the_high_watermark_of_a_leader() -> None:
    one = leads(0, 1, 2, 3)
    one.append("a")
    one.fetch(1, 3, 1)
    assert one.high is None
    one.fetch(4, 4, 1)
    assert one.high is None
    one.fetch(2, 4, 1)
    assert one.high == 3
    one.fetch(3, 4, 1)
    assert one.high == 4
    one.fetch(3, 3, 1)
    assert one.high == 4
    again = commits()
    again("checkQuorumTimeout")
    again("electionTimeout")
    again.answered(1, True)
    again.answered(1, True)
    again.fetch(1, 3, 1)
    assert (again.epoch, again.begun, again.high) == (3, 3, None)
    again.fetch(1, 4, 3)
    assert again.high == 4


@pytest.mark.clause("RFT-23")
def test_snapshots_are_of_what_is_committed() -> None:
    one = commits()
    one.append("a", "b")
    one.append("c")
    one.fetch(1, 5, 1)
    refused = [
        one("createSnapshot", offset=offset, epoch=epoch) for offset, epoch in ((6, 1), (4, 1), (1, 1), (5, 0), (5, 2))
    ]
    assert refused == [spec.NO_SUCH_SNAPSHOT] * 5
    assert one("createSnapshot", offset=3, epoch=1) is True
    assert one("createSnapshot", offset=3, epoch=1) is False
    assert one("createSnapshot", offset=5, epoch=1) is True
    assert one.snapshots == (BOOTSTRAP, (3, 1), (5, 1))
    assert one.fetch(2, 0, 0).snapshot == (5, 1)
    assert one.fetch(2, 3, 1).records == one.log[3:]
    one("clean")
    assert (one.start, one.log, one.snapshots) == (5, (Record(1, "c"),), ((5, 1),))
    assert one.fetch(2, 3, 1).snapshot == (5, 1)
    assert one.fetch(2, 5, 0).snapshot == (5, 1)
    assert one.fetch(2, 5, 1).records == (Record(1, "c"),)
    assert one("createSnapshot", offset=3, epoch=1) is False
    assert one.voters == (0, 1, 2)


@pytest.mark.clause("RFT-24")
def test_a_snapshot_takes_the_place_of_the_log() -> None:
    one = One()
    one.follow(5)
    one.fetched(Record(1, "a"), Record(2, "b"), high=1)
    one.fetched(snapshot=SnapshotId(7, 4))
    assert (one.fetching, one.end) == ((7, 4), 2)
    assert one.outside("fetchResponse", answer=FetchAnswer(NONE, 5, 1)) == "RFT-24"
    one("fetchSnapshotResponse", voters=(0, 1, 3))
    assert (one.start, one.log, one.snapshots, one.fetching) == (7, (), ((7, 4),), None)
    assert (one.high, one.voters, one.last_epoch) == (7, (0, 1, 3), 4)
    one.fetched(Record(4, "z"))
    assert one.end == 8
    assert one.outside("fetchResponse", answer=FetchAnswer(NONE, 5, 1, snapshot=SnapshotId(8, 4))) == "RFT-23"


# ---- what the controller asks


@pytest.mark.clause("RFT-25")
def test_a_leader_of_before_appends_nothing() -> None:
    one = leads()
    assert one("prepareAppend", epoch=0, values=("a",)) == spec.NO_LEADER_APPENDS
    assert one("prepareAppend", epoch=2, values=("a",)) == spec.NO_SUCH_APPEND
    assert one("prepareAppend", epoch=1, values=()) == spec.NO_SUCH_APPEND
    one("prepareAppend", epoch=1, values=("a",))
    one.vote(1, 2, (1, 3))
    assert one("schedulePreparedAppend") == spec.NO_LEADER_APPENDS
    assert one("prepareAppend", epoch=1, values=("a",)) == spec.NO_LEADER_APPENDS
    assert one.log == FIRST


@pytest.mark.clause("RFT-26")
def test_what_is_prepared_is_in_no_log() -> None:
    one = leads()
    assert one("prepareAppend", epoch=1, values=("a", "b")) == 4
    assert one("prepareAppend", epoch=1, values=("c",)) == 5
    assert one.log == FIRST
    one("schedulePreparedAppend")
    assert one.log[3:] == (Record(1, "a"), Record(1, "b", joined=True), Record(1, "c"))
    for _ in range(10):
        one("prepareAppend", epoch=1, values=("d",))
    assert one("prepareAppend", epoch=1, values=("e",)) == spec.TOO_MANY_BATCHES
    one("resign", epoch=1)
    assert (one.prepared, one.end) == ((), 6)


@pytest.mark.clause("RFT-27")
def test_who_may_resign() -> None:
    one = leads()
    assert one("resign", epoch=-1) == spec.NO_SUCH_RESIGNATION
    assert one("resign", epoch=2) == spec.NO_SUCH_RESIGNATION
    one("resign", epoch=0)
    assert one.role == "leader"
    one("resign", epoch=1)
    assert one.role == "resigned"
    assert one("resign", epoch=1) is None
    one.vote(1, 2, (1, 3))
    assert one("resign", epoch=2) == spec.NO_SUCH_RESIGNATION


@pytest.mark.clause("RFT-28")
def test_a_leader_from_which_no_majority_fetches() -> None:
    one = leads(0, 1, 2, 3)
    one.fetch(1, 0, 0)
    one.fetch(1, 0, 0)
    one.fetch(4, 0, 0)
    assert one.heard == {1}
    one.fetch(2, 0, 0)
    assert one.heard == set()
    one("checkQuorumTimeout")
    assert one.is_ == ("resigned", 1, 0, None)


@pytest.mark.clause("RFT-34")
def test_who_stands_first_when_a_leader_resigns() -> None:
    def wait(*successors: int) -> Any:
        return One()("endQuorumEpoch.backoffMs", successors=successors, max_ms=1000)

    assert [wait(), wait(0, 1, 2), wait(1, 0, 2), wait(1, 2, 0), wait(1, 2)] == [0, 0, 250, 500, 1000]


# ---- changes of the voters


@pytest.mark.clause("RFT-29", "RFT-32")
def test_a_voter_is_added() -> None:
    one = commits()
    assert one("addVoter", voter=3) == TIMED_OUT
    one.append("a")
    one.fetch(3, 0, 0)
    assert one("addVoter", voter=3) == TIMED_OUT
    one.append("b")
    one.fetch(3, 4, 1)
    assert one.caught >= {3}
    assert one("addVoter", voter=2) == "DUPLICATE_VOTER"
    assert one("addVoter", voter=3) == NONE
    assert (one.voters, one.majority, one.voters_offset) == ((0, 1, 2, 3), 3, 5)
    for replica in (1, 2):
        one.fetch(replica, 6, 1)
    assert one.high == 6
    follower = One()
    follower.follow(1)
    follower.fetched(*FIRST)
    follower.fetched(Record(1, voters=(0, 1, 2, 3)))
    assert follower.voters == (0, 1, 2, 3)
    follower.fetched(diverging=SnapshotId(3, 1))
    assert follower.voters == (0, 1, 2)


@pytest.mark.clause("RFT-29")
def test_a_change_behind_a_snapshot_is_truncated() -> None:
    one = One()
    one.follow(1)
    one.fetched(Record(1, "a"), Record(1, voters=(0, 1, 2, 3)), high=1)
    assert one("createSnapshot", offset=1, epoch=1) is True
    one("clean")
    assert (one.start, one.voters) == (1, (0, 1, 2, 3))
    one.follow(2, 2)
    one.fetched(diverging=SnapshotId(1, 1))
    assert (one.end, one.voters) == (1, (0, 1, 2))


@pytest.mark.clause("RFT-30")
def test_one_change_at_a_time() -> None:
    one = commits()
    one("prepareAppend", epoch=1, values=("a",))
    assert one("removeVoter", voter=2) == NONE
    assert (one.voters, one("removeVoter", voter=1)) == ((0, 1, 2), TIMED_OUT)
    one("schedulePreparedAppend")
    assert (one.voters, one("removeVoter", voter=1)) == ((0, 1), TIMED_OUT)
    one.fetch(1, 5, 1)
    assert (one.high, one("removeVoter", voter=1)) == (5, NONE)
    assert one.voters == (0,)


@pytest.mark.clause("RFT-31")
def test_no_change_before_something_is_committed() -> None:
    one = leads()
    assert one("removeVoter", voter=2) == TIMED_OUT
    assert One()("addVoter", voter=3) == NOT_LEADER
    static = commits(dynamic=False)
    assert static("removeVoter", voter=2) == "UNSUPPORTED_VERSION"
    assert leads(dynamic=False)("removeVoter", voter=2) == TIMED_OUT


@pytest.mark.clause("RFT-33")
def test_a_leader_removes_itself() -> None:
    one = commits()
    assert one("removeVoter", voter=3) == "VOTER_NOT_FOUND"
    assert one("removeVoter", voter=0) == NONE
    assert (one.role, one.voters) == ("leader", (1, 2))
    one.append("a")
    one.fetch(1, 5, 1)
    assert (one.role, one.high) == ("leader", 3)
    assert one.fetch(2, 4, 1).high == 4
    assert (one.role, one.committed) == ("resigned", 4)
    assert One(0)("removeVoter", voter=0) == "VOTER_NOT_FOUND"
    before = commits()
    before.append("a")
    assert before("removeVoter", voter=0) == NONE
    before.fetch(1, 4, 1)
    assert before.fetch(2, 4, 1).high == 4
    assert (before.role, before.voters_offset) == ("leader", 4)


# ---- what the listener is told


@pytest.mark.clause("RFT-35", "RFT-36")
def test_a_listener_is_given_what_is_committed() -> None:
    one = leads()
    assert one.told() == [["leader", 1, None, None, []]]
    one.append("a")
    assert one.told() == []
    one.fetch(1, 3, 1)
    first = encode(FIRST)
    assert one.told() == [
        ["bootstrap", 0, None, 0, []],
        ["commit", None, None, 0, first],
        ["leader", 1, 0, None, []],
    ]
    one.fetch(1, 4, 1)
    assert one.told() == [["commit", None, None, 3, [[1, "a", None, False]]]]
    one("resign", epoch=1)
    assert one.told() == []
    one.vote(1, 2, (1, 4))
    one.follow(2)
    assert one.told() == [["leader", 2, None, None, []], ["leader", 2, 1, None, []]]
    one("restart")
    assert one.told() == [["leader", 2, 1, None, []]]
    resigned = leads()
    resigned("restart")
    assert resigned.told() == []


@pytest.mark.clause("RFT-37", "RFT-38")
def test_a_new_listener_is_given_the_snapshot() -> None:
    one = commits()
    one.append("a")
    one.fetch(1, 4, 1)
    one("createSnapshot", offset=3, epoch=1)
    one("register")
    assert one.told() == [
        ["snapshot", 1, None, 3, []],
        ["commit", None, None, 3, [[1, "a", None, False]]],
        ["leader", 1, 0, None, []],
    ]
    behind = One(dynamic=False)
    behind.follow(1)
    behind.fetched(Record(1, "a"), high=1)
    behind.fetched(snapshot=SnapshotId(4, 1))
    behind("fetchSnapshotResponse", voters=(0, 1, 2))
    assert behind.told()[-2:] == [["commit", None, None, 0, [[1, "a", None, False]]], ["snapshot", 1, None, 4, []]]


# ---- the recording of Kafka's clients, altered

RECORDINGS = find("raft").recordings
TRACE = next(r for r in RECORDINGS if r.file == "raft.ndjson")


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: r.file)
def test_recordings_get_their_verdict(recording: Recording) -> None:
    assert unexpected(recording, check_recording(recording, machine)) == ""


@pytest.mark.parametrize(
    ("at", "field", "value", "clause"),
    [
        (14, "voted", None, "RFT-1"),
        (15, "role", "unattached", "RFT-11"),
        (17, "highWatermark", 2, "RFT-17"),
        (17, "logEndOffset", 1, "RFT-17"),
        (21, "epoch", 2, "RFT-7"),
        (23, "role", "prospective", "RFT-7"),
        (24, "voted", 0, "RFT-1"),
        (25, "highWatermark", 2, "RFT-18"),
        (28, "highWatermark", 2, "RFT-18"),
        (66, "role", "unattached", "RFT-27"),
        (70, "highWatermark", 2, "RFT-18"),
        (91, "epoch", 0, "RFT-6"),
    ],
)
def test_altered_recordings_are_rejected(at: int, field: str, value: Any, clause: str, tmp_path: Path) -> None:
    records = [orjson.loads(line) for line in TRACE.path.read_bytes().splitlines()[: at + 1]]
    assert records[at]["state"][field] != value
    records[at]["state"][field] = value
    file = tmp_path / "altered.ndjson"
    file.write_bytes(b"\n".join(map(orjson.dumps, records)))
    verdict = check(machine, file)
    assert (verdict.verdict, verdict.step) == ("rejected", at)
    assert verdict.clause in {clause, *machine.find(records[at]["op"]).clauses}


@pytest.mark.parametrize(
    ("at", "result"),
    [
        (14, [NONE, 1, None, False]),
        (49, [NONE, 1, None, True]),
        (55, 0),
        (57, [NONE, 1, 0, 2, None, None, [[1, "v240", None, False]]]),
        (67, [NONE, 1, 0, None, None, None, []]),
        (69, [NONE, 1, 0, False]),
        (93, 0),
    ],
)
def test_altered_answers_are_rejected(at: int, result: Any, tmp_path: Path) -> None:
    records = [orjson.loads(line) for line in TRACE.path.read_bytes().splitlines()[: at + 1]]
    records[at].pop("error", None)
    records[at]["result"] = result
    file = tmp_path / "altered.ndjson"
    file.write_bytes(b"\n".join(map(orjson.dumps, records)))
    verdict = check(machine, file)
    assert (verdict.verdict, verdict.step) == ("rejected", at)


@pytest.mark.parametrize("deviation", machine.deviations, ids=lambda d: d.id)
def test_a_known_deviation_shows_something_else(deviation: Deviation) -> None:
    right, wrong = shown(machine, deviation)
    assert right != wrong


# ---- models, proofs, faults

FAULTS = written(find("raft"))


def test_some_written_mutants_are_killed() -> None:
    some_are_killed(find("raft"), FAULTS, 19, (lockstep_detector(6), lockstep_detector()))


@pytest.mark.deep
def test_written_mutants_are_killed() -> None:
    """What walks do not find, recordings do."""
    rows = kill_matrix(find("raft"), FAULTS, [lockstep_detector(), explorer_detector()])
    rows = kill_matrix(find("raft"), [row.mutant for row in rows if row.wrong], [check_detector()])
    assert [row.wrong for row in rows if row.wrong] == []


@pytest.mark.deep
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.name)
def test_claims_and_lemmas_hold_of_three_voters(proof: Proof) -> None:
    """Before a proof two voters are explored: no majority of two is less than both."""
    sizes = {**(proof.explored_at or {}), "Voter": 3}
    assert explore(proof.loaded, sizes, ghosts=True, liveness=False, deadlock=True).outcome == "complete"


@pytest.mark.clause("RFT-30", "RFT-31")
@pytest.mark.parametrize(
    ("flag", "claim", "steps"),
    [
        ("ONE_AT_A_TIME", "one_leader_per_epoch", 7),
        ("OWN_EPOCH_FIRST", "one_leader_per_epoch", 6),
    ],
)
def test_careless_changes_of_the_voters(flag: str, claim: str, steps: int) -> None:
    """Without one of KIP-853's rules the shortest way to a claim that breaks."""
    sizes = {"Voter": 4, "E": 3, "L": 4, **model.AS_KAFKA, flag: False}
    found = explore(load(model.VoterChanges), sizes, deadlock=True)
    assert found.trace is not None
    assert len(found.trace.steps) - 1 == steps
    assert found.trace.claim in {claim, "the_last_leader_has_what_is_committed", "all_commit_one_log"}


@a_row_of_verify
@pytest.mark.clause("RFT-12", "RFT-13", "RFT-20", "RFT-21")
@pytest.mark.parametrize("checked", model.MODELS, ids=lambda c: str(c.sizes))
def test_a_model_is_explored(checked: Expectation) -> None:
    assert checked.run().findings == []


@a_row_of_verify
@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: p.name)
def test_a_model_is_proved_for_every_size(proof: Proof) -> None:
    proved = proof.run()
    assert [f"{o.verdict}: {o.action} keeps {o.claim}" for o in proved.obligations if o.verdict != "proved"] == []
    assert proved.complete


(COMPLETENESS,) = (p for p in PROOFS if p.name == "Completeness")


class CountsAnyFetch(Completeness):
    """Also one of a log that is not the leader's."""

    @action("RFT-14", "RFT-17", who="leader")
    def hear_fetch(s, n: Voter, m: Voter, x: Length) -> None:
        e = s.epoch[n]
        s.asks(n, x)
        require(s.in_charge(m, e), s.acked[e][n] < len(s.log[n]), len(s.log[n]) <= len(s.sent[e]))
        s.next.acked[e][n] = len(s.log[n])


class CountsWhoLeftTheEpoch(Completeness):
    """A voter that follows a later leader, and has the record still."""

    @action("RFT-14", "RFT-17", who="leader")
    def hear_fetch(s, n: Voter, m: Voter, x: Length) -> None:
        e = s.epoch[m]
        require(s.part[n] == Part.VOTER, s.in_charge(m, e), e <= s.epoch[n], s.ends(e, s.last_epoch(n), x))
        require(len(s.log[n]) == 0 or (x > 0 and s.sent[e][x - 1] == s.last_epoch(n) and len(s.log[n]) <= x))
        require(s.acked[e][n] < len(s.log[n]))
        s.next.acked[e][n] = len(s.log[n])


def with_action_of(faulty: LoadedModel, name: str) -> LoadedModel:
    """The model of the proof, one of whose actions is another's."""
    (other,) = [a for a in faulty.actions if a.name == name]
    sound = COMPLETENESS.loaded
    return replace(sound, actions=[other if a.name == name else a for a in sound.actions])


def fault(name: str) -> LoadedModel:
    made: LoadedModel = next(m for m in FAULTS if m.name == name).make()
    return made


@pytest.mark.clause("RFT-4", "RFT-18", "RFT-20")
@pytest.mark.parametrize(
    ("faulty", "action", "claim"),
    [
        (fault("Logs: any log is voted for"), "vote", "candidates_have_what_their_voters_had"),
        (fault("Logs: commits what others wrote"), "commit", "a_majority_has_what_is_committed"),
        (fault("Logs: a vote is enough"), "become_leader", "leaders_have_a_majority"),
        (load(CountsAnyFetch), "hear_fetch", "who_had_a_record_has_it"),
        (load(CountsWhoLeftTheEpoch), "hear_fetch", "lost_without_a_majority"),
    ],
    ids=lambda x: x.name if isinstance(x, LoadedModel) else x,
)
def test_without_a_rule_leaders_may_lack_what_is_committed(faulty: LoadedModel, action: str, claim: str) -> None:
    """The proof is refuted."""
    found = prove(
        with_action_of(faulty, action),
        only=lambda a, c: (a, c) == (action, claim),
        timeout_s=COMPLETENESS.timeout_s,
        begins_with=COMPLETENESS.begins_with,
    )
    assert [o.verdict for o in found.obligations] == ["refuted"]
