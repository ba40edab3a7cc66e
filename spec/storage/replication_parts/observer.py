"""Who watches a cluster: what may be seen of the replicas of one partition, step by step, if the rules are kept.

Beside each replica's log stands the log of what is committed: what any leader ever showed below its high watermark
(`committed` of the model). What is seen is compared with it as it changes, so that a step costs what it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kafkaspec.simulate.scenario import Violation

ONCE = "an idempotent producer's records are there once, in order"
ACKNOWLEDGED = "what is acknowledged is committed"
COUNTED = (
    "leaders", "changes of those in sync", "truncations", "truncations of an in-sync replica", "starts after a crash",
    "records committed", "acknowledgements", "records read",
)  # fmt: skip
"""What has to happen for the rules to say something."""


class Record(NamedTuple):
    """A record at an offset: in which leader epoch it was appended, who wrote it, and a checksum of its batch."""

    epoch: int
    producer_id: int
    sequence: int
    contents: int

    def __str__(self) -> str:
        return f"record {self.sequence} of producer {self.producer_id}, epoch {self.epoch}"


def apart(one: Any, other: Any) -> tuple[str, str]:
    """Two records that differ, as words that do."""
    if str(one) != str(other):
        return str(one), str(other)
    return f"{one}, contents {one.contents:08x}", f"{other}, contents {other.contents:08x}"


class Replica:
    """What is seen of one."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.high_watermark = 0
        self.agreed = 0
        """how many of its first records are the committed ones"""
        self.leads_in: int | None = None
        self.was_up = False


class Observer:
    """What was seen so far. A method answers with what a step broke, or with None."""

    def __init__(self, replicas: Sequence[str]) -> None:
        self.replicas = {name: Replica() for name in replicas}
        self.committed: list[Any] = []
        self.isr: tuple[str, ...] = tuple(replicas)
        self.leaders: dict[int, str] = {}
        self.sequences: dict[int, int] = {}
        """the next of each producer, by what is committed"""
        self.position: dict[str, int] = {}
        self.told: dict[str, tuple[int, int]] = {}
        self.counted = dict.fromkeys(COUNTED, 0)

    # ---- logs
    def cuts(self, name: str, end: int) -> Violation | None:
        """The log of a replica ends there now."""
        r = self.replicas[name]
        if end < len(r.log):
            self.counted["truncations"] += 1
            self.counted["truncations of an in-sync replica"] += name in self.isr
        del r.log[end:]
        r.agreed = min(r.agreed, end)
        return self._in_sync_have_all()

    def appends(self, name: str, records: Iterable[Any]) -> None:
        """The log of a replica has more records."""
        r = self.replicas[name]
        r.log.extend(records)
        self._agree(r)

    def _agree(self, r: Replica) -> None:
        most = min(len(r.log), len(self.committed))
        n = r.agreed
        while n < most and r.log[n] == self.committed[n]:
            n += 1
        r.agreed = n

    # ---- leaders and high watermarks
    def leads(self, name: str, epoch: int) -> Violation | None:
        """A replica leads from now on, in that epoch: RPN-3."""
        self.replicas[name].leads_in = epoch
        self.counted["leaders"] += 1
        other = self.leaders.setdefault(epoch, name)
        return Violation("RPN-3", f"{other} and {name} lead in epoch {epoch}") if other != name else None

    def follows(self, name: str) -> None:
        """A replica does not lead, or is down."""
        self.replicas[name].leads_in = None

    def starts(self, name: str) -> None:
        """A replica has started, and its high watermark is what it kept."""
        r = self.replicas[name]
        self.counted["starts after a crash"] += r.was_up
        r.leads_in, r.high_watermark, r.was_up = None, 0, True

    def shows(self, name: str, high_watermark: int) -> Violation | None:
        """A replica's high watermark is there now: RPN-9, RPN-12."""
        r = self.replicas[name]
        before, r.high_watermark = r.high_watermark, high_watermark
        if high_watermark < before and r.leads_in is not None:
            return Violation(
                "RPN-9", f"the high watermark of {name}, which leads, falls from {before} to {high_watermark}"
            )
        if high_watermark > len(r.log):
            return Violation("RPN-9", f"the high watermark of {name} is {high_watermark}, its log ends at {len(r.log)}")
        for n in range(r.agreed, min(high_watermark, len(self.committed))):
            shown, there = apart(r.log[n], self.committed[n])
            return Violation("RPN-12", f"{name} shows at offset {n} {shown}; {there} is committed there")
        if high_watermark > len(self.committed):
            if r.leads_in is None:
                return Violation("RPN-9", f"{name}, which does not lead, shows offset {len(self.committed)} first")
            return self._commit(r, high_watermark)
        return None

    def _commit(self, r: Replica, end: int) -> Violation | None:
        for record in r.log[len(self.committed) : end]:
            found = self._follows(record)
            if found is not None:
                return found
            self.committed.append(record)
            self.counted["records committed"] += 1
        for other in self.replicas.values():
            self._agree(other)
        return self._in_sync_have_all()

    def _follows(self, record: Any) -> Violation | None:
        """It is the next one of its producer."""
        expected = self.sequences.get(record.producer_id, 0)
        if record.sequence != expected:
            return Violation(ONCE, f"offset {len(self.committed)}: {record}; the next one is {expected}")
        self.sequences[record.producer_id] = expected + 1
        return None

    # ---- those in sync
    def are_in_sync(self, isr: Sequence[str]) -> Violation | None:
        """By the controller: RPN-14."""
        self.counted["changes of those in sync"] += {*isr} != {*self.isr}
        self.isr = tuple(isr)
        return self._in_sync_have_all()

    def _in_sync_have_all(self) -> Violation | None:
        """Whoever is in sync has every committed record: RPN-14."""
        for name in self.isr:
            n = self.replicas[name].agreed
            if n < len(self.committed):
                log = self.replicas[name].log
                wanted = self.committed[n]
                there, what = apart(log[n], wanted) if n < len(log) else ("nothing", str(wanted))
                who = f"{name}, which is in sync ({', '.join(self.isr)}),"
                return Violation("RPN-14", f"{who} has at offset {n} {there}; {what} is committed there")
        return None

    # ---- clients
    def acknowledged(self, offset: int, records: Sequence[Any]) -> Violation | None:
        """A producer was told that its records begin there; their epoch it does not know (-1)."""
        there = self.committed[offset : offset + len(records)]
        if [self.identity(r) for r in there] == [self.identity(r) for r in records]:
            self.counted["acknowledgements"] += 1
            return None
        first = f"record {records[0].sequence} of producer {records[0].producer_id}"
        found = f"{there[0]} is committed" if there else "nothing is committed"
        if [self.identity(r)[:-1] for r in there] == [self.identity(r)[:-1] for r in records]:
            found = "it is committed with other contents"
        return Violation(ACKNOWLEDGED, f"{first} at offset {offset}, where {found}")

    def identity(self, record: Any) -> tuple[int, ...]:
        """By which a record is known, wherever it is; its contents last."""
        return record.producer_id, record.sequence, record.contents

    def reads(self, name: str, offset: int, record: Record) -> Violation | None:
        """A consumer read a record: RPN-12."""
        at = self.position.get(name, 0)
        if offset != at:
            return Violation("RPN-12", f"{name} reads offset {offset} after {at - 1}")
        self.position[name] = at + 1
        self.counted["records read"] += 1
        there = self.committed[offset] if offset < len(self.committed) else None
        if record != there:
            read, committed = apart(record, there) if there is not None else (str(record), "nothing")
            return Violation("RPN-12", f"{name} reads at offset {offset} {read}; {committed} is committed there")
        return None

    def is_told(self, name: str, epoch: int, high_watermark: int) -> Violation | None:
        """A consumer is told a high watermark: all below it is committed, and in one leader epoch it does not fall
        (RPN-9). A new leader may be behind the one before it."""
        if high_watermark > len(self.committed):
            what = f"{name} is told the high watermark {high_watermark}; {len(self.committed)} records are committed"
            return Violation("RPN-9", what)
        before = self.told.get(name)
        self.told[name] = epoch, high_watermark
        if before is not None and before[0] == epoch and high_watermark < before[1]:
            what = f"{name} is told the high watermark {high_watermark} after {before[1]}, in epoch {epoch}"
            return Violation("RPN-9", what)
        return None
