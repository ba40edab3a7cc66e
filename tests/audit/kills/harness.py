"""The rules over the small directories: what they find there, sound or with a fault.

Everything but the rules is done once a directory: it is written, listed and scanned, and what surrounds its logs is
read. What is compared is all that an audit says of it: each finding with its words, the counts of each partition, what
could not be judged. A fault is noticed if that changes in one directory, if a rule fails there, or does not end.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import shutil
import signal
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kafkaspec.audit import context, engine
from kafkaspec.audit.check import Log
from kafkaspec.audit.discover import Discovery, discover
from kafkaspec.audit.files import Kind
from kafkaspec.audit.finding import Finding
from kafkaspec.impl.common.files import File
from kafkaspec.impl.common.rows import Chunk, Ending
from kafkaspec.impl.common.scan import read_segment
from tests.audit.kills.faults import AROUND, Fault, Rules, rules
from tests.audit.kills.write import Case

SECONDS = 2.0
"""of CPU, after which a rule with a fault is taken not to end"""

Made = Callable[[], Case]
Outcome = tuple[str, ...]
"""What an audit says, in lines: the verdict and a checksum of everything, then the findings without their words."""

GROUPS = {
    "audit/check": ("batch", "log_loader", "meta_properties"),
    "audit/context": ("context", "metadata"),
    "audit/metadata": ("metadata",),
    "common/evidence": ("leader_epochs", "replicas", "compaction"),
    "common/index_evidence": ("offset_index", "time_index"),
    "storage/leader_epochs": ("leader_epochs", "replicas"),
}
"""The directories that are tried for a module; else those of its own name."""


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


def library(module: str) -> dict[str, Made]:
    """The directories that are tried for the faults of a module."""
    out: dict[str, Made] = {}
    for name in GROUPS.get(module, (module.rpartition("/")[2],)):
        if name in groups():
            out |= group(name)
    return out


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
    scans: dict[bool, dict[str, tuple[Chunk | Ending, ...]]]
    """with and without records"""
    read: dict[tuple[str, bool, bool], tuple[Chunk | Ending, ...]] = field(default_factory=dict)

    def scan(self, file: File, *, deep: bool = True, records: bool = False) -> Iterator[Chunk | Ending]:
        """As `read_segment`."""
        self.put(self.case.later)
        path = str(file.path)
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
        (root / path).unlink()
    scans = {r: {str(root / path): scan for path, scan in case.scans(r).items()} for r in (False, True)}
    return Laid(name, case, root, paths, found, logs, identities, scans)


def _known(log: Log, case: Case) -> Log:
    here = log.files.kind in (Kind.CURRENT, Kind.FUTURE)
    id = case.ids.get(log.topic) if here else None
    return replace(log, config=case.config.get(log.topic, log.config), topic_id=id)


# ---- the rules over it -----------------------------------------------------------------------------------------------
class Bench:
    """Cases, laid out, and the audit over them, with all checks or with those of some modules."""

    def __init__(self, made: dict[str, Made]) -> None:
        memory = Path("/dev/shm")
        where = memory if os.access(memory, os.W_OK) else None
        self.root = Path(tempfile.mkdtemp(prefix="kafkaspec-kills-", dir=where))
        self.made = made
        self.laid: dict[str, Laid] = {}
        self.now: Laid | None = None
        self.checks = engine.checks()
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
            return files

        there = {
            "contexts": contexts, "discover": found, "identity": identity, "read_segment": scan,
            "listed_again": again, "checks": lambda: self.checks,
        }  # fmt: skip
        self._before = {name: getattr(engine, name) for name in there}
        self._folder, tempfile.tempdir = tempfile.tempdir, str(self.root)  # temporary files of the rules
        self._warned = warnings.catch_warnings()
        self._warned.__enter__()
        warnings.simplefilter("ignore")
        for name, value in there.items():
            setattr(engine, name, value)
        return self

    def __exit__(self, *of: object) -> None:
        for name, value in self._before.items():
            setattr(engine, name, value)
        tempfile.tempdir = self._folder
        self._warned.__exit__(None, None, None)
        shutil.rmtree(self.root, ignore_errors=True)

    def look_with(self, modules: Iterable[str] | None) -> None:
        """From now on the checks of these modules alone; None: all."""
        every = Bench.every()
        if modules is None:
            self.checks = every
            return
        names = {f"kafkaspec.audits.{m.replace('/', '.')}" for m in modules}
        self.checks = engine.Checks(
            *(tuple(c for c in of if c.__module__ in names) for of in (every.logs, every.directories, every.clusters))  # type: ignore[arg-type]
        )

    @staticmethod
    @cache
    def every() -> engine.Checks:
        return engine.checks()

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
            with in_time():
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
    words = [repr(x).replace(top, "") for x in (a.findings, a.omitted, a.problems, a.notes, a.topics, a.partitions)]
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
def in_time() -> Iterator[None]:
    """Raises Endless after SECONDS of this process's CPU."""

    def stop(*of: object) -> None:
        raise Endless

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# ---- faults ----------------------------------------------------------------------------------------------------------
USED_BY = {
    "common/evidence": ("storage/leader_epochs", "storage/replicas", "management/compaction"),
    "common/findings": (),
    "common/index_evidence": ("storage/offset_index", "storage/time_index"),
    "storage/log_loader": ("storage/log_loader", "storage/batch", "management/checkpoints"),
    "storage/leader_epochs": ("storage/leader_epochs", "storage/replicas"),
    "storage/replicas": ("storage/replicas", "storage/leader_epochs"),
    "management/checkpoints": ("management/checkpoints", "storage/log_loader"),
}
"""The modules whose checks tell of a fault in a module, where these are not its own alone."""


@dataclass
class Trial:
    """The faults of one module, tried on its directories."""

    module: Rules
    bench: Bench
    sound: dict[str, Outcome] = field(default_factory=dict)
    reached: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    """the cases that reach a place"""
    shown: Counter[str] = field(default_factory=Counter)
    """how many faults each case has shown"""

    def begin(self, reached: bool = True) -> None:
        """What the sound rules say of each case, and which places each one reaches."""
        self.bench.counted = watched(self.module)
        self.bench.around = self.module.name in ("audit/context", "audit/metadata")
        self.bench.look_with(None if self.module.name in AROUND else USED_BY.get(self.module.name, (self.module.name,)))
        here: set[tuple[str, int]] = set()

        def report(function: str, n: int, value: Any) -> Any:
            here.add((function, n))
            return value

        for name in self.bench.made:
            self.sound[name] = self.bench.outcome(name)
        if not reached:
            return
        codes = [x for f in self.module.functions if self.module.sites(f) for x in self.module.reporting(f, REPORT)]
        before = [(f, f.__code__) for f, _ in codes]
        vars(self.module.module)[REPORT] = report
        try:
            for f, code in codes:
                f.__code__ = code
            for name in self.bench.made:
                here.clear()
                assert self.bench.outcome(name) == self.sound[name], f"{name}: differs when it is watched"
                for place in here:
                    self.reached.setdefault(place, []).append(name)
        finally:
            for f, code in before:
                f.__code__ = code
            del vars(self.module.module)[REPORT]

    def noticed(self, fault: Fault, first: str | None = None) -> str | None:
        """A case that shows a fault, of those that are tried first the ones that showed most; None if none does."""
        names = self.reached.get((fault.function, fault.place), [])
        if fault.function not in self.module.functions:
            names = list(self.bench.made)
        names = sorted(names, key=lambda n: (n != first, -self.shown[n]))
        with self.module.changed(fault):
            found = next((n for n in names if self.bench.outcome(n) != self.sound[n]), None)
        if found is not None:
            self.shown[found] += 1
        return found

    def shows(self, fault: Fault, case: str) -> bool:
        """Whether that case shows the fault."""
        with self.module.changed(fault):
            return self.bench.outcome(case) != self.sound[case]


REPORT = "_reached_"
COMPILED = ("line_of", "follow")
"""Functions of the producers' rules that run as machine code, when no fault of them is looked for."""


def watched(module: Rules) -> list[int] | None:
    """What a module does beside what it says, in a number that is counted anew in each directory; None if there is no
    such thing. Producers: the compiled functions run as they stand from now on, and how many batches they leave to the
    rules is counted: a loop that leaves all of them is right, and of no use. Compaction: the keys that were held at
    once, after each addition: if all are held, the answer is right."""
    space, count = vars(module.module), [0]
    if module.name == "storage/producer_state":
        code = SimpleNamespace(functions={name: space[name] for name in COMPILED})
        space.update(load=_load, store=_store, _code=lambda: code)
        (row,) = module.objects["ProducerCheck._row"]

        def counting(self: Any, of: Any) -> Any:
            count[0] += 1
            return row(self, of)

        space["ProducerCheck"]._row = counting
        return count
    if module.name == "management/compaction":
        (add,) = module.objects["Keys.add"]

        def adding(self: Any, rows: Any) -> None:
            add(self, rows)
            count[0] = count[0] * 31 % PRIME + self.count

        space["Keys"].add = adding
        return count
    return None


PRIME = 1_000_003


def _load(address: int, index: int = 0) -> int:
    return ctypes.c_int64.from_address(address + 8 * index).value


def _store(address: int, index: int, value: int) -> None:
    ctypes.c_int64.from_address(address + 8 * index).value = value


def trial(name: str, bench: Bench) -> Trial:
    out = Trial(rules(name), bench)
    out.begin()
    return out
