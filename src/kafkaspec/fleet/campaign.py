"""A campaign: the seeded lockstep walk of impl against spec for very many seeds, in this process or on Spark.

A seed gives one row, and the row depends on the seed, the number of steps and the code alone (the column `seconds`
excepted), so it does not matter where, when or in which order rows are made. They are kept as Parquet files in
`out/rows`; a campaign that was interrupted goes on with the seeds that have no row yet. Failures are made small and
told once each; coverage is added up by file, by Spark's workers where there are some.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import math
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson

import kafkaspec.contract
import kafkaspec.lockstep
from kafkaspec.contract.history import History
from kafkaspec.contract.project import PACKAGE
from kafkaspec.contract.subsystem import COMMON, LAYERS, Subsystem
from kafkaspec.errors import UserError, unwritten
from kafkaspec.fleet.session import INSTALL, session
from kafkaspec.language.concrete import Concrete
from kafkaspec.lockstep.exhaustive import RefinementMapping
from kafkaspec.lockstep.shrink import shrunk
from kafkaspec.lockstep.walk import ModelState, tried_beside, walk

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext

Progress = Callable[[int, int | None, str], None]
"""Called now and then with seeds done, seeds in all, and a word on what was found."""

MAX_SHRUNK = 50
"""At most this many kinds of failure are made small; the others are told as they were found."""
PART_SEEDS, PART_S = 2_000, 5.0
"""In this process, a file is written after this many seeds or seconds."""
TASK_CALLS, MOST_TASKS = 30_000, 50_000
"""On Spark, the seeds of about this many calls are a task, and their rows a file: some seconds of work, and more where
there would be too many tasks."""
PROGRESS_S = 0.5
"""How often progress is told on Spark."""


@dataclass(frozen=True)
class Failure:
    """One kind of failure: the same clause, the same operation, the same shape of the difference."""

    clause: str
    operation: str
    """the operation at which it shows"""
    shape: str
    """what differs, without values"""
    seeds: int
    """how many seeds fail so"""
    seed: int
    """the first of them"""
    calls: int
    """of the history, made small"""
    history: str
    """calls and answers, as `kafkaspec check` reads them"""
    file: Path | None
    """where the history is kept; null if it could not be written"""


@dataclass(frozen=True)
class CampaignResult:
    """What the seeds came to, those walked in earlier runs included."""

    subsystem: str
    seeds: range
    steps: int
    """calls asked for, of each seed"""
    out: Path
    walked: int
    """seeds walked in this run; the others had a row"""
    calls: int
    """calls made, of all seeds"""
    seconds: float
    """of this run"""
    failing: int
    """seeds that fail"""
    failures: tuple[Failure, ...]
    operations: Mapping[str, int]
    """calls by operation"""
    clauses: Mapping[str, int]
    """calls by the clause that they exercised"""
    refusals: Mapping[str, int]
    """refused calls by "operation clause" """
    never_called: tuple[str, ...]
    model_states_reached: int | None = None
    """distinct states of the spec's model; None if the spec names none"""
    model_states: int | None = None
    """how many that model has"""
    not_kept: tuple[str, ...] = ()
    """histories that could not be written, and why, a line each"""

    def refused(self, operation: str) -> int:
        """How many calls of an operation were refused."""
        return sum(n for what, n in self.refusals.items() if what.split()[0] == operation)


def campaign(
    subsystem: Subsystem,
    *,
    seeds: range,
    steps: int,
    out: Path,
    master: str | None = None,
    resume: bool = True,
    progress: Progress | None = None,
) -> CampaignResult:
    """Walk every seed that has no row yet, and sum up. `master` is Spark's ("local[*]"), None for this process.

    Raises UserError for bad seeds or steps, for an `out` that holds something else, and where Spark does not start.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise UserError(f"campaigns keep their rows as Parquet, and pyarrow is not installed: {INSTALL}")
    if not seeds or seeds.step != 1 or seeds.start < 0:
        raise UserError(f"seeds {seeds.start}:{seeds.stop}: not a range of seeds from 0 on")
    if steps < 1:
        raise UserError(f"steps {steps}: a walk has at least one")
    if not subsystem.pairs():
        raise UserError(f"{subsystem.name} has nothing to walk beside its spec")
    began = time.monotonic()
    store = Store(out)
    store.open(subsystem, steps, resume)
    todo = store.missing(seeds)
    if master is None:
        _walk_here(subsystem, steps, todo, len(seeds), store, progress)
        covered = covered_in(seeds, store.files())
    else:
        with session(master) as spark:
            _walk_on_spark(spark, subsystem, steps, todo, len(seeds), store, progress)
            if left := len(store.missing(seeds)):
                raise UserError(
                    f"{store.rows}: {left:,} rows are not there: the driver and all workers must share this folder"
                )
            files = spark.parallelize(store.files(), spark.defaultParallelism)
            covered = summed(files.mapPartitions(lambda some: [covered_in(seeds, some)]).collect())
    failing, failures, not_kept = _failures(subsystem, store, seeds)
    machine = subsystem.spec.machine
    model = _model_of(subsystem)
    return CampaignResult(
        subsystem.name,
        seeds,
        steps,
        out,
        len(todo),
        sum(covered.get("operation", {}).values()),
        time.monotonic() - began,
        failing,
        failures,
        covered.get("operation", {}),
        covered.get("clause", {}),
        covered.get("refusal", {}),
        tuple(n for n, op in machine.operations.items() if op.generated and n not in covered.get("operation", {})),
        None if model is None else len(covered.get("model state", {})),
        None if model is None else len(model.concrete.reachable()[0]),
        not_kept,
    )


# ---- one seed --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Model:
    """The model that a spec's trial names as its own at a small size (`COVERAGE`), to count the states reached."""

    how: RefinementMapping[Any]
    concrete: Concrete
    digests: dict[Hashable, str] = field(default_factory=dict)

    def state(self, spec_state: Any) -> Hashable | None:
        """The model's state for a spec's, as a short text that is the same in every process."""
        values = self.how.to_model(spec_state)
        if values is None:
            return None
        state = self.concrete.freeze(values)
        key = self.concrete.key(state)
        if key not in self.digests:
            text = orjson.dumps(self.concrete.show(state), option=orjson.OPT_SORT_KEYS)
            self.digests[key] = hashlib.blake2b(text, digest_size=8).hexdigest()
        return self.digests[key]


def _model_of(subsystem: Subsystem) -> _Model | None:
    how = getattr(subsystem.layer("spec", "trial"), "COVERAGE", None)
    return None if how is None else _Model(how, Concrete(how.model, how.sizes))


def row(subsystem: Subsystem, seed: int, steps: int, model_state: ModelState | None = None) -> dict[str, Any]:
    """The row of one seed."""
    pair = subsystem.pairs()[0]
    began = time.perf_counter()
    out: dict[str, Any] = dict.fromkeys(("clause", "operation", "shape", "history"), "")
    try:
        w = walk(pair.machine, pair.driver(), seed, steps, model_state=model_state)
    except Exception as e:  # the spec itself, not what stands beside it
        said = next((s for s in str(e).splitlines() if not s.startswith("File ")), "")  # icontract says the file first
        clause = m[0] if (m := re.match(r"[A-Z]{3}-\d+", said)) else ""
        fails = f"the spec fails: {type(e).__name__}: {said}".rstrip(": ")
        broken = {"verdict": "broken", "clause": clause, "shape": fails, "steps": 0, "covered": []}
        return {"seed": seed, **out, **broken, "seconds": time.perf_counter() - began}
    if w.failure is not None:
        last = w.failure.records[-1]
        told = {
            "records": w.failure.records,
            "why": w.failure.why,
            "clause": w.failure.clause,
            "shape": w.failure.shape,
        }
        out |= {"clause": w.failure.clause, "operation": last["op"], "shape": w.failure.shape}
        out["history"] = orjson.dumps(told, default=float).decode()
    c = w.coverage
    counted = (("operation", c.operations), ("clause", c.clauses), ("refusal", c.refusals))
    covered = [{"kind": kind, "name": n, "count": k} for kind, counts in counted for n, k in sorted(counts.items())]
    covered += [{"kind": "model state", "name": str(s), "count": 1} for s in sorted(map(str, c.model_states))]
    verdict = "agree" if w.failure is None else "differ"
    done = {"seed": seed, "steps": w.steps, "verdict": verdict, **out, "covered": covered}
    return {**done, "seconds": time.perf_counter() - began}


# ---- many seeds ------------------------------------------------------------------------------------------------------
def _walk_here(
    subsystem: Subsystem, steps: int, todo: Sequence[int], total: int, store: Store, progress: Progress | None
) -> None:
    model = _model_of(subsystem)
    rows: list[dict[str, Any]] = []
    failing = 0
    written = time.monotonic()
    try:
        for n, seed in enumerate(todo, total - len(todo)):
            if progress is not None:
                progress(n, total, f"{failing:,} failing" if failing else "")
            rows.append(row(subsystem, seed, steps, None if model is None else model.state))
            failing += rows[-1]["verdict"] != "agree"
            if len(rows) >= PART_SEEDS or time.monotonic() - written > PART_S:
                store.append(rows)
                rows, written = [], time.monotonic()
    finally:  # Ctrl-C costs the walk that is under way, no more
        if rows:
            store.append(rows)


def _walk_on_spark(
    spark: SparkContext,
    subsystem: Subsystem,
    steps: int,
    todo: Sequence[int],
    total: int,
    store: Store,
    progress: Progress | None,
) -> None:
    if not todo:
        return
    size = min(TASK_CALLS // steps, math.ceil(len(todo) / spark.defaultParallelism / 4))
    size = max(1, size, len(todo) // MOST_TASKS)
    parts = [todo[at : at + size] for at in range(0, len(todo), size)]
    group = f"kafkaspec-{uuid4()}"
    walked, failing = spark.accumulator(0), spark.accumulator(0)

    def task(seeds: Sequence[int]) -> None:
        model = _model_of(subsystem)
        rows = [row(subsystem, seed, steps, None if model is None else model.state) for seed in seeds]
        store.append(rows)
        walked.add(len(rows))
        failing.add(sum(r["verdict"] != "agree" for r in rows))

    def job() -> None:
        spark.setJobGroup(group, f"walks of {subsystem.name}", interruptOnCancel=True)
        spark.parallelize(parts, len(parts)).foreach(task)

    with ThreadPoolExecutor(1) as pool:
        walks = pool.submit(job)
        try:
            while not wait([walks], PROGRESS_S).done:
                if progress is not None:
                    found = f"{failing.value:,} failing" if failing.value else ""
                    progress(total - len(todo) + walked.value, total, found)
            walks.result()
        finally:
            spark.cancelJobGroup(group)


def _schema() -> pa.Schema:
    """Of a row. `verdict` is "agree", "differ", or "broken" (the spec broke one of its own contracts); `history` is
    JSON; `covered` says how often what was exercised, by kind: operation, clause, refusal, model state."""
    import pyarrow as pa

    text = [(n, pa.string()) for n in ("verdict", "clause", "operation", "shape", "history")]
    covered = pa.list_(pa.struct([("kind", pa.string()), ("name", pa.string()), ("count", pa.int64())]))
    numbers = [("seed", pa.int64()), ("steps", pa.int32())]
    return pa.schema([*numbers, *text, ("covered", covered), ("seconds", pa.float64())])


Covered = dict[str, dict[str, int]]
"""kind -> name -> count"""


def covered_in(seeds: range, files: Iterable[Path]) -> Covered:
    """What the rows of some files cover, of these seeds, a file at a time."""
    return summed(_covered_in(seeds, file) for file in files)


def _covered_in(seeds: range, file: Path) -> Covered:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    wanted = (pc.field("seed") >= seeds.start) & (pc.field("seed") < seeds.stop)
    every = pq.read_table(file, columns=["covered"], filters=wanted).column("covered").combine_chunks().flatten()
    parts = pa.Table.from_arrays(every.flatten(), ["kind", "name", "count"])
    out: Covered = {}
    for r in parts.group_by(["kind", "name"]).aggregate([("count", "sum")]).to_pylist():
        out.setdefault(r["kind"], {})[r["name"]] = r["count_sum"]
    return out


def summed(parts: Iterable[Covered]) -> Covered:
    """Coverage added up, kinds and names in order."""
    out: dict[str, Counter[str]] = {}
    for part in parts:
        for kind, counts in part.items():
            out.setdefault(kind, Counter()).update(counts)
    return {kind: dict(sorted(counts.items())) for kind, counts in sorted(out.items())}


# ---- what is kept ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Store:
    """The directory of a campaign: `campaign.json` says whose it is, `rows` has the Parquet files, `failures` the
    histories."""

    out: Path
    rows: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", (self.out / "rows").absolute())

    def open(self, subsystem: Subsystem, steps: int, resume: bool) -> None:
        """Make the directory, or see that it is of this campaign. UserError, one line, if it is not."""
        about = {"subsystem": subsystem.name, "steps": steps, "code": code_digest(subsystem)}
        file = self.out / "campaign.json"
        try:
            self.rows.parent.mkdir(parents=True, exist_ok=True)
            if file.is_file():
                self._same(orjson.loads(file.read_bytes()), about, resume)
            elif any(self.out.iterdir()):
                raise UserError(f"{self.out}: is not empty, and holds no campaign")
            else:
                file.write_bytes(orjson.dumps(about) + b"\n")
            self.rows.mkdir(exist_ok=True)
        except orjson.JSONDecodeError:
            raise UserError(f"{file}: is not JSON") from None
        except OSError as e:
            raise UserError(f"{self.out}: {(e.strerror or str(e)).lower()}") from None

    def _same(self, there: Mapping[str, Any], about: Mapping[str, Any], resume: bool) -> None:
        if not resume:
            raise UserError(f"{self.out}: holds a campaign already; name another directory")
        said = f"{self.out}: holds a campaign of {there.get('subsystem')} with {there.get('steps')} steps"
        if {**there, "code": ""} != {**about, "code": ""}:
            raise UserError(f"{said}, not of {about['subsystem']} with {about['steps']}; name another directory")
        if there["code"] != about["code"]:
            raise UserError(f"{said}, walked with other code than today's; name another directory")

    def files(self) -> list[Path]:
        """Those that hold rows."""
        return sorted(self.rows.glob("[!_.]*.parquet"))

    def append(self, rows: Sequence[dict[str, Any]]) -> None:
        """Keep some rows, as a file that is there whole or not at all."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        name = f"{rows[0]['seed']:012}-{rows[-1]['seed']:012}.parquet"
        part = self.rows / f"_{uuid4()}"  # a task that Spark began twice may write at the same time
        pq.write_table(pa.Table.from_pylist(list(rows), schema=_schema()), part)
        os.replace(part, self.rows / name)

    def table(self, seeds: range, columns: Sequence[str] | None = None, failing: bool = False) -> pa.Table:
        """The rows of some seeds in the order of seeds; UserError for a file that cannot be read."""
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        wanted = (pc.field("seed") >= seeds.start) & (pc.field("seed") < seeds.stop)
        if failing:
            wanted &= pc.field("verdict") != "agree"
        try:
            rows = ds.dataset(self.rows, schema=_schema(), format="parquet").to_table(columns, filter=wanted)
        except (pa.ArrowInvalid, OSError) as e:
            raise UserError(f"{self.rows}: a file cannot be read: {str(e).splitlines()[0]}") from None
        return rows.sort_by("seed")

    def missing(self, seeds: range) -> Sequence[int]:
        """The seeds that have no row yet."""
        there = set(self.table(seeds, ["seed"]).column("seed").to_pylist())
        return [s for s in seeds if s not in there] if there else seeds


def code_digest(subsystem: Subsystem) -> str:
    """What the rows depend on besides seed and steps: the text of the spec's and the impl's folders, of what their
    layers share, and of lockstep and the contract."""
    pairs = subsystem.pairs()
    modules = {op.body.__module__ for pair in pairs for op in pair.machine.operations.values()}
    modules |= {pair.driver.__module__ for pair in pairs}
    folders = {Path(f).parent for m in modules if (f := sys.modules[m].__file__)}
    folders |= {PACKAGE / layer / COMMON for layer in LAYERS}
    folders |= {Path(kafkaspec.lockstep.__path__[0]), Path(kafkaspec.contract.__path__[0])}
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(p for f in folders for p in f.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


# ---- failures --------------------------------------------------------------------------------------------------------
def _failures(subsystem: Subsystem, store: Store, seeds: range) -> tuple[int, tuple[Failure, ...], tuple[str, ...]]:
    """How many seeds fail, and each kind of failure once, made small: the one of most seeds first. Also which histories
    could not be written."""
    rows = store.table(seeds, failing=True).to_pylist()
    kinds: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for r in rows:
        kinds.setdefault((r["clause"], r["operation"], r["shape"]), []).append(r)
    found: dict[tuple[str, str, str], Failure] = {}
    for n, alike in enumerate(kinds.values()):
        failure = _told(subsystem, alike, n < MAX_SHRUNK)
        key = (failure.clause, failure.operation, failure.shape)
        same = found.get(key)  # two kinds that are one when made small
        found[key] = failure if same is None else replace(same, seeds=same.seeds + failure.seeds)
    ordered = sorted(found.values(), key=lambda f: (-f.seeds, f.seed))
    folder = store.out / "failures"
    with contextlib.suppress(OSError):  # what is to be written there says why it cannot be
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*.history"):
            old.unlink()
    out, not_kept = list[Failure](), list[str]()
    for n, f in enumerate(ordered, 1):
        file = folder / f"{n:02}-{f.operation or 'spec'}.history"
        try:
            file.write_text(f.history, "utf-8")
            out.append(replace(f, file=file))
        except OSError as e:
            out.append(f)
            not_kept.append(str(unwritten(file, e)))
    return len(rows), tuple(out), tuple(not_kept)


def _told(subsystem: Subsystem, alike: Sequence[dict[str, Any]], small: bool) -> Failure:
    first = alike[0]
    if first["verdict"] == "broken":
        again = f"kafkaspec campaign {subsystem.name} --seeds {first['seed']} --out DIR"
        text = f"# seed {first['seed']}: {first['shape']}\n# {again}\n"
        return Failure(first["clause"], "", first["shape"], len(alike), first["seed"], 0, text, None)
    told = orjson.loads(first["history"])
    history = History(tuple(told["records"]), told["why"], told["clause"], told["shape"])
    pair = subsystem.pairs()[0]
    if small:
        history = shrunk(pair.machine, history, tried_beside(pair.machine, pair.driver()))
    calls = len(history.records) - 1
    text = str(replace(history, why=f"found by seed {first['seed']}\n{history.why}"))
    return Failure(first["clause"], first["operation"], history.shape, len(alike), first["seed"], calls, text, None)
