"""Histories that Hypothesis draws, on a target: its own bias, and its targeting of what is new.

What is rejected is noted and made small like any other, after the block: a search that stopped at a rejection would
find other things where an earlier block had found it already.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, seed, settings, target
from hypothesis import strategies as st

from kafkaspec.judge.generate import Draws, Guide, outcome_key
from kafkaspec.lockstep.walk import draw_init

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafkaspec.judge.judging import Session

CALL_BYTES = 13
"""A call is drawn as this many bytes, two for each choice in it, which costs a tenth of drawing each choice by itself.
Bytes, not numbers: Hypothesis draws numbers from the constants of the modules that happen to be loaded, and a campaign
on a worker must find what it finds here. An odd size, which no such constant has."""


def judge_drawn(judging: Session, number: int, examples: int) -> None:
    """Judge a number of histories drawn by Hypothesis, seeded by the block."""
    guide, steps = Guide(), judging.job.steps
    draws = Draws(judging.asked_of, judging.operations, None, steps, judging.cover)
    failed: list[Exception] = []

    @seed(random.Random(f"{judging.job.seed} {number}").getrandbits(64))
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.target),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(st.binary(min_size=CALL_BYTES, max_size=CALL_BYTES), min_size=steps // 2, max_size=steps))
    def one(calls: list[bytes]) -> None:
        rest = iter(calls)
        left: Iterator[int] = iter(())

        def pick(candidates: Sequence[Any]) -> Any:
            return candidates[(next(left, 0) * 256 + next(left, 0)) % len(candidates)]

        new = 0

        def plan(state: Any) -> Any:
            nonlocal new, left
            call = next(rest, None)
            if call is None:
                return None
            left = iter(call)
            found = draws.propose(state, pick)
            if found is not None:
                key = outcome_key(found.call, found.step, state)
                new += guide.seen[key] == 0
                guide.seen[key] += 1
            return found

        if failed:
            return
        try:
            left = iter(next(rest, b""))
            judging.one(draw_init(judging.machine, pick), plan)
        except Exception as e:  # Hypothesis would try again what raises, on a target that has ended
            failed.append(e)
        target(float(new), label="new outcomes")

    one()
    if failed:
        raise failed[0]
