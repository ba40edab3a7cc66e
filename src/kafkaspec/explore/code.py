"""From a model's graph to code: guards, effects and claims over bit fields.

Quantifiers and parameters are unrolled, so most keys are constants and most reads are a shift and a mask. A value that
is assigned where it might not fit is checked ("type of x"); where its form shows that it fits, nothing is emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafkaspec.errors import UserError
from kafkaspec.explore.emit import ALL, WORD, Bit, Emitter, Num, Wire, Words, high, low
from kafkaspec.explore.layout import Layout
from kafkaspec.language.expr import Expr, show
from kafkaspec.language.model import Action
from kafkaspec.language.types import T

Env = dict[str, Num]


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
    """Evaluates expressions on the words of a state. `checks` collects, by claim, when a value does not fit."""

    def __init__(self, layout: Layout, emitter: Emitter, before: Words, after: Words | None = None) -> None:
        self.layout, self.e = layout, emitter
        self.before, self.after = before, after
        self.memo: list[dict[tuple[object, ...], object]] = [{}]
        self.checks: list[Bit] | None = None
        self._partial: dict[int, bool] = {}
        self.asks_nonempty = True

    # ---- scopes: what is computed under a branch is known only there
    def enter(self) -> None:
        self.e.known.append({})
        self.memo.append({})

    def leave(self) -> None:
        self.e.known.pop()
        self.memo.pop()

    def _once(self, what: str, x: Expr, env: Env, compute: Callable[[Expr, Env], object], *more: object) -> object:
        checks = self.checks
        if checks is not None and what == "code":
            return compute(x, env)
        key = (what, x.id, *more, *[env[n] for n in sorted(x.free)])
        for scope in self.memo:
            if key in scope:
                return scope[key]
        self.checks = None
        r = self.memo[-1][key] = compute(x, env)
        self.checks = checks
        return r

    # ---- places
    def source(self, x: Expr, env: Env) -> Source | None:
        """Where x can be read in place; None if it must be computed."""
        lay, e = self.layout, self.e
        if x.op in ("var", "nextvar"):
            if x.aux not in lay.place:
                raise UserError(f"{lay.model.name}: {show(x)} is a ghost: it is read where the ghosts are left out")
            p = lay.place[x.aux]
            words = self.before if x.op == "var" else self.after
            assert words is not None
            return Source(0, words, p.offset, p.width, 0, p.width)
        if x.op not in ("idx", "at", "field", "get"):
            return None
        a = x.args[0]
        if x.op == "get":
            return None
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
        """The code of x as type t lies."""
        r = self._once("code", x, env, lambda x, env: self._coded(x, t, env), id(t))
        return r  # type: ignore[return-value]

    def _coded(self, x: Expr, t: T, env: Env) -> Num:
        lay, e, a = self.layout, self.e, x.args
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
                return e.choose(c, self.guarded(c, a[1], t, env), self.guarded(e.not_(c), a[2], t, env))
            case "none" | "empty" | "emptyseq":
                return self.nonempty(0, t)
            case "some":
                return e.add(self.coded(a[0], t.item, env), 1)
            case "full":
                return (1 << lay.width(t)) - 1
            case "with" | "without":
                i = self.position(a[1], t.item, env)
                self.inside_domain(i, lay.width(t))
                b = e.shift("shl", 1, i, self.room(t))
                s0 = self.members(a[0], t, env)
                if x.op == "with":
                    return e.either(s0, b)
                every = (1 << lay.width(t)) - 1
                return self.nonempty(e.both(s0, e._pair("xor", b, every, every)), t)
            case "union":
                return e.either(self.members(a[0], t, env), self.members(a[1], t, env))
            case "inter":
                return self.nonempty(e.both(self.members(a[0], t, env), self.members(a[1], t, env)), t)
            case "diff":
                every = (1 << lay.width(t)) - 1
                other = e._pair("xor", self.members(a[1], t, env), every, every)
                return self.nonempty(e.both(self.members(a[0], t, env), other), t)
            case "setof":
                return self.recode(self.collected(x, env), x.t, t)
            case "rec":
                r: Num = 0
                for i, (y, (_, ft)) in enumerate(zip(a, t.fields, strict=True)):
                    r = e.either(r, e.shift("shl", self.coded(y, ft, env), lay.field(t, i), self.room(t)))
                return r
            case "mapof":
                r, w, first = 0, lay.width(t.item), lay.values(t.domain)
                for i, v in enumerate(first):
                    value = self.coded(a[1], t.item, {**env, a[0].aux: v})
                    r = e.either(r, e.shift("shl", value, i * w, self.room(t)))
                return r
            case "append":
                return self.appended(x, t, env)
            case "take" | "drop":
                return self.sliced(x, t, env)
        raise AssertionError(f"no code for {x.op}")

    def room(self, t: T) -> int:
        """The bits of the number that holds a code of type t."""
        return max(1, -(-self.layout.width(t) // WORD)) * WORD

    def guarded(self, c: Bit, x: Expr, t: T, env: Env) -> Num:
        """The code of x, whose checks count only where c holds."""
        if self.checks is None:
            return self.coded(x, t, env)
        outer, self.checks = self.checks, []
        r = self.coded(x, t, env)
        inner, self.checks = self.checks, outer
        self.checks += [self.e.and_(c, k) for k in inner]
        return r

    def fit(self, v: Num, t: T) -> Num:
        """A number's code in type t; checked unless it must fit."""
        lo, hi = self.layout.stored(t)
        if self.checks is not None:
            self.check(self.e.compare("slt", v, lo))
            self.check(self.e.compare("slt", hi, v))
        code = self.e.sub(v, self.layout.bias(t))
        if isinstance(code, Wire) and (code.lo < 0 or code.hi > hi - self.layout.bias(t)):
            code = Wire(code.name, code.bits, 0, (1 << self.layout.width(t)) - 1)
        return code

    def check(self, wrong: Bit) -> None:
        if self.checks is not None and wrong is not False:
            self.checks.append(wrong)

    def inside_domain(self, i: Num, size: int) -> None:
        """A key or an element that is assigned must be one."""
        self.check(self.e.compare("slt", i, 0))
        self.check(self.e.compare("sle", size, i))

    def nonempty(self, code: Num, t: T) -> Num:
        if t.kind == "set" and t.nonempty and self.asks_nonempty:
            self.check(self.e.compare("eq", code, 0))
        return code

    def members(self, x: Expr, t: T, env: Env) -> Num:
        """The elements of a set, as bits of the set type t. That a set on the way may never be empty is not asked."""
        asked, self.asks_nonempty = self.asks_nonempty, False
        if x.op in ("empty", "full", "with", "without", "union", "inter", "diff"):
            r = self.coded(x, t, env)
        else:
            r = self.recode(self.own(x, env), x.t, t)
        self.asks_nonempty = asked
        return r

    def recode(self, v: Num, a: T, b: T) -> Num:
        """The code of a value of type a as type b lies."""
        lay, e = self.layout, self.e
        if a.kind == "set" and b.nonempty and not a.nonempty:
            self.nonempty(v, b)
        if lay.alike(a, b):
            return v
        if a.kind in ("range", "int"):
            return self.fit(e.add(v, lay.bias(a)), b)
        if a.kind == "option":
            inner = self.recode(e.sub(v, 1), a.item, b.item)
            return e.choose(e.compare("eq", v, 0), 0, e.add(inner, 1))
        if a.kind == "set":
            d = lay.limits(a.item)[0] - lay.limits(b.item)[0]
            bits = max(self.room(a), self.room(b))
            return e.shift("shl", v, d, bits) if d >= 0 else e.shift("lshr", v, -d, bits)
        r: Num = 0
        if a.kind == "map":
            wa, wb = lay.width(a.item), lay.width(b.item)
            for i in range(lay.size(b.domain)):
                r = e.either(r, e.shift("shl", self.recode(e.cut(v, i * wa, wa), a.item, b.item), i * wb, self.room(b)))
            return r
        if a.kind == "seq":
            ca, cb = lay.cells(a), lay.cells(b)
            n = self.length_of(v, a)
            self.check(e.compare("slt", cb.most, n))
            r = n if cb.length else 0
            for i in range(min(ca.most, cb.most)):
                cell = e.cut(v, ca.length + i * ca.width, ca.width)
                checks, self.checks = self.checks, None
                item = e.add(self.recode(e.sub(cell, ca.plus), a.item, b.item), cb.plus)
                self.checks = checks
                item = e.choose(e.compare("slt", i, n), item, 0)
                r = e.either(r, e.shift("shl", item, cb.length + i * cb.width, self.room(b)))
            return r
        raise AssertionError(f"{a!r} as {b!r}")

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

    def appended(self, x: Expr, t: T, env: Env) -> Num:
        lay, e, a = self.layout, self.e, x.args
        c, n = lay.cells(t), self.room(t)
        q = self.coded(a[0], t, env)
        size = self.length(a[0], env) if lay.alike(a[0].t, t) else self.length_of(q, t)
        self.check(e.compare("sle", c.most, size))
        item = e.add(self.coded(a[1], t.item, env), c.plus)
        at = e.add(e.times(size, c.width), c.length)
        q = e.either(q, e.shift("shl", item, at, n))
        if not c.length:
            return q
        return e.either(e.both(q, ((1 << n) - 1) & ~((1 << c.length) - 1)), e.add(size, 1))

    def sliced(self, x: Expr, t: T, env: Env) -> Num:
        lay, e, a = self.layout, self.e, x.args
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
            cells = e.both(cells, e._pair("xor", keep, (1 << n) - 1, (1 << n) - 1))
            left = e.choose(e.compare("slt", k, size), k, size) if c.length else 0
        return e.either(e.shift("shl", cells, c.length, n), left)

    def twice(self, op: str, a: Num, k: Num, width: int, bits: int) -> Num:
        if high(k) * width < bits:
            return self.e.shift(op, a, self.e.times(k, width), bits)
        half = width // 2
        return self.e.shift(op, self.e.shift(op, a, self.e.times(k, half), bits), self.e.times(k, width - half), bits)

    def collected(self, x: Expr, env: Env) -> Num:
        e, r = self.e, 0
        v, cond = x.args
        for i, value in enumerate(self.layout.values(v.t)):
            bit = e.number(self.truth(cond, {**env, v.aux: value}))
            r = e.either(r, e.shift("shl", bit, i, self.room(x.t)))  # type: ignore[assignment]
        return r

    # ---- numbers
    def number(self, x: Expr, env: Env) -> Num:
        r = self._once("number", x, env, self._number)
        return r  # type: ignore[return-value]

    def _number(self, x: Expr, env: Env) -> Num:
        lay, e, a = self.layout, self.e, x.args
        r: Num = 0
        match x.op:
            case "const":
                return int(x.aux)
            case "size":
                return int(lay.sizes[x.aux])
            case "bound":
                return env[x.aux]
            case "add":
                return e.add(self.number(a[0], env), self.number(a[1], env))
            case "sub":
                return e.sub(self.number(a[0], env), self.number(a[1], env))
            case "ite":
                c = self.truth(a[0], env)
                if isinstance(c, bool):
                    return self.number(a[1] if c else a[2], env)
                return e.choose(c, self.number(a[1], env), self.number(a[2], env))
            case "len":
                return self.length(a[0], env)
            case "card":
                return e.popcount(self.own(a[0], env))
            case "count":
                for v in lay.values(a[0].t):
                    r = e.add(r, e.number(self.truth(a[1], {**env, a[0].aux: v})))
                return r
            case "greatest" | "least":
                r = self.number(a[2], env)
                values = lay.values(a[0].t)
                for v in values if x.op == "greatest" else reversed(values):
                    r = e.choose(self.truth(a[1], {**env, a[0].aux: v}), v, r)
                return r
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
            case "subset":
                t = self.wider(a[0].t, a[1].t)
                s, u = self.members(a[0], t, env), self.members(a[1], t, env)
                return e.compare("eq", e.both(s, u), s)
            case "forall" | "exists":
                all_ = x.op == "forall"
                r = all_
                for v in lay.values(a[0].t):
                    r = (e.and_ if all_ else e.or_)(r, self.truth(a[1], {**env, a[0].aux: v}))
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

    def wider(self, a: T, b: T) -> T:
        """Of two types of one shape, the one that holds the values of both."""
        try:
            return a if self.layout.width(a) >= self.layout.width(b) else b
        except UserError:
            return b if a.kind == "option" and a.item.kind == "int" else a

    def equal(self, x: Expr, y: Expr, env: Env) -> Bit:
        e = self.e
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
        t = self.wider(x.t, y.t)
        checks, self.checks = self.checks, None
        r = e.compare("eq", self.coded(x, t, env), self.coded(y, t, env))
        self.checks = checks
        return r

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
            case "ite":
                c = self.truth(x.args[0], env)
                return self.e.choose(c, self.inside(x.args[1], env), self.inside(x.args[2], env))
        return self.e.add(self.e.sub(self.own(x, env), 1), self.layout.bias(x.t.item))

    def contained(self, x: Expr, s: Expr, env: Env) -> Bit:
        lay, e = self.layout, self.e
        if s.op == "setof" and s.args[0].t is x.t:
            value = self.number(x, env) if x.t.numeric else self.own(x, env)
            return self.truth(s.args[1], {**env, s.args[0].aux: value})
        i = self.position(x, s.t.item, env)
        members = self.own(s, env)
        n = lay.size(s.t.item)
        inside = e.and_(e.compare("sle", 0, i), e.compare("slt", i, n))
        bit = e.both(e.shift("lshr", members, i, self.room(s.t)), 1)
        return e.and_(inside, e.not_(e.compare("eq", bit, 0)))

    # ---- definedness: what plain Python would stumble over
    def partial(self, x: Expr) -> bool:
        """Does x index a sequence or unwrap an option anywhere?"""
        known = self._partial.get(x.id)
        if known is None:
            known = self._partial[x.id] = x.op in ("at", "get") or any(map(self.partial, x.args))
        return known

    def defined(self, x: Expr, env: Env) -> Bit:
        """Can x be evaluated, from left to right, without indexing beyond a sequence's end or unwrapping None?"""
        if not self.partial(x):
            return True
        r = self._once("defined", x, env, self._defined)
        return r  # type: ignore[return-value]

    def _defined(self, x: Expr, env: Env) -> Bit:
        e, a = self.e, x.args
        match x.op:
            case "and" | "or":
                return self._in_turn(x.op == "and", [(y, env) for y in a])
            case "forall" | "exists":
                every = [(a[1], {**env, a[0].aux: v}) for v in self.layout.values(a[0].t)]
                return self._in_turn(x.op == "forall", every)
            case "ite":
                branches = e.choose_bit(self.truth(a[0], env), self.defined(a[1], env), self.defined(a[2], env))
                return e.and_(self.defined(a[0], env), branches)
            case "greatest" | "least" | "count" | "setof" | "mapof":
                r: Bit = all_defined(e, [self.defined(y, env) for y in a[2:]])
                for v in self.layout.values(a[0].t):
                    r = e.and_(r, self.defined(a[1], {**env, a[0].aux: v}))
                return r
        r = all_defined(e, [self.defined(y, env) for y in a])
        if x.op == "at":
            i = self.number(a[1], env)
            inside = e.and_(e.compare("sle", 0, i), e.compare("slt", i, self.length(a[0], env)))
            return e.and_(r, inside)
        return e.and_(r, e.not_(self.absent(a[0], env))) if x.op == "get" else r

    def _in_turn(self, go_on: bool, parts: list[tuple[Expr, Env]]) -> Bit:
        """Are these defined, one after the other, as long as each is `go_on`?"""
        e = self.e
        r: Bit = True
        reached: Bit = True
        for x, env in parts:
            r = e.and_(r, e.or_(e.not_(reached), self.defined(x, env)))
            value = self.truth(x, env)
            reached = e.and_(reached, value if go_on else e.not_(value))
        return r

    # ---- effects
    def next_words(self, action: Action, env: Env) -> tuple[Words, list[tuple[str, Bit]]]:
        """The words of the state after, and when a value assigned leaves its type, by variable, or cannot be computed,
        by ""."""
        lay, e = self.layout, self.e
        new: Words = list(self.before)
        wrong: list[tuple[str, Bit]] = []
        for u in action.updates:
            if u.var not in lay.place:
                continue
            cond = self.truth(u.cond, env)
            if cond is False:
                continue
            wrong.append(("", e.not_(self.defined(u.cond, env))))
            for x in (*u.keys, u.value):
                wrong.append(("", e.and_(cond, e.not_(self.defined(x, env)))))
            t, at = lay.vars[u.var], 0
            self.checks = []
            for k in u.keys:
                i = self.position(k, t.domain, env)
                self.inside_domain(i, lay.size(t.domain))
                at = e.add(at, e.times(i, lay.width(t.item)))  # type: ignore[assignment]
                t = t.item
            value = self.coded(u.value, t, env)
            for bad in self.checks:
                wrong.append((u.var, e.and_(cond, bad)))
            self.checks = None
            self.store(new, u.var, at, lay.width(t), value, cond)
        return new, [(n, b) for n, b in wrong if b is not False]

    def store(self, words: Words, var: str, at: Num, width: int, value: Num, cond: Bit) -> None:
        e, p = self.e, self.layout.place[var]
        if width == 0:
            return
        i, b = divmod(p.offset, WORD)
        if isinstance(at, int):
            if not 0 <= at <= p.width - width:
                return  # no such key: `inside_domain` says so
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


def all_defined(e: Emitter, parts: list[Bit]) -> Bit:
    r: Bit = True
    for p in parts:
        r = e.and_(r, p)
    return r


def _total(x: Expr) -> bool:
    """Is x read from a variable through keys and fields alone, so that it is always a value of its type?"""
    while x.op in ("idx", "field"):
        x = x.args[0]
    return x.op in ("var", "nextvar")


def valuations(layout: Layout, params: Mapping[str, T]) -> list[dict[str, int]]:
    """Every way to choose the parameters, the last one fastest."""
    out: list[dict[str, int]] = [{}]
    for name, t in params.items():
        values = layout.values(t)
        out = [{**env, name: v} for env in out for v in values]
    return out
