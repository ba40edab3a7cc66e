"""Every partial operation in every place where it can stand: one model for each operation, an action for each place.

The states are arbitrary ones, so that nothing must be reached: each action is compared in each state.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests import modules

HEAD = (
    modules.HEAD
    + """
from tests.gate import elsewhere

L = Size("L")

@dataclass(frozen=True)
class R:
    x: Num
    b: bool

class M(Model):
    n: Num
    bad: bool
    keys: dict[Num, bool]
    rec: R
    S: set[Num]
    q: Annotated[list[Num], Bounded(L)]
"""
)
SIZES: dict[str, int | bool] = {"P": 2, "N": 2, "L": 2}


@dataclass(frozen=True)
class Partial:
    """An operation that is not always defined: a number, and the variables that it needs besides."""

    name: str
    value: str
    variables: tuple[str, ...] = ()


PARTIALS = (
    Partial("index", "s.q[s.n]"),
    Partial("last", "s.q[len(s.q) - 1]"),
    Partial("negative index", "s.q[s.n - 1]"),
    Partial("index of an option", "s.q[s.o]", ("o: Num | None",)),
    Partial("index of an index", "s.q[s.q[0]]"),
    Partial("slice from", "len(s.q[s.n - 1:])"),
    Partial("slice to", "len(s.q[:s.n - 1])"),
    Partial("slice between", "len(s.q[0:s.n - 1])"),
    Partial("option plus", "s.o + 1", ("o: Num | None",)),
    Partial("option compared", "(1 if s.o < 1 else 0)", ("o: Num | None",)),
    Partial("option chosen", "(s.o if s.n > 0 else 0) + 1", ("o: Num | None",)),
    Partial("option as key", "s.m[s.po]", ("po: P | None", "m: dict[P, Num]")),
    Partial("option of a record", "s.ro.x", ("ro: R | None",)),
    Partial("option as element", "len({s.po} | s.T)", ("po: P | None", "T: set[P]")),
    Partial("option as number key", "(1 if s.keys[s.o] else 0)", ("o: Num | None",)),
    Partial("key beyond", "(1 if s.keys[s.n + 1] else 0)"),
    Partial("key below", "(1 if s.keys[s.n - 1] else 0)"),
    Partial("inner key", "s.mm[C.RED][s.n + 1]", ("mm: dict[C, dict[Num, Num]]",)),
    Partial("greatest of a set", "max(x for x in s.S)"),
    Partial("least of a range", "min(x for x in range(0, N + 1) if x > s.n)"),
    Partial("greatest of images", "max(x + 1 for x in s.q)"),
    Partial("record", "R(x=s.n + 1, b=True).x"),
    Partial("replaced", "replace(s.rec, x=s.n - 1).x"),
    Partial("record in a record", "W(inner=R(x=s.n + 1, b=True)).inner.x"),
)

LATER = (
    Partial("slice from an option", "len(s.q[s.o:])", ("o: Num | None",)),
    Partial("slice to an option", "len(s.q[:s.o])", ("o: Num | None",)),
    Partial("greatest of options", "max(s.w[k] for k in P)", ("w: dict[P, Num | None]",)),
    Partial("least of options", "min((k for k in s.wq), default=0)", ("wq: Annotated[list[Num | None], Bounded(1)]",)),
    Partial("set of options", "len(set(s.wq))", ("wq: Annotated[list[Num | None], Bounded(1)]",)),
    Partial("record of a module", "elsewhere.Small(x=s.n).x"),
)
"""More of them: they stand behind all others, which keep their numbers and so their samples."""

PLACES = {
    "guard": "require({b})",
    "second_guard": "require(s.n > 0, {b})\ns.next.bad = True",
    "later_guard": "require(s.n > 0)\nrequire({b})",
    "first_of_two": "require({b}, s.n > 0)",
    "after_effect": "s.next.bad = True\nrequire({b})",
    "effect": "s.next.n = max(0, min(N, {e}))",
    "raw_effect": "s.next.n = {e}",
    "effect_after_guard": "require(s.n > 0)\ns.next.bad = {b}",
    "if_test": "if {b}:\n    s.next.bad = True",
    "if_test_after_guard": "require(s.n > 0)\nif {b}:\n    s.next.bad = True",
    "elif_test": "if s.n == 0:\n    s.next.bad = True\nelif {b}:\n    s.next.bad = False",
    "in_then": "if s.n == 0:\n    s.next.bad = {b}",
    "in_else": "if s.n == 0:\n    s.next.bad = True\nelse:\n    s.next.bad = {b}",
    "guard_in_if": "if s.n == 0:\n    require({b})\ns.next.bad = True",
    "overwritten": "s.next.bad = {b}\ns.next.bad = False",
    "local": "x = {e}\ns.next.bad = True",
    "local_used": "x = {e}\nif s.n == 0:\n    s.next.bad = x > 0",
    "argument": "s.next.bad = s.first(s.n, {e}) > 0",
    "helper": "s.next.bad = s.value() > 0",
    "helper_in_and": "s.next.bad = s.n > 0 and s.value() > 0",
    "guard_helper": "s.guarded()\ns.next.bad = True",
    "guard_helper_in_and": "if s.n > 0 and s.guarded():\n    s.next.bad = True",
    "guard_helper_in_choice": "s.next.bad = s.guarded() if s.n > 0 else False",
    "and_right": "s.next.bad = s.n > 0 and {b}",
    "and_left": "s.next.bad = {b} and s.n > 0",
    "or_right": "s.next.bad = s.n > 0 or {b}",
    "denied": "s.next.bad = not (s.n > 0 and {b})",
    "choice_test": "s.next.bad = True if {b} else False",
    "choice_then": "s.next.bad = {b} if s.n > 0 else False",
    "choice_else": "s.next.bad = False if s.n > 0 else {b}",
    "equal": "s.next.bad = (s.n > 0) == {b}",
    "chain": "s.next.bad = 0 <= s.n < {e}",
    "chain_stopped": "s.next.bad = s.n < 1 < {e}",
    "every": "s.next.bad = all(x == s.n or {b} for x in range(0, 2))",
    "every_early": "s.next.bad = all(x > 5 and {b} for x in range(0, 2))",
    "some": "s.next.bad = any(x == s.n or {b} for x in range(0, 2))",
    "some_of_none": "s.next.bad = any({b} for x in range(2, 2))",
    "every_if": "s.next.bad = all(x > 0 for x in range(0, 2) if {b})",
    "body_after_if": "s.next.bad = all({b} for x in range(0, 2) if s.n > 0)",
    "some_in_set": "s.next.bad = any({b} for x in s.S)",
    "every_in_sequence": "s.next.bad = all({b} for x in s.q)",
    "summed": "s.next.bad = sum({e} for x in range(0, 2) if x > s.n) > 0",
    "counted": "s.next.bad = sum(1 for x in range(0, 2) if {b}) > 0",
    "greatest_of": "s.next.bad = max(({e} for x in range(0, 2) if x > s.n), default=0) > 0",
    "greatest_if": "s.next.bad = max((x for x in range(0, 2) if {b}), default=0) > 0",
    "default": "s.next.bad = max((x for x in range(0, 2) if x > s.n), default={e}) > 0",
    "default_unused": "s.next.bad = max((x for x in range(0, 2)), default={e}) > 0",
    "filter": "s.next.S = {{x for x in range(0, N + 1) if {b}}}",
    "image": "s.next.S = {{max(0, min(N, {e})) for x in range(0, 2)}}",
    "among": "s.next.bad = s.n in (0, {e})",
    "among_set": "s.next.bad = s.n in {{0, {e}}}",
    "least_argument": "s.next.n = min(s.n, max(0, {e}))",
    "key": "s.next.keys[max(0, min(N, {e}))] = True",
    "raw_key": "s.next.keys[{e}] = True",
    "raw_key_in_if": "if s.n > 0:\n    s.next.keys[{e}] = True",
    "value_at_key": "s.next.keys[s.n] = {b}",
    "map": "s.next.keys = {{k: k > 0 and {b} for k in range(0, N + 1)}}",
    "field": "s.next.rec = R(x=max(0, min(N, {e})), b=True)",
    "raw_field": "s.next.rec = R(x={e}, b=True)",
    "place_of_field": "s.next.rec.x = {e}",
    "appended": "s.next.q = s.q[:1] + [max(0, min(N, {e}))]",
    "cell": "require(len(s.q) > 0)\ns.next.q[0] = {e}",
    "limit": "s.next.bad = any(x > 0 for x in range(0, {e}))",
    "element": "s.next.S = s.S | {{max(0, min(N, {e}))}}",
    "raw_element": "s.next.S = s.S | {{{e}}}",
    "removed": "s.next.S = s.S - {{{e}}}",
    "product": "s.next.bad = ({e}) * 2 > 1",
    "divided": "s.next.bad = ({e}) // 2 > 0 or ({e}) % 2 == 1",
}
"""Where an operation stands: `e` is the number, `b` a truth value made of it."""
CLAIMS = ("{b}", "s.n > 0 and {b}", "s.n > 0 or {b}", "all({b} for x in s.S)", "s.n == 0 or s.value() > 0",
          "max((x for x in s.q), default={e}) > 0")  # fmt: skip


def _model(p: Partial) -> list[str]:
    out = [HEAD]
    if "W(" in p.value:
        out[0] = HEAD.replace("class M(Model)", "@dataclass(frozen=True)\nclass W:\n    inner: R\n\nclass M(Model)")
    out += [f"    {v}" for v in p.variables]
    out += [
        "    @define", "    def first(s, x: Num, y: Num) -> int:", "        return x",
        "    @define", "    def value(s) -> int:", f"        return {p.value}",
        "    @define", "    def guarded(s) -> bool:", f"        require(({p.value}) <= 1)", "        return True",
    ]  # fmt: skip
    return out


def places(p: Partial) -> str:
    """The model with an action for each place, and a witness for each kind of claim."""
    out = _model(p)
    e, b = f"({p.value})", f"(({p.value}) <= 1)"
    for name, effect in PLACES.items():
        body = effect.format(e=e, b=b)
        out += ["    @action()", f"    def {name}(s) -> None:", *["        " + x for x in body.split("\n")]]
    for i, claim in enumerate(CLAIMS):
        out += ["    @witness", f"    def seen{i}(s) -> bool:", f"        return {claim.format(e=e, b=b)}"]
    out += ["    @step()", "    def moves(s) -> bool:", f"        return s.next.n == s.n or {b}"]
    return "\n".join(out) + "\n"


def claimed(p: Partial, claim: str, kind: str) -> str:
    """The model in which the operation stands in a claim, and things happen."""
    e, b = f"({p.value})", f"(({p.value}) <= 1)"
    out = _model(p)
    out += [
        "    @action()", "    def up(s) -> None:", "        require(s.n < N)", "        s.next.n = s.n + 1",
        "    @action()", "    def grow(s) -> None:", "        require(len(s.q) < L)", "        s.next.q = s.q + [s.n]",
        "    @action()", "    def mark(s) -> None:", "        s.next.S = {s.n}",
    ]  # fmt: skip
    for v in p.variables:
        n, _, t = v.partition(": ")
        value = {"Num | None": "s.n", "R | None": "s.rec", "dict[P, Num | None]": "{k: s.n for k in P}",
                 "Annotated[list[Num | None], Bounded(1)]": "[None if s.n > 0 else s.n]"}.get(t)  # fmt: skip
        if t == "P | None":
            out += ["    @action()", f"    def set_{n}(s, p: P) -> None:", f"        s.next.{n} = p"]
        elif value:
            out += ["    @action()", f"    def set_{n}(s) -> None:", f"        s.next.{n} = {value}"]
    out += [f"    @{kind}()", "    def claim(s) -> bool:", f"        return {claim.format(e=e, b=b)}"]
    return "\n".join(out) + "\n"


# ---- values that leave their types
LEAVING = {
    "number": ("Num", "s.n + 1"),
    "below": ("Num", "s.n - 1"),
    "element": ("set[Num]", "s.S | {s.n + 1}"),
    "elements": ("set[Num]", "{x + 1 for x in s.S}"),
    "filtered": ("set[Num]", "{x for x in range(s.n - 1, N + 1)}"),
    "copied": ("set[Annotated[int, Range(0, 1)]]", "s.S"),
    "emptied": ("Annotated[set[P], NonEmpty]", "s.T - {p}"),
    "empty": ("Annotated[set[P], NonEmpty]", "{x for x in s.T if s.n > 0}"),
    "grown": ("Annotated[list[Num], Bounded(L)]", "s.q + [s.n]"),
    "joined": ("Annotated[list[Num], Bounded(L)]", "s.q + s.q"),
    "cell": ("Annotated[list[Num], Bounded(L)]", "s.q[1:] + [s.n + 1]"),
    "narrowed": ("Annotated[list[Annotated[int, Range(0, 1)]], Bounded(L)]", "s.q"),
    "option": ("Num | None", "s.n + 1 if s.bad else None"),
    "unwrapped": ("Annotated[int, Range(0, 1)]", "s.n if s.bad else 0"),
    "none": ("P", "(p if s.bad else s.po)"),
    "none_in_list": ("Annotated[list[P], Bounded(1)]", "[s.po]"),
    "none_in_lists": ("dict[bool, Annotated[list[P], Bounded(1)]]", "{k: [s.po] for k in {False, True}}"),
    "none_in_set": ("set[P]", "{s.po}"),
    "values": ("dict[P, Num]", "{k: s.n + 1 if k == p else 0 for k in P}"),
    "sets": ("dict[P, set[Num]]", "{k: s.S | {s.n - 1} for k in P}"),
    "messages": ("Annotated[set[R], Bounded(1)]", "s.net | {R(x=s.n, b=s.bad)}"),
    "message": ("Annotated[set[R], Bounded(2)]", "{R(x=y, b=True) for y in s.S}"),
    "field": ("V", "V(some=s.S | {s.n}, one=s.rec)"),
}
"""What is assigned, and the type that it may leave."""
WAYS = {
    "raw": "s.next.v = {e}",
    "guarded": "require(s.n > 0)\ns.next.v = {e}",
    "in_if": "if s.n > 0:\n    s.next.v = {e}",
    "in_else": "if s.n > 0:\n    s.next.bad = True\nelse:\n    s.next.v = {e}",
    "overwritten": "s.next.v = {e}\ns.next.v = s.v",
    "overwritten_in_if": "s.next.v = {e}\nif s.n > 0:\n    s.next.v = s.v",
    "written_again": "s.next.v = s.v\ns.next.v = {e}",
    "in_helper": "if s.bad:\n    s.put(p)",
    "before_guard": "s.next.v = {e}\nrequire(s.n > 0)",
    "two_at_once": "s.next.v = {e}\ns.next.n = s.n + 1",
}


def leaving(name: str) -> str:
    """The model in which a value of that kind is assigned in every way."""
    t, e = LEAVING[name]
    head = HEAD.replace(
        "class M(Model)", "@dataclass(frozen=True)\nclass V:\n    some: set[Num]\n    one: R\n\nclass M(Model)"
    )
    out = [head, "    T: Annotated[set[P], NonEmpty]", "    po: P | None", "    net: Annotated[set[R], Bounded(2)]"]
    out += [f"    v: {t}", "    m: dict[C, " + t + "]"]
    start = {"P": "p", "V": "V(some=set(), one=R(x=0, b=False))", "Annotated[set[P], NonEmpty]": "{p}"}.get(t, "")
    out += ["    @initial", "    def start(s, p: P) -> None:", "        s.next.T = set(P)"]
    out += [f"        s.next.v = {start}", f"        s.next.m = {{k: {start} for k in C}}"] if start else []
    out += ["    @define", "    def put(s, p: P) -> None:", f"        s.next.v = {e}"]
    for way, effect in WAYS.items():
        out += [
            "    @action()",
            f"    def {way}(s, p: P) -> None:",
            *["        " + x for x in effect.format(e=e).split("\n")],
        ]
    keyed = {
        "at_key": f"s.next.m[C.RED] = {e}",
        "at_key_overwritten": f"s.next.m[C.RED] = {e}\ns.next.m[c] = s.v",
        "whole_then_key": f"s.next.m = {{k: {e} for k in C}}\ns.next.m[c] = s.v",
        "whole_then_both": f"s.next.m = {{k: {e} for k in C}}\ns.next.m[C.RED] = s.v\ns.next.m[C.BLUE] = s.v",
        "key_then_whole": f"s.next.m[c] = {e}\ns.next.m = s.m",
    }
    for way, effect in keyed.items():
        if "list[" in t and "s.next.m =" in effect:
            continue  # refused where sequences are assigned to
        out += [
            "    @action()",
            f"    def {way}(s, p: P, c: C) -> None:",
            *["        " + x for x in effect.split("\n")],
        ]
    return "\n".join(out) + "\n"


# ---- forms whose value matters
FORMS = (
    "s.n in {x for x in range(1, 3)}", "s.n - 1 in {x for x in range(0, 2)}", "s.n + 1 in {x for x in s.S}",
    "s.n in {x + 1 for x in s.S}", "s.n in {x * 2 for x in range(0, 3) if x != s.i}",
    "{x for x in range(1, N + 1)} <= s.S", "s.S <= {x for x in range(0, 2)}", "len({x for x in range(s.n, 3)}) == 2",
    "len({x // 2 for x in s.S}) < len(s.S)", "s.n in (s.S | {s.i})", "s.n in (s.S - {s.i})",
    "(s.S & {s.n, s.i}) == {s.n}", "s.S == {s.n}", "s.S != set()", "s.n - s.i < 1", "s.i - s.n == 1", "s.n * 3 > 4",
    "(s.n - 2) // 2 == -1", "(s.i - 2) % 2 == 1", "s.n // 2 == s.i % 2", "max(s.n, s.i) == 2",
    "min(s.n, s.i, 1) == 1", "max((x for x in s.S), default=-1) == s.n",
    "min((x + s.n for x in range(0, 3) if x > s.i), default=9) > 3",
    "max((x for x in range(-1, 2) if x < s.n), default=5) > 0", "sum(x for x in s.S) > 2",
    "sum(x * 2 for x in range(-1, 3) if x != s.n) == 2", "sum(1 for x in s.q) == 1",
    "sum(x for x in s.q if x > 0) == s.n", "sum(1 for p in P if s.m[p] > s.n) == 1", "len(P) == 2", "len(C) == s.n",
    "s.q == [s.n]", "s.q[:1] == [s.n]", "s.q[1:] == []", "s.q[:s.n] == s.q", "s.q[s.n:] == [s.i]",
    "s.q[1:2] == [s.n]", "(s.q + [s.n])[0] == s.n", "len(s.q + s.q) == 4", "s.n in s.q",
    "(s.q + s.q[1:]) == [s.n, s.i]", "s.q != s.q[:1]", "s.o == s.n", "s.o is None", "s.o == s.o2",
    "(s.o if s.bad else s.o2) != None", "(s.o if s.o is not None else 0) < s.n", "s.po == s.po2", "s.po in s.T",
    "all(s.po != p or s.m[p] > 0 for p in P)", "any(s.po == p and s.m[p] == s.n for p in P)", "majority(s.T)",
    "majority({p for p in P if s.m[p] == s.n})", "not majority(s.T) or s.n > 0", "s.T == set(P)",
    "s.rec == R(x=s.n, b=True)", "replace(s.rec, x=0) == s.rec", "s.rec.x > s.n", "R(x=s.n, b=s.bad) in s.net",
    "any(y.x == s.n and y.b for y in s.net)", "all(y.x < s.n for y in s.net)", "len(s.net) == 2", "s.net == {s.rec}",
    "len({y for y in s.net if y.b}) == 1", "(s.net - {s.rec}) == set()", "len({y.x for y in s.net}) == 2",
    "s.m == {p: s.n for p in P}", "all(s.m[p] == 0 for p in s.T)", "s.keys[s.n]", "s.c == C.BLUE",
    "s.c in (C.RED, C.BLUE)", "0 < s.n < 2", "s.n == s.i == 1", "(s.n > 0) == s.bad", "s.bad if s.n > 0 else s.i > 0",
    "not (s.n > 0 and s.i > 0)", "all(x > 0 or y > 0 for x in s.S for y in s.S)",
    "any(x > y for x in range(0, 3) for y in s.q)", "all(x != s.n for x in range(2, 1))",
    "any(x == s.n for x in range(s.i, 3))", "all(x in s.S for x in range(-1, s.n))",
    "s.T != {p for p in P if (max(s.m[q] for q in s.T) if s.T != set() else s.n) > s.m[p]}",
    "sum(1 for y in {R(x=s.n + 1, b=True)} if y.x > s.i) == 1",
    "s.o in range(0, 2)", "s.o not in range(s.n, 3)", "s.o2 in range(s.n + 1)",
    "s.o is None or s.o in range(1, s.n)", "len(set(s.q)) == 1",
)  # fmt: skip
"""Truth values whose parts are always defined: each is a claim about steps, so that every engine must say its value."""


def forms(first: int) -> str:
    """The model with a few of the forms as claims."""
    out = [HEAD, "    i: Num", "    o: Num | None", "    o2: Annotated[int, Range(0, 3)] | None", "    po: P | None"]
    out += [
        "    po2: P | None",
        "    T: set[P]",
        "    m: dict[P, Num]",
        "    c: C",
        "    net: Annotated[set[R], Bounded(2)]",
    ]
    out += ["    @action()", "    def put(s, k: Num) -> None:", "        s.next.i = k"]
    for i, f in enumerate(FORMS[first : first + EACH]):
        out += ["    @step()", f"    def form{i}(s) -> bool:", f"        return {f}"]
        out += ["    @witness", f"    def seen{i}(s) -> bool:", f"        return {f}"]
    return "\n".join(out) + "\n"


EACH = 8


# ---- what stays
FRAMES = {
    "at_key": "s.next.m[p] = s.n",
    "at_inner_key": "s.next.mm[c][s.n] = 1",
    "at_field": "s.next.rec.x = s.n",
    "at_key_and_field": "s.next.mr[p].b = s.bad",
    "in_cell": "require(len(s.q) > 1)\ns.next.q[1] = s.n",
    "at_two_keys": "s.next.m[p] = s.n\ns.next.m[r] = 0",
    "whole_then_key": "s.next.m = {k: 0 for k in P}\ns.next.m[p] = s.n",
    "key_then_whole": "s.next.m[p] = 2\ns.next.m = s.m",
    "in_if": "if s.bad:\n    s.next.m[p] = s.n\n    s.next.n = 0",
    "in_else": "if s.bad:\n    s.next.n = 0\nelif s.n > 0:\n    s.next.m[p] = 0\nelse:\n    s.next.bad = True",
}
STAYS = (
    "sum(1 for x in P if s.next.m[x] != s.m[x]) <= 1", "sum(1 for c in C if s.next.mm[c] != s.mm[c]) <= 1",
    "s.next.m[k] == s.m[k]", "s.next.m[k] >= s.m[k]",
    "all(s.next.mm[c][x] == s.mm[c][x] for c in C for x in range(0, N + 1))", "s.next.mm[C.RED][0] == s.mm[C.RED][0]",
    "s.next.rec.b == s.rec.b", "s.next.rec == s.rec", "s.next.mr[k].x == s.mr[k].x", "s.next.mr[k] == s.mr[k]",
    "s.next.q == s.q", "s.next.q[:1] == s.q[:1]", "s.next.n == s.n", "s.next.bad == s.bad",
)  # fmt: skip


def frames() -> str:
    """The model that assigns to parts, with claims that the other parts stay: many are false of some actions."""
    out = [HEAD, "    m: dict[P, Num]", "    mm: dict[C, dict[Num, Num]]", "    mr: dict[P, R]"]
    for name, effect in FRAMES.items():
        body = ["        " + x for x in effect.split("\n")]
        out += ["    @action()", f"    def {name}(s, p: P, r: P, c: C) -> None:", *body]
    for i, claim in enumerate(STAYS):
        out += ["    @step()", f"    def stays{i}(s, k: P) -> bool:", f"        return {claim}"]
    return "\n".join(out) + "\n"


# ---- a condition within a condition
GUARDED = (
    "(s.m[s.link[p]] if s.link[p] is not None else s.n) > 0",
    "s.link[p] is None or s.m[s.link[p]] == s.n",
    "(s.link[p] in s.T if s.link[p] is not None else s.bad)",
    "(max(s.m[q] for q in P if q in s.T) if s.T != set() else s.n) > s.m[p]",
    "(min(s.m[q] for q in P if s.link[q] == p) if any(s.link[q] == p for q in P) else 2) < 2",
    "len(s.q) > s.n and s.q[s.n] == s.m[p]",
)


def guarded() -> str:
    """The model that assigns the set of those for which a condition holds that guards what has no value elsewhere."""
    out = [HEAD, "    m: dict[P, Num]", "    T: set[P]", "    link: dict[P, P | None]"]
    for i, condition in enumerate(GUARDED):
        out += [
            "    @action()",
            f"    def chosen{i}(s) -> None:",
            f"        s.next.T = {{p for p in P if {condition}}}",
        ]
    for name, claim in {
        "linked": "p not in s.next.T or s.link[p] is not None",
        "alone": "p not in s.next.T or s.link[p] is None",
        "in": "p in s.next.T",
        "out": "p not in s.next.T",
        "low": "p not in s.next.T or s.n == 0",
    }.items():
        out += ["    @step()", f"    def {name}_(s, p: P) -> bool:", f"        return {claim}"]
    return "\n".join(out) + "\n"


# ---- a set that a condition and its own elements are asked of
SHARED = (
    "len(t) > 1",
    "any(s.link[q] is not None and q not in t for q in range(N + 1))",
    "t != s.S",
    "t <= s.S",
    "sum(q for q in t) > s.n",
    "max((q for q in t), default=0) > s.n",
    "all(s.link[q] == s.link[r] for q in t for r in t)",
)


def shared() -> str:
    """The model that assigns a set on a condition that asks of it: so do its elements, whether they are of the type."""
    out = [HEAD, "    link: dict[Num, P | None]", "    w: dict[P, dict[P, bool]]"]
    out += ["    few: dict[P, set[Annotated[int, Range(0, 1)]]]"]
    for i, condition in enumerate(SHARED):
        out += [
            "    @define",
            f"    def those{i}(s, k: P) -> set[Num]:",
            "        t = {q for q in range(N + 1) if s.link[q] is not None and s.w[k][s.link[q]]}",
            f"        return t if {condition} else set()",
            "    @action()",
            f"    def chosen{i}(s) -> None:",
            f"        s.next.few = {{k: s.those{i}(k) for k in P}}",
        ]
    return "\n".join(out) + "\n"


# ---- local names that an `if` assigns
BRANCHES = {
    "both": "if {c}:\n    x = 1\nelse:\n    x = 2\ns.next.n = x",
    "one": "x = 0\nif {c}:\n    x = 1\ns.next.n = x",
    "none_in_else": "x = s.n\nif {c}:\n    s.next.bad = x > 0\nelse:\n    x = 0\ns.next.n = x",
    "nested": "if {c}:\n    if s.n > 0:\n        x = 1\n    else:\n        x = 2\n    s.next.n = x",
    "nested_after": "x = 0\nif {c}:\n    x = x + 1\n    if s.n > 0:\n        x = x + 1\ns.next.n = x",
    "elif": "x = 0\nif s.n > 1:\n    s.next.n = 0\nelif {c}:\n    x = 1\n    s.next.n = x\nelse:\n    s.next.n = x",
    "chain": "if s.n > 1:\n    x = 0\nelif {c}:\n    x = 1\nelse:\n    x = 2\ns.next.n = x",
    "swapped": "x, y = 1, 2\nif {c}:\n    x, y = y, x\ns.next.n = max(x - y, 0)",
    "option": "x = None\nif {c}:\n    x = s.n\ns.next.o = x",
    "set": "x = set()\nif {c}:\n    x = {{s.n}}\ns.next.S = x",
    "sequence": "x = []\nif {c}:\n    x = s.q[:1]\ns.next.q = x",
    "record": "x = s.rec\nif {c}:\n    x = replace(x, x=s.n)\ns.next.rec = x",
    "record_of_fields": "x = R(x=0, b=False)\nif {c}:\n    x = s.rec\ns.next.rec = x",
    "in_comprehension": "x = 0\nif {c}:\n    x = 1\ns.next.S = {{y for y in range(0, N + 1) if y > x}}",
    "shadowed": "x = 0\nif {c}:\n    x = 1\ns.next.bad = all(x > s.n for x in range(0, 2)) or x > 0",
    "map_before": "x = 0\ny = {{k: k > x for k in range(0, N + 1)}}\nif {c}:\n    x = 1\ns.next.keys = y\ns.next.n = x",
    "test_changed": "x = s.n > 0\nif {c}:\n    x = not x\nif x:\n    s.next.n = 0",
    "guard_below": "x = 0\nif {c}:\n    x = 1\n    require(s.n > 0)\ns.next.n = x",
    "undefined_below": "x = 0\nif s.o is not None:\n    x = s.o + 0\ns.next.n = x",
    "undefined_later": "x = s.o\nif {c}:\n    x = 0\ns.next.n = x + 0",
    "helper": "s.next.n = s.chosen({c}, s.n)",
    "helper_in_and": "s.next.bad = s.n > 0 and s.chosen({c}, s.n) > 0",
}
"""What an action does with local names; `c` is a condition."""


def branches(condition: str) -> str:
    """The model with an action for each way to assign a local name below an `if`."""
    out = [HEAD, "    o: Num | None"]
    out += ["    @define", "    def chosen(s, c: bool, k: Num) -> int:"]
    out += ["        x = k", "        if c:", "            x = 0", "            if k > 1:", "                x = 1"]
    out += ["        return x"]
    for name, effect in BRANCHES.items():
        out += [
            "    @action()",
            f"    def {name}_(s, p: P) -> None:",
            *["        " + x for x in effect.format(c=condition).split("\n")],
        ]
    for i, claim in enumerate(
        (
            "s.next.n == 0",
            "s.next.n != 1",
            "s.next.n < 2",
            "s.next.o is None",
            "s.next.S == set()",
            "s.next.q == []",
            "s.next.rec == s.rec",
            "s.next.keys == s.keys",
            "not s.next.bad",
        )
    ):
        out += ["    @step()", f"    def leaves{i}(s) -> bool:", f"        return {claim}"]
    return "\n".join(out) + "\n"


# ---- abstract steps and starts that have no value, or are outside their types
ABSTRACT_STEPS = {
    "index": "require(s.q[0] > 0)\ns.next.n = 0",
    "index behind a guard": "require(s.n > 0)\nrequire(s.q[0] > 0)\ns.next.n = 0",
    "index of a parameter": "require(s.q[i] > 0)\ns.next.n = i",
    "unused name": "x = s.q[0]\ns.next.n = 0",
    "None": "s.next.n = s.o",
    "None that is overwritten": "s.next.n = s.o\nif s.bad:\n    s.next.n = 0",
    "None at a key": "s.next.keys[i] = s.o > 0",
    "key": "s.next.keys[s.n + 1] = s.bad",
    "beyond": "s.next.n = s.n + 1",
    "parameter beyond": "s.next.n = s.n + i",
    "too long": "s.next.q = s.q + [i]",
    "branches": "x = 0\nif s.bad:\n    x = s.q[0]\ns.next.n = x",
}
ABSTRACT_STARTS = {
    "after the first value": "s.next.n = s.n + 1",
    "of the first values": "s.next.bad = s.n == 0 and not s.bad",
    "some beyond": "s.next.n = s.n + i + 1",
    "some without a value": "require(i == 0 or s.q[0] > 0)\ns.next.n = i",
    "a key": "s.next.keys[s.n] = s.bad\ns.next.keys[i] = True",
}


def refining(body: str, start: str) -> str:
    """A model that goes anywhere, and shows what it is, or one more; the abstract one has that action, or that start,
    and one action that is a step always."""
    variables, given = HEAD.partition("class M(Model):\n")[2], ("n", "bad", "keys", "rec", "S", "q", "o", "T")
    variables += "    o: Num | None\n    T: Annotated[set[P], NonEmpty]\n"
    out = [HEAD.partition("class M(Model):\n")[0] + "class A(Model):\n" + variables]
    out += ["    @initial", "    def start(s, p: P, i: Num) -> None:", "        s.next.T = {p}"]
    out += ["        " + x for x in start.split("\n") if x]
    for name, text in (("fails", body), ("zero", "s.next.n = 0"), ("gives", "s.next.n = i\ns.next.bad = True")):
        lines = ["        " + x for x in text.split("\n") if x]
        out += ["    @action()", f"    def {name}(s, p: P, i: Num) -> None:", *lines] if lines else []
    out += ["class M(Model):\n" + variables]
    out += ["    @initial", "    def start(s, p: P, i: Num) -> None:", "        s.next.T = {p}", "        s.next.n = i"]
    for name, text in {
        "number": "s.next.n = i", "flip": "s.next.bad = not s.bad", "key": "s.next.keys[i] = s.bad",
        "field": "s.next.rec.x = i", "grow": "require(len(s.q) < L)\ns.next.q = s.q + [i]",
        "add": "s.next.S = s.S | {i}", "some": "s.next.o = i", "both": "s.next.n = i\ns.next.bad = True",
        "members": "s.next.T = {p}",
    }.items():  # fmt: skip
        out += ["    @action()", f"    def {name}(s, p: P, i: Num) -> None:"]
        out += ["        " + x for x in text.split("\n")]
    shown = ", ".join(f"{n}=s.{n}" for n in given if n != "n")
    for name, value in {"same": "s.n", "more": "(s.n + 1 if s.bad else s.n)"}.items():
        out += ["    @refines(A)", f"    def {name}(s) -> A:", f"        return A.shown(n={value}, {shown})"]
    return "\n".join(out) + "\n"


# ---- records wider than a word, and sets of records made over a sort
WIDE = """
@dataclass(frozen=True)
class W:
    a: Half
    b: Half
    c: Half
    d: Half

@dataclass(frozen=True)
class X:
    w: W
    b: bool

@dataclass(frozen=True)
class To:
    p: P

class M(Model):
    n: Num
    w: W
    ow: W | None
    ox: X | None
    mx: dict[C, X | None]
    S: set[P]
    net: Annotated[set[To], Bounded(2)]

    @initial
    def start(s) -> None:
        s.next.w = W(a=65535, b=65535, c=65535, d=65535)

    @action()
    def put(s) -> None:
        s.next.ow = s.w

    @action()
    def wrap(s, c: C) -> None:
        require(s.ow is not None)
        s.next.ox = X(w=s.ow, b=s.n > 0)
        s.next.mx[c] = s.ox

    @action()
    def unwrap(s) -> None:
        require(s.ox is not None)
        s.next.w = s.ox.w if s.ox.b else W(a=0, b=1, c=2, d=3)

    @action()
    def up(s) -> None:
        require(s.n < N)
        s.next.n = s.n + 1

    @action()
    def choose(s, p: P) -> None:
        s.next.S = s.S | {p}

    @action()
    def send(s) -> None:
        s.next.net = {To(p=p) for p in s.S}

    @action()
    def send_all(s) -> None:
        require(s.n == 0)
        s.next.net = s.net | {To(p=p) for p in P}

    @invariant()
    def sent(s) -> bool:
        return len(s.net) <= len(P)

    @witness
    def wide(s) -> bool:
        return s.ox is not None and s.ox.w.a == 65535 and any(s.mx[c] == s.ox for c in C)

    @step()
    def kept(s) -> bool:
        return s.ow is None or s.next.ow is not None
"""


def wide() -> str:
    """The model with options of records of 64 and 65 bits, and with sets made over a sort."""
    return modules.HEAD + "Half = Annotated[int, Range(0, 65535)]\n" + WIDE


def every() -> dict[str, str]:
    """Every template by its name. Those that begin with a partial operation's have a claim of each kind."""
    out = _of(PARTIALS)
    out |= {f"{name} leaves its type": leaving(name) for name in LEAVING}
    out["frames"] = frames()
    out["guarded"] = guarded()
    out["shared"] = shared()
    out |= {f"forms from {i}": forms(i) for i in range(0, len(FORMS), EACH)}
    out |= _of(LATER)
    out |= {f"branches on {c}": branches(c) for c in ("s.bad", "s.n < 2", "any(x > s.n for x in s.q)")}
    out |= {f"{name} in an abstract step": refining(text, "s.next.n = i") for name, text in ABSTRACT_STEPS.items()}
    out |= {f"{name} in an abstract start": refining("", text) for name, text in ABSTRACT_STARTS.items()}
    return out | {"wide records": wide(), "wide records in every run": wide()}


def _of(partials: tuple[Partial, ...]) -> dict[str, str]:
    out = {f"{p.name} everywhere": places(p) for p in partials}
    for i, p in enumerate(partials):
        for kind in ("invariant", "lemma"):
            claim = CLAIMS[(i + (kind == "lemma")) % len(CLAIMS)]
            out[f"{p.name} in {kind} {claim}"] = claimed(p, claim, kind)
    return out
