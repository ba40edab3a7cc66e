"""`kafkaspec explain`: one rule in all its forms, with the text of each; or a subsystem."""

from __future__ import annotations

import functools
import importlib
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkaspec.cli.output import show, show_json
from kafkaspec.contract import clauses, subsystem, traceability

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True)
class Form:
    """One place that states the clause: `text` is its source, where it can be shown."""

    form: str
    where: str
    place: str
    """file:line, below the checkout or the package; "" where it is not known"""
    text: str


def run(name: str, *, json: bool) -> int:
    """Print a clause, or a subsystem. Raises UserError for an unknown id, with what there is in its place."""
    if (named := subsystem.subsystems().get(name.lower())) is not None:
        from kafkaspec.cli import explain_subsystem

        return explain_subsystem.run(named, json=json)
    clause = subsystem.clause(name.upper())
    traceability.load(clause.id)
    found = [Form(u.form, u.where, *source(u)) for u in traceability.uses(clause.id)]
    absent = traceability.absent(clause)
    of = subsystem.stating(clause.id)
    deviations = [d for d in of.spec.machine.deviations if d.clause == clause.id] if of is not None else []
    if json:
        show_json(
            {
                "id": clause.id,
                "sentence": clause.sentence,
                "source": clause.source,
                "module": clause.module,
                "forms": [{"form": f.form, "where": f.where, "place": f.place, "text": f.text} for f in found],
                "without": dict(clause.without),
                "absent": absent,
                "deviations": [
                    {"id": d.id, "title": d.title, "versions": d.versions, "condition": d.condition} for d in deviations
                ],
            }
        )
        return 0
    show(*_page(clause, found, absent, deviations))
    return 0


def _page(clause: clauses.Clause, found: list[Form], absent: Mapping[str, str], deviations: list[Any]) -> list[Text]:
    from rich.text import Text

    out = [
        Text(clause.id, style="bold"),
        *_indented(clause.sentence, 2),
        *_indented(f"Source: {clause.source}", 2, style="dim"),
    ]
    for form in clauses.FORMS:
        here = [f for f in found if f.form == form]
        out += [Text(), Text(form, style="bold")]
        if form in absent:
            out += _indented(f"none: {absent[form]}" if absent[form] else "missing", 2, style="dim")
        for f in here:
            out.append(Text(f"  {f.where}", style="cyan") + Text(f"  {f.place}" if f.place else "", style="dim"))
            if f.text and form in ("spec", "impl", "audit", "model"):
                out += _code(f.text)
    if deviations:
        out += [Text(), Text("known deviations of released Kafka", style="bold")]
        for d in deviations:
            out += _indented(f"{d.id} {d.title} ({d.versions}). When: {d.condition}", 2)
    return out


def _indented(text: str, by: int, style: str = "") -> list[Text]:
    from rich.text import Text

    return [
        Text(line, style=style)
        for line in textwrap.wrap(text, 100, initial_indent=" " * by, subsequent_indent=" " * by)
    ]


def _code(text: str) -> list[Text]:
    from rich.syntax import Syntax
    from rich.text import Text

    lines = Syntax("", "python", theme="ansi_light").highlight(text).split("\n")
    return [Text("    ") + line for line in lines if line]


def source(use: clauses.Use) -> tuple[str, str]:
    """Where the function stands that a use names, and its text; "" where there is none to show."""
    at, thing = place(use)
    try:
        text = "" if thing is None else textwrap.dedent(inspect.getsource(thing)).rstrip()
    except OSError:
        text = ""
    return at, text


def place(use: clauses.Use) -> tuple[str, Any]:
    """Where the function stands that a use names, "" where that is not known; and the function or class itself, where
    its text can be shown."""
    module, _, path = use.where.partition(":")
    if "/" in module:  # a test, by its file
        return _line(use.clause, module, path), None
    try:
        thing: Any = importlib.import_module(module)
        if use.form == "mutant":
            return _line(use.clause, f"{module.replace('.', '/')}.py", path), None
        if use.form == "proof":  # of a claim; its model may stand there by any name
            model, _, path = path.partition(".")
            thing = {p.name: p.cls for p in thing.PROOFS}.get(model)
        for name in path.split("."):
            thing = getattr(thing, name)
        thing = getattr(thing, "fget", None) or inspect.unwrap(thing)
        code = getattr(thing, "__code__", None)
        first = code.co_firstlineno if code is not None else inspect.getsourcelines(thing)[1]
        return f"{_short(inspect.getsourcefile(thing))}:{first}", thing
    except (ImportError, AttributeError, TypeError, OSError):
        return "", None


@functools.cache
def _short(file: str | None) -> str:
    """A file of ours, or of the project, from the folder of the layers on."""
    path = Path(file or "?").resolve()
    over = [(Path(str(f)) / "spec").resolve().parent for f in subsystem.folders()]
    return next((str(path.relative_to(f)) for f in over if path.is_relative_to(f)), str(path))


def _line(id: str, file: str, name: str) -> str:
    """The line of a test's file in which a name stands first, or the end of one that is put together; the test is one
    of that clause."""
    of = subsystem.stating(id)
    roots = [r for r in (of.root if of is not None else None, *subsystem.roots()) if r is not None]
    root = next((r for r in roots if (r / file).is_file()), None)
    if root is None or not name:
        return file if root is not None else ""
    lines = (root / file).read_text("utf-8").splitlines()
    words = name.split(" ")
    ends = [f"def {name.rpartition(':')[2]}(", *(f'"{" ".join(words[n:])}"' for n in range(len(words)))]
    found = next((n for end in ends for n, line in enumerate(lines, 1) if end in line), None)
    return file if found is None else f"{file}:{found}"
