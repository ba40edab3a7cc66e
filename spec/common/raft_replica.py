"""A replica of the quorum of controllers, as a value: its role, its log, what is seen of it, what its listener is told.

Nothing here is a rule of its own; the rules are RFT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, NamedTuple

from kafkaspec.contract.codec import partial, replace
from kafkaspec.contract.governs import governs
from kafkaspec.contract.numbers import NodeId, Within

Epoch = Annotated[int, Within(0, 2**30)]
"""Of 32 bits, with room for those that follow."""
Offset = Annotated[int, Within(0, 2**62)]
Role = Literal["unattached", "prospective", "candidate", "leader", "follower", "resigned"]


class Record(NamedTuple):
    """Of data a value; of a change of the voters, who they are from there on; of neither: another control record."""

    epoch: Epoch
    value: str | None = None
    voters: tuple[NodeId, ...] | None = None
    joined: bool = False
    """it is of the batch of the record before"""


def is_of_one_batch(a: Record, b: Record) -> bool:
    """Whether they may be: a batch is of one epoch, and of data or of control records."""
    return a.epoch == b.epoch and (a.value is None) == (b.value is None)


LastRecord = tuple[int, int]
"""A log's last epoch, and its end."""


class SnapshotId(NamedTuple):
    """The offset behind its last record, and that record's epoch."""

    offset: Offset
    epoch: Epoch


BOOTSTRAP: Final = SnapshotId(0, 0)
"""What a replica whose voters can change is formatted with: no records, and who the voters are."""


class VoteAnswer(NamedTuple):
    """Of Vote, BeginQuorumEpoch and EndQuorumEpoch; `granted` of the first alone."""

    error: str
    epoch: Epoch
    leader: NodeId | None
    granted: bool = False


FetchError = Literal["NONE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "NOT_LEADER_OR_FOLLOWER", "INVALID_REQUEST"]


class FetchAnswer(NamedTuple):
    """`high` is the leader's high watermark; at most one of the last three says something."""

    error: FetchError
    epoch: Epoch
    leader: NodeId | None
    high: Offset | None = None
    diverging: SnapshotId | None = None
    """an epoch, and where it ends in the leader's log"""
    snapshot: SnapshotId | None = None
    records: tuple[Record, ...] = ()


class Event(NamedTuple):
    """What a listener is told: that `leader` leads `epoch`, or nobody known; to load a snapshot; or committed `records`
    from `offset` on."""

    kind: Literal["leader", "bootstrap", "snapshot", "commit"]
    epoch: int | None = None
    leader: int | None = None
    offset: int | None = None
    records: tuple[Record, ...] = ()


@dataclass(frozen=True)
class Replica:
    """The state. The log begins at `start`."""

    local: int
    first: tuple[int, ...]
    """the voters where no record of the log says otherwise"""
    dynamic: bool = True
    """kraft.version is 1: voters can change"""
    role: Role = "unattached"
    epoch: int = 0
    leader: int | None = None
    voted: int | None = None
    start: int = 0
    log: tuple[Record, ...] = ()
    snapshots: tuple[SnapshotId, ...] = ()
    """by epoch and offset; if the log begins later than at 0, the first one is of what was before"""
    first_offset: int = -1
    """where `first` was said; -1: in the configuration, or in what the replica was formatted with"""
    fetching: SnapshotId | None = None
    high: int | None = None
    granted: frozenset[int] = frozenset()
    rejected: frozenset[int] = frozenset()
    fetched: bool = False
    """a follower has fetched from this leader"""
    homeless: bool = False
    """where the leader can be reached is not known"""
    begun: int | None = None
    """the end of a leader's log when it was elected"""
    ends: Mapping[int, int] = field(default_factory=dict)
    """how far the logs of others go, as the leader knows"""
    seen: Mapping[int, int] = field(default_factory=dict)
    """the end of the leader's log when each fetched last"""
    caught: frozenset[int] = frozenset()
    """who has once fetched all that there was at its fetch before, or at that one"""
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
    told: tuple[Event, ...] = ()
    """what it was told, and has not been asked for"""

    @property
    def end(self) -> int:
        """The offset behind the last record."""
        return self.start + len(self.log)

    @property
    def earliest(self) -> SnapshotId | None:
        """The first snapshot."""
        return self.snapshots[0] if self.snapshots else None

    @property
    def latest(self) -> SnapshotId | None:
        """The last snapshot."""
        return self.snapshots[-1] if self.snapshots else None

    @property
    def last_epoch(self) -> int:
        """Of the last record; 0 if there is none."""
        return self.log[-1].epoch if self.log else self.snapshots[-1].epoch if self.snapshots else 0

    @property
    def voters(self) -> tuple[int, ...]:
        """RFT-29."""
        return next((r.voters for r in reversed(self.log) if r.voters is not None), self.first)

    @property
    def voters_offset(self) -> int:
        """Where the voters are written; -1: nowhere."""
        offsets = (self.start + i for i, r in reversed([*enumerate(self.log)]) if r.voters is not None)
        return next(offsets, self.first_offset)

    @property
    def is_changing(self) -> bool:
        """A change of the voters is not committed, or not even in the log."""
        unwritten = any(r.voters is not None for r in self.prepared)
        return unwritten or self.voters_offset >= (self.high or 0)

    @property
    def majority(self) -> int:
        """How many voters are more than half."""
        return len(self.voters) // 2 + 1

    @property
    def is_voter(self) -> bool:
        """Whether it may be elected."""
        return self.local in self.voters

    def may_name(self, offset: int, epoch: int) -> bool:
        """Whether a snapshot up to there has the epoch of its last record, or one that the log does not have there."""
        at = offset - self.start - 1
        is_later = 0 <= at < len(self.log) and self.log[at].epoch < epoch
        return not is_later or self.end_of_epoch(epoch).epoch != epoch

    def is_between_batches(self, offset: int) -> bool:
        """Whether no batch of the log begins before an offset of it and ends behind it."""
        at = offset - self.start
        return not 0 <= at < len(self.log) or not self.log[at].joined

    def end_of_epoch(self, epoch: int) -> SnapshotId:
        """The last epoch of the log that is not above one, and where it ends. Of an epoch below all that there are:
        that epoch, and where the log begins; above all: the end of the log. Where the first snapshot ends: its id."""
        if epoch > self.last_epoch or not self.log:
            return SnapshotId(self.end, self.last_epoch)
        below = [i for i, r in enumerate(self.log) if r.epoch <= epoch]
        found = SnapshotId(self.start, epoch)
        if below:
            found = SnapshotId(self.start + below[-1] + 1, self.log[below[-1]].epoch)
        at = self.earliest
        return at if at is not None and (at.offset, epoch) == found else found

    def is_before(self, offset: int, epoch: int) -> bool:
        """Whether a log that ends there with a record of that epoch goes less far than the first snapshot."""
        at = self.earliest
        return at is not None and (
            offset < self.start or (offset == self.start and epoch != at.epoch) or epoch < at.epoch
        )

    def truncation(self, diverging: SnapshotId) -> int:
        """Where the log ends that diverges there: see RFT-16."""
        if diverging.epoch == 0:
            return min(diverging.offset, self.end)
        own = self.end_of_epoch(diverging.epoch)
        return min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset

    @property
    def kept(self) -> int:
        """Up to where what is known to be committed goes, as far as it is known after a restart, too."""
        return max(self.committed, self.high or 0, self.latest.offset if self.latest else 0)

    # ---- what no leader answers otherwise

    def agrees(self, epoch: int, leader: int | None) -> bool:
        """Nobody says that another leads the replica's epoch, or that the replica leads where it does not."""
        if leader == self.local:
            return self.role == "leader" and epoch == self.epoch
        return epoch != self.epoch or leader is None or self.leader is None or leader == self.leader

    def lacks(self, snapshot: SnapshotId, epoch: int) -> bool:
        """That a leader of that epoch sends a snapshot of more than there is here."""
        is_further = (snapshot.epoch, snapshot.offset) > (self.last_epoch, self.end)
        return is_further and snapshot.epoch <= epoch and snapshot.offset >= max(self.committed, self.start, 1)

    def keeps_what_is_committed(self, diverging: SnapshotId | None) -> bool:
        """That a leader asks for no truncation of what is committed, nor within a batch."""
        if diverging is None:
            return True
        to = self.truncation(diverging)
        return to >= self.kept and diverging.offset >= (self.high or 0) and self.is_between_batches(to)

    def is_raised_by(self, answer: FetchAnswer) -> bool:
        """That a high watermark does not fall, and is at a batch's end."""
        if answer.high is None or answer.diverging is not None or answer.snapshot is not None:
            return True
        s = replace(self, log=self.log + answer.records)
        high = min(answer.high, s.end)
        return high >= max(self.high or 0, self.start, self.kept) and s.is_between_batches(high)

    def may_be_followed_by(self, answer: FetchAnswer) -> bool:
        """That epochs do not fall along a log, nor differ in a batch; and voters change only where they can."""
        epochs = [self.last_epoch, *(r.epoch for r in answer.records), answer.epoch]
        return epochs == sorted(epochs) and all(
            (not r.joined or (i > 0 and is_of_one_batch(answer.records[i - 1], r)))
            and (
                r.voters is None or (self.dynamic and r.value is None and r.voters == tuple(sorted({*r.voters})) != ())
            )
            for i, r in enumerate(answer.records)
        )


@partial
@dataclass(frozen=True)
class Observation:
    """What is seen of a replica."""

    role: Annotated[Role, governs("RFT-7", "RFT-8", "RFT-9", "RFT-10", "RFT-11", "RFT-27", "RFT-28", "RFT-39")]
    epoch: Annotated[int, governs("RFT-6", "RFT-7", "RFT-10")]
    leader: Annotated[int | None, governs("RFT-11", "RFT-2")]
    voted: Annotated[int | None, governs("RFT-1", "RFT-4")]
    granted: Annotated[frozenset[int], governs("RFT-7", "RFT-9")]
    rejected: Annotated[frozenset[int], governs("RFT-7", "RFT-8")]
    has_fetched: Annotated[bool, governs("RFT-5", "RFT-3")]
    log_start_offset: Annotated[int, governs("RFT-23", "RFT-24")]
    log_end_offset: Annotated[int, governs("RFT-17", "RFT-16", "RFT-26")]
    last_fetched_epoch: Annotated[int, governs("RFT-17", "RFT-9")]
    records: Annotated[tuple[Record, ...], governs("RFT-17", "RFT-16", "RFT-26", "RFT-9")]
    snapshots: Annotated[tuple[SnapshotId, ...], governs("RFT-23", "RFT-24")]
    fetching_snapshot: Annotated[SnapshotId | None, governs("RFT-24", "RFT-23")]
    high_watermark: Annotated[int | None, governs("RFT-18", "RFT-17", "RFT-24")]
    log_high_watermark: Annotated[int, governs("RFT-18", "RFT-22")]
    voters: Annotated[tuple[int, ...], governs("RFT-29", "RFT-30", "RFT-32", "RFT-33")]
    epoch_start_offset: Annotated[int | None, governs("RFT-9", "RFT-18")]
    ends: Annotated[Mapping[str, int], governs("RFT-18")]
    caught_up: Annotated[frozenset[int], governs("RFT-32")]
    heard: Annotated[frozenset[int], governs("RFT-28")]
    prepared: Annotated[int, governs("RFT-26")]
    """how many records"""
    told: Annotated[tuple[Event, ...], governs("RFT-35", "RFT-36", "RFT-37", "RFT-38")]


def observe(s: Replica) -> Observation:
    """What is compared after each call."""
    return Observation(
        s.role,
        s.epoch,
        s.leader,
        s.voted,
        s.granted,
        s.rejected,
        s.fetched,
        s.start,
        s.end,
        s.last_epoch,
        s.log,
        s.snapshots,
        s.fetching,
        s.high,
        s.committed,
        s.voters,
        s.begun,
        {str(n): s.ends[n] for n in sorted(s.ends)},
        s.caught,
        s.heard,
        len(s.prepared),
        s.told,
    )


# ---- what the listener is told


def tell(state: Replica, event: Event) -> Replica:
    """Records that follow those that were told last are one event with them: in how many calls a listener is given them
    says nothing."""
    last = state.told[-1] if state.told else None
    if last is not None and event.kind == last.kind == "commit":
        event = last._replace(records=last.records + event.records)
        return replace(state, told=(*state.told[:-1], event))
    return replace(state, told=(*state.told, event))


def tell_committed(state: Replica) -> Replica:
    """What is committed and was not given: a snapshot, if the listener is new or has less than the log begins with, and
    records."""
    high = state.high
    if high is None:
        return state
    s = state
    if s.given < high and (s.given < 0 or s.given < s.start) and (at := s.latest) is not None:
        kind: Literal["bootstrap", "snapshot"] = "bootstrap" if at == BOOTSTRAP else "snapshot"
        s = replace(tell(s, Event(kind, at.epoch, None, at.offset)), given=at.offset)
    elif s.given < 0:
        s = replace(s, given=0)
    if s.given >= high:
        return s
    committed = Event("commit", None, None, s.given, s.log[s.given - s.start : high - s.start])
    return replace(tell(s, committed), given=high)


def tell_leader(state: Replica) -> Replica:
    """A later epoch, or the leader of the one that was told without. A leader's own not before it was given the record
    with which its epoch begins; and that of who has resigned not at all."""
    epoch, leader = state.announced
    is_news = state.epoch > epoch or (state.epoch == epoch and leader is None and state.leader is not None)
    if not is_news or state.role == "resigned" or (state.begun is not None and state.given <= state.begun):
        return state
    told = tell(state, Event("leader", state.epoch, state.leader))
    return replace(told, announced=(state.epoch, state.leader))


# ---- roles


def become(state: Replica, role: Role, epoch: int, leader: int | None) -> Replica:
    """The vote lasts as long as the epoch; what belongs to a role goes with it. The listener is told at once."""
    s = replace(
        state,
        role=role,
        epoch=epoch,
        leader=leader,
        voted=None if epoch != state.epoch or leader == state.local else state.voted,
        granted=frozenset(),
        rejected=frozenset(),
        fetched=False,
        homeless=state.homeless and epoch == state.epoch and role in ("unattached", "prospective"),
        fetching=None,
        begun=None,
        ends={},
        seen={},
        caught=frozenset(),
        heard=frozenset(),
        prepared=(),
    )
    return tell_leader(s) if role in ("unattached", "follower", "candidate") else s


def hear(state: Replica, epoch: int, leader: int | None) -> Replica:
    """Of an epoch, and perhaps who leads it."""
    if epoch > state.epoch:
        return become(state, "unattached" if leader is None else "follower", epoch, leader)
    if leader is not None and (state.leader is None or state.homeless):
        return become(state, "follower", epoch, leader)
    return state
