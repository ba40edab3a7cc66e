"""Random walks: long runs by chance through states too many to visit them all. The seed replays the walk anywhere.

Two parties of eight walkers each go on, on two threads; a walker that cannot go on, or has gone LONGEST steps, begins
again. Among the transitions
possible, the one of the highest rank is taken; chance decides between equals. The schedules differ in the ranks:
"uniform" has one rank; "swarm" draws for each walk which actions rank above the others; "priority" draws for each walk
a rank of each process (who acts, with the first parameter), and now and then degrades the one that has just acted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, get_args

from kafkaspec.errors import unknown
from kafkaspec.explore.engine import Progress, Search
from kafkaspec.explore.kernels import (
    BUFFERS,
    ENABLED,
    EVERY_LANE,
    FAULTS,
    FAULTY,
    HITS,
    INSTANCES,
    LANES,
    SCRATCH,
    STRIDE,
    WORDS,
    check,
    expand,
)
from kafkaspec.explore.layout import Layout
from kafkaspec.explore.level import Words
from kafkaspec.explore.memory import Block
from kafkaspec.explore.program import Program, capitals
from kafkaspec.language.defined import DEFINED
from kafkaspec.language.model import LoadedModel
from kafkaspec.language.trace import Trace, TraceStep
from kafkaspec.native import load, load8, load32, lowest, store, store32

Schedule = Literal["uniform", "swarm", "priority"]

PARTIES: Final = 2
WALKERS: Final = 8
LONGEST: Final = 1_000
CHANGE: Final = 32
"""A walker by priority degrades a process once in 32 steps."""
ROUNDS: Final = 1 << 16
"""Rounds between two looks at the clock and the interrupt."""
FEW: Final = 100_000
"""Steps for which the code is compiled quickly."""

# ---- the block of a walk
STATES: Final = 0
SEEDS: Final = 1
DEPTHS: Final = 2
ORIGINS: Final = 3
RANKS: Final = 4
UNITS: Final = 5
PATHS: Final = 6
STARTS: Final = 7
START_COUNT: Final = 8
SCHEDULE: Final = 9
TIMES: Final = 10
WALKS: Final = 11
UNIFORM: Final = 0
SWARM: Final = 1
PRIORITY: Final = 2

# ---- constants of the compilation
INVARIANTS = UNIT_COUNT = 0
SPREAD: Final = 0xD6E8FEB86659FD93


# ---- kernels (see `native`)
def draw(walk: int, w: int) -> int:
    """The next random number of walker w."""
    x = load(load(walk, SEEDS), w)
    x = x ^ (x << 13)
    x = x ^ (x >> 7)
    x = x ^ (x << 17)
    store(load(walk, SEEDS), w, x)
    return (x * SPREAD) >> 32


def restart(walk: int, w: int) -> int:
    """Walker w begins again, at one of the first states, with new ranks."""
    origin = draw(walk, w) % load(walk, START_COUNT)
    store(load(walk, ORIGINS), w, origin)
    store(load(walk, DEPTHS), w, 0)
    store(walk, WALKS, load(walk, WALKS) + 1)
    states = load(walk, STATES) + 8 * (w & -LANES) * WORDS
    for i in range(WORDS):
        store(states, i * LANES + (w & (LANES - 1)), load(load(walk, STARTS), origin * WORDS + i))
    ranks = load(walk, RANKS)
    for u in range(UNIT_COUNT):
        r = draw(walk, w) >> 1
        if load(walk, SCHEDULE) == UNIFORM:
            r = 0
        if load(walk, SCHEDULE) == SWARM:
            r = r & 1
        store32(ranks, w * UNIT_COUNT + u, r)
    return 0


def any_set(bytes: int, n: int) -> int:
    """Is one of the first n bytes not 0?"""
    x = 0
    for i in range(n // 8):
        x = x | load(bytes, i)
    for i in range(n & -8, n):
        x = x | load8(bytes, i)
    return x


def wander(own: int, walk: int, rounds: int) -> int:
    """`rounds` steps of every walker. 1 + the first walker of the group in which a claim was broken, or 0."""
    enabled = load(own, ENABLED)
    faulty = load(own, FAULTY)
    hits = load(own, HITS)
    buffer = load(own, BUFFERS)
    units = load(walk, UNITS)
    ranks = load(walk, RANKS)
    paths = load(walk, PATHS)
    times = load(walk, TIMES)
    depths = load(walk, DEPTHS)
    best = times + 8 * INSTANCES
    chosen = best + 8 * WALKERS
    at = chosen + 8 * WALKERS
    salts = at + 8 * WALKERS
    for _ in range(rounds):
        first = 0
        while first < WALKERS:
            states = load(walk, STATES) + 8 * first * WORDS
            expand(states, EVERY_LANE, buffer, enabled, faulty, load(own, SCRATCH), 1)
            if any_set(faulty, FAULTS * INSTANCES) != 0:
                return 1 + first
            for lane in range(LANES):
                store(best, lane, -1)
                store(salts, lane, draw(walk, first + lane))
            j = 0
            for i in range(INSTANCES):
                mask = load8(enabled, i)
                unit = load32(units, i)
                while mask != 0:
                    lane = lowest(mask)
                    mask = mask & (mask - 1)
                    chance = load(salts, lane) + i * SPREAD
                    chance = (chance ^ (chance >> 32)) * SPREAD
                    score = (load32(ranks, (first + lane) * UNIT_COUNT + unit) << 31) + (chance >> 33)
                    if score > load(best, lane):
                        store(best, lane, score)
                        store(chosen, lane, i)
                        store(at, lane, j)
                    j += 1
            for lane in range(LANES):
                w = first + lane
                depth = load(depths, w)
                if load(best, lane) == -1 or depth == LONGEST:
                    restart(walk, w)
                else:
                    i = load(chosen, lane)
                    store32(paths, w * LONGEST + depth, i)
                    store(depths, w, depth + 1)
                    store(times, i, load(times, i) + 1)
                    for c in range(WORDS):
                        store(states, c * LANES + lane, load(buffer, c * STRIDE + load(at, lane)))
                    if load(walk, SCHEDULE) == PRIORITY and load(salts, lane) % CHANGE == 0:
                        rank = w * UNIT_COUNT + load32(units, i)
                        store32(ranks, rank, load32(ranks, rank) >> 8)
            check(states, EVERY_LANE, hits)
            if any_set(hits, INVARIANTS) != 0:
                return 1 + first
            first += LANES
    return 0


LOOPS: tuple[Callable[..., object], ...] = (draw, restart, any_set, wander)


# ---- the walk
@dataclass(frozen=True)
class RandomWalk:
    """What a walk came to: `steps` taken in `walks` runs from a first state, and the run that broke a claim, if any.
    `unchecked` are the claims that were not asked, with the reason; lemmas are not among them."""

    model: LoadedModel
    sizes: Mapping[str, int | bool]
    seed: int
    schedule: Schedule
    steps: int
    walks: int
    seconds: float
    trace: Trace | None
    taken: Mapping[str, int]
    ghosts: bool = False
    unchecked: Mapping[str, str] = field(default_factory=dict)


def walk(
    model: LoadedModel,
    sizes: Mapping[str, int | bool],
    *,
    seed: int,
    steps: int,
    schedule: Schedule = "uniform",
    ghosts: bool = False,
    progress: Progress | None = None,
) -> RandomWalk:
    """Take `steps` random steps (rounded up to all walkers), checking the claims about states and transitions; every
    first state is checked too. Whatever the machine, the same seed is the same walk.

    Raises UserError for sizes that do not fit, an unknown schedule, an @initial that gives no first state or a wrong
    one, or a model without a finite layout.
    """
    if schedule not in get_args(Schedule):
        raise unknown("schedule", schedule, get_args(Schedule))
    program = Program(Layout(model, sizes, ghosts))
    units = _units(program, schedule)
    constants = capitals(globals()) | {
        "UNIT_COUNT": max(units, default=0) + 1,
        "INVARIANTS": sum(kind == "invariant" for kind, _ in program.state_claims),
    }
    extra = (LOOPS, {"restart", "wander"}, constants)
    search = Search(program, PARTIES, 64, extra=extra, quick=steps < FEW)
    try:
        with search.interruptible():
            parties = [_Party(search, t, units, constants["UNIT_COUNT"]) for t in range(PARTIES)]
            return _run(search, parties, seed, steps, schedule, progress)
    finally:
        search.close()


def _run(
    s: Search, parties: list[_Party], seed: int, steps: int, schedule: Schedule, progress: Progress | None
) -> RandomWalk:
    layout = s.program.layout
    started = time.perf_counter()
    for party in parties:
        party.begin(seed, schedule)
    broken = _wrong_start(s)
    rounds = -(-steps // (WALKERS * PARTIES))
    done = 0
    while done < rounds and broken is None:
        n = min(ROUNDS, rounds - done)
        s.all([partial(party.wander, n) for party in parties])
        s.heed()
        for party in parties:
            if party.group and broken is None:
                broken = party.first_broken(range(party.group - 1, party.group - 1 + s.lanes))
                assert broken is not None, "a walker that cannot be replayed"
        done += n
        if progress is not None:
            progress(done * WALKERS * PARTIES, steps, "steps")
    seconds = time.perf_counter() - started
    taken = {a.name: 0 for a in layout.model.actions}
    for party in parties:
        for i, t in zip(s.program.instances, party.times.numbers(), strict=False):
            taken[i.action.name] += t
    walks = sum(party.block.numbers()[WALKS] for party in parties)
    return RandomWalk(
        layout.model, layout.sizes, seed, schedule, sum(taken.values()), walks, seconds, broken, taken,
        s.program.ghosts, _unchecked(s.program),
    )  # fmt: skip


def _wrong_start(s: Search) -> Trace | None:
    """The first of the first states that breaks a claim about it, as a run without a step."""
    layout = s.program.layout
    for state in s.initial_states():
        claim = s.broken_by(state, ("invariant", "start"))
        if claim is not None:
            first = TraceStep("", "", (), {}, layout.decode(state))
            return Trace(layout.model.name, layout.sizes, "walk", claim.name, claim.clauses, (first,))
    return None


def _unchecked(program: Program) -> dict[str, str]:
    """The claims, lemmas apart, that no walk can check, and those that read ghosts which are left out."""
    model = program.layout.model
    open_ = dict.fromkeys(model.witnesses, "a walk looks for no witness")
    open_ |= dict.fromkeys(model.leads_to, "a leads-to claim is about whole runs, and a walk breaks off")
    return open_ | program.unchecked


def _units(program: Program, schedule: Schedule) -> list[int]:
    """What has a rank, by instance: the action, or for "priority" who acts, with the first parameter."""
    keys: dict[tuple[object, ...], int] = {}
    out = []
    for i in program.instances:
        a = i.action
        first = tuple(i.arguments[p.aux] for p in a.params[:1])
        key = (a.who or a.name, *first) if schedule == "priority" else (a.name,)
        out.append(keys.setdefault(key, len(keys)))
    return out


class _Party:
    """The memory of eight walkers, who go on the search's thread t."""

    def __init__(self, search: Search, t: int, units: list[int], unit_count: int) -> None:
        self.s, self.t, p = search, t, search.program
        self.group = 0
        n = p.rows
        self.starts = search.initial_states()
        self.states, self.paths = Block(8 * WALKERS * p.words), Block(4 * WALKERS * LONGEST)
        self.small, self.times = Block(8 * 4 * WALKERS), Block(8 * (n + 4 * WALKERS))
        self.ranks, self.units = Block(4 * WALKERS * unit_count + 8), Block(4 * n + 8)
        self.first = Block(8 * p.words * len(self.starts))
        self.block = Block(8 * 16)
        search.lent += [
            self.states, self.paths, self.small, self.times, self.ranks, self.units, self.first, self.block,
        ]  # fmt: skip
        b, small = self.block.numbers(), self.small.address
        for i, unit in enumerate(units):
            self.units.bytes(4 * i, 4 * i + 4)[:] = unit.to_bytes(4, "little")
        for i, x in enumerate(x for state in self.starts for x in state):
            self.first.numbers()[i] = x
        b[STATES], b[SEEDS], b[DEPTHS], b[ORIGINS] = self.states.address, small, small + 64, small + 128
        b[RANKS], b[UNITS], b[PATHS] = self.ranks.address, self.units.address, self.paths.address
        b[STARTS], b[START_COUNT], b[TIMES] = self.first.address, len(self.starts), self.times.address

    def begin(self, seed: int, schedule: Schedule) -> None:
        """Every walker at a first state."""
        self.block.numbers()[SCHEDULE] = get_args(Schedule).index(schedule)
        for w in range(WALKERS):
            self.small.numbers()[w] = _spread((seed * PARTIES + self.t) * WALKERS + w)
            self.s.f["restart"](self.block.address, w)

    def wander(self, rounds: int) -> None:
        """Go on; `group` is 1 + the first walker of those among whom a claim was broken."""
        self.group = self.s.f["wander"](self.s.owns[self.t].address, self.block.address, rounds)

    def first_broken(self, walkers: range) -> Trace | None:
        """The run of the first of these walkers that broke a claim."""
        s, p = self.s, self.s.program
        paths = memoryview(self.paths.bytes(0, self.paths.size)).cast("I")
        for w in walkers:
            origin, depth = self.small.numbers()[2 * WALKERS + w], self.small.numbers()[WALKERS + w]
            here: Words = self.starts[origin]
            steps = [TraceStep("", "", (), {}, p.layout.decode(here))]
            for i in paths[w * LONGEST : w * LONGEST + depth]:
                after = next(after for instance, after, _ in s.successors(here) if instance is p.instances[i])
                steps.append(s.step(p.instances[i], here, after))
                here = after
            claim = s.broken_by(here)
            name, clauses = (claim.name, claim.clauses) if claim is not None else ("", ())
            trace = Trace(p.layout.model.name, p.layout.sizes, "walk", name, clauses, tuple(steps))
            if claim is not None:
                return trace
            if s.undefined(here) is not None:
                return s.with_fault(trace, p.faults.index(DEFINED), here)
            for _, _, faults in s.successors(here):
                if faults:
                    return s.with_fault(trace, faults[0], here)
        return None


def _spread(x: int) -> int:
    """A seed's first random number; never 0."""
    x = (x + 1) * 0x9E3779B97F4A7C15 & 2**64 - 1
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
    x = (x ^ x >> 27) * 0x94D049BB133111EB & 2**64 - 1
    return (x ^ x >> 31) or 1
