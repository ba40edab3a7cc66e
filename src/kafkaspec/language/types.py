"""The types of the language, as a model's annotations say them in plain Python.

bool, an Enum, a Sort            themselves
Annotated[int, Range(0, D)]      a bounded number; Range(0) has no upper bound
X | None                         an option
dict[K, V]                       a total map over its key's domain (Sort, Range, Enum or bool); maps nest
set[X]                           a finite set of sort elements, enum members, bools or bounded numbers;
                                 Annotated[set[X], NonEmpty] is never empty
Annotated[set[R], Bounded(K)]    a set of at most K records: messages on their way
Annotated[list[X], Bounded(L)]   a sequence of at most L elements
a frozen dataclass               a record
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from kafkaspec.language import form

if typing.TYPE_CHECKING:
    from kafkaspec.language.expr import Expr

Kind = Literal["bool", "int", "enum", "sort", "range", "option", "set", "map", "seq", "rec"]
SortT = TypeVar("SortT")

elements: ContextVar[dict[type, tuple[Any, ...]] | None] = ContextVar("elements", default=None)
"""While a text runs on concrete states: the elements of each sort."""

tracing: ContextVar[Any] = ContextVar("tracing", default=None)
"""While a text is read symbolically: the loader's Trace."""


class _Domain(type):
    def __iter__(cls: type[SortT]) -> Iterator[SortT]:
        known = elements.get()
        if known is None or cls not in known:
            raise TypeError(f"{cls.__name__} is a sort: iterate over it only in all(), any() or a comprehension")
        return iter(known[cls])

    def __len__(cls) -> int:
        known = elements.get()
        if known is None or cls not in known:
            raise TypeError(
                f"the number of elements of {cls.__name__} is known in a model's text only; a limit is a Size"
            )
        return len(known[cls])

    def __bool__(cls) -> bool:
        return True


class Sort(metaclass=_Domain):
    """A finite set of elements that differ in nothing but identity. Subclass it: `class Partition(Sort): ...`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sort) and type(self) is type(other) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __lt__(self, other: Any) -> bool:
        raise TypeError(f"elements of {type(self).__name__} have no order")


@dataclass(frozen=True, eq=False)
class Range:
    """A number's limits, both included. `hi` None: no upper limit. Limits may be sizes, as in Range(1, E)."""

    lo: Any = 0
    hi: Any = None


@dataclass(frozen=True, eq=False)
class Bounded:
    """A sequence's greatest length, or how many elements a set of records has at most."""

    length: Any


@dataclass(frozen=True)
class Of:
    """Marks a parameter that is drawn from a variable, a set: `m: Annotated[Letter, Of("post")]`."""

    variable: str


class NonEmpty:
    """Marks a set that is never empty: Annotated[set[X], NonEmpty]."""


class T:
    """A resolved type. Interned: equal types are one object, so compare with `is`."""

    __slots__ = ("cls", "elem", "fields", "hi", "key", "kind", "lo", "name", "nonempty")

    def __init__(
        self,
        kind: Kind,
        name: str = "",
        elem: T | None = None,
        key: T | None = None,
        lo: Any = None,
        hi: Any = None,
        nonempty: bool = False,
        cls: type | None = None,
        fields: tuple[tuple[str, T], ...] = (),
    ) -> None:
        self.kind, self.name, self.elem, self.key, self.lo, self.hi = kind, name, elem, key, lo, hi
        self.nonempty, self.cls, self.fields = nonempty, cls, fields

    def __repr__(self) -> str:
        match self.kind:
            case "range":
                return f"{_limit(self.lo)}..{_limit(self.hi) if self.hi is not None else ''}"
            case "option":
                return f"{self.elem!r} | None"
            case "set":
                return f"set[{self.elem!r}]"
            case "map":
                return f"dict[{self.key!r}, {self.elem!r}]"
            case "seq":
                return f"list[{self.elem!r}]"
        return self.name or self.kind

    @property
    def numeric(self) -> bool:
        return self.kind in ("int", "range")

    @property
    def item(self) -> T:
        """The element's type of an option, set, map or sequence."""
        assert self.elem is not None
        return self.elem

    @property
    def domain(self) -> T:
        """The key's type of a map."""
        assert self.key is not None
        return self.key


def _limit(x: Any) -> str:
    return str(x)


_interned: dict[Any, T] = {}


def _ident(limit: int | Expr | None) -> Any:
    return limit if limit is None or isinstance(limit, int) else ("expr", limit.id)


def make(
    kind: Kind,
    name: str = "",
    elem: T | None = None,
    key: T | None = None,
    lo: Any = None,
    hi: Any = None,
    nonempty: bool = False,
    cls: type | None = None,
    fields: tuple[tuple[str, T], ...] = (),
) -> T:
    """The one type object with these parts."""
    parts = tuple((n, id(t)) for n, t in fields)
    k = (kind, name, id(elem), id(key), _ident(lo), _ident(hi), nonempty, cls, parts)
    t = _interned.get(k)
    if t is None:
        t = _interned[k] = T(kind, name, elem, key, lo, hi, nonempty, cls, fields)
    return t


BOOL = make("bool", "bool")
INT = make("int", "int")


class TypeNotInLanguage(Exception):
    """An annotation that the language has no meaning for."""


_resolving: list[type] = []


def resolve(annotation: Any) -> T:
    """The type that an annotation says. Raises TypeNotInLanguage."""
    from kafkaspec.language.expr import size_value

    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        inner, marks = args[0], args[1:]
        limits = [m for m in marks if isinstance(m, Range | Bounded | NonEmpty) or m in (Range, Bounded, NonEmpty)]
        if len(limits) > 1:
            raise TypeNotInLanguage(f"{inner!r} is limited more than once, where one limit alone counts")
        for m in marks:
            if isinstance(m, NonEmpty) or m is Of:
                raise TypeNotInLanguage("write NonEmpty" if m is not Of else "write Of(...), with a variable's name")
            if isinstance(m, Range) and inner is int:
                if m.lo is None:
                    raise TypeNotInLanguage(f"{m!r}: a number has a lower limit")
                return make("range", lo=size_value(m.lo), hi=size_value(m.hi))
            if isinstance(m, Bounded) and m.length is None:
                raise TypeNotInLanguage(f"{m!r}: how many there are at most is a whole number or a size")
            if isinstance(m, Bounded) and typing.get_origin(inner) is list:
                return make("seq", elem=resolve(_only(inner)), hi=size_value(m.length))
            if isinstance(m, Bounded) and typing.get_origin(inner) in (set, frozenset):
                elem = resolve(_only(inner))
                if elem.kind != "rec":
                    raise TypeNotInLanguage(f"a bounded set holds records, not {elem!r}")
                if (why := unhashable(elem)) != "":
                    raise TypeNotInLanguage(why)
                return make("set", elem=elem, hi=size_value(m.length))
            if m is NonEmpty and typing.get_origin(inner) in (set, frozenset):
                return make("set", elem=_element(_only(inner)), nonempty=True)
            if isinstance(m, Range | Bounded) or m in (Range, Bounded, NonEmpty):
                raise TypeNotInLanguage(f"{inner!r} is not limited by {m!r}")
        return resolve(inner)
    if annotation is bool:
        return BOOL
    if origin in (typing.Union, types.UnionType):
        rest = [a for a in args if a is not type(None)]
        if len(rest) != 1 or len(args) != 2:
            raise TypeNotInLanguage(f"{annotation}: the only union is X | None")
        return make("option", elem=resolve(rest[0]))
    if origin is dict:
        if len(args) != 2:
            raise TypeNotInLanguage(f"{annotation}: a map has one type of keys and one of values: dict[K, V]")
        key = resolve(args[0])
        if key.kind not in ("sort", "range", "enum", "bool"):
            raise TypeNotInLanguage(f"a map's key is a Sort, a Range, an Enum or bool, not {key!r}")
        if key.kind == "range" and key.hi is None:
            raise TypeNotInLanguage(f"{key!r}: a map's key has an upper limit")
        return make("map", elem=resolve(args[1]), key=key)
    if origin in (set, frozenset):
        return make("set", elem=_element(_only(annotation)))
    if origin is list:
        raise TypeNotInLanguage(f"{annotation}: a sequence needs its greatest length: Bounded(L)")
    if annotation is int:
        raise TypeNotInLanguage("int: a number needs its limits: Annotated[int, Range(0, N)]")
    if isinstance(annotation, type):
        wrong = (
            form.enumeration(annotation)
            if issubclass(annotation, enum.Enum)
            else form.sort(annotation, Sort)
            if issubclass(annotation, Sort)
            else form.record(annotation)
            if dataclasses.is_dataclass(annotation)
            else ""
        )
        if wrong:
            raise TypeNotInLanguage(wrong)
        if issubclass(annotation, enum.Enum):
            return make("enum", annotation.__name__, cls=annotation)
        if issubclass(annotation, Sort):
            t = make("sort", annotation.__name__, cls=annotation)
            if (trace := tracing.get()) is not None:
                trace.sorts.append(t)
            return t
        if dataclasses.is_dataclass(annotation):
            try:
                hints = typing.get_type_hints(annotation, include_extras=True)
            except Exception as e:
                raise TypeNotInLanguage(f"a field of {annotation.__name__}: {e}") from None
            if annotation in _resolving:
                raise TypeNotInLanguage(f"{annotation.__name__} holds itself: a record has finitely many values")
            _resolving.append(annotation)
            try:
                fields = tuple((f.name, resolve(hints[f.name])) for f in dataclasses.fields(annotation))
            finally:
                _resolving.pop()
            return make("rec", annotation.__name__, cls=annotation, fields=fields)
    raise TypeNotInLanguage(f"{annotation!r} is no type of the language")


def unhashable(t: T) -> str:
    """Why Python's sets cannot hold a record: it has a set, a map or a sequence. "" if they can."""
    for name, f in t.fields:
        inner = f.item if f.kind == "option" else f
        if inner.kind in ("set", "map", "seq"):
            return f"{t.name}.{name} is of type {f!r}: a record in a set has no sets, maps or sequences"
        if (why := unhashable(inner)) != "":
            return why
    return ""


def _only(annotation: Any) -> Any:
    """The one type in set[X] or list[X]."""
    args = typing.get_args(annotation)
    if len(args) != 1:
        raise TypeNotInLanguage(f"{annotation}: its elements are of one type")
    return args[0]


def _element(annotation: Any) -> T:
    elem = resolve(annotation)
    if elem.kind == "rec":
        raise TypeNotInLanguage(f"a set of records needs its greatest size: Annotated[set[{elem!r}], Bounded(K)]")
    if elem.kind not in ("sort", "enum", "bool", "range"):
        raise TypeNotInLanguage(f"an element of a set is of a Sort, a Range, an Enum, bool or a record, not {elem!r}")
    return elem
