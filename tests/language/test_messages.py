"""Sets of records: messages that are sent, received, lost and received again, as the interpreter does it."""

from __future__ import annotations

import pytest

from kafkaspec.explore.engine import explore
from kafkaspec.language.concrete import Concrete
from tests.language.texts import model, sizes_of

BODY = """
@action()
def ask(s, a: P, n: Num) -> None:
    m = R(n, False)
    require(len(s.net) < 2, m not in s.net)
    s.next.net = s.net | {m}
@action()
def answer(s, m: Annotated[R, Of("net")]) -> None:
    require(not m.b, len(s.left(m)) < 2)
    s.next.net = s.left(m) | {replace(m, b=True)}
    s.next.n = m.a
@action()
def end(s) -> None:
    require(len(s.net) == 2)
    s.next.net = {m for m in s.net if m.a != s.n}
    s.next.seen = {m.a for m in s.net}
    s.next.most = max(m.a for m in s.net) + sum(m.a for m in s.net) - min((m.a for m in s.net if m.b), default=0)
@witness
def answered_twice(s) -> bool:
    return sum(1 for m in s.net if m.b) == 2
@invariant()
def sets_are_sets(s) -> bool:
    return all(m in s.net for m in s.net) and (s.net | s.net) == s.net and (s.net & {m for m in s.net if m.b}) <= s.net
"""
VARIABLES = "net: Annotated[set[R], Bounded(2)]\nn: Num\nseen: set[Num]\nmost: Annotated[int, Range(0, 9)]\n"


@pytest.mark.parametrize("network", ["Network", "Lossy", "Duplicating", "Unreliable"])
def test_the_explorer_counts_what_the_interpreter_counts(network: str) -> None:
    head = f"from kafkaspec.language.network import {network} as Model\n"
    m = model(BODY, VARIABLES, head)
    sizes = sizes_of(m)
    e = explore(m, sizes, deadlock=True)
    states, generated = Concrete(m.cls, sizes).reachable()
    assert (e.outcome, e.distinct, e.generated, e.depth) == ("complete", len(states), generated, max(states.values()))
    assert ("lose" in e.taken) == (network in ("Lossy", "Unreliable"))
    assert (e.witnesses["answered_twice"] is not None) == (network in ("Network", "Lossy"))
    assert explore(m, sizes, deadlock=True, symmetry=["P"] if "P" in m.sizes else []).outcome == "complete"


def test_a_message_too_many_leaves_the_type() -> None:
    m = model("@action()\ndef ask(s, n: Num) -> None:\n    s.next.net = s.net | {R(n, True)}\n", VARIABLES)
    e = explore(m, sizes_of(m))
    assert e.trace is not None
    assert (e.trace.claim, len(e.trace.steps)) == ("type of net", 4)


def test_a_trace_shows_the_message_that_was_received() -> None:
    m = model(BODY, VARIABLES, "from kafkaspec.language.network import Lossy as Model\n")
    e = explore(m, sizes_of(m), deadlock=True)
    way = e.witnesses["answered_twice"]
    assert way is not None
    for before, step in zip(way.steps, way.steps[1:], strict=False):
        if step.action == "answer":
            assert step.arguments["m"] in before.state["net"]
            assert {**step.arguments["m"], "b": True} in step.state["net"]
