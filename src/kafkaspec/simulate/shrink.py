"""A run that fails, made small: choices are left out, as many as can be, and numbers lowered, as long as the same rule
is broken. Which attempts are made depends on the run alone, so that the small run is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kafkaspec.lockstep.shrink import left_out, lowered
from kafkaspec.simulate.choices import USUAL_MS, Choices
from kafkaspec.simulate.world import Run, run

MOST_ATTEMPTS: Final = 1_500
"""runs that are made to make one small"""
PATIENCE_MS: Final = 300
"""how much later than in the smallest run so far the rule may be broken"""
Attempt = Callable[[int], None]
"""called with the number of each attempt"""


class _Smallest:
    """The smallest run so far that breaks the rule."""

    def __init__(self, failing: Run, progress: Attempt | None) -> None:
        assert failing.violation is not None
        self.best, self.rule = failing, failing.violation.rule
        self.at_rest = failing.ms >= failing.scenario.active_ms + failing.scenario.settle_ms
        self.attempts, self.progress = 0, progress

    def fails(self, kept: dict[str, Any]) -> bool:
        """Make the run of these choices. Whether it breaks the rule: then it is the smallest."""
        if self.attempts >= MOST_ATTEMPTS:
            return False
        self.attempts += 1
        if self.progress is not None:
            self.progress(self.attempts)
        until = None if self.at_rest else self.best.ms + PATIENCE_MS
        found = run(self.best.scenario, Choices(self.best.scenario, kept), until)
        if found.violation is None or found.violation.rule != self.rule:
            return False
        self.best = found
        return True

    def without(self, wanted: Callable[[str], bool]) -> None:
        """Leave out choices of which this is true, whole stretches first."""
        names = [n for n in self.best.choices if wanted(n)]

        def leave_out(first: int, end: int) -> bool:
            gone = {*names[first:end]}
            if not self.fails({n: v for n, v in self.best.choices.items() if n not in gone}):
                return False
            del names[first:end]
            return True

        if names and not leave_out(0, len(names)):
            left_out(lambda: len(names), leave_out)

    def with_value(self, name: str, value: Any) -> bool:
        return self.fails({**self.best.choices, name: value})

    def lower(self, name: str, index: int, least: int) -> None:
        """Lower one number of a choice."""
        value = self.best.choices[name]

        def fails(n: int) -> bool:
            return self.with_value(name, [*value[:index], least + n, *value[index + 1 :]])

        if value[index] > least:
            lowered(value[index] - least, fails)


def _is_step(name: str) -> bool:
    return name.startswith("step ")


def _is_message(name: str) -> bool:
    return "#" in name


def shrunk(failing: Run, progress: Attempt | None = None) -> Run:
    """A run of fewer and smaller choices that breaks the same rule. Raises AssertionError for one that breaks none."""
    s = _Smallest(failing, progress)
    if not s.fails(failing.choices):
        return failing  # a node is not what its events make it: there is nothing to go by
    before: Run | None = None
    while s.best is not before:
        before = s.best
        s.without(_is_message)
        s.without(lambda name: name.startswith("clock "))
        s.without(_is_step)
        s.without(_is_message)
        if s.at_rest:
            lowered(s.best.choices.get("active_ms", failing.scenario.active_ms), lambda n: s.with_value("active_ms", n))
        for name in [*s.best.choices]:
            _simplify(s, name)
        for name in sorted(filter(_is_step, s.best.choices), key=lambda n: s.best.choices[n][0]):
            s.lower(name, 0, 1)
    return s.best


def _simplify(s: _Smallest, name: str) -> None:
    """One copy of a message instead of two, shorter times, a crash that is simpler to tell."""
    value = s.best.choices[name]
    if _is_message(name):
        if len(value) == 2 and not s.with_value(name, value[:1]):
            s.with_value(name, value[1:])
        for index in range(len(s.best.choices[name])):
            s.lower(name, index, USUAL_MS)
    elif _is_step(name) and value[1] in ("partition", "cut", "pause", "crash"):
        if value[1] == "crash":
            simpler = [[*value[:4], writes, luck] for writes in (0, value[4]) for luck in (0, 1, value[5])]
            next((v for v in simpler[: simpler.index(value)] if s.with_value(name, v)), None)
        s.lower(name, 4 if value[1] == "cut" else 3, 1)
