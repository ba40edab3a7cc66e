"""Expressions: one hash-consed, typed graph, which every reading walks.

The constructors here check types and fold constants; they are what the rewritten text of a model calls. `ModelError`
is raised with a message only; the loader adds the model's file and line.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, cast

from kafkaspec.errors import UserError
from kafkaspec.language.types import BOOL, INT, Sort, T, make, resolve

sizes_now: ContextVar[Mapping[str, int | bool] | None] = ContextVar("sizes_now", default=None)
"""While a text runs on concrete states: the values of its sizes and flags."""

tracing: ContextVar[Any] = ContextVar("tracing", default=None)
"""While a text is read symbolically: the loader's Trace."""


class ModelError(UserError):
    """A text that the language cannot read: `file:line: what is wrong`."""


class Expr:
    """A node of the graph. Equal nodes are one object; `==` on nodes builds a node, so compare with `is`."""

    __slots__ = ("args", "aux", "free", "id", "loc", "op", "t")
    op: str
    t: T
    args: tuple[Expr, ...]
    aux: Any
    id: int
    free: frozenset[str]
    loc: tuple[str, int] | None

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise ModelError("a symbolic truth value was tested by plain Python: decorate the helper function with @define")

    def __iter__(self) -> Any:
        raise ModelError(
            "a symbolic value was iterated by plain Python: use all(), any() or a comprehension in a model's text"
        )

    def __repr__(self) -> str:
        return show(self)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return eq(self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return not_(eq(self, other))

    def __lt__(self, other: Any) -> Expr:
        return less(self, other)

    def __gt__(self, other: Any) -> Expr:
        return less(other, self)

    def __le__(self, other: Any) -> Expr:
        return less(self, other, equal=True)

    def __ge__(self, other: Any) -> Expr:
        return less(other, self, equal=True)

    def __add__(self, other: Any) -> Expr:
        return plus(self, other)

    def __radd__(self, other: Any) -> Expr:
        return plus(other, self)

    def __sub__(self, other: Any) -> Expr:
        return minus(self, other)

    def __rsub__(self, other: Any) -> Expr:
        return minus(other, self)

    def __or__(self, other: Any) -> Expr:
        return _setop("union", self, other)

    def __and__(self, other: Any) -> Expr:
        return _setop("inter", self, other)

    def __getitem__(self, key: Any) -> Expr:
        return index(self, key)

    def __getattr__(self, name: str) -> Expr:
        if name.startswith("__"):
            raise AttributeError(name)
        return field(self, name)


_nodes: dict[Any, Expr] = {}


def node(op: str, t: T, *args: Expr, aux: Any = None) -> Expr:
    """The one node of that operation, type, arguments and constant."""
    k = (op, id(t), aux, *[a.id for a in args])
    e = _nodes.get(k)
    if e is None:
        e = Expr.__new__(Expr)
        e.op, e.t, e.args, e.aux, e.id, e.loc = op, t, args, aux, len(_nodes), _location()
        free: frozenset[str] = frozenset().union(*[a.free for a in args])
        if op == "bound":
            free = frozenset([aux])
        if op in BINDERS:
            free -= {args[0].aux}
        e.free = free
        _nodes[k] = e
    return e


BINDERS = frozenset(("forall", "exists", "greatest", "least", "count", "setof", "mapof"))


def _location() -> tuple[str, int] | None:
    trace = tracing.get()
    if trace is None:
        return None
    f = sys._getframe(2)
    while f is not None:
        if f.f_code.co_filename in trace.files:
            return f.f_code.co_filename, f.f_lineno
        f = f.f_back  # type: ignore[assignment]
    return None


TRUE, FALSE = node("const", BOOL, aux=1), node("const", BOOL, aux=0)


# ---- sizes and flags -----------------------------------------------------------------------------------------------
class SizeName:
    """A constant of the model: its value while a text runs on concrete states, its symbol otherwise."""

    def __init__(self, name: str, t: T) -> None:
        self.name, self.expr = name, node("size", t, aux=name)

    def _now(self) -> Any:
        known = sizes_now.get()
        if known is None:
            return self.expr
        if self.name not in known:
            raise UserError(f"size {self.name} is not given")
        return known[self.name]

    def __repr__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self._now())

    def __bool__(self) -> bool:
        return bool(self._now())

    def __index__(self) -> int:
        return int(self._now())

    def __eq__(self, o: object) -> Any:
        return self._now() == plain(o)

    def __ne__(self, o: object) -> Any:
        return self._now() != plain(o)

    def __lt__(self, o: Any) -> Any:
        return self._now() < plain(o)

    def __gt__(self, o: Any) -> Any:
        return self._now() > plain(o)

    def __le__(self, o: Any) -> Any:
        return self._now() <= plain(o)

    def __ge__(self, o: Any) -> Any:
        return self._now() >= plain(o)

    def __add__(self, o: Any) -> Any:
        return self._now() + plain(o)

    def __radd__(self, o: Any) -> Any:
        return plain(o) + self._now()

    def __sub__(self, o: Any) -> Any:
        return self._now() - plain(o)

    def __rsub__(self, o: Any) -> Any:
        return plain(o) - self._now()


def plain(x: Any) -> Any:
    """A size by its value or symbol; anything else itself."""
    return x._now() if isinstance(x, SizeName) else x


def Size(name: str) -> int:
    """A constant of the model: a number >= 1, given when it is explored, a symbol in the unbounded reading."""
    return cast(int, SizeName(name, INT))


def Flag(name: str) -> bool:
    """A constant of the model that is true or false."""
    return cast(bool, SizeName(name, BOOL))


def size_value(x: Any) -> int | Expr | None:
    """A limit of a type: a number, or an expression over sizes."""
    if isinstance(x, SizeName):
        return x.expr
    if x is None or isinstance(x, int | Expr):
        return x
    raise ModelError(f"{x!r} is no limit: a whole number or a size")


def static(x: int | Expr | None, sizes: Mapping[str, int | bool]) -> int:
    """The value of an expression over sizes alone. Raises UserError when it has none or a size is missing."""
    if x is None:
        raise UserError("a number without an upper limit has no place in the explicit reading")
    if isinstance(x, int):
        return x
    a = [static(y, sizes) for y in x.args] if x.op != "ite" else []
    match x.op:
        case "const":
            return int(x.aux)
        case "size":
            if x.aux not in sizes:
                raise UserError(f"size {x.aux} is not given")
            return int(sizes[x.aux])
        case "add":
            return a[0] + a[1]
        case "sub":
            return a[0] - a[1]
        case "lt":
            return int(a[0] < a[1])
        case "le":
            return int(a[0] <= a[1])
        case "ite":
            return static(x.args[1] if static(x.args[0], sizes) else x.args[2], sizes)
    raise UserError(f"{x!r} is not a constant")


# ---- from Python values to nodes -----------------------------------------------------------------------------------
class SetLiteral:
    """`{a, b}` or `set()` in a text, until its type is known."""

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = list(items)

    def __or__(self, other: Any) -> Any:
        return SetLiteral(self.items + other.items) if isinstance(other, SetLiteral) else _setop("union", other, self)

    __ror__ = __or__


class MapLiteral:
    """`{k: e for k in D}` in a text, until its type is known."""

    def __init__(self, domain: Any, value: Callable[[Any], Any], name: str) -> None:
        self.domain, self.value, self.name = domain, value, name


def typeof(x: Any) -> T | None:
    """The type of a constant or node, where it can be told from it alone."""
    x = plain(x)
    if isinstance(x, Expr):
        return x.t
    if isinstance(x, bool):
        return BOOL
    if isinstance(x, int):
        return INT
    if isinstance(x, enum.Enum):
        return resolve(type(x))
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return resolve(type(x))
    return None


def same(a: T, b: T) -> bool:
    """May a value of type b stand where one of type a is wanted (limits apart)?"""
    if a is b or (a.numeric and b.numeric):
        return True
    if a.kind != b.kind:
        return False
    if a.kind in ("option", "set", "seq"):
        return same(a.item, b.item)
    if a.kind == "map":
        return same(a.domain, b.domain) and same(a.item, b.item)
    return False


def lift(x: Any, t: T) -> Expr:
    """x as a node of type t: constants, and the coercions X -> X | None, X | None -> X. Raises ModelError otherwise."""
    x = plain(x)
    if isinstance(x, Expr):
        if same(t, x.t):
            return x
        if t.kind == "option" and same(t.item, x.t):
            return node("some", t, x)
        if x.t.kind == "option" and same(t, x.t.item):
            return node("get", x.t.item, x)
        raise ModelError(f"{show(x)} is of type {x.t!r}, where {t!r} is wanted")
    if t.kind == "option":
        return node("none", t) if x is None else node("some", t, lift(x, t.item))
    if isinstance(x, SetLiteral) and t.kind == "set":
        s = node("empty", make("set", elem=t.item))
        for y in x.items:
            s = node("with", s.t, s, lift(y, t.item))
        return s
    if isinstance(x, list) and t.kind == "seq":
        q = node("emptyseq", t)
        for y in x:
            q = node("append", t, q, lift(y, t.item))
        return q
    if isinstance(x, MapLiteral) and t.kind == "map":
        v = bound_over(x.domain, x.name)
        if not same(t.domain, v.t):
            raise ModelError(f"a map over {t.domain!r} is made from a comprehension over {v.t!r}")
        v = bound(t.domain, x.name)
        return node("mapof", t, v, lift(x.value(v), t.item))
    if dataclasses.is_dataclass(x) and not isinstance(x, type) and t.kind == "rec" and type(x) is t.cls:
        return node("rec", t, *[lift(getattr(x, n), ft) for n, ft in t.fields])
    if isinstance(x, enum.Enum) and t.kind == "enum" and type(x) is t.cls:
        return node("const", t, aux=list(type(x)).index(x))
    if isinstance(x, bool) and t.kind == "bool":
        return TRUE if x else FALSE
    if isinstance(x, int) and not isinstance(x, bool) and t.numeric:
        return node("const", INT, aux=x)
    if isinstance(x, type) and issubclass(x, Sort) and t.kind == "set" and t.item is resolve(x):
        return node("full", make("set", elem=t.item))
    raise ModelError(f"{x!r} stands where a value of type {t!r} is wanted")


def symbolic(x: Any) -> Expr:
    """x as a node of its own type. Raises ModelError when the type cannot be told."""
    t = typeof(x)
    if t is None:
        raise ModelError(f"the type of {x!r} cannot be told here")
    return lift(x, t)


def number(x: Any) -> Expr:
    return lift(x, INT)


# ---- truth ---------------------------------------------------------------------------------------------------------
def truth(x: Any) -> Expr:
    return lift(x, BOOL)


def and_(*xs: Any) -> Expr:
    out: dict[int, Expr] = {}
    for x in map(truth, xs):
        for y in x.args if x.op == "and" else (x,):
            if y is FALSE:
                return FALSE
            if y is not TRUE:
                out[y.id] = y
    parts = list(out.values())
    return TRUE if not parts else parts[0] if len(parts) == 1 else node("and", BOOL, *parts)


def or_(*xs: Any) -> Expr:
    out: dict[int, Expr] = {}
    for x in map(truth, xs):
        for y in x.args if x.op == "or" else (x,):
            if y is TRUE:
                return TRUE
            if y is not FALSE:
                out[y.id] = y
    parts = list(out.values())
    return FALSE if not parts else parts[0] if len(parts) == 1 else node("or", BOOL, *parts)


def not_(x: Any) -> Expr:
    x = truth(x)
    return FALSE if x is TRUE else TRUE if x is FALSE else x.args[0] if x.op == "not" else node("not", BOOL, x)


def eq(a: Any, b: Any) -> Expr:
    """Equality. An option may be compared with None and with a plain value."""
    a, b = plain(a), plain(b)
    ta, tb = typeof(a), typeof(b)
    if ta is None and tb is None:
        raise ModelError(f"the types of {a!r} and {b!r} cannot be told")
    t = ta if tb is None else tb if ta is None else ta if ta.kind == "option" or tb.kind != "option" else tb
    assert t is not None
    if ta is not None and tb is not None and not (same(ta, tb) or ta.kind == "option" or tb.kind == "option"):
        raise ModelError(f"{_text(a)} of type {ta!r} is compared with {_text(b)} of type {tb!r}")
    x, y = lift(a, t), lift(b, t)
    if x is y:
        return TRUE
    if x.op == "const" and y.op == "const":
        return TRUE if x.aux == y.aux else FALSE
    if x.op == "some" and y.op == "some":
        return eq(x.args[0], y.args[0])
    if t is BOOL:
        if y.op == "const":
            x, y = y, x
        if x is TRUE:
            return y
        if x is FALSE:
            return not_(y)
    if {x.op, y.op} == {"none", "some"}:
        return FALSE
    return node("eq", BOOL, *sorted((x, y), key=lambda e: e.id))


def less(a: Any, b: Any, equal: bool = False) -> Expr:
    """a < b, or a <= b; subset on sets."""
    ta = typeof(a)
    if equal and ta is not None and ta.kind == "set":
        return node("subset", BOOL, symbolic(a), lift(b, ta))
    x, y = number(a), number(b)
    if x.op == "const" and y.op == "const":
        return TRUE if (x.aux <= y.aux if equal else x.aux < y.aux) else FALSE
    return node("le" if equal else "lt", BOOL, x, y)


def ite(c: Any, a: Any, b: Any) -> Any:
    """a if c else b."""
    c = truth(c)
    if c is TRUE:
        return a
    if c is FALSE:
        return b
    ta, tb = typeof(a), typeof(b)
    if ta is None and tb is None:
        if a is None and b is None:
            return None
        raise ModelError(f"the type of ({_text(a)} if ... else {_text(b)}) cannot be told")
    t = ta if tb is None else tb if ta is None else ta if ta.kind == "option" or tb.kind != "option" else tb
    assert t is not None
    if (a is None or b is None) and t.kind != "option":
        t = make("option", elem=t)
    if t.kind == "range":  # either branch may have other limits
        t = INT if ta is not tb else t
    x, y = lift(a, t), lift(b, t)
    return x if x is y else node("ite", t, c, x, y)


# ---- numbers -------------------------------------------------------------------------------------------------------
def plus(a: Any, b: Any) -> Expr:
    """a + b on numbers; sequence + [x]."""
    ta = typeof(a)
    if ta is not None and ta.kind == "seq":
        if not isinstance(b, list):
            raise ModelError("a sequence grows by + [x]")
        q = symbolic(a)
        for x in b:
            q = node("append", q.t, q, lift(x, q.t.item))
        return q
    x, y = number(a), number(b)
    if x.op == "const" and y.op == "const":
        return node("const", INT, aux=x.aux + y.aux)
    return x if y.op == "const" and y.aux == 0 else y if x.op == "const" and x.aux == 0 else node("add", INT, x, y)


def minus(a: Any, b: Any) -> Expr:
    """a - b on numbers; difference on sets."""
    ta = typeof(a)
    if ta is not None and ta.kind == "set":
        return _setop("diff", a, b)
    x, y = number(a), number(b)
    if x.op == "const" and y.op == "const":
        return node("const", INT, aux=x.aux - y.aux)
    return x if y.op == "const" and y.aux == 0 else node("sub", INT, x, y)


def extreme(greatest: bool, *xs: Any) -> Any:
    """max(a, b, ...) or min(a, b, ...)."""
    r = xs[0]
    for x in xs[1:]:
        r = ite(less(r, x) if greatest else less(x, r), number(x), number(r))
    return r


def limits(e: Expr) -> tuple[int | Expr | None, int | Expr | None]:
    """The least and greatest value that a number can have by its form; None where there is none."""
    match e.op:
        case "const":
            return e.aux, e.aux
        case "size":
            return e, e
        case "add" | "sub":
            (a, b), (c, d) = limits(e.args[0]), limits(e.args[1])
            if e.op == "sub":
                c, d = d, c
            f = plus if e.op == "add" else minus
            lo = None if a is None or c is None else _number(f(a, c))
            hi = None if b is None or d is None else _number(f(b, d))
            return lo, hi
        case "ite":
            (a, b), (c, d) = limits(e.args[1]), limits(e.args[2])
            return _least(a, c), _most(b, d)
        case "len":
            return 0, e.args[0].t.hi
        case "greatest" | "least":
            v = e.args[0]
            (a, b), (c, d) = (v.t.lo, v.t.hi), limits(e.args[2])
            return _least(a, c), _most(b, d)
        case "card" | "count":
            return 0, None
    return (e.t.lo, e.t.hi) if e.t.kind == "range" else (None, None)


def _number(e: Expr) -> int | Expr:
    return int(e.aux) if e.op == "const" else e


def _most(a: int | Expr | None, b: int | Expr | None) -> int | Expr | None:
    if a is None or b is None or a is b:
        return a if a is b else None
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else _number(ite(less(a, b), number(b), number(a)))


def _least(a: int | Expr | None, b: int | Expr | None) -> int | Expr | None:
    if a is None or b is None or a is b:
        return a if a is b else None
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else _number(ite(less(a, b), number(a), number(b)))


# ---- maps, records, sequences, sets --------------------------------------------------------------------------------
def index(a: Expr, i: Any) -> Expr:
    """map[key], sequence[i], sequence[:n], sequence[n:]."""
    if a.t.kind == "option":
        a = node("get", a.t.item, a)
    if isinstance(i, slice):
        if a.t.kind != "seq" or i.step is not None:
            raise ModelError(f"{show(a)} of type {a.t!r} cannot be sliced")
        if i.start is not None and i.stop is not None:
            raise ModelError("a slice is [:n] or [n:]")
        if i.start is not None:
            return node("drop", a.t, a, number(i.start))
        return a if i.stop is None else node("take", a.t, a, number(i.stop))
    if a.t.kind == "map":
        return node("idx", a.t.item, a, lift(i, a.t.domain))
    if a.t.kind == "seq":
        return node("at", a.t.item, a, number(i))
    raise ModelError(f"{show(a)} of type {a.t!r} has no elements to index")


def field(a: Expr, name: str) -> Expr:
    """record.field."""
    if a.t.kind == "option":
        a = node("get", a.t.item, a)
    for i, (n, ft) in enumerate(a.t.fields):
        if n == name:
            return a.args[i] if a.op == "rec" else node("field", ft, a, aux=i)
    raise ModelError(f"{show(a)} of type {a.t!r} has no field {name}")


def replaced(a: Any, **changes: Any) -> Any:
    """dataclasses.replace on records."""
    if not isinstance(a, Expr):
        return dataclasses.replace(a, **changes)
    a = node("get", a.t.item, a) if a.t.kind == "option" else a
    for n in changes:
        field(a, n)
    return node("rec", a.t, *[lift(changes[n], ft) if n in changes else field(a, n) for n, ft in a.t.fields])


def length(x: Any) -> Any:
    """len() of a sequence, or the number of elements of a set."""
    if not isinstance(x, Expr):
        return len(x)
    if x.t.kind == "seq":
        return node("len", INT, x)
    if x.t.kind == "set":
        return node("card", INT, x)
    raise ModelError(f"{show(x)} of type {x.t!r} has no length")


def contains(x: Any, s: Any) -> Expr:
    """x in s: a set, or one of several constants."""
    if isinstance(s, SetLiteral | tuple | list):
        return or_(*[eq(x, y) for y in (s.items if isinstance(s, SetLiteral) else s)])
    if isinstance(s, type):
        raise ModelError(f"every value is in {s.__name__}")
    s = symbolic(s)
    if s.t.kind != "set":
        raise ModelError(f"{show(s)} of type {s.t!r} is no set")
    x = lift(x, s.t.item)
    match s.op:
        case "full":
            return TRUE
        case "empty":
            return FALSE
    return node("in", BOOL, x, s)


def _setop(op: str, a: Any, b: Any) -> Expr:
    ta, tb = typeof(a), typeof(b)
    t = ta if ta is not None and ta.kind == "set" else tb
    if t is None or t.kind != "set":
        raise ModelError(f"{_text(a)} and {_text(b)} are no sets")
    t = make("set", elem=t.item)
    if isinstance(b, SetLiteral) and op in ("union", "diff"):
        s = lift(a, t)
        for y in b.items:
            s = node("with" if op == "union" else "without", t, s, lift(y, t.item))
        return s
    return node(op, t, lift(a, t), lift(b, t))


# ---- binders -------------------------------------------------------------------------------------------------------
_fresh = [0]


def bound(t: T, name: str) -> Expr:
    """A new bound variable of type t; its name is unique."""
    _fresh[0] += 1
    return node("bound", t, aux=f"{name}_{_fresh[0]}")


class Span:
    """range(a, b) in a text."""

    def __init__(self, start: Any, stop: Any) -> None:
        self.start, self.stop = number(start), number(stop)
        lo, _ = limits(self.start)
        _, hi = limits(self.stop)
        if lo is None:
            raise ModelError(f"the least value of range({show(self.start)}, ...) cannot be told")
        last = None if hi is None else hi - 1 if isinstance(hi, int) else _number(minus(hi, 1))
        self.t = make("range", lo=lo, hi=last)

    def condition(self, v: Expr) -> Expr:
        start = _number(self.start)
        always = start is self.t.lo or (isinstance(start, int) and isinstance(self.t.lo, int) and start == self.t.lo)
        return and_(TRUE if always else less(self.start, v, equal=True), less(v, self.stop))


def span(*args: Any) -> Span:
    if len(args) > 2:
        raise ModelError("range() takes a start and a stop")
    return Span(0, args[0]) if len(args) == 1 else Span(*args)


def bound_over(domain: Any, name: str) -> Expr:
    """A bound variable that ranges over a domain of the text."""
    if isinstance(domain, Span):
        return bound(domain.t, name)
    if isinstance(domain, type) and issubclass(domain, Sort | enum.Enum):
        return bound(resolve(domain), name)
    d = plain(domain)
    if isinstance(d, Expr) and d.t.kind == "set":
        return bound(d.t.item, name)
    raise ModelError(f"{_text(domain)} is no domain: a Sort, an Enum, range(a, b), a set or a sequence")


def _inside(domain: Any, v: Expr) -> Expr:
    if isinstance(domain, Span):
        return domain.condition(v)
    d = plain(domain)
    return contains(v, d) if isinstance(d, Expr) else TRUE


Condition = Callable[[Any], Any]


def quantified(op: str, domain: Any, body: Condition, name: str) -> Expr:
    """all(...) and any(...): op is "forall" or "exists"; `body` already holds the comprehension's conditions."""
    both = or_ if op == "exists" else and_
    if isinstance(domain, tuple | list):
        return both(*[body(x) for x in domain])
    if isinstance(domain, Expr) and domain.t.kind == "seq":
        q = domain
        return quantified(op, span(length(q)), lambda i: body(index(q, i)), name)
    v = bound_over(domain, name)
    inside, b = _inside(domain, v), truth(body(v))
    b = or_(not_(inside), b) if op == "forall" else and_(inside, b)
    return b if b is TRUE or b is FALSE else node(op, BOOL, v, b)


def chosen(op: str, domain: Any, cond: Condition, name: str, default: Any) -> Expr:
    """max/min over a comprehension: op is "greatest" or "least"."""
    v = bound_over(domain, name)
    if not v.t.numeric:
        raise ModelError(f"{'max' if op == 'greatest' else 'min'}() is over numbers, not {v.t!r}")
    return node(op, INT, v, and_(_inside(domain, v), cond(v)), number(default))


def counted(domain: Any, cond: Condition, name: str) -> Expr:
    """sum(1 for ...)."""
    v = bound_over(domain, name)
    return node("count", INT, v, and_(_inside(domain, v), cond(v)))


def collected(domain: Any, cond: Condition, name: str) -> Expr:
    """{x for x in D if ...}."""
    v = bound_over(domain, name)
    return node("setof", make("set", elem=v.t), v, and_(_inside(domain, v), cond(v)))


# ---- text ----------------------------------------------------------------------------------------------------------
_INFIX = {
    "and": " and ", "or": " or ", "eq": " == ", "lt": " < ", "le": " <= ", "add": " + ", "sub": " - ",
    "union": " | ", "inter": " & ", "diff": " - ", "subset": " <= ", "in": " in ",
}  # fmt: skip


def _text(x: Any) -> str:
    return show(x) if isinstance(x, Expr) else x.__name__ if isinstance(x, type) else repr(x)


def show(e: Expr) -> str:
    """An expression as the text of a model would say it."""
    a: Sequence[Expr] = e.args
    match e.op:
        case "const":
            if e.t.kind == "enum":
                return str(list(cast(type[enum.Enum], e.t.cls))[e.aux].name)
            return str(bool(e.aux)) if e.t is BOOL else str(e.aux)
        case "size" | "var":
            return str(e.aux)
        case "nextvar":
            return f"next.{e.aux}"
        case "bound":
            return str(e.aux).rpartition("_")[0]
        case "idx" | "at":
            return f"{show(a[0])}[{show(a[1])}]"
        case "field":
            return f"{show(a[0])}.{a[0].t.fields[e.aux][0]}"
        case "not":
            return f"not {show(a[0])}"
        case "ite":
            return f"({show(a[1])} if {show(a[0])} else {show(a[2])})"
        case "none":
            return "None"
        case "some" | "get":
            return show(a[0])
        case "empty":
            return "set()"
        case "emptyseq":
            return "[]"
        case "full":
            return f"set({e.t.item!r})"
        case "with":
            return f"({show(a[0])} | {{{show(a[1])}}})"
        case "without":
            return f"({show(a[0])} - {{{show(a[1])}}})"
        case "append":
            return f"({show(a[0])} + [{show(a[1])}])"
        case "take":
            return f"{show(a[0])}[:{show(a[1])}]"
        case "drop":
            return f"{show(a[0])}[{show(a[1])}:]"
        case "len" | "card":
            return f"len({show(a[0])})"
        case "rec":
            return f"{e.t.name}({', '.join(f'{n}={show(x)}' for (n, _), x in zip(e.t.fields, a, strict=True))})"
        case "forall" | "exists":
            return f"{'all' if e.op == 'forall' else 'any'}({show(a[1])} for {show(a[0])} in {a[0].t!r})"
        case "greatest" | "least":
            x, which = show(a[0]), "max" if e.op == "greatest" else "min"
            return f"{which}(({x} for {x} in {a[0].t!r} if {show(a[1])}), default={show(a[2])})"
        case "count":
            return f"sum(1 for {show(a[0])} in {a[0].t!r} if {show(a[1])})"
        case "setof":
            return f"{{{show(a[0])} for {show(a[0])} in {a[0].t!r} if {show(a[1])}}}"
        case "mapof":
            return f"{{{show(a[0])}: {show(a[1])} for {show(a[0])} in {a[0].t!r}}}"
    return "(" + _INFIX[e.op].join(map(show, a)) + ")"
