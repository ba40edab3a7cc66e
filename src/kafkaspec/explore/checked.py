"""A model with what is known of it: sizes and pinned counts, checked by one run of the explorer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kafkaspec.language.model import LoadedModel, Model, load

if TYPE_CHECKING:
    from kafkaspec.explore.engine import Exploration, Progress


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be: the claim, action or count, and a sentence for people."""

    what: str
    why: str

    @property
    def is_claim(self) -> bool:
        """It breaks what the model says. Counts that differ, or a run that met a limit, break nothing."""
        return self.what not in ("counts", "limit")


class Result(NamedTuple):
    """What a run of a pinned model came to: nothing found is good."""

    findings: list[Finding]
    exploration: Exploration

    @property
    def why(self) -> str:
        """What is wrong, a line each; "" if nothing is."""
        return "\n".join(f.why for f in self.findings)


@dataclass(frozen=True)
class Expectation:
    """A model at sizes, and the counts that a complete exploration must find. `deadlock`: the system may come to a
    stop. `ghosts`: they are kept, and the claims that speak of them are checked. `symmetry`: sorts whose elements are
    taken as alike (counts are then of orbits, and leads-to claims are not checked). `deep`: this size is left to the
    long checks; `verify` explores the model at others."""

    model: type[Model] | LoadedModel
    sizes: Mapping[str, int | bool]
    distinct: int
    generated: int
    depth: int
    symmetry: tuple[str, ...] = ()
    deadlock: bool = False
    ghosts: bool = False
    note: str = ""
    deep: bool = False

    @property
    def loaded(self) -> LoadedModel:
        """The model as a graph."""
        return self.model if isinstance(self.model, LoadedModel) else load(self.model)

    @property
    def name(self) -> str:
        """The model's name; its text is not read for it."""
        return self.model.name if isinstance(self.model, LoadedModel) else self.model.__name__

    def run(
        self,
        progress: Progress | None = None,
        *,
        threads: int = 2,
        max_states: int | None = None,
        liveness: bool = True,
    ) -> Result:
        """Explore, and compare: counts as pinned, no claim broken, every witness reached, every action taken. Without
        `liveness` leads-to claims are left out."""
        from kafkaspec.explore.engine import explore

        e = explore(
            self.loaded,
            self.sizes,
            threads=threads,
            symmetry=self.symmetry,
            liveness=liveness and not self.symmetry,
            deadlock=self.deadlock,
            ghosts=self.ghosts,
            max_states=max_states,
            progress=progress,
            expected=self.distinct,
        )
        return Result(list(self._findings(e)), e)

    def _findings(self, e: Exploration) -> list[Finding]:
        name, out = e.model.name, []
        steps = len(e.trace.steps) - 1 if e.trace is not None else 0
        match e.outcome:
            case "violation":
                assert e.trace is not None
                out.append(Finding(e.trace.claim, f"{name}: {e.trace.claim} is broken in {steps} steps"))
            case "deadlock":
                hint = "if it may end so, its Expectation has deadlock=True"
                out.append(Finding("deadlock", f"{name}: no action is possible after {steps} steps ({hint})"))
            case "liveness":
                assert e.trace is not None
                out.append(Finding(e.trace.claim, f"{name}: {e.trace.claim} need never come true"))
            case "limit":
                out.append(Finding("limit", f"{name}: not explored to the end: {e.limit}"))
        if e.outcome in ("violation", "limit"):
            return out
        for witness, trace in e.witnesses.items():
            if trace is None:
                out.append(Finding(witness, f"{name}: witness {witness} is never reached"))
        for action, times in e.taken.items():
            if not times:
                out.append(Finding(action, f"{name}: action {action} is never taken"))
        counted = {"distinct": e.distinct, "generated": e.generated, "depth": e.depth}
        pinned = {"distinct": self.distinct, "generated": self.generated, "depth": self.depth}
        if counted != pinned:
            differ = ", ".join(f"{n} {counted[n]:,} (pinned {pinned[n]:,})" for n in pinned if counted[n] != pinned[n])
            out.append(Finding("counts", f"{name}: other counts than pinned: {differ}"))
        return out
