"""A quorum in the simulator: three controllers, or five, each of Raft and a controller over a disk of its own; two
clients that write, and one that reads; and what lets the spec watch them.

What the spec is shown of a log are the batches in the controller's file, and of a snapshot the bytes of its file; of a
vote what is sent. A controller's memory is shown at its last stable offset, and all of it where it is not active.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any

from kafkaspec.impl.common.disk import Crashed, SimulatedDisk
from kafkaspec.impl.controller.quorum_parts import batches
from kafkaspec.impl.controller.quorum_parts.clients import Client, Reader, Writer
from kafkaspec.impl.controller.quorum_parts.messages import (
    BeginQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    QuorumEpochResponse,
    ReadResponse,
    VoteRequest,
    VoteResponse,
    WriteResponse,
)
from kafkaspec.impl.controller.quorum_parts.node import Config, ControllerNode
from kafkaspec.impl.controller.raft import FOLLOWER, LEADER, OK, RESIGNED, Position
from kafkaspec.impl.storage.log import LogConfig
from kafkaspec.impl.storage.replication_simulation import AT_REST
from kafkaspec.impl.storage.segment import headers
from kafkaspec.simulate.scenario import Clock, Crash, Faults, Message, Node, Scenario, Send, Step, Timer, Violation
from kafkaspec.spec.common.metadata_log import TRANSACTIONS, Kind, Outcome, Record
from kafkaspec.spec.controller.quorum_parts.observer import Batch, Observer

THREE, FIVE = ("k1", "k2", "k3"), ("k1", "k2", "k3", "k4", "k5")
WRITERS, READER = ("w1", "w2"), "r"
NO_FAULT = "a controller meets no fault"
FAULTS = Faults(partition=2.0, one_way=1.0, pause=1.5)
"""a leader has to be cut off with what it wrote, for logs to diverge"""
CREATED, CHANGED = "n", "c"
"""what the names begin with that are created, and that are changed"""
BOOTSTRAP = (Record(Kind.VERSION, "", TRANSACTIONS), Record(Kind.FEATURE, "", 1))
MOST_RECORDS = 4
"""in a batch: a bootstrap is more, and so are some changes"""
LOG = LogConfig(
    segment_bytes=800, flush_messages=1, index_interval_bytes=300, segment_index_bytes=4096, retention_ms=-1
)
"""Every append is flushed before it counts: Raft needs it."""


TOLD = (VoteRequest, VoteResponse, WriteResponse, ReadResponse)
"""what is judged of what is sent"""


@lru_cache(1 << 14)
def _batch(data: bytes) -> Batch:
    """A batch as the spec knows it."""
    (found,) = batches.split(data)
    records = tuple(batches.record_of(e.value) for e in found.entries if e.value is not None)
    return Batch(found.base, found.last, found.epoch, zlib.crc32(data), records)


def stored(node: ControllerNode, base: int = 0, position: int = 0) -> Iterator[Batch]:
    """What a controller's files have, from a position of a segment on."""
    files = node.log.files
    for b in files.bases[bisect_left(files.bases, base) :]:
        data = files.segments[b].data()
        for h in headers(data, position if b == base else 0):
            yield _batch(data[h.position : h.position + h.size])


class Watch:
    """Shows the spec what a step has changed."""

    def __init__(self, controllers: Sequence[str] = THREE) -> None:
        self.controllers = tuple(controllers)
        self.names = dict(enumerate(controllers, 1))
        self.observer = Observer(controllers, CREATED)
        self.seen: dict[str, tuple[int, int, int]] = {}
        """of each that is up: the end of its log, its last segment and the position in that one's file"""
        self.before: dict[str, Position | None] = {}
        """and the snapshot behind which its log begins"""
        self.snapshots: dict[str, Position | None] = {}
        self.roles: dict[str, tuple[str, int, int | None]] = {}
        self.memories: dict[str, tuple[int, int, int]] = {}
        self.known: dict[str, tuple[Any, ...]] = {}
        """and all that these go by"""
        self.rolls = 0

    def observe(self, step: Step, nodes: Mapping[str, Any]) -> Violation | None:
        name, event = step.node, step.event
        if name not in self.controllers:
            return None
        if type(event) is Crash:
            for known in (self.seen, self.roles, self.memories, self.snapshots, self.before, self.known):
                known.pop(name, None)
            self.observer.follows(name)
            return None
        node = nodes.get(name)
        if node is None or not node.is_whole:
            return None
        told = [e for e in step.effects if type(e) is Send and type(e.body) in TOLD]
        found = self._votes(name, node, event, told) if told else None
        c, log = node.controller, node.log
        offsets = c.last_stable_offset, c.last_committed_offset, c.claim_epoch, c.faults
        now = (*offsets, log.files.log_end, log.before, log.snapshots[-1], node.shown)
        if found is None and now != self.known.get(name):
            self.known[name] = now
            found = (
                self._snapshot(name, node)
                or self._log(name, node)
                or self._role(name, node)
                or self._memory(name, node)
            )
        return found if found is not None or not told else self._answers(name, told)

    def voters(self, node: ControllerNode) -> Collection[str]:
        """By its log."""
        return [self.names[v] for v in node.log.voters]

    def _votes(self, name: str, node: ControllerNode, event: Any, told: Sequence[Send]) -> Violation | None:
        o, found = self.observer, None
        for target, body in told:
            if type(body) is VoteRequest and not body.pre_vote:
                found = o.stands(name, body.epoch, self.voters(node))
            elif type(body) is VoteResponse and body.granted:
                asked, role = event.body, node.shown[0]
                if asked.pre_vote and (role == LEADER or (role == FOLLOWER and node.replica.has_fetched)):
                    return o.stays_with_leader(name)
                log = asked.last_epoch, asked.last_offset
                found = o.grants(name, asked.epoch, target, log, asked.pre_vote)
            if found is not None:
                return found
        return None

    def _snapshot(self, name: str, node: ControllerNode) -> Violation | None:
        at = node.snapshots[-1] if node.snapshots else None
        known = self.snapshots.get(name)
        if at == known:
            return None
        self.snapshots[name] = at
        if at is None:
            return None
        if name in self.seen:
            self.observer.counted["snapshots loaded" if node.log.before == at else "snapshots made"] += 1
        return self.observer.snapshot(name, *at, node.loaded(at).values)

    def _log(self, name: str, node: ControllerNode) -> Violation | None:
        o, files, seen = self.observer, node.log.files, self.seen.get(name)
        before = node.log.before
        if seen is None or before != self.before[name]:
            if seen is None:
                r = node.replica
                o.starts(name, r.epoch, None if r.voted is None else self.names[r.voted])
            self.before[name] = before
            start = 0 if before is None else before.offset
            self.seen[name] = files.log_end, files.bases[-1], files.active.size
            return o.has(name, start, [b for b in stored(node) if b.base >= start])
        if files.log_end == seen[0]:
            return None
        self.seen[name] = files.log_end, files.bases[-1], files.active.size
        if files.log_end < seen[0]:
            return o.cuts(name, files.log_end)
        self.rolls += files.bases[-1] != seen[1]
        return o.appends(name, [*stored(node, *seen[1:])])

    def _role(self, name: str, node: ControllerNode) -> Violation | None:
        """Who leads, and how far what is committed goes: also for who resigns as its last commit is that of voters
        without it (RFT-33)."""
        known = self.roles.get(name)
        if node.shown == known:
            return None
        role, epoch, high = self.roles[name] = node.shown
        o = self.observer
        if role == RESIGNED and o.replicas[name].leads_in == epoch:
            found = o.shows(name, node.replica.committed, self.voters(node))
            if found is not None:
                return found
        if role != LEADER:
            o.follows(name)
        elif o.replicas[name].leads_in != epoch:
            found = o.leads(name, epoch, self.voters(node))
            if found is not None:
                return found
        return o.shows(name, high, self.voters(node))

    def _memory(self, name: str, node: ControllerNode) -> Violation | None:
        c = node.controller
        if c.faults:
            return Violation(NO_FAULT, f"{name} has met one")
        now = c.last_stable_offset, c.last_committed_offset, c.claim_epoch
        known = self.memories.get(name)
        if now == known:
            return None
        self.memories[name] = now
        values = c.memory.values
        if now[0] not in c.memory.registry.epochs:
            return Violation("QRM-38", f"{name} has no snapshot of its memory at {now[0]}, up to which it is stable")
        if known is None or now[0] != known[0]:
            found = self.observer.remembers(name, now[0], dict(values.items(now[0])))
            if found is not None:
                return found
        return None if c.is_active else self.observer.stands_by(name, now[1], dict(values.items()))

    def _answers(self, name: str, told: Sequence[Send]) -> Violation | None:
        o, found = self.observer, None
        for _, body in told:
            if type(body) is WriteResponse:
                if body.outcome == Outcome.DONE:
                    found = o.acknowledged(name, body.kind, body.names, body.sent, body.value)
                else:
                    o.counted["refusals by who does not lead"] += body.outcome == Outcome.NOT_CONTROLLER
            elif type(body) is ReadResponse:
                found = o.reads(name, body.name, body.value, body.stable)
            if found is not None:
                return found
        return None

    def counts(self) -> Mapping[str, int]:
        return self.observer.counted | {"segments rolled": self.rolls}

    def settled(self, nodes: Mapping[str, Any]) -> Violation | None:
        """RFT-13, and what was asked of the quorum."""
        all_of_them: dict[str, ControllerNode] = {n: nodes[n] for n in self.controllers}
        leaders = [n for n, node in all_of_them.items() if node.shown[0] == LEADER]
        epochs = {n: node.shown[1] for n, node in all_of_them.items()}
        if len(leaders) != 1 or len({*epochs.values()}) != 1:
            return Violation(AT_REST, f"leaders: {', '.join(leaders) or 'none'}; epochs: {epochs}")
        active = [n for n, node in all_of_them.items() if node.controller.is_active]
        if active != leaders:
            return Violation(AT_REST, f"{leaders[0]} leads, active are {', '.join(active) or 'none'}")
        waiting = {n: len(nodes[n].waiting) for n in (*WRITERS, READER) if nodes[n].waiting}
        if waiting:
            return Violation(AT_REST, f"requests that are not answered: {waiting}")
        return self._logs_settled(all_of_them)

    def _logs_settled(self, all_of_them: Mapping[str, ControllerNode]) -> Violation | None:
        """All have all that is committed, and show it."""
        o = self.observer
        for n, node in all_of_them.items():
            r = o.replicas[n]
            if r.end != o.end or r.agreed != o.end or node.shown[2] != o.end:
                what = f"ends at {r.end}, agrees up to {r.agreed}, high watermark {node.shown[2]}"
                return Violation(AT_REST, f"{o.end} offsets are committed; the log of {n} {what}")
            c, stable = node.controller, o.memory.offsets[-1]
            if c.last_stable_offset != stable:
                return Violation(
                    AT_REST, f"{n} is stable up to {c.last_stable_offset}, what is committed up to {stable}"
                )
        return None


class ChangingWatch(Watch):
    """Counts how the voters change, as leaders have them."""

    def __init__(self, controllers: Sequence[str] = FIVE) -> None:
        super().__init__(controllers)
        self.voting: Collection[int] = frozenset((1, 2, 3))
        self.happened = dict.fromkeys(CHANGES, 0)

    def _role(self, name: str, node: ControllerNode) -> Violation | None:
        now = frozenset(node.log.voters)
        if node.shown[0] == LEADER and now != self.voting:
            self.happened["voters added"] += bool(now - {*self.voting})
            self.happened["voters removed"] += bool({*self.voting} - now)
            self.happened["a leader is no voter"] += node.local not in now
            self.voting = now
        return super()._role(name, node)

    def counts(self) -> Mapping[str, int]:
        return {**super().counts(), **self.happened}


class IdleWatch(Watch):
    """Sees that who is active has its periodic tasks scheduled, and nobody else; and that the log goes on when all is
    at rest, for these write."""

    def __init__(self, controllers: Sequence[str] = THREE) -> None:
        super().__init__(controllers)
        self.now_ms = self.moved_ms = 0
        """and when something was committed last"""
        self.happened = dict.fromkeys(TASKS_RUN, 0)

    def observe(self, step: Step, nodes: Mapping[str, Any]) -> Violation | None:
        self.now_ms, end = step.at_ms, self.observer.end
        found = super().observe(step, nodes) or self._tasks(step, nodes.get(step.node))
        if self.observer.end != end:
            self.moved_ms = step.at_ms
        return found

    def _tasks(self, step: Step, node: ControllerNode | None) -> Violation | None:
        """What is active may have its activation in the queue still."""
        name = step.node
        if name not in self.controllers or node is None or not node.is_whole:
            return None
        c = node.controller
        tasks = c.deferred.deadlines
        if c.is_active and not tasks and not c.queue:
            return Violation("QRM-39", f"{name} is active, and no periodic task is scheduled")
        if not c.is_active and tasks:
            return Violation("QRM-40", f"{name} is not active, and has scheduled {', '.join(tasks)}")
        self.happened["periodic tasks"] += c.is_active and type(step.event) is Timer and step.event.name == "tasks"
        return None

    def counts(self) -> Mapping[str, int]:
        return {**super().counts(), **self.happened}

    def _logs_settled(self, all_of_them: Mapping[str, ControllerNode]) -> Violation | None:
        """All have what was committed, but for what tasks have written just now; and more was, though nobody asks."""
        o = self.observer
        for n, node in all_of_them.items():
            have = min(o.replicas[n].agreed, node.controller.last_stable_offset + 1)
            if have < o.end - MOST_ON_ITS_WAY:
                return Violation(AT_REST, f"{o.end} offsets are committed; {n} has, and shows, {have}")
        if self.now_ms - self.moved_ms > MOST_ON_ITS_WAY * IDLE_MS:
            return Violation(AT_REST, f"nothing was committed since {self.moved_ms:,} ms; now {self.now_ms:,} ms")
        self.happened["logs that go on"] += 1
        return None


TASKS_RUN = "periodic tasks", "logs that go on"
IDLE_MS, MOST_ON_ITS_WAY = 70, 4
"""how often a no-op record is written, and how many of these may be on their way when all is at rest"""
CHANGES = "voters added", "voters removed", "a leader is no voter"
QUIET = (BeginQuorumEpochRequest, QuorumEpochResponse, FetchRequest)


def _is_idle(body: Any) -> bool:
    """Nobody learns from it."""
    if type(body) is FetchResponse:
        return body.error == OK and not body.records and body.diverging is None and body.snapshot is None
    return type(body) in QUIET


def is_routine(step: Step) -> bool:
    """Fetches of nothing, and timers of what has been told before."""
    event = step.event
    if type(event) is Timer:
        return event.name in ("fetch", "begin", "queue", "clean", "tasks") and all(
            _is_idle(e.body) for e in step.effects if type(e) is Send
        )
    if type(event) is not Message:
        return False
    return _is_idle(event.body) and all(_is_idle(e.body) for e in step.effects if type(e) is Send)


def _write(rng: Random) -> tuple[str, Any]:
    """Mostly changes; of up to six names, in one batch or in two, now and then in a transaction."""
    client = WRITERS[int(rng.random() * 2)]
    x = rng.random()
    if x < 0.3:
        return client, ["create", [f"{CREATED}{int(rng.random() * 8)}"]]
    if x < 0.4:
        return client, ["register", [1 + int(rng.random() * 3)]]
    count = 1 + int(rng.random() * 6) if x < 0.6 else 1
    first = int(rng.random() * 6)
    kind = "transact" if x < 0.5 else "change"
    return client, [kind, [f"{CHANGED}{(first + n) % 6}" for n in range(count)]]


def _read(controllers: Sequence[str], rng: Random) -> tuple[str, Any]:
    """Now and then a controller gives up instead."""
    if rng.random() < 0.15:
        return controllers[int(rng.random() * len(controllers))], ["fail over"]
    letter, of = (CREATED, 8) if rng.random() < 0.5 else (CHANGED, 6)
    return READER, ["read", f"{letter}{int(rng.random() * of)}"]


def _change_voters(controllers: Sequence[str], rng: Random) -> tuple[str, Any]:
    voter = 1 + int(rng.random() * len(controllers))
    return controllers[int(rng.random() * len(controllers))], ["add" if rng.random() < 0.55 else "remove", voter]


def quorum(
    name: str = "quorum",
    title: str = "three controllers, two clients that write and one that reads",
    *,
    controller: type[ControllerNode] = ControllerNode,
    writer: type[Writer] = Writer,
    reader: type[Reader] = Reader,
    disk: Callable[[], SimulatedDisk] = SimulatedDisk,
    log: LogConfig = LOG,
    watch: type[Watch] = Watch,
    controllers: tuple[str, ...] = THREE,
    voters: int | None = None,
    bootstrap: tuple[Record, ...] = BOOTSTRAP,
    max_records_per_batch: int = MOST_RECORDS,
    max_idle_ms: int | None = None,
    **more: Any,
) -> Scenario:
    """The scenario, with these classes for its nodes: a test puts a faulty one in. `voters`: how many vote at first, if
    not all; then these change."""
    numbers = {name: n for n, name in enumerate(controllers, 1)}
    first = tuple(numbers.values())[:voters]
    config = Config(numbers, first, bootstrap, max_records_per_batch, log, max_idle_ms)

    def boot(node: str, disk: Any, clock: Clock) -> Node:
        if node in controllers:
            return controller(node, disk, clock, config)
        made: Client
        if node == READER:
            made = reader(node, controllers, clock)
        else:
            made = writer(node, controllers, clock, 1 + WRITERS.index(node))
        return made

    def watches() -> Sequence[Watch]:
        return [watch(controllers)]

    def understands(node: str, what: Any) -> bool:
        match what:
            case ["fail over"]:
                return node in controllers
            case [("add" | "remove"), int(voter)]:
                return node in controllers and voter in numbers.values()
        return (node in WRITERS and writer.does(what)) or (node == READER and reader.does(what))

    workload: dict[str, Callable[[Random], tuple[str, Any]]] = {
        "write": _write, "read": lambda rng: _read(controllers, rng),
    }  # fmt: skip
    if voters is not None:
        workload["voters"] = lambda rng: _change_voters(controllers, rng)
    return Scenario(
        name,
        title,
        (*controllers, *WRITERS, READER),
        boot,
        lambda node: disk() if node in controllers else None,
        watches,
        workload,
        mortal=controllers,
        crashes=Crashed,
        is_routine=is_routine,
        **{"faults": FAULTS, "workload_weight": 20.0, "understands": understands, **more},
    )


def five(name: str = "quorum:FIVE_VOTERS", title: str = "five controllers", **parts: Any) -> Scenario:
    """Two of them may be away."""
    return quorum(name, title, **{"controllers": FIVE, **parts})


def changing(
    name: str = "quorum:CHANGING", title: str = "five controllers, of which three vote at first, and who votes changes",
    **parts: Any,
) -> Scenario:  # fmt: skip
    """KIP-853."""
    return quorum(name, title, **{"controllers": FIVE, "voters": 3, "watch": ChangingWatch, **parts})


def idle(
    name: str = "quorum:IDLE",
    title: str = "three controllers, of which the active one writes by itself as well",
    **parts: Any,
) -> Scenario:
    """Periodic tasks: QRM-39 to QRM-41."""
    return quorum(name, title, **{"watch": IdleWatch, "max_idle_ms": IDLE_MS, **parts})


SCENARIO = quorum()
FIVE_VOTERS = five()
CHANGING = changing()
IDLE = idle()
