"""A model's text run as it stands on concrete Python states: slow and obvious, so the reference of every engine.

What has no value is an error here (`Undefined`), also where plain Python would let it pass, as with q[-1]; so is a
value that an action leaves in a variable of another type (`OutsideType`).
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
import math
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any, Final, NamedTuple, Protocol

from kafkaspec.errors import UserError, unknown
from kafkaspec.language import text
from kafkaspec.language.expr import SizeName, plain, sizes_now, static
from kafkaspec.language.model import Action, Disabled, LoadedModel, Model, load
from kafkaspec.language.trace import Value
from kafkaspec.language.types import Sort, T, elements, resolve


class Undefined(UserError):
    """A text has no value where it was evaluated: file:line, and why."""


class OutsideType(UserError):
    """An action leaves a value in a variable that is none of the variable's type; or in several, `variables`."""

    def __init__(self, text: str, *variables: str) -> None:
        super().__init__(text)
        self.variables = variables


class _NoFastWay(Exception):
    """A value must be looked at part by part."""


class State(tuple[Any, ...]):
    """A state: one frozen value a variable, in the model's order. Hashable; print it through `Concrete.show`."""

    __slots__ = ()


class Transition(NamedTuple):
    """One transition: the action, its arguments by name, and the state after."""

    action: str
    arguments: dict[str, Any]
    state: State


class _Values(Protocol):
    """Values by name. Raises KeyError for another name."""

    def __getitem__(self, name: str, /) -> Any: ...


class _View:
    """`s` over a concrete state. A value is asked for when the text first reads it, and kept."""

    __slots__ = ("__dict__", "__of")

    def __init__(self, values: _Values, after: _View | None) -> None:
        object.__setattr__(self, "_View__of", values)
        if after is not None:
            self.__dict__["next"] = after

    def __getattr__(self, name: str) -> Any:
        try:
            value = self.__dict__[name] = self.__of[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None
        return value


class _After(_View):
    """`s.next` in an action: what is assigned is the state's own, so that no later assignment reaches another place."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        running = _running.get()
        t = None if running is None else running.vars[name]
        self.__dict__[name] = _assigned(value, t)


def _there(t: T, v: Any) -> None:
    """What a map or a sequence is made of is wanted there: None is an error, unless it may be None."""
    if t.kind in ("map", "seq") and isinstance(v, dict | list):
        for x in v.values() if isinstance(v, dict) else v:
            if x is None and t.item.kind != "option":
                raise TypeError(f"None is no value of type {t.item!r}")
            _there(t.item, x)


def _assigned(v: Any, t: T | None) -> Any:
    """What a place of that type holds when a value was assigned to it. None itself is a matter of the place's type."""
    if t is not None:
        _there(t, v)
    return _own(v, t)


class _Map(dict[Any, Any]):
    """A map that is assigned to: by its keys alone."""

    item: T | None = None

    def __setitem__(self, key: Any, value: Any) -> None:
        if key not in self:
            raise IndexError(f"{key} is no key")
        super().__setitem__(key, _assigned(value, self.item))


class _Seq(list[Any]):
    """A sequence that is assigned to: within its length."""

    item: T | None = None

    def __setitem__(self, i: Any, value: Any) -> None:
        if not 0 <= i < len(self):
            raise IndexError(f"{i} is no index of a sequence of {len(self)}")
        super().__setitem__(i, _assigned(value, self.item))


class _Record:
    """A record that is assigned to, by its fields."""

    __slots__ = ("__dict__", "__types")
    __types: Mapping[str, T]

    def __init__(self, values: dict[str, Any], types: Mapping[str, T]) -> None:
        object.__setattr__(self, "_Record__types", types)
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = _assigned(value, self.__types.get(name))


_WHOLE: Final = frozenset({bool, int, str, set, frozenset, type(None)})
"""Types of values that have no parts to assign to."""


def _own(v: Any, t: T | None) -> Any:
    """A copy that can be assigned to in parts, of a place of that type, if it is known."""
    if type(v) in _WHOLE or isinstance(v, Sort):
        return v
    t = t.item if t is not None and t.kind == "option" else t
    if isinstance(v, dict):
        out = _Map()
        out.item = t.item if t is not None and t.kind == "map" else None
        for k, x in v.items():
            dict.__setitem__(out, k, _own(x, out.item))
        return out
    if isinstance(v, list):
        item = t.item if t is not None and t.kind == "seq" else None
        several = _Seq([_own(x, item) for x in v])
        several.item = item
        return several
    if isinstance(v, _Record):
        parts = v.__dict__
    elif dataclasses.is_dataclass(v) and not isinstance(v, type):
        parts = {f.name: getattr(v, f.name) for f in dataclasses.fields(v)}
    else:
        return v
    types = dict(t.fields) if t is not None and t.kind == "rec" else {}
    return _Record({n: _own(x, types.get(n)) for n, x in parts.items()}, types)


# ---- operations that ask for a value ---------------------------------------------------------------------------------
class _Options(list[Any]):
    """A sequence whose elements are options."""


_running: ContextVar[Concrete | None] = ContextVar("running", default=None)


def _index(a: Any, i: Any) -> Any:
    if isinstance(a, dict):
        if i not in a:
            raise IndexError(f"{i} is no key")
    elif isinstance(a, list) and not 0 <= i < len(a):
        raise IndexError(f"{i} is no index of a sequence of {len(a)}")
    return a[i]


def _sliced(a: Any, start: Any, stop: Any) -> Any:
    given = [limit for limit in (start, stop) if limit is not text.ABSENT]
    if any(limit is None or limit < 0 for limit in given):
        raise IndexError(f"{', '.join(map(str, given))}: a limit of a slice is 0 or more")
    return type(a)(a[None if start is text.ABSENT else start : None if stop is text.ABSENT else stop])


def _elements(s: set[Any]) -> set[Any]:
    if None in s:
        raise TypeError("None is no element of a set")
    return s


def _added(a: Any, b: Any) -> Any:
    if not isinstance(a, list):
        return a + b
    kinds = {type(x) for x in (a, b) if not _literal(x)}
    if None in [*a, *b] and kinds and _Options not in kinds:
        raise TypeError("None is no element of the sequence")
    return (_Options if _Options in kinds else _Plain if kinds else list)([*a, *b])


def _literal(x: Any) -> bool:
    return type(x) is list


class _Plain(list[Any]):
    """A sequence whose elements are no options."""


def _wanted(v: Any) -> Any:
    if v is None:
        raise TypeError("None stands where a number is wanted")
    return v


def _called(f: Any, /, *args: Any, **named: Any) -> Any:
    value = f(*args, **named)
    if isinstance(f, type) and dataclasses.is_dataclass(f):
        _fields(value)
    return value


def _replaced(a: Any, /, **changes: Any) -> Any:
    value = dataclasses.replace(a, **changes)
    _fields(value)
    return value


def _fields(r: Any) -> None:
    c, t = _running.get(), resolve(type(r))
    assert c is not None
    try:
        c._freeze(t, r, t.name)
    except OutsideType as e:
        raise TypeError(str(e)) from None


STRICT = {
    "__ks_index": _index, "__ks_sliced": _sliced, "__ks_elements": _elements, "__ks_added": _added,
    "__ks_called": _called, "__ks_replace": _replaced, "__ks_wanted": _wanted,
    "__ks_plain": plain, "__ks_absent": text.ABSENT,
}  # fmt: skip
_UNDEFINED = (
    IndexError, KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError, AssertionError, UnboundLocalError,
)  # fmt: skip


@dataclass
class _ThawedState:
    """The values of a frozen state; of `s.next`, as its own."""

    of: Concrete
    state: State
    own: bool = False

    def __getitem__(self, name: str) -> Any:
        value = self.of._thaw(self.of.vars[name], self.state[self.of._places[name]])
        return _own(value, self.of.vars[name]) if self.own else value


@dataclass
class _WithHelpers:
    """Values, and the model's helpers as methods of the view."""

    values: _Values
    helpers: Mapping[str, Any]
    view: _View | None = None

    def __getitem__(self, name: str) -> Any:
        return partial(self.helpers[name], self.view) if name in self.helpers else self.values[name]


class Concrete:
    """A model at given sizes. States carry the ghosts; with `ghosts=False` states that differ in ghosts alone are one.
    Raises UserError for sizes that do not fit."""

    def __init__(self, cls: type[Model], sizes: Mapping[str, int | bool], ghosts: bool = False) -> None:
        self.model: LoadedModel = load(cls)
        self.model.check_sizes(sizes)
        self.sizes = dict(sizes)
        self.vars = self.model.vars
        self._places = {n: i for i, n in enumerate(self.vars)}
        self._parameters: dict[str, tuple[list[str], list[T]]] = {}
        """of claims, when they were asked for: names and types"""
        self._abstract: dict[str, Concrete] = {}
        """by refinement, when they were asked for"""
        self._domains: dict[T, list[Any]] = {}
        self._freezers: dict[T, Callable[[Any], Any]] = {}
        self._kept = [i for i, n in enumerate(self.vars) if ghosts or n not in self.model.ghosts]
        self._elements: dict[type, tuple[Any, ...]] = {}
        for name, sort in self.model.sorts.items():
            self._elements[sort] = tuple(sort(f"{name[0].lower()}{i}") for i in range(int(self.sizes[name])))
        self._helpers = {n: f for n in dir(cls) if hasattr(f := getattr(cls, n, None), "__kafkaspec_define__")}
        self._files = {
            f.__code__.co_filename for c in cls.__mro__ for f in vars(c).values() if isinstance(f, FunctionType)
        }
        self._functions = {n: getattr(cls, n) for n in dir(cls) if hasattr(getattr(cls, n, None), "__kafkaspec__")}

    @contextmanager
    def _running(self) -> Iterator[None]:
        a, b, c = elements.set(self._elements), sizes_now.set(self.sizes), _running.set(self)
        try:
            yield
        finally:
            elements.reset(a)
            sizes_now.reset(b)
            _running.reset(c)

    # ---- values
    def values(self, t: T) -> list[Any]:
        """Every value of a type that has finitely many and is used as a parameter or a map's key."""
        match t.kind:
            case "bool":
                return [False, True]
            case "enum":
                return list(typing.cast(type[enum.Enum], t.cls))
            case "sort":
                assert t.cls is not None
                return list(self._elements[t.cls])
            case "range":
                return list(range(static(t.lo, self.sizes), static(t.hi, self.sizes) + 1))
            case "option":
                return [None, *self.values(t.item)]
            case "set":
                items = self.values(t.item)
                most = len(items) if t.hi is None else static(t.hi, self.sizes)
                return [set(c) for n in range(int(t.nonempty), most + 1) for c in itertools.combinations(items, n)]
            case "map":
                keys = self.values(t.domain)
                return [
                    dict(zip(keys, v, strict=True)) for v in itertools.product(self.values(t.item), repeat=len(keys))
                ]
            case "rec":
                assert t.cls is not None
                names = [n for n, _ in t.fields]
                return [
                    t.cls(**dict(zip(names, v, strict=True)))
                    for v in itertools.product(*[self.values(f) for _, f in t.fields])
                ]
        raise UserError(f"values of type {t!r} are not enumerated")

    def _keys(self, t: T) -> list[Any]:
        """The keys of a map of this type."""
        known = self._domains.get(t)
        if known is None:
            known = self._domains[t] = self.values(t.domain)
        return known

    def _first(self, t: T) -> Any:
        match t.kind:
            case "bool":
                return False
            case "enum":
                return next(iter(typing.cast(type[enum.Enum], t.cls)))
            case "range":
                lo = static(t.lo, self.sizes)
                return 0 if lo <= 0 and (t.hi is None or static(t.hi, self.sizes) >= 0) else lo
            case "set":
                return set()
            case "seq":
                return []
            case "map":
                return {k: self._first(t.item) for k in self.values(t.domain)}
            case "rec":
                assert t.cls is not None
                return t.cls(**{n: self._first(f) for n, f in t.fields})
        return None

    def _freeze(self, t: T, v: Any, where: str) -> Any:
        """A value as a state has it. Raises OutsideType, which says where the value is none of the type."""
        try:
            return self._freezer(t)(v)
        except (_NoFastWay, LookupError, TypeError):
            return self._examined(t, v, where)

    def _freezer(self, t: T) -> Callable[[Any], Any]:
        """What freezes most values of a type, without a word of where they stand: walks freeze very many. It raises
        _NoFastWay, LookupError or TypeError for what `_examined` must look at."""
        known = self._freezers.get(t)
        if known is None:
            known = self._freezers[t] = self._fast(t)
        return known

    def _fast(self, t: T) -> Callable[[Any], Any]:
        def refuse(v: Any) -> typing.NoReturn:
            raise _NoFastWay

        most = static(t.hi, self.sizes) if t.kind in ("set", "seq", "range") and t.hi is not None else None
        match t.kind:
            case "map":
                keys, of = self._keys(t), self._freezer(t.item)
                many = len(keys)
                return lambda v: (
                    tuple([of(v[k]) for k in keys]) if isinstance(v, dict) and len(v) == many else refuse(v)
                )
            case "set":
                of, least, limit = self._freezer(t.item), int(t.nonempty), math.inf if most is None else most
                return lambda v: (
                    frozenset(map(of, v)) if isinstance(v, set | frozenset) and least <= len(v) <= limit else refuse(v)
                )
            case "seq" if most is not None:
                of, longest = self._freezer(t.item), most
                return lambda v: tuple(map(of, v)) if isinstance(v, list) and len(v) <= longest else refuse(v)
            case "option":
                of = self._freezer(t.item)
                return lambda v: None if v is None else (of(v),)
            case "rec":
                parts = [(n, self._freezer(f)) for n, f in t.fields]
                return lambda v: (
                    tuple([freeze(getattr(v, n)) for n, freeze in parts])
                    if type(v) is t.cls or isinstance(v, _Record)
                    else refuse(v)
                )
            case "bool":
                return lambda v: v if v is True or v is False else refuse(v)
            case "int":
                return lambda v: v if type(v) is int else refuse(v)
            case "range":
                low, high = static(t.lo, self.sizes), math.inf if most is None else most
                return lambda v: v if type(v) is int and low <= v <= high else refuse(v)
            case "sort":
                assert t.cls is not None
                named: dict[str, Sort] = {x.name: x for x in self._elements[t.cls]}
                return lambda v: named[typing.cast(Sort, v).name] if type(v) is t.cls else refuse(v)
            case "enum":
                return lambda v: v if type(v) is t.cls else refuse(v)
        return refuse

    def _examined(self, t: T, v: Any, where: str) -> Any:
        def wrong(why: str) -> typing.NoReturn:
            raise OutsideType(f"{where} {why}", re.split(r"\W", where)[0])

        if v is None and t.kind != "option":
            wrong("is None")
        match t.kind:
            case "map":
                keys = self._keys(t)
                if not isinstance(v, dict) or set(v) != set(keys):
                    wrong(f"has not the keys of {t.domain!r}")
                return tuple(self._examined(t.item, v[k], f"{where}[{k}]") for k in keys)
            case "set":
                if not isinstance(v, set | frozenset):
                    v = self._whole(v, t, wrong)
                if t.nonempty and not v:
                    wrong("is empty")
                if t.hi is not None and len(v) > static(t.hi, self.sizes):
                    wrong(f"has more than {static(t.hi, self.sizes)} elements")
                return frozenset(self._examined(t.item, x, where) for x in v)
            case "seq":
                if not isinstance(v, list):
                    wrong("is no sequence")
                if len(v) > static(t.hi, self.sizes):
                    wrong(f"is longer than {static(t.hi, self.sizes)}")
                return tuple(self._examined(t.item, x, where) for x in v)
            case "option":
                return None if v is None else (self._examined(t.item, v, where),)
            case "rec":
                if not isinstance(v, _Record) and type(v) is not t.cls:
                    wrong(f"is no {t.name}")
                return tuple(self._examined(f, getattr(v, n), f"{where}.{n}") for n, f in t.fields)
            case "bool":
                if isinstance(v, SizeName):
                    v = v._now()
                if not isinstance(v, bool):
                    wrong(f"= {v} is no truth value")
            case "range" | "int":
                if isinstance(v, SizeName):
                    v = v._now()
                if not isinstance(v, int) or isinstance(v, bool):
                    wrong(f"= {v} is no number")
                if t.kind == "range":
                    lo = static(t.lo, self.sizes)
                    if v < lo or (t.hi is not None and v > static(t.hi, self.sizes)):
                        wrong(f"= {v} leaves its range {t!r}")
            case "sort":
                assert t.cls is not None
                if v not in self._elements[t.cls]:
                    wrong(f"= {v} is no {t.name}")
            case "enum":
                if type(v) is not t.cls:
                    wrong(f"= {v} is no {t.name}")
        return v

    def _whole(self, v: Any, t: T, wrong: Any) -> Any:
        """A set that is written as its sort or enum."""
        return set(typing.cast(Any, v)) if isinstance(v, type) and resolve(v) is t.item else wrong("is no set")

    def _thaw(self, t: T, v: Any) -> Any:
        match t.kind:
            case "map":
                return {k: self._thaw(t.item, x) for k, x in zip(self._keys(t), v, strict=True)}
            case "set":
                return {self._thaw(t.item, x) for x in v}
            case "seq":
                return (_Options if t.item.kind == "option" else _Plain)(self._thaw(t.item, x) for x in v)
            case "option":
                return None if v is None else self._thaw(t.item, v[0])
            case "rec":
                assert t.cls is not None
                return t.cls(**{n: self._thaw(f, x) for (n, f), x in zip(t.fields, v, strict=True)})
        return v

    def _values(self, state: State) -> dict[str, Any]:
        return {n: self._thaw(t, v) for (n, t), v in zip(self.vars.items(), state, strict=True)}

    def _view(self, values: _Values, after: _View | None = None) -> _View:
        named = _WithHelpers(values, self._helpers)
        named.view = view = _View(named, after)
        return view

    def _after(self, view: _View, before: State | None) -> State:
        """The state that a view shows; what no text has touched is as it was before, if that is a state."""
        touched, values, wrong = view.__dict__, [], []
        for i, (n, t) in enumerate(self.vars.items()):
            try:
                values.append(self._freeze(t, getattr(view, n), n) if before is None or n in touched else before[i])
            except OutsideType as e:
                wrong.append(e)
        if wrong:
            raise OutsideType(str(wrong[0]), *(n for e in wrong for n in e.variables))
        return State(values)

    def freeze(self, values: Mapping[str, Any]) -> State:
        """A state from plain values by variable (dicts, sets, lists). Raises UserError when one leaves its type."""
        with self._running():
            return State(self._freeze(t, values[n], n) for n, t in self.vars.items())

    def key(self, state: State) -> tuple[Any, ...]:
        """What tells states apart: the state without its ghosts, unless they were asked for."""
        return tuple(state[i] for i in self._kept)

    def show(self, state: State) -> dict[str, Value]:
        """A state in JSON's shapes, as traces print it."""
        return {n: self._show(t, v) for (n, t), v in zip(self.vars.items(), state, strict=True)}

    def _show(self, t: T, v: Any) -> Value:
        match t.kind:
            case "map":
                return {_key(k): self._show(t.item, x) for k, x in zip(self._keys(t), v, strict=True)}
            case "set":
                return sorted((self._show(t.item, x) for x in v), key=str)
            case "seq":
                return [self._show(t.item, x) for x in v]
            case "option":
                return None if v is None else self._show(t.item, v[0])
            case "rec":
                return {n: self._show(f, x) for (n, f), x in zip(t.fields, v, strict=True)}
            case "enum":
                return v.name
            case "sort":
                return v.name
        return v

    # ---- runs
    def _call(self, name: str, view: Any, arguments: Mapping[str, Any]) -> Any:
        """What a method returns. Raises Disabled, Undefined."""
        f = typing.cast(FunctionType, self._functions[name])
        try:
            return text.concrete(f, STRICT)(view, **arguments)
        except _UNDEFINED as e:
            raise Undefined(str(text.located(f, e, self._files))) from None

    def _valuations(self, names: list[str], types: list[T]) -> list[dict[str, Any]]:
        return [dict(zip(names, v, strict=True)) for v in itertools.product(*[self.values(t) for t in types])]

    def _choices(self, a: Action, state: _Values) -> list[dict[str, Any]]:
        """Every way to choose an action's parameters in a state."""
        values = [
            sorted(state[a.drawn[p.aux].aux], key=str) if p.aux in a.drawn else self.values(p.t) for p in a.params
        ]
        names = [a.parameter(p) for p in a.params]
        return [dict(zip(names, v, strict=True)) for v in itertools.product(*values)]

    def _firsts(self) -> dict[str, Any]:
        """The variables' first values."""
        return {n: self._first(t) for n, t in self.vars.items()}

    def _effect(self, name: str, before: State | None, arguments: Mapping[str, Any]) -> State | None:
        """The state after an action, None if its guard is false; `before` None: after the variables' first values."""
        first = self._firsts() if before is None else {}
        own = {n: _own(v, self.vars[n]) for n, v in first.items()}
        after = _After(own if before is None else _ThawedState(self, before, own=True), None)
        if name in self._functions:  # a model without @initial has first values alone
            try:
                view = self._view(first if before is None else _ThawedState(self, before), after)
                self._call(name, view, arguments)
            except Disabled:
                return None
        return self._after(after, before)

    def initial_states(self) -> list[State]:
        """The first states, without repetition."""
        return list(dict.fromkeys(self._starts()))

    def _starts(self) -> list[State]:
        """The first states: one for each valuation of the start's parameters, as TLC counts what it generates."""
        with self._running():
            a = self.model.initial
            found = [self._effect(a.name, None, v) for v in self._choices(a, self._firsts())]
            return [s for s in found if s is not None]

    def successors(self, state: State) -> list[Transition]:
        """Every transition from a state: one for each action and valuation of its parameters whose guard holds."""
        out = []
        with self._running():
            for a in self.model.actions:
                for v in self._choices(a, _ThawedState(self, state)):
                    after = self._effect(a.name, state, v)
                    if after is not None:
                        out.append(Transition(a.name, v, after))
        return out

    def written(self, action: Action, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """An action's arguments as a key: equal arguments are equal keys."""
        with self._running():
            return tuple(self._freeze(p.t, arguments[action.parameter(p)], p.aux) for p in action.params)

    def take(self, state: State, action: str, arguments: Mapping[str, Any]) -> State | None:
        """The state after one action with these arguments; None if its guard is false."""
        if action not in self._functions:
            raise unknown(f"action of {self.model.name}", action, [a.name for a in self.model.actions])
        with self._running():
            return self._effect(action, state, arguments)

    def value(self, claim: str, state: State, arguments: Mapping[str, Any]) -> Any:
        """What a claim's text returns in a state. Raises Undefined."""
        with self._running():
            return self._call(claim, self._view(_ThawedState(self, state)), arguments)

    def holds(self, claim: str, state: State, after: State | None = None) -> bool:
        """Whether an invariant, lemma or witness holds in a state, or a step property of a transition."""
        name, _, part = claim.partition(": ")
        if name in self.model.refinements:
            return self._refines(name, part, state, after)
        with self._running():
            following = None if after is None else self._view(_ThawedState(self, after))
            view = self._view(_ThawedState(self, state), following)
            results = [bool(self._call(claim, view, v)) for v in self._valuations(*self._parameters_of(claim))]
            return any(results) if claim in self.model.witnesses else all(results)

    def _parameters_of(self, claim: str) -> tuple[list[str], list[T]]:
        if claim not in self._parameters:
            code = self._functions[claim].__code__
            names = list(code.co_varnames[1 : code.co_argcount])
            hints = typing.get_type_hints(self._functions[claim], include_extras=True)
            self._parameters[claim] = names, [resolve(hints[n]) for n in names]
        return self._parameters[claim]

    def shows(self, name: str, state: State) -> State:
        """The abstract state that a refinement's mapping shows. Raises Undefined, OutsideType."""
        with self._running():
            shown = self._call(name, self._view(_ThawedState(self, state)), {})
        return self.abstract(name).freeze(shown.values)

    def abstract(self, name: str) -> Concrete:
        """The abstract model of a refinement, at this model's sizes."""
        if name not in self._abstract:
            of = self.model.refinements[name].abstract
            self._abstract[name] = Concrete(of.cls, {n: self.sizes[n] for n in of.sizes}, ghosts=True)
        return self._abstract[name]

    def _refines(self, name: str, part: str, state: State, after: State | None) -> bool:
        try:
            shown = self.shows(name, state)
        except OutsideType:
            return part != "type"
        if part == "type":
            return True
        abstract = self.abstract(name)
        if part == "start":
            return shown in abstract.ways(None)
        assert after is not None
        try:
            then = self.shows(name, after)
        except OutsideType:
            return False
        return then == shown or then in abstract.ways(shown)

    def ways(self, state: State | None) -> Iterator[State]:
        """The states after each action from a state, or the first states of None, as a refinement asks for them: where
        an action's text has no value, or leaves one outside its type, it is no way."""
        for a in [self.model.initial] if state is None else self.model.actions:
            with self._running():
                choices = self._choices(a, self._firsts() if state is None else _ThawedState(self, state))
            for v in choices:
                try:
                    with self._running():
                        then = self._effect(a.name, state, v)
                except (Undefined, OutsideType):
                    continue
                if then is not None:
                    yield then

    def reachable(
        self, limit: int = 1_000_000, transitions: dict[State, list[Transition]] | None = None
    ) -> tuple[dict[State, int], int]:
        """Breadth-first: every reachable state with its depth (from 1, as TLC counts), and the number of states
        generated; `transitions` gets those from each state. Raises UserError above `limit` states."""
        starts = self._starts()
        seen = {self.key(s): (s, 1) for s in starts}
        level, generated, depth = [s for s, _ in seen.values()], len(starts), 1
        while level:
            depth += 1
            following = []
            for s in level:
                found = self.successors(s)
                if transitions is not None:
                    transitions[s] = found
                for t in found:
                    generated += 1
                    k = self.key(t.state)
                    if k not in seen:
                        seen[k] = (t.state, depth)
                        following.append(t.state)
            if len(seen) > limit:
                raise UserError(f"{self.model.name} has more than {limit} states at {self.sizes}")
            level = following
        return dict(seen.values()), generated


def _key(k: Any) -> str:
    return k.name if isinstance(k, enum.Enum | Sort) else str(k)


def element(cls: type[Sort], i: int) -> Sort:
    """The i-th element of a sort, as traces name it."""
    return cls(f"{cls.__name__[0].lower()}{i}")
