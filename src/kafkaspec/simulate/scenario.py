"""What a simulation is made of: nodes that are handed events and answer with effects, and monitors that see every step.

A node reads no clock, opens no socket and draws no number: time, disk and messages come in as arguments, and what it
wants done goes out as effects. So a run depends on the choices of the world alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple, Protocol

Json = Any


# ---- events: what a node is handed
class Boot(NamedTuple):
    """The node starts, for the first time or after a crash."""

    life: int
    """a number that no earlier start of the node had"""


class Message(NamedTuple):
    """A message arrives."""

    source: str
    body: Any


class Timer(NamedTuple):
    """A timer that the node has set is due."""

    name: str


class Ask(NamedTuple):
    """Somebody outside wants something of the node: the workload."""

    what: Json


# ---- steps that no node handles
class Crash(NamedTuple):
    """The node stops; its disk is as the crash leaves it."""

    lost: str
    """what of the disk was lost, for people"""


class Fault(NamedTuple):
    """Something happens to the network or to a node's pace."""

    text: str


Event = Boot | Message | Timer | Ask | Crash | Fault


# ---- effects: what a node wants done
class Send(NamedTuple):
    """Send a message; it may be lost, come twice, late, or after a later one."""

    target: str
    body: Any


class SetTimer(NamedTuple):
    """Be handed `Timer(name)` after some ms of the node's own clock; a timer of that name set before is forgotten."""

    name: str
    after_ms: int


Effect = Send | SetTimer
Clock = Callable[[], int]
"""a node's own time, ms"""


class Node(Protocol):
    """One process. It is gone with a crash; what it wrote to its disk may not be."""

    def handle(self, event: Boot | Message | Timer | Ask) -> Sequence[Effect]: ...


class Disk(Protocol):
    """A disk that can crash. `crash_at`: the number of the writing step before which its machine stops."""

    steps: int
    crash_at: int | None

    def crash(self, keep_names: Callable[[str], bool], keep_content: Callable[[Any], bytes]) -> Disk:
        """As the next boot finds it: of each name and each content that was not flushed, whether it is kept."""


class Violation(NamedTuple):
    """A rule that a step broke."""

    rule: str
    """the id of a clause, or a few words"""
    what: str
    """in which way, with values"""


class Step(NamedTuple):
    """One event, and what its node did."""

    number: int
    at_ms: int
    node: str
    event: Event
    effects: Sequence[Effect]


class Monitor(Protocol):
    """A reference that judges a run. It is shown every step after it was made, and may look at the nodes."""

    def observe(self, step: Step, nodes: Mapping[str, Any]) -> Violation | None:
        """What the step broke. `nodes`: those that are up, by name."""

    def settled(self, nodes: Mapping[str, Any]) -> Violation | None:
        """What is wrong at the end, when all nodes are up and no fault was for a while."""

    def counts(self) -> Mapping[str, int]:
        """How often what has happened that the rules are about: a run in which nothing did has shown nothing."""


class NeverRaised(BaseException):
    """What a disk that cannot crash raises when it does."""


@dataclass(frozen=True)
class Faults:
    """How often what goes wrong. Rates of messages are probabilities; weights are of steps of the plan, beside those of
    the workload; times in ms. A rate or weight of 0 is none of that kind."""

    loss: float = 0.01
    duplicate: float = 0.01
    delay: float = 0.3
    """the part of messages that take longer than usual"""
    longest_delay_ms: int = 20
    crash: float = 1.0
    """weight of a node's end: a process is killed, and its disk stays as it is"""
    power_failure: float = 1.0
    """weight of a machine's end: what was not flushed may be lost"""
    partition: float = 1.0
    """weight of a network that falls into two parts"""
    one_way: float = 0.5
    """weight of a link that loses all in one direction"""
    pause: float = 1.0
    """weight of a node that stands still and goes on"""
    longest_ms: int = 600
    """of an outage, a partition, a pause"""
    drift_ppm: int = 20_000
    """how far a clock is off its rate at most, parts of a million"""


RATES = ("loss", "duplicate", "delay", "crash", "power_failure", "partition", "one_way", "pause")
"""The kinds of faults that a swarm takes or leaves."""


@dataclass(frozen=True)
class Scenario:
    """Nodes, what disturbs them, and who judges them."""

    name: str
    title: str
    nodes: tuple[str, ...]
    """those that start, in this order"""
    boot: Callable[[str, Any, Clock], Node]
    """a node of that name on that disk, with that clock"""
    disk: Callable[[str], Disk | None]
    """the empty disk of a node; None if it has none"""
    monitors: Callable[[], Sequence[Monitor]]
    workload: Mapping[str, Callable[[Random], tuple[str, Json]]]
    """what is asked of whom: a node and a request, drawn, by the name of the kind"""
    faults: Faults = field(default_factory=Faults)
    mortal: tuple[str, ...] = ()
    """the nodes that may crash and stand still"""
    workload_weight: float = 30.0
    """of each kind of the workload, beside those of the faults"""
    gap_ms: int = 30
    """from one step of the plan to the next, on average"""
    active_ms: int = 3000
    """faults and workload end then"""
    settle_ms: int = 2500
    """and that long the nodes have to come to rest"""
    crashes: type[BaseException] = NeverRaised
    """what a disk raises at its `crash_at`"""
    is_routine: Callable[[Step], bool] = lambda step: False
    """steps that a history need not show one by one"""
    understands: Callable[[str, Json], bool] = lambda node, what: True
    """whether a node knows a request: a kept run in which anything else is asked for is not made again, as it would not
    be what it was"""
