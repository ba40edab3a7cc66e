"""Everything that is claimed, established again, a row a claim.

A row says one thing in one of the words that are never mixed: *complete* (clauses), *explored* (exhaustively, at the
printed size), *proved* (for all sizes), *tested* (with the printed number of seeds), *judged* (recordings). A row that
could not be made is red: unknown is never green. What a subsystem's rows cost is *counted*, and may not grow beyond its
budget.
"""

from __future__ import annotations

import inspect
import itertools
import os
import re
import shlex
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, BinaryIO

import icontract

from kafkaspec import workers
from kafkaspec.audit.finding import Severity
from kafkaspec.contract import subsystem, traceability
from kafkaspec.contract.project import line_of, project, unforeseen
from kafkaspec.contract.subsystem import Subsystem
from kafkaspec.errors import ENDINGS, UserError, unknown
from kafkaspec.verify import budget
from kafkaspec.verify.held import PastResults
from kafkaspec.verify.row import Row, Unit

STEPS = 100
"""Operations a seed, impl against spec."""
PIPED = 30
"""Histories on our implementation behind a pipe."""
WALKED = "impl against spec"
"""The check that has seeds."""
AUDIT = "audit"
"""The name under which the audit's rows are asked for; no subsystem's."""
SIMULATED = 6
"""Seeds of each scenario: two by each schedule. `kafkaspec simulate` runs more."""
AUDITED_BY_TESTS = frozenset({"cluster-faults"})
"""Recordings of log directories that `make test` audits instead of `verify`: `cluster-kills` is of the same kind."""
ALTERED = 0.02
"""The share of a recording's values that are altered, one at a time; the tests alter more."""


@dataclass(frozen=True)
class _Claim:
    """What a check found: as in Row, without what is the same for all."""

    what: str
    word: str
    detail: str
    why: str = ""
    could_judge: bool = True
    work: Mapping[str, int] = field(default_factory=dict)
    again: str = ""
    """the command that shows why, where there is a better one than the check itself"""


Progress = Callable[..., None]
"""Called as progress(done, total, text)."""
Check = Callable[[Subsystem, int, int], Iterator[_Claim]]
"""Of a subsystem, at which of its things, with how many seeds."""


def verify(
    wanted: Sequence[str],
    seeds: int,
    *,
    only: str | None = None,
    jobs: int = 0,
    changed: bool = False,
    progress: Progress | None = None,
) -> list[Row]:
    """The rows of the named subsystems, or of all and the audit, from this process or from `jobs` others, where what
    ends costs its own rows alone; of one check, if `only` names it. With `changed`, what nothing has changed for since
    it last held is not asked again, and the row says so. Raises UserError for an unknown name."""
    store = PastResults()
    todo = _todo(wanted, only, jobs)
    rows: dict[Unit, list[Row]] = {u: kept for u in todo if changed and (kept := store.of(u, seeds))}
    left = sorted((u for u in todo if u not in rows), key=store.seconds, reverse=True)
    try:
        for unit, found in _each(left, seeds, jobs):
            rows[unit] = found
            store.note(unit, seeds, found)
            if progress is not None:
                progress(len(rows), len(todo), f"{unit.subsystem}: {found[0].what}" if found else "")
    finally:
        store.write()
    out = [row for u in todo for row in rows[u]]
    if only is not None:
        return out
    each_of = itertools.groupby(out, lambda r: r.subsystem)
    return [row for name, of in each_of for row in _with_cost(name, list(of), seeds)]


def _with_cost(name: str, rows: list[Row], seeds: int) -> list[Row]:
    """A subsystem's rows, and one more: what they cost."""
    work = sum((Counter(r.work) for r in rows), Counter[str]())
    if name == AUDIT or not work:
        return rows
    why = "\n".join(budget.over(name, work))
    again = f"kafkaspec verify {name} --seeds {seeds}" if why else ""
    return [*rows, Row(name, "cost", "counted", budget.told(name, work), 0.0, why, work=dict(work), again=again)]


def units(wanted: Sequence[str] = (), only: str | None = None) -> list[Unit]:
    """The work for the named subsystems, or for all and the audit, in the order of the table; that of one check, if
    `only` names it. Raises UserError for an unknown name, and if nothing is left."""
    if only is not None:
        if only not in (*CHECKS, *AUDITED):
            raise unknown("check", only, [*CHECKS, *AUDITED])
        if found := [u for u in units(wanted) if u.check == only]:
            return found
        raise UserError(f"{', '.join(wanted)}: there is nothing for the check '{only}'")
    names = list(wanted) or [*subsystem.subsystems(), AUDIT]
    chosen = [subsystem.find(n) for n in names if n != AUDIT]
    out = [Unit(s.name, c, i) for s in chosen for c, (many, _) in CHECKS.items() for i in range(many(s))]
    if AUDIT in names:
        out += [Unit(AUDIT, c, i) for c, (many, _) in AUDITED.items() for i in range(many())]
    return out


def established(unit: Unit, seeds: int) -> tuple[Unit, list[Row]]:
    """The rows of a unit."""
    if unit.subsystem == AUDIT:
        claims = AUDITED[unit.check][1](unit.which)
    else:
        claims = CHECKS[unit.check][1](subsystem.find(unit.subsystem), unit.which, seeds)
    out, started = list[Row](), time.perf_counter()
    try:
        for c in claims:
            now = time.perf_counter()
            again = (c.again or _again(unit.subsystem, unit.check, seeds)) if c.why else ""
            took = now - started
            out.append(
                Row(unit.subsystem, c.what, c.word, c.detail, took, c.why, c.could_judge, work=c.work, again=again)
            )
            started = now
    except UserError as e:
        out.append(_failed(unit, seeds, started, str(e), could_judge=False))
    except icontract.ViolationError as e:
        said = re.search(r"[A-Z]{3}-\d+ .*", str(e), re.DOTALL)
        out.append(_failed(unit, seeds, started, f"the spec breaks a contract of its own\n{said[0] if said else e}"))
    except ENDINGS:
        raise
    except BaseException as e:  # SystemExit too: what is asked ends nobody's process
        out.append(_failed(unit, seeds, started, _unforeseen(e), could_judge=False))
    return unit, out


def _unforeseen(e: BaseException) -> str:
    """An error of the user's own subsystem, or a bug of ours, in a line; its calls on standard error, where they are
    asked for."""
    if os.environ.get("KAFKASPEC_TRACEBACK"):
        traceback.print_exception(e)
    return f"{line}: {type(e).__name__}: {e}" if (line := line_of(e)) else unforeseen(e)


def _failed(unit: Unit, seeds: int, started: float, why: str, could_judge: bool = True) -> Row:
    """The row of a check that came to no claim."""
    took, again = time.perf_counter() - started, _again(unit.subsystem, unit.check, seeds)
    return Row(unit.subsystem, unit.check, "unknown", "", took, why, could_judge, again=again)


def _again(name: str, check: str, seeds: int) -> str:
    """The command that asks a check of a subsystem again; only walks have seeds."""
    walked = ["--seeds", str(seeds)] if check == WALKED else []
    return shlex.join(["kafkaspec", "verify", name, "--only", check, *walked])


def _todo(wanted: Sequence[str], only: str | None, jobs: int) -> list[Unit]:
    """`units`, which imports the subsystems' files: where processes are used, and some are not ours, in one of them.
    What is imported here is not imported in each process once more."""
    if not jobs or project() is None:
        return units(wanted, only)
    (found,) = workers.each(
        _units, [(wanted, only)], 1, lambda _, how: UserError(f"the process that imported the subsystems {how}")
    )
    if isinstance(found, UserError):
        raise found
    return found


def _units(asked: tuple[Sequence[str], str | None], _say: workers.Say) -> list[Unit] | UserError:
    try:
        return units(*asked)
    except UserError as e:
        return e
    except ENDINGS:
        raise
    except BaseException as e:
        return UserError(_unforeseen(e))


def _each(left: Sequence[Unit], seeds: int, jobs: int) -> Iterator[tuple[Unit, list[Row]]]:
    """The rows of each, as they are ready."""

    def ended(unit: Unit, how: str) -> tuple[Unit, list[Row]]:
        why = f"the process that was at it {how}, before it could say more"
        return unit, [_failed(unit, seeds, time.perf_counter(), why, could_judge=False)]

    do = partial(_done, seeds)
    if jobs:
        yield from workers.each(do, left, jobs, ended)
    else:
        yield from map(do, left)


def _done(seeds: int, unit: Unit, _say: workers.Say | None = None) -> tuple[Unit, list[Row]]:
    """The rows of a unit. Cycles are looked for seldom: there are few among many objects that stay, and looking took a
    tenth of the time."""
    with workers.few_collections():
        return established(unit, seeds)


# ---- the checks, each a list of claims -------------------------------------------------------------------------------
def _clauses(s: Subsystem, which: int, seeds: int) -> Iterator[_Claim]:
    traceability.load(s.prefix)
    missing = [
        *traceability.incomplete(s.prefix),
        *traceability.withdrawn(s.prefix),
        *_saying_nothing(s),
        *_citing_the_example(s),
    ]
    reasons = sum(len(c.without) for c in s.clauses)
    forms = f", {len(missing)} {'gap' if len(missing) == 1 else 'gaps'}" if missing else " in all their forms"
    detail = f"{len(s.clauses)} clauses{forms}" + (f"; left out for a reason: {reasons}" if reasons else "")
    yield _Claim("clauses", "complete", detail, "\n".join(missing))


def _saying_nothing(s: Subsystem) -> Iterator[str]:
    """What looks like a part of the spec or of a model, and asks nothing."""
    from kafkaspec.language.parts import nodes, variables

    machine = s.spec.machine
    parameters = {f"init:{p}" for p in inspect.signature(machine.initial).parameters}
    for op in machine.operations.values():
        parameters |= {*op.parameters.values(), *(f"{op.name}:{p}" for p in op.parameters.values())}
        if not op.clauses and not op.environment:
            yield f"the operation {op.name} states no clause"
    for name in sorted(machine.candidates.keys() - parameters):
        yield f"the candidates of {name} are of no operation's parameter (those of `initial` are init:{name})"
    for model in {c.name: c.loaded for c in _of(s, "models", "MODELS")}.values():
        for claim in (*model.invariants.values(), *model.lemmas.values(), *model.steps.values()):
            if claim.clauses and not variables(nodes(claim.expr)):
                yield f"{model.name}.{claim.name} reads no variable: it says nothing of {', '.join(claim.clauses)}"


@cache
def _example() -> tuple[str, str]:
    """What the rules that `kafkaspec new` writes give as their source, and the text that has them."""
    text = (subsystem.FILES / "cli" / "skeleton" / "spec.py.j2").read_text("utf-8")
    source = re.search(r'^SOURCE = "(.+)"$', text, re.MULTILINE)
    assert source is not None
    return source[1], " ".join(text.split())


def _citing_the_example(s: Subsystem) -> Iterator[str]:
    """Rules of somebody's own that still have the source of those which stood there before."""
    source, text = _example()
    for c in s.clauses:
        if c.source == source and c.sentence not in text:
            yield f"{c.id} is no rule of {source}, and cites it as its source: whose rule is it?"


def _explored(s: Subsystem) -> list[Any]:
    """Its models at their sizes, but for those that are left to the long checks."""
    return [checked for checked in _of(s, "models", "MODELS") if not checked.deep]


def _models(s: Subsystem, which: int, seeds: int) -> Iterator[_Claim]:
    for checked in [_explored(s)[which]]:
        result = checked.run(threads=1)
        e = result.exploration
        at = " ".join(f"{n}={str(v).lower()}" for n, v in e.sizes.items())
        counts = f"{e.distinct:,} distinct, {e.generated:,} generated, depth {e.depth}"
        reached = sum(t is not None for t in e.witnesses.values())
        taken = sum(n > 0 for n in e.taken.values())
        seen = f"{reached} of {len(e.witnesses)} witnesses, {taken} of {len(e.taken)} actions"
        promises = f", {len(e.model.leads_to)} leads-to" if e.model.leads_to and not e.symmetry else ""
        detail = f"{at}: {counts}; {seen}{promises}"
        known, work = e.outcome != "limit", {budget.TRANSITIONS: e.generated}
        broken = any(f.is_claim for f in result.findings)  # by what `explore` shows too: it knows no pinned counts
        again = f"kafkaspec explore {s.name}:{e.model.name}" if broken else ""
        yield _Claim(f"model {e.model.name}", "explored", detail, result.why, known, work, again)


def _proofs(s: Subsystem, which: int, seeds: int) -> Iterator[_Claim]:
    for proof in [_of(s, "proofs", "PROOFS")[which]]:
        p = proof.run()
        held = " ".join(f"{n}={str(v).lower()}" for n, v in p.fixed.items())
        explored = f"; explored first: {p.explored}" if p.explored else ""
        detail = f"{len(p.by_verdict('proved'))} of {len(p.obligations)} obligations, all sizes"
        open_ones = [
            f"{o.verdict}: {o.claim} after {o.action} {o.reachable}" for o in p.obligations if o.verdict != "proved"
        ]
        why = "" if p.complete else "\n".join([p.summary(), *open_ones])
        refuted = p.false_lemma is not None or bool(p.by_verdict("refuted"))
        fixed = "".join(f" -s {w}" for w in held.split())
        again = f"kafkaspec prove {s.name}:{p.model}{fixed} --timeout {proof.timeout_s:g}"
        if not isinstance(proof.model, type):  # of all that its class claims, which `prove` asks, a part
            again = f"kafkaspec verify {s.name} --only proofs"
        yield _Claim(
            f"invariants of {p.model}",
            "proved",
            f"{detail} {held}".rstrip() + explored,
            why,
            could_judge=p.complete or refuted,
            work={budget.OBLIGATIONS: len(p.obligations)},
            again="" if p.false_lemma is not None else again,  # which is found at the sizes that the proof names
        )


def _compared(s: Subsystem) -> list[Any]:
    """How its spec and its models say the same, but for what is left to tests."""
    return [how for how in s.refinements if not how.deep]


def _spec_against_model(s: Subsystem, which: int, seeds: int) -> Iterator[_Claim]:
    from kafkaspec.lockstep.exhaustive import check_refinement

    for how in [_compared(s)[which]]:
        c = check_refinement(s.spec.machine, how)
        detail = (
            f"{c.states:,} of {c.reachable:,} model states, {c.steps:,} steps, {sum(c.refusals.values()):,} refusals"
        )
        why = str(c.problem) if c.problem is not None else ""
        work = {budget.CALLS: c.steps + sum(c.refusals.values()) + c.stutters}
        yield _Claim(f"spec against {how.model.__name__}", "explored", detail, why, work=work)


def _drivers_against_spec(s: Subsystem, which: int, seeds: int) -> Iterator[_Claim]:
    from kafkaspec.lockstep.walk import Answers, Coverage, shrink, walk

    if not s.pairs():
        nothing = "there is neither impl nor audit"
        yield _Claim(WALKED, "unknown", nothing, nothing, could_judge=False)
    for pair in s.pairs()[which : which + 1]:
        covered, calls, why, again, answers = Coverage(), 0, "", "", Answers(pair.machine)
        share = 1 if pair.layer == "impl" else 4  # questions: there are no states to come to
        seeds = -(-seeds // share)
        with workers.few_collections():
            for seed in range(seeds):
                w = walk(pair.machine, pair.driver(), seed, STEPS, answers=answers)
                covered.add(w.coverage)
                calls += w.steps
                if w.failure is not None:
                    why = str(shrink(pair.machine, pair.driver(), w.failure))
                    again = _again(s.name, WALKED, share * seed + 1)
                    break
        idle = sorted(n for n, op in pair.machine.operations.items() if op.generated and not covered.operations[n])
        if not why and idle and seeds >= 50:
            why = f"never called in {seeds} seeds: {', '.join(idle)}"
        n = len(covered.operations)
        detail = f"{seeds} seeds, {calls:,} calls, {n} operation{'s' * (n != 1)}"
        yield _Claim(f"{pair.layer} against spec", "tested", detail, why, work={budget.CALLS: calls}, again=again)


def _impl_behind_a_pipe(s: Subsystem, which: int, seeds: int) -> Iterator[_Claim]:
    """Our implementation, judged as anybody else's: the judge and its protocol accept what is right. It answers from a
    child of this process, which is there at once."""
    from kafkaspec.judge.campaign import judge
    from kafkaspec.judge.child import ChildProcess
    from kafkaspec.judge.result import Job
    from kafkaspec.judge.serve import serve

    pair = s.pairs()[0]
    driver = pair.driver()  # here, so that what it raises is told as of any other row

    def answer(source: BinaryIO, sink: BinaryIO) -> None:
        serve({s.name: (pair.machine, driver)}, source, sink)

    command = shlex.join([sys.executable, "-m", "kafkaspec", "serve", s.name])
    # it is no campaign, and answers for the protocol: how much was asked is in the row
    job = Job(s.name, command, generator="uniform", min_calls=0, min_coverage=0.0)
    judged = judge(job, examples=PIPED, process=lambda: ChildProcess(answer))
    detail = f"{judged.tally.histories} histories, {judged.tally.calls:,} calls: {judged.verdict}"
    last_words = judged.tally.trouble.stderr if judged.tally.trouble is not None else ()
    rejections = sorted((r.history for r in judged.tally.rejections.values()), key=lambda h: len(h.records))
    first = {h.clause: h for h in reversed(rejections)}  # the shortest by each clause
    why = "\n".join([judged.why, *last_words, *map(str, reversed(first.values()))]).strip()
    known, work = judged.verdict != "could not judge", {budget.CALLS: judged.tally.calls}
    served = replace(judged, job=replace(judged.job, command=f"kafkaspec serve {s.name}"))
    yield _Claim("impl behind a pipe", "judged", detail, why, could_judge=known, work=work, again=served.again)


def _recordings(s: Subsystem, which: int, seeds: int) -> Iterator[_Claim]:
    from kafkaspec.judge.alter import altered
    from kafkaspec.judge.recorded import check_recording, unexpected

    for r in [s.recordings[which]]:
        verdict = check_recording(r, s.spec.machine)
        met = ", ".join(f"{id} ×{m.count}" for id, m in verdict.deviations.items())
        got = verdict.verdict if verdict.step is None else f"{verdict.verdict} from step {verdict.step}"
        detail = f"{verdict.events:,} events: {got}" + (f"; known deviations {met}" if met else "")
        why = unexpected(r, verdict)
        work = {budget.EVENTS: verdict.events}
        yield _Claim(r.file, "judged", detail, f"{why}\n{verdict.text()}" if why else "", work=work)
        found = altered(s.spec.machine, r.path, share=ALTERED, release=r.release)
        holes = [f"{r.file}:{a.line}: {a.path} altered in {a.after!r}: {a.verdict}" for a in found.accepted]
        rejected = found.tried - len(holes) - found.righted
        detail = f"{found.tried:,} copies with one value changed: {rejected:,} rejected"
        detail += f", {found.righted:,} put right where a known deviation was" if found.righted else ""
        yield _Claim(f"{r.file}, altered", "judged", detail, "\n".join(holes), work={budget.EVENTS: found.tried})


def _scenarios(s: Subsystem) -> list[Any]:
    """Those of its simulation."""
    from kafkaspec.simulate import Scenario

    module = s.layer("impl", "simulation")
    return [] if module is None else [v for v in vars(module).values() if isinstance(v, Scenario)]


def _simulations(s: Subsystem, which: int, seeds: int) -> Iterator[_Claim]:
    """Whole systems of its implementation, every step judged by the rules."""
    from kafkaspec.simulate import RandomChoices, run
    from kafkaspec.simulate.choices import of_seed

    for scenario in [_scenarios(s)[which]]:
        steps, counts, why, again = 0, Counter[str](), "", ""
        for seed in range(SIMULATED):
            r = run(scenario, RandomChoices(scenario, seed, "mixed"))
            steps += len(r.steps)
            counts.update(r.counts)
            if r.violation is not None:
                why = f"seed {seed} breaks {r.violation.rule}: {r.violation.what}"
                again = f"kafkaspec simulate {scenario.name} --seed {seed} --schedule {of_seed('mixed', seed)}"
                break
        never = [what for what, n in counts.items() if n == 0]
        detail = f"{SIMULATED} seeds, {steps:,} steps" + (f"; never happened: {', '.join(never)}" if never else "")
        work = {budget.STEPS: steps}
        yield _Claim(f"simulation {scenario.name}", "tested", detail, why, work=work, again=again)


# ---- the audit, which is no one subsystem's --------------------------------------------------------------------------
def _log_directories() -> list[str]:
    from kafkaspec.audit import recorded

    return list(dict.fromkeys(r.recording for r in recorded.recorded() if r.recording not in AUDITED_BY_TESTS))


def _real_log_directories(which: int) -> Iterator[_Claim]:
    """What real brokers left is sound, and is what their clients saw."""
    yield audited_recording(_log_directories()[which])


def audited_recording(recording: str) -> _Claim:
    """The same of one recording."""
    from kafkaspec.audit import recorded
    from kafkaspec.audit.engine import audit

    of = [r for r in recorded.recorded() if r.recording == recording]
    wrong, partitions, records, leftovers, old, told = list[str](), 0, 0, 0, 0, 0
    for r in of:
        with r.unpacked() as directories:
            a = audit(directories, strict=True)
            wrong += recorded.wrongly_audited(r, a)
            truth = r.truth
            if truth is not None:
                read = cache(recorded.contents)
                wrong += recorded.disagreements(truth, directories, read) + recorded.miscounted(r, truth, a, read)
                told += sum(len(x) for outcomes in truth["acknowledged"].values() for x in outcomes.values())
        partitions += len(a.partitions)
        records += sum(p.records for p in a.partitions)
        leftovers += a.count(Severity.LEFTOVER)
        old += a.count(Severity.UNCHECKED)
    detail = f"{partitions} partitions, {records:,} records: sound"
    detail += f", {leftovers} leftovers of crashes" if leftovers else ""
    detail += f", {old} segments of old formats" if old else ""
    detail += f"; {told:,} acknowledged records as their clients saw them" if told else ""
    return _Claim(f"log directories {recording}", "judged", detail, "\n".join(wrong))


def _damaged_log_directories(which: int) -> Iterator[_Claim]:
    """Damage is found where it is, and nothing beside it."""
    from kafkaspec.audit import recorded
    from kafkaspec.audit.engine import audit

    r = next(r for r in recorded.recorded() if r.recording == "single-basic")
    with r.unpacked() as directories:
        n, wrong = recorded.missed(directories, 0, lambda d: audit(d, strict=True))
    detail = f"{n} copies with one thing damaged: each found at its byte or line, and nothing else"
    yield _Claim(f"log directories {r.recording}, damaged", "judged", detail, "\n".join(wrong))


def _of(s: Subsystem, layer: str, name: str) -> Sequence[Any]:
    """A list that a module of the subsystem defines; nothing if there is no module, or it has none."""
    found: Sequence[Any] = getattr(s.layer(layer), name, ())
    return found


CHECKS: dict[str, tuple[Callable[[Subsystem], int], Check]] = {
    "clauses": (lambda s: 1, _clauses),
    "models": (lambda s: len(_explored(s)), _models),
    "proofs": (lambda s: len(_of(s, "proofs", "PROOFS")), _proofs),
    "spec against model": (lambda s: len(_compared(s)), _spec_against_model),
    WALKED: (lambda s: max(bool(s.spec.machine.operations), len(s.pairs())), _drivers_against_spec),
    "impl behind a pipe": (lambda s: int(s.is_component), _impl_behind_a_pipe),
    "recordings": (lambda s: len(s.recordings), _recordings),
    "simulations": (lambda s: len(_scenarios(s)), _simulations),
}
"""By its name: how many things of a subsystem the check asks alike, and the check."""
AUDITED: dict[str, tuple[Callable[[], int], Callable[[int], Iterator[_Claim]]]] = {
    "log directories": (lambda: len(_log_directories()), _real_log_directories),
    "log directories, damaged": (lambda: 1, _damaged_log_directories),
}
"""The same of the audit, which is no one subsystem's."""
