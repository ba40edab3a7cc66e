"""A judged campaign on Spark: its blocks are tasks, each with a target process of its own, and the verdict is the one
that a single process comes to.

A block is a function of the campaign and its number, and blocks are merged in order. What comes after the block in
which one process would have ended is thrown away. (Of a target that dies, it is chance which of its last answers still
come; where it dies is located, and the same.) The target's command must run on every worker.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from kafkaspec.contract.subsystem import find
from kafkaspec.judge.campaign import Progress, blocks, made_small, summed, trouble_made_small
from kafkaspec.judge.judging import BLOCK, Session
from kafkaspec.judge.result import Job, Rejection, SubsystemVerdict, Tally
from kafkaspec.judge.target import Hello, Target, TargetTrouble

if TYPE_CHECKING:
    from pyspark import SparkContext

WAVE_S = 20.0
"""The blocks of about this many seconds are one job; a verdict that ends the campaign is seen after each."""

Block = tuple[int, int]
"""Its number, and how many histories it has."""


def judge(
    spark: SparkContext,
    job: Job,
    *,
    examples: int | None,
    time_s: float | None = None,
    progress: Progress | None = None,
) -> SubsystemVerdict:
    """Judge one subsystem: see `judge.campaign.judge`. Time is looked at between waves of blocks."""
    subsystem = find(job.subsystem)
    began = time.monotonic()
    tally = Tally()
    hello: Hello | None = None
    interrupted = False
    size = spark.defaultParallelism
    todo = blocks(examples)
    try:
        while not tally.ended(job) and (time_s is None or time.monotonic() - began < time_s):
            wave, started = list(islice(todo, size)), time.monotonic()
            if not wave:
                break
            if progress is not None:
                progress(wave[0][0] * BLOCK, examples, tally.found)
            for greeted, made in _spread(spark, _Blocks(job), wave):
                hello = hello or greeted
                tally.add(made)
                large = tally.large
                tally.small(_spread(spark, _Small(job), large) if large else ())
                if tally.ended(job):
                    break
            tasks = spark.defaultParallelism
            size = max(tasks, int(len(wave) * WAVE_S / max(time.monotonic() - started, 1.0)) // tasks * tasks)
    except TargetTrouble as e:
        tally.trouble = tally.trouble or e
    except KeyboardInterrupt:
        interrupted = True
    tally.last = trouble_made_small(job, tally)
    made_up = summed(subsystem, job, hello, tally, time.monotonic() - began)
    return made_up.until_now(examples) if interrupted else replace(made_up, examples=examples)


def _spread(spark: SparkContext, task: Callable[[Iterator[Any]], Iterator[Any]], items: list[Any]) -> list[Any]:
    """What a task makes of items, in their order; neighbours come to one worker. A TargetTrouble is raised here."""
    slices = min(len(items), spark.defaultParallelism)
    data = spark.parallelize([pickle.dumps(i) for i in items], slices)
    out = [pickle.loads(made) for made in data.mapPartitions(_PickledTask(task)).collect()]
    for made in out:
        if isinstance(made, TargetTrouble):
            raise made
    return out


class _PickledTask:
    """A task on pickled items, which makes pickled answers: Spark need not know what they are."""

    def __init__(self, task: Callable[[Iterator[Any]], Iterator[Any]]) -> None:
        self.task = task

    def __call__(self, items: Iterable[bytes]) -> Iterator[bytes]:
        try:
            for made in self.task(pickle.loads(i) for i in items):
                yield pickle.dumps(made)
        except TargetTrouble as e:
            yield pickle.dumps(e)


class _Blocks:
    """Judge blocks on one target; another one is started after trouble."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __call__(self, items: Iterator[Block]) -> Iterator[tuple[Hello | None, Tally]]:
        todo = list(items)
        while todo:
            try:
                with Target(self.job.command, self.job.timeout_s) as target:
                    judging = Session(self.job, target)
                    while todo:
                        made = judging.block(*todo[0])
                        yield target.hello, made
                        todo.pop(0)
                        if made.trouble is not None:
                            break
            except TargetTrouble as e:
                yield None, Tally(trouble=e)
                todo.pop(0)


class _Small:
    """Make rejections small."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __call__(self, items: Iterator[Rejection]) -> Iterator[Rejection]:
        return made_small(self.job, items)
