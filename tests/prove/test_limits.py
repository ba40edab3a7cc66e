"""What an obligation may cost, counted; and that what is left out of a query makes no verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import z3

from kafkaspec.explore import engine as explore
from kafkaspec.language import load
from kafkaspec.models.examples.replication_anchor import Replication
from kafkaspec.prove import counterexample, solver
from kafkaspec.prove.engine import prove
from kafkaspec.prove.obligations import of_action
from kafkaspec.prove.reachable import STATES_PER_SECOND
from kafkaspec.prove.solver import CLOCK, PATIENCE, STEPS_PER_SECOND, Budget, Question, Reply, relevant
from tests.prove.rooms import FalseCounter, Hotel, Overflow


class Stub:
    """A solver that never knows and takes all that it may, as `check` is called."""

    def __init__(self, why: str = "max. resource limit exceeded") -> None:
        self.why = why
        self.shares: list[float] = []

    def __call__(self, formulas: Sequence[Any], share_s: float, *_: Any) -> Reply:
        self.shares.append(share_s)
        return Reply("unknown", None, self.why, int(share_s * STEPS_PER_SECOND))


def asked_of(monkeypatch: pytest.MonkeyPatch, check: Callable[..., Reply]) -> None:
    """Ask this in the place of the solvers."""
    monkeypatch.setattr(solver, "check", check)
    monkeypatch.setattr(solver.SharedSolver, "check", lambda self, assumed, formulas, share_s: check(formulas, share_s))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of the budgets: it stands still unless a test moves it."""
    now = [0.0]
    monkeypatch.setattr("kafkaspec.prove.solver.time.thread_time", lambda: now[0])
    return now


@pytest.mark.parametrize(("share_s", "steps"), [(0.0, 1), (2.0, 2 * STEPS_PER_SECOND), (1e5, 2**32 - 1)])
def test_no_limit_is_cut(share_s: float, steps: int) -> None:
    given: dict[str, int] = {}

    class RecordedCall:
        set = staticmethod(given.__setitem__)

    solver.limit(RecordedCall(), share_s)
    assert given["rlimit"] == steps
    assert 0 < given["timeout"] < 2**32


@pytest.mark.parametrize("timeout_s", [0.3, 3.0])
def test_the_limit_is_that_of_an_obligation_with_all_its_parts_and_attempts(
    monkeypatch: pytest.MonkeyPatch, clock: list[float], timeout_s: float
) -> None:
    stub = Stub()
    asked_of(monkeypatch, stub)
    asked_before: list[float] = []
    spent: dict[str, float] = {}

    def next_one(done: float, total: float | None = None, text: str = "") -> None:
        asked_before.append(sum(stub.shares))
        spent[text] = asked_before[-1]

    p = prove(
        load(Hotel), fixed={"POLITE": True}, timeout_s=timeout_s, only=lambda a, c: a == "leave", progress=next_one
    )
    ends = [*asked_before[1:], sum(stub.shares)]
    costs = [b - a for a, b in zip(asked_before, ends, strict=True)]
    asked = [(o, cost) for o, cost in zip(p.obligations, costs, strict=True) if o.verdict != "proved"]
    assert len(asked) > 5
    assert any(o.queries > 1 for o, _ in asked)
    for o, cost in asked:
        assert o.verdict == "unknown"
        assert cost == pytest.approx(timeout_s, rel=0.01), (o.action, o.claim)


def test_a_slow_machine_ends_an_obligation_too(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    def slow(formulas: Any, share_s: float, *_: Any) -> Reply:
        clock[0] += 8.0
        return Reply("unknown", None, "timeout", 0)

    asked_of(monkeypatch, slow)
    p = prove(load(Overflow), timeout_s=2.0, only=lambda a, c: (a, c) == ("up", "type of n"))
    assert [o.verdict for o in p.obligations] == ["unknown"]
    possible, obligation = 8.0, 8.0  # each begins with a budget of its own, and ends after one query
    assert clock[0] == possible + obligation
    assert CLOCK * 2.0 + 1 < 8.0


def test_a_query_that_does_not_count_its_steps_is_ended_by_the_clock() -> None:
    z = z3.Solver()
    given: dict[str, int] = {}
    z.set = lambda name, value: given.update({name: value})
    solver.limit(z, 0.5)
    assert given == {"rlimit": STEPS_PER_SECOND // 2, "timeout": int((0.5 * PATIENCE + 1) * 1000)}


def test_the_steps_of_one_query_are_counted_by_themselves() -> None:
    x, y = z3.Ints("x y")
    first, second = (solver.check([x > y, y > 3], 1.0).steps for _ in range(2))
    assert 0 < second < 2 * first + 10


def test_what_has_no_answer_at_any_cost_is_not_asked_for_ever(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    stub = Stub("(incomplete quantifiers)")
    asked_of(monkeypatch, stub)
    p = prove(load(Overflow), timeout_s=1e6, only=lambda a, c: (a, c) == ("up", "type of n"))
    assert [o.verdict for o in p.obligations] == ["unknown"]
    assert len(stub.shares) < 100


def test_the_states_explored_for_a_counterexample_follow_from_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    real = explore.explore

    def seen(*arguments: Any, max_states: int, **named: Any) -> Any:
        given.append(max_states)
        return real(*arguments, max_states=max_states, **named)

    monkeypatch.setattr(explore, "explore", seen)
    p = prove(load(FalseCounter), timeout_s=2.0, only=lambda a, c: (a, c) == ("up", "never_two"))
    assert [o.verdict for o in p.obligations] == ["refuted"]
    assert given == [2 * STATES_PER_SECOND]


def test_shares_grow_and_none_takes_most_of_the_budget(clock: list[float]) -> None:
    budget = Budget(8.0)
    shares = []
    for share in budget.shares():
        shares.append(share)
        budget.charge(Reply("unknown", None, "", int(share * STEPS_PER_SECOND)))
        if len(shares) == 4:
            break
    assert shares == [0.05, 0.2, 0.8, 2.0]


P = z3.Function("p", z3.IntSort(), z3.BoolSort())
Q = z3.Function("q", z3.IntSort(), z3.BoolSort())
R = z3.Function("r", z3.IntSort(), z3.BoolSort())
X = z3.Int("x")
K = z3.Int("k")
IF_P_THEN_Q = z3.ForAll([X], z3.Implies(P(X), Q(X)))
EVERY_P = z3.ForAll([X], P(X))
EVERY_R = z3.ForAll([X], R(X))


def rounds(q: Question) -> Iterator[str]:
    for share_s in (0.05, 0.2):
        yield q.round(Budget(5.0), share_s)


def test_relevant_is_what_speaks_of_the_same() -> None:
    assert relevant([IF_P_THEN_Q, EVERY_P, EVERY_R, K > 3], [z3.Not(Q(K)), P(K)]) == [IF_P_THEN_Q, EVERY_P, K > 3]


def test_a_set_of_assumptions_that_is_too_small_makes_no_verdict() -> None:
    claims = {"if p then q": IF_P_THEN_Q, "every p": EVERY_P}
    q = Question([*claims.values(), EVERY_R], [], [], Q(K), claims)
    q.needs({"if p then q"})  # a small size made believe that this is enough
    assert "unsat" in list(rounds(q))
    assert q.won is not None
    assert q.won[1] == "all"
    assert q.used(5.0) == {"if p then q", "every p"}


def test_what_does_not_follow_from_everything_does_not_follow() -> None:
    q = Question([IF_P_THEN_Q, EVERY_R], [], [], Q(K), {})
    assert list(rounds(q)) == ["sat", "sat"]


def test_what_is_kept_apart_is_used_in_the_end() -> None:
    q = Question([IF_P_THEN_Q], [], [EVERY_P], Q(K), {"if p then q": IF_P_THEN_Q})
    assert "unsat" in list(rounds(q))
    assert q.won is not None
    assert q.won[1] == "apart"


def test_what_a_proof_used_is_everything_where_no_core_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    claims: Mapping[str, Any] = {"if p then q": IF_P_THEN_Q, "every p": EVERY_P, "every r": EVERY_R}
    q = Question(list(claims.values()), [], [], Q(K), claims)
    assert "unsat" in list(rounds(q))
    assert q.used(5.0) == {"if p then q", "every p"}
    asked_of(monkeypatch, Stub())
    assert q.used(5.0) == set(claims)


def test_the_claims_needed_at_a_small_size_are_enough_at_every_size() -> None:
    model = load(Replication)
    (action,) = [a for a in model.actions if a.name == "become_follower"]
    wanted = lambda a, c: c == "later_isr_has_earlier_commits"  # noqa: E731
    s = of_action(model, action, {"FENCED": True}, wanted)
    (goal,) = s.goals
    needed = counterexample.find(model, goal, {"FENCED": True}, Budget(10.0), 2.0, (2,))
    assert isinstance(needed, frozenset)
    assert 0 < len(needed) < len(s.named) / 4
    for part in goal.parts:
        q = Question(s.assumptions(), part.hints, s.not_empty, part.formula, s.named)
        q.needs(needed)
        everything = q.sets.pop("all")
        assert len(q.sets["needed"]) < len(everything) - 5
        assert q.round(Budget(10.0), 1.0) == "unsat"
        assert q.won is not None
        assert q.won[1] == "needed"


def test_a_solver_that_has_read_what_is_assumed_proves_what_follows_and_nothing_else() -> None:
    x, y = z3.Ints("x y")
    f = z3.Function("f", z3.IntSort(), z3.IntSort())
    assumed = [x > y, y > 3]
    shared, budget = solver.SharedSolver(), Budget(10.0)

    def follows(goal: Any, *hints: Any, of: Sequence[Any] = assumed) -> bool:
        return shared.proves(Question(of, hints, (), goal, {}), budget)

    assert follows(x > 4)
    assert follows(f(x) > 0, z3.ForAll([y], f(y) == y))
    assert not follows(f(x) > 0)  # the hint is not known any more
    assert not follows(x > 5)
    assert follows(x > 4)  # what did not follow was not assumed since
    assert not follows(x > 4, of=[y > 3])
    assert follows(x > 4)
    assert 0 < budget.spent_s < 1
    assert not shared.proves(Question(assumed, (), (), x > 4, {}), Budget(0.0))
