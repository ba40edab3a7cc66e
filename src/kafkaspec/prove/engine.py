"""Proving an inductive invariant: every obligation, asked one by one, and what is said of those that fail."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, Protocol

import z3

from kafkaspec.errors import UserError, unknown
from kafkaspec.language import Claim, LoadedModel, Trace
from kafkaspec.prove import counterexample, obligations, ways
from kafkaspec.prove.counterexample import Counterexample
from kafkaspec.prove.obligations import START, Goal, Kind, Part, Setting, settings
from kafkaspec.prove.outline import AGAIN_S, Outline, Outlines, learnt_steps
from kafkaspec.prove.reachable import Reachability, reachability
from kafkaspec.prove.solver import FIRST_S, LARGEST, Budget, Question, Reply, SharedSolver
from kafkaspec.prove.values import named

Verdict = Literal["proved", "refuted", "unknown"]

SMALL = 64
"""The greatest size at which a state is looked for because Z3 names it."""
BEGIN_S = (0.12, 0.3)
"""The share of each attempt among the claims that a proof is said to begin with: whether one finds it is luck, so that
six short ones come before a longer one."""
AFTER = " after "
"""Between a claim and an action, where it is said with what the proof of one obligation begins."""
LEVELS = ((2,), (3,), (4, 1))
"""Sizes at which a counterexample is looked for before each round of attempts to prove: what is quickly proved or
refuted never costs the whole budget, and where there is none, the claims that exclude it are those to begin with. Later
rounds look at all of them."""


class Progress(Protocol):
    """What is told as a proof goes on: how many obligations are done, of how many, and the one at hand."""

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
class ProofResult:
    """What became of a model's obligations. Sizes in `fixed` were held; all others are arbitrary."""

    model: str
    fixed: Mapping[str, int | bool]
    obligations: tuple[Obligation, ...]
    vacuous: tuple[str, ...]
    """Actions that can be taken in no state in which all claims hold: proofs about them say nothing."""
    seconds: float
    timeout_s: float
    partial: bool = False
    """Only some of the obligations were asked that all claims, or those asked for, rest on."""
    false_lemma: Trace | None = None
    """A claim that exploring at a small size refuted before anything was proved."""
    explored: str = ""
    """At which sizes the claims were explored first, and what was found; or why they were not."""
    asked: tuple[str, ...] = ()
    """The claims that were asked for, where it was not all of them."""
    rests_on: tuple[str, ...] = ()
    """The other claims that their proofs assume of the state before, directly or not. They were asked too."""
    unseen: tuple[str, ...] = ()
    """Actions of which it is open whether they are vacuous: no such state was found, and none excluded."""
    explored_only: tuple[str, ...] = ()
    """Leads-to claims and witnesses, which no proof is about."""
    limiting: tuple[str, ...] = ()
    """Variables whose types have no value at some sizes: the proof is about the other sizes."""
    outcome: Verdict = field(init=False)
    """"proved": everything that was asked for, with all that it rests on; "refuted": a claim is false or not inductive,
    or an action is impossible; "unknown": neither, or only some obligations were asked."""

    def __post_init__(self) -> None:
        refuted = self.false_lemma is not None or bool(self.vacuous) or bool(self.by_verdict("refuted"))
        proved = not self.partial and bool(self.obligations) and not self.by_verdict("unknown") and not self.unseen
        object.__setattr__(self, "outcome", "refuted" if refuted else "proved" if proved else "unknown")

    @property
    def complete(self) -> bool:
        """Every obligation proved, none of them vacuously, no claim refuted by exploring: of the whole model, or of the
        claims asked for and all that they rest on."""
        return self.outcome == "proved"

    def by_verdict(self, verdict: Verdict) -> list[Obligation]:
        """The obligations with that verdict."""
        return [o for o in self.obligations if o.verdict == verdict]

    @property
    def every_size(self) -> str:
        """The sizes that it is about."""
        have = "has a value" if len(self.limiting) == 1 else "have values"
        return "for every size" + (f" at which {', '.join(self.limiting)} {have}" if self.limiting else "")

    @property
    def queries(self) -> int:
        return sum(o.queries for o in self.obligations)

    def summary(self) -> str:
        """One line for people."""
        if self.false_lemma is not None:
            return f"{self.model}: {self.false_lemma.claim} is false, as exploring shows: nothing was proved"
        counts = {v: len(self.by_verdict(v)) for v in ("proved", "refuted", "unknown")}
        said = ", ".join(f"{n} {v}" for v, n in counts.items() if n)
        empty = f"; impossible: {', '.join(self.vacuous)}" if self.vacuous else ""
        held = ", ".join(f"{n}={v}" for n, v in self.fixed.items())
        every = self.every_size + (f" with {held}" if held else "")
        return f"{self.model}: {said} of {len(self.obligations)} obligations {every} in {self.seconds:.1f} s{empty}"

    @property
    def unproved(self) -> tuple[str, ...]:
        """The claims, types and definedness of which an obligation is not proved."""
        return tuple(dict.fromkeys(o.claim for o in self.obligations if o.verdict != "proved"))


def prove(
    model: LoadedModel,
    *,
    timeout_s: float = 10.0,
    fixed: Mapping[str, int | bool] | None = None,
    claims: Sequence[str] = (),
    only: Callable[[str, str], bool] | None = None,
    progress: Progress | None = None,
    until: Callable[[Obligation], bool] | None = None,
    begins_with: Mapping[str, Sequence[str]] | None = None,
    possible_actions: Set[str] = frozenset(),
    outlines: Outlines | None = None,
    learnt: dict[tuple[str, str], Outline] | None = None,
) -> ProofResult:
    """Ask every obligation; or those of some `claims`, then those of what their proofs assume, until nothing is assumed
    that is not proved; or those for which `only(action, claim)` is true (the start is the action "(start)"), which is
    never a proof.

    `fixed` holds some sizes, as {"FENCED": True}; all others are arbitrary. `timeout_s` is the time limit of an
    obligation, in seconds of a quiet core: attempts to prove all its parts, and the search for a counterexample,
    together; how many states are explored to tell whether one is reachable follows from it too. The first obligation
    for which `until` is true is the last that is asked. The proofs of a claim in `begins_with` are looked for among
    those claims first, of all that may be assumed: they are found sooner, or else as any other. "claim after action"
    stands there for one obligation alone, before what is said of the claim. `possible_actions` were taken in a state in
    which all claims hold: it is not asked whether they can be. An obligation with an outline is asked as that says, and
    then as any other; the outlines of those that are proved are put into `learnt`. Where some claims are asked for,
    there are no outlines: the claims that they name would be asked for too, needed or not.

    Raises UserError for a text that has no symbolic reading, and for a name in `begins_with` that no claim or action
    has."""
    for key, others in (begins_with or {}).items():
        claim, _, action = key.partition(AFTER)
        for name in (claim, *others):
            if name not in _claims(model):
                raise unknown(f"claim of {model.name}", name, _claims(model))
        actions = [START, *[a.name for a in model.actions]]
        if action and action not in actions:
            raise unknown(f"action of {model.name}", action, actions)
    known = {} if claims else outlines or {}
    run = _Run(model, _fixed(model, fixed or {}), timeout_s, progress, until, begins_with or {}, known, learnt)
    run.possible = dict.fromkeys(possible_actions, True)
    if claims:
        return run.what_holds_up(asked_for(model, claims))
    run.ask(only or (lambda action, claim: True))
    return run.proved(partial=only is not None or run.stopped)


def _claims(model: LoadedModel) -> dict[str, Claim]:
    """What can be proved by name: types and definedness are always asked."""
    return {**model.lemmas, **model.invariants, **model.steps, **model.starts}


def asked_for(model: LoadedModel, claims: Sequence[str]) -> list[str]:
    """The claims of these names. A refinement's name stands for all that it claims: steps, start and types. Raises
    UserError for a name that no claim has."""
    known = _claims(model)
    out: list[str] = []
    for name in claims:
        if name not in known:
            raise unknown(f"claim of {model.name}", name, known)
        out += [name, *(f"{name}: {part}" for part in ("type", "start") if name in model.refinements)]
    return [name for name in dict.fromkeys(out) if name in known]


class _Run:
    """Obligations asked one after the other, and what was found so far."""

    def __init__(
        self,
        model: LoadedModel,
        given: Mapping[str, int | bool],
        timeout_s: float,
        progress: Progress | None,
        until: Callable[[Obligation], bool] | None,
        begins_with: Mapping[str, Sequence[str]],
        outlines: Outlines,
        learnt: dict[tuple[str, str], Outline] | None,
    ) -> None:
        self.outlines, self.learnt = outlines, learnt
        self.model, self.given, self.timeout_s, self.progress, self.until = model, given, timeout_s, progress, until
        self.began = time.perf_counter()
        self.found: list[Obligation] = []
        self.possible: dict[str, bool | None] = {}
        self.habits: dict[str, frozenset[str]] = {}
        """The claims that were needed for the last proof of a claim that was hard to find: the next one, of another
        action, begins with them."""
        self.used: set[str] | None = None
        """The claims that the proofs used, where that is wanted."""
        self.begins_with = {claim: frozenset(others) for claim, others in begins_with.items()}
        self.stopped = False

    def what_holds_up(self, claims: Sequence[str]) -> ProofResult:
        """The claims, then what they rest on: types and definedness, and the claims that the proofs used; and so on."""
        known = _claims(self.model)
        asked: set[str] = set()
        todo, first = set(claims), True
        while todo or first:
            batch, self.used = todo, set()

            def wanted(action: str, claim: str, batch: set[str] = batch, types: bool = not asked) -> bool:
                return claim in batch or (types and claim not in known)

            self.ask(wanted)
            asked |= batch
            if self.stopped or any(o.verdict != "proved" for o in self.found):
                return self.proved(partial=True, asked=claims, rests_on=[n for n in known if n in asked - {*claims}])
            todo, first = self.used - asked, False
        return self.proved(partial=False, asked=claims, rests_on=[n for n in known if n in asked - {*claims}])

    def proved(self, *, partial: bool, asked: Sequence[str] = (), rests_on: Sequence[str] = ()) -> ProofResult:
        """What was found."""
        if not partial:
            self.look(START)  # also where nothing was asked of it: where nothing begins, every claim holds
        return ProofResult(
            self.model.name,
            self.given,
            tuple(self.found),
            tuple(n for n, possible in self.possible.items() if possible is False),
            time.perf_counter() - self.began,
            self.timeout_s,
            partial,
            asked=tuple(asked),
            rests_on=tuple(rests_on),
            unseen=tuple(n for n, possible in self.possible.items() if possible is None),
            explored_only=() if asked else (*self.model.leads_to, *self.model.witnesses),
            limiting=self.model.limiting,
        )

    def ask(self, wanted: Callable[[str, str], bool]) -> None:
        """The obligations that are wanted."""
        todo = list(settings(self.model, self.given, wanted, apart=True))
        total = len(self.found) + sum(len(s.goals) for s in todo)
        if not total:
            raise UserError(
                f"{self.model.name} has nothing to prove: no invariant, lemma, step property or limited type"
            )
        for s in todo:
            if s.goals and not s.has_value:
                self.look(s.name)
            for g in s.goals:
                if self.progress is not None:
                    self.progress(len(self.found), total, f"{g.action} / {g.claim}")
                self.found.append(self.settle(s, g))
                if self.until is not None and self.until(self.found[-1]):
                    self.stopped = len(self.found) < total
                    return
            s.shared = SharedSolver()  # what was read is not wanted any more

    def look(self, action: str) -> None:
        """Whether the start, or the action, is possible."""
        if action not in self.possible:
            self.possible[action] = possible(self.model, action, self.given, self.timeout_s)

    def settle(self, s: Setting, g: Goal) -> Obligation:
        """One obligation, within its time limit."""
        began = time.perf_counter()
        budget = Budget(self.timeout_s)
        cti = None
        known = self.outlines.get((g.claim, g.action))
        questions = None if known is None else _as_before(s, g, known, budget)
        if questions is None:
            questions, cti, known = self._search(s, g, budget)
        still_open = any(q.won is None for q in questions)
        verdict: Verdict = "proved" if not still_open else "refuted" if cti is not None else "unknown"
        if self.learnt is not None and verdict == "proved" and known is not None:
            self.learnt[g.claim, g.action] = Outline(tuple(learnt_steps(questions, known.steps)), known.tree)
        if verdict == "proved" and self.used is not None and s.before.now:
            for q in questions:
                self.used |= {n.partition("#")[0] for n in q.used(self.timeout_s)}
        trace, found = None, Reachability("")
        if cti is not None:
            trace, found = cti.trace(self.model, g), reachability(self.model, g, cti, self.timeout_s)
        return Obligation(
            g.action,
            g.claim,
            g.kind,
            g.clauses,
            verdict,
            max(1, len(questions)),
            time.perf_counter() - began,
            trace,
            found.text,
            found.way,
        )

    def _search(self, s: Setting, g: Goal, budget: Budget) -> tuple[list[Question], Counterexample | None, Outline]:
        """Ask the parts of an obligation, with more patience from turn to turn, until each of them is proved, or a
        counterexample is found, or nothing is left of the budget. With them, the way that was taken."""
        begun = self.begins_with.get(f"{g.claim}{AFTER}{g.action}") or self.begins_with.get(g.claim)
        needed = begun or self.habits.get(g.claim, frozenset())
        parts, tree = g.parts, None
        if g.shows is not None:
            of_step, tree = ways.parts(s, g.shows, budget, needed)
            parts = [*parts, *of_step]
        questions = _questions(s, parts)
        for q in questions:
            if needed:
                q.needs(needed)
        still_open = [q for q in questions if not s.shared.proves(q, budget)]
        for share_s in BEGIN_S if begun else ():
            still_open = [q for q in still_open if q.round(budget, share_s, among="needed") != "unsat"]
        still_open = [q for q in still_open if q.round(budget, FIRST_S, quick=True) != "unsat"]
        cti = None
        for share_s, levels in _turns(budget):
            if not still_open:
                break
            looked = counterexample.find(self.model, g, self.given, budget, share_s, levels)
            if isinstance(looked, Counterexample):
                cti = looked
                break
            if looked is not None and not looked <= needed:
                needed |= looked
                for q in still_open:
                    q.needs(needed)
            elif len(levels) > 1 and all(q.hopeless for q in still_open):
                break
            still_open = [q for q in still_open if q.round(budget, share_s) != "unsat"]
        if any(q.won is not None and q.won[1] == "needed" for q in questions):
            self.habits[g.claim] = needed
        return questions, cti, Outline(tree=tree)


def _questions(s: Setting, parts: Sequence[Part]) -> list[Question]:
    assumed = s.assumptions()
    return [Question(assumed, p.hints, s.not_empty, p.formula, s.named, s.numbers) for p in parts]


def _as_before(s: Setting, g: Goal, known: Outline, budget: Budget) -> list[Question] | None:
    """The parts of an obligation, each proved as its outline says, or easily; None if one was not."""
    parts: Sequence[Part] | None = g.parts
    if g.shows is not None:
        of_step = ways.parts_of(s, g.shows, known.tree)
        parts = None if of_step is None else [*g.parts, *of_step]
    if parts is None:
        return None
    steps = {step.part: step for step in known.steps}
    questions = _questions(s, parts)
    for i, q in enumerate(questions):
        step = steps.get(i)
        if step is not None:
            found = q.follows(budget, AGAIN_S, step.options, step.among)
        else:
            found = s.shared.proves(q, budget) or q.round(budget, FIRST_S, quick=True) == "unsat"
        if not found:
            return None
    return questions


def _turns(budget: Budget) -> Iterator[tuple[float, tuple[int, ...]]]:
    """The share of each turn at an obligation, and the sizes at which a counterexample is looked for."""
    for i, share_s in enumerate(budget.shares()):
        yield share_s, LEVELS[i] if i < len(LEVELS) else tuple(n for level in LEVELS for n in level)


def _fixed(model: LoadedModel, fixed: Mapping[str, int | bool]) -> dict[str, int | bool]:
    model.check_given(fixed)
    return dict(fixed)


def possible(model: LoadedModel, action: str, given: Mapping[str, int | bool], timeout_s: float) -> bool | None:
    """Is there a state in which all that is assumed of the start or the action holds? True if one was found at
    some sizes, False if there is none at any, None if neither is known."""
    budget = Budget(timeout_s)

    def asked(sizes: Mapping[str, int | bool]) -> Reply:
        at = obligations.setting(model, action, sizes, lambda action, claim: False)
        return budget.ask([*at.assumptions(), *at.not_empty], timeout_s / LARGEST)

    for sizes in counterexample.every_size(model, given):
        if asked(sizes).answer == "sat":
            return True
    everywhere = asked(given)
    if everywhere.answer == "unsat":
        return False
    names = model.open_sizes(given)
    tried = [dict(zip(names, sizes, strict=True)) for sizes in itertools.product((1, 2, 3), repeat=len(names))]
    if everywhere.model is not None:
        values = {n: everywhere.model.eval(z3.Int(named(n))) for n in names}
        wanted = {n: v.as_long() for n, v in values.items() if z3.is_int_value(v) and 1 <= v.as_long() <= SMALL}
        tried.insert(0, dict.fromkeys(names, 2) | wanted)
    return True if any(asked({**given, **sizes}).answer == "sat" for sizes in tried if not budget.over) else None
