"""Seeds of a simulated cluster in one process, on one core: `python bench/simulate.py replication 100`.

Every step is judged, as by the command; `--unwatched` leaves the monitors out, to say what they cost. Prints JSON:
`seeds`, `steps` (events that a node handled, crashes and faults), `records` (that were committed), `seconds`,
`cpu_seconds`, `steps_per_second` (of CPU), `peak_mb`.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import replace

from kafkaspec.impl.controller import quorum_simulation
from kafkaspec.impl.storage import last_stable_simulation, replication_simulation
from kafkaspec.simulate import RandomChoices, run
from kafkaspec.simulate.choices import SCHEDULES

CLUSTERS = {
    "replication": replication_simulation.SCENARIO,
    "last_stable": last_stable_simulation.SCENARIO,
    "quorum": quorum_simulation.SCENARIO,
    "quorum:FIVE_VOTERS": quorum_simulation.FIVE_VOTERS,
    "quorum:CHANGING": quorum_simulation.CHANGING,
    "quorum:IDLE": quorum_simulation.IDLE,
}


def main() -> None:
    """Run that number of seeds; none may break a rule."""
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    p.add_argument("cluster", choices=CLUSTERS)
    p.add_argument("seeds", type=int)
    p.add_argument("--schedule", choices=SCHEDULES, default="mixed")
    p.add_argument("--unwatched", action="store_true")
    o = p.parse_args()
    whole = CLUSTERS[o.cluster]
    scenario = replace(whole, monitors=list) if o.unwatched else whole
    run(scenario, RandomChoices(scenario, 0, o.schedule))  # what is imported late
    began, cpu = time.perf_counter(), time.process_time()
    steps = records = 0
    for seed in range(o.seeds):
        r = run(scenario, RandomChoices(scenario, seed, o.schedule))
        assert r.violation is None, r.violation
        steps += len(r.steps)
        records += r.counts.get("records committed", 0)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    found = {"seeds": o.seeds, "steps": steps, "records": records, "seconds": seconds, "cpu_seconds": cpu}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({**found, "steps_per_second": steps / cpu, "peak_mb": peak}))


if __name__ == "__main__":
    main()
