"""A world of nodes in one thread: a queue of events in virtual time, a network, disks and clocks, all of them decided
by choices. It runs until a monitor objects, a node fails, or all has come to rest.

Time is in ms and costs nothing. Events of one ms are handled in the order in which they came about, so that a run is
the same wherever it is made: nothing here goes by the order of a set, by an object's address or by the machine's time.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import Any, Final

from kafkaspec.errors import ENDINGS
from kafkaspec.simulate.choices import USUAL, Choices, Plan
from kafkaspec.simulate.scenario import (
    Ask,
    Boot,
    Clock,
    Crash,
    Disk,
    Effect,
    Event,
    Fault,
    Message,
    Monitor,
    Node,
    Scenario,
    Send,
    SetTimer,
    Step,
    Timer,
    Violation,
)

MILLION: Final = 1_000_000
NODE_FAILED: Final = "a node fails"
NO_END: Final = "no end"
"""the rules of the world itself"""
MOST_STEPS: Final = 1_000_000
"""of a run; one that makes more does not end"""


@dataclass(frozen=True)
class Run:
    """What came of one run."""

    scenario: Scenario
    steps: Sequence[Step]
    ms: int
    """virtual time at its end"""
    violation: Violation | None
    choices: dict[str, Any]
    """those that were not as usual"""
    counts: Mapping[str, int]
    """what has happened, as the monitors count it"""


class Place:
    """A node's machine: what is there whether the node is up or not."""

    def __init__(self, name: str, disk: Disk | None, drift_ppm: int) -> None:
        self.name, self.disk, self.drift_ppm = name, disk, drift_ppm
        self.node: Node | None = None
        self.life = 0
        """how often it has started: what was meant for an earlier life is forgotten"""
        self.timers: dict[str, int] = {}
        """how often each timer was set in this life: the newest setting counts"""
        self.paused_until = 0
        self.luck = 0
        """what of its disk the crash that is under way leaves"""
        self.down_ms = 0


class World:
    """One run."""

    def __init__(self, scenario: Scenario, choices: Choices) -> None:
        self.scenario, self.choices = scenario, choices
        self.now = 0
        self.queue: list[tuple[int, int, Callable[..., None], Any]] = []
        self.sequence = 0
        self.places = {n: Place(n, scenario.disk(n), choices.drift_ppm(n)) for n in scenario.nodes}
        self.nodes: dict[str, Node] = {}
        self.monitors: Sequence[Monitor] = scenario.monitors()
        self.cuts: dict[tuple[str, str], int] = {}
        """links that lose all, and until when"""
        self.steps: list[Step] = []
        self.violation: Violation | None = None
        self.is_active = True

    # ---- the queue
    def at(self, ms: int, what: Callable[..., None], argument: Any) -> None:
        self.sequence += 1
        heappush(self.queue, (ms, self.sequence, what, argument))

    def run(self, until_ms: int | None = None) -> Run:
        """Run to the end; or until then, where nobody asks whether all has come to rest."""
        for name in self.scenario.nodes:
            self.at(0, self._start, (name, 0))
        self._plan()
        active = self.choices.active_ms
        self.at(active, self._calm, None)
        end = active + self.scenario.settle_ms if until_ms is None else until_ms
        queue = self.queue
        while queue and self.violation is None:
            ms, _, what, argument = heappop(queue)
            if ms > end:
                break
            self.now = ms
            what(argument)
            if len(self.steps) > MOST_STEPS:
                self.violation = Violation(NO_END, f"{MOST_STEPS:,} steps within {self.now:,} ms")
        if self.violation is None and until_ms is None:
            self.now = end
            for monitor in self.monitors:
                self.violation = self.violation or monitor.settled(self.nodes)
        counted: dict[str, int] = {}
        for monitor in self.monitors:
            counted |= monitor.counts()
        return Run(self.scenario, self.steps, self.now, self.violation, self.choices.kept, counted)

    def _observed(self, node: str, event: Event, effects: Sequence[Effect]) -> None:
        step = Step(len(self.steps) + 1, self.now, node, event, effects)
        self.steps.append(step)
        for monitor in self.monitors:
            found = monitor.observe(step, self.nodes)
            if found is not None:
                self.violation = found
                return

    # ---- nodes
    def _clock(self, place: Place) -> Clock:
        rate = MILLION + place.drift_ppm

        def read() -> int:
            return self.now * rate // MILLION

        return read

    def _start(self, argument: tuple[str, int]) -> None:
        """Unless it was started in between."""
        name, life = argument
        place = self.places[name]
        if place.node is not None or place.life != life:
            return
        place.life += 1
        place.timers = {}
        try:
            place.node = self.scenario.boot(name, place.disk, self._clock(place))
        except ENDINGS:
            raise
        except self.scenario.crashes:
            self._crashed(place)
            return
        except Exception as e:
            self._failed(name, Boot(place.life), e)
            return
        self.nodes[name] = place.node
        self._handle(place, Boot(place.life))

    def _handle(self, place: Place, event: Boot | Message | Timer | Ask) -> None:
        assert place.node is not None
        try:
            effects = place.node.handle(event)
        except ENDINGS:
            raise
        except self.scenario.crashes:
            self._observed(place.name, event, ())
            self._crashed(place)
            return
        except Exception as e:
            self._failed(place.name, event, e)
            return
        name, now = place.name, self.now
        if not isinstance(effects, Sequence):
            self._failed(name, event, TypeError(f"its effects are {effects!r}"))
            return
        for effect in effects:
            if type(effect) is Send:
                if effect.target not in self.places:
                    self._failed(name, event, LookupError(f"it sends to {effect.target!r}, and there is no such node"))
                    return
                self._send(name, effect.target, effect.body)
            elif type(effect) is not SetTimer:
                self._failed(name, event, TypeError(f"{effect!r} is no effect"))
                return
            else:
                after = effect.after_ms * MILLION // (MILLION + place.drift_ppm)
                timer = effect.name
                place.timers[timer] = setting = place.timers.get(timer, 0) + 1
                self.at(now + max(1, after), self._time, (place, place.life, timer, setting))
        self._observed(name, event, effects)

    def _failed(self, name: str, event: Event, error: Exception) -> None:
        self._observed(name, event, ())
        place = ""
        for where in traceback.extract_tb(error.__traceback__)[-1:]:
            file = where.filename.replace("\\", "/").rpartition("/")[2]
            place = f" ({file}:{where.lineno})"
        self.violation = Violation(NODE_FAILED, f"{name}: {type(error).__name__}: {error}{place}")

    def _time(self, argument: tuple[Place, int, str, int]) -> None:
        place, life, name, setting = argument
        if place.life != life or place.node is None or place.timers[name] != setting:
            return
        if place.paused_until > self.now:
            self.at(place.paused_until, self._time, argument)
            return
        self._handle(place, Timer(name))

    # ---- the network
    def _send(self, source: str, target: str, body: Any) -> None:
        delays = self.choices.delays(source, target) if self.is_active else USUAL
        if self.cuts and self.cuts.get((source, target), 0) > self.now:
            return
        message = Message(source, body)
        for delay in delays:
            self.at(self.now + delay, self._deliver, (self.places[target], message))

    def _deliver(self, argument: tuple[Place, Message]) -> None:
        place, message = argument
        if place.node is None:
            return
        if place.paused_until > self.now:
            self.at(place.paused_until, self._deliver, argument)
            return
        self._handle(place, message)

    # ---- the plan
    def _plan(self) -> None:
        step = self.choices.next_step()
        if step is not None:
            self.at(step[0], self._do, step[1])

    def _do(self, plan: Plan) -> None:
        if self.is_active:
            self._done(plan)
            self._plan()

    def _done(self, plan: Plan) -> None:
        match plan:
            case ["ask", name, what]:
                place = self.places[name]
                if place.node is not None and place.paused_until <= self.now:
                    self._handle(place, Ask(what))
            case ["partition", side, ms]:
                others = [n for n in self.places if n not in side]
                if side and others:
                    self._cut([*((a, b) for a in side for b in others), *((b, a) for a in side for b in others)], ms)
                    both = f"{', '.join(side)} | {', '.join(others)}"
                    self._observed("", Fault(f"the network falls apart for {ms} ms: {both}"), ())
            case ["cut", a, b, ms]:
                if a != b:
                    self._cut([(a, b)], ms)
                    self._observed("", Fault(f"nothing gets from {a} to {b} for {ms} ms"), ())
            case ["pause", name, ms]:
                place = self.places[name]
                if place.node is not None and place.paused_until <= self.now:
                    place.paused_until = self.now + ms
                    self._observed(name, Fault(f"stands still for {ms} ms"), ())
            case ["crash", name, ms, writes, luck]:
                place = self.places[name]
                if place.node is not None:
                    place.luck, place.down_ms = luck, ms
                    if writes and place.disk is not None:
                        place.disk.crash_at = place.disk.steps + writes
                    else:
                        self._crashed(place)
            case _:
                raise AssertionError(plan)

    def _cut(self, links: Sequence[tuple[str, str]], ms: int) -> None:
        for link in links:
            self.cuts[link] = max(self.cuts.get(link, 0), self.now + ms)

    def _crashed(self, place: Place) -> None:
        """The node is gone; its disk is as the crash leaves it, and it starts again later."""
        lost = "a process is killed"
        if place.disk is not None:
            place.disk.crash_at = None
            place.disk, lost = crashed(place.disk, place.luck)
        place.node = None
        place.paused_until = 0
        self.nodes.pop(place.name, None)
        self.at(self.now + max(1, place.down_ms), self._start, (place.name, place.life))
        self._observed(place.name, Crash(lost), ())

    def _calm(self, _: None) -> None:
        """From now on nothing goes wrong, and nothing is asked."""
        self.is_active = False
        self.cuts = {}
        self._observed("", Fault("from now on nothing goes wrong, and nothing is asked"), ())
        for place in self.places.values():
            place.paused_until = min(place.paused_until, self.now)
            if place.disk is not None:
                place.disk.crash_at = None
            self.at(self.now, self._start, (place.name, place.life))


def crashed(disk: Disk, luck: int) -> tuple[Disk, str]:
    """The disk after a crash, and what of it was lost. `luck` 0: the process alone was killed. 1: all that was not
    flushed is lost. More: of each name and each file chance decides, and this number is its seed."""
    if luck == 0:
        return disk.crash(lambda name: True, lambda file: bytes(file.content)), "the process is killed"
    if luck == 1:
        left = disk.crash(lambda name: False, lambda file: bytes(file.durable))
        return left, "the power fails: what was not flushed is lost"
    rng = Random(luck)
    left = disk.crash(lambda name: rng.random() < 0.5, lambda file: _any(rng, file.torn()))
    return left, "the power fails: what was not flushed is lost in part"


def _any(rng: Random, contents: Sequence[bytes]) -> bytes:
    return contents[int(rng.random() * len(contents))]


def run(scenario: Scenario, choices: Choices, until_ms: int | None = None) -> Run:
    """One run of a scenario; until then, if a time is given."""
    return World(scenario, choices).run(until_ms)
