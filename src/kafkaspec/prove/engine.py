"""Proving an inductive invariant: every obligation, asked one by one, and what is said of those that fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from kafkaspec.errors import UserError, unknown
from kafkaspec.language import LoadedModel, Trace
from kafkaspec.prove import counterexample
from kafkaspec.prove.obligations import START, Goal, Kind, Setting, settings
from kafkaspec.prove.reachable import Reachability, reachability
from kafkaspec.prove.solver import ask, follows

Verdict = Literal["proved", "refuted", "unknown"]


def _effort(timeout_s: float) -> list[tuple[float, tuple[int, ...]]]:
    """Turns at an obligation: the budget of an attempt to prove it, then the sizes at which to look for a
    counterexample. What is quickly proved or refuted never costs the whole budget."""
    turns: list[tuple[float, tuple[int, ...]]] = [(0.1, (2,)), (0.4, (3,)), (timeout_s, (4,))]
    return [*[t for t in turns[:-1] if t[0] < timeout_s], turns[-1]]


class Progress(Protocol):
    """What is told as a proof goes on: so many obligations are done, of a total; the one at hand."""

    def __call__(self, done: float, total: float | None = None, text: str = "") -> None: ...


@dataclass(frozen=True)
class Obligation:
    """One claim after one action (or in the start), and what was found. "proved" is for every number of elements;
    "refuted" comes with a counterexample to induction; "unknown" is neither and never green."""

    action: str
    claim: str
    kind: Kind
    clauses: tuple[str, ...]
    verdict: Verdict
    queries: int
    seconds: float
    cti: Trace | None = None
    reachable: str = ""
    """What exploring at the counterexample's sizes tells: the claim is false; or its first state is reachable; or not,
    and a lemma is wanted."""
    way: Trace | None = None
    """How the broken claim, or the counterexample's first state, is reached."""


@dataclass(frozen=True)
class Proved:
    """What became of a model's obligations. Sizes in `fixed` were held; all others are arbitrary."""

    model: str
    fixed: Mapping[str, int | bool]
    obligations: tuple[Obligation, ...]
    vacuous: tuple[str, ...]
    """Actions of which no state was found that satisfies all claims and their guard: proofs about them say nothing."""
    seconds: float
    timeout_s: float
    partial: bool = False
    """Only some obligations were asked for."""
    false_lemma: Trace | None = None
    """A claim that exploring at a small size refuted before anything was proved."""
    explored: str = ""
    """At which size the claims were explored first, and what was found."""

    @property
    def complete(self) -> bool:
        """Every obligation proved, none of them vacuously, no claim refuted by exploring."""
        return (
            not self.partial
            and not self.vacuous
            and self.false_lemma is None
            and bool(self.obligations)
            and all(o.verdict == "proved" for o in self.obligations)
        )

    def by_verdict(self, verdict: Verdict) -> list[Obligation]:
        """The obligations with that verdict."""
        return [o for o in self.obligations if o.verdict == verdict]

    @property
    def queries(self) -> int:
        return sum(o.queries for o in self.obligations)

    def summary(self) -> str:
        """One line for people."""
        if self.false_lemma is not None:
            return f"{self.model}: {self.false_lemma.claim} is false, as exploring shows: nothing was proved"
        counts = {v: len(self.by_verdict(v)) for v in ("proved", "refuted", "unknown")}
        said = ", ".join(f"{n} {v}" for v, n in counts.items() if n)
        empty = (
            f"; nothing can be said of {', '.join(self.vacuous)}: its assumptions exclude each other"
            if self.vacuous
            else ""
        )
        held = ", ".join(f"{n}={v}" for n, v in self.fixed.items())
        every = "for every size" + (f" with {held}" if held else "")
        return f"{self.model}: {said} of {len(self.obligations)} obligations {every} in {self.seconds:.1f} s{empty}"


def prove(
    model: LoadedModel,
    *,
    timeout_s: float = 10.0,
    fixed: Mapping[str, int | bool] | None = None,
    only: Callable[[str, str], bool] | None = None,
    progress: Progress | None = None,
    until: Callable[[Obligation], bool] | None = None,
) -> Proved:
    """Ask every obligation (or those for which `only(action, claim)` is true; the start is the action "(start)").

    `fixed` holds some sizes, as {"FENCED": True}; all others are arbitrary. `timeout_s` is the budget of one query with
    one setting of the solver, in seconds of a quiet core. The first obligation for which `until` is true is the last
    that is asked. Raises UserError for a text that has no symbolic reading."""
    began = time.perf_counter()
    given = _fixed(model, fixed or {})
    wanted = only or (lambda action, claim: True)
    found: list[Obligation] = []
    vacuous: list[str] = []
    todo = list(settings(model, given, wanted))
    total = sum(len(s.goals) for s in todo)
    if not total:
        raise UserError(f"{model.name} has nothing to prove: no invariant, lemma, step property or limited type")
    for s in todo:
        if s.goals and not s.has_value and not _possible(model, s, given, timeout_s):
            vacuous.append(s.name)
        for g in s.goals:
            if progress is not None:
                progress(len(found), total, f"{g.action} / {g.claim}")
            found.append(_settle(model, s, g, given, timeout_s))
            if until is not None and until(found[-1]):
                break
        else:
            continue
        break
    partial = only is not None or len(found) < total
    return Proved(model.name, given, tuple(found), tuple(vacuous), time.perf_counter() - began, timeout_s, partial)


def _fixed(model: LoadedModel, fixed: Mapping[str, int | bool]) -> dict[str, int | bool]:
    for name, value in fixed.items():
        if name not in model.sizes:
            raise unknown(f"size of {model.name}", name, model.sizes)
        if isinstance(value, bool) != (model.sizes[name] == "flag") or (not isinstance(value, bool) and value < 1):
            raise UserError(f"size {name} of {model.name} is a {model.sizes[name]}: {value} is no value for it")
    return dict(fixed)


def _settle(model: LoadedModel, s: Setting, g: Goal, given: Mapping[str, int | bool], timeout_s: float) -> Obligation:
    began = time.perf_counter()
    open_parts = g.parts
    cti = None
    assumed = s.assumptions()
    spent = 0.0
    for budget, levels in _effort(timeout_s):
        rest = [
            p for p in open_parts if follows([*assumed, *p.hints], s.not_empty, p.formula, budget, spent) != "unsat"
        ]
        open_parts, spent = rest, budget
        if not open_parts:
            break
        cti = counterexample.find(model, g, given, timeout_s, levels)
        if cti is not None:
            break
    verdict: Verdict = "proved" if not open_parts else "refuted" if cti is not None else "unknown"
    trace, found = None, Reachability("")
    if cti is not None:
        trace, found = cti.trace(model, g), reachability(model, g, cti)
    return Obligation(
        g.action,
        g.claim,
        g.kind,
        g.clauses,
        verdict,
        max(1, len(g.parts)),
        time.perf_counter() - began,
        trace,
        found.text + (f"; {cti.note}" if cti is not None and cti.note else ""),
        found.way,
    )


def _possible(model: LoadedModel, s: Setting, given: Mapping[str, int | bool], timeout_s: float) -> bool:
    """Is there a state in which all that is assumed of the action holds? Only a state that was found counts."""
    from kafkaspec.prove import obligations

    nothing = lambda action, claim: False  # noqa: E731
    for sizes in counterexample.every_size(model, given):
        if s.name == START:
            at = obligations.start(model, sizes, nothing)
        else:
            at = obligations.of_action(model, s.action, sizes, nothing)
        if ask([*at.assumptions(), *at.not_empty], timeout_s).answer == "sat":
            return True
    return False
