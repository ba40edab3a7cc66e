"""A run as people read it, and as a file from which it is made again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from kafkaspec.contract.subsystem import stating
from kafkaspec.errors import UserError, unknown
from kafkaspec.simulate.choices import SCHEDULES
from kafkaspec.simulate.scenario import Ask, Boot, Crash, Fault, Message, Send, SetTimer, Step, Timer
from kafkaspec.simulate.world import Run

VERSION: Final = 1
"""of the file"""
MOST_BYTES: Final = 64 << 20
"""of a file of a run"""
AROUND: Final = "           "


def lines(run: Run, full: bool = False) -> Iterator[str]:
    """The steps of a run, numbered, with what each node sent; unless `full`, those that are routine are counted."""
    routine = 0
    for step in run.steps:
        if not full and step is not run.steps[-1] and run.scenario.is_routine(step):
            routine += 1
            continue
        if routine:
            yield _counted(routine)
            routine = 0
        yield f"{step.number:>5} {step.at_ms:>5} ms  {told(step)}"
        sent: dict[str, list[str]] = {}
        for effect in step.effects:
            if type(effect) is Send:
                sent.setdefault(str(effect.body), []).append(effect.target)
        for body, targets in sent.items():
            yield f"{AROUND}        to {', '.join(targets)}: {body}"
        for effect in step.effects:
            if full and type(effect) is SetTimer:
                yield f"{AROUND}        timer {effect.name} in {effect.after_ms} ms"
    if routine:
        yield _counted(routine)


def _counted(routine: int) -> str:
    return f"{AROUND}... {routine} step{'s' * (routine != 1)} of routine"


def told(step: Step) -> str:
    """What happened."""
    match step.event:
        case Boot(life):
            return f"{step.node} starts{'' if life == 1 else f', for time {life}'}"
        case Message(source, body):
            return f"{step.node} gets from {source}: {body}"
        case Timer(name):
            return f"{step.node}: timer {name}"
        case Ask(what):
            return f"{step.node} is asked: {what}"
        case Crash(lost):
            return f"{step.node} CRASHES: {lost}"
        case Fault(text):
            return f"{step.node + ' ' if step.node else ''}{text}"


def sentence(rule: str) -> str:
    """The sentence of a clause; "" of a rule that is none."""
    of = stating(rule)
    return "" if of is None else next((c.sentence for c in of.clauses if c.id == rule), "")


def verdict(run: Run) -> list[str]:
    """What came of it: nothing, or which rule was broken at which step, and how."""
    if run.violation is None:
        return [f"No rule was broken in {len(run.steps):,} steps, {run.ms:,} ms."]
    rule, what = run.violation
    said = sentence(rule)
    return [f"Broken at step {len(run.steps)}, {run.ms:,} ms: {rule}{f': {said}' if said else ''}", f"  {what}"]


def page(run: Run, again: str, full: bool = False) -> str:
    """The history of a run as a text: what was wrong, what was chosen, what happened, and how to make it again."""
    s, told_so = run.scenario, verdict(run)
    chosen = [f"  {name}: {_shown(value)}" for name, value in run.choices.items()] or ["  nothing"]
    out = [f"{s.name}: {s.title}", *told_so, "", "What was not as usual:", *chosen]
    end = ["", *told_so] if run.violation is not None else []
    return "\n".join([*out, "", "What happened:", *lines(run, full), *end, "", f"To see it again: {again}", ""])


def _shown(value: Any) -> str:
    match value:
        case []:
            return "lost"
        case [int(ms)]:
            return f"{ms} ms"
        case [int(a), int(b)]:
            return f"twice, after {a} and {b} ms"
        case [int(at), "ask", str(node), what]:
            return f"at {at} ms {node} is asked: {what}"
        case [int(at), "crash", str(node), int(ms), int(writes), int(luck)]:
            left = ("its disk stays", "what was not flushed is lost")[luck] if luck < 2 else f"lots: {luck}"
            when = f" before its write number {writes} from then" if writes else ""
            return f"at {at} ms {node} crashes{when}, for {ms} ms; {left}"
        case [int(at), "pause", str(node), int(ms)]:
            return f"at {at} ms {node} stands still for {ms} ms"
        case [int(at), "partition", list(side), int(ms)]:
            return f"at {at} ms {', '.join(side)} and the others are apart for {ms} ms"
        case [int(at), "cut", str(a), str(b), int(ms)]:
            return f"at {at} ms nothing gets from {a} to {b} for {ms} ms"
    return str(value)


# ---- the file --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class RunFile:
    """What a file has of a run."""

    simulation: str
    seed: int
    schedule: str
    rule: str
    choices: Mapping[str, Any]


def encoded(run: Run, seed: int, schedule: str) -> bytes:
    """The file of a run that failed."""
    rule = "" if run.violation is None else run.violation.rule
    about = {"format": VERSION, "simulation": run.scenario.name, "seed": seed, "schedule": schedule, "rule": rule}
    return orjson.dumps({**about, "choices": run.choices}, option=orjson.OPT_INDENT_2) + b"\n"


def read(path: Path) -> RunFile:
    """Raises UserError for what is no such file."""
    try:
        with path.open("rb") as f:
            data = f.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UserError(f"{path}: more than {MOST_BYTES:,} bytes: is no run of a simulation")
        found = orjson.loads(data)
    except OSError as e:
        raise UserError(f"{path}: cannot read: {(e.strerror or str(e)).lower()}") from None
    except orjson.JSONDecodeError as e:
        raise UserError(f"{path}: is not JSON: {e}") from None
    if not isinstance(found, dict) or found.get("format") != VERSION:
        raise UserError(f"{path}: is no run of a simulation: no format {VERSION}")
    for name, kind in (("simulation", str), ("seed", int), ("schedule", str), ("rule", str), ("choices", dict)):
        if type(found.get(name)) is not kind:
            raise UserError(f"{path}: is no run of a simulation: {name}: {kind.__name__} is wanted")
    if found["seed"] < 0:
        raise UserError(f"{path}: is no run of a simulation: seed: {found['seed']} is below 0")
    if found["schedule"] not in SCHEDULES:
        raise UserError(f"{path}: is no run of a simulation: {unknown('schedule', found['schedule'], SCHEDULES)}")
    return RunFile(found["simulation"], found["seed"], found["schedule"], found["rule"], found["choices"])
