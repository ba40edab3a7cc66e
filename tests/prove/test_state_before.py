"""What is assumed of the state before is read once for all actions, but for what an action's own reading makes up."""

from __future__ import annotations

from typing import Any

import pytest
import z3

from kafkaspec.language import LoadedModel, Model, load
from kafkaspec.models.controller.timeline import Tiers
from kafkaspec.models.examples.replication_anchor import Replication
from kafkaspec.models.management.cleaner import Cleaner
from kafkaspec.models.storage.producer_state import Log
from kafkaspec.prove import obligations
from kafkaspec.prove.engine import prove
from tests.language.texts import model
from tests.prove.rooms import Hotel


def made_up(formulas: Any) -> set[str]:
    """The constants and functions in formulas that a reading made up: their names have a number."""
    todo: list[Any] = list(formulas) if isinstance(formulas, list) else [formulas]
    seen: set[int] = set()
    out: set[str] = set()
    while todo:
        e = todo.pop()
        if isinstance(e, tuple):
            todo += [x for x in e if not isinstance(x, bool)]
        elif e.get_id() not in seen:
            seen.add(e.get_id())
            todo += [e.body()] if z3.is_quantifier(e) else e.children()
            if z3.is_app(e) and e.decl().kind() == z3.Z3_OP_UNINTERPRETED and "!" in e.decl().name():
                out.add(e.decl().name())
    return out


@pytest.mark.parametrize("cls", [Tiers, Replication, Cleaner, Log, Hotel])
def test_what_is_shared_speaks_of_the_variables_alone(cls: type[Model]) -> None:
    """And what is made up is shared with nobody: two of them have some."""
    m = load(cls)
    list(obligations.settings(m, {}))
    state = obligations._known(m, {})
    shared = [hit for hit in state.found.values() if not hit.apart]
    assert shared
    for hit in shared:
        assert not made_up(hit.formulas)
        assert not made_up(list(hit.axioms.values()))
    if cls in (Cleaner, Hotel):
        assert any(hit.apart or hit.looked_at for hit in state.found.values())


TWO = """
@action()
def raise_(s, p: P, n: Annotated[int, Range(1, N)]) -> None:
    require(s.of[p] < n)
    s.next.of[p] = n
@action()
def lower(s, p: P) -> None:
    s.next.of[p] = 0
@invariant()
def greatest_is_reached(s) -> bool:
    return all(any(s.of[q] == max(s.of[r] for r in P) for q in P) for p in P)
@invariant()
def few(s) -> bool:
    return len({p for p in P if s.of[p] > 0}) <= {limit}
"""


@pytest.mark.parametrize(("limit", "outcome"), [("len(P)", "proved"), ("1", "refuted")])
def test_claims_that_make_something_up_are_judged_alike_for_every_action(limit: str, outcome: str) -> None:
    m: LoadedModel = model(TWO.replace("{limit}", limit), "of: dict[P, Num]\n", "")
    assert prove(m).outcome == outcome
