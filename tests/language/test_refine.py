"""Refinement: what a mapping claims, in the interpreter and the explorer; faults on both sides are seen."""

from __future__ import annotations

import re
import textwrap

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore.engine import explore
from kafkaspec.language import LoadedModel, ModelError, load
from kafkaspec.language.concrete import Concrete, Undefined
from kafkaspec.language.expr import BINDERS
from kafkaspec.language.parts import nodes, variables_bound
from kafkaspec.mutants.matrix import generated
from kafkaspec.prove.bounded import bounded
from kafkaspec.prove.engine import prove
from tests.language.texts import model, sizes_of

ABSTRACT = """
class Counter(Model):
    total: Annotated[int, Range(0, 3)]
    seen: dict[P, bool]
    last: R
    @action()
    def up(s, a: P) -> None:
        require(s.total < 3, not s.seen[a])
        s.next.total = s.total + 1
        s.next.seen[a] = True
    @action()
    def forget(s, a: P, b: bool) -> None:
        require(s.seen[a])
        s.next.seen[a] = False
        s.next.last.b = b
"""
VARIABLES = "n: Num\ndone: set[P]\nother: bool\nb: bool\n"
BODY = """
@action()
def go(s, a: P) -> None:
    require(s.n < N, a not in s.done)
    s.next.n = s.n + 1
    s.next.done = s.done | {a}
@action()
def undo(s, a: P) -> None:
    require(a in s.done)
    s.next.done = s.done - {a}
    s.next.b = not s.b
@action()
def stutter(s) -> None:
    s.next.other = not s.other
@refines(Counter)
def counter(s) -> Counter:
    seen = {a: a in s.done for a in P}
    return Counter.shown(total=s.n, seen=seen, last=R(a=0, b=s.b))
"""


def found(m: LoadedModel) -> str:
    e = explore(m, {**sizes_of(m), "N": 3}, deadlock=True, ghosts=True)
    return "" if e.trace is None else e.trace.claim


def interpreted(m: LoadedModel) -> str:
    c = Concrete(m.cls, {**sizes_of(m), "N": 3})
    states, _ = c.reachable()
    if not all(c.holds("counter: start", s) for s in c.initial_states()):
        return "counter: start"
    for s in states:
        if "counter: type" in m.invariants and not c.holds("counter: type", s):
            return "counter: type"
        if not all(c.holds("counter", s, t.state) for t in c.successors(s)):
            return "counter"
    return ""


def test_a_refinement_is_claims_like_any_other() -> None:
    m = model(BODY, VARIABLES, ABSTRACT)
    assert m.refinements.keys() == {"counter"}
    assert ({*m.starts}, {*m.steps}) == ({"counter: start"}, {"counter"})
    assert (found(m), interpreted(m)) == ("", "")


FAULTS = {
    "a step that is none": ("s.next.done = s.done | {a}", "s.next.done = {a}", "counter"),
    "a dropped guard": (", a not in s.done", "", "counter"),
    "another start": ("total=s.n", "total=min(3, s.n + 1)", "counter: start"),
    "a state that is none": ("total=s.n, seen", "total=s.n + 4, seen", "counter: type"),
    "a step to a state that is none": ("total=s.n, seen", "total=(s.n if not s.other else 4), seen", "counter"),
    "a mapping that sees too much": ("b=s.b", "b=s.other", "counter"),
}


@pytest.mark.parametrize(("old", "new", "claim"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_of_the_model_or_the_mapping_is_seen(old: str, new: str, claim: str) -> None:
    assert old in BODY
    m = model(BODY.replace(old, new), VARIABLES, ABSTRACT)
    assert (found(m), interpreted(m)) == (claim, claim)


def test_every_fault_of_the_abstract_model_that_takes_steps_away_is_seen() -> None:
    m = model(BODY, VARIABLES, ABSTRACT)
    abstract = m.refinements["counter"].abstract
    seen = {x.name: found(m.refining("counter", x.make())) for x in generated(abstract) if "no effect" in x.name}
    assert len(seen) == 4
    assert set(seen.values()) == {"counter"}
    assert found(m.refining("counter", abstract)) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("return Counter.shown(total=s.n)", "last is given no value"),
        ("return Counter.shown(total=s.n, seen={a: True for a in P}, last=R(0, True), more=1)", "more is no variable"),
        ("return Counter.shown(total=s.b, seen={a: True for a in P}, last=R(0, True))", "b is of type bool"),
        ("return s.n", "counter has no parameters and returns Counter.shown(...)"),
    ],
)
def test_a_mapping_gives_each_variable_its_value(text: str, said: str) -> None:
    with pytest.raises(ModelError) as e:
        model(f"@refines(Counter)\ndef counter(s) -> Counter:\n    {text}\n", VARIABLES, ABSTRACT)
    assert said in str(e.value)


def test_a_mapping_s_error_is_in_its_line() -> None:
    body = "@refines(Counter)\ndef counter(s) -> Counter:\n    return Counter.shown(total=s.n,\n"
    body += "        seen={a: nobody for a in P},\n        last=R(a=0, b=s.b))\n"
    with pytest.raises(ModelError, match=r":\d+: name 'nobody' is not defined"):
        model(body, VARIABLES, ABSTRACT)


def test_a_mapping_may_name_what_has_no_value_everywhere() -> None:
    """A map beside a local name whose value may be missing."""
    body = """
    @refines(Counter)
    def counter(s) -> Counter:
        first = s.o + 0
        return Counter.shown(total=first, seen={a: a in s.done for a in P}, last=R(a=0, b=s.b))
    """
    m = model(textwrap.dedent(body), VARIABLES + "o: Num | None\n", ABSTRACT)
    assert (found(m), interpreted_or_undefined(m)) == ("counter: type", "undefined")


def interpreted_or_undefined(m: LoadedModel) -> str:
    try:
        return interpreted(m)
    except Undefined:
        return "undefined"


NESTED = """
class Counter(Model):
    at: dict[Annotated[int, Range(0, 1)], Annotated[int, Range(0, 1)]]
    @action()
    def ask(s) -> None:
        require(s.at[s.at[s.at[0]]] == 0)
"""


def test_no_variable_is_bound_within_its_own_scope() -> None:
    """A map at a key that is the map at a key: what shows it stands within itself, with variables of its own."""
    at = "{v: 1 if any(s.of[q] == v for q in P) else 0 for v in range(2)}"
    text = f"@refines(Counter)\ndef counter(s) -> Counter:\n    return Counter.shown(at={at})\n"
    m = model(text, "of: dict[P, Annotated[int, Range(0, 1)]]\n", NESTED)
    asked = m.steps["counter"].expr
    binding = [e for e in nodes(asked) if e.op in BINDERS]
    assert max(sum(e.args[0].aux.startswith("q_") for e in nodes(b) if e.op in BINDERS) for b in binding) >= 3
    assert not [b for b in binding if any(b.args[0].aux in variables_bound(a) for a in b.args[1:])]
    assert m.refinements["counter"].steps() is asked


def test_a_mapping_shows_what_the_interpreter_shows() -> None:
    m = model(BODY, VARIABLES, ABSTRACT)
    c = Concrete(m.cls, {"P": 2, "N": 3})
    (first,) = c.initial_states()
    abstract = Concrete(load(m.refinements["counter"].abstract.cls).cls, {"P": 2, "N": 3})
    assert abstract.show(c.shows("counter", first)) == {
        "total": 0,
        "seen": {"p0": False, "p1": False},
        "last": {"a": 0, "b": False},
    }


PLAIN = """
class A(Model):
    n: Num
    q: Annotated[list[bool], Bounded(1)]
    o: Num | None
"""
UP = "@action()\ndef up(s) -> None:\n    require(s.n < N)\n    s.next.n = s.n + 1\n"
SHOWS = "@refines(A)\ndef counter(s) -> A:\n    return A.shown(n=s.n, q=[], o=None)\n"


def within(text: str) -> str:
    return textwrap.indent(text, "    ")


def said(m: LoadedModel) -> set[tuple[str, str]]:
    """What the explorer and the interpreter say, and whether the claims were proved or a violation is found."""
    p = prove(m, timeout_s=2)
    b = bounded(m, 3, sizes_of(m))
    assert p.complete == (found(m) == ""), p.summary()
    assert (b.outcome == "violation") == (found(m) != "")
    return {("explorer", found(m)), ("interpreter", interpreted(m))}


@pytest.mark.parametrize(
    ("start", "first", "holds"),
    [
        ("s.next.n = s.n + 1", "1", True),
        ("s.next.n = s.n + 1", "0", False),
        ("require(s.n == 0)\ns.next.n = 1", "1", True),
        ("require(s.n == 1)", "1", False),
        ("s.next.o = s.n\ns.next.o = None", "0", True),
        ("s.next.n = s.n - 1", "0", False),
        ("require(s.q[0])", "0", False),
        ("s.next.n = 1 - i", "1", True),
        ("require(i == 0 or s.q[0])\ns.next.n = i", "0", True),
        ("require(i == 0 or s.q[0])\ns.next.n = i", "1", False),
    ],
)
def test_an_abstract_start_begins_with_the_first_values(start: str, first: str, holds: bool) -> None:
    abstract = PLAIN + within("@initial\ndef start(s, i: Num) -> None:\n" + within(start) + "\n" + UP)
    own = f"@initial\ndef start(s) -> None:\n    s.next.n = {first}\n"
    m = model(own + UP + SHOWS, "n: Num\n", abstract)
    claim = "" if holds else "counter: start"
    assert said(m) == {("explorer", claim), ("interpreter", claim)}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize(
    "fails",
    [
        "require(s.q[0])\ns.next.n = 0",
        "require(s.n >= 0)\nrequire(s.q[s.n])\ns.next.n = 0",
        "x = s.q[0]\ns.next.n = s.n + 1",
        "s.next.n = s.o",
        "s.next.n = s.n + (s.o + 1)",
        "s.next.n = s.n + 5",
        "s.next.n = s.n - 1 - N",
        "s.next.q[0] = True",
        "s.next.q = [True, True]",
    ],
)
def test_an_abstract_action_that_fails_is_no_step_and_hides_none(fails: str, last: bool) -> None:
    wrong = "@action()\ndef wrong(s) -> None:\n" + within(fails) + "\n"
    m = model(UP + SHOWS, "n: Num\n", PLAIN + within(UP + wrong if last else wrong + UP))
    assert said(m) == {("explorer", ""), ("interpreter", "")}
    alone = model(UP + SHOWS, "n: Num\n", PLAIN + within(wrong))
    assert said(alone) == {("explorer", "counter"), ("interpreter", "counter")}


def test_a_step_to_what_is_no_abstract_state_is_none() -> None:
    up = "@action()\ndef up(s) -> None:\n    s.next.n = s.n + 1\n"
    m = model(UP.replace("s.n < N", "s.n < N + 1") + SHOWS, "n: Annotated[int, Range(0, N + 1)]\n", PLAIN + within(up))
    assert said(m) == {("explorer", "counter"), ("interpreter", "counter")}


def test_a_refinement_of_another_model_leaves_the_parameters_without_a_limit_as_they_are() -> None:
    abstract = PLAIN + within("@action()\ndef to(s, i: Annotated[int, Range(0)]) -> None:\n    s.next.n = i\n")
    m = model(UP + SHOWS, "n: Num\n", abstract)
    other = m.refining("counter", m.refinements["counter"].abstract)
    (why,) = m.not_explored
    assert re.search(r"text_of_a_test_\d+\.py:\d+: parameter i of type 0\.\. has no upper limit$", why)
    assert other.not_explored == [why]
    plain = model(UP + SHOWS, "n: Num\n", PLAIN + within(UP)).refinements["counter"].abstract
    assert (m.refining("counter", plain).not_explored, m.not_explored) == ([], [why])


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("Annotated[int, Range(0)]", "0.. has no upper limit"),
        ("dict[bool, Num]", "dict[bool, 0..N] has too many values to go through"),
        ("Annotated[list[Num], Bounded(2)] | None", "list[0..N] | None has too many values to go through"),
    ],
)
def test_a_parameter_that_is_only_proved_is_refused_with_its_place_when_it_is_explored(kind: str, why: str) -> None:
    with pytest.raises(UserError, match=r"text_of_a_test_\d+\.py:\d+: parameter i of type " + re.escape(why)):
        explore(model(f"@action()\ndef to(s, i: {kind}) -> None:\n    s.next.n = 1\n", "n: Num\n"), {"N": 1})
