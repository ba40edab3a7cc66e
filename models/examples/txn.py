"""The transaction coordinator by KIP-890, transaction version 2: each end of a transaction has a new producer epoch.

One transactional id, with several producers that come to use it, one after another. The producer's epoch names the
transaction. A partition that gets records asks the coordinator to add it (verification), the coordinator writes its
decision into the transaction log and then a marker to each partition that was added. The marker, and the producer from
then on, have the next epoch, so that whatever is late is known by its epoch: records, EndTxn requests, markers.

All messages are kept, and may arrive late, repeatedly or never: `sent` are the produce requests, `asked` the EndTxn
requests, `decided` with `targets` the markers. The transaction log is what is replicated; what a coordinator has
appended and not yet replicated is `pending`, by its coordinator epoch. A coordinator that was deposed keeps its own.

Source: KIP-98, KIP-360, KIP-890; `TransactionCoordinator.scala` (`endTransaction` and its table),
`TransactionMetadata.java`, `ProducerAppendInfo.java` (`checkProducerEpoch`). Simplified: a producer sends one batch to
a partition in each transaction; InitProducerId and a partition's being added are replicated at once; a transaction that
is aborted by the coordinator takes one epoch, where Kafka takes two; no overflow of epochs, no expiry of ids.
"""

# mypy: disable-error-code="operator, index, arg-type, assignment, union-attr"
# (the modelling language unwraps an option where its value is wanted; mypy narrows no element of a map)

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

from kafkaspec.explore.checked import Expectation
from kafkaspec.language import Model, Range, Size, Sort, action, define, invariant, require, step, witness


class Client(Sort):
    """A producer: a process that uses the transactional id."""


class Partition(Sort):
    """One that may get records."""


E = Size("E")
"""The highest producer epoch; 0 is before the first producer."""
C = Size("C")
"""The highest coordinator epoch; the first is 1."""
Epoch = Annotated[int, Range(0, E)]
Term = Annotated[int, Range(1, C)]


class State(enum.Enum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5


class Result(enum.Enum):
    COMMIT = 0
    ABORT = 1


class Fate(enum.Enum):
    """Of what a partition has of a transaction."""

    NOTHING = 0
    OPEN = 1
    COMMITTED = 2
    ABORTED = 3


@dataclass(frozen=True)
class Prepare:
    """The record that begins the end of a transaction: the decision, and the partitions that get a marker."""

    result: Result
    partitions: set[Partition]


class Transactions(Model):
    """The coordinator's: `state`, `epoch`, `added`, `term` and `pending`. `holds` is a producer's epoch. A partition's:
    `seen`, the last producer epoch, and `verified`, the epoch that the coordinator has confirmed for the next batch."""

    state: State
    epoch: Epoch
    added: set[Partition]
    term: Term
    pending: dict[Term, Prepare | None]
    holds: dict[Client, Epoch | None]
    sent: dict[Epoch, set[Partition]]
    asked: dict[Epoch, Result | None]
    decided: dict[Epoch, Result | None]
    targets: dict[Epoch, set[Partition]]
    seen: dict[Partition, Epoch]
    verified: dict[Partition, Epoch | None]
    fate: dict[Partition, dict[Epoch, Fate]]

    @define
    def idle(s) -> bool:
        """The coordinator has no transition in progress; else the answer is CONCURRENT_TRANSACTIONS."""
        return s.pending[s.term] is None

    # InitProducerId: fences whoever had the id. In a transaction the coordinator aborts that first (`expire`).
    @action(who="producer")
    def init(s, p: Client) -> None:
        require(s.idle(), s.state in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT), s.epoch < E)
        s.next.state = State.EMPTY
        s.next.epoch = s.epoch + 1
        s.next.holds[p] = s.epoch + 1

    # The producer, until it ends the transaction. There is no AddPartitions from it: the partition asks.
    @action(who="producer")
    def produce(s, p: Client, t: Partition) -> None:
        require(s.holds[p] is not None, s.asked[s.holds[p]] is None)
        s.next.sent[s.holds[p]] = s.sent[s.holds[p]] | {t}

    # A partition without an open transaction, on a batch: the coordinator adds it, if the epoch is the current one and
    # no end is in progress. Else INVALID_PRODUCER_EPOCH, or CONCURRENT_TRANSACTIONS, and the batch is not written.
    @action(who="partition")
    def verify(s, t: Partition, e: Epoch) -> None:
        require(t in s.sent[e], e == s.epoch, s.idle())
        require(s.state not in (State.PREPARE_COMMIT, State.PREPARE_ABORT))
        s.next.added = s.added | {t}
        s.next.state = State.ONGOING
        s.next.verified[t] = e

    # The partition, some time after the batch is verified. A marker in between takes the verification away, and has a
    # higher epoch: either would do, the first is what producers of transaction version 1 need.
    @action(who="partition")
    def append(s, t: Partition, e: Epoch) -> None:
        require(t in s.sent[e], s.verified[t] == e, s.seen[t] <= e)
        s.next.fate[t][e] = Fate.OPEN
        s.next.seen[t] = e
        s.next.verified[t] = None

    # EndTxn. The producer commits when all that it sent is acknowledged; it may abort whenever it likes.
    @action(who="producer")
    def end(s, p: Client, r: Result) -> None:
        require(s.holds[p] is not None, s.asked[s.holds[p]] is None)
        require(r == Result.ABORT or all(s.fate[t][s.holds[p]] == Fate.OPEN for t in s.sent[s.holds[p]]))
        s.next.asked[s.holds[p]] = r

    # The coordinator on EndTxn with the current epoch. An abort may find no transaction: it takes an epoch all the
    # same, which fences the batches that are late. A commit that finds none is INVALID_TXN_STATE.
    @action(who="coordinator")
    def handle_end(s, e: Epoch, r: Result) -> None:
        require(s.asked[e] == r, e == s.epoch, s.idle(), s.epoch < E)
        require(
            s.state not in (State.PREPARE_COMMIT, State.PREPARE_ABORT), s.state == State.ONGOING or r == Result.ABORT
        )
        s.next.pending[s.term] = Prepare(result=r, partitions=s.added)

    # The coordinator, when the transaction takes too long, or on InitProducerId of another producer.
    @action(who="coordinator")
    def expire(s) -> None:
        require(s.state == State.ONGOING, s.idle(), s.epoch < E)
        s.next.pending[s.term] = Prepare(result=Result.ABORT, partitions=s.added)

    # The transaction log takes what the coordinator of its epoch has appended. Markers go out from now on.
    @action(who="transaction log")
    def replicate(s, c: Term) -> None:
        require(c == s.term, s.pending[c] is not None)
        s.next.pending[c] = None
        s.next.state = State.PREPARE_COMMIT if s.pending[c].result == Result.COMMIT else State.PREPARE_ABORT
        s.next.epoch = s.epoch + 1
        s.next.added = s.pending[c].partitions
        s.next.decided[s.epoch] = s.pending[c].result
        s.next.targets[s.epoch] = s.pending[c].partitions

    # The transaction log gets another leader: what was not replicated is not there.
    @action(who="transaction log")
    def fail_over(s) -> None:
        require(s.term < C)
        s.next.term = s.term + 1

    # A partition on a marker, whose epoch is one more than the transaction's. By transaction version 2 it must be
    # greater than that of an open transaction: one that is equal is late, and the transaction is the next.
    @action(who="partition")
    def mark(s, t: Partition, e: Epoch) -> None:
        require(t in s.targets[e], s.seen[t] <= e)
        s.next.seen[t] = e + 1
        s.next.verified[t] = None
        s.next.fate[t] = {
            x: (Fate.COMMITTED if s.decided[e] == Result.COMMIT else Fate.ABORTED)
            if s.fate[t][x] == Fate.OPEN
            else s.fate[t][x]
            for x in range(E + 1)
        }

    # The coordinator, when every marker is written.
    @action(who="coordinator")
    def complete(s) -> None:
        require(s.state in (State.PREPARE_COMMIT, State.PREPARE_ABORT), all(s.seen[t] >= s.epoch for t in s.added))
        s.next.state = State.COMPLETE_COMMIT if s.state == State.PREPARE_COMMIT else State.COMPLETE_ABORT
        s.next.added = set()

    # The answer to EndTxn, or to its retry: an epoch below the current one, and the same result. Any other is fenced.
    @action(who="producer")
    def go_on(s, p: Client, e: Epoch) -> None:
        require(s.holds[p] == e, s.epoch == e + 1, s.asked[e] is not None)
        require(
            s.state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)
            if s.asked[e] == Result.COMMIT
            else s.state in (State.PREPARE_ABORT, State.COMPLETE_ABORT)
        )
        s.next.holds[p] = e + 1

    @invariant()
    def no_hanging(s, t: Partition, e: Epoch) -> bool:
        """What is open in a partition is known to the coordinator: it is ongoing there, or its marker will come."""
        return s.fate[t][e] != Fate.OPEN or (
            t in s.added
            and (
                (s.state == State.ONGOING and e == s.epoch)
                or (s.state in (State.PREPARE_COMMIT, State.PREPARE_ABORT) and e + 1 == s.epoch and s.seen[t] == e)
            )
        )

    @invariant()
    def as_decided(s, t: Partition, e: Epoch) -> bool:
        """All of a transaction has one fate, that which the coordinator decided: no partition's is another."""
        return (s.fate[t][e] != Fate.COMMITTED or s.decided[e] == Result.COMMIT) and (
            s.fate[t][e] != Fate.ABORTED or s.decided[e] == Result.ABORT
        )

    @invariant()
    def committed_whole(s, t: Partition, e: Epoch) -> bool:
        """Of a committed transaction everything that was sent is there."""
        return s.decided[e] != Result.COMMIT or t not in s.sent[e] or s.fate[t][e] in (Fate.OPEN, Fate.COMMITTED)

    @invariant()
    def committed_as_asked(s, e: Epoch) -> bool:
        """Nothing is committed that its producer did not ask to commit."""
        return s.decided[e] != Result.COMMIT or s.asked[e] == Result.COMMIT

    @invariant()
    def one_at_a_time(s, p: Client, q: Client) -> bool:
        """A producer that was fenced has an epoch of its own, below the current one."""
        return p == q or s.holds[p] is None or s.holds[p] != s.holds[q]

    @step()
    def decisions_are_final(s, e: Epoch) -> bool:
        return s.decided[e] is None or s.next.decided[e] == s.decided[e]

    @step()
    def fates_are_final(s, t: Partition, e: Epoch) -> bool:
        return s.fate[t][e] in (Fate.NOTHING, Fate.OPEN) or s.next.fate[t][e] == s.fate[t][e]

    @witness
    def commits_twice(s, p: Client) -> bool:
        """The second transaction is open in a partition in which the first was committed."""
        return any(
            s.fate[t][e] == Fate.COMMITTED and e < E and s.fate[t][e + 1] == Fate.OPEN
            for t in Partition
            for e in range(E + 1)
        )

    @witness
    def decided_by_the_next(s, e: Epoch) -> bool:
        """A coordinator failed between appending and replicating, and the next one decided otherwise."""
        return (
            s.term > 1
            and s.pending[1] is not None
            and s.pending[1].result == Result.COMMIT
            and s.asked[e] == Result.COMMIT
            and s.decided[e] == Result.ABORT
        )


MODELS = [
    Expectation(
        Transactions,
        sizes={"Client": 2, "Partition": 1, "E": 3, "C": 2},
        distinct=31_144,
        generated=91_230,
        depth=27,
        deadlock=True,
    ),
    Expectation(
        Transactions,
        sizes={"Client": 2, "Partition": 2, "E": 3, "C": 2},
        distinct=1_026_188,
        generated=4_387_606,
        depth=39,
        deadlock=True,
    ),
]
