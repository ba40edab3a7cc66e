"""A local name that an `if` assigns has afterwards the value that Python gives it. Where it may have none, or none that
is of one type, the text is refused."""

from __future__ import annotations

import pytest

from kafkaspec.explore.engine import explore
from kafkaspec.language import ModelError
from kafkaspec.language.concrete import Concrete
from tests.language.texts import action, model, sizes_of

VARIABLES = """
a: bool
b: bool
o: Num | None
n: Annotated[int, Range(0, 9)]
S: set[Num]
q: Annotated[list[Num], Bounded(2)]
r: R
of: dict[P, Num]
"""
FLIP = """
@action()
def flip(s, x: bool, y: bool) -> None:
    s.next.a = x
    s.next.b = y
    s.next.o = None if x else 1
"""
TEXTS = {
    "both branches": (["if s.a:", "    x = 1", "else:", "    x = 2", "s.next.n = x"], {1, 2}),
    "one branch": (["x = 3", "if s.a:", "    x = 4", "s.next.n = x"], {3, 4}),
    "the else alone": (["x = 3", "if s.a:", "    s.next.r = s.r", "else:", "    x = 4", "s.next.n = x"], {3, 4}),
    "nested": (["if s.a:", "    if s.b:", "        x = 1", "    else:", "        x = 2", "    s.next.n = x"], {1, 2}),
    "assigned before and within": (
        ["x = 3", "if s.a:", "    x = x + 1", "    if s.b:", "        x = x + 2", "s.next.n = x"],
        {3, 4, 6},
    ),
    "assigned within, used in the other branch": (
        ["x = 3", "if s.a:", "    x = 5", "    s.next.n = x", "else:", "    s.next.n = x + 1"],
        {5, 4},
    ),
    "elif": (
        ["x = 3", "if s.a:", "    s.next.n = 0", "elif s.b:", "    x = 1", "    s.next.n = x", "else:",
         "    s.next.n = x"],
        {1, 3},
    ),
    "every branch of three": (["if s.a:", "    x = 1", "elif s.b:", "    x = 2", "else:", "    x = 3", "s.next.n = x"],
                              {1, 2, 3}),
    "two names that change places": (["x, y = 1, 2", "if s.a:", "    x, y = y, x", "s.next.n = x + 3 * y"], {7, 5}),
    "a parameter of a helper": (["s.next.n = s.chosen(5)"], {5, 6}),
    "a name that is shadowed": (["x = 1", "if s.a:", "    x = 2",
                                 "s.next.n = x if all(x < 2 for x in range(0, 2)) else 0"], {1, 2}),
    "an option": (["x = None", "if s.a:", "    x = 2", "s.next.o = x", "s.next.n = 2 if x is None else 3"], {2, 3}),
    "a set": (["x = set()", "if s.a:", "    x = {1}", "s.next.S = x", "s.next.n = len(s.S) + 1"], {1, 2}),
    "a sequence": (["x = []", "if s.a:", "    x = [1]", "s.next.q = x", "s.next.n = len(s.q) + 1"], {1, 2}),
    "a record": (["x = s.r", "if s.a:", "    x = replace(x, a=2)", "s.next.r = x", "s.next.n = s.r.a"], {0, 2}),
    "a map that was made before": (
        ["x = 1", "y = {k: x for k in P}", "x = 2", "s.next.of = y", "s.next.n = sum(s.of[k] for k in P) + x"], {2, 4},
    ),
    "a guard below": (["x = 3", "if s.a:", "    require(s.b)", "    x = 4", "s.next.n = x"], {3, 4}),
    "names of different types, each in its branch": (
        ["if s.a:", "    x = 4", "    s.next.n = x", "else:", "    x = s.o is None", "    s.next.b = x"], {4},
    ),
}  # fmt: skip
"""The lines of an action, and what they leave in n beside 0."""
HELPER = """
@define
def chosen(s, k: int) -> int:
    if s.a:
        k = k + 1
    return k
"""


@pytest.mark.parametrize(("lines", "left"), TEXTS.values(), ids=TEXTS.keys())
def test_a_local_name_has_the_value_of_the_branch_that_was_taken(lines: list[str], left: set[int]) -> None:
    m = model(FLIP + HELPER + action(*lines), VARIABLES)
    c = Concrete(m.cls, sizes_of(m))
    states, _ = c.reachable()
    assert {c.show(s)["n"] for s in states} == {0} | left
    e = explore(m, sizes_of(m), deadlock=True)
    assert (e.outcome, e.distinct) == ("complete", len(states))


MAY_HAVE_NONE = {
    "one branch": (["if s.a:", "    x = 1", "s.next.n = x"], 3),
    "the else alone": (["if s.a:", "    s.next.n = 0", "else:", "    x = 1", "s.next.n = x"], 5),
    "nested in one branch": (["if s.a:", "    if s.b:", "        x = 1", "    s.next.n = x"], 4),
    "in the other branch": (["if s.a:", "    x = 1", "else:", "    s.next.n = x"], 4),
    "elif without else": (["if s.a:", "    x = 1", "elif s.b:", "    x = 2", "s.next.n = x"], 5),
    "before it": (["if s.a:", "    s.next.n = x", "    x = 1"], 2),
    "in a comprehension": (["if s.a:", "    x = 1", "s.next.b = all(k < x for k in range(0, 2))"], 3),
    "handed on": (["if s.a:", "    x = 1", "y = x"], 3),
}


@pytest.mark.parametrize(("lines", "line"), MAY_HAVE_NONE.values(), ids=MAY_HAVE_NONE.keys())
def test_a_local_name_that_may_have_no_value_is_refused(lines: list[str], line: int) -> None:
    with pytest.raises(ModelError, match=r"\.py:\d+: 'x' may have no value here: assign it before the 'if', or") as e:
        model(action(*lines), VARIABLES)
    (other,) = model(action("s.next.n = 0"), VARIABLES).actions
    assert int(str(e.value).split(":")[1]) == other.loc[1] + 1 + line


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["x = 1", "if s.a:", "    x = True", "s.next.n = x"], "True of type bool stands in one place with 1"),
        (["if s.a:", "    x = set()", "else:", "    x = set()", "s.next.S = x"], "the types of set() and set()"),
        (
            ["x = {k: 0 for k in P}", "if s.a:", "    x = {k: 1 for k in P}", "s.next.of = x"],
            "cannot be told",
        ),
    ],
)
def test_a_local_name_that_can_have_no_one_value_is_refused(lines: list[str], said: str) -> None:
    with pytest.raises(ModelError, match=r"\.py:\d+: 'x' has no one value after the 'if' that assigns it: ") as e:
        model(action(*lines), VARIABLES)
    assert said in str(e.value)
