"""One replica of the quorum of controllers: votes, leadership, its log, what is committed, and its listener.

A message comes in as a call, and its answer goes out as a result; a timer that runs out is a call too. What Kafka's
thread does at its next poll follows at once here: a leader's first record, prepared records, a resignation. A request
that was answered with an error of a later epoch is not sent again by the spec: who sends what and when is the caller's.
Source: KIP-595, KIP-630, KIP-853, KIP-996; KafkaRaftClient, QuorumState and LeaderState, Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, TypeVar

from icontract import ensure, require

from kafkaspec.contract.clauses import ONE_CALL, clause, not_modelled, states
from kafkaspec.contract.codec import replace
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import NodeId, Within
from kafkaspec.spec.common.kafka import ILLEGAL_ARGUMENT, ILLEGAL_STATE
from kafkaspec.spec.common.raft_replica import (
    BOOTSTRAP,
    Epoch,
    Event,
    FetchAnswer,
    FetchError,
    LastRecord,
    Offset,
    Record,
    Replica,
    SnapshotId,
    VoteAnswer,
    become,
    hear,
    observe,
    tell_committed,
    tell_leader,
)

PREFIX = "RFT"
TITLE = "Raft"

CLIENT = "KafkaRaftClient, Kafka 4.3.0"
QUORUM = "QuorumState, Kafka 4.3.0"
LEADER = "LeaderState, Kafka 4.3.0"
LOG = "RaftLog, Kafka 4.3.0"
VOTERS = "KIP-853; AddVoterHandler and RemoveVoterHandler, Kafka 4.3.0"
LISTENER = "RaftClient.Listener, KafkaRaftClient.ListenerContext, Kafka 4.3.0"

NONE: Final = "NONE"
FENCED: Final = "FENCED_LEADER_EPOCH"
UNKNOWN_EPOCH: Final = "UNKNOWN_LEADER_EPOCH"
NOT_LEADER: Final = "NOT_LEADER_OR_FOLLOWER"
INVALID: Final = "INVALID_REQUEST"
TIMED_OUT: Final = "REQUEST_TIMED_OUT"

NO_LEADER_APPENDS = Refused("RFT-25", "org.apache.kafka.raft.errors.NotLeaderException")
NO_SUCH_APPEND = Refused("RFT-25", ILLEGAL_ARGUMENT)
TOO_MANY_BATCHES = Refused("RFT-26", ILLEGAL_STATE)
NO_SUCH_RESIGNATION = Refused("RFT-27", ILLEGAL_ARGUMENT)
NO_SUCH_SNAPSHOT = Refused("RFT-23", ILLEGAL_ARGUMENT)

EXPLORED = {"proof": "explored at small sizes, not proved"}
OF_MANY = {"impl": "about several replicas"}
TIME = {"proof": "about what comes at last, or about all that others may do: explored"}
OF_ONE_REPLICA = not_modelled("the order of calls to one listener; what is committed is modelled")

clause(
    """RFT-2: An epoch has at most one leader, for good. [KIP-595, 'Leader election']

    RFT-19: If two logs have a record of one epoch at one offset, they are the same up to there. [KIP-595; {LOG}]
    """,
    without=OF_MANY,
)
clause(
    "RFT-20: Whoever is elected has every record that was committed in an earlier epoch. [KIP-595, 'Vote']",
    without=OF_MANY | {"spec": "about several replicas"},
)
clause(
    "RFT-21: Two replicas never give their listeners different records at one offset. [KIP-595]",
    without=OF_MANY | EXPLORED | {"spec": "about several replicas"},
)
clause(
    """RFT-12: A majority of voters that fetches from its leader stays with it, whoever else wakes up or comes back,
    until the timer of one of them runs out or the leader resigns. [KIP-996]

    RFT-13: While a majority of voters is up, hears each other and their timers run out one by one, one of them is
    elected at last, and a majority follows it. [KIP-595; KIP-996]
    """,
    without=OF_MANY | TIME | {"spec": "about several replicas"},
)

Backoff = Annotated[int, Within(0, 10_000)]
"""electionBackoffMaxMs"""
MAX_BATCHES = 10
"""How many may wait to be scheduled."""


def initial(voters: tuple[NodeId, ...] = (0, 1, 2), dynamic: bool = True) -> Replica:
    """Replica 0, one of the voters, for the first time."""
    snapshots = (BOOTSTRAP,) if dynamic else ()
    first = Replica(0, tuple(sorted({0, *voters})), dynamic, snapshots=snapshots)
    return begin_listening(stand(first) if first.voters == (0,) else first)


machine = Machine("raft", initial, observe)


def after(state: Replica, result: object) -> Replica:
    """The state that an operation leaves, in whichever form it was returned."""
    found = result.state if isinstance(result, Step) else result
    return found if isinstance(found, Replica) else state


# ---- what is true after every call
@states()
def keeps_its_vote(state: Replica, result: object) -> bool:
    """RFT-1: A replica votes for at most one candidate in an epoch, itself included, and keeps the vote through every
    change of its role in that epoch; a leader keeps instead that it leads. [KIP-595; {QUORUM}]"""
    s = after(state, result)
    kept = s.leader == s.local if state.leader == state.local else s.voted == state.voted or s.leader == s.local
    return s.epoch != state.epoch or kept or (state.voted is None and state.leader != state.local)


@states()
def is_of_before(state: Replica, epoch: int) -> bool:
    """RFT-6: An epoch never gets lower. A request of a lower epoch is refused with FENCED_LEADER_EPOCH and changes
    nothing; one of a higher epoch is followed into it, as an unattached replica, or as a follower if it names the
    leader; an answer of a lower epoch is ignored. [{CLIENT}]"""
    return epoch < state.epoch


def epochs_rise(state: Replica, result: object) -> bool:
    """What RFT-6 begins with."""
    return after(state, result).epoch >= state.epoch


@states(without=EXPLORED)
def committed_stays(state: Replica, result: object) -> bool:
    """RFT-22: What is below a replica's high watermark is not truncated, and the high watermark of a role does not
    fall. [{CLIENT}; {LEADER}]"""
    s = after(state, result)
    if state.high is None or s.high is None:
        return True
    kept = range(max(state.start, s.start), state.high)
    return s.high >= state.high and all(s.log[i - s.start] == state.log[i - state.start] for i in kept)


F = TypeVar("F", bound=Callable[..., Any])


def kept_by_all(function: F) -> F:
    """What every call keeps: a restart, and a snapshot that takes the place of the log, too."""
    return ensure(epochs_rise, "RFT-6 epochs rise")(ensure(keeps_its_vote, "RFT-1 one vote an epoch")(function))


def kept(function: F) -> F:
    """And what all others keep."""
    return ensure(committed_stays, "RFT-22 what is committed stays")(kept_by_all(function))


# ---- roles


@states()
def stand(state: Replica) -> Replica:
    """RFT-7: A voter whose election timer or fetch timer runs out becomes prospective: it keeps its epoch, its vote and
    its leader, and asks the others whether they would vote for it, and counts itself. With a majority it becomes a
    candidate, in the next epoch, which it votes for itself in. An observer stands for no election. [KIP-996;
    {QUORUM}]"""
    asking = replace(become(state, "prospective", state.epoch, state.leader), granted=frozenset({state.local}))
    return _stand_further(asking)


def _stand_further(state: Replica) -> Replica:
    """On with a majority: to candidate, and on to leader."""
    if len(state.granted) < state.majority:
        return state
    if state.role == "candidate":
        return lead(state)
    mine = frozenset({state.local})
    candidate = replace(become(state, "candidate", state.epoch + 1, None), voted=state.local, granted=mine)
    return _stand_further(candidate)


@states()
def lead(state: Replica) -> Replica:
    """RFT-9: A candidate with the votes of a majority of its voters leads. Its first record, a leader change, is at the
    end of its log; where voters can change, and the log does not say who they are, kraft.version and the voters follow,
    in the same batch. [{LEADER}]"""
    s = replace(become(state, "leader", state.epoch, state.local), begun=state.end, high=None)
    first: tuple[Record, ...] = (Record(s.epoch),)
    if s.dynamic and s.voters_offset < 0:
        first = (*first, Record(s.epoch, joined=True), Record(s.epoch, voters=s.voters, joined=True))
    return write(s, first)


@states()
def give_up(state: Replica) -> Replica:
    """RFT-8: A prospective replica that a majority refuses, or whose election timer runs out, follows the leader that
    it knows, in the same epoch and with the same vote. If it knows none, or not where that is, it is unattached, and
    asks again at once if it was the timer. [KIP-996; {CLIENT}; {QUORUM}]"""
    known = state.leader is not None and not state.homeless
    return become(state, "follower" if known else "unattached", state.epoch, state.leader)


def resigned(state: Replica) -> Replica:
    """A leader that leads no more; it forgets its high watermark."""
    return replace(become(state, "resigned", state.epoch, state.local), high=None)


# ---- timers


@machine.operation("electionTimeout", "RFT-8", "RFT-7", kind="time")
@require(lambda state: state.role not in ("leader", "follower"), "RFT-7 a role with an election timer")
@kept
def election_timeout(state: Replica) -> Replica:
    """RFT-10: A leader that resigns stays in its epoch, knows itself as its leader and is followed no more; when its
    election timer runs out it is unattached, in the next epoch, and a voter stands at once. [{CLIENT}; {QUORUM}]"""
    s = state
    if s.role == "resigned":
        s = become(s, "unattached", s.epoch + 1, None)
    elif s.role == "prospective":
        s = give_up(s)
    return stand(s) if s.is_voter and s.role != "follower" else s


@machine.operation("fetchTimeout", "RFT-7", kind="time")
@require(lambda state: state.role == "follower", "RFT-7 a follower has a fetch timer")
@kept
def fetch_timeout(state: Replica) -> Replica:
    """A follower has not had an answer of its leader."""
    return stand(state) if state.is_voter else state


@machine.operation("checkQuorumTimeout", kind="time")
@require(lambda state: state.role == "leader" and len(state.voters) > 1, "RFT-28 a leader with other voters")
@states(without=TIME)
@kept
def check_quorum_timeout(state: Replica) -> Replica:
    """RFT-28: A leader from which no majority of its voters, itself included, has fetched for a while resigns. Whenever
    a majority has, it begins to count again. [{LEADER}]"""
    return resigned(state)


@states()
def grants_nothing(state: Replica, pre_vote: bool) -> bool:
    """RFT-5: Followers, candidates, leaders and resigned leaders grant no vote; leaders, and followers that have
    fetched, grant no pre-vote. [{QUORUM}]"""
    if pre_vote:
        return state.role == "leader" or (state.role == "follower" and state.fetched)
    return state.role not in ("unattached", "prospective")


@states()
def grants_pre_vote(state: Replica, last: LastRecord) -> bool:
    """RFT-3: A pre-vote is granted to a prospective replica whose log is up to date, by any voter that neither leads
    nor has fetched from the leader that it follows; it changes nothing. [KIP-996; {QUORUM}]"""
    return last >= (state.last_epoch, state.end)


@states()
def grants_vote(state: Replica, candidate: int, last: LastRecord) -> bool:
    """RFT-4: A vote is granted by an unattached or prospective replica that knows no leader of the epoch and has not
    voted for another in it, to a candidate whose log is up to date: its last epoch is later, or the same and its end is
    no less. Whoever was voted for is granted its vote again. [KIP-595; {QUORUM}]"""
    if state.voted is not None:
        return state.voted == candidate
    return state.leader is None and last >= (state.last_epoch, state.end)


def would_grant(state: Replica, candidate: int, last: LastRecord, pre_vote: bool) -> bool:
    """Whether a vote, or a pre-vote, is granted."""
    if grants_nothing(state, pre_vote):
        return False
    return grants_pre_vote(state, last) if pre_vote else grants_vote(state, candidate, last)


@states(without=ONE_CALL)
def is_invalid(epoch: int, last_epoch: int, pre_vote: bool) -> bool:
    """RFT-40: A vote request is invalid whose log has a record of an epoch above its own; a candidate's also where it
    is of the same epoch. [{CLIENT}]"""
    return last_epoch > epoch or (last_epoch == epoch and not pre_vote)


@machine.operation("vote", "RFT-4", "RFT-3", "RFT-5", "RFT-6")
@require(lambda state, candidate: candidate != state.local, "RFT-4 nobody asks itself")
@kept
@ensure(
    lambda state, epoch, pre_vote, result: (
        result.state == state or (epoch > state.epoch and result.state.voted is None) or not pre_vote
    ),
    "RFT-3 a pre-vote leaves no vote",
)
def vote(
    state: Replica, epoch: Epoch, candidate: NodeId, last_epoch: Epoch, last_offset: Offset, pre_vote: bool
) -> Step[Replica, VoteAnswer]:
    """A vote is asked for, or a pre-vote."""
    if is_invalid(epoch, last_epoch, pre_vote):
        return Step(state, VoteAnswer(INVALID, state.epoch, state.leader))
    if is_of_before(state, epoch):
        return Step(state, VoteAnswer(FENCED, state.epoch, state.leader))
    s = hear(state, epoch, None)
    granted = would_grant(s, candidate, (last_epoch, last_offset), pre_vote)
    if granted and not pre_vote and s.voted is None:
        s = replace(s, voted=candidate)
        if s.role == "prospective":
            s = replace(s, granted=frozenset({s.local}), rejected=frozenset())
    return Step(s, VoteAnswer(NONE, s.epoch, s.leader, granted))


def heard_answer(state: Replica, error: str, epoch: int, leader: int | None) -> tuple[Replica, bool]:
    """What every answer tells of epoch and leader, and whether the rest of it counts."""
    if is_of_before(state, epoch) or error == UNKNOWN_EPOCH:
        return state, False
    if epoch > state.epoch or error in (FENCED, NOT_LEADER):
        return hear(state, epoch, leader), False
    return state if state.leader is not None else hear(state, epoch, leader), error == NONE


@machine.operation("voteResponse", "RFT-8", "RFT-9", "RFT-7", "RFT-6")
@require(
    lambda state, source: (
        source in state.voters and source != state.local and source not in state.granted | state.rejected
    ),
    "RFT-7 a voter answers once",
)
@require(lambda state, epoch, leader: state.agrees(epoch, leader), "RFT-2 one leader an epoch")
@kept
def vote_response(
    state: Replica,
    source: NodeId,
    error: Literal["NONE", "FENCED_LEADER_EPOCH"],
    epoch: Epoch,
    leader: NodeId | None,
    granted: bool,
) -> Replica:
    """The answer to a vote request of this epoch and role."""
    s, counts = heard_answer(state, error, epoch, leader)
    if not counts or s.role not in ("prospective", "candidate"):
        return s
    if granted:
        return _stand_further(replace(s, granted=s.granted | {source}))
    s = replace(s, rejected=s.rejected | {source})
    lost = len(s.voters) - len(s.rejected) < s.majority
    return give_up(s) if lost and s.role == "prospective" else s


@machine.operation("beginQuorumEpoch", "RFT-6")
@require(
    lambda state, epoch, leader: leader != state.local and state.agrees(epoch, leader), "RFT-2 one leader an epoch"
)
@kept
def begin_quorum_epoch(state: Replica, epoch: Epoch, leader: NodeId) -> Step[Replica, VoteAnswer]:
    """RFT-11: A replica that hears of the leader of its epoch, by a request or an answer, and knew none, or not where
    that is, follows it; a leader follows nobody in its epoch. [{CLIENT}]"""
    if is_of_before(state, epoch):
        return Step(state, VoteAnswer(FENCED, state.epoch, state.leader))
    s = hear(state, epoch, leader)
    return Step(s, VoteAnswer(NONE, s.epoch, s.leader))


@machine.operation("endQuorumEpoch", "RFT-6", "RFT-11")
@require(
    lambda state, epoch, leader: leader != state.local and state.agrees(epoch, leader), "RFT-2 one leader an epoch"
)
@kept
def end_quorum_epoch(state: Replica, epoch: Epoch, leader: NodeId) -> Step[Replica, VoteAnswer]:
    """The leader has resigned: as its first request, but the fetch timer is cut short."""
    return begin_quorum_epoch(state, epoch, leader)


@machine.question("endQuorumEpoch.backoffMs")
@states(without=ONE_CALL)
def election_backoff_ms(state: Replica, successors: tuple[NodeId, ...], max_ms: Backoff) -> int:
    """RFT-34: Of the successors that a resigning leader prefers, the first stands at once. The last of several waits
    half of the maximum, and each other one half of what the next one waits. Whoever is not among them waits the
    maximum. If there are none, nobody waits. [{CLIENT}]"""
    if state.local not in successors:
        return max_ms if successors else 0
    place, of = successors.index(state.local), len(successors)
    return 0 if place == 0 else min(max_ms, (max_ms >> (of - 1)) << (place - 1))


# ---- the log


@states(without=EXPLORED)
def is_removed(state: Replica, high: int) -> bool:
    """RFT-33: A voter is removed if there are others. A leader that removes itself leads on, without its own vote,
    until that is committed, and then resigns. [{VOTERS}]"""
    return not state.is_voter and state.voters_offset < high


@states()
def raise_high(state: Replica) -> Replica:
    """RFT-18: The high watermark of a leader is the offset that the logs of a majority of its voters have reached, once
    that is beyond the end of its log at its election; until then it is unknown. The leader counts if it is a voter. It
    never falls. [{LEADER}]
    """
    assert state.begun is not None
    known = {**state.ends, state.local: state.end}
    ends = sorted((known.get(v, -1) for v in state.voters), reverse=True)
    high = ends[len(ends) // 2]
    if high <= max(state.begun, state.high or 0):
        return state
    raised = tell_leader(tell_committed(replace(state, high=high, committed=high)))
    return resigned(raised) if is_removed(state, high) else raised


def write(state: Replica, records: tuple[Record, ...]) -> Replica:
    """A leader's records."""
    return raise_high(replace(state, log=state.log + records))


@states(without=EXPLORED)
def refused_leader_request(state: Replica, epoch: int) -> FetchError | None:
    """RFT-14: Whom only a leader can serve names its epoch: it is refused with FENCED_LEADER_EPOCH if that is lower
    than the replica's, with UNKNOWN_LEADER_EPOCH if it is higher (no epoch begins so), and with NOT_LEADER_OR_FOLLOWER
    by who does not lead. A fetch is invalid whose last epoch is above its own. [{CLIENT}]"""
    if epoch < state.epoch:
        return FENCED
    if epoch > state.epoch:
        return UNKNOWN_EPOCH
    return None if state.role == "leader" else NOT_LEADER


@states()
def diverges(there: SnapshotId, offset: int, last_epoch: int) -> bool:
    """RFT-15: A fetch is valid if the leader's log has records of its last epoch, up to its offset or further; or if it
    is of offset 0, and the log begins there. To any other the leader answers with the last epoch of its log that is not
    above, and where that ends. [KIP-595, 'Fetch'; {LOG}]"""
    return offset > 0 and (there.epoch != last_epoch or there.offset < offset)


@states(without=EXPLORED)
def needs_a_snapshot(state: Replica, offset: int, last_epoch: int) -> bool:
    """RFT-23: A fetch from before the log's beginning, or of an epoch before that of the first snapshot, is answered
    with the id of the latest snapshot; so is one from offset 0, if there is another than that of the bootstrap. A
    snapshot is made of what is committed, at a batch's end. [KIP-630; {CLIENT}]"""
    return state.latest != BOOTSTRAP if offset == 0 else state.is_before(offset, last_epoch)


@machine.operation("fetch", "RFT-23", "RFT-15", "RFT-18", "RFT-28", "RFT-14")
@require(lambda state, replica: replica != state.local, "RFT-14 nobody fetches from itself")
@require(lambda state, offset: state.is_between_batches(offset), "RFT-17 whoever fetches has whole batches")
@kept
@ensure(
    lambda state, offset, result: (
        result.result.error != NONE
        or result.result.diverging is not None
        or result.result.snapshot is not None
        or result.result.records == state.log[offset - state.start :]
    ),
    "RFT-17 the records from there on",
)
def fetch(
    state: Replica, replica: NodeId, epoch: Epoch, offset: Offset, last_epoch: Epoch
) -> Step[Replica, FetchAnswer]:
    """A replica fetches from the end of its log."""
    if last_epoch > epoch:
        return Step(state, FetchAnswer(INVALID, state.epoch, state.leader))
    if (error := refused_leader_request(state, epoch)) is not None:
        return Step(state, FetchAnswer(error, state.epoch, state.leader))
    answer = FetchAnswer(NONE, state.epoch, state.leader, state.high)
    if state.latest is not None and needs_a_snapshot(state, offset, last_epoch):
        return Step(state, answer._replace(snapshot=state.latest))
    there = state.end_of_epoch(last_epoch)
    if diverges(there, offset, last_epoch):
        return Step(state, answer._replace(diverging=there))
    s = _fetched_by(state, replica, offset)
    high = s.high if s.role == "leader" else s.committed
    return Step(s, answer._replace(high=high, records=state.log[offset - state.start :]))


def _fetched_by(state: Replica, replica: int, offset: int) -> Replica:
    """What a leader knows more by a valid fetch."""
    before = state.seen.get(replica, 0)
    caught = offset >= state.end or (before > 0 and offset >= before)
    heard = state.heard | ({replica} & {*state.voters})
    s = replace(
        state,
        ends={**state.ends, replica: offset},
        seen={**state.seen, replica: state.end},
        caught=state.caught | {replica} if caught else state.caught,
        heard=frozenset() if len(heard) >= state.majority - state.is_voter else heard,
    )
    return raise_high(s) if replica in s.voters else s


@states()
def truncated(state: Replica, diverging: SnapshotId) -> Replica:
    """RFT-16: A follower whose fetch was not valid cuts its log where the leader's epoch of the answer ends, or where
    its own records up to that epoch end, if that is before or it has none of it; it then fetches again. [KIP-595,
    'Fetch'; {LOG}]"""
    to = state.truncation(diverging)
    return replace(state, log=state.log[: max(0, to - state.start)])


@machine.operation("fetchResponse", "RFT-16", "RFT-11", "RFT-6")
@require(lambda state: state.role in ("follower", "unattached"), "RFT-17 who fetches")
@require(lambda state: state.fetching is None, "RFT-24 no records while a snapshot is fetched")
@require(lambda state, answer: state.agrees(answer.epoch, answer.leader), "RFT-2 one leader an epoch")
@require(lambda state, answer: answer.error in (NONE, FENCED, NOT_LEADER, UNKNOWN_EPOCH), "RFT-14 what is answered")
@require(lambda state, answer: answer.error != NONE or answer.leader is not None, "RFT-14 a leader answers")
@require(
    lambda state, answer: state.keeps_what_is_committed(answer.diverging),
    "RFT-22 no leader asks to truncate what is committed",
)
@require(lambda state, answer: state.may_be_followed_by(answer), "RFT-19 records as a leader has them")
@require(lambda state, answer: state.is_raised_by(answer), "RFT-22 a high watermark does not fall")
@require(
    lambda state, answer: answer.snapshot is None or state.lacks(answer.snapshot, answer.epoch),
    "RFT-23 a snapshot of what the follower has not",
)
@kept
def fetch_response(state: Replica, answer: FetchAnswer) -> Replica:
    """RFT-17: A follower appends the records that it fetched from the end of its log. Its high watermark is the
    leader's, or the end of its log if that is before. [KIP-595, 'Fetch'; {CLIENT}]"""
    s, counts = heard_answer(state, answer.error, answer.epoch, answer.leader)
    if not counts:
        return s
    s = replace(hear(s, answer.epoch, answer.leader), fetched=True)
    if answer.diverging is not None:
        return truncated(s, answer.diverging)
    if answer.snapshot is not None:
        return replace(s, fetching=answer.snapshot)
    s = replace(s, log=s.log + answer.records)
    if answer.high is None:
        return s
    high = min(s.end, answer.high)
    return tell_committed(replace(s, high=high, committed=high))


@machine.operation("fetchSnapshotResponse")
@require(lambda state: state.role == "follower" and state.fetching is not None, "RFT-24 of a snapshot that is fetched")
@require(lambda voters: len(voters) > 0, "RFT-29 there are voters")
@states(without=EXPLORED)
@kept_by_all
def fetch_snapshot_response(state: Replica, voters: tuple[NodeId, ...]) -> Replica:
    """RFT-24: A follower that has all of a snapshot begins its log there: nothing that was in it stays, and its high
    watermark is the snapshot's offset. The voters are those of the snapshot, where they can change. [KIP-630;
    {CLIENT}]"""
    at = state.fetching
    assert at is not None
    s = replace(
        state,
        fetching=None,
        fetched=True,
        log=(),
        start=at.offset,
        snapshots=(at,),
        high=at.offset,
        committed=at.offset,
        first=tuple(sorted({*voters})) if state.dynamic else state.first,
        first_offset=at.offset - 1,
    )
    return tell_committed(s)


@machine.operation("createSnapshot", "RFT-23")
@require(
    lambda state, offset, epoch: offset > 0 and state.may_name(offset, epoch), "RFT-23 a snapshot has a last record"
)
@kept
def create_snapshot(state: Replica, offset: Offset, epoch: Epoch) -> Step[Replica, bool]:
    """Whether there is a new one. It may not be beyond the high watermark of the log, nor of an epoch that the log does
    not have up to there."""
    if offset < state.start:
        return Step(state, False)
    there = state.end_of_epoch(epoch)
    if (
        offset > state.committed
        or state.is_before(offset, epoch)
        or there.epoch != epoch
        or there.offset < offset
        or not state.is_between_batches(offset)
    ):
        return Step(state, NO_SUCH_SNAPSHOT)
    new = SnapshotId(offset, epoch)
    if new in state.snapshots:
        return Step(state, False)
    return Step(
        replace(state, snapshots=tuple(sorted((*state.snapshots, new), key=lambda s: (s.epoch, s.offset)))), True
    )


@machine.operation("clean", "RFT-23", kind="time")
@require(lambda state: state.latest is not None, "RFT-23 up to a snapshot")
@kept
def clean(state: Replica) -> Replica:
    """What is in the latest snapshot leaves the log, and older snapshots go, if it is known to be committed."""
    at = state.latest
    assert at is not None
    if not state.start < at.offset <= state.committed:
        return state
    kept = state.log[at.offset - state.start :]
    s = replace(state, log=state.log[: at.offset - state.start])
    return replace(s, log=kept, start=at.offset, snapshots=(at,), first=s.voters, first_offset=s.voters_offset)


# ---- what the controller asks


@machine.operation("prepareAppend", "RFT-25")
@kept
@ensure(
    lambda state, result: isinstance(result.result, Refused) or result.state.log == state.log,
    "RFT-26 what is prepared is in no log",
)
def prepare_append(state: Replica, epoch: Epoch, values: tuple[str, ...]) -> Step[Replica, int]:
    """RFT-26: Records that a leader prepares get the offsets behind its log and what is prepared already; the last
    offset is the answer. They are in the log when an append is scheduled, all of them, in that order; a leader that
    leads no more forgets them. Those of one call are one batch; no more are prepared while 10 batches are not
    scheduled. [{CLIENT}; BatchAccumulator, Kafka 4.3.0]"""
    if state.role != "leader":
        return Step(state, NO_LEADER_APPENDS)
    if not values:
        return Step(state, NO_SUCH_APPEND)
    if epoch != state.epoch:
        return Step(state, NO_LEADER_APPENDS if epoch < state.epoch else NO_SUCH_APPEND)
    waiting = [r for r in state.prepared if not r.joined]
    if len(waiting) >= MAX_BATCHES:
        return Step(state, TOO_MANY_BATCHES)
    batch = tuple(Record(epoch, v, joined=i > 0) for i, v in enumerate(values))
    s = replace(state, prepared=state.prepared + batch)
    return Step(s, s.end + len(s.prepared) - 1)


@machine.operation("schedulePreparedAppend", "RFT-26", "RFT-18")
@states(without={"RFT-25": ONE_CALL})
@kept
def schedule_prepared_append(state: Replica) -> Replica | Refused:
    """RFT-25: An append is refused with NotLeaderException by a replica that does not lead, or if it names a lower
    epoch than the leader's: a leader of before appends nothing. One that names a higher epoch, or no records, is an
    illegal argument. [Kafka Internals, ch. 11, 'The write path'; {CLIENT}]"""
    if state.role != "leader":
        return NO_LEADER_APPENDS
    return write(replace(state, prepared=()), state.prepared)


@machine.operation("resign")
@states(without=ONE_CALL)
@kept
def resign(state: Replica, epoch: Annotated[int, Within(-1, 2**31 - 1)]) -> Replica | Refused:
    """RFT-27: A leader that is asked to resign from its epoch does. From an earlier epoch, or once it has resigned,
    nothing is done: the caller has not heard yet. From a negative or a later epoch, or one that another leads, it is an
    illegal argument. [{CLIENT}]"""
    if epoch < 0 or epoch > state.epoch:
        return NO_SUCH_RESIGNATION
    if epoch < state.epoch:
        return state
    if state.leader != state.local:
        return NO_SUCH_RESIGNATION
    return resigned(state) if state.role == "leader" else state


# ---- changes of the voters


@states(without=EXPLORED)
def has_a_change(state: Replica) -> bool:
    """RFT-30: One change of the voters at a time: while the record of one is not committed, another is refused with
    REQUEST_TIMED_OUT. [{VOTERS}]"""
    return state.is_changing


@states(without=EXPLORED)
def has_committed_nothing(state: Replica) -> bool:
    """RFT-31: A leader that does not know its high watermark, and so has committed nothing in its epoch, refuses every
    change with REQUEST_TIMED_OUT. [{VOTERS}]"""
    return state.high is None


@states(without=EXPLORED)
def refused_change(state: Replica) -> str | None:
    """RFT-29: The voters are those that the last record of the log which says so names, committed or not; where none
    does, those of the snapshot at the log's beginning, or of the configuration. Any replica may vote. [KIP-853;
    VoterSetHistory, Kafka 4.3.0]
    """
    if state.role != "leader":
        return NOT_LEADER
    if has_committed_nothing(state):
        return TIMED_OUT
    if not state.dynamic:
        return "UNSUPPORTED_VERSION"
    return TIMED_OUT if has_a_change(state) else None


def _changed(state: Replica, voters: tuple[int, ...]) -> Replica:
    """The record is written at once, or when the append is scheduled that was prepared before it."""
    record = Record(state.epoch, voters=voters)
    if state.prepared:
        return replace(state, prepared=(*state.prepared, record))
    return write(state, (record,))


one_change = ensure(
    lambda state, result: result.result != NONE or len({*state.voters} ^ {*result.state.voters}) <= 1,
    "RFT-30 one voter more or less",
)


@machine.operation("addVoter", "RFT-30", "RFT-31", "RFT-29")
@states(without={"RFT-32": EXPLORED})
@one_change
@kept
def add_voter(state: Replica, voter: NodeId) -> Step[Replica, str]:
    """RFT-32: A voter is added that is not one yet (DUPLICATE_VOTER) and has once fetched all that the leader had at
    that fetch or at its one before (REQUEST_TIMED_OUT); the record counts for the leader as soon as it is written.
    [{VOTERS}; {LEADER}]"""
    if (error := refused_change(state)) is not None:
        return Step(state, error)
    if voter in state.voters:
        return Step(state, "DUPLICATE_VOTER")
    if voter not in state.caught:
        return Step(state, TIMED_OUT)
    return Step(_changed(state, tuple(sorted((*state.voters, voter)))), NONE)


@machine.operation("removeVoter", "RFT-33", "RFT-30", "RFT-31", "RFT-29")
@one_change
@kept
def remove_voter(state: Replica, voter: NodeId) -> Step[Replica, str]:
    """VOTER_NOT_FOUND if there is no such voter, or no other."""
    if (error := refused_change(state)) is not None:
        return Step(state, error)
    if voter not in state.voters or len(state.voters) == 1:
        return Step(state, "VOTER_NOT_FOUND")
    return Step(_changed(state, tuple(v for v in state.voters if v != voter)), NONE)


# ---- what the listener is told


@machine.operation("told", "RFT-35")
@states(without={"RFT-35": EXPLORED, "RFT-36": OF_ONE_REPLICA, "RFT-37": OF_ONE_REPLICA})
@ensure(
    lambda state, result: all(
        e.kind != "commit" or (e.offset or 0) + len(e.records) <= state.given for e in result.result
    ),
    "RFT-35 nothing that was not given",
)
def take_told(state: Replica) -> Step[Replica, tuple[Event, ...]]:
    """What the listener was told since the last such call.

    RFT-35: A listener is given every committed record, once, in the log's order, and no other; as soon as it is known
    to be committed. [{LISTENER}]

    RFT-36: A listener is told at once of a later epoch, or of its leader once there is one, and of nothing twice. That
    the replica itself leads it is told only when it was given everything up to the record with which its epoch begins;
    and not when it starts again in an epoch that it led. [{LISTENER}]

    RFT-37: A listener that is new is given the latest snapshot, if there is one, as soon as a high watermark is known;
    so is one that has less than the log begins with. [{LISTENER}]
    """
    return Step(replace(state, told=()), state.told)


def begin_listening(state: Replica) -> Replica:
    """A listener that has nothing."""
    return tell_leader(tell_committed(replace(state, given=-1, announced=(0, None), told=())))


@machine.operation("register")
@states(without=OF_ONE_REPLICA)
@kept
def register(state: Replica) -> Replica:
    """RFT-38: A listener that is registered in the place of another is told everything from the beginning, and the
    other nothing any more. [Kafka Internals, ch. 11; {LISTENER}]"""
    return begin_listening(state)


# ---- restart


@machine.operation("restart", kind="restart")
@kept_by_all
def restart(state: Replica) -> Replica:
    """RFT-39: A replica that starts again has its epoch, its vote, the leader that it knew and its log. Whoever led is
    resigned, so that it writes no more in that epoch; a voter that voted for itself is a candidate, and forgets the
    leader that it may have known; who knows its leader follows it, if that is a voter; all others are unattached. The
    high watermark is unknown. The only voter leads at once, in a new epoch. [{QUORUM}]"""
    latest = state.latest.offset if state.latest else 0
    again = Replica(
        *(state.local, state.first, state.dynamic, "unattached", state.epoch, state.leader, state.voted),
        *(state.start, state.log, state.snapshots, max(state.first_offset, latest - 1)),
        committed=state.start,
    )
    if state.leader == state.local:
        again = replace(again, role="resigned")
    elif state.voted == state.local and state.local in state.voters:
        again = replace(again, role="candidate", leader=None, granted=frozenset({state.local}))
    elif state.leader is not None:
        is_known = state.leader in state.voters
        again = replace(again, role="follower" if is_known else "unattached", homeless=not is_known)
    if again.voters == (again.local,):
        again = lead(again) if again.role == "candidate" else stand(again)
    return begin_listening(again)
