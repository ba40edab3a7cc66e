"""Many seeds of a scenario: what was broken, each rule's first failure made small and kept, and what has happened in
the runs at all.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice, takewhile
from pathlib import Path
from typing import Final

from kafkaspec.errors import INTERRUPTED, UserError, unwritten
from kafkaspec.simulate import history
from kafkaspec.simulate.choices import Choices, RandomChoices, Schedule, checked, of_seed
from kafkaspec.simulate.outcome import Outcome
from kafkaspec.simulate.scenario import Scenario
from kafkaspec.simulate.shrink import shrunk
from kafkaspec.simulate.store import Store
from kafkaspec.simulate.world import Run, run

Progress = Callable[[int, int | None, str], None]
"""Called now and then with seeds done, seeds in all, and a word on what was found."""
CHUNK: Final = 5
"""seeds that a process is given at a time"""


Fan = Callable[[Iterable[Sequence[int]]], Iterator[Sequence[Outcome]]]
"""how stretches of seeds are run: here, or elsewhere"""


@dataclass(frozen=True)
class SimulationFailure:
    """One rule that was broken, by the first seed that did."""

    rule: str
    """the id of a clause, or a few words"""
    what: str
    """in which way, in the small run"""
    seeds: int
    """how many seeds break it"""
    seed: int
    """the first of them"""
    schedule: str
    """that of the seed"""
    steps: int
    """of the small run"""
    choices: Mapping[str, object]
    """of the small run: all that was not as usual"""
    history: str
    """of the small run, for people"""
    file: Path | None
    """from which the small run is made again; its history lies beside it. Null if it could not be written"""


@dataclass(frozen=True)
class SimulationResult:
    """What the seeds came to."""

    scenario: str
    title: str
    seeds: range
    """those that were run: fewer than were wanted, where time was up"""
    schedule: str
    steps: int
    """of all runs"""
    ms: int
    """virtual time of all runs"""
    seconds: float
    """what it took"""
    failing: int
    """seeds that break a rule"""
    failures: tuple[SimulationFailure, ...]
    counts: Mapping[str, int]
    """what has happened, in all runs"""
    out: Path
    kept: int = 0
    """seeds that were run before, by a run that was interrupted"""
    not_kept: tuple[str, ...] = ()
    """files that could not be written, and why, a line each"""

    @property
    def never(self) -> tuple[str, ...]:
        """What a rule is about and has not happened: of that the runs say nothing."""
        return tuple(name for name, n in self.counts.items() if n == 0)


@dataclass(frozen=True)
class Replay:
    """One run that was made again."""

    scenario: str
    title: str
    seed: int
    """from which its choices once came"""
    steps: int
    ms: int
    rule: str
    """"" if none was broken"""
    what: str
    expected: str
    """the rule that it broke when it was kept"""
    choices: Mapping[str, object]
    history: str
    file: Path


def outcome(scenario: Scenario, seed: int, schedule: Schedule) -> Outcome:
    """One seed."""
    return _outcome(seed, run(scenario, RandomChoices(scenario, seed, schedule)))


def _outcome(seed: int, r: Run) -> Outcome:
    return Outcome(seed, len(r.steps), r.ms, r.violation, dict(r.counts))


def simulate(
    scenario: Scenario,
    *,
    seeds: range,
    schedule: Schedule = "mixed",
    out: Path,
    time_s: float | None = None,
    resume: Path | None = None,
    fan: Fan | None = None,
    progress: Progress | None = None,
) -> SimulationResult:
    """Run every seed, or as many as there is time for, but some in any case. The same seeds have the same outcomes,
    whoever runs them. With `resume` they are kept in that file, and those that are in it are not run again. Raises
    UserError when it is interrupted, and for a `resume` that cannot be read. What cannot be written is told."""
    began = time.monotonic()
    store = None if resume is None else Store(resume, scenario, schedule)
    every = [] if store is None else [o for o in store.kept.values() if o.seed in seeds]
    there = {o.seed for o in every}
    broken = Counter(o.violation.rule for o in every if o.violation is not None)

    def chunks() -> Iterator[Sequence[int]]:
        missing = (seed for seed in seeds if seed not in there)
        while some := [*islice(missing, CHUNK)]:
            yield some
            if time_s is not None and time.monotonic() - began > time_s:
                return

    def here(stretches: Iterable[Sequence[int]]) -> Iterator[Sequence[Outcome]]:
        for stretch in stretches:
            yield [outcome(scenario, seed, schedule) for seed in stretch]

    not_kept: list[str] = []
    try:
        for found in (fan or here)(chunks()):
            if store is not None and not not_kept:
                try:
                    store.append(found)
                except UserError as e:
                    not_kept.append(str(e))
            every += found
            broken.update(o.violation.rule for o in found if o.violation is not None)
            if progress is not None:
                progress(len(every), None if time_s is not None else len(seeds), _said(broken))
    except KeyboardInterrupt:
        raise UserError(_interrupted(scenario, every, schedule, resume), exit_code=INTERRUPTED) from None
    every.sort()
    every = [o for o, _ in takewhile(lambda both: both[0].seed == both[1], zip(every, count(seeds.start)))]
    broken = Counter(o.violation.rule for o in every if o.violation is not None)
    counted: Counter[str] = Counter()
    for o in every:
        counted.update(o.counts)
    firsts = {o.violation.rule: o for o in reversed(every) if o.violation is not None}
    failures = [
        _failure(scenario, rule, first, schedule, broken[rule], out, progress, not_kept)
        for rule, first in sorted(firsts.items(), key=lambda f: f[1].seed)
    ]
    return SimulationResult(
        scenario.name,
        scenario.title,
        range(seeds.start, seeds.start + len(every)),
        schedule,
        sum(o.steps for o in every),
        sum(o.ms for o in every),
        time.monotonic() - began,
        broken.total(),
        tuple(failures),
        dict(counted),
        out,
        sum(o.seed in there for o in every),
        tuple(not_kept),
    )


def _said(broken: Counter[str]) -> str:
    return f"{broken.total():,} failing" if broken else ""


def _interrupted(scenario: Scenario, every: Sequence[Outcome], schedule: Schedule, resume: Path | None) -> str:
    failing = sorted(o.seed for o in every if o.violation is not None)
    kept = f"the same command goes on from {resume}" if resume is not None else "--resume FILE would keep them"
    said = f"interrupted after {len(every):,} seeds ({kept})"
    if not failing:
        return f"{said}, none of which breaks a rule"
    again = f"kafkaspec simulate {scenario.name} --seed {failing[0]} --schedule {of_seed(schedule, failing[0])}"
    return f"{said}, {len(failing):,} of which break a rule; the first again: {again}"


def again_of(scenario: str, seed: int, schedule: str, file: Path | None) -> str:
    """The command that makes a failure again."""
    how = f"--seed {seed} --schedule {schedule}" if file is None else f"--replay {file}"
    return f"kafkaspec simulate {scenario} {how}"


def _failure(
    scenario: Scenario,
    rule: str,
    first: Outcome,
    schedule: Schedule,
    seeds: int,
    out: Path,
    progress: Progress | None,
    not_kept: list[str],
) -> SimulationFailure:
    """The first failure of a rule, made small and kept; where it cannot be, why is added to `not_kept`. Raises
    UserError if the seed is another run the second time."""
    seed, own = first.seed, of_seed(schedule, first.seed)

    def attempt(n: int) -> None:
        if progress is not None:
            progress(n, None, f"runs to make {rule} small")

    again = run(scenario, RandomChoices(scenario, seed, schedule))
    if _outcome(seed, again) != first:
        raise UserError(
            f"{scenario.name}: seed {seed} ({own}) breaks {rule}, and is another run the second time: a node, a disk "
            "or what watches reads a clock, draws a number, or keeps something from run to run"
        )
    small = shrunk(again, attempt)
    assert small.violation is not None
    name = scenario.name.replace(":", "-").replace("/", "-").lstrip("-.")  # no option for a shell, nor hidden
    file = out / f"{name}-{seed}-{own}.json"
    kept: Path | None = file
    text = history.page(small, again_of(scenario.name, seed, own, file))
    try:
        out.mkdir(parents=True, exist_ok=True)
        file.write_bytes(history.encoded(small, seed, own))
        file.with_suffix(".txt").write_text(text, "utf-8")
    except OSError as e:
        not_kept.append(str(unwritten(file, e)))
        kept, text = None, history.page(small, again_of(scenario.name, seed, own, None))
    what = small.violation.what
    return SimulationFailure(rule, what, seeds, seed, own, len(small.steps), small.choices, text, kept)


def replay(scenario: Scenario, file: Path, *, full: bool = False) -> Replay:
    """The run of a file, made again, perhaps of another scenario than it was of. Raises UserError for a file that is
    none, and for choices that the scenario does not have."""
    kept = history.read(file)
    r: Run = run(scenario, Choices(scenario, checked(scenario, dict(kept.choices), str(file))))
    rule, what = r.violation or ("", "")
    text = history.page(r, f"kafkaspec simulate {scenario.name} --replay {file}", full)
    return Replay(
        scenario.name, scenario.title, kept.seed, len(r.steps), r.ms, rule, what, kept.rule, r.choices, text, file
    )
