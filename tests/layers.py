"""What every subsystem's tests ask of its layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from kafkaspec.contract.history import outcome
from kafkaspec.contract.machine import Driver, Machine, Outside, Refused, Step
from kafkaspec.contract.subsystem import Subsystem
from kafkaspec.lockstep.walk import Coverage, Pair, draw, walk
from kafkaspec.mutants.matrix import Detector, explorer_detector, kill_matrix
from kafkaspec.mutants.mutant import Mutant

a_row_of_verify = pytest.mark.deep
"""What a row of `kafkaspec verify` does too. `make test` verifies everything once, in tests/docs."""


def walked(machine: Machine[Any], driver: Callable[[], Driver], *, seeds: int, steps: int) -> Coverage:
    """Random walks of the spec beside a driver, which must agree, and together call every operation."""
    covered = Coverage()
    for seed in range(seeds):
        w = walk(machine, driver(), seed, steps)
        assert w.failure is None, str(w.failure)
        covered.add(w.coverage)
    assert covered.operations.keys() == machine.operations.keys()
    return covered


def some_are_killed(s: Subsystem, faults: Sequence[Mutant], each: int, detectors: Sequence[Detector]) -> None:
    """Of the faults of spec and impl one in `each` is noticed by a detector, those that are left by the next; and
    the first one of the model by the explorer."""
    left = [m for m in faults if m.layer != "model"][::each]
    assert {m.layer for m in left} == {"spec", "impl"}
    assert not any(m.survives for m in left)
    for detector in detectors:
        left = [row.mutant for row in kill_matrix(s, left, [detector]) if not row.killed]
    assert left == []
    of_the_model = next(m for m in faults if m.layer == "model")
    assert explorer_detector().look(s, "model", of_the_model.make())


def both_show(
    machine: Machine[Any], driver: Driver, init: dict[str, Any], *calls: tuple[str, dict[str, Any]]
) -> Iterator[Any]:
    """What the spec and a driver show after each call, in which they agree; `init` and arguments by Python names."""
    pair = Pair(machine, driver, init)
    for name, arguments in calls:
        outside = pair.call(machine.find(name), arguments)
        assert outside is None, f"{name}: {outside}"
        assert pair.failure is None, str(pair.failure)
        yield driver.observe()


class Comparison:
    """A spec that is called by name within its contracts, and an implementation beside it: they answer alike, are in
    the same state, and show the same. `init` by Python names."""

    def __init__(self, machine: Machine[Any], driver: Any, init: Mapping[str, Any]) -> None:
        self.machine, self.driver = machine, driver
        self.state = machine.initial(**init)
        driver.reset(init)

    def __call__(self, op: str, /, **arguments: Any) -> Any:
        """The answer. A test that calls what is outside the contract is red."""
        step = self.machine.apply(self.state, op, arguments)
        assert not isinstance(step, Outside), step
        self.state = step.state
        assert outcome(self.driver.apply(op, arguments)) == outcome(step.result), op
        assert self.driver.state() == step.state, op
        assert self.driver.observe() == self.shown, op
        return step.result

    @property
    def shown(self) -> Any:
        """What the spec shows."""
        return self.machine.observe(self.state)


class Histories:
    """Calls from the first state on, each of a spec and of an implementation beside it. `init` by Python names."""

    def __init__(self, machine: Machine[Any], driver: Callable[[], Driver], **init: Any) -> None:
        self.machine, self.driver, self.init = machine, driver, init

    def answered(self, *calls: tuple[str, dict[str, Any]]) -> tuple[Any, list[Any]]:
        """The state after these calls, and the answers of them."""
        called = Comparison(self.machine, self.driver(), self.init)
        answers = [called(name, **arguments) for name, arguments in calls]
        return called.state, answers

    def after(self, *calls: tuple[str, dict[str, Any]]) -> Any:
        """The state, where nothing is refused."""
        state, answers = self.answered(*calls)
        assert not any(isinstance(a, Refused) for a in answers), answers
        return state

    def refused(self, *calls: tuple[str, dict[str, Any]]) -> Refused:
        """The refusal of the last call, which alone is refused and changes nothing."""
        state, answers = self.answered(*calls)
        assert state == self.after(*calls[:-1])
        assert isinstance(answers[-1], Refused), answers
        return answers[-1]


class Beside:
    """A spec whose calls an implementation takes too, and answers alike, so that a test of the spec with values is one
    of both. Where a test goes on from a state, the implementation is brought there by the calls that led to it."""

    def __init__(self, machine: Machine[Any], driver: Callable[[], Driver]) -> None:
        self.machine, self.driver = machine, driver
        self.ways: dict[Any, tuple[Mapping[str, Any], tuple[tuple[str, Mapping[str, Any]], ...]]] = {}
        self._pair: Pair | None = None

    def initial(self, **init: Any) -> Any:
        """The spec's first state with that configuration, by Python names."""
        state = self.machine.initial(**init)
        self.ways[state] = (init, ())
        return state

    def call(self, state: Any, name: str, arguments: Mapping[str, Any]) -> Step[Any]:
        """A call within the contract, by Python names: the spec's state after it, and its answer."""
        step = self.machine.apply(state, name, arguments)
        assert not isinstance(step, Outside), step
        init, calls = self.ways[state]
        if self._pair is None or self._pair.state is not state:
            self._pair = Pair(self.machine, self.driver(), init)
            for before in calls:
                self._call(self._pair, *before)
        self._call(self._pair, name, arguments)
        self.ways.setdefault(self._pair.state, (init, (*calls, (name, arguments))))
        return Step(self._pair.state, step.result)

    def _call(self, pair: Pair, name: str, arguments: Mapping[str, Any]) -> None:
        pair.call(self.machine.find(name), arguments)
        assert pair.failure is None, str(pair.failure)


def abstracts(
    data: st.DataObject,
    machine: Machine[Any],
    driver: Driver,
    abstract: Callable[[Any], Any] = lambda driver: driver.state(),
    steps: int = 20,
) -> None:
    """After every call the state that the driver is in is the spec's, the whole of it."""
    pair = Pair(machine, driver, {})
    for _ in range(steps):
        op = machine.find(data.draw(st.sampled_from(sorted(machine.operations))))
        arguments = draw(machine, op, pair.state, lambda c: data.draw(st.sampled_from(c)))
        if arguments is not None:
            pair.call(op, arguments)
            assert pair.failure is None, str(pair.failure)
            assert abstract(driver) == pair.state
