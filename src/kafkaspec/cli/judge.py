"""`kafkaspec judge` and `kafkaspec serve`: somebody else's implementation behind a pipe, and ours."""

from __future__ import annotations

import contextlib
import gzip
import os
import signal
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import platformdirs

from kafkaspec.cli import names
from kafkaspec.cli.engines import worst
from kafkaspec.cli.output import check_writable, harmless, interrupted_by, keep, not_kept, progress, tell, write
from kafkaspec.contract.subsystem import Subsystem, components, find
from kafkaspec.errors import INTERRUPTED, UserError, unwritten
from kafkaspec.judge.campaign import Fan
from kafkaspec.judge.campaign import judge as judge_target
from kafkaspec.judge.campaign import replay as ask_again
from kafkaspec.judge.generate import Generator
from kafkaspec.judge.result import Job, SubsystemVerdict
from kafkaspec.judge.target import Target, TargetTrouble
from kafkaspec.workers import cores

MAX_REPLAY_BYTES: Final = 16 << 20
"""A file of more is not asked again."""


@dataclass(frozen=True)
class Options:
    """What is asked of the command, beside the subsystems: see its help."""

    command: str
    seed: int
    examples: int | None
    time_s: float | None
    strict: bool
    uniform: bool
    timeout_s: float
    min_coverage: float
    fail_fast: bool
    out: Path
    record: Path | None
    master: str | None
    threads: int | None
    html: Path | None
    junit: Path | None
    json: bool

    def job(self, name: str) -> Job:
        generator: Generator = "uniform" if self.uniform else "guided"
        job = Job(name, self.command, self.seed, self.strict, generator, self.timeout_s)
        min_calls = job.min_calls if self.min_coverage else 0  # whatever was asked is enough
        return replace(job, min_coverage=self.min_coverage, min_calls=min_calls, fail_fast=self.fail_fast)


def judge(subsystem_names: Sequence[str], w: Options) -> int:
    """Judge a target; all subsystems that it offers, if none is named. What was judged before Ctrl-C, SIGTERM, as
    `timeout` sends it, or SIGHUP, as of a terminal that is closed, is told."""
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(platformdirs.user_cache_path("kafkaspec") / "hypothesis"))
    _check(w)
    wanted = _offered(w, subsystem_names)
    results: list[SubsystemVerdict] = []
    with interrupted_by(signal.SIGTERM, signal.SIGHUP), _fan(w) as fan:
        for name in wanted:
            with progress(f"judging {name}") as bar, _recording(w.record, name) as record:
                judged = judge_target(
                    w.job(name), examples=w.examples, time_s=w.time_s, progress=bar, record=record, fan=fan
                )
                results.append(judged)
            if results[-1].interrupted:
                break
    results = [_kept(r, w.out) for r in results]
    _tell(results, w)
    if results[-1].interrupted:
        raise UserError("interrupted; what was judged until then is told above", exit_code=INTERRUPTED)
    return worst(r.exit_code for r in results)


def replay(subsystem_names: Sequence[str], file: str, w: Options) -> int:
    """Ask the calls of a file's histories on the target again."""
    from kafkaspec.contract.history import read_numbered

    _check(w)
    if len(subsystem_names) != 1:
        raise UserError("--replay: whose history is it? name one subsystem")
    if w.master is not None or w.record is not None:
        raise UserError("--replay asks one history: not with --spark or --record")
    source = "standard input" if file == "-" else file
    histories = read_numbered(_bytes(file), source)
    if not histories:
        raise UserError(f"{file}: there is no call in it")
    (name,) = _offered(w, subsystem_names)
    places = [[f"{source}:{number}" for number, _ in history] for history in histories]
    result = ask_again(w.job(name), [[record for _, record in history] for history in histories], file, places)
    if file != "-":
        result = replace(result, kept=tuple(file for _ in result.rejections))
    _tell([result], w)
    return result.exit_code


def serve(subsystem_names: Sequence[str]) -> int:
    """Our implementation as a target, on standard input and output."""
    from kafkaspec.judge.serve import serve as answer

    offered = {}
    for name in subsystem_names or list(components()):
        pair = _component(name).pairs()[0]
        offered[name] = (pair.machine, pair.driver())
    out = sys.stdout.buffer
    sys.stdout = sys.stderr
    with contextlib.suppress(KeyboardInterrupt):
        answer(offered, sys.stdin.buffer, out)
    return 0


def _component(name: str) -> Subsystem:
    """The subsystem of that name; UserError if there is none, or no component answers for it."""
    s = find(name)
    if not s.is_component:
        what = "a protocol between brokers" if s.is_protocol else "a rule of the audit"
        instead = "explore and prove ask its models" if s.is_protocol else "audit asks it of log directories"
        raise UserError(f"{name} is {what}: no component answers for it ({instead})")
    return s


def _check(w: Options) -> None:
    """Refuse what would fail at the end of a long run."""
    for file in (w.html, w.junit):
        if file is not None:
            check_writable(file)
    for folder in (w.out, w.record):
        if folder is not None:
            check_writable(folder / "x")


def _offered(w: Options, wanted: Sequence[str]) -> list[str]:
    """The subsystems to judge. UserError for one that does not exist or is not offered, or for no target."""
    for name in wanted:
        _component(name)
    try:
        with Target(w.command, w.timeout_s) as target:
            hello = target.hello
    except TargetTrouble as e:
        print(harmless("".join(f"  {line}\n" for line in e.stderr)), end="", file=sys.stderr)
        raise UserError(str(e)) from None
    offers = ", ".join(sorted(hello.subsystems)) or "none"
    for name in wanted:
        if name not in hello.subsystems:
            raise UserError(f"{hello.name} does not offer {name} (it offers: {offers})")
    found = list(dict.fromkeys(wanted)) or [n for n in components() if n in hello.subsystems]
    if not found:
        raise UserError(f"{hello.name} offers no subsystem that is known here (it offers: {offers})")
    return found


@contextlib.contextmanager
def _fan(w: Options) -> Iterator[Fan]:
    if w.master is None:
        from kafkaspec.judge.parallel import over

        yield over(w.threads or cores())
        return
    from kafkaspec.fleet.judge import on
    from kafkaspec.fleet.session import session

    with session(w.master) as spark:
        yield on(spark)


@contextlib.contextmanager
def _recording(folder: Path | None, name: str) -> Iterator[Callable[[bytes], None] | None]:
    if folder is None:
        yield None
        return
    file = folder / f"{name}.ndjson"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        out = file.open("wb")
    except OSError as e:
        not_kept(str(unwritten(file, e)))
        yield None
        return
    why: list[OSError] = []

    def record(line: bytes) -> None:
        """Once a line is not kept, no more are: the file ends there."""
        if not why:
            try:
                out.write(line)
            except OSError as e:
                why.append(e)

    try:
        yield record
    finally:
        try:
            out.close()
        except OSError as e:
            why.append(e)
        not_kept(*(str(unwritten(file, e)) for e in why[:1]))


def _kept(r: SubsystemVerdict, folder: Path) -> SubsystemVerdict:
    """The rejected histories of a subsystem written, each to its file. What cannot be is told all the same."""
    files = []
    for n, rejection in enumerate(r.rejections, 1):
        files.append(keep(folder / f"{r.job.subsystem}-{n}.ndjson", rejection.history.ndjson().decode()))
    last = ""
    if r.tally.trouble is not None and r.tally.last is not None:
        last = keep(folder / f"{r.job.subsystem}-trouble.ndjson", r.tally.last.ndjson().decode())
    return replace(r, kept=tuple(files), kept_last=last)


def _tell(results: Sequence[SubsystemVerdict], w: Options) -> None:
    target = next((r.target for r in results if r.target), w.command)
    tell(results, json=w.json, html=w.html, title=f"Judged: {target}", together=True)
    if w.junit is not None:
        from kafkaspec.report.junit import junit

        write(w.junit, junit(results))


def _bytes(file: str) -> bytes:
    """What stands in a file, unpacked. UserError for more than the calls of a history can be."""
    if file == "-":
        data = sys.stdin.buffer.read(MAX_REPLAY_BYTES + 1)
    else:
        path = Path(file)
        names.check_readable(path)
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
                data = stream.read(MAX_REPLAY_BYTES + 1)
        except (OSError, EOFError, zlib.error) as e:
            raise UserError(f"{path}: cannot be read: {e}") from None
    if len(data) > MAX_REPLAY_BYTES:
        raise UserError(f"{file}: more than {MAX_REPLAY_BYTES >> 20} MiB of calls: not asked again")
    return data
