"""The commands that run one engine: names resolved, engine called, result printed, exit status returned."""

from __future__ import annotations

import itertools
import re
import shlex
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from kafkaspec.cli import names
from kafkaspec.cli.output import not_kept, progress, say, tell, unjudged, write
from kafkaspec.errors import INTERRUPTED, ErrorReport, UserError, unknown

if TYPE_CHECKING:
    from kafkaspec.contract.subsystem import Subsystem
    from kafkaspec.explore.checked import Expectation
    from kafkaspec.explore.engine import Exploration
    from kafkaspec.explore.walk import RandomWalk
    from kafkaspec.judge.verdict import Verdict
    from kafkaspec.language import LoadedModel

EXIT_CODES = {"complete": 0, "violation": 1, "deadlock": 1, "liveness": 1, "limit": 2}
"""Of what an exploration came to."""
STANDARD_INPUT = "standard input"
"""The name of what is read there."""
LOOKED_AT_LINES = 200
"""How many lines of a recording are looked at to tell whose it is, """
LOOKED_AT_BYTES = 1 << 20
"""and about how many bytes."""


# ---- check -----------------------------------------------------------------------------------------------------------
def check(
    traces: list[str], *, subsystem: str | None, strict: bool, release: str | None, html: Path | None, json: bool
) -> int:
    """Judge each trace. 0 if all are accepted, else 1 if one is rejected, else 2."""
    from kafkaspec.contract import subsystem as subsystems

    wanted = subsystems.find(subsystem) if subsystem is not None else None
    found: list[Verdict | ErrorReport] = []
    codes: list[int] = []
    for t in traces:
        with _each(STANDARD_INPUT if t == "-" else t, found, codes):
            verdict = _judge(t, wanted, strict, release)
            found.append(verdict)
            codes.append(verdict.exit_code)
    tell(found, html=html, json=json, title="Recorded traces, judged")
    return worst(codes)


def _judge(trace: str, wanted: Subsystem | None, strict: bool, release: str | None) -> Verdict:
    from kafkaspec.judge.check import check as judge

    if trace == "-":
        return _judge_stream(sys.stdin.buffer, STANDARD_INPUT, wanted, strict, release)
    path = Path(trace)
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe is opened once
        with path.open("rb") as stream:
            return _judge_stream(stream, str(path), wanted, strict, release)
    names.check_readable(path)
    if path.stat().st_size == 0:
        raise UserError(f"{path}: is empty")
    options = [] if wanted is None else ["--subsystem", wanted.name]
    first = _first_lines(path)
    if not first:
        raise UserError(f"{path}: is empty")
    wanted = wanted or guess(str(path), first)
    with progress(path.name) as bar:
        verdict = judge(wanted.spec.machine, path, strict=strict, release=release, progress=bar)
    options += [*["--strict"] * strict, *(["--release", release] if release is not None else [])]
    words = [*options, "--", trace] if trace.startswith("-") else [trace, *options]
    return replace(verdict, again=shlex.join(["kafkaspec", "check", *words]))


def _judge_stream(stream: BinaryIO, name: str, wanted: Subsystem | None, strict: bool, release: str | None) -> Verdict:
    """What can be read once: standard input, a pipe."""
    from kafkaspec.judge.check import check as judge
    from kafkaspec.judge.trace import lines_of

    lines = lines_of(stream)
    first = _looked_at(lines)
    if not first:
        raise UserError(f"{name}: is empty")
    machine = (wanted or guess(name, first)).spec.machine
    with progress(name) as bar:
        return judge(machine, itertools.chain(first, lines), name=name, strict=strict, release=release, progress=bar)


def _first_lines(path: Path) -> list[bytes]:
    from kafkaspec.judge.trace import CountingReader, opened

    with path.open("rb", buffering=0) as raw:
        try:
            return _looked_at(opened(CountingReader(raw), str(path), "" if path.suffix == ".history" else path.suffix))
        except (OSError, EOFError, zlib.error) as e:
            raise UserError(f"{path}: cannot read: {e}") from None


def _looked_at(lines: Iterable[bytes]) -> list[bytes]:
    """The first lines, as many as are looked at."""
    out: list[bytes] = []
    size = 0
    for line in lines:
        out.append(line)
        size += len(line)
        if len(out) == LOOKED_AT_LINES or size > LOOKED_AT_BYTES:
            break
    return out


def guess(name: str, lines: Iterable[bytes]) -> Subsystem:
    """The subsystem that knows the operations which a recording calls, or most of them; the file's name decides between
    several.

    Raises UserError: no subsystem knows the operations, or more than one and the name does not tell.
    """
    from kafkaspec.contract.subsystem import subsystems

    called = set(_operations(name, lines))
    known = {n: len(called & s.spec.machine.operations.keys()) for n, s in subsystems().items()}
    most = max(known.values(), default=0)
    knowing = [n for n, count in known.items() if count == most > 0]
    named = [n for n in subsystems() if n in re.findall(r"[a-z0-9_]+", Path(name).name.lower())]
    choice = [n for n in named if n in knowing] or knowing or named
    if len(choice) == 1:
        return subsystems()[choice[0]]
    wanted = f"one of {', '.join(choice)}" if choice else "none of the subsystems knows its operations"
    raise UserError(f"{name}: whose recording is it? {wanted}: say --subsystem ({', '.join(subsystems())})")


def _operations(name: str, lines: Iterable[bytes]) -> Iterator[str]:
    from kafkaspec.judge.trace import parsed

    if name.endswith(".history"):
        for line in lines:
            word = line.split(None, 1)[0].decode("utf-8", "replace") if line.strip() else "#"
            if word[0] not in "#?" and not line[:1].isspace() and word != "init":
                yield word
        return
    for number, line in enumerate(lines, 1):
        record = parsed(line, name, number)
        op = record.get("op") if isinstance(record, dict) else None
        if isinstance(op, str) and op != "init":
            yield op


# ---- explore ---------------------------------------------------------------------------------------------------------
def explore(
    name: str,
    words: list[str],
    *,
    threads: int,
    symmetry: list[str],
    max_states: int | None,
    max_memory_mb: int | None,
    checkpoint: Path | None,
    ghosts: bool,
    deadlock: bool,
    html: Path | None,
    json: bool,
) -> int:
    """Explore each model that `name` names. 0 if all claims hold, every witness is reached and every action taken."""
    wanted = _wanted(name, words)
    from kafkaspec.explore.engine import explore as run

    found: list[Exploration | ErrorReport] = []
    codes: list[int] = []
    for checked in wanted:
        with _each(checked.name, found, codes), progress(f"explore {checked.name}") as bar:
            model = checked.loaded
            sizes = names.sizes(words, model, checked.sizes)
            alike = tuple(symmetry) or checked.symmetry
            if alike and model.leads_to:
                print(f"kafkaspec: {model.name}: leads-to claims are not checked under symmetry", file=sys.stderr)
            try:
                e = run(
                    model,
                    sizes,
                    ghosts=ghosts or checked.ghosts,
                    threads=threads,
                    symmetry=alike,
                    liveness=not alike,
                    deadlock=deadlock or checked.deadlock,
                    max_states=max_states,
                    max_memory_mb=max_memory_mb,
                    progress=bar,
                    checkpoint=checkpoint,
                )
            except KeyboardInterrupt:
                how = f"the same command goes on from {checkpoint}" if checkpoint else "--resume FILE would keep it"
                raise UserError(f"interrupted; {how}", exit_code=INTERRUPTED) from None
            found.append(e)
            codes.append(_explored(e))
    tell(found, html=html, json=json, title=f"Explored: {name}")
    return worst(codes)


def _explored(e: Exploration) -> int:
    vacuous = any(t is None for t in e.witnesses.values()) or not all(e.taken.values())
    return 1 if e.outcome == "complete" and vacuous else EXIT_CODES[e.outcome]


def walk(
    name: str,
    words: list[str],
    *,
    seed: int,
    steps: int,
    schedule: str,
    ghosts: bool,
    html: Path | None,
    json: bool,
) -> int:
    """One random run of each model that `name` names. 1 if it broke a claim."""
    wanted = _wanted(name, words)
    from kafkaspec.explore.walk import walk as run

    found: list[RandomWalk | ErrorReport] = []
    codes: list[int] = []
    for checked in wanted:
        with _each(checked.name, found, codes), progress(f"walk {checked.name}") as bar:
            model = checked.loaded
            w = run(
                model,
                names.sizes(words, model, checked.sizes),
                seed=seed,
                steps=steps,
                schedule=schedule,  # type: ignore[arg-type]
                ghosts=ghosts or checked.ghosts,
                progress=bar,
            )
            found.append(w)
            codes.append(int(w.trace is not None))
    tell(found, html=html, json=json, title=f"Walked: {name}, seed {seed}")
    return worst(codes)


def _wanted(name: str, words: list[str]) -> list[Expectation]:
    """The models at all their pinned sizes; or, where sizes are given, the one model whose they are."""
    wanted = names.find_models(name)
    if words:
        wanted = names.one_each(wanted)
        if len(wanted) > 1:
            several = ", ".join(f"{name}:{c.name}" for c in wanted)
            raise UserError(f"{name} has several models: say whose sizes these are ({several})")
    return wanted


# ---- prove -----------------------------------------------------------------------------------------------------------
def prove(
    name: str,
    *,
    only: list[str],
    timeout_s: float,
    steps: int | None,
    words: list[str],
    html: Path | None,
    json: bool,
) -> int:
    """Prove each model that `name` names, for every size but those in `words`; or search the runs of `steps` steps."""
    from kafkaspec.prove.bounded import bounded
    from kafkaspec.prove.proof import Proof

    found: list[Any] = []
    codes: list[int] = []
    for checked in names.one_each(names.find_models(name)):
        with _each(checked.name, found, codes), progress(f"prove {checked.name}") as bar:
            model = checked.loaded
            fixed = names.sizes(words, model, {}, complete=False)
            if steps is not None:
                b = bounded(model, steps, fixed, timeout_s=timeout_s, progress=bar)
                found.append(b)
                codes.append({"complete": 0, "violation": 1, "vacuous": 1}.get(b.outcome, 2))
                continue
            proof = Proof(model, timeout_s=timeout_s, fixed=fixed, begins_with=names.begins_with(model))
            p = proof.run(bar, claims=only)
            found.append(p)
            codes.append({"proved": 0, "refuted": 1}.get(p.outcome, 2))
    tell(found, html=html, json=json, title=f"Proved: {name}")
    return worst(codes)


# ---- campaigns, mutants ----------------------------------------------------------------------------------------------
def campaign(name: str, *, seeds: range, steps: int, out: Path, master: str | None, json: bool) -> int:
    """Walk impl against spec over many seeds. 1 if a seed fails."""
    from kafkaspec.contract import subsystem
    from kafkaspec.fleet import campaign as run

    wanted = subsystem.find(name)
    with progress(f"campaign {name}") as bar:
        try:
            result = run(wanted, seeds=seeds, steps=steps, out=out, master=master, progress=bar)
        except KeyboardInterrupt:
            raise UserError(
                f"interrupted; the same command goes on from what is in {out}", exit_code=INTERRUPTED
            ) from None
    tell([result], json=json)
    not_kept(*result.not_kept)
    return int(bool(result.failures))


def mutants(name: str, *, json: bool) -> int:
    """The kill matrix of a subsystem: its written mutants and the generated ones of its models. 1 if a row is wrong."""
    from kafkaspec.contract import subsystem
    from kafkaspec.mutants import matrix as m
    from kafkaspec.mutants.audit import audit_detector
    from kafkaspec.mutants.judge import judge_detector

    wanted = subsystem.find(name)
    faults = m.mutants_of(wanted)
    detectors = [
        m.contract_detector(), m.lockstep_detector(), m.check_detector(), m.explorer_detector(), m.prover_detector(),
        judge_detector(), audit_detector(),
    ]  # fmt: skip
    with progress(f"mutants of {name}") as bar:
        rows = m.kill_matrix(wanted, faults, detectors, progress=bar)
    tell(rows, json=json, together=True)
    return int(any(r.wrong for r in rows))


# ---- export ----------------------------------------------------------------------------------------------------------
def export(name: str, words: list[str], *, to: str, out: Path, json: bool) -> int:
    """Write each model that `name` names in another tool's language."""
    _one_of("format", to, EXPORTS)
    found: list[str | ErrorReport] = []
    codes: list[int] = []
    for checked in _wanted(name, words):
        with _each(checked.name, found, codes):
            model = checked.loaded
            sizes = names.sizes(words, model, checked.sizes, complete=to != "smtlib")
            for file, text in EXPORTS[to](model, sizes, checked):
                found.append(str(write(out / file, text)))
    if json:
        tell(found, json=True)
    return worst(codes)


def _tla(model: LoadedModel, sizes: names.Sizes, checked: Expectation) -> Iterator[tuple[str, str]]:
    from kafkaspec.export import module_name, tla

    module, configuration = tla(model, sizes, ghosts=checked.ghosts, deadlock=checked.deadlock)
    yield f"{module_name(model)}.tla", module
    yield f"{module_name(model)}.cfg", configuration


def _smtlib(model: LoadedModel, sizes: names.Sizes, checked: Expectation) -> Iterator[tuple[str, str]]:
    from kafkaspec.export import smtlib

    yield from smtlib(model, {n: v for n, v in sizes.items() if isinstance(v, bool)}).items()


def _itf(model: LoadedModel, sizes: names.Sizes, checked: Expectation) -> Iterator[tuple[str, str]]:
    import orjson

    from kafkaspec.explore.engine import explore as run
    from kafkaspec.export import itf

    e = run(model, sizes, deadlock=checked.deadlock)
    for t in [e.trace, *e.witnesses.values()]:
        if t is not None:
            text = orjson.dumps(itf(t, model), option=orjson.OPT_INDENT_2).decode()
            yield f"{model.name}-{t.kind}-{t.claim or 'run'}.itf.json", text


EXPORTS = {"tla": _tla, "smtlib": _smtlib, "itf": _itf}


# ---- what they share -------------------------------------------------------------------------------------------------
@contextmanager
def _each(source: str, found: list[Any], codes: list[int]) -> Iterator[None]:
    """One trace or model of those that a command is given. An error is said, takes the place of its result, and costs
    no other its own. Ctrl-C ends them all."""
    try:
        yield
    except UserError as e:
        if e.exit_code == INTERRUPTED:
            raise
        found.append(unjudged(source, e))
        codes.append(say(e))


def worst(codes: Iterable[int]) -> int:
    """One exit status of several: rejected before could-not-judge before accepted."""
    seen = set(codes)
    return 1 if 1 in seen else max(seen, default=0)


def _one_of(kind: str, name: str, known: Iterable[str]) -> str:
    known = list(known)
    if name not in known:
        raise unknown(kind, name, known)
    return name
