"""The symbolic reading against its oracle: at given sizes, every state after every action is what the text makes."""

from __future__ import annotations

import enum
import itertools
import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import z3

from kafkaspec.language import Model, ModelError, Sort, T, load
from kafkaspec.language.concrete import Concrete, OutsideType, State, Undefined
from kafkaspec.language.defined import defined
from kafkaspec.language.expr import bound, node, or_
from kafkaspec.language.types import BOOL
from kafkaspec.models.controller.timeline import Tiers
from kafkaspec.models.examples.replication_anchor import Replication
from kafkaspec.models.management.cleaner import Cleaner
from kafkaspec.prove.counterexample import plain, show
from kafkaspec.prove.reading import Reading, World
from kafkaspec.prove.symbols import Option, Sequence
from tests.gate import oracle
from tests.prove.forms import Forms
from tests.prove.rooms import Hotel

SIZES: list[tuple[type[Model], Mapping[str, int | bool]]] = [
    (Hotel, {"Guest": 2, "Room": 2, "L": 2, "POLITE": True}),
    (Replication, {"Replica": 2, "L": 2, "E": 2, "FENCED": False}),
    (Tiers, {"Key": 2, "Value": 1, "E": 2}),
    (Cleaner, {"Partition": 2, "Thread": 1, "User": 2, "N": 2, "D": 1}),
]


def test_what_binds_a_variable_within_its_own_scope_is_refused() -> None:
    v = bound(BOOL, "v")
    inner = node("exists", BOOL, v, v)
    with pytest.raises(ModelError, match="binds v within its own scope"):
        Reading(load(Hotel)).read(node("forall", BOOL, v, or_(v, inner)), {}, World({}))


def alike(a: Any, b: Any) -> bool:
    """Are two values of records, options and terms the same?"""
    if isinstance(a, tuple):
        return all(map(alike, a, b))
    if isinstance(a, Option):
        return alike(a.none, b.none) and (z3.is_true(a.none) or alike(a.value, b.value))
    return bool(z3.simplify(a).eq(z3.simplify(b)))


def symbolic(r: Reading, t: T, v: Any) -> Any:
    """A concrete value as the reading has it."""

    def table(known: list[Any], values: list[Any], beyond: Any) -> Any:
        return lambda i: next((x for k, x in zip(known, values, strict=True) if alike(k, i)), beyond)

    match t.kind:
        case "option":
            return Option(z3.BoolVal(v is None), r.first(t.item) if v is None else symbolic(r, t.item, v))
        case "map":
            keys = r.elements(t.domain) or []
            values = [symbolic(r, t.item, v[plain(r, NOTHING, t.domain, k)]) for k in keys]
            return table(keys, values, values[0])
        case "set":
            items = r.elements(t.item) or []
            inside = [z3.BoolVal(plain(r, NOTHING, t.item, x) in v) for x in items]
            return table(items, inside, z3.BoolVal(False))
        case "seq":
            places = [symbolic(r, t.item, x) for x in v]
            beyond = r.first(t.item)
            return Sequence(
                z3.IntVal(len(v)),
                lambda i: next((x for k, x in enumerate(places) if alike(z3.IntVal(k), i)), beyond),
            )
        case "rec":
            return tuple(symbolic(r, ft, getattr(v, n)) for n, ft in t.fields)
        case "bool":
            return z3.BoolVal(v)
        case "enum":
            assert isinstance(v, enum.Enum)
            return (r.elements(t) or [])[list(type(v)).index(v)]
        case "sort":
            assert isinstance(v, Sort)
            return z3.IntVal(int(v.name[1:]))
    return z3.IntVal(v)


STATES, STEPS = (500, 100) if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else (15, 51)
NOTHING = z3.Solver()
NOTHING.check()
NOTHING = NOTHING.model()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("cls", "sizes"), SIZES, ids=lambda x: x.__name__ if isinstance(x, type) else "")
def test_every_step_is_what_the_text_makes(cls: type[Model], sizes: Mapping[str, int | bool]) -> None:
    model, c = load(cls), Concrete(cls, sizes, ghosts=True)
    claims = {**model.invariants, **model.lemmas}
    level = c.initial_states()
    seen = dict.fromkeys(level)
    steps = 0
    while level and steps < STEPS:
        following = []
        for state in level[:5]:
            if steps >= STEPS:
                break
            r = Reading(model, sizes)
            with c._running():
                before = {n: c._thaw(t, v) for (n, t), v in zip(model.vars.items(), state, strict=True)}
            world = World({n: symbolic(r, t, before[n]) for n, t in model.vars.items()})
            for name, claim in claims.items():
                assert z3.is_true(z3.simplify(r.read(claim.expr, {}, world))) == c.holds(name, state)
            taken = c.successors(state)
            expected = sorted((t.action, str(t.arguments), str(c.show(t.state))) for t in taken)
            found = []
            for a in model.actions:
                names = [a.parameter(p) for p in a.params]
                with c._running():
                    choices = [c.values(p.t) for p in a.params]
                for values in itertools.product(*choices):
                    env = {p.aux: symbolic(r, p.t, v) for p, v in zip(a.params, values, strict=True)}
                    if not z3.is_true(z3.simplify(r.enabled(a, env, world))):
                        continue
                    after = r.taken(a, env, world)
                    shown = {n: show(t, plain(r, NOTHING, t, after[n])) for n, t in model.vars.items()}
                    found.append((a.name, str(dict(zip(names, values, strict=True))), str(shown)))
            assert sorted(found) == expected
            steps += len(found)
            for s in taken:
                if s.state not in seen:
                    seen[s.state] = None
                    following.append(s.state)
        level = following
    assert steps > 50


FORMS: list[Mapping[str, int | bool]] = [
    {"Node": 1, "N": 1, "K": 1, "L": 1},
    {"Node": 2, "N": 2, "K": 2, "L": 2},
    {"Node": 3, "N": 2, "K": 3, "L": 2},
]


def any_state(c: Concrete, chance: random.Random) -> tuple[State, Mapping[str, Any]]:
    """A state, reachable or not, by chance, and its values as the text has them."""
    state = None
    while state is None:
        state = oracle.arbitrary(c, chance)
    with c._running():
        return state, c._values(state)


def true(f: Any) -> bool:
    f = z3.simplify(f)
    assert z3.is_true(f) or z3.is_false(f), f
    return bool(z3.is_true(f))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sizes", FORMS, ids=str)
def test_each_form_says_what_the_text_says(sizes: Mapping[str, int | bool]) -> None:
    """Of random states: each claim's value and whether it has one; each action's guard, what it leaves, whether its
    text has a value, and whether what it leaves is of its type."""
    model, c, chance = load(Forms), Concrete(Forms, sizes), random.Random(5)
    met: Counter[tuple[str, object]] = Counter()
    for _ in range(STATES):
        (state, before), (after, following) = any_state(c, chance), any_state(c, chance)
        r = Reading(model, sizes)
        now, next_ = ({n: symbolic(r, t, values[n]) for n, t in model.vars.items()} for values in (before, following))
        for claim in [*model.invariants.values(), *model.steps.values()]:
            moved = claim.name in model.steps
            world = World(now, next_ if moved else None)
            found: object = Undefined
            if true(r.read(defined(claim.expr), {}, world)):
                found = true(r.read(claim.expr, {}, world))
            assert found == said(c.holds, claim.name, state, after if moved else None), claim.name
            met[claim.name, found] += 1
        world = World(now)
        for a in model.actions:
            with c._running():
                choices = c._choices(a, c._values(state))
            for arguments in chance.sample(choices, min(3, len(choices))):
                env = {p.aux: symbolic(r, p.t, arguments[a.parameter(p)]) for p in a.params}
                left = r.taken(a, env, world)
                if not all(map(true, r.needs(a, env, world))):
                    found = Undefined
                elif not true(r.enabled(a, env, world)):
                    found = None
                elif not all(true(f) for fs in r.fits(a, env, world).values() for f in fs):
                    found = OutsideType
                else:
                    found = {n: show(t, plain(r, NOTHING, t, left[n])) for n, t in model.vars.items()}
                expected = said(c.take, state, a.name, arguments)
                assert found == (c.show(expected) if isinstance(expected, State) else expected), (a.name, arguments)
                met[a.name, found if isinstance(found, type) else type(found)] += 1
    if sizes["N"] != 1:
        for name in [*model.invariants, *model.steps]:
            assert met[name, True], f"{name} is never true"
            assert met[name, False] + met[name, Undefined], f"{name} is always true"
        for a in model.actions:
            assert met[a.name, dict], f"{a.name} is never taken"
        for why in (Undefined, OutsideType):
            assert sum(met[a.name, why] > 0 for a in model.actions) >= 5


def said(what: Callable[..., Any], *args: Any) -> Any:
    """What the text says; the kind of error if it has no value, or leaves one of another type."""
    try:
        return what(*args)
    except (Undefined, OutsideType) as e:
        return type(e)
