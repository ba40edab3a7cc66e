"""Who watches a cluster with transactions: what may be seen of a partition's replicas, its read_committed consumers and
its coordinator, step by step, if the rules are kept.

To the log of what is committed (replication_parts.observer) comes what the coordinator decided, by producer id and
epoch: from version 2 on each transaction has an epoch of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafkaspec.simulate.scenario import Violation
from kafkaspec.spec.storage.replication_parts.observer import COUNTED as OF_REPLICAS
from kafkaspec.spec.storage.replication_parts.observer import ONCE, Observer, apart

DECIDED = "a marker says what the coordinator decided"
WHOLE = "a committed transaction has all records that were acknowledged"
COUNTED = (
    "transactions committed", "transactions aborted", "markers without a transaction", "records dropped",
    "steps with a last stable offset below the high watermark", "truncations of a marker",
)  # fmt: skip
"""What has to happen for the rules to say something."""
MARKERS = "commit", "abort"


class Record(NamedTuple):
    """A record at an offset: who wrote it, in which leader epoch it was appended, what it is, and a checksum of its
    batch."""

    producer_id: int
    sequence: int
    epoch: int
    producer_epoch: int
    kind: str
    """`plain`, `transactional`, or one of the markers"""
    contents: int

    def __str__(self) -> str:
        who = f"producer {self.producer_id} of epoch {self.producer_epoch}, leader epoch {self.epoch}"
        if self.kind in MARKERS:
            return f"the {self.kind} marker of {who}"
        return f"record {self.sequence} of {who}"


class OpenTransaction(NamedTuple):
    """A transaction of the committed log without a marker."""

    epoch: int
    records: int


class TransactionObserver(Observer):
    """What was seen so far. A method answers with what a step broke, or with None."""

    def __init__(self, replicas: Sequence[str]) -> None:
        super().__init__(replicas)
        self.counted = dict.fromkeys((*OF_REPLICAS, *COUNTED), 0)
        self.decisions: Mapping[tuple[int, int], bool] = {}
        self.promised: dict[tuple[int, int], int] = {}
        """how many records were acknowledged to the producer of a transaction when it was decided"""
        self.open: dict[int, OpenTransaction] = {}
        self.fenced: dict[int, int] = {}
        """the lowest epoch that a producer may write with"""
        self.began: dict[str, dict[int, int]] = {name: {} for name in replicas}
        """of each replica, by its own log: the first offset of each transaction without a marker"""

    # ---- logs
    def cuts(self, name: str, end: int) -> Violation | None:
        r = self.replicas[name]
        if end < len(r.log):
            self.counted["truncations of a marker"] += any(x.kind in MARKERS for x in r.log[end:])
            self.began[name] = {}
            self._note(name, 0, r.log[:end])
        return super().cuts(name, end)

    def appends(self, name: str, records: Iterable[Any]) -> None:
        new = [*records]
        self._note(name, len(self.replicas[name].log), new)
        super().appends(name, new)

    def _note(self, name: str, offset: int, records: Sequence[Record]) -> None:
        began = self.began[name]
        for n, r in enumerate(records, offset):
            if r.kind == "transactional":
                began.setdefault(r.producer_id, n)
            elif r.kind != "plain":
                began.pop(r.producer_id, None)

    def is_stable(self, name: str, last_stable: int, high_watermark: int) -> Violation | None:
        """A replica's last stable offset is there: LSO-1, LSO-2."""
        self.counted["steps with a last stable offset below the high watermark"] += last_stable < high_watermark
        if last_stable > high_watermark:
            return Violation("LSO-1", f"{name}: last stable offset {last_stable}, high watermark {high_watermark}")
        for producer_id, first in self.began[name].items():
            if first < last_stable:
                what = f"the transaction of producer {producer_id} from offset {first} on is open"
                return Violation("LSO-2", f"{name}: last stable offset {last_stable}, but {what}")
        return None

    def index_is_right(self, name: str, entries: Sequence[tuple[int, int, int]]) -> Violation | None:
        """At rest: a replica's transaction index has the transactions that its log has aborted, by producer id, first
        offset and that of the marker. LSO-4."""
        began, aborted = dict[int, int](), list[tuple[int, int, int]]()
        for n, r in enumerate(self.replicas[name].log):
            if r.kind == "transactional":
                began.setdefault(r.producer_id, n)
            elif r.kind != "plain" and (first := began.pop(r.producer_id, None)) is not None and r.kind == "abort":
                aborted.append((r.producer_id, first, n))
        if [*entries] == aborted:
            return None
        more, less = [*(Counter(entries) - Counter(aborted))], [*(Counter(aborted) - Counter(entries))]
        return Violation("LSO-4", f"{name}: of its log's aborted transactions its index lacks {less}, has more: {more}")

    # ---- what is committed
    def identity(self, record: Any) -> tuple[int, ...]:
        return record.producer_id, record.producer_epoch, record.sequence, record.contents

    def _follows(self, record: Record) -> Violation | None:
        p, epoch, at = record.producer_id, record.producer_epoch, f"offset {len(self.committed)}"
        if record.kind == "plain":
            return super()._follows(record)
        if epoch < self.fenced.get(p, 0):
            return Violation("PSM-6", f"{at}: {record}; epochs below {self.fenced[p]} are fenced off")
        known = self.open.get(p)
        if record.kind == "transactional":
            if known is not None and known.epoch != epoch:
                return Violation("PSM-6", f"{at}: {record}, in the transaction of epoch {known.epoch}")
            n = 0 if known is None else known.records
            if record.sequence != n:
                return Violation(ONCE, f"{at}: {record}; the next one is {n}")
            self.open[p] = OpenTransaction(epoch, n + 1)
            return None
        self.fenced[p] = epoch
        if known is None:
            self.counted["markers without a transaction"] += 1
            return None
        del self.open[p]
        return self._ended(record, known, at)

    def _ended(self, record: Record, known: OpenTransaction, at: str) -> Violation | None:
        of = record.producer_id, known.epoch
        if self.decisions.get(of) is not (record.kind == "commit"):
            said = {None: "nothing", True: "commit", False: "abort"}[self.decisions.get(of)]
            return Violation(DECIDED, f"{at}: {record}, for epoch {known.epoch}; {said} was decided")
        if record.kind == "commit" and known.records != self.promised.get(of, 0):
            was = f"{self.promised.get(of, 0)} were acknowledged, {known.records} are there"
            return Violation(WHOLE, f"{at}: {record}; of its records {was}")
        self.counted["transactions committed" if record.kind == "commit" else "transactions aborted"] += 1
        return None

    # ---- consumers
    def moves(self, name: str, end: int, handed: Sequence[tuple[int, Record]]) -> Violation | None:
        """A read_committed consumer goes on to that offset, and hands these out: LSO-11, LSO-16."""
        at = self.position.get(name, 0)
        self.position[name] = end
        if end > len(self.committed):
            return Violation("RPN-12", f"{name} reads up to {end}; {len(self.committed)} records are committed")
        given = dict(handed)
        for n in range(at, end):
            there: Record = self.committed[n]
            got = given.pop(n, None)
            if got is not None and got != there:
                read, committed = apart(got, there)
                return Violation("RPN-12", f"{name} reads at offset {n} {read}; {committed} is committed there")
            found = self._is_right(name, n, there, got is not None)
            if found is not None:
                return found
        for n, got in given.items():
            return Violation("LSO-16", f"{name} reads {got} at offset {n}, between {at} and {end}")
        return None

    def _is_right(self, name: str, n: int, there: Record, is_read: bool) -> Violation | None:
        self.counted["records read"] += is_read
        what = f"offset {n}: {there}"
        if there.kind in MARKERS:
            return Violation("LSO-16", f"{name} is given {what}") if is_read else None
        decision = True if there.kind == "plain" else self.decisions.get((there.producer_id, there.producer_epoch))
        if decision is None:
            return Violation("LSO-11", f"{name} passes {what}: its transaction is not decided")
        if decision is is_read:
            self.counted["records dropped"] += not is_read
            return None
        did, was = "reads" if is_read else "does not read", "committed" if decision else "aborted"
        return Violation("LSO-11", f"{name} {did} {what}, which was {was}")

    def unended(self) -> Violation | None:
        """At rest: a transaction that nobody ended. LSO-19."""
        for producer_id, t in self.open.items():
            what = f"the transaction of producer {producer_id}, epoch {t.epoch}, is open, and nobody will end it"
            return Violation("LSO-19", what)
        return None
