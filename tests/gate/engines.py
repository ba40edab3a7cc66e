"""Each engine beside the text as Python runs it: functions from a space to what they disagree about.

A comparison yields `Disagreement`s; its `kind` is short and stable, for the shrinker keeps to it. UserErrors that an
engine is allowed (too large, ...) are counted, not compared; any other exception is a disagreement of its own.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafkaspec.errors import UserError
from kafkaspec.explore.engine import Exploration, Search, explore
from kafkaspec.explore.layout import WORD, Layout
from kafkaspec.explore.program import Program
from kafkaspec.explore.walk import walk
from kafkaspec.export import tla
from kafkaspec.language import LoadedModel, ModelError, Trace
from kafkaspec.language.concrete import Concrete, State
from kafkaspec.language.defined import DEFINED
from kafkaspec.prove.bounded import bounded
from kafkaspec.prove.engine import prove
from kafkaspec.prove.obligations import START
from tests.export.tlc import tlc
from tests.gate import oracle
from tests.gate.graph import Graph, bound
from tests.gate.oracle import Space

MEMORY_MB = 6000
STEPS = 320
"""Of a random walk."""
LANES = 8
"""What code compiled with care takes at once where vectors are wide; tests compile it quickly, and on any machine."""
LATE = ("or a bound variable in a proof", "is read at given sizes only", "too many for a proof")
"""What the prover may refuse although the text was loaded and the explorer takes it: what it cannot read where sizes
are open, and what is beyond its limits."""


@dataclass(frozen=True)
class Disagreement:
    """Two readings of one text that differ."""

    engine: str
    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.engine}: {self.kind}: {self.detail}"


Until = Callable[[Disagreement], bool]
"""Is a disagreement all that is asked for?"""


def never(d: Disagreement) -> bool:
    """All disagreements are asked for."""
    return False


class Enough(BaseException):
    """What is asked for was found."""


@dataclass
class Found:
    """What a comparison found, and how much it compared. It ends with the first of which `until` is true."""

    disagreements: list[Disagreement] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    until: Until = never

    def say(self, engine: str, kind: str, detail: object) -> None:
        self.disagreements.append(Disagreement(engine, kind, str(detail)))
        if self.until(self.disagreements[-1]):
            raise Enough

    def same(self, engine: str, kind: str, ours: object, text: object) -> None:
        """What an engine says, and what the text says."""
        if ours != text:
            self.say(engine, kind, f"{ours}, the text: {text}")

    @contextmanager
    def running(self, engine: str) -> Iterator[None]:
        """Errors are counted where they are allowed, and are disagreements elsewhere."""
        try:
            yield
        except ModelError as e:
            late = next((x for x in LATE if x in str(e)), None)
            if late is not None:
                self.counts[f"{engine}: refused late: {late}"] += 1
                return
            why = re.sub(r"[\w.]*\d[\w.]*|[A-Z]\w*|[^\w ]", "", str(e).rpartition(": ")[2])
            self.say(engine, f"refused late ({' '.join(why.split()[-6:])})", e)
        except UserError as e:
            self.counts[f"{engine}: not done"] += 1
            self.counts[f"{engine}: {str(e).partition(':')[2][:60]}"] += 1
        except Exception as e:
            last = traceback.extract_tb(e.__traceback__)[-1]
            self.say(engine, f"{type(e).__name__} in {last.name}", traceback.format_exc(limit=-4))
        else:
            self.counts[engine] += 1


def claim_of(name: str) -> str:
    """A claim's name as the oracle has it."""
    return "type" if name.startswith("type of ") else name


# ---- the explorer
def explored(found: Found, engine: str, s: Space, e: Exploration, distinct: int | None = None) -> None:
    """An exploration against the space. `distinct`: the number of orbits, where symmetry counts these."""
    orbits = distinct is not None
    if s.broken:
        found.same(engine, "verdict", e.outcome, "violation")
        if e.outcome != "violation" or e.trace is None:
            return
        found.same(engine, "steps", len(e.trace.steps) - 1, s.steps)
        if claim_of(e.trace.claim) not in s.broken:
            found.say(engine, "claim", f"{e.trace.claim}, the text: {sorted(s.broken)}")
        if not orbits:
            known = len(s.levels) - (1 if s.steps == len(s.levels) else 0)
            found.same(engine, "levels", list(e.states_per_level[:known]), [len(x) for x in s.levels[:known]])
            replayed(found, engine, s, e.trace)
        return
    found.same(engine, "verdict", e.outcome, "complete" if s.whole else "limit")
    if e.outcome == "violation" and e.trace is not None:
        found.say(engine, "claim", f"{e.trace.claim} after {len(e.trace.steps) - 1} steps")
        return
    known = len(s.levels)
    if not orbits:
        found.same(engine, "levels", list(e.states_per_level[:known]), [len(x) for x in s.levels])
    if s.whole and e.outcome == "complete":
        found.same(engine, "distinct", e.distinct, s.distinct if distinct is None else distinct)
        found.same(engine, "depth", e.depth, max(1, len(s.levels)))
        if not orbits:
            found.same(engine, "generated", e.generated, s.generated)
            found.same(engine, "taken", dict(e.taken), s.taken)
    if s.whole:
        ours = {n: len(t.steps) for n, t in e.witnesses.items() if t is not None}
        found.same(engine, "witnesses", ours, s.seen)
        for t in e.witnesses.values():
            if t is not None and not orbits:
                replayed(found, engine, s, t)


def replayed(found: Found, engine: str, s: Space, trace: Trace) -> None:
    """The run that is shown is one of the text, and ends as is said."""
    c = s.concrete
    keep = set(trace.steps[0].state)

    def shown(state: State) -> dict[str, Any]:
        return {n: v for n, v in c.show(state).items() if n in keep}

    last = claim_of(trace.claim) in (DEFINED, "type")
    here = [x for x in s.levels[0] if shown(x) == trace.steps[0].state]
    pairs: list[tuple[State, State]] = []
    for step in trace.steps[1 : len(trace.steps) - int(last)]:
        pairs = [
            (x, o.state) for x in here for o in oracle.outcomes(c, x)
            if o.state is not None and o.action == step.action and shown(o.state) == step.state
        ]  # fmt: skip
        here = [after for _, after in pairs]
    if not here:
        found.say(engine, "trace", "the run that is shown is none of the text")
        return
    if last:
        kind = "undefined" if claim_of(trace.claim) == DEFINED else "outside"
        ways = [o for x in here for o in oracle.outcomes(c, x) if o.action == trace.steps[-1].action]
        ends = any(o.kind == kind and trace.claim in (DEFINED, *o.types) for o in ways)
    elif trace.kind == "witness":
        ends = any(oracle.witnessed(c, trace.claim, x) for x in here)
    elif trace.claim in c.model.steps:
        ends = any(not oracle.holds(c, trace.claim, before, after) for before, after in pairs)
    elif trace.claim.endswith(f": {DEFINED}"):
        ends = any(oracle.witnessed(c, trace.claim.removesuffix(f": {DEFINED}"), x) is None for x in here)
    else:
        ends = any(not oracle.holds(c, trace.claim, x) for x in here)
    if not ends:
        found.say(engine, "trace", f"at its end {trace.claim} is not as is said")


def explorer(found: Found, m: LoadedModel, s: Space, variant: str, folder: Path, ghosts: bool) -> None:
    """One way to explore the model, against the space."""
    engine = f"explore {variant}"
    sizes = s.concrete.sizes
    with found.running(engine):
        limit = None if s.whole or s.broken else s.distinct
        options: dict[str, Any] = {
            "threads": 1, "liveness": False, "deadlock": True, "ghosts": ghosts, "max_states": limit,
            "max_memory_mb": MEMORY_MB,
        }  # fmt: skip
        distinct = None
        if s.start:
            try:
                e = explore(m, sizes, **options)
            except ModelError:
                raise
            except UserError as error:
                if "@initial" not in str(error):
                    raise
                return
            found.say(engine, "start", f"{e.outcome}, the text: @initial is {s.start}")
            return
        match variant:
            case "plain":
                pass
            case "vectors":
                options |= {"program": Program(Layout(m, sizes, ghosts), lanes=LANES), "threads": 2}
            case "words":
                options["program"] = Program(Layout(m, sizes, ghosts, usable=9), exact_words=64, lanes=LANES)
            case "fingerprints":
                options["program"] = Program(Layout(m, sizes, ghosts, usable=7), exact_words=1, lanes=LANES)
            case "resumed":
                file = folder / "checkpoint"
                file.unlink(missing_ok=True)
                for most in (1, s.distinct // 2):
                    e = explore(m, sizes, **{**options, "checkpoint": file, "max_states": most})
                    if e.outcome != "limit":
                        break
                options["checkpoint"] = file
            case _:
                sorts = tuple(n for n, kind in m.sizes.items() if kind == "sort")
                sorts = sorts[:1] if variant == "one sort" else sorts
                if not sorts or not (s.whole or s.broken):
                    return
                kept = [n for n in m.vars if ghosts or n not in m.ghosts]
                distinct = len({oracle.orbit(s.concrete, x, sorts, kept) for x in s.states})
                options["symmetry"] = sorts
                options["program"] = Program(Layout(m, sizes, ghosts), sorts, lanes=LANES)
        explored(found, engine, s, explore(m, sizes, **options), distinct)


def walked(found: Found, m: LoadedModel, s: Space, seed: int) -> None:
    """A random walk against the space: it begins at a right first state, and breaks nothing that holds."""
    engine = "walk"
    with found.running(engine):
        try:
            w = walk(m, s.concrete.sizes, seed=seed, steps=STEPS, ghosts=True)
        except UserError as error:
            if not s.start or "@initial" not in str(error):
                raise
            return
        if s.start:
            found.say(engine, "start", f"{w.steps} steps, the text: @initial is {s.start}")
        elif w.trace is not None:
            if s.whole and not s.broken:
                found.say(engine, "claim", f"{w.trace.claim} after {len(w.trace.steps) - 1} steps")
            replayed(found, engine, s, w.trace)
        elif s.broken and s.steps == 0:
            found.say(engine, "verdict", f"nothing, the text: {sorted(s.broken)} at the start")
        elif s.whole and not s.broken:
            found.same(
                engine, "taken", {n for n, k in w.taken.items() if k} <= {n for n, k in s.taken.items() if k}, True
            )


def transitions(
    found: Found, m: LoadedModel, s: Space, states: list[State], lanes: int, usable: int = WORD - 1
) -> None:
    """The explorer's transitions from, and its claims in, single states, reachable or not."""
    engine = "explore states"
    c = s.concrete
    with found.running(engine):
        program = Program(Layout(m, c.sizes, True, usable=usable), lanes=lanes)
        search = Search(program, 1, 64)
        lay = program.layout
        try:
            for state in states:
                words = tuple(lay.encode(c.show(state)))
                found.same(engine, "decoded", lay.decode(words), c.show(state))
                _transitions(found, engine, c, search, state, words)
                search.put(words)
                for i, (kind, claim) in enumerate(program.state_claims):
                    hit = search.f["least_hit"](
                        search.owns[0].address, search.one.address, 0, 1, i, search.best.address, 0
                    )
                    found.counts["claims in states"] += 1
                    if claim.name.endswith(f": {DEFINED}"):
                        of = claim.name.removesuffix(f": {DEFINED}")
                        found.same(engine, "witness defined", bool(hit), oracle.witnessed(c, of, state) is None)
                        continue
                    if bool(hit) != (oracle.holds(c, claim.name, state) == (kind == "witness")):
                        found.say(
                            engine, f"{kind}", f"{claim.name} is {bool(hit) == (kind == 'witness')} in {c.show(state)}"
                        )
        finally:
            search.close()


def _transitions(found: Found, engine: str, c: Concrete, search: Search, state: State, words: tuple[int, ...]) -> None:
    p = search.program
    ours: dict[str, tuple[str, Any]] = {}
    faulty: dict[str, set[str]] = {}

    def label(action: str, arguments: Mapping[str, Any]) -> str:
        return f"{action}({', '.join(f'{n}={_plain(v)}' for n, v in sorted(arguments.items()))})"

    ways = search.successors(words)
    notes = bytes(search.fault_notes(p.faults.index(DEFINED))[0])
    for i, instance in enumerate(p.instances):
        if notes[i]:
            step = search.step(instance, words, words)
            ours[label(step.action, step.arguments)] = ("undefined", None)
    for instance, after, faults in ways:
        names = {p.faults[i] for i in faults}
        outside = any(claim_of(n) == "type" for n in names)
        step = search.step(instance, words, words)
        name = label(step.action, step.arguments)
        faulty[name] = {n for n in names if n in c.model.steps}
        if name not in ours:  # else, and outside its type, a value may have no code
            ours[name] = ("outside", None) if outside else ("after", search.step(instance, words, after).state)
    for o in oracle.outcomes(c, state):
        name = label(o.action, o.arguments)
        found.counts["transitions"] += 1
        text = (o.kind, None if o.state is None else c.show(o.state))
        said = ours.pop(name, ("disabled", None))
        if said != text:
            found.say(engine, f"{said[0]} for {o.kind}", f"{name} in {c.show(state)}: {said}, the text: {text} {o.why}")
        elif o.state is not None:
            broken = {n for n in c.model.steps if not oracle.holds(c, n, state, o.state)}
            found.same(engine, "steps broken", sorted(faulty[name]), sorted(broken))
    for name, said in ours.items():
        found.say(engine, f"{said[0]} for nothing", f"{name} in {c.show(state)}")


def _plain(x: Any) -> Any:
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return {f.name: _plain(getattr(x, f.name)) for f in dataclasses.fields(x)}
    if isinstance(x, dict):
        return {n: _plain(v) for n, v in x.items()}
    name = getattr(x, "name", None)
    if isinstance(name, str):
        return name
    if isinstance(x, set | frozenset):
        return sorted(map(str, map(_plain, x)))
    return sorted(map(str, x)) if isinstance(x, list) else x


# ---- the graph
def read(found: Found, m: LoadedModel, s: Space, states: list[State]) -> None:
    """The graph of the text, evaluated in single states."""
    engine = "graph"
    c = s.concrete
    g = Graph(c)
    with found.running(engine), c._running():
        for state in states:
            now = g.state(state)
            for claim in [*m.invariants.values(), *m.lemmas.values(), *m.starts.values()]:
                found.same(engine, "claim", g.holds(claim.expr, now), oracle.holds(c, claim.name, state))
            for claim in m.witnesses.values():
                found.counts["claims in states"] += 1
                if g.holds(claim.expr, now) != oracle.holds(c, claim.name, state):
                    found.say(engine, "witness", f"{claim.name} is {g.holds(claim.expr, now)} in {c.show(state)}")
            for o in oracle.outcomes(c, state):
                a = next(a for a in m.actions if a.name == o.action)
                env = {p.aux: bound(c, p.t, o.arguments[a.parameter(p)]) for p in a.params}
                kind, after = g.outcome(a, env, now)
                found.counts["transitions"] += 1
                text = None if o.state is None else g.state(o.state)
                if (kind, after) != (o.kind, text):
                    said = (
                        f"{o.action}({dict(o.arguments)}) in {c.show(state)}: {kind} {after}, the text: {o.kind} {text}"
                    )
                    found.say(engine, f"{kind} for {o.kind}", f"{said} {o.why}")
                elif o.state is not None:
                    for claim in m.steps.values():
                        ours = g.holds(claim.expr, now, after)
                        found.same(engine, "step", ours, oracle.holds(c, claim.name, state, o.state))


# ---- bounded search
def searched(found: Found, m: LoadedModel, s: Space, most: int = 3) -> None:
    """A search of bounded length finds a violation if and only if the text has one within so many steps, and is vacuous
    if and only if the text has no first state."""
    engine = "bounded"
    with found.running(engine):
        if s.start:
            steps = 0
        else:
            steps = min(most, s.steps if s.broken else most if s.whole else len(s.levels) - 1)
        b = bounded(m, steps, s.concrete.sizes, timeout_s=2)
        if b.outcome == "unknown":
            found.counts["bounded: unknown"] += 1
            return
        bad = s.start or (s.broken and s.steps <= steps)
        want = "violation" if bad else "complete" if s.levels else "vacuous"
        found.same(engine, "verdict", b.outcome, want)
        if b.outcome == "violation" and want != "violation" and b.trace is not None:
            found.say(engine, "claim", f"{b.trace.claim} after {b.reached} steps")
        if b.outcome == want == "violation" and not s.start:
            assert b.trace is not None
            found.same(engine, "steps", b.reached, s.steps)
            if claim_of(b.trace.claim) not in s.broken | s.late:
                found.say(engine, "claim", f"{b.trace.claim}, the text: {sorted(s.broken)}")
            replayed(found, engine, s, b.trace)


# ---- the prover
Refutable = dict[tuple[str, str], tuple[Space, State | None, oracle.Outcome | None]]
"""Obligations that a single step of the text refutes: (action, claim) -> where."""


def refutable(spaces: list[Space], states: list[list[State]]) -> Refutable:
    """The obligations that single steps refute, from states in which every claim holds, reachable or not."""
    out: Refutable = {}
    for s, some in zip(spaces, states, strict=True):
        c = s.concrete
        m = c.model
        claims = [*m.invariants, *m.lemmas]
        if s.start:
            out.setdefault((START, DEFINED if s.start == "undefined" else "type"), (s, None, None))
            continue
        for name in claims:
            if s.levels and not all(oracle.holds(c, name, x) for x in s.levels[0]):
                out.setdefault((START, name), (s, None, None))
        for state in some:
            if not all(oracle.holds(c, n, state) for n in claims):
                continue
            for o in oracle.outcomes(c, state):
                broken: list[str] = []
                if o.kind in ("undefined", "outside"):
                    broken = [DEFINED] if o.kind == "undefined" else o.types
                elif o.state is not None:
                    broken = [n for n in claims if not oracle.holds(c, n, o.state)]
                    broken += [n for n in m.steps if not oracle.holds(c, n, state, o.state)]
                for n in broken:
                    out.setdefault((o.action, n), (s, state, o))
    return out


def drawn(
    known: Refutable, r: random.Random, sizes: Mapping[str, int | bool] | None, most: int
) -> list[tuple[str, str]]:
    """Those of the refutable obligations that the prover is asked about."""
    asked = sorted(k for k, (s, _, _) in known.items() if sizes is None or s.concrete.sizes == sizes)
    return r.sample(asked, min(most, len(asked)))


def prover(
    found: Found,
    m: LoadedModel,
    known: Refutable,
    asked: list[tuple[str, str]],
    sizes: Mapping[str, int | bool] | None,
) -> None:
    """What a step of the text refutes is not proved, with sizes held or not."""
    engine = "prove" if sizes is None else "prove at sizes"
    with found.running(engine):
        if not asked:
            return

        def wanted(action: str, claim: str) -> bool:
            return (action, claim) in asked or (action, claim_of(claim)) in asked

        result = prove(m, timeout_s=0.1, fixed=sizes, only=wanted)
        for action, claim in asked:
            mine = [o for o in result.obligations if o.action == action and claim in (o.claim, claim_of(o.claim))]
            verdicts = {o.verdict for o in mine}
            found.counts["refutable obligations"] += 1
            if verdicts <= {"proved"}:
                s, state, o = known[action, claim]
                where = "" if state is None or o is None else f" in {s.concrete.show(state)} with {dict(o.arguments)}"
                said = "is proved" if verdicts else "is no obligation"
                found.say(
                    engine,
                    f"{claim_of(claim) if claim_of(claim) in (DEFINED, 'type') else 'claim'} {said}",
                    f"{claim} after {action}{where} at {s.concrete.sizes}",
                )


# ---- TLA+
def exported(found: Found, m: LoadedModel, s: Space, folder: Path) -> None:
    """TLC on the export: the same counts, or a violation where the text has one."""
    engine = "TLC"
    if not (s.whole or s.broken or s.start) or (s.whole and not s.distinct):
        return  # without a first state TLC still evaluates claims that read no variable
    with found.running(engine):
        module, configuration = tla(m, s.concrete.sizes, ghosts=True, deadlock=True)
        at = folder / f"tlc{next(_runs)}"
        at.mkdir()
        said = tlc(at, module, configuration)
        violated = bool(re.search(r"is violated|is equal to FALSE", said.error))
        without_start = bool(re.search(r"Assumption .* is false", said.error))
        if said.error and not violated and not without_start:
            found.say(engine, "error", f"{said.error}\n{said.output[-1500:]}")
        elif (without_start and not s.start) or (not without_start and s.start == "undefined"):
            found.say(engine, "start", f"{said.error or 'no error'}, the text: {s.start or 'has a start'}")
        elif not without_start and violated != bool(s.broken or s.start):
            found.say(
                engine, "verdict", f"{said.error or 'no error'}, the text: {sorted(s.broken) or s.start or 'whole'}"
            )
        elif s.whole and s.distinct:
            ours = (said.generated, said.distinct, said.depth)
            found.same(engine, "counts", ours, (s.generated, s.distinct, len(s.levels)))


_runs = itertools.count()
