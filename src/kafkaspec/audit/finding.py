"""What an audit says: one finding is one place where a rule is broken, or where something lies that a reader must know.

Where a field is not known it is None; a position is a byte of the file, from 0; a line is a text file's, from 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """How bad it is; the higher the worse. Only WARNING and ERROR make an audit unsound (exit status 1); UNCHECKED
    makes it "could not judge" (2) if nothing is worse."""

    LEFTOVER = 0
    """what a crash, a running broker or an unfinished deletion leaves: nothing is wrong, a restart tidies it up"""
    UNCHECKED = 1
    """something that this version cannot read (message formats 0 and 1): named, not checked"""
    WARNING = 2
    """a rule is broken, but no reader is misled and a restart fixes it"""
    ERROR = 3
    """records, offsets or visibility are wrong or at risk"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `message` says what is there, `expected` what would have been right, `recovery` what a restart of
    the broker does about it, each a short sentence or phrase without the file's name."""

    severity: Severity
    clause: str
    file: str
    """path as the user gave it, and below"""
    message: str
    expected: str = ""
    recovery: str = ""
    position: int | None = None
    line: int | None = None
    offset: int | None = None
    topic: str | None = None
    partition: int | None = None

    def order(self) -> tuple[int, str, int, int, str, str]:
        """Worst first, then by place."""
        at = self.position if self.position is not None else self.line if self.line is not None else -1
        return (-self.severity, self.file, at, -1 if self.offset is None else self.offset, self.clause, self.message)
