"""How many seeds each planted fault of the simulated clusters takes, by schedule: `python -m bench.simulate_faults 20`.

Prints a line of JSON for each fault and schedule: `fault`, `schedule`, `seeds` (run until one finds it, that one
included; null if none of the first N does), `steps` (made in them), `seconds` (of CPU, for them). Nothing but the
seconds depends on the machine.

    python -m bench.simulate_faults 20 > lines; python -m bench.simulate_faults 20 --table lines    the lines as a table
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kafkaspec.simulate import RandomChoices, run
from kafkaspec.simulate.choices import Schedule
from tests.controller import quorum_faults
from tests.storage import (
    acks_faults,
    eligible_faults,
    historic_faults,
    last_stable_faults,
    reassignment_faults,
    replication_faults,
)
from tests.storage.replication_faults import Fault

SCHEDULES: tuple[Schedule, ...] = ("uniform", "swarm", "priority")
FAULTS: dict[str, Fault] = {
    f.scenario.name: f
    for module in (
        replication_faults,
        eligible_faults,
        last_stable_faults,
        historic_faults,
        reassignment_faults,
        acks_faults,
        quorum_faults,
    )
    for f in module.FAULTS.values()
}


def found(fault: Fault, schedule: Schedule, most: int) -> dict[str, Any]:
    """By the first seed that breaks any rule."""
    steps, began = 0, time.process_time()
    out: dict[str, Any] = {"fault": fault.scenario.name, "schedule": schedule, "seeds": None}
    for seed in range(most):
        r = run(fault.scenario, RandomChoices(fault.scenario, seed, schedule))
        steps += len(r.steps)
        if r.violation is not None:
            out["seeds"] = seed + 1
            break
    return {**out, "steps": steps, "seconds": round(time.process_time() - began, 3)}


def table(lines: Iterable[dict[str, Any]], most: int) -> str:
    """A row a fault: of each schedule the seeds, the steps, and the seconds."""
    rows: dict[str, dict[str, str]] = {}
    for x in lines:
        seeds = f"none of {most}" if x["seeds"] is None else x["seeds"]
        rows.setdefault(x["fault"], {})[x["schedule"]] = f"{seeds} ({x['steps']:,}; {x['seconds']:.2f} s)"
    cells = [[f"`{fault}`", *(of[s] for s in SCHEDULES)] for fault, of in rows.items()]
    head = [["fault", *SCHEDULES], ["---"] * (1 + len(SCHEDULES))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [*head, *cells])


def main() -> None:
    """Every fault, or those that are named, by every schedule."""
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    p.add_argument("most", type=int, metavar="N", help="seeds at most, for each fault and schedule")
    p.add_argument("faults", nargs="*", help="names of scenarios; all, if none is given")
    p.add_argument("--table", type=Path, metavar="FILE", help="make a table of these lines, and run nothing")
    o = p.parse_args()
    if o.table is not None:
        print(table(map(json.loads, o.table.read_text("utf-8").splitlines()), o.most))
        return
    names = o.faults or [*FAULTS]
    for schedule in SCHEDULES:  # what the first run alone takes is no fault's
        found(FAULTS[names[0]], schedule, 1)
    for name in names:
        for schedule in SCHEDULES:
            print(json.dumps(found(FAULTS[name], schedule, o.most)), flush=True)


if __name__ == "__main__":
    main()
