"""The language: what a text may say, what it is read into, and what is said about one that cannot be read."""

from __future__ import annotations

import enum
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from kafkaspec.errors import UserError
from kafkaspec.language import (
    Bounded,
    Flag,
    Model,
    ModelError,
    NonEmpty,
    Range,
    Size,
    Sort,
    action,
    define,
    initial,
    invariant,
    load,
    require,
    show,
    step,
    witness,
)
from kafkaspec.language.concrete import Concrete
from kafkaspec.prove.engine import prove
from tests import modules
from tests.language.test_verdicts import said_by_the_explorer, said_by_the_text
from tests.modules import module


class Node(Sort): ...


class Colour(enum.Enum):
    RED = 0
    GREEN = 1


L = Size("L")
FAST = Flag("FAST")
Count = Annotated[int, Range(0, L)]


@dataclass(frozen=True)
class Letter:
    to: Node | None
    colour: Colour


@define
def lit(s: Everything, n: Node) -> bool:
    return s.colour[n] == Colour.GREEN


class Everything(Model):
    """Uses every construct once."""

    colour: dict[Node, Colour]
    count: dict[Node, Count]
    friends: dict[Node, set[Node]]
    post: Annotated[list[Letter], Bounded(L)]
    group: Annotated[set[Node], NonEmpty]
    chosen: Node | None
    seen: Annotated[int, Range(0)]
    ghosts = ("seen",)

    @initial
    def start(s) -> None:
        s.next.group = set(Node)

    @action("TOY-1", who="node")
    def light(s, n: Node) -> None:
        require(not lit(s, n), n in s.group or FAST)
        s.next.colour[n] = Colour.GREEN
        s.next.seen = s.seen + 1

    @action("TOY-2", who="node")
    def send(s, n: Node, m: Node) -> None:
        require(n != m, lit(s, n), len(s.post) < L)
        s.next.post = s.post + [Letter(to=m, colour=s.colour[n])]

    @action("TOY-3", who="post")
    def deliver(s, m: Node) -> None:
        require(len(s.post) > 0, s.post[0].to == m)
        s.next.post = s.post[1:]
        if s.count[m] < L:
            s.next.count[m] = s.count[m] + 1
        else:
            s.next.chosen = m
        s.next.friends[m] = (s.friends[m] | {x for x in Node if lit(s, x)}) - {m}

    @action("TOY-4", who="anyone")
    def calm(s) -> None:
        require(all(lit(s, n) for n in Node), sum(1 for n in Node if s.count[n] > 0) >= 1)
        top = max((c for c in range(L + 1) if any(s.count[n] == c for n in Node)), default=0)
        s.next.colour = {n: (Colour.RED if s.count[n] == top else s.colour[n]) for n in Node}

    @invariant("TOY-5")
    def nobody_befriends_itself(s, n: Node) -> bool:
        return n not in s.friends[n]

    @invariant("TOY-5")
    def letters_are_green(s) -> bool:
        return all(x.colour is Colour.GREEN and x.to is not None for x in s.post)

    @step("TOY-6")
    def counts_grow(s) -> bool:
        return all(s.count[n] <= s.next.count[n] <= s.count[n] + 1 for n in Node)

    @witness
    def somebody_is_chosen(s, n: Node) -> bool:
        return s.chosen == n


SIZES: dict[str, int | bool] = {"Node": 2, "L": 1, "FAST": False}


def test_a_text_is_read_into_a_graph() -> None:
    m = load(Everything)
    assert [a.name for a in m.actions] == ["light", "send", "deliver", "calm"]
    assert m.sizes == {"Node": "sort", "L": "size", "FAST": "flag"}
    assert m.actions[0].who == "node"
    assert m.actions[0].clauses == ("TOY-1",)
    assert [show(g) for g in m.actions[1].guard] == ["not (n == m)", "(GREEN == colour[n])", "(len(post) < L)"]
    assert [u.var for u in m.actions[2].updates] == ["post", "count", "chosen", "friends"]
    assert [show(u.cond) for u in m.actions[2].updates[1:3]] == ["(count[m] < L)", "not (count[m] < L)"]


def test_equal_expressions_are_one_node() -> None:
    m = load(Everything)
    assert m.actions[2].updates[1].cond is m.actions[2].updates[2].cond.args[0]


def test_the_same_text_runs_on_concrete_states() -> None:
    c = Concrete(Everything, SIZES)
    states, generated = c.reachable()
    assert (len(states), generated, max(states.values())) == (140, 310, 17)
    for s in states:
        assert c.holds("nobody_befriends_itself", s)
        assert c.holds("letters_are_green", s)
        for t in c.successors(s):
            assert c.holds("counts_grow", s, t.state)
    assert any(c.holds("somebody_is_chosen", s) for s in states)


def test_states_round_trip_and_are_shown() -> None:
    c = Concrete(Everything, SIZES)
    (first,) = c.initial_states()
    assert c.show(first) == {
        "colour": {"n0": "RED", "n1": "RED"},
        "count": {"n0": 0, "n1": 0},
        "friends": {"n0": [], "n1": []},
        "post": [],
        "group": ["n0", "n1"],
        "chosen": None,
        "seen": 0,
    }
    taken = c.successors(first)
    assert [(t.action, t.arguments["n"].name) for t in taken] == [("light", "n0"), ("light", "n1")]
    assert c.take(first, "light", taken[0].arguments) == taken[0].state


def test_a_subclass_replaces_an_action() -> None:
    class Bolder(Everything):
        @action("TOY-1", who="node")
        def light(s, n: Node) -> None:
            require(s.colour[n] == Colour.RED)
            s.next.colour[n] = Colour.GREEN

    assert [a.name for a in load(Bolder).actions] == ["light", "send", "deliver", "calm"]
    assert len(load(Bolder).actions[0].updates) == 1


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"Node": 2, "L": 1}, "Everything needs the size of FAST"),
        ({"Nod": 2}, "unknown size of Everything 'Nod'; did you mean 'Node'? (known: FAST, L, Node)"),
        ({"Node": 0, "L": 1, "FAST": True}, "size Node of Everything is a whole number >= 1, not 0"),
        ({"Node": 1, "L": 1, "FAST": 1}, "size FAST of Everything is true or false, not 1"),
    ],
)
def test_sizes_are_checked(sizes: dict[str, int | bool], message: str) -> None:
    with pytest.raises(UserError) as e:
        load(Everything).check_sizes(sizes)
    assert str(e.value) == message


HEAD = """
from __future__ import annotations
import enum
from typing import Annotated
from kafkaspec.language import *
class P(Sort): ...
class Q(Sort): ...
N = Size("N")
class M(Model):
    x: dict[P, bool]
    n: Annotated[int, Range(0, N)]
    some: set[P]
"""
LINES = HEAD.count("\n")


def read(tmp_path: Path, body: str, further: str = "") -> Any:
    head = HEAD.replace("class M(", further + "class M(")
    return load(module(head + textwrap.indent(textwrap.dedent(body), "    "), tmp_path, "faulty").M)


ACTION = "@action()\ndef a(s, p: P, q: Q) -> None:\n"
FAULTS = [
    # text, line within it, what is said
    (ACTION + "    s.next.x[q] = True", 3, "q is of type Q, where P is wanted"),
    (ACTION + "    require(p == q)", 3, "p of type P is compared with q of type Q"),
    (ACTION + "    require(p < p)", 3, "p is of type P, where int is wanted"),
    (ACTION + "    require(s.y[p])", 3, "M has no variable y"),
    (ACTION + "    s.next.y = 1", 3, "M has no variable y"),
    (ACTION + "    s.x[p] = True", 3, "assign to s.next: x is read of the state before"),
    (ACTION + "    s.n = 1", 3, "assign to s.next.n: s.n is the state before"),
    (ACTION + "    s.next.n = s.next.n", 3, "next.n is read: in an action, every value read is of the state before"),
    (ACTION + "    require(s.next.n == 0)", 3, "next.n is read: in an action, every value read is of the state before"),
    (ACTION + "    s.next.n += 1", 3, "'augassign' has no meaning in a model's text; write s.next.x = s.x + ..."),
    (ACTION + "    for r in P:\n        pass", 3, "'for' has no meaning in a model's text; use a comprehension"),
    (ACTION + "    s.next.n = True", 3, "True stands where a value of type 0..N is wanted"),
    (ACTION + "    s.next.n = undefined", 3, "name 'undefined' is not defined"),
    (
        ACTION + "    if s.x[p]:\n        k = 1\n    s.next.n = k",
        5,
        "'k' may have no value here: assign it before the 'if', or in each branch",
    ),
    (
        ACTION + "    require(all(s.x[r] for r in 3))",
        3,
        "3 is no domain: a Sort, an Enum, range(a, b), a set or a sequence",
    ),
    (ACTION + "    s.next.some = {r: True for r in P}", 3, "where a value of type set[P] is wanted"),
    (
        ACTION + "    s.next.n = max((k for k in range(N)), key=s.n)",
        3,
        "max() takes a comprehension and `default=`",
    ),
    ("@action()\ndef a(s, p) -> None:\n    require(s.x[p])", 1, "parameter p of a has no type"),
    ("@invariant()\ndef i(s) -> bool:\n    s.x", 1, "i returns nothing: a claim returns a truth value"),
    ("@invariant()\ndef i(s) -> bool:\n    require(True)\n    return True", 3, "require() stands outside an action"),
    (
        "@invariant()\ndef i(s) -> bool:\n    return s.next.n == 0",
        3,
        "s.next is read in a step property and assigned in",
    ),
    ("@leads_to()\ndef l(s) -> bool:\n    return s.n == 0", 1, "l returns (trigger, goal)"),
    ("bad: int", 1, "bad: int: a number needs its limits: Annotated[int, Range(0, N)]"),
    ("bad: list[bool]", 1, "bad: list[bool]: a sequence needs its greatest length: Bounded(L)"),
    ("bad: float", 1, "bad: <class 'float'> is no type of the language"),
    ("bad: P", 1, "bad: an element of a sort has no first value: assign it in @initial"),
    ("bad: Annotated[set[P], NonEmpty]", 1, "bad: a set that is never empty has no first value: assign it in @initial"),
    ("ghosts = ('y',)", None, "ghost y is no variable of M"),
]


@pytest.mark.parametrize(("body", "line", "message"), FAULTS, ids=[m[:40] for _, _, m in FAULTS])
def test_a_fault_is_told_with_file_and_line(tmp_path: Path, body: str, line: int | None, message: str) -> None:
    with pytest.raises(ModelError) as e:
        read(tmp_path, body)
    text = str(e.value)
    assert message in text
    assert "\n" not in text
    file, number, _ = text.split(":", 2)
    assert re.search(r"faulty_\d+\.py$", file)
    if line is not None:
        assert int(number) == LINES + line


ANNOTATIONS = [
    # an annotation, what stands before the class, what is said
    ("dict[P]", "", "dict[text.P]: a map has one type of keys and one of values: dict[K, V]"),
    ("dict[P, bool, bool]", "", "a map has one type of keys and one of values: dict[K, V]"),
    ("set[P, P]", "", "its elements are of one type"),
    ("Annotated[list[P, P], Bounded(2)]", "", "its elements are of one type"),
    ("Annotated[list[bool], Bounded(None)]", "", "how many there are at most is a whole number or a size"),
    ("Annotated[int, Range(None, 3)]", "", "a number has a lower limit"),
    ("Annotated[int, Range(0, 'N')]", "", "'N' is no limit: a whole number or a size"),
    ("'1 +'", "", "Forward reference must be an expression"),
    ("Nod", "", "name 'Nod' is not defined"),
    (
        "Z",
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Z:\n    a: Nod\n",
        "a field of Z: name 'Nod' is not defined",
    ),
    ("enum.Wrong", "", "module 'enum' has no attribute 'Wrong'"),
    ("P | 3", "", "unsupported operand type(s) for |"),
]


@pytest.mark.parametrize(("annotation", "further", "message"), ANNOTATIONS, ids=[a for a, _, _ in ANNOTATIONS])
def test_a_mistake_in_an_annotation_is_told_with_file_and_line(
    tmp_path: Path, annotation: str, further: str, message: str
) -> None:
    with pytest.raises(ModelError) as e:
        read(tmp_path, f"fine: bool\nbad: {annotation}\n", further)
    file, number, said = str(e.value).split(":", 2)
    assert said.startswith(" bad: ")
    assert message.replace("text.P", "P") in said.replace(f"{Path(file).stem}.P", "P")
    assert int(number) == LINES + further.count("\n") + 2
    assert "\n" not in said


def test_a_mistake_in_an_annotation_of_the_class_that_is_extended_is_told_there(tmp_path: Path) -> None:
    base = module(HEAD.replace("class M(", "class Base(") + "    bad: Nod\n", tmp_path, "faulty")
    text = f"from kafkaspec.language import *\nfrom {base.__name__} import Base\nclass M(Base):\n    more: bool\n"
    with pytest.raises(ModelError, match=rf"{base.__name__}\.py:{LINES + 1}: bad: name 'Nod' is not defined"):
        load(module(text, tmp_path, "faulty").M)


def test_a_model_that_stands_in_no_file_is_refused() -> None:
    names: dict[str, Any] = {"__name__": "nowhere"}
    exec("from kafkaspec.language import *\nclass M(Model):\n    b: bool\n", names)
    with pytest.raises(ModelError, match=r"^nowhere\.M: a model is read from its file, and this class stands in none"):
        load(names["M"])


def test_a_value_that_leaves_its_range_is_an_error_on_concrete_states(tmp_path: Path) -> None:
    m = read(tmp_path, "@action()\ndef a(s) -> None:\n    s.next.n = s.n + 1")
    with pytest.raises(UserError, match=r"n = 3 leaves its range 0\.\.N"):
        Concrete(m.cls, {"P": 1, "N": 2}).reachable()


def test_a_type_without_a_value_is_told_with_the_sizes_if_there_are_any(tmp_path: Path) -> None:
    text = "from typing import Annotated\nfrom kafkaspec.language import *\nN = Size('N')\nclass M(Model):\n    x: "
    some = "Annotated[int, Range({}, 2)]\n    @action()\n    def a(s) -> None:\n        require(True)\n"
    for lower, sizes, message in (("5", {}, "x has no value: its"), ("N", {"N": 5}, "x has no value at N=5: its")):
        m = load(module(text + some.format(lower), tmp_path, "empty").M)
        with pytest.raises(UserError, match=message):
            m.check_sizes(sizes)


def test_two_sorts_whose_elements_would_have_the_same_names(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"the sorts P and Pear begin with one letter"):
        read(tmp_path, "y: dict[Pear, bool]", "class Pear(Sort): ...\n")


@pytest.mark.parametrize(
    "value",
    ["all(True for q in Q)", "all(p in s.some for p in P for q in Q if False) or s.n >= 0", "s.n >= 0 or len(Q) == 2"],
)
def test_a_sort_that_stands_only_in_what_is_folded_away_is_a_size(tmp_path: Path, value: str) -> None:
    """The text runs through it all the same."""
    m = read(tmp_path, f"@invariant()\ndef holds(s) -> bool:\n    return {value}")
    sizes: dict[str, int | bool] = {"P": 1, "Q": 2, "N": 2}
    assert m.sizes.keys() == sizes.keys()
    text = Concrete(m.cls, sizes)
    assert text.holds("holds", text.initial_states()[0])


REBOUND = """
LIMIT = 3

@define
def most(k: int) -> int:
    return LIMIT + k

class Base(Model):
    n: Annotated[int, Range(0, 9)]
    @action()
    def up(s) -> None:
        require(s.n < most(0), all(s.n + x < LIMIT for x in range(1)))
        s.next.n = s.n + 1
    @invariant()
    def low(s) -> bool:
        return s.n < 4

class Refining(Base):
    @refines(Base)
    def mapping(s) -> Base:
        return Base.shown(n=s.n)
"""


def test_a_name_bound_once_more_is_read_once_more(tmp_path: Path) -> None:
    """A text means what its names are when it is asked, to every engine: also a helper's, and where the model that it
    extends or refines was read before."""
    m = module(modules.HEAD + REBOUND + "class M(Base): ...\n", tmp_path)
    first = {c: load(c) for c in (m.Base, m.Refining)}
    assert all(load(c) is loaded for c, loaded in first.items())
    assert said_by_the_text(m.Base, {}) == said_by_the_explorer(first[m.Base], {}) == ""
    vars(m)["LIMIT"] = 5
    for c in (m.Base, m.M, m.Refining):
        assert said_by_the_text(c, {}) == said_by_the_explorer(load(c), {}) == "low"
        assert load(c) is not first.get(c)
        assert not prove(load(c), timeout_s=1).complete
    assert load(m.Refining).refinements["mapping"].abstract is load(m.Base)


def test_a_model_that_claims_less_claims_what_it_has() -> None:
    """A name that is misspelt would leave a claim out of a proof, and nobody would see it."""

    class Counts(Model):
        n: Annotated[int, Range(0, 3)]

        @initial
        def start(s) -> None:
            s.next.n = 0

        @action()
        def add(s) -> None:
            require(s.n < 3)
            s.next.n = s.n + 1

        @invariant()
        def small(s) -> bool:
            return s.n <= 3

        @step()
        def rises(s) -> bool:
            return s.next.n >= s.n

    counts = load(Counts)
    fewer = counts.claiming("rises")
    assert (set(fewer.invariants), set(fewer.steps)) == (set(), {"rises"})
    assert set(counts.claiming("small").invariants) == {"small"}
    with pytest.raises(UserError, match="smal"):
        counts.claiming("smal")
