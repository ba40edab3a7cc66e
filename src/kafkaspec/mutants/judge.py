"""Mutants as targets: after how many calls does the judge reject each, or see it die or hang?

Every mutant runs in a process of its own behind a pipe, as a stranger's implementation does. The histories of a
campaign are a function of its seed and of what the spec says to them; so one campaign is written once, and shown to all
mutants of a subsystem, one history after the other, each until its first wrong answer. The sound implementation and the
sound spec run among them, and must be accepted to the end.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO, Final, NamedTuple

import orjson

from kafkaspec.contract.machine import Driver, Json, Machine, Outside, Refused
from kafkaspec.contract.subsystem import Subsystem
from kafkaspec.errors import UserError
from kafkaspec.judge.check import Check
from kafkaspec.judge.child import ChildProcess
from kafkaspec.judge.cover import watched
from kafkaspec.judge.generate import Generator
from kafkaspec.judge.judging import BLOCK, HYPOTHESIS_EVERY, PendingHistory, Session
from kafkaspec.judge.result import Job
from kafkaspec.judge.serve import serve
from kafkaspec.judge.target import TIMEOUT_S, Target, TargetTrouble
from kafkaspec.mutants.matrix import Detector, NotApplicable
from kafkaspec.mutants.mutant import Layer, Mutant

LIMIT: Final = 20_000
"""Calls after which a mutant has survived a campaign."""

Make = Callable[[], Any]


class Kill(NamedTuple):
    """How a target failed, and at which call of the campaign (the first is 1; 0: it did not even begin)."""

    calls: int
    how: str
    """"rejected", or the kind of its trouble"""
    operation: str = ""
    clause: str = ""

    def __str__(self) -> str:
        what = f"{self.clause} at {self.operation}" if self.operation else "at the start"
        return f"{self.how}, {what}, after {self.calls:,} calls"


@dataclass
class OfMachine:
    """A machine as an implementation: what a faulty spec would answer. Its choices are the first that it may make."""

    machine: Machine[Any]

    def __post_init__(self) -> None:
        self.reset({})

    def reset(self, arguments: Mapping[str, Any]) -> None:
        self.state = self.machine.initial(**arguments)

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        op = self.machine.find(name)
        chosen: list[dict[str, Any]] = [dict(arguments)]
        if op.chosen:
            candidates = self.machine.choices(op, self.state)
            chosen = [{**c, p: v} for p in op.chosen for c in chosen for v in candidates[p]]
        for arguments in chosen:
            step = self.machine.apply(self.state, name, arguments, contracts=False)
            if not isinstance(step, Outside):
                self.state = step.state
                return step.result
        raise ValueError(f"{name} is outside the contract here")

    def observe(self) -> Json:
        return self.machine.observe(self.state)


def as_driver(layer: Layer, thing: Any) -> Driver:
    """A mutant's faulty thing as something that answers calls."""
    driver: Driver = OfMachine(thing) if layer == "spec" else thing
    return driver


def target_of(subsystem: Subsystem, make: Make, layer: Layer, timeout_s: float = TIMEOUT_S) -> Target:
    """A target in a child of this process, which serves what `make` makes of that layer. Raises TargetTrouble."""

    def answer(source: BinaryIO, sink: BinaryIO) -> None:
        serve({subsystem.name: (subsystem.spec.machine, as_driver(layer, make()))}, source, sink, "a mutant", "0")

    return Target("a child of the judge", timeout_s, ChildProcess(answer))


class _Check(Check):
    """A check that only says where."""

    def nearest(self, *_: Any) -> str:
        return ""


class _Writer(Session):
    """Writes down what a campaign asks. Its own target is asked only where the system chooses."""

    choosing = False

    def histories(self) -> Iterator[PendingHistory]:
        """The histories of the campaign's blocks, without those that Hypothesis draws at the end of each."""
        drawn = BLOCK // HYPOTHESIS_EVERY if self.job.generator == "guided" else 0
        for number in itertools.count():
            for k, (by, start) in enumerate(self._starts(number, BLOCK - drawn)):
                asked = self._asked(number * BLOCK + k, by, start, self._observe_every(number, k, by))
                if asked is None:
                    raise UserError(f"{self.job.subsystem}: the sound impl is rejected: nothing can be measured")
                yield asked

    def _send(self, asked: PendingHistory) -> None:
        if self.choosing:
            super()._send(asked)

    def _resolved(self, *of: Any) -> Any | None:
        self.choosing = True
        try:
            return super()._resolved(*of)
        finally:
            self.choosing = False

    def _looked_up(self, state: Any, wanted: bool) -> None:
        pass


class _Reader(Session):
    """Shows histories to a target, and finds its first wrong answer."""

    def __init__(self, job: Job, target: Target) -> None:
        super().__init__(job, target)
        self.shown: deque[PendingHistory] = deque()

    def _check(self) -> Check:
        return _Check(self.machine, self.job.subsystem, self.job.strict)

    def show(self, written: PendingHistory) -> None:
        """Send one history. If the target gets into trouble meanwhile, `wrong` tells it."""
        self.shown.append(replace(written, sent=0, answered=0, answers=[]))
        with contextlib.suppress(TargetTrouble):
            self._send(self.shown[-1])

    def wrong(self, exact: Sequence[bytes | None]) -> Kill | None:
        """What is wrong with the answers to the first history that was shown and not judged, its `calls` counted from
        the history's beginning. `exact`: the answers that are right in every byte, for lines that have such."""
        asked = self.shown.popleft()
        trouble: TargetTrouble | None = None
        try:
            self._received(asked)
        except TargetTrouble as e:
            trouble = e
            asked.answers = self.target.left()[: len(asked.lines)]
        try:
            for n, line in enumerate(asked.answers):
                if line != exact[n] and not self._as_expected(line, n, *asked.expected[n]):
                    return self._kill(asked, n)
        except TargetTrouble as e:
            return self._at(asked, n, e.kind)
        return None if trouble is None else self._at(asked, len(asked.answers), trouble.kind)

    def one_by_one(self, written: PendingHistory) -> Kill | None:
        """The same of one history whose lines are sent singly: a target that ends takes answers with it that it has not
        sent."""
        asked = replace(written, sent=0, answered=0, answers=[])
        for n, line in enumerate(asked.lines):
            try:
                self.target.send([line], [asked.expected[n][1]])
                asked.answers += self.target.receive(1)
                if not self._as_expected(asked.answers[n], n, *asked.expected[n]):
                    return self._kill(asked, n)
            except TargetTrouble as e:
                return self._at(asked, n, e.kind)
        return None

    def _kill(self, asked: PendingHistory, line: int) -> Kill | None:
        if not any(op.chosen for op in self.operations):
            return self._at(asked, line, "rejected")
        found = self._checked(asked)  # it may have chosen otherwise than the sound one
        return None if found is None else self._at(asked, asked.where.index(found[1].step or 0), "rejected")

    def _at(self, asked: PendingHistory, line: int, how: str) -> Kill:
        call = asked.where[line]
        operation, ids, _ = asked.clauses[call - 1] if call else ("init", ("",), "")
        return Kill(call, how, operation, ids[0] if ids else "")


def exact(asked: PendingHistory) -> list[bytes | None]:
    """What each line is answered with, as our own `serve` writes it; None for refusals, which have several forms."""
    out: list[bytes | None] = []
    for n, (what, value) in enumerate(asked.expected):
        field = "state" if what == "state" else "result"
        out.append(None if isinstance(value, Refused) else orjson.dumps({"i": n, field: value}, default=float))
    return out


SOUND: Final = "sound "


def campaigned(
    subsystem: Subsystem,
    mutants: Sequence[Mutant],
    generator: Generator,
    seed: int,
    limit: int = LIMIT,
    *,
    sound: bool = False,
    timeout_s: float = TIMEOUT_S,
    tick: Callable[[], None] = lambda: None,
) -> dict[str, Kill | None]:
    """Run mutants of spec and impl, as targets, through one campaign of some calls; None for one that survives.

    `sound`: the sound spec and impl run along for as long as one mutant lives. Raises UserError if either is rejected,
    and for a mutant that cannot be made.
    """
    for m in mutants:
        if not m.generated:  # else it changes the code of the process in which it is made
            m.made()  # in a child of its own it would only be a target that does not begin
    machine: Machine[Any] = subsystem.spec.machine
    pair = subsystem.pairs()[0] if subsystem.pairs() else None
    makes: dict[str, tuple[Make, Layer]] = {m.name: (m.make, m.layer) for m in mutants}
    if sound:
        makes |= {SOUND + "spec": (lambda: machine, "spec")}
        makes |= {} if pair is None else {SOUND + pair.layer: (pair.driver, pair.layer)}
    job = Job(subsystem.name, "", seed, strict=True, generator=generator, timeout_s=timeout_s)
    out: dict[str, Kill | None] = dict.fromkeys(makes)
    with contextlib.ExitStack() as running:
        chooser = pair.driver if pair is not None else partial(OfMachine, machine)
        writer = _Writer(job, running.enter_context(target_of(subsystem, chooser, "impl", timeout_s)))
        readers: dict[str, _Reader] = {}
        for name, (make, layer) in makes.items():
            try:
                target = target_of(subsystem, make, layer, timeout_s)
            except TargetTrouble as e:
                out[name] = Kill(0, e.kind)
            else:
                running.callback(target.close)
                readers[name] = _Reader(job, target)
        writer.cover = running.enter_context(watched(machine))
        calls = 0
        histories = writer.histories()
        under_way: deque[PendingHistory] = deque()
        while not all(name.startswith(SOUND) for name in readers) and (calls < limit or under_way):
            if calls < limit:  # all answer the one history while the next is written
                under_way.append(next(histories))
                calls += len(under_way[-1].clauses)
                for reader in readers.values():
                    reader.show(under_way[-1])
            if len(under_way) > 1 or calls >= limit:
                asked = under_way.popleft()
                before = calls - sum(len(a.clauses) for a in (asked, *under_way))
                right = exact(asked)
                for name in list(readers):
                    kill = readers[name].wrong(right)
                    if kill is not None and kill.how != "rejected":
                        with target_of(subsystem, *makes[name], timeout_s) as another:
                            kill = _Reader(job, another).one_by_one(asked) or kill
                    if kill is not None:
                        out[name] = kill._replace(calls=before + kill.calls)
                        readers.pop(name).target.close()
                tick()
    for name, kill in out.items():
        if kill is not None and name.startswith(SOUND):
            what = f"{generator} histories, seed {seed}: {kill}"
            raise UserError(f"the judge rejects the {name} of {subsystem.name}: {what}", 1)
    return {n: k if k is None or k.calls <= limit else None for n, k in out.items() if not n.startswith(SOUND)}


def judge_detector(generator: Generator = "guided", seed: int = 0, limit: int = 2_000) -> Detector:
    """A campaign on a faulty spec or implementation behind a pipe."""

    def look(subsystem: Subsystem, layer: Layer, thing: Any) -> str:
        if layer == "audit" and subsystem.is_component:
            raise NotApplicable  # a component is asked nothing of the audit's
        mutant = Mutant("it", (), "", layer, lambda: thing)
        kill = campaigned(subsystem, [mutant], generator, seed, limit)["it"]
        return "" if kill is None else str(kill)

    return Detector("judge", frozenset({"spec", "impl", "audit"}), look)
