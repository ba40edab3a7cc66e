"""The explicit reading against the text run as it stands, in words of any width: transitions and claims."""

from __future__ import annotations

import pytest

from kafkaspec.explore.engine import explore
from kafkaspec.explore.layout import Layout
from kafkaspec.explore.program import Program
from kafkaspec.language import load
from kafkaspec.language.concrete import Concrete
from tests.export.everything import Everything
from tests.gate import engines, oracle

SIZES: dict[str, int | bool] = {"Node": 2, "L": 2, "E": 1, "STRICT": True}
MOST = 40


def test_a_model_of_everything_is_explored() -> None:
    states, generated = Concrete(Everything, SIZES).reachable()
    for usable in (63, 20, 9):
        program = Program(Layout(load(Everything), SIZES, usable=usable))
        e = explore(load(Everything), SIZES, program=program, liveness=False)
        assert (e.distinct, e.generated, e.depth) == (len(states), generated, max(states.values()))
        assert e.words > 1 or usable == 63
        assert (e.fingerprint_collision is not None) == (e.words > 4)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("lanes", [engines.LANES, 1])
@pytest.mark.parametrize("usable", [63, 20, 9])
def test_a_model_of_everything_is_read_state_by_state(usable: int, lanes: int) -> None:
    space = oracle.run(Everything, SIZES, most=MOST)
    found = engines.Found()
    engines.transitions(found, load(Everything), space, space.states[:MOST], lanes, usable)
    assert found.disagreements == []
    assert found.counts["transitions"] > MOST
    assert found.counts["claims in states"] > MOST
