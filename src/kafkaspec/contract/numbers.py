"""The whole numbers of Kafka, as types of a spec's parameters: which values a caller may send.

Beyond them a spec promises nothing, and no engine goes there. An `int` that is not `Annotated` with a range has none.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Annotated, Any


@dataclass(frozen=True)
class Within:
    """A whole number from `least` to `most`, both included."""

    least: int
    most: int

    def __contains__(self, value: int) -> bool:
        return self.least <= value <= self.most


Int16 = Annotated[int, Within(-(2**15), 2**15 - 1)]
Int32 = Annotated[int, Within(-(2**31), 2**31 - 1)]
Int64 = Annotated[int, Within(-(2**63), 2**63 - 1)]
Offset = Annotated[int, Within(0, 2**62)]
"""of a record: so far from the end of the type that a log can go on from it"""
Timestamp = Annotated[int, Within(-1, 2**62)]
"""ms since 1970; -1: none"""
Duration = Annotated[int, Within(0, 2**53)]
"""ms"""
ProducerId = Annotated[int, Within(0, 2**63 - 1)]
ProducerEpoch = Annotated[int, Within(0, 2**15 - 1)]
Sequence = Annotated[int, Within(0, 2**31 - 1)]
LeaderEpoch = Annotated[int, Within(0, 2**31 - 1)]
Position = Annotated[int, Within(0, 2**31 - 1)]
"""a place in a file, bytes"""
Room = Annotated[int, Within(0, 2**20)]
"""what a call takes of memory or disk, bytes: no more than a test may ask"""


def within(hint: Any) -> Within | None:
    """The range of an annotation as `typing.get_type_hints(include_extras=True)` gives it; of `X | None`, that of X."""
    if typing.get_origin(hint) is Annotated:
        return next((x for x in hint.__metadata__ if isinstance(x, Within)), None)
    found = [r for h in typing.get_args(hint) if (r := within(h)) is not None] if _is_union(hint) else []
    return found[0] if found else None


def _is_union(hint: Any) -> bool:
    return type(None) in typing.get_args(hint)
