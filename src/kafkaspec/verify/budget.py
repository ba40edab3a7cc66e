"""How much work the evidence for one subsystem may cost, counted: so that what all cost grows with their number alone.

Seconds depend on the machine; what is counted here does not. A subsystem that needs more than the limit that holds for
all has a line of its own, which says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

TRANSITIONS = "transitions"
"""of models, generated"""
OBLIGATIONS = "obligations"
"""of proofs"""
CALLS = "calls"
"""of impl against spec, of spec against model, and of our implementation behind a pipe"""
EVENTS = "events"
"""of recordings, those with one value changed included"""
STEPS = "steps"
"""of simulations"""

LIMITS: Mapping[str, int] = {TRANSITIONS: 2_000_000, OBLIGATIONS: 800, CALLS: 60_000, EVENTS: 60_000, STEPS: 60_000}
"""For one subsystem."""
MORE: Mapping[str, tuple[Mapping[str, int], str]] = {
    "cleaner": (
        {TRANSITIONS: 12_500_000, OBLIGATIONS: 1_200},
        "two threads, pauses that nest, and a checkpoint that may fail",
    ),
    "producer_state": ({TRANSITIONS: 7_000_000}, "sequences wrap, and a window of five batches is remembered"),
    "quorum": ({STEPS: 100_000}, "four simulated quorums, two of them of five controllers"),
    "raft": (
        {TRANSITIONS: 7_500_000, OBLIGATIONS: 1_300},
        "three models, of logs, of roles, and of voters that change, and four proofs",
    ),
    "replication": (
        {TRANSITIONS: 5_500_000, STEPS: 80_000},
        "the largest published configuration, three replicas whose logs diverge, and three clusters",
    ),
}
"""The subsystems that may cost more, and why."""


def limits(subsystem: str) -> dict[str, int]:
    """What the evidence for that subsystem may cost."""
    more, _ = MORE.get(subsystem, ({}, ""))
    return {**LIMITS, **more}


def told(subsystem: str, work: Mapping[str, int]) -> str:
    """Work in words, with the part of the budget that is used of the kind of which most is: "1,019,436 transitions,
    14,500 calls: 51 % of the budget"."""
    allowed = limits(subsystem)
    used = max((n / allowed[kind] for kind, n in work.items()), default=0)
    counted = ", ".join(f"{work[kind]:,} {kind}" for kind in LIMITS if work.get(kind))
    return f"{counted}: {100 * used:.0f} % of the budget"


def over(subsystem: str, work: Counter[str]) -> list[str]:
    """A line for each kind of work of which there is more than the subsystem's evidence may cost."""
    allowed = limits(subsystem)
    return [f"{n:,} {kind}, of {allowed[kind]:,} at most" for kind, n in work.items() if n > allowed[kind]]
