"""Recordings of real systems, and the verdict that each must get. The files lie in `kafkaspec.recordings`, and
`manifest.toml` beside them says what they are."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from kafkaspec.errors import UserError


@dataclass(frozen=True)
class Recording:
    """A recorded trace of a subsystem."""

    file: str
    verdict: Literal["accepted", "rejected", "outside"]
    at: int | None = None
    """the step where it is rejected or leaves the contract"""
    deviations: tuple[str, ...] = ()
    """the known deviations that it meets, all of them"""
    source: str = ""
    """what was recorded, of which release"""
    subsystem: str = ""
    release: str | None = None
    """the release of Kafka, if not the newest that was judged: known deviations may hang on it"""

    @property
    def path(self) -> Path:
        """The file; UserError if it is not there."""
        path = Path(str(resources.files("kafkaspec.recordings").joinpath(self.file)))
        if not path.is_file():
            raise UserError(f"recording {self.file} is not there (looked in {path.parent})")
        return path


@cache
def manifest() -> tuple[Recording, ...]:
    """Every recording, in the order of the manifest."""
    text = resources.files("kafkaspec.recordings").joinpath("manifest.toml").read_text("utf-8")
    return tuple(
        Recording(**{**entry, "deviations": tuple(entry.get("deviations", ()))})
        for entry in tomllib.loads(text)["recording"]
    )
