"""`kafkaspec`: the commands, their options and their help. Exit status 0 accepted, 1 rejected, 2 could not judge.

Start-up is part of every run, so this module imports nothing but typer; a command imports its engine when it runs.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from kafkaspec import __version__
from kafkaspec.errors import ENDINGS, INTERRUPTED, UserError


class _Commands(TyperGroup):
    """The commands. None is ended by what it runs: not by an exit in somebody's file, nor by a panic of native code."""

    def invoke(self, ctx: Any) -> object:
        try:
            return super().invoke(ctx)
        except (Exception, *ENDINGS):
            raise
        except BaseException as e:
            import traceback

            from kafkaspec.contract.project import unforeseen

            if os.environ.get("KAFKASPEC_TRACEBACK"):
                traceback.print_exception(e)
            raise UserError(unforeseen(e)) from e


app = typer.Typer(
    name="kafkaspec",
    cls=_Commands,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Begin with:
  kafkaspec verify                      everything that is claimed, as one table
  kafkaspec explain TML-1               one rule in all its forms
  kafkaspec check recording.ndjson      is this what Kafka does?
  kafkaspec explore cleaner             every interleaving, at a small size
\b
Exit status: 0 accepted, 1 rejected, 2 could not judge (and why).
""",
)


def _complete_subsystem(incomplete: str) -> list[str]:
    from kafkaspec.contract.subsystem import subsystems

    return [n for n in subsystems() if n.startswith(incomplete)]


def _complete_model(incomplete: str) -> list[str]:
    from kafkaspec.cli.names import model_modules

    return [n for n in model_modules() if n.startswith(incomplete)]


def _complete_clause(incomplete: str) -> list[str]:
    from kafkaspec.contract.subsystem import subsystems

    begun = incomplete.upper()
    meant = [s for s in subsystems().values() if s.prefix[: len(begun)] == begun[: len(s.prefix)]]
    return [c.id for s in meant for c in s.clauses if c.id.startswith(begun)]


Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of tables (schemas: the docs, JSON).")
]
Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "--size", "-s", metavar="NAME=N", help="A sort's or constant's size, over the pinned one; repeatable."
    ),
]
ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A subsystem or example (cleaner), a file (my/lease.py), a module; with :Class for one model of several.",
        autocompletion=_complete_model,
        show_default=False,
    ),
]
SubsystemName = Annotated[
    str,
    typer.Argument(
        metavar="SUBSYSTEM", help="Such as timeline.", autocompletion=_complete_subsystem, show_default=False
    ),
]
MOST_SECONDS = 10**6
"""that an option takes: what any clock of the system can wait for"""
MOST_NUMBER = 10**18
"""that an option takes: 64 bits hold it, and what is added to it"""


def _number(value: float | None) -> float | None:
    """An option's value; usage is wrong if it is none, which is neither below a bound nor above it."""
    if value is not None and value != value:
        raise typer.BadParameter("nan is not a number")
    return value


WHICH_CORES = "--threads: with --spark its master says how many cores there are"
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the result as a page for people.")]


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> int:
    """Apache Kafka's core, formally specified: run it, explore it, prove it, and judge real systems by it."""
    if version:
        typer.echo(f"kafkaspec {__version__}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)
    return 0


@app.command(
    short_help="Re-establish everything that is claimed; one table.",
    epilog="""\b
Examples:
  kafkaspec verify                      all subsystems
  kafkaspec verify timeline --json      one, for machines
  kafkaspec verify timeline --only 'impl against spec' --seeds 1000
""",
)
def verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SUBSYSTEM]...", help="All, if none is named.", autocompletion=_complete_subsystem),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=MOST_NUMBER, help="Seeds for impl against spec.")] = 200,
    only: Annotated[
        str | None,
        typer.Option(metavar="CHECK", help="This check alone: clauses, models, proofs, 'impl against spec', ..."),
    ] = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="Do not ask again what held, if nothing has changed for it since.")
    ] = False,
    json: Json = False,
) -> int:
    """Re-establish everything that is claimed, and print it as one table.

    Clauses complete, models explored at their pinned counts, invariants proved for all sizes, spec walked against
    models and impl against spec, recordings of the real Kafka accepted, altered ones rejected. All cores are used.
    """
    from kafkaspec.cli.verify import run

    return run(names or [], seeds=seeds, only=only, changed=changed, json=json)


@app.command(
    short_help="Visit every reachable state of a model at a given size.",
    epilog="""\b
Examples:
  kafkaspec explore cleaner                            at the pinned sizes
  kafkaspec explore cleaner -s Partition=3 -s Thread=1
  kafkaspec explore my/lease.py:Lease -s Client=3 --html lease.html
  kafkaspec explore cleaner --symmetry Partition --max-states 10000000
  kafkaspec explore cleaner --walk 7 --steps 1000000   one random run; the seed replays it
\b
Exit status: 0 all checked claims hold, 1 a violation or an action never taken, 2 a limit was reached first.
""",
)
def explore(
    model: ModelName,
    size: Sizes = None,
    threads: Annotated[int, typer.Option(min=1, max=256, help="Threads.")] = 2,
    symmetry: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SORT",
            help="Explore up to renaming of this sort's elements, without leads-to claims; repeatable.",
        ),
    ] = None,
    max_states: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_NUMBER, metavar="N", help="Stop after N distinct states, or a few more."),
    ] = None,
    max_memory: Annotated[
        int | None, typer.Option(min=64, max=2**30, metavar="MB", help="Stop at MB MiB of memory.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the run's state here, and go on from it if it is there.")
    ] = None,
    ghosts: Annotated[bool, typer.Option("--ghosts", help="Keep the variables that only proofs need.")] = False,
    deadlock: Annotated[bool, typer.Option("--deadlock", help="The system may come to a stop.")] = False,
    walk: Annotated[
        int | None, typer.Option(min=0, max=MOST_NUMBER, metavar="SEED", help="A random walk instead.")
    ] = None,
    steps: Annotated[
        int,
        typer.Option(
            min=1, max=MOST_NUMBER, metavar="N", help="Steps of the random walk, rounded up to all of its walkers."
        ),
    ] = 1_000_000,
    schedule: Annotated[str, typer.Option(metavar="NAME", help="Of the walk: uniform, swarm or priority.")] = "uniform",
    html: Html = None,
    json: Json = False,
) -> int:
    """Visit every reachable state of a model at a given size, and show the shortest way to whatever is wrong."""
    from kafkaspec.cli import engines

    if walk is not None:
        given = {"--symmetry": symmetry, "--max-states": max_states, "--max-memory": max_memory, "--resume": resume}
        for option in [n for n, value in given.items() if value]:
            raise UserError(f"{option}: a random walk has none; it has --size, --ghosts, --steps and --schedule")
        return engines.walk(
            model, size or [], seed=walk, steps=steps, schedule=schedule, ghosts=ghosts, html=html, json=json
        )
    return engines.explore(
        model,
        size or [],
        threads=threads,
        symmetry=symmetry or [],
        max_states=max_states,
        max_memory_mb=max_memory,
        checkpoint=resume,
        ghosts=ghosts,
        deadlock=deadlock,
        html=html,
        json=json,
    )


@app.command(
    short_help="Prove a model's invariants for all sizes.",
    epilog="""\b
Examples:
  kafkaspec prove cleaner                       every invariant, for any number of everything
  kafkaspec prove cleaner --only one_thread     one of them
  kafkaspec prove cleaner --steps 8 -s Partition=4   bounded: no violation within 8 steps
\b
Exit status: 0 all proved, 1 refuted, or an action or first state is impossible, 2 unknown
(an unknown is never a proof).
""",
)
def prove(
    model: ModelName,
    only: Annotated[
        list[str] | None, typer.Option(metavar="CLAIM", help="This claim and what it rests on; repeatable.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=86_400, callback=_number, metavar="S", help="Seconds for each obligation.")
    ] = 10.0,
    steps: Annotated[
        int | None, typer.Option(min=1, max=MOST_NUMBER, metavar="K", help="Search K steps from the start instead.")
    ] = None,
    size: Sizes = None,
    html: Html = None,
    json: Json = False,
) -> int:
    """Prove a model's invariants for all sizes; what fails is shown as a counterexample to induction."""
    from kafkaspec.cli import engines

    return engines.prove(model, only=only or [], timeout_s=timeout, steps=steps, words=size or [], html=html, json=json)


@app.command(
    short_help="Judge recorded traces: does the spec explain every answer?",
    epilog="""\b
Examples:
  kafkaspec check recording.ndjson              is this what Kafka does?
  kafkaspec check timeline*.ndjson --strict     known deviations of released Kafka are rejected too
  producer | kafkaspec check - --subsystem timeline
  kafkaspec check recording.ndjson --html verdict.html
\b
Exit status: 0 accepted, 1 rejected (step, clause, values), 2 could not judge.
""",
)
def check(
    traces: Annotated[
        list[str],
        typer.Argument(metavar="TRACE...", help="Recordings, a JSON line a call; - for input.", show_default=False),
    ],
    subsystem: Annotated[
        str | None,
        typer.Option(
            help="Judge by this one; else the operations and the file name tell.", autocompletion=_complete_subsystem
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Reject known deviations of released Kafka as well.")
    ] = False,
    release: Annotated[
        str | None, typer.Option(metavar="VERSION", help="The release of Kafka that was recorded, if not the newest.")
    ] = None,
    html: Html = None,
    json: Json = False,
) -> int:
    """Judge recorded traces: does the spec explain every answer?"""
    from kafkaspec.cli import engines

    return engines.check(traces, subsystem=subsystem, strict=strict, release=release, html=html, json=json)


@app.command(
    short_help="Judge somebody else's implementation, behind a pipe.",
    epilog="""\b
Examples:
  kafkaspec judge --target ./my-target                       every subsystem that it offers
  kafkaspec judge --target 'python3 mine.py' leader_epochs --seed 7 --examples 5000
  kafkaspec judge --target targets/kafka/kafka.sh timeline --time 60 --html judged.html
  kafkaspec judge --target ./my-target --spark 'local[*]' --examples 100000 --junit judged.xml
  kafkaspec judge --target ./my-target timeline --replay out/judge/timeline-1.ndjson
\b
How to write a target: the docs, Judge and Protocol. Exit status: 0 accepted, 1 rejected, 2 could not judge.
""",
)
def judge(
    target: Annotated[
        str, typer.Option(metavar="COMMAND", help="Starts the target. Split into words as a shell does; no shell runs.")
    ],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SUBSYSTEM]...", help="All that it offers, if none is named.", autocompletion=_complete_subsystem
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=MOST_NUMBER, metavar="N", help="The same seed asks the same histories.")
    ] = 0,
    examples: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_NUMBER, metavar="N", help="Histories a subsystem: 1000, if no time is given."),
    ] = None,
    time: Annotated[
        float | None,
        typer.Option(min=0.1, max=MOST_SECONDS, callback=_number, metavar="S", help="Seconds a subsystem."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Reject known deviations of released Kafka as well.")
    ] = False,
    uniform: Annotated[
        bool, typer.Option("--uniform", help="Every call alike: no models, no guidance. A yardstick.")
    ] = False,
    min_coverage: Annotated[
        float,
        typer.Option(
            min=0,
            max=100,
            callback=_number,
            metavar="PERCENT",
            help="Of the rules' conditions, decided both ways, to accept.",
        ),
    ] = 75.0,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="End with the first rejection.")] = False,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=MOST_SECONDS, callback=_number, metavar="S", help="Seconds for one answer.")
    ] = 10.0,
    replay: Annotated[
        str | None, typer.Option(metavar="FILE", help="Ask this history's calls again instead; - reads standard input.")
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Rejected histories are kept there, each as a trace.")
    ] = Path("out/judge"),
    record: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep every accepted line there, as traces.")
    ] = None,
    spark: Annotated[
        str | None, typer.Option(metavar="MASTER", help="Spread over a Spark master (local[*]); else on this machine.")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=256, metavar="N", help="Cores to use, with a target each; all, if not given."),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result as JUnit's XML, a test case a clause.")
    ] = None,
    html: Html = None,
    json: Json = False,
) -> int:
    """Drive somebody else's implementation, behind a pipe, and judge every answer by the spec.

    Histories come from tours of the models, from random generation guided towards what was not seen, and from
    Hypothesis. Judging goes on after a rejection; each kind of rejection is made small, and shown with the command that
    asks it again.
    """
    from kafkaspec.cli.judge import Options
    from kafkaspec.cli.judge import judge as run
    from kafkaspec.cli.judge import replay as ask_again

    if spark is not None and threads is not None:
        raise UserError(WHICH_CORES)
    wanted = Options(
        target,
        seed,
        1000 if examples is None and time is None else examples,
        time,
        strict,
        uniform,
        timeout,
        min_coverage,
        fail_fast,
        out,
        record,
        spark,
        threads,
        html,
        junit,
        json,
    )
    return run(names or [], wanted) if replay is None else ask_again(names or [], replay, wanted)


@app.command(
    short_help="Our implementation as a target of the judge.",
    epilog="""\b
Examples:
  kafkaspec judge --target 'kafkaspec serve'                 the judge accepts what is right
  kafkaspec serve timeline                                   type its lines by hand: the docs, Protocol
""",
)
def serve(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SUBSYSTEM]...", help="All, if none is named.", autocompletion=_complete_subsystem),
    ] = None,
) -> int:
    """Answer the judge's lines on standard input, with our implementation."""
    from kafkaspec.cli.judge import serve as run

    return run(names or [])


@app.command(
    short_help="Walk impl against spec over many seeds; shrink what fails.",
    epilog="""\b
Examples:
  kafkaspec campaign timeline --seeds 0:1000 --steps 200 --out out/timeline
  kafkaspec campaign cleaner --seeds 0:100000 --out out/cleaner --spark 'local[*]'
\b
The same command again goes on where it was stopped.
""",
)
def campaign(
    subsystem: SubsystemName,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Results as Parquet; resumed if they are there.")],
    seeds: Annotated[str, typer.Option(metavar="FIRST:END", help="Seeds; the end is not included.")] = "0:1000",
    steps: Annotated[int, typer.Option(min=1, max=MOST_NUMBER, help="Operations a seed.")] = 200,
    spark: Annotated[
        str | None, typer.Option(metavar="MASTER", help="Spread over a Spark master (local[*]); else in this process.")
    ] = None,
    json: Json = False,
) -> int:
    """Walk impl against spec over many seeds; shrink what fails."""
    from kafkaspec.cli import engines
    from kafkaspec.cli.names import seeds as parse

    return engines.campaign(subsystem, seeds=parse(seeds), steps=steps, out=out, master=spark, json=json)


@app.command(
    short_help="Run a whole cluster from a seed, with faults; judge every step.",
    epilog="""\b
Examples:
  kafkaspec simulate replication                       200 seeds, on all cores
  kafkaspec simulate replication --seeds 0:5000 --schedule swarm
  kafkaspec simulate replication --time 60 --json
  kafkaspec simulate my/cluster.py:SCENARIO --seed 7   a scenario of your own
  kafkaspec simulate --replay out/simulate/replication-7-swarm.json
\b
The same seed is the same run on any machine. What fails is made small, and kept.
Exit status: 0 no rule broken, 1 one was, 2 could not run.
""",
)
def simulate(
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="[SCENARIO]",
            help="A subsystem that has one (replication, last_stable), or a file (my/cluster.py:NAME).",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=10**18 - 2, metavar="N", help="This seed alone.")] = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="FIRST:END", help="Seeds; the end is not included. 0:200, if no time is given."),
    ] = None,
    time: Annotated[
        float | None,
        typer.Option(
            min=0.1, max=MOST_SECONDS, callback=_number, metavar="S", help="As many seeds as S seconds are enough for."
        ),
    ] = None,
    schedule: Annotated[
        str, typer.Option(metavar="NAME", help="uniform, swarm, priority; mixed: one after the other.")
    ] = "mixed",
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Make the run of this file again instead, and show its history.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Of a replay every step, routine too.")] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Runs that fail are kept there, as files to replay and to read.")
    ] = Path("out/simulate"),
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep what came of each seed here, and go on from it.")
    ] = None,
    spark: Annotated[
        str | None, typer.Option(metavar="MASTER", help="Spread over a Spark master (local[*]); else on this machine.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, max=256, metavar="N", help="Cores to use; all, if not given.")
    ] = None,
    json: Json = False,
) -> int:
    """Run a whole system from a seed: nodes, a network that loses and delays, disks that forget in a crash, clocks that
    drift. Every step is judged by the rules; what breaks one is made small and shown as a history."""
    from kafkaspec.cli import simulate as engine

    if spark is not None and threads is not None:
        raise UserError(WHICH_CORES)
    if replay is not None:
        given = {"--seed": seed, "--seeds": seeds, "--time": time, "--spark": spark, "--threads": threads}
        given["--resume"] = None if resume is None else str(resume)
        for option in [n for n, value in given.items() if value is not None]:
            raise UserError(f"{option}: a replay has none; the file says what happens")
        return engine.replay(scenario, replay, full=full, json=json)
    if full:
        raise UserError("--full: is for a replay; the files in --out are made for it")
    return engine.simulate(
        scenario,
        seed=seed,
        seeds=seeds,
        time_s=time,
        schedule=schedule,
        resume=resume,
        out=out,
        threads=threads,
        spark=spark,
        json=json,
    )


@app.command(
    short_help="Break a subsystem on purpose; show who notices.",
    epilog="""\b
Examples:
  kafkaspec mutants timeline            which detector catches which fault
\b
Exit status: 0 all killed or excused with a reason, 1 a survivor.
""",
)
def mutants(subsystem: SubsystemName, json: Json = False) -> int:
    """Break the subsystem on purpose, one fault at a time, and show who notices: the kill matrix."""
    from kafkaspec.cli import engines

    return engines.mutants(subsystem, json=json)


@app.command(
    short_help="Begin a subsystem of your own: a small one, whole.",
    epilog="""\b
Examples:
  kafkaspec new storage quota QTA        then: kafkaspec verify quota
\b
In a checkout of kafkaspec the files are added to it. Elsewhere the current
folder is made a project (kafkaspec.toml): every command that runs in it finds
its subsystems beside the built-in ones. Nothing is overwritten.
""",
)
def new(
    area: Annotated[str, typer.Argument(metavar="AREA", help="The folder: storage, or a new one.", show_default=False)],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name in every folder.", show_default=False)],
    prefix: Annotated[
        str, typer.Argument(metavar="PREFIX", help="Of its clauses: three capital letters.", show_default=False)
    ],
    json: Json = False,
) -> int:
    """Write a small subsystem in all its forms (spec, impl, model, proof, tests, mutants, page), to be replaced rule by
    rule."""
    from kafkaspec.cli.new import run

    return run(area, name, prefix, json=json)


@app.command(
    short_help="Write a model as TLA+, SMT-LIB or ITF traces.",
    epilog="""\b
Examples:
  kafkaspec export cleaner --to tla --out out/        a TLA+ module and its configuration
  kafkaspec export cleaner --to smtlib --out out/     the proof obligations, for every size
  kafkaspec export cleaner --to itf --out out/        witnesses and violations as ITF traces
""",
)
def export(
    model: ModelName,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="tla, smtlib or itf.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to; made if need be.")],
    size: Sizes = None,
    json: Json = False,
) -> int:
    """Write a model as text that other tools read."""
    from kafkaspec.cli import engines

    return engines.export(model, size or [], to=to, out=out, json=json)


@app.command(
    short_help="Check the log directories that brokers left: fsck for Kafka.",
    epilog="""\b
Examples:
  kafkaspec audit /var/lib/kafka/data                 a broker's log directory, or a folder of such
  kafkaspec audit /disk1/kafka /disk2/kafka           several: of one broker, or of several of a cluster
  kafkaspec audit data/orders-0                       a partition
  kafkaspec audit bundle/orders-0/*                   some of its files
  kafkaspec audit bundle.tar.gz                       an archive of any of these
  kafkaspec audit /mnt/* --html audit.html --spark 'local[*]'
  kafkaspec audit /var/lib/kafka/data --watch 60      a live broker: what has changed, until Ctrl-C
\b
Exit status: 0 sound, 1 findings, 2 could not judge. Nothing is ever written to the directories.
""",
)
def audit(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Log directories, folders of them, partitions, files of one; archives of these.",
            show_default=False,
        ),
    ],
    spark: Annotated[
        str | None, typer.Option(metavar="MASTER", help="Spread over a Spark master (local[*]); else on this machine.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, max=256, metavar="N", help="Cores to use; all of them, if not given.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Tell every finding, not the first few of a rule.")] = False,
    watch: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=MOST_SECONDS,
            callback=_number,
            metavar="SECONDS",
            help="Look again at this interval; tell what has changed.",
        ),
    ] = None,
    html: Html = None,
    json: Json = False,
) -> int:
    """Check the log directories that brokers left: batches, indexes, producers, transactions, epochs, checkpoints,
    compaction, leftovers of a crash, and replicas against each other."""
    from kafkaspec.cli import audit as command

    if spark is not None and threads is not None:
        raise UserError(WHICH_CORES)
    if watch is not None:
        if html is not None:
            raise UserError("--watch writes no page: leave out --html")
        return command.watch(paths, every_s=watch, master=spark, threads=threads, everything=everything, json=json)
    return command.run(paths, master=spark, threads=threads, html=html, everything=everything, json=json)


@app.command(
    short_help="Print one rule in all its forms, or what a subsystem is.",
    epilog="""\b
Examples:
  kafkaspec explain TML-1
  kafkaspec explain offset_index
  kafkaspec explain CLN-7 --json
""",
)
def explain(
    clause: Annotated[
        str,
        typer.Argument(
            metavar="CLAUSE",
            help="Its id, such as TML-1; or a subsystem.",
            autocompletion=_complete_clause,
            show_default=False,
        ),
    ],
    json: Json = False,
) -> int:
    """Print one rule in all its forms: sentence, source, spec, impl, audit, model, proof, tests, mutants; and the known
    deviations from it. Of a subsystem: its rules, and its operations, records and first state as the judge's protocol
    has them."""
    from kafkaspec.cli.explain import run

    return run(clause, json=json)


@app.command(
    short_help="Show what stands in segments, indexes, snapshots and checkpoints.",
    epilog="""\b
Examples:
  kafkaspec dump data/orders-0/00000000000000000000.log
  kafkaspec dump orders-0/*.log --offset 1200 --no-records
  kafkaspec dump orders-0/00000000000000000000.log --json
  kafkaspec dump orders-0/00000000000000000000.timeindex orders-0/leader-epoch-checkpoint
\b
Exit status: 0 sound, 1 something is damaged or cut, 2 a file cannot be read.
""",
)
def dump(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of a broker's log directory.", show_default=False),
    ],
    offset: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, metavar="N", help="Begin at the batch that holds this offset.")
    ] = None,
    records: Annotated[bool, typer.Option("--records/--no-records", help="The records too, or headers alone.")] = True,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON line for each batch or entry.")] = False,
) -> int:
    """Show what stands in segments, indexes, snapshots and checkpoints: a batch a line, its records below it.

    What is damaged is shown with the rule and the byte, and the dump goes on behind it. Nothing is written.
    """
    from kafkaspec.cli.dump import run

    return run(files, offset=offset, records=records, json=json)


@cache
def _command() -> Any:
    """All commands with their options, read once in a process."""
    return typer.main.get_command(app)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit. Whatever goes wrong is one line on standard error, and with --json a document."""
    from kafkaspec.cli.output import end, promise, reader_gone
    from kafkaspec.contract.project import unforeseen

    promise("--json" in (sys.argv[1:] if arguments is None else arguments))
    try:
        if not __debug__:
            raise UserError("Python leaves out contracts and assertions (-O, PYTHONOPTIMIZE): nothing would be checked")
        code = _command()(arguments, prog_name="kafkaspec", standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:
            raise UserError("interrupted", exit_code=INTERRUPTED)
    except UserError as e:
        code = end(e)
    except typer.TyperException as e:
        code = end(UserError(_usage(e)))
    except BrokenPipeError:
        reader_gone()
    except OSError as e:
        code = end(UserError(f"{e.filename}: {(e.strerror or str(e)).lower()}" if e.filename else str(e)))
    except MemoryError:
        code = end(UserError("out of memory"))
    except Exception as e:
        if os.environ.get("KAFKASPEC_TRACEBACK"):
            raise
        code = end(UserError(unforeseen(e)))
    sys.exit(code)


def _usage(e: typer.TyperException) -> str:
    """A wrong option or command, in our style: one line, and where the help is."""
    format_message = getattr(e, "format_message", None)
    message = str(format_message() if format_message is not None else e).rstrip(".")
    context = getattr(e, "ctx", None)
    where = context.command_path if context is not None else "kafkaspec"
    return f"{message[:1].lower()}{message[1:]} (see {where} --help)"


if __name__ == "__main__":
    main()
