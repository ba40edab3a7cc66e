"""What an action evaluates before a guard must have a value also where the guard is false, as Python comes to it first:
a helper that guards may stand anywhere in an expression."""

from __future__ import annotations

import pytest

from kafkaspec.language import ModelError
from tests.language.texts import action, explored, interpreted, model

VARIABLES = """
n: Num
bad: bool
q: Annotated[list[Num], Bounded(2)]
m: dict[Num, dict[Num, bool]]
c: dict[C, Num]
o: Num | None
"""
HELPERS = """
@define
def guarded(s) -> int:
    require(s.n > 0)
    return 0
@define
def sure(s) -> bool:
    require(s.n > 0)
    return True
@define
def colour(s) -> C:
    require(s.n > 0)
    return C.RED
@define
def second(s, x: int, y: int) -> int:
    return y
@define
def inner(s) -> int:
    return s.q[0] + s.guarded()
"""
BEFORE = {
    "the other operand": "s.next.n = s.q[0] + s.guarded()",
    "an operand before the other": "s.next.n = 1 + s.q[0] - s.guarded()",
    "what is assigned, at a key": "s.next.c[s.colour()] = s.q[0]",
    "the first of two keys": "s.next.m[s.q[0]][s.guarded()] = True",
    "the first of two keys that is none": "s.next.m[s.n + 3][s.guarded()] = True",
    "a condition and what stands behind it": "if s.q[0] < 1 and s.sure():\n    s.next.n = 1",
    "a condition or what stands behind it": "s.next.bad = s.q[0] == 1 or s.sure()",
    "the condition of a choice": "s.next.n = s.guarded() if s.q[0] < 1 else 0",
    "the first of two values": "x, y = s.q[0], s.guarded()\ns.next.n = y",
    "the first of two values that are assigned": "s.next.n, s.next.q = s.q[0], [s.guarded()]",
    "the first argument": "s.next.n = s.second(s.q[0], s.guarded())",
    "an argument with a name": "s.next.n = s.second(x=s.q[0], y=s.guarded())",
    "an element before another": "s.next.bad = len({s.q[0], s.guarded()}) == 1",
    "a place in a sequence before another": "s.next.q = [s.q[0], s.guarded()]",
    "a sequence of which a place is read": "s.next.n = s.q[s.n - 1:][s.guarded()]",
    "the lower limit of a slice": "s.next.q = s.q[s.q[0]:s.guarded()]",
    "a comparison's left side": "require(s.q[0] < s.guarded())",
    "a chain's first two": "require(0 <= s.q[0] < s.guarded())",
    "the greatest of two": "s.next.n = max(s.q[0], s.guarded())",
    "what the greatest is of": "s.next.n = max((x for x in s.q[s.n - 1:]), default=s.guarded())",
    "the field before another": "s.next.bad = R(a=s.q[0], b=s.sure()).b",
    "within a helper": "s.next.n = s.inner()",
    "before a helper that begins with a guard in its argument": "s.next.n = s.q[0] + s.second(s.guarded(), 1)",
}
AFTER = {
    "the guard before the other operand": "s.next.n = s.guarded() + s.q[0]",
    "the guard before what the key is of": "s.next.m[s.guarded()][s.q[0]] = True",
    "the guard before the element": "s.next.q = [s.guarded(), s.q[0]]",
    "the guard in a line before": "s.sure()\ns.next.n = s.q[0]",
    "the guard in a condition before": "s.next.bad = s.sure() and s.q[0] > 0",
    "the guard where the condition has no value": "s.next.n = s.q[0] if s.sure() else 0",
    "a default that is asked before the values": "s.next.n = max((s.q[x] for x in range(0, 1)), default=s.guarded())",
    "None, of which a sum has no value": "s.next.n = s.o + s.guarded()",
    "None, with which a slice has no value": "s.next.q = s.q[s.o:s.guarded()]",
    "what is not come to": "s.next.bad = s.n > 0 and s.q[0] + s.guarded() > 0",
}


@pytest.mark.parametrize("effect", BEFORE.values(), ids=BEFORE.keys())
def test_what_stands_before_a_guard_is_asked_first(effect: str) -> None:
    m = model(HELPERS + action(*effect.split("\n")), VARIABLES)
    assert (interpreted(m), explored(m)) == ("undefined", "undefined")


@pytest.mark.parametrize("effect", AFTER.values(), ids=AFTER.keys())
def test_what_stands_behind_a_guard_is_asked_where_it_holds(effect: str) -> None:
    m = model(HELPERS + action(*effect.split("\n")), VARIABLES)
    assert (interpreted(m), explored(m)) == ("", "")


def test_what_a_statement_has_evaluated_is_asked_once() -> None:
    """A guard in a later line adds nothing to what the lines before it ask."""
    lines = ("s.next.bad = s.n > 0 and s.q[0] > 0", "x = s.second(s.q[1], 0)", "require(s.n > 0)", "s.next.n = x")
    m = model(HELPERS + action(*lines), VARIABLES)
    (a,) = m.actions
    assert [(n.after, str(n.what)) for n in a.needs] == [(0, "((0 < n) and (0 < q[0]))"), (0, "q[1]")]


def test_a_guard_in_a_comprehension_is_refused_as_before() -> None:
    with pytest.raises(ModelError, match="stands in a comprehension"):
        model(HELPERS + action("s.next.bad = all(s.q[0] + s.guarded() > x for x in s.q)"), VARIABLES)
