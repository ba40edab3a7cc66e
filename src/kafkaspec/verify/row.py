"""What `verify` says: a row for each claim, and the pieces of work that rows come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One claim, established or not. `why` explains a failure in plain lines, "" if there is none."""

    subsystem: str
    what: str
    word: str
    detail: str
    seconds: float
    why: str = ""
    could_judge: bool = True
    held: str = ""
    """since when, if nothing has changed for it since, and it was not asked again"""
    work: Mapping[str, int] = field(default_factory=dict)
    """what it cost, by the kinds of `verify.budget`"""
    again: str = ""
    """the command that shows it again, if it does not hold"""

    @property
    def ok(self) -> bool:
        return not self.why


@dataclass(frozen=True)
class Unit:
    """A piece of the work, whose rows are established together: one check of one subsystem, and of several things that
    it asks alike the one at `which`."""

    subsystem: str
    check: str
    which: int
