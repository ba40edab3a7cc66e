"""What surrounds a segment, for those rules that tell a left-over from damage by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.audit.kills.write import Case, Row, Seg, b, one, seg

AWAY = "0123456789abcdef0123456789abcdef"
"""The unique part of the name of a directory that is on its way out."""

Surroundings = Callable[..., Case]
"""Puts a segment that begins at 10 and ends at most at 39 into a log; more words go to `one`."""


def active(s: Seg, **of: Any) -> Case:
    return one(s, **of)


def closed(s: Seg, **of: Any) -> Case:
    """The segment behind it begins at 40."""
    return one(s, seg(40, b(40, epoch=-1)), **of)


SURROUNDINGS: dict[str, Surroundings] = {
    "active, clean": lambda s, **of: active(s, clean=True, **of),
    "active, killed": lambda s, **of: active(s, clean=False, **of),
    "closed, clean": lambda s, **of: closed(s, clean=True, **of),
    "closed, killed, no recovery point": lambda s, **of: closed(s, clean=False, **of),
    "closed, killed, recovered": lambda s, **of: closed(s, clean=False, recovery={"t-0": 39}, **of),
    "closed, killed, below the recovery point": lambda s, **of: closed(s, clean=False, recovery={"t-0": 40}, **of),
    "closed, clean, at a recovery point": lambda s, **of: closed(s, clean=True, recovery={"t-0": 39}, **of),
    "active, given alone": lambda s, **of: active(s, alone=True, **of),
    "closed, given alone": lambda s, **of: closed(s, alone=True, **of),
    "active, deleted": lambda s, **of: active(s, name=f"t-0.{AWAY}-delete", **of),
    "active, killed, deleted": lambda s, **of: active(s, name=f"t-0.{AWAY}-delete", clean=False, **of),
    "closed, deleted": lambda s, **of: closed(s, name=f"t-0.{AWAY}-delete", **of),
    "closed, stray": lambda s, **of: closed(s, name=f"t-0.{AWAY}-stray", **of),
    "active, future": lambda s, **of: active(s, name=f"t-0.{AWAY}-future", **of),
}


def batches(n: int, **of: Any) -> list[Row]:
    """Batches of one record from 10 on, their timestamps rising by 10."""
    return [b(10 + i, **{"time": 1000 + 10 * i, "epoch": -1, **of}) for i in range(n)]


MAIN = ("closed, clean", "active, clean", "active, killed")
"""Those that differ for most that can be wrong."""
