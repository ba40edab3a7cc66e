"""Leader epochs of a log at rest: the batches' own, never falling, and the checkpoint's, each beside the other.

The epoch of a batch is not covered by its CRC: here is the one place where damage to it shows. Of the batches only runs
of equal epochs between two entries are kept; where a run does not agree with the entry that covers it, and where runs
fall, it is worked out which of the two, batch or file, is the odd one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkaspec.audit.check import Absent, Facts, Log, LogCheck
from kafkaspec.audit.files import Kind, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.audits.common.evidence import fitting
from kafkaspec.audits.common.findings import METADATA_TOPIC, MOST_FINDINGS
from kafkaspec.contract.clauses import states
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File, read_small
from kafkaspec.impl.common.rows import Chunk, Ending, last_not_above
from kafkaspec.impl.management.checkpoints import CheckpointUnreadable
from kafkaspec.impl.storage.leader_epochs import EpochEntry, decode

MOST_RUNS = 20_000
MOST_WEIGHED = 2_000
"""Runs of which it is worked out which are the odd ones; where there are more, every fall is told."""
FIRST_LINE = 3
"""of the entries"""

WRITTEN = "version 0, the number of entries, and entries `epoch offset`"
LOADING_FAILS = "loading the log fails: a broker with no other log directory does not start"
KEPT = "none: a log that is loaded keeps it"


@dataclass
class Run:
    """Consecutive batches of one epoch that one entry covers. `entry`: its index, -1 before the first."""

    epoch: int
    entry: int
    first: int
    """base offset of the first batch"""
    last: int
    """last offset of the last batch"""
    segment: Segment
    position: int
    """of the first batch"""
    batches: int
    inside: bool = False
    """a single batch inside which an entry begins"""


@states("LEC-19")
def outliers_of(runs: Sequence[Run], entries: Sequence[EpochEntry]) -> set[int]:
    """The indices of the runs to leave out so that the epochs of the others never fall: those that an entry knows are
    kept if possible, then as many batches as possible."""
    if all(a.epoch <= b.epoch for a, b in itertools.pairwise(runs)):
        return set()
    if len(runs) > MOST_WEIGHED:  # no log that Kafka wrote
        return {i for i in range(1, len(runs)) if runs[i].epoch < runs[i - 1].epoch}
    weights = [r.batches + (1 << 40 if known(r, entries) else 0) for r in runs]
    best: list[int] = []
    before: list[int] = []
    for i, r in enumerate(runs):
        j = max((j for j in range(i) if runs[j].epoch <= r.epoch), key=lambda j: best[j], default=-1)
        best.append(weights[i] + (best[j] if j >= 0 else 0))
        before.append(j)
    kept = set()
    i = max(range(len(runs)), key=lambda i: best[i])
    while i >= 0:
        kept.add(i)
        i = before[i]
    return set(range(len(runs))) - kept


@states("LEC-20")
def known(run: Run, entries: Sequence[EpochEntry]) -> bool:
    """Whether the entry that covers the run is its epoch's."""
    return not run.inside and run.entry >= 0 and entries[run.entry].epoch == run.epoch


class LeaderEpochCheck(LogCheck):
    """The checkpoint file, the epochs of the batches, and each beside the other."""

    needs_directory = ("LEC-21",)

    @classmethod
    def applies(cls, log: Log) -> bool:
        return log.files.kind != Kind.DELETED

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.file = log.files.leader_epoch_checkpoint
        self.entries: list[EpochEntry] = []
        """those that batches are compared with"""
        self.comparable = True
        self.wrong_file: list[Finding] = []
        self.text = b""
        self.folder = log.files.folder("leader-epoch-checkpoint")
        """a directory in the place of the file"""
        if self.file is not None:
            self._read(self.file)
        elif self.folder is not None:
            self.comparable = False
            there = "a directory in the place of the leader epoch checkpoint"
            self._of_file(Severity.ERROR, "LEC-17", there, "a file", LOADING_FAILS, None)
        first = log.files.segments[0].base_offset if log.files.segments else 0
        self.start = max(log.log_start or 0, first, self._snapshot_start())
        if not log.start_known and self.entries:  # the first entry begins where the log does, or before it
            self.start = max(self.start, self.entries[0].start_offset)
        self.end_offset = first
        self.damaged = False
        self.starts = np.array([e.start_offset for e in self.entries], np.int64)
        self.runs: list[Run] = []
        self.held: tuple[Segment, NDArray[Any]] | None = None
        """the last batch, of which the next one has not been seen yet"""
        self.before = -1
        """last offset of the last good batch that was taken"""
        self.negative: list[tuple[Segment, NDArray[Any]]] = []
        self.outliers: list[Run] = []
        self.unknown: list[Run] = []

    # ---- the file

    @states("LEC-1", "LEC-3", "LEC-17")
    def _read(self, file: File) -> None:
        try:
            self.text = read_small(file)
            entries = decode(self.text)
        except UserError as e:
            self.comparable = False
            self.problems.append(str(e))
            return
        except CheckpointUnreadable as e:
            self.comparable = False
            message = f"the leader epoch checkpoint cannot be read: {e}"
            self._of_file(Severity.ERROR, "LEC-17", message, WRITTEN, LOADING_FAILS, e.line)
            return
        for n, entry in enumerate(entries):
            if entry.epoch < 0 or entry.start_offset < 0:
                self.comparable = False
                message = f"entry {entry.epoch} {entry.start_offset} has a negative number"
                self._of_file(Severity.ERROR, "LEC-3", message, "numbers from 0 on", LOADING_FAILS, n + FIRST_LINE)
                return
        for n, (a, b) in enumerate(itertools.pairwise(entries), 1):
            if a.epoch >= b.epoch or a.start_offset > b.start_offset:
                message = f"entry {b.epoch} {b.start_offset} stands after {a.epoch} {a.start_offset}"
                expected = f"an epoch above {a.epoch}, and an offset not below {a.start_offset}"
                recovery = f"loading drops {a.epoch} {a.start_offset} and what it contradicts before"
                if a.epoch == b.epoch and a.start_offset <= b.start_offset:
                    recovery = "loading passes over it"
                self._of_file(Severity.ERROR, "LEC-1", message, expected, recovery, n + FIRST_LINE)
                entries = sorted(entries)
                self.comparable = all(
                    x.epoch < y.epoch and x.start_offset <= y.start_offset for x, y in itertools.pairwise(entries)
                )
                break
        if self.comparable:
            self.entries = entries

    def _of_file(
        self, severity: Severity, clause: str, message: str, expected: str, recovery: str, line: int | None
    ) -> None:
        where = self.file if self.file is not None else str(self.folder)
        self.wrong_file.append(
            self.log.finding(severity, clause, where, message, expected=expected, recovery=recovery, line=line)
        )

    def _snapshot_start(self) -> int:
        """The metadata log begins where its snapshot ends, in the middle of a segment: the first entry tells, if there
        is a snapshot that reaches so far."""
        if self.log.topic != METADATA_TOPIC or not self.entries:
            return 0
        names = (f.path.name for f in self.log.files.others)
        ends = [int(n[:20]) for n in names if n.endswith(".checkpoint") and n[:20].isdigit()]
        first = self.entries[0].start_offset
        return first if any(end >= first for end in ends) else 0

    # ---- the batches

    def chunk(self, segment: Segment, chunk: Chunk) -> Iterable[Finding]:
        rows = chunk.batches
        if chunk.damaged:
            self.damaged = True
            rows = rows[~chunk.bad]
        base, last = chunk.believed
        if len(rows):
            self._take_held(int(base[0]))
            self._take(segment, rows[:-1], base[:-1], last[:-1], base[1:])
            self.held = segment, rows[-1:]
        return ()

    def ended(self, segment: Segment, ending: Ending) -> Iterable[Finding]:
        end = segment.base_offset if ending.end_offset is None else ending.end_offset
        self.end_offset = max(self.end_offset, end)
        self.damaged |= ending.reason != ""
        return ()

    def skip(self, segment: Segment, problem: str) -> Iterable[Finding]:
        self.damaged = True
        return ()

    def _take_held(self, after: int) -> None:
        """The last batch of the chunk before, now that the base offset of its next is known."""
        if self.held is not None:
            segment, row = self.held
            self._take(segment, row, row["base_offset"], row["last_offset"], after)
            self.held = None

    def _take(
        self,
        segment: Segment,
        rows: NDArray[Any],
        base: NDArray[np.int64],
        last: NDArray[np.int64],
        after: NDArray[Any] | int,
    ) -> None:
        """Batches with their first and last offsets, and the base offset of each one's next: what does not fit between
        its neighbours is no evidence."""
        if not len(rows):
            return
        fits = fitting(base, last, self.before, after)
        self.before = int(last[-1])
        if not fits.all():
            rows, base, last = rows[fits], base[fits], last[fits]
        old = np.flatnonzero(rows["magic"] < 2)
        if len(old):
            self.runs = []
            rows, base, last = (x[old[-1] + 1 :] for x in (rows, base, last))
        epochs = rows["leader_epoch"].copy()
        if len(rows) and int(epochs.min()) < 0:
            odd = rows[epochs < -1]
            if len(odd) and len(self.negative) < MOST_FINDINGS:
                self.negative.append((segment, odd))
            there = epochs >= 0
            rows, base, last, epochs = (x[there] for x in (rows, base, last, epochs))
        if len(rows):
            self._add(segment, rows, base, last, epochs)

    def _add(
        self,
        segment: Segment,
        rows: NDArray[Any],
        base: NDArray[np.int64],
        last: NDArray[np.int64],
        epochs: NDArray[np.int64],
    ) -> None:
        entry = last_not_above(self.starts, np.maximum(base, self.start))
        inside = last_not_above(self.starts, last) > entry
        turns = np.flatnonzero((epochs[1:] != epochs[:-1]) | (entry[1:] != entry[:-1]) | inside[1:])
        begins = np.concatenate(([0], turns + 1))
        ends = np.concatenate((turns, [len(rows) - 1]))
        for b, e in zip(begins.tolist(), ends.tolist(), strict=True):
            epoch, of, within = int(epochs[b]), int(entry[b]), bool(inside[b])
            run = self.runs[-1] if self.runs else None
            if run is not None and (run.epoch, run.entry, run.inside, within) == (epoch, of, False, False):
                run.last, run.batches = int(last[e]), run.batches + e - b + 1
            elif len(self.runs) < MOST_RUNS:
                first, end, at = int(base[b]), int(last[e]), int(rows["position"][b])
                self.runs.append(Run(epoch, of, first, end, segment, at, e - b + 1, within))

    # ---- both together

    def end(self) -> Iterable[Finding]:
        self._take_held(2**63 - 1)
        if self.log.clean is not True:
            self._read_again()
        found = [*self.wrong_file, *self._found()]
        return found[:MOST_FINDINGS]

    def absent(self) -> Iterable[Absent]:
        if self.file is None and self.folder is None:
            clauses = ("LEC-1", "LEC-3", "LEC-17", "LEC-20")
            yield Absent("leader epoch checkpoints", clauses, ("leader-epoch-checkpoint",))

    def learnt(self, facts: Facts) -> Facts:
        if self.file is None or not self.comparable:
            return facts
        return replace(facts, epochs=tuple((e.epoch, e.start_offset) for e in self.entries))

    def _read_again(self) -> None:
        """A running broker may have begun an epoch while the batches were read: its entry came before its batches."""
        try:
            if self.file is None or read_small(self.file) == self.text:
                return
        except UserError:  # what was read first counts
            return
        self.wrong_file, self.comparable, self.entries = [], True, []
        self._read(self.file)
        self.starts = np.array([e.start_offset for e in self.entries], np.int64)
        for run in self.runs:
            below = max(run.first, self.start)
            run.entry = int(np.searchsorted(self.starts, below, "right")) - 1
            run.inside = int(np.searchsorted(self.starts, run.last, "right")) - 1 > run.entry

    @states("LEC-19", "LEC-20")
    def _found(self) -> Iterator[Finding]:
        for segment, rows in self.negative:
            for row in rows:
                yield self._of_batch(segment, int(row["position"]), int(row["base_offset"]), int(row["leader_epoch"]))
        out = outliers_of(self.runs, self.entries)
        self.outliers = [self.runs[i] for i in sorted(out)]
        rest = [r for i, r in enumerate(self.runs) if i not in out]
        for run in self.outliers:
            yield self._of_batch(run.segment, run.position, run.first, run.epoch, rest)
        if not self.comparable:
            return
        compared = [r for r in rest if r.last >= self.start]
        self.unknown = [r for r in compared if not known(r, self.entries)]
        if self.unknown and not self.entries:
            yield from self._without_entries(self.unknown[0])
        else:
            said: set[tuple[str, int | None]] = set()
            for run in self.unknown:
                finding = self._of_run(run, compared)
                place = finding.file, finding.position if finding.line is None else finding.line
                if place not in said:
                    yield finding
                said.add(place)
        yield from self._left_over()

    def _of_batch(
        self, segment: Segment, position: int, offset: int, epoch: int, others: Sequence[Run] = ()
    ) -> Finding:
        before = next((r.epoch for r in reversed(others) if r.first < offset), None)
        after = next((r.epoch for r in others if r.first > offset), None)
        bounds = [
            f"not below {before}" if before is not None else "",
            f"not above {after}" if after is not None else "",
        ]
        assert segment.log is not None
        return self.log.finding(
            Severity.ERROR,
            "LEC-19",
            segment.log,
            f"the batch has leader epoch {epoch}",
            expected="an epoch " + (" and ".join(b for b in bounds if b) or "from 0 on, or -1"),
            recovery="none: the epoch is not covered by the CRC, and the batch is read as it is",
            position=position,
            offset=offset,
        )

    def _without_entries(self, run: Run) -> Iterator[Finding]:
        if self.file is None and self.log.alone:
            return
        yield self.log.finding(
            Severity.ERROR,
            "LEC-20",
            self.file if self.file is not None else str(self.log.files.path),
            f"{'no leader epoch checkpoint' if self.file is None else 'no entry'} for a log with batches of epoch "
            f"{run.epoch} from offset {run.first} on",
            expected=f"an entry {run.epoch} {max(run.first, self.start)}",
            recovery="recovery after an unclean stop makes entries again from the segment with the recovery point on; "
            "otherwise none: a follower cannot tell where its log parts from the leader's",
            offset=run.first,
        )

    def _of_run(self, run: Run, compared: Sequence[Run]) -> Finding:
        """A run that the entry which covers it does not know."""
        entries = self.entries
        j = next((i for i, e in enumerate(entries) if e.epoch == run.epoch), None)
        covering = entries[run.entry] if run.entry >= 0 else None
        below = max(run.first, self.start)
        if run.inside and covering is not None and covering.epoch == run.epoch:
            later = entries[run.entry + 1]
            if all(r.epoch != later.epoch for r in compared):
                return self._of_idle(run.entry + 1, run)
            return self._of_line(
                run.entry + 1,
                f"entry {later.epoch} {later.start_offset} begins inside a batch of epoch {run.epoch}",
                f"an offset above {run.last}",
                run,
            )
        if covering is None and j == 0:
            return self._of_first_entry(run, below)
        if j is not None and j == run.entry + 1 and run.batches > 1:
            return self._of_line(
                j, f"epoch {run.epoch} begins at {entries[j].start_offset}", f"{below}, its first batch's offset", run
            )
        if j is not None and covering is not None and j < run.entry:
            own = [r for r in compared if r.epoch == covering.epoch]
            if not own:
                return self._of_idle(run.entry, run)
            if run.batches > 1:
                return self._of_line(
                    run.entry,
                    f"epoch {covering.epoch} begins at {covering.start_offset}",
                    f"{own[0].first}, its first batch's offset",
                    run,
                )
        if j is None and run.batches > 1:
            place = sum(1 for e in entries if e.epoch < run.epoch)
            return self._of_line(
                place, f"there is no entry of epoch {run.epoch}", f"{run.epoch} {below}, and one entry more", run
            )
        assert run.segment.log is not None
        expected = "an epoch that the checkpoint has"
        if covering is not None:
            expected = f"leader epoch {covering.epoch}, by the checkpoint's line {run.entry + FIRST_LINE}"
        return self.log.finding(
            Severity.ERROR,
            "LEC-20",
            run.segment.log,
            f"the batch has leader epoch {run.epoch}",
            expected=expected,
            recovery="none: the epoch is not covered by the CRC, and the batch is read as it is",
            position=run.position,
            offset=run.first,
        )

    def _of_idle(self, entry: int, run: Run) -> Finding:
        """An entry without a batch, where batches of an earlier epoch lie: a crash can leave one (LEC-9)."""
        e = self.entries[entry]
        return self._of_line(
            entry,
            f"epoch {e.epoch} begins at {e.start_offset}, where batches of epoch {run.epoch} lie, and has no batch",
            f"no such entry, or one above {run.last}",
            run,
            KEPT + "; a follower then cuts off more of its log than it must",
            severity=Severity.ERROR if self.log.clean else Severity.WARNING,
        )

    def _of_line(
        self,
        entry: int,
        message: str,
        expected: str,
        run: Run,
        recovery: str = KEPT + "; a follower may cut its log at the wrong place",
        severity: Severity = Severity.ERROR,
    ) -> Finding:
        assert self.file is not None
        return self.log.finding(
            severity,
            "LEC-20",
            self.file,
            message,
            expected=expected,
            recovery=recovery,
            line=entry + FIRST_LINE,
            offset=run.first,
        )

    @states("LEC-20", "LEC-21")
    def _of_first_entry(self, run: Run, below: int) -> Finding:
        first = self.entries[0]
        assert self.file is not None
        moved = self.log.clean is False
        return self.log.finding(
            Severity.LEFTOVER if moved else Severity.ERROR,
            "LEC-21" if moved else "LEC-20",
            self.file,
            f"the first entry begins at {first.start_offset}, batches of its epoch at {below}",
            expected=f"{first.epoch} {below}"
            + (", or a log start that had been checkpointed after it rose" if moved else ""),
            recovery=(
                f"the log begins at its checkpointed start again; its records below {first.start_offset} are of no "
                "known epoch"
                if moved
                else KEPT
            ),
            line=FIRST_LINE,
            offset=below,
        )

    @states("LEC-21")
    def _left_over(self) -> Iterator[Finding]:
        """A broker that stops while a truncation waits to be written leaves the same as one that is killed."""
        if self.log.alone:  # the first or the last segments may be where they were
            return
        beyond = [i for i, e in enumerate(self.entries) if e.start_offset > self.end_offset]
        if beyond and not self.damaged:
            e = self.entries[beyond[0]]
            yield self._of_left_over(
                beyond[0],
                f"entry {e.epoch} {e.start_offset} begins beyond the log's end",
                f"no entry above {self.end_offset}",
                f"loading drops {'it' if len(beyond) == 1 else f'it and {len(beyond) - 1} more'}",
                self.end_offset,
            )
        if self.entries and self.entries[0].start_offset < self.start:
            e = self.entries[0]
            yield self._of_left_over(
                0,
                f"the first entry begins at {e.start_offset}, below the log start",
                f"{self.start}",
                "loading moves it up to the checkpointed log start",
                self.start,
            )

    def _of_left_over(self, entry: int, message: str, expected: str, recovery: str, offset: int) -> Finding:
        assert self.file is not None
        return self.log.finding(
            Severity.LEFTOVER,
            "LEC-21",
            self.file,
            f"{message}: a truncation that had not reached the file",
            expected=expected,
            recovery=recovery,
            line=entry + FIRST_LINE,
            offset=offset,
        )


AUDIT = (LeaderEpochCheck,)
