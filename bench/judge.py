"""How fast a target is judged, and where the time goes: `python bench/judge.py COMMAND SUBSYSTEM --seconds 20`.

The clock starts when the first target has greeted and the tours are made. Prints JSON: `calls` and `lines` (calls,
states asked for and first lines) of `histories`, their rates, `seconds`, `cpu_seconds` of the judge and its targets,
`peak_mb` of the largest process; with --where, on one core, `where`: shares of the judge's time, from a sample every
millisecond.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import sys
import time
from collections import Counter
from pathlib import PurePath
from types import FrameType

from kafkaspec.judge.campaign import judge
from kafkaspec.judge.judging import tours_of
from kafkaspec.judge.parallel import over
from kafkaspec.judge.result import Job
from kafkaspec.workers import cores

PLACES = {
    ("target.py", "receive"): "waiting",
    ("target.py", "send"): "writing",
    ("generate.py", "_offered"): "candidates",
    ("judging.py", "observed"): "observing",
    ("judging.py", "_text"): "encoding",
    ("judging.py", "_line"): "encoding",
    ("judging.py", "called"): "encoding",
    ("judging.py", "_looked_up"): "model states",
    ("judging.py", "_wrong"): "comparing",
    ("judging.py", "_counted"): "counting",
    ("generate.py", "__call__"): "guidance",
    ("generate.py", "propose"): "guidance",
    ("generate.py", "plan"): "guidance",
    ("judging.py", "_block"): "the rest",
}
"""The innermost function of these that runs says what is being done."""
DRAWN = "drawn.py"
SPECS = {"controller", "management", "storage", "quotas", "classic"}
EVERY_S = 0.001


class Sampler:
    """What the judge does, looked at again and again."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def look(self, _: int, frame: FrameType | None) -> None:
        """One sample. In the spec, and not for candidates or a state, a call is evaluated; some of them are proposals
        that are not made."""
        place, in_spec = "", False
        while frame is not None:
            path = PurePath(frame.f_code.co_filename)
            in_spec = in_spec or path.parent.name in SPECS
            if path.name == DRAWN:
                place = place if place in ("waiting", "comparing") else "Hypothesis"
                break
            place = place or PLACES.get((path.name, frame.f_code.co_name), "")
            frame = frame.f_back
        self.seen["spec" if in_spec and place == "guidance" else place or "the rest"] += 1

    def shares(self) -> dict[str, float]:
        """Of all samples, the largest first."""
        total = max(1, self.seen.total())
        return {place: round(n / total, 4) for place, n in self.seen.most_common()}


def cpu() -> float:
    """CPU seconds so far, of this process and of its children that have ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def measured(job: Job, seconds: float, threads: int, where: bool) -> dict[str, object]:
    """Judge for so long. The target must not be rejected."""
    sampler = Sampler()
    tours_of(job)
    began, spent = 0.0, cpu()

    def first(done: int, examples: int | None, found: str) -> None:
        nonlocal began
        if not began:  # the target has started
            began = time.perf_counter()
            if where:
                signal.signal(signal.SIGALRM, sampler.look)
                signal.setitimer(signal.ITIMER_REAL, EVERY_S, EVERY_S)

    tally = judge(job, examples=None, time_s=seconds, progress=first, fan=over(threads)).tally
    signal.setitimer(signal.ITIMER_REAL, 0)
    took = time.perf_counter() - began
    if tally.trouble is not None or tally.rejections:
        sys.exit(f"{job.command}: {tally.trouble or next(iter(tally.rejections.values())).history}")
    lines = tally.calls + tally.observations + tally.histories
    who = resource.RUSAGE_SELF if threads == 1 else resource.RUSAGE_CHILDREN
    out: dict[str, object] = {
        "histories": tally.histories,
        "calls": tally.calls,
        "lines": lines,
        "seconds": took,
        "calls_per_second": tally.calls / took,
        "lines_per_second": lines / took,
        "cpu_seconds": cpu() - spent,
        "peak_mb": resource.getrusage(who).ru_maxrss / 1024,
    }
    return {**out, "where": sampler.shares()} if where else out


def main() -> None:
    """One target, one subsystem."""
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    p.add_argument("command")
    p.add_argument("subsystem")
    p.add_argument("--seconds", type=float, default=20.0)
    p.add_argument("--uniform", action="store_true", help="no models, no guidance, no Hypothesis")
    p.add_argument("--threads", type=int, default=cores())
    p.add_argument("--where", action="store_true", help="sample where the judge's time goes")
    o = p.parse_args()
    job = Job(o.subsystem, o.command, generator="uniform" if o.uniform else "guided", timeout_s=60.0)
    print(json.dumps(measured(job, o.seconds, 1 if o.where else o.threads, o.where)))


if __name__ == "__main__":
    main()
