"""Hypothesis's own speed: steps a second of a rule-based state machine whose rules do next to nothing. Prints JSON."""

from __future__ import annotations

import json
import sys
import time

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

steps = 0


class Counter(RuleBasedStateMachine):
    """Two rules with one argument each, and an invariant, as the smallest lockstep has."""

    def __init__(self) -> None:
        super().__init__()
        self.value = 0

    @rule(n=st.integers(0, 7))
    def add(self, n: int) -> None:
        global steps
        steps += 1
        self.value += n

    @rule(flag=st.booleans())
    def reset(self, flag: bool) -> None:
        global steps
        steps += 1
        self.value = 0 if flag else self.value

    @invariant()
    def natural(self) -> None:
        assert self.value >= 0


def main(examples: int) -> None:
    """Run that many examples of up to 50 steps."""
    chosen = settings(
        max_examples=examples,
        stateful_step_count=50,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    start = time.perf_counter()
    run_state_machine_as_test(Counter, settings=chosen)
    seconds = time.perf_counter() - start
    print(json.dumps({"steps": steps, "seconds": seconds, "steps_per_second": steps / seconds}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
