"""A run of a model as people and tools read it: what every engine returns and every report prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Value = Any
"""A model value in JSON's shapes: bool, int, str (sort element "p0", enum member), None, list (set sorted, sequence),
dict (map by its keys' text, record by its fields)."""

Kind = Literal["violation", "deadlock", "witness", "lasso", "walk", "cti"]
"""Why the run is shown. "cti": a counterexample to induction, two states that need not be reachable."""


@dataclass(frozen=True)
class TraceStep:
    """One step: the action taken and the state after it. The first step has action "" and shows the first state."""

    action: str
    who: str
    clauses: tuple[str, ...]
    arguments: Mapping[str, Value]
    state: Mapping[str, Value]


@dataclass(frozen=True)
class Trace:
    """A run. `claim` is the invariant, step property, witness or leads-to that it shows; `loop` is the index of the
    step to which the last step returns (a lasso), else None."""

    model: str
    sizes: Mapping[str, int | bool]
    kind: Kind
    claim: str
    clauses: tuple[str, ...]
    steps: tuple[TraceStep, ...]
    loop: int | None = None

    def changed(self, i: int) -> dict[str, tuple[Value, Value]]:
        """What step i changed: path such as "status[p0]" -> (before, after). Maps and records are compared within."""
        if i == 0:
            return {}
        out: dict[str, tuple[Value, Value]] = {}
        _differences(self.steps[i - 1].state, self.steps[i].state, "", out)
        return out


def _differences(a: Value, b: Value, path: str, out: dict[str, tuple[Value, Value]]) -> None:
    if isinstance(a, Mapping) and isinstance(b, Mapping) and a.keys() == b.keys():
        for k in a:
            _differences(a[k], b[k], f"{path}[{k}]" if path else str(k), out)
    elif a != b:
        out[path] = (a, b)
