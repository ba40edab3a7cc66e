"""Random models as Python text: every type and form of the language in random combination.

A seed gives one text. Most texts are well typed; what they compute may still be undefined, leave its type, or break a
claim: that is decided by running the text as it stands (`language.concrete`), and every engine must say the same.
`risk` is how often a partial operation (an index, the value of an option, a key, the greatest of nothing) stands
without a guard, and how often a value is assigned that need not fit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.gate.schema import BOOL, NUM, Schema, Ty, fits, option_of, set_of, shape, state_schema

Effects = list[str]


class Impossible(Exception):
    """There is no expression of that type here."""


INDENT = "    "
TIMES = ("* 2", "* 3", "// 2", "% 2", "// 3", "% 3", "* 0")


@dataclass(frozen=True)
class Model:
    """A text, and the sizes at which it is compared."""

    seed: int
    text: str
    sizes: tuple[dict[str, int | bool], ...]
    only: tuple[str, ...] = ()
    """What is compared, where not everything need be."""


@dataclass
class Helper:
    """A method with @define: what it takes, what it returns, and whether it is more than a value."""

    name: str
    params: list[tuple[str, Ty]]
    result: Ty
    acts: bool
    lines: list[str] = field(default_factory=list)


class Writer:
    """Writes expressions, effects and claims over a schema. `scope` holds the names that are bound, innermost last."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.schema: Schema = state_schema(self.r)
        self.risk = self.r.choice((0.0, 0.0, 0.0, 0.04, 0.15))
        self.claim_risk = self.r.choice((0.0, 0.1, 0.3))
        self.scope: list[tuple[str, Ty]] = []
        self.before = ["s"]
        self.readable: set[str] | None = None
        self.helpers: list[Helper] = []
        self.count = 0

    # ---- choices
    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def bare(self) -> bool:
        """May a partial operation stand without its guard here?"""
        return self.chance(self.risk)

    def one(self, *ways: Callable[[], str]) -> str:
        """One of the ways, of those that are possible."""
        left = list(ways)
        while left:
            way = left.pop(self.r.randrange(len(left)))
            depth = len(self.scope)
            try:
                return way()
            except Impossible:
                del self.scope[depth:]
        raise Impossible

    def name(self, prefix: str) -> str:
        if self.chance(0.06) and self.scope:
            return self.r.choice(self.scope)[0]  # an inner name hides an outer one
        self.count += 1
        return f"{prefix}{self.count}"

    @contextmanager
    def bound(self, name: str, t: Ty) -> Any:
        self.scope.append((name, t))
        try:
            yield
        finally:
            self.scope.pop()

    def visible(self) -> list[tuple[str, Ty]]:
        """Names in scope; a hidden one is not."""
        return list({n: (n, t) for n, t in self.scope}.values())

    # ---- places that hold a value: variables, names, and what lies in them
    def roots(self) -> list[tuple[str, Ty]]:
        out = self.visible()
        for s in self.before:
            for n, t in self.schema.vars.items():
                if n in self.schema.ghosts and self.readable != {"ghosts"}:
                    continue
                if self.readable is None or self.readable == {"ghosts"} or n in self.readable:
                    out.append((f"{s}.{n}", t))
        return out

    def routes(self, t: Ty, want: Ty, depth: int = 3) -> list[tuple[Any, ...]]:
        """Ways from a value of type t to one that fits `want`: steps key, index, field, value."""
        out: list[tuple[Any, ...]] = [()] if fits(want, t) else []
        if depth == 0:
            return out
        match t.kind:
            case "map":
                out += [("key", *w) for w in self.routes(t.item, want, depth - 1)]
            case "seq":
                out += [("index", *w) for w in self.routes(t.item, want, depth - 1)]
            case "rec":
                for n, f in t.fields:
                    out += [(("field", n, f), *w) for w in self.routes(f, want, depth - 1)]
            case "option":
                out += [("value", *w) for w in self.routes(t.item, want, depth - 1) if w or want.kind != "option"]
        return out

    def path(self, want: Ty, d: int) -> str | None:
        """A place that holds a value for `want`, with a guard where the way to it is partial; None if there is none."""
        ways = [(n, t, w) for n, t in self.roots() for w in self.routes(t, want)]
        if not ways:
            return None
        short = [w for w in ways if len(w[2]) <= 1] or ways
        text, t, way = self.r.choice(short if self.chance(0.5) else ways)
        guards: list[str] = []
        for i, step in enumerate(way):
            match step:
                case "key":
                    text, t = f"{text}[{self.key(t.domain, d - 1)}]", t.item
                case "index":
                    at = self.one(
                        lambda: str(self.r.randrange(2)),
                        lambda text=text: f"len({text}) - 1",  # type: ignore[misc]
                        lambda: self.number(min(d - 1, 1)),
                    )
                    guards.append(f"0 <= {at} < len({text})" if not at.isdigit() else f"len({text}) > {at}")
                    text, t = f"{text}[{at}]", t.item
                case "value":
                    if i == len(way) - 1 and t.item.kind == "bool":
                        return None  # an option of bool is no condition
                    guards.append(f"{text} is not None")
                    t = t.item
                case _:
                    text, t = f"{text}.{step[1]}", step[2]
        if not guards or self.bare():
            return text
        asked = " and ".join(guards)
        if want.kind == "bool" and self.chance(0.5):
            return f"({asked} and {text})"
        return f"({text} if {asked} else {self.leaf(want)})"

    def key(self, t: Ty, d: int) -> str:
        """A map's key."""
        if d < 0:
            return self.leaf(t)
        if t.kind != "range" or self.bare():
            return self.expr(NUM if t.kind == "range" else t, d)
        inside = [n for n, b in self.visible() if b == t]
        if inside and self.chance(0.7):
            return self.r.choice(inside)
        return self.one(lambda: t.lo, lambda: t.hi, lambda: f"max({t.lo}, min({t.hi}, {self.number(d)}))")

    # ---- values
    def leaf(self, t: Ty) -> str:
        """A short value of that type that is always defined."""
        match t.kind:
            case "bool":
                return self.r.choice(("True", "False", *self.schema.flags))
            case "num":
                return self.r.choice(("0", "1", "2", "(-1)", *self.schema.size_names))
            case "range":
                return self.r.choice((t.lo, t.hi))
            case "enum":
                return f"{t.name}.{self.r.choice(t.members)}"
            case "sort":
                named = [n for n, b in self.visible() if b == t]
                whole = [f"{s}.{n}" for s in self.before for n, b in self.schema.vars.items() if b == t]
                if self.readable is not None and self.readable != {"ghosts"}:
                    whole = []
                if not named and not whole:
                    raise Impossible
                return self.r.choice(named or whole)
            case "option":
                return "None" if self.chance(0.3) else self.leaf(t.item)
            case "set" if t.item.kind == "rec":
                return "set()"
            case "set":
                if t.item.kind == "sort" and self.chance(0.5):
                    return f"set({t.item.name})"
                return f"{{{self.leaf(t.item)}}}" if t.nonempty or self.chance(0.5) else "set()"
            case "seq":
                return "[]" if self.chance(0.5) else f"[{self.leaf(t.item)}]"
            case "rec":
                return f"{t.name}({', '.join(f'{n}={self.leaf(f)}' for n, f in t.fields)})"
            case "map":
                if t.domain.kind == "bool":
                    raise Impossible
                x = self.name("k")
                with self.bound(x, t.domain):
                    return f"{{{x}: {self.leaf(t.item)} for {x} in {t.domain.domain_text}}}"
        raise AssertionError(t.kind)

    def expr(self, t: Ty, d: int) -> str:
        """An expression for type t."""
        if t.kind in ("num", "range"):
            return self.number(d)
        if t.kind == "bool":
            return self.truth(d)
        if d <= 0 or self.chance(0.25):
            return self.path(t, d) or self.leaf(t)
        if self.chance(0.12):
            return f"({self.expr(t, d - 1)} if {self.truth(d - 1)} else {self.expr(t, d - 1)})"
        called = self.called(t, d)
        if called and self.chance(0.3):
            return called
        match t.kind:
            case "set":
                return self.members(t, d)
            case "seq":
                return self.sequence(t, d)
            case "option":
                return self.one(
                    lambda: "None", lambda: self.expr(t.item, d - 1), lambda: self.path(t, d) or "None",
                    lambda: f"({self.expr(t.item, d - 1)} if {self.truth(d - 1)} else None)",
                )  # fmt: skip
            case "rec":
                whole = self.path(t, d)
                n, f = self.r.choice(t.fields)
                if whole and self.chance(0.6):
                    return f"replace({whole}, {n}={self.inside(f, d - 1)})"
                return f"{t.name}({', '.join(f'{n}={self.inside(f, d - 1)}' for n, f in t.fields)})"
            case "map" if t.domain.kind != "bool" and self.chance(0.5):
                x = self.name("k")
                with self.bound(x, t.domain):
                    return f"{{{x}: {self.expr(t.item, d - 1)} for {x} in {t.domain.domain_text}}}"
        return self.path(t, d) or self.leaf(t)

    def called(self, t: Ty, d: int) -> str | None:
        """A call of a helper that returns such a value and does nothing else."""
        known = [h for h in self.helpers if not h.acts and shape(h.result) == shape(t)]
        return self.call(self.r.choice(known), d) if known and self.before == ["s"] else None

    def call(self, h: Helper, d: int) -> str:
        return f"s.{h.name}({', '.join(self.expr(t, min(d - 1, 1)) for _, t in h.params)})"

    # ---- domains of comprehensions
    def domain(self, d: int, numbers: bool = False) -> tuple[str, Ty]:
        """What a comprehension runs over, and the type of its elements."""
        ways: list[Callable[[], tuple[str, Ty] | None]] = [
            lambda: self.span(d), lambda: self.collection("set", d, numbers),
            lambda: self.collection("seq", d, numbers),
        ]  # fmt: skip
        if not numbers:
            kinds = [*self.schema.sorts, *self.schema.enums]
            ways += [lambda: (t.name, t) if (t := self.r.choice(kinds)) else None] * 2
        while True:
            found = self.r.choice(ways)()
            if found is not None:
                return found

    def span(self, d: int) -> tuple[str, Ty]:
        n = self.r.choice(self.schema.size_names) if self.schema.size_names else "2"
        lo, hi = self.r.choice(
            (("0", "3"), ("1", "3"), ("(-1)", "2"), ("0", f"{n} + 1"), (f"{n} - 1", f"{n} + 2"), ("2", "2"), ("3", "1"))
        )
        if d > 0 and self.chance(0.3):
            lo = self.r.choice((lo, self.small(d - 1)))
            hi = self.r.choice((hi, self.small(d - 1)))
        return f"range({lo}, {hi})", Ty("range", lo=lo, hi=f"{hi} - 1")

    def small(self, d: int) -> str:
        """A number whose limits can be told."""
        held = [n for n, t in self.roots() if t.kind == "range"]
        return self.r.choice([*held, *[f"len({n})" for n, t in self.roots() if t.kind == "seq"], "1"])

    def collection(self, kind: str, d: int, numbers: bool) -> tuple[str, Ty] | None:
        every = [t for _, r in self.roots() for t in (r, r.elem) if t is not None and t.kind == kind]
        if numbers:
            every = [t for t in every if t.item.kind == "range"]
        if not every:
            return None
        t = self.r.choice(every)
        text = self.path(t, d)
        return (text, t.item) if text else None

    def condition(self, d: int) -> str:
        return f" if {self.truth(d)}" if self.chance(0.5) else ""

    # ---- numbers
    def number(self, d: int) -> str:
        if d <= 0:
            return (self.path(NUM, 0) if self.chance(0.75) else None) or self.leaf(NUM)
        return self.one(
            lambda: self.path(NUM, d) or self.leaf(NUM),
            lambda: self.path(NUM, d) or self.leaf(NUM),
            lambda: f"({self.number(d - 1)} {self.r.choice('+-')} {self.number(d - 1)})",
            lambda: f"({self.number(d - 1)} {self.r.choice(TIMES)})",
            lambda: f"{self.extreme()}({self.number(d - 1)}, {self.number(d - 1)})",
            lambda: f"({self.number(d - 1)} if {self.truth(d - 1)} else {self.number(d - 1)})",
            lambda: self.counting(d),
            lambda: self.greatest(d),
            lambda: self.size(d),
            lambda: self.called(NUM, d) or self.leaf(NUM),
        )

    def extreme(self) -> str:
        return self.r.choice(("min", "max"))

    def size(self, d: int) -> str:
        kinds = [*self.schema.sorts, *self.schema.enums]
        held = [t for _, r in self.roots() for t in (r, r.elem) if t is not None and t.kind in ("set", "seq")]
        if held and self.chance(0.8):
            t = self.r.choice(held)
            text = self.members(t, d - 1) if t.kind == "set" else self.sequence(t, d - 1)
            if text not in ("set()", "[]") and text[0] not in "[{":
                return f"len({text})"
        return f"len({self.r.choice(kinds).name})" if kinds else "1"

    def counting(self, d: int) -> str:
        text, t = self.domain(d - 1)
        x = self.name("x")
        with self.bound(x, t):
            what = "1" if self.chance(0.5) else self.number(d - 1)
            return f"sum({what} for {x} in {text}{self.condition(d - 1)})"

    def greatest(self, d: int) -> str:
        text, t = self.domain(d - 1, self.chance(0.7))
        x, f = self.name("x"), self.extreme()
        with self.bound(x, t):
            what = x if t.kind == "range" and self.chance(0.6) else self.number(d - 1)
            asked = self.truth(d - 1) if self.chance(0.5) else "True"
        over = f"for {x} in {text}" + (f" if {asked}" if asked != "True" else "")
        if self.chance(0.6):
            return f"{f}(({what} {over}), default={self.number(d - 1)})"
        whole = f"{f}({what} {over})"
        return whole if self.bare() else f"({whole} if any({asked} for {x} in {text}) else {self.number(d - 1)})"

    # ---- sets and sequences
    def members(self, t: Ty, d: int) -> str:
        if d <= 0:
            return self.path(t, d) or self.leaf(t)
        plain = set_of(t.item)
        return self.one(
            lambda: self.path(plain, d) or self.leaf(t),
            lambda: f"({self.members(plain, d - 1)} {self.r.choice('|&-')} {self.members(plain, d - 1)})",
            lambda: f"({self.path(plain, d - 1) or self.leaf(t)} {self.r.choice('|-')} {{{self.expr(t.item, d - 1)}}})",
            lambda: f"({self.members(plain, d - 1)} if {self.truth(d - 1)} else {self.members(plain, d - 1)})",
            lambda: self.filtered(t, d),
            lambda: self.image(t, d),
        )

    def filtered(self, t: Ty, d: int) -> str:
        x = self.name("x")
        if t.item.kind in ("range", "num"):
            text, elem = self.domain(d - 1, numbers=True)
        elif t.item.kind == "bool":
            return self.image(t, d)
        elif t.item.kind == "rec":
            held = self.path(set_of(t.item), d - 1)
            if held is None:
                raise Impossible
            text, elem = held, t.item
        else:
            held = self.path(set_of(t.item), d - 1) if self.chance(0.4) else None
            text, elem = held or t.item.name, t.item
        with self.bound(x, elem):
            return f"{{{x} for {x} in {text}{self.condition(d - 1)}}}"

    def image(self, t: Ty, d: int) -> str:
        text, elem = self.domain(d - 1)
        x = self.name("x")
        with self.bound(x, elem):
            return f"{{{self.expr(t.item, d - 1)} for {x} in {text}{self.condition(d - 1)}}}"

    def sequence(self, t: Ty, d: int) -> str:
        held = self.path(t, d) or self.leaf(t)
        if d <= 0 or held[0] == "[":
            return held
        a = self.r.choice(("1", "0", "2", f"max(0, {self.number(d - 1)})"))
        if self.bare():
            a = self.number(d - 1)
        b = self.r.choice(("1", "2", f"max(0, {self.number(d - 1)})"))
        return self.one(
            lambda: held,
            lambda: f"{held}[{a}:]",
            lambda: f"{held}[:{b}]",
            lambda: f"{held}[{a}:{b}]",
            lambda: f"({held} + [{self.expr(t.item, d - 1)}])",
            lambda: f"({held} + {self.path(t, d - 1) or held})",
            lambda: f"({held} if {self.truth(d - 1)} else {self.path(t, d - 1) or held})",
        )

    # ---- truth
    def compared(self, d: int) -> str:
        """Two values of one type."""
        t = self.r.choice([t for _, t in self.roots()] or [BOOL])
        t = self.r.choice([t, *([t.item] if t.elem is not None else []), *[f for _, f in t.fields]])
        held = self.path(t, d - 1)
        if held is None or t.kind == "range":
            return f"({self.number(d - 1)} {self.r.choice(('==', '!='))} {self.number(d - 1)})"
        other = self.expr(t, d - 1)
        if t.kind == "set" and self.chance(0.4):
            return f"({held} <= {other})"
        return f"(({held}) {self.r.choice(('==', '!='))} ({other}))"

    def atom(self) -> str:
        """The shortest that can be said of a variable or a name."""
        text = self.said()
        return f"({text})" if " " in text else text

    def said(self) -> str:
        roots = self.roots()
        if not roots or self.chance(0.04):
            return self.leaf(BOOL)
        n, t = self.r.choice(roots)
        while t.kind == "map" and t.domain.kind != "sort":
            n, t = f"{n}[{self.leaf(t.domain)}]", t.item
        if t.kind == "rec":
            f, u = self.r.choice(t.fields)
            n, t = f"{n}.{f}", u
        match t.kind:
            case "bool":
                return n
            case "option":
                return f"{n} is {self.r.choice(('', 'not '))}None"
            case "num" | "range":
                return f"{n} {self.r.choice(('<', '==', '>', '!=', '<='))} {self.number(0)}"
            case "set":
                if t.item.kind != "sort" and self.chance(0.5):
                    return f"{self.leaf(t.item)} {self.r.choice(('in', 'not in'))} {n}"
                return f"len({n}) {self.r.choice(('<', '==', '>'))} {self.r.choice('0112')}"
            case "seq":
                return f"len({n}) {self.r.choice(('<', '==', '>'))} {self.r.choice('0112')}"
            case "enum":
                return f"{n} {self.r.choice(('==', '!='))} {self.leaf(t)}"
            case "sort":
                return f"({n}) {self.r.choice(('==', '!='))} ({self.leaf(t)})"
        return self.path(BOOL, 0) or self.leaf(BOOL)

    def truth(self, d: int) -> str:
        if d <= 0:
            return self.atom()
        return self.one(
            lambda: self.path(BOOL, d) or self.compared(d),
            lambda: f"(not {self.truth(d - 1)})",
            lambda: f"({self.truth(d - 1)} {self.r.choice(('and', 'or'))} {self.truth(d - 1)})",
            lambda: f"({self.truth(d - 1)} if {self.truth(d - 1)} else {self.truth(d - 1)})",
            lambda: f"({self.truth(d - 1)} {self.r.choice(('==', '!='))} ({self.truth(d - 1)}))",
            lambda: f"({self.number(d - 1)} {self.r.choice(('<', '<=', '>', '>='))} {self.number(d - 1)})",
            lambda: f"({self.number(d - 1)} <= {self.number(d - 1)} < {self.number(d - 1)})",
            lambda: self.compared(d),
            lambda: self.quantified(d),
            lambda: self.quantified(d),
            lambda: self.within(d),
            lambda: self.majority(d),
            lambda: self.called(BOOL, d) or self.leaf(BOOL),
        )

    def quantified(self, d: int) -> str:
        text, t = self.domain(d - 1)
        x, f = self.name("x"), self.r.choice(("all", "any"))
        with self.bound(x, t):
            if self.chance(0.2):
                inner, u = self.domain(0)
                y = self.name("y")
                with self.bound(y, u):
                    return f"{f}({self.truth(d - 1)} for {x} in {text} for {y} in {inner}{self.condition(0)})"
            return f"{f}({self.truth(d - 1)} for {x} in {text}{self.condition(d - 1)})"

    def within(self, d: int) -> str:
        """An element and a set, a sequence, or some values."""
        held = [t for _, r in self.roots() for t in (r, r.elem) if t is not None and t.kind in ("set", "seq")]
        sign = self.r.choice(("in", "not in"))
        if not held or self.chance(0.15):
            return f"({self.number(d - 1)} {sign} ({self.number(0)}, {self.number(0)}))"
        t = self.r.choice(held)
        whole = self.members(t, d - 1) if t.kind == "set" else self.path(t, d - 1) or "()"
        if whole == "()":
            return "True"
        return f"({self.expr(t.item, d - 1)} {sign} {whole})"

    def majority(self, d: int) -> str:
        t = self.r.choice(self.schema.sorts)
        held = self.path(set_of(t), d - 1)
        if held is None or self.chance(0.4):
            x = self.name("x")
            with self.bound(x, t):
                held = f"{{{x} for {x} in {t.name} if {self.truth(d - 1)}}}"
        return f"majority({held})"

    # ---- values that fit
    def moved(self, t: Ty, now: str) -> str:
        """A value near the one that is there, so that something happens."""
        match t.kind:
            case "bool":
                return self.one(lambda: f"not {now}", lambda: "True")
            case "range":
                return self.one(
                    lambda: f"({now} + 1 if {now} < {t.hi} else {t.lo})", lambda: f"min({t.hi}, {now} + 1)",
                    lambda: f"max({t.lo}, {now} - 1)", lambda: t.hi,
                )  # fmt: skip
            case "enum" | "sort":
                return self.leaf(t)
            case "option":
                return self.inside(t.item, 0)
            case "set" if t.bound:
                return f"({now} | {{{self.inside(t.item, 0)}}} if len({now}) < {t.bound} else {now})"
            case "set":
                sign = self.r.choice("||-") if not t.nonempty else "|"
                return f"{now} {sign} {{{self.inside(t.item, 0)}}}"
            case "seq":
                grown = f"{now} + [{self.inside(t.item, 0)}]"
                return self.r.choice((f"({grown} if len({now}) < {t.bound} else {now})", f"({grown})[:{t.bound}]"))
            case "rec":
                n, f = self.r.choice(t.fields)
                return f"replace({now}, {n}={self.moved(f, f'{now}.{n}')})"
            case "map" if t.domain.kind != "bool":
                x = self.name("k")
                with self.bound(x, t.domain):
                    return f"{{{x}: {self.moved(t.item, f'{now}[{x}]')} for {x} in {t.domain.domain_text}}}"
        raise Impossible

    def inside(self, t: Ty, d: int, current: str = "") -> str:
        """A value of type t; one that need not fit where risk is taken."""
        if self.bare():
            return self.expr(t, d)
        held: str | None
        if current and self.chance(0.5):
            return self.moved(t, current)
        match t.kind:
            case "range":
                same = [n for n, b in self.visible() if b == t]
                if same and self.chance(0.4):
                    return self.r.choice(same)
                return self.one(
                    lambda: f"max({t.lo}, min({t.hi}, {self.number(d)}))",
                    lambda: f"min({t.hi}, max({t.lo}, {self.number(d)}))",
                    lambda: self.leaf(t),
                )
            case "option":
                if self.chance(0.3):
                    return self.exact(t, d) or "None"
                return self.one(*[lambda: self.inside(t.item, d)] * 2, lambda: "None")
            case "set":
                return self.inside_set(t, d)
            case "seq":
                held = self.exact(t, d) or "[]"
                if held[0] == "[":
                    return f"[{self.inside(t.item, d - 1)}]"
                return self.one(
                    lambda: f"({held} + [{self.inside(t.item, d - 1)}])[:{t.bound}]",
                    lambda: f"{held}[1:]",
                    lambda: f"{held}[:1]",
                    lambda: f"({held} if len({held}) >= {t.bound} else {held} + [{self.inside(t.item, d - 1)}])",
                    lambda: f"({held} + {held}[1:])[:{t.bound}]",
                    lambda: f"{held}[1:2]",
                )
            case "map":
                held = self.exact(t, d)
                if held and (self.chance(0.3) or t.domain.kind == "bool"):
                    return held
                if t.domain.kind == "bool":
                    raise Impossible
                x = self.name("k")
                with self.bound(x, t.domain):
                    return f"{{{x}: {self.inside(t.item, d - 1)} for {x} in {t.domain.domain_text}}}"
            case "rec":
                held = self.exact(t, d)
                n, f = self.r.choice(t.fields)
                if held and self.chance(0.6):
                    return f"replace({held}, {n}={self.inside(f, d - 1)})" if self.chance(0.6) else held
                return f"{t.name}({', '.join(f'{n}={self.inside(f, d - 1)}' for n, f in t.fields)})"
        return self.expr(t, d)

    def exact(self, t: Ty, d: int) -> str | None:
        """A variable or a name of exactly that type."""
        same = [n for n, b in self.roots() if b == t]
        return self.r.choice(same) if same else None

    def messages(self, t: Ty, d: int) -> str:
        """A bounded set of records: what lies in it, with one more or fewer."""
        now = self.exact(t, d)
        if now is None:
            return self.r.choice(("set()", f"{{{self.inside(t.item, d - 1)}}}"))
        drawn = [n for n, b in self.visible() if b == t.item]
        x = self.name("m")

        def asked() -> str:
            with self.bound(x, t.item):
                return self.truth(d - 1)

        return self.one(
            lambda: self.moved(t, now), lambda: f"{{{x} for {x} in {now} if {asked()}}}",
            lambda: f"{now} - {{{self.r.choice(drawn) if drawn else self.inside(t.item, d - 1)}}}", lambda: "set()",
        )  # fmt: skip

    def inside_set(self, t: Ty, d: int) -> str:
        if t.bound:
            return self.messages(t, d)
        if t.item.kind == "range":
            x, lo, hi = self.name("x"), t.item.lo, t.item.hi
            held = self.exact(set_of(t.item), d) or "set()"

            def asked() -> str:
                with self.bound(x, t.item):
                    return self.condition(d - 1)

            text = self.one(
                lambda: f"{{{x} for {x} in range({lo}, {hi} + 1){asked()}}}",
                lambda: f"({held} | {{{self.inside(t.item, d - 1)}}})",
                lambda: f"({held} - {{{self.number(d - 1)}}})" if held != "set()" else "set()",
                lambda: f"{{{x} for {x} in {held}{asked()}}}" if held != "set()" else "set()",
            )
        else:
            text = self.members(set_of(t.item), d)
        return f"({text} | {{{self.inside(t.item, 0)}}})" if t.nonempty else text

    # ---- effects
    def place(self, d: int) -> tuple[str, Ty]:
        """Where something is assigned."""
        kept = [n for n in self.schema.vars if n not in self.schema.ghosts]
        n = self.r.choice(kept)
        t, text = self.schema.vars[n], f"s.next.{n}"
        value = f"s.{n}"
        while t.kind in ("map", "rec", "seq") and self.chance(0.75):
            match t.kind:
                case "map":
                    k = f"[{self.key(t.domain, d - 1)}]"
                    text, value, t = text + k, value + k, t.item
                case "rec":
                    f, u = self.r.choice(t.fields)
                    text, value, t = f"{text}.{f}", f"{value}.{f}", u
                case _:
                    at = self.r.choice(("0", "1"))
                    if not self.bare():
                        self.guards.append(f"len({value}) > {at}")
                    text, value, t = f"{text}[{at}]", f"{value}[{at}]", t.item
        return text, t

    guards: list[str]

    def assignment(self, d: int) -> Effects:
        self.guards = []
        text, t = self.place(d)
        lines = [f"{text} = {self.inside(t, d, text.replace('s.next.', 's.', 1))}"]
        if self.guards:
            asked = " and ".join(self.guards)
            if self.chance(0.5):
                return [f"require({asked})", *lines]
            return [f"if {asked}:", *[INDENT + x for x in lines]]
        return lines

    def ghost(self, d: int) -> Effects:
        n = self.r.choice(sorted(self.schema.ghosts))
        return [f"s.next.{n} = {self.inside(self.schema.vars[n], d)}"]

    def statement(self, d: int, nested: bool = False) -> Effects:
        while True:
            depth = len(self.scope)
            try:
                return self.written(d, nested)
            except Impossible:
                del self.scope[depth:]

    def written(self, d: int, nested: bool) -> Effects:
        kind = self.r.random()
        acting = [h for h in self.helpers if h.acts]
        if kind < 0.5:
            return self.assignment(d)
        if kind < 0.72 and d > 0:
            out = [f"if {self.condition_text(d - 1)}:", *self.block(d - 1)]
            if self.chance(0.3):
                out += [f"elif {self.truth(d - 1)}:", *self.block(d - 1)]
            if self.chance(0.5):
                out += ["else:", *self.block(d - 1)]
            return out
        if kind < 0.78:
            return [f"assert {self.truth(d)}"] if self.bare() else [self.requirement(d)]
        if kind < 0.92 and not nested:
            t = self.r.choice((BOOL, NUM, *[t for t in self.schema.vars.values() if t.kind in ("sort", "enum", "rec")]))
            value = self.expr(t, d)
            self.count += 1
            n = f"local{self.count}"
            if value in ("None",):
                return ["pass"]
            self.scope.append((n, t))
            return [f"{n} = {value}"]
        if acting:
            return [self.call(self.r.choice(acting), d)]
        return self.assignment(d)

    def condition_text(self, d: int) -> str:
        """The condition of an `if`: a helper may act in it."""
        acting = [h for h in self.helpers if h.acts]
        if acting and self.chance(0.4):
            call = self.call(self.r.choice(acting), d)
            return self.r.choice((call, f"{self.truth(d)} and {call}", f"{self.truth(d)} or {call}", f"not {call}"))
        return self.truth(d)

    def requirement(self, d: int) -> str:
        first = self.condition_text(d) if self.chance(0.2) else self.truth(d)
        return f"require({first})" if self.chance(0.6) else f"require({first}, {self.truth(d)})"

    def block(self, d: int) -> Effects:
        return [INDENT + x for _ in range(self.r.choice((1, 1, 2))) for x in self.statement(d, nested=True)]

    # ---- the parts of a model
    def tried(self, write: Callable[..., Any], *args: Any) -> Any:
        """A part; written again where it came to what is not possible."""
        for _ in range(100):
            kept = self.scope, self.readable, self.before, self.risk
            try:
                return write(*args)
            except Impossible:
                self.scope, self.readable, self.before, self.risk = kept
        raise AssertionError("no text can be written")

    def params(self, most: int, drawn: bool = False) -> list[tuple[str, Ty]]:
        kinds = [*self.schema.sorts, *self.schema.sorts, *self.schema.enums[:1], *self.schema.ranges, BOOL]
        kinds += [option_of(self.schema.sorts[0])]
        if drawn:
            held = [(n, t) for n, t in self.schema.vars.items() if t.kind == "set" and n not in self.schema.ghosts]
            some = [replace(t.item, drawn=n) for n, t in held]
            kinds += some + some * 3 * any(t.bound for _, t in held)
        names = ["p", "q", "i"]
        out: list[tuple[str, Ty]] = []
        while len(out) < self.r.randrange(most + 1):
            out.append((names[len(out)], self.r.choice(kinds)))
        return out

    def signature(self, params: Sequence[tuple[str, Ty]], result: str) -> str:
        return "".join(f", {n}: {t.text}" for n, t in params) + f") -> {result}:"

    def helper(self, i: int) -> Helper:
        acts = self.chance(0.5)
        held = [t for t in self.schema.vars.values() if t.kind in ("enum", "set", "seq")]
        result = BOOL if acts else self.r.choice((BOOL, NUM, *held))
        h = Helper(f"help{i}", [(f"a{n}", t) for n, t in self.params(2)], result, acts)
        self.scope = list(h.params)
        body: list[str] = []
        if acts:
            body = [x for _ in range(self.r.choice((1, 2))) for x in self.statement(1)]
        else:
            if self.chance(0.3):
                self.count += 1
                n = f"local{self.count}"
                body, self.scope = [f"{n} = {self.number(1)}"], [*self.scope, (n, NUM)]
        body.append(f"return {self.expr(result, 2)}")
        self.scope = []
        text = {"num": "int"}.get(result.kind, result.text)
        h.lines = ["@define", f"def {h.name}(s{self.signature(h.params, text)}", *[INDENT + x for x in body]]
        return h

    def initial(self) -> list[str]:
        """@initial: what has no first value is assigned; some other variables too."""
        need = [n for n, t in self.schema.vars.items() if t.needs_start]
        extra = [n for n, t in self.schema.vars.items() if n not in need and not t.over_bool and self.chance(0.25)]
        if not need and not extra:
            return []
        params: list[tuple[str, Ty]] = [(f"{t.name.lower()}0", t) for t in self.schema.sorts]
        if self.schema.ranges and self.chance(0.3):
            params.append(("i", self.r.choice(self.schema.ranges)))
        self.scope, self.readable = list(params), set()
        body = []
        if self.chance(0.3):
            body.append(f"require({self.truth(1)})")
        body += [f"s.next.{n} = {self.inside(self.schema.vars[n], 1)}" for n in [*need, *extra]]
        used = [(n, t) for n, t in params if any(n in line for line in body)]
        if self.chance(0.1):
            used = params
        self.scope, self.readable = [], None
        return ["@initial", f"def start(s{self.signature(used, 'None')}", *[INDENT + x for x in body]]

    def action(self, i: int) -> list[str]:
        params = self.params(2, drawn=True)
        self.scope = [(n, replace(t, drawn="")) for n, t in params]
        depth = self.r.choice((1, 2, 2, 3))
        body: list[str] = []
        if self.chance(0.5):
            body.append(f"require({self.truth(2)} or {self.truth(1)})" if self.chance(0.5) else self.requirement(1))
        for _ in range(self.r.choice((1, 1, 2, 3))):
            body += self.statement(depth)
        if self.schema.ghosts and self.chance(0.6):
            body += self.ghost(1)
        if not any("s.next" in x or "help" in x for x in body):
            body += self.assignment(depth)
        self.scope = []
        return ["@action()", f"def act{i}(s{self.signature(params, 'None')}", *[INDENT + x for x in body]]

    def claims(self) -> list[str]:
        out: list[str] = []
        self.risk, risk = self.claim_risk, self.risk
        if self.schema.ghosts:
            self.readable = {"ghosts"}
        for i in range(self.r.choice((3, 5, 7))):
            self.readable, self.risk = None, self.claim_risk if self.chance(0.05) else 0.0
            params = self.params(1) if self.chance(0.3) else []
            out += ["@witness", f"def seen{i}(s{self.signature(params, 'bool')}", *self.returned(params, 3), ""]
        self.risk = self.claim_risk
        for i in range(self.r.choice((1, 2))):
            self.readable = {"ghosts"} if self.schema.ghosts and self.chance(0.5) else None
            kind = self.r.choice(("invariant", "invariant", "lemma"))
            params = self.params(2) if self.chance(0.5) else []
            out += [f"@{kind}()", f"def holds{i}(s{self.signature(params, 'bool')}"]
            out += [*self.returned(params, 2, weak=self.chance(0.85)), ""]
        self.readable = None
        if self.chance(0.6):
            params = self.params(1)
            self.before = ["s", "s.next"]
            out += ["@step()", f"def moves(s{self.signature(params, 'bool')}"]
            out += [*self.returned(params, 2, weak=self.chance(0.8)), ""]
            self.before = ["s"]
        self.risk = risk
        return out

    def returned(self, params: list[tuple[str, Ty]], d: int, weak: bool = False) -> list[str]:
        """The body of a claim; a weak one is often true."""
        self.scope = list(params)
        if weak:
            text = self.one(
                lambda: " or ".join(self.truth(d) for _ in range(6)),
                lambda: self.by_type(),
                lambda: self.by_type(),
                lambda: f"({e}) or not ({e})" if (e := self.truth(d)) else "",
                lambda: f"({e}) == ({e})" if (e := self.number(d)) else "",
            )
        else:
            text = self.truth(d)
        self.scope = []
        return [f"{INDENT}return {text}"]

    def by_type(self) -> str:
        """What the types of variables say already."""
        out = ["True"]
        for n, t in self.schema.vars.items():
            if t.kind == "range":
                out.append(f"{t.lo} <= s.{n} <= {t.hi}")
            if t.kind == "seq":
                out.append(f"len(s.{n}) <= {t.bound}")
            if t.kind == "set" and t.item.kind == "range":
                out.append(f"all({t.item.lo} <= x <= {t.item.hi} for x in s.{n})")
        return self.r.choice(out)

    def model(self) -> str:
        """The whole text."""
        body: list[str] = [f"{n}: {t.text}" for n, t in self.schema.vars.items()]
        if self.schema.ghosts:
            body.append(f"ghosts = ({', '.join(repr(g) for g in sorted(self.schema.ghosts))},)")
        body.append("")
        for i in range(self.r.choice((0, 0, 1, 2))):
            h = self.tried(self.helper, i)
            self.helpers.append(h)
        body += [x for h in self.helpers for x in [*h.lines, ""]]
        body += [*self.tried(self.initial), ""]
        for i in range(self.r.choice((2, 2, 3, 4))):
            body += [*self.tried(self.action, i), ""]
        body += self.tried(self.claims)
        lines = [*self.schema.head(), "", "class Random(Model):", *[INDENT + x if x else "" for x in body]]
        return "\n".join(lines).rstrip() + "\n"


def generated(seed: int) -> Model:
    """The model of a seed."""
    w = Writer(seed)
    text = w.model()
    return Model(seed, text, w.schema.sizes(w.r))
