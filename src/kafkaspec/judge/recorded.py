"""Recordings of real systems, checked: each must get the verdict that its spec says."""

from __future__ import annotations

from typing import Any

from kafkaspec.contract.machine import Machine
from kafkaspec.contract.recording import Recording
from kafkaspec.judge.check import Progress, check
from kafkaspec.judge.verdict import Verdict


def check_recording(recording: Recording, machine: Machine[Any], progress: Progress | None = None) -> Verdict:
    """The verdict on a recording. Raises UserError if its file is not there."""
    return check(machine, recording.path, name=recording.file, release=recording.release, progress=progress)


def unexpected(recording: Recording, verdict: Verdict) -> str:
    """How a verdict differs from the one that the recording must get, in words; "" if it does not."""
    expected = recording.verdict if recording.at is None else f"{recording.verdict} at step {recording.at}"
    got = verdict.verdict if verdict.step is None else f"{verdict.verdict} at step {verdict.step}"
    if got != expected:
        return f"{recording.file}: {got}, expected {expected}"
    met, named = set(verdict.deviations), set(recording.deviations)
    if met != named:
        return f"{recording.file}: met deviations {sorted(met) or 'none'}, expected {sorted(named) or 'none'}"
    return ""
