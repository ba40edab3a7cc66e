"""Tasks, spread over Spark's workers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import uuid4

from kafkaspec.workers import few_collections

if TYPE_CHECKING:
    from pyspark import SparkContext

JOBS: Final = 4
"""How many jobs are under way at once, each with a task for each core: where one waits for its last task, the next
ones have tasks for the cores that are free."""
Task = TypeVar("Task")
Answer = TypeVar("Answer")


def spread(spark: SparkContext, do: Callable[[Task], Answer], tasks: Iterable[Task]) -> Generator[Answer]:
    """What `do` answers to each task, on Spark's workers; job by job, as they end. Tasks are taken as they are needed,
    and answers are pickled: Spark need not know what they are. Who stops asking ends what is under way.

    (`RDD.toLocalIterator` has two tasks at a time, on however many cores.)
    """
    left, cores, group = iter(tasks), spark.defaultParallelism, f"kafkaspec-{uuid4()}"

    def job(some: list[Task]) -> list[bytes]:
        spark.setJobGroup(group, "tasks of kafkaspec", interruptOnCancel=True)
        return spark.parallelize(some, len(some)).map(partial(_answer, do)).collect()

    with ThreadPoolExecutor(JOBS) as threads:
        waiting: set[Future[list[bytes]]] = set()
        try:
            while True:
                while len(waiting) < JOBS and (some := [*islice(left, cores)]):
                    waiting.add(threads.submit(job, some))
                if not waiting:
                    return
                ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for one in ended:
                    yield from map(pickle.loads, one.result())
        finally:
            while True:  # again, for a job that Spark had not heard of yet is not cancelled
                spark.cancelJobGroup(group)
                if not wait(waiting, timeout=0.1).not_done:
                    break


def _answer(do: Callable[[Task], Answer], task: Task) -> bytes:
    with few_collections():
        return pickle.dumps(do(task))
