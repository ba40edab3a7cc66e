"""From a model's graph to code: guards, effects and claims over bit fields.

Quantifiers and parameters are unrolled, so most keys are constants and most reads are a shift and a mask. Where a text
has no value, or a value is outside its type, the code yields some number or other; `language.defined` says where that
is, and the code of its answers is what is asked first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafkaspec.contract.history import cut
from kafkaspec.errors import UserError
from kafkaspec.explore.emit import ALL, GREATEST, WORD, Bit, Emitter, NoCode, Num, Wire, Words, high, low
from kafkaspec.explore.layout import MOST_VALUES, UNBOUNDED, Layout
from kafkaspec.language.expr import Expr, and_, join, name_of, of_type, or_, show, within
from kafkaspec.language.model import Action
from kafkaspec.language.text import fail, short
from kafkaspec.language.types import T, make

MOST_READ = 500_000
"""Operations of one function's code, of which the largest shipped model takes a tenth."""

_BEYOND = f"may be beyond {UNBOUNDED}, up to which numbers without an upper limit are kept in a set or an option"
Env = dict[str, Num]
Choice = tuple[Bit, Num]
"""A value that a bound variable may take, and whether it is there."""


@dataclass
class Source:
    """Where a field lies: in a run of state words (`words`, `base`, `span`) or in a number, from `offset` on."""

    number: Num
    words: Words | None
    base: int
    span: int
    offset: Num
    width: int


class Reader:
    """Evaluates expressions on the words of a state."""

    def __init__(self, layout: Layout, emitter: Emitter, before: Words, after: Words | None = None) -> None:
        self.layout, self.e = layout, emitter
        self.before, self.after = before, after
        self.memo: dict[tuple[object, ...], object] = {}
        self.scopes: list[list[tuple[object, ...]]] = [[]]
        self.read = 0

    # ---- scopes: what is computed under a branch is known only there
    def enter(self) -> None:
        self.e.enter()
        self.scopes.append([])

    def leave(self) -> None:
        self.e.leave()
        for key in self.scopes.pop():
            del self.memo[key]

    def _once(self, what: str, x: Expr, env: Env, compute: Callable[..., object], *more: T) -> object:
        key = (what, x.id, *map(id, more), *[env[n] for n in x.free])  # the names of one x have one order
        if key in self.memo:
            return self.memo[key]
        self.read += 1
        if self.read > MOST_READ:
            raise UserError(
                f"{self.layout.model.name} takes more than {MOST_READ:,} operations to read at these sizes: "
                "a comprehension is read once for each value of its variable"
            )
        try:
            r = compute(x, *more, env)
        except NoCode as e:
            raise UserError(f"{_at(x)}{show(x)} {e}") from None
        self.memo[key] = r
        self.scopes[-1].append(key)
        return r

    # ---- places
    def source(self, x: Expr, env: Env) -> Source | None:
        """Where x can be read in place; None if it must be computed."""
        lay, e = self.layout, self.e
        if x.op in ("var", "nextvar"):
            if x.aux not in lay.place:
                raise UserError(f"{_at(x)}{show(x)} is a ghost: it is read where the ghosts are left out")
            p = lay.place[x.aux]
            words = self.before if x.op == "var" else self.after
            assert words is not None
            return Source(0, words, p.offset, p.width, 0, p.width)
        if x.op not in ("idx", "at", "field"):
            return None
        a = x.args[0]
        s = self.source(a, env)
        if s is None:
            s = Source(self.own(a, env), None, 0, 0, 0, lay.width(a.t))
        w = lay.width(x.t)
        if x.op == "field":
            at: Num = lay.field(a.t, x.aux)
        elif x.op == "idx":
            at = e.times(self.position(x.args[1], a.t.domain, env), w)
        else:
            c = lay.cells(a.t)
            at = e.add(e.times(self.number(x.args[1], env), c.width), c.length)
        return Source(s.number, s.words, s.base, s.span, e.add(s.offset, at), w)

    def fetch(self, s: Source) -> Num:
        """The bits of a place."""
        e = self.e
        if s.width == 0:
            return 0
        if s.words is None:
            return e.cut(s.number, s.offset, s.width)
        if isinstance(s.offset, int):
            inside = 0 <= s.offset <= s.span - s.width
            return e.joined(s.words, s.base + s.offset, s.width) if inside else 0
        b = s.base % WORD
        if b + s.span <= WORD:
            return e.cut(s.words[s.base // WORD], e.add(s.offset, b), s.width)
        return e.cut(e.joined(s.words, s.base, s.span), s.offset, s.width)

    def position(self, key: Expr, domain: T, env: Env) -> Num:
        """The index of a map's key or a set's element among the values of its type."""
        if domain.kind in ("range", "int"):
            return self.e.sub(self.number(key, env), self.layout.limits(domain)[0])
        return self.coded(key, domain, env)

    # ---- codes
    def own(self, x: Expr, env: Env) -> Num:
        """The code of x as its own type lies."""
        return self.coded(x, x.t, env)

    def coded(self, x: Expr, t: T, env: Env) -> Num:
        """The code of x as type t lies; some number or other if the value is none of type t."""
        r = self._once("code", x, env, self._coded, t)
        return r  # type: ignore[return-value]

    def _coded(self, x: Expr, t: T, env: Env) -> Num:
        lay, e, a = self.layout, self.e, x.args
        if x.op == "only":
            return self.coded(a[1], t, env)
        if t.kind in ("range", "int"):
            s = self.source(x, env) if x.t.kind == "range" and lay.alike(x.t, t) else None
            if s is None:
                return self.fit(self.number(x, env), t)
            return e.sub(self.fetch(s), lay.cells(a[0].t).plus) if x.op == "at" else self.fetch(s)
        if t.kind == "bool":
            return e.number(self.truth(x, env))
        match x.op:
            case "const":
                return int(x.aux)
            case "bound":
                return self.recode(env[x.aux], x.t, t)
            case "var" | "nextvar" | "idx" | "field":
                s = self.source(x, env)
                assert s is not None
                code = self.fetch(s)
                if isinstance(code, Wire) and _total(x):
                    code = Wire(code.name, code.bits, 0, min(code.hi, lay.codes(x.t) - 1))
                return self.recode(code, x.t, t)
            case "at":
                s = self.source(x, env)
                assert s is not None
                return self.recode(e.sub(self.fetch(s), lay.cells(a[0].t).plus), x.t, t)
            case "get":
                return self.recode(e.sub(self.own(a[0], env), 1), x.t, t)
            case "ite":
                c = self.truth(a[0], env)
                if isinstance(c, bool):
                    return self.coded(a[1] if c else a[2], t, env)
                return e.choose(c, self.coded(a[1], t, env), self.coded(a[2], t, env))
            case "none" | "empty" | "emptyseq":
                return 0
            case "some":
                return self.present(self.coded(a[0], t.item, env), t)
            case "rec":
                r: Num = 0
                for i, (y, (_, ft)) in enumerate(zip(a, t.fields, strict=True)):
                    r = e.either(r, e.shift("shl", self.coded(y, ft, env), lay.field(t, i), self.room(t)))
                return r
            case "mapof":
                r, w = 0, lay.width(t.item)
                for i, v in enumerate(lay.values(t.domain)):
                    value = self.cut(self.coded(a[1], t.item, {**env, a[0].aux: v}), a[1], t.item, w)
                    r = e.either(r, e.shift("shl", value, i * w, self.room(t)))
                return r
            case "append" | "concat":
                return self.joined(x, t, env)
            case "take" | "drop":
                return self.sliced(x, t, env)
        if t.kind == "set":
            return self.few(x, t, env) if t.hi is not None else self.dense(x, t, env)
        raise AssertionError(f"no code for {x.op}")

    def room(self, t: T) -> int:
        """The bits of the number that holds a code of type t."""
        return max(1, -(-self.layout.width(t) // WORD)) * WORD

    def present(self, item: Num, t: T) -> Num:
        """The code of an option of type t in which the item of this code is. It may need a word more than the item."""
        return self.e.add(self.e.resize(item, self.room(t)), 1)

    def fit(self, v: Num, t: T) -> Num:
        """A number's code in type t."""
        hi = self.layout.stored(t)[1]
        if t.kind == "range" and t.hi is None and high(v) > hi:
            raise NoCode(_BEYOND)
        code = self.e.sub(v, self.layout.bias(t))
        if isinstance(code, Wire) and (code.lo < 0 or code.hi > hi - self.layout.bias(t)):
            code = Wire(code.name, code.bits, 0, (1 << self.layout.width(t)) - 1)
        return code

    def cut(self, code: Num, x: Expr, t: T, width: int) -> Num:
        """The code of x in a place of type t, `width` bits wide: what does not fit there does not spill over."""
        if x.op != "get" and within(of_type(x), t):  # None has no code there
            return code
        if isinstance(code, int):
            return code & ((1 << width) - 1)
        return self.e.both(Wire(code.name, code.bits, 0, (1 << code.bits) - 1), (1 << width) - 1)

    def recode(self, v: Num, a: T, b: T) -> Num:
        """The code of a value of type a as type b lies."""
        lay, e = self.layout, self.e
        if lay.alike(a, b):
            return v
        if a.kind in ("range", "int"):
            return self.fit(e.add(v, lay.bias(a)), b)
        if b.kind == "option" and a.kind != "option":
            return self.present(self.recode(v, a, b.item), b)
        if a.kind == "option":
            inner = self.recode(e.sub(v, 1), a.item, b.item)
            return e.choose(e.compare("eq", v, 0), 0, self.present(inner, b))
        if a.kind == "set" and b.hi is not None:
            return self.packed(self.cells_of(v, a), b)
        if a.kind == "set":
            d = lay.limits(a.item)[0] - lay.limits(b.item)[0]
            bits = max(self.room(a), self.room(b))
            moved = e.shift("shl", v, d, bits) if d >= 0 else e.shift("lshr", v, -d, bits)
            return e.both(moved, (1 << lay.width(b)) - 1)
        r: Num = 0
        if a.kind == "map":
            wa, wb = lay.width(a.item), lay.width(b.item)
            for i in range(lay.size(b.domain)):
                r = e.either(r, e.shift("shl", self.recode(e.cut(v, i * wa, wa), a.item, b.item), i * wb, self.room(b)))
            return r
        if a.kind == "seq":
            ca, cb = lay.cells(a), lay.cells(b)
            n = self.length_of(v, a)
            r = n if cb.length else 0
            for i in range(min(ca.most, cb.most)):
                cell = e.cut(v, ca.length + i * ca.width, ca.width)
                item = e.add(self.recode(e.sub(cell, ca.plus), a.item, b.item), cb.plus)
                item = e.choose(e.compare("slt", i, n), e.both(item, (1 << cb.width) - 1), 0)
                r = e.either(r, e.shift("shl", item, cb.length + i * cb.width, self.room(b)))
            return r
        raise AssertionError(f"{a!r} as {b!r}")

    # ---- sets: a bit for each element that there can be
    def dense(self, x: Expr, t: T, env: Env) -> Num:
        """The elements of a set, as bits of the set type t."""
        e, a = self.e, x.args
        every = (1 << self.layout.width(t)) - 1
        match x.op:
            case "full":
                return every
            case "with":
                return e.either(self.coded(a[0], t, env), self.bit(a[1], t, env))
            case "without":
                return e.both(self.coded(a[0], t, env), e.other(self.bit(a[1], t, env), every))
            case "union":
                return e.either(self.coded(a[0], t, env), self.coded(a[1], t, env))
            case "inter":
                return e.both(self.coded(a[0], t, env), self.coded(a[1], t, env))
            case "diff":
                return e.both(self.coded(a[0], t, env), e.other(self.coded(a[1], t, env), every))
            case "setof":
                return self.recode(self.collected(x, env), x.t, t)
            case "image":
                r: Num = 0
                for there, inner in self.chosen(a[0], a[1], env):
                    r = e.either(r, e.choose(there, self.bit(a[2], t, inner), 0))
                return r
        raise AssertionError(f"no code for {x.op}")

    def bit(self, x: Expr, t: T, env: Env) -> Num:
        """The one bit of x in a set of type t; none if it cannot be in it."""
        e, n = self.e, self.layout.size(t.item)
        i = self.position(x, t.item, env)
        if t.item.kind == "range" and t.item.hi is None and high(i) >= n:
            raise NoCode(_BEYOND)
        if not within(of_type(x), t.item):
            inside = e.and_(e.compare("sle", 0, i), e.compare("slt", i, n))
            return e.choose(inside, e.shift("shl", 1, e.choose(inside, i, 0), self.room(t)), 0)
        return e.shift("shl", 1, i, self.room(t))

    def collected(self, x: Expr, env: Env) -> Num:
        e, r = self.e, 0
        v, cond = x.args
        self.bounded(v, cond, True, env)
        for i, value in enumerate(self.layout.values(v.t)):
            bit = e.number(self.truth(cond, {**env, v.aux: value}))
            r = e.either(r, e.shift("shl", bit, i, self.room(x.t)))  # type: ignore[assignment]
        return r

    # ---- sets of at most N records: their codes, greatest first
    def cells_of(self, v: Num, t: T) -> list[Num]:
        """The cells of a set's code: a record's code and `plus`, or 0."""
        c = self.layout.cells(t)
        return [self.e.cut(v, i * c.width, c.width) for i in range(c.most)]

    def packed(self, cells: list[Num], t: T) -> Num:
        """The code of a set of type t from its cells."""
        c, e = self.layout.cells(t), self.e
        r: Num = 0
        for i, cell in enumerate(cells[: c.most]):
            r = e.either(r, e.shift("shl", cell, i * c.width, self.room(t)))
        return r

    def entered(self, cells: list[Num], x: Num) -> list[Num]:
        """Cells with one more: x goes to its place, the others move on; an x that is there, or 0, changes nothing."""
        e, out = self.e, []
        for cell in cells:
            same, before = e.compare("eq", x, cell), e.compare("uge", x, cell)
            out.append(e.choose(before, x, cell))
            x = e.choose(same, 0, e.choose(before, cell, x))
        return out

    def few(self, x: Expr, t: T, env: Env) -> Num:
        """The code of a set of at most N records."""
        lay, e, a = self.layout, self.e, x.args
        if x.op not in ("with", "union") and not lay.alike(x.t, t):  # what is left may fit where the whole does not
            return self.recode(self.own(x, env), x.t, t)
        c = lay.cells(t)

        def cell(y: Expr, inner: Env) -> Num:
            return e.add(self.coded(y, t.item, inner), c.plus)

        def cells(y: Expr) -> list[Num]:
            return self.cells_of(self.coded(y, t, env), t)

        out: list[Num] = [0] * c.most
        match x.op:
            case "with":
                return self.packed(self.entered(cells(a[0]), cell(a[1], env)), t)
            case "without":
                gone: Bit = False
                old, y = cells(a[0]), cell(a[1], env)
                for i, here in enumerate(old):
                    gone = e.or_(gone, e.compare("eq", here, y))
                    out[i] = e.choose(gone, old[i + 1] if i + 1 < len(old) else 0, here)
                return self.packed(out, t)
            case "union":
                out = cells(a[0])
                for y in self.cells_of(self.own(a[1], env), a[1].t):
                    out = self.entered(out, y)
                return self.packed(out, t)
            case "inter" | "diff":
                for here in cells(a[0]):
                    inside = self.among(here, a[1], env)
                    keep = inside if x.op == "inter" else e.not_(inside)
                    out = self.entered(out, e.choose(keep, here, 0))
                return self.packed(out, t)
            case "setof" | "image":
                for there, inner in self.chosen(a[0], a[1], env):
                    y = cell(a[0] if x.op == "setof" else a[2], inner)
                    out = self.entered(out, e.choose(there, y, 0))
                return self.packed(out, t)
        raise AssertionError(f"no code for {x.op}")

    def among(self, cell: Num, s: Expr, env: Env) -> Bit:
        """Is a cell one of a set's, and not 0?"""
        e, found = self.e, False
        for y in self.cells_of(self.own(s, env), s.t):
            found = e.or_(found, e.compare("eq", y, cell))  # type: ignore[assignment]
        return e.and_(found, e.not_(e.compare("eq", cell, 0)))

    def drawn(self, s: Expr, i: int) -> Choice:
        """The i-th record of a set, and whether there is one."""
        return self.record(self.cells_of(self.own(s, {}), s.t)[i], s.t)

    def record(self, cell: Num, t: T) -> Choice:
        """The record in a cell of a set, and whether there is one."""
        return self.e.not_(self.e.compare("eq", cell, 0)), self.e.sub(cell, self.layout.cells(t).plus)

    # ---- what bound variables take
    def choices(self, v: Expr, body: Expr, negative: bool, env: Env) -> tuple[list[Choice], Expr]:
        """What v takes in `body`, a conjunction (a disjunction if `negative`), and what of the body is still to be
        asked. Of records in a set only those that are there are taken."""
        if v.t.kind == "rec":
            joint = "or" if negative else "and"
            parts = body.args if body.op == joint else (body,)
            for p in parts:
                q = p.args[0] if negative and p.op == "not" else p
                if q.op == "in" and (q is not p) == negative and q.args[0] is v and v.aux not in q.args[1].free:
                    s = q.args[1]
                    found = [self.record(c, s.t) for c in self.cells_of(self.own(s, env), s.t)]
                    return found, (or_ if negative else and_)(*[x for x in parts if x is not p])
        self.bounded(v, body, not negative, env)
        return [(True, value) for value in self.layout.values(v.t)], body

    def bounded(self, v: Expr, body: Expr, there: bool, env: Env) -> None:
        """Raises NoCode unless every number that v must take is looked at: those for which the body is true, or false
        if not `there`."""
        if v.t.kind == "range" and v.t.hi is None and not self._low(v, body, there, env):
            raise NoCode(f"asks numbers without an upper limit, of which those up to {UNBOUNDED} are looked at")

    def _low(self, v: Expr, x: Expr, true: bool, env: Env) -> bool:
        """Is v at most UNBOUNDED wherever x is true (or false)?"""

        def at_most(y: Expr, more: int) -> bool:
            return v.aux not in y.free and high(self.number(y, env)) <= UNBOUNDED + more

        a = x.args
        match x.op:
            case "const":
                return bool(x.aux) != true
            case "and" | "or":
                return (any if (x.op == "and") == true else all)([self._low(v, y, true, env) for y in a])
            case "not":
                return self._low(v, a[0], not true, env)
            case "only":
                return self._low(v, a[1], true, env)
            case "in":
                return true and a[0] is v and v.aux not in a[1].free
            case "lt" | "le" if true:
                return a[0] is v and at_most(a[1], int(x.op == "lt"))
            case "lt" | "le":
                return a[1] is v and at_most(a[0], int(x.op == "le"))
        return False

    def chosen(self, v: Expr, cond: Expr, env: Env) -> list[tuple[Bit, Env]]:
        """For each value that v takes: does the condition hold of it, and the environment in which it is v."""
        found, rest = self.choices(v, cond, False, env)
        out = []
        for there, value in found:
            inner = {**env, v.aux: value}
            out.append((self.e.and_(there, self.truth(rest, inner)), inner))
        return out

    # ---- sequences
    def length_of(self, q: Num, t: T) -> Num:
        e, c = self.e, self.layout.cells(t)
        if c.length:
            n = e.cut(q, 0, c.length)
            return n if isinstance(n, int) else Wire(n.name, n.bits, 0, min(n.hi, c.most))
        n = 0
        for i in range(c.most):
            n = e.add(n, e.number(e.compare("uge", q, 1 << (c.width * i))))
        return n

    def length(self, x: Expr, env: Env) -> Num:
        r = self._once("len", x, env, lambda x, env: self.length_of(self.own(x, env), x.t))
        return r  # type: ignore[return-value]

    def joined(self, x: Expr, t: T, env: Env) -> Num:
        """A sequence with an element, or another sequence, behind it."""
        lay, e, a = self.layout, self.e, x.args
        c, n = lay.cells(t), self.room(t)
        q = self.coded(a[0], t, env)
        size = self.length(a[0], env) if lay.alike(a[0].t, t) else self.length_of(q, t)
        at = e.add(e.times(size, c.width), c.length)
        more: Num = 1
        if x.op == "append":
            cells = self.cut(e.add(self.coded(a[1], t.item, env), c.plus), a[1], t.item, c.width)
        else:
            tail = self.coded(a[1], t, env)
            more = self.length(a[1], env) if lay.alike(a[1].t, t) else self.length_of(tail, t)
            cells = e.shift("lshr", tail, c.length, n)
        q = e.either(q, e.shift("shl", cells, at, n))
        if not c.length:
            return q
        return e.either(e.both(q, ((1 << n) - 1) & ~((1 << c.length) - 1)), e.add(size, more))

    def sliced(self, x: Expr, t: T, env: Env) -> Num:
        lay, e, a = self.layout, self.e, x.args
        if not lay.alike(a[0].t, t):  # what is left may fit where the whole does not
            return self.recode(self.coded(x, a[0].t, env), a[0].t, t)
        c, n = lay.cells(t), self.room(t)
        q, k = self.coded(a[0], t, env), self.number(a[1], env)
        if high(k) > c.most:
            k = e.choose(e.compare("slt", c.most, k), c.most, k)
        if low(k) < 0:
            k = e.choose(e.compare("slt", k, 0), 0, k)
        size = self.length_of(q, t) if c.length else 0
        cells = e.shift("lshr", q, c.length, n)
        # two shifts: together they may reach the number's whole width
        if x.op == "drop":
            cells = self.twice("lshr", cells, k, c.width, n)
            left = e.choose(e.compare("slt", k, size), e.sub(size, k), 0) if c.length else 0
        else:
            keep = self.twice("shl", (1 << n) - 1, k, c.width, n)
            cells = e.both(cells, e.other(keep, (1 << n) - 1))
            left = e.choose(e.compare("slt", k, size), k, size) if c.length else 0
        return e.either(e.shift("shl", cells, c.length, n), left)

    def twice(self, op: str, a: Num, k: Num, width: int, bits: int) -> Num:
        if high(k) * width < bits:
            return self.e.shift(op, a, self.e.times(k, width), bits)
        half = width // 2
        return self.e.shift(op, self.e.shift(op, a, self.e.times(k, half), bits), self.e.times(k, width - half), bits)

    # ---- numbers
    def number(self, x: Expr, env: Env) -> Num:
        """The value of a number, of at most 62 bits and its sign. Raises UserError if its form does not show that."""
        r: Num = self._once("number", x, env, self._number)  # type: ignore[assignment]
        if max(abs(low(r)), abs(high(r))) > GREATEST:
            raise UserError(f"{_at(x)}{cut(show(x))} may be beyond 62 bits, with which states are explored")
        return r

    def _number(self, x: Expr, env: Env) -> Num:
        lay, e, a = self.layout, self.e, x.args
        r: Num = 0
        match x.op:
            case "const":
                return int(x.aux)
            case "size" | "sortsize":
                return int(lay.sizes[x.aux])
            case "bound":
                return env[x.aux]
            case "only":
                return self.number(a[1], env)
            case "add":
                return e.add(self.number(a[0], env), self.number(a[1], env))
            case "sub":
                return e.sub(self.number(a[0], env), self.number(a[1], env))
            case "mul":
                y, k = self.number(a[0], env), int(a[1].aux)
                return e.times(y, k) if k >= 0 else e.sub(0, e.times(y, -k))
            case "div" | "mod":
                self.number(a[1], env)
                return e.divided(x.op, self.number(a[0], env), int(a[1].aux))
            case "ite":
                c = self.truth(a[0], env)
                if isinstance(c, bool):
                    return self.number(a[1] if c else a[2], env)
                return e.choose(c, self.number(a[1], env), self.number(a[2], env))
            case "len":
                return self.length(a[0], env)
            case "card" if a[0].t.hi is not None:
                for cell in self.cells_of(self.own(a[0], env), a[0].t):
                    r = e.add(r, e.number(e.not_(e.compare("eq", cell, 0))))
                return r
            case "card":
                return e.popcount(self.own(a[0], env))
            case "count":
                for there, _ in self.chosen(a[0], a[1], env):
                    r = e.add(r, e.number(there))
                return r
            case "sum":
                for there, inner in self.chosen(a[0], a[1], env):
                    r = e.add(r, e.choose(there, self.number(a[2], inner), 0))
                return r
            case "greatest" | "least":
                return self._extreme(x, env)
            case "get":
                return self.inside(a[0], env)
        s = self.source(x, env)
        assert s is not None, x.op
        code = self.fetch(s)
        if x.op == "at":
            code = e.sub(code, lay.cells(a[0].t).plus)
        r = e.add(code, lay.bias(x.t))
        if isinstance(r, Wire) and _total(x):
            lo, hi = lay.stored(x.t)
            return Wire(r.name, r.bits, max(lo, r.lo), min(hi, r.hi))
        return r

    def _extreme(self, x: Expr, env: Env) -> Num:
        """The greatest or least of the values, else the default."""
        e, (v, cond, value) = self.e, x.args[:3]
        r = self.number(x.args[3], env) if len(x.args) > 3 else 0
        if value is v and v.t.kind == "range":
            self.bounded(v, cond, True, env)
            values = self.layout.values(v.t)
            for y in values if x.op == "greatest" else reversed(values):
                r = e.choose(self.truth(cond, {**env, v.aux: y}), y, r)
            return r
        found: Bit = False
        for there, inner in self.chosen(v, cond, env):
            n = self.number(value, inner)
            better = e.compare("slt", r, n) if x.op == "greatest" else e.compare("slt", n, r)
            r = e.choose(e.and_(there, e.or_(e.not_(found), better)), n, r)
            found = e.or_(found, there)
        return r

    # ---- truth
    def truth(self, x: Expr, env: Env) -> Bit:
        r = self._once("truth", x, env, self._truth)
        return r  # type: ignore[return-value]

    def _truth(self, x: Expr, env: Env) -> Bit:
        lay, e, a = self.layout, self.e, x.args
        match x.op:
            case "const":
                return bool(x.aux)
            case "size":
                return bool(lay.sizes[x.aux])
            case "bound":
                return e.not_(e.compare("eq", env[x.aux], 0))
            case "only":
                return self.truth(a[1], env)
            case "must":
                return True
            case "not":
                return e.not_(self.truth(a[0], env))
            case "and" | "or":
                r: Bit = x.op == "and"
                for y in a:
                    r = (e.and_ if x.op == "and" else e.or_)(r, self.truth(y, env))
                    if r is (x.op == "or"):
                        break
                return r
            case "ite":
                c = self.truth(a[0], env)
                if isinstance(c, bool):
                    return self.truth(a[1] if c else a[2], env)
                return e.choose_bit(c, self.truth(a[1], env), self.truth(a[2], env))
            case "eq":
                return self.equal(a[0], a[1], env)
            case "lt":
                return e.compare("slt", self.number(a[0], env), self.number(a[1], env))
            case "le":
                return e.compare("sle", self.number(a[0], env), self.number(a[1], env))
            case "in":
                return self.contained(a[0], a[1], env)
            case "subset" if a[0].t.hi is not None:
                r = True
                for cell in self.cells_of(self.own(a[0], env), a[0].t):
                    r = e.and_(r, e.or_(e.compare("eq", cell, 0), self.among(cell, a[1], env)))
                return r
            case "subset":
                t = join(a[0].t, a[1].t)
                s, u = self.coded(a[0], t, env), self.coded(a[1], t, env)
                return e.compare("eq", e.both(s, u), s)
            case "majority":
                return e.compare("slt", lay.size(a[0].t.item), e.times(e.popcount(self.own(a[0], env)), 2))
            case "forall" | "exists":
                all_ = x.op == "forall"
                found, rest = self.choices(a[0], a[1], all_, env)
                r = all_
                for there, value in found:
                    holds = self.truth(rest, {**env, a[0].aux: value})
                    r = e.and_(r, e.or_(e.not_(there), holds)) if all_ else e.or_(r, e.and_(there, holds))
                    if r is (not all_):
                        break
                return r
            case "get":
                return e.not_(e.compare("eq", e.sub(self.own(a[0], env), 1), 0))
        s0 = self.source(x, env)
        assert s0 is not None, x.op
        code = self.fetch(s0)
        if x.op == "at":
            code = e.sub(code, lay.cells(a[0].t).plus)
        return e.not_(e.compare("eq", code, 0))

    def equal(self, x: Expr, y: Expr, env: Env) -> Bit:
        e = self.e
        while x.op == "only" or y.op == "only":
            x, y = (z.args[1] if z.op == "only" else z for z in (x, y))
        if x.t.numeric:
            return e.compare("eq", self.number(x, env), self.number(y, env))
        if x.t.kind == "bool":
            return e.same(self.truth(x, env), self.truth(y, env))
        if x.op == "none" or y.op == "none":
            other = y if x.op == "none" else x
            return self.absent(other, env)
        if x.op == "some" and y.op == "some":
            return self.equal(x.args[0], y.args[0], env)
        if x.t.kind == "option" and x.t.item.numeric and not (x.t is y.t and self.plain(x) and self.plain(y)):
            nx, ny = self.absent(x, env), self.absent(y, env)
            values = e.compare("eq", self.inside(x, env), self.inside(y, env))
            return e.or_(e.and_(nx, ny), e.and_(e.not_(e.or_(nx, ny)), values))
        t = join(x.t, y.t)
        return e.compare("eq", self.coded(x, t, env), self.coded(y, t, env))

    def plain(self, x: Expr) -> bool:
        return x.op in ("var", "nextvar", "idx", "at", "field", "none")

    def absent(self, x: Expr, env: Env) -> Bit:
        """Is an option None?"""
        e = self.e
        match x.op:
            case "none":
                return True
            case "some":
                return False
            case "only":
                return self.absent(x.args[1], env)
            case "ite":
                c = self.truth(x.args[0], env)
                return e.choose_bit(c, self.absent(x.args[1], env), self.absent(x.args[2], env))
        return e.compare("eq", self.own(x, env), 0)

    def inside(self, x: Expr, env: Env) -> Num:
        """The number in an option of numbers; any number if it is None."""
        match x.op:
            case "none":
                return 0
            case "some":
                return self.number(x.args[0], env)
            case "only":
                return self.inside(x.args[1], env)
            case "ite":
                c = self.truth(x.args[0], env)
                return self.e.choose(c, self.inside(x.args[1], env), self.inside(x.args[2], env))
        return self.e.add(self.e.sub(self.own(x, env), 1), self.layout.bias(x.t.item))

    def contained(self, x: Expr, s: Expr, env: Env) -> Bit:
        lay, e = self.layout, self.e
        if s.t.hi is not None:
            return self.among(e.add(self.coded(x, s.t.item, env), lay.cells(s.t).plus), s, env)
        if s.op == "setof" and within(of_type(x), s.args[0].t):
            value = self.number(x, env) if x.t.numeric else self.own(x, env)
            return self.truth(s.args[1], {**env, s.args[0].aux: value})
        i = self.position(x, s.t.item, env)
        members = self.own(s, env)
        inside = e.and_(e.compare("sle", 0, i), e.compare("slt", i, lay.size(s.t.item)))
        bit = e.both(e.shift("lshr", members, i, self.room(s.t)), 1)
        return e.and_(inside, e.not_(e.compare("eq", bit, 0)))

    # ---- effects
    def next_words(self, action: Action, env: Env) -> Words:
        """The words of the state after."""
        lay, e = self.layout, self.e
        types = {n: limited(t) for n, t in lay.vars.items()}
        new: Words = list(self.before)
        for u in action.updates:
            if u.var not in lay.place:
                continue
            cond = self.truth(u.cond, env)
            if cond is False:
                continue
            t, at, plus = types[u.var], 0, 0
            width = lay.width(t)
            for k in u.keys:
                plus = 0
                if t.kind == "rec":
                    at, t = e.add(at, lay.field(t, k.aux)), t.fields[k.aux][1]  # type: ignore[assignment]
                    width = lay.width(t)
                elif t.kind == "seq":
                    c = lay.cells(t)
                    at = e.add(at, e.add(e.times(self.number(k, env), c.width), c.length))  # type: ignore[assignment]
                    t, width, plus = t.item, c.width, c.plus
                else:
                    i = self.position(k, t.domain, env)
                    at = e.add(at, e.times(i, lay.width(t.item)))  # type: ignore[assignment]
                    t = t.item
                    width = lay.width(t)
            value = self.cut(e.add(self.coded(u.value, t, env), plus), u.value, t, width)
            try:
                self.store(new, u.var, at, width, value, cond)
            except NoCode as error:
                file, line = action.loc
                raise UserError(f"{short(file)}:{line}: {u.var} {error}") from None
        return new

    def wrong(self, action: Action, env: Env) -> list[tuple[str, Bit]]:
        """When a value assigned leaves its type, by variable, or cannot be computed, by ""."""
        lay, e = self.layout, self.e
        types = {n: limited(t) for n, t in lay.vars.items()}
        needs = [n.defined for n in action.needs if n.after == len(action.guard)]
        wrong = [("", e.not_(self.truth(d, env))) for d in needs if lay.visible(d)]
        wrong += [(n, e.not_(self.truth(f, env))) for n, f in action.typed(types)]
        return [(n, b) for n, b in wrong if b is not False]

    def store(self, words: Words, var: str, at: Num, width: int, value: Num, cond: Bit) -> None:
        e, p = self.e, self.layout.place[var]
        if width == 0:
            return
        i, b = divmod(p.offset, WORD)
        if isinstance(at, int):
            if not 0 <= at <= p.width - width:
                return  # no such key: the action is undefined there
            i, b = divmod(p.offset + at, WORD)
            if b + width <= WORD:
                words[i] = e.choose(cond, e.paste(words[i], b, width, value, WORD), words[i])
                return
        elif b + p.width <= WORD:
            words[i] = e.choose(cond, e.paste(words[i], e.add(at, b), width, value, WORD), words[i])
            return
        i, n = p.offset // WORD, -(-p.width // WORD)
        whole = e.paste(e.joined(words, p.offset, p.width), at, width, value, n * WORD)
        for k in range(n):
            part = e.resize(e.shift("lshr", whole, k * WORD, n * WORD), WORD)
            if isinstance(part, int):
                part &= ALL
            words[i + k] = e.choose(cond, part, words[i + k])


def limited(t: T) -> T:
    """The type with a limit for every number: beyond it a search says that it ends. A record's fields have theirs."""
    match t.kind:
        case "range" if t.hi is None:
            return make("range", lo=t.lo, hi=UNBOUNDED)
        case "option" | "set" | "seq":
            return make(t.kind, elem=limited(t.item), hi=t.hi, nonempty=t.nonempty)
        case "map":
            return make("map", elem=limited(t.item), key=t.domain)
    return t


def _at(x: Expr) -> str:
    """Where it stands, for an error."""
    return f"{short(x.loc[0])}:{x.loc[1]}: " if x.loc is not None else ""


def _total(x: Expr) -> bool:
    """Is x read from a variable through keys and fields alone, so that it is always a value of its type?"""
    while x.op in ("idx", "field"):
        x = x.args[0]
    return x.op in ("var", "nextvar")


def records(action: Action) -> dict[Expr, Expr]:
    """The parameters that are records of a variable's set, each with the set."""
    return {p: action.drawn[p.aux] for p in action.params if p.aux in action.drawn and p.t.kind == "rec"}


def valuations(layout: Layout, params: Mapping[str, T], loc: tuple[str, int]) -> list[dict[str, int]]:
    """Every way to choose the parameters of what stands there, the last one fastest. Raises UserError where there are
    too many."""
    out: list[dict[str, int]] = [{}]
    for name, t in params.items():
        values = layout.values(t)
        if len(out) * len(values) > MOST_VALUES:
            names = ", ".join(name_of(n) for n in params)
            many = f"more than {MOST_VALUES:,} ways at these sizes, each of which is looked at"
            fail(*loc, f"{names} can be chosen in {many}")
        out = [{**env, name: v} for env in out for v in values]
    return out
