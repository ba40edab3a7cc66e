"""Seeds of a simulation, spread over Spark: the same outcomes as from one process, since a run depends on its seed
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from kafkaspec.contract.subsystem import find
from kafkaspec.fleet.spread import spread
from kafkaspec.simulate.choices import Schedule
from kafkaspec.simulate.outcome import Outcome
from kafkaspec.simulate.runs import outcome

if TYPE_CHECKING:
    from pyspark import SparkContext

STRETCHES: Final = 4
"""of seeds that are a task: about a second of work"""


def on(
    spark: SparkContext, name: str, schedule: Schedule
) -> Callable[[Iterable[Sequence[int]]], Iterator[Sequence[Outcome]]]:
    """What `simulate(fan=...)` takes: the scenario of that subsystem, on Spark's workers."""

    def fan(stretches: Iterable[Sequence[int]]) -> Iterator[Sequence[Outcome]]:
        left = iter(stretches)
        tasks = iter(lambda: [seed for stretch in islice(left, STRETCHES) for seed in stretch], [])
        return spread(spark, partial(_outcomes, name, schedule), tasks)

    return fan


def _outcomes(name: str, schedule: Schedule, seeds: Sequence[int]) -> Sequence[Outcome]:
    module = find(name).layer("impl", "simulation")
    assert module is not None
    return [outcome(module.SCENARIO, seed, schedule) for seed in seeds]
