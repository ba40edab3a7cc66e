"""A refinement's parameters: what is said without them is what is said with them, for every pair of states."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import pytest

from kafkaspec.explore.engine import explore
from kafkaspec.language import Claim, Expr, LoadedModel, refine
from kafkaspec.language.expr import eq, node, not_
from kafkaspec.language.types import BOOL
from tests.language.texts import model, sizes_of

VARIABLES = {
    "x": ("Num", "def to_x(s, v: Num) -> None:\n    s.next.x2 = v"),
    "y": ("Num", "def to_y(s, v: Num) -> None:\n    s.next.y2 = v"),
    "b": ("bool", "def to_b(s, v: bool) -> None:\n    s.next.b2 = v"),
    "c": ("C", "def to_c(s, v: C) -> None:\n    s.next.c2 = v"),
    "o": ("Num | None", "def to_o(s, v: Num | None) -> None:\n    s.next.o2 = v"),
    "m": ("dict[P, Num]", "def to_m(s, k: P, v: Num) -> None:\n    s.next.m2[k] = v"),
    "f": ("dict[bool, Num]", "def to_f(s, k: bool, v: Num) -> None:\n    s.next.f2[k] = v"),
    "g": ("dict[bool, bool]", "def to_g(s, k: bool, v: bool) -> None:\n    s.next.g2[k] = v"),
    "h": ("dict[Num, Num]", "def to_h(s, k: Num, v: Num) -> None:\n    s.next.h2[k] = v"),
    "S": ("set[P]", "def to_S(s, v: set[P]) -> None:\n    s.next.S2 = v"),
    "B": ("set[C]", "def to_B(s, v: set[C]) -> None:\n    s.next.B2 = v"),
    "q": (
        "Annotated[list[Num], Bounded(2)]",
        "def to_q(s, v: Num) -> None:\n    require(len(s.q2) < 2)\n    s.next.q2 = s.q2 + [v]\n"
        "@action()\ndef to_empty(s) -> None:\n    s.next.q2 = s.q2[:0]",
    ),
}
"""By name: a variable's type, and the action that gives its double any value."""

GONE = {
    "a number": ("x y", "v: Num", "s.next.x = v"),
    "a number of fewer values": ("x", "v: Annotated[int, Range(1, 2)]", "s.next.x = v"),
    "in the guard": ("x y", "v: Num", "require(v < s.y, v != s.x)\ns.next.x = v"),
    "in two places": ("x y", "v: Num", "s.next.x = v\ns.next.y = v"),
    "in two places, one of them conditional": ("x b", "v: bool", "if v:\n    s.next.x = 1\ns.next.b = v"),
    "of a sum": ("x y", "v: Num", "require(v < 2)\ns.next.x = v\ns.next.y = v + 1"),
    "an option": ("o", "v: Num | None", "require(v is not None or s.o is None)\ns.next.o = v"),
    "an enum": ("c b", "v: C", "require(v != s.c or s.b)\ns.next.c = v"),
    "at a key": ("m", "k: P, v: Num", "require(v > s.m[k])\ns.next.m[k] = v"),
    "at a key that is a parameter shown elsewhere": ("f b", "k: bool, v: Num", "s.next.f[k] = v\ns.next.b = k"),
    "the same, the other way round": ("f b", "v: Num, k: bool", "s.next.f[k] = v\ns.next.b = k"),
    "at a key that only the guard says is one": (
        "h o",
        "v: Annotated[int, Range(1, 2)]",
        "require(s.o is not None)\ns.next.h[s.o] = v",
    ),
    "a set": ("S", "v: set[P]", "require(all(k not in s.S for k in P if k in v))\ns.next.S = v"),
    "a set that is never empty": ("S", "v: Annotated[set[P], NonEmpty]", "s.next.S = v"),
    "an element at the end": ("q x", "v: Num", "require(len(s.q) < 2, v != s.x)\ns.next.q = s.q + [v]"),
    "one of fewer at the end": ("q", "v: Annotated[int, Range(1, 3)]", "require(len(s.q) < 2)\ns.next.q = s.q + [v]"),
    "how many are kept": ("q x", "v: Num", "require(v <= len(s.q))\ns.next.q = s.q[:v]\ns.next.x = v"),
    "how many are kept of what another leaves": (
        "q b",
        "v: Num, k: bool",
        "require(v <= len(s.q if k else s.q[:1]))\ns.next.q = (s.q if k else s.q[:1])[:v]\ns.next.b = k",
    ),
    "how many are kept of those before": ("q", "v: Num", "require(v <= len(s.q), v > 0)\ns.next.q = s.q[:v]"),
    "elements taken": ("m", "v: set[P]", "s.next.m = {k: 0 if k in v else s.m[k] for k in P}"),
    "elements taken, if they may be": (
        "m S",
        "v: set[P]",
        "require(all(s.m[k] > 0 for k in P if k in v))\ns.next.m = {k: s.m[k] - 1 if k in v else s.m[k] for k in P}",
    ),
    "all or none": ("S x", "v: set[P]", "require(all(k in v or s.x == 1 for k in P))\ns.next.x = 2"),
    "an element or none": ("m x", "v: P | None", "s.next.x = 0 if v is None else s.m[v]"),
    "an element, if there is one": ("m", "v: P | None", "if v is not None:\n    s.next.m[v] = 0"),
    "elements of an enum": ("B", "v: set[C]", "require(all(k not in s.B for k in C if k in v))\ns.next.B = set()"),
}
"""A parameter that no quantifier is left of."""
LEFT = {
    "under a condition": ("x b", "v: Num", "if s.b:\n    s.next.x = v"),
    "a number or none": ("x b", "v: Num | None", "if s.b:\n    s.next.x = 0 if v is None else v"),
    "overwritten": ("x", "v: Num", "s.next.x = v\ns.next.x = 1"),
    "overwritten under a condition": ("x b", "v: Num", "s.next.x = v\nif s.b:\n    s.next.x = 1"),
    "at one of two keys": ("f", "v: Num", "s.next.f[True] = v\ns.next.f[False] = 1"),
    "at a key that it chooses": ("g", "v: bool", "s.next.g[v] = v"),
    "at keys that choose each other": ("g f", "v: bool, w: bool", "s.next.g[v] = w\ns.next.f[w] = 1 if v else 0"),
    "in the guard alone": ("x y", "v: Num", "require(v > s.x)\ns.next.y = 0"),
    "of a sum alone": ("x", "v: Num", "require(v < 2)\ns.next.x = v + 1"),
    "more than there are": ("q x", "v: Num", "s.next.q = s.q[:v]\nif v == 2:\n    s.next.x = 1"),
    "at an end that it chooses": ("q", "v: Num", "require(v < 2)\ns.next.q = s.q[:v] + [v]"),
    "a set of at most one record": (
        "x",
        "v: Annotated[set[R], Bounded(1)]",
        "require(all(r.b and r.a != s.x for r in v))\ns.next.x = 1",
    ),
    "a set asked of what only the guard says is there": (
        "m o",
        "v: set[P]",
        "require(s.o is not None, all(s.m[k] > s.o for k in P if k in v))\n"
        "s.next.m = {k: 0 if k in v else s.m[k] for k in P}",
    ),
    "a set that is counted": ("m", "v: set[P]", "require(len(v) < 2)\ns.next.m = {k: 0 if k in v else 1 for k in P}"),
    "a set of which there is one": ("x", "v: set[P]", "require(any(k in v for k in P))\ns.next.x = 1"),
    "a set asked of another": (
        "m",
        "v: set[P]",
        "require(all(k in v or j not in v for k in P for j in P))\ns.next.m = {k: 0 if k in v else s.m[k] for k in P}",
    ),
    "a set that is never empty and asked": (
        "m",
        "v: Annotated[set[P], NonEmpty]",
        "s.next.m = {k: 0 if k in v else s.m[k] for k in P}",
    ),
    "a set that makes another": ("S", "v: set[P]", "s.next.S = {k for k in P if k in v or k in s.S}"),
    "a set in another": ("S x", "v: set[P]", "require(v <= s.S)\ns.next.x = 1 if v == s.S else 0"),
}
"""One that must be looked for."""


def doubled(used: str, parameters: str, lines: str) -> LoadedModel:
    """A model that goes from any state of the abstract one to any other, and the abstract one with that action."""
    of = {n: VARIABLES[n] for n in used.split()}
    abstract = "class Abstract(Model):\n" + "".join(f"    {n}: {t}\n" for n, (t, _) in of.items())
    abstract += f"    @action()\n    def go(s, {parameters}) -> None:\n" + textwrap.indent(lines, " " * 8) + "\n"
    variables = "".join(f"{n}: {t}\n{n}2: {t}\n" for n, (t, _) in of.items())
    text = "".join(f"@action()\n{give}\n" for _, give in of.values())
    text += "@action()\ndef jump(s) -> None:\n" + "".join(f"    s.next.{n} = s.{n}2\n" for n in of)
    text += "@refines(Abstract)\ndef shows(s) -> Abstract:\n    return Abstract.shown("
    return model(text + ", ".join(f"{n}=s.{n}" for n in of) + ")\n", variables, abstract)


def broken(m: LoadedModel, e: Expr) -> bool:
    """Is it false of a step?"""
    alone = replace(m, steps={"e": Claim("e", (), e, "", m.refinements["shows"].loc)}, refinements={})
    found = explore(alone, sizes_of(alone), deadlock=True)
    assert found.outcome in ("complete", "violation")
    return found.outcome == "violation"


def without_and_with(m: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> tuple[Expr, Expr]:
    """That a step shows the action: as it is said, and as the definition says it, for some values of the parameters."""
    r = m.refinements["shows"]
    said = r.ways["go"]
    with monkeypatch.context() as patch:
        patch.setattr(refine, "_shown_in", lambda *_: None)
        patch.setattr(refine, "_for_some", lambda p, e: node("exists", BOOL, p, e))
        return said, replace(r).ways["go"]


def looked_for(e: Expr) -> bool:
    """Is there a quantifier over the values of anything but a sort?"""
    return (e.op == "exists" and e.args[0].t.kind != "sort") or any(looked_for(x) for x in e.args)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [*GONE, *LEFT])
def test_without_parameters_the_same_is_said(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    m = doubled(*{**GONE, **LEFT}[shape])
    said, meant = without_and_with(m, monkeypatch)
    assert looked_for(meant)
    assert looked_for(said) == (shape in LEFT)
    assert not broken(m, eq(said, meant))
    assert broken(m, meant)
    assert broken(m, not_(meant))


def test_a_key_that_may_be_none_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """There the abstract action has no value, and is no step."""
    abstract = """
class Abstract(Model):
    m: dict[Annotated[int, Range(0, 1)], Num]
    @action()
    def go(s, i: Num, v: Num) -> None:
        require(i == 2)
        s.next.m[i] = v
"""
    text = """
@action()
def to(s, i: Annotated[int, Range(0, 1)], v: Num) -> None:
    s.next.m2[i] = v
@action()
def jump(s) -> None:
    s.next.m = s.m2
@refines(Abstract)
def shows(s) -> Abstract:
    return Abstract.shown(m=s.m)
"""
    of = "dict[Annotated[int, Range(0, 1)], Num]"
    m = model(text, f"m: {of}\nm2: {of}\n", abstract)
    said, meant = without_and_with(m, monkeypatch)
    assert looked_for(said)
    assert not broken(m, eq(said, meant))
    assert not broken(m, not_(meant))
