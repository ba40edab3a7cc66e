"""Texts that the language has no meaning for. Each is refused when it is loaded, with file and line."""

from __future__ import annotations

import textwrap

from tests import modules

HEAD = (
    modules.HEAD
    + """
F = Flag("F")

@dataclass(frozen=True)
class R:
    a: Num
    b: bool

def plain(x):
    return x

class M(Model):
    n: Num
    b: bool
    o: Num | None
    po: P | None
    ob: bool | None
    c: C
    q: Annotated[list[Num], Bounded(N)]
    S: set[Num]
    T: set[P]
    m: dict[Num, bool]
    w: dict[Annotated[int, Range(0, 4)], bool]
    mp: dict[P, Num]
    r: R

    @define
    def guarded(s, x: Num) -> bool:
        require(s.n > x)
        return True

    @define
    def acts(s) -> bool:
        s.next.b = True
        return True

"""
)
STATEMENTS = {
    "for": "for x in P:\n    s.next.mp[x] = 0",
    "while": "while s.b:\n    s.next.b = False",
    "with": "with s.b:\n    s.next.b = True",
    "try": "try:\n    s.next.b = True\nfinally:\n    s.next.n = 0",
    "augmented": "s.next.n += 1",
    "augmented local": "x = 1\nx += 1\ns.next.n = 0",
    "lambda": "f = lambda x: x\ns.next.b = f(True)",
    "walrus": "s.next.b = (x := s.b)",
    "star": "a, *c = (s.n, s.n)\ns.next.n = 0",
    "match": "match s.n:\n    case 0:\n        s.next.b = True",
    "delete": "x = s.n\ndel x",
    "global": "global z\ns.next.b = True",
    "import": "import os\ns.next.b = True",
    "raise": "raise ValueError",
    "inner function": "def f():\n    return True\ns.next.b = True",
    "print": "print(s.n)\ns.next.b = True",
    "int": "s.next.n = int(s.b)",
    "abs": "s.next.n = abs(s.n)",
    "sorted": "s.next.q = sorted(s.q)",
    "plain function": "s.next.n = plain(s.n)",
    "method of a set": "s.S.add(1)",
    "method of a sequence": "s.q.append(1)",
    "method of a map": "s.next.b = s.m.get(0)",
    "string": "s.next.c = 'RED'",
    "no such variable": "s.next.zz = 1",
    "reads no such variable": "s.next.b = s.zz",
    "state assigned": "s.n = 1",
    "next read": "s.next.b = s.next.n == 0",
    "next read in a guard": "require(s.next.n == 0)",
    "next as a whole": "s.next = s",
    "option as condition": "if s.po:\n    s.next.b = True",
    "bool option as condition": "if s.ob:\n    s.next.b = True",
    "not an option": "s.next.b = not s.po",
    "not a bool option": "s.next.b = not s.ob",
    "and on numbers": "s.next.b = s.n and s.b",
    "or on an option": "s.next.n = s.o or 0",
    "number as condition": "if s.n:\n    s.next.b = True",
    "set as condition": "if s.S:\n    s.next.b = True",
    "sequence as condition": "require(s.q)",
    "not a set": "require(not s.S)",
    "choice by a number": "s.next.b = True if s.n else False",
    "filter by a number": "s.next.S = {x for x in s.S if s.n}",
    "is a number": "s.next.b = s.n is 0",
    "is an option": "s.next.b = s.o is s.n",
    "map over a set": "s.next.mp = {x: 0 for x in s.T}",
    "map over a sequence": "s.next.m = {x: True for x in s.q}",
    "map over a shorter range": "s.next.m = {x: True for x in range(0, 2)}",
    "map over a shifted range": "s.next.m = {x: True for x in range(1, N + 2)}",
    "map with a filter": "s.next.m = {x: True for x in range(0, N + 1) if x > 0}",
    "map with another key": "s.next.m = {x + 1: True for x in range(0, N + 1)}",
    "map over two": "s.next.m = {x: True for x in range(0, N + 1) for y in P}",
    "wide map to a narrow one": "s.next.m = s.w",
    "maps compared": "s.next.b = s.m == s.w",
    "literal map": "s.next.m = {0: True}",
    "negative index": "s.next.n = s.q[-1]",
    "negative index in a slice": "s.next.q = s.q[-1:]",
    "negative end": "s.next.q = s.q[:-1]",
    "stride": "s.next.q = s.q[::2]",
    "require in a comprehension": "s.next.b = all(s.guarded(x) for x in range(0, N + 1))",
    "require in a filter": "s.next.S = {x for x in s.S if s.guarded(x)}",
    "require in a sum": "s.next.b = sum(1 for x in P if s.guarded(0)) > 0",
    "assignment in a comprehension": "s.next.b = any(s.acts() for x in P)",
    "product of variables": "s.next.n = s.n * s.n",
    "product of sizes": "s.next.n = N * N",
    "divided by a variable": "s.next.n = s.n // s.n",
    "divided by a size": "s.next.n = 3 // N",
    "divided by zero": "s.next.n = s.n // 0",
    "remainder of zero": "s.next.n = s.n % 0",
    "divided by a negative": "s.next.n = s.n // -2",
    "true division": "s.next.n = s.n / 2",
    "power": "s.next.n = s.n ** 2",
    "shift": "s.next.n = s.n << 1",
    "exclusive or": "s.next.S = s.S ^ {1}",
    "bit and": "s.next.b = s.b & s.b",
    "number plus bool": "s.next.n = s.n + s.b",
    "bool as number": "s.next.n = True",
    "number as bool": "s.next.b = 1",
    "enum ordered": "s.next.b = s.c < C.BLUE",
    "sorts ordered": "s.next.b = any(x < y for x in P for y in P)",
    "sets of other kinds": "s.next.b = s.S == s.T",
    "element of another kind": "s.next.b = s.n in s.T",
    "set of options": "s.next.T = {s.po, None}",
    "set of sets": "s.next.b = s.S in {s.S}",
    "two kinds compared": "s.next.b = s.c == s.n",
    "no such field": "s.next.b = s.r.zz",
    "no such field of next": "s.next.r.zz = 1",
    "field of a number": "s.next.b = s.n.a",
    "field of another type": "s.next.r = R(a=0, b=1)",
    "field left out": "s.next.r = R(a=0)",
    "replaced no field": "s.next.r = replace(s.r, zz=1)",
    "key of another kind": "s.next.b = s.m[s.c]",
    "assigned key of another kind": "s.next.mp[s.n] = 0",
    "index of a set": "s.next.n = s.S[0]",
    "no parameter of a helper": "s.next.b = s.guarded()",
    "no such helper": "s.next.b = s.unknown(1)",
    "return in if": "if s.b:\n    return\ns.next.b = True",
    "local in one branch": "if s.b:\n    x = 1\ns.next.n = x",
    "local in an inner branch": "if s.b:\n    if s.n > 0:\n        x = 1\n    s.next.n = x",
    "local of two types": "x = 1\nif s.b:\n    x = True\ns.next.n = x",
    "literal None as a limit": "s.next.q = s.q[None:]",
    "conditional helper over next": "x = s.next.n\ns.next.b = True",
    "max of a number": "s.next.n = max(s.n)",
    "max of a set": "s.next.n = max(s.S)",
    "sum of a sequence": "s.next.n = sum(s.q)",
    "len of a number": "s.next.n = len(s.n)",
    "len of a size": "s.next.n = len(N)",
    "range with a step": "s.next.b = all(x > 0 for x in range(0, N, 2))",
    "in a number": "s.next.b = s.n in s.n",
    "two names": "s.next.b = all(x > y for x, y in s.q)",
    "iterates a record": "s.next.b = all(x for x in s.r)",
    "sort as value": "s.next.po = P",
    "enum as value": "s.next.c = C",
    "chained assignment": "s.next.b = s.next.n = 0",
    "annotated local": "x: int = 'a'\ns.next.n = x",
    "f-string": "x = f'{s.n}'\ns.next.b = True",
    "slice of a map": "s.next.b = s.m[0:1] == s.m",
    "majority of numbers": "s.next.b = majority(s.S)",
    "majority of a number": "s.next.b = majority(s.n)",
}
"""Statements of an action."""
ADDED = {
    "claim named as a variable": "@invariant()\ndef b(s) -> bool:\n    return True",
    "claim named as a size": "@invariant()\ndef N(s) -> bool:\n    return True",
    "action named as a sort": "@action()\ndef P(s) -> None:\n    s.next.n = 0",
    "helper named as a variable": "@define\ndef b(s) -> bool:\n    return True",
    "next in an invariant": "@invariant()\ndef z(s) -> bool:\n    return s.next.b",
    "assignment in an invariant": "@invariant()\ndef z(s) -> bool:\n    s.next.b = True\n    return 1",
    "require in an invariant": "@invariant()\ndef z(s) -> bool:\n    require(s.b)\n    return True",
    "claim that returns a number": "@invariant()\ndef z(s) -> bool:\n    return s.n",
    "claim that returns an option": "@invariant()\ndef z(s) -> bool:\n    return s.ob",
    "claim that returns nothing": "@invariant()\ndef z(s) -> bool:\n    s.b",
    "parameter without a type": "@action()\ndef z(s, x) -> None:\n    s.next.n = 0",
}
"""Methods of the class."""
CLASSES = {
    "variable named as a size": ("    c: C\n", "    c: C\n    N: bool\n", ""),
    "variable named as a flag": ("    c: C\n", "    c: C\n    F: bool\n", "s.next.b = F"),
    "variable named as a sort": ("    c: C\n", "    c: C\n    P: bool\n", ""),
    "variable named as an enum": ("    c: C\n", "    c: C\n    C: C\n", ""),
    "variable named as a record": ("    c: C\n", "    c: C\n    R: R\n", ""),
    "size named as a variable": ('N = Size("N")', 'N = Size("n")', ""),
    "flag named as a variable": ('F = Flag("F")', 'F = Flag("b")', "s.next.b = F"),
    "flag named as a size": ('F = Flag("F")', 'F = Flag("N")', "s.next.b = F"),
    "flag named as a sort": ('F = Flag("F")', 'F = Flag("P")', "s.next.b = F"),
    "set of options": ("    c: C\n", "    c: C\n    so: set[P | None]\n", ""),
    "int without limits": ("    c: C\n", "    c: C\n    i: int\n", ""),
    "sequence without a bound": ("    c: C\n", "    c: C\n    l: list[bool]\n", ""),
    "union": ("    c: C\n", "    c: C\n    u: P | C\n", ""),
    "record in itself": ("    b: bool\n", "    b: bool\n    r: R\n", ""),
    "string variable": ("    c: C\n", "    c: C\n    t: str\n", ""),
    "map over a record": ("    c: C\n", "    c: C\n    mr: dict[R, bool]\n", ""),
    "no first value": ("    c: C\n", "    c: C\n    p1: P\n", ""),
}
"""Changes of the class: what stands there, what instead, and the body of an action."""


def texts() -> dict[str, str]:
    """Every wrong text by its name."""
    action = "    @action()\n    def act(s) -> None:\n"

    def body(text: str) -> str:
        return action + "\n".join("        " + x for x in text.split("\n")) + "\n"

    out = {name: HEAD + body(text) for name, text in STATEMENTS.items()}
    for name, method in ADDED.items():
        out[name] = HEAD + textwrap.indent(method, "    ") + "\n\n" + body("s.next.n = 0")
    for name, (old, new, act) in CLASSES.items():
        assert old in HEAD, name
        out[name] = HEAD.replace(old, new, 1) + body(act or "s.next.n = 0")
    return out


def right() -> str:
    """The same model without anything wrong."""
    return HEAD + "    @action()\n    def act(s) -> None:\n        s.next.n = 0\n"
