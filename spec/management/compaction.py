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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import icontract

from kafkaspec.contract.clauses import clause, states
from kafkaspec.contract.machine import Json, Nothing, Step, without_state

PREFIX = "CMP"
TITLE = "What compaction promises"

CHAPTER = "Kafka Internals, ch. 04"

AT_REST = {
    "model": "a predicate over a log at rest: the cleaner that makes it true is not modelled here",
    "proof": "a predicate over a log at rest: the argument by rounds stands above, and is tested by running rounds",
}
OF_ANOTHER = {
    **AT_REST,
    "audit": "what is out of order or inconsistent is found in every log, compacted or not, by the checks of its "
    "batches (BAT) and of its offsets (LDR); what a record or a batch was before, no log at rest tells",
    "mutant": "judged by the batch checks of every log, compacted or not; their mutants are theirs",
}

CMP_1 = clause(
    "CMP-1",
    """Compaction only takes records away: what is left stands in the order of its offsets, each offset once, with key,
    value, headers and timestamp as they were.""",
    source=f"{CHAPTER}, 'Recopy pass'; MemoryRecords.filterTo, Kafka 4.3.0",
    without=OF_ANOTHER,
)
CMP_2 = clause(
    "CMP-2",
    """From the log start to the checkpointed cleaner point a key stands at most once; the record that stands is the
    last one that the key had below the point.""",
    source=f"{CHAPTER}, 'Detailed mechanics, compaction'; Cleaner, Kafka 4.3.0; KIP-58",
    without=AT_REST,
)
CMP_3 = clause(
    "CMP-3",
    "Below the cleaner point, from the log start on, every data record has a key.",
    source=f"{CHAPTER}, 'Recopy pass'; Cleaner.shouldRetainRecord, Kafka 4.3.0",
    without=AT_REST,
)
CMP_4 = clause(
    "CMP-4",
    """Below the cleaner point no record of an aborted transaction is left; a marker that aborts has then no data before
    it of that producer's transaction.""",
    source=f"{CHAPTER}, 'Transactions'; CleanedTransactionMetadata, Kafka 4.3.0; KIP-98",
    without=AT_REST,
)
CMP_5 = clause(
    "CMP-5",
    """Above the cleaner point, and below the log start, nothing is promised: a key may stand more than once, and
    records may be gone too, where segments were swapped and the cleaner stopped before it wrote its point. A point
    above the active segment's base promises nothing: a truncation was not followed by the lowering of the point.""",
    source="Cleaner.cleanSegments and LogCleaner.cleanLog, Kafka 4.3.0",
    without=AT_REST,
)
CMP_6 = clause(
    "CMP-6",
    """A tombstone is its key's record like any other. The first cleaning that keeps it gives its batch a delete horizon
    (the time then and delete.retention.ms); a cleaning after that may take it away, and until one comes it stays. The
    batch keeps its horizon when the tombstone is gone, and by versions before 3.1 none was given.""",
    source=f"{CHAPTER}, 'Tombstones and delete.retention.ms'; MemoryRecords.filterTo, Kafka 4.3.0; KIP-534",
    without=AT_REST,
)
CMP_7 = clause(
    "CMP-7",
    """A control record is no key's: transaction markers stay until the data of their transaction is gone and a horizon
    has passed. A transaction's data may be gone while its marker is there.""",
    source=f"{CHAPTER}, 'Transactions'; CleanedTransactionMetadata and Cleaner.cleanInto, Kafka 4.3.0",
    without=AT_REST,
)
CMP_8 = clause(
    "CMP-8",
    """Offsets may be missing anywhere below the active segment. A batch without records stays where it has a live
    producer's last sequence, or the last offset of a round; control batches may be empty too.""",
    source=f"{CHAPTER}, 'Invariants & guarantees'; Cleaner.cleanInto, Kafka 4.3.0",
    without=AT_REST,
)
CMP_9 = clause(
    "CMP-9",
    """A batch that lost records keeps its base offset, last offset, sequence, producer and leader epoch; its largest
    timestamp is that of what is left, or, of an empty batch, what it was.""",
    source="MemoryRecords.filterTo, Kafka 4.3.0; commit 37433638271",
    without=OF_ANOTHER,
)


class Record(NamedTuple):
    """A data record. `key` None: it has none; `value` None: a tombstone."""

    offset: int
    key: str | None
    value: str | None


DATA, TRANSACTIONAL, COMMIT, ABORT = "data", "txn", "commit", "abort"


@dataclass(frozen=True)
class Batch:
    """A batch, of data (in a transaction or not) or with a marker. A marker's record is not among `records`."""

    base_offset: int
    last_offset: int
    kind: str = DATA
    producer: int = -1
    records: tuple[Record, ...] = ()


Log = tuple[Batch, ...]


@states("CMP-1")
def in_order(log: Log) -> bool:
    """Whether every offset stands once, in order, within its batch."""
    offsets = [r.offset for b in log for r in b.records]
    return (
        all(a.last_offset < b.base_offset for a, b in itertools.pairwise(log))
        and all(a < b for a, b in itertools.pairwise(offsets))
        and all(b.base_offset <= r.offset <= b.last_offset for b in log for r in b.records)
    )


@states("CMP-5")
def promised(log: Log, log_start: int, point: int) -> list[Record]:
    """The records that something is promised about."""
    return [r for b in log for r in b.records if log_start <= r.offset < point]


@states("CMP-2", "CMP-6", "CMP-7")
def superseded(log: Log, log_start: int, point: int) -> list[tuple[int, int]]:
    """Records whose key stands again below the point: their offset, and the last one's."""
    keyed = [(r.key, r.offset) for r in promised(log, log_start, point) if r.key is not None]
    last = dict(keyed)
    return [(offset, last[key]) for key, offset in keyed if offset < last[key]]


@states("CMP-3")
def keyless(log: Log, log_start: int, point: int) -> list[int]:
    """The offsets of records without a key."""
    return [r.offset for r in promised(log, log_start, point) if r.key is None]


@states("CMP-4")
def aborted(log: Log, log_start: int, point: int) -> list[int]:
    """For each aborted transaction with records below the point the base offset of its first such batch."""
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


def _ends(batch: Batch, producer: int) -> bool:
    """A marker that ends a transaction of this producer."""
    return batch.kind in (COMMIT, ABORT) and batch.producer == producer


# ---- a round of cleaning, as far as the promise needs it -------------------------------------------------------------
@states("CMP-1", "CMP-8", "CMP-9")
def round_of_cleaning(log: Log, point: int, end: int, capacity: int) -> tuple[Log, int]:
    """The log after one round over [point, end), and the new point. `capacity`: how many keys the map takes."""
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

    cleaned = tuple(
        Batch(b.base_offset, b.last_offset, b.kind, b.producer, tuple(r for r in b.records if stays(b, r))) for b in log
    )
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
    return min(open_.values(), default=2**63 - 1)


@states("CMP-2", "CMP-3", "CMP-4")
def keeps_its_promise(log: Log, log_start: int, point: int) -> bool:
    """Whether nothing is left that ought to be gone."""
    return not (superseded(log, log_start, point) or keyless(log, log_start, point) or aborted(log, log_start, point))


# ---- the machine: a log, and what was cleaned of it ------------------------------------------------------------------
machine = without_state("compaction", __name__)


def log_of(text: Sequence[Sequence[Any]]) -> Log:
    """From JSON: [base offset, last offset, kind, producer, [[offset, key, value], ...]] a batch."""
    return tuple(
        Batch(base, last, kind, producer, tuple(Record(*r) for r in records))
        for base, last, kind, producer, records in text
    )


def is_log(text: Any) -> bool:
    """The text of a log, in order."""
    return (
        isinstance(text, list)
        and all(
            isinstance(b, list)
            and len(b) == 5
            and isinstance(b[0], int)
            and isinstance(b[1], int)
            and b[0] >= 0
            and b[2] in (DATA, TRANSACTIONAL, COMMIT, ABORT)
            and isinstance(b[3], int)
            and isinstance(b[4], list)
            and all(isinstance(r, list) and len(r) == 3 and isinstance(r[0], int) for r in b[4])
            and all(isinstance(x, str | None) for r in b[4] for x in r[1:])
            for b in text
        )
        and in_order(log_of(text))
    )


def text_of(log: Log) -> Json:
    return [[b.base_offset, b.last_offset, b.kind, b.producer, [list(r) for r in b.records]] for b in log]


class Broken(TypedDict):
    """What is left though it ought to be gone."""

    superseded: list[list[int]]
    """pairs of offsets: a record, and the later one with its key"""
    keyless: list[int]
    aborted: list[int]


@machine.operation("breaches", "CMP-2", "CMP-3", "CMP-4", "CMP-5", "CMP-6", "CMP-7", "CMP-8")
@icontract.require(lambda log: is_log(log), "CMP-1 what is left stands in order")
@icontract.ensure(
    lambda log_start, point, result: all(
        log_start <= o < point
        for o in [*(o for pair in result.result["superseded"] for o in pair), *result.result["keyless"]]
    ),
    "CMP-5 nothing is said of what is not promised",
)
def breaches(state: Nothing, log: Sequence[Sequence[Any]], log_start: int, point: int) -> Step[Nothing, Broken]:
    """What of a log with this start and cleaner point breaks the promise."""
    whole = log_of(log)
    return Step(
        state,
        {
            "superseded": [list(pair) for pair in superseded(whole, log_start, point)],
            "keyless": keyless(whole, log_start, point),
            "aborted": aborted(whole, log_start, point),
        },
    )


class Cleaned(TypedDict):
    """The log after a round, and how far it is clean."""

    log: list[Json]
    point: int


@machine.operation("clean", "CMP-2", "CMP-4", "CMP-9", generated=False)
@icontract.require(lambda log: is_log(log), "CMP-1 a log is in order")
@icontract.require(
    lambda log, point: is_log(log) and keeps_its_promise(log_of(log), 0, point),
    "CMP-2 what was cleaned before keeps the promise",
)
@icontract.require(
    lambda point, end, capacity: 0 <= point <= end and capacity > 0, "CMP-5 a round goes on where one ended"
)
@icontract.require(
    lambda log, end: is_log(log) and undecided(log_of(log)) >= end, "CMP-4 no transaction below the end is open"
)
@icontract.ensure(
    lambda result: keeps_its_promise(log_of(result.result["log"]), 0, result.result["point"]),
    "CMP-2 so does what was cleaned now",
)
@icontract.ensure(
    lambda log, result: (
        {r for b in log_of(result.result["log"]) for r in b.records} <= {r for b in log_of(log) for r in b.records}
    ),
    "CMP-1 records are only taken away",
)
def clean(state: Nothing, log: Sequence[Sequence[Any]], point: int, end: int, capacity: int) -> Step[Nothing, Cleaned]:
    """A round of cleaning, up to an offset below which every transaction is decided."""
    after, reached = round_of_cleaning(log_of(log), point, end, capacity)
    return Step(state, {"log": text_of(after), "point": reached})
