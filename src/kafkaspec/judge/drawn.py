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

    from kafkaspec.judge.campaign import Judging

NUMBERS = 4
"""So many numbers are drawn for a call: the operation, and its arguments. They are drawn all at once, which costs a
tenth of drawing each by itself."""


def judge_drawn(judging: Judging, number: int, examples: int) -> None:
    """Judge so many histories drawn by Hypothesis, seeded by the block."""
    guide, steps = Guide(), judging.job.steps
    draws = Draws(judging.machine, judging.operations, None, steps)
    failed: list[Exception] = []

    @seed(random.Random(f"{judging.job.seed} {number}").getrandbits(64))
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.target),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(st.integers(0, 0xFFFF), min_size=NUMBERS * steps, max_size=NUMBERS * steps))
    def one(numbers: list[int]) -> None:
        rest: Iterator[int] = iter(numbers)

        def pick(candidates: Sequence[Any]) -> Any:
            return candidates[next(rest, 0) % len(candidates)]

        new = made = 0

        def plan(state: Any) -> Any:
            nonlocal new, made
            found = draws.propose(state, pick) if made < steps else None
            if found is not None:
                made += 1
                key = outcome_key(found[0], found[1], state)
                new += guide.seen[key] == 0
                guide.seen[key] += 1
            return found

        if failed:
            return
        try:
            judging.one(draw_init(judging.machine, pick), plan)
        except Exception as e:  # Hypothesis would try again what raises, on a target that has ended
            failed.append(e)
        target(float(new), label="new outcomes")

    one()
    if failed:
        raise failed[0]
