"""Bounded symbolic search: the shortest violation, the explorer's, or none within so many steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaspec.cli import engines
from kafkaspec.errors import UserError
from kafkaspec.explore.engine import explore
from kafkaspec.language import load
from kafkaspec.language.concrete import Concrete
from kafkaspec.models.examples.cleaner_anchor import CleanerAnchor
from kafkaspec.models.examples.replication_anchor import Replication
from kafkaspec.prove.bounded import bounded
from kafkaspec.prove.engine import prove
from kafkaspec.report.describe import describe
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


NO_FIRST_STATE = """
L = Size("L")
class M(Model):
    n: Annotated[int, Range(0, L)]
    @initial
    def start(s) -> None:
        require({guard})
    @action()
    def up(s) -> None:
        require(s.n < L)
        s.next.n = s.n + 1
    @invariant()
    def low(s) -> bool:
        return s.n {low}
"""
NO_VALUE = """
class M(Model):
    a: Annotated[int, Range(N, 2)]
    b: Annotated[int, Range(3, N)]
    x: Annotated[int, Range(0, 1)]
    @action()
    def go(s) -> None:
        s.next.x = 1 - s.x
    @invariant()
    def nonsense(s) -> bool:
        return s.x == 5
"""
IMPOSSIBLE = NO_FIRST_STATE.format(guard="L > 3", low="== 77")


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (IMPOSSIBLE, {"L": 2}),
        (NO_FIRST_STATE.format(guard="L < 1", low="== 77"), {}),
        (NO_VALUE, {}),
    ],
    ids=["at this size", "at every size", "no value at every size"],
)
def test_without_a_first_state_it_is_vacuous_as_a_proof_is(tmp_path: Path, text: str, sizes: dict[str, int]) -> None:
    (tmp_path / "m.py").write_text(HEAD + text)
    words = [f"{n}={v}" for n, v in sizes.items()]
    assert engines.prove(f"{tmp_path}/m.py", only=[], timeout_s=5, steps=3, words=words, html=None, json=False) == 1
    m = load(module(HEAD + text, tmp_path).M)
    p, b = prove(m, fixed=sizes), bounded(m, 3, sizes)
    assert (p.outcome, b.outcome) == ("refuted", "vacuous")
    assert "there is no first state" in b.summary()
    (proof, *_), (search, *_) = describe(p), describe(b)
    row = next((name, cell) for name, cell in proof.facts if name == "vacuous")
    assert row[1].text.startswith("(start): ")
    assert row in search.facts


def test_a_first_state_at_some_sizes_is_enough(tmp_path: Path) -> None:
    """A claim that is broken at such a size is a violation where the size is not given."""
    m = load(module(HEAD + IMPOSSIBLE, tmp_path).M)
    assert bounded(m, 3).outcome == bounded(m, 3, {"L": 4}).outcome == "violation"
    m = load(module(HEAD + NO_FIRST_STATE.format(guard="L > 3", low="<= L"), tmp_path).M)
    assert bounded(m, 3).outcome == bounded(m, 3, {"L": 4}).outcome == "complete"
    assert bounded(m, 3, {"L": 2}).outcome == "vacuous"


def test_where_it_is_open_whether_there_is_a_first_state_nothing_is_accepted(tmp_path: Path) -> None:
    m = load(module(HEAD + NO_FIRST_STATE.format(guard="L > 70", low="<= L"), tmp_path).M)
    b = bounded(m, 1)
    assert b.outcome == "unknown"
    assert "whether there is a first state is not known" in b.summary()
    (search, *_) = describe(b)
    assert "whether there is a first state is not known" in search.verdict.text
    assert any(name == "vacuous?" and cell.text.startswith("(start): ") for name, cell in search.facts)


GIVES_UP = """
class Abs(Model):
    S: set[P]
    @initial
    def start(s, n: P) -> None:
        s.next.S = {n}
    @action()
    def grow(s, n: P) -> None:
        s.next.S = s.S | {n}
class M(Model):
    S: set[P]
    @initial
    def start(s, n: P, m: P, k: P) -> None:
        require(n == m or m == k or len(P) == 5 and n != k)
        require(n == m and m == k or len(P) == 5)
        s.next.S = {n, m, k}
    @action()
    def grow(s, n: P) -> None:
        s.next.S = s.S | {n}
    @refines(Abs)
    def mapping(s) -> Abs:
        return Abs.shown(S=s.S)
"""


def test_a_search_that_gives_up_on_the_first_state_says_so(tmp_path: Path) -> None:
    b = bounded(load(module(HEAD + GIVES_UP, tmp_path).M), 1)
    assert (b.outcome, b.reached) == ("unknown", -1)
    (search,) = describe(b)
    assert search.verdict.text == "the solver gave up on the first state"
    assert "the solver gave up on the first state" in b.summary()
