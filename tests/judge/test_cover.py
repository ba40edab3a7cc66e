"""Watching a spec at its conditions changes nothing and misses nothing."""

from __future__ import annotations

import ast
import random
from types import ModuleType
from typing import Any

import pytest

from kafkaspec.contract.machine import Step
from kafkaspec.contract.subsystem import components, find
from kafkaspec.judge.cover import SIDES, Cover, _WatcherInserter, sides_of, watched
from kafkaspec.judge.generate import Draws
from tests.judge import toy
from tests.judge.toy import machine

TEXT = """
def f(a, b, q):
    if a < b and not q:
        return 'below'
    while a > b:
        a -= 1
    if 0 <= a <= 3 or a in q:
        return [x for x in q if x != a]
    return 'other' if a == b else [y for y in q if y]
"""


def taken(state: Any, name: str, **arguments: Any) -> set[str]:
    """What a call takes, as text."""
    with watched(machine) as cover:
        cover.begin()
        machine.operations[name].direct(state, arguments)
        return {cover.side(n).partition(": ")[2] for n in cover.taken}


def test_each_side_of_a_boundary_is_another() -> None:
    state = toy.Lease(epoch=3)
    assert taken(state, "write", epoch=2, value=1) == {"epoch < state.epoch below"}
    at = {"epoch < state.epoch at", "len(values) > 1 at"}
    assert taken(state, "write", epoch=3, value=1) == at
    more = taken(toy.Lease(epoch=3, written=(4,)), "write", epoch=3, value=-1)
    assert more == {"epoch < state.epoch at", "len(values) > 1 above", "v >= 0 above", "v >= 0 below"}


def test_what_is_kept_is_kept_with_the_sides_that_were_taken_for_it() -> None:
    """Others may be kept as they are: a long file is not read for each proposal."""
    keeping: dict[str, set[str]] = {}
    for name in ("batch", "offset_index"):
        with watched(find(name).spec.machine) as cover:
            keeping[name] = {f.__name__ for f in cover.keeping}
    assert keeping["offset_index"] == set()
    assert {"known", "reading"} <= keeping["batch"]
    machine = find("batch").spec.machine
    data = bytes.fromhex(machine.candidates["load:data"](machine.initial())[0])
    sides = []
    with watched(machine) as cover:
        (known,) = (f for f in cover.keeping if f.__name__ == "known")
        for _ in range(2):
            cover.begin()
            known(data)
            sides.append({*cover.taken})
        cover.begin()
        with pytest.raises(ValueError):
            known(data[:-1])
        assert {*cover.taken} not in (set(), sides[0])
    assert sides[0] == sides[1] != set()
    cover.begin()
    known(data)
    assert not cover.taken, "it is watched no more"


def test_a_site_stands_for_the_clause_of_its_refusal() -> None:
    found = {site.text: site.clauses for _, site, _ in sides_of(machine, [*machine.operations.values()])}
    assert found["epoch < state.epoch"] == ("TOY-2",)
    assert found["state.live"] == found["state.holder != client"] == ("TOY-1",)
    assert "v >= 0" in found
    assert "self.now < self.until" in found


def test_sides_are_those_of_the_operations_that_are_offered() -> None:
    def functions(*names: str) -> set[str]:
        return {site.function for _, site, _ in sides_of(machine, [machine.operations[n] for n in names])}

    assert functions("advance") == set()
    assert functions("write") == {"write", "kept"}
    assert functions("acquire") == {"acquire", "Lease.live"}


def watching(text: str) -> tuple[Any, Cover]:
    module = ModuleType("snippet")
    cover, tree = Cover(), ast.parse(text)
    _WatcherInserter(module, {"f"}, cover.sites).visit(tree)
    space: dict[str, Any] = dict(cover.watchers())
    exec(compile(ast.fix_missing_locations(tree), "snippet", "exec"), space)
    return space["f"], cover


def test_every_kind_of_condition_is_watched_and_none_decides_otherwise() -> None:
    f, cover = watching(TEXT)
    plain: dict[str, Any] = {}
    exec(TEXT, plain)
    rng = random.Random(0)
    sides = set()
    for _ in range(400):
        arguments = rng.randrange(-2, 7), rng.randrange(-2, 7), [rng.randrange(-2, 4) for _ in range(rng.randrange(3))]
        cover.begin()
        assert f(*arguments) == plain["f"](*arguments)
        sides |= cover.taken
    assert [s.text for s in cover.sites] == [
        "a < b",
        "q",
        "a > b",
        "0 <= a",
        "a <= 3",
        "a in q",
        "x != a",
        "a == b",
        "y",
    ]
    three = {n for n, s in enumerate(cover.sites) if s.kind == "order"}
    assert sides == {n * SIDES + i for n in range(len(cover.sites)) for i in range(3 if n in three else 2)}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", list(components()))
def test_a_watched_spec_is_the_spec(name: str) -> None:
    spec = find(name).spec.machine
    draws = Draws(spec, [op for op in spec.operations.values() if op.generated], None, 30)
    start = draws.start(random.Random(name))

    def walked() -> list[Any]:
        state, out = spec.initial(**start.init), []
        plan = Draws(spec, draws.operations, None, 30).start(random.Random(name)).plan
        while (found := plan(state)) is not None:
            state = found.step.state
            out.append((found.call.record(), found.step.result, spec.observe(state)))
        return out

    before = walked()
    with watched(spec) as cover:
        assert walked() == before
        assert cover.taken
    cover.begin()
    assert walked() == before
    assert not cover.taken, "it is watched no more"


def test_what_watches_is_gone_afterwards() -> None:
    code = toy.write.__wrapped__.__code__  # type: ignore[attr-defined]
    with watched(machine):
        assert toy.write.__wrapped__.__code__ is not code  # type: ignore[attr-defined]
        assert isinstance(machine.apply(toy.Lease(), "advance", {"ms": 1}), Step)
    assert toy.write.__wrapped__.__code__ is code  # type: ignore[attr-defined]
    assert "_site_lt" not in vars(toy)
