"""Expressions: one hash-consed, typed graph, which every reading walks.

The constructors here check types and fold constants; they are what the rewritten text of a model calls. `ModelError`
is raised with a message only; the loader adds the model's file and line.
"""

from __future__ import annotations

import dataclasses
import enum
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, cast

from kafkaspec.errors import UserError
from kafkaspec.language.types import BOOL, INT, Sort, T, make, resolve, tracing, unhashable

sizes_now: ContextVar[Mapping[str, int | bool] | None] = ContextVar("sizes_now", default=None)
"""While a text runs on concrete states: the values of its sizes and flags."""


class ModelError(UserError):
    """A text that the language cannot read: `file:line: what is wrong`."""


class Expr:
    """A node of the graph. Equal nodes are one object; `==` on nodes builds a node, so compare with `is`."""

    __slots__ = ("args", "aux", "depth", "free", "id", "loc", "op", "parts", "t", "total")
    op: str
    t: T
    args: tuple[Expr, ...]
    aux: Any
    id: int
    free: frozenset[str]
    loc: tuple[str, int] | None
    total: bool
    """It has a value wherever its variables do: `defined` is TRUE of it."""
    depth: int
    """How many nodes are one within another."""
    parts: int
    """How many nodes it has when it is written out, each as often as it is named."""

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if tracing.get() is None:
            raise ModelError("a size has no value here, so that Python cannot test it: ask it in the model's text")
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

    def __mul__(self, other: Any) -> Expr:
        return times(self, other)

    def __rmul__(self, other: Any) -> Expr:
        return times(other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return divided("div", self, other)

    def __mod__(self, other: Any) -> Expr:
        return divided("mod", self, other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return divided("div", other, self)

    def __rmod__(self, other: Any) -> Expr:
        return divided("mod", other, self)

    def __neg__(self) -> Expr:
        return minus(0, self)

    def __or__(self, other: Any) -> Expr:
        return set_operation("union", self, other)

    def __ror__(self, other: Any) -> Expr:
        return set_operation("union", other, self)

    def __rand__(self, other: Any) -> Expr:
        return set_operation("inter", other, self)

    def __and__(self, other: Any) -> Expr:
        return set_operation("inter", self, other)

    def __getitem__(self, key: Any) -> Expr:
        return index(self, key)

    def __setitem__(self, key: object, value: object) -> None:
        raise ModelError(f"assign to s.next: {show(self)} is read of the state before")

    def __getattr__(self, name: str) -> Expr:
        if name.startswith("__"):
            raise AttributeError(name)
        return field(self, name)


_nodes: dict[Any, Expr] = {}


DEEPEST = 150
"""Nodes that are one within another in a model's text: engines go down an expression by calling themselves."""
MOST_PARTS = 200_000
"""Nodes of an expression that is written out, as where a value is asked for, or told in a message."""


def node(op: str, t: T, *args: Expr, aux: Any = None, total: bool = True) -> Expr:
    """The one node of that operation, type, arguments and constant. `total`: the operation always has a value. Raises
    ModelError where a model's text is read and the node is too deep, or has too many parts."""
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
        e.total = total and all(a.total for a in args)
        e.depth = 1 + max((a.depth for a in args), default=0)
        e.parts = 1 + sum(a.parts for a in args)
        _nodes[k] = e
    if (e.depth > DEEPEST or e.parts > MOST_PARTS) and tracing.get() is not None:
        raise ModelError(
            f"an expression has more than {DEEPEST} parts one within another"
            if e.depth > DEEPEST
            else f"an expression has more than {MOST_PARTS:,} parts, when each that it names is written out"
        )
    return e


BINDERS = frozenset(("forall", "exists", "greatest", "least", "count", "sum", "setof", "image", "mapof"))


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


def only(dropped: Expr, kept: Expr) -> Expr:
    """`kept`, in a text that evaluates `dropped` too: it has a value only where both have one."""
    return kept if dropped.total else node("only", kept.t, dropped, kept)


def must(condition: Any) -> Expr:
    """True where the condition is; where it is not, there is no value: `assert`."""
    return node("must", BOOL, truth(condition), total=False)


# ---- sizes and flags -----------------------------------------------------------------------------------------------
class SizeName:
    """A constant of the model, a size or flag or what a file makes of them: its value while a text runs on concrete
    states, its symbol otherwise."""

    def __init__(self, name: str, t: T, expr: Expr | None = None) -> None:
        self.name, self.expr = name, expr if expr is not None else node("size", t, aux=name)

    def _now(self) -> Any:
        known = sizes_now.get()
        if known is None:
            trace = tracing.get()
            if trace is not None:
                trace.named[self.expr.id] = self.expr
            return self.expr
        value = static(self.expr, known)
        return bool(value) if self.expr.t is BOOL else value

    def _made(self, operation: Callable[[Any, Any], Any], o: Any, *, behind: bool = False) -> Any:
        """The constant that an operation makes of this one and another, which stands `behind` or before it."""
        a, b = (self._now(), plain(o)) if behind else (plain(o), self._now())
        made = operation(a, b)
        nowhere = tracing.get() is None and sizes_now.get() is None
        return SizeName(show(made), made.t, made) if nowhere and isinstance(made, Expr) else made

    def __repr__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self._now())

    def __bool__(self) -> bool:
        return bool(self._now())

    def __index__(self) -> int:
        return int(self._now())

    def __eq__(self, o: object) -> Any:
        return self._made(operator.eq, o, behind=True)

    def __ne__(self, o: object) -> Any:
        return self._made(operator.ne, o, behind=True)

    def __lt__(self, o: Any) -> Any:
        return self._made(operator.lt, o, behind=True)

    def __gt__(self, o: Any) -> Any:
        return self._made(operator.gt, o, behind=True)

    def __le__(self, o: Any) -> Any:
        return self._made(operator.le, o, behind=True)

    def __ge__(self, o: Any) -> Any:
        return self._made(operator.ge, o, behind=True)

    def __add__(self, o: Any) -> Any:
        return self._made(operator.add, o, behind=True)

    def __radd__(self, o: Any) -> Any:
        return self._made(operator.add, o)

    def __sub__(self, o: Any) -> Any:
        return self._made(operator.sub, o, behind=True)

    def __rsub__(self, o: Any) -> Any:
        return self._made(operator.sub, o)

    def __mul__(self, o: Any) -> Any:
        return self._made(operator.mul, o, behind=True)

    def __rmul__(self, o: Any) -> Any:
        return self._made(operator.mul, o)

    def __floordiv__(self, o: Any) -> Any:
        return self._made(operator.floordiv, o, behind=True)

    def __mod__(self, o: Any) -> Any:
        return self._made(operator.mod, o, behind=True)

    def __neg__(self) -> Any:
        return self._made(operator.sub, 0)


def plain(x: Any) -> Any:
    """A size by its value or symbol; anything else itself. Raises ModelError for what may be equal to something else
    than it looks like."""
    if isinstance(x, int | list | tuple) and type(x) not in (bool, int, list, tuple):
        raise ModelError(f"{x!r} is a {type(x).__name__}: a constant is a number, a list or a tuple, and no more")
    return x._now() if isinstance(x, SizeName) else x


def Size(name: str) -> int:
    """A constant of the model: a number >= 1, given when it is explored, a symbol in the unbounded reading."""
    return cast(int, SizeName(_text(name), INT))


def Flag(name: str) -> bool:
    """A constant of the model that is true or false."""
    return cast(bool, SizeName(_text(name), BOOL))


def _text(name: Any) -> str:
    if not isinstance(name, str):
        at = sys._getframe(2)
        raise ModelError(f"{at.f_code.co_filename}:{at.f_lineno}: {name!r} is no name for a size or a flag")
    return name


def size_value(x: Any) -> int | Expr | None:
    """A limit of a type: a number, or an expression over sizes."""
    if isinstance(x, SizeName):
        x = x.expr
    if isinstance(x, bool) or (isinstance(x, Expr) and x.t.kind == "bool"):
        raise ModelError(f"{written(x)} is no limit: a whole number or a size, not a flag")
    if x is None or isinstance(x, int | Expr):
        return x
    raise ModelError(f"{x!r} is no limit: a whole number or a size")


def static(x: int | Expr | None, sizes: Mapping[str, int | bool]) -> int:
    """The value of an expression over sizes alone. Raises UserError when it has none or a size is missing."""
    if x is None:
        raise UserError("a number without an upper limit has no place in the explicit reading")
    if isinstance(x, int):
        return x
    a = [static(y, sizes) for y in x.args] if x.op not in ("ite", "sortsize") else []
    match x.op:
        case "const":
            return int(x.aux)
        case "size" | "sortsize":
            if x.aux not in sizes:
                raise UserError(f"size {x.aux} is not given")
            return int(sizes[x.aux])
        case "add":
            return a[0] + a[1]
        case "sub":
            return a[0] - a[1]
        case "mul":
            return a[0] * a[1]
        case "div":
            return a[0] // a[1]
        case "mod":
            return a[0] % a[1]
        case "lt":
            return int(a[0] < a[1])
        case "le":
            return int(a[0] <= a[1])
        case "eq":
            return int(a[0] == a[1])
        case "not":
            return int(not a[0])
        case "ite":
            return static(x.args[1] if static(x.args[0], sizes) else x.args[2], sizes)
    raise UserError(f"{x!r} is not a constant")


# ---- types of values -------------------------------------------------------------------------------------------------
def same(a: T, b: T) -> bool:
    """Are values of both types of one shape (limits apart)?"""
    if a is b or (a.numeric and b.numeric):
        return True
    if a.kind != b.kind:
        return False
    if a.kind in ("option", "set", "seq"):
        return same(a.item, b.item)
    if a.kind == "map":
        return alike(a.domain, b.domain) and same(a.item, b.item)
    return False


def alike(a: T, b: T) -> bool:
    """Have two types of keys the same values, whatever the sizes?"""
    return a is b or (a.kind == b.kind == "range" and within(a, b) and within(b, a))


def within(a: T, b: T) -> bool:
    """Is every value of type a one of type b, as their limits show, whatever the sizes?"""
    if a is b:
        return True
    if b.kind == "option":
        return within(a.item if a.kind == "option" else a, b.item)
    if a.numeric and b.numeric:
        low = b.kind == "int" or (a.kind == "range" and at_most(b.lo, a.lo))
        return low and (b.hi is None or (a.hi is not None and at_most(a.hi, b.hi)))
    if a.kind != b.kind:
        return False
    match a.kind:
        case "set":
            few = b.hi is None or (a.hi is not None and at_most(a.hi, b.hi))
            return (a.nonempty or not b.nonempty) and few and within(a.item, b.item)
        case "seq":
            return at_most(a.hi, b.hi) and within(a.item, b.item)
        case "map":
            return alike(a.domain, b.domain) and within(a.item, b.item)
    return False


def join(a: T, b: T) -> T:
    """The least type of the values of both, which are of one shape, or of one shape and its option."""
    if a is b or within(b, a):
        return a
    if within(a, b):
        return b
    if "option" in (a.kind, b.kind):
        return make("option", elem=join(*(x.item if x.kind == "option" else x for x in (a, b))))
    match a.kind:
        case "int" | "range":
            if "int" in (a.kind, b.kind):
                return INT
            return make("range", lo=_least(a.lo, b.lo), hi=_most(a.hi, b.hi))
        case "set":
            return make("set", elem=join(a.item, b.item), hi=_most(a.hi, b.hi), nonempty=a.nonempty and b.nonempty)
        case "seq":
            return make("seq", elem=join(a.item, b.item), hi=_most(a.hi, b.hi))
        case "map":
            return make("map", elem=join(a.item, b.item), key=a.domain)
        case "rec" if a.cls is b.cls:  # one of them is a reading's own, with other limits of its fields
            fields = tuple((n, join(t, u)) for (n, t), (_, u) in zip(a.fields, b.fields, strict=True))
            return make("rec", a.name, cls=a.cls, fields=fields)
    raise ModelError(f"a value of type {a!r} and one of type {b!r} stand in one place")


def of_type(e: Expr) -> T:
    """The type of an expression's values; of a number with the limits that its form shows."""
    if not e.t.numeric:
        return e.t
    lo, hi = limits(e)
    return INT if lo is None else make("range", lo=lo, hi=hi)


# ---- numbers that only sizes decide
Bounded = int | Expr


Linear = tuple[dict[int, int], int]
_linears: dict[int, Linear | None] = {}


def _linear(x: Bounded) -> Linear | None:
    """A limit as numbers of sizes, by the size's node, and a constant; None if it is no such sum."""
    if isinstance(x, int):
        return {}, x
    if x.id not in _linears:
        _linears[x.id] = _linear_of(x)
    return _linears[x.id]


def _linear_of(x: Expr) -> Linear | None:
    match x.op:
        case "const":
            return {}, int(x.aux)
        case "size" | "sortsize":
            return {x.id: 1}, 0
        case "add" | "sub":
            a, b = _linear(x.args[0]), _linear(x.args[1])
            if a is None or b is None:
                return None
            sign = 1 if x.op == "add" else -1
            return {i: a[0].get(i, 0) + sign * b[0].get(i, 0) for i in a[0].keys() | b[0].keys()}, a[1] + sign * b[1]
        case "mul":
            a, b = _linear(x.args[0]), _linear(x.args[1])
            if a is not None and b is not None and not (a[0] and b[0]):
                (terms, c), k = (a, b[1]) if a[0] else (b, a[1])
                return {i: n * k for i, n in terms.items()}, c * k
    return None


def _greater_of(x: Bounded) -> tuple[Expr, Expr] | None:
    """The two limits of which x is the greater."""
    return _of_two(x, 2, 1)


def _lesser_of(x: Bounded) -> tuple[Expr, Expr] | None:
    """The two limits of which x is the lesser."""
    return _of_two(x, 1, 2)


def _of_two(x: Bounded, less: int, greater: int) -> tuple[Expr, Expr] | None:
    """The branches of an `ite`, if it asks whether the one is less than the other."""
    if isinstance(x, int) or x.op != "ite" or x.args[0].op != "lt":
        return None
    a, b = x.args[0].args
    return (x.args[1], x.args[2]) if a is x.args[less] and b is x.args[greater] else None


def at_most(a: Bounded, b: Bounded) -> bool:
    """Is a <= b for all sizes (which are 1 or more)?"""
    if (both := _greater_of(a)) is not None:
        return all(at_most(x, b) for x in both)
    if (both := _lesser_of(b)) is not None:
        return all(at_most(a, x) for x in both)
    if (both := _greater_of(b)) is not None and any(at_most(a, x) for x in both):
        return True
    if (both := _lesser_of(a)) is not None and any(at_most(x, b) for x in both):
        return True
    x, y = _linear(a), _linear(b)
    if x is None or y is None:
        return a is b
    gap = {i: y[0].get(i, 0) - x[0].get(i, 0) for i in x[0].keys() | y[0].keys()}
    return all(n >= 0 for n in gap.values()) and y[1] - x[1] + sum(gap.values()) >= 0


def _number(e: Expr) -> Bounded:
    return int(e.aux) if e.op == "const" else e


def _most(a: Bounded | None, b: Bounded | None) -> Bounded | None:
    if a is None or b is None:
        return None
    if at_most(a, b) or at_most(b, a):
        return b if at_most(a, b) else a
    return _number(ite(less(a, b), number(b), number(a)))


def _least(a: Bounded | None, b: Bounded | None) -> Bounded | None:
    if a is None or b is None:
        return None
    if at_most(a, b) or at_most(b, a):
        return a if at_most(a, b) else b
    return _number(ite(less(a, b), number(a), number(b)))


def _sum(a: Bounded | None, b: Bounded | None, sign: int = 1) -> Bounded | None:
    if a is None or b is None:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return a + sign * b
    return _number((plus if sign > 0 else minus)(a, b))


def last_index(t: T) -> Bounded | None:
    """The last index of the longest sequence of a type."""
    return _sum(t.hi, -1)


def _product(a: Bounded | None, b: Bounded | None) -> Bounded | None:
    if a is None or b is None:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if (isinstance(a, int) and a == 0) or (isinstance(b, int) and b == 0):
        return 0
    return _number(node("mul", INT, number(a), number(b)))


def how_many(t: T) -> Bounded | None:
    """How many values a type has, where a number says it."""
    match t.kind:
        case "bool":
            return 2
        case "enum":
            return len(cast(type[enum.Enum], t.cls))
        case "sort":
            return size_of(cast(type[Sort], t.cls))
        case "range":
            n = _sum(_sum(t.hi, t.lo, -1), 1)
            return None if n is None else _most(0, n)
    return None


def has_values(t: T) -> bool:
    """Has a type a value, whatever the sizes?"""
    match t.kind:
        case "range":
            return t.hi is None or at_most(t.lo, t.hi)
        case "rec":
            return all(has_values(f) for _, f in t.fields)
        case "set":
            return not t.nonempty or has_values(t.item)
    return True


def size_of(cls: type[Sort]) -> Expr:
    """len(Node): the number of a sort's elements."""
    return node("sortsize", INT, node("full", make("set", elem=resolve(cls), nonempty=True)), aux=cls.__name__)


_limits: dict[int, tuple[Bounded | None, Bounded | None]] = {}


def limits(e: Expr) -> tuple[Bounded | None, Bounded | None]:
    """The least and greatest value that a number can have by its form; None where there is none."""
    hit = _limits.get(e.id)
    if hit is None:
        hit = _limits[e.id] = _limits_of(e)
    return hit


def _limits_of(e: Expr) -> tuple[Bounded | None, Bounded | None]:
    match e.op:
        case "const":
            return int(e.aux), int(e.aux)
        case "size" | "sortsize":
            return e, e
        case "add" | "sub":
            (a, b), (c, d) = limits(e.args[0]), limits(e.args[1])
            return (_sum(a, c), _sum(b, d)) if e.op == "add" else (_sum(a, d, -1), _sum(b, c, -1))
        case "mul":
            (a, b), k = limits(e.args[0]), e.args[1]
            if k.op != "const":
                return None, None
            return (_product(a, k.aux), _product(b, k.aux)) if k.aux >= 0 else (_product(b, k.aux), _product(a, k.aux))
        case "div":
            a, b = limits(e.args[0])
            k = e.args[1].aux
            return tuple(
                None if x is None else x // k if isinstance(x, int) else _number(node("div", INT, x, e.args[1]))
                for x in (a, b)
            )  # type: ignore[return-value]
        case "mod":
            return 0, int(e.args[1].aux) - 1
        case "ite":
            (a, b), (c, d) = limits(e.args[1]), limits(e.args[2])
            return _least(a, c), _most(b, d)
        case "only":
            return limits(e.args[1])
        case "len":
            return 0, e.args[0].t.hi
        case "greatest" | "least":
            (a, b), rest = limits(e.args[2]), e.args[3:]
            (c, d) = limits(rest[0]) if rest else (a, b)
            return _least(a, c), _most(b, d)
        case "card":
            t = e.args[0].t
            return 0, t.hi if t.hi is not None else how_many(t.item)
        case "count":
            return 0, how_many(e.args[0].t)
        case "sum":
            (a, b), n = limits(e.args[2]), how_many(e.args[0].t)
            return _product(n, _least(a, 0)), _product(n, _most(b, 0))
    return (e.t.lo, e.t.hi) if e.t.kind == "range" else (None, None)


# ---- from Python values to nodes -----------------------------------------------------------------------------------
class SetLiteral:
    """`{a, b}` or `set()` in a text, until its type is known."""

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = list(items)

    def __or__(self, other: Any) -> Any:
        return (
            SetLiteral(self.items + other.items)
            if isinstance(other, SetLiteral)
            else set_operation("union", self, other)
        )

    def __iter__(self) -> Any:
        raise ModelError("a set is iterated in all(), any() or a comprehension only")


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
    _no_class(x)
    if dataclasses.is_dataclass(x):
        return resolve(type(x))
    if isinstance(x, SetLiteral) and x.items:
        return _literal_set(x, None).t
    if isinstance(x, list) and x:
        return _literal_seq(x, None).t
    return None


def everything(cls: type[Any]) -> Expr:
    """All elements of a sort, or members of an enum: set(Node)."""
    return node("full", make("set", elem=resolve(cls), nonempty=True))


def _no_class(x: Any) -> None:
    """Python reads a sort, where a value is wanted, as the class that it is."""
    if isinstance(x, type) and issubclass(x, Sort | enum.Enum):
        raise ModelError(f"{x.__name__} is a class; write set({x.__name__}) for the set of all its elements")


def lift(x: Any, t: T) -> Expr:
    """x as a node of t's shape, with limits of its own: constants, and the coercions X -> X | None, X | None -> X.
    Raises ModelError for another shape."""
    x = plain(x)
    _no_class(x)
    if isinstance(x, Expr):
        if same(t, x.t):
            return x
        if t.kind == "option" and same(t.item, x.t):
            return some(x)
        if x.t.kind == "option" and same(t, x.t.item):
            return unwrapped(x)
        raise ModelError(f"{show(x)} is of type {x.t!r}, where {t!r} is wanted")
    if t.kind == "option":
        return node("none", t) if x is None else some(lift(x, t.item))
    if isinstance(x, SetLiteral) and t.kind == "set":
        return _literal_set(x, t)
    if isinstance(x, list) and t.kind == "seq":
        return _literal_seq(x, t)
    if isinstance(x, MapLiteral) and t.kind == "map":
        return _literal_map(x, t)
    if dataclasses.is_dataclass(x) and not isinstance(x, type) and t.kind == "rec" and type(x) is t.cls:
        made = record(t, {n: getattr(x, n) for n, _ in t.fields})
        if not made.total:
            raise ModelError(f"{written(x)} has fields that may be outside their types: build it where it is used")
        return made
    if isinstance(x, enum.Enum) and t.kind == "enum" and type(x) is t.cls:
        return node("const", t, aux=list(type(x)).index(x))
    if isinstance(x, bool) and t.kind == "bool":
        return TRUE if x else FALSE
    if isinstance(x, int) and not isinstance(x, bool) and t.numeric:
        return node("const", INT, aux=x)
    raise ModelError(f"{written(x)} stands where a value of type {t!r} is wanted")


def some(x: Expr) -> Expr:
    """A value where an option is wanted."""
    return node("some", make("option", elem=of_type(x)), x)


def unwrapped(x: Expr) -> Expr:
    """An option where its value is wanted: it must not be None."""
    return x.args[0] if x.op == "some" else node("get", x.t.item, x, total=False)


def value_of(x: Any) -> Any:
    """x, unwrapped if it is an option."""
    x = plain(x)
    return unwrapped(x) if isinstance(x, Expr) and x.t.kind == "option" else x


def _literal_set(x: SetLiteral, t: T | None) -> Expr:
    items = [symbolic(y) if t is None else lift(y, t.item) for y in map(value_of, x.items)]
    elem = of_type(items[0]) if items else None if t is None else t.item
    if elem is None:
        raise ModelError("the type of set() cannot be told here")
    for y in items[1:]:
        if not same(elem, y.t):
            raise ModelError(f"{show(y)} of type {y.t!r} is in one set with values of type {elem!r}")
        elem = join(elem, of_type(y))
    _may_be_element(elem)
    e = node("empty", make("set", elem=elem, hi=len(items) if elem.kind == "rec" else None))
    return _with(e, items, e.t)


def _may_be_element(t: T) -> None:
    """Raises ModelError unless a set can hold values of a type."""
    if t.kind not in ("sort", "enum", "bool", "int", "range", "rec"):
        raise ModelError(f"an element of a set is of a Sort, a Range, an Enum, bool or a record, not {t!r}")
    if (why := unhashable(t)) != "":
        raise ModelError(why)


def _with(s: Expr, items: Sequence[Expr], t: T) -> Expr:
    for y in items:
        s = node("with", make("set", elem=t.item, hi=t.hi, nonempty=True), s, y)
    return s


def _literal_seq(x: list[Any], t: T | None) -> Expr:
    items = [symbolic(y) if t is None else lift(y, t.item) for y in x]
    elem = of_type(items[0]) if items else None if t is None else t.item
    if elem is None:
        raise ModelError("the type of [] cannot be told here")
    if t is not None and t.item.kind == "option" and items:
        elem = join(elem, make("option", elem=elem.item if elem.kind == "option" else elem))
    for y in items[1:]:
        if not same(elem, y.t):
            raise ModelError(f"{show(y)} of type {y.t!r} is in one sequence with values of type {elem!r}")
        elem = join(elem, of_type(y))
    e = node("emptyseq", make("seq", elem=elem, hi=0))
    for i, y in enumerate(items, 1):
        e = node("append", make("seq", elem=elem, hi=i), e, y)
    return e


def _literal_map(x: MapLiteral, t: T) -> Expr:
    if not _every_key(x.domain, x.name, t.domain):
        over = (
            f"range({show(x.domain.start)}, {show(x.domain.stop)})" if isinstance(x.domain, Span) else written(x.domain)
        )
        remedy = f"; write {{{x.name}: ... for {x.name} in {{False, True}}}}" if t.domain is BOOL else ""
        raise ModelError(
            f"a map over {t.domain!r} is made by a comprehension over all its keys, not over {over}{remedy}"
        )
    v = bound(t.domain, x.name)
    value = lift(x.value(v), t.item)
    return node("mapof", make("map", elem=of_type(value), key=t.domain), v, value)


def _every_key(domain: Any, name: str, key: T) -> bool:
    """Is a comprehension's domain every value of the keys' type?"""
    if isinstance(domain, SetLiteral):
        return key is BOOL and all(isinstance(x, bool) for x in domain.items) and set(domain.items) == {False, True}
    if not isinstance(domain, type | Span) or (isinstance(domain, Span) and not domain.whole):
        return False
    return domain is not bool and alike(key, bound_over(domain, name).t)


def symbolic(x: Any) -> Expr:
    """x as a node of its own type. Raises ModelError when the type cannot be told."""
    t = typeof(x)
    if t is None:
        raise ModelError(f"the type of {written(x)} cannot be told here")
    return lift(x, t)


def number(x: Any) -> Expr:
    return lift(x, INT)


# ---- truth ---------------------------------------------------------------------------------------------------------
def truth(x: Any) -> Expr:
    x = plain(x)
    if isinstance(x, Expr):
        if x.t is not BOOL:
            why = ": say which value is meant, as in `== True`" if x.t.kind == "option" else ""
            raise ModelError(f"{show(x)} of type {x.t!r} is no truth value{why}")
        return x
    if not isinstance(x, bool):
        raise ModelError(f"{written(x)} is no truth value")
    return TRUE if x else FALSE


def _junction(op: str, xs: Iterable[Any], ends: Expr) -> Expr:
    """A conjunction or disjunction: `ends` is the value of a part that decides the whole."""
    out: dict[int, Expr] = {}
    for x in map(truth, xs):
        for y in x.args if x.op == op else (x,):
            if y is ends or (out and y.total and not_(y).id in out):  # a part and its negation decide the whole too
                seen = list(out.values())
                return only(seen[0] if len(seen) == 1 else node(op, BOOL, *seen), ends) if seen else ends
            if y is not TRUE and y is not FALSE:
                out[y.id] = y
    parts = list(out.values())
    return not_(ends) if not parts else parts[0] if len(parts) == 1 else node(op, BOOL, *parts)


def and_(*xs: Any) -> Expr:
    return _junction("and", xs, FALSE)


def or_(*xs: Any) -> Expr:
    return _junction("or", xs, TRUE)


def not_(x: Any) -> Expr:
    x = truth(x)
    return FALSE if x is TRUE else TRUE if x is FALSE else x.args[0] if x.op == "not" else node("not", BOOL, x)


def _both(a: Any, b: Any, what: str) -> tuple[Expr, Expr]:
    """Two values as nodes of one shape; the shape of one decides what a literal of the other means."""
    a, b = plain(a), plain(b)
    ta, tb = typeof(a), typeof(b)
    if ta is None and tb is None:
        raise ModelError(f"the types of {written(a)} and {written(b)} cannot be told")
    if ta is not None and tb is not None and isinstance(a, SetLiteral | list) != isinstance(b, SetLiteral | list):
        ta, tb = (None, tb) if isinstance(a, SetLiteral | list) else (ta, None)
    if ta is None or tb is None:
        t = ta or tb
        assert t is not None
        if (a is None or b is None) and t.kind != "option":
            t = make("option", elem=of_type(symbolic(b if a is None else a)))
        return lift(a, t), lift(b, t)
    t = ta if ta.kind == "option" or tb.kind != "option" else tb
    if not (same(ta, tb) or (t.kind == "option" and same(t.item, tb if t is ta else ta))):
        raise ModelError(f"{written(a)} of type {ta!r} {what} {written(b)} of type {tb!r}")
    return lift(a, t), lift(b, t)


def eq(a: Any, b: Any) -> Expr:
    """Equality. An option may be compared with None and with a plain value."""
    for x, y in ((a, b), (b, a)):
        if x is None and (t := typeof(y)) is not None and t.kind != "option":
            raise ModelError(f"{written(y)} of type {t!r} is never None")
    x, y = _both(a, b, "is compared with")
    if x is y:
        return only(x, TRUE)
    if x.op == "const" and y.op == "const":
        return TRUE if x.aux == y.aux else FALSE
    if x.op == "some" and y.op == "some":
        return eq(x.args[0], y.args[0])
    if x.t is BOOL:
        if y.op == "const":
            x, y = y, x
        if x is TRUE:
            return y
        if x is FALSE:
            return not_(y)
    if {x.op, y.op} == {"none", "some"}:
        return only(x if x.op == "some" else y, FALSE)
    return node("eq", BOOL, *sorted((x, y), key=lambda e: e.id))


def identical(a: Any, b: Any) -> Expr:
    """a is b: of None, an enum's member, True or False."""
    if not any(x is None or isinstance(x, bool | enum.Enum) for x in (a, b)):
        raise ModelError("`is` asks for None, an enum's member, True or False; write == between values")
    return eq(a, b)


def less(a: Any, b: Any, equal: bool = False) -> Expr:
    """a < b, or a <= b; subset on sets."""
    if equal and any((t := typeof(x)) is not None and t.kind == "set" for x in (a, b)):
        return node("subset", BOOL, *_both(a, b, "is compared with"))
    x, y = number(a), number(b)
    if x.op == "const" and y.op == "const":
        return TRUE if (x.aux <= y.aux if equal else x.aux < y.aux) else FALSE
    if not equal and (s := _twice(y)) is not None and how_many(s.t.item) is x:
        return majority(s)
    return node("le" if equal else "lt", BOOL, x, y)


def _twice(x: Expr) -> Expr | None:
    """The set of sort elements of which x is twice the number."""
    if (x.op == "mul" and x.args[1].op == "const" and x.args[1].aux == 2) or (x.op == "add" and x.args[0] is x.args[1]):
        n = x.args[0]
    else:
        return None
    return n.args[0] if n.op == "card" and n.args[0].t.item.kind == "sort" else None


def majority(members: Any) -> Expr:
    """More than half of a sort's elements are in the set."""
    t = typeof(members)
    s = None if t is None else symbolic(members)
    if s is None or s.t.kind != "set" or s.t.item.kind != "sort":
        raise ModelError(f"majority() is of a set of a Sort's elements, not of {written(members)}")
    return node("majority", BOOL, s)


def ite(c: Any, a: Any, b: Any) -> Any:
    """a if c else b."""
    c = truth(c)
    if c is TRUE:
        return a
    if c is FALSE:
        return b
    if a is None and b is None:
        return None
    if isinstance(a, tuple | MapLiteral) or isinstance(b, tuple | MapLiteral):
        t = typeof(b if isinstance(a, tuple | MapLiteral) else a)
        if t is None or t.kind != "map":
            raise ModelError(f"the type of ({written(a)} if ... else {written(b)}) cannot be told")
        a, b = lift(a, t), lift(b, t)
    x, y = _both(a, b, "stands in one place with")
    if x is y:
        return only(c, x)
    if x.t.numeric:
        return node("ite", x.t if x.t is y.t else INT, c, x, y)
    return node("ite", join(x.t, y.t), c, x, y)


# ---- numbers -------------------------------------------------------------------------------------------------------
def plus(a: Any, b: Any) -> Expr:
    """a + b on numbers; of two sequences the one behind the other."""
    if (
        any((t := typeof(x)) is not None and t.kind == "seq" for x in (a, b))
        or isinstance(a, list)
        or isinstance(b, list)
    ):
        return concatenated(a, b)
    x, y = number(a), number(b)
    if x.op == "const" and y.op == "const":
        return node("const", INT, aux=x.aux + y.aux)
    if x.op == "const":
        x, y = y, x
    return _shifted(x, y.aux) if y.op == "const" else node("add", INT, x, y)


def _shifted(x: Expr, by: int) -> Expr:
    """x + by, as one sum with one constant."""
    if x.op in ("add", "sub") and x.args[1].op == "const":
        by += x.args[1].aux if x.op == "add" else -x.args[1].aux
        x = x.args[0]
    if by == 0:
        return x
    return node("add" if by > 0 else "sub", INT, x, node("const", INT, aux=abs(by)))


def concatenated(a: Any, b: Any) -> Expr:
    x, y = _both(a, b, "stands in one sequence with")
    if x.t.kind != "seq":
        raise ModelError(f"{show(x)} of type {x.t!r} is no sequence")
    t = make("seq", elem=join(x.t.item, y.t.item), hi=_sum(x.t.hi, y.t.hi))
    items: list[Expr] = []
    while y.op == "append":
        items.append(y.args[1])
        y = y.args[0]
    if y.op != "emptyseq":
        return node("concat", t, x, appended(y, items[::-1]))
    return appended(x, items[::-1])


def appended(q: Expr, items: Sequence[Expr]) -> Expr:
    for i in items:
        q = node("append", make("seq", elem=join(q.t.item, of_type(i)), hi=_sum(q.t.hi, 1)), q, i)
    return q


def minus(a: Any, b: Any) -> Expr:
    """a - b on numbers; difference on sets."""
    if any((t := typeof(x)) is not None and t.kind == "set" for x in (a, b)) or isinstance(b, SetLiteral):
        return set_operation("diff", a, b)
    x, y = number(a), number(b)
    if x.op == "const" and y.op == "const":
        return node("const", INT, aux=x.aux - y.aux)
    return _shifted(x, -y.aux) if y.op == "const" else node("sub", INT, x, y)


def times(a: Any, b: Any) -> Expr:
    """a * b, one of them a literal."""
    x, y = number(a), number(b)
    if x.op == "const":
        x, y = y, x
    if y.op != "const":
        raise ModelError(f"{show(x)} * {show(y)}: one of the two is a literal number")
    if x.op == "const":
        return node("const", INT, aux=x.aux * y.aux)
    return x if y.aux == 1 else node("mul", INT, x, y)


def divided(op: str, a: Any, b: Any) -> Expr:
    """a // b ("div") or a % b ("mod"), b a literal above 0: rounded down, as in Python."""
    x, y = number(a), number(b)
    if y.op != "const" or y.aux < 1:
        raise ModelError(f"{show(x)} {'//' if op == 'div' else '%'} {show(y)}: the divisor is a literal number above 0")
    if x.op == "const":
        return node("const", INT, aux=x.aux // y.aux if op == "div" else x.aux % y.aux)
    return node(op, INT, x, y)


def extreme(greatest: bool, *xs: Any) -> Any:
    """max(a, b, ...) or min(a, b, ...)."""
    if len(xs) < 2:
        raise ModelError(f"{'max' if greatest else 'min'}() takes two numbers or more, or a comprehension")
    r = number(xs[0])
    for x in map(number, xs[1:]):
        r = ite(less(r, x) if greatest else less(x, r), x, r)
    return r


# ---- maps, records, sequences, sets --------------------------------------------------------------------------------
def index(a: Any, i: Any) -> Expr:
    """map[key], sequence[i], sequence[a:b]."""
    a = value_of(a if isinstance(a, Expr) else symbolic(a))
    if isinstance(i, slice):
        if a.t.kind != "seq" or i.step is not None:
            raise ModelError(
                f"{show(a)} of type {a.t!r} cannot be sliced" if a.t.kind != "seq" else "a slice has no step"
            )
        if i.stop is not None:
            a = sliced("take", a, i.stop)
        return a if i.start is None else sliced("drop", a, i.start)
    if a.t.kind == "map":
        k = lift(i, a.t.domain)
        return node("idx", a.t.item, a, k, total=within(of_type(k), a.t.domain))
    if a.t.kind == "seq":
        k = number(i)
        if k.op == "const" and k.aux < 0:
            raise ModelError(f"{show(a)}[{k.aux}]: an index is 0 or more; the last element is q[len(q) - 1]")
        return node("at", a.t.item, a, k, total=False)
    raise ModelError(f"{show(a)} of type {a.t!r} has no elements to index")


def sliced(op: str, a: Expr, limit: Any) -> Expr:
    n = number(limit)
    if n.op == "const" and n.aux < 0:
        raise ModelError(f"a slice of {show(a)} from or up to {n.aux}: a limit is 0 or more")
    least = limits(n)[0]
    return node(op, a.t, a, n, total=least is not None and at_most(0, least))


def field(a: Expr, name: str) -> Expr:
    """record.field."""
    a = value_of(a)
    for i, (n, ft) in enumerate(a.t.fields):
        if n == name:
            return only(a, a.args[i]) if a.op == "rec" else node("field", ft, a, aux=i)
    raise ModelError(f"{show(a)} of type {a.t!r} has no field {name}")


def record(t: T, values: Mapping[str, Any]) -> Expr:
    """A record of its fields' values, each of which must be of its field's type."""
    parts = [lift(values[n], ft) for n, ft in t.fields]
    fit = all(within(of_type(x), ft) for x, (_, ft) in zip(parts, t.fields, strict=True))
    return node("rec", t, *parts, total=fit)


def replaced(a: Any, /, **changes: Any) -> Expr:
    """dataclasses.replace on records."""
    a = value_of(a if isinstance(a, Expr) else symbolic(a))
    for n in changes:
        field(a, n)
    return only(a, record(a.t, {n: changes[n] if n in changes else field(a, n) for n, _ in a.t.fields}))


def length(x: Any) -> Any:
    """len() of a sequence, the number of elements of a set, a sort or an enum."""
    x = plain(x)
    if isinstance(x, type) and issubclass(x, Sort):
        return size_of(x)
    if isinstance(x, type) and issubclass(x, enum.Enum):
        return len(x)
    x = value_of(symbolic(x))
    if x.t.kind == "seq":
        return node("len", INT, x)
    if x.op == "full":
        n = how_many(x.t.item)
        if n is not None:
            return number(n)
    if x.t.kind == "set":
        return node("card", INT, x)
    raise ModelError(f"{show(x)} of type {x.t!r} has no length")


def _evaluated(items: Iterable[Any], value: Expr) -> Expr:
    """`value`, in a text that evaluates the items before it."""
    for x in items:
        if isinstance(x, Expr):
            value = only(x, value)
    return value


def contains(x: Any, s: Any) -> Expr:
    """x in s: a set, a sequence, range(a, b), or one of several constants. None is in no set."""
    x, s = plain(x), plain(s)
    if isinstance(s, SetLiteral | tuple | list):
        items = s.items if isinstance(s, SetLiteral) else s
        if isinstance(s, SetLiteral) and not items and x is not None:
            _literal_set(SetLiteral([x]), None)  # Python asks that it can be an element here too
        if isinstance(s, SetLiteral) and items:
            _literal_set(s, None if typeof(items[0]) is not None else typeof(x))  # what may be an element
            items = [value_of(y) for y in items]
        return _evaluated([x, *items], or_(*[eq(x, y) for y in items]))
    if isinstance(s, Span):
        if isinstance(x, Expr) and x.t.kind == "option":
            return _evaluated([s.start, s.stop], and_(not_(eq(x, None)), contains(unwrapped(x), s)))
        x = number(x)
        return _evaluated([x, s.start, s.stop], and_(less(s.start, x, equal=True), less(x, s.stop)))
    if isinstance(s, type):
        raise ModelError(f"every value is in {s.__name__}")
    s = value_of(symbolic(s))
    if s.t.kind == "seq":
        i = bound(make("range", lo=0, hi=last_index(s.t)), "i")
        inside = less(i, length(s))
        element = node("at", s.t.item, s, i, aux="inside")
        return _evaluated([x, s], node("exists", BOOL, i, and_(inside, eq(x, element))))
    if s.t.kind != "set":
        raise ModelError(f"{show(s)} of type {s.t!r} is no set and no sequence")
    if x is None or (isinstance(x, Expr) and x.t.kind == "option" and s.t.item.kind != "option"):
        if x is None:
            raise ModelError(f"None is never in {show(s)}")
        return _evaluated([s], and_(not_(eq(x, None)), contains(unwrapped(x), s)))
    x = lift(x, s.t.item)
    match s.op:
        case "full":
            return only(x, TRUE)
        case "empty":
            return only(x, FALSE)
    return node("in", BOOL, x, s)


def set_operation(op: str, a: Any, b: Any) -> Expr:
    x: Expr
    y: Expr
    x, y = map(value_of, _both(a, b, "is joined with"))
    if x.t.kind != "set" or y.t.kind != "set":
        raise ModelError(f"{show(x)} and {show(y)} are no sets")
    if op != "union":
        t = make("set", elem=x.t.item, hi=x.t.hi)
        if op == "inter" and x.t.item.kind != "rec" and within(y.t.item, x.t.item):
            t = make("set", elem=y.t.item)
    else:
        t = make("set", elem=join(x.t.item, y.t.item), hi=_sum(x.t.hi, y.t.hi), nonempty=x.t.nonempty or y.t.nonempty)
        if x.op in ("with", "empty") and y.op not in ("with", "empty"):
            x, y = y, x
    items, rest = [], y
    while op != "inter" and rest.op == "with":
        items.append(rest.args[1])
        rest = rest.args[0]
    if items and rest.op == "empty":
        if op == "union":
            return _with(x, items[::-1], t)
        for i in reversed(items):
            x = node("without", t, x, i)
        return x
    return node(op, t, x, y)


# ---- binders -------------------------------------------------------------------------------------------------------
_fresh = [0]


def bound(t: T, name: str) -> Expr:
    """A new bound variable of type t; its name is unique."""
    _fresh[0] += 1
    return node("bound", t, aux=f"{name}_{_fresh[0]}")


def name_of(aux: str) -> str:
    """The name in the text of a bound variable, by its unique one."""
    return aux.rpartition("_")[0]


class Span:
    """range(a, b) in a text."""

    def __init__(self, start: Any, stop: Any) -> None:
        self.start, self.stop = number(start), number(stop)
        lo, _ = limits(self.start)
        _, hi = limits(self.stop)
        if lo is None:
            raise ModelError(f"the least value of range({show(self.start)}, ...) cannot be told")
        self.t = make("range", lo=lo, hi=_sum(hi, -1))

    @property
    def whole(self) -> bool:
        """Is it all of its type, as both limits are constants of the model?"""
        return all(_linear(x) is not None for x in (self.start, self.stop))

    def condition(self, v: Expr) -> Expr:
        """v is in it, as far as its type does not say so."""
        low = TRUE if _linear(self.start) is not None else less(self.start, v, equal=True)
        return and_(low, TRUE if _linear(self.stop) is not None else less(v, self.stop))


def span(*args: Any) -> Span:
    if not 1 <= len(args) <= 2:
        raise ModelError("range() takes a start and a stop")
    return Span(0, args[0]) if len(args) == 1 else Span(*args)


def bound_over(domain: Any, name: str) -> Expr:
    """A bound variable that ranges over a domain of the text."""
    if isinstance(domain, Span):
        return bound(domain.t, name)
    if isinstance(domain, type) and issubclass(domain, Sort | enum.Enum):
        return bound(resolve(domain), name)
    if isinstance(domain, SetLiteral):
        domain = symbolic(domain)
    d = value_of(domain)
    if isinstance(d, Expr) and d.t.kind == "set":
        return bound(d.t.item, name)
    raise ModelError(f"{written(domain)} is no domain: a Sort, an Enum, range(a, b), a set or a sequence")


Condition = Callable[[Any], Any]


class Domain:
    """What a comprehension's variable takes: a bound variable, the value that the text reads, and its condition."""

    def __init__(self, domain: Any, name: str) -> None:
        domain = value_of(symbolic(domain)) if isinstance(domain, SetLiteral | Expr | list) else plain(domain)
        self.evaluated: list[Any] = []
        if isinstance(domain, Expr) and domain.t.kind == "seq":
            self.v = bound(make("range", lo=0, hi=last_index(domain.t)), name)
            self.value: Expr = node("at", domain.t.item, domain, self.v, aux="inside")
            self.inside: Expr = less(self.v, length(domain))
            self.evaluated = [domain]
            return
        self.v = self.value = bound_over(domain, name)
        if isinstance(domain, Span):
            self.inside = domain.condition(self.v)
            self.evaluated = [domain.start, domain.stop]
        else:
            self.inside = contains(self.v, domain) if isinstance(domain, Expr) else TRUE
            self.evaluated = [domain]

    def __call__(self, e: Expr) -> Expr:
        """An expression over the domain, which is evaluated first."""
        return _evaluated(self.evaluated, e)


def quantified(op: str, domain: Any, body: Condition, name: str) -> Expr:
    """all(...) and any(...): op is "forall" or "exists"; `body` already holds the comprehension's conditions."""
    both = or_ if op == "exists" else and_
    if isinstance(domain, tuple):
        values = [truth(body(x)) for x in domain]
        return _evaluated([*domain, *values], both(*values))
    d = Domain(domain, name)
    b = truth(body(d.value))
    b = or_(not_(d.inside), b) if op == "forall" else and_(d.inside, b)
    if b is (TRUE if op == "forall" else FALSE) or (b.op == "const" and has_values(d.v.t)):
        return d(b)
    return d(node(op, BOOL, d.v, b))


def chosen(op: str, domain: Any, cond: Condition, value: Condition, name: str, *default: Any) -> Expr:
    """max/min over a comprehension: op is "greatest" or "least". Without a default there must be something."""
    d = Domain(domain, name)
    condition = truth(cond(d.value))
    rest = [number(x) for x in default]
    whole = node(op, INT, d.v, and_(d.inside, condition), number(value(d.value)), *rest, total=bool(rest))
    return _evaluated(rest, d(whole))


def summed(domain: Any, cond: Condition, value: Condition, name: str) -> Expr:
    """sum(... for ...)."""
    d = Domain(domain, name)
    condition, e = truth(cond(d.value)), number(value(d.value))
    if e.op == "const" and e.aux == 1:
        return d(node("count", INT, d.v, and_(d.inside, condition)))
    return d(node("sum", INT, d.v, and_(d.inside, condition), e))


def collected(domain: Any, cond: Condition, value: Condition, name: str) -> Expr:
    """{... for x in D if ...}."""
    d = Domain(domain, name)
    condition, e = truth(cond(d.value)), value_of(symbolic(value(d.value)))
    hi = None
    if e.t.kind == "rec":
        hi = domain.t.hi if isinstance(domain, Expr) and domain.t.hi is not None else how_many(d.v.t)
        if hi is None:
            raise ModelError("how many records a comprehension makes at most cannot be told")
    if e is d.v:
        return d(node("setof", make("set", elem=d.v.t, hi=hi), d.v, and_(d.inside, condition)))
    _may_be_element(e.t)
    return d(node("image", make("set", elem=of_type(e), hi=hi), d.v, and_(d.inside, condition), e))


# ---- text ----------------------------------------------------------------------------------------------------------
_INFIX = {
    "and": " and ", "or": " or ", "eq": " == ", "lt": " < ", "le": " <= ", "add": " + ", "sub": " - ", "mul": " * ",
    "div": " // ", "mod": " % ", "concat": " + ", "union": " | ", "inter": " & ", "diff": " - ", "subset": " <= ",
    "in": " in ",
}  # fmt: skip


def written(x: Any) -> str:
    if isinstance(x, SetLiteral):
        return "{" + ", ".join(map(written, x.items)) + "}" if x.items else "set()"
    if isinstance(x, MapLiteral):
        return f"{{{x.name}: ... for {x.name} in ...}}"
    if isinstance(x, Span):
        return f"range({show(x.start)}, {show(x.stop)})"
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
        case "sortsize":
            return f"len({e.aux})"
        case "nextvar":
            return f"next.{e.aux}"
        case "bound":
            return name_of(e.aux)
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
        case "some" | "get" | "must":
            return show(a[0])
        case "only":
            return show(a[1])
        case "majority":
            return f"majority({show(a[0])})"
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
            which, default = "max" if e.op == "greatest" else "min", f", default={show(a[3])}" if len(a) > 3 else ""
            return f"{which}(({show(a[2])} for {show(a[0])} in {a[0].t!r} if {show(a[1])}){default})"
        case "count":
            return f"sum(1 for {show(a[0])} in {a[0].t!r} if {show(a[1])})"
        case "sum":
            return f"sum({show(a[2])} for {show(a[0])} in {a[0].t!r} if {show(a[1])})"
        case "image":
            return f"{{{show(a[2])} for {show(a[0])} in {a[0].t!r} if {show(a[1])}}}"
        case "setof":
            return f"{{{show(a[0])} for {show(a[0])} in {a[0].t!r} if {show(a[1])}}}"
        case "mapof":
            return f"{{{show(a[0])}: {show(a[1])} for {show(a[0])} in {a[0].t!r}}}"
    return "(" + _INFIX[e.op].join(map(show, a)) + ")"
