"""What came of one seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafkaspec.simulate.scenario import Violation


class Outcome(NamedTuple):
    """The same, wherever the seed is run."""

    seed: int
    steps: int
    ms: int
    violation: Violation | None
    counts: Mapping[str, int]
