"""A proof: a model, what is held, and the sizes at which its claims are explored before anything is proved."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from kafkaspec.errors import UserError
from kafkaspec.language import LoadedModel, Model, Trace, claimed, load

if TYPE_CHECKING:
    from kafkaspec.prove.engine import Progress, ProofResult

SMALL = (1, 2, 3)
"""Where no sizes are given, every sort and size is explored at these, as far as the states allow."""
MOST_STATES = 200_000
"""At most this many states are explored at each of them."""
MOST_FLAGS = 3
"""Up to this many flags are explored in all their combinations; more, with all of them off and all of them on."""


class ExplorationSummary(NamedTuple):
    """What exploring found: a sentence for people, the claim that is false, how long it took, and which actions were
    taken, the start among them, in states in which all claims hold."""

    text: str
    false: Trace | None = None
    seconds: float = 0.0
    taken: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Proof:
    """Every obligation of the model must be proved, for every size but those in `fixed`.

    At the sizes `explored_at`, or else at a few small ones, all claims, the lemmas among them, are explored before
    anything is proved: a false one is found there in a second, with the shortest way to it, instead of as a proof that
    does not come."""

    model: type[Model] | LoadedModel
    timeout_s: float = 10.0
    explored_at: Mapping[str, int | bool] | None = None
    fixed: Mapping[str, int | bool] = field(default_factory=dict)
    note: str = ""
    begins_with: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By a claim whose proofs are hard to find, or by "claim after action": the claims among which they are looked for
    first."""

    @property
    def loaded(self) -> LoadedModel:
        """The model as a graph."""
        return self.model if isinstance(self.model, LoadedModel) else load(self.model)

    @property
    def cls(self) -> type[Model]:
        """The class of the model, in which its claims stand."""
        return self.model.cls if isinstance(self.model, LoadedModel) else self.model

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name if isinstance(self.model, LoadedModel) else self.model.__name__

    @property
    def claims(self) -> dict[str, tuple[str, ...]]:
        """What is to be proved, each with the clauses that it names; the model's text is not read for it."""
        if not isinstance(self.model, LoadedModel):
            return claimed(self.model)
        m = self.model
        return {c.name: c.clauses for c in (*m.invariants.values(), *m.lemmas.values(), *m.steps.values())}

    def run(self, progress: Progress | None = None, claims: Sequence[str] = ()) -> ProofResult:
        """Explore, then prove: everything, or some `claims` and what they rest on. A model that cannot be explored with
        its ghosts at sizes that the proof names raises UserError; at small sizes of our choice, the result says so."""
        from kafkaspec.prove.engine import ProofResult, asked_for, prove
        from kafkaspec.prove.outline import recorded

        model = self.loaded
        claims = asked_for(model, claims)
        if self.explored_at is not None:
            explored = self._explore({**self.explored_at, **self.fixed}, None, progress)
        else:
            explored = self._explore_small(progress)
        if explored.false is not None:
            return ProofResult(
                model.name,
                self.fixed,
                (),
                (),
                explored.seconds,
                self.timeout_s,
                false_lemma=explored.false,
                explored=explored.text,
                asked=tuple(claims),
            )
        proved = prove(
            model,
            timeout_s=self.timeout_s,
            fixed=self.fixed,
            claims=claims,
            progress=progress,
            begins_with=self.begins_with,
            possible_actions=explored.taken,
            outlines=recorded(proofs_of(model), model.name),
        )
        return replace(proved, explored=explored.text)

    def _explore(
        self, sizes: Mapping[str, int | bool], max_states: int | None, progress: Progress | None
    ) -> ExplorationSummary:
        from kafkaspec.explore.engine import explore
        from kafkaspec.prove.obligations import START

        e = explore(
            self.loaded, sizes, ghosts=True, liveness=False, deadlock=True, max_states=max_states, progress=progress
        )
        false = e.trace if e.outcome == "violation" else None
        if max_states is None:
            text = f"{e.distinct:,} states" + "".join(f", {n}={v}" for n, v in sizes.items())
            text += f" ({e.limit})" if e.outcome == "limit" else ""
        else:
            flags = [f"{n}={v}" for n, v in sizes.items() if self.loaded.sizes[n] == "flag" and n not in self.fixed]
            first = "the first " if e.outcome == "limit" else ""
            text = f"{first}{e.distinct:,} state{'s' if e.distinct != 1 else ''}" + "".join(f", {x}" for x in flags)
            if e.outcome == "limit" and e.distinct < max_states:
                text += f" ({e.limit})"
        taken = {n for n, times in e.taken.items() if times} | ({START} if e.distinct else set())
        return ExplorationSummary(text, false, e.seconds, frozenset(taken))

    def _explore_small(self, progress: Progress | None) -> ExplorationSummary:
        """At one size after the other, until a claim is refuted."""
        said: list[str] = []
        seconds = 0.0
        taken: frozenset[str] = frozenset()
        for level, sizes in small_sizes(self.loaded, self.fixed):
            try:
                e = self._explore(sizes, MOST_STATES, progress)
            except UserError as error:
                said.append(f"not explored: {error}")
                continue
            seconds, taken = seconds + e.seconds, taken | e.taken
            said.append(f"every size {level}: {e.text}" if level else e.text)
            if e.false is not None:
                return ExplorationSummary("; ".join(dict.fromkeys(said)), e.false, seconds, taken)
        return ExplorationSummary("; ".join(dict.fromkeys(said)), None, seconds, taken)


def proofs_of(model: LoadedModel) -> str:
    """The module of the proofs of a subsystem's model, kafkaspec.proofs.AREA.NAME; "" for another model."""
    layer, models, name = model.cls.__module__.partition("kafkaspec.models.")
    return f"kafkaspec.proofs.{name}" if models and not layer else ""


def small_sizes(model: LoadedModel, fixed: Mapping[str, int | bool]) -> Iterator[tuple[int, dict[str, int | bool]]]:
    """The sizes at which a model is explored where nobody named any, smallest first: (what every size is, or 0 if the
    model has none, all of them)."""
    flags = [n for n, kind in model.sizes.items() if kind == "flag" and n not in fixed]
    others = model.open_sizes(fixed)
    settings = list(itertools.product((False, True), repeat=len(flags)))
    if len(flags) > MOST_FLAGS:
        settings = [settings[0], settings[-1]]
    for level in SMALL if others else (0,):
        for setting in settings:
            yield level, {**dict.fromkeys(others, level), **dict(zip(flags, setting, strict=True)), **fixed}
