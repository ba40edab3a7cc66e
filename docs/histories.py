"""Histories for people to read, as text, in tests/histories: the minimal history of each known deviation, with what the
released Kafka answers, and each recording of an older Kafka that is rejected. Tests check every one of them."""

from __future__ import annotations

import textwrap
from pathlib import Path

from kafkaspec.contract.deviation import NEWEST, Deviation, shown
from kafkaspec.contract.history import History, Record, answer_text, outcome, parse, read, to_text
from kafkaspec.contract.machine import Outside
from kafkaspec.contract.recording import Recording
from kafkaspec.contract.subsystem import Subsystem, subsystems
from kafkaspec.lockstep.compare import differences

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "histories"
RELEASES = (NEWEST, "3.9.1", "3.0.0", "2.8.2")
"""Some in which every deviation shows in one."""


def every() -> dict[Path, str]:
    """All histories that are committed, by their files."""
    out = {}
    for s in subsystems().values():
        for d in s.spec.machine.deviations:
            out[FOLDER / f"{d.id}.history"] = of_deviation(s, d)
        for r in s.recordings:
            if r.verdict == "rejected":
                out[FOLDER / f"{r.file.partition('.ndjson')[0]}.history"] = of_recording(s, r)
    return out


def of_deviation(s: Subsystem, d: Deviation) -> str:
    """The minimal history of a deviation: the spec's answers, and at the last call the released Kafka's."""
    right, wrong = shown(s.spec.machine, d)
    *before, last = answered_by_kafka(s, d)
    states = [str(x) for x in differences(right.observation, wrong.observation, "state")]
    if states:
        last["state"] = wrong.observation
    seen, expected = answer_text(outcome(wrong.result)), answer_text(outcome(right.result))
    release = next(r for r in RELEASES if d.shows_in(r))
    head = [
        *wrapped(f"{d.id}: {d.title}."),
        *wrapped(f"Breaks {d.clause}. Versions: {' '.join(d.versions.split())}."),
        "The answers are right, but for the last one, which is the released Kafka's:",
        *([f"  answered {seen}, right is {expected}"] if seen != expected else []),
        *(f"  {x}" for x in states),
        f"kafkaspec check tests/histories/{d.id}.history --subsystem {s.name}"
        + (f" --release {release}" if release != NEWEST else ""),
    ]
    return to_text(History((*before, last), "\n".join(head)))


def answered(s: Subsystem, d: Deviation) -> list[Record]:
    """The calls of a deviation's history, with the spec's answers."""
    machine = s.spec.machine
    state = machine.initial()
    out = []
    for record in parse("\n".join(d.history), d.id).records:
        if record["op"] == "init":
            state = machine.start(record["args"])
            out.append({"op": "init", "args": record["args"]})
            continue
        op = machine.find(record["op"])
        step = machine.apply(
            state, op.name, {**op.defaults, **{op.parameters[k]: v for k, v in record["args"].items()}}
        )
        assert not isinstance(step, Outside)
        state = step.state
        out.append({"op": record["op"], "args": record["args"], **outcome(step.result)})
    return out


def answered_by_kafka(s: Subsystem, d: Deviation) -> list[Record]:
    """The same, with the released Kafka's answer to the last call."""
    *before, last = answered(s, d)
    _, wrong = shown(s.spec.machine, d)
    return [*before, {"op": last["op"], "args": last["args"], **outcome(wrong.result)}]


def of_recording(s: Subsystem, r: Recording) -> str:
    """A short recording that is rejected."""
    ((*records,),) = read(r.path.read_bytes(), r.file)
    head = [
        *wrapped(f"{r.source}."),
        f"Rejected at step {r.at}, counted from 0.",
        f"kafkaspec check tests/histories/{r.file.partition('.ndjson')[0]}.history --subsystem {s.name}"
        + (f" --release {r.release}" if r.release else ""),
    ]
    return to_text(History(tuple({k: v for k, v in x.items() if k != "i"} for x in records), "\n".join(head)))


def wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 108, break_long_words=False)
