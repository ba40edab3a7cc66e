"""A live broker's directories audited again and again: what has changed, and nothing that only one reading shows.

A broker goes on writing while it is read. What is new, and what is gone, is therefore told when two audits in a row,
the second begun a moment after the first had ended, agree on it. A log of which no file has changed is not read again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from kafkaspec.audit.archive import is_archive
from kafkaspec.audit.check import Log
from kafkaspec.audit.engine import (
    Audit,
    Fan,
    LogResult,
    Partition,
    Progress,
    Tally,
    audit,
    counted,
    here,
    signature,
    unread,
)
from kafkaspec.audit.files import Kind
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.errors import UserError

READINGS: Final = 4
"""At most this number of audits a look: what no two in a row agree on is not told, and may be told by the next look."""

MOMENT_S: Final = 0.2
"""Before it is read again: a broker that was interrupted in the middle of a roll goes on."""

Key = tuple[Severity, str, str, int | None, int | None, int | None]


@dataclass(frozen=True)
class LogEnd:
    """A log whose end has moved. `before` is null for a partition that is new, `now` for one that is gone."""

    path: str
    topic: str
    partition: int
    before: int | None
    now: int | None


@dataclass(frozen=True)
class AuditChange:
    """What a look shows that the look before did not. Leftovers, which come and go under a running broker, are not
    told."""

    paths: tuple[str, ...]
    at: str
    """when it was seen, ISO 8601"""
    verdict: str
    """of the whole, as of an Audit"""
    new: tuple[Finding, ...]
    gone: tuple[Finding, ...]
    problems: tuple[str, ...]
    """new ones"""
    solved: tuple[str, ...]
    """problems that are gone"""
    ends: tuple[LogEnd, ...]
    everything: bool = field(default=False, metadata={"json": None})
    """whether a report for people leaves nothing out"""

    def __bool__(self) -> bool:
        """Whether anything has changed."""
        return bool(self.new or self.gone or self.problems or self.solved or self.ends)


class Watch:
    """Looks at the same paths, one after the other. Raises UserError for paths that the first look can do nothing with,
    and for an archive, which does not change."""

    def __init__(self, paths: Sequence[Path], *, fan: Fan = here, progress: Progress | None = None) -> None:
        for path in paths:
            if is_archive(path):
                raise UserError(f"{path}: an archive does not change: give a broker's directories to be watched")
        self.paths, self.progress = list(paths), progress
        self.fan = CachingFan(fan)
        self.last: Audit | None = None
        """what was told last"""

    def first(self) -> Audit:
        """The first look."""
        self.last = self._settled({}, None)
        return self.last

    def again(self) -> AuditChange:
        """Another look, and what has changed."""
        before = self.last
        assert before is not None
        old = _told(before)
        now = self.last = self._settled(old, before)
        new = _told(now)
        fresh, gone = [new[k] for k in new if k not in old], [old[k] for k in old if k not in new]
        return AuditChange(
            now.paths,
            datetime.now().astimezone().isoformat(timespec="seconds"),
            now.verdict,
            tuple(x for x in fresh if isinstance(x, Finding)),
            tuple(x for x in gone if isinstance(x, Finding)),
            tuple(x for x in fresh if isinstance(x, str)),
            tuple(x for x in gone if isinstance(x, str)),
            tuple(_moved(before.partitions, now.partitions)),
        )

    def _settled(self, known: Mapping[Key | str, Finding | str], before: Audit | None) -> Audit:
        """An audit in which only that has changed what two in a row agree on."""
        last: set[Key | str] | None = None
        for n in range(READINGS):
            if n:
                time.sleep(MOMENT_S)
            found = self._read(before)
            now = _told(found)
            changed = now.keys() ^ known.keys()
            sure = changed & (last or set())
            if changed == sure:
                return found
            last = changed
        told = {k: x for k, x in now.items() if k in known or k in sure}
        told |= {k: x for k, x in known.items() if k not in now and k not in sure}
        kept = [x for x in told.values() if isinstance(x, Finding)]
        kept += [f for f in found.findings if f.severity is Severity.LEFTOVER]
        problems = tuple(x for x in told.values() if isinstance(x, str))
        return counted(replace(found, findings=tuple(sorted(kept, key=Finding.order)), problems=problems))

    def _read(self, before: Audit | None) -> Audit:
        """An audit. Where nothing can be read any more, what was told last, and why."""
        try:
            return audit(self.paths, fan=self.fan, progress=self.progress)
        except UserError as e:
            if before is None:
                raise
            why = unread(self.paths, str(e)).problems
            return counted(replace(before, problems=tuple(dict.fromkeys((*before.problems, *why)))))


def settled(paths: Sequence[Path], *, fan: Fan = here, progress: Progress | None = None) -> Audit:
    """One audit of paths that a broker may be writing to. Raises UserError as `audit` does."""
    if any(map(is_archive, paths)):
        return audit(paths, fan=fan, progress=progress)
    return Watch(paths, fan=fan, progress=progress).first()


def _told(a: Audit) -> dict[Key | str, Finding | str]:
    """Findings by what makes them the same in another audit, and problems. Texts may have numbers that move."""
    out: dict[Key | str, Finding | str] = {
        (f.severity, f.clause, f.file, f.position, f.line, f.offset): f
        for f in a.findings
        if f.severity > Severity.LEFTOVER
    }
    return out | {p: p for p in a.problems}


def _moved(before: Sequence[Partition], now: Sequence[Partition]) -> Iterator[LogEnd]:
    old, new = ({p.path: p for p in of if p.kind is Kind.CURRENT} for of in (before, now))
    for path in sorted(old.keys() | new.keys()):
        a, b = old.get(path), new.get(path)
        if a is None or b is None or a.end != b.end:
            known = b or a
            assert known is not None
            ends = (None if x is None else x.end for x in (a, b))
            yield LogEnd(path, known.topic, known.partition, *ends)


@dataclass
class CachingFan:
    """A fan that remembers: a log is checked again if a file of it, or what surrounds it, is another than last time."""

    fan: Fan
    known: dict[Path, tuple[Log, dict[str, tuple[int, int, int]], LogResult]] = field(default_factory=dict)

    def __call__(self, logs: list[Log], strict: bool, tally: Tally) -> Iterator[tuple[int, LogResult | str | None]]:
        before = [signature(log.files) for log in logs]
        again = []
        remembered, self.known = self.known, {}
        for n, log in enumerate(logs):
            found = remembered.get(log.files.path)
            if found is not None and found[:2] == (log, before[n]):
                self.known[log.files.path] = found
                yield n, found[2]
            else:
                again.append(n)
        for i, result in self.fan([logs[n] for n in again], strict, tally):
            n = again[i]
            log = logs[n]
            if isinstance(result, LogResult) and not result.problems and signature(log.files) == before[n]:
                self.known[log.files.path] = log, before[n], result
            yield n, result
