"""`kafkaspec judge` and `kafkaspec serve`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from kafkaspec.cli.engines import worst
from kafkaspec.cli.output import progress
from kafkaspec.errors import UserError
from kafkaspec.judge.campaign import Job, Judged
from kafkaspec.judge.campaign import judge as run_job
from kafkaspec.judge.target import Target, TargetTrouble
from kafkaspec.subsystem import find, subsystems


def judge(
    command: str,
    names: list[str],
    *,
    seed: int,
    examples: int | None,
    time_s: float | None,
    strict: bool,
    timeout_s: float,
    record: Path | None,
) -> int:
    """Judge a target; all subsystems that it offers, if none is named."""
    for name in names:
        find(name)
    if not names:
        try:
            with Target(command, timeout_s) as target:
                names = [n for n in subsystems() if n in target.hello.subsystems]
        except TargetTrouble as e:
            raise UserError(str(e) + "".join(f"\n  {line}" for line in e.stderr)) from None
    results: list[Judged] = []
    for name in names:
        job = Job(name, command, seed, strict, "guided", timeout_s)
        with progress(f"judging {name}") as bar, _recording(record, name) as keep:
            results.append(run_job(job, examples=examples, time_s=time_s, progress=bar, record=keep))
        _print(results[-1])
    return worst(r.exit_code for r in results)


@contextlib.contextmanager
def _recording(folder: Path | None, name: str) -> Iterator[Callable[[bytes], None] | None]:
    if folder is None:
        yield None
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.ndjson").open("wb") as out:

        def keep(line: bytes) -> None:
            out.write(line)

        yield keep


def _print(r: Judged) -> None:
    t = r.tally
    print(f"{r.job.subsystem}: {r.verdict} {r.why} ({r.target})")
    print(
        f"  {t.histories:,} histories, {t.calls:,} calls, {t.observations:,} observations, {r.seconds:.1f} s,", end=" "
    )
    print(f"{t.calls / max(r.seconds, 1e-9):,.0f} calls/s")
    print(f"  clauses {len(t.clauses)} of {len(r.clauses)}; never: {', '.join(r.never_exercised) or 'none'}")
    print(f"  models {dict(r.models)} tours {dict(r.tours)}; deviations {dict(t.deviations)}")
    print(f"  not offered: {', '.join(r.not_offered) or 'none'}; not called: {', '.join(r.not_called) or 'none'}")
    for x in r.rejections:
        print(f"  rejected {x.count} times (first in history {x.found}, after {x.calls:,} calls, by {x.by}):")
        print("    " + str(x.history).replace("\n", "\n    "))
    if t.trouble is not None:
        print("".join(f"  stderr: {line}\n" for line in t.trouble.stderr), end="")
        if t.last is not None:
            print("    " + str(t.last).replace("\n", "\n    "))


def serve(names: list[str]) -> int:
    """Our implementation as a target, on standard input and output."""
    from kafkaspec.judge.serve import serve as answer

    offered = {}
    for name in names or list(subsystems()):
        s = find(name)
        impl = s.layer("impl")
        if impl is not None:
            offered[name] = (s.spec.machine, impl.Driver())
    out = sys.stdout.buffer
    sys.stdout = sys.stderr
    answer(offered, sys.stdin.buffer, out)
    return 0
