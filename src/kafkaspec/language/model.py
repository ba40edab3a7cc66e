"""A model: a class whose annotations are its variables and whose decorated methods are its actions and claims."""

from __future__ import annotations

import ast
import contextlib
import functools
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from kafkaspec.contract import clauses
from kafkaspec.errors import UserError, unknown
from kafkaspec.language import form, text
from kafkaspec.language.defined import DEFINED, Need, Update, implies, typed
from kafkaspec.language.expr import (
    TRUE,
    Expr,
    ModelError,
    and_,
    at_most,
    bound,
    contains,
    has_values,
    index,
    lift,
    name_of,
    node,
    number,
    static,
    truth,
)
from kafkaspec.language.expr import (
    majority as _majority,
)
from kafkaspec.language.parts import parts_of
from kafkaspec.language.refine import Refinement, mapped, no_first
from kafkaspec.language.types import INT, Of, T, TypeNotInLanguage, elements, resolve, tracing

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M", bound="Model")
Fairness = Literal["", "weak", "strong"]
MOST_CALLS = 20_000
"""Of helpers, in one model's text."""
MarkKind = Literal["action", "initial", "invariant", "lemma", "step", "witness", "leads_to", "refines"]


# ---- what a text is decorated with ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class Mark:
    """What a decorator says of a method."""

    kind: MarkKind
    clauses: tuple[str, ...] = ()
    who: str = ""
    fair: Fairness = ""
    per: tuple[str, ...] = ()
    abstract: type[Model] | None = None


def _marked(mark: Mark) -> Callable[[F], F]:
    def mark_it(f: F) -> F:
        f.__kafkaspec__ = mark  # type: ignore[attr-defined]
        for id in mark.clauses:
            if isinstance(id, str):  # `_given` refuses another
                clauses.used(id, "model", f"{f.__module__}:{f.__qualname__}")
        return f

    return mark_it


def action(*ids: str, who: str = "", fair: Fairness = "", per: tuple[str, ...] = ()) -> Callable[[F], F]:
    """A step of the system: `require` its guard, assign to `s.next` its effect. `who` takes it. Fairness is for the
    action as a whole, or one condition for each value of the parameters named in `per`."""
    return _marked(Mark("action", ids, who, fair, per))


def invariant(*ids: str) -> Callable[[F], F]:
    """True in every reachable state. Parameters are read as "for all"."""
    return _marked(Mark("invariant", ids))


def lemma(*ids: str) -> Callable[[F], F]:
    """An invariant that is there to hold up a proof."""
    return _marked(Mark("lemma", ids))


def step(*ids: str) -> Callable[[F], F]:
    """True of every transition: reads `s.x` (before) and `s.next.x` (after)."""
    return _marked(Mark("step", ids))


def leads_to(*ids: str) -> Callable[[F], F]:
    """Returns (trigger, goal): whenever the trigger is true, the goal is true then or later; for all parameters."""
    return _marked(Mark("leads_to", ids))


def refines(abstract: type[M], *ids: str) -> Callable[[F], F]:
    """The model refines the abstract one: the method returns, by `Abstract.shown(variable=value, ...)`, the abstract
    state that a state shows. Every first state shows a first state; every step a step, or nothing that changes."""
    return _marked(Mark("refines", ids, abstract=abstract))


def _only(decorator: str, given: tuple[F, ...]) -> F:
    """What a decorator without brackets decorates."""
    if len(given) != 1 or not callable(given[0]):
        raise ModelError(f"write @{decorator}, without brackets, over a method")
    return given[0]


def initial(*method: F) -> F:
    """The first state: assigns to `s.next`; what is not assigned is its type's first value (False, 0, empty, None)."""
    return _marked(Mark("initial"))(_only("initial", method))


def witness(*method: F) -> F:
    """A state that must be reachable, else the model is vacuous. Parameters are read as "for some"."""
    return _marked(Mark("witness"))(_only("witness", method))


def define(*method: F) -> F:
    """A helper that actions and claims share; may contain require and assignments to s.next."""

    f = _only("define", method)
    function = typing.cast(FunctionType, f)

    def helper(*args: Any, **named: Any) -> Any:
        trace = tracing.get()
        if trace is None:
            if elements.get() is None:
                return f(*args, **named)
            from kafkaspec.language.concrete import STRICT

            return text.concrete(function, STRICT)(*args, **named)
        trace.files.add(function.__code__.co_filename)
        trace.calls += 1
        if trace.calls > MOST_CALLS:
            raise ModelError(f"helpers are called more than {MOST_CALLS:,} times: too many to read the text")
        options = _options(function)
        declared = map(options.get, function.__code__.co_varnames)
        args = tuple(_as_declared(a, next(declared, None)) for a in args)
        named = {n: _as_declared(a, options.get(n)) for n, a in named.items()}
        with text.Frame() as frame:
            for a in (*args, *named.values()):
                text.met(a)
            result = frame.value(_as_declared(text.symbolic(function)(*args, **named), options.get("return")))
        if result is None:  # what it asserts and evaluates is evaluated where it is called
            text.met(frame.evaluated)
        return result

    helper.__kafkaspec_define__ = f  # type: ignore[attr-defined]
    helper.__name__, helper.__doc__, helper.__module__ = f.__name__, f.__doc__, f.__module__
    return typing.cast(F, helper)


@functools.cache
def _options(f: FunctionType) -> dict[str, T]:
    """The parameters of a helper, and "return", that are declared as X | None."""
    try:
        hints = typing.get_type_hints(f, include_extras=True)
    except NameError:  # of another scope: what is given then says its type by itself
        return {}
    out = {}
    for name, hint in hints.items():
        with contextlib.suppress(TypeNotInLanguage):
            if hint is not type(None) and (t := resolve(hint)).kind == "option":
                out[name] = t
    return out


def _as_declared(x: Any, t: T | None) -> Any:
    """An X where X | None is declared."""
    if t is not None:
        with contextlib.suppress(ModelError):
            return lift(x, t)
    return x


class Disabled(Exception):
    """A guard is false in the concrete state at hand."""


def require(*conditions: bool) -> None:
    """The action's guard: all of these, or the action cannot be taken."""
    trace = tracing.get()
    if trace is None:
        if not all(conditions):
            raise Disabled
        return
    action = _acting("require()")
    here = and_(*text.When.stack)
    text.evaluated()
    for c in map(truth, conditions):
        text.met(c)
        action.guard += parts_of(implies(here, c))


require.__kafkaspec_call__ = True  # type: ignore[attr-defined]


def majority(members: Any) -> bool:
    """More than half of the elements of a sort are in the set: any two such sets have an element in common."""
    if tracing.get() is None:
        members = set(members)
        known = elements.get() or {}
        return bool(members) and 2 * len(members) > len(known[type(next(iter(members)))])
    return typing.cast(bool, _majority(members))


majority.__kafkaspec_call__ = True  # type: ignore[attr-defined]


def _acting(what: str) -> Action:
    """The action that is being read. Raises ModelError where it cannot guard or assign."""
    trace = tracing.get()
    if trace.action is None:
        raise ModelError(f"{what} stands outside an action")
    if text.Frame.binders:
        raise ModelError(f"{what} stands in a comprehension, where it would not be of the whole action")
    return typing.cast(Action, trace.action)


class Model:
    """Base of every model. Annotated names are the variables; see the package's text for the types."""

    ghosts: ClassVar[tuple[str, ...]] = ()
    """Variables that the explicit reading leaves out unless asked to keep them."""

    @classmethod
    def shown(cls, /, **values: Any) -> Self:
        """The state of this model with these values of its variables, which a refinement's mapping returns."""
        return typing.cast(Self, AbstractState(cls, values))

    shown.__func__.__kafkaspec_call__ = True  # type: ignore[attr-defined]

    @property
    def next(self) -> Self:
        """The state after. Assign to it in an action; read it in a step property only."""
        raise TypeError("a model's state is made by the readings")


@dataclass(frozen=True)
class AbstractState:
    """The abstract state that a mapping gives, by variable."""

    model: type[Model]
    values: dict[str, Any]


# ---- what a text is read into --------------------------------------------------------------------------------------
@dataclass
class Action:
    """One action: its parameters are bound expressions; its guard a list of conditions, all of which must hold, asked
    in this order. `needs`: what its text evaluates besides, which must have a value where it is reached. A parameter in
    `drawn` is an element of a set, which is the guard's first condition."""

    name: str
    clauses: tuple[str, ...]
    who: str
    doc: str
    params: list[Expr]
    guard: list[Expr]
    updates: list[Update]
    fair: Fairness
    per: tuple[str, ...]
    loc: tuple[str, int]
    needs: list[Need] = field(default_factory=list)
    drawn: dict[str, Expr] = field(default_factory=dict)

    def typed(self, types: Mapping[str, T]) -> list[tuple[str, Expr]]:
        """By variable: what the action leaves in it is of its type (`types`, by variable)."""
        return typed([u for u in self.updates if u.var in types], types)

    def without_guard(self, i: int) -> Action:
        """The action without the i-th condition of its guard."""
        needs = [replace(n, after=n.after - (n.after > i)) for n in self.needs]
        return replace(self, guard=self.guard[:i] + self.guard[i + 1 :], needs=needs)

    def parameter(self, p: Expr) -> str:
        """A parameter's name in the text."""
        return name_of(p.aux)


@dataclass(frozen=True)
class Claim:
    """An invariant, lemma, step property or witness."""

    name: str
    clauses: tuple[str, ...]
    expr: Expr
    doc: str
    loc: tuple[str, int]


@dataclass(frozen=True)
class LeadsTo:
    """trigger ~> goal, for each value of the parameters."""

    name: str
    clauses: tuple[str, ...]
    params: tuple[Expr, ...]
    trigger: Expr
    goal: Expr
    doc: str
    loc: tuple[str, int]


@dataclass
class LoadedModel:
    """A model's text as a graph. `sizes` names every Size, Flag and Sort in it."""

    name: str
    cls: type[Model]
    file: str
    doc: str
    vars: dict[str, T]
    ghosts: tuple[str, ...]
    initial: Action
    actions: list[Action] = field(default_factory=list)
    invariants: dict[str, Claim] = field(default_factory=dict)
    lemmas: dict[str, Claim] = field(default_factory=dict)
    steps: dict[str, Claim] = field(default_factory=dict)
    witnesses: dict[str, Claim] = field(default_factory=dict)
    leads_to: dict[str, LeadsTo] = field(default_factory=dict)
    starts: dict[str, Claim] = field(default_factory=dict)
    """Claims about the first states alone."""
    refinements: dict[str, Refinement] = field(default_factory=dict)
    sizes: dict[str, Literal["sort", "size", "flag"]] = field(default_factory=dict)
    sorts: dict[str, type[Any]] = field(default_factory=dict)
    """The class of each sort, by its name."""
    too_many: list[str] = field(default_factory=list)
    """Its own parameters that hold a map or a sequence: where each stands, and why it is not explored."""
    without_limit: list[str] = field(default_factory=list)
    """Its own parameters without an upper limit, likewise."""

    @property
    def not_explored(self) -> list[str]:
        """The parameters that keep it from being explored, also those without a limit of models that it refines."""
        return self.too_many + self.unlimited

    @property
    def unlimited(self) -> list[str]:
        """Parameters without an upper limit, also those of models that it refines."""
        return self.without_limit + [p for r in self.refinements.values() for p in r.abstract.unlimited]

    def refining(self, name: str, abstract: LoadedModel) -> LoadedModel:
        """The model with another abstract model (a mutant of it) in a refinement of that name."""
        r = replace(self.refinements[name], abstract=abstract)
        out = replace(
            self,
            invariants={n: c for n, c in self.invariants.items() if n != f"{name}: type"},
            starts=dict(self.starts),
            steps=dict(self.steps),
            refinements={**self.refinements, name: r},
        )
        _add_refinement(out, r)
        return out

    def claiming(self, *names: str) -> LoadedModel:
        """The model with these invariants and claims of steps alone, beside its lemmas. Raises UserError for a name
        that is none of them."""
        for name in names:
            if name not in self.invariants and name not in self.steps:
                raise unknown(f"claim of {self.name}", name, [*self.invariants, *self.steps])
        return replace(
            self,
            invariants={n: c for n, c in self.invariants.items() if n in names},
            steps={n: c for n, c in self.steps.items() if n in names},
        )

    def open_sizes(self, given: Mapping[str, int | bool]) -> list[str]:
        """The sorts and sizes, flags apart, that are not given."""
        return [n for n, kind in self.sizes.items() if kind != "flag" and n not in given]

    def check_given(self, sizes: Mapping[str, int | bool]) -> None:
        """Raises UserError unless each name is a size's, with a number >= 1, or a flag's, with a bool."""
        for name, value in sizes.items():
            if name not in self.sizes:
                raise unknown(f"size of {self.name}", name, self.sizes)
            if self.sizes[name] == "flag" and not isinstance(value, bool):
                raise UserError(f"size {name} of {self.name} is true or false, not {value}")
            if self.sizes[name] != "flag" and (isinstance(value, bool) or value < 1):
                raise UserError(f"size {name} of {self.name} is a whole number >= 1, not {value}")

    @property
    def limiting(self) -> tuple[str, ...]:
        """The variables whose types have no value at some sizes."""
        limits = ((name, must_have_values(t)) for name, t in self.vars.items())
        return tuple(name for name, pairs in limits if not all(at_most(lo, hi) for lo, hi in pairs))

    def check_sizes(self, sizes: Mapping[str, int | bool]) -> None:
        """Raises UserError unless every sort, size and flag is given, no more, so that each variable has a value."""
        self.check_given(sizes)
        missing = [n for n in self.sizes if n not in sizes]
        if missing:
            raise UserError(f"{self.name} needs the size of {', '.join(missing)}")
        for name, t in self.vars.items():
            for lo, hi in must_have_values(t):
                if static(lo, sizes) > static(hi, sizes):
                    at = " at " + ", ".join(f"{n}={v}" for n, v in sizes.items()) if sizes else ""
                    raise UserError(f"{self.name}: {name} has no value{at}: its type {t!r} is empty")


def must_have_values(t: T) -> Iterator[tuple[Any, Any]]:
    """The limits (lo, hi) of a type that must be lo <= hi, as a variable of it has a value."""
    match t.kind:
        case "range" if t.hi is not None:
            yield t.lo, t.hi
        case "map":
            yield from must_have_values(t.item)
        case "seq":
            yield 0, t.hi
        case "set":
            if t.hi is not None:
                yield 0, t.hi
            if t.nonempty:
                yield from must_have_values(t.item)
        case "rec":
            for _, f in t.fields:
                yield from must_have_values(f)


# ---- reading -------------------------------------------------------------------------------------------------------
class Trace:
    """What the reading in progress has met."""

    def __init__(self, files: set[str]) -> None:
        self.files, self.action = files, typing.cast("Action | None", None)
        self.named: dict[int, Expr] = {}
        self.sorts: list[T] = []
        self.mappings: list[tuple[str, FunctionType, AbstractState, text.Frame]] = []
        self.texts: Texts = {}
        self.calls = 0
        """of helpers"""
        self.read_first: set[str] = set()
        """the variables that @initial reads, also where nothing comes of it"""


class _NextPath:
    """`s.next.x`, `s.next.x[k]`, `s.next.x.field`: a place to assign to."""

    __slots__ = ("_keys", "_model", "_t", "_var")
    _model: LoadedModel
    _var: str
    _keys: tuple[Expr, ...]
    _t: T

    def __init__(self, model: LoadedModel, var: str, keys: tuple[Expr, ...], t: T) -> None:
        for n, v in (("_model", model), ("_var", var), ("_keys", keys), ("_t", t)):
            object.__setattr__(self, n, v)

    def __getitem__(self, key: Any) -> _NextPath:
        if self._t.kind == "map":
            k = lift(key, self._t.domain)
        elif self._t.kind == "seq" and not isinstance(key, slice):
            k = number(key)
        else:
            raise ModelError(f"next.{self._var} of type {self._t!r} is assigned as a whole")
        return _NextPath(self._model, self._var, (*self._keys, k), self._t.item)

    def __setitem__(self, key: Any, value: Any) -> None:
        _assign(self[key], value)

    def __getattr__(self, name: str) -> _NextPath:
        if self._t.kind == "option" and self._t.item.kind == "rec" and name in dict(self._t.item.fields):
            raise ModelError(
                f"next.{self._var} of type {self._t!r} may be None there, so that none of its parts is assigned: "
                f"write it whole, with replace(..., {name}=...)"
            )
        if self._t.kind != "rec" or name.startswith("__"):
            raise ModelError(f"next.{self._var} is read: in an action, every value read is of the state before")
        for i, (n, ft) in enumerate(self._t.fields):
            if n == name:
                return _NextPath(self._model, self._var, (*self._keys, node("const", INT, aux=i)), ft)
        raise ModelError(f"next.{self._var} of type {self._t!r} has no field {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        _assign(self.__getattr__(name), value)  # a field may be called as a slot is


def _unread(self: _NextPath, *_: Any) -> typing.NoReturn:
    raise ModelError(f"next.{self._var} is read: in an action, every value read is of the state before")


_READING = (
    "add radd sub rsub mul rmul floordiv rfloordiv mod rmod neg or ror and rand eq ne lt le gt ge bool len iter "
    "contains call hash int index repr"
)


def _places(path: _NextPath) -> list[Expr]:
    """What is evaluated on the way to a place: its keys, and what lies there now."""
    t = path._model.vars[path._var]
    there: list[Expr] = []
    so_far = node("var", t, aux=path._var)
    for k in path._keys:
        if t.kind == "rec":
            so_far, t = node("field", t.fields[k.aux][1], so_far, aux=k.aux), t.fields[k.aux][1]
        else:
            so_far, t = index(so_far, k), t.item
            there.append(so_far)
    return [*path._keys, *there]


_NextPath.__kafkaspec_parts__ = True  # type: ignore[attr-defined]
_NextPath.__kafkaspec_place__ = _places  # type: ignore[attr-defined]
for _name in _READING.split(" "):
    setattr(_NextPath, f"__{_name}__", _unread)


def _assign(place: _NextPath, value: Any) -> None:
    if isinstance(value, _NextPath):
        _unread(value)
    a = _acting(f"an assignment to s.next.{place._var}")
    new, t = lift(value, place._t), place._model.vars[place._var]
    if _has_places(place._t) and any(u.var == place._var and len(u.keys) > len(place._keys) for u in a.updates):
        raise ModelError(f"next.{place._var} is assigned at an index and as a whole: write it as one sequence")
    for i, k in enumerate(place._keys):
        if t.kind == "seq" and any(u.var == place._var and len(u.keys) <= i for u in a.updates):
            raise ModelError(f"next.{place._var} is assigned as a whole and at an index: write it as one sequence")
        t = t.fields[k.aux][1] if t.kind == "rec" else t.item
    as_it_is = new.op == "get" and new is not value  # None in a variable that is no option is a matter of its type
    given = new.args[0] if as_it_is else new
    for e in (*_places(place), given):
        text.met(e)
    text.ended()
    a.updates.append(Update(place._var, place._keys, and_(*text.When.stack), new))


def _has_places(t: T) -> bool:
    """Is there a sequence in it, of which an action may assign single places?"""
    return t.kind == "seq" or (t.kind == "map" and _has_places(t.item)) or any(_has_places(f) for _, f in t.fields)


class _Next:
    """`s.next` in an action: assignments build the state after."""

    __slots__ = ("__model",)
    __kafkaspec_parts__ = True
    __model: LoadedModel

    def __init__(self, model: LoadedModel) -> None:
        object.__setattr__(self, "_Next__model", model)

    def __getattr__(self, name: str) -> _NextPath:
        return _NextPath(self.__model, name, (), _type_of(self.__model, name))

    def __setattr__(self, name: str, value: Any) -> None:
        _assign(getattr(self, name), value)


def _type_of(model: LoadedModel, name: str) -> T:
    if name not in model.vars:
        raise ModelError(f"{model.name} has no variable {name}")
    return model.vars[name]


class _State:
    """`s` while a text is read: variables as nodes, helpers bound."""

    __kafkaspec_parts__ = True

    def __repr__(self) -> str:
        return "s.next" if self._op == "nextvar" else "s"

    def __init__(
        self,
        model: LoadedModel,
        after: Literal["assign", "read", "none"],
        op: str = "var",
        read: set[str] | None = None,
    ) -> None:
        self._model, self._after, self._op = model, after, op
        self._read = set[str]() if read is None else read

    def __getattr__(self, name: str) -> Any:
        if name in self._model.vars:
            self._read.add(name)
            return node(self._op, self._model.vars[name], aux=name)
        f = getattr(self._model.cls, name, None)
        if f is not None and hasattr(f, "__kafkaspec_define__"):
            return functools.partial(f, self)
        raise ModelError(f"{self._model.name} has no variable {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise ModelError(f"assign to s.next.{name}: s.{name} is the state before")
        object.__setattr__(self, name, value)

    @property
    def next(self) -> Any:
        if self._after == "assign":
            return _Next(self._model)
        if self._after == "read":
            return _State(self._model, "none", "nextvar")
        raise ModelError("s.next is read in a step property and assigned in an action only")


def claimed(cls: type[Model]) -> dict[str, tuple[str, ...]]:
    """What a model claims of its states and transitions, each with the clauses that it names. No text is read."""
    of = {n: getattr(f, "__kafkaspec__", None) for c in reversed(cls.__mro__) for n, f in vars(c).items()}
    return {n: m.clauses for n, m in of.items() if m and m.kind in ("invariant", "lemma", "step", "refines")}


Texts = dict[FunctionType, tuple[object, ...]]
"""The functions that were read, each with the values that its names had."""
_loaded: dict[type[Model], tuple[LoadedModel, Texts]] = {}


def load(cls: type[Model]) -> LoadedModel:
    """Read a model's text, once for the values that the names in it have. Raises ModelError (`file:line: what is
    wrong`)."""
    if cls not in _loaded or not _as_it_was(*_loaded[cls]):
        trace = Trace(set())
        _loaded[cls] = (_load(cls, trace), trace.texts)
    return _loaded[cls][0]


def _as_it_was(model: LoadedModel, texts: Texts) -> bool:
    same = all(text.unchanged(f, values) for f, values in texts.items())
    return same and all(load(r.abstract.cls) is r.abstract for r in model.refinements.values())


def _load(cls: type[Model], trace: Trace) -> LoadedModel:
    file = _file(cls)
    line = _class_line(cls, file)
    classes = [c for c in cls.__mro__ if c.__module__ != __name__ and c is not object]
    files = trace.files
    files.update(map(_file, classes))
    if type(cls) is not type(Model):
        raise ModelError(
            f"{text.short(file)}:{line}: {cls.__name__} has a metaclass, {type(cls).__name__}: a model has none"
        )
    hints = _annotations(cls, classes)
    for c in classes:
        _check_body(c)
    variables: dict[str, T] = {}
    for name, hint in hints.items():
        if typing.get_origin(hint) is ClassVar:
            continue
        try:
            variables[name] = resolve(hint)
        except (TypeNotInLanguage, ModelError) as e:
            raise ModelError(f"{text.short(file)}:{_variable_line(cls, file, name)}: {name}: {e}") from None
    if not variables:
        raise ModelError(f"{text.short(file)}:{line}: {cls.__name__} has no variables")
    if not isinstance(cls.ghosts, tuple | list):
        raise ModelError(f"{text.short(file)}:{line}: ghosts are several names, as in ('n',), not {cls.ghosts!r}")
    for g in cls.ghosts:
        if g not in variables:
            raise ModelError(f"{text.short(file)}:{line}: ghost {g} is no variable of {cls.__name__}")
    start = Action("initial", (), "", "", [], [], [], "", (), (file, line))
    model = LoadedModel(cls.__name__, cls, file, _doc(cls), variables, tuple(cls.ghosts), start)
    methods: dict[str, Callable[..., Any]] = {}
    for c in reversed(cls.__mro__):
        for name, f in vars(c).items():
            _check_kind(name, methods.get(name), f)
            if hasattr(f, "__kafkaspec__"):
                methods[name] = f
    starts = [n for n, f in methods.items() if f.__kafkaspec__.kind == "initial"]  # type: ignore[attr-defined]
    if len(starts) > 1:
        raise ModelError(f"{text.short(file)}:{line}: {' and '.join(starts)} are both @initial: write them as one")
    token = tracing.set(trace)
    try:
        for name, f in methods.items():
            files.add(f.__code__.co_filename)
            text.When.stack.clear()
            text.Frame.stack.clear()
            text.Frame.before.clear()
            text.Frame.binders = 0
            try:
                _read(model, name, f, f.__kafkaspec__, trace)  # type: ignore[attr-defined]
            except Exception as e:
                if isinstance(e, ModelError) and any(str(e).startswith(text.short(x) + ":") for x in files):
                    raise
                raise text.located(f, e, files) from None
    finally:
        tracing.reset(token)
    for name, f, shown, frame in trace.mappings:
        try:
            _add_refinement(model, _refinement(name, f, shown, frame, trace))
        except Exception as e:
            raise text.located(f, e, files) from None
    _check_start(model, trace.read_first)
    model.sizes, model.sorts = _sizes(model, trace)
    _check_names(model, methods)
    letters: dict[str, str] = {}
    for name, kind in model.sizes.items():
        if kind == "sort":
            other = letters.setdefault(name[0].lower(), name)
            if other != name:
                raise ModelError(
                    f"{text.short(file)}:{line}: the sorts {other} and {name} begin with one letter, "
                    f"so that both would have elements named {name[0].lower()}0: rename one"
                )
    return model


def _refinement(name: str, f: FunctionType, shown: AbstractState, frame: text.Frame, trace: Trace) -> Refinement:
    """What a mapping's text says. The values of a map in it are read here, as the text that they are."""
    abstract = load(shown.model)
    token = tracing.set(trace)
    try:
        with frame:
            values = mapped(abstract, shown.values)
    finally:
        tracing.reset(token)
    mark: Mark = f.__kafkaspec__  # type: ignore[attr-defined]
    loc = (f.__code__.co_filename, f.__code__.co_firstlineno)
    mapping = {n: frame.value(v) for n, v in values.items()}
    return Refinement(name, mark.clauses, abstract, mapping, _doc(f), loc)


def _add_refinement(model: LoadedModel, r: Refinement) -> None:
    model.refinements[r.name] = r
    typed = r.typed()
    if typed is not TRUE:
        model.invariants[f"{r.name}: type"] = Claim(f"{r.name}: type", r.clauses, typed, r.doc, r.loc)
    model.starts[f"{r.name}: start"] = Claim(f"{r.name}: start", r.clauses, r.starts(), r.doc, r.loc)
    model.steps[r.name] = Claim(r.name, r.clauses, r.steps(), r.doc, r.loc)


def _given(name: str, mark: Mark) -> None:
    """Refuse what Python lets a decorator be given, and the language does not."""
    for id in mark.clauses:
        if not isinstance(id, str):
            raise ModelError(f"{name}: @{mark.kind} names clauses by their ids, such as ABC-1, not {id!r}")
    if not isinstance(mark.who, str):
        raise ModelError(f"{name}: who takes it is a word, not {mark.who!r}")
    if not isinstance(mark.per, tuple | list):
        raise ModelError(f"{name}: per are several parameters, as in ('p',), not {mark.per!r}")
    if mark.fair not in typing.get_args(Fairness):
        raise ModelError(f"{name}: fair is weak or strong, not {mark.fair!r}")


def _read(model: LoadedModel, name: str, f: Callable[..., Any], mark: Mark, trace: Trace) -> None:
    loc = (f.__code__.co_filename, f.__code__.co_firstlineno)
    _given(name, mark)
    function = text.symbolic(typing.cast(FunctionType, f))
    names = f.__code__.co_varnames[1 : f.__code__.co_argcount]
    if f.__defaults__:
        raise ModelError(f"{name}: its parameters take every value of their types, so that none has a default")
    hints = typing.get_type_hints(f, include_extras=True)
    for n in names:
        if n not in hints:
            raise ModelError(f"parameter {n} of {name} has no type")
    drawn: dict[str, Expr] = {}
    params = [_parameter(model, n, hints[n], drawn, loc) for n in names]
    for p in params:
        p.loc = loc
    trace.named.update({p.id: p for p in params})
    doc = _doc(f)
    if mark.kind in ("action", "initial"):
        for per in mark.per:
            if per not in names:
                raise ModelError(f"fairness per {per}: {name} has no such parameter")
        a = Action(name, mark.clauses, mark.who, doc, params, [], [], mark.fair, mark.per, loc, drawn=drawn)
        for p in params:
            if p.aux in drawn and (mark.kind == "initial" or name_of(p.aux) in mark.per):
                where = "@initial" if mark.kind == "initial" else "fairness per parameter"
                raise ModelError(f"{name}: a parameter that is drawn from a variable has no place in {where}")
        a.guard = [contains(p, drawn[p.aux]) for p in params if p.aux in drawn]
        trace.action = a
        function(_State(model, "assign", read=trace.read_first if mark.kind == "initial" else None), *params)
        trace.action = None
        if mark.kind == "action":
            model.actions.append(a)
        else:
            model.initial = a
        return
    if drawn:
        raise ModelError(f"{name}: only an action's parameter is drawn from a variable")
    with text.Frame() as frame:
        result = function(_State(model, "read" if mark.kind == "step" else "none"), *params)
    if mark.kind == "leads_to":
        if not (isinstance(result, tuple) and len(result) == 2):
            raise ModelError(f"{name} returns (trigger, goal)")
        trigger, goal = (frame.value(truth(x)) for x in result)
        model.leads_to[name] = LeadsTo(name, mark.clauses, tuple(params), trigger, goal, doc, loc)
        return
    if mark.abstract is not None:
        if params or not isinstance(result, AbstractState) or result.model is not mark.abstract:
            raise ModelError(f"{name} has no parameters and returns {mark.abstract.__name__}.shown(...)")
        trace.mappings.append((name, typing.cast(FunctionType, f), result, frame))
        return
    if result is None:
        raise ModelError(f"{name} returns nothing: a claim returns a truth value")
    e = frame.value(truth(result))
    for v in reversed(params):
        if e.op != "const" or not has_values(v.t):
            e = node("exists" if mark.kind == "witness" else "forall", e.t, v, e)
    table = {"invariant": model.invariants, "lemma": model.lemmas, "step": model.steps, "witness": model.witnesses}[
        mark.kind
    ]
    table[name] = Claim(name, mark.clauses, e, doc, loc)


def _parameter(model: LoadedModel, name: str, hint: Any, drawn: dict[str, Expr], loc: tuple[str, int]) -> Expr:
    """A parameter as a bound variable; noted in `drawn` if it is an element of a variable's set."""
    marks = [m for m in typing.get_args(hint)[1:] if isinstance(m, Of)] if typing.get_origin(hint) is Annotated else []
    if not marks:
        t = resolve(hint)
        here = f"{text.short(loc[0])}:{loc[1]}: parameter {name} of type {t!r}"
        if unlimited(t):
            model.without_limit.append(f"{here} has no upper limit")
        elif _holds_map_or_sequence(t):
            model.too_many.append(f"{here} has too many values to go through")
        return bound(t, name)
    t = _type_of(model, marks[0].variable)
    if t.kind != "set":
        raise ModelError(f"{name} is drawn from {marks[0].variable} of type {t!r}, which is no set")
    p = bound(t.item, name)
    drawn[p.aux] = node("var", t, aux=marks[0].variable)
    return p


def unlimited(t: T) -> bool:
    """Has it a number without an upper limit?"""
    return (t.kind == "range" and t.hi is None) or any(map(unlimited, _within(t)))


def _holds_map_or_sequence(t: T) -> bool:
    return t.kind in ("map", "seq") or any(map(_holds_map_or_sequence, _within(t)))


def _within(t: T) -> list[T]:
    return [u for u in (t.elem, t.key, *[f for _, f in t.fields]) if u is not None]


def _doc(x: Any) -> str:
    return " ".join((x.__doc__ or "").split())


def _file(cls: type) -> str:
    """The file that a class is written in."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file is None:
        raise ModelError(
            f"{cls.__module__}.{cls.__name__}: a model is read from its file, and this class stands in none"
        )
    return str(file)


def _annotations(cls: type, classes: Iterable[type]) -> dict[str, Any]:
    """The annotations of a class and those it extends, evaluated. Raises ModelError for one that has no meaning."""
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except Exception as whole:
        for c in classes:
            for name, hint in vars(c).get("__annotations__", {}).items():
                alone = type(c.__name__, (), {"__annotations__": {name: hint}, "__module__": c.__module__})
                try:
                    typing.get_type_hints(alone, localns=dict(vars(c)), include_extras=True)
                except Exception as e:
                    text.fail(_file(c), _variable_line(c, _file(c), name), f"{name}: {e}")
        text.fail(_file(cls), _class_line(cls, _file(cls)), str(whole))


def _class_line(cls: type, file: str) -> int:
    for n in text.definitions_of(file):
        if isinstance(n, ast.ClassDef) and n.name == cls.__name__:
            return n.lineno
    return 1


def _variable_line(cls: type, file: str, name: str) -> int:
    for c in text.definitions_of(file):
        if isinstance(c, ast.ClassDef) and c.name == cls.__name__:
            for n in c.body:
                if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name) and n.target.id == name:
                    return n.lineno
    return _class_line(cls, file)


def _check_body(cls: type) -> None:
    """Raises ModelError unless the class has the form of a model. One that was not written in a file has none."""
    file = _file(cls)
    if (wrong := form.once(text.module_of(file))) is not None:
        text.fail(file, *wrong)
    methods = [getattr(v, "__kafkaspec_define__", v) for v in vars(cls).values()]
    code = [f.__code__ for f in methods if isinstance(f, FunctionType)]
    lines = {c.co_firstlineno for c in code if c.co_filename == file}
    for n in text.definitions_of(file):
        if isinstance(n, ast.ClassDef) and n.name == cls.__name__:
            inside = any(n.lineno <= line <= (n.end_lineno or 0) for line in lines)
            if (inside or not lines) and (wrong := form.body(n) or _undecorated(n, cls)) is not None:
                text.fail(file, *wrong)


def _undecorated(tree: ast.ClassDef, cls: type) -> tuple[int, str] | None:
    """What is wrong, with its line, if no decorator of the language has made a method what it is."""
    for n in tree.body:
        if isinstance(n, ast.FunctionDef):
            if form.private(n.name):
                return n.lineno, f"{n.name}: {form.PRIVATE}"
            f = vars(cls).get(n.name)
            if not (hasattr(f, "__kafkaspec__") or hasattr(f, "__kafkaspec_define__")):
                written = ast.unparse(n.decorator_list[0])
                hint = f": write @{written}()" if written in typing.get_args(MarkKind) else ""
                return n.lineno, f"{n.name}: @{written} decorates no method of a model{hint}"
    return None


def _check_kind(name: str, replaced: Callable[..., Any] | None, f: Any) -> None:
    """A subclass replaces an action by an action, a claim by a claim of its kind: else one would go without a word."""
    if replaced is None:
        return
    mark = getattr(f, "__kafkaspec__", None)
    was = replaced.__kafkaspec__.kind  # type: ignore[attr-defined]
    if mark is None or mark.kind != was:
        f = getattr(f, "__kafkaspec_define__", f)
        code = f.__code__ if isinstance(f, FunctionType) else replaced.__code__
        now = "something else" if mark is None else f"@{mark.kind}"
        text.fail(code.co_filename, code.co_firstlineno, f"{name} replaces @{was} by {now}: rename one")


def _check_names(model: LoadedModel, methods: Mapping[str, Any]) -> None:
    """No name has two meanings, in this reading or in any other."""
    known: dict[str, str] = {}
    line = {n: _variable_line(model.cls, model.file, n) for n in model.vars}
    helpers = {n for n in dir(model.cls) if hasattr(getattr(model.cls, n, None), "__kafkaspec_define__")}
    every = [
        *[(n, "a variable") for n in model.vars],
        *[(n, {"sort": "a sort", "size": "a size", "flag": "a flag"}[k]) for n, k in model.sizes.items()],
        *[(n, "a method") for n in {*methods, *helpers}],
        *[(t.name, "a record" if t.kind == "rec" else "an enum") for t in _named_types(model)],
    ]
    where = text.short(model.file)
    for name, what in every:
        at = f"{where}:{line.get(name, _class_line(model.cls, model.file))}"
        if name in known:
            raise ModelError(f"{at}: {name} is {known[name]} and {what}: rename one")
        if name.startswith("_") or not name.isidentifier() or name in ("next", "ghosts", DEFINED):
            raise ModelError(f"{at}: {name} is no name for {what}")
        known[name] = what


def _named_types(model: LoadedModel) -> list[T]:
    """The enums and records of the model; two of one name twice."""
    found: dict[int, T] = {}

    def walk(t: T | None) -> None:
        if t is not None and id(t) not in found:
            if t.kind in ("enum", "rec"):
                found[id(t)] = t
            for u in (t.elem, t.key, *[f for _, f in t.fields]):
                walk(u)

    for t in model.vars.values():
        walk(t)
    for a in [model.initial, *model.actions]:
        for p in a.params:
            walk(p.t)
    return list(found.values())


def _check_start(model: LoadedModel, read: set[str]) -> None:
    given = {u.var for u in model.initial.updates if not u.keys and u.cond is TRUE}

    for name, t in model.vars.items():
        why = no_first(t)
        if why and name not in given:
            file = model.file
            raise ModelError(
                f"{text.short(file)}:{_variable_line(model.cls, file, name)}: {name}: {why}: assign it in @initial, "
                "outside any 'if'"
            )
    for name in sorted(n for n in read if no_first(model.vars[n])):
        text.fail(*model.initial.loc, f"{name} is read in @initial, but {no_first(model.vars[name])}")


def _sizes(model: LoadedModel, trace: Trace) -> tuple[dict[str, Literal["sort", "size", "flag"]], dict[str, type[Any]]]:
    """What each size of the model is, and the classes of its sorts: also of those that stand in its text alone."""
    out: dict[str, Literal["sort", "size", "flag"]] = {}
    sorts: dict[str, type[Any]] = {}
    seen: set[int] = set()

    def note(name: str, kind: Literal["sort", "size", "flag"]) -> None:
        if out.setdefault(name, kind) != kind:
            line = _class_line(model.cls, model.file)
            raise ModelError(f"{text.short(model.file)}:{line}: {name} is a {out[name]} and a {kind}: rename one")

    def of_type(t: T | None) -> None:
        if t is None or id(t) in seen:
            return
        seen.add(id(t))
        if t.kind == "sort":
            note(t.name, "sort")
            if sorts.setdefault(t.name, typing.cast(type, t.cls)) is not t.cls:
                line = _class_line(model.cls, model.file)
                raise ModelError(f"{text.short(model.file)}:{line}: two sorts have the name {t.name}: rename one")
        for limit in (t.lo, t.hi):
            if isinstance(limit, Expr):
                of(limit)
        for u in (t.elem, t.key, *[f for _, f in t.fields]):
            of_type(u)

    def of(e: Expr) -> None:
        if id(e) in seen:
            return
        seen.add(id(e))
        if e.op == "size":
            note(e.aux, "flag" if e.t.kind == "bool" else "size")
        of_type(e.t)
        for a in e.args:
            of(a)

    for e in trace.named.values():
        of(e)
    for t in [*trace.sorts, *model.vars.values()]:
        of_type(t)
    for a in [model.initial, *model.actions]:
        needs = [y for n in a.needs for y in (n.when, n.what)]
        for e in [*a.params, *a.guard, *needs, *[y for u in a.updates for y in (*u.keys, u.cond, u.value)]]:
            of(e)
    for claims in (model.invariants, model.lemmas, model.steps, model.witnesses, model.starts):
        for c in claims.values():
            of(c.expr)
    for lt in model.leads_to.values():
        for e in (*lt.params, lt.trigger, lt.goal):
            of(e)
    for r in model.refinements.values():
        for name, kind in r.abstract.sizes.items():
            note(name, kind)
        for cls in r.abstract.sorts.values():
            of_type(resolve(cls))
    return out, sorts
