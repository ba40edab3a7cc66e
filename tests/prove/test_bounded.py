"""Bounded symbolic search: the shortest violation, the explorer's, or none within so many steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore.engine import explore
from kafkaspec.language import load
from kafkaspec.language.concrete import Concrete
from kafkaspec.models.examples.cleaner_anchor import CleanerAnchor
from kafkaspec.models.examples.replication import Replication
from kafkaspec.prove.bounded import bounded
from tests.language.texts import model
from tests.modules import HEAD, module
from tests.prove.rooms import FalseCounter, Overflow

UNFENCED = {"Replica": 2, "L": 1, "E": 2, "FENCED": False}


def test_it_finds_the_shortest_violation_as_the_explorer_does() -> None:
    """Its trace is a run of the text."""
    m = load(Replication)
    b = bounded(m, 6, UNFENCED)
    e = explore(m, UNFENCED, ghosts=True, deadlock=True)
    assert b.outcome == "violation"
    assert b.trace is not None
    assert e.trace is not None
    assert len(b.trace.steps) == len(e.trace.steps) == b.reached + 1
    assert b.trace.claim == "leader_moves_first"
    c = Concrete(Replication, UNFENCED, ghosts=True)
    (state,) = c.initial_states()
    for s in b.trace.steps[1:]:
        taken = {(t.action, str(c.show(t.state))): t.state for t in c.successors(state)}
        state = taken[s.action, str(s.state)]
    assert not c.holds("leader_moves_first", state)


def test_without_sizes_it_searches_every_size() -> None:
    assert bounded(load(CleanerAnchor), 2).outcome == "complete"
    b = bounded(load(FalseCounter), 4)
    assert b.outcome == "violation"
    assert b.trace is not None
    assert [s.state for s in b.trace.steps] == [{"n": 0}, {"n": 1}, {"n": 2}]
    b = bounded(load(Overflow), 3)
    assert b.trace is not None
    assert b.trace.claim in ("defined", "type of n")
    assert len(b.trace.steps) == 3
    assert b.trace.sizes == {"L": 1}


COUNTING = """
@action()
def act(s, p: P) -> None:
    require(s.link[p] is not None, sum(1 for q in P if sum(1 for r in P if s.on[s.link[p]] or r == q) < 5) < 7)
    s.next.on[p] = True
@action()
def put(s, p: P, q: P) -> None:
    s.next.link[p] = q
@invariant()
def off(s) -> bool:
    return not any(s.on[p] for p in P)
"""


def test_a_step_s_arguments_stay_its_own_in_later_steps() -> None:
    """Numbers of elements that depend on an argument's partner are spoken of again when the next step is."""
    b = bounded(model(COUNTING, "link: dict[P, P | None]\non: dict[P, bool]\n"), 2, timeout_s=2)
    assert b.outcome == "violation"
    assert b.trace is not None
    assert [x.action for x in b.trace.steps] == ["", "put", "act"]


def test_no_violation_within_its_steps_is_no_more_than_that() -> None:
    b = bounded(load(FalseCounter), 1)
    assert b.outcome == "complete"
    assert "no violation within 1 steps" in b.summary()


def test_a_search_that_gives_up_says_how_far_it_came() -> None:
    b = bounded(load(Replication), 6, {"Replica": 3, "L": 3, "E": 3, "FENCED": True}, timeout_s=0.0001)
    assert b.outcome == "unknown"
    assert "gave up" in b.summary()


@pytest.mark.parametrize(
    ("claim", "outcome"),
    [
        ("sum(1 for x in range(0, s.g + s.g)) == s.g + s.g", "unknown"),  # true, and more than is known of counts
        ("len({s.g + s.g} - {1}) == 1", "complete"),
        ("s.g < 1", "violation"),
    ],
)
def test_what_is_counted_without_a_limit_is_no_violation(tmp_path: Path, claim: str, outcome: str) -> None:
    text = f"""
class M(Model):
    g: Annotated[int, Range(0)]
    @action()
    def up(s) -> None:
        s.next.g = s.g + 1
    @invariant()
    def holds(s) -> bool:
        return {claim}
"""
    assert bounded(load(module(HEAD + text, tmp_path).M), 2).outcome == outcome


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UserError, match="whole number >= 1"):
        bounded(load(CleanerAnchor), 2, {"Partition": 0})
