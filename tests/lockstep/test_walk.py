"""Lockstep on the toy: walks replay, failures shrink and print, Hypothesis finds the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from kafkaspec.contract.history import parse
from kafkaspec.contract.machine import Json, Refused
from kafkaspec.judge.check import check
from kafkaspec.lockstep.walk import Coverage, replay, shrink, state_machine, unlike, walk
from tests.lockstep import toy


def found(driver: toy.Driver, machine: Any = toy.machine) -> Any:
    return next(f for f in (walk(machine, driver, seed, 200).failure for seed in range(50)) if f is not None)


def test_spec_and_driver_agree_and_everything_is_covered() -> None:
    covered = Coverage()
    for seed in range(20):
        w = walk(toy.machine, toy.Driver(), seed, 100, model_state=lambda s: len(s.items) if len(s.items) < 3 else None)
        assert w.failure is None
        covered.add(w.coverage)
    assert covered.operations.total() == 2000
    assert covered.operations.keys() == toy.machine.operations.keys()
    assert covered.refusals.keys() == {"push TOY-3", "pop TOY-5", "restore TOY-9"}
    assert covered.clauses.keys() == {"TOY-1", "TOY-3", "TOY-4", "TOY-5", "TOY-7", "TOY-8", "TOY-9"}
    assert covered.model_states == {0, 1, 2}


def test_a_seed_replays_its_walk() -> None:
    one, two, other = (walk(toy.machine, toy.Driver(), seed, 50) for seed in (3, 3, 4))
    assert one == two
    assert one.coverage != other.coverage


def test_a_failure_shrinks_to_a_history_that_replays_and_that_check_rejects() -> None:
    driver = toy.ForgetsAfterRestore()
    short = shrink(toy.machine, driver, found(driver))
    assert [r["op"] for r in short.records] == ["init", "save", "restore", "push"]
    assert str(short).startswith("# lockstep: differs at call 3: push value=")
    assert "state.saved: seen [" in short.why
    again = parse(str(short), "t.history")
    assert again.records == short.records
    assert replay(toy.machine, driver, again.records) == short
    assert replay(toy.machine, toy.Driver(), again.records) is None
    v = check(toy.machine, short.ndjson().splitlines())
    assert (v.verdict, v.clause, v.step) == ("rejected", short.clause, 3)


class Raises(toy.Driver):
    def pop(self) -> Json | Refused:
        return self.items.popleft()


class WrongClause(toy.Driver):
    def pop(self) -> Json | Refused:
        return self.items.popleft() if self.items else Refused("TOY-9", toy.EMPTY)


class BeginsFull(toy.Driver):
    def reset(self, arguments: Mapping[str, Any]) -> None:
        super().reset(arguments)
        self.items.append(1)


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        (Raises(), "the driver failed: IndexError: pop from an empty deque"),
        (WrongClause(), "refused by TOY-9, expected a refusal by TOY-5"),
        (BeginsFull(), "state.items: seen [1], expected []"),
    ],
)
def test_other_failures_are_said(driver: toy.Driver, said: str) -> None:
    assert said in shrink(toy.machine, driver, found(driver)).why


def test_a_spec_that_changes_a_state_in_place_is_seen_when_it_is_looked_at_again() -> None:
    machine = toy.build()

    @machine.question("count", "TOY-4")
    def count(state: toy.Queue) -> int:
        object.__setattr__(state, "turned_away", state.turned_away + 1)
        return len(state.items)

    class Counts(toy.Driver):
        def count(self) -> int:
            return len(self.items)

    calls = [{"op": "init", "args": {}}, {"op": "count", "args": {}}]
    failure = replay(machine, Counts(), calls)
    assert failure is not None
    assert "state.turnedAway: seen 0, expected 1" in failure.why
    machine.operations = {"count": machine.operations["count"]}
    assert walk(machine, Counts(), 1, 20).failure is not None
    quick = settings(max_examples=5, stateful_step_count=5, deadline=None, database=None)
    with pytest.raises(AssertionError, match="turnedAway"):
        run_state_machine_as_test(state_machine(machine, Counts), settings=quick)


def test_refusals_agree_in_class_and_in_what_both_say() -> None:
    spec = Refused("TOY-5", "E", "why")
    assert unlike(spec, Refused("", "E")) == unlike(spec, Refused("TOY-5", "E", "why")) == ""
    assert unlike(spec, Refused("", "F")) == '!! F, expected !! E: "why"'.join(["answered ", ""])
    assert unlike(spec, Refused("", "E", "other")) == 'answered !! E: "other", expected !! E: "why"'
    assert unlike(1, True) == "answered -> true, expected -> 1"


def test_a_walk_stays_inside_the_contract_unless_asked() -> None:
    machine = toy.build()
    machine.candidates["value"] = lambda state: (-1, 1)
    assert walk(machine, toy.Driver(), 1, 100).failure is None
    w = walk(machine, toy.Driver(), 1, 100, outside=True)
    assert w.outside is not None
    assert w.outside.clause == "TOY-2"
    assert w.steps < 100


def test_the_configuration_is_drawn_too() -> None:
    machine = toy.build()
    machine.candidates["init:capacity"] = lambda _: (1, 2)
    walks = [walk(machine, toy.Driver(), seed, 50) for seed in range(10)]
    assert all(w.failure is None for w in walks)
    failure = next(
        f for seed in range(9) if (f := walk(machine, toy.ForgetsAfterRestore(), seed, 99).failure) is not None
    )
    assert failure.records[0]["args"]["capacity"] in (1, 2)


def test_hypothesis_walks_too() -> None:
    quick = settings(max_examples=10, stateful_step_count=20, deadline=None)
    covered = Coverage()
    run_state_machine_as_test(state_machine(toy.machine, toy.Driver, covered), settings=quick)
    assert covered.operations.total() > 50
    with pytest.raises(AssertionError, match="spec and driver differ") as failure:
        run_state_machine_as_test(
            state_machine(toy.machine, toy.ForgetsAfterRestore),
            settings=settings(quick, max_examples=200, database=None),
        )
    text = str(failure.value).partition("\n")[2]
    assert replay(toy.machine, toy.ForgetsAfterRestore(), parse(text, "t").records) is not None
    assert len(parse(text, "t").records) == 4
