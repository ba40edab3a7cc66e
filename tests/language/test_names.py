"""Names, constants and classes that mean one thing to Python mean the same to every engine, or are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafkaspec.explore.engine import explore
from kafkaspec.language import ModelError, load
from kafkaspec.language.concrete import Concrete
from tests import modules
from tests.language.texts import VARIABLES, action, explored, interpreted, model, sizes_of

SLOTS = ("args", "aux", "free", "id", "loc", "op", "t", "total")
"""What a node of the graph is made of."""


@pytest.mark.parametrize(
    "name", [*SLOTS, "_t", "_var", "_keys", "_model", "next", "item", "value", "self", "cls", "model", "keys"]
)
def test_a_record_s_field_may_have_any_name(name: str) -> None:
    head = f"@dataclass(frozen=True)\nclass Named:\n    {name}: Num\n    {name}_too: bool\n"
    body = (
        f"@action()\ndef f(s, k: Num) -> None:\n    s.next.x = Named({name}=k, {name}_too=True)\n"
        + f"@action()\ndef g(s) -> None:\n    s.next.n = s.x.{name}\n    s.next.x.{name} = 0\n    y = s.x\n"
        + f"    s.next.bad = y.{name} == 2 and replace(y, {name}=1).{name}_too\n"
        + f"@invariant()\ndef i(s) -> bool:\n    return s.x.{name} < 2 or not s.x.{name}_too\n"
    )
    m = model(body, "n: Num\nbad: bool\nx: Named\n", head)
    assert (interpreted(m), explored(m)) == ("i", "i")
    held = model(body.partition("@invariant")[0], "n: Num\nbad: bool\nx: Named\n", head)
    assert explore(held, sizes_of(held), deadlock=True).distinct == len(
        Concrete(held.cls, sizes_of(held)).reachable()[0]
    )


def test_a_place_in_a_field_named_next_is_asked_for() -> None:
    head = "@dataclass(frozen=True)\nclass Chain:\n    next: Annotated[list[Num], Bounded(1)]\n"
    m = model(
        "@initial\ndef start(s) -> None:\n    s.next.x = Chain(next=[1])\n" + action("s.next.n = s.x.next[s.n - 1]"),
        "n: Num\nx: Chain\n",
        head,
    )
    assert (interpreted(m), explored(m)) == ("undefined", "undefined")


@pytest.mark.parametrize("claim", ["s.next.q[s.n - 1] == 0", "s.next.q[s.n - 1:] == [0]", "s.next.q[:s.n - 1] == []"])
def test_an_index_below_0_of_the_state_after_has_no_value(claim: str) -> None:
    m = model(action("s.next.q = [0]") + f"@step()\ndef grows(s) -> bool:\n    return {claim}\n")
    c = Concrete(m.cls, sizes_of(m))
    (before,) = c.initial_states()
    (taken,) = c.successors(before)
    with pytest.raises(Exception, match=r"no index of a sequence|a limit of a slice is 0 or more"):
        c.holds("grows", before, taken.state)
    e = explore(m, sizes_of(m), deadlock=True)
    assert e.trace is not None
    assert e.trace.claim == "grows"


@pytest.mark.parametrize(
    ("kind", "claim", "said"),
    [
        ("invariant()", "False", ""),
        ("invariant()", "s.n > 5", ""),
        ("lemma()", "False", ""),
        ("step()", "False", ""),
        ("witness", "True", "unreachable"),
        ("witness", "s.n == 0", "unreachable"),
    ],
)
def test_a_claim_about_the_values_of_an_empty_type(kind: str, claim: str, said: str) -> None:
    """For all of none it is true, for some of none it is not."""
    m = model(
        action("s.next.n = 1") + f"@{kind}\ndef i(s, k: Annotated[int, Range(3, N)]) -> bool:\n    return {claim}\n"
    )
    e = explore(m, sizes_of(m), deadlock=True)
    assert e.outcome == "complete"
    assert [n for n, t in e.witnesses.items() if t is None] == (["i"] if said else [])
    c = Concrete(m.cls, sizes_of(m))
    (before,) = c.initial_states()
    (taken,) = c.successors(before)
    assert c.holds("i", before, taken.state) == (said == "")
    assert explore(m, sizes_of(m) | {"N": 3}, deadlock=True).outcome == ("complete" if said else "violation")


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("s.next.n = 1 if F is True else 2", {True: 1, False: 2}),
        ("s.next.n = 1 if F is not False else 2", {True: 1, False: 2}),
        ("x = F\n    s.next.n = 1 if x is False else 2", {True: 2, False: 1}),
        ("s.next.n = 1 if (F and s.bad) is False else 2", {True: 1, False: 1}),
        ("s.next.n = LESS - 1", {True: 0, False: 0}),
        ("s.next.n = 1 if MORE else 2", {True: 2, False: 2}),
        ("s.next.n = 1 if SAME is True else 2", {True: 1, False: 1}),
        ("s.next.n = TWICE // 3", {True: 1, False: 1}),
        ("s.next.n = s.of(NEGATIVE)", {True: 1, False: 1}),
        ("s.next.n = 1 if s.n in (LESS - 1, NEGATIVE) else 2", {True: 1, False: 1}),
    ],
)
def test_what_a_file_makes_of_sizes_is_their_value(line: str, left: dict[bool, int]) -> None:
    head = 'F = Flag("F")\nLESS = N - 1\nMORE = N > 5\nSAME = 2 == N\nTWICE = 2 * N\nNEGATIVE = -N\n'
    body = "@define\ndef of(s, k: int, more: int = LESS) -> int:\n    return k + more + 2\n" + action(
        "assert F or not F", line.partition("\n")[0], *line.split("\n    ")[1:]
    )
    m = model(
        body, "n: Annotated[int, Range(NEGATIVE, TWICE)]\nbad: bool\nq: Annotated[list[bool], Bounded(TWICE)]\n", head
    )
    for f, n in left.items():
        sizes = {**sizes_of(m), "F": f}
        c = Concrete(m.cls, sizes)
        (first,) = c.initial_states()
        assert [c.show(t.state)["n"] for t in c.successors(first)] == [n]
        assert explore(m, sizes, deadlock=True).distinct == len(c.reachable()[0])


LIAR = "class Liar({0}):\n    def __eq__(self, o):\n        return True\n    __contains__ = __eq__\n"
META = "class Meta({0}):\n    def __iter__(cls):\n        return iter(())\n    def __len__(cls):\n        return 7\n"


@pytest.mark.parametrize(
    ("head", "variables", "line", "said"),
    [
        (
            LIAR.format("int") + "    __hash__ = None\nX = Liar(2)",
            "",
            "s.next.bad = s.n == X",
            "is a Liar: a constant is",
        ),
        (LIAR.format("list") + "X = Liar([2])", "", "s.next.bad = s.n in X", "is a Liar: a constant is"),
        (LIAR.format("tuple") + "X = Liar([2])", "", "s.next.bad = s.n in X", "is a Liar: a constant is"),
        ("class E(enum.IntEnum):\n    A = 1\nX = E.A", "", "s.next.n = X", "is a E: a constant is"),
        ("X = R(a=3, b=True)", "", "s.next.bad = s.r == X", "has fields that may be outside their types"),
        ("X = R(a=2, b=True)", "", "s.next.r = X", "has fields that may be outside their types"),
        (
            META.format("type(Sort)") + "class Z(Sort, metaclass=Meta): ...",
            "z: dict[Z, bool]",
            "",
            "a sort extends Sort alone",
        ),
        (
            META.format("enum.EnumMeta") + "class E(enum.Enum, metaclass=Meta):\n    A = 1",
            "z: E",
            "",
            "extends enum.Enum alone",
        ),
        (
            META.format("type") + "@dataclass(frozen=True)\nclass W(metaclass=Meta):\n    a: bool",
            "z: W",
            "",
            "extends nothing but records, not Meta",
        ),
        ("class Z(Sort):\n    __len__ = int.__abs__", "z: Z | None", "", "a sort has no methods, such as __len__()"),
        (
            "class E(enum.Enum):\n    A = 1\n    __eq__ = object.__ne__",
            "z: E",
            "",
            "an enum has no methods, such as __eq__()",
        ),
        (
            "@dataclass(frozen=True)\nclass W:\n    a: bool\n    __eq__ = object.__eq__",
            "z: W",
            "",
            "a record has no methods, such as __eq__()",
        ),
        (
            "@dataclass(frozen=True)\nclass W:\n    a: bool\n    __hash__ = None",
            "z: W",
            "",
            "a record has no methods, such as __hash__()",
        ),
        (
            "@dataclass(frozen=True)\nclass W:\n    a: bool\n    exec('def __eq__(a, b): return True')",
            "z: W",
            "",
            "a record has no methods, such as __eq__()",
        ),
        (
            "import dataclasses\n@dataclass(frozen=True)\nclass W:\n    a: bool\n    b: dataclasses.InitVar[int]",
            "z: W",
            "",
            "what a record is made of are its fields",
        ),
        (
            "@dataclass(frozen=True, init=False)\nclass W:\n    a: bool",
            "z: W",
            "",
            "what a record is made of are its fields",
        ),
        (
            "@dataclass(frozen=True)\nclass W:\n    S: set[P]",
            "z: Annotated[set[W], Bounded(2)]",
            "",
            "W.S is of type set[P]: a record in a set has no sets",
        ),
        (
            "@dataclass(frozen=True)\nclass V:\n    q: dict[C, bool]\n@dataclass(frozen=True)\nclass W:\n    v: V",
            "z: W",
            "s.next.bad = s.z in {s.z}",
            "V.q is of type dict[C, bool]: a record in a set has no sets",
        ),
        (
            "@dataclass(frozen=True)\nclass W:\n    q: Annotated[list[bool], Bounded(1)]",
            "z: W",
            "s.next.bad = len({W(q=[x]) for x in s.S}) == 1",
            "W.q is of type list[bool]: a record in a set has no sets",
        ),
        ("", "z: dict[Annotated[int, Range(0)], bool]", "", "a map's key has an upper limit"),
        ("", "", "try:\n    s.next.n = s.q[0]\nexcept* IndexError:\n    s.next.n = 1", "'trystar' has no meaning"),
        ("", "", "async def g(): ...\ns.next.n = 1", "'asyncfunctiondef' has no meaning"),
        ("", "", "s.r.a = 1", "assign to s.next: r is read of the state before"),
        ("", "", "s.r.next = 1", "assign to s.next: r is read of the state before"),
    ],
)
def test_what_python_may_take_for_something_else_is_refused(head: str, variables: str, line: str, said: str) -> None:
    body = action(*(line or "s.next.n = 1").split("\n"))
    with pytest.raises(ModelError, match=r"text_of_a_test_\d+\.py:\d+: ") as e:
        model(body, VARIABLES.replace("S: set[Num]", "S: set[bool]") + variables + "\n", head + "\n")
    assert said in str(e.value)


def test_a_helper_assigns_to_no_field_of_what_it_is_given() -> None:
    helper = "@define\ndef put(s, x: R) -> None:\n    x.a = 1\n"
    with pytest.raises(ModelError, match=r"\.py:\d+: an action assigns to s.next and its parts, and to local names"):
        model(helper + action("s.put(s.r)"))


@pytest.mark.parametrize(
    "record",
    [
        "@dataclass(slots=True, frozen=True, order=True)\nclass W:\n    a: Num = 1\n    K: ClassVar[int] = 3\n",
        "@dataclass(frozen=True, kw_only=True, repr=False)\nclass W:\n    b: bool = False\n    a: Num\n",
        "@dataclass(frozen=True)\nclass V:\n    a: Num\n@dataclass(frozen=True)\nclass W(V):\n    b: C = C.RED\n",
    ],
)
def test_a_record_may_be_written_as_python_s_are(record: str) -> None:
    head = "from typing import ClassVar\n" + record + "X = W(a=1)\n"
    m = model(action("s.next.w = X") + action("s.next.n = 1").replace("def f", "def g"), "n: Num\nw: W\n", head)
    assert (interpreted(m), explored(m)) == ("", "")
    assert explore(m, sizes_of(m), deadlock=True).distinct == 4


ASSERTS = """
import sys
from pathlib import Path
from kafkaspec.language.concrete import Concrete, Undefined
from tests import modules
M = modules.module(Path(sys.argv[1]).read_text(), Path(sys.argv[2])).M
c = Concrete(M, {"N": 2})
try:
    c.successors(c.initial_states()[0])
except Undefined as e:
    print(e)
"""


def test_assert_has_its_meaning_where_python_leaves_it_out(tmp_path: Path) -> None:
    text = modules.HEAD + "class M(Model):\n    n: Num\n    @action()\n    def f(s) -> None:\n        assert s.n > 0\n"
    assert load(modules.module(text + "        s.next.n = 1\n", tmp_path).M).actions[0].needs
    (tmp_path / "text").write_text(text + "        s.next.n = 1\n")
    command = [sys.executable, "-O", "-c", ASSERTS, str(tmp_path / "text"), str(tmp_path)]
    out = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=True).stdout
    assert "AssertionError" in out


def test_a_line_within_parentheses_may_begin_anywhere(tmp_path: Path) -> None:
    """It is read as Python reads it, whatever stands in its first columns."""
    text = modules.HEAD + (
        "class M(Model):\n    n: Annotated[int, Range(0, 20)]\n"
        "    @action()\n    def f(s) -> None:\n        require(s.n < (\n00009 + 1))\n        s.next.n = (s.n +\n"
        '# a word\n  10\n)\n        """A text\nof lines"""\n'
        "    @invariant()\n    def i(s) -> bool:\n        return s.n < (\n10001)\n"
    ).replace("00009", "1009 - 1000")
    m = load(modules.module(text, tmp_path).M)
    e = explore(m, {}, deadlock=True)
    assert (interpreted(m), e.outcome, e.distinct) == ("", "complete", 2)
    with pytest.raises(ModelError, match=r"\.py:2\d: True"):
        load(modules.module(text.replace("\n  10\n", "\nTrue\n"), tmp_path).M)
