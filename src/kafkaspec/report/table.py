"""Results on a terminal, readable at 100 columns: `table` for any result, `trace_table` for a run alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kafkaspec.language.trace import Trace
from kafkaspec.report.describe import describe
from kafkaspec.report.section import (
    HEADINGS,
    Cell,
    Grid,
    Mood,
    Section,
    call,
    condensed,
    flat,
    sentence,
    trace_title,
    value_text,
    words,
)

STYLES: dict[Mood, str] = {"good": "green", "bad": "bold red", "unknown": "bold yellow", "plain": "", "dim": "dim"}
MARKS: dict[Mood, str] = {"good": "✓ ", "bad": "✗ ", "unknown": "? ", "plain": "", "dim": ""}


def table(*results: Any) -> RenderableType:
    """Any results of the engines, each in its sections, one below the other."""
    parts: list[RenderableType] = []
    for section in (s for r in results for s in describe(r) if not s.detail):
        parts += [Text(), *_section(section)] if parts else _section(section)
    return Group(*parts)


def trace_table(trace: Trace) -> RenderableType:
    """A run: the claim with its sentence, then a row a step, or the two states of a counterexample to induction."""
    title, verdict = trace_title(trace)
    return Group(_heading(title, verdict), *_rules(trace.clauses), _steps(trace))


def _section(s: Section) -> Iterator[RenderableType]:
    yield _heading(s.title, s.verdict)
    yield from _rules(s.rules)
    if s.facts:
        facts = Table.grid(padding=(0, 2, 0, 0))
        facts.add_column(style="dim", no_wrap=True)
        facts.add_column(overflow="fold")
        for name, cell in s.facts:
            facts.add_row(name, _text(cell))
        yield Padding(facts, (0, 0, 0, 2))
    for g in s.grids:
        yield from _grid(g)
    if s.trace is not None:
        yield _steps(s.trace)
    if s.history:
        yield Text()  # lines are not broken: what is copied from a terminal is whole
        yield Text("\n".join(f"  {line}" for line in s.history.splitlines()), no_wrap=True, overflow="ignore")
    if s.again:
        if s.history:
            yield Text()
        yield Text.assemble(("  to see it again: ", "dim"), (s.again, "bold"), no_wrap=True, overflow="ignore")


def _heading(title: str, verdict: Cell) -> Text:
    return Text.assemble((title, "bold"), "  ", (MARKS[verdict.mood] + verdict.text, STYLES[verdict.mood]))


def _rules(ids: tuple[str, ...]) -> Iterator[RenderableType]:
    for id in ids:
        if said := sentence(id):
            line = Table.grid(padding=(0, 2, 0, 0))
            line.add_row(Text(id, "bold cyan", no_wrap=True), Text(said))
            yield Padding(line, (0, 0, 0, 2))


def _text(cell: Cell, mark: bool = False) -> Text:
    return Text((MARKS[cell.mood] if mark else "") + cell.text, STYLES[cell.mood])


def _grid(g: Grid) -> Iterator[RenderableType]:
    shown = [n for n, c in enumerate(g.columns) if not c.detail]
    t = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", title_style="dim", title_justify="left")
    t.title = g.title or None
    for n in shown:
        c = g.columns[n]
        least = max((len(row[n].text) for row in g.rows), default=0) if c.number else None  # a number is never broken
        justify: Literal["left", "right"] = "right" if c.number else "left"
        t.add_column(c.title, justify=justify, overflow="fold", no_wrap=c.whole, min_width=least)
    for row in g.rows:
        t.add_row(*(_text(row[n]) for n in shown))
    yield Padding(t, (0, 0, 0, 2))


# ---- runs ------------------------------------------------------------------------------------------------------------
def _steps(trace: Trace) -> RenderableType:
    return _side_by_side(trace) if trace.kind == "cti" else _step_by_step(trace)


def _step_by_step(trace: Trace) -> RenderableType:
    t = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    t.add_column("", justify="right", no_wrap=True, style="dim")
    for name, ratio in (("step", 3), ("by", 2), ("clause", None), ("what changed", 5)):
        t.add_column(name, overflow="fold", ratio=ratio, no_wrap=ratio is None)
    _, mood, at_end = HEADINGS[trace.kind]
    for i, step in enumerate(trace.steps):
        last = i == len(trace.steps) - 1
        style = STYLES[mood] if last and mood != "plain" and i else "bold"
        number = Text(str(i))
        if trace.loop is not None and i >= trace.loop:
            number = Text(("╭ " if i == trace.loop else "│ ") + str(i), "yellow")
        what = Text(call(step.action, step.arguments) if step.action else "(start)", style)
        changes = trace.changed(i).items()
        changed = (
            [f"{k} = {value_text(v)}" for k, v in condensed(step.state).items()]
            if i == 0
            else [f"{k}: {value_text(a)} → {value_text(b)}" for k, (a, b) in changes] or ["nothing"]
        )
        t.add_row(
            number,
            what,
            step.who,
            Text("\n".join(step.clauses), "cyan"),
            Text("\n".join(changed), "dim" if i == 0 else ""),
        )
    out: list[RenderableType] = [t]
    if trace.loop is not None:
        t.add_row(Text(f"╰→ {trace.loop}", "yellow"), Text(f"back to {trace.loop}, for ever", "yellow"))
    if at_end:
        about = at_end if trace.kind == "deadlock" else f"{words(trace.claim)} {at_end}"
        out.append(Text(MARKS[mood] + about, STYLES[mood]))
    return Padding(Group(*out), (0, 0, 0, 2))


def _side_by_side(trace: Trace) -> RenderableType:
    """A counterexample to induction: a state that satisfies all claims, the step, and the state that breaks one."""
    last = trace.steps[-1]
    states = [flat(s.state) for s in trace.steps]
    t = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    t.add_column("", overflow="fold")
    heads = ["a state that satisfies every claim", f"after {call(last.action, last.arguments)}"][-len(states) :]
    for head in heads if last.action else ["the first state"]:
        t.add_column(head, overflow="fold")
    changed = trace.changed(1) if len(states) > 1 else {}
    paths = list(dict.fromkeys(p for s in states for p in s))
    for path in paths:
        differs = any(path == c or path.startswith(c + "[") for c in changed)
        cells = [Text(value_text(s[path]) if path in s else "", "" if differs else "dim") for s in states]
        if differs:
            cells[-1].stylize("bold yellow")
        t.add_row(Text(path, "bold" if differs else "dim"), *cells)
    about = f"{words(trace.claim)} {HEADINGS['cti'][2]}; the first state need not be reachable"
    return Padding(Group(t, Text(about, STYLES["unknown"])), (0, 0, 0, 2))
