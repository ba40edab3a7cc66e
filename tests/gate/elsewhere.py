"""A record that the templates know by its module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kafkaspec.language import Range


@dataclass(frozen=True)
class Small:
    """A record with fewer values than its number may have."""

    x: Annotated[int, Range(0, 1)]
