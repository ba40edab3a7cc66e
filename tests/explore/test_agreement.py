"""The explicit reading against the text run as it stands: transitions and claims, state by state."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import pytest

from kafkaspec.explore.engine import Search, explore
from kafkaspec.explore.layout import Layout
from kafkaspec.explore.program import Program
from kafkaspec.language import Expr, LoadedModel, Model, Sort, load
from kafkaspec.language.concrete import Concrete, State

from ..export.everything import Everything
from .random_model import random_model

OPERATIONS = {
    "const", "size", "bound", "var", "nextvar", "idx", "at", "field", "len", "append", "take", "drop", "and", "or",
    "not", "ite", "eq", "lt", "le", "add", "sub", "none", "some", "get", "empty", "full", "with", "without",
    "union", "inter", "diff", "subset", "in", "card", "rec", "forall", "exists", "greatest", "least", "count",
    "setof", "mapof",
}  # fmt: skip
SEEDS = range(6)
SIZES: dict[str, int | bool] = {"P": 2, "N": 2, "F": True}
MOST = 40


def plain(x: Any) -> Any:
    return x.name if isinstance(x, Sort | enum.Enum) else sorted(map(plain, x)) if isinstance(x, set) else x


def some_states(c: Concrete) -> list[State]:
    """The first states of a breadth-first run of the text."""
    out = c.initial_states()
    seen = set(out)
    for s in out:
        for t in c.successors(s):
            if len(out) < MOST and t.state not in seen:
                seen.add(t.state)
                out.append(t.state)
    return out


def agree(cls: type[Model], sizes: dict[str, int | bool], lanes: int | None, usable: int = 63) -> int:
    """Compare every transition from, and every witness in, some states; how many transitions there were."""
    model, c = load(cls), Concrete(cls, sizes)
    program = Program(Layout(model, sizes, usable=usable), lanes=lanes)
    search = Search(program, 1, 64)
    lay, compared = program.layout, 0
    ghosts = set(model.ghosts)

    def shown(state: State) -> dict[str, Any]:
        return {n: v for n, v in c.show(state).items() if n not in ghosts}

    try:
        for state in some_states(c):
            words = tuple(lay.encode(shown(state)))
            assert lay.decode(words) == shown(state)
            theirs = [
                (t.action, {n: plain(v) for n, v in t.arguments.items()}, shown(t.state)) for t in c.successors(state)
            ]
            ours = []
            for instance, after, faults in search.successors(words):
                step = search.step(instance, lay, words, after)
                ours.append((step.action, dict(step.arguments), step.state))
                if not ghosts:
                    went = c.take(state, step.action, _arguments(c, model, step.action, instance.arguments))
                    assert went is not None
                    for i, claim in enumerate(program.step_claims, len(lay.vars) + 1):
                        assert (i in faults) == (not c.holds(claim.name, state, went)), claim.name
                assert all(i > len(lay.vars) for i in faults), "a value left its type"
                assert search.undefined(words) is None
            assert sorted(map(repr, ours)) == sorted(map(repr, theirs))
            compared += len(ours)
            search.put(words)
            for i, (kind, claim) in enumerate(program.state_claims):
                hit = search.f["shows"](search.owns[0].address, search.one.address, i)
                if claim.name.endswith(": defined"):
                    assert not hit, claim.name
                    continue
                assert bool(hit) == (c.holds(claim.name, state) == (kind == "witness")), claim.name
    finally:
        search.close()
    return compared


def _arguments(c: Concrete, model: LoadedModel, action: str, values: Any) -> dict[str, Any]:
    (a,) = [a for a in model.actions if a.name == action]
    out = {}
    for p in a.params:
        every = c.values(p.t)
        out[a.parameter(p)] = values[p.aux] if p.t.kind == "range" else every[values[p.aux]]
    return out


@pytest.mark.parametrize("seed", SEEDS)
def test_random_models(tmp_path: Path, seed: int) -> None:
    cls = random_model(tmp_path, seed)
    assert agree(cls, SIZES, None) == agree(cls, SIZES, 1) > 0


def test_random_models_use_every_operation(tmp_path: Path) -> None:
    met: set[str] = set()

    def walk(e: Expr, seen: set[int]) -> None:
        if e.id not in seen:
            seen.add(e.id)
            met.add(e.op)
            for a in e.args:
                walk(a, seen)

    for seed in SEEDS:
        m, seen = load(random_model(tmp_path, seed)), set[int]()
        for a in [m.initial, *m.actions]:
            for e in [*a.guard, *[y for u in a.updates for y in (*u.keys, u.cond, u.value)]]:
                walk(e, seen)
        for claim in [*m.witnesses.values(), *m.steps.values()]:
            walk(claim.expr, seen)
    assert met >= OPERATIONS


@pytest.mark.parametrize("usable", [63, 20, 9])
def test_a_model_of_everything_in_words_of_any_width(usable: int) -> None:
    sizes: dict[str, int | bool] = {"Node": 2, "L": 2, "E": 1, "STRICT": True}
    program = Program(Layout(load(Everything), sizes, usable=usable))
    states, generated = Concrete(Everything, sizes).reachable()
    e = explore(load(Everything), sizes, program=program, liveness=False)
    assert (e.distinct, e.generated, e.depth) == (len(states), generated, max(states.values()))
    assert e.words > 1 or usable == 63
    assert (e.fingerprint_collision is not None) == (e.words > 4)
    assert agree(Everything, sizes, None, usable) == agree(Everything, sizes, 1, usable)
