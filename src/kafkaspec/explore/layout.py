"""Where each value of a state lies: every value is a bit field, a state is a few 64-bit words.

A code is a value's bits, read as a natural. `False`, `None`, the empty set, the empty sequence, the first member of an
enum and the first element of a sort code to 0. The top bit of word 0 stays free: it marks a table slot as taken.
"""

from __future__ import annotations

import enum
import itertools
import math
import typing
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafkaspec.errors import UserError
from kafkaspec.language.expr import Expr, static
from kafkaspec.language.model import Action, LoadedModel
from kafkaspec.language.parts import nodes, variables
from kafkaspec.language.trace import Value
from kafkaspec.language.types import T

WORD = 64
MOST_BITS = 1 << 16
"""Of a state."""
MOST_VALUES = 1 << 20
"""That a parameter or a comprehension's variable takes."""
UNBOUNDED = 255
"""The greatest value of a number without an upper limit (a ghost): beyond it a search ends with a clear statement."""


def bits_for(n: int) -> int:
    """Bits that tell n codes apart."""
    return max(0, (n - 1).bit_length())


def _limited(t: T) -> bool:
    """Has every number in a value of type t an upper limit? Of records it was asked of each."""
    return (t.kind != "range" or t.hi is not None) and (t.elem is None or _limited(t.elem))


class Cells(NamedTuple):
    """How a sequence lies: `length` bits of a length field (none: a cell of 0 ends it), `most` cells of `width` bits,
    each an element's code plus `plus`."""

    length: int
    width: int
    most: int
    plus: int


class Place(NamedTuple):
    """A variable's first bit, counted from bit 0 of word 0, and its bits."""

    offset: int
    width: int


class Layout:
    """A model's state at given sizes. Raises UserError for what has no finite layout."""

    def __init__(
        self,
        model: LoadedModel,
        sizes: Mapping[str, int | bool],
        ghosts: bool = False,
        usable: int = WORD - 1,
    ) -> None:
        model.check_sizes(sizes)
        self.model, self.sizes = model, dict(sizes)
        self.vars = {n: t for n, t in model.vars.items() if ghosts or n not in model.ghosts}
        self._widths: dict[int, int] = {}
        self._limits: dict[T, tuple[int, int]] = {}
        self._cells: dict[T, Cells] = {}
        self.place: dict[str, Place] = {}
        room: list[int] = []
        widest_first = sorted(self.vars.items(), key=lambda item: -self.width(item[1]))
        wide = [(n, self.width(t)) for n, t in widest_first if self.width(t) > usable]
        for n, t in widest_first:
            w = self.width(t)
            if w > usable:
                continue
            i = next((i for i, used in enumerate(room) if used + w <= usable), len(room))
            if i == len(room):
                room.append(0)
            self.place[n] = Place(i * WORD + room[i], w)
            room[i] += w
        words = max(1, len(room))
        for n, w in wide:
            self.place[n] = Place(words * WORD, w)
            words += -(-w // WORD)
        self.words = words
        self.bits = sum(p.width for p in self.place.values())
        if self.bits > MOST_BITS:
            raise UserError(f"{model.name}: a state takes {self.bits:,} bits at these sizes, of at most {MOST_BITS:,}")

    def visible(self, e: Expr) -> bool:
        """Does an expression read variables of the layout alone, and no ghost that is left out?"""
        return variables(nodes(e)) <= self.vars.keys()

    # ---- numbers of values
    def limits(self, t: T) -> tuple[int, int]:
        """A range's least and greatest value, at these sizes."""
        known = self._limits.get(t)
        if known is None:
            lo = static(t.lo, self.sizes)
            known = lo, (max(lo, UNBOUNDED) if t.hi is None else static(t.hi, self.sizes))
            self._limits[t] = known
        return known

    def stored(self, t: T) -> tuple[int, int]:
        """The least and greatest number that a field of type t can hold without harm to its neighbours."""
        if t.kind == "int":
            raise UserError(f"{self.model.name}: a number whose limits cannot be told stands inside an option or a set")
        lo, hi = self.limits(t)
        return lo, max(lo, hi)

    def bias(self, t: T) -> int:
        """A number's code is the number less this: 0 if that costs no bit, so that code 0 may stay unused."""
        lo, hi = self.stored(t)
        return 0 if lo >= 0 and hi.bit_length() == bits_for(hi - lo + 1) else lo

    def codes(self, t: T) -> int:
        """One more than the greatest code."""
        match t.kind:
            case "bool":
                return 2
            case "enum":
                return len(typing.cast(type[enum.Enum], t.cls))
            case "sort":
                return int(self.sizes[t.name])
            case "range" | "int":
                return self.stored(t)[1] - self.bias(t) + 1
            case "option":
                return self.codes(t.item) + 1
        return 1 << self.width(t)

    def size(self, t: T) -> int:
        """How many values a map's key or a set's element can have."""
        if t.kind in ("range", "int"):
            lo, hi = self.limits(t)
            return max(0, hi - lo + 1)
        return self.codes(t)

    def values(self, t: T) -> list[int]:
        """What a bound variable of type t takes, one after the other: numbers themselves, codes of anything else.
        Raises UserError where they are too many to be looked at."""
        n = self._how_many(t)
        if n > MOST_VALUES:
            many = f"{t!r} has more than {MOST_VALUES:,} values at these sizes"
            raise UserError(f"{self.model.name}: {many}, each of which is looked at")
        match t.kind:
            case "range":
                lo, hi = self.limits(t)
                return list(range(lo, hi + 1))
            case "option":
                return [0, *[self.encoded(t.item, v) + 1 for v in self.values(t.item)]]
            case "set" if t.hi is None:
                return list(range(int(t.nonempty), 1 << self.width(t)))
            case "set":
                c, records = self.cells(t), sorted(self.values(t.item), reverse=True)
                sets = [s for n in range(c.most + 1) for s in itertools.combinations(records, n)]
                return [sum((x + c.plus) << (c.width * i) for i, x in enumerate(s)) for s in sets]
            case "rec":
                parts = [
                    [self.encoded(f, v) << self.field(t, i) for v in self.values(f)]
                    for i, (_, f) in enumerate(t.fields)
                ]
                return [sum(p) for p in itertools.product(*parts)]
            case "bool" | "enum" | "sort":
                return list(range(self.codes(t)))
        raise UserError(f"{self.model.name}: values of type {t!r} are not enumerated")

    def _how_many(self, t: T) -> int:
        """How many values a bound variable of type t takes; at least `MOST_VALUES` + 1 if they are more than those."""
        match t.kind:
            case "option":
                return 1 + self._how_many(t.item)
            case "set" if t.hi is None:
                return int(1 << min(self.width(t), WORD))
            case "set":
                n, most = self._how_many(t.item), min(self.cells(t).most, WORD)
                return sum(math.comb(n, k) for k in range(most + 1)) if n <= MOST_VALUES else n
            case "rec":
                return math.prod(self._how_many(f) for _, f in t.fields)
        return self.size(t)

    def encoded(self, t: T, value: int) -> int:
        """The code of what `values` gives."""
        return value - self.bias(t) if t.kind == "range" else value

    # ---- bits
    def zero_free(self, t: T) -> bool:
        """Is code 0 no value of t?"""
        if t.kind == "range":
            return self.stored(t)[0] - self.bias(t) >= 1
        return (t.kind == "set" and t.nonempty) or (t.kind == "rec" and any(self.zero_free(f) for _, f in t.fields))

    def cells(self, t: T) -> Cells:
        """How a sequence, or a set of at most N records, lies."""
        known = self._cells.get(t)
        if known is None:
            known = self._cells[t] = self._laid(t)
        return known

    def _laid(self, t: T) -> Cells:
        if t.kind == "set":
            most, w, plus = max(0, static(t.hi, self.sizes)), self.width(t.item), int(not self.zero_free(t.item))
            if w + plus >= WORD:
                raise UserError(f"{self.model.name}: a record of {w} bits is too wide for a set of records")
            return Cells(0, w + plus, most, plus)
        most, w = max(0, static(t.hi, self.sizes)), self.width(t.item)
        if self.zero_free(t.item):
            return Cells(0, w, most, 0)
        if t.item.kind in ("bool", "enum", "sort", "range", "option") and bits_for(self.codes(t.item) + 1) == w:
            return Cells(0, w, most, 1)
        return Cells(bits_for(most + 1), w, most, 0)

    def width(self, t: T) -> int:
        """A value's bits."""
        w = self._widths.get(id(t))
        if w is None:
            w = self._widths[id(t)] = self._width(t)
        return w

    def _width(self, t: T) -> int:
        match t.kind:
            case "set" if t.hi is not None:
                c = self.cells(t)
                return c.width * c.most
            case "set":
                return self.size(t.item)
            case "rec":
                for n, f in t.fields:
                    if not _limited(f):
                        raise UserError(
                            f"{self.model.name}: the field {n} of {t.name} has no upper limit: a field has one"
                        )
                return sum(self.width(f) for _, f in t.fields)
            case "map":
                return self.size(t.domain) * self.width(t.item)
            case "seq":
                c = self.cells(t)
                return c.length + c.width * c.most
        return bits_for(self.codes(t))

    def field(self, t: T, i: int) -> int:
        """The first bit of a record's field."""
        return sum(self.width(f) for _, f in t.fields[:i])

    def alike(self, a: T, b: T) -> bool:
        """Do values of both types lie the same way?"""
        if a is b:
            return True
        if a.kind != b.kind:
            return False
        if a.kind in ("range", "int"):
            return a.kind == b.kind == "range" and self.stored(a) == self.stored(b)
        if a.kind in ("option", "seq"):
            same_cells = a.kind == "option" or self.cells(a) == self.cells(b)
            return same_cells and self.alike(a.item, b.item)
        if a.kind == "set" and a.hi is not None:
            return b.hi is not None and self.cells(a) == self.cells(b)
        if a.kind == "set":
            return a.item.kind != "range" or self.limits(a.item) == self.limits(b.item)
        if a.kind == "map":
            return self.size(a.domain) == self.size(b.domain) and self.alike(a.item, b.item)
        return a.cls is b.cls

    # ---- first values and decoding
    def first(self, t: T) -> int:
        """The code of a type's first value."""
        match t.kind:
            case "range":
                lo, hi = self.limits(t)
                return (0 if lo <= 0 <= hi else lo) - self.bias(t)
            case "map":
                w = self.width(t.item)
                return sum(self.first(t.item) << (w * i) for i in range(self.size(t.domain)))
            case "rec":
                return sum(self.first(f) << self.field(t, i) for i, (_, f) in enumerate(t.fields))
        return 0

    def first_words(self) -> list[int]:
        """The state in which every variable has its first value: where @initial starts from."""
        whole = sum(self.first(t) << self.place[n].offset for n, t in self.vars.items())
        return [(whole >> (WORD * i)) & (2**WORD - 1) for i in range(self.words)]

    def decode(self, words: Sequence[int]) -> dict[str, Value]:
        """A state in JSON's shapes."""
        whole = sum(w << (WORD * i) for i, w in enumerate(words))
        return {
            n: self.show(t, (whole >> self.place[n].offset) & ((1 << self.place[n].width) - 1))
            for n, t in self.vars.items()
        }

    def show(self, t: T, code: int) -> Value:
        """A code as a value in JSON's shapes."""
        match t.kind:
            case "bool":
                return bool(code)
            case "enum":
                return list(typing.cast(type[enum.Enum], t.cls))[code].name
            case "sort":
                return f"{t.name[0].lower()}{code}"
            case "range":
                return code + self.bias(t)
            case "option":
                return None if code == 0 else self.show(t.item, code - 1)
            case "set":
                items = (
                    [self.nth(t.item, i) for i in range(self.size(t.item)) if code >> i & 1]
                    if t.hi is None
                    else [self.show(t.item, x) for x in self.records(t, code)]
                )
                return sorted(items, key=str)
            case "rec":
                return {n: self.show(f, self._cut(code, self.field(t, i), f)) for i, (n, f) in enumerate(t.fields)}
            case "map":
                w = self.width(t.item)
                return {
                    str(self.nth(t.domain, i)): self.show(t.item, self._cut(code, w * i, t.item))
                    for i in range(self.size(t.domain))
                }
        c = self.cells(t)
        cells = [(code >> (c.length + c.width * i)) & ((1 << c.width) - 1) for i in range(c.most)]
        if c.length:
            cells = cells[: code & ((1 << c.length) - 1)]
        elif 0 in cells:
            cells = cells[: cells.index(0)]
        return [self.show(t.item, x - c.plus) for x in cells]

    def encode(self, state: Mapping[str, Value]) -> list[int]:
        """The words of a state that `decode` gave."""
        whole = sum(self.code(t, state[n]) << self.place[n].offset for n, t in self.vars.items())
        return [(whole >> (WORD * i)) & (2**WORD - 1) for i in range(self.words)]

    def code(self, t: T, value: Value) -> int:
        """The code of a value in JSON's shapes."""
        match t.kind:
            case "bool":
                return int(value)
            case "enum":
                return [m.name for m in typing.cast(type[enum.Enum], t.cls)].index(value)
            case "sort":
                return int(value[1:])
            case "range":
                return int(value) - self.bias(t)
            case "option":
                return 0 if value is None else self.code(t.item, value) + 1
            case "set" if t.hi is not None:
                c = self.cells(t)
                records = sorted((self.code(t.item, x) + c.plus for x in value), reverse=True)
                return sum(x << (c.width * i) for i, x in enumerate(records))
            case "set":
                every = [self.nth(t.item, i) for i in range(self.size(t.item))]
                return sum(1 << every.index(x) for x in value)
            case "rec":
                return sum(self.code(f, value[n]) << self.field(t, i) for i, (n, f) in enumerate(t.fields))
            case "map":
                w = self.width(t.item)
                return sum(
                    self.code(t.item, value[str(self.nth(t.domain, i))]) << (w * i) for i in range(self.size(t.domain))
                )
        c = self.cells(t)
        cells = sum((self.code(t.item, x) + c.plus) << (c.length + c.width * i) for i, x in enumerate(value))
        return cells | (len(value) if c.length else 0)

    def records(self, t: T, code: int) -> list[int]:
        """The codes of the records in a set's code, in the order in which they lie."""
        c = self.cells(t)
        cells = [(code >> (c.width * i)) & ((1 << c.width) - 1) for i in range(c.most)]
        return [x - c.plus for x in cells if x]

    def _cut(self, code: int, offset: int, t: T) -> int:
        return (code >> offset) & ((1 << self.width(t)) - 1)

    def nth(self, t: T, i: int) -> Value:
        """The i-th value of a key or an element type."""
        return self.limits(t)[0] + i if t.kind == "range" else self.show(t, i)

    def argument(self, action: Action, p: Expr, value: int, before: Sequence[int]) -> Value:
        """A parameter's value in JSON's shapes; of a record in a set, `value` is its place in the state before."""
        drawn = action.drawn.get(p.aux)
        if drawn is None or p.t.kind != "rec":
            return self.show_bound(p.t, value)
        at = self.place[drawn.aux]
        whole = sum(w << (WORD * i) for i, w in enumerate(before))
        return self.show(p.t, self.records(drawn.t, (whole >> at.offset) & ((1 << at.width) - 1))[value])

    def show_bound(self, t: T, value: int) -> Value:
        """What `values` gives, in JSON's shapes."""
        return value if t.kind == "range" else self.show(t, value)
