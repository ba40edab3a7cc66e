"""A controller of a quorum: Raft with its timers and requests, the controller that it tells of commits and leaders, and
a disk below both.

Raft is `impl.controller.raft`, which has no input and output; here are the messages that it stands for, and the time.
The controller has its own queue: what Raft says of an event is run one ms later, so that a controller may not have
heard yet that it was deposed, or that something is committed. What a step changes is on the disk before anything is
sent.

Source: KafkaRaftClient, QuorumState, FileQuorumStateStore, QuorumController, SnapshotGenerator, Kafka 4.3.0; KIP-595,
KIP-630, KIP-853, KIP-996.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import orjson

from kafkaspec.impl.common.disk import Disk
from kafkaspec.impl.controller import quorum, raft
from kafkaspec.impl.controller.quorum_parts import batches
from kafkaspec.impl.controller.quorum_parts.batches import NO_DIRECTORY, StoredBatch
from kafkaspec.impl.controller.quorum_parts.controller import SoundController
from kafkaspec.impl.controller.quorum_parts.log import DIRECTORY, DurableLog
from kafkaspec.impl.controller.quorum_parts.messages import (
    SNAPSHOT_NOT_FOUND,
    BeginQuorumEpochRequest,
    ChangeVotersRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumEpochResponse,
    ReadRequest,
    ReadResponse,
    VoteRequest,
    VoteResponse,
    WriteRequest,
    WriteResponse,
)
from kafkaspec.impl.controller.raft import CANDIDATE, FOLLOWER, LEADER, OK, PROSPECTIVE, UNATTACHED, Position
from kafkaspec.impl.management.checkpoints import replace_file
from kafkaspec.impl.storage.log import LogConfig
from kafkaspec.simulate.scenario import Ask, Boot, Clock, Effect, Message, Send, SetTimer, Timer
from kafkaspec.spec.common.metadata_log import NO_LOG_OFFSET, Batch, Fault, Kind, Outcome, Record

FETCH_MS, RPC_MS, BACKOFF_MS, BEGIN_MS, CLEAN_MS = 12, 60, 25, 60, 250
ELECTION_MS, ELECTION_JITTER_MS, FETCH_TIMEOUT_MS, CHECK_MS = 90, 90, 150, 225
MOST_BYTES = 250
"""of a fetch"""
CHUNK_BYTES = 300
"""of a part of a snapshot"""
FIRST_RECORDS = 3
"""of the first leader's first batch"""
SNAPSHOT_EVERY = 12
"""offsets"""
MOST_REQUESTS = 1_000_000
"""of a life: the next one goes on above them, for an answer to an earlier one comes by a connection that is gone"""
STATE = f"{DIRECTORY}/quorum-state"
CHECKPOINT = ".checkpoint"
NOBODY = -1


class Config(NamedTuple):
    """The quorum: the number of each controller, who votes at first, and what a new log begins with."""

    numbers: Mapping[str, int]
    voters: tuple[int, ...]
    bootstrap: tuple[Record, ...]
    max_records_per_batch: int
    log: LogConfig
    max_idle_ms: int | None = None
    """how often the active controller writes a no-op record; if it does not, no time is given to its other tasks,
    which find nothing to do"""


class QuorumState(NamedTuple):
    """What outlives a crash beside the log."""

    epoch: int = 0
    leader: int | None = None
    voted: int | None = None

    def encoded(self) -> bytes:
        """As Kafka's file has it."""
        leader, voted = (NOBODY if n is None else n for n in (self.leader, self.voted))
        ids = {"leaderId": leader, "leaderEpoch": self.epoch, "votedId": voted, "votedDirectoryId": NO_DIRECTORY}
        return orjson.dumps({**ids, "data_version": 1})


def decoded(data: bytes) -> QuorumState:
    """The state that a file has."""
    found = orjson.loads(data)
    leader, voted = (None if found[n] == NOBODY else found[n] for n in ("leaderId", "votedId"))
    return QuorumState(found["leaderEpoch"], leader, voted)


class Member(raft.Replica):
    """A replica that goes on where an earlier life ended."""

    log: DurableLog

    def resume(self, log: DurableLog, state: QuorumState) -> None:
        self.log = log
        self.epoch, self.leader, self.voted = state
        self.restart()

    def lead(self) -> None:
        """Who leads first writes the voters behind the leader change, in one batch (RFT-9)."""
        self.log.leader = self.local
        if self.log.voters_offset < 0:
            self.log.expect(FIRST_RECORDS)
        super().lead()

    def hears_from(self, voter: int) -> None:
        """A voter fetches a snapshot: it is there (RFT-28)."""
        if voter in self.log.voters:
            self.heard.add(voter)
        if len(self.heard) >= self.majority - (self.local in self.log.voters):
            self.heard.clear()


class RaftClient:
    """What the controller is given of Raft."""

    def __init__(self, replica: raft.Replica, log: DurableLog) -> None:
        self.replica, self.log = replica, log
        self.count = 0

    def prepare_append(self, epoch: int, records: Sequence[Record]) -> int:
        """Raises quorum.NotLeaderError, ValueError."""
        self.count = len(records)
        base = self.log.end + len(self.replica.prepared)
        try:
            return self.replica.prepare_append(epoch, [*map(batches.text_of, records, count(base))])
        except raft.NotLeaderError as e:
            raise quorum.NotLeaderError from e
        except raft.IllegalArgumentError as e:
            raise ValueError("no records, or of a later epoch") from e

    def schedule_prepared_append(self) -> None:
        self.log.expect(self.count)
        self.replica.schedule_prepared_append()

    def log_end_offset(self) -> int:
        return self.log.end

    def resign(self, epoch: int) -> None:
        self.replica.resign(epoch)


class ControllerNode:
    """One controller, from its start to its end."""

    replica_class: type[Member] = Member
    log_class: type[DurableLog] = DurableLog
    controller_class: type[SoundController] = SoundController

    def __init__(self, name: str, disk: Disk, clock: Clock, config: Config) -> None:
        """Loads what the disk has."""
        self.name, self.disk, self.clock, self.config = name, disk, clock, config
        self.local = config.numbers[name]
        self.names = {n: name for name, n in config.numbers.items()}
        self.others = [n for n in sorted(self.names) if n != self.local]
        self.saved = decoded(disk.read(STATE)) if disk.exists(STATE) else QuorumState()
        self.snapshots = self.stored_snapshots()
        latest = self.snapshots[-1] if self.snapshots else None
        self.log = self.log_class(config.voters, disk, config.log, clock)
        self.log.load(latest, self.loaded(latest).voters if latest is not None else ())
        self.replica = self.replica_class(self.local, config.voters, dynamic=True)
        self.replica.resume(self.log, self.saved)
        self.raft = RaftClient(self.replica, self.log)
        idle_ms = config.max_idle_ms
        more = config.max_records_per_batch, config.bootstrap, self.committed, self.clock_ns
        idle_ns = None if idle_ms is None else idle_ms * quorum.NS_IN_MS
        self.controller = self.controller_class(self.raft, *more, idle_ns)
        self.key: tuple[str, int, int | None] | None = None
        self.correlation = self.rounds = self.life = 0
        self.in_flight = -1
        """the correlation id of the fetch that counts"""
        self.asked: dict[int, int] = {}
        """of each voter that has not answered, the correlation id"""
        self.fetched_ms: dict[int, int] = {}
        self.since_ms = self.wait_ms = 0
        """since when the role waits, and how long"""
        self.part: tuple[Position, bytes] | None = None
        self.next_target = self.local
        self.is_lost = False
        """a follower's leader does not answer"""
        self.is_awake = False
        """the queue is about to be run"""
        self.next_task_ms: int | None = None
        """when it is woken for a periodic task"""
        self.effects: list[Effect] = []
        self.is_whole = False
        """no step was left in its middle"""
        self.shown: tuple[str, int, int | None] = (UNATTACHED, 0, None)
        """role, epoch and high watermark, once they are on the disk"""
        self.takers: dict[type, Callable[[str, Any], None]] = {
            VoteRequest: self.take_vote,
            VoteResponse: self.take_vote_response,
            BeginQuorumEpochRequest: self.take_begin,
            EndQuorumEpochRequest: self.take_end,
            QuorumEpochResponse: self.take_epoch,
            FetchRequest: self.take_fetch,
            FetchResponse: self.take_records,
            FetchSnapshotRequest: self.take_fetch_snapshot,
            FetchSnapshotResponse: self.take_part,
            ChangeVotersRequest: self.take_change,
            WriteRequest: self.take_write,
            ReadRequest: self.take_read,
        }
        self.timers: dict[str, Callable[[], None]] = {
            "role": self.time_out,
            "votes": self.ask_votes,
            "fetch": self.fetch,
            "begin": self.begin_epoch,
            "queue": self.run_queue,
            "tasks": self.run_tasks,
            "clean": self.clean,
        }

    # ---- a step
    def handle(self, event: Boot | Message | Timer | Ask) -> Sequence[Effect]:
        """One event; what is to be done."""
        self.effects, self.is_whole = [], False
        if type(event) is Message:
            self.takers[type(event.body)](event.source, event.body)
        elif type(event) is Timer:
            self.timers[event.name]()
        elif type(event) is Ask:
            self.do(event.what)
        elif type(event) is Boot:
            self.life = event.life
            self.correlation = (event.life - 1) * MOST_REQUESTS
            self.clean()
        self.act()
        self.persist()
        r = self.replica
        if r.told:
            self.listen()
        self.shown = r.role, r.epoch, r.high
        if self.controller.queue and not self.is_awake:
            self.is_awake = True
            self.set_timer("queue", 1)
        if self.config.max_idle_ms is not None:
            self.wait_for_tasks()
        self.is_whole = True
        return self.effects

    def send(self, target: str, body: Any) -> None:
        self.effects.append(Send(target, body))

    def set_timer(self, name: str, after_ms: int) -> None:
        self.effects.append(SetTimer(name, after_ms))

    def persist(self) -> None:
        """The epoch and the vote first, then the log."""
        r, saved = self.replica, self.saved
        if r.epoch != saved.epoch or r.leader != saved.leader or r.voted != saved.voted:
            self.saved = QuorumState(r.epoch, r.leader, r.voted)
            self.save(self.saved)
        if self.log.undone:
            self.log.write()

    def save(self, state: QuorumState) -> None:
        replace_file(self.disk, STATE, state.encoded())

    # ---- roles
    def act(self) -> None:
        """What begins with a role, an epoch, or a leader."""
        r = self.replica
        key = r.role, r.epoch, r.leader
        if key == self.key:
            return
        led = self.key is not None and self.key[0] == LEADER
        self.key = key
        self.in_flight, self.asked, self.is_lost = -1, {}, self.is_lost and r.role == FOLLOWER
        if r.role == LEADER:
            self.fetched_ms = {}
            self.time_role(CHECK_MS)
            self.begin_epoch()
        elif r.role == FOLLOWER:
            self.time_role(FETCH_TIMEOUT_MS)
            self.fetch()
        else:
            self.rounds += 1
            spread = self.local * 37 + r.epoch * 61 + self.rounds * 23 + self.life * 13
            self.time_role(ELECTION_MS + spread % ELECTION_JITTER_MS)
            if r.role in (PROSPECTIVE, CANDIDATE):
                self.asked = {v: self.next_correlation() for v in self.log.voters if v != self.local}
                self.ask_votes()
            elif r.role == UNATTACHED:
                self.set_timer("fetch", BACKOFF_MS)
            elif led:
                self.resign()

    def next_correlation(self) -> int:
        self.correlation += 1
        return self.correlation

    def time_role(self, after_ms: int) -> None:
        """What the role waits for has to come within this time from now."""
        self.since_ms, self.wait_ms = self.clock(), after_ms
        self.set_timer("role", after_ms)

    def time_out(self) -> None:
        """The timer of the role has run out, unless what it is for has come since it was set."""
        r = self.replica
        left = self.since_ms + self.wait_ms - self.clock()
        if left > 0:
            self.set_timer("role", left)
            return
        self.key = None if r.role != LEADER else self.key
        if r.role == FOLLOWER:
            self.is_lost = True
            r.fetch_timeout()
        elif r.role != LEADER:
            r.election_timeout()
        elif len(self.log.voters) > 1:
            r.check_quorum_timeout()
        else:
            self.time_role(CHECK_MS)

    def ask_votes(self) -> None:
        """Of those who have not answered."""
        r = self.replica
        if not self.asked or r.role not in (PROSPECTIVE, CANDIDATE):
            return
        where = self.local, self.log.last_epoch, self.log.end
        for voter, correlation in self.asked.items():
            body = VoteRequest(correlation, r.epoch, *where, r.role == PROSPECTIVE)
            self.send(self.names[voter], body)
        self.set_timer("votes", RPC_MS)

    def take_vote(self, source: str, body: VoteRequest) -> None:
        r = self.replica.vote(body.epoch, body.candidate, body.last_epoch, body.last_offset, body.pre_vote)
        self.send(source, VoteResponse(body.correlation, *r))

    def take_vote_response(self, source: str, body: VoteResponse) -> None:
        voter = self.config.numbers[source]
        if self.asked.get(voter) != body.correlation:
            return
        del self.asked[voter]
        if voter in self.log.voters:
            self.replica.vote_response(voter, body.error, body.epoch, body.leader, body.granted)

    def begin_epoch(self) -> None:
        """Tell those who do not fetch."""
        r = self.replica
        if r.role != LEADER:
            return
        since = self.clock() - BEGIN_MS
        for voter in self.log.voters:
            if voter != self.local and self.fetched_ms.get(voter, since) <= since:
                self.send(self.names[voter], BeginQuorumEpochRequest(r.epoch, self.local))
        self.set_timer("begin", BEGIN_MS)

    def resign(self) -> None:
        """Tell the others, the one with the longest log first."""
        ends, r = self.known_ends, self.replica
        successors = tuple(sorted((v for v in self.log.voters if v != self.local), key=lambda v: (-ends.get(v, -1), v)))
        for voter in successors:
            self.send(self.names[voter], EndQuorumEpochRequest(r.epoch, self.local, successors))

    known_ends: Mapping[int, int] = {}
    """how far the logs of others went when this one led"""

    def take_begin(self, source: str, body: BeginQuorumEpochRequest) -> None:
        r = self.replica.begin_quorum_epoch(body.epoch, body.leader)
        self.send(source, QuorumEpochResponse(*r[:3]))

    def take_end(self, source: str, body: EndQuorumEpochRequest) -> None:
        r = self.replica
        answer = r.end_quorum_epoch(body.epoch, body.leader)
        self.send(source, QuorumEpochResponse(*answer[:3]))
        self.act()
        if (r.role, r.epoch, r.leader) == (FOLLOWER, body.epoch, body.leader):
            backoff = r.election_backoff_ms(body.successors, ELECTION_JITTER_MS)
            self.time_role(max(1, backoff))

    def take_epoch(self, source: str, body: QuorumEpochResponse) -> None:
        self.replica.is_good(*body)

    # ---- a follower
    def fetch(self) -> None:
        """From the leader; where none is known, or not where it is, or it does not answer, from one after the other."""
        r = self.replica
        if r.role not in (FOLLOWER, UNATTACHED):
            return
        if r.fetching is not None and r.role == FOLLOWER:
            self.fetch_snapshot(r.fetching)
            return
        target = r.leader
        if target is None or target == self.local or r.is_homeless or self.is_lost:
            place = (self.next_target + 1) % (len(self.others) + 1)
            target = self.others[place % len(self.others)]
            self.next_target = place
        self.in_flight = self.next_correlation()
        body = FetchRequest(self.in_flight, r.epoch, self.local, self.log.end, self.log.last_epoch)
        self.send(self.names[target], body)
        self.set_timer("fetch", RPC_MS)

    def take_records(self, source: str, body: FetchResponse) -> None:
        r = self.replica
        if body.correlation != self.in_flight or r.role not in (FOLLOWER, UNATTACHED):
            return
        self.in_flight = -1
        counts = body.error == OK and body.epoch == r.epoch
        entries: list[raft.Record] = []
        if counts and body.records:
            fetched = batches.split(body.records)
            self.log.take(fetched)
            entries = [e for b in fetched for e in b.entries]
        about = body.high, body.diverging, body.snapshot
        r.fetch_response(raft.FetchReply(body.error, body.epoch, body.leader, *about, tuple(entries)))
        self.follow(counts, has_more=bool(entries) or body.diverging is not None or r.fetching is not None)

    def follow(self, counts: bool, has_more: bool) -> None:
        """After an answer: fetch again, at once or later."""
        self.act()
        if self.in_flight >= 0:
            return
        if counts and self.replica.role == FOLLOWER:
            self.is_lost = False
            self.since_ms, self.wait_ms = self.clock(), FETCH_TIMEOUT_MS
        if counts and has_more:
            self.fetch()
        else:
            self.set_timer("fetch", FETCH_MS if counts else BACKOFF_MS)

    def fetch_snapshot(self, of: Position) -> None:
        """The next part."""
        if self.part is None or self.part[0] != of:
            self.part = of, b""
        self.in_flight = self.next_correlation()
        body = FetchSnapshotRequest(self.in_flight, self.replica.epoch, self.local, of, len(self.part[1]))
        self.send(self.names[self.replica.leader or self.local], body)
        self.set_timer("fetch", RPC_MS)

    def take_part(self, source: str, body: FetchSnapshotResponse) -> None:
        r = self.replica
        if body.correlation != self.in_flight or r.fetching is None or self.part is None:
            return
        self.in_flight = -1
        counts = r.is_good(body.error, body.epoch, body.leader)
        if counts:
            at, content = self.part
            content += body.data
            self.part = at, content
            if len(content) == body.size:
                self.write_snapshot(at, content)
                self.part = None
                r.fetch_snapshot_response(batches.loaded(content).voters)
        elif body.error == SNAPSHOT_NOT_FOUND and r.fetching is not None:
            r.fetching = None
        self.follow(counts, has_more=True)

    # ---- a leader
    def take_fetch(self, source: str, body: FetchRequest) -> None:
        r = self.replica
        answer = r.fetch(body.replica, body.epoch, body.offset, body.last_epoch)
        records = b""
        if answer.error == OK:
            self.heard_of(body.replica)
            if answer.diverging is None and answer.snapshot is None and body.offset < self.log.end:
                records = self.log.bytes_from(body.offset, MOST_BYTES)
        error, epoch, leader, high, diverging, snapshot, _ = answer
        self.send(source, FetchResponse(body.correlation, error, epoch, leader, high, diverging, snapshot, records))

    def heard_of(self, replica: int) -> None:
        """It has fetched."""
        r = self.replica
        self.fetched_ms[replica] = self.clock()
        self.known_ends = r.ends if r.ends else self.known_ends
        if r.role == LEADER and not r.heard and replica in self.log.voters:
            self.since_ms = self.clock()

    def take_fetch_snapshot(self, source: str, body: FetchSnapshotRequest) -> None:
        r = self.replica
        error = r.refuses(body.epoch)
        content = b""
        if error is None and body.snapshot not in self.snapshots:
            error = SNAPSHOT_NOT_FOUND
        if error is None:
            content = self.disk.read(path_of(body.snapshot))
            r.hears_from(body.replica)
            self.heard_of(body.replica)
        part = content[body.position : body.position + CHUNK_BYTES]
        where = error or OK, r.epoch, r.leader
        self.send(source, FetchSnapshotResponse(body.correlation, *where, len(content), body.position, part))

    def take_change(self, _: str, body: ChangeVotersRequest) -> None:
        self.change_voters(body)

    def change_voters(self, body: ChangeVotersRequest) -> None:
        """Whether it is refused is not said: who has asked looks at the voters."""
        r = self.replica
        if body.adds:
            r.add_voter(body.voter)
        elif len(self.log.voters) > 2:
            r.remove_voter(body.voter)

    # ---- snapshots
    def stored_snapshots(self) -> list[Position]:
        """Those of the disk, the latest last."""
        names = [n[: -len(CHECKPOINT)] for n in self.disk.files(DIRECTORY) if n.endswith(CHECKPOINT)]
        return sorted(Position(*map(int, n.split("-"))) for n in names)

    def loaded(self, at: Position) -> batches.Snapshot:
        return batches.loaded(self.disk.read(path_of(at)))

    def write_snapshot(self, at: Position, content: bytes) -> None:
        replace_file(self.disk, path_of(at), content)
        self.snapshots.append(at)

    def make_snapshot(self) -> None:
        """Of what is stable, if nothing committed is not, and there is enough that is new."""
        c, end = self.controller, self.controller.last_stable_offset + 1
        if c.last_stable_offset != c.last_committed_offset or end - self.log.snapshots[-1].offset < SNAPSHOT_EVERY:
            return
        self.take_snapshot(Position(end, c.last_committed_epoch), c.last_stable_offset)

    def take_snapshot(self, at: Position, offset: int) -> None:
        if at.offset > self.log.start and self.replica.create_snapshot(at.offset, at.epoch):
            self.write_snapshot(
                at, batches.snapshot(self.contents(offset), self.log.voters_at(at.offset), at.offset, at.epoch)
            )

    def contents(self, offset: int) -> dict[str, int]:
        """What a snapshot of what is stable at an offset has."""
        return dict(self.controller.memory.values.items(offset))

    def clean(self) -> None:
        """What the latest snapshot has leaves the log; older ones go."""
        self.set_timer("clean", CLEAN_MS)
        self.replica.clean()
        for at in [at for at in self.snapshots if at not in self.log.snapshots]:
            self.snapshots.remove(at)
            self.disk.remove(path_of(at))

    # ---- the controller
    def committed(self, first: int, last: int) -> list[Batch]:
        """The controller's batches of the log between two offsets."""
        return [as_batch(b) for b in self.log.between(first, last + 1) if b.entries[0].value is not None]

    def listen(self) -> None:
        """What the listener was told goes into the controller's queue. A commit goes up to the next one. The bootstrap
        snapshot has Raft's own records alone; what the controller begins with, it has."""
        told = self.replica.take_told()
        ends = deque([n.offset or 0 for n in told if n.kind == "commit"][1:] + [self.replica.given])
        for notice in told:
            if notice.kind == "commit":
                self._committed(notice.offset or 0, ends.popleft())
            elif notice.kind == "leader":
                self._leader_changed(notice.epoch or 0, notice.leader == self.local)
            elif notice.kind == "snapshot":
                self._snapshot_came(Position(notice.offset or 0, notice.epoch or 0))

    def _committed(self, offset: int, end: int) -> None:
        c = self.controller
        for stored in self.log.between(offset, end):
            c.append_event(partial(c.handle_commit, [as_batch(stored)]))

    def _leader_changed(self, epoch: int, is_leader: bool) -> None:
        c = self.controller
        c.append_event(partial(c.handle_leader_change, epoch, is_leader))

    def _snapshot_came(self, at: Position) -> None:
        c = self.controller
        c.append_event(partial(c.load_snapshot, *at, self.loaded(at).records))

    def clock_ns(self) -> int:
        return self.clock() * quorum.NS_IN_MS

    def wait_for_tasks(self) -> None:
        """The queue is woken when the earliest of its deferred events is due."""
        earliest = self.controller.deferred.earliest
        at_ms = None if earliest is None else -(-self.controller.deferred.deadlines[earliest] // quorum.NS_IN_MS)
        if at_ms != self.next_task_ms:
            self.next_task_ms = at_ms
            if at_ms is not None:
                self.set_timer("tasks", max(1, at_ms - self.clock()))

    def run_tasks(self) -> None:
        self.next_task_ms = None
        self.run_queue()

    def run_queue(self) -> None:
        self.is_awake = False
        self.controller.run_all()
        self.make_snapshot()

    def take_write(self, source: str, body: WriteRequest) -> None:
        def reply(outcome: Outcome, value: int) -> None:
            said = body.number, body.kind, body.names, body.value
            self.send(source, WriteResponse(*said, outcome, value, self.replica.leader))

        self.controller.append_write(lambda: self.records_for(body), reply)

    def records_for(self, body: WriteRequest) -> quorum.ControllerResult:
        """What a write becomes."""
        if body.kind == "create":
            there = self.known(body.names[0])
            if there != NO_LOG_OFFSET:
                return quorum.ControllerResult((), there)
        if body.kind == "register":
            return quorum.ControllerResult([Record(Kind.REGISTER, "", int(body.names[0]))], body.value)
        made = [Record(Kind.SET, name, body.value) for name in body.names]
        if body.kind == "transact":
            made = [Record(Kind.BEGIN), *made, Record(Kind.END)]
        return quorum.ControllerResult(made, body.value, is_atomic=len(made) == 1)

    def known(self, name: str) -> int:
        """What there is of a name, committed or not."""
        return self.controller.latest(name)

    def take_read(self, source: str, body: ReadRequest) -> None:
        def read() -> None:
            c = self.controller
            self.send(source, ReadResponse(body.number, body.name, c.read(body.name), c.last_stable_offset))

        self.controller.append_event(read)

    def do(self, what: Any) -> None:
        """What somebody asks for."""
        match what:
            case ["fail over"]:
                self.controller.append_write(_gives_up, lambda outcome, value: None)
            case [("add" | "remove") as how, int(voter)] if voter in self.names:
                body = ChangeVotersRequest(how == "add", voter)
                leader = self.replica.leader
                if self.replica.role == LEADER:
                    self.change_voters(body)
                elif leader is not None and leader != self.local:
                    self.send(self.names[leader], body)


def _gives_up() -> quorum.ControllerResult:
    raise quorum.OperationError(Fault.NOT_LEADER)


def as_batch(batch: StoredBatch) -> Batch:
    """As the controller gets it: nothing of Raft's own."""
    records = tuple(batches.record_of(e.value) for e in batch.entries if e.value is not None)
    return Batch(batch.base, batch.epoch, records)


def path_of(at: Position) -> str:
    return f"{DIRECTORY}/{at.offset:020}-{at.epoch:010}{CHECKPOINT}"
