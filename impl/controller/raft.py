"""One replica of the quorum, without input and output: messages are method calls, and time is what runs out.

The log keeps the epochs apart from what it holds, as a list of where each begins, and the voters as a history of
offsets: the end of an epoch and the latest voters are looked up, not looked for. Whose votes count is kept by voter.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

UNATTACHED, PROSPECTIVE, CANDIDATE = "unattached", "prospective", "candidate"
LEADER, FOLLOWER, RESIGNED = "leader", "follower", "resigned"
OK = "NONE"
STALE_EPOCH = "FENCED_LEADER_EPOCH"
TOO_NEW_EPOCH = "UNKNOWN_LEADER_EPOCH"
NO_LEADER = "NOT_LEADER_OR_FOLLOWER"
NOT_VALID = "INVALID_REQUEST"
TIME_OUT = "REQUEST_TIMED_OUT"


class NotLeaderError(Exception):
    """The replica does not lead, or not in that epoch any more."""


class IllegalArgumentError(Exception):
    """No caller may ask that."""


class TooManyBatchesError(Exception):
    """As many batches as may wait to be scheduled wait already."""


class UnusableSnapshotError(Exception):
    """A snapshot of what is not committed, or not in the log so."""


class Entry(NamedTuple):
    """A record without its epoch."""

    value: str | None = None
    voters: tuple[int, ...] | None = None
    joined: bool = False


class Record(NamedTuple):
    """A record as it is sent."""

    epoch: int
    value: str | None = None
    voters: tuple[int, ...] | None = None
    joined: bool = False


class Position(NamedTuple):
    """An offset, and the epoch of what is before it."""

    offset: int
    epoch: int


class Reply(NamedTuple):
    """To a request of a candidate or a leader."""

    error: str
    epoch: int
    leader: int | None
    granted: bool = False


class FetchReply(NamedTuple):
    """To a fetch."""

    error: str
    epoch: int
    leader: int | None
    high: int | None = None
    diverging: Position | None = None
    snapshot: Position | None = None
    records: tuple[Record, ...] = ()


class Notice(NamedTuple):
    """To a listener."""

    kind: str
    epoch: int | None = None
    leader: int | None = None
    offset: int | None = None
    records: tuple[Record, ...] = ()


@dataclass
class Log:
    """Records from `start` on. `epochs` has each epoch's first offset, `history` the voters from an offset on, those of
    before the log under -1."""

    history: list[tuple[int, tuple[int, ...]]]
    snapshots: list[Position]
    start: int = 0
    entries: list[Entry] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return self.start + len(self.entries)

    @property
    def last_epoch(self) -> int:
        """0 if there is nothing."""
        return self.epochs[-1][0] if self.epochs else self.snapshots[-1].epoch if self.snapshots else 0

    @property
    def voters(self) -> tuple[int, ...]:
        """The latest. [RFT-29]"""
        return self.history[-1][1]

    @property
    def voters_offset(self) -> int:
        """Of the record that names them, or -1."""
        return self.history[-1][0]

    def append(self, record: Record) -> None:
        if not self.epochs or self.epochs[-1][0] != record.epoch:
            self.epochs.append((record.epoch, self.end))
        if record.voters is not None:
            self.history.append((self.end, record.voters))
        self.entries.append(Entry(record.value, record.voters, record.joined))

    def read(self, offset: int, to: int | None = None) -> tuple[Record, ...]:
        """The records from one offset to another, or to the end."""
        to = self.end if to is None else to
        out: list[Record] = []
        for place in range(offset, to):
            at = bisect_right(self.epochs, place, key=lambda e: e[1]) - 1
            out.append(Record(self.epochs[at][0], *self.entries[place - self.start]))
        return tuple(out)

    def end_of(self, epoch: int) -> Position:
        """Where the last epoch that is not above this one ends. [RFT-15]"""
        if epoch > self.last_epoch or not self.epochs:
            return Position(self.end, self.last_epoch)
        at = bisect_right(self.epochs, epoch, key=lambda e: e[0])
        offset = self.epochs[at][1] if at < len(self.epochs) else self.end
        found = Position(offset, self.epochs[at - 1][0] if at else epoch)
        if found.epoch == epoch and self.snapshots and self.snapshots[0].offset == found.offset:
            return self.snapshots[0]
        return found

    def begins_after(self, offset: int, epoch: int) -> bool:
        """Whether a snapshot is needed for what is before. [RFT-23]"""
        if not self.snapshots:
            return False
        first = self.snapshots[0].epoch
        return offset < self.start or (offset == self.start and epoch != first) or epoch < first

    def is_whole(self, offset: int) -> bool:
        """Whether it is within no batch. [RFT-23]"""
        at = offset - self.start
        return not 0 <= at < len(self.entries) or not self.entries[at].joined

    def cut(self, diverging: Position) -> int:
        """Where the log must end that diverges there. [RFT-16]"""
        if diverging.epoch == 0:
            return min(diverging.offset, self.end)
        own = self.end_of(diverging.epoch)
        return min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset

    def truncate(self, end: int) -> None:
        del self.entries[max(0, end - self.start) :]
        while self.epochs and self.epochs[-1][1] >= end:
            self.epochs.pop()
        while self.history[-1][0] >= max(end, self.start):
            self.history.pop()

    def drop(self, at: Position) -> None:
        """What is before a snapshot. [RFT-23]"""
        del self.entries[: at.offset - self.start]
        keep = bisect_right(self.epochs, at.offset, key=lambda e: e[1])
        last, self.epochs = self.epochs[:keep], self.epochs[keep:]
        if last and self.entries:
            self.epochs.insert(0, (last[-1][0], at.offset))
        while len(self.history) > 1 and self.history[1][0] < at.offset:
            del self.history[0]
        self.start, self.snapshots = at.offset, [at]

    def replace(self, at: Position, voters: tuple[int, ...]) -> None:
        """Everything, by a snapshot. [RFT-24]"""
        self.start, self.snapshots, self.entries, self.epochs = at.offset, [at], [], []
        self.history = [(at.offset - 1, voters)]


BOOTSTRAP = Position(0, 0)
MAX_BATCHES = 10


class Replica:
    """Votes, leads, follows."""

    def __init__(self, local: int, voters: Sequence[int], dynamic: bool) -> None:
        self.local = local
        self.dynamic = dynamic
        self.log = Log([(-1, tuple(sorted({local, *voters})))], [BOOTSTRAP] if dynamic else [])
        self.epoch = 0
        self.leader: int | None = None
        self.voted: int | None = None
        self.committed = 0
        self.high: int | None = None
        self.given = -1
        self.announced: tuple[int, int | None] = (0, None)
        self.told: list[Notice] = []
        self.is_homeless = False
        """where its leader can be reached is not known"""
        self.begin(UNATTACHED)
        if self.log.voters == (local,):
            self.stand()
        self.register()

    # ---- roles

    def begin(self, role: str) -> None:
        """A role, with nothing of the one before; who does not follow still does not know where its leader is."""
        self.is_homeless = self.is_homeless and role in (UNATTACHED, PROSPECTIVE)
        self.role = role
        self.answers: dict[int, bool] = {}
        self.has_fetched = False
        self.fetching: Position | None = None
        self.begun: int | None = None
        self.ends: dict[int, int] = {}
        self.ends_seen: dict[int, int] = {}
        self.caught_up: set[int] = set()
        self.heard: set[int] = set()
        self.prepared: list[Record] = []

    def enter(self, epoch: int, leader: int | None) -> None:
        """A later epoch: the vote is of the epoch before. [RFT-1, RFT-6, RFT-11]"""
        self.epoch, self.leader, self.voted, self.is_homeless = epoch, leader, None, False
        self.begin(UNATTACHED if leader is None else FOLLOWER)
        self.announce()

    def hear(self, epoch: int, leader: int | None) -> None:
        """Of an epoch, and who leads it. [RFT-6, RFT-11]"""
        if epoch > self.epoch:
            self.enter(epoch, leader)
        elif leader is not None and (self.leader is None or self.is_homeless):
            self.leader = leader
            self.begin(FOLLOWER)
            self.announce()

    @property
    def majority(self) -> int:
        """How many are enough."""
        return len(self.log.voters) // 2 + 1

    def stand(self) -> None:
        """Ask for pre-votes. [RFT-7]"""
        self.begin(PROSPECTIVE)
        self.answers[self.local] = True
        self.count()

    def count(self) -> None:
        """With a majority go on to the next epoch, or lead. [RFT-7, RFT-9]"""
        while self.role in (PROSPECTIVE, CANDIDATE) and sum(self.answers.values()) >= self.majority:
            if self.role == CANDIDATE:
                self.lead()
            else:
                self.enter(self.epoch + 1, None)
                self.role, self.voted, self.answers = CANDIDATE, self.local, {self.local: True}

    def lead(self) -> None:
        """Write the first record. [RFT-9]"""
        self.begin(LEADER)
        self.leader, self.voted, self.begun, self.high = self.local, None, self.log.end, None
        self.log.append(Record(self.epoch))
        if self.dynamic and self.log.voters_offset < 0:
            self.log.append(Record(self.epoch, joined=True))
            self.log.append(Record(self.epoch, voters=self.log.voters, joined=True))
        self.raise_high()

    def give_up(self) -> None:
        """Back to the leader, if one is known, and where it is. [RFT-8]"""
        self.begin(UNATTACHED if self.leader is None or self.is_homeless else FOLLOWER)

    def retire(self) -> None:
        """Lead no more. [RFT-10]"""
        self.begin(RESIGNED)
        self.high = None

    # ---- timers

    def election_timeout(self) -> None:
        """[RFT-7, RFT-8, RFT-10]"""
        if self.role == RESIGNED:
            self.enter(self.epoch + 1, None)
        elif self.role == PROSPECTIVE:
            self.give_up()
        if self.role != FOLLOWER and self.local in self.log.voters:
            self.stand()

    def fetch_timeout(self) -> None:
        """[RFT-7]"""
        if self.local in self.log.voters:
            self.stand()

    def check_quorum_timeout(self) -> None:
        """[RFT-28]"""
        self.retire()

    # ---- requests and answers about leadership

    def grants(self, candidate: int, up_to_date: bool, pre_vote: bool) -> bool:
        """[RFT-3, RFT-4, RFT-5]"""
        if pre_vote:
            has_leader = self.role == LEADER or (self.role == FOLLOWER and self.has_fetched)
            return up_to_date and not has_leader
        if self.role not in (UNATTACHED, PROSPECTIVE):
            return False
        if self.voted is not None:
            return self.voted == candidate
        return up_to_date and self.leader is None

    def vote(self, epoch: int, candidate: int, last_epoch: int, last_offset: int, pre_vote: bool) -> Reply:
        """[RFT-1, RFT-3, RFT-4, RFT-6, RFT-40]"""
        if last_epoch > epoch or (last_epoch == epoch and not pre_vote):
            return Reply(NOT_VALID, self.epoch, self.leader)
        if epoch < self.epoch:
            return Reply(STALE_EPOCH, self.epoch, self.leader)
        self.hear(epoch, None)
        granted = self.grants(candidate, (last_epoch, last_offset) >= (self.log.last_epoch, self.log.end), pre_vote)
        if granted and not pre_vote and self.voted is None:
            self.voted = candidate
            if self.role == PROSPECTIVE:
                self.answers = {self.local: True}
        return Reply(OK, self.epoch, self.leader, granted)

    def is_good(self, error: str, epoch: int, leader: int | None) -> bool:
        """Take from an answer what every one has; whether the rest counts. [RFT-6, RFT-11]"""
        if epoch < self.epoch or error == TOO_NEW_EPOCH:
            return False
        is_of_this_epoch = epoch == self.epoch
        if not is_of_this_epoch or error != OK or self.leader is None:
            self.hear(epoch, leader)
        return is_of_this_epoch and error == OK

    def vote_response(self, source: int, error: str, epoch: int, leader: int | None, granted: bool) -> None:
        """[RFT-7, RFT-8, RFT-9]"""
        if not self.is_good(error, epoch, leader) or self.role not in (PROSPECTIVE, CANDIDATE):
            return
        self.answers[source] = granted
        against = sum(not a for a in self.answers.values())
        if self.role == PROSPECTIVE and len(self.log.voters) - against < self.majority:
            self.give_up()
        else:
            self.count()

    def begin_quorum_epoch(self, epoch: int, leader: int) -> Reply:
        """[RFT-6, RFT-11]"""
        if epoch < self.epoch:
            return Reply(STALE_EPOCH, self.epoch, self.leader)
        self.hear(epoch, leader)
        return Reply(OK, self.epoch, self.leader)

    def end_quorum_epoch(self, epoch: int, leader: int) -> Reply:
        """[RFT-6, RFT-11]"""
        return self.begin_quorum_epoch(epoch, leader)

    def election_backoff_ms(self, successors: Sequence[int], max_ms: int) -> int:
        """[RFT-34]"""
        if not successors or successors[0] == self.local:
            return 0
        if self.local not in successors:
            return max_ms
        return min(max_ms, (max_ms >> (len(successors) - 1)) << (successors.index(self.local) - 1))

    # ---- fetches

    def raise_high(self) -> None:
        """[RFT-18, RFT-22, RFT-33]"""
        assert self.begun is not None
        known = self.ends | {self.local: self.log.end}
        reached = sorted(known.get(v, -1) for v in self.log.voters)
        high = reached[len(reached) - self.majority]
        if high <= max(self.begun, self.high or 0):
            return
        self.high = self.committed = high
        self.give()
        self.announce()
        if self.local not in self.log.voters and self.log.voters_offset < high:
            self.retire()

    def refuses(self, epoch: int) -> str | None:
        """[RFT-14]"""
        if epoch < self.epoch:
            return STALE_EPOCH
        if epoch > self.epoch:
            return TOO_NEW_EPOCH
        return None if self.role == LEADER else NO_LEADER

    def fetch(self, replica: int, epoch: int, offset: int, last_epoch: int) -> FetchReply:
        """[RFT-14, RFT-15, RFT-17, RFT-23, RFT-28]"""
        error = NOT_VALID if last_epoch > epoch else self.refuses(epoch)
        if error is not None:
            return FetchReply(error, self.epoch, self.leader)
        answer = FetchReply(OK, self.epoch, self.leader, self.high)
        latest = self.log.snapshots[-1] if self.log.snapshots else BOOTSTRAP
        if (latest != BOOTSTRAP) if offset == 0 else self.log.begins_after(offset, last_epoch):
            return answer._replace(snapshot=latest)
        if offset > 0:
            there = self.log.end_of(last_epoch)
            if there.epoch != last_epoch or there.offset < offset:
                return answer._replace(diverging=there)
        if offset >= min(self.log.end, self.ends_seen.get(replica) or self.log.end):
            self.caught_up.add(replica)
        self.ends[replica], self.ends_seen[replica] = offset, self.log.end
        if replica in self.log.voters:
            self.heard.add(replica)
        if len(self.heard) >= self.majority - (self.local in self.log.voters):
            self.heard.clear()
        if replica in self.log.voters:
            self.raise_high()
        high = self.high if self.role == LEADER else self.committed
        return answer._replace(high=high, records=self.log.read(offset))

    def fetch_response(self, answer: FetchReply) -> None:
        """[RFT-6, RFT-11, RFT-16, RFT-17, RFT-22]"""
        if not self.is_good(answer.error, answer.epoch, answer.leader):
            return
        self.hear(answer.epoch, answer.leader)
        self.has_fetched = True
        if answer.diverging is not None:
            self.log.truncate(self.log.cut(answer.diverging))
        elif answer.snapshot is not None:
            self.fetching = answer.snapshot
        else:
            for record in answer.records:
                self.log.append(record)
            if answer.high is not None:
                self.high = self.committed = min(self.log.end, answer.high)
                self.give()

    def fetch_snapshot_response(self, voters: Sequence[int]) -> None:
        """[RFT-24]"""
        at, self.fetching = self.fetching, None
        assert at is not None
        self.has_fetched = True
        self.log.replace(at, tuple(sorted({*voters})) if self.dynamic else self.log.voters)
        self.high = self.committed = at.offset
        self.give()

    def create_snapshot(self, offset: int, epoch: int) -> bool:
        """Raises UnusableSnapshotError. [RFT-23]"""
        if offset < self.log.start:
            return False
        there = self.log.end_of(epoch)
        if offset > self.committed or self.log.begins_after(offset, epoch) or not self.log.is_whole(offset):
            raise UnusableSnapshotError
        if there.epoch != epoch or there.offset < offset:
            raise UnusableSnapshotError
        new = Position(offset, epoch)
        if new in self.log.snapshots:
            return False
        insort(self.log.snapshots, new, key=lambda s: (s.epoch, s.offset))
        return True

    def clean(self) -> None:
        """[RFT-23]"""
        latest = self.log.snapshots[-1]
        if self.log.start < latest.offset <= self.committed:
            self.log.drop(latest)

    # ---- what the controller asks

    def prepare_append(self, epoch: int, values: Sequence[str]) -> int:
        """Raises NotLeaderError, IllegalArgumentError, TooManyBatchesError. [RFT-25, RFT-26]"""
        if self.role != LEADER:
            raise NotLeaderError
        if not values:
            raise IllegalArgumentError
        if epoch < self.epoch:
            raise NotLeaderError
        if epoch > self.epoch:
            raise IllegalArgumentError
        if sum(not record.joined for record in self.prepared) >= MAX_BATCHES:
            raise TooManyBatchesError
        self.prepared += [Record(epoch, value, joined=i > 0) for i, value in enumerate(values)]
        return self.log.end + len(self.prepared) - 1

    def schedule_prepared_append(self) -> None:
        """Raises NotLeaderError. [RFT-25, RFT-26]"""
        if self.role != LEADER:
            raise NotLeaderError
        prepared, self.prepared = self.prepared, []
        for record in prepared:
            self.log.append(record)
        self.raise_high()

    def resign(self, epoch: int) -> None:
        """Raises IllegalArgumentError. [RFT-27]"""
        if not 0 <= epoch <= self.epoch or (epoch == self.epoch and self.leader != self.local):
            raise IllegalArgumentError
        if epoch == self.epoch and self.role == LEADER:
            self.retire()

    # ---- changes of the voters

    def refuses_change(self) -> str | None:
        """[RFT-29, RFT-30, RFT-31]"""
        if self.role != LEADER:
            return NO_LEADER
        if self.high is None:
            return TIME_OUT
        if not self.dynamic:
            return "UNSUPPORTED_VERSION"
        is_changing = self.log.voters_offset >= self.high or any(r.voters is not None for r in self.prepared)
        return TIME_OUT if is_changing else None

    def change(self, voters: Sequence[int]) -> str:
        """Behind what is prepared. [RFT-26, RFT-30]"""
        record = Record(self.epoch, voters=tuple(sorted(voters)))
        if self.prepared:
            self.prepared.append(record)
        else:
            self.log.append(record)
            self.raise_high()
        return OK

    def add_voter(self, voter: int) -> str:
        """[RFT-32]"""
        if (error := self.refuses_change()) is not None:
            return error
        if voter in self.log.voters:
            return "DUPLICATE_VOTER"
        return self.change([*self.log.voters, voter]) if voter in self.caught_up else TIME_OUT

    def remove_voter(self, voter: int) -> str:
        """[RFT-33]"""
        if (error := self.refuses_change()) is not None:
            return error
        rest = [v for v in self.log.voters if v != voter]
        return self.change(rest) if rest and len(rest) < len(self.log.voters) else "VOTER_NOT_FOUND"

    # ---- the listener

    def tell(self, notice: Notice) -> None:
        """Records that follow the last ones are told with them."""
        if self.told and notice.kind == self.told[-1].kind == "commit":
            last = self.told.pop()
            notice = last._replace(records=last.records + notice.records)
        self.told.append(notice)

    def give(self) -> None:
        """A snapshot, if the listener cannot go on from what it has, and what is committed. [RFT-35, RFT-37]"""
        if self.high is None:
            return
        is_behind = self.given < 0 or self.given < self.log.start
        if is_behind and self.given < self.high and self.log.snapshots:
            latest = self.log.snapshots[-1]
            kind = "bootstrap" if latest == BOOTSTRAP else "snapshot"
            self.tell(Notice(kind, latest.epoch, None, latest.offset))
            self.given = latest.offset
        self.given = max(self.given, 0)
        if self.given < self.high:
            self.tell(Notice("commit", None, None, self.given, self.log.read(self.given, self.high)))
            self.given = self.high

    def announce(self) -> None:
        """Who leads, if that is news. [RFT-36]"""
        epoch, leader = self.announced
        is_news = self.epoch > epoch or (self.epoch == epoch and leader is None and self.leader is not None)
        if is_news and self.role != RESIGNED and (self.begun is None or self.given > self.begun):
            self.announced = (self.epoch, self.leader)
            self.tell(Notice("leader", self.epoch, self.leader))

    def register(self) -> None:
        """[RFT-37, RFT-38]"""
        self.given, self.announced, self.told = -1, (0, None), []
        self.give()
        self.announce()

    def take_told(self) -> list[Notice]:
        """What was told since the last call. [RFT-35]"""
        told, self.told = self.told, []
        return told

    def restart(self) -> None:
        """[RFT-1, RFT-39]"""
        self.high, self.committed = None, self.log.start
        offset, voters = self.log.history[0]
        if self.log.snapshots:
            self.log.history[0] = (max(offset, self.log.snapshots[-1].offset - 1), voters)
        if self.leader == self.local:
            self.begin(RESIGNED)
        elif self.voted == self.local and self.local in self.log.voters:
            self.leader = None
            self.begin(CANDIDATE)
        else:
            self.is_homeless = self.leader is not None and self.leader not in self.log.voters
            self.begin(UNATTACHED if self.leader is None or self.is_homeless else FOLLOWER)
        if self.role == CANDIDATE:
            self.answers[self.local] = True
        if self.log.voters == (self.local,):
            if self.role == CANDIDATE:
                self.count()
            else:
                self.stand()
        self.register()
