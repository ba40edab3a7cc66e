"""Histories that Hypothesis draws, on a target: its own bias, its targeting of what is new, and its shrinking."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, seed, settings, target
from hypothesis import strategies as st
from hypothesis.errors import FlakyFailure

from kafkaspec.judge.generate import Draws, Guide, outcome_key
from kafkaspec.lockstep.walk import draw_init

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafkaspec.judge.campaign import Judging, Rejection

MAX_FOUND = 5
"""So many kinds of rejection are looked for in one block."""


class _Rejected(Exception):
    """The history under way is rejected, of a kind not known before."""


def judge_drawn(judging: Judging, number: int, examples: int) -> None:
    """Judge so many histories drawn by Hypothesis, seeded by the block; what it rejects comes out of its shrinking."""
    for round_ in range(MAX_FOUND):
        if examples <= 0:
            return
        before = judging.tally.histories
        smallest = _search(judging, f"{judging.job.seed} {number} {round_}", examples)
        if smallest is None:
            return
        judging.keep(smallest)
        examples -= judging.tally.histories - before


def _search(judging: Judging, seeded: str, examples: int) -> Rejection | None:
    found: list[Rejection] = []
    guide = Guide()

    @seed(random.Random(seeded).getrandbits(64))
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.target, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        report_multiple_bugs=False,
    )
    @given(st.data())
    def one(data: st.DataObject) -> None:
        def pick(candidates: Sequence[Any]) -> Any:
            return candidates[data.draw(st.integers(0, len(candidates) - 1))]

        def choose(state: Any) -> Any:
            if not data.draw(st.integers(0, judging.job.steps)):
                return None  # which is also how Hypothesis makes a history shorter
            return draws.propose(state, pick)

        draws = Draws(judging.machine, judging.operations, None, judging.job.steps)
        new = 0

        def plan(state: Any) -> Any:
            nonlocal new
            made = choose(state)
            if made is not None:
                key = outcome_key(made[0], made[1], state)
                new += guide.seen[key] == 0
                guide.seen[key] += 1
            return made

        rejection = judging.one(draw_init(judging.machine, pick), plan)
        target(float(new), label="new outcomes")
        if rejection is not None:
            found.append(rejection)
            raise _Rejected

    try:
        one()
    except (_Rejected, FlakyFailure):
        return found[-1] if found else None
    return None
