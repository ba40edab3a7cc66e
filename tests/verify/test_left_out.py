"""What `verify` leaves to the long checks: larger sizes of what it explores and compares itself."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaspec.contract.subsystem import subsystems
from kafkaspec.explore.checked import Expectation
from kafkaspec.lockstep.exhaustive import RefinementMapping, check_refinement

MODELS: list[tuple[str, Expectation]] = [
    (name, c) for name, s in subsystems().items() for c in getattr(s.layer("models"), "MODELS", ())
]
MAPPINGS: list[tuple[str, RefinementMapping[Any]]] = [
    (name, how) for name, s in subsystems().items() for how in s.refinements
]


def test_every_model_is_explored_and_compared_at_a_size_that_is_not_left_out() -> None:
    assert {(name, c.name) for name, c in MODELS} == {(name, c.name) for name, c in MODELS if not c.deep}
    compared = {(name, how.model.__name__) for name, how in MAPPINGS}
    assert compared == {(name, how.model.__name__) for name, how in MAPPINGS if not how.deep}


@pytest.mark.deep
@pytest.mark.parametrize("checked", [c for _, c in MODELS if c.deep], ids=lambda c: f"{c.name}-{c.sizes}")
def test_models(checked: Expectation) -> None:
    assert checked.run().why == ""


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "how"),
    [(name, how) for name, how in MAPPINGS if how.deep],
    ids=[f"{name}-{how.sizes}" for name, how in MAPPINGS if how.deep],
)
def test_mappings(name: str, how: RefinementMapping[Any]) -> None:
    assert str(check_refinement(subsystems()[name].spec.machine, how).problem or "") == ""
