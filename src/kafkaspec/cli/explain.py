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
    from rich.console import RenderableType


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


def _page(clause: clauses.Clause, found: list[Form], deviations: list[Any]) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.syntax import Syntax
    from rich.text import Text

    out: list[RenderableType] = [
        Text(clause.id, style="bold"),
        Padding(Text(clause.sentence), (0, 0, 0, 2)),
        Padding(Text(f"Source: {clause.source}", style="dim"), (0, 0, 0, 2)),
    ]
    for form in clauses.FORMS:
        here = [f for f in found if f.form == form]
        out.append(Text(f"\n{form}", style="bold"))
        if not here:
            reason = clause.without.get(form)
            missing = "kept in the checkout, not installed" if form not in forms.forms_known() else "MISSING"
            out.append(Padding(Text(f"none: {reason}" if reason else missing, style="dim"), (0, 0, 0, 2)))
        for f in here:
            out.append(Padding(Text(f.where, style="cyan"), (0, 0, 0, 2)))
            if f.text and form in ("spec", "model"):
                out.append(
                    Padding(Syntax(f.text, "python", theme="ansi_light", background_color="default"), (0, 0, 0, 4))
                )
    if deviations:
        out.append(Text("\nknown deviations of released Kafka", style="bold"))
        out += [Padding(Text(f"{d.id} {d.title} ({d.versions}): {d.condition}"), (0, 0, 0, 2)) for d in deviations]
    return out


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
