"""How fast a target is judged, and where the time goes: `python bench/judge.py COMMAND SUBSYSTEM --seconds 20`.

The clock starts when the target has greeted and the tours are made. Prints JSON: `calls` and `lines` (calls, states
asked for and first lines) of `histories`, their rates, `seconds`, `cpu_seconds` of the judge and `target_cpu_seconds`,
`peak_mb` of the judge; with --where, `where`: shares of the judge's time, from a sample every millisecond.
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

from kafkaspec.judge.judging import BLOCK, Session, tours_of
from kafkaspec.judge.result import Job, Tally
from kafkaspec.judge.target import Target

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


def cpu(who: int) -> float:
    """CPU seconds so far, of this process or of its children that have ended."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def measured(job: Job, seconds: float, where: bool) -> dict[str, object]:
    """Judge for so long, to the end of a block. The target must be accepted."""
    tally, sampler = Tally(), Sampler()
    tours_of(job)
    with Target(job.command, job.timeout_s) as target:
        judging = Session(job, target)
        judging.block(0, 20)  # modules are loaded, a virtual machine is warm
        if where:
            signal.signal(signal.SIGALRM, sampler.look)
            signal.setitimer(signal.ITIMER_REAL, EVERY_S, EVERY_S)
        started, spent, number = time.perf_counter(), cpu(resource.RUSAGE_SELF), 0
        while time.perf_counter() - started < seconds:
            tally.add(judging.block(number, BLOCK))
            number += 1
            if tally.ended(job) or tally.rejections:
                sys.exit(f"{job.command}: {tally.trouble or next(iter(tally.rejections.values())).history}")
        took, spent = time.perf_counter() - started, cpu(resource.RUSAGE_SELF) - spent
        signal.setitimer(signal.ITIMER_REAL, 0)
    lines = tally.calls + tally.observations + tally.histories
    out: dict[str, object] = {
        "histories": tally.histories,
        "calls": tally.calls,
        "lines": lines,
        "seconds": took,
        "calls_per_second": tally.calls / took,
        "lines_per_second": lines / took,
        "cpu_seconds": spent,
        "target_cpu_seconds": cpu(resource.RUSAGE_CHILDREN),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    return {**out, "where": sampler.shares()} if where else out


def main() -> None:
    """One target, one subsystem."""
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    p.add_argument("command")
    p.add_argument("subsystem")
    p.add_argument("--seconds", type=float, default=20.0)
    p.add_argument("--uniform", action="store_true", help="no models, no guidance, no Hypothesis")
    p.add_argument("--where", action="store_true", help="sample where the judge's time goes")
    o = p.parse_args()
    job = Job(o.subsystem, o.command, generator="uniform" if o.uniform else "guided", timeout_s=60.0)
    print(json.dumps(measured(job, o.seconds, o.where)))


if __name__ == "__main__":
    main()
