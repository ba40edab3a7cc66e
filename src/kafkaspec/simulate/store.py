"""What came of seeds, in a file: a run over many that was interrupted goes on with those that have no line yet.

A line of JSON is one seed; the first one says of which scenario, schedule and code. Lines are appended as their seeds
end, so that a process that is killed loses what was under way: a last line without an end is cut off.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from kafkaspec.contract.project import PACKAGE
from kafkaspec.errors import UserError
from kafkaspec.simulate.choices import Schedule
from kafkaspec.simulate.outcome import Outcome
from kafkaspec.simulate.scenario import Scenario, Violation

VERSION: Final = 1
PARTS: Final = ("impl", "spec", "simulate")
"""of the package: what an outcome depends on, besides its seed"""


def code_digest(scenario: Scenario) -> str:
    """That of the texts that an outcome depends on: of spec, impl and the simulator, and of the files beside those of
    the scenario: where its nodes are started, and the one that its name says."""
    own = Path(inspect.getfile(scenario.boot)), Path(scenario.name.rpartition(":")[0] or scenario.name)
    files = {p.resolve() for part in PARTS for p in (PACKAGE / part).rglob("*.py")}
    files |= {p.resolve() for file in own if file.suffix == ".py" for p in file.parent.glob("*.py")}
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


class Store:
    """A file of outcomes. Raises UserError, one line, for a file that is of something else, and for what cannot be read
    or written."""

    def __init__(self, file: Path, scenario: Scenario, schedule: Schedule) -> None:
        self.file = file
        about = {
            "format": VERSION, "simulation": scenario.name, "schedule": schedule, "code": code_digest(scenario)
        }  # fmt: skip
        self.kept: dict[int, Outcome] = {}
        """by seed"""
        try:
            data = file.read_bytes() if file.exists() else b""
            whole = data.rfind(b"\n") + 1
            if whole == 0:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(orjson.dumps(about) + b"\n")
                return
            lines = data[:whole].splitlines()
            self._check(self._json(lines[0], 1), about)
            for n, line in enumerate(lines[1:], 2):
                o = self._outcome(self._json(line, n), n)
                self.kept[o.seed] = o
            if whole < len(data):
                with file.open("r+b") as f:
                    f.truncate(whole)
        except OSError as e:
            raise self._failed(e) from None

    def _failed(self, e: OSError) -> UserError:
        return UserError(f"{self.file}: {(e.strerror or str(e)).lower()}")

    def _json(self, line: bytes, number: int) -> Any:
        try:
            return orjson.loads(line)
        except orjson.JSONDecodeError:
            raise UserError(f"{self.file}: line {number} is not JSON") from None

    def _check(self, there: Any, about: dict[str, Any]) -> None:
        if not isinstance(there, dict) or there.get("format") != VERSION:
            raise UserError(f"{self.file}: holds no outcomes of a simulation")
        said = f"{self.file}: holds outcomes of {there.get('simulation')}, schedule {there.get('schedule')}"
        if {**there, "code": ""} != {**about, "code": ""}:
            raise UserError(f"{said}, not of {about['simulation']}, {about['schedule']}; name another file")
        if there.get("code") != about["code"]:
            raise UserError(f"{said}, run with other code than today's; name another file")

    def _outcome(self, line: Any, number: int) -> Outcome:
        match line:
            case [int(seed), int(steps), int(ms), broken, dict(counts)] if all(type(n) is int for n in counts.values()):
                match broken:
                    case None:
                        return Outcome(seed, steps, ms, None, counts)
                    case [str(rule), str(what)]:
                        return Outcome(seed, steps, ms, Violation(rule, what), counts)
        raise UserError(f"{self.file}: line {number} is no outcome of a seed")

    def append(self, outcomes: Sequence[Outcome]) -> None:
        """Keep some more."""
        lines = b"".join(
            orjson.dumps([o.seed, o.steps, o.ms, None if o.violation is None else [*o.violation], o.counts]) + b"\n"
            for o in outcomes
        )
        try:
            with self.file.open("ab") as f:
                f.write(lines)
        except OSError as e:
            raise self._failed(e) from None
