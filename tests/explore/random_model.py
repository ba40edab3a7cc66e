"""Random models as Python text: every type and operation of the language, in random combination, always defined.

What a text computes is decided by running it as it stands (`language.concrete`); these models are there to compare the
explicit reading with that.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path

from kafkaspec.language import Model

HEAD = """
from __future__ import annotations
import enum
from dataclasses import dataclass
from typing import Annotated
from kafkaspec.language import *

class P(Sort): ...
class C(enum.Enum):
    RED = 0
    BLUE = 1
    GREEN = 2
N = Size("N")
F = Flag("F")
Small = Annotated[int, Range(0, N)]
High = Annotated[int, Range(5, 6)]

@dataclass(frozen=True)
class Note:
    to: P | None
    group: Annotated[set[P], NonEmpty]
    size: Small

class Random(Model):
    level: dict[P, Small]
    mode: dict[P, dict[bool, C]]
    slot: dict[Annotated[int, Range(1, 3)], P | None]
    some: set[P]
    group: Annotated[set[P], NonEmpty]
    digits: set[Annotated[int, Range(2, 4)]]
    queue: Annotated[list[Small], Bounded(3)]
    bits: Annotated[list[bool], Bounded(2)]
    notes: Annotated[list[Note], Bounded(2)]
    last: Note
    colour: C
    maybe: Small | None
    high: High
    flag: bool

    @define
    def red(s, p: P) -> bool:
        return s.mode[p][True] == C.RED

    @initial
    def start(s, p: P) -> None:
        s.next.group = {p}
        s.next.last = Note(to=None, group=set(P), size=N)
        s.next.maybe = 0
        s.next.flag = F
"""


class Text:
    """Writes expressions of each type. `ps`, `ns`: names of the bound variables of sort and number in scope."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.ps: list[str] = []
        self.ns: list[str] = []
        self.fresh = 0

    def pick(self, *ways: str) -> str:
        return self.r.choice(ways)

    def bound(self, kind: str) -> str:
        self.fresh += 1
        return f"{kind}{self.fresh}"

    def p(self, d: int) -> str:
        if self.ps:
            return self.r.choice(self.ps)
        raise AssertionError("no element in scope")

    def option_p(self, d: int) -> str:
        if d <= 0:
            return self.pick("s.last.to", "s.slot[1]", "s.slot[3]", "(None if s.flag else s.last.to)")
        return self.pick(
            "s.last.to",
            f"s.slot[min(3, max(1, {self.number(d - 1)}))]",
            f"(s.last.to if {self.truth(d - 1)} else s.slot[2])",
            *([self.p(d)] if self.ps else []),
        )

    def option_n(self, d: int) -> str:
        if d <= 0:
            return "s.maybe"
        return self.pick(
            "s.maybe", f"(s.maybe if {self.truth(d - 1)} else None)", f"({self.number(d - 1)} if s.flag else None)"
        )

    def members(self, d: int) -> str:
        if d <= 0:
            return self.pick("s.some", "s.group", "s.last.group", "(s.some | set(P))")
        with_p = [f"({self.members(d - 1)} {self.pick('|', '-')} {{{self.p(d)}}})"] if self.ps else []
        v = self.bound("p")
        return self.pick(
            f"({self.members(d - 1)} {self.pick('|', '-', '&')} {self.members(d - 1)})",
            f"({self.members(d - 1)} if {self.truth(d - 1)} else {self.members(d - 1)})",
            f"{{{v} for {v} in P if {self.inside_p(v, d - 1)}}}",
            *with_p,
        )

    def inside_p(self, v: str, d: int) -> str:
        self.ps.append(v)
        out = self.truth(d)
        self.ps.pop()
        return out

    def inside_n(self, v: str, d: int) -> str:
        self.ns.append(v)
        out = self.truth(d)
        self.ns.pop()
        return out

    def number(self, d: int) -> str:
        leaves = [
            *self.ns, *[f"s.level[{p}]" for p in self.ps], "N", "len(s.queue)", "s.last.size", "s.high",
            "len(s.some)", "len(s.notes)", str(self.r.randrange(4)),
        ]  # fmt: skip
        if d <= 0:
            return self.r.choice(leaves)
        v, w = self.bound("n"), self.bound("p")
        i = self.number(d - 1)
        k = self.r.randrange(2)
        return self.pick(
            self.r.choice(leaves),
            f"({self.number(d - 1)} {self.pick('+', '-')} {self.number(d - 1)})",
            f"{self.pick('min', 'max')}({self.number(d - 1)}, {self.number(d - 1)})",
            f"({self.number(d - 1)} if {self.truth(d - 1)} else {self.number(d - 1)})",
            f"sum(1 for {w} in P if {self.inside_p(w, d - 1)})",
            f"sum(1 for {v} in range(1, 4) if {self.inside_n(v, d - 1)})",
            f"{self.pick('min', 'max')}(({v} for {v} in range(0, N + 2) if {self.inside_n(v, d - 1)}), default=7)",
            f"len({self.members(d - 1)})",
            f"len({self.sequence(d - 1)})",
            f"(s.queue[{i}] if 0 <= {i} and {i} < len(s.queue) else 1)",
            f"(s.notes[{k}].size if len(s.notes) > {k} else 2)",
            "(s.maybe + 1 if s.maybe is not None else 0)",
        )

    def sequence(self, d: int) -> str:
        if d <= 0:
            return "s.queue"
        return self.pick(
            "s.queue",
            f"s.queue[: max(0, {self.number(d - 1)})]",
            f"s.queue[max(0, {self.number(d - 1)}) :]",
            f"(s.queue if {self.truth(d - 1)} else s.queue[1:])",
        )

    def truth(self, d: int) -> str:
        leaves = ["s.flag", "F", "s.colour == C.BLUE", "s.maybe is None", "s.last.to is not None", "3 in s.digits"]
        for p in self.ps:
            leaves += [f"{p} in s.some", f"s.last.to == {p}", f"s.red({p})", f"s.mode[{p}][s.flag] == s.colour"]
        for n in self.ns:
            leaves += [f"{n} in s.digits", f"s.maybe == {n}"]
        if d <= 0:
            return self.r.choice(leaves)
        v, w = self.bound("n"), self.bound("p")
        elements = (
            [f"{self.p(d)} in {self.members(d - 1)}", f"{self.option_p(d - 1)} == {self.p(d)}"] if self.ps else []
        )
        return self.pick(
            self.r.choice(leaves),
            f"not ({self.truth(d - 1)})",
            f"({self.truth(d - 1)} {self.pick('and', 'or')} {self.truth(d - 1)})",
            f"({self.truth(d - 1)} if {self.truth(d - 1)} else {self.truth(d - 1)})",
            f"({self.truth(d - 1)}) == ({self.truth(d - 1)})",
            f"{self.number(d - 1)} {self.pick('<', '<=', '==', '!=', '>')} {self.number(d - 1)}",
            f"{self.members(d - 1)} {self.pick('<=', '==')} {self.members(d - 1)}",
            f"{self.pick('all', 'any')}({self.inside_p(w, d - 1)} for {w} in P if {self.inside_p(w, 0)})",
            f"{self.pick('all', 'any')}({self.inside_p(w, d - 1)} for {w} in {self.members(d - 1)})",
            f"{self.pick('all', 'any')}({self.inside_n(v, d - 1)} for {v} in range(0, 3))",
            f"{self.pick('all', 'any')}({self.inside_n(v, d - 1)} for {v} in s.queue)",
            f"s.slot[2] == {self.pick('s.last.to', 's.slot[1]')}",
            f"s.maybe == {self.option_n(d - 1)}",
            f"{self.sequence(d - 1)} == {self.sequence(d - 1)}",
            "s.last in (s.last, s.last)",
            "(s.bits[0] if len(s.bits) > 0 else s.flag)",
            "(len(s.notes) > 0 and s.notes[0] == s.last)",
            "all(x.size > 0 for x in s.notes)",
            *elements,
        )

    # ---- effects: values kept within their types
    def effect(self, d: int) -> list[str]:
        v, p = self.bound("p"), self.p(d)
        key = self.bound("n")
        small = f"max(0, min(N, {self.number(d)}))"
        nonempty = f"({self.members(d - 1)} | {{{p}}})"
        self.ps.append(v)
        level = f"max(0, min(N, {self.number(d - 1)}))"
        self.ps.pop()
        return self.r.choice(
            [
                [f"s.next.level[{p}] = {small}"],
                [f"s.next.level = {{{v}: {level} for {v} in P}}"],
                [f"s.next.mode[{p}][{self.truth(d - 1)}] = C.{self.pick('RED', 'BLUE', 'GREEN')}"],
                [f"s.next.slot[max(1, min(3, {self.number(d)}))] = {self.option_p(d)}"],
                [f"s.next.slot = {{{key}: ({p} if {key} == 2 else s.slot[{key}]) for {key} in range(1, 4)}}"],
                [f"s.next.some = {self.members(d)}"],
                [f"s.next.group = {nonempty}"],
                ["require(len(s.queue) < 3)", f"s.next.queue = s.queue + [{small}]"],
                [f"s.next.queue = {self.sequence(d)}"],
                ["require(len(s.bits) < 2)", f"s.next.bits = s.bits + [{self.truth(d)}]"],
                [f"s.next.bits = s.bits[{self.pick('1:', ':1')}]"],
                [f"s.next.digits = (s.digits | {{3}}) - {{{self.pick('2', '4')}}}"],
                [f"s.next.digits = {{{key} for {key} in range(2, 5) if {self.inside_n(key, d - 1)}}}"],
                [
                    "require(len(s.notes) < 2)",
                    f"s.next.notes = s.notes + [Note(to={self.option_p(d)}, group={nonempty}, size={small})]",
                ],
                ["require(len(s.notes) > 0)", "s.next.last = s.notes[0]", "s.next.notes = s.notes[1:]"],
                [f"s.next.last = replace(s.last, size={small})"],
                [
                    f"if {self.truth(d)}:",
                    f"    s.next.colour = C.{self.pick('RED', 'GREEN')}",
                    "else:",
                    "    s.next.flag = not s.flag",
                ],
                [f"s.next.maybe = {small} if {self.truth(d)} else None"],
                [f"s.next.flag = {self.truth(d)}"],
                [f"s.next.high = max(5, min(6, {self.number(d)}))"],
                [f"if {self.truth(d)}:", f"    s.next.level[{p}] = {small}", f"    s.next.slot[2] = {p}"],
            ]
        )

    def model(self, actions: int, claims: int, depth: int) -> str:
        out = [HEAD]
        for i in range(actions):
            self.ps = ["p", "q"]
            body = [line for _ in range(self.r.randrange(1, 3)) for line in self.effect(depth)]
            out += [
                "    @action()",
                f"    def act{i}(s, p: P, q: P) -> None:",
                f"        require({self.truth(depth)} or {self.truth(1)})",
                *["        " + line for line in body],
                "",
            ]
        for i in range(claims):
            self.ps = []
            out += ["    @witness", f"    def seen{i}(s) -> bool:", f"        return {self.truth(depth)}", ""]
        self.ps = ["p"]
        out += ["    @step()", "    def stays(s, p: P) -> bool:"]
        out += [f"        return s.next.level[p] >= s.level[p] or s.next.flag or {self.truth(depth)}", ""]
        return "\n".join(out)


def random_model(directory: Path, seed: int, actions: int = 5, claims: int = 25, depth: int = 3) -> type[Model]:
    """A model of its own module; its text lies in `directory`."""
    name = f"random_model_{seed}"
    path = directory / f"{name}.py"
    path.write_text(Text(seed).model(actions, claims, depth))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    found = module.Random
    assert isinstance(found, type)
    assert issubclass(found, Model)
    return found
