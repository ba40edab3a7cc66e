"""Which faults of a clause's rule turn a test red that is marked with it: one process asks for a whole subsystem.

    python -m tests.exercised leader_epochs [--every] [LEC-8 ...]

pytest collects the files of the marked tests once, with all that they import. Every fault is made in a forked child,
which runs the marked tests, the quickest first, until one is red. No other fault of the clause is tried then; with
--every all are, which shows what else a test does not look at.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple

import pytest

from kafkaspec.contract import clauses, traceability
from kafkaspec.contract.rewrite import functions
from kafkaspec.contract.subsystem import find
from kafkaspec.mutants.function import FunctionFault, PreconditionFault, called_by, documented, faults_of, preconditions

LAYERS: Final = ("spec", "impl", "audit")
"""The forms of a clause that are functions."""
TESTS: Final = str(Path(__file__).parent)
LIMIT_S: Final = 30
"""The time that the tests of a clause may take under one fault, beyond three times what they take without."""
MOST_S: Final = 120
"""The time after which no other fault of a clause is tried."""

Functions = Sequence[tuple[ModuleType, str]]
Fault = FunctionFault | PreconditionFault


class Rule(NamedTuple):
    """What states a clause."""

    functions: Sequence[Functions]
    """layer by layer"""
    preconditions: Sequence[PreconditionFault] = ()


@dataclass
class ClauseTrial:
    """What was tried of one clause."""

    clause: str
    tests: list[str]
    red: str = ""
    """the fault that turned a test red, and the test"""
    tried: list[str] = field(default_factory=list)
    """the faults before it, and how the tests took each"""
    problem: str = ""
    """why none could be tried"""
    seconds: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """How the tests ended that one child ran: "green", "red", "failed" (before or behind the test, or by a gross
    error), "no function" or "time"."""

    how: str
    said: str = ""
    taken_s: Mapping[str, float] = field(default_factory=dict)
    failed: Sequence[str] = ()
    skipped: Sequence[str] = ()


class Reports:
    """The reports of the tests that run in this process, each with what was raised."""

    def __init__(self) -> None:
        self.all: list[tuple[pytest.TestReport, pytest.ExceptionInfo[BaseException] | None]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        self.all.append((report, call.excinfo))
        return report


def looked(raised: pytest.ExceptionInfo[BaseException]) -> bool:
    """The test looked at an answer, or the code under test refused: an assertion or a contract failed, the test's own
    text did not get what it takes apart, or there is a `raise`. Not so if Python itself stops a text that makes no
    sense: every test that calls it would be red."""
    if isinstance(raised.value, AssertionError | pytest.fail.Exception):
        return True
    if isinstance(raised.value, NameError | AttributeError | TypeError | ImportError):
        return False
    last = raised.traceback[-1]
    line = str(last.statement).strip()
    return str(last.path).startswith(TESTS) or line.startswith("raise")


def ran(items: Sequence[pytest.Item], *, all_of_them: bool = False) -> Outcome:
    """Run tests in this process, until one fails or all of them."""
    reports = Reports()
    items[0].config.pluginmanager.register(reports)
    taken: dict[str, float] = defaultdict(float)
    failed: list[str] = []
    skipped: list[str] = []
    how = said = ""
    for item, after in zip_longest(items, items[1:]):
        reports.all.clear()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        for report, raised in reports.all:
            taken[item.nodeid] += report.duration
            if report.skipped:
                skipped.append(item.nodeid)
            if report.failed:
                failed.append(item.nodeid)
                assert raised is not None
                how = "red" if report.when == "call" and looked(raised) else "failed"
                said = f"{item.nodeid}: {raised.exconly(tryshort=True).splitlines()[0][:120]}"
        if how and not all_of_them:
            break
    return Outcome(how or "green", said, dict(taken), failed, skipped)


def forked(what: Callable[[], Outcome], limit_s: float) -> Outcome:
    """What a forked child answers; "time" if it takes longer, and "failed" if it dies."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setpgid(0, 0)
            os.close(reader)
            nothing = os.open(os.devnull, os.O_RDWR)
            for n in (0, 1, 2):
                os.dup2(nothing, n)
            with os.fdopen(writer, "w", encoding="utf-8") as f:
                json.dump(asdict(what()), f)
        finally:
            os._exit(0)
    os.close(writer)

    def late(*of: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    begun = time.monotonic()
    with os.fdopen(reader, encoding="utf-8") as f:
        answer = f.read()
    os.waitpid(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if answer:
        return Outcome(**json.loads(answer))
    return Outcome("time" if time.monotonic() - begun >= limit_s else "failed", "the process died")


class Questioner:
    """A plugin of pytest that asks, in the place of its loop, the faults of each clause's functions."""

    def __init__(self, rules: Mapping[str, Rule], tell: Callable[[ClauseTrial], None], every: bool) -> None:
        self.rules, self.tell, self.every = rules, tell, every
        self.functions: list[FunctionType] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        marked: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            for id in {a for m in item.iter_markers("clause") for a in m.args}:
                marked[id].append(item)
        for id, items in marked.items():  # the long ones are asked of a clause that has no others
            marked[id] = [i for i in items if i.get_closest_marker("deep") is None] or items
        faults = {id: levels(id, rule) for id, rule in self.rules.items()}
        wanted = {i: None for id in self.rules if faults[id] for i in marked[id]}
        sound = Outcome("green")
        if wanted:
            sound = forked(lambda: ran(list(wanted), all_of_them=True), 900)
        self.functions = functions()
        gc.freeze()  # what children share with this process stays shared
        for id in self.rules:
            begun = time.monotonic()
            found = self.asked(id, faults[id], marked[id], sound)
            found.seconds = time.monotonic() - begun
            self.tell(found)
        return True

    def asked(
        self, id: str, faults: Sequence[Sequence[Fault]], items: list[pytest.Item], sound: Outcome
    ) -> ClauseTrial:
        """Try the faults on the tests of a clause, until one is red. Those of the next level only where Python has
        stopped every one of this level: there was nothing that the tests could have looked at."""
        out = ClauseTrial(id, [i.nodeid for i in items])
        items = [i for i in items if i.nodeid not in sound.skipped]
        broken = [i.nodeid for i in items if i.nodeid in sound.failed or i.nodeid not in sound.taken_s]
        if not items or broken or not faults:
            out.problem = (
                "no function states it of which there is a fault"
                if not faults
                else f"red without a fault: {', '.join(broken)} {sound.said}"
                if broken
                else "no test that runs is marked with it"
            )
            return out
        items.sort(key=lambda i: sound.taken_s[i.nodeid])
        limit_s = LIMIT_S + 3 * sum(sound.taken_s[i.nodeid] for i in items)
        begun = time.monotonic()
        for level in faults:
            hows: set[str] = set()
            for fault in level:
                outcome = forked(partial(self.under, fault, items), limit_s)
                hows.add(outcome.how)
                if outcome.how == "red":
                    out.red = out.red or f"{fault.what}: {outcome.said}"
                    if not self.every:
                        return out
                out.tried.append(f"{outcome.how}: {fault.what} {outcome.said}".strip())
                if time.monotonic() - begun > MOST_S:
                    return out
            if hows & {"green", "red"}:
                break
        return out

    def under(self, fault: Fault, items: Sequence[pytest.Item]) -> Outcome:
        rewrite = fault.rewrite(self.functions)
        if rewrite is None:
            return Outcome("no function")
        with rewrite:
            return ran(items)


def levels(id: str, rule: Rule) -> list[list[Fault]]:
    """The faults of what states a clause: first those of its preconditions, and of the functions of each layer that say
    it in their docstrings or state nothing else, or state the fewest; then those of the next, and so on."""
    by_layer: list[list[list[Sequence[Fault]]]] = []
    for group in rule.functions:
        by_width: dict[int, list[Sequence[Fault]]] = defaultdict(list)
        for module, name in group:
            if faults := with_faults(module, name):
                by_width[width(id, module, name)] += faults
        by_layer.append([by_width[w] for w in sorted(by_width)])
    by_level = [[f for layer in level if layer for f in layer] for level in zip_longest(*by_layer)]
    if rule.preconditions:
        first, *others = by_level or [[]]
        by_level = [[*([p] for p in rule.preconditions), *first], *others]
    return [[*in_turn(level)] for level in by_level]


def with_faults(module: ModuleType, name: str, deep: int = 2) -> list[list[FunctionFault]]:
    """The faults of a function; of those that it calls, if its own text has none."""
    if faults := faults_of(module, name):
        return [faults]
    below = called_by(module, name) if deep else []
    return [faults for m, n in below for faults in with_faults(m, n, deep - 1)]


def width(id: str, module: ModuleType, name: str) -> int:
    """0 for a function that says the clause alone, or in a paragraph; else how many clauses it states."""
    where = f"{module.__name__}:{name}"
    named = {u.clause for u in clauses.all_uses() if u.where == where and u.form in LAYERS}
    return 0 if named == {id} or id in clauses.paragraphs(documented(module, name)) else len(named)


def in_turn(functions: Sequence[Sequence[Fault]]) -> Iterator[Fault]:
    """One fault of each function, then the next of each."""
    return (f for f in chain.from_iterable(zip_longest(*functions)) if f is not None)


def ask(
    rules: Mapping[str, Rule],
    files: Sequence[str],
    tell: Callable[[ClauseTrial], None],
    options: Sequence[str] = (),
    *,
    every: bool = False,
) -> None:
    """Ask the tests of these files about each clause; `rules` says what states it. `every`: try all
    faults, and not only until one is red."""
    with tempfile.TemporaryDirectory(prefix="kafkaspec-") as folder:
        quiet = ["-s", "-o", "addopts=-p pytester", "-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:xdist"]
        all_of_them = ["-m", "deep or not deep", f"--basetemp={folder}/pytest"]
        code = pytest.main([*quiet, *all_of_them, *options, *files], plugins=[Questioner(rules, tell, every)])
        if code != 0:
            raise SystemExit(f"pytest ended with {code}")


def rules_of(subsystem: str) -> dict[str, Rule]:
    """What states each clause of a subsystem."""
    traceability.load()
    s = find(subsystem)
    machines = [m for m in (s.spec.machine, getattr(s.spec, "audit", None)) if m is not None]
    out: dict[str, Rule] = {}
    for c in s.clauses:
        stated = traceability.uses(c.id)
        functions = [[_place(u.where) for u in stated if u.form == layer] for layer in LAYERS]
        out[c.id] = Rule(functions, [p for m in machines for p in preconditions(m, c.id)])
    return out


def _place(where: str) -> tuple[ModuleType, str]:
    module, _, name = where.partition(":")
    return sys.modules[module], name


def main(subsystem: str, *words: str) -> None:
    ids = {w for w in words if w != "--every"}
    rules = {id: of for id, of in rules_of(subsystem).items() if not ids or id in ids}
    used = {u for id in rules for u in traceability.uses(id) if u.form == "test"}
    files = sorted({u.where.partition(":")[0] for u in used})
    os.chdir(Path(__file__).parent.parent)
    with os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1) as out:
        ask(rules, files, lambda found: print(json.dumps(asdict(found)), file=out), every="--every" in words)


if __name__ == "__main__":
    main(*sys.argv[1:])
