"""A spec as a machine: named operations over a frozen state, each a pure function with contracts.

The spec module says

    machine = Machine("timeline", initial=initial, observe=observe)

    @machine.operation("map.put", "TML-4")
    @icontract.require(lambda value: ..., "TML-2 the caller's duty, in words")
    @icontract.ensure(lambda state, result: ..., "TML-4 ...")
    def map_put(state: Timeline, key: int, value: int | None) -> Step[Timeline, int | None]:
        ...
        return Step(after, result)           # or Step(state, Refused("TML-9", "java.lang.NullPointerException"))

and lockstep, trace checks, campaigns and the judge drive it by operation name with JSON arguments.

Three outcomes that must never be confused:
- a *result* (any JSON value): what the system answers;
- `Refused`: the system said no, rightly, and a clause says so: part of the protocol, `state` is unchanged or as said;
- a broken `require`: the caller stepped outside the contract, so nothing is promised from there on (`Outside`);
- a broken `ensure`: a bug in the spec itself (icontract.ViolationError, never caught by an engine).
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple, Protocol

from typing_extensions import TypeVar

from kafkaspec.contract import clauses
from kafkaspec.errors import unknown

S = TypeVar("S")
R = TypeVar("R", default=Any)
Json = Any
"""A JSON value as Python has it: None, bool, int, float, str, list, dict with str keys."""
_NULL: Any = None


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
    """The state after, and the result (a JSON value; `R` is its type) or the refusal."""

    state: S
    result: R | Refused = _NULL


class Fields(dict[str, Any]):
    """A record level of an observation: a recording may leave keys of it out. A plain dict must match whole."""


class Approx(float):
    """A double that an observation computes rather than copies: equal to any number within a billionth of it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (int, float)) and math.isclose(self, other, rel_tol=1e-9)

    __hash__ = float.__hash__


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


@dataclass(frozen=True)
class Operation(Generic[S]):
    """One operation: `function` with its contracts, `body` without; parameters by their names in traces (camelCase)."""

    name: str
    clauses: tuple[str, ...]
    function: Callable[..., Step[S]]
    body: Callable[..., Step[S]]
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

    @cached_property
    def direct(self) -> Callable[[S, Mapping[str, Any]], Step[S] | Outside]:
        """Preconditions and body, without the contract machinery; arguments by Python names."""
        return compiled(self, {p: p for p in self.parameters.values()})

    @cached_property
    def traced(self) -> Callable[[S, Mapping[str, Any]], Step[S] | Outside]:
        """The same; arguments by the names of traces."""
        return compiled(self, {p: t for t, p in self.parameters.items()})


def compiled(op: Operation[S], keys: Mapping[str, str]) -> Callable[[S, Mapping[str, Any]], Step[S] | Outside]:
    """An operation's preconditions and body as one expression over a state and arguments; `keys` says under which key
    each argument stands, by its Python name."""
    env: dict[str, Any] = {"body": op.body}

    def value(name: str) -> str:
        if name == "state":
            return "state"
        if name not in op.defaults:
            return f"a[{keys[name]!r}]"
        env[f"d_{name}"] = op.defaults[name]
        return f"a.get({keys[name]!r}, d_{name})"

    text = "body(state" + "".join(f", {p}={value(p)}" for p in op.parameters.values()) + ")"
    for n, p in reversed(list(enumerate(op.preconditions))):
        env[f"p{n}"], env[f"o{n}"] = p.condition, Outside(p.clause, p.text)
        text = f"({text} if p{n}({', '.join(f'{name}={value(name)}' for name in p.arguments)}) else o{n})"
    call: Callable[[S, Mapping[str, Any]], Step[S] | Outside] = eval(f"lambda state, a: {text}", env)
    return call


def _camel(name: str) -> str:
    head, *rest = name.rstrip("_").split("_")
    return head + "".join(w.capitalize() for w in rest)


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
    return tuple(out)


@dataclass(frozen=True)
class Nothing:
    """The state of a machine that has none: its operations are questions about what they are given."""


@dataclass
class Machine(Generic[S]):
    """A spec's state machine. See the module's text for how a spec builds it."""

    name: str
    initial: Callable[..., S]
    """keyword arguments of a recording's `init` line (Python names) -> the first state; all have defaults"""
    observe: Callable[[S], Json]
    """what a recording or a target shows of the state, as JSON; `Fields` where keys may be left out"""
    operations: dict[str, Operation[S]] = field(default_factory=dict)
    candidates: dict[str, Callable[[S], Sequence[Any]]] = field(default_factory=dict)
    """parameter's Python name, or "operation:parameter" -> interesting values in that state, boundaries first"""
    deviations: list[Any] = field(default_factory=list)
    """known deviations of released Kafka: see contract.deviation"""

    def operation(
        self, name: str, *ids: str, generated: bool = True, chosen: tuple[str, ...] = (), kind: Kind = "call"
    ) -> Callable[[Callable[..., Step[S]]], Callable[..., Step[S]]]:
        """Decorator (outermost): registers a pure function with contracts as operation `name` that states `ids`."""
        if name in RESERVED:
            raise ValueError(f"{self.name}: an operation cannot be named {name}")

        def register(function: Callable[..., Step[S]]) -> Callable[..., Step[S]]:
            body = inspect.unwrap(function)
            parameters = list(inspect.signature(body).parameters.values())[1:]
            pre = _conditions(function, (c for group in getattr(function, "__preconditions__", []) for c in group))
            post = _conditions(function, getattr(function, "__postconditions__", []))
            self.operations[name] = Operation(
                name,
                ids,
                function,
                body,
                {_camel(p.name): p.name for p in parameters},
                {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty},
                pre,
                post,
                generated,
                chosen,
                kind,
            )
            for id in dict.fromkeys((*ids, *(c.clause for c in pre + post))):
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
        names = {_camel(p): p for p in inspect.signature(self.initial).parameters}
        for name in arguments:
            if name not in names:
                raise unknown("argument of init", name, names)
        return {names[k]: v for k, v in arguments.items()}

    def init_names(self, arguments: Mapping[str, Json]) -> dict[str, Json]:
        """The same the other way: Python names to those of an `init` line."""
        return {_camel(k): v for k, v in arguments.items()}

    def start(self, arguments: Mapping[str, Json]) -> S:
        """The first state for the arguments of a trace's `init` line; UserError for an unknown one."""
        return self.initial(**self.python_names(arguments))

    def outside(self, op: Operation[S], state: S, arguments: Mapping[str, Any]) -> Outside | None:
        """The first precondition that the call breaks, if any. `arguments` by Python names."""
        values = {**op.defaults, **arguments, "state": state}
        for p in op.preconditions:
            if not p.condition(**{n: values[n] for n in p.arguments}):
                return Outside(p.clause, p.text)
        return None

    def apply(self, state: S, name: str, arguments: Mapping[str, Any], contracts: bool = True) -> Step[S] | Outside:
        """One step. `contracts=False` evaluates the preconditions only (fast paths)."""
        op = self.find(name)
        if not contracts:
            return op.direct(state, arguments)
        out = self.outside(op, state, arguments)
        return op.function(state, **arguments) if out is None else out

    def choices(self, op: Operation[S], state: S) -> dict[str, Sequence[Any]]:
        """Python parameter name -> candidate values of it in this state."""
        return {p: self.candidates_of(op, p)(state) for p in op.parameters.values()}

    def candidates_of(self, op: Operation[S], parameter: str) -> Callable[[S], Sequence[Any]]:
        """What gives the candidates of a parameter. ValueError if there is nothing."""
        f = self.candidates.get(f"{op.name}:{parameter}") or self.candidates.get(parameter)
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


class Questions:
    """A driver that has no state: a method `do_<operation>` answers each question."""

    def reset(self, arguments: Mapping[str, Any]) -> None:
        """Nothing to begin with."""

    def apply(self, name: str, arguments: Mapping[str, Any]) -> Json | Refused:
        answer: Json | Refused = getattr(self, f"do_{name}")(**arguments)
        return answer

    def observe(self) -> Json:
        return {}


def without_state(name: str) -> Machine[Nothing]:
    """A machine of questions."""
    return Machine(name, initial=Nothing, observe=lambda state: {})
