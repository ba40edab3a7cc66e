"""Transactions while leaders change: one partition on several replicas, producers, a transaction coordinator, a reader.

`Failover` has a log on each replica, and beside it what that replica knows of transactions: what is open, which ends
are not replicated, and the aborted transactions. All of it is a replica's own, made of its own log. Leaders are elected
among the in-sync replicas; one that was deposed may go on as if it led. Followers fetch, hear of the high watermark
later, and cut their log where it parts from that of a new leader. The coordinator decides each transaction once; its
markers come late, again, at a leader that was deposed, and after the next transaction has begun. One read_committed
consumer goes from replica to replica.

With `VERSION_2` the producer's epoch rises with each transaction (KIP-890), and a marker must be above that of the
records (KIP-1228); it is true with it. With `FORGETS` a replica forgets, when it starts again or truncates, which ends
are not replicated, as Kafka's snapshots do.

What was simplified. A record or marker is one offset. A new leader hears of its election, and of each change of the
in-sync replicas, at once: that a deposed leader commits nothing is the model of the replication protocol. A replica
that hears of a new leader truncates in the same step; what it shows in between is what it showed before. A read is of
one record: what comes between the steps of a fetch is the model of the last stable offset. Sequences, and a batch that
is written twice, are the model of the producer state. The transaction log of the coordinator loses nothing.

Source: KIP-98, KIP-101, KIP-279, KIP-392, KIP-890, KIP-1228; UnifiedLog, ProducerStateManager, KafkaApis and
TransactionMarkerRequestCompletionHandler, Kafka 4.3.0.
"""

# mypy: disable-error-code="operator, index, arg-type, assignment, union-attr"
# (the modelling language unwraps an option where its value is wanted; mypy narrows no element of a map)

from __future__ import annotations

import enum
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
    lemma,
    refines,
    require,
    step,
    witness,
)


class Replica(Sort):
    """A broker that has a copy of the partition."""


class Producer(Sort):
    """A producer id."""


L = Size("L")
"""The most records of a log."""
E = Size("E")
"""The highest leader epoch; the first is 1."""
T = Size("T")
"""The most transactions of a producer."""
C = Size("C")
"""The highest epoch of the coordinator; the first is 1."""
VERSION_2 = Flag("VERSION_2")
"""Transaction version 2: each transaction has an epoch of its own, and leaders look at it."""
FORGETS = Flag("FORGETS")
"""A start and a truncation take the ends of transactions that stay in the log for replicated."""
Offset = Annotated[int, Range(0, L)]
Epoch = Annotated[int, Range(0, E)]
RealEpoch = Annotated[int, Range(1, E)]
Txn = Annotated[int, Range(1, T)]
CoordinatorEpoch = Annotated[int, Range(1, C)]


class Kind(enum.Enum):
    DATA = 0
    COMMIT = 1
    ABORT = 2


class Outcome(enum.Enum):
    """What the coordinator has decided."""

    ONGOING = 0
    COMMIT = 1
    ABORT = 2


@dataclass(frozen=True)
class Record:
    """Of the producer's transaction number `txn`, which is its producer epoch with `VERSION_2`; otherwise no replica
    looks at it. A marker has the epoch of the coordinator that sent it."""

    producer: Producer
    kind: Kind
    txn: Txn
    epoch: RealEpoch
    coordinator: CoordinatorEpoch


Records = Annotated[list[Record], Bounded(L)]


class CommittedTransactions(Model):
    """What users see: one log of `committed` records, of producers that each go from one transaction to the next
    (`txn`), with the coordinator's outcomes; and a consumer. `Failover` refines it."""

    committed: Records
    txn: dict[Producer, Txn]
    outcome: dict[Producer, dict[Txn, Outcome]]
    position: Offset
    seen: set[Offset]

    @define
    def ends(s, m: Offset, p: Producer) -> bool:
        """There is a marker for p at m."""
        return m < len(s.committed) and s.committed[m].producer == p and s.committed[m].kind != Kind.DATA

    @action("TXF-2", who="coordinator")
    def decide(s, p: Producer, commit: bool) -> None:
        require(s.outcome[p][s.txn[p]] == Outcome.ONGOING)
        s.next.outcome[p][s.txn[p]] = Outcome.COMMIT if commit else Outcome.ABORT

    @action("TXF-4", "TXF-6", who="leader")
    def commit(s, x: Record) -> None:
        """A record of a transaction that has begun and has no marker yet, or a marker that says what was decided:
        behind no record of a later transaction."""
        require(len(s.committed) < L, x.txn <= s.txn[x.producer])
        require(all(y.txn <= x.txn for y in s.committed if y.producer == x.producer))
        if x.kind == Kind.DATA:
            require(all(y.txn < x.txn for y in s.committed if y.producer == x.producer and y.kind != Kind.DATA))
        else:
            require(s.outcome[x.producer][x.txn] == (Outcome.COMMIT if x.kind == Kind.COMMIT else Outcome.ABORT))
        s.next.committed = s.committed + [x]

    @action("TXF-6", who="coordinator")
    def begin(s, p: Producer) -> None:
        """The next transaction, when a marker of the one before is there."""
        require(s.txn[p] < T)
        require(any(y.producer == p and y.kind != Kind.DATA and y.txn == s.txn[p] for y in s.committed))
        s.next.txn[p] = s.txn[p] + 1

    @action("TXF-12", who="reader")
    def read(s, m: Offset) -> None:
        """The next record, with the first marker for its producer that is behind it; or a marker."""
        require(s.position < len(s.committed))
        x = s.committed[s.position]
        if x.kind == Kind.DATA:
            require(s.position < m, s.ends(m, x.producer))
            require(not any(s.position < y and y < m and s.ends(y, x.producer) for y in range(L)))
            if s.committed[m].kind == Kind.COMMIT:
                s.next.seen = s.seen | {s.position}
        else:
            require(m == s.position)
        s.next.position = s.position + 1

    @define
    def outcome_of(s, x: Record) -> Outcome:
        return s.outcome[x.producer][x.txn]

    @invariant("TXF-12")
    def nothing_else_is_seen(s, x: Offset) -> bool:
        return x not in s.seen or (
            x < s.position and s.committed[x].kind == Kind.DATA and s.outcome_of(s.committed[x]) == Outcome.COMMIT
        )

    @invariant("TXF-12")
    def nothing_is_left_out(s, x: Offset) -> bool:
        return (
            x >= s.position
            or x in s.seen
            or s.committed[x].kind != Kind.DATA
            or s.outcome_of(s.committed[x]) == Outcome.ABORT
        )

    @invariant("TXF-12")
    def only_what_is_committed_is_read(s) -> bool:
        return s.position <= len(s.committed)

    @step("TXF-12")
    def each_once_and_in_order(s, x: Offset) -> bool:
        return s.next.position >= s.position and (
            (x in s.seen) == (x in s.next.seen) or (x in s.next.seen and x == s.position and s.next.position == x + 1)
        )

    @step("TXF-2")
    def what_is_decided_stays(s, p: Producer, t: Txn) -> bool:
        return s.outcome[p][t] == Outcome.ONGOING or s.next.outcome[p][t] == s.outcome[p][t]

    @invariant("TXF-2")
    def markers_say_what_was_decided(s, m: Offset) -> bool:
        return (
            m >= len(s.committed)
            or s.committed[m].kind == Kind.DATA
            or s.outcome_of(s.committed[m]) == (Outcome.COMMIT if s.committed[m].kind == Kind.COMMIT else Outcome.ABORT)
        )

    @invariant("TXF-4", "TXF-6")
    def a_marker_ends_its_own(s, x: Offset, m: Offset) -> bool:
        """The first one behind a record is of its transaction."""
        return (
            not (x < m and m < len(s.committed))
            or s.committed[x].kind != Kind.DATA
            or not s.ends(m, s.committed[x].producer)
            or s.committed[x].txn == s.committed[m].txn
            or any(x < y and y < m and s.ends(y, s.committed[x].producer) for y in range(L))
        )

    @invariant("TXF-6")
    def the_marker_before_is_there(s, p: Producer, t: Txn) -> bool:
        """When the next transaction begins."""
        return t >= s.txn[p] or any(y.producer == p and y.kind != Kind.DATA and y.txn == t for y in s.committed)

    @lemma("TXF-4")
    def transactions_come_in_order(s, i: Offset, j: Offset) -> bool:
        """And nothing joins one that has ended."""
        return (
            not (i < j and j < len(s.committed))
            or s.committed[i].producer != s.committed[j].producer
            or (
                s.committed[i].txn <= s.committed[j].txn
                and (
                    s.committed[i].kind == Kind.DATA
                    or s.committed[j].kind != Kind.DATA
                    or s.committed[i].txn < s.committed[j].txn
                )
            )
        )

    @lemma("TXF-6")
    def records_are_of_a_transaction_that_began(s, n: Offset) -> bool:
        return n >= len(s.committed) or s.committed[n].txn <= s.txn[s.committed[n].producer]

    @witness
    def sees_one_and_drops_another(s) -> bool:
        return s.seen != set() and any(
            x < s.position and s.committed[x].kind == Kind.DATA and x not in s.seen for x in range(L)
        )

    @witness
    def a_marker_is_there_twice(s, i: Offset, j: Offset) -> bool:
        return (
            i < j
            and j < len(s.committed)
            and s.committed[i].kind != Kind.DATA
            and s.committed[j].kind != Kind.DATA
            and s.committed[i].producer == s.committed[j].producer
            and s.committed[i].txn == s.committed[j].txn
        )


class ReplicatedMarkers(Model):
    """What holds `Failover` up, without its leaders, epochs and tables. Of each replica: its `log`, its high watermark
    `hw`, the marker at which the transaction of each record ends there (`end_of`), and the markers that it does not
    know to be replicated (`unreplicated`). Of the coordinator: the last transaction of each producer, the outcomes, and
    where the marker of each is that was `answered`. Of the consumer: its position, and what it has `seen`.

    Of replication it has what that protocol guarantees: a high watermark covers `committed` records and no others, and
    who commits one more has all before it. Everything else is free: any replica may append at any time what its own log
    allows, or cut its log, be it a leader, deposed, or a follower."""

    log: dict[Replica, Records]
    hw: dict[Replica, Offset]
    end_of: dict[Replica, dict[Offset, Offset | None]]
    unreplicated: dict[Replica, set[Offset]]
    committed: Records
    txn: dict[Producer, Txn]
    outcome: dict[Producer, dict[Txn, Outcome]]
    answered: dict[Producer, dict[Txn, Offset | None]]
    position: Offset
    seen: set[Offset]

    @define
    def is_data(s, r: Replica, x: Offset) -> bool:
        return x < len(s.log[r]) and s.log[r][x].kind == Kind.DATA

    @define
    def outcome_of(s, x: Record) -> Outcome:
        return s.outcome[x.producer][x.txn]

    @define
    def is_settled(s, r: Replica, x: Offset) -> bool:
        """The marker of its transaction is there, and r takes it for replicated."""
        return s.end_of[r][x] is not None and s.end_of[r][x] not in s.unreplicated[r]

    @define
    def answered_at(s, x: Record) -> Offset | None:
        """Where the marker of its transaction is, if that was answered."""
        return s.answered[x.producer][x.txn]

    @define
    def is_stable(s, r: Replica, o: Offset) -> bool:
        """The last stable offset of r is at least o: each record below it is settled."""
        return o <= s.hw[r] and all(x >= o or not s.is_data(r, x) or s.is_settled(r, x) for x in range(L))

    @define
    def tells_aborted(s, r: Replica, x: Offset) -> bool:
        return s.end_of[r][x] is not None and s.log[r][s.end_of[r][x]].kind == Kind.ABORT

    @define
    def know(s, r: Replica, h: Offset) -> None:
        s.next.hw[r] = h
        s.next.unreplicated[r] = {m for m in s.unreplicated[r] if m >= h}

    @action("TXF-4", who="leader, follower")
    def append(s, r: Replica, x: Record) -> None:
        """A record of a transaction that has begun, or a marker of one that is decided. In the log of r nothing of a
        later transaction of the producer is before it, and before a record no marker of its own transaction."""
        n = len(s.log[r])
        require(n < L, x.txn <= s.txn[x.producer])
        require(
            all(
                y.txn <= x.txn and (x.kind != Kind.DATA or y.kind == Kind.DATA or y.txn < x.txn)
                for y in s.log[r]
                if y.producer == x.producer
            )
        )
        require(x.kind == Kind.DATA or s.outcome_of(x) == (Outcome.COMMIT if x.kind == Kind.COMMIT else Outcome.ABORT))
        s.next.log[r] = s.log[r] + [x]
        if x.kind != Kind.DATA:
            s.next.end_of[r] = {
                y: n
                if s.is_data(r, y) and s.log[r][y].producer == x.producer and s.end_of[r][y] is None
                else s.end_of[r][y]
                for y in range(L + 1)
            }
            if any(s.is_data(r, y) and s.log[r][y].producer == x.producer and s.end_of[r][y] is None for y in range(L)):
                s.next.unreplicated[r] = s.unreplicated[r] | {n}

    @action("TXF-8", who="follower")
    def truncate(s, r: Replica, o: Offset) -> None:
        """Whatever is behind o. A transaction is open again if its marker is cut off."""
        require(o < len(s.log[r]))
        s.next.log[r] = s.log[r][:o]
        s.next.hw[r] = min(s.hw[r], o)
        s.next.end_of[r] = {
            x: s.end_of[r][x] if s.end_of[r][x] is not None and s.end_of[r][x] < o else None for x in range(L + 1)
        }
        s.next.unreplicated[r] = {m for m in s.unreplicated[r] if m < o}

    @action("TXF-9", who="leader, follower")
    def hear(s, r: Replica, h: Offset) -> None:
        """A high watermark: it may be lower than the one before. Up to it the log is what was committed."""
        require(h <= len(s.log[r]), h <= len(s.committed))
        require(all(s.log[r][n] == s.committed[n] for n in range(L) if n < h))
        s.know(r, h)

    @action("TXF-10", who="environment")
    def restart(s, r: Replica, h: Offset) -> None:
        """With a high watermark that it wrote down before. It knows still which markers that has not passed."""
        require(h < s.hw[r])
        s.know(r, h)

    @action("TXF-6", "TXF-9", who="leader")
    def commit(s, r: Replica) -> None:
        """The next record, by one that has all that was committed."""
        require(s.hw[r] == len(s.committed), s.hw[r] < len(s.log[r]))
        s.next.committed = s.committed + [s.log[r][s.hw[r]]]
        s.know(r, s.hw[r] + 1)

    @action("TXF-2", who="coordinator")
    def decide(s, p: Producer, commit: bool) -> None:
        require(s.outcome[p][s.txn[p]] == Outcome.ONGOING)
        s.next.outcome[p][s.txn[p]] = Outcome.COMMIT if commit else Outcome.ABORT

    @action("TXF-6", who="coordinator")
    def begin(s, p: Producer, m: Offset) -> None:
        """The next transaction, when a marker of the one before is replicated."""
        require(s.txn[p] < T, m < len(s.committed))
        require(s.committed[m].producer == p, s.committed[m].kind != Kind.DATA, s.committed[m].txn == s.txn[p])
        s.next.answered[p][s.txn[p]] = m
        s.next.txn[p] = s.txn[p] + 1

    @action("TXF-11", "TXF-12", who="reader")
    def read(s, r: Replica) -> None:
        """The next record, of any replica."""
        require(s.position < L, s.is_stable(r, s.position + 1))
        if s.is_data(r, s.position) and not s.tells_aborted(r, s.position):
            s.next.seen = s.seen | {s.position}
        s.next.position = s.position + 1

    # ---- what is claimed

    @invariant("TXF-11", "TXF-4", "TXF-9", "TXF-10")
    def each_replica_tells_the_outcome(s, r: Replica, x: Offset) -> bool:
        """Of each record that is settled there; so are all that are stable."""
        return not s.is_settled(r, x) or s.outcome_of(s.log[r][x]) == (
            Outcome.ABORT if s.tells_aborted(r, x) else Outcome.COMMIT
        )

    @invariant("TXF-12", "TXF-11")
    def nothing_else_is_seen(s, x: Offset) -> bool:
        """No record of a transaction that the coordinator aborted, and none that it has not decided."""
        return x not in s.seen or (
            x < len(s.committed) and s.committed[x].kind == Kind.DATA and s.outcome_of(s.committed[x]) == Outcome.COMMIT
        )

    @invariant("TXF-12", "TXF-11")
    def nothing_is_left_out(s, x: Offset) -> bool:
        """Every record that was committed and that the consumer has passed."""
        return x >= s.position or (
            x < len(s.committed)
            and (x in s.seen or s.committed[x].kind != Kind.DATA or s.outcome_of(s.committed[x]) == Outcome.ABORT)
        )

    @step("TXF-12")
    def each_once_and_in_order(s, x: Offset) -> bool:
        return s.next.position >= s.position and (
            (x in s.seen) == (x in s.next.seen) or (x in s.next.seen and x == s.position and s.next.position == x + 1)
        )

    @step("TXF-2")
    def what_is_decided_stays(s, p: Producer, t: Txn) -> bool:
        return s.outcome[p][t] == Outcome.ONGOING or s.next.outcome[p][t] == s.outcome[p][t]

    @invariant("TXF-8", "TXF-9")
    def what_is_below_a_high_watermark_is_committed(s, r: Replica, n: Offset) -> bool:
        return (
            s.hw[r] <= len(s.log[r]) and s.hw[r] <= len(s.committed) and (n >= s.hw[r] or s.log[r][n] == s.committed[n])
        )

    @invariant("TXF-4", "TXF-6")
    def a_replicated_marker_ends_its_own(s, r: Replica, x: Offset) -> bool:
        """Transaction, and no other: by what the replica itself knows of what is replicated."""
        return not s.is_settled(r, x) or s.log[r][s.end_of[r][x]].txn == s.log[r][x].txn

    @invariant("TXF-9")
    def below_a_replicated_marker_all_logs_are_the_same(s, r: Replica, x: Offset, n: Offset) -> bool:
        return not s.is_settled(r, x) or (
            s.end_of[r][x] < len(s.committed) and (n > s.end_of[r][x] or s.log[r][n] == s.committed[n])
        )

    @invariant("TXF-2")
    def markers_say_what_was_decided(s, r: Replica, m: Offset) -> bool:
        return (
            m >= len(s.log[r])
            or s.log[r][m].kind == Kind.DATA
            or s.outcome_of(s.log[r][m]) == (Outcome.COMMIT if s.log[r][m].kind == Kind.COMMIT else Outcome.ABORT)
        )

    @invariant("TXF-6")
    def the_marker_before_is_replicated(s, p: Producer, t: Txn) -> bool:
        """When the next transaction begins."""
        return t >= s.txn[p] or (
            s.answered[p][t] is not None
            and s.answered[p][t] < len(s.committed)
            and s.committed[s.answered[p][t]].producer == p
            and s.committed[s.answered[p][t]].kind != Kind.DATA
            and s.committed[s.answered[p][t]].txn == t
        )

    @invariant("TXF-8", "TXF-9")
    def what_is_not_replicated_ends_a_record(s, r: Replica, m: Offset) -> bool:
        """In the log, and is not below the high watermark."""
        return m not in s.unreplicated[r] or (s.hw[r] <= m and any(s.end_of[r][x] == m for x in range(L)))

    @invariant("TXF-8")
    def a_record_ends_at_a_marker_behind_it(s, r: Replica, x: Offset) -> bool:
        """That is in the log."""
        return s.end_of[r][x] is None or (
            x < s.end_of[r][x]
            and s.end_of[r][x] < len(s.log[r])
            and s.log[r][x].kind == Kind.DATA
            and s.log[r][s.end_of[r][x]].kind != Kind.DATA
            and s.log[r][s.end_of[r][x]].producer == s.log[r][x].producer
        )

    @invariant("TXF-8")
    def the_first_marker_ends_it(s, r: Replica, x: Offset, m: Offset) -> bool:
        return (
            not (x < m and m < len(s.log[r]))
            or s.log[r][x].kind != Kind.DATA
            or s.log[r][m].kind == Kind.DATA
            or s.log[r][x].producer != s.log[r][m].producer
            or (s.end_of[r][x] is not None and s.end_of[r][x] <= m)
        )

    @define
    def is_committed(s, r: Replica, n: Offset) -> bool:
        """What r has at n is what was committed there."""
        return n < len(s.log[r]) and n < len(s.committed) and s.log[r][n] == s.committed[n]

    @lemma("TXF-4", "TXF-6")
    def a_marker_between_is_missing(s, r: Replica, x: Offset) -> bool:
        """Where a marker ends a record of an earlier transaction: the marker of that one, which was answered, is not
        there, or it is committed behind this one, which then is not what was committed in its place."""
        return (
            s.end_of[r][x] is None
            or s.log[r][s.end_of[r][x]].txn == s.log[r][x].txn
            or (
                s.answered_at(s.log[r][x]) is not None
                and s.answered_at(s.log[r][x]) < len(s.committed)
                and not s.is_committed(
                    r, s.answered_at(s.log[r][x]) if s.answered_at(s.log[r][x]) < s.end_of[r][x] else s.end_of[r][x]
                )
            )
        )

    @lemma("TXF-4")
    def transactions_come_in_order(s, r: Replica, i: Offset, j: Offset) -> bool:
        """In every log, and nothing joins one that has ended."""
        return (
            not (i < j and j < len(s.log[r]))
            or s.log[r][i].producer != s.log[r][j].producer
            or (
                s.log[r][i].txn <= s.log[r][j].txn
                and (
                    s.log[r][i].kind == Kind.DATA or s.log[r][j].kind != Kind.DATA or s.log[r][i].txn < s.log[r][j].txn
                )
            )
        )

    @lemma("TXF-4")
    def committed_in_order(s, i: Offset, j: Offset) -> bool:
        return (
            not (i < j and j < len(s.committed))
            or s.committed[i].producer != s.committed[j].producer
            or (
                s.committed[i].txn <= s.committed[j].txn
                and (
                    s.committed[i].kind == Kind.DATA
                    or s.committed[j].kind != Kind.DATA
                    or s.committed[i].txn < s.committed[j].txn
                )
            )
        )

    @lemma("TXF-6")
    def records_are_of_a_transaction_that_began(s, r: Replica, n: Offset) -> bool:
        return n >= len(s.log[r]) or s.log[r][n].txn <= s.txn[s.log[r][n].producer]

    @lemma("TXF-9")
    def only_what_is_committed_is_read(s) -> bool:
        return s.position <= len(s.committed)

    @witness
    def a_marker_ends_two_transactions(s, r: Replica) -> bool:
        """Where the marker between them is missing."""
        return any(s.end_of[r][x] is not None and s.log[r][x].txn < s.log[r][s.end_of[r][x]].txn for x in range(L))

    @witness
    def sees_a_record_and_its_marker(s) -> bool:
        return s.seen != set() and s.position > 1

    @witness
    def passes_what_was_aborted(s) -> bool:
        return s.seen == set() and s.position > 1 and s.committed[0].kind == Kind.DATA


class Failover(Model):
    """Of each replica: its `log` and its high watermark `hw`; the leader `epoch` that it knows, whether it takes itself
    for the leader of it (`leading`), and where its log ended when it was elected (`start`). `open_at[r][x]` has the
    first offset of each producer's open transaction, as the records of r below x make it, `index[r][m]` that of the
    transaction that the abort marker at m ended; `ended[r]` has the markers that r does not know to be replicated, by
    the first offset of their transactions.

    Of the controller: the newest leader epoch `now`, and who is in sync. Of the coordinator: its epoch, the number of
    each producer's last transaction, their outcomes, and the epochs with which it has `sent` the markers of each, which
    may arrive at any time. Of the consumer: its position, and what it has `seen`. `committed` is what any high
    watermark ever covered."""

    log: dict[Replica, Records]
    hw: dict[Replica, Offset]
    epoch: dict[Replica, Epoch]
    leading: set[Replica]
    start: dict[Replica, Offset]
    open_at: dict[Replica, dict[Offset, dict[Producer, Offset | None]]]
    index: dict[Replica, dict[Offset, Offset | None]]
    ended: dict[Replica, dict[Offset, Offset | None]]
    now: Epoch
    isr: set[Replica]
    coordinator: CoordinatorEpoch
    txn: dict[Producer, Txn]
    outcome: dict[Producer, dict[Txn, Outcome]]
    sent: dict[Producer, dict[Txn, set[CoordinatorEpoch]]]
    position: Offset
    seen: set[Offset]
    committed: Records
    ghosts = ("committed",)

    @initial
    def begin(s) -> None:
        s.next.isr = set(Replica)

    @define
    def leads(s, r: Replica) -> bool:
        """Rightly."""
        return r in s.leading and s.epoch[r] == s.now

    @define
    def follows(s, f: Replica, r: Replica) -> bool:
        return f != r and r in s.leading and f not in s.leading and s.epoch[f] == s.epoch[r]

    # ---- the log of a replica, and what it knows of transactions

    @define
    def opened(s, r: Replica, p: Producer) -> Offset | None:
        """Where the transaction of p that is open in the log of r begins."""
        return s.open_at[r][len(s.log[r])][p]

    @define
    def take(s, r: Replica, x: Record) -> None:
        """At the end of the log of r, which keeps its table with it."""
        n = len(s.log[r])
        first = s.open_at[r][n][x.producer]
        s.next.log[r] = s.log[r] + [x]
        s.next.open_at[r][n + 1] = {
            p: s.open_at[r][n][p] if p != x.producer else None if x.kind != Kind.DATA else n if first is None else first
            for p in Producer
        }
        if x.kind != Kind.DATA and first is not None:
            s.next.ended[r][first] = n
            if x.kind == Kind.ABORT:
                s.next.index[r][n] = first

    @define
    def know(s, r: Replica, h: Offset) -> None:
        """The high watermark of r."""
        s.next.hw[r] = h
        s.next.ended[r] = {
            f: None if s.ended[r][f] is not None and s.ended[r][f] < h else s.ended[r][f] for f in range(L + 1)
        }

    @define
    def cut(s, r: Replica, o: Offset) -> None:
        """What ended beyond is open again: the table is that of the records that stay."""
        s.next.log[r] = s.log[r][:o]
        s.next.hw[r] = min(s.hw[r], o)
        s.next.open_at[r] = {y: {p: s.open_at[r][y][p] if y <= o else None for p in Producer} for y in range(L + 1)}
        s.next.index[r] = {m: s.index[r][m] if m < o else None for m in range(L + 1)}
        s.next.ended[r] = {
            f: s.ended[r][f] if not FORGETS and s.ended[r][f] is not None and s.ended[r][f] < o else None
            for f in range(L + 1)
        }

    @define
    def is_stable(s, r: Replica, o: Offset) -> bool:
        """The last stable offset of r is at least o."""
        return (
            o <= s.hw[r]
            and all(s.opened(r, p) is None or o <= s.opened(r, p) for p in Producer)
            and all(s.ended[r][f] is None or o <= f for f in range(L + 1))
        )

    @define
    def ends(s, r: Replica, m: Offset, p: Producer) -> bool:
        """There is a marker for p at m in the log of r."""
        return m < len(s.log[r]) and s.log[r][m].producer == p and s.log[r][m].kind != Kind.DATA

    @define
    def tells_aborted(s, r: Replica, x: Offset) -> bool:
        """By the aborted transactions that r has: one of the record's producer, that begins at or before it and ends
        behind it."""
        return any(
            x < m
            and m < len(s.log[r])
            and s.log[r][m].producer == s.log[r][x].producer
            and s.index[r][m] is not None
            and s.index[r][m] <= x
            for m in range(L + 1)
        )

    @define
    def producer_epoch(s, r: Replica, p: Producer) -> Annotated[int, Range(0, T + 1)]:
        """The last that the log of r has of p: a marker raises it."""
        return max(
            (
                s.log[r][n].txn + (0 if s.log[r][n].kind == Kind.DATA else 1)
                for n in range(L)
                if n < len(s.log[r]) and s.log[r][n].producer == p
            ),
            default=0,
        )

    @define
    def coordinator_epoch(s, r: Replica, p: Producer) -> Annotated[int, Range(0, C)]:
        """The last that the log of r has in a marker for p."""
        return max(
            (
                s.log[r][n].coordinator
                for n in range(L)
                if n < len(s.log[r]) and s.log[r][n].producer == p and s.log[r][n].kind != Kind.DATA
            ),
            default=0,
        )

    @define
    def takes_epoch(s, r: Replica, p: Producer, t: Txn) -> bool:
        """Of the marker of transaction t, which is one above that of its records. The same again ends nothing."""
        return (
            not VERSION_2
            or s.producer_epoch(r, p) < t + 1
            or (s.producer_epoch(r, p) == t + 1 and s.opened(r, p) is None)
        )

    @define
    def marker(s, r: Replica, p: Producer, t: Txn, c: CoordinatorEpoch) -> Record:
        k = Kind.COMMIT if s.outcome[p][t] == Outcome.COMMIT else Kind.ABORT
        return Record(producer=p, kind=k, txn=t, epoch=s.epoch[r], coordinator=c)

    @define
    def last_match(s, f: Replica, r: Replica) -> Offset:
        """Behind the last record that has one epoch in both logs."""
        return max(
            (
                n + 1
                for n in range(L)
                if n < len(s.log[f]) and n < len(s.log[r]) and s.log[f][n].epoch == s.log[r][n].epoch
            ),
            default=0,
        )

    # ---- producers and the coordinator

    @action("TXF-1", who="leader")
    def produce(s, r: Replica, p: Producer, t: Txn) -> None:
        """A record of the producer's last transaction, or a late one of an earlier. Who takes itself for the leader
        appends it."""
        require(r in s.leading, len(s.log[r]) < L, t <= s.txn[p])
        require(not VERSION_2 or s.producer_epoch(r, p) <= t)
        s.take(r, Record(producer=p, kind=Kind.DATA, txn=t, epoch=s.epoch[r], coordinator=1))

    @action("TXF-2", who="coordinator")
    def decide(s, p: Producer, commit: bool) -> None:
        """As the producer asks, or because it does not. The markers go out."""
        require(s.outcome[p][s.txn[p]] == Outcome.ONGOING)
        s.next.outcome[p][s.txn[p]] = Outcome.COMMIT if commit else Outcome.ABORT
        s.next.sent[p][s.txn[p]] = {s.coordinator}

    @action("TXF-3", who="coordinator")
    def take_over(s) -> None:
        """Another coordinator, with a higher epoch, sends again what is decided and was not answered."""
        require(s.coordinator < C)
        s.next.coordinator = s.coordinator + 1
        s.next.sent = {
            p: {
                t: s.sent[p][t] | {s.coordinator + 1}
                if t == s.txn[p] and s.outcome[p][t] != Outcome.ONGOING
                else s.sent[p][t]
                for t in range(1, T + 1)
            }
            for p in Producer
        }

    @action("TXF-1", "TXF-4", "TXF-5", who="leader")
    def mark(s, r: Replica, p: Producer, t: Txn, c: CoordinatorEpoch) -> None:
        """A marker that was sent once arrives: in time, late or again, whether a transaction is open or not."""
        require(r in s.leading, len(s.log[r]) < L, c in s.sent[p][t])
        require(s.coordinator_epoch(r, p) <= c, s.takes_epoch(r, p, t))
        s.take(r, s.marker(r, p, t, c))

    @action("TXF-6", who="leader, coordinator")
    def complete(s, p: Producer, r: Replica, m: Offset) -> None:
        """The leader answers when the marker is replicated, and the next transaction may begin. Before, the coordinator
        sends it again."""
        require(r in s.leading, m < s.hw[r], s.txn[p] < T)
        require(s.log[r][m].producer == p, s.log[r][m].kind != Kind.DATA, s.log[r][m].txn == s.txn[p])
        s.next.txn[p] = s.txn[p] + 1

    # ---- replication

    @action("TXF-7", who="controller")
    def elect(s, r: Replica) -> None:
        """One that is in sync. It leads with the log, and with the table, that it has."""
        require(s.now < E, r in s.isr, not s.leads(r))
        s.next.now = s.now + 1
        s.next.epoch[r] = s.now + 1
        s.next.leading = s.leading | {r}
        s.next.start[r] = len(s.log[r])

    @action("TXF-8", who="follower")
    def follow(s, f: Replica, r: Replica) -> None:
        """A replica hears of the leader, and cuts its log behind the last record whose epoch is the leader's."""
        require(f != r, s.leads(r), s.epoch[f] < s.now)
        s.next.epoch[f] = s.now
        s.next.leading = s.leading - {f}
        s.cut(f, s.last_match(f, r))

    @action("TXF-7", "TXF-9", who="follower")
    def fetch(s, f: Replica, r: Replica) -> None:
        """The next record, from the leader of its epoch."""
        require(s.follows(f, r), len(s.log[f]) < len(s.log[r]))
        s.take(f, s.log[r][len(s.log[f])])

    @action("TXF-9", who="follower")
    def hear(s, f: Replica, r: Replica) -> None:
        """The leader's high watermark, as far as its own log goes: it may be lower than the one that it knew."""
        require(s.follows(f, r))
        s.know(f, min(s.hw[r], len(s.log[f])))

    @action("TXF-6", "TXF-9", who="leader")
    def increment_hw(s, r: Replica) -> None:
        """When all in sync follow it, and have the record."""
        require(s.leads(r), s.hw[r] < len(s.log[r]))
        require(all(f == r or (s.follows(f, r) and len(s.log[f]) > s.hw[r]) for f in s.isr))
        s.know(r, s.hw[r] + 1)
        if s.hw[r] == len(s.committed):
            s.next.committed = s.committed + [s.log[r][s.hw[r]]]

    @action("TXF-7", who="leader, controller")
    def shrink(s, r: Replica, f: Replica) -> None:
        require(s.leads(r), f in s.isr, f != r)
        s.next.isr = s.isr - {f}

    @action("TXF-7", who="leader, controller")
    def expand(s, r: Replica, f: Replica) -> None:
        require(s.follows(f, r), s.leads(r), f not in s.isr)
        require(len(s.log[f]) >= max(s.hw[r], s.start[r]))
        s.next.isr = s.isr | {f}

    @action("TXF-10", who="environment")
    def restart(s, r: Replica) -> None:
        """A clean shutdown, and a start: what is open is read again from the log. It leads no more."""
        require(r in s.leading or (FORGETS and any(s.ended[r][f] is not None for f in range(L + 1))))
        s.next.leading = s.leading - {r}
        s.next.ended[r] = {f: None if FORGETS else s.ended[r][f] for f in range(L + 1)}

    # ---- the consumer

    @action("TXF-11", "TXF-12", who="reader")
    def read(s, r: Replica) -> None:
        """The next record, of any replica, below that replica's last stable offset; it drops what that replica tells
        to be aborted."""
        require(s.position < L, s.is_stable(r, s.position + 1))
        if s.log[r][s.position].kind == Kind.DATA and not s.tells_aborted(r, s.position):
            s.next.seen = s.seen | {s.position}
        s.next.position = s.position + 1

    # ---- what is claimed

    @refines(CommittedTransactions, "TXF-12")
    def users(s) -> CommittedTransactions:
        """Nothing of replicas is seen."""
        return CommittedTransactions.shown(
            committed=s.committed, txn=s.txn, outcome=s.outcome, position=s.position, seen=s.seen
        )

    @define
    def first_marker(s, r: Replica, x: Offset) -> Offset:
        """Behind the record at x, for its producer; L if there is none."""
        return min((m for m in range(L) if m > x and s.ends(r, m, s.log[r][x].producer)), default=L)

    @define
    def first_committed_marker(s, p: Producer, t: Txn) -> Offset:
        return min(
            (
                m
                for m in range(L)
                if m < len(s.committed)
                and s.committed[m].producer == p
                and s.committed[m].kind != Kind.DATA
                and s.committed[m].txn == t
            ),
            default=L,
        )

    @refines(ReplicatedMarkers, "TXF-4", "TXF-6", "TXF-8", "TXF-9")
    def markers(s) -> ReplicatedMarkers:
        """The tables of the replicas are those of their logs, and nothing of leaders and epochs matters."""
        return ReplicatedMarkers.shown(
            log=s.log,
            hw=s.hw,
            end_of={
                r: {
                    x: s.first_marker(r, x)
                    if x < len(s.log[r]) and s.log[r][x].kind == Kind.DATA and s.first_marker(r, x) < L
                    else None
                    for x in range(L + 1)
                }
                for r in Replica
            },
            unreplicated={r: {m for m in range(L) if any(s.ended[r][f] == m for f in range(L))} for r in Replica},
            committed=s.committed,
            txn=s.txn,
            outcome=s.outcome,
            answered={
                p: {t: s.first_committed_marker(p, t) if t < s.txn[p] else None for t in range(1, T + 1)}
                for p in Producer
            },
            position=s.position,
            seen=s.seen,
        )

    @define
    def outcome_of(s, x: Record) -> Outcome:
        return s.outcome[x.producer][x.txn]

    @invariant("TXF-12", "TXF-11")
    def nothing_else_is_seen(s, x: Offset) -> bool:
        """No record of a transaction that the coordinator aborted, and none that it has not decided."""
        return x not in s.seen or (
            x < len(s.committed) and s.committed[x].kind == Kind.DATA and s.outcome_of(s.committed[x]) == Outcome.COMMIT
        )

    @invariant("TXF-12", "TXF-11")
    def nothing_is_left_out(s, x: Offset) -> bool:
        """Every record that was committed and that the consumer has passed."""
        return x >= s.position or (
            x < len(s.committed)
            and (x in s.seen or s.committed[x].kind != Kind.DATA or s.outcome_of(s.committed[x]) == Outcome.ABORT)
        )

    @step("TXF-12")
    def each_once_and_in_order(s, x: Offset) -> bool:
        """What is handed out stands at the position, which moves on."""
        return s.next.position >= s.position and (
            (x in s.seen) == (x in s.next.seen) or (x in s.next.seen and x == s.position and s.next.position == x + 1)
        )

    @invariant("TXF-11", "TXF-4", "TXF-9")
    def each_replica_tells_the_outcome(s, r: Replica, x: Offset) -> bool:
        """Of all that is stable there, whichever reader comes."""
        return (
            x >= len(s.log[r])
            or s.log[r][x].kind != Kind.DATA
            or not s.is_stable(r, x + 1)
            or (
                s.outcome_of(s.log[r][x]) == Outcome.ABORT
                if s.tells_aborted(r, x)
                else s.outcome_of(s.log[r][x]) == Outcome.COMMIT
            )
        )

    @invariant("TXF-9")
    def the_last_stable_offset_is_replicated(s, r: Replica, o: Offset) -> bool:
        """By what the replica itself knows."""
        return (not s.is_stable(r, o) or o <= s.hw[r]) and s.hw[r] <= len(s.log[r])

    @invariant("TXF-8", "TXF-9")
    def replicas_agree_below_the_high_watermark(s, a: Replica, b: Replica, n: Offset) -> bool:
        """On the records, and on the transactions that were aborted."""
        return n >= min(s.hw[a], s.hw[b]) or (s.log[a][n] == s.log[b][n] and s.index[a][n] == s.index[b][n])

    @invariant("TXF-7", "TXF-8")
    def whatever_is_undecided_in_the_log_is_open(s, r: Replica, x: Offset) -> bool:
        """Whoever leads or follows, and whatever was cut off."""
        return (
            x >= len(s.log[r])
            or s.log[r][x].kind != Kind.DATA
            or any(s.ends(r, m, s.log[r][x].producer) for m in range(L) if m > x)
            or (s.opened(r, s.log[r][x].producer) is not None and s.opened(r, s.log[r][x].producer) <= x)
        )

    @invariant("TXF-7", "TXF-8")
    def whatever_is_open_is_undecided_in_the_log(s, r: Replica, p: Producer, m: Offset) -> bool:
        return s.opened(r, p) is None or (
            s.opened(r, p) < len(s.log[r])
            and s.log[r][s.opened(r, p)].producer == p
            and s.log[r][s.opened(r, p)].kind == Kind.DATA
            and (m < s.opened(r, p) or not s.ends(r, m, p))
        )

    @invariant("TXF-8")
    def the_index_is_made_of_the_log(s, r: Replica, m: Offset) -> bool:
        """Each entry is of an abort marker that is there, and begins at a record of its producer."""
        return s.index[r][m] is None or (
            m < len(s.log[r])
            and s.log[r][m].kind == Kind.ABORT
            and s.index[r][m] < m
            and s.log[r][s.index[r][m]].producer == s.log[r][m].producer
        )

    @invariant("TXF-2", "TXF-3")
    def markers_say_what_was_decided(s, r: Replica, n: Offset) -> bool:
        """By a coordinator that has sent it."""
        return (
            n >= len(s.log[r])
            or s.log[r][n].kind == Kind.DATA
            or (
                s.log[r][n].coordinator in s.sent[s.log[r][n].producer][s.log[r][n].txn]
                and s.outcome_of(s.log[r][n]) == (Outcome.COMMIT if s.log[r][n].kind == Kind.COMMIT else Outcome.ABORT)
            )
        )

    @step("TXF-2")
    def what_is_decided_stays(s, p: Producer, t: Txn) -> bool:
        return s.outcome[p][t] == Outcome.ONGOING or s.next.outcome[p][t] == s.outcome[p][t]

    @step("TXF-3")
    def a_new_coordinator_sends_again(s, p: Producer) -> bool:
        """What was not answered, with its epoch."""
        return (
            s.next.coordinator == s.coordinator
            or s.outcome[p][s.txn[p]] == Outcome.ONGOING
            or (s.next.coordinator > s.coordinator and s.next.coordinator in s.next.sent[p][s.txn[p]])
        )

    @invariant("TXF-5")
    def coordinator_epochs_rise(s, r: Replica, i: Offset, j: Offset) -> bool:
        """In the markers for one producer in a log."""
        return (
            not (i < j and j < len(s.log[r]))
            or s.log[r][i].producer != s.log[r][j].producer
            or s.log[r][i].kind == Kind.DATA
            or s.log[r][j].kind == Kind.DATA
            or s.log[r][i].coordinator <= s.log[r][j].coordinator
        )

    @invariant("TXF-4")
    def no_marker_goes_back(s, r: Replica, i: Offset, j: Offset) -> bool:
        """Behind a record there is no marker of an earlier transaction that would end its transaction."""
        return (
            not VERSION_2
            or not (i < j and j < len(s.log[r]))
            or s.log[r][i].producer != s.log[r][j].producer
            or s.log[r][j].txn >= s.log[r][i].txn
        )

    @invariant("TXF-6")
    def the_marker_before_is_replicated(s, p: Producer, t: Txn) -> bool:
        """When the next transaction begins."""
        return t >= s.txn[p] or any(
            s.committed[m].producer == p and s.committed[m].kind != Kind.DATA and s.committed[m].txn == t
            for m in range(L)
            if m < len(s.committed)
        )

    @step("TXF-1")
    def a_leader_writes_in_its_epoch(s, r: Replica) -> bool:
        """And nobody else writes: a follower has what its leader has."""
        n = len(s.log[r])
        return len(s.next.log[r]) <= n or (
            s.next.log[r][n].epoch == s.epoch[r]
            if r in s.leading
            else any(s.follows(r, x) and n < len(s.log[x]) and s.log[x][n] == s.next.log[r][n] for x in Replica)
        )

    @step("TXF-7")
    def a_new_leader_keeps_what_it_has(s, r: Replica, p: Producer) -> bool:
        """Its log, what is open in it, and what was aborted."""
        return (
            r in s.leading
            or r not in s.next.leading
            or (
                r in s.isr
                and s.next.log[r] == s.log[r]
                and s.next.open_at[r][len(s.log[r])][p] == s.opened(r, p)
                and all(s.next.index[r][m] == s.index[r][m] for m in range(L + 1))
            )
        )

    @step("TXF-8")
    def what_a_truncation_cuts_was_not_replicated(s, r: Replica, n: Offset) -> bool:
        """By any high watermark."""
        return (
            n >= len(s.log[r])
            or n < len(s.next.log[r])
            or n >= len(s.committed)
            or s.log[r][n] != s.committed[n]
            or r not in s.isr
        )

    @step("TXF-10")
    def a_restart_decides_nothing(s, r: Replica, p: Producer) -> bool:
        """Who stops leading so keeps its log, and what is open in it."""
        return (
            r not in s.leading
            or r in s.next.leading
            or s.next.epoch[r] != s.epoch[r]
            or (s.next.log[r] == s.log[r] and s.next.open_at[r][len(s.log[r])][p] == s.opened(r, p))
        )

    # ---- what must be possible

    @witness
    def a_marker_is_lost_and_sent_again(s, r: Replica) -> bool:
        """It is in the log of a leader that was deposed, and the one that came later is replicated."""
        return any(
            s.log[r][n].kind != Kind.DATA
            and s.committed[m].kind != Kind.DATA
            and s.committed[m].producer == s.log[r][n].producer
            and s.committed[m].txn == s.log[r][n].txn
            and s.committed[m].epoch > s.log[r][n].epoch
            and s.log[r][m] != s.committed[m]
            for n in range(L)
            for m in range(L)
            if n < len(s.log[r]) and m < len(s.committed) and m < len(s.log[r])
        )

    @witness
    def a_marker_comes_twice(s, r: Replica) -> bool:
        return any(
            s.log[r][n].kind != Kind.DATA
            and s.log[r][m].kind != Kind.DATA
            and s.log[r][n].producer == s.log[r][m].producer
            and s.log[r][n].txn == s.log[r][m].txn
            for n in range(L)
            for m in range(L)
            if n < m and m < len(s.log[r])
        )

    @witness
    def a_deposed_leader_ends_a_transaction_with_the_marker_of_the_next(s, r: Replica) -> bool:
        """The one before has its own marker elsewhere."""
        return any(s.ended[r][f] is not None and s.log[r][f].txn < s.log[r][s.ended[r][f]].txn for f in range(L + 1))

    @witness
    def sees_more_than_the_new_leader_shows(s, r: Replica) -> bool:
        """What was committed: the high watermark of the new leader lags."""
        return s.leads(r) and s.hw[r] == 0 and s.seen != set()

    @witness
    def passes_what_was_aborted(s) -> bool:
        return s.position == L and s.seen == set() and any(s.index[r][m] is not None for r in Replica for m in range(L))


VERSION_2_KEEPS = {"VERSION_2": True, "FORGETS": False}
"""The rules with which the claims hold."""

MODELS = [
    Expectation(
        CommittedTransactions,
        sizes={"Producer": 1, "L": 4, "E": 1, "T": 2, "C": 1},
        distinct=791,
        generated=1_503,
        depth=12,
        deadlock=True,
    ),
    Expectation(
        ReplicatedMarkers,
        sizes={"Replica": 2, "Producer": 1, "L": 2, "E": 1, "T": 2, "C": 1},
        distinct=34_492,
        generated=327_031,
        depth=15,
        deadlock=True,
    ),
    Expectation(
        Failover,
        sizes={"Replica": 2, "Producer": 1, "L": 2, "E": 2, "T": 2, "C": 2, **VERSION_2_KEEPS},
        distinct=195_736,
        generated=653_578,
        depth=22,
        symmetry=("Replica",),
        deadlock=True,
        ghosts=True,
    ),
]
