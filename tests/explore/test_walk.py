"""Random walks: the seed replays them, they find what is there, and they say what they did."""

from __future__ import annotations

from typing import Annotated

import pytest

from kafkaspec.errors import UserError
from kafkaspec.explore.walk import LONGEST, PARTIES, WALKERS, Schedule, walk
from kafkaspec.language import Model, Range, action, initial, invariant, load, refines, require
from kafkaspec.models.examples.cleaner_anchor import CleanerAnchor
from kafkaspec.models.examples.replication_anchor import Replication
from kafkaspec.report.describe import describe
from tests.explore.test_search import Beyond, Low, Overflowing, Steps, follow
from tests.explore.test_unchecked import UNSEEN, Shown

CLEANER: dict[str, int | bool] = {"Partition": 3, "Thread": 2, "N": 3, "D": 1}
UNFENCED: dict[str, int | bool] = {"Replica": 3, "L": 2, "E": 3, "FENCED": False}
SCHEDULES: tuple[Schedule, ...] = ("uniform", "swarm", "priority")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_seed_replays_the_walk(schedule: Schedule) -> None:
    first, again, other = (
        walk(load(CleanerAnchor), CLEANER, seed=n, steps=50_000, schedule=schedule) for n in (7, 7, 8)
    )
    assert (first.steps, first.walks, first.taken) == (again.steps, again.walks, again.taken)
    assert first.taken != other.taken
    assert first.trace is None
    assert first.steps == sum(first.taken.values())
    assert 0 <= 50_000 - first.steps < 50_000 // LONGEST + 2 * PARTIES * WALKERS
    assert all(first.taken.values())


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_violation_is_found_and_its_run_is_one(schedule: Schedule) -> None:
    w = walk(load(Replication), UNFENCED, seed=1, steps=10_000_000, schedule=schedule)
    assert w.trace is not None
    assert (w.trace.kind, w.trace.claim) == ("walk", "strong_isr")
    assert w.steps < 10_000_000
    follow(Replication, w.trace)
    assert walk(load(Replication), UNFENCED, seed=1, steps=10_000_000, schedule=schedule).trace == w.trace


def test_claims_about_transitions_are_checked() -> None:
    w = walk(load(Steps), {"N": 5}, seed=1, steps=10_000)
    assert w.trace is not None
    assert (w.trace.claim, w.trace.clauses, w.trace.steps[-1].action) == ("by_one", ("XXX-2",), "down")
    w = walk(load(Overflowing), {"N": 2}, seed=1, steps=10_000)
    assert w.trace is not None
    assert (w.trace.claim, w.trace.steps[-1].state["count"]) == ("type of count", 3)


def test_a_walk_that_reads_what_is_not_there_ends() -> None:
    w = walk(load(Beyond), {"N": 3}, seed=2, steps=1_000)
    assert w.trace is not None
    assert (w.trace.claim, w.trace.steps[-1].action) == ("defined", "peek")


def test_a_walk_ends_where_the_claim_breaks() -> None:
    w = walk(load(Low), {"N": 5}, seed=3, steps=100)
    assert w.trace is not None
    assert [s.state["count"] for s in w.trace.steps][-1] == 2
    assert (w.trace.claim, w.trace.clauses) == ("low", ("XXX-2",))


class Later(Model):
    """Starts at 1, too."""

    n: Annotated[int, Range(0, 3)]

    @initial
    def start(s) -> None:
        s.next.n = 1

    @action()
    def up(s) -> None:
        require(s.n < 3)
        s.next.n = s.n + 1


class Earlier(Later):
    """Every step is one of the other model; the first state is not."""

    @initial
    def start(s) -> None:
        s.next.n = 0

    @action()
    def up(s) -> None:
        require(0 < s.n < 3)
        s.next.n = s.n + 1

    @action()
    def stay(s) -> None:
        s.next.n = s.n

    @refines(Later)
    def later(s) -> Later:
        return Later.shown(n=s.n)


class Many(Model):
    """One first state of many breaks the invariant, and no walk comes back to it."""

    n: Annotated[int, Range(0, 999)]

    @initial
    def start(s, k: Annotated[int, Range(0, 399)]) -> None:
        s.next.n = k

    @action()
    def up(s) -> None:
        s.next.n = 400

    @invariant()
    def not_that_one(s) -> bool:
        return s.n != 311


def test_every_first_state_is_checked() -> None:
    w = walk(load(Earlier), {}, seed=1, steps=100)
    assert w.trace is not None
    assert (w.trace.claim, len(w.trace.steps), w.trace.steps[0].state) == ("later: start", 1, {"n": 0})
    w = walk(load(Many), {}, seed=1, steps=100)
    assert w.trace is not None
    assert (w.trace.claim, w.trace.steps[0].state) == ("not_that_one", {"n": 311})


def test_what_a_walk_does_not_check_is_named() -> None:
    w = walk(load(Shown), {"N": 2}, seed=1, steps=100)
    assert w.unchecked.keys() == {*UNSEEN, "rises"}
    assert w.unchecked["rises"] == "a leads-to claim is about whole runs, and a walk breaks off"
    assert w.unchecked["counted"] == "it reads a ghost, which --ghosts keeps"
    said = [c for fact, c in describe(w)[0].facts if fact == "not checked"]
    assert len(said) == len(w.unchecked)
    kept = walk(load(Shown), {"N": 2}, seed=1, steps=100, ghosts=True)
    assert kept.unchecked.keys() == {"high", "rises", "ghost_rises"}
    assert describe(kept)[0].again.endswith(" --ghosts")


def test_an_unknown_schedule_is_named() -> None:
    with pytest.raises(UserError, match="unknown schedule 'unifrom'; did you mean 'uniform'"):
        walk(load(Low), {"N": 5}, seed=3, steps=100, schedule="unifrom")  # type: ignore[arg-type]
