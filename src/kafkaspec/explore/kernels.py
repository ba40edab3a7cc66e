"""The engine's inner loops, in the restricted Python that `native` compiles. They know no model: the constants in
capitals and the functions `expand`, `check`, `homes`, `canonical` come with it.

States lie in queues, LANES of them together: word k of state i is at `(i & -LANES) * WORDS + k * LANES + i % LANES`.
Successors lie in a buffer, word k of the j-th at `k * STRIDE + j`; after the words come its slot in the table and, if a
state is wider than a slot, its fingerprint. A slot of the table has KEY_WORDS words; the first is 0 if it is free, the
key with its top bit set if it is taken, BUSY while a thread fills in the rest.

Several threads share the table without locks, and cut a level into chunks by one counter. Each has a queue of its own
for the states that it was the first to find.

That is the form of small runs. In the COMPACT form of large ones, queues and table are as `packing` says; the loops are
then compiled a second time. A bucket is only locked to add an entry; entries are never changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkaspec.native import (
    exchange,
    exchange32,
    fetch_add,
    load,
    load8,
    load_bytes,
    load_shared,
    load_shared32,
    prefetch,
    store,
    store8,
    store_bytes,
    store_shared,
    store_shared32,
    unsigned_less,
)

# ---- constants of the compilation, given with the model
WORDS = LANES = WIDTH = STRIDE = KEY_WORDS = INSTANCES = FAULTS = SYMMETRIC = CHUNK = SLOT = KEY = BUFFER = 0
EVERY_LANE = THREADS = COMPACT = PACKED_WORDS = LAST_MASK = STATE_BYTES = ENTRY_BYTES = ENTRY_MASK = SLOTS = 0
MOST_AWAY = REFERENCES = 0
TOP: Final = 1 << 63
BUSY: Final = 1
LOCKED: Final = 1 << 16
STEP_MIX: Final = 0x9E3779B97F4A7C15
KNOWN: Final = 0
NEW: Final = 1
NO_PLACE: Final = 2

# ---- the block that all threads share; SLICE of 4 numbers a thread: queue, first state, last + 1, first chunk
TABLE: Final = 0
EXTENT: Final = 1
CURSOR: Final = 2
STOP: Final = 3
CHUNKS: Final = 4
CROWDED: Final = 5
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
UNPACKED: Final = 12
PENDING: Final = 13
PENDING_COUNT: Final = 14
THREAD: Final = 15


# ---- made from the model
def expand(states: int, active: int, buffer: int, enabled: int, faulty: int, taken: int, asked: int) -> int:
    """The successors of up to LANES states, into the buffer; their number. Byte i of `enabled`: the lanes in which
    instance i was taken; of `faulty`: in which a claim about transitions failed (never cleared); `taken` counts. The
    claims are not looked at if `asked` is 0."""
    raise NotImplementedError


def check(states: int, active: int, hits: int) -> int:
    """Byte i of `hits` gets the lanes in which claim i about states is broken (a witness: is seen)."""
    raise NotImplementedError


def homes(buffer: int, n: int, extent: int) -> int:
    """The slots (and fingerprints) of the first n states of a buffer; in the compact form, of packed states, their
    buckets and entries. `extent` tells the table's size: 64 less the bits of a slot's number; the number of buckets."""
    raise NotImplementedError


def pack(buffer: int, n: int) -> int:
    """Packs the first n states of a buffer, in place."""
    raise NotImplementedError


def unpack(states: int) -> int:
    """Unpacks LANES states, in place: word k of the i-th is at k * LANES + i."""
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


def states_at(own: int, queue: int, first: int) -> int:
    """Where the words of the LANES states from `first` on lie side by side."""
    if not COMPACT:
        return queue + 8 * first * WORDS
    room = load(own, UNPACKED)
    at = queue + first * STATE_BYTES
    for k in range(PACKED_WORDS):
        for lane in range(LANES):
            store(room, k * LANES + lane, load_bytes(at, lane * STATE_BYTES + 8 * k))
    unpack(room)
    return room


def put(queue: int, i: int, buffer: int, j: int) -> int:
    """State j of a buffer becomes state i of a queue. In the compact form what follows state i is lost."""
    if COMPACT:
        for k in range(PACKED_WORDS):
            store_bytes(queue, i * STATE_BYTES + 8 * k, load(buffer, k * STRIDE + j))
        return 0
    at = place(i)
    for k in range(WORDS):
        store(queue, at + k * LANES, load(buffer, k * STRIDE + j))
    return 0


def gather_lanes(queue: int, n: int, room: int) -> int:
    """The first n states of a queue, which lie one after the other, come to lie LANES of them together."""
    first = 0
    while first < n:
        for lane in range(LANES):
            for k in range(WORDS):
                store(room, k * LANES + lane, load(queue, (first + lane) * WORDS + k))
        for i in range(WORDS * LANES):
            store(queue, first * WORDS + i, load(room, i))
        first += LANES
    return 0


def find(shared: int, buffer: int, n: int) -> int:
    """Finds the homes of the first n states of a buffer, and has their lines brought near."""
    table = load(shared, TABLE)
    homes(buffer, n, load(shared, EXTENT))
    for j in range(n):
        if COMPACT:
            prefetch(table, load(buffer, SLOT + j) * 8)
        else:
            prefetch(table, load(buffer, SLOT + j) * KEY_WORDS)
    return 0


def gather(shared: int, own: int, lo: int, hi: int) -> int:
    """As many of the states lo..hi-1 of this thread's queue as the buffer holds, into it, with their homes; their
    number."""
    queue = load(own, QUEUE)
    buffer = load(own, BUFFERS)
    n = 0
    while n < STRIDE and lo + n < hi:
        if COMPACT:
            at = (lo + n) * STATE_BYTES
            for k in range(PACKED_WORDS - 1):
                store(buffer, k * STRIDE + n, load_bytes(queue, at + 8 * k))
            last = load_bytes(queue, at + 8 * (PACKED_WORDS - 1)) & LAST_MASK
            store(buffer, (PACKED_WORDS - 1) * STRIDE + n, last)
        else:
            at = place(lo + n)
            for k in range(WORDS):
                store(buffer, k * STRIDE + n, load(queue, at + k * LANES))
        n += 1
    find(shared, buffer, n)
    return n


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


def refers(shared: int, reference: int, buffer: int, j: int) -> int:
    """Is the state of that number in the queues state j of the buffer?"""
    queue = load(shared, SLICES + 4 * (reference % THREADS))
    at = reference // THREADS * STATE_BYTES
    k = 0
    while k < PACKED_WORDS - 1:
        if load_bytes(queue, at + 8 * k) != load(buffer, k * STRIDE + j):
            return 0
        k += 1
    return (load_bytes(queue, at + 8 * k) & LAST_MASK) == load(buffer, k * STRIDE + j)


def stride_of(entry: int) -> int:
    """How far it is from a full bucket to the next that is tried for this entry. Entries of one home part company, and
    stay near it."""
    return 1 + ((entry * STEP_MIX) >> 58)


def claim_entry(shared: int, buffer: int, j: int, reference: int) -> int:
    """NEW if state j of the buffer was not in the table; now it is. Else KNOWN, or NO_PLACE. The state of number
    `reference` must be in its queue: whoever sees the entry may read it."""
    table = load(shared, TABLE)
    buckets = load(shared, EXTENT)
    home = load(buffer, SLOT + j)
    wanted = load(buffer, KEY + j)
    for away in range(MOST_AWAY + 1):
        bucket = table + 64 * home
        i = 0
        while True:
            header = load_shared32(bucket, 0)
            taken = header & (LOCKED - 1)
            while i < taken:
                entry = load_bytes(bucket, 4 + i * ENTRY_BYTES) & ENTRY_MASK
                if REFERENCES:
                    if entry >> 32 == wanted and refers(shared, entry & 0xFFFFFFFF, buffer, j) == 1:
                        return KNOWN
                elif entry == wanted | away:
                    return KNOWN
                i += 1
            if taken == SLOTS:
                break
            if header == taken and exchange32(bucket, 0, header, header | LOCKED) == header:
                entry = wanted | away
                if REFERENCES:
                    entry = (wanted << 32) | reference
                for k in range(ENTRY_BYTES):
                    store8(bucket, 4 + i * ENTRY_BYTES + k, entry >> (8 * k))
                store_shared32(bucket, 0, taken + 1)
                return NEW
        home += stride_of(wanted)
        while home >= buckets:
            home -= buckets
    return NO_PLACE


def look_ahead(shared: int, buffer: int, n: int) -> int:
    """Have the states brought near to which the entries for the first n of a buffer seem to refer."""
    table = load(shared, TABLE)
    for j in range(n):
        bucket = table + 64 * load(buffer, SLOT + j)
        wanted = load(buffer, KEY + j)
        for i in range(load_shared32(bucket, 0) & (LOCKED - 1)):
            entry = load_bytes(bucket, 4 + i * ENTRY_BYTES) & ENTRY_MASK
            if entry >> 32 == wanted:
                reference = entry & 0xFFFFFFFF
                queue = load(shared, SLICES + 4 * (reference % THREADS))
                prefetch(queue + reference // THREADS * STATE_BYTES, 0)
    return 0


def insert(shared: int, own: int, buffer: int, n: int, count: int) -> int:
    """New states among the first n of a buffer go to the end of the queue; its new length. States without a place in
    the table wait until it has grown."""
    queue = load(own, QUEUE)
    if COMPACT:
        thread = load(own, THREAD)
        if REFERENCES:
            look_ahead(shared, buffer, n)
        for j in range(n):
            if REFERENCES:
                put(queue, count, buffer, j)
            found = claim_entry(shared, buffer, j, count * THREADS + thread)
            if found == NEW:
                if not REFERENCES:
                    put(queue, count, buffer, j)
                count += 1
            elif found == NO_PLACE:
                waiting = load(own, PENDING_COUNT)
                for k in range(PACKED_WORDS):
                    store(load(own, PENDING), waiting * PACKED_WORDS + k, load(buffer, k * STRIDE + j))
                store(own, PENDING_COUNT, waiting + 1)
                store_shared(shared, CROWDED, 1)
        return count
    table = load(shared, TABLE)
    last = (1 << (64 - load(shared, EXTENT))) - 1
    for j in range(n):
        if claim_slot(table, last, buffer, j) == 1:
            put(queue, count, buffer, j)
            count += 1
    return count


def prepare(shared: int, buffer: int, n: int) -> int:
    """Brings a buffer's states into the form in which the table has them, and finds their homes."""
    if SYMMETRIC:
        canonical(buffer, n)
    if COMPACT:
        pack(buffer, n)
    find(shared, buffer, n)
    return 0


def reinsert(shared: int, own: int, lo: int, hi: int) -> int:
    """Enter the states lo..hi-1 of this thread's queue in the (new, empty) table, unless one finds no place."""
    buffer = load(own, BUFFERS)
    i = lo
    while i < hi:
        n = gather(shared, own, i, hi)
        for j in range(n):
            if COMPACT:
                if claim_entry(shared, buffer, j, (i + j) * THREADS + load(own, THREAD)) == NO_PLACE:
                    store_shared(shared, CROWDED, 1)
                    return 0
            else:
                claim_slot(load(shared, TABLE), (1 << (64 - load(shared, EXTENT))) - 1, buffer, j)
        i += n
    return 0


def compress(own: int) -> int:
    """Pack the states of this thread's queue, in place."""
    queue = load(own, QUEUE)
    buffer = load(own, BUFFERS)
    first = 0
    while first < load(own, COUNT):
        for k in range(WORDS):
            for lane in range(LANES):
                store(buffer, k * STRIDE + lane, load(queue, first * WORDS + k * LANES + lane))
        pack(buffer, LANES)
        for lane in range(LANES):
            put(queue, first + lane, buffer, lane)
        first += LANES
    return 0


def clear(address: int, n: int) -> int:
    """n words become 0."""
    for i in range(n):
        store(address, i, 0)
    return 0


def insert_pending(shared: int, own: int) -> int:
    """Enter the states that wait for a place. Those that find none again wait on."""
    buffer = load(own, BUFFERS)
    waiting = load(own, PENDING_COUNT)
    pending = load(own, PENDING)
    store(own, PENDING_COUNT, 0)
    i = 0
    while i < waiting:
        n = 0
        while n < STRIDE and i + n < waiting:
            for k in range(PACKED_WORDS):
                store(buffer, k * STRIDE + n, load(pending, (i + n) * PACKED_WORDS + k))
            n += 1
        homes(buffer, n, load(shared, EXTENT))
        store(own, COUNT, insert(shared, own, buffer, n, load(own, COUNT)))
        i += n
    return 0


def begin(shared: int, own: int) -> int:
    """Enter the first states, which lie in the buffer; their number is FIRST."""
    buffer = load(own, BUFFERS)
    n = load(own, FIRST)
    prepare(shared, buffer, n)
    store(own, COUNT, insert(shared, own, buffer, n, 0))
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
    chunks = load(shared, CHUNKS)
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
        if load_shared(shared, STOP) != 0 or load_shared(shared, CROWDED) != 0:
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
        first = (lo & -WIDTH) + (c - load(shared, s + 3)) * CHUNK
        end = first + CHUNK
        if end > hi:
            end = hi
        while first < end:
            active = lanes_between(first, lo, hi)
            n = expand(states_at(own, states, first), active, buffer, enabled, faulty, taken, 1)
            generated += n
            stuck = stuck | any_without(enabled, active)
            prepare(shared, buffer, n)
            count = insert(shared, own, other, waiting, count)
            swap = buffer
            buffer = other
            other = swap
            waiting = n
            first += LANES
        store(own, COUNT, count)
    count = insert(shared, own, other, waiting, count)
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
        check(states_at(own, queue, first), lanes_between(first, lo, hi), hits)
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
        here = states_at(own, states, first)
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
        here = states_at(own, states, first)
        for i in range(INSTANCES):
            store8(faulty, claim * INSTANCES + i, 0)
        active = lanes_between(first, lo, hi)
        expand(here, active, load(own, BUFFERS), load(own, ENABLED), faulty, load(own, SCRATCH), 1)
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
        here = states_at(own, states, first)
        active = lanes_between(first, lo, hi)
        expand(here, active, load(own, BUFFERS), load(own, ENABLED), load(own, FAULTY), load(own, SCRATCH), 0)
        without = any_without(load(own, ENABLED), active)
        for lane in range(LANES):
            if (without >> lane) & 1 != 0:
                found = keep_least(best, found, here, lane)
        first += LANES
    return found


def makes(own: int, states: int, active: int, goal: int) -> int:
    """Has one of these states the state `goal` as a successor?"""
    buffer = load(own, BUFFERS)
    n = expand(states, active, buffer, load(own, ENABLED), load(own, FAULTY), load(own, SCRATCH), 0)
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
        here = states_at(own, states, first)
        active = lanes_between(first, lo, hi)
        if makes(own, here, active, goal) == 1:
            for lane in range(LANES):
                if (active >> lane) & 1 != 0 and makes(own, here, 1 << lane, goal) == 1:
                    found = keep_least(best, found, here, lane)
        first += LANES
    return found


def shows(own: int, states: int, claim: int) -> int:
    """Does the one state in lane 0 break (a witness: show) a claim?"""
    hits = load(own, HITS)
    store8(hits, claim, 0)
    check(states, 1, hits)
    return load8(hits, claim) & 1


def successors(own: int, states: int) -> int:
    """The successors of the one state in lane 0, into the buffer; faults start afresh."""
    faulty = load(own, FAULTY)
    for i in range(FAULTS * INSTANCES):
        store8(faulty, i, 0)
    return expand(states, 1, load(own, BUFFERS), load(own, ENABLED), faulty, load(own, SCRATCH), 1)


COMMON: list[Callable[..., object]] = [
    lanes_between, states_at, put, gather_lanes, find, gather, insert, prepare, reinsert, begin, any_without, work,
    examine, keep_least, least_hit, least_faulty, least_stuck, makes, least_parent, shows, successors,
]  # fmt: skip
FAST: list[Callable[..., object]] = [place, claim_slot]
PACKED: list[Callable[..., object]] = [refers, stride_of, claim_entry, look_ahead, compress, clear, insert_pending]
EXPORTED = {
    "gather_lanes", "reinsert", "begin", "work", "examine", "least_hit", "least_faulty", "least_stuck", "least_parent",
    "shows", "successors",
}  # fmt: skip
EXPORTED_PACKED = {"compress", "clear", "insert_pending"}
