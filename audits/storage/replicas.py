"""Replicas of a partition against each other, in constant memory: both logs are read side by side, in steps of their
offsets, and compared as columns.

Where two logs are not the same batch by batch and one of them is or may be compacted, they are compared once more from
there on, record by record. Of a pair the first difference is reported, with its place in both files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkaspec.audit.check import ClusterCheck, Directory, Log, Summary
from kafkaspec.audit.files import Kind, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.common.evidence import fitting
from kafkaspec.audits.common.findings import METADATA_TOPIC
from kafkaspec.contract.clauses import states
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File, read_small
from kafkaspec.impl.common.rows import Chunk
from kafkaspec.spec.common.kafka import LONG_MAX

MOST_HOLES = 1000
"""of damage in one log, beyond which there is nothing to compare"""

ITEM = np.dtype(
    [
        ("offset", "<i8"),  # a batch's base offset, or a record's
        ("last", "<i8"),  # a batch's last offset; a record's own
        ("a", "<i8"),  # a batch: size; a record: hash
        ("b", "<i8"),  # a batch: CRC; a record: timestamp
        ("epoch", "<i8"),
        ("magic", "<i8"),
        ("position", "<i8"),
        ("segment", "<i8"),  # number of the segment
    ]
)
COLUMNS = len(ITEM.names or ())
SAME = ("offset", "last", "a", "b")
"""The columns that tell items apart, but for the epoch."""
FAST = 5
"""As many columns are the same where nothing is looked at: SAME and the epoch."""

Reread = Callable[[Log, bool], Iterable[tuple[Segment, Chunk]]]
"""The chunks of a log once more; with records if asked."""


def of_batches(chunk: Chunk, number: int) -> NDArray[Any]:
    """The batches of a chunk as items."""
    rows = chunk.batches
    out = np.empty(len(rows), ITEM)
    for to, column in (
        ("offset", "base_offset"),
        ("last", "last_offset"),
        ("epoch", "leader_epoch"),
        ("a", "size"),
        ("b", "crc"),
        ("magic", "magic"),
        ("position", "position"),
    ):
        out[to] = rows[column]
    out["segment"] = number
    return out


def of_records(chunk: Chunk, number: int) -> NDArray[Any]:
    """The records of a chunk as items."""
    assert chunk.records is not None
    records = chunk.records
    batches = chunk.batches[records["batch"]]
    sound = (batches["problem"] == 0) & (batches["magic"] >= 2)
    records, batches = records[sound], batches[sound]
    out = np.empty(len(records), ITEM)
    out["offset"] = out["last"] = records["offset"]
    out["epoch"], out["magic"], out["position"] = batches["leader_epoch"], batches["magic"], batches["position"]
    out["a"], out["b"] = records["hash"].view("<i8"), records["timestamp"]
    out["segment"] = number
    return out


@dataclass
class Side:
    """One log, read forward: `items` are those that wait to be compared, `holes` the offsets where damage lies, or what
    cannot be read."""

    log: Log
    chunks: Iterator[tuple[Segment, Chunk]]
    records: bool
    start: int
    straddling: bool
    """whether a batch in which the start lies counts"""
    entries: tuple[tuple[int, int], ...] = ()
    """the log's leader epochs, and where they begin"""
    items: NDArray[Any] = field(default_factory=lambda: np.empty(0, ITEM))
    segments: list[Segment] = field(default_factory=list)
    held: NDArray[Any] = field(default_factory=lambda: np.empty(0, ITEM))
    """the last batch, of which the next one has not been seen"""
    before: int = -1
    holes: list[tuple[int, int]] = field(default_factory=list)
    open_from: int | None = None
    """where a hole begins of which the end has not been seen yet"""
    exhausted: bool = False

    def reach(self) -> int:
        """All items up to this offset are there."""
        return LONG_MAX if self.exhausted else self.items["offset"].item(-1) if len(self.items) else -1

    def more(self) -> None:
        """Read a chunk. Nothing waits to be compared any more."""
        for segment, chunk in self.chunks:
            if not self.segments or self.segments[-1].base_offset != segment.base_offset:
                self.segments.append(segment)
            number = len(self.segments) - 1
            self.items = self._counting(of_records(chunk, number) if self.records else self._sound(chunk, number))
            if len(self.items):
                return
        self.items, self.held = self._counting(self._fitting(self.held, np.array([LONG_MAX]))), self.held[:0]
        self.exhausted = True

    def _counting(self, items: NDArray[Any]) -> NDArray[Any]:
        """Those that do not lie below the start."""
        kept: NDArray[Any] = items[items["last" if self.straddling else "offset"] >= self.start]
        return kept

    def _sound(self, chunk: Chunk, number: int) -> NDArray[Any]:
        """Batches that fit between their neighbours; where others lie is a hole."""
        items = of_batches(chunk, number)
        sound = chunk.batches["problem"] == 0
        if sound.any() and self.open_from is not None:
            self.holes.append((self.open_from, int(items["offset"][np.argmax(sound)])))
            self.open_from = None
        if not sound.all():
            self._hole(items, sound)
            items = items[sound]
        items = np.concatenate((self.held.view("<i8"), items.view("<i8"))).view(ITEM)
        self.held = items[-1:]
        return self._fitting(items[:-1], items["offset"][1:])

    def _hole(self, items: NDArray[Any], sound: NDArray[Any]) -> None:
        for i in np.flatnonzero(~sound).tolist():
            good = np.flatnonzero(sound[:i])
            held = int(self.held["last"][-1]) if len(self.held) else self.before
            first = int(items["last"][good[-1]]) + 1 if len(good) else held + 1
            later = np.flatnonzero(sound[i:])
            if len(later):
                self.holes.append((first, int(items["offset"][i + later[0]])))
            else:
                self.open_from = first

    def _fitting(self, items: NDArray[Any], after: NDArray[Any]) -> NDArray[Any]:
        if not len(items):
            return items
        fits = fitting(items["offset"], items["last"], self.before, after)
        before, self.before = self.before, items["last"].item(-1)
        if fits.all():
            return items
        previous = np.concatenate(([before], items["last"][:-1]))
        for i in np.flatnonzero(~fits).tolist():
            self.holes.append((int(min(previous[i] + 1, items["offset"][i])), int(max(after[i], previous[i] + 1))))
        kept: NDArray[Any] = items[fits]
        return kept

    def take(self, limit: int) -> NDArray[Any]:
        """The items up to an offset; they wait no longer."""
        n = self.items["offset"].searchsorted(limit, "right")
        out, self.items = self.items[:n], self.items[n:]
        return out

    def damaged_at(self, offset: int) -> bool:
        if self.open_from is not None and offset >= self.open_from:
            return True
        return len(self.holes) > MOST_HOLES or any(first <= offset < after for first, after in self.holes)

    def has_epochs(self, items: NDArray[Any]) -> NDArray[np.bool_]:
        """Of which items the log's own entries have the epoch, too."""
        if not self.entries:
            return np.zeros(len(items), bool)
        epochs, starts = np.array(self.entries, np.int64).T
        entry = starts.searchsorted(items["offset"], "right") - 1
        has: NDArray[np.bool_] = (entry >= 0) & (epochs[entry] == items["epoch"])
        return has

    def place(self, item: Any) -> tuple[File, int]:
        file = self.segments[int(item["segment"])].log
        assert file is not None
        return file, int(item["position"])


@dataclass(frozen=True)
class Difference:
    """The first one. An item is None if its side lacks it."""

    kind: str
    offset: int
    ours: Any
    theirs: Any


def first_difference(a: Side, b: Side, end: int, missing: bool) -> Difference | None:
    """Of two logs read from the same offset, up to `end`. `missing`: an item that one lacks is a difference."""
    while True:
        limit = min(a.reach(), b.reach(), end - 1)
        ours, theirs = a.take(limit), b.take(limit)
        if _same(ours) != _same(theirs):
            found = _look(a, b, ours, theirs, missing)
            if found is not None:
                return found
        if limit >= end - 1:
            return None
        behind = a if a.reach() <= b.reach() else b
        behind.more()


def _same(items: NDArray[Any]) -> bytes:
    """The columns of FAST."""
    return items.view("<i8").reshape(-1, COLUMNS)[:, :FAST].tobytes()


@states("RPL-5")
def _look(a: Side, b: Side, ours: NDArray[Any], theirs: NDArray[Any], missing: bool) -> Difference | None:
    offsets, i, j = np.intersect1d(ours["offset"], theirs["offset"], assume_unique=True, return_indices=True)
    x, y = ours[i], theirs[j]
    differ = np.zeros(len(offsets), bool)
    for c in SAME:
        differ |= x[c] != y[c]
    differ |= (x["epoch"] != y["epoch"]) & a.has_epochs(x) & b.has_epochs(y)
    differ &= (x["magic"] >= 2) & (y["magic"] >= 2)
    places = [(int(offsets[n]), x[n], y[n]) for n in np.flatnonzero(differ).tolist()]
    if missing:
        for items, paired, mine in ((ours, i, True), (theirs, j, False)):
            lone = np.delete(items, paired)
            lone = lone[lone["magic"] >= 2]
            places += [(int(r["offset"]), r if mine else None, None if mine else r) for r in lone]
    for offset, p, q in sorted(places, key=lambda place: place[0]):
        if a.damaged_at(offset) or b.damaged_at(offset):
            continue
        if p is None or q is None:
            return Difference("missing", offset, p, q)
        return Difference("behind" if p["epoch"] != q["epoch"] else "diverged", offset, p, q)
    return None


@states("RPL-2")
def agreed(a: Summary, b: Summary) -> tuple[int, int]:
    """The offsets on which two replicas must agree: from, and up to."""
    tops = [a.end, b.end]
    if a.log.topic != METADATA_TOPIC:
        tops += [s.log.high_watermark or 0 for s in (a, b)]
    return max(a.start, b.start), min(tops)


@states("RPL-3", "RPL-4")
def compare(a: Summary, b: Summary, reread: Reread) -> tuple[Difference, Side, Side] | None:
    """The first difference, with both sides; None if there is none. Record by record where a log may be compacted."""
    start, end = agreed(a, b)
    if start >= end:
        return None
    whole = a.log.compacted is False and b.log.compacted is False

    def sides(records: bool, start: int) -> tuple[Side, Side]:
        x, y = (
            Side(
                s.log,
                iter(reread(s.log, records)),
                records,
                start,
                not whole,
                s.facts.epochs or (),
                holes=list(s.log.unread),
            )
            for s in (a, b)
        )
        return x, y

    ours, theirs = sides(False, start)
    found = first_difference(ours, theirs, end, missing=True)
    if found is not None and not whole:
        ours, theirs = sides(True, max(start, found.offset))  # all batches before are the same
        found = first_difference(ours, theirs, end, missing=False)
    if found is None or (a.log.topic == METADATA_TOPIC and found.kind == "behind"):
        return None
    return found, ours, theirs


@states("RPL-6")
def epochs_differ(a: Summary, b: Summary) -> tuple[int, int, int] | None:
    """The lowest epoch that begins elsewhere, and where."""
    if a.log.compacted is not False or b.log.compacted is not False:
        return None
    _, end = agreed(a, b)
    ours, theirs = (dict((s.facts.epochs or ())[1:]) for s in (a, b))
    for epoch in sorted(ours.keys() & theirs.keys()):
        if ours[epoch] != theirs[epoch] and min(ours[epoch], theirs[epoch]) < end:
            return epoch, ours[epoch], theirs[epoch]
    return None


@states("RPL-8")
def epoch_above(log: Summary, told: int) -> int | None:
    """The log's last leader epoch, if it is above the one that the metadata log gives the partition."""
    last = log.facts.epochs[-1][0] if log.facts.epochs else -1
    return last if 0 <= told < last else None


def topic_id(log: Log) -> str | None:
    """From partition.metadata; None if there is none, or nothing that can be read: that is told of its own log."""
    if log.files.metadata is None:
        return None
    try:
        found = re.search(rb"^topic_id: ?(\S+)", read_small(log.files.metadata), re.MULTILINE)
    except UserError:
        return None
    return None if found is None else found[1].decode("ascii", "replace")


@dataclass(frozen=True)
class Copy:
    """A log and where it lies."""

    directory: Directory
    summary: Summary
    topic_id: str | None

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Whom the others are compared with: the highest."""
        return bool(self.directory.clean), self.summary.log.high_watermark or 0, self.summary.end


@states("RPL-1")
def are_replicas(a: Copy, b: Copy) -> bool:
    """Whether logs of one name are replicas of one partition."""
    x, y = a.directory, b.directory
    return (
        a.summary.log.files.kind == b.summary.log.files.kind == Kind.CURRENT
        and x.files.path != y.files.path
        and x.cluster == y.cluster
        and x.node is not None
        and y.node is not None
        and x.node != y.node
        and (a.topic_id is None or b.topic_id is None or a.topic_id == b.topic_id)
    )


class ReplicaCheck(ClusterCheck):
    """The logs of one name in all directories."""

    needs_directory = ("RPL-1", "RPL-2", "RPL-3", "RPL-4", "RPL-5", "RPL-6", "RPL-7", "RPL-8")

    def check(self, directories: tuple[Directory, ...], reread: Any) -> Iterable[Finding]:
        copies = [Copy(d, s, None) for d in directories for s in d.logs if s.log.files.kind == Kind.CURRENT]

        def by_name(c: Copy) -> tuple[str, int]:
            return c.summary.log.topic, c.summary.log.partition

        yield from self._beside_metadata(copies)
        for _, group in groupby(sorted(copies, key=by_name), by_name):
            together = list(group)
            if len(together) > 1:
                try:
                    yield from self._partition(
                        [Copy(c.directory, c.summary, topic_id(c.summary.log)) for c in together], reread
                    )
                except UserError as e:
                    self.problems.append(str(e))

    @states("RPL-8")
    def _beside_metadata(self, copies: list[Copy]) -> Iterator[Finding]:
        """Each log of a node beside the node's own metadata log, if there is one."""
        logs: dict[tuple[str | None, int | None], list[Summary]] = {}
        for c in copies:
            if c.summary.log.topic == METADATA_TOPIC:
                logs.setdefault((c.directory.cluster, c.directory.node), []).append(c.summary)
        for c in copies:
            its = logs.get((c.directory.cluster, c.directory.node), ())
            if len(its) != 1 or c.directory.node is None or not c.directory.clean:
                continue
            log = c.summary.log
            told = its[0].facts.leader_epochs.get((topic_id(log) or "", log.partition), -1)
            above = epoch_above(c.summary, told)
            if above is not None:
                file = log.files.leader_epoch_checkpoint
                assert file is not None
                yield log.finding(
                    Severity.ERROR,
                    "RPL-8",
                    file,
                    f"epoch {above}, where the node's metadata log has leader epoch {told} for the partition",
                    expected=f"{told} or less",
                    recovery="none: the broker answers for an epoch that no leader had, until a later one begins",
                    line=len(c.summary.facts.epochs or ()) + 2,
                )

    @states("RPL-1")
    def _partition(self, copies: list[Copy], reread: Any) -> Iterator[Finding]:
        nameless = [c.directory.node for c in copies if c.directory.cluster is None]
        if len(nameless) != len(set(nameless)):  # several clusters, or several states of one
            copies = [c for c in copies if c.directory.cluster is not None]
        copies.sort(key=lambda c: c.rank, reverse=True)
        yield from self._topics(copies)
        done: set[int] = set()
        for n, first in enumerate(copies):
            if n in done:
                continue
            others: list[Copy] = []
            for m in range(n + 1, len(copies)):
                if m not in done and are_replicas(first, copies[m]):
                    done.add(m)
                    others.append(copies[m])
            yield from self._group(first, others, reread)

    @states("RPL-7")
    def _topics(self, copies: list[Copy]) -> Iterator[Finding]:
        """The id that most have, or the metadata log, is the topic's."""
        for cluster in dict.fromkeys(c.directory.cluster for c in copies):
            known = [c for c in copies if c.topic_id is not None and c.directory.cluster == cluster]
            ids = [c.topic_id for c in known]
            told = [c.summary.log.topic_id for c in known if c.summary.log.topic_id is not None]
            if len(set(ids)) < 2:
                continue
            right = max(dict.fromkeys(ids), key=lambda i: (sum(i == x for x in told), ids.count(i)))
            for c in known:
                if c.topic_id != right:
                    file = c.summary.log.files.metadata
                    assert file is not None
                    yield c.summary.log.finding(
                        Severity.LEFTOVER,
                        "RPL-7",
                        file,
                        f"topic id {c.topic_id}, other brokers have {right}: of an earlier topic of that name",
                        expected=f"{right}",
                        recovery="the directory becomes a stray when the broker learns of the other topic",
                        line=2,
                    )

    def _group(self, first: Copy, others: list[Copy], reread: Any) -> Iterator[Finding]:
        """One replica against all others. Where it differs from all, it is the odd one."""
        found = [(b, compare(first.summary, b.summary, reread)) for b in others]
        differ = [(b, f) for b, f in found if f is not None]
        if len(differ) == len(others) > 1 and len({(f[0].kind, f[0].offset) for _, f in differ}) == 1:
            b, (difference, ours, theirs) = differ[0]
            if difference.kind != "behind" and compare(b.summary, differ[1][0].summary, reread) is None:
                turned = Difference(difference.kind, difference.offset, difference.theirs, difference.ours)
                yield self._difference(b, first, turned, theirs, ours)
                return
        for b, f in found:
            if f is not None:
                yield self._difference(first, b, *f)
            else:
                yield from self._epochs(first, b)

    def _epochs(self, a: Copy, b: Copy) -> Iterator[Finding]:
        differ = epochs_differ(a.summary, b.summary)
        if differ is not None:
            epoch, ours, theirs = differ
            file = b.summary.log.files.leader_epoch_checkpoint
            other = a.summary.log.files.leader_epoch_checkpoint
            assert file is not None
            assert other is not None
            line = [e for e, _ in b.summary.facts.epochs or ()].index(epoch) + 3
            yield b.summary.log.finding(
                Severity.ERROR if a.directory.clean and b.directory.clean else Severity.WARNING,
                "RPL-6",
                file,
                f"epoch {epoch} begins at {theirs}, at {ours} in {other.path}",
                expected="the same offset in both",
                recovery="none: a follower may cut its log at the wrong place",
                line=line,
                offset=min(ours, theirs),
            )

    def _difference(self, a: Copy, b: Copy, found: Difference, ours: Side, theirs: Side) -> Finding:
        x, y = (
            None if item is None else side.place(item) for item, side in ((found.ours, ours), (found.theirs, theirs))
        )
        offset = found.offset
        if found.kind == "behind":
            late, place, other = (a, x, y) if found.ours["epoch"] < found.theirs["epoch"] else (b, y, x)
            assert place is not None
            assert other is not None
            epochs = sorted((int(found.ours["epoch"]), int(found.theirs["epoch"])))
            away = not (a.directory.clean and b.directory.clean)
            return late.summary.log.finding(
                Severity.LEFTOVER if away else Severity.WARNING,
                "RPL-5",
                place[0],
                f"leader epoch {epochs[0]} at offset {offset}, below the high watermark; {epochs[1]} at byte "
                f"{other[1]} of {other[0].path}: an election without this replica has given up its records",
                expected="the same records up to the lower high watermark",
                recovery="following the leader, the broker cuts its log where the epochs part",
                position=place[1],
                offset=offset,
            )
        if found.kind == "missing":
            lacking, there = (a, y) if x is None else (b, x)
            assert there is not None
            files = lacking.summary.log.files
            nearest = max((s for s in files.segments if s.base_offset <= offset), key=lambda s: s.base_offset)
            assert nearest.log is not None
            return lacking.summary.log.finding(
                Severity.ERROR,
                "RPL-3",
                nearest.log,
                f"no batch begins at offset {offset}, one does at byte {there[1]} of {there[0].path}",
                expected="the same batches up to the lower high watermark",
                recovery="none: nobody compares replicas",
                offset=offset,
            )
        assert x is not None
        assert y is not None
        what = "record" if theirs.records else "batch"
        return b.summary.log.finding(
            Severity.ERROR,
            "RPL-4" if theirs.records else "RPL-3",
            y[0],
            f"the {what} at offset {offset} is another one than at byte {x[1]} of {x[0].path}, in one leader epoch",
            expected="the same records up to the lower high watermark",
            recovery="none: nobody compares replicas",
            position=y[1],
            offset=offset,
        )


AUDIT = (ReplicaCheck,)
