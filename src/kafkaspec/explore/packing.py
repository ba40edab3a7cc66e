"""How the states of a large run lie in memory: in the queues in `state_bytes` bytes each, in the table as entries.

A packed state is the bits of its words behind one another, in the fewest bytes. The table is an array of buckets of 64
bytes, each a header (how many of its entries are taken, and a lock) and `slots` entries of `entry_bytes` bytes. Their
number grows in small steps. A state's home is the bucket that its hash names; if that is full, others near it are
tried, always as many buckets on as the entry says.

The entry says the rest. The hash of a state's first 64 bits is a bijection, so that bucket and entry together are the
state itself: the entry holds what the home bucket leaves open, the state's other bits, and in its lowest bits how many
tries away from its home it stands. Where that needs more than eight bytes, an entry is a reference instead: the
number of the state in the queues, and eight bits of the hash that spare most comparisons with other states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkaspec.explore.emit import MIX, WORD, Columns

if TYPE_CHECKING:
    from kafkaspec.explore.program import Program

BUCKET = 64
"""Bytes of a bucket: a line of the processor's cache."""
HEADER = 4
AWAY_BITS = 6
TAG_BITS = 8
REFERENCE_BITS = 32
LEAST_ENTRY = 4
FINGERPRINT_BITS = 63
MOST_BUCKETS = (1 << 32) - 1


@dataclass(frozen=True)
class Form:
    """When a run packs its states, and how. Other values are for tests."""

    fast_mb: float = 256
    """The largest table of the fast form."""
    references: bool = False
    """Entries are references in any case."""
    most_away: int = (1 << AWAY_BITS) - 1
    """How many buckets beyond its home are tried for an entry."""
    load: tuple[int, int] = (9, 10)
    """The packed table grows when it is fuller than this fraction."""


USUAL = Form()


def used_bits(program: Program) -> list[int]:
    """How many bits of each word a layout uses, from bit 0."""
    used = [0] * program.words
    for place in program.layout.place.values():
        for k in range(program.words):
            if place.width and place.offset < WORD * (k + 1) and place.offset + place.width > WORD * k:
                used[k] = max(used[k], min(WORD, place.offset + place.width - WORD * k))
    return used


@dataclass(frozen=True)
class Packing:
    """A program's states and entries, for tables of at least 2 ** `shift` buckets."""

    program: Program
    shift: int
    threads: int
    form: Form

    @property
    def bits(self) -> int:
        return max(1, sum(used_bits(self.program)))

    @property
    def words(self) -> int:
        """Words of a packed state."""
        return -(-self.bits // WORD)

    @property
    def state_bytes(self) -> int:
        return -(-self.bits // 8)

    @property
    def mixed(self) -> int:
        """Bits of the number that is hashed by a bijection."""
        return FINGERPRINT_BITS if self.program.fingerprinted else min(WORD, self.bits)

    @property
    def open_bits(self) -> int:
        """Bits of the hash that a bucket leaves open."""
        return max(0, self.mixed - self.shift)

    @property
    def rest_bits(self) -> int:
        """Bits of a state that are not in the bijection."""
        return 0 if self.program.fingerprinted else self.bits - self.mixed

    @property
    def references(self) -> bool:
        return self.form.references or self.rest_bits + self.open_bits + AWAY_BITS > WORD

    @property
    def entry_bytes(self) -> int:
        if self.references:
            return (REFERENCE_BITS + TAG_BITS) // 8
        return max(LEAST_ENTRY, -(-(self.rest_bits + self.open_bits + AWAY_BITS) // 8))

    @property
    def slots(self) -> int:
        return (BUCKET - HEADER) // self.entry_bytes

    def allowed(self, buckets: int) -> int:
        """How many states a table of that number of buckets may hold."""
        return buckets * self.slots * self.form.load[0] // self.form.load[1]

    def grown(self, buckets: int) -> int:
        """How many buckets come next: at least a fifth more, at most twice as many, and else as many as leave the
        states that are there at twice their bits, and four bytes, or a little less."""
        most = 0.97 * (2 * self.bits / 8 + 4) - self.state_bytes
        return max(buckets * 6 // 5, min(2 * buckets, int(self.allowed(buckets) * most / BUCKET)))

    def wanted(self, states: int) -> int:
        """The fewest buckets that may hold that number of states."""
        return states * self.form.load[1] // (self.slots * self.form.load[0]) + 1

    def fit(self, size: int) -> int:
        """How many buckets take `size` bytes, together with as many states as they may hold."""
        part, whole = self.form.load
        return min(size * whole // (whole * BUCKET + part * self.slots * self.state_bytes), MOST_BUCKETS)

    @property
    def most_states(self) -> int:
        """How many states a thread's queue may hold, if references number them."""
        return (1 << REFERENCE_BITS) // self.threads

    def constants(self) -> dict[str, int]:
        """For the kernels."""
        p, tail = self.program, self.bits % WORD
        return {
            "COMPACT": 1,
            "KEY": p.stride * (p.words + 1),
            "PACKED_WORDS": self.words,
            "LAST_MASK": (1 << tail) - 1 if tail else (1 << WORD) - 1,
            "STATE_BYTES": self.state_bytes,
            "ENTRY_BYTES": self.entry_bytes,
            "ENTRY_MASK": (1 << 8 * self.entry_bytes) - 1,
            "SLOTS": self.slots,
            "MOST_AWAY": self.form.most_away,
            "REFERENCES": int(self.references),
            "THREADS": self.threads,
        }

    def text(self) -> str:
        """The functions `pack`, `unpack` and `homes` in LLVM's language."""
        return "\n".join([self._pack(), self._unpack(), self._homes()])

    def words_of(self, state: bytes) -> tuple[int, ...]:
        """A packed state's words."""
        whole, out = int.from_bytes(state, "little"), []
        for used in used_bits(self.program):
            out.append(whole & ((1 << used) - 1))
            whole >>= used
        return tuple(out)

    # ---- code
    def _pack(self) -> str:
        """Packs the first n states of a buffer, in place."""
        c = Columns(self.program.lanes)
        c.loop()
        here = c.column("%buffer.p", "%j")
        words = [c.load(here, k * self.program.stride) for k in range(self.program.words)]
        out = [""] * self.words
        at = 0
        for w, used in zip(words, used_bits(self.program), strict=True):
            q, up = divmod(at, WORD)
            if used:
                out[q] = c.either(out[q], c.shifted("shl", w, up))
            if used > WORD - up:
                out[q + 1] = c.either(out[q + 1], c.shifted("lshr", w, WORD - up))
            at += used
        for q, w in enumerate(out):
            c.store(w or c.e.text(0), here, q * self.program.stride)
        return c.function("pack", ("buffer", "n"))

    def _unpack(self) -> str:
        """Unpacks LANES states, in place: word k of the i-th is at k * LANES + i."""
        c = Columns(self.program.lanes)
        packed = [c.load("%states.p", q * c.e.lanes) for q in range(self.words)]
        words, at = [], 0
        for used in used_bits(self.program):
            q, up = divmod(at, WORD)
            w = c.shifted("lshr", packed[q], up) if used else c.e.text(0)
            if used > WORD - up:
                w = c.either(w, c.shifted("shl", packed[q + 1], WORD - up))
            words.append(c.op(f"and {c.t} {w}, {c.e.text((1 << used) - 1)}") if 0 < used < WORD else w)
            at += used
        for k, w in enumerate(words):
            c.store(w, "%states.p", k * c.e.lanes)
        return c.function("unpack", ("states",))

    def _homes(self) -> str:
        """Bucket and entry of the first n packed states of a buffer."""
        p, c = self.program, Columns(self.program.lanes)
        e, t, op = c.e, c.t, c.op
        buckets = c.splat("%buckets")
        c.loop()
        here = c.column("%buffer.p", "%j")
        packed = [c.load(here, q * p.stride) for q in range(self.words)]
        m = self.mixed
        if p.fingerprinted:
            x = ""
            for w in packed:
                x = op(f"xor {t} {x}, {w}") if x else w
                x = c.folded(op(f"mul {t} {x}, {e.text(MIX[0])}"), 32)
                x = c.folded(op(f"mul {t} {x}, {e.text(MIX[1])}"), 29)
            x = c.folded(op(f"mul {t} {x}, {e.text(MIX[2])}"), 31)
        else:
            x = packed[0]
            if self.words > 1:
                y = ""
                for w in packed[1:]:
                    y = op(f"xor {t} {y}, {w}") if y else w
                    y = c.folded(op(f"mul {t} {y}, {e.text(MIX[1])}"), 29)
                x = op(f"xor {t} {x}, {y}")
            for mix in MIX[:2]:
                x = op(f"mul {t} {x}, {e.text(mix)}")
                if m < WORD:
                    x = op(f"and {t} {x}, {e.text((1 << m) - 1)}")
                x = c.folded(x, max(1, m // 2))
            x = op(f"mul {t} {x}, {e.text(MIX[2])}")
        x = c.shifted("shl", x, WORD - m)  # the m bits of the hash, at the top
        product = op(f"mul {t} {c.shifted('lshr', x, 32)}, {buckets}")
        c.store(c.shifted("lshr", product, 32), here, p.stride * p.words)
        fraction = op(f"and {t} {product}, {e.text(2**32 - 1)}")
        if self.references:
            tag = op(f"xor {t} {c.shifted('lshr', fraction, 32 - TAG_BITS)}, {c.shifted('lshr', x, 32 - TAG_BITS)}")
            entry = op(f"and {t} {tag}, {e.text((1 << TAG_BITS) - 1)}")
        else:
            # Hashes of one bucket have fractions at least 2 ** shift apart (times 2 ** (32 - m) if m < 32).
            entry = c.shifted("lshr", fraction, self.shift + max(0, 32 - m)) if self.open_bits else e.text(0)
            above = min(32, m) - self.shift
            if m > 32:
                low = op(f"and {t} {c.shifted('lshr', x, WORD - m)}, {e.text((1 << (m - 32)) - 1)}")
                entry = c.either(entry, c.shifted("shl", low, above))
            if self.rest_bits:
                entry = c.either(entry, c.shifted("shl", packed[1], self.open_bits))
            entry = c.shifted("shl", entry, AWAY_BITS)
        c.store(entry, here, p.stride * (p.words + 1))
        return c.function("homes", ("buffer", "n", "buckets"))
