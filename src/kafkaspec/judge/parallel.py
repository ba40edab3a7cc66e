"""A campaign whose blocks are spread over processes, each with a target of its own: the same verdict as from one, since
a block is a function of the campaign and its number."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from functools import partial
from typing import Final

from kafkaspec.errors import UserError
from kafkaspec.judge.campaign import Block, Blocks, Fan, Hear, Judged, here
from kafkaspec.judge.judging import tours_of
from kafkaspec.workers import START, Say, each

TELL_S: Final = 0.5
"""A process says what its block came to until now when so long has passed since it did."""


def over(jobs: int) -> Fan:
    """What `judge(fan=...)` takes: at most that number of processes; this one alone, if it is one."""
    return here if jobs == 1 else partial(_fan, jobs)


def _fan(jobs: int, work: Blocks, todo: Iterator[Block], hear: Hear) -> Generator[Judged]:
    if START == "fork":
        tours_of(work.job)  # every copy has them
    early: dict[int, Judged] = {}
    next_one = 0
    for judged in each(_Apart(work), todo, jobs, _ended, hear=hear, start=START):
        hear(judged)
        early[judged[0]] = judged
        while next_one in early:
            yield early.pop(next_one)
            next_one += 1


class _Apart(Blocks):
    """The same, saying less often how far it is: what is said is copied."""

    def __init__(self, work: Blocks) -> None:
        super().__init__(work.job, work.time_s, work.keeping, work.process)

    def __call__(self, block: Block, say: Say) -> Judged:
        told = time.monotonic()

        def seldom(judged: Judged) -> None:
            nonlocal told
            if time.monotonic() >= told + TELL_S:
                say(judged)
                told = time.monotonic()

        return super().__call__(block, seldom)


def _ended(block: Block, how: str) -> Judged:
    raise UserError(f"judged no further: a process of the judge {how}")
