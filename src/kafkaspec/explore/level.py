"""Where a search stands: the level that it expands, and the states that answer its questions."""

from __future__ import annotations

from dataclasses import dataclass

Words = tuple[int, ...]
"""A state as a program has it."""


@dataclass
class Level:
    """The level that is being expanded: each thread's slice of its queue, and how many chunks were taken."""

    lo: list[int]
    hi: list[int]
    cursor: int = 0


@dataclass
class Hit:
    """A state that answers a question, and the index of its level."""

    level: int
    state: Words
