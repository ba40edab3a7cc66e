"""KIP-320: fetches that carry the leader's epoch, truncation that is found by epoch, and a consumer that notices it.

`Kip320` is the protocol as it was verified when the KIP was written: the TLA+ of Jason Gustafson
(`hachikuji/kafka-specification`, `Kip320.tla`), action by action, so that its distinct states can be compared with
those that TLC finds there. A follower asks for the ends of epochs and truncates in one step when it begins to follow.

`Fetching` is what became of it: a follower begins to fetch at once, each fetch says the epoch of the last record that
it has, and the leader answers with records or with where the logs diverge (KIP-595; for all replicas since 2.7).
`UNCLEAN` lets the controller elect a leader outside the in-sync replicas. Then committed records are lost, and what is
left is that a consumer notices.

Source: KIP-101, KIP-279, KIP-320, KIP-595; `Partition.scala` (`readFromLocalLog`), `AbstractFetcherThread.scala`
(`getOffsetTruncationState`), `SubscriptionState.java` (`maybeCompleteValidation`).
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
UNCLEAN = Flag("UNCLEAN")
Offset = Annotated[int, Range(0, L)]
Epoch = Annotated[int, Range(0, E)]


@dataclass(frozen=True)
class Record:
    """`number` tells records apart; no replica looks at it."""

    number: Annotated[int, Range(1, R)]
    epoch: Annotated[int, Range(1, E)]


@dataclass(frozen=True)
class Request:
    """What the controller tells the replicas: who leads, and who is in sync. The epoch is its number."""

    leader: Replica | None
    isr: set[Replica]


class Kip320(Model):
    """`hw`, `epoch`, `leader` and `known_isr` are each replica's own view. `requests` is what the controller ever sent,
    in the order of the epochs; any of it may arrive late or never. `isr` is the controller's."""

    log: dict[Replica, Annotated[list[Record], Bounded(L)]]
    hw: dict[Replica, Offset]
    epoch: dict[Replica, Epoch]
    leader: dict[Replica, Replica | None]
    known_isr: dict[Replica, set[Replica]]
    requests: Annotated[list[Request], Bounded(E)]
    isr: set[Replica]
    written: Annotated[int, Range(0, R)]

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
        """f's fetches pass r's check of the epoch. A lower one gets FENCED_LEADER_EPOCH, a higher one
        UNKNOWN_LEADER_EPOCH; either changes nothing, and f tries again."""
        return s.leader[r] == r and s.leader[f] == r and s.epoch[f] == s.epoch[r]

    @define
    def acknowledged(s, f: Replica, r: Replica) -> Offset:
        """How far r knows that the log of f, which follows it, is its own."""
        return len(s.log[f])

    @define
    def send(s, leader: Replica | None, isr: set[Replica]) -> None:
        require(len(s.requests) < E)
        s.next.requests = s.requests + [Request(leader=leader, isr=isr)]
        s.next.isr = isr

    # The controller, at any time: a broker's failure, a better balance. An unclean election makes the log of the new
    # leader the truth. Simplified: the controller never fails.
    @action(who="controller")
    def elect(s, r: Replica) -> None:
        require(s.elected() != r, r in s.isr or UNCLEAN)
        s.send(r, s.isr if r in s.isr else {r})

    # The controller, when a broker fails: that one leaves the in-sync replicas, the last one excepted if it leads.
    @action(who="controller")
    def controller_shrinks(s, r: Replica) -> None:
        require(s.elected() == r or r in s.isr)
        s.send(None if s.elected() == r else s.elected(), s.isr if s.elected() == r and s.isr == {r} else s.isr - {r})

    # A replica that hears that it leads in a new epoch. Its high watermark is behind that of the leader before.
    @action(who="replica")
    def become_leader(s, r: Replica, e: Annotated[int, Range(1, E)]) -> None:
        require(s.epoch[r] < e, e <= len(s.requests), s.requests[e - 1].leader == r)
        s.next.epoch[r] = e
        s.next.leader[r] = r
        s.next.known_isr[r] = s.requests[e - 1].isr

    # A replica that hears of another leader: it asks for the ends of epochs, fenced by the epoch, until it knows the
    # last record that both have, and truncates. Simplified: one step. Without the fence it might truncate to a log that
    # is itself to be truncated.
    @action(who="replica")
    def become_follower(s, f: Replica, r: Replica, e: Annotated[int, Range(1, E)]) -> None:
        require(f != r, s.epoch[f] < e, e <= len(s.requests), s.requests[e - 1].leader == r)
        require(s.leader[r] == r, s.epoch[r] == e)
        o = max(
            (
                n
                for n in range(L + 1)
                if n > 0 and n <= len(s.log[f]) and n <= len(s.log[r]) and s.log[f][n - 1] == s.log[r][n - 1]
            ),
            default=0,
        )
        s.next.log[f] = s.log[f][:o]
        s.next.hw[f] = min(s.hw[f], o)
        s.next.epoch[f] = e
        s.next.leader[f] = r
        s.next.known_isr[f] = s.requests[e - 1].isr

    # A leader, deposed or not, on a producer's request. Simplified: a batch is one record.
    @action(who="leader")
    def write(s, r: Replica) -> None:
        require(s.leader[r] == r, len(s.log[r]) < L, s.written < R)
        s.next.log[r] = s.log[r] + [Record(number=s.written + 1, epoch=s.epoch[r])]
        s.next.written = s.written + 1

    # A follower of the leader's epoch: it gets the next record, and the high watermark with it.
    @action(who="follower")
    def fetch(s, f: Replica, r: Replica) -> None:
        require(s.follows(f, r), len(s.log[f]) < len(s.log[r]))
        s.next.log[f] = s.log[f] + [s.log[r][len(s.log[f])]]
        s.next.hw[f] = min(s.hw[r], len(s.log[f]) + 1)

    # A leader, when all that it knows as in sync follow its epoch and have the record.
    @action(who="leader")
    def increment_hw(s, r: Replica) -> None:
        require(s.leader[r] == r, s.hw[r] < len(s.log[r]))
        require(all(s.follows(f, r) and s.acknowledged(f, r) > s.hw[r] for f in s.known_isr[r]))
        s.next.hw[r] = s.hw[r] + 1

    # The leader, through the controller (AlterPartition), which refuses those of an older epoch. Simplified: one step.
    @action(who="leader")
    def shrink(s, r: Replica, f: Replica) -> None:
        require(s.leads(r), f in s.known_isr[r], f != r)
        require(not s.follows(f, r) or s.acknowledged(f, r) < len(s.log[r]))
        s.next.isr = s.known_isr[r] - {f}
        s.next.known_isr[r] = s.known_isr[r] - {f}

    # The leader, when the follower has reached the high watermark, and that the leader's own epoch: until then the
    # leader does not know how far the leader before had committed.
    @action(who="leader")
    def expand(s, r: Replica, f: Replica) -> None:
        require(s.leads(r), f not in s.known_isr[r], s.follows(f, r), s.acknowledged(f, r) >= s.hw[r])
        require(s.hw[r] == len(s.log[r]) or s.log[r][s.hw[r]].epoch == s.epoch[r])
        s.next.isr = s.known_isr[r] | {f}
        s.next.known_isr[r] = s.known_isr[r] | {f}

    @define
    def agree(s, a: Replica, b: Replica, o: Offset) -> bool:
        """Both logs have the same records below o."""
        return all(n < len(s.log[a]) and n < len(s.log[b]) and s.log[a][n] == s.log[b][n] for n in range(o))

    @invariant()
    def weak_isr(s, r: Replica) -> bool:
        """Whoever a leader knows as in sync has every record below its high watermark."""
        return UNCLEAN or s.leader[r] != r or all(s.agree(r, f, s.hw[r]) for f in s.known_isr[r])

    @invariant()
    def strong_isr(s, r: Replica) -> bool:
        """Whoever is in sync has every record below any leader's high watermark: what a consumer may have read is on
        every replica that can be elected."""
        return UNCLEAN or s.leader[r] != r or all(s.agree(r, f, s.hw[r]) for f in s.isr)

    @invariant()
    def agree_to_high_watermark(s, a: Replica, b: Replica) -> bool:
        return UNCLEAN or s.agree(a, b, min(s.hw[a], s.hw[b]))

    @witness
    def committed_by_two_leaders(s) -> bool:
        return any(
            s.hw[a] > 1 and s.log[a][0].epoch != s.log[a][1].epoch and len(s.isr) > 1 and s.leads(a) for a in Replica
        )


class Fetching(Kip320):
    """`fetched` is the offset from which a follower last fetched in its epoch, if the logs did not diverge there: what
    its leader knows of it. `read` is what the consumer has read; `heard` the epoch of the leader that it last asked."""

    fetched: dict[Replica, Offset]
    read: Annotated[list[Record], Bounded(L)]
    heard: Epoch

    @define
    def acknowledged(s, f: Replica, r: Replica) -> Offset:
        return len(s.log[r]) if f == r else s.fetched[f]

    @define
    def end_of(s, q: Annotated[list[Record], Bounded(L)], e: Epoch) -> Offset:
        """Where the epochs up to e end in q: the epoch cache's answer to OffsetsForLeaderEpoch."""
        return max((n for n in range(1, L + 1) if n <= len(q) and q[n - 1].epoch <= e), default=0)

    @define
    def last_epoch(s, q: Annotated[list[Record], Bounded(L)], o: Offset) -> Epoch:
        """The epoch of the last record below o."""
        return q[o - 1].epoch if o > 0 else 0

    @define
    def diverges(s, q: Annotated[list[Record], Bounded(L)], r: Replica) -> bool:
        """What r finds out from the length of q and its last epoch alone."""
        e = s.last_epoch(q, len(q))
        o = s.end_of(s.log[r], e)
        return o < len(q) or s.last_epoch(s.log[r], o) < e

    # A replica that hears of another leader. It asks nothing and keeps its log: the fetches will tell.
    @action(who="replica")
    def become_follower(s, f: Replica, r: Replica, e: Annotated[int, Range(1, E)]) -> None:
        require(f != r, s.epoch[f] < e, e <= len(s.requests), s.requests[e - 1].leader == r)
        s.next.epoch[f] = e
        s.next.leader[f] = r
        s.next.known_isr[f] = s.requests[e - 1].isr
        s.next.fetched[f] = 0

    # A follower of the leader's epoch whose last record the leader has: it gets the next one if there is one, and the
    # leader learns how far its log reaches.
    @action(who="follower")
    def fetch(s, f: Replica, r: Replica) -> None:
        require(f != r, s.follows(f, r), not s.diverges(s.log[f], r))
        if len(s.log[f]) < len(s.log[r]):
            s.next.log[f] = s.log[f] + [s.log[r][len(s.log[f])]]
        s.next.hw[f] = min(s.hw[r], min(len(s.log[f]) + 1, len(s.log[r])))
        s.next.fetched[f] = len(s.log[f])

    # A follower that is told another epoch and its end: it cuts its log there, and at its own end of that epoch. It may
    # take several fetches to find the last record that both have.
    @action(who="follower")
    def truncate(s, f: Replica, r: Replica) -> None:
        require(s.follows(f, r), s.diverges(s.log[f], r))
        o = s.end_of(s.log[r], s.last_epoch(s.log[f], len(s.log[f])))
        p = min(o, s.end_of(s.log[f], s.last_epoch(s.log[r], o)))
        s.next.log[f] = s.log[f][:p]
        s.next.hw[f] = min(s.hw[f], p)

    # The consumer, at a leader that is new to it: it asks whether its position is still in the log, and if not, begins
    # again. Simplified: its reset policy is "earliest"; it looks at the epoch of the answer too, as a broker does.
    @action(who="consumer")
    def validate(s, r: Replica) -> None:
        require(s.leader[r] == r, s.heard < s.epoch[r])
        s.next.heard = s.epoch[r]
        if s.diverges(s.read, r):
            s.next.read = []

    # The consumer, at a leader of the epoch that it knows, below the high watermark.
    @action(who="consumer")
    def consume(s, r: Replica) -> None:
        require(s.leader[r] == r, s.epoch[r] == s.heard, len(s.read) < s.hw[r])
        s.next.read = s.read + [s.log[r][len(s.read)]]

    @invariant()
    def nothing_read_is_lost(s, r: Replica) -> bool:
        """What the consumer has read is in the log of whoever is in sync."""
        return (
            UNCLEAN
            or r not in s.isr
            or all(n < len(s.log[r]) and s.log[r][n] == s.read[n] for n in range(L) if n < len(s.read))
        )

    @step()
    def reads_no_gap(s) -> bool:
        """What the consumer has read is, whenever it reads more, a leader's log from its beginning on, whatever was
        lost by unclean elections."""
        return len(s.next.read) <= len(s.read) or any(
            s.leader[r] == r and s.next.read == s.log[r][: len(s.next.read)] for r in Replica
        )

    @witness
    def follower_truncates(s, f: Replica, r: Replica) -> bool:
        return s.follows(f, r) and s.diverges(s.log[f], r)


MODELS = [
    Expectation(
        Kip320,
        sizes={"Replica": 2, "L": 2, "R": 2, "E": 3, "UNCLEAN": False},
        distinct=5_973,
        generated=11_733,
        depth=18,
        deadlock=True,
        note="the distinct states of the published model",
    ),
    Expectation(
        Kip320,
        sizes={"Replica": 3, "L": 2, "R": 2, "E": 3, "UNCLEAN": False},
        distinct=737_794,
        generated=1_929_154,
        depth=26,
        deadlock=True,
        note="the distinct states of the published model",
    ),
    Expectation(
        Fetching,
        sizes={"Replica": 3, "L": 2, "R": 2, "E": 2, "UNCLEAN": False},
        distinct=477_310,
        generated=1_909_852,
        depth=28,
        deadlock=True,
    ),
    Expectation(
        Fetching,
        sizes={"Replica": 2, "L": 2, "R": 3, "E": 3, "UNCLEAN": True},
        distinct=317_625,
        generated=963_273,
        depth=29,
        deadlock=True,
    ),
]
