"""Leads-to: who gets the lock, under which fairness; the lasso is a fair run on which the goal never comes."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import pytest

from kafkaspec.explore.engine import explore
from kafkaspec.language import Model, Range, Size, Sort, Trace, action, leads_to, load, require
from kafkaspec.language.concrete import Concrete, State
from kafkaspec.models.examples.two_phase import TwoPhase


class P(Sort): ...


N = Size("N")


class Lock(Model):
    """One holds the lock; others ask for it again and again."""

    holder: P | None
    wants: dict[P, bool]

    @action()
    def ask(s, p: P) -> None:
        require(not s.wants[p])
        s.next.wants[p] = True

    @action(fair="weak", per=("p",))
    def take(s, p: P) -> None:
        require(s.wants[p], s.holder is None)
        s.next.holder = p
        s.next.wants[p] = False

    @action(fair="weak")
    def release(s) -> None:
        require(s.holder is not None)
        s.next.holder = None

    @leads_to("XXX-1")
    def served(s, p: P) -> tuple[bool, bool]:
        return s.wants[p], s.holder == p


class Strong(Lock):
    @action(fair="strong", per=("p",))
    def take(s, p: P) -> None:
        require(s.wants[p], s.holder is None)
        s.next.holder = p
        s.next.wants[p] = False


class StrongForAnybody(Lock):
    @action(fair="strong")
    def take(s, p: P) -> None:
        require(s.wants[p], s.holder is None)
        s.next.holder = p
        s.next.wants[p] = False


class NeverReleased(Strong):
    @action()
    def release(s) -> None:
        require(s.holder is not None)
        s.next.holder = None


class Stopping(Lock):
    @action()
    def take(s, p: P) -> None:
        require(s.wants[p], s.holder is None)
        s.next.holder = p
        s.next.wants[p] = False


class Idle(Model):
    """An action that is always possible but changes nothing in the end: it may not count as possible there."""

    n: Annotated[int, Range(0, N)]
    done: bool

    @action(fair="weak")
    def up(s) -> None:
        s.next.n = min(N, s.n + 1)

    @action(fair="weak")
    def finish(s) -> None:
        require(s.n == N)
        s.next.done = True

    @leads_to()
    def ends(s) -> tuple[bool, bool]:
        return s.n == 0, s.done


class Unfinished(Idle):
    @action()
    def finish(s) -> None:
        require(s.n == N)
        s.next.done = True


@pytest.mark.parametrize(
    ("model", "sizes", "outcome"),
    [
        (Lock, {"P": 1}, "complete"),
        (Lock, {"P": 2}, "liveness"),  # the other is always quicker
        (Strong, {"P": 2}, "complete"),
        (Strong, {"P": 3}, "complete"),
        (StrongForAnybody, {"P": 1}, "complete"),
        (StrongForAnybody, {"P": 2}, "liveness"),
        (NeverReleased, {"P": 2}, "liveness"),
        (Stopping, {"P": 1}, "liveness"),  # nobody need ever take it
        (Idle, {"N": 3}, "complete"),
        (Unfinished, {"N": 3}, "liveness"),
        (TwoPhase, {"Manager": 3}, "complete"),
    ],
)
def test_fairness_decides(model: type[Model], sizes: dict[str, int | bool], outcome: str) -> None:
    e = explore(load(model), sizes, deadlock=True)
    assert e.outcome == outcome
    assert (e.trace is None) == (outcome == "complete")
    assert explore(load(model), sizes, deadlock=True, liveness=False).outcome == "complete"
    if e.trace is not None:
        judge_lasso(model, e.trace)
        assert explore(load(model), sizes, deadlock=True, threads=1).trace == e.trace


def judge_lasso(model: type[Model], trace: Trace) -> None:
    """By the text alone: the lasso is a run, it closes, the goal never comes after the trigger, and it is fair."""
    m, c = load(model), Concrete(model, trace.sizes)
    (claim,) = m.leads_to.values()
    assert trace.kind == "lasso"
    assert trace.loop is not None
    run = [next(s for s in c.initial_states() if c.show(s) == trace.steps[0].state)]
    for step in trace.steps[1:]:
        taken = [t for t in c.successors(run[-1]) if (t.action, c.show(t.state)) == (step.action, step.state)]
        run.append(taken[0].state)
    assert run[-1] == run[trace.loop]
    loop, inside = run[trace.loop :], trace.steps[trace.loop + 1 :]
    argument = trace.claim.partition("=")[2].rstrip(")")
    promised = [_promise(c, claim.name, s, argument) for s in run]
    start = next(i for i, (trigger, goal) in enumerate(promised) if trigger and not goal)
    assert not any(goal for _, goal in promised[start:])
    for a in m.actions:
        if not a.fair:
            continue
        per = [i for i, p in enumerate(a.params) if a.parameter(p) in a.per]
        every = {t for s in loop for t in _possible(c, s, a.name, per)}
        for choice in every:
            possible = [choice in _possible(c, s, a.name, per) for s in loop]
            done = any(
                s.action == a.name and choice == tuple(list(s.arguments.values())[i] for i in per) for s in inside
            )
            assert done or not (all(possible) if a.fair == "weak" else any(possible)), (a.name, choice)


def _promise(c: Concrete, claim: str, state: State, argument: str) -> tuple[bool, bool]:
    p = next(x for x in c.values(load(Lock).vars["holder"].item) if x.name == argument) if argument else None
    return c.value(claim, state, {"p": p} if p is not None else {})  # type: ignore[no-any-return]


def _possible(c: Concrete, state: State, action: str, per: list[int]) -> set[tuple[Any, ...]]:
    return {
        tuple(getattr(list(t.arguments.values())[i], "name", None) for i in per)
        for t in c.successors(state)
        if t.action == action and t.state != state
    }


def test_a_stop_is_a_lasso_of_no_steps() -> None:
    e = explore(load(Stopping), {"P": 1}, deadlock=True)
    assert e.trace is not None
    assert e.trace.loop == len(e.trace.steps) - 1
    assert (e.trace.claim, e.trace.clauses) == ("served(p=p0)", ("XXX-1",))


def test_leads_to_of_a_graph_too_large_for_memory_is_a_limit() -> None:
    sizes = {"P": 9}
    whole = explore(load(Strong), sizes, liveness=False, deadlock=True)
    assert whole.outcome == "complete"
    e = explore(load(Strong), sizes, deadlock=True, max_memory_mb=64)
    assert e.outcome == "limit"


def test_every_state_of_a_random_small_graph_is_judged_as_by_hand() -> None:
    """Two counters that only fairness drives: the claim holds exactly if both are fair, whatever the sizes."""
    for fair in itertools.product(("", "weak", "strong"), repeat=2):

        class Two(Model):
            a: Annotated[int, Range(0, N)]
            b: Annotated[int, Range(0, N)]

            @action(fair=fair[0])  # type: ignore[arg-type]
            def left(s) -> None:
                require(s.a < N)
                s.next.a = s.a + 1

            @action(fair=fair[1])  # type: ignore[arg-type]
            def right(s) -> None:
                require(s.b < N)
                s.next.b = s.b + 1

            @leads_to()
            def both(s) -> tuple[bool, bool]:
                return s.a == 0, s.a == N and s.b == N

        e = explore(load(Two), {"N": 3}, deadlock=True)
        assert e.outcome == ("complete" if all(fair) else "liveness"), fair
