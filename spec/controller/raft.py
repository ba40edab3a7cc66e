"""One replica of the quorum of controllers: votes, leadership, its log and what is committed, and what its listener is
told.

A message comes in as a call, and its answer goes out as a result; a timer that runs out is a call too. What Kafka's
thread does at its next poll follows at once here: a leader's first record, prepared records, a resignation. A request
that was answered with an error of a later epoch is not sent again by the spec: who sends what and when is the caller's.
Source: KIP-595, KIP-630, KIP-853, KIP-996; KafkaRaftClient, QuorumState and LeaderState, Kafka 4.3.0.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import ONE_CALL, clause, not_modelled, states
from kafkaspec.contract.machine import Machine, Refused, Step
from kafkaspec.contract.numbers import LeaderEpoch, NodeId, Offset, Within

PREFIX = "RFT"
TITLE = "Raft"

CLIENT = "KafkaRaftClient, Kafka 4.3.0"
QUORUM = "QuorumState, Kafka 4.3.0"
LEADER = "LeaderState, Kafka 4.3.0"
LOG = "RaftLog, Kafka 4.3.0"
VOTERS = "KIP-853; AddVoterHandler and RemoveVoterHandler, Kafka 4.3.0"
LISTENER = "RaftClient.Listener, KafkaRaftClient.ListenerContext, Kafka 4.3.0"

NONE = "NONE"
FENCED = "FENCED_LEADER_EPOCH"
UNKNOWN_EPOCH = "UNKNOWN_LEADER_EPOCH"
NOT_LEADER = "NOT_LEADER_OR_FOLLOWER"
INVALID = "INVALID_REQUEST"
TIMED_OUT = "REQUEST_TIMED_OUT"

NOT_LEADER_EXCEPTION = "org.apache.kafka.raft.errors.NotLeaderException"
ILLEGAL = "java.lang.IllegalArgumentException"
NO_LEADER_APPENDS = Refused("RFT-25", NOT_LEADER_EXCEPTION)
NO_SUCH_APPEND = Refused("RFT-25", ILLEGAL)
NO_SUCH_RESIGNATION = Refused("RFT-27", ILLEGAL)
NO_SUCH_SNAPSHOT = Refused("RFT-23", ILLEGAL)

EXPLORED = {"proof": "the sizes of voter sets that change are explored, not proved"}
QUORUM_WIDE = {
    "spec": "about several replicas",
    "impl": "about several replicas",
    "mutant": "held up by the rules of each replica",
}
TIME = {"proof": "about what comes at last, or about all that others may do: explored"}
OF_ONE_REPLICA = not_modelled("the order of calls to one listener; what is committed is modelled")

clause(
    """RFT-2: An epoch has at most one leader, for good. [KIP-595, 'Leader election']

    RFT-19: If two logs have a record of one epoch at one offset, they are the same up to there. [KIP-595; {LOG}]

    RFT-20: Whoever is elected has every record that was committed in an earlier epoch. [KIP-595, 'Vote']

    RFT-21: Two replicas never give their listeners different records at one offset. [KIP-595]
    """,
    without={
        "spec": "about several replicas",
        "impl": "about several replicas",
        "mutant": "held by the rules of one replica",
    },
)
clause(
    """RFT-12: A majority of voters that fetches from its leader stays with it, whoever else wakes up or comes back,
    until the timer of one of them runs out or the leader resigns. [KIP-996]

    RFT-13: While a majority of voters is up, hears each other and their timers run out one by one, one of them is
    elected at last, and a majority follows it. [KIP-595; KIP-996]
    """,
    without={
        "spec": "about several replicas",
        "impl": "about several replicas",
        "mutant": "held by the rules of one replica",
    }
    | TIME,
)

Backoff = Annotated[int, Within(0, 10_000)]
"""electionBackoffMaxMs"""
Role = Literal["unattached", "prospective", "candidate", "leader", "follower", "resigned"]


class Record(NamedTuple):
    """Of data a value; of a change of the voters, who they are from there on; of neither: a leader's first record."""

    epoch: int
    value: str | None = None
    voters: tuple[int, ...] | None = None


class SnapshotId(NamedTuple):
    """The offset behind its last record, and that record's epoch."""

    offset: int
    epoch: int


class VoteAnswer(NamedTuple):
    """Of Vote, BeginQuorumEpoch and EndQuorumEpoch; `granted` of the first alone."""

    error: str
    epoch: int
    leader: int | None
    granted: bool = False


class FetchAnswer(NamedTuple):
    """`high` is the leader's high watermark; at most one of the last three says something."""

    error: str
    epoch: int
    leader: int | None
    high: int | None = None
    diverging: SnapshotId | None = None
    """an epoch, and where it ends in the leader's log"""
    snapshot: SnapshotId | None = None
    records: tuple[Record, ...] = ()


class Event(NamedTuple):
    """What a listener is told: that `leader` leads `epoch`, or nobody known; to load a snapshot; or committed `records`
    from `offset` on."""

    kind: Literal["leader", "snapshot", "commit"]
    epoch: int | None = None
    leader: int | None = None
    offset: int | None = None
    records: tuple[Record, ...] = ()


@dataclass(frozen=True)
class Replica:
    """The state. The log begins at `start`, behind the record of `snapshot`, or at 0."""

    local: int
    first: tuple[int, ...]
    """the voters where no record says otherwise"""
    dynamic: bool = True
    """kraft.version is 1: voters can change"""
    role: Role = "unattached"
    epoch: int = 0
    leader: int | None = None
    voted: int | None = None
    start: int = 0
    before: SnapshotId | None = None
    """the snapshot where the log begins"""
    log: tuple[Record, ...] = ()
    snapshot: SnapshotId | None = None
    """the latest"""
    fetching: SnapshotId | None = None
    high: int | None = None
    granted: frozenset[int] = frozenset()
    rejected: frozenset[int] = frozenset()
    fetched: bool = False
    """a follower has fetched from this leader"""
    begun: int | None = None
    """the end of a leader's log when it was elected"""
    ends: dict[int, int] = field(default_factory=dict)
    """how far the logs of others go, as the leader knows"""
    heard: frozenset[int] = frozenset()
    """voters that have fetched since a majority did"""
    prepared: tuple[Record, ...] = ()
    """not scheduled, so in no log; a change of the voters waits behind data"""
    committed: int = 0
    """the high watermark that the log itself keeps through every role"""
    given: int = -1
    """the next offset of the listener; -1: it is new"""
    announced: tuple[int, int | None] = (0, None)
    """the epoch and leader that it was told last"""

    @property
    def end(self) -> int:
        """The offset behind the last record."""
        return self.start + len(self.log)

    @property
    def last_epoch(self) -> int:
        """Of the last record; 0 if there is none."""
        return self.log[-1].epoch if self.log else self.before.epoch if self.before else 0

    @property
    def voters(self) -> tuple[int, ...]:
        """RFT-29."""
        return next((r.voters for r in reversed(self.log) if r.voters is not None), self.first)

    @property
    def voters_offset(self) -> int:
        """Where the voters are written; -1: not in the log."""
        return next((self.start + i for i, r in reversed([*enumerate(self.log)]) if r.voters is not None), -1)

    @property
    def is_changing(self) -> bool:
        """A change of the voters is not committed, or not even in the log."""
        unwritten = any(r.voters is not None for r in self.prepared)
        return unwritten or self.voters_offset >= (self.high or 0)

    @property
    def majority(self) -> int:
        """How many voters are more than half."""
        return len(self.voters) // 2 + 1


def initial(voters: tuple[NodeId, ...] = (0, 1, 2), dynamic: bool = True) -> Replica:
    """Replica 0, for the first time."""
    first = Replica(0, tuple(sorted({*voters})), dynamic)
    return stand(first) if first.voters == (0,) else first


def observe(state: Replica) -> Replica:
    """All of it."""
    return state


machine = Machine("raft", initial, observe)


def after(state: Replica, result: object) -> Replica:
    """The state that an operation leaves, in whichever form it was returned."""
    if isinstance(result, Step):
        found = result.state
        assert isinstance(found, Replica)
        return found
    return result if isinstance(result, Replica) else state


# ---- what is true after every call


@states()
def keeps_its_vote(state: Replica, result: object) -> bool:
    """RFT-1: A replica votes for at most one candidate in an epoch, itself included, and keeps the vote through every
    change of its role in that epoch. [KIP-595; {QUORUM}]"""
    s = after(state, result)
    return s.epoch != state.epoch or state.voted is None or s.voted == state.voted


@states()
def epochs_rise(state: Replica, result: object) -> bool:
    """RFT-6: An epoch never gets lower. A request of a lower epoch is refused with FENCED_LEADER_EPOCH and changes
    nothing; one of a higher epoch is followed into it, as an unattached replica, or as a follower if it names the
    leader; an answer of a lower epoch is ignored. [{CLIENT}]"""
    return after(state, result).epoch >= state.epoch


@states()
def committed_stays(state: Replica, result: object) -> bool:
    """RFT-22: What is below a replica's high watermark is not truncated, and the high watermark of a role does not
    fall. [{CLIENT}; {LEADER}]"""
    s = after(state, result)
    if state.high is None or s.high is None:
        return True
    kept = range(max(state.start, s.start), state.high)
    return s.high >= state.high and all(s.log[i - s.start] == state.log[i - state.start] for i in kept)


vote_stays = ensure(keeps_its_vote, "RFT-1 one vote an epoch")
epoch_rises = ensure(epochs_rise, "RFT-6 epochs rise")
log_stays = ensure(committed_stays, "RFT-22 what is committed stays")


# ---- roles


def _become(state: Replica, role: Role, epoch: int, leader: int | None) -> Replica:
    """The vote lasts as long as the epoch; what belongs to a role goes with it."""
    return replace(
        state,
        role=role,
        epoch=epoch,
        leader=leader,
        voted=state.voted if epoch == state.epoch else None,
        granted=frozenset(),
        rejected=frozenset(),
        fetched=False,
        fetching=None,
        begun=None,
        ends={},
        heard=frozenset(),
        prepared=(),
    )


@states()
def stand(state: Replica) -> Replica:
    """RFT-7: A voter whose election timer or fetch timer runs out becomes prospective: it keeps its epoch, its vote and
    its leader, and asks the others whether they would vote for it, and counts itself. With a majority it becomes a
    candidate, in the next epoch, which it votes for itself in. An observer stands for no election. [KIP-996;
    {QUORUM}]"""
    asking = replace(_become(state, "prospective", state.epoch, state.leader), granted=frozenset({state.local}))
    return _stand_further(asking)


def _stand_further(state: Replica) -> Replica:
    """On with a majority: to candidate, and on to leader."""
    if len(state.granted) < state.majority:
        return state
    if state.role == "candidate":
        return lead(state)
    mine = frozenset({state.local})
    candidate = replace(_become(state, "candidate", state.epoch + 1, None), voted=state.local, granted=mine)
    return _stand_further(candidate)


@states()
def lead(state: Replica) -> Replica:
    """RFT-9: A candidate with the votes of a majority of its voters leads. Its first record, a leader change, is at the
    end of its log; voters that stand in no log follow, where they can change. [{LEADER}]"""
    leader = replace(_become(state, "leader", state.epoch, state.local), begun=state.end, high=None)
    first: tuple[Record, ...] = (Record(state.epoch),)
    if state.dynamic and state.voters_offset < 0 and state.before is None:
        first = (*first, Record(state.epoch, voters=state.voters))
    return write(leader, first)


@states()
def give_up(state: Replica) -> Replica:
    """RFT-8: A prospective replica that a majority refuses, or whose election timer runs out, follows the leader that
    it knows, or is unattached, in the same epoch and with the same vote. [KIP-996; {CLIENT}]"""
    known = state.leader is not None
    return _become(state, "follower" if known else "unattached", state.epoch, state.leader)


def resigned(state: Replica) -> Replica:
    """A leader that leads no more; it forgets its high watermark."""
    return replace(_become(state, "resigned", state.epoch, state.local), high=None)


def _hear(state: Replica, epoch: int, leader: int | None) -> Replica:
    """Of an epoch, and perhaps who leads it."""
    if epoch > state.epoch:
        heard = _become(state, "unattached" if leader is None else "follower", epoch, leader)
    elif leader is not None and state.leader is None:
        heard = _become(state, "follower", epoch, leader)
    else:
        return state
    return heard


def consistent(state: Replica, epoch: int, leader: int | None) -> bool:
    """Nobody says that another leads the replica's epoch, or that the replica leads where it does not."""
    if leader == state.local:
        return state.role == "leader" and epoch == state.epoch
    return epoch != state.epoch or leader is None or state.leader is None or leader == state.leader


# ---- timers


@machine.operation("electionTimeout", kind="time")
@require(lambda state: state.role not in ("leader", "follower"), "RFT-7 a role with an election timer")
@vote_stays
@epoch_rises
@log_stays
def election_timeout(state: Replica) -> Replica:
    """RFT-10: A leader that resigns stays in its epoch, knows itself as its leader and is followed no more; when its
    election timer runs out it is unattached, in the next epoch. [{CLIENT}]"""
    match state.role:
        case "resigned":
            return _become(state, "unattached", state.epoch + 1, None)
        case "prospective":
            return give_up(state)
    return stand(state) if state.local in state.voters else state


@machine.operation("fetchTimeout", "RFT-7", kind="time")
@require(lambda state: state.role == "follower", "RFT-7 a follower has a fetch timer")
@vote_stays
@epoch_rises
@log_stays
def fetch_timeout(state: Replica) -> Replica:
    """A follower has not had an answer of its leader."""
    return stand(state) if state.local in state.voters else state


@machine.operation("checkQuorumTimeout", kind="time")
@require(lambda state: state.role == "leader" and len(state.voters) > 1, "RFT-28 a leader with other voters")
@states(without=TIME)
@vote_stays
@epoch_rises
@log_stays
def check_quorum_timeout(state: Replica) -> Replica:
    """RFT-28: A leader from which no majority of its voters, itself included, has fetched for a while resigns. Whenever
    a majority has, it begins to count again. [{LEADER}]"""
    return resigned(state)


# ---- votes


@states()
def would_grant(state: Replica, candidate: int, up_to_date: bool, pre_vote: bool) -> bool:
    """RFT-3: A pre-vote is granted to a prospective replica whose log is up to date, by any voter that neither leads
    nor has fetched from the leader that it follows; it changes nothing. [KIP-996; {QUORUM}]

    RFT-4: A vote is granted by an unattached or prospective replica that knows no leader of the epoch and has not voted
    for another in it, to a candidate whose log is up to date: its last epoch is later, or the same and its end is no
    less. Whoever was voted for is granted its vote again. [KIP-595; {QUORUM}]

    RFT-5: Followers, candidates, leaders and resigned leaders grant no vote; leaders, and followers that have fetched,
    grant no pre-vote. [{QUORUM}]
    """
    if state.role == "leader":
        return False
    if pre_vote:
        return up_to_date and not (state.role == "follower" and state.fetched)
    if state.role not in ("unattached", "prospective"):
        return False
    if state.voted is not None:
        return state.voted == candidate
    return state.leader is None and up_to_date


@machine.operation("vote", "RFT-3", "RFT-4", "RFT-5", "RFT-6")
@require(lambda state, candidate: candidate != state.local, "RFT-4 nobody asks itself")
@vote_stays
@epoch_rises
@log_stays
@ensure(
    lambda state, epoch, pre_vote, result: (
        result.state == state or (epoch > state.epoch and result.state.voted is None) or not pre_vote
    ),
    "RFT-3 a pre-vote leaves no vote",
)
def vote(
    state: Replica, epoch: LeaderEpoch, candidate: NodeId, last_epoch: LeaderEpoch, last_offset: Offset, pre_vote: bool
) -> Step[Replica, VoteAnswer]:
    """RFT-40: A vote request is invalid whose log has a record of an epoch above its own; a candidate's also where it
    is of the same epoch. [{CLIENT}]"""
    if last_epoch > epoch or (last_epoch == epoch and not pre_vote):
        return Step(state, VoteAnswer(INVALID, state.epoch, state.leader))
    if epoch < state.epoch:
        return Step(state, VoteAnswer(FENCED, state.epoch, state.leader))
    s = _hear(state, epoch, None)
    granted = would_grant(s, candidate, (last_epoch, last_offset) >= (s.last_epoch, s.end), pre_vote)
    if granted and not pre_vote and s.voted is None:
        s = replace(s, voted=candidate)
        if s.role == "prospective":
            s = replace(s, granted=frozenset({s.local}), rejected=frozenset())
    return Step(s, VoteAnswer(NONE, s.epoch, s.leader, granted))


def heard_answer(state: Replica, error: str, epoch: int, leader: int | None) -> tuple[Replica, bool]:
    """What every answer tells of epoch and leader, and whether the rest of it counts."""
    if epoch < state.epoch or error == UNKNOWN_EPOCH:
        return state, False
    if epoch > state.epoch or error in (FENCED, NOT_LEADER):
        return _hear(state, epoch, leader), False
    return _hear(state, epoch, leader), error == NONE


@machine.operation("voteResponse", "RFT-6", "RFT-7", "RFT-8", "RFT-9")
@require(
    lambda state, source: (
        source in state.voters and source != state.local and source not in state.granted | state.rejected
    ),
    "RFT-7 a voter answers once",
)
@require(lambda state, epoch, leader: consistent(state, epoch, leader), "RFT-2 one leader an epoch")
@vote_stays
@epoch_rises
@log_stays
def vote_response(
    state: Replica,
    source: NodeId,
    error: Literal["NONE", "FENCED_LEADER_EPOCH"],
    epoch: LeaderEpoch,
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
    lambda state, epoch, leader: leader != state.local and consistent(state, epoch, leader), "RFT-2 one leader an epoch"
)
@vote_stays
@epoch_rises
@log_stays
def begin_quorum_epoch(state: Replica, epoch: LeaderEpoch, leader: NodeId) -> Step[Replica, VoteAnswer]:
    """RFT-11: A replica that hears of the leader of its epoch, by a request or an answer, and knew none, follows it; a
    leader follows nobody in its epoch. [{CLIENT}]"""
    if epoch < state.epoch:
        return Step(state, VoteAnswer(FENCED, state.epoch, state.leader))
    s = _hear(state, epoch, leader)
    return Step(s, VoteAnswer(NONE, s.epoch, s.leader))


@machine.operation("endQuorumEpoch", "RFT-6", "RFT-11")
@require(
    lambda state, epoch, leader: leader != state.local and consistent(state, epoch, leader), "RFT-2 one leader an epoch"
)
@vote_stays
@epoch_rises
@log_stays
def end_quorum_epoch(state: Replica, epoch: LeaderEpoch, leader: NodeId) -> Step[Replica, VoteAnswer]:
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


def end_of_epoch(state: Replica, epoch: int) -> SnapshotId:
    """The last epoch of the log that is not above one, and where it ends. Of an epoch below all that there are: that
    epoch, and where the log begins; above all: the end of the log."""
    if epoch > state.last_epoch or not state.log:
        return SnapshotId(state.end, state.last_epoch)
    below = [i for i, r in enumerate(state.log) if r.epoch <= epoch]
    if not below:
        return SnapshotId(state.start, epoch)
    return SnapshotId(state.start + below[-1] + 1, state.log[below[-1]].epoch)


@states(without={"RFT-33": EXPLORED, "RFT-18": {}})
def raise_high(state: Replica) -> Replica:
    """RFT-18: The high watermark of a leader is the offset that the logs of a majority of its voters have reached, once
    that is beyond the end of its log at its election; until then it is unknown. The leader counts if it is a voter. It
    never falls. [{LEADER}]

    RFT-33: A voter is removed if there are others. A leader that removes itself leads on, without its own vote, until
    that is committed, and then resigns. [{VOTERS}]
    """
    assert state.begun is not None
    known = {**state.ends, state.local: state.end}
    ends = sorted((known.get(v, -1) for v in state.voters), reverse=True)
    high = ends[len(ends) // 2]
    if high <= max(state.begun, state.high or 0):
        return state
    raised = replace(state, high=high, committed=high)
    return resigned(raised) if state.local not in state.voters and state.voters_offset < high else raised


def write(state: Replica, records: tuple[Record, ...]) -> Replica:
    """A leader's records."""
    return raise_high(replace(state, log=state.log + records))


@states()
def refused_leader_request(state: Replica, epoch: int) -> str | None:
    """RFT-14: Whom only a leader can serve names its epoch: it is refused with FENCED_LEADER_EPOCH if that is lower
    than the replica's, with UNKNOWN_LEADER_EPOCH if it is higher (no epoch begins so), and with NOT_LEADER_OR_FOLLOWER
    by who does not lead. A fetch is invalid whose last epoch is above its own. [{CLIENT}]"""
    if epoch < state.epoch:
        return FENCED
    if epoch > state.epoch:
        return UNKNOWN_EPOCH
    return None if state.role == "leader" else NOT_LEADER


@machine.operation("fetch", "RFT-14", "RFT-18", "RFT-28")
@require(lambda state, replica: replica != state.local, "RFT-14 nobody fetches from itself")
@vote_stays
@epoch_rises
@log_stays
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
    state: Replica, replica: NodeId, epoch: LeaderEpoch, offset: Offset, last_epoch: LeaderEpoch
) -> Step[Replica, FetchAnswer]:
    """RFT-15: A fetch is valid if the leader's log has records of its last epoch, up to its offset or further; or if it
    is of offset 0, and the log begins there. To any other the leader answers with the last epoch of its log that is not
    above, and where that ends. [KIP-595, 'Fetch'; {LOG}]

    RFT-23: A fetch from before the log's beginning, or of an epoch before that of the snapshot there, is answered with
    the id of the latest snapshot; so is one from offset 0, if there is any. A snapshot is made of what is committed, at
    a record's end. [KIP-630; {CLIENT}]
    """
    if last_epoch > epoch:
        return Step(state, FetchAnswer(INVALID, state.epoch, state.leader))
    if (error := refused_leader_request(state, epoch)) is not None:
        return Step(state, FetchAnswer(error, state.epoch, state.leader))
    answer = FetchAnswer(NONE, state.epoch, state.leader, state.high)
    if state.snapshot is not None and (offset == 0 or _is_before(state, offset, last_epoch)):
        return Step(state, answer._replace(snapshot=state.snapshot))
    if offset > 0 and ((there := end_of_epoch(state, last_epoch)).epoch != last_epoch or there.offset < offset):
        return Step(state, answer._replace(diverging=there))
    heard = state.heard | ({replica} & {*state.voters})
    s = replace(state, ends={**state.ends, replica: offset}, heard=heard)
    if len(s.heard) >= s.majority - (s.local in s.voters):
        s = replace(s, heard=frozenset())
    s = raise_high(s) if replica in s.voters else s
    high = s.high
    return Step(s, answer._replace(high=high, records=state.log[offset - state.start :]))


def _is_before(state: Replica, offset: int, last_epoch: int) -> bool:
    """The log's beginning, where that is behind a snapshot."""
    at = state.before
    return at is not None and (
        offset < state.start or (offset == state.start and last_epoch != at.epoch) or last_epoch < at.epoch
    )


@states()
def truncated(state: Replica, diverging: SnapshotId) -> Replica:
    """RFT-16: A follower whose fetch was not valid cuts its log where the leader's epoch of the answer ends, or where
    its own records up to that epoch end, if that is before or it has none of it; it then fetches again. [KIP-595,
    'Fetch'; {LOG}]"""
    if diverging.epoch == 0:
        to = min(diverging.offset, state.end)
    else:
        own = end_of_epoch(state, diverging.epoch)
        to = min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset
    return replace(state, log=state.log[: max(0, to - state.start)])


def _keeps_what_is_committed(state: Replica, diverging: SnapshotId | None) -> bool:
    return diverging is None or truncated(state, diverging).end >= max(state.committed, state.start)


@machine.operation("fetchResponse", "RFT-6", "RFT-11", "RFT-16")
@require(lambda state: state.role in ("follower", "unattached"), "RFT-17 who fetches")
@require(lambda state, answer: consistent(state, answer.epoch, answer.leader), "RFT-2 one leader an epoch")
@require(lambda state, answer: answer.error != NONE or answer.leader is not None, "RFT-14 a leader answers")
@require(
    lambda state, answer: _keeps_what_is_committed(state, answer.diverging),
    "RFT-22 no leader asks to truncate what is committed",
)
@require(
    lambda state, answer: (
        all(a.epoch <= b.epoch for a, b in zip(answer.records, answer.records[1:], strict=False))
        and all(state.last_epoch <= r.epoch <= answer.epoch for r in answer.records)
    ),
    "RFT-19 records as a leader has them",
)
@require(
    lambda state, answer: (
        answer.high is None or state.high is None or min(answer.high, state.end + len(answer.records)) >= state.high
    ),
    "RFT-22 a high watermark does not fall",
)
@require(
    lambda state, answer: (
        answer.snapshot is None
        or (
            (answer.snapshot.epoch, answer.snapshot.offset) > (state.last_epoch, state.end)
            and answer.snapshot.offset >= max(state.committed, state.start, 1)
        )
    ),
    "RFT-23 a snapshot of what the follower has not",
)
@vote_stays
@epoch_rises
@log_stays
def fetch_response(state: Replica, answer: FetchAnswer) -> Replica:
    """RFT-17: A follower appends the records that it fetched from the end of its log. Its high watermark is the
    leader's, or the end of its log if that is before. [KIP-595, 'Fetch'; {CLIENT}]"""
    s, counts = heard_answer(state, answer.error, answer.epoch, answer.leader)
    if not counts:
        return s
    s = replace(s, fetched=True)
    if answer.diverging is not None:
        return truncated(s, answer.diverging)
    if answer.snapshot is not None:
        return replace(s, fetching=answer.snapshot)
    s = replace(s, log=s.log + answer.records)
    if answer.high is None:
        return s
    high = min(s.end, answer.high)
    return replace(s, high=high, committed=high)


@machine.operation("fetchSnapshotResponse")
@require(lambda state: state.role == "follower" and state.fetching is not None, "RFT-24 of a snapshot that is fetched")
@require(lambda voters: len(voters) > 0, "RFT-29 there are voters")
@vote_stays
@epoch_rises
def fetch_snapshot_response(state: Replica, voters: tuple[NodeId, ...]) -> Replica:
    """RFT-24: A follower that has all of a snapshot begins its log there: nothing that was in it stays, and its high
    watermark is the snapshot's offset. The voters are those of the snapshot. [KIP-630; {CLIENT}]"""
    at = state.fetching
    assert at is not None
    return replace(
        state,
        fetching=None,
        fetched=True,
        log=(),
        start=at.offset,
        before=at,
        snapshot=at,
        high=at.offset,
        committed=at.offset,
        first=tuple(sorted({*voters})),
    )


@machine.operation("createSnapshot", "RFT-23")
@vote_stays
@epoch_rises
@log_stays
def create_snapshot(state: Replica, offset: Offset, epoch: LeaderEpoch) -> Step[Replica, bool]:
    """Whether there is a new one. It may not be beyond the high watermark, nor of another epoch than the log has."""
    if offset < state.start:
        return Step(state, False)
    if offset > state.committed or offset == 0:
        return Step(state, NO_SUCH_SNAPSHOT)
    there = end_of_epoch(state, epoch)
    at_start = state.before is not None and (offset, epoch) == state.before
    if not at_start and (_is_before(state, offset, epoch) or there.epoch != epoch or there.offset < offset):
        return Step(state, NO_SUCH_SNAPSHOT)
    new = SnapshotId(offset, epoch)
    if state.snapshot is not None and new <= state.snapshot:
        return Step(state, False)
    return Step(replace(state, snapshot=new), True)


@machine.operation("clean", "RFT-23", kind="time")
@require(lambda state: state.snapshot is not None, "RFT-23 up to a snapshot")
@vote_stays
@epoch_rises
@log_stays
def clean(state: Replica) -> Replica:
    """What is in the latest snapshot leaves the log."""
    at = state.snapshot
    assert at is not None
    if at.offset <= state.start:
        return state
    gone = state.log[: at.offset - state.start]
    first = next((r.voters for r in reversed(gone) if r.voters is not None), state.first)
    return replace(state, log=state.log[at.offset - state.start :], start=at.offset, before=at, first=first)


# ---- what the controller asks


@machine.operation("prepareAppend", "RFT-25")
@vote_stays
@epoch_rises
@log_stays
@ensure(
    lambda state, result: isinstance(result.result, Refused) or result.state.log == state.log,
    "RFT-26 what is prepared is in no log",
)
def prepare_append(state: Replica, epoch: LeaderEpoch, values: tuple[str, ...]) -> Step[Replica, int]:
    """RFT-26: Records that a leader prepares get the offsets behind its log and what is prepared already; the last
    offset is the answer. They are in the log when an append is scheduled, all of them, in that order; a leader that
    leads no more forgets them. [{CLIENT}; BatchAccumulator, Kafka 4.3.0]
    """
    if state.role != "leader":
        return Step(state, NO_LEADER_APPENDS)
    if not values:
        return Step(state, NO_SUCH_APPEND)
    if epoch != state.epoch:
        return Step(state, NO_LEADER_APPENDS if epoch < state.epoch else NO_SUCH_APPEND)
    s = replace(state, prepared=state.prepared + tuple(Record(epoch, v) for v in values))
    return Step(s, s.end + len(s.prepared) - 1)


@machine.operation("schedulePreparedAppend", "RFT-26")
@states(without={"RFT-25": ONE_CALL})
@vote_stays
@epoch_rises
@log_stays
def schedule_prepared_append(state: Replica) -> Replica | Refused:
    """RFT-25: An append is refused with NotLeaderException by a replica that does not lead, or if it names a lower
    epoch than the leader's: a leader of before appends nothing. One that names a higher epoch, or no records, is an
    illegal argument. [Kafka Internals, ch. 11, 'The write path'; {CLIENT}]"""
    if state.role != "leader":
        return NO_LEADER_APPENDS
    return write(replace(state, prepared=()), state.prepared)


@machine.operation("resign")
@states(without=ONE_CALL)
@vote_stays
@epoch_rises
@log_stays
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
def refused_change(state: Replica) -> str | None:
    """RFT-29: The voters are those that the last record of the log which says so names, committed or not; where none
    does, those of the snapshot at the log's beginning, or of the configuration. Any replica may vote. [KIP-853;
    VoterSetHistory, Kafka 4.3.0]

    RFT-30: One change of the voters at a time: while the record of one is not committed, another is refused with
    REQUEST_TIMED_OUT. [{VOTERS}]

    RFT-31: A leader that does not know its high watermark, and so has committed nothing in its epoch, refuses every
    change with REQUEST_TIMED_OUT. [{VOTERS}]
    """
    if state.role != "leader":
        return NOT_LEADER
    if state.high is None:
        return TIMED_OUT
    if not state.dynamic:
        return "UNSUPPORTED_VERSION"
    return TIMED_OUT if state.is_changing else None


def _changed(state: Replica, voters: tuple[int, ...]) -> Replica:
    """The record is written at once, or when the append is scheduled that was prepared before it."""
    record = Record(state.epoch, voters=voters)
    if state.prepared:
        return replace(state, prepared=(*state.prepared, record))
    return write(state, (record,))


def _is_one_change(before: tuple[int, ...], voters: tuple[int, ...]) -> bool:
    return len({*before} ^ {*voters}) <= 1


one_change = ensure(
    lambda state, result: result.result != NONE or _is_one_change(state.voters, result.state.voters),
    "RFT-30 one voter more or less",
)


@machine.operation("addVoter", "RFT-29", "RFT-30", "RFT-31")
@states(without={"RFT-32": EXPLORED})
@one_change
@vote_stays
@epoch_rises
@log_stays
def add_voter(state: Replica, voter: NodeId, caught_up: bool) -> Step[Replica, str]:
    """RFT-32: A voter is added that is not one yet (DUPLICATE_VOTER) and has lately fetched up to the leader's end
    (REQUEST_TIMED_OUT); the record counts for the leader as soon as it is written. [{VOTERS}]"""
    if (error := refused_change(state)) is not None:
        return Step(state, error)
    if voter in state.voters:
        return Step(state, "DUPLICATE_VOTER")
    if not caught_up or voter not in state.ends:
        return Step(state, TIMED_OUT)
    return Step(_changed(state, tuple(sorted((*state.voters, voter)))), NONE)


@machine.operation("removeVoter", "RFT-29", "RFT-30", "RFT-31", "RFT-33")
@one_change
@vote_stays
@epoch_rises
@log_stays
def remove_voter(state: Replica, voter: NodeId) -> Step[Replica, str]:
    """VOTER_NOT_FOUND if there is no such voter, or no other."""
    if (error := refused_change(state)) is not None:
        return Step(state, error)
    if voter not in state.voters or len(state.voters) == 1:
        return Step(state, "VOTER_NOT_FOUND")
    return Step(_changed(state, tuple(v for v in state.voters if v != voter)), NONE)


# ---- what the listener is told


@machine.operation("poll", "RFT-35")
@states(without={"RFT-35": {}, "RFT-36": OF_ONE_REPLICA, "RFT-37": OF_ONE_REPLICA})
@vote_stays
@epoch_rises
@log_stays
@ensure(
    lambda state, result: all(
        e.kind != "commit" or (e.offset or 0) + len(e.records) <= (state.high or 0) for e in result.result
    ),
    "RFT-35 nothing that is not committed",
)
def poll(state: Replica) -> Step[Replica, tuple[Event, ...]]:
    """RFT-35: A listener is given every committed record, once, in the log's order, and no other. [{LISTENER}]

    RFT-36: A listener is told of every epoch and leader that the replica knows when it is asked: of a later epoch, or
    of its leader once there is one, and of nothing twice. That the replica itself leads it is told only when it was
    given everything up to the record with which its epoch begins, and not once it has resigned. [{LISTENER}]

    RFT-37: A listener that is new is given the latest snapshot, if there is one, as soon as anything is committed
    beyond the offset that it has; so is one that has less than the log begins with. [{LISTENER}]
    """
    s = state
    events: list[Event] = []
    if (high := s.high) is not None:
        if s.given < high and (s.given < 0 or s.given < s.start) and s.snapshot is not None:
            events.append(Event("snapshot", s.snapshot.epoch, None, s.snapshot.offset))
            s = replace(s, given=s.snapshot.offset)
        elif s.given < 0:
            s = replace(s, given=0)
        if s.given < high:
            events.append(Event("commit", None, None, s.given, s.log[s.given - s.start : high - s.start]))
            s = replace(s, given=high)
    if _is_news(s) and s.role != "resigned" and (s.role != "leader" or s.given > (s.begun or 0)):
        s = replace(s, announced=(s.epoch, s.leader))
        events.append(Event("leader", s.epoch, s.leader))
    return Step(s, tuple(events))


def _is_news(state: Replica) -> bool:
    epoch, leader = state.announced
    return state.epoch > epoch or (state.epoch == epoch and leader is None and state.leader is not None)


@machine.operation("register")
@states(without=OF_ONE_REPLICA)
@vote_stays
@epoch_rises
@log_stays
def register(state: Replica) -> Replica:
    """RFT-38: A listener that is registered in the place of another is told everything from the beginning, and the
    other nothing any more. [Kafka Internals, ch. 11; {LISTENER}]"""
    return replace(state, given=-1, announced=(0, None))


# ---- restart


@machine.operation("restart", kind="restart")
@vote_stays
@epoch_rises
def restart(state: Replica) -> Replica:
    """RFT-39: A replica that starts again has its epoch, its vote, the leader that it knew and its log. Whoever led is
    resigned, so that it writes no more in that epoch; a candidate is one still; who knows its leader follows it, if
    that is a voter; all others are unattached. The high watermark is unknown. The only voter leads at once, in a new
    epoch. [{QUORUM}]"""
    kept = Replica(
        *(state.local, state.first, state.dynamic, "unattached", state.epoch, state.leader, state.voted),
        *(state.start, state.before, state.log, state.snapshot),
        committed=state.start,
    )
    if state.leader == state.local:
        kept = replace(kept, role="resigned")
    elif state.voted == state.local and state.leader is None:
        kept = replace(kept, role="candidate", granted=frozenset({state.local}))
    elif state.leader is not None and state.leader in state.voters:
        kept = replace(kept, role="follower")
    if kept.voters != (kept.local,):
        return kept
    return lead(kept) if kept.role == "candidate" else stand(kept)
