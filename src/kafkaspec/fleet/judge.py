"""A judged campaign on Spark: its blocks are tasks, each with a target process of its own, and the verdict is the one
that a single process comes to.

A block is a function of the campaign and its number, and blocks come in order. What comes after the block in which one
process would have ended is thrown away. (Of a target that dies, it is chance which of its last answers still come;
where it dies is located, and the same.) The target's command must run on every worker.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from kafkaspec.judge.campaign import Block, Blocks, Fan, Hear, Judged
from kafkaspec.judge.result import Job

if TYPE_CHECKING:
    from pyspark import SparkContext

WAVE_S: Final = 20.0
"""The blocks of about this many seconds are one job; a verdict that ends the campaign is seen after each."""


def on(spark: SparkContext) -> Fan:
    """What `judge(fan=...)` takes. Time is looked at between waves of blocks."""
    return partial(_fan, spark)


def _fan(spark: SparkContext, work: Blocks, todo: Iterator[Block], hear: Hear) -> Generator[Judged]:
    began, tasks = time.monotonic(), spark.defaultParallelism
    size = tasks
    while work.time_s is None or time.monotonic() - began < work.time_s:
        wave, started = list(islice(todo, size)), time.monotonic()
        if not wave:
            return
        spread = spark.parallelize(wave, min(len(wave), tasks))  # neighbours come to one worker
        for judged in map(pickle.loads, spread.mapPartitions(_Wave(work.job, work.keeping)).collect()):
            hear(judged)
            yield judged
        size = max(tasks, int(len(wave) * WAVE_S / max(time.monotonic() - started, 1.0)) // tasks * tasks)


@dataclass(frozen=True)
class _Wave:
    """Blocks of one worker, which makes pickled answers: Spark need not know what they are."""

    job: Job
    keeping: bool

    def __call__(self, wave: Iterable[Block]) -> Iterator[bytes]:
        with Blocks(self.job, keeping=self.keeping) as work:
            for block in wave:
                yield pickle.dumps(work(block, lambda judged: None))
