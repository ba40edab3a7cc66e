"""Writes the generated parts of the documentation: whatever stands between `<!-- generated:NAME ARGUMENTS -->` and
`<!-- end -->`. `python docs/generate.py` writes them, `--check` names the pages that are out of date; a test does that.
What stands after `<!-- measured:NAME ARGUMENTS -->` takes minutes: written too, but checked for what it is about only.

Each generator is a function from the marker's words to Markdown; the table of all of them, GENERATORS, is at the end.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import html
import importlib
import inspect
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import typing
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import matrix
import orjson
from diagram import state_machine

from kafkaspec.audit.recorded import recorded
from kafkaspec.cli import names
from kafkaspec.contract import subsystem
from kafkaspec.contract import traceability as forms
from kafkaspec.contract.clauses import FORMS, Use
from kafkaspec.contract.deviation import shown
from kafkaspec.contract.history import answer_text, outcome
from kafkaspec.contract.subsystem import clause as find_clause
from kafkaspec.errors import UserError
from kafkaspec.explore import explore
from kafkaspec.judge.protocol import Description, Parameter, described, json_schema, met, word
from kafkaspec.judge.protocol import fields as fields_of
from kafkaspec.language import LoadedModel, Trace
from kafkaspec.language.concrete import Concrete
from kafkaspec.lockstep.compare import ABSENT, differences
from kafkaspec.mutants.matrix import mutants_of, written
from kafkaspec.report import sequence_svg
from kafkaspec.report.section import condensed, sizes_text, value_text

DOCS = Path(__file__).parent
MARKER = re.compile(r"(<!-- (generated|measured):(\w+)([^>\n]*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
CAPTURED: Any = {"check": True, "cwd": DOCS.parent, "capture_output": True, "text": True}
Generator = Callable[..., str]


def rewritten(text: str, generators: dict[str, Generator], measure: bool) -> str:
    """`text` with every generated part written again, measured ones only if asked for. Raises KeyError for an unknown
    generator."""

    def one(m: re.Match[str]) -> str:
        generator = generators[m[3]]
        if m[2] == "measured" and not measure:
            missing = [w for w in ABOUT[m[3]](*m[4].split()) if w not in m[5]]
            return m[0] if not missing else f"{m[1]}\nnot measured yet: {', '.join(missing)}\n\n{m[6]}"
        return f"{m[1]}\n{generator(*m[4].split()).strip()}\n\n{m[6]}"

    return MARKER.sub(one, text)


def out_of_date(generators: dict[str, Generator], write: bool, measure: bool = False) -> list[Path]:
    """The pages whose generated parts differ from what is generated now; rewritten if `write`."""
    out = []
    for page in [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]:
        text = page.read_text("utf-8")
        new = rewritten(text, generators, measure)
        if new != text:
            out.append(page)
            if write:
                page.write_text(new, "utf-8")
    for name, generator in FILES.items():
        file = DOCS / name
        new = generator()
        if not file.exists() or file.read_text("utf-8") != new:
            out.append(file)
            if write:
                file.write_text(new, "utf-8")
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
    """A drawing in the page itself, so that the page needs no other file."""
    return f'<div class="diagram">{drawing}</div>'


def ran(command: str, where: Path) -> str:
    """What a shell command prints in a checkout, at 100 columns; times and memory are masked, so that a page says the
    same tomorrow."""
    script = f'kafkaspec() {{ {shlex.quote(sys.executable)} -m kafkaspec "$@"; }}\n{command}'
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "HYPOTHESIS_PROFILE")}
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
PLAYED = ("tutorial.md", "judge.md")
"""Pages whose files are written and whose commands are run."""
BLOCK = re.compile(r'^```(?:console\n|\w+ title="([^"]+)"\n)(.*?)^```$', re.MULTILINE | re.DOTALL)
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info", "build", "dist", "site", "out"
)


def played(text: str) -> str:
    """A tutorial with the output of its commands again: in a copy of the checkout its files are written and its
    commands run, in their order."""
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary) / "kafkaspec"
        shutil.copytree(DOCS.parent, here, symlinks=True, ignore=NOT_COPIED)

        def block(m: re.Match[str]) -> str:
            if m[1] is not None:
                (here / m[1]).write_text(m[2], "utf-8")
                return m[0]
            commands = [line for line in m[2].splitlines() if line.startswith("$ ")]
            return "```console\n" + "".join(f"{c}\n{ran(c[2:], here)}" for c in commands) + "```"

        return BLOCK.sub(block, text)


# ---- the generators --------------------------------------------------------------------------------------------------
def clauses(name: str) -> str:
    """Every clause of a subsystem: id, sentence, source, and where its forms are."""
    forms.load()
    rows = []
    for c in subsystem.find(name).clauses:
        used = forms.uses(c.id)
        cells = []
        for form in FORMS:
            here = [u for u in used if u.form == form]
            if here:
                cells.append(f"{form}: " + ", ".join(f"`{w}`" for w in dict.fromkeys(_name(u) for u in here)))
            elif form in c.without:
                cells.append(f"no {form}: {c.without[form]}")
        rows.append(
            [
                f'<span id="{c.id}" class="clause">**{c.id}**</span>',
                f"{c.sentence}<br><small>{c.source}</small>",
                "<br>".join(cells),
            ]
        )
    return table(["", "clause and source", "its forms"], rows)


def _name(use: Use) -> str:
    path, _, name = use.where.rpartition(":")
    return (name if path else use.where.rpartition("/")[2]).rpartition(".")[2] or name


def operations(name: str) -> str:
    """The operations of a subsystem's spec as recordings call them."""
    machine = subsystem.find(name).spec.machine
    rows = [
        [f"`{op.name}`", ", ".join(f"`{p}`" for p in op.parameters), ", ".join(op.clauses)]
        for op in machine.operations.values()
    ]
    return table(["operation", "arguments", "clauses"], rows)


def pinned(name: str) -> str:
    """The models of a subsystem or example with their pinned counts."""
    rows = []
    for c in names.find_models(name):
        m = c.loaded
        claims = f"{len(m.invariants) + len(m.lemmas)} invariants, {len(m.steps)} steps, {len(m.leads_to)} leads-to"
        sizes = " ".join(f"{k}={str(v).lower()}" for k, v in c.sizes.items())
        counts = [f"{n:,}" for n in (c.distinct, c.generated, c.depth)]
        rows.append([f"`{m.name}`", sizes, *counts, claims, ", ".join(m.witnesses), c.note])
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
        values = {k: [shown[v][k] if isinstance(shown[v], dict) else shown[v] for v in chosen] for k in keys}
        return {k: " ".join(str(x) for x in v if x not in (None, 0, False)) or "0" for k, v in values.items()}

    nodes: dict[str, None] = {}
    edges: dict[tuple[str, str], dict[str, None]] = {}
    for state in concrete.reachable()[0]:
        before = parts(state)
        nodes |= dict.fromkeys(before.values())
        for taken in concrete.successors(state):
            for k, after in parts(taken.state).items():
                if before[k] != after:
                    edges.setdefault((before[k], after), {})[taken.action.replace("_", " ")] = None
    return svg(state_machine(list(nodes), {k: list(v) for k, v in edges.items()}, f"{name}: {variables}"))


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
    (checked,) = [c for c in names.one_each(names.find_models(name)) if c.loaded.name == model.name]
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
    rows = [[f"`{f.name}`", f"`{_type(hints[f.name])}`", texts.get(f.name, "")] for f in dataclasses.fields(cls)]
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
    return f"```console\n$ {' '.join(words)}\n{ran(' '.join(words), DOCS.parent)}```"


def audit() -> str:
    """The rules that the audit's checks report under, by subsystem: the clauses that their modules name."""
    titles = {s.name: s.title for s in subsystem.subsystems().values()}
    rows = []
    for file in sorted((DOCS.parent / "audits").glob("*/*.py")):
        module = importlib.import_module(f"kafkaspec.audits.{file.parent.name}.{file.stem}")
        if not getattr(module, "AUDIT", ()):
            continue
        named = re.findall(r'"([A-Z]{3}-\d+)"|\bspec\.([A-Z]{3}_\d+)', file.read_text("utf-8"))
        ids = {a or b.replace("_", "-") for a, b in named} | {*getattr(module, "CLAUSES", ())}
        name = file.stem
        page = f"[{titles.get(name, name)}]({file.parent.name}/{name}.md)"
        for id in sorted(ids, key=lambda x: (x[:3], int(x[4:]))):
            with contextlib.suppress(KeyError, UserError):
                rows.append([page, f"`{id}`", html.escape(find_clause(id).sentence)])
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


@cache
def verification() -> list[dict[str, Any]]:
    """The rows of `kafkaspec verify`. Raises CalledProcessError if anything does not hold."""
    run = subprocess.run([sys.executable, "-m", "kafkaspec", "verify", "--json"], **CAPTURED)
    return list(json.loads(run.stdout))


def verified() -> str:
    """What `kafkaspec verify` finds, row by row, without the times."""
    return table(
        ["subsystem", "what", "how", "found"],
        [[r["subsystem"], r["what"], f"**{r['word']}**", r["detail"]] for r in verification()],
    )


def established() -> str:
    """The same, added up: a row a subsystem."""
    rows = []
    for name, of in itertools.groupby(verification(), lambda r: r["subsystem"]):
        by: dict[str, list[Any]] = {}
        for r in of:
            by.setdefault(r["word"], []).append(r)

        def total(word: str, what: str, by: dict[str, list[Any]] = by) -> int:
            found = [re.search(rf"([\d,]+) (?:of [\d,]+ )?{what}", r["detail"]) for r in by.get(word, [])]
            return sum(int(m[1].replace(",", "")) for m in found if m)

        states, models = total("explored", "distinct"), sum(" distinct" in r["detail"] for r in by.get("explored", []))
        judged = [r for r in by.get("judged", []) if "altered" not in r["what"]]
        rows.append(
            [
                name,
                f"{total('complete', 'clauses')}" if "complete" in by else "",
                f"{states:,} states of {models}" if models else "",
                f"{total('proved', 'obligations'):,}" if "proved" in by else "",
                f"{total('tested', 'calls'):,} calls" if "tested" in by else "",
                f"{len(judged)}: {total('judged', 'events') or total('judged', 'records'):,}" if judged else "",
            ]
        )
    head = ["", "clauses", "models, explored", "obligations, proved", "spec beside impl, tested", "recordings, judged"]
    return table(head, rows)


def deviations(name: str) -> str:
    """The known deviations of released Kafka in a subsystem."""
    rows = [
        [f"`{d.id}`", d.clause, d.title, html.escape(d.versions), d.condition]
        for d in subsystem.find(name).spec.machine.deviations
    ]
    return table(["", "breaks", "what", "seen in", "exactly when"], rows)


def deviation(id: str) -> str:
    """All that is recorded of one known deviation, with what its history shows and what would be right."""
    for s in subsystem.subsystems().values():
        for d in s.spec.machine.deviations:
            if d.id == id:
                right, wrong = shown(s.spec.machine, d)
                seen, expected = answer_text(outcome(wrong.result)), answer_text(outcome(right.result))
                states = [str(x) for x in differences(right.observation, wrong.observation, "state")]
                calls = "\n".join([*d.history[:-1], f"{d.history[-1]}  {seen}", *(f"  {x}" for x in states)])
                return "\n\n".join(
                    [
                        f"Breaks **{d.clause}**: {find_clause(d.clause).sentence}",
                        f"**Versions.** {d.versions[0].upper()}{d.versions[1:]}.",
                        f"**Exactly when.** {' '.join(d.condition.split())}",
                        f"**A minimal history.**\n\n```text\n{calls}\n```",
                        *([f"The right answer is `{expected}`."] if seen != expected else []),
                        f"**Cause.** {' '.join(d.cause.split())}",
                        f"**What it does to a user of Kafka.** {' '.join(d.effect.split())}",
                        f"**Fix.** {' '.join(d.fix.split())}",
                    ]
                )
    raise KeyError(id)


def protocol() -> str:
    """The operations of every subsystem as the judge calls them, with the types of their signatures."""
    return "\n\n".join(_protocol(described(s)) for s in subsystem.components().values())


def _protocol(d: Description) -> str:
    s = d.subsystem
    page = f"{s.area}/{s.name}.md"
    walked = met(s)

    def given(p: Parameter) -> str:
        return f"`{p.name}`: `{word(p.hint)}`" + ("" if p.default is ABSENT else " *")

    rows = []
    for c in d.calls:
        op = c.operation
        kind = "" if op.kind == "call" else f" ({op.kind})"
        chosen = [f"(`{p}`: the target's own choice)" for p in op.chosen]
        refused = [
            f"[{id}]({page}#{id}) <code>{error.replace('.', '.<wbr>')}</code>" for id, error in walked.refusals[op.name]
        ]
        rows.append(
            [
                f"`{op.name}`{kind}<br><small>{html.escape(c.what)}</small>",
                "<br>".join([*map(given, c.parameters), *chosen, f"→ `{word(c.result)}`"]),
                "<br>".join(refused),
            ]
        )
    records = [
        [f"`{r.__name__}`" if n == 0 else "", f"`{f.name}`" + ("" if f.needed else " ?"), f"`{word(f.hint)}`", f.what]
        for r in d.records
        for n, f in enumerate(fields_of(r))
    ]
    asked = [
        orjson.dumps(walked.examples[c.operation.name], default=float).decode()
        for c in d.calls
        if c.operation.name in walked.examples
    ]
    lines = "\n".join(line if len(line) <= 400 else f"{line[:399]}…" for line in asked)
    examples = f'??? example "A call of each, and its answer"\n\n    ```json\n{textwrap.indent(lines, "    ")}\n    ```'
    configuration = [
        f"`{p.name}`: `{word(p.hint)}`" + ("" if p.default is None else f" ({json.dumps(p.default)})")
        for p in d.configuration
    ]
    state = "no state" if d.state is Any else f"`{word(d.state)}`"
    return "\n\n".join(
        [
            f"### {s.name}",
            f"[{s.title}]({page}). Configuration: {', '.join(configuration) or 'none'}. `observe` shows {state}.",
            table(["operation", "arguments → result", "may be refused"], rows),
            *([table(["record", "field", "type", ""], records)] if records else []),
            examples,
        ]
    )


def schema() -> str:
    """The JSON schema of the judge's protocol."""
    return json.dumps(json_schema(), indent=1) + "\n"


GENERATORS: dict[str, Generator] = {
    "protocol": protocol,
    "deviation": deviation,
    "clauses": clauses,
    "operations": operations,
    "pinned": pinned,
    "machine": machine,
    "witness": witness,
    "violation": violation,
    "fields": fields,
    "output": output,
    "audit": audit,
    "audited": audited,
    "deviations": deviations,
    "verified": verified,
    "established": established,
    "kills": partial(matrix.kills, table=table),
    "kill_totals": partial(matrix.kill_totals, table),
    "guided_and_uniform": partial(matrix.guided_and_uniform, table),
    "kill_bugs": partial(matrix.kill_bugs, table),
    "survivors": partial(matrix.survivors, table),
    "kill_rows": partial(matrix.kill_rows, table),
}

FILES: dict[str, Callable[[], str]] = {"protocol.schema.json": schema}
"""Whole files that are generated."""

ABOUT: dict[str, Callable[[str], list[str]]] = {"kills": lambda name: [m.name for m in written(subsystem.find(name))]}
"""For what is measured: what it must speak of to be up to date."""

if __name__ == "__main__":
    checking = "--check" in sys.argv[1:]
    stale = out_of_date(GENERATORS, write=not checking, measure="--measure" in sys.argv[1:])
    for name in PLAYED:
        page = DOCS / name
        new = played(page.read_text("utf-8"))
        if new != page.read_text("utf-8"):
            stale.append(page)
            if not checking:
                page.write_text(new, "utf-8")
    for page in stale:
        print(f"{page.relative_to(DOCS.parent)}: {'out of date' if checking else 'written'}")
    sys.exit(1 if checking and stale else 0)
