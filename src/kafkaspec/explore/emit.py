"""Straight-line LLVM code over several states at once.

A value is a Python number where it is known, else a `Wire`: an SSA name with its bits and the limits that its form
gives. Every wire is a vector of `lanes` values, one a state. What is known folds; equal operations are one.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkaspec.errors import UserError

WORD = 64
ALL = 2**WORD - 1
GREATEST = 2 ** (WORD - 2)
"""Of the numbers that are added, multiplied and compared."""
WIDEST = 8_192
"""Bits of a value that is computed with, such as a set that has one for each element that there can be."""
MIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0xD6E8FEB86659FD93)
"""Odd numbers by which hashes multiply."""
NUMBERS = frozenset({"active", "asked", "instance", "n", "shift", "buckets"})
"""Arguments of the functions that are made which are no addresses."""


class NoCode(UserError):
    """There is no code for an expression at these sizes. The reader adds where it stands."""


class Wire:
    """An SSA value: `bits` an element; 1 means a truth value. `lo`..`hi` holds for every state that is really there."""

    __slots__ = ("bits", "hi", "lo", "name")

    def __init__(self, name: str, bits: int, lo: int, hi: int) -> None:
        self.name, self.bits, self.lo, self.hi = name, bits, lo, hi


Num = int | Wire
Bit = bool | Wire
Words = list[Num]


def low(a: Num) -> int:
    return a if isinstance(a, int) else a.lo


def high(a: Num) -> int:
    return a if isinstance(a, int) else a.hi


class Emitter:
    """Builds one function's body. `lanes` 1 gives scalar code."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.lines: list[str] = []
        self.known: dict[str, Wire] = {}
        self.scopes: list[list[str]] = [[]]
        self.label = "entry"
        self.intrinsics: set[str] = set()
        self._count = 0

    # ---- text
    def type(self, bits: int) -> str:
        if bits > WIDEST:
            raise NoCode(f"takes {bits:,} bits at once at these sizes, of at most {WIDEST:,}")
        return f"<{self.lanes} x i{bits}>" if self.lanes > 1 else f"i{bits}"

    def text(self, a: Num | Bit, bits: int = WORD) -> str:
        if isinstance(a, Wire):
            return a.name
        if bits == 1:
            x = "true" if a else "false"
        else:
            a &= (1 << bits) - 1
            x = str(a - (1 << bits) if a >> (bits - 1) else a)
        return f"splat (i{bits} {x})" if self.lanes > 1 else x

    def fresh(self, prefix: str = "x") -> str:
        self._count += 1
        return f"%{prefix}{self._count}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def begin(self, label: str) -> None:
        """Start the block of that name."""
        self.lines.append(f"{label}:")
        self.label = label

    def enter(self) -> None:
        """What is emitted from here on holds until `leave` alone."""
        self.scopes.append([])

    def leave(self) -> None:
        for operation in self.scopes.pop():
            del self.known[operation]

    def emit(self, operation: str, bits: int, lo: int | None = None, hi: int | None = None) -> Wire:
        """The wire of an operation; the one there is, if it was emitted where it still holds."""
        w = self.known.get(operation)
        if w is not None:
            return w
        full_lo, full_hi = (0, 1) if bits == 1 else (-(2 ** (bits - 1)), 2**bits - 1)
        w = Wire(self.fresh(), bits, full_lo if lo is None else lo, full_hi if hi is None else hi)
        self.lines.append(f"  {w.name} = {operation}")
        self.known[operation] = w
        self.scopes[-1].append(operation)
        return w

    # ---- numbers (64 bits, signed) and codes (any width)
    def add(self, a: Num, b: Num) -> Num:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if isinstance(b, int) and b == 0:
            return a
        if isinstance(a, int):
            return self.add(b, a)
        return self._pair("add", a, b, a.lo + low(b), a.hi + high(b))

    def sub(self, a: Num, b: Num) -> Num:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        if isinstance(b, int):
            return self.add(a, -b)
        return self._pair("sub", a, b, low(a) - high(b), high(a) - low(b))

    def times(self, a: Num, k: int) -> Num:
        """a * k, for k >= 0."""
        if isinstance(a, int):
            return a * k
        if k < 2:
            return a if k else 0
        if k & (k - 1) == 0:
            return self.emit(
                f"shl {self.type(WORD)} {a.name}, {self.text(k.bit_length() - 1)}", WORD, a.lo * k, a.hi * k
            )
        return self.emit(f"mul {self.type(WORD)} {a.name}, {self.text(k)}", WORD, a.lo * k, a.hi * k)

    def divided(self, op: str, a: Num, k: int) -> Num:
        """a // k ("div") or a % k ("mod") for k > 0, rounded down."""
        if isinstance(a, int):
            return a // k if op == "div" else a % k
        up = -(a.lo // k) if a.lo < 0 else 0  # k is added `up` times first: what is divided is never negative
        n = self.resize(self.add(a, up * k), WORD)
        assert isinstance(n, Wire)
        if op == "mod":
            return self.emit(f"urem {self.type(WORD)} {n.name}, {self.text(k)}", WORD, 0, k - 1)
        q = self.emit(f"udiv {self.type(WORD)} {n.name}, {self.text(k)}", WORD, 0, (a.hi + up * k) // k)
        return self.add(q, -up)

    # ---- bits (any width, unsigned)
    def bits(self, a: Num, least: int = WORD) -> int:
        return max(least, a.bits if isinstance(a, Wire) else -(-a.bit_length() // WORD) * WORD)

    def resize(self, a: Num, bits: int) -> Num:
        """The same number in more or fewer bits."""
        if isinstance(a, int) or a.bits == bits:
            return a
        word = "zext" if bits > a.bits else "trunc"
        hi = min(a.hi, 2**bits - 1) if a.lo >= 0 else 2**bits - 1
        return self.emit(f"{word} {self.type(a.bits)} {a.name} to {self.type(bits)}", bits, 0, hi)

    def _pair(self, op: str, a: Num, b: Num, lo: int, hi: int) -> Wire:
        n = max(self.bits(a), self.bits(b))
        a, b = self.resize(a, n), self.resize(b, n)
        return self.emit(f"{op} {self.type(n)} {self.text(a, n)}, {self.text(b, n)}", n, lo, hi)

    def other(self, a: Num, every: int) -> Num:
        """The bits of `every` that are not in a."""
        return a ^ every if isinstance(a, int) else self._pair("xor", a, every, 0, every)

    def both(self, a: Num, b: Num) -> Num:
        """a & b."""
        if isinstance(a, int) and isinstance(b, int):
            return a & b
        if isinstance(a, int):
            a, b = b, a
        if isinstance(b, int):
            if b == 0:
                return 0
            if low(a) >= 0 and b & (b + 1) == 0 and high(a) <= b:
                return a
        his = [high(x) for x in (a, b) if low(x) >= 0]
        return self._pair("and", a, b, 0, min(his) if his else ALL)

    def either(self, a: Num, b: Num) -> Num:
        """a | b."""
        if isinstance(a, int) and isinstance(b, int):
            return a | b
        if isinstance(a, int):
            a, b = b, a
        if isinstance(b, int) and b == 0:
            return a
        n = max(self.bits(a), self.bits(b))
        known = low(a) >= 0 and low(b) >= 0
        return self._pair("or", a, b, 0, (1 << (max(high(a).bit_length(), high(b).bit_length()) if known else n)) - 1)

    def shift(self, op: str, a: Num, by: Num, bits: int) -> Num:
        """a << by ("shl") or a >> by ("lshr") in `bits` bits; a shift by `bits` or more gives some number or other."""
        if isinstance(by, int):
            if by == 0:
                return a
            if by >= bits or by < 0:
                return 0
            if isinstance(a, int):
                return (a << by) & ((1 << bits) - 1) if op == "shl" else a >> by
        elif isinstance(a, int) and a == 0:
            return 0
        a = self.resize(a, bits)
        top = high(a) if low(a) >= 0 else 2**bits - 1
        if op == "lshr":
            hi = top >> max(0, low(by))
        else:
            hi = min(top << min(max(0, high(by)), bits), 2**bits - 1)
        amount = self.text(self.resize(by, bits), bits)
        w = self.emit(f"{op} {self.type(bits)} {self.text(a, bits)}, {amount}", bits, 0, hi)
        if low(by) < 0 or high(by) >= bits:  # else a lane without a state could poison the rest
            w = self.emit(f"freeze {self.type(bits)} {w.name}", bits, 0, 2**bits - 1)
        return w

    def popcount(self, a: Num) -> Num:
        if isinstance(a, int):
            return a.bit_count()
        n = self.type(a.bits)
        suffix = f"v{self.lanes}i{a.bits}" if self.lanes > 1 else f"i{a.bits}"
        w = self.emit(f"call {n} @llvm.ctpop.{suffix}({n} {a.name})", a.bits, 0, high(a).bit_length())
        self.intrinsics.add(f"declare {n} @llvm.ctpop.{suffix}({n})")
        return self.resize(w, WORD)

    # ---- truth
    def compare(self, relation: str, a: Num, b: Num) -> Bit:
        """relation: "eq", "slt", "sle", or "uge"."""
        if isinstance(a, int) and isinstance(b, int):
            return {"eq": a == b, "slt": a < b, "sle": a <= b, "uge": a >= b}[relation]
        if a is b:
            return relation != "slt"
        match relation:
            case "eq":
                if low(a) > high(b) or high(a) < low(b):
                    return False
                if isinstance(a, int):
                    a, b = b, a
            case "slt":
                if high(a) < low(b):
                    return True
                if low(a) >= high(b):
                    return False
            case "sle":
                if high(a) <= low(b):
                    return True
                if low(a) > high(b):
                    return False
        n = max(self.bits(a), self.bits(b))
        a, b = self.resize(a, n), self.resize(b, n)
        return self.emit(f"icmp {relation} {self.type(n)} {self.text(a, n)}, {self.text(b, n)}", 1)

    def not_(self, a: Bit) -> Bit:
        return not a if isinstance(a, bool) else self.emit(f"xor {self.type(1)} {a.name}, {self.text(True, 1)}", 1)

    def and_(self, a: Bit, b: Bit) -> Bit:
        if isinstance(a, bool):
            return b if a else False
        if isinstance(b, bool):
            return a if b else False
        return a if a is b else self.emit(f"and {self.type(1)} {a.name}, {b.name}", 1)

    def or_(self, a: Bit, b: Bit) -> Bit:
        if isinstance(a, bool):
            return True if a else b
        if isinstance(b, bool):
            return True if b else a
        return a if a is b else self.emit(f"or {self.type(1)} {a.name}, {b.name}", 1)

    def same(self, a: Bit, b: Bit) -> Bit:
        """Are two truth values equal?"""
        if isinstance(a, bool):
            return b if a else self.not_(b)
        if isinstance(b, bool):
            return a if b else self.not_(a)
        return True if a is b else self.not_(self.emit(f"xor {self.type(1)} {a.name}, {b.name}", 1))

    def number(self, a: Bit) -> Num:
        """1 for true, 0 for false."""
        if isinstance(a, bool):
            return int(a)
        return self.emit(f"zext {self.type(1)} {a.name} to {self.type(WORD)}", WORD, 0, 1)

    def choose(self, c: Bit, a: Num, b: Num) -> Num:
        """a if c else b, of numbers or of bits."""
        if isinstance(c, bool):
            return a if c else b
        if a is b or (isinstance(a, int) and isinstance(b, int) and a == b):
            return a
        n = max(self.bits(a), self.bits(b))
        a, b = self.resize(a, n), self.resize(b, n)
        lo, hi = min(low(a), low(b)), max(high(a), high(b))
        if self.lanes > 1:
            return self._blend(c, a, b, n, lo, hi)
        return self.emit(
            f"select {self.type(1)} {c.name}, {self.type(n)} {self.text(a, n)}, {self.type(n)} {self.text(b, n)}",
            n, lo, hi,
        )  # fmt: skip

    def _blend(self, c: Wire, a: Num, b: Num, n: int, lo: int, hi: int) -> Wire:
        """`choose` by bits. As a select, LLVM 22 may fold it and an `or` before it into one masked vpternlog, and takes
        the operands of that in the wrong order."""
        t = self.type(n)
        mask = self.emit(f"sext {self.type(1)} {c.name} to {t}", n)
        apart = self.emit(f"xor {t} {self.text(a, n)}, {self.text(b, n)}", n)
        taken = self.emit(f"and {t} {apart.name}, {mask.name}", n)
        return self.emit(f"xor {t} {taken.name}, {self.text(b, n)}", n, lo, hi)

    def choose_bit(self, c: Bit, a: Bit, b: Bit) -> Bit:
        if isinstance(c, bool):
            return a if c else b
        return self.or_(self.and_(c, a), self.and_(self.not_(c), b))

    def mask_byte(self, m: Bit) -> str:
        """The lanes of a truth value as the bits of an i8."""
        if isinstance(m, bool):
            return str((1 << self.lanes) - 1 if m else 0)
        if self.lanes == 1:
            return self.emit(f"zext i1 {m.name} to i8", 8).name
        if self.lanes == 8:
            return self.emit(f"bitcast <8 x i1> {m.name} to i8", 8).name
        b = self.emit(f"bitcast <{self.lanes} x i1> {m.name} to i{self.lanes}", self.lanes)
        return self.emit(f"zext i{self.lanes} {b.name} to i8", 8).name

    # ---- fields of words
    def joined(self, words: Sequence[Num], offset: int, width: int) -> Num:
        """`width` bits that start at bit `offset` of a run of words, as one number."""
        i, b = divmod(offset, WORD)
        if b + width <= WORD:
            return self.both(self.shift("lshr", words[i], b, WORD), (1 << width) - 1)
        last = (offset + width - 1) // WORD
        n = (last - i + 1) * WORD
        r: Num = 0
        for k in range(i, last + 1):
            r = self.either(r, self.shift("shl", self.resize(words[k], n), (k - i) * WORD, n))
        r = self.both(self.shift("lshr", r, b, n), (1 << width) - 1)
        return self.resize(r, -(-width // WORD) * WORD)

    def cut(self, source: Num, offset: Num, width: int) -> Num:
        """`width` bits of a number from bit `offset` on."""
        if width == 0:
            return 0
        n = self.bits(source)
        r = self.both(self.shift("lshr", source, offset, n), (1 << width) - 1)
        return self.resize(r, -(-width // WORD) * WORD)

    def paste(self, target: Num, offset: Num, width: int, value: Num, bits: int) -> Num:
        """The number of `bits` bits with `width` of them, from `offset` on, replaced."""
        every, mask = (1 << bits) - 1, (1 << width) - 1
        value = self.resize(value, bits)
        if isinstance(offset, int):
            hole: Num = every & ~(mask << offset)
        else:
            hole = self.other(self.shift("shl", mask, offset, bits), every)
        return self.either(self.both(self.resize(target, bits), hole), self.shift("shl", value, offset, bits))


def function(
    name: str, arguments: Sequence[str], lines: Sequence[str], exported: bool = False, more: Sequence[str] = ()
) -> str:
    """A function in LLVM's language with `lines` as its body. An argument `a` that is no number (see `NUMBERS`) is an
    address, to which `%a.p` points; `more` are arguments with their types. It is called from outside if `exported`."""
    given = ", ".join([*(f"i64 %{a}" for a in arguments), *more])
    casts = [f"  %{a}.p = inttoptr i64 %{a} to ptr" for a in arguments if a not in NUMBERS]
    linkage = "" if exported else "internal "
    return "\n".join([f"define {linkage}i64 @{name}({given}) nounwind {{", "entry:", *casts, *lines, "}"])


class Columns:
    """A function over the columns of a buffer, LANES states at a time."""

    def __init__(self, lanes: int) -> None:
        self.e = Emitter(lanes)
        self.t = self.e.type(WORD)
        self.looping = False

    def op(self, text: str) -> str:
        w = self.e.fresh()
        self.e.line(f"{w} = {text}")
        return w

    def loop(self) -> None:
        """What follows is done for j = 0, LANES, ... below n."""
        self.looping = True
        self.e.line("br label %head")
        self.e.begin("head")
        self.e.line("%j = phi i64 [0, %entry], [%next, %body]")
        self.e.line("%more = icmp slt i64 %j, %n")
        self.e.line("br i1 %more, label %body, label %done")
        self.e.begin("body")

    def column(self, base: str, index: str) -> str:
        return self.op(f"getelementptr i64, ptr {base}, i64 {index}")

    def load(self, base: str, index: int) -> str:
        return self.op(f"load {self.t}, ptr {self.column(base, str(index))}, align 8")

    def store(self, w: str, base: str, index: int) -> None:
        self.e.line(f"store {self.t} {w}, ptr {self.column(base, str(index))}, align 8")

    def shifted(self, how: str, w: str, by: int) -> str:
        return self.op(f"{how} {self.t} {w}, {self.e.text(by)}") if by else w

    def folded(self, w: str, by: int) -> str:
        return self.op(f"xor {self.t} {w}, {self.shifted('lshr', w, by)}")

    def either(self, a: str, b: str) -> str:
        return self.op(f"or {self.t} {a}, {b}") if a else b

    def splat(self, number: str) -> str:
        if self.e.lanes == 1:
            return number
        one = self.op(f"insertelement {self.t} poison, i64 {number}, i64 0")
        return self.op(f"shufflevector {self.t} {one}, {self.t} poison, <{self.e.lanes} x i32> zeroinitializer")

    def function(self, name: str, arguments: Sequence[str]) -> str:
        if self.looping:
            self.e.line(f"%next = add i64 %j, {self.e.lanes}")
            self.e.line("br label %head")
            self.e.begin("done")
        self.e.line("ret i64 0")
        return function(name, arguments, self.e.lines)
