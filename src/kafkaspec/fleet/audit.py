"""An audit whose logs are spread over Spark: the same answers as from one process, since a log is audited alone.

The paths must be the same on every worker: local[*], or a file system that all of them have.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafkaspec.audit.check import Log
from kafkaspec.audit.engine import LogResult, Tally, audited, size_of

if TYPE_CHECKING:
    from pyspark import SparkContext

MOST_TASKS = 4096
Answer = tuple[int, "LogResult | str | None"]


def fan(spark: SparkContext, logs: list[Log], strict: bool, tally: Tally) -> Iterator[Answer]:
    """Audit logs on Spark's workers. The large ones first, so that no worker waits long for the last."""
    order = sorted(range(len(logs)), key=lambda n: -size_of(logs[n]))
    tasks = [pickle.dumps((n, logs[n], strict)) for n in order]
    if not tasks:
        return
    slices = min(len(tasks), max(4 * spark.defaultParallelism, 1), MOST_TASKS)
    dealt = [task for first in range(slices) for task in tasks[first::slices]]
    sizes = [len(tasks[first::slices]) for first in range(slices)]
    numbered = [(n, task) for n, task in zip(_slots(sizes), dealt, strict=True)]
    pairs = spark.parallelize(numbered, slices).partitionBy(slices, _same)
    for answer in pairs.values().map(_audited).toLocalIterator(prefetchPartitions=True):
        n, found = pickle.loads(answer)
        if isinstance(found, LogResult):
            tally(found.summary.size, found.summary.records)
        yield n, found


def _slots(sizes: list[int]) -> Iterator[int]:
    for n, size in enumerate(sizes):
        yield from [n] * size


def _same(n: int) -> int:
    return n


def _audited(task: bytes) -> bytes:
    n, log, strict = pickle.loads(task)
    return pickle.dumps((n, audited(log, strict)))


def on(spark: SparkContext) -> functools.partial[Iterator[Answer]]:
    """What `audit(fan=...)` takes."""
    return functools.partial(fan, spark)
