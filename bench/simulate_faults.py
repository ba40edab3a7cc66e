"""How many seeds each planted fault of the simulated clusters takes, by schedule: `python -m bench.simulate_faults 20`.

Prints a line of JSON for each fault and schedule: `fault`, `schedule`, `seeds` (run until one finds it, that one
included; null if none of the first N does), `steps` (made in them). Nothing in it depends on the machine.
"""

from __future__ import annotations

import argparse
import json

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


def found(fault: Fault, schedule: Schedule, most: int) -> dict[str, object]:
    """By the first seed that breaks any rule."""
    steps = 0
    out = {"fault": fault.scenario.name, "schedule": schedule}
    for seed in range(most):
        r = run(fault.scenario, RandomChoices(fault.scenario, seed, schedule))
        steps += len(r.steps)
        if r.violation is not None:
            return {**out, "seeds": seed + 1, "steps": steps}
    return {**out, "seeds": None, "steps": steps}


def main() -> None:
    """Every fault, or those that are named, by every schedule."""
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    p.add_argument("most", type=int, metavar="N", help="seeds at most, for each fault and schedule")
    p.add_argument("faults", nargs="*", help="names of scenarios; all, if none is given")
    o = p.parse_args()
    for name in o.faults or FAULTS:
        for schedule in SCHEDULES:
            print(json.dumps(found(FAULTS[name], schedule, o.most)), flush=True)


if __name__ == "__main__":
    main()
