"""The graph that loading a text gives, evaluated as plainly as can be: it tells a fault of the loader from one of an
engine, which all walk this graph.

Values: numbers, truth values, members and elements themselves; None or the value of an option; a dict, a frozenset, a
tuple for a map, a set, a sequence; a record is ("rec", its fields).
"""

from __future__ import annotations

import enum
import itertools
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kafkaspec.language import Action, Expr, T
from kafkaspec.language.concrete import Concrete, State
from kafkaspec.language.defined import defined

Kind = Literal["after", "disabled", "undefined", "outside"]


class NoValue(Exception):
    """An expression was evaluated that has no value: the condition that guards it says that it has one."""


def plain(c: Concrete, t: T, v: Any) -> Any:
    """A frozen value as it is here."""
    match t.kind:
        case "map":
            return {k: plain(c, t.item, x) for k, x in zip(c.values(t.domain), v, strict=True)}
        case "set":
            return frozenset(plain(c, t.item, x) for x in v)
        case "seq":
            return tuple(plain(c, t.item, x) for x in v)
        case "option":
            return None if v is None else plain(c, t.item, v[0])
        case "rec":
            return ("rec", tuple(plain(c, f, x) for (_, f), x in zip(t.fields, v, strict=True)))
    return v


@dataclass
class Graph:
    """A model's graph at the sizes of a `Concrete`."""

    c: Concrete

    def values(self, t: T) -> list[Any]:
        """Every value of a bound variable's type."""
        match t.kind:
            case "rec":
                return [("rec", v) for v in itertools.product(*[self.values(f) for _, f in t.fields])]
            case "set":
                items = self.values(t.item)
                return [
                    frozenset(x)
                    for n in range(int(t.nonempty), len(items) + 1)
                    for x in itertools.combinations(items, n)
                ]
            case "option":
                return [None, *self.values(t.item)]
        return self.c.values(t)

    def state(self, s: State) -> dict[str, Any]:
        return {n: plain(self.c, t, v) for (n, t), v in zip(self.c.vars.items(), s, strict=True)}

    def holds(self, e: Expr, now: Mapping[str, Any], after: Mapping[str, Any] | None = None) -> bool:
        """Is a claim defined and true?"""
        return bool(self.value(defined(e), {}, now, after)) and bool(self.value(e, {}, now, after))

    def outcome(self, a: Action, env: dict[str, Any], now: Mapping[str, Any]) -> tuple[Kind, dict[str, Any] | None]:
        """What an action comes to."""
        held = 0
        needs = sorted(a.needs, key=lambda n: n.after)
        for need in needs:
            while held < need.after:
                if not self.value(a.guard[held], env, now):
                    return "disabled", None
                held += 1
            if not self.value(need.defined, env, now):
                return "undefined", None
        for g in a.guard[held:]:
            if not self.value(g, env, now):
                return "disabled", None
        if not all(self.value(e, env, now) for _, e in a.typed(self.c.model.vars)):
            return "outside", None
        after = dict(now)
        for u in a.updates:
            if self.value(u.cond, env, now):
                keys = [self.value(k, env, now) for k in u.keys]
                try:
                    value = self.value(u.value, env, now)
                except NoValue:  # None in a variable that is no option: overwritten, or it were outside its type
                    value = None
                after[u.var] = put(self.c.vars[u.var], after[u.var], keys, value)
        return "after", after

    def chosen(self, v: Expr, env: dict[str, Any], now: Any, after: Any, cond: Expr) -> Iterator[dict[str, Any]]:
        """The bindings of a bound variable that a condition lets pass."""
        for x in self.values(v.t):
            inner = {**env, v.aux: x}
            if self.value(cond, inner, now, after):
                yield inner

    def value(self, e: Expr, env: dict[str, Any], now: Mapping[str, Any], after: Any = None) -> Any:
        """The value of an expression; `and`, `or` and conditions guard what stands behind them."""
        a = e.args

        def go(x: Expr) -> Any:
            return self.value(x, env, now, after)

        def per(v: Expr, x: Expr) -> Iterator[Any]:
            return (self.value(x, {**env, v.aux: y}, now, after) for y in self.values(v.t))

        match e.op:
            case "const":
                return (
                    list(typing.cast(type[enum.Enum], e.t.cls))[e.aux] if e.t.kind == "enum"
                    else bool(e.aux) if e.t.kind == "bool" else e.aux
                )  # fmt: skip
            case "size":
                return self.c.sizes[e.aux]
            case "sortsize":
                return self.c.sizes[e.aux]
            case "bound":
                return env[e.aux]
            case "var":
                return now[e.aux]
            case "nextvar":
                return after[e.aux]
            case "and":
                return all(go(x) for x in a)
            case "or":
                return any(go(x) for x in a)
            case "not":
                return not go(a[0])
            case "ite":
                return go(a[1]) if go(a[0]) else go(a[2])
            case "only":
                return go(a[1])
            case "must":
                return True
            case "eq":
                return go(a[0]) == go(a[1])
            case "lt":
                return _number(go(a[0])) < _number(go(a[1]))
            case "le":
                return _number(go(a[0])) <= _number(go(a[1]))
            case "add":
                return _number(go(a[0])) + _number(go(a[1]))
            case "sub":
                return _number(go(a[0])) - _number(go(a[1]))
            case "mul":
                return _number(go(a[0])) * _number(go(a[1]))
            case "div":
                return _number(go(a[0])) // go(a[1])
            case "mod":
                return _number(go(a[0])) % go(a[1])
            case "none":
                return None
            case "some":
                return go(a[0])
            case "get":
                v = go(a[0])
                if v is None:
                    raise NoValue
                return v
            case "idx":
                return _found(go(a[0]), go(a[1]))
            case "at":
                q, i = go(a[0]), go(a[1])
                if not 0 <= i < len(q):
                    raise NoValue
                return q[i]
            case "field":
                return go(a[0])[1][e.aux]
            case "rec":
                return ("rec", tuple(map(go, a)))
            case "len" | "card":
                return len(go(a[0]))
            case "emptyseq":
                return ()
            case "append":
                return (*go(a[0]), go(a[1]))
            case "concat":
                return (*go(a[0]), *go(a[1]))
            case "take" | "drop":
                q, n = go(a[0]), go(a[1])
                if n < 0:
                    raise NoValue
                return q[:n] if e.op == "take" else q[n:]
            case "empty":
                return frozenset()
            case "full":
                return frozenset(self.values(e.t.item))
            case "with":
                return go(a[0]) | {go(a[1])}
            case "without":
                return go(a[0]) - {go(a[1])}
            case "union":
                return go(a[0]) | go(a[1])
            case "inter":
                return go(a[0]) & go(a[1])
            case "diff":
                return go(a[0]) - go(a[1])
            case "subset":
                return go(a[0]) <= go(a[1])
            case "in":
                return go(a[0]) in go(a[1])
            case "majority":
                return 2 * len(go(a[0])) > len(self.values(a[0].t.item))
            case "forall":
                return all(per(a[0], a[1]))
            case "exists":
                return any(per(a[0], a[1]))
            case "mapof":
                return {x: self.value(a[1], {**env, a[0].aux: x}, now, after) for x in self.values(a[0].t)}
            case "count":
                return sum(1 for _ in self.chosen(a[0], env, now, after, a[1]))
            case "setof":
                return frozenset(x[a[0].aux] for x in self.chosen(a[0], env, now, after, a[1]))
            case "sum" | "image" | "greatest" | "least":
                found = [self.value(a[2], x, now, after) for x in self.chosen(a[0], env, now, after, a[1])]
                if e.op == "sum":
                    return sum(found)
                if e.op == "image":
                    return frozenset(found)
                if not found and len(a) < 4:
                    raise NoValue
                return (max(found) if e.op == "greatest" else min(found)) if found else go(a[3])
        raise AssertionError(f"no value of {e.op}")


def _number(x: Any) -> Any:
    if x is None:
        raise NoValue
    return x


def _found(m: Any, k: Any) -> Any:
    if k not in m:
        raise NoValue
    return m[k]


def put(t: T, old: Any, keys: list[Any], new: Any) -> Any:
    """A value with another at a place in it."""
    if not keys:
        return new
    k, rest = keys[0], keys[1:]
    match t.kind:
        case "rec":
            return (
                "rec",
                tuple(
                    put(f, x, rest, new) if i == k else x
                    for i, ((_, f), x) in enumerate(zip(t.fields, old[1], strict=True))
                ),
            )
        case "seq":
            return tuple(put(t.item, x, rest, new) if i == k else x for i, x in enumerate(old))
    return {i: put(t.item, x, rest, new) if i == k else x for i, x in old.items()}


def bound(c: Concrete, t: T, v: Any) -> Any:
    """An argument that the text takes, as it is here."""
    return plain(c, t, c._freeze(t, v, "argument")) if t.kind in ("set", "rec", "option") else v
