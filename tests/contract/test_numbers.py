"""Every whole number that a caller sends has a range, and what engines try lies within it."""

from __future__ import annotations

import doctest
import random
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pytest

from kafkaspec import spec
from kafkaspec.contract import numbers
from kafkaspec.contract.machine import Machine, Outside
from kafkaspec.contract.numbers import (
    Int16,
    Int64,
    LeaderEpoch,
    Offset,
    Within,
    beyond,
    in_range,
    unlimited,
    within,
)
from kafkaspec.contract.subsystem import components

WALKS, CALLS = 6, 40


@cache
def machines() -> dict[str, Machine[Any]]:
    """Those of all specs, what an audit asks included."""
    (home,) = spec.__path__
    out: dict[str, Machine[Any]] = {}
    for path in sorted(Path(home).resolve().glob("*/*.py")):
        module = import_module(f"kafkaspec.spec.{path.parent.name}.{path.stem}")
        out |= {
            f"{path.stem}:{name}": m
            for name, m in vars(module).items()
            if isinstance(m, Machine) and m.home == module.__name__
        }
    return out


def initial_annotations(machine: Machine[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(machine.initial, include_extras=True)
    return {p: h for p, h in hints.items() if p != "return"}


def test_no_whole_number_of_a_caller_is_without_a_range() -> None:
    found: list[str] = []
    for name, machine in machines().items():
        for op in machine.operations.values():
            for p in op.parameters.values():
                found += unlimited(op.annotations[p], f"{name} {op.name}: {p}")
        for p, hint in initial_annotations(machine).items():
            found += unlimited(hint, f"{name} init: {p}")
    assert found == []
    asked = {m.name for m in machines().values()}
    assert asked >= {*components()}
    ranged = sum(len(op.ranges) for m in machines().values() for op in m.operations.values())
    assert ranged >= 200


@pytest.mark.parametrize("name", components())
def test_what_is_tried_is_within_the_ranges(name: str) -> None:
    """All candidates, in the states of random walks, and the configurations that they begin with."""
    machine: Machine[Any] = components()[name].spec.machine
    found: set[str] = set()
    operations = [op for op in machine.operations.values() if op.generated]
    for p, hint in initial_annotations(machine).items():
        for value in machine.candidates.get(f"init:{p}", lambda _: [])(None):
            found |= {*beyond(hint, value, f"init: {p}")}
    tried = 0
    for seed in range(WALKS):
        rng = random.Random(seed)
        names = {p: machine.candidates[f"init:{p}"](None) for p in initial_annotations(machine)
                 if f"init:{p}" in machine.candidates}  # fmt: skip
        state = machine.initial(**{p: rng.choice(c) for p, c in names.items()})
        for _ in range(CALLS):
            op = rng.choice(operations)
            choices = machine.choices(op, state)
            for p, candidates in choices.items():
                tried += len(candidates)
                for value in rng.sample(candidates, min(len(candidates), 20)):
                    found |= {f"{op.name}: {w}" for w in beyond(op.annotations[p], value, p)}
            if not all(choices.values()):
                continue
            step = machine.apply(state, op.name, {p: rng.choice(c) for p, c in choices.items()}, contracts=False)
            if not isinstance(step, Outside):
                state = step.state
    assert tried > 0
    assert sorted(found) == []


# ---- the ranges themselves -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Inner:
    first_offset: Offset
    others: Mapping[str, Int16 | None]


class Pair(NamedTuple):
    epoch: LeaderEpoch
    bare: int


class Typed(TypedDict):
    n: int


def test_ranges_are_read_from_annotations() -> None:
    assert doctest.testmod(numbers).failed == 0
    assert within(Offset) == within(Offset | None) == Within(0, 2**62)
    assert within(int) is within(str | None) is within(Sequence[Offset]) is within(Annotated[int, "else"]) is None
    assert [str(Within(*r)) for r in ((0, 1), (-1, 2**53), (-(2**15), 2**15 - 1), (-(2**63), 2**63 - 1))] == [
        "0 to 1", "-1 to 2^53", "of 16 bits", "of 64 bits"
    ]  # fmt: skip
    assert 0 in Within(0, 1)
    assert 2 not in Within(0, 1)


@pytest.mark.parametrize(
    ("hint", "where"),
    [
        (int, ["p"]),
        (Offset | None, []),
        (int | str | None, ["p"]),
        (Annotated[int, "else"], ["p"]),
        (Sequence[Mapping[str, int]], ["p[][]"]),
        (tuple[Pair, ...], ["p[].bare"]),
        (Inner | None, []),
        (Typed, ["p.n"]),
        (Literal[1, 2], []),
        (dict[str, Any], []),
    ],
)
def test_a_number_without_a_range_is_found_wherever_it_stands(hint: Any, where: list[str]) -> None:
    assert [*unlimited(hint, "p")] == where
    assert (in_range(hint) is not None) == (hint in (Offset | None, tuple[Pair, ...], Inner | None))


@pytest.mark.parametrize(
    ("hint", "value", "where"),
    [
        (Offset, 2**62, []),
        (Offset, -1, ["p: -1 is not 0 to 2^62"]),
        (Offset, True, []),
        (Offset | None, None, []),
        (Offset | None, -1, ["p: -1 is not 0 to 2^62"]),
        (Sequence[Offset], [0, -1], ["p[1]: -1 is not 0 to 2^62"]),
        (frozenset[Offset], [0, -1], ["p[1]: -1 is not 0 to 2^62"]),
        (Mapping[str, Int64], {"a": 2**63}, ["p['a']: 2^63 is not of 64 bits"]),
        (tuple[Offset, LeaderEpoch], [0, 2**31], ["p[1]: 2^31 is not 0 to 2^31 - 1"]),
        (tuple[Pair, ...], [[0, 9], (-1, 9)], ["p[1].epoch: -1 is not 0 to 2^31 - 1"]),
        (Inner, {"firstOffset": -1, "others": {"a": None}}, ["p.first_offset: -1 is not 0 to 2^62"]),
        (Inner, Inner(0, {"a": 2**15}), ["p.others['a']: 2^15 is not of 16 bits"]),
        (Inner | tuple[Pair, ...] | str, [[-1, 0]], ["p[0].epoch: -1 is not 0 to 2^31 - 1"]),
        (Inner | tuple[Pair, ...] | str, {"firstOffset": -1}, ["p.first_offset: -1 is not 0 to 2^62"]),
        (Inner | tuple[Pair, ...] | str, "text", []),
        (bytes | None, "ff", []),
        (Any, -1, []),
    ],
)
def test_a_number_beyond_its_range_is_found_wherever_it_stands(hint: Any, value: Any, where: list[str]) -> None:
    assert [*beyond(hint, value, "p")] == where
    fits = in_range(hint)
    assert (fits is None or fits(value)) == (where == [])


# ---- numbers that are in range each by itself, and not together ------------------------------------------------------
BATCH = {"baseOffset": 0, "leaderEpoch": 0, "maxTimestamp": 0, "producerId": -1, "producerEpoch": -1,
         "baseSequence": -1, "lastOffsetDelta": 0, "baseTimestamp": 0, "records": []}  # fmt: skip
DATA = {"producer_id": 1, "origin": "REPLICATION", "producer_epoch": 0, "first_seq": 0, "first_offset": 0,
        "timestamp": 0, "transactional": False}  # fmt: skip
LOG = "00000000000000000000.log"


def _appended(*offsets: int, **more: Any) -> dict[str, Any]:
    return {"batches": [{"records": [[o, 0] for o in offsets], **more}]}


@pytest.mark.parametrize(
    ("name", "op", "arguments", "clause"),
    [
        ("batch", "encode", {"batch": {**BATCH, "attributes": 7}}, "BAT-8"),
        ("cleaner", "advance", {"ms": 2**60 - 1_000_000}, "CLN-34"),
        ("log_loader", "put", {"file": [LOG, {"batches": [[0, 1000, 0, True]], "torn": False}]}, "LDR-18"),
        ("log_loader", "put", {"file": ["leader-epoch-checkpoint", [[0, 0], [0, 5]]]}, "LDR-18"),
        ("log_loader", "put", {"file": ["leader-epoch-checkpoint", [[0, 5], [1, 5]]]}, "LDR-18"),
        ("producer_state", "produce", {**DATA, "last_seq": 1000, "last_offset": 1000}, "PSM-30"),
        ("producer_state", "writeSnapshot", {"entries": [[1, 0, -1, -1, 0, 0, 0, -1]] * 2}, "PSM-24"),
        ("producer_state", "writeSnapshot", {"entries": [[1, 0, 0, -1, 0, 0, 0, -1]]}, "PSM-24"),
        ("producer_state", "writeSnapshot", {"entries": [[1, 0, -1, -1, 0, 0, 0, -2]]}, "PSM-24"),
        ("producer_state", "advance", {"ms": 2**62 - 999_999}, "PSM-29"),
        ("segment", "append", _appended(0, 2**31), "SEG-2"),
        ("segment", "append", _appended(0, producerId=-1, kind="transactional"), "SEG-2"),
        ("segment", "advance", {"ms": 2**62 - 999_999}, "SEG-7"),
    ],
)
def test_together_they_are_outside_the_contract(name: str, op: str, arguments: Mapping[str, Any], clause: str) -> None:
    machine: Machine[Any] = components()[name].spec.machine
    broken = machine.apply(machine.initial(), op, arguments)
    assert isinstance(broken, Outside)
    assert broken.clause == clause


@pytest.mark.parametrize(
    ("name", "op", "arguments"),
    [
        ("batch", "encode", {"batch": {**BATCH, "attributes": 4}}),
        ("cleaner", "advance", {"ms": 2**60 - 1_000_001}),
        ("log_loader", "put", {"file": [LOG, {"batches": [[2**31 - 1001, 2**31 - 2, 0, True]], "torn": False}]}),
        ("log_loader", "put", {"file": [LOG, {"batches": [[2**31, 2**31 + 999, 0, True]], "torn": False}]}),
        ("log_loader", "put", {"file": ["leader-epoch-checkpoint", [[0, 0], [1, 5]]]}),
        ("producer_state", "produce", {**DATA, "last_seq": 999, "last_offset": 999}),
        ("producer_state", "writeSnapshot", {"entries": [[1, 0, -1, -1, 0, 0, 0, -1], [2, 0, 7, 0, 0, 0, 0, 0]]}),
        ("producer_state", "advance", {"ms": 2**62 - 1_000_000}),
        ("segment", "append", _appended(0, 2**31 - 1)),
        ("segment", "append", _appended(0, producerId=0, kind="transactional")),
        ("segment", "advance", {"ms": 2**62 - 1_000_000}),
    ],
)
def test_next_to_them_is_within(name: str, op: str, arguments: Mapping[str, Any]) -> None:
    machine: Machine[Any] = components()[name].spec.machine
    assert not isinstance(machine.apply(machine.initial(), op, arguments), Outside)
