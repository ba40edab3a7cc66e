"""What the documentation has from the code. A page has a directive on a line of its own,

    [spec/storage/leader_epochs.py](../../spec/storage/leader_epochs.py) <!-- generated:rules leader_epochs -->

and `mkdocs build` (docs/hooks.py) puts there what the generator of that name gives. The link is what a reader sees who
reads the page without a build; it may be left out. Each generator is a function from the directive's words to Markdown,
in which `docs:PATH` in a link is a page from the folder of the docs on; the table of all of them, GENERATORS, is at the
end. What explores a model or runs a command is kept in docs/.cache until the code changes.

Committed is only what is read without a build. `python docs/generate.py` writes it: the README's table, the protocol's
schema, the histories of known deviations, and the output in the tutorials; `--check` names what is out of date; a test
does that. `--measure` first runs what takes minutes, `verify` and the kill matrices, into docs/measured.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import hashlib
import html
import importlib
import inspect
import itertools
import json
import os
import posixpath
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import tomllib
import typing
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import histories
import matrix
import orjson
from diagram import state_machine
from rules import rules

import tests.attempts
from kafkaspec.audit.recorded import recorded
from kafkaspec.cli import names
from kafkaspec.contract import subsystem
from kafkaspec.contract.deviation import Deviation, shown
from kafkaspec.contract.history import answer_text, outcome, record_text
from kafkaspec.contract.machine import Operation
from kafkaspec.contract.subsystem import clause as find_clause
from kafkaspec.errors import UserError
from kafkaspec.explore.engine import explore
from kafkaspec.judge.interface import Told, interface
from kafkaspec.judge.protocol import described, json_schema
from kafkaspec.language import LoadedModel, Trace
from kafkaspec.language.concrete import Concrete
from kafkaspec.lockstep.compare import differences
from kafkaspec.mutants.matrix import mutants_of, written
from kafkaspec.report.section import condensed, sizes_text, value_text
from kafkaspec.report.sequence import sequence_svg
from kafkaspec.verify.held import TOOLS

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
MEASURED = DOCS / "measured"
CACHE = DOCS / ".cache"
DIRECTIVE = re.compile(r"^(?:\[[^\]\n]+\]\([^)\n]+\) )?<!-- generated:(\w+)([^>\n]*?) -->$", re.MULTILINE)
BLOCK_OF_README = re.compile(r"(<!-- generated:(\w+)([^>\n]*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
Generator = Callable[..., str]


# ---- directives ------------------------------------------------------------------------------------------------------
def rendered(text: str, page: str) -> str:
    """A page with what is generated in the place of its directives; `page` is its path from the folder of the docs on.
    Raises KeyError for an unknown generator."""
    return DIRECTIVE.sub(lambda m: relinked(made(m[1], *m[2].split()).strip(), page), text)


def relinked(text: str, page: str) -> str:
    """Links from the folder of the docs on, as links from a page."""
    return re.sub(r"\]\(docs:([^)#]+)", lambda m: f"]({posixpath.relpath(m[1], posixpath.dirname(page))}", text)


def made(name: str, *words: str) -> str:
    """What a generator gives; kept in docs/.cache, if it explores or runs something."""
    if name not in SLOW:
        return GENERATORS[name](*words)
    digest = hashlib.blake2b("\n".join([content(), name, *words]).encode(), digest_size=16).hexdigest()
    file = CACHE / f"{digest}.txt"
    if not file.exists():
        text = GENERATORS[name](*words)
        CACHE.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    KEPT.add(file)
    return file.read_text("utf-8")


KEPT: set[Path] = set()
"""what this build has asked of docs/.cache"""


def forget() -> None:
    """Delete from docs/.cache what this build did not ask for."""
    for file in set(CACHE.glob("*.txt")) - KEPT:
        file.unlink()


@cache
def content() -> str:
    """A digest of all that a generator may depend on: the code, the recordings of the audit, the versions of tools."""
    found = hashlib.blake2b("\n".join([sys.version, *(version(t) for t in TOOLS)]).encode())
    for folder in ("src", *subsystem.LAYERS, "docs", "tests"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            found.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    for file in sorted((ROOT / "tests" / "recordings" / "audit").rglob("*.gz")):
        found.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return found.hexdigest()


# ---- what is committed -----------------------------------------------------------------------------------------------
def committed() -> dict[Path, str]:
    """Everything that is generated and committed, but the output in the tutorials and what is measured."""
    readme = ROOT / "README.md"
    text = BLOCK_OF_README.sub(
        lambda m: f"{m[1]}\n{GENERATORS[m[2]](*m[3].split()).strip()}\n\n{m[5]}", readme.read_text("utf-8")
    )
    return {readme: text, DOCS / "protocol.schema.json": schema(), **histories.every()}


def out_of_date(write: bool) -> list[Path]:
    """The files of `committed` that differ from what is generated now, and histories that are of nothing any more;
    put right if `write`."""
    new = committed()
    out = [f for f, text in new.items() if not f.exists() or f.read_text("utf-8") != text]
    gone = [f for f in sorted(histories.FOLDER.glob("*.history")) if f not in new]
    if write:
        histories.FOLDER.mkdir(exist_ok=True)
        for f in out:
            f.write_text(new[f], "utf-8")
        for f in gone:
            f.unlink()
    return out + gone


def measure() -> None:
    """Write docs/measured again: what `verify` establishes, and who notices which mutant, as far as it is new."""
    VERIFIED.write_text(json.dumps(verification(), indent=1) + "\n", "utf-8")
    for name in subsystem.subsystems():
        matrix.measure(name)


def unmeasured() -> list[str]:
    """The written mutants, as `subsystem: name`, that docs/measured says nothing of."""
    out = []
    for s in subsystem.subsystems().values():
        known = {r.name for r in matrix.rows(s.name)}
        out += [f"{s.name}: {m.name}" for m in written(s) if m.name not in known]
    return out


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table. Code with a bar in it is HTML: there is no other way that all readers of Markdown know."""

    def code(m: re.Match[str]) -> str:
        return f"<code>{html.escape(m[1]).replace('|', '&#124;')}</code>" if "|" in m[1] else m[0]

    def cell(text: str) -> str:
        return " ".join(re.sub(r"`([^`]*)`", code, text).replace("|", "\\|").split())

    cells = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(cell, row)) + " |" for row in cells)


def svg(drawing: str) -> str:
    """A drawing in a page; the build makes a file of it."""
    return f'<div class="diagram">{drawing}</div>'


def folded(title: str, text: str) -> str:
    """A part of a page that opens on demand."""
    return f'??? note "{title}"\n\n' + textwrap.indent(text, "    ")


def ran(command: str, where: Path) -> str:
    """What a shell command prints in a checkout, at 100 columns; times and memory are masked, so that a page says the
    same tomorrow."""
    script = f'kafkaspec() {{ {shlex.quote(sys.executable)} -m kafkaspec "$@"; }}\n{command}'
    ours = ("NO_COLOR", "FORCE_COLOR", "HYPOTHESIS_PROFILE", "PYTEST_ADDOPTS")
    environment = {k: v for k, v in os.environ.items() if k not in ours}
    environment |= {
        "COLUMNS": "100",
        "PYTHONPATH": str(where / "src"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-c", script], cwd=where, env=environment, capture_output=True, text=True, timeout=600
    )
    shown = re.sub(r"\b[\d.,]+ ?(?:ms|s|min)\b(?: \d+ s)?", "… s", done.stdout + done.stderr)
    shown = re.sub(r"\b\d+ (?=MB\b)", "… ", shown)
    shown = re.sub(r"(?<![\w.])\d+\.\d+(?![\w.])", lambda m: f"{'…':>{len(m[0])}}", shown)
    return "".join(f"{line.rstrip()}\n" for line in shown.splitlines())


# ---- the tutorials ---------------------------------------------------------------------------------------------------
PLAYED = ("README.md", "docs/tutorial.md", "docs/judge.md")
"""Pages whose files are written and whose commands are run."""
BLOCK = re.compile(r'^```(?:console\n|\w+ title="([^"]+)"\n)(.*?)^```$', re.MULTILINE | re.DOTALL)
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".*_cache", ".cache", ".hypothesis", "*.egg-info", "build", "dist", "site", "out"
)


def played(text: str) -> str:
    """A tutorial with the output of its commands again: in a copy of the checkout its files are written and its
    commands run, in their order."""
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary) / "kafkaspec"
        shutil.copytree(ROOT, here, symlinks=True, ignore=NOT_COPIED)

        def block(m: re.Match[str]) -> str:
            if m[1] is not None:
                (here / m[1]).write_text(m[2], "utf-8")
                return m[0]
            commands = [line for line in m[2].splitlines() if line.startswith("$ ")]
            return "```console\n" + "".join(f"{c}\n{ran(c[2:], here)}" for c in commands) + "```"

        return BLOCK.sub(block, text)


# ---- the generators --------------------------------------------------------------------------------------------------
def operations(name: str) -> str:
    """The operations of a subsystem's spec as recordings call them, folded."""
    found = subsystem.find(name).spec.machine.operations.values()
    rows = [[f"`{op.name}`", ", ".join(f"`{p}`" for p in op.parameters), _governed(op)] for op in found]
    return folded(f"{len(rows)} operations", table(["operation", "arguments", "clauses"], rows))


def _governed(op: Operation[Any]) -> str:
    """The clauses that an operation names."""
    return "none: done by others" if op.environment else ", ".join(map(id_linked, op.clauses))


def pinned(name: str) -> str:
    """The models of a subsystem or example with their pinned counts."""
    rows = []
    for c in names.find_models(name):
        m = c.loaded
        claims = f"{len(m.invariants) + len(m.lemmas)} invariants, {len(m.steps)} steps, {len(m.leads_to)} leads-to"
        sizes = " ".join(f"{k}={str(v).lower()}" for k, v in c.sizes.items())
        counts = [f"{n:,}" for n in (c.distinct, c.generated, c.depth)]
        note = ", ".join(filter(None, [c.note, "`make deep`" if c.deep else ""]))
        rows.append([f"`{m.name}`", sizes, *counts, claims, ", ".join(m.witnesses), note])
    return table(["model", "sizes", "distinct", "generated", "depth", "claims", "witnesses", ""], rows)


def machine(name: str, variables: str, *sizes: str) -> str:
    """The states of some variables of a model (`a,b`; of one key, where they are maps) and the actions between them."""
    (checked,) = names.one_each(names.find_models(name))
    model = checked.loaded
    concrete = Concrete(model.cls, names.sizes(sizes, model, checked.sizes))
    chosen = variables.split(",")

    def parts(state: Any) -> dict[str, str]:
        shown = concrete.show(state)
        keys = next((list(shown[v]) for v in chosen if isinstance(shown[v], dict)), [""])
        return {
            k: state_name({v: shown[v][k] if isinstance(shown[v], dict) else shown[v] for v in chosen}) for k in keys
        }

    nodes: dict[str, None] = {}
    edges: dict[tuple[str, str], dict[str, None]] = {}
    transitions: dict[Any, list[Any]] = {}
    states = {state: parts(state) for state in concrete.reachable(transitions=transitions)[0]}
    for state, before in states.items():
        nodes |= dict.fromkeys(before.values())
        for taken in transitions[state]:
            for k, after in (states.get(taken.state) or parts(taken.state)).items():
                if before[k] != after:
                    edges.setdefault((before[k], after), {})[taken.action.replace("_", " ")] = None
    return svg(
        state_machine(list(nodes), {k: list(v) for k, v in edges.items()}, f"{model.name}: {' and '.join(chosen)}")
    )


def state_name(values: Mapping[str, Any]) -> str:
    """What a diagram calls a state: a switch by its name, a number with its name, another value as it is; where there
    is none of all these, what there is not.

    >>> state_name({"status": "cleaning", "pauses": 2, "forced": True})
    'cleaning, 2 pauses, forced'
    >>> state_name({"taken": False, "changed": False}), state_name({"status": None, "pauses": 0})
    ('not taken', 'no status')
    """
    words = []
    for name, value in values.items():
        name = name.replace("_", " ")
        if value is True:
            words.append(name)
        elif isinstance(value, int | float) and value:
            words.append(f"{value} {name.removesuffix('s') if value == 1 else name}")
        elif value:
            words.append(str(value).replace("_", " ").lower())
    name, value = next((k.replace("_", " "), v) for k, v in values.items())
    return ", ".join(words) or (f"not {name}" if value is False else f"no {name}")


def witness(name: str, claim: str, *sizes: str) -> str:
    """The shortest way to a witness of a model, as a sequence diagram and as a table of steps."""
    (checked,) = names.one_each(names.find_models(name))
    model = checked.loaded
    e = explore(model, names.sizes(sizes, model, checked.sizes), liveness=False, deadlock=True)
    trace = e.witnesses[claim]
    if trace is None:
        raise ValueError(f"{name}: {claim} is not reached")
    return _drawn(trace, model)


def violation(name: str, mutant: str, *sizes: str) -> str:
    """The shortest way to what a mutant of a subsystem's model breaks; underscores in its name stand for blanks."""
    s = subsystem.find(name)
    faults = {m.name.replace(" ", "_"): m for m in mutants_of(s) if m.layer == "model"}
    fault = faults[mutant]
    model = fault.make()
    (checked,) = [c for c in names.one_each(names.find_models(name)) if c.name == model.name]
    e = explore(model, names.sizes(sizes, model, checked.sizes), deadlock=checked.deadlock)
    if e.trace is None:
        raise ValueError(f"{name}: nothing is broken by {mutant}")
    return f"With the fault *{fault.what}*:\n\n" + _drawn(e.trace, model)


def _drawn(trace: Trace, model: LoadedModel) -> str:
    """A run as a sequence diagram, and below it, folded, what each step changed."""
    steps = []
    for i, step in enumerate(trace.steps):
        called = f"{step.action}({', '.join(map(value_text, step.arguments.values()))})" if step.action else "start"
        changed = [f"`{k}`: {value_text(a)} → {value_text(b)}" for k, (a, b) in trace.changed(i).items()]
        if i == 0:
            changed = [f"`{k}` = {value_text(v)}" for k, v in condensed(step.state).items()]
        steps.append([str(i), f"`{called}`", step.who, ", ".join(step.clauses), "<br>".join(changed)])
    rows = table(["", "step", "by", "clauses", "what changed"], steps)
    folded = f'??? note "{sizes_text(trace.sizes)}: step by step"\n\n' + textwrap.indent(rows, "    ")
    return f"{svg(sequence_svg(trace, model))}\n\n{folded}"


def fields(path: str) -> str:
    """The fields of a result type, with what its text says of them."""
    module, _, name = path.partition(":")
    cls = getattr(importlib.import_module(module), name)
    texts = _field_texts(cls)
    hints = typing.get_type_hints(cls)
    told = [f for f in dataclasses.fields(cls) if f.metadata.get("json", ...) is not None]
    rows = [[f"`{f.name}`", f"`{_type(hints[f.name])}`", texts.get(f.name, "")] for f in told]
    return f"{' '.join((cls.__doc__ or '').split())}\n\n" + table(["field", "type", ""], rows)


def _type(hint: Any) -> str:
    text = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
    return re.sub(r"\b(?:[a-z_]+\.)+", "", text)


def _field_texts(cls: type) -> dict[str, str]:
    """Field -> the string that stands below it in the text of the class."""
    (tree,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    out = {}
    for a, b in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(a, ast.AnnAssign) and isinstance(a.target, ast.Name) and isinstance(b, ast.Expr):
            out[a.target.id] = " ".join(str(ast.literal_eval(b.value)).split())
    return out


def output(*words: str) -> str:
    """What a command prints."""
    return f"```console\n$ {' '.join(words)}\n{ran(' '.join(words), ROOT)}```"


def readme(*words: str) -> str:
    """A section of the README, without its heading."""
    text = (ROOT / "README.md").read_text("utf-8")
    _, _, section = text.partition(f"\n## {' '.join(words)}\n")
    section = re.sub(r"\]\(docs/", "](docs:", section.partition("\n## ")[0])
    return re.sub(r"\[([^\]]+)\]\((?!docs:)[^)]*\)", r"\1", section)  # what is not in the site


def faults() -> str:
    """The planted faults that the gate finds, as `python -m tests.gate --faults` left them; the texts folded."""
    rows, _, texts = (MEASURED / "faults.md").read_text("utf-8").partition("\n\n")
    return f"{rows}\n\n" + folded("A minimal text for each", texts)


def attempts() -> str:
    """How the attempts end, added up and one by one."""
    of = tests.attempts.attempts()
    ends = Counter(a.outcome for a in of)
    head = "| | tried | what is said | then |\n|---|---|---|---|"
    rows = "\n".join([head, *map(tests.attempts.row, of)])
    return (
        f"Of {len(of)} texts {ends['refused']} are refused when they are loaded or explored, {ends['broken']} break a "
        f"claim in every engine and are not proved, {ends['holds']} hold. "
        f"{sum(bool(a.was) for a in of)} met a fault at the time.\n\n" + folded(f"{len(of)} texts", rows)
    )


def audit() -> str:
    """The rules that the audit's checks report under, by subsystem: the clauses that their modules name."""
    titles = {s.name: s.title for s in subsystem.subsystems().values()}
    rows = []
    for file in sorted((ROOT / "audits").glob("*/*.py")):
        module = importlib.import_module(f"kafkaspec.audits.{file.parent.name}.{file.stem}")
        if not getattr(module, "AUDIT", ()):
            continue
        named = re.findall(r'"([A-Z]{3}-\d+)"|\bspec\.([A-Z]{3}_\d+)', file.read_text("utf-8"))
        ids = {a or b.replace("_", "-") for a, b in named} | {*getattr(module, "CLAUSES", ())}
        name = file.stem
        page = f"[{titles.get(name, name)}](docs:{file.parent.name}/{name}.md)"
        for id in sorted(ids, key=lambda x: (x[:3], int(x[4:]))):
            with contextlib.suppress(KeyError, UserError):
                rows.append([page, id_linked(id), html.escape(find_clause(id).sentence)])
                page = ""
    return table(["", "clause", "rule"], rows)


def audited(archive: str, file: str = "", at: str = "") -> str:
    """What `kafkaspec audit` prints of a recorded directory; with one bit of a file flipped if that is given."""
    r = next(r for r in recorded() if r.name == archive)
    with r.unpacked() as directories:
        root = directories[0].parent.parent
        where = " ".join(str(d.relative_to(root)) for d in directories)
        if file:
            data = bytearray((root / file).read_bytes())
            data[int(at)] ^= 1
            (root / file).write_bytes(data)
        said = ran(f"kafkaspec audit {where}; echo $?", root)
    *lines, status = said.splitlines()
    shown = "".join(f"{line}\n" for line in lines)
    return f"```console\n$ kafkaspec audit {where}\n{shown}$ echo $?\n{status}\n```"


VERIFIED = MEASURED / "verified.json"
"""The rows of `kafkaspec verify`, without the times."""


def verification(*options: str) -> list[dict[str, str]]:
    """The rows of `kafkaspec verify`, run now, with options. Raises CalledProcessError if anything does not hold."""
    command = [sys.executable, "-m", "kafkaspec", "verify", "--json", *options]
    run = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
    return [{k: r[k] for k in ("subsystem", "what", "word", "detail")} for r in json.loads(run.stdout)]


def measured_rows() -> list[dict[str, str]]:
    """The rows of `kafkaspec verify`, as they were when it was last measured."""
    return list(json.loads(VERIFIED.read_text("utf-8")))


def verified() -> str:
    """What `kafkaspec verify` finds, row by row, a table for each subsystem."""
    out = []
    for name, rows in itertools.groupby(measured_rows(), lambda r: r["subsystem"]):
        known = subsystem.subsystems().get(name)
        title = "The audit" if known is None else f"[{known.title}](docs:{known.area}/{known.name}.md)"
        cells = [[r["what"], f"**{r['word']}**", r["detail"]] for r in rows]
        out.append(f"## {title}\n\n" + table(["what", "how", "found"], cells))
    return "\n\n".join(out)


def established() -> str:
    """The same, added up: a row a subsystem."""
    rows = []
    for name, of in itertools.groupby(measured_rows(), lambda r: r["subsystem"]):
        by: dict[str, list[Any]] = {}
        for r in of:
            by.setdefault(r["word"], []).append(r)

        def total(word: str, what: str, by: dict[str, list[Any]] = by) -> int:
            found = [re.search(rf"([\d,]+) (?:of [\d,]+ )?{what}", r["detail"]) for r in by.get(word, [])]
            return sum(int(m[1].replace(",", "")) for m in found if m)

        states = total("explored", "distinct")
        runs = [r["what"] for r in by.get("explored", []) if " distinct" in r["detail"]]
        models = len(set(runs))
        judged = [r for r in by.get("judged", []) if re.search(r"\d (events|records): ", r["detail"])]
        rows.append(
            [
                name,
                f"{total('complete', 'clauses')}" if "complete" in by else "",
                f"{states:,} states of {models}{f', {len(runs)} runs' if len(runs) > models else ''}" if models else "",
                f"{total('proved', 'obligations'):,}" if "proved" in by else "",
                ", ".join(f"{n:,} {of}" for of in ("calls", "steps") if (n := total("tested", of))),
                f"{len(judged)}: {total('judged', 'events') or total('judged', 'records'):,}" if judged else "",
            ]
        )
    tested = "impl or audit against spec, tested"
    head = ["", "clauses", "models, explored", "obligations, proved", tested, "recordings, judged"]
    return table(head, rows)


CAMPAIGNS = MEASURED / "campaigns.toml"
"""What Kafka's own classes were asked behind the judge, by subsystem."""


def campaigns(name: str = "") -> str:
    """What Kafka's own class was asked in the newest campaign of a subsystem, and the command; a row of each subsystem,
    if none is named."""
    of = tomllib.loads(CAMPAIGNS.read_text("utf-8"))
    known = subsystem.subsystems()
    what = ["calls judged", "histories", "seed", "clauses", "model states", "verdict", "deviations met"]
    head = ["subsystem", "date", "commit", *what]
    rows = {}
    for n, c in of.items():
        page = f"[{known[n].title}](docs:{known[n].area}/{n}.md)"
        calls = f"{c['calls']:,}" + (f"; {c['besides']}" if "besides" in c else "")
        met = ", ".join(f"[{d}](docs:deviations/{d}.md)" for d in c["deviations"]) or "none"
        counts = [f"{c['histories']:,}" if "histories" in c else "", str(c.get("seed", ""))]
        made = [str(c["date"]), f"`{c['commit']}`"]
        rows[n] = [page, *made, calls, *counts, c["clauses"], c["states"], c["verdict"], met]
    if not name:
        return table(head, list(rows.values()))
    command = f"kafkaspec judge --target 'targets/kafka/kafka.sh 4.3' {name}"
    if "seed" in of[name]:
        command += f" --seed {of[name]['seed']} --examples {of[name]['histories']} --timeout 60"
    return f"{table(head[1:], [rows[name][1:]])}\n\n```sh\n{command}\n```"


def deviations(*of: str) -> str:
    """The known deviations of released Kafka in a subsystem; in all of them, each below its title, if none is named."""
    if not of:
        having = [s for s in subsystem.subsystems().values() if s.spec.machine.deviations]
        return "\n\n".join(f"## [{s.title}](docs:{s.area}/{s.name}.md)\n\n{deviations(s.name)}" for s in having)
    rows = [
        [f"[{d.id}](docs:deviations/{d.id}.md)", id_linked(d.clause), d.title, html.escape(d.versions)]
        for d in subsystem.find(*of).spec.machine.deviations
    ]
    return table(["", "breaks", "what", "seen in"], rows)


def id_linked(id: str) -> str:
    """A clause id as a link to its rule."""
    s = subsystem.stating(id)
    return f"[{id}](docs:{s.area}/{s.name}.md#{id})" if s is not None else id


def all_deviations() -> dict[str, Deviation]:
    """Every known deviation by its id."""
    return {d.id: d for s in subsystem.subsystems().values() for d in s.spec.machine.deviations}


def deviation(id: str) -> str:
    """All that is recorded of one known deviation, with its history."""
    d = all_deviations()[id]
    s = subsystem.stating(id)
    assert s is not None
    right, wrong = shown(s.spec.machine, d)
    seen, expected = answer_text(outcome(wrong.result)), answer_text(outcome(right.result))
    states = [f"- {x}" for x in differences(right.observation, wrong.observation, "state")]
    calls = "\n".join(map(record_text, histories.answered_by_kafka(s, d)))
    return "\n\n".join(
        [
            f"Breaks {id_linked(d.clause)}: {find_clause(d.clause).sentence}",
            f"**Versions.** {d.versions[0].upper()}{d.versions[1:]}.",
            f"**Condition** (if and only if). {' '.join(d.condition.split())}",
            f'**A minimal history.**\n\n```text title="tests/histories/{id}.history"\n{calls}\n```',
            *([f"The right answer is `{expected}`."] if seen != expected else []),
            *(["In the state after it:\n\n" + "\n".join(states)] if states else []),
            f"**Cause.** {' '.join(d.cause.split())}",
            f"**What it does to a user of Kafka.** {' '.join(d.effect.split())}",
            f"**Fix.** {' '.join(d.fix.split())}",
        ]
    )


def protocol(*of: str) -> str:
    """The operations of a subsystem as the judge calls them, with the types of their signatures; the list of all
    subsystems, if none is named."""
    if of:
        return _protocol(subsystem.find(*of))
    rows = [
        [f"[`{s.name}`](docs:protocol/{s.name}.md)", s.title, f"{len(described(s).calls)}"]
        for s in subsystem.components().values()
    ]
    return table(["subsystem", "", "operations"], rows)


def _protocol(of: subsystem.Subsystem) -> str:
    told = interface(of)
    page = f"docs:{of.area}/{of.name}.md"
    rows = [
        [
            f"`{op['name']}`"
            + ("" if op["kind"] == "call" else f" ({op['kind']})")
            + f"<br><small>{html.escape(op['what'])}"
            + "".join(f"<br>Asked only if: {html.escape(text)}." for text in op["askedIf"])
            + "</small>",
            "<br>".join(
                [
                    *(_given(p, " *") for p in op["arguments"]),
                    *(f"(`{p}`: the target's own choice)" for p in op["chosen"]),
                    f"→ `{op['result']}`",
                ]
            ),
            "<br>".join(
                f"{'' if n == 0 else 'then ' if r['later'] else 'or '}{id_linked(r['clause'])} "
                f"<code>{r['error'].replace('.', '.<wbr>')}</code>"
                for n, r in enumerate(op["refusals"])
            ),
        ]
        for op in told["operations"]
    ]
    records = [
        [
            f"`{r['name']}`" if n == 0 else "",
            f"`{f['name']}`" + ("" if f["needed"] else " ?"),
            f"`{f['type']}`",
            f["what"],
        ]
        for r in told["records"]
        for n, f in enumerate(r["fields"])
    ]
    asked = [
        orjson.dumps(line, default=float).decode()
        for op in told["operations"]
        for line in (None if op["before"] is None else {"op": "observe", "state": op["before"]}, op["example"])
        if line is not None
    ]
    lines = "\n".join(line if len(line) <= 400 else f"{line[:399]}…" for line in asked)
    examples = f"## A call of each, its answer, and the state before it where that is short\n\n```json\n{lines}\n```"
    configuration = ", ".join(_given(p, "") for p in told["configuration"]) or "none"
    state = "no state" if told["first"] is None else f"`{told['state']}`"
    first = json.dumps(told["first"], default=float)
    begins = ["## The first state", f"As the configuration's defaults have it.\n\n```json\n{first}\n```"]
    return "\n\n".join(
        [
            f"[{of.title}]({page}). Configuration: {configuration}. `observe` shows {state}.",
            "## Operations",
            table(["operation", "arguments → result", "may be refused"], rows),
            *([] if told["first"] is None else begins),
            *(["## Records", table(["record", "field", "type", ""], records)] if records else []),
            examples,
        ]
    )


def _given(p: Told, mark: str) -> str:
    """An argument and its type, with its default where it has one."""
    default = f"{mark} ({json.dumps(p['default'])})" if "default" in p else ""
    return f"`{p['name']}`: `{p['type']}`{default}"


def schema() -> str:
    """The JSON schema of the judge's protocol."""
    return json.dumps(json_schema(), indent=1) + "\n"


GENERATORS: dict[str, Generator] = {
    "protocol": protocol,
    "deviation": deviation,
    "rules": rules,
    "operations": operations,
    "pinned": pinned,
    "machine": machine,
    "witness": witness,
    "violation": violation,
    "fields": fields,
    "output": output,
    "readme": readme,
    "audit": audit,
    "attempts": attempts,
    "faults": faults,
    "audited": audited,
    "deviations": deviations,
    "campaigns": campaigns,
    "verified": verified,
    "established": established,
    "kills": partial(matrix.kills, table),
    "kill_totals": partial(matrix.kill_totals, table),
    "guided_and_uniform": partial(matrix.guided_and_uniform, table),
    "kill_bugs": partial(matrix.kill_bugs, table),
    "survivors": partial(matrix.survivors, table),
    "kill_rows": partial(matrix.kill_rows, table),
    "rule_faults": partial(matrix.rule_faults, table),
    "rule_reasons": partial(matrix.rule_reasons, table),
    "blamed": partial(matrix.blamed, table),
    "coded": partial(matrix.coded, table),
}
SLOW = frozenset({"machine", "witness", "violation", "output", "audited", "protocol"})
"""Those that explore, walk, or run a command."""


# ---- pages that are generated whole ----------------------------------------------------------------------------------
def pages() -> dict[str, str]:
    """Pages that nobody writes, by their paths from the folder of the docs on: a directive below a title."""
    out = {
        f"protocol/{s.name}.md": f"# {s.title}: protocol\n\n<!-- generated:protocol {s.name} -->\n"
        for s in subsystem.components().values()
    }
    for d in all_deviations().values():
        out[f"deviations/{d.id}.md"] = f"# {d.id}: {d.title}\n\n<!-- generated:deviation {d.id} -->\n"
    return out


def main(arguments: Sequence[str]) -> int:
    """Write what is committed, or name what is out of date."""
    checking = "--check" in arguments
    if "--measure" in arguments:
        measure()
    stale = out_of_date(write=not checking)
    for name in PLAYED:
        page = ROOT / name
        new = played(page.read_text("utf-8"))
        if new != page.read_text("utf-8"):
            stale.append(page)
            if not checking:
                page.write_text(new, "utf-8")
    for page in stale:
        print(f"{page.relative_to(ROOT)}: {'out of date' if checking else 'written'}")
    return int(checking and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
