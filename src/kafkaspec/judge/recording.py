"""Recordings of real systems, and the verdict that each must get. The files lie in `kafkaspec.recordings`."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from kafkaspec.errors import UserError
from kafkaspec.judge.check import Progress, Verdict, check
from kafkaspec.lockstep.machine import Machine


@dataclass(frozen=True)
class Recording:
    """A recorded trace of a subsystem. Spec modules list theirs as `RECORDINGS`."""

    file: str
    verdict: Literal["accepted", "rejected", "outside"]
    at: int | None = None
    """the step where it is rejected or leaves the contract"""
    deviations: tuple[str, ...] = ()
    """the known deviations that it meets, all of them"""
    source: str = ""
    """what was recorded, of which release"""
    release: str | None = None
    """the release of Kafka, if not the newest that was judged: known deviations may hang on it"""

    @property
    def path(self) -> Path:
        """The file; UserError if it is not there."""
        path = Path(str(resources.files("kafkaspec.recordings").joinpath(self.file)))
        if not path.is_file():
            raise UserError(f"recording {self.file} is not there (looked in {path.parent})")
        return path

    def judge(self, machine: Machine[Any], progress: Progress | None = None) -> Verdict:
        """Check it."""
        return check(machine, self.path, name=self.file, release=self.release, progress=progress)

    def wrong(self, verdict: Verdict) -> str:
        """How a verdict differs from the expected one, in words; "" if it does not."""
        expected = self.verdict if self.at is None else f"{self.verdict} at step {self.at}"
        got = verdict.verdict if verdict.step is None else f"{verdict.verdict} at step {verdict.step}"
        if got != expected:
            return f"{self.file}: {got}, expected {expected}"
        met = set(verdict.deviations)
        if met != set(self.deviations):
            return f"{self.file}: met deviations {sorted(met) or 'none'}, expected {sorted(self.deviations) or 'none'}"
        return ""
