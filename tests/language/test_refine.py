"""Refinement: what a mapping claims, in the interpreter and the explorer; faults on both sides are seen."""

from __future__ import annotations

import pytest

from kafkaspec.explore import explore
from kafkaspec.language import LoadedModel, ModelError, load
from kafkaspec.language.concrete import Concrete
from kafkaspec.lockstep.mutants import generated
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
