"""A real broker is killed again and again under traffic; its directory is held to what the clients know."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.broker import jars
from tests.broker.run import Run

SEEDS, KILLS = (1, 2), 3


@pytest.mark.deep
@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_killed_broker_keeps_is_what_its_clients_know(seed: int, tmp_path: Path) -> None:
    if jars() is None:
        pytest.skip("needs java, and the jars of Kafka 4.3.0 (bench/README.md)")
    outcome = Run(seed, tmp_path / "node-1")(KILLS)
    assert outcome.wrong == [], str(outcome)
    assert outcome.kills >= KILLS
    assert outcome.records > 50
