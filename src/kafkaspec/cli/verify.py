"""`kafkaspec verify`: everything that is claimed, established anew, as one table.

A row says one thing in one of the words that are never mixed: *complete* (clauses), *explored* (exhaustively, at the
printed size), *proved* (for all sizes), *tested* (seeds so many), *judged* (recordings). A row that could not be made
is red: unknown is never green.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kafkaspec import forms, subsystem
from kafkaspec.audit.finding import Severity
from kafkaspec.cli.output import Progress, progress, tell
from kafkaspec.errors import UserError
from kafkaspec.subsystem import Subsystem

STEPS = 100
"""Operations a seed, spec beside impl."""
PIPED = 30
"""Histories on our implementation behind a pipe."""
AUDIT = "audit"
"""The name under which the audit's rows are asked for; no subsystem's."""
ALTERED = 0.02
"""The share of a recording's values that are altered, one at a time; the tests alter more."""


@dataclass(frozen=True)
class Row:
    """One claim, established or not. `why` explains a failure in plain lines, "" if there is none."""

    subsystem: str
    what: str
    word: str
    detail: str
    seconds: float
    why: str = ""
    could_judge: bool = True

    @property
    def ok(self) -> bool:
        return not self.why


@dataclass(frozen=True)
class _Claim:
    """What a check found: as in Row, without what is the same for all."""

    what: str
    word: str
    detail: str
    why: str = ""
    could_judge: bool = True


Check = Callable[[Subsystem, int, Progress], Iterator[_Claim]]


def run(wanted: list[str], *, seeds: int, json: bool) -> int:
    """Verify the named subsystems, or all. 0 if every row is green, 1 if a claim is false, else 2."""
    known = subsystem.subsystems()
    names = wanted or [*known, AUDIT]
    unknown = [n for n in names if n != AUDIT and n not in known]
    chosen = [subsystem.find(n) for n in unknown + [n for n in names if n in known]]
    rows: list[Row] = []
    for s in chosen:
        rows += _rows(s.name, CHECKS, s, seeds)
    if AUDIT in names:
        rows += _rows(AUDIT, (_real_log_directories, _damaged_log_directories), None, seeds)
    tell(rows, json=json, together=True)
    if any(not r.ok and r.could_judge for r in rows):
        return 1
    return 0 if all(r.ok for r in rows) else 2


def _rows(name: str, checks: Sequence[Callable[..., Iterator[_Claim]]], *about: Any) -> Iterator[Row]:
    for check in checks:
        with progress(f"{name}: {check.__name__.strip('_').replace('_', ' ')}") as bar:
            started = time.perf_counter()
            try:
                for c in check(*about, bar):
                    now = time.perf_counter()
                    yield Row(name, c.what, c.word, c.detail, now - started, c.why, c.could_judge)
                    started = now
            except UserError as e:
                what = check.__name__.strip("_").replace("_", " ")
                yield Row(name, what, "unknown", "", time.perf_counter() - started, str(e), could_judge=False)


# ---- the checks, each a list of claims -------------------------------------------------------------------------------
def _clauses(s: Subsystem, seeds: int, bar: Progress) -> Iterator[_Claim]:
    forms.load()
    missing = forms.incomplete(s.prefix)
    reasons = sum(len(c.without) for c in s.clauses)
    kinds = ", ".join(forms.forms_known())
    detail = f"{len(s.clauses)} clauses in {kinds}" + (f"; left out for a reason: {reasons}" if reasons else "")
    yield _Claim("clauses", "complete", detail, "\n".join(missing))


def _models(s: Subsystem, seeds: int, bar: Progress) -> Iterator[_Claim]:
    for checked in getattr(s.layer("models"), "MODELS", ()):
        result = checked.run(bar)
        e = result.exploration
        at = " ".join(f"{n}={str(v).lower()}" for n, v in e.sizes.items())
        counts = f"{e.distinct:,} distinct, {e.generated:,} generated, depth {e.depth}"
        reached = sum(t is not None for t in e.witnesses.values())
        taken = sum(n > 0 for n in e.taken.values())
        seen = f"{reached} of {len(e.witnesses)} witnesses, {taken} of {len(e.taken)} actions"
        promises = f", {len(e.model.leads_to)} leads-to" if e.model.leads_to and not e.symmetry else ""
        detail = f"{at}: {counts}; {seen}{promises}"
        yield _Claim(f"model {e.model.name}", "explored", detail, result.why, could_judge=e.outcome != "limit")


def _proofs(s: Subsystem, seeds: int, bar: Progress) -> Iterator[_Claim]:
    for proof in getattr(s.layer("proofs"), "PROOFS", ()):
        p = proof.run(bar)
        held = " ".join(f"{n}={str(v).lower()}" for n, v in p.fixed.items())
        explored = f"; explored first: {p.explored}" if p.explored else ""
        detail = f"{len(p.by_verdict('proved'))} of {len(p.obligations)} obligations, all sizes"
        open_ones = [
            f"{o.verdict}: {o.claim} after {o.action} {o.reachable}" for o in p.obligations if o.verdict != "proved"
        ]
        why = "" if p.complete else "\n".join([p.summary(), *open_ones])
        refuted = p.false_lemma is not None or bool(p.by_verdict("refuted"))
        yield _Claim(
            f"invariants of {p.model}",
            "proved",
            f"{detail} {held}".rstrip() + explored,
            why,
            could_judge=p.complete or refuted,
        )


def _spec_beside_model(s: Subsystem, seeds: int, bar: Progress) -> Iterator[_Claim]:
    from kafkaspec.lockstep.exhaustive import commute

    for how in getattr(s.spec, "CORRESPONDENCES", ()):
        c = commute(s.spec.machine, how)
        detail = (
            f"{c.states:,} of {c.reachable:,} model states, {c.steps:,} steps, {sum(c.refusals.values()):,} refusals"
        )
        why = str(c.problem) if c.problem is not None else ""
        yield _Claim(f"spec beside {how.model.__name__}", "explored", detail, why)


def _spec_beside_impl(s: Subsystem, seeds: int, bar: Progress) -> Iterator[_Claim]:
    from kafkaspec.lockstep.walk import Coverage, shrink, walk

    impl = s.layer("impl")
    if impl is None:
        yield _Claim("spec beside impl", "unknown", "there is no impl", "there is no impl", could_judge=False)
        return
    machine = s.spec.machine
    covered, calls, why = Coverage(), 0, ""
    for seed in range(seeds):
        bar(seed, seeds, "")
        w = walk(machine, impl.Driver(), seed, STEPS)
        covered.add(w.coverage)
        calls += w.steps
        if w.failure is not None:
            why = str(shrink(machine, impl.Driver(), w.failure))
            break
    idle = sorted(n for n, op in machine.operations.items() if op.generated and not covered.operations[n])
    if not why and idle and seeds >= 50:
        why = f"never called in {seeds} seeds: {', '.join(idle)}"
    detail = f"{seeds} seeds, {calls:,} calls, {len(covered.operations)} operations"
    yield _Claim("spec beside impl", "tested", detail, why)


def _impl_behind_a_pipe(s: Subsystem, seeds: int, bar: Progress) -> Iterator[_Claim]:
    """Our implementation, judged as anybody else's: the judge and its protocol accept what is right."""
    from kafkaspec.judge.campaign import judge
    from kafkaspec.judge.result import Job

    if s.layer("impl") is None:
        return
    command = shlex.join([sys.executable, "-m", "kafkaspec", "serve", s.name])
    judged = judge(Job(s.name, command, generator="uniform"), examples=PIPED, progress=bar)
    detail = f"{judged.tally.histories} histories, {judged.tally.calls:,} calls: {judged.verdict}"
    why = "\n".join([judged.why, *(str(r.history) for r in judged.tally.rejections.values())]).strip()
    yield _Claim("impl behind a pipe", "judged", detail, why, could_judge=judged.verdict != "could not judge")


def _recordings(s: Subsystem, seeds: int, bar: Progress) -> Iterator[_Claim]:
    from kafkaspec.judge.alter import altered

    for r in getattr(s.spec, "RECORDINGS", ()):
        verdict = r.judge(s.spec.machine)
        met = ", ".join(f"{id} ×{m.count}" for id, m in verdict.deviations.items())
        got = verdict.verdict if verdict.step is None else f"{verdict.verdict} from step {verdict.step}"
        detail = f"{verdict.events:,} events: {got}" + (f"; known deviations {met}" if met else "")
        why = r.wrong(verdict)
        yield _Claim(r.file, "judged", detail, f"{why}\n{verdict.text()}" if why else "")
        found = altered(s.spec.machine, r.path, share=ALTERED, release=r.release)
        holes = [f"{r.file}:{a.line}: {a.path} altered to {a.after!r}: {a.verdict}" for a in found.accepted]
        rejected = found.tried - len(holes) - found.righted
        detail = f"{found.tried:,} copies with one value changed: {rejected:,} rejected"
        detail += f", {found.righted:,} put right where a known deviation was" if found.righted else ""
        yield _Claim(f"{r.file}, altered", "judged", detail, "\n".join(holes))


# ---- the audit, which is no one subsystem's --------------------------------------------------------------------------
def _real_log_directories(s: None, seeds: int, bar: Progress) -> Iterator[_Claim]:
    """What real brokers left is sound, and is what their clients saw."""
    from itertools import groupby

    from kafkaspec.audit import recorded
    from kafkaspec.audit.engine import audit

    for recording, of in groupby(recorded.recorded(), lambda r: r.recording):
        wrong, partitions, records, leftovers, old, told = list[str](), 0, 0, 0, 0, 0
        for r in of:
            bar(0, None, r.name)
            with r.unpacked() as directories:
                a = audit(directories, strict=True)
                wrong += recorded.misjudged(r, a)
                truth = r.truth
                if truth is not None:
                    wrong += recorded.disagreements(truth, directories) + recorded.miscounted(r, truth, a)
                    told += sum(len(x) for outcomes in truth["acknowledged"].values() for x in outcomes.values())
            partitions += len(a.partitions)
            records += sum(p.records for p in a.partitions)
            leftovers += a.count(Severity.LEFTOVER)
            old += a.count(Severity.UNJUDGED)
        detail = f"{partitions} partitions, {records:,} records: sound"
        detail += f", {leftovers} left-overs of crashes" if leftovers else ""
        detail += f", {old} segments of old formats" if old else ""
        detail += f"; {told:,} acknowledged records as their clients saw them" if told else ""
        yield _Claim(f"log directories {recording}", "judged", detail, "\n".join(wrong))


def _damaged_log_directories(s: None, seeds: int, bar: Progress) -> Iterator[_Claim]:
    """Damage is found where it is, and nothing beside it."""
    from kafkaspec.audit import recorded
    from kafkaspec.audit.engine import audit

    r = next(r for r in recorded.recorded() if r.recording == "single-basic")
    with r.unpacked() as directories:
        n, wrong = recorded.missed(directories, 0, lambda d: audit(d, strict=True))
    detail = f"{n} copies with one thing damaged: each found at its byte or line, and nothing else"
    yield _Claim(f"log directories {r.recording}, damaged", "judged", detail, "\n".join(wrong))


CHECKS: tuple[Check, ...] = (
    _clauses,
    _models,
    _proofs,
    _spec_beside_model,
    _spec_beside_impl,
    _impl_behind_a_pipe,
    _recordings,
)
