"""What every report is made of: a result told as sections, which the terminal, the page and the documents all render.

Only here is it decided what of a result is said, in which words and in which order; `describe` makes the sections,
`table` and `html` draw them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kafkaspec.contract import clauses
from kafkaspec.contract.history import History
from kafkaspec.contract.subsystem import stating
from kafkaspec.language.model import LoadedModel
from kafkaspec.language.trace import Trace, Value

Mood = Literal["good", "bad", "unknown", "plain", "dim"]
"""How a word is coloured. "unknown" is never green."""


@dataclass(frozen=True)
class Cell:
    """A text with a mood."""

    text: str
    mood: Mood = "plain"


@dataclass(frozen=True)
class Column:
    """`number` stands to the right; `bar` draws how much of the greatest it is; `detail` is left out on a terminal,
    where there is no room for it; `whole` is not broken into lines there."""

    title: str
    number: bool = False
    bar: bool = False
    detail: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Grid:
    """A table: a cell for every column in every row."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""


@dataclass(frozen=True)
class Conversation:
    """Calls to somebody and the answers, the last of them wrong; drawn on the page."""

    history: History
    who: str
    """whose answers they are"""
    end: str
    """what is wrong with the last answer, in few words"""


@dataclass(frozen=True)
class Section:
    """One part of a report. `detail` sections are for the page only."""

    title: str
    verdict: Cell
    rules: tuple[str, ...] = ()
    """clause ids; printed with their sentences"""
    facts: tuple[tuple[str, Cell], ...] = ()
    grids: tuple[Grid, ...] = ()
    trace: Trace | None = None
    model: LoadedModel | None = None
    """the model of the trace, where it is at hand"""
    history: str = ""
    """calls and answers as `kafkaspec check` reads them"""
    conversation: Conversation | None = None
    """the same history to be drawn"""
    again: str = ""
    """the command that shows it again"""
    detail: bool = False


def counts(title: str) -> Column:
    """A column of numbers that are worth comparing at a glance."""
    return Column(title, number=True, bar=True)


def grid(titles: Iterable[str | Column], rows: Iterable[Iterable[str | Cell]], title: str = "") -> Grid:
    """A table from plain strings where a cell needs no mood and a column nothing but its title."""
    return Grid(
        tuple(Column(t) if isinstance(t, str) else t for t in titles),
        tuple(tuple(Cell(c) if isinstance(c, str) else c for c in row) for row in rows),
        title,
    )


def sentence(id: str) -> str:
    """The sentence of a clause; "" if no spec states it."""
    if (s := stating(id)) is not None:
        return next((c.sentence for c in s.clauses if c.id == id), "")
    return next((c.sentence for c in clauses.all_clauses(id[:3]) if c.id == id), "")


def words(name: str) -> str:
    """A name of Python's as words.

    >>> words("one_thread_a_partition")
    'one thread a partition'
    """
    return name.replace("_", " ")


def count(n: int, what: str) -> str:
    """A number with its noun.

    >>> count(1, "step"), count(2000, "history"), count(3, "way")
    ('1 step', '2,000 histories', '3 ways')
    """
    plural = what[:-1] + "ies" if re.search("[^aeiou]y$", what) else what + "s"
    return f"{n:,} {what if n == 1 else plural}"


def duration(seconds: float) -> str:
    """A time for people.

    >>> duration(0.0123), duration(3.25), duration(754)
    ('12 ms', '3.2 s', '12 min 34 s')
    """
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def value_text(value: Value) -> str:
    """A model value as people read it.

    >>> value_text({"p0": "FREE", "p1": None}), value_text(["t0", 3]), value_text(True)
    ('{p0: FREE, p1: none}', '[t0, 3]', 'true')
    """
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case Mapping():
            return "{" + ", ".join(f"{k}: {value_text(v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(value_text, value)) + "]"
    return str(value)


def sizes_text(sizes: Mapping[str, int | bool]) -> str:
    """Sizes as the command line takes them.

    >>> sizes_text({"Partition": 2, "FENCED": True})
    'Partition=2 FENCED=true'
    """
    return " ".join(f"{name}={value_text(n)}" for name, n in sizes.items())


def call(action: str, arguments: Mapping[str, Value]) -> str:
    """A step as it is called.

    >>> call("grab", {"t": "t0", "p": "p1"})
    'grab(t0, p1)'
    """
    return f"{action}({', '.join(map(value_text, arguments.values()))})"


def flat(state: Mapping[str, Value], prefix: str = "") -> dict[str, Value]:
    """A state as its innermost values: path -> value, as `Trace.changed` names them.

    >>> flat({"n": 1, "status": {"p0": "FREE"}})
    {'n': 1, 'status[p0]': 'FREE'}
    """
    out: dict[str, Value] = {}
    for name, value in state.items():
        path = f"{prefix}[{name}]" if prefix else str(name)
        if isinstance(value, Mapping) and value:
            out |= flat(value, path)
        else:
            out[path] = value
    return out


def condensed(state: Mapping[str, Value]) -> dict[str, Value]:
    """A state in few lines: a map whose values are all the same is one line.

    >>> condensed({"status": {"p0": "FREE", "p1": "FREE"}, "dirt": {"p0": 0, "p1": 2}})
    {'status[*]': 'FREE', 'dirt[p0]': 0, 'dirt[p1]': 2}
    """
    out: dict[str, Value] = {}
    for name, value in state.items():
        leaves = flat({name: value})
        if isinstance(value, Mapping) and len(leaves) > 1 and _all_same(leaves.values()):
            depth = next(iter(leaves)).count("[")
            out[name + "[*]" * depth] = next(iter(leaves.values()))
        else:
            out |= leaves
    return out


def _all_same(values: Iterable[Any]) -> bool:
    first, *rest = [value_text(v) for v in values]
    return all(v == first for v in rest)


HEADINGS: Mapping[str, tuple[str, Mood, str]] = {
    "violation": ("violated", "bad", "is broken here"),
    "deadlock": ("deadlock", "bad", "no action can be taken here"),
    "witness": ("reached", "good", "is reached here"),
    "lasso": ("need not happen", "bad", "never comes true: the run goes round for ever"),
    "walk": ("random walk", "plain", ""),
    "cti": ("not inductive", "unknown", "is broken after the step"),
}
"""Why a run is shown: the word for its claim, its mood, and what is said of the last step."""


def trace_title(trace: Trace) -> tuple[str, Cell]:
    """What a run shows: its claim in words, and the verdict on it."""
    word, mood, _ = HEADINGS[trace.kind]
    n = len(trace.steps) - 1
    about = f": {words(trace.claim)}" if trace.claim else ""
    ids = f" ({', '.join(trace.clauses)})" if trace.clauses else ""
    where = f" at {sizes_text(trace.sizes)}" if trace.sizes else ""
    return f"{trace.model}{about}{ids}", Cell(f"{word}: {count(n, 'step')}{where}", mood)
