"""Whole systems in one thread, from one seed: nodes, a network, disks, clocks and crashes; every step is judged, and
the same seed is the same run on any machine."""

from kafkaspec.simulate.choices import Choices, RandomChoices
from kafkaspec.simulate.runs import Replay, SimulationFailure, SimulationResult, replay, simulate
from kafkaspec.simulate.scenario import (
    Ask,
    Boot,
    Crash,
    Effect,
    Event,
    Fault,
    Faults,
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
from kafkaspec.simulate.shrink import shrunk
from kafkaspec.simulate.world import Run, run

__all__ = [
    "Ask",
    "Boot",
    "Choices",
    "Crash",
    "Effect",
    "Event",
    "Fault",
    "Faults",
    "Message",
    "Monitor",
    "Node",
    "RandomChoices",
    "Replay",
    "Run",
    "Scenario",
    "Send",
    "SetTimer",
    "SimulationFailure",
    "SimulationResult",
    "Step",
    "Timer",
    "Violation",
    "replay",
    "run",
    "shrunk",
    "simulate",
]
