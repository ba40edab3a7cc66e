"""Symmetry reduction: states that differ in the names of a sort's elements alone are one orbit, explored once.

The language cannot tell the elements of a sort apart but by their state: they have no order and no names. So renaming
them throughout a state maps runs to runs, and the state's whole orbit may stand for it. The representative is the least
state of the orbit, found by visiting every renaming: one swap of neighbours leads from each to the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafkaspec.errors import UserError
from kafkaspec.explore.code import Reader
from kafkaspec.explore.emit import ALL, WORD, Emitter, Num, Wire, Words, function
from kafkaspec.language.types import T

if TYPE_CHECKING:
    from kafkaspec.explore.program import Program

MOST = 5_040
"""Renamings of all sorts together; each costs every state generated a few nanoseconds."""


def neighbour_swaps(n: int) -> Iterator[int]:
    """Swaps of places i and i + 1 that lead through every order of n things, starting from the first."""
    places, directions = list(range(n)), [-1] * n
    while True:
        mobile = -1
        for x in range(n):
            i = places.index(x)
            j = i + directions[x]
            if 0 <= j < n and places[j] < x and x > mobile:
                mobile = x
        if mobile < 0:
            return
        i = places.index(mobile)
        j = i + directions[mobile]
        places[i], places[j] = places[j], places[i]
        yield min(i, j)
        for x in range(mobile + 1, n):
            directions[x] = -directions[x]


class _Swapper:
    """Code that swaps elements i and i + 1 of a sort in a state."""

    def __init__(self, reader: Reader, sort: str, i: int) -> None:
        self.r, self.e, self.layout, self.sort, self.i = reader, reader.e, reader.layout, sort, i

    def touches(self, t: T | None) -> bool:
        if t is None:
            return False
        return (t.kind == "sort" and t.name == self.sort) or any(
            map(self.touches, (t.elem, t.key, *[f for _, f in t.fields]))
        )

    def words(self, words: Words) -> Words:
        out = list(words)
        for name, t in self.layout.vars.items():
            if self.touches(t):
                p = self.layout.place[name]
                code = self.e.joined(out, p.offset, p.width)
                self.r.store(out, name, 0, p.width, self.code(t, code), True)
        return out

    def code(self, t: T, c: Num) -> Num:
        """The code of a value in which the two elements have changed places."""
        e, lay = self.e, self.layout
        if not self.touches(t):
            return c
        match t.kind:
            case "sort":
                up, down = e.compare("eq", c, self.i), e.compare("eq", c, self.i + 1)
                return e.choose(up, self.i + 1, e.choose(down, self.i, c))
            case "option":
                inner = self.code(t.item, e.sub(c, 1))
                return e.choose(e.compare("eq", c, 0), 0, self.r.present(inner, t))
            case "set" if t.hi is not None:
                records: list[Num] = [0] * lay.cells(t).most
                plus = lay.cells(t).plus
                for cell in self.r.cells_of(c, t):
                    new = e.add(self.code(t.item, e.sub(cell, plus)), plus)
                    records = self.r.entered(records, e.choose(e.compare("eq", cell, 0), 0, new))
                return self.r.packed(records, t)
            case "set":
                return self._exchanged(c, self.i, self.i + 1, 1, t)
            case "rec":
                r: Num = 0
                for k, (_, f) in enumerate(t.fields):
                    r = self._joined(r, self.code(f, e.cut(c, lay.field(t, k), lay.width(f))), lay.field(t, k), t)
                return r
            case "map":
                w, r = lay.width(t.item), 0
                order = list(range(lay.size(t.domain)))
                if t.domain.kind == "sort" and t.domain.name == self.sort:
                    order[self.i], order[self.i + 1] = order[self.i + 1], order[self.i]
                    if not self.touches(t.item):
                        return self._exchanged(c, self.i * w, (self.i + 1) * w, w, t)
                for k, source in enumerate(order):
                    r = self._joined(r, self.code(t.item, e.cut(c, source * w, w)), k * w, t)
                return r
        cells, r = lay.cells(t), e.cut(c, 0, lay.cells(t).length)
        size = self.r.length_of(c, t)
        for k in range(cells.most):
            at = cells.length + k * cells.width
            cell = e.cut(c, at, cells.width)
            new = e.add(self.code(t.item, e.sub(cell, cells.plus)), cells.plus)
            r = self._joined(r, e.choose(e.compare("slt", k, size), new, 0), at, t)
        return r

    def _joined(self, r: Num, part: Num, at: int, t: T) -> Num:
        return self.e.either(r, self.e.shift("shl", part, at, self.r.room(t)))

    def _exchanged(self, c: Num, a: int, b: int, width: int, t: T) -> Num:
        """c with the fields of `width` bits at a and at b = a + width exchanged."""
        e, n = self.e, max(self.e.bits(c), self.r.room(t))
        mask = (1 << width) - 1
        stay = e.both(c, ((1 << n) - 1) & ~(mask << a) & ~(mask << b))
        up = e.shift("shl", e.both(c, mask << a), width, n)
        down = e.shift("lshr", e.both(c, mask << b), width, n)
        return e.either(stay, e.either(up, down))


def canonical(program: Program) -> str:
    """The function that replaces the states of a buffer by their representatives."""
    lay = program.layout
    group = math.prod(math.factorial(int(lay.sizes[s])) for s in program.symmetry)
    if group > MOST:
        raise UserError(
            f"{lay.model.name}: {group:,} renamings of {', '.join(program.symmetry)}: symmetry is for small sorts"
        )
    e = Emitter(program.lanes)
    t = e.type(WORD)
    # All orders of all sorts: after each swap of one sort come all swaps of the sorts before it.
    sequence: list[tuple[str, int]] = []
    for sort in program.symmetry:
        swaps = [(sort, i) for i in neighbour_swaps(int(lay.sizes[sort]))]
        inner = sequence
        sequence = list(inner)
        for s in swaps:
            sequence += [s, *inner]
    kinds = sorted(set(sequence))
    table = ", ".join(f"i8 {kinds.index(s)}" for s in sequence) or "i8 0"
    size = max(1, len(sequence))
    e.line("br label %head")
    e.begin("head")
    e.line("%j = phi i64 [0, %entry], [%jnext, %stored]")
    e.line("%more = icmp slt i64 %j, %n")
    e.line("br i1 %more, label %load, label %done")
    e.begin("load")
    n = program.words
    for w in range(n):
        e.line(f"%at{w} = add i64 %j, {w * program.stride}")
        e.line(f"%p{w} = getelementptr i64, ptr %buffer.p, i64 %at{w}")
        e.line(f"%first{w} = load {t}, ptr %p{w}, align 8")
    e.line("br label %step")
    e.begin("step")
    e.line("%s = phi i64 [0, %load], [%snext, %compared]")
    for w in range(n):
        e.line(f"%now{w} = phi {t} [%first{w}, %load], [%new{w}, %compared]")
        e.line(f"%best{w} = phi {t} [%first{w}, %load], [%better{w}, %compared]")
    e.line(f"%left = icmp slt i64 %s, {len(sequence)}")
    e.line("br i1 %left, label %swap, label %stored.0")
    e.begin("swap")
    e.line(f"%entry.p = getelementptr [{size} x i8], ptr @swaps, i64 0, i64 %s")
    e.line("%which = load i8, ptr %entry.p")
    cases = " ".join(f"i8 {i}, label %case{i}" for i in range(len(kinds)))
    e.line(f"switch i8 %which, label %case0 [{cases}]" if kinds else "unreachable")
    results: list[tuple[str, list[str]]] = []
    for i, (sort, at) in enumerate(kinds):
        e.begin(f"case{i}")
        now: Words = [Wire(f"%now{w}", WORD, 0, ALL) for w in range(n)]
        reader = Reader(lay, e, now)
        reader.enter()
        after = _Swapper(reader, sort, at).words(now)
        reader.leave()
        results.append((e.label, [e.text(x) for x in after]))
        e.line("br label %compared")
    e.begin("compared")
    for w in range(n):
        incoming = ", ".join(f"[{words[w]}, %{label}]" for label, words in results)
        e.line(f"%new{w} = phi {t} {incoming}" if results else f"%new{w} = freeze {t} %now{w}")
    bit = e.type(1)
    e.line(f"%less0 = icmp ult {t} %new0, %best0")
    for w in range(1, n):
        e.line(f"%lt{w} = icmp ult {t} %new{w}, %best{w}")
        e.line(f"%eq{w} = icmp eq {t} %new{w}, %best{w}")
        e.line(f"%below{w} = and {bit} %eq{w}, %less{w - 1}")
        e.line(f"%less{w} = or {bit} %lt{w}, %below{w}")
    for w in range(n):
        e.line(f"%better{w} = select {bit} %less{n - 1}, {t} %new{w}, {t} %best{w}")
    e.line("%snext = add i64 %s, 1")
    e.line("br label %step")
    e.begin("stored.0")
    for w in range(n):
        e.line(f"store {t} %best{w}, ptr %p{w}, align 8")
    e.line("br label %stored")
    e.begin("stored")
    e.line(f"%jnext = add i64 %j, {program.lanes}")
    e.line("br label %head")
    e.begin("done")
    e.line("ret i64 0")
    swaps_table = f"@swaps = internal constant [{size} x i8] [{table}]"
    program.intrinsics |= e.intrinsics
    return swaps_table + "\n" + function("canonical", ("buffer", "n"), e.lines, exported=True)
