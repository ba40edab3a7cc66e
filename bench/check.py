"""How fast traces are judged: the timeline's recording repeated, or with --generated one long walk of its spec, in
which no line repeats. Prints JSON: `events`, `seconds` and `cpu_seconds` of the check, `peak_mb` of the process."""

from __future__ import annotations

import argparse
import itertools
import json
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from kafkaspec.contract.history import outcome
from kafkaspec.contract.machine import Step
from kafkaspec.contract.recording import Recording
from kafkaspec.judge.check import check
from kafkaspec.lockstep.walk import draw
from kafkaspec.spec.controller.timeline import machine


def repeated(events: int) -> Iterator[bytes]:
    """The recording, from its `init` line to its end, over and over."""
    lines = Recording("timeline-monotonic.ndjson", "accepted").path.read_bytes().splitlines(keepends=True)
    return itertools.islice(itertools.cycle(lines), events)


def generated(events: int) -> Iterator[bytes]:
    """One walk of the spec, as it would be recorded; a reset now and then, as in the recording."""
    rng = random.Random(0)
    operations = [op for op in machine.operations.values() if op.generated]
    state = machine.initial()
    yield orjson.dumps({"i": 0, "op": "init", "args": {}, "result": None, "state": machine.observe(state)}) + b"\n"
    done = 1
    while done < events:
        op = rng.choice(operations)
        arguments = draw(machine, op, state, rng.choice)
        step = None if arguments is None else machine.apply(state, op.name, arguments, contracts=False)
        if arguments is None or not isinstance(step, Step):
            continue
        state = step.state
        args = {t: arguments[p] for t, p in op.parameters.items()}
        record = {"i": done, "op": op.name, "args": args, **outcome(step.result), "state": machine.observe(state)}
        if "error" in record:
            record["error"].setdefault("message", None)
        yield orjson.dumps(record) + b"\n"
        done += 1


def main() -> None:
    """Judge that many events."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", type=int)
    parser.add_argument("--generated", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generated.ndjson"
        if options.generated:
            with path.open("wb") as out:
                out.writelines(generated(options.events))
        start, cpu = time.perf_counter(), time.process_time()
        verdict = check(machine, path if options.generated else repeated(options.events), name="bench")
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    assert (verdict.verdict, verdict.events) == ("accepted", options.events), verdict.text()
    found = {
        "events": verdict.events,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
