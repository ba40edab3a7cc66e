"""A spec as a machine: named operations over a frozen state, each a pure function with contracts.

The spec module says

    machine = Machine("timeline", initial, observe)

    @machine.operation("map.put")
    @icontract.require(lambda value: ..., "TML-2 the caller's duty, in words")
    @icontract.ensure(lambda state, result: ..., "TML-4 ...")
    def map_put(state: Timeline, key: int, value: int | None) -> Step[Timeline, int | None]:
        "TML-4: What is put is what is got at that key from then on. [TimelineHashMap, Kafka 4.3.0]"
        return Step(after, result)           # or Step(state, Refused("TML-9", "java.lang.NullPointerException"))

    @machine.operation("map.clear", "TML-5")
    def map_clear(state: Timeline) -> Timeline | Refused:
        ...                                  # an operation that answers nothing returns the state after it

    @machine.question("map.get", "TML-6")
    def map_get(state: Timeline, key: int, epoch: int) -> int | None:
        ...                                  # a question returns its answer, or Refused; the state stays

    @machine.environment("damage", kind="damage")
    def damage(state: Timeline) -> Timeline:
        ...                                  # what others do; the clauses are named where its effect is observed

and lockstep, trace checks, campaigns and the judge drive it by operation name with JSON arguments. Parameters and
answers may be of any type that `contract.codec` can write as JSON; a contract's `result` is what the function returns.
A question that needs no state has no parameter `state`.

The arguments to try stand in `<spec>_trial.py`, known deviations in `<spec>_released.py`: both are found by name.

Three outcomes that must never be confused:
- a *result* (any JSON value): what the system answers;
- `Refused`: the system said no, rightly, and a clause says so: part of the protocol, `state` is unchanged or as said;
- a broken `require`: the caller stepped outside the contract, so nothing is promised from there on (`Outside`);
- a broken `ensure`: a bug in the spec itself (icontract.ViolationError, never caught by an engine).
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import itertools
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol

import icontract
from typing_extensions import TypeVar

from kafkaspec.contract import clauses
from kafkaspec.contract.codec import Decode, Fields, Json, camel, decode, decoder, encode, encoder, interned
from kafkaspec.contract.numbers import Within, beyond, in_range, opaque, relabelled, within
from kafkaspec.errors import unknown

__all__ = ["Fields", "Json"]

S = TypeVar("S")
R = TypeVar("R", default=Any)
F = TypeVar("F", bound=Callable[..., Any])
_NULL: Any = None
_LOADED: set[tuple[str, str]] = set()
"""parts of specs, by module and role, that were looked for"""


Kind = Literal["call", "time", "crash", "restart", "damage"]
"""What an operation is: a call of the system, the passing of time, a crash, the start after it, or damage done to its
files from outside."""
RESERVED = frozenset({"hello", "init", "observe"})
"""Names that traces and the judge's protocol keep for themselves."""


class Refused(NamedTuple):
    """The system says no, and `clause` says why. `error` is Kafka's exception class; `message` None means any."""

    clause: str
    error: str
    message: str | None = None


class Outside(NamedTuple):
    """The caller broke a precondition: `clause` names it; nothing is promised from this step on."""

    clause: str
    reason: str


class Step(NamedTuple, Generic[S, R]):
    """The state after, and the result (`R` is its type, one that has a form in JSON) or the refusal."""

    state: S
    result: R | Refused = _NULL


class AnySize(int):
    """How many bytes a compressor made: no rule fixes it. Equal to any number of bytes."""

    def __eq__(self, other: object) -> bool:
        return type(other) in (int, AnySize) and isinstance(other, int) and other >= 0

    __hash__ = int.__hash__


class _AnyHex(str):
    """Hexadecimal digits of bytes that no rule fixes."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and len(other) % 2 == 0 and not other.strip("0123456789abcdef")

    __hash__ = str.__hash__


class AnyBytes(bytes):
    """Bytes that a compressor made: as JSON they are equal to any bytes."""

    def hex(self, *_: Any) -> str:
        return _AnyHex(bytes.hex(self))


class Exhaustive(list[Any]):
    """Candidates beside which there are none: a trace check that had to choose among them still knows that it knows."""


class Pick(Protocol):
    """Chooses one of several candidates: Hypothesis draws, a seeded generator, or an enumeration."""

    def __call__(self, candidates: Sequence[Any], /) -> Any: ...


@dataclass(frozen=True)
class Condition:
    """One `icontract.require` or `ensure` of an operation, so that engines can evaluate it on its own."""

    clause: str
    text: str
    condition: Callable[..., Any]
    arguments: tuple[str, ...]


Returns = Literal["step", "state", "answer"]
"""What an operation's function returns: a Step, the state after it, or a question's answer."""


@dataclass(frozen=True)
class Operation(Generic[S]):
    """One operation: `function` with its contracts, `body` without; parameters by their names in traces (camelCase)."""

    name: str
    clauses: tuple[str, ...]
    function: Callable[..., Any]
    body: Callable[..., Any]
    parameters: Mapping[str, str]
    """trace name (camelCase) -> Python name"""
    defaults: Mapping[str, Any]
    """Python name -> default, of the parameters that have one"""
    preconditions: tuple[Condition, ...]
    postconditions: tuple[Condition, ...]
    generated: bool = True
    """False: engines do not call it on their own (set-up, or only seen in recordings)"""
    chosen: tuple[str, ...] = ()
    """parameters (Python names) that stand for a choice of the system's own: whoever is judged is not told them"""
    kind: Kind = "call"
    returns: Returns = "step"
    takes_state: bool = True
    environment: bool = False
    """done by others than the system that the spec is about: no clause governs it"""

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """The types of its parameters, by Python names, and of what it returns."""
        return typing.get_type_hints(inspect.unwrap(self.body))

    @cached_property
    def annotations(self) -> Mapping[str, Any]:
        """The same with the ranges of whole numbers: see contract.numbers."""
        return typing.get_type_hints(inspect.unwrap(self.body), include_extras=True)

    @cached_property
    def ranges(self) -> Mapping[str, Within]:
        """Python name -> the range of a parameter that is a whole number and has one, and that is not the choice of
        an implementation: of those only what it handed out means something."""
        found = {p: within(h) for p in self.parameters.values() if opaque(h := self.annotations.get(p)) is None}
        return {p: r for p, r in found.items() if r is not None}

    def beyond(self, arguments: Mapping[str, Any]) -> list[str]:
        """Where in these arguments, by Python names, a whole number is outside its range: nothing is promised of such a
        call."""
        return _beyond(self._numbered, arguments)

    def relabelled(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """These arguments, by Python names, with what the labels of their types say added: see contract.numbers."""
        return _relabelled(self._numbered, arguments)

    @cached_property
    def _numbered(self) -> _Numbered:
        return _numbered(self.annotations)

    @cached_property
    def result_hint(self) -> Any:
        """The type of its result."""
        hint = self.hints.get("return", Any)
        if self.returns == "step":
            arguments = typing.get_args(hint)
            return arguments[1] if len(arguments) > 1 else Any
        return type(None) if self.returns == "state" else _unless_refused(hint)

    @cached_property
    def result_annotation(self) -> Any:
        """The annotation of its result, as it stands there; None if it has none."""
        hint = self.annotations.get("return")
        if self.returns == "step":
            return (*typing.get_args(hint), None, None)[1]
        return hint if self.returns == "answer" else None

    @cached_property
    def result_decoder(self) -> Decode | None:
        """What makes a result of its JSON; None where it is the JSON itself."""
        return decoder(self.result_hint)

    @cached_property
    def decoders(self) -> Mapping[str, Decode]:
        """Python name -> what makes an argument of its JSON, of the parameters that are no JSON."""
        found = {p: decoder(self.hints.get(p, Any)) for p in self.parameters.values()}
        return {p: d for p, d in found.items() if d is not None}

    def decoded(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments, by Python names, as the function takes them."""
        if not self._decoders_interned:
            return arguments
        known = self._decoders_interned
        return {p: known[p](v) if p in known else v for p, v in arguments.items()}

    @cached_property
    def needs_no_state(self) -> bool:
        """Whether what it answers, whether it may be called, and whether it answers well is the same in every state."""
        asked = (*self.preconditions, *self.postconditions)
        return not self.takes_state and all("state" not in p.arguments for p in asked)

    @cached_property
    def _decoders_interned(self) -> Mapping[str, Decode]:
        return {p: interned(d) for p, d in self.decoders.items()}

    @cached_property
    def candidates(self) -> Sequence[tuple[str, str]]:
        """The parameters by Python names, each with the name of candidates that are for this operation alone."""
        return [(p, f"{self.name}:{p}") for p in self.parameters.values()]

    @cached_property
    def unsaid(self) -> Mapping[str, Any]:
        """What a driver by name takes for arguments that are not given: none for choices of the system's own, and the
        defaults."""
        return {**dict.fromkeys(self.chosen), **self.defaults}

    def call(self, function: Callable[..., Any], state: S, arguments: Mapping[str, Any]) -> Any:
        """Call the function or the body with arguments as it takes them."""
        return function(state, **arguments) if self.takes_state else function(**arguments)

    def step(self, state: S, returned: Any) -> Step[S]:
        """The step that a function's return value means."""
        if self.returns == "step":
            step: Step[S] = returned
            typed = self.result_decoder is not None and not isinstance(step.result, Refused)
            return Step(step.state, encode(step.result)) if typed else step
        if isinstance(returned, Refused):
            return Step(state, returned)
        return Step(state, encode(returned)) if self.returns == "answer" else Step(returned)

    def returned(self, step: Step[S]) -> Any:
        """What a function returns that means that step: what its postconditions look at."""
        if isinstance(step.result, Refused):
            return step if self.returns == "step" else step.result
        if self.returns == "state":
            return step.state
        decode = self.result_decoder
        result = step.result if decode is None else decode(step.result)
        return Step(step.state, result) if self.returns == "step" else result

    @cached_property
    def direct(self) -> Callable[[S, Mapping[str, Any]], Step[S] | Outside]:
        """Preconditions and body, without the contract machinery; arguments by Python names."""
        return compiled(self, {p: p for p in self.parameters.values()})

    @cached_property
    def watched(self) -> Callable[[S, Mapping[str, Any]], Step[S] | Outside]:
        """The same with the postconditions, of arguments that are decoded. Where one is broken the function is called
        with its contracts, which says so by icontract.ViolationError."""
        return compiled(self, {p: p for p in self.parameters.values()}, watched=True)

    @cached_property
    def traced(self) -> Callable[[S, Mapping[str, Any]], Step[S] | Outside]:
        """The same; arguments by the names of traces."""
        return compiled(self, {p: t for t, p in self.parameters.items()})


def _unless_refused(hint: Any) -> Any:
    """A question's return annotation without the refusal."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    return typing.Union[tuple(h for h in typing.get_args(hint) if h is not Refused)]  # noqa: UP007


def compiled(
    op: Operation[S], keys: Mapping[str, str], *, watched: bool = False
) -> Callable[[S, Mapping[str, Any]], Step[S] | Outside]:
    """An operation's preconditions and body as one expression over a state and arguments; `keys` says under which key
    each argument stands, by its Python name. `watched`: with the postconditions, of arguments that are decoded."""
    body = _bare(op) if watched else op.body
    env: dict[str, Any] = {"body": body, "function": op.function, "step": op.step}
    decoded: set[str] = set()

    def value(name: str) -> str:
        if name in ("state", "result"):
            return name
        found = f"a[{keys[name]!r}]"
        if name in op.defaults:
            env[f"d_{name}"] = op.defaults[name]
            found = f"a.get({keys[name]!r}, d_{name})"
        if name in op.decoders and not watched:
            if name in decoded:
                return f"v_{name}"
            decoded.add(name)
            env[f"j_{name}"] = op.decoders[name]
            found = f"(v_{name} := j_{name}({found}))"
        return found

    def of(names: Iterable[str]) -> str:
        return ", ".join(f"{name}={value(name)}" for name in names)

    # In the order of evaluation: an argument is decoded where it is asked for first.
    conditions = []
    for n, p in enumerate(op.preconditions):
        env[f"p{n}"], env[f"o{n}"] = p.condition, Outside(p.clause, p.text)
        conditions.append(f"p{n}({of(p.arguments)})")
    given = of([*(["state"] if op.takes_state else []), *op.parameters.values()])
    text = f"body({given})"
    if watched and op.postconditions:
        env |= {f"q{n}": p.condition for n, p in enumerate(op.postconditions)}
        hold = " and ".join(f"q{n}({of(p.arguments)})" for n, p in enumerate(op.postconditions))
        text = f"(result if [result := {text}] and {hold} else function({given}))"
    if op.returns != "step" or op.result_decoder is not None:
        text = f"step(state, {text})"
    for n, condition in reversed(list(enumerate(conditions))):
        text = f"({text} if {condition} else o{n})"
    call: Callable[[S, Mapping[str, Any]], Step[S] | Outside] = eval(f"lambda state, a: {text}", env)
    return call


def _bare(op: Operation[S]) -> Callable[..., Any]:
    """The function without its contracts, if all of them are the operation's too: those are looked at outside."""
    groups = getattr(op.function, "__preconditions__", [])
    own = [*(c for group in groups for c in group), *getattr(op.function, "__postconditions__", [])]
    known = [p.condition for p in (*op.preconditions, *op.postconditions)]
    bare: Callable[..., Any] = inspect.unwrap(op.function)
    return bare if all(c.condition in known for c in own) else op.function


def _returns_step(body: Callable[..., Any]) -> bool:
    """Whether the annotation says so; as text, as the types that it names may not be there yet."""
    hint = body.__annotations__.get("return", "Step")
    return (hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))).startswith("Step")


_Numbered = Mapping[str, tuple[Any, Callable[[Any], bool]]]
"""Of the parameters in which there are ranges the annotation, and what says whether a value is within them."""


def _numbered(annotations: Mapping[str, Any]) -> _Numbered:
    return {p: (h, fits) for p, h in annotations.items() if p != "return" and (fits := in_range(h)) is not None}


def _beyond(numbered: _Numbered, arguments: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for p, value in arguments.items():
        if p in numbered and not numbered[p][1](value):
            found += beyond(numbered[p][0], value, camel(p))
    return found


def _relabelled(numbered: _Numbered, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {p: relabelled(numbered[p][0], v) if p in numbered else v for p, v in arguments.items()}


def _conditions(function: Callable[..., Any], contracts: Iterable[Any]) -> tuple[Condition, ...]:
    out = []
    for contract in contracts:
        text = " ".join(str(contract.description or "").split())
        m = re.match(r"([A-Z]{3}-\d+)\s*(.*)", text)
        if m is None:
            raise ValueError(
                f"{function.__qualname__}: a contract's description must begin with its clause id: {text!r}"
            )
        names = tuple(inspect.signature(contract.condition).parameters)
        out.append(Condition(m[1], m[2], contract.condition, names))
        if contract.error is None:
            contract.error, contract.error_args, contract.error_arg_set = violation(text), [], set()
    return tuple(out)


def violation(said: str) -> Callable[[], icontract.ViolationError]:
    """The error of a broken contract: its own words alone. icontract would look up the text of the condition, and fail
    where it stands in no decorator, as in `rises = ensure(...)`."""

    def error() -> icontract.ViolationError:
        return icontract.ViolationError(said)

    return error


@dataclass(frozen=True)
class Nothing:
    """The state of a machine that has none: its operations are questions about what they are given."""


@dataclass
class Machine(Generic[S]):
    """A spec's state machine. See the module's text for how a spec builds it."""

    name: str
    initial: Callable[..., S]
    """keyword arguments of a recording's `init` line (Python names) -> the first state; all have defaults"""
    show: Callable[[S], Any]
    """what a recording or a target shows of the state: of a type that has a form in JSON; `Fields`, or a dataclass that
    is `partial`, where keys may be left out"""
    home: str = ""
    """the module of the spec: that of `initial`, unless it is said"""
    operations: dict[str, Operation[S]] = field(default_factory=dict)
    tried: dict[str, Callable[[S], Sequence[Any]]] = field(default_factory=dict)
    known: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home = self.home or self.initial.__module__

    def beyond(self, init: Mapping[str, Any]) -> list[str]:
        """Where in the arguments of `initial` a whole number is outside its range: see `Operation.beyond`."""
        return _beyond(self._numbered, init)

    def relabelled(self, init: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of `initial` with what the labels of their types say added: see `Operation.relabelled`."""
        return _relabelled(self._numbered, init)

    @cached_property
    def _numbered(self) -> _Numbered:
        return _numbered(typing.get_type_hints(inspect.unwrap(self.initial), include_extras=True))

    @property
    def candidates(self) -> dict[str, Callable[[S], Sequence[Any]]]:
        """parameter's Python name, or "operation:parameter" -> interesting values in that state, as JSON, boundaries
        first; "init:parameter" for one of `initial`"""
        self._part("trial")
        return self.tried

    @candidates.setter
    def candidates(self, candidates: dict[str, Callable[[S], Sequence[Any]]]) -> None:
        self.tried = candidates

    @property
    def deviations(self) -> list[Any]:
        """known deviations of released Kafka: see contract.deviation"""
        self._part("released")
        return self.known

    @deviations.setter
    def deviations(self, deviations: list[Any]) -> None:
        self.known = deviations

    def _part(self, role: str) -> None:
        """Import that part of the spec, where there is one: it registers what it has."""
        if (self.home, role) not in _LOADED:
            name = f"{self.home}_{role}"
            _LOADED.add((self.home, role))
            if importlib.util.find_spec(name) is not None:
                importlib.import_module(name)

    def operation(
        self, name: str, *ids: str, generated: bool = True, chosen: tuple[str, ...] = (), kind: Kind = "call"
    ) -> Callable[[F], F]:
        """Decorator (outermost): registers a pure function with contracts as operation `name` that states `ids`. It
        returns a `Step`, or, where it answers nothing, the state after it, or `Refused`. It states the clauses of its
        docstring and of `@states` below it, too: before those, unless they are among them. A failure of it that is of
        no contract is put down to the first."""
        return self._registering(name, ids, generated, chosen, kind, question=False)

    def environment(self, name: str, *, generated: bool = True, kind: Kind = "call") -> Callable[[F], F]:
        """Decorator (outermost): registers a pure function with contracts as an operation of others than the system:
        somebody damages a file, another part writes one, time passes. It names no clause: those that it prepares are
        named by the operations that observe its effect. Its contracts say what the caller may do, and what is done."""

        return self._registering(name, (), generated, (), kind, question=False, environment=True)

    def question(self, name: str, *ids: str, generated: bool = True) -> Callable[[F], F]:
        """Decorator (outermost): registers a pure function with contracts as a question, which changes nothing. It
        returns the answer, or `Refused`."""
        return self._registering(name, ids, generated, (), "call", question=True)

    def _registering(
        self,
        name: str,
        ids: tuple[str, ...],
        generated: bool,
        chosen: tuple[str, ...],
        kind: Kind,
        *,
        question: bool,
        environment: bool = False,
    ) -> Callable[[F], F]:
        if name in RESERVED:
            raise ValueError(f"{self.name}: an operation cannot be named {name}")

        def register(function: F) -> F:
            body: Any = inspect.unwrap(function)
            clauses.read(body)
            stated = (*(id for id in getattr(body, "__clauses__", ()) if id not in ids), *ids)
            if environment and stated:
                raise ValueError(f"{self.name}: {name} is of the environment, and states {', '.join(stated)}")
            parameters = dict(inspect.signature(body).parameters)
            takes_state = parameters.pop("state", None) is not None
            if not (takes_state or question):
                raise ValueError(f"{self.name}: {name} has no parameter `state`")
            returns: Returns = "answer" if question else "step" if _returns_step(body) else "state"
            pre = _conditions(function, (c for group in getattr(function, "__preconditions__", []) for c in group))
            post = _conditions(function, getattr(function, "__postconditions__", []))
            self.operations[name] = Operation(
                name,
                stated,
                function,
                body,
                {camel(p): p for p in parameters},
                {p: v.default for p, v in parameters.items() if v.default is not inspect.Parameter.empty},
                pre,
                post,
                generated,
                chosen,
                kind,
                returns,
                takes_state,
                environment,
            )
            for id in dict.fromkeys((*stated, *(c.clause for c in pre + post))):
                clauses.used(id, "spec", f"{body.__module__}:{body.__name__}")
            return function

        return register

    def find(self, name: str) -> Operation[S]:
        """The operation of that name; UserError with the nearest name otherwise."""
        if name not in self.operations:
            raise unknown(f"operation of {self.name}", name, self.operations)
        return self.operations[name]

    def python_names(self, arguments: Mapping[str, Json]) -> dict[str, Json]:
        """The arguments of a trace's `init` line by Python names; UserError for an unknown one."""
        names = {camel(p): p for p in inspect.signature(self.initial).parameters}
        for name in arguments:
            if name not in names:
                raise unknown("argument of init", name, names)
        return {names[k]: v for k, v in arguments.items()}

    def init_names(self, arguments: Mapping[str, Json]) -> dict[str, Json]:
        """The same the other way: Python names to those of an `init` line."""
        return {camel(k): v for k, v in arguments.items()}

    def start(self, arguments: Mapping[str, Json]) -> S:
        """The first state for the arguments of a trace's `init` line; UserError for an unknown one."""
        return self.initial(**self.python_names(arguments))

    def outside(self, op: Operation[S], state: S, arguments: Mapping[str, Any]) -> Outside | None:
        """The first precondition that the call breaks, if any. `arguments` by Python names."""
        values = {**op.defaults, **op.decoded(arguments), "state": state}
        for p in op.preconditions:
            if not p.condition(**{n: values[n] for n in p.arguments}):
                return Outside(p.clause, p.text)
        return None

    def apply(self, state: S, name: str, arguments: Mapping[str, Any], contracts: bool = True) -> Step[S] | Outside:
        """One step. `contracts=False` evaluates the preconditions only (fast paths)."""
        op = self.find(name)
        return op.watched(state, op.decoded(arguments)) if contracts else op.direct(state, arguments)

    @cached_property
    def observe(self) -> Callable[[S], Json]:
        """What a recording or a target shows of a state, as JSON."""
        hint, show = typing.get_type_hints(self.show).get("return", Any), self.show
        write = None if decoder(hint) is None else encoder(hint)
        return show if write is None else lambda state: write(show(state))

    def states_shown(self, seen: Json) -> list[S]:
        """All states of which that is the whole observation; none where they cannot be told. An observation tells a
        field of the state if it has one of that name and type; what it does not tell is tried, if that is yes or no."""
        if self._shown_fields is None or not isinstance(seen, dict):
            return []
        made, told, untold = self._shown_fields
        try:
            known = {f: decode(hint, seen[camel(f)]) for f, hint in told.items()}
            tried = itertools.product((False, True), repeat=len(untold))
            states = [made(**known, **dict(zip(untold, values, strict=True))) for values in tried]
            return [state for state in states if self.observe(state) == seen]
        except Exception:  # it is of another form, or of no state that there can be
            return []

    @cached_property
    def _shown_fields(self) -> tuple[Callable[..., S], Mapping[str, Any], Sequence[str]] | None:
        """The type of the state, its fields that the observation tells, and the others, if these are yes or no; None if
        one is not."""
        made: Any = type(self.initial())
        hints = typing.get_type_hints(made)
        fields = list(getattr(made, "__dataclass_fields__", getattr(made, "_fields", ())))
        shown = typing.get_type_hints(typing.get_type_hints(self.show).get("return", Nothing))
        told = {f: hints[f] for f in fields if f in shown and shown[f] == hints[f]}
        untold = [f for f in fields if f not in told]
        return (made, told, untold) if told and all(hints[f] is bool for f in untold) else None

    def choices(self, op: Operation[S], state: S) -> dict[str, Sequence[Any]]:
        """Python parameter name -> candidate values of it in this state."""
        known = self.candidates
        return {
            p: (known.get(of_this) or known.get(p) or self.candidates_of(op, p))(state) for p, of_this in op.candidates
        }

    def candidates_of(self, op: Operation[S], parameter: str) -> Callable[[S], Sequence[Any]]:
        """What gives the candidates of a parameter. ValueError if there is nothing."""
        known = self.candidates
        f = known.get(f"{op.name}:{parameter}") or known.get(parameter)
        if f is None:
            raise ValueError(f"{self.name}: no candidates for parameter {parameter!r} of {op.name!r}")
        return f


class Driver(Protocol):
    """What lockstep walks beside the spec: our impl, a model, or somebody else's target."""

    def reset(self, arguments: Mapping[str, Any]) -> None:
        """Begin again from the first state; `arguments` as of a recording's `init` line, Python names."""

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        """One operation; the answer, or the refusal (its clause may be "" if the thing driven knows none)."""

    def observe(self) -> Json:
        """The state as the recordings show it."""


class ByName:
    """A driver for whose operations something has methods, by the names of the spec's functions: itself, or its
    `subject`. They take the arguments of those functions in the same order, without the state, or, with `**` in their
    parameters, by their names; None for a choice of the system's own that they are not told."""

    machine: ClassVar[Machine[Any]]
    refusals: ClassVar[Mapping[type[Exception], Refused | Callable[[Any], Refused]]] = {}
    """which refusal an exception is, or what makes one of it; of several that fit, the first"""
    subject: Any = None

    def reset(self, arguments: Mapping[str, Any]) -> None:
        """Nothing to begin with: for machines without a state."""

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        op = self.machine.operations[name]
        given = op.decoded(arguments)
        if op.unsaid:
            given = {**op.unsaid, **given}
        method = op.body.__name__
        call = getattr(self, method, None) or getattr(self.subject, method)
        by_name = getattr(call, "__code__", self.apply.__code__).co_flags & inspect.CO_VARKEYWORDS
        try:
            answer = call(**given) if by_name else call(*map(given.__getitem__, op.parameters.values()))
        except tuple(self.refusals) as e:
            refusal = next(r for error, r in self.refusals.items() if isinstance(e, error))
            return refusal if isinstance(refusal, Refused) else refusal(e)
        return answer if isinstance(answer, Refused) else encode(answer)

    def state(self) -> Any:
        """The spec's state that it is in, or what is observed of it."""
        return Nothing()

    def observe(self) -> Json:
        return self.machine.observe(self.state())


def without_state(name: str, home: str = "") -> Machine[Nothing]:
    """A machine of questions; `home` is the spec's module."""
    return Machine(name, initial=Nothing, show=lambda state: {}, home=home)
