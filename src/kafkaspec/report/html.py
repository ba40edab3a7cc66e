"""Results as one page for people: self-contained, light and dark, readable on a phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkaspec import __version__
from kafkaspec.language.trace import Trace
from kafkaspec.report.describe import describe
from kafkaspec.report.section import Grid, Mood, flat, sentence, value_text
from kafkaspec.report.sequence import conversation_svg, sequence_svg

if TYPE_CHECKING:
    import jinja2

MARKS: Mapping[Mood, str] = {"good": "✓", "bad": "✗", "unknown": "?", "plain": "", "dim": ""}
WORST: Sequence[Mood] = ("bad", "unknown", "good", "plain", "dim")


@dataclass(frozen=True)
class StateRow:
    """One innermost variable through a run: its values, and at which steps it changed."""

    path: str
    values: tuple[str, ...]
    changed: tuple[bool, ...]

    @property
    def still(self) -> bool:
        """It never changes."""
        return not any(self.changed)


def html(*results: Any, title: str = "kafkaspec") -> str:
    """The page of some results: verdict, rules, sequence diagrams, state tables, coverage, the command to run again."""
    sections = [s for r in results for s in describe(r)]
    moods = {s.verdict.mood for s in sections if not s.detail}
    worst = next((m for m in WORST if m in moods), "plain")
    page = _environment().get_template("page.html.j2")
    return page.render(title=title, sections=sections, worst=worst, version=__version__, single=len(sections) == 1)


def state_rows(trace: Trace) -> list[StateRow]:
    """The state table of a run, variables downwards, steps to the right."""
    states = [flat(s.state) for s in trace.steps]
    changed = [set(trace.changed(i)) for i in range(len(states))]
    out = []
    for path in dict.fromkeys(p for s in states for p in s):
        values = tuple(value_text(s[path]) if path in s else "" for s in states)
        here = tuple(any(path == c or path.startswith(c + "[") for c in step) for step in changed)
        out.append(StateRow(path, values, here))
    return out


def shares(grid: Grid) -> dict[int, list[float]]:
    """Of each column with bars, the share of the greatest number that each row has."""
    out = {}
    for n, column in enumerate(grid.columns):
        if column.bar and grid.rows:
            numbers = [int(row[n].text.replace(",", "")) for row in grid.rows]
            out[n] = [number / max(*numbers, 1) for number in numbers]
    return out


def _environment() -> jinja2.Environment:
    import jinja2  # a tenth of a second, for those who want a page
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kafkaspec.report"),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals |= {
        "sentence": sentence,
        "sequence": lambda s: Markup(sequence_svg(s.trace, s.model)),
        "conversation": lambda s: Markup(conversation_svg(s.conversation)),
        "state_rows": state_rows,
        "shares": shares,
        "marks": MARKS,
    }
    return environment
