"""Every contract of every spec says something: a postcondition fails of some result that is another call's or has a
part altered, a precondition of some arguments or states that are."""

from __future__ import annotations

import contextlib
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

import pytest
from icontract import ensure

from kafkaspec.contract.codec import is_named_tuple
from kafkaspec.contract.machine import Condition, Machine, Operation, Outside, Step
from kafkaspec.contract.subsystem import Subsystem, answered, find, subsystems
from kafkaspec.lockstep.walk import draw, draw_init

SEEDS, STEPS, TRIED = 80, 80, 30_000
MORE_SEEDS = {"raft": 480, "segment": 240}
"""Where walks come seldom to what a contract is about."""


class CallOfWalk(NamedTuple):
    """A call of a walk: arguments by their Python names with the state before, and what the function returned."""

    operation: Operation[Any]
    values: Mapping[str, Any]
    result: Any


def taken(machine: Machine[Any], seed: int) -> Iterator[CallOfWalk]:
    """A random walk of the spec alone; each operation is called about as often as the others, some calls twice."""
    rng = random.Random(seed)
    state = machine.initial(**draw_init(machine, rng.choice))
    operations = [*machine.operations.values()]
    last: tuple[Operation[Any], dict[str, Any]] | None = None
    for _ in range(STEPS):
        if last is None or rng.randrange(4):
            op = rng.choice(operations)
            given = draw(machine, op, state, rng.choice)
            named = {} if given is None else {op.parameters.get(k, k): v for k, v in given.items()}
            last = None if given is None else (op, {**op.defaults, **named})
        if last is None or isinstance(step := last[0].direct(state, last[1]), Outside):
            last = None
            continue
        op, arguments = last
        yield CallOfWalk(op, {**op.decoded(arguments), "state": state}, op.returned(step))
        state = step.state


def fails(condition: Condition, values: Mapping[str, Any], *, unevaluated: bool) -> bool:
    """Of values that do not belong together it may not be evaluated at all, which counts or does not."""
    try:
        return not condition.condition(**{n: values[n] for n in condition.arguments})
    except Exception:
        return unevaluated


def altered(value: Any, rng: random.Random) -> Any:
    """The value with one part of it, taken at random, changed or gone."""
    if rng.randrange(12) == 0:
        return None
    if is_dataclass(value) and not isinstance(value, type):
        name = rng.choice([f.name for f in fields(value) if f.init])
        return replace(value, **{name: altered(getattr(value, name), rng)})
    if is_named_tuple(type(value)):
        name = rng.choice(value._fields)
        return value._replace(**{name: altered(getattr(value, name), rng)})
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value - 1, value + 1, -1 - value, value + 2**40, value + 2**62, 2**63 - 1))
    if isinstance(value, str):
        return rng.choice((value + "0", "0" + value, value[:-1], value.upper()))
    if isinstance(value, bytes):
        return rng.choice((value + b"0", value[:-1]))
    if isinstance(value, Mapping):
        return _altered_map(value, rng)
    if isinstance(value, tuple | list):
        return _altered_row(value, rng)
    if isinstance(value, frozenset | set):
        left = sorted(value, key=repr)
        return type(value)(left[1:]) if left else type(value)([0])
    return 0 if value is None else None


def _altered_row(row: Any, rng: random.Random) -> Any:
    if not row:
        return type(row)([rng.choice((None, 0, -1))])
    n = rng.randrange(len(row))
    some = rng.choice(([*row][::-1], [*row[:n], *row[n + 1 :]], [*row, row[n]], None))
    return type(row)([*row[:n], altered(row[n], rng), *row[n + 1 :]] if some is None else some)


def _altered_map(value: Any, rng: random.Random) -> Any:
    items = dict(value)
    if not items:
        return type(value)({"x-0": 0})
    key = rng.choice(sorted(items, key=repr))
    changed = {k: v for k, v in items.items() if k != key}
    return type(value)(rng.choice((changed, {**changed, key: altered(items[key], rng)})))


def another(op: Operation[Any], a: CallOfWalk, calls: Sequence[CallOfWalk], rng: random.Random) -> Any:
    """Another call's result, the one that changes nothing, or its own with up to eight parts altered."""
    kind, out = rng.randrange(6), a.result
    if kind == 0:
        return rng.choice(calls).result
    if kind == 1 and op.takes_state:
        state = a.values["state"]
        return state if op.returns == "state" else out._replace(state=state) if isinstance(out, Step) else out
    for _ in range(rng.choice((1, 1, 2, 8))):
        with contextlib.suppress(Exception):  # a type may refuse what it is altered to
            out = altered(out, rng)
    return out


def others(a: CallOfWalk, calls: Sequence[CallOfWalk], rng: random.Random) -> Mapping[str, Any]:
    """The arguments and the state of a call, some of another call's or altered."""
    out = dict(a.values)
    for _ in range(rng.choice((1, 1, 2, 4))):
        name = rng.choice([*out])
        with contextlib.suppress(Exception):
            out[name] = altered(out[name], rng) if rng.randrange(3) else rng.choice(calls).values[name]
    return out


def hollow(machine: Machine[Any], seeds: Sequence[int]) -> list[str]:
    """The contracts that hold of everything that was tried."""
    of: dict[str, list[CallOfWalk]] = defaultdict(list)
    for seed in seeds:
        for step in taken(machine, seed):
            of[step.operation.name].append(step)
    rng = random.Random(0)
    out = []
    for name, op in machine.operations.items():
        after, before = [*op.postconditions], [*op.preconditions]
        for _ in range(TRIED if of[name] else 0):
            a = rng.choice(of[name])
            if after:
                result = another(op, a, of[name], rng)
                after = [c for c in after if not fails(c, {**a.values, "result": result}, unevaluated=False)]
            if before:
                values = others(a, of[name], rng)
                before = [c for c in before if not fails(c, values, unevaluated=True)]
            if not after and not before:
                break
        out += [f"{name}: {c.clause}" for c in after] + [f"{name}: {c.clause}, asked before" for c in before]
    return out


EXCEPT = {
    "checkpoints": {"offsetCheckpoint.read: CKP-1": "of what the spec's own functions make of a text"},
    "producer_state": {"appendDataBatch: PSM-4": "of one number of one batch among all that a state remembers"},
}


def test_only_of_protocols_there_are_no_operations() -> None:
    assert {
        n for n, s in subsystems().items() if not s.spec.machine.operations
    } == subsystems().keys() - answered().keys()


@pytest.mark.parametrize("subsystem", answered().values(), ids=lambda s: s.name)
def test_every_contract_can_fail(subsystem: Subsystem) -> None:
    seeds = range(MORE_SEEDS.get(subsystem.name, SEEDS))
    assert hollow(subsystem.spec.machine, seeds) == [*EXCEPT.get(subsystem.name, ())]


def test_a_postcondition_that_always_holds_is_seen() -> None:
    machine: Machine[int] = Machine("counter", lambda: 0, lambda state: state)

    @machine.operation("add", "LEC-1")
    @ensure(lambda state, result: result > state, "LEC-1 it grows")
    @ensure(lambda state, result: result == result and state == state, "LEC-2 it is what it is")
    def add(state: int) -> int:
        return state + 1

    assert hollow(machine, range(3)) == ["add: LEC-2"]


# ---- contracts that a weaker one must not replace
def _isr_less(result: Any) -> Any:
    return result._replace(state=replace(result.state, isr=result.state.isr[1:])) if result.state.isr else None


def _record_less(result: Any) -> Any:
    records = getattr(result.result, "records", ())
    return result._replace(result=replace(result.result, records=records[1:])) if records else None


@pytest.mark.parametrize(
    ("name", "operation", "clause", "wrong"),
    [
        ("high_watermark", "makeLeader", "HWM-24", _isr_less),
        ("features", "updateFeatures", "FEA-2", _record_less),
    ],
)
def test_what_is_missing_is_refused(name: str, operation: str, clause: str, wrong: Callable[[Any], Any]) -> None:
    """A weaker contract, `<=` in the place of `==`, would take it."""
    machine, tried = find(name).spec.machine, 0
    for seed in range(40):
        for a in taken(machine, seed):
            bad = wrong(a.result) if a.operation.name == operation else None
            if bad is None or a.values.get("validate_only"):
                continue
            if operation == "makeLeader" and a.values["partition_epoch"] < a.values["state"].partition_epoch:
                continue
            tried += 1
            values = {**a.values, "result": bad}
            broken = [c for c in a.operation.postconditions if c.clause == clause]
            assert any(fails(c, values, unevaluated=False) for c in broken), bad
    assert tried
