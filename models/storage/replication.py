"""Five generations of Kafka's replication protocol as one model: a rule of a later generation is a flag.

| generation | flags | a replica that begins to follow |
|---|---|---|
| before KIP-101 | none | truncates to its own high watermark |
| KIP-101 | `BY_EPOCH` | truncates to where its last epoch ends in the leader's log |
| KIP-279 | `BY_EPOCH`, `BY_RECORD` | truncates to the last record that both logs have |
| KIP-320, first try | as KIP-279, `ON_FETCH` | keeps its log; a fetch names the epoch of its last record |
| KIP-320 | as KIP-279, `FENCED` | as KIP-279, but of a leader of the same epoch, as is every fetch |

`Generations` has the rules that its author verified when KIP-320 was written, action by action, so that its distinct
states can be compared with those that TLC finds in the published TLA+. `Released` says what holds the last generation
up: at any size no committed record is lost. `CommittedLog` is what a user may rely on, and `Released` refines it.
`Fetching` and `Eligible` are what became of KIP-320 since: truncation as followers fetch, and eligible leader replicas.
`AsyncIsr` is how the in-sync replicas change since KIP-497, as published; `Eligible` has that too.

Source: KIP-101, KIP-279, KIP-320, KIP-497, KIP-966; hachikuji/kafka-specification; `Partition.scala`,
`AbstractFetcherThread.scala`, `PartitionChangeBuilder.java`.
"""

# mypy: disable-error-code="operator, index, arg-type, assignment, union-attr"
# (the modelling language unwraps an option where its value is wanted; mypy narrows no element of a map)

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import (
    Bounded,
    Flag,
    Model,
    Range,
    Size,
    Sort,
    action,
    define,
    initial,
    invariant,
    leads_to,
    lemma,
    refines,
    require,
    step,
    witness,
)


class Replica(Sort):
    """A broker that has a copy of the partition."""


L = Size("L")
"""The most records of a log."""
R = Size("R")
"""The most records that are ever written."""
E = Size("E")
"""The highest leader epoch; the first is 1."""
BY_EPOCH = Flag("BY_EPOCH")
"""KIP-101: truncation asks the leader where an epoch ends."""
BY_RECORD = Flag("BY_RECORD")
"""KIP-279: it goes on asking until both logs have the record."""
ON_FETCH = Flag("ON_FETCH")
"""The first try of KIP-320: truncation at any fetch, whose last record the leader checks by its epoch."""
FENCED = Flag("FENCED")
"""KIP-320: fetches and truncation name the leader epoch, and the leader refuses any other."""
UNCLEAN = Flag("UNCLEAN")
"""Whether the controller may elect a leader outside the in-sync replicas."""
MIN = Size("MIN")
"""min.insync.replicas."""
C = Size("C")
"""The most unclean shutdowns."""
ELR = Flag("ELR")
"""KIP-966: the controller knows who is not in sync and may lead all the same."""
STRICT = Flag("STRICT")
"""KIP-966: the high watermark rises only while enough replicas are in sync."""
Offset = Annotated[int, Range(0, L)]
Epoch = Annotated[int, Range(0, E)]
RealEpoch = Annotated[int, Range(1, E)]


@dataclass(frozen=True)
class Record:
    """`number` tells records apart; no replica looks at it."""

    number: Annotated[int, Range(1, R)]
    epoch: RealEpoch


@dataclass(frozen=True)
class Request:
    """What the controller tells the replicas: who leads, and who is in sync."""

    leader: Replica | None
    isr: set[Replica]


Records = Annotated[list[Record], Bounded(L)]


class CommittedLog(Model):
    """What users see: the records that are `committed`, and of them those that a consumer of a replica `sees`, which
    may be fewer than it saw before."""

    committed: Records
    sees: dict[Replica, Records]

    @action("RPN-12", who="leader")
    def commit(s, r: Replica, x: Record) -> None:
        """By a leader that shows all that was committed, a record of no earlier epoch than those before it."""
        require(len(s.committed) < L, s.sees[r] == s.committed)
        require(all(y.epoch <= x.epoch for y in s.committed))
        s.next.committed = s.committed + [x]
        s.next.sees[r] = s.committed + [x]

    @action("RPN-12", who="replica")
    def look(s, r: Replica, n: Offset) -> None:
        require(n <= len(s.committed))
        s.next.sees[r] = s.committed[:n]

    @invariant("RPN-12")
    def all_see_the_same_log(s, r: Replica, n: Offset) -> bool:
        """As far as they see."""
        return len(s.sees[r]) <= len(s.committed) and (n >= len(s.sees[r]) or s.sees[r][n] == s.committed[n])

    @invariant("RPN-12")
    def epochs_in_order(s, n: Offset, m: Offset) -> bool:
        return not (n < m < len(s.committed)) or s.committed[n].epoch <= s.committed[m].epoch

    @step("RPN-12")
    def committed_stays(s, n: Offset) -> bool:
        return n >= len(s.committed) or (n < len(s.next.committed) and s.next.committed[n] == s.committed[n])

    @step("RPN-12")
    def one_record_at_a_time(s) -> bool:
        """Whoever commits it shows it, and all before it already."""
        more = len(s.next.committed) - len(s.committed)
        return more == 0 or (
            more == 1 and any(s.sees[x] == s.committed and s.next.sees[x] == s.next.committed for x in Replica)
        )

    @step("RPN-12")
    def one_replica_at_a_time(s, a: Replica, b: Replica) -> bool:
        """Shows more or less than it did."""
        return a == b or s.next.sees[a] == s.sees[a] or s.next.sees[b] == s.sees[b]

    @witness
    def one_is_behind(s, r: Replica, x: Replica) -> bool:
        return len(s.sees[r]) == 1 and len(s.sees[x]) == 2

    @witness
    def all_see_two_of_one_epoch(s) -> bool:
        return (
            len(s.committed) == 2
            and s.committed[0].epoch == s.committed[1].epoch
            and all(s.sees[r] == s.committed for r in Replica)
        )


class Follower(Sort):
    """A replica, where one leads all the time."""


V = Size("V")
"""How often the in-sync replicas change at most."""
Version = Annotated[int, Range(0, V)]
"""The partition epoch."""


@dataclass(frozen=True)
class Change:
    """The followers in sync since a version."""

    isr: set[Follower]


class AsyncIsr(Model):
    """Changes of the in-sync replicas under one leader, as published with KIP-497: `changes` is what the controller
    ever wrote, in the order of the versions; of them the leader has `heard`. At the versions in `asked` it asked for a
    change by that follower, out if it was in and in if it was out: that may be answered late, or never. `log_end` is
    what the leader knows of its followers, `leader_end` its own."""

    changes: Annotated[list[Change], Bounded(V)]
    heard: Version
    asked: dict[Follower, set[Version]]
    log_end: dict[Follower, Offset]
    leader_end: Offset

    @define
    def in_sync(s, f: Follower, v: Version) -> bool:
        """f is in sync at that version; at 0 all are."""
        return v == 0 or f in s.changes[v - 1].isr

    @define
    def counted(s, f: Follower) -> bool:
        """In the maximal in-sync replicas of the leader."""
        return s.in_sync(f, s.heard) or s.heard in s.asked[f]

    @define
    def asked_for(s, x: Follower, f: Follower, v: Version) -> bool:
        """Whether x would be in sync after the change of f that was asked for at v."""
        return s.in_sync(x, v) != (x == f)

    @define
    def write(s, isr: set[Follower]) -> None:
        require(len(s.changes) < V)
        s.next.changes = s.changes + [Change(isr=isr)]

    @action("RPN-2", who="controller")
    def controller_shrinks(s, f: Follower) -> None:
        require(s.in_sync(f, len(s.changes)))
        s.write({x for x in Follower if s.in_sync(x, len(s.changes)) and x != f})

    # The controller takes what was asked for at the version that it has.
    @action("RPN-10", "RPN-21", who="controller")
    def accept(s, f: Follower) -> None:
        require(len(s.changes) in s.asked[f])
        s.write({x for x in Follower if s.asked_for(x, f, len(s.changes))})

    @action("RPN-10", "RPN-21", who="leader")
    def shrink(s, f: Follower) -> None:
        require(s.in_sync(f, s.heard))
        s.next.asked[f] = s.asked[f] | {s.heard}

    @action("RPN-11", "RPN-21", who="leader")
    def expand(s, f: Follower) -> None:
        require(not s.in_sync(f, s.heard))
        require(s.log_end[f] >= s.leader_end or any(s.counted(x) and s.log_end[x] <= s.log_end[f] for x in Follower))
        s.next.asked[f] = s.asked[f] | {s.heard}

    @action("RPN-21", who="leader")
    def hear(s, v: Version) -> None:
        require(s.heard < v, v <= len(s.changes))
        s.next.heard = v

    @action("RPN-8", who="leader")
    def append(s) -> None:
        require(s.leader_end < L)
        s.next.leader_end = s.leader_end + 1

    @action("RPN-9", who="follower")
    def fetch(s, f: Follower) -> None:
        require(s.log_end[f] < s.leader_end)
        s.next.log_end[f] = s.log_end[f] + 1

    @invariant("RPN-14", "RPN-21")
    def valid_high_watermark(s, f: Follower, o: Offset) -> bool:
        """Whoever is in sync has what all have that the leader counts over."""
        return (
            not s.in_sync(f, len(s.changes))
            or o > s.leader_end
            or any(s.counted(x) and s.log_end[x] < o for x in Follower)
            or s.log_end[f] >= o
        )

    @invariant("RPN-9")
    def followers_are_behind(s, f: Follower) -> bool:
        return s.log_end[f] <= s.leader_end

    @step("RPN-9", "RPN-11")
    def the_high_watermark_never_falls(s, f: Follower, o: Offset) -> bool:
        """What all had that were counted, all have that are."""
        return (
            o > s.leader_end
            or any(s.counted(x) and s.log_end[x] < o for x in Follower)
            or not s.next.counted(f)
            or s.next.log_end[f] >= o
        )

    @step("RPN-2", "RPN-10")
    def each_change_is_of_one(s) -> bool:
        """It leaves, or the leader asked for it at that version."""
        n = len(s.changes)
        return len(s.next.changes) == n or any(
            s.in_sync(f, n) != (f in s.next.changes[n].isr)
            and (s.in_sync(f, n) or n in s.asked[f])
            and all(x == f or s.in_sync(x, n) == (x in s.next.changes[n].isr) for x in Follower)
            for f in Follower
        )

    @step("RPN-21")
    def asks_with_what_it_knows(s, a: Follower, b: Follower, v: Version) -> bool:
        """For one at a time."""
        return (v in s.next.asked[a]) == (v in s.asked[a]) or (
            v == s.heard and v in s.next.asked[a] and (a == b or s.next.asked[b] == s.asked[b])
        )

    @step("RPN-9")
    def one_fetches_one(s, a: Follower, b: Follower) -> bool:
        return s.next.log_end[a] == s.log_end[a] or (
            s.next.log_end[a] == s.log_end[a] + 1 and (a == b or s.next.log_end[b] == s.log_end[b])
        )

    @lemma("RPN-21")
    def heard_was_written(s) -> bool:
        return s.heard <= len(s.changes)

    @lemma("RPN-21")
    def asks_with_what_it_heard(s, a: Version, f: Follower) -> bool:
        return a <= s.heard or a not in s.asked[f]

    @lemma("RPN-21")
    def later_changes_are_counted(s, f: Follower, v: Version) -> bool:
        return v < s.heard or v > len(s.changes) or not s.in_sync(f, v) or s.counted(f)

    @lemma("RPN-21")
    def unheard_changes_shrink(s, f: Follower, v: Version, w: Version) -> bool:
        """But for the first, which may be what was asked for."""
        return not (s.heard < v <= w <= len(s.changes)) or not s.in_sync(f, w) or s.in_sync(f, v)

    @witness
    def leader_asks_for_fewer(s, f: Follower) -> bool:
        """Before the controller did anything, and that one had all."""
        return len(s.changes) == 0 and 0 in s.asked[f] and s.leader_end > 0 and s.log_end[f] == s.leader_end

    @witness
    def controller_wants_fewer(s) -> bool:
        """Unasked, and twice."""
        return len(s.changes) == 2 and s.heard == 0 and all(0 not in s.asked[x] for x in Follower)

    @witness
    def leader_asks_for_more(s, f: Follower) -> bool:
        return s.heard == 1 and not s.in_sync(f, 1) and 1 in s.asked[f]

    @witness
    def leader_asks_for_the_only_one(s, f: Follower) -> bool:
        """That has all."""
        return (
            s.heard > 0
            and all((x == f) == s.counted(x) for x in Follower)
            and not s.in_sync(f, s.heard)
            and s.leader_end > 0
        )

    @witness
    def pending_expansion_is_made(s, f: Follower) -> bool:
        """And the leader does not know."""
        return s.in_sync(f, len(s.changes)) and not s.in_sync(f, s.heard)


class Generations(Model):
    """`hw`, `epoch`, `leader` and `known_isr` are each replica's own view. `requests` is what the controller ever sent,
    in the order of the epochs: request i has epoch i + 1, and any of them may arrive late or never. `isr` is the
    controller's. `committed` is what any high watermark ever covered, `committed_in` the epoch in which it first did.
    """

    log: dict[Replica, Records]
    hw: dict[Replica, Offset]
    epoch: dict[Replica, Epoch]
    leader: dict[Replica, Replica | None]
    known_isr: dict[Replica, set[Replica]]
    requests: Annotated[list[Request], Bounded(E)]
    isr: set[Replica]
    written: Annotated[int, Range(0, R)]
    committed: Records
    committed_in: Annotated[list[RealEpoch], Bounded(L)]
    ghosts = ("committed", "committed_in")

    @initial
    def start(s) -> None:
        s.next.isr = set(Replica)

    @define
    def elected(s) -> Replica | None:
        return s.requests[len(s.requests) - 1].leader if len(s.requests) > 0 else None

    @define
    def leads(s, r: Replica) -> bool:
        """r is the leader that the controller last named, and knows it."""
        return s.elected() == r and s.leader[r] == r and s.epoch[r] == len(s.requests)

    @define
    def follows(s, f: Replica, r: Replica) -> bool:
        """The leader r takes f for its follower: before KIP-320 whoever names it, whatever the epoch."""
        return s.leader[r] == r and s.leader[f] == r and (not FENCED or s.epoch[f] == s.epoch[r])

    @define
    def acknowledged(s, f: Replica, r: Replica) -> Offset:
        """How far r knows that the log of f, which follows it, is its own."""
        return len(s.log[f])

    @define
    def has_below(s, f: Replica, r: Replica, o: Offset) -> bool:
        """What r can tell of f: it follows, and both logs reach o. With `ON_FETCH` the record before o has one epoch in
        both."""
        return s.follows(f, r) and (
            o == 0
            or (
                o <= s.acknowledged(f, r)
                and o <= len(s.log[r])
                and (not ON_FETCH or s.log[f][o - 1].epoch == s.log[r][o - 1].epoch)
            )
        )

    @define
    def same(s, a: Replica, b: Replica, n: Offset) -> bool:
        """Both logs have one record there."""
        return n < len(s.log[a]) and n < len(s.log[b]) and s.log[a][n] == s.log[b][n]

    @define
    def last_match(s, f: Replica, r: Replica) -> Offset:
        """Behind the last record that both logs have at one offset."""
        return max((n + 1 for n in range(L) if s.same(f, r, n)), default=0)

    @define
    def end_of_last_epoch(s, f: Replica, r: Replica) -> Offset:
        """Where the last epoch of f ends in the log of r; its own high watermark where r does not know. (KIP-101)"""
        e = s.log[f][len(s.log[f]) - 1].epoch if len(s.log[f]) > 0 else 0
        its = s.log[r][len(s.log[r]) - 1].epoch if len(s.log[r]) > 0 else 0
        larger = min((n for n in range(L) if n < len(s.log[r]) and s.log[r][n].epoch > e), default=L)
        known = len(s.log[r]) if its == e else larger if larger < L else s.hw[f]
        return 0 if e == 0 else s.hw[f] if its == 0 else known

    @define
    def truncation_offset(s, f: Replica, r: Replica) -> Offset:
        return s.last_match(f, r) if BY_RECORD else s.end_of_last_epoch(f, r) if BY_EPOCH else s.hw[f]

    @define
    def truncate_to(s, f: Replica, o: Offset) -> None:
        s.next.log[f] = s.log[f][:o]
        s.next.hw[f] = min(s.hw[f], o)

    @define
    def send(s, leader: Replica | None, isr: set[Replica]) -> None:
        require(len(s.requests) < E)
        s.next.requests = s.requests + [Request(leader=leader, isr=isr)]
        s.next.isr = isr

    # The controller, at any time: a broker's failure, a better balance. Simplified: the controller never fails.
    @action("RPN-1", who="controller")
    def elect(s, r: Replica) -> None:
        require(s.elected() != r, r in s.isr)
        s.send(r, s.isr)

    # The controller, when a broker fails: that one leaves the in-sync replicas, the last one excepted if it leads.
    # Simplified: a broker that failed may go on; nobody can tell.
    @action("RPN-2", who="controller")
    def controller_shrinks(s, r: Replica) -> None:
        require(s.elected() == r or r in s.isr)
        s.send(None if s.elected() == r else s.elected(), s.isr if s.elected() == r and s.isr == {r} else s.isr - {r})

    # A replica that hears that it leads in a new epoch. Its high watermark is behind that of the leader before.
    @action("RPN-3", who="replica")
    def become_leader(s, r: Replica, e: RealEpoch) -> None:
        require(s.epoch[r] < e, e <= len(s.requests), s.requests[e - 1].leader == r)
        s.next.epoch[r] = e
        s.next.leader[r] = r
        s.next.known_isr[r] = s.requests[e - 1].isr

    # A replica that hears of another leader, and truncates. Simplified: with its questions to the leader one step.
    # Fenced, the leader has the same epoch: the log of another one may itself be truncated yet.
    @action("RPN-3", "RPN-4", "RPN-5", "RPN-6", "RPN-18", who="replica", fair="weak", per=("f",))
    def become_follower(s, f: Replica, r: Replica, e: RealEpoch) -> None:
        require(f != r, s.epoch[f] < e, e <= len(s.requests), s.requests[e - 1].leader == r)
        require(not FENCED or (s.leader[r] == r and s.epoch[r] == e))
        if not ON_FETCH:
            require(s.truncation_offset(f, r) <= len(s.log[f]))
            s.truncate_to(f, s.truncation_offset(f, r))
        s.next.epoch[f] = e
        s.next.leader[f] = r
        s.next.known_isr[f] = s.requests[e - 1].isr

    # A leader, deposed or not, on a producer's request. Simplified: a batch is one record.
    @action("RPN-8", who="leader")
    def write(s, r: Replica) -> None:
        require(s.leader[r] == r, len(s.log[r]) < L, s.written < R)
        s.next.log[r] = s.log[r] + [Record(number=s.written + 1, epoch=s.epoch[r])]
        s.next.written = s.written + 1

    # A follower: it gets the next record, and the high watermark with it. In the first try of KIP-320 it is told if its
    # last record is not the leader's, and truncates.
    @action("RPN-7", "RPN-9", "RPN-18", who="follower", fair="weak", per=("f",))
    def fetch(s, f: Replica, r: Replica) -> None:
        n = len(s.log[f])
        require(f != r, s.follows(f, r))
        if ON_FETCH and (n > len(s.log[r]) or (n > 0 and s.log[r][n - 1].epoch != s.log[f][n - 1].epoch)):
            s.truncate_to(f, s.last_match(f, r))
        else:
            require(n < len(s.log[r]))
            s.next.log[f] = s.log[f] + [s.log[r][n]]
            s.next.hw[f] = min(s.hw[r], n + 1)

    # A leader, when all that it knows as in sync follow it and have the record. As published, only with `ON_FETCH` or
    # `FENCED` it looks whether it has the record itself: it follows itself, but may be no member.
    @action("RPN-9", "RPN-18", who="leader", fair="weak", per=("r",))
    def increment_hw(s, r: Replica) -> None:
        require(s.leader[r] == r, s.hw[r] < (len(s.log[r]) if ON_FETCH or FENCED else L))
        require(
            all(s.follows(f, r) and s.acknowledged(f, r) > s.hw[r] for f in s.known_isr[r]),
            not ON_FETCH or all(s.has_below(f, r, s.hw[r] + 1) for f in s.known_isr[r]),
        )
        s.next.hw[r] = s.hw[r] + 1
        if s.hw[r] == len(s.committed) and s.hw[r] < len(s.log[r]):
            s.next.committed = s.committed + [s.log[r][s.hw[r]]]
            s.next.committed_in = s.committed_in + [s.epoch[r]]

    # The leader, through the controller (AlterPartition), which refuses those of an older epoch. Simplified: one step.
    @action("RPN-10", who="leader")
    def shrink(s, r: Replica, f: Replica) -> None:
        require(s.leads(r), f in s.known_isr[r], f != r, not s.has_below(f, r, len(s.log[r])))
        s.next.isr = s.known_isr[r] - {f}
        s.next.known_isr[r] = s.known_isr[r] - {f}

    # The leader, when the follower has reached the high watermark. Since the first try of KIP-320 that must have
    # reached the leader's own epoch: until then the leader does not know how far the leader before had committed.
    @action("RPN-11", who="leader")
    def expand(s, r: Replica, f: Replica) -> None:
        require(s.leads(r), f not in s.known_isr[r], s.has_below(f, r, s.hw[r]))
        if ON_FETCH or FENCED:
            require(s.hw[r] == len(s.log[r]) or s.log[r][s.hw[r]].epoch == s.epoch[r])
        s.next.isr = s.known_isr[r] | {f}
        s.next.known_isr[r] = s.known_isr[r] | {f}

    @invariant("RPN-13")
    def weak_isr(s, r: Replica, f: Replica, n: Offset) -> bool:
        """Whoever a leader knows as in sync has every record below its high watermark."""
        return s.leader[r] != r or f not in s.known_isr[r] or n >= s.hw[r] or s.same(r, f, n)

    @invariant("RPN-14")
    def strong_isr(s, r: Replica, f: Replica, n: Offset) -> bool:
        """Whoever is in sync has every record below any leader's high watermark: what a consumer may have read is on
        every replica that can be elected."""
        return s.leader[r] != r or f not in s.isr or n >= s.hw[r] or s.same(r, f, n)

    @invariant("RPN-1", "RPN-2", "RPN-10")
    def leader_in_isr(s) -> bool:
        """As published it is false in the first state, where nobody leads."""
        return s.elected() is None or s.elected() in s.isr

    @invariant("RPN-3")
    def one_leader_an_epoch(s, a: Replica, b: Replica) -> bool:
        return a == b or s.leader[a] != a or s.leader[b] != b or s.epoch[a] != s.epoch[b]

    @step("RPN-8")
    def a_leader_writes_in_its_epoch(s, r: Replica) -> bool:
        """A record that is new."""
        n = len(s.log[r])
        return (
            s.leader[r] != r
            or len(s.next.log[r]) <= n
            or (
                s.next.log[r][n].epoch == s.epoch[r]
                and s.next.log[r][n].number == s.next.written
                and s.next.written == s.written + 1
            )
        )

    @step("RPN-9")
    def a_leaders_high_watermark_rises(s, r: Replica) -> bool:
        """While it leads in one epoch."""
        return s.leader[r] != r or s.next.epoch[r] != s.epoch[r] or s.hw[r] <= s.next.hw[r]

    @step("RPN-9")
    def a_truncation_lowers_no_high_watermark_below_it(s, r: Replica) -> bool:
        return (
            (len(s.log[r]) <= len(s.next.log[r]) and s.next.epoch[r] == s.epoch[r])
            or s.next.hw[r] >= s.hw[r]
            or s.next.hw[r] >= len(s.next.log[r])
        )

    @step("RPN-9")
    def a_follower_has_its_leaders_high_watermark(s, f: Replica) -> bool:
        """With what it fetches: that of the replica that it follows, as far as its own log goes."""
        return (
            len(s.next.log[f]) <= len(s.log[f])
            or s.leader[f] == f
            or any(s.follows(f, r) and s.next.hw[f] == min(s.hw[r], len(s.next.log[f])) for r in Replica)
        )

    @step("RPN-3")
    def a_new_epoch_is_taken_over_as_it_was_sent(s, r: Replica) -> bool:
        """By who leads and by who follows."""
        e = s.next.epoch[r]
        return e == s.epoch[r] or (
            0 < e <= len(s.requests)
            and s.next.leader[r] == s.requests[e - 1].leader
            and all((x in s.next.known_isr[r]) == (x in s.requests[e - 1].isr) for x in Replica)
        )

    @step("RPN-3")
    def epochs_rise(s, r: Replica) -> bool:
        return s.epoch[r] <= s.next.epoch[r]

    @step("RPN-1", "RPN-2")
    def what_was_sent_stays(s, i: Epoch) -> bool:
        return i >= len(s.requests) or (i < len(s.next.requests) and s.next.requests[i] == s.requests[i])

    @step("RPN-1", "RPN-2")
    def each_request_says_something_new(s) -> bool:
        """Another leader than the one before, or fewer in sync than there are."""
        return (
            len(s.next.requests) == len(s.requests)
            or s.next.requests[len(s.requests)].leader != s.elected()
            or s.next.isr != s.isr
        )

    @step("RPN-1", "RPN-2")
    def a_request_names_who_is_in_sync(s) -> bool:
        """From then on."""
        n = len(s.requests)
        return len(s.next.requests) == n or s.next.requests[n].isr == s.next.isr

    @step("RPN-10")
    def who_leaves_lags(s, r: Replica, f: Replica) -> bool:
        """If its leader takes it out."""
        return (
            len(s.next.requests) > len(s.requests)
            or not (s.leads(r) and f in s.isr and f not in s.next.isr)
            or (f != r and not s.has_below(f, r, len(s.log[r])))
        )

    @step("RPN-11")
    def who_joins_is_as_far(s, r: Replica, f: Replica) -> bool:
        return (
            not (s.leads(r) and f not in s.isr and f in s.next.isr)
            or len(s.next.requests) > len(s.requests)
            or (
                s.has_below(f, r, s.hw[r])
                and (not (ON_FETCH or FENCED) or s.hw[r] == len(s.log[r]) or s.log[r][s.hw[r]].epoch == s.epoch[r])
            )
        )

    @step("RPN-10", "RPN-11")
    def the_leader_knows_of_its_change(s) -> bool:
        """Nobody but the leader and the controller changes who is in sync, and the leader by one."""
        return (
            s.next.isr == s.isr
            or len(s.next.requests) > len(s.requests)
            or any(
                s.leads(r)
                and s.next.known_isr[r] == s.next.isr
                and any(s.next.isr == s.isr - {f} or s.next.isr == s.isr | {f} for f in Replica)
                for r in Replica
            )
        )

    @step("RPN-3", "RPN-10", "RPN-11")
    def others_know_what_they_were_sent(s, r: Replica) -> bool:
        return (
            s.next.known_isr[r] == s.known_isr[r]
            or s.next.epoch[r] > s.epoch[r]
            or (s.leads(r) and s.next.known_isr[r] == s.next.isr)
        )

    @step("RPN-6", "RPN-8")
    def a_log_is_cut_or_grows(s, r: Replica, n: Offset) -> bool:
        """By one record."""
        return len(s.next.log[r]) <= len(s.log[r]) + 1 and (
            n >= min(len(s.log[r]), len(s.next.log[r])) or s.next.log[r][n] == s.log[r][n]
        )

    @invariant("RPN-9")
    def the_high_watermark_is_in_the_log(s, r: Replica) -> bool:
        """A leader that is not in sync could raise it beyond, as published, before the first try of KIP-320."""
        return (s.leader[r] == r and not (ON_FETCH or FENCED)) or s.hw[r] <= len(s.log[r])

    @witness
    def follows_the_newest(s, f: Replica, r: Replica) -> bool:
        return f != r and s.leads(r) and s.leader[f] == r and s.epoch[f] == len(s.requests)

    @witness
    def fewer_in_sync_than_the_controller_sent(s, r: Replica, f: Replica) -> bool:
        """By the leader's change, in the first epoch, of which f did not hear."""
        return len(s.requests) == 1 and s.leads(r) and f not in s.isr and f in s.requests[0].isr and s.epoch[f] == 0

    @witness
    def a_record_is_cut_off(s) -> bool:
        """It is nowhere any more."""
        return s.written > 0 and all(x.number != 1 for r in Replica for x in s.log[r])

    @witness
    def more_in_sync_than_the_controller_sent(s, r: Replica) -> bool:
        return s.leads(r) and len(s.isr) > len(s.requests[len(s.requests) - 1].isr)

    @witness
    def committed_by_two_leaders(s) -> bool:
        return any(
            s.hw[a] > 1 and s.log[a][0].epoch != s.log[a][1].epoch and len(s.isr) > 1 and s.leads(a) for a in Replica
        )


class Released(Generations):
    """The last generation, with what holds it up for any number of replicas, offsets, records and epochs. It is true
    with `FENCED` and `BY_RECORD`, without `ON_FETCH`."""

    @refines(CommittedLog, "RPN-12")
    def users(s) -> CommittedLog:
        """A consumer of a replica is shown its log below its high watermark."""
        return CommittedLog.shown(committed=s.committed, sees={r: s.log[r][: s.hw[r]] for r in Replica})

    @invariant("RPN-11", "RPN-14")
    def no_committed_record_is_lost(s, r: Replica, n: Offset) -> bool:
        """Whoever is in sync has it, where it was."""
        return r not in s.isr or n >= len(s.committed) or (n < len(s.log[r]) and s.log[r][n] == s.committed[n])

    @invariant("RPN-9")
    def replicas_agree_below_the_high_watermark(s, a: Replica, b: Replica, n: Offset) -> bool:
        return n >= min(s.hw[a], s.hw[b]) or s.same(a, b, n)

    @invariant("RPN-6")
    def one_record_an_epoch_and_offset(s, a: Replica, b: Replica, n: Offset) -> bool:
        """So that to compare epochs is to compare records."""
        return (
            n >= min(len(s.log[a]), len(s.log[b]))
            or s.log[a][n].epoch != s.log[b][n].epoch
            or s.log[a][n] == s.log[b][n]
        )

    @leads_to("RPN-19")
    def what_is_written_is_committed(s, r: Replica, n: Offset) -> tuple[bool, bool]:
        """Once the controller changes nothing any more, if followers hear of their leader and fetch."""
        return len(s.requests) == E and s.leads(r) and n < len(s.log[r]), n < s.hw[r]

    @lemma("RPN-9")
    def ghost_lengths(s) -> bool:
        return len(s.committed) == len(s.committed_in)

    @lemma("RPN-9")
    def hw_is_committed(s, r: Replica, n: Offset) -> bool:
        return (
            s.hw[r] <= len(s.committed)
            and s.hw[r] <= len(s.log[r])
            and (n >= s.hw[r] or (s.log[r][n] == s.committed[n] and s.committed_in[n] <= s.epoch[r]))
        )

    @lemma("RPN-14")
    def isr_is_as_far(s, x: Replica, n: Offset) -> bool:
        return x not in s.isr or n >= len(s.committed) or s.committed_in[n] <= s.epoch[x]

    @lemma("RPN-3")
    def epoch_names_leader(s, r: Replica) -> bool:
        return (
            s.epoch[r] <= len(s.requests)
            and (s.leader[r] is None) == (s.epoch[r] == 0)
            and (s.epoch[r] == 0 or s.leader[r] == s.requests[s.epoch[r] - 1].leader)
        )

    @lemma("RPN-18")
    def leader_moves_first(s, f: Replica, r: Replica) -> bool:
        return s.leader[f] != r or s.epoch[r] >= s.epoch[f]

    @lemma("RPN-18")
    def follower_is_prefix(s, f: Replica, r: Replica, n: Offset) -> bool:
        return not (s.leader[f] == r and s.leader[r] == r and s.epoch[f] == s.epoch[r]) or (
            len(s.log[f]) <= len(s.log[r]) and (n >= len(s.log[f]) or s.log[f][n] == s.log[r][n])
        )

    @lemma("RPN-8")
    def records_have_writers(s, r: Replica, n: Offset) -> bool:
        return n >= len(s.log[r]) or (
            1 <= s.log[r][n].epoch <= s.epoch[r]
            and all(s.epoch[x] >= s.log[r][n].epoch for x in Replica if s.requests[s.log[r][n].epoch - 1].leader == x)
        )

    @lemma("RPN-8")
    def epochs_rise_along_a_log(s, r: Replica, i: Offset, j: Offset) -> bool:
        return not (i < j and j < len(s.log[r])) or s.log[r][i].epoch <= s.log[r][j].epoch

    @lemma("RPN-8")
    def committed_have_writers(s, n: Offset) -> bool:
        return n >= len(s.committed) or (
            1 <= s.committed[n].epoch <= len(s.requests)
            and s.committed_in[n] <= len(s.requests)
            and all(
                s.epoch[x] >= s.committed[n].epoch for x in Replica if s.requests[s.committed[n].epoch - 1].leader == x
            )
        )

    @lemma("RPN-9")
    def commits_have_leaders(s, n: Offset) -> bool:
        """Who committed a record knew that it led, and does not forget the epoch."""
        return n >= len(s.committed_in) or (
            s.committed_in[n] <= len(s.requests)
            and any(s.requests[s.committed_in[n] - 1].leader == x and s.epoch[x] >= s.committed_in[n] for x in Replica)
        )

    @lemma("RPN-9")
    def leader_shows_what_it_committed(s, r: Replica, n: Offset) -> bool:
        return not (s.leader[r] == r and n < len(s.committed_in) and s.committed_in[n] == s.epoch[r]) or n < s.hw[r]

    @lemma("RPN-10")
    def leader_is_in_sync_with_itself(s, r: Replica) -> bool:
        return s.leader[r] != r or r in s.known_isr[r]

    @lemma("RPN-6")
    def log_matching(s, a: Replica, b: Replica, i: Offset, j: Offset) -> bool:
        """Logs that have one record in common are the same up to it."""
        return not (j <= i and i < len(s.log[a]) and i < len(s.log[b]) and s.log[a][i].epoch == s.log[b][i].epoch) or (
            s.log[a][j] == s.log[b][j]
        )

    @lemma("RPN-6")
    def leader_has_its_epoch(s, r: Replica, x: Replica, n: Offset) -> bool:
        """What was written in a leader's epoch is in its log."""
        return not (s.leader[r] == r and n < len(s.log[x]) and s.log[x][n].epoch == s.epoch[r]) or (
            n < len(s.log[r]) and s.log[r][n] == s.log[x][n]
        )

    @lemma("RPN-1")
    def leader_in_its_isr(s) -> bool:
        return all(
            r in s.requests[i].isr
            for i in range(E + 1)
            for r in Replica
            if i < len(s.requests) and s.requests[i].leader == r
        ) and all(r in s.isr for r in Replica if len(s.requests) > 0 and s.requests[len(s.requests) - 1].leader == r)

    @lemma("RPN-10")
    def isr_known_by_leader(s, r: Replica, x: Replica) -> bool:
        return not (s.leader[r] == r and s.epoch[r] == len(s.requests)) or (x in s.isr) == (x in s.known_isr[r])

    @lemma("RPN-2", "RPN-10")
    def isr_as_sent(s) -> bool:
        """Until the leader knows that it leads."""
        return (
            len(s.requests) == 0
            or any(s.requests[len(s.requests) - 1].leader == r and s.epoch[r] >= len(s.requests) for r in Replica)
            or all((x in s.isr) == (x in s.requests[len(s.requests) - 1].isr) for x in Replica)
        )

    @lemma("RPN-14")
    def deposed_or_in_charge(s, i: Epoch, r: Replica) -> bool:
        """A leader that may commit yet knows all as in sync that are, and all that later requests name."""
        return (
            not (i < len(s.requests) and s.requests[i].leader == r and s.epoch[r] == i + 1)
            or any(x in s.known_isr[r] and s.epoch[x] > s.epoch[r] for x in Replica)
            or (
                all(x in s.known_isr[r] for x in Replica if x in s.isr)
                and all(
                    x in s.known_isr[r]
                    for k in range(E + 1)
                    for x in Replica
                    if i < k and k < len(s.requests) and x in s.requests[k].isr
                )
            )
        )

    @lemma("RPN-14")
    def deposed_before_it_led(s) -> bool:
        """The same of one that has yet to learn that it leads."""
        return all(
            any(x in s.requests[i].isr and s.epoch[x] > i + 1 for x in Replica)
            or (
                all(x in s.requests[i].isr for x in Replica if x in s.isr)
                and all(
                    x in s.requests[i].isr
                    for k in range(E + 1)
                    for x in Replica
                    if i < k and k < len(s.requests) and x in s.requests[k].isr
                )
            )
            for i in range(E + 1)
            for r in Replica
            if i < len(s.requests) and s.requests[i].leader == r and s.epoch[r] < i + 1
        )

    @lemma("RPN-14")
    def later_isr_has_earlier_commits(s, i: Epoch, x: Replica, n: Offset) -> bool:
        """Whoever a request names as in sync has what was committed in the epochs before it."""
        return not (
            i < len(s.requests) and x in s.requests[i].isr and n < len(s.committed) and s.committed_in[n] < i + 1
        ) or (s.epoch[x] >= s.committed_in[n] and n < len(s.log[x]) and s.log[x][n] == s.committed[n])

    @lemma("RPN-14")
    def leader_has_what_was_committed(s, r: Replica, n: Offset) -> bool:
        """In its epoch and before."""
        return not (s.leader[r] == r and n < len(s.committed) and s.committed_in[n] <= s.epoch[r]) or (
            n < len(s.log[r]) and s.log[r][n] == s.committed[n]
        )

    @lemma("RPN-9")
    def own_records_committed_by_leader(s, r: Replica, n: Offset) -> bool:
        return not (
            s.leader[r] == r
            and s.epoch[r] == len(s.requests)
            and n < len(s.committed)
            and s.committed[n].epoch == len(s.requests)
        ) or (n < s.hw[r])

    @lemma("RPN-13")
    def known_isr_is_as_far(s, r: Replica, f: Replica, n: Offset) -> bool:
        return not (s.leader[r] == r and f in s.known_isr[r] and n < s.hw[r]) or s.epoch[f] >= s.committed_in[n]

    @lemma("RPN-13")
    def known_isr_has_visible(s, r: Replica, f: Replica, n: Offset) -> bool:
        """Whoever a leader knows as in sync has every record below its high watermark, and keeps it."""
        return not (s.leader[r] == r and f in s.known_isr[r] and n < s.hw[r]) or (
            n < len(s.log[f]) and s.log[f][n] == s.committed[n]
        )


class Fetching(Generations):
    """`fetched` is the offset from which a follower last fetched in its epoch, if the logs did not diverge there: what
    its leader knows of it. `read` is what the consumer has read; `heard` the epoch of the leader that it last asked."""

    fetched: dict[Replica, Offset]
    read: Records
    heard: Epoch

    @define
    def acknowledged(s, f: Replica, r: Replica) -> Offset:
        return len(s.log[r]) if f == r else s.fetched[f]

    @define
    def end_of(s, q: Records, e: Epoch) -> Offset:
        """Where the epochs up to e end in q: the epoch cache's answer to OffsetsForLeaderEpoch."""
        return max((n for n in range(1, L + 1) if n <= len(q) and q[n - 1].epoch <= e), default=0)

    @define
    def last_epoch(s, q: Records, o: Offset) -> Epoch:
        """The epoch of the last record below o."""
        return q[o - 1].epoch if o > 0 else 0

    @define
    def diverges(s, q: Records, r: Replica) -> bool:
        """What r finds out from the length of q and its last epoch alone."""
        e = s.last_epoch(q, len(q))
        o = s.end_of(s.log[r], e)
        return o < len(q) or s.last_epoch(s.log[r], o) < e

    # Simplified: as before. An unclean election makes the log of the new leader the truth.
    @action("RPN-1", "RPN-17", who="controller")
    def elect(s, r: Replica) -> None:
        require(s.elected() != r, r in s.isr or UNCLEAN)
        s.send(r, s.isr if r in s.isr else {r})

    # A replica that hears of another leader. It asks nothing and keeps its log: the fetches will tell.
    @action("RPN-3", "RPN-15", who="replica")
    def become_follower(s, f: Replica, r: Replica, e: RealEpoch) -> None:
        require(f != r, s.epoch[f] < e, e <= len(s.requests), s.requests[e - 1].leader == r)
        s.next.epoch[f] = e
        s.next.leader[f] = r
        s.next.known_isr[f] = s.requests[e - 1].isr
        s.next.fetched[f] = 0

    # A follower of the leader's epoch whose last record the leader has: it gets the next one if there is one, and the
    # leader learns how far its log reaches.
    @action("RPN-9", "RPN-15", "RPN-18", who="follower")
    def fetch(s, f: Replica, r: Replica) -> None:
        require(f != r, s.follows(f, r), not s.diverges(s.log[f], r))
        if len(s.log[f]) < len(s.log[r]):
            s.next.log[f] = s.log[f] + [s.log[r][len(s.log[f])]]
        s.next.hw[f] = min(s.hw[r], min(len(s.log[f]) + 1, len(s.log[r])))
        s.next.fetched[f] = len(s.log[f])

    # A follower that is told another epoch and its end: it cuts its log there, and at its own end of that epoch. It may
    # take several fetches to find the last record that both have.
    @action("RPN-15", who="follower")
    def truncate(s, f: Replica, r: Replica) -> None:
        require(s.follows(f, r), s.diverges(s.log[f], r))
        o = s.end_of(s.log[r], s.last_epoch(s.log[f], len(s.log[f])))
        p = min(o, s.end_of(s.log[f], s.last_epoch(s.log[r], o)))
        s.next.log[f] = s.log[f][:p]
        s.next.hw[f] = min(s.hw[f], p)

    # The consumer, at a leader that is new to it: it asks whether its position is still in the log, and if not, begins
    # again. Simplified: its reset policy is "earliest"; it looks at the epoch of the answer too, as a broker does.
    @action("RPN-16", who="consumer")
    def validate(s, r: Replica) -> None:
        require(s.leader[r] == r, s.heard < s.epoch[r])
        s.next.heard = s.epoch[r]
        if s.diverges(s.read, r):
            s.next.read = []

    # The consumer, at a leader of the epoch that it knows, below the high watermark.
    @action("RPN-16", who="consumer")
    def consume(s, r: Replica) -> None:
        require(s.leader[r] == r, s.epoch[r] == s.heard, len(s.read) < s.hw[r])
        s.next.read = s.read + [s.log[r][len(s.read)]]

    @invariant("RPN-13")
    def weak_isr(s, r: Replica, f: Replica, n: Offset) -> bool:
        return UNCLEAN or s.leader[r] != r or f not in s.known_isr[r] or n >= s.hw[r] or s.same(r, f, n)

    @invariant("RPN-14")
    def strong_isr(s, r: Replica, f: Replica, n: Offset) -> bool:
        return UNCLEAN or s.leader[r] != r or f not in s.isr or n >= s.hw[r] or s.same(r, f, n)

    @invariant("RPN-9")
    def replicas_agree_below_the_high_watermark(s, a: Replica, b: Replica, n: Offset) -> bool:
        return UNCLEAN or n >= min(s.hw[a], s.hw[b]) or s.same(a, b, n)

    @invariant("RPN-14", "RPN-16")
    def nothing_read_is_lost(s, r: Replica) -> bool:
        """What the consumer has read is in the log of whoever is in sync."""
        return (
            UNCLEAN
            or r not in s.isr
            or all(n < len(s.log[r]) and s.log[r][n] == s.read[n] for n in range(L) if n < len(s.read))
        )

    @step("RPN-16", "RPN-17")
    def reads_no_gap(s) -> bool:
        """What the consumer has read is, whenever it reads more, a leader's log from its beginning on, whatever was
        lost by unclean elections."""
        return len(s.next.read) <= len(s.read) or any(
            s.leader[r] == r and s.next.read == s.log[r][: len(s.next.read)] for r in Replica
        )

    @witness
    def follower_truncates(s, f: Replica, r: Replica) -> bool:
        return s.follows(f, r) and s.diverges(s.log[f], r)


class Candidates(Model):
    """Who may be elected, as the controller keeps it with KIP-966."""

    isr: set[Replica]
    elr: set[Replica]
    crashes: Annotated[int, Range(0, C)]

    @initial
    def start(s) -> None:
        s.next.isr = set(Replica)

    @action("RPN-2", "RPN-22", who="controller")
    def leave(s, f: Replica) -> None:
        require(f in s.isr)
        s.next.isr = s.isr - {f}
        s.next.elr = s.elr | {f} if len(s.isr - {f}) < MIN else set()

    # As its leader asks for, or elected.
    @action("RPN-22", "RPN-24", who="controller")
    def join(s, f: Replica) -> None:
        require(f not in s.isr)
        s.next.isr = s.isr | {f}
        s.next.elr = s.elr - {f} if len(s.isr | {f}) < MIN else set()

    @action("RPN-23", who="broker, controller")
    def unclean_shutdown(s, f: Replica) -> None:
        require(s.crashes < C)
        s.next.crashes = s.crashes + 1
        s.next.isr = s.isr - {f}
        s.next.elr = s.elr - {f}

    @invariant("RPN-25")
    def enough_are_left(s) -> bool:
        """One fewer at most with each unclean shutdown."""
        return len(Replica) < MIN or len(s.isr) + len(s.elr) + s.crashes >= MIN

    @invariant("RPN-22")
    def in_sync_or_eligible(s, r: Replica) -> bool:
        return not (r in s.isr and r in s.elr) and (len(s.isr) < MIN or r not in s.elr)

    @step("RPN-22", "RPN-23")
    def who_is_eligible_was_a_candidate(s, r: Replica) -> bool:
        return r not in s.next.elr or r in s.isr or r in s.elr

    @step("RPN-23")
    def who_lost_records_is_no_candidate(s) -> bool:
        """With each unclean shutdown there is one, and nothing else changes."""
        return s.next.crashes == s.crashes or any(
            f not in s.next.isr
            and f not in s.next.elr
            and all(
                x == f or ((x in s.next.isr) == (x in s.isr) and (x in s.next.elr) == (x in s.elr)) for x in Replica
            )
            for f in Replica
        )

    @witness
    def all_are_in_sync_again(s) -> bool:
        return s.crashes > 0 and s.isr == set(Replica)

    @witness
    def nobody_is_left(s) -> bool:
        return s.isr == set() and s.elr == set()


class Eligible(Generations):
    """KIP-966 on KIP-320, with changes of the in-sync replicas that are pending. `elr` are the eligible replicas.
    `proposed` is what a leader has asked the controller for, empty if nothing; of a leader in `accepted` the controller
    has taken it, and the answer is on its way. `crashes` counts unclean shutdowns; `acked` is how many records were
    acknowledged to producers that asked for all. It is true with `ELR` and `STRICT`, on the flags of KIP-320."""

    elr: set[Replica]
    proposed: dict[Replica, set[Replica]]
    accepted: set[Replica]
    crashes: Annotated[int, Range(0, C)]
    acked: Offset
    ghosts = ("committed", "committed_in", "acked")

    @define
    def maximal_isr(s, r: Replica) -> set[Replica]:
        """Those that r knows as in sync, and those that may be by now."""
        return s.known_isr[r] | s.proposed[r]

    @define
    def last_known(s, r: Replica) -> bool:
        """r led last."""
        return any(
            s.requests[i].leader == r
            and all(s.requests[k].leader is None for k in range(E) if i < k and k < len(s.requests))
            for i in range(E)
            if i < len(s.requests)
        )

    @define
    def epoch_start(s, r: Replica) -> Offset:
        """Where the log of the leader r ended when its epoch began."""
        n = len(s.log[r])
        return min((i for i in range(L) if i < n and s.log[r][i].epoch == s.epoch[r]), default=n)

    @define
    def tell(s, leader: Replica | None, isr: set[Replica], lost: set[Replica]) -> None:
        """The controller's change of the in-sync replicas, of which some have lost records."""
        s.send(leader, isr)
        s.next.elr = (s.elr | s.isr) - isr - lost if ELR and len(isr) < MIN else set()

    @define
    def forget(s, r: Replica) -> None:
        s.next.proposed[r] = set()
        s.next.accepted = s.accepted - {r}

    # The controller: one in sync; if there is none, an eligible one; if there is none either, the leader that it knew
    # last, which may have lost anything.
    @action("RPN-1", "RPN-24", who="controller")
    def elect(s, r: Replica) -> None:
        require(s.elected() != r)
        require(
            r in s.isr
            or (ELR and s.isr == set() and r in s.elr)
            or (ELR and UNCLEAN and s.isr == set() and s.elr == set() and s.last_known(r))
        )
        s.tell(r, s.isr if r in s.isr else {r}, set())

    # The controller, when a broker fails or shuts down. Before KIP-966 the last one stays in sync.
    @action("RPN-2", "RPN-22", "RPN-27", who="controller")
    def controller_shrinks(s, r: Replica) -> None:
        stays = not ELR and s.isr == {r}
        require(s.elected() == r or (r in s.isr and not stays))
        s.tell(None if s.elected() == r else s.elected(), s.isr if stays else s.isr - {r}, set())

    # A broker that loses the end of its log with the power, and registers again: the controller removes it from all
    # that it is in. Simplified: one step. What its leader counts of the lost records until it hears of that, it could
    # have counted before.
    @action("RPN-23", "RPN-27", who="broker, controller")
    def unclean_shutdown(s, r: Replica, o: Offset) -> None:
        require(s.crashes < C, o < len(s.log[r]))
        s.next.crashes = s.crashes + 1
        s.truncate_to(r, o)
        s.next.epoch[r] = len(s.requests)
        s.next.leader[r] = None
        s.next.known_isr[r] = set()
        s.forget(r)
        stays = not ELR and s.isr == {r}
        s.tell(None if s.elected() == r else s.elected(), s.isr if stays else s.isr - {r}, {r})

    @action("RPN-3", who="replica")
    def become_leader(s, r: Replica, e: RealEpoch) -> None:
        require(s.epoch[r] < e, e <= len(s.requests), s.requests[e - 1].leader == r)
        s.next.epoch[r] = e
        s.next.leader[r] = r
        s.next.known_isr[r] = s.requests[e - 1].isr
        s.forget(r)

    @action("RPN-3", "RPN-6", "RPN-18", who="replica", fair="weak", per=("f",))
    def become_follower(s, f: Replica, r: Replica, e: RealEpoch) -> None:
        require(f != r, s.epoch[f] < e, e <= len(s.requests), s.requests[e - 1].leader == r)
        require(s.leader[r] == r, s.epoch[r] == e)
        s.truncate_to(f, s.truncation_offset(f, r))
        s.next.epoch[f] = e
        s.next.leader[f] = r
        s.next.known_isr[f] = s.requests[e - 1].isr
        s.forget(f)

    # A leader: with a change pending it counts over those in sync before and after it. KIP-966: and only while enough
    # are in sync for sure.
    @action("RPN-9", "RPN-18", "RPN-20", "RPN-21", "RPN-26", who="leader", fair="weak", per=("r",))
    def increment_hw(s, r: Replica) -> None:
        require(s.leader[r] == r, s.hw[r] < len(s.log[r]), not STRICT or len(s.known_isr[r]) >= MIN)
        require(all(s.follows(f, r) and s.acknowledged(f, r) > s.hw[r] for f in s.maximal_isr(r)))
        s.next.hw[r] = s.hw[r] + 1
        if s.hw[r] == len(s.committed) and s.hw[r] < len(s.log[r]):
            s.next.committed = s.committed + [s.log[r][s.hw[r]]]
            s.next.committed_in = s.committed_in + [s.epoch[r]]
        if len(s.maximal_isr(r)) >= MIN:
            s.next.acked = max(s.acked, s.hw[r] + 1)

    # A leader asks the controller (AlterPartition), once at a time.
    @action("RPN-10", "RPN-21", who="leader")
    def shrink(s, r: Replica, f: Replica) -> None:
        require(s.leader[r] == r, s.proposed[r] == set(), f in s.known_isr[r], f != r)
        require(not s.has_below(f, r, len(s.log[r])))
        s.next.proposed[r] = s.known_isr[r] - {f}

    # A leader, when the follower has reached the high watermark and the end that the log had when it became leader.
    @action("RPN-21", "RPN-28", who="leader", fair="weak", per=("r", "f"))
    def expand(s, r: Replica, f: Replica) -> None:
        require(s.leader[r] == r, s.proposed[r] == set(), f not in s.known_isr[r])
        require(s.has_below(f, r, max(s.hw[r], s.epoch_start(r))))
        s.next.proposed[r] = s.known_isr[r] | {f}

    # The controller: of the leader of its current epoch. Simplified: of another it does not answer, and that one hears
    # of its new epoch.
    @action("RPN-10", "RPN-21", "RPN-22", who="controller", fair="weak", per=("r",))
    def accept(s, r: Replica) -> None:
        require(s.elected() == r, s.epoch[r] == len(s.requests), s.proposed[r] != set(), r not in s.accepted)
        s.next.isr = s.proposed[r]
        s.next.elr = (s.elr | s.isr) - s.proposed[r] if ELR and len(s.proposed[r]) < MIN else set()
        s.next.accepted = s.accepted | {r}

    @action("RPN-21", who="leader", fair="weak", per=("r",))
    def hear(s, r: Replica) -> None:
        require(r in s.accepted)
        s.next.known_isr[r] = s.proposed[r]
        s.forget(r)

    @invariant("RPN-13", "RPN-23")
    def weak_isr(s, r: Replica, f: Replica, n: Offset) -> bool:
        """But for whoever lost records since: the leader may not have heard of it."""
        return (
            s.leader[r] != r
            or f not in s.known_isr[r]
            or s.leader[f] is None
            or s.epoch[f] > s.epoch[r]
            or n >= s.hw[r]
            or s.same(r, f, n)
        )

    @invariant("RPN-14", "RPN-25")
    def no_committed_record_is_lost(s, r: Replica, n: Offset) -> bool:
        """Whoever is in sync or eligible has it, where it was, until the last known leader was elected uncleanly."""
        return (
            (UNCLEAN and s.crashes >= MIN)
            or r not in s.isr | s.elr
            or n >= len(s.committed)
            or (n < len(s.log[r]) and s.log[r][n] == s.committed[n])
        )

    @invariant("RPN-25", "RPN-26")
    def no_acknowledged_record_is_lost(s, r: Replica, n: Offset) -> bool:
        """To a producer that asked for all in sync, and at least `MIN`."""
        return (
            (UNCLEAN and s.crashes >= MIN)
            or r not in s.isr | s.elr
            or n >= s.acked
            or (n < len(s.log[r]) and s.log[r][n] == s.committed[n])
        )

    @invariant("RPN-25")
    def enough_are_left(s) -> bool:
        """One fewer at most with each unclean shutdown."""
        return not ELR or len(s.isr | s.elr) + s.crashes >= MIN

    @invariant("RPN-22")
    def in_sync_or_eligible(s, r: Replica) -> bool:
        return not (r in s.isr and r in s.elr) and (len(s.isr) < MIN or r not in s.elr)

    @invariant("RPN-21")
    def only_a_leader_has_asked(s, r: Replica) -> bool:
        """And the controller answers nobody else."""
        return s.leader[r] == r if s.proposed[r] != set() else r not in s.accepted

    @invariant("RPN-21", "RPN-22")
    def leader_counts_all_candidates(s, r: Replica, f: Replica) -> bool:
        """Whom the controller has in sync, and whoever is eligible if the leader may commit yet."""
        return (
            not s.leads(r)
            or f in s.maximal_isr(r)
            or (f not in s.isr and (f not in s.elr or len(s.known_isr[r]) < MIN))
        )

    @step("RPN-10", "RPN-21")
    def who_leaves_lags(s, r: Replica, f: Replica) -> bool:
        """When its leader asks for it."""
        return (
            s.proposed[r] != set()
            or s.next.proposed[r] == set()
            or f not in s.known_isr[r]
            or f in s.next.proposed[r]
            or (f != r and not s.has_below(f, r, len(s.log[r])))
        )

    @step("RPN-28")
    def who_joins_is_as_far(s, r: Replica, f: Replica) -> bool:
        return not (s.proposed[r] == set() and f not in s.known_isr[r] and f in s.next.proposed[r]) or (
            s.follows(f, r)
            and len(s.log[f]) >= s.hw[r]
            and all(s.log[r][n].epoch == s.epoch[r] for n in range(L) if len(s.log[f]) <= n and n < len(s.log[r]))
        )

    @step("RPN-10", "RPN-21")
    def the_leader_knows_of_its_change(s) -> bool:
        """It asked for it, in its epoch."""
        return (
            s.next.isr == s.isr
            or len(s.next.requests) > len(s.requests)
            or any(s.leads(r) and s.next.isr == s.proposed[r] and r in s.next.accepted for r in Replica)
        )

    @step("RPN-3", "RPN-21", "RPN-23")
    def others_know_what_they_were_sent(s, r: Replica) -> bool:
        return (
            s.next.known_isr[r] == s.known_isr[r]
            or s.next.epoch[r] > s.epoch[r]
            or s.next.leader[r] is None
            or (r in s.accepted and s.next.known_isr[r] == s.proposed[r])
        )

    @step("RPN-9")
    def a_leaders_high_watermark_rises(s, r: Replica) -> bool:
        """While it leads in one epoch, and loses nothing."""
        return s.leader[r] != r or s.next.leader[r] is None or s.next.epoch[r] != s.epoch[r] or s.hw[r] <= s.next.hw[r]

    @step("RPN-3")
    def a_new_epoch_is_taken_over_as_it_was_sent(s, r: Replica) -> bool:
        """By who leads and by who follows. Who has lost records waits for the next."""
        e = s.next.epoch[r]
        return (
            e == s.epoch[r]
            or s.next.leader[r] is None
            or (
                0 < e <= len(s.requests)
                and s.next.leader[r] == s.requests[e - 1].leader
                and all((x in s.next.known_isr[r]) == (x in s.requests[e - 1].isr) for x in Replica)
            )
        )

    @step("RPN-1", "RPN-2")
    def each_request_says_something_new(s) -> bool:
        return (
            len(s.next.requests) == len(s.requests)
            or s.next.requests[len(s.requests)].leader != s.elected()
            or s.next.isr != s.isr
            or s.next.crashes > s.crashes
        )

    @leads_to("RPN-19")
    def what_is_written_is_committed(s, r: Replica, n: Offset) -> tuple[bool, bool]:
        return len(s.requests) == E and s.leads(r) and n < len(s.log[r]), n < s.hw[r]

    @witness
    def committed_by_two_leaders(s) -> bool:
        """Written by one, and shown by another that leads with all that it counts over."""
        return any(s.hw[a] > 0 and s.log[a][0].epoch < s.epoch[a] and s.leads(a) and len(s.isr) > 1 for a in Replica)

    @witness
    def the_last_known_leads(s, r: Replica) -> bool:
        """If it may: nobody was in sync or eligible."""
        n = len(s.requests)
        return not UNCLEAN or (
            s.elected() == r and s.isr == {r} and s.elr == set() and n > 1 and s.requests[n - 2].isr == set()
        )

    @witness
    def eligible_has_what_is_visible(s, r: Replica, x: Replica) -> bool:
        """Out of sync, and complete."""
        return x in s.elr and s.leads(r) and s.hw[r] > 0 and s.same(r, x, 0)


TO_HIGH_WATERMARK = {"BY_EPOCH": False, "BY_RECORD": False, "ON_FETCH": False, "FENCED": False}
KIP_101 = TO_HIGH_WATERMARK | {"BY_EPOCH": True}
KIP_279 = KIP_101 | {"BY_RECORD": True}
FIRST_TRY = KIP_279 | {"ON_FETCH": True}
KIP_320 = KIP_279 | {"FENCED": True}
KIP_966 = KIP_320 | {"ELR": True, "STRICT": True}
"""The generations, by their flags."""


MODELS = [
    Expectation(CommittedLog, sizes={"Replica": 2, "L": 2, "R": 2, "E": 2}, distinct=125, generated=771, depth=5),
    Expectation(
        Generations,
        sizes={"Replica": 2, "L": 2, "R": 2, "E": 3, **KIP_279},
        distinct=9_027,
        generated=21_877,
        depth=18,
        deadlock=True,
        note="the distinct states of the published model",
    ),
    Expectation(
        Generations,
        sizes={"Replica": 2, "L": 2, "R": 2, "E": 3, **FIRST_TRY},
        distinct=8_429,
        generated=19_387,
        depth=18,
        deadlock=True,
        note="the distinct states of the published model",
    ),
    Expectation(
        Released,
        sizes={"Replica": 2, "L": 2, "R": 2, "E": 3, **KIP_320},
        distinct=7_497,
        generated=13_651,
        depth=20,
        deadlock=True,
        ghosts=True,
        note="what users see is told by what was ever committed",
    ),
    Expectation(
        Released,
        sizes={"Replica": 3, "L": 2, "R": 2, "E": 3, **KIP_320},
        distinct=737_794,
        generated=1_929_154,
        depth=26,
        deadlock=True,
        note="the distinct states of the published model",
        deep=True,
    ),
    Expectation(
        Fetching,
        sizes={"Replica": 3, "L": 2, "R": 2, "E": 2, "UNCLEAN": False, "ON_FETCH": False, "FENCED": True},
        distinct=477_310,
        generated=1_909_852,
        depth=28,
        deadlock=True,
    ),
    Expectation(
        Fetching,
        sizes={"Replica": 2, "L": 2, "R": 3, "E": 3, "UNCLEAN": True, "ON_FETCH": False, "FENCED": True},
        distinct=158_813,
        generated=481_639,
        depth=29,
        symmetry=("Replica",),
        deadlock=True,
    ),
    Expectation(
        AsyncIsr,
        sizes={"Follower": 2, "L": 1, "V": 3},
        distinct=8_020,
        generated=27_401,
        depth=18,
        deadlock=True,
        note="the distinct states of the published model",
    ),
    Expectation(Candidates, sizes={"Replica": 3, "MIN": 2, "C": 3}, distinct=88, generated=457, depth=8, deadlock=True),
    Expectation(
        Eligible,
        sizes={"Replica": 2, "L": 2, "R": 2, "E": 3, "MIN": 2, "C": 1, **KIP_966, "UNCLEAN": False},
        distinct=24_463,
        generated=53_011,
        depth=27,
        deadlock=True,
        ghosts=True,
    ),
    Expectation(
        Eligible,
        sizes={"Replica": 2, "L": 1, "R": 1, "E": 4, "MIN": 2, "C": 2, **KIP_966, "UNCLEAN": True},
        distinct=26_029,
        generated=56_993,
        depth=28,
        deadlock=True,
        ghosts=True,
        note="the last known leader may be elected",
    ),
    Expectation(
        Eligible,
        sizes={"Replica": 3, "L": 1, "R": 1, "E": 2, "MIN": 2, "C": 1, **KIP_966, "UNCLEAN": False},
        distinct=6_106,
        generated=17_292,
        depth=32,
        symmetry=("Replica",),
        deadlock=True,
        ghosts=True,
    ),
]
