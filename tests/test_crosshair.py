"""CrossHair looks for arguments, chosen by a solver and not from candidates, that break a contract of the specs.

Two ways. *From reachable states*: the states at the end of a few seeded walks, the arguments symbolic. *Whole*: the
state symbolic too, for the specs whose states can be anything their types allow. A short time for each contract here, a
long one in `make deep`. What CrossHair does not find is not proved.
"""

from __future__ import annotations

import inspect
import os
import random
import typing
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import UnionType
from typing import Any

import icontract
import pytest
from crosshair.core_and_libs import MessageType, analyze_function, run_checkables
from crosshair.options import AnalysisKind, AnalysisOptionSet

from kafkaspec.lockstep.machine import Condition, Machine, Operation, Step
from kafkaspec.lockstep.mutants import with_fault
from kafkaspec.lockstep.walk import draw
from kafkaspec.subsystem import subsystems
from tests.lockstep import toy

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
SECONDS = 20.0 if DEEP else 0.15
"""for each contract, from each state"""
STATES = 5 if DEEP else 2

WHOLE = {"timeline": {"iterator.open", "iterator.next", "iterator.finish"}}
"""Subsystems whose states are arbitrary, without the operations for which they are not: an iterator is of a collection
that there is, at an epoch that has a snapshot."""

FOUND = {MessageType.POST_FAIL, MessageType.POST_ERR, MessageType.EXEC_ERR}


def search(function: Callable[..., Any], seconds: float) -> list[str]:
    """What CrossHair finds against the contracts of a function."""
    options = AnalysisOptionSet(analysis_kind=[AnalysisKind.icontract], per_condition_timeout=seconds)
    messages = run_checkables(analyze_function(function, options))
    assert not any(m.state in (MessageType.SYNTAX_ERR, MessageType.IMPORT_ERR) for m in messages)
    return [m.message for m in messages if m.state in FOUND]


def symbolic(kind: Any) -> bool:
    """Whether CrossHair makes values of a parameter's type well enough: numbers, strings and None."""
    if typing.get_origin(kind) in (typing.Union, UnionType):
        return all(symbolic(k) for k in typing.get_args(kind))
    return kind in (int, str, bool, float, type(None))


def at(state: Any, op: Operation[Any], post: Condition, fixed: dict[str, Any]) -> Callable[..., Any]:
    """The operation in one state as a function of its symbolic arguments alone, with one of its postconditions."""
    types = typing.get_type_hints(op.body)
    free = [p for p in inspect.signature(op.body).parameters if p != "state" and p not in fixed]
    known = {"state": state, **fixed}

    def bound(condition: Condition) -> Callable[..., Any]:
        names = [n for n in condition.arguments if n not in known]

        def check(**values: Any) -> Any:
            values |= known
            return condition.condition(**{n: values[n] for n in condition.arguments})

        kinds = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in names]
        check.__signature__ = inspect.Signature(kinds)  # type: ignore[attr-defined]
        return check

    def call(**values: Any) -> Any:
        return op.body(state, **fixed, **values)

    call.__name__ = call.__qualname__ = op.body.__name__
    call.__annotations__ = {n: types[n] for n in free}
    kinds = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, annotation=types[n]) for n in free]
    call.__signature__ = inspect.Signature(kinds)  # type: ignore[attr-defined]
    function: Callable[..., Any] = icontract.ensure(bound(post), f"{post.clause} {post.text}")(call)
    for pre in op.preconditions:
        function = icontract.require(bound(pre), f"{pre.clause} {pre.text}")(function)
    return function


def reached(machine: Machine[Any], count: int) -> Iterator[Any]:
    """The states at the end of some seeded walks."""
    for seed in range(count):
        rng = random.Random(seed)
        state = machine.initial()
        for _ in range(40):
            op = rng.choice([o for o in machine.operations.values() if o.generated])
            arguments = draw(machine, op, state, rng.choice)
            step = None if arguments is None else machine.apply(state, op.name, arguments, contracts=False)
            state = step.state if isinstance(step, Step) else state
        yield state


def broken(machine: Machine[Any], op: Operation[Any], states: int = STATES, seconds: float = SECONDS) -> list[str]:
    """The contracts of an operation that CrossHair breaks from reachable states."""
    types = typing.get_type_hints(op.body)
    out = []
    for n, state in enumerate(reached(machine, states)):
        rng = random.Random(n)
        odd = [p for p in op.parameters.values() if not symbolic(types[p])]
        choices = machine.choices(op, state) if odd else {}
        if not all(choices.values()):
            continue  # nothing can be called in this state
        fixed = {p: rng.choice(choices[p]) for p in odd}
        for post in op.postconditions:
            out += [f"{post.clause} {post.text}: {found}" for found in search(at(state, op, post, fixed), seconds)]
    return out


def with_contracts(machine: Machine[Any]) -> list[Operation[Any]]:
    """Operations that have an argument to choose and a postcondition to break."""
    return [o for o in machine.operations.values() if o.generated and o.postconditions and o.parameters]


FROM_STATES = [(s.spec.machine, o) for s in subsystems().values() for o in with_contracts(s.spec.machine)]
WHOLE_STATES = [
    o
    for name, without in WHOLE.items()
    for o in subsystems()[name].spec.machine.operations.values()
    if o.postconditions and o.name not in without
]


@pytest.mark.parametrize(("machine", "op"), FROM_STATES, ids=lambda x: x.name)
def test_no_argument_breaks_a_contract_in_reachable_states(machine: Machine[Any], op: Operation[Any]) -> None:
    assert broken(machine, op) == []


@pytest.mark.parametrize("op", WHOLE_STATES, ids=lambda o: o.name)
def test_no_state_and_argument_break_a_contract(op: Operation[Any]) -> None:
    assert search(op.function, SECONDS) == []


def test_a_broken_contract_is_found_by_an_argument_that_is_no_candidate() -> None:
    def forgets_4711(state: toy.Queue, value: int) -> Step[toy.Queue]:
        kept = (value,) if value != 4711 else ()
        return Step(replace(state, items=state.items + kept), len(state.items) + 1)

    machine = with_fault(toy.build(), "push", forgets_4711)
    found = broken(machine, machine.find("push"), 3, 5.0)
    assert found
    assert "TOY-1 one more" in found[0]
    assert "4711" in found[0]
