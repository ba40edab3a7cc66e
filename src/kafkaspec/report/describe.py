"""Every result of an engine as sections of a report. No engine is loaded for it: who has a result has loaded its."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

import kafkaspec.models
from kafkaspec.contract.history import answer_text, cut
from kafkaspec.language.model import LoadedModel
from kafkaspec.language.text import short
from kafkaspec.language.trace import Trace
from kafkaspec.lockstep.compare import ABSENT, MAX_DIFFERENCES
from kafkaspec.report.calls import readable
from kafkaspec.report.section import (
    Cell,
    Column,
    Conversation,
    Grid,
    Mood,
    Section,
    count,
    counts,
    duration,
    grid,
    sentence,
    sizes_text,
    trace_title,
    words,
)

if TYPE_CHECKING:
    from kafkaspec.audit.engine import Audit, Part
    from kafkaspec.audit.finding import Finding
    from kafkaspec.audit.watch import AuditChange
    from kafkaspec.explore.engine import Exploration
    from kafkaspec.explore.walk import RandomWalk
    from kafkaspec.fleet.campaign import CampaignResult
    from kafkaspec.judge.result import Rejection, SubsystemVerdict
    from kafkaspec.judge.verdict import Verdict
    from kafkaspec.lockstep.walk import Walk
    from kafkaspec.mutants import matrix as mutants
    from kafkaspec.prove.bounded import BoundedResult
    from kafkaspec.prove.engine import ProofResult
    from kafkaspec.simulate.runs import Replay, SimulationResult
    from kafkaspec.verify.row import Row

MAX_TEXT = 200
MAX_TOLD = 60
"""Characters of a condition that is told within a line."""


def describe(result: Any) -> list[Section]:
    """The sections of one result; of a list of rows (kill matrix, verify) or of results. TypeError for what is none."""
    if isinstance(result, Sequence) and not isinstance(result, str):
        rows = {_kind(r) for r in result}
        if rows == {"mutants.matrix.Row"}:
            return _kill_matrix(result)
        if rows == {"verify.row.Row"}:
            return _verified(result)
        if rows == {"judge.result.SubsystemVerdict"}:
            return _judgement(result)
        return [s for r in result for s in describe(r)]
    kind = _kind(result)
    if kind not in DESCRIBERS:
        raise TypeError(f"a report knows nothing of {type(result).__qualname__}")
    return DESCRIBERS[kind](result)


def _kind(result: Any) -> str:
    """`module.Class`, within kafkaspec."""
    return f"{type(result).__module__.removeprefix('kafkaspec.')}.{type(result).__name__}"


# ---- runs of models --------------------------------------------------------------------------------------------------
def _trace(t: Trace, model: LoadedModel | None = None, detail: bool = False) -> list[Section]:
    title, verdict = trace_title(t)
    return [Section(title, verdict, t.clauses, trace=t, model=model, detail=detail)]


OUTCOMES: Mapping[str, tuple[Mood, str]] = {
    "complete": ("good", "explored: every claim holds in every reachable state"),
    "violation": ("bad", "a claim is broken"),
    "deadlock": ("bad", "a state has no successor"),
    "liveness": ("bad", "something that must happen never does"),
    "limit": ("unknown", "a limit was reached first"),
}


def _exploration(e: Exploration) -> list[Section]:
    mood, said = OUTCOMES[e.outcome]
    missed = [n for n, t in e.witnesses.items() if t is None]
    idle = [n for n, taken in e.taken.items() if not taken]
    if e.outcome == "complete" and (missed or idle):
        mood, said = "bad", "vacuous: a witness was not reached, or an action was never taken"
    elif e.outcome == "complete" and e.unchecked:
        said = "explored: every claim that was checked holds in every reachable state"
    command = f"kafkaspec explore {_argument(e.model)}{_sizes(e.sizes)}"
    command += "".join(f" --symmetry {s}" for s in e.symmetry) + " --ghosts" * e.ghosts + " --deadlock" * e.deadlock
    facts: list[tuple[str, Cell]] = [
        (
            "sizes",
            Cell((sizes_text(e.sizes) or "none") + (f", up to renaming {', '.join(e.symmetry)}" if e.symmetry else "")),
        ),
        ("states", Cell(f"{e.distinct:,} distinct, {e.generated:,} generated, depth {e.depth}")),
        ("time", Cell(f"{duration(e.seconds)}, and {duration(e.compile_seconds)} to compile")),
        ("memory", Cell(f"{e.peak_mb:,.0f} MB; a state is {count(e.bits, 'bit')} in {count(e.words, 'word')}")),
    ]
    if e.limit:
        facts.append(("covered", Cell(e.limit, "unknown")))
    if e.fingerprint_collision is not None:
        facts.append(("fingerprints", Cell(f"probability of a collision {e.fingerprint_collision:.1e}")))
    facts += [("not checked", Cell(f"{words(n)}: {why}", "unknown")) for n, why in e.unchecked.items()]
    facts += [("witness", Cell(f"{words(n)}: never reached", "bad")) for n in missed]
    facts += [("action", Cell(f"{n}: never taken", "bad")) for n in idle]
    reached: list[tuple[str | Cell, ...]] = [
        (words(n), Cell("never reached", "bad") if t is None else f"in {count(len(t.steps) - 1, 'step')}")
        for n, t in e.witnesses.items()
    ]
    grids = [grid(("action", counts("transitions")), [(n, f"{k:,}") for n, k in e.taken.items()])]
    grids += [grid(("witness", "reached"), reached)] if reached else []
    out = [Section(e.model.name, Cell(said, mood), facts=tuple(facts), grids=tuple(grids), again=command)]
    out += _trace(e.trace, e.model) if e.trace is not None else []
    for t in e.witnesses.values():
        out += _trace(t, e.model, detail=True) if t is not None else []
    return out


def _sizes(sizes: Mapping[str, int | bool]) -> str:
    """Sizes as options of the command line."""
    return "".join(f" -s {w}" for w in sizes_text(sizes).split())


def _argument(model: LoadedModel) -> str:
    """A model as the command line takes it: a name for those of ours, a file for others."""
    file = Path(model.file)
    ours = any(file.resolve().is_relative_to(Path(p).resolve()) for p in kafkaspec.models.__path__)
    return f"{file.stem if ours else short(model.file)}:{model.name}"


def _random_walk(w: RandomWalk) -> list[Section]:
    broken = w.trace is not None
    tested = f"tested: {count(w.steps, 'step')} of seed {w.seed}"
    verdict = Cell("a claim is broken", "bad") if broken else Cell(tested, "good")
    rate = f"{count(w.steps, 'step')} in {duration(w.seconds)}, {w.steps / max(w.seconds, 1e-9):,.0f} a second"
    facts = (
        ("sizes", Cell(sizes_text(w.sizes) or "none")),
        ("steps", Cell(f"{rate}; {count(w.walks, 'run')} from a first state")),
        ("schedule", Cell(w.schedule)),
        *[("not checked", Cell(f"{words(n)}: {why}", "unknown")) for n, why in w.unchecked.items()],
    )
    taken = grid(("action", counts("taken")), [(n, f"{k:,}") for n, k in w.taken.items()])
    command = f"kafkaspec explore {_argument(w.model)}{_sizes(w.sizes)}"
    command += f" --walk {w.seed} --steps {w.steps} --schedule {w.schedule}"
    command += " --ghosts" * w.ghosts
    out = [Section(f"{w.model.name}: random walk", verdict, facts=facts, grids=(taken,), again=command)]
    return out + (_trace(w.trace, w.model) if w.trace is not None else [])


# ---- proofs ----------------------------------------------------------------------------------------------------------
PROOF_MOODS: Mapping[str, Mood] = {"proved": "good", "refuted": "bad", "unknown": "unknown"}


def _proved(p: ProofResult) -> list[Section]:
    claims = list(dict.fromkeys(o.claim for o in p.obligations))
    rows: list[tuple[str | Cell, ...]] = []
    for claim in claims:
        mine = [o for o in p.obligations if o.claim == claim]
        worst = next((v for v in ("refuted", "unknown") if any(o.verdict == v for o in mine)), "proved")
        slowest = max(mine, key=lambda o: o.seconds)
        rows.append(
            (
                words(claim),
                ", ".join(dict.fromkeys(c for o in mine for c in o.clauses)),
                f"{sum(o.verdict == 'proved' for o in mine)} of {len(mine)}",
                f"{sum(o.seconds for o in mine):.2f}",
                slowest.action,
                Cell(worst, PROOF_MOODS[worst]),
            )
        )
    slow = Column("slowest", detail=True)
    titles = ("claim", "clauses", Column("actions", number=True), Column("s", number=True), slow, "")
    if p.complete:
        what = f": {', '.join(words(c) for c in p.asked)}, with what it rests on" if p.asked else ""
        held = f" with {sizes_text(p.fixed)}" if p.fixed else ""
        verdict = Cell(f"proved {p.every_size}{held}{what}", "good")
    elif p.false_lemma is not None or any(o.verdict == "refuted" for o in p.obligations):
        verdict = Cell("not proved: a claim is not inductive, or false", "bad")
    else:
        verdict = Cell("not proved", "unknown")
    facts = [("obligations", Cell(p.summary()))]
    facts += [("held", Cell(sizes_text(p.fixed)))] if p.fixed else []
    facts += [("explored first", Cell(p.explored))] if p.explored else []
    facts += _vacuous(p)
    only = ", ".join(words(c) for c in p.explored_only)
    facts += [("not proved here", Cell(f"{only}: exploring decides leads-to claims and witnesses"))] if only else []
    facts += [("asked for", Cell(", ".join(words(c) for c in p.asked)))] if p.asked else []
    facts += [("rests on", Cell(", ".join(words(c) for c in p.rests_on)))] if p.rests_on else []
    facts += [("only some", Cell(_only_some(p), "unknown"))] if p.partial else []
    for o in p.obligations:
        if o.verdict == "unknown":
            facts.append(("unknown", Cell(f"{words(o.claim)} after {o.action}, in {duration(o.seconds)}", "unknown")))
    out = [Section(p.model, verdict, facts=tuple(facts), grids=(grid(titles, rows),) if rows else ())]
    out += _trace(p.false_lemma) if p.false_lemma is not None else []
    for o in p.obligations:
        if o.cti is not None:
            title, refuted = trace_title(o.cti)
            known = (("reachable", Cell(o.reachable)),) if o.reachable else ()
            out.append(Section(title, refuted, o.clauses, facts=known, trace=o.cti))
    return out


def _vacuous(p: ProofResult | BoundedResult) -> list[tuple[str, Cell]]:
    none = "no state was found that satisfies every claim and its guard"
    return [
        *(("vacuous", Cell(f"{a}: no state satisfies every claim and its guard", "bad")) for a in p.vacuous),
        *(("vacuous?", Cell(f"{a}: {none}", "unknown")) for a in p.unseen),
    ]


def _only_some(p: ProofResult) -> str:
    if not p.asked:
        return "not every obligation was asked for"
    return f"nothing more was asked, as {', '.join(words(c) for c in p.unproved)} is not proved"


def _bounded(b: BoundedResult) -> list[Section]:
    moods: dict[str, Mood] = {"complete": "plain", "violation": "bad", "vacuous": "bad", "unknown": "unknown"}
    said = {
        "complete": f"searched: no claim is broken within {count(b.steps, 'step')}",
        "violation": "a claim is broken",
        "vacuous": "vacuous: there is no first state",
        "unknown": b.not_known,
    }[b.outcome]
    sizes, took = ("sizes", Cell(sizes_text(b.sizes) or "arbitrary")), ("time", Cell(duration(b.seconds)))
    section = Section(b.model, Cell(said, moods[b.outcome]), facts=(sizes, *_vacuous(b), took))
    return [section, *(_trace(b.trace) if b.trace is not None else ())]


# ---- recorded traces -------------------------------------------------------------------------------------------------
VERDICTS: Mapping[str, Mood] = {"accepted": "good", "rejected": "bad", "outside": "unknown", "incomplete": "unknown"}


def _verdict(v: Verdict) -> list[Section]:
    mood = VERDICTS[v.verdict]
    said = {
        "accepted": "accepted",
        "rejected": f"rejected at step {v.step}",
        "outside": f"outside the contract from step {v.step}",
        "incomplete": "could not judge all",
    }[v.verdict]
    facts: list[tuple[str, Cell]] = []
    if v.step is not None:
        facts.append(("step", Cell(f"{v.step}, line {v.line} of {v.source}")))
        facts.append(("call", Cell(v.call)))
    if v.verdict == "outside":
        facts.append(("rule", Cell(f"the caller broke {v.clause}: {v.what}", "unknown")))
    elif v.verdict == "rejected":
        seen, right = cut(answer_text(v.seen)), cut(answer_text(v.expected))
        facts += [("or breaks", Cell(", ".join(v.others)))] if v.others else []
        facts += [("why", Cell(v.what, "bad"))] if not v.what.startswith("answered ") else []
        facts += [("seen", Cell(seen, "bad")), ("right", Cell(right, "good"))] if seen != right and v.expected else []
    facts += [("nearest", Cell(line)) for line in v.nearest.splitlines()]
    facts.append(("judged", Cell(f"{count(v.events, 'event')} in {count(v.histories, 'history')}")))
    if v.left_out:
        facts.append(("not judged", Cell(v.left_out, "unknown")))
        facts += [("not read", Cell(v.unread.what, "unknown"))] if v.unread is not None else []
        facts += [("skipped", Cell(f"{where}: {what}", "unknown")) for what, where in v.skips]
    for id, found in v.deviations.items():
        where = f"{found.times}, first at step {found.step} (line {found.line})"
        facts.append(("known deviation", Cell(f"{id}: {where}", "unknown")))
    grids = []
    if v.differences:
        rows = [(d.path, Cell(_json(d.seen), "bad"), Cell(_json(d.expected), "good")) for d in v.differences]
        grids.append(grid(("state", "seen", "right"), rows[:MAX_DIFFERENCES], _more(len(rows))))
    called = sorted(v.operations.items(), key=lambda item: -item[1])
    exercised = [(id, f"{n:,}") for id, n in v.clauses.items()]
    out = [
        Section(
            v.source,
            Cell(said, mood),
            (v.clause,) if v.verdict == "rejected" and v.clause else (),
            tuple(facts),
            tuple(grids),
            again=v.again if v.verdict != "accepted" else "",
        )
    ]
    covered = (
        grid(("operation", counts("calls")), [(n, f"{k:,}") for n, k in called]),
        grid(("clause", counts("exercised")), exercised),
    )
    return [*out, Section(f"{v.source}: coverage", Cell(count(v.events, "event")), grids=covered, detail=True)]


# ---- targets ---------------------------------------------------------------------------------------------------------
NOT_TAKEN = {
    "holds": "never holds",
    "does not hold": "always holds",
    "at": "never equal",
    "alike": "never equal",
    "unlike": "always equal",
}
"""What is said of a condition of which one side was not taken; "never below", "never above" else."""
JUDGED: Mapping[str, Mood] = {"accepted": "good", "rejected": "bad", "could not judge": "unknown"}


def _judgement(judged: Sequence[SubsystemVerdict]) -> list[Section]:
    """A target: a row a subsystem, what was left out, then everything that was rejected."""
    said = [(v, sum(j.verdict == v for j in judged)) for v in ("rejected", "could not judge", "accepted")]
    worst = next(v for v, n in said if n)
    verdict = worst if len(judged) == 1 else ", ".join(f"{n} {v}" for v, n in said if n)
    took = f"{count(sum(j.tally.calls for j in judged), 'call')} in {duration(sum(j.seconds for j in judged))}"
    numbers = ("clauses", "sides", "model states", "tours", "histories", "calls")
    titles: list[str | Column] = [
        Column("subsystem", whole=True), *(Column(t, number=True) for t in numbers), Column("verdict", whole=True)
    ]  # fmt: skip
    facts: list[tuple[str, Cell]] = []
    for j in judged:
        t, name = j.tally, j.job.subsystem
        if j.why:
            facts.append((name, Cell(j.why, "unknown")))
        parts = [
            ("known deviations", t.known, "unknown"),
            ("never exercised", ", ".join(j.never_exercised), "unknown"),
            ("exercised, without a condition", _of(*j.without_condition), "plain"),
            ("not exercised both ways", ", ".join(_partly(j, c) for c in j.partly_exercised), "plain"),
            ("never called", ", ".join(j.not_called), "unknown"),
            ("not offered", ", ".join(j.not_offered), "plain"),
            ("offered in part", ", ".join(j.in_part), "plain"),
        ]
        facts += [(name, Cell(f"{what}: {which}", mood)) for what, which, mood in parts if which]  # type: ignore[arg-type]
    target = next((j.target for j in judged if j.target), "the target")
    again = "" if len(judged) > 1 or judged[0].rejections else judged[0].again
    rows = grid(titles, [_judged_row(j) for j in judged])
    out = [
        Section(
            f"judge {target}", Cell(f"{verdict}: {took}", JUDGED[worst]), facts=tuple(facts), grids=(rows,), again=again
        )
    ]
    for j in judged:
        for n, r in enumerate(j.rejections):
            out.append(_rejection(j, n, r))
        out += _trouble(j)
    return out + [s for j in judged for s in _exercised(j)]


def _partly(j: SubsystemVerdict, clause: str) -> str:
    """A clause, with how its condition was decided always where one side of one is all that is missing."""
    missed = [s for s in j.sides if clause in s.clauses and not s.taken]
    if len(missed) > 1 or len(missed[0].condition) > MAX_TOLD:
        return clause
    return f"{clause} (`{missed[0].condition}` {NOT_TAKEN.get(missed[0].side, f'never {missed[0].side}')})"


def _judged_row(j: SubsystemVerdict) -> list[str | Cell]:
    t = j.tally

    def part(of: Iterable[tuple[int, int]]) -> str:
        return "\n".join(f"{n:,} of {all_:,}" for n, all_ in of)

    return [
        j.job.subsystem, _of(*j.with_condition), _of(sum(side.taken for side in j.sides), len(j.sides)),
        part(j.models.values()), part(j.tours.values()),
        f"{t.histories:,}", f"{t.calls:,}", Cell(j.verdict, JUDGED[j.verdict]),
    ]  # fmt: skip


def _rejection(j: SubsystemVerdict, n: int, r: Rejection) -> Section:
    v = r.verdict
    facts: list[tuple[str, Cell]] = [("or breaks", Cell(", ".join(v.others)))] if v.others else []
    if v.what and not v.only_state and not v.what.startswith("answered "):
        facts.append(("why", Cell(v.what, "bad")))
    seen, right = answer_text(v.seen), answer_text(v.expected)
    facts += [("seen", Cell(seen, "bad")), ("right", Cell(right, "good"))] if seen != right and v.expected else []
    facts += [("as if", Cell(str(r.blame)))] if r.blame is not None else []
    facts += [("nearest", Cell(line)) for line in v.nearest.splitlines() if r.blame is None]
    how = {"tour": "a model's tour", "deviation": "a known deviation's history", "hypothesis": "Hypothesis"}.get(r.by)
    times = f"{count(r.count, 'history')} of {j.tally.histories:,}"
    if r.fickle:
        facts.append(("asked again", Cell("it was answered rightly: is the target deterministic?", "unknown")))
    facts.append(("found", Cell(f"in {times}, first after {count(r.calls, 'call')}{f', in {how}' if how else ''}")))
    facts += [("kept in", Cell(j.kept_in(n)))] if j.kept_in(n) else []
    grids = []
    if v.differences:
        rows = [(d.path, Cell(_json(d.seen), "bad"), Cell(_json(d.expected), "good")) for d in v.differences]
        grids.append(grid(("state", "seen", "right"), rows[:MAX_DIFFERENCES], _more(len(rows))))
    end = f"expected {right}" if seen != right else next((str(d) for d in v.differences), v.what)
    return Section(
        f"{j.job.subsystem}: {v.call}",
        Cell(f"rejected at call {v.step}", "bad"),
        (r.clause,) if r.clause else (),
        tuple(facts),
        tuple(grids),
        history=readable(r.history, v.expected.get("state", ABSENT)),
        conversation=Conversation(r.history, j.target, f"{r.clause} {end}".strip()),
        again=j.replay(j.kept_in(n)) if j.kept_in(n) else j.again,
    )


def _trouble(j: SubsystemVerdict) -> list[Section]:
    trouble, last = j.tally.trouble, j.tally.last
    if trouble is None:
        return []
    facts = [("what", Cell(str(trouble), "unknown"))]
    facts += [("it wrote", Cell("\n".join(trouble.stderr)))] if trouble.stderr else []
    asked = "" if last is None else readable(last)
    if asked:
        end = "" if trouble.kind == "slow" else ", which ends with the call that got no answer"
        facts.append(("asked last", Cell(f"the history below{end}")))
    verdict = Cell(f"could not judge: {trouble.kind}", "unknown")
    facts += [("kept in", Cell(j.kept_last))] if j.kept_last else []
    again = j.replay(j.kept_last) if j.kept_last else j.again
    return [Section(f"{j.job.subsystem}: the target", verdict, facts=tuple(facts), history=asked, again=again)]


def _exercised(j: SubsystemVerdict) -> list[Section]:
    t = j.tally
    refused: Counter[str] = Counter()
    for what, n in t.refusals.items():
        refused[what.split()[0]] += n
    calls = [(n, f"{k:,}", f"{refused[n]:,}") for n, k in sorted(t.operations.items(), key=lambda item: -item[1])]
    clauses = [(c, f"{t.clauses[c]:,}", _of(*j.sides_of(c))) for c in j.clauses]
    missed = [(s.where, s.condition, s.side, " ".join(s.clauses)) for s in j.sides if not s.taken]
    grids = (
        grid(("operation", counts("calls"), counts("refused")), calls),
        grid(("clause", counts("exercised"), Column("sides of its conditions", number=True)), clauses),
        *([grid(("rule", "condition", "never", "clauses"), missed)] if missed else []),
    )
    observed = f"{count(t.calls, 'call')}, {count(t.observations, 'observation')} in {duration(j.seconds)}"
    return [Section(f"{j.job.subsystem}: coverage", Cell(observed), grids=grids, detail=True)] if calls else []


def _of(n: int, all_: int) -> str:
    return f"{n} of {all_}" if all_ else ""


def _json(value: Any) -> str:
    text = "nothing" if value is ABSENT else orjson.dumps(value, default=float).decode()
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."


def _more(n: int) -> str:
    return f"{MAX_DIFFERENCES} of {n} differences" if n > MAX_DIFFERENCES else ""


# ---- lockstep, campaigns, mutants ------------------------------------------------------------------------------------
def _walk(w: Walk) -> list[Section]:
    calls = [(n, f"{k:,}") for n, k in sorted(w.coverage.operations.items())]
    called = grid(("operation", counts("calls")), calls)
    if w.failure is None:
        return [Section(f"seed {w.seed}", Cell(f"tested: {count(w.steps, 'call')} agree", "good"), grids=(called,))]
    rules = (w.failure.clause,) if w.failure.clause else ()
    return [Section(f"seed {w.seed}", Cell("spec and driver differ", "bad"), rules, history=str(w.failure))]


def _campaign(c: CampaignResult) -> list[Section]:
    bad, n = c.failing, len(c.seeds)
    verdict = (
        Cell(f"{count(bad, 'seed')} of {n:,} fail, in {count(len(c.failures), 'way')}", "bad")
        if bad
        else Cell(f"tested: {count(n, 'seed')} of {count(c.steps, 'call')}, spec and impl agree", "good")
    )
    facts = [
        ("seeds", Cell(f"{c.seeds.start}:{c.seeds.stop}; {c.walked:,} walked now, {n - c.walked:,} were there")),
        ("calls", Cell(f"{c.calls:,} in {duration(c.seconds)}")),
        ("results", Cell(str(c.out))),
    ]
    if c.model_states_reached is not None:
        facts.append(("model states", Cell(f"{c.model_states_reached:,} of {c.model_states:,} reached")))
    facts += [("never called", Cell(", ".join(c.never_called), "unknown"))] if c.never_called else []
    rows = [(f.operation, f.clause, f"{f.seeds:,}", str(f.seed), f"{f.calls}") for f in c.failures]
    titles = (
        "fails at", "clause", counts("seeds"), Column("first seed", number=True),
        Column("calls, shrunk", number=True),
    )  # fmt: skip
    covered = grid(
        ("operation", counts("calls"), counts("refused")),
        [(n, f"{k:,}", f"{c.refused(n):,}") for n, k in sorted(c.operations.items())],
    )
    clauses = grid(("clause", counts("exercised")), [(n, f"{k:,}") for n, k in sorted(c.clauses.items())])
    again = f"kafkaspec campaign {c.subsystem} --seeds {c.seeds.start}:{c.seeds.stop} --steps {c.steps} --out {c.out}"
    grids = ((grid(titles, rows),) if rows else ()) + (covered,)
    out = [Section(f"{c.subsystem}: campaign", verdict, facts=tuple(facts), grids=grids, again=again)]
    for f in c.failures:
        head = f"{c.subsystem}: {f.operation}" if f.operation else c.subsystem
        said = Cell(f"{count(f.seeds, 'seed')}, first {f.seed}", "bad")
        command = f"kafkaspec check {f.file} --subsystem {c.subsystem}"
        if f.file is None:
            command = f"kafkaspec campaign {c.subsystem} --seeds {f.seed} --steps {c.steps} --out DIR"
        out.append(Section(head, said, (f.clause,) if f.clause else (), history=f.history, again=command))
    return [*out, Section(f"{c.subsystem}: clauses", Cell("coverage"), grids=(clauses,), detail=True)]


def _simulated(s: SimulationResult) -> list[Section]:
    bad, n = s.failing, len(s.seeds)
    verdict = (
        Cell(f"{count(bad, 'seed')} of {n:,} fail, by {count(len(s.failures), 'rule')}", "bad")
        if bad
        else Cell(f"tested: {count(n, 'seed')}, no rule is broken", "good")
        if n
        else Cell("no seed was run", "unknown")
    )
    facts = [
        ("seeds", Cell(f"{s.seeds.start}:{s.seeds.stop}, {s.schedule}")),
        ("steps", Cell(f"{s.steps:,} in {duration(s.seconds)}, {s.ms / 1000:,.0f} s of virtual time")),
    ]
    facts += [("kept", Cell(f"{count(s.kept, 'seed')} of an earlier run"))] if s.kept else []
    facts += [("never happened", Cell(", ".join(s.never), "unknown"))] if s.never else []
    happened = grid(("what happened", counts("times")), [(what, f"{k:,}") for what, k in s.counts.items()])
    again = f"kafkaspec simulate {s.scenario} --seeds {s.seeds.start}:{s.seeds.stop} --schedule {s.schedule}"
    out = [Section(f"{s.scenario}: {s.title}", verdict, facts=tuple(facts), grids=(happened,), again=again)]
    for f in s.failures:
        said = Cell(f"{count(f.seeds, 'seed')}, first {f.seed} ({f.schedule})", "bad")
        facts = [
            ("what", Cell(f.what)),
            ("made small", Cell(f"{count(len(f.choices), 'choice')}, {count(f.steps, 'step')}")),
        ]
        facts += [] if f.file is None else [("history", Cell(str(f.file.with_suffix(".txt"))))]
        rules = (f.rule,) if sentence(f.rule) else ()
        history = f.history if f.file is None else ""
        how = f"--seed {f.seed} --schedule {f.schedule}" if f.file is None else f"--replay {f.file}"
        command = f"kafkaspec simulate {s.scenario} {how}"
        title = f"{s.scenario}: {f.rule}"
        out.append(Section(title, said, rules, facts=tuple(facts), history=history, again=command))
    return out


def _replayed(r: Replay) -> list[Section]:
    if r.rule:
        verdict = Cell(f"{r.rule} is broken at step {r.steps:,}", "bad")
    else:
        verdict = Cell(f"no rule is broken in {count(r.steps, 'step')}", "good")
    facts = [("when it was kept", Cell(f"{r.expected} was broken", "unknown"))] if r.expected != r.rule else []
    return [Section(f"{r.scenario}: {r.file}", verdict, facts=tuple(facts), history=r.history)]


def _kill_matrix(rows: Sequence[mutants.Row]) -> list[Section]:
    """The matrix; of generated mutants, which are many, those that nobody kills. The others are for the page."""
    shown = [r for r in rows if not r.mutant.generated or r.wrong or not (r.killed or r.unchanged)]
    rest = [r for r in rows if all(r is not s for s in shown)]
    dead, idle = sum(r.killed for r in rows), sum(r.unchanged for r in rows)
    excused = sum(not r.killed and not r.wrong for r in rows) - idle
    wrong = sum(bool(r.wrong) for r in rows)
    verdict = f"{dead} of {len(rows)} killed" + (f", {_survivors(excused)} for a reason" if excused else "")
    verdict += f", {idle} {'changes' if idle == 1 else 'change'} no step" if idle else ""
    said = Cell(f"{verdict}, {wrong} wrong", "bad") if wrong else Cell(verdict, "good")
    per = [(f"by {d}", Cell(f"{sum(bool(r.detections[d].killed) for r in rows)}")) for d in list(rows[0].detections)]
    per += [("by counts alone", Cell(f"{sum(bool(r.counts) for r in rows)}: no kill"))]
    out = [Section("kill matrix", said, facts=tuple(per), grids=(_kill_grid(shown),) if shown else ())]
    if rest:
        killed = Cell(f"{sum(r.killed for r in rest)} of {len(rest)} killed; the others change no step", "good")
        out.append(Section("kill matrix: other generated mutants", killed, grids=(_kill_grid(rest),), detail=True))
    return out


def _kill_grid(rows: Sequence[mutants.Row]) -> Grid:
    detectors = list(rows[0].detections)
    body: list[tuple[str | Cell, ...]] = []
    counted = any(r.counts for r in rows)
    for r in rows:
        killers = [f"{n}: {d.by}" for n, d in r.detections.items() if d.killed and d.by]
        last = Cell(r.wrong, "bad") if r.wrong else Cell(r.reason, "dim") if not r.killed else Cell("")
        differ = [Cell("differ", "unknown") if r.counts else Cell("")] if counted else []
        name = f"{r.mutant.name}\n{r.mutant.bug}" if r.mutant.bug else r.mutant.name
        body.append(
            (
                name, Cell(r.mutant.what, "dim"), r.mutant.layer, "\n".join(r.mutant.clauses),
                *(_killed(r.detections[n].killed) for n in detectors), *differ, Cell("\n".join(killers), "dim"), last,
            )
        )  # fmt: skip
    fault, by = Column("fault", detail=True), Column("by", detail=True)
    counts_alone = ["counts"] if counted else []
    return grid(["mutant", fault, "layer", "clauses", *detectors, *counts_alone, by, "survives"], body)


def _survivors(n: int) -> str:
    return "1 survives" if n == 1 else f"{n} survive"


def _killed(killed: bool | None) -> Cell:
    return Cell("") if killed is None else Cell("✓", "good") if killed else Cell("·", "dim")


# ---- verify ----------------------------------------------------------------------------------------------------------
def _verified(rows: Sequence[Row]) -> list[Section]:
    body: list[tuple[str | Cell, ...]] = []
    last = ""
    for r in rows:
        name = Cell(r.subsystem if r.subsystem != last else "")
        found = _verdict_of(r)
        took = "" if r.held else f"{r.seconds:5.1f}"  # as wide on a slow machine, so that nothing wraps elsewhere
        body.append((name, r.what, Cell(r.word, found.mood), r.detail, took, found))
        last = r.subsystem
    titles = ("subsystem", "what", "how", "found", Column("s", number=True), "verdict")
    failed = [r for r in rows if not r.ok]
    work = duration(sum(r.seconds for r in rows if not r.held)) + " of work"
    held = sum(bool(r.held) for r in rows)
    work += f"; {held} held before, and nothing has changed for them" if held else ""
    said = f"all {len(rows)} hold, {work}" if not failed else f"{len(failed)} of {len(rows)} do not hold, {work}"
    worst: Mood = "good" if not failed else "bad" if any(r.could_judge for r in failed) else "unknown"
    out = [Section("verify", Cell(said, worst), grids=(grid(titles, body),))]
    return out + [Section(f"{r.subsystem}: {r.what}", _verdict_of(r), history=r.why, again=r.again) for r in failed]


def _verdict_of(row: Row) -> Cell:
    if row.held:
        return Cell(f"held, unchanged since {row.held}", "good")
    if row.ok:
        return Cell("holds", "good")
    return Cell("does not hold", "bad") if row.could_judge else Cell("unknown", "unknown")


# ---- audit -----------------------------------------------------------------------------------------------------------
MOST_SHOWN, MOST_PROBLEMS = 5, 50
"""At most this many findings of one clause are told, and this many problems; on a page as on a terminal. With --all,
every one."""
SEVERITIES: Mapping[str, tuple[Mood, str]] = {
    "ERROR": ("bad", "error"),
    "WARNING": ("bad", "warning"),
    "UNCHECKED": ("unknown", "not checked"),
    "LEFTOVER": ("dim", "leftover"),
}
AUDITED: Mapping[str, Mood] = {"sound": "good", "unsound": "bad", "could not judge": "unknown"}


def _audit(a: Audit) -> list[Section]:
    from kafkaspec.audit.finding import Severity

    number = {s: a.count(s) for s in Severity}
    said = [count(number[s], SEVERITIES[s.name][1]) for s in (Severity.ERROR, Severity.WARNING) if number[s]]
    if number[Severity.UNCHECKED]:
        said.append(f"not checked: {number[Severity.UNCHECKED]:,}")
    if a.problems:
        said.append(f"could not be read: {len(a.problems):,}")
    if number[Severity.LEFTOVER]:
        said.append(f"leftovers of a crash: {number[Severity.LEFTOVER]:,}")
    facts: list[tuple[str, Cell]] = []
    shown, problems = (None, None) if a.everything else (MOST_SHOWN, MOST_PROBLEMS)
    for d in a.directories[:shown]:
        who = "" if d.node is None else f"node {d.node}, "
        stopped = {True: "stopped cleanly", False: "no marker of a clean stop: killed, or running", None: ""}[d.clean]
        facts.append(("read", Cell(f"{d.path}: {who}{count(d.partitions, 'partition')}{stopped and ', '}{stopped}")))
    if rest := len(a.directories[shown:]) if shown else 0:
        facts.append(("read", Cell(f"and {count(rest, 'more directory')}; {ALL}")))
    for name, lines in (("problem", a.problems), ("note", a.notes)):
        mood: Mood = "unknown" if name == "problem" else "plain"
        facts += [(name, Cell(line, mood)) for line in lines[:problems]]
        if rest := len(lines[problems:]) if problems else 0:
            facts.append((name, Cell(f"and {rest:,} more; {ALL}", mood)))
    if a.part is not None:
        facts.append(("part", Cell(_part(a.part))))
    if a.everything and a.metadata_records:
        kinds = ", ".join(f"{r.count:,} {r.kind}" for r in a.metadata_records)
        facts.append(("metadata", Cell(f"{sum(r.count for r in a.metadata_records):,} records replayed: {kinds}")))
    title = f"audit {' '.join(a.paths)}"
    topics = (_topics(a),) if a.topics else ()
    out = [Section(title, Cell("; ".join([a.verdict, *said]), AUDITED[a.verdict]), facts=tuple(facts), grids=topics)]
    for alike in _groups(a.findings):
        severity, clause = alike[0].severity, alike[0].clause
        omitted = sum(o.count for o in a.omitted if o.severity == severity and o.clause == clause)
        told = alike[:shown]
        if severity is Severity.LEFTOVER:
            out.append(_leftovers(told, len(alike), omitted, len(a.directories) > 1))
        else:
            out += _findings(told, alike, omitted, a.archives)
    return out


def _groups(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Findings by severity and rule, the worst first, and then by the first of each rule."""
    groups: dict[tuple[int, str], list[Finding]] = {}
    for f in sorted(findings, key=lambda f: -f.severity):
        groups.setdefault((f.severity, f.clause), []).append(f)
    return list(groups.values())


def _change(c: AuditChange) -> list[Section]:
    """What a look at a live broker shows that the one before did not."""
    shown = None if c.everything else MOST_SHOWN
    said = [f"{len(of):,} {word}" for of, word in ((c.new, "new"), (c.gone, "gone")) if of]
    facts = [("problem", Cell(p, "unknown")) for p in c.problems] + [("no more", Cell(p)) for p in c.solved]
    rows = [(f"{e.topic}-{e.partition}", *(("" if x is None else f"{x:,}") for x in (e.before, e.now))) for e in c.ends]
    numbers = (Column("before", number=True), Column("now", number=True))
    ends = (grid((Column("log end", whole=True), *numbers), rows[:shown]),) if rows else ()
    if rest := len(rows[shown:]) if shown else 0:
        facts.append(("log ends", Cell(f"{rest:,} more have moved; {ALL}")))
    verdict = Cell("; ".join([c.verdict, *said]), AUDITED[c.verdict])
    out = [Section(c.at, verdict, facts=tuple(facts), grids=ends)]
    for alike in _groups(c.new):
        out += _findings(alike[:shown], alike, 0, ())
    for alike in _groups(c.gone):
        where = grid(("gone", "what"), [(_place(f), f.message) for f in alike[:shown]])
        more = _rest(len(alike[:shown]), len(alike), 0)
        told = (("and", Cell(more)),) if more else ()
        out.append(Section(alike[0].clause, Cell("gone"), facts=told, grids=(where,)))
    return out


ALL = "--all shows them"


def _rest(told: int, kept: int, omitted: int) -> str:
    """How many more there are than were told, in words; "" if there are none."""
    more = [f"{kept - told:,} more; {ALL}"] if kept > told else []
    more += [f"{omitted:,} more that were counted only"] if omitted else []
    return ", and ".join(more)


def _part(p: Part) -> str:
    what = p.paths[0] if len(p.paths) == 1 else count(len(p.paths), "partition")
    return f"{what} without {', '.join(p.without)}; not asked: {_ids(p.not_asked)}"


def _ids(clauses: Iterable[str]) -> str:
    """Clauses in few words: those that follow each other as a range.

    >>> _ids(["CKP-3", "CKP-5", "CKP-6", "CKP-7", "LDR-8"])
    'CKP-3, CKP-5 to CKP-7, LDR-8'
    """
    runs: list[list[str]] = []
    for id in clauses:
        follows = runs and runs[-1][-1][:3] == id[:3] and int(runs[-1][-1][4:]) + 1 == int(id[4:])
        runs[-1].append(id) if follows else runs.append([id])
    return ", ".join(f"{r[0]} to {r[-1]}" if len(r) > 2 else ", ".join(r) for r in runs)


def _topics(a: Audit) -> Grid:
    numbers = ("parts", "segs", "batches", "records", "bytes", "offsets", "committed aborted open", "found")
    titles: list[str | Column] = [Column("topic", whole=True), *(Column(n, number=True) for n in numbers)]
    rows: list[tuple[str | Cell, ...]] = []
    for t in a.topics:
        sizes = (f"{n:,}" for n in (t.partitions, t.segments, t.batches, t.records, t.bytes, t.offsets))
        transactions = f"{t.committed:,}/{t.aborted:,}/{t.open_transactions:,}"
        found = Cell(f"{t.findings:,}", "bad" if t.findings else "unknown" if t.unchecked else "good")
        none = not (t.committed or t.aborted or t.open_transactions)
        rows.append((t.topic, *sizes, "" if none else transactions, found))
    return grid(titles, rows)


def _place(f: Finding) -> str:
    """Where it is, as a person looks for it."""
    at = f" byte {f.position:,}" if f.position is not None else f" line {f.line}" if f.line is not None else ""
    return f.file + at + (f", offset {f.offset}" if f.offset is not None else "")


def _word(path: str) -> str:
    """A path as a word of a shell; one with escapes as the shell reads them."""
    if "\\" not in path:
        return shlex.quote(path)
    quoted = path.replace("'", "\\'")
    return f"$'{quoted}'"


def _findings(
    told: Sequence[Finding], alike: Sequence[Finding], omitted: int, archives: Sequence[str]
) -> list[Section]:
    """Findings of one clause and severity: the rule, those that are told in full, and how many more there are."""
    clause = alike[0].clause
    mood, word = SEVERITIES[alike[0].severity.name]
    total = len(alike) + omitted
    out = []
    if total > 1:
        number = f"{total:,} {word}" if word == "not checked" else count(total, word)
        where = count(len({f.file for f in alike}), "file")
        out.append(Section(clause, Cell(f"{number} in {where}", mood), (clause,)))
    for f in told:
        facts = [("there", Cell(f.message)), ("right", Cell(f.expected)), ("a restart", Cell(f.recovery))]
        again = ""
        in_archive = f.file.startswith(tuple(f"{x}/" for x in archives))
        if f.file.endswith(".log") and f.offset is not None and not in_archive:
            again = f"kafkaspec dump {_word(f.file)} --offset {f.offset}"
        known = tuple(x for x in facts if x[1].text)
        rules = (clause,) if total == 1 else ()
        out.append(Section(_place(f), Cell(f"{word}, {clause}", mood), rules, known, again=again))
    if more := _rest(len(told), len(alike), omitted):
        out.append(Section(clause, Cell(f"and {more}")))
    return out


def _leftovers(told: Sequence[Finding], kept: int, omitted: int, several: bool) -> Section:
    places = [f.file if several else "/".join(Path(f.file).parts[-2:]) for f in told]
    rows = grid(("where", "what", "a restart"), [(p, f.message, f.recovery) for p, f in zip(places, told, strict=True)])
    more = _rest(len(told), kept, omitted)
    clause = told[0].clause
    facts = (("and", Cell(more)),) if more else ()
    return Section(f"leftovers, {clause}", Cell(count(kept + omitted, "leftover"), "dim"), (clause,), facts, (rows,))


DESCRIBERS: Mapping[str, Callable[[Any], list[Section]]] = {
    "language.trace.Trace": _trace,
    "explore.engine.Exploration": _exploration,
    "explore.walk.RandomWalk": _random_walk,
    "prove.engine.ProofResult": _proved,
    "prove.bounded.BoundedResult": _bounded,
    "judge.verdict.Verdict": _verdict,
    "judge.result.SubsystemVerdict": lambda j: _judgement([j]),
    "lockstep.walk.Walk": _walk,
    "fleet.campaign.CampaignResult": _campaign,
    "simulate.runs.SimulationResult": _simulated,
    "simulate.runs.Replay": _replayed,
    "audit.engine.Audit": _audit,
    "audit.watch.AuditChange": _change,
}
