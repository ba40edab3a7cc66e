"""Seeds of a simulation, spread over Spark: the same outcomes as from one process, since a run depends on its seed
alone.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from kafkaspec.contract.subsystem import find
from kafkaspec.simulate.choices import Schedule
from kafkaspec.simulate.outcome import Outcome
from kafkaspec.simulate.runs import outcome

if TYPE_CHECKING:
    from pyspark import SparkContext

BATCH: Final = 16
"""stretches of seeds that a task gets, for each core, before the next ones are asked for"""


def on(
    spark: SparkContext, name: str, schedule: Schedule
) -> Callable[[Iterable[Sequence[int]]], Iterator[Sequence[Outcome]]]:
    """What `simulate(fan=...)` takes: the scenario of that subsystem, on Spark's workers."""

    def run(stretch: Sequence[int]) -> bytes:
        module = find(name).layer("impl", "simulation")
        assert module is not None
        return pickle.dumps([outcome(module.SCENARIO, seed, schedule) for seed in stretch])

    def fan(stretches: Iterable[Sequence[int]]) -> Iterator[Sequence[Outcome]]:
        left = iter(stretches)
        most = BATCH * spark.defaultParallelism
        while some := [*islice(left, most)]:
            for answer in spark.parallelize(some, len(some)).map(run).toLocalIterator(prefetchPartitions=True):
                found: Sequence[Outcome] = pickle.loads(answer)
                yield found

    return fan
