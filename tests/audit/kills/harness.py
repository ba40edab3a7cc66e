"""The audit over the small directories. Everything but the rules is done once a directory: it is written, listed and
scanned, and what surrounds its logs is read. What an audit says of it is told in lines: each finding, with a checksum
of all words, the counts of each partition, and what could not be checked.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import shutil
import signal
import tempfile
import threading
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from kafkaspec.audit import context, engine
from kafkaspec.audit.check import Log
from kafkaspec.audit.discover import Discovery, discover
from kafkaspec.audit.files import Kind
from kafkaspec.audit.finding import Finding
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.impl.common.scan import read_segment
from tests.audit.kills.write import Case

SECONDS = 2.0
"""of CPU, after which a rule with a fault is taken not to end"""
SPACE = 1 << 30
"""bytes of addresses more than before, which a rule with a fault may take: one that does not end takes all there are"""

Made = Callable[[], Case]
Outcome = tuple[str, ...]
"""What an audit says, in lines: the verdict and a checksum of everything, then the findings without their words."""


class Endless(BaseException):
    """A rule does not end."""


# ---- the library -----------------------------------------------------------------------------------------------------
@cache
def group(name: str) -> dict[str, Made]:
    """The directories that were written for a module, by name."""
    module = importlib.import_module(f"tests.audit.kills.cases.{name}")
    made: dict[str, Made] = module.CASES
    return {f"{name}: {k}": v for k, v in made.items()}


def groups() -> list[str]:
    here = Path(__file__).parent / "cases"
    return sorted(p.stem for p in here.glob("*.py") if p.stem != "__init__")


# ---- one directory ---------------------------------------------------------------------------------------------------
@dataclass
class Laid:
    """A case on the disk, listed and scanned."""

    name: str
    case: Case
    root: Path
    paths: list[Path]
    found: Discovery
    logs: list[list[Log]]
    identities: dict[str, tuple[int | None, str | None]]
    scans: dict[bool, dict[str, tuple[Chunk | Ending, ...]]] = field(default_factory=dict)
    """with and without records, where they were asked for: a batch may say that it has 2^32"""
    read: dict[tuple[str, bool, bool], tuple[Chunk | Ending, ...]] = field(default_factory=dict)

    def scan(self, file: File, *, deep: bool = True, records: bool = False) -> Iterator[Chunk | Ending]:
        """As `read_segment`."""
        self.put(self.case.later)
        path = str(file.path)
        if records not in self.scans:
            self.scans[records] = {str(self.root / p): scan for p, scan in self.case.scans(records).items()}
        known = self.scans[records].get(path)
        if known is None:
            key = path, deep, records
            if key not in self.read:
                self.read[key] = tuple(_frozen(x) for x in read_segment(file, deep=deep, records=records))
            known = self.read[key]
        return iter(known)

    def put(self, files: Mapping[str, bytes]) -> None:
        for path, data in files.items():
            (self.root / path).write_bytes(data)

    def before(self) -> None:
        """As it was before a broker wrote on."""
        if self.case.later:
            files = self.case.files()
            self.put({path: files[path] for path in self.case.later})


def _frozen(x: Chunk | Ending) -> Chunk | Ending:
    if isinstance(x, Chunk):
        for rows in (x.batches, x.records):
            if rows is not None:
                rows.flags.writeable = False
    return x


def lay(name: str, case: Case, root: Path) -> Laid:
    """Write a case down, and look at it as the audit does."""
    for made in case.made_folders():
        (root / made).mkdir(parents=True, exist_ok=True)
    for path, data in case.files().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    paths = [root / x for x in case.paths()]
    found = discover(paths)
    identities = {str(x.files.path): context.identity(x) for x in found.places}
    logs = [[_known(log, case) for log in of] for of in context.contexts(found.places)]
    for path in case.gone:
        if (root / path).is_dir():
            shutil.rmtree(root / path)
        else:
            (root / path).unlink()
    return Laid(name, case, root, paths, found, logs, identities)


def _known(log: Log, case: Case) -> Log:
    here = log.files.kind in (Kind.CURRENT, Kind.FUTURE)
    id = case.ids.get(log.topic) if here else None
    return replace(log, config=case.config.get(log.topic, log.config), topic_id=id)


# ---- the rules over it -----------------------------------------------------------------------------------------------
class Bench:
    """Cases, laid out, and the audit over them, with all checks or with those of some modules."""

    def __init__(self, made: Mapping[str, Made]) -> None:
        memory = Path("/dev/shm")
        where = memory if os.access(memory, os.W_OK) else None
        self.root = Path(tempfile.mkdtemp(prefix="kafkaspec-kills-", dir=where))
        self.made = made
        self.laid: dict[str, Laid] = {}
        self.now: Laid | None = None
        self.every = self.checks = engine.checks()
        self.stack = contextlib.ExitStack()
        self.counted: list[int] | None = None
        """what the rules do beside what they say, if that counts"""
        self.around = False
        """what surrounds the logs is read each time, and is all that is told"""

    def __enter__(self) -> Bench:
        def contexts(places: Any) -> Iterator[list[Log]]:
            assert self.now is not None
            return iter(self.now.logs)

        def found(paths: Any) -> Discovery:
            assert self.now is not None
            return self.now.found

        def identity(place: Any) -> tuple[int | None, str | None]:
            assert self.now is not None
            return self.now.identities[str(place.files.path)]

        def scan(file: File, *, deep: bool = True, records: bool = False) -> Iterator[Chunk | Ending]:
            assert self.now is not None
            return self.now.scan(file, deep=deep, records=records)

        def again(files: Any) -> Any:
            return files if files.path.is_dir() else None

        there = {
            "contexts": contexts, "discover": found, "identity": identity, "read_segment": scan,
            "listed_again": again, "checks": lambda: self.checks,
        }  # fmt: skip
        self.put(engine, **there)
        self.put(tempfile, tempdir=str(self.root))  # of the rules' temporary files
        self.stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        return self

    def __exit__(self, *of: object) -> None:
        self.stack.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def put(self, owner: Any, **values: Any) -> None:
        """Until the end a module or a class has these."""
        for name, value in values.items():
            if name in vars(owner):
                self.stack.callback(setattr, owner, name, vars(owner)[name])
            else:
                self.stack.callback(delattr, owner, name)
            setattr(owner, name, value)

    def look_with(self, modules: Iterable[str] | None) -> None:
        """From now on the checks of these modules alone; None: all."""
        if modules is None:
            self.checks = self.every
            return
        every = self.every
        names = {f"kafkaspec.audits.{m.replace('/', '.')}" for m in modules}
        self.checks = engine.Checks(
            tuple(c for c in every.logs if c.__module__ in names),
            tuple(c for c in every.directories if c.__module__ in names),
            tuple(c for c in every.clusters if c.__module__ in names),
        )

    def laid_out(self, name: str) -> Laid:
        if name not in self.laid:
            self.laid[name] = lay(name, self.made[name](), self.root / str(len(self.laid)))
        return self.laid[name]

    def audit(self, name: str) -> engine.Audit:
        """What the rules say of a case, as they are now."""
        laid = self.laid_out(name)
        laid.before()
        self.now = laid
        with limits(laid.case.limits):
            return engine.audit(laid.paths, strict=False)

    def left_behind(self) -> int:
        """How many temporary folders the rules left, which are removed."""
        left = list(self.root.glob("kafkaspec-audit-*"))
        for path in left:
            shutil.rmtree(path, ignore_errors=True)
        return len(left)

    def surroundings(self, name: str) -> Outcome:
        """What the rules are told of each log beside its files."""
        laid = self.laid_out(name)
        out = [f"{context.identity(p)}" for p in laid.found.places]
        for place in map(context.with_own_files, laid.found.places):
            read = {name: file.content for name, file in place.files.files.items() if file.content is not None}
            out.append(f"  {place.files.path.name}: {read}")
        for of in context.contexts(laid.found.places):
            for log in of:
                known = {f.name: getattr(log, f.name) for f in fields(Log) if f.name != "files"}
                out.append(f"  {log.files.path.name}: " + ", ".join(f"{k} {v}" for k, v in known.items()))
        return tuple(out)

    def outcome(self, name: str) -> Outcome:
        """The same in lines, paths from the case's root on; a failure is one too."""
        self.laid_out(name)
        if self.counted is not None:
            self.counted[:] = [0]
        try:
            with in_time(), in_space():
                if self.around:
                    return self.surroundings(name)
                a = self.audit(name)
        except Endless:
            return ("does not end",)
        except Exception as e:
            return (f"fails: {type(e).__name__}",)
        more = () if self.counted is None else (f"  beside: {self.counted[0]}, {self.left_behind()} folders",)
        return (*told(a, self.laid[name].root), *more)


def told(a: engine.Audit, root: Path) -> Outcome:
    """What an audit says, in lines."""
    top = f"{root}/"
    said: list[object] = [a.findings, a.omitted, a.problems, a.notes, a.topics, a.partitions]
    said += [a.part] if a.part is not None else []
    words = [repr(x).replace(top, "") for x in said]
    seen = [_place(f, top) for f in a.findings]
    more = [f"  {o.count} more {o.severity.name} {o.clause} {o.file.replace(top, '')}" for o in a.omitted]
    counts = [f"  {p.path.replace(top, '')}: {_counts(p)}" for p in a.partitions if _counts(p)]
    problems = [f"  problem: {x.replace(top, '')}" for x in a.problems]
    return (f"{a.verdict} {zlib.crc32(' '.join(words).encode()):08x}", *seen, *more, *problems, *counts)


def _counts(p: engine.Partition) -> str:
    """Of transactions, and where it ends; "" where there is nothing but an end."""
    of = {"committed": p.committed, "aborted": p.aborted, "open": p.open_transactions}
    said = [f"{n} {what}" for what, n in of.items() if n]
    if p.last_stable_offset not in (None, p.end):
        said.append(f"last stable offset {p.last_stable_offset}")
    return ", ".join(said)


def _place(f: Finding, top: str) -> str:
    where = f.file.replace(top, "")
    at = "" if f.position is None else f" byte {f.position}"
    at += "" if f.line is None else f" line {f.line}"
    at += "" if f.offset is None else f" offset {f.offset}"
    return f"  {f.severity.name} {f.clause} {where}{at}"


@contextlib.contextmanager
def limits(of: Mapping[str, Any]) -> Iterator[None]:
    """Constants of the rules are others."""
    before = []
    for place, value in of.items():
        module, name = place.split(":")
        owner: Any = importlib.import_module(f"kafkaspec.audits.{module}")
        *classes, name = name.split(".")
        for c in classes:
            owner = getattr(owner, c)
        before.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


@contextlib.contextmanager
def in_space() -> Iterator[None]:
    """What asks for more than SPACE gets a MemoryError, where it is known how much this process has."""
    pages = Path("/proc/self/statm")
    if not pages.is_file():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    least = min((x for x in (soft, hard) if x != resource.RLIM_INFINITY), default=1 << 62)
    now = int(pages.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (min(now + SPACE, least), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """Raises Endless after SECONDS of this process's CPU."""

    def stop(*of: object) -> None:
        raise Endless

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
