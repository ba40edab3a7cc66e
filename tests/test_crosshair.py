"""CrossHair on the contracts of the specs: each operation called with symbolic arguments, in states that walks reached.

A state drawn from thin air would break contracts that only reachable states keep; so states are concrete and reachable,
and the arguments are what is searched. `make test` follows PATHS paths through the first operation of a subsystem;
`make deep` does so through each, and then as many as five seconds allow.

Importing CrossHair switches icontract off in the whole process. That is undone at once, for all other tests' sake; here
the conditions are evaluated one by one, which also keeps icontract's own machinery out of the search.
"""

from __future__ import annotations

import inspect
import linecache
import random
import sys
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import icontract._checkers as enforcing
import pytest
from icontract import ViolationError, ensure

# icontract, as it was before CrossHair touched it
ENFORCED = {n: f for n, f in vars(enforcing).items() if n.startswith("_assert_")}

from crosshair.core import deep_realize  # noqa: E402
from crosshair.core_and_libs import NoTracing, analyze_function, run_checkables  # noqa: E402
from crosshair.options import AnalysisKind, AnalysisOptionSet  # noqa: E402
from crosshair.statespace import MessageType  # noqa: E402
from crosshair.util import CrossHairInternal  # noqa: E402

from kafkaspec.contract.machine import Machine, Operation, Step  # noqa: E402
from kafkaspec.contract.subsystem import subsystems  # noqa: E402
from kafkaspec.lockstep.walk import draw, draw_init  # noqa: E402
from kafkaspec.spec.common.remembered import remembered  # noqa: E402

for name, enforce in ENFORCED.items():
    setattr(enforcing, name, enforce)

OWN = ("CrossHairInternal", "NotDeterministic")
"""What CrossHair says of its own failures."""

STATES = 6
PATHS = 8
"""Each path begins in one of the states."""
CASES = [
    pytest.param(pair.machine, op, id=f"{s.name}-{op.name}", marks=pytest.mark.deep if i else ())
    for s in subsystems().values()
    for i, (pair, op) in enumerate(
        (pair, op) for pair in s.pairs() for op in pair.machine.operations.values() if op.parameters
    )
]


def reached(machine: Machine[Any], many: int = STATES, steps: int = 30) -> list[Any]:
    """States at the ends of random walks, from the first one on."""
    out = [machine.initial()]
    operations = [op for op in machine.operations.values() if op.generated]
    for seed in range(many - 1):
        rng = random.Random(seed)
        state = machine.initial(**draw_init(machine, rng.choice))
        for _ in range(steps):
            op = rng.choice(operations)
            arguments = draw(machine, op, state, rng.choice)
            step = machine.apply(state, op.name, arguments, contracts=False) if arguments is not None else None
            state = step.state if isinstance(step, Step) else state
        out.append(state)
    return out


def caller(machine: Machine[Any], op: Operation[Any]) -> Callable[..., None]:
    """A function of the operation's own parameters, typed, that makes the call in one of the reached states."""
    hints = typing.get_type_hints(inspect.unwrap(op.body))
    parameters = list(op.parameters.values())
    assert op.decoders.keys() <= set(parameters)  # made before CrossHair watches: it would not be so the second time

    def checked(state: Any, arguments: dict[str, Any]) -> None:
        if op.beyond(arguments) or machine.outside(op, state, arguments) is not None:
            return
        values = {**op.defaults, **arguments, "state": state, "result": op.call(op.body, state, arguments)}
        for post in op.postconditions:
            if not post.condition(**{n: values[n] for n in post.arguments}):
                raise ViolationError(f"{post.clause} {post.text}")

    def confirmed(state: Any, arguments: dict[str, Any]) -> None:
        """What symbolic values break must be broken by plain ones too."""
        try:
            checked(state, arguments)
        except Exception:
            plain = deep_realize(arguments)
            with NoTracing():  # type: ignore[no-untyped-call]
                checked(state, plain)

    names: dict[str, Any] = {"STATES": reached(machine), "confirmed": confirmed}
    given = []
    for i, p in enumerate(parameters):
        literal = typing.get_origin(hints[p]) is typing.Literal  # which CrossHair cannot draw: one of them by number
        names |= {f"T{i}": int if literal else hints[p], f"V{i}": typing.get_args(hints[p])}
        given.append(f"{p!r}: V{i}[{p} % len(V{i})]" if literal else f"{p!r}: {p}")
    typed = ", ".join(f"{p}: T{i}" for i, p in enumerate(parameters))
    text = (
        f"def call(which: int, {typed}) -> None:\n"
        '    """post: True"""\n'
        "    confirmed(STATES[which % len(STATES)], {" + ", ".join(given) + "})\n"
    )
    file = f"<crosshair {machine.name} {op.name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names["__name__"] = __name__
    exec(compile(text, file, "exec"), names)
    call: Callable[..., None] = names["call"]
    return call


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """CrossHair takes the same path twice, and an answer that is kept would make it another the second time."""
    for name, module in list(sys.modules.items()):
        if name.startswith("kafkaspec.spec."):
            for attribute, value in list(vars(module).items()):
                if getattr(value, "__code__", None) is remembered(len).__code__:
                    monkeypatch.setattr(module, attribute, value.__wrapped__)


def broken(machine: Machine[Any], op: Operation[Any], seconds: float, paths: int = sys.maxsize) -> list[str]:
    """What CrossHair found: a call that breaks a contract."""
    options = AnalysisOptionSet(
        analysis_kind=[AnalysisKind.PEP316],
        per_condition_timeout=seconds,
        per_path_timeout=max(0.5, seconds / 10),
        max_iterations=paths,
    )
    try:
        messages = run_checkables(analyze_function(caller(machine, op), options))
    except (Exception, CrossHairInternal) as e:  # CrossHair's own: others are messages
        pytest.skip(f"CrossHair failed: {type(e).__name__}: {e}")
    bad = (MessageType.POST_FAIL, MessageType.POST_ERR, MessageType.EXEC_ERR)
    found = [m.message for m in messages if m.state in bad]
    if own := [m for m in found if m.startswith(OWN)]:
        pytest.skip(f"CrossHair failed: {own[0]}")
    return found


@pytest.mark.parametrize(("machine", "op"), CASES)
def test_no_arguments_break_a_contract(machine: Machine[Any], op: Operation[Any]) -> None:
    assert broken(machine, op, 1.0, PATHS) == []


@pytest.mark.deep
@pytest.mark.parametrize(("machine", "op"), CASES)
def test_no_arguments_break_a_contract_in_a_while(machine: Machine[Any], op: Operation[Any]) -> None:
    assert broken(machine, op, 3.0) == []


@dataclass(frozen=True)
class Count:
    n: int = 0


def test_a_contract_that_one_value_in_a_million_breaks_is_found() -> None:
    machine: Machine[Count] = Machine("count", Count, lambda state: state.n)

    @machine.operation("add")
    @ensure(lambda state, by, result: result.state.n == state.n + by, "TOY-1 the sum")
    def add(state: Count, by: int) -> Step[Count]:
        return Step(Count(state.n + by + (1 if by == 731_204 else 0)))

    machine.candidates["by"] = lambda state: [1]
    (found,) = broken(machine, machine.find("add"), 10.0)
    assert "731204" in found


def test_contracts_are_enforced_although_crosshair_was_imported() -> None:
    @ensure(lambda result: result > 0)
    def nothing() -> int:
        return 0

    with pytest.raises(ViolationError):
        nothing()
