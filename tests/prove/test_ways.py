"""Which abstract action a step shows, case by case: the parts that are found say no less than the whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkaspec.language import LoadedModel, load
from kafkaspec.models.examples.replication_anchor import Replication
from kafkaspec.models.management.cleaner import Cleaner
from kafkaspec.prove import ways
from kafkaspec.prove.engine import ProofResult, prove
from kafkaspec.prove.obligations import of_action
from kafkaspec.prove.solver import Budget
from tests.examples.test_replication_anchor import CommitsAlone, NobodyLooksBack, ReadsBeyond
from tests.language.texts import model
from tests.management.test_cleaner_refines import (
    ANewLogIsDirty,
    AResumeLeavesOnePause,
    DirtComesAtOnce,
    EveryMarkIsTakenAway,
    EveryPolicyChanges,
    StoppedLeavesAllDirty,
)

ABSTRACT = """
class Counter(Model):
    total: Num
    seen: dict[P, bool]
    @action()
    def up(s, a: P) -> None:
        require(s.total < N, not s.seen[a])
        s.next.total = s.total + 1
        s.next.seen[a] = True
    @action()
    def empty(s) -> None:
        s.next.total = 0
        s.next.seen = {a: False for a in P}
    @action()
    def forget(s, a: P, b: bool) -> None:
        require(s.total == N or not b)
        s.next.seen[a] = b
"""
VARIABLES = "n: Num\ndone: set[P]\nother: bool\n"
BODY = """
@action()
def go(s, a: P) -> None:
    require(s.n < N)
    if a not in s.done:
        s.next.n = s.n + 1
        s.next.done = s.done | {a}
    elif s.other:
        s.next.n = 0
        s.next.done = {x for x in P if False}
    else:
        s.next.other = True
@action()
def undo(s, a: P) -> None:
    s.next.done = s.done - {a}
    s.next.other = not s.other
@refines(Counter)
def counter(s) -> Counter:
    return Counter.shown(total=s.n, seen={a: a in s.done for a in P})
"""


def asked(m: LoadedModel, action: str, claim: str, fixed: dict[str, int | bool] | None = None) -> ProofResult:
    m = replace(m, actions=[a for a in m.actions if a.name == action])
    return prove(m, timeout_s=1, fixed=fixed, only=lambda a, c: (a, c) == (action, claim))


def parts(m: LoadedModel, action: str, claim: str) -> int:
    """In how many parts it is shown that an action refines."""
    (a,) = [a for a in m.actions if a.name == action]
    s = of_action(m, a, {}, lambda _, c: c == claim, apart=True)
    assert s.goals[0].shows is not None
    return len(ways.parts(s, s.goals[0].shows, Budget(5))[0])


def test_each_case_shows_an_action_of_its_own() -> None:
    """The guard, and what each of two variables becomes."""
    m = model(BODY, VARIABLES, ABSTRACT)
    assert prove(m).complete
    assert parts(m, "undo", "counter") == 3
    assert parts(m, "go", "counter") > 4


def test_the_cleaner_is_shown_in_parts() -> None:
    m = load(Cleaner)
    assert all(parts(m, action, "manager") > 3 for action in ("finish_cleaning", "start_holding", "create"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("s.next.n = s.n + 1", "s.next.n = s.n"),
        ("s.next.done = {x for x in P if False}", "s.next.done = s.done"),
        ("        s.next.other = True", "        s.next.n = 0"),
    ],
)
def test_one_case_that_shows_nothing_is_enough_to_fail(old: str, new: str) -> None:
    assert old in BODY
    assert not asked(model(BODY.replace(old, new), VARIABLES, ABSTRACT), "go", "counter").by_verdict("proved")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("fault", "action"),
    [(DirtComesAtOnce, "write"), (EveryMarkIsTakenAway, "maintain_uncleanable"), (EveryPolicyChanges, "make_compact")],
)
def test_a_fault_of_the_cleaner_is_not_proved(fault: type[Cleaner], action: str) -> None:
    assert not asked(load(fault), action, "manager").by_verdict("proved")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("fault", "action"),
    [(StoppedLeavesAllDirty, "finish_cleaning"), (AResumeLeavesOnePause, "end_holding"), (ANewLogIsDirty, "create")],
)
def test_a_fault_of_the_manager_is_not_proved(fault: type, action: str) -> None:
    m = load(Cleaner).refining("manager", load(fault))
    assert not asked(m, action, "manager").by_verdict("proved")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("fault", "action"), [(ReadsBeyond, "fetch"), (CommitsAlone, "increment_hw")])
def test_a_fault_of_the_replicated_log_is_not_proved(fault: type, action: str) -> None:
    assert not asked(load(fault), action, "users", {"FENCED": True}).by_verdict("proved")


def test_a_fault_of_what_users_see_is_not_proved() -> None:
    m = load(Replication).refining("users", load(NobodyLooksBack))
    assert not asked(m, "fetch", "users", {"FENCED": True}).by_verdict("proved")
