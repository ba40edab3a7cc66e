"""`kafkaspec simulate`: a scenario by name or from a file, run from many seeds or made again from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kafkaspec.cli import names
from kafkaspec.cli.output import check_writable, not_kept, progress, tell
from kafkaspec.errors import UserError, unknown
from kafkaspec.workers import START, Say, cores, each

if TYPE_CHECKING:
    from kafkaspec.simulate import Scenario
    from kafkaspec.simulate.choices import Schedule
    from kafkaspec.simulate.outcome import Outcome

DEFAULT: Final = "replication"
"""the scenario, if none is named"""
MANY: Final = 10**12
"""seeds, where time is the limit"""


def scenarios() -> dict[str, Any]:
    """The subsystems that have one, by name."""
    from kafkaspec.contract.subsystem import subsystems

    return {n: s for n, s in subsystems().items() if (s.folder / "impl" / s.area / f"{n}_simulation.py").is_file()}


def find(text: str) -> Scenario:
    """The scenario of a subsystem, another one of its own by name (replication:ELIGIBLE), or one of a file
    (FILE.py:NAME; without a name SCENARIO). Raises UserError."""
    from kafkaspec.simulate import Scenario

    known = scenarios()
    if text in known:
        found: Scenario = known[text].layer("impl", "simulation").SCENARIO
        return found
    where, _, name = text.partition(":")
    if where in known:
        there = {n: s for n, s in vars(known[where].layer("impl", "simulation")).items() if isinstance(s, Scenario)}
        if name not in there:
            raise unknown(f"scenario of {where}", name, there)
        return there[name]
    if not where.endswith(".py"):
        raise unknown("scenario", text, known)
    module = names.module_of_file(Path(where))
    there = {n: s for n, s in vars(module).items() if isinstance(s, Scenario)}
    if not there:
        raise UserError(f"{where}: no scenario in it (a kafkaspec.simulate.Scenario)")
    if (name or "SCENARIO") not in there:
        if name or len(there) > 1:
            raise unknown(f"scenario of {where}", name or "SCENARIO", there)
        name = next(iter(there))
    return replace(there[name or "SCENARIO"], name=text)


@dataclass(frozen=True)
class Seeds:
    """What a process of its own is given to do: a stretch of seeds."""

    scenario: str
    schedule: Schedule

    def __call__(self, seeds: Sequence[int], _: Say) -> Sequence[Outcome]:
        from kafkaspec.simulate.runs import outcome

        scenario = find(self.scenario)
        return [outcome(scenario, seed, self.schedule) for seed in seeds]


def _ended(seeds: Sequence[int], how: str) -> Sequence[Outcome]:
    raise UserError(f"a process {how}, at seeds {seeds[0]} to {seeds[-1]}")


def _fan(
    text: str, schedule: Schedule, threads: int
) -> Callable[[Iterable[Sequence[int]]], Iterator[Sequence[Outcome]]]:
    def fan(stretches: Iterable[Sequence[int]]) -> Iterator[Sequence[Outcome]]:
        return each(Seeds(text, schedule), stretches, threads, _ended, start=START)

    return fan


def simulate(
    text: str | None,
    *,
    seed: int | None,
    seeds: str | None,
    time_s: float | None,
    schedule: str,
    resume: Path | None,
    out: Path,
    threads: int | None,
    spark: str | None,
    json: bool,
) -> int:
    """Run seeds. 1 if one breaks a rule."""
    from kafkaspec.simulate import choices
    from kafkaspec.simulate import simulate as run

    if seed is not None and seeds is not None:
        raise UserError("--seed and --seeds: one of them says which")
    text = text or DEFAULT
    wanted = choices.schedule(schedule)
    scenario = find(text)
    default = f"0:{MANY}" if time_s is not None else "0:200"
    which = range(seed, seed + 1) if seed is not None else names.seeds(seeds or default)
    check_writable(out / "x")
    given: dict[str, Any] = {"seeds": which, "schedule": wanted, "out": out, "time_s": time_s, "resume": resume}
    jobs = min(threads or cores(), len(which))
    with progress(f"simulate {text}") as bar:
        if spark is not None:
            from kafkaspec.fleet.session import session
            from kafkaspec.fleet.simulate import on

            if text not in scenarios():
                raise UserError(f"--spark: only the scenarios of subsystems are known there ({', '.join(scenarios())})")
            with session(spark) as context:
                fan = on(context, text, wanted)
                result = run(scenario, **given, fan=fan, progress=bar)
        else:
            here = _fan(text, wanted, jobs) if jobs > 1 else None
            result = run(scenario, **given, fan=here, progress=bar)
    tell([result], json=json)
    not_kept(*result.not_kept)
    return int(bool(result.failures))


def replay(text: str | None, file: Path, *, full: bool, json: bool) -> int:
    """Make a run again. 1 if it breaks a rule."""
    from kafkaspec.simulate import history
    from kafkaspec.simulate import replay as run

    names.check_readable(file)
    result = run(find(text or history.read(file).simulation), file, full=full)
    tell([result], json=json)
    return int(bool(result.rule))
