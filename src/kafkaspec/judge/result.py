"""What a judged campaign is, and what it comes to: the job, the rejections, the tally, the verdict."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from kafkaspec.contract.history import History
from kafkaspec.judge.generate import STEPS, Generator
from kafkaspec.judge.suspects import Blame, Fault
from kafkaspec.judge.target import TIMEOUT_S, TargetTrouble
from kafkaspec.judge.verdict import Verdict, met

MAX_KINDS: Final = 50
"""After this many kinds of rejection the subsystem is judged no further."""

MIN_COVERAGE: Final = 75.0
"""Percent of the conditions' sides that a target must at least have been asked about, to be accepted."""

MIN_CALLS: Final = 100
"""Calls for each operation that is offered, on average, that a target must at least have been asked, to be accepted. By
then the judge rejects 82 % of the written mutants, by 20 calls for each 67 %, by 200 hardly more than by 100
(docs/measured/judge.json)."""

By = Literal["eager", "deviation", "tour", "draw", "relabelled", "hypothesis", "replay"]
"""Where a history comes from."""
Kind = tuple[str, str, str]
"""Clause, operation, shape of the difference: rejections alike in all three are one."""


@dataclass(frozen=True)
class Job:
    """What a campaign is a function of, and how the target is reached."""

    subsystem: str
    command: str
    seed: int = 0
    strict: bool = False
    generator: Generator = "guided"
    timeout_s: float = TIMEOUT_S
    steps: int = STEPS
    """calls of a history"""
    min_coverage: float = MIN_COVERAGE
    """percent"""
    min_calls: int = MIN_CALLS
    """for each operation that is offered"""
    fail_fast: bool = False
    """end with the first rejection"""


@dataclass(frozen=True)
class Side:
    """One side of a condition in a rule of the spec, and whether a call of the campaign took it."""

    where: str
    """file and line"""
    condition: str
    side: str
    clauses: tuple[str, ...]
    taken: bool


@dataclass(frozen=True)
class Rejection:
    """One kind of answer that no behaviour of the spec explains."""

    clause: str
    """the rule that is broken, most likely"""
    operation: str
    shape: str
    """what differs, without values"""
    history: History
    """calls and answers, made small; `why` says what is wrong"""
    verdict: Verdict
    """of that history, as `kafkaspec check` gives it"""
    found: int
    """the number of the history in which it came up first"""
    calls: int
    """calls that had been made by then"""
    by: By
    count: int = 1
    """histories that were rejected so"""
    small: bool = False
    """whether it was tried with less"""
    blame: Blame | None = None
    """the fault of the spec that explains it best"""
    faults: frozenset[Fault] = field(default=frozenset(), metadata={"json": None})
    """all faults of the spec that explain it and that nothing is against"""
    fickle: bool = False
    """whether it was tried again, and nothing was wrong"""

    @property
    def kind(self) -> Kind:
        """As it is told; see `distinct`."""
        return self.clause, self.operation, self.shape

    @property
    def breaks(self) -> str:
        """The rules that may be broken, in words."""
        either = f", or {', '.join(self.verdict.others)}" if self.verdict.others else ""
        return f"breaks {self.clause}{either}" if self.clause else ""


def distinct(rejections: Iterable[Rejection]) -> list[Rejection]:
    """Those of different kinds, each with how often it was found. What the fault of an earlier one explains is of its
    kind, though it was seen through another operation."""
    out: list[Rejection] = []
    for r in rejections:
        n = next((n for n, known in enumerate(out) if _alike(known, r)), None)
        if n is None:
            out.append(r)
        else:
            out[n] = replace(out[n], count=out[n].count + r.count)
    return out


def _alike(known: Rejection, r: Rejection) -> bool:
    if known.blame is not None and known.blame.exact and r.faults:
        return known.blame.fault in r.faults
    return known.kind == r.kind


@dataclass
class Tally:
    """What some histories came to."""

    histories: int = 0
    calls: int = 0
    observations: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    clauses: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    """by "operation clause" """
    sides: set[int] = field(default_factory=set, metadata={"json": None})
    """those of the rules' sites that were taken"""
    deviations: Counter[str] = field(default_factory=Counter)
    uncompared: Counter[str] = field(default_factory=Counter)
    """of the calls that known deviations explain, those that say nothing: the target's state had gone another way than
    the spec's before"""
    model_states: dict[str, set[str]] = field(default_factory=dict, metadata={"json": None})
    """model -> its states that were reached, as digests; not in JSON"""
    toured: Counter[str] = field(default_factory=Counter)
    """model -> histories of its tour"""
    rejections: dict[Kind, Rejection] = field(
        default_factory=dict, metadata={"json": lambda found: distinct(found.values())}
    )
    """by the kind of the history as it was found; a list in JSON"""
    trouble: TargetTrouble | None = field(default=None, metadata={"json": TargetTrouble.told})
    """what the target did wrong on the pipe: an object with kind, what and stderr in JSON"""
    last: History | None = None
    """what was asked and answered in the history in which the trouble came"""
    seconds: float = 0.0
    upto: int = field(default=0, metadata={"json": None})
    """a campaign of this number of histories asks all that was asked here"""
    over: bool = field(default=False, metadata={"json": None})
    """whether the time was over before all was asked"""
    lines: list[bytes] = field(default_factory=list, metadata={"json": None})
    """what was accepted, as lines of traces, if they are kept"""

    def add(self, other: Tally) -> None:
        """Take in what further histories came to."""
        before = self.calls
        self.histories += other.histories
        self.calls += other.calls
        self.observations += other.observations
        self.operations += other.operations
        self.clauses += other.clauses
        self.refusals += other.refusals
        self.sides |= other.sides
        self.deviations += other.deviations
        self.uncompared += other.uncompared
        self.toured += other.toured
        self.seconds += other.seconds
        self.upto = max(self.upto, other.upto)
        for model, states in other.model_states.items():
            self.model_states.setdefault(model, set()).update(states)
        for kind, r in other.rejections.items():
            known = self.rejections.get(kind)
            self.rejections[kind] = (
                replace(r, calls=before + r.calls) if known is None else replace(known, count=known.count + r.count)
            )
        if self.trouble is None:
            self.trouble, self.last = other.trouble, other.last

    @property
    def known(self) -> str:
        """The known deviations that were met, and how often, in words."""
        return ", ".join(f"{id} {met(n, self.uncompared[id])}" for id, n in sorted(self.deviations.items()))

    @property
    def large(self) -> list[Rejection]:
        """Those rejections that are told as they were found."""
        return [r for r in self.rejections.values() if not r.small]

    def small(self, rejections: Iterable[Rejection]) -> None:
        """Tell those, made small, in place of the large ones, which they are in order."""
        large = [kind for kind, r in self.rejections.items() if not r.small]
        for kind, r in zip(large, rejections, strict=True):
            self.rejections[kind] = r

    def ended(self, job: Job) -> bool:
        """Whether the subsystem is judged no further."""
        return self.trouble is not None or len(self.rejections) >= (1 if job.fail_fast else MAX_KINDS)


@dataclass(frozen=True)
class SubsystemVerdict:
    """The verdict on one subsystem of a target."""

    job: Job
    title: str
    target: str
    """the target's name and version"""
    verdict: Literal["accepted", "rejected", "could not judge"]
    why: str
    """of "could not judge": what kept us from it"""
    tally: Tally
    clauses: tuple[str, ...]
    """those that the operations state, exercised or not"""
    both_ways: tuple[str, ...] = field(init=False)
    """those of them whose conditions were all decided both ways, and at their boundaries"""
    unconditional: tuple[str, ...] = field(init=False)
    """those of them that have no condition: all that can be said is whether they were exercised"""
    not_offered: tuple[str, ...]
    """operations that the target leaves out"""
    in_part: tuple[str, ...]
    """operations of which it offers some values alone, with what it offers"""
    not_called: tuple[str, ...]
    """operations that are offered, and never came up"""
    sides: tuple[Side, ...]
    """of the conditions in the rules of the operations that are offered"""
    models: Mapping[str, tuple[int, int]]
    """model -> states reached, and all"""
    tours: Mapping[str, tuple[int, int]]
    """model -> histories of its tour that were judged, and all"""
    seconds: float
    examples: int | None = None
    """how many histories were wanted; None where time decided, or the histories were given"""
    interrupted: bool = False
    """by Ctrl-C: what is told was judged until then"""
    replayed: str = ""
    """the file whose histories were asked, if they were given"""
    kept: tuple[str, ...] = ()
    """the files of the rejected histories, where they are kept, in their order; "" of one that could not be written"""
    kept_last: str = ""
    """the file of the history in which the target got into trouble"""

    def __post_init__(self) -> None:
        of = {c: self.sides_of(c) for c in self.clauses}
        object.__setattr__(self, "both_ways", tuple(c for c, (taken, all_) in of.items() if taken == all_ > 0))
        object.__setattr__(self, "unconditional", tuple(c for c, (_, all_) in of.items() if not all_))

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """Those that are different once they are small, in the order in which they were found."""
        return tuple(distinct(self.tally.rejections.values()))

    def until_now(self, examples: int | None) -> SubsystemVerdict:
        """The same of a campaign that was interrupted: it is no verdict, if nothing was rejected."""
        if self.verdict != "rejected" and self.tally.trouble is None:
            return replace(self, examples=examples, interrupted=True, verdict="could not judge", why="interrupted")
        return replace(self, examples=examples, interrupted=True)

    def kept_in(self, n: int) -> str:
        """The file of the n-th rejected history; "" if it is not kept."""
        return self.kept[n] if n < len(self.kept) else ""

    @property
    def exit_code(self) -> int:
        """0 accepted, 1 rejected, 2 could not judge."""
        return {"accepted": 0, "rejected": 1, "could not judge": 2}[self.verdict]

    @property
    def coverage(self) -> float:
        """Percent of the conditions' sides that were taken; 100 where no rule has a condition."""
        return covered(self.sides)

    def sides_of(self, clause: str) -> tuple[int, int]:
        """How many sides of a clause's conditions were taken, of how many."""
        own = [side.taken for side in self.sides if clause in side.clauses]
        return sum(own), len(own)

    @property
    def never_exercised(self) -> tuple[str, ...]:
        """Clauses of the operations that no call exercised."""
        return tuple(c for c in self.clauses if c not in self.tally.clauses and not self.sides_of(c)[0])

    @property
    def partly_exercised(self) -> tuple[str, ...]:
        """Clauses of which some condition was never decided both ways, or not at its boundary."""
        decided = {*self.never_exercised, *self.both_ways, *self.unconditional}
        return tuple(c for c in self.clauses if c not in decided)

    @property
    def with_condition(self) -> tuple[int, int]:
        """How many clauses that have a condition were exercised both ways, of how many."""
        return len(self.both_ways), len(self.clauses) - len(self.unconditional)

    @property
    def without_condition(self) -> tuple[int, int]:
        """How many clauses that have no condition were exercised, of how many."""
        return len({*self.unconditional} - {*self.never_exercised}), len(self.unconditional)

    @property
    def again(self) -> str:
        """The command that judges so again; the first history, where time was over before one was judged."""
        if self.replayed:
            return self.replay(self.replayed)
        out = f"{self._command} --seed {self.job.seed} --examples {self.examples or self.tally.upto or 1}"
        out += "" if self.job.min_coverage == MIN_COVERAGE else f" --min-coverage {self.job.min_coverage:g}"
        return out + (" --uniform" if self.job.generator == "uniform" else "")

    def replay(self, file: str) -> str:
        """The command that asks the calls of a history again."""
        return f"{self._command} --replay {shlex.quote(file)}"

    @property
    def _command(self) -> str:
        strict = (" --strict" if self.job.strict else "") + (" --fail-fast" if self.job.fail_fast else "")
        return f"kafkaspec judge --target {shlex.quote(self.job.command)} {self.job.subsystem}{strict}"


def covered(sides: Collection[Side]) -> float:
    """Percent of the sides that were taken."""
    return 100.0 * sum(side.taken for side in sides) / len(sides) if sides else 100.0
