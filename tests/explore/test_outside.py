"""A value that leaves its type is shown as the text makes it."""

from __future__ import annotations

import dataclasses
import enum
import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore.engine import Search, explore
from kafkaspec.explore.layout import Layout
from kafkaspec.explore.program import Program
from kafkaspec.explore.walk import walk
from kafkaspec.language import Bounded, Model, Range, Sort, action, load, require
from kafkaspec.language.concrete import Concrete, State, _After, _own, _Record
from kafkaspec.language.expr import SizeName
from tests.gate import oracle
from tests.gate.templates import LEAVING, SIZES, leaving
from tests.language.texts import model

Small = Annotated[int, Range(0, 3)]
STATES = 25
TRIES = 4_000
NEVER = ("field", "none_in_list", "none_in_lists", "none_in_set")
"""What fits in a record's field fits in the record; and with None in a list or a set a text has no value."""


@dataclass(frozen=True)
class Note:
    a: Small
    b: Small
    c: Small


@dataclass(frozen=True)
class One:
    a: Small


class Noted(Model):
    """A set of records, an option of one, and a number that leaves its range."""

    net: Annotated[set[Note], Bounded(2)]
    last: Note | None
    n: Small

    @action()
    def up(s) -> None:
        s.next.n = s.n + 1

    @action()
    def note(s) -> None:
        require(len(s.net) < 2)
        s.next.net = s.net | {Note(a=s.n, b=s.n, c=0)}
        s.next.last = Note(a=s.n, b=0, c=3)


class Crowded(Model):
    """A set that gets more records than it may hold."""

    net: Annotated[set[One], Bounded(2)]

    @action()
    def add(s, a: Small) -> None:
        s.next.net = s.net | {One(a=a)}


class Overdrawn(Model):
    """A ghost that the search leaves out has no value any more when the number leaves its range."""

    n: Small
    past: Annotated[list[Small], Bounded(1)]
    ghosts = ("past",)

    @action()
    def up(s) -> None:
        s.next.n = s.n + 1
        s.next.past = s.past[:1] + [s.past[s.n]] if s.n > 1 else s.past


def test_a_number_beside_sets_and_options_of_records() -> None:
    e = explore(load(Noted), {}, deadlock=True)
    assert e.trace is not None
    assert (e.outcome, e.trace.claim) == ("violation", "type of n")
    assert [s.state["n"] for s in e.trace.steps] == [0, 1, 2, 3, 4]
    w = walk(load(Noted), {}, seed=1, steps=10_000)
    assert w.trace is not None
    assert (w.trace.claim, w.trace.steps[-1].state["n"]) == ("type of n", 4)


def test_every_record_of_a_crowded_set() -> None:
    e = explore(load(Crowded), {}, deadlock=True)
    assert e.trace is not None
    assert (e.trace.claim, len(e.trace.steps)) == ("type of net", 4)
    assert e.trace.steps[-1].state["net"] == [{"a": 0}, {"a": 1}, {"a": 2}]


class Queued(Model):
    """A sequence of options of records that grows too long."""

    q: Annotated[list[One | None], Bounded(2)]

    @action()
    def put(s) -> None:
        s.next.q = s.q + [One(a=3)]


class Counted(Model):
    """Options of numbers without a limit, by key."""

    seen: dict[bool, Annotated[int, Range(0)] | None]
    ghosts = ("seen",)

    @action()
    def see(s) -> None:
        s.next.seen[True] = 0 if s.seen[True] is None else s.seen[True] * 2 + 1  # type: ignore[operator]


@dataclass(frozen=True)
class Endless:
    n: Annotated[int, Range(0)]


class Told(Model):
    """A number without a limit in a record."""

    last: Endless

    @action()
    def tell(s) -> None:
        s.next.last = Endless(n=s.last.n + 1)


def test_options_of_records_in_a_sequence() -> None:
    e = explore(load(Queued), {}, deadlock=True)
    assert e.trace is not None
    assert (e.outcome, e.trace.claim, e.trace.steps[-1].state["q"]) == ("violation", "type of q", [{"a": 3}] * 3)


def test_a_number_without_a_limit_in_an_option() -> None:
    e = explore(load(Counted), {}, ghosts=True, deadlock=True)
    assert e.trace is not None
    assert (e.outcome, e.trace.steps[-1].state["seen"]) == ("limit", {"False": None, "True": 511})
    assert e.limit.startswith("stopped at a value of seen beyond 255")


def test_a_number_without_a_limit_in_a_record_is_refused() -> None:
    with pytest.raises(UserError, match="Told: the field n of Endless has no upper limit: a field has one"):
        explore(load(Told), {})


def test_ghosts_that_are_left_out_do_not_matter() -> None:
    e = explore(load(Overdrawn), {}, deadlock=True)
    assert e.trace is not None
    assert (e.trace.claim, e.trace.steps[-1].state) == ("type of n", {"n": 4})


# ---- every kind of value, in every way of assigning it
def plain(v: Any) -> Any:
    """A value of the text, of any type, in JSON's shapes."""
    if isinstance(v, SizeName):
        return v._now()
    if isinstance(v, enum.Enum | Sort):
        return v.name
    if isinstance(v, dict):
        return {str(plain(k)): plain(x) for k, x in v.items()}
    if isinstance(v, set | frozenset):
        return sorted(map(plain, v), key=str)
    if isinstance(v, _Record):
        return {n: plain(x) for n, x in v.__dict__.items()}
    if dataclasses.is_dataclass(v):
        return {f.name: plain(getattr(v, f.name)) for f in dataclasses.fields(v)}
    return [plain(x) for x in v] if isinstance(v, list) else v


def made(c: Concrete, state: State, action: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the text leaves in every variable, whatever its type."""
    with c._running():
        after = _After({n: _own(v, c.vars[n]) for n, v in c._values(state).items()}, None)
        c._call(action, c._view(c._values(state), after), arguments)
    return {n: plain(getattr(after, n)) for n in c.vars}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [n for n in LEAVING if n not in NEVER])
def test_it_is_what_the_text_leaves(tmp_path: Path, name: str) -> None:
    cls = oracle.loaded(leaving(name), tmp_path)
    c, r = Concrete(cls, SIZES, ghosts=True), random.Random(1)
    p = Program(Layout(load(cls), SIZES, True), lanes=1)
    search = Search(p, 1, 64)
    shown = 0
    try:
        for state in itertools.islice(filter(None, (oracle.arbitrary(c, r) for _ in range(TRIES))), STATES):
            here = tuple(p.layout.encode(c.show(state)))
            outside = {
                (o.action, str(plain(dict(o.arguments)))): made(c, state, o.action, o.arguments)
                for o in oracle.outcomes(c, state)
                if o.kind == "outside"
            }
            for instance, after, faults in search.successors(here):
                step = search.step(instance, here, after)
                if faults and 0 < faults[0] <= len(c.vars):
                    assert search.left(instance, here) == outside[step.action, str(dict(step.arguments))]
                    shown += 1
    finally:
        search.close()
    assert shown


PAINT_HEAD = """
class Colour(enum.Enum):
    RED = 0
    BLUE = 1
    GREEN = 2
@dataclass(frozen=True)
class Painted:
    colour: Colour | None
    at: Colour
"""
PAINT_VARIABLES = """
o: Colour | None
r: Painted | None
q: Annotated[list[Colour], Bounded(1)]
c: Colour
m: dict[Colour, Colour]
n: bool
"""
"""Three values have two bits, of whose four codes one is no value: it must not be read as one."""
ASSIGNED = ("s.next.c = s.o", "s.next.m[s.c] = s.o", "s.next.c = s.q[0]", "s.next.r = Painted(colour=None, at=s.r.at)")
CLAIMED = "@step()\ndef still(s) -> bool:\n    return s.next.n == s.n\n"


@pytest.mark.parametrize("claims", ["", CLAIMED])
@pytest.mark.parametrize("assigned", ASSIGNED)
def test_a_value_that_has_no_code_is_not_decoded(assigned: str, claims: str) -> None:
    text = f"@action()\ndef act(s) -> None:\n    {assigned}\n    s.next.n = not s.n\n{claims}"
    loaded = model(text, PAINT_VARIABLES, PAINT_HEAD)
    for found in (explore(loaded, {}, threads=1), walk(loaded, {}, seed=0, steps=5)):
        assert found.trace is not None
        assert found.trace.claim in ("defined", "type of c", "type of m")
        assert len(found.trace.steps) == 2
