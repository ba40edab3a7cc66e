"""One campaign, in one process or on Spark: `python bench/campaign.py timeline 400 --master 'local[2]'`.

With `--workers N` instead of a master it runs on a standalone cluster on loopback, of N workers with one core each,
which is there before the clock starts. Prints JSON: `calls`, `seconds` (of the campaign, with Spark's start),
`calls_per_second`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import tempfile
from pathlib import Path

from cluster import cluster

from kafkaspec.contract.subsystem import find
from kafkaspec.fleet.campaign import campaign

STEPS = 100


def main() -> None:
    """Walk so many seeds; none may fail."""
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    p.add_argument("subsystem")
    p.add_argument("seeds", type=int)
    p.add_argument("--master", help="Spark's; without it, this process")
    p.add_argument("--workers", type=int, default=0)
    o = p.parse_args()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        work = Path(folder)
        master = stack.enter_context(cluster(o.workers, work)) if o.workers else o.master
        done = campaign(find(o.subsystem), seeds=range(o.seeds), steps=STEPS, out=work / "out", master=master)
    assert done.failing == 0, done.failures
    found = {"calls": done.calls, "seconds": done.seconds, "calls_per_second": done.calls / done.seconds}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
