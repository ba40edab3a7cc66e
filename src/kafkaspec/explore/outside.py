"""What a transition leaves, for people to read, also where a value is none of its variable's type and has no code.

The action is read as its machine code is made, but of one state, whose words are numbers: then every number, truth
value and code that the reader gives is one that is known. What has parts is put together from them, in JSON's shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafkaspec.explore.code import Env, Reader, records
from kafkaspec.explore.emit import Bit, Emitter, Num
from kafkaspec.explore.layout import Layout
from kafkaspec.language.expr import Expr
from kafkaspec.language.model import Action
from kafkaspec.language.trace import Value
from kafkaspec.language.types import T


def left(layout: Layout, action: Action, arguments: Mapping[str, int], before: Sequence[int]) -> dict[str, Value]:
    """The state that an action leaves after the state `before`. `arguments` are an instance's (see `program`)."""
    reader = Reader(layout, Emitter(1), list(before))
    env: Env = dict(arguments)
    for p, s in records(action).items():
        env[p.aux] = reader.drawn(s, arguments[p.aux])[1]
    return _Reading(layout, reader).after(action, env, layout.decode(before))


@dataclass
class _Reading:
    """Values of expressions in the one state that the reader has."""

    layout: Layout
    reader: Reader

    def after(self, action: Action, env: Env, state: dict[str, Value]) -> dict[str, Value]:
        """The state with the assignments made."""
        out = dict(state)
        for u in action.updates:
            if u.var in self.layout.place and self.true(self.reader.truth(u.cond, env)):
                out[u.var] = self.put(self.layout.vars[u.var], out[u.var], u.keys, env, self.value(u.value, env))
        return out

    def put(self, t: T, old: Value, keys: Sequence[Expr], env: Env, new: Value) -> Value:
        """A value with another at a place in it."""
        if not keys:
            return new
        k, rest = keys[0], keys[1:]
        match t.kind:
            case "rec":
                name, f = t.fields[k.aux]
                return {**old, name: self.put(f, old[name], rest, env, new)}
            case "seq":
                i = self.known(self.reader.number(k, env))
                return [self.put(t.item, x, rest, env, new) if j == i else x for j, x in enumerate(old)]
        key = str(self.layout.nth(t.domain, self.known(self.reader.position(k, t.domain, env))))
        return {n: self.put(t.item, x, rest, env, new) if n == key else x for n, x in old.items()}

    def value(self, x: Expr, env: Env) -> Value:
        """The value of an expression: of any type, so that its parts are looked at where one may have no code."""
        a, r = x.args, self.reader
        match x.op:
            case "only":
                return self.value(a[1], env)
            case "ite":
                return self.value(a[1] if self.true(r.truth(a[0], env)) else a[2], env)
            case "none":
                return None
            case "some" | "get":
                return self.value(a[0], env)
            case "rec":
                return {n: self.value(y, env) for (n, _), y in zip(x.t.fields, a, strict=True)}
            case "mapof":
                domain = self.layout.values(a[0].t)
                bodies = [self.value(a[1], {**env, a[0].aux: v}) for v in domain]
                return {str(self.layout.nth(a[0].t, i)): v for i, v in enumerate(bodies)}
            case "append":
                return [*self.value(a[0], env), self.value(a[1], env)]
            case "concat":
                return [*self.value(a[0], env), *self.value(a[1], env)]
            case "take":
                return self.value(a[0], env)[: self.known(r.number(a[1], env))]
            case "drop":
                return self.value(a[0], env)[self.known(r.number(a[1], env)) :]
            case "empty" | "emptyseq":
                return []
            case "with":
                return _set([*self.value(a[0], env), self.value(a[1], env)])
            case "without":
                gone = self.value(a[1], env)
                return [y for y in self.value(a[0], env) if y != gone]
            case "union":
                return _set([*self.value(a[0], env), *self.value(a[1], env)])
            case "inter" | "diff":
                other = self.value(a[1], env)
                return [y for y in self.value(a[0], env) if (y in other) == (x.op == "inter")]
            case "setof":
                return _set([self.value(a[0], inner) for inner in self.chosen(x, env)])
            case "image":
                return _set([self.value(a[2], inner) for inner in self.chosen(x, env)])
        if x.t.numeric:
            return self.known(r.number(x, env))
        if x.t.kind == "bool":
            return self.true(r.truth(x, env))
        return self.layout.show(x.t, self.known(r.own(x, env)))

    def chosen(self, x: Expr, env: Env) -> Iterator[Env]:
        """The environments in which a comprehension's condition holds."""
        return (inner for there, inner in self.reader.chosen(x.args[0], x.args[1], env) if self.true(there))

    def known(self, n: Num) -> int:
        assert isinstance(n, int), n
        return n

    def true(self, b: Bit) -> bool:
        assert isinstance(b, bool), b
        return b


def _set(items: Sequence[Value]) -> Value:
    """A set as traces show it."""
    out: list[Value] = []
    for x in items:
        if x not in out:
            out.append(x)
    return sorted(out, key=str)
