"""Transaction markers that a broker gave up, by its own words, and the transactions that lack them.

docs/given-up-markers.md says how it comes. Nothing else excuses a transaction that lacks its marker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from kafkaspec.audit.finding import Finding
from kafkaspec.audit.recorded import batches, crc
from kafkaspec.spec.common.record_format import Batch
from tests.broker.history import History, Transaction

SKIPPED = re.compile(
    rb"^(\S+) .*find leader endpoint for partitions (?:Hash)?Set\(([^)]*)\) while trying to send transaction markers "
    rb"for (\S+), these",
    re.MULTILINE,
)
FROM = re.compile(r"from offset (\d+)")
FOLLOWS = frozenset({"PSM-32", "PSM-11"})
"""What an audit says of the batch, or of the marker, that comes next."""


@dataclass(frozen=True)
class Line:
    """What the coordinator said, and when."""

    at_s: float
    names: tuple[str, ...]
    client: str


@dataclass(frozen=True)
class GivenUp:
    """A transaction that has no marker in a partition, because the coordinator gave it up."""

    name: str
    transaction: Transaction
    offsets: frozenset[int]
    """of its records there, and of the batches that they are in"""

    def explains(self, finding: Finding) -> bool:
        of = FROM.search(finding.message)
        there = finding.clause in FOLLOWS and f"{finding.topic}-{finding.partition}" == self.name
        return there and of is not None and int(of[1]) in self.offsets


def lines(log: bytes) -> list[Line]:
    return [
        Line(datetime.fromisoformat(at.decode()).timestamp(), tuple(names.decode().split(", ")), client.decode())
        for at, names, client in SKIPPED.findall(log)
    ]


def given_up(history: History, log: bytes, directory: Path) -> list[GivenUp]:
    """Those that the broker's log tells of and whose marker is not there, as far as their records still are."""
    out = list[GivenUp]()
    for line in lines(log):
        for transaction in history.pending(line.client, line.at_s):
            for name in line.names:
                crcs = {s.crc for s in history.sent if s.transaction is transaction and s.name == name}
                there = _unmarked(directory / name, crcs, name.rpartition("-")[0] in history.compacted)
                if there and all((x.transaction, x.name) != (transaction, name) for x in out):
                    out.append(GivenUp(name, transaction, there))
    return out


def together(before: Sequence[GivenUp], now: Sequence[GivenUp]) -> list[GivenUp]:
    """All that were known, too: their records may be gone since, which a producer snapshot still tells of."""
    out = {(x.transaction, x.name): x for x in before}
    for x in now:
        known = out.get((x.transaction, x.name), x)
        out[x.transaction, x.name] = replace(x, offsets=x.offsets | known.offsets)
    return [*out.values()]


def held(stable: int, start: int, given_up: Sequence[GivenUp]) -> bool:
    """Whether one of these transactions holds the last stable offset there: at one of its own offsets, or, where its
    first is below the log start, at or below that (where the batch of the log start begins)."""
    return any(stable in x.offsets or (min(x.offsets) < start and stable <= start) for x in given_up)


def _unmarked(partition: Path, crcs: set[int], compacted: bool) -> frozenset[int]:
    """The offsets of these records, of one producer: none if the next that it wrote is their marker, of their epoch or,
    from transaction version 2 on, the next one; a higher one is another transaction's. What it wrote next may be gone
    where there is compaction, so that nothing follows from that."""
    offsets, producer, epoch = set[int](), None, 0
    for batch in _batches(sorted(partition.glob("*.log"))):
        found = [r for r in batch.records if not batch.control and crc(r.key, r.value) in crcs]
        if found:
            producer, epoch = batch.producer_id, batch.producer_epoch
            offsets.update((batch.base_offset, *map(batch.offset, found)))
        elif batch.producer_id == producer:
            if batch.control and batch.producer_epoch <= epoch + 1 and not compacted:
                return frozenset()
            break
    return frozenset(offsets)


def _batches(segments: Sequence[Path]) -> Iterator[Batch]:
    for segment in segments:
        yield from batches(segment.read_bytes())
