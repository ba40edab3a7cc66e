"""The symbolic reading against its oracle: at given sizes, every state after every action is what the text makes."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Mapping
from typing import Any

import pytest
import z3

from kafkaspec.language import Model, Sort, T, load
from kafkaspec.language.concrete import Concrete
from kafkaspec.models.controller.timeline import Tiers
from kafkaspec.models.examples.replication import Replication
from kafkaspec.models.management.cleaner import Cleaner
from kafkaspec.prove.counterexample import plain, show
from kafkaspec.prove.reading import Reading, World
from kafkaspec.prove.symbols import Option, Sequence
from tests.prove.rooms import Hotel

SIZES: list[tuple[type[Model], Mapping[str, int | bool]]] = [
    (Hotel, {"Guest": 2, "Room": 2, "L": 2, "POLITE": True}),
    (Replication, {"Replica": 2, "L": 2, "E": 2, "FENCED": False}),
    (Tiers, {"Key": 2, "Value": 1, "E": 2}),
    (Cleaner, {"Partition": 2, "Thread": 1, "User": 2, "N": 2, "D": 1}),
]


def symbolic(r: Reading, t: T, v: Any) -> Any:
    """A concrete value as the reading has it."""

    def table(known: list[Any], values: list[Any]) -> Any:
        return lambda i: next((x for k, x in zip(known, values, strict=True) if k.eq(i)), values[0])

    match t.kind:
        case "option":
            return Option(z3.BoolVal(v is None), r.first(t.item) if v is None else symbolic(r, t.item, v))
        case "map":
            keys = r.elements(t.domain) or []
            return table(keys, [symbolic(r, t.item, v[plain(r, NOTHING, t.domain, k)]) for k in keys])
        case "set":
            items = r.elements(t.item) or []
            return table(items, [z3.BoolVal(plain(r, NOTHING, t.item, x) in v) for x in items])
        case "seq":
            places = [symbolic(r, t.item, x) for x in v]
            beyond = r.first(t.item)
            return Sequence(
                z3.IntVal(len(v)), lambda i: places[i.as_long()] if 0 <= i.as_long() < len(places) else beyond
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


NOTHING = z3.Solver()
NOTHING.check()
NOTHING = NOTHING.model()


@pytest.mark.parametrize(("cls", "sizes"), SIZES, ids=lambda x: x.__name__ if isinstance(x, type) else "")
def test_every_step_is_what_the_text_makes(cls: type[Model], sizes: Mapping[str, int | bool]) -> None:
    model, c = load(cls), Concrete(cls, sizes, ghosts=True)
    claims = {**model.invariants, **model.lemmas}
    level = c.initial_states()
    seen = dict.fromkeys(level)
    steps = 0
    while level and steps < 100:
        following = []
        for state in level[:5]:
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
