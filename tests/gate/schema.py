"""The variables of a random model: types as text, their numbers of values, and which types fit where."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
from functools import cache

COUNTS = {"N": 2, "K": 2}
"""The sizes at which types are counted."""
MOST_VALUES = 600
MOST_STATES = 60_000_000


@dataclass(frozen=True, eq=True)
class Ty:
    """A type: `kind` as the language names it, and "num" for any number."""

    kind: str
    name: str = ""
    elem: Ty | None = None
    key: Ty | None = None
    lo: str = ""
    hi: str = ""
    bound: str = ""
    nonempty: bool = False
    members: tuple[str, ...] = ()
    fields: tuple[tuple[str, Ty], ...] = ()
    drawn: str = ""
    """The variable that a parameter is drawn from."""

    @property
    def item(self) -> Ty:
        assert self.elem is not None
        return self.elem

    @property
    def domain(self) -> Ty:
        assert self.key is not None
        return self.key

    @property
    def text(self) -> str:
        """The annotation."""
        if self.drawn:
            return f'Annotated[{replace(self, drawn="").text}, Of("{self.drawn}")]'
        match self.kind:
            case "bool":
                return "bool"
            case "num":
                return "int"
            case "range":
                return self.name or f"Annotated[int, Range({self.lo}, {self.hi})]"
            case "option":
                return f"{self.item.text} | None"
            case "map":
                return f"dict[{self.domain.text}, {self.item.text}]"
            case "set" if self.bound:
                return f"Annotated[set[{self.item.text}], Bounded({self.bound})]"
            case "set":
                return f"Annotated[set[{self.item.text}], NonEmpty]" if self.nonempty else f"set[{self.item.text}]"
            case "seq":
                return f"Annotated[list[{self.item.text}], Bounded({self.bound})]"
        return self.name

    @property
    def domain_text(self) -> str:
        """What a comprehension over every value of the type runs over."""
        return f"range({self.lo}, {self.hi} + 1)" if self.kind == "range" else self.name

    @property
    def values(self) -> int:
        """How many values the type has at the sizes COUNTS."""
        match self.kind:
            case "bool":
                return 2
            case "enum":
                return len(self.members)
            case "sort":
                return 2
            case "range":
                names = dict(COUNTS)
                return max(1, int(eval(self.hi, {}, names)) - int(eval(self.lo, {}, names)) + 1)
            case "option":
                return 1 + self.item.values
            case "map":
                return int(self.item.values**self.domain.values)
            case "set" if self.bound:
                most = int(eval(self.bound, {}, dict(COUNTS)))
                return sum(math.comb(self.item.values, i) for i in range(most + 1))
            case "set":
                return int(2**self.item.values)
            case "seq":
                n = int(eval(self.bound, {}, dict(COUNTS)))
                return sum(self.item.values**i for i in range(n + 1))
            case "rec":
                out = 1
                for _, f in self.fields:
                    out *= f.values
                return out
        raise AssertionError(self.kind)

    @property
    def simple(self) -> bool:
        """Is it a record of plain fields, which can be a message?"""
        return all(
            f.kind in ("bool", "enum", "sort", "range") or (f.kind == "option" and f.item.kind != "rec")
            for _, f in self.fields
        )

    @property
    def over_bool(self) -> bool:
        """Does it hold a map over bool, for which there is no comprehension?"""
        parts = [*([self.elem] if self.elem else []), *[f for _, f in self.fields]]
        return (self.kind == "map" and self.domain.kind == "bool") or any(p.over_bool for p in parts)

    @property
    def needs_start(self) -> bool:
        """Has the type no first value?"""
        match self.kind:
            case "sort":
                return True
            case "set":
                return self.nonempty
            case "map":
                return self.item.needs_start
            case "rec":
                return any(f.needs_start for _, f in self.fields)
        return False


BOOL = Ty("bool")
NUM = Ty("num")
P = Ty("sort", "P")
Q = Ty("sort", "Q")
C = Ty("enum", "C", members=("RED", "BLUE", "GREEN"))
D = Ty("enum", "D", members=("LOW", "HIGH"))
RANGES = (
    Ty("range", "Num", lo="0", hi="N"),
    Ty("range", lo="1", hi="3"),
    Ty("range", lo="2", hi="4"),
    Ty("range", lo="-1", hi="1"),
    Ty("range", lo="-2", hi="-1"),
    Ty("range", lo="0", hi="1"),
    Ty("range", lo="1", hi="N"),
    Ty("range", lo="N", hi="N + 1"),
    Ty("range", lo="0", hi="2"),
)


def option_of(t: Ty) -> Ty:
    return Ty("option", elem=t)


def set_of(t: Ty, nonempty: bool = False) -> Ty:
    return Ty("set", elem=t, nonempty=nonempty)


@cache
def shape(t: Ty) -> Ty:
    """The type without what does not matter when a value of it is read: limits, bounds, NonEmpty."""
    if t.kind == "range":
        return NUM
    if t.kind == "rec":
        return replace(t, drawn="")
    return replace(t, elem=None if t.elem is None else shape(t.elem), bound="", nonempty=False, lo="", hi="", drawn="")


def fits(want: Ty, have: Ty) -> bool:
    """May a value of type `have` stand where one like `want` is wanted?"""
    return shape(want) == shape(have) or (want.kind == "option" and shape(want.item) == shape(have))


@dataclass
class Schema:
    """What a model's text declares."""

    vars: dict[str, Ty] = field(default_factory=dict)
    ghosts: frozenset[str] = frozenset()
    records: list[Ty] = field(default_factory=list)
    sorts: list[Ty] = field(default_factory=lambda: [P])
    enums: list[Ty] = field(default_factory=lambda: [C])
    size_names: list[str] = field(default_factory=lambda: ["N"])
    flags: list[str] = field(default_factory=lambda: ["F"])
    ranges: list[Ty] = field(default_factory=list)

    def head(self) -> list[str]:
        """The text above the model."""
        out = [
            "from __future__ import annotations", "import enum", "from dataclasses import dataclass",
            "from typing import Annotated", "from kafkaspec.language import *", "",
        ]  # fmt: skip
        out += [f"class {t.name}(Sort): ..." for t in self.sorts]
        for e in self.enums:
            out += [f"class {e.name}(enum.Enum):", *[f"    {m} = {i}" for i, m in enumerate(e.members)]]
        out += [f'{n} = Size("{n}")' for n in self.size_names] + [f'{n} = Flag("{n}")' for n in self.flags]
        out.append("Num = Annotated[int, Range(0, N)]")
        for t in self.records:
            out += ["", "@dataclass(frozen=True)", f"class {t.name}:", *[f"    {n}: {f.text}" for n, f in t.fields]]
        return out

    def sizes(self, r: random.Random) -> tuple[dict[str, int | bool], ...]:
        """Two sets of sizes to compare at."""
        sorts = {t.name: 2 for t in self.sorts}
        numbers = dict.fromkeys(self.size_names, 2)
        flags = {n: r.random() < 0.5 for n in self.flags}
        small: dict[str, int | bool] = {
            **sorts,
            **dict.fromkeys(self.size_names, 1),
            **{n: not v for n, v in flags.items()},
        }
        small[self.sorts[0].name] = r.choice((1, 3))
        return ({**sorts, **numbers, **flags}, small)


def _base(r: random.Random, s: Schema) -> Ty:
    ways = [BOOL, r.choice(s.enums), r.choice(s.sorts), r.choice(s.ranges), r.choice(s.ranges)]
    return r.choice(ways)


def _type(r: random.Random, s: Schema, depth: int) -> Ty:
    """A random type with few values."""
    while True:
        t = _any(r, s, depth)
        if t.values <= MOST_VALUES and not (t.needs_start and t.over_bool):
            return t


def _any(r: random.Random, s: Schema, depth: int) -> Ty:
    ways = ["base", "base", "option"]
    messages = [t for t in s.records if t.simple]
    if depth > 0:
        ways += ["map", "map", "set", "set", "nonempty", "seq", "rec", "rec"]
        ways += ["messages", "messages"] if messages and depth > 1 else []
    match r.choice(ways):
        case "base":
            return _base(r, s)
        case "option":
            t = _type(r, s, 0) if not s.records or r.random() < 0.8 else r.choice(s.records)
            return option_of(t if t.kind != "option" else t.item)
        case "map":
            return Ty("map", elem=_type(r, s, depth - 1), key=_base(r, s))
        case "set":
            return set_of(_base(r, s))
        case "nonempty":
            return set_of(_base(r, s), nonempty=True)
        case "seq":
            item = r.choice(s.records) if s.records and r.random() < 0.25 else _type(r, s, 0)
            return Ty("seq", elem=item, bound=r.choice(("1", "2", "K" if "K" in s.size_names else "N")))
        case "messages":
            return Ty("set", elem=r.choice(messages), bound=r.choice(("1", "2", "N")))
        case "rec" if s.records:
            return r.choice(s.records)
    return _base(r, s)


def state_schema(r: random.Random) -> Schema:
    """Random variables whose types have few values together."""
    s = Schema()
    if r.random() < 0.25:
        s.sorts = [P, Q]
    if r.random() < 0.3:
        s.enums = [C, D]
    if r.random() < 0.3:
        s.size_names = ["N", "K"]
    s.ranges = r.sample(RANGES, 2)
    for name in ("R", "W")[: r.choice((0, 1, 1, 2))]:
        count = r.choice((1, 2, 2))
        fields = tuple((f, _type(r, s, r.choice((0, 0, 1)))) for f in ("a", "b", "c")[:count])
        if name == "W" and r.random() < 0.5 and s.records:
            fields = (*fields[:1], ("inner", s.records[0]))
        t = Ty("rec", name, fields=fields)
        if t.values <= MOST_VALUES and not (t.needs_start and t.over_bool):
            s.records.append(t)
    total = 1
    want = r.choice((2, 3, 3, 4, 5))
    for i in range(12):
        t = _type(r, s, 2)
        if total * t.values > MOST_STATES:
            continue
        s.vars[f"v{i}"] = t
        total *= t.values
        if len(s.vars) == want:
            break
    if r.random() < 0.15:
        s.vars["g0"] = r.choice((BOOL, Ty("range", lo="0", hi="2"), set_of(P)))
        s.ghosts = frozenset(["g0"])
    return s
