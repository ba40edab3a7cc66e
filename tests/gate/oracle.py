"""What a text means at given sizes: the text as Python runs it, breadth first, one transition after the other.

Nothing here knows an engine. A level is finished before a violation counts, as the engines do it, so that the set of
claims that are broken first does not depend on the order of states.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kafkaspec.errors import UserError
from kafkaspec.language import LoadedModel, Model, Sort, T, load
from kafkaspec.language.concrete import Concrete, OutsideType, State, Undefined
from kafkaspec.language.defined import DEFINED
from kafkaspec.language.expr import static
from kafkaspec.language.parts import nodes, variables
from tests.modules import module

Sizes = Mapping[str, int | bool]
Kind = Literal["after", "disabled", "undefined", "outside"]


def loaded(text: str, folder: Path) -> type[Model]:
    """The model of a text. Raises what loading raises."""
    values = vars(module(text, folder, "gate_model")).values()
    found = [x for x in values if isinstance(x, type) and issubclass(x, Model) and x is not Model][-1]
    load(found)
    return found


@dataclass(frozen=True)
class Outcome:
    """What one action with its arguments comes to in a state. `why`: what has no value, or leaves its type."""

    action: str
    arguments: Mapping[str, Any]
    kind: Kind
    state: State | None = None
    why: str = ""
    variables: tuple[str, ...] = ()
    """those that leave their types"""

    @property
    def types(self) -> list[str]:
        """The claims about types that it breaks."""
        return [f"type of {n}" for n in self.variables]


@dataclass
class Space:
    """What running the text found. `broken` are the claims broken first, after `steps` steps; a broken claim ends the
    run at the end of its level, as the limit on states does (`whole` is then false)."""

    concrete: Concrete
    levels: list[list[State]] = field(default_factory=list)
    generated: int = 0
    whole: bool = False
    broken: set[str] = field(default_factory=set)
    late: set[str] = field(default_factory=set)
    """Where a step breaks a claim: the claims that are broken by the states after as many steps."""
    steps: int = 0
    start: Literal["", "undefined", "outside"] = ""
    """What is wrong with @initial itself."""
    seen: dict[str, int] = field(default_factory=dict)
    """The level, from 1, at which a witness is first seen."""
    taken: dict[str, int] = field(default_factory=dict)

    @property
    def distinct(self) -> int:
        return sum(map(len, self.levels))

    @property
    def states(self) -> list[State]:
        return [s for level in self.levels for s in level]


def outcomes(c: Concrete, state: State) -> Iterator[Outcome]:
    """What every action with every choice of arguments comes to in a state."""
    with c._running():
        for a in c.model.actions:
            for v in c._choices(a, c._values(state)):
                yield outcome(c, state, a.name, v)


def outcome(c: Concrete, state: State, action: str, arguments: Mapping[str, Any]) -> Outcome:
    """What an action comes to in a state."""
    try:
        after = c.take(state, action, arguments)
    except Undefined as e:
        return Outcome(action, arguments, "undefined", why=str(e))
    except OutsideType as e:
        return Outcome(action, arguments, "outside", why=str(e), variables=e.variables)
    return Outcome(action, arguments, "disabled" if after is None else "after", after)


def holds(c: Concrete, claim: str, state: State, after: State | None = None) -> bool:
    """Is a claim defined and true?"""
    try:
        return c.holds(claim, state, after)
    except Undefined:
        return False


def witnessed(c: Concrete, claim: str, state: State) -> bool | None:
    """Does a state show a witness? None where the witness has no value."""
    try:
        return c.holds(claim, state)
    except Undefined:
        return None


GHOST = "type of a ghost"
"""What no engine says that leaves the ghosts out."""


def claims_of(m: LoadedModel, ghosts: bool) -> tuple[list[str], list[str], list[str]]:
    """The claims about states, those about steps, and the witnesses that are checked with, or without, ghosts."""
    hidden = set() if ghosts else set(m.ghosts)
    lemmas = [] if hidden else list(m.lemmas.values())
    states = [c.name for c in [*m.invariants.values(), *lemmas] if not variables(nodes(c.expr)) & hidden]
    steps = [c.name for c in m.steps.values() if not variables(nodes(c.expr)) & hidden]
    return states, steps, [c.name for c in m.witnesses.values() if not variables(nodes(c.expr)) & hidden]


def run(cls: type[Model], sizes: Sizes, ghosts: bool = True, most: int = 400) -> Space:
    """Every reachable state, to the end of the level in which there are more than `most`, or a claim is broken."""
    c = Concrete(cls, sizes, ghosts)
    out = Space(c)
    m = c.model
    state_claims, step_claims, witnesses = claims_of(m, ghosts)
    out.taken = {a.name: 0 for a in m.actions}
    try:
        starts = c._starts()
    except Undefined:
        out.start = "undefined"
        return out
    except OutsideType as e:
        out.start = "outside"
        if not ghosts and {*e.variables} <= {*m.ghosts}:
            out.broken.add(GHOST)
        return out
    out.generated = len(starts)
    seen = {c.key(s): s for s in starts}
    level = list(seen.values())
    while level:
        out.levels.append(level)
        depth = len(out.levels)
        for w in witnesses:
            said = [witnessed(c, w, s) for s in level]
            if w not in out.seen and any(said):
                out.seen[w] = depth
            if None in said:
                out.broken.add(f"{w}: {DEFINED}")
        out.broken |= {n for n in state_claims if not all(holds(c, n, s) for s in level)}
        if depth == 1:
            out.broken |= {n for n in m.starts if not all(holds(c, n, s) for s in level)}
        if out.broken:
            out.steps = depth - 1
            return out
        if len(seen) > most:
            return out
        following = []
        for s in level:
            for o in outcomes(c, s):
                if o.kind == "undefined":
                    out.broken.add(DEFINED)
                elif o.kind == "outside":
                    out.broken.add("type" if ghosts or not {*o.variables} <= {*m.ghosts} else GHOST)
                elif o.state is not None:
                    out.generated += 1
                    out.taken[o.action] += 1
                    out.broken |= {n for n in step_claims if n not in out.broken and not holds(c, n, s, o.state)}
                    k = c.key(o.state)
                    if k not in seen:
                        seen[k] = o.state
                        following.append(o.state)
        if out.broken:
            out.steps = depth
            out.late = {n for n in state_claims if not all(holds(c, n, s) for s in following)}
            return out
        level = following
    out.whole = True
    return out


# ---- states that need not be reachable
def arbitrary(c: Concrete, r: random.Random) -> State | None:
    """Any state in which every variable is of its type; None if a type has no value."""
    with c._running():
        try:
            return c.freeze({n: arbitrary_value(c, t, r) for n, t in c.vars.items()})
        except (IndexError, UserError):
            return None


def arbitrary_value(c: Concrete, t: T, r: random.Random) -> Any:
    match t.kind:
        case "option":
            return None if r.random() < 0.4 else arbitrary_value(c, t.item, r)
        case "map":
            return {k: arbitrary_value(c, t.item, r) for k in c.values(t.domain)}
        case "set":
            every = c.values(t.item)
            some = {x for x in every if r.random() < 0.5}
            return some or ({r.choice(every)} if t.nonempty else some)
        case "seq":
            return [arbitrary_value(c, t.item, r) for _ in range(r.randrange(static(t.hi, c.sizes) + 1))]
        case "rec":
            assert t.cls is not None
            return t.cls(**{n: arbitrary_value(c, f, r) for n, f in t.fields})
        case "range" if t.hi is None:
            return r.randrange(static(t.lo, c.sizes), 4)
    return r.choice(c.values(t))


# ---- orbits
def orbit(c: Concrete, state: State, sorts: tuple[str, ...], kept: list[str]) -> Any:
    """What states have in common that differ in the names of elements of these sorts alone."""
    every = [list(itertools.permutations(range(int(c.sizes[n])))) for n in sorts]
    best = None
    for renaming in itertools.product(*every):
        to = dict(zip(sorts, renaming, strict=True))
        found = repr([renamed(c, t, v, to) for (n, t), v in zip(c.vars.items(), state, strict=True) if n in kept])
        best = found if best is None or found < best else best
    return best


def renamed(c: Concrete, t: T, v: Any, to: Mapping[str, tuple[int, ...]]) -> Any:
    match t.kind:
        case "sort":
            return _moved(t, v, to)
        case "option":
            return None if v is None else (renamed(c, t.item, v[0], to),)
        case "set":
            return sorted((renamed(c, t.item, x, to) for x in v), key=repr)
        case "seq":
            return [renamed(c, t.item, x, to) for x in v]
        case "rec":
            return [renamed(c, f, x, to) for (_, f), x in zip(t.fields, v, strict=True)]
        case "map":
            items = [
                (renamed(c, t.domain, k, to), renamed(c, t.item, x, to))
                for k, x in zip(c.values(t.domain), v, strict=True)
            ]
            return sorted(items, key=lambda item: repr(item[0]))
    return repr(v)


def _moved(t: T, v: Any, to: Mapping[str, tuple[int, ...]]) -> str:
    assert isinstance(v, Sort)
    return v.name[0] + str(to[t.name][int(v.name[1:])]) if t.name in to else v.name
