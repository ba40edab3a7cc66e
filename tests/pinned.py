"""The pinned models, at sizes small enough for slower engines."""

from __future__ import annotations

from kafkaspec.explore.checked import Expectation
from kafkaspec.explore.engine import Exploration, explore


def small(entry: Expectation, most: int) -> Exploration:
    """The model explored at the entry's sizes, or at the nearest smaller ones at which it has at most `most` states:
    the largest number lowered, again and again."""
    sizes = dict(entry.sizes)
    while True:
        found = explore(
            entry.loaded, sizes, ghosts=entry.ghosts, deadlock=entry.deadlock, liveness=False, max_states=most
        )
        if found.outcome != "limit":
            return found
        largest = max((n for n, v in sizes.items() if not isinstance(v, bool)), key=lambda n: sizes[n])
        assert sizes[largest] > 1, f"{entry.name} has many states even at {sizes}"
        sizes[largest] -= 1
