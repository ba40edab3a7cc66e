"""Breadth-first search over every reachable state of a model at given sizes.

Counts are exact and TLC's: distinct states, states generated (the first ones and one for each transition), depth (the
number of levels; the first states are level 1). A level is finished before anything is reported, and among several
answers the least state is taken, so that a run's result does not depend on its threads.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Literal, Protocol

from kafkaspec.errors import UserError, unknown
from kafkaspec.explore import checkpoint as checkpoints
from kafkaspec.explore import kernels as k
from kafkaspec.explore.layout import UNBOUNDED, Layout
from kafkaspec.explore.level import Hit, Level, Words
from kafkaspec.explore.memory import Block, Numbers, available_mb, peak_mb, resident_mb
from kafkaspec.explore.outside import left
from kafkaspec.explore.packing import BUCKET, REFERENCE_BITS, USUAL, Form, Packing
from kafkaspec.explore.program import Instance, Program, capitals
from kafkaspec.language.defined import DEFINED
from kafkaspec.language.model import Claim, LoadedModel
from kafkaspec.language.trace import Kind, Trace, TraceStep, Value
from kafkaspec.language.types import T

Outcome = Literal["complete", "violation", "deadlock", "liveness", "limit"]
Extra = tuple[Sequence[Callable[..., object]], Set[str], Mapping[str, int]]
"""More loops to compile with the search's own: the functions, those that are called from outside, their constants."""
NOTHING: Extra = ((), frozenset(), {})


FIRST_BITS = 20
LOAD = (5, 8)
"""The table is doubled when it is fuller than this fraction."""
QUICK = 20_000
"""The most states that are found before it is asked whether to go on with other code. A search that has found these
goes on with code that takes many states at once: LLVM needs longer for it, and it runs faster."""
LONG = 20
"""Code that was compiled quickly has run for long when it ran this many times as long as it took to compile. Compiled
with care it takes some ten times as long to compile and is faster by much less: most runs are over before that pays."""
MANY = 300_000
"""From this many states on, the loops are compiled with care, which takes a fraction of a second for any model."""
SPARSE = 64
"""Growing does not help a packed table that is still crowded when it could hold 64 times the states."""
WAIT_S = 0.1
SAVE_S = 60.0
"""A run with a checkpoint writes it once a minute."""


class Progress(Protocol):
    """What is told as a run goes on: how much is done, and of how much if that is known."""

    def __call__(self, done: float, total: float | None = None, text: str = "") -> None: ...


@dataclass(frozen=True)
class Exploration:
    """What a run found. `limit` says what was covered if the run did not end by itself; `unchecked` are the claims that
    were not asked, with the reason. Lemmas are not among them: they are there for the proof alone."""

    model: LoadedModel
    sizes: Mapping[str, int | bool]
    distinct: int
    generated: int
    depth: int
    states_per_level: tuple[int, ...]
    seconds: float
    compile_seconds: float
    peak_mb: float
    bits: int
    words: int
    outcome: Outcome
    trace: Trace | None
    witnesses: Mapping[str, Trace | None]
    taken: Mapping[str, int]
    limit: str = ""
    fingerprint_collision: float | None = None
    symmetry: tuple[str, ...] = ()
    packed: bool = False
    ghosts: bool = False
    deadlock: bool = False
    unchecked: Mapping[str, str] = field(default_factory=dict)


class Stopped(KeyboardInterrupt):
    """The first Ctrl-C, at a point from which the search can go on."""


class Team:
    """Threads that do one thing at a time, together. Machine code runs without Python's lock. `running` counts the jobs
    that have not ended; what these use is in `holds` if nobody else keeps it, and goes when the threads are gone."""

    def __init__(self, size: int) -> None:
        self.running = 0
        self.holds: object = None
        self.jobs: list[SimpleQueue[Callable[[], object] | None]] = [SimpleQueue() for _ in range(size)]
        self.done: SimpleQueue[object] = SimpleQueue()
        for jobs in self.jobs:
            threading.Thread(target=self._serve, args=(jobs,), daemon=True).start()

    def _serve(self, jobs: SimpleQueue[Callable[[], object] | None]) -> None:
        while (job := jobs.get()) is not None:
            try:
                self.done.put(job())
            except BaseException as e:
                self.done.put(e)

    def run(self, jobs: Sequence[Callable[[], object]], meanwhile: Callable[[], None]) -> None:
        """All jobs, one a thread."""
        self.running += len(jobs)
        for queue, job in zip(self.jobs, jobs, strict=False):
            queue.put(job)
        while self.running:
            try:
                result = self.done.get(timeout=WAIT_S)
            except Empty:
                meanwhile()
                continue
            self.running -= 1
            if isinstance(result, BaseException):
                raise result

    def close(self) -> None:
        for jobs in self.jobs:
            jobs.put(None)


@dataclass
class Search:
    """One run: tables, queues and counters. `starts[d][t]` is where level d begins in thread t's queue. A run begins in
    the fast form; `packing` is set when it has gone over to packed states (see `packing`)."""

    program: Program
    threads: int
    budget_mb: float
    progress: Progress | None = None
    generated: int = 0
    starts: list[list[int]] = field(default_factory=list)
    level: Level = field(default_factory=lambda: Level([], []))
    seen: dict[str, Hit] = field(default_factory=dict)
    stuck: Hit | None = None
    first_count: int = 0
    interrupted: bool = False
    extra: Extra = NOTHING
    form: Form = USUAL
    packing: Packing | None = None
    quick: bool = True
    """Whether the model's code is the one that was compiled quickly."""
    loops_quick: bool = True
    """Whether the loops' code is."""
    wide: bool = False
    """Whether code that was compiled quickly takes as many states at once as other code."""
    lent: list[Block] = field(default_factory=list)
    """Memory of others that the threads use."""

    def __post_init__(self) -> None:
        p, threads = self.program, self.threads
        self.compile_seconds = 0.0
        self.compile(quickly=self.quick, loops_quickly=self.loops_quick)
        self.began = self.told = time.monotonic()
        self.base_mb = resident_mb()
        self.team = Team(threads)
        self.shared = Block(8 * (k.SLICES + 4 * threads + 8))
        self.control = self.shared.numbers()
        self.owns = [Block(8 * 16) for _ in range(threads)]
        self.own = [b.numbers() for b in self.owns]
        self.queues = self._reserve(int(self.budget_mb) << 20)
        self.capacity = self.queues[0].size // (8 * p.words) - 8 * p.width
        self.buffers = [Block(8 * 2 * p.stride * (p.words + 2)) for _ in range(threads)]
        n, faults = p.rows, len(p.faults)
        self.notes = [Block(8 * (n // 8 + 2) + faults * n + 16 * (len(p.layout.model.actions) + 1)) for _ in self.owns]
        self.hits = [Block(len(p.state_claims) + 8) for _ in self.owns]
        for t in range(threads):
            own, notes = self.own[t], self.notes[t].address
            own[k.QUEUE], own[k.BUFFERS] = self.queues[t].address, self.buffers[t].address
            own[k.TAKEN] = notes
            own[k.SCRATCH] = notes + 8 * (len(p.layout.model.actions) + 1)
            own[k.ENABLED] = notes + 16 * (len(p.layout.model.actions) + 1)
            own[k.FAULTY] = own[k.ENABLED] + 8 * (n // 8 + 2)
            own[k.HITS] = self.hits[t].address
            own[k.THREAD] = t
            self.control[k.SLICES + 4 * t] = self.queues[t].address
        self.packed_blocks: list[Block] = []
        self.buckets = 0
        self.one = Block(8 * p.words * p.width)
        self.best = Block(8 * p.words)
        self.goal = Block(8 * p.words)
        self.margin = p.chunk * max(1, len(p.instances))
        self.bits = FIRST_BITS
        while self.allowed() < 8 * threads * self.margin:
            self.bits += 1
        self.table = Block(0)
        self.cleared = 0
        self.new_table()

    def compile(self, packing: Packing | None = None, quickly: bool = False, loops_quickly: bool = False) -> None:
        """The model's code and the loops, for states in the fast form or for packed ones."""
        self.quick, self.loops_quick = quickly, loops_quickly
        self.code = self.program.compile(
            *self.extra, packing=packing, quickly=quickly, loops_quickly=loops_quickly, wide=self.wide
        )
        self.lanes = self.program.lanes
        self.compile_seconds += self.code.seconds
        self.f = self.code.functions

    def go_over(self, packing: Packing | None = None, quickly: bool = False) -> None:
        """To code that takes many states at once, from whatever it was; they lie in the fast form."""
        before, self.wide = self.lanes, True
        self.compile(packing, quickly, quickly)
        if self.lanes != before:
            gather, queues = self.f["gather_lanes"], zip(self.queues, self.counts(), self.buffers, strict=True)
            self.all([partial(gather, queue.address, n, room.address) for queue, n, room in queues])

    def is_long(self) -> bool:
        """Whether code that was compiled quickly has run for long."""
        return time.monotonic() - self.began > LONG * self.compile_seconds

    # ---- counters
    def counts(self) -> list[int]:
        return [o[k.COUNT] for o in self.own]

    @property
    def distinct(self) -> int:
        return sum(self.counts())

    def taken_by_thread(self) -> list[list[int]]:
        n = len(self.program.layout.model.actions)
        return [b.numbers()[:n] for b in self.notes]

    def set_taken(self, taken: list[list[int]]) -> None:
        for block, column in zip(self.notes, taken, strict=True):
            for i, x in enumerate(column):
                block.numbers()[i] = x

    def taken(self) -> dict[str, int]:
        """How often each action was taken."""
        actions = self.program.layout.model.actions
        return {a.name: sum(c) for a, c in zip(actions, zip(*self.taken_by_thread(), strict=True), strict=True)}

    # ---- memory
    @property
    def slots(self) -> int:
        """Of the table."""
        return 1 << self.bits if self.packing is None else self.buckets * self.packing.slots

    def allowed(self) -> int:
        """How many states the table may hold."""
        if self.packing is not None:
            return self.packing.allowed(self.buckets)
        return (1 << self.bits) * LOAD[0] // LOAD[1]

    def table_bytes(self) -> int:
        return 8 * self.program.key_words << self.bits if self.packing is None else BUCKET * self.buckets

    def queue_bytes(self, states: int) -> int:
        """Bytes of a number of states in a queue."""
        p = self.program
        if self.packing is not None:
            return states * self.packing.state_bytes
        return -(-states // self.lanes) * self.lanes * p.words * 8

    def used_mb(self) -> float:
        return self.base_mb + (self.table_bytes() + self.queue_bytes(self.distinct)) / 2**20

    def _reserve(self, size: int) -> list[Block]:
        """A queue for each thread; of less than `size` bytes where the system does not promise that much."""
        while True:
            try:
                return [Block(size) for _ in range(self.threads)]
            except OSError:
                size //= 2
                if size < 1 << 20:
                    raise UserError("there is no memory to explore in") from None

    def _large(self, size: int) -> Block:
        """Memory of `size` bytes with room to grow, where the system promises it."""
        try:
            return Block(max(2 * size, self.free_bytes()))
        except OSError:
            return Block(size)

    def new_table(self) -> None:
        """An empty table of the size that is wanted now. A packed one grows where it is: memory that the system has
        given once is not asked for again."""
        size = self.table_bytes() + BUCKET
        if self.packing is not None and size <= self.table.size:
            clear, at, n = self.f["clear"], self.table.address, self.cleared // 8
            cuts = [n * t // self.threads for t in range(self.threads + 1)]
            self.all([partial(clear, at + 8 * a, b - a) for a, b in pairwise(cuts)])
        else:
            self.table.close()
            self.table = Block(size) if self.packing is None else self._large(size)
        self.cleared = size
        self.control[k.TABLE] = self.table.address
        self.control[k.EXTENT] = 64 - self.bits if self.packing is None else self.buckets

    def make_room(self, max_states: int | None) -> str:
        """Set how far each thread may go, after the table has grown if need be; which limit forbids it, else ""."""
        memory = f"memory: {self.budget_mb:,.0f} MB"
        if self.packing is None and self.table_bytes() > self.form.fast_mb * 2**20:
            self.pack()
        needed = 2 * self.margin * self.threads
        while self.allowed() - self.distinct < needed:
            if not self.grow(self.distinct + needed):
                return memory
        if max_states is not None and self.distinct >= max_states:
            return f"states: {max_states:,}"
        spare = (self.budget_mb - self.used_mb()) * 2**20
        room = min(self.allowed() - self.distinct, int(spare / (self.queue_bytes(64) / 64)))
        each = room // self.threads - self.margin
        if each < 0:
            return memory
        if max(self.counts()) + self.margin > self.capacity:
            referring = self.packing is not None and self.packing.references
            return f"states: {1 << REFERENCE_BITS:,}, the most that a table can refer to" if referring else memory
        if max_states is not None:
            each = min(each, (max_states - self.distinct) // self.threads)
        if self.quick:
            each = min(each, QUICK // self.threads)
        for own in self.own:
            own[k.ROOM] = min(own[k.COUNT] + each, self.capacity - self.margin)
        return ""

    def grow(self, states: int) -> bool:
        """Have a larger table, for at least `states` if it can be; False if the budget forbids it."""
        if self.packing is None:
            wider = 3 if self.bits == FIRST_BITS else 1  # each growth enters every state again
            old_mb, new_mb = self.table_bytes() / 2**20, (self.table_bytes() << wider) / 2**20
            if new_mb > self.form.fast_mb or self.used_mb() + new_mb - old_mb > self.budget_mb:
                return self.pack()
            self.bits += wider
        else:
            wanted = max(self.packing.grown(self.buckets), self.packing.wanted(states))
            buckets = min(wanted, self.packing.fit(self.free_bytes()))
            if buckets <= self.buckets or self.packing.allowed(buckets) < states:
                return False
            self.buckets = buckets
        self.new_table()
        self.fill_table()
        return True

    def free_bytes(self) -> int:
        """What the budget leaves for table and queues."""
        return max(0, int((self.budget_mb - self.base_mb) * 2**20))

    def pack(self, more: int = 0) -> bool:
        """Go over to packed states, and a table with room for `more` of them; False if that is beyond the budget."""
        needed = self.distinct + more + 2 * self.margin * self.threads
        states = max(needed, (self.distinct + more) * 3 // 2)
        shift = 31
        while True:
            packing = Packing(self.program, shift, self.threads, self.form)
            buckets = min(packing.wanted(states), packing.fit(self.free_bytes()))
            if buckets.bit_length() > shift:
                break
            if shift == 0:
                return False
            shift = max(0, buckets.bit_length() - 1)
        if packing.allowed(buckets) < needed:
            return False
        self.table.close()
        self.table, self.cleared = Block(0), 0
        self.go_over(packing)
        p = self.program
        room = 8 * p.words * self.lanes
        self.packed_blocks = [Block(room + 8 * packing.words * (self.margin + 2 * p.stride)) for _ in self.owns]
        for own, block in zip(self.own, self.packed_blocks, strict=True):
            own[k.UNPACKED], own[k.PENDING] = block.address, block.address + room
        self.all([partial(self.f["compress"], b.address) for b in self.owns])
        self.packing, self.buckets = packing, buckets
        for queue, n in zip(self.queues, self.counts(), strict=True):
            queue.release(self.queue_bytes(n))
        self.capacity = self.queues[0].size // packing.state_bytes - 8 * (self.lanes + 1)
        if packing.references:
            self.capacity = min(self.capacity, packing.most_states)
        self.new_table()
        self.fill_table()
        return True

    def fill_table(self) -> None:
        """Enter every state of the queues in the new table. If one finds no place near its home, the table is made a
        little larger, whatever the budget is: what was found must be in it."""
        while True:
            self.control[k.CROWDED] = 0
            ask = partial(self.f["reinsert"], self.shared.address)
            self.all([partial(ask, b.address, 0, n) for b, n in zip(self.owns, self.counts(), strict=True)])
            if not self.control[k.CROWDED]:
                return
            self.widen()
            self.new_table()

    def widen(self) -> None:
        """Make the packed table a little larger."""
        self.buckets += self.buckets // 16 + 1
        if self.allowed() > SPARSE * (self.distinct + 4 * self.margin * self.threads):
            raise RuntimeError(f"{self.distinct:,} states crowd a table for {self.allowed():,}: their hashes are alike")

    def seat_pending(self) -> None:
        """Enter the states that found no place in the table, after it was made a little larger."""
        while any(own[k.PENDING_COUNT] for own in self.own):
            self.widen()
            self.new_table()
            self.fill_table()
            self.all([partial(self.f["insert_pending"], self.shared.address, b.address) for b in self.owns])
        self.control[k.CROWDED] = 0

    def call(self, f: Callable[..., int], *arguments: int) -> int:
        """One long job, on one thread."""
        out: list[int] = []
        self.all([lambda: out.append(f(*arguments))])
        self.heed()
        return out[0]

    def heed(self) -> None:
        """Stop here if Ctrl-C was pressed."""
        if self.interrupted:
            raise Stopped

    def state_at(self, t: int, i: int) -> Words:
        """The i-th state of a thread's queue."""
        p = self.program
        if self.packing is not None:
            return self.packing.words_of(bytes(self.queues[t].bytes(self.queue_bytes(i), self.queue_bytes(i + 1))))
        queue = self.queues[t].numbers()
        at = (i & -self.lanes) * p.words + i % self.lanes
        return tuple(queue[at + w * self.lanes] for w in range(p.words))

    def all(self, jobs: Sequence[Callable[[], object]]) -> None:
        def tell() -> None:
            self.told = time.monotonic()
            if self.progress is not None:
                text = f"{self.distinct:,} states, level {len(self.starts)}"
                done = sum(self.counts()) - sum(self.level.lo)
                self.progress(done, None, text)

        self.team.run(jobs, tell)
        if time.monotonic() - self.told > WAIT_S:  # many short rounds are long too
            tell()

    # ---- levels
    def begin(self) -> None:
        """The first states, by thread 0."""
        n = len(self.initial_states())
        self.own[0][k.FIRST] = n
        self.f["begin"](self.shared.address, self.owns[0].address)
        self.generated = self.first_count = n
        self.starts = [[0] * self.threads]
        self.level = Level([0] * self.threads, self.counts())

    def initial_states(self) -> list[Words]:
        """The first states, one for each choice of @initial's parameters; they lie in thread 0's buffer too. Raises
        UserError if @initial has no value, leaves a type, or can never be done."""
        p, own = self.program, self.own[0]
        self._forget()
        self.put(p.layout.first_words())
        n = self.f["start"](self.one.address, 1, own[k.BUFFERS], own[k.ENABLED], own[k.FAULTY], own[k.SCRATCH], 1)
        wrong = next((name for i, name in enumerate(p.faults) if any(self.fault_notes(i)[0])), None)
        self._forget()
        if wrong == DEFINED:
            raise UserError(f"{p.layout.model.name}: @initial: it has no value")
        if wrong is not None:
            raise UserError(f"{p.layout.model.name}: @initial: {wrong}: a value is outside its limits")
        if not n:
            raise UserError(f"{p.layout.model.name}: @initial: its guard is never true: there is no first state")
        return self._buffered(n)

    def _buffered(self, n: int) -> list[Words]:
        """The first n states of thread 0's buffer."""
        p, buffer = self.program, self.buffers[0].numbers()
        return [tuple(buffer[w * p.stride + j] for w in range(p.words)) for j in range(n)]

    def _forget(self) -> None:
        """Clear thread 0's notes: those on @initial are not about instances of actions."""
        start = self.own[0][k.ENABLED] - self.notes[0].address
        self.notes[0].bytes(start, self.notes[0].size)[:] = bytes(self.notes[0].size - start)

    def put(self, words: Sequence[int]) -> None:
        """A state into lane 0 of `one`."""
        one = self.one.numbers()
        for i, w in enumerate(words):
            one[i * self.lanes] = w

    def expand(self, max_states: int | None) -> str:
        """Expand what is left of the level; which limit forbade it, else ""."""
        c, p = self.control, self.program
        chunk = 0
        for t in range(self.threads):
            lo, hi = self.level.lo[t], self.level.hi[t]
            at = k.SLICES + 4 * t
            c[at], c[at + 1], c[at + 2], c[at + 3] = self.queues[t].address, lo, hi, chunk
            if hi > lo:
                chunk += -(-(hi - (lo & -p.width)) // p.chunk)
        c[k.SLICES + 4 * self.threads + 3] = chunk
        c[k.CHUNKS], c[k.CURSOR] = chunk, self.level.cursor
        while c[k.CURSOR] < chunk:
            self.heed()
            if self.quick and self.is_long():
                self.go_over()
            elif self.lanes < p.width and self.distinct >= QUICK:
                self.go_over(quickly=True)
            elif self.loops_quick and self.distinct >= MANY:
                self.compile(quickly=True)
            limit = self.make_room(max_states)
            if limit:
                return limit
            self.all([partial(self.f["work"], self.shared.address, o.address) for o in self.owns])
            self.seat_pending()
            self.level.cursor = c[k.CURSOR] = min(c[k.CURSOR], chunk)
            self.generated += sum(o[k.GENERATED] for o in self.own)
            for o in self.own:
                o[k.GENERATED] = 0
        self.heed()
        return ""

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """The first Ctrl-C stops the search between two chunks, or after the one long job that is being done; the
        second stops at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(*_: object) -> None:
            signal.signal(signal.SIGINT, before)
            self.control[k.STOP] = 1
            self.interrupted = True

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        except Stopped:
            raise KeyboardInterrupt from None
        finally:
            signal.signal(signal.SIGINT, before)

    def examine(self, lo: Sequence[int], hi: Sequence[int]) -> None:
        """Check the claims about states of a level."""
        ask = self.f["examine"]
        self.all([partial(ask, b.address, x, y) for b, x, y in zip(self.owns, lo, hi, strict=True) if y > x])

    def next_level(self) -> None:
        self.starts.append(list(self.level.hi))
        self.level = Level(list(self.level.hi), self.counts())

    def faulty(self) -> int | None:
        """The first claim about transitions that a transition of this level broke."""
        return next((i for i in range(len(self.program.faults)) if any(any(x) for x in self.fault_notes(i))), None)

    def fault_notes(self, fault: int) -> list[memoryview]:
        """Each thread's notes on a claim about transitions, a byte an instance."""
        n = self.program.rows
        at = self.own[0][k.FAULTY] - self.notes[0].address + fault * n
        return [b.bytes(at, at + n) for b in self.notes]

    def hit(self) -> list[int]:
        """The claims about states that a state broke, or showed."""
        return [i for i in range(len(self.program.state_claims)) if any(b.bytes(i, i + 1)[0] for b in self.hits)]

    def slices(self, level: int) -> list[tuple[int, int, int]]:
        """A level's states: queue address, first, last + 1, by thread."""
        ends = self.starts[level + 1] if level + 1 < len(self.starts) else self.level.hi
        out = [(q.address, a, b) for q, a, b in zip(self.queues, self.starts[level], ends, strict=True)]
        return [s for s in out if s[2] > s[1]]

    def least(self, name: str, level: int, *arguments: int) -> Words | None:
        """The least state of a level that answers one of the engine's questions."""
        found = 0
        for s in self.slices(level):
            found = self.f[name](self.owns[0].address, *s, *arguments, self.best.address, found)
        return tuple(self.best.numbers()[: self.program.words]) if found else None

    # ---- traces
    def path(self, found: Hit) -> list[Words]:
        """A shortest way to a state of the graph, from a first state."""
        out = [found.state]
        for level in range(found.level - 1, -1, -1):
            for i, w in enumerate(out[-1]):
                self.goal.numbers()[i] = w
            parent = self.least("least_parent", level, self.goal.address)
            assert parent is not None, "a state of the queue has no parent"
            out.append(parent)
        return out[::-1]

    def successors(self, state: Words) -> list[tuple[Instance, Words, list[int]]]:
        """The transitions from a state: instance, state after, indexes of the claims about transitions it breaks."""
        p, own = self.program, self.own[0]
        self.put(state)
        self.f["successors"](self.owns[0].address, self.one.address)
        return self._labelled(p.instances, own)

    def _labelled(self, instances: Sequence[Instance], own: Numbers) -> list[tuple[Instance, Words, list[int]]]:
        p = self.program
        buffer = self.buffers[0].numbers()
        notes, base = self.notes[0].bytes(0, self.notes[0].size), self.notes[0].address
        out: list[tuple[Instance, Words, list[int]]] = []
        for i, instance in enumerate(instances):
            if notes[own[k.ENABLED] - base + i] & 1:
                words = tuple(buffer[w * p.stride + len(out)] for w in range(p.words))
                broken = [c for c in range(len(p.faults)) if notes[own[k.FAULTY] - base + c * p.rows + i] & 1]
                out.append((instance, words, broken))
        return out

    def undefined(self, state: Words) -> Instance | None:
        """The first instance that cannot be evaluated in a state (see `DEFINED`)."""
        p = self.program
        self.put(state)
        self.f["successors"](self.owns[0].address, self.one.address)
        notes = self.fault_notes(p.faults.index(DEFINED))[0]
        return next((instance for i, instance in enumerate(p.instances) if notes[i]), None)

    def orbit(self, states: Sequence[Words]) -> list[Words]:
        """The representatives of states; the states themselves without symmetry."""
        p = self.program
        if not p.symmetry or not states:
            return list(states)
        buffer = self.buffers[0].numbers()
        for j, s in enumerate(states):
            for w, x in enumerate(s):
                buffer[w * p.stride + j] = x
        self.f["canonical"](self.buffers[0].address, len(states))
        return self._buffered(len(states))

    def steps(self, path: Sequence[Words]) -> tuple[list[TraceStep], Words]:
        """The steps of a run through states of the graph, and its last state. With symmetry the run goes through states
        that are alike."""
        lay = self.program.layout
        firsts = self.initial_states()
        here = firsts[self.orbit(firsts).index(path[0])]
        out = [TraceStep("", "", (), {}, lay.decode(here))]
        for goal in path[1:]:
            ways = self.successors(here)
            at = self.orbit([after for _, after, _ in ways]).index(goal)
            instance, after, _ = ways[at]
            out.append(self.step(instance, here, after))
            here = after
        return out, here

    def step(self, instance: Instance, before: Words, after: Words) -> TraceStep:
        """What a transition did, as traces show it."""
        a, lay = instance.action, self.program.layout
        arguments = {a.parameter(p): lay.argument(a, p, instance.arguments[p.aux], before) for p in a.params}
        return TraceStep(a.name, a.who, a.clauses, arguments, lay.decode(after))

    def left(self, instance: Instance, before: Words) -> dict[str, Value]:
        """The state that a transition leaves, whose values may be none of their variables' types."""
        return left(self.program.layout, instance.action, instance.arguments, before)

    def trace(self, kind: Kind, claim: str, clauses: tuple[str, ...], found: Hit) -> Trace:
        m = self.program.layout
        return Trace(m.model.name, m.sizes, kind, claim, clauses, tuple(self.steps(self.path(found))[0]))

    def faulty_trace(self, fault: int, found: Hit) -> Trace:
        """The way to a transition that breaks a claim about transitions."""
        m = self.program.layout
        steps, here = self.steps(self.path(found))
        return self.with_fault(Trace(m.model.name, m.sizes, "violation", "", (), tuple(steps)), fault, here)

    def broken_by(self, state: Words, kinds: Sequence[str] = ("invariant",)) -> Claim | None:
        """The first claim about states, of these kinds, that this one breaks."""
        self.put(state)
        for i, (kind, claim) in enumerate(self.program.state_claims):
            if kind in kinds and self.f["shows"](self.owns[0].address, self.one.address, i):
                return claim
        return None

    def with_fault(self, trace: Trace, fault: int, here: Words) -> Trace:
        """A run that ended in the state `here`, and the transition from there that breaks a claim about transitions."""
        p, name = self.program, self.program.faults[fault]
        if name == DEFINED:
            instance = self.undefined(here)
            assert instance is not None
            last, clauses = self.step(instance, here, here), instance.action.clauses
        else:
            instance, after, faults = next(way for way in self.successors(here) if fault in way[2])
            clauses = instance.action.clauses
            if fault > len(p.layout.vars):
                clauses = next(c.clauses for c in p.step_claims if c.name == name)
            whole = min(faults) > len(p.layout.vars)  # else some value is none of its variable's type, and has no code
            last = self.step(instance, here, after if whole else here)
            if not whole and p.faults.index(DEFINED) not in faults:
                last = replace(last, state=self.left(instance, here))
        return replace(trace, claim=name, steps=(*trace.steps, last), clauses=clauses)

    def close(self) -> None:
        """Give the memory back: at once, or when the threads have ended that still use it."""
        self.team.close()
        if self.team.running:
            self.team.holds = self
            return
        for b in [*self.queues, *self.buffers, self.table]:
            b.close()


def explore(
    model: LoadedModel,
    sizes: Mapping[str, int | bool],
    *,
    ghosts: bool = False,
    threads: int = 2,
    symmetry: Sequence[str] = (),
    liveness: bool = True,
    deadlock: bool = False,
    max_states: int | None = None,
    max_memory_mb: int | None = None,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    program: Program | None = None,
    form: Form = USUAL,
    expected: int = 0,
) -> Exploration:
    """Visit every reachable state, check every claim, and show the shortest way to whatever is wrong.

    Invariants and step properties are checked in every state and transition; lemmas too if all ghosts are kept (or
    there are none); leads-to claims on the graph, unless `liveness` is False. `deadlock`: the system may come to a
    stop; if it may not, a stop is reported when the whole graph is known. `symmetry` names sorts whose elements are
    taken as alike: counts are then of orbits. `checkpoint` keeps a run that met a limit or was interrupted; a run goes
    on from it. `program` is a layout of this model that the caller made, `form` says when and how states are packed.
    `expected` is how many states there will be, if the caller knows: a search of many begins with the code for many.

    Raises UserError for sizes that do not fit, a model without a finite layout, symmetry where it would be unsound, or
    a checkpoint of another run; KeyboardInterrupt after the checkpoint is written.
    """
    model.check_sizes(sizes)
    for name in symmetry:
        if model.sizes.get(name) != "sort":
            raise unknown("sort", name, [n for n, kind in model.sizes.items() if kind == "sort"])
    if symmetry and liveness and model.leads_to:
        raise UserError(
            f"{model.name}: leads-to claims cannot be checked under symmetry; leave out the symmetry or the liveness"
        )
    if program is None:
        program = Program(Layout(model, sizes, ghosts), symmetry)
    live = liveness and bool(program.promises)
    if checkpoint is not None and checkpoint.exists():
        threads = checkpoints.threads_of(checkpoint)
    budget = float(max_memory_mb) if max_memory_mb is not None else 0.8 * available_mb()
    file = checkpoint
    while True:
        s = Search(
            program,
            max(1, threads),
            max(budget, 64),
            progress,
            extra=_live(program) if live else NOTHING,
            form=form,
            wide=checkpoint is not None or expected >= QUICK,  # a checkpoint is read by code that takes as many
        )
        try:
            with s.interruptible():
                found, resumable = _run(s, live, deadlock, max_states, file)
        finally:
            s.close()
        if found.outcome != "liveness" or threads == 1:
            break
        # The numbers of states depend on the threads, and with them the lasso: show the one of one thread.
        threads, file = 1, None
    if checkpoint is not None and not resumable:
        checkpoint.unlink(missing_ok=True)
    return found


def _live(program: Program) -> Extra:
    from kafkaspec.explore import liveness

    return liveness.LOOPS, liveness.EXPORTED, capitals(vars(liveness)) | {"PROMISES": len(program.promises)}


@dataclass
class SearchEnd:
    """How a search ended. `resumable`: a later run with more room can go on where it stands."""

    outcome: Outcome
    trace: Trace | None = None
    limit: str = ""
    resumable: bool = False


def _run(
    s: Search, liveness: bool, deadlock: bool, max_states: int | None, checkpoint: Path | None
) -> tuple[Exploration, bool]:
    """What a search finds, and whether a later run can go on with it: then the checkpoint is there."""
    started = time.perf_counter() - s.compile_seconds
    try:
        ended = _searched(s, max_states, checkpoint)
        if ended.outcome == "complete" and s.stuck is not None and not deadlock:
            ended = SearchEnd("deadlock", s.trace("deadlock", "", (), s.stuck))
        elif ended.outcome == "complete" and liveness:
            ended = _led(s)
    except Stopped:
        if checkpoint is not None:
            checkpoints.save(s, checkpoint)
        raise
    if checkpoint is not None and ended.resumable:
        checkpoints.save(s, checkpoint)
    seconds = time.perf_counter() - started - s.compile_seconds
    return _exploration(s, ended, seconds, liveness, deadlock), ended.resumable


def _searched(s: Search, max_states: int | None, checkpoint: Path | None) -> SearchEnd:
    """Level by level, from the first states or a checkpoint, to the end of the first level with something wrong."""
    broken = None
    if checkpoint is not None and checkpoint.exists():
        checkpoints.load(s, checkpoint)
    else:
        s.begin()
        broken = _examined(s, 0)
    saved = time.monotonic()
    while broken is None:
        stuck = s.stuck is not None
        limit = s.expand(max_states)
        if not stuck and any(o[k.STUCK] for o in s.own):
            state = s.least("least_stuck", len(s.starts) - 1)
            s.stuck = Hit(len(s.starts) - 1, state) if state is not None else None
        fault = s.faulty()
        if fault is not None:
            return _faulty(s, fault)
        if limit:
            return SearchEnd("limit", limit=_covered(s, limit), resumable=True)
        s.next_level()
        if s.level.lo == s.level.hi:
            s.starts.pop()
            return SearchEnd("complete")
        broken = _examined(s, len(s.starts) - 1)
        if checkpoint is not None and time.monotonic() - saved > SAVE_S:
            checkpoints.save(s, checkpoint)
            saved = time.monotonic()
    claim, found = broken
    return SearchEnd("violation", s.trace("violation", claim.name, claim.clauses, found))


def _faulty(s: Search, fault: int) -> SearchEnd:
    """A transition of the level breaks a claim about transitions, or a number in it is beyond what is followed."""
    p, level = s.program, len(s.starts) - 1
    state = s.least("least_faulty", level, fault)
    assert state is not None
    trace = s.faulty_trace(fault, Hit(level, state))
    name = p.faults[fault].removeprefix("type of ")
    if name in p.layout.vars and _beyond(p.layout.vars[name], trace.steps[-1].state[name]):
        return SearchEnd("limit", trace, _covered(s, f"a value of {name} beyond {UNBOUNDED}"))
    return SearchEnd("violation", trace)


def _led(s: Search) -> SearchEnd:
    """Leads-to claims on the whole graph."""
    from kafkaspec.explore.liveness import Graph

    try:
        graph = Graph(s)
    except MemoryError:
        limit = f"every state was visited; for leads-to claims, memory: {s.budget_mb:,.0f} MB"
        return SearchEnd("limit", limit=limit, resumable=True)
    trace = graph.lasso()
    graph.close()
    return SearchEnd("complete" if trace is None else "liveness", trace)


def _exploration(s: Search, ended: SearchEnd, seconds: float, liveness: bool, deadlock: bool) -> Exploration:
    """What is told of a search that has ended."""
    p = s.program
    m = p.layout.model
    witnesses: dict[str, Trace | None] = dict.fromkeys(n for n in m.witnesses if n not in p.unchecked)
    for name, found in s.seen.items():
        witnesses[name] = s.trace("witness", name, m.witnesses[name].clauses, found)
    counts = [[*a] for a in s.starts[1:]] + [s.counts()]
    per_level = tuple(sum(b) - sum(a) for a, b in zip(s.starts, counts, strict=True))
    n = s.distinct
    left_out = {} if liveness else dict.fromkeys(m.leads_to, "leads-to claims were left out")
    return Exploration(
        model=m,
        sizes=p.layout.sizes,
        distinct=n,
        generated=s.generated,
        depth=len(per_level),
        states_per_level=per_level,
        seconds=seconds,
        compile_seconds=s.compile_seconds,
        peak_mb=peak_mb(),
        bits=p.layout.bits,
        words=p.words,
        outcome=ended.outcome,
        trace=ended.trace,
        witnesses=witnesses,
        taken=s.taken(),
        limit=ended.limit,
        fingerprint_collision=n * (n - 1) / 2**64 if p.fingerprinted else None,
        symmetry=p.symmetry,
        packed=s.packing is not None,
        ghosts=p.ghosts,
        deadlock=deadlock,
        unchecked={**left_out, **p.unchecked},
    )


def _beyond(t: T, v: Value) -> bool:
    """Is there a number in a value that is beyond what one without an upper limit can be here? A record has none."""
    if v is None:
        return False
    match t.kind:
        case "range":
            return t.hi is None and int(v) > UNBOUNDED
        case "option":
            return _beyond(t.item, v)
        case "map":
            return any(_beyond(t.item, x) for x in v.values())
        case "set" | "seq":
            return any(_beyond(t.item, x) for x in v)
    return False


def _covered(s: Search, limit: str) -> str:
    """What a run that met a limit did."""
    waiting = sum(s.level.hi) - sum(s.level.lo)
    done = min(waiting, s.level.cursor * s.program.chunk)
    left = s.distinct - sum(s.level.lo) - done
    return (
        f"stopped at {limit}: every state that {len(s.starts) - 1} steps can reach was visited and checked, "
        f"{s.distinct:,} states were found, {left:,} of them wait to be expanded"
    )


def _examined(s: Search, level: int) -> tuple[Claim, Hit] | None:
    """Check a level's states; the first claim that one of them breaks. Witnesses seen are kept."""
    p = s.program
    s.examine(s.level.lo, s.level.hi)
    for i in s.hit():
        kind, claim = p.state_claims[i]
        if (kind == "witness" and claim.name in s.seen) or (kind == "start" and level > 0):
            continue
        state = s.least("least_hit", level, i)
        assert state is not None
        if kind != "witness":
            return claim, Hit(level, state)
        s.seen[claim.name] = Hit(level, state)
        for b in s.hits:
            b.bytes(i, i + 1)[0] = 1
    return None
