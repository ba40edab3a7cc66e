"""The audit: each segment is read once, in order, and shown to every check; then directories and cluster are audited.

Checks are found by their files: every `AUDIT` in `audits/<area>/<name>.py`. Memory is bounded: segments
pass by in chunks, and of one clause's findings in one file the first `MOST_ALIKE` are kept and the others counted.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from kafkaspec.audit.archive import unpacked
from kafkaspec.audit.check import Absent, ClusterCheck, Directory, DirectoryCheck, Facts, Log, LogCheck, Summary
from kafkaspec.audit.context import contexts, identity, with_own_files
from kafkaspec.audit.discover import discover, listed_again
from kafkaspec.audit.files import Kind, PartitionFiles, Segment
from kafkaspec.audit.finding import Finding, Severity
from kafkaspec.contract.subsystem import modules
from kafkaspec.errors import UserError
from kafkaspec.impl.common.files import File, printable, read_small
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.impl.common.scan import read_segment
from kafkaspec.spec.common.kafka import LONG_MAX

MOST_ALIKE = 1_000
"""At most this many findings of one clause in one file are kept; the rest is counted."""
ATTEMPTS = 10
"""How often a log is read again whose files change meanwhile: a live broker's."""
READ_AHEAD = 32 << 20
"""Files up to this size are read ahead of a growing segment, bytes."""

Progress = Callable[[float, float | None, int], None]
"""Called now and then with bytes done, bytes in all, and records done."""


@dataclass(frozen=True)
class OmittedCounts:
    """Findings that were counted, and not kept."""

    clause: str
    file: str
    count: int
    severity: Severity


@dataclass(frozen=True)
class Partition:
    """A partition's directory that was read."""

    path: str
    topic: str
    partition: int
    kind: Kind
    node: int | None
    start: int
    """first readable offset"""
    end: int
    """log end offset"""
    segments: int
    batches: int
    records: int
    """in the files, those below `start` and control records included"""
    bytes: int
    """of the .log files"""
    committed: int
    """transactions whose markers are there"""
    aborted: int
    open_transactions: int
    last_stable_offset: int | None
    findings: int
    """of WARNING and ERROR"""


@dataclass(frozen=True)
class Topic:
    """The totals of a topic over all copies of its partitions that were read."""

    topic: str
    partitions: int
    """copies: a partition with two replicas here counts twice"""
    segments: int
    batches: int
    records: int
    bytes: int
    offsets: int
    """from start to end, added up"""
    committed: int
    aborted: int
    open_transactions: int
    findings: int
    """of WARNING and ERROR"""
    leftovers: int
    unchecked: int


@dataclass(frozen=True)
class AuditedDirectory:
    """A log directory that was read; `clean`: whether it has the marker of a clean shutdown, None if partitions or
    segments of it were given by themselves."""

    path: str
    node: int | None
    cluster: str | None
    clean: bool | None
    partitions: int


@dataclass(frozen=True)
class Part:
    """What was given without its log directory, and what that means."""

    paths: tuple[str, ...]
    """of the partitions"""
    without: tuple[str, ...]
    """what was not there"""
    not_asked: tuple[str, ...]
    """the clauses that were therefore not asked, of all or of some of it"""


@dataclass(frozen=True)
class RecordCount:
    """How many records of a kind the metadata logs have that were read, over all their copies."""

    kind: str
    count: int


@dataclass(frozen=True)
class Audit:
    """What an audit found."""

    paths: tuple[str, ...]
    verdict: str
    """sound, unsound, or could not judge"""
    directories: tuple[AuditedDirectory, ...]
    topics: tuple[Topic, ...]
    partitions: tuple[Partition, ...]
    findings: tuple[Finding, ...]
    """worst first, then by place"""
    omitted: tuple[OmittedCounts, ...] = ()
    """how many findings of one clause in one file there are beyond those that are listed"""
    problems: tuple[str, ...] = ()
    """what could not be read, or not be checked, and why"""
    notes: tuple[str, ...] = ()
    part: Part | None = None
    """null if only whole log directories were given"""
    archives: tuple[str, ...] = ()
    """those of the paths that are archives; the names of their members stand behind theirs, as if they were folders"""
    metadata_records: tuple[RecordCount, ...] = ()
    """of data, by kind"""
    everything: bool = field(default=False, metadata={"json": None})
    """whether a report for people leaves nothing out"""

    def count(self, severity: Severity) -> int:
        """Findings of a severity, omitted ones included."""
        return sum(f.severity == severity for f in self.findings) + sum(
            o.count for o in self.omitted if o.severity == severity
        )

    @property
    def exit_code(self) -> int:
        """0 sound, 1 findings, 2 could not judge."""
        return {"sound": 0, "unsound": 1}.get(self.verdict, 2)


# ---- the checks ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Checks:
    """The checks that the subsystems bring."""

    logs: tuple[type[LogCheck], ...]
    directories: tuple[type[DirectoryCheck], ...]
    clusters: tuple[type[ClusterCheck], ...]


@cache
def checks() -> Checks:
    """Every AUDIT in audits/<area>/<name>.py, in the order of the files."""
    every = list[Any]()
    for name, area in modules("audits").items():
        every += importlib.import_module(f"kafkaspec.audits.{area}.{name}").AUDIT
    return Checks(
        tuple(c for c in every if issubclass(c, LogCheck)),
        tuple(c for c in every if issubclass(c, DirectoryCheck)),
        tuple(c for c in every if issubclass(c, ClusterCheck)),
    )


# ---- one log ---------------------------------------------------------------------------------------------------------
def audit_log(log: Log, checks: Sequence[type[LogCheck]] | None = None) -> tuple[list[Finding], Summary]:
    """Read a log once and put it to the checks (all, if not named). The findings are not sorted. Raises UserError
    where a file cannot be read, and whatever a check raises."""
    audited = _read(log, checks, strict=True)
    if audited.problems:
        raise UserError(audited.problems[0])
    return audited.findings.kept, audited.summary


@dataclass
class FindingList:
    """Findings, of one clause in one file no more than MOST_ALIKE."""

    kept: list[Finding] = field(default_factory=list)
    counts: dict[tuple[str, str, Severity], int] = field(default_factory=dict)

    def add(self, findings: Iterable[Finding]) -> None:
        for f in findings:
            key = f.clause, f.file, f.severity
            n = self.counts[key] = self.counts.get(key, 0) + 1
            if n <= MOST_ALIKE:
                self.kept.append(f)

    @property
    def omitted(self) -> list[OmittedCounts]:
        return [OmittedCounts(c, f, n - MOST_ALIKE, s) for (c, f, s), n in self.counts.items() if n > MOST_ALIKE]


@dataclass
class LogResult:
    """A log that was read, or the part of it that could be."""

    log: Log
    findings: FindingList
    summary: Summary
    problems: list[str]
    absent: list[Absent] = field(default_factory=list)
    """of a log that is alone"""


class _CheckRun:
    """The checks of one log, while it is read. What one of them cannot read, or breaks on, ends no other. `strict`:
    what a check raises is raised, unless it is a UserError."""

    def __init__(self, log: Log, chosen: Sequence[type[LogCheck]], strict: bool) -> None:
        self.log, self.strict = log, strict
        self.findings = FindingList()
        self.problems: list[str] = []
        self.active: list[LogCheck] = []
        self.aside: set[LogCheck] = set()
        """those of the active ones that are told nothing more of this segment"""
        for of in chosen:
            self._guarded(of, log.files.path, lambda of=of: self._add(of))  # type: ignore[misc]
        self.every = tuple(self.active)

    def _add(self, of: type[LogCheck]) -> Iterable[Finding]:
        if of.applies(self.log):
            self.active.append(of(self.log))
        return ()

    def _guarded(self, of: type[LogCheck], where: Path, call: Callable[[], Iterable[Finding]]) -> str | None:
        """What could not be read. A check that breaks ends."""
        try:
            self.findings.add(call())
        except UserError as e:
            self.problems.append(str(e))
            return str(e)
        except Exception as e:
            if self.strict:
                raise
            self.problems.append(_bug(where, of, e))
            self.active = [c for c in self.active if type(c) is not of]
        return None

    def begin(self, segment: Segment) -> None:
        self.aside.clear()
        self.each(segment, lambda c: c.begin(segment))

    def each(self, segment: Segment, call: Callable[[Any], Iterable[Finding]]) -> None:
        """A check that cannot read a file goes on with the next segment, if it can."""
        assert segment.log is not None
        for c in tuple(self.active):
            if c not in self.aside:
                problem = self._guarded(type(c), segment.log.path, lambda c=c: call(c))  # type: ignore[misc]
                if problem is not None:
                    self._unread(c, segment, problem)

    def unread(self, segment: Segment, problem: str) -> None:
        """The segment's .log cannot be read, or not to its end."""
        self.problems.append(problem)
        for c in tuple(self.active):
            if c not in self.aside:
                self._unread(c, segment, problem)

    def _unread(self, c: LogCheck, segment: Segment, problem: str) -> None:
        assert segment.log is not None
        self.aside.add(c)
        if self._guarded(type(c), segment.log.path, lambda: c.skip(segment, problem)) is not None:
            self.active = [x for x in self.active if x is not c]

    def end(self) -> None:
        for c in tuple(self.active):
            if self._guarded(type(c), self.log.files.path, c.end) is not None:
                self.active = [x for x in self.active if x is not c]
        self.problems += (p for c in self.every for p in c.problems)


def _read(
    log: Log, chosen: Sequence[type[LogCheck]] | None, strict: bool, tick: Callable[[int, int], None] | None = None
) -> LogResult:
    """One pass. `tick`: called with bytes and records as they pass."""
    run = _CheckRun(log, checks().logs if chosen is None else chosen, strict)
    records = any(c.needs_records for c in run.active)
    batches = counted = size = 0
    unread: list[Segment] = []
    end = log.files.segments[-1].base_offset if log.files.segments else 0
    for segment in log.files.segments:
        if log.clean is not True and log.is_active(segment):
            segment = _read_ahead(segment)
        run.begin(segment)
        for x in _batches(segment, records):
            if isinstance(x, Chunk):
                batches += len(x.batches) - int(np.count_nonzero(x.bad))
                here = int(x.count.sum() if x.usual else x.count[~(x.bad | x.old)].sum())
                counted += here
                run.each(segment, lambda c, s=segment, x=x: c.chunk(s, x))  # type: ignore[misc]
                if tick is not None:
                    tick(int(x.size.sum()), here)
            elif isinstance(x, Ending):
                size += x.size
                end = segment.base_offset if x.end_offset is None else x.end_offset
                run.each(segment, lambda c, s=segment, x=x: c.ended(s, x))  # type: ignore[misc]
            else:
                unread.append(segment)
                end = segment.base_offset
                run.unread(segment, str(x))
    run.end()
    log = replace(log, unread=tuple((s.base_offset, _next_base(log, s)) for s in unread))
    facts = Facts(end_uncertain=any(map(log.is_active, unread)))
    for c in run.active:
        facts = c.learnt(facts)
    if unread:  # an open transaction may have ended there, or begun
        facts = replace(facts, last_stable_offset=None)
    first = log.files.segments[0].base_offset if log.files.segments else end
    start = first if log.log_start is None else max(first, log.log_start)
    listed = len(log.files.segments)
    summary = Summary(log, start, max(end, 0), listed, batches, counted, size, facts)
    absent = [a for c in run.active for a in c.absent()] if log.alone else []
    return LogResult(log, run.findings, summary, run.problems, absent)


def _batches(segment: Segment, records: bool) -> Iterator[Chunk | Ending | UserError]:
    """What is read of a segment; last how it ends, or why nothing more of it can be read."""
    assert segment.log is not None
    try:
        yield from read_segment(segment.log, deep=True, records=records)
    except UserError as e:
        yield e


def _next_base(log: Log, segment: Segment) -> int:
    """Where the next segment begins; behind the last there is none."""
    return min((s.base_offset for s in log.files.segments if s.base_offset > segment.base_offset), default=LONG_MAX)


def _read_ahead(segment: Segment) -> Segment:
    """A segment that may grow, with its indexes as they are before it is read."""

    def ahead(file: File | None) -> File | None:
        if file is None or file.size > READ_AHEAD:
            return file
        try:
            return replace(file, content=read_small(file))
        except UserError:
            return file

    return replace(
        segment,
        offset_index=ahead(segment.offset_index),
        time_index=ahead(segment.time_index),
        transaction_index=ahead(segment.transaction_index),
    )


def check_log(log: Log, strict: bool, tick: Callable[[int, int], None] | None = None) -> LogResult | None:
    """Read a log, and again if its files changed meanwhile under a running broker. None if it is gone."""
    if log.clean is True:
        return _read(log, None, strict, tick)
    before = signature(log.files)
    audited: LogResult | None = None
    for attempt in range(ATTEMPTS):
        try:
            now = listed_again(log.files)  # what was listed before may be gone
        except OSError as e:
            raise UserError(f"{log.files.path}: {(e.strerror or str(e)).lower()}") from None
        if now is None:
            return None
        log = replace(log, files=now)
        audited = _read(log, None, strict, None if attempt else tick)
        if not _suspicious(audited):
            break
        after = signature(now)
        if after == before:
            break
        before = after
    return audited


def _suspicious(audited: LogResult) -> bool:
    """Whether what was found may be the doing of a broker that was at work: a log without a segment is none, but a
    listing may have missed one that came while another went."""
    lacking = not audited.log.files.segments and audited.log.files.kind is Kind.CURRENT
    return lacking or bool(audited.problems) or any(f.severity > Severity.LEFTOVER for f in audited.findings.kept)


def signature(files: PartitionFiles) -> dict[str, tuple[int, int, int]]:
    """What tells that a file is still the same: inode, size, time of the last change, by name."""
    out = {}
    with contextlib.suppress(OSError), os.scandir(files.path) as entries:
        for e in entries:
            with contextlib.suppress(OSError):
                found = e.stat()
                out[e.name] = found.st_ino, found.st_size, found.st_mtime_ns
    return out


# ---- everything ------------------------------------------------------------------------------------------------------
@dataclass
class Tally:
    """Bytes and records as they pass, for the progress bar."""

    progress: Progress | None
    total: int
    bytes: int = 0
    records: int = 0
    unsaid: int = 0

    def __call__(self, size: int, records: int) -> None:
        self.bytes += size
        self.records += records
        self.unsaid += size
        if self.progress is not None and self.unsaid > 1 << 20:
            self.unsaid = 0
            self.progress(self.bytes, self.total, self.records)


Fan = Callable[[list[Log], bool, Tally], Iterator[tuple[int, LogResult | str | None]]]
"""How the logs are audited: here one after the other, in several processes, or spread over Spark. Gives each log's
number and what `audited` says of it, in any order."""


def audited(log: Log, strict: bool, tick: Callable[[int, int], None] | None = None) -> LogResult | str | None:
    """What came of a log: None if it is gone, a line if it could not be read."""
    try:
        return check_log(log, strict, tick)
    except UserError as e:
        return str(e)


def here(logs: list[Log], strict: bool, tally: Tally) -> Iterator[tuple[int, LogResult | str | None]]:
    """In this process, in order."""
    for n, log in enumerate(logs):
        yield n, audited(log, strict, tally)


def size_of(log: Log) -> int:
    """Bytes of its .log files."""
    return sum(s.log.size for s in log.files.segments if s.log is not None)


def audit(
    paths: Sequence[Path | str],
    *,
    fan: Fan = here,
    progress: Progress | None = None,
    strict: bool | None = None,
) -> Audit:
    """Audit everything under the paths, and in the archives among them. `strict`: what a check raises is raised, and
    not reported as a file that could not be checked (default: if KAFKASPEC_TRACEBACK is set). Raises UserError for
    paths that are nothing of Kafka's, and for an archive that is refused."""
    strict = bool(os.environ.get("KAFKASPEC_TRACEBACK")) if strict is None else strict
    given = [Path(p) for p in paths]
    with unpacked(given, progress) as there:
        found = _audited(there.paths, fan, progress, strict)
    found = replace(found, paths=tuple(map(str, given)), archives=tuple(archive for _, archive in there.names))
    found = _retold(replace(found, notes=(*there.notes, *found.notes)), lambda text: printable(there.told(text)))
    return replace(found, findings=tuple(sorted(found.findings, key=Finding.order)))


def _audited(paths: Sequence[Path], fan: Fan, progress: Progress | None, strict: bool) -> Audit:
    found = discover(paths)
    found = replace(found, places=tuple(map(with_own_files, found.places)))
    problems, notes = list(found.problems), list(found.notes)
    out = FindingList()
    logs = list[Log]()
    owner = list[int]()
    for n, of in enumerate(contexts(found.places)):
        logs += of
        owner += [n] * len(of)
    tally = Tally(progress, sum(map(size_of, logs)))
    summaries: list[Summary | None] = [None] * len(logs)
    absent = list[tuple[Log, Absent]]()
    answers = dict(fan(logs, strict, tally))
    for n in range(len(logs)):
        answer = answers.pop(n)
        if isinstance(answer, str):
            problems.append(answer)
        elif answer is None:
            notes.append(f"{logs[n].files.path}: gone while it was read: deleted by a running broker")
        else:
            out.add(answer.findings.kept)
            for o in answer.findings.omitted:
                out.counts[o.clause, o.file, o.severity] += o.count
            problems += answer.problems
            summaries[n] = answer.summary
            absent += [(answer.log, a) for a in answer.absent]
    directories, wholes = list[Directory](), list[Directory]()
    for n, place in enumerate(found.places):
        mine = tuple(s for i, s in enumerate(summaries) if owner[i] == n and s is not None)
        node, cluster = identity(place)
        directories.append(Directory(place.files, mine, place.files.clean, node, cluster))
        if place.whole:
            wholes.append(directories[-1])
        elif mine and not any(s.segments for s in mine):
            problems.append(
                f"{place.files.path}: no .log of a segment is there: the other files cannot be checked alone"
            )
    for directory in wholes:
        for dc in checks().directories:
            _guarded(out, problems, strict, dc, lambda c, d=directory: c.check(d), directory.files.path)  # type: ignore[misc]
    every = tuple(directories)
    if every:
        for cc in checks().clusters:
            _guarded(out, problems, strict, cc, lambda c: c.check(every, reread), every[0].files.path)
    if not any(s is not None for s in summaries) and not wholes and not problems:
        problems.append(f"{paths[0]}: nothing there could be audited")
    alone = [s.log for d in directories for s in d.logs if s.log.alone]
    part = _part(alone, absent) if alone else None
    return _result([str(p) for p in paths], every, wholes, out, problems, notes, part)


OWN_FILES = "meta.properties", "the marker of a clean stop", "the offset checkpoints"
"""what a log directory has and no partition in it"""


def _part(alone: Sequence[Log], absent: Sequence[tuple[Log, Absent]]) -> Part:
    """What was not given with the logs that are alone. One file is named, several of a kind are counted."""
    by_kind: dict[str, list[str]] = {}
    for log, a in absent:
        prefix = f"{log.files.path.name}/" if len(alone) > 1 else ""
        by_kind.setdefault(a.kind, []).extend(f"{prefix}{file}" for file in a.files)
    kinds = [
        files[0] if len(files) == 1 else f"{len(files):,} {kind}" if files else kind for kind, files in by_kind.items()
    ]
    found = checks()
    every: list[type[LogCheck | DirectoryCheck | ClusterCheck]] = [*found.logs, *found.directories, *found.clusters]
    clauses = {c for check in every for c in check.needs_directory}
    clauses |= {c for _, a in absent for c in a.clauses}
    ordered = sorted(clauses, key=lambda c: (c[:3], int(c[4:])))
    return Part(tuple(str(x.files.path) for x in alone), (*OWN_FILES, *kinds), tuple(ordered))


def _guarded(
    out: FindingList,
    problems: list[str],
    strict: bool,
    of: type[DirectoryCheck | ClusterCheck],
    call: Callable[[Any], Iterable[Finding]],
    where: Path,
) -> None:
    check = of()
    try:
        out.add(call(check))
    except UserError as e:
        problems.append(str(e))
    except Exception as e:
        if strict:
            raise
        problems.append(_bug(where, of, e))
    problems += check.problems


def _bug(where: Path, of: type, e: Exception) -> str:
    return f"{where}: {of.__name__} cannot check it: {type(e).__name__}: {e}; a bug of kafkaspec"


def reread(log: Log, records: bool = False) -> Iterator[tuple[Segment, Chunk]]:
    """The chunks of a log once more, each with its segment, but for the segments that could not be read before. Raises
    UserError if another cannot be read now."""
    unread = {first for first, _ in log.unread}
    for segment in log.files.segments:
        if segment.base_offset in unread:
            continue
        assert segment.log is not None
        for x in read_segment(segment.log, deep=records, records=records):
            if not isinstance(x, Ending):
                yield segment, x


def _result(
    paths: list[str],
    directories: tuple[Directory, ...],
    wholes: list[Directory],
    out: FindingList,
    problems: list[str],
    notes: list[str],
    part: Part | None = None,
) -> Audit:
    findings = tuple(sorted(out.kept, key=Finding.order))
    omitted = tuple(sorted(out.omitted, key=lambda o: (o.file, o.clause)))
    partitions = tuple(_partition(d, s) for d in directories for s in d.logs)
    topics = tuple(_topic(t, [p for p in partitions if p.topic == t]) for t in sorted({p.topic for p in partitions}))
    told = tuple(
        AuditedDirectory(
            str(d.files.path), d.node, d.cluster, d.clean if any(d is w for w in wholes) else None, len(d.logs)
        )
        for d in directories
    )
    unique = tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(notes))
    kinds = Counter[str]()
    for d in directories:
        for s in d.logs:
            kinds.update(s.facts.metadata_records)
    records = tuple(RecordCount(kind, n) for kind, n in sorted(kinds.items()))
    return counted(
        Audit(tuple(paths), "", told, topics, partitions, findings, omitted, *unique, part, metadata_records=records)
    )


def counted(a: Audit) -> Audit:
    """The same with the verdict, and the numbers of findings of partitions and topics, that follow from its findings
    and problems."""
    bad = dict[str, int]()
    by_topic: dict[str, dict[Severity, int]] = {}
    for f in a.findings:
        folder = str(Path(f.file).parent)
        if f.severity >= Severity.WARNING:
            bad[folder] = bad.get(folder, 0) + 1
        if f.topic is not None:
            of = by_topic.setdefault(f.topic, dict.fromkeys(Severity, 0))
            of[f.severity] += 1
    for o in a.omitted:
        if o.severity >= Severity.WARNING:
            folder = str(Path(o.file).parent)
            bad[folder] = bad.get(folder, 0) + o.count
    none = dict.fromkeys(Severity, 0)
    topics = []
    for t in a.topics:
        of = by_topic.get(t.topic, none)
        findings = of[Severity.WARNING] + of[Severity.ERROR]
        topics.append(replace(t, findings=findings, leftovers=of[Severity.LEFTOVER], unchecked=of[Severity.UNCHECKED]))
    if any(f.severity >= Severity.WARNING for f in a.findings):
        verdict = "unsound"
    elif a.problems or any(f.severity == Severity.UNCHECKED for f in a.findings):
        verdict = "could not judge"
    else:
        verdict = "sound"
    partitions = tuple(replace(p, findings=bad.get(p.path, 0)) for p in a.partitions)
    return replace(a, verdict=verdict, partitions=partitions, topics=tuple(topics))


def unread(paths: Sequence[Path | str], problem: str) -> Audit:
    """The result where nothing could be read at all: why, as its problem."""
    return _retold(_result([str(p) for p in paths], (), [], FindingList(), [problem], []), printable)


T = TypeVar("T")


def _retold(thing: T, tell: Callable[[str], str]) -> T:
    """The same with every text told so: names in a directory may be any bytes."""
    return _told(thing, tell)  # type: ignore[no-any-return]


def _told(thing: Any, tell: Callable[[str], str]) -> Any:
    match thing:
        case str():
            return tell(thing)
        case tuple():
            return tuple(_told(x, tell) for x in thing)
        case Audit() | AuditedDirectory() | Partition() | Topic() | OmittedCounts() | Finding() | Part():
            old = {f.name: getattr(thing, f.name) for f in fields(thing)}
            new = {name: value for name, x in old.items() if (value := _told(x, tell)) is not x and value != x}
            return replace(thing, **new) if new else thing
    return thing


def _partition(d: Directory, s: Summary) -> Partition:
    files = s.log.files
    return Partition(
        str(files.path),
        files.topic,
        files.partition,
        files.kind,
        d.node,
        s.start,
        s.end,
        s.segments,
        s.batches,
        s.records,
        s.size,
        s.facts.committed,
        s.facts.aborted,
        s.facts.open_transactions,
        s.facts.last_stable_offset,
        findings=0,
    )


def _topic(name: str, of: list[Partition]) -> Topic:
    def total(field: str) -> int:
        return sum(getattr(p, field) for p in of)

    return Topic(
        name,
        len(of),
        total("segments"),
        total("batches"),
        total("records"),
        total("bytes"),
        sum(max(0, p.end - p.start) for p in of),
        total("committed"),
        total("aborted"),
        total("open_transactions"),
        findings=0,
        leftovers=0,
        unchecked=0,
    )
