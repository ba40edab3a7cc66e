"""One run, side by side: what the performance claims rest on. `make bench` writes bench/results/<date>.md and .json.

Contestants take turns (A B C A B C ...), so that a machine that slows down slows all of them; a figure is the median of
its rounds, with the least and the greatest. Every run is a process of its own, measured from outside, and must report
the pinned counts, else the run fails. A tool that is not here is left out, and the table says how to have it.

    python bench/run.py                          everything, about an hour
    python bench/run.py --quick                  small sizes, one round, nothing written: does the harness work?
    python bench/run.py --only explore walk      some of it
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import tools
from tools import Failed, Process

from kafkaspec.export.tla import tla
from kafkaspec.language import load
from kafkaspec.models.storage.replication import KIP_320, Released

HERE = Path(__file__).parent
RESULTS = HERE / "results"

Sample = Mapping[str, float]
"""What one run measured, by figure."""


@dataclass
class Contestant:
    """Something that is measured: one call of `once` is one run."""

    name: str
    once: Callable[[], Sample]
    samples: list[Sample] = field(default_factory=list)

    def of(self, figure: str) -> list[float]:
        return [s[figure] for s in self.samples if figure in s]

    def median(self, figure: str) -> float | None:
        found = self.of(figure)
        return statistics.median(found) if found else None


@dataclass
class Contest:
    """Contestants for one job, and what the table shows of them: (heading, figure, format)."""

    title: str
    columns: Sequence[tuple[str, str, str]]
    contestants: list[Contestant]
    notes: list[str] = field(default_factory=list)

    def run(self, rounds: int) -> None:
        """Let them take turns."""
        for n in range(rounds):
            for c in self.contestants:
                print(f"{self.title}: {c.name}, round {n + 1} of {rounds}", file=sys.stderr, flush=True)
                c.samples.append(c.once())

    def median(self, name: str, figure: str) -> float | None:
        """A contestant's median; None if it was not measured."""
        return next((c.median(figure) for c in self.contestants if c.name == name), None)

    def table(self) -> str:
        """The figures in Markdown: median (least-greatest)."""
        out = [f"## {self.title}", "", "| | " + " | ".join(h for h, _, _ in self.columns) + " |"]
        out.append("|---|" + "---:|" * len(self.columns))
        for c in self.contestants:
            out.append(f"| {c.name} | " + " | ".join(_shown(c.of(figure), f) for _, figure, f in self.columns) + " |")
        return "\n".join([*out, "", *[f"{n}\n" for n in self.notes]])


def _shown(values: Sequence[float], how: str) -> str:
    if not values:
        return ""
    middle, low, high = (format(x, how) for x in (statistics.median(values), min(values), max(values)))
    return middle if low == high else f"{middle} ({low}–{high})"


# ---- exploration -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Anchor:
    """A model that other tools explore too, at a pinned size: its name, module and configurations for TLC, its counts;
    for SPIN the number of partitions, for us the sizes where they are not those of the benchmark."""

    name: str
    module: str
    configuration: str
    small: str
    distinct: int
    generated: int
    partitions: int = 0
    sizes: str = "{}"


ANCHORS = {
    "Cleaner": Anchor("cleaner", "Cleaner", "Cleaner_big", "Cleaner_small", 2_952_544, 36_083_601, 5),
    "Replication": Anchor("repl", "Repl", "Repl_n3l3e3", "Repl_n2l2e3", 3_803_182, 12_248_203),
}
QUICK = {
    "Cleaner": Anchor("cleaner", "Cleaner", "Cleaner_small", "Cleaner_small", 8_792, 64_093, 3, '{"Partition": 3}'),
    "Replication": Anchor("repl", "Repl", "Repl_n2l2e3", "Repl_n2l2e3", 4_725, 10_055, 0, '{"Replica": 2, "L": 2}'),
}

EXPLORED = (
    ("search s", "search_seconds", ".2f"),
    ("start-up s", "start_seconds", ".2f"),
    ("whole process s", "whole_seconds", ".2f"),
    ("CPU s", "cpu_seconds", ".1f"),
    ("peak MB", "peak_mb", ".0f"),
    ("M distinct/s", "distinct_rate", ".2f"),
    ("M generated/s", "generated_rate", ".1f"),
)


def explored(p: Process, search: float, start: float, generated: int, distinct: int, anchor: Anchor) -> Sample:
    """The figures of one exploration, after its counts were compared with the pinned ones."""
    if (distinct, generated) != (anchor.distinct, anchor.generated):
        raise Failed(f"{anchor.name}: {distinct} distinct, {generated} generated; pinned {anchor}: {p.output[-2000:]}")
    return {
        "search_seconds": search,
        "start_seconds": start,
        "whole_seconds": search + start,
        "cpu_seconds": p.cpu_seconds,
        "peak_mb": p.peak_mb,
        "distinct_rate": distinct / search / 1e6,
        "generated_rate": generated / search / 1e6,
    }


def script(name: str, *arguments: str, one_core: bool = False) -> tuple[Process, dict[str, Any]]:
    """One of the single-run scripts beside this one: the process, and the JSON that it prints."""
    p = tools.run([sys.executable, str(HERE / f"{name}.py"), *arguments], one_core=one_core)
    try:
        return p, json.loads(p.output[p.output.index("{") :])
    except ValueError:
        raise Failed(f"bench/{name}.py printed no JSON: {p.output[-2000:]}") from None


@dataclass
class Together:
    """A script one run of which measures several contestants: it runs again when one of them asks a second time."""

    once: Callable[[], Mapping[str, Sample]]
    latest: dict[str, Sample] = field(default_factory=dict)

    def of(self, contestant: str) -> Callable[[], Sample]:
        def measured() -> Sample:
            if contestant not in self.latest:
                self.latest = dict(self.once())
            return self.latest.pop(contestant)

        return measured


def ours(anchor: Anchor, *options: str) -> Sample:
    p, found = script("explore", anchor.name, "--sizes", anchor.sizes, *options)
    search = found["seconds"]
    return explored(p, search, p.seconds - search, found["generated"], found["distinct"], anchor)


def tlc(anchor: Anchor, start: float) -> Sample:
    """TLC prints no time finer than a second: its start-up is what it takes for a small configuration."""
    p, generated, distinct = tools.tlc(anchor.module, anchor.configuration)
    return explored(p, p.seconds - start, start, generated, distinct, anchor)


def spin(anchor: Anchor, search: str, made: tools.Verifier) -> Sample:
    """SPIN's start-up is making the verifier, once for all rounds."""
    p, transitions, states = tools.spin(made, search, 24 if anchor.distinct > 1e6 else 16)
    return explored(p, p.seconds, made.seconds, transitions, states, anchor)


def exploration(title: str, anchor: Anchor, work: Path, quick: bool) -> Contest:
    """Every tool on one anchor."""
    contest = Contest(
        f"Exploration: {title}, {anchor.distinct:,} distinct, {anchor.generated:,} generated", EXPLORED, []
    )

    def add(name: str, once: Callable[[], Sample]) -> None:
        contest.contestants.append(Contestant(name, once))

    add("kafkaspec, 1 thread", lambda: ours(anchor, "--threads", "1"))
    add("kafkaspec, 2 threads", lambda: ours(anchor, "--threads", "2"))
    add("kafkaspec, two words a state, 2 threads", lambda: ours(anchor, "--threads", "2", "--words", "2"))
    add("kafkaspec, fingerprints, 2 threads", lambda: ours(anchor, "--threads", "2", "--fingerprint"))
    if tools.tlc_jar() is None:
        contest.notes.append("TLC was not here: set TLA2TOOLS to the path of a tla2tools.jar, and have java on PATH.")
    else:
        start = tools.tlc(anchor.module, "Repl_n2l2e3" if anchor.module == "Repl" else "Cleaner_small")[0].seconds
        start = 0 if quick else start
        add("TLC, 2 workers", lambda: tlc(anchor, start))
    if not anchor.partitions:
        return contest
    if not tools.spin_here():
        contest.notes.append("SPIN was not here: install spin (a package of Debian and Ubuntu) and gcc.")
        return contest
    contest.notes.append("SPIN on 2 cores: CPU time and memory are those of one of its two processes.")
    for n, search in enumerate(tools.SPIN):
        made = tools.spin_made(search, anchor.partitions, work / f"spin{n}")
        add(f"SPIN, {search}", lambda search=search, made=made: spin(anchor, search, made))  # type: ignore[misc]
    return contest


def published(quick: bool) -> Contest:
    """The largest size of the replication protocol that was published, and TLC on what `kafkaspec export` writes of it.
    Both check every claim about states and steps; what leads to what is left out, which this search does not ask."""
    small = {"Replica": 2, "L": 2, "R": 2, "E": 3, **KIP_320}
    sizes = small if quick else {**small, "Replica": 3}
    counts = (5_973, 11_733) if quick else (737_794, 1_929_154)
    anchor = Anchor("released", "", "", "", *counts, sizes=json.dumps(sizes))
    model = load(Released)
    contest = Contest(f"The published replication, {counts[0]:,} distinct, {counts[1]:,} generated", EXPLORED, [])
    for n in (1, 2):
        name = f"kafkaspec, {n} thread{'s' * (n > 1)}"
        contest.contestants.append(Contestant(name, lambda n=n: ours(anchor, "--threads", str(n))))  # type: ignore[misc]
    if tools.tlc_jar() is None:
        contest.notes.append("TLC was not here: set TLA2TOOLS to the path of a tla2tools.jar, and have java on PATH.")
        return contest

    def by_tlc_of(sizes: Mapping[str, int | bool]) -> tuple[Process, int, int]:
        module, configuration = tla(model, sizes, deadlock=True)
        lines = configuration.splitlines(keepends=True)
        return tools.tlc_on(module, "".join(x for x in lines if x.split()[-1] not in model.leads_to))

    start = 0 if quick else by_tlc_of(small)[0].seconds

    def by_tlc() -> Sample:
        p, generated, distinct = by_tlc_of(sizes)
        return explored(p, p.seconds - start, start, generated, distinct, anchor)

    contest.contestants.append(Contestant("TLC, 2 workers", by_tlc))
    return contest


# ---- the other claims ------------------------------------------------------------------------------------------------
def walks(quick: bool) -> Contest:
    """Random walks against what Hypothesis's own machinery does."""

    def ours_walks(model: str) -> Sample:
        found = script("explore", model, "--walk", "100000" if quick else "100000000")[1]
        return {"steps_per_second": found["steps"] / found["seconds"]}

    def hypothesis() -> Sample:
        found = script("hypothesis_steps", "50" if quick else "1000")[1]
        return {"steps_per_second": found["steps"] / found["seconds"]}

    return Contest(
        "Random walks",
        [("steps/s", "steps_per_second", ",.0f")],
        [
            Contestant("kafkaspec, cleaner model", lambda: ours_walks("cleaner")),
            Contestant("kafkaspec, replication model", lambda: ours_walks("repl")),
            Contestant("Hypothesis, stateful, rules that do nothing", hypothesis),
        ],
    )


MILLIARD, WIDE = "1,000,000,000 states of 63 bits, in one word", "136,048,896 states of 76 bits, in two words"
LARGE = {MILLIARD: ("3", "999", "--bits", "21"), WIDE: ("4", "107", "--bits", "19")}
LARGE_QUICK = {MILLIARD: ("3", "29", "--bits", "21"), WIDE: ("4", "14", "--bits", "19")}


def large_runs(quick: bool) -> Contest:
    """Memory a state, where there are many."""

    def once(arguments: Sequence[str]) -> Sample:
        p, found = script("counters", *arguments)
        return {
            "seconds": found["seconds"],
            "cpu_seconds": p.cpu_seconds,
            "generated_rate": found["generated"] / found["seconds"] / 1e6,
            "peak_mb": p.peak_mb,
            "bytes_per_state": found["bytes_per_state"],
            "part": found["bytes_per_state"] / (2 * found["bits"] / 8 + 4),
        }

    return Contest(
        "Large explorations, 2 threads",
        [
            ("seconds", "seconds", ".1f"),
            ("CPU s", "cpu_seconds", ".1f"),
            ("M generated/s", "generated_rate", ".1f"),
            ("peak MB", "peak_mb", ",.0f"),
            ("bytes a state", "bytes_per_state", ".2f"),
            ("of twice the packed state and 4 bytes", "part", ".2f"),
        ],
        [
            Contestant(name, lambda given=given: once(given))  # type: ignore[misc]
            for name, given in (LARGE_QUICK if quick else LARGE).items()
        ],
        ["The memory of a state is the peak less what the process had before the run, by the number of states."],
    )


def checks(quick: bool) -> Contest:
    """Recorded traces judged: the timeline's, repeated."""

    def judged(events: int, *options: str) -> Sample:
        p, found = script("check", str(events), *options)
        return {
            "events_per_second": found["events"] / found["seconds"],
            "whole_seconds": p.seconds,
            "peak_mb": p.peak_mb,
        }

    short, long = (1_000, 2_000) if quick else (100_000, 1_000_000)
    return Contest(
        "Recorded traces judged, one core",
        [
            ("events/s", "events_per_second", ",.0f"),
            ("whole process s", "whole_seconds", ".2f"),
            ("peak MB", "peak_mb", ".0f"),
        ],
        [
            Contestant(f"timeline trace repeated, {short:,} events", lambda: judged(short)),
            Contestant(f"timeline trace repeated, {long:,} events", lambda: judged(long)),
            Contestant(f"one walk of the spec, {short:,} events, no line twice", lambda: judged(short, "--generated")),
        ],
    )


HERE_ALONE, SIDE_BY_SIDE, LOCAL, STANDALONE = (
    "one process", "two processes side by side", "Spark, {} local", "Spark, standalone, {}"
)  # fmt: skip
CORES = ("one core", "two cores")


def campaigns(quick: bool) -> dict[str, Contest]:
    """A short campaign, which shows what Spark's start costs, and one that takes two cores five minutes."""

    def once(seeds: int, *options: str) -> Sample:
        p, found = script("campaign", "timeline", str(seeds), *options)
        return {**found, "whole_seconds": p.seconds}

    def contest(title: str, seeds: int, contestants: Mapping[str, Sequence[str]]) -> Contest:
        columns = [
            ("calls/s", "calls_per_second", ",.0f"),
            ("campaign s", "seconds", ".1f"),
            ("whole process s", "whole_seconds", ".1f"),
            ("of the cores' time, walking", "walking", ".3f"),
        ]
        made = [Contestant(name, partial(once, seeds, *options)) for name, options in contestants.items()]
        return Contest(f"Campaign, {title}: timeline, {seeds:,} seeds of 100 calls", columns, made)

    local = {LOCAL.format(c): ("--master", f"local[{n}]") for n, c in enumerate(CORES, 1)}
    standalone = {STANDALONE.format(c): ("--workers", str(n)) for n, c in enumerate(CORES, 1)}
    here: dict[str, Sequence[str]] = {HERE_ALONE: ()}
    both: dict[str, Sequence[str]] = {SIDE_BY_SIDE: ("--processes", "2")}
    short, long = (40, 80) if quick else (400, 110_000)
    return {
        "campaign, short": contest("short", short, here | local),
        "campaign, long": contest("long", long, here | both | local | standalone),
    }


WATCHED = "every step judged"
SIMULATED = ("replication", "last_stable")


def simulations(quick: bool) -> Contest:
    """The simulated cluster on one core, and what its monitors cost."""

    def once(*options: str) -> Sample:
        p, found = script("simulate", *options, "6" if quick else "60")
        return {**found, "peak_mb": p.peak_mb}

    columns = [
        ("steps/s of CPU", "steps_per_second", ",.0f"),
        ("CPU s", "cpu_seconds", ".1f"),
        ("steps", "steps", ",.0f"),
        ("peak MB", "peak_mb", ",.0f"),
    ]
    made = [
        Contestant(f"{name}, {how}", partial(once, name, *options))
        for name in SIMULATED
        for how, options in ((WATCHED, ()), ("nobody judges", ("--unwatched",)))
    ]
    return Contest("Simulation: the clusters of two subsystems; 60 seeds in one process", columns, made)


def timelines() -> Contest:
    """The timeline map against copying a dict at every snapshot."""

    def once() -> dict[str, dict[str, float]]:
        out: dict[str, dict[str, float]] = {}
        for row in script("timeline")[1]["rows"]:
            out.setdefault(row["what"], {})[str(row["size"])] = row["seconds"] * 1e6
        return out

    first = once()
    columns = [(f"{int(n):,} keys, µs", n, ",.2f") for n in next(iter(first.values()))]
    runs = Together(once, dict(first))
    return Contest("Timeline map against copying", columns, [Contestant(what, runs.of(what)) for what in first])


LOG, RAFT = "storage/producer_state:Log", "examples/raft_terms:Inductive"
LATER = (RAFT, "examples/prevote:Votes", "examples/prevote:Logs", "examples/txn:Inductive")
"""Proofs that are younger than the figure which the others are compared with."""


def proofs() -> Contest:
    """The prover on every shipped proof, each at every size."""

    def once() -> dict[str, Sample]:
        rows = script("prove")[1]["proofs"]
        for row in rows:
            if not row["complete"]:
                raise Failed(f"{row['model']}: {row['proved']} of {row['obligations']} obligations proved")
        return {
            row["model"]: {
                **{figure: row[figure] for figure in ("obligations", "queries", "seconds", "cpu_seconds")},
                "slowest_seconds": row["slowest"]["seconds"],
            }
            for row in rows
        }

    columns = [
        ("obligations, all proved", "obligations", ".0f"),
        ("queries", "queries", ".0f"),
        ("seconds", "seconds", ".2f"),
        ("CPU s", "cpu_seconds", ".2f"),
        ("slowest s", "slowest_seconds", ".2f"),
    ]
    first = once()
    runs = Together(once, dict(first))
    return Contest("Proofs, for every size", columns, [Contestant(m, runs.of(m)) for m in first])


def verification() -> Contest:
    """The main job."""

    def once() -> Sample:
        p = tools.run([sys.executable, "-m", "kafkaspec", "verify"])
        return {"whole_seconds": p.seconds, "cpu_seconds": p.cpu_seconds, "peak_mb": p.peak_mb}

    columns = [
        ("whole process s", "whole_seconds", ".1f"),
        ("CPU s", "cpu_seconds", ".1f"),
        ("peak MB", "peak_mb", ".0f"),
    ]
    return Contest("Everything re-established", columns, [Contestant("kafkaspec verify", once)])


# ---- the audit -------------------------------------------------------------------------------------------------------
EVERYTHING, HEADERS = "kafkaspec audit, every check", "kafkaspec, headers and CRCs alone"
DEEP, PLAIN = "DumpLogSegments --deep-iteration", "DumpLogSegments"
BARE, BARE_CRC = "read() alone", "read() and CRC-32C alone"
SHAPES = (1, 10, 100, 1000)
"""Records a batch."""
READ = (
    ("records/s", "record_rate", ",.0f"),
    ("MB/s", "mb_rate", ",.0f"),
    ("whole process s", "whole_seconds", ".2f"),
    ("CPU s", "cpu_seconds", ".2f"),
    ("peak MB", "peak_mb", ".0f"),
)


@dataclass(frozen=True)
class Data:
    """A partition's directory that was made for a contest, and what is in it."""

    folder: Path
    records: int
    bytes: int
    batch: int

    @staticmethod
    def made(folder: Path, size: int, codec: str = "none", batch: int = 100) -> Data:
        made = script("audit", "make", str(folder), str(size), "--codec", codec, "--batch", str(batch))[1]
        return Data(folder, made["records"], made["bytes"], batch)

    @property
    def shown(self) -> str:
        return f"{self.records:,} records, {self.bytes / 1e6:,.0f} MB, {self.batch} a batch"

    def sample(self, p: Process) -> Sample:
        return {
            "record_rate": self.records / p.seconds,
            "mb_rate": self.bytes / p.seconds / 1e6,
            "whole_seconds": p.seconds,
            "cpu_seconds": p.cpu_seconds,
            "peak_mb": p.peak_mb,
        }

    def audited(self) -> Sample:
        command = [sys.executable, "-m", "kafkaspec", "audit", "--threads", "1", str(self.folder)]
        return self.sample(tools.run(command, one_core=True))

    def headers(self) -> Sample:
        p, found = script("audit", "headers", str(self.folder), one_core=True)
        if (found["records"], found["bytes"]) != (self.records, self.bytes):
            raise Failed(f"{self}: {found}")
        return self.sample(p)

    def bare(self, *options: str) -> Sample:
        p, found = script("audit", "bytes", str(self.folder), *options, one_core=True)
        if found["bytes"] != self.bytes:
            raise Failed(f"{self}: {found}")
        return self.sample(p)

    def dumped(self, *options: str) -> Sample:
        return self.sample(tools.dump_log_segments(sorted(self.folder.glob("*.log")), *options))


def audits(work: Path, quick: bool) -> dict[str, Contest]:
    """The audit against Kafka's own reader: by records a batch, by codec; what a start takes; memory; the writer."""
    mb = 1 << 20
    large, usual = (80 * mb, 40 * mb) if quick else (4200 * mb, 2100 * mb)
    small = 20 * mb if quick else 200 * mb
    kafka = tools.kafka_jars() is not None
    missing = [] if kafka else ["DumpLogSegments was not here: set KAFKASPEC_KAFKA to a folder of Kafka 4.3.0's jars."]

    def both(d: Data, what: str = "") -> list[Contestant]:
        ours = Contestant(f"{EVERYTHING}{what}", d.audited)
        return [ours, *([Contestant(f"{DEEP}{what}", lambda: d.dumped("--deep-iteration"))] if kafka else [])]

    def flat(d: Data) -> list[Contestant]:
        bare = [Contestant(BARE, d.bare), Contestant(BARE_CRC, lambda: d.bare("--crc"))]
        return [Contestant(HEADERS, d.headers), *([Contestant(PLAIN, d.dumped)] if kafka else []), *bare]

    codecs = {c: Data.made(work / c / "bench-0", small, c) for c in ("gzip", "snappy", "lz4", "zstd")}
    shapes = {n: Data.made(work / str(n) / "bench-0", large if n == 100 else usual, batch=n) for n in SHAPES}
    start = Data.made(work / "start" / "bench-0", mb)
    pinned = "Every process on one core, the files in the page cache, what is printed thrown away."

    def rates() -> Sample:
        return {f"rate{n}": rate for n, rate in script("audit", "write", one_core=True)[1].items()}

    return {
        **{f"audit, {n}": Contest(f"Audit: {d.shown}", READ, both(d), [pinned, *missing]) for n, d in shapes.items()},
        **{
            f"audit headers, {n}": Contest(f"Headers and CRCs alone: {d.shown}", READ, flat(d))
            for n, d in shapes.items()
        },
        "audit start": Contest(f"What a start takes: {start.shown}", READ, [*both(start), *flat(start)]),
        "audit codecs": Contest(
            f"Audit by codec: {small / 1e6:,.0f} MB each as compressed",
            READ,
            [c for name, d in codecs.items() for c in both(d, f", {name}")],
            ["MB/s are those of the file."],
        ),
        "writer": Contest(
            "Batches written from lists of bytes, one core",
            [(f"records/s, {n} a batch", f"rate{n}", ",.0f") for n in (1, 10, 100, 1000)],
            [Contestant("kafkaspec, uncompressed", rates)],
        ),
    }


# ---- the judge -------------------------------------------------------------------------------------------------------
TEMPLATE = HERE.parent / "targets" / "examples" / "python" / "leader_epochs.py"
CHEAP = ("timeline", "leader_epochs", "producer_state", "transaction_index")
"""Subsystems whose operations cost Kafka's classes no file, or next to none."""
PYTHON = "the template in Python"
PYTHON_ALONE, PYTHON_UNIFORM = f"{PYTHON}, on one core", f"{PYTHON}, unguided"
PARTS_OF_TIME = ("candidates", "spec", "guidance", "observing", "encoding", "comparing", "waiting", "Hypothesis")
JUDGED = (
    ("calls/s", "calls_per_second", ",.0f"),
    ("lines/s", "lines_per_second", ",.0f"),
    ("CPU s", "cpu_seconds", ".1f"),
    ("peak MB of the largest process", "peak_mb", ".0f"),
)


def judged(quick: bool) -> dict[str, Contest]:
    """Targets behind a pipe: how many calls a second, and where the judge's time goes."""
    seconds = "1" if quick else "20"

    def once(command: str, subsystem: str, *options: str) -> Sample:
        found = script("judge", command, subsystem, "--seconds", seconds, *options)[1]
        return found | {f"where_{place}": 100 * share for place, share in found.pop("where", {}).items()}

    python = f"{sys.executable} {TEMPLATE}"
    targets: list[tuple[str, str, str, tuple[str, ...]]] = [
        (PYTHON, python, "leader_epochs", ()),
        (PYTHON_ALONE, python, "leader_epochs", ("--threads", "1")),
        (PYTHON_UNIFORM, python, "leader_epochs", ("--uniform",)),
    ]
    kafka, notes = tools.kafka_target(), []
    if kafka is None:
        notes.append("Apache Kafka's classes were not here: have java on PATH, and `make kafka-target`.")
    else:
        targets += [(kafka_named(s), kafka, s, ()) for s in CHEAP]

    def contestants(*more: str) -> list[Contestant]:
        return [
            Contestant(name, lambda command=command, s=s, o=o: once(command, s, *o, *more))  # type: ignore[misc]
            for name, command, s, o in targets
        ]

    shares = [(f"{place} %", f"where_{place}", ".0f") for place in PARTS_OF_TIME]
    about = "Of the judge's time, sampled every millisecond; waiting is for answers, the target working meanwhile."
    return {
        "judge": Contest("Judged through a pipe", JUDGED, contestants(), notes),
        "judge where": Contest("Where the judge's time goes", shares, contestants("--where"), [about]),
    }


def kafka_named(subsystem: str) -> str:
    return f"Apache Kafka 4.3.0, {subsystem}"


# ---- goals -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Goal:
    """A claim: `value` is at least (or, if `most`, at most) `target`; None if it was not measured."""

    text: str
    target: float
    value: float | None
    unit: str = "×"
    most: bool = False

    @property
    def met(self) -> str:
        if self.value is None:
            return "not measured"
        return "yes" if (self.value <= self.target if self.most else self.value >= self.target) else "no"

    def row(self) -> str:
        sign = "≤" if self.most else "≥"
        shown = "" if self.value is None else f"{self.value:,.{0 if self.value >= 1000 else 2}f} {self.unit}"
        return f"| {self.text} | {sign} {self.target:,.12g} {self.unit} | {shown} | {self.met} |"


Figure = tuple[str, str, str]
"""A contest's key, a contestant's name, a figure."""


def goals(contests: Mapping[str, Contest]) -> list[Goal]:
    """Every claim beside its measure."""

    def m(key: str, name: str, figure: str) -> float | None:
        return contests[key].median(name, figure) if key in contests else None

    def ratio(above: Figure, below: Figure) -> float | None:
        a, b = m(*above), m(*below)
        return a / b if a is not None and b else None

    two, out = "kafkaspec, 2 threads", list[Goal]()
    for key, title in (("Cleaner", "cleaner model"), ("Replication", "replication model")):
        search, whole, memory = "search_seconds", "whole_seconds", "peak_mb"
        tlc_is, words = "TLC, 2 workers", "kafkaspec, two words a state, 2 threads"
        prints = "kafkaspec, fingerprints, 2 threads"
        out += [
            Goal(f"search, {title}, against TLC", 120, ratio((key, tlc_is, search), (key, two, search))),
            Goal(f"whole process from a cold start, {title}, against TLC", 25,
                 ratio((key, tlc_is, whole), (key, two, whole))),
            Goal(f"peak memory, {title}, part of TLC's", 0.1,
                 ratio((key, two, memory), (key, tlc_is, memory)), most=True),
            Goal(f"speed of two words a state, {title}", 0.5, ratio((key, two, search), (key, words, search))),
            Goal(f"speed of fingerprints, {title}", 0.5, ratio((key, two, search), (key, prints, search))),
        ]  # fmt: skip
    three, by_tlc = ("published", two, "search_seconds"), ("published", "TLC, 2 workers", "search_seconds")
    out.append(Goal("search, the published replication", 2, m(*three), "s", most=True))
    out.append(Goal("search, the published replication, against TLC", 150, ratio(by_tlc, three)))
    for rival, times in (("SPIN, BFS", 20), ("SPIN, BFS, 2 cores", 1)):
        value = ratio(("Cleaner", rival, "search_seconds"), ("Cleaner", two, "search_seconds"))
        out.append(Goal(f"search, cleaner model, against {rival}", times, value))
    for name in LARGE:
        out.append(
            Goal(f"memory, {name}, of twice the packed state and 4 bytes", 1, m("large", name, "part"), most=True)
        )
    out.append(Goal(f"peak memory, {MILLIARD}", 20e9 / 2**20, m("large", MILLIARD, "peak_mb"), "MB", most=True))
    walked = [m("walk", f"kafkaspec, {x} model", "steps_per_second") for x in ("cleaner", "replication")]
    known = [w for w in walked if w is not None]
    out.append(Goal("random walks, the slower model", 10e6, min(known) if known else None, "steps/s"))
    if "check" in contests:
        short, long, walk = (c.name for c in contests["check"].contestants)
        rate, memory = "events_per_second", "peak_mb"
        out += [
            Goal(f"events judged, {long}", 100_000, m("check", long, rate), "events/s"),
            Goal(f"events judged, {walk}", 100_000, m("check", walk, rate), "events/s"),
            Goal("speed on the longest trace, of that on the shortest", 0.9,
                 ratio(("check", long, rate), ("check", short, rate))),
            Goal("memory on the longest trace, of that on the shortest", 1.1,
                 ratio(("check", long, memory), ("check", short, memory)), most=True),
        ]  # fmt: skip
    if "prove" in contests:
        cpu = {c.name: c.median("cpu_seconds") or 0.0 for c in contests["prove"].contestants}
        earlier = [seconds for name, seconds in cpu.items() if name not in LATER]
        out += [
            Goal(f"CPU of {len(earlier)} proofs that took 71 s before definedness and types were obligations",
                 71, sum(earlier), "s", most=True),
            Goal(f"CPU of the proof of {LOG}", 20, cpu[LOG], "s", most=True),
            Goal(f"CPU of the proof of {RAFT}", 30, cpu[RAFT], "s", most=True),
        ]  # fmt: skip
    if "audit, 100" in contests:
        time = "cpu_seconds"
        for n in SHAPES:
            deep, flat = f"audit, {n}", f"audit headers, {n}"
            out += [
                Goal(f"every check, {n} a batch, CPU time of DumpLogSegments --deep-iteration of the audit's", 20,
                     ratio((deep, DEEP, time), (deep, EVERYTHING, time))),
                Goal(f"headers and CRCs alone, {n} a batch, CPU time of DumpLogSegments of ours", 6,
                     ratio((flat, PLAIN, time), (flat, HEADERS, time))),
            ]  # fmt: skip
        out += [
            Goal("peak memory of the audit, one log of 4 GB", 300,
                 m("audit, 100", EVERYTHING, "peak_mb"), "MB", most=True),
            Goal("records written, 100 a batch", 1_000_000,
                 m("writer", "kafkaspec, uncompressed", "rate100"), "records/s"),
        ]  # fmt: skip
    if "judge" in contests:
        java = [m("judge", kafka_named(s), "calls_per_second") for s in CHEAP]
        there = [n for n in java if n is not None]
        out += [
            Goal("calls judged through a pipe, the template in Python", 20_000,
                 m("judge", PYTHON, "calls_per_second"), "calls/s"),
            Goal("calls judged through a pipe, Apache Kafka, the slowest of the cheap subsystems", 10_000,
                 min(there) if there else None, "calls/s"),
        ]  # fmt: skip
    if "campaign, long" in contests:
        short, long = "campaign, short", "campaign, long"
        alone, spark = m(short, HERE_ALONE, "seconds"), m(short, LOCAL.format(CORES[0]), "seconds")
        start = None if alone is None or spark is None else spark - alone
        out.append(Goal("what Spark's start adds to a short campaign", 10, start, "s", most=True))
        for kind in (LOCAL, STANDALONE):
            calls = ratio(*((long, kind.format(c), "calls_per_second") for c in reversed(CORES)))
            walking = ratio(*((long, kind.format(c), "walking") for c in reversed(CORES)))
            what = f"{kind.format('the second core')}: what it adds, of the first"
            out.append(Goal(f"{what}, by the clock", 0.9, None if calls is None else calls - 1))
            out.append(Goal(f"{what}, where both are as fast", 0.9, None if walking is None else 2 * walking - 1))
    for name in SIMULATED if "simulate" in contests else ():
        steps = m("simulate", f"{name}, {WATCHED}", "steps_per_second")
        out.append(Goal(f"simulated steps a second of one core, {name}, {WATCHED}", 20_000, steps, "steps/s"))
    out.append(Goal("kafkaspec verify", 300, m("verify", "kafkaspec verify", "whole_seconds"), "s", most=True))
    return out


# ---- the page --------------------------------------------------------------------------------------------------------
def page(date: str, rounds: int, contests: Mapping[str, Contest], found: Sequence[Goal]) -> str:
    """The results in Markdown."""
    lines = [f"# Measured on {date}", "", f"{rounds} rounds, taking turns; median (least–greatest).", ""]
    lines += ["| | |", "|---|---|", *[f"| {k} | {v} |" for k, v in tools.machine().items()], ""]
    lines += ["## Goals", "", "| claim | goal | measured | met |", "|---|---:|---:|---|", *[g.row() for g in found], ""]
    return "\n".join([*lines, *[c.table() for c in contests.values()]]).rstrip() + "\n"


def as_json(date: str, rounds: int, contests: Mapping[str, Contest], found: Sequence[Goal]) -> dict[str, Any]:
    """The results with every sample."""
    return {
        "date": date,
        "rounds": rounds,
        "machine": tools.machine(),
        "goals": [{"claim": g.text, "target": g.target, "value": g.value, "unit": g.unit, "met": g.met} for g in found],
        "contests": {k: {c.name: c.samples for c in x.contestants} for k, x in contests.items()},
    }


PARTS = (
    "explore",
    "published",
    "large",
    "walk",
    "check",
    "timeline",
    "prove",
    "audit",
    "judge",
    "campaign",
    "simulate",
    "verify",
)


def main() -> int:
    """Measure, print the page, write it unless --quick."""
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    p.add_argument("--quick", action="store_true", help="small sizes, one round, nothing written")
    p.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    p.add_argument("--rounds", type=int, default=5, help="runs of each contestant (5)")
    options = p.parse_args()
    rounds = 1 if options.quick else options.rounds
    makers: dict[str, Callable[[], Contest]] = {
        "published": lambda: published(options.quick),
        "walk": lambda: walks(options.quick),
        "large": lambda: large_runs(options.quick),
        "check": lambda: checks(options.quick),
        "timeline": timelines,
        "simulate": lambda: simulations(options.quick),
        "prove": proofs,
        "verify": verification,
    }
    contests: dict[str, Contest] = {}
    with tempfile.TemporaryDirectory() as work:
        try:
            for part in options.only:
                if part == "explore":
                    for title, anchor in (QUICK if options.quick else ANCHORS).items():
                        contests[title] = exploration(title, anchor, Path(work), options.quick)
                elif part == "audit":
                    contests |= audits(Path(work), options.quick)
                elif part == "judge":
                    contests |= judged(options.quick)
                elif part == "campaign":
                    contests |= campaigns(options.quick)
                else:
                    contests[part] = makers[part]()
            for c in contests.values():
                c.run(rounds)
        except Failed as e:
            print(f"bench: {e}", file=sys.stderr)
            return 1
    date = datetime.date.today().isoformat()
    found = goals(contests)
    text = page(date, rounds, contests, found)
    print(text)
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        name = date if options.only == PARTS else "-".join([date, *options.only])
        (RESULTS / f"{name}.md").write_text(text)
        (RESULTS / f"{name}.json").write_text(json.dumps(as_json(date, rounds, contests, found), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
