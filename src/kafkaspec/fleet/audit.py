"""An audit whose logs are spread over Spark: the same answers as from one process, since a log is audited alone.

The paths must be the same on every worker: local[*], or a file system that all of them have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from kafkaspec.audit.check import Log
from kafkaspec.audit.engine import LogResult, Tally, audited, size_of
from kafkaspec.fleet.spread import spread

if TYPE_CHECKING:
    from pyspark import SparkContext

TASKS: Final = 4
"""for each core"""
Answer = tuple[int, "LogResult | str | None"]


def fan(spark: SparkContext, logs: list[Log], strict: bool, tally: Tally) -> Iterator[Answer]:
    """Audit logs on Spark's workers. The large ones first, so that no worker waits long for the last."""
    order = sorted(range(len(logs)), key=lambda n: -size_of(logs[n]))
    count = min(len(logs), TASKS * spark.defaultParallelism)
    tasks = [[(n, logs[n]) for n in order[first::count]] for first in range(count)]
    for answers in spread(spark, partial(_audited, strict), tasks):
        for n, found in answers:
            if isinstance(found, LogResult):
                tally(found.summary.size, found.summary.records)
            yield n, found


def _audited(strict: bool, task: Sequence[tuple[int, Log]]) -> list[Answer]:
    return [(n, audited(log, strict)) for n, log in task]


def on(spark: SparkContext) -> partial[Iterator[Answer]]:
    """What `audit(fan=...)` takes."""
    return partial(fan, spark)
