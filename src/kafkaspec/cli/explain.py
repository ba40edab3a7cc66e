"""`kafkaspec explain`: one rule in all its forms, with the text of each."""

from __future__ import annotations

import importlib
import inspect
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkaspec import clauses, forms
from kafkaspec.cli.output import show, show_json
from kafkaspec.subsystem import subsystems

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True)
class Form:
    """One place that states the clause: `text` is its source, where it can be shown."""

    form: str
    where: str
    text: str


def run(id: str, *, json: bool) -> int:
    """Print a clause. Raises UserError for an unknown id, naming the nearest."""
    forms.load()
    clause = clauses.find(id.upper())
    found = [Form(u.form, u.where, _source(u)) for u in forms.uses(clause.id)]
    deviations = [d for s in subsystems().values() for d in s.spec.machine.deviations if d.clause == clause.id]
    if json:
        show_json(
            {
                "id": clause.id,
                "sentence": clause.sentence,
                "source": clause.source,
                "module": clause.module,
                "forms": [{"form": f.form, "where": f.where, "text": f.text} for f in found],
                "without": dict(clause.without),
                "deviations": [
                    {"id": d.id, "title": d.title, "versions": d.versions, "condition": d.condition} for d in deviations
                ],
            }
        )
        return 0
    show(*_page(clause, found, deviations))
    return 0


def _page(clause: clauses.Clause, found: list[Form], deviations: list[Any]) -> list[Text]:
    from rich.text import Text

    out = [
        Text(clause.id, style="bold"),
        *_indented(clause.sentence, 2),
        *_indented(f"Source: {clause.source}", 2, style="dim"),
    ]
    for form in clauses.FORMS:
        here = [f for f in found if f.form == form]
        out += [Text(), Text(form, style="bold")]
        if not here:
            reason = clause.without.get(form)
            missing = "kept in the checkout, not installed" if form not in forms.forms_known() else "missing"
            out += _indented(f"none: {reason}" if reason else missing, 2, style="dim")
        for f in here:
            out.append(Text(f"  {f.where}", style="cyan"))
            if f.text and form in ("spec", "model"):
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


def _source(use: clauses.Use) -> str:
    """The text of the function that a use names; "" where there is none to show."""
    module, _, path = use.where.partition(":")
    if "/" in module or not path:
        return ""
    try:
        thing: Any = importlib.import_module(module)
        for name in path.split("."):
            thing = getattr(thing, name)
        return textwrap.dedent(inspect.getsource(inspect.unwrap(thing))).rstrip()
    except (ImportError, AttributeError, TypeError, OSError):
        return ""
