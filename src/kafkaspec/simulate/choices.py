"""What chance decides in a run, by name. A run is the outcome of its choices alone, so that it can be made again from
them, and made smaller by leaving some out: the others keep their names, and their meaning.

| name | value | usual, and not kept |
|---|---|---|
| `b1>b2 #12` | the delays, ms, of the copies of the 12th message from b1 to b2; none: it is lost | `[1]` |
| `clock b1` | how much faster its clock runs, parts of a million | `0` |
| `step 4` | a step of the plan: when, ms, and what | none |
| `active_ms` | when faults and workload end | the scenario's |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final, Literal, cast, get_args

from kafkaspec.errors import UserError, unknown
from kafkaspec.simulate.scenario import RATES, Faults, Scenario

Schedule = Literal["mixed", "uniform", "swarm", "priority"]
SCHEDULES: Final = get_args(Schedule)
USUAL_MS: Final = 1
"""what a message takes"""
USUAL: Final = (USUAL_MS,)
RANK_FACTOR: Final = 3
"""by priority, a message to a node of the next lower rank takes as many times as long"""
CHANGES: Final = 3
"""by priority, how often a run lowers the rank of the node that is about to act"""
CHANGE_WITHIN: Final = 2_000
"""among how many messages those points are drawn"""
Plan = Sequence[Any]


class Choices:
    """Those of a run that is made again: what is not named is as usual."""

    def __init__(self, scenario: Scenario, kept: Mapping[str, Any] | None = None) -> None:
        self.scenario = scenario
        self.kept: dict[str, Any] = dict(kept or {})
        self.sent: dict[str, int] = {}
        self._plan = sorted(
            ((v[0], int(k[5:]), v[1:]) for k, v in self.kept.items() if k.startswith("step ")), key=lambda s: s[:2]
        )

    @property
    def active_ms(self) -> int:
        return int(self.kept.get("active_ms", self.scenario.active_ms))

    def delays(self, source: str, target: str) -> Sequence[int]:
        """Of the copies of the next message."""
        return tuple(self.kept.get(self._next(source, target), USUAL))

    def _next(self, source: str, target: str) -> str:
        link = f"{source}>{target}"
        self.sent[link] = n = self.sent.get(link, 0) + 1
        return f"{link} #{n}"

    def drift_ppm(self, node: str) -> int:
        return int(self.kept.get(f"clock {node}", 0))

    def next_step(self) -> tuple[int, Plan] | None:
        """When, and what, of the next step of the plan; None if there is none."""
        if not self._plan:
            return None
        at, _, step = self._plan.pop(0)
        return at, step


def of_kind(scenario: Scenario, wanted: Schedule, rng: Random) -> tuple[Faults, dict[str, float]]:
    """The faults and the weights of the workload: by "swarm" a part of the kinds, each more or less often."""
    weights = dict.fromkeys(scenario.workload, scenario.workload_weight)
    if wanted != "swarm":
        return scenario.faults, weights
    rates = {n: getattr(scenario.faults, n) * (0, 0, 0.3, 1, 3)[int(rng.random() * 5)] for n in RATES}
    drawn = {n: w * (0, 0.3, 1, 1, 3)[int(rng.random() * 5)] for n, w in weights.items()}
    drifts = scenario.faults.drift_ppm * int(rng.random() * 2)
    return replace(scenario.faults, **rates, drift_ppm=drifts), drawn if any(drawn.values()) else weights


def of_seed(wanted: Schedule, seed: int) -> Schedule:
    """The schedule of a seed.

    >>> of_seed("mixed", 4), of_seed("swarm", 4)
    ('swarm', 'swarm')
    """
    return cast("Schedule", SCHEDULES[1 + seed % 3]) if wanted == "mixed" else wanted


class RandomChoices(Choices):
    """Those that a seed draws; `kept` is what was not as usual.

    By "uniform" all faults of the scenario may be. By "swarm" a part of the kinds may be, each more or less often. By
    "priority" the nodes have ranks, and a message to one of a low rank takes longer; at a few points of the run the
    node that is about to act is put at the end. By "mixed" each seed is of one of these, in turn. The numbers come from
    one generator, in the order in which the run asks.
    """

    def __init__(self, scenario: Scenario, seed: int, schedule: Schedule) -> None:
        super().__init__(scenario)
        schedule = of_seed(schedule, seed)
        self.rng = rng = Random(seed)
        self.random = rng.random
        faults, work = of_kind(scenario, schedule, rng)
        self.faults = faults
        self.lost, self.twice = faults.loss, faults.loss + faults.duplicate
        self.late = self.twice + faults.delay
        self.weights: list[tuple[str, float]] = [
            (n, getattr(faults, n)) for n in ("crash", "power_failure", "partition", "one_way", "pause")
        ]
        if not scenario.mortal:
            self.weights = [(n, w) for n, w in self.weights if n in ("partition", "one_way")]
        self.weights += [*work.items()]
        self.total = sum(w for _, w in self.weights)
        self.steps = 0
        self.at = 0
        self.ranks: dict[str, int] = {}
        self.changes: set[int] = set()
        self.messages = 0
        if schedule == "priority":
            order = [*scenario.nodes]
            for i in range(len(order) - 1, 0, -1):
                j = self._below(i + 1)
                order[i], order[j] = order[j], order[i]
            self.ranks = {n: min(i, 3) for i, n in enumerate(order)}
            self.changes = {self._below(CHANGE_WITHIN) for _ in range(CHANGES)}

    def _below(self, n: int) -> int:
        return int(self.random() * n)

    def delays(self, source: str, target: str) -> Sequence[int]:
        name = self._next(source, target)
        x = self.random()
        found: tuple[int, ...] = USUAL
        if x < self.lost:
            found = ()
        elif x < self.twice:
            found = (self._delay(), self._delay())
        elif x < self.late:
            found = (self._delay(),)
        if self.ranks:
            self.messages += 1
            if self.messages in self.changes:
                self.ranks[target] = 4
            factor = RANK_FACTOR ** self.ranks.get(target, 0)
            found = tuple(d * factor for d in found)
        if found != USUAL:
            self.kept[name] = [*found]
        return found

    def _delay(self) -> int:
        return 1 + self._below(self.faults.longest_delay_ms)

    def drift_ppm(self, node: str) -> int:
        most = self.faults.drift_ppm
        drift = self._below(2 * most + 1) - most if most else 0
        if drift:
            self.kept[f"clock {node}"] = drift
        return drift

    def next_step(self) -> tuple[int, Plan] | None:
        self.at += 1 + self._below(2 * self.scenario.gap_ms)
        if self.at >= self.active_ms or not self.total:
            return None
        step = self._drawn(self._kind())
        self.steps += 1
        self.kept[f"step {self.steps}"] = [self.at, *step]
        return self.at, step

    def _kind(self) -> str:
        """One of the kinds, by their weights."""
        x = self.random() * self.total
        for kind, weight in self.weights:
            if x < weight:
                return kind
            x -= weight
        return self.weights[-1][0]

    def _drawn(self, kind: str) -> list[Any]:
        s = self.scenario
        if kind in s.workload:
            return ["ask", *s.workload[kind](self.rng)]
        ms = 1 + self._below(self.faults.longest_ms)
        if kind == "partition":
            side = [n for n in s.nodes if self.random() < 0.5]
            return ["partition", side, ms]
        if kind == "one_way":
            a, b = (s.nodes[self._below(len(s.nodes))] for _ in range(2))
            return ["cut", a, b, ms]
        node = s.mortal[self._below(len(s.mortal))]
        if kind == "pause":
            return ["pause", node, ms]
        writes = self._below(12) if self.random() < 0.5 else 0
        luck = 0 if kind == "crash" else 1 if self.random() < 0.5 else 2 + self._below(1 << 30)
        return ["crash", node, ms, writes, luck]


def schedule(name: str) -> Schedule:
    """UserError for one that there is not."""
    if name not in SCHEDULES:
        raise unknown("schedule", name, SCHEDULES)
    return cast("Schedule", name)


def checked(scenario: Scenario, kept: Any, where: str) -> dict[str, Any]:
    """Choices that were read from a file. Raises UserError, which says what is wrong with which."""
    if not isinstance(kept, dict):
        raise UserError(f"{where}: choices: an object is wanted")
    for name, value in kept.items():
        if not _fits(scenario, name, value):
            raise UserError(f"{where}: no choice of {scenario.name}: {name!r}: {value!r:.80}")
    return dict(kept)


MOST_MS: Final = 10_000_000


def _is_ms(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MOST_MS


def _fits(scenario: Scenario, name: str, value: Any) -> bool:
    nodes, mortal = scenario.nodes, scenario.mortal
    first, _, rest = name.partition(" ")
    if name == "active_ms":
        return _is_ms(value)
    if first == "clock":
        return rest in nodes and type(value) is int and abs(value) < 1_000_000
    if first != "step":
        a, _, b = first.partition(">")
        known = {a, b} <= {*nodes} and rest[:1] == "#" and rest[1:].isdecimal() and len(rest) <= 18
        return known and isinstance(value, list) and len(value) <= 2 and all(map(_is_ms, value))
    if not rest.isdecimal() or len(rest) > 18 or not isinstance(value, list) or len(value) < 3 or not _is_ms(value[0]):
        return False
    match value[1:]:
        case ["ask", str(node), what]:
            return node in nodes and scenario.understands(node, what)
        case ["partition", list(side), ms]:
            return all(isinstance(n, str) and n in nodes for n in side) and _is_ms(ms)
        case ["cut", str(a), str(b), ms]:
            return a in nodes and b in nodes and _is_ms(ms)
        case ["pause", str(node), ms]:
            return node in mortal and _is_ms(ms)
        case ["crash", str(node), ms, int(writes), int(luck)]:
            return node in mortal and _is_ms(ms) and min(writes, luck) >= 0
    return False
