"""Leads-to claims on the whole graph: is there a fair run on which the goal never comes?

Semantics are TLA's: any step may stutter; a fair action counts as possible in a state only if it can change the state.
Weak fairness of A: a run on which A is possible for ever takes A again and again. Strong: the same if A is possible
again and again. With `per` there is a condition for each value of those parameters.

A claim fails if, from a state where the trigger holds and the goal does not, states without the goal lead into a
strongly connected component of such states that is fair: each weak condition is taken inside or impossible in some
state of it, each strong one is taken inside or impossible in all of it. A component that only strong conditions forbid
is searched again without the states in which they are possible. The run is shown as a lasso through the component that
was found: the last step leads back to the state of step `loop`; a lasso without steps is a system that stops there for
ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from kafkaspec.errors import UserError
from kafkaspec.explore.kernels import (
    BUFFERS,
    COMPACT,
    COUNT,
    ENABLED,
    ENTRY_BYTES,
    ENTRY_MASK,
    EXTENT,
    FAULTY,
    INSTANCES,
    KEY,
    KEY_WORDS,
    LANES,
    REFERENCES,
    SCRATCH,
    SLOT,
    SLOTS,
    STRIDE,
    TABLE,
    TOP,
    expand,
    gather,
    lanes_between,
    prepare,
    refers,
    states_at,
    stride_of,
)
from kafkaspec.explore.level import Hit, Words
from kafkaspec.explore.memory import Block
from kafkaspec.language.expr import name_of
from kafkaspec.language.model import Fairness, LeadsTo
from kafkaspec.language.trace import Trace
from kafkaspec.native import load, load8, load32, load_bytes, prefetch, store, store8, store32

if TYPE_CHECKING:
    from kafkaspec.explore.engine import Search
    from kafkaspec.explore.program import Program

MOST_CONDITIONS: Final = 63
NONE32: Final = (1 << 32) - 1

# ---- the block of a graph: where its arrays lie
IDS: Final = 0
EDGES: Final = 1
TARGETS: Final = 2
LABELS: Final = 3
POSSIBLE: Final = 4
MARKS: Final = 5
CONDITIONS: Final = 6
EDGE_COUNT: Final = 7
STATES: Final = 8
ALIVE: Final = 9
PARENT: Final = 10
STACK: Final = 11
ORDER: Final = 12
LOW: Final = 13
CALLS: Final = 14
NEXT: Final = 15
COMPONENT: Final = 16
WEAK: Final = 17
STRONG: Final = 18
COMPONENT_SIZE: Final = 19
TAKEN_INSIDE: Final = 20

# ---- constants of the compilation
PROMISES = 0


# ---- kernels (see `native`)
def promises(states: int, active: int, answers: int) -> int:
    """Bytes 2i and 2i + 1 of `answers`: the lanes in which the i-th promise's trigger and goal hold."""
    raise NotImplementedError


def slot_of(shared: int, buffer: int, j: int) -> int:
    """The slot of state j of the buffer, which is in the table."""
    table = load(shared, TABLE)
    slot = load(buffer, SLOT + j)
    if COMPACT:
        wanted = load(buffer, KEY + j)
        away = 0
        while True:
            bucket = table + 64 * slot
            for i in range(load32(bucket, 0)):
                entry = load_bytes(bucket, 4 + i * ENTRY_BYTES) & ENTRY_MASK
                if REFERENCES:
                    if entry >> 32 == wanted and refers(shared, entry & 0xFFFFFFFF, buffer, j) == 1:
                        return slot * SLOTS + i
                elif entry == wanted | away:
                    return slot * SLOTS + i
            away += 1
            slot += stride_of(wanted)
            while slot >= load(shared, EXTENT):
                slot -= load(shared, EXTENT)
    last = (1 << (64 - load(shared, EXTENT))) - 1
    key = load(buffer, KEY + j) | TOP
    while True:
        if load(table, slot * KEY_WORDS) == key:
            k = 1
            while k < KEY_WORDS and load(table, slot * KEY_WORDS + k) == load(buffer, KEY + k * STRIDE + j):
                k += 1
            if k >= KEY_WORDS:
                return slot
        slot = (slot + 1) & last


def number_states(shared: int, own: int, graph: int, first_id: int) -> int:
    """Give the states of this thread's queue their numbers, from first_id on."""
    count = load(own, COUNT)
    buffer = load(own, BUFFERS)
    ids = load(graph, IDS)
    i = 0
    while i < count:
        n = gather(shared, own, i, count)
        for j in range(n):
            store32(ids, slot_of(shared, buffer, j), first_id + i + j)
        i += n
    return 0


def draw_edges(shared: int, own: int, graph: int, queue: int, count: int, first_id: int) -> int:
    """The transitions that change a state, from the states of one queue, and what each promise says of them. Claims
    about transitions are not looked at: the search has asked them of each."""
    buffer = load(own, BUFFERS)
    enabled = load(own, ENABLED)
    ids = load(graph, IDS)
    starts = load(graph, EDGES)
    targets = load(graph, TARGETS)
    labels = load(graph, LABELS)
    possible = load(graph, POSSIBLE)
    marks = load(graph, MARKS)
    states = load(graph, STATES)
    conditions = load(graph, CONDITIONS)
    answers = conditions + 8 * INSTANCES
    edge = load(graph, EDGE_COUNT)
    first = 0
    while first < count:
        active = lanes_between(first, 0, count)
        here = states_at(own, queue, first)
        n = expand(here, active, buffer, enabled, load(own, FAULTY), load(own, SCRATCH), 0)
        prepare(shared, buffer, n)
        for j in range(n):
            slot = slot_of(shared, buffer, j)
            store(buffer, SLOT + j, slot)
            prefetch(ids, slot >> 1)
        promises(here, active, answers)
        for lane in range(LANES):
            if (active >> lane) & 1 != 0:
                id = first_id + first + lane
                store(starts, id, edge)
                bits = 0
                j = 0
                for i in range(INSTANCES):
                    mask = load8(enabled, i)
                    if (mask >> lane) & 1 != 0:
                        below = mask & ((1 << lane) - 1)
                        at = j
                        while below != 0:
                            at += 1
                            below = below & (below - 1)
                        target = load32(ids, load(buffer, SLOT + at))
                        if target != id:
                            store32(targets, edge, target)
                            store32(labels, edge, i)
                            bits = bits | load(conditions, i)
                            edge += 1
                    while mask != 0:
                        j += 1
                        mask = mask & (mask - 1)
                store(possible, id, bits)
                for p in range(PROMISES):
                    mark = ((load8(answers, 2 * p) >> lane) & 1) | (((load8(answers, 2 * p + 1) >> lane) & 1) << 1)
                    store8(marks, p * states + id, mark)
        first += LANES
    store(graph, EDGE_COUNT, edge)
    store(starts, first_id + count, edge)
    return 0


def spread(graph: int, promise: int) -> int:
    """Mark as alive every state that can be reached, without the goal, from one with the trigger and without the goal;
    `PARENT` leads back. Their number."""
    states = load(graph, STATES)
    marks = load(graph, MARKS) + promise * states
    alive = load(graph, ALIVE)
    parent = load(graph, PARENT)
    stack = load(graph, STACK)
    starts = load(graph, EDGES)
    targets = load(graph, TARGETS)
    n = 0
    for i in range(states):
        store8(alive, i, 0)
        if load8(marks, i) == 1:
            store8(alive, i, 1)
            store32(parent, i, NONE32)
            store32(stack, n, i)
            n += 1
    i = 0
    while i < n:
        here = load32(stack, i)
        for e in range(load(starts, here), load(starts, here + 1)):
            there = load32(targets, e)
            if load8(alive, there) == 0 and load8(marks, there) & 2 == 0:
                store8(alive, there, 1)
                store32(parent, there, here)
                store32(stack, n, there)
                n += 1
        i += 1
    return n


def enter(graph: int, here: int, clock: int, depth: int, height: int) -> int:
    """Tarjan's algorithm comes to a state for the first time."""
    store32(load(graph, CALLS), depth, here)
    store32(load(graph, ORDER), here, clock)
    store32(load(graph, LOW), here, clock)
    store(load(graph, NEXT), here, load(load(graph, EDGES), here))
    store32(load(graph, STACK), height, here)
    return 0


def fair(graph: int, base: int, height: int) -> int:
    """Is the component whose states are on the stack from `base` to `height` fair? 1 if so, and it is in `COMPONENT`.
    Else its states are not alive any more; but 2 if only strong fairness forbids it, and then those in which the
    forbidding conditions are impossible are to be looked at again."""
    alive = load(graph, ALIVE)
    starts = load(graph, EDGES)
    targets = load(graph, TARGETS)
    possible = load(graph, POSSIBLE)
    stack = load(graph, STACK)
    always = -1
    sometimes = 0
    inside = 0
    for i in range(base, height):
        s = load32(stack, i)
        store8(alive, s, 2)
        always = always & load(possible, s)
        sometimes = sometimes | load(possible, s)
    for i in range(base, height):
        s = load32(stack, i)
        for e in range(load(starts, s), load(starts, s + 1)):
            if load8(alive, load32(targets, e)) == 2:
                inside = inside | load(load(graph, CONDITIONS), load32(load(graph, LABELS), e))
    forbidding = sometimes & load(graph, STRONG) & ~inside
    again = 0
    if always & load(graph, WEAK) & ~inside == 0:
        if forbidding == 0:
            for i in range(base, height):
                store32(load(graph, COMPONENT), i - base, load32(stack, i))
            store(graph, COMPONENT_SIZE, height - base)
            store(graph, TAKEN_INSIDE, inside)
            return 1
        again = 2
    for i in range(base, height):
        s = load32(stack, i)
        if again == 2 and load(possible, s) & forbidding == 0:
            store8(alive, s, 4)
        else:
            store8(alive, s, 3)
    return again


def fair_component(graph: int) -> int:
    """A fair strongly connected component of the alive states (Tarjan's algorithm), into `COMPONENT`: 1 if there is
    one. Else 2 if components were found that only strong fairness forbids: their states stay alive, but for those in
    which the forbidding conditions are possible; all others are not alive any more. Else 0."""
    states = load(graph, STATES)
    alive = load(graph, ALIVE)
    starts = load(graph, EDGES)
    targets = load(graph, TARGETS)
    order = load(graph, ORDER)
    low = load(graph, LOW)
    calls = load(graph, CALLS)
    next_edge = load(graph, NEXT)
    stack = load(graph, STACK)
    for i in range(states):
        store32(order, i, 0)
    clock = 0
    height = 0
    again = 0
    for root in range(states):
        if load8(alive, root) == 1 and load32(order, root) == 0:
            clock += 1
            enter(graph, root, clock, 0, height)
            depth = 1
            height += 1
            while depth > 0:
                here = load32(calls, depth - 1)
                e = load(next_edge, here)
                if e < load(starts, here + 1):
                    store(next_edge, here, e + 1)
                    there = load32(targets, e)
                    if load8(alive, there) == 1:
                        if load32(order, there) == 0:
                            clock += 1
                            enter(graph, there, clock, depth, height)
                            depth += 1
                            height += 1
                        elif load32(order, there) < load32(low, here):
                            store32(low, here, load32(order, there))
                    continue
                depth -= 1
                if depth > 0:
                    caller = load32(calls, depth - 1)
                    if load32(low, here) < load32(low, caller):
                        store32(low, caller, load32(low, here))
                if load32(low, here) == load32(order, here):
                    base = height - 1
                    while load32(stack, base) != here:
                        base -= 1
                    answer = fair(graph, base, height)
                    if answer == 1:
                        return 1
                    again = again | answer
                    height = base
    for i in range(states):
        if load8(alive, i) == 4:
            store8(alive, i, 1)
        else:
            store8(alive, i, 0)
    return again


LOOPS: tuple[Callable[..., object], ...] = (slot_of, number_states, draw_edges, spread, enter, fair, fair_component)
EXPORTED = frozenset({"number_states", "draw_edges", "spread", "fair_component"})


# ---- conditions
@dataclass(frozen=True)
class Condition:
    """One fairness condition: an action, for one choice of its `per` parameters."""

    action: str
    fair: Fairness
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Promise:
    """A leads-to claim for one choice of its parameters."""

    claim: LeadsTo
    arguments: tuple[tuple[str, int], ...]


def condition_of(program: Program) -> tuple[list[Condition], list[int]]:
    """The fairness conditions, and for each instance the bit of the one it belongs to (0: none)."""
    table: dict[Condition, int] = {}
    bits = []
    for i in program.instances:
        if not i.action.fair:
            bits.append(0)
            continue
        chosen = tuple(i.arguments[p.aux] for p in i.action.params if i.action.parameter(p) in i.action.per)
        bits.append(1 << table.setdefault(Condition(i.action.name, i.action.fair, chosen), len(table)))
    if len(table) > MOST_CONDITIONS:
        raise UserError(
            f"{program.layout.model.name}: {len(table)} fairness conditions at these sizes; at most {MOST_CONDITIONS}"
        )
    return list(table), bits


class Graph:
    """The whole graph of a finished search, and the lasso that breaks a leads-to claim."""

    def __init__(self, search: Search) -> None:
        self.s, p = search, search.program
        conditions, bits = condition_of(p)
        self.states = n = search.distinct
        edges = search.generated - search.first_count
        instances = p.rows
        sizes = {
            IDS: 4 * search.slots,
            EDGES: 8 * (n + 1),
            TARGETS: 4 * edges,
            LABELS: 4 * edges,
            POSSIBLE: 8 * n,
            MARKS: n * len(p.promises),
            CONDITIONS: 8 * instances + 2 * len(p.promises),
            ALIVE: n,
            PARENT: 4 * n,
            STACK: 4 * n,
            ORDER: 4 * n,
            LOW: 4 * n,
            CALLS: 4 * n,
            NEXT: 8 * n,
            COMPONENT: 4 * n,
        }
        if search.used_mb() + sum(sizes.values()) / 2**20 > search.budget_mb:
            raise MemoryError
        self.blocks = {k: Block(size + 8) for k, size in sizes.items()}
        self.block = Block(8 * 32)
        search.lent += [*self.blocks.values(), self.block]
        g = self.g = self.block.numbers()
        for k, b in self.blocks.items():
            g[k] = b.address
        g[STATES] = n
        for i, x in enumerate(bits):
            self.blocks[CONDITIONS].numbers()[i] = x
        g[WEAK] = sum(1 << i for i, c in enumerate(conditions) if c.fair == "weak")
        g[STRONG] = sum(1 << i for i, c in enumerate(conditions) if c.fair == "strong")
        self.condition_count, self.bits = len(conditions), bits
        self._draw()

    def _draw(self) -> None:
        s, g = self.s, self.block.address
        self.first_ids = [sum(s.counts()[:t]) for t in range(s.threads)]
        shared = s.shared.address
        for t, first in enumerate(self.first_ids):
            s.call(s.f["number_states"], shared, s.owns[t].address, g, first)
        for t, first in enumerate(self.first_ids):
            s.call(s.f["draw_edges"], shared, s.owns[0].address, g, s.queues[t].address, s.counts()[t], first)
        self.edges = self.blocks[EDGES].numbers()
        self.targets = memoryview(self.blocks[TARGETS].bytes(0, self.blocks[TARGETS].size)).cast("I")
        self.labels = memoryview(self.blocks[LABELS].bytes(0, self.blocks[LABELS].size)).cast("I")

    def close(self) -> None:
        self.targets.release()
        self.labels.release()
        for b in self.blocks.values():
            b.close()

    def lasso(self) -> Trace | None:
        """A fair run that breaks the first leads-to claim that can be broken."""
        s, g = self.s, self.g
        for i, promise in enumerate(s.program.promises):
            if not s.call(s.f["spread"], self.block.address, i):
                continue
            while (answer := s.call(s.f["fair_component"], self.block.address)) == 2:
                pass
            if answer:
                component = list(memoryview(self.blocks[COMPONENT].bytes(0, 4 * g[COMPONENT_SIZE])).cast("I"))
                return self._trace(promise, i, component, g[TAKEN_INSIDE])
        return None

    # ---- the run
    def _words(self, id: int) -> Words:
        s = self.s
        t = max(t for t in range(s.threads) if self.first_ids[t] <= id and s.counts()[t])
        return s.state_at(t, id - self.first_ids[t])

    def _level(self, id: int) -> int:
        s = self.s
        t = max(t for t in range(s.threads) if self.first_ids[t] <= id and s.counts()[t])
        return max(d for d, starts in enumerate(s.starts) if starts[t] <= id - self.first_ids[t])

    def _way(self, start: int, inside: set[int], goal: Callable[[int], bool]) -> list[tuple[int, int]]:
        """A shortest way within a component: (instance, state) by (instance, state)."""
        came: dict[int, tuple[int, int]] = {}
        todo, seen = [start], {start}
        if goal(start):
            return []
        for here in todo:
            for e in range(self.edges[here], self.edges[here + 1]):
                there = self.targets[e]
                if there in inside and there not in seen:
                    seen.add(there)
                    came[there] = (self.labels[e], here)
                    if goal(there):
                        out = []
                        while there != start:
                            label, before = came[there]
                            out.append((label, there))
                            there = before
                        return out[::-1]
                    todo.append(there)
        raise AssertionError("a strongly connected component is not connected")

    def _round(self, entry: int, component: set[int], taken: int) -> list[tuple[int, int]]:
        """From `entry` through the component and back, so that every fairness condition has its due."""
        possible = self.blocks[POSSIBLE].numbers()
        weak = self.g[WEAK]
        out: list[tuple[int, int]] = []
        here = entry
        for c in range(self.condition_count):
            bit = 1 << c
            if taken & bit:
                source, label, target = next(
                    (x, self.labels[e], self.targets[e])
                    for x in sorted(component)
                    for e in range(self.edges[x], self.edges[x + 1])
                    if self.bits[self.labels[e]] & bit and self.targets[e] in component
                )
                out += [*self._way(here, component, lambda x, source=source: x == source), (label, target)]  # type: ignore[misc]
                here = target
            elif weak & bit:
                way = self._way(here, component, lambda x, bit=bit: not possible[x] & bit)  # type: ignore[misc]
                out += way
                here = way[-1][1] if way else here
        return out + self._way(here, component, lambda x: x == entry)

    def _trace(self, promise: Promise, number: int, component: list[int], taken: int) -> Trace:
        s, p = self.s, self.s.program
        lay = p.layout
        s.call(s.f["spread"], self.block.address, number)
        parents = memoryview(self.blocks[PARENT].bytes(0, 4 * self.states)).cast("I")
        entry = component[0]
        way = [entry]
        while parents[way[-1]] != NONE32:
            way.append(parents[way[-1]])
        way.reverse()
        steps, _ = s.steps(s.path(Hit(self._level(way[0]), self._words(way[0]))))
        for before, after in pairwise(way):
            label = next(
                self.labels[e] for e in range(self.edges[before], self.edges[before + 1]) if self.targets[e] == after
            )
            steps.append(s.step(p.instances[label], self._words(before), self._words(after)))
        loop = len(steps) - 1
        before = entry
        for label, after in self._round(entry, set(component), taken):
            steps.append(s.step(p.instances[label], self._words(before), self._words(after)))
            before = after
        claim, bound = promise.claim, dict(promise.arguments)
        shown = ", ".join(f"{name_of(v.aux)}={lay.show_bound(v.t, bound[v.aux])}" for v in claim.params)
        name = f"{claim.name}({shown})" if shown else claim.name
        return Trace(lay.model.name, lay.sizes, "lasso", name, claim.clauses, tuple(steps), loop)
