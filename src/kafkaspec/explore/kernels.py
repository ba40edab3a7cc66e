"""The engine's inner loops, in the restricted Python that `native` compiles. They know no model: the constants in
capitals and the functions `expand`, `check`, `homes`, `canonical` come with it.

States lie in queues, LANES of them together: word k of state i is at `(i & -LANES) * WORDS + k * LANES + i % LANES`.
Successors lie in a buffer, word k of the j-th at `k * STRIDE + j`; after the words come its slot in the table and, if a
state is wider than a slot, its fingerprint. A slot of the table has KEY_WORDS words; the first is 0 if it is free, the
key with its top bit set if it is taken, BUSY while a thread fills in the rest.

Several threads share the table without locks, and cut a level into chunks by one counter. Each has a queue of its own
for the states that it was the first to find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkaspec.native import (
    exchange,
    fetch_add,
    load,
    load8,
    load_shared,
    prefetch,
    store,
    store8,
    store_shared,
    unsigned_less,
)

# ---- constants of the compilation, given with the model
WORDS = LANES = STRIDE = KEY_WORDS = INSTANCES = FAULTS = SYMMETRIC = CHUNK = SLOT = KEY = BUFFER = EVERY_LANE = 0
TOP: Final = 1 << 63
BUSY: Final = 1

# ---- the block that all threads share; SLICE of 4 numbers a thread: queue, first state, last + 1, first chunk
TABLE: Final = 0
SHIFT: Final = 1
CURSOR: Final = 2
STOP: Final = 3
CHUNKS: Final = 4
SLICES: Final = 8

# ---- the block of one thread
QUEUE: Final = 0
COUNT: Final = 1
ROOM: Final = 2
GENERATED: Final = 3
BUFFERS: Final = 4
ENABLED: Final = 5
FAULTY: Final = 6
TAKEN: Final = 7
STUCK: Final = 8
HITS: Final = 9
SCRATCH: Final = 10
FIRST: Final = 11


# ---- made from the model
def expand(states: int, active: int, buffer: int, enabled: int, faulty: int, taken: int) -> int:
    """The successors of up to LANES states, into the buffer; their number. Byte i of `enabled`: the lanes in which
    instance i was taken; of `faulty`: in which a claim about transitions failed (never cleared); `taken` counts."""
    raise NotImplementedError


def check(states: int, active: int, hits: int) -> int:
    """Byte i of `hits` gets the lanes in which claim i about states is broken (a witness: is seen)."""
    raise NotImplementedError


def homes(buffer: int, n: int, shift: int) -> int:
    """The slots (and fingerprints) of the first n states of a buffer."""
    raise NotImplementedError


def canonical(buffer: int, n: int) -> int:
    """Replaces the first n states of a buffer by the representatives of their orbits."""
    raise NotImplementedError


# ---- states
def place(i: int) -> int:
    """The index of word 0 of state i in its queue."""
    return (i & -LANES) * WORDS + (i & (LANES - 1))


def lanes_between(first: int, lo: int, hi: int) -> int:
    """Which of the states first..first+LANES-1 are in lo..hi-1, as bits."""
    active = EVERY_LANE
    if first < lo:
        active = active & (EVERY_LANE << (lo - first))
    if hi - first < LANES:
        active = active & ~(EVERY_LANE << (hi - first))
    return active


def claim_slot(table: int, last: int, buffer: int, j: int) -> int:
    """1 if state j of the buffer was not in the table; now it is."""
    slot = load(buffer, SLOT + j)
    key = load(buffer, KEY + j) | TOP
    while True:
        seen = load_shared(table, slot * KEY_WORDS)
        if seen == key:
            if KEY_WORDS == 1:
                return 0
            k = 1
            while k < KEY_WORDS and load(table, slot * KEY_WORDS + k) == load(buffer, KEY + k * STRIDE + j):
                k += 1
            if k == KEY_WORDS:
                return 0
        elif seen == 0:
            if KEY_WORDS == 1:
                seen = exchange(table, slot, 0, key)
                if seen == 0:
                    return 1
                if seen == key:
                    return 0
            else:
                seen = exchange(table, slot * KEY_WORDS, 0, BUSY)
                if seen == 0:
                    for k in range(1, KEY_WORDS):
                        store(table, slot * KEY_WORDS + k, load(buffer, KEY + k * STRIDE + j))
                    store_shared(table, slot * KEY_WORDS, key)
                    return 1
                continue
        elif KEY_WORDS > 1 and seen == BUSY:
            continue
        slot = (slot + 1) & last


def insert(table: int, last: int, buffer: int, n: int, queue: int, count: int) -> int:
    """New states among the first n of a buffer go to the end of the queue; its new length."""
    for j in range(n):
        if claim_slot(table, last, buffer, j) == 1:
            at = place(count)
            for k in range(WORDS):
                store(queue, at + k * LANES, load(buffer, k * STRIDE + j))
            count += 1
    return count


def prepare(buffer: int, n: int, table: int, shift: int) -> int:
    """Finds the slots of a buffer's states and has the table's lines brought near."""
    if SYMMETRIC:
        canonical(buffer, n)
    homes(buffer, n, shift)
    for j in range(n):
        prefetch(table, load(buffer, SLOT + j) * KEY_WORDS)
    return 0


def reinsert(shared: int, own: int, lo: int, hi: int) -> int:
    """Enter the states lo..hi-1 of this thread's queue in the (new, empty) table."""
    table = load(shared, TABLE)
    shift = load(shared, SHIFT)
    last = (1 << (64 - shift)) - 1
    queue = load(own, QUEUE)
    buffer = load(own, BUFFERS)
    i = lo
    while i < hi:
        n = 0
        while n < STRIDE and i < hi:
            at = place(i)
            for k in range(WORDS):
                store(buffer, k * STRIDE + n, load(queue, at + k * LANES))
            n += 1
            i += 1
        homes(buffer, n, shift)
        for j in range(n):
            prefetch(table, load(buffer, SLOT + j) * KEY_WORDS)
        for j in range(n):
            claim_slot(table, last, buffer, j)
    return 0


def begin(shared: int, own: int) -> int:
    """Enter the first states, which lie in the buffer; their number is FIRST."""
    shift = load(shared, SHIFT)
    buffer = load(own, BUFFERS)
    n = load(own, FIRST)
    prepare(buffer, n, load(shared, TABLE), shift)
    store(own, COUNT, insert(load(shared, TABLE), (1 << (64 - shift)) - 1, buffer, n, load(own, QUEUE), 0))
    return 0


def any_without(enabled: int, active: int) -> int:
    """Is there a lane in which no instance was taken?"""
    x = 0
    for i in range((INSTANCES + 7) // 8):
        x = x | load(enabled, i)
    x = x | (x >> 32)
    x = x | (x >> 16)
    x = x | (x >> 8)
    return active & ~x


def work(shared: int, own: int) -> int:
    """Expand chunks of the level until there are none, or no room is left (1), or all shall stop (2)."""
    table = load(shared, TABLE)
    shift = load(shared, SHIFT)
    last = (1 << (64 - shift)) - 1
    chunks = load(shared, CHUNKS)
    queue = load(own, QUEUE)
    count = load(own, COUNT)
    room = load(own, ROOM)
    enabled = load(own, ENABLED)
    faulty = load(own, FAULTY)
    taken = load(own, TAKEN)
    buffer = load(own, BUFFERS)
    other = buffer + 8 * BUFFER
    waiting = 0
    generated = 0
    stuck = 0
    why = 0
    while True:
        if count > room:
            why = 1
            break
        if load_shared(shared, STOP) != 0:
            why = 2
            break
        c = fetch_add(shared, CURSOR, 1)
        if c >= chunks:
            break
        s = SLICES
        while c >= load(shared, s + 7):
            s += 4
        states = load(shared, s)
        lo = load(shared, s + 1)
        hi = load(shared, s + 2)
        first = (lo & -LANES) + (c - load(shared, s + 3)) * CHUNK
        end = first + CHUNK
        if end > hi:
            end = hi
        while first < end:
            active = lanes_between(first, lo, hi)
            n = expand(states + 8 * first * WORDS, active, buffer, enabled, faulty, taken)
            generated += n
            stuck = stuck | any_without(enabled, active)
            prepare(buffer, n, table, shift)
            count = insert(table, last, other, waiting, queue, count)
            swap = buffer
            buffer = other
            other = swap
            waiting = n
            first += LANES
        store(own, COUNT, count)
    count = insert(table, last, other, waiting, queue, count)
    store(own, COUNT, count)
    store(own, GENERATED, load(own, GENERATED) + generated)
    store(own, STUCK, load(own, STUCK) | stuck)
    return why


def examine(own: int, lo: int, hi: int) -> int:
    """Check the claims about states lo..hi-1 of this thread's queue."""
    queue = load(own, QUEUE)
    hits = load(own, HITS)
    first = lo & -LANES
    while first < hi:
        check(queue + 8 * first * WORDS, lanes_between(first, lo, hi), hits)
        first += LANES
    return 0


# ---- looking back: which state was it? The least by its words, so that the answer does not depend on the threads.
def keep_least(best: int, found: int, states: int, lane: int) -> int:
    """`best` becomes this state if nothing was found yet or it is less."""
    k = WORDS - 1
    if found != 0:
        while k > 0 and load(states, k * LANES + lane) == load(best, k):
            k -= 1
        if unsigned_less(load(states, k * LANES + lane), load(best, k)) == 0:
            return 1
    for k in range(WORDS):
        store(best, k, load(states, k * LANES + lane))
    return 1


def least_hit(own: int, states: int, lo: int, hi: int, claim: int, best: int, found: int) -> int:
    """The least state of lo..hi-1 that breaks (a witness: shows) a claim."""
    hits = load(own, HITS)
    first = lo & -LANES
    while first < hi:
        here = states + 8 * first * WORDS
        store8(hits, claim, 0)
        check(here, lanes_between(first, lo, hi), hits)
        for lane in range(LANES):
            if (load8(hits, claim) >> lane) & 1 != 0:
                found = keep_least(best, found, here, lane)
        first += LANES
    return found


def least_faulty(own: int, states: int, lo: int, hi: int, claim: int, best: int, found: int) -> int:
    """The least state of lo..hi-1 with a transition that breaks a claim about transitions."""
    faulty = load(own, FAULTY)
    first = lo & -LANES
    while first < hi:
        here = states + 8 * first * WORDS
        for i in range(INSTANCES):
            store8(faulty, claim * INSTANCES + i, 0)
        expand(here, lanes_between(first, lo, hi), load(own, BUFFERS), load(own, ENABLED), faulty, load(own, SCRATCH))
        broken = 0
        for i in range(INSTANCES):
            broken = broken | load8(faulty, claim * INSTANCES + i)
        for lane in range(LANES):
            if (broken >> lane) & 1 != 0:
                found = keep_least(best, found, here, lane)
        first += LANES
    return found


def least_stuck(own: int, states: int, lo: int, hi: int, best: int, found: int) -> int:
    """The least state of lo..hi-1 that has no successor."""
    first = lo & -LANES
    while first < hi:
        here = states + 8 * first * WORDS
        active = lanes_between(first, lo, hi)
        expand(here, active, load(own, BUFFERS), load(own, ENABLED), load(own, FAULTY), load(own, SCRATCH))
        without = any_without(load(own, ENABLED), active)
        for lane in range(LANES):
            if (without >> lane) & 1 != 0:
                found = keep_least(best, found, here, lane)
        first += LANES
    return found


def makes(own: int, states: int, active: int, goal: int) -> int:
    """Has one of these states the state `goal` as a successor?"""
    buffer = load(own, BUFFERS)
    n = expand(states, active, buffer, load(own, ENABLED), load(own, FAULTY), load(own, SCRATCH))
    if SYMMETRIC:
        canonical(buffer, n)
    word = load(goal, 0)
    for j in range(n):
        if load(buffer, j) == word:
            k = 1
            while k < WORDS and load(buffer, k * STRIDE + j) == load(goal, k):
                k += 1
            if k >= WORDS:
                return 1
    return 0


def least_parent(own: int, states: int, lo: int, hi: int, goal: int, best: int, found: int) -> int:
    """The least state of lo..hi-1 that has `goal` as a successor."""
    first = lo & -LANES
    while first < hi:
        here = states + 8 * first * WORDS
        active = lanes_between(first, lo, hi)
        if makes(own, here, active, goal) == 1:
            for lane in range(LANES):
                if (active >> lane) & 1 != 0 and makes(own, here, 1 << lane, goal) == 1:
                    found = keep_least(best, found, here, lane)
        first += LANES
    return found


def successors(own: int, states: int) -> int:
    """The successors of the one state in lane 0, into the buffer; faults start afresh."""
    faulty = load(own, FAULTY)
    for i in range(FAULTS * INSTANCES):
        store8(faulty, i, 0)
    return expand(states, 1, load(own, BUFFERS), load(own, ENABLED), faulty, load(own, SCRATCH))


SEARCH: list[Callable[..., object]] = [
    place, lanes_between, claim_slot, insert, prepare, reinsert, begin, any_without, work, examine,
    keep_least, least_hit, least_faulty, least_stuck, makes, least_parent, successors,
]  # fmt: skip
EXPORTED = {
    "reinsert", "begin", "work", "examine", "least_hit", "least_faulty", "least_stuck", "least_parent", "successors",
}  # fmt: skip
