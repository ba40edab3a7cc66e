"""What compaction promises: which records a cleaned log still has, and which not.

A cleaner reads the log from its first dirty offset up to a segment that it must leave alone, remembers the last offset
of each key, copies all segments below into new ones without what is superseded, and then writes down how far it came:
the cleaner point. So the promise is about offsets below that point, as it was checkpointed, and from the log start on;
above it anything may stand, and anything may already be gone.

When the promise holds, round by round. Let every key stand at most once below the point. A round puts the keys of
[point, end) into a map, each with its last offset, and keeps of the records below `end` those that are not older than
their key's entry: of the clean part those that were not written again, of the dirty part the last ones. Again every key
stands at most once below `end`. If the map gets full, `end` is the offset after the last record that went in, in the
middle of a batch if it must be. That several groups of segments are swapped one after the other, and the point is
written last, only makes the promise hold for more than is written down. A policy that is taken away and given back
keeps the point, and what lay below it; a topic that is made again begins without one. What breaks it is a point that
stays above what was cleaned: a crash between a truncation and the lowering of the checkpoint (see the Cleaner's page),
after which the log grows beyond it.

Source: Kafka Internals, ch. 04, "Detailed mechanics, compaction"; Cleaner, CleanedTransactionMetadata, LogCleaner and
MemoryRecords.filterTo, Kafka 4.3.0.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple

from icontract import ensure, require

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.governs import governs
from kafkaspec.contract.machine import without_state
from kafkaspec.contract.numbers import Count, Offset, ProducerIdOrNone
from kafkaspec.spec.common.kafka import INT_MAX, LONG_MAX

PREFIX = "CMP"
TITLE = "What compaction promises"

CHAPTER = "Kafka Internals, ch. 04"

A_PREDICATE = {
    "model": "a predicate over a log at rest: the cleaner that makes it true is not modelled here",
    "proof": "a predicate over a log at rest: the argument by rounds stands above, and is tested by running rounds",
}
OF_ANOTHER = {
    **A_PREDICATE,
    "audit": "what is out of order or inconsistent is found in every log, compacted or not, by the checks of its "
    "batches (BAT) and of its offsets (LDR); what a record or a batch was before, no log at rest tells",
    "mutant": "checked by the batch checks of every log, compacted or not; their mutants are theirs",
}

clause(
    "CMP-6",
    """A tombstone is its key's record like any other. The first cleaning that keeps it gives its batch a delete horizon
    (the time then and delete.retention.ms); a cleaning after that may take it away, and until one comes it stays. The
    batch keeps its horizon when the tombstone is gone, and by versions before 3.1 none was given.""",
    source=f"{CHAPTER}, 'Tombstones and delete.retention.ms'; MemoryRecords.filterTo, Kafka 4.3.0; KIP-534",
    without=A_PREDICATE,
)
clause(
    "CMP-7",
    """A control record is no key's: transaction markers stay until the data of their transaction is gone and a horizon
    has passed. A transaction's data may be gone while its marker is there.""",
    source=f"{CHAPTER}, 'Transactions'; CleanedTransactionMetadata and Cleaner.cleanInto, Kafka 4.3.0",
    without=A_PREDICATE,
)


class Record(NamedTuple):
    """A data record. `key` None: it has none; `value` None: a tombstone."""

    offset: Offset
    key: str | None
    value: str | None


Kind = Literal["data", "txn", "commit", "abort"]
DATA: Final = "data"
TRANSACTIONAL: Final = "txn"
COMMIT: Final = "commit"
ABORT: Final = "abort"


class Batch(NamedTuple):
    """A batch, of data (in a transaction or not) or with a marker. A marker's record is not among `records`."""

    base_offset: Offset
    last_offset: Offset
    kind: Kind = DATA
    producer: ProducerIdOrNone = -1
    records: tuple[Record, ...] = ()


Log = tuple[Batch, ...]


# ---- the promise -----------------------------------------------------------------------------------------------------
@states("CMP-1")
def in_order(log: Log) -> bool:
    """Whether every offset stands once, in order, within its batch."""
    offsets = [r.offset for b in log for r in b.records]
    return (
        all(0 <= b.base_offset <= b.last_offset <= b.base_offset + INT_MAX for b in log)
        and all(a.last_offset < b.base_offset for a, b in itertools.pairwise(log))
        and all(a < b for a, b in itertools.pairwise(offsets))
        and all(b.base_offset <= r.offset <= b.last_offset for b in log for r in b.records)
    )


@states(without=A_PREDICATE)
def promised(log: Log, log_start: int, point: int) -> list[Record]:
    """The records that something is promised about.

    CMP-5: Above the cleaner point, and below the log start, nothing is promised: a key may stand more than once, and
    records may be gone too, where segments were swapped and the cleaner stopped before it wrote its point. A point
    above the active segment's base promises nothing: a truncation was not followed by the lowering of the point.
    [Cleaner.cleanSegments and LogCleaner.cleanLog, Kafka 4.3.0]
    """
    return [r for b in log for r in b.records if log_start <= r.offset < point]


@states("CMP-2", "CMP-6", "CMP-7", without=A_PREDICATE)
def superseded(log: Log, log_start: int, point: int) -> list[tuple[int, int]]:
    """Records whose key stands again below the point: their offset, and the last one's.

    CMP-2: From the log start to the checkpointed cleaner point a key stands at most once; the record that stands is the
    last one that the key had below the point. [{CHAPTER}, 'Detailed mechanics, compaction'; Cleaner, Kafka 4.3.0;
    KIP-58]
    """
    keyed = [(r.key, r.offset) for r in promised(log, log_start, point) if r.key is not None]
    last = dict(keyed)
    return [(offset, last[key]) for key, offset in keyed if offset < last[key]]


@states(without=A_PREDICATE)
def keyless(log: Log, log_start: int, point: int) -> list[int]:
    """The offsets of records without a key.

    CMP-3: Below the cleaner point, from the log start on, every data record has a key. [{CHAPTER}, 'Recopy pass';
    Cleaner.shouldRetainRecord, Kafka 4.3.0]
    """
    return [r.offset for r in promised(log, log_start, point) if r.key is None]


@states(without=A_PREDICATE)
def aborted(log: Log, log_start: int, point: int) -> list[int]:
    """For each aborted transaction with records below the point the base offset of its first such batch.

    CMP-4: Below the cleaner point no record of an aborted transaction is left; a marker that aborts has then no data
    before it of that producer's transaction. [{CHAPTER}, 'Transactions'; CleanedTransactionMetadata, Kafka 4.3.0;
    KIP-98]
    """
    out = []
    for i, marker in enumerate(log):
        if marker.kind != ABORT:
            continue
        begun = max((j + 1 for j in range(i) if _ends(log[j], marker.producer)), default=0)
        data = [
            b
            for b in log[begun:i]
            if b.kind == TRANSACTIONAL
            and b.producer == marker.producer
            and any(log_start <= r.offset < point for r in b.records)
        ]
        out += [b.base_offset for b in data[:1]]
    return sorted(out)


@states(without=A_PREDICATE)
def left_open(log: Log, log_start: int, point: int) -> list[int]:
    """For each open transaction with records below the point the base offset of its first such batch.

    CMP-10: Below the cleaner point no transaction is open: one with a record there has its marker, below the point or
    above it. The cleaner does not go beyond the last stable offset, and takes no marker while data of its transaction
    is there. [LogCleanerManager.cleanableOffsets and CleanedTransactionMetadata, Kafka 4.3.0; KIP-98]
    """
    first: dict[int, int] = {}
    for b in log:
        if b.kind == TRANSACTIONAL and any(log_start <= r.offset < point for r in b.records):
            first.setdefault(b.producer, b.base_offset)
        elif b.kind in (COMMIT, ABORT):
            first.pop(b.producer, None)
    return sorted(first.values())


@states(without=A_PREDICATE)
def emptied_before(log: Log, log_start: int, point: int) -> list[int]:
    """The base offsets of data batches without records that another one of their producer follows.

    CMP-11: From the log start to the cleaner point a producer has at most one data batch without records, that of its
    last sequence; one that ends at the point stands for the end of the round, and does not count.
    [Cleaner.cleanInto, Kafka 4.3.0; KAFKA-8335]
    """
    empty = [
        (b.producer, b.base_offset)
        for b in log
        if b.kind in (DATA, TRANSACTIONAL) and b.producer >= 0 and not b.records
        if log_start <= b.last_offset and b.last_offset + 1 < point
    ]
    last = dict(empty)
    return [base for producer, base in empty if base < last[producer]]


def _ends(batch: Batch, producer: int) -> bool:
    """A marker that ends a transaction of this producer."""
    return batch.kind in (COMMIT, ABORT) and batch.producer == producer


# ---- a round of cleaning, as far as the promise needs it -------------------------------------------------------------
@states(without={"CMP-1": OF_ANOTHER, "CMP-8": A_PREDICATE, "CMP-9": OF_ANOTHER})
def round_of_cleaning(log: Log, point: int, end: int, capacity: int) -> tuple[Log, int]:
    """The log after one round over [point, end), and the new point. `capacity`: how many keys the map takes.

    CMP-1: Compaction only takes records away: what is left stands in the order of its offsets, each offset once, with
    key, value, headers and timestamp as they were. [{CHAPTER}, 'Recopy pass'; MemoryRecords.filterTo, Kafka 4.3.0]

    CMP-8: Offsets may be missing anywhere below the active segment. A batch without records stays where it has a live
    producer's last sequence, or the last offset of a round; control batches may be empty too. [{CHAPTER}, 'Invariants &
    guarantees'; Cleaner.cleanInto, Kafka 4.3.0]

    CMP-9: A batch that lost records keeps its base offset, last offset, sequence, producer and leader epoch; its
    largest timestamp is that of what is left, or, of an empty batch, what it was. [MemoryRecords.filterTo, Kafka 4.3.0;
    commit 37433638271]
    """
    undone = _aborted_batches(log)
    latest: dict[str, int] = {}
    reached = end
    for r in [r for b in log if b.base_offset not in undone for r in b.records]:
        if not point <= r.offset < end or r.key is None:
            continue
        if len(latest) >= capacity:
            reached = max(latest.values(), default=point - 1) + 1
            break
        latest[r.key] = r.offset

    def stays(b: Batch, r: Record) -> bool:
        if b.base_offset in undone:
            return False
        return r.offset >= reached or (r.key is not None and r.offset >= latest.get(r.key, -1))

    cleaned = tuple(b._replace(records=tuple(r for r in b.records if stays(b, r))) for b in log)
    kept = tuple(b for b in cleaned if b.records or b.kind in (COMMIT, ABORT) or b.last_offset + 1 == end)
    return kept, reached


def _aborted_batches(log: Log) -> set[int]:
    """Base offsets of the data batches of aborted transactions."""
    out: set[int] = set()
    open_: dict[int, list[int]] = {}
    for b in log:
        if b.kind == TRANSACTIONAL:
            open_.setdefault(b.producer, []).append(b.base_offset)
        elif b.kind in (COMMIT, ABORT):
            ended = open_.pop(b.producer, [])
            out |= set(ended) if b.kind == ABORT else set()
    return out


def undecided(log: Log) -> int:
    """The offset of the first batch of a transaction without a marker; the log's end, and beyond, if there is none."""
    open_: dict[int, int] = {}
    for b in log:
        if b.kind == TRANSACTIONAL:
            open_.setdefault(b.producer, b.base_offset)
        elif b.kind in (COMMIT, ABORT):
            open_.pop(b.producer, None)
    return min(open_.values(), default=LONG_MAX)


@states("CMP-2", "CMP-3", "CMP-4", "CMP-10", "CMP-11")
def keeps_its_promise(log: Log, log_start: int, point: int) -> bool:
    """Whether nothing is left that ought to be gone, and nothing is undecided."""
    of = log, log_start, point
    return not (superseded(*of) or keyless(*of) or aborted(*of) or left_open(*of) or emptied_before(*of))


# ---- the questions ---------------------------------------------------------------------------------------------------
machine = without_state("compaction", __name__)


@dataclass(frozen=True)
class Breaches:
    """What is left though it ought to be gone."""

    superseded: Annotated[list[tuple[int, int]], governs("CMP-2", "CMP-6")]
    """pairs of offsets: a record, and the later one with its key"""
    keyless: Annotated[list[int], governs("CMP-3")]
    aborted: Annotated[list[int], governs("CMP-4")]
    left_open: Annotated[list[int], governs("CMP-10", "CMP-7")]
    emptied_before: Annotated[list[int], governs("CMP-11", "CMP-8")]


@machine.question("breaches", "CMP-2", "CMP-3", "CMP-4", "CMP-5", "CMP-6", "CMP-7", "CMP-8", "CMP-10", "CMP-11")
@require(lambda log: in_order(log), "CMP-1 what is left stands in order")
@ensure(
    lambda log_start, point, result: all(
        log_start <= o < point for o in [*itertools.chain(*result.superseded), *result.keyless]
    ),
    "CMP-5 nothing is said of what is not promised",
)
def breaches(log: Log, log_start: Offset, point: Offset) -> Breaches:
    """What of a log with this start and cleaner point breaks the promise."""
    of = log, log_start, point
    return Breaches(superseded(*of), keyless(*of), aborted(*of), left_open(*of), emptied_before(*of))


@dataclass(frozen=True)
class Round:
    """The log after a round of cleaning, and how far it is clean."""

    log: Annotated[Log, governs("CMP-2", "CMP-1", "CMP-9")]
    point: Annotated[int, governs("CMP-2")]


@machine.question("clean", "CMP-2", "CMP-4", "CMP-9", generated=False)
@require(lambda log: in_order(log), "CMP-1 a log is in order")
@require(lambda log, point: keeps_its_promise(log, 0, point), "CMP-2 what was cleaned before keeps the promise")
@require(lambda point, end, capacity: 0 <= point <= end and capacity > 0, "CMP-5 a round goes on where one ended")
@require(lambda log, end: undecided(log) >= end, "CMP-4 no transaction below the end is open")
@ensure(lambda result: keeps_its_promise(result.log, 0, result.point), "CMP-2 so does what was cleaned now")
@ensure(
    lambda log, result: {r for b in result.log for r in b.records} <= {r for b in log for r in b.records},
    "CMP-1 records are only taken away",
)
def clean(log: Log, point: Offset, end: Offset, capacity: Count) -> Round:
    """A round of cleaning, up to an offset below which every transaction is decided."""
    return Round(*round_of_cleaning(log, point, end, capacity))
