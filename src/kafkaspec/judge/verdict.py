"""What is said of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from kafkaspec.contract import history
from kafkaspec.contract.machine import Json
from kafkaspec.judge.trace import json_text
from kafkaspec.lockstep.compare import ABSENT, Difference

MAX_VALUE_BYTES: Final = 64 << 10
"""A value in a verdict that would be longer as JSON is left out, and its size told."""


@dataclass(frozen=True)
class DeviationCount:
    """A known deviation in a trace: at how many lines, and the first of them."""

    count: int
    step: int
    line: int
    uncompared: int = 0
    """the lines among them that say nothing: the target's state had gone another way than the spec's before"""

    @property
    def times(self) -> str:
        """How often it was met, in words."""
        return met(self.count, self.uncompared)


def met(count: int, uncompared: int) -> str:
    """How often a known deviation was met, in words."""
    return _count(count, "time") + (f", {uncompared:,} of them not compared" if uncompared else "")


@dataclass(frozen=True)
class SkippedCount:
    """Lines that were skipped for one reason: how many, and the first of them."""

    count: int
    line: int


@dataclass(frozen=True)
class UnreadRest:
    """From which line on a recording was not read, and why."""

    line: int
    what: str


@dataclass(frozen=True)
class Verdict:
    """What became of a trace. From `step` on, the fields are of the line where it was rejected or left the contract."""

    verdict: Literal["accepted", "rejected", "outside", "incomplete"]
    """`incomplete`: nothing is wrong with what was judged, and lines were skipped or the last ones not read"""
    source: str
    events: int
    """lines judged, `init` lines and the line that was rejected included"""
    histories: int
    operations: Mapping[str, int]
    """calls explained, by operation; calls whose operation is not recorded are under "?" """
    clauses: Mapping[str, int]
    """how often each clause was exercised by an explained call: as the rule of the operation or of its refusal"""
    deviations: Mapping[str, DeviationCount] = field(default_factory=dict)
    step: int | None = None
    """the line's own number `i`; the number of the event if it has none"""
    line: int | None = None
    call: str = ""
    clause: str = ""
    sentence: str = ""
    others: tuple[str, ...] = ()
    """the next rules that may be broken instead, the most likely first"""
    known: tuple[str, ...] = ()
    """the known deviations that show what was seen, where they are not accepted"""
    what: str = ""
    skipped: Mapping[str, SkippedCount] = field(default_factory=dict)
    """lines that are none of a trace, by what is unknown in them; "" for the lines that are of further reasons"""
    unjudged: int = 0
    """lines after a skipped one for which the state would have to be known"""
    unread: UnreadRest | None = None
    """the lines at the end that were not read; None if all were, or a line was rejected before them"""
    expected: Mapping[str, Json] = field(default_factory=dict)
    """result or error, and state, that would have been accepted"""
    seen: Mapping[str, Json] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    only_state: bool = False
    """the answer is right, the state after it is not"""
    nearest: str = ""
    again: str = ""
    """the command that judges so again; "" where it was no command that judged, or what it read is gone"""

    @property
    def exit_code(self) -> int:
        """0 accepted, 1 rejected, 2 could not judge."""
        return {"accepted": 0, "rejected": 1, "outside": 2, "incomplete": 2}[self.verdict]

    def text(self) -> str:
        """The verdict in plain lines, without colours."""
        where = f"{self.source}:{self.line}"
        out = []
        judged = f"{_count(self.events, 'event')} in {_count(self.histories, 'history')}"
        if self.verdict == "accepted":
            out.append(f"accepted: {self.source}: {judged}")
        elif self.verdict == "incomplete":
            out.append(f"could not judge all: {self.source}: {judged} accepted, {self.left_out}")
            out += [f"  not read: {self.unread.what}"] if self.unread is not None else []
        elif self.verdict == "outside":
            out.append(f"outside the contract from step {self.step}: {where}: {self.call}")
            out.append(f"  the caller broke {self.clause}: {self.what}")
        else:
            out.append(f"rejected at step {self.step}: {where}: {self.call}")
            out.append(f"  {self.clause}: {self.sentence}" if self.sentence else f"  {self.clause}")
            if self.others:
                out.append(f"  or it breaks {', '.join(self.others)}")
            out += [f"  {line}" for line in self.what.splitlines()]
            out += [f"    {d}" for d in self.differences[:12]]
            if len(self.differences) > 12:
                out.append(f"    and {len(self.differences) - 12} more")
            out += [f"  {line}" for line in self.nearest.splitlines()]
        for id, found in self.deviations.items():
            out.append(f"  known deviation {id}: {found.times}, first at step {found.step} (line {found.line})")
        for what, where in self.skips:
            out.append(f"  skipped {where}: {what}")
        return "\n".join(out)

    @property
    def left_out(self) -> str:
        """Which lines were not judged, in words."""
        skipped = sum(s.count for s in self.skipped.values())
        out = [f"{_count(skipped, 'line')} skipped"] if skipped else []
        if self.unjudged:
            out.append(f"{_count(self.unjudged, 'line')} after {'it' if skipped == 1 else 'them'} not judged")
        if self.unread is not None:
            out.append(f"not read from line {self.unread.line:,} on")
        return ", ".join(out)

    @property
    def skips(self) -> list[tuple[str, str]]:
        """Why lines were skipped, and where."""
        return [
            (
                what or "other reasons",
                f"{_count(s.count, 'line')}, first line {s.line}" if s.count > 1 else f"line {s.line}",
            )
            for what, s in self.skipped.items()
        ]


def _count(n: int, what: str) -> str:
    plural = what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f"{n:,} {what if n == 1 else plural}"


def bounded(verdict: Verdict) -> Verdict:
    """The verdict without values that are too long to be shown."""

    def short(value: Json, most: int) -> Json:
        size = 0 if value is ABSENT else len(json_text(value))
        return value if size <= most else f"({size:,} bytes: too long to show)"

    def shorter(outcome: Mapping[str, Json]) -> Mapping[str, Json]:
        out = {k: short(v, MAX_VALUE_BYTES) for k, v in outcome.items() if k != "error"}
        if "error" in outcome:
            out["error"] = {k: short(v, 4096) for k, v in outcome["error"].items()}
        return out

    return replace(
        verdict,
        expected=shorter(verdict.expected),
        seen=shorter(verdict.seen),
        differences=tuple(
            replace(d, path=history.cut(d.path), expected=short(d.expected, 4096), seen=short(d.seen, 4096))
            for d in verdict.differences
        ),
    )
