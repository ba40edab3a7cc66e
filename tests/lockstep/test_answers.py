"""What a walk asks its spec once is the same call: it hides no fault, and makes none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import icontract
import pytest

from kafkaspec.contract.machine import Fields, Json, Machine, Refused
from kafkaspec.lockstep.walk import Answers, replay, walk


@dataclass(frozen=True)
class State:
    n: int = 0


class Driver:
    """Does what the spec says."""

    def reset(self, init: Any) -> None:
        self.n = 0

    def observe(self) -> Json:
        return Fields(n=self.n)

    def apply(self, op: str, a: Any) -> Json | Refused:
        if op == "minus":
            return int(a.get("one", 0)) - int(a.get("other", 0))
        if op == "same":
            return int(a["value"])
        if op == "first":
            return self.first(a["values"])
        self.n += 1
        return None

    def first(self, values: list[int]) -> int:
        return values[0]


VALUES = [[3, 1, 2]]


def machine(doubt: bool = False) -> Machine[State]:
    m = Machine("attacked", State, lambda s: Fields(n=s.n))

    @m.operation("up", "ATT-1")
    def up(state: State) -> State:
        return replace(state, n=state.n + 1)

    @m.question("minus", "ATT-2")
    def minus(state: State, one: int = 0, other: int = 0) -> int:
        return one - other

    if doubt:

        @m.question("same", "ATT-3")
        @icontract.ensure(lambda state, result: state.n < 3 or result != 1, "ATT-3 not 1 later")
        def same(value: int) -> int:
            return value

    @m.question("first", "ATT-4")
    def first(values: list[int]) -> int:
        return values[0]

    for p in ("one", "other", "value"):
        m.candidates[p] = lambda state: (0, 1, 7)
    m.candidates["values"] = lambda state: VALUES
    return m


def test_a_call_is_known_by_which_parameters_are_given() -> None:
    """A history may leave out parameters that have a default: `minus one=1` is another call than `minus other=1`."""
    m = machine()
    a, b = {"op": "minus", "args": {"one": 1}}, {"op": "minus", "args": {"other": 1}}
    assert replay(m, Driver(), [b]) is None
    assert replay(m, Driver(), [a, b]) is None


def test_a_driver_that_takes_one_parameter_for_the_other_is_noticed_in_a_replay() -> None:
    class Mistakes(Driver):
        def apply(self, op: str, a: Any) -> Json | Refused:
            return sum(a.values()) if op == "minus" else super().apply(op, a)

    m = machine()
    a, b = {"op": "minus", "args": {"one": 1}}, {"op": "minus", "args": {"other": 1}}
    assert replay(m, Mistakes(), [b]) is not None
    assert replay(m, Mistakes(), [a, b]) is not None


def test_a_postcondition_of_a_question_that_looks_at_the_state_is_looked_at_in_each_state() -> None:
    up, same = {"op": "up", "args": {}}, {"op": "same", "args": {"value": 1}}
    with pytest.raises(Exception):  # noqa: B017  whichever: it is noticed
        replay(machine(doubt=True), Driver(), [up, up, up, same])
    with pytest.raises(Exception):  # noqa: B017
        replay(machine(doubt=True), Driver(), [same, up, up, up, same])


def test_a_driver_that_changes_its_arguments_and_remembers_is_noticed() -> None:
    class Sorts(Driver):
        """Answers what it said before to the same list, which it has sorted since."""

        known: dict[int, int] = {}

        def first(self, values: list[int]) -> int:
            if id(values) not in self.known:
                self.known[id(values)] = values[0]
                values.sort()
            return self.known[id(values)]

    values = [3, 1, 2]
    first = {"op": "first", "args": {"values": values}}
    assert replay(machine(), Sorts(), [first, first]) is not None
    VALUES[0][:] = [3, 1, 2]
    Sorts.known.clear()
    assert walk(machine(), Sorts(), 3, 200).failure is not None


def test_a_driver_that_takes_its_arguments_out_of_what_it_is_given_is_right() -> None:
    """`verify` shares the answers among its walks; an argument's identity is another's once nobody keeps it."""

    class Pops(Driver):
        def apply(self, op: str, a: Any) -> Json | Refused:
            return len(a.pop("values")) if op == "length" else super().apply(op, a)

    m = Machine("popped", State, lambda s: Fields(n=s.n))

    @m.operation("up", "ATT-1")
    def up(state: State) -> State:
        return replace(state, n=state.n + 1)

    @m.question("length", "ATT-5")
    def length(values: list[int]) -> int:
        return len(values)

    m.candidates["values"] = lambda state: [[0] * (state.n % 5 + k) for k in range(3)]
    answers = Answers(m)
    for seed in range(20):
        failure = walk(m, Pops(), seed, 50, answers=answers).failure
        assert failure is None, f"{seed}: {failure}"


def test_candidates_that_are_one_list_filled_anew_are_other_arguments() -> None:
    m = Machine("filled", State, lambda s: Fields(n=s.n))
    buffer: list[int] = []

    @m.operation("up", "ATT-1")
    def up(state: State) -> State:
        return replace(state, n=state.n + 1)

    @m.question("length", "ATT-5")
    def length(values: list[int]) -> int:
        return len(values)

    class Counts(Driver):
        def apply(self, op: str, a: Any) -> Json | Refused:
            return len(a["values"]) if op == "length" else super().apply(op, a)

    def values(state: State) -> list[list[int]]:
        buffer[:] = [0] * state.n
        return [buffer]

    m.candidates["values"] = values
    for seed in range(5):
        assert walk(m, Counts(), seed, 50).failure is None
