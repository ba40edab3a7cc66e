"""One campaign, in one process or on Spark: `python bench/campaign.py timeline 400 --master 'local[2]'`.

With `--workers N` instead of a master it runs on a standalone cluster on loopback, of N workers with one core each,
which is there before the clock starts. With `--processes N` the seeds are shared by N processes without Spark, which
is what the machine's cores can give. Prints JSON: `calls`, `seconds` (of the campaign, with Spark's start),
`calls_per_second`, `walking` (of the cores' time in those seconds, the part in which a walk was under way: two cores
that share a machine need not be as fast as one alone, and a machine that others share changes from minute to minute).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from cluster import cluster

from kafkaspec.contract.subsystem import find
from kafkaspec.fleet.campaign import CampaignResult, Store, campaign

STEPS = 100


def walked(subsystem: str, seeds: range, work: Path, master: str | None = None) -> CampaignResult:
    """A campaign, none of whose seeds failed."""
    done = campaign(find(subsystem), seeds=seeds, steps=STEPS, out=work / f"out-{seeds.start}", master=master)
    assert done.failing == 0, done.failures
    return done


def walking_seconds(done: CampaignResult) -> float:
    """Of all walks of a campaign, by the clock of the process that walked."""
    return float(sum(pc.sum(pq.read_table(f, columns=["seconds"])["seconds"]).as_py() for f in Store(done.out).files()))


def side_by_side(subsystem: str, seeds: int, processes: int, work: Path) -> tuple[int, float, float]:
    """Calls, seconds of the slowest process, and of all walks; a short campaign in each goes before, so that all begin
    at once."""
    parts = [range(n * seeds // processes, (n + 1) * seeds // processes) for n in range(processes)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        list(pool.map(partial(walked, subsystem, work=work / "before"), (range(p.start, p.start + 20) for p in parts)))
        done = list(pool.map(partial(walked, subsystem, work=work), parts))
    return sum(d.calls for d in done), max(d.seconds for d in done), sum(map(walking_seconds, done))


def main() -> None:
    """Walk that number of seeds; none may fail."""
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    p.add_argument("subsystem")
    p.add_argument("seeds", type=int)
    p.add_argument("--master", help="Spark's; without it, this process")
    p.add_argument("--workers", type=int, default=0)
    p.add_argument("--processes", type=int, default=0)
    o = p.parse_args()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        work = Path(folder)
        if o.processes:
            calls, seconds, walking = side_by_side(o.subsystem, o.seeds, o.processes, work)
        else:
            master = stack.enter_context(cluster(o.workers, work)) if o.workers else o.master
            done = walked(o.subsystem, range(o.seeds), work, master)
            calls, seconds, walking = done.calls, done.seconds, walking_seconds(done)
    local = re.search(r"\[(\d+)\]", o.master or "")
    cores = o.processes or o.workers or (int(local[1]) if local else 1)
    found = {"calls": calls, "seconds": seconds, "calls_per_second": calls / seconds}
    found["walking"] = walking / (cores * seconds)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
