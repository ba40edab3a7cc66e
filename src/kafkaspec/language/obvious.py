"""What an expression's form alone shows to be true, in every state: that `q[i]` is there where `i < len(q)` guards it.

Most conditions of "has a value" are of that kind. A denied condition is opened into literals; it is contradictory if
two parts deny each other, or if its comparisons have no solution as differences of numbers (x - y <= c), given the
limits of the types. Nothing is assumed of the model's states but the types.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkaspec.language.expr import FALSE, TRUE, Expr, limits, node, not_, number, or_
from kafkaspec.language.parts import kept

CASES = 200
"""At most this many cases are distinguished; with more, nothing is said."""

Edges = dict[tuple[int, int], int]
"""x - y <= c, by the numbers of x and y."""
ZERO = -1
_known: dict[int, bool] = {}


def obvious(e: Expr) -> bool:
    """Does the form alone show that it is true?"""
    if e.id not in _known:
        _known[e.id] = _Cases().contradictory([not_(kept(e))], {}, frozenset())
    return _known[e.id]


def essential(parts: Iterable[Expr], given: Iterable[Expr] = ()) -> list[Expr]:
    """Those of some conditions whose form, with what is given and the conditions before, does not show that they are
    true: where these hold, all do."""
    out: list[Expr] = []
    denied = [not_(kept(g)) for g in given]
    for p in parts:
        if not obvious(p) and not obvious(or_(*denied, p)):
            out.append(p)
            denied.append(not_(kept(p)))
    return out


class _Cases:
    def __init__(self) -> None:
        self.left = CASES

    def contradictory(self, todo: list[Expr], literals: dict[int, Expr], named: frozenset[str]) -> bool:
        """Can these not be true together? A bound variable in `named` stands for one value already, so that it cannot
        stand for what another quantifier says there is."""
        todo, literals, choices = list(todo), dict(literals), list[list[Expr]]()
        while todo:
            e = kept(todo.pop())
            inner = kept(e.args[0]) if e.op == "not" else e
            if e is FALSE or (inner is TRUE and e.op == "not"):
                return True
            if e is TRUE or inner.op == "must" or (inner is FALSE and e.op == "not"):
                continue
            if not_(e).id in literals:
                return True
            literals[e.id] = e
            match (e.op, inner.op):
                case ("and", _):
                    todo += e.args
                case ("not", "or"):
                    todo += map(not_, inner.args)
                case ("exists", _) | ("not", "forall") if inner.args[0].aux not in named:
                    named |= {inner.args[0].aux}
                    todo.append(e.args[1] if e is inner else not_(kept(inner.args[1])))
                case ("or", _):
                    choices.append(list(e.args))
                case ("not", "and"):
                    choices.append([not_(kept(x)) for x in inner.args])
                case ("not", "subset") if inner.args[0] is inner.args[1]:
                    return True
                case ("not", "not"):
                    todo.append(inner.args[0])
        if _unsolvable(literals.values()):
            return True
        for i, choice in enumerate(choices):
            self.left -= len(choice)
            if self.left < 0:
                return False
            rest = [_any(c) for c in choices[i + 1 :]]
            if all(self.contradictory([x, *rest], literals, named) for x in choice):
                return True
        return False


def _any(parts: list[Expr]) -> Expr:
    return node("or", TRUE.t, *parts)


def _unsolvable(literals: object) -> bool:
    """Have the comparisons among these no solution?"""
    edges: Edges = {}
    seen: set[int] = set()
    apart: list[tuple[tuple[int, int], tuple[int, int]]] = []

    def say(x: tuple[int, int], y: tuple[int, int], c: int) -> None:
        """x - y <= c."""
        k, c = (x[0], y[0]), c - x[1] + y[1]
        edges[k] = min(c, edges.get(k, c))

    def term(e: Expr) -> tuple[int, int]:
        """A number as a term and a constant; what its limits say is noted."""
        e = kept(e)
        if e.op == "const":
            return ZERO, int(e.aux)
        if e.op in ("add", "sub") and kept(e.args[1]).op == "const":
            base, c = term(e.args[0])
            by = int(kept(e.args[1]).aux)
            return base, c + by if e.op == "add" else c - by
        if e.id not in seen:
            seen.add(e.id)
            if e.op in ("size", "sortsize"):
                say((ZERO, 0), (e.id, 0), -1)
            else:
                lo, hi = limits(e)
                if lo is not None and lo is not e:
                    say(term(number(lo)), (e.id, 0), 0)
                if hi is not None and hi is not e:
                    say((e.id, 0), term(number(hi)), 0)
        return e.id, 0

    for e in literals:  # type: ignore[attr-defined]
        yes, a = e.op != "not", e if e.op != "not" else kept(e.args[0])
        if a.op not in ("lt", "le", "eq") or not a.args[0].t.numeric:
            continue
        x, y = map(term, a.args)
        if a.op == "eq":
            if yes:
                say(x, y, 0)
                say(y, x, 0)
            else:
                apart.append((x, y))
        elif yes:
            say(x, y, -1 if a.op == "lt" else 0)
        else:
            say(y, x, 0 if a.op == "lt" else -1)
    if _cycle(edges):
        return True
    for x, y in apart:  # x != y: both x < y and x > y must have no solution
        one, two = dict(edges), dict(edges)
        for some, p, q in ((one, x, y), (two, y, x)):
            k, c = (p[0], q[0]), -1 - p[1] + q[1]
            some[k] = min(c, some.get(k, c))
        if _cycle(one) and _cycle(two):
            return True
        if _cycle(one):
            edges = two
        elif _cycle(two):
            edges = one
    return False


def _cycle(edges: Edges) -> bool:
    """Do the differences around some circle add up to less than 0?"""
    nodes = {n for k in edges for n in k}
    far = dict.fromkeys(nodes, 0)
    for _ in range(len(nodes) + 1):
        changed = False
        for (x, y), c in edges.items():
            if x == y and c < 0:
                return True
            if far[y] + c < far[x]:
                far[x], changed = far[y] + c, True
        if not changed:
            return False
    return True
