"""The one error that people see: a single line that says what is wrong and where, and an exit code.

Anything else that reaches the command line is a bug of ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

INTERRUPTED = 130
"""The exit status after Ctrl-C: 128 + SIGINT, as a shell reports it."""


class UserError(Exception):
    """Bad input or a limit reached: one line for people, exit status 2 (could not judge) unless told otherwise."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True)
class ErrorReport:
    """What `--json` prints in the place of a result that could not be had."""

    source: str
    """the trace or model that could not be judged; "" of the command as a whole"""
    verdict: Literal["could not judge"]
    problems: tuple[str, ...]
    """why, as on standard error; control characters are escapes"""


def unwritten(path: Path, error: OSError) -> UserError:
    """The error for a file that cannot be written."""
    return UserError(f"{path}: cannot be written: {(error.strerror or str(error)).lower()}")


class SignalledError(SystemExit):
    """A signal ends this process, or a reader that went away, as SIGPIPE would; all tidies up on the way. Any other
    SystemExit is somebody's error."""


ENDINGS = (KeyboardInterrupt, SignalledError)
"""What ends this process from without. Whatever else is raised by what is asked, an exit or a panic of native code
included, is the failure of what is asked."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that does not exist, with the nearest one that does.

    >>> str(unknown("subsystem", "timelin", ["timeline", "cleaner"]))
    "unknown subsystem 'timelin'; did you mean 'timeline'? (known: cleaner, timeline)"
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, 1, 0.5)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    several = f"{len(names)} are known" if len(names) > 12 else f"known: {', '.join(names) or 'none'}"
    return UserError(f"unknown {kind} '{name}'{hint} ({several})")
