"""The explicit reading of a model: every reachable state at given sizes, or long random walks through them."""

from kafkaspec.explore.engine import Exploration, explore
from kafkaspec.explore.walk import RandomWalk, walk

__all__ = ["Exploration", "RandomWalk", "explore", "walk"]
