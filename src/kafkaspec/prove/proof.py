"""A proof that the project keeps: a model, what is held, and the size at which its claims are explored first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kafkaspec.language import LoadedModel, Model, load
from kafkaspec.prove.engine import Progress, Proved, prove


@dataclass(frozen=True)
class Proof:
    """Every obligation of the model must be proved, for every size but those in `fixed`.

    At the sizes `explored_at` all claims, the lemmas among them, are explored before anything is proved: a false one is
    found there in a second, with the shortest way to it, instead of as a proof that does not come."""

    model: type[Model] | LoadedModel
    timeout_s: float = 10.0
    explored_at: Mapping[str, int | bool] | None = None
    fixed: Mapping[str, int | bool] = field(default_factory=dict)
    note: str = ""

    @property
    def loaded(self) -> LoadedModel:
        """The model as a graph."""
        return self.model if isinstance(self.model, LoadedModel) else load(self.model)

    def run(self, progress: Progress | None = None) -> Proved:
        """Explore, then prove. Raises UserError for a model that cannot be explored with its ghosts."""
        model, explored = self.loaded, ""
        if self.explored_at is not None:
            from kafkaspec.explore import explore

            sizes = {**self.explored_at, **self.fixed}
            e = explore(model, sizes, ghosts=True, liveness=False, deadlock=True, progress=progress)
            explored = f"{e.distinct:,} states" + "".join(f", {n}={v}" for n, v in sizes.items())
            if e.outcome == "violation":
                return Proved(
                    model.name, self.fixed, (), (), e.seconds, self.timeout_s, false_lemma=e.trace, explored=explored
                )
            if e.outcome == "limit":
                explored += f" ({e.limit})"
        proved = prove(model, timeout_s=self.timeout_s, fixed=self.fixed, progress=progress)
        return replace(proved, explored=explored)
